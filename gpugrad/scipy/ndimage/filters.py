"""Linear filters: the array is padded by the boundary mode, then correlated with weights."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.ops.scipy.ranks import running
from gpugrad.scipy.ndimage import common
from gpugrad.scipy.ndimage.common import as_scipy, by_axis, check_axis, floating

_by_windows = as_scipy(direct=common.INTEGERS + "d")
_by_scipy = as_scipy(direct=common.INTEGERS + "fd")


def _correlated(x: Tensor, w: Tensor, mode: Any, cval: Any, origins: Any, flip: bool) -> Tensor:
    """The filter of weights with as many axes as `x`; `flip` makes it a convolution."""
    mode = common.check_mode(mode)
    if np.iscomplexobj(cval) and x.dtype.kind != "c":
        raise ValueError("Cannot provide a complex-valued cval when the input is real.")
    if flip:
        w = xp.flip(w, axis=tuple(range(w.ndim)))
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, w.shape, strict=True)]
    elif w.dtype.kind == "c":
        w = xp.conj(w)
    pairs = [
        common.around(
            n, o, f"Invalid origin; origin must satisfy -({n} // 2) <= {o} <= {n - 1} // 2"
        )
        for n, o in zip(w.shape, origins, strict=True)
    ]
    if 0 in x.shape:
        return x
    x = floating(x)
    w = xp.astype(w, np.result_type(w.dtype, x.dtype) if w.dtype.kind == "c" else x.dtype)
    if "constant" in mode and (isinstance(cval, Tensor) or cval != 0):
        return xp.correlate_valid(common.padded(x, pairs, mode, cval), w)
    return xp.correlate_valid(x, w, pairs=pairs, mode=mode)


def _along(
    input: Tensor, weights: Tensor, axis: int, mode: Any, cval: Any, origin: int, flip: bool
) -> Tensor:
    if weights.ndim != 1 or not weights.shape[0]:
        raise RuntimeError("no filter weights given")
    axis = check_axis(axis, input.ndim)
    w = xp.reshape(weights, tuple(-1 if k == axis else 1 for k in range(input.ndim)))
    origins = [origin if k == axis else 0 for k in range(input.ndim)]
    return _correlated(input, w, mode, cval, origins, flip)


@_by_windows
def correlate1d(input, weights, axis, mode, cval, origin, **_):
    """Correlation with weights along an axis; differentiable by `input`, `weights` and `cval`.

    >>> print(gg.scipy.ndimage.correlate1d([2, 8, 0, 4], weights=[1, 3]))
    [ 8 26  8 12]
    """
    return _along(input, weights, axis, mode, cval, origin, False)


@_by_windows
def convolve1d(input, weights, axis, mode, cval, origin, **_):
    """Convolution with weights along an axis; differentiable by `input`, `weights` and `cval`.

    >>> print(gg.scipy.ndimage.convolve1d([2, 8, 0, 4], weights=[1, 3]))
    [14 24  4 16]
    """
    return _along(input, weights, axis, mode, cval, origin, True)


def _filter(x: Tensor, w: Tensor, mode: Any, cval: Any, origin: Any, flip: bool, axes: Any) -> Any:
    axes = common.check_axes(axes, x.ndim)
    if not isinstance(mode, str) and isinstance(mode, Iterable):
        raise RuntimeError("A sequence of modes is not supported")
    if w.ndim != len(axes):
        raise RuntimeError(f"weights.ndim ({w.ndim}) must match len(axes) ({len(axes)})")
    if not w.size:
        raise RuntimeError("no filter weights given")
    origins = [0] * x.ndim
    for axis, o in by_axis(x, axes, origin):
        origins[axis] = o
    others = tuple(k for k in range(x.ndim) if k not in axes)
    w = xp.expand_dims(w, axis=others) if others else w
    return _correlated(x, w, mode, cval, origins, flip)


@_by_windows
def correlate(input, weights, mode, cval, origin, axes, **_):
    """Correlation with weights; differentiable by `input`, `weights` and `cval`.

    >>> print(gg.scipy.ndimage.correlate([[1.0, 2.0], [3.0, 5.0]], [[1.0, 1.0]]))
    [[2. 3.]
     [6. 8.]]
    """
    return _filter(input, weights, mode, cval, origin, False, axes)


@_by_windows
def convolve(input, weights, mode, cval, origin, axes, **_):
    """Convolution with weights; differentiable by `input`, `weights` and `cval`.

    >>> print(gg.scipy.ndimage.convolve([1.0, 2.0, 4.0], [1.0, 0.0, -1.0], mode="nearest"))
    [1. 3. 2.]
    """
    return _filter(input, weights, mode, cval, origin, True, axes)


def _gaussian_weights(sigma: Any, order: int, radius: int) -> Tensor:
    """A Gaussian's derivative of an order, sampled from `radius` to -`radius`.

    With phi = exp(-x^2 / (2 sigma^2)), the derivative of q phi is (q' - q x / sigma^2) phi.
    """
    if order < 0:
        raise ValueError("order must be non-negative")
    x: Any = np.arange(radius, -radius - 1.0, -1.0)
    x = asarray(x, device=sigma.device) if isinstance(sigma, Tensor) else x
    lib: Any = xp if isinstance(x, Tensor) else np
    square = sigma * sigma
    phi = lib.exp(-0.5 / square * x**2)
    phi = phi / lib.sum(phi)
    q: list[Any] = [1.0]
    for _ in range(order):
        slope = [*(k * q[k] for k in range(1, len(q))), 0.0, 0.0]
        q = [a - b / square for a, b in zip(slope, [0.0, *q], strict=True)]
    return sum(c * x**k for k, c in enumerate(q)) * phi if order else phi


@_by_windows
def gaussian_filter1d(input, sigma, axis, order, mode, cval, truncate, radius, **_):
    """Gaussian filter along an axis; differentiable by `input`, `sigma` and `cval`.

    A traced `sigma` needs `radius`, which SciPy computes from the value of `sigma`.

    >>> print(gg.scipy.ndimage.gaussian_filter1d([0.0, 1.0, 0.0], 0.5, mode="constant"))
    [0.10645077 0.78657073 0.10645077]
    """
    width = int(truncate * float(sigma) + 0.5) if radius is None else radius
    if not isinstance(width, numbers.Integral) or width < 0:
        raise ValueError("Radius must be a nonnegative integer.")
    w = common.array(_gaussian_weights(sigma, order, int(width)), input)
    return _along(input, w, axis, mode, cval, 0, False)


@_by_windows
def gaussian_filter(input, sigma, order, output, mode, cval, truncate, radius, axes):
    """Gaussian filter along each axis; differentiable by `input`, `sigma` and `cval`.

    >>> print(gg.scipy.ndimage.gaussian_filter([[0.0, 1.0], [1.0, 0.0]], sigma=[0.0, 0.5]))
    [[0.1069785 0.8930215]
     [0.8930215 0.1069785]]
    """
    x = input
    for axis, s, n, m, r in by_axis(x, axes, sigma, order, mode, radius):
        if isinstance(s, Tensor) or s > 1e-15:
            x = gaussian_filter1d(x, s, axis, n, output, m, cval, truncate, radius=r)
    return x


def _difference(x: Tensor, axis: int, dtype: Any, mode: Any, cval: Any, smooth: Any) -> Tensor:
    """The difference along an axis, smoothed along the others."""
    axis, modes = check_axis(axis, x.ndim), common.sequence(mode, x.ndim)
    x = correlate1d(x, [-1, 0, 1], axis, dtype, modes[axis], cval)
    for k in range(x.ndim):
        x = x if k == axis else correlate1d(x, smooth, k, dtype, modes[k], cval)
    return x


@_by_scipy
def prewitt(input, axis, output, mode, cval):
    """Prewitt filter; differentiable by `input` and `cval`.

    >>> print(gg.scipy.ndimage.prewitt([1.0, 2.0, 4.0]))
    [1. 3. 2.]
    """
    return _difference(input, axis, output, mode, cval, [1, 1, 1])


@_by_scipy
def sobel(input, axis, output, mode, cval):
    """Sobel filter; differentiable by `input` and `cval`.

    >>> print(gg.scipy.ndimage.sobel([[1.0, 2.0], [2.0, 4.0]]))
    [[5. 5.]
     [7. 7.]]
    """
    return _difference(input, axis, output, mode, cval, [1, 2, 1])


def _of_axes(
    x: Tensor,
    derivative: Any,
    dtype: Any,
    mode: Any,
    cval: Any,
    args: Any,
    keywords: Any,
    axes: Any,
) -> list[Tensor]:
    """The derivative along each axis."""
    return [
        derivative(x, axis, dtype, m, cval, *args, **(keywords or {}))
        for axis, m in by_axis(x, axes, mode)
    ]


@as_scipy
def generic_laplace(input, derivative2, output, mode, cval, extra_arguments, extra_keywords, axes):
    """The sum of second derivatives, computed by `derivative2` for each axis.

    >>> second = lambda x, axis, *more: gg.scipy.ndimage.correlate1d(x, [1, -2, 1], axis, *more)
    >>> print(gg.scipy.ndimage.generic_laplace([1.0, 2.0, 4.0], second))
    [ 1.  1. -2.]
    """
    parts = _of_axes(input, derivative2, output, mode, cval, extra_arguments, extra_keywords, axes)
    return functools.reduce(xp.add, parts) if parts else input


@as_scipy
def generic_gradient_magnitude(
    input, derivative, output, mode, cval, extra_arguments, extra_keywords, axes
):
    """The root of the sum of squared derivatives, computed by `derivative` for each axis.

    >>> of_axis = gg.scipy.ndimage.sobel
    >>> print(gg.scipy.ndimage.generic_gradient_magnitude([[0.0, 0.0], [2.0, 2.0]], of_axis))
    [[8. 8.]
     [8. 8.]]
    """
    parts = _of_axes(input, derivative, output, mode, cval, extra_arguments, extra_keywords, axes)
    if not parts:
        return input
    return xp.sqrt(floating(functools.reduce(xp.add, [part * part for part in parts])))


@_by_scipy
def laplace(input, output, mode, cval, axes):
    """Laplace filter of second differences; differentiable by `input` and `cval`.

    >>> print(gg.scipy.ndimage.laplace([1.0, 2.0, 4.0]))
    [ 1.  1. -2.]
    """

    def second(x: Tensor, axis: int, dtype: Any, mode: str, cval: Any) -> Any:
        return correlate1d(x, [1, -2, 1], axis, dtype, mode, cval)

    return generic_laplace(input, second, output, mode, cval, axes=axes)


def _gaussian(order: int, x: Tensor, sigma: Any, axes: Any) -> tuple[Any, tuple[int, ...]]:
    """The function of Gaussian derivatives of an order along one axis, and the axes."""
    axes = common.check_axes(axes, x.ndim)
    sigmas = common.sequence(sigma, len(axes))

    def derivative(x: Tensor, axis: int, dtype: Any, mode: str, cval: Any, **more: Any) -> Any:
        orders = [order if k == axis else 0 for k in axes]
        return gaussian_filter(x, sigmas, orders, dtype, mode, cval, axes=axes, **more)

    return derivative, axes


@as_scipy
def gaussian_laplace(input, sigma, output, mode, cval, axes, kwargs=None):
    """Laplace filter of Gaussian second derivatives; differentiable by `sigma` too.

    >>> print(gg.scipy.ndimage.gaussian_laplace([0.0, 0.0, 0.0], 1.0))
    [0. 0. 0.]
    """
    second, axes = _gaussian(2, input, sigma, axes)
    return generic_laplace(input, second, output, mode, cval, extra_keywords=kwargs, axes=axes)


@as_scipy
def gaussian_gradient_magnitude(input, sigma, output, mode, cval, axes, kwargs=None):
    """The gradient's magnitude by Gaussian derivatives; differentiable by `sigma` too.

    >>> print(gg.scipy.ndimage.gaussian_gradient_magnitude([1.0, 1.0, 1.0], 0.5) < 1e-9)
    [ True  True  True]
    """
    first, axes = _gaussian(1, input, sigma, axes)
    return generic_gradient_magnitude(
        input, first, output, mode, cval, extra_keywords=kwargs, axes=axes
    )


@_by_scipy
def uniform_filter1d(input, size, axis, mode, cval, origin, **_):
    """Means of windows along an axis; differentiable by `input` and `cval`.

    >>> print(gg.scipy.ndimage.uniform_filter1d([2.0, 8.0, 0.0, 4.0], size=2))
    [2. 5. 4. 2.]
    """
    axis = check_axis(axis, input.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    pairs = [common.around(size, origin) if k == axis else (0, 0) for k in range(input.ndim)]
    mode = common.check_mode(mode)
    if not input.size:
        return input
    if size <= 32 and input.dtype.kind in "fc":  # faster than sums of ever longer windows
        w = common.array(np.full(size, 1 / size), input)
        return _along(input, w, axis, mode, cval, origin, False)
    return running(xp, xp.add, common.padded(floating(input), pairs, mode, cval), axis, size) / size


@_by_scipy
def uniform_filter(input, size, output, mode, cval, origin, axes):
    """Means of windows along each axis; differentiable by `input` and `cval`.

    >>> print(gg.scipy.ndimage.uniform_filter([[0.0, 9.0, 0.0]], size=3))
    [[3. 3. 3.]]
    """
    for axis, n, m, o in by_axis(input, axes, size, mode, origin):
        if n > 1:
            input = uniform_filter1d(input, int(n), axis, output, m, cval, o)
    return input
