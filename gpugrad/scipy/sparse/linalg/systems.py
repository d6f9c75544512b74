"""Direct solvers of sparse systems: SuperLU's, and substitution in triangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.linalg

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.devices import host
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.arithmetic import Sparse
from gpugrad.scipy.sparse.linalg.operators import constant_map
from gpugrad.scipy.sparse.pattern import Pattern, on
from gpugrad.scipy.sparse.structure import dense
from gpugrad.transforms.recompute import recompute_grad


def system(name: str, A: Any, b: Any) -> tuple[Any, Tensor]:
    """A square sparse array, and a right-hand side that fits."""
    a = construct.sparse(A)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"{name}: matrix must be square, its shape is {a.shape}.")
    b = dense(b, a)
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ShapeError(f"{name}: b of shape {b.shape} does not fit a matrix of shape {a.shape}.")
    return a, b


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """Solution of A x = b by SuperLU, differentiable by the entries of A and by b.

    The factors are kept for the backward pass. On a GPU they are computed on the host.

    Args:
        A: square sparse array of shape (n, n).
        b: array of shape (n,) or (n, k), or a sparse one.
        permc_spec, use_umfpack: without effect.

    Returns:
        Tensor of the shape of `b`; a vector if `b` is of shape (n, 1), as SciPy's; sparse if it is.

    Raises:
        SingularMatrixError: A is singular, where SciPy warns and returns NaN. It is a RuntimeError,
            too, as SciPy's `splu` raises.

    >>> a = gg.scipy.sparse.diags_array([[2.0, 4.0]], offsets=[0])
    >>> print(gg.scipy.sparse.linalg.spsolve(a, [2.0, 2.0]))
    [1.  0.5]
    """
    if construct.issparse(b):
        return _sparse_solution(A, construct.sparse(b).tocsc())
    a, b = system("spsolve", A, b)
    x = a.on_rows_form("csr_solve", b)
    return xp.squeeze(x, 1) if x.ndim == 2 and x.shape[1] == 1 else x


_BLOCK = 2**20
"""Elements of the full columns of a sparse solution that are there at a time."""


def _sparse_solution(A: Any, b: Any) -> Any:
    """The solution for sparse columns, whose full ones are never there together.

    Their gradient computes them again, for the same reason.
    """
    a, first = system("spsolve", A, b[:, :0].toarray())
    a = a if a.format in ("csr", "csc") else a.tocsr()
    width = max(1, _BLOCK // max(1, a.shape[0]))
    data, rows, cols = [first[:0, 0] if first.size else xp.ravel(first)], [], []
    for start in range(0, b.shape[1], width):
        part = b[:, start : start + width]

        def columns(a_data: Any, data: Any, part: Any = part) -> Tensor:
            full = part.with_data(data).toarray()
            return xp.ravel(a.with_data(a_data).on_rows_form("csr_solve", full))

        with recording_stopped():
            x = columns(a.data, part.data)
        at = np.flatnonzero(x.numpy())
        index = on(at, a.device)
        if threads.stack:
            entries = lambda *d, f=columns, i=index: xp.take(f(*d), i)  # noqa: E731
            data.append(recompute_grad(entries)(a.data, part.data))
        else:
            data.append(xp.take(x, index))
        rows.append(at // part.shape[1])
        cols.append(start + at % part.shape[1])
    whole = xp.concat([xp.astype(d, data[-1].dtype) for d in data])
    places = tuple(np.concatenate([np.zeros(0, int), *p]) for p in (rows, cols))
    coo = a._scipy("coo")((np.empty(places[0].size, np.int64), places), shape=b.shape)
    return a._made(whole, Pattern(coo)).asformat(a.format)


class SuperLU:
    """The factors of a sparse array, as `splu` returns them; SuperLU keeps them.

    Attributes:
        shape: (n, n).
        nnz: number of entries of the array.

    >>> lu = gg.scipy.sparse.linalg.splu(gg.scipy.sparse.csc_array([[2.0, 0.0], [0.0, 4.0]]))
    >>> lu.shape, lu.nnz
    ((2, 2), 2)
    >>> print(lu.solve([2.0, 2.0], trans="T"))
    [1.  0.5]
    """

    def __init__(self, a: Sparse) -> None:
        self._a, self.shape, self.nnz = a, a.shape, a.nnz

    def solve(self, rhs: Any, trans: str = "N") -> Tensor:
        """Solution for a right-hand side of shape (n,) or (n, k).

        Args:
            rhs: the right-hand side.
            trans: "N" for the array itself, "T" for its transpose, "H" for the conjugate one.
        """
        if trans not in ("N", "T", "H"):
            raise ArgumentError(f"solve: trans={trans!r} must be 'N', 'T' or 'H'.")
        a = self._a if trans == "N" else self._a.T
        a, b = system("solve", a.conj() if trans == "H" else a, rhs)
        return a.on_rows_form("csr_solve", b)


def splu(A: Any, *args: Any, **options: Any) -> SuperLU:
    """The factors of a sparse array, whose solutions are differentiable by its entries.

    Args:
        A: square sparse array.
        args, options: SuperLU's, without effect.

    Raises:
        SingularMatrixError: A is singular; a RuntimeError too, as SciPy's.

    >>> lu = gg.scipy.sparse.linalg.splu(gg.scipy.sparse.csc_array([[2.0, 0.0], [0.0, 4.0]]))
    >>> print(lu.solve(np.array([2.0, 2.0])))
    [1.  0.5]
    """
    a = construct.sparse(A)
    factors = SuperLU(a)
    factors.solve(np.zeros(a.shape[0], a.dtype))  # factorizes, so that a singular one raises here
    return factors


class _Incomplete:
    """Incomplete factors of a sparse array, a constant: solutions are differentiable by `rhs`."""

    def __init__(self, factors: Any, a: Sparse) -> None:
        self._factors, self.shape, self.nnz, self._device = factors, a.shape, factors.nnz, a.device

    def solve(self, rhs: Any, trans: str = "N") -> Tensor:
        """Solution for a right-hand side of shape (n,) or (n, k), as `SuperLU.solve`."""
        if trans not in ("N", "T", "H"):
            raise ArgumentError(f"solve: trans={trans!r} must be 'N', 'T' or 'H'.")
        kind = self._factors.L.dtype

        def solved(trans: str) -> Any:
            return lambda b: self._factors.solve(np.asarray(host(b), kind), trans)

        b = rhs if isinstance(rhs, Tensor) else asarray(rhs, device=self._device)
        if trans == "T":  # its adjoint is none of the three
            return xp.conj(self.solve(xp.conj(b), "H")) if kind.kind == "c" else self.solve(b, "H")
        pair = solved(trans), solved("H" if trans == "N" else "N")
        return constant_map(*pair)(b)


def spilu(A: Any, *args: Any, **options: Any) -> Any:
    """Incomplete factors of a sparse array, on the host: a preconditioner, taken for constant.

    Args:
        A: square sparse array.
        args, options: SciPy's, such as `drop_tol` and `fill_factor`.

    Returns:
        An object whose ``solve(rhs)`` is differentiable by `rhs`.

    >>> ilu = gg.scipy.sparse.linalg.spilu(gg.scipy.sparse.csc_array([[2.0, 0.0], [0.0, 4.0]]))
    >>> print(ilu.solve(np.array([2.0, 2.0])))
    [1.  0.5]
    """
    a = construct.sparse(A)
    return _Incomplete(scipy.sparse.linalg.spilu(a.on_host().tocsc(), *args, **options), a)


def inv(A: Any) -> Any:
    """Inverse of a square sparse array, by its factors: a sparse one, though most are full.

    >>> print(gg.scipy.sparse.linalg.inv(gg.scipy.sparse.csc_array([[2.0]])).toarray())
    [[0.5]]
    """
    if not construct.issparse(A):
        raise TypeError("Input must be a sparse arrays")
    a = construct.sparse(A)
    eye = construct.eye_array if a.is_array else construct.eye
    return spsolve(a, eye(a.shape[0], dtype=a.dtype, device=a.device))


def is_sptriangular(A: Any) -> tuple[bool, bool]:
    """Whether the entries of a sparse array are on and below its diagonal; and on and above.

    >>> gg.scipy.sparse.linalg.is_sptriangular(gg.scipy.sparse.csr_array([[1.0, 0.0], [2.0, 3.0]]))
    (True, False)
    """
    if not construct.issparse(A):
        raise TypeError("is_sptriangular needs sparse and not dense arrays.")
    lower, upper = scipy.sparse.linalg.is_sptriangular(construct.sparse(A).pattern.ones)
    return bool(lower), bool(upper)


def spbandwidth(A: Any) -> tuple[int, int]:
    """How many diagonals below and above the main one have entries.

    >>> gg.scipy.sparse.linalg.spbandwidth(gg.scipy.sparse.csr_array([[1.0, 0.0], [2.0, 3.0]]))
    (1, 0)
    """
    if not construct.issparse(A):
        raise TypeError("spbandwidth needs sparse and not dense arrays.")
    below, above = scipy.sparse.linalg.spbandwidth(construct.sparse(A).pattern.ones)
    return int(below), int(above)


def factorized(A: Any) -> Callable[[Any], Tensor]:
    """The function that solves A x = b for `b`, with the factors of `splu`.

    >>> solve = gg.scipy.sparse.linalg.factorized(gg.scipy.sparse.csc_array([[2.0]]))
    >>> print(solve([6.0]))
    [3.]
    """
    return splu(A).solve


def spsolve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Tensor:
    """Solution of A x = b for a triangular sparse array.

    Args:
        A: sparse array of shape (n, n); the other triangle is not read.
        b: array of shape (n,) or (n, k).
        lower: which triangle.
        unit_diagonal: whether to take the diagonal for ones, and not to read it.
        overwrite_A, overwrite_b: without effect.

    Raises:
        SingularMatrixError: an element of the diagonal is 0 or missing.

    >>> a = gg.scipy.sparse.csr_array([[2.0, 0.0], [1.0, 1.0]])
    >>> print(gg.scipy.sparse.linalg.spsolve_triangular(a, [2.0, 3.0]))
    [1. 2.]
    """
    a, b = system("spsolve_triangular", A, b)
    part, k = (construct.tril, -1) if lower else (construct.triu, 1)
    a = part(a, k if unit_diagonal else 0, format="csr")
    if unit_diagonal:
        a = a + construct.eye_array(a.shape[0], dtype=a.dtype, device=a.device)
    options = (("lower", bool(lower)),)
    return a.on_rows_form("csr_solve", b, method="triangular", options=options)
