"""Functions of `gpugrad.linalg` with SciPy's arguments, defaults and results."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad import linalg as ours
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.calling import known

_TRIANGLES = {"upper triangular": False, "lower triangular": True}
_MIRRORED = ("symmetric", "sym", "hermitian", "her", "positive definite", "pos")
_GENERAL = (None, "general", "gen", "diagonal", "tridiagonal", "banded")


def of_triangle(name: str, a: Any, assume_a: str | None, lower: bool) -> Any:
    """The matrix of which SciPy reads the part that `assume_a` says."""
    a = asarray(a)
    if assume_a in _GENERAL:
        return a
    if assume_a in _TRIANGLES:
        return TENSOR.tril(a) if _TRIANGLES[assume_a] else TENSOR.triu(a)
    if assume_a not in _MIRRORED:
        raise ArgumentError(f"{name}: assume_a={assume_a!r} is not a structure that SciPy knows.")
    rest = TENSOR.tril(a, k=-1) if lower else TENSOR.triu(a, k=1)
    mirror: Any = TENSOR.matrix_transpose(rest)
    if not assume_a.startswith("sym"):
        mirror = TENSOR.conj(mirror)
    return a - (TENSOR.triu(a, k=1) if lower else TENSOR.tril(a, k=-1)) + mirror


def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The upper Cholesky factor, or the lower one; of that triangle of `a`."""
    return ours.cholesky(of_triangle("cholesky", a, "her", lower), upper=not lower)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant."""
    return ours.det(asarray(a))


def inv(
    a: Any,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Any:
    """The inverse of a matrix, of which one triangle is read if `assume_a` says so."""
    return ours.inv(of_triangle("inv", a, assume_a, lower))


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """The solution of ``a @ x == b``, or of the transposed matrix."""
    a = of_triangle("solve", a, assume_a, lower)
    return ours.solve(TENSOR.matrix_transpose(a) if transposed else a, asarray(b))


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """The solution with the upper or lower triangle of `a`; `trans` is 0, 1, 2 or N, T, C."""
    return ours.solve_triangular(asarray(a), asarray(b), trans, lower, unit_diagonal)


def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> tuple[Tensor, ...]:
    """The factors p, l and u; or ``p @ l`` and u; or row indices for p."""
    factors = ours.lu(asarray(a), permute_l)
    if permute_l or not p_indices:
        return factors
    return TENSOR.argmax(factors[0], axis=-1), *factors[1:]


def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """The factors q and r, whole or (``"economic"``) reduced; r alone for ``"r"``."""
    modes = {"full": "complete", "r": "complete", "economic": "reduced"}
    if mode not in modes or pivoting:
        raise ArgumentError(
            f"qr: mode={mode!r} must be 'full', 'r' or 'economic', and pivoting is not supported."
        )
    result = ours.qr(asarray(a), mode=modes[mode])
    return (result[1],) if mode == "r" else tuple(result)


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """u, s and vh, or the singular values alone."""
    if not compute_uv:
        return ours.svdvals(asarray(a))
    return tuple(ours.svd(asarray(a), full_matrices=full_matrices))


def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The singular values."""
    return ours.svdvals(asarray(a))


def pinv(
    a: Any,
    *,
    atol: Any = None,
    rtol: Any = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudoinverse; singular values up to ``atol + rtol * max(s)`` count as 0."""
    a = asarray(a)
    if rtol is None:
        rtol = max(a.shape[-2:]) * np.finfo(np.result_type(a.dtype, np.float32)).eps
    if atol is not None:
        rtol = rtol + atol / TENSOR.stop_gradient(TENSOR.max(ours.svdvals(a), axis=-1))
    inverse: Any = ours.pinv(a, rtol)
    return (inverse, ours.matrix_rank(a, rtol)) if return_rank else inverse


def lstsq(
    a: Any,
    b: Any,
    cond: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: Any = None,
) -> Any:
    """x, residuals, rank and singular values, as `gpugrad.linalg.lstsq`.

    As SciPy's, there are no residuals if the rows determine no more than x; a trace, which does not
    know the rank, computes them.
    """
    a = asarray(a)
    x, residuals, rank, s = ours.lstsq(a, asarray(b), rcond=cond)
    rows, columns = a.shape[-2:]
    if rows <= columns or known(lambda: TENSOR.any(rank < columns)):
        residuals = TENSOR.getitem(TENSOR.reshape(residuals, (-1,)), index=slice(0))
    return x, residuals, rank, s


def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: Any = False, check_finite: bool = True
) -> Any:
    """A norm of vectors or matrices."""
    return ours.norm(asarray(a), ord, axis, keepdims=keepdims)


def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        a: its triangle is read that `lower` says.
        b: positive definite, for ``a @ v == w * b @ v`` (type 1), ``a @ b @ v == w * v`` (2) or
            ``b @ a @ v == w * v`` (3).
        subset_by_index: the first and the last eigenvalue wanted.

    Raises:
        ArgumentError: `subset_by_value`, whose length depends on the values; another `type`.
    """
    if subset_by_value is not None or type not in (1, 2, 3):
        raise ArgumentError(
            "eigh: pass type= 1, 2 or 3, and no subset_by_value=: select by a mask."
        )
    a = of_triangle("eigh", a, "her", lower)
    back = None
    if b is not None:  # factors turn it into an ordinary problem
        factor: Any = ours.cholesky(of_triangle("eigh", b, "her", lower))
        adjoint = TENSOR.conj(TENSOR.matrix_transpose(factor))
        inverse: Any = ours.inv(factor)
        inverse_adjoint = TENSOR.conj(TENSOR.matrix_transpose(inverse))
        a = inverse @ a @ inverse_adjoint if type == 1 else adjoint @ a @ factor
        back = factor if type == 3 else inverse_adjoint
    part = slice(None) if subset_by_index is None else slice(*np.add(subset_by_index, (0, 1)))
    if eigvals_only:
        return ours.eigvalsh(a)[..., part]
    w, v = ours.eigh(a)
    return w[..., part], (v if back is None else back @ v)[..., part]


def eigvalsh(a: Any, b: Any = None, **keywords: Any) -> Any:
    """Eigenvalues of Hermitian matrices, with the arguments of `eigh`."""
    return eigh(a, b, eigvals_only=True, **keywords)


def eig(
    a: Any,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues of general matrices, and the left and right eigenvectors that are asked for.

    Args:
        a: square matrices.
        b: invertible, for ``a @ v == w * b @ v``.

    Raises:
        ArgumentError: homogeneous eigenvalues, or left vectors of a generalized problem.
    """
    if homogeneous_eigvals or (left and b is not None):
        raise ArgumentError("eig: no homogeneous_eigvals=, and with b= no left=.")
    a = asarray(a) if b is None else ours.solve(asarray(b), asarray(a))
    if not (left or right):
        return ours.eigvals(a)
    w, v = ours.eig(a)
    if not left:
        return w, v
    rows: Any = TENSOR.conj(TENSOR.matrix_transpose(ours.inv(v)))
    vectors = rows / TENSOR.sqrt(TENSOR.sum(TENSOR.abs(rows) ** 2, axis=-2, keepdims=True))
    return (w, vectors, v) if right else (w, vectors)


def eigvals(
    a: Any,
    b: Any = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues of general matrices, with `b` and errors as of `eig`."""
    return eig(a, b, right=False, homogeneous_eigvals=homogeneous_eigvals)
