"""Medians, quantiles and percentiles; their ``nan`` versions leave NaNs out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, TENSOR
from gpugrad.core.samples import calls, shaped, uniform
from gpugrad.core.tensor import Tensor, holds_tensor, tensor
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.ops._axes import checked_axes, how_many, per_count
from gpugrad.ops.math.nan_reductions import quiet, with_nan
from gpugrad.registry.record import op


def _order_statistics_vjp(xp, g, out, x, ranks):
    """Equal elements share the gradient of their rank: one pass for each rank, and no sort."""
    total = 0
    for k in range(len(ranks)):
        place = (Ellipsis, slice(k, k + 1))
        hit = xp.astype(x == xp.getitem(out, index=place), x.dtype)
        share = per_count(xp, xp.getitem(g, index=place), how_many(xp, hit, -1))
        total = hit * share + total
    return total


@op(
    vjp=[_order_statistics_vjp],
    kinds="fci",
    batch="stack",
    ref=lambda x, ranks: np.sort(x, axis=-1)[..., list(ranks)],
    samples=shaped(
        ([(5,)], {"ranks": (1, 3)}),
        ([(2, 3)], {"ranks": (2,)}),
        ([(1,)], {"ranks": (0,)}),
        ([(0, 2)], {"ranks": (0, 1)}),
    ),
    errors=[
        ([np.ones(3)], {"ranks": (3,)}, ShapeError, r"order_statistics: .*\(3,\)"),
        ([np.ones(0)], {"ranks": (0,)}, ShapeError, r"order_statistics: .*\(0,\)"),
    ],
    captures=True,
)
def order_statistics(xp, x, /, *, ranks):
    """Elements by their place in ascending order, along the last axis; `quantile` calls it.

    Args:
        ranks: tuple of ints, none twice: 0 for the smallest.

    Returns:
        Tensor with the elements along the last axis; NaN where a line has a NaN. Equal
        elements share the gradient.
    """
    n = x.shape[-1] if x.ndim else 0
    if not all(0 <= r < n for r in ranks):
        raise ShapeError(f"order_statistics: ranks {ranks} of the last axis of {x.shape}.")
    if xp is NUMPY:  # NaNs sort to the end, so the last element shows them
        ordered = x.copy()
        ordered.partition(sorted({*ranks, n - 1}))
    else:  # cupy.partition sorts too, and slower
        ordered = xp.lib.sort(x, axis=-1)
    out = xp.lib.empty((*x.shape[:-1], len(ranks)), dtype=x.dtype)
    for k, rank in enumerate(ranks):  # by slices: an index would come from the host
        out[..., k] = ordered[..., rank]
    if x.dtype.kind != "f":
        return out
    last = ordered[..., -1:]
    broken = xp.lib.isnan(last)
    if xp is NUMPY and not broken.any():
        return out
    return xp.lib.where(broken, last, out)


# ---- which ranks, and how to weigh them --------------------------------------------------

_PLOTTING = {  # (alpha, beta) of Hyndman and Fan, "Sample quantiles", Am. Stat. 50 (1996)
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
OF_THE_SAMPLE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", *_PLOTTING, "linear",
    "lower", "higher", "midpoint", "nearest",
)  # fmt: skip


def _position(floor, where, n, q, method):
    """The lower rank, not yet clipped to 0 and n - 1, and the weight of the next rank.

    `n` is a count or an array of counts; `floor` and `where` are functions for its type.
    """
    if method in _PLOTTING:
        alpha, beta = _PLOTTING[method]
        place = n * q + (alpha + q * (1 - alpha - beta)) - 1
    elif method in ("inverted_cdf", "averaged_inverted_cdf"):
        place = n * q - 1
    elif method == "closest_observation":
        place = n * q - 1.5
    else:
        place = (n - 1) * q
    low = floor(place)
    part = place - low
    even = low - 2 * floor(low / 2) < 0.5
    weight = {
        "inverted_cdf": lambda: where(part > 0, 1.0, 0.0),
        "averaged_inverted_cdf": lambda: where(part > 0, 1.0, 0.5),
        "closest_observation": lambda: where((part > 0) | even, 1.0, 0.0),
        "lower": lambda: where(part > 0, 0.0, 0.0),
        "higher": lambda: where(part > 0, 1.0, 0.0),
        "midpoint": lambda: where(part > 0, 0.5, 0.0),
        "nearest": lambda: where((part > 0.5) | ((part >= 0.5) & ~even), 1.0, 0.0),
    }.get(method, lambda: part)()
    return low, weight


def _levels(xp, name, x, q, method, scale=1):
    """The shape of `q`, and its numbers between 0 and 1; checks that `x` is real.

    If a tape records the formula, the numbers of a Tensor `q` are Tensors.
    """
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: x is {x.dtype}; take gg.real(x), gg.imag(x) or gg.abs(x).")
    if method not in METHODS:
        raise ArgumentError(f"{name}: no method {method!r}; choose from {', '.join(METHODS)}.")
    if xp is TENSOR and holds_tensor(q):
        q = tensor(q)
    levels = np.asarray(q.tolist() if hasattr(q, "tolist") else q, dtype=np.float64)
    if levels.ndim > 2:
        raise ArgumentError(f"{name}: q must have at most two axes, its shape is {levels.shape}.")
    if not ((levels >= 0) & (levels <= scale)).all():
        raise ArgumentError(f"{name}: q={q!r:.60} must be between 0 and {scale}.")
    if xp is TENSOR and isinstance(q, Tensor):
        q = xp.reshape(xp.astype(q, np.float64), (-1,)) / scale
        return levels.shape, [xp.getitem(q, index=(k,)) for k in range(q.size)]
    return levels.shape, (levels / scale).ravel().tolist()


def _lines(xp, name, x, axis):
    """`x` with the reduced axes merged into the last; the shape without them and with ones."""
    axes = checked_axes(name, x, axis)
    if len(set(axes)) < len(axes):
        raise AxisError(f"{name}: axis={axis} names an axis twice.")
    kept = [i for i in range(x.ndim) if i not in axes]
    n = math.prod(x.shape[i] for i in axes)
    shape = tuple(x.shape[i] for i in kept)
    if not n and math.prod(shape):
        raise ShapeError(f"{name}: axis={axis} of the shape {x.shape} is empty.")
    moved = xp.permute_dims(x, (*kept, *sorted(axes)))
    ones = tuple(1 if i in axes else m for i, m in enumerate(x.shape))
    return xp.reshape(moved, (*shape, n)), shape, ones


def _connected(xp, values, levels):
    """The values, with a gradient of 0 by levels that are Tensors but weigh nothing."""
    return [
        v + 0 * xp.astype(q, v.dtype) if isinstance(q, Tensor) else v
        for v, q in zip(values, levels, strict=True)
    ]


def _arranged(xp, values, q_shape, shape):
    """One result for each level, with the axes of `q` in front."""
    if not q_shape:
        return xp.reshape(values[0], shape)
    return xp.reshape(xp.stack(values), (*q_shape, *shape))


def _quantile(xp, name, x, shape_of_q, levels, axis, method, keepdims):
    lines, shape, ones = _lines(xp, name, x, axis)
    if method not in OF_THE_SAMPLE and x.dtype.kind in "biu":  # as NumPy, whatever the weight
        lines = xp.astype(lines, np.float64)
    n = lines.shape[-1]
    places = []
    for q in levels:
        library = (xp.floor, xp.where) if isinstance(q, Tensor) else (np.floor, np.where)
        low, weight = _position(*library, max(n, 1), q, method)
        low, exact = int(low), float(weight)
        if isinstance(q, Tensor) and 0 < exact < 1:
            weight = xp.astype(weight, lines.dtype)
        else:
            weight = exact
        low, high = (min(max(r, 0), n - 1) for r in (low, low + 1))
        places.append((low, high, weight))
    used = {r for low, high, w in places for r in ([low] * bool(w < 1) + [high] * bool(w > 0))}
    ranks = sorted(used)
    ranked = xp.order_statistics(lines, ranks=tuple(ranks)) if lines.size else lines

    def element(rank):
        k = ranks.index(rank) if lines.size else 0
        return xp.getitem(ranked, index=(Ellipsis, slice(k, k + 1)))

    values = []
    for low, high, w in places:
        if not isinstance(w, Tensor) and w in (0, 1):
            values.append(element(high if w else low))
        else:
            values.append(element(low) * (1 - w) + element(high) * w)
    if x.dtype.kind == "c" and lines.size:  # whose order has NaN last
        broken = xp.any(xp.isnan(lines), axis=-1, keepdims=True)
        values = [xp.where(broken, math.nan, v) for v in values]
    values = _connected(xp, values, levels)
    return _arranged(xp, values, shape_of_q, ones if keepdims else shape)


def _nanquantile(xp, name, x, shape_of_q, levels, axis, method, keepdims):
    """`_quantile` where the number of elements differs between lines."""
    if x.dtype.kind in "biu":
        return _quantile(xp, name, x, shape_of_q, levels, axis, method, keepdims)
    lines, shape, ones = _lines(xp, name, x, axis)
    order, missing = xp.argsort(lines, axis=-1), xp.isnan(lines)
    lines = xp.where(missing, float("nan"), lines)  # as a constant: NaNs get no gradient
    n = xp.sum(xp.astype(~missing, np.float64), axis=-1, keepdims=True)
    n = xp.maximum(n, 1.0)

    def element(rank):
        rank = xp.astype(xp.minimum(xp.maximum(rank, 0.0), n - 1), np.int64)
        where = xp.take_along_axis(order, rank, axis=-1)
        return xp.take_along_axis(lines, where, axis=-1)

    values = []
    for q in levels:
        low, weight = _position(xp.floor, xp.where, n, q, method)
        weight = xp.astype(weight, lines.dtype)
        if isinstance(q, Tensor):  # no gradient where it hits an element
            weight = xp.where((weight > 0) & (weight < 1), weight, xp.floor(weight))
        a, b = element(low), element(low + 1)
        # a neighbour of weight 0 may be infinite
        a, b = xp.where(weight < 1, a, 0.0), xp.where(weight > 0, b, 0.0)
        values.append(a * (1 - weight) + b * weight)
    values = _connected(xp, values, levels)
    return _arranged(xp, values, shape_of_q, ones if keepdims else shape)


# ---- the ops -----------------------------------------------------------------------------

_MEDIANS = shaped(
    [(5,)],
    ([(2, 4)], {"axis": 1}),
    ([(2, 3, 2)], {"axis": (0, -1), "keepdims": True}),
    [()],
    ([(0, 2)], {"axis": 1}),
)
_MEDIAN_ERRORS: list[Any] = [([np.ones(3)], {"axis": 1}, AxisError, "axis=1")]


def _quantiles(scale):
    q = [[0.0, 0.25 * scale], [0.9 * scale, scale]]
    return calls(
        lambda rng: [uniform(rng, 5), 0.3 * scale],
        lambda rng: ([uniform(rng, 2, 4), q], {"axis": 1, "method": "hazen"}),
        lambda rng: ([uniform(rng, 2, 3, 2), 0.7 * scale], {"axis": (0, -1), "keepdims": True}),
        lambda rng: ([uniform(rng, 4), [0.5 * scale, 0.2 * scale]], {"method": "higher"}),
        lambda rng: ([uniform(rng, 4, 2), 0.4 * scale], {"method": "midpoint", "axis": 0}),
    )


def _level_errors(scale) -> list[Any]:
    return [
        ([np.ones(3), 1.5 * scale], {}, ArgumentError, f"between 0 and {scale}"),
        ([np.ones(3), 0.5], {"method": "best"}, ArgumentError, "no method 'best'"),
        ([np.ones(3), 0.5], {"axis": 1}, AxisError, "axis=1"),
        ([np.ones(3) + 1j, 0.5], {}, DTypeError, "x is complex128"),
        ([np.ones((0, 2)), 0.5], {}, ShapeError, r"\(0, 2\) is empty"),
    ]


def _by_level(name, what, example):
    """Declare a quantile or percentile; with a ``nan`` name, of the elements that are not NaN."""
    nan, scale = name.startswith("nan"), 100 if "percent" in name else 1
    compute = _nanquantile if nan else _quantile

    def forward(xp, x, /, q, axis=None, *, method="linear", keepdims=False):
        shape, levels = _levels(xp, name, x, q, method, scale)
        return compute(xp, name, x, shape, levels, axis, method, keepdims)

    returns = " Of equal elements one gets the gradient." if nan else ""
    forward.__doc__ = f"""{what}

    Args:
        x: array, not empty along the axes.
        q: number from 0 to {scale}, or a sequence or array of them. A Tensor gets
            a gradient; it is 0 where the quantile is an element, as torch's.
        method: how to choose between neighbours: one of NumPy's 13 names, such as
            ``"linear"``, ``"lower"``, ``"higher"``, ``"nearest"``, ``"midpoint"``.

    Returns:
        Tensor: the axes of `q`, then those of `x` without the reduced ones; NaN where
        {"all elements are" if nan else "an element is"} NaN.{returns}

    >>> print(gg.{name}({example[0]}))
    {example[1]}
    """
    samples, ref = _quantiles(scale), f"numpy.{name}"
    samples, ref = (with_nan(samples), quiet(name)) if nan else (samples, ref)
    kinds, errors = "f" if nan else "fi", _level_errors(scale)
    return op(name=name, kinds=kinds, samples=samples, ref=ref, errors=errors)(forward)


quantile = _by_level(
    "quantile",
    """Quantiles along axes: the value that a share `q` of the elements does not exceed.

    The gradient goes to the two neighbours of the quantile by their weights; elements that are
    equal share it.""",
    ("[1.0, 2.0, 4.0, 8.0], [0.5, 0.75]", "[3. 5.]"),
)
percentile = _by_level(
    "percentile",
    "Percentiles along axes: `quantile` with levels from 0 to 100.",
    ("[1.0, 2.0, 4.0], 50", "2.0"),
)
nanquantile = _by_level(
    "nanquantile",
    "Quantiles along axes of elements that are not NaN; gradients of NaNs are 0.",
    ("[1.0, np.nan, 2.0, 4.0], 0.5", "2.0"),
)
nanpercentile = _by_level(
    "nanpercentile",
    "Percentiles along axes of elements that are not NaN: `nanquantile` with levels from 0 to 100.",
    ("[1.0, np.nan, 2.0, 4.0], 50", "2.0"),
)


def _middle(x):
    """The median of a NumPy array, with the bits of `_quantile`, which takes 20 us for few."""
    ordered, below, above = x.flatten(), (x.size - 1) // 2, x.size // 2
    ordered.partition((below, above, x.size - 1))
    low, high, last = ordered[below], ordered[above], ordered[-1]
    if x.dtype.kind != "f":
        low, high = np.float64(low), np.float64(high)
    elif last != last:  # NaN is the last
        return last
    return low if below == above else low * 0.5 + high * 0.5


def _median(name, what, example, **more):
    compute, which = _nanquantile, "all elements are"
    if not name.startswith("nan"):
        compute, which = _quantile, "an element is"

    def forward(xp, x, /, axis=None, *, keepdims=False):
        if not x.size:
            return xp.mean(x, axis=axis, keepdims=keepdims)
        is_plain = xp is NUMPY and axis is None and not keepdims and compute is _quantile
        if is_plain and x.dtype.kind in "biuf":
            return _middle(x)
        middle = compute(xp, name, x, (), [0.5], axis, "linear", keepdims)
        return middle * 1.0 if x.dtype.kind in "biu" else middle

    forward.__doc__ = f"""{what}

    Args:
        x: array of any shape; integers give float64.

    Returns:
        Tensor without the reduced axes; NaN where {which} NaN, or there are none.

    >>> print(gg.{name}({example}))
    3.0
    """
    return op(name=name, errors=_MEDIAN_ERRORS, **more)(forward)


median = _median(
    "median",
    """Middle element along axes, or the mean of the two in the middle.

    Elements that are equal to it share its gradient.""",
    "[4.0, 1.0, 2.0, 8.0]",
    kinds="fi",
    samples=_MEDIANS,
)
nanmedian = _median(
    "nanmedian",
    "Median along axes of elements that are not NaN; gradients of NaNs are 0.",
    "[4.0, np.nan, 2.0]",
    samples=with_nan(_MEDIANS),
    ref=quiet("nanmedian"),
)
