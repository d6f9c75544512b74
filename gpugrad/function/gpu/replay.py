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

from gpugrad.core.backend import NUMPY, Namespace
from gpugrad.core.devices import copied, formulas_on
from gpugrad.errors import reraise
from gpugrad.function.gpu.flow import Flow, flow_of
from gpugrad.function.gpu.in_place import moved_in_place
from gpugrad.function.gpu.runs import Run, call_of, given
from gpugrad.function.gpu.variables import Slot
from gpugrad.function.passes.effects import moving_last
from gpugrad.function.passes.fusing import FUSING
from gpugrad.function.passes.in_place import over, overwriting
from gpugrad.kernels.runtime.graphs import (
    Graph,
    RefusedError,
    Upload,
    allocate_like,
    order_after_graphs,
)
from gpugrad.kernels.runtime.launch import is_captured
from gpugrad.trace.program import OtherwiseError, Program, Step, check_shapes

__all__ = ["Launches"]

_LOCK = threading.RLock()  # graphs share the memory of Variables


class _Made:
    """Graphs and what goes to them, made for a number of steps and the arrays that slots have.

    Attributes:
        versions: of the slots, and that number; None if something is half made.
        graphs: by position of the run.
        puts: what puts numbers and arrays to where a graph reads them, and where the arrays go;
            with the versions of the effects.
        out: what copies results, if no graph does.
        places: on the device, where the graph is to copy them.
        fixed: for each step, arrays that stay where they are, by id of the Value.
        lives: for each step, numbers on the device, by id of the effect.
    """

    def __init__(self, n: int, versions: Any) -> None:
        self.versions = versions
        self.graphs: dict[int, Graph] = {}
        self.puts: dict[int, tuple[Upload, list[Any], list[int]]] = {}
        self.out: Upload | None = None
        self.places: Any = None
        self.fixed: list[dict[int, Any]] = [{} for _ in range(n)]
        self.lives: list[dict[int, list[Any]]] = [{} for _ in range(n)]

    def forget(self, k: int) -> None:
        """Have the graphs from that of run `k` on made anew, and what goes to them."""
        for made in (self.graphs, self.puts):
            for later in [at for at in made if at >= k]:
                del made[later]


class Launches:
    """A program made ready for a GPU: fused, and cut into what can be captured and what cannot.

    Args:
        program: after the passes.
        xp: the namespace of its arrays.
        passes: names in FUSING.
        in_place: whether a result may take the memory of what it is computed from, a Variable's
            new value that of the old one.

    Attributes:
        program: as it is launched.
        runs: its parts, in order.
        arena_bytes, buffered, xp: as of a `Replay`; memory comes from pools here.
    """

    arena_bytes, buffered = 0, frozenset[int]()

    def __init__(
        self, program: Program, xp: Namespace, passes: Collection[str] = tuple(FUSING),
        in_place: bool = True,
    ) -> None:  # fmt: skip
        for name in FUSING:
            program = FUSING[name](program) if name in passes else program
        self.program = program = moving_last(program)
        self._loose, self._arguments = program.loose(), [id(v) for v in program.inputs]
        self.xp, self._captures = xp, xp is not NUMPY
        # effects, by id
        self._in_place = moved_in_place(program) if self._captures and in_place else {}
        self._live: dict[int, list[Any]] = {}  # numbers on the device, by effect: of one step
        self._done: list[Step] = []  # effects that kernels of the run have done so far
        self.runs = self._cut(overwriting(program) if in_place else set())
        self._slots: dict[int, Slot] = {}  # of Variables that graphs read, by id of their Values
        self._flow = self._closed()
        self._made = _Made(0, None)
        self._refused: list[int] = []  # positions of runs that CuPy cannot capture
        self._device: Any = None

    def __call__(self, arrays: list[Any], release: Callable[[], None] | None = None) -> list[Any]:
        """As of a `Replay`: run on bare arrays of the program's inputs."""
        (results,) = self.several([arrays])
        if release:
            release()
        return results

    @property
    def repeats(self) -> bool:
        """Whether several steps can be one graph, which returns nothing that the next one moves."""
        return self._flow.whole and not self._flow.returns_moved

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
            self._made.versions = None
            if isinstance(error, MemoryError):
                inputs = {f"in{k}": v for k, v in enumerate(self.program.inputs)}
                reraise(error, "gg.function", inputs, {})
            raise

    def _several(self, batches: list[list[Any]]) -> list[list[Any]]:
        program, here = self.program, self._device or self._found_device(batches[0])
        with _LOCK, here:  # graphs have memory of their own, for one call at a time
            self._prepare(len(batches))
            flow, room = self._flow, self._room(len(batches))
            before = {id(v): variable._data for variable, v in flow.read}
            before |= {at: slot.own for at, slot in flow.seen}
            knowns = [before | dict(zip(self._arguments, a, strict=True)) for a in batches]
            for arrays in batches:
                arrays.clear()
            for k, run in enumerate(self.runs):
                try:
                    parts = self._results(k, run, knowns, room)
                except BaseException:
                    self._show(k)
                    raise
                for known, made in zip(knowns, parts, strict=True):
                    known.update(zip(run.names, made, strict=True))
                    if flow.seen_moves:
                        known |= {at: slot.own for at, slot in flow.seen_moves}
            self._keep(knowns, room)
            results = [[given(v, known) for v in program.outputs] for known in knowns]
            for variable, v, slot in flow.writes:
                if slot is None:
                    variable._data = given(v, knowns[-1])
                else:
                    slot.show()
            if self._refused:
                self._part_refused()
        return results

    def _found_device(self, arrays: list[Any]) -> Any:
        """The GPU of the program, which is that of every call."""
        read = [variable._data for variable, _ in self.program.reads]
        on_device = [a for a in (*arrays, *read) if type(a) is not np.ndarray]
        if not on_device:
            return formulas_on(np.zeros(()))
        self._device = formulas_on(on_device[0])
        return self._device

    def _cut(self, written_over: set[int]) -> list[Run]:
        """The steps in runs, each as long as can be."""
        runs: list[Run] = []
        for step in self.program.steps:
            in_place = id(step) in self._in_place
            call, fixed = self._launch(step) if in_place else call_of(step, self.xp)
            if id(step) in written_over:
                call = over(step, self.xp, call)
            if not runs or runs[-1].fixed is not fixed:
                runs.append(Run(fixed))
            runs[-1].steps.append((step, call))
        return runs

    def _closed(self) -> Flow:
        return flow_of(self.program, self.runs, self._in_place, self._slots, self._captures)

    def _part_refused(self) -> None:
        """Halve runs that cannot be captured, until a step is alone that cannot be."""
        for k in reversed(self._refused):
            steps = self.runs[k].steps
            half = len(steps) // 2
            self.runs[k : k + 1] = [Run(half > 0) for _ in range(min(len(steps), 2))]
            self.runs[k].steps = steps[:half] or steps
            if half:
                self.runs[k + 1].steps = steps[half:]
        self._refused.clear()
        self._made.versions = None
        self._flow = self._closed()

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
        for slot in self._flow.moves.values():
            slot.change()
        versions = n, [slot.version for slot in self._slots.values()]
        if versions != self._made.versions:
            self._made = _Made(n, versions)
        order_after_graphs()

    def _results(
        self, k: int, run: Run, knowns: list[dict[int, Any]], room: list[Any]
    ) -> list[list[Any]]:
        """The results of a run in each step: of a CUDA graph, if CuPy can capture it."""
        effects = run.launched * len(knowns)
        numbers: list[list[Any]] = []
        self._done = []
        try:
            for launched in effects:
                numbers.append(launched.numbers())
            if room and self._flow.whole:
                numbers.append([np.array([a.data.ptr for a in room], np.uint64)])
            self._put(k, run, knowns, numbers)
            call = self._graph if run.fixed and self._captures else self._one_by_one
            return call(k, run, knowns)
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
        made, versions = self._made, [launched.version for launched in run.launched]
        if k not in made.puts or made.puts[k][2] != versions:
            made.forget(k)
            made.puts[k] = put, places, _ = Upload(flat, arrays), allocate_like(arrays), versions
            of_effect, live, to = iter(numbers), iter(put.live), iter(places)
            for lives, fixed in zip(made.lives, made.fixed, strict=True):
                lives |= {id(s): [next(live) for _ in next(of_effect)] for s in run.effects}
                fixed |= {at: next(to) for at in run.links}
            made.places = next(live, None)
        put, places, _ = made.puts[k]
        put(flat, arrays, places)

    def _one_by_one(self, k: int, run: Run, knowns: list[dict[int, Any]]) -> list[list[Any]]:
        """The results of a run, step by step."""
        made = []
        for i, known in enumerate(knowns):
            self._live = self._made.lives[i] if self._captures else {}
            arrays = [known[at] for at in run.reads]
            if run.remembers:
                arrays = [copied(a) if at in self._flow.lent else a
                          for at, a in zip(run.reads, arrays, strict=True)]  # fmt: skip
            made.append(run(arrays))
        return made

    def _graph(self, k: int, run: Run, knowns: list[dict[int, Any]]) -> list[list[Any]]:
        """The results of a run by its CUDA graph."""
        graphs, each = self._made.graphs, self._made.fixed
        if run.passed:
            for fixed in each:  # the graph has no more memory than it takes
                fixed |= dict.fromkeys(run.passed)
        if k not in graphs:
            graphs[k] = Graph(functools.partial(self._launches, run))
        try:
            made = graphs[k]()
        except RefusedError:
            self._refused.append(k)
            made = self._launches(run)
        n = len(run.outputs)
        parted = [made[i * n : (i + 1) * n] for i in range(len(knowns))]
        if run.passed:
            for fixed, some in zip(each, parted, strict=True):
                found = dict(zip(run.names, some, strict=True))
                fixed.update({name: found[name] for name in run.passed})
        return parted

    def _launches(self, run: Run) -> list[Any]:
        """What a graph holds: a run of each step, on memory that stays where it is."""
        flow, own = self._flow, self._made
        at = {value: slot.own for value, slot in self._slots.items()}
        moved = {value: slot.own for value, slot in flow.moves.items()}
        copies = flow.copies(len(own.lives)) if flow.whole else []
        made: list[Any] = []
        kept: list[Any] = []
        for i, (live, fixed) in enumerate(zip(own.lives, own.fixed, strict=True)):
            if i:
                at |= {start: given(v, at) for start, v in flow.carried}
            self._live = live
            at |= fixed
            at |= moved
            results = run([at[value] for value in run.reads])
            at.update(zip(run.names, results, strict=True))
            # nothing but the slot may hold on to its array
            made += [
                None if value in moved else a for value, a in zip(run.names, results, strict=True)
            ]
            kept += [at[value] for device, _ in copies[i : i + 1] for value in device]
        if kept:
            Upload((), kept, own.places)((), kept, kept)
        return made

    def _show(self, k: int) -> None:
        """Give Variables what optimizers have made of them, as run `k` has failed."""
        done = [step for run in self.runs[:k] for step, _ in run.steps] + self._done
        made = {id(v) for step in done for v in step.outs}
        moves = self._flow.moves
        for slot in {moves[v] for v in made & moves.keys()}:
            slot.show()

    def _room(self, n: int) -> list[Any]:
        """Memory for what `n` steps copy, before anything that could not be undone."""
        new = self.xp.lib.ndarray
        room = [new(*kind) for device, _ in self._flow.copies(n) for kind in device.values()]
        if room and self._made.out is None and not self._flow.whole:
            self._made.out = Upload((), room)
        return room

    def _keep(self, knowns: list[dict[int, Any]], room: list[Any]) -> None:
        """Copy what the next call writes to for those who keep it: results, and Variables."""
        pairs = list(zip(knowns, self._flow.copies(len(knowns)), strict=True))
        if self._made.out is not None:
            arrays = [known[at] for known, (device, _) in pairs for at in device]
            self._made.out((), arrays, room)
        left = iter(room)
        for known, (device, host) in pairs:
            known.update(zip(device, left, strict=False))
            for at in host:
                known[at] = known[at].copy()
