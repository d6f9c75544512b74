"""Filters by a Python function of windows: it is called with Tensors if something follows them.

Values that no tape, trace or vmap follows go to SciPy's own function. On a GPU, `function` gets
Tensors there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy.ndimage import common
from gpugrad.scipy.ndimage.common import as_scipy

_ANY = common.INTEGERS + "fdFD"
_by_scipy = as_scipy(direct=_ANY)


def _windows(x: Tensor, sizes: Any, origins: Any, axes: Any, mode: str, cval: Any) -> Tensor:
    """The windows around each element: their axes follow those of `x`."""
    pairs = [(0, 0)] * x.ndim
    for axis, size, origin in zip(axes, sizes, origins, strict=True):
        pairs[axis] = common.around(size, origin)
    whole = common.padded(x, pairs, mode, cval)
    return xp.sliding_window_view(whole, tuple(sizes), axis=tuple(axes))


@_by_scipy
def generic_filter(
    input, function, size, footprint, mode, cval, origin, extra_arguments, extra_keywords, axes, **_
):
    """A filter whose values `function` computes of each window, a vector.

    It is called once for each element, so it takes long; `vectorized_filter` calls it once.

    >>> print(gg.scipy.ndimage.generic_filter([1.0, 2.0, 6.0], np.sum, size=3))
    [ 4.  9. 14.]
    """
    axes = common.check_axes(axes, input.ndim)
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        footprint = np.ones(common.sequence(size, len(axes)), dtype=bool)
    footprint = np.asarray(footprint, dtype=bool)
    if footprint.ndim != len(axes):
        raise RuntimeError(f"footprint.ndim ({footprint.ndim}) must match len(axes) ({len(axes)})")
    origins, mode = common.sequence(origin, len(axes)), common.check_mode(mode)
    views = _windows(common.floating(input), footprint.shape, origins, axes, mode, cval)
    chosen = (slice(None), np.flatnonzero(footprint))
    rows = xp.getitem(xp.reshape(views, (input.size, footprint.size)), index=chosen)
    more = extra_keywords or {}
    values = [function(rows[i], *extra_arguments, **more) for i in range(input.size)]
    return xp.reshape(xp.stack(values, axis=0), input.shape) if values else input


@_by_scipy
def vectorized_filter(input, function, size, footprint, mode, cval, origin, axes, **_):
    """A filter whose values ``function(windows, axis=...)`` computes of all windows together.

    >>> print(gg.scipy.ndimage.vectorized_filter([1.0, 2.0, 6.0], np.max, size=3))
    [2. 6. 6.]
    """
    if (size is None) == (footprint is None):
        raise ValueError("Either `size` or `footprint` must be provided.")
    axes = common.check_axes(axes, input.ndim)
    mask = None if footprint is None else np.asarray(footprint, dtype=bool)
    sizes = common.sequence(size, len(axes)) if mask is None else list(mask.shape)
    if len(sizes) != len(axes):
        raise ValueError("`axes` must be compatible with the dimensionality of the window.")
    origins = common.sequence(0 if origin is None else origin, len(axes))
    if mode == "valid":
        if any(origins):
            raise ValueError("`mode='valid'` is incompatible with use of `origin`.")
        views = xp.sliding_window_view(input, tuple(sizes), axis=tuple(axes))
    else:
        views = _windows(input, sizes, origins, axes, mode, 0.0 if cval is None else cval)
    if mask is None:
        return function(views, axis=tuple(range(-len(axes), 0)))
    flat = xp.reshape(views, (*input.shape, mask.size))
    return function(xp.getitem(flat, index=(Ellipsis, np.flatnonzero(mask))), axis=-1)
