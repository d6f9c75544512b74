"""The largest elements of windows.

The maximum is taken along one axis after the other, by slices: k + k passes for windows of
k * k. Its gradient goes to the first of equal elements, as in torch, TensorFlow and JAX. The
backward pass finds that place, so that inference does not pay for it.
"""

import functools
import math

import numpy as np

from gpugrad.core.samples import uniform
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.kernels.by_hand import windows as kernels
from gpugrad.ops.arrays.windows import ints, pad_last, reach, remembered, strided
from gpugrad.ops.nn.spatial import spatial
from gpugrad.registry.record import op


def pool_geometry(name, n, x, kernel_size, stride, padding, dilation, ceil_mode):
    """Size, step and dilation of the windows on the last `n` axes, and the padding they need."""
    return _geometry(name, tuple(x.shape), n, kernel_size, stride, padding, dilation, ceil_mode)


@remembered
def _geometry(name, shape, n, kernel_size, stride, padding, dilation, ceil_mode):
    if len(shape) not in (n + 1, n + 2):
        raise ShapeError(
            f"{name}: x must have the axes (N, C, *spatial) or (C, *spatial), with {n} spatial "
            f"axes; its shape is {shape}."
        )
    size = ints(name, "kernel_size", kernel_size, n, 1)
    step = size if stride is None else ints(name, "stride", stride, n, 1)
    padding = ints(name, "padding", padding, n, 0)
    dilation = ints(name, "dilation", dilation, n, 1)
    pairs = []
    for length, k, s, p, d in zip(shape[-n:], size, step, padding, dilation, strict=True):
        span = reach(k, d)
        if 2 * p > span:
            raise ArgumentError(
                f"{name}: padding={p} is more than half of a window, which reaches over {span}: "
                "a window could lie in it entirely."
            )
        spare = length + 2 * p - span
        places = (-(-spare // s) if ceil_mode else spare // s) + 1
        if (places - 1) * s >= length + p:  # it would begin in the padding at the end
            places -= 1
        if places < 1:
            raise ShapeError(
                f"{name}: windows that reach over {span} do not fit in x {shape}, where an axis "
                f"has {length + 2 * p} elements with its padding."
            )
        pairs.append((p, max((places - 1) * s + span - length - p, 0)))
    return size, step, dilation, tuple(pairs)


def _windows(x_shape, size, step, dilation, padding):
    """How many windows there are along each axis."""
    lengths = x_shape[len(x_shape) - len(size) :]
    return tuple(
        (length + a + b - reach(k, d)) // s + 1
        for length, k, s, d, (a, b) in zip(lengths, size, step, dilation, padding, strict=True)
    )


def _window_max_vjp(xp, g, out, x, size, step, dilation, padding):
    windows = {"size": size, "step": step, "dilation": dilation, "padding": padding}
    where = xp.window_argmax(x, out, **windows)
    return xp.window_scatter(g, where, lengths=x.shape[x.ndim - len(size) :], **windows)


def _pool_samples(n_arrays):
    """Values that are all different, so that no finite difference makes a tie."""

    def sampler(rng):
        in_padding = [((2, 1), (2,), (1,), (2,), ((1, 1),))]  # its only maximum is -inf
        for shape, *windows in (
            *in_padding[: n_arrays - 1],
            ((5,), (2,), (2,), (1,), ((1, 0),)),
            ((2, 4, 3), (2, 2), (1, 1), (1, 2), ((0, 0), (1, 1))),
            ((1, 2, 3, 2), (2, 2, 1), (1, 3, 1), (1, 1, 1), ((0, 0), (0, 0), (0, 0))),
            ((0, 3), (3,), (1,), (1,), ((0, 0),)),
        ):
            x = rng.permutation(math.prod(shape)).reshape(shape) / 4 - 1
            arrays = [x] if n_arrays == 1 else [x, _window_max_ref(x, *windows)]
            yield arrays, dict(zip(("size", "step", "dilation", "padding"), windows, strict=True))

    return sampler


def _each_window(x, size, step, dilation, padding):
    """Pairs of a window's place and its elements, -inf outside of `x`."""
    n, x = len(size), np.asarray(x, float)
    x = np.pad(x, [(0, 0)] * (x.ndim - n) + list(padding), constant_values=-np.inf)
    for at in np.ndindex(*_windows(x.shape, size, step, dilation, ((0, 0),) * n)):
        cut = [strided(p * s, k, d) for p, s, k, d in zip(at, step, size, dilation, strict=True)]
        yield at, x[..., *cut]


def _window_max_ref(x, size, step, dilation, padding):
    n = len(size)
    out = np.empty((*x.shape[:-n], *_windows(x.shape, size, step, dilation, padding)), x.dtype)
    for at, window in _each_window(x, size, step, dilation, padding):
        out[..., *at] = window.max(axis=tuple(range(-n, 0)))
    return out


_UNIT = {"size": (1,), "step": (1,), "dilation": (1,), "padding": ((0, 0),)}


def _check_windows(name, x, size, step, dilation, padding):
    places = _windows(x.shape, size, step, dilation, padding) if len(size) <= x.ndim else (0,)
    if min((*places, *size)) < 1:
        raise ShapeError(f"{name}: windows of {size} do not fit in x {x.shape}.")
    return places


@op(
    vjp=[_window_max_vjp],
    samples=_pool_samples(1),
    ref=_window_max_ref,
    errors=[([np.ones(2)], {**_UNIT, "size": (3,)}, ShapeError, r"\(2,\)")],
    batch="stack",
    kinds="fi",
    cuda=kernels.window_max,
)
def window_max(xp, x, /, *, size, step, dilation, padding):
    """The largest element of each window, NaN where there is a NaN; `max_pool2d` calls it.

    Args:
        x: array with at least as many axes as windows.
        size: tuple of ints: length of a window along each of the last axes.
        step: tuple of ints, from one window to the next.
        dilation: tuple of ints, from one element of a window to the next.
        padding: pairs (before, after): elements added around `x` that are less than all others.

    Returns:
        Tensor with the windows' places along the last axes.
    """
    places = _check_windows("window_max", x, size, step, dilation, padding)
    least = -math.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    out = pad_last(xp, x, padding, least)
    lead = (slice(None),) * (x.ndim - len(size))
    for k, s, d, m in zip(size, step, dilation, places, strict=True):
        parts = [out[(*lead, strided(t * d, m, s))] for t in range(k)]
        lead = (*lead, slice(None))
        out = parts[0].copy() if k == 1 else xp.lib.maximum(*parts[:2])
        for part in parts[2:]:
            xp.lib.maximum(out, part, out=out)
    return out


def _window_argmax_ref(x, out, size, step, dilation, padding):
    n = len(size)
    flat = np.arange(math.prod(x.shape[-n:])).reshape(x.shape[-n:])
    flat = np.pad(flat, padding, constant_values=-1)
    where = np.empty(out.shape, np.int64)
    windows = _each_window(x, size, step, dilation, padding)
    numbers = _each_window(flat, size, step, dilation, ((0, 0),) * n)
    for (at, window), (_, places) in zip(windows, numbers, strict=True):
        lead = window.shape[: window.ndim - n]
        index = places.ravel()[window.reshape(*lead, places.size).argmax(-1)]
        where[..., *at] = np.where((places < 0).all(), -1, index)
    return where


@op(
    differentiable=False,
    samples=_pool_samples(2),
    ref=_window_argmax_ref,
    batch="axis",  # `out` is the maximum of `x`: each example needs both
    cuda=kernels.window_argmax,
    errors=[([np.ones(2), np.ones(3)], _UNIT, ShapeError, r"\(2,\).*\(3,\)")],
)
def window_argmax(xp, x, out, /, *, size, step, dilation, padding):
    """Where the first largest element of each window is; the gradient of `window_max` needs it.

    Returns:
        int64 Tensor of the shape of `out`: the place, counted through the last axes of `x` in
        row-major order; -1 for a window of padding only. Its gradient is None.
    """
    lib, n = xp.lib, len(size)
    places = _check_windows("window_argmax", x, size, step, dilation, padding)
    if out.shape != (*x.shape[: x.ndim - n], *places):
        raise ShapeError(
            f"window_argmax: x {x.shape} has maxima of shape {(*x.shape[: x.ndim - n], *places)}, "
            f"not {out.shape}."
        )
    top = lib.where(out == out, out, math.inf)  # a NaN is not below it, so the search stops there
    # How many elements come before the first that is not below the maximum: for each element of
    # a window one pass to compare, and two on bytes.
    before = lib.zeros(out.shape, dtype="uint8" if math.prod(size) < 256 else "int32")
    searching = lib.ones(out.shape, dtype=bool)
    cuts, shift, first, empty = _layout(
        x.shape[x.ndim - n :], places, size, step, dilation, tuple(map(tuple, padding))
    )
    for cut in cuts:
        if cut:
            at, of = cut
            searching[at] &= x[of] < top[at]
        before += searching
    where = lib.asarray(shift).take(before) + lib.asarray(first)
    return where if empty is None else lib.where(lib.asarray(empty), -1, where)


@functools.lru_cache(maxsize=64)
def _layout(lengths, places, size, step, dilation, padding):
    """Slices and offsets by which `window_argmax` walks the windows.

    For each element of a window: the windows in which it lies inside the array, and the slice of
    these elements. Then two terms whose sum is an element's place in the array: one by its number
    in the window, one by the window. Then which windows have no element, or None if all have some.
    """
    cuts, empty = [], np.ones(places, bool)
    for offset in np.ndindex(*size):
        axes = [
            _inside(o * d - a, length, s, m)
            for o, d, (a, _), length, s, m in zip(
                offset, dilation, padding, lengths, step, places, strict=True
            )
        ]
        here = all(at.stop > at.start for at, _ in axes)
        cuts.append([(Ellipsis, *s) for s in zip(*axes, strict=True)] if here else None)
        if here:
            empty[cuts[-1][0]] = False
    shift, first = np.zeros(1, np.int64), np.zeros((), np.int64)
    for k, s, d, (a, _), m, length in zip(
        size, step, dilation, padding, places, lengths, strict=True
    ):
        shift = (shift[:, None] * length + np.arange(k) * d).ravel()
        first = first[..., None] * length + np.arange(m) * s - a
    shift = np.append(shift, shift[-1])  # the last: `out` is above all elements
    return cuts, shift, first, empty if empty.any() else None


def _inside(start, length, step, places):
    """The windows whose element, at `start` in the first one, is in the array; its slice."""
    low = max(0, -(start // step))
    high = max(low, min(places, (length - 1 - start) // step + 1))
    return slice(low, high), slice(start + low * step, start + high * step, step)


def _window_scatter_ref(g, where, lengths, size, step, dilation, padding):
    n = len(size)
    lead = g.shape[: g.ndim - n]
    out = np.zeros((*lead, math.prod(lengths)), g.dtype)
    for at in np.ndindex(*lead):
        kept = where[at] >= 0
        np.add.at(out[at], where[at][kept], g[at][kept])
    return out.reshape(*lead, *lengths)


def _window_scatter_samples(rng):
    for (x, out), windows in _pool_samples(2)(rng):
        lengths = x.shape[x.ndim - len(windows["size"]) :]
        where = _window_argmax_ref(x, out, **windows)
        yield [uniform(rng, *out.shape), where], {"lengths": lengths, **windows}


@op(
    kinds="fc",
    samples=_window_scatter_samples,
    ref=_window_scatter_ref,
    cuda=kernels.window_scatter,
    opens=None,
    errors=[
        ([np.ones(2), np.zeros(3, int)], {"lengths": (4,), **_UNIT}, ShapeError, r"\(2,\).*\(3,\)")
    ],
)
def window_scatter(xp, g, where, /, *, lengths, size, step, dilation, padding):
    """Add each window's element at the place of its maximum: the gradient of `window_max`.

    Args:
        where: the result of `window_argmax`: integers of the same shape.
        lengths: tuple of ints: lengths of the last axes of the result.
    """
    if g.shape != where.shape:
        raise ShapeError(f"window_scatter: g {g.shape} and where {where.shape} differ in shape.")
    places = g.shape[g.ndim - len(size) :]
    if _layout(lengths, places, size, step, dilation, tuple(map(tuple, padding)))[-1] is not None:
        g, where = xp.where(where < 0, 0, g), xp.maximum(where, 0)
    lead = g.shape[: g.ndim - len(size)]
    flat = (*lead, math.prod(g.shape[g.ndim - len(size) :]))
    d = xp.scatter_along_axis(
        xp.reshape(g, flat), xp.reshape(where, flat), axis=-1, shape=(*lead, math.prod(lengths))
    )
    return xp.reshape(d, (*lead, *lengths))


def pool_ref(reduce, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """``reduce(elements, places)`` of one window after another, cut off at the edges."""
    step, span = kernel_size if stride is None else stride, (kernel_size - 1) * dilation + 1
    windows = []
    for length in x.shape[2:]:
        end, more = length + padding, step - 1 if ceil_mode else 0
        starts = [p for p in range(-padding, end, step) if p + span <= end + more and p < length]
        windows.append([range(p, min(p + span, end), dilation) for p in starts])
    out = np.empty((*x.shape[:2], *map(len, windows)), x.dtype)
    for at in np.ndindex(*out.shape[2:]):
        places = [w[k] for w, k in zip(windows, at, strict=True)]
        pairs = zip(places, x.shape[2:], strict=True)
        kept = np.ix_(*([i for i in p if 0 <= i < length] for p, length in pairs))
        out[..., *at] = reduce(x[:, :, *kept], math.prod(map(len, places)))
    return out


def _max_ref(*args, **windows):
    return pool_ref(lambda w, _: w.max(axis=tuple(range(2, w.ndim))), *args, **windows)


def different(*cases):
    """Samples of arrays whose elements are all different: (shape, keywords)."""

    def sampler(rng):
        for shape, keywords in cases:
            yield [rng.permutation(math.prod(shape)).reshape(shape) / 4 - 1], dict(keywords)

    return sampler


def wrong_pool(name, n):
    """Calls that must fail, for a pooling layer with `n` spatial axes."""
    x = np.ones((1, 1, *(3,) * n))
    return [
        ([x, 4], {}, ShapeError, rf"{name}: windows.*do not fit"),
        ([x[0, 0], 2], {}, ShapeError, rf"{name}: x must have the axes"),
        ([x, 0], {}, ArgumentError, "kernel_size=0"),
        ([x, 2, 0], {}, ArgumentError, "stride=0"),
    ]


def _max_pool(n, example, *cases, errors=()):
    name = f"max_pool{n}d"
    errors = [*wrong_pool(name, n), *errors]

    @spatial(n, example, native_half=True, ref=_max_ref, samples=different(*cases), errors=errors)
    def max_pool(xp, x, /, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        """Largest element of each window {where}; the gradient goes to the first of equal ones.

        Args:
            x: array of shape {shape}.
            kernel_size: {each}, lengths of a window.
            stride: {each}, from one window to the next; None for `kernel_size`.
            padding: {each}, places at each side that count as empty; at most half of a window.
            dilation: {each}, from one element of a window to the next.
            ceil_mode: whether windows may reach over the end, if they begin before it.

        Returns:
            Tensor of shape (N, C, *number of windows), or without N.
        """
        size, step, dilation, pairs = pool_geometry(
            name, n, x, kernel_size, stride, padding, dilation, ceil_mode
        )
        return xp.window_max(x, size=size, step=step, dilation=dilation, padding=pairs)

    return max_pool


max_pool1d = _max_pool(
    1,
    ("[[[1.0, 3.0, 2.0, 0.0]]], 2", "[[[3. 2.]]]"),
    ((1, 2, 5), {"kernel_size": 2}),
    ((1, 1, 6), {"kernel_size": 2, "stride": 3, "padding": 1, "dilation": 2, "ceil_mode": True}),
    ((1, 1, 2), {"kernel_size": 3, "dilation": 2, "stride": 4, "ceil_mode": True}),
    errors=[([np.ones((1, 1, 3)), 2], {"padding": 2}, ArgumentError, "more than half")],
)
max_pool2d = _max_pool(
    2,
    ("[[[1.0, 3.0], [2.0, 0.0]]], 2", "[[[3.]]]"),
    ((1, 2, 2, 4), {"kernel_size": 2}),
    ((1, 1, 4, 5), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
)
max_pool3d = _max_pool(
    3,
    ("[[[[1.0, 3.0], [2.0, 0.0]]]], (1, 2, 2)", "[[[[3.]]]]"),
    ((1, 1, 2, 3, 2), {"kernel_size": 2, "stride": 1}),
    ((1, 1, 3, 2, 2), {"kernel_size": 2, "padding": 1}),
)
