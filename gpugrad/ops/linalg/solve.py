"""Systems of equations, inverses and powers of matrices and stacks of them.

Formulas: M. Giles, "Collected matrix derivative results" (2008). For complex matrices
the transpose becomes the conjugate transpose.
"""

import numpy as np

from gpugrad.autodiff.batched import aligned
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, ShapeError, SingularMatrixError
from gpugrad.kernels.cpu import lapack
from gpugrad.ops.linalg.common import (
    SQUARE,
    as_inexact,
    identity,
    matrices,
    need_square,
    singular,
    square_op,
)
from gpugrad.ops.math.products import adjoint
from gpugrad.registry.record import op

_SYSTEMS = [
    ((2, 2), (2,)),
    ((3, 3), (3, 2)),
    ((2, 2, 2), (2,)),
    ((2, 1, 2, 2), (3, 2, 1)),
    ((2, 2), (2, 2, 1)),
    ((0, 2, 2), (2, 1)),
    ((0, 0), (0, 2)),
    ((2, 2), (2, 0)),
]


def _regular(xp, name, out, *inputs):
    """Raise where CuPy returns inf and nan but NumPy raises. Synchronizes the GPU."""
    isfinite = xp.lib.isfinite
    if xp is not NUMPY and not isfinite(out).all() and all(isfinite(x).all() for x in inputs):
        raise singular(name, "the matrix is singular")
    return out


def _columns(xp, y, vector):
    """Right-hand sides as matrices; a vector becomes one column."""
    return xp.expand_dims(y, axis=-1) if vector else y


def _for_b(xp, y, b_shape):
    """The gradient by right-hand sides, from the gradient by their columns."""
    return xp.sum_to(xp.squeeze(y, -1) if len(b_shape) == 1 else y, b_shape)


def _solving(name):
    """The vmap rule of a solver: vectors become columns, which an op takes in stacks."""

    def batch(xp, batched, a, b, **params):
        vector = b.ndim - batched[1] == 1
        if vector:
            b = xp.expand_dims(b, axis=-1)
        out = getattr(xp, name)(*aligned(xp, batched, (a, b)), **params)
        return xp.squeeze(out, -1) if vector else out

    return batch


def _triangular_b(xp, g, a, b_shape, lower, adjoint, unit_diagonal):
    options = {"lower": lower, "adjoint": not adjoint, "unit_diagonal": unit_diagonal}
    g = _columns(xp, g, len(b_shape) == 1)
    return _for_b(xp, xp.solve_triangular(a, g, **options), b_shape)


def _triangular_a(xp, g, out, a, b_shape, lower, adjoint, unit_diagonal):
    options = {"lower": lower, "adjoint": not adjoint, "unit_diagonal": unit_diagonal}
    g, x = (_columns(xp, y, len(b_shape) == 1) for y in (g, out))
    y = xp.solve_triangular(a, g, **options)
    d = -(_outer(xp, x, y) if adjoint else _outer(xp, y, x))
    k = int(unit_diagonal)
    return xp.sum_to(xp.tril(d, k=-k) if lower else xp.triu(d, k=k), a.shape)


def _outer(xp, x, y):
    """The products x y^H of columns."""
    return xp.matmul(x, adjoint(xp, y))


def _triangular_ref(a, b, lower, adjoint=False, unit_diagonal=False):
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = np.where(np.eye(a.shape[-1], dtype=bool), 1, a)
    return np.linalg.solve(a.swapaxes(-1, -2).conj() if adjoint else a, b)


_LOWER = {"lower": True}


def _triangular_samples(rng):
    for k, make in enumerate(matrices(*_SYSTEMS)):
        yield make(rng)[0], {"lower": k % 2 == 0, "adjoint": k % 4 > 1}
    for k in range(4):
        arrays = [uniform(rng, 3, 3), uniform(rng, 3, 2)]
        yield arrays, {"lower": k % 2 == 0, "adjoint": k > 1, "unit_diagonal": True}


@op(
    [_triangular_a, _triangular_b],
    cpu=lapack.solve_triangular,
    large=lapack.LEAST_SIZE,
    kinds="fc",
    ref=_triangular_ref,
    samples=_triangular_samples,
    batch=_solving("solve_triangular"),
    errors=[
        ([np.zeros((2, 2)), np.ones(2)], _LOWER, SingularMatrixError, "triangular.*singular"),
        ([np.ones((2, 3)), np.ones(2)], _LOWER, ShapeError, r"solve_triangular.*\(2, 3\)"),
        ([np.eye(2), np.ones(3)], _LOWER, ShapeError, r"solve_triangular.*\(3,\)"),
        ([np.ones((2, 2, 2)), np.ones((3, 2, 1))], _LOWER, ShapeError, "solve_triangular"),
        ([np.eye(2), np.ones(2)], {}, TypeError, "lower"),
    ],
)
def solve_triangular(xp, a, b, /, *, lower, adjoint=False, unit_diagonal=False):
    """Solution of a @ x = b for triangular matrices.

    Args:
        a: array of shape (..., n, n); only one triangle of it is read.
        b: array of shape (..., n, k), or one vector (n,). Stacks are broadcast.
        lower: which triangle. It has no default, as SciPy's is the upper one and TensorFlow's
            the lower one.
        adjoint: whether to solve with the conjugate transpose of `a`. `lower` is about `a`.
        unit_diagonal: whether to take the diagonal for ones, and not to read it.

    Returns:
        Tensor of shape (..., n, k), or (..., n) for a vector.

    >>> print(gg.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True))
    [1. 2.]
    """
    n = a.shape[-1] if a.ndim else 0
    columns = b[:, None] if b.ndim == 1 else b
    if a.ndim < 2 or a.shape[-2] != n or columns.ndim < 2 or columns.shape[-2] != n:
        raise ShapeError(
            f"solve_triangular: a {a.shape} and b {b.shape} are not (..., n, n) and (..., n, k) "
            "or (n,)."
        )
    stack = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    dtype = xp.lib.result_type(as_inexact(a), as_inexact(b))
    a = xp.lib.broadcast_to(a.astype(dtype, copy=False), (*stack, n, n))
    columns = xp.lib.broadcast_to(columns.astype(dtype, copy=False), (*stack, n, columns.shape[-1]))
    if not columns.size:
        out = xp.lib.zeros(columns.shape, dtype=dtype)
    elif xp is NUMPY:  # SciPy's own function takes ten times as long for small matrices
        out = np.empty(columns.shape, dtype)
        (trtrs,) = xp.linalg.get_lapack_funcs(("trtrs",), (a, columns))
        options = {
            "lower": bool(lower),
            "trans": 2 * bool(adjoint),
            "unitdiag": bool(unit_diagonal),
        }
        for i in np.ndindex(stack):
            out[i], at = trtrs(a[i], columns[i], **options)
            if at:
                raise singular("solve_triangular", f"the matrix is singular: a 0 in row {at - 1}")
    else:
        trans = "C" if adjoint else "N"
        out = xp.linalg.solve_triangular(
            a, columns, lower=lower, trans=trans, unit_diagonal=unit_diagonal
        )
        out = _regular(xp, "solve_triangular", out, a, columns)
    return out[..., 0] if b.ndim == 1 else out


def _solve_vjp(xp, g, out, x1, x2_shape):
    """Both gradients, from one factorization."""
    g, x = (_columns(xp, y, len(x2_shape) == 1) for y in (g, out))
    y = xp.solve(adjoint(xp, x1), g)
    return xp.sum_to(-_outer(xp, y, x), x1.shape), _for_b(xp, y, x2_shape)


def _solve_by_matrix(xp, t, out, x1, x2_shape):
    is_vector = len(x2_shape) == 1
    x = xp.solve(x1, -xp.matmul(t, _columns(xp, out, is_vector)))
    return xp.getitem(x, index=(Ellipsis, 0)) if is_vector else x


def _solve_by_sides(xp, t, x1, x2_shape):
    return xp.solve(x1, t)


@op(
    vjp=_solve_vjp,
    jvp=[_solve_by_matrix, _solve_by_sides],
    cpu=lapack.solve,
    large=lapack.LEAST_SIZE,
    kinds="fc",
    ref="numpy.linalg.solve",
    samples=calls(*matrices(*_SYSTEMS)),
    batch=_solving("solve"),
    errors=[
        ([np.ones((2, 2)), np.ones(2)], {}, SingularMatrixError, "solve.*[Ss]ingular"),
        ([np.ones((2, 3)), np.ones(2)], {}, ShapeError, r"solve.*square.*\(2, 3\)"),
        ([np.eye(2), np.ones(3)], {}, ShapeError, r"solve.*\(3,\)"),
    ],
)
def solve(xp, x1, x2, /):
    """Solution of x1 @ x = x2 for square matrices.

    Args:
        x1: array of shape (..., n, n).
        x2: array of shape (..., n, k), or one vector (n,). Stacks are broadcast.

    Returns:
        Tensor of shape (..., n, k), or (..., n) for a vector.

    >>> print(gg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]))
    [1.  0.5]
    """
    if xp is NUMPY:
        return xp.lib.linalg.solve(x1, x2)
    # CuPy does not broadcast stacks, and its versions differ in what they take for a vector
    columns = x2[:, None] if x2.ndim == 1 else x2
    stack = np.broadcast_shapes(x1.shape[:-2], columns.shape[:-2])
    a = xp.lib.broadcast_to(as_inexact(x1), (*stack, *x1.shape[-2:]))
    columns = xp.lib.broadcast_to(as_inexact(columns), (*stack, *columns.shape[-2:]))
    out = _regular(xp, "solve", xp.lib.linalg.solve(a, columns), a, columns)
    return out[..., 0] if x2.ndim == 1 else out


def _inv_vjp(xp, g, out):
    a = adjoint(xp, out)
    return -xp.matmul(xp.matmul(a, g), a)


@square_op(
    [_inv_vjp],
    jvp=[lambda xp, t, out: -xp.matmul(xp.matmul(out, t), out)],
    ref="numpy.linalg.inv",
    errors=[([np.ones((2, 2))], {}, SingularMatrixError, "[Ss]ingular")],
)
def inv(xp, x, /):
    """Inverse of square matrices.

    >>> print(gg.inv([[2.0, 0.0], [0.0, 4.0]]))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    return _regular(xp, "inv", xp.lib.linalg.inv(as_inexact(x)), x)


@op(
    ref=lambda x, n: np.linalg.matrix_power(x, n),
    kinds="fc",
    samples=lambda rng: ((f(rng)[0], {"n": n}) for n, f in enumerate(matrices(*SQUARE), -2)),
    errors=[
        ([np.ones((2, 3)), 2], {}, ShapeError, r"matrix_power.*square.*\(2, 3\)"),
        ([np.eye(2), 0.5], {}, ArgumentError, "matrix_power.*0.5"),
        ([np.ones((2, 2)), -1], {}, SingularMatrixError, "[Ss]ingular"),
    ],
)
def matrix_power(xp, x, /, n):
    """Product of `n` copies of a square matrix, by repeated squaring.

    Args:
        x: array of shape (..., m, m).
        n: int; 0 gives the identity, a negative one the power of the inverse.

    >>> print(gg.matrix_power([[1.0, 1.0], [0.0, 1.0]], 3))
    [[1. 3.]
     [0. 1.]]
    """
    need_square("matrix_power", x)
    if not isinstance(n, (int, np.integer)):
        raise ArgumentError(f"matrix_power: n={n!r} must be an int.")
    if n == 0:
        return xp.astype(identity(xp, x), x.dtype)  # the power of a boolean is an integer
    if n < 0:
        x, n = xp.inv(x), -n
    out = None
    while n:
        if n % 2 and out is None:
            out = xp.logical_or(x, x) if x.dtype.kind == "b" else xp.positive(x)
        elif n % 2:
            out = xp.matmul(out, x)
        n //= 2
        if n:
            x = xp.matmul(x, x)
    return out
