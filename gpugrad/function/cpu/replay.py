"""Replay on the CPU: a program as one Python function, with buffers planned beforehand.

Every step is a line: a ufunc that writes to a buffer of the arena, a matrix product into place,
or the op's own function. A buffer is taken again once all that was in it has been read. Results
and values of Variables get memory of their own at each run, so what an earlier run returned
never changes.
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import ARRAYS, NUMPY, reading
from gpugrad.function.calls import effect_call, op_call, said
from gpugrad.function.cpu.blocks import SMALLEST, Group, compile_group, out_keyword, ufunc_of
from gpugrad.trace.program import Program, Step, Value, check_shapes

__all__ = ["Replay"]


class Replay:
    """A planned program.

    Args:
        program: in groups.
        arena: whether results go to planned buffers.
        in_place: whether a result may take the memory of what it is computed from, a Variable's
            new value that of the old one.

    Attributes:
        source: the text of the function.
        arena_bytes: of the buffers that one run at a time takes.
        buffered: ids of the Values that are in them.
        xp: the namespace of its arrays.
        repeats: whether it has `several` steps of its own; it has not.
    """

    repeats = False

    def __init__(self, program: Program, arena: bool = True, in_place: bool = True) -> None:
        self._arena, self._in_place = arena, in_place
        self._names: dict[int, str] = {}
        self._scope: dict[str, Any] = {"asarray": _as_array}
        self._lines: list[str] = []
        self._buffers: list[tuple[tuple[int, ...], Any]] = []
        self._program, self._loose = program, program.loose()
        self.buffered: set[int] = set()
        arrays = [s.results[0] for s in program.steps if s.results]
        self.xp = reading(*arrays[:1])
        self._plan()
        self.source = "\n    ".join(self._lines) + "\n"
        self.arena_bytes = sum(int(np.prod(s)) * d.itemsize for s, d in self._buffers)
        scope = dict(self._scope)
        exec(compile(self.source, "<gpugrad program>", "exec"), scope)
        self._run = scope["run"]
        self._arenas: deque[list[Any]] = deque()  # one for each thread that runs at once

    def __call__(self, arrays: list[Any], release: Callable[[], None] | None = None) -> list[Any]:
        """Run the program on bare arrays of its inputs; Variables change when all has gone well.

        Args:
            arrays: it is emptied, so that an array goes when all that reads it has run.
            release: called when no step can find any more that the function must be called.

        Raises:
            NotReplayable: a Variable has another shape: this is not its program. Nothing has run.
        """
        check_shapes(self._loose)
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = [np.empty(shape, dtype) for shape, dtype in self._buffers]
        with np.errstate(all="ignore"):
            reads = [v._data for v, _ in self._program.reads]
            try:
                results, writes = self._run(arrays, reads, arena, release)
            except Exception as error:
                if (step := self._at(error)) is not None:
                    said(error, step)
                raise
        for (variable, _), array in zip(self._program.writes, writes, strict=True):
            variable._data = array
        self._arenas.append(arena)
        return results

    def _at(self, error: Exception) -> Step | None:
        """The step that has raised."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code is not self._run.__code__:
            trace = trace.tb_next
        return None if trace is None else self._step_of.get(trace.tb_lineno)

    # -- planning

    def _name(self, a: Any) -> str:
        if isinstance(a, list):
            return "[" + ", ".join(map(self._name, a)) + "]"
        if isinstance(a, Value):
            if a.constant is not None:
                return self._global(a.constant)
            return self._names[id(a)]
        return self._global(a)

    def _global(self, thing: Any) -> str:
        name = f"c{len(self._scope)}"
        self._scope[name] = thing
        return name

    def _plan(self) -> None:
        program = self._program
        roots = self._roots()
        self._escaping = {
            roots[id(v)] for v in (*program.outputs, *(v for _, v in program.writes))
            if id(v) in roots
        }  # fmt: skip
        last: dict[int, int] = {}
        for k, step in enumerate(program.steps):
            for v in step.inputs:
                last[roots.get(id(v), id(v))] = k
        self._held: dict[int, int] = {}  # buffer by root
        self._free: dict[Any, list[int]] = {}
        lines = self._lines
        lines.append("def run(arrays, reads, arena, release):")
        for k, v in enumerate(program.inputs):
            self._names[id(v)] = f"i{k}"
        for k, (_, v) in enumerate(program.reads):
            self._names[id(v)] = f"w{k}"
        if program.inputs:
            lines.append(f"{', '.join(self._names[id(v)] for v in program.inputs)}, = arrays")
            lines.append("arrays.clear()")
        if program.reads:
            lines.append(f"{', '.join(self._names[id(v)] for _, v in program.reads)}, = reads")
            lines.append("reads.clear()")  # who moves a Variable in place must find it its own
        at = len(lines)
        # the step that reads a value last, whatever shares its memory
        own = {id(v): k for k, step in enumerate(program.steps) for v in step.inputs}
        kept = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
        checks = [k for k, step in enumerate(program.steps) if _may_raise(step)]
        lines += [] if checks else ["if release: release()"]
        found: list[tuple[int, Step]] = []  # how many lines there are after each step's
        for k, step in enumerate(program.steps):
            ends = {r for r in (roots.get(id(v), id(v)) for v in step.inputs) if last[r] == k}
            done = {id(v) for v in step.inputs if own[id(v)] == k and v.constant is None} - kept
            self._step(step, ends, roots, done)
            found.append((len(lines), step))
            for r in ends:
                if r in self._held and r not in self._escaping:
                    slot = self._held.pop(r)
                    self._free.setdefault(self._buffers[slot], []).append(slot)
            if done and not step.variables:
                lines.append(f"{' = '.join(sorted(self._names[v] for v in done))} = None")
            if checks and k == checks[-1]:
                lines.append("if release: release()")
        if self._buffers:
            names = ", ".join(f"b{k}" for k in range(len(self._buffers)))
            lines.insert(at, f"{names}, = arena")
        self._step_of = {n + bool(self._buffers): step for n, step in found}
        outs = ", ".join(f"asarray({self._name(v)})" for v in program.outputs)
        writes = ", ".join(f"asarray({self._name(v)})" for _, v in program.writes)
        lines.append(f"return [{outs}], [{writes}]")

    def _roots(self) -> dict[int, int]:
        """Whose memory a value may share: the first of those that share it."""
        roots: dict[int, int] = {}
        for v in (*self._program.inputs, *(v for _, v in self._program.reads)):
            roots[id(v)] = id(v)
        for step in self._program.steps:
            for v in step.outs:
                roots[id(v)] = id(v)
                if v.view:
                    shared = {roots[id(a)] for a in step.inputs if id(a) in roots}
                    if shared:
                        first = min(shared)
                        for key, root in roots.items():
                            if root in shared:
                                roots[key] = first
                        roots[id(v)] = first
        return roots

    def _step(self, step: Step, ends: set[int], roots: dict[int, int], done: set[int]) -> None:
        if isinstance(step, Group):
            self._call(step, self._global(compile_group(step)))
            return
        if step.op is None:
            self._effect(step, done)
            return
        given = [self._name(a) for a in step.args]
        (out, *more) = step.outs
        ufunc = ufunc_of(step.op) if self.xp is NUMPY else None
        if self.xp is NUMPY and _is_plain_relu(step):
            ufunc, given = np.maximum, [*given, self._global(_zeros(out))]
        product = (
            self.xp is NUMPY
            and step.op.name == "matmul"
            and out.dtype.char not in "eE"  # of which the op knows better
            and all(len(v.shape) == 2 for v in step.inputs)
        )
        if not more and not out.view and (ufunc is not None or product):
            name = self._names[id(out)] = f"t{len(self._names)}"
            function = self._global(ufunc or np.matmul)
            buffer = self._buffer(out, ends if ufunc is not None else set(), roots)
            if buffer:
                self.buffered.add(id(out))
                given.append(out_keyword(ufunc) + buffer)
            made = f"{function}({', '.join(given)})"
            self._lines.append(
                f"{name} = {made}" if out.shape or buffer else f"{name} = asarray({made})"
            )
            return
        self._call(step, self._global(op_call(step, self.xp)))

    def _call(self, step: Step, function: str) -> None:
        given = ", ".join(self._name(a) for a in step.args)
        names = []
        for v in step.outs:
            names.append(f"t{len(self._names)}")
            self._names[id(v)] = names[-1]
        several = isinstance(step, Group) or step.op.outputs > 1
        if not several:
            made = f"{function}({given})"
            self._lines.append(
                f"{names[0]} = {made}" if step.outs[0].shape else f"{names[0]} = asarray({made})"
            )
        else:
            self._lines.append(f"{', '.join(names)}, = {function}({given})")

    def _buffer(self, out: Value, ends: set[int], roots: dict[int, int]) -> str:
        """The buffer that a result goes to; none for what leaves the program."""
        if not self._arena or roots[id(out)] in self._escaping or not out.shape:
            return ""
        kind = (out.shape, out.dtype)
        taken = ends if self._in_place else ()
        for root in taken:  # elementwise, so the result may take an argument's place
            slot = self._held.get(root)
            if slot is not None and self._buffers[slot] == kind and root not in self._escaping:
                del self._held[root]
                self._held[roots[id(out)]] = slot
                return f"b{slot}"
        spare = self._free.get(kind)
        if spare:
            slot = spare.pop()
        else:
            slot = len(self._buffers)
            self._buffers.append(kind)
        self._held[roots[id(out)]] = slot
        return f"b{slot}"

    def _effect(self, step: Step, done: set[int]) -> None:
        n = len(step.args) - len(step.variables)
        names = []
        for v in step.outs:
            names.append(f"t{len(self._names)}")
            self._names[id(v)] = names[-1]
        given = ", ".join(self._name(a) for a in step.args[:n])
        values = [self._name(a) for a in step.args[n:]]
        call, variables = self._global(effect_call(step)), self._global(step.variables)
        targets = f"{', '.join(names)}, = " if names else ""
        if values:  # let go of, so that an update in place finds the array its own
            self._lines.append(f"v = [{', '.join(values)}]")
            free = {self._names[id(a)] for a in step.args[n:] if id(a) in done and self._in_place}
            if free := free.difference(map(self._name, step.args[:n])):  # one is a gradient too
                self._lines.append(f"{' = '.join(sorted(free))} = None")
            self._lines.append(f"{targets}{call}([{given}], {variables}, v)")
        else:
            self._lines.append(f"{targets}{call}([{given}], (), [])")


def _may_raise(step: Step) -> bool:
    """Whether a step may raise a NotReplayable: a check does, and so might another effect."""
    return step.op is None and not step.parts and not step.variables


def _is_plain_relu(step: Step) -> bool:
    """Whether a step is a relu that is faster as the larger of two arrays, one of them zeros.

    For two arrays NumPy has vector instructions, for an array and a number it has not.
    """
    (out, *_) = step.outs
    return step.op.name == "relu" and out.dtype.char in "fd" and math.prod(out.shape) <= SMALLEST


@functools.cache
def _flat_zeros(dtype: np.dtype[Any]) -> Any:
    return np.zeros(SMALLEST, dtype)  # the system gives it no memory, as it is only read


def _zeros(out: Value) -> Any:
    return _flat_zeros(out.dtype)[: math.prod(out.shape)].reshape(out.shape)


def _as_array(x: Any) -> Any:
    return x if type(x) in ARRAYS else np.asarray(x)
