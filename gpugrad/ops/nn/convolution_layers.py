"""Convolutions as layers use them, with torch's arguments: composites of `convolution`.

Channels come first, (N, C, *spatial). For arrays with channels last, move them there and back
with `moveaxis`.
"""

from __future__ import annotations

import numpy as np

from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.ops.arrays.windows import examples, ints, need_arrays
from gpugrad.registry.record import op

_ARRAYS = ("x", "weight", "bias")


def _with_bias(xp, name, y, bias, single):
    """Add a number to each channel, and drop the axis of examples if `x` had none."""
    if bias is not None:
        if bias.shape != y.shape[1:2]:
            raise ShapeError(
                f"{name}: the bias has shape {bias.shape}; it needs one number for each of the "
                f"{y.shape[1]} channels of the result."
            )
        y = y + xp.reshape(bias, (*bias.shape, *(1,) * (y.ndim - 2)))
    return xp.squeeze(y, 0) if single else y


def _check_weight(name, n, x, weight, axis, groups, layout):
    """The weights must have their axes, and as many channels along one of them as `x`."""
    (groups,) = ints(name, "groups", groups, 1, 1)
    fits = weight.ndim == n + 2
    if not fits or x.shape[1] != weight.shape[axis] * (groups if axis else 1):
        raise ShapeError(
            f"{name}: x {x.shape} and weight {weight.shape} do not go together with "
            f"groups={groups}: x is (N, C, *spatial), weight {layout}, with {n} spatial axes."
        )


def _convolve(xp, name, n, x, weight, bias, stride, padding, dilation, groups):
    need_arrays(name, x, weight, bias)
    x, single = examples(xp, name, n, x)
    _check_weight(name, n, x, weight, 1, groups, "(out channels, C / groups, *kernel)")
    y = xp.convolution(x, weight, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return _with_bias(xp, name, y, bias, single)


def _transposed(
    xp, name, n, x, weight, bias, stride, padding, output_padding, groups, dilation
):  # fmt: skip
    need_arrays(name, x, weight, bias)
    x, single = examples(xp, name, n, x)
    _check_weight(name, n, x, weight, 0, groups, "(C, out channels / groups, *kernel)")
    steps = ints(name, "stride", stride, n, 1)
    borders = ints(name, "padding", padding, n, 0)
    extra = ints(name, "output_padding", output_padding, n, 0)
    gaps = ints(name, "dilation", dilation, n, 1)
    if any(e >= s for e, s in zip(extra, steps, strict=True)):
        raise ArgumentError(
            f"{name}: output_padding={output_padding!r} must be less than stride={stride!r}: it "
            "chooses among the lengths that the stride makes one of."
        )
    shape = tuple(
        (length - 1) * s - 2 * p + d * (k - 1) + e + 1
        for length, k, s, p, e, d in zip(
            x.shape[2:], weight.shape[2:], steps, borders, extra, gaps, strict=True
        )
    )
    if min(shape) < 1:
        raise ShapeError(
            f"{name}: x {x.shape} and weight {weight.shape} with padding={padding!r} would give "
            f"the spatial lengths {shape}. Take a smaller padding."
        )
    y = xp.convolution_input_grad(
        x, weight, shape=shape, stride=steps, padding=borders, dilation=gaps, groups=groups
    )
    return _with_bias(xp, name, y, bias, single)


# ---- samples and references --------------------------------------------------------------


def _layer_samples(*cases):
    """Each case is the shapes of x, weight and perhaps bias, and keywords."""
    return calls(
        *((lambda rng, c=case: ([uniform(rng, *s) for s in c[:-1]], c[-1])) for case in cases)
    )


def _plain_borders(x, weight, stride, padding, dilation):
    """`padding` of a sample as pairs; "same" there has stride 1."""
    n = x.ndim - 2
    if padding == "same":
        spans = [(k - 1) * dilation for k in weight.shape[2:]]
        return stride, [(m // 2, m - m // 2) for m in spans]
    return stride, [(p, p) for p in (padding if isinstance(padding, tuple) else (padding,) * n)]


def _conv_ref(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """By the definition: one window after another."""
    if x.ndim < weight.ndim:
        return _conv_ref(x[None], weight, bias, stride, padding, dilation, groups)[0]
    stride, pairs = _plain_borders(x, weight, stride, padding, dilation)
    x = np.pad(x, [(0, 0), (0, 0), *pairs])
    span = [(k - 1) * dilation + 1 for k in weight.shape[2:]]
    places = [(length - m) // stride + 1 for length, m in zip(x.shape[2:], span, strict=True)]
    out = np.empty((x.shape[0], weight.shape[0], *places), np.result_type(x, weight))
    c, o = weight.shape[1], weight.shape[0] // groups
    for at in np.ndindex(*places):
        cut = [slice(p * stride, p * stride + m, dilation) for p, m in zip(at, span, strict=True)]
        for k in range(weight.shape[0]):
            first = k // o * c
            window = x[:, first : first + c, *cut]
            out[:, k, *at] = (window * weight[k]).sum(tuple(range(1, x.ndim)))
    return out if bias is None else out + bias.reshape(-1, *(1,) * len(span))


def _transpose_ref(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):  # fmt: skip
    """Each element of x puts a multiple of the weights into the result."""
    c, o = weight.shape[0] // groups, weight.shape[1]
    spans = [(k - 1) * dilation + 1 for k in weight.shape[2:]]
    whole = [(length - 1) * stride + m + output_padding
             for length, m in zip(x.shape[2:], spans, strict=True)]  # fmt: skip
    out = np.zeros((x.shape[0], o * groups, *whole), np.result_type(x, weight))
    for at in np.ndindex(*x.shape[2:]):
        cut = [slice(p * stride, p * stride + m, dilation) for p, m in zip(at, spans, strict=True)]
        for k in range(weight.shape[0]):
            first = k // c * o
            out[:, first : first + o, *cut] += (
                x[:, k, *at].reshape(-1, *(1,) * (x.ndim - 1)) * weight[k]
            )
    inside = [slice(padding, length - padding) for length in whole]
    out = out[:, :, *inside]
    return out if bias is None else out + bias.reshape(-1, *(1,) * len(spans))


def _wrong(n, transposed=False):
    """Calls that must fail, of a layer with `n` spatial axes."""
    x, w = np.ones((1, 2, *(3,) * n)), np.ones((2, 2, *(2,) * n))
    name = rf"conv{'_transpose' if transposed else ''}{n}d"
    more = [
        ([x, w], {"padding": 3}, ShapeError, rf"{name}.*smaller padding"),
        ([x, w], {"output_padding": 1}, ArgumentError, rf"{name}.*output_padding=1"),
    ] if transposed else [
        ([x, np.ones((2, 2, *(4,) * n))], {}, ShapeError, "does not fit"),
        ([x, w], {"padding": "full"}, ArgumentError, "'full'"),
    ]  # fmt: skip
    return [
        ([x[0, 0], w], {}, ShapeError, rf"{name}: x must have the axes"),
        ([x, w[0]], {}, ShapeError, rf"{name}.*do not go together"),
        ([x, w], {"groups": 3}, ShapeError, "groups=3"),
        ([x, w, np.ones(3)], {}, ShapeError, rf"{name}: the bias"),
        ([x, w, 1.0], {}, DTypeError, rf"{name}: arrays are needed"),
        ([x, w], {"stride": 0}, ArgumentError, "stride=0"),
        *more,
    ]  # fmt: skip


# ---- convolution -------------------------------------------------------------------------


@op(
    arrays=_ARRAYS, keeps_half=True, kinds="fc", ref=_conv_ref, errors=_wrong(1),
    samples=_layer_samples(
        ((2, 2, 4), (3, 2, 2), (3,), {}),
        ((1, 2, 5), (2, 1, 3), {"groups": 2, "padding": 2, "stride": 2, "dilation": 2}),
        ((1, 4), (1, 1, 2), {"padding": "same"}),
    ),
)  # fmt: skip
def conv1d(xp, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution along one axis: a layer's weighted sums over windows.

    Args:
        x: array of shape (N, C, L), or (C, L).
        weight: array of shape (out channels, C / groups, K).
        bias: array of shape (out channels,), added to each channel; None for none.
        stride: int, from one window to the next.
        padding: int, zeros put at each end; "valid" for none; "same" for as many windows as
            steps fit in `x`.
        dilation: int, from one element of a window to the next.
        groups: int, parts of the channels, each with weights of its own.

    Returns:
        Tensor of shape (N, out channels, number of windows), or without N.

    >>> print(gg.nn.conv1d([[[1.0, 2.0, 4.0, 8.0]]], [[[-1.0, 1.0]]]))
    [[[1. 2. 4.]]]
    """
    return _convolve(xp, "conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


@op(
    arrays=_ARRAYS, keeps_half=True, kinds="fc", ref=_conv_ref, errors=_wrong(2),
    samples=_layer_samples(
        ((1, 2, 3, 3), (1, 2, 2, 2), (1,), {}),
        ((1, 2, 3, 4), (2, 1, 2, 1), (2,), {"groups": 2, "padding": (1, 0), "stride": 2}),
        ((1, 3, 3), (1, 1, 2, 3), {"padding": "same"}),
    ),
)  # fmt: skip
def conv2d(xp, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution of images: a layer's weighted sums over windows.

    Args:
        x: array of shape (N, C, H, W), or (C, H, W).
        weight: array of shape (out channels, C / groups, height, width).
        bias: array of shape (out channels,), added to each channel; None for none.
        stride: int or a pair, from one window to the next.
        padding: int or a pair, zeros put at each side; "valid" for none; "same" for as many
            windows as steps fit in `x`.
        dilation: int or a pair, from one element of a window to the next.
        groups: int, parts of the channels, each with weights of its own.

    Returns:
        Tensor of shape (N, out channels, rows of windows, columns of them), or without N.

    >>> x = gg.reshape(gg.arange(9.0), (1, 1, 3, 3))
    >>> print(gg.nn.conv2d(x, gg.ones((1, 1, 2, 2)), stride=1, padding=0))
    [[[[ 8. 12.]
       [20. 24.]]]]
    """
    return _convolve(xp, "conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


@op(
    arrays=_ARRAYS, keeps_half=True, kinds="fc", ref=_conv_ref, errors=_wrong(3),
    samples=_layer_samples(
        ((1, 1, 2, 2, 3), (2, 1, 2, 1, 2), (2,), {}),
        ((1, 2, 2, 2, 2), (2, 1, 1, 2, 2), {"groups": 2, "padding": (0, 1, 0)}),
    ),
)  # fmt: skip
def conv3d(xp, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution of volumes: a layer's weighted sums over windows.

    Args:
        x: array of shape (N, C, D, H, W), or (C, D, H, W).
        weight: array of shape (out channels, C / groups, depth, height, width).
        bias: array of shape (out channels,), added to each channel; None for none.
        stride: int or three, from one window to the next.
        padding: int or three, zeros put at each side; "valid" for none; "same" for as many
            windows as steps fit in `x`.
        dilation: int or three, from one element of a window to the next.
        groups: int, parts of the channels, each with weights of its own.

    Returns:
        Tensor of shape (N, out channels, *number of windows), or without N.

    >>> print(gg.nn.conv3d(gg.ones((1, 1, 2, 3, 3)), gg.ones((1, 1, 2, 2, 3))))
    [[[[[12.]
        [12.]]]]]
    """
    return _convolve(xp, "conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


# ---- transposed convolution --------------------------------------------------------------


@op(
    arrays=_ARRAYS, keeps_half=True, kinds="fc", ref=_transpose_ref,
    errors=_wrong(1, transposed=True),
    samples=_layer_samples(
        ((2, 2, 3), (2, 3, 2), (3,), {}),
        ((1, 2, 3), (2, 1, 3),
         {"groups": 2, "padding": 1, "stride": 2, "output_padding": 1, "dilation": 2}),
    ),
)  # fmt: skip
def conv_transpose1d(
    xp, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):  # fmt: skip
    """Transposed convolution along one axis: the gradient of `conv1d` by its input, as a layer.

    Args:
        x: array of shape (N, C, L), or (C, L).
        weight: array of shape (C, out channels / groups, K).
        bias: array of shape (out channels,), added to each channel; None for none.
        stride: int, by which the result is longer than `x`.
        padding: int, elements cut off at each end.
        output_padding: int less than `stride`, elements more at the end.
        groups: int, parts of the channels, each with weights of its own.
        dilation: int, from one element of the kernel to the next.

    Returns:
        Tensor of shape (N, out channels, length), or without N, where length is
        ``(L - 1) * stride - 2 * padding + dilation * (K - 1) + output_padding + 1``.

    >>> print(gg.nn.conv_transpose1d([[[1.0, 2.0]]], [[[1.0, 10.0]]], stride=2))
    [[[ 1. 10.  2. 20.]]]
    """
    return _transposed(
        xp, "conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups,
        dilation,
    )  # fmt: skip


@op(
    arrays=_ARRAYS, keeps_half=True, kinds="fc", ref=_transpose_ref,
    errors=_wrong(2, transposed=True),
    samples=_layer_samples(
        ((1, 2, 2, 2), (2, 1, 2, 2), (1,), {}),
        ((1, 2, 2, 1), (2, 1, 3, 2), {"groups": 2, "padding": 1, "stride": 3, "output_padding": 2}),
    ),
)  # fmt: skip
def conv_transpose2d(
    xp, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):  # fmt: skip
    """Transposed convolution of images: the gradient of `conv2d` by its input, as a layer.

    Args:
        x: array of shape (N, C, H, W), or (C, H, W).
        weight: array of shape (C, out channels / groups, height, width).
        bias: array of shape (out channels,), added to each channel; None for none.
        stride: int or a pair, by which the result is larger than `x`.
        padding: int or a pair, elements cut off at each side.
        output_padding: int or a pair, less than `stride`: elements more at the end.
        groups: int, parts of the channels, each with weights of its own.
        dilation: int or a pair, from one element of the kernel to the next.

    Returns:
        Tensor of shape (N, out channels, rows, columns), or without N; lengths as for
        `conv_transpose1d`.

    >>> print(gg.nn.conv_transpose2d([[[[1.0, 2.0]]]], gg.ones((1, 1, 1, 2))))
    [[[[1. 3. 2.]]]]
    """
    return _transposed(
        xp, "conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups,
        dilation,
    )  # fmt: skip


@op(
    arrays=_ARRAYS, keeps_half=True, kinds="fc", ref=_transpose_ref,
    errors=_wrong(3, transposed=True),
    samples=_layer_samples(
        ((1, 1, 1, 2, 2), (1, 2, 2, 1, 2), (2,), {"stride": 2, "output_padding": 1}),
        ((1, 2, 2, 1, 1), (2, 1, 1, 2, 1), {"groups": 2}),
    ),
)  # fmt: skip
def conv_transpose3d(
    xp, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):  # fmt: skip
    """Transposed convolution of volumes: the gradient of `conv3d` by its input, as a layer.

    Args:
        x: array of shape (N, C, D, H, W), or (C, D, H, W).
        weight: array of shape (C, out channels / groups, depth, height, width).
        bias: array of shape (out channels,), added to each channel; None for none.
        stride: int or three, by which the result is larger than `x`.
        padding: int or three, elements cut off at each side.
        output_padding: int or three, less than `stride`: elements more at the end.
        groups: int, parts of the channels, each with weights of its own.
        dilation: int or three, from one element of the kernel to the next.

    Returns:
        Tensor of shape (N, out channels, *lengths), or without N; lengths as for
        `conv_transpose1d`.

    >>> print(gg.nn.conv_transpose3d(gg.ones((1, 1, 1, 1, 2)), gg.ones((1, 1, 1, 1, 2))))
    [[[[[1. 2. 1.]]]]]
    """
    return _transposed(
        xp, "conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups,
        dilation,
    )  # fmt: skip
