"""Determinants and adjugates of matrices and stacks of them.

Formulas: M. Giles, "Collected matrix derivative results" (2008). For complex matrices
the transpose becomes the conjugate transpose.
"""

import numpy as np

from gpugrad.core.samples import calls
from gpugrad.ops.linalg.common import SQUARE, as_inexact, identity, matrices, square_op
from gpugrad.ops.math.products import adjoint
from gpugrad.registry.rules import conjugate


def _scaled(xp, g, x):
    """Each matrix times its number."""
    return xp.reshape(g, (*g.shape, 1, 1)) * x


def _adjugate_vjp(xp, g, out, x):
    """From adj(x) = det(x) inv(x) follows d adj = (tr(adj dx) adj - adj dx adj) / det."""
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


@square_op([lambda xp, g, x: _scaled(xp, g, adjoint(xp, xp.adjugate(x)))], ref="numpy.linalg.det")
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
    stand_in = xp.where(xp.reshape(singular, (*singular.shape, 1, 1)), identity(xp, x), x)
    return _scaled(xp, scale, adjoint(xp, xp.inv(stand_in)))


@square_op(
    [_slogdet_vjp],
    outputs=2,
    ref="numpy.linalg.slogdet",
    samples=calls(*matrices(*SQUARE), *matrices(((2, 2),), shift=-2.0)),
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
