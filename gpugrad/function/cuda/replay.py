"""Replay on a GPU: what can be captured runs as CUDA graphs, the rest step by step between them.

A graph is a fixed list of launches on fixed memory. Arguments are copied to where it reads them;
Variables are there already, and optimizers move them there. What differs from run to run, such as
a learning rate, a step number or where a random stream is, comes as numbers on the device. What a
program returns is copied out: what an earlier call returned never changes.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from gpugrad.backend import NUMPY, Namespace
from gpugrad.errors import reraise
from gpugrad.function.cuda.in_place import moved_in_place, moving_last
from gpugrad.function.cuda.runs import Run, call_of, given
from gpugrad.function.cuda.slots import Slot, slot_of
from gpugrad.function.fusing import FUSING
from gpugrad.function.fusing.overwriting import over, overwriting
from gpugrad.function.memory import roots_of
from gpugrad.kernels.graphs import Graph, Put, RefusedError, beside, in_order
from gpugrad.kernels.launch import is_captured
from gpugrad.placement import copied, formulas_on
from gpugrad.program import OtherwiseError, Program, Step, Value, check_shapes
from gpugrad.variable import Variable

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
        self.program = program = moving_last(program)
        self.runs: list[Run] = []
        self._loose = program.loose()
        self._xp, self._captures = xp, xp is not NUMPY
        in_place = moved_in_place(program) if self._captures else {}
        self._live: dict[int, list[Any]] = {}  # numbers on the device, by effect: of one step
        self._done: list[Step] = []  # effects that kernels of the run have done so far
        written_over = overwriting(program)
        for step in program.steps:
            call, fixed = self._launch(step) if id(step) in in_place else call_of(step, xp)
            if id(step) in written_over:
                call = over(step, xp, call)
            if not self.runs or self.runs[-1].fixed is not fixed:
                self.runs.append(Run(fixed))
            self.runs[-1].steps.append((step, call))
        self._in_place = frozenset(in_place)  # ids of effects that are launched
        self._moves = {k: v for moves in in_place.values() for k, v in moves.items()}
        self._starts = {variable._id: id(v) for variable, v in program.reads}
        self._slots: dict[int, Slot] = {}  # of Values that graphs read, and of what they move
        self._close()
        self._returns_moved = self._are_returned()
        self._graphs: dict[int, Graph] = {}  # by position of the run
        self._puts: dict[int, tuple[Put, list[Any], list[int]]] = {}  # what goes to them, where
        self._out: Put | None = None  # what copies results
        self._refused: list[int] = []  # positions of runs that CuPy cannot capture
        self._versions: Any = None  # of the slots that the graphs have captured

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
        try:
            return self._several(batches)
        except OtherwiseError:
            self._refused.clear()
            raise
        except BaseException as error:  # what is half made is made anew
            self._refused.clear()
            self._versions = None
            if isinstance(error, MemoryError):
                inputs = {f"in{k}": v for k, v in enumerate(self.program.inputs)}
                reraise(error, "gg.function", inputs, {})
            raise

    def _several(self, batches: list[list[Any]]) -> list[list[Any]]:
        program = self.program
        read = (variable._data for variable, _ in program.reads)
        on_device = (a for a in (*batches[0], *read) if type(a) is not np.ndarray)
        here = formulas_on(next(on_device, np.zeros(())))
        del read, on_device  # which hold on to a Variable's array
        with _LOCK, here:  # graphs have memory of their own, for one call at a time
            self._prepare(len(batches))
            room = self._room(len(batches))
            before = {id(v): variable._data for variable, v in self._read}
            before |= {at: self._slots[at].own for at in self._seen}
            knowns = [before | dict(zip(self._arguments, a, strict=True)) for a in batches]
            for arrays in batches:
                arrays.clear()
            for k, run in enumerate(self.runs):
                try:
                    parts = self._made(k, run, knowns)
                except BaseException:
                    self._show(k)
                    raise
                for known, made in zip(knowns, parts, strict=True):
                    known.update(zip(run.names, made, strict=True))
                    if self._moved:
                        known |= {at: self._slots[self._moves[at]].own for at in self._moved}
            self._keep(knowns, room)
            results = [[given(v, known) for v in program.outputs] for known in knowns]
            for variable, v in program.writes:
                if self._is_own(variable, v):
                    self._slots[self._moves[id(v)]].show()
                else:
                    variable._data = given(v, knowns[-1])
            self._part_refused()
        return results

    def _captured(self, run: Run) -> bool:
        return run.fixed and self._captures

    def _is_own(self, variable: Variable, v: Value) -> bool:
        """Whether a Variable ends with what was made of it where it lies, not of another one."""
        return id(v) in self._moves and self._moves[id(v)] == self._starts.get(variable._id)

    def _are_returned(self) -> bool:
        """Whether somebody gets what the next step writes to."""
        program, roots = self.program, roots_of(self.program)
        starts = {self._starts[var._id] for var, _ in program.writes if var._id in self._starts}
        others = [v for var, v in program.writes if not self._is_own(var, v)]
        kept = [id(v) for v in (*program.outputs, *others)]
        moved = any(roots.get(id(v)) in self._slots for v in program.outputs)
        return moved or any(at in starts or at in self._moves for at in kept)

    def _close(self) -> None:
        """Find what each run reads and makes, and what of it is looked at between graphs."""
        program = self.program
        writes = [v for variable, v in program.writes if not self._is_own(variable, v)]
        wanted = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
        for run in reversed(self.runs):
            run.close(wanted)
            wanted.update(run.reads)
        for run in self.runs:
            run.effects = [(s, s.launched) for s, _ in run.steps if id(s) in self._in_place]
        graphs = [run for run in self.runs if self._captured(run)]
        inside = {at for run in graphs for at in run.reads}
        outside = {at for run in self.runs if run not in graphs for at in run.reads}
        outside |= {id(v) for v in (*program.outputs, *writes)}
        for variable, v in program.reads:
            if id(v) in inside and id(v) not in self._slots:
                self._slots[id(v)] = slot_of(variable)
        for at in self._moves.values():
            self._slots[at].moved = True
        self._read = [(variable, v) for variable, v in program.reads if id(v) not in self._slots]
        self._seen, self._moved = ([at for at in some if at in outside]
                                   for some in (self._slots, self._moves))  # fmt: skip
        self._arguments = [id(v) for v in program.inputs]
        kept = {*self._slots, *self._moves}  # what graphs find where it was
        for run in graphs:
            run.links = [at for at in run.reads if at not in kept]
            kept.update(run.links + run.names)
            run.passed = [at for at in run.names if any(at in r.reads for r in graphs)]
        lent = {*self._slots, *self._moves}  # what others write to in the next call
        if self._captures:
            lent.update(id(v) for run in self.runs for v in run.outputs if run.fixed or v.view)
        self._graphs_own = lent
        outputs = {id(v): v for v in program.outputs if id(v) in lent}
        last = outputs | {id(v): v for v in writes if id(v) in lent}
        self._lent = [
            ({at: (v.shape, v.dtype) for at, v in some.items() if not v.host},
             [at for at, v in some.items() if v.host])  # or an object that a control op keeps
            for some in (outputs, last)
        ]  # fmt: skip

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
            self._versions = None
            self._close()

    def _launch(self, step: Step) -> tuple[Callable[..., Any], bool]:
        """As `call_of`, of an effect that kernels do."""
        n = len(step.args) - len(step.variables)
        launched: Any = step.launched

        def call(*arrays: Any) -> list[Any]:
            live = self._live[id(step)]
            made = launched.launch(list(arrays[:n]), list(arrays[n:]), live)
            if not is_captured(live[0]):
                self._done.append(step)
            return [*made, *arrays[n:]]

        return call, True

    def _prepare(self, n: int) -> None:
        """Put values where the graphs of `n` steps read them; forget graphs that read others.

        Raises:
            OtherwiseError: a Variable has another shape: this is not its program. Nothing has run.
        """
        check_shapes(self._loose)
        if not self._captures:
            return
        for slot in self._slots.values():
            slot.fill()
        versions = n, [slot.version for slot in self._slots.values()]
        if versions != self._versions:
            self._forget(0)
            self._fixed: list[dict[int, Any]] = [{} for _ in range(n)]  # what graphs read, by step
            self._lives: list[dict[int, list[Any]]] = [{} for _ in range(n)]
            self._out = None
            self._versions = versions
        in_order()

    def _forget(self, k: int) -> None:
        """Have the graphs from that of run `k` on made anew, and what goes to them."""
        for made in (self._graphs, self._puts):
            for later in range(k, len(self.runs)):
                made.pop(later, None)

    def _made(self, k: int, run: Run, knowns: list[dict[int, Any]]) -> list[list[Any]]:
        """The results of a run in each step: of a CUDA graph, if CuPy can capture it."""
        effects: list[Any] = [launched for _, launched in run.effects] * len(knowns)
        numbers: list[list[Any]] = []
        self._done = []
        try:
            for launched in effects:
                numbers.append(launched.numbers())
            self._put(k, run, knowns, numbers)
            return (self._graph if self._captured(run) else self._one_by_one)(k, run, knowns)
        except BaseException:  # what has moved a Variable counts, and what came before it
            moving = max((n for n, s in enumerate(self._done, 1) if s.variables), default=0)
            for launched in reversed(effects[moving : len(numbers)]):
                launched.uncount()
            raise

    def _put(
        self, k: int, run: Run, knowns: list[dict[int, Any]], numbers: list[list[Any]]
    ) -> None:
        """Put numbers, and what no graph has made, to where the launches of a run read them."""
        flat = [a for some in numbers for a in some]
        arrays = [known[at] for known in knowns for at in run.links]
        if not flat and not arrays:
            return
        versions = [launched.version for _, launched in run.effects]
        if k not in self._puts or self._puts[k][2] != versions:
            self._forget(k)
            self._puts[k] = put, places, _ = Put(flat, arrays), beside(arrays), versions
            of_effect, live, to = iter(numbers), iter(put.live), iter(places)
            for lives, fixed in zip(self._lives, self._fixed, strict=True):
                lives |= {id(s): [next(live) for _ in next(of_effect)] for s, _ in run.effects}
                fixed |= {at: next(to) for at in run.links}
        put, places, _ = self._puts[k]
        put(flat, arrays, places)

    def _one_by_one(self, k: int, run: Run, knowns: list[dict[int, Any]]) -> list[list[Any]]:
        """The results of a run, step by step."""
        made = []
        for i, known in enumerate(knowns):
            self._live = self._lives[i] if self._captures else {}
            arrays = [known[at] for at in run.reads]
            if run.remembers:
                arrays = [copied(a) if at in self._graphs_own else a
                          for at, a in zip(run.reads, arrays, strict=True)]  # fmt: skip
            made.append(run(arrays))
        return made

    def _graph(self, k: int, run: Run, knowns: list[dict[int, Any]]) -> list[list[Any]]:
        """The results of a run by its CUDA graph."""
        for fixed in self._fixed:  # the graph has no more memory than it takes
            fixed |= dict.fromkeys(run.passed)
        if k not in self._graphs:
            self._graphs[k] = Graph(functools.partial(self._launches, run))
        try:
            made = self._graphs[k]()
        except RefusedError:
            self._refused.append(k)
            made = self._launches(run)
        n = len(run.outputs)
        parted = [made[i * n : (i + 1) * n] for i in range(len(knowns))]
        if run.passed:
            for fixed, some in zip(self._fixed, parted, strict=True):
                found = dict(zip(run.names, some, strict=True))
                fixed.update({name: found[name] for name in run.passed})
        return parted

    def _launches(self, run: Run) -> list[Any]:
        """What a graph holds: a run of each step, on memory that stays where it is."""
        at = {value: slot.own for value, slot in self._slots.items()}
        moved = {value: at[origin] for value, origin in self._moves.items()}
        made: list[Any] = []
        for i, (live, fixed) in enumerate(zip(self._lives, self._fixed, strict=True)):
            if i:
                at |= self._carried(at)
            self._live = live
            at |= fixed
            at |= moved
            results = run([at[value] for value in run.reads])
            at.update(zip(run.names, results, strict=True))
            # nothing but the slot may hold on to its array
            made += [
                None if value in self._moves else a
                for value, a in zip(run.names, results, strict=True)
            ]
        return made

    def _carried(self, known: dict[int, Any]) -> dict[int, Any]:
        """Values of Variables at the start of the next step, from those of a step."""
        return {
            self._starts[variable._id]: given(v, known)
            for variable, v in self.program.writes
            if variable._id in self._starts and not self._is_own(variable, v)
        }

    def _show(self, k: int) -> None:
        """Give Variables what optimizers have made of them, as run `k` has failed."""
        done = [step for run in self.runs[:k] for step, _ in run.steps] + self._done
        made = {id(v) for step in done for v in step.outs}
        for at in {self._moves[v] for v in made & self._moves.keys()}:
            self._slots[at].show()

    def _room(self, n: int) -> list[list[Any]]:
        """Memory for what `_keep` copies of `n` steps, before anything that could not be undone."""
        new, (each, _), (last, _) = self._xp.lib.ndarray, *self._lent
        room = [[new(*kind) for kind in some.values()] for some in (*[each] * (n - 1), last)]
        if self._out is None and any(room):
            self._out = Put((), [copy for copies in room for copy in copies])
        return room

    def _keep(self, knowns: list[dict[int, Any]], room: list[list[Any]]) -> None:
        """Copy what the next call writes to for those who keep it: results, and Variables."""
        each, last = self._lent
        arrays: list[Any] = []
        for known, (device, host), copies in zip(
            knowns, (*[each] * (len(knowns) - 1), last), room, strict=True
        ):
            arrays += [known[at] for at in device]
            known.update(zip(device, copies, strict=True))
            for at in host:
                known[at] = known[at].copy()
        if self._out is not None:
            self._out((), arrays, [copy for copies in room for copy in copies])
