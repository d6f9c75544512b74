"""Attention: the masked softmax, and scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, TENSOR, innermost_array, is_inexact, on_gpu
from gpugrad.core.devices import CPU, device_of
from gpugrad.core.samples import calls, uniform
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import DTypeError, ShapeError, saying_where
from gpugrad.kernels.cpu import rows
from gpugrad.kernels.cpu.large import MIDDLE
from gpugrad.ops._axes import along_rows, constants
from gpugrad.ops.arrays.creation import arange
from gpugrad.ops.nn.dropout import check_probability, kept
from gpugrad.ops.nn.softmax import exp_of
from gpugrad.ops.random.generator import Generator, default_generator
from gpugrad.registry.on_arrays import through_float32
from gpugrad.registry.record import op


def _masked_softmax_ref(x, mask=None, is_causal=False):
    keep = np.ones(x.shape, bool) if mask is None else np.broadcast_to(mask, x.shape)
    if is_causal:
        keep = np.tril(keep)
    e = np.where(keep, np.exp(x), 0)
    return e / np.maximum(e.sum(-1, keepdims=True), 1e-300)


def _masked_softmax_vjp(xp, g, out, x_shape, mask):
    """The rule reads `mask` so that a tape keeps it for the next one."""
    return xp.sum_to(xp.softmax_grad(g, out), x_shape)


def _masked_softmax_masked(xp, g, out, x_shape, mask, is_causal):
    """A probability of 0 may also have underflowed; only the mask makes the gradient a masked 0."""
    d = xp.softmax_grad(g, out)
    if is_causal:
        d = xp.where(constants(xp).tri(*d.shape[-2:], dtype=bool), d, 0)
    return xp.sum_to(d if mask is None else xp.where(mask, d, 0), x_shape)


@op(
    vjp=[_masked_softmax_vjp, None],
    masked=[_masked_softmax_masked, None],
    jvp=[lambda xp, t, out: xp.softmax_grad(xp.where(out == 0, 0, t), out), None],
    arrays=("x", "mask"),
    batch="stack",
    ref=_masked_softmax_ref,
    samples=calls(
        lambda rng: [uniform(rng, 2, 3), np.array([[True, True, False], [False] * 3])],
        lambda rng: ([uniform(rng, 2, 2, 3), np.array([[True], [False]])], {"is_causal": True}),
        lambda rng: ([uniform(rng, 3, 2)], {"is_causal": True}),
        lambda rng: [uniform(rng, 2, 0)],
    ),
    errors=[
        ([np.ones(3), np.ones(3)], {}, DTypeError, "masked_softmax.*float64"),
        ([np.ones(3)], {"is_causal": True}, ShapeError, r"masked_softmax.*\(3,\)"),
        ([np.ones(3), np.ones(2, bool)], {}, ShapeError, r"\(3,\).*\(2,\)"),
    ],
    captures=True,
    opens=lambda x, mask, is_causal: "c" if along_rows(x, -1) else None,
)
def masked_softmax(xp, x, /, mask=None, *, is_causal=False):
    """Softmax along the last axis of the scores that a mask keeps.

    Args:
        x: scores, of at least one dimension. A score of -inf is masked, too.
        mask: booleans that broadcast with `x`: True where a score counts; None for everywhere.
        is_causal: whether row k keeps only its first k + 1 scores.

    Returns:
        Tensor of the broadcast shape: 0 where the mask is False. A row with no score that counts
        is 0, and so is its gradient. Masked scores have no effect, not even NaN.

    >>> print(gg.masked_softmax([[1.0, 1.0], [1.0, 1.0]], [[True, False], [False, False]]))
    [[1. 0.]
     [0. 0.]]
    """
    if mask is not None and mask.dtype.kind != "b":
        raise DTypeError(f"masked_softmax: the mask is {mask.dtype}; it must be boolean.")
    if x.ndim < 1 + is_causal:
        raise ShapeError(f"masked_softmax: the scores have too few axes: their shape is {x.shape}.")
    if is_causal:
        lower = constants(xp).tri(*x.shape[-2:], dtype=bool)
        mask = lower if mask is None else xp.logical_and(mask, lower)
    if mask is not None:
        x = xp.where(mask, x, -math.inf)
    if not x.shape[-1]:
        return x * 1
    if xp is NUMPY and x.size >= MIDDLE:
        result = rows.softmax_or_zero(x)
        if result is not NotImplemented:
            return result
    largest = x.max(axis=-1, keepdims=True)
    e = exp_of(xp, x - xp.where(largest == -math.inf, 0, largest))
    total = xp.add_reduce(e, axis=-1, keepdims=True)
    e /= xp.where(total == 0, 1, total)
    return e


def check_attention(name, query, key, value, attn_mask, enable_gqa):
    """Check shapes and dtypes; return the number of query heads for each head of keys."""
    shapes = f"query {query.shape}, key {key.shape} and value {value.shape}"
    flat = min(query.ndim, key.ndim, value.ndim) < 2
    if flat or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"{name}: {shapes} are not (..., m, k), (..., n, k) and (..., n, l).")
    if attn_mask is not None and attn_mask.dtype.kind not in "bfV":
        raise DTypeError(
            f"{name}: attn_mask is {attn_mask.dtype}. It must be boolean (True: "
            "takes part) or floating point (added to the scores)."
        )
    if not enable_gqa:
        return 1
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise ShapeError(f"{name}: {shapes} have no axis of heads to group.")
    heads, groups = query.shape[-3], key.shape[-3]
    if not groups or heads % groups or value.shape[-3] != groups:
        raise ShapeError(
            f"{name}: {shapes}: {heads} query heads cannot be divided evenly among {groups} key "
            f"heads and {value.shape[-3]} value heads."
        )
    return heads // groups


def regrouped(xp, x, heads, n):
    """(..., h, n, k) as (..., heads, n h / heads, k): a view, if the axes are contiguous."""
    return xp.reshape(x, (*x.shape[:-3], heads, n, x.shape[-1]))


def scores_of(xp, query, key, attn_mask, scale, group):
    """The scores plus an additive mask, and a boolean mask or None."""
    query = query * (max(query.shape[-1], 1) ** -0.5 if scale is None else scale)
    m = query.shape[-2]
    # queries of the heads that share keys are concatenated, so that keys need not be repeated
    if group > 1:
        query = regrouped(xp, query, key.shape[-3], group * m)
    scores = xp.matmul(query, xp.matrix_transpose(key))
    if group > 1:
        scores = regrouped(xp, scores, key.shape[-3] * group, m)
    if attn_mask is not None and attn_mask.dtype.kind != "b":
        return scores + attn_mask, None
    return scores, attn_mask


def averaged(xp, p, value, group):
    """The probabilities times the values."""
    if group == 1:
        return xp.matmul(p, value)
    heads, m = value.shape[-3], p.shape[-2]
    return regrouped(xp, xp.matmul(regrouped(xp, p, heads, group * m), value), heads * group, m)


def weights_of(query, key, value, attn_mask):
    """The shape (..., m, n) of the weights in the sums that give the result (..., m, l).

    With grouped heads it has the heads of the queries.
    """
    arrays = [x for x in (query, key, value, attn_mask) if x is not None]
    outer = np.broadcast_shapes(*(x.shape[:-3] for x in arrays))
    heads = [x.shape[-3] for x in arrays if x.ndim > 2]
    stack = (*outer, max(heads) if min(heads) else 0) if heads else ()
    return (*stack, query.shape[-2], key.shape[-2])


def _is_fused(query, key, value, attn_mask):
    """Whether to call `flash_attention`: on a GPU, where its kernels never store the scores."""
    array = getattr(query, "_data", query)
    dtypes = {x.dtype for x in (query, key, value, attn_mask) if x is not None} - {np.dtype(bool)}
    return device_of(array) != CPU and len(dtypes) == 1 and is_inexact(*dtypes)


def scores_ref(query, key, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """The scores on NumPy arrays; -inf where a key takes no part."""
    if enable_gqa:
        key = np.repeat(key, query.shape[-3] // key.shape[-3], axis=-3)
    s = query @ np.swapaxes(key, -1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if attn_mask is not None:
        s = np.where(attn_mask, s, -np.inf) if attn_mask.dtype == bool else s + attn_mask
    return np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf) if is_causal else s


def attention_ref(
    query, key, value, attn_mask=None, dropout_mask=None, used=None, dropout_p=0.0, **options
):
    """Attention by its definition, on NumPy arrays."""
    if used is not None:
        attn_mask = np.tri(query.shape[-2], key.shape[-2], used - query.shape[-2], dtype=bool)
    p = _masked_softmax_ref(scores_ref(query, key, attn_mask, **options))
    if dropout_mask is not None:
        p = p * dropout_mask / (1 - dropout_p)
    groups = query.shape[-3] // value.shape[-3] if options.get("enable_gqa") else 1
    return p @ (np.repeat(value, groups, axis=-3) if groups > 1 else value)


def _attention_samples(rng):
    yield [uniform(rng, 2, 3), uniform(rng, 2, 3), uniform(rng, 2, 2)], {}
    mask = np.array([[True, True, False], [False] * 3])
    yield [*(uniform(rng, 2, n, 2) for n in (2, 3, 3)), mask], {"scale": 0.3}
    heads = [uniform(rng, h, 2, 1) for h in (4, 2, 2)]
    yield [*heads, uniform(rng, 4, 2, 2)], {"enable_gqa": True, "is_causal": True}
    mask = np.array([[True, False], [True, True]])
    arrays = [uniform(rng, 2, n) for n in (2, 2, 1)]
    yield arrays, {"dropout_mask": mask, "dropout_p": 0.25}
    heads = [uniform(rng, h, n, 2) for h, n in ((4, 2), (2, 5), (2, 5))]
    yield heads, {"enable_gqa": True, "used": np.array(3, np.int32)}


_ATTENTION_ERRORS = [
    ([np.ones((2, 3)), np.ones((2, 2)), np.ones((2, 3))], {}, ShapeError, r"key \(2, 2\)"),
    ([np.ones((2, 3)), np.ones((4, 3)), np.ones((2, 3))], {}, ShapeError, r"value \(2, 3\)"),
    ([*[np.ones((2, 2))] * 3, np.ones((2, 2), int)], {}, DTypeError, "attn_mask is int64"),
    ([np.ones((3, 2, 2)), *[np.ones((2, 2, 2))] * 2], {"enable_gqa": True}, ShapeError, "3 query"),
    ([*[np.ones((2, 2))] * 3], {"enable_gqa": True}, ShapeError, "no axis of heads"),
]


def _in_use(xp, query, key, value, used):
    """Keys and values in use, and the mask of what each query sees, or None.

    The host reads how many are in use, and only these. Elsewhere the others are masked.
    """
    m, n = query.shape[-2], key.shape[-2]
    if xp is not NUMPY:
        device = used.device if xp is TENSOR else device_of(innermost_array(query))
        queries, keys = (arange(k, dtype="int32", device=device) for k in (m, n))
        if xp is not TENSOR:
            queries, keys = queries._data, keys._data
        return key, value, xp.less(keys, xp.expand_dims(used - (m - 1) + queries, axis=-1))
    n = min(max(int(used), 0), n)
    seen = np.tri(m, n, n - m, dtype=bool) if m > 1 else None
    return key[..., :n, :], value[..., :n, :], seen


def _opens(query, key, value, attn_mask, dropout_mask, used, **params):
    """With a number of keys in use, one step on the CPU: the number differs from run to run."""
    return "traced" if used is None or on_gpu(query) else None


@op(
    arrays=("query", "key", "value", "attn_mask", "dropout_mask", "used"),
    opens=_opens,
    ref=attention_ref,
    samples=_attention_samples,
    errors=_ATTENTION_ERRORS,
    native_half=True,
    mixed="half",
)
def dot_product_attention(
    xp, query, key, value, /, attn_mask=None, dropout_mask=None, used=None, *, is_causal=False,
    scale=None, enable_gqa=False, dropout_p=0.0,
):  # fmt: skip
    """Attention with the dropout mask as an argument; `scaled_dot_product_attention` calls it.

    Args:
        dropout_mask: booleans of the shape of the scores: True where a probability is kept;
            None for everywhere.
        used: an integer, the number of keys in use, as in a cache; None for all. Query k of m is
            that of key ``used - m + k``, and sees it and the keys before. Then there is no
            `attn_mask`.
        dropout_p: the probability of False in the mask.

    Returns:
        Tensor of shape (..., m, l). On a GPU without a dropout mask `flash_attention` computes it.
    """
    group = check_attention("dot_product_attention", query, key, value, attn_mask, enable_gqa)
    if used is not None:
        key, value, attn_mask = _in_use(xp, query, key, value, used)
    if dropout_mask is None and _is_fused(query, key, value, attn_mask):
        options = {"is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
        return xp.flash_attention(query, key, value, attn_mask, **options)[0]
    options = is_causal, scale, group, dropout_p
    return _with_scores(xp, query, key, value, attn_mask, dropout_mask, *options)


@through_float32
def _with_scores(
    xp, query, key, value, attn_mask, dropout_mask, is_causal, scale, group, dropout_p
):
    scores, mask = scores_of(xp, query, key, attn_mask, scale, group)
    p = xp.masked_softmax(scores, mask, is_causal=is_causal)
    if dropout_mask is not None:
        p = xp.where(dropout_mask, p * (1 / (1 - dropout_p) if dropout_p < 1 else 0.0), 0)
    return averaged(xp, p, value, group)


@saying_where
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """softmax(query @ key^T * scale) @ value: each query's mean of the values.

    Args:
        query: array of shape (..., m, k).
        key: array of shape (..., n, k).
        value: array of shape (..., n, l). Stacks are broadcast.
        attn_mask: array that broadcasts with the scores (..., m, n): booleans, True where a key
            takes part, or numbers that are added to the scores, and get a gradient; None for no
            mask.
        dropout_p: probability with which a weight is set to 0 (and the others scaled up). Give 0
            when not in training. A GPU draws the same numbers as the CPU, in the kernel and again
            for the gradient, and keeps no mask.
        is_causal: whether query i sees only the first i + 1 keys; together with a mask, only the
            keys that both keep.
        scale: number; None for 1 / sqrt(k).
        enable_gqa: whether axis -3 holds heads, and `key` and `value` may have fewer: each of their
            heads is shared by the same number of consecutive heads of `query`.
        generator: generator of the dropout; the default generator if None.

    Returns:
        Tensor of shape (..., m, l). It is 0 for a query that sees no key, and has no gradient
        there (torch gives NaN for some of these).

    Raises:
        ShapeError: the shapes do not fit.
        DTypeError: `attn_mask` is neither boolean nor floating point.
        ArgumentError: `dropout_p` is not from 0 to 1.

    Vaswani et al. 2017, "Attention Is All You Need"; grouped heads: Ainslie et al. 2023.

    >>> q, k, v = [[1.0], [1.0]], [[0.0], [0.0]], [[2.0], [4.0]]
    >>> print(gg.nn.scaled_dot_product_attention(q, k, v, is_causal=True))
    [[2.]
     [3.]]
    """
    check_probability("scaled_dot_product_attention", "dropout_p", dropout_p)
    options = {"is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    query, key, value = tensor(query), tensor(key), tensor(value)
    attn_mask = None if attn_mask is None else tensor(attn_mask)
    if not dropout_p or min(query.ndim, key.ndim) < 2:
        return TENSOR.dot_product_attention(query, key, value, attn_mask, **options)
    stacks = [query.shape[:-2]] if enable_gqa else [query.shape[:-2], key.shape[:-2]]
    try:
        stack = np.broadcast_shapes(*stacks)
    except ValueError as error:
        raise ShapeError(
            f"scaled_dot_product_attention: the stacks of query {query.shape} and key {key.shape} "
            "do not broadcast."
        ) from error
    weights = (*stack, query.shape[-2], key.shape[-2])
    arrays = query, key, value, attn_mask
    options["dropout_p"] = dropout_p
    # kernels draw for each weight of the result, so several values must not share one
    if dropout_p < 1 and weights_of(*arrays) == weights and _is_fused(*arrays):
        place = (generator or default_generator())._stream(math.prod(weights), query.device)
        if place is not None:
            return TENSOR.flash_attention(*arrays, place, **options)[0]
    keep = kept(query, weights, dropout_p, generator)
    return TENSOR.dot_product_attention(*arrays, keep, **options)
