# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import DTypeLike
from scipy.stats._stats_mstats_common import SiegelslopesResult
from typing import Any
from scipy.stats import biasedurn as biasedurn
from scipy.stats import contingency as contingency
from scipy.stats import distributions as distributions
from scipy.stats import kde as kde
from scipy.stats import morestats as morestats
from scipy.stats import mstats as mstats
from scipy.stats import mstats_basic as mstats_basic
from scipy.stats import mstats_extras as mstats_extras
from scipy.stats import mvn as mvn
from scipy.stats import qmc as qmc
from scipy.stats import stats as stats
from scipy.stats._censored_data import CensoredData as CensoredData
from scipy.stats._continuous_distns import rv_histogram as rv_histogram
from scipy.stats._covariance import Covariance as Covariance
from scipy.stats._distn_infrastructure import rv_continuous as rv_continuous
from scipy.stats._distn_infrastructure import rv_discrete as rv_discrete
from scipy.stats._distribution_infrastructure import Mixture as Mixture
from scipy.stats._new_distributions import Binomial as Binomial
from scipy.stats._new_distributions import Logistic as Logistic
from scipy.stats._new_distributions import Normal as Normal
from scipy.stats._new_distributions import Uniform as Uniform
from scipy.stats._resampling import BootstrapMethod as BootstrapMethod
from scipy.stats._resampling import MonteCarloMethod as MonteCarloMethod
from scipy.stats._resampling import PermutationMethod as PermutationMethod
from scipy.stats._warnings_errors import ConstantInputWarning as ConstantInputWarning
from scipy.stats._warnings_errors import DegenerateDataWarning as DegenerateDataWarning
from scipy.stats._warnings_errors import FitError as FitError
from scipy.stats._warnings_errors import NearConstantInputWarning as NearConstantInputWarning

__all__: list[str]
alpha: Any
anglit: Any
arcsine: Any
argus: Any
bernoulli: Any
beta: Any
betabinom: Any
betanbinom: Any
betaprime: Any
binom: Any
boltzmann: Any
bradford: Any
burr: Any
burr12: Any
cauchy: Any
chi: Any
chi2: Any
cosine: Any
crystalball: Any
dgamma: Any
dlaplace: Any
dpareto_lognorm: Any
dweibull: Any
erlang: Any
expon: Any
exponnorm: Any
exponpow: Any
exponweib: Any
f: Any
fatiguelife: Any
fisk: Any
foldcauchy: Any
foldnorm: Any
gamma: Any
gausshyper: Any
genexpon: Any
genextreme: Any
gengamma: Any
genhalflogistic: Any
genhyperbolic: Any
geninvgauss: Any
genlogistic: Any
gennorm: Any
genpareto: Any
geom: Any
gibrat: Any
gompertz: Any
gumbel_l: Any
gumbel_r: Any
halfcauchy: Any
halfgennorm: Any
halflogistic: Any
halfnorm: Any
hypergeom: Any
hypsecant: Any
invgamma: Any
invgauss: Any
invweibull: Any
irwinhall: Any
jf_skew_t: Any
johnsonsb: Any
johnsonsu: Any
kappa3: Any
kappa4: Any
ksone: Any
kstwo: Any
kstwobign: Any
landau: Any
laplace: Any
laplace_asymmetric: Any
levy: Any
levy_l: Any
loggamma: Any
logistic: Any
loglaplace: Any
lognorm: Any
logser: Any
loguniform: Any
lomax: Any
maxwell: Any
mielke: Any
moyal: Any
nakagami: Any
nbinom: Any
ncf: Any
nchypergeom_fisher: Any
nchypergeom_wallenius: Any
nct: Any
ncx2: Any
nhypergeom: Any
norm: Any
norminvgauss: Any
pareto: Any
pearson3: Any
planck: Any
poisson: Any
poisson_binom: Any
powerlaw: Any
powerlognorm: Any
powernorm: Any
randint: Any
rayleigh: Any
rdist: Any
recipinvgauss: Any
reciprocal: Any
rel_breitwigner: Any
rice: Any
semicircular: Any
skellam: Any
skewcauchy: Any
skewnorm: Any
studentized_range: Any
t: Any
trapezoid: Any
triang: Any
truncexpon: Any
truncnorm: Any
truncpareto: Any
truncweibull_min: Any
tukeylambda: Any
uniform: Any
vonmises: Any
vonmises_line: Any
wald: Any
weibull_max: Any
weibull_min: Any
wrapcauchy: Any
yulesimon: Any
zipf: Any
zipfian: Any

def abs(X: Any, /) -> Any:
    """Absolute value of a random variable"""

def alexandergovern(
    *samples: Any, nan_policy: str = "propagate", axis: Any = 0, keepdims: bool = False
) -> Any:
    """Performs the Alexander Govern test."""

def anderson(x: Any, dist: str = "norm", *, method: Any = None) -> Any:
    """Anderson-Darling test for data coming from a particular distribution."""

def anderson_ksamp(
    samples: Any, midrank: Any = ..., *, variant: Any = ..., method: Any = None
) -> Any:
    """The Anderson-Darling test for k-samples."""

def ansari(
    x: Any,
    y: Any,
    alternative: str = "two-sided",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Perform the Ansari-Bradley test for equal scale parameters."""

def barnard_exact(
    table: Any, alternative: str = "two-sided", pooled: bool = True, n: Any = 32
) -> Any:
    """Perform a Barnard exact test on a 2x2 contingency table."""

def bartlett(
    *samples: Any, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Perform Bartlett's test for equal variances."""

def bayes_mvs(data: Any, alpha: Any = 0.9) -> Any:
    """Bayesian confidence intervals for the mean, var, and std."""

def binned_statistic(
    x: Any, values: Any, statistic: str = "mean", bins: Any = 10, range: Any = None
) -> Any:
    """Compute a binned statistic for one or more sets of data."""

def binned_statistic_2d(
    x: Any,
    y: Any,
    values: Any,
    statistic: str = "mean",
    bins: Any = 10,
    range: Any = None,
    expand_binnumbers: bool = False,
) -> Any:
    """Compute a bidimensional binned statistic for one or more sets of data."""

def binned_statistic_dd(
    sample: Any,
    values: Any,
    statistic: str = "mean",
    bins: Any = 10,
    range: Any = None,
    expand_binnumbers: bool = False,
    binned_statistic_result: Any = None,
) -> Any:
    """Compute a multidimensional binned statistic for a set of data."""

def binomtest(k: Any, n: Any, p: Any = 0.5, alternative: str = "two-sided") -> Any:
    """Perform a test that the probability of success is p."""

def bootstrap(
    data: Any,
    statistic: Any,
    *,
    n_resamples: Any = 9999,
    batch: Any = None,
    vectorized: Any = None,
    paired: bool = False,
    axis: Any = 0,
    confidence_level: Any = 0.95,
    alternative: str = "two-sided",
    method: str = "BCa",
    bootstrap_result: Any = None,
    rng: Any = None,
    random_state: Any = None,
) -> Any:
    """Compute a two-sided bootstrap confidence interval of a statistic."""

def boschloo_exact(table: Any, alternative: str = "two-sided", n: Any = 32) -> Any:
    """Perform Boschloo's exact test on a 2x2 contingency table."""

def boxcox(x: Any, lmbda: Any = None, alpha: Any = None, optimizer: Any = None) -> Any:
    """Return a dataset transformed by a Box-Cox power transformation."""

def boxcox_llf(
    lmb: Any, data: Any, *, axis: Any = 0, keepdims: bool = False, nan_policy: str = "propagate"
) -> Any:
    """The boxcox log-likelihood function."""

def boxcox_normmax(x: Any, brack: Any = None, method: str = "pearsonr", **options: Any) -> Any: ...
def boxcox_normplot(x: Any, la: Any, lb: Any, plot: Any = None, N: Any = 80) -> Any:
    """Compute parameters for a Box-Cox normality plot, optionally show it."""

def brunnermunzel(
    x: Any,
    y: Any,
    alternative: str = "two-sided",
    distribution: str = "t",
    nan_policy: str = "propagate",
    *,
    axis: Any = 0,
    keepdims: bool = False,
) -> Any:
    """Compute the Brunner-Munzel test on samples x and y."""

def bws_test(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None) -> Any:
    """Perform the Baumgartner-Weiss-Schindler test on two independent samples."""

def chatterjeexi(
    x: Any,
    y: Any,
    *,
    axis: Any = 0,
    y_continuous: bool = False,
    method: str = "asymptotic",
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Compute the xi correlation and perform a test of independence"""

def chi2_contingency(
    observed: Any, correction: bool = True, lambda_: Any = None, *, method: Any = None
) -> Any:
    """Chi-square test of independence of variables in a contingency table."""

def chisquare(
    f_obs: Any,
    f_exp: Any = None,
    ddof: Any = 0,
    axis: Any = 0,
    *,
    sum_check: bool = True,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Perform Pearson's chi-squared test."""

def circmean(
    samples: Any,
    high: Any = 6.283185307179586,
    low: Any = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Compute the circular mean of a sample of angle observations."""

def circstd(
    samples: Any,
    high: Any = 6.283185307179586,
    low: Any = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    normalize: bool = False,
    keepdims: bool = False,
) -> Any:
    """Compute the circular standard deviation of a sample of angle observations."""

def circvar(
    samples: Any,
    high: Any = 6.283185307179586,
    low: Any = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Compute the circular variance of a sample of angle observations."""

def combine_pvalues(
    pvalues: Any,
    method: str = "fisher",
    weights: Any = None,
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Combine p-values from independent tests that bear upon the same hypothesis."""

def cramervonmises(
    rvs: Any,
    cdf: Any,
    args: Any = (),
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Perform the one-sample Cramér-von Mises test for goodness of fit."""

def cramervonmises_2samp(
    x: Any,
    y: Any,
    method: str = "auto",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Perform the two-sample Cramér-von Mises test for goodness of fit."""

def cumfreq(a: Any, numbins: Any = 10, defaultreallimits: Any = None, weights: Any = None) -> Any:
    """Return a cumulative frequency histogram, using the histogram function."""

def describe(
    a: Any, axis: Any = 0, ddof: Any = 1, bias: bool = True, nan_policy: str = "propagate"
) -> Any:
    """Compute several descriptive statistics of the passed array."""

def differential_entropy(
    values: Any,
    *,
    window_length: Any = None,
    base: Any = None,
    axis: Any = 0,
    method: str = "auto",
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Given a sample of a distribution, estimate the differential entropy."""

def directional_stats(samples: Any, *, axis: Any = 0, normalize: bool = True) -> Any:
    """Computes sample statistics for directional data."""

def dirichlet(alpha: Any, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def dirichlet_multinomial(alpha: Any, n: Any, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def dunnett(
    *samples: Any,
    control: Any,
    alternative: str = "two-sided",
    rng: Any = None,
    random_state: Any = None,
) -> Any:
    """Dunnett's test: multiple comparisons of means against a control group."""

def ecdf(sample: Any) -> Any:
    """Empirical cumulative distribution function of a sample."""

def energy_distance(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """Compute the energy distance between two 1D distributions."""

def entropy(
    pk: Any,
    qk: Any = None,
    base: Any = None,
    axis: Any = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Calculate the Shannon entropy/relative entropy of given distribution(s)."""

def epps_singleton_2samp(
    x: Any,
    y: Any,
    t: Any = (0.4, 0.8),
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Compute the Epps-Singleton (ES) test statistic."""

def exp(X: Any, /) -> Any:
    """Natural exponential of a random variable"""

def expectile(a: Any, alpha: Any = 0.5, *, weights: Any = None) -> Tensor:
    """`scipy.stats.expectile`: a mean in which values above and below it weigh differently."""

def f_oneway(
    *samples: Any,
    axis: Any = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Perform one-way ANOVA."""

def false_discovery_control(ps: Any, *, axis: Any = 0, method: str = "bh") -> Any:
    """Adjust p-values to control the false discovery rate."""

def fisher_exact(table: Any, alternative: Any = None, *, method: Any = None) -> Any:
    """Perform a Fisher exact test on a contingency table."""

def fit(
    dist: Any,
    data: Any,
    bounds: Any = None,
    *,
    guess: Any = None,
    method: str = "mle",
    optimizer: Any = ...,
) -> Any:
    """Fit a discrete or continuous distribution to data"""

def fligner(
    *samples: Any,
    center: str = "median",
    proportiontocut: Any = 0.05,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Perform Fligner-Killeen test for equality of variance."""

def friedmanchisquare(
    *samples: Any, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Compute the Friedman test for repeated samples."""

class gaussian_kde:
    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        """Representation of a kernel-density estimate using Gaussian kernels."""

    def __getattr__(self, name: str, /) -> Any: ...

def gmean(
    a: Any,
    axis: Any = 0,
    dtype: DTypeLike = None,
    weights: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Compute the weighted geometric mean along the specified axis."""

def goodness_of_fit(
    dist: Any,
    data: Any,
    *,
    known_params: Any = None,
    fit_params: Any = None,
    guessed_params: Any = None,
    statistic: str = "ad",
    n_mc_samples: Any = 9999,
    rng: Any = None,
    random_state: Any = None,
) -> Any:
    """Perform a goodness of fit test comparing data to a distribution family."""

def gstd(
    a: Any, axis: Any = 0, ddof: Any = 1, *, keepdims: bool = False, nan_policy: str = "propagate"
) -> Any:
    """Calculate the geometric standard deviation of an array."""

def gzscore(a: Any, *, axis: Any = 0, ddof: Any = 0, nan_policy: str = "propagate") -> Any:
    """Compute the geometric standard score."""

def hmean(
    a: Any,
    axis: Any = 0,
    dtype: DTypeLike = None,
    *,
    weights: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Calculate the weighted harmonic mean along the specified axis."""

def invwishart(df: Any = None, scale: Any = None, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def iqr(
    x: Any,
    axis: Any = None,
    rng: Any = (25, 75),
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Compute the interquartile range of the data along the specified axis."""

def jarque_bera(
    x: Any, *, axis: Any = None, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Perform the Jarque-Bera goodness of fit test on sample data."""

def kendalltau(
    x: Any,
    y: Any,
    *,
    nan_policy: str = "propagate",
    method: str = "auto",
    variant: str = "b",
    alternative: str = "two-sided",
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    """Calculate Kendall's tau, a correlation measure for ordinal data."""

def kruskal(
    *samples: Any, nan_policy: str = "propagate", axis: Any = 0, keepdims: bool = False
) -> Any:
    """Compute the Kruskal-Wallis H-test for independent samples."""

def ks_1samp(
    x: Any,
    cdf: Any,
    args: Any = (),
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Performs the one-sample Kolmogorov-Smirnov test for goodness of fit."""

def ks_2samp(
    data1: Any,
    data2: Any,
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Performs the two-sample Kolmogorov-Smirnov test for goodness of fit."""

def kstat(
    data: Any,
    n: Any = 2,
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Return the `n` th k-statistic ( ``1<=n<=4`` so far)."""

def kstatvar(
    data: Any,
    n: Any = 2,
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Return an unbiased estimator of the variance of the k-statistic."""

def kstest(
    rvs: Any,
    cdf: Any,
    args: Any = (),
    N: Any = 20,
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Performs the (one-sample or two-sample) Kolmogorov-Smirnov test for goodness of fit."""

def kurtosis(
    a: Any,
    axis: Any = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Compute the kurtosis (Fisher or Pearson) of a dataset."""

def kurtosistest(
    a: Any,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> Any:
    """Test whether a dataset has normal kurtosis."""

def levene(
    *samples: Any,
    center: str = "median",
    proportiontocut: Any = 0.05,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Perform Levene test for equal variances."""

def levy_stable(*args: Any, **params: Any) -> Any:
    """A distribution that SciPy computes in compiled code, of values; `gg.set_seed` repeats it."""

def linregress(
    x: Any,
    y: Any,
    alternative: str = "two-sided",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Calculate a linear least-squares regression for two sets of measurements."""

def lmoment(
    sample: Any,
    order: Any = None,
    *,
    axis: Any = 0,
    sorted: bool = False,
    standardize: bool = True,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Compute L-moments of a sample from a continuous distribution"""

def log(X: Any, /) -> Any:
    """Natural logarithm of a non-negative random variable"""

def logrank(x: Any, y: Any, alternative: str = "two-sided") -> Any:
    """Compare the survival distributions of two samples via the logrank test."""

def make_distribution(dist: Any) -> Any:
    """Generate a `UnivariateDistribution` class from a compatible object"""

def mannwhitneyu(
    x: Any,
    y: Any,
    use_continuity: bool = True,
    alternative: str = "two-sided",
    axis: Any = 0,
    method: str = "auto",
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Perform the Mann-Whitney U rank test on two independent samples."""

def matrix_normal(mean: Any = None, rowcov: Any = 1, colcov: Any = 1, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def matrix_t(
    mean: Any = None, row_spread: Any = 1, col_spread: Any = 1, df: Any = None, seed: Any = None
) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def median_abs_deviation(
    x: Any,
    axis: Any = 0,
    center: Any = None,
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Compute the median absolute deviation of the data along the given axis."""

def median_test(
    *samples: Any,
    ties: str = "below",
    correction: bool = True,
    lambda_: Any = 1,
    nan_policy: str = "propagate",
) -> Any:
    """Perform a Mood's median test."""

def mode(a: Any, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """Return an array of the modal (most common) value in the passed array."""

def moment(
    a: Any,
    order: Any = 1,
    axis: Any = 0,
    nan_policy: str = "propagate",
    *,
    center: Any = None,
    keepdims: bool = False,
) -> Any:
    """Calculate the nth moment about the mean for a sample."""

def monte_carlo_test(
    data: Any,
    rvs: Any,
    statistic: Any,
    *,
    vectorized: Any = None,
    n_resamples: Any = 9999,
    batch: Any = None,
    alternative: str = "two-sided",
    axis: Any = 0,
) -> Any:
    """Perform a Monte Carlo hypothesis test."""

def mood(
    x: Any,
    y: Any,
    axis: Any = 0,
    alternative: str = "two-sided",
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Perform Mood's test for equal scale parameters."""

def multinomial(n: Any, p: Any, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def multiscale_graphcorr(
    x: Any,
    y: Any,
    compute_distance: Any = ...,
    reps: Any = 1000,
    workers: Any = 1,
    is_twosamp: bool = False,
    random_state: Any = None,
) -> Any:
    """Computes the Multiscale Graph Correlation (MGC) test statistic."""

def multivariate_hypergeom(m: Any, n: Any, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def multivariate_normal(
    mean: Any = None, cov: Any = 1, allow_singular: bool = False, seed: Any = None, **kwds: Any
) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def multivariate_t(
    loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False, seed: Any = None
) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def mvsdist(data: Any) -> Any:
    """'Frozen' distributions for mean, variance, and standard deviation of data."""

def normal_inverse_gamma(
    mu: Any = 0, lmbda: Any = 1, a: Any = 1, b: Any = 1, seed: Any = None
) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def normaltest(
    a: Any, axis: Any = 0, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Any:
    """Test whether a sample differs from a normal distribution."""

def obrientransform(*samples: Any) -> Any:
    """Compute the O'Brien transform on input data (any number of arrays)."""

def order_statistic(X: Any, /, *, r: Any, n: Any) -> Any:
    """Probability distribution of an order statistic"""

def ortho_group(dim: Any = None, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def page_trend_test(
    data: Any, ranked: bool = False, predicted_ranks: Any = None, method: str = "auto"
) -> Any:
    """Perform Page's Test, a measure of trend in observations between treatments."""

def pearsonr(
    x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Any = 0
) -> Any:
    """Pearson correlation coefficient and p-value for testing non-correlation."""

def percentileofscore(a: Any, score: Any, kind: str = "rank", nan_policy: str = "propagate") -> Any:
    """Compute the percentile rank of a score relative to a list of scores."""

def permutation_test(
    data: Any,
    statistic: Any,
    *,
    permutation_type: str = "independent",
    vectorized: Any = None,
    n_resamples: Any = 9999,
    batch: Any = None,
    alternative: str = "two-sided",
    axis: Any = 0,
    rng: Any = None,
    random_state: Any = None,
) -> Any:
    """Performs a permutation test of a given statistic on provided data."""

def pmean(
    a: Any,
    p: Any,
    *,
    axis: Any = 0,
    dtype: DTypeLike = None,
    weights: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Calculate the weighted power mean along the specified axis."""

def pointbiserialr(
    x: Any, y: Any, *, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Calculate a point biserial correlation coefficient and its p-value."""

def poisson_means_test(
    k1: Any, n1: Any, k2: Any, n2: Any, *, diff: Any = 0, alternative: str = "two-sided"
) -> Any:
    """Performs the Poisson means test, AKA the "E-test"."""

def power(
    test: Any,
    rvs: Any,
    n_observations: Any,
    *,
    significance: Any = 0.01,
    vectorized: Any = None,
    n_resamples: Any = 10000,
    batch: Any = None,
    kwargs: Any = None,
) -> Any:
    """Simulate the power of a hypothesis test under an alternative hypothesis."""

def power_divergence(
    f_obs: Any,
    f_exp: Any = None,
    ddof: Any = 0,
    axis: Any = 0,
    lambda_: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Cressie-Read power divergence statistic and goodness of fit test."""

def ppcc_max(x: Any, brack: Any = (0.0, 1.0), dist: str = "tukeylambda") -> Any:
    """Calculate the shape parameter that maximizes the PPCC."""

def ppcc_plot(
    x: Any, a: Any, b: Any, dist: str = "tukeylambda", plot: Any = None, N: Any = 80
) -> Any:
    """Calculate and optionally plot probability plot correlation coefficient."""

def probplot(
    x: Any,
    sparams: Any = (),
    dist: str = "norm",
    fit: bool = True,
    plot: Any = None,
    rvalue: bool = False,
) -> Any:
    """Calculate quantiles for a probability plot, and optionally show the plot."""

def quantile(
    x: Any,
    p: Any,
    *,
    method: str = "linear",
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: Any = None,
    weights: Any = None,
) -> Any:
    """Compute the p-th quantile of the data along the specified axis."""

def quantile_test(x: Any, *, q: Any = 0, p: Any = 0.5, alternative: str = "two-sided") -> Any:
    """Perform a quantile test and compute a confidence interval of the quantile."""

def random_correlation(eigs: Any, seed: Any = None, tol: Any = 1e-13, diag_tol: Any = 1e-07) -> Any:
    """A distribution that SciPy computes in compiled code, of values; `gg.set_seed` repeats it."""

def random_table(row: Any, col: Any, *, seed: Any = None) -> Any:
    """A distribution that SciPy computes in compiled code, of values; `gg.set_seed` repeats it."""

def rankdata(
    a: Any, method: str = "average", *, axis: Any = None, nan_policy: str = "propagate"
) -> Any:
    """Assign ranks to data, dealing with ties appropriately."""

def ranksums(
    x: Any,
    y: Any,
    alternative: str = "two-sided",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Compute the Wilcoxon rank-sum statistic for two samples."""

def relfreq(a: Any, numbins: Any = 10, defaultreallimits: Any = None, weights: Any = None) -> Any:
    """Return a relative frequency histogram, using the histogram function."""

def scoreatpercentile(
    a: Any, per: Any, limit: Any = (), interpolation_method: str = "fraction", axis: Any = None
) -> Any:
    """Calculate the score at a given percentile of the input sequence."""

def sem(
    a: Any, axis: Any = 0, ddof: Any = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Any:
    """Compute standard error of the mean."""

def shapiro(
    x: Any, *, axis: Any = None, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Perform the Shapiro-Wilk test for normality."""

def siegelslopes(
    y: Any, x: Any = None, method: str = "hierarchical", **options: Any
) -> SiegelslopesResult:
    """`scipy.stats.siegelslopes` of one sample: medians of medians of slopes."""

def sigmaclip(a: Any, low: Any = 4.0, high: Any = 4.0) -> Any:
    """Perform iterative sigma-clipping of array elements."""

def skew(
    a: Any,
    axis: Any = 0,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Compute the sample skewness of a data set."""

def skewtest(
    a: Any,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> Any:
    """Test whether the skew is different from the normal distribution."""

def sobol_indices(
    *,
    func: Any,
    n: Any,
    dists: Any = None,
    method: str = "saltelli_2010",
    rng: Any = None,
    random_state: Any = None,
) -> Any:
    """Global sensitivity indices of Sobol'."""

def somersd(x: Any, y: Any = None, alternative: str = "two-sided") -> Any:
    """Calculates Somers' D, an asymmetric measure of ordinal association."""

def spearmanr(
    a: Any,
    b: Any = None,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
) -> Any:
    """Calculate a Spearman correlation coefficient with associated p-value."""

def spearmanrho(
    x: Any,
    y: Any,
    /,
    *,
    alternative: str = "two-sided",
    method: Any = None,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Calculate a Spearman rho correlation coefficient with associated p-value."""

def special_ortho_group(dim: Any = None, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def theilslopes(
    y: Any,
    x: Any = None,
    alpha: Any = 0.95,
    method: str = "separate",
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Computes the Theil-Sen estimator for a set of points (x, y)."""

def tiecorrect(rankvals: Any) -> Any:
    """Tie correction factor for Mann-Whitney U and Kruskal-Wallis H tests."""

def tmax(
    a: Any,
    upperlimit: Any = None,
    axis: Any = 0,
    inclusive: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Compute the trimmed maximum."""

def tmean(
    a: Any,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Compute the trimmed mean."""

def tmin(
    a: Any,
    lowerlimit: Any = None,
    axis: Any = 0,
    inclusive: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Compute the trimmed minimum."""

def trim1(a: Any, proportiontocut: Any, tail: str = "right", axis: Any = 0) -> Any:
    """Slice off a proportion from ONE end of the passed array distribution."""

def trim_mean(
    a: Any,
    proportiontocut: Any,
    axis: Any = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Return mean of array after trimming a specified fraction of extreme values"""

def trimboth(a: Any, proportiontocut: Any, axis: Any = 0) -> Any:
    """Slice off a proportion of items from both ends of an array."""

def truncate(X: Any, lb: Any = ..., ub: Any = ...) -> Any:
    """Truncate the support of a random variable."""

def tsem(
    a: Any,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = 0,
    ddof: Any = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Compute the trimmed standard error of the mean."""

def tstd(
    a: Any,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = 0,
    ddof: Any = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Compute the trimmed sample standard deviation."""

def ttest_1samp(
    a: Any,
    popmean: Any,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> Any:
    """Calculate the T-test for the mean of ONE group of scores."""

def ttest_ind(
    a: Any,
    b: Any,
    *,
    axis: Any = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    trim: Any = 0,
    method: Any = None,
    keepdims: bool = False,
) -> Any:
    """Calculate the T-test for the means of *two independent* samples of scores."""

def ttest_ind_from_stats(
    mean1: Any,
    std1: Any,
    nobs1: Any,
    mean2: Any,
    std2: Any,
    nobs2: Any,
    equal_var: bool = True,
    alternative: str = "two-sided",
) -> Any:
    """T-test for means of two independent samples from descriptive statistics."""

def ttest_rel(
    a: Any,
    b: Any,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> Any:
    """Calculate the t-test on TWO RELATED samples of scores, a and b."""

def tukey_hsd(*args: Any, equal_var: bool = True) -> Any:
    """Perform Tukey's HSD test for equality of means over multiple treatments."""

def tvar(
    a: Any,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = 0,
    ddof: Any = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Compute the trimmed variance."""

def uniform_direction(dim: Any = None, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def unitary_group(dim: Any = None, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def variation(
    a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: Any = 0, *, keepdims: bool = False
) -> Any:
    """Compute the coefficient of variation."""

def vonmises_fisher(mu: Any = None, kappa: Any = 1, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def wasserstein_distance(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """Compute the Wasserstein-1 distance between two 1D discrete distributions."""

def wasserstein_distance_nd(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """Compute the Wasserstein-1 distance between two N-D discrete distributions."""

def weightedtau(
    x: Any,
    y: Any,
    rank: bool = True,
    weigher: Any = None,
    additive: bool = True,
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Compute a weighted version of Kendall's :math:`\\tau`."""

def wilcoxon(
    x: Any,
    y: Any = None,
    zero_method: str = "wilcox",
    correction: bool = False,
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Calculate the Wilcoxon signed-rank test."""

def wishart(df: Any = None, scale: Any = None, seed: Any = None) -> Any:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

def yeojohnson(x: Any, lmbda: Any = None) -> Any:
    """Return a dataset transformed by a Yeo-Johnson power transformation."""

def yeojohnson_llf(
    lmb: Any, data: Any, *, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """The Yeo-Johnson log-likelihood function."""

def yeojohnson_normmax(x: Any, brack: Any = None) -> Any: ...
def yeojohnson_normplot(x: Any, la: Any, lb: Any, plot: Any = None, N: Any = 80) -> Any:
    """Compute parameters for a Yeo-Johnson normality plot, optionally show it."""

def zmap(
    scores: Any, compare: Any, axis: Any = 0, ddof: Any = 0, nan_policy: str = "propagate"
) -> Any:
    """Calculate the relative z-scores."""

def zscore(a: Any, axis: Any = 0, ddof: Any = 0, nan_policy: str = "propagate") -> Any:
    """Compute the z score."""
