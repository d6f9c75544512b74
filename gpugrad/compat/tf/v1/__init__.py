"""tf.compat.v1: graphs, sessions and TensorFlow 1's names.

Functions compute at once until `disable_eager_execution` or ``with tf.Graph().as_default():``; from
then on each returns a `Node`, which a `Session` runs.

>>> from gpugrad.compat.tf import v1 as tf
>>> with tf.Graph().as_default():
...     x = tf.placeholder(tf.float32, [None])
...     total = tf.reduce_sum(x * 2.0)
>>> with tf.Session() as session:
...     print(session.run(total, {x: [1.0, 2.0]}))
6.0
"""

# ruff: noqa: F401  # TensorFlow's names
from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.compat import tf
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import arrays, state
from gpugrad.compat.tf import initializers as _initializers
from gpugrad.compat.tf.convert import tensor, together
from gpugrad.compat.tf.initializers import constant_initializer, ones_initializer, zeros_initializer
from gpugrad.compat.tf.shapes import readers
from gpugrad.compat.tf.v1 import control, train
from gpugrad.compat.tf.v1.gradients import gradients
from gpugrad.compat.tf.v1.graph import (
    Graph,
    GraphKeys,
    Node,
    Placeholder,
    Run,
    deferred,
    disable_eager_execution,
    enable_eager_execution,
    executing_eagerly,
    get_default_graph,
    get_default_session,
    graphs,
    reset_default_graph,
)
from gpugrad.compat.tf.v1.scopes import (
    AUTO_REUSE,
    VariableScope,
    add_to_collection,
    get_collection,
    get_collection_ref,
    get_variable,
    get_variable_scope,
    global_variables,
    local_variables,
    model_variables,
    moving_average_variables,
    name_scope,
    trainable_variables,
    variable_scope,
)
from gpugrad.compat.tf.v1.session import InteractiveSession, Session
from gpugrad.compat.tf.v1.variables import Effect, RefVariable
from gpugrad.core import nest
from gpugrad.core.known_as import MissingNameError

readers.append(sys.modules[__name__])
placeholder = Placeholder


def placeholder_with_default(input, shape, name=None) -> Placeholder:
    default = tensor(input) if not isinstance(input, Node) else input
    return Placeholder(default.dtype, shape, name, default)


class _Variables(type):
    """The type of `Variable`, of which all Variables are instances."""

    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, (RefVariable, gg.Variable))


class Variable(RefVariable, metaclass=_Variables):
    """A Variable of a graph; with eager execution `gpugrad.compat.tf.Variable`."""

    def __new__(cls, *args, **keywords) -> Any:
        """A Variable of either kind."""
        return state.Variable(*args, **keywords) if executing_eagerly() else super().__new__(cls)


def variables_initializer(var_list, name="init") -> Node:
    chosen = list(var_list)

    def start(run: Run) -> None:
        for variable in chosen:
            variable.start(run)

    return Effect(start, name, starts=True)


def global_variables_initializer() -> Node:
    return variables_initializer(global_variables())


def local_variables_initializer() -> Node:
    return variables_initializer(local_variables())


initialize_all_variables, all_variables = global_variables_initializer, global_variables
initialize_variables = variables_initializer
initialize_local_variables = local_variables_initializer


def is_tensor(x) -> bool:
    return isinstance(x, Node) or arrays.is_tensor(x)


def _update(method: str) -> Callable[..., Node]:
    return lambda ref, value, *others, **options: getattr(ref, method)(value)


assign, assign_add, assign_sub = map(_update, ("assign", "assign_add", "assign_sub"))


def _scatter(method: str) -> Callable[..., Node]:
    return lambda ref, indices, updates, *others, **options: getattr(ref, method)(indices, updates)


scatter_add, scatter_sub = _scatter("scatter_add"), _scatter("scatter_sub")
scatter_update = _scatter("scatter_update")


def group(*inputs, name=None) -> Node:
    """An operation that runs others."""
    return Effect(lambda run: None, name or "group", list(inputs), _starts(inputs))


def _starts(inputs) -> bool:
    return any(getattr(x, "starts", False) for x in nest.flatten(list(inputs)))


def tuple(tensors, name=None, control_inputs=None) -> list[Any]:
    """Tensors, each of which has a value when all are computed."""
    first = [*tensors, *(control_inputs or [])]
    with get_default_graph().control_dependencies(first):
        return [None if x is None else deferred(tf.identity)(x) for x in tensors]


def no_op(name=None, *args, **options) -> Node:
    return group(name=name)


def control_dependencies(control_inputs) -> Any:
    """A block whose operations run after others."""
    if executing_eagerly():
        return tf.control_dependencies(control_inputs)
    return get_default_graph().control_dependencies(control_inputs)


def device(device_name_or_function) -> Any:
    """A block on a device; a function that chooses devices is not called."""
    name = None if callable(device_name_or_function) else device_name_or_function
    return tf.device(name)


_initializer = _initializers._initializer
random_normal_initializer = _initializer(tf.random.normal, mean=0.0, stddev=1.0)
random_uniform_initializer = _initializer(tf.random.uniform, minval=0.0, maxval=None)
truncated_normal_initializer = _initializer(tf.random.truncated_normal, mean=0.0, stddev=1.0)
glorot_uniform_initializer = _initializers.glorot_uniform
glorot_normal_initializer = _initializers.glorot_normal
orthogonal_initializer = _initializers.orthogonal
variance_scaling_initializer = _initializers.variance_scaling


disable_v2_behavior, enable_v2_behavior = disable_eager_execution, enable_eager_execution


def _flow(name: str) -> Callable[..., Any]:
    """Control flow, which calls its functions at once: in a graph with Nodes."""

    def call(*args, **keywords) -> Any:
        return getattr(tf if executing_eagerly() else control, name)(*args, **keywords)

    return functools.wraps(getattr(control, name))(call)


cond, case, switch_case, while_loop = map(_flow, ("cond", "case", "switch_case", "while_loop"))
map_fn, scan, foldl, foldr = map(_flow, ("map_fn", "scan", "foldl", "foldr"))
custom_gradient, TensorArray = map(_flow, ("custom_gradient", "TensorArray"))


def where(condition, x=None, y=None, name=None) -> Any:
    """`tf.where`, in which a vector chooses between rows."""
    return deferred(_where)(condition, x, y)


def _where(condition, x, y) -> Any:
    if x is None or y is None:
        return tf.where(condition, x, y)
    condition, (x, y) = tensor(condition), together(x, y)
    if condition.ndim == 1 < x.ndim:
        condition = gg.reshape(condition, (-1,) + (1,) * (x.ndim - 1))
    return tf.where(condition, x, y)


def div(x, y, name=None) -> Any:
    """A quotient, which is rounded down for integers."""
    return deferred(_quotient)(x, y)


def _quotient(x, y) -> Any:
    x, y = together(x, y)
    return gg.floor_divide(x, y) if x.dtype.kind in "iu" else gg.divide(x, y)


def install() -> None:
    tf.install()
    disable_eager_execution()
    own = sys.modules[__name__]
    sys.modules["tensorflow"] = own
    for name in (*_NAMESPACES, "train", "layers", "losses"):
        sys.modules[f"tensorflow.{name}"] = getattr(own, name)


class _Names:
    """A namespace of compat.tf, whose functions make Nodes if it is one of ops."""

    def __init__(self, module, of_ops: bool, **own) -> None:
        self._module, self._of_ops, self._own = module, of_ops, own

    def __getattr__(self, name: str) -> Any:
        value = self._own.get(name) or getattr(self._module, name)
        is_op = self._of_ops and callable(value) and not isinstance(value, type)
        return deferred(value) if is_op else value


def _dropout(x, keep_prob=None, noise_shape=None, seed=None, name=None, rate=None) -> Any:
    """`tf.nn.dropout`, whose second parameter was the probability to keep an element."""
    rate = 1 - keep_prob if rate is None else rate
    return tf.nn.dropout(x, rate, noise_shape, seed)


def _cross_entropy(labels=None, logits=None, dim=-1, name=None, axis=None) -> Any:
    """`tf.nn.softmax_cross_entropy_with_logits`, which had no gradient by the labels."""
    axis, labels = dim if axis is None else axis, gg.stop_gradient(tensor(labels))
    return tf.nn.softmax_cross_entropy_with_logits(labels, logits, axis)


class _Summary:
    """Writes nothing: use `gpugrad.train`'s loggers."""

    def __init__(self, *args, **options) -> None:
        self.add_summary = self.add_graph = self.flush = self.close = lambda *a, **k: None

    __enter__ = __exit__ = lambda self, *exception: self if not exception else None


summary = types.SimpleNamespace(
    **dict.fromkeys(("scalar", "histogram", "image", "merge", "merge_all"), no_op),
    FileWriter=_Summary,
)
logging = types.SimpleNamespace(
    set_verbosity=lambda level: None, info=lambda *a: None, ERROR=40, INFO=20, WARN=30
)


class ConfigProto:
    """Settings without effect; one that was not given is a group of others."""

    def __init__(self, *args, **options) -> None:
        self.__dict__.update(options)

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(name)
        return self.__dict__.setdefault(name, ConfigProto())


GPUOptions = GraphOptions = OptimizerOptions = RunOptions = ConfigProto

_MATRICES = "solve triangular_solve diag diag_part band_part"
_FFT = "fft ifft fft2d ifft2d"
_CHECKS = """assert_equal assert_none_equal assert_greater assert_greater_equal assert_less
assert_less_equal assert_positive assert_non_negative assert_near assert_rank assert_rank_at_least
assert_scalar assert_type assert_integer check_numerics is_numeric_tensor Assert"""
_RENAMED = """matrix_inverse=linalg.inv matrix_determinant=linalg.det diag=linalg.tensor_diag
diag_part=linalg.tensor_diag_part batch_matmul=linalg.matmul self_adjoint_eig=linalg.eigh
arg_max=math.argmax arg_min=math.argmin mul=math.multiply sub=math.subtract neg=math.negative
div_no_nan=math.divide_no_nan
floor_div=math.floordiv lin_space=linspace matrix_set_diag=linalg.set_diag
matrix_solve_ls=linalg.lstsq batch_gather=gather depth_to_space=nn.depth_to_space
space_to_depth=nn.space_to_depth reverse_v2=reverse mod=math.floormod OpError=errors.OpError"""
_OLD = {
    **{
        f"random_{name}": f"random.{name}"
        for name in ("normal", "uniform", "shuffle", "gamma", "poisson")
    },
    **{name: f"linalg.{name}" for name in ("cholesky", "svd")},
    **{f"matrix_{name}": f"linalg.{name}" for name in _MATRICES.split()},
    **{name: f"signal.{name}" for name in _FFT.split()},
    **{name: f"debugging.{name}" for name in _CHECKS.split()},
    **dict(pair.split("=") for pair in _RENAMED.split()),
}
_NOW = ("set_random_seed", "executing_eagerly", "config")
_NAMESPACES = ("nn", "math", "linalg", "random", "initializers")
_OWN: dict[str, dict[str, Any]] = {
    "nn": {"dropout": _dropout, "softmax_cross_entropy_with_logits": _cross_entropy},
    "initializers": {
        "random_normal": random_normal_initializer,
        "random_uniform": random_uniform_initializer,
        "truncated_normal": truncated_normal_initializer,
    },
}
"""Functions of a namespace that differ from TensorFlow 2's."""


def Print(input_, data, message=None, *others, **options) -> Any:

    def show(x, values) -> Any:
        tf.print(message or "", *values)
        return x

    return deferred(show)(input_, data)


def py_func(func, inp, Tout, stateful=True, name=None) -> Any:
    """`numpy_function`, which has no gradient."""
    return deferred(tf.numpy_function)(func, inp, Tout)


# these use the names above
layers = importlib.import_module(f"{__name__}.layers")
losses = importlib.import_module(f"{__name__}.losses")
_look_up, __dir__ = forwarding(__name__, tf, own=globals() | _OLD)


def __getattr__(name: str) -> Any:
    if name in ("to_float", "to_double", "to_int32", "to_int64"):
        dtype = {"to_float": "float32", "to_double": "float64"}.get(name, name[3:])
        return functools.partial(deferred(arrays.cast), dtype=dtype)
    try:
        value = functools.reduce(getattr, _OLD.get(name, name).split("."), tf)
    except MissingNameError:
        return _look_up(name)  # raises, with the nearest names
    if name in _NAMESPACES:
        return _Names(value, name != "initializers", **_OWN.get(name, {}))
    f: Any = value
    keeps = isinstance(value, type) or not callable(value) or name in _NOW
    return value if keeps else deferred(f)
