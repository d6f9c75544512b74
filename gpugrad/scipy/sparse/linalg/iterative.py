"""Iterative solvers: SciPy's functions, differentiated by the systems that they solve."""

from __future__ import annotations

from typing import Any

import scipy.sparse.linalg
from scipy.sparse.linalg import LinearOperator

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ShapeError
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.arrays import Sparse
from gpugrad.scipy.sparse.linalg.systems import system
from gpugrad.scipy.sparse.structure import dense


class _Report:
    """The status of a solver, which its op writes: 0, or the number of iterations."""

    info = 0


def _operator(M: Any) -> Any:
    """A preconditioner as SciPy's operator, whose values are constants."""
    if M is None or isinstance(M, LinearOperator):
        return M
    M = M.on_host().tocsr() if isinstance(M, Sparse) else M
    return scipy.sparse.linalg.aslinearoperator(M.numpy() if isinstance(M, Tensor) else M)


def _iterate(method: str, A: Any, b: Any, x0: Any, **options: Any) -> tuple[Tensor, int]:
    a, b = system(method, A, b)
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
    """(x, residual, its norm): a damped system is one with more rows."""
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
    residual = rhs - a @ x
    return (x if x0 is None else x0 + x), residual, xp.vector_norm(residual)


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
    return _least("lsqr", A, b, damp, x0, **how)


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
    return _least("lsmr", A, b, damp, x0, **how)


def aslinearoperator(A: Any) -> Any:
    """A as SciPy's LinearOperator on NumPy arrays, as a preconditioner; without gradients."""
    return _operator(A)
