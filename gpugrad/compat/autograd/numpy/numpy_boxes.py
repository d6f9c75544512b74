"""The class of arrays that are differentiated."""

# ruff: noqa: F401
from gpugrad.compat.autograd.boxes import ArrayBox, Box
