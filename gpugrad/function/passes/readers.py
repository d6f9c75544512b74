"""Which steps of a program make and read a value: what passes look for patterns with."""

from __future__ import annotations

from gpugrad.trace.program import Program, Step, Value

__all__ = ["Readers"]


class Readers:
    """Who reads each value of a program.

    Attributes:
        place: of each step, by id.
        made: the step that makes a value, by id.
    """

    def __init__(self, program: Program) -> None:
        self.place = {id(s): k for k, s in enumerate(program.steps)}
        self._steps: dict[int, list[Step]] = {}
        for step in program.steps:
            for v in step.inputs:
                self._steps.setdefault(id(v), []).append(step)
        self._leave = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
        self.made = {id(v): s for s in program.steps for v in s.outs}

    def of(self, v: Value) -> list[Step]:
        """The steps that read a value."""
        return self._steps.get(id(v), [])

    def only(self, v: Value) -> Step | None:
        """The one step that reads a value, once."""
        steps = self.of(v)
        return steps[0] if len(steps) == 1 and id(v) not in self._leave else None

    def alike(self, v: Value) -> list[Value]:
        """The values with the elements of `v` in the same rows, whatever else of their shape."""
        root = v
        while (step := self.made.get(id(root))) is not None and step.name == "reshape":
            (root,) = step.inputs
        found = [root]
        for x in found:
            found += [s.outs[0] for s in self.of(x) if s.name == "reshape"]
        return [x for x in found if x.shape[-1:] == v.shape[-1:]]
