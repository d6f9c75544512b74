"""Convolution and attention by cuDNN, through nvidia-cudnn-frontend where that is installed.

A problem (shapes, strides, dtype, parameters) is described once as a graph, for which cuDNN chooses
a plan; both are kept. A bias and relu are part of a convolution's graph, where a program has them.
What cuDNN does not do, or has no plan for, is left to the kernels of `convolution` and `attention`,
and nothing is said: they do all of it.
"""

from __future__ import annotations

import functools
import importlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.backend import BFLOAT16, HALF, cupy
from gpugrad.core.settings import deterministic, get_matmul_precision
from gpugrad.kernels.runtime.launch import pointer

__all__ = ["attention", "attention_grad", "binding", "convolution"]

PLANS = 512  # problems whose plans are kept
WORKSPACE = 1 << 30  # bytes that a plan may take at most

_KINDS = {  # what cuDNN calls a dtype
    np.dtype(np.float32): "FLOAT", np.dtype(np.float64): "DOUBLE", np.dtype(np.float16): "HALF",
    BFLOAT16: "BFLOAT16",
}  # fmt: skip
_ALIGNED = 16  # bytes, as the frontend says of every tensor


# ---- the library ------------------------------------------------------------------------


@functools.cache
def binding() -> Any:
    """The module ``cudnn``, or None where it or cuDNN itself is not installed."""
    try:
        module = importlib.import_module("cudnn")
        module.backend_version()
    except (ImportError, OSError, RuntimeError, AttributeError):  # RuntimeError: no libcudnn
        return None
    return module


class _Handle(NamedTuple):
    """cuDNN's state on a device, and what it takes to use it: it knows but one stream at a time."""

    handle: Any
    lock: Any


@functools.cache
def _handle(device: int) -> _Handle:
    return _Handle(binding().create_handle(), threading.Lock())


# ---- plans ------------------------------------------------------------------------------


class Plan:
    """A graph, and the plan that cuDNN prefers for it.

    Args:
        describe: function of the graph and `problem` that gives its tensors, in the order in which
            arrays are given to it.
        problem: of which the first is the dtype.
        notes: names of what cuDNN notes about kernels that must not be taken.
        where: ``handle=`` or ``device_property=``.

    Raises:
        Exception: one of `declines`: there is no plan.
    """

    def __init__(
        self, describe: Any, problem: tuple[Any, ...], notes: Sequence[str], **where: Any
    ) -> None:
        cu, kind = binding(), _KINDS[problem[0]]
        wide = cu.data_type.DOUBLE if kind == "DOUBLE" else cu.data_type.FLOAT
        self.graph = graph = cu.pygraph(
            io_data_type=getattr(cu.data_type, kind), intermediate_data_type=wide,
            compute_data_type=wide, **where,
        )  # fmt: skip
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


def declines() -> tuple[type[Exception], ...]:
    """What the frontend raises for a graph that has no plan.

    RuntimeError is what a descriptor's refusal becomes, ValueError what its own checks raise.
    """
    return binding().cudnnGraphNotSupportedError, RuntimeError, ValueError


_plans: OrderedDict[Any, Plan | None] = OrderedDict()  # None: cuDNN has nothing for it
_plans_lock = threading.Lock()
_captured: set[Plan] = set()  # a CUDA graph launches their kernels, and may be launched any time


def _plan(device: int, describe: Any, problem: tuple[Any, ...]) -> Plan | None:
    notes = _notes(problem[0])
    key = device, describe, problem, notes
    with _plans_lock:
        if key in _plans:
            _plans.move_to_end(key)
            return _plans[key]
        try:
            made = Plan(describe, problem, notes, handle=_handle(device).handle)
        except declines():
            made = None
        _plans[key] = made
        if len(_plans) > PLANS:
            _plans.popitem(last=False)
        return made


def _notes(dtype: Any) -> tuple[str, ...]:
    """Of the kernels that must not be taken, for the precision and the determinism in force."""
    notes = ("NONDETERMINISTIC",) if deterministic() else ()
    if dtype in HALF:  # sums are kept in float32
        return (*notes, "REDUCED_PRECISION_REDUCTION")
    if dtype == np.float32 and get_matmul_precision() == "highest":  # no TensorFloat-32
        return (*notes, "TENSOR_CORE", "DOWN_CONVERT_INPUTS")
    return notes


def _run(lib: Any, describe: Any, problem: tuple[Any, ...], arrays: Sequence[Any]) -> bool:
    """Compute into the last of the arrays, if there is a plan for the problem."""
    pointers = [pointer(x) for x in arrays]
    device = int(arrays[0].device.id)
    if any(at % _ALIGNED for at in pointers) or (plan := _plan(device, describe, problem)) is None:
        return False
    # the stream's own: what is launched on it later gets this memory, and so does a capture
    workspace = lib.empty((max(plan.size, 1),), dtype=np.uint8)
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
    """A tensor that is given; its strides are in elements, those of a contiguous one if None."""
    kind = getattr(binding().data_type, _KINDS[np.dtype(dtype)])
    return graph.tensor(dim=list(dim), stride=list(stride or _strides(dim)), data_type=kind)


def _result(
    tensor: Any, dtype: Any, dim: Sequence[int], stride: Sequence[int] | None = None
) -> Any:  # fmt: skip
    """A tensor that is made; strides as for `_tensor`."""
    kind = getattr(binding().data_type, _KINDS[np.dtype(dtype)])
    tensor.set_output(True).set_data_type(kind)
    return tensor.set_dim(list(dim)).set_stride(list(stride or _strides(dim)))


def _strides(dim: Sequence[int], last: bool = False) -> tuple[int, ...]:
    """In elements: of a contiguous array, or with `last` of one with its second axis innermost."""
    inner = 1
    axes = [0, *range(2, len(dim)), 1] if last else list(range(len(dim)))
    made = [0] * len(dim)
    for k in reversed(axes):
        made[k], inner = inner, inner * dim[k]
    return tuple(made)


# ---- convolution ------------------------------------------------------------------------

_ORDER = {"RESULT": (0, 1, 2), "INPUT": (2, 1, 0), "WEIGHT": (0, 2, 1)}
"""Which two of x, w and g are given, and which is made."""


def _convolution_graph(
    graph: Any, dtype: Any, of: str, x: Any, w: Any, g: Any, padding: Any, stride: Any,
    dilation: Any, bias: bool, relu: bool,
) -> list[Any]:  # fmt: skip
    """One of the three, of which the third argument of B(x, w, g) is made.

    Each is (shape, strides). A bias and relu may follow a result.
    """
    given = {
        "pre_padding": [before for before, _ in padding],
        "post_padding": [after for _, after in padding],
        "stride": list(stride), "dilation": list(dilation),
    }  # fmt: skip
    *laid, result = ((x, w, g)[k] for k in _ORDER[of])
    tensors = [first, second] = [_tensor(graph, dtype, *at) for at in laid]
    if of == "RESULT":
        made = graph.conv_fprop(image=first, weight=second, **given)
    elif of == "INPUT":
        made = graph.conv_dgrad(loss=first, filter=second, **given)
    else:
        made = graph.conv_wgrad(image=first, loss=second, **given)
    if bias:
        shape = [n if axis == 1 else 1 for axis, n in enumerate(g[0])]
        tensors.append(_tensor(graph, dtype, shape))
        made = graph.bias(input=made, bias=tensors[-1])
    if relu:
        # of NaN it is NaN, as the frontend asks of cuDNN (CUDNN_PROPAGATE_NAN); of infinity it is
        # the largest number of the compute dtype, which is where the frontend has it end
        made = graph.relu(input=made)
    return [*tensors, _result(made, dtype, *result)]


def convolution(
    lib: Any, of: str, a: Any, b: Any, x_shape: Any, w_shape: Any, geometry: Any, *,
    bias: Any = None, relu: bool = False, last: bool = False,
) -> Any:  # fmt: skip
    """One of the three convolutions, or NotImplemented.

    A bias and relu are done to the sums before these are rounded to the dtype and stored.

    Args:
        lib: the array library.
        of: ``"RESULT"``, of x and w; ``"INPUT"``, of g and w; ``"WEIGHT"``, of x and g.
        a, b: these two. One that lies with its channels last, as a view of an array (N, *spatial,
            C), is read as it lies.
        x_shape, w_shape: of input and weights; their channels say how many groups there are.
        geometry: stride, padding, dilation and places, along one to three axes.
        bias: array with a number for each channel of a result, to be added.
        relu: whether relu follows the bias.
        last: whether the channels are the last axis of what is returned, not the second.
    """
    if type(a) is np.ndarray or binding() is None:
        return NotImplemented
    stride, padding, dilation, places = geometry
    shapes = [tuple(x_shape), tuple(w_shape), (x_shape[0], w_shape[0], *places)]
    first, second, target = _ORDER[of]
    arrays, lie = [], {target: last}
    for k, array in ((first, a), (second, b)):
        whole = array.flags.c_contiguous
        lie[k] = not whole and lib.moveaxis(array, 1, -1).flags.c_contiguous
        arrays.append(array if lie[k] else lib.ascontiguousarray(array))
    if bias is not None:
        arrays.append(lib.ascontiguousarray(bias))
    out = shapes[target]
    made = lib.empty((out[0], *out[2:], out[1]) if last else out, dtype=a.dtype)
    if len(places) == 1:  # cuDNN's images are of two axes at least
        shapes = [(*s[:2], 1, s[2]) for s in shapes]
        stride, padding, dilation = (1, *stride), ((0, 0), *padding), (1, *dilation)
    laid = ((shape, _strides(shape, lie[k])) for k, shape in enumerate(shapes))
    problem = (
        np.dtype(a.dtype), of, *laid, tuple(padding), tuple(stride), tuple(dilation),
        bias is not None, relu,
    )  # fmt: skip
    return made if _run(lib, _convolution_graph, problem, (*arrays, made)) else NotImplemented


# ---- attention --------------------------------------------------------------------------


def _attention_graph(
    graph: Any, dtype: Any, query: Any, key: Any, value: Any, scale: float, causal: bool
) -> list[Any]:
    """Of a query, a key and a value, each as (shape, strides)."""
    given = [_tensor(graph, dtype, *x) for x in (query, key, value)]
    made = graph.sdpa(
        **dict(zip("qkv", given, strict=True)), generate_stats=True, **_masked(scale, causal)
    )
    lines = query[0][:3]
    results = zip(made, (dtype, np.float32), (value[0][3], 1), strict=True)
    return [*given, *(_result(t, d, (*lines, width)) for t, d, width in results)]


def _attention_grads_graph(
    graph: Any, dtype: Any, query: Any, key: Any, value: Any, scale: float, causal: bool,
    same: bool,
) -> list[Any]:  # fmt: skip
    """Of these, the result, the gradient by it and the logarithms; `same` each time, if asked."""
    given = [_tensor(graph, dtype, *x) for x in (query, key, value)]
    lines, width = query[0][:3], value[0][3]
    given += [_tensor(graph, dtype, (*lines, width)) for _ in range(2)]
    given += [_tensor(graph, np.float32, (*lines, 1))]
    made = graph.sdpa_backward(
        **dict(zip(("q", "k", "v", "o", "dO", "stats"), given, strict=True)),
        use_deterministic_algorithm=same, **_masked(scale, causal),
    )  # fmt: skip
    return [
        *given, *(_result(t, dtype, x[0]) for t, x in zip(made, (query, key, value), strict=True))
    ]  # fmt: skip


def _masked(scale: float, causal: bool) -> dict[str, Any]:
    """A query sees the keys up to its own place, counted from the first, if `causal`."""
    if not causal:
        return {"attn_scale": scale}
    first = binding().diagonal_alignment.TOP_LEFT
    return {"attn_scale": scale, "diagonal_alignment": first, "diagonal_band_right_bound": 0}


def _laid(x: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return x.shape, tuple(s // x.itemsize for s in x.strides)


def _attends(query: Any, key: Any, value: Any) -> bool:
    """Whether there may be a plan; not for float32, for sizes of 0, nor for what is broadcast."""
    arrays = query, key, value
    return (
        query.dtype in HALF
        and type(query) is not np.ndarray
        and all(0 not in x.shape for x in arrays)
        and all(s > 0 for x in arrays for n, s in zip(x.shape, x.strides, strict=True) if n > 1)
        and binding() is not None
    )


def attention(
    lib: Any, query: Any, key: Any, value: Any, scale: float, causal: bool
) -> Any:  # fmt: skip
    """Attention without a mask and the logarithms of its sums, or NotImplemented.

    Args:
        lib: the array library.
        query, key, value: arrays of shape (examples, heads, lines, columns), whose lines begin at
            multiples of 16 bytes; heads of queries may share one of keys.
        scale: of the scores.
        causal: whether a query sees only keys up to its own place.

    Returns:
        Arrays of shape (examples, heads, lines, columns of a value) and, in float32, (examples,
        heads, lines, 1).
    """
    if not _attends(query, key, value):
        return NotImplemented
    problem = (query.dtype, _laid(query), _laid(key), _laid(value), scale, causal)
    out = lib.empty((*query.shape[:3], value.shape[3]), dtype=query.dtype)
    lse = lib.empty((*query.shape[:3], 1), dtype=np.float32)
    arrays = (query, key, value, out, lse)
    return (out, lse) if _run(lib, _attention_graph, problem, arrays) else NotImplemented


def attention_grad(
    lib: Any, of: str, asked: Sequence[Any], query: Any, key: Any, value: Any, scale: float,
    causal: bool,
) -> Any:  # fmt: skip
    """The gradient of `attention` by one of its arguments, or NotImplemented.

    cuDNN makes all three at once: two are kept for the next calls.

    Args:
        lib: the array library.
        of: ``"query"``, ``"key"`` or ``"value"``.
        asked: the gradient by its first result, its three arguments as they were given and its
            two results, of any shape: the same objects for all three.
        query, key, value, scale, causal: as for `attention`.
    """
    if not _attends(query, key, value):
        return NotImplemented
    how = (query.dtype, *map(_laid, (query, key, value)), scale, causal, deterministic())

    def make() -> dict[str, Any] | None:
        g, *_, out, lse = asked
        lse = lib.ascontiguousarray(lse, dtype=np.float32)
        grads = [lib.empty(x.shape, dtype=x.dtype) for x in (query, key, value)]
        arrays = (query, key, value, *map(lib.ascontiguousarray, (out, g)), lse, *grads)
        if not _run(lib, _attention_grads_graph, how, arrays):
            return None
        return dict(zip(("query", "key", "value"), grads, strict=True))

    return _kept.one(of, asked, how, make)


class _Kept(threading.local):
    """What was made beside what was asked for, while the arrays it was made of are there."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.how: Any = None
        self.made: dict[str, Any] = {}

    def one(
        self, name: str, asked: Sequence[Any], how: Any, make: Callable[[], dict[str, Any] | None]
    ) -> Any:
        """One of the arrays that `make` makes, each of which is handed out once."""
        stream = cupy().cuda.get_current_stream()
        how = (how, int(stream.ptr), stream.is_capturing())
        same = all(ref() is x for ref, x in zip(self.asked, asked, strict=False))
        if self.how != how or not same or name not in self.made:
            made = make()
            if made is None:
                return NotImplemented
            # when the gradient that came in is let go of, its backward pass is over
            first = weakref.ref(asked[0], lambda _: made.clear())
            self.asked, self.how = [first, *map(weakref.ref, asked[1:])], how
            self.made = made
        return self.made.pop(name)


_kept = _Kept()
