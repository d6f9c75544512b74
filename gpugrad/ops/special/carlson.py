"""Carlson's symmetric elliptic integrals, with derivatives by all arguments (DLMF 19.16 to 19.18).

They and their derivatives are integrals of one family, closed under differentiation:
`carlson_moment`. SciPy computes the functions, on the CPU only.
"""

import numpy as np

from gpugrad.errors import ShapeError
from gpugrad.ops.special.common import double, need_real, scipy_op
from gpugrad.ops.special.incomplete_gamma import BLOCK, add_node_axis
from gpugrad.ops.special.primitives import few
from gpugrad.registry.record import elementwise

_NODES = 240


def _integrand(t, x, y, z, p, i, j, k, n):
    roots = (t + x) ** (-0.5 - i) * (t + y) ** (-0.5 - j) * (t + z) ** (-0.5 - k)
    return roots * (t + p) ** -n


def _carlson_moment(xp, x, y, z, p, i, j, k, n):
    """The trapezoidal rule for log(t), which converges geometrically in the step.

    Its ends are where the integrand has fallen by 1e-16 below the least, and beyond the largest,
    of the arguments.
    """
    lib = xp.lib
    need_real(xp, i, j, k, n)
    x, y, z, p, dtype = double(xp, x, y, z, p)
    args = lib.broadcast_arrays(x, y, z, p)
    least = lib.log(lib.maximum(_extreme(lib.minimum, args), 1e-12)) - 40
    most = lib.log(lib.maximum(_extreme(lib.maximum, args), 1e-12)) + 80
    step = (most - least) / _NODES
    *args, least, wide, i, j, k, n = add_node_axis(
        *args, least, step, *(1.0 * lib.asarray(q) for q in (i, j, k, n))
    )
    total, some = 0.0, max(1, BLOCK // max(1, step.size))
    for first in range(0, _NODES + 1, some):
        nodes = lib.arange(first, min(first + some, _NODES + 1))
        t = lib.exp(least + nodes * wide)
        total = total + (t * _integrand(t, *args, i, j, k, n)).sum(axis=-1)
    return lib.asarray(step * total).astype(dtype)


def _extreme(pick, args):
    out = args[0]
    for a in args[1:]:
        out = pick(out, a)
    return out


def _moment_ref(x, y, z, p, i, j, k, n):
    from scipy.integrate import quad

    def one(*args):
        return quad(lambda u: _integrand(np.exp(u), *args) * np.exp(u), -60, 80, limit=400)[0]

    return np.vectorize(one, otypes=[float])(x, y, z, p, i, j, k, n)


def _moment_samples(rng):
    for shape, orders in (((3,), (0, 0, 0, 1)), ((), (1, 0, 1, 0)), ((0, 2), (0, 1, 0, 1))):
        yield [*(np.asarray(rng.uniform(0.5, 3, shape)) for _ in range(4)), *orders], {}


carlson_moment = elementwise(
    "carlson_moment(x, y, z, p, i, j, k, n)",
    forward=_carlson_moment,
    ref=_moment_ref,
    vjp=[
        lambda xp, g, x, y, z, p, i, j, k, n: (
            -(0.5 + i) * g * xp.carlson_moment(x, y, z, p, i + 1, j, k, n)
        ),
        lambda xp, g, x, y, z, p, i, j, k, n: (
            -(0.5 + j) * g * xp.carlson_moment(x, y, z, p, i, j + 1, k, n)
        ),
        lambda xp, g, x, y, z, p, i, j, k, n: (
            -(0.5 + k) * g * xp.carlson_moment(x, y, z, p, i, j, k + 1, n)
        ),
        lambda xp, g, x, y, z, p, i, j, k, n: (
            -n * g * xp.carlson_moment(x, y, z, p, i, j, k, n + 1)
        ),
        None,
        None,
        None,
        None,
    ],
    samples=_moment_samples,
    errors=[([np.ones(2), np.ones(3), 1.0, 1.0, 0, 0, 0, 1], {}, ShapeError, r"\(2,\).*\(3,\)")],
    doc="Integral of (t+x)^(-1/2-i) (t+y)^(-1/2-j) (t+z)^(-1/2-k) (t+p)^(-n) for positive t.\n\n"
    "`i`, `j`, `k` and `n` are integers. The arguments are positive; one or two may be 0 where the "
    "integral exists.",
    example=("1.0, 1.0, 1.0, 1.0, 0, 0, 0, 0", "2.0"),
    captures=True,
)


def _by_symmetry(factor, own):
    """Partial derivatives of a function that is symmetric in x, y and z."""
    orders = np.eye(3, dtype=int).tolist()

    def partial(k):
        return lambda xp, x, y, z: factor * own(xp, (x, y, z), *orders[k])

    return [partial(k) for k in range(3)]


_POSITIVE = {"samples": few(*[(0.5, 3)] * 3), "singular": True}
_REAL = " Gradients are those of positive real arguments."


elliprf = scipy_op(
    "elliprf(x, y, z)",
    *_by_symmetry(-0.25, lambda xp, args, i, j, k: xp.carlson_moment(*args, 1.0, i, j, k, 0)),
    **_POSITIVE,
)(
    doc=f"Carlson's elliptic integral of the first kind.{_REAL}",
    example=("1.0, [1.0, 4.0], 1.0", "[1.       0.760346]"),
)
elliprg = scipy_op(
    "elliprg(x, y, z)",
    *_by_symmetry(
        0.125,
        lambda xp, args, i, j, k: (
            xp.carlson_moment(*args, 1.0, 0, 0, 0, 0)
            - (i * args[0] + j * args[1] + k * args[2]) * xp.carlson_moment(*args, 1.0, i, j, k, 0)
        ),
    ),
    **_POSITIVE,
)(
    doc=f"Carlson's elliptic integral of the second kind, symmetric in its arguments.{_REAL}",
    example=("1.0, [1.0, 4.0], 1.0", "[1.       1.380173]"),
)
elliprd = scipy_op(
    "elliprd(x, y, z)",
    lambda xp, x, y, z: -0.75 * xp.carlson_moment(x, y, z, 1.0, 1, 0, 1, 0),
    lambda xp, x, y, z: -0.75 * xp.carlson_moment(x, y, z, 1.0, 0, 1, 1, 0),
    lambda xp, x, y, z: -2.25 * xp.carlson_moment(x, y, z, 1.0, 0, 0, 2, 0),
    **_POSITIVE,
)(
    doc=f"Carlson's elliptic integral of the second kind, symmetric in `x` and `y`.{_REAL}",
    example=("1.0, [1.0, 4.0], 1.0", "[1.       0.619827]"),
)
elliprj = scipy_op(
    "elliprj(x, y, z, p)",
    lambda xp, x, y, z, p: -0.75 * xp.carlson_moment(x, y, z, p, 1, 0, 0, 1),
    lambda xp, x, y, z, p: -0.75 * xp.carlson_moment(x, y, z, p, 0, 1, 0, 1),
    lambda xp, x, y, z, p: -0.75 * xp.carlson_moment(x, y, z, p, 0, 0, 1, 1),
    lambda xp, x, y, z, p: -1.5 * xp.carlson_moment(x, y, z, p, 0, 0, 0, 2),
    samples=few(*[(0.5, 3)] * 4),
    errors=[([np.ones(2), np.ones(3), 1.0, 1.0], {}, ShapeError, r"\(2,\).*\(3,\)")],
    singular=True,
)(
    doc=f"Carlson's elliptic integral of the third kind, symmetric in all but `p`.{_REAL}",
    example=("1.0, [1.0, 4.0], 1.0, 2.0", "[0.6438055  0.41136226]"),
)
elliprc = scipy_op(
    "elliprc(x, y)",
    lambda xp, x, y: -0.25 * xp.carlson_moment(x, y, y, 1.0, 1, 0, 0, 0),
    lambda xp, x, y: -0.5 * xp.carlson_moment(x, y, y, 1.0, 0, 1, 0, 0),
    samples=few(*[(0.5, 3)] * 2),
    singular=True,
)(
    doc=f"Carlson's degenerate elliptic integral, elliprf(x, y, y).{_REAL}",
    example=("1.0, [1.0, 4.0]", "[1.        0.6045998]"),
)
