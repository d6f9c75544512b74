"""SciPy's ``sparse.csgraph`` on Tensors and sparse arrays: paths, trees and components of graphs.

The functions compute with values, on the host. Under a tape the lengths of paths, the minimum
spanning tree and the Laplacian have gradients by the weights of the edges; the paths and the tree
count as constants. The others have none, and raise if a tape watches an argument.

>>> a = gg.scipy.sparse.csr_array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
>>> gg.scipy.sparse.csgraph.connected_components(a)[0]
2
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
from scipy.sparse import csgraph as _csgraph

from gpugrad.array_api.numpy_results import as_tensors
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import DTypeError
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.arithmetic import Sparse
from gpugrad.scipy.sparse.construct import of_scipy
from gpugrad.scipy.sparse.pattern import gathered

__all__ = sorted(_csgraph.__all__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    theirs = getattr(_csgraph, name)
    if isinstance(theirs, type):
        return theirs

    @functools.wraps(theirs)
    def function(*args: Any, **keywords: Any) -> Any:
        if name in _FORMULAS and threads.stack:
            bound = inspect.signature(theirs).bind(*args, **keywords)
            bound.apply_defaults()
            found = _FORMULAS[name](theirs, **bound.arguments)
            if found is not None:
                return found
        values = {k: _values(name, v) for k, v in keywords.items()}
        return _wrapped(theirs(*(_values(name, x) for x in args), **values))

    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return __all__


def _constant(x: Any) -> Any:
    """SciPy's array of a sparse array's values."""
    return x.with_data(xp.stop_gradient(x.data)).on_host()


def _spanning_tree(theirs: Any, csgraph: Any, overwrite: bool) -> Any:
    a = construct.sparse(csgraph).sum_of_places().tocsr()
    tree = theirs(_constant(a))
    rows = np.repeat(np.arange(tree.shape[0]), np.diff(tree.indptr))
    tree.data = _entries(a, rows, tree.indices)
    return a._moved(tree)


def _entries(a: Any, rows: Any, columns: Any) -> Any:
    """The positions of entries in the data, counted from 1, or 0."""
    found = a.pattern.at[rows.ravel(), columns.ravel()]
    found = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
    return found.reshape(rows.shape)


def _path_lengths(theirs: Any, csgraph: Any, **options: Any) -> Any:
    """The sum of weights along each path: the sum up to 2, 4, ... edges back is two such sums."""
    if options.get("unweighted") or options.get("min_only"):
        return None
    with_paths = options.pop("return_predecessors")
    a = construct.sparse(csgraph).sum_of_places().tocsr()
    values = _constant(a)
    lengths, before = theirs(values, return_predecessors=True, **options)
    here = np.broadcast_to(np.arange(a.shape[1]), before.shape)
    back = np.where(before < 0, here, before)
    places = _entries(a, back, here)
    if not options.get("directed", True):  # an edge has the lesser of its two weights
        there, weights = _entries(a, here, back), np.append(values.data, np.inf)
        places = np.where(weights[there - 1] < weights[places - 1], there, places)
    total = gathered(a.data, np.where(before < 0, 0, places))
    for _ in range(max(1, a.shape[0] - 1).bit_length()):
        index = asarray(back, device=a.device)
        total = total + xp.take_along_axis(total, index, axis=-1)
        back = np.take_along_axis(back, back, axis=-1)
    total = xp.where(asarray(np.isinf(lengths), device=a.device), np.inf, total)
    return (total, before) if with_paths else total


def _laplacian(
    theirs: Any, csgraph: Any, normed: bool, return_diag: bool, use_out_degree: bool, **options: Any
) -> Any:
    if options["form"] != "array":
        return None
    a = construct.sparse(csgraph).sum_of_places()
    a = a if a.dtype.kind in "fc" else a.astype("float64")
    a = a + a.T.conj() if options["symmetrized"] else a
    degrees = a.sum(1 if use_out_degree else 0) - a.diagonal()
    edges, shown = construct.tril(a, -1) + construct.triu(a, 1), degrees
    if normed:
        alone = xp.equal(degrees, 0)
        shown = xp.sqrt(xp.where(alone, 1, degrees))
        scale = construct.diags_array(1 / shown)
        edges, degrees = scale @ edges @ scale, xp.where(alone, 0, degrees * 0 + 1)
    result = construct.diags_array(degrees) - edges
    result = result if construct.issparse(csgraph) else result.toarray()
    return (result, shown) if return_diag else result


_PATHS = ("shortest_path", "dijkstra", "bellman_ford", "johnson", "floyd_warshall")
_FORMULAS: dict[str, Any] = {
    "laplacian": _laplacian,
    "minimum_spanning_tree": _spanning_tree,
    **dict.fromkeys(_PATHS, _path_lengths),
}
"""The functions that have gradients, in ops; None where they have none with these arguments."""


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
