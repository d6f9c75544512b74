"""Eigenvalues and singular values of sparse arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse.linalg as scipys

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError
from gpugrad.numpy.creation import asarray
from gpugrad.registry.rules import conjugate
from gpugrad.scipy.signatures import with_signature
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.arrays import csr_array
from gpugrad.scipy.sparse.linalg.operators import operator, plain
from gpugrad.scipy.sparse.linalg.systems import spsolve
from gpugrad.scipy.sparse.structure import dense


def as_scipy(formula: Any) -> Any:
    """The function with the signature of SciPy's of that name."""
    return with_signature(formula, scipys, lambda bound: formula(**bound.arguments))


@as_scipy
def eigsh(A: Any, k: Any, M: Any, return_eigenvectors: bool, **options: Any) -> Any:
    """Some eigenvalues and eigenvectors of a Hermitian sparse array, by ARPACK on the host.

    ARPACK's pairs are constants. Under a tape, two steps of Newton's method from them make values
    that depend on the entries. They are differentiable twice where an eigenvalue is simple; each
    step solves a sparse system with one more row and column. The phase of a vector stays.

    Args:
        A: symmetric or Hermitian sparse array of shape (n, n), or a LinearOperator, which has no
            derivative then.
        k: number of pairs.
        M: for the problem A x = w M x: Hermitian positive definite array.
        return_eigenvectors: whether to return the vectors too.
        options: SciPy's other arguments, such as `which`, `sigma` and `v0`.

    Returns:
        Eigenvalues of shape (k,), in ascending order, and eigenvectors of shape (n, k).

    Raises:
        ArpackNoConvergence: ARPACK does not converge.

    >>> a = gg.scipy.sparse.diags_array([[1.0, 2.0, 5.0]], offsets=[0])
    >>> print(gg.scipy.sparse.linalg.eigsh(a, 1)[0])
    [5.]
    """
    return _pairs("eigsh", A, k, M, return_eigenvectors, options, real=True)


@as_scipy
def eigs(A: Any, k: Any, M: Any, return_eigenvectors: bool, **options: Any) -> Any:
    """Some eigenvalues and eigenvectors of a square sparse array; differentiable as `eigsh`.

    Args:
        A: sparse array of shape (n, n); or a LinearOperator, without a derivative.
        k: number of pairs.
        M: for the problem A x = w M x: Hermitian positive definite array.
        return_eigenvectors: whether to return the vectors too.
        options: SciPy's other arguments.

    Returns:
        Complex eigenvalues of shape (k,) and eigenvectors of shape (n, k), of norm 1.

    >>> a = gg.scipy.sparse.csr_array([[0.0, -2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> print(gg.round(gg.abs(gg.scipy.sparse.linalg.eigs(a, 1)[0]), 6))
    [2.]
    """
    return _pairs("eigs", A, k, M, return_eigenvectors, options, real=False)


def _pairs(name: str, A: Any, k: Any, M: Any, vectors: bool, options: Any, real: bool) -> Any:
    matrices, on_host = _matrices(A, M)
    w, v = getattr(scipys, name)(on_host[0], k, on_host[1], **options)
    pairs = _differentiable(matrices, w, v, real)
    return pairs if vectors else pairs[0]


def _matrices(*given: Any) -> tuple[list[Any], list[Any]]:
    """Matrices in CSR form, or operators; and SciPy's of their values."""
    ours = [x if x is None or operator(x) is not None else construct.sparse(x) for x in given]
    if any(x is not None and len(x.shape) != 2 for x in ours):
        raise ArgumentError(
            f"expected matrices, the shapes are {[x.shape for x in ours if x is not None]}."
        )
    ours = [x.tocsr() if hasattr(x, "pattern") else x for x in ours]
    return ours, [x.on_host() if hasattr(x, "pattern") else plain(x, cuts=False) for x in ours]


def _differentiable(matrices: list[Any], w: Any, vectors: Any, real: bool) -> tuple[Tensor, Tensor]:
    """Eigenpairs that depend on the entries, if anything is recorded."""
    a, m = matrices
    if not threads.stack or any(x is not None and not hasattr(x, "pattern") for x in (a, m)):
        return asarray(w), asarray(vectors)
    kind = np.result_type(a.dtype, vectors.dtype)
    a = a if a.dtype == kind else a.astype(kind)
    if m is None:
        m = construct.eye_array(a.shape[0], dtype=kind, format="csr", device=a.device)
    pairs = [_pair(a, m, *pair) for pair in zip(w, vectors.T, strict=True)]
    values = xp.stack([value for value, _ in pairs])
    return xp.real(values) if real else values, xp.stack([v for _, v in pairs], axis=1)


def _pair(a: Any, m: Any, value: Any, vector: Any) -> tuple[Tensor, Tensor]:
    """An eigenvalue and its vector of norm 1, after two steps of Newton's method.

    They solve a v = w m v and c v = 1 for the constant row c = v^H m of the start, so that the
    phase is that of the start.
    """
    n = a.shape[0]
    value, vector = (dense(np.array(x, a.dtype), a) for x in (value, vector))
    weighed = m @ vector
    ends = np.arange(n), np.zeros(n, int)
    row = csr_array((xp.stop_gradient(conjugate(xp, weighed)), ends[::-1]), shape=(1, n))
    for _ in range(2):
        column = csr_array((weighed, ends), shape=(n, 1))
        bordered = construct.block_array([[a - m * value, -column], [row, None]], format="csc")
        step = spsolve(bordered, xp.concat([value * weighed - a @ vector, 1 - row @ vector]))
        vector, value = vector + step[:n], value + step[n]
        weighed = m @ vector
    size = xp.real(xp.sum(conjugate(xp, vector) * weighed))
    return value, vector / xp.sqrt(size)


@as_scipy
def lobpcg(A: Any, X: Any, B: Any, M: Any, Y: Any, **options: Any) -> Any:
    """Some eigenvalues and eigenvectors of a symmetric array by LOBPCG; differentiable as `eigsh`.

    Args:
        A: symmetric sparse array of shape (n, n); or a LinearOperator, without a derivative.
        X: array of shape (n, k): a start.
        B: for the problem A x = w B x: symmetric positive definite array.
        M: a preconditioner, taken for constant.
        Y: array of shape (n, j) that spans what the vectors must be orthogonal to; a constant.
        options: SciPy's, such as `tol`, `maxiter` and `largest`.

    Returns:
        Eigenvalues of shape (k,) and eigenvectors of shape (n, k), then SciPy's histories if asked.

    >>> a = gg.scipy.sparse.diags_array([np.arange(1.0, 21.0)], offsets=[0])
    >>> print(gg.scipy.sparse.linalg.lobpcg(a, np.eye(20)[:, 18:], maxiter=2)[0])
    [20. 19.]
    """
    start, constraint = (None if x is None else _values(x) for x in (X, Y))
    matrices, on_host = _matrices(A, B)
    result = scipys.lobpcg(on_host[0], start, on_host[1], M=plain(M), Y=constraint, **options)
    values, vectors, *histories = result
    return (*_differentiable(matrices, values, vectors, True), *histories)


def _values(x: Any) -> Any:
    return xp.stop_gradient(x).numpy() if isinstance(x, Tensor) else np.asarray(x)


@as_scipy
def svds(A: Any, k: Any, return_singular_vectors: Any, **options: Any) -> Any:
    """Some singular values and their vectors, by SciPy on the host; differentiable as `eigsh`.

    Under a tape they are eigenpairs of the Hermitian array with the blocks A and A^H.

    Args:
        A: sparse array of shape (m, n), or a LinearOperator, which has no derivative.
        k: number of values.
        return_singular_vectors: whether to return the vectors too; or "u" or "vh" for one kind.
        options: SciPy's other arguments, such as `which`, `solver` and `v0`.

    Returns:
        (u, s, vt) of shapes (m, k), (k,) and (k, n), the values in ascending order; or s alone.

    >>> a = gg.scipy.sparse.diags_array([[1.0, 2.0, 5.0]], offsets=[0])
    >>> print(gg.scipy.sparse.linalg.svds(a, 1)[1])
    [5.]
    """
    (a,), (on_host,) = _matrices(A)
    wanted = return_singular_vectors
    options = {k: v for k, v in options.items() if v is not None}  # two names of one argument
    if not threads.stack or not hasattr(a, "pattern"):
        found = scipys.svds(on_host, k, return_singular_vectors=wanted, **options)
        return tuple(map(_tensor, found)) if isinstance(found, tuple) else asarray(found)
    u, s, vt = scipys.svds(on_host, k, **options)
    whole = construct.block_array([[None, a], [a.conj().T, None]], format="csr")
    vectors = np.concatenate([u, vt.conj().T]) / math.sqrt(2)
    s, v = _differentiable([whole, None], s, vectors, True)
    v, m = v * math.sqrt(2), a.shape[0]
    right = conjugate(xp, xp.permute_dims(v[m:], (1, 0)))
    if not isinstance(wanted, str):
        return (v[:m], s, right) if wanted else s
    return (v[:m], s, None) if wanted == "u" else (None, s, right)


def _tensor(x: Any) -> Any:
    return None if x is None else asarray(x)
