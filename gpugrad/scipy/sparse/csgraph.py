"""SciPy's ``sparse.csgraph`` on Tensors and sparse arrays: paths, trees and components of graphs.

The functions compute with values, on the host. They have no derivative, and raise if a tape watches
an argument.

>>> a = gg.scipy.sparse.csr_array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
>>> gg.scipy.sparse.csgraph.connected_components(a)[0]
2
"""

from __future__ import annotations

import functools
from typing import Any

from scipy.sparse import csgraph as _csgraph

from gpugrad.array_api.numpy_calls import as_tensors
from gpugrad.core.tensor import Tensor
from gpugrad.errors import DTypeError
from gpugrad.scipy.sparse.arrays import Sparse
from gpugrad.scipy.sparse.construct import of_scipy

__all__ = sorted(_csgraph.__all__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    theirs = getattr(_csgraph, name)
    if isinstance(theirs, type):
        return theirs

    @functools.wraps(theirs)
    def function(*args: Any, **keywords: Any) -> Any:
        values = {k: _values(name, v) for k, v in keywords.items()}
        return _wrapped(theirs(*(_values(name, x) for x in args), **values))

    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return __all__


def _values(name: str, x: Any) -> Any:
    if isinstance(x, Sparse):
        at = x.pattern.at.copy()
        at.data = _values(name, x.data)
        return at
    if not isinstance(x, Tensor):
        return x
    try:
        return x._handed_out(f"an argument of sparse.csgraph.{name}")
    except DTypeError as error:
        raise DTypeError(f"{name}: has no derivative. {error}") from None


def _wrapped(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_wrapped, result))
    return of_scipy(result) if hasattr(result, "tocsr") else as_tensors(result)
