# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike, Axis, NumpyUfuncKeywords, UfuncKeywords
from typing import Any, SupportsIndex, Unpack
from scipy.special._sf_error import SpecialFunctionError as SpecialFunctionError
from scipy.special._sf_error import SpecialFunctionWarning as SpecialFunctionWarning
from scipy.special._ufuncs import errstate as errstate

__all__: list[str]

def agm(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the arithmetic-geometric mean of `a` and `b`."""

def ai_zeros(nt: Any) -> Any:
    """Compute `nt` zeros and values of the Airy function Ai and its derivative."""

def airy(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Airy functions and their derivatives."""

def airye(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Exponentially scaled Airy functions and their derivatives."""

def assoc_laguerre(x: ArrayLike, n: SupportsIndex, k: ArrayLike = 0.0) -> Any:
    """Generalised Laguerre polynomial, `eval_genlaguerre` with the arguments in another order."""

def assoc_legendre_p(
    n: SupportsIndex,
    m: SupportsIndex,
    z: ArrayLike,
    *,
    branch_cut: SupportsIndex = 2,
    norm: bool = False,
    diff_n: int = 0,
) -> Any:
    """Associated Legendre function of degree `n` and order `m`, and its derivatives."""

def assoc_legendre_p_all(
    n: int,
    m: int,
    z: ArrayLike,
    *,
    branch_cut: SupportsIndex = 2,
    norm: bool = False,
    diff_n: int = 0,
) -> Any:
    """Associated Legendre functions of all degrees up to `n` and orders from -m to m."""

def bdtr(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Binomial distribution cumulative distribution function."""

def bdtrc(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Binomial distribution survival function."""

def bdtri(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse function to `bdtr` with respect to `p`."""

def bdtrik(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse function to `bdtr` with respect to `k`."""

def bdtrin(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse function to `bdtr` with respect to `n`."""

def bei(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Kelvin function bei."""

def bei_zeros(nt: Any) -> Any:
    """Compute nt zeros of the Kelvin function bei."""

def beip(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Derivative of the Kelvin function bei."""

def beip_zeros(nt: Any) -> Any:
    """Compute nt zeros of the derivative of the Kelvin function bei."""

def ber(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Kelvin function ber."""

def ber_zeros(nt: Any) -> Any:
    """Compute nt zeros of the Kelvin function ber."""

def bernoulli(n: Any) -> Any:
    """Bernoulli numbers B0..Bn (inclusive)."""

def berp(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Derivative of the Kelvin function ber."""

def berp_zeros(nt: Any) -> Any:
    """Compute nt zeros of the derivative of the Kelvin function ber."""

def besselpoly(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Weighted integral of the Bessel function of the first kind."""

def beta(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Beta function."""

def betainc(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Regularized incomplete beta function."""

def betaincc(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Complement of the regularized incomplete beta function."""

def betainccinv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse of the complemented regularized incomplete beta function."""

def betaincinv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse of the regularized incomplete beta function."""

def betaln(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Natural logarithm of absolute value of beta function."""

def bi_zeros(nt: Any) -> Any:
    """Compute `nt` zeros and values of the Airy function Bi and its derivative."""

def binom(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Binomial coefficient considered as a function of two real variables."""

def boxcox(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the Box-Cox transformation."""

def boxcox1p(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the Box-Cox transformation of 1 + `x`."""

def btdtr(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Regularised incomplete beta function, with gradients by all three arguments."""

def btdtri(a: ArrayLike, b: ArrayLike, y: ArrayLike, /) -> Tensor:
    """The `x` for which betainc(a, b, x) is `y`."""

def btdtria(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse of `betainc` with respect to `a`."""

def btdtrib(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse of `betainc` with respect to `b`."""

def c_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (first kind) quadrature."""

def cbrt(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Element-wise cube root of `x`."""

def cg_roots(n: Any, alpha: Any, mu: bool = False) -> Any:
    """Gauss-Gegenbauer quadrature."""

def chdtr(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Chi square cumulative distribution function."""

def chdtrc(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Chi square survival function."""

def chdtri(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Inverse to `chdtrc` with respect to `x`."""

def chdtriv(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Inverse to `chdtr` with respect to `v`."""

def chebyc(n: Any, monic: bool = False) -> Any:
    """Chebyshev polynomial of the first kind on :math:`[-2, 2]`."""

def chebys(n: Any, monic: bool = False) -> Any:
    """Chebyshev polynomial of the second kind on :math:`[-2, 2]`."""

def chebyt(n: Any, monic: bool = False) -> Any:
    """Chebyshev polynomial of the first kind."""

def chebyu(n: Any, monic: bool = False) -> Any:
    """Chebyshev polynomial of the second kind."""

def chndtr(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Non-central chi square cumulative distribution function"""

def chndtridf(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse to `chndtr` vs `df`"""

def chndtrinc(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse to `chndtr` vs `nc`"""

def chndtrix(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse to `chndtr` vs `x`"""

def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """The number of combinations of N things taken k at a time."""

def cosdg(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Cosine of the angle `x` given in degrees."""

def cosm1(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """cos(x) - 1 for use when `x` is near zero."""

def cotdg(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Cotangent of the angle `x` given in degrees."""

def dawsn(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Dawson's integral."""

def digamma(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """The digamma function."""

def diric(x: ArrayLike, n: ArrayLike, /) -> Tensor:
    """Periodic sinc function sin(n x / 2) / (n sin(x / 2)) of a whole number `n` above 0."""

def divide_no_nan(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x / y, and 0 where `y` is 0; the gradients there are 0 too."""

def ellip_harm(h2: Any, k2: Any, n: Any, p: Any, s: Any, signm: Any = 1, signn: Any = 1) -> Any:
    """Ellipsoidal harmonic functions E^p_n(l)"""

def ellip_harm_2(h2: Any, k2: Any, n: Any, p: Any, s: Any) -> Any:
    """Ellipsoidal harmonic functions F^p_n(l)"""

def ellip_normal(h2: Any, k2: Any, n: Any, p: Any) -> Any:
    """Ellipsoidal harmonic normalization constants gamma^p_n"""

def ellipe(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Complete elliptic integral of the second kind"""

def ellipeinc(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Incomplete elliptic integral of the second kind"""

def ellipj(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Jacobi elliptic functions"""

def ellipk(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Complete elliptic integral of the first kind."""

def ellipkinc(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Incomplete elliptic integral of the first kind"""

def ellipkm1(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Complete elliptic integral of the first kind around `m` = 1"""

def elliprc(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Degenerate symmetric elliptic integral."""

def elliprd(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Symmetric elliptic integral of the second kind."""

def elliprf(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Completely-symmetric elliptic integral of the first kind."""

def elliprg(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Completely-symmetric elliptic integral of the second kind."""

def elliprj(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Symmetric elliptic integral of the third kind."""

def entr(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Elementwise function for computing entropy."""

def erf(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Returns the error function of complex argument."""

def erf_zeros(nt: Any) -> Any:
    """Compute the first nt zero in the first quadrant, ordered by absolute value."""

def erfc(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Complementary error function, ``1 - erf(x)``."""

def erfcinv(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Inverse of the complementary error function."""

def erfcx(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Scaled complementary error function, ``exp(x**2) * erfc(x)``."""

def erfi(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Imaginary error function, ``-i erf(i z)``."""

def erfinv(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Inverse of the error function."""

def euler(n: Any) -> Any:
    """Euler numbers E(0), E(1), ..., E(n)."""

def eval_chebyc(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate Chebyshev polynomial of the first kind on [-2, 2] at a point."""

def eval_chebys(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate Chebyshev polynomial of the second kind on [-2, 2] at a point."""

def eval_chebyt(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate Chebyshev polynomial of the first kind at a point."""

def eval_chebyu(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate Chebyshev polynomial of the second kind at a point."""

def eval_gegenbauer(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Evaluate Gegenbauer polynomial at a point."""

def eval_genlaguerre(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Evaluate generalized Laguerre polynomial at a point."""

def eval_hermite(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate physicist's Hermite polynomial at a point."""

def eval_hermitenorm(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate probabilist's (normalized) Hermite polynomial at a point."""

def eval_jacobi(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Evaluate Jacobi polynomial at a point."""

def eval_laguerre(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate Laguerre polynomial at a point."""

def eval_legendre(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate Legendre polynomial at a point."""

def eval_sh_chebyt(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate shifted Chebyshev polynomial of the first kind at a point."""

def eval_sh_chebyu(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate shifted Chebyshev polynomial of the second kind at a point."""

def eval_sh_jacobi(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Evaluate shifted Jacobi polynomial at a point."""

def eval_sh_legendre(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Evaluate shifted Legendre polynomial at a point."""

def exp1(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Exponential integral E1."""

def exp10(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Compute ``10**x`` element-wise."""

def exp2(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Compute ``2**x`` element-wise."""

def expi(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Exponential integral Ei."""

def expit(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Expit (a.k.a. logistic sigmoid) ufunc for ndarrays."""

def expm1(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Compute ``exp(x) - 1``."""

def expn(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Generalized exponential integral En."""

def exprel(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Relative error exponential, ``(exp(x) - 1)/x``."""

def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """The factorial of a number or array of numbers."""

def factorial2(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """Double factorial."""

def factorialk(n: Any, k: Any, exact: bool = False, extend: str = "zero") -> Any:
    """Multifactorial of n of order k, n(!!...!)."""

def fdtr(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """F cumulative distribution function."""

def fdtrc(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """F survival function."""

def fdtri(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """The `p`-th quantile of the F-distribution."""

def fdtridfd(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse to `fdtr` vs dfd"""

def fresnel(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Fresnel integrals."""

def fresnel_zeros(nt: Any) -> Any:
    """Compute nt complex zeros of sine and cosine Fresnel integrals S(z) and C(z)."""

def fresnelc_zeros(nt: Any) -> Any:
    """Compute nt complex zeros of cosine Fresnel integral C(z)."""

def fresnels_zeros(nt: Any) -> Any:
    """Compute nt complex zeros of sine Fresnel integral S(z)."""

def gamma(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """gamma function."""

def gammainc(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Regularized lower incomplete gamma function."""

def gammaincc(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Regularized upper incomplete gamma function."""

def gammainccinv(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Inverse of the regularized upper incomplete gamma function."""

def gammaincinv(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Inverse to the regularized lower incomplete gamma function."""

def gammaln(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Logarithm of the absolute value of the gamma function."""

def gammasgn(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Sign of the gamma function."""

def gdtr(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Gamma distribution cumulative distribution function."""

def gdtrc(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Gamma distribution survival function."""

def gdtria(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse of `gdtr` vs a."""

def gdtrib(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse of `gdtr` vs b."""

def gdtrix(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse of `gdtr` vs x."""

def gegenbauer(n: Any, alpha: Any, monic: bool = False) -> Any:
    """Gegenbauer (ultraspherical) polynomial."""

def genlaguerre(n: Any, alpha: Any, monic: bool = False) -> Any:
    """Generalized (associated) Laguerre polynomial."""

def geterr() -> Any:
    """Get the current way of handling special-function errors."""

def h1vp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the first Hankel function, `hankel1`, with respect to `z`."""

def h2vp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the second Hankel function, `hankel2`, with respect to `z`."""

def h_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Hermite (physicist's) quadrature."""

def hankel1(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Hankel function of the first kind"""

def hankel1e(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Exponentially scaled Hankel function of the first kind"""

def hankel2(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Hankel function of the second kind"""

def hankel2e(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Exponentially scaled Hankel function of the second kind"""

def he_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Hermite (statistician's) quadrature."""

def hermite(n: Any, monic: bool = False) -> Any:
    """Physicist's Hermite polynomial."""

def hermitenorm(n: Any, monic: bool = False) -> Any:
    """Normalized (probabilist's) Hermite polynomial."""

def huber(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Huber loss function."""

def hyp0f1(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Confluent hypergeometric limit function 0F1."""

def hyp1f1(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Confluent hypergeometric function 1F1."""

def hyp2f1(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Gauss hypergeometric function 2F1(a, b; c; z)"""

def hyperu(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Confluent hypergeometric function U"""

def i0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Modified Bessel function of order 0."""

def i0e(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Exponentially scaled modified Bessel function of order 0."""

def i1(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Modified Bessel function of order 1."""

def i1e(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Exponentially scaled modified Bessel function of order 1."""

def inv_boxcox(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the inverse of the Box-Cox transformation."""

def inv_boxcox1p(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the inverse of the Box-Cox transformation."""

def it2i0k0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Integrals related to modified Bessel functions of order 0."""

def it2j0y0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Integrals related to Bessel functions of the first kind of order 0."""

def it2struve0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Integral related to the Struve function of order 0."""

def itairy(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Integrals of Airy functions"""

def iti0k0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Integrals of modified Bessel functions of order 0."""

def itj0y0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Integrals of Bessel functions of the first kind of order 0."""

def itmodstruve0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Integral of the modified Struve function of order 0."""

def itstruve0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Integral of the Struve function of order 0."""

def iv(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Modified Bessel function of the first kind of real order."""

def ive(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Exponentially scaled modified Bessel function of the first kind."""

def ivp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the modified Bessel function I, `iv`, with respect to `z`."""

def j0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Bessel function of the first kind of order 0."""

def j1(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Bessel function of the first kind of order 1."""

def j_roots(n: Any, alpha: Any, beta: Any, mu: bool = False) -> Any:
    """Gauss-Jacobi quadrature."""

def jacobi(n: Any, alpha: Any, beta: Any, monic: bool = False) -> Any:
    """Jacobi polynomial."""

def jn(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Bessel function of the first kind of real order and complex argument."""

def jn_zeros(n: Any, nt: Any) -> Any:
    """Compute zeros of integer-order Bessel functions Jn."""

def jnjnp_zeros(nt: Any) -> Any:
    """Compute zeros of integer-order Bessel functions Jn and Jn'."""

def jnp_zeros(n: Any, nt: Any) -> Any:
    """Compute zeros of integer-order Bessel function derivatives Jn'."""

def jnyn_zeros(n: Any, nt: Any) -> Any:
    """Compute nt zeros of Bessel functions Jn(x), Jn'(x), Yn(x), and Yn'(x)."""

def js_roots(n: Any, p1: Any, q1: Any, mu: bool = False) -> Any:
    """Gauss-Jacobi (shifted) quadrature."""

def jv(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Bessel function of the first kind of real order and complex argument."""

def jve(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Exponentially scaled Bessel function of the first kind of order `v`."""

def jvp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the Bessel function J, `jv`, with respect to `z`."""

def k0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Modified Bessel function of the second kind of order 0, :math:`K_0`."""

def k0e(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Exponentially scaled modified Bessel function K of order 0"""

def k1(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Modified Bessel function of the second kind of order 1, :math:`K_1(x)`."""

def k1e(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Exponentially scaled modified Bessel function K of order 1"""

def kei(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Kelvin function kei."""

def kei_zeros(nt: Any) -> Any:
    """Compute nt zeros of the Kelvin function kei."""

def keip(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Derivative of the Kelvin function kei."""

def keip_zeros(nt: Any) -> Any:
    """Compute nt zeros of the derivative of the Kelvin function kei."""

def kelvin(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Kelvin functions as complex numbers"""

def kelvin_zeros(nt: Any) -> Any:
    """Compute nt zeros of all Kelvin functions."""

def ker(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Kelvin function ker."""

def ker_zeros(nt: Any) -> Any:
    """Compute nt zeros of the Kelvin function ker."""

def kerp(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Derivative of the Kelvin function ker."""

def kerp_zeros(nt: Any) -> Any:
    """Compute nt zeros of the derivative of the Kelvin function ker."""

def kl_div(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Elementwise function for computing Kullback-Leibler divergence."""

def kn(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Modified Bessel function of the second kind of integer order `n`"""

def kolmogi(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Inverse Survival Function of Kolmogorov distribution"""

def kolmogorov(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Complementary cumulative distribution (Survival Function) function of Kolmogorov
    distribution.
    """

def kv(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Modified Bessel function of the second kind of real order `v`"""

def kve(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Exponentially scaled modified Bessel function of the second kind."""

def kvp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the modified Bessel function K, `kv`, with respect to `z`."""

def l_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Laguerre quadrature."""

def la_roots(n: Any, alpha: Any, mu: bool = False) -> Any:
    """Gauss-generalized Laguerre quadrature."""

def laguerre(n: Any, monic: bool = False) -> Any:
    """Laguerre polynomial."""

def lambertw(z: ArrayLike, /, k: SupportsIndex = 0, tol: ArrayLike = 1e-08) -> Tensor:
    """The Lambert W function: the complex w with w exp(w) = z."""

def legendre(n: Any, monic: bool = False) -> Any:
    """Legendre polynomial."""

def legendre_p(n: SupportsIndex, z: ArrayLike, *, diff_n: int = 0) -> Any:
    """Legendre polynomial of degree `n` and its derivatives, as SciPy's function of the name."""

def legendre_p_all(n: int, z: ArrayLike, *, diff_n: int = 0) -> Any:
    """Legendre polynomials of all degrees up to `n`, and their derivatives."""

def lmbda(v: float, x: ArrayLike) -> tuple[Any, Any]:
    """Lambda functions of Jahnke and Emde, gamma(v + 1) (2 / x)^v J_v(x) (DLMF 10.16.9)."""

def log1p(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Calculates log(1 + x) for use when `x` is near zero."""

def log_expit(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Logarithm of the logistic sigmoid function."""

def log_ndtr(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Logarithm of Gaussian cumulative distribution function."""

def log_softmax(x: ArrayLike, axis: Axis = None) -> Tensor:
    """Logarithm of `softmax`, accurate where `softmax` underflows to 0."""

def log_wright_bessel(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Natural logarithm of Wright's generalized Bessel function, see `wright_bessel`. This
    function comes in handy in particular for large values of x.
    """

def logaddexp2(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """log2(2^x + 2^y), without overflow."""

def loggamma(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Principal branch of the logarithm of the gamma function."""

def logit(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Logit ufunc for ndarrays."""

def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Tensor:
    """log(sum(b exp(a))) along axes, without overflow."""

def lpmv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Associated Legendre function of integer order and real degree."""

def lqmn(m: int, n: int, z: ArrayLike) -> tuple[Any, Any]:
    """Associated Legendre functions of the second kind of all orders and degrees up to m and n."""

def lqn(n: int, z: ArrayLike) -> tuple[Any, Any]:
    """Legendre functions of the second kind of all degrees up to `n`."""

def mathieu_a(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Characteristic value of even Mathieu functions"""

def mathieu_b(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Characteristic value of odd Mathieu functions"""

def mathieu_cem(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Even Mathieu function and its derivative"""

def mathieu_even_coef(m: Any, q: Any) -> Any:
    """Fourier coefficients for even Mathieu and modified Mathieu functions."""

def mathieu_modcem1(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Even modified Mathieu function of the first kind and its derivative"""

def mathieu_modcem2(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Even modified Mathieu function of the second kind and its derivative"""

def mathieu_modsem1(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Odd modified Mathieu function of the first kind and its derivative"""

def mathieu_modsem2(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Odd modified Mathieu function of the second kind and its derivative"""

def mathieu_odd_coef(m: Any, q: Any) -> Any:
    """Fourier coefficients for odd Mathieu and modified Mathieu functions."""

def mathieu_sem(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Odd Mathieu function and its derivative"""

def modfresnelm(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Modified Fresnel negative integrals"""

def modfresnelp(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Modified Fresnel positive integrals"""

def modstruve(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Modified Struve function."""

def multigammaln(a: ArrayLike, /, d: Any) -> Tensor:
    """Logarithm of the gamma function of several variables."""

def multiply_no_nan(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x y, and 0 where `y` is 0, even if `x` is infinite or NaN."""

def nbdtr(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Negative binomial cumulative distribution function."""

def nbdtrc(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Negative binomial survival function."""

def nbdtri(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Returns the inverse with respect to the parameter `p` of ``y = nbdtr(k, n, p)``, the
    negative binomial cumulative distribution function.
    """

def nbdtrik(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Negative binomial percentile function."""

def nbdtrin(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse of `nbdtr` vs `n`."""

def ncfdtr(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Cumulative distribution function of the non-central F distribution."""

def ncfdtri(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse with respect to `f` of the CDF of the non-central F distribution."""

def ncfdtridfd(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Calculate degrees of freedom (denominator) for the noncentral F-distribution."""

def ncfdtridfn(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Calculate degrees of freedom (numerator) for the noncentral F-distribution."""

def ncfdtrinc(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Calculate non-centrality parameter for non-central F distribution."""

def nctdtr(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Cumulative distribution function of the non-central `t` distribution."""

def nctdtridf(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Calculate degrees of freedom for non-central t distribution."""

def nctdtrinc(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Calculate non-centrality parameter for non-central t distribution."""

def nctdtrit(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Inverse cumulative distribution function of the non-central t distribution."""

def ndtr(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Cumulative distribution of the standard normal distribution."""

def ndtri(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Inverse of `ndtr` vs x"""

def ndtri_exp(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Inverse of `log_ndtr` vs x. Allows for greater precision than `ndtri` composed with
    `numpy.exp` for very small values of y and for y close to 0.
    """

def nrdtrimn(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Calculate mean of normal distribution given other params."""

def nrdtrisd(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Calculate standard deviation of normal distribution given other params."""

def obl_ang1(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Oblate spheroidal angular function of the first kind and its derivative"""

def obl_ang1_cv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    x5: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Oblate spheroidal angular function obl_ang1 for precomputed characteristic value"""

def obl_cv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Characteristic value of oblate spheroidal function"""

def obl_cv_seq(m: Any, n: Any, c: Any) -> Any:
    """Characteristic values for oblate spheroidal wave functions."""

def obl_rad1(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Oblate spheroidal radial function of the first kind and its derivative"""

def obl_rad1_cv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    x5: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Oblate spheroidal radial function obl_rad1 for precomputed characteristic value"""

def obl_rad2(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Oblate spheroidal radial function of the second kind and its derivative."""

def obl_rad2_cv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    x5: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Oblate spheroidal radial function obl_rad2 for precomputed characteristic value"""

def owens_t(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Owen's T Function."""

def p_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Legendre quadrature."""

def pbdn_seq(n: Any, z: Any) -> Any:
    """Parabolic cylinder functions Dn(z) and derivatives."""

def pbdv(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Parabolic cylinder function D"""

def pbdv_seq(v: Any, x: Any) -> Any:
    """Parabolic cylinder functions Dv(x) and derivatives."""

def pbvv(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Parabolic cylinder function V"""

def pbvv_seq(v: Any, x: Any) -> Any:
    """Parabolic cylinder functions Vv(x) and derivatives."""

def pbwa(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Parabolic cylinder function W."""

def pdtr(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Poisson cumulative distribution function."""

def pdtrc(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Poisson survival function"""

def pdtri(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Inverse to `pdtr` vs m"""

def pdtrik(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Inverse to `pdtr` vs `k`."""

def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """Permutations of N things taken k at a time, i.e., k-permutations of N."""

def poch(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Pochhammer symbol."""

def polygamma(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """n-th derivative of `digamma`; `n` is a non-negative integer, without a gradient."""

def powm1(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Computes ``x**y - 1``."""

def pro_ang1(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Prolate spheroidal angular function of the first kind and its derivative"""

def pro_ang1_cv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    x5: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Prolate spheroidal angular function pro_ang1 for precomputed characteristic value"""

def pro_cv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Characteristic value of prolate spheroidal function"""

def pro_cv_seq(m: Any, n: Any, c: Any) -> Any:
    """Characteristic values for prolate spheroidal wave functions."""

def pro_rad1(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Prolate spheroidal radial function of the first kind and its derivative"""

def pro_rad1_cv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    x5: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Prolate spheroidal radial function pro_rad1 for precomputed characteristic value"""

def pro_rad2(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Prolate spheroidal radial function of the second kind and its derivative"""

def pro_rad2_cv(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    x4: ArrayLike,
    x5: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Any:
    """Prolate spheroidal radial function pro_rad2 for precomputed characteristic value"""

def ps_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Legendre (shifted) quadrature."""

def pseudo_huber(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Pseudo-Huber loss function."""

def psi(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """The digamma function."""

def radian(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Convert from degrees to radians."""

def rel_entr(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Elementwise function for computing relative entropy."""

def rgamma(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Reciprocal of the gamma function."""

def riccati_jn(n: int, x: ArrayLike) -> tuple[Any, Any]:
    """Riccati-Bessel functions of the first kind, `x` times the spherical one."""

def riccati_yn(n: int, x: ArrayLike) -> tuple[Any, Any]:
    """Riccati-Bessel functions of the second kind, `x` times the spherical one."""

def roots_chebyc(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (first kind) quadrature."""

def roots_chebys(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (second kind) quadrature."""

def roots_chebyt(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (first kind) quadrature."""

def roots_chebyu(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (second kind) quadrature."""

def roots_gegenbauer(n: Any, alpha: Any, mu: bool = False) -> Any:
    """Gauss-Gegenbauer quadrature."""

def roots_genlaguerre(n: Any, alpha: Any, mu: bool = False) -> Any:
    """Gauss-generalized Laguerre quadrature."""

def roots_hermite(n: Any, mu: bool = False) -> Any:
    """Gauss-Hermite (physicist's) quadrature."""

def roots_hermitenorm(n: Any, mu: bool = False) -> Any:
    """Gauss-Hermite (statistician's) quadrature."""

def roots_jacobi(n: Any, alpha: Any, beta: Any, mu: bool = False) -> Any:
    """Gauss-Jacobi quadrature."""

def roots_laguerre(n: Any, mu: bool = False) -> Any:
    """Gauss-Laguerre quadrature."""

def roots_legendre(n: Any, mu: bool = False) -> Any:
    """Gauss-Legendre quadrature."""

def roots_sh_chebyt(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (first kind, shifted) quadrature."""

def roots_sh_chebyu(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (second kind, shifted) quadrature."""

def roots_sh_jacobi(n: Any, p1: Any, q1: Any, mu: bool = False) -> Any:
    """Gauss-Jacobi (shifted) quadrature."""

def roots_sh_legendre(n: Any, mu: bool = False) -> Any:
    """Gauss-Legendre (shifted) quadrature."""

def round(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Round to the nearest integer."""

def s_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (second kind) quadrature."""

def seterr(**kwargs: Any) -> Any:
    """Set how special-function errors are handled."""

def sh_chebyt(n: Any, monic: bool = False) -> Any:
    """Shifted Chebyshev polynomial of the first kind."""

def sh_chebyu(n: Any, monic: bool = False) -> Any:
    """Shifted Chebyshev polynomial of the second kind."""

def sh_jacobi(n: Any, p: Any, q: Any, monic: bool = False) -> Any:
    """Shifted Jacobi polynomial."""

def sh_legendre(n: Any, monic: bool = False) -> Any:
    """Shifted Legendre polynomial."""

def shichi(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Hyperbolic sine and cosine integrals."""

def sici(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Sine and cosine integrals."""

def sinc(x: ArrayLike, /) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0. Its derivatives are exact at 0 and near it."""

def sindg(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Sine of the angle `x` given in degrees."""

def smirnov(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Kolmogorov-Smirnov complementary cumulative distribution function"""

def smirnovi(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Inverse to `smirnov`"""

def softmax(x: ArrayLike, axis: Axis = None) -> Tensor:
    """Exponentials divided by their sum."""

def softplus(x: ArrayLike, /, beta: ArrayLike = 1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow. The gradient is the sigmoid of beta * x."""

def spence(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Spence's function, also known as the dilogarithm."""

def sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, /) -> Tensor:
    """Spherical harmonic of degree `n` and order `m`, a complex number."""

def sph_harm_y_all(n: int, m: int, theta: ArrayLike, phi: ArrayLike, *, diff_n: int = 0) -> Any:
    """Spherical harmonics of all degrees up to `n` and orders from -m to m."""

def sph_legendre_p(n: SupportsIndex, m: SupportsIndex, theta: ArrayLike, *, diff_n: int = 0) -> Any:
    """Spherical Legendre function of the polar angle: `sph_harm_y` at the azimuth 0."""

def sph_legendre_p_all(n: int, m: int, theta: ArrayLike, *, diff_n: int = 0) -> Any:
    """Spherical Legendre functions of all degrees up to `n` and orders from -m to m."""

def spherical_in(n: int, z: ArrayLike, derivative: bool = False) -> Tensor:
    """Modified spherical Bessel function of the first kind, or its derivative."""

def spherical_jn(n: int, z: ArrayLike, derivative: bool = False) -> Tensor:
    """Spherical Bessel function of the first kind, or its derivative."""

def spherical_kn(n: int, z: ArrayLike, derivative: bool = False) -> Tensor:
    """Modified spherical Bessel function of the second kind, or its derivative."""

def spherical_yn(n: int, z: ArrayLike, derivative: bool = False) -> Tensor:
    """Spherical Bessel function of the second kind, or its derivative."""

def stdtr(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Student t distribution cumulative distribution function"""

def stdtridf(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Inverse of `stdtr` vs df"""

def stdtrit(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """The `p`-th quantile of the student t distribution."""

def stirling2(N: Any, K: Any, *, exact: bool = False) -> Any:
    """Generate Stirling number(s) of the second kind."""

def struve(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Struve function."""

def t_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (first kind) quadrature."""

def tandg(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Tangent of angle `x` given in degrees."""

def tklmbda(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Cumulative distribution function of the Tukey lambda distribution."""

def trigamma(x: ArrayLike, /) -> Tensor:
    """Derivative of `digamma`."""

def ts_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (first kind, shifted) quadrature."""

def u_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (second kind) quadrature."""

def us_roots(n: Any, mu: bool = False) -> Any:
    """Gauss-Chebyshev (second kind, shifted) quadrature."""

def voigt_profile(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Voigt profile."""

def wofz(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Faddeeva function"""

def wright_bessel(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    /,
    out: Any = None,
    **ufunc: Unpack[NumpyUfuncKeywords],
) -> Tensor:
    """Wright's generalized Bessel function."""

def wrightomega(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Wright Omega function."""

def xdivy(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x / y, and 0 where both `x` and `y` are 0; the gradients there are 0 too."""

def xlog1py(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute ``x*log1p(y)`` so that the result is 0 if ``x = 0``."""

def xlogy(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute ``x*log(y)`` so that the result is 0 if ``x = 0``."""

def y0(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Bessel function of the second kind of order 0."""

def y0_zeros(nt: Any, complex: bool = False) -> Any:
    """Compute nt zeros of Bessel function Y0(z), and derivative at each zero."""

def y1(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Bessel function of the second kind of order 1."""

def y1_zeros(nt: Any, complex: bool = False) -> Any:
    """Compute nt zeros of Bessel function Y1(z), and derivative at each zero."""

def y1p_zeros(nt: Any, complex: bool = False) -> Any:
    """Compute nt zeros of Bessel derivative Y1'(z), and value at each zero."""

def yn(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Bessel function of the second kind of integer order and real argument."""

def yn_zeros(n: Any, nt: Any) -> Any:
    """Compute zeros of integer-order Bessel function Yn(x)."""

def ynp_zeros(n: Any, nt: Any) -> Any:
    """Compute zeros of integer-order Bessel function derivatives Yn'(x)."""

def yv(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Bessel function of the second kind of real order and complex argument."""

def yve(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Exponentially scaled Bessel function of the second kind of real order."""

def yvp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the Bessel function Y, `yv`, with respect to `z`."""

def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Tensor:
    """The Riemann zeta function of `x`, or Hurwitz's, the sum of (k + q)^-x from k = 0."""

def zetac(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Riemann zeta function minus 1."""
