"""Derivatives of functions of one nested argument, by tapes and by forward mode.

Gradients by complex numbers are not conjugated: the gradient of ``f`` at ``z`` is ``f'(z)`` for a
holomorphic ``f``, where gpugrad's is its conjugate.
"""

from __future__ import annotations

import contextvars
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gpugrad
from gpugrad.autodiff.gradients import differentiate
from gpugrad.compat.autograd.boxes import (
    ArrayBox,
    Box,
    as_tensor,
    conj,
    holds_box,
    in_classes_of,
    isbox,
    leaves_of,
    lowered,
    map_leaves,
    pack,
)
from gpugrad.errors import GpugradError, GpugradWarning

gg: Any = gpugrad
Tensor = gpugrad.Tensor
Function = Callable[..., Any]


in_forward_mode = contextvars.ContextVar("in forward mode", default=False)
"""Whether the innermost derivative that is being computed is by forward mode."""
calls_with_rules = contextvars.ContextVar("calls with rules", default=0)
"""How many calls of primitives have been recorded, whose rules take one gradient at a time."""


def _of_tensors(
    fun: Function, x: Any, forward: bool = False
) -> tuple[list[Tensor], Function, list[Any]]:
    """The leaves of `x` as Tensors, `fun` as a function of them, and a list for its results."""
    leaves = leaves_of(x)
    # a Tensor that is differentiated already gets a number of its own: `fun` may hold it, too
    tensors = [
        gg.positive(as_tensor(v)) if isinstance(v, (Box, Tensor)) else as_tensor(v) for v in leaves
    ]
    found: list[Any] = []

    def of_tensors(*tensors: Any) -> Any:
        before = in_forward_mode.set(forward)
        try:
            result = fun(pack(x, [ArrayBox(t) for t in tensors]))
        finally:
            in_forward_mode.reset(before)
        found.append(result)
        if type(result) is ArrayBox:  # most
            return [result._tensor]
        if not holds_box(result):
            warnings.warn("Output seems independent of input.", GpugradWarning, stacklevel=4)
        return [_as_result(leaf) for leaf in leaves_of(result)]

    return tensors, of_tensors, found


def _as_result(leaf: Any) -> Tensor:
    """The Tensor of a result, which may be a constant of any dtype, such as a mask."""
    is_differentiated = holds_box(leaf) or isinstance(leaf, Tensor)
    return as_tensor(leaf) if is_differentiated else gg.asarray(np.asarray(leaf))


class Pullback:
    """The function ``g -> g^T J`` of `fun` at `x`, and its value there, `ans`."""

    def __init__(self, fun: Function, x: Any) -> None:
        before = calls_with_rules.get()
        self._x, (self._tensors, of_tensors, found) = x, _of_tensors(fun, x)
        # gg.vjp does this, too, for nests of anything: here it would be a third of a small gradient
        tape = gg.GradientTape(persistent=True, watch_accessed_variables=False)
        self._tape = tape
        with tape:
            for t in self._tensors:  # one by one, as looking into a list takes as long again
                tape.watch(t)
            self._values = of_tensors(*self._tensors)
        self._nest, self._has_rules = found[-1], calls_with_rules.get() != before
        self.ans = lowered(pack(self._nest, self._values))

    def __call__(self, g: Any) -> Any:
        """The gradient of the inner product of the value and `g`."""
        given: list[Any] = []
        map_leaves(lambda _, leaf: given.append(cotangent(leaf)), self._nest, g)
        pairs = zip(given, self._values, strict=True)
        return self._gradient([conj(fit(u, v)) for u, v in pairs])

    def of_sum(self) -> Any:
        """The gradient of the sum of a real value."""
        return self._gradient(None)

    def _gradient(self, upstream: Any) -> Any:
        seeds = [None] * len(self._values) if upstream is None else upstream
        # tape.gradient checks its arguments first, which here would be a fifth of the time
        grads = differentiate(self._tape, self._values, seeds, self._tensors)
        pairs = zip(grads, self._tensors, strict=True)
        dense = [d if type(d) is Tensor else _dense(d, t) for d, t in pairs]
        found = lowered(pack(self._x, [conj(d) for d in dense]))
        # as where rules compute with the values; rules of primitives may return any class
        return found if self._has_rules else in_classes_of(found, self._x)

    def rows(self) -> Any:
        """The Jacobian of an array by an array, all its rows in one pass, or None.

        Rules of primitives take one gradient at a time, and so do a few ops.
        """
        if self._has_rules or isinstance(self._nest, (list, tuple, dict)):
            return None
        if isinstance(self._x, (list, tuple, dict)) or self._values[0].dtype.kind != "f":
            return None
        try:
            found = self._tape.jacobian(self._values[0], self._tensors[0], "zero")
        except GpugradError:  # what is wrong with a row, its own pass says
            return None
        return lowered(conj(found))


def make_vjp(fun: Function, x: Any) -> tuple[Pullback, Any]:
    """The function ``g -> g^T J`` and the value of `fun` at `x`, a nest of arrays and numbers."""
    vjp = Pullback(fun, x)
    return vjp, vjp.ans


def _dense(g: Any, of: Tensor) -> Tensor:
    """A gradient that is None or sparse, as a Tensor."""
    found: Tensor = gg.zeros_like(of) if g is None else gg.convert_to_tensor(g)
    return found


def cotangent(leaf: Any) -> Tensor:
    """A gradient or tangent as a Tensor."""
    return as_tensor(leaf if isbox(leaf) or isinstance(leaf, Tensor) else np.asarray(leaf))


def fit(g: Tensor, like: Tensor) -> Tensor:
    """A cotangent or tangent in the dtype and the shape of a value."""
    g = gg.real(g) if g.dtype.kind == "c" != like.dtype.kind else g
    g = gg.astype(g, like.dtype) if g.dtype != like.dtype else g
    return gg.broadcast_to(g, like.shape) if g.shape != like.shape else g


def make_jvp(fun: Function, x: Any) -> Function:
    """The function ``v -> (value, J v)`` of `fun` at `x`, by forward mode."""
    tensors, of_tensors, found = _of_tensors(fun, x, forward=True)

    def jvp(v: Any) -> tuple[Any, Any]:
        given: list[Any] = []
        map_leaves(lambda _, leaf: given.append(cotangent(leaf)), x, v)
        tangents = [fit(t, p) for t, p in zip(given, tensors, strict=True)]
        with gg.ForwardAccumulator(tensors, tangents) as accumulator:  # see `Pullback`
            values = of_tensors(*tensors)
        moved, nest = accumulator.jvp(values, "zero"), found[-1]
        return lowered(pack(nest, values)), lowered(pack(nest, moved))

    return jvp
