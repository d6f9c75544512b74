"""Elements of windows by their order: minima, maxima, medians, for `gpugrad.scipy.ndimage`."""

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.kernels.cpu.large import kernels
from gpugrad.registry.record import op


def running(xp, combine, x, axis, size):
    """`combine` of each window along an axis, in log2(size) steps of windows twice as long."""

    def part(y, start, length):
        return xp.getitem(y, index=(*(slice(None),) * axis, slice(start, start + length)))

    total, have, power, n = x, 0, 1, x.shape[axis]
    while True:
        if size & power:  # a window of `have` elements, then one of `power`
            m = n - have - power + 1
            total = combine(part(total, 0, m), part(x, have, m)) if have else x
            have += power
        if have == size:
            return total
        m = x.shape[axis] - power
        x, power = combine(part(x, 0, m), part(x, power, m)), 2 * power


def _places(shape, footprint):
    return tuple(n - k + 1 for n, k in zip(shape, footprint.shape, strict=True))


def _windows(places, footprint):
    """The part of an array that meets each True of the footprint."""
    for tap in np.argwhere(footprint).tolist():
        yield tuple(slice(t, t + n) for t, n in zip(tap, places, strict=True))


def _samples(rng):
    for shape, part, rank in (((6,), (3,), 1), ((4, 5), (2, 3), 5), ((4, 3), (1, 2), 0)):
        yield [uniform(rng, *shape)], {"footprint": np.ones(part, bool), "rank": rank}
    corners = np.array([[True, False, True], [False, True, False]])
    yield [uniform(rng, 3, 4)], {"footprint": corners, "rank": 1}


def _ref(x, footprint, rank):
    view = np.lib.stride_tricks.sliding_window_view(x, footprint.shape)
    return np.sort(view[..., footprint], axis=-1)[..., rank]


@op(
    vjp=[
        lambda xp, g, x, out, footprint: xp.tied_windows(
            g, x, out, footprint=footprint, adjoint=True
        )
    ],
    jvp=[lambda xp, t, x, out, footprint: xp.tied_windows(t, x, out, footprint=footprint)],
    kinds="fib",
    batch=lambda xp, batched, x, footprint, rank: xp.ranked_windows(
        x, footprint=footprint[None], rank=rank
    ),
    samples=_samples,
    ref=_ref,
    errors=[
        ([np.ones(2)], {"footprint": np.ones(3, bool), "rank": 0}, ShapeError, r"\(2,\).*\(3,\)"),
        ([np.ones(3)], {"footprint": np.ones(2, bool), "rank": 2}, ArgumentError, "rank=2"),
    ],
)
def ranked_windows(xp, x, /, *, footprint, rank):
    """The element at a place in ascending order, of each window of an array.

    Args:
        footprint: NumPy array of bools with as many axes as `x`, True where an element counts.
        rank: int: 0 for the smallest.

    Returns:
        Tensor with an element for each window. Equal elements of a window share the gradient.

    >>> print(gg.ranked_windows([2.0, 8.0, 0.0, 4.0], footprint=np.ones(3, bool), rank=1))
    [2. 4.]
    """
    if footprint.dtype.kind not in "biu":
        raise DTypeError(f"ranked_windows: the footprint must be bools, got {footprint.dtype}.")
    if x.ndim != footprint.ndim or any(
        n < k for n, k in zip(x.shape, footprint.shape, strict=True)
    ):
        raise ShapeError(f"ranked_windows: {x.shape} for a footprint of {footprint.shape}.")
    count = int(footprint.sum())
    if not 0 <= rank < count:
        raise ArgumentError(f"ranked_windows: rank={rank} must be below the {count} elements.")
    places, lib = _places(x.shape, footprint), xp.lib
    long = [axis for axis, n in enumerate(footprint.shape) if n > 1]
    if rank in (0, count - 1):
        combine = xp.maximum if rank else xp.minimum
        if len(long) < 2 and footprint.all():
            return running(xp, combine, x, long[0], count) if long else lib.array(x)
        total = None
        for window in _windows(places, footprint):
            total = x[window] if total is None else combine(total, x[window])
        return lib.array(total)
    if xp is NUMPY:
        out = xp.scipy("ndimage").rank_filter(x, rank, footprint=footprint, mode="nearest")
        middle = zip(footprint.shape, places, strict=True)
        return np.ascontiguousarray(out[tuple(slice(k // 2, k // 2 + n) for k, n in middle)])
    parts = lib.stack([x[window] for window in _windows(places, footprint)], axis=-1)
    return lib.sort(parts, axis=-1)[..., rank]


def _tied_samples(rng):
    for (x,), how in _samples(rng):
        x = np.rint(2 * x).astype(int)  # with ties; integers have no derivative
        out = _ref(x, **how)
        yield [uniform(rng, *x.shape), x, out], {"footprint": how["footprint"]}
        yield [uniform(rng, *out.shape), x, out], {"footprint": how["footprint"], "adjoint": True}


def _tied_ref(y, x, out, footprint, adjoint=False):
    total, places = np.zeros(x.shape if adjoint else out.shape), np.ndindex(*out.shape)
    for place in places:
        window = tuple(slice(i, i + k) for i, k in zip(place, footprint.shape, strict=True))
        hits = footprint * (x[window] == out[place]) / 1.0
        hits /= hits.sum()
        if adjoint:
            total[window] += hits * y[place]
        else:
            total[place] = (hits * y[window]).sum()
    return total.astype(y.dtype)


def _tied_batch(xp, batched, y, x, value, footprint, adjoint):
    n = next(a.shape[0] for a, one in zip((y, x, value), batched, strict=True) if one)
    arrays = [
        a if one else xp.broadcast_to(a, (n, *a.shape))
        for a, one in zip((y, x, value), batched, strict=True)
    ]
    return xp.tied_windows(*arrays, footprint=footprint[None], adjoint=adjoint)


def _tied_kernel(xp, y, x, value, /, *, footprint, adjoint=False):
    if _places(x.shape, footprint) != value.shape:
        return NotImplemented
    return kernels("windows").tied_windows(y, x, value, footprint, adjoint)


_BLOCK = 2**15
"""Elements of a part of the result whose temporary arrays fit into the cache."""


@op(
    vjp=[
        lambda xp, g, x, value, footprint, adjoint: xp.tied_windows(
            g, x, value, footprint=footprint, adjoint=not adjoint
        ),
        None,
        None,
    ],
    kinds="f",
    cpu=_tied_kernel,
    batch=_tied_batch,
    samples=_tied_samples,
    ref=_tied_ref,
    errors=[
        (
            [np.ones(3), np.ones(3), np.ones(3)],
            {"footprint": np.ones(2, bool)},
            ShapeError,
            r"tied_windows: \(3,\)",
        )
    ],
)
def tied_windows(xp, y, x, value, /, *, footprint, adjoint=False):
    """Means of `y` over those elements of each window of `x` that equal a value.

    It is the derivative of `ranked_windows`.

    Args:
        y: array of the shape of `x`; of the shape of `value` for the adjoint.
        x: array of windows; without a derivative.
        value: array with an element for each window; without a derivative.
        footprint: NumPy array of bools with as many axes as `x`, True where an element counts.
        adjoint: whether to share out `y` to those elements instead.

    Returns:
        Tensor of the shape of `value`; of the shape of `x` for the adjoint.

    >>> x, least = np.array([2.0, 8.0, 2.0]), np.array([2.0])
    >>> print(gg.tied_windows([8.0], x, least, footprint=np.ones(3, bool), adjoint=True))
    [4. 0. 4.]
    """
    lib = xp.lib
    wanted = (value if adjoint else x).shape
    if _places(x.shape, footprint) != value.shape or y.shape != wanted:
        raise ShapeError(
            f"tied_windows: {value.shape} and {y.shape} do not fit {x.shape} and windows of "
            f"{footprint.shape}."
        )
    total = lib.zeros((x if adjoint else value).shape, dtype=y.dtype)
    rows = value.shape[0] if value.size else 0
    step = max(1, _BLOCK * rows // max(1, value.size))
    for start in range(0, rows, step):
        at = slice(start, start + step)
        there = value[at]
        reach = slice(start, start + there.shape[0] + footprint.shape[0] - 1)
        near, windows = x[reach], list(_windows(there.shape, footprint))
        hits = [near[window] == there for window in windows]
        count = lib.maximum(sum(hits[1:], hits[0].astype(y.dtype)), 1)
        if adjoint:
            share, wide = y[at] / count, total[reach]
            for window, hit in zip(windows, hits, strict=True):
                wide[window] += hit * share
        else:
            wide = y[reach]
            found = sum(hit * wide[window] for window, hit in zip(windows, hits, strict=True))
            total[at] = found / count
    return total
