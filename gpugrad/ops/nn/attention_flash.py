"""Attention whose kernels never hold the scores, and its gradients.

The formulas compute the scores. They are the reference for the kernels, run where the kernels
decline, and provide second derivatives.
"""

import math

import numpy as np

from gpugrad.autodiff.batched import loop, stack
from gpugrad.core.samples import uniform
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.kernels.by_hand import attention as kernels
from gpugrad.ops.arrays.shape import sum_to_ref
from gpugrad.ops.nn import attention
from gpugrad.ops.nn.attention import averaged, regrouped, scores_of, weights_of
from gpugrad.registry.on_arrays import wide
from gpugrad.registry.record import OPS, op


def _check(name, query, key, value, attn_mask, enable_gqa):
    group = attention.check_attention(name, query, key, value, attn_mask, enable_gqa)
    dtypes = [x.dtype for x in (query, key, value, attn_mask) if x is not None]
    if len({d for d in dtypes if d.kind != "b"}) > 1:
        raise DTypeError(
            f"{name}: query, key, value and additive masks must have one dtype, got "
            f"{', '.join(map(str, dtypes))}. Cast them with gg.astype."
        )
    return group


def _masked_scores(xp, query, key, attn_mask, is_causal, scale, group):
    """The scores; -inf where a key takes no part."""
    scores, mask = scores_of(xp, query, key, attn_mask, scale, group)
    if is_causal:
        lower = xp.tril(xp.logical_or(xp.isnan(scores), True))  # a triangle of True
        mask = lower if mask is None else xp.logical_and(mask, lower)
    return scores if mask is None else xp.where(mask, scores, -math.inf)


def _probabilities(xp, scores, lse):
    """exp(scores - lse), 0 where the score is -inf; no gradient meets inf - inf there."""
    seen = xp.not_equal(scores, -math.inf)
    lse = xp.expand_dims(xp.where(xp.equal(lse, -math.inf), 0, lse), axis=-1)
    return xp.where(seen, xp.exp(xp.where(seen, scores - lse, 0)), 0)


def _keep(xp, stream, dropout_p, query, key, value, attn_mask):
    """Marks the weights that are kept, drawn as in the kernels, in the shape of the weights."""
    if stream is None:
        return None
    if not 0 <= dropout_p < 1:
        raise ArgumentError(f"flash_attention: dropout_p={dropout_p} is not from 0 to below 1.")
    shape = weights_of(query, key, value, attn_mask)
    return xp.stream_mask(stream, shape=shape, p=dropout_p)


def _dropped(xp, p, keep, dropout_p):
    return p if keep is None else xp.where(keep, p * (1 / (1 - dropout_p)), 0)


def _gradient_by(of):
    def rule(
        xp, g, query, key, value, attn_mask, stream, out, is_causal, scale, enable_gqa, dropout_p
    ):
        arrays = g[0], query, key, value, out[0], out[1], g[1], attn_mask, stream
        options = {"is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
        return xp.flash_attention_grad(*arrays, of=of, dropout_p=dropout_p, **options)

    return rule


def _keep_ref(stream, dropout_p, query, key, value, attn_mask):
    """1 / (1 - p) and 0; 1 without dropout."""
    if stream is None:
        return np.ones(())
    shape = weights_of(query, key, value, attn_mask)
    words = np.random.Philox(key=stream[:2], counter=stream[2] - np.uint64(1))
    kept = np.random.Generator(words).random(shape, np.float32) >= np.float32(dropout_p)
    return kept / (1 - dropout_p)


def _flash_ref(query, key, value, attn_mask=None, stream=None, dropout_p=0.0, **options):
    keep = None if stream is None else _keep_ref(stream, dropout_p, query, key, value, attn_mask)
    out = attention.attention_ref(query, key, value, attn_mask, keep, **options)
    scores = attention.scores_ref(query, key, attn_mask, **options)
    return out, np.broadcast_to(np.log(np.sum(np.exp(scores), axis=-1)), out.shape[:-1])


def _samples(rng):
    yield [uniform(rng, 2, 3), uniform(rng, 3, 3), uniform(rng, 3, 2)], {}
    some = np.array([[True, True, False], [False, True, True]])
    yield [*(uniform(rng, 2, n, 2) for n in (2, 3, 3)), some], {"scale": 0.3}
    heads = [uniform(rng, h, 2, 1) for h in (4, 2, 2)]
    yield [*heads, uniform(rng, 4, 2, 2)], {"enable_gqa": True, "is_causal": True}
    yield [uniform(rng, 2, 1, 3, 2), uniform(rng, 1, 2, 2), uniform(rng, 2, 1)], {"is_causal": True}
    heads = [uniform(rng, h, 3, 2) for h in (4, 2, 2)]
    dropped = [uniform(rng, 4, 3, 3), np.array([1, 2, 3, 0], np.uint64)]
    yield [*heads, *dropped], {"enable_gqa": True, "is_causal": True, "dropout_p": 0.4}


_ONES = np.ones((2, 2))
_ERRORS = [
    ([np.ones((2, 3)), np.ones((2, 2)), np.ones((2, 3))], {}, ShapeError, r"key \(2, 2\)"),
    ([*[_ONES] * 3, np.ones((2, 2), int)], {}, DTypeError, "attn_mask is int64"),
    ([*[_ONES] * 2, np.ones((2, 2), "f")], {}, DTypeError, "float64, float64, float32"),
    ([np.ones((3, 2, 2)), *[np.ones((2, 2, 2))] * 2], {"enable_gqa": True}, ShapeError, "3 query"),
]


def _batch(xp, batched, *arrays, **params):
    """All at once; with dropout one by one, as each example keeps the numbers it has alone."""
    rule = stack if arrays[-1] is None else loop
    return rule(OPS["flash_attention"])(xp, batched, *arrays, **params)


@op(
    vjp=[*(_gradient_by(of) for of in ("query", "key", "value", "attn_mask")), None],
    arrays=("query", "key", "value", "attn_mask", "stream"),
    outputs=2,
    unused=(1,),
    native_half=True,
    batch=_batch,
    cuda=kernels.forward,
    ref=_flash_ref,
    samples=_samples,
    errors=_ERRORS,
    mixed="half",
)
def flash_attention(
    xp, query, key, value, /, attn_mask=None, stream=None, *, is_causal=False, scale=None,
    enable_gqa=False, dropout_p=0.0,
):  # fmt: skip
    """Attention, and the log of each query's sum of exponentials; `dot_product_attention` calls it.

    The tape keeps only that logarithm, not the probabilities; the gradient recomputes them. On a
    GPU they are never in memory all at once, so memory grows with m + n, not with m n.

    Args:
        stream: uint64 array (4,) as for `stream_mask`, the source of the dropout's numbers, one
            for each probability in the order of (..., m, n); None for no dropout.
        dropout_p: probability with which a weight becomes 0, at least 0 and below 1.

    Returns:
        Tensor of shape (..., m, l), and one of shape (..., m), in float32 for 16-bit floats:
        log(sum(exp(scores))), which is -inf for a query that sees no key.

    Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning".
    """
    group = _check("flash_attention", query, key, value, attn_mask, enable_gqa)
    dtype, keep = query.dtype, _keep(xp, stream, dropout_p, query, key, value, attn_mask)
    query, key, value, attn_mask = (wide(xp, x) for x in (query, key, value, attn_mask))
    scores = _masked_scores(xp, query, key, attn_mask, is_causal, scale, group)
    lse = xp.logsumexp(scores, axis=-1)
    p = _dropped(xp, _probabilities(xp, scores, lse), keep, dropout_p)
    out = averaged(xp, p, value, group)
    return xp.astype(out, dtype), xp.broadcast_to(lse, out.shape[:-1])


def _grad_samples(rng):
    """Results of `flash_attention`, perturbed, as the gradient is a function of them too."""
    for of in ("query", "key", "value", "attn_mask"):
        for args, keywords in _samples(rng):
            if of == "attn_mask" and (len(args) < 4 or args[3].dtype == bool):
                continue
            out, lse = _flash_ref(*args, **keywords)
            g, g_lse = uniform(rng, *out.shape), uniform(rng, *lse.shape)
            out = out + uniform(rng, *out.shape)
            lse = lse + uniform(rng, *lse.shape, low=0.0)
            yield [g, *args[:3], out, lse, g_lse, *args[3:]], {"of": of, **keywords}
            if len(args) < 4:
                yield [g, *args, out, lse], {"of": of, **keywords}


def _grad_ref(g, query, key, value, out, lse, g_lse=0.0, attn_mask=None, stream=None, **params):
    of, scale = params["of"], params.get("scale")
    inputs = {"query": query, "key": key, "value": value, "attn_mask": attn_mask}
    group = query.shape[-3] // key.shape[-3] if params.get("enable_gqa") else 1
    keys, values = (np.repeat(x, group, axis=-3) if group > 1 else x for x in (key, value))
    s = attention.scores_ref(query, keys, attn_mask, params.get("is_causal", False), scale)
    p = np.exp(s - lse[..., None])
    keep = _keep_ref(stream, params.get("dropout_p", 0.0), query, key, value, attn_mask)
    ds = p * (keep * (g @ np.swapaxes(values, -1, -2)) + (g_lse - np.sum(g * out, -1))[..., None])
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    d = {
        "query": lambda: ds @ keys * scale,
        "key": lambda: np.swapaxes(ds, -1, -2) @ query * scale,
        "value": lambda: np.swapaxes(p * keep, -1, -2) @ g,
        "attn_mask": lambda: ds,
    }[of]()
    if group > 1 and of in ("key", "value"):
        d = d.reshape(*d.shape[:-3], -1, group, *d.shape[-2:]).sum(-3)
    return sum_to_ref(d, inputs[of].shape)


@op(
    arrays=("g", "query", "key", "value", "out", "lse", "g_lse", "attn_mask", "stream"),
    native_half=True,
    opens=None,
    cuda=kernels.grad,
    ref=_grad_ref,
    samples=_grad_samples,
    errors=[
        ([*[_ONES] * 5, _ONES[0]], {"of": "mask"}, ArgumentError, "of='mask'"),
        ([_ONES, np.ones((2, 3)), *[_ONES] * 3, _ONES[0]], {"of": "key"}, ShapeError, r"\(2, 3\)"),
    ],
)
def flash_attention_grad(
    xp, g, query, key, value, out, lse, /, g_lse=None, attn_mask=None, stream=None, *, of,
    is_causal=False, scale=None, enable_gqa=False, dropout_p=0.0,
):  # fmt: skip
    """The gradient of `flash_attention` by one of its arguments.

    Args:
        of: the argument to differentiate by: "query", "key", "value" or "attn_mask".
    """
    name = "flash_attention_grad"
    group = _check(name, query, key, value, attn_mask, enable_gqa)
    inputs = {"query": query, "key": key, "value": value, "attn_mask": attn_mask}
    if inputs.get(of) is None:
        raise ArgumentError(f"{name}: of={of!r} is none of the arguments {[*inputs]}, or is None.")
    shape, dtype = inputs[of].shape, inputs[of].dtype
    keep = _keep(xp, stream, dropout_p, query, key, value, attn_mask)
    g, g_lse, query, key, value, out, lse, attn_mask = (
        wide(xp, x) for x in (g, g_lse, query, key, value, out, lse, attn_mask)
    )
    p = _probabilities(xp, _masked_scores(xp, query, key, attn_mask, is_causal, scale, group), lse)
    if of == "value":
        d = _gathered(xp, _dropped(xp, p, keep, dropout_p), g, group)
    else:
        dp = _dropped(xp, _gathered_scores(xp, g, value, group), keep, dropout_p)
        delta = xp.sum(g * out, axis=-1)
        ds = p * (dp - xp.expand_dims(delta if g_lse is None else delta - g_lse, axis=-1))
        factor = max(query.shape[-1], 1) ** -0.5 if scale is None else scale
        if of == "query":
            d = averaged(xp, ds, key, group) * factor
        elif of == "key":
            d = _gathered(xp, ds, query, group) * factor
        else:
            d = ds
    return xp.astype(xp.sum_to(d, shape), dtype)


def _gathered_scores(xp, g, value, group):
    """`g` times the transposed values of its head's group."""
    return scores_of(xp, g, value, None, 1.0, group)[0]


def _gathered(xp, p, x, group):
    """The transposed `p` times `x`, summed over the heads of a group."""
    if group > 1:
        heads, m = p.shape[-3] // group, p.shape[-2]
        p, x = (regrouped(xp, a, heads, group * m) for a in (p, x))
    return xp.matmul(xp.matrix_transpose(p), x)
