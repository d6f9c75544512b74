"""Schur, Hessenberg and generalized Schur forms: SciPy finds them, an equation differentiates them.

Each form is unitary matrices times the arguments, of which some elements are 0. Near the solution
the unitary matrices are q (1 + k / 2) / (1 - k / 2) with a skew k of as many numbers as there are
equations. `gg.implicit_diff` gives their derivatives, to any order, from one system of that many
equations: it takes memory for about n^4 / 4 numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg

from gpugrad.core.backend import TENSOR as xp
from gpugrad.errors import saying_where
from gpugrad.numpy.creation import asarray
from gpugrad.ops.linalg import common
from gpugrad.transforms.implicit import implicit_diff

_checks: Any = common


def values(a: Any) -> np.ndarray[Any, Any]:
    """The values of a Tensor on the host; errors under `vmap` and in traces name the way out."""
    return np.asarray(xp.stop_gradient(a).to_device("cpu"))


def adjoint(a: Any) -> Any:
    """The conjugate transpose."""
    return xp.conj(xp.matrix_transpose(a))


def _skew(z: Any, n: int, is_complex: bool, first: int) -> Any:
    """The skew-Hermitian matrix of the numbers `z`, whose first rows and columns are 0.

    More numbers than it has below its diagonal are the imaginary parts of the diagonal.
    """
    rows, columns = np.tril_indices(n - first, -1)
    pairs = len(rows)
    place = np.full((n, n), pairs)
    place[rows + first, columns + first] = np.arange(pairs)
    parts = xp.reshape(z[: pairs * (1 + is_complex)], (1 + is_complex, pairs))
    low = xp.getitem(xp.pad(parts, ((0, 0), (0, 1))), index=(slice(None), place))
    k = low[0] + 1j * low[1] if is_complex else low[0]
    k = k - adjoint(k)
    phases = z[pairs * (1 + is_complex) :]
    return k + xp.diag(1j * xp.pad(phases, ((first, 0),))) if phases.size else k


def _unitary(k: Any) -> Any:
    one = np.eye(k.shape[-1], dtype=k.dtype)
    return xp.solve(one - 0.5 * k, one + 0.5 * k)


def turned(
    start: Sequence[np.ndarray[Any, Any]],
    residual: Callable[..., Any],
    arrays: Sequence[Any],
    first: int = 0,
    phases: bool = False,
) -> list[Any]:
    """The unitary matrices near `start` for which a residual is 0, which it is at the start.

    Args:
        start: unitary matrices of shape (n, n).
        residual: function of the matrices and the arrays, which returns as many elements as the
            matrices have below their diagonals; with `phases` also as many real ones as on them.
        arrays: Tensors that the derivatives are by.
        first: the number of columns of the matrices that are fixed.
        phases: whether the phases of the columns are free, as the residual fixes them.
    """
    n, is_complex = start[0].shape[-1], start[0].dtype.kind == "c"
    size = (n - first) * (n - first - 1) // 2 * (1 + is_complex)
    size += (n - first) * (phases and is_complex)
    if not size:
        return [asarray(q) for q in start]
    real = start[0].real.dtype

    def matrices(z: Any) -> list[Any]:
        parts = xp.reshape(z, (len(start), size))
        return [q @ _unitary(_skew(parts[i], n, is_complex, first)) for i, q in enumerate(start)]

    def equation(z: Any, *arrays: Any) -> Any:
        value = residual(*matrices(z), *arrays)
        if phases and is_complex:
            value, fixed = value
            return xp.concat([xp.real(value), xp.imag(value), fixed], axis=0)
        parts = [xp.real(value), xp.imag(value)] if is_complex else [value]
        return xp.concat([part for part in parts if part.size], axis=0)

    @implicit_diff(equation)
    def solution(*arrays: Any) -> Any:
        return asarray(np.zeros(len(start) * size, real))

    return matrices(solution(*arrays))


def _blocks(t: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The first rows of the 2 x 2 blocks on the diagonal of a real Schur form."""
    return np.flatnonzero(np.diagonal(t, -1)) if t.dtype.kind == "f" else np.zeros(0, int)


def _below(n: int, blocks: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """The places below the diagonal and its blocks."""
    mask = np.tri(n, k=-1, dtype=bool)
    mask[blocks + 1, blocks] = False
    rows, columns = np.nonzero(mask)
    return rows, columns


def _triangle(t: Any, blocks: np.ndarray[Any, Any]) -> Any:
    """The upper triangle, with the diagonal's blocks."""
    mask = np.tri(t.shape[-1], dtype=bool).T
    mask[blocks + 1, blocks] = True
    return xp.where(mask, t, 0)


def square(name: str, a: Any) -> Any:
    """Square matrices of floats; ShapeError for others."""
    a = asarray(a)
    _checks.need_square(name, a)
    return a if a.dtype.kind in "fc" else xp.astype(a, "float64")


def _wide(a: Any) -> Any:
    return a if a.dtype.kind == "c" else xp.astype(a, np.result_type(a.dtype, np.complex64))


@saying_where
def schur(
    a: Any,
    output: str = "real",
    lwork: Any = None,
    overwrite_a: bool = False,
    sort: Any = None,
    check_finite: bool = True,
) -> Any:
    """Schur form of a matrix: ``a == z @ t @ z^H`` with a triangular t and a unitary z.

    Args:
        a: array of shape (n, n), whose values are read on the host.
        output: ``"real"``, where t has 2 x 2 blocks for pairs of complex eigenvalues, or
            ``"complex"``.
        sort: as in SciPy: the order of eigenvalues.

    Returns:
        t and z, and with `sort` the number of eigenvalues that it selects. Derivatives are of the
        form with standard blocks (LAPACK's), and of fixed phases of complex columns; they exist
        where eigenvalues are distinct.

    Raises:
        ShapeError: the matrix is not square.
        ValueError: as in SciPy.

    >>> t, z = gg.scipy.linalg.schur([[2.0, 1.0], [0.0, 3.0]])
    >>> print(t)
    [[2. 1.]
     [0. 3.]]
    """
    a = square("schur", a)
    if output in ("complex", "c"):
        a = _wide(a)
    t0, z0, *count = scipy.linalg.schur(values(a), output, sort=sort)
    blocks = _blocks(t0)
    below = _below(len(t0), blocks)

    def residual(z: Any, a: Any) -> Any:
        t = adjoint(z) @ a @ z
        equal = t[blocks, blocks] - t[blocks + 1, blocks + 1]
        return xp.concat([t[below], equal], axis=0)

    (z,) = turned([z0], residual, [a])
    return (_triangle(adjoint(z) @ a @ z, blocks), z, *count)


@saying_where
def hessenberg(
    a: Any, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Hessenberg form of a matrix: ``a == q @ h @ q^H``, h is 0 below its first subdiagonal.

    Args:
        a: array of shape (n, n), whose values are read on the host.
        calc_q: whether to return q too.

    Returns:
        h, or h and q.

    Raises:
        ShapeError: the matrix is not square.

    >>> print(gg.scipy.linalg.hessenberg([[1.0, 2.0], [3.0, 4.0]]))
    [[1. 2.]
     [3. 4.]]
    """
    a = square("hessenberg", a)
    n = a.shape[-1]
    _, q0 = scipy.linalg.hessenberg(values(a), calc_q=True)
    below = np.nonzero(np.tri(n, k=-2, dtype=bool))

    def residual(q: Any, a: Any) -> Any:
        h = adjoint(q) @ a @ q
        if a.dtype.kind != "c":
            return h[below]
        return h[below], xp.imag(xp.diagonal(h, -1, -2, -1))  # LAPACK makes these real

    q = asarray(q0.astype(a.dtype))
    if n > 2:
        (q,) = turned([q0], residual, [a], first=1, phases=True)
    h = xp.triu(adjoint(q) @ a @ q, k=-1)
    return (h, q) if calc_q else h


def _generalized(a: Any, b: Any, found: Any) -> tuple[Any, ...]:
    """The forms of a pair of matrices, from SciPy's."""
    aa0, _, q0, z0 = found
    blocks = _blocks(aa0)
    n = len(aa0)
    below, all_below = _below(n, blocks), np.nonzero(np.tri(n, k=-1, dtype=bool))

    def residual(q: Any, z: Any, a: Any, b: Any) -> Any:
        aa, bb = adjoint(q) @ a @ z, adjoint(q) @ b @ z
        return xp.concat([aa[below], bb[all_below], bb[blocks, blocks + 1]], axis=0)

    q, z = turned([q0, z0], residual, [a, b])
    aa, bb = _triangle(adjoint(q) @ a @ z, blocks), xp.triu(adjoint(q) @ b @ z)
    return aa, bb, q, z


@saying_where
def qz(
    A: Any,
    B: Any,
    output: str = "real",
    lwork: Any = None,
    sort: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """Generalized Schur form of two matrices: ``A == q @ aa @ z^H`` and ``B == q @ bb @ z^H``.

    Args:
        A: array of shape (n, n), whose values are read on the host.
        B: array of shape (n, n).
        output: ``"real"``, where aa has 2 x 2 blocks for pairs of complex eigenvalues, or
            ``"complex"``.

    Returns:
        aa, bb, q and z. Derivatives are of the form with standard blocks (LAPACK's), and of fixed
        phases of complex columns.

    Raises:
        ShapeError: a matrix is not square.
        ValueError: as in SciPy.

    >>> aa, bb, q, z = gg.scipy.linalg.qz([[2.0, 1.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> print(gg.diagonal(aa))
    [2. 3.]
    """
    A, B = square("qz", A), square("qz", B)
    if output in ("complex", "c"):
        A, B = _wide(A), _wide(B)
    return _generalized(A, B, scipy.linalg.qz(values(A), values(B), output, sort=sort))


def _ratios(aa: Any, bb: Any, alpha: Any, beta: Any) -> tuple[Any, Any]:
    """LAPACK's numerators and denominators of eigenvalues, with derivatives.

    The denominators of complex pairs are constants: LAPACK scales them.
    """
    blocks = _blocks(values(aa))
    numerators, denominators = xp.diagonal(aa, 0, -2, -1), xp.diagonal(bb, 0, -2, -1)
    if not len(blocks):
        return _wide(numerators), denominators
    i, j = blocks, blocks + 1
    p, q = aa[i, i] / bb[i, i], aa[j, j] / bb[j, j]
    side = aa[i, j] * aa[j, i] / (bb[i, i] * bb[j, j])
    middle, root = 0.5 * (p + q), xp.sqrt(-(0.25 * (p - q) ** 2 + side))
    pair = np.zeros(len(alpha), bool)
    pair[i] = pair[j] = True
    place = np.zeros(len(alpha), int)
    place[i] = place[j] = np.arange(len(blocks))
    sign = np.sign(alpha.imag * beta)
    eigenvalues = middle[place] + 1j * sign * root[place]
    return xp.where(pair, eigenvalues * beta, numerators), xp.where(pair, beta, denominators)


@saying_where
def ordqz(
    A: Any,
    B: Any,
    sort: Any = "lhp",
    output: str = "real",
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """Generalized Schur form of two matrices with sorted eigenvalues.

    Args:
        A: array of shape (n, n), whose values are read on the host.
        B: array of shape (n, n).
        sort: as in SciPy: ``"lhp"``, ``"rhp"``, ``"iuc"``, ``"ouc"``, or a function of two arrays
            that says which eigenvalues come first.
        output: ``"real"`` or ``"complex"``.

    Returns:
        aa, bb, alpha, beta, q and z: the results of `qz`, and the eigenvalues alpha / beta.

    Raises:
        ShapeError: a matrix is not square.
        ValueError: as in SciPy.

    >>> aa, *_ = gg.scipy.linalg.ordqz([[2.0, 1.0], [0.0, -3.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> print(gg.abs(gg.diagonal(aa)).numpy().round(6))
    [3. 2.]
    """
    A, B = square("ordqz", A), square("ordqz", B)
    if output in ("complex", "c"):
        A, B = _wide(A), _wide(B)
    aa0, bb0, alpha, beta, q0, z0 = scipy.linalg.ordqz(values(A), values(B), sort, output)
    aa, bb, q, z = _generalized(A, B, (aa0, bb0, q0, z0))
    return aa, bb, *_ratios(aa, bb, alpha, beta), q, z
