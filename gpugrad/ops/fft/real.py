"""Fourier transforms between real arrays and half spectra.

The spectrum of a real array is symmetric, so half of it, n // 2 + 1 points, is kept. An inner
point of the half then stands for two; the first, and for even n the last, stands for one and
has no imaginary part. `fft_r2c` and `fft_c2r` are the two primitives. Each is the other's
adjoint but for the weight of the inner points, which ``folded`` puts in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import AxisError, DTypeError, ShapeError
from gpugrad.ops.fft.complex import (
    ADJOINT_NORM,
    ALONG_ONE,
    ALONG_SEVERAL,
    ALONG_TWO,
    ONE_ERRORS,
    SEVERAL_ERRORS,
    along_axes,
    checked_norm,
    from_end,
    lengths_and_axes,
    need_length,
    numpy_several,
    resized,
    shifted,
    wide,
)
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate

# ---- the primitives ----------------------------------------------------------------------


def _weighted(xp, x, n, axis, weight):
    """A half spectrum of `n` points with the inner ones multiplied by `weight`."""
    weights = xp.lib.full(x.shape[axis], weight, dtype=x.real.dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return x * weights.reshape((-1,) + (1,) * (-axis - 1))


def _fft_r2c_vjp(xp, g, x_shape, axes, norm, folded):
    n = x_shape[axes[-1]]
    return xp.fft_c2r(g, axes=axes, n=n, norm=ADJOINT_NORM[norm], folded=not folded)


def _fft_r2c_batch(xp, batched, x, *, axes, norm, folded):
    return xp.fft_r2c(x, axes=shifted(axes), norm=norm, folded=folded)


def _fft_r2c_reference(x, axes, norm="backward", folded=False):
    out = np.fft.rfftn(x, axes=axes, norm=norm)
    return _fold(out, x.shape[axes[-1]], axes[-1], 2) if folded else out


def _fold(x, n, axis, weight):
    x = np.moveaxis(x.copy(), axis, 0)
    x[1 : (n + 1) // 2] *= weight
    return np.moveaxis(x, 0, axis)


@op(
    vjp=[_fft_r2c_vjp],
    linear=True,
    kinds="fi",
    batch=_fft_r2c_batch,
    ref=_fft_r2c_reference,
    samples=shaped(
        ([(5,)], {"axes": (-1,)}),
        ([(3, 4)], {"axes": (0, 1), "norm": "ortho"}),
        ([(4, 2)], {"axes": (0,), "folded": True}),
        ([(1, 2, 3)], {"axes": (-1, 1)}),
        ([(0, 3)], {"axes": (1,)}),
    ),
    errors=[
        ([np.ones(3)], {"axes": (1,)}, AxisError, "fft_r2c: axis 1"),
        ([np.ones(3) + 1j], {"axes": (0,)}, DTypeError, "fft_r2c: complex128"),
    ],
)
def fft_r2c(xp, x, /, *, axes, norm="backward", folded=False):
    """Half spectrum of real arrays along axes; what `rfft` and its kin call.

    Args:
        x: real array.
        axes: tuple of ints, none twice; the last is the one that is halved.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``.
        folded: whether the inner points are doubled, which makes it the adjoint of `fft_c2r`.

    Returns:
        Complex Tensor, n // 2 + 1 long along the last of the axes.

    >>> print(gg.fft_r2c([1.0, 2.0, 3.0, 4.0], axes=(0,)))
    [10.+0.j -2.+2.j -2.+0.j]
    """
    norm, axes = checked_norm("fft_r2c", norm), from_end("fft_r2c", x, axes)
    x = wide("fft_r2c", "biuf", x)
    for axis in axes:
        need_length("fft_r2c", x.shape[axis])
    n = x.shape[axes[-1]]
    if not x.size:  # cuFFT has no plan of nothing
        shape = list(x.shape)
        shape[axes[-1]] = n // 2 + 1
        return xp.lib.zeros(tuple(shape), dtype=np.result_type(x.dtype, np.complex64))
    if len(axes) == 1:  # NumPy's rfftn would cost 10 us more
        out = xp.lib.fft.rfft(x, axis=axes[0], norm=norm)
    else:
        out = xp.lib.fft.rfftn(x, axes=axes, norm=norm)
    return _weighted(xp, out, n, axes[-1], 2) if folded else out


def _fft_c2r_vjp(xp, g, x_dtype, axes, norm, folded):
    y = xp.fft_r2c(g, axes=axes, norm=ADJOINT_NORM[norm], folded=not folded)
    return y if x_dtype.kind == "c" else xp.real(y)


def _fft_c2r_batch(xp, batched, x, *, axes, n, norm, folded):
    return xp.fft_c2r(x, axes=shifted(axes), n=n, norm=norm, folded=folded)


def _fft_c2r_reference(x, axes, n, norm="backward", folded=False):
    for axis in axes[:-1]:
        x = np.fft.ifft(x, axis=axis, norm=norm)
    x = _fold(x, n, axes[-1], 0.5) if folded else x
    return np.fft.irfft(x, n, axis=axes[-1], norm=norm)


@op(
    vjp=[_fft_c2r_vjp],
    linear=True,
    kinds="fc",
    batch=_fft_c2r_batch,
    ref=_fft_c2r_reference,
    samples=shaped(
        ([(3,)], {"axes": (-1,), "n": 5}),
        ([(3, 3)], {"axes": (0, 1), "n": 4, "norm": "ortho"}),
        ([(3, 2)], {"axes": (0,), "n": 4, "folded": True}),
        ([(1, 2, 2)], {"axes": (2, 1), "n": 2}),
        ([(0, 2)], {"axes": (1,), "n": 3}),
        ([(1,)], {"axes": (0,), "n": 1}),
    ),
    errors=[
        ([np.ones(3)], {"axes": (1,), "n": 4}, AxisError, "fft_c2r: axis 1"),
        ([np.ones(3)], {"axes": (0,), "n": 6}, ShapeError, "fft_c2r: .*4 points"),
    ],
)
def fft_c2r(xp, x, /, *, axes, n, norm="backward", folded=False):
    """Real arrays of half spectra along axes; what `irfft` and its kin call.

    Args:
        x: array of half spectra, n // 2 + 1 long along the last of the axes. Imaginary parts
            of its first, and for even `n` of its last point, are ignored.
        axes: tuple of ints, none twice; the last is the one that is halved.
        n: length of the result along that axis.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``.
        folded: whether the inner points are halved first, which makes it the adjoint of
            `fft_r2c`.

    Returns:
        Real Tensor.

    >>> print(gg.fft_c2r([10.0, -2.0 + 2.0j, -2.0], axes=(0,), n=4))
    [1. 2. 3. 4.]
    """
    norm, axes = checked_norm("fft_c2r", norm), from_end("fft_c2r", x, axes)
    need_length("fft_c2r", n)
    last = axes[-1]
    if x.shape[last] != n // 2 + 1:
        raise ShapeError(
            f"fft_c2r: n={n} needs {n // 2 + 1} points along axis {last} of the shape {x.shape}."
        )
    x = wide("fft_c2r", "biufc", x)
    if not x.size:
        shape = list(x.shape)
        shape[last] = n
        return xp.lib.zeros(tuple(shape), dtype=x.real.dtype)
    if axes[:-1]:  # not irfftn: what cuFFT makes of spectra that are not symmetric differs
        x = xp.lib.fft.ifftn(x, axes=axes[:-1], norm=norm)
    x = _weighted(xp, x, n, last, 0.5) if folded else x
    return xp.lib.fft.irfft(x, n=n, axis=last, norm=norm)


# ---- the named transforms ----------------------------------------------------------------


def _forward(xp, name, x, s, axes, norm):
    """Real array to half spectrum; the last axis first."""
    norm, pairs = checked_norm(name, norm), lengths_and_axes(name, x, s, axes)
    if not pairs:
        raise ShapeError(f"{name}: at least one axis is needed.")
    if x.dtype.kind == "c":
        raise DTypeError(
            f"{name}: x is {x.dtype}, not real. Use gg.fft.fft and its kin, or gg.real(x)."
        )
    *others, last = pairs
    distinct = len({axis for _, axis in pairs}) == len(pairs)
    now = pairs if distinct else [last]
    for n, axis in now:
        x = resized(xp, name, x, n, axis)
    x = xp.fft_r2c(x, axes=tuple(axis for _, axis in now), norm=norm)
    return x if distinct else along_axes(xp, name, x, others, norm=norm)


def _backward(xp, name, x, s, axes, norm):
    """Half spectrum to real array; the last axis last."""
    norm, pairs = checked_norm(name, norm), lengths_and_axes(name, x, s, axes)
    if not pairs:
        raise ShapeError(f"{name}: at least one axis is needed.")
    *others, (n, last) = pairs
    if s is None or s[-1] is None:
        n = 2 * (x.shape[last] - 1)
    need_length(name, n)
    distinct = len({axis for _, axis in pairs}) == len(pairs)
    if not distinct:
        x, others = along_axes(xp, name, x, others[::-1], norm=norm, inverse=True), []
    for m, axis in others:
        x = resized(xp, name, x, m, axis)
    x = resized(xp, name, x, n // 2 + 1, last)
    return xp.fft_c2r(x, axes=(*(axis for _, axis in others), last), n=n, norm=norm)


def _length(name, n):
    if n is None:
        return None
    need_length(name, n)  # also -1, which says in `s`: as long as it is
    return (n,)


_REAL_ONE: list[Any] = [*ONE_ERRORS, ([np.ones(3) + 1j], {}, DTypeError, "not real")]
_REAL_SEVERAL: list[Any] = [*SEVERAL_ERRORS, ([np.ones((3, 3)) + 1j], {}, DTypeError, "not real")]


@op(kinds="f", samples=ALONG_ONE, ref="numpy.fft.rfft", errors=_REAL_ONE)
def rfft(xp, x, /, n=None, axis=-1, norm="backward"):
    """Discrete Fourier transform of a real array along an axis: the first half of `fft`.

    Args:
        x: real array of at least one axis.
        n: number of points: `x` is cut, or padded with zeros at the end; its length if None.
        norm: ``"backward"`` (no scale here), ``"ortho"`` (divided by sqrt(n)) or
            ``"forward"`` (divided by n).

    Returns:
        Complex Tensor, of the precision of `x`, n // 2 + 1 long along the axis.

    >>> print(gg.fft.rfft([1.0, 2.0, 3.0, 4.0]))
    [10.+0.j -2.+2.j -2.+0.j]
    """
    return _forward(xp, "rfft", x, _length("rfft", n), (axis,), norm)


_HALF_ONE = shaped(
    [(4,)],
    ([(2, 3)], {"n": 5, "axis": 0}),
    ([(2, 4)], {"n": 3, "norm": "ortho"}),
    ([(3, 2)], {"axis": -2, "norm": "forward"}),
    [(0, 3)],
    ([(1,)], {"n": 1}),
)
_HALF_SEVERAL = shaped(
    [(2, 3)],
    ([(2, 3)], {"s": (3, 3)}),
    ([(3, 2)], {"axes": (0,), "norm": "ortho"}),
    ([(2, 1, 3)], {"s": (3, 2), "axes": (-1, 0), "norm": "forward"}),
    ([(0, 2, 2)], {"axes": (1,)}),
)
_HALF_TWO = shaped(
    [(2, 3)],
    ([(2, 3)], {"s": (3, 3), "norm": "ortho"}),
    ([(2, 1, 3)], {"axes": (0, 2), "norm": "forward"}),
)


@op(kinds="fc", samples=_HALF_ONE, ref="numpy.fft.irfft", errors=ONE_ERRORS)
def irfft(xp, x, /, n=None, axis=-1, norm="backward"):
    """Real array of which `x` is the first half of the spectrum; the inverse of `rfft`.

    Args:
        x: array of at least one axis. Imaginary parts of its first, and for even `n` of its
            last point, are ignored, and get no gradient.
        n: length of the result; 2 (m - 1) for `x` of length m if None. `x` is cut, or padded
            with zeros, to n // 2 + 1 points.
        norm: ``"backward"`` (divided by n), ``"ortho"`` (by sqrt(n)) or ``"forward"``.

    Returns:
        Real Tensor, of the precision of `x`, `n` long along the axis.

    >>> print(gg.fft.irfft([10.0, -2.0 + 2.0j, -2.0]))
    [1. 2. 3. 4.]
    """
    return _backward(xp, "irfft", x, _length("irfft", n), (axis,), norm)


@op(kinds="f", samples=ALONG_SEVERAL, ref=numpy_several("rfftn"), errors=_REAL_SEVERAL)
def rfftn(xp, x, /, s=None, axes=None, norm="backward"):
    """Discrete Fourier transform of a real array along several axes; the last is halved.

    Args:
        x: real array.
        s: number of points along each of the axes (-1: as many as there are); `x` is cut, or
            padded with zeros at the end.
        axes: tuple of ints; the last len(s) axes if None, or all without `s`.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as for `rfft`.

    Returns:
        Complex Tensor, of the precision of `x`, n // 2 + 1 long along the last of the axes.

    >>> print(gg.fft.rfftn([[1.0, 2.0], [3.0, 4.0]]))
    [[10.+0.j -2.+0.j]
     [-4.+0.j  0.+0.j]]
    """
    return _forward(xp, "rfftn", x, s, axes, norm)


@op(kinds="fc", samples=_HALF_SEVERAL, ref=numpy_several("irfftn"), errors=SEVERAL_ERRORS)
def irfftn(xp, x, /, s=None, axes=None, norm="backward"):
    """Real array of which `x` is the halved spectrum along several axes: inverse of `rfftn`.

    Args:
        x: array; imaginary parts that no real array has are ignored, as in `irfft`.
        s: length of the result along each of the axes (-1: that of `x`); for the last one
            2 (m - 1) if None.
        axes: tuple of ints; the last len(s) axes if None, or all without `s`.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as for `irfft`.

    Returns:
        Real Tensor, of the precision of `x`.

    >>> print(gg.fft.irfftn([[10.0, -2.0], [-4.0, 0.0]]))
    [[1. 2.]
     [3. 4.]]
    """
    return _backward(xp, "irfftn", x, s, axes, norm)


@op(kinds="f", samples=ALONG_TWO, ref="numpy.fft.rfft2", errors=_REAL_SEVERAL)
def rfft2(xp, x, /, s=None, axes=(-2, -1), norm="backward"):
    """Discrete Fourier transform of a real array along two axes: `rfftn` of the last two.

    Args:
        x: real array of at least two axes.
        s: number of points along each of the two; their lengths if None.
        axes: pair of ints; the last is halved.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as for `rfft`.

    Returns:
        Complex Tensor, of the precision of `x`.

    >>> print(gg.fft.rfft2([[1.0, 2.0], [3.0, 4.0]]))
    [[10.+0.j -2.+0.j]
     [-4.+0.j  0.+0.j]]
    """
    return _forward(xp, "rfft2", x, s, axes, norm)


@op(kinds="fc", samples=_HALF_TWO, ref="numpy.fft.irfft2", errors=SEVERAL_ERRORS)
def irfft2(xp, x, /, s=None, axes=(-2, -1), norm="backward"):
    """Real array of which `x` is the halved spectrum along two axes: inverse of `rfft2`.

    Args:
        x: array of at least two axes.
        s: length of the result along each of the two.
        axes: pair of ints; the last is the halved one.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as for `irfft`.

    Returns:
        Real Tensor, of the precision of `x`.

    >>> print(gg.fft.irfft2([[10.0, -2.0], [-4.0, 0.0]]))
    [[1. 2.]
     [3. 4.]]
    """
    return _backward(xp, "irfft2", x, s, axes, norm)


@op(kinds="fc", samples=_HALF_ONE, ref="numpy.fft.hfft", errors=ONE_ERRORS)
def hfft(xp, x, /, n=None, axis=-1, norm="backward"):
    """Fourier transform, which is real, of an array that is symmetric: x_-k = conj(x_k).

    Args:
        x: array of at least one axis: the first half of the symmetric one.
        n: length of the result; 2 (m - 1) for `x` of length m if None.
        norm: ``"backward"`` (no scale here), ``"ortho"`` (divided by sqrt(n)) or
            ``"forward"`` (divided by n).

    Returns:
        Real Tensor, of the precision of `x`, `n` long along the axis.

    >>> print(gg.fft.hfft([1.0, 2.0, 1.0]))
    [ 6.  0. -2.  0.]
    """
    norm = ADJOINT_NORM[checked_norm("hfft", norm)]
    return _backward(xp, "hfft", conjugate(xp, x), _length("hfft", n), (axis,), norm)


@op(kinds="f", samples=ALONG_ONE, ref="numpy.fft.ihfft", errors=_REAL_ONE)
def ihfft(xp, x, /, n=None, axis=-1, norm="backward"):
    """First half of the symmetric array of which `x` is the transform; the inverse of `hfft`.

    Args:
        x: real array of at least one axis.
        n: number of points: `x` is cut, or padded with zeros at the end; its length if None.
        norm: ``"backward"`` (divided by n), ``"ortho"`` (by sqrt(n)) or ``"forward"``.

    Returns:
        Complex Tensor, of the precision of `x`, n // 2 + 1 long along the axis.

    >>> print(gg.fft.ihfft([6.0, 0.0, -2.0, 0.0]))
    [1.-0.j 2.-0.j 1.-0.j]
    """
    norm = ADJOINT_NORM[checked_norm("ihfft", norm)]
    return xp.conj(_forward(xp, "ihfft", x, _length("ihfft", n), (axis,), norm))
