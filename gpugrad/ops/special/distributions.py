"""Distribution functions, their complements and inverses, of other ops: DLMF 8.2 and 8.17.

The gradients by all real arguments follow. Counts (`k`, and `n` of trials) are rounded down, as
SciPy does, and have none. SciPy's tails are exact because the complement has its own formula.
"""

import math

from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import grid
from gpugrad.ops.special.common import counted, formula, scipy_op

_POSITIVE, _INSIDE = (0.5, 4), (0.1, 0.9)
_TWO, _SHAPE = {"domain": _POSITIVE}, {"domain": (_POSITIVE, _INSIDE)}


def _unless(xp, wrong, value):
    return xp.where(wrong, float("nan"), value)


def _of(xp, name, *args):
    """An op. Of Python numbers it is a Python number, which does not widen float32."""
    if SCALARS.issuperset(map(type, args)):
        return float(getattr(NUMPY, name)(*args))
    return getattr(xp, name)(*args)


chdtr = formula(
    "chdtr(v, x)",
    lambda xp, v, x, /: xp.gammainc(0.5 * v, 0.5 * x),
    doc="Distribution function of chi squared with `v` degrees of freedom.",
    example=("2.0, [0.0, 2.0]", "[0.        0.6321206]"),
    **_TWO,
)
chdtrc = formula(
    "chdtrc(v, x)",
    lambda xp, v, x, /: xp.gammaincc(0.5 * v, 0.5 * x),
    doc="1 - `chdtr`, exact also where that is near 0.",
    example=("2.0, [0.0, 2.0]", "[1.        0.3678794]"),
    **_TWO,
)
chdtri = formula(
    "chdtri(v, p)",
    lambda xp, v, p, /: 2 * xp.gammainccinv(0.5 * v, p),
    doc="The `x` for which chdtrc(v, x) is `p`.",
    example=("2.0, [1.0, 0.5]", "[0.        1.3862944]"),
    **_SHAPE,
)
gdtr = formula(
    "gdtr(a, b, x)",
    lambda xp, a, b, x, /: _unless(xp, x < 0, xp.gammainc(b, a * x)),
    doc="Distribution function of the gamma distribution with the rate `a` and the shape `b`.",
    example=("1.0, 1.0, [0.0, 1.0]", "[0.        0.6321206]"),
    **_TWO,
)
gdtrc = formula(
    "gdtrc(a, b, x)",
    lambda xp, a, b, x, /: _unless(xp, x < 0, xp.gammaincc(b, a * x)),
    doc="1 - `gdtr`, exact also where that is near 0.",
    example=("1.0, 1.0, [0.0, 1.0]", "[1.        0.3678794]"),
    **_TWO,
)
gdtria = formula(
    "gdtria(p, b, x)",
    lambda xp, p, b, x, /: _of(xp, "gammaincinv", b, p) / x,
    doc="The `a` for which gdtr(a, b, x) is `p`.",
    example=("0.5, 1.0, 2.0", "0.3465736"),
    domain=(_INSIDE, _POSITIVE, _POSITIVE),
)
gdtrix = formula(
    "gdtrix(a, b, p)",
    lambda xp, a, b, p, /: _of(xp, "gammaincinv", b, p) / a,
    doc="The `x` for which gdtr(a, b, x) is `p`.",
    example=("2.0, 1.0, 0.5", "0.3465736"),
    domain=(_POSITIVE, _POSITIVE, _INSIDE),
)


def _fdtri(xp, dfn, dfd, p, /):
    """By the root or by 1 - root of the beta distribution, whichever is small."""
    root, rest = xp.betaincinv(0.5 * dfn, 0.5 * dfd, p), xp.betainccinv(0.5 * dfd, 0.5 * dfn, p)
    low = root < 0.5
    return dfd * xp.where(low, root, 1 - rest) / (dfn * xp.where(low, 1 - root, rest))


def _share(xp, t):
    """The share of odds `t`, t / (1 + t), which is 1 at infinity."""
    large = t > 1
    return xp.where(large, 1 / (1 + 1 / xp.where(large, t, 1)), t / (1 + xp.where(large, 1, t)))


def _of_f(part):
    """`part` of half the degrees of freedom and the odds ``dfn x / dfd``.

    NaN for infinite degrees, whose odds have lost the limits, gamma distributions.
    """

    def body(xp, dfn, dfd, x, /):
        wrong = xp.logical_or(xp.logical_or(dfn <= 0, dfd <= 0), x < 0)
        wrong = xp.logical_or(wrong, xp.isinf(dfn + dfd))
        return _unless(xp, wrong, part(xp, 0.5 * dfn, 0.5 * dfd, x * (dfn / dfd)))

    return body


fdtr = formula(
    "fdtr(dfn, dfd, x)",
    _of_f(lambda xp, m, n, odds: xp.betainc(m, n, _share(xp, odds))),
    doc="Distribution function of Fisher's F, with `dfn` and `dfd` degrees of freedom.",
    example=("2.0, 2.0, [0.0, 1.0]", "[0.  0.5]"),
    **_TWO,
)
fdtrc = formula(
    "fdtrc(dfn, dfd, x)",
    _of_f(lambda xp, m, n, odds: xp.betainc(n, m, 1 / (1 + odds))),
    doc="1 - `fdtr`, exact also where that is near 0.",
    example=("2.0, 2.0, [0.0, 3.0]", "[1.   0.25]"),
    **_TWO,
)
fdtri = formula(
    "fdtri(dfn, dfd, p)",
    _fdtri,
    doc="The `x` for which fdtr(dfn, dfd, x) is `p`.",
    example=("2.0, 2.0, [0.0, 0.75]", "[0. 3.]"),
    domain=(_POSITIVE, _POSITIVE, _INSIDE),
)


def _log_density_t(xp, df, t):
    half = 0.5 * (df + 1)
    return -xp.betaln(0.5 * df, 0.5) - 0.5 * xp.log(df) - half * xp.log1p(t * t / df)


def _stdtr_df(xp, df, t):
    """The derivative by df, through both of df's places in betainc(df / 2, 1 / 2, df / square)."""
    square = df + t * t
    inner = xp.exp(_log_density_t(xp, df, t)) * xp.abs(t) / df
    return -0.5 * xp.sign(t) * (0.5 * xp.betainc_grad_a(0.5 * df, 0.5, df / square) + inner)


def _of_t(signature, *d, domain, **how):
    return scipy_op(signature, *d, samples=grid(2, ((0.6, 4), domain)), captures=True)(**how)


stdtr = _of_t(
    "stdtr(df, t)",
    _stdtr_df,
    lambda xp, df, t: xp.exp(_log_density_t(xp, df, t)),
    domain=(-3, 3),
    doc="Distribution function of Student's t with `df` degrees of freedom.",
    example=("1.0, [0.0, 1.0]", "[0.5  0.75]"),
)
stdtrit = _of_t(
    "stdtrit(df, p)",
    lambda xp, out, df: -_stdtr_df(xp, df, out) * xp.exp(-_log_density_t(xp, df, out)),
    lambda xp, out, df: xp.exp(-_log_density_t(xp, df, out)),
    domain=_INSIDE,
    doc="The `t` for which stdtr(df, t) is `p`.",
    example=("1.0, [0.5, 0.75]", "[0. 1.]"),
)

# ---- of counts ------------------------------------------------------------------------------

_COUNT = {"samples": counted([[0, 1, 3]], (0.5, 4))}
_ROOT = {"samples": counted([[0, 1, 3]], (0.1, 0.9))}
_TRIALS = {"samples": counted([[0, 1, 3], [4, 6]], (0.1, 0.9))}


def floored(xp, k, x):
    """`k` rounded down, in the dtype of `x`: integers do not widen float32."""
    k = xp.floor(k)
    narrow = hasattr(k, "dtype") and getattr(getattr(x, "dtype", None), "kind", "i") == "f"
    return xp.astype(k, x.dtype) if narrow else k


pdtr = formula(
    "pdtr(k, m)",
    lambda xp, k, m, /: _unless(xp, k < 0, xp.gammaincc(floored(xp, k, m) + 1, m)),
    doc="Probability of at most `k` events of a Poisson distribution with the mean `m`.",
    example=("[0, 1], 1.0", "[0.3678794 0.7357589]"),
    **_COUNT,
)
pdtrc = formula(
    "pdtrc(k, m)",
    lambda xp, k, m, /: _unless(xp, k < 0, xp.gammainc(floored(xp, k, m) + 1, m)),
    doc="1 - `pdtr`, exact also where that is near 0.",
    example=("[0, 1], 1.0", "[0.6321206 0.2642411]"),
    **_COUNT,
)
pdtri = formula(
    "pdtri(k, y)",
    lambda xp, k, y, /: _unless(xp, k < 0, xp.gammainccinv(floored(xp, k, y) + 1, y)),
    doc="The `m` for which pdtr(k, m) is `y`.",
    example=("0, [1.0, 0.5]", "[0.        0.6931472]"),
    **_ROOT,
)


def _of_trials(whole, part):
    """`part` of the beta distribution's parameters k + 1 and n - k; `whole` where k is n."""

    def body(xp, k, n, p, /):
        k, n = floored(xp, k, p), floored(xp, n, p)
        full = k >= n
        value = xp.where(full, whole, part(xp, k + 1, xp.where(full, 1, n - k), p))
        wrong = xp.logical_or(xp.logical_or(k < 0, k > n), xp.logical_or(p < 0, p > 1))
        return _unless(xp, wrong, value)

    return body


bdtr = formula(
    "bdtr(k, n, p)",
    _of_trials(1, lambda xp, a, b, p: xp.betaincc(a, b, p)),
    doc="Probability of at most `k` successes in `n` trials of probability `p`.",
    example=("[0, 1], 2, 0.5", "[0.25 0.75]"),
    **_TRIALS,
)
bdtrc = formula(
    "bdtrc(k, n, p)",
    _of_trials(0, lambda xp, a, b, p: xp.betainc(a, b, p)),
    doc="1 - `bdtr`, exact also where that is near 0.",
    example=("[0, 1], 2, 0.5", "[0.75 0.25]"),
    **_TRIALS,
)
bdtri = formula(
    "bdtri(k, n, y)",
    _of_trials(float("nan"), lambda xp, a, b, y: xp.betainccinv(a, b, y)),
    doc="The `p` for which bdtr(k, n, p) is `y`.",
    example=("0, 2, [1.0, 0.25]", "[0.  0.5]"),
    **_TRIALS,
)


def _of_failures(function):
    def body(xp, k, n, p, /):
        k, n = floored(xp, k, p), floored(xp, n, p)
        return _unless(xp, xp.logical_or(k < 0, n <= 0), function(xp, n, k + 1, p))

    return body


nbdtr = formula(
    "nbdtr(k, n, p)",
    _of_failures(lambda xp, n, k, p: xp.betainc(n, k, p)),
    doc="Probability of at most `k` failures before the `n`-th success of probability `p`.",
    example=("[0, 1], 1, 0.5", "[0.5  0.75]"),
    **_TRIALS,
)
nbdtrc = formula(
    "nbdtrc(k, n, p)",
    _of_failures(lambda xp, n, k, p: xp.betaincc(n, k, p)),
    doc="1 - `nbdtr`, exact also where that is near 0.",
    example=("[0, 1], 1, 0.5", "[0.5  0.25]"),
    **_TRIALS,
)
nbdtri = formula(
    "nbdtri(k, n, y)",
    _of_failures(lambda xp, n, k, y: xp.betaincinv(n, k, y)),
    doc="The `p` for which nbdtr(k, n, p) is `y`.",
    example=("0, 1, [0.0, 0.5]", "[0.  0.5]"),
    **_TRIALS,
)

# ---- related to the normal distribution -----------------------------------------------------

ndtri_exp = scipy_op(
    "ndtri_exp(y)",
    lambda xp, out, y: math.sqrt(2 * math.pi) * xp.exp(y + 0.5 * out * out),
    domain=(-4, -0.2),
    singular=True,
)(
    doc="The `x` for which log_ndtr(x) is `y`.",
    example=("[-0.1, -1000.0]", "[  1.3096178 -44.61575  ]"),
)
owens_t = scipy_op(
    "owens_t(h, a)",
    lambda xp, h, a: (
        -xp.exp(-0.5 * h * h) * xp.erf(math.sqrt(0.5) * a * h) / math.sqrt(8 * math.pi)
    ),
    lambda xp, h, a: xp.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a)),
)(
    doc="Owen's T: the probability that X > `h` and 0 < Y < `a` X, X and Y normal.",
    example=("[0.0, 1.0], 1.0", "[0.125      0.06674188]"),
)
nrdtrimn = formula(
    "nrdtrimn(p, std, x)",
    lambda xp, p, std, x, /: x - std * _of(xp, "ndtri", p),
    doc="The mean of the normal distribution with `std` whose distribution function at `x` is `p`.",
    example=("0.5, 1.0, 3.0", "3.0"),
    domain=(_INSIDE, _POSITIVE, (-2, 2)),
)
nrdtrisd = formula(
    "nrdtrisd(mn, p, x)",
    lambda xp, mn, p, x, /: (x - mn) / _of(xp, "ndtri", p),
    doc="The deviation of the normal distribution of mean `mn` that has `p` below `x`.",
    example=("0.0, 0.975, 1.959964", "1.0"),
    domain=((-2, 0), (0.6, 0.9), (1, 2)),
)
