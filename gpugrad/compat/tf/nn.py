"""tf.nn: channels last by default, padding SAME or VALID, and TensorFlow's parameters."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import math
from gpugrad.compat.tf.convert import axes, ints, layout, table, tensor, together
from gpugrad.compat.tf.random import stream
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError
from gpugrad.ops.nn.pooling_max import window_max

_OPS = table("elu relu relu6 selu", "features") | table("log_sigmoid sigmoid tanh", "x")

F = gg.nn.functional
softmax, log_softmax = math.softmax, math.log_softmax
l2_normalize, top_k, in_top_k = math.l2_normalize, math.top_k, math.in_top_k
softplus, softsign = math._OPS["softplus"], math._OPS["softsign"]


def leaky_relu(features, alpha=0.2, name=None) -> Tensor:
    """`features`, or `alpha` times them where they are below 0."""
    return gg.leaky_relu(tensor(features), alpha)


def gelu(features, approximate=False, name=None) -> Tensor:
    """The Gaussian error linear unit."""
    return gg.gelu(tensor(features), approximate="tanh" if approximate else "none")


def silu(features, beta=1.0) -> Tensor:
    """``features * sigmoid(beta * features)``."""
    x = tensor(features)
    return gg.silu(x) if beta == 1 else x * gg.sigmoid(beta * x)


swish = silu


def crelu(features, axis=-1, name=None) -> Tensor:
    """Positive and negative parts, one after the other along an axis."""
    x = tensor(features)
    return gg.concat([gg.relu(x), gg.relu(-x)], axis=axis)


def bias_add(value, bias, data_format=None, name=None) -> Tensor:
    """A bias added to each channel."""
    value, bias = together(value, bias)
    if data_format and not layout("bias_add", data_format):
        bias = gg.reshape(bias, (-1,) + (1,) * (value.ndim - 2))
    return value + bias


def dropout(x, rate=0.5, noise_shape=None, seed=None, name=None, **v1) -> Tensor:
    """Elements set to 0 with probability `rate`, the others scaled by 1 / (1 - rate)."""
    shape = None if noise_shape is None else ints(noise_shape)
    return F.dropout(tensor(x), float(rate), noise_shape=shape, generator=stream(seed))


def embedding_lookup(params, ids, max_norm=None, name=None, **v1) -> Any:
    """Rows of a table."""
    rows = gg.gather(params if isinstance(params, gg.Variable) else tensor(params), tensor(ids))
    if max_norm is None:
        return rows
    return rows * gg.minimum(max_norm / gg.linalg.norm(rows, axis=-1, keepdims=True), 1.0)


def moments(x, axes, shift=None, keepdims=False, name=None, **v1) -> Any:
    """Mean and variance along axes."""
    x, axis, keepdims = tensor(x), _axes(axes), v1.get("keep_dims", keepdims)
    return gg.mean(x, axis=axis, keepdims=keepdims), gg.var(x, axis=axis, keepdims=keepdims)


_axes = axes


def batch_normalization(
    x, mean, variance, offset, scale, variance_epsilon: float, name=None
) -> Tensor:
    """``scale * (x - mean) / sqrt(variance + variance_epsilon) + offset``."""
    factor = gg.rsqrt(tensor(variance) + variance_epsilon)
    factor = factor if scale is None else factor * scale
    result = (tensor(x) - mean) * factor
    return result if offset is None else result + offset


def l2_loss(t, name=None) -> Tensor:
    """Half of the sum of squares."""
    return gg.sum(gg.square(tensor(t))) / 2


def sparse_softmax_cross_entropy_with_logits(labels=None, logits=None, name=None, **v1) -> Tensor:
    """Cross entropy of class numbers and of softmax along the last axis."""
    return gg.sparse_softmax_cross_entropy(tensor(logits), tensor(labels))


def softmax_cross_entropy_with_logits(labels=None, logits=None, axis=-1, name=None, **v1) -> Tensor:
    """Cross entropy of probabilities and of softmax along an axis."""
    logits, labels = together(logits, labels)
    return gg.softmax_cross_entropy(logits, gg.astype(labels, logits.dtype, copy=False), axis=axis)


softmax_cross_entropy_with_logits_v2 = softmax_cross_entropy_with_logits


def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None, **v1) -> Tensor:
    """Cross entropy of probabilities and of the sigmoid of logits, elementwise."""
    logits, labels = together(logits, labels)
    return gg.binary_cross_entropy_with_logits(logits, labels)


def weighted_cross_entropy_with_logits(labels, logits, pos_weight, name=None) -> Tensor:
    """`sigmoid_cross_entropy_with_logits` whose positive part has a weight."""
    logits, labels = together(logits, labels)
    weight = 1 + (pos_weight - 1) * labels
    return (1 - labels) * logits + weight * gg.softplus(-logits)


def log_poisson_loss(targets, log_input, compute_full_loss=False, name=None) -> Tensor:
    """The negative logarithm of Poisson's probabilities."""
    log_input, targets = together(log_input, targets)
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


def _padded(x: Tensor, pairs: list[tuple[int, int]]) -> tuple[Tensor, Any]:
    """`x` with what is not the same at both ends, and the padding that is left for the op."""
    if all(a == b for a, b in pairs):
        return x, tuple(a for a, _ in pairs)
    return gg.pad(x, [(0, 0), (0, 0), *pairs]), 0


def _convolution(name: str, n: int) -> Callable[..., Tensor]:
    f: Any = getattr(F, f"conv{n}d")

    def convolve(
        input,
        filters=None,
        strides=1,
        padding="VALID",
        data_format=None,
        dilations=None,
        name=None,
        **v1,
    ) -> Tensor:
        x, w = together(input, v1.get("filter", filters))
        last = layout(f"conv{n}d", data_format)
        x = _first(x, last)
        stride, dilation = (
            _spatial(v1.get("stride", strides), n, last),
            _spatial(dilations or 1, n, last),
        )
        pairs = _padding(f"conv{n}d", padding, x.shape[2:], w.shape[:n], stride, dilation, last)
        x, rest = _padded(x, pairs)
        w = gg.permute_dims(w, (n + 1, n, *_upto(n)))
        groups = x.shape[1] // w.shape[1]
        return _back(f(x, w, None, stride, rest, dilation, groups), last)

    convolve.__doc__ = f"Convolution over {n} axes; filters of shape (*window, channels in, out)."
    return convolve


def _upto(n: int) -> tuple[int, ...]:
    return tuple(i for i in (0, 1, 2) if i < n)


conv1d, conv2d, conv3d = (_convolution(f"conv{n}d", n) for n in (1, 2, 3))


def depthwise_conv2d(
    input, filter, strides=1, padding="VALID", data_format=None, dilations=None, name=None
) -> Tensor:
    """Convolution of each channel by its own filters, of shape (*window, channels, multiplier)."""
    w = tensor(filter)
    w = gg.reshape(w, (*w.shape[:2], 1, -1))
    return conv2d(input, w, strides, padding, data_format, dilations)


def _transposed(n: int) -> Callable[..., Tensor]:
    f: Any = getattr(F, f"conv_transpose{n}d")

    def convolve(
        input,
        filters=None,
        output_shape=None,
        strides=1,
        padding="SAME",
        data_format=None,
        dilations=None,
        name=None,
        **v1,
    ) -> Tensor:
        x, w = together(input, v1.get("filter", filters))
        last = layout(f"conv{n}d_transpose", data_format)
        x, stride = _first(x, last), _spatial(strides, n, last)
        lengths = ints(output_shape)
        lengths = lengths if len(lengths) == n else lengths[1:-1] if last else lengths[2:]
        pairs = _padding("conv_transpose", padding, lengths, w.shape[:n], stride, (1,) * n, last)
        w = gg.permute_dims(w, (n + 1, n, *_upto(n)))
        full = f(x, w, None, stride)  # of all that the windows reach
        missing = [
            max(m + a + b - k, 0)
            for m, (a, b), k in zip(lengths, pairs, full.shape[2:], strict=True)
        ]
        if any(missing):
            full = gg.pad(full, [(0, 0), (0, 0), *((0, m) for m in missing)])
        index = tuple(slice(a, a + m) for m, (a, _) in zip(lengths, pairs, strict=True))
        return _back(full[(slice(None), slice(None), *index)], last)

    convolve.__doc__ = f"The transpose of conv{n}d; filters of shape (*window, channels out, in)."
    return convolve


conv1d_transpose, conv2d_transpose, conv3d_transpose = (_transposed(n) for n in (1, 2, 3))


def _windows(input, ksize, strides, padding, data_format, n: int, name: str) -> Any:
    x, last = tensor(input), layout(name, data_format)
    x = _first(x, last)
    size = _spatial(ksize, n, last)
    stride = _spatial(ksize if strides is None else strides, n, last)
    return x, last, size, stride, _padding(name, padding, x.shape[2:], size, stride, (1,) * n, last)


def _max_pool(n: int) -> Callable[..., Tensor]:
    def pool(
        input, ksize, strides=None, padding="VALID", data_format=None, name=None, **v1
    ) -> Tensor:
        x, last, size, stride, pairs = _windows(
            input, ksize, strides, padding, data_format, n, f"max_pool{n}d"
        )
        return _back(
            window_max(x, size=size, step=stride, dilation=(1,) * n, padding=tuple(pairs)), last
        )

    pool.__doc__ = f"The maximum of each window on {n} axes."
    return pool


def _avg_pool(n: int) -> Callable[..., Tensor]:
    def pool(
        input, ksize, strides=None, padding="VALID", data_format=None, name=None, **v1
    ) -> Tensor:
        x, last, size, stride, pairs = _windows(
            input, ksize, strides, padding, data_format, n, f"avg_pool{n}d"
        )
        f: Any = getattr(F, f"avg_pool{n}d")
        if not any(map(any, pairs)):
            return _back(f(x, size, stride), last)
        widths = [(0, 0), (0, 0), *pairs]  # what is added does not count
        inside = gg.pad(gg.ones((1, 1, *x.shape[2:]), dtype=x.dtype), widths)
        return _back(f(gg.pad(x, widths), size, stride) / f(inside, size, stride), last)

    pool.__doc__ = f"The mean of each window on {n} axes; added elements do not count."
    return pool


max_pool1d, max_pool2d, max_pool3d = (_max_pool(n) for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(n) for n in (1, 2, 3))


def max_pool(
    value=None, ksize=1, strides=None, padding="VALID", data_format=None, name=None, **v1
) -> Tensor:
    """The maximum of each window."""
    x = tensor(v1.get("input", value))
    return _max_pool(x.ndim - 2)(x, ksize, strides, padding, data_format)


def avg_pool(
    value=None, ksize=1, strides=None, padding="VALID", data_format=None, name=None, **v1
) -> Tensor:
    """The mean of each window."""
    x = tensor(v1.get("input", value))
    return _avg_pool(x.ndim - 2)(x, ksize, strides, padding, data_format)


def local_response_normalization(
    input, depth_radius=5, bias=1, alpha=1, beta=0.5, name=None
) -> Tensor:
    """Each element over a power of the squares in neighbouring channels, the last axis."""
    size = 2 * depth_radius + 1
    return F.local_response_norm(
        tensor(input), size, alpha=alpha * size, beta=beta, k=bias, axis=-1
    )


lrn = local_response_normalization


def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None) -> Tensor:
    """The sum over examples, divided by the size of the whole batch."""
    loss = tensor(per_example_loss)
    loss = loss if sample_weight is None else loss * sample_weight
    return gg.sum(loss) / (loss.size if global_batch_size is None else global_batch_size)


def scale_regularization_loss(regularization_loss) -> Tensor:
    """The sum; there is one replica."""
    return gg.sum(tensor(regularization_loss))


_look_up, _names = forwarding(__name__, types.SimpleNamespace(**_OPS), own=globals())


def __getattr__(name: str) -> Any:
    return _look_up(name)


def __dir__() -> list[str]:
    return _names()
