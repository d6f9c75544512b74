"""Convolution and attention by cuDNN, through nvidia-cudnn-frontend where that is installed.

Each problem (shapes, strides, dtype, parameters) is described once as a graph, for which cuDNN
chooses a plan; both are cached. If a program has a bias and relu after a convolution, they are
part of its graph. The kernels of `by_hand.convolution` and `by_hand.attention` silently take over
what cuDNN does not support; they support everything.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.backend import BFLOAT16, HALF, cupy
from gpugrad.core.forking import import_module, new_lock
from gpugrad.core.settings import deterministic, get_matmul_precision
from gpugrad.kernels.runtime.launch import pointer
from gpugrad.kernels.runtime.new_arrays import all_like, like
from gpugrad.kernels.runtime.spare import Spare

PLANS = 512  # most problems whose plans are cached
WORKSPACE = 1 << 30  # most bytes for a plan

_KINDS = {  # cuDNN's name of a dtype
    np.dtype(np.float32): "FLOAT",
    np.dtype(np.float64): "DOUBLE",
    np.dtype(np.float16): "HALF",
    BFLOAT16: "BFLOAT16",
}
_ALIGNED = 16  # bytes: the frontend declares this alignment for every tensor


# ---- the library ------------------------------------------------------------------------


@functools.cache
def binding() -> Any:
    """The module ``cudnn``, or None if it or cuDNN itself is not installed."""
    try:
        module = import_module("cudnn")
        module.backend_version()
    except (ImportError, OSError, RuntimeError, AttributeError):  # RuntimeError: no libcudnn
        return None
    return module


class _Handle(NamedTuple):
    """cuDNN's handle for a device, with a lock: it has one stream at a time."""

    handle: Any
    lock: Any


@functools.cache
def _handle(device: int) -> _Handle:
    return _Handle(binding().create_handle(), new_lock())


# ---- plans ------------------------------------------------------------------------------


class Plan:
    """A graph, and the plan that cuDNN prefers for it.

    Args:
        describe: function of the graph and `problem` that builds the graph and returns its
            tensors in the order of the arrays.
        problem: arguments of `describe`; the first is the dtype.
        notes: cuDNN's numerical notes of kernels that must not be used.
        where: ``handle=`` or ``device_property=``.

    Raises:
        Exception: one of `no_plan_errors`: there is no plan.
    """

    def __init__(
        self, describe: Any, problem: tuple[Any, ...], notes: Sequence[str], **where: Any
    ) -> None:
        cu, kind = binding(), _KINDS[problem[0]]
        wide = cu.data_type.DOUBLE if kind == "DOUBLE" else cu.data_type.FLOAT
        self.graph = graph = cu.pygraph(
            io_data_type=getattr(cu.data_type, kind),
            intermediate_data_type=wide,
            compute_data_type=wide,
            **where,
        )
        self.tensors = describe(graph, *problem)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cu.heur_mode.A, cu.heur_mode.FALLBACK])
        graph.deselect_workspace_greater_than(WORKSPACE)
        if notes:
            graph.deselect_numeric_notes([getattr(cu.numerical_note, n) for n in notes])
        graph.check_support()
        graph.build_plans()
        self.size = int(graph.get_workspace_size())


def no_plan_errors() -> tuple[type[Exception], ...]:
    """The exceptions that the frontend raises for a graph without a plan.

    RuntimeError comes from a refused descriptor, ValueError from the frontend's own checks.
    """
    return binding().cudnnGraphNotSupportedError, RuntimeError, ValueError


_plans: OrderedDict[Any, Plan | None] = OrderedDict()  # None: not supported
_plans_lock = new_lock()
_captured: set[Plan] = set()  # plans in CUDA graphs, which may be launched at any time


def _plan(device: int, describe: Any, problem: tuple[Any, ...]) -> Plan | None:
    notes = _notes(problem[0])
    key = device, describe, problem, notes
    with _plans_lock:
        if key in _plans:
            _plans.move_to_end(key)
            return _plans[key]
        try:
            plan = Plan(describe, problem, notes, handle=_handle(device).handle)
        except no_plan_errors():
            plan = None
        _plans[key] = plan
        if len(_plans) > PLANS:
            _plans.popitem(last=False)
        return plan


def _notes(dtype: Any) -> tuple[str, ...]:
    """Notes of kernels that the current precision and determinism settings rule out."""
    notes = ("NONDETERMINISTIC",) if deterministic() else ()
    if dtype in HALF:  # sums are kept in float32
        return (*notes, "REDUCED_PRECISION_REDUCTION")
    if dtype == np.float32 and get_matmul_precision() == "highest":  # no TensorFloat-32
        return (*notes, "TENSOR_CORE", "DOWN_CONVERT_INPUTS")
    return notes


def _run(lib: Any, describe: Any, problem: tuple[Any, ...], arrays: Sequence[Any]) -> bool:
    """Compute into the last of the arrays; False if there is no plan for the problem."""
    pointers = [pointer(x) for x in arrays]
    device = int(arrays[0].device.id)
    if any(at % _ALIGNED for at in pointers) or (plan := _plan(device, describe, problem)) is None:
        return False
    # the stream's pool gives the workspace to later launches on the stream, or to a capture
    workspace = lib.ndarray((max(plan.size, 1),), np.uint8)
    stream = cupy().cuda.get_current_stream()
    if stream.is_capturing():
        _captured.add(plan)
    handle, lock = _handle(device)
    with lock:
        binding().set_stream(handle=handle, stream=int(stream.ptr))
        plan.graph.execute(
            dict(zip(plan.tensors, pointers, strict=True)), pointer(workspace), handle=handle
        )
    return True


def _tensor(graph: Any, dtype: Any, dim: Sequence[int], stride: Sequence[int] | None = None) -> Any:
    """An input tensor; strides are in elements, None means contiguous."""
    kind = getattr(binding().data_type, _KINDS[np.dtype(dtype)])
    return graph.tensor(dim=list(dim), stride=list(stride or _strides(dim)), data_type=kind)


def _result(
    tensor: Any, dtype: Any, dim: Sequence[int], stride: Sequence[int] | None = None
) -> Any:
    """Mark a tensor as a result; strides as for `_tensor`."""
    kind = getattr(binding().data_type, _KINDS[np.dtype(dtype)])
    tensor.set_output(True).set_data_type(kind)
    return tensor.set_dim(list(dim)).set_stride(list(stride or _strides(dim)))


def _strides(dim: Sequence[int], last: bool = False) -> tuple[int, ...]:
    """Strides in elements of a contiguous array; with `last`, of one with channels innermost."""
    inner = 1
    axes = [0, *range(2, len(dim)), 1] if last else list(range(len(dim)))
    strides = [0] * len(dim)
    for k in reversed(axes):
        strides[k], inner = inner, inner * dim[k]
    return tuple(strides)


# ---- convolution ------------------------------------------------------------------------

_ORDER = {"RESULT": (0, 1, 2), "INPUT": (2, 1, 0), "WEIGHT": (0, 2, 1)}
"""The indices of two inputs among x, w and g, and of the result."""


def _convolution_graph(
    graph: Any,
    dtype: Any,
    of: str,
    x: Any,
    w: Any,
    g: Any,
    padding: Any,
    stride: Any,
    dilation: Any,
    bias: bool,
    relu: bool,
) -> list[Any]:
    """The graph of a convolution or one of its gradients.

    `x`, `w` and `g` are (shape, strides); `of` says which one is the result. A bias and relu may
    follow the convolution itself.
    """
    window = {
        "pre_padding": [before for before, _ in padding],
        "post_padding": [after for _, after in padding],
        "stride": list(stride),
        "dilation": list(dilation),
    }
    *inputs, result = ((x, w, g)[k] for k in _ORDER[of])
    tensors = [first, second] = [_tensor(graph, dtype, *layout) for layout in inputs]
    if of == "RESULT":
        out = graph.conv_fprop(image=first, weight=second, **window)
    elif of == "INPUT":
        out = graph.conv_dgrad(loss=first, filter=second, **window)
    else:
        out = graph.conv_wgrad(image=first, loss=second, **window)
    if bias:
        shape = [n if axis == 1 else 1 for axis, n in enumerate(g[0])]
        tensors.append(_tensor(graph, dtype, shape))
        out = graph.bias(input=out, bias=tensors[-1])
    if relu:
        # NaN stays NaN, as the frontend asks of cuDNN (CUDNN_PROPAGATE_NAN); infinity becomes the
        # largest number of the compute dtype, which is the frontend's upper clip
        out = graph.relu(input=out)
    return [*tensors, _result(out, dtype, *result)]


def convolution(
    lib: Any,
    of: str,
    a: Any,
    b: Any,
    x_shape: Any,
    w_shape: Any,
    geometry: Any,
    *,
    bias: Any = None,
    relu: bool = False,
    last: bool = False,
) -> Any:
    """A convolution or one of its gradients, or NotImplemented.

    A bias and relu are applied to the sums before these are rounded to the dtype and stored.

    Args:
        lib: the array library.
        of: ``"RESULT"`` (from x and w), ``"INPUT"`` (from g and w) or ``"WEIGHT"`` (from x and g).
        a, b: these two arrays. A view with channels last in memory, i.e. of an array (N, *spatial,
            C), is read without a copy.
        x_shape, w_shape: shapes of input and weights; their channels determine the groups.
        geometry: stride, padding, dilation and places, along one to three axes.
        bias: array with a number to add for each channel of a result, or None.
        relu: whether relu follows the bias.
        last: whether the channels are the last axis of the returned array instead of the second.

    Returns:
        The array. 16-bit floats, and results of arrays with channels last in memory, have channels
        last in memory, too.
    """
    if type(a) is np.ndarray or binding() is None:
        return NotImplemented
    stride, padding, dilation, places = geometry
    shapes = [tuple(x_shape), tuple(w_shape), (x_shape[0], w_shape[0], *places)]
    first, second, target = _ORDER[of]
    arrays, channels_last = [], {target: last}
    for k, array in ((first, a), (second, b)):
        whole = array.flags.c_contiguous
        channels_last[k] = not whole and lib.moveaxis(array, 1, -1).flags.c_contiguous
        arrays.append(array if channels_last[k] else lib.ascontiguousarray(array))
    if bias is not None:
        arrays.append(lib.ascontiguousarray(bias))
    # tensor cores read channels last in memory: cuDNN would convert the other order, and back
    channels_last[target] |= any(channels_last.values()) or a.dtype in HALF
    n, channels, *spatial = shapes[target]
    inner = channels_last[target] and bool(spatial)
    out = lib.ndarray((n, *spatial, channels) if inner else shapes[target], a.dtype)
    if len(places) == 1:  # cuDNN's images have at least two axes
        shapes = [(*s[:2], 1, s[2]) for s in shapes]
        stride, padding, dilation = (1, *stride), ((0, 0), *padding), (1, *dilation)
    layouts = ((shape, _strides(shape, channels_last[k])) for k, shape in enumerate(shapes))
    problem = (
        np.dtype(a.dtype),
        of,
        *layouts,
        tuple(padding),
        tuple(stride),
        tuple(dilation),
        bias is not None,
        relu,
    )
    if not _run(lib, _convolution_graph, problem, (*arrays, out)):
        return NotImplemented
    return lib.moveaxis(out, -1, 1) if inner and not last else out


# ---- attention --------------------------------------------------------------------------


def _attention_graph(
    graph: Any, dtype: Any, query: Any, key: Any, value: Any, out: Any, scale: float, causal: bool
) -> list[Any]:
    """The graph of attention; query, key, value and out are (shape, strides)."""
    inputs = [_tensor(graph, dtype, *x) for x in (query, key, value)]
    outputs = graph.sdpa(
        **dict(zip("qkv", inputs, strict=True)),
        generate_stats=True,
        **_score_options(scale, causal),
    )
    result, lse = outputs
    lines = (*query[0][:3], 1)
    return [*inputs, _result(result, dtype, *out), _result(lse, np.float32, lines)]


def _attention_grads_graph(
    graph: Any, dtype: Any, arrays: Any, grads: Any, scale: float, causal: bool, same: bool
) -> list[Any]:
    """The graph of all three gradients of attention; `same` makes it deterministic.

    Its inputs are query, key, value, the result, its cotangent, and the logarithms of the sums;
    `arrays` are (shape, strides) of all but the last, `grads` of the gradients.
    """
    inputs = [_tensor(graph, dtype, *x) for x in arrays]
    inputs += [_tensor(graph, np.float32, (*arrays[0][0][:3], 1))]
    results = graph.sdpa_backward(
        **dict(zip(("q", "k", "v", "o", "dO", "stats"), inputs, strict=True)),
        use_deterministic_algorithm=same,
        **_score_options(scale, causal),
    )
    return [*inputs, *(_result(t, dtype, *x) for t, x in zip(results, grads, strict=True))]


def _score_options(scale: float, causal: bool) -> dict[str, Any]:
    """The options for scale and mask; if `causal`, query i sees the keys 0 to i."""
    if not causal:
        return {"attn_scale": scale}
    first = binding().diagonal_alignment.TOP_LEFT
    return {"attn_scale": scale, "diagonal_alignment": first, "diagonal_band_right_bound": 0}


def _layout(x: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return x.shape, tuple(s // x.itemsize for s in x.strides)


def _readable(lib: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """The array in a shape of four axes, copied if cuDNN cannot read its layout."""
    x = x.reshape(shape)
    strides = [s for s, n in zip(x.strides[:-1], shape, strict=False) if n > 1]
    fits = x.strides[-1] == x.itemsize and all(s > 0 and s % _ALIGNED == 0 for s in strides)
    return x if fits and pointer(x) % _ALIGNED == 0 else lib.ascontiguousarray(x)


def _may_have_plan(query: Any, key: Any, value: Any) -> bool:
    """Whether there may be a plan: none for float32, empty or broadcast arrays."""
    arrays = query, key, value
    return (
        query.dtype in HALF
        and type(query) is not np.ndarray
        and all(0 not in x.shape for x in arrays)
        and all(s > 0 for x in arrays for n, s in zip(x.shape, x.strides, strict=True) if n > 1)
        and binding() is not None
    )


def attention(lib: Any, query: Any, key: Any, value: Any, scale: float, causal: bool) -> Any:
    """Attention without a mask, and the logarithms of its sums; or NotImplemented.

    Args:
        lib: the array library.
        query, key, value: arrays of shape (examples, heads, lines, columns), whose lines begin at
            multiples of 16 bytes; several query heads may share a key head.
        scale: factor of the scores.
        causal: whether a query sees only keys up to its own position.

    Returns:
        Arrays of shape (examples, heads, lines, columns of a value), in the memory order of
        `query`, and, in float32, (examples, heads, lines, 1).
    """
    if not _may_have_plan(query, key, value):
        return NotImplemented
    out = like(lib, query, (*query.shape[:3], value.shape[3]), query.dtype)
    lse = lib.ndarray((*query.shape[:3], 1), np.float32)
    problem = (query.dtype, *map(_layout, (query, key, value, out)), scale, causal)
    arrays = (query, key, value, out, lse)
    return (out, lse) if _run(lib, _attention_graph, problem, arrays) else NotImplemented


_spare_grads = Spare()


def attention_grad(
    lib: Any,
    of: str,
    asked: Sequence[Any],
    query: Any,
    key: Any,
    value: Any,
    scale: float,
    causal: bool,
) -> Any:
    """The gradient of `attention` by one of its arguments, or NotImplemented.

    cuDNN computes all three at once; the other two are kept for the next calls.

    Args:
        lib: the array library.
        of: ``"query"``, ``"key"`` or ``"value"``.
        asked: the cotangent of the first result, the three arguments as the caller has them, and
            the two results, of any shape: the same objects in all three calls.
        query, key, value, scale, causal: as for `attention`.
    """
    if not _may_have_plan(query, key, value):
        return NotImplemented
    problem = (query.dtype, *map(_layout, (query, key, value)), scale, causal, deterministic())

    def compute() -> dict[str, Any] | None:
        g, *_, out, lse = asked
        lse = lib.ascontiguousarray(lse, dtype=np.float32)
        grads = all_like(lib, (query, key, value))
        of_result = (*query.shape[:3], value.shape[3])
        arrays = (query, key, value, *(_readable(lib, x, of_result) for x in (out, g)))
        layouts = tuple(map(_layout, arrays)), tuple(map(_layout, grads))
        described = (query.dtype, *layouts, scale, causal, deterministic())
        if not _run(lib, _attention_grads_graph, described, (*arrays, lse, *grads)):
            return None
        return dict(zip(("query", "key", "value"), grads, strict=True))

    return _spare_grads.take(of, asked, problem, compute)
