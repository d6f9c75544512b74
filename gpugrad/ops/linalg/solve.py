"""Cholesky factors, systems of equations and determinants of matrices and stacks of them.

Formulas: M. Giles, "Collected matrix derivative results" (2008); for the Cholesky factor
I. Murray, arXiv:1602.07527. For complex matrices the transpose becomes the conjugate transpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.autodiff.batched import aligned
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, ShapeError, SingularMatrixError
from gpugrad.kernels.cpu import lapack
from gpugrad.kernels.libraries import cusolver
from gpugrad.ops.math.products import adjoint
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate

_SQUARE = [((1, 1),), ((2, 2),), ((3, 3),), ((2, 2, 2),), ((0, 2, 2),), ((0, 0),)]
_SYSTEMS = [
    ((2, 2), (2,)), ((3, 3), (3, 2)), ((2, 2, 2), (2,)), ((2, 1, 2, 2), (3, 2, 1)),
    ((2, 2), (2, 2, 1)), ((0, 2, 2), (2, 1)), ((0, 0), (0, 2)), ((2, 2), (2, 0)),
]  # fmt: skip
NO_MATRIX: tuple[Any, ...] = ([np.ones(3)], {}, ShapeError, r"\(3,\)")
NOT_SQUARE: tuple[Any, ...] = ([np.ones((2, 3))], {}, ShapeError, r"square.*\(2, 3\)")
STACKS: dict[str, Any] = {"kinds": "fc", "batch": "stack"}


def _matrices(*shapes, shift=2.0):
    """Samples far from singular: `shift` times the identity is added to the first matrix."""

    def sample(first, *rest):
        def make(rng):
            matrix = uniform(rng, *first, low=-1, high=1) + shift * np.eye(first[-1])
            return [matrix, *(uniform(rng, *s) for s in rest)], {}

        return make

    return [sample(*case) for case in shapes]


def square_op(vjp=None, *, errors=(), **record):
    """`op` for one array of square matrices, which it adds to the docstring."""

    def declare(forward):
        head, mark, example = forward.__doc__.partition(">>>")
        head += "Args:\n        x: array of shape (..., n, n).\n\n    "
        forward.__doc__ = head + mark + example
        defaults = {"samples": calls(*_matrices(*_SQUARE)), "kinds": "fc"}
        if vjp is not None:
            defaults["batch"] = "stack"
        return op(vjp, errors=[NOT_SQUARE, *errors], **defaults | record)(forward)

    return declare


def as_inexact(x):
    """Integers become float64, as in NumPy; some of CuPy's functions refuse integers."""
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def need_square(name, x):
    """ShapeError unless `x` is a stack of square matrices."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: square matrices are needed, the shape is {x.shape}.")


def _scaled(xp, g, x):
    """Each matrix times its number."""
    return xp.reshape(g, (*g.shape, 1, 1)) * x


def _singular(name, what):
    return SingularMatrixError(
        f"{name}: {what}. Add a small multiple of the identity, or use a decomposition that "
        "allows it."
    )


def _regular(xp, name, out, *inputs):
    """Raise where CuPy returns inf and nan but NumPy raises. Synchronizes the GPU."""
    isfinite = xp.lib.isfinite
    if xp is not NUMPY and not isfinite(out).all() and all(isfinite(x).all() for x in inputs):
        raise _singular(name, "the matrix is singular")
    return out


# ---- Cholesky ----------------------------------------------------------------------------


def _cholesky_vjp(xp, g, out, upper):
    if upper:
        g, out = adjoint(xp, g), adjoint(xp, out)
    return xp.cholesky_grad(g, out)


def _cholesky_grad_ref(g, out):
    p = np.tril(out.swapaxes(-1, -2).conj() @ g)
    p = p - np.eye(p.shape[-1]) * p / 2
    inverse = np.linalg.inv(np.tril(out))
    return _hermitian(inverse.swapaxes(-1, -2).conj() @ p @ inverse)


def _cholesky_grad_samples(rng):
    for make in _matrices(*_SQUARE):
        (x,), _ = make(rng)
        yield [uniform(rng, *x.shape), np.tril(x)], {}


@op(
    cpu=lapack.cholesky_grad,
    large=lapack.LEAST_SIZE,
    kinds="fc",
    ref=_cholesky_grad_ref,
    samples=_cholesky_grad_samples,
    errors=[
        ([np.eye(2), np.zeros((2, 2))], {}, SingularMatrixError, "triangular.*singular"),
        ([np.ones((2, 2)), np.ones((2, 3))], {}, ShapeError, r"cholesky_grad.*\(2, 3\)"),
    ],
)
def cholesky_grad(xp, g, out, /):
    """The gradient of `cholesky` by its input.

    Args:
        g: array of shape (..., n, n), the gradient by the factor; its lower triangle is read.
        out: array of that shape, the lower triangular factor.

    Returns:
        Tensor of that shape, symmetric (Hermitian).

    >>> print(gg.cholesky_grad([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [1.0, 1.0]]))
    [[ 0.375 -0.25 ]
     [-0.25   0.5  ]]
    """
    need_square("cholesky_grad", out)
    p = xp.matmul(adjoint(xp, out), g)
    p = (xp.tril(p) + xp.tril(p, k=-1)) / 2  # lower triangle, half of the diagonal
    s = xp.solve_triangular(out, p, lower=True, adjoint=True)
    s = xp.solve_triangular(out, adjoint(xp, s), lower=True, adjoint=True)
    return (s + adjoint(xp, s)) / 2


def _hermitian(x):
    return (x + x.swapaxes(-1, -2).conj()) / 2


def _cholesky_ref(x, upper=False):
    factor = np.linalg.cholesky(_hermitian(x))
    return factor.swapaxes(-1, -2).conj() if upper else factor


def _cholesky_samples(rng):
    for k, make in enumerate(_matrices(*_SQUARE, shift=4.0)):
        (x,), _ = make(rng)
        yield [_hermitian(x)], {"upper": k % 2 == 1}


@op(
    [_cholesky_vjp],
    cpu=lapack.cholesky,
    large=lapack.LEAST_SIZE,
    ref=_cholesky_ref,
    samples=_cholesky_samples,
    errors=[
        NOT_SQUARE,
        ([np.ones((2, 2)) - np.eye(2)], {}, SingularMatrixError, "cholesky.*positive definite"),
    ],
    **STACKS,
)
def cholesky(xp, x, /, *, upper=False):
    """Triangular factor L of positive definite matrices: L times its conjugate transpose.

    The matrix read is (x + x^H) / 2, so the gradient is symmetric, as in JAX and TensorFlow.

    Args:
        x: array of shape (..., n, n), symmetric (Hermitian) and positive definite.
        upper: whether to return the conjugate transpose of L.

    Returns:
        Tensor of the shape of `x`, 0 above (with `upper`, below) the diagonal.

    >>> print(gg.cholesky([[4.0, 2.0], [2.0, 2.0]]))
    [[2. 0.]
     [1. 1.]]
    """
    need_square("cholesky", x)
    x = as_inexact(x)
    x = (x + adjoint(xp, x)) / 2
    out = NotImplemented if xp is NUMPY else cusolver.factor(xp.lib, x)
    if out is NotImplemented:
        out = xp.lib.linalg.cholesky(x)
    # cuSOLVER does not raise, but leaves a pivot that is not positive on the diagonal
    if xp is not NUMPY and not (xp.diagonal(out, 0, -2, -1).real > 0).all():
        raise _singular("cholesky", "the matrix is not positive definite")
    return adjoint(xp, out) if upper else out


# ---- systems of equations ----------------------------------------------------------------


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
    for k, make in enumerate(_matrices(*_SYSTEMS)):
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
                raise _singular("solve_triangular", f"the matrix is singular: a 0 in row {at - 1}")
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


@op(
    vjp=_solve_vjp,
    cpu=lapack.solve,
    large=lapack.LEAST_SIZE,
    kinds="fc",
    ref="numpy.linalg.solve",
    samples=calls(*_matrices(*_SYSTEMS)),
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


def _identity(xp, x):
    """Identity matrices of the shape of `x`."""
    return xp.diagonal_scatter(xp.diagonal(x, 0, -2, -1) ** 0, offset=0, shape=x.shape)


@op(
    ref=lambda x, n: np.linalg.matrix_power(x, n),
    kinds="fc",
    samples=lambda rng: ((f(rng)[0], {"n": n}) for n, f in enumerate(_matrices(*_SQUARE), -2)),
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
        return _identity(xp, x)
    if n < 0:
        x, n = xp.inv(x), -n
    out = None
    while n:
        if n % 2:
            out = xp.positive(x) if out is None else xp.matmul(out, x)
        n //= 2
        if n:
            x = xp.matmul(x, x)
    return out


# ---- determinants ------------------------------------------------------------------------


def _adjugate_vjp(xp, g, out, x):
    """Of adj(x) = det(x) inv(x), so d adj = (tr(adj dx) adj - adj dx adj) / det."""
    a = adjoint(xp, out)
    along = xp.sum(conjugate(xp, out) * g, axis=(-2, -1))
    d = _scaled(xp, along, a) - xp.matmul(xp.matmul(a, g), a)
    det = xp.det(x)
    return d / xp.reshape(conjugate(xp, det), (*det.shape, 1, 1))


def _adjugate_ref(x):
    """The transposed cofactors, by their definition."""
    out, n = np.empty_like(x), x.shape[-1]
    for i in range(n):
        for j in range(n):
            minor = np.delete(np.delete(x, i, axis=-2), j, axis=-1)
            out[..., j, i] = (-1) ** (i + j) * np.linalg.det(minor)
    return out


@square_op([_adjugate_vjp], ref=_adjugate_ref)
def adjugate(xp, x, /):
    """Transposed cofactors of square matrices: det(x) * inv(x), defined for singular ones too.

    Returns:
        Tensor of the shape of `x`. Its gradient is not finite where `x` is singular.

    >>> print(gg.adjugate([[1.0, 2.0], [2.0, 3.0]]).numpy().round(5))
    [[ 3. -2.]
     [-2.  1.]]
    """
    x = as_inexact(x)
    lib, linalg = xp.lib, xp.lib.linalg
    det = linalg.det(x)
    if not (abs(det) < lib.finfo(det.dtype).smallest_normal).any():
        return det[..., None, None] * linalg.inv(x)  # the error of a small pivot cancels
    # adj(U S Vh) = adj(Vh) adj(S) adj(U), and adj(S) has the products of all s but one
    u, s, vh = linalg.svd(x)
    others = lib.where(lib.eye(x.shape[-1], dtype=bool), 1, s[..., None, :])
    adj_s = lib.prod(others, axis=-1) * (linalg.det(u) * linalg.det(vh))[..., None]
    return (adjoint(xp, vh) * adj_s[..., None, :]) @ adjoint(xp, u)


def _det_vjp(xp, g, x):
    return _scaled(xp, g, adjoint(xp, xp.adjugate(x)))


@square_op([_det_vjp], ref="numpy.linalg.det")
def det(xp, x, /):
    """Determinant of square matrices.

    Returns:
        Tensor of shape (...). The gradient, the cofactors, is exact for singular matrices
        too; the second derivative is not finite there.

    >>> print(gg.det([[2.0, 0.0], [5.0, 3.0]]))
    6.0
    """
    return xp.lib.linalg.det(as_inexact(x))


def _slogdet_vjp(xp, g, out, x):
    """By d logabsdet = Re tr(inv dx) and d sign = i sign Im tr(inv dx)."""
    scale = g[1]
    if x.dtype.kind == "c":
        scale = scale + 1j * xp.imag(g[0] * xp.conj(out[0]))
    # the identity replaces singular matrices: their gradient is infinite, or exactly 0 where the
    # cotangent is 0
    singular = xp.equal(out[0], 0)
    scale = xp.masked_divide(scale, xp.where(singular, 0.0, 1.0))
    stand_in = xp.where(xp.reshape(singular, (*singular.shape, 1, 1)), _identity(xp, x), x)
    return _scaled(xp, scale, adjoint(xp, xp.inv(stand_in)))


@square_op(
    [_slogdet_vjp],
    outputs=2,
    ref="numpy.linalg.slogdet",
    samples=calls(*_matrices(*_SQUARE), *_matrices(((2, 2),), shift=-2.0)),
)
def slogdet(xp, x, /):
    """Sign and logarithm of the absolute value of the determinant of square matrices.

    Returns:
        Two Tensors of shape (...): the sign (for complex matrices a number of absolute value
        1) and the logarithm; 0 and -inf for singular matrices. The gradient is infinite or NaN
        there, and 0 if nothing depends on the logarithm.

    >>> sign, logabsdet = gg.slogdet([[0.0, 1.0], [1.0, 0.0]])
    >>> print(sign, logabsdet)
    -1.0 0.0
    """
    sign, logabsdet = xp.lib.linalg.slogdet(as_inexact(x))
    return sign, logabsdet
