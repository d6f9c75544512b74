"""Spherical Bessel functions and their derivatives, with SciPy's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import tensor
from gpugrad.errors import saying_where


def _spherical(name: str, what: str, value: str, slope: Callable[..., Any]) -> Callable[..., Any]:
    def function(n: int, z: Any, derivative: bool = False) -> Any:
        f = getattr(xp, name)
        return slope(f, n, tensor(z)) if derivative else f(z, n=n)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{what}, or its derivative.

    Args:
        n: non-negative int, the order.
        z: array of any shape.
        derivative: whether to return the derivative with respect to `z`.

    Returns:
        Tensor of the shape of `z`.

    Raises:
        ArgumentError: `n` is negative.

    >>> print(gg.special.{name}(0, [0.5, 1.0]))
    {value}
    """
    return saying_where(function)


def _slope(sign: int, down: int) -> Callable[..., Any]:
    """DLMF 10.51.2 and 10.51.5: f_n' is (n f_(n-1) + down (n + 1) f_(n+1)) sign / (2 n + 1)."""

    def slope(f: Any, n: int, z: Any) -> Any:
        above = down * (n + 1) * f(z, n=n + 1)
        return sign * (n * f(z, n=n - 1) + above) / (2 * n + 1) if n else sign * above

    return slope


spherical_jn = _spherical(
    "spherical_jn",
    "Spherical Bessel function of the first kind",
    "[0.9588511  0.84147096]",
    _slope(1, -1),
)
spherical_yn = _spherical(
    "spherical_yn",
    "Spherical Bessel function of the second kind",
    "[-1.7551651 -0.5403023]",
    _slope(1, -1),
)
spherical_in = _spherical(
    "spherical_in",
    "Modified spherical Bessel function of the first kind",
    "[1.0421906 1.1752012]",
    _slope(1, 1),
)
spherical_kn = _spherical(
    "spherical_kn",
    "Modified spherical Bessel function of the second kind",
    "[1.9054722 0.5778637]",
    _slope(-1, 1),
)
