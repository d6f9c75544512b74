"""Where the frequencies of a Fourier transform are: their values, and 0 in the middle."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import ArgumentError, AxisError, DTypeError, saying_where
from gpugrad.ops.fft.complex import from_end
from gpugrad.registry.record import op


def _made(name: str, frequencies: Any, n: int, d: float, dtype: Any, device: Any) -> Tensor:
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ArgumentError(f"{name}: n={n!r} must be an int from 1.")
    if d == 0:
        raise ArgumentError(f"{name}: the spacing d must not be 0.")
    made = backend.as_dtype(np.float32 if dtype is None else dtype)
    if made.kind not in "fV":
        raise DTypeError(f"{name}: dtype {made} holds no frequencies; use a floating-point one.")
    return wrap(devices.put(frequencies(n, d).astype(made), devices.device(device)))


@saying_where
def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make the frequencies of the points of `fft`: 0, 1, ..., -2, -1, divided by n d.

    Args:
        n: number of points of the transform.
        d: distance of its samples.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (n,).

    Raises:
        ArgumentError: `n` is no int from 1, or `d` is 0.
        DTypeError: a dtype that is not floating-point.

    >>> print(gg.fft.fftfreq(4))
    [ 0.    0.25 -0.5  -0.25]
    """
    return _made("fftfreq", np.fft.fftfreq, n, d, dtype, device)


@saying_where
def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make the frequencies of the points of `rfft`: 0, 1, ..., divided by n d.

    Args:
        n: number of points of the real array.
        d: distance of its samples.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (n // 2 + 1,).

    Raises:
        ArgumentError: `n` is no int from 1, or `d` is 0.
        DTypeError: a dtype that is not floating-point.

    >>> print(gg.fft.rfftfreq(4))
    [0.   0.25 0.5 ]
    """
    return _made("rfftfreq", np.fft.rfftfreq, n, d, dtype, device)


def _rolled(xp, name, x, axes, places):
    """Roll each axis by `places` of its length."""
    axes = range(x.ndim) if axes is None else axes if isinstance(axes, (tuple, list)) else (axes,)
    axes = from_end(name, x, axes)
    return xp.roll(x, tuple(places(x.shape[a]) for a in axes), axis=axes) if axes else x


_SHIFTS = shaped(
    [(5,)], ([(4, 3)], {"axes": 0}), ([(2, 3, 2)], {"axes": (1, -1)}), [(2, 3)], [(0, 2)]
)
_SHIFT_ERRORS: list[Any] = [([np.ones(3)], {"axes": 1}, AxisError, "axis 1")]


@op(kinds="fc", keeps_half=True, samples=_SHIFTS, ref="numpy.fft.fftshift", errors=_SHIFT_ERRORS)
def fftshift(xp, x, /, axes=None):
    """Move the frequency 0 of a transform from the start to the middle.

    Args:
        axes: int or tuple of ints, along which; all if None.

    >>> print(gg.fft.fftshift([0.0, 1.0, 2.0, -2.0, -1.0]))
    [-2. -1.  0.  1.  2.]
    """
    return _rolled(xp, "fftshift", x, axes, lambda n: n // 2)


@op(kinds="fc", keeps_half=True, samples=_SHIFTS, ref="numpy.fft.ifftshift", errors=_SHIFT_ERRORS)
def ifftshift(xp, x, /, axes=None):
    """Move the frequency 0 from the middle back to the start; the inverse of `fftshift`.

    Args:
        axes: int or tuple of ints, along which; all if None.

    >>> print(gg.fft.ifftshift([-2.0, -1.0, 0.0, 1.0, 2.0]))
    [ 0.  1.  2. -2. -1.]
    """
    return _rolled(xp, "ifftshift", x, axes, lambda n: -(n // 2))
