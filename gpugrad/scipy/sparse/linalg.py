"""SciPy's ``sparse.linalg`` on Tensors: solutions, and their gradients by entries and right sides.

A solver's gradient is that of the exact solution, by one system with the conjugate transpose that
the same function solves, with the same preconditioner.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.linalg
from scipy.sparse.linalg import LinearOperator

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.arrays import Sparse, csr_array
from gpugrad.scipy.sparse.structure import dense

__all__ = [
    "LinearOperator",
    "aslinearoperator",
    "bicgstab",
    "cg",
    "expm_multiply",
    "factorized",
    "gmres",
    "lsmr",
    "lsqr",
    "minres",
    "norm",
    "splu",
    "spsolve",
    "spsolve_triangular",
]


def _system(name: str, A: Any, b: Any) -> tuple[Any, Tensor]:
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
    is_sparse = construct.issparse(b)
    a, b = _system("spsolve", A, construct.sparse(b).toarray() if is_sparse else b)
    x = a.on_rows_form("csr_solve", b)
    if is_sparse:
        return csr_array(x)
    return xp.squeeze(x, 1) if x.ndim == 2 and x.shape[1] == 1 else x


class SuperLU:
    """The factors of a sparse array, as `splu` returns them; SuperLU keeps them.

    Attributes:
        shape: (n, n).
        nnz: number of entries of the array.
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
        a, b = _system("solve", a.conj() if trans == "H" else a, rhs)
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


def factorized(A: Any) -> Callable[[Any], Tensor]:
    """The function that solves A x = b for `b`, with the factors of `splu`."""
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
    a, b = _system("spsolve_triangular", A, b)
    part, k = (construct.tril, -1) if lower else (construct.triu, 1)
    a = part(a, k if unit_diagonal else 0, format="csr")
    if unit_diagonal:
        a = a + construct.eye_array(a.shape[0], dtype=a.dtype, device=a.device)
    options = (("lower", bool(lower)),)
    return a.on_rows_form("csr_solve", b, method="triangular", options=options)


# ---- iterative solvers -------------------------------------------------------------------


class _Report:
    """The status of a solver, which its op writes: 0, or the number of iterations."""

    info = 0


def _operator(M: Any) -> Any:
    """A preconditioner as SciPy's operator, whose values are constants."""
    if M is None or isinstance(M, LinearOperator):
        return M
    if isinstance(M, Sparse):
        coo = M.tocoo()
        M = scipy.sparse.coo_array(
            (coo.data.numpy(), coo.pattern.at.coords), shape=coo.shape
        ).tocsr()
    return scipy.sparse.linalg.aslinearoperator(M.numpy() if isinstance(M, Tensor) else M)


def _iterate(method: str, A: Any, b: Any, x0: Any, **options: Any) -> tuple[Tensor, int]:
    a, b = _system(method, A, b)
    column = b.ndim == 2
    if column and b.shape[1] != 1:
        raise ShapeError(f"{method}: b of shape {b.shape} must be one vector.")
    b = xp.reshape(b, (b.shape[0],))
    if x0 is not None:
        x0 = xp.reshape(dense(x0, a), b.shape)
        b = b - a @ x0
    options["M"], report = _operator(options.get("M")), _Report()
    given = {k: v for k, v in options.items() if v is not None}
    a = a if a.format == "csr" else a.tocsr()
    x = a.on_rows_form(
        "csr_solve", b, method=method, options=(*sorted(given.items()), ("report", report))
    )
    return x if x0 is None else x0 + x, report.info


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
) -> tuple[Tensor, int]:
    """Conjugate gradients for a Hermitian positive definite array; implicit gradients.

    Args:
        A: square sparse or dense array.
        b: array of shape (n,).
        x0: a start: the system for the correction is solved.
        rtol, atol: tolerances of the residual; gradients are solved to the same ones.
        maxiter: number of iterations.
        M: a preconditioner: a sparse or dense array or a LinearOperator, taken for constant.
        callback: called with the current vector after each iteration, also of the backward pass.

    Returns:
        (x, info): a Tensor, and 0 or the number of iterations without convergence.

    Warns:
        RuntimeWarning: no convergence; it tells the residual.

    >>> a = gg.scipy.sparse.csr_array([[2.0, 0.0], [0.0, 4.0]])
    >>> x, info = gg.scipy.sparse.linalg.cg(a, [2.0, 2.0])
    >>> print(x, info)
    [1.  0.5] 0
    """
    how = {"rtol": rtol, "atol": atol, "maxiter": maxiter, "M": M, "callback": callback}
    return _iterate("cg", A, b, x0, **how)


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
) -> tuple[Tensor, int]:
    """Stabilized biconjugate gradients for a square array; arguments and result as `cg`."""
    how = {"rtol": rtol, "atol": atol, "maxiter": maxiter, "M": M, "callback": callback}
    return _iterate("bicgstab", A, b, x0, **how)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    callback_type: str | None = None,
) -> tuple[Tensor, int]:
    """Generalized minimal residuals for a square array; arguments and result as `cg`."""
    how = {"rtol": rtol, "atol": atol, "maxiter": maxiter, "M": M, "callback": callback}
    return _iterate("gmres", A, b, x0, restart=restart, callback_type=callback_type, **how)


def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    show: bool = False,
    check: bool = False,
) -> tuple[Tensor, int]:
    """Minimal residuals for a Hermitian array, (A - shift I) x = b; arguments as `cg`."""
    a = construct.sparse(A)
    if shift:
        a = a - shift * construct.eye_array(a.shape[0], dtype=a.dtype, device=a.device)
    how = {"rtol": rtol, "maxiter": maxiter, "M": M, "callback": callback}
    return _iterate("minres", a, b, x0, **how)


def _least(method: str, A: Any, b: Any, damp: float, x0: Any, **options: Any) -> tuple[Any, ...]:
    """(x, residual, damped residual): a damped system is one with more rows."""
    a = construct.sparse(A)
    b = dense(b, a)
    if b.ndim != 1 or b.shape[0] != a.shape[0]:
        raise ShapeError(f"{method}: b of shape {b.shape} does not fit a matrix of {a.shape}.")
    x0 = None if x0 is None else dense(x0, a)
    rhs = b if x0 is None else b - a @ x0
    n = a.shape[1]
    if damp:
        eye = damp * construct.eye_array(n, dtype=a.dtype, device=a.device)
        a = construct.vstack([a, eye], format="csr")
        rhs = xp.pad_constant(rhs, [(0, n)])
    given = tuple((k, v) for k, v in sorted(options.items()) if v is not None)
    a = a if a.format == "csr" else a.tocsr()
    x = a.on_rows_form("csr_lstsq", rhs, method=method, options=given)
    return (x if x0 is None else x0 + x), rhs - a @ x, construct.sparse(A)


def lsqr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    show: bool = False,
    calc_var: bool = False,
    x0: Any = None,
) -> tuple[Any, ...]:
    """Least squares |A x - b|^2 + damp^2 |x|^2 by LSQR, differentiable by A's entries and by b.

    Args:
        A: sparse array of shape (m, n).
        b: array of shape (m,).
        damp: weight of the norm of the solution; with it, `x0` is not damped.
        atol, btol, conlim, iter_lim: SciPy's limits.
        show, calc_var: without effect.
        x0: a start: the system for the correction is solved.

    Returns:
        (x, residual, norm of it): Tensors of shape (n,), (m,) or (m + n,), and ().

    >>> a = gg.scipy.sparse.csr_array([[1.0], [1.0]])
    >>> print(gg.scipy.sparse.linalg.lsqr(a, [1.0, 3.0])[0])
    [2.]
    """
    how = {"atol": atol, "btol": btol, "conlim": conlim, "iter_lim": iter_lim}
    x, residual, _ = _least("lsqr", A, b, damp, x0, **how)
    return x, residual, xp.vector_norm(residual)


def lsmr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    show: bool = False,
    x0: Any = None,
) -> tuple[Any, ...]:
    """Least squares by LSMR; arguments and results as `lsqr`."""
    how = {"atol": atol, "btol": btol, "conlim": conlim, "maxiter": maxiter}
    x, residual, _ = _least("lsmr", A, b, damp, x0, **how)
    return x, residual, xp.vector_norm(residual)


def aslinearoperator(A: Any) -> Any:
    """A as SciPy's LinearOperator on NumPy arrays, as a preconditioner; without gradients."""
    return _operator(A)


# ---- norms and exponentials --------------------------------------------------------------


def norm(x: Any, ord: Any = None, axis: Any = None) -> Tensor:
    """Norm of a sparse array, or of its rows or columns.

    Args:
        x: sparse array.
        ord: None or "fro", 1, -1, inf, -inf; for rows and columns a number too.
        axis: None, or the axis along which vectors lie.

    >>> print(gg.scipy.sparse.linalg.norm(gg.scipy.sparse.csr_array([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    """
    if not construct.issparse(x):
        raise TypeError("input is not sparse. use numpy.linalg.norm")
    a = construct.sparse(x).sum_of_places()
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if axis is None or isinstance(axis, tuple):
        if ord in (None, "fro", "f"):
            return xp.vector_norm(a.data)
        if ord not in (1, -1, math.inf, -math.inf):
            raise NotImplementedError(f"norm: ord={ord!r} is not implemented for sparse arrays.")
        sums = xp.ravel(abs(a).sum(axis=0 if abs(ord) == 1 else 1))
        return xp.max(sums) if ord > 0 else xp.min(sums)
    if ord in (None, 2):
        return xp.sqrt(xp.ravel(a.with_data(xp.abs(a.data) ** 2).sum(axis)))
    if ord == 1:
        return xp.ravel(abs(a).sum(axis))
    if not isinstance(ord, (int, float)) or ord == 0 or math.isinf(ord):
        raise NotImplementedError(f"norm: ord={ord!r} along an axis is not implemented.")
    return xp.ravel(abs(a).power(ord).sum(axis)) ** (1 / ord)


def expm_multiply(A: Any, B: Any, traceA: Any = None) -> Tensor:
    """exp(A) @ B without the exponential, by Taylor polynomials; differentiable by A and B.

    The number of steps follows from the 1-norm of A, which is read.

    Args:
        A: square sparse array of shape (n, n).
        B: array of shape (n,) or (n, k).
        traceA: without effect.

    >>> a = gg.scipy.sparse.csr_array([[0.0, 1.0], [0.0, 0.0]])
    >>> print(gg.scipy.sparse.linalg.expm_multiply(a, [1.0, 2.0]))
    [3. 2.]
    """
    a, b = _system("expm_multiply", A, B)
    size = float(norm(a, 1).numpy()) if a.nnz else 0.0
    steps = max(1, math.ceil(size))  # a norm of at most 1 in each
    eps = float(np.finfo(np.result_type(a.dtype, b.dtype, np.float32)).eps)
    degree = next(m for m in range(1, 60) if 1 / math.factorial(m + 1) < eps / 4)
    for _ in range(steps):
        term = total = b
        for k in range(1, degree + 1):
            term = (a @ term) / (k * steps)
            total = total + term
        b = total
    return b
