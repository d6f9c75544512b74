# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
import builtins
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike, DTypeLike, DeviceLike
from typing import Any, SupportsIndex
from numpy.random.bit_generator import SeedSequence as SeedSequence

__all__: list[str]

class BitGenerator:
    def __init__(self, seed: Any = None) -> None:
        """A stream of random bits. All of NumPy's and CuPy's names of bit generators are this
        one.
        """

    def __getattr__(self, name: str, /) -> Any: ...

class Generator:
    def __init__(self, bit_generator: Any = None) -> None:
        """NumPy's ``Generator``, of a `BitGenerator` or a seed."""

    def __getattr__(self, name: str, /) -> Any: ...

class MRG32k3a:
    def __init__(self, seed: Any = None) -> None:
        """A stream of random bits. All of NumPy's and CuPy's names of bit generators are this
        one.
        """

    def __getattr__(self, name: str, /) -> Any: ...

class MT19937:
    def __init__(self, seed: Any = None) -> None:
        """A stream of random bits. All of NumPy's and CuPy's names of bit generators are this
        one.
        """

    def __getattr__(self, name: str, /) -> Any: ...

class PCG64:
    def __init__(self, seed: Any = None) -> None:
        """A stream of random bits. All of NumPy's and CuPy's names of bit generators are this
        one.
        """

    def __getattr__(self, name: str, /) -> Any: ...

class PCG64DXSM:
    def __init__(self, seed: Any = None) -> None:
        """A stream of random bits. All of NumPy's and CuPy's names of bit generators are this
        one.
        """

    def __getattr__(self, name: str, /) -> Any: ...

class Philox:
    def __init__(self, seed: Any = None) -> None:
        """A stream of random bits. All of NumPy's and CuPy's names of bit generators are this
        one.
        """

    def __getattr__(self, name: str, /) -> Any: ...

class Philox4x3210:
    def __init__(self, seed: Any = None) -> None:
        """A stream of random bits. All of NumPy's and CuPy's names of bit generators are this
        one.
        """

    def __getattr__(self, name: str, /) -> Any: ...

class RandomState:
    def __init__(self, seed: Any = None) -> None:
        """NumPy's ``RandomState``, of a seed or a `BitGenerator`."""

    def __getattr__(self, name: str, /) -> Any: ...

class SFC64:
    def __init__(self, seed: Any = None) -> None:
        """A stream of random bits. All of NumPy's and CuPy's names of bit generators are this
        one.
        """

    def __getattr__(self, name: str, /) -> Any: ...

class XORWOW:
    def __init__(self, seed: Any = None) -> None:
        """A stream of random bits. All of NumPy's and CuPy's names of bit generators are this
        one.
        """

    def __getattr__(self, name: str, /) -> Any: ...

def beta(
    a: Any, b: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``beta``: Beta random numbers from 0 to 1, with mean alpha / (alpha + beta);
    others as `normal`.
    """

def binomial(
    n: Any, p: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``binomial``: The number of successes in `n` trials, each with probability `p`;
    others as `poisson`.
    """

def bytes(length: int) -> builtins.bytes:
    """Random bytes."""

def chisquare(
    df: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``chisquare``: Sums of squares of `df` normal numbers; `df` need not be an
    integer. Others as `normal`.
    """

def choice(
    a: Any, size: Any = None, replace: bool = True, p: Any = None, *, device: DeviceLike = None
) -> Tensor:
    """Random elements of an array of one axis, or random integers below an int."""

def default_rng(seed: Any = None) -> Generator:
    """A `Generator` of a seed, a `BitGenerator`, or that of a `Generator` or `RandomState`."""

def dirichlet(
    alpha: ArrayLike, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``dirichlet``: Random probabilities that sum to 1 along the last axis."""

def exponential(
    scale: Any = 1.0, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``exponential``: Exponential random numbers with mean `scale`, all above 0; other
    arguments as `normal`.
    """

def f(
    dfnum: Any, dfden: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``f``: F: chisquare(dfnum) / dfnum over chisquare(dfden) / dfden; others as
    `normal`.
    """

def gamma(
    shape: Any,
    scale: Any = 1.0,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``gamma``: Gamma random numbers with shape parameter `alpha`, `scale`, and mean
    alpha * scale.
    """

def geometric(
    p: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``geometric``: The number of trials until one succeeds, each with probability `p`;
    others as `poisson`.
    """

def get_state(legacy: bool = True) -> Any:
    """The position of the stream, for `set_state`."""

def gumbel(
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``gumbel``: Gumbel, the limit of maxima: `loc` - `scale` log(exponential); other
    arguments as `normal`.
    """

def hypergeometric(
    ngood: Any,
    nbad: Any,
    nsample: Any,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``hypergeometric``: How many are good of `nsample` drawn from `ngood` and `nbad`;
    others as `poisson`.
    """

def laplace(
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``laplace``: Laplace: `loc` plus or minus `scale` times an exponential; other
    arguments as `normal`.
    """

def logistic(
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``logistic``: Logistic: `loc` + `scale` log(u / (1 - u)) for a uniform u; other
    arguments as `normal`.
    """

def lognormal(
    mean: Any = 0.0,
    sigma: Any = 1.0,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``lognormal``: Exponentials of normal numbers with `mean` and deviation `sigma`;
    others as `normal`.
    """

def logseries(
    p: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``logseries``: Integers k from 1 up with probability -`p` ** k / (k log(1 - `p`));
    others as `poisson`.
    """

def multinomial(
    n: SupportsIndex,
    pvals: Any,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``multinomial``: How often each of k outcomes comes in `n` trials: binomial
    numbers, one after the other.
    """

def multivariate_normal(
    mean: Any,
    cov: Any,
    size: Any = None,
    check_valid: str = "warn",
    tol: float = 1e-08,
    method: str = "svd",
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Normal vectors of a mean and a covariance matrix, which may be singular."""

def negative_binomial(
    n: Any, p: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``negative_binomial``: The number of failures before `n` trials succeed, each with
    probability `p`.
    """

def noncentral_chisquare(
    df: Any, nonc: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``noncentral_chisquare``: Sums of `df` squares of normal numbers whose squared
    means sum to `nonc`.
    """

def noncentral_f(
    dfnum: Any,
    dfden: Any,
    nonc: Any,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``noncentral_f``: F with a numerator of `noncentral_chisquare`; the parameters get
    no gradient.
    """

def normal(
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``normal``: Normal random numbers with a mean and a standard deviation."""

def pareto(a: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Any:
    """NumPy's ``pareto``: Pareto: numbers from `scale` up, above x with probability (`scale` /
    x) ** `alpha`.
    """

def permutation(x: Any, axis: int = 0, *, device: DeviceLike = None) -> Tensor:
    """The integers below an int in random order, or an array in random order along an axis."""

def poisson(
    lam: Any = 1.0, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``poisson``: Poisson random numbers with mean `rate`; int64 if `dtype` is None,
    others as `bernoulli`.
    """

def power(a: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Any:
    """NumPy's ``power``: From 0 to 1 with density a x ** (a - 1): a uniform number to the 1 /
    `a`; as `normal`.
    """

def rand(*args: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Numbers from 0 up to 1; the arguments are the shape."""

def randint(
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: DTypeLike = ...,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Random integers from `low` up to, but not including, `high`."""

def randn(*args: int, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Normal numbers; the arguments are the shape."""

def random(size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Any:
    """NumPy's ``random``: Random numbers from `low` up to, but not including, `high`; other
    arguments as `normal`.
    """

def random_integers(low: Any, high: Any = None, size: Any = None) -> Tensor:
    """Random integers from `low`, or 1, up to and including `high`."""

def random_sample(size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Any:
    """NumPy's ``random_sample``: Random numbers from `low` up to, but not including, `high`;
    other arguments as `normal`.
    """

def ranf(size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Any:
    """NumPy's ``random_sample``: Random numbers from `low` up to, but not including, `high`;
    other arguments as `normal`.
    """

def rayleigh(
    scale: Any = 1.0, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``rayleigh``: Lengths of vectors of two normal numbers, times `scale`; other
    arguments as `normal`.
    """

def sample(size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Any:
    """NumPy's ``random_sample``: Random numbers from `low` up to, but not including, `high`;
    other arguments as `normal`.
    """

def seed(seed: Any = None) -> None:
    """Restart the stream."""

def set_state(state: Any) -> None:
    """Return to a position of the stream."""

def shuffle(x: Any, axis: int = 0) -> None:
    """Write an array, a Tensor or a list in random order along an axis; a recorded write."""

def standard_cauchy(size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Any:
    """NumPy's ``standard_cauchy``: Cauchy: `loc` + `scale` times a quotient of normal numbers;
    others as `normal`.
    """

def standard_exponential(
    size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``standard_exponential``: Exponential random numbers with mean `scale`, all above
    0; other arguments as `normal`.
    """

def standard_gamma(
    shape: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``standard_gamma``: Gamma random numbers with shape parameter `alpha`, `scale`,
    and mean alpha * scale.
    """

def standard_normal(size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Any:
    """NumPy's ``standard_normal``: Normal random numbers with a mean and a standard deviation."""

def standard_t(
    df: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``standard_t``: Student's t: `loc` + `scale` * normal / sqrt(chisquare(df) / df).
    Others as `normal`.
    """

def triangular(
    left: Any,
    mode: Any,
    right: Any,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``triangular``: From `left` to `right`, with a density that is a triangle with its
    top at `mode`.
    """

def uniform(
    low: Any = 0.0,
    high: Any = 1.0,
    size: Any = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """NumPy's ``uniform``: Random numbers from `low` up to, but not including, `high`; other
    arguments as `normal`.
    """

def vonmises(
    mu: Any, kappa: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``vonmises``: Angles from -pi to pi around `mu` with concentration `kappa`; others
    as `normal`.
    """

def wald(
    mean: Any, scale: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Any:
    """NumPy's ``wald``: Inverse Gaussian with a mean and a scale (Michael, Schucany and Haas
    1976).
    """

def weibull(a: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Any:
    """NumPy's ``weibull``: Weibull: `scale` times an exponential number to the 1 /
    `concentration`; others as `normal`.
    """

def zipf(a: Any, size: Any = None, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Any:
    """NumPy's ``zipf``: Integers k from 1 up with probability in proportion to k ** -`a`; others
    as `poisson`.
    """

def get_random_state() -> RandomState:
    """The state from which the functions of this module draw, as CuPy's function."""

def reset_states() -> None:
    """Seed the state of this module anew from the operating system, as CuPy's function."""

def seeded_rng() -> Any:
    """NumPy's generator for a function of SciPy's that draws, seeded by gpugrad's default
    stream.
    """

def set_random_state(rs: RandomState) -> None:
    """Let the functions of this module draw from another state, as CuPy's function."""
