"""Gradients of `gg.scipy.signal` by all floating-point arguments, against finite differences."""

import warnings

import numpy as np
import pytest
import scipy.signal as S
from needs import needs_compiler

import gpugrad as gg
from gpugrad.kernels.cpu import filters
from gpugrad.kernels.cpu.large import kernels
from gpugrad.testing import check_grads

G = gg.scipy.signal
rng = np.random.default_rng(0)


def r(*s):
    return rng.uniform(-1, 1, s)


b = np.array([0.2, 0.3, 0.1])
a = np.array([1.5, -0.4, 0.2])
sos = S.butter(4, 0.3, output="sos")
GRADIENTS = {}


def gradient(name, f, *args, order=2):
    assert name not in GRADIENTS
    GRADIENTS[name] = (f, args, order)


ONE = np.array([0, 0, 0, 1.0, 0, 0])


def U(s):
    """The sections with a_0 = 1, which SciPy demands, so that differences keep it."""
    return s * (1 - ONE) + ONE


x9 = r(9)
X2 = r(2, 9)
image = r(5, 6)
k2 = r(2, 3)
for m in ("full", "same", "valid"):
    gradient("convolve " + m, lambda x, h, m=m: G.convolve(x, h, m), x9, r(3))
    gradient("correlate " + m, lambda x, h, m=m: G.correlate(x, h, m, "direct"), image, k2)
    gradient("convolve2d " + m, lambda x, h, m=m: G.convolve2d(x, h, m, "symm"), image, k2)
gradient("fftconvolve", lambda x, h: G.fftconvolve(x, h, "same"), image, k2)
gradient("oaconvolve", lambda x, h: G.oaconvolve(x, h), r(40), r(3))
gradient("correlate2d", lambda x, h: G.correlate2d(x, h, "same", "wrap"), image, k2)
gradient("lfilter", lambda b, a, x: G.lfilter(b, a, x), b, a, X2)
gradient("lfilter fir", lambda b, a, x: G.lfilter(b, a, x), b, np.array([2.0]), X2)
gradient("lfilter zi", lambda b, a, x, zi: G.lfilter(b, a, x, zi=zi), b, a, X2, r(2, 2))
gradient("lfiltic", lambda b, a, y, x: G.lfiltic(b, a, y, x), b, a, r(2), r(2))
gradient("lfilter_zi", lambda b, a: G.lfilter_zi(b, a), b, a)
gradient("sosfilt", lambda s, x: G.sosfilt(U(s), x), sos, X2)
gradient("sosfilt zi", lambda s, x, zi: G.sosfilt(U(s), x, zi=zi), sos, X2, r(2, 2, 2))
gradient("sosfilt_zi", lambda s: G.sosfilt_zi(U(s)), sos)
gradient("filtfilt", lambda b, a, x: G.filtfilt(b, a, x, padlen=3), b, a, X2, order=1)
gradient("sosfiltfilt", lambda s, x: G.sosfiltfilt(U(s), x, padlen=3), sos, X2, order=1)
W = G.windows
gradient("kaiser", lambda p: W.kaiser(8, p), np.array(3.0))
gradient("gaussian", lambda p: W.gaussian(8, p), np.array(2.0))
gradient("general_gaussian", lambda p, s: W.general_gaussian(8, p, s), np.array(1.5), np.array(2.0))
gradient("exponential", lambda p: W.exponential(8, tau=p), np.array(2.0))
gradient("tukey", lambda p: W.tukey(8, p), np.array(0.45))
gradient("general_hamming", lambda p: W.general_hamming(8, p), np.array(0.6))
gradient("general_cosine", lambda p: W.general_cosine(8, p), np.array([0.5, 0.3, 0.2]))
gradient("chebwin", lambda p: W.chebwin(8, p), np.array(60.0))
gradient("taylor", lambda p: W.taylor(8, sll=p), np.array(30.0))
gradient("get_window", lambda p: G.get_window(("kaiser", p), 8), np.array(3.0))
gradient("kaiser_bessel_derived", lambda p: W.kaiser_bessel_derived(8, p), np.array(3.0))
gradient("firwin", lambda c: G.firwin(9, c), np.array(0.3))
gradient(
    "firwin band",
    lambda c, fs: G.firwin(9, c, pass_zero=False, fs=fs),
    np.array([0.2, 0.5]),
    np.array(2.0),
)
gradient("firwin2", lambda gn: G.firwin2(9, [0, 0.3, 1], gn), np.array([1.0, 0.5, 0]))
for o in ("ba", "zpk", "sos"):
    for bt, wn in (("low", 0.3), ("high", 0.3), ("bandpass", [0.2, 0.5]), ("bandstop", [0.2, 0.5])):

        def f(w, o=o, bt=bt):
            res = G.butter(2, w, bt, output=o)
            return [
                gg.abs(v) if v.dtype.kind == "c" else v
                for v in (res if isinstance(res, tuple) else (res,))
            ]

        gradient(f"butter {o} {bt}", f, np.array(wn), order=1)
gradient("butter fs", lambda w, fs: G.butter(2, w, fs=fs), np.array(30.0), np.array(200.0), order=1)
gradient("cheby1", lambda r_, w: G.cheby1(3, r_, w), np.array(1.0), np.array(0.3), order=1)
gradient("cheby2", lambda r_, w: G.cheby2(3, r_, w), np.array(30.0), np.array(0.3), order=1)
gradient("ellip w", lambda w: G.ellip(3, 1.0, 30.0, w), np.array(0.3), order=1)
gradient("bessel", lambda w: G.bessel(3, w), np.array(0.3), order=1)
gradient("iirnotch", lambda w, q: G.iirnotch(w, q), np.array(0.3), np.array(20.0))
gradient("iirpeak", lambda w, q: G.iirpeak(w, q), np.array(0.3), np.array(20.0))
gradient("bilinear", lambda b, a, fs: G.bilinear(b, a, fs), b, a, np.array(2.0))
gradient("lp2lp", lambda b, a, w: G.lp2lp(b, a, w), b, a, np.array(2.0))
gradient("sos2tf", lambda s: G.sos2tf(s), sos)
z0, p0, k0 = S.butter(2, 0.3, output="zpk")
gradient("zpk2tf", lambda k: G.zpk2tf(z0, p0, k), np.array(k0))
gradient("zpk2sos", lambda k: G.zpk2sos(z0, p0, k), np.array(k0))
gradient("tf2zpk", lambda b, a: gg.abs(G.tf2zpk(b, a)[1]), b, a, order=1)
gradient("freqz", lambda b, a: gg.abs(G.freqz(b, a, 8)[1]), b, a)
gradient("freqz w", lambda b, a, w: gg.abs(G.freqz(b, a, w)[1]), b, a, np.array([0.3, 0.7]))
gradient("freqz fir", lambda b: gg.abs(G.freqz(b, 1, 8)[1]), b)
gradient("freqz_sos", lambda s: gg.abs(G.freqz_sos(U(s), 8)[1][1:-1]), sos)
gradient("freqs", lambda b, a, w: gg.abs(G.freqs(b, a, w)[1]), b, a, np.array([0.3, 0.7]))
gradient(
    "freqz_zpk",
    lambda k, w: gg.abs(G.freqz_zpk(z0, p0, k, w)[1]),
    np.array(k0),
    np.array([0.3, 0.7]),
)
gradient("group_delay", lambda b, a: G.group_delay((b, a), np.array([0.3, 0.7]))[1], b, a)
RATES = np.random.default_rng(1)  # of its own: the arrays of the other cases stay
for rates in ((2, 3, 5), (4, 6, 9), (2, 2, 3), (1, 1, 140)):  # the last by transforms
    gradient(
        f"upfirdn {rates}",
        lambda h, x, n=rates: G.upfirdn(h, x, *n[:2]),
        RATES.normal(size=rates[2]),
        RATES.normal(size=(2, 7)),
    )
gradient("resample", lambda x: G.resample(x, 7, axis=1), X2)
gradient("resample_poly", lambda x: G.resample_poly(x, 3, 2, axis=1), X2)
gradient("resample_poly h", lambda x, h: G.resample_poly(x, 3, 2, axis=1, window=h), X2, r(7))
MODES = [
    "constant", "wrap", "edge", "smooth", "symmetric", "reflect", "antisymmetric", "antireflect",
    "line",
]  # fmt: skip
for m in MODES:
    gradient("upfirdn " + m, lambda h, x, m=m: G.upfirdn(h, x, 3, 2, mode=m), r(7), r(5), order=1)
gradient("upfirdn", lambda h, x: G.upfirdn(h, x, 3, 2), r(5), X2)
gradient("decimate", lambda x: G.decimate(x, 2), r(40), order=1)
gradient("savgol_filter", lambda x: G.savgol_filter(x, 5, 2), r(2, 9))
gradient("savgol mirror", lambda x: G.savgol_filter(x, 5, 2, mode="mirror"), r(2, 9))
gradient("wiener", lambda x: G.wiener(x, 3), image, order=1)
gradient("detrend", lambda x: G.detrend(x), X2)
gradient("detrend c", lambda x: G.detrend(x, type="constant"), X2)
gradient("hilbert", lambda x: gg.abs(G.hilbert(x)), X2)
gradient("envelope", lambda x: G.envelope(x), r(9), order=1)
gradient("hilbert2", lambda x: gg.abs(G.hilbert2(x)), image)
gradient("medfilt", lambda x: G.medfilt(x, 3), image)
gradient("medfilt2d", lambda x: G.medfilt2d(x, 3), image)
gradient("order_filter", lambda x: G.order_filter(x, np.ones((3, 3)), 2), image)
xs = r(32)
gradient("stft", lambda x: gg.abs(G.stft(x, nperseg=8)[2]), xs, order=1)
Z = S.stft(xs, nperseg=8)[2]
gradient("istft", lambda x: G.istft(x, nperseg=8)[1], Z, order=1)
gradient("spectrogram", lambda x: G.spectrogram(x, nperseg=8)[2], xs, order=1)
gradient("welch", lambda x: G.welch(x, nperseg=8)[1], xs, order=1)
gradient("welch median", lambda x: G.welch(x, nperseg=8, average="median")[1], xs, order=1)
gradient("csd", lambda x, y: gg.abs(G.csd(x, y, nperseg=8)[1]), xs, r(32), order=1)
gradient("periodogram", lambda x: G.periodogram(x)[1], xs)
gradient("coherence", lambda x, y: G.coherence(x, y, nperseg=8)[1], xs, r(32), order=1)
gradient(
    "lombscargle",
    lambda x, y, w: G.lombscargle(x, y, w),
    np.sort(r(9)),
    r(9),
    np.array([0.5, 1.0]),
    order=1,
)
gradient("gausspulse", lambda x, fc: G.gausspulse(x, fc), r(5), np.array(5.0))
for m in ("linear", "quadratic", "logarithmic", "hyperbolic"):
    gradient(
        "chirp " + m,
        lambda x, f0, t1, f1, m=m: G.chirp(x, f0, t1, f1, m),
        np.abs(r(5)),
        np.array(1.0),
        np.array(1.0),
        np.array(6.0),
    )
gradient("sawtooth", lambda x, w: G.sawtooth(x, w), r(5), np.array(0.3))
gradient("czt", lambda x: gg.abs(G.czt(x, 5)), x9)
gradient("zoom_fft", lambda x: gg.abs(G.zoom_fft(x, [0.1, 0.4], 5)), x9)
gradient(
    "ShortTimeFFT",
    lambda x: gg.abs(G.ShortTimeFFT(np.hanning(9)[:-1] + 0.1, 4, 1.0).stft(x)),
    xs,
    order=1,
)
gradient("deconvolve", lambda x, d: G.deconvolve(x, d), r(6), np.array([1.0, 0.5, 0.2]))
gradient("tf2ss", lambda b, a: G.tf2ss(b, a), b, a, order=1)
gradient("cspline1d", lambda x: G.cspline1d(x), r(9), order=1)
gradient("cspline2d", lambda x: G.cspline2d(x, precision=0.01), r(8, 9), order=1)
gradient("sepfir2d", lambda x, h: G.sepfir2d(x, h, h), r(4, 5), r(3))
gradient("symiirorder1", lambda x, z: G.symiirorder1(x, z, z), r(40), np.array(0.4), order=1)
gradient(
    "symiirorder2",
    lambda x, z, w: G.symiirorder2(x, z, w, 0.01),
    r(40),
    np.array(0.4),
    np.array(0.7),
    order=1,
)
OUT = np.array([[1.0, -0.5]]), np.zeros((1, 1))
SYSTEM = r(2, 2) / 3 - np.eye(2), r(2, 1), r(9), r(2)
HELD, AT = 0.1 * np.arange(9), np.array([-8.3, -1.2, 0.3, 2.5, 5.4, 6.1, 13.7])
gradient("dlsim", lambda A, B, u, x: G.dlsim((A, B, *OUT, 1.0), u, x0=x)[1], *SYSTEM, order=1)
gradient("dlsim at", lambda u: G.dlsim((b, a, 0.1), u, t=1.7 * HELD)[1], x9, order=1)
for i in (True, False):
    gradient(
        f"lsim {i}",
        lambda A, B, u, x, i=i: G.lsim((A, B, *OUT), u, HELD, x, interp=i)[1:],
        *SYSTEM,
        order=1,
    )
gradient("lsim free", lambda x: G.lsim((b, a), 0.0, HELD, x)[1], r(2), order=1)
gradient("cspline1d_eval", lambda c, x: G.cspline1d_eval(c, x, 0.9, 0.1), r(7), AT)
gradient("qspline1d_eval", lambda c, x: G.qspline1d_eval(c, x, 0.9, 0.1), r(7), AT)


@pytest.mark.parametrize("name", GRADIENTS)
def test_signal_has_gradients_by_floating_arguments(name):
    f, args, order = GRADIENTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_grads(f, args, order=order)


@pytest.mark.parametrize("k", [1, 3, 9])
@pytest.mark.parametrize("shape", [(5,), (2, 1300)])
def test_the_kernel_of_a_filters_gradient_equals_the_formula(k, shape, monkeypatch):
    rng = np.random.default_rng(k)
    b, a, x, weights = (rng.normal(size=s) for s in (k, k, shape, shape))
    a[:1], a[1:] = 1.0, 0.1 * a[1:]
    arrays = [gg.asarray(v) for v in (b, a, x, rng.normal(size=(*shape[:-1], k - 1)))]

    def slopes(least):
        monkeypatch.setattr(filters, "MIDDLE", least)
        with gg.GradientTape() as tape:
            tape.watch(arrays)
            total = gg.sum(gg.linear_filter(*arrays) * weights)
        return tape.gradient(total, arrays, unconnected_gradients="zero")

    for ours, formula in zip(slopes(1), slopes(10**9), strict=True):
        np.testing.assert_allclose(ours, formula, rtol=1e-10, atol=1e-10)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("k", range(2, 8))
def test_kernel_of_recursive_filters_equals_scipys(k, dtype, rng):
    b, a = rng.normal(size=k).astype(dtype), (0.6 ** np.arange(k) / 2).astype(dtype)
    a[0] = 1
    x, zi = rng.normal(size=(3, 2**16)).astype(dtype), rng.normal(size=(3, k - 1)).astype(dtype)
    out = kernels("filters").filtered(b, a, x, zi)
    assert out is not NotImplemented
    close = {"rtol": 1e-3, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(out, S.lfilter(b, a, x, zi=zi)[0], **close)
