"""Functions of SciPy that are short formulas of other special functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ShapeError, saying_where
from gpugrad.ops._loops import check_order
from gpugrad.ops.special.spherical import spherical_jn, spherical_yn


def _derivative(
    name: str, f: str, what: str, sign: int, value: str, outer: int = 1
) -> Callable[..., Any]:
    """The n-th derivative of a Bessel function: DLMF 10.6.7 and 10.29.5."""

    def function(v: Any, z: Any, n: int = 1) -> Any:
        n, bessel = check_order(name, "n", n, 0, 100), getattr(xp, f)
        v = v if isinstance(v, Tensor) else np.asarray(v)[()]
        total = bessel(v - n, z)
        for k in range(1, n + 1):
            total = total + sign**k * math.comb(n, k) * bessel(v - n + 2 * k, z)
        return total * (outer**n / 2**n)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The `n`-th derivative of {what}, `{f}`, with respect to `z`.

    Args:
        v: order, a real number or array.
        z: array that broadcasts with `v`.
        n: non-negative int.

    Returns:
        Tensor of the broadcast shape. Its gradient by `v` is not known; asking for it raises.

    Raises:
        ArgumentError: `n` is negative, or above 100.
        DeviceError: `z` is on a GPU, since CuPy lacks the function.

    >>> print(gg.special.{name}(0, [1.0, 2.0]))
    {value}
    """
    return saying_where(function)


_HANKEL = "[-0.44005057{0}0.7812128j  -0.5767248 {0}0.10703243j]"

jvp = _derivative("jvp", "jv", "the Bessel function J", -1, "[-0.44005057 -0.5767248 ]")
yvp = _derivative("yvp", "yv", "the Bessel function Y", -1, "[0.7812128  0.10703243]")
ivp = _derivative("ivp", "iv", "the modified Bessel function I", 1, "[0.5651591 1.5906368]")
kvp = _derivative("kvp", "kv", "the modified Bessel function K", 1, "[-0.60190725 -0.13986588]", -1)
h1vp = _derivative("h1vp", "hankel1", "the first Hankel function", -1, _HANKEL.format("+"))
h2vp = _derivative("h2vp", "hankel2", "the second Hankel function", -1, _HANKEL.format("-"))


def _number(name: str, x: Any) -> Tensor:
    x = tensor(x)
    if x.ndim:
        raise ShapeError(f"{name}: x must be a number or a 0-dimensional array, not {x.shape}.")
    return x


def _riccati(name: str, what: str, f: Callable[..., Any], value: str) -> Callable[..., Any]:
    def function(n: int, x: Any) -> tuple[Any, Any]:
        n, x = check_order(name, "n", n, 0, 140), _number(name, x)
        values = [f(k, x) for k in range(n + 1)]
        slopes = [y + x * f(k, x, derivative=True) for k, y in enumerate(values)]
        return x * xp.stack(values, axis=0), xp.stack(slopes, axis=0)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Riccati-Bessel functions of the {what} kind, `x` times the spherical one.

    Args:
        n: non-negative int, the highest order.
        x: number.

    Returns:
        Two Tensors of shape (n + 1,): the functions of the orders 0 to n, and their derivatives.

    Raises:
        ArgumentError: `n` is negative, or above 140.
        ShapeError: `x` is not a number.

    >>> print(gg.special.{name}(1, 1.0)[0])
    {value}
    """
    return saying_where(function)


riccati_jn = _riccati("riccati_jn", "first", spherical_jn, "[0.84147096 0.30116868]")
riccati_yn = _riccati("riccati_yn", "second", spherical_yn, "[-0.5403023 -1.3817732]")


@saying_where
def lmbda(v: float, x: Any) -> tuple[Any, Any]:
    """Lambda functions of Jahnke and Emde, gamma(v + 1) (2 / x)^v J_v(x) (DLMF 10.16.9).

    Args:
        v: non-negative number, the highest order.
        x: number.

    Returns:
        Two Tensors: the functions of the orders v - int(v), ..., v, and their derivatives.

    Raises:
        ArgumentError: `v` is negative.
        ShapeError: `x` is not a number.

    >>> print(gg.special.lmbda(1.0, 1.0)[0])
    [0.7651977 0.8801012]
    """
    n, x = check_order("lmbda", "int(v)", math.floor(v), 0, 10_000), _number("lmbda", x)
    dtype = np.result_type(x.dtype, np.float32)
    orders, square = (v - n + np.arange(n + 1.0)).astype(dtype), -0.25 * x * x
    slopes = -0.5 * x / (orders + 1) * xp.hyp0f1(orders + 2, square)
    return xp.hyp0f1(orders + 1, square), slopes


@saying_where
def kelvin(x: Any) -> tuple[Any, ...]:
    """Kelvin functions as complex numbers.

    Args:
        x: array of any shape.

    Returns:
        Four complex Tensors of the shape of `x`: ber + i bei, ker + i kei, and their derivatives.

    Raises:
        DeviceError: `x` is on a GPU, since CuPy lacks the functions.

    >>> print(gg.special.kelvin(1.0)[0])
    (0.9843818+0.24956604j)
    """
    names = (("ber", "bei"), ("ker", "kei"), ("berp", "beip"), ("kerp", "keip"))
    return tuple(getattr(xp, a)(x) + 1j * getattr(xp, b)(x) for a, b in names)


@saying_where
def assoc_laguerre(x: Any, n: Any, k: Any = 0.0) -> Any:
    """Generalised Laguerre polynomial, `eval_genlaguerre` with the arguments in another order.

    Args:
        x: array of any shape.
        n: integers, the degrees.
        k: numbers or arrays above -1; they have no gradient.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        NoGradientError: the gradient by `k` is asked for.

    >>> print(gg.special.assoc_laguerre(0.5, 1))
    0.5
    """
    return xp.eval_genlaguerre(n, k, x)
