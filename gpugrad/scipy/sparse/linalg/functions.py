"""Norms, powers and exponentials of sparse arrays, and their products with vectors."""

from __future__ import annotations

import math
from operator import index as operator_index
from typing import Any

import numpy as np
import scipy.sparse.linalg as scipys

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.sparse import construct
from gpugrad.scipy.sparse.linalg.operators import operator, plain
from gpugrad.scipy.sparse.linalg.spectral import as_scipy, svds
from gpugrad.scipy.sparse.linalg.systems import system
from gpugrad.scipy.sparse.structure import dense, is_number


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


@as_scipy
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
