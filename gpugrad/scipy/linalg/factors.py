"""Triangular factors, their updates, and forms of eigenvalues, of other ops.

``overwrite_a=`` and names of LAPACK drivers have no effect. Where SciPy's choice
of a sign, a pivot or a rank depends on the values, these are read on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from gpugrad import linalg as ours
from gpugrad.core.backend import TENSOR as xp
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.linalg.forms import of_triangle
from gpugrad.scipy.linalg.turned import adjoint, square, values


def matrix(name: str, a: Any) -> Any:
    """One matrix of floats; ShapeError for others."""
    a = asarray(a)
    if a.ndim != 2:
        raise ShapeError(f"{name}: one matrix is needed, the shape is {a.shape}.")
    return a if a.dtype.kind in "fc" else xp.astype(a, "float64")


@saying_where
def ldl(
    A: Any,
    lower: bool = True,
    hermitian: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Any, Any, Any]:
    """The factors L, D of a Hermitian or symmetric matrix, ``A == L @ D @ L^H``.

    Args:
        A: array of shape (n, n), whose values are read on the host for the pivots.
        lower: whether L is lower triangular, and the lower triangle of `A` is read.
        hermitian: whether `A` is Hermitian, not symmetric.

    Returns:
        L with its rows exchanged, the block diagonal D, and the order of rows that makes L
        triangular. Derivatives are those of fixed pivots.

    Raises:
        ShapeError: the matrix is not square.

    >>> l, d, order = gg.scipy.linalg.ldl([[4.0, 2.0], [2.0, 3.0]])
    >>> print(d)
    [[4. 0.]
     [0. 2.]]
    """
    A = square("ldl", A)
    A = of_triangle("ldl", A, "her" if hermitian else "sym", lower)
    _, d0, order = scipy.linalg.ldl(values(A), lower, hermitian)
    n = len(order)
    turn = adjoint if hermitian else xp.matrix_transpose
    steps = order if lower else order[::-1]
    rest, d0 = A[steps][:, steps], d0 if lower else d0[::-1, ::-1]
    columns, blocks, k = [], [], 0
    while k < n:
        size = 2 if k + 1 < n and (d0[k + 1, k] != 0 or d0[k, k + 1] != 0) else 1
        block, column = rest[:size, :size], rest[:, :size]
        sides = (xp.matrix_transpose(block), xp.matrix_transpose(column))
        part = xp.matrix_transpose(xp.solve(*sides))
        columns.append(xp.pad(part, ((k, 0), (0, 0))))
        blocks.append(block)
        rest = (rest - part @ block @ turn(part))[size:, size:]
        k += size
    low, d = xp.concat(columns, axis=1), ours.block_diag(*blocks)
    if not lower:
        low, d = xp.flip(low, axis=(0, 1)), xp.flip(d, axis=(0, 1))
    inverse = np.empty_like(order)
    inverse[order] = np.arange(n)
    return low[inverse], d, asarray(order)


# ---- QR and its relatives -------------------------------------------------------------------


@saying_where
def rq(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    check_finite: bool = True,
) -> Any:
    """The factors of ``a == r @ q``: r is upper triangular, and q has orthonormal rows.

    Args:
        a: array of shape (m, n), whose values are read on the host.
        mode: ``"full"``, ``"economic"``, or ``"r"`` for r alone.

    Returns:
        r and q, or r.

    Raises:
        ArgumentError: another `mode`.

    >>> r, q = gg.scipy.linalg.rq([[0.0, 2.0], [3.0, 0.0]])
    >>> print(gg.abs(r))
    [[2. 0.]
     [0. 3.]]
    """
    if mode not in ("full", "r", "economic"):
        raise ArgumentError(f"rq: mode={mode!r} must be 'full', 'r' or 'economic'.")
    a = matrix("rq", a)
    turned = xp.flip(adjoint(a), axis=-1)
    q, r = ours.qr(turned, mode="reduced" if mode == "economic" else "complete")
    r, q = xp.flip(adjoint(r), axis=(-2, -1)), xp.flip(adjoint(q), axis=-2)
    if q.size:  # SciPy's signs
        theirs = scipy.linalg.rq(values(a), mode="full" if mode == "r" else mode)[1]
        turn = _like((theirs @ values(adjoint(q)))[::-1, ::-1], min(a.shape))[::-1, ::-1]
        r, q = xp.triu(r @ turn.conj().T, k=r.shape[-1] - a.shape[-2]), turn @ q
    return r if mode == "r" else (r, q)


@saying_where
def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:
    """The product of q of ``a == q @ r`` with a matrix, and r.

    Args:
        a: array of shape (m, n).
        c: array of shape (..., m) or, for ``"left"``, (min(m, n), ...).
        mode: ``"right"`` for ``c @ q``, ``"left"`` for ``q @ c``.
        conjugate: whether to take the conjugate of q.

    Returns:
        The product, and r.

    Raises:
        ArgumentError: another `mode`, or `pivoting`.

    >>> cq, r = gg.scipy.linalg.qr_multiply([[2.0, 0.0], [0.0, 3.0]], [1.0, 2.0])
    >>> print(gg.abs(cq))
    [1. 2.]
    """
    if mode not in ("left", "right") or pivoting:
        raise ArgumentError(
            f"qr_multiply: mode={mode!r} must be 'left' or 'right', and pivoting is not supported."
        )
    q, r = ours.qr(asarray(a), mode="reduced")
    q, c = xp.conj(q) if conjugate else q, asarray(c)
    return (c @ q if mode == "right" else q @ c), r


def _like(product: Any, k: int) -> Any:
    """The signs of `k` columns, and the rotation of those beyond, from q^H times SciPy's q."""
    turn = np.zeros_like(product)
    signs = np.diagonal(product)[:k]
    turn[range(k), range(k)] = signs / np.abs(signs)
    u, _, vh = np.linalg.svd(product[k:, k:])
    turn[k:, k:] = u @ vh
    return turn


def _updated(a: Any, like: tuple[Any, Any]) -> tuple[Any, Any]:
    """The QR factors of a matrix, with the signs and sizes of SciPy's."""
    q0, _ = like
    q, r = ours.qr(a, mode="complete" if q0.shape[0] == q0.shape[1] else "reduced")
    turn = _like(values(q).conj().T @ q0, min(a.shape))
    return q @ turn, xp.triu(turn.conj().T @ r)


def _factors(name: str, Q: Any, R: Any, *others: Any) -> tuple[Any, ...]:
    return tuple(matrix(name, x) for x in (Q, R)) + tuple(asarray(x) for x in others)


@saying_where
def qr_insert(
    Q: Any,
    R: Any,
    u: Any,
    k: int,
    which: str = "row",
    rcond: Any = None,
    overwrite_qru: bool = False,
    check_finite: bool = True,
) -> tuple[Any, Any]:
    """The QR factors of ``Q @ R`` with rows or columns inserted.

    Args:
        Q: array of shape (m, m) or (m, n).
        R: array of shape (m, n) or (n, n).
        u: row or rows (p, n), or column or columns (m, p), to insert.
        k: int, where.
        which: ``"row"`` or ``"col"``.
        rcond: as in SciPy.

    Returns:
        The factors q and r. Derivatives are those of the QR factors of the new matrix.

    Raises:
        ValueError: as in SciPy.

    >>> q, r = gg.scipy.linalg.qr_insert(np.eye(2), np.eye(2), [0.0, 1.0], 2)
    >>> print((q @ r)[2])
    [0. 1.]
    """
    Q, R, u = _factors("qr_insert", Q, R, u)
    like = scipy.linalg.qr_insert(values(Q), values(R), values(u), k, which, rcond)
    a, axis = Q @ R, 0 if which == "row" else 1
    if u.ndim == 1:
        u = xp.expand_dims(u, axis=axis)
    k = k + a.shape[axis] if k < 0 else k
    first, last = (a[:k], a[k:]) if axis == 0 else (a[:, :k], a[:, k:])
    return _updated(xp.concat([first, u, last], axis=axis), like)


@saying_where
def qr_delete(
    Q: Any,
    R: Any,
    k: int,
    p: int = 1,
    which: str = "row",
    overwrite_qr: bool = False,
    check_finite: bool = True,
) -> tuple[Any, Any]:
    """The QR factors of ``Q @ R`` without `p` rows or columns from the `k`-th on.

    Args:
        Q: array of shape (m, m) or (m, n).
        R: array of shape (m, n) or (n, n).
        k: int, the first one.
        p: int, how many.
        which: ``"row"`` or ``"col"``.

    Returns:
        The factors q and r. Derivatives are those of the QR factors of the new matrix.

    Raises:
        ValueError: as in SciPy.

    >>> q, r = gg.scipy.linalg.qr_delete(np.eye(3), np.eye(3), 0, which="col")
    >>> print(q @ r)
    [[0. 0.]
     [1. 0.]
     [0. 1.]]
    """
    Q, R = _factors("qr_delete", Q, R)
    like = scipy.linalg.qr_delete(values(Q), values(R), k, p, which)
    a, axis = Q @ R, 0 if which == "row" else 1
    n = a.shape[axis]
    keep = np.delete(np.arange(n), np.arange(k % n, k % n + p))
    return _updated(a[keep] if axis == 0 else a[:, keep], like)


@saying_where
def qr_update(
    Q: Any, R: Any, u: Any, v: Any, overwrite_qruv: bool = False, check_finite: bool = True
) -> tuple[Any, Any]:
    """The QR factors of ``Q @ R + u @ v^H``.

    Args:
        Q: array of shape (m, m) or (m, n).
        R: array of shape (m, n) or (n, n).
        u: array of shape (m,) or (m, k).
        v: array of shape (n,) or (n, k).

    Returns:
        The factors q and r. Derivatives are those of the QR factors of the new matrix.

    Raises:
        ValueError: as in SciPy.

    >>> q, r = gg.scipy.linalg.qr_update(np.eye(2), np.eye(2), [1.0, 0.0], [1.0, 0.0])
    >>> print(q @ r)
    [[2. 0.]
     [0. 1.]]
    """
    Q, R, u, v = _factors("qr_update", Q, R, u, v)
    like = scipy.linalg.qr_update(values(Q), values(R), values(u), values(v))
    left, right = (x[:, None] if x.ndim == 1 else x for x in (u, v))
    return _updated(Q @ R + left @ adjoint(right), like)


# ---- forms of eigenvalues -------------------------------------------------------------------


@saying_where
def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The complex Schur form from the real one.

    Args:
        T: array of shape (n, n), whose values are read on the host.
        Z: array of shape (n, n).

    Returns:
        The triangular matrix and the unitary one.

    Raises:
        ShapeError: the matrices are not square.

    >>> t, z = gg.scipy.linalg.rsf2csf([[1.0, 2.0], [-2.0, 1.0]], np.eye(2))
    >>> print(gg.diagonal(t))
    [1.+2.j 1.-2.j]
    """
    T, Z = square("rsf2csf", T), square("rsf2csf", Z)
    kind = np.result_type(T.dtype, Z.dtype, np.complex64)
    T, Z = xp.astype(T, kind), xp.astype(Z, kind)
    n = T.shape[-1]
    eps = np.finfo(kind).eps
    for m in range(n - 1, 0, -1):
        known = values(T)
        if abs(known[m, m - 1]) > eps * (abs(known[m - 1, m - 1]) + abs(known[m, m])):
            block = T[m - 1 : m + 1, m - 1 : m + 1]
            middle = 0.5 * (block[0, 0] + block[1, 1])
            half = 0.5 * (block[0, 0] - block[1, 1])
            root = xp.sqrt(half * half + block[0, 1] * block[1, 0])
            first = np.linalg.eigvals(values(block))[0]
            far = [abs(values(middle + sign * root) - first) for sign in (1, -1)]
            sign = 1 if far[0] <= far[1] else -1
            mu = middle + sign * root - T[m, m]
            size = xp.sqrt(xp.abs(mu) ** 2 + xp.abs(T[m, m - 1]) ** 2)
            c, s = mu / size, T[m, m - 1] / size
            turn = xp.stack([xp.stack([xp.conj(c), s]), xp.stack([-s, c])])
            whole = ours.block_diag(np.eye(m - 1, dtype=kind), turn, np.eye(n - m - 1, dtype=kind))
            T = whole @ T @ adjoint(whole)
            Z = Z @ adjoint(whole)
        mask = np.ones((n, n), bool)
        mask[m, m - 1] = False
        T = xp.where(mask, T, 0)
    return T, Z


@saying_where
def cdf2rdf(w: Any, v: Any) -> tuple[Any, Any]:
    """Real block diagonal form of complex eigenvalues and eigenvectors in conjugate pairs.

    Args:
        w: array of shape (..., n), whose values are read on the host.
        v: array of shape (..., n, n).

    Returns:
        The real block diagonal matrices, and the real matrices of vectors.

    Raises:
        ShapeError: the shapes do not match.
        ArgumentError: the complex eigenvalues are not in pairs.

    >>> wr, vr = gg.scipy.linalg.cdf2rdf([1 + 2j, 1 - 2j], [[1.0, 1.0], [1j, -1j]])
    >>> print(wr)
    [[ 1.  2.]
     [-2.  1.]]
    """
    w, v = asarray(w), asarray(v)
    n = w.shape[-1] if w.ndim else 0
    if w.ndim < 1 or v.shape != (*w.shape, n):
        raise ShapeError(f"cdf2rdf: w {w.shape} and v {v.shape} are not (..., n) and (..., n, n).")
    pairs = np.iscomplex(values(w))
    if (pairs.sum(axis=-1) % 2).any():
        raise ArgumentError("cdf2rdf: the complex eigenvalues must be in conjugate pairs.")
    *stack, place = np.nonzero(pairs)
    rows, j, k = tuple(i[::2] for i in stack), place[::2], place[1::2]
    first, second = np.zeros((*w.shape, n)), np.zeros((*w.shape, n))
    first[(*rows, j, k)] = 1
    second[(*rows, k, j)] = 1
    side = xp.imag(w) if w.dtype.kind == "c" else 0 * w
    diagonal = xp.real(w)[..., None] * np.eye(n)
    wr = diagonal + first * side[..., :, None] + second * side[..., :, None]
    u = np.zeros((*w.shape, n), complex)
    u[..., range(n), range(n)] = 1
    u[(*rows, j, j)], u[(*rows, j, k)] = 0.5j, 0.5
    u[(*rows, k, j)], u[(*rows, k, k)] = -0.5j, 0.5
    return wr, xp.real(v @ u)
