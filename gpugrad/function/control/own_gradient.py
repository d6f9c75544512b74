"""Calls in branches and bodies that have a gradient of their own, as by `gg.custom_gradient`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.registry.fields import Replay
from gpugrad.registry.rules import OwnRules
from gpugrad.trace.program import Program

__all__ = ["Own", "without_own"]


class Own(Replay):
    """Stands in the place of an op, in a step that hands on the results of such a call.

    The step takes the results, the call's inputs and what the gradient reads, and gives the
    results: only where a tape records it is more than that.

    Args:
        name: of the call.
        outs, inputs: how many it has.
        gradients: function of the upstream gradients and of what it reads, as Tensors: one for
            each input, or None.
    """

    kind, arrays = "control", ()
    is_library_function = variadic = False
    outputs = 2  # it returns a list, also of one

    def __init__(
        self, name: str, outs: int, inputs: int, gradients: Callable[..., list[Tensor | None]]
    ) -> None:
        self.name, self._outs, self._inputs, self._gradients = name, outs, inputs, gradients

    def eager(self, *tensors: Tensor) -> list[Tensor]:
        """The results, recorded by whoever records."""
        n, m = self._outs, self._outs + self._inputs
        outs = [wrap(t._data) for t in tensors[:n]]
        _Call(self.name, self._gradients, tensors[m:]).record(outs, tensors[n:m])
        return outs


class _Call(OwnRules):
    """One run of its step."""

    def __init__(
        self, name: str, gradients: Callable[..., list[Tensor | None]], read: Sequence[Tensor]
    ) -> None:
        super().__init__(name)
        self._gradients, self._read = gradients, [copy(t) for t in read]

    def gradients(self, xp: Any, g: tuple[Any, ...]) -> list[Any]:
        """What the function written down for them returns."""
        upstream = [x if xp is TENSOR else wrap(x) for x in g]
        found = self._gradients(*upstream, *self._read)
        return [x if x is None or xp is TENSOR else x._data for x in found]


def without_own(program: Program) -> Program:
    """The program of the values alone, without gradients that calls in it have of their own."""
    made = Rewriter(program)
    for step in program.steps:
        if type(step.op) is not Own:
            made.keep(made.renamed(step))
            continue
        for out, arg in zip(step.outs, step.args, strict=False):
            made.replace(out, made.value(arg))
    return made.program()
