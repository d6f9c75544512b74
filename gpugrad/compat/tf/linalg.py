"""tf.linalg: TensorFlow's names, parameters and orders of results."""

from __future__ import annotations

import types
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.arrays import eye
from gpugrad.compat.tf.convert import axes, op, table, tensor, together
from gpugrad.core.tensor import Tensor

_OPS = table(
    """cholesky=linalg.cholesky det=linalg.det eigvals=linalg.eigvals eigvalsh=linalg.eigvalsh
    expm=linalg.expm logm=linalg.logm matrix_transpose sqrtm=linalg.sqrtm trace=linalg.trace""",
    "input",
) | {"cross": op(gg.linalg.cross, "a", "b")}

einsum = gg.einsum


def tensordot(a, b, axes, name=None) -> Tensor:
    """The sum of products over axes: a number of them, or lists for each operand."""
    axes = axes.numpy().tolist() if isinstance(axes, Tensor) else axes
    return gg.tensordot(*together(a, b), axes=axes)


def adjoint(matrix, name=None) -> Tensor:
    """The conjugate transpose of matrices."""
    return gg.conj(gg.matrix_transpose(tensor(matrix)))


def matmul(
    a,
    b,
    transpose_a=False,
    transpose_b=False,
    adjoint_a=False,
    adjoint_b=False,
    *others,
    name=None,
    **sparse,
) -> Tensor:
    """The product of matrices, each transposed first if asked."""
    a, b = together(a, b)
    a = adjoint(a) if adjoint_a else gg.matrix_transpose(a) if transpose_a else a
    b = adjoint(b) if adjoint_b else gg.matrix_transpose(b) if transpose_b else b
    return gg.matmul(a, b)


def matvec(a, b, transpose_a=False, adjoint_a=False, name=None, **sparse) -> Tensor:
    """The product of matrices and vectors."""
    a, b = together(a, b)
    return matmul(a, gg.expand_dims(b, axis=-1), transpose_a, False, adjoint_a)[..., 0]


def diag(diagonal, name=None, k=0, num_rows=-1, num_cols=-1, padding_value=0, align="") -> Tensor:
    """Matrices with a diagonal; other elements are 0."""
    return gg.diag_embed(tensor(diagonal), offset=int(k))


def diag_part(input, name=None, k=0, padding_value=0, align="") -> Tensor:
    """The diagonals of matrices."""
    return gg.linalg.diagonal(tensor(input), offset=int(k))


def set_diag(input, diagonal, name=None, k=0, align="") -> Tensor:
    """Matrices with another diagonal."""
    x, diagonal = together(input, diagonal)
    on = gg.eye(x.shape[-2], x.shape[-1], k=int(k), dtype="bool")
    rows = gg.zeros_like(x)
    n = diagonal.shape[-1]
    i, j = gg.arange(n) + max(-int(k), 0), gg.arange(n) + max(int(k), 0)
    return gg.where(on, gg.index_put(rows, diagonal, index=(..., i, j)), x)


def band_part(input, num_lower, num_upper, name=None) -> Tensor:
    """Matrices without what is below and above a band; -1 keeps all of a side."""
    x, below, above = tensor(input), int(num_lower), int(num_upper)
    x = x if below < 0 else gg.triu(x, k=-below)
    return x if above < 0 else gg.tril(x, k=above)


def tensor_diag(diagonal, name=None) -> Tensor:
    """A tensor of twice the axes with `diagonal` where both halves of an index are equal."""
    x = tensor(diagonal)
    return gg.reshape(gg.diag(gg.ravel(x)), (*x.shape, *x.shape))


def tensor_diag_part(input, name=None) -> Tensor:
    """The inverse of `tensor_diag`: elements where both halves of an index are equal."""
    x = tensor(input)
    half = x.shape[: x.ndim // 2]
    n = int(gg.prod(gg.asarray(half)))
    return gg.reshape(gg.linalg.diagonal(gg.reshape(x, (n, n))), half)


def inv(input, adjoint=False, name=None) -> Tensor:
    """Inverse matrices."""
    return gg.linalg.inv(_adjoint(input, adjoint))


def _adjoint(matrix, yes: bool) -> Tensor:
    return adjoint(matrix) if yes else tensor(matrix)


_conjugate_transpose = adjoint


def solve(matrix, rhs, adjoint=False, name=None) -> Tensor:
    """The solution of ``matrix @ x = rhs``, whose `rhs` is a matrix."""
    matrix, rhs = together(matrix, rhs)
    return gg.linalg.solve(_conjugate_transpose(matrix) if adjoint else matrix, rhs)


def triangular_solve(matrix, rhs, lower=True, adjoint=False, name=None) -> Tensor:
    """The solution of ``matrix @ x = rhs`` for a triangular matrix."""
    matrix, rhs = together(matrix, rhs)
    return gg.solve_triangular(matrix, rhs, lower=lower, adjoint=adjoint)


def cholesky_solve(chol, rhs, name=None) -> Tensor:
    """The solution of ``A @ x = rhs`` by the lower Cholesky factor of A."""
    chol, rhs = together(chol, rhs)
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None) -> Tensor:
    """The least-squares solution of ``matrix @ x = rhs``."""
    matrix, rhs = together(matrix, rhs)
    transposed = _conjugate_transpose(matrix)
    if matrix.shape[-2] >= matrix.shape[-1]:
        normal = transposed @ matrix
        return gg.linalg.solve(
            normal + l2_regularizer * eye(normal.shape[-1], dtype=normal.dtype), transposed @ rhs
        )
    normal = matrix @ transposed
    return transposed @ gg.linalg.solve(
        normal + l2_regularizer * eye(normal.shape[-1], dtype=normal.dtype), rhs
    )


def pinv(a, rcond=None, validate_args=False, name=None) -> Tensor:
    """Pseudoinverses."""
    return gg.linalg.pinv(tensor(a), rcond)


def svd(tensor, full_matrices=False, compute_uv=True, name=None) -> Any:
    """Singular values, then U and V, for which ``U @ diag(s) @ adjoint(V)`` is the matrix."""
    if not compute_uv:
        return gg.linalg.svdvals(_tensor(tensor))
    u, s, vh = gg.linalg.svd(_tensor(tensor), full_matrices=full_matrices)
    return s, u, adjoint(vh)


_tensor = tensor


def qr(input, full_matrices=False, name=None) -> Any:
    """An orthogonal and an upper triangular factor."""
    return tuple(gg.linalg.qr(tensor(input), mode="complete" if full_matrices else "reduced"))


def eigh(tensor, name=None) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return tuple(gg.linalg.eigh(_tensor(tensor)))


self_adjoint_eig = eigh


def eig(tensor, name=None) -> Any:
    """Eigenvalues and eigenvectors of square matrices."""
    return tuple(gg.linalg.eig(_tensor(tensor)))


def slogdet(input, name=None) -> Any:
    """The sign of determinants and the logarithm of their size."""
    return tuple(gg.linalg.slogdet(tensor(input)))


def logdet(matrix, name=None) -> Tensor:
    """The logarithm of the determinant of positive definite matrices."""
    factor = gg.linalg.diagonal(gg.linalg.cholesky(tensor(matrix)))
    return 2 * gg.sum(gg.log(gg.real(factor)), axis=-1)


def matrix_rank(a, tol=None, validate_args=False, name=None) -> Tensor:
    """The number of singular values above a tolerance."""
    s = gg.linalg.svdvals(x := tensor(a))
    tol = (
        max(x.shape[-2:]) * gg.finfo(s.dtype).eps * gg.max(s, axis=-1, keepdims=True)
        if tol is None
        else tol
    )
    return gg.astype(gg.sum(s > tol, axis=-1), "int32")


def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None) -> Tensor:
    """The norm of all elements, of vectors (an axis) or of matrices (two axes)."""
    x, axis = _tensor(tensor), axes(axis)
    if axis is None and ord in ("euclidean", "fro", 2):
        flat = gg.linalg.norm(gg.ravel(x))
        return gg.reshape(flat, (1,) * x.ndim) if keepdims else flat
    if ord == "euclidean":
        ord = "fro" if isinstance(axis, tuple) else None
    if axis is None:
        x, axis, shape = gg.ravel(x), 0, (1,) * x.ndim
        flat = gg.linalg.norm(x, ord, axis=axis)
        return gg.reshape(flat, shape) if keepdims else flat
    return gg.linalg.norm(x, ord, axis=axis, keepdims=bool(keepdims))


def normalize(tensor, ord="euclidean", axis=None, name=None) -> Any:
    """A Tensor over its norm, and the norm."""
    size = norm(tensor, ord, axis, True)
    return _tensor(tensor) / size, size


def global_norm(t_list, name=None) -> Tensor:
    """The norm of all elements of several gradients; a None among them counts nothing."""
    parts = [
        x.values if isinstance(x, gg.IndexedSlices) else tensor(x) for x in t_list if x is not None
    ]
    total: Any = sum(gg.sum(gg.square(x)) for x in parts)
    return gg.sqrt(total)


def lu(input, output_idx_type="int32", name=None) -> Any:
    """Both triangular factors in one matrix, and the permutation of rows."""
    factors, pivots = gg.linalg.lu_factor(x := tensor(input))
    order = gg.linalg.pivots_to_permutation(pivots, size=x.shape[-2])
    return factors, gg.astype(order, output_idx_type)


_look_up, _names = forwarding(__name__, types.SimpleNamespace(**_OPS), own=globals())


def __getattr__(name: str) -> Any:
    return _look_up(name)


def __dir__() -> list[str]:
    return _names()
