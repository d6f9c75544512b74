"""The names of ``numpy.random``, which has no arguments to differentiate by."""

import numpy.random as _plain

from gpugrad.compat.names import forwarding

__getattr__, __dir__ = forwarding(__name__, _plain)
