"""Convolutions of float32 over up to three axes, and their gradients, in C."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.for_shapes import shapes_suffice
from gpugrad.kernels.cpu import volumes
from gpugrad.kernels.cpu.large import errors_raise
from gpugrad.kernels.cpu.pool import Kernels

LEAST = 1 << 15
"""Products of an input and a weight from which the kernel is used: others take microseconds."""

_FAST = ("-ffp-contract=fast",)  # takes half the time, and is the more exact one
_SUMS = Kernels(
    "convolution", "#define SUMS\n", flags=_FAST, convolution="pppp", convolution_input="pppp"
)
_WEIGHTS = Kernels("convolution", "#define WEIGHTS\n", flags=_FAST, convolution_weights="pppp")


class _Launchers:
    """The launchers of the kernels, on arrays or on anything that has shapes and dtypes.

    Args:
        use: what is returned, from the name of the C function, its two inputs, the shape of the
            result, and the numbers that it reads.
    """

    def __init__(self, use: Callable[..., Any]) -> None:
        self._use = use

    def convolution(self, xp: Any, x: Any, w: Any, *, geometry: Any, groups: int) -> Any:
        """The convolution of x and w, or NotImplemented."""
        return self._run("", x, w, x.shape, w.shape, geometry, groups)

    def input_grad(self, xp: Any, g: Any, w: Any, *, shape: Any, geometry: Any, groups: int) -> Any:
        """The gradient of a convolution by its input, of shape `shape`, or NotImplemented."""
        return self._run("_input", g, w, shape, w.shape, geometry, groups)

    def weight_grad(
        self, xp: Any, x: Any, g: Any, *, shape: Any, geometry: Any, groups: int
    ) -> Any:
        """The gradient of a convolution by its weights, of shape `shape`, or NotImplemented."""
        return self._run("_weights", x, g, x.shape, shape, geometry, groups)

    def _run(self, of: str, a: Any, b: Any, x: Any, w: Any, geometry: Any, groups: int) -> Any:
        """The result or one gradient, for an input and weights of the shapes `x` and `w`."""
        if len(x) not in (3, 4) or a.dtype != np.float32 or b.dtype != np.float32:
            return NotImplemented
        places = geometry.places
        if math.prod((x[0], *w, *places)) < LEAST or 0 in x:
            return NotImplemented
        out = {"": (x[0], w[0], *places), "_input": x, "_weights": w}[of]
        if shapes_suffice():
            return np.zeros(out, np.float32)
        in_c = _WEIGHTS if of == "_weights" else _SUMS
        if not in_c:
            return NotImplemented
        one, none = ((1,), (0,)) if len(x) == 3 else ((), ())  # of an image of one row
        before = (start for start, _ in geometry.padding)
        numbers = [
            *(x[0], groups, w[1], w[0] // groups),
            *(*one, *x[2:], *one, *w[2:], *one, *places),
            *(*one, *geometry.stride, *none, *before, *one, *geometry.dilation),
        ]
        return self._use(getattr(in_c, f"convolution{of}"), a, b, out, numbers)


def _call(function: Any, a: Any, b: Any, shape: Any, numbers: Sequence[int]) -> Any:
    if errors_raise():
        return NotImplemented
    out = np.empty(shape, np.float32)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    function((ctypes.c_long * 16)(*numbers), a, b, out)
    return out


def _planned(function: Any, a: Any, b: Any, shape: Any, numbers: Sequence[int]) -> Any:
    return ctypes.cast(function, ctypes.c_void_p).value, numbers


class _InPlanes(_Launchers):
    """The launchers on arrays, which also take volumes."""

    def convolution(self, xp: Any, x: Any, w: Any, *, geometry: Any, groups: int) -> Any:
        if x.ndim == 5:
            return volumes.convolution(super().convolution, x, w, geometry, groups)
        return super().convolution(xp, x, w, geometry=geometry, groups=groups)

    def input_grad(self, xp: Any, g: Any, w: Any, *, shape: Any, geometry: Any, groups: int) -> Any:
        if g.ndim == 5:
            return volumes.input_grad(super().input_grad, g, w, shape, geometry, groups)
        return super().input_grad(xp, g, w, shape=shape, geometry=geometry, groups=groups)

    def weight_grad(
        self, xp: Any, x: Any, g: Any, *, shape: Any, geometry: Any, groups: int
    ) -> Any:
        if x.ndim == 5:
            return volumes.weight_grad(super().weight_grad, x, g, shape, geometry, groups)
        return super().weight_grad(xp, x, g, shape=shape, geometry=geometry, groups=groups)


launchers = _InPlanes(_call)
planners = _Launchers(_planned)
"""They return what the field `c_call` of an op asks for."""
