"""Eigenvalues, singular values, norms and exponentials of sparse arrays."""

from __future__ import annotations

import math
from operator import index as operator_index
from typing import Any

import numpy as np
import scipy.sparse.linalg as scipys

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.numpy.creation import asarray
from gpugrad.registry.rules import conjugate
from gpugrad.scipy.signatures import with_signature
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.arrays import csr_array
from gpugrad.scipy.sparse.linalg.operators import operator, plain
from gpugrad.scipy.sparse.linalg.systems import spsolve, system
from gpugrad.scipy.sparse.structure import dense, is_number


def _as_scipy(formula: Any) -> Any:
    """The function with the signature of SciPy's of that name."""
    return with_signature(formula, scipys, lambda bound: formula(**bound.arguments))


@_as_scipy
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


@_as_scipy
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


@_as_scipy
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


@_as_scipy
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


def onenormest(
    A: Any, t: int = 2, itmax: int = 5, compute_v: bool = False, compute_w: bool = False
) -> Any:
    """A lower bound of the 1-norm of a sparse array or an operator, as SciPy's.

    It is the 1-norm of ``A @ v`` for a vector v of norm 1 that SciPy finds, and is differentiable
    as that.

    >>> print(gg.scipy.sparse.linalg.onenormest(gg.scipy.sparse.csr_array([[1.0, -3.0], [0, 2]])))
    5.0
    """
    a = operator(A)
    a = construct.sparse(A) if a is None else a
    on_host = a.on_host() if hasattr(a, "pattern") else plain(a)
    v = asarray(scipys.onenormest(on_host, t, itmax, compute_v=True)[1])
    w = a @ v
    results = xp.sum(xp.abs(w)), *((v,) if compute_v else ()), *((w,) if compute_w else ())
    return results if len(results) > 1 else results[0]


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


@_as_scipy
def expm_multiply(
    A: Any, B: Any, start: Any, stop: Any, num: Any, endpoint: Any, traceA: Any
) -> Any:
    """exp(A) @ B without the exponential, by Taylor polynomials; differentiable by A and B.

    The number of steps follows from the 1-norm of A, or an estimate for an operator, which is read.

    Args:
        A: square sparse array of shape (n, n), or a LinearOperator of Tensors.
        B: array of shape (n,) or (n, k).
        start, stop, num, endpoint: as of `numpy.linspace`: times t, for exp(t A) @ B of each.
        traceA: without effect.

    Returns:
        Tensor of the shape of B, with an axis for the times in front if `start` is given.

    >>> a = gg.scipy.sparse.csr_array([[0.0, 1.0], [0.0, 0.0]])
    >>> print(gg.scipy.sparse.linalg.expm_multiply(a, [1.0, 2.0]))
    [3. 2.]
    """
    a = operator(A)
    a, b = system("expm_multiply", A, B) if a is None else (a, dense(B, B))
    if not hasattr(a, "pattern"):
        size = xp.stop_gradient(onenormest(a)).numpy()
    else:
        size = xp.stop_gradient(norm(a, 1)).numpy() if a.nnz else 0.0
    if all(x is None for x in (start, stop, num, endpoint)):
        return _exponential_times(a, b, 1.0, float(size))
    given = {"start": start, "stop": stop, "num": num, "endpoint": endpoint}
    times = np.linspace(**{k: v for k, v in given.items() if v is not None})
    results = []
    for step in np.diff(times, prepend=0.0):
        b = _exponential_times(a, b, float(step), float(size)) if step else b
        results.append(b)
    return xp.stack(results)


def _exponential_times(a: Any, b: Tensor, t: float, size: float) -> Tensor:
    """exp(t a) @ b, for an `a` of the norm `size`."""
    steps = max(1, math.ceil(abs(t) * size))  # a norm of at most 1 in each
    eps = float(np.finfo(np.result_type(a.dtype, b.dtype, np.float32)).eps)
    degree = next(m for m in range(1, 60) if 1 / math.factorial(m + 1) < eps / 4)
    for _ in range(steps):
        term = total = b
        for k in range(1, degree + 1):
            term = (a @ term) * (t / (k * steps))
            total = total + term
        b = total
    return b


def funm_multiply_krylov(f: Any, A: Any, b: Any, **options: Any) -> Tensor:
    """f(t A) @ b by SciPy's Krylov method, without a derivative: it raises under a tape.

    Args:
        f: function of an array of shape (m, m), such as `scipy.linalg.expm`.
        A: square sparse array of shape (n, n), or a LinearOperator.
        b: array of shape (n,).
        options: SciPy's.

    >>> a = gg.scipy.sparse.csr_array([[0.0, 1.0], [2.0, 0.0]])
    >>> print(gg.scipy.sparse.linalg.funm_multiply_krylov(lambda x: x @ x, a, np.ones(2)))
    [2. 2.]
    """
    rhs = dense(b, A if hasattr(A, "pattern") else b)
    what = "an argument of funm_multiply_krylov, which has no derivative"
    if hasattr(A, "pattern"):
        A.data._handed_out(what)
    of_values = lambda x: np.asarray(f(x))  # noqa: E731
    matrix = plain(A, cuts=False)
    found = scipys.funm_multiply_krylov(of_values, matrix, rhs._handed_out(what), **options)
    return asarray(found)


funm_multiply_krylov.passes_through = True  # type: ignore[attr-defined]  # ci/scipy_page asks


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
