"""tf.math: TensorFlow's names, parameters and dtypes of gpugrad's ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.convert import keeping, op, ops, tensor, together
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError


def _reduction(f: Callable[..., Tensor], dtype=None) -> Callable[..., Tensor]:
    """A reduction whose result for integers has their dtype, as in TensorFlow."""

    def reduce(input_tensor=..., axis=None, keepdims=False) -> Tensor:
        x = tensor(input_tensor, dtype)
        return keeping(x, f(x, axis=axis, keepdims=keepdims))

    return reduce


def _cumulative(f: Callable[..., Tensor], first: float) -> Callable[..., Tensor]:
    """A cumulative op; `exclusive` leaves each element itself out."""

    def cumulate(x, axis=0, exclusive=False, reverse=False) -> Tensor:
        z = f(gg.flip(x, axis=axis) if reverse else x, axis=axis)
        if exclusive:
            along = [slice(None)] * x.ndim
            along[axis] = slice(0, -1)
            start = gg.full_like(gg.take(z, gg.asarray([0]), axis=axis), first)
            z = gg.concat([start, z[tuple(along)]], axis=axis)
        return gg.astype(gg.flip(z, axis=axis) if reverse else z, x.dtype, copy=False)

    return cumulate


def _segments(kind: str) -> dict[str, Callable[..., Tensor]]:
    f: Any = getattr(gg, f"segment_{kind}")

    def filled(data, segment_ids, n: int, value: float) -> Tensor:
        """With a value in segments without elements."""
        found = f(data, segment_ids, num_segments=n)
        ids = gg.ravel(segment_ids)
        count = gg.segment_sum(gg.ones(ids.shape, dtype="int32"), ids, num_segments=n)
        empty = gg.reshape(count == 0, (n,) + (1,) * (found.ndim - 1))
        return gg.where(empty, gg.full_like(found, value), found)

    def segments(data, segment_ids) -> Tensor:
        n = int(gg.max(segment_ids)) + 1 if segment_ids.size else 0
        if kind in ("max", "min", "prod"):
            return filled(data, segment_ids, n, kind == "prod")
        return keeping(data, f(data, segment_ids, num_segments=n))

    def unsorted(data, segment_ids, num_segments) -> Tensor:
        if kind in ("max", "min"):
            limits = (gg.finfo if data.dtype.kind == "f" else gg.iinfo)(data.dtype)
            value = limits.min if kind == "max" else limits.max
            return filled(data, segment_ids, num_segments, value)
        return f(data, segment_ids, num_segments=num_segments)

    both: dict[str, Any] = {f"segment_{kind}": segments, f"unsorted_segment_{kind}": unsorted}
    return {name: g for name, g in both.items() if name != "segment_sqrt_n"}


def _extreme(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda input, axis=0, output_type="int64": gg.astype(f(input, axis=axis), output_type)


class TopKV2(NamedTuple):
    """The largest elements, and where they are."""

    values: Tensor
    indices: Tensor


def _top_k(input, k=1, sorted=True, index_type="int32") -> TopKV2:
    values, indices = gg.top_k(input, k)
    return TopKV2(values, gg.astype(indices, index_type))


def _in_top_k(targets=..., predictions=..., k=...) -> Tensor:
    """Whether few predictions are larger than that of the target; no if one is not finite."""
    targets, predictions = tensor(targets), tensor(predictions)
    known = (targets >= 0) & (targets < predictions.shape[1])
    place = gg.expand_dims(gg.where(known, targets, gg.zeros_like(targets)), axis=1)
    own = gg.take_along_axis(predictions, place, axis=1)
    finite = gg.all(gg.isfinite(predictions), axis=1)
    return (gg.sum(predictions > own, axis=1) < k) & known & finite


def _l2_normalize(x, axis=None, epsilon=1e-12) -> Tensor:
    squares = gg.sum(gg.square(x), axis=axis, keepdims=True)
    return x * gg.rsqrt(gg.maximum(squares, epsilon))


@op
def bincount(
    arr, weights=None, minlength=None, maxlength=None, dtype="int32", axis=None, binary_output=False
) -> Tensor:
    """How often each number occurs, or the sum of its weights; numbers from `maxlength` on do not.

    With ``axis=-1`` each row is counted, otherwise all elements together.
    """
    if axis not in (None, 0, -1):
        raise ArgumentError(f"bincount: axis={axis} is not None, 0 or -1.")
    weights = None if weights is None else gg.ravel(tensor(weights))
    numbers, n, rows = gg.ravel(arr), int(minlength or 0), arr.shape[:-1] if axis == -1 else ()
    if rows or maxlength is not None:  # the length must be known before
        n = max(int(gg.max(arr)) + 1 if arr.size else 0, n)
        n = n if maxlength is None else min(n, int(maxlength))
        inside = numbers < n
        first = gg.reshape(n * gg.arange(math.prod(rows)), (*rows, 1))
        numbers = gg.ravel(gg.reshape(numbers, (*rows, -1)) + first)[inside]
        weights = None if weights is None else weights[inside]
    found = gg.bincount(numbers, weights, n * math.prod(rows))
    kind = dtype if weights is None else weights.dtype
    found = gg.astype(found != 0 if binary_output else found, kind, copy=False)
    return gg.reshape(found, (*rows, n)) if rows else found


@op
def confusion_matrix(
    labels=..., predictions=..., num_classes=None, weights=None, dtype="int32"
) -> Tensor:
    labels, predictions = tensor(labels), tensor(predictions)
    n = num_classes
    n = int(max(gg.max(labels), gg.max(predictions))) + 1 if n is None else n
    weights = (
        gg.ones(labels.shape, dtype=dtype) if weights is None else gg.astype(tensor(weights), dtype)
    )
    cells = gg.astype(labels, "int64") * n + gg.astype(predictions, "int64")
    return gg.reshape(gg.segment_sum(weights, cells, num_segments=n * n), (n, n))


def _polyval(coeffs=..., x=...) -> Tensor:
    x = tensor(x)
    return gg.polyval(gg.stack([tensor(c, like=x.dtype) for c in coeffs]), x)


def _add_n(inputs=...) -> Tensor:
    total, *rest = together(*inputs)
    for x in rest:
        total = gg.add(total, x)
    return total if rest else gg.positive(total)


_REDUCTIONS = "sum mean max min prod std logsumexp"
_SEGMENTS = "sum mean max min prod sqrt_n"
_OPS = ops(
    """x: abs acos acosh asin asinh atan atanh ceil conj cos cosh digamma=special.digamma
    erf=special.erf erfc=special.erfc erfcinv=special.erfcinv erfinv=special.erfinv exp expm1 floor
    invert_permutation=argsort is_finite=isfinite is_inf=isinf is_nan=isnan
    lgamma=special.gammaln log log1p log_sigmoid logical_not
    ndtri=special.ndtri negative reciprocal rint round rsqrt sigmoid sign sin sinh sqrt square tan
    tanh bessel_i0=special.i0 bessel_i0e=special.i0e bessel_i1=special.i1 bessel_i1e=special.i1e
    input: real imag angle
    features: softplus softsign
    y x: atan2
    x y: add divide divide_no_nan=special.divide_no_nan equal floordiv=floor_divide
    floormod=remainder greater greater_equal less less_equal logical_and logical_or logical_xor
    maximum minimum mod=remainder multiply multiply_no_nan=special.multiply_no_nan not_equal pow
    realdiv=divide squared_difference subtract truediv=divide truncatemod=fmod xdivy=special.xdivy
    xlog1py=special.xlog1py xlogy=special.xlogy
    x1 x2: nextafter
    scalar x: scalar_mul=multiply
    a x: igamma=special.gammainc igammac=special.gammaincc polygamma=special.polygamma
    x q: zeta=special.zeta
    a b x: betainc=special.betainc
    logits axis=-1: softmax log_softmax""",
    add_n=_add_n,
    accumulate_n=_add_n,
    **{f"reduce_{name}": _reduction(getattr(gg, name)) for name in _REDUCTIONS.split()},
    reduce_variance=_reduction(gg.var),
    reduce_any=_reduction(gg.any, "bool"),
    reduce_all=_reduction(gg.all, "bool"),
    reduce_euclidean_norm=_reduction(lambda x, **options: gg.sqrt(gg.sum(gg.square(x), **options))),
    count_nonzero=lambda input, axis=None, keepdims=False, dtype="int64": gg.astype(
        gg.count_nonzero(input, axis=axis, keepdims=keepdims), dtype
    ),
    argmax=_extreme(gg.argmax),
    argmin=_extreme(gg.argmin),
    cumsum=_cumulative(gg.cumulative_sum, 0),
    cumprod=_cumulative(gg.cumulative_prod, 1),
    cumulative_logsumexp=_cumulative(gg.cumulative_logsumexp, -np.inf),
    top_k=_top_k,
    in_top_k=_in_top_k,
    l2_normalize=_l2_normalize,
    lbeta=lambda x: gg.sum(gg.special.gammaln(x), axis=-1) - gg.special.gammaln(gg.sum(x, axis=-1)),
    polyval=_polyval,
    reciprocal_no_nan=lambda x: gg.special.divide_no_nan(gg.ones_like(x), x),
    truncatediv=lambda x, y: gg.astype(gg.trunc(gg.divide(x, y)), x.dtype),
    zero_fraction=lambda value: gg.mean(gg.astype(gg.equal(value, 0), "float32")),
    is_non_decreasing=lambda x: gg.all(gg.diff(gg.ravel(x)) >= 0),
    is_strictly_increasing=lambda x: gg.all(gg.diff(gg.ravel(x)) > 0),
    **{k: f for kind in _SEGMENTS.split() for k, f in _segments(kind).items()},
)
__getattr__, __dir__ = forwarding(__name__, _OPS, own=globals())
