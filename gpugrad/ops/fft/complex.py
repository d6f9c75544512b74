"""Discrete Fourier transforms of complex arrays, and what goes with all transforms.

`fft_c2c` is the one primitive here: a symmetric matrix, whose adjoint is the transform in the
other direction with the other scale. The named transforms crop or pad to the length asked for,
count their axes from the end and call it, so every order of derivative is again transforms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.registry.record import op

# ---- arguments ---------------------------------------------------------------------------

ADJOINT_NORM = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The scale of the transform in the other direction that is the adjoint."""


def checked_norm(name, norm):
    """`norm` by its full name."""
    norm = "backward" if norm is None else norm
    if norm not in ADJOINT_NORM:
        raise ArgumentError(f"{name}: no norm {norm!r}; 'backward', 'ortho' or 'forward'.")
    return norm


def from_end(name, x, axes):
    """Axes counted from the end, so that a batch axis in front moves none of them."""
    n = x.ndim
    for axis in axes:
        if not -n <= axis < n:
            raise AxisError(f"{name}: axis {axis} is out of bounds for the shape {x.shape}.")
    return tuple([axis if axis < 0 else axis - n for axis in axes])


def need_length(name, n):
    """ShapeError for a transform of no points."""
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ShapeError(f"{name}: n={n} points: a whole number from 1 is needed.")


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
    """`fft_c2c` along each axis, the last first, at the length of its pair."""
    axes = [a for _, a in pairs]
    if len(axes) > 1 and len(set(axes)) < len(axes):  # named twice: transformed twice
        for pair in reversed(pairs):
            x = along_axes(xp, name, x, [pair], **params)
        return x
    for n, axis in pairs:
        x = resized(xp, name, x, n, axis)
    return xp.fft_c2c(x, axes=tuple(axes), **params)


def shifted(axes):
    """Axes of one example as axes of the batch, whose axis comes in front."""
    return tuple(a if a < 0 else a + 1 for a in axes)


def wide(name, kinds, x):
    """DTypeError unless `x` is of those kinds; integers become float64."""
    if x.dtype.kind not in kinds:
        raise DTypeError(
            f"{name}: {x.dtype} is not transformed. Take gg.real(x), or astype(x, 'float64')."
        )
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


# ---- the primitive -----------------------------------------------------------------------


def _fft_c2c_vjp(xp, g, x_dtype, axes, norm, inverse):
    y = xp.fft_c2c(g, axes=axes, norm=ADJOINT_NORM[norm], inverse=not inverse)
    return y if x_dtype.kind == "c" else xp.real(y)


def _fft_c2c_batch(xp, batched, x, *, axes, norm, inverse):
    return xp.fft_c2c(x, axes=shifted(axes), norm=norm, inverse=inverse)


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
    batch=_fft_c2c_batch,
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
    """Fourier transform along axes, each at its own length: what `fft` and its kin call.

    Args:
        x: array of any shape; real or complex.
        axes: tuple of ints, none twice.
        norm: which direction is divided by the number of points: ``"backward"`` the inverse,
            ``"forward"`` the other, ``"ortho"`` each by its square root.
        inverse: the direction.

    Returns:
        Complex Tensor of the shape of `x`.

    >>> print(gg.fft_c2c([1.0, 2.0], axes=(0,)))
    [ 3.+0.j -1.+0.j]
    """
    norm, axes = checked_norm("fft_c2c", norm), from_end("fft_c2c", x, axes)
    x = wide("fft_c2c", "biufc", x)
    for axis in axes:
        need_length("fft_c2c", x.shape[axis])
    if not axes or not x.size:  # cuFFT has no plan of nothing
        return x.astype(np.result_type(x.dtype, np.complex64))
    library = xp.lib.fft
    if len(axes) == 1:
        return (library.ifft if inverse else library.fft)(x, axis=axes[0], norm=norm)
    return (library.ifftn if inverse else library.fftn)(x, axes=axes, norm=norm)


# ---- the named transforms ----------------------------------------------------------------

ALONG_ONE = shaped(
    [(5,)],
    ([(2, 3)], {"n": 5, "axis": 0}),
    ([(2, 4)], {"n": 3, "norm": "ortho"}),
    ([(2, 3)], {"axis": -2, "norm": "forward"}),
    [(0, 3)],
    [(1,)],
)
ALONG_SEVERAL = shaped(
    [(2, 3)],
    ([(2, 3)], {"s": (4, 2)}),
    ([(2, 3)], {"axes": (0,), "norm": "ortho"}),
    ([(2, 1, 3)], {"s": (3, 2), "axes": (-1, 0), "norm": "forward"}),
    ([(0, 2, 2)], {"axes": (1,)}),
)
ALONG_TWO = shaped(
    [(2, 3)],
    ([(2, 3)], {"s": (3, 2), "norm": "ortho"}),
    ([(2, 1, 3)], {"axes": (0, 2), "norm": "forward"}),
)
ONE_ERRORS: list[Any] = [
    ([np.ones(3)], {"n": -1}, ShapeError, "n=-1 points"),
    ([np.ones(3)], {"axis": 1}, AxisError, "axis 1"),
    ([np.ones(3)], {"n": 0}, ShapeError, "n=0"),
    ([np.ones(3)], {"norm": "x"}, ArgumentError, "no norm 'x'"),
]
SEVERAL_ERRORS: list[Any] = [
    ([np.ones((3, 3))], {"axes": (0, 2)}, AxisError, "axis 2"),
    ([np.ones((3, 3))], {"s": (2,), "axes": (0, 1)}, ShapeError, "same length"),
    ([np.ones((3, 3))], {"s": (2, 0), "axes": (0, 1)}, ShapeError, "n=0"),
    ([np.ones((3, 3))], {"norm": "x"}, ArgumentError, "no norm 'x'"),
]


def _one(xp, name, x, n, axis, norm, inverse):
    axes, norm = from_end(name, x, (axis,)), checked_norm(name, norm)
    x = resized(xp, name, x, x.shape[axes[0]] if n is None else n, axes[0])
    return xp.fft_c2c(x, axes=axes, norm=norm, inverse=inverse)


def _several(xp, name, x, s, axes, norm, inverse):
    pairs, norm = lengths_and_axes(name, x, s, axes), checked_norm(name, norm)
    return along_axes(xp, name, x, pairs, norm=norm, inverse=inverse)


@op(kinds="fc", samples=ALONG_ONE, ref="numpy.fft.fft", errors=ONE_ERRORS)
def fft(xp, x, /, n=None, axis=-1, norm="backward"):
    """Discrete Fourier transform along an axis: sum over j of x_j exp(-2 pi i j k / n).

    Args:
        x: array of at least one axis; real or complex.
        n: number of points: `x` is cut, or padded with zeros at the end; its length if None.
        norm: ``"backward"`` (no scale here), ``"ortho"`` (divided by sqrt(n)) or
            ``"forward"`` (divided by n).

    Returns:
        Complex Tensor, of the precision of `x`, with `n` points along the axis.

    >>> print(gg.fft.fft([1.0, 2.0, 3.0, 4.0]))
    [10.+0.j -2.+2.j -2.+0.j -2.-2.j]
    """
    return _one(xp, "fft", x, n, axis, norm, False)


@op(kinds="fc", samples=ALONG_ONE, ref="numpy.fft.ifft", errors=ONE_ERRORS)
def ifft(xp, x, /, n=None, axis=-1, norm="backward"):
    """Inverse discrete Fourier transform along an axis.

    Args:
        x: array of at least one axis; real or complex.
        n: number of points: `x` is cut, or padded with zeros at the end; its length if None.
        norm: ``"backward"`` (divided by n), ``"ortho"`` (by sqrt(n)) or ``"forward"``.

    Returns:
        Complex Tensor, of the precision of `x`, with `n` points along the axis.

    >>> print(gg.fft.ifft([3.0, -1.0]))
    [1.+0.j 2.+0.j]
    """
    return _one(xp, "ifft", x, n, axis, norm, True)


def numpy_several(name):
    """NumPy wants the axes named where lengths are given."""

    def reference(x, s=None, axes=None, norm="backward"):
        if s is not None and axes is None:
            axes = tuple(range(-len(s), 0))
        return getattr(np.fft, name)(x, s=s, axes=axes, norm=norm)

    return reference


@op(kinds="fc", samples=ALONG_SEVERAL, ref=numpy_several("fftn"), errors=SEVERAL_ERRORS)
def fftn(xp, x, /, s=None, axes=None, norm="backward"):
    """Discrete Fourier transform along several axes.

    Args:
        x: array, real or complex.
        s: number of points along each of the axes (-1: as many as there are); `x` is cut, or
            padded with zeros at the end.
        axes: tuple of ints; the last len(s) axes if None, or all without `s`.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as for `fft`.

    Returns:
        Complex Tensor, of the precision of `x`.

    >>> print(gg.fft.fftn([[1.0, 2.0], [3.0, 4.0]]))
    [[10.+0.j -2.+0.j]
     [-4.+0.j  0.+0.j]]
    """
    return _several(xp, "fftn", x, s, axes, norm, False)


@op(kinds="fc", samples=ALONG_SEVERAL, ref=numpy_several("ifftn"), errors=SEVERAL_ERRORS)
def ifftn(xp, x, /, s=None, axes=None, norm="backward"):
    """Inverse discrete Fourier transform along several axes.

    Args:
        x: array, real or complex.
        s: number of points along each of the axes (-1: as many as there are); `x` is cut, or
            padded with zeros at the end.
        axes: tuple of ints; the last len(s) axes if None, or all without `s`.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as for `ifft`.

    Returns:
        Complex Tensor, of the precision of `x`.

    >>> print(gg.fft.ifftn([[10.0, -2.0], [-4.0, 0.0]]))
    [[1.+0.j 2.+0.j]
     [3.+0.j 4.+0.j]]
    """
    return _several(xp, "ifftn", x, s, axes, norm, True)


@op(kinds="fc", samples=ALONG_TWO, ref="numpy.fft.fft2", errors=SEVERAL_ERRORS)
def fft2(xp, x, /, s=None, axes=(-2, -1), norm="backward"):
    """Discrete Fourier transform along two axes: `fftn` of the last two.

    Args:
        x: array of at least two axes; real or complex.
        s: number of points along each of the two; their lengths if None.
        axes: pair of ints.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as for `fft`.

    Returns:
        Complex Tensor, of the precision of `x`.

    >>> print(gg.fft.fft2([[1.0, 2.0], [3.0, 4.0]]))
    [[10.+0.j -2.+0.j]
     [-4.+0.j  0.+0.j]]
    """
    return _several(xp, "fft2", x, s, axes, norm, False)


@op(kinds="fc", samples=ALONG_TWO, ref="numpy.fft.ifft2", errors=SEVERAL_ERRORS)
def ifft2(xp, x, /, s=None, axes=(-2, -1), norm="backward"):
    """Inverse discrete Fourier transform along two axes: `ifftn` of the last two.

    Args:
        x: array of at least two axes; real or complex.
        s: number of points along each of the two; their lengths if None.
        axes: pair of ints.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as for `ifft`.

    Returns:
        Complex Tensor, of the precision of `x`.

    >>> print(gg.fft.ifft2([[10.0, -2.0], [-4.0, 0.0]]))
    [[1.+0.j 2.+0.j]
     [3.+0.j 4.+0.j]]
    """
    return _several(xp, "ifft2", x, s, axes, norm, True)
