"""SciPy's `LinearOperator` on Tensors, and the solution of systems that only functions describe."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg
from scipy.sparse import _sputils

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.backend import reading
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.namespaces import Names
from gpugrad.scipy.reading import Reader
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.arithmetic import Sparse
from gpugrad.transforms.custom import custom_gradient

_READ = Reader(
    "scipy.sparse.linalg",
    {
        "scipy.sparse": Names("sparse", {"issparse": construct.issparse}, scipy.sparse),
        "scipy.sparse._sputils": Names("utilities", {"asmatrix": lambda x: x}, _sputils),
    },
    # since SciPy 1.18; our sparse arrays are no NumPy arrays
    {"scipy.sparse.linalg._interface": {("xp.conj(A_T)", ""): "A_T.conj()"}},
).read("scipy.sparse.linalg._interface")
LinearOperator, aslinearoperator = _READ.LinearOperator, _READ.aslinearoperator


class LaplacianNd(LinearOperator):  # type: ignore[misc, valid-type]  # read at run time
    """SciPy's Laplacian of a grid as an operator of Tensors; its numbers are constants.

    >>> print(gg.scipy.sparse.linalg.LaplacianNd((3,)) @ gg.constant([1.0, 0.0, 0.0]))
    [-1.  1.  0.]
    """

    def __init__(self, grid_shape: Any, **options: Any) -> None:
        self._scipys = scipy.sparse.linalg.LaplacianNd(grid_shape, **options)
        super().__init__(self._scipys.dtype, self._scipys.shape)
        self.grid_shape, self.boundary_conditions = grid_shape, self._scipys.boundary_conditions

    def _matvec(self, x: Any) -> Any:
        return constant_map(self._scipys.matvec, self._scipys.matvec)(asarray(x))

    def _adjoint(self) -> Any:
        return self

    _transpose = _adjoint

    def __getattr__(self, name: str) -> Any:
        if name not in ("eigenvalues", "eigenvectors", "toarray", "tosparse"):
            raise AttributeError(f"LaplacianNd has no attribute {name!r}")
        wrap = construct.sparse if name == "tosparse" else asarray
        return lambda *args: wrap(getattr(self._scipys, name)(*args))


def constant_map(forward: Any, adjoint: Any) -> Any:
    """A linear function of arrays as one of Tensors, differentiable by its adjoint."""

    @custom_gradient
    def apply(v: Tensor) -> Any:
        array = xp.stop_gradient(v)._data
        return wrap(reading(array).lib.asarray(forward(array))), constant_map(adjoint, forward)

    return apply


def operator(x: Any) -> Any:
    """An operator of Tensors from one of gpugrad's or SciPy's; None for anything else."""
    if not isinstance(x, scipy.sparse.linalg.LinearOperator):
        return x if isinstance(x, LinearOperator) else None
    functions = {
        "matvec": constant_map(x.matvec, x.rmatvec),
        "rmatvec": constant_map(x.rmatvec, x.matvec),
    }
    return LinearOperator(x.shape, dtype=x.dtype, **functions)


def plain(x: Any, lib: Any = np, cuts: bool = True) -> Any:
    """A matrix or an operator as the array library's operator, whose values are constants.

    Unless it `cuts` gradients, an operator that computes with watched Tensors raises.
    """
    if x is None or isinstance(x, scipy.sparse.linalg.LinearOperator):
        return x
    linalg = reading(lib.zeros(0)).scipy("sparse.linalg")
    x = construct.sparse(x) if construct.issparse(x) else x
    if isinstance(x, Sparse) and lib is np:  # SciPy's own product has no checks
        return linalg.aslinearoperator(x.on_host().tocsr())
    if not isinstance(x, LinearOperator):
        x = aslinearoperator(x if isinstance(x, Sparse) else asarray(x))

    def on_arrays(function: Any) -> Any:
        def call(v: Any) -> Any:
            y = function(wrap(lib.asarray(v)))
            return xp.stop_gradient(y)._data if cuts else y._handed_out("a product of an operator")

        return call

    functions = {name: on_arrays(getattr(x, name)) for name in ("matvec", "rmatvec", "matmat")}
    return linalg.LinearOperator(x.shape, dtype=x.dtype, **functions)


def solution(
    solve: Any, a: Any, b: Tensor, is_hermitian: bool, x: Any = None
) -> tuple[Tensor, int]:
    """X with ``a @ x = b`` for an operator of Tensors, and the solver's status.

    x is differentiable by `b` and by the Tensors that `a` computes with. It has the gradient of
    ``x + inverse(b - a @ x)`` for a constant x, where the gradient of `inverse` is one more
    solution, with the adjoint of `a`. Each tape of nested ones needs one more such step.

    Args:
        solve: the solver of arrays, ``(operator, array, is_adjoint) -> (array, status)``.
        a: the operator.
        b: array of shape (n,).
        is_hermitian: whether `a` is its own adjoint.
        x: the array of the solution, if it is known.
    """

    def found(a: Any, b: Tensor, is_adjoint: bool, x: Any) -> tuple[Tensor, int]:
        @custom_gradient
        def inverse(r: Tensor) -> Any:
            adjoint = a if is_hermitian else a.H
            return r * 0, lambda g: found(adjoint, g, not is_adjoint, None)[0]

        values, info = xp.stop_gradient(b)._data, 0
        if x is None:
            x, info = solve(plain(a, reading(values).lib), values, is_adjoint)
        x = wrap(x)
        for _ in threads.stack:
            x = x + inverse(b - a.matvec(x))
        return x, info

    return found(a, b, False, x)
