# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike, Axis, UfuncKeywords
from typing import Any, SupportsIndex, Unpack

__all__: list[str]

def agm(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Arithmetic-geometric mean of two positive numbers."""

def airy(z: ArrayLike, /) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Airy functions and their derivatives."""

def airye(x: ArrayLike, /) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scaled Airy functions of a real number: Ai and Ai' times exp(s), Bi and Bi' times exp(-s)."""

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

def bdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Tensor:
    """Probability of at most `k` successes in `n` trials of probability `p`."""

def bdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Tensor:
    """1 - `bdtr`, exact also where that is near 0."""

def bdtri(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The `p` for which bdtr(k, n, p) is `y`."""

def bdtrik(y: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The number of successes `k`, not rounded, for which bdtr(k, n, p) is `y`."""

def bdtrin(k: ArrayLike, y: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The number of trials `n`, not rounded, for which bdtr(k, n, p) is `y`."""

def bei(x: ArrayLike, /) -> Tensor:
    """Kelvin function bei."""

def beip(x: ArrayLike, /) -> Tensor:
    """Derivative of the Kelvin function bei."""

def ber(x: ArrayLike, /) -> Tensor:
    """Kelvin function ber."""

def berp(x: ArrayLike, /) -> Tensor:
    """Derivative of the Kelvin function ber."""

def besselpoly(a: ArrayLike, lmb: ArrayLike, nu: ArrayLike, /) -> Tensor:
    """Integral of x^lmb J_nu(2 a x) from 0 to 1."""

def beta(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Beta function, gamma(a) gamma(b) / gamma(a + b)."""

def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Regularised incomplete beta function, with gradients by all three arguments."""

def betaincc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """1 - `betainc`, the integral from `x` to 1, exact also where that is near 0."""

def betainccinv(a: ArrayLike, b: ArrayLike, y: ArrayLike, /) -> Tensor:
    """The `x` for which betaincc(a, b, x) is `y`."""

def betaincinv(a: ArrayLike, b: ArrayLike, y: ArrayLike, /) -> Tensor:
    """The `x` for which betainc(a, b, x) is `y`."""

def betaln(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Logarithm of the absolute value of `beta`, without its underflow."""

def binom(n: ArrayLike, k: ArrayLike, /) -> Tensor:
    """Binomial coefficient, also of real numbers."""

def boxcox(x: ArrayLike, lmbda: ArrayLike, /) -> Tensor:
    """(x^lmbda - 1) / lmbda, and log(x) where `lmbda` is 0."""

def boxcox1p(x: ArrayLike, lmbda: ArrayLike, /) -> Tensor:
    """((1 + x)^lmbda - 1) / lmbda, and log1p(x) where `lmbda` is 0."""

def btdtr(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Regularised incomplete beta function, with gradients by all three arguments."""

def btdtri(a: ArrayLike, b: ArrayLike, y: ArrayLike, /) -> Tensor:
    """The `x` for which betainc(a, b, x) is `y`."""

def btdtria(p: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The parameter `a` for which betainc(a, b, x) is `p`."""

def btdtrib(a: ArrayLike, p: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The parameter `b` for which betainc(a, b, x) is `p`."""

def cbrt(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Cube root."""

def chdtr(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Distribution function of chi squared with `v` degrees of freedom."""

def chdtrc(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """1 - `chdtr`, exact also where that is near 0."""

def chdtri(v: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The `x` for which chdtrc(v, x) is `p`."""

def chdtriv(p: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The degrees of freedom `v` for which chdtr(v, x) is `p`."""

def chndtr(x: ArrayLike, df: ArrayLike, nc: ArrayLike, /) -> Tensor:
    """Distribution function of noncentral chi squared."""

def chndtridf(x: ArrayLike, p: ArrayLike, nc: ArrayLike, /) -> Tensor:
    """The degrees of freedom `df` for which chndtr(x, df, nc) is `p`."""

def chndtrinc(x: ArrayLike, df: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The noncentrality `nc` for which chndtr(x, df, nc) is `p`."""

def chndtrix(p: ArrayLike, df: ArrayLike, nc: ArrayLike, /) -> Tensor:
    """The `x` for which chndtr(x, df, nc) is `p`."""

def cosdg(x: ArrayLike, /) -> Tensor:
    """Cosine of degrees, exact at multiples of 90."""

def cosm1(x: ArrayLike, /) -> Tensor:
    """cos(x) - 1, exact for small `x`."""

def cotdg(x: ArrayLike, /) -> Tensor:
    """Cotangent of degrees."""

def dawsn(x: ArrayLike, /) -> Tensor:
    """Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to `x`."""

def digamma(x: ArrayLike, /) -> Tensor:
    """Derivative of `gammaln`."""

def diric(x: ArrayLike, n: ArrayLike, /) -> Tensor:
    """Periodic sinc function sin(n x / 2) / (n sin(x / 2)) of a whole number `n` above 0."""

def divide_no_nan(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x / y, and 0 where `y` is 0; the gradients there are 0 too."""

def ellipe(m: ArrayLike, /) -> Tensor:
    """Complete elliptic integral of the second kind, of the parameter `m`; NaN above 1."""

def ellipeinc(phi: ArrayLike, m: ArrayLike, /) -> Tensor:
    """Incomplete elliptic integral of the second kind, of the amplitude `phi`."""

def ellipj(u: ArrayLike, m: ArrayLike, /) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Jacobi's elliptic functions sn, cn and dn, and the amplitude."""

def ellipk(m: ArrayLike, /) -> Tensor:
    """Complete elliptic integral of the first kind, of the parameter `m`; NaN above 1."""

def ellipkinc(phi: ArrayLike, m: ArrayLike, /) -> Tensor:
    """Incomplete elliptic integral of the first kind, of the amplitude `phi`."""

def ellipkm1(p: ArrayLike, /) -> Tensor:
    """`ellipk` of 1 - `p`, exact for small `p`."""

def elliprc(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """Carlson's degenerate elliptic integral, elliprf(x, y, y). Gradients are those of positive
    real arguments.
    """

def elliprd(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Tensor:
    """Carlson's elliptic integral of the second kind, symmetric in `x` and `y`. Gradients are
    those of positive real arguments.
    """

def elliprf(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Tensor:
    """Carlson's elliptic integral of the first kind. Gradients are those of positive real
    arguments.
    """

def elliprg(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Tensor:
    """Carlson's elliptic integral of the second kind, symmetric in its arguments. Gradients are
    those of positive real arguments.
    """

def elliprj(x: ArrayLike, y: ArrayLike, z: ArrayLike, p: ArrayLike, /) -> Tensor:
    """Carlson's elliptic integral of the third kind, symmetric in all but `p`. Gradients are
    those of positive real arguments.
    """

def entr(x: ArrayLike, /) -> Tensor:
    """-x log(x), 0 at 0, and -inf below it."""

def erf(x: ArrayLike, /) -> Tensor:
    """Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to `x`."""

def erfc(x: ArrayLike, /) -> Tensor:
    """1 - erf(x), exact for large `x`."""

def erfcinv(x: ArrayLike, /) -> Tensor:
    """The number whose `erfc` is `x`: infinite at 0 and 2, NaN beyond."""

def erfcx(x: ArrayLike, /) -> Tensor:
    """exp(x^2) erfc(x), which neither overflows nor vanishes for large `x`."""

def erfi(x: ArrayLike, /) -> Tensor:
    """Imaginary error function, -i erf(i x)."""

def erfinv(x: ArrayLike, /) -> Tensor:
    """The number whose `erf` is `x`: infinite at -1 and 1, NaN beyond."""

def eval_chebyc(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Chebyshev polynomial of the first kind of degree `n` on [-2, 2]."""

def eval_chebys(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Chebyshev polynomial of the second kind of degree `n` on [-2, 2]."""

def eval_chebyt(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Chebyshev polynomial of the first kind of degree `n`."""

def eval_chebyu(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Chebyshev polynomial of the second kind of degree `n`."""

def eval_gegenbauer(n: ArrayLike, alpha: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Gegenbauer polynomial of degree `n`."""

def eval_genlaguerre(n: ArrayLike, alpha: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Generalised Laguerre polynomial of degree `n`."""

def eval_hermite(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Hermite polynomial of the physicists of degree `n`."""

def eval_hermitenorm(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Hermite polynomial of the probabilists of degree `n`."""

def eval_jacobi(n: ArrayLike, alpha: ArrayLike, beta: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Jacobi polynomial of degree `n`."""

def eval_laguerre(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Laguerre polynomial of degree `n`."""

def eval_legendre(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Legendre polynomial of degree `n`."""

def eval_sh_chebyt(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Chebyshev polynomial of the first kind of degree `n`, shifted to [0, 1]."""

def eval_sh_chebyu(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Chebyshev polynomial of the second kind of degree `n`, shifted to [0, 1]."""

def eval_sh_jacobi(n: ArrayLike, p: ArrayLike, q: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Jacobi polynomial, shifted to [0, 1] and with the leading coefficient 1, of degree `n`."""

def eval_sh_legendre(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Legendre polynomial of degree `n`, shifted to [0, 1]."""

def exp1(x: ArrayLike, /) -> Tensor:
    """Integral of exp(-t) / t from `x` to infinity."""

def exp10(x: ArrayLike, /) -> Tensor:
    """10 to the power `x`."""

def exp2(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """2 to the power `x`."""

def expi(x: ArrayLike, /) -> Tensor:
    """Principal value of the integral of exp(t) / t from -infinity to `x`."""

def expit(x: ArrayLike, /) -> Tensor:
    """1 / (1 + exp(-x)), without overflow."""

def expm1(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """exp(x) - 1, exact for small `x`."""

def expn(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Integral of exp(-x t) / t^n from 1 to infinity; `n` is an integer, without a gradient."""

def exprel(x: ArrayLike, /) -> Tensor:
    """(exp(x) - 1) / x, and 1 at 0."""

def fdtr(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Distribution function of Fisher's F, with `dfn` and `dfd` degrees of freedom."""

def fdtrc(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike, /) -> Tensor:
    """1 - `fdtr`, exact also where that is near 0."""

def fdtri(dfn: ArrayLike, dfd: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The `x` for which fdtr(dfn, dfd, x) is `p`."""

def fdtridfd(dfn: ArrayLike, p: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The degrees of freedom `dfd` for which fdtr(dfn, dfd, x) is `p`."""

def fresnel(z: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Fresnel's integrals of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to `z`."""

def gamma(x: ArrayLike, /) -> Tensor:
    """Gamma function: (x - 1)! for an integer `x`."""

def gammainc(a: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Regularised lower incomplete gamma function, with gradients by both arguments."""

def gammaincc(a: ArrayLike, x: ArrayLike, /) -> Tensor:
    """1 - `gammainc`, the integral from `x` to infinity, exact also where that is near 0."""

def gammainccinv(a: ArrayLike, y: ArrayLike, /) -> Tensor:
    """The `x` for which gammaincc(a, x) is `y`."""

def gammaincinv(a: ArrayLike, y: ArrayLike, /) -> Tensor:
    """The `x` for which gammainc(a, x) is `y`."""

def gammaln(x: ArrayLike, /) -> Tensor:
    """Logarithm of the absolute value of `gamma`, without its overflow."""

def gammasgn(x: ArrayLike, /) -> Tensor:
    """Sign of the gamma function. Its gradient is None."""

def gdtr(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Distribution function of the gamma distribution with the rate `a` and the shape `b`."""

def gdtrc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """1 - `gdtr`, exact also where that is near 0."""

def gdtria(p: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The `a` for which gdtr(a, b, x) is `p`."""

def gdtrib(a: ArrayLike, p: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The parameter `b` for which gdtr(a, b, x) is `p`."""

def gdtrix(a: ArrayLike, b: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The `x` for which gdtr(a, b, x) is `p`."""

def h1vp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the first Hankel function, `hankel1`, with respect to `z`."""

def h2vp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the second Hankel function, `hankel2`, with respect to `z`."""

def hankel1(v: ArrayLike, z: ArrayLike, /) -> Tensor:
    """Hankel function of the first kind, of real order, a complex number. The gradient by the
    order `v` is not known; asking for it raises NoGradientError.
    """

def hankel1e(v: ArrayLike, z: ArrayLike, /) -> Tensor:
    """exp(-i z) times `hankel1`, a complex number. The gradient by the order `v` is not known;
    asking for it raises NoGradientError.
    """

def hankel2(v: ArrayLike, z: ArrayLike, /) -> Tensor:
    """Hankel function of the second kind, of real order, a complex number. The gradient by the
    order `v` is not known; asking for it raises NoGradientError.
    """

def hankel2e(v: ArrayLike, z: ArrayLike, /) -> Tensor:
    """exp(i z) times `hankel2`, a complex number. The gradient by the order `v` is not known;
    asking for it raises NoGradientError.
    """

def huber(delta: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Huber's loss: x^2 / 2 up to `delta`, its tangent beyond; inf where `delta` < 0."""

def hyp0f1(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Confluent hypergeometric limit function 0F1. The gradients by other arguments are not
    known; asking for one raises.
    """

def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Confluent hypergeometric function 1F1, Kummer's M. The gradients by other arguments are
    not known; asking for one raises.
    """

def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Gauss's hypergeometric function 2F1. The gradients by other arguments are not known;
    asking for one raises.
    """

def hyperu(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Confluent hypergeometric function U, Tricomi's. The gradients by other arguments are not
    known; asking for one raises.
    """

def i0(x: ArrayLike, /) -> Tensor:
    """Modified Bessel function of the first kind, of order 0."""

def i0e(x: ArrayLike, /) -> Tensor:
    """exp(-|x|) times `i0`, which does not overflow. The gradient at 0 is 0."""

def i1(x: ArrayLike, /) -> Tensor:
    """Modified Bessel function of the first kind, of order 1."""

def i1e(x: ArrayLike, /) -> Tensor:
    """exp(-|x|) times `i1`, which does not overflow."""

def inv_boxcox(x: ArrayLike, lmbda: ArrayLike, /) -> Tensor:
    """The number whose `boxcox` is `x`: (1 + lmbda x)^(1/lmbda), exp(x) where `lmbda` is 0."""

def inv_boxcox1p(x: ArrayLike, lmbda: ArrayLike, /) -> Tensor:
    """The number whose `boxcox1p` is `x`."""

def it2i0k0(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Integrals of (i0(t) - 1) / t from 0 to `x`, and of k0(t) / t from `x` on."""

def it2j0y0(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Integrals of (1 - j0(t)) / t from 0 to `x`, and of y0(t) / t from `x` on."""

def it2struve0(x: ArrayLike, /) -> Tensor:
    """Integral of the Struve function H of order 0, divided by t, from `x` on."""

def itairy(x: ArrayLike, /) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Integrals of the Airy functions Ai(t), Bi(t), Ai(-t) and Bi(-t) from 0 to `x`."""

def iti0k0(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Integrals of `i0` and `k0` from 0 to `x`."""

def itj0y0(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Integrals of `j0` and `y0` from 0 to `x`."""

def itmodstruve0(x: ArrayLike, /) -> Tensor:
    """Integral of the modified Struve function L of order 0 from 0 to `x`."""

def itstruve0(x: ArrayLike, /) -> Tensor:
    """Integral of the Struve function H of order 0 from 0 to `x`."""

def iv(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Modified Bessel function of the first kind, of real order. The gradient by the order `v`
    is not known; asking for it raises NoGradientError.
    """

def ive(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """exp(-|x|) times `iv`, which does not overflow. The gradient by the order `v` is not known;
    asking for it raises NoGradientError.
    """

def ivp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the modified Bessel function I, `iv`, with respect to `z`."""

def j0(x: ArrayLike, /) -> Tensor:
    """Bessel function of the first kind, of order 0."""

def j1(x: ArrayLike, /) -> Tensor:
    """Bessel function of the first kind, of order 1."""

def jn(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Bessel function of the first kind, of real order. The gradient by the order `v` is not
    known; asking for it raises NoGradientError.
    """

def jv(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Bessel function of the first kind, of real order. The gradient by the order `v` is not
    known; asking for it raises NoGradientError.
    """

def jve(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """`jv`: the scale exp(-|Im x|) differs from 1 for complex numbers only. The gradient by the
    order `v` is not known; asking for it raises NoGradientError.
    """

def jvp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the Bessel function J, `jv`, with respect to `z`."""

def k0(x: ArrayLike, /) -> Tensor:
    """Modified Bessel function of the second kind, of order 0: infinite at 0, NaN below."""

def k0e(x: ArrayLike, /) -> Tensor:
    """exp(x) times `k0`, which does not vanish for large `x`."""

def k1(x: ArrayLike, /) -> Tensor:
    """Modified Bessel function of the second kind, of order 1: infinite at 0, NaN below."""

def k1e(x: ArrayLike, /) -> Tensor:
    """exp(x) times `k1`, which does not vanish for large `x`."""

def kei(x: ArrayLike, /) -> Tensor:
    """Kelvin function kei."""

def keip(x: ArrayLike, /) -> Tensor:
    """Derivative of the Kelvin function kei."""

def kelvin(x: ArrayLike) -> tuple[Any, ...]:
    """Kelvin functions as complex numbers."""

def ker(x: ArrayLike, /) -> Tensor:
    """Kelvin function ker."""

def kerp(x: ArrayLike, /) -> Tensor:
    """Derivative of the Kelvin function ker."""

def kl_div(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x log(x / y) - x + y; `y` where `x` is 0, and inf where one is negative."""

def kn(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Modified Bessel function of the second kind, of real order: inf at 0. The gradient by the
    order `v` is not known; asking for it raises NoGradientError.
    """

def kolmogi(p: ArrayLike, /) -> Tensor:
    """The `y` for which kolmogorov(y) is `p`."""

def kolmogorov(y: ArrayLike, /) -> Tensor:
    """The probability that sqrt(n) times Kolmogorov's statistic is above `y`, for large n."""

def kv(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Modified Bessel function of the second kind, of real order: inf at 0. The gradient by the
    order `v` is not known; asking for it raises NoGradientError.
    """

def kve(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """exp(x) times `kv`, which does not vanish for large `x`. The gradient by the order `v` is
    not known; asking for it raises NoGradientError.
    """

def kvp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the modified Bessel function K, `kv`, with respect to `z`."""

def lambertw(z: ArrayLike, /, k: SupportsIndex = 0, tol: ArrayLike = 1e-08) -> Tensor:
    """The Lambert W function: the complex w with w exp(w) = z."""

def legendre_p(n: SupportsIndex, z: ArrayLike, *, diff_n: int = 0) -> Any:
    """Legendre polynomial of degree `n` and its derivatives, as SciPy's function of the name."""

def legendre_p_all(n: int, z: ArrayLike, *, diff_n: int = 0) -> Any:
    """Legendre polynomials of all degrees up to `n`, and their derivatives."""

def lmbda(v: float, x: ArrayLike) -> tuple[Any, Any]:
    """Lambda functions of Jahnke and Emde, gamma(v + 1) (2 / x)^v J_v(x) (DLMF 10.16.9)."""

def log1p(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """log(1 + x), exact for small `x`."""

def log_expit(x: ArrayLike, /) -> Tensor:
    """Logarithm of the sigmoid of `x`, exact where the sigmoid itself would be 0 or 1."""

def log_ndtr(x: ArrayLike, /) -> Tensor:
    """Logarithm of `ndtr`, exact where that would be 0 or 1."""

def log_softmax(x: ArrayLike, axis: Axis = None) -> Any:
    """Logarithm of `softmax`, accurate where `softmax` underflows to 0."""

def log_wright_bessel(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The logarithm of `wright_bessel`, which does not overflow. The gradients by other
    arguments are not known; asking for one raises.
    """

def logaddexp2(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """log2(2^x + 2^y), without overflow."""

def loggamma(x: ArrayLike, /) -> Tensor:
    """Logarithm of `gamma`, without its overflow, also for complex numbers; NaN for real x < 0."""

def logit(x: ArrayLike, /) -> Tensor:
    """log(x / (1 - x)), the inverse of the sigmoid; NaN outside of [0, 1]."""

def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """log(sum(b exp(a))) along axes, without overflow."""

def lpmv(m: ArrayLike, v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Associated Legendre function of order `m` and degree `v`, for `x` inside of (-1, 1)."""

def lqmn(m: int, n: int, z: ArrayLike) -> tuple[Any, Any]:
    """Associated Legendre functions of the second kind of all orders and degrees up to m and n."""

def lqn(n: int, z: ArrayLike) -> tuple[Any, Any]:
    """Legendre functions of the second kind of all degrees up to `n`."""

def mathieu_a(m: ArrayLike, q: ArrayLike, /) -> Tensor:
    """Characteristic value of even Mathieu functions, of the order `m`."""

def mathieu_b(m: ArrayLike, q: ArrayLike, /) -> Tensor:
    """Characteristic value of odd Mathieu functions, of the order `m`."""

def mathieu_cem(m: ArrayLike, q: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Even Mathieu function of the order `m` at `x` degrees, and its derivative."""

def mathieu_modcem1(m: ArrayLike, q: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Even, first kind of modified Mathieu function of the order `m`, and its derivative."""

def mathieu_modcem2(m: ArrayLike, q: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Even, second kind of modified Mathieu function of the order `m`, and its derivative."""

def mathieu_modsem1(m: ArrayLike, q: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Odd, first kind of modified Mathieu function of the order `m`, and its derivative."""

def mathieu_modsem2(m: ArrayLike, q: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Odd, second kind of modified Mathieu function of the order `m`, and its derivative."""

def mathieu_sem(m: ArrayLike, q: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Odd Mathieu function of the order `m` at `x` degrees, and its derivative."""

def modfresnelm(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Fresnel's integral F of exp(-i t^2) from `x` >= 0 on."""

def modfresnelp(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Fresnel's integral F of exp(i t^2) from `x` >= 0 on."""

def modstruve(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Modified Struve function L. The gradients by other arguments are not known; asking for one
    raises.
    """

def multigammaln(a: ArrayLike, /, d: Any) -> Tensor:
    """Logarithm of the gamma function of several variables."""

def multiply_no_nan(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x y, and 0 where `y` is 0, even if `x` is infinite or NaN."""

def nbdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Tensor:
    """Probability of at most `k` failures before the `n`-th success of probability `p`."""

def nbdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Tensor:
    """1 - `nbdtr`, exact also where that is near 0."""

def nbdtri(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The `p` for which nbdtr(k, n, p) is `y`."""

def nbdtrik(y: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The number of failures `k`, not rounded, for which nbdtr(k, n, p) is `y`."""

def nbdtrin(k: ArrayLike, y: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The number of successes `n`, not rounded, for which nbdtr(k, n, p) is `y`."""

def ncfdtr(dfn: ArrayLike, dfd: ArrayLike, nc: ArrayLike, f: ArrayLike, /) -> Tensor:
    """Distribution function of noncentral F."""

def ncfdtri(dfn: ArrayLike, dfd: ArrayLike, nc: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The `f` for which ncfdtr(dfn, dfd, nc, f) is `p`."""

def nctdtr(df: ArrayLike, nc: ArrayLike, t: ArrayLike, /) -> Tensor:
    """Distribution function of noncentral t."""

def nctdtridf(p: ArrayLike, nc: ArrayLike, t: ArrayLike, /) -> Tensor:
    """The degrees of freedom `df` for which nctdtr(df, nc, t) is `p`."""

def nctdtrinc(df: ArrayLike, p: ArrayLike, t: ArrayLike, /) -> Tensor:
    """The noncentrality `nc` for which nctdtr(df, nc, t) is `p`."""

def nctdtrit(df: ArrayLike, nc: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The `t` for which nctdtr(df, nc, t) is `p`."""

def ndtr(x: ArrayLike, /) -> Tensor:
    """The probability that a standard normal number is below `x`."""

def ndtri(p: ArrayLike, /) -> Tensor:
    """The inverse of `ndtr`; NaN outside [0, 1]."""

def ndtri_exp(y: ArrayLike, /) -> Tensor:
    """The `x` for which log_ndtr(x) is `y`."""

def nrdtrimn(p: ArrayLike, std: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The mean of the normal distribution with `std` whose distribution function at `x` is `p`."""

def nrdtrisd(mn: ArrayLike, p: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The deviation of the normal distribution of mean `mn` that has `p` below `x`."""

def obl_ang1(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, oblate and angular, of order `m` and degree `n`, and its
    derivative.
    """

def obl_ang1_cv(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike, /
) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, oblate and angular, of order `m` and degree `n`, with the
    characteristic value `cv`, and its derivative.
    """

def obl_cv(m: ArrayLike, n: ArrayLike, c: ArrayLike, /) -> Tensor:
    """Characteristic value of oblate spheroidal functions, of order `m` and degree `n`."""

def obl_rad1(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, oblate and radial, first kind, of order `m` and degree `n`, and
    its derivative.
    """

def obl_rad1_cv(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike, /
) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, oblate and radial, first kind, of order `m` and degree `n`, with
    the characteristic value `cv`, and its derivative.
    """

def obl_rad2(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, oblate and radial, second kind, of order `m` and degree `n`, and
    its derivative.
    """

def obl_rad2_cv(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike, /
) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, oblate and radial, second kind, of order `m` and degree `n`,
    with the characteristic value `cv`, and its derivative.
    """

def owens_t(h: ArrayLike, a: ArrayLike, /) -> Tensor:
    """Owen's T: the probability that X > `h` and 0 < Y < `a` X, X and Y normal."""

def pbdv(v: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Parabolic cylinder function D of order `v`, and its derivative."""

def pbvv(v: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Parabolic cylinder function V of order `v`, and its derivative."""

def pbwa(a: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Parabolic cylinder function W, for `a` and `x` between -5 and 5, and its derivative."""

def pdtr(k: ArrayLike, m: ArrayLike, /) -> Tensor:
    """Probability of at most `k` events of a Poisson distribution with the mean `m`."""

def pdtrc(k: ArrayLike, m: ArrayLike, /) -> Tensor:
    """1 - `pdtr`, exact also where that is near 0."""

def pdtri(k: ArrayLike, y: ArrayLike, /) -> Tensor:
    """The `m` for which pdtr(k, m) is `y`."""

def pdtrik(p: ArrayLike, m: ArrayLike, /) -> Tensor:
    """The number of events `k`, not rounded, for which pdtr(k, m) is `p`."""

def poch(z: ArrayLike, m: ArrayLike, /) -> Tensor:
    """Rising factorial gamma(z + m) / gamma(z), also called Pochhammer's symbol."""

def polygamma(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """n-th derivative of `digamma`; `n` is a non-negative integer, without a gradient."""

def powm1(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x^y - 1, exact also where that is near 0."""

def pro_ang1(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, prolate and angular, of order `m` and degree `n`, and its
    derivative.
    """

def pro_ang1_cv(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike, /
) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, prolate and angular, of order `m` and degree `n`, with the
    characteristic value `cv`, and its derivative.
    """

def pro_cv(m: ArrayLike, n: ArrayLike, c: ArrayLike, /) -> Tensor:
    """Characteristic value of prolate spheroidal functions, of order `m` and degree `n`."""

def pro_rad1(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, prolate and radial, first kind, of order `m` and degree `n`, and
    its derivative.
    """

def pro_rad1_cv(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike, /
) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, prolate and radial, first kind, of order `m` and degree `n`,
    with the characteristic value `cv`, and its derivative.
    """

def pro_rad2(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, prolate and radial, second kind, of order `m` and degree `n`,
    and its derivative.
    """

def pro_rad2_cv(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike, /
) -> tuple[Tensor, Tensor]:
    """Spheroidal wave function, prolate and radial, second kind, of order `m` and degree `n`,
    with the characteristic value `cv`, and its derivative.
    """

def pseudo_huber(delta: ArrayLike, x: ArrayLike, /) -> Tensor:
    """A smooth form of Huber's loss, delta^2 (sqrt(1 + (x / delta)^2) - 1)."""

def psi(x: ArrayLike, /) -> Tensor:
    """Derivative of `gammaln`."""

def radian(d: ArrayLike, m: ArrayLike, s: ArrayLike, /) -> Tensor:
    """Radians of degrees, minutes and seconds."""

def rel_entr(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x log(x / y); 0 where `x` is 0 and `y` is not negative, inf where one is negative."""

def rgamma(x: ArrayLike, /) -> Tensor:
    """1 / gamma(x): 0 at 0, -1, -2, ..., where its derivatives are exact too."""

def riccati_jn(n: int, x: ArrayLike) -> tuple[Any, Any]:
    """Riccati-Bessel functions of the first kind, `x` times the spherical one."""

def riccati_yn(n: int, x: ArrayLike) -> tuple[Any, Any]:
    """Riccati-Bessel functions of the second kind, `x` times the spherical one."""

def round(x: ArrayLike) -> Any:
    """`x` rounded to whole numbers, halves to the even one; its gradient is None."""

def shichi(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Hyperbolic sine and cosine integral."""

def sici(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Sine and cosine integral."""

def sinc(x: ArrayLike, /) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0. Its derivatives are exact at 0 and near it."""

def sindg(x: ArrayLike, /) -> Tensor:
    """Sine of degrees, exact at multiples of 90."""

def softmax(x: ArrayLike, axis: Axis = None) -> Any:
    """Exponentials divided by their sum."""

def softplus(x: ArrayLike, /, beta: ArrayLike = 1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow. The gradient is the sigmoid of beta * x."""

def spence(x: ArrayLike, /) -> Tensor:
    """Integral of log(t) / (1 - t) from 1 to `x`: the dilogarithm of 1 - x; NaN below 0."""

def sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, /) -> Tensor:
    """Spherical harmonic of degree `n` and order `m`, a complex number."""

def sph_harm_y_all(n: int, m: int, theta: ArrayLike, phi: ArrayLike, *, diff_n: int = 0) -> Any:
    """Spherical harmonics of all degrees up to `n` and orders from -m to m."""

def sph_legendre_p(n: SupportsIndex, m: SupportsIndex, theta: ArrayLike, *, diff_n: int = 0) -> Any:
    """Spherical Legendre function of the polar angle: `sph_harm_y` at the azimuth 0."""

def sph_legendre_p_all(n: int, m: int, theta: ArrayLike, *, diff_n: int = 0) -> Any:
    """Spherical Legendre functions of all degrees up to `n` and orders from -m to m."""

def spherical_in(n: int, z: ArrayLike, derivative: bool = False) -> Any:
    """Modified spherical Bessel function of the first kind, or its derivative."""

def spherical_jn(n: int, z: ArrayLike, derivative: bool = False) -> Any:
    """Spherical Bessel function of the first kind, or its derivative."""

def spherical_kn(n: int, z: ArrayLike, derivative: bool = False) -> Any:
    """Modified spherical Bessel function of the second kind, or its derivative."""

def spherical_yn(n: int, z: ArrayLike, derivative: bool = False) -> Any:
    """Spherical Bessel function of the second kind, or its derivative."""

def stdtr(df: ArrayLike, t: ArrayLike, /) -> Tensor:
    """Distribution function of Student's t with `df` degrees of freedom."""

def stdtridf(p: ArrayLike, t: ArrayLike, /) -> Tensor:
    """The degrees of freedom `df` for which stdtr(df, t) is `p`."""

def stdtrit(df: ArrayLike, p: ArrayLike, /) -> Tensor:
    """The `t` for which stdtr(df, t) is `p`."""

def struve(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Struve function H. The gradients by other arguments are not known; asking for one raises."""

def tandg(x: ArrayLike, /) -> Tensor:
    """Tangent of degrees."""

def tklmbda(x: ArrayLike, lmbda: ArrayLike, /) -> Tensor:
    """Distribution function of Tukey's lambda distribution."""

def trigamma(x: ArrayLike, /) -> Tensor:
    """Derivative of `digamma`."""

def voigt_profile(x: ArrayLike, sigma: ArrayLike, gamma: ArrayLike, /) -> Tensor:
    """Density of a sum of normal and Cauchy variables, of the scales `sigma` > 0 and `gamma`."""

def wofz(z: ArrayLike, /) -> Tensor:
    """Faddeeva's function exp(-z^2) erfc(-i z), a complex number."""

def wright_bessel(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Wright's generalised Bessel function: the sum of x^k / (k! gamma(a k + b)). The gradients
    by other arguments are not known; asking for one raises.
    """

def wrightomega(z: ArrayLike, /) -> Tensor:
    """The solution of w + log(w) = `z`, real `z` only."""

def xdivy(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x / y, and 0 where both `x` and `y` are 0; the gradients there are 0 too."""

def xlog1py(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x log(1 + y); where `x` is 0 and log(1 + y) infinite or NaN, it and its gradients are 0."""

def xlogy(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x log(y); where `x` is 0 and log(y) is infinite or NaN, it and its gradients are 0."""

def y0(x: ArrayLike, /) -> Tensor:
    """Bessel function of the second kind, of order 0: -inf at 0, NaN below."""

def y1(x: ArrayLike, /) -> Tensor:
    """Bessel function of the second kind, of order 1: -inf at 0, NaN below."""

def yn(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Bessel function of the second kind, of integer order `n`: -inf at 0, NaN below."""

def yv(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Bessel function of the second kind, of real order: -inf at 0, NaN below. The gradient by
    the order `v` is not known; asking for it raises NoGradientError.
    """

def yve(v: ArrayLike, x: ArrayLike, /) -> Tensor:
    """`yv`: the scale exp(-|Im x|) differs from 1 for complex numbers only. The gradient by the
    order `v` is not known; asking for it raises NoGradientError.
    """

def yvp(v: Any, z: ArrayLike, n: int = 1) -> Any:
    """The `n`-th derivative of the Bessel function Y, `yv`, with respect to `z`."""

def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Any:
    """The Riemann zeta function of `x`, or Hurwitz's, the sum of (k + q)^-x from k = 0."""

def zetac(x: ArrayLike, /) -> Tensor:
    """Riemann's zeta function minus 1, exact also where that is near 0."""
