"""Filters by order: minimum, maximum, ranks, and the grey morphology that they make."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import GpugradWarning
from gpugrad.scipy.calling import plain_values
from gpugrad.scipy.ndimage import common
from gpugrad.scipy.ndimage.common import as_scipy, by_axis

_of_order = functools.partial(as_scipy, order=True)
_of_integers = functools.partial(_of_order, direct=common.INTEGERS)
_of_rank = functools.partial(_of_order, direct=common.INTEGERS + "fd")


def _along(least: bool, x: Tensor, size: int, axis: int, mode: Any, cval: Any, origin: int) -> Any:
    axis = common.check_axis(axis, x.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    of = np.ones(size, bool)
    return _of_windows(0 if least else size - 1, x, of, mode, cval, origin, (axis,))


def _padded(x: Tensor, pairs: Any, mode: Any, cval: Any) -> Tensor:
    """Padded; in float64 if the dtype does not hold the constant, as SciPy compares."""
    mode = common.check_mode(mode)
    if not x.size:
        return x
    if x.dtype.kind in "iu" and not isinstance(cval, Tensor):
        info = np.iinfo(x.dtype)
        holds = info.min <= cval <= info.max and cval == int(cval)
    else:
        holds = x.dtype.kind not in "biu"
    return common.padded(x if holds else xp.astype(x, common.DOUBLE), pairs, mode, cval)


@_of_order
def minimum_filter1d(input, size, axis, mode, cval, origin, **_):
    """The least element of each window along an axis. Equal elements share the gradient.

    >>> print(gg.scipy.ndimage.minimum_filter1d([2.0, 8.0, 0.0, 4.0], size=3))
    [2. 0. 0. 0.]
    """
    return _along(True, input, size, axis, mode, cval, origin)


@_of_order
def maximum_filter1d(input, size, axis, mode, cval, origin, **_):
    """The greatest element of each window along an axis. Equal elements share the gradient.

    >>> print(gg.scipy.ndimage.maximum_filter1d([2.0, 8.0, 0.0, 4.0], size=3))
    [8. 8. 8. 4.]
    """
    return _along(False, input, size, axis, mode, cval, origin)


def _footprint(size: Any, footprint: Any, structure: Any, n: int) -> Any:
    """A NumPy array of bools, True where an element of a window counts."""
    if size is not None and footprint is not None:
        warnings.warn("ignoring size because footprint is set", GpugradWarning, stacklevel=5)
    if footprint is not None:
        plain = footprint.numpy() if isinstance(footprint, Tensor) else footprint
        return np.asarray(plain, dtype=bool)
    if structure is not None:
        return np.ones(np.shape(structure), bool)
    if size is None:
        raise RuntimeError("no footprint or filter size provided")
    return np.ones([int(s) for s in common.sequence(size, n)], bool)


def _wide(x: Tensor, of: Any, mode: Any, cval: Any, origin: Any, axes: Any) -> tuple[Tensor, Any]:
    """`x` with the elements around it that windows meet, and the footprint with its axes."""
    if of.ndim != len(axes):
        raise RuntimeError(f"footprint.ndim ({of.ndim}) must match len(axes) ({len(axes)})")
    pairs = [(0, 0)] * x.ndim
    for axis, o, length in by_axis(x, axes, origin, of.shape):
        pairs[axis] = common.around(length, o)
    if not isinstance(mode, str) and isinstance(mode, Iterable):
        raise RuntimeError("A sequence of modes is not supported for non-separable footprints")
    order = np.argsort(axes)
    of = np.expand_dims(of.transpose(order), tuple(k for k in range(x.ndim) if k not in axes))
    return _padded(x, pairs, mode, cval), of


def _of_windows(
    rank: int, x: Tensor, of: Any, mode: Any, cval: Any, origin: Any, axes: Any
) -> Tensor:
    """The element at `rank` of each window."""
    wide, of = _wide(x, of, mode, cval, origin, axes)
    return xp.ranked_windows(wide, footprint=of, rank=rank) if x.size else x


def _extreme(
    least: bool,
    x: Tensor,
    size: Any,
    footprint: Any,
    structure: Any,
    dtype: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
) -> Tensor:
    """The minimum of windows minus the structure, or the maximum of windows plus it."""
    flat = _is_flat(structure)
    structure = None if structure is None else common.array(structure, x)
    axes = common.check_axes(axes, x.ndim)
    of = _footprint(size, footprint, structure, len(axes))
    if structure is None and not of.any():
        raise ValueError("All-zero footprint is not supported.")
    if structure is None and of.all():
        sizes = size if footprint is None else of.shape
        for axis, n, m, o in by_axis(x, axes, sizes, mode, origin):
            if n > 1:
                one = minimum_filter1d if least else maximum_filter1d
                x = one(x, int(n), axis, dtype, m, cval, o)
        return x
    if structure is not None and structure.ndim != len(axes):
        raise RuntimeError("structure array has incorrect shape")
    if structure is None:
        rank = 0 if least else int(of.sum()) - 1
        return _of_windows(rank, x, of, mode, cval, origin, axes)
    if x.dtype.kind in "biu":  # a sum may be beyond the dtype: SciPy has doubles until the end
        x = xp.astype(x, common.DOUBLE)
    if of.any() and isinstance(mode, str) and flat:
        x = _extreme(least, x, None, of, None, dtype, mode, cval, origin, axes)
        height = xp.getitem(structure, index=(0,) * structure.ndim)
        return x - height if least else x + height
    wide, whole = _wide(x, of, mode, cval, origin, axes)
    parts = []
    for place in np.argwhere(whole):
        index = tuple(slice(t, t + n) for t, n in zip(place.tolist(), x.shape, strict=True))
        part, height = xp.getitem(wide, index=index), structure[tuple(place[list(axes)].tolist())]
        parts.append(part - height if least else part + height)
    if x.size and parts:
        x = functools.reduce(xp.minimum if least else xp.maximum, parts)
    return x


def _is_flat(structure: Any) -> bool:
    """Whether all elements are one number, which nothing follows."""
    plain = None if structure is None else plain_values(structure)
    return plain is not None and np.size(plain[0]) > 0 and np.ptp(plain[0]) == 0


@_of_order
def minimum_filter(input, size, footprint, output, mode, cval, origin, axes):
    """The least element of each window. Equal elements share the gradient.

    >>> print(gg.scipy.ndimage.minimum_filter([2.0, 8.0, 0.0, 4.0], footprint=[1, 0, 1]))
    [2. 0. 4. 0.]
    """
    return _extreme(True, input, size, footprint, None, output, mode, cval, origin, axes)


@_of_order
def maximum_filter(input, size, footprint, output, mode, cval, origin, axes):
    """The greatest element of each window. Equal elements share the gradient.

    >>> print(gg.scipy.ndimage.maximum_filter([2.0, 8.0, 0.0, 4.0], footprint=[1, 0, 1]))
    [8. 2. 8. 4.]
    """
    return _extreme(False, input, size, footprint, None, output, mode, cval, origin, axes)


def _ranked(
    rank: Callable[[int], int],
    x: Tensor,
    size: Any,
    footprint: Any,
    dtype: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
) -> Tensor:
    """The element at `rank`, a function of the number of elements of a window."""
    axes = common.check_axes(axes, x.ndim)
    of = _footprint(size, footprint, None, len(axes))
    n = int(of.sum())
    at = rank(n) + (n if rank(n) < 0 else 0)
    if not 0 <= at < n:
        raise RuntimeError("rank not within filter footprint size")
    if at in (0, n - 1):
        return _extreme(not at, x, None, of, None, dtype, mode, cval, origin, axes)
    return _of_windows(at, x, of, mode, cval, origin, axes)


@_of_rank
def rank_filter(input, rank, size, footprint, output, mode, cval, origin, axes):
    """The element of each window at a place in ascending order; negative from the greatest.

    >>> print(gg.scipy.ndimage.rank_filter([2.0, 8.0, 0.0, 4.0], 1, size=3))
    [2. 2. 4. 4.]
    """
    rank = operator.index(rank)
    return _ranked(lambda n: rank, input, size, footprint, output, mode, cval, origin, axes)


@_of_rank
def median_filter(input, size, footprint, output, mode, cval, origin, axes):
    """The median of each window; of an even number, the upper of the two in the middle.

    >>> print(gg.scipy.ndimage.median_filter([2.0, 8.0, 0.0, 4.0], size=3))
    [2. 2. 4. 4.]
    """
    return _ranked(lambda n: n // 2, input, size, footprint, output, mode, cval, origin, axes)


@_of_rank
def percentile_filter(input, percentile, size, footprint, output, mode, cval, origin, axes):
    """The element of each window at a percentile, which has no gradient; negative from 100.

    >>> print(gg.scipy.ndimage.percentile_filter([2.0, 8.0, 0.0, 4.0], 50, size=3))
    [2. 2. 4. 4.]
    """
    share = float(percentile) + (100.0 if percentile < 0 else 0.0)
    if not 0 <= share <= 100:
        raise RuntimeError("invalid percentile")

    def rank(n: int) -> int:
        return n - 1 if share == 100 else int(float(n) * share / 100)

    return _ranked(rank, input, size, footprint, output, mode, cval, origin, axes)


def _refuse_nothing(size: Any, footprint: Any, structure: Any) -> None:
    if size is None and footprint is None and structure is None:
        raise ValueError("size, footprint, or structure must be specified")


@_of_integers
def grey_erosion(input, size, footprint, structure, output, mode, cval, origin, axes):
    """The minimum of each window minus `structure`; differentiable by both.

    >>> print(gg.scipy.ndimage.grey_erosion([2.0, 8.0, 0.0, 4.0], structure=[0.0, 1.0, 0.0]))
    [ 1.  0. -1.  0.]
    """
    _refuse_nothing(size, footprint, structure)
    return _extreme(True, input, size, footprint, structure, output, mode, cval, origin, axes)


@_of_integers
def grey_dilation(input, size, footprint, structure, output, mode, cval, origin, axes):
    """The maximum of each reflected window plus `structure`; differentiable by both.

    >>> print(gg.scipy.ndimage.grey_dilation([2.0, 8.0, 0.0, 4.0], structure=[0.0, 1.0, 0.0]))
    [8. 9. 8. 5.]
    """
    _refuse_nothing(size, footprint, structure)
    axes = common.check_axes(axes, input.ndim)
    if structure is not None and not _is_flat(structure):
        structure = common.array(structure, input)
        structure = xp.flip(structure, axis=tuple(range(structure.ndim)))
    of = _footprint(None if footprint is not None else size, footprint, structure, len(axes))
    origins = [
        -o - (n % 2 == 0)
        for o, n in zip(common.sequence(origin, len(axes)), of.shape, strict=False)
    ]
    footprint = None if footprint is None else np.flip(of)
    return _extreme(False, input, size, footprint, structure, output, mode, cval, origins, axes)


@_of_integers
def grey_opening(input, output, **window):
    """The dilation of the erosion: peaks narrower than the window go.

    >>> print(gg.scipy.ndimage.grey_opening([2.0, 8.0, 3.0, 4.0], size=2))
    [2. 3. 3. 3.]
    """
    return grey_dilation(grey_erosion(input, **window), output=output, **window)


@_of_integers
def grey_closing(input, output, **window):
    """The erosion of the dilation: valleys narrower than the window go.

    >>> print(gg.scipy.ndimage.grey_closing([2.0, 8.0, 3.0, 4.0], size=2))
    [8. 8. 4. 4.]
    """
    return grey_erosion(grey_dilation(input, **window), output=output, **window)


def _of_input(output: Any, x: Tensor, weights: Any) -> Any:
    """SciPy ignores a dtype as `output` here."""
    return x.dtype if common.is_dtype(output) else common.output_dtype(output, x)


@_of_order(dtype=_of_input)
def morphological_gradient(input, **window):
    """The dilation minus the erosion.

    >>> print(gg.scipy.ndimage.morphological_gradient([2.0, 8.0, 0.0, 4.0], size=3))
    [6. 8. 8. 4.]
    """
    return grey_dilation(input, **window) - grey_erosion(input, **window)


@_of_order(dtype=_of_input)
def morphological_laplace(input, **window):
    """The dilation plus the erosion minus twice the input.

    >>> print(gg.scipy.ndimage.morphological_laplace([2.0, 8.0, 0.0, 4.0], size=3))
    [ 6. -8.  8. -4.]
    """
    return grey_dilation(input, **window) + grey_erosion(input, **window) - 2 * input


def _minus(a: Tensor, b: Tensor) -> Tensor:
    return xp.logical_xor(a, b) if a.dtype.kind == b.dtype.kind == "b" else a - b


@_of_integers
def white_tophat(input, **window):
    """The input minus its opening: the peaks narrower than the window.

    >>> print(gg.scipy.ndimage.white_tophat([2.0, 8.0, 3.0, 4.0], size=2))
    [0. 5. 0. 1.]
    """
    return _minus(input, grey_opening(input, **window))


@_of_integers
def black_tophat(input, **window):
    """The closing minus the input: the valleys narrower than the window.

    >>> print(gg.scipy.ndimage.black_tophat([2.0, 8.0, 3.0, 4.0], size=2))
    [6. 0. 1. 0.]
    """
    return _minus(grey_closing(input, **window), input)
