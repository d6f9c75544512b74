"""SciPy's trees, hulls and triangulations, whose arrays are Tensors; on values."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from gpugrad.array_api.numpy_results import as_tensors, on_values
from gpugrad.autodiff.recorder import watched_in
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.devices import device
from gpugrad.scipy.calling import from_gpu
from gpugrad.scipy.namespaces import NUMPY


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


class Tree(OnTensors):
    """A tree of SciPy's; the distances of `query` have gradients by both points."""

    def __init__(self, data: Any, *args: Any, **keywords: Any) -> None:
        self.data = NUMPY.asarray(data, dtype=float)
        super().__init__(from_gpu(xp.stop_gradient(self.data)), *args, **keywords)

    def query(
        self,
        x: Any,
        k: Any = 1,
        eps: float = 0.0,
        p: float = 2.0,
        distance_upper_bound: float = np.inf,
        workers: int = 1,
    ) -> Any:
        """SciPy's distances and indices of the nearest neighbours."""
        search, options = self._scipys.query, (k, eps, p, distance_upper_bound, workers)
        if not watched_in(self.data, x):
            return _method(search, x, *options)
        with device(self.data.device):
            return self._followed(NUMPY.asarray(x, dtype=float), p, search, options)

    def _followed(self, x: Any, p: float, search: Any, options: Any) -> Any:
        """The same, with the derivatives of the distances to the points found."""
        known, index = search(np.asarray(from_gpu(xp.stop_gradient(x))), *options)
        index = np.asarray(index)
        found = index < self.data.shape[0]
        gap = self.data[np.where(found, index, 0)]
        gap = gap - (NUMPY.expand_dims(x, -2) if index.ndim == x.ndim else x)
        if (box := self._scipys.boxsize) is not None:
            box = np.broadcast_to(box, x.shape[-1:])
            step = NUMPY.asarray(np.where(box > 0, box, np.inf))
            turns = NUMPY.round(xp.stop_gradient(gap) / step)
            gap = gap - turns * NUMPY.asarray(box.copy())
        distance = xp.vector_norm(gap, ord=p, axis=-1)
        values = NUMPY.asarray(np.where(found, known, 0.0))
        values = values + (distance - xp.stop_gradient(distance))
        return NUMPY.where(NUMPY.asarray(found), values, np.inf), as_tensors(index)

    def sparse_distance_matrix(self, other: Any, *args: Any, **keywords: Any) -> Any:
        """SciPy's distances, which raise rather than cut a gradient."""
        matrix = self._scipys.sparse_distance_matrix
        on_values("KDTree.sparse_distance_matrix", np.shape, (self.data,), {})
        on_values("KDTree.sparse_distance_matrix", np.shape, (other.data,), {})
        return _method(matrix, other, *args, **keywords)


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
        base = Tree if issubclass(thing, cKDTree) else OnTensors
        return type(thing.__name__, (base,), members)
    if isinstance(thing, type) or not callable(thing):
        return thing
    return functools.wraps(thing)(functools.partial(_method, thing))
