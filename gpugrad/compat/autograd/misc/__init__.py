"""Autograd's further helpers."""

# ruff: noqa: F401
from gpugrad.compat.autograd.misc.flatten import flatten
from gpugrad.compat.autograd.misc.tracers import const_graph
from gpugrad.compat.names import forwarding

__getattr__, __dir__ = forwarding(__name__, own=globals())
