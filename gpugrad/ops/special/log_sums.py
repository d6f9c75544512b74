"""Softmax and sums of exponentials along any axes, with SciPy's arguments."""

from __future__ import annotations

from typing import Any

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import operand, tensor
from gpugrad.errors import saying_where


@saying_where
def softmax(x: Any, axis: Any = None) -> Any:
    """Exponentials divided by their sum.

    Args:
        x: array of any shape.
        axis: int, tuple of ints, or None for all axes (`gg.softmax` takes the last).

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: `x` has no such axis.

    >>> print(gg.special.softmax([[0.0, 0.0], [0.0, 0.0]]))
    [[0.25 0.25]
     [0.25 0.25]]
    """
    if isinstance(axis, int):
        return xp.softmax(x, axis=axis)
    return xp.exp(log_softmax(x, axis))


@saying_where
def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithm of `softmax`, accurate where `softmax` underflows to 0.

    Args:
        x: array of any shape.
        axis: int, tuple of ints, or None for all axes (`gg.log_softmax` takes the last).

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: `x` has no such axis.

    >>> print(gg.special.log_softmax([[0.0, 0.0]]))
    [[-0.6931472 -0.6931472]]
    """
    if isinstance(axis, int):
        return xp.log_softmax(x, axis=axis)
    x = tensor(x)
    return x - xp.logsumexp(x, axis=axis, keepdims=True)


@saying_where
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b exp(a))) along axes, without overflow.

    Args:
        a: array of any shape, not empty along a reduced axis.
        axis: int, tuple of ints, or None for all axes.
        b: weights, broadcast against `a`; they may be negative or 0. None is 1.
        keepdims: whether reduced axes stay, with length 1.
        return_sign: whether to return log|sum| and the sign of the sum, instead of NaN for
            negative sums.

    Returns:
        Tensor without the reduced axes; two of them with `return_sign`.

    Raises:
        AxisError: `a` has no such axis.

    >>> print(gg.special.logsumexp([1000.0, 1000.0], b=[1.0, 3.0]))
    1001.3863
    """
    a = operand(a, b)
    if b is None:
        total = xp.logsumexp(a, axis=axis, keepdims=keepdims)
        return (total, xp.sign(xp.exp(total))) if return_sign else total
    b = operand(b, a)
    a = xp.where(b == 0, -float("inf"), a)  # a weight of 0 drops even an infinite exponential
    largest = xp.max(xp.stop_gradient(a), axis=axis, keepdims=True)
    largest = xp.where(xp.isfinite(largest), largest, 0)
    total = xp.sum(b * xp.exp(a - largest), axis=axis, keepdims=keepdims)
    shift = largest if keepdims else xp.reshape(largest, total.shape)
    if return_sign:
        return xp.log(xp.abs(total)) + shift, xp.sign(total)
    return xp.log(total) + shift
