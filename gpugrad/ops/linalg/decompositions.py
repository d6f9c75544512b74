"""QR, eigenvalues and singular values of matrices, and of stacks of them.

Where a decomposition leaves a rotation of its vectors free, the vectors have no derivative. A
function that does not depend on the rotation (a projector, a sum of equal eigenvalues) has one,
and gets it:

- Eigenvalues or singular values that are equal up to rounding count as equal; the rotation of
  their vectors into each other is left out.
- Complex vectors may be multiplied by a phase. LAPACK makes one component of each real; where it
  does, the derivative is the one of these vectors, otherwise the part along the phase is left out.
- The vectors that ``full_matrices=True`` or ``mode="complete"`` adds turn into each other as
  little as possible.

Formulas: M. Giles, "Collected matrix derivative results" (2008); for complex singular vectors
Z.-Q. Wan and S.-X. Zhang, arXiv:1909.02659.
"""

import math

import numpy as np
from ml_dtypes import finfo  # knows bfloat16, too

from gpugrad.autodiff.backward import zeros
from gpugrad.core.samples import shaped, uniform
from gpugrad.errors import ArgumentError
from gpugrad.kernels.cpu import lapack
from gpugrad.ops.arrays.shape import need_matrices
from gpugrad.ops.linalg.common import NO_MATRIX, NOT_SQUARE, STACKS, as_inexact, square_op
from gpugrad.ops.math.products import adjoint
from gpugrad.registry.record import op


def _columns(first, last=None):
    return {"index": (Ellipsis, slice(first, last))}


def _skew(xp, x):
    """The skew-Hermitian part."""
    return (x - adjoint(xp, x)) / 2


def _diagonal(xp, x, shape):
    """Matrices of a shape with `x` on their diagonals."""
    return xp.diagonal_scatter(x, offset=0, shape=shape)


def _divided(xp, x, d):
    """The quotients x / d, and 0 where d is 0."""
    is_zero = d == 0
    return xp.where(is_zero, 0, x) / xp.where(is_zero, 1, d)


def _rounding(xp, values):
    """The size of rounding errors in differences of eigenvalues or singular values."""
    n = values.shape[-1]
    if not n:
        return 0.0
    size = xp.expand_dims(xp.max(xp.abs(values), axis=-1, keepdims=True), axis=-1)
    return 10 * math.sqrt(n) * float(finfo(size.dtype).eps) * size


def _gaps(xp, values):
    """The pairwise differences of values, exactly 0 where they are 0 up to rounding."""
    d = xp.expand_dims(values, axis=-2) - xp.expand_dims(values, axis=-1)
    return xp.where(xp.abs(d) <= _rounding(xp, values), 0, d)


def _without_phase(xp, vectors, gradients):
    """Gradients by complex vectors without the part along their phase.

    LAPACK rotates each column of `vectors` (the columns of several arrays share the phase) so
    that one component is real. A motion that would make it complex is rotated back.
    """
    pairs = list(zip(vectors, gradients, strict=True))
    along = sum(xp.imag(xp.sum(xp.conj(v) * g, axis=-2, keepdims=True)) for v, g in pairs)
    rounding = 16 * float(finfo(vectors[0].dtype).eps)
    real = [
        xp.where((xp.abs(xp.imag(v)) <= rounding) & (xp.abs(xp.real(v)) > 1e-3), xp.real(v), 0)
        for v in vectors
    ]
    total = sum(xp.sum(r * r, axis=-2, keepdims=True) for r in real)
    is_free = total == 0
    scale = 1j * (xp.where(is_free, 0, along) / xp.where(is_free, 1, total))
    return [g - scale * r for r, g in zip(real, gradients, strict=True)]


def _first(xp, v, g, k):
    """The first `k` orthonormal columns, and the gradient by all in terms of these.

    The other columns are orthogonal to them, so they move by dv2 = -v1 dv1^H v2.
    """
    if v.shape[-1] == k:
        return v, g
    v1, v2 = xp.getitem(v, **_columns(0, k)), xp.getitem(v, **_columns(k))
    g1, g2 = xp.getitem(g, **_columns(0, k)), xp.getitem(g, **_columns(k))
    return v1, g1 - xp.matmul(v2, xp.matmul(adjoint(xp, g2), v1))


# ---- QR ----------------------------------------------------------------------------------


def _qr_square(xp, q, r, gq, gr):
    """The gradient where r is square: S. Walter and L. Lehmann, arXiv:1001.1654."""
    p = xp.matmul(gr, adjoint(xp, r)) - xp.matmul(adjoint(xp, q), gq)
    p = (xp.triu(p) + xp.triu(p, k=1)) / 2  # upper triangle, half of the diagonal
    y = gq + xp.matmul(q, p + adjoint(xp, p))
    return adjoint(xp, xp.solve_triangular(r, adjoint(xp, y), lower=False))


def _qr_vjp(xp, g, out, mode):
    (gq, gr), (q, r) = g, out
    n = r.shape[-1]
    k = min(q.shape[-2], n)
    q, gq = _first(xp, q, gq, k)
    rows = {"index": (Ellipsis, slice(0, k), slice(None))}
    r, gr = xp.getitem(r, **rows), xp.getitem(gr, **rows)
    if n == k:
        return _qr_square(xp, q, r, gq, gr)
    # x = [x1 x2] has the q of x1, and r = [r1 r2] with r2 = q^H x2
    r1, r2 = xp.getitem(r, **_columns(0, k)), xp.getitem(r, **_columns(k))
    gr1, gr2 = xp.getitem(gr, **_columns(0, k)), xp.getitem(gr, **_columns(k))
    gq = gq + xp.matmul(q, xp.matmul(r2, adjoint(xp, gr2)))
    return xp.concat([_qr_square(xp, q, r1, gq, gr1), xp.matmul(q, gr2)], axis=-1)


def _qr_samples(rng):
    shapes = ((3, 2), (2, 2), (2, 4), (2, 3, 2), (0, 2, 2), (2, 0))
    for k, shape in enumerate(shapes):
        x = uniform(rng, *shape)
        x[..., : min(shape[-2:]), : min(shape[-2:])] += 2 * np.eye(min(shape[-2:]))
        yield [x], {"mode": "complete" if k == 1 else "reduced"}
    # the third column of q is free: integers, so that no finite differences are taken
    yield [np.array([[1, 2], [3, 4], [5, 7]])], {"mode": "complete"}


@op(
    [_qr_vjp],
    outputs=2,
    ref="numpy.linalg.qr",
    samples=_qr_samples,
    errors=[NO_MATRIX, ([np.eye(2)], {"mode": "full"}, ArgumentError, "qr.*'full'")],
    **STACKS,
)
def qr(xp, x, /, *, mode="reduced"):
    """The op behind `gg.linalg.qr`."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(
            f"qr: mode={mode!r} is neither 'reduced' nor 'complete' (gg.linalg.qr has 'r', too)."
        )
    need_matrices("qr", x)
    q, r = xp.lib.linalg.qr(as_inexact(x), mode=mode)
    return q, r


# ---- eigenvalues of Hermitian matrices ---------------------------------------------------


def _eigh_vjp(xp, g, out):
    """With m = v^H gv, v (diag(gw) + skew(m) / (w_j - w_i)) v^H."""
    (gw, gv), (w, v) = g, out
    if v.dtype.kind == "c":
        (gv,) = _without_phase(xp, [v], [gv])
    vh = adjoint(xp, v)
    turn = _divided(xp, _skew(xp, xp.matmul(vh, gv)), _gaps(xp, w))
    return xp.matmul(v, xp.matmul(turn + _diagonal(xp, gw, v.shape), vh))


def _hermitian_samples(rng):
    for k, shape in enumerate(((1, 1), (3, 3), (2, 2, 2), (0, 2, 2), (0, 0))):
        x = uniform(rng, *shape)
        yield [x + x.swapaxes(-1, -2) + np.diag(2.0 * np.arange(shape[-1]))], {"UPLO": "LU"[k % 2]}


_HERMITIAN = STACKS | {
    "samples": _hermitian_samples,
    "errors": [NOT_SQUARE, ([np.eye(2)], {"UPLO": "X"}, ArgumentError, "UPLO='X'")],
}


def _check_triangle(name, UPLO):
    if UPLO not in ("L", "U"):
        raise ArgumentError(f"{name}: UPLO={UPLO!r} is neither 'L' (lower) nor 'U' (upper).")


@op([_eigh_vjp], outputs=2, ref="numpy.linalg.eigh", **_HERMITIAN)
def eigh(xp, x, /, *, UPLO="L"):
    """Eigenvalues and eigenvectors of symmetric (Hermitian) matrices.

    Args:
        x: array of shape (..., n, n). One triangle is read; the gradient is symmetric
            (Hermitian) all the same, as in torch, JAX and TensorFlow.
        UPLO: ``"L"`` for the lower triangle, ``"U"`` for the upper one.

    Returns:
        Two Tensors: the real eigenvalues in ascending order, of shape (..., n), and (..., n, n)
        with an eigenvector of length 1 in each column. Where eigenvalues are equal, the gradient is
        right for functions that do not change when their vectors rotate into each other or these
        eigenvalues separate. V diag(h(w)) V^H does change, and loses a part of its gradient:
        `expm`, `logm`, `sqrtm` and `matrix_power` are right everywhere.

    >>> w, v = gg.linalg.eigh([[2.0, 1.0], [1.0, 2.0]])
    >>> print(w)
    [1. 3.]
    """
    _check_triangle("eigh", UPLO)
    w, v = xp.lib.linalg.eigh(as_inexact(x), UPLO=UPLO)
    return w, v


def _eigvalsh_vjp(xp, g, x, UPLO):
    _, v = xp.eigh(x, UPLO=UPLO)
    return xp.matmul(v * xp.expand_dims(g, axis=-2), adjoint(xp, v))


@op([_eigvalsh_vjp], ref="numpy.linalg.eigvalsh", **_HERMITIAN)
def eigvalsh(xp, x, /, *, UPLO="L"):
    """Eigenvalues of symmetric (Hermitian) matrices.

    Args:
        x: array of shape (..., n, n); one triangle is read. The gradient is symmetric
            (Hermitian); the backward pass computes the vectors that it needs.
        UPLO: ``"L"`` for the lower triangle, ``"U"`` for the upper one.

    Returns:
        Tensor of real numbers of shape (..., n), in ascending order.

    >>> print(gg.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]))
    [1. 3.]
    """
    _check_triangle("eigvalsh", UPLO)
    return xp.lib.linalg.eigvalsh(as_inexact(x), UPLO=UPLO)


# ---- eigenvalues of any matrix -----------------------------------------------------------


def _eig_vjp(xp, g, out, x_dtype):
    """v^-H (diag(gw) + (v^H gv - v^H v Re diag(v^H gv)) / conj(w_j - w_i)) v^H."""
    (gw, gv), (w, v) = g, out
    (gv,) = _without_phase(xp, [v], [gv])
    vh = adjoint(xp, v)
    stretch = xp.real(xp.sum(xp.conj(v) * gv, axis=-2, keepdims=True))  # their length is 1
    turn = _divided(xp, xp.matmul(vh, gv - v * stretch), xp.conj(_gaps(xp, w)))
    y = xp.solve(vh, xp.matmul(turn + _diagonal(xp, gw, v.shape), vh))
    return y if x_dtype.kind == "c" else xp.real(y)


def _eig_ref(x):
    w, v = np.linalg.eig(x)
    return w.astype(np.complex128), v.astype(np.complex128)


def _eig_samples(rng):
    for shape in ((1, 1), (3, 3), (2, 2, 2), (0, 2, 2), (0, 0)):
        yield [uniform(rng, *shape) + np.diag(2.0 * np.arange(shape[-1]))], {}
    yield [np.array([[1.0, 2.0], [-3.0, 0.5]])], {}  # a conjugate pair


@square_op([_eig_vjp], outputs=2, ref=_eig_ref, samples=_eig_samples)
def eig(xp, x, /):
    """Eigenvalues and eigenvectors of square matrices.

    Returns:
        Two complex Tensors: the eigenvalues, in no order, of shape (..., n), and (..., n, n)
        with an eigenvector of length 1 in each column. Where eigenvalues are equal, the
        gradient is as for `eigh`. Without n independent eigenvectors it raises
        SingularMatrixError.

    >>> w, v = gg.linalg.eig([[2.0, 0.0], [0.0, 3.0]])
    >>> print(w)
    [2.+0.j 3.+0.j]
    """
    w, v = xp.lib.linalg.eig(as_inexact(x))
    dtype = np.result_type(v.dtype, np.complex64)  # NumPy's are real where all eigenvalues are
    return w.astype(dtype, copy=False), v.astype(dtype, copy=False)


@square_op(ref=lambda x: _eig_ref(x)[0], samples=_eig_samples)
def eigvals(xp, x, /):
    """Eigenvalues of square matrices.

    Returns:
        Complex Tensor of shape (..., n), in the order of `eig`, with its gradient.

    >>> print(gg.linalg.eigvals([[2.0, 1.0], [0.0, 3.0]]))
    [2.+0.j 3.+0.j]
    """
    return xp.eig(x)[0]  # LAPACK's eigenvalues alone may come in another order


# ---- singular values ---------------------------------------------------------------------


def _svd_vjp(xp, g, out):
    """By P = u^H dx v, with a and b the skew parts of u^H gu and v^H gv.

    From P = W s + ds - s Z, W = u^H du, Z = v^H dv follows W + Z = (P + P^H) / (s_j - s_i)
    and W - Z = (P - P^H) / (s_j + s_i).
    """
    (gu, gs, gvh), (u, s, vh) = g, out
    k = s.shape[-1]
    if gu is None and gvh is None:
        vh = xp.getitem(vh, index=(Ellipsis, slice(0, k), slice(None)))
        return xp.matmul(xp.getitem(u, **_columns(0, k)) * xp.expand_dims(gs, axis=-2), vh)
    gu = zeros(xp, u, u.shape, u.dtype) if gu is None else gu
    gvh = zeros(xp, vh, vh.shape, vh.dtype) if gvh is None else gvh
    v, gv = adjoint(xp, vh), adjoint(xp, gvh)
    u, gu = _first(xp, u, gu, k)
    v, gv = _first(xp, v, gv, k)
    if u.dtype.kind == "c":
        gu, gv = _without_phase(xp, [u, v], [gu, gv])
    across, down = xp.expand_dims(s, axis=-2), xp.expand_dims(s, axis=-1)
    ua, vb = xp.matmul(adjoint(xp, u), gu), xp.matmul(adjoint(xp, v), gv)
    a, b = _skew(xp, ua), _skew(xp, vb)
    # next to two values of 0, gu and gv are as small as the values: the quotients are exact
    gaps = xp.where(across + down > _rounding(xp, s), _gaps(xp, s), across - down)
    core = _diagonal(xp, gs, a.shape)
    core = core + _divided(xp, a + b, gaps) + _divided(xp, a - b, across + down)
    left, right = xp.matmul(u, core), adjoint(xp, v)
    if u.shape[-2] > k:  # motion out of the space of u
        left = left + _divided(xp, gu - xp.matmul(u, ua), across)
    y = xp.matmul(left, right)
    if v.shape[-2] > k:
        y = y + xp.matmul(u, adjoint(xp, _divided(xp, gv - xp.matmul(v, vb), across)))
    return y


def _svd_samples(rng):
    for shape in ((3, 3), (3, 2), (2, 3), (2, 2, 2), (0, 2, 2), (2, 0)):
        x = uniform(rng, *shape)
        k = min(shape[-2:])
        x[..., :k, :k] += np.diag(2.0 * np.arange(1, k + 1))
        yield [x], {"full_matrices": shape[-1] == shape[-2] > 2}
    # the third column of u is free: integers, so that no finite differences are taken
    yield [np.array([[1, 2], [3, 4], [5, 7]])], {}


@op(
    [_svd_vjp],
    outputs=3,
    unused=(0, 2),
    cpu=lapack.svd,
    large=lapack.LEAST_SIZE,
    ref=lambda x, **how: tuple(np.linalg.svd(x, **how)),
    samples=_svd_samples,
    errors=[NO_MATRIX, ([np.full((2, 2), np.nan)], {}, ArgumentError, "svd.*converge")],
    **STACKS,
)
def svd(xp, x, /, *, full_matrices=True):
    """Singular values and vectors of matrices: x = U diag(S) Vh.

    Args:
        x: array of shape (..., m, n); k is the smaller of m and n.
        full_matrices: whether U is (..., m, m) and Vh (..., n, n), or only (..., m, k) and
            (..., k, n).

    Returns:
        Three Tensors: U with orthonormal columns, S of shape (..., k), not negative and in
        descending order, and Vh with orthonormal rows. Where singular values are equal, or 0,
        and for the vectors that `full_matrices` adds, the gradient is right for functions that
        depend neither on the choice of the vectors nor on how these values part. U diag(h(S)) Vh
        loses a part of its gradient there: `pinv` and `polar` do not. NaN or inf raise on the
        CPU; a GPU returns NaN.

    >>> u, s, vh = gg.linalg.svd([[3.0, 0.0], [0.0, -2.0]])
    >>> print(s)
    [3. 2.]
    """
    need_matrices("svd", x)
    u, s, vh = xp.lib.linalg.svd(as_inexact(x), full_matrices=full_matrices)
    return u, s, vh


def _svdvals_vjp(xp, g, x):
    u, _, vh = xp.svd(x, full_matrices=False)
    return xp.matmul(u * xp.expand_dims(g, axis=-2), vh)


@op(
    [_svdvals_vjp],
    ref="numpy.linalg.svdvals",
    samples=shaped([(3, 3)], [(2, 3)], [(2, 3, 2)], [(0, 2, 2)], [(0, 2)]),
    errors=[NO_MATRIX],
    **STACKS,
)
def svdvals(xp, x, /):
    """Singular values of matrices.

    Args:
        x: array of shape (..., m, n). The backward pass computes the vectors that it needs.

    Returns:
        Tensor of real numbers of shape (..., min(m, n)), not negative and in descending order.

    >>> print(gg.linalg.svdvals([[3.0, 0.0], [0.0, -2.0]]))
    [3. 2.]
    """
    need_matrices("svdvals", x)
    return xp.lib.linalg.svdvals(as_inexact(x))
