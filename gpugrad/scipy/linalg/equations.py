"""Matrix equations: Lyapunov, Riccati, Toeplitz and circulant systems, of other ops.

``check_finite=`` has no effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from gpugrad import linalg as ours
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError, SingularMatrixError, saying_where
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.linalg.turned import adjoint, square


def one_like(a: Any) -> Any:
    """The identity of the shape of a matrix."""
    return xp.diagonal_scatter(xp.diagonal(a, 0, -2, -1) ** 0, offset=0, shape=a.shape)


@saying_where
def solve_continuous_lyapunov(a: Any, q: Any) -> Tensor:
    """The solution x of ``a @ x + x @ a^H == q``.

    Args:
        a: array of shape (..., n, n).
        q: array of shape (..., n, n).

    Returns:
        Tensor of shape (..., n, n).

    Raises:
        ShapeError: the shapes do not match.
        SingularMatrixError: two eigenvalues of `a` have the sum 0.

    >>> print(gg.scipy.linalg.solve_continuous_lyapunov([[2.0]], [[8.0]]))
    [[2.]]
    """
    a, q = square("solve_continuous_lyapunov", a), square("solve_continuous_lyapunov", q)
    result: Tensor = xp.solve_sylvester(a, adjoint(a), q)
    return result


solve_lyapunov = solve_continuous_lyapunov


@saying_where
def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Tensor:
    """The solution x of ``a @ x @ a^H - x + q == 0``.

    Args:
        a: array of shape (n, n).
        q: array of shape (n, n).
        method: ``"direct"`` (one system of n^2 equations), ``"bilinear"``, or None: direct up to
            n = 9.

    Returns:
        Tensor of shape (n, n).

    Raises:
        ArgumentError: another `method`.
        ShapeError: the shapes do not match.

    >>> print(gg.scipy.linalg.solve_discrete_lyapunov([[0.5]], [[3.0]]))
    [[4.]]
    """
    a, q = square("solve_discrete_lyapunov", a), square("solve_discrete_lyapunov", q)
    method = (method or ("direct" if a.shape[-1] < 10 else "bilinear")).lower()
    if method == "direct":
        product = ours.kron(a, xp.conj(a))
        flat = xp.solve(one_like(product) - product, xp.reshape(q, (-1, 1)))
        result: Tensor = xp.reshape(flat, q.shape)
        return result
    if method != "bilinear":
        raise ArgumentError(f"solve_discrete_lyapunov: there is no method {method!r}.")
    other, one = adjoint(a), one_like(a)
    inverse = xp.inv(other + one)
    b = (other - one) @ inverse
    c = 2 * (xp.solve(a + one, q) @ inverse)
    return solve_continuous_lyapunov(adjoint(b), -c)


def _riccati(name: str, discrete: bool, equation: str, value: str) -> Any:
    def function(
        a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
    ) -> Tensor:
        given = [None if x is None else asarray(x) for x in (a, b, q, r, e, s)]
        a, b, q, r, e, s = given
        fixed = [None if x is None else np.asarray(xp.stop_gradient(x)) for x in given]
        x: Any = asarray(getattr(scipy.linalg, name)(*fixed, balanced=balanced))
        e = one_like(a) if e is None else e
        s = 0 * b if s is None else s
        for _ in range(_STEPS):
            side = (adjoint(b) @ x @ a if discrete else adjoint(b) @ x @ e) + adjoint(s)
            weight = r + adjoint(b) @ x @ b if discrete else r
            gain = xp.solve(weight, side)
            closed = xp.matrix_transpose(
                xp.solve(xp.matrix_transpose(e), xp.matrix_transpose(a - b @ gain))
            )
            cross = s @ gain
            cost = q + adjoint(gain) @ r @ gain - cross - adjoint(cross)
            cost = adjoint(xp.solve(adjoint(e), adjoint(xp.solve(adjoint(e), cost))))
            if discrete:
                x = solve_discrete_lyapunov(adjoint(closed), cost)
            else:
                x = solve_continuous_lyapunov(adjoint(closed), -cost)
            x = 0.5 * (x + adjoint(x))
        return x

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The solution x of the algebraic Riccati equation {equation}.

    Args:
        a: array of shape (n, n).
        b: array of shape (n, m).
        q: Hermitian array of shape (n, n).
        r: Hermitian array of shape (m, m).
        e: array of shape (n, n); None is the identity.
        s: array of shape (n, m); None is 0.
        balanced: as in SciPy, which computes the solution on the host.

    Returns:
        Tensor of shape (n, n). Newton's method (D. Kleinman, IEEE Trans. Automatic Control 13
        (1968) 114) gives it its derivatives up to the third, by all matrices.

    Raises:
        ValueError, numpy.linalg.LinAlgError: as in SciPy.

    >>> one = np.ones((1, 1))
    >>> print(gg.scipy.linalg.{name}(0 * one, one, 3 * one, 3 * one).numpy().round(6))
    {value}
    """
    return function


_STEPS = 2  # the error of a derivative's order doubles with each step: right to the third

solve_continuous_are = _riccati(
    "solve_continuous_are",
    False,
    "a^H x e + e^H x a - (e^H x b + s) r^-1 (b^H x e + s^H) + q = 0",
    "[[3.]]",
)
solve_discrete_are = _riccati(
    "solve_discrete_are",
    True,
    "a^H x a - e^H x e - (a^H x b + s) (r + b^H x b)^-1 (b^H x a + s^H) + q = 0",
    "[[3.]]",
)


def _column_and_row(c_or_cr: Any) -> tuple[Any, Any]:
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    c = asarray(c)
    return c, xp.conj(c) if r is None else asarray(r)


@saying_where
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Tensor:
    """The solution of ``a @ x == b`` for a Toeplitz matrix.

    Args:
        c_or_cr: the first column of shape (n,), or a tuple of it and the first row; without a row
            the matrix is Hermitian.
        b: array of shape (n,) or (n, k).

    Returns:
        Tensor of the shape of `b`. On a GPU it takes memory for n^2 numbers.

    Raises:
        ShapeError: the shapes do not match.
        SingularMatrixError: the matrix, or a leading part of it, is singular.

    >>> print(gg.scipy.linalg.solve_toeplitz([2.0, 1.0], [3.0, 3.0]))
    [1. 1.]
    """
    (c, r), b = _column_and_row(c_or_cr), asarray(b)
    if b.ndim == 1:
        return xp.toeplitz_solve(c, r, b[:, None])[:, 0]
    return xp.toeplitz_solve(c, r, b)


@saying_where
def matmul_toeplitz(
    c_or_cr: Any, x: Any, check_finite: bool = True, workers: int | None = None
) -> Tensor:
    """The product of a Toeplitz matrix with a vector or matrix, by FFTs.

    Args:
        c_or_cr: the first column of shape (m,), or a tuple of it and the first row of shape (n,);
            without a row the matrix is Hermitian.
        x: array of shape (n,) or (n, k).

    Returns:
        Tensor of shape (m,) or (m, k).

    Raises:
        ShapeError: the shapes do not match.

    >>> print(gg.scipy.linalg.matmul_toeplitz([1.0, 2.0], [1.0, 1.0]))
    [3. 3.]
    """
    (c, r), x = _column_and_row(c_or_cr), asarray(x)
    m, n = c.shape[0], r.shape[0]
    if x.ndim < 1 or x.shape[0] != n:
        raise ShapeError(f"matmul_toeplitz: x {x.shape} must have {n} rows.")
    embedded = xp.concat([c, xp.flip(r[1:], axis=0)], axis=0)
    real = not any(y.dtype.kind == "c" for y in (c, r, x))
    size = m + n - 1
    columns = embedded if x.ndim == 1 else embedded[:, None]
    spectrum = xp.fft(columns, n=size, axis=0) * xp.fft(x, n=size, axis=0)
    result: Tensor = xp.ifft(spectrum, n=size, axis=0)[:m]
    return xp.real(result) if real else result


@saying_where
def solve_circulant(
    c: Any,
    b: Any,
    singular: str = "raise",
    tol: Any = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Tensor:
    """The solution of ``a @ x == b`` for a circulant matrix, by FFTs.

    Args:
        c: the first column, along `caxis`.
        b: array with the right sides along `baxis`.
        singular: ``"raise"``, or ``"lstsq"`` for the least squares solution.
        tol: eigenvalues of this size or less count as 0.
        outaxis: the axis of the result for the solutions.

    Returns:
        Tensor of the shape of `b`.

    Raises:
        SingularMatrixError: an eigenvalue counts as 0, and `singular` is ``"raise"``.
        ShapeError: the shapes do not match.

    >>> print(gg.scipy.linalg.solve_circulant([2.0, 1.0], [3.0, 3.0]))
    [1. 1.]
    """
    c, b = (x if x.ndim else x[None] for x in (asarray(c), asarray(b)))
    n = c.shape[caxis]
    if b.shape[baxis] != n:
        raise ShapeError(f"solve_circulant: c {c.shape} and b {b.shape} do not match.")
    real = c.dtype.kind != "c" and b.dtype.kind != "c"
    spectrum: Any = xp.fft(xp.moveaxis(c, caxis, -1), axis=-1)
    size = xp.abs(xp.stop_gradient(spectrum))
    if tol is None:
        tol = xp.max(size, axis=-1, keepdims=True) * n * np.finfo(np.float64).eps
    zero = size <= tol
    if singular == "raise" and bool(xp.any(zero)):
        raise SingularMatrixError("solve_circulant: the circulant matrix is near singular.")
    quotient = xp.fft(xp.moveaxis(b, baxis, -1), axis=-1) / xp.where(zero, 1, spectrum)
    result: Any = xp.ifft(xp.where(zero, 0, quotient), axis=-1)
    return xp.moveaxis(xp.real(result) if real else result, -1, outaxis)
