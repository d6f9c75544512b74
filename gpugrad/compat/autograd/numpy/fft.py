"""The names of ``numpy.fft``, for boxes too."""

from typing import TYPE_CHECKING, Any

import numpy.fft as _plain

import gpugrad.numpy.fft as _ours
from gpugrad.compat.autograd.numpy.wrapping import fill, wrapped_names

_look_up, _names = wrapped_names(__name__, _plain, _ours)
fill(__name__, _look_up, _names())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
