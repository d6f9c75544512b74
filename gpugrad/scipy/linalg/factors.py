"""Bases, factors and their updates, of other ops.

``check_finite=``, ``overwrite_a=`` and names of LAPACK drivers have no effect. Where SciPy's choice
of a sign, a pivot or a rank depends on the values, these are read on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad import linalg as ours
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.numpy.creation import asarray
from gpugrad.ops.linalg.common import need_square
from gpugrad.scipy.linalg.turned import adjoint, values


def _matrix(name: str, a: Any) -> Any:
    a = asarray(a)
    if a.ndim != 2:
        raise ShapeError(f"{name}: one matrix is needed, the shape is {a.shape}.")
    return a if a.dtype.kind in "fc" else xp.astype(a, "float64")


def _rank(a: Any, rcond: Any) -> int:
    s = np.linalg.svd(values(a), compute_uv=False)
    if rcond is None:
        rcond = np.finfo(s.dtype).eps * max(a.shape)
    return int(np.sum(s > np.amax(s, initial=0.0) * rcond))


@saying_where
def orth(A: Any, rcond: Any = None) -> Tensor:
    """An orthonormal basis of the range of a matrix: left singular vectors.

    Args:
        A: array of shape (m, n).
        rcond: singular values up to `rcond` times the largest count as 0.

    Returns:
        Tensor of shape (m, rank).

    Raises:
        ShapeError: `A` is not one matrix.

    >>> print(gg.abs(gg.scipy.linalg.orth([[2.0, 0.0], [0.0, 0.0]])))
    [[1.]
     [0.]]
    """
    A = _matrix("orth", A)
    u: Any = ours.svd(A, full_matrices=False)[0]
    return u[:, : _rank(A, rcond)]


@saying_where
def null_space(
    A: Any,
    rcond: Any = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Tensor:
    """An orthonormal basis of the null space of a matrix.

    Args:
        A: array of shape (m, n).
        rcond: singular values up to `rcond` times the largest count as 0.

    Returns:
        Tensor of shape (n, n - rank). Its derivative moves the basis by as little as the space
        moves: it does not turn within the space.

    Raises:
        ShapeError: `A` is not one matrix.

    >>> print(gg.abs(gg.scipy.linalg.null_space([[2.0, 0.0]])))
    [[0.]
     [1.]]
    """
    import scipy.linalg

    A = _matrix("null_space", A)
    basis = asarray(scipy.linalg.null_space(values(A), rcond))
    if not basis.size:
        return basis
    inverse: Any = ours.pinv(A, np.finfo(A.dtype).eps * max(A.shape) if rcond is None else rcond)
    moved: Tensor = ours.polar(basis - inverse @ (A @ basis))[0]
    return moved


@saying_where
def subspace_angles(A: Any, B: Any) -> Tensor:
    """Angles between the ranges of two matrices, the largest first.

    A. Knyazev, M. Argentati, SIAM J. Sci. Comput. 23 (2002) 2009.

    Args:
        A: array of shape (m, n).
        B: array of shape (m, k).

    Returns:
        Tensor of shape (min(n, k),), if the matrices have full rank.

    Raises:
        ShapeError: the numbers of rows differ.

    >>> print(gg.scipy.linalg.subspace_angles([[1.0], [0.0]], [[1.0], [1.0]]).numpy().round(4))
    [0.7854]
    """
    A, B = _matrix("subspace_angles", A), _matrix("subspace_angles", B)
    if len(A) != len(B):
        raise ShapeError(f"subspace_angles: A {A.shape} and B {B.shape} must have the same rows.")
    a, b = orth(A), orth(B)
    product = adjoint(a) @ b
    sigma: Any = ours.svdvals(product)
    rest = b - a @ product if a.shape[1] >= b.shape[1] else a - b @ adjoint(product)
    small = xp.square(sigma) >= 0.5
    sine = xp.clip(ours.svdvals(rest), -1.0, 1.0)
    cosine = xp.clip(xp.flip(sigma, axis=0), -1.0, 1.0)
    return xp.where(
        small, xp.asin(xp.where(small, sine, 0.0)), xp.acos(xp.where(small, 0.0, cosine))
    )


@saying_where
def diagsvd(s: Any, M: int, N: int) -> Tensor:
    """The diagonal matrix of singular values, of shape (M, N).

    Args:
        s: array of shape (k,), where k is `M` or `N`.
        M: int, the number of rows.
        N: int, the number of columns.

    Returns:
        Tensor of shape (M, N).

    Raises:
        ArgumentError: the length of `s` is neither `M` nor `N`.

    >>> print(gg.scipy.linalg.diagsvd([2.0], 1, 2))
    [[2. 0.]]
    """
    s = asarray(s)
    k = s.shape[0]
    if k not in (M, N) or k > min(M, N):
        raise ArgumentError(f"diagsvd: the length {k} of s must be M={M} or N={N}.")
    return xp.pad(xp.diag(s), ((0, M - k), (0, N - k)))


@saying_where
def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> tuple[Tensor, Tensor]:
    """The orthogonal matrix R for which ``A @ R`` is nearest to `B`, and its scale.

    Args:
        A: array of shape (m, n).
        B: array of shape (m, n).

    Returns:
        R of shape (n, n), and the sum of the singular values of ``A^H @ B``.

    Raises:
        ShapeError: the shapes differ.

    >>> r, scale = gg.scipy.linalg.orthogonal_procrustes([[2.0, 0.0], [0.0, 1.0]], np.eye(2))
    >>> print(scale)
    3.0
    """
    A, B = _matrix("orthogonal_procrustes", A), _matrix("orthogonal_procrustes", B)
    if A.shape != B.shape:
        raise ShapeError(f"orthogonal_procrustes: A {A.shape} and B {B.shape} differ.")
    product = adjoint(A) @ B
    return ours.polar(product)[0], xp.sum(ours.svdvals(product))


@saying_where
def matrix_balance(
    A: Any,
    permute: bool = True,
    scale: bool = True,
    separate: bool = False,
    overwrite_a: bool = False,
) -> tuple[Any, Any]:
    """A matrix similar to `A` whose rows and columns have norms of about the same size.

    Args:
        A: array of shape (n, n), whose values are read on the host.
        permute: whether to permute rows and columns.
        scale: whether to scale them by powers of 2.
        separate: whether to return the scales and the permutation as two vectors.

    Returns:
        The balanced matrix ``inv(T) @ A @ T``, and T, or the scales and the permutation; these
        are constants.

    Raises:
        ShapeError: the matrix is not square.

    >>> print(gg.scipy.linalg.matrix_balance([[1.0, 64.0], [1.0, 1.0]])[0])
    [[1. 8.]
     [8. 1.]]
    """
    import scipy.linalg

    A = _matrix("matrix_balance", A)
    need_square("matrix_balance", A)
    _, (scales, order) = scipy.linalg.matrix_balance(values(A), permute, scale, separate=1)
    balanced = A[order][:, order] * (scales / scales[:, None]).astype(A.dtype)
    if separate:
        return balanced, (asarray(scales), asarray(order))
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return balanced, asarray(np.diag(scales)[inverse, :])


@saying_where
def pinvh(
    a: Any,
    atol: Any = None,
    rtol: Any = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudoinverse of a Hermitian matrix, of which one triangle is read.

    Args:
        a: array of shape (n, n).
        atol: eigenvalues up to ``atol + rtol * max(abs(w))`` count as 0.
        rtol: as `atol`; None is n times the dtype's epsilon.
        lower: which triangle.
        return_rank: whether to return the rank too.

    Returns:
        Tensor of shape (n, n), and the rank if that is asked for.

    Raises:
        ShapeError: the matrix is not square.

    >>> print(gg.scipy.linalg.pinvh([[2.0, 0.0], [0.0, 0.0]]))
    [[0.5 0. ]
     [0.  0. ]]
    """
    from gpugrad.scipy.linalg import _matrix as of_triangle
    from gpugrad.scipy.linalg import pinv

    a = of_triangle("pinvh", _matrix("pinvh", a), "her", lower)
    return pinv(a, atol=atol, rtol=rtol, return_rank=return_rank)


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
    import scipy.linalg

    from gpugrad.scipy.linalg import _matrix as of_triangle

    A = _matrix("ldl", A)
    need_square("ldl", A)
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
    import scipy.linalg

    if mode not in ("full", "r", "economic"):
        raise ArgumentError(f"rq: mode={mode!r} must be 'full', 'r' or 'economic'.")
    a = _matrix("rq", a)
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
    return tuple(_matrix(name, x) for x in (Q, R)) + tuple(asarray(x) for x in others)


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
    import scipy.linalg

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
    import scipy.linalg

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
    import scipy.linalg

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
    T, Z = _matrix("rsf2csf", T), _matrix("rsf2csf", Z)
    need_square("rsf2csf", T)
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
