"""Scopes of names and of Variables in TensorFlow 1: variable_scope, name_scope, get_variable."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import initializers
from gpugrad.compat.tf.convert import ints
from gpugrad.compat.tf.shapes import numpys
from gpugrad.compat.tf.v1.graph import GraphKeys, Node, get_default_graph
from gpugrad.compat.tf.v1.variables import RefVariable
from gpugrad.errors import ArgumentError

AUTO_REUSE = "AUTO_REUSE"
"""As ``reuse=``: a Variable is declared the first time and found later."""


class VariableScope:
    """The prefix of names in `get_variable`, and its defaults for Variables.

    Attributes:
        name: the prefix.
        reuse: True if Variables must exist, None if they must not, or `AUTO_REUSE`.
        original_name_scope: the prefix of operations, with a slash.
    """

    def __init__(self, name: str, reuse=None, original_name_scope="", **defaults) -> None:
        self.name, self.reuse, self.original_name_scope = name, reuse, original_name_scope
        self.defaults = defaults

    def reuse_variables(self) -> None:
        self.reuse = True

    def get_variable(self, *args, **keywords) -> RefVariable:
        with get_default_graph().setting(variable_scope=self):
            return get_variable(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name not in _DEFAULTS:
            raise AttributeError(f"VariableScope has no {name!r}", name=name)
        return self.defaults.get(name)

    def __str__(self) -> str:
        return self.name


_DEFAULTS = ("initializer", "regularizer", "dtype", "constraint")
"""Defaults that a scope may have for its Variables."""


def get_variable_scope() -> VariableScope:
    """The scope of now; that of a graph outside all blocks has no name."""
    graph = get_default_graph()
    if graph.variable_scope is None:
        graph.variable_scope = VariableScope("")
    return graph.variable_scope


@contextlib.contextmanager
def variable_scope(
    name_or_scope,
    default_name=None,
    values=None,
    initializer=None,
    regularizer=None,
    caching_device=None,
    partitioner=None,
    custom_getter=None,
    reuse=None,
    dtype=None,
    use_resource=None,
    constraint=None,
    auxiliary_name_scope=True,
) -> Iterator[VariableScope]:
    """A block whose Variables and operations have a prefix, and its defaults for Variables.

    A VariableScope in place of the name is gone back to: its name does not follow that of now.
    """
    if custom_getter is not None or partitioner is not None:
        raise ArgumentError("variable_scope: custom_getter= and partitioner= are not understood.")
    graph, around = get_default_graph(), get_variable_scope()
    defaults = {
        "initializer": initializer,
        "regularizer": regularizer,
        "dtype": dtype,
        "constraint": constraint,
    }
    given = {key: value for key, value in defaults.items() if value is not None}
    if isinstance(name_or_scope, VariableScope):
        path, base = name_or_scope.name, name_or_scope
    else:
        name = name_or_scope
        if name is None:
            name = _unused(around.name, default_name)
        path, base = _joined(around.name, str(name)), around
    last = path.rpartition("/")[2]
    block = name_scope(last) if auxiliary_name_scope else contextlib.nullcontext("")
    with block as names:
        own = VariableScope(path, reuse or base.reuse, names, **{**base.defaults, **given})
        graph.names.setdefault(f"variables of {path}", 1)
        with graph.setting(variable_scope=own):
            yield own


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}/{name}" if prefix else name


def _unused(prefix: str, name) -> str:
    """A name of no scope of Variables yet."""
    if name is None:
        raise ArgumentError("variable_scope: give a name, or None with default_name=.")
    names, n, unique = get_default_graph().names, 0, str(name)
    while f"variables of {_joined(prefix, unique)}" in names:
        n += 1
        unique = f"{name}_{n}"
    return unique


@contextlib.contextmanager
def name_scope(name, default_name=None, values=None) -> Iterator[str]:
    """A block whose operations have a prefix; a name with a slash at its end is the whole one."""
    graph = get_default_graph()
    name = default_name if name is None else name
    if not name:
        scope = ""
    elif str(name).endswith("/"):
        scope = str(name)[:-1]
    else:
        scope = graph.unique_name(_joined(graph.scope, str(name)))
    with graph.setting(scope=scope):
        yield f"{scope}/" if scope else ""


def get_variable(
    name: str,
    shape=None,
    dtype=None,
    initializer=None,
    regularizer=None,
    trainable=None,
    collections=None,
    caching_device=None,
    partitioner=None,
    validate_shape=True,
    use_resource=None,
    custom_getter=None,
    constraint=None,
) -> RefVariable:
    """The Variable of a name in the current scope: a new one, or with ``reuse=`` that of before."""
    if custom_getter is not None or partitioner is not None:
        raise ArgumentError("get_variable: custom_getter= and partitioner= are not understood.")
    graph, scope = get_default_graph(), get_variable_scope()
    path = _joined(scope.name, name)
    known = graph.variables.get(f"{path}:0")
    lengths = None if shape is None else ints(shape)
    if known is not None:
        if not scope.reuse:
            raise ArgumentError(f"get_variable: {path!r} exists; use variable_scope(reuse=True).")
        own, kind = known.shape.as_list(), numpys(known.dtype)
        if lengths is not None and own != list(lengths):
            raise ArgumentError(f"get_variable: {path!r} has shape {own}, not {list(lengths)}.")
        if dtype is not None and kind != numpys(dtype):
            raise ArgumentError(f"get_variable: {path!r} has dtype {kind}, not {numpys(dtype)}.")
        return known
    if scope.reuse is True:
        raise ArgumentError(
            f"get_variable: {path!r} does not exist; use reuse=tf.AUTO_REUSE to declare it."
        )
    value = scope.initializer if initializer is None else initializer
    of_scope = scope.dtype or "float32"
    if not _is_function(value) and value is not None:  # a value, which has a dtype
        dtype = dtype or getattr(value, "dtype", None)
    kind = numpys(dtype or of_scope)
    if value is None:
        value = initializers.glorot_uniform() if kind.kind == "f" else initializers.zeros()
    if _is_function(value):
        value = Node(value, () if lengths is None else (lengths,), _dtype_of(value, kind))
    variable = RefVariable(
        value,
        trainable,
        collections,
        name=name,
        dtype=kind,
        full_name=path,
        constraint=scope.constraint if constraint is None else constraint,
    )
    penalty = scope.regularizer if regularizer is None else regularizer
    if penalty is not None and (loss := penalty(variable)) is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _is_function(value) -> bool:
    return callable(value) and not hasattr(value, "shape")


def _dtype_of(make: Callable[..., Any], dtype) -> dict[str, Any]:
    """The dtype for an initializer that takes one."""
    try:
        takes = "dtype" in inspect.signature(make).parameters
    except ValueError:
        takes = False
    return {"dtype": dtype} if takes else {}


def get_collection(key: str, scope=None) -> list[Any]:
    return get_default_graph().get_collection(key, scope)


def add_to_collection(name: str, value) -> None:
    get_default_graph().add_to_collection(name, value)


def get_collection_ref(key: str) -> list[Any]:
    """The list itself, which the caller may change."""
    return get_default_graph().collections.setdefault(key, [])


trainable_variables = functools.partial(get_collection, GraphKeys.TRAINABLE_VARIABLES)
global_variables = functools.partial(get_collection, GraphKeys.GLOBAL_VARIABLES)
local_variables = functools.partial(get_collection, GraphKeys.LOCAL_VARIABLES)
model_variables = functools.partial(get_collection, GraphKeys.MODEL_VARIABLES)
moving_average_variables = functools.partial(get_collection, GraphKeys.MOVING_AVERAGE_VARIABLES)

__getattr__, __dir__ = forwarding(__name__, own=globals())
