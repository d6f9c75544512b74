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

import contextlib
import functools
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import gpugrad as gg
from gpugrad.compat import tf
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import arrays, initializers, state
from gpugrad.compat.tf.convert import ints, tensor
from gpugrad.compat.tf.initializers import constant_initializer, ones_initializer, zeros_initializer
from gpugrad.compat.tf.shapes import readers
from gpugrad.compat.tf.v1 import train
from gpugrad.compat.tf.v1.graph import (
    Effect,
    Graph,
    InteractiveSession,
    Node,
    Placeholder,
    RefVariable,
    Session,
    get_default_graph,
    get_default_session,
    graphs,
    reset_default_graph,
    scopes,
)
from gpugrad.compat.tf.v1.train import gradients
from gpugrad.core import nest
from gpugrad.core.known_as import MissingNameError
from gpugrad.errors import ArgumentError

readers.append(sys.modules[__name__])
placeholder = Placeholder


def placeholder_with_default(input, shape, name=None) -> Placeholder:
    default = tensor(input) if not isinstance(input, Node) else input
    return Placeholder(default.dtype, shape, name, default)


class Variable(RefVariable):
    """A Variable of a graph; with eager execution `gpugrad.compat.tf.Variable`."""

    def __new__(cls, *args, **keywords) -> Any:
        """A Variable of either kind."""
        return state.Variable(*args, **keywords) if executing_eagerly() else super().__new__(cls)


def get_variable(
    name: str,
    shape=None,
    dtype="float32",
    initializer=None,
    regularizer=None,
    trainable=True,
    *others,
    **options,
) -> RefVariable:
    """The Variable of a name in the current scope, which is declared if it is new."""
    path = "/".join([*scopes, name])
    known = get_default_graph().variables.get(f"{path}:0")
    if known is not None:
        if _reuse[-1]:
            return known
        raise ArgumentError(f"get_variable: {path!r} exists; use variable_scope(reuse=True).")
    value = initializer or glorot_uniform_initializer()
    if callable(value):
        value = Node(functools.partial(value, ints(shape), dtype=dtype))
    return RefVariable(value, trainable, name=name, dtype=dtype)


_reuse: list[Any] = [False]
AUTO_REUSE = True


@contextlib.contextmanager
def variable_scope(
    name_or_scope, default_name=None, values=None, reuse=None, **options
) -> Iterator[Any]:
    _reuse.append(_reuse[-1] if reuse is None else reuse)
    try:
        with name_scope(name_or_scope, default_name) as path:
            yield path[:-1]
    finally:
        _reuse.pop()


@contextlib.contextmanager
def name_scope(name, default_name=None, values=None) -> Iterator[Any]:
    scopes.append(str(getattr(name, "name", name) or default_name))
    try:
        yield "/".join(scopes) + "/"
    finally:
        scopes.pop()


def variables_initializer(var_list, name="init") -> Node:
    return Effect(lambda run: run.all(variable.start(run) for variable in var_list), name)


def global_variables_initializer() -> Node:
    return variables_initializer(get_default_graph().variables.values())


initialize_all_variables = local_variables_initializer = global_variables_initializer


def get_collection(key: str, scope=None) -> list[Any]:
    return get_default_graph().get_collection(key, scope)


def add_to_collection(name: str, value) -> None:
    get_default_graph().collections.setdefault(name, []).append(value)


def get_variable_scope() -> Any:
    again = functools.partial(_reuse.__setitem__, -1, True)
    return types.SimpleNamespace(name="/".join(scopes), reuse=_reuse[-1], reuse_variables=again)


trainable_variables = functools.partial(get_collection, "trainable_variables")
global_variables = functools.partial(get_collection, "global_variables")
all_variables, local_variables = global_variables, functools.partial(get_collection, "local")


def is_tensor(x) -> bool:
    return isinstance(x, Node) or arrays.is_tensor(x)


class GraphKeys:
    """Names of collections."""

    GLOBAL_VARIABLES, TRAINABLE_VARIABLES = "variables", "trainable_variables"
    REGULARIZATION_LOSSES, UPDATE_OPS = "regularization_losses", "update_ops"


def _update(method: str) -> Callable[..., Node]:
    return lambda ref, value, *others, **options: getattr(ref, method)(value)


assign, assign_add, assign_sub = map(_update, ("assign", "assign_add", "assign_sub"))


def group(*inputs, **options) -> Node:
    return Effect(lambda run: run.all(run.of(x) for x in nest.flatten(list(inputs))), "group")


def no_op(*args, **options) -> Node:
    return group()


_initializer = initializers._initializer
random_normal_initializer = _initializer(tf.random.normal, mean=0.0, stddev=1.0)
random_uniform_initializer = _initializer(tf.random.uniform, minval=0.0, maxval=None)
truncated_normal_initializer = _initializer(tf.random.truncated_normal, mean=0.0, stddev=1.0)
glorot_uniform_initializer = initializers.glorot_uniform
glorot_normal_initializer = initializers.glorot_normal


_eager = [True]


def executing_eagerly() -> bool:
    """Whether functions compute at once: until a graph is begun or eager execution disabled."""
    return _eager[-1] and len(graphs) == 1


def disable_eager_execution() -> None:
    _eager[-1] = False


def enable_eager_execution(*args, **options) -> None:
    """Let functions compute at once."""
    _eager[-1] = True


disable_v2_behavior, enable_v2_behavior = disable_eager_execution, enable_eager_execution


def _deferred(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def call(*args, **keywords) -> Any:
        return f(*args, **keywords) if executing_eagerly() else Node(f, args, keywords)

    return call


def install() -> None:
    tf.install()
    disable_eager_execution()
    own = sys.modules[__name__]
    sys.modules["tensorflow"] = own
    for name in (*_NAMESPACES, "train", "layers", "losses"):
        sys.modules[f"tensorflow.{name}"] = getattr(own, name)


class _Names:
    """A namespace of compat.tf whose functions make Nodes."""

    def __init__(self, module, **own) -> None:
        self._module, self._own = module, own

    def __getattr__(self, name: str) -> Any:
        value = self._own.get(name) or getattr(self._module, name)
        return _deferred(value) if callable(value) and not isinstance(value, type) else value


def _dropout(x, keep_prob=None, noise_shape=None, seed=None, name=None, rate=None) -> Any:
    """`tf.nn.dropout`, whose second parameter was the probability to keep an element."""
    rate = 1 - keep_prob if rate is None else rate
    return tf.nn.dropout(x, rate, noise_shape, seed)


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
ConfigProto = GPUOptions = dict

_MATRICES = "solve triangular_solve diag diag_part band_part"
_FFT = "fft ifft fft2d ifft2d"
_CHECKS = """assert_equal assert_none_equal assert_greater assert_greater_equal assert_less
assert_less_equal assert_positive assert_non_negative assert_near assert_rank assert_rank_at_least
assert_scalar assert_type assert_integer check_numerics is_numeric_tensor Assert"""
_RENAMED = """matrix_inverse=linalg.inv matrix_determinant=linalg.det diag=linalg.tensor_diag
diag_part=linalg.tensor_diag_part batch_matmul=linalg.matmul self_adjoint_eig=linalg.eigh
arg_max=math.argmax arg_min=math.argmin mul=math.multiply sub=math.subtract neg=math.negative
div=math.divide div_no_nan=math.divide_no_nan
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
_NOW = ("set_random_seed", "device", "control_dependencies", "executing_eagerly", "config")
_NAMESPACES = ("nn", "math", "linalg", "random")


def Print(input_, data, message=None, *others, **options) -> Any:

    def show(x, values) -> Any:
        tf.print(message or "", *values)
        return x

    return _deferred(show)(input_, data)


def py_func(func, inp, Tout, stateful=True, name=None) -> Any:
    """`numpy_function`, which has no gradient."""
    return _deferred(tf.numpy_function)(func, inp, Tout)


# these use the names above
layers = importlib.import_module(f"{__name__}.layers")
losses = importlib.import_module(f"{__name__}.losses")
_look_up, __dir__ = forwarding(__name__, tf, own=globals() | _OLD)


def __getattr__(name: str) -> Any:
    if name in ("to_float", "to_double", "to_int32", "to_int64"):
        dtype = {"to_float": "float32", "to_double": "float64"}.get(name, name[3:])
        return functools.partial(_deferred(arrays.cast), dtype=dtype)
    try:
        value = functools.reduce(getattr, _OLD.get(name, name).split("."), tf)
    except MissingNameError:
        return _look_up(name)  # raises, with the nearest names
    if name in _NAMESPACES:
        return _Names(value, **({"dropout": _dropout} if name == "nn" else {}))
    f: Any = value
    keeps = isinstance(value, type) or not callable(value) or name in _NOW
    return value if keeps else _deferred(f)
