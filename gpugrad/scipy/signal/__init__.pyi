# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import DTypeLike, DeviceLike
from typing import Any
from gpugrad.scipy.signal import windows as windows

__all__: list[str]

class BadCoefficients:
    def __getattr__(self, name: str, /) -> Any: ...

class CZT:
    def __init__(self, n: Any, m: Any = None, w: Any = None, a: Any = ...) -> None:
        """Create a callable chirp z-transform function."""

    def __getattr__(self, name: str, /) -> Any: ...

class ShortTimeFFT:
    def __init__(
        self,
        win: Any,
        hop: Any,
        fs: Any,
        *,
        fft_mode: str = "onesided",
        mfft: Any = None,
        dual_win: Any = None,
        scale_to: Any = None,
        phase_shift: Any = 0,
    ) -> None:
        """Provide a parametrized discrete Short-time Fourier transform (stft) and its inverse
        (istft).
        """

    def __getattr__(self, name: str, /) -> Any: ...

class StateSpace:
    def __init__(self, *system: Any, **kwargs: Any) -> None:
        """Linear Time Invariant system in state-space form."""

    def __getattr__(self, name: str, /) -> Any: ...

class TransferFunction:
    def __init__(self, *system: Any, **kwargs: Any) -> None:
        """Linear Time Invariant system class in transfer function form."""

    def __getattr__(self, name: str, /) -> Any: ...

class ZerosPolesGain:
    def __init__(self, *system: Any, **kwargs: Any) -> None:
        """Linear Time Invariant system class in zeros, poles, gain form."""

    def __getattr__(self, name: str, /) -> Any: ...

class ZoomFFT:
    def __init__(
        self, n: Any, fn: Any, m: Any = None, *, fs: Any = 2, endpoint: bool = False
    ) -> None:
        """Create a callable zoom FFT transform function."""

    def __getattr__(self, name: str, /) -> Any: ...

def abcd_normalize(A: Any = None, B: Any = None, C: Any = None, D: Any = None) -> Any:
    """Check state-space matrices compatibility and ensure they are 2d arrays."""

def argrelextrema(
    data: Any, comparator: Any, axis: Any = 0, order: Any = 1, mode: str = "clip"
) -> Any:
    """Calculate the relative extrema of `data`."""

def argrelmax(data: Any, axis: Any = 0, order: Any = 1, mode: str = "clip") -> Any:
    """Calculate the relative maxima of `data`."""

def argrelmin(data: Any, axis: Any = 0, order: Any = 1, mode: str = "clip") -> Any:
    """Calculate the relative minima of `data`."""

def band_stop_obj(
    wp: Any, ind: Any, passb: Any, stopb: Any, gpass: Any, gstop: Any, type: Any
) -> Any:
    """Band Stop Objective Function for order minimization."""

def bessel(
    N: Any,
    Wn: Any,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    norm: str = "phase",
    fs: Any = None,
) -> Any:
    """Bessel/Thomson digital and analog filter design."""

def besselap(N: Any, norm: str = "phase", *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return (z,p,k) for analog prototype of an Nth-order Bessel filter."""

def bilinear(b: Any, a: Any, fs: Any = 1.0) -> Any:
    """Calculate a digital IIR filter from an analog transfer function by utilizing the bilinear
    transform.
    """

def bilinear_zpk(z: Any, p: Any, k: Any, fs: Any) -> Any:
    """Return a digital IIR filter from an analog one using a bilinear transform."""

def bode(system: Any, w: Any = None, n: Any = 100) -> Any:
    """Calculate Bode magnitude and phase data of a continuous-time system."""

def buttap(N: Any, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return (z,p,k) for analog prototype of Nth-order Butterworth filter."""

def butter(
    N: Any, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba", fs: Any = None
) -> Any:
    """Butterworth digital and analog filter design."""

def buttord(wp: Any, ws: Any, gpass: Any, gstop: Any, analog: bool = False, fs: Any = None) -> Any:
    """Butterworth filter order selection."""

def cheb1ap(N: Any, rp: Any, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return (z,p,k) for Nth-order Chebyshev type I analog lowpass filter."""

def cheb1ord(wp: Any, ws: Any, gpass: Any, gstop: Any, analog: bool = False, fs: Any = None) -> Any:
    """Chebyshev type I filter order selection."""

def cheb2ap(N: Any, rs: Any, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return (z,p,k) for Nth-order Chebyshev type II analog lowpass filter."""

def cheb2ord(wp: Any, ws: Any, gpass: Any, gstop: Any, analog: bool = False, fs: Any = None) -> Any:
    """Chebyshev type II filter order selection."""

def cheby1(
    N: Any,
    rp: Any,
    Wn: Any,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Chebyshev type I digital and analog filter design."""

def cheby2(
    N: Any,
    rs: Any,
    Wn: Any,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Chebyshev type II digital and analog filter design."""

def check_COLA(window: Any, nperseg: Any, noverlap: Any, tol: Any = 1e-10) -> Any:
    """Check whether the Constant OverLap Add (COLA) constraint is met (legacy function)."""

def check_NOLA(window: Any, nperseg: Any, noverlap: Any, tol: Any = 1e-10) -> Any:
    """Check whether the Nonzero Overlap Add (NOLA) constraint is met."""

def chirp(
    t: Any,
    f0: Any,
    t1: Any,
    f1: Any,
    method: str = "linear",
    phi: Any = 0,
    vertex_zero: bool = True,
    *,
    complex: bool = False,
) -> Any:
    """Frequency-swept cosine generator."""

def choose_conv_method(in1: Any, in2: Any, mode: str = "full", measure: bool = False) -> Any:
    """Find the fastest convolution/correlation method."""

def closest_STFT_dual_window(
    win: Any, hop: Any, desired_dual: Any = None, *, scaled: bool = True
) -> Any:
    """Calculate the STFT dual window of a given window closest to a desired dual window."""

def coherence(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: str = "hann_periodic",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: str = "constant",
    axis: Any = -1,
) -> Any:
    """Estimate the magnitude squared coherence estimate, Cxy, of discrete-time signals X and Y
    using Welch's method.
    """

def cont2discrete(system: Any, dt: Any, method: str = "zoh", alpha: Any = None) -> Any:
    """Transform a continuous to a discrete state-space system."""

def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Convolve two N-dimensional arrays."""

def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """Convolve two 2-dimensional arrays."""

def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Cross-correlate two N-dimensional arrays."""

def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """Cross-correlate two 2-dimensional arrays."""

def correlation_lags(in1_len: Any, in2_len: Any, mode: str = "full") -> Any:
    """Calculates the lag / displacement indices array for 1D cross-correlation."""

def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: str = "hann_periodic",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: Any = -1,
    average: str = "mean",
) -> Any:
    """Estimate the cross power spectral density, Pxy, using Welch's method."""

def cspline1d(signal: Any, lamb: Any = 0.0) -> Any:
    """Compute cubic spline coefficients for rank-1 array."""

def cspline1d_eval(cj: Any, newx: Any, dx: Any = 1.0, x0: Any = 0) -> Any:
    """Evaluate a cubic spline at the new set of points."""

def cspline2d(signal: Any, lamb: Any = 0.0, precision: Any = -1.0) -> Any:
    """Coefficients for 2-D cubic (3rd order) B-spline."""

def czt(x: Any, m: Any = None, w: Any = None, a: Any = ..., *, axis: Any = -1) -> Any:
    """Compute the frequency response around a spiral in the Z plane."""

def czt_points(m: Any, w: Any = None, a: Any = ...) -> Any:
    """Return the points at which the chirp z-transform is computed."""

def dbode(system: Any, w: Any = None, n: Any = 100) -> Any:
    """Calculate Bode magnitude and phase data of a discrete-time system."""

def decimate(
    x: Any, q: Any, n: Any = None, ftype: str = "iir", axis: Any = -1, zero_phase: bool = True
) -> Any:
    """Downsample the signal after applying an anti-aliasing filter."""

def deconvolve(signal: Any, divisor: Any) -> Any:
    """Deconvolves ``divisor`` out of ``signal`` using inverse filtering."""

def detrend(
    data: Any, axis: Any = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Any:
    """Remove linear or constant trend along axis from data."""

def dfreqresp(system: Any, w: Any = None, n: Any = 10000, whole: bool = False) -> Any:
    """Calculate the frequency response of a discrete-time system."""

def dimpulse(system: Any, x0: Any = None, t: Any = None, n: Any = None) -> Any:
    """Impulse response of discrete-time system."""

def dlsim(system: Any, u: Any, t: Any = None, x0: Any = None) -> Any:
    """Simulate output of a discrete-time linear system."""

class dlti:
    def __init__(self, *system: Any, **kwargs: Any) -> None:
        """Discrete-time linear time invariant system base class."""

    def __getattr__(self, name: str, /) -> Any: ...

def dstep(system: Any, x0: Any = None, t: Any = None, n: Any = None) -> Any:
    """Step response of discrete-time system."""

def ellip(
    N: Any,
    rp: Any,
    rs: Any,
    Wn: Any,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Elliptic (Cauer) digital and analog filter design."""

def ellipap(N: Any, rp: Any, rs: Any, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return (z,p,k) of Nth-order elliptic analog lowpass filter."""

def ellipord(wp: Any, ws: Any, gpass: Any, gstop: Any, analog: bool = False, fs: Any = None) -> Any:
    """Elliptic (Cauer) filter order selection."""

def envelope(
    z: Any,
    bp_in: Any = (1, None),
    *,
    n_out: Any = None,
    squared: bool = False,
    residual: str = "lowpass",
    axis: Any = -1,
) -> Any:
    """Compute the envelope of a real- or complex-valued signal."""

def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Convolve two N-dimensional arrays using FFT."""

def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: Any = -1,
    padtype: str = "odd",
    padlen: Any = None,
    method: str = "pad",
    irlen: Any = None,
) -> Any:
    """Apply a digital filter forward and backward to a signal."""

def find_peaks(
    x: Any,
    height: Any = None,
    threshold: Any = None,
    distance: Any = None,
    prominence: Any = None,
    width: Any = None,
    wlen: Any = None,
    rel_height: Any = 0.5,
    plateau_size: Any = None,
) -> Any:
    """Find peaks inside a signal based on peak properties."""

def find_peaks_cwt(
    vector: Any,
    widths: Any,
    wavelet: Any = None,
    max_distances: Any = None,
    gap_thresh: Any = None,
    min_length: Any = None,
    min_snr: Any = 1,
    noise_perc: Any = 10,
    window_size: Any = None,
) -> Any:
    """Find peaks in a 1-D array with wavelet transformation."""

def findfreqs(num: Any, den: Any, N: Any, kind: str = "ba") -> Any:
    """Find array of frequencies for computing the response of an analog filter."""

def firls(numtaps: Any, bands: Any, desired: Any, *, weight: Any = None, fs: Any = None) -> Any:
    """FIR filter design using least-squares error minimization."""

def firwin(
    numtaps: Any,
    cutoff: Any,
    *,
    width: Any = None,
    window: str = "hamming",
    pass_zero: bool = True,
    scale: bool = True,
    fs: Any = None,
) -> Any:
    """FIR filter design using the window method."""

def firwin2(
    numtaps: Any,
    freq: Any,
    gain: Any,
    *,
    nfreqs: Any = None,
    window: str = "hamming",
    antisymmetric: bool = False,
    fs: Any = None,
) -> Any:
    """FIR filter design using the window method."""

def firwin_2d(
    hsize: Any,
    window: Any,
    *,
    fc: Any = None,
    fs: Any = 2,
    circular: bool = False,
    pass_zero: bool = True,
    scale: bool = True,
) -> Any:
    """2D FIR filter design using the window method."""

def freqresp(system: Any, w: Any = None, n: Any = 10000) -> Any:
    """Calculate the frequency response of a continuous-time system."""

def freqs(b: Any, a: Any, worN: Any = 200, plot: Any = None) -> Any:
    """Compute frequency response of analog filter."""

def freqs_zpk(z: Any, p: Any, k: Any, worN: Any = 200) -> Any:
    """Compute frequency response of analog filter."""

def freqz(
    b: Any,
    a: Any = 1,
    worN: Any = 512,
    whole: bool = False,
    plot: Any = None,
    fs: Any = 6.283185307179586,
    include_nyquist: bool = False,
) -> Any:
    """Compute the frequency response of a digital filter."""

def freqz_sos(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = 6.283185307179586) -> Any:
    """Compute the frequency response of a digital filter in SOS format."""

def freqz_zpk(
    z: Any, p: Any, k: Any, worN: Any = 512, whole: bool = False, fs: Any = 6.283185307179586
) -> Any:
    """Compute the frequency response of a digital filter in ZPK form."""

def gammatone(
    freq: Any,
    ftype: Any,
    order: Any = None,
    numtaps: Any = None,
    fs: Any = None,
    *,
    xp: Any = None,
    device: DeviceLike = None,
) -> Any:
    """Gammatone filter design."""

def gauss_spline(x: Any, n: Any) -> Any:
    """Gaussian approximation to B-spline basis function of order n."""

def gausspulse(
    t: Any,
    fc: Any = 1000,
    bw: Any = 0.5,
    bwr: Any = -6,
    tpr: Any = -60,
    retquad: bool = False,
    retenv: bool = False,
) -> Any:
    """Return a Gaussian modulated sinusoid:"""

def get_window(
    window: Any, Nx: Any, fftbins: bool = True, *, xp: Any = None, device: DeviceLike = None
) -> Any:
    """Convenience function for creating various windows."""

def group_delay(system: Any, w: Any = 512, whole: bool = False, fs: Any = 6.283185307179586) -> Any:
    """Compute the group delay of a digital filter."""

def hilbert(x: Any, N: Any = None, axis: Any = -1) -> Any:
    """FFT-based computation of the analytic signal."""

def hilbert2(x: Any, N: Any = None, axes: Any = (-2, -1)) -> Any:
    """Compute the '2-D' analytic signal of `x`."""

def iircomb(
    w0: Any,
    Q: Any,
    ftype: str = "notch",
    fs: Any = 2.0,
    *,
    pass_zero: bool = False,
    xp: Any = None,
    device: DeviceLike = None,
) -> Any:
    """Design IIR notching or peaking digital comb filter."""

def iirdesign(
    wp: Any,
    ws: Any,
    gpass: Any,
    gstop: Any,
    analog: bool = False,
    ftype: str = "ellip",
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Complete IIR digital and analog filter design."""

def iirfilter(
    N: Any,
    Wn: Any,
    rp: Any = None,
    rs: Any = None,
    btype: str = "band",
    analog: bool = False,
    ftype: str = "butter",
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """IIR digital and analog filter design given order and critical points."""

def iirnotch(w0: Any, Q: Any, fs: Any = 2.0, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Design second-order IIR notch digital filter."""

def iirpeak(w0: Any, Q: Any, fs: Any = 2.0, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Design second-order IIR peak (resonant) digital filter."""

def impulse(system: Any, X0: Any = None, T: Any = None, N: Any = None) -> Any:
    """Impulse response of continuous-time system."""

def invres(r: Any, p: Any, k: Any, tol: Any = 0.001, rtype: str = "avg") -> Any:
    """Compute b(s) and a(s) from partial fraction expansion."""

def invresz(r: Any, p: Any, k: Any, tol: Any = 0.001, rtype: str = "avg") -> Any:
    """Compute b(z) and a(z) from partial fraction expansion."""

def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: str = "hann_periodic",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: Any = -1,
    freq_axis: Any = -2,
    scaling: str = "spectrum",
) -> Any:
    """Perform the inverse Short Time Fourier transform (legacy function)."""

def kaiser_atten(numtaps: Any, width: Any) -> Any:
    """Compute the attenuation of a Kaiser FIR filter."""

def kaiser_beta(a: Any) -> Any:
    """Compute the Kaiser parameter `beta`, given the attenuation `a`."""

def kaiserord(ripple: Any, width: Any) -> Any:
    """Determine the filter window parameters for the Kaiser window method."""

def lfilter(b: Any, a: Any, x: Any, axis: Any = -1, zi: Any = None) -> Any:
    """Filter data along one-dimension with an IIR or FIR filter."""

def lfilter_zi(b: Any, a: Any) -> Any:
    """Construct initial conditions for lfilter for step response steady-state."""

def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """Construct initial conditions for lfilter given input and output vectors."""

def lombscargle(
    x: Any,
    y: Any,
    freqs: Any,
    *,
    precenter: Any = ...,
    normalize: bool = False,
    weights: Any = None,
    floating_mean: bool = False,
) -> Any:
    """Compute the generalized Lomb-Scargle periodogram."""

def lp2bp(b: Any, a: Any, wo: Any = 1.0, bw: Any = 1.0) -> Any:
    """Transform a lowpass filter prototype to a bandpass filter."""

def lp2bp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0, bw: Any = 1.0) -> Any:
    """Transform a lowpass filter prototype to a bandpass filter."""

def lp2bs(b: Any, a: Any, wo: Any = 1.0, bw: Any = 1.0) -> Any:
    """Transform a lowpass filter prototype to a bandstop filter."""

def lp2bs_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0, bw: Any = 1.0) -> Any:
    """Transform a lowpass filter prototype to a bandstop filter."""

def lp2hp(b: Any, a: Any, wo: Any = 1.0) -> Any:
    """Transform a lowpass filter prototype to a highpass filter."""

def lp2hp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0) -> Any:
    """Transform a lowpass filter prototype to a highpass filter."""

def lp2lp(b: Any, a: Any, wo: Any = 1.0) -> Any:
    """Transform a lowpass filter prototype to a different frequency."""

def lp2lp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0) -> Any:
    """Transform a lowpass filter prototype to a different frequency."""

def lsim(system: Any, U: Any, T: Any, X0: Any = None, interp: bool = True) -> Any:
    """Simulate output of a continuous-time linear system."""

class lti:
    def __init__(self, *system: Any) -> None:
        """Continuous-time linear time invariant system base class."""

    def __getattr__(self, name: str, /) -> Any: ...

def max_len_seq(nbits: Any, state: Any = None, length: Any = None, taps: Any = None) -> Any:
    """Maximum length sequence (MLS) generator."""

def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """Perform a median filter on an N-dimensional array."""

def medfilt2d(input: Any, kernel_size: Any = 3) -> Any:
    """Median filter a 2-dimensional array."""

def minimum_phase(
    h: Any, method: str = "homomorphic", n_fft: Any = None, *, half: bool = True
) -> Any:
    """Convert a linear-phase FIR filter to minimum phase"""

def normalize(b: Any, a: Any) -> Any:
    """Normalize numerator/denominator of a continuous-time transfer function."""

def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Convolve two N-dimensional arrays using the overlap-add method."""

def order_filter(a: Any, domain: Any, rank: Any) -> Any:
    """Perform an order filter on an N-D array."""

def peak_prominences(x: Any, peaks: Any, wlen: Any = None) -> Any:
    """Calculate the prominence of each peak in a signal."""

def peak_widths(
    x: Any, peaks: Any, rel_height: Any = 0.5, prominence_data: Any = None, wlen: Any = None
) -> Any:
    """Calculate the width of each peak in a signal."""

def periodogram(
    x: Any,
    fs: Any = 1.0,
    window: str = "boxcar",
    nfft: Any = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: Any = -1,
) -> Any:
    """Estimate power spectral density using a periodogram."""

def place_poles(
    A: Any, B: Any, poles: Any, method: str = "YT", rtol: Any = 0.001, maxiter: Any = 30
) -> Any:
    """Compute K such that eigenvalues (A - dot(B, K))=poles."""

def qspline1d(signal: Any, lamb: Any = 0.0) -> Any:
    """Compute quadratic spline coefficients for rank-1 array."""

def qspline1d_eval(cj: Any, newx: Any, dx: Any = 1.0, x0: Any = 0) -> Any:
    """Evaluate a quadratic spline at the new set of points."""

def qspline2d(signal: Any, lamb: Any = 0.0, precision: Any = -1.0) -> Any:
    """Coefficients for 2-D quadratic (2nd order) B-spline."""

def remez(
    numtaps: Any,
    bands: Any,
    desired: Any,
    *,
    weight: Any = None,
    type: str = "bandpass",
    maxiter: Any = 25,
    grid_density: Any = 16,
    fs: Any = None,
) -> Any:
    """Calculate the minimax optimal filter using the Remez exchange algorithm."""

def resample(
    x: Any, num: Any, t: Any = None, axis: Any = 0, window: Any = None, domain: str = "time"
) -> Any:
    """Resample `x` to `num` samples using the Fourier method along the given `axis`."""

def resample_poly(
    x: Any,
    up: Any,
    down: Any,
    axis: Any = 0,
    window: Any = ("kaiser", 5.0),
    padtype: str = "constant",
    cval: Any = None,
) -> Any:
    """Resample `x` along the given axis using polyphase filtering."""

def residue(b: Any, a: Any, tol: Any = 0.001, rtype: str = "avg") -> Any:
    """Compute partial-fraction expansion of b(s) / a(s)."""

def residuez(b: Any, a: Any, tol: Any = 0.001, rtype: str = "avg") -> Any:
    """Compute partial-fraction expansion of b(z) / a(z)."""

def savgol_coeffs(
    window_length: Any,
    polyorder: Any,
    deriv: Any = 0,
    delta: Any = 1.0,
    pos: Any = None,
    use: str = "conv",
    *,
    xp: Any = None,
    device: DeviceLike = None,
) -> Any:
    """Compute the coefficients for a 1-D Savitzky-Golay FIR filter."""

def savgol_filter(
    x: Any,
    window_length: Any,
    polyorder: Any,
    deriv: Any = 0,
    delta: Any = 1.0,
    axis: Any = -1,
    mode: str = "interp",
    cval: Any = 0.0,
) -> Any:
    """Apply a Savitzky-Golay filter to an array."""

def sawtooth(t: Any, width: Any = 1) -> Any:
    """Return a periodic sawtooth or triangle waveform."""

def sepfir2d(image: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """`_spline.sepfir2d`: filters of odd lengths along both axes of a mirrored image."""

def sos2tf(sos: Any) -> Any:
    """Return a single transfer function from a series of second-order sections"""

def sos2zpk(sos: Any) -> Any:
    """Return zeros, poles, and gain of a series of second-order sections"""

def sosfilt(sos: Any, x: Any, axis: Any = -1, zi: Any = None) -> Any:
    """Filter data along one dimension using cascaded second-order sections."""

def sosfilt_zi(sos: Any) -> Any:
    """Construct initial conditions for sosfilt for step response steady-state."""

def sosfiltfilt(sos: Any, x: Any, axis: Any = -1, padtype: str = "odd", padlen: Any = None) -> Any:
    """A forward-backward digital filter using cascaded second-order sections."""

def sosfreqz(*args: Any, **kwargs: Any) -> Any:
    """Compute the frequency response of a digital filter in SOS format (legacy)."""

def spectrogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = ("tukey_periodic", 0.25),
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: Any = -1,
    mode: str = "psd",
) -> Any:
    """Compute a spectrogram with consecutive Fourier transforms (legacy function)."""

def spline_filter(Iin: Any, lmbda: Any = 5.0) -> Any:
    """Smoothing spline (cubic) filtering of a rank-2 array."""

def square(t: Any, duty: Any = 0.5) -> Any:
    """Return a periodic square-wave waveform."""

def ss2tf(A: Any, B: Any, C: Any, D: Any, input: Any = 0) -> Any:
    """State-space to transfer function."""

def ss2zpk(A: Any, B: Any, C: Any, D: Any, input: Any = 0) -> Any:
    """State-space representation to zero-pole-gain representation."""

def step(system: Any, X0: Any = None, T: Any = None, N: Any = None) -> Any:
    """Step response of continuous-time system."""

def stft(
    x: Any,
    fs: Any = 1.0,
    window: str = "hann_periodic",
    nperseg: Any = 256,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: bool = False,
    return_onesided: bool = True,
    boundary: str = "zeros",
    padded: bool = True,
    axis: Any = -1,
    scaling: str = "spectrum",
) -> Any:
    """Compute the Short Time Fourier Transform (legacy function)."""

def sweep_poly(t: Any, poly: Any, phi: Any = 0) -> Any:
    """Frequency-swept cosine generator, with a time-dependent frequency."""

def symiirorder1(signal: Any, c0: Any, z1: Any, precision: Any = -1.0) -> Any:
    """Implement a smoothing IIR filter with mirror-symmetric boundary conditions using a cascade
    of first-order sections.
    """

def symiirorder2(input: Any, r: Any, omega: Any, precision: Any = -1.0) -> Any:
    """Implement a smoothing IIR filter with mirror-symmetric boundary conditions using a cascade
    of second-order sections.
    """

def tf2sos(b: Any, a: Any, pairing: Any = None, *, analog: bool = False) -> Any:
    """Return second-order sections from transfer function representation"""

def tf2ss(num: Any, den: Any) -> Any:
    """Transfer function to state-space representation."""

def tf2zpk(b: Any, a: Any) -> Any:
    """Return zero, pole, gain (z, p, k) representation from a numerator, denominator
    representation of a linear filter.
    """

def unique_roots(p: Any, tol: Any = 0.001, rtype: str = "min") -> Any:
    """Determine unique roots and their multiplicities from a list of roots."""

def unit_impulse(shape: Any, idx: Any = None, dtype: DTypeLike = ...) -> Any:
    """Unit impulse signal (discrete delta function) or unit basis vector."""

def upfirdn(
    h: Any,
    x: Any,
    up: Any = 1,
    down: Any = 1,
    axis: Any = -1,
    mode: str = "constant",
    cval: Any = 0,
) -> Any:
    """Upsample, FIR filter, and downsample."""

def vectorstrength(events: Any, period: Any) -> Any:
    """Determine the vector strength of the events corresponding to the given period."""

def welch(
    x: Any,
    fs: Any = 1.0,
    window: str = "hann_periodic",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: Any = -1,
    average: str = "mean",
) -> Any:
    """Estimate power spectral density using Welch's method."""

def wiener(im: Any, mysize: Any = None, noise: Any = None) -> Any:
    """Perform a Wiener filter on an N-dimensional array."""

def zoom_fft(
    x: Any, fn: Any, m: Any = None, *, fs: Any = 2, endpoint: bool = False, axis: Any = -1
) -> Any:
    """Compute the DFT of `x` only for frequencies in range `fn`."""

def zpk2sos(z: Any, p: Any, k: Any, pairing: Any = None, *, analog: bool = False) -> Any:
    """Return second-order sections from zeros, poles, and gain of a system"""

def zpk2ss(z: Any, p: Any, k: Any) -> Any:
    """Zero-pole-gain representation to state-space representation"""

def zpk2tf(z: Any, p: Any, k: Any) -> Any:
    """Return polynomial transfer function representation from zeros and poles"""
