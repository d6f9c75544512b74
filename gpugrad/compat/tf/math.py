"""tf.math: TensorFlow's names, parameters and dtypes of gpugrad's ops."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.convert import axes, op, table, tensor, together
from gpugrad.core.tensor import Tensor

_OPS = (
    table(
        """abs acos acosh asin asinh atan atanh ceil conj cos cosh digamma=special.digamma
        erf=special.erf erfc=special.erfc erfcinv=special.erfcinv erfinv=special.erfinv exp expm1
        floor imag invert_permutation=argsort is_finite=isfinite is_inf=isinf is_nan=isnan
        lbeta=special.multigammaln lgamma=special.gammaln log log1p log_sigmoid logical_not
        ndtri=special.ndtri negative real reciprocal rint rsqrt sigmoid sign sin sinh sqrt square
        tan tanh bessel_i0=special.i0 bessel_i0e=special.i0e bessel_i1=special.i1
        bessel_i1e=special.i1e""",
        "x",
    )
    | table("softplus softsign", "features")
    | table(
        """add atan2 divide_no_nan=special.divide_no_nan equal floordiv=floor_divide
        floormod=remainder greater greater_equal less less_equal logical_and logical_or logical_xor
        maximum minimum mod=remainder multiply multiply_no_nan=special.multiply_no_nan
        not_equal pow squared_difference subtract truediv=divide truncatemod=fmod
        xdivy=special.xdivy xlog1py=special.xlog1py xlogy=special.xlogy""",
        "x",
        "y",
    )
    | table("nextafter", "x1", "x2")
    | table("igamma=special.gammainc igammac=special.gammaincc", "a", "x")
    | {
        "polygamma": op(gg.special.polygamma, "a", "x"),
        "zeta": op(gg.special.zeta, "x", "q"),
        "betainc": op(gg.special.betainc, "a", "b", "x"),
    }
)


def divide(x, y, name=None) -> Tensor:
    """Elementwise ``x / y``."""
    x, y = together(x, y)
    return gg.divide(x, y)


def round(x, name=None) -> Tensor:
    """The nearest integers; halves go to the even one."""
    return gg.round(tensor(x))


def angle(input, name=None) -> Tensor:
    """The argument of complex numbers."""
    return gg.angle(tensor(input))


def add_n(inputs, name=None) -> Tensor:
    """The sum of a list of Tensors."""
    total, *rest = together(*inputs)
    for x in rest:
        total = gg.add(total, x)
    return gg.positive(total) if not rest else total


accumulate_n = add_n


def _reduction(f: Callable[..., Tensor], dtype=None) -> Callable[..., Tensor]:
    def reduce(input_tensor, axis=None, keepdims=None, name=None, **v1) -> Tensor:
        axis, keepdims = v1.get("reduction_indices", axis), v1.get("keep_dims", keepdims)
        x = tensor(input_tensor, dtype)
        result = f(x, axis=axes(axis), keepdims=bool(keepdims))
        keeps = x.dtype.kind in "iu" and result.dtype.kind in "iuf"  # as in TensorFlow
        return gg.astype(result, x.dtype) if keeps and result.dtype != x.dtype else result

    reduce.__doc__ = f"{(f.__doc__ or '').partition(chr(10))[0]} Integers stay integers."
    return reduce


reduce_sum = _reduction(gg.sum)
reduce_mean = _reduction(gg.mean)
reduce_max = _reduction(gg.max)
reduce_min = _reduction(gg.min)
reduce_prod = _reduction(gg.prod)
reduce_std = _reduction(gg.std)
reduce_variance = _reduction(gg.var)
reduce_logsumexp = _reduction(gg.logsumexp)
reduce_any = _reduction(gg.any, "bool")
reduce_all = _reduction(gg.all, "bool")


@_reduction
def reduce_euclidean_norm(x: Tensor, axis=None, keepdims=False) -> Tensor:
    """The square root of the sum of squares."""
    return gg.sqrt(gg.sum(gg.square(x), axis=axis, keepdims=keepdims))


def count_nonzero(input, axis=None, keepdims=None, dtype="int64", name=None) -> Tensor:
    """How many elements are not 0."""
    found = gg.count_nonzero(tensor(input), axis=axes(axis), keepdims=bool(keepdims))
    return gg.astype(found, dtype)


def argmax(input, axis=None, output_type="int64", name=None, **v1) -> Tensor:
    """The index of the largest element along an axis, by default the first."""
    axis = v1.get("dimension", axis)
    return gg.astype(gg.argmax(tensor(input), axis=0 if axis is None else int(axis)), output_type)


def argmin(input, axis=None, output_type="int64", name=None, **v1) -> Tensor:
    """The index of the smallest element along an axis, by default the first."""
    axis = v1.get("dimension", axis)
    return gg.astype(gg.argmin(tensor(input), axis=0 if axis is None else int(axis)), output_type)


def _cumulative(f: Callable[..., Tensor], first: float) -> Callable[..., Tensor]:
    def cumulate(x, axis=0, exclusive=False, reverse=False, name=None) -> Tensor:
        x, axis = tensor(x), int(axis)
        y = gg.flip(x, axis=axis) if reverse else x
        z = f(y, axis=axis)
        if exclusive:
            along = [slice(None)] * x.ndim
            along[axis] = slice(0, -1)
            start = gg.full_like(gg.take(z, gg.asarray([0]), axis=axis), first)
            z = gg.concat([start, z[tuple(along)]], axis=axis)
        z = gg.flip(z, axis=axis) if reverse else z
        return gg.astype(z, x.dtype, copy=False)

    cumulate.__doc__ = f"{(f.__doc__ or '').partition(chr(10))[0]} `exclusive` leaves out itself."
    return cumulate


cumsum = _cumulative(gg.cumulative_sum, 0)
cumprod = _cumulative(gg.cumulative_prod, 1)
cumulative_logsumexp = _cumulative(gg.cumulative_logsumexp, -np.inf)


def top_k(input, k=1, sorted=True, index_type="int32", name=None) -> Any:
    """The `k` largest elements of the last axis and their indices, the largest first."""
    values, indices = gg.top_k(tensor(input), int(k))
    return values, gg.astype(indices, index_type)


def in_top_k(targets, predictions, k: int, name=None) -> Tensor:
    """Whether each target is among the `k` largest predictions of its row."""
    predictions, targets = tensor(predictions), tensor(targets)
    own = gg.take_along_axis(predictions, gg.expand_dims(targets, axis=1), axis=1)
    return gg.sum(predictions > own, axis=1) < k


def l2_normalize(x, axis=None, epsilon=1e-12, name=None, **v1) -> Tensor:
    """`x` over its norm along an axis, or over sqrt(epsilon) where the norm is smaller."""
    x = tensor(x)
    squares = gg.sum(gg.square(x), axis=axes(v1.get("dim", axis)), keepdims=True)
    return x * gg.rsqrt(gg.maximum(squares, epsilon))


def _segments(kind: str, sorted_ids: bool) -> Callable[..., Tensor]:
    f: Any = getattr(gg, f"segment_{kind}")

    def reduce(data, segment_ids, num_segments=None, name=None) -> Tensor:
        ids = tensor(segment_ids)
        if sorted_ids:
            num_segments = int(gg.max(ids)) + 1 if ids.size else 0
        return f(tensor(data), ids, num_segments=int(num_segments))

    reduce.__doc__ = (f.__doc__ or "").partition("\n")[0]
    return reduce


segment_sum, unsorted_segment_sum = _segments("sum", True), _segments("sum", False)
segment_mean, unsorted_segment_mean = _segments("mean", True), _segments("mean", False)
segment_max, unsorted_segment_max = _segments("max", True), _segments("max", False)
segment_min, unsorted_segment_min = _segments("min", True), _segments("min", False)
segment_prod, unsorted_segment_prod = _segments("prod", True), _segments("prod", False)
unsorted_segment_sqrt_n = _segments("sqrt_n", False)


def bincount(arr, weights=None, minlength=None, dtype="int32", name=None) -> Tensor:
    """How often each integer occurs, or the sum of its weights."""
    weights = None if weights is None else tensor(weights)
    found = gg.bincount(gg.ravel(tensor(arr)), weights, int(minlength or 0))
    return found if weights is not None else gg.astype(found, dtype)


def confusion_matrix(
    labels, predictions, num_classes=None, weights=None, dtype="int32", name=None
) -> Tensor:
    """How often each label (row) was predicted as each class (column)."""
    labels, predictions = tensor(labels), tensor(predictions)
    n = (
        int(num_classes)
        if num_classes is not None
        else int(max(gg.max(labels), gg.max(predictions))) + 1
    )
    weights = (
        gg.ones(labels.shape, dtype=dtype) if weights is None else gg.astype(tensor(weights), dtype)
    )
    cells = gg.astype(labels, "int64") * n + gg.astype(predictions, "int64")
    return gg.reshape(gg.segment_sum(weights, cells, num_segments=n * n), (n, n))


def softmax(logits, axis=None, name=None) -> Tensor:
    """Softmax along an axis, by default the last."""
    return gg.softmax(tensor(logits), axis=-1 if axis is None else int(axis))


def log_softmax(logits, axis=None, name=None) -> Tensor:
    """Logarithm of softmax along an axis, by default the last."""
    return gg.log_softmax(tensor(logits), axis=-1 if axis is None else int(axis))


def polyval(coeffs, x, name=None) -> Tensor:
    """The polynomial with the coefficients, the highest power first, at `x`."""
    x = tensor(x)
    return gg.polyval(gg.stack([tensor(c, like=x.dtype) for c in coeffs]), x)


_look_up, _names = forwarding(__name__, types.SimpleNamespace(**_OPS), own=globals())


def __getattr__(name: str) -> Any:
    return _look_up(name)


def __dir__() -> list[str]:
    return _names()
