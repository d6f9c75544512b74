"""Functions of square matrices: exponential, logarithm, square root, polar factor.

The upper right block of a function of [[a, e], [0, a]] is its derivative at `a` along `e`
(N. Higham, "Functions of Matrices", 2008, theorem 3.6); the gradient is the derivative at the
adjoint of `a`. So `expm` and `logm` are their own rules, to any order, also where eigenvalues
are equal.
"""

import itertools
import math
import warnings

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import ArgumentError, ShapeError, SingularMatrixError
from gpugrad.ops.linalg.common import NO_MATRIX, STACKS, as_inexact, need_square, on_each, square_op
from gpugrad.ops.math.products import adjoint
from gpugrad.registry.record import op

_SHAPES = [(1, 1), (3, 3), (2, 2, 2), (0, 2, 2), (0, 0)]


def _samples(shift=0.0):
    def sampler(rng):
        for shape in _SHAPES:
            yield [uniform(rng, *shape, low=-1, high=1) + shift * np.eye(shape[-1])], {}

    return sampler


def _size(lib, x):
    """Largest column sum of each matrix, which must not be empty."""
    return lib.abs(x).sum(axis=-2).max(axis=-1)[..., None, None]


def _along(xp, name, a, e):
    """Derivative of a matrix function at `a` along `e`. It is linear in `e`."""
    norm = xp.vector_norm(xp.stop_gradient(e), axis=(-2, -1), keepdims=True, ord=1)
    norm = xp.where(norm == 0, 1, norm)  # else a large `e` would determine the accuracy
    e = e / norm
    top = xp.concat([a, e], axis=-1)
    low = xp.concat([xp.stop_gradient(e) * 0, a], axis=-1)
    out = getattr(xp, name)(xp.concat([top, low], axis=-2))
    n = a.shape[-1]
    return norm * xp.getitem(out, index=(Ellipsis, slice(0, n), slice(n, 2 * n)))


def _derivative(name):
    return lambda xp, g, x: _along(xp, name, adjoint(xp, x), g)


_PADE = [  # of the exponential, numerator of order 13: N. Higham, SIAM J. Matrix Anal. 26 (2005)
    math.comb(13, k) * math.factorial(26 - k) / math.factorial(26) for k in range(14)
]
_PADE_LIMIT = 5.371920351148152


@square_op([_derivative("expm")], samples=_samples(), ref="scipy.linalg.expm")
def expm(xp, x, /):
    """Exponential of square matrices: the sum of x^k / k!.

    Scaling and squaring with the Pade approximant of order 13, N. Higham, SIAM J. Matrix Anal.
    Appl. 26 (2005) 1179.

    >>> print(gg.linalg.expm([[0.0, 1.0], [0.0, 0.0]]))
    [[1. 1.]
     [0. 1.]]
    """
    need_square("expm", x)
    x, lib = as_inexact(x), xp.lib
    if not x.size:
        return x.copy()
    size = _size(lib, x)
    size = lib.where(lib.isfinite(size), size, 0)
    halvings = lib.ceil(lib.log2(lib.maximum(size / _PADE_LIMIT, 1)))
    x = x * 2**-halvings
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    b, one = _PADE, lib.eye(x.shape[-1], dtype=x.dtype)
    odd = b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + odd)
    even = b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + even
    out = lib.linalg.solve(even - odd, even + odd)
    for k in range(int(halvings.max())):
        out = lib.where(k < halvings, out @ out, out)
    return out


def _schur_roots(xp, name, x):
    """Square roots by SciPy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of singular matrices: some have a root
        root = xp.linalg.sqrtm(x)
    if root.dtype.kind == "c" and x.dtype.kind != "c":
        raise _no_real(name)
    return root


def _newton_roots(xp, name, x):
    """Square roots by the product form of the Denman-Beavers iteration, for CuPy.

    S. Cheng, N. Higham, C. Kenney, A. Laub, SIAM J. Matrix Anal. Appl. 22 (2001) 1112.
    """
    lib, n, eps = xp.lib, x.shape[-1], float(np.finfo(x.dtype).eps)
    one = lib.eye(n, dtype=x.dtype)
    m = root = x
    for _ in range(50):
        far = _size(lib, m - one)
        if not (far > 4 * n * eps).any():
            return root
        scale = lib.exp(lib.linalg.slogdet(m)[1] / (-2 * n))[..., None, None]
        scale = lib.where(far > 0.01, scale, 1).astype(far.dtype)
        inverse = lib.linalg.inv(m) / scale**2
        root = scale * root @ (one + inverse) / 2
        m = (one + (scale**2 * m + inverse) / 2) / 2
    if lib.isfinite(root).all():
        raise _no_real(name)
    raise _no_root(name)


def _no_real(name):
    return ArgumentError(
        f"{name}: a real matrix with a negative eigenvalue has a complex result. "
        "Convert it first, with gg.astype(x, 'complex128')."
    )


def _no_root(name):
    return SingularMatrixError(
        f"{name}: the matrix is singular: it has no square root, or none that can be computed. "
        "Add a small multiple of the identity, or, if it is symmetric, use gg.linalg.eigh."
    )


def _roots(xp, name, x):
    if not xp.lib.isfinite(x).all():
        raise ArgumentError(f"{name}: the matrix has elements that are inf or NaN.")
    out = (_schur_roots if xp is NUMPY else _newton_roots)(xp, name, x)
    if not xp.lib.isfinite(out).all():
        raise _no_root(name)
    return out


def _sqrtm_vjp(xp, g, out):
    root = adjoint(xp, out)
    return xp.solve_sylvester(root, root, g)


@square_op(
    [_sqrtm_vjp],
    samples=_samples(3.0),
    ref=on_each(lambda x: NUMPY.linalg.sqrtm(x) if x.size else x),
    errors=[
        ([-np.eye(2)], {}, ArgumentError, "sqrtm.*negative.*complex128"),
        ([np.eye(2, k=1)], {}, SingularMatrixError, "sqrtm.*singular"),
        ([np.full((2, 2), np.nan)], {}, ArgumentError, "sqrtm.*NaN"),
    ],
)
def sqrtm(xp, x, /):
    """Square root of square matrices: the one whose eigenvalues have no negative real part.

    Returns:
        Tensor of the shape of `x`. Its gradient is not finite where `x` is singular. Real
        matrices with a negative eigenvalue, and elements that are not finite, raise.

    >>> print(gg.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]))
    [[2. 0.]
     [0. 3.]]
    """
    need_square("sqrtm", x)
    x = as_inexact(x)
    return _roots(xp, "sqrtm", x) if x.size else x.copy()


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(7)
_LOG_LIMIT = 0.264  # where their partial fractions of log(1 + x) are exact to float64


@square_op(
    [_derivative("logm")],
    samples=_samples(3.0),
    ref=on_each(lambda x: NUMPY.linalg.logm(x) if x.size else x),
    errors=[
        ([-np.eye(2)], {}, ArgumentError, "logm.*negative.*complex128"),
        ([np.zeros((2, 2))], {}, SingularMatrixError, "logm.*singular"),
    ],
)
def logm(xp, x, /):
    """Logarithm of square matrices: the one whose eigenvalues have angles between -pi and pi.

    Square roots until the matrix is near the identity, then a Pade approximant in partial
    fractions: N. Higham, "Functions of Matrices" (2008), chapter 11. Real matrices with a
    negative eigenvalue, and elements that are not finite, raise.

    >>> print(gg.linalg.logm([[1.0, 1.0], [0.0, 1.0]]))
    [[0. 1.]
     [0. 0.]]
    """
    need_square("logm", x)
    x, lib = as_inexact(x), xp.lib
    if not x.size:
        return x.copy()
    one = lib.eye(x.shape[-1], dtype=x.dtype)
    scale = lib.ones_like(_size(lib, x))
    for k in itertools.count():
        far = ~(_size(lib, x - one) <= _LOG_LIMIT)
        if not far.any():
            break
        if k == 60:  # 2^60 roots of any number in float64 but 0 are near 1
            raise SingularMatrixError("logm: the matrix is singular, and has no logarithm.")
        x = lib.where(far, _roots(xp, "logm", x), x)
        scale = lib.where(far, 2 * scale, scale)
    d = x - one
    out = lib.zeros_like(x)
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        out = out + weight / 2 * lib.linalg.solve(one + (node + 1) / 2 * d, d)
    return scale * out


def _sylvester_adjoint(xp, g, a, b):
    """The solution of the adjoint equation, from which all gradients follow."""
    return xp.solve_sylvester(adjoint(xp, a), adjoint(xp, b), g)


def _sylvester_a(xp, g, out, a, b):
    return xp.sum_to(-xp.matmul(_sylvester_adjoint(xp, g, a, b), adjoint(xp, out)), a.shape)


def _sylvester_b(xp, g, out, a, b):
    return xp.sum_to(-xp.matmul(adjoint(xp, out), _sylvester_adjoint(xp, g, a, b)), b.shape)


def _sylvester_q(xp, g, a, b, q_shape):
    return xp.sum_to(_sylvester_adjoint(xp, g, a, b), q_shape)


def _sylvester_samples(rng):
    for a, b, q in (
        ((2, 2), (2, 2), (2, 2)),
        ((3, 3), (1, 1), (3, 1)),
        ((2, 2), (2, 2, 2), (2, 1, 2, 2)),
        ((0, 2, 2), (1, 1), (2, 1)),
    ):
        x, y = (uniform(rng, *s, low=-1, high=1) + 2 * np.eye(s[-1]) for s in (a, b))
        yield [x, y, uniform(rng, *q)], {}


def _sylvester_schur(xp, a, b, q):
    """By Schur decompositions: R. Bartels and G. Stewart, CACM 15 (1972) 820."""
    schur, out = xp.linalg.schur, np.empty_like(q)
    for i in np.ndindex(q.shape[:-2]):
        r, u = schur(a[i], check_finite=False)
        s, v = schur(b[i].conj().T, check_finite=False)
        (trsyl,) = xp.linalg.get_lapack_funcs(("trsyl",), (r, s, q[i]))
        y, scale, info = trsyl(r, s, u.conj().T @ q[i] @ v, tranb="C")
        if info:  # a perturbed equation was solved
            raise _no_solution()
        out[i] = u @ (scale * y) @ v.conj().T
    return out


def _sylvester_kronecker(xp, a, b, q):
    """One system of m n equations, for CuPy, which has no Schur decomposition."""
    lib, (m, n) = xp.lib, q.shape[-2:]
    left = a[..., :, None, :, None] * lib.eye(n, dtype=q.dtype)[:, None, :]
    right = lib.eye(m, dtype=q.dtype)[:, None, :, None] * b.swapaxes(-1, -2)[..., None, :, None, :]
    whole = (left + right).reshape(*q.shape[:-2], m * n, m * n)
    out = lib.linalg.solve(whole, q.reshape(*q.shape[:-2], m * n, 1)).reshape(q.shape)
    if not lib.isfinite(out).all() and lib.isfinite(whole).all() and lib.isfinite(q).all():
        raise _no_solution()
    return out


def _no_solution():
    return SingularMatrixError(
        "solve_sylvester: an eigenvalue of a is minus one of b, so there is no unique solution. "
        "Add a small multiple of the identity to one of them."
    )


@op(
    [_sylvester_a, _sylvester_b, _sylvester_q],
    ref=on_each(lambda a, b, q: NUMPY.linalg.solve_sylvester(a, b, q)),
    samples=_sylvester_samples,
    errors=[
        ([np.eye(2), -np.eye(2), np.eye(2)], {}, SingularMatrixError, "solve_sylvester.*minus"),
        ([np.eye(2), np.eye(3), np.eye(2)], {}, ShapeError, r"solve_sylvester.*\(3, 3\)"),
    ],
    **STACKS,
)
def solve_sylvester(xp, a, b, q, /):
    """Solution x of a @ x + x @ b = q.

    Args:
        a: array of shape (..., m, m).
        b: array of shape (..., n, n).
        q: array of shape (..., m, n). Stacks are broadcast.

    Returns:
        Tensor of shape (..., m, n). On a GPU it takes memory for (m n)^2 numbers.

    >>> print(gg.linalg.solve_sylvester([[1.0]], [[2.0]], [[6.0]]))
    [[2.]]
    """
    square = (q.shape[-2:-1] * 2, q.shape[-1:] * 2)
    if min(a.ndim, b.ndim, q.ndim) < 2 or (a.shape[-2:], b.shape[-2:]) != square:
        raise ShapeError(
            f"solve_sylvester: a {a.shape}, b {b.shape} and q {q.shape} are not (..., m, m), "
            "(..., n, n) and (..., m, n)."
        )
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], q.shape[:-2])
    dtype = xp.lib.result_type(as_inexact(a), as_inexact(b), as_inexact(q))
    a, b, q = (
        xp.lib.broadcast_to(x.astype(dtype, copy=False), (*stack, *x.shape[-2:])) for x in (a, b, q)
    )
    if not q.size:
        return q.copy()
    return (_sylvester_schur if xp is NUMPY else _sylvester_kronecker)(xp, a, b, q)


def _polar_samples(rng):
    for k, shape in enumerate(((3, 3), (3, 2), (2, 3), (2, 2, 2), (0, 2, 2))):
        x = uniform(rng, *shape)
        x[..., : min(shape[-2:]), : min(shape[-2:])] += 2 * np.eye(min(shape[-2:]))
        yield [x], {"side": "left" if k % 2 else "right"}


@op(
    outputs=2,
    kinds="fc",
    samples=_polar_samples,
    ref=on_each(lambda x, side="right": NUMPY.linalg.polar(x, side)),
    errors=[NO_MATRIX, ([np.eye(2)], {"side": "both"}, ArgumentError, "polar.*'both'")],
)
def polar(xp, x, /, side="right"):
    """Polar decomposition: orthonormal U and positive semidefinite P with x = U P, or x = P U.

    Args:
        x: array of shape (..., m, n).
        side: ``"right"``: x = U P, P is (..., n, n). ``"left"``: x = P U, P is (..., m, m).

    Returns:
        Two Tensors: U, of the shape of `x`, and P. The gradient is right where singular values
        are equal, too.

    >>> u, p = gg.linalg.polar([[0.0, -2.0], [3.0, 0.0]])
    >>> print(p)
    [[3. 0.]
     [0. 2.]]
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"polar: side={side!r} is neither 'left' nor 'right'.")
    u, _, vh = xp.svd(x, full_matrices=False)
    u = xp.matmul(u, vh)
    if side == "right":
        return u, xp.matmul(adjoint(xp, u), x)
    return u, xp.matmul(x, adjoint(xp, u))
