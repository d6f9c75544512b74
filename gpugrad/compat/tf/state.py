"""Variables and modules with TensorFlow's arguments."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.tf import arrays
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.shapes import numpys
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError


def _update(name: str) -> Any:
    """A Variable's method of that name that takes numbers, in the Variable's dtype."""
    own = getattr(gg.Variable, name)

    @functools.wraps(own)
    def method(self, value, use_locking=None, name=None, read_value=True) -> Any:
        return own(self, self._own_dtype(value), use_locking, name, read_value)

    return method


def _elements(name: str) -> Any:
    """A method that updates elements, or rows, at indices along the last axis of ``indices``."""

    def method(self, indices, updates, name=None) -> Any:
        return self.assign(f(self.value(), tensor(indices), tensor(self._own_dtype(updates))))

    f = arrays._OPS[f"tensor_scatter_nd_{name}"]
    return method


def _rows(name: str) -> Any:
    """A method that updates rows: the Variable's own of a name, or as `_elements` does."""
    own = getattr(gg.Variable, name) if name.startswith("scatter") else None
    at: Any = None if own else _elements(name)

    def method(self, sparse_delta, use_locking=None, name=None) -> Any:
        indices, values = tensor(sparse_delta.indices), tensor(self._own_dtype(sparse_delta.values))
        if own is None:
            return at(self, gg.expand_dims(indices, axis=-1), values)
        return own(self, gg.IndexedSlices(values, indices))

    return method


_PARAMETERS = "validate_shape caching_device name variable_def dtype import_scope constraint"


def named(others, options) -> dict[str, Any]:
    """Arguments of a Variable of TensorFlow after its value and `trainable`, by their names."""
    return {**dict(zip(_PARAMETERS.split(), others, strict=False)), **options}


class Variable(gg.Variable):
    """`gpugrad.Variable` with TensorFlow's arguments: Python ints make int32.

    >>> import gpugrad.compat.tf as tf
    >>> tf.Variable([1, 2]).assign_add([1, 1]).numpy().tolist()
    [2, 3]
    """

    __slots__ = ("constraint",)

    def __init__(self, initial_value=None, trainable=None, *others, shape=..., **options) -> None:
        options = named(others, options)
        self.constraint = options.get("constraint")
        if callable(initial_value) and not isinstance(initial_value, Tensor):
            initial_value = initial_value()
        if initial_value is None:
            raise ArgumentError("Variable: an initial_value is needed.")
        dtype = options.get("dtype")
        if dtype is None or isinstance(initial_value, Tensor):
            initial_value = tensor(initial_value)
        dtype = None if dtype is None else numpys(dtype)
        name = f"{options.get('name') or 'Variable'}:0"
        trainable = True if trainable is None else bool(trainable)
        extra = {} if shape is ... else {"shape": None if shape is None else tuple(shape)}
        super().__init__(initial_value, trainable, name, dtype, **extra)

    assign, assign_add, assign_sub = map(_update, ("assign", "assign_add", "assign_sub"))
    scatter_add, scatter_sub, scatter_update, scatter_max, scatter_min = map(
        _rows, ("scatter_add", "scatter_sub", "scatter_update", "max", "min")
    )
    scatter_nd_add, scatter_nd_sub, scatter_nd_update = map(_elements, ("add", "sub", "update"))

    def _own_dtype(self, value) -> Any:
        if isinstance(value, Tensor):
            return tensor(value, self.dtype)
        return value if isinstance(value, np.ndarray) else tensor(value, like=self.dtype)

    def initialized_value(self) -> Tensor:
        return self.value()

    def gather_nd(self, indices, name=None) -> Tensor:
        """The elements, or rows, at indices along the last axis of `indices`."""
        return arrays.gather_nd(self.value(), indices)

    def sparse_read(self, indices, name=None) -> Tensor:
        """Rows."""
        return gg.gather(self, tensor(indices))

    def get_shape(self) -> Any:
        return self.shape


class Module:
    """An object that finds the Variables and Modules in its attributes, in the order of names.

    >>> import gpugrad.compat.tf as tf
    >>> class Line(tf.Module):
    ...     def __init__(self):
    ...         super().__init__(name="line")
    ...         self.slope, self.offset = tf.Variable(2.0), tf.Variable(1.0, trainable=False)
    >>> len(Line().variables), len(Line().trainable_variables)
    (2, 1)
    """

    def __init__(self, name=None) -> None:
        if name is not None and not name.isidentifier():
            raise ArgumentError(f"Module: name={name!r} is not a Python identifier.")
        self._name = name or _snake(type(self).__name__)

    @property
    def name(self) -> str:
        """The name; by default that of the class."""
        return getattr(self, "_name", _snake(type(self).__name__))

    @property
    def name_scope(self) -> Any:
        """A context that does nothing: names are not scoped."""
        return contextlib.nullcontext(f"{self.name}/")

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method itself: names are not scoped."""
        return method

    def _flatten(self, recursive=True, predicate=None, with_path=False, **options) -> Iterator[Any]:
        """Everything in attributes, lists and dicts for which `predicate` holds, level by level."""
        test = predicate or (lambda x: True)
        for path, x in _walk(self, (), recursive, None if with_path else {id(self)}):
            if test(x):
                yield (path, x) if with_path else x

    def _all(self, test: Callable[[Any], Any]) -> tuple[Any, ...]:
        return tuple(self._flatten(predicate=test))

    variables = property(lambda self: self._all(lambda x: isinstance(x, gg.Variable)))
    submodules = property(lambda self: self._all(lambda x: isinstance(x, Module)))
    trainable_variables = property(lambda self: tuple(v for v in self.variables if v.trainable))
    non_trainable_variables = property(
        lambda self: tuple(v for v in self.variables if not v.trainable)
    )


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _leaves(path: tuple[Any, ...], x) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves of lists, tuples and dicts, each with its path."""
    if not isinstance(x, (list, tuple, dict)):
        yield path, x
        return
    parts = sorted(x.items(), key=lambda p: str(p[0])) if isinstance(x, dict) else enumerate(x)
    for key, part in parts:
        yield from _leaves((*path, key), part)


def _walk(module, path, recursive: bool, seen: set[int] | None) -> Iterator[Any]:
    modules = []
    for name, value in sorted(vars(module).items()):
        for place, x in _leaves((*path, name), value):
            if seen is not None and id(x) in seen:
                continue
            if seen is not None:
                seen.add(id(x))
            yield place, x
            if recursive and isinstance(x, Module):
                modules.append((place, x))
    for place, x in modules:
        yield from _walk(x, place, recursive, seen)
