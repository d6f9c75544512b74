"""The class of arrays that are differentiated."""

# ruff: noqa: F401
from gpugrad.compat.autograd.boxes import ArrayBox, Box
from gpugrad.compat.names import forwarding

__getattr__, __dir__ = forwarding(__name__, own=globals())
