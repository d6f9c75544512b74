"""Convolutions as layers use them, with torch's arguments: composites of `convolution`.

Channels come first, (N, C, *spatial). For arrays with channels last, use `moveaxis` before and
after.
"""

import functools

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.ops.arrays.windows import examples, ints, need_arrays
from gpugrad.ops.nn.convolution import convolution_ref, input_grad_ref
from gpugrad.ops.nn.spatial import spatial


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


def _layer_samples(*cases):
    """Each case is the shapes of x, weight and perhaps bias, and keywords."""
    return shaped(*((shapes, keywords) for *shapes, keywords in cases))


def _conv_ref(x, weight, bias=None, **windows):
    if x.ndim < weight.ndim:
        return _conv_ref(x[None], weight, bias, **windows)[0]
    out = convolution_ref(x, weight, **windows)
    return out if bias is None else out + bias.reshape(-1, *(1,) * (out.ndim - 2))


def _transpose_ref(x, weight, bias=None, output_padding=0, stride=1, padding=0, **windows):
    spans = ((k - 1) * windows.get("dilation", 1) + 1 for k in weight.shape[2:])
    shape = [
        (length - 1) * stride + span - 2 * padding + output_padding
        for length, span in zip(x.shape[2:], spans, strict=True)
    ]
    out = input_grad_ref(x, weight, shape=shape, stride=stride, padding=padding, **windows)
    return out if bias is None else out + bias.reshape(-1, *(1,) * (out.ndim - 2))


_WRONG_WINDOWS = [
    ({"dilation": 3}, ShapeError, "does not fit"),
    ({"padding": "full"}, ArgumentError, "'full'"),
]
_WRONG_BORDERS = [
    ({"padding": 3}, ShapeError, "conv_transpose.*smaller padding"),
    ({"output_padding": 1}, ArgumentError, "conv_transpose.*output_padding=1"),
]


def _wrong(name, n, more):
    """Calls that must fail, for a layer with `n` spatial axes."""
    x, w = np.ones((1, 2, *(3,) * n)), np.ones((2, 2, *(2,) * n))
    return [
        ([x[0, 0], w], {}, ShapeError, rf"{name}: x must have the axes"),
        ([x, w[0]], {}, ShapeError, rf"{name}.*do not go together"),
        ([x, w], {"groups": 3}, ShapeError, "groups=3"),
        ([x, w, np.ones(3)], {}, ShapeError, rf"{name}: the bias"),
        ([x, w, 1.0], {}, DTypeError, rf"{name}: arrays are needed"),
        ([x, w], {"stride": 0}, ArgumentError, "stride=0"),
        *(([x, w], *rest) for rest in more),
    ]


_layer = functools.partial(spatial, arrays=("x", "weight", "bias"), native_half=True, kinds="fc")


def _conv(n, example, *cases):
    name, samples = f"conv{n}d", _layer_samples(*cases)

    @_layer(
        n,
        example,
        ref=_conv_ref,
        errors=_wrong(name, n, _WRONG_WINDOWS),
        samples=samples,
        mixed="half",
    )
    def conv(xp, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        """Convolution {where}: a layer's weighted sums over windows.

        Args:
            x: array of shape {shape}.
            weight: array of shape (out channels, C / groups, *kernel).
            bias: array of shape (out channels,), added to each channel; None for none.
            stride: {each}, from one window to the next.
            padding: {each}, zeros added at each side; "valid" for none; "same" for as many
                windows as steps fit in `x`.
            dilation: {each}, from one element of a window to the next.
            groups: int, parts of the channels, each with weights of its own.

        Returns:
            Tensor of shape (N, out channels, *number of windows), or without N.
        """
        need_arrays(name, x, weight, bias)
        x, single = examples(xp, name, n, x)
        _check_weight(name, n, x, weight, 1, groups, "(out channels, C / groups, *kernel)")
        y = xp.convolution(
            x, weight, stride=stride, padding=padding, dilation=dilation, groups=groups
        )
        return _with_bias(xp, name, y, bias, single)

    return conv


conv1d = _conv(
    1,
    ("[[[1.0, 2.0, 4.0, 8.0]]], [[[-1.0, 1.0]]]", "[[[1. 2. 4.]]]"),
    ((2, 2, 4), (3, 2, 2), (3,), {}),
    ((1, 2, 5), (2, 1, 3), {"groups": 2, "padding": 2, "stride": 2, "dilation": 2}),
    ((1, 4), (1, 1, 2), {"padding": "same"}),
)
conv2d = _conv(
    2,
    (
        "gg.reshape(gg.arange(9.0), (1, 1, 3, 3)), gg.ones((1, 1, 2, 2)), stride=1, padding=0",
        "[[[[ 8. 12.]\n   [20. 24.]]]]",
    ),
    ((1, 2, 3, 3), (1, 2, 2, 2), (1,), {}),
    ((1, 2, 3, 4), (2, 1, 2, 1), (2,), {"groups": 2, "padding": (1, 0), "stride": 2}),
    ((1, 3, 3), (1, 1, 2, 3), {"padding": "same"}),
)
conv3d = _conv(
    3,
    ("gg.ones((1, 1, 2, 3, 3)), gg.ones((1, 1, 2, 2, 3))", "[[[[[12.]\n    [12.]]]]]"),
    ((1, 1, 2, 2, 3), (2, 1, 2, 1, 2), (2,), {}),
    ((1, 2, 2, 2, 2), (2, 1, 1, 2, 2), {"groups": 2, "padding": (0, 1, 0)}),
)


def _conv_transpose(n, example, *cases):
    name, samples = f"conv_transpose{n}d", _layer_samples(*cases)
    errors = _wrong(name, n, _WRONG_BORDERS)

    @_layer(n, example, ref=_transpose_ref, errors=errors, samples=samples, mixed="half")
    def conv_transpose(
        xp, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
    ):
        """Transposed convolution {where}: the gradient of `conv{n}d` by its input, as a layer.

        Args:
            x: array of shape {shape}.
            weight: array of shape (C, out channels / groups, *kernel).
            bias: array of shape (out channels,), added to each channel; None for none.
            stride: {each}, by which the result is longer than `x`.
            padding: {each}, elements cut off at each side.
            output_padding: {each}, less than `stride`: more elements at the end.
            groups: int, parts of the channels, each with weights of its own.
            dilation: {each}, from one element of the kernel to the next.

        Returns:
            Tensor of shape (N, out channels, *lengths), or without N, where a length is
            ``(L - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.
        """
        need_arrays(name, x, weight, bias)
        x, single = examples(xp, name, n, x)
        _check_weight(name, n, x, weight, 0, groups, "(C, out channels / groups, *kernel)")
        steps = ints(name, "stride", stride, n, 1)
        borders = ints(name, "padding", padding, n, 0)
        extra = ints(name, "output_padding", output_padding, n, 0)
        gaps = ints(name, "dilation", dilation, n, 1)
        if any(e >= s for e, s in zip(extra, steps, strict=True)):
            raise ArgumentError(
                f"{name}: output_padding={output_padding!r} must be less than stride={stride!r}: "
                "it chooses among the input lengths that give the same output."
            )
        shape = tuple(
            (length - 1) * s - 2 * p + d * (k - 1) + e + 1
            for length, k, s, p, e, d in zip(
                x.shape[2:], weight.shape[2:], steps, borders, extra, gaps, strict=True
            )
        )
        if min(shape) < 1:
            raise ShapeError(
                f"{name}: x {x.shape} and weight {weight.shape} with padding={padding!r} would "
                f"give the spatial lengths {shape}. Choose a smaller padding."
            )
        y = xp.convolution_input_grad(
            x, weight, shape=shape, stride=steps, padding=borders, dilation=gaps, groups=groups
        )
        return _with_bias(xp, name, y, bias, single)

    return conv_transpose


conv_transpose1d = _conv_transpose(
    1,
    ("[[[1.0, 2.0]]], [[[1.0, 10.0]]], stride=2", "[[[ 1. 10.  2. 20.]]]"),
    ((2, 2, 3), (2, 3, 2), (3,), {}),
    (
        (1, 2, 3),
        (2, 1, 3),
        {"groups": 2, "padding": 1, "stride": 2, "output_padding": 1, "dilation": 2},
    ),
)
conv_transpose2d = _conv_transpose(
    2,
    ("[[[[1.0, 2.0]]]], gg.ones((1, 1, 1, 2))", "[[[[1. 3. 2.]]]]"),
    ((1, 2, 2, 2), (2, 1, 2, 2), (1,), {}),
    ((1, 2, 2, 1), (2, 1, 3, 2), {"groups": 2, "padding": 1, "stride": 3, "output_padding": 2}),
)
conv_transpose3d = _conv_transpose(
    3,
    ("gg.ones((1, 1, 1, 1, 2)), gg.ones((1, 1, 1, 1, 2))", "[[[[[1. 2. 1.]]]]]"),
    ((1, 1, 1, 2, 2), (1, 2, 2, 1, 2), (2,), {"stride": 2, "output_padding": 1}),
    ((1, 2, 2, 1, 1), (2, 1, 1, 2, 1), {"groups": 2}),
)
