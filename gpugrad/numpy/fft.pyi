# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import DeviceLike
from typing import Any

__all__: list[str]

def fft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Compute the one-dimensional discrete Fourier Transform."""

def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """Compute the 2-dimensional discrete Fourier Transform."""

def fftfreq(n: Any, d: Any = 1.0, device: DeviceLike = None) -> Any:
    """Return the Discrete Fourier Transform sample frequencies."""

def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """Compute the N-dimensional discrete Fourier Transform."""

def fftshift(x: Any, axes: Any = None) -> Tensor:
    """Shift the zero-frequency component to the center of the spectrum."""

def hfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Compute the FFT of a signal that has Hermitian symmetry, i.e., a real spectrum."""

def ifft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Compute the one-dimensional inverse discrete Fourier Transform."""

def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """Compute the 2-dimensional inverse discrete Fourier Transform."""

def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """Compute the N-dimensional inverse discrete Fourier Transform."""

def ifftshift(x: Any, axes: Any = None) -> Tensor:
    """The inverse of `fftshift`. Although identical for even-length `x`, the functions differ by
    one sample for odd-length `x`.
    """

def ihfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Compute the inverse FFT of a signal that has Hermitian symmetry."""

def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Computes the inverse of `rfft`."""

def irfft2(
    a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None
) -> Tensor:
    """Computes the inverse of `rfft2`."""

def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """Computes the inverse of `rfftn`."""

def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Compute the one-dimensional discrete Fourier Transform for real input."""

def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """Compute the 2-dimensional FFT of a real array."""

def rfftfreq(n: Any, d: Any = 1.0, device: DeviceLike = None) -> Any:
    """Return the Discrete Fourier Transform sample frequencies (for usage with rfft, irfft)."""

def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """Compute the N-dimensional discrete Fourier Transform for real input."""
