"""Replay on a GPU: what can be captured runs as CUDA graphs, the rest step by step between them.

A graph is a fixed list of launches on fixed memory. Arguments are copied to where it reads them;
Variables are there already, and optimizers move them there. What differs from run to run, such as
a learning rate, a step number or where a random stream is, comes as numbers on the device. What a
program returns is copied out: what an earlier call returned never changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from gpugrad.backend import NUMPY, Namespace
from gpugrad.function.cuda.runs import Run, call_of, given
from gpugrad.function.cuda.slots import Slot, moved_in_place, slot_of
from gpugrad.function.fusing import FUSING
from gpugrad.function.fusing.overwriting import over, overwriting
from gpugrad.function.memory import roots_of
from gpugrad.kernels.graphs import Graph, Numbers, RefusedError
from gpugrad.placement import formulas_on
from gpugrad.program import Program, Step, Value, check_shapes

__all__ = ["Launches"]

_LOCK = threading.RLock()  # graphs share the memory of Variables


class Launches:
    """A program made ready for a GPU: fused, and cut into what can be captured and what cannot.

    Args:
        program: after the passes.
        xp: the namespace of its arrays.
        passes: names in FUSING.

    Attributes:
        program: as it is launched.
        runs: its parts, in order.
        arena_bytes, buffered: as of a `Replay`; memory comes from pools here.
    """

    arena_bytes, buffered = 0, frozenset[int]()

    def __init__(
        self, program: Program, xp: Namespace, passes: Collection[str] = tuple(FUSING)
    ) -> None:
        for name in FUSING:
            program = FUSING[name](program) if name in passes else program
        self.program = program
        self.runs: list[Run] = []
        self._loose = program.loose()
        self._xp, self._captures = xp, xp is not NUMPY
        in_place = moved_in_place(program) if self._captures else {}
        self._effects: list[tuple[Step, Any]] = [
            (step, step.launched) for step in program.steps if id(step) in in_place
        ]
        self._live: dict[int, list[Any]] = {}  # numbers on the device, by effect: of one step
        self._lives = [self._live]
        written_over = overwriting(program)
        for step in program.steps:
            call, fixed = self._launch(step) if id(step) in in_place else call_of(step, xp)
            if id(step) in written_over:
                call = over(step, xp, call)
            if not self.runs or self.runs[-1].fixed is not fixed:
                self.runs.append(Run(fixed))
            self.runs[-1].steps.append((step, call))
        self._close()
        self._moves = {k: v for moves in in_place.values() for k, v in moves.items()}
        self._slots: dict[int, Slot] = {}  # of Values that graphs read, and of what they move
        if self._captures:
            captured = {id(v) for run in self.runs if run.fixed for v in run.inputs}
            self._slots = {id(v): slot_of(var) for var, v in program.reads if id(v) in captured}
        for at in self._moves.values():
            self._slots[at].moved = True
        roots = roots_of(program)
        self._returns_moved = any(roots.get(id(v)) in self._slots for v in program.outputs)
        self._graphs: dict[int, Graph] = {}  # by position of the run
        self._refused: list[int] = []  # positions of runs that CuPy cannot capture
        self._versions: Any = None  # of what the graphs have captured

    def __call__(self, arrays: list[Any], release: Callable[[], None] | None = None) -> list[Any]:
        """As of a `Replay`: run on bare arrays of the program's inputs."""
        (results,) = self.several([arrays])
        if release:
            release()
        return results

    @property
    def repeats(self) -> bool:
        """Whether several steps can be one graph, which returns nothing that the next one moves."""
        whole = len(self.runs) == 1 and self.runs[0].fixed
        return self._captures and whole and not self._returns_moved

    def several(self, batches: list[list[Any]]) -> list[list[Any]]:
        """Several calls, one after the other; more than one only if the program `repeats`.

        Args:
            batches: the arrays of each; they are emptied.
        """
        program = self.program
        like = next(iter([*batches[0], *(v._data for v, _ in program.reads)]), np.zeros(()))
        with _LOCK, formulas_on(like):  # graphs have memory of their own, for one call at a time
            self._prepare(len(batches))
            before = {id(v): variable._data for variable, v in program.reads}
            before |= {at: slot.own for at, slot in self._slots.items()}
            knowns = [before | dict(zip(map(id, program.inputs), a, strict=True)) for a in batches]
            for arrays in batches:
                arrays.clear()
            lent = set(self._slots)  # what others write to in the next call
            for k, run in enumerate(self.runs):
                for known, made in zip(knowns, self._made(k, run, knowns), strict=True):
                    known.update(zip(map(id, run.outputs), made, strict=True))
                    known |= {made: self._slots[at].own for made, at in self._moves.items()}
                if self._captures:
                    lent.update(id(v) for v in run.outputs if run.fixed or v.view)
            kept = [_Kept(known, lent) for known in knowns]
            results = [[of(v) for v in program.outputs] for of in kept]
            for variable, v in program.writes:
                if id(v) in self._moves:
                    self._slots[self._moves[id(v)]].show()
                else:
                    variable._data = kept[-1](v)
            self._part_refused()
        return results

    def _close(self) -> None:
        program = self.program
        wanted = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
        for run in reversed(self.runs):
            run.close(wanted)
            wanted.update(map(id, run.inputs))

    def _part_refused(self) -> None:
        """Halve runs that cannot be captured, until a step is alone that cannot be."""
        for k in reversed(self._refused):
            steps = self.runs[k].steps
            half = len(steps) // 2
            self.runs[k : k + 1] = [Run(half > 0) for _ in range(min(len(steps), 2))]
            self.runs[k].steps = steps[:half] or steps
            if half:
                self.runs[k + 1].steps = steps[half:]
        if self._refused:
            self._refused.clear()
            self._graphs.clear()
            self._close()

    def _launch(self, step: Step) -> tuple[Callable[..., Any], bool]:
        """As `call_of`, of an effect that kernels do."""
        n = len(step.args) - len(step.variables)
        launched: Any = step.launched

        def call(*arrays: Any) -> list[Any]:
            made = launched.launch(list(arrays[:n]), list(arrays[n:]), self._live[id(step)])
            return [*made, *arrays[n:]]

        return call, True

    def _prepare(self, steps: int) -> None:
        """Put values and numbers where graphs read them; forget graphs that read others.

        Raises:
            OtherwiseError: a Variable has another shape: this is not its program. Nothing has run.
        """
        check_shapes(self._loose)
        for slot in self._slots.values():
            slot.fill()
        numbers = [[launched.numbers() for _, launched in self._effects] for _ in range(steps)]
        flat = [a for of_step in numbers for of_effect in of_step for a in of_effect]
        launched = [effect for _, effect in self._effects]
        versions = [steps, *(x.version for x in (*self._slots.values(), *launched))]
        if versions != self._versions:
            self._versions = versions
            self._graphs.clear()
            self._numbers = Numbers(self._xp, flat)
            live = iter(self._numbers.live)
            self._lives = [
                {id(step): [next(live) for _ in some]
                 for (step, _), some in zip(self._effects, of_step, strict=True)}
                for of_step in numbers
            ]  # fmt: skip
        if flat:
            self._numbers(flat)

    def _made(self, k: int, run: Run, knowns: list[dict[int, Any]]) -> list[list[Any]]:
        """The results of a run in each step: of a CUDA graph, if CuPy can capture it."""
        if not (run.fixed and self._captures):
            return [run([known[id(v)] for v in run.inputs]) for known in knowns]
        free = [v for v in run.inputs if id(v) not in self._slots]
        arguments = [known[id(v)] for known in knowns for v in free]

        def launches(arrays: Sequence[Any]) -> list[Any]:
            each = iter(arrays)
            at = {value: slot.own for value, slot in self._slots.items()}
            made: list[Any] = []
            for i, live in enumerate(self._lives):
                if i:
                    at |= self._carried(at)
                self._live = live
                at |= {id(v): next(each) for v in free}
                results = run([at[id(v)] for v in run.inputs])
                at.update(zip(map(id, run.outputs), results, strict=True))
                # nothing but the slot may hold on to its array
                made += [
                    None if id(v) in self._moves else a
                    for v, a in zip(run.outputs, results, strict=True)
                ]
            return made

        if k not in self._graphs:
            self._graphs[k] = Graph(launches, arguments)
        try:
            made = self._graphs[k](arguments)
        except RefusedError:
            self._refused.append(k)
            made = launches(arguments)
        n = len(run.outputs)
        return [made[i * n : (i + 1) * n] for i in range(len(knowns))]

    def _carried(self, known: dict[int, Any]) -> dict[int, Any]:
        """Values of Variables at the start of the next step, from those of a step."""
        starts = {variable._id: id(v) for variable, v in self.program.reads}
        return {
            starts[variable._id]: given(v, known)
            for variable, v in self.program.writes
            if variable._id in starts and id(v) not in self._moves
        }


class _Kept:
    """Values for those who keep them: copies of what the next call writes to."""

    def __init__(self, known: dict[int, Any], lent: set[int]) -> None:
        self._known, self._lent = known, set(lent)

    def __call__(self, v: Value) -> Any:
        if id(v) in self._lent:
            self._lent.discard(id(v))
            self._known[id(v)] = self._known[id(v)].copy()
        return given(v, self._known)
