"""Ops on singular values: pseudoinverse, least squares, rank, condition number.

Formula: G. Golub and V. Pereyra, SIAM J. Numer. Anal. 10 (1973) 413: the derivative of the
pseudoinverse at constant rank.
"""

from typing import Any

import numpy as np

from gpugrad.autodiff.batched import aligned, need_axes
from gpugrad.core.backend import SCALARS
from gpugrad.core.samples import shaped, uniform
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.ops.arrays.shape import need_matrices
from gpugrad.ops.linalg.common import NO_MATRIX, as_inexact
from gpugrad.ops.math.products import adjoint
from gpugrad.registry.record import op


def _significant(lib, s, rtol, shape):
    """Marks the singular values that are not 0: those above `rtol` of the largest, s[..., 0]."""
    if rtol is None:
        rtol = max(shape[-2:]) * float(np.finfo(s.dtype).eps)
    elif type(rtol) not in SCALARS:
        rtol = lib.real(rtol)[..., None]
    return s > rtol * s[..., :1]


_TOLERANT: dict[str, Any] = {"arrays": ("x", "rtol"), "kinds": "fc", "errors": [NO_MATRIX]}


def _rank_batch(name):
    """The vmap rule of an op on matrices with a tolerance for each."""

    def batch(xp, batched, x, rtol):
        need_axes(name, batched, (x, rtol), (2, 0))
        if hasattr(rtol, "ndim"):  # as a matrix of one element, to align the stacks
            x, rtol = aligned(xp, batched, (x, xp.expand_dims(rtol, axis=(-2, -1))))
            rtol = xp.squeeze(rtol, (-2, -1))
        return getattr(xp, name)(x, rtol)

    return batch


def _pinv_vjp(xp, g, out, x):
    """The adjoint of dp = -p dx p + p p^H dx^H (1 - x p) + (1 - p x) dx^H p^H p."""
    gh, ph = adjoint(xp, g), adjoint(xp, out)
    outside = xp.multi_dot([gh - xp.multi_dot([x, out, gh]), out, ph])
    inside = xp.multi_dot([ph, out, gh - xp.multi_dot([gh, out, x])])
    return xp.sum_to(outside + inside - xp.multi_dot([ph, g, ph]), x.shape)


def _pinv_ref(x, rtol=None):
    if rtol is None:
        rtol = max(x.shape[-2:]) * np.finfo(x.dtype).eps
    return np.linalg.pinv(x, rcond=rtol)


@op(
    [_pinv_vjp, None],
    ref=_pinv_ref,
    samples=shaped([(3, 3)], [(3, 2)], [(2, 3)], [(2, 3, 2)], [(0, 2, 2)], [(2, 0)]),
    batch=_rank_batch("pinv"),
    **_TOLERANT,
)
def pinv(xp, x, /, rtol=None):
    """Moore-Penrose pseudoinverse of matrices: the inverse if it exists.

    Args:
        x: array of shape (..., m, n).
        rtol: singular values up to `rtol` times the largest count as 0: a number, or an array
            of the shape of the stack. None: the larger of m and n times the dtype's epsilon.

    Returns:
        Tensor of shape (..., n, m). The gradient is the one at constant rank: if `rtol` leaves out
            singular values that are not 0, it lacks the terms by which they mix with the others.

    >>> print(gg.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]))
    [[0.5 0. ]
     [0.  0. ]]
    """
    need_matrices("pinv", x)
    x, lib = as_inexact(x), xp.lib
    u, s, vh = lib.linalg.svd(x, full_matrices=False)
    keep = _significant(lib, s, rtol, x.shape)
    inverse = lib.where(keep, 1, 0) / lib.where(keep, s, 1)
    out = (adjoint(xp, vh) * inverse[..., None, :]) @ adjoint(xp, u)
    return out.astype(x.dtype, copy=False)


def _lstsq_ref(a, b, rcond=None):
    columns = b[:, None] if b.ndim == 1 else b
    out = np.linalg.pinv(a) @ columns
    for i in np.ndindex(a.shape[:-2]):
        if a.ndim == columns.ndim and a[i].size:
            out[i] = np.linalg.lstsq(a[i], columns[i], rcond=None)[0]
    return out[..., 0] if b.ndim == 1 else out


@op(
    kinds="fc",
    ref=_lstsq_ref,
    samples=shaped(
        [(4, 2), (4,)],
        [(2, 3), (2, 2)],
        [(2, 3, 2), (2, 3, 1)],
        [(2, 3, 2), (3,)],
        ([(3, 3), (3, 1)], {"rcond": 1e-9}),
    ),
    errors=[
        ([np.ones((3, 2)), np.ones(2)], {}, ShapeError, r"lstsq.*\(2,\)"),
        ([np.ones(3), np.ones(3)], {}, ShapeError, r"lstsq.*\(3,\)"),
    ],
)
def lstsq(xp, a, b, /, *, rcond=None):
    """The op behind `gg.linalg.lstsq`: its first result."""
    vector = b.ndim == 1
    if a.ndim < 2 or b.ndim < 1 or b.shape[-1 if vector else -2] != a.shape[-2]:
        raise ShapeError(
            f"lstsq: a {a.shape} and b {b.shape} are not (..., m, n) and (..., m, k) or (m,)."
        )
    columns = xp.expand_dims(b, axis=-1) if vector else b
    out = xp.matmul(xp.pinv(a, rtol=rcond), columns)
    return xp.squeeze(out, -1) if vector else out


def _rank_samples(rng):
    for shape in ((3, 3), (2, 3, 2), (0, 2, 2), (2, 0)):
        yield [uniform(rng, *shape)], {}
    yield [np.array([[1.0, 2.0], [2.0, 4.0]])], {}
    yield [np.diag([1.0, 1e-3])], {"rtol": 1e-2}


def _rank_ref(x, rtol=None):
    if not x.size:  # NumPy before 2.4 refuses it
        return np.zeros(x.shape[:-2], np.int64)
    return np.linalg.matrix_rank(x, rtol=rtol)


@op(
    differentiable=False,
    samples=_rank_samples,
    ref=_rank_ref,
    batch=_rank_batch("matrix_rank"),
    **_TOLERANT,
)
def matrix_rank(xp, x, /, rtol=None):
    """How many singular values of matrices are not 0. Its gradient is None.

    Args:
        x: array of shape (..., m, n).
        rtol: as for `pinv`.

    Returns:
        int64 Tensor of shape (...).

    >>> print(gg.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]))
    1
    """
    need_matrices("matrix_rank", x)
    s = xp.lib.linalg.svdvals(as_inexact(x))
    return xp.add_reduce(_significant(xp.lib, s, rtol, x.shape), axis=-1, dtype=np.int64)


_COND = ((2, (2, 3)), (-2, (2, 3, 2)), (1, (2, 2)), ("fro", (2, 2, 2)), (-np.inf, (3, 3)))


@op(
    kinds="fc",
    ref=lambda x, p=None: np.linalg.cond(x, p).real,
    samples=shaped([(3, 3)], *(([shape], {"p": p}) for p, shape in _COND)),
    errors=[
        NO_MATRIX,
        ([np.ones((2, 3))], {"p": 1}, ShapeError, r"square.*\(2, 3\)"),
        ([np.eye(2)], {"p": 3}, ArgumentError, "ord=3"),
    ],
)
def cond(xp, x, /, p=None):
    """Condition number of matrices: the norm times that of the inverse.

    Args:
        x: array of shape (..., m, n); square, if `p` is not None, 2 or -2.
        p: the norm, an `ord` of `matrix_norm`. None and 2: the largest over the smallest
            singular value; -2: the smallest over the largest.

    Returns:
        Tensor of real numbers of shape (...); inf for a singular matrix.

    >>> print(gg.linalg.cond([[4.0, 0.0], [0.0, 2.0]]))
    2.0
    """
    need_matrices("cond", x)
    if p is not None and p not in (2, -2):
        singular = xp.equal(xp.slogdet(x)[0], 0)
        each = xp.reshape(singular, (*x.shape[:-2], 1, 1))
        identity = xp.astype(xp.triu(xp.tril(xp.equal(x, x))), x.dtype)
        x = xp.where(each, identity, x)
        norms = xp.matrix_norm(x, ord=p) * xp.matrix_norm(xp.inv(x), ord=p)
        return xp.where(singular, np.inf, norms)
    s = xp.svdvals(x)
    largest, smallest = xp.max(s, axis=-1), xp.min(s, axis=-1)
    above, below = (smallest, largest) if p == -2 else (largest, smallest)
    is_zero = below == 0
    return xp.where(is_zero, np.inf, above / xp.where(is_zero, 1, below))
