"""Functions of matrices, of other ops.

``overwrite_a=`` has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad import linalg as ours
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.linalg.turned import square


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
        result: Tensor = formula(square(name, A))
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
    A, E = square("expm_frechet", A), square("expm_frechet", E)
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
    A = square("expm_cond", A)
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
    A = square("fractional_matrix_power", A)
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
    A = square("funm", A)
    w, v = ours.eig(A)
    scaled = v * xp.expand_dims(asarray(func(w)), axis=-2)
    result: Any = xp.matrix_transpose(xp.solve(xp.matrix_transpose(v), xp.matrix_transpose(scaled)))
    if A.dtype.kind == "c":
        return result
    small = 1e3 if A.dtype.itemsize == 4 else 1e6
    limit = small * np.finfo(A.dtype).eps
    imaginary = np.asarray(xp.stop_gradient(xp.imag(result)))
    return xp.real(result) if np.allclose(imaginary, 0, atol=limit) else result
