"""Eigenvalues, singular values, norms and exponentials of sparse arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse.linalg

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import DTypeError
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.arrays import csr_array
from gpugrad.scipy.sparse.linalg.systems import spsolve, system
from gpugrad.scipy.sparse.structure import dense


def eigsh(A: Any, k: int = 6, *, return_eigenvectors: bool = True, **options: Any) -> Any:
    """Some eigenvalues and eigenvectors of a symmetric sparse array, by ARPACK on the host.

    ARPACK's pairs are constants; two steps of Newton's method from them make values that depend on
    the entries. They are differentiable twice where an eigenvalue is simple; each step solves a
    sparse system with one more row and column.

    Args:
        A: real symmetric sparse array of shape (n, n).
        k: number of pairs.
        return_eigenvectors: whether to return the vectors too.
        options: SciPy's other arguments, such as `which`, `sigma` and `v0`, without `M`.

    Returns:
        Eigenvalues of shape (k,), in ascending order, and eigenvectors of shape (n, k).

    Raises:
        DTypeError: A is complex.
        NotImplementedError: there is an `M`.
        ArpackNoConvergence: ARPACK does not converge.

    >>> a = gg.scipy.sparse.diags_array([[1.0, 2.0, 5.0]], offsets=[0])
    >>> print(gg.scipy.sparse.linalg.eigsh(a, 1)[0])
    [5.]
    """
    a = construct.sparse(A).tocsr()
    if a.dtype.kind == "c":
        raise DTypeError("eigsh: a complex array is not implemented: use gg.linalg.eigh.")
    if options.get("M") is not None:
        raise NotImplementedError("eigsh: generalized problems, with M, are not implemented.")
    values, vectors = scipy.sparse.linalg.eigsh(a.on_host(), k, **options)
    pairs = [_pair(a, *pair) for pair in zip(values, vectors.T, strict=True)]
    found = xp.stack([value for value, _ in pairs])
    return (found, xp.stack([v for _, v in pairs], axis=1)) if return_eigenvectors else found


def _pair(a: Any, value: Any, vector: Any) -> tuple[Tensor, Tensor]:
    """An eigenvalue and its vector of norm 1, after two steps of Newton's method."""
    n = a.shape[0]
    eye = construct.eye_array(n, dtype=a.dtype, format="csr", device=a.device)
    value, vector = dense(np.asarray(value), a), dense(np.ascontiguousarray(vector), a)
    for _ in range(2):
        column = csr_array((vector, (np.arange(n), np.zeros(n, int))), shape=(n, 1))
        bordered = construct.block_array(
            [[a - eye * value, -column], [column.T, None]], format="csc"
        )
        left = xp.reshape((1 - vector @ vector) / 2, (1,))
        step = spsolve(bordered, xp.concat([value * vector - a @ vector, left]))
        vector, value = vector + step[:n], value + step[n]
    return value, vector


def svds(A: Any, k: int = 6, *, return_singular_vectors: bool = True, **options: Any) -> Any:
    """The largest singular values and their vectors, by `eigsh` of A^T A; differentiable alike.

    Args:
        A: real sparse array of shape (m, n).
        k: number of values.
        return_singular_vectors: whether to return the vectors too.
        options: ARPACK's: `ncv`, `tol`, `v0` and `maxiter`.

    Returns:
        (u, s, vt) of shapes (m, k), (k,) and (k, n), the values in ascending order; or s alone.
        Values below the square root of the precision are inexact.

    >>> a = gg.scipy.sparse.diags_array([[1.0, 2.0, 5.0]], offsets=[0])
    >>> print(gg.scipy.sparse.linalg.svds(a, 1)[1])
    [5.]
    """
    a = construct.sparse(A).tocsr()
    squares, v = eigsh(a.T @ a, k, **options)
    s = xp.sqrt(squares)
    return ((a @ v) / s, s, xp.permute_dims(v, (1, 0))) if return_singular_vectors else s


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
