"""Functions of matrices, and matrix equations, of other ops.

``check_finite=`` and ``overwrite_a=`` have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad import linalg as ours
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError, SingularMatrixError, saying_where
from gpugrad.numpy.creation import asarray
from gpugrad.ops.linalg.common import need_square


def _square(name: str, a: Any) -> Any:
    a = asarray(a)
    need_square(name, a)
    return a if a.dtype.kind in "fc" else xp.astype(a, "float64")


def _adjoint(a: Any) -> Any:
    return xp.conj(xp.matrix_transpose(a))


def _eye(a: Any) -> Any:
    return xp.diagonal_scatter(xp.diagonal(a, 0, -2, -1) ** 0, offset=0, shape=a.shape)


def _cosm(a: Any) -> Any:
    if a.dtype.kind == "f":
        return xp.real(xp.expm(1j * a))
    return 0.5 * (xp.expm(1j * a) + xp.expm(-1j * a))


def _sinm(a: Any) -> Any:
    if a.dtype.kind == "f":
        return xp.imag(xp.expm(1j * a))
    return -0.5j * (xp.expm(1j * a) - xp.expm(-1j * a))


def _coshm(a: Any) -> Any:
    return 0.5 * (xp.expm(a) + xp.expm(-a))


def _sinhm(a: Any) -> Any:
    return 0.5 * (xp.expm(a) - xp.expm(-a))


def _signm(a: Any) -> Any:
    """A (A^2)^(-1/2): N. Higham, "Functions of Matrices" (2008), equation 5.2."""
    return xp.matrix_transpose(
        xp.solve(xp.matrix_transpose(xp.sqrtm(a @ a)), xp.matrix_transpose(a))
    )


def _of_matrix(name: str, formula: Callable[[Any], Any], what: str, value: str) -> Any:
    def function(A: Any) -> Tensor:
        result: Tensor = formula(_square(name, A))
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{what} of square matrices.

    Args:
        A: array of shape (..., n, n).

    Returns:
        Tensor of the shape of `A`.

    Raises:
        ShapeError: the matrices are not square.

    >>> print(gg.scipy.linalg.{name}([[1.0, 0.0], [0.0, -1.0]]).numpy().round(4))
    {value}
    """
    return saying_where(function)


def _diagonal(first: float, last: float) -> str:
    return str(np.diag([first, last])).replace("\n", "\n    ")


cosm = _of_matrix("cosm", _cosm, "Cosine", _diagonal(0.5403, 0.5403))
sinm = _of_matrix("sinm", _sinm, "Sine", _diagonal(0.8415, -0.8415))
tanm = _of_matrix(
    "tanm", lambda a: xp.solve(_cosm(a), _sinm(a)), "Tangent", _diagonal(1.5574, -1.5574)
)
coshm = _of_matrix("coshm", _coshm, "Hyperbolic cosine", _diagonal(1.5431, 1.5431))
sinhm = _of_matrix("sinhm", _sinhm, "Hyperbolic sine", _diagonal(1.1752, -1.1752))
tanhm = _of_matrix(
    "tanhm",
    lambda a: xp.solve(_coshm(a), _sinhm(a)),
    "Hyperbolic tangent",
    _diagonal(0.7616, -0.7616),
)
signm = _of_matrix("signm", _signm, "Sign, whose eigenvalues are -1 and 1,", _diagonal(1.0, -1.0))


@saying_where
def expm_frechet(
    A: Any, E: Any, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """The exponential of matrices, and its derivative along a direction.

    Args:
        A: array of shape (..., n, n).
        E: array of the shape of `A`, the direction.
        method: without effect.
        compute_expm: whether to return the exponential too.

    Returns:
        The exponential and the derivative, or the derivative alone, of the shape of `A`.

    Raises:
        ShapeError: `A` and `E` are not square matrices of one shape.

    >>> print(*gg.scipy.linalg.expm_frechet(np.zeros((1, 1)), [[2.0]]))
    [[1.]] [[2.]]
    """
    A, E = _square("expm_frechet", A), _square("expm_frechet", E)
    if A.shape != E.shape:
        raise ShapeError(f"expm_frechet: A {A.shape} and E {E.shape} must have one shape.")
    n = A.shape[-1]
    rows = [xp.concat([A, E], axis=-1), xp.concat([0 * E, A], axis=-1)]
    out: Any = xp.expm(xp.concat(rows, axis=-2))
    derivative = out[..., :n, n:]
    return (out[..., :n, :n], derivative) if compute_expm else derivative


@saying_where
def expm_cond(A: Any, check_finite: bool = True) -> Any:
    """Relative condition number of the exponential in the Frobenius norm.

    Args:
        A: array of shape (n, n). It takes memory for n^4 numbers.

    Returns:
        Tensor without axes.

    Raises:
        ShapeError: the matrix is not square.

    >>> print(round(gg.scipy.linalg.expm_cond(np.eye(1)).item(), 6))
    1.0
    """
    A = _square("expm_cond", A)
    n = A.shape[-1]
    units = np.eye(n * n, dtype=A.dtype).reshape(n * n, n, n)
    every = xp.broadcast_to(A, units.shape)
    kronecker = xp.reshape(expm_frechet(every, asarray(units), compute_expm=False), (n * n, n * n))
    size: Any = ours.norm(A)
    return ours.norm(kronecker, 2) * size / ours.norm(xp.expm(A))


@saying_where
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """A real power of square matrices, exp(t log(A)); differentiable by both.

    Args:
        A: array of shape (..., n, n). If `t` is not a whole number, no eigenvalue may be 0, and
            real matrices with a negative one must be converted to complex128.
        t: number, or Tensor without axes.

    Returns:
        Tensor of the shape of `A`.

    Raises:
        ShapeError: the matrices are not square.
        SingularMatrixError: an eigenvalue is 0.

    >>> print(gg.scipy.linalg.fractional_matrix_power([[4.0]], 0.5).numpy().round(6))
    [[2.]]
    """
    A = _square("fractional_matrix_power", A)
    if not isinstance(t, Tensor) and float(t).is_integer():
        return ours.matrix_power(A, int(t))
    return xp.expm(t * xp.logm(A))


@saying_where
def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of square matrices with distinct eigenvalues: it is applied to the eigenvalues.

    Args:
        A: array of shape (..., n, n).
        func: function of a complex Tensor of eigenvalues, elementwise.
        disp: must be true: there is no estimate of the error.

    Returns:
        Tensor of the shape of `A`. It is complex if `A` is, or if the imaginary parts are not
        small, which needs known values.

    Raises:
        ArgumentError: `disp` is false.
        ShapeError: the matrices are not square.

    >>> print(gg.scipy.linalg.funm([[4.0, 0.0], [0.0, 9.0]], gg.sqrt))
    [[2. 0.]
     [0. 3.]]
    """
    if not disp:
        raise ArgumentError("funm: disp=False asks for an estimate of the error; there is none.")
    A = _square("funm", A)
    w, v = ours.eig(A)
    scaled = v * xp.expand_dims(asarray(func(w)), axis=-2)
    result: Any = xp.matrix_transpose(xp.solve(xp.matrix_transpose(v), xp.matrix_transpose(scaled)))
    if A.dtype.kind == "c":
        return result
    small = 1e3 if A.dtype.itemsize == 4 else 1e6
    limit = small * np.finfo(A.dtype).eps
    imaginary = np.asarray(xp.stop_gradient(xp.imag(result)))
    return xp.real(result) if np.allclose(imaginary, 0, atol=limit) else result


# ---- equations ------------------------------------------------------------------------------


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
    a, q = _square("solve_continuous_lyapunov", a), _square("solve_continuous_lyapunov", q)
    result: Tensor = xp.solve_sylvester(a, _adjoint(a), q)
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
    a, q = _square("solve_discrete_lyapunov", a), _square("solve_discrete_lyapunov", q)
    method = (method or ("direct" if a.shape[-1] < 10 else "bilinear")).lower()
    if method == "direct":
        product = ours.kron(a, xp.conj(a))
        flat = xp.solve(_eye(product) - product, xp.reshape(q, (-1, 1)))
        result: Tensor = xp.reshape(flat, q.shape)
        return result
    if method != "bilinear":
        raise ArgumentError(f"solve_discrete_lyapunov: there is no method {method!r}.")
    adjoint, one = _adjoint(a), _eye(a)
    inverse = xp.inv(adjoint + one)
    b = (adjoint - one) @ inverse
    c = 2 * (xp.solve(a + one, q) @ inverse)
    return solve_continuous_lyapunov(_adjoint(b), -c)


def _riccati(name: str, discrete: bool, equation: str, value: str) -> Any:
    def function(
        a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
    ) -> Tensor:
        import scipy.linalg

        given = [None if x is None else asarray(x) for x in (a, b, q, r, e, s)]
        a, b, q, r, e, s = given
        fixed = [None if x is None else np.asarray(xp.stop_gradient(x)) for x in given]
        x: Any = asarray(getattr(scipy.linalg, name)(*fixed, balanced=balanced))
        e = _eye(a) if e is None else e
        s = 0 * b if s is None else s
        for _ in range(_STEPS):
            side = (_adjoint(b) @ x @ a if discrete else _adjoint(b) @ x @ e) + _adjoint(s)
            weight = r + _adjoint(b) @ x @ b if discrete else r
            gain = xp.solve(weight, side)
            closed = xp.matrix_transpose(
                xp.solve(xp.matrix_transpose(e), xp.matrix_transpose(a - b @ gain))
            )
            cross = s @ gain
            cost = q + _adjoint(gain) @ r @ gain - cross - _adjoint(cross)
            cost = _adjoint(xp.solve(_adjoint(e), _adjoint(xp.solve(_adjoint(e), cost))))
            if discrete:
                x = solve_discrete_lyapunov(_adjoint(closed), cost)
            else:
                x = solve_continuous_lyapunov(_adjoint(closed), -cost)
            x = 0.5 * (x + _adjoint(x))
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
        Tensor of the shape of `b`. It takes memory for n^2 numbers.

    Raises:
        ShapeError: the shapes do not match.
        SingularMatrixError: the matrix is singular.

    >>> print(gg.scipy.linalg.solve_toeplitz([2.0, 1.0], [3.0, 3.0]))
    [1. 1.]
    """
    result: Tensor = xp.solve(ours.toeplitz(*_column_and_row(c_or_cr)), asarray(b))
    return result


@saying_where
def matmul_toeplitz(
    c_or_cr: Any, x: Any, check_finite: bool = False, workers: int | None = None
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
