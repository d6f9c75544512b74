"""TensorFlow's names: a program for TensorFlow's tape runs with one import changed.

Tensors are gpugrad's; in a module whose global ``tf`` this is, they print as TensorFlow's, and
their shapes and dtypes have its attributes (see `shapes`). Operands of two dtypes are promoted
where TensorFlow raises. Strings, ragged and sparse Tensors are not there; `keras` is Keras on
gpugrad. `install` puts this package in place of TensorFlow, for programs that import it;
``python -m gpugrad.compat.tf PATH...`` lists the names that programs use and that are missing.
Tried with programs that run in TensorFlow 2.21.

>>> import gpugrad.compat.tf as tf
>>> x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
>>> with tf.GradientTape() as tape:
...     y = tf.reduce_sum(tf.matmul(x, x, transpose_b=True))
>>> tape.gradient(y, x).numpy().tolist()
[[8.0, 12.0], [8.0, 12.0]]
"""

# ruff: noqa: F401  # TensorFlow's names
from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from logging import getLogger
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad import (
    AggregationMethod,
    ForwardAccumulator,
    GradientTape,
    Graph,
    IndexedSlices,
    UnconnectedGradients,
    grad_pass_through,
    gradients,
    no_gradient,
    recompute_grad,
    stop_gradient,
)
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import (
    arrays,
    control,
    data,
    debugging,
    distribute,
    errors,
    initializers,
    linalg,
    math,
    nest,
    nn,
    optimizers,
    random,
    saving,
    state,
)
from gpugrad.compat.tf.control import TensorArray, function
from gpugrad.compat.tf.convert import ints, op, ops, tensor
from gpugrad.compat.tf.initializers import (
    constant_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from gpugrad.compat.tf.shapes import DType, TensorShape, TensorSpec, as_dtype, readers, show
from gpugrad.compat.tf.state import Module, Variable
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError
from gpugrad.trace.array import current_trace, pause_trace

__version__ = "2.21.0"
"""The version of TensorFlow whose names these are."""

newaxis = None
get_logger = functools.partial(getLogger, "tensorflow")
bool, bfloat16 = as_dtype("bool"), as_dtype("bfloat16")
float16, float32, float64 = as_dtype("float16"), as_dtype("float32"), as_dtype("float64")
half, double = float16, float64
int8, int16, int32, int64 = (as_dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (as_dtype(f"uint{n}") for n in (8, 16, 32, 64))
complex64, complex128 = as_dtype("complex64"), as_dtype("complex128")
TypeSpec = TensorSpec


def print(*inputs, output_stream=None, sep=" ", end="\n", **options) -> None:
    if not executing_eagerly():
        gg.debug.print(sep.join(["{}"] * len(inputs)), *inputs)
        return
    stream = output_stream if hasattr(output_stream, "write") else sys.stderr
    builtins.print(*inputs, sep=sep, end=end, file=stream)


def device(device_name) -> Any:
    name = str(device_name or "").rpartition("/")[2].lower().removeprefix("device:")
    kind, _, number = name.partition(":")
    if kind == "gpu" and any(d.kind == "cuda" for d in gg.devices()):
        return gg.device(f"cuda:{number or 0}")
    if kind not in ("", "cpu", "gpu", "tpu", "job", "task", "replica"):
        raise ArgumentError(f"tf.device: {device_name!r} is not a device such as '/CPU:0'.")
    return gg.device("cpu") if kind == "cpu" else contextlib.nullcontext()


def name_scope(*args, **options) -> Any:
    """A context that does nothing: names are not scoped, operations run in the program's order."""
    return contextlib.nullcontext(f"{args[0] if args else None}/")


control_dependencies = name_scope


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Runs its block while a function is traced, not in each call: it may make Variables."""
    with recording_stopped(), pause_trace():
        yield


def executing_eagerly() -> Any:
    return current_trace() is None


def inside_function() -> Any:
    return current_trace() is not None


def is_symbolic_tensor(tensor) -> Any:
    return isinstance(tensor, Tensor) and inside_function()


def _on_values(f: Any, x) -> Any:
    """A function of a Tensor, or of the values of IndexedSlices."""
    if isinstance(x, IndexedSlices):
        return IndexedSlices(f(x.values), x.indices, x.dense_shape)
    return None if x is None else f(tensor(x))


@op
def clip_by_norm(t=..., clip_norm=..., axes=None) -> Any:
    def clip(x) -> Any:
        squares = gg.sum(gg.square(x), axis=axes, keepdims=True)
        size = gg.sqrt(gg.where(squares > 0, squares, gg.ones_like(squares)))
        return x * clip_norm / gg.maximum(gg.where(squares > 0, size, squares), clip_norm)

    return _on_values(clip, t)


@op
def clip_by_global_norm(t_list=..., clip_norm=..., use_norm=None) -> Any:
    size = linalg.global_norm(t_list) if use_norm is None else use_norm
    scale = clip_norm / gg.maximum(size, clip_norm)
    return [_on_values(lambda x: x * scale, x) for x in t_list], size


def _nothing(*args, **options) -> None:
    """Nothing: there is no such setting here."""


def _list_devices(device_type=None) -> list[Any]:
    """The devices of a kind, "CPU" or "GPU"."""
    kinds = {None: ("cpu", "cuda"), "CPU": ("cpu",), "GPU": ("cuda",)}.get(device_type, ())
    return [
        SimpleNamespace(name=f"/physical_device:{d.kind.upper()}:0", device_type=device_type)
        for d in gg.devices()
        if d.kind in kinds
    ]


_parts = (
    data,
    debugging,
    distribute,
    errors,
    initializers,
    linalg,
    math,
    nest,
    nn,
    optimizers,
    random,
)
_modules: dict[str, Any] = {part.__name__.rpartition(".")[2]: part for part in _parts}


def _module(name: str, *sources: Any, **members) -> Any:
    """A module of TensorFlow's with a few names, and those of `sources`."""
    _modules[name] = module = ModuleType(f"{__name__}.{name}")
    look_up, names = forwarding(module.__name__, *sources, own=members)
    module.__dict__.update(members, __getattr__=look_up, __dir__=names)
    return module


dtypes = _module(
    "dtypes",
    cast=arrays.cast,
    complex=arrays._OPS["complex"],
    saturate_cast=arrays.saturate_cast,
    as_dtype=as_dtype,
    DType=DType,
    **{name: value for name, value in globals().items() if isinstance(value, DType)},
)
autodiff = _module("autodiff", GradientTape=GradientTape, ForwardAccumulator=ForwardAccumulator)
train = _module(
    "train",
    Checkpoint=saving.Checkpoint,
    CheckpointManager=saving.CheckpointManager,
    latest_checkpoint=saving.latest_checkpoint,
    list_variables=saving.list_variables,
    load_checkpoint=saving.load_checkpoint,
)
_functions = dict.fromkeys(("GenericFunction", "PolymorphicFunction"), control.Function)
types = _module(
    "types",
    experimental=_module(
        "types.experimental",
        TraceType=object,
        TensorLike=Any,
        ConcreteFunction=control.ConcreteFunction,
        **_functions,
    ),
)
_settings = "set_visible_devices set_soft_device_placement set_logical_device_configuration"
config = _module(
    "config",
    list_physical_devices=_list_devices,
    list_logical_devices=_list_devices,
    run_functions_eagerly=control.run_functions_eagerly,
    functions_run_eagerly=control.functions_run_eagerly,
    optimizer=_module(
        "config.optimizer",
        get_experimental_options=dict,
        **dict.fromkeys(("set_experimental_options", "set_jit"), _nothing),
    ),
    experimental=_module(
        "config.experimental",
        list_physical_devices=_list_devices,
        VirtualDeviceConfiguration=dict,
        **dict.fromkeys(("set_memory_growth", "set_virtual_device_configuration"), _nothing),
    ),
    LogicalDeviceConfiguration=dict,
    **dict.fromkeys(_settings.split(), _nothing),
)
experimental = _module(
    "experimental",
    numpy=_module(
        "experimental.numpy",
        importlib.import_module("gpugrad.numpy"),
        experimental_enable_numpy_behavior=_nothing,
    ),
)


def _of_length(f: Any, several: int) -> Any:
    """A transform whose length is its second argument; of several axes lengths."""
    if several:
        return lambda input_tensor, fft_length=None: f(
            input_tensor, s=None if fft_length is None else ints(fft_length)
        )
    return lambda input_tensor, fft_length=None: f(
        input_tensor, n=None if fft_length is None else ints(fft_length)[0]
    )


signal = _module(
    "signal",
    **ops(
        "input: fft=fft.fft ifft=fft.ifft fft2d=fft.fft2 ifft2d=fft.ifft2",
        rfft=_of_length(gg.fft.rfft, 0),
        irfft=_of_length(gg.fft.irfft, 0),
        rfft2d=_of_length(gg.fft.rfft2, 1),
        irfft2d=_of_length(gg.fft.irfft2, 1),
    ),
)
readers.append(sys.modules[__name__])
show()
_CHECKS = [f"assert_{name}" for name in ("equal", "greater", "less", "rank")]
_checks = {name: getattr(debugging, name) for name in _CHECKS} | {"Assert": debugging.Assert}
_sources: Any = (arrays, control, linalg, math, random, _checks)
_look_up, _names = forwarding(__name__, *_sources, own=globals())


_WAYS_OUT = {
    "strings string": "strings have no Tensor; use Python's or np.char's before tf.constant.",
    "ragged RaggedTensor RaggedTensorSpec": (
        "pad rows with tf.data's padded_batch and mask them with tf.sequence_mask, or reduce flat "
        "values with tf.math.segment_sum."
    ),
    "sparse SparseTensor SparseTensorSpec": (
        "gpugrad.scipy.sparse has sparse arrays with gradients, tf.scatter_nd makes dense ones."
    ),
    "saved_model": "tf.train.Checkpoint saves the Variables; a program is its Python code.",
    "image": "see gpugrad.scipy.ndimage, gpugrad.nn.functional.interpolate and tf.keras.",
    "io": "read files with Python or NumPy; gpugrad.checkpoint reads safetensors.",
    "estimator": "use tf.keras or gpugrad.train.fit.",
    "summary profiler": "see gpugrad.train's loggers and gpugrad.profile.",
    "autograph": "Python control flow is not rewritten: use tf.cond and tf.while_loop.",
    "lookup lite tpu raw_ops feature_column": "it has no counterpart here.",
}


@functools.cache
def _ways_out() -> dict[str, str]:
    """The ways out for TensorFlow's names that have no counterpart in gpugrad."""
    return {name: way for names, way in _WAYS_OUT.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "compat":
        value: Any = _module(
            "compat", v1=importlib.import_module(f"{__name__}.v1"), v2=sys.modules[__name__]
        )
    elif name == "keras":
        value = _keras()
    elif name in ("losses", "metrics"):
        value = getattr(_keras(), name)
    elif name in _ways_out():
        raise AttributeError(f"gpugrad.compat.tf has no {name}: {_ways_out()[name]}", name=name)
    else:
        value = _look_up(name)
    globals()[name] = value
    return value


def _keras() -> Any:
    """Keras on gpugrad; tf.keras."""
    try:
        importlib.import_module("gpugrad.integrations.keras")
        return importlib.import_module("keras._tf_keras.keras")  # with TensorFlow's older names
    except ImportError as error:
        raise AttributeError(f"gpugrad.compat.tf.keras: {error}", name="keras") from error


def __dir__() -> list[str]:
    return _names()


class _KerasFinder:
    """Finds ``tensorflow.keras`` and what is in it as ``keras``, which runs on gpugrad."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A spec for tensorflow.keras and its modules, None for other names."""
        if name == "keras":  # a program that imports it before tensorflow.keras
            importlib.import_module("gpugrad.integrations.keras")
            os.environ["KERAS_BACKEND"] = "gpugrad"
        if name != "tensorflow.keras" and not name.startswith("tensorflow.keras."):
            return None
        package = sys.modules[__name__]
        loader = SimpleNamespace(
            create_module=lambda spec: functools.reduce(getattr, name.split(".")[1:], package),
            exec_module=lambda module: None,
        )
        return importlib.util.spec_from_loader(name, loader)


def install() -> None:
    """Let ``import tensorflow`` find this package, before anything has imported TensorFlow.

    Raises:
        ImportError: TensorFlow itself is imported already.

    >>> import gpugrad.compat.tf
    >>> gpugrad.compat.tf.install()
    >>> import tensorflow as tf
    >>> tf.square(3.0).numpy().item()
    9.0
    """
    loaded = sys.modules.get("tensorflow")
    own = sys.modules[__name__]
    if loaded is not None and loaded is not own:
        raise ImportError(
            "gpugrad.compat.tf.install: TensorFlow is imported already. Call install() before the "
            "first import of tensorflow and of libraries that use it."
        )
    compat = __getattr__("compat")
    modules = {**_modules, "compat.v1": compat.v1, "compat.v2": own}
    sys.modules["tensorflow"] = own
    sys.meta_path.insert(0, _KerasFinder())
    sys.modules.update({f"tensorflow.{name}": module for name, module in modules.items()})
