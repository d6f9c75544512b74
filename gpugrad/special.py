"""Special functions with SciPy's names and arguments: `gg.special`.

All are differentiable to any order, except with respect to the order of a Bessel function, `n` of
`polygamma`, `expn` and `yn`, `x` of `zeta`, and parameters of hypergeometric functions, polynomials
and functions of Mathieu, Weber and spheroidal waves; each op's docstring says so. Distribution
functions and their inverses have gradients with respect to their parameters too. Functions that
CuPy lacks run on the CPU only and raise `DeviceError` elsewhere: Bessel functions of any order
(`jv`, `jn`, `yv`, `iv`, `ive`, `kn`, `kv`, `kve`, `spherical_in`, `spherical_kn`), Airy, Hankel,
Kelvin, Struve, Mathieu, Legendre and hypergeometric functions, `fresnel`, `wofz` and its relatives,
Carlson's integrals, Student's t and noncentral distributions, and the polynomials `eval_*`.

16-bit floats stay 16-bit, as everywhere in gpugrad; `gg.scipy.special` has SciPy's dtypes.

>>> print(gg.special.gammaln([1.0, 5.0]))
[0.        3.1780539]
>>> print(gg.grad(lambda a: gg.special.gammainc(a, 1.0))(1.0))
-0.4317297
"""

from __future__ import annotations

from typing import Any

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.known_as import answer_missing
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
from gpugrad.ops.special.carlson import elliprc, elliprd, elliprf, elliprg, elliprj
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
from gpugrad.ops.special.cylinders import (
    airye,
    besselpoly,
    hankel1,
    hankel1e,
    hankel2,
    hankel2e,
    it2i0k0,
    it2j0y0,
    it2struve0,
    itairy,
    iti0k0,
    itj0y0,
    itmodstruve0,
    itstruve0,
    jve,
    modfresnelm,
    modfresnelp,
    yve,
)
from gpugrad.ops.special.derived import (
    assoc_laguerre,
    h1vp,
    h2vp,
    ivp,
    jvp,
    kelvin,
    kvp,
    lmbda,
    riccati_jn,
    riccati_yn,
    yvp,
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
from gpugrad.ops.special.equations import (
    mathieu_a,
    mathieu_b,
    mathieu_cem,
    mathieu_modcem1,
    mathieu_modcem2,
    mathieu_modsem1,
    mathieu_modsem2,
    mathieu_sem,
    obl_ang1,
    obl_ang1_cv,
    obl_cv,
    obl_rad1,
    obl_rad1_cv,
    obl_rad2,
    obl_rad2_cv,
    pbdv,
    pbvv,
    pbwa,
    pro_ang1,
    pro_ang1_cv,
    pro_cv,
    pro_rad1,
    pro_rad1_cv,
    pro_rad2,
    pro_rad2_cv,
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
    log_wright_bessel,
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
from gpugrad.ops.special.inverses import (
    bdtrik,
    bdtrin,
    btdtria,
    btdtrib,
    chdtriv,
    fdtridfd,
    gdtrib,
    kolmogi,
    kolmogorov,
    nbdtrik,
    nbdtrin,
    pdtrik,
    stdtridf,
    tklmbda,
)
from gpugrad.ops.special.legendre import (
    assoc_legendre_p,
    assoc_legendre_p_all,
    legendre_p,
    legendre_p_all,
    lqmn,
    lqn,
    sph_harm_y_all,
    sph_legendre_p,
    sph_legendre_p_all,
)
from gpugrad.ops.special.log_sums import log_softmax, logsumexp, softmax
from gpugrad.ops.special.noncentral import (
    chndtr,
    chndtridf,
    chndtrinc,
    chndtrix,
    ncfdtr,
    ncfdtri,
    nctdtr,
    nctdtridf,
    nctdtrinc,
    nctdtrit,
)
from gpugrad.ops.special.normal import dawsn, erfcinv, erfcx, erfinv, log_ndtr, ndtr, ndtri
from gpugrad.ops.special.polynomials import (
    diric,
    eval_chebyc,
    eval_chebys,
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
    eval_sh_jacobi,
    eval_sh_legendre,
    lpmv,
    sph_harm_y,
)
from gpugrad.ops.special.spherical import spherical_in, spherical_jn, spherical_kn, spherical_yn

__all__ = [
    "agm", "airy", "airye", "assoc_laguerre", "assoc_legendre_p", "assoc_legendre_p_all",
    "bdtr", "bdtrc", "bdtri", "bdtrik", "bdtrin", "bei", "beip", "ber", "berp", "besselpoly",
    "beta", "betainc", "betaincc", "betainccinv", "betaincinv", "betaln", "binom", "boxcox",
    "boxcox1p", "btdtr", "btdtri", "btdtria", "btdtrib", "cbrt", "chdtr", "chdtrc", "chdtri",
    "chdtriv", "chndtr", "chndtridf", "chndtrinc", "chndtrix", "cosdg", "cosm1", "cotdg",
    "dawsn", "digamma", "diric", "divide_no_nan", "ellipe", "ellipeinc", "ellipj", "ellipk",
    "ellipkinc", "ellipkm1", "elliprc", "elliprd", "elliprf", "elliprg", "elliprj", "entr",
    "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv", "eval_chebyc", "eval_chebys",
    "eval_chebyt", "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre", "eval_hermite",
    "eval_hermitenorm", "eval_jacobi", "eval_laguerre", "eval_legendre", "eval_sh_chebyt",
    "eval_sh_chebyu", "eval_sh_jacobi", "eval_sh_legendre", "exp1", "exp2", "exp10", "expi",
    "expit", "expm1", "expn", "exprel", "fdtr", "fdtrc", "fdtri", "fdtridfd", "fresnel",
    "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "gammasgn",
    "gdtr", "gdtrc", "gdtria", "gdtrib", "gdtrix", "h1vp", "h2vp", "hankel1", "hankel1e",
    "hankel2", "hankel2e", "huber", "hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "i0", "i0e", "i1",
    "i1e", "inv_boxcox", "inv_boxcox1p", "it2i0k0", "it2j0y0", "it2struve0", "itairy", "iti0k0",
    "itj0y0", "itmodstruve0", "itstruve0", "iv", "ive", "ivp", "j0", "j1", "jn", "jv", "jve",
    "jvp", "k0", "k0e", "k1", "k1e", "kei", "keip", "kelvin", "ker", "kerp", "kl_div", "kn",
    "kolmogi", "kolmogorov", "kv", "kve", "kvp", "lambertw", "legendre_p", "legendre_p_all",
    "lmbda", "log1p", "log_expit", "log_ndtr", "log_softmax", "log_wright_bessel", "logaddexp2",
    "loggamma", "logit", "logsumexp", "lpmv", "lqmn", "lqn", "mathieu_a", "mathieu_b",
    "mathieu_cem", "mathieu_modcem1", "mathieu_modcem2", "mathieu_modsem1", "mathieu_modsem2",
    "mathieu_sem", "modfresnelm", "modfresnelp", "modstruve", "multigammaln", "multiply_no_nan",
    "nbdtr", "nbdtrc", "nbdtri", "nbdtrik", "nbdtrin", "ncfdtr", "ncfdtri", "nctdtr",
    "nctdtridf", "nctdtrinc", "nctdtrit", "ndtr", "ndtri", "ndtri_exp", "nrdtrimn", "nrdtrisd",
    "obl_ang1", "obl_ang1_cv", "obl_cv", "obl_rad1", "obl_rad1_cv", "obl_rad2", "obl_rad2_cv",
    "owens_t", "pbdv", "pbvv", "pbwa", "pdtr", "pdtrc", "pdtri", "pdtrik", "poch", "polygamma",
    "powm1", "pro_ang1", "pro_ang1_cv", "pro_cv", "pro_rad1", "pro_rad1_cv", "pro_rad2",
    "pro_rad2_cv", "pseudo_huber", "psi", "radian", "rel_entr", "rgamma", "riccati_jn",
    "riccati_yn", "round", "shichi", "sici", "sinc", "sindg", "softmax", "softplus", "spence",
    "sph_harm_y", "sph_harm_y_all", "sph_legendre_p", "sph_legendre_p_all", "spherical_in",
    "spherical_jn", "spherical_kn", "spherical_yn", "stdtr", "stdtridf", "stdtrit", "struve",
    "tandg", "tklmbda", "trigamma", "voigt_profile", "wofz", "wright_bessel", "wrightomega",
    "xdivy", "xlog1py", "xlogy", "y0", "y1", "yn", "yv", "yve", "yvp", "zeta", "zetac",
]  # fmt: skip

answer_missing(__name__)


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
