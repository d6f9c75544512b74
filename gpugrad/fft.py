"""Fourier, cosine and sine transforms: ``gg.fft.fft(x)``.

The names and call forms of the array API's ``fft`` namespace and of scipy.fft. The transforms are
differentiable, to any order. Single precision stays single; 16-bit floats give single precision.
"""

from gpugrad.core.known_as import answer_missing
from gpugrad.ops.fft.dct import dct, dctn, dst, dstn, idct, idctn, idst, idstn
from gpugrad.ops.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from gpugrad.ops.fft.hankel import fht, fhtoffset, ifht, next_fast_len, prev_fast_len
from gpugrad.ops.fft.transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "fht", "fhtoffset",
    "hfft", "hfft2", "hfftn", "idct", "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn",
    "ifftshift", "ifht", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn",
    "next_fast_len", "prev_fast_len", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

answer_missing(__name__)

fft.__module__ = __name__  # for pickle, which looks functions up: gpugrad.fft is this module


def __dir__() -> list[str]:
    return __all__
