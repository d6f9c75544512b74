# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.typing import DeviceLike
from typing import Any

__all__: list[str]

def barthann(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a modified Bartlett-Hann window."""

def bartlett(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a Bartlett window."""

def blackman(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a Blackman window."""

def blackmanharris(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a minimum 4-term Blackman-Harris window."""

def bohman(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a Bohman window."""

def boxcar(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a boxcar or rectangular window."""

def chebwin(M: Any, at: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a Dolph-Chebyshev window."""

def cosine(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a window with a simple cosine shape."""

def dpss(
    M: Any,
    NW: Any,
    Kmax: Any = None,
    sym: bool = True,
    norm: Any = None,
    return_ratios: bool = False,
    *,
    xp: Any = None,
    device: DeviceLike = None,
) -> Any:
    """Compute the Discrete Prolate Spheroidal Sequences (DPSS)."""

def exponential(
    M: Any,
    center: Any = None,
    tau: Any = 1.0,
    sym: bool = True,
    *,
    xp: Any = None,
    device: DeviceLike = None,
) -> Any:
    """Return an exponential (or Poisson) window."""

def flattop(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a flat top window."""

def gaussian(
    M: Any, std: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None
) -> Any:
    """Return a Gaussian window."""

def general_cosine(M: Any, a: Any, sym: bool = True) -> Any:
    """Generic weighted sum of cosine terms window"""

def general_gaussian(
    M: Any, p: Any, sig: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None
) -> Any:
    """Return a window with a generalized Gaussian shape."""

def general_hamming(
    M: Any, alpha: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None
) -> Any:
    """Return a generalized Hamming window."""

def get_window(
    window: Any, Nx: Any, fftbins: bool = True, *, xp: Any = None, device: DeviceLike = None
) -> Any:
    """Convenience function for creating various windows."""

def hamming(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a Hamming window."""

def hann(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a Hann window."""

def kaiser(
    M: Any, beta: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None
) -> Any:
    """Return a Kaiser window."""

def kaiser_bessel_derived(
    M: Any, beta: Any, *, sym: bool = True, xp: Any = None, device: DeviceLike = None
) -> Any:
    """Return a Kaiser-Bessel derived window."""

def lanczos(M: Any, *, sym: bool = True, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a Lanczos window also known as a sinc window."""

def nuttall(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a minimum 4-term Blackman-Harris window according to Nuttall."""

def parzen(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a Parzen window."""

def taylor(
    M: Any,
    nbar: Any = 4,
    sll: Any = 30,
    norm: bool = True,
    sym: bool = True,
    *,
    xp: Any = None,
    device: DeviceLike = None,
) -> Any:
    """Return a Taylor window."""

def triang(M: Any, sym: bool = True, *, xp: Any = None, device: DeviceLike = None) -> Any:
    """Return a triangular window."""

def tukey(
    M: Any, alpha: Any = 0.5, sym: bool = True, *, xp: Any = None, device: DeviceLike = None
) -> Any:
    """Return a Tukey window, also known as a tapered cosine window."""
