"""Iterative solvers: SciPy's functions, differentiated by the systems that they solve."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse.linalg

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.backend import reading
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ShapeError
from gpugrad.ops.scipy.sparse.solutions import iterate
from gpugrad.scipy.signatures import with_signature
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.linalg.operators import (
    LinearOperator,
    aslinearoperator,
    operator,
    plain,
    solution,
)
from gpugrad.scipy.sparse.linalg.systems import system
from gpugrad.scipy.sparse.structure import dense


class _Report:
    """The status of a solver, which its op writes: 0, or the number of iterations."""

    info = 0


def _as_scipy(check: Any) -> Any:
    """A solver with the signature of SciPy's of that name, from a check of its options."""
    return with_signature(
        check,
        scipy.sparse.linalg,
        lambda bound: _solved(check.__name__, **check(**bound.arguments)),
    )


def _solved(name: str, A: Any, b: Any, x0: Any, **options: Any) -> tuple[Tensor, int]:
    for k in ("M", "M1", "M2"):
        options[k] = plain(options.get(k))
    options = {k: v for k, v in options.items() if v is not None}
    a, report = operator(A), _Report()
    a, b = system(name, A, b) if a is None else (a, dense(b, b))
    if b.ndim == 2 and b.shape[1] != 1:
        raise ShapeError(f"{name}: b of shape {b.shape} must be one vector.")
    if b.size != a.shape[1] or a.shape[0] != a.shape[1]:
        raise ShapeError(f"{name}: b of shape {b.shape} does not fit an operator of {a.shape}.")
    b = xp.reshape(b, (-1,))
    if x0 is not None:
        x0 = dense(x0, b)
        if x0.shape not in (b.shape, (b.size, 1)):
            raise ShapeError(f"{name}: x0 of shape {x0.shape} does not fit b {b.shape}.")
        x0 = xp.reshape(x0, b.shape)
        if type(x0._data) is np.ndarray:
            options["x0"], x0 = xp.stop_gradient(x0)._data, None  # the solution forgets it
        else:  # traced, batched or on a GPU: the system for the correction
            b = b - a @ x0
    if not hasattr(a, "on_rows_form"):
        solve = functools.partial(_iterate, name, options)
        x, info = solution(solve, a, b, name in ("cg", "minres"))
    else:
        how = (*sorted(options.items()), ("report", report))
        a = a if a.format == "csr" else a.tocsr()
        x = a.on_rows_form("csr_solve", b, method=name, options=how)
        info = report.info
    return x if x0 is None else x0 + x, info


def _iterate(name: str, options: Any, a: Any, b: Any, adjoint: bool) -> Any:
    b = b.astype(np.result_type(a.dtype, b, np.float32))
    solve: Any = iterate
    return solve(reading(b), name, a, b, adjoint, options)


@_as_scipy
def cg(**options: Any) -> Any:
    """Conjugate gradients for a Hermitian positive definite array; implicit gradients.

    Args:
        A: square sparse or dense array, or a LinearOperator.
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
    return options


@_as_scipy
def bicg(**options: Any) -> Any:
    """Biconjugate gradients for a square array; arguments and result as `cg`.

    >>> a = gg.scipy.sparse.csr_array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = gg.scipy.sparse.linalg.bicg(a, [6.0, 7.0])
    >>> print(x, info)
    [1. 2.] 0
    """
    return options


@_as_scipy
def bicgstab(**options: Any) -> Any:
    """Stabilized biconjugate gradients for a square array; arguments and result as `cg`.

    >>> a = gg.scipy.sparse.csr_array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = gg.scipy.sparse.linalg.bicgstab(a, [6.0, 7.0])
    >>> print(x, info)
    [1. 2.] 0
    """
    return options


@_as_scipy
def cgs(**options: Any) -> Any:
    """Squared conjugate gradients for a square array; arguments and result as `cg`.

    >>> a = gg.scipy.sparse.csr_array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = gg.scipy.sparse.linalg.cgs(a, [6.0, 7.0])
    >>> print(x, info)
    [1. 2.] 0
    """
    return options


@_as_scipy
def gmres(**options: Any) -> Any:
    """Generalized minimal residuals for a square array; arguments and result as `cg`.

    >>> a = gg.scipy.sparse.csr_array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = gg.scipy.sparse.linalg.gmres(a, [6.0, 7.0])
    >>> print(x, info)
    [1. 2.] 0
    """
    return options


@_as_scipy
def lgmres(**options: Any) -> Any:
    """Minimal residuals that keep directions at a restart; arguments and result as `cg`.

    >>> a = gg.scipy.sparse.csr_array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = gg.scipy.sparse.linalg.lgmres(a, [6.0, 7.0])
    >>> print(x, info)
    [1. 2.] 0
    """
    return options


@_as_scipy
def gcrotmk(**options: Any) -> Any:
    """Flexible minimal residuals that keep directions; arguments and result as `cg`.

    >>> a = gg.scipy.sparse.csr_array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = gg.scipy.sparse.linalg.gcrotmk(a, [6.0, 7.0])
    >>> print(x, info)
    [1. 2.] 0
    """
    return options


@_as_scipy
def qmr(**options: Any) -> Any:
    """Quasi-minimal residuals for a square array; as `cg`, with preconditioners `M1` and `M2`.

    >>> a = gg.scipy.sparse.csr_array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = gg.scipy.sparse.linalg.qmr(a, [6.0, 7.0])
    >>> print(x, info)
    [1. 2.] 0
    """
    return options


@_as_scipy
def tfqmr(show: bool, **options: Any) -> Any:
    """Quasi-minimal residuals without transposes; arguments and result as `cg`.

    >>> a = gg.scipy.sparse.csr_array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = gg.scipy.sparse.linalg.tfqmr(a, [6.0, 7.0])
    >>> print(x, info)
    [1. 2.] 0
    """
    return options


@_as_scipy
def minres(A: Any, shift: Any, show: bool, check: bool, **options: Any) -> Any:
    """Minimal residuals for a Hermitian array, (A - shift I) x = b; arguments as `cg`.

    >>> a = gg.scipy.sparse.csr_array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = gg.scipy.sparse.linalg.minres(a, [6.0, 7.0])
    >>> print(x, info)
    [1. 2.] 0
    """
    a = operator(A)
    a = construct.sparse(A) if a is None else a
    if isinstance(shift, Tensor) or shift:
        eye = construct.eye_array(a.shape[0], dtype=a.dtype)
        a = a - (shift * eye if hasattr(a, "pattern") else aslinearoperator(shift * eye))
    return {"A": a, **options}


def _doubled(x: Any) -> Any:
    return x.astype(np.result_type(x.dtype, np.float64))


def _least(method: str, A: Any, b: Any, damp: float, x0: Any, **options: Any) -> tuple[Any, ...]:
    """(x, residual, its norm): a damped system is one with more rows."""
    a = operator(A)
    a = construct.sparse(A) if a is None else a
    if hasattr(a, "pattern"):  # of float32, too, SciPy's results are doubles
        a, b = (x if x.dtype.char in "dD" else _doubled(x) for x in (a, dense(b, a)))
    else:
        b = dense(b, b)
    b = xp.reshape(b, (-1,)) if b.ndim == 2 and b.shape[1] == 1 else b
    if len(a.shape) != 2 or b.ndim != 1 or b.shape[0] != a.shape[0]:
        raise ShapeError(f"{method}: b of shape {b.shape} does not fit a matrix of {a.shape}.")
    n = a.shape[1]
    x0 = None if x0 is None else xp.reshape(dense(x0, b), (-1,))
    if x0 is not None and x0.size != n:
        raise ShapeError(f"{method}: x0 of {x0.size} elements does not fit a matrix of {a.shape}.")
    rhs = b if x0 is None else b - a @ x0
    given = {k: v for k, v in options.items() if v is not None}
    if not hasattr(a, "pattern"):
        x = _least_of_operator(method, a, rhs, {"damp": damp, **given})
        x = x if x0 is None else x0 + x
        return x, b - a @ x, xp.vector_norm(b - a @ x)
    if damp:
        eye = damp * construct.eye_array(n, dtype=a.dtype, device=a.device)
        a = construct.vstack([a, eye], format="csr")
        rhs = xp.pad_constant(rhs, [(0, n)])
    a = a if a.format == "csr" else a.tocsr()
    x = a.on_rows_form("csr_lstsq", rhs, method=method, options=tuple(sorted(given.items())))
    residual = rhs - a @ x
    return (x if x0 is None else x0 + x), residual, xp.vector_norm(residual)


def _least_of_operator(method: str, a: Any, b: Tensor, options: dict[str, Any]) -> Tensor:
    """By SciPy's function on values; the gradient by the normal equations."""
    damp = options["damp"]
    eye = LinearOperator((a.shape[1],) * 2, lambda v: v, lambda v: v, dtype=a.dtype)
    normal = a.H @ a if not damp else a.H @ a + damp**2 * eye

    values = xp.stop_gradient(b)._data
    lib = reading(values)
    x = getattr(lib.scipy("sparse.linalg"), method)(plain(a, lib.lib), values, **options)[0]
    solve = functools.partial(_iterate, "cg", {"rtol": 1e-12})
    return solution(solve, normal, a.rmatvec(b), True, x)[0]


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
    """Least squares by LSMR; arguments and results as `lsqr`.

    >>> x, *_ = gg.scipy.sparse.linalg.lsmr(gg.scipy.sparse.csr_array([[2.0], [2.0]]), [1.0, 3.0])
    >>> print(x)
    [1.]
    """
    how = {"atol": atol, "btol": btol, "conlim": conlim, "maxiter": maxiter}
    return _least("lsmr", A, b, damp, x0, **how)
