"""The complex Fourier transform, and the arguments that all transforms share.

The matrix of `fft_c2c` is symmetric, so its adjoint is the transform in the other direction
with the other scale, and derivatives of every order are again transforms.
"""

import functools

import numpy as np

from gpugrad.core.backend import NUMPY, is_inexact
from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.kernels.cpu import pool
from gpugrad.kernels.cpu.large import LARGE
from gpugrad.ops._axes import check_axis
from gpugrad.registry.record import op

ADJOINT_NORM = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The `norm` with which the transform in the other direction is the adjoint."""

IGNORED = """overwrite_x, workers, plan: SciPy's, without effect: `x` is never overwritten, and
            CuPy keeps plans by itself."""


def computed(xp, name, x, *args, **how):
    """A transform of the library; on the CPU SciPy's, since NumPy's takes three times as long."""
    if xp is not NUMPY:
        return getattr(xp.lib.fft, name)(x, *args, **how)
    threads = pool.threads() if x.size >= LARGE else None
    return getattr(scipy_fft(), name)(x, *args, workers=threads, **how)


@functools.cache
def scipy_fft():
    """SciPy's transforms, imported when first needed."""
    from scipy import fft

    return fft


def checked_norm(name, norm):
    """`norm` by its full name."""
    norm = "backward" if norm is None else norm
    if norm not in ADJOINT_NORM:
        raise ArgumentError(f"{name}: no norm {norm!r}; choose 'backward', 'ortho' or 'forward'.")
    return norm


def from_end(name, x, axes):
    """Axes counted from the end, so that a batch axis in front moves none of them."""
    n = x.ndim
    for axis in axes:
        check_axis(name, axis, x.shape)
    return tuple([axis if axis < 0 else axis - n for axis in axes])


def need_length(name, n):
    """ShapeError unless `n` is a positive integer."""
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ShapeError(f"{name}: n={n} must be a whole number from 1.")


def resized(xp, name, x, n, axis):
    """`x` cut, or padded with zeros at the end, to length `n` along a negative axis."""
    need_length(name, n)
    have = x.shape[axis]
    if n < have:
        rest = (slice(None),) * (-axis - 1)
        return xp.getitem(x, index=(Ellipsis, slice(n), *rest))
    if n == have:
        return x
    width = [(0, 0)] * x.ndim
    width[axis] = (0, n - have)
    return xp.pad(x, tuple(width))


def lengths_and_axes(name, x, s, axes):
    """The pairs (length, negative axis) of a transform along several axes."""
    if s is not None:
        s = tuple(s) if isinstance(s, (tuple, list)) else (s,)
    if axes is None:
        count = x.ndim if s is None else len(s)
        axes = tuple(range(-count, 0))
    axes = from_end(name, x, axes if isinstance(axes, (tuple, list)) else (axes,))
    s = (None,) * len(axes) if s is None else s
    if len(s) != len(axes):
        raise ShapeError(f"{name}: s={s} and axes={axes} must be of the same length.")
    return [(x.shape[a] if n in (None, -1) else n, a) for n, a in zip(s, axes, strict=True)]


def along_axes(xp, name, x, pairs, **params):
    """`fft_c2c` along the axis of each pair, at its length."""
    axes = [a for _, a in pairs]
    if len(axes) > 1 and len(set(axes)) < len(axes):  # an axis named twice is transformed twice
        for pair in reversed(pairs):
            x = along_axes(xp, name, x, [pair], **params)
        return x
    for n, axis in pairs:
        x = resized(xp, name, x, n, axis)
    return xp.fft_c2c(x, axes=tuple(axes), **params)


def wide(name, kinds, x):
    """`x` with integers as float64 and 16-bit floats as float32, as SciPy computes them.

    DTypeError unless its dtype is of one of the kinds.
    """
    half = x.dtype.itemsize == 2 and is_inexact(x.dtype)
    if x.dtype.kind not in kinds and not half:
        raise DTypeError(
            f"{name}: {x.dtype} is not transformed. Take gg.real(x), or astype(x, 'float64')."
        )
    if half:
        return x.astype(np.float32)
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


def _fft_c2c_vjp(xp, g, x_dtype, axes, norm, inverse):
    y = xp.fft_c2c(g, axes=axes, norm=ADJOINT_NORM[norm], inverse=not inverse)
    return y if x_dtype.kind == "c" else xp.real(y)


def _fft_c2c_reference(x, axes, norm="backward", inverse=False):
    for axis in axes:
        n = x.shape[axis]
        turns = np.outer(np.arange(n), np.arange(n)) / n
        matrix = np.exp((2j if inverse else -2j) * np.pi * turns)
        scaled = {"backward": inverse, "forward": not inverse, "ortho": 0.5}[norm]
        x = np.moveaxis(np.tensordot(matrix / n**scaled, x, (1, axis)), 0, axis)
    return x.astype(np.complex128)


@op(
    vjp=[_fft_c2c_vjp],
    linear=True,
    kinds="fci",
    native_half="wide",
    batch="axis",
    ref=_fft_c2c_reference,
    samples=shaped(
        ([(5,)], {"axes": (-1,)}),
        ([(2, 4)], {"axes": (0, 1), "inverse": True}),
        ([(2, 3)], {"axes": (-2,), "norm": "ortho"}),
        ([(0, 3)], {"axes": (1,)}),
        ([(2, 1, 3)], {"axes": (-1, 0), "norm": "forward"}),
        ([()], {"axes": ()}),
    ),
    errors=[
        ([np.ones(3)], {"axes": (1,)}, AxisError, "fft_c2c: axis 1"),
        ([np.ones(3)], {"axes": (0,), "norm": "x"}, ArgumentError, "fft_c2c: no norm"),
        ([np.ones(0)], {"axes": (0,)}, ShapeError, "fft_c2c: .*n=0"),
    ],
)
def fft_c2c(xp, x, /, *, axes, norm="backward", inverse=False):
    """Fourier transform along axes, each at its own length; `fft` and its variants call it.

    Args:
        axes: tuple of ints, none twice.
        norm: which direction is divided by the number of points: ``"backward"`` the inverse,
            ``"forward"`` the other, ``"ortho"`` both by its square root.
        inverse: whether to compute the inverse transform.

    Returns:
        Complex Tensor of the shape of `x`.
    """
    norm, axes = checked_norm("fft_c2c", norm), from_end("fft_c2c", x, axes)
    x = wide("fft_c2c", "biufc", x)
    for axis in axes:
        need_length("fft_c2c", x.shape[axis])
    if not axes or not x.size:  # cuFFT cannot plan an empty transform
        return x.astype(np.result_type(x.dtype, np.complex64))
    name = "ifft" if inverse else "fft"
    if len(axes) == 1:
        out = computed(xp, name, x, axis=axes[0], norm=norm)
    else:
        out = computed(xp, f"{name}n", x, axes=axes, norm=norm)
    if xp is NUMPY and x.dtype.kind != "c":
        out += 0  # SciPy gives real points the imaginary part -0, and so the angle -pi
    return out
