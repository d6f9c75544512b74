"""Filters of arrays that are Fourier transforms: products with a factor for each frequency."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.backend import as_dtype
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.ndimage.common import as_scipy, check_axis, is_dtype, sequence


def _dtype(kinds: str, output: Any, x: Tensor, weights: Any) -> np.dtype[Any]:
    """Of the result: of the input if that is a float of 32 bits or more, or complex."""
    dtype = x.dtype if output is None else as_dtype(output if is_dtype(output) else output.dtype)
    if dtype.kind in kinds and dtype.itemsize > 2:
        return dtype
    if output is not None:
        raise RuntimeError(f"output type not supported: {dtype}")
    return np.dtype("float64" if "f" in kinds else "complex128")


_fourier = as_scipy(dtype=functools.partial(_dtype, "fc"))


def _times_frequency(x: Tensor, values: Any, n: int, axis: int) -> list[Any]:
    """Each axis's value times its frequencies."""
    axis, products = check_axis(axis, x.ndim), []
    for k, (m, value) in enumerate(zip(x.shape, sequence(values, x.ndim), strict=True)):
        f = np.arange(m) / n if k == axis and n >= 0 else np.fft.fftfreq(m) if m else np.zeros(0)
        f = f.reshape([-1 if i == k else 1 for i in range(x.ndim)])
        products.append(asarray(f, device=x.device) * value)
    return products


@_fourier
def fourier_gaussian(input, sigma, n, axis, **_):
    """The transform of a Gaussian filter; differentiable by `input` and `sigma`.

    >>> print(gg.scipy.ndimage.fourier_gaussian([1.0, 1.0, 1.0], 0.5))
    [1.        0.5779249 0.5779249]
    """
    for t in _times_frequency(input, sigma, n, axis):
        input = input * xp.exp(-2 * np.pi**2 * t * t)
    return input


@_fourier
def fourier_uniform(input, size, n, axis, **_):
    """The transform of a filter of means; differentiable by `input` and `size`.

    >>> print(gg.scipy.ndimage.fourier_uniform([1.0, 1.0, 1.0], 1.5))
    [1.         0.63661977 0.63661977]
    """
    for t in _times_frequency(input, size, n, axis):
        input = input * xp.sinc(t)
    return input


@_fourier
def fourier_ellipsoid(input, size, n, axis, **_):
    """The transform of the mean over an ellipsoid; differentiable by `input` and `size`.

    >>> print(gg.scipy.ndimage.fourier_ellipsoid([1.0, 1.0, 1.0], 1.5))
    [1.         0.63661977 0.63661977]
    """
    if input.ndim > 3:
        raise NotImplementedError("Only 1d, 2d and 3d inputs are supported")
    if not input.size:
        return input
    square = np.pi**2 * sum(t * t for t in _times_frequency(input, size, n, axis))
    t = xp.sqrt(xp.where(square == 0, 1.0, square))
    factor = (
        xp.sin(t) / t
        if input.ndim == 1
        else 2 * xp.j1(t) / t
        if input.ndim == 2
        else 3 * (xp.sin(t) - t * xp.cos(t)) / t**3
    )
    return input * xp.where(square == 0, 1.0, factor)


@as_scipy(dtype=functools.partial(_dtype, "c"))
def fourier_shift(input, shift, n, axis, **_):
    """The transform of a shift; differentiable by `input` and `shift`.

    >>> print(gg.real(gg.scipy.ndimage.fourier_shift([1.0, 1.0], 1.0)))
    [ 1. -1.]
    """
    angle = -2 * np.pi * sum(_times_frequency(input, shift, n, axis))
    return input * xp.complex(xp.cos(angle), xp.sin(angle))
