"""Fourier, cosine and sine transforms: ``gg.fft.fft(x)``.

The functions of the array API's ``fft`` namespace, NumPy's two-dimensional transforms, and SciPy's
cosine and sine transforms. All are differentiable, to any order; single precision stays single.
"""

from gpugrad.ops.fft.dct import dct, dst, idct, idst
from gpugrad.ops.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from gpugrad.ops.fft.transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

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

fft.__module__ = __name__  # for pickle, which looks functions up: gpugrad.fft is this module


def __dir__() -> list[str]:
    return __all__
