"""Padding."""

import numpy as np

from gpugrad.core.arguments import check_numbers
from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.ops._axes import index_along
from gpugrad.registry.record import op


def _pairs(pad_width, ndim, name="pad_width"):
    """(before, after) for each axis, from any of the forms that np.pad takes."""
    if ndim == 0:
        return []
    if type(pad_width) is int:
        return [[pad_width, pad_width] for _ in range(ndim)]
    if isinstance(pad_width, dict):
        by_axis = {axis % ndim: pair for axis, pair in pad_width.items()}
        pad_width = [np.broadcast_to(by_axis.get(axis, 0), 2) for axis in range(ndim)]
    try:
        return np.broadcast_to(np.asarray(pad_width), (ndim, 2)).tolist()
    except ValueError as error:
        raise ShapeError(
            f"pad: {name}={pad_width} does not fit an array of {ndim} axes. Give one number, one "
            "pair (before, after), or one pair for each axis."
        ) from error


def _widths(pad_width, ndim):
    pairs = _pairs(pad_width, ndim)
    if any(type(n) is not int or n < 0 for pair in pairs for n in pair):
        raise ArgumentError(f"pad: pad_width={pad_width} must be ints that are not negative.")
    return pairs


def _interior(pad_width, shape):
    """The index of the original array within the padded one."""
    pairs = _widths(pad_width, len(shape))
    return tuple(slice(b, b + n) for (b, _), n in zip(pairs, shape, strict=True))


def _pad_constant_batch(xp, batched, x, *, pad_width, value):
    return xp.pad_constant(x, ((0, 0), *_widths(pad_width, x.ndim - 1)), value=value)


@op(
    vjp=[lambda xp, g, x_shape, pad_width: xp.getitem(g, index=_interior(pad_width, x_shape))],
    jvp=[lambda xp, t, pad_width: xp.pad_constant(t, pad_width)],
    native_half=True,
    batch=_pad_constant_batch,
    kinds="fci",
    ref=lambda x, pad_width, value=0.0: np.pad(x, pad_width, constant_values=value),
    samples=shaped(
        ([(3,)], {"pad_width": 1}),
        ([(2, 3)], {"pad_width": (1, 2)}),
        ([(2, 3)], {"pad_width": ((0, 1), (2, 0)), "value": 0.5}),
        ([(0, 2)], {"pad_width": ((1, 1), (0, 0))}),
        ([(2, 2)], {"pad_width": 0}),
    ),
    errors=[
        ([np.ones(3)], {"pad_width": ((1, 1), (1, 1))}, ShapeError, "pad.*1 axes"),
        ([np.ones(3)], {"pad_width": -1}, ArgumentError, "pad.*negative"),
    ],
    captures=True,
)
def pad_constant(xp, x, /, pad_width, *, value=0.0):
    """Pad an array with one value; `pad` calls it.

    Args:
        value: a number.
    """
    check_numbers("pad_constant", "biufcV" if x.dtype.kind == "c" else "biufV", value=value)
    pairs = _widths(pad_width, x.ndim)
    shape = tuple([b + n + a for n, (b, a) in zip(x.shape, pairs, strict=True)])
    out = xp.lib.full(shape, value, dtype=x.dtype) if value else xp.lib.zeros(shape, dtype=x.dtype)
    out[tuple([slice(b, b + n) for (b, _), n in zip(pairs, x.shape, strict=True)])] = x
    return out


def _pad_with_values(xp, x, axis, width, values):
    for side in (0, 1):
        pairs = [[0, 0] for _ in x.shape]
        pairs[axis][side] = width[side]
        x = xp.pad_constant(x, pairs, value=values[side])
    return x


def _pad_with_ramps(xp, x, axis, width, ends):
    """Pads with equal steps from each edge to an end value."""
    before, after = width
    if max(width) > 10_000:  # each element is an op
        raise ArgumentError(f"pad: a linear_ramp of {max(width)} elements is longer than 10,000.")
    first = xp.getitem(x, index=index_along(axis, slice(0, 1)))
    last = xp.getitem(x, index=index_along(axis, slice(x.shape[axis] - 1, x.shape[axis])))
    rising = [ends[0] + (first - ends[0]) * (k / before) for k in range(before)]
    falling = [ends[1] + (last - ends[1]) * (k / after) for k in range(after)]
    return xp.astype(xp.concat([*rising, x, *falling[::-1]], axis=axis), x.dtype)


def _pad_with_statistics(xp, x, axis, width, lengths, reduce):
    """Pads with the maximum, minimum or mean of the elements, `lengths` many, at each edge."""
    n = x.shape[axis]
    near = [slice(0, lengths[0]), slice(max(n - lengths[1], 0), n)]
    sides = [
        xp.broadcast_to(
            reduce(xp.getitem(x, index=index_along(axis, part)), axis=axis, keepdims=True),
            (*x.shape[:axis], count, *x.shape[axis + 1 :]),
        )
        for part, count in zip(near, width, strict=True)
    ]
    return xp.concat([sides[0], x, sides[1]], axis=axis)


_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")
_BY_STATISTIC = {"maximum": "max", "minimum": "min", "mean": "mean"}
_MODES = ("constant", *_BY_INDEX, "linear_ramp", *_BY_STATISTIC, "empty")


def _pad_ref(x, pad_width, mode="constant", constant_values=0, end_values=0, stat_length=None):
    keywords = {
        "constant": {"constant_values": constant_values},
        "linear_ramp": {"end_values": end_values},
    }.get(mode, {"stat_length": stat_length} if mode in _BY_STATISTIC else {})
    if isinstance(pad_width, dict):  # from axes, which NumPy accepts from 2.4 on
        pad_width = [pad_width.get(i, pad_width.get(i - x.ndim, 0)) for i in range(x.ndim)]
        pad_width = [(w, w) if isinstance(w, int) else w for w in pad_width]
    return np.pad(x, pad_width, mode, **keywords)


@op(
    native_half=True,
    kinds="f",
    ref=_pad_ref,
    samples=shaped(
        ([(2, 3)], {"pad_width": ((0, 1), (2, 0)), "constant_values": ((0, 1), (2, 3))}),
        ([(3,)], {"pad_width": (4, 2), "mode": "edge"}),
        ([()], {"pad_width": 1}),
        ([(2, 3)], {"pad_width": ((1, 0), (4, 5)), "mode": "reflect"}),
        ([(2, 2)], {"pad_width": 3, "mode": "symmetric"}),
        ([(2, 3)], {"pad_width": {1: (1, 4)}, "mode": "wrap"}),
        ([(2, 2)], {"pad_width": (1, 3), "mode": "linear_ramp", "end_values": (1, -1)}),
        ([(2, 3)], {"pad_width": (1, 2), "mode": "maximum"}),
        ([(4,)], {"pad_width": 1, "mode": "minimum", "stat_length": 2}),
        ([(2, 2)], {"pad_width": (1, 0), "mode": "mean"}),
    ),
    errors=[
        ([np.ones(3)], {"pad_width": ((1, 1), (1, 1))}, ShapeError, "pad.*1 axes"),
        ([np.ones(3)], {"pad_width": -1}, ArgumentError, "pad.*negative"),
        ([np.ones(3)], {"pad_width": 1, "mode": "mirror"}, ArgumentError, "pad.*'reflect'"),
        ([np.ones(0)], {"pad_width": 1, "mode": "edge"}, ShapeError, r"pad.*\(0,\)"),
    ],
)
def pad(
    xp, x, /, pad_width, mode="constant", *, constant_values=0.0, end_values=0.0, stat_length=None
):
    """Pad an array, as NumPy's pad.

    Args:
        pad_width: a pair (before, after) for each axis; or one pair, or one int, for all axes; or
            a dict from axes to pairs or ints.
        mode: the padding. ``"constant"``: `constant_values`. ``"edge"``: the nearest element.
            ``"reflect"``: the elements in reverse, without the edge; ``"symmetric"``: with it.
            ``"wrap"``: the elements of the other side. ``"linear_ramp"``: equal steps to
            `end_values`. ``"maximum"``, ``"minimum"``, ``"mean"``: of `stat_length` elements.
            ``"empty"``: zeros.
        constant_values, end_values: a number; or a pair, or one pair for each axis.
        stat_length: number of elements at each edge: an int, a pair, or one pair for each axis;
            None for all elements.

    Returns:
        Tensor, longer by `before` and `after` along each axis.

    >>> print(gg.pad([1.0, 2.0], (1, 2)))
    [0. 1. 2. 0. 0.]
    >>> print(gg.pad([1.0, 2.0, 3.0], 2, "reflect"))
    [3. 2. 1. 2. 3. 2. 1.]
    """
    if mode not in _MODES:
        raise ArgumentError(
            f"pad: mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}."
        )
    pairs = _widths(pad_width, x.ndim)
    if mode == "empty" or (mode == "constant" and isinstance(constant_values, (int, float))):
        return xp.pad_constant(x, pairs, value=0.0 if mode == "empty" else constant_values)
    if mode != "constant" and any(n == 0 and max(w) for n, w in zip(x.shape, pairs, strict=True)):
        raise ShapeError(f"pad: mode {mode!r} has nothing to repeat in the shape {x.shape}.")
    values = _pairs(constant_values if mode == "constant" else end_values, x.ndim, "values")
    lengths = _pairs(max(x.shape, default=0) if stat_length is None else stat_length, x.ndim)
    for axis, width in enumerate(pairs):
        if width == [0, 0]:
            continue
        if mode == "constant":
            x = _pad_with_values(xp, x, axis, width, values[axis])
        elif mode == "linear_ramp":
            x = _pad_with_ramps(xp, x, axis, width, values[axis])
        elif mode in _BY_INDEX:
            sources = np.pad(np.arange(x.shape[axis]), width, mode)
            x = xp.getitem(x, index=index_along(axis, sources))
        else:
            reduce = getattr(xp, _BY_STATISTIC[mode])
            x = _pad_with_statistics(xp, x, axis, width, lengths[axis], reduce)
    return x
