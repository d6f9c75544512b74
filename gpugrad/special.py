"""Special functions with SciPy's names and arguments: `gg.special`.

All are differentiable to any order, except with respect to the order of a Bessel function, `n` of
`polygamma`, `expn` and `yn`, `x` of `zeta`, and parameters of hypergeometric functions and
polynomials; each op's docstring says so. The incomplete gamma and beta functions and their
inverses have gradients with respect to their parameters too. Functions that CuPy lacks run on the
CPU only and raise `DeviceError` elsewhere: Bessel functions of any order (`jv`, `jn`, `yv`, `iv`,
`ive`, `kn`, `kv`, `kve`, `spherical_in`, `spherical_kn`), Airy, Kelvin, Struve and hypergeometric
functions, `fresnel`, `wofz` and its relatives, Student's t, and the polynomials `eval_*`.

16-bit floats stay 16-bit, as everywhere in gpugrad; `gg.scipy.special` has SciPy's dtypes.

>>> print(gg.special.gammaln([1.0, 5.0]))
[0.        3.1780539]
>>> print(gg.grad(lambda a: gg.special.gammainc(a, 1.0))(1.0))
-0.4317297
"""

from __future__ import annotations

from typing import Any

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import argument
from gpugrad.ops.math.arithmetic import cbrt
from gpugrad.ops.math.transcendental import erf, erfc, exp2, expm1, log1p
from gpugrad.ops.nn.activations import log_sigmoid as log_expit
from gpugrad.ops.nn.activations import sigmoid as expit
from gpugrad.ops.nn.activations_adjustable import softplus
from gpugrad.ops.special.angles import cosdg, cotdg, radian, sindg, tandg
from gpugrad.ops.special.bessel import (
    i0,
    i0e,
    i1,
    i1e,
    iv,
    ive,
    j0,
    j1,
    jv,
    k0,
    k0e,
    k1,
    k1e,
    kv,
    kve,
    y0,
    y1,
    yn,
    yv,
)
from gpugrad.ops.special.common import (
    boxcox,
    boxcox1p,
    cosm1,
    exp10,
    exprel,
    inv_boxcox,
    inv_boxcox1p,
    lambertw,
    logaddexp2,
    logit,
    sinc,
)
from gpugrad.ops.special.distributions import (
    bdtr,
    bdtrc,
    bdtri,
    chdtr,
    chdtrc,
    chdtri,
    fdtr,
    fdtrc,
    fdtri,
    gdtr,
    gdtrc,
    gdtria,
    gdtrix,
    nbdtr,
    nbdtrc,
    nbdtri,
    ndtri_exp,
    nrdtrimn,
    nrdtrisd,
    owens_t,
    pdtr,
    pdtrc,
    pdtri,
    stdtr,
    stdtrit,
)
from gpugrad.ops.special.elliptic import agm, ellipeinc, ellipj, ellipkinc
from gpugrad.ops.special.entropy import (
    divide_no_nan,
    entr,
    huber,
    kl_div,
    multiply_no_nan,
    pseudo_huber,
    rel_entr,
    xdivy,
    xlog1py,
    xlogy,
)
from gpugrad.ops.special.gamma import (
    beta,
    betaln,
    binom,
    digamma,
    gamma,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    rgamma,
    trigamma,
)
from gpugrad.ops.special.hypergeometric import (
    airy,
    bei,
    beip,
    ber,
    berp,
    erfi,
    fresnel,
    hyp0f1,
    hyp1f1,
    hyp2f1,
    hyperu,
    kei,
    keip,
    ker,
    kerp,
    modstruve,
    powm1,
    struve,
    voigt_profile,
    wofz,
    wright_bessel,
    wrightomega,
    zetac,
)
from gpugrad.ops.special.incomplete_beta import betainc, betaincc, betainccinv, betaincinv
from gpugrad.ops.special.incomplete_gamma import gammainc, gammaincc, gammainccinv, gammaincinv
from gpugrad.ops.special.integrals import (
    ellipe,
    ellipk,
    ellipkm1,
    exp1,
    expi,
    expn,
    shichi,
    sici,
    spence,
)
from gpugrad.ops.special.log_sums import log_softmax, logsumexp, softmax
from gpugrad.ops.special.normal import dawsn, erfcinv, erfcx, erfinv, log_ndtr, ndtr, ndtri
from gpugrad.ops.special.polynomials import (
    eval_chebyt,
    eval_chebyu,
    eval_gegenbauer,
    eval_genlaguerre,
    eval_hermite,
    eval_hermitenorm,
    eval_jacobi,
    eval_laguerre,
    eval_legendre,
    eval_sh_chebyt,
    eval_sh_chebyu,
    eval_sh_legendre,
    lpmv,
    sph_harm_y,
)
from gpugrad.ops.special.spherical import spherical_in, spherical_jn, spherical_kn, spherical_yn

__all__ = [
    "agm", "airy", "bdtr", "bdtrc", "bdtri", "bei", "beip", "ber", "berp", "beta", "betainc",
    "betaincc", "betainccinv", "betaincinv", "betaln", "binom", "boxcox", "boxcox1p", "btdtr",
    "btdtri", "cbrt", "chdtr", "chdtrc", "chdtri", "cosdg", "cosm1", "cotdg", "dawsn",
    "digamma", "divide_no_nan", "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc",
    "ellipkm1", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv", "eval_chebyt",
    "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre", "eval_hermite", "eval_hermitenorm",
    "eval_jacobi", "eval_laguerre", "eval_legendre", "eval_sh_chebyt", "eval_sh_chebyu",
    "eval_sh_legendre", "exp1", "exp2", "exp10", "expi", "expit", "expm1", "expn", "exprel",
    "fdtr", "fdtrc", "fdtri", "fresnel", "gamma", "gammainc", "gammaincc", "gammainccinv",
    "gammaincinv", "gammaln", "gammasgn", "gdtr", "gdtrc", "gdtria", "gdtrix", "huber",
    "hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "i0", "i0e", "i1", "i1e", "inv_boxcox",
    "inv_boxcox1p", "iv", "ive", "j0", "j1", "jn", "jv", "k0", "k0e", "k1", "k1e", "kei",
    "keip", "ker", "kerp", "kl_div", "kn", "kv", "kve", "lambertw", "log1p", "log_expit",
    "log_ndtr", "log_softmax", "logaddexp2", "loggamma", "logit", "logsumexp", "lpmv",
    "modstruve", "multigammaln", "multiply_no_nan", "nbdtr", "nbdtrc", "nbdtri", "ndtr",
    "ndtri", "ndtri_exp", "nrdtrimn", "nrdtrisd", "owens_t", "pdtr", "pdtrc", "pdtri", "poch",
    "polygamma", "powm1", "pseudo_huber", "psi", "radian", "rel_entr", "rgamma", "round",
    "shichi", "sici", "sinc", "sindg", "softmax", "softplus", "spence", "sph_harm_y",
    "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn", "stdtr", "stdtrit",
    "struve", "tandg", "trigamma", "voigt_profile", "wofz", "wright_bessel", "wrightomega",
    "xdivy", "xlog1py", "xlogy", "y0", "y1", "yn", "yv", "zeta", "zetac",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


jn, kn, psi = jv, kv, digamma
btdtr, btdtri = betainc, betaincinv  # CuPy's names


def round(x: Any) -> Any:
    """`x` rounded to whole numbers, halves to the even one; its gradient is None.

    >>> print(gg.special.round([0.5, 1.5]))
    [0. 2.]
    """
    return xp.round(x)


def zeta(x: Any, q: Any = None) -> Any:
    """The Riemann zeta function of `x`, or Hurwitz's, the sum of (k + q)^-x from k = 0.

    Args:
        x: array of any shape, or a number; it has no gradient.
        q: array, broadcast against `x`; None is 1.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        NoGradientError: the gradient with respect to `x` is asked for.

    >>> print(gg.special.zeta([2.0, 4.0]))
    [1.644934  1.0823232]
    """
    return xp.zeta(argument("zeta", x), 1.0 if q is None else q)
