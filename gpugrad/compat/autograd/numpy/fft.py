"""The names of ``numpy.fft``, for boxes too."""

import numpy.fft as _plain

import gpugrad.numpy.fft as _ours
from gpugrad.compat.autograd.numpy.wrapping import wrapped_names

__getattr__, __dir__ = wrapped_names(__name__, _plain, _ours)
