"""What passes share: writing a program again with some values in the place of others."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.registry.record import OPS
from gpugrad.trace.program import Program, Step, Value

__all__ = ["Rewriter"]


class Rewriter:
    """Writes a program again, step by step."""

    def __init__(self, program: Program) -> None:
        self._made = program.copy()
        self._made.steps = []
        self._now: dict[int, Value] = {}

    def value(self, v: Value) -> Value:
        """The value that has taken the place of `v`."""
        return self._now.get(id(v), v)

    def _arg(self, a: Any) -> Any:
        if isinstance(a, list):
            return [self._arg(x) for x in a]
        return self.value(a) if isinstance(a, Value) else a

    def renamed(self, step: Step) -> Step:
        """The step with what has taken the place of its arguments."""
        return self.again(step, step.args)

    def again(self, step: Step, args: Sequence[Any]) -> Step:
        """The step with other arguments."""
        made = copy.copy(step)
        made.args = tuple(self._arg(a) for a in args)
        return made

    def keep(self, step: Step) -> None:
        """Append a step."""
        self._made.steps.append(step)

    def replace(self, old: Value, new: Value) -> None:
        """Let `new` take the place of `old` from here on."""
        self._now[id(old)] = new

    def reshaped(self, of: Step, x: Value, shape: tuple[int, ...]) -> Value:
        """A value in another shape: a view of it, by a step in the place of another."""
        if x.shape == shape:
            return x
        made = self.step(of, "reshape", [x], {"shape": shape, "copy": None}, shape)
        made.view = True
        return made

    def step(
        self, of: Step, name: str, args: Sequence[Any], params: dict[str, Any],
        shape: tuple[int, ...], dtype: Any = None,
    ) -> Value:  # fmt: skip
        """Append a step in the place of another; its result."""
        dtype = args[0].dtype if dtype is None else np.dtype(dtype)
        out = Value(np.broadcast_to(np.empty((), dtype), shape))
        out.host = next((a.host for a in args if isinstance(a, Value)), of.outs[0].host)
        made = Step(OPS[name], args, params, [out])
        made.backward, made.phase = of.backward, of.phase
        self.keep(made)
        return out

    def program(self) -> Program:
        """The new program."""
        made = self._made
        made.outputs = [self.value(v) for v in made.outputs]
        made.writes = [(variable, self.value(v)) for variable, v in made.writes]
        return made
