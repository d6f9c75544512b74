# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike, DTypeLike, DeviceLike
from typing import Any, SupportsIndex
from gpugrad.ops.random.generator import Generator as Generator

__all__: list[str]

def bernoulli(
    shape: int | tuple[int, ...] | list[int] | None = None,
    p: ArrayLike = 0.5,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """True with probability `p`, where a uniform number is below it."""

def beta(
    shape: int | tuple[int, ...] | list[int] | None = None,
    alpha: ArrayLike = 1.0,
    beta: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Beta random numbers from 0 to 1, with mean alpha / (alpha + beta); others as `normal`."""

def binomial(
    shape: int | tuple[int, ...] | list[int] | None = None,
    n: SupportsIndex = 1,
    p: ArrayLike = 0.5,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """The number of successes in `n` trials, each with probability `p`; others as `poisson`."""

def bits(
    shape: int | tuple[int, ...] | list[int] | None = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random bits: integers of uint32 (or `dtype` uint64), all equally likely."""

def categorical(
    logits: ArrayLike,
    shape: int | tuple[int, ...] | list[int] | None = None,
    *,
    axis: int = -1,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random class numbers with probabilities softmax(logits)."""

def cauchy(
    shape: int | tuple[int, ...] | list[int] | None = None,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Cauchy: `loc` + `scale` times a quotient of normal numbers; others as `normal`."""

def chisquare(
    shape: int | tuple[int, ...] | list[int] | None = None,
    df: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Sums of squares of `df` normal numbers; `df` need not be an integer. Others as `normal`."""

def choice(
    x: ArrayLike,
    shape: int | tuple[int, ...] | list[int] | None = (),
    *,
    replace: bool = True,
    p: ArrayLike | None = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random elements of an array along its first axis, or random integers below an int."""

def default_generator() -> Generator:
    """The generator that the functions of `gg.random` use by default."""

def dirichlet(
    alpha: ArrayLike,
    shape: int | tuple[int, ...] | list[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random probabilities that sum to 1 along the last axis."""

def exponential(
    shape: int | tuple[int, ...] | list[int] | None = None,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Exponential random numbers with mean `scale`, all above 0; other arguments as `normal`."""

def f(
    shape: int | tuple[int, ...] | list[int] | None = None,
    dfnum: ArrayLike = 1.0,
    dfden: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """F: chisquare(dfnum) / dfnum over chisquare(dfden) / dfden; others as `normal`."""

def gamma(
    shape: int | tuple[int, ...] | list[int] | None = None,
    alpha: ArrayLike = 1.0,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Gamma random numbers with shape parameter `alpha`, `scale`, and mean alpha * scale."""

def geometric(
    shape: int | tuple[int, ...] | list[int] | None = None,
    p: ArrayLike = 0.5,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """The number of trials until one succeeds, each with probability `p`; others as `poisson`."""

def gumbel(
    shape: int | tuple[int, ...] | list[int] | None = None,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Gumbel, the limit of maxima: `loc` - `scale` log(exponential); other arguments as
    `normal`.
    """

def hypergeometric(
    shape: int | tuple[int, ...] | list[int] | None = None,
    ngood: SupportsIndex = 1,
    nbad: SupportsIndex = 1,
    nsample: SupportsIndex = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """How many are good of `nsample` drawn from `ngood` and `nbad`; others as `poisson`."""

def integers(
    shape: int | tuple[int, ...] | list[int] | None = (),
    low: int = 0,
    high: int | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random integers from `low` up to, but not including, `high`; int64 if `dtype` is None."""

def laplace(
    shape: int | tuple[int, ...] | list[int] | None = None,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Laplace: `loc` plus or minus `scale` times an exponential; other arguments as `normal`."""

def logistic(
    shape: int | tuple[int, ...] | list[int] | None = None,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Logistic: `loc` + `scale` log(u / (1 - u)) for a uniform u; other arguments as `normal`."""

def lognormal(
    shape: int | tuple[int, ...] | list[int] | None = None,
    mean: ArrayLike = 0.0,
    sigma: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Exponentials of normal numbers with `mean` and deviation `sigma`; others as `normal`."""

def logseries(
    shape: int | tuple[int, ...] | list[int] | None = None,
    p: ArrayLike = 0.5,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Integers k from 1 up with probability -`p` ** k / (k log(1 - `p`)); others as `poisson`."""

def multinomial(
    n: SupportsIndex,
    p: ArrayLike,
    shape: int | tuple[int, ...] | list[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """How often each of k outcomes comes in `n` trials: binomial numbers, one after the other."""

def multivariate_hypergeometric(
    colors: ArrayLike,
    nsample: Any,
    shape: int | tuple[int, ...] | list[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """How many of each color are in a sample: hypergeometric numbers, one after the other."""

def multivariate_normal(
    mean: ArrayLike,
    cov: ArrayLike | None = None,
    shape: int | tuple[int, ...] | list[int] | None = None,
    *,
    scale_tril: ArrayLike | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Normal vectors with a mean and a covariance matrix."""

def negative_binomial(
    shape: int | tuple[int, ...] | list[int] | None = None,
    n: ArrayLike = 1.0,
    p: ArrayLike = 0.5,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """The number of failures before `n` trials succeed, each with probability `p`."""

def noncentral_chisquare(
    shape: int | tuple[int, ...] | list[int] | None = None,
    df: ArrayLike = 1.0,
    nonc: ArrayLike = 0.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Sums of `df` squares of normal numbers whose squared means sum to `nonc`."""

def noncentral_f(
    shape: int | tuple[int, ...] | list[int] | None = None,
    dfnum: ArrayLike = 1.0,
    dfden: ArrayLike = 1.0,
    nonc: ArrayLike = 0.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """F with a numerator of `noncentral_chisquare`; the parameters get no gradient."""

def normal(
    shape: int | tuple[int, ...] | list[int] | None = None,
    mean: ArrayLike = 0.0,
    stddev: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Normal random numbers with a mean and a standard deviation."""

def pareto(
    shape: int | tuple[int, ...] | list[int] | None = None,
    alpha: ArrayLike = 1.0,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Pareto: numbers from `scale` up, above x with probability (`scale` / x) ** `alpha`."""

def permutation(
    x: ArrayLike, *, axis: int = 0, device: DeviceLike = None, generator: Generator | None = None
) -> Tensor:
    """The integers below `x` in random order, or an array in random order along an axis."""

def poisson(
    shape: int | tuple[int, ...] | list[int] | None = None,
    rate: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Poisson random numbers with mean `rate`; int64 if `dtype` is None, others as `bernoulli`."""

def power(
    shape: int | tuple[int, ...] | list[int] | None = None,
    a: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """From 0 to 1 with density a x ** (a - 1): a uniform number to the 1 / `a`; as `normal`."""

def rademacher(
    shape: int | tuple[int, ...] | list[int] | None = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """-1 or 1, equally likely; float32 if `dtype` is None, other arguments as `bits`."""

def rayleigh(
    shape: int | tuple[int, ...] | list[int] | None = None,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Lengths of vectors of two normal numbers, times `scale`; other arguments as `normal`."""

def set_seed(seed: int) -> None:
    """Restart the default generator, so that random numbers repeat from here on."""

def student_t(
    shape: int | tuple[int, ...] | list[int] | None = None,
    df: ArrayLike = 1.0,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Student's t: `loc` + `scale` * normal / sqrt(chisquare(df) / df). Others as `normal`."""

def triangular(
    shape: int | tuple[int, ...] | list[int] | None = None,
    left: ArrayLike = 0.0,
    mode: ArrayLike = 0.5,
    right: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """From `left` to `right`, with a density that is a triangle with its top at `mode`."""

def truncated_normal(
    shape: int | tuple[int, ...] | list[int] | None = None,
    mean: ArrayLike = 0.0,
    stddev: ArrayLike = 1.0,
    low: float = -2.0,
    high: float = 2.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers between `low` and `high` standard deviations from the mean."""

def uniform(
    shape: int | tuple[int, ...] | list[int] | None = None,
    low: ArrayLike = 0.0,
    high: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random numbers from `low` up to, but not including, `high`; other arguments as `normal`."""

def vonmises(
    shape: int | tuple[int, ...] | list[int] | None = None,
    mu: ArrayLike = 0.0,
    kappa: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Angles from -pi to pi around `mu` with concentration `kappa`; others as `normal`."""

def wald(
    shape: int | tuple[int, ...] | list[int] | None = None,
    mean: ArrayLike = 1.0,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Inverse Gaussian with a mean and a scale (Michael, Schucany and Haas 1976)."""

def weibull(
    shape: int | tuple[int, ...] | list[int] | None = None,
    concentration: ArrayLike = 1.0,
    scale: ArrayLike = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Weibull: `scale` times an exponential number to the 1 / `concentration`; others as
    `normal`.
    """

def zipf(
    shape: int | tuple[int, ...] | list[int] | None = None,
    a: ArrayLike = 2.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Integers k from 1 up with probability in proportion to k ** -`a`; others as `poisson`."""
