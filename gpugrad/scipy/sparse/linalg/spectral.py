"""Eigenvalues, singular values, norms and exponentials of sparse arrays."""

from __future__ import annotations

import math
from operator import index as operator_index
from typing import Any

import numpy as np
import scipy.sparse.linalg

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.arrays import csr_array
from gpugrad.scipy.sparse.linalg.operators import operator, plain
from gpugrad.scipy.sparse.linalg.systems import spsolve, system
from gpugrad.scipy.sparse.structure import dense, is_number


def eigsh(
    A: Any, k: int = 6, M: Any = None, *, return_eigenvectors: bool = True, **options: Any
) -> Any:
    """Some eigenvalues and eigenvectors of a symmetric sparse array, by ARPACK on the host.

    ARPACK's pairs are constants. Under a tape, two steps of Newton's method from them make values
    that depend on the entries. They are differentiable twice where an eigenvalue is simple; each
    step solves a sparse system with one more row and column.

    Args:
        A: symmetric or Hermitian sparse array of shape (n, n), or a LinearOperator, which has no
            derivative then.
        k: number of pairs.
        M: for the problem A x = w M x: real symmetric positive definite array.
        return_eigenvectors: whether to return the vectors too.
        options: SciPy's other arguments, such as `which`, `sigma` and `v0`.

    Returns:
        Eigenvalues of shape (k,), in ascending order, and eigenvectors of shape (n, k).

    Raises:
        DTypeError: a derivative for complex entries.
        ArpackNoConvergence: ARPACK does not converge.

    >>> a = gg.scipy.sparse.diags_array([[1.0, 2.0, 5.0]], offsets=[0])
    >>> print(gg.scipy.sparse.linalg.eigsh(a, 1)[0])
    [5.]
    """
    matrices, on_host = _matrices(A, M)
    values, vectors = scipy.sparse.linalg.eigsh(on_host[0], k, on_host[1], **options)
    found = _differentiable("eigsh", matrices, values, vectors)
    return found if return_eigenvectors else found[0]


def _matrices(*given: Any) -> tuple[list[Any], list[Any]]:
    """Matrices in CSR form, or operators; and SciPy's of their values."""
    ours = [x if x is None or operator(x) is not None else construct.sparse(x) for x in given]
    ours = [x.tocsr() if hasattr(x, "pattern") else x for x in ours]
    return ours, [x.on_host() if hasattr(x, "pattern") else plain(x, cuts=False) for x in ours]


def _differentiable(
    name: str, matrices: list[Any], values: Any, vectors: Any
) -> tuple[Tensor, Tensor]:
    """Eigenpairs that depend on the entries, if anything is recorded."""
    a, m = matrices
    if not threads.stack or any(x is not None and not hasattr(x, "pattern") for x in (a, m)):
        return asarray(values), asarray(vectors)
    if a.dtype.kind == "c":
        raise DTypeError(f"{name}: no derivative for complex entries: use gg.linalg.eigh.")
    pairs = [_pair(a, m, *pair) for pair in zip(values, vectors.T, strict=True)]
    return xp.stack([value for value, _ in pairs]), xp.stack([v for _, v in pairs], axis=1)


def _pair(a: Any, m: Any, value: Any, vector: Any) -> tuple[Tensor, Tensor]:
    """An eigenvalue and its vector of norm 1, after two steps of Newton's method."""
    n = a.shape[0]
    m = construct.eye_array(n, dtype=a.dtype, format="csr", device=a.device) if m is None else m
    value, vector = dense(np.asarray(value), a), dense(np.ascontiguousarray(vector), a)
    for _ in range(2):
        weighed = m @ vector
        column = csr_array((weighed, (np.arange(n), np.zeros(n, int))), shape=(n, 1))
        bordered = construct.block_array([[a - m * value, -column], [column.T, None]], format="csc")
        left = xp.reshape((1 - vector @ weighed) / 2, (1,))
        step = spsolve(bordered, xp.concat([value * weighed - a @ vector, left]))
        vector, value = vector + step[:n], value + step[n]
    return value, vector


def lobpcg(
    A: Any,
    X: Any,
    B: Any = None,
    M: Any = None,
    Y: Any = None,
    tol: float | None = None,
    maxiter: int | None = None,
    largest: bool = True,
    **options: Any,
) -> Any:
    """Some eigenvalues and eigenvectors of a symmetric array by LOBPCG; differentiable as `eigsh`.

    Args:
        A: real symmetric sparse array of shape (n, n); or a LinearOperator, without a derivative.
        X: array of shape (n, k): a start.
        B: for the problem A x = w B x: real symmetric positive definite array.
        M: a preconditioner, taken for constant.
        Y: array of shape (n, j) that spans what the vectors must be orthogonal to; a constant.
        tol, maxiter, largest, options: SciPy's.

    Returns:
        Eigenvalues of shape (k,) and eigenvectors of shape (n, k), then SciPy's histories if asked.

    >>> a = gg.scipy.sparse.diags_array([np.arange(1.0, 21.0)], offsets=[0])
    >>> print(gg.scipy.sparse.linalg.lobpcg(a, np.eye(20)[:, 18:], maxiter=2)[0])
    [20. 19.]
    """
    start, constraint = (None if x is None else _values(x) for x in (X, Y))
    matrices, on_host = _matrices(A, B)
    how = {"M": plain(M), "Y": constraint, "tol": tol, "maxiter": maxiter, "largest": largest}
    result = scipy.sparse.linalg.lobpcg(on_host[0], start, on_host[1], **how, **options)
    values, vectors, *histories = result
    return (*_differentiable("lobpcg", matrices, values, vectors), *histories)


def _values(x: Any) -> Any:
    return xp.stop_gradient(x).numpy() if isinstance(x, Tensor) else np.asarray(x)


def svds(A: Any, k: int = 6, *, return_singular_vectors: bool = True, **options: Any) -> Any:
    """The largest singular values and their vectors; under a tape by `eigsh` of A^T A.

    They are differentiable as those of `eigsh`.

    Args:
        A: sparse array of shape (m, n), or a LinearOperator, which has no derivative.
        k: number of values.
        return_singular_vectors: whether to return the vectors too.
        options: ARPACK's: `ncv`, `tol`, `v0` and `maxiter`.

    Returns:
        (u, s, vt) of shapes (m, k), (k,) and (k, n), the values in ascending order; or s alone.
        Under a tape, values below the square root of the precision are inexact.

    >>> a = gg.scipy.sparse.diags_array([[1.0, 2.0, 5.0]], offsets=[0])
    >>> print(gg.scipy.sparse.linalg.svds(a, 1)[1])
    [5.]
    """
    (a,), (on_host,) = _matrices(A)
    if not threads.stack or not hasattr(a, "pattern"):
        how = {"return_singular_vectors": return_singular_vectors, **options}
        found = scipy.sparse.linalg.svds(on_host, k, **how)
        return tuple(map(asarray, found)) if isinstance(found, tuple) else asarray(found)
    squares, v = eigsh(a.T @ a, k, **options)
    s = xp.sqrt(squares)
    return ((a @ v) / s, s, xp.permute_dims(v, (1, 0))) if return_singular_vectors else s


def norm(x: Any, ord: Any = None, axis: Any = None) -> Tensor:
    """Norm of a sparse array, or of its rows or columns.

    Args:
        x: sparse array.
        ord: None or "fro", 1, -1, 2, inf, -inf; for rows and columns any number.
        axis: None, or the axis along which vectors lie.

    Raises:
        ValueError, NotImplementedError: another `ord`, as SciPy's.

    >>> print(gg.scipy.sparse.linalg.norm(gg.scipy.sparse.csr_array([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    """
    if not construct.issparse(x):
        raise TypeError("input is not sparse. use numpy.linalg.norm")
    a = construct.sparse(x).sum_of_places()
    axes = tuple(range(a.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if any(not -a.ndim <= operator_index(k) < a.ndim for k in axes):
        raise ArgumentError(f"norm: Invalid axis {axis!r} for an array with shape {a.shape}")
    if len(axes) == 2:
        return _matrix_norm(a, ord, axes)
    if len(axes) != 1:
        raise ArgumentError("norm: Improper number of dimensions to norm.")
    if ord in (math.inf, -math.inf):
        sums = abs(a).max(axes[0]) if ord > 0 else abs(a).min(axes[0])
    elif ord == 0:
        sums = (a != 0).sum(axes[0])
    elif ord in (None, 2):
        return xp.sqrt(xp.ravel(a.with_data(xp.abs(a.data) ** 2).sum(axes[0])))
    elif not is_number(ord) or isinstance(ord, str):
        raise ArgumentError(f"norm: Invalid norm order {ord!r} for vectors.")
    else:
        sums = (abs(a) if ord == 1 else abs(a).power(ord)).sum(axes[0])
    sums = sums.toarray() if construct.issparse(sums) else sums
    return xp.ravel(sums) if ord in (0, 1, math.inf, -math.inf) else xp.ravel(sums) ** (1 / ord)


def _matrix_norm(a: Any, ord: Any, axes: tuple[int, ...]) -> Tensor:
    if axes[0] % a.ndim == axes[1] % a.ndim:
        raise ArgumentError("norm: Duplicate axes given.")
    if ord in (None, "fro", "f"):
        return xp.vector_norm(a.data)
    if ord == 2:
        return svds(a, 1, return_singular_vectors=False)[0]
    if ord == -2:
        raise NotImplementedError("norm: the least singular value of a sparse array.")
    if ord not in (1, -1, math.inf, -math.inf):
        raise ArgumentError(f"norm: Invalid norm order {ord!r} for matrices.")
    sums = xp.ravel(abs(a).sum(axis=axes[0] if abs(ord) == 1 else axes[1]))
    return xp.max(sums) if ord > 0 else xp.min(sums)


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
    a, b = system("expm_multiply", A, B)
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


def _square(name: str, A: Any) -> Any:
    a = construct.sparse(A)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"{name}: expected a square matrix, its shape is {a.shape}.")
    return a


def _identity(a: Any) -> Any:
    eye = construct.eye_array if a.is_array else construct.eye
    return eye(a.shape[0], dtype=a.dtype, format="csr", device=a.device)


def matrix_power(A: Any, power: int) -> Any:
    """A square sparse array to the power of an int from 0 on, by repeated squaring.

    >>> a = gg.scipy.sparse.csr_array([[1.0, 1.0], [0.0, 1.0]])
    >>> print(gg.scipy.sparse.linalg.matrix_power(a, 5).toarray())
    [[1. 5.]
     [0. 1.]]
    """
    a, n = _square("matrix_power", A), operator_index(power)
    if n < 0:
        raise ArgumentError(f"matrix_power: the exponent {n} must be >= 0.")
    result = None
    while n:
        if n % 2:
            result = a if result is None else result @ a
        n //= 2
        a = a @ a if n else a
    return _identity(a) if result is None else result


def expm(A: Any) -> Any:
    """Exponential of a square sparse array, a sparse one; differentiable by the entries.

    It is a Taylor polynomial of A / 2^s, squared s times. The pattern is that of these products,
    so A is best one whose powers are sparse. The number s follows from the 1-norm, which is read.

    >>> a = gg.scipy.sparse.csr_array([[0.0, 1.0], [0.0, 0.0]])
    >>> print(gg.scipy.sparse.linalg.expm(a).toarray())
    [[1. 1.]
     [0. 1.]]
    """
    a = _square("expm", A).tocsr()
    a = a if a.dtype.kind in "fc" else a.astype("float64")
    size = float(xp.stop_gradient(norm(a, 1)).numpy()) if a.nnz else 0.0
    squares = max(0, math.ceil(math.log2(2 * size))) if size else 0
    degree = next(m for m in range(1, 60) if 0.5**m / math.factorial(m + 1) < 1e-17)
    eye = _identity(a)
    a, result = a / 2**squares, eye
    for k in range(degree if size else 0, 0, -1):
        result = eye + a @ result / k
    for _ in range(squares):
        result = result @ result
    return result
