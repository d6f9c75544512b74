"""SciPy's trees, hulls and triangulations, whose arrays are Tensors; on values."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_calls import as_tensors, on_values
from gpugrad.scipy.calling import from_gpu


class OnTensors:
    """An object of SciPy's: its methods take Tensors, and its arrays are Tensors on the host.

    Raises:
        DTypeError: a tape watches an argument, whose gradient would be cut.
    """

    _kind: Any

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self._scipys = _call(self._kind, args, keywords)

    def __getattr__(self, name: str) -> Any:
        if name == "_scipys":  # while it is unpickled
            raise AttributeError(name)
        value = getattr(self._scipys, name)
        if callable(value):
            return functools.partial(_method, value)
        return as_tensors(value) if isinstance(value, np.ndarray) else value

    def __repr__(self) -> str:
        return repr(self._scipys)


def _method(function: Any, *args: Any, **keywords: Any) -> Any:
    return _tensors(_call(function, args, keywords))


def _call(function: Any, args: Any, keywords: Any) -> Any:
    args = [x._scipys if isinstance(x, OnTensors) else from_gpu(x) for x in args]
    name = f"scipy.spatial.{function.__qualname__}"
    return on_values(name, function, args, keywords)


def _tensors(result: Any) -> Any:
    if isinstance(result, (np.ndarray, np.generic)) and result.dtype.kind == "O":
        return result
    if isinstance(result, np.integer):
        return int(result)
    return as_tensors(result)


def _signature(kind: type) -> inspect.Signature | None:
    for each in (kind, *kind.__subclasses__()):  # cKDTree is in C and has none, KDTree has
        with contextlib.suppress(ValueError):
            return inspect.signature(each)
    return None


def on_tensors(thing: Any) -> Any:
    """The class or function of SciPy's for Tensors; others unchanged."""
    if isinstance(thing, type) and not issubclass(thing, Exception):
        doc = f"SciPy's `{thing.__name__}`: see `OnTensors`."
        members = {"_kind": thing, "__module__": "gpugrad.scipy.spatial", "__doc__": doc}
        members["__signature__"] = _signature(thing)
        return type(thing.__name__, (OnTensors,), members)
    if isinstance(thing, type) or not callable(thing):
        return thing
    return functools.wraps(thing)(functools.partial(_method, thing))
