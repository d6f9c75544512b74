"""The names of ``numpy.random``, which has no arguments to differentiate by."""

from typing import TYPE_CHECKING, Any

import numpy.random as _plain

from gpugrad.compat.autograd.numpy.wrapping import fill
from gpugrad.compat.names import forwarding

_look_up, _names = forwarding(__name__, _plain)
fill(__name__, _look_up, _names())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
