"""Parameters of distributions from probabilities, and tails of Kolmogorov's distribution.

Each inverse solves F(parameters) = p. If F has the slope F_k by the parameter that is sought, its
derivative by p is 1 / F_k, and by another parameter -F_j / F_k: implicit differentiation. SciPy
solves on the CPU; CuPy lacks these functions.
"""

import math

from gpugrad.core.samples import grid
from gpugrad.ops.special.common import scipy_op
from gpugrad.ops.special.distributions import _log_density_t, _stdtr_df
from gpugrad.ops.special.primitives import every, few, primitive

_POSITIVE, _INSIDE = (0.6, 3), (0.2, 0.8)


def _beta(xp, a, b, x):
    """The partial derivatives of betainc(a, b, x)."""
    return (
        xp.betainc_grad_a(a, b, x),
        xp.betainc_grad_b(a, b, x),
        xp.exp(xp.xlogy(a - 1, x) + xp.xlog1py(b - 1, -x) - xp.betaln(a, b)),
    )


def _gamma(xp, a, x):
    """The partial derivatives of gammainc(a, x)."""
    return xp.gammainc_grad_a(a, x), xp.exp(xp.xlogy(a - 1, x) - x - xp.gammaln(a))


def _inverse(signature, slopes, doc, example, *domains):
    """An op with the gradients by all arguments, ``slopes(xp, out, *args)``."""
    return primitive(
        signature,
        every(signature, slopes),
        doc,
        "Tensor of the broadcast shape.",
        example,
        samples=few(*domains),
    )


def _btdtria(xp, out, p, b, x):
    by_a, by_b, by_x = _beta(xp, out, b, x)
    return 1 / by_a, -by_b / by_a, -by_x / by_a


def _btdtrib(xp, out, a, p, x):
    by_a, by_b, by_x = _beta(xp, a, out, x)
    return -by_a / by_b, 1 / by_b, -by_x / by_b


def _bdtrik(xp, out, y, n, p):
    """As y = 1 - betainc(k + 1, n - k, p)."""
    by_a, by_b, by_x = _beta(xp, out + 1, n - out, p)
    by_k = by_a - by_b
    return -1 / by_k, -by_b / by_k, -by_x / by_k


def _bdtrin(xp, out, k, y, p):
    by_a, by_b, by_x = _beta(xp, k + 1, out - k, p)
    return -(by_a - by_b) / by_b, -1 / by_b, -by_x / by_b


def _nbdtrik(xp, out, y, n, p):
    """As y = betainc(n, k + 1, p)."""
    by_a, by_b, by_x = _beta(xp, n, out + 1, p)
    return 1 / by_b, -by_a / by_b, -by_x / by_b


def _nbdtrin(xp, out, k, y, p):
    by_a, by_b, by_x = _beta(xp, out, k + 1, p)
    return -by_b / by_a, 1 / by_a, -by_x / by_a


def _pdtrik(xp, out, p, m):
    by_a, by_x = _gamma(xp, out + 1, m)
    return -1 / by_a, -by_x / by_a


def _chdtriv(xp, out, p, x):
    by_a, by_x = _gamma(xp, 0.5 * out, 0.5 * x)
    return 2 / by_a, -by_x / by_a


def _gdtrib(xp, out, a, p, x):
    by_b, by_x = _gamma(xp, out, a * x)
    return -by_x * x / by_b, 1 / by_b, -by_x * a / by_b


def _fdtridfd(xp, out, dfn, p, x):
    total = dfn * x + out
    by_a, by_b, by_share = _beta(xp, 0.5 * dfn, 0.5 * out, dfn * x / total)
    by_dfd = 0.5 * by_b - by_share * dfn * x / total**2
    by_dfn = 0.5 * by_a + by_share * x * out / total**2
    return -by_dfn / by_dfd, 1 / by_dfd, -by_share * dfn * out / total**2 / by_dfd


def _stdtridf(xp, out, p, t):
    by_df = _stdtr_df(xp, out, t)
    return 1 / by_df, -xp.exp(_log_density_t(xp, out, t)) / by_df


_A = "The parameter"

btdtria = _inverse(
    "btdtria(p, b, x)",
    _btdtria,
    f"{_A} `a` for which betainc(a, b, x) is `p`.",
    ("0.5, 2.0, 0.5", "2.0"),
    _INSIDE,
    _POSITIVE,
    _INSIDE,
)
btdtrib = _inverse(
    "btdtrib(a, p, x)",
    _btdtrib,
    f"{_A} `b` for which betainc(a, b, x) is `p`.",
    ("2.0, 0.5, 0.5", "2.0"),
    _POSITIVE,
    _INSIDE,
    _INSIDE,
)
bdtrik = _inverse(
    "bdtrik(y, n, p)",
    _bdtrik,
    "The number of successes `k`, not rounded, for which bdtr(k, n, p) is `y`.",
    ("0.75, 2.0, 0.5", "1.0"),
    (0.5, 0.8),
    (4, 6),
    (0.4, 0.6),
)
bdtrin = _inverse(
    "bdtrin(k, y, p)",
    _bdtrin,
    "The number of trials `n`, not rounded, for which bdtr(k, n, p) is `y`.",
    ("1.0, 0.75, 0.5", "2.0"),
    (1, 3),
    _INSIDE,
    (0.4, 0.6),
)
nbdtrik = _inverse(
    "nbdtrik(y, n, p)",
    _nbdtrik,
    "The number of failures `k`, not rounded, for which nbdtr(k, n, p) is `y`.",
    ("0.75, 1.0, 0.5", "1.0"),
    (0.6, 0.8),
    (1, 3),
    (0.4, 0.6),
)
nbdtrin = _inverse(
    "nbdtrin(k, y, p)",
    _nbdtrin,
    "The number of successes `n`, not rounded, for which nbdtr(k, n, p) is `y`.",
    ("1.0, 0.75, 0.5", "1.0"),
    (1, 3),
    _INSIDE,
    (0.4, 0.6),
)
pdtrik = _inverse(
    "pdtrik(p, m)",
    _pdtrik,
    "The number of events `k`, not rounded, for which pdtr(k, m) is `p`.",
    ("0.75, 1.0", "1.0525866"),
    (0.6, 0.8),
    (1, 3),
)
chdtriv = _inverse(
    "chdtriv(p, x)",
    _chdtriv,
    "The degrees of freedom `v` for which chdtr(v, x) is `p`.",
    ("0.5, 1.0", "1.5971476"),
    _INSIDE,
    _POSITIVE,
)
gdtrib = _inverse(
    "gdtrib(a, p, x)",
    _gdtrib,
    f"{_A} `b` for which gdtr(a, b, x) is `p`.",
    ("1.0, 0.5, 1.0", "1.31425"),
    _POSITIVE,
    _INSIDE,
    _POSITIVE,
)
fdtridfd = _inverse(
    "fdtridfd(dfn, p, x)",
    _fdtridfd,
    "The degrees of freedom `dfd` for which fdtr(dfn, dfd, x) is `p`.",
    ("2.0, 0.6, 1.0", "10.631813"),
    (2, 3),
    (0.55, 0.6),
    (1, 1.1),
)
stdtridf = _inverse(
    "stdtridf(p, t)",
    _stdtridf,
    "The degrees of freedom `df` for which stdtr(df, t) is `p`.",
    ("0.75, 1.0", "1.0"),
    (0.76, 0.8),
    (0.9, 1),
)


def _log_power_slope(xp, p, lmbda):
    """The derivative of (p^lmbda - 1) / lmbda by lmbda, exact near 0 (as in `boxcox`)."""
    log = xp.log(p)
    z = lmbda * log
    return log * log * (xp.exponential_remainder(z) - xp.exponential_remainder(z, order=2))


def _tukey(xp, p, lmbda):
    """1 / Q' with the quantile Q(p) = (p^lmbda - (1 - p)^lmbda) / lmbda."""
    return 1 / (p ** (lmbda - 1) + (1 - p) ** (lmbda - 1))


def _tukey_lmbda(xp, out, x, lmbda):
    change = _log_power_slope(xp, out, lmbda) - _log_power_slope(xp, 1 - out, lmbda)
    return xp.where(xp.logical_or(out <= 0, out >= 1), 0, -change * _tukey(xp, out, lmbda))


tklmbda = scipy_op(
    "tklmbda(x, lmbda)",
    lambda xp, out, x, lmbda: xp.where(
        xp.logical_or(out <= 0, out >= 1), 0, _tukey(xp, out, lmbda)
    ),
    _tukey_lmbda,
    samples=grid(2, ((-0.9, 0.9), (-0.9, 0.9))),
)(
    doc="Distribution function of Tukey's lambda distribution.",
    example=("[0.0, 0.5], 1.0", "[0.5  0.75]"),
)

# ---- Kolmogorov's distribution: theta functions, which DLMF 20.7.32 turns into each other ----


def kolmogorov_slope(xp, y):
    """The derivative of `kolmogorov`."""
    low = y < 0.7
    far, near = xp.where(low, 1, y), xp.where(low, y, 1)
    near = xp.where(near < 0.05, 0.05, near)
    total = 0
    for k in range(1, 8):
        total = total + (-1) ** k * 8 * k * k * far * xp.exp(-2 * k * k * far * far)
    series = 0
    for k in (1, 3, 5):
        c = (k * math.pi) ** 2 / 8
        series = series + xp.exp(-c / near**2) * (1 - 2 * c / near**2) / near**2
    return xp.where(y < 0.05, 0, xp.where(low, math.sqrt(2 * math.pi) * series, total))


kolmogorov = scipy_op("kolmogorov(y)", lambda xp, y: kolmogorov_slope(xp, y), domain=(0.3, 1.6))(
    doc="The probability that sqrt(n) times Kolmogorov's statistic is above `y`, for large n.",
    example=("[0.0, 1.0]", "[1.         0.26999968]"),
)
kolmogi = scipy_op(
    "kolmogi(p)", lambda xp, out: 1 / kolmogorov_slope(xp, out), domain=(0.05, 0.95), singular=True
)(doc="The `y` for which kolmogorov(y) is `p`.", example=("[0.5, 0.25]", "[0.82757354 1.0191847 ]"))
