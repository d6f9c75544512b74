"""SciPy's functions called with our Tensors: python tests/scipy_calls.py [MODULE TO IMPORT]

Prints, as JSON, the outcome of each call under a tape: ``gradient``; ``raises``, because a gradient
would be cut; ``none`` if the result does not depend on the Tensors; or what else went wrong.
"""

import importlib
import json
import os
import sys
import warnings

os.environ |= {"SCIPY_ARRAY_API": "1", "GPUGRAD_DEVICE": "cpu"}  # before SciPy is imported

import numpy as np

import gpugrad as gg

R = np.random.default_rng(0)
V, W = R.normal(size=(2, 20))
P, Q, U, T = abs(V) + 0.5, abs(W) / 3 + 0.1, 1 / (1 + np.exp(-V)), np.linspace(0, 1, 20)
X, IMAGE, K, B = (R.normal(size=s) for s in ((20, 3), (8, 9), (3, 3), 4))
M = R.normal(size=(4, 4)) + 4 * np.eye(4)
S, FIRST, A = M @ M.T, np.array([4.0, 1.0, 0.5, 0.2]), np.array([1.0, 0.3, 0.1])
SOS = np.array([[0.1, 0.2, 0.1, 1.0, -0.8, 0.3]])
AT = np.array([[1.5, 2.0], [2.0, 3.3]])
DECAY = lambda *a: -a[1]  # noqa: E731  # of (t, y)

CALLS = [
    ("stats", (P,), "zscore gzscore skew kurtosis gmean hmean sem variation circmean circvar"
     " circstd"
     " kstat kstatvar tmean tvar tstd tsem gstd iqr median_abs_deviation entropy"
     " differential_entropy describe jarque_bera normaltest skewtest kurtosistest tmin tmax lmoment"
     " bayes_mvs boxcox yeojohnson"),
    ("stats", (P, Q), "pearsonr ttest_ind ttest_rel linregress zmap spearmanr kendalltau f_oneway"
     " wasserstein_distance energy_distance bartlett levene theilslopes siegelslopes ks_2samp"
     " pointbiserialr mannwhitneyu ansari mood"),
    ("stats", (U,), "chisquare power_divergence combine_pvalues norm.ppf"),
    ("stats", (X,), "directional_stats"),
    ("stats", (P, 0.3), "trim_mean ttest_1samp quantile pmean"),
    ("stats", (0.5, P), "boxcox_llf yeojohnson_llf"), ("stats", (P, 0.3), "expectile"),
    ("stats", (V,), "norm.pdf norm.logpdf norm.cdf norm.sf norm.logcdf expon.pdf laplace.logpdf"
     " logistic.cdf cauchy.logpdf gumbel_r.logpdf uniform.logpdf"),
    ("stats", (P, 2.5), "gamma.logpdf chi2.pdf t.logpdf"), ("stats", (U, 2.0, 3.0), "beta.logpdf"),
    ("signal", (V,), "hilbert detrend medfilt wiener envelope periodogram welch stft spectrogram"
     " cspline1d qspline1d czt argrelmax find_peaks"),
    ("signal", (V, W), "fftconvolve convolve correlate oaconvolve csd coherence"),
    ("signal", (V, 5, 2), "savgol_filter resample_poly"), ("signal", (B, A, V), "lfilter"),
    ("signal", (A[:2], A[:2], V), "filtfilt"), ("signal", (SOS, V), "sosfilt sosfiltfilt"),
    ("signal", (V, 30), "resample"), ("signal", (B, V), "upfirdn"),
    ("signal", (V, 0.5), "zoom_fft"),
    ("signal", (IMAGE, K), "convolve2d correlate2d"), ("signal", (B,), "freqz"),
    ("signal", (B, A), "tf2zpk"), ("signal", (T, V, A), "lombscargle"),
    ("signal", (T, 1.0, 1.0, 5.0), "chirp"),
    ("ndimage", (IMAGE,), "laplace sobel prewitt spline_filter center_of_mass maximum mean variance"
     " sum"),
    ("ndimage", (IMAGE, 1.0), "gaussian_filter gaussian_laplace gaussian_gradient_magnitude shift"
     " rotate fourier_gaussian"),
    ("ndimage", (IMAGE, 3), "uniform_filter maximum_filter minimum_filter median_filter zoom"
     " grey_dilation grey_erosion"),
    ("ndimage", (IMAGE, K), "convolve correlate"), ("ndimage", (IMAGE, 30, 3), "percentile_filter"),
    ("ndimage", (IMAGE, AT), "map_coordinates"), ("ndimage", (IMAGE, A[:2]), "affine_transform"),
    ("fft", (V,), "fft ifft rfft irfft hfft ihfft dct idct dst idst"),
    ("fft", (IMAGE,), "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn dctn idctn dstn fftshift"),
    ("fft", (P, 0.1, 0.3), "fht"),
    ("linalg", (M,), "inv det expm logm sqrtm svd svdvals eig eigvals pinv norm lu qr schur"
     " hessenberg cosm sinm tanm signm lu_factor polar null_space orth ldl"),
    ("linalg", (S,), "cholesky eigh eigvalsh cho_factor"), ("linalg", (M, B), "solve lstsq"),
    ("linalg", (M, B), "solve_triangular"), ("linalg", (FIRST, B), "solve_toeplitz solve_circulant"
     " matmul_toeplitz"),
    ("linalg", (M, S), "solve_continuous_lyapunov block_diag khatri_rao"),
    ("linalg", (M, S, M), "solve_sylvester"),
    ("linalg", (B,), "toeplitz circulant hankel companion"),
    ("special", (P,), "erf erfc gammaln digamma expit log1p expm1 j0 y0 i0 ndtr log_ndtr entr"
     " softmax log_softmax logsumexp exp10 cbrt gamma"),
    ("special", (P, Q), "xlogy xlog1py beta betaln rel_entr kl_div gammainc"),
    ("special", (U,), "logit"), ("special", (1, P), "polygamma"), ("special", (1.0, V), "huber"),
    ("special", (1.5, P), "jv"),
    ("integrate", (V[:17],), "trapezoid simpson cumulative_trapezoid romb"),
    ("integrate", (DECAY, (0.0, 1.0), B), "solve_ivp"),
    ("integrate", (DECAY, B, A[::-1]), "odeint"),
    ("optimize", (V,), "rosen rosen_der"), ("optimize", (abs(M), P[:4]), "nnls"),
    ("optimize", (lambda x, a, b: a * x + b, T, V), "curve_fit"),
    ("spatial.distance", (P, Q), "euclidean cityblock cosine correlation chebyshev braycurtis"
     " canberra sqeuclidean minkowski jensenshannon"),
    ("spatial.distance", (X, X[:5] + 1), "cdist"), ("spatial.distance", (X,), "pdist"),
    ("spatial", (X, X[::-1] + 1), "distance_matrix procrustes"),
    ("spatial.transform", (X,), "Rotation.from_rotvec"),
    ("interpolate", (T, V), "CubicSpline PchipInterpolator Akima1DInterpolator make_interp_spline"
     " BarycentricInterpolator KroghInterpolator UnivariateSpline"),
    ("interpolate", (X, V), "RBFInterpolator"), ("interpolate", (X[:, :2], V, AT / 9), "griddata"),
    ("cluster.vq", (X,), "whiten"), ("cluster.vq", (X, X[:3]), "vq"),
    ("cluster.hierarchy", (X,), "linkage"), ("sparse.linalg", (np.eye(4), B), "cg expm_multiply"),
]  # fmt: skip


def leaves(y):
    """The arrays of a result, also of its attributes, and of an interpolator at a point."""
    if isinstance(y, (gg.Tensor, np.ndarray, np.generic, float, complex)):
        return [y]
    if callable(y) and not isinstance(y, dict):
        return leaves(y(np.array([0.3, 0.55]) if y.__class__.__name__[:3] != "RBF" else X[:2] / 9))
    if hasattr(y, "as_matrix"):
        return [y.as_matrix()]
    if isinstance(y, str):
        return []
    own = {k: v for k, v in getattr(y, "__dict__", {}).items() if k[0] != "_"}
    own = {} if isinstance(y, tuple) else own
    parts = y.values() if isinstance(y, dict) else own.values() if own else y
    return [x for part in parts for x in leaves(part)] if hasattr(parts, "__iter__") else []


def outcome(name, args):
    """What a call does under a tape."""
    home, _, rest = name.partition(":")
    function = importlib.import_module(f"scipy.{home}")
    for part in rest.split("."):
        function = getattr(function, part)
    xs = [gg.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    watched = [x for x in xs if isinstance(x, gg.Tensor)]
    try:
        with gg.GradientTape() as tape:
            tape.watch(watched)
            found = leaves(function(*xs))
            floats = [x for x in found if np.dtype(getattr(x, "dtype", float)).kind in "fc"]
            cut = [x for x in floats if not isinstance(x, gg.Tensor)]
            total = [gg.sum(gg.abs(x)) for x in floats if isinstance(x, gg.Tensor)]
    except gg.errors.GpugradError:
        return "raises"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:100]
    slopes = tape.gradient(total, watched) if total else []
    if any(g is not None for g in slopes):
        return "gradient"
    return "cut" if cut else "none"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for module in sys.argv[1:]:
        importlib.import_module(module)
    names = [(f"{home}:{name}", args) for home, args, names in CALLS for name in names.split()]
    print(json.dumps({name: outcome(name, args) for name, args in names}))
