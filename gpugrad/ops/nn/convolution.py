"""Convolution: three ops that are linear in each argument, each the gradient of the others.

With ``B(x, w, g) = sum(g * convolution(x, w))``, `convolution` is the derivative of B by g,
`convolution_input_grad` the derivative by x, `convolution_weight_grad` the derivative by w. So a
gradient of any of the three, of any order, is one of them again. The layers in `convolution_layers`
call them.

All are matrix products: the windows of the input, laid out as columns, times the weights. The
columns are built block by block, so their memory is bounded; the kernels never build them.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.kernels.by_hand import convolution as cuda
from gpugrad.kernels.cpu import convolution as cpu
from gpugrad.ops.arrays.windows import (
    crop_last,
    ints,
    pad_last,
    reach,
    remembered,
    strided,
    window_view,
)
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate

_BLOCK = 2**21
"""Elements of the columns built at a time on the CPU: 8 MB in float32, which still fit a cache."""
_GPU_BLOCK = 2**26


class _Geometry(NamedTuple):
    """Along each spatial axis: step, padding, step within a window, and number of windows."""

    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    places: tuple[int, ...]


def _borders(name, padding, lengths, spans, stride):
    """The padding as a pair (before, after) for each axis."""
    n = len(lengths)
    if padding == "valid":
        return ((0, 0),) * n
    if padding == "same":  # as many windows as steps fit in the input; TensorFlow's rule
        missing = (
            max((-(-length // s) - 1) * s + span - length, 0)
            for length, span, s in zip(lengths, spans, stride, strict=True)
        )
        return tuple((m // 2, m - m // 2) for m in missing)
    if isinstance(padding, str):
        raise ArgumentError(f"{name}: padding={padding!r} must be 'same', 'valid', or numbers.")
    if isinstance(padding, (tuple, list)) and all(isinstance(p, (tuple, list)) for p in padding):
        pairs = tuple(ints(name, "padding", tuple(p), 2, 0) for p in padding)
        return pairs if len(pairs) == n else (ints(name, "padding", padding, n, 0),)
    return tuple((p, p) for p in ints(name, "padding", padding, n, 0))


def _geometry(name, lengths, kernel, stride, padding, dilation):
    n = len(lengths)
    stride = ints(name, "stride", stride, n, 1)
    dilation = ints(name, "dilation", dilation, n, 1)
    spans = [reach(k, d) for k, d in zip(kernel, dilation, strict=True)]
    pairs = _borders(name, padding, lengths, spans, stride)
    padded = [length + a + b for length, (a, b) in zip(lengths, pairs, strict=True)]
    if min(kernel) < 1 or any(m < span for m, span in zip(padded, spans, strict=True)):
        raise ShapeError(
            f"{name}: a kernel of {tuple(kernel)}, which reaches over {tuple(spans)}, does not fit "
            f"in an input of {tuple(lengths)}, {tuple(padded)} with its padding."
        )
    places = ((m - span) // s + 1 for m, span, s in zip(padded, spans, stride, strict=True))
    return _Geometry(stride, pairs, dilation, tuple(places))


def _resolve(name, x, w, groups, stride, padding, dilation, places=None):
    """The geometry of a convolution of the shapes `x` and `w`, whose result has shape `places`."""
    shapes = tuple(x), tuple(w), places and tuple(places)
    return _resolved(name, shapes, groups, stride, padding, dilation)


@remembered
def _resolved(name, shapes, groups, stride, padding, dilation):
    x, w, places = shapes
    (groups,) = ints(name, "groups", groups, 1, 1)
    if len(x) < 3 or len(w) != len(x) or x[1] != w[1] * groups or w[0] % groups:
        raise ShapeError(
            f"{name}: an input {x} and weights {w} do not go together with groups={groups}. The "
            "input is (N, C, *spatial), the weights are (out channels, C / groups, *kernel), and "
            "the groups divide both channels."
        )
    geometry = _geometry(name, x[2:], w[2:], stride, padding, dilation)
    shape = (x[0], w[0], *geometry.places)
    if places is not None and tuple(places) != shape:
        raise ShapeError(
            f"{name}: an input {x} and weights {w} give a convolution of shape {shape}; the "
            f"gradient by it has shape {tuple(places)}."
        )
    return geometry


def _of_input(g, w, shape, stride, padding, dilation, groups):
    """Shape of the input whose gradient is wanted, and the geometry."""
    of = (*g.shape[:1], *(c * groups for c in w.shape[1:2]), *shape)
    name = "convolution_input_grad"
    return of, _resolve(name, of, w.shape, groups, stride, padding, dilation, g.shape)


def _of_weights(x, g, kernel, stride, padding, dilation, groups):
    """Shape of the weights whose gradient is wanted, and the geometry."""
    name = "convolution_weight_grad"
    (groups,) = ints(name, "groups", groups, 1, 1)
    of = (*g.shape[1:2], *(c // groups for c in x.shape[1:2]), *kernel)
    return of, _resolve(name, x.shape, of, groups, stride, padding, dilation, g.shape)


def _launch(kernels, xp, x, w, /, *, stride=1, padding=0, dilation=1, groups=1):
    geometry = _resolve("convolution", x.shape, w.shape, groups, stride, padding, dilation)
    return kernels.convolution(xp, x, w, geometry=geometry, groups=groups)


def launch_with_bias(
    xp: Any, x: Any, w: Any, bias: Any, *, relu: bool, last: bool, groups: int, **windows: Any
) -> Any:
    """A convolution fused with the bias that follows it: see `kernels.by_hand.convolution`."""
    geometry = _resolve("convolution", x.shape, w.shape, groups, **windows)
    return cuda.with_bias(xp, x, w, bias, geometry=geometry, relu=relu, last=last)


def _launch_input_grad(
    kernels, xp, g_, w, /, *, shape, stride=1, padding=0, dilation=1, groups=1
):  # fmt: skip
    of, geometry = _of_input(g_, w, shape, stride, padding, dilation, groups)
    return kernels.input_grad(xp, g_, w, shape=of, geometry=geometry, groups=groups)


def _launch_weight_grad(
    kernels, xp, x, g_, /, *, kernel, stride=1, padding=0, dilation=1, groups=1
):  # fmt: skip
    of, geometry = _of_weights(x, g_, kernel, stride, padding, dilation, groups)
    return kernels.weight_grad(xp, x, g_, shape=of, geometry=geometry, groups=groups)


def _blocks(xp, examples, places, column):
    """Slices of the examples and of the first axis of places, for columns of bounded memory."""
    limit = max(1, (_BLOCK if xp is NUMPY else _GPU_BLOCK) // max(1, column))
    row = max(1, math.prod(places[1:]))
    rows = min(places[0], max(1, limit // row))
    several = max(1, limit // (row * rows)) if rows == places[0] else 1
    for i in range(0, examples, several):
        for r in range(0, places[0], rows):
            yield slice(i, min(i + several, examples)), slice(r, min(r + rows, places[0]))


def _columns(xp, x, kernel, geometry, groups):
    """Blocks (examples, rows, columns): the windows as (groups, elements, examples * places)."""
    stride, padding, dilation, places = geometry
    n, (examples, channels) = len(kernel), x.shape[:2]
    x = pad_last(xp, x, padding)
    x = x.reshape(examples, groups, channels // groups, *x.shape[2:])
    view = window_view(xp, x, kernel, stride, dilation)
    order = (1, 2, *range(3 + n, 3 + 2 * n), 0, *range(3, 3 + n))
    elements = channels // groups * math.prod(kernel)
    for i, r in _blocks(xp, examples, places, channels * math.prod(kernel)):
        block = view[i, :, :, r].transpose(order)
        count = math.prod(block.shape[2 + n :])
        yield i, r, block.reshape(groups, elements, count)


def _as_rows(xp, g, i, r):
    """One block of an array (examples, groups, channels, *places) as `_columns` lays it out."""
    block = g[i, :, :, r]
    block = block.transpose(1, 2, 0, *range(3, block.ndim))
    return block.reshape(*block.shape[:2], math.prod(block.shape[2:]))


def _flat_weights(w, groups):
    """The weights as (groups, out channels of one, elements of a column)."""
    return w.reshape(groups, w.shape[0] // groups, math.prod(w.shape[1:]))


def _fold(xp, x, axis, groups=1):
    """Merge the batch, axis 0 of `x`, into axis `axis` of each example, inside its groups."""
    b, *shape = x.shape
    lead, n, rest = shape[:axis], shape[axis], shape[axis + 1 :]
    x = xp.reshape(x, (b, *lead, groups, n // groups, *rest))
    x = xp.moveaxis(x, 0, axis + 1)
    return xp.reshape(x, (*lead, b * n, *rest))


def _unfold(xp, y, axis, b, groups=1):
    """The inverse of `_fold`: split off the batch as axis 0."""
    lead, n, rest = y.shape[:axis], y.shape[axis], y.shape[axis + 1 :]
    y = xp.reshape(y, (*lead, groups, b, n // (b * groups), *rest))
    y = xp.moveaxis(y, axis + 1, 0)
    return xp.reshape(y, (b, *lead, n // b, *rest))


_FRONT, _INSIDE = False, True  # of a channel axis: before its groups, or inside each of them


def _batch_rule(name, first, second, both):
    """The batch rule of one of the three ops, if the first, second, or both arguments have a batch.

    The batch becomes more examples, more channels in each group, or more groups. Each case says
    along which axis of the first argument, the second and the result, and where in it.
    """

    def batch(xp, batched, *arrays, groups, **params):
        *into, (axis, inside) = both if all(batched) else first if batched[0] else second
        b = arrays[batched.index(True)].shape[0]
        folded = [
            x if at is None else _fold(xp, x, at[0], groups if at[1] else 1)
            for x, at in zip(arrays, into, strict=True)
        ]
        more = groups * b if all(batched) else groups
        out = getattr(xp, name)(*folded, groups=more, **params)
        return _unfold(xp, out, axis, b, groups if inside else 1)

    return batch


def _windows(stride, padding, dilation, groups):
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def _of_x(xp, g, w, x_shape, stride, padding, dilation, groups):
    windows = _windows(stride, padding, dilation, groups)
    return xp.convolution_input_grad(g, conjugate(xp, w), shape=x_shape[2:], **windows)


def _of_w(xp, g, x, w_shape, stride, padding, dilation, groups):
    windows = _windows(stride, padding, dilation, groups)
    return xp.convolution_weight_grad(conjugate(xp, x), g, kernel=w_shape[2:], **windows)


def _if_large(launch, kernels, xp, a, b, /, **params):
    """The C kernel's launcher; it declines small arrays before it looks at the geometry."""
    if math.prod((*a.shape, *b.shape)) < cpu.LEAST or a.dtype != np.float32:
        return NotImplemented
    return launch(kernels, xp, a, b, **params)


def _in_c(launch):
    """The fields of the record for C kernels."""
    kernels = {"cpu": cpu.launchers, "c_call": cpu.planners}
    return {name: functools.partial(_if_large, launch, of) for name, of in kernels.items()}


_CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 2, 4), (3, 2, 2), {}),
    ((1, 4, 5), (2, 2, 2), {"groups": 2, "dilation": 2, "padding": "same", "stride": 2}),
    ((1, 1, 3, 4), (2, 1, 2, 3), {"padding": ((1, 0), (0, 2)), "stride": (2, 1)}),
    ((1, 1, 2, 2, 3), (1, 1, 2, 1, 2), {"padding": 1, "stride": 2}),
    ((0, 2, 3), (2, 2, 2), {"padding": "valid"}),
]
"""Shapes of x and w, and keywords."""


def _places(x, w, keywords):
    full = {"stride": 1, "padding": 0, "dilation": 1} | keywords
    full.pop("groups", None)
    return _geometry("convolution", x[2:], w[2:], **full)


def convolution_ref(x, w, stride=1, padding=0, dilation=1, groups=1):
    """The definition: one element of the kernel after another."""
    geometry = _geometry("", x.shape[2:], w.shape[2:], stride, padding, dilation)
    x = np.pad(x, ((0, 0), (0, 0), *geometry.padding))
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    steps = list(zip(geometry.dilation, geometry.places, geometry.stride, strict=True))
    out = 0
    for offset in np.ndindex(w.shape[3:]):
        at = tuple(strided(o * d, n, s) for o, (d, n, s) in zip(offset, steps, strict=True))
        out = out + np.einsum("ngi...,goi->ngo...", x[:, :, :, *at], w[:, :, :, *offset])
    return out.reshape(out.shape[0], groups * w.shape[1], *geometry.places)


def _samples(kind):
    def make(x, w, keywords):
        g = (x[0], w[0], *_places(x, w, keywords).places)
        shapes, more = {
            "forward": ((x, w), {}),
            "input": ((g, w), {"shape": x[2:]}),
            "weight": ((x, g), {"kernel": w[2:]}),
        }[kind]
        return lambda rng: ([uniform(rng, *s) for s in shapes], {**keywords, **more})

    return calls(*(make(*case) for case in _CASES))


def _transposed(forward, g, shape):
    """The gradient of ``sum(forward(y) * g)`` by a `y` of that shape, one element at a time."""
    out = np.zeros(shape, g.dtype)
    for at in np.ndindex(*shape):
        unit = np.zeros(shape)
        unit[at] = 1
        out[at] = np.sum(forward(unit) * g)
    return out


def input_grad_ref(g, w, *, shape, groups=1, **more):
    """The gradient of `convolution_ref` by its input."""
    of = (len(g), w.shape[1] * groups, *shape)
    return _transposed(lambda x: convolution_ref(x, w, groups=groups, **more), g, of)


def _weight_grad_ref(x, g, *, kernel, groups=1, **more):
    of = (g.shape[1], x.shape[1] // groups, *kernel)
    return _transposed(lambda w: convolution_ref(x, w, groups=groups, **more), g, of)


_linear_in_each = functools.partial(op, linear="each", kinds="fc")


@_linear_in_each(
    vjp=[_of_x, _of_w],
    ref=convolution_ref,
    samples=_samples("forward"),
    cuda=functools.partial(_launch, cuda),
    **_in_c(_launch),
    batch=_batch_rule(
        "convolution",
        first=((0, _FRONT), None, (0, _FRONT)),
        second=(None, (0, _INSIDE), (1, _INSIDE)),
        both=((1, _FRONT), (0, _FRONT), (1, _FRONT)),
    ),
    errors=[
        ([np.ones((1, 2, 3)), np.ones((1, 3, 2))], {}, ShapeError, r"\(1, 2, 3\).*\(1, 3, 2\)"),
        ([np.ones((1, 2, 3)), np.ones((1, 2, 2, 2))], {}, ShapeError, r"\(1, 2, 2, 2\)"),
        ([np.ones((1, 2, 3)), np.ones((1, 2, 4))], {}, ShapeError, r"does not fit.*\(3,\)"),
        ([np.ones((1, 2, 3)), np.ones((3, 1, 1))], {"groups": 2}, ShapeError, "groups=2"),
        ([np.ones((1, 2, 3)), np.ones((1, 2, 1))], {"stride": 0}, ArgumentError, "stride=0"),
        ([np.ones((1, 2, 3)), np.ones((1, 2, 1))], {"padding": -1}, ArgumentError, "padding=-1"),
        ([np.ones((1, 2, 3)), np.ones((1, 2, 1))], {"padding": "full"}, ArgumentError, "'full'"),
    ],
    mixed="half",
)
def convolution(xp, x, w, /, *, stride=1, padding=0, dilation=1, groups=1):
    """Sums of products of a kernel with windows along any number of axes; `conv2d` calls it.

    As in all such libraries the kernel is not reversed.

    Args:
        w: weights of shape (out channels, C / groups, *kernel).
        padding: zeros put around `x`: int, one int for each spatial axis, a pair (before, after)
            for each; "valid" for none; or "same" for as many windows as steps fit in `x`, where an
            odd zero goes to the end.

    Returns:
        Tensor of shape (N, out channels, *number of windows).
    """
    geometry = _resolve("convolution", x.shape, w.shape, groups, stride, padding, dilation)
    w_flat = _flat_weights(w, groups)
    out = xp.lib.empty(
        (x.shape[0], groups, w.shape[0] // groups, *geometry.places), dtype=xp.lib.result_type(x, w)
    )
    for i, r, columns in _columns(xp, x, w.shape[2:], geometry, groups):
        block = out[i, :, :, r]
        target = block.transpose(1, 2, 0, *range(3, block.ndim))
        target[...] = xp.lib.matmul(w_flat, columns).reshape(target.shape)
    return out.reshape(x.shape[0], w.shape[0], *geometry.places)


def _input_grad_g(xp, g, w, stride, padding, dilation, groups):
    return xp.convolution(g, conjugate(xp, w), **_windows(stride, padding, dilation, groups))


def _input_grad_w(xp, g, g_, w_shape, stride, padding, dilation, groups):
    windows = _windows(stride, padding, dilation, groups)
    return xp.convolution_weight_grad(g, conjugate(xp, g_), kernel=w_shape[2:], **windows)


@_linear_in_each(
    vjp=[_input_grad_g, _input_grad_w],
    ref=input_grad_ref,
    samples=_samples("input"),
    cuda=functools.partial(_launch_input_grad, cuda),
    **_in_c(_launch_input_grad),
    batch=_batch_rule(
        "convolution_input_grad",
        first=((0, _FRONT), None, (0, _FRONT)),
        second=(None, (1, _FRONT), (1, _INSIDE)),
        both=((1, _FRONT), (0, _FRONT), (1, _FRONT)),
    ),
    errors=[
        ([np.ones((1, 1, 3)), np.ones((1, 2, 2))], {"shape": (5,)}, ShapeError, r"\(1, 1, 4\)"),
        ([np.ones((1, 2, 3)), np.ones((1, 2, 2))], {"shape": (4,)}, ShapeError, r"\(1, 2, 3\)"),
        ([np.ones(3), np.ones((1, 2, 2))], {"shape": (4,)}, ShapeError, r"\(3,\)"),
    ],
)
def convolution_input_grad(xp, g_, w, /, *, shape, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of a `convolution` by its input; a transposed convolution.

    Args:
        shape: spatial lengths of the input.

    Returns:
        Tensor of shape (N, C, *shape).
    """
    of, geometry = _of_input(g_, w, shape, stride, padding, dilation, groups)
    n, c, kernel = of[0], of[1] // groups, w.shape[2:]
    padded = [length + a + b for length, (a, b) in zip(shape, geometry.padding, strict=True)]
    out = xp.lib.zeros((n, groups, c, *padded), dtype=xp.lib.result_type(g_, w))
    w_flat = _flat_weights(w, groups).swapaxes(1, 2)
    g_ = g_.reshape(n, groups, w.shape[0] // groups, *geometry.places)
    for i, r in _blocks(xp, n, geometry.places, of[1] * math.prod(kernel)):
        rows = _as_rows(xp, g_, i, r)
        # NumPy's matmul takes five times as long where there is nothing to add
        columns = w_flat * rows if rows.shape[1] == 1 else xp.lib.matmul(w_flat, rows)
        part = xp.lib.moveaxis(out[i, :, :, r.start * geometry.stride[0] :], 0, 2)
        places = (r.stop - r.start, *geometry.places[1:])
        columns = columns.reshape(groups, c, *kernel, part.shape[2], *places)
        steps = list(zip(geometry.dilation, places, geometry.stride, strict=True))
        for offset in np.ndindex(kernel):
            at = (strided(o * d, k, s) for o, (d, k, s) in zip(offset, steps, strict=True))
            part[:, :, :, *at] += columns[:, :, *offset]
    return crop_last(xp, out.reshape(n, of[1], *padded), geometry.padding)


def _weight_grad_x(xp, g, g_, x_shape, stride, padding, dilation, groups):
    windows = _windows(stride, padding, dilation, groups)
    return xp.convolution_input_grad(conjugate(xp, g_), g, shape=x_shape[2:], **windows)


def _weight_grad_g(xp, g, x, stride, padding, dilation, groups):
    return xp.convolution(conjugate(xp, x), g, **_windows(stride, padding, dilation, groups))


@_linear_in_each(
    vjp=[_weight_grad_x, _weight_grad_g],
    ref=_weight_grad_ref,
    samples=_samples("weight"),
    cuda=functools.partial(_launch_weight_grad, cuda),
    **_in_c(_launch_weight_grad),
    batch=_batch_rule(
        "convolution_weight_grad",
        first=((1, _INSIDE), None, (1, _FRONT)),
        second=(None, (1, _INSIDE), (0, _INSIDE)),
        both=((1, _FRONT), (1, _FRONT), (0, _FRONT)),
    ),
    errors=[
        ([np.ones((1, 2, 4)), np.ones((1, 1, 3))], {"kernel": (3,)}, ShapeError, r"\(1, 1, 2\)"),
        ([np.ones((1, 2, 4)), np.ones((2, 1, 3))], {"kernel": (2,)}, ShapeError, r"\(2, 1, 3\)"),
        ([np.ones(4), np.ones((1, 1, 3))], {"kernel": (2,)}, ShapeError, r"\(4,\)"),
    ],
)
def convolution_weight_grad(xp, x, g_, /, *, kernel, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of a `convolution` by its weights.

    Args:
        kernel: spatial lengths of the weights.

    Returns:
        Tensor of shape (out channels, C / groups, *kernel).
    """
    of, geometry = _of_weights(x, g_, kernel, stride, padding, dilation, groups)
    out = xp.lib.zeros(
        (groups, of[0] // groups, math.prod(of[1:])), dtype=xp.lib.result_type(x, g_)
    )
    g_ = g_.reshape(x.shape[0], groups, of[0] // groups, *geometry.places)
    for i, r, columns in _columns(xp, x, kernel, geometry, groups):
        out += xp.lib.matmul(_as_rows(xp, g_, i, r), columns.swapaxes(1, 2))
    return out.reshape(of)
