"""Fourier, cosine and sine transforms: ``gg.fft.fft(x)``.

The functions of the array API's ``fft`` with its names and arguments, the two-dimensional ones
of NumPy, and SciPy's cosine and sine transforms. All are differentiable, to any order; single
precision stays single.
"""

from gpugrad.ops.dct import dct, dst, idct, idst
from gpugrad.ops.fft import fft, fft2, fftn, ifft, ifft2, ifftn
from gpugrad.ops.fft_real import (
    hfft,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)
from gpugrad.ops.frequencies import fftfreq, fftshift, ifftshift, rfftfreq

__all__ = [
    "dct",
    "dst",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "idct",
    "idst",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return __all__
