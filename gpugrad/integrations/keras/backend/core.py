"""Runs after Keras' backend/numpy/core.py, in its namespace."""

# ruff: noqa: D103
from __future__ import annotations

import builtins
import inspect
import math

import numpy as numpy_itself
from keras.src import tree
from keras.src.backend.common import KerasVariable, standardize_dtype
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope

import gpugrad as gg
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.trace.array import current_trace, pause_trace

IS_THREAD_SAFE = True


class Variable(KerasVariable):
    """A Keras Variable whose value is in a `gpugrad.Variable`."""

    def _initialize(self, value):
        own = isinstance(value, gg.Variable)
        self._value = value if own else gg.Variable(convert_to_tensor(value, self._dtype))
        self._value.trainable = self._trainable

    def _initialize_with_initializer(self, initializer):
        with recording_stopped(), pause_trace():  # a trace makes no Variables
            self._initialize(convert_to_tensor(initializer(self._shape, dtype=self._dtype)))

    def _direct_assign(self, value):
        self._value.assign(convert_to_tensor(value, self._dtype))

    def _convert_to_tensor(self, value, dtype=None):
        return convert_to_tensor(value, dtype)

    @property
    def trainable(self):
        """Whether optimizers train it."""
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)
        if self._value is not None:
            self._value.trainable = self._trainable

    def __gpugrad_tensor__(self, dtype=None):
        value = self.value  # the gpugrad.Variable itself, which tapes know
        same = dtype is None or standardize_dtype(value.dtype) == standardize_dtype(dtype)
        return value if same else convert_to_tensor(value, dtype)

    def __array__(self, dtype=None, copy=None):
        return numpy_itself.asarray(convert_to_numpy(self), dtype=dtype)


def is_tensor(x):
    return isinstance(x, gg.Tensor)


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    if sparse or ragged:
        kind = "sparse" if sparse else "ragged"
        raise ValueError(f"`{kind}=True` is not supported with gpugrad backend")
    dtype = None if dtype is None else standardize_dtype(dtype)
    if isinstance(x, KerasVariable):
        x = x.value
    if isinstance(x, gg.Variable):
        x = x.value()
    if dtype in _FLOAT8:
        return _round(x, *_FLOAT8[dtype])
    if isinstance(x, gg.Tensor):
        same = dtype is None or standardize_dtype(x.dtype) == dtype
        return x if same else gg.astype(x, _dtype(dtype))
    parts = tree.flatten(x) if isinstance(x, (list, tuple)) else []
    if any(isinstance(part, (gg.Tensor, KerasVariable)) for part in parts):
        x = gg.stack([convert_to_tensor(part) for part in x])
        return x if dtype is None else gg.astype(x, _dtype(dtype))
    if dtype is None and not hasattr(x, "dtype"):
        dtype = result_type(*(getattr(part, "dtype", type(part)) for part in tree.flatten(x)))
    array = numpy_itself.asarray(x)
    return gg.asarray(array if dtype is None else array.astype(_dtype(dtype)))


_FLOAT8 = {"float8_e4m3fn": (3, -6), "float8_e5m2": (2, -14)}  # bits, smallest exponent


def _round(x, bits, smallest):
    """The nearest numbers of a float8 dtype, in float32: Tensors have no float8."""
    x = convert_to_tensor(x, "float32")
    unit = gg.exp2(gg.maximum(gg.frexp(gg.stop_gradient(x))[1] - 1, smallest) - bits)
    return gg.round(x / unit) * unit


def _dtype(name):
    return gg.bfloat16 if name == "bfloat16" else name


def convert_to_numpy(x):
    if isinstance(x, KerasVariable):
        x = x.value
    return x.numpy() if isinstance(x, gg.Tensor) else numpy_itself.array(x)


def shape(x):
    return tuple(x.shape)


def cast(x, dtype):
    return convert_to_tensor(x, dtype)


def cond(pred, true_fn, false_fn):
    if current_trace() is None or isinstance(pred, bool):
        return true_fn() if pred else false_fn()
    return gg.cond(convert_to_tensor(pred, "bool"), true_fn, false_fn)


def vectorized_map(function, elements):
    several = isinstance(elements, (list, tuple))
    first = convert_to_tensor(elements[0] if several else elements)
    parts = (
        function([x[i] for x in elements] if several else elements[i])
        for i in builtins.range(first.shape[0])
    )
    return tree.map_structure(lambda *xs: gg.stack([convert_to_tensor(x) for x in xs]), *parts)


def compute_output_spec(fn, *args, **kwargs):
    def run(length):
        def blank(x):
            if not isinstance(x, KerasTensor):
                return x
            lengths = [length if n is None else n for n in x.shape]
            return gg.zeros(tuple(lengths), dtype=_dtype(x.dtype))

        return fn(*tree.map_structure(blank, args), **tree.map_structure(blank, kwargs))

    def spec(x, y):
        if not is_tensor(x):
            return x
        lengths = [m if m == n else None for m, n in zip(x.shape, y.shape, strict=True)]
        return KerasTensor(lengths, standardize_dtype(x.dtype))

    with StatelessScope(), SymbolicScope(), numpy_itself.errstate(all="ignore"):
        open_ = any(
            isinstance(x, KerasTensor) and None in x.shape for x in tree.flatten((args, kwargs))
        )
        first = run(83)
        second = run(89) if open_ else first
        flat = [spec(x, y) for x, y in zip(tree.flatten(first), tree.flatten(second), strict=True)]
        return tree.pack_sequence_as(first, flat)


def _places(indices):
    return tuple(gg.unstack(convert_to_tensor(indices), axis=-1))


def scatter(indices, values, shape):
    values = convert_to_tensor(values)
    return gg.index_add(gg.zeros(tuple(shape), dtype=values.dtype), values, index=_places(indices))


def scatter_update(inputs, indices, updates, reduction=None):
    x = convert_to_tensor(inputs)
    updates, index = convert_to_tensor(updates, x.dtype), _places(indices)
    if reduction is None:
        return gg.index_put(x, updates, index=index)
    if reduction == "add":
        return gg.index_add(x, updates, index=index)
    if reduction not in _REDUCTIONS:
        raise ValueError(f"Unsupported reduction: {reduction}")
    reduce, combine = _REDUCTIONS[reduction]
    lengths = x.shape[: len(index)]
    strides = [math.prod(lengths[k + 1 :]) for k in builtins.range(len(lengths))]
    rows = builtins.sum(
        gg.where(i < 0, i + n, i) * step for i, n, step in zip(index, lengths, strides, strict=True)
    )
    values = reduce(updates, rows, math.prod(lengths))
    return combine(x, gg.reshape(values, x.shape))


_REDUCTIONS = {
    "max": (gg.segment_max, gg.maximum),
    "min": (gg.segment_min, gg.minimum),
    "mul": (gg.segment_prod, gg.multiply),
}


def _part(starts, lengths):
    return tuple(
        builtins.slice(int(a), int(a) + int(n)) for a, n in zip(starts, lengths, strict=True)
    )


def slice(inputs, start_indices, shape):
    if len(start_indices) != len(shape):
        raise ValueError(
            "Length of `start_indices` must match length of `shape`. "
            f"Received: start_indices={start_indices}, shape={shape}"
        )
    return convert_to_tensor(inputs)[_part(start_indices, shape)]


def slice_update(inputs, start_indices, updates):
    x = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, x.dtype)
    return gg.setitem(x, updates, index=_part(start_indices, updates.shape))


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    several = isinstance(loop_vars, (tuple, list))
    values = tuple(loop_vars) if several else (loop_vars,)
    values = tree.map_structure(convert_to_tensor, values)

    def advance(values):
        new = body(*values)
        return tree.map_structure(
            convert_to_tensor, tuple(new) if isinstance(new, (list, tuple)) else (new,)
        )

    values = gg.while_loop(
        lambda v: convert_to_tensor(cond(*v), "bool"),
        advance,
        values,
        maximum_iterations=maximum_iterations,
    )
    return values if several else values[0]


def stop_gradient(variable):
    return gg.stop_gradient(convert_to_tensor(variable))


def unstack(x, num=None, axis=0):
    return list(gg.unstack(convert_to_tensor(x), axis=axis))


class custom_gradient:
    """A function that returns its result and a function of the upstream gradient."""

    def __init__(self, fun):
        self.fun = fun

    def __call__(self, *args, **kwargs):
        """The result."""

        def call(*tensors):
            result, gradient = self.fun(*tensors, **kwargs)
            asks = inspect.signature(gradient).parameters.get("upstream")
            if asks is None or asks.kind is not asks.KEYWORD_ONLY:
                return result, gradient
            return result, lambda *g: gradient(upstream=g[0] if len(g) == 1 else g)

        return gg.custom_gradient(call)(*[convert_to_tensor(x) for x in args])


def device_scope(device_name):
    name = str(device_name).lower().replace("gpu", "cuda")
    return gg.device(name.removesuffix(":0") if name.startswith("cpu") else name)


remat = gg.recompute_grad
