"""`gg.scipy.signal` against SciPy: values and dtypes, traces, vmap, errors."""

import contextlib
import re
import warnings

import numpy as np
import pytest
import scipy.signal as S

import gpugrad as gg
from gpugrad.scipy.signal import _ON_VALUES, _reader

G = gg.scipy.signal
rng = np.random.default_rng(0)


def r(*s):
    return rng.uniform(-1, 1, s)


x = r(60)
X = r(3, 60)
im = r(12, 14)
k = r(3, 4)
h = r(7)
b = np.array([0.2, 0.3, 0.1])
a = np.array([1.5, -0.4, 0.2])
sos = S.butter(4, 0.3, output="sos")
CALLS = []


def add(name, *args, **kw):
    CALLS.append((name, args, kw))


for m in ("full", "same", "valid"):
    for me in ("auto", "direct", "fft"):
        add("convolve", x, h, m, me)
        add("correlate", x, h, m, me)
        add("convolve", im, k, m, me)
        add("correlate", im, k, m, me)
        add("convolve", h, x, m, me)
        add("correlate", h, x, m, me)
    add("fftconvolve", X, r(1, 9), m, axes=-1)
    add("oaconvolve", X, r(3, 9), m, axes=1)
    add("correlation_lags", 5, 3, m)
    for bd in ("fill", "wrap", "symm"):
        for kk in (k, r(4, 3), r(2, 2)):
            add("convolve2d", im, kk, m, bd)
            add("correlate2d", im, kk, m, bd)
    add("convolve2d", im, k, m, "fill", 2.5)
add("convolve", np.arange(5), np.arange(3))
add("convolve", np.arange(6).reshape(2, 3), np.arange(4).reshape(2, 2))
add("deconvolve", r(8), r(3))
add("lfilter", b, a, x)
add("lfilter", b, a, X, 0)
add("lfilter", b, a, X, zi=r(3, 2))
add("lfilter", b, [2.0], X)
add("lfilter", b, [1.0], X, zi=r(3, 2))
add("lfilter", b, a, r(1), zi=r(2))
add("lfilter", r(5), a, X[:, :2], zi=r(3, 4))
add("lfilter", r(2), np.array([2.5, 0.4, -0.3, 0.2]), X, zi=r(1, 3))
add("lfiltic", b, a, [1.0, 2.0], [3.0, 4.0])
add("lfilter_zi", b, a)
add("sosfilt", sos, x)
add("sosfilt", sos, X, 0)
add("sosfilt", sos, X, zi=r(2, 3, 2))
add("sosfilt_zi", sos)
for p in ("odd", "even", "constant", None):
    add("filtfilt", b, a, X, padtype=p)
    add("sosfiltfilt", sos, X, padtype=p)
add("filtfilt", b, a, X, method="gust")
add("filtfilt", b, a, X, 0, None, 0)
WINDOWS = [
    "boxcar", "triang", "blackman", "hamming", "hann", "bartlett", "flattop", "parzen",
    "bohman", "blackmanharris", "nuttall", "barthann", "cosine", "exponential", "tukey",
    "taylor", "lanczos",
]  # fmt: skip
for w in [
    *WINDOWS,
    ("kaiser", 8.6),
    ("gaussian", 3.0),
    ("general_gaussian", 1.5, 3.0),
    ("general_cosine", [1.0, 0.5, 0.2]),
    ("general_hamming", 0.6),
    ("dpss", 2.5),
    ("chebwin", 60.0),
    ("kaiser_bessel_derived", 5.0),
    ("exponential", None, 3.0),
    ("tukey", 0.3),
]:
    for n in (10, 11):
        if w[0] != "kaiser_bessel_derived":  # SciPy has it for symmetric shapes only
            add("get_window", w, n)
    if w[0] != "kaiser_bessel_derived":
        add("get_window", w, 10, False)
add("firwin", 21, 0.3)
add("firwin", 21, [0.2, 0.5], pass_zero=False, window=("kaiser", 4.0))
add("firwin", 20, 3.0, fs=10.0)
add("firwin", 21, 0.4, width=0.1)
add("firwin2", 31, [0, 0.3, 0.5, 1], [1, 1, 0, 0])
add("firls", 21, [0, 0.3, 0.5, 1], [1, 1, 0, 0])
add("remez", 21, [0, 0.1, 0.2, 0.5], [1, 0])
add("minimum_phase", S.firwin(21, 0.3))
add("kaiserord", 60.0, 0.1)
add("kaiser_beta", 50.0)
add("kaiser_atten", 20, 0.1)
add("firwin_2d", (5, 5), "hamming", fc=0.3, circular=True)
for o in ("ba", "zpk", "sos"):
    for bt, wn in (("low", 0.3), ("high", 0.3), ("bandpass", [0.2, 0.5]), ("bandstop", [0.2, 0.5])):
        add("butter", 3, wn, bt, output=o)
        add("cheby1", 3, 1.0, wn, bt, output=o)
        add("cheby2", 4, 30.0, wn, bt, output=o)
        add("ellip", 3, 1.0, 30.0, wn, bt, output=o)
        add("bessel", 3, wn, bt, output=o)
add("butter", 3, 2.0, analog=True)
add("butter", 3, 100.0, fs=1000.0)
add("iirfilter", 3, [0.2, 0.5], rs=30, rp=1, ftype="ellip")
add("iirdesign", 0.2, 0.3, 1.0, 40.0)
add("iirnotch", 0.3, 20.0)
add("iirpeak", 0.3, 20.0)
add("iircomb", 0.25, 20.0)
add("gammatone", 440.0, "iir", fs=16000.0)
add("gammatone", 440.0, "fir", fs=16000.0)
add("buttap", 3)
add("cheb1ap", 3, 1.0)
add("cheb2ap", 3, 30.0)
add("ellipap", 3, 1.0, 30.0)
add("besselap", 3)
add("buttord", 0.2, 0.3, 3.0, 40.0)
add("cheb1ord", 0.2, 0.3, 3.0, 40.0)
add("cheb2ord", 0.2, 0.3, 3.0, 40.0)
add("ellipord", 0.2, 0.3, 3.0, 40.0)
add("buttord", [0.2, 0.5], [0.1, 0.6], 3.0, 40.0)
z, p, kk = S.butter(4, 0.3, output="zpk")
add("zpk2sos", z, p, kk)
add("zpk2tf", z, p, kk)
add("sos2tf", sos)
add("sos2zpk", sos)
add("tf2sos", b, a)
add("bilinear", b, a, 2.0)
add("bilinear_zpk", z, p, kk, 2.0)
for n in ("lp2lp", "lp2hp"):
    add(n, b, a, 2.0)
    add(n + "_zpk", z, p, kk, 2.0)
for n in ("lp2bp", "lp2bs"):
    add(n, b, a, 2.0, 0.5)
    add(n + "_zpk", z, p, kk, 2.0, 0.5)
add("normalize", b, a)
add("tf2ss", b, a)
add("zpk2ss", z, p, kk)
add("ss2tf", *S.tf2ss(b, a))
add("cont2discrete", S.tf2ss(b, a), 0.1)
add("residuez", b, r(4))
add("unique_roots", [1.0, 1.0001, 2.0])
add("invres", [1.0, 2.0], [-1.0, -2.0], [0.0])
add("freqz", b, a)
add("freqz", b, a, worN=[0.1, 0.2])
add("freqz", h, 1, 64, whole=True)
add("sosfreqz", sos)
add("freqz_sos", sos)
add("freqs", b, a)
add("freqs", b, a, [1.0, 2.0])
add("freqz_zpk", z, p, kk)
add("freqs_zpk", z, p, kk)
add("group_delay", (b, a))
add("findfreqs", b, a, 5)
add("resample", X, 45, axis=1)
add("resample", x, 77)
add("resample", x, 30, window="hamming")
add("resample", x + 1j * r(60), 31)
add("resample_poly", X, 3, 2, axis=1)
add("resample_poly", x, 2, 3, padtype="line")
add("resample_poly", x, 2, 3, padtype="mean")
MODES = [
    "constant", "wrap", "edge", "smooth", "symmetric", "reflect", "antisymmetric", "antireflect",
    "line",
]  # fmt: skip
for m in MODES:
    add("upfirdn", h, X, 3, 2, mode=m)
    add("upfirdn", r(40), X[:, :6], 1, 2, mode=m)
add("upfirdn", h, X, 2, 3, 0)
add("upfirdn", h, X, 2, 3, cval=1.5)
add("decimate", X, 3)
add("decimate", X, 3, ftype="fir", zero_phase=False)
for m in ("interp", "mirror", "nearest", "wrap", "constant"):
    add("savgol_filter", X, 7, 2, mode=m)
add("savgol_filter", X, 7, 3, deriv=1, delta=0.3)
add("savgol_coeffs", 7, 2)
add("savgol_coeffs", 6, 2, deriv=1, pos=2)
add("wiener", im, 3)
add("wiener", im, (3, 5), 0.1)
add("detrend", X)
add("detrend", X, type="constant")
add("detrend", X, bp=[20, 40])
add("hilbert", X)
add("hilbert", x, 70)
add("hilbert2", im)
add("envelope", x)
add("medfilt", x, 5)
add("medfilt", im, 3)
add("medfilt2d", im, 3)
add("order_filter", im, np.ones((3, 3)), 2)
add("vectorstrength", x, 2.0)
add("stft", X, nperseg=16)
add("istft", S.stft(X, nperseg=16)[2], nperseg=16)
add("spectrogram", X, nperseg=16)
add("spectrogram", X, nperseg=16, mode="psd")
add("spectrogram", X, nperseg=16, mode="phase")
add("welch", X, nperseg=16)
add("welch", X, nperseg=16, average="median")
add("csd", X, X[::-1], nperseg=16)
add("periodogram", X)
add("periodogram", X, window="hann", detrend="linear")
add("coherence", X, X[::-1] ** 2, nperseg=16)
add("lombscargle", np.sort(r(30)), r(30), [0.5, 1.0, 2.0])
add(
    "lombscargle",
    np.sort(r(30)),
    r(30),
    [0.5, 1.0, 2.0],
    weights=np.abs(r(30)),
    floating_mean=True,
    normalize=True,
)
add("check_COLA", "hann", 16, 8)
add("check_NOLA", "hann", 16, 8)
add("closest_STFT_dual_window", S.get_window("hann", 16), 8)
add("gausspulse", x, 5.0)
add("gausspulse", x, 5.0, retquad=True, retenv=True)
add("gausspulse", "cutoff", 5.0)
for m in ("linear", "quadratic", "logarithmic", "hyperbolic"):
    add("chirp", np.abs(x), 1.0, 1.0, 6.0, m)
add("sweep_poly", x, np.poly1d([1.0, 2.0, 3.0]))
add("square", x * 9, 0.3)
add("sawtooth", x * 9, 0.3)
add("unit_impulse", 7, 2)
add("unit_impulse", (3, 4), "mid")
add("max_len_seq", 4)
add("czt", x, 20)
add("zoom_fft", x, [0.1, 0.4], 20)
add("czt_points", 5)
add("find_peaks", x)
add("argrelextrema", x, np.greater)
add("argrelmax", x)
add("peak_prominences", x, S.find_peaks(x)[0])
add("peak_widths", x, S.find_peaks(x)[0])
add("find_peaks_cwt", x, np.arange(1, 5))
add("cspline1d", x)
add("qspline1d", x)
for name in ("cspline1d_eval", "qspline1d_eval"):
    add(name, S.cspline1d(x), np.array([-70.3, -1.2, 0.5, 3.2, 61.0, 130.7]), 0.9, 0.1)
add("gauss_spline", x, 3)
add("cspline2d", im)
add("qspline2d", im)
add("sepfir2d", im, np.array([0.2, 0.5, 0.1]), np.array([0.2, 0.5, 0.2]))
add("symiirorder1", x, 0.5, 0.5)
add("symiirorder2", X, 0.4, 0.0)
add("symiirorder2", X, 0.4, np.pi)
add("symiirorder2", x, 0.5, 0.5)
add("lsim", (b, a), x, np.arange(60) * 0.1)
add("lsim", (b, a), x, np.arange(60) * 0.1, interp=False)
add("lsim", (b, a), None, np.arange(60) * 0.1, [1.0, 2.0])
add("dlsim", (b, a, 0.1), x)
add("dlsim", (b, a, 0.1), x, np.arange(60) * 0.17)
add("impulse", (b, a))
add("step", (b, a))
add("bode", (b, a))
add("freqresp", (b, a))
add("dimpulse", (b, a, 0.1))
add("dstep", (b, a, 0.1))
add("dfreqresp", (b, a, 0.1))
add("dbode", (b, a, 0.1))


def flat(value):
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in flat(part)]
    return [value]


def tensors(value):
    if isinstance(value, tuple):
        return tuple(map(tensors, value))
    return gg.constant(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", sorted({name for name, _, _ in CALLS}))
def test_signal_has_scipys_values(name, recorded):
    """On numbers, and without a tape, SciPy's own function runs: so ask for the other, too."""
    for _, args, kw in (call for call in CALLS if call[0] == name):
        tape = gg.GradientTape() if recorded else contextlib.nullcontext()
        with warnings.catch_warnings(), tape:
            warnings.simplefilter("ignore")
            expected = flat(getattr(S, name)(*args, **kw))
            of_ops = recorded and name not in _ON_VALUES
            ours = _reader().read("scipy.signal._signal_api") if of_ops else G
            result = flat(getattr(ours, name)(*map(tensors, args), **kw))
        assert len(result) == len(expected)
        for ours, theirs in zip(result, expected, strict=True):
            if theirs is None or isinstance(theirs, dict):
                continue
            assert isinstance(ours, gg.Tensor) or not isinstance(theirs, np.ndarray)
            ours = np.asarray(ours)
            assert ours.dtype == np.asarray(theirs).dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


SIGNAL_ONLY = {
    "lfilter": lambda x: G.lfilter(b, a, x),
    "sosfilt": lambda x: G.sosfilt(sos, x),
    "filtfilt": lambda x: G.filtfilt(b, a, x),
    "resample_poly": lambda x: G.resample_poly(x, 3, 2),
    "stft": lambda x: G.stft(x, nperseg=16)[2],
    "savgol_filter": lambda x: G.savgol_filter(x, 7, 2),
    "fftconvolve": lambda x: G.fftconvolve(x, h),
}


@pytest.mark.parametrize("name", SIGNAL_ONLY)
def test_signal_is_traced_and_batched(name):
    f = SIGNAL_ONLY[name]
    expected = np.stack([np.asarray(f(gg.constant(row))) for row in X])
    np.testing.assert_allclose(np.asarray(gg.vmap(f)(gg.constant(X))), expected, atol=1e-12)
    traced = gg.function(f)(gg.constant(X[0]))
    np.testing.assert_allclose(np.asarray(traced), expected[0], atol=1e-12)


def test_recursive_filters_trace_and_batch_their_coefficients():
    rows = gg.constant(np.stack([a, a + 0.1, a - 0.1]))
    result = gg.vmap(lambda a, x: G.lfilter(b, a, x))(rows, gg.constant(X))
    expected = [S.lfilter(b, row, x) for row, x in zip(np.asarray(rows), X, strict=True)]
    np.testing.assert_allclose(np.asarray(result), expected, atol=1e-12)
    traced = gg.function(lambda s, x: G.sosfilt(s, x))(gg.constant(sos), gg.constant(X))
    np.testing.assert_allclose(np.asarray(traced), S.sosfilt(sos, X), atol=1e-12)


ERRORS = [
    ("convolve", (x, im)), ("convolve", (x, h, "half")), ("convolve2d", (x, h)),
    ("lfilter", (b, [0.0, 1.0], x)), ("lfilter", ([], a, x)), ("lfilter", (b, a, x, -1, r(5))),
    ("sosfilt", (r(2, 5), x)), ("sosfilt", (r(2, 6), x)), ("butter", (2, 1.5)),
    ("butter", (2, [0.5, 0.2], "band")), ("firwin", (10, 1.5)), ("upfirdn", (h, x, 0)),
    ("savgol_filter", (x, 7, 8)), ("get_window", ("none", 5)),
    ("filtfilt", (b, a, x[:3])), ("istft", (im, 1.0, "hann", 99)), ("medfilt", (x, 4)),
    ("symiirorder1", (x[:5], 0.5, 0.9)), ("symiirorder2", (x[:5], 0.9, 0.3)),
    ("convolve2d", (im.astype("e"), k.astype("e"))), ("correlate", (im > 0, k > 0)),
    ("correlate2d", (im > 0, k > 0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), ERRORS)
def test_signal_refuses_what_scipy_refuses(name, args):
    try:
        getattr(S, name)(*args)
    except Exception as error:
        with gg.GradientTape(), pytest.raises(type(error)):
            getattr(G, name)(*map(tensors, args))
    else:
        pytest.fail(f"SciPy accepts {name}{args}")


def test_a_function_without_a_derivative_says_so_under_a_tape():
    signal = gg.constant(x)
    peaks, found = G.find_peaks(signal, height=0.1)
    np.testing.assert_array_equal(peaks.numpy(), S.find_peaks(x, height=0.1)[0])
    assert isinstance(found["peak_heights"], gg.Tensor)
    with gg.GradientTape() as tape:
        tape.watch(signal)
        with pytest.raises(gg.errors.DTypeError, match=r"find_peaks.*gradient"):
            G.find_peaks(signal)


@pytest.mark.parametrize("a", [a, [1.0]])
@pytest.mark.parametrize(
    "shape", [(2,), (1, 2), (2, 3, 2), (1, 1, 2), (2, 1, 2), (1, 2, 1, 2), (2, 3, 1), (2, 2, 2), ()]
)
def test_states_of_a_filter_broadcast_or_are_refused_as_by_scipy(shape, a):
    signal, zi = r(2, 3, 8), r(*shape)
    with gg.GradientTape():
        try:
            expected = S.lfilter(b, a, signal, zi=zi)
        except ValueError as error:
            with pytest.raises(ValueError, match=f"^{re.escape(str(error))}$"):
                G.lfilter(b, a, gg.constant(signal), zi=gg.constant(zi))
        else:
            for ours, theirs in zip(
                G.lfilter(b, a, gg.constant(signal), zi=gg.constant(zi)), expected, strict=True
            ):
                np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)


def test_all_names_of_scipy_are_there():
    for module, ours in ((S, G), (S.windows, G.windows)):
        public = {n for n in module.__all__ if n != "test"}
        assert {n for n in public if getattr(ours, n, None) is not None} == public
    assert "FIR filter design" in G.firwin.__doc__
