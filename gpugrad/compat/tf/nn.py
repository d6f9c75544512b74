"""tf.nn: channels last by default, padding SAME or VALID, and TensorFlow's parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import math
from gpugrad.compat.tf.arrays import ensure_rank
from gpugrad.compat.tf.convert import ints, layout, op, ops, tensor, together
from gpugrad.compat.tf.random import stream
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError
from gpugrad.ops.nn.pooling_max import window_max

F = gg.nn.functional


def _silu(features, beta=1.0) -> Tensor:
    return gg.silu(features) if beta == 1 else features * gg.sigmoid(beta * features)


@op
def bias_add(value, bias, data_format=None) -> Tensor:
    if data_format and not layout("bias_add", data_format):
        bias = gg.reshape(bias, (-1,) + (1,) * (value.ndim - 2))
    return value + bias


@op
def dropout(x, rate=0.5, noise_shape=None, seed=None) -> Tensor:
    shape = None if noise_shape is None else ints(noise_shape)
    return F.dropout(x, float(rate), noise_shape=shape, generator=stream(seed))


@op
def embedding_lookup(params, ids, max_norm=None) -> Any:
    rows = gg.gather(params, ids)
    if max_norm is None:
        return rows
    return rows * gg.minimum(max_norm / gg.linalg.norm(rows, axis=-1, keepdims=True), 1.0)


@op
def batch_normalization(
    x, mean=..., variance=..., offset=..., scale=..., variance_epsilon=...
) -> Tensor:
    factor = gg.rsqrt(tensor(variance) + variance_epsilon)
    result = (x - mean) * (factor if scale is None else factor * scale)
    return result if offset is None else result + offset


def _softmax_cross_entropy(labels=None, logits=None, axis=-1) -> Tensor:
    logits, labels = together(logits, labels)
    return gg.softmax_cross_entropy(logits, gg.astype(labels, logits.dtype, copy=False), axis=axis)


def _log_poisson_loss(targets, log_input, compute_full_loss=False) -> Tensor:
    loss = gg.exp(log_input) - log_input * targets
    if not compute_full_loss:
        return loss
    stirling = targets * gg.log(targets) - targets + 0.5 * gg.log(2 * gg.pi * targets)
    return loss + gg.where(targets > 1, stirling, gg.zeros_like(loss))


def _spatial(value, n: int, last: bool) -> tuple[int, ...]:
    """Numbers of the spatial axes: of one number, of `n`, or of all n + 2 axes."""
    found = ints(value)
    if len(found) == 1:
        return found * n
    return found if len(found) == n else found[1:-1] if last else found[2:]


def _padding(
    name: str,
    padding,
    lengths: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    last: bool,
) -> list[tuple[int, int]]:
    """How many elements TensorFlow adds before and after each spatial axis."""
    if not isinstance(padding, str):
        given = [ints(p) for p in padding]
        return [(p[0], p[1]) for p in (given[1:-1] if last else given[2:])]
    if padding.upper() == "VALID":
        return [(0, 0)] * len(size)
    if padding.upper() != "SAME":
        raise ArgumentError(f"{name}: padding={padding!r} is not 'SAME', 'VALID' or pairs of ints.")
    pairs = []
    for length, k, s, d in zip(lengths, size, stride, dilation, strict=True):
        total = max((-(-length // s) - 1) * s + (k - 1) * d + 1 - length, 0)
        pairs.append((total // 2, total - total // 2))
    return pairs


def _first(x: Tensor, last: bool) -> Tensor:
    return gg.moveaxis(x, -1, 1) if last else x


def _back(x: Tensor, last: bool) -> Tensor:
    return gg.moveaxis(x, 1, -1) if last else x


def _kernels(filters: Tensor, n: int) -> Tensor:
    return gg.permute_dims(filters, (n + 1, n, *(0, 1, 2)[:n]))


def _convolution(n: int) -> Callable[..., Tensor]:
    """Convolution over n axes; filters of shape (*window, channels in, out)."""
    f: Any = getattr(F, f"conv{n}d")

    def convolve(
        input, filters, strides=1, padding="VALID", data_format=None, dilations=None
    ) -> Tensor:
        name, last = f"conv{n}d", layout(f"conv{n}d", data_format)
        x = _first(ensure_rank(name, input, n + 2), last)
        w = _kernels(ensure_rank(name, filters, n + 2), n)
        stride, dilation = _spatial(strides, n, last), _spatial(dilations or 1, n, last)
        pairs = _padding(name, padding, x.shape[2:], w.shape[2:], stride, dilation, last)
        if all(a == b for a, b in pairs):
            rest: Any = tuple(a for a, _ in pairs)
        else:
            x, rest = gg.pad(x, [(0, 0), (0, 0), *pairs]), 0
        return _back(f(x, w, None, stride, rest, dilation, x.shape[1] // w.shape[1]), last)

    return convolve


@op
def depthwise_conv2d(
    input, filter, strides=1, padding="VALID", data_format=None, dilations=None
) -> Tensor:
    w = gg.reshape(filter, (*filter.shape[:2], 1, -1))
    return _OPS["conv2d"](input, w, strides, padding, data_format, dilations)


@op
def separable_conv2d(
    input,
    depthwise_filter,
    pointwise_filter,
    strides=1,
    padding="VALID",
    data_format=None,
    dilations=None,
) -> Tensor:
    depth = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return _OPS["conv2d"](depth, pointwise_filter, 1, "VALID", data_format)


def _blocks(to_depth: bool) -> Callable[..., Tensor]:
    """Square blocks of pixels as channels, or channels as blocks."""

    def move(input, block_size=..., data_format=None) -> Tensor:
        last, b = layout("space_to_depth", data_format), int(block_size)
        x = input if last else gg.moveaxis(input, 1, -1)
        n, h, w, c = x.shape
        if to_depth:
            parts = gg.reshape(x, (n, h // b, b, w // b, b, c))
            y = gg.reshape(gg.permute_dims(parts, (0, 1, 3, 2, 4, 5)), (n, h // b, w // b, -1))
        else:
            parts = gg.reshape(x, (n, h, w, b, b, -1))
            y = gg.reshape(gg.permute_dims(parts, (0, 1, 3, 2, 4, 5)), (n, h * b, w * b, -1))
        return y if last else gg.moveaxis(y, -1, 1)

    return move


def _transposed(n: int) -> Callable[..., Tensor]:
    """The transpose of a convolution; filters of shape (*window, channels out, in)."""
    f: Any = getattr(F, f"conv_transpose{n}d")

    def convolve(
        input,
        filters,
        output_shape=...,
        strides=1,
        padding="SAME",
        data_format=None,
        dilations=None,
    ) -> Tensor:
        last = layout(f"conv{n}d_transpose", data_format)
        x, w, stride = _first(input, last), _kernels(filters, n), _spatial(strides, n, last)
        dilation = _spatial(dilations or 1, n, last)
        lengths = ints(output_shape)
        lengths = lengths if len(lengths) == n else lengths[1:-1] if last else lengths[2:]
        pairs = _padding("conv_transpose", padding, lengths, w.shape[2:], stride, dilation, last)
        full = f(x, w, None, stride, dilation=dilation)  # of all that the windows reach
        ends = [(m + a + b, k) for m, (a, b), k in zip(lengths, pairs, full.shape[2:], strict=True)]
        full = gg.pad(full, [(0, 0), (0, 0), *((0, max(m - k, 0)) for m, k in ends)])
        index = tuple(slice(a, a + m) for m, (a, _) in zip(lengths, pairs, strict=True))
        return _back(full[(slice(None), slice(None), *index)], last)

    return convolve


def _max_windows(x: Tensor, n: int, size: Any, stride: Any, pairs: Any) -> Tensor:
    return window_max(x, size=size, step=stride, dilation=(1,) * n, padding=tuple(pairs))


def _mean_windows(x: Tensor, n: int, size: Any, stride: Any, pairs: Any) -> Tensor:
    """The mean of each window; elements that were added do not count."""
    f: Any = getattr(F, f"avg_pool{n}d")
    if not any(map(any, pairs)):
        return f(x, size, stride)
    widths = [(0, 0), (0, 0), *pairs]
    inside = gg.pad(gg.ones((1, 1, *x.shape[2:]), dtype=x.dtype), widths)
    return f(gg.pad(x, widths), size, stride) / f(inside, size, stride)


def _pool(name: str, f: Callable[..., Tensor]) -> dict[str, Callable[..., Tensor]]:
    """Pooling over 1, 2, 3 axes, and over as many as its argument has."""

    def pool(input, ksize=1, strides=None, padding="VALID", data_format=None) -> Tensor:
        n, last = input.ndim - 2, layout(name, data_format)
        x, size = _first(input, last), _spatial(ksize, n, last)
        stride = size if strides is None else _spatial(strides, n, last)
        pairs = _padding(name, padding, x.shape[2:], size, stride, (1,) * n, last)
        return _back(f(x, n, size, stride, pairs), last)

    return dict.fromkeys((name, f"{name}1d", f"{name}2d", f"{name}3d"), pool)


def _lrn(input, depth_radius=5, bias=1, alpha=1, beta=0.5) -> Tensor:
    size = 2 * depth_radius + 1
    return F.local_response_norm(input, size, alpha=alpha * size, beta=beta, k=bias, axis=-1)


@op
def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None) -> Tensor:
    loss = per_example_loss if sample_weight is None else per_example_loss * sample_weight
    return gg.sum(loss) / (loss.size if global_batch_size is None else global_batch_size)


_shared = "softmax log_softmax l2_normalize top_k in_top_k softplus softsign zero_fraction"
_OPS: dict[str, Any] = {name: math._OPS[name] for name in _shared.split()} | ops(
    """features: elu relu relu6 selu
    x: log_sigmoid sigmoid tanh""",
    leaky_relu=lambda features, alpha=0.2: gg.leaky_relu(features, alpha),
    gelu=lambda features, approximate=False: gg.gelu(
        features, approximate="tanh" if approximate else "none"
    ),
    silu=_silu,
    swish=_silu,
    crelu=lambda features, axis=-1: gg.concat([gg.relu(features), gg.relu(-features)], axis=axis),
    moments=lambda x, axes, shift=None, keepdims=False: (
        gg.mean(x, axis=axes, keepdims=keepdims),
        gg.var(x, axis=axes, keepdims=keepdims),
    ),
    l2_loss=lambda t: gg.sum(gg.square(t)) / 2,
    sparse_softmax_cross_entropy_with_logits=lambda labels=None, logits=None: (
        gg.sparse_softmax_cross_entropy(tensor(logits), tensor(labels))
    ),
    softmax_cross_entropy_with_logits=_softmax_cross_entropy,
    softmax_cross_entropy_with_logits_v2=_softmax_cross_entropy,
    sigmoid_cross_entropy_with_logits=lambda labels=None, logits=None: (
        gg.binary_cross_entropy_with_logits(*together(logits, labels))
    ),
    weighted_cross_entropy_with_logits=lambda labels, logits, pos_weight: (
        (1 - labels) * logits + (1 + (pos_weight - 1) * labels) * gg.softplus(-logits)
    ),
    log_poisson_loss=_log_poisson_loss,
    space_to_depth=_blocks(True),
    depth_to_space=_blocks(False),
    atrous_conv2d=lambda value, filters, rate=..., padding=...: _OPS["conv2d"](
        value, filters, 1, padding, dilations=rate
    ),
    conv1d=_convolution(1),
    conv2d=_convolution(2),
    conv3d=_convolution(3),
    conv1d_transpose=_transposed(1),
    conv2d_transpose=_transposed(2),
    conv3d_transpose=_transposed(3),
    **_pool("max_pool", _max_windows),
    **_pool("avg_pool", _mean_windows),
    local_response_normalization=_lrn,
    lrn=_lrn,
    scale_regularization_loss=lambda regularization_loss: gg.sum(regularization_loss),
)
__getattr__, __dir__ = forwarding(__name__, _OPS, own=globals())
