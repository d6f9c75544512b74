"""Noncentral chi squared, F and t distributions, with gradients by all arguments.

Each is a mixture of central ones with Poisson weights (DLMF 8.17 and 8.2; N. Johnson, S. Kotz, N.
Balakrishnan, "Continuous Univariate Distributions 2", 1995, chapters 29 to 31). SciPy computes the
functions and their inverses; the derivatives are the mixtures of the derivatives, over 128 terms.
The inverses of F by its parameters are not here: SciPy finds no more than five of their digits.
"""

import math

import numpy as np

from gpugrad.ops.special.inverses import _beta, _gamma
from gpugrad.ops.special.primitives import every, few, primitive

_TERMS = np.arange(128.0)


def _mixture(xp, mean, terms):
    """Sums of each of ``terms(j, log_weight)`` with Poisson weights of the `mean`.

    For a large mean the terms are j = first, first + h, ...: they are smooth, so that a sum over
    every h-th one, times h, is exact while h is below the deviation sqrt(mean).
    """
    mean = xp.expand_dims(mean, axis=-1)
    fixed = xp.stop_gradient(mean)
    step = xp.maximum(xp.sqrt(fixed) / 6, 1.0)
    first = xp.maximum(xp.floor(fixed - 64 * step), 0.0)
    j = first + step * _TERMS
    log_weight = xp.xlogy(j, mean) - mean - xp.gammaln(j + 1) + xp.log(step)
    return [xp.sum(term, axis=-1) for term in terms(j, log_weight)]


def _last(xp, *arrays):
    return [xp.expand_dims(a, axis=-1) for a in arrays]


def _chi2(xp, x, df, nc):
    """The partial derivatives of chndtr."""
    y, half = _last(xp, 0.5 * x, 0.5 * df)

    def terms(j, log_weight):
        weight = xp.exp(log_weight)
        by_a, by_y = _gamma(xp, half + j, y)
        drop = xp.exp(log_weight + xp.xlogy(half + j, y) - y - xp.gammaln(half + j + 1))
        return 0.5 * weight * by_y, 0.5 * weight * by_a, -0.5 * drop

    return _mixture(xp, 0.5 * nc + 0 * (x + df), terms)


def _f(xp, dfn, dfd, nc, f):
    """The partial derivatives of ncfdtr: I(dfn / 2 + j, dfd / 2, y) with y = dfn f / (dfn f + dfd).

    That by nc is half of the mixture of I(a + 1, b, y) - I(a, b, y) = -y^a (1 - y)^b / (a B(a, b)).
    """
    total = dfn * f + dfd
    a, b, y = _last(xp, 0.5 * dfn, 0.5 * dfd, dfn * f / total)

    def terms(j, log_weight):
        weight = xp.exp(log_weight)
        by_a, by_b, by_y = _beta(xp, a + j, b, y)
        drop = xp.xlogy(a + j, y) + xp.xlog1py(b, -y) - xp.betaln(a + j, b) - xp.log(a + j)
        return weight * by_a, weight * by_b, weight * by_y, -0.5 * xp.exp(log_weight + drop)

    by_a, by_b, by_y, by_nc = _mixture(xp, 0.5 * nc + 0 * total, terms)
    by_dfn = 0.5 * by_a + by_y * f * dfd / total**2
    by_dfd = 0.5 * by_b - by_y * dfn * f / total**2
    return by_dfn, by_dfd, by_nc, by_y * dfn * dfd / total**2


def _t(xp, df, nc, t):
    """The partial derivatives of nctdtr.

    For t >= 0 it is ndtr(-nc) plus half of the mixture, with the mean nc^2 / 2, of
    I(j + 1/2, b, y) + r_j I(j + 1, b, y), where b = df / 2, y = t^2 / (t^2 + df) and
    r_j = nc gamma(j + 1) / (sqrt(2) gamma(j + 3/2)). Below, F(t; nc) = 1 - F(-t; -nc). The slopes
    by nc and t are expectations of normal densities over chi squared, expanded in powers of nc.
    """
    sign = xp.where(t < 0, -1.0, 1.0)
    nc, t = sign * nc, sign * t
    total = t * t + df
    share, rest = t * t / total, df / total
    b, y, shift, root = _last(xp, 0.5 * df, share, nc, t * xp.sqrt(0.5 / total))
    y = xp.maximum(y, 1e-300)

    def terms(j, log_weight):
        weight, power = xp.exp(log_weight), log_weight + j * xp.log(y) - xp.gammaln(b)
        odd = weight * xp.exp(xp.gammaln(j + 1) - xp.gammaln(j + 1.5)) * shift / math.sqrt(2)
        by_b = weight * xp.betainc_grad_b(j + 0.5, b, y) + odd * xp.betainc_grad_b(j + 1, b, y)

        def moment(c):
            first = xp.exp(power + xp.gammaln(c + j) - xp.gammaln(j + 0.5))
            second = xp.exp(power + xp.gammaln(c + j + 0.5) - xp.gammaln(j + 1.5))
            return first + shift * root * second

        return 0.5 * by_b, moment(b), moment(b + 0.5)

    by_b, at_b, above_b = _mixture(xp, 0.5 * nc * nc + 0 * total, terms)
    by_nc = -(rest ** (0.5 * df)) * at_b / math.sqrt(2)
    by_t = rest ** (0.5 * df + 0.5) * above_b / xp.sqrt(df)
    return sign * (0.5 * by_b - 0.5 * t / df * by_t), by_nc, by_t


def _inverse_of(slopes, sought, given):
    """Partial derivatives of an inverse: `sought` is the place of the result in the arguments.

    `given` is that of the probability in the inverse's own arguments.
    """

    def by_all(xp, out, *args):
        others = [a for k, a in enumerate(args) if k != given]
        partials = list(slopes(xp, *others[:sought], out, *others[sought:]))
        own = partials.pop(sought)
        result = [-d / own for d in partials]
        result.insert(given, 1 / own)
        return tuple(result)

    return by_all


def _op(signature, by_all, doc, example, *domains, **record):
    record["samples"] = few(*domains)
    by_all.__module__ = __name__
    returns = "Tensor of the broadcast shape."
    return primitive(signature, every(signature, by_all), doc, returns, example, **record)


_P, _NC = (0.3, 0.7), (0.5, 2)

chndtr = _op(
    "chndtr(x, df, nc)",
    lambda xp, out, x, df, nc: _chi2(xp, x, df, nc),
    "Distribution function of noncentral chi squared.",
    ("1.0, 2.0, 1.0", "0.26712018"),
    (0.5, 3),
    (1, 3),
    _NC,
)
chndtrix = _op(
    "chndtrix(p, df, nc)",
    _inverse_of(_chi2, 0, 0),
    "The `x` for which chndtr(x, df, nc) is `p`.",
    ("0.5, 2.0, 1.0", "2.1770384"),
    _P,
    (1, 3),
    _NC,
)
chndtridf = _op(
    "chndtridf(x, p, nc)",
    _inverse_of(_chi2, 1, 1),
    "The degrees of freedom `df` for which chndtr(x, df, nc) is `p`.",
    ("1.0, 0.25, 1.0", "2.1016378"),
    (2, 3),
    (0.3, 0.5),
    _NC,
)
chndtrinc = _op(
    "chndtrinc(x, df, p)",
    _inverse_of(_chi2, 2, 2),
    "The noncentrality `nc` for which chndtr(x, df, nc) is `p`.",
    ("1.0, 2.0, 0.25", "1.1700695"),
    (2, 3),
    (1, 1.5),
    (0.3, 0.5),
)
ncfdtr = _op(
    "ncfdtr(dfn, dfd, nc, f)",
    lambda xp, out, dfn, dfd, nc, f: _f(xp, dfn, dfd, nc, f),
    "Distribution function of noncentral F.",
    ("2.0, 3.0, 1.0, 1.0", "0.41195452"),
    (1, 3),
    (2, 4),
    _NC,
    (0.5, 2),
)
ncfdtri = _op(
    "ncfdtri(dfn, dfd, nc, p)",
    _inverse_of(_f, 3, 3),
    "The `f` for which ncfdtr(dfn, dfd, nc, f) is `p`.",
    ("2.0, 3.0, 1.0, 0.5", "1.3711638"),
    (1, 3),
    (2, 4),
    _NC,
    _P,
)
nctdtr = _op(
    "nctdtr(df, nc, t)",
    lambda xp, out, df, nc, t: _t(xp, df, nc, t),
    "Distribution function of noncentral t.",
    ("2.0, 1.0, 1.0", "0.45574582"),
    (1, 4),
    (-2, 2),
    (-2, 2),
)
nctdtrit = _op(
    "nctdtrit(df, nc, p)",
    _inverse_of(_t, 2, 2),
    "The `t` for which nctdtr(df, nc, t) is `p`.",
    ("2.0, 1.0, 0.5", "1.142418"),
    (1, 4),
    _NC,
    _P,
)
nctdtridf = _op(
    "nctdtridf(p, nc, t)",
    _inverse_of(_t, 0, 0),
    "The degrees of freedom `df` for which nctdtr(df, nc, t) is `p`.",
    ("0.9, 1.0, 3.0", "3.929422"),
    (0.8, 0.85),
    (1, 1.2),
    (2.4, 2.6),
)
nctdtrinc = _op(
    "nctdtrinc(df, p, t)",
    _inverse_of(_t, 1, 1),
    "The noncentrality `nc` for which nctdtr(df, nc, t) is `p`.",
    ("2.0, 0.5, 1.0", "0.8774748"),
    (1, 4),
    _P,
    (0.5, 2),
)
