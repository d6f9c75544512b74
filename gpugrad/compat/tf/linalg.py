"""tf.linalg: TensorFlow's names, parameters and orders of results."""

from __future__ import annotations

from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import arrays, math
from gpugrad.compat.tf.convert import ints, keeping, op, ops, tensor
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError

einsum, eye, l2_normalize = gg.einsum, arrays.eye, math._OPS["l2_normalize"]
_inverse, _solve, _diagonal = gg.linalg.inv, gg.linalg.solve, gg.linalg.diagonal


@op
def tensordot(a, b, axes=...) -> Tensor:
    return gg.tensordot(a, b, axes=axes.numpy().tolist() if isinstance(axes, Tensor) else axes)


def _adjoint(matrix: Tensor, yes: Any = True) -> Tensor:
    return gg.conj(gg.matrix_transpose(matrix)) if yes else matrix


@op
def matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False) -> Tensor:
    if min(a.ndim, b.ndim) < 2:
        raise ArgumentError(
            f"matmul: shapes {a.shape} and {b.shape} are not of matrices; see tf.linalg.matvec."
        )
    a = _adjoint(a) if adjoint_a else gg.matrix_transpose(a) if transpose_a else a
    b = _adjoint(b) if adjoint_b else gg.matrix_transpose(b) if transpose_b else b
    return gg.matmul(a, b)


@op
def set_diag(input, diagonal, name=None, k=0) -> Tensor:
    on = gg.eye(input.shape[-2], input.shape[-1], k=k, dtype="bool")
    n = gg.arange(diagonal.shape[-1])
    index = (..., n + max(-k, 0), n + max(k, 0))
    return gg.where(on, gg.index_put(gg.zeros_like(input), diagonal, index=index), input)


@op
def band_part(input, num_lower, num_upper) -> Tensor:
    x = input if num_lower < 0 else gg.triu(input, k=-num_lower)
    return x if num_upper < 0 else gg.tril(x, k=num_upper)


@op
def tensor_diag_part(input) -> Tensor:
    half = input.shape[: input.ndim // 2]
    n = int(gg.prod(gg.asarray(half)))
    return gg.reshape(_diagonal(gg.reshape(input, (n, n))), half)


@op
def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True) -> Tensor:
    transposed = _adjoint(matrix)
    tall = matrix.shape[-2] >= matrix.shape[-1]
    normal = transposed @ matrix if tall else matrix @ transposed
    normal = normal + l2_regularizer * gg.eye(normal.shape[-1], dtype=normal.dtype)
    return _solve(normal, transposed @ rhs) if tall else transposed @ _solve(normal, rhs)


@op
def svd(tensor, full_matrices=False, compute_uv=True) -> Any:
    """Singular values, then U and V, for which ``U @ diag(s) @ adjoint(V)`` is the matrix."""
    if not compute_uv:
        return gg.linalg.svdvals(tensor)
    u, s, vh = gg.linalg.svd(tensor, full_matrices=full_matrices)
    return s, u, _adjoint(vh)


@op
def matrix_rank(a, tol=None) -> Tensor:
    s = gg.linalg.svdvals(a)
    if tol is None:
        tol = max(a.shape[-2:]) * gg.finfo(s.dtype).eps * gg.max(s, axis=-1, keepdims=True)
    return gg.astype(gg.sum(s > tol, axis=-1), "int32")


@op
def norm(tensor, ord="euclidean", axis=None, keepdims=False) -> Tensor:
    if axis is None:
        flat = gg.linalg.norm(gg.ravel(tensor), None if ord in ("euclidean", "fro") else ord)
        return gg.reshape(flat, (1,) * tensor.ndim) if keepdims else flat
    if ord == "euclidean":
        ord = "fro" if isinstance(axis, tuple) and len(axis) > 1 else None
    return gg.linalg.norm(tensor, ord, axis=axis, keepdims=keepdims)


@op
def normalize(tensor, ord="euclidean", axis=None) -> Any:
    size = norm(tensor, ord, axis, True)
    return tensor / size, size


@op
def global_norm(t_list=...) -> Tensor:
    """The norm of all elements of several gradients; a None among them counts nothing."""
    parts = [
        x.values if isinstance(x, gg.IndexedSlices) else tensor(x) for x in t_list if x is not None
    ]
    total: Any = sum(gg.sum(gg.square(x)) for x in parts)
    return gg.sqrt(total)


@op
def lu(input, output_idx_type="int32") -> Any:
    factors, pivots = gg.linalg.lu_factor(input)
    order = gg.linalg.pivots_to_permutation(pivots, size=input.shape[-2])
    return factors, gg.astype(order, output_idx_type)


def _diag(
    diagonal, name=None, k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"
) -> Tensor:
    if num_rows != -1 or num_cols != -1 or padding_value != 0:
        raise ArgumentError("diag: num_rows=, num_cols= and padding_value= are not understood.")
    return gg.diag_embed(diagonal, offset=k)


def _diag_part(input, name=None, k=0, padding_value=0, align="RIGHT_LEFT") -> Tensor:
    """A diagonal, or several as rows, from the highest to the lowest, with pads at their ends."""
    if isinstance(k, int):
        return _diagonal(input, offset=k)
    low, high = ints(k)
    rows = [_diagonal(input, offset=d) for d in range(high, low - 1, -1)]
    longest = max(row.shape[-1] for row in rows)
    above, below = align.split("_")
    for i, row in enumerate(rows):
        gap = longest - row.shape[-1]
        before = gap if (above if high - i >= 0 else below) == "RIGHT" else 0
        widths = [(0, 0)] * (row.ndim - 1) + [(before, gap - before)]
        rows[i] = gg.pad(row, widths, constant_values=padding_value)
    return gg.stack(rows, axis=-2)


def _logdet(matrix) -> Tensor:
    return 2 * gg.sum(gg.log(gg.real(_diagonal(gg.linalg.cholesky(matrix)))), axis=-1)


def _cholesky_solve(chol, rhs) -> Tensor:
    half = gg.solve_triangular(chol, rhs, lower=True)
    return gg.solve_triangular(chol, half, lower=True, adjoint=True)


_OPS = ops(
    """input: cholesky=linalg.cholesky det=linalg.det expm=linalg.expm logm=linalg.logm
    sqrtm=linalg.sqrtm
    tensor: eigvals=linalg.eigvals eigvalsh=linalg.eigvalsh
    a b: cross=linalg.cross
    matrix rhs lower=True adjoint=False: triangular_solve=solve_triangular""",
    adjoint=lambda matrix: _adjoint(matrix),
    matrix_transpose=lambda a, name=None, conjugate=False: (
        _adjoint(a) if conjugate else gg.matrix_transpose(a)
    ),
    trace=lambda x: keeping(x, gg.linalg.trace(x)),
    matvec=lambda a, b, transpose_a=False, adjoint_a=False: matmul(
        a, gg.expand_dims(b, axis=-1), transpose_a, False, adjoint_a
    )[..., 0],
    diag_part=_diag_part,
    diag=_diag,
    tensor_diag=lambda diagonal: gg.reshape(gg.diag(gg.ravel(diagonal)), diagonal.shape * 2),
    inv=lambda input, adjoint=False: _inverse(_adjoint(input, adjoint)),
    solve=lambda matrix, rhs, adjoint=False: _solve(_adjoint(matrix, adjoint), rhs),
    cholesky_solve=_cholesky_solve,
    pinv=lambda a, rcond=None: gg.linalg.pinv(a, rcond),
    qr=lambda input, full_matrices=False: tuple(
        gg.linalg.qr(input, mode="complete" if full_matrices else "reduced")
    ),
    eigh=lambda tensor: tuple(gg.linalg.eigh(tensor)),
    self_adjoint_eig=lambda tensor: tuple(gg.linalg.eigh(tensor)),
    eig=lambda tensor: tuple(gg.linalg.eig(tensor)),
    slogdet=lambda input: tuple(gg.linalg.slogdet(input)),
    logdet=_logdet,
)
__getattr__, __dir__ = forwarding(__name__, _OPS, own=globals())
