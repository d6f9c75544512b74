"""Fourier transforms between real arrays and half spectra.

The spectrum of a real array is symmetric, so only half of it is kept: n // 2 + 1 points. An
inner point of the half stands for two; the first point, and for even n the last, stands for one
and has no imaginary part. `fft_r2c` and `fft_c2r` are adjoint to each other once ``folded``
applies these weights.
"""

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import AxisError, DTypeError, ShapeError
from gpugrad.ops.fft.complex import (
    ADJOINT_NORM,
    checked_norm,
    computed,
    from_end,
    need_length,
    wide,
)
from gpugrad.registry.record import op


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
    native_half="wide",
    batch="axis",
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
        ([np.ones(0)], {"axes": (0,)}, ShapeError, "fft_r2c: .*n=0"),
        ([np.ones(3) + 1j], {"axes": (0,)}, DTypeError, "fft_r2c: complex128"),
    ],
)
def fft_r2c(xp, x, /, *, axes, norm="backward", folded=False):
    """Half spectrum of real arrays along axes; `rfft` and its variants call it.

    Args:
        axes: tuple of ints, none twice; the last one is halved.
        folded: whether the inner points are doubled, which makes it the adjoint of `fft_c2r`.

    Returns:
        Complex Tensor, n // 2 + 1 long along the last of the axes.
    """
    norm, axes = checked_norm("fft_r2c", norm), from_end("fft_r2c", x, axes)
    x = wide("fft_r2c", "biuf", x)
    for axis in axes:
        need_length("fft_r2c", x.shape[axis])
    n = x.shape[axes[-1]]
    if not x.size:  # cuFFT cannot plan an empty transform
        shape = list(x.shape)
        shape[axes[-1]] = n // 2 + 1
        return xp.lib.zeros(tuple(shape), dtype=np.result_type(x.dtype, np.complex64))
    if len(axes) == 1:
        out = computed(xp, "rfft", x, axis=axes[0], norm=norm)
    else:
        out = computed(xp, "rfftn", x, axes=axes, norm=norm)
    return _weighted(xp, out, n, axes[-1], 2) if folded else out


def _fft_c2r_vjp(xp, g, x_dtype, axes, norm, folded):
    y = xp.fft_r2c(g, axes=axes, norm=ADJOINT_NORM[norm], folded=not folded)
    return y if x_dtype.kind == "c" else xp.real(y)


def _fft_c2r_reference(x, axes, n, norm="backward", folded=False):
    for axis in axes[:-1]:
        x = np.fft.ifft(x, axis=axis, norm=norm)
    x = _fold(x, n, axes[-1], 0.5) if folded else x
    return np.fft.irfft(x, n, axis=axes[-1], norm=norm)


@op(
    vjp=[_fft_c2r_vjp],
    linear=True,
    kinds="fc",
    native_half="wide",
    batch="axis",
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
    """Real arrays of half spectra along axes; `irfft` and its variants call it.

    Args:
        x: array of half spectra, n // 2 + 1 long along the last of the axes. Imaginary parts
            of its first, and for even `n` of its last point, are ignored.
        axes: tuple of ints, none twice; the last one is halved.
        n: length of the result along that axis.
        folded: whether the inner points are halved first, which makes it the adjoint of
            `fft_r2c`.

    Returns:
        Real Tensor.
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
    if axes[:-1]:  # not irfftn: cuFFT's differs for spectra that are not symmetric
        x = computed(xp, "ifftn", x, axes=axes[:-1], norm=norm)
    x = _weighted(xp, x, n, last, 0.5) if folded else x
    return computed(xp, "irfft", x, n=n, axis=last, norm=norm)
