"""Weights that are rounded to 16 bits, all in one launch: a step in mixed precision has many.

Only those that stay for the backward pass, or are small: all of them are there from the first on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import Namespace
from gpugrad.function.passes.joined import Joined, with_instead
from gpugrad.function.passes.readers import Readers
from gpugrad.kernels.by_hand.casts import NARROW, cast_all
from gpugrad.trace.program import Program, Step, Value

__all__ = ["cast_together"]

SMALL = 1 << 20
"""Bytes of an array that is cast with others though it is not needed for long."""


class _Casts(Joined):
    """The arguments are the arrays."""

    __slots__ = ()

    def __init__(self, steps: list[Step]) -> None:
        args, outs = [s.args[0] for s in steps], [s.outs[0] for s in steps]
        super().__init__(f"{len(steps)} casts to {outs[0].dtype}", args, steps, outs)

    def run(self, xp: Namespace, *arrays: Any) -> Any:
        """As of a `Joined`."""
        return cast_all(arrays, self.outs[0].dtype)


def cast_together(program: Program) -> Program:
    """Join casts of what is there before the first step."""
    readers = Readers(program)
    found: dict[Any, list[Step]] = {}
    for step in program.steps:
        if _is_early(step, readers):
            found.setdefault((step.outs[0].dtype, step.phase), []).append(step)
    instead: dict[int, list[Step]] = {}
    for steps in found.values():
        if len(steps) > 1:
            instead.update((id(s), []) for s in steps)
            instead[id(steps[0])] = [_Casts(steps)]
    return with_instead(program, instead)


def _is_early(step: Step, readers: Readers) -> bool:
    if step.name != "astype" or step.op is None or not isinstance(step.args[0], Value):
        return False
    (x,), (out,) = step.args, step.outs
    if x.dtype != np.float32 or out.dtype not in NARROW or x.constant is not None:
        return False
    if id(x) in readers.made or 0 in x.shape:
        return False
    of = readers.of(out)
    fused = any(s.op is not None and s.op.kind == "elementwise" for s in of)  # costs nothing there
    return not fused and (out.nbytes <= SMALL or any(_is_backward(s, readers) for s in of))


def _is_backward(step: Step, readers: Readers) -> bool:
    """Whether a step, or what reads a view that it makes, is of a backward pass."""
    return step.backward or any(
        v.view and any(_is_backward(s, readers) for s in readers.of(v)) for v in step.outs
    )
