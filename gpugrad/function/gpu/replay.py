"""Replay on a GPU: capturable steps run as CUDA graphs, the others one by one between them.

A graph is a fixed list of launches on fixed memory. Arguments are copied to where it reads them;
Variables are there already, and optimizers update them in place. Numbers that differ from run to
run, such as a learning rate, a step number or the state of a random stream, are passed in device
memory. Results are copied out, or written there by the kernel that computes them, so results of
earlier calls never change.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, Reading
from gpugrad.core.devices import copy_array, formulas_on
from gpugrad.core.replaceable import SignalsDeferred, read_together
from gpugrad.core.scopes import updating
from gpugrad.errors import reraise
from gpugrad.function.gpu.flow import Flow, flow_of, moved_in_place
from gpugrad.function.gpu.rounded import Copies, keep_copies
from gpugrad.function.gpu.runs import Run, argument, call_of
from gpugrad.function.gpu.steady import Steady
from gpugrad.function.gpu.variables import VariableMemory, memory_of, take_turn
from gpugrad.function.passes import pass_names, run_passes
from gpugrad.function.passes.effects import move_updates_last
from gpugrad.function.passes.in_place import over, overwriting
from gpugrad.function.passes.rewrite import FusedStep
from gpugrad.kernels.runtime.graphs import (
    CudaGraph,
    RefusedError,
    Upload,
    allocate_like,
    order_after_graphs,
)
from gpugrad.kernels.runtime.launch import is_captured
from gpugrad.trace.program import NotReplayable, Program, Step, check_shapes


class _Captures:
    """Captured graphs and their inputs, for a number of steps and the Variables' arrays.

    Attributes:
        versions: the number of steps, and the sum of the memories' versions; None if a capture was
            interrupted.
        graphs: the graphs, by position of the run.
        puts: the `Upload` that copies numbers and arrays to where a graph reads them, where the
            arrays go, and the versions of the effects; by position of the run.
        out: the `Upload` that copies results, if no graph does.
        places: on the device, the addresses to which the graph copies or writes results.
        fixed: for each step, arrays that keep their address, by id of the Value.
        lives: for each step, numbers on the device by id of the effect, and parts of `places` by id
            of the Value.
    """

    def __init__(self, n: int, versions: Any) -> None:
        self.versions = versions
        self.graphs: dict[int, CudaGraph] = {}
        self.puts: dict[int, tuple[Upload, list[Any], list[int]]] = {}
        self.out: Upload | None = None
        self.places: Any = None
        self.fixed: list[dict[int, Any]] = [{} for _ in range(n)]
        self.lives: list[dict[int, Any]] = [{} for _ in range(n)]

    def forget(self, k: int) -> None:
        """Drop the graphs of run `k` and of later runs, with their inputs."""
        for by_run in (self.graphs, self.puts):
            for later in [at for at in by_run if at >= k]:
                del by_run[later]


class Launches:
    """A program prepared for a GPU: fused, and cut into runs, each capturable or not.

    Args:
        program: the program after the passes.
        xp: the namespace of its arrays.
        passes: the names of the passes to run.
        in_place: whether a result may overwrite what it is computed from, and a Variable's new
            value its old one.

    Attributes:
        program: the program that is launched.
        runs: its parts, in order.
        arena_bytes, buffered, xp: see `CpuReplay`; here memory comes from pools.
    """

    arena_bytes, buffered = 0, frozenset[int]()

    def __init__(
        self,
        program: Program,
        xp: Reading,
        passes: Collection[str] = pass_names("gpu"),
        in_place: bool = True,
    ) -> None:
        program = move_updates_last(run_passes(program, "gpu", passes))
        self.xp, self._captures_graphs = xp, xp is not NUMPY
        # effects, by id
        self._in_place = moved_in_place(program) if self._captures_graphs and in_place else {}
        copies: list[Any] = []
        if "casts" in passes:
            program, copies = keep_copies(program, self._in_place)
            self._in_place = moved_in_place(program) if copies else self._in_place
        self.program = program
        self._loose, self._arguments = program.loose(), [id(v) for v in program.inputs]
        self._read = [variable for variable, _ in program.reads]
        self._live: dict[int, Any] = {}  # one of `_Captures.lives`
        self._placed = 0  # how many results kernels of the run have written to `places`
        self._done: list[Step] = []  # effects that kernels of the run have done so far
        self.runs = self._cut(overwriting(program) if in_place else set())
        self._memories: dict[int, VariableMemory] = {}  # by id of the Values
        self._flow = self._closed()
        self._copies = Copies([(memory_of(v), memory_of(c)) for v, c in copies]) if copies else None
        self._writer = object()  # for `take_turn`
        self._captured = _Captures(0, None)
        self._refused: list[int] = []  # positions of runs that CuPy cannot capture
        self._steady: Steady | None = None  # as long as nothing but the arguments changes
        self._device: Any = None

    def __call__(self, arrays: list[Any], release: Callable[[], None] | None = None) -> list[Any]:
        """Run on plain arrays of the program's inputs, as `CpuReplay` does."""
        (results,) = self.several([arrays])
        if release:
            release()
        return results

    @property
    def repeats(self) -> bool:
        """Whether several steps can be one graph: no step overwrites results of earlier ones."""
        return self._flow.whole and not self._flow.returns_moved

    def several(self, batches: list[list[Any]]) -> list[list[Any]]:
        """Run several calls one after the other; more than one only if the program `repeats`.

        Args:
            batches: the arrays of each call; the lists are emptied.
        """
        try:
            return self._several(batches)
        except NotReplayable:
            self._refused.clear()
            raise
        except BaseException as error:  # an interrupted capture starts again
            self._refused.clear()
            self._captured.versions = None
            if isinstance(error, MemoryError):
                inputs = {f"in{k}": v for k, v in enumerate(self.program.inputs)}
                reraise(error, "gg.function", inputs, {})
            raise

    def _several(self, batches: list[list[Any]]) -> list[list[Any]]:
        program, here = self.program, self._device or self._found_device(batches[0])
        with updating, here:  # the memory of graphs is for one call at a time
            steady, self._steady = self._steady, None  # until it has succeeded
            if steady is not None and len(batches) == 1 and steady.holds and not self._outdated():
                again = steady.run(batches[0])
                if again is not None:
                    self._steady = steady
                    return [again]
            publishes = self._prepare(len(batches))
            flow, room = self._flow, self._room(len(batches))
            knowns = [dict(zip(self._arguments, a, strict=True)) for a in batches]
            if flow.read or flow.start_reads:
                before = {id(v): variable._data for variable, v in flow.read}
                before |= {at: memory.own for at, memory in flow.start_reads}
                knowns = [before | known for known in knowns]
            for arrays in batches:
                arrays.clear()
            for k, run in enumerate(self.runs):
                try:
                    parts = self._results(k, run, knowns, room)
                except BaseException:
                    self._publish(k)
                    raise
                for known, arrays in zip(knowns, parts, strict=True):
                    known.update(zip(run.names, arrays, strict=True))
                    if flow.in_place_reads:
                        known |= {at: memory.own for at, memory in flow.in_place_reads}
            self._keep(knowns, room)
            results = [[argument(v, known) for v in program.outputs] for known in knowns]
            if publishes:
                with SignalsDeferred():
                    for variable, v, memory in flow.writes:
                        if memory is None:
                            variable._data = argument(v, knowns[-1])
                        else:
                            memory.publish()
            if self._refused:
                self._split_refused()
            elif not publishes and len(batches) == 1:
                self._steady = self._settled()
        return results

    def _outdated(self) -> bool:
        """Whether other graphs have written to Variables since the last call."""
        others = bool(self._flow.changed) and take_turn(self._writer, self._flow.changed)
        if others and self._copies:
            self._copies.stale = True
        return others

    def _settled(self) -> Steady | None:
        """The shortest replay after a call without surprises; None if the program has none."""
        flow, captured = self._flow, self._captured
        graph = captured.graphs.get(0)
        device, host = flow.copy_last
        elsewhere = (
            flow.read or flow.start_reads or flow.in_place_reads or host or not flow.only_memories
        )
        if graph is None or not (flow.whole and graph.is_captured) or elsewhere:
            return None
        places = {at: k for k, at in enumerate(device)}
        if any(id(v) not in places for v in self.program.outputs):
            return None
        run, put = self.runs[0], captured.puts.get(0)
        sent = [self._arguments.index(at) for at in run.links]
        return Steady(
            [*self._memories.values()],
            run.launched,
            sent,
            [*device.values()],
            [places[id(v)] for v in self.program.outputs],
            put[0] if put else None,
            graph,
            self.xp.lib.ndarray,
        )

    def _found_device(self, arrays: list[Any]) -> Any:
        """The GPU of the program, the same in every call."""
        on_device = [a for a in (*arrays, *read_together(self._read)) if type(a) is not np.ndarray]
        if not on_device:
            return formulas_on(np.zeros(()))
        self._device = formulas_on(on_device[0])
        return self._device

    def _cut(self, written_over: set[int]) -> list[Run]:
        """Cut the steps into runs, each as long as possible."""
        cut: list[tuple[Step, Callable[..., Any], bool]] = []
        for step in self.program.steps:
            in_place = id(step) in self._in_place
            call, fixed = self._launch(step) if in_place else call_of(step, self.xp)
            if isinstance(step, FusedStep) and step.placed is not None:
                call = self._placing(step, call, id(step) in written_over)
            elif id(step) in written_over:
                call = over(step, self.xp, call)
            cut.append((step, call, fixed))
        whole = all(fixed for _, _, fixed in cut)
        runs: list[Run] = []
        for step, call, fixed in cut:
            # a graph must join the streams that it forks
            fixed = fixed and (whole or not getattr(step.call, "forks", False))
            if not runs or runs[-1].fixed is not fixed:
                runs.append(Run(fixed))
            runs[-1].steps.append((step, call))
        return runs

    def _closed(self) -> Flow:
        return flow_of(
            self.program, self.runs, self._in_place, self._memories, self._captures_graphs
        )

    def _split_refused(self) -> None:
        """Halve the runs that cannot be captured, until the offending step is alone."""
        for k in reversed(self._refused):
            steps = self.runs[k].steps
            half = len(steps) // 2
            self.runs[k : k + 1] = [Run(half > 0) for _ in range(min(len(steps), 2))]
            self.runs[k].steps = steps[:half] or steps
            if half:
                self.runs[k + 1].steps = steps[half:]
        self._refused.clear()
        self._captured.versions = None
        self._flow = self._closed()

    def _launch(self, step: Step) -> tuple[Callable[..., Any], bool]:
        """Like `call_of`, for an effect that kernels perform."""
        n = len(step.args) - len(step.variables)
        launched: Any = step.launched

        def call(*arrays: Any) -> list[Any]:
            live = self._live.get(id(step), [])  # an effect may have no numbers
            results = launched.launch(list(arrays[:n]), list(arrays[n:]), live)
            if not is_captured((*live, *arrays, *results)[0]):
                self._done.append(step)
            return [*results, *arrays[n:]]

        return call, True

    def _placing(
        self, step: FusedStep, fallback: Callable[..., Any], overwrites: bool
    ) -> Callable[..., Any]:
        """Executes a step whose kernel writes a result to where the caller's array is."""
        assert step.placed is not None
        placed = id(step.outs[step.placed])
        run: Callable[..., Any] = functools.partial(step.run, self.xp, over=overwrites)

        def call(*arrays: Any) -> Any:
            place = self._live.get(placed)
            results = run(*arrays, place=place)
            if results is NotImplemented:
                return fallback(*arrays)
            self._placed += place is not None
            return results

        return call

    def _prepare(self, n: int) -> bool:
        """Put values where the graphs of `n` steps read them; drop graphs that read elsewhere.

        Returns whether Variables need their new arrays when the graphs have run.
        """
        if self._loose:
            check_shapes(self._loose, read_together(self._read))
        if not self._captures_graphs:
            return True
        order_after_graphs()  # before memory that they read is written
        elsewhere, version = False, 0  # of all memories: their versions only rise
        for memory in self._memories.values():
            elsewhere |= memory.load()
            version += memory.version
        changed = self._flow.changed
        if elsewhere:
            for memory in changed:
                memory.invalidate()
        if (n, version) != self._captured.versions:
            self._captured = _Captures(n, (n, version))
        self._outdated()
        if self._copies and (elsewhere or self._copies.stale):
            self._copies.refresh()
        return elsewhere or not self._flow.only_memories

    def _results(
        self, k: int, run: Run, knowns: list[dict[int, Any]], room: list[Any]
    ) -> list[list[Any]]:
        """The results of a run in each step, by a CUDA graph if CuPy can capture it."""
        effects = run.launched * len(knowns)
        numbers: list[list[Any]] = []
        self._done = []
        try:
            for launched in effects:
                numbers.append(launched.numbers())
            if room and self._flow.whole:
                numbers.append([np.array([a.data.ptr for a in room], np.uint64)])
            self._put(k, run, knowns, numbers)
            call = self._graph if run.fixed and self._captures_graphs else self._one_by_one
            return call(k, run, knowns)
        except BaseException:  # effects up to the last that updated a Variable count
            moving = max((n for n, s in enumerate(self._done, 1) if s.variables), default=0)
            for launched in reversed(effects[moving : len(numbers)]):
                launched.uncount()
            raise

    def _put(
        self, k: int, run: Run, knowns: list[dict[int, Any]], numbers: list[list[Any]]
    ) -> None:
        """Copy numbers, and arrays that no graph produced, to where a run reads them."""
        flat = [a for some in numbers for a in some]
        arrays = [known[at] for known in knowns for at in run.links]
        if not flat and not arrays:
            return
        captures, versions = self._captured, [launched.version for launched in run.launched]
        if k not in captures.puts or captures.puts[k][2] != versions:
            captures.forget(k)
            captures.puts[k] = put, places, _ = (
                Upload(flat, arrays),
                allocate_like(arrays),
                versions,
            )
            of_effect, live, to = iter(numbers), iter(put.live), iter(places)
            for lives, fixed in zip(captures.lives, captures.fixed, strict=True):
                lives |= {id(s): [next(live) for _ in next(of_effect)] for s in run.effects}
                fixed |= {at: next(to) for at in run.links}
            captures.places = next(live, None)
            if captures.places is not None:
                copied = zip(captures.lives, self._flow.copies(len(knowns)), strict=True)
                of = [(lives, at) for lives, (device, _) in copied for at in device]
                for i, (lives, at) in enumerate(of):
                    lives[at] = captures.places[i : i + 1]
        put, places, _ = captures.puts[k]
        put(flat, arrays, places)

    def _one_by_one(self, k: int, run: Run, knowns: list[dict[int, Any]]) -> list[list[Any]]:
        results = []
        for i, known in enumerate(knowns):
            self._live = self._captured.lives[i] if self._captures_graphs else {}
            arrays = [known[at] for at in run.reads]
            if run.remembers:
                pairs = zip(run.reads, arrays, strict=True)
                arrays = [copy_array(a) if at in self._flow.overwritten else a for at, a in pairs]
            results.append(run(arrays))
        return results

    def _graph(self, k: int, run: Run, knowns: list[dict[int, Any]]) -> list[list[Any]]:
        graphs, each = self._captured.graphs, self._captured.fixed
        if run.passed:
            for fixed in each:  # let go of the old arrays, so that the graph reuses their memory
                fixed |= dict.fromkeys(run.passed)
        if k not in graphs:
            graphs[k] = CudaGraph(functools.partial(self._launches, run))
        try:
            results = graphs[k]()
        except RefusedError:
            self._refused.append(k)
            results = self._launches(run)
        n = len(run.outputs)
        of_steps = [results]
        if len(knowns) > 1:
            of_steps = [results[i * n : (i + 1) * n] for i in range(len(knowns))]
        if run.passed:
            for fixed, arrays in zip(each, of_steps, strict=True):
                by_name = dict(zip(run.names, arrays, strict=True))
                fixed.update({name: by_name[name] for name in run.passed})
        return of_steps

    def _launches(self, run: Run) -> list[Any]:
        """The launches that a graph holds: a run of each step, on fixed memory."""
        flow, own = self._flow, self._captured
        at = {value: memory.own for value, memory in self._memories.items()}
        moved = {value: memory.own for value, memory in flow.in_place.items()}
        copies = flow.copies(len(own.lives)) if flow.whole else []
        outputs: list[Any] = []
        kept: list[Any] = []
        self._placed = 0
        for i, (live, fixed) in enumerate(zip(own.lives, own.fixed, strict=True)):
            if i:
                at |= {start: argument(v, at) for start, v in flow.loop_state}
            self._live = live
            at |= fixed
            at |= moved
            results = run([at[value] for value in run.reads])
            at.update(zip(run.names, results, strict=True))
            # only the VariableMemory may hold a reference to its array
            outputs += [
                None if value in moved else a for value, a in zip(run.names, results, strict=True)
            ]
            kept += [at[value] for device, _ in copies[i : i + 1] for value in device]
            if i + 1 < len(own.lives):
                self._store(at)
        if len(kept) > self._placed:
            Upload((), kept, own.places)((), kept, kept)
        self._store(at)  # a result may be what a Variable was before
        return outputs

    def _store(self, at: dict[int, Any]) -> None:
        if self._flow.stored:
            arrays = [at[value] for value, _ in self._flow.stored]
            Upload((), arrays)((), arrays, [memory.own for _, memory in self._flow.stored])

    def _publish(self, k: int) -> None:
        """Give Variables the values that optimizers had computed before run `k` failed."""
        done = [step for run in self.runs[:k] for step, _ in run.steps] + self._done
        values = {id(v) for step in done for v in step.outs}
        moves = self._flow.in_place
        for memory in {moves[v] for v in values & moves.keys()}:
            memory.publish()

    def _room(self, n: int) -> list[Any]:
        """Allocate memory for what `n` steps copy, before anything that cannot be undone."""
        new = self.xp.lib.ndarray
        room = [new(*kind) for device, _ in self._flow.copies(n) for kind in device.values()]
        if room and self._captured.out is None and not self._flow.whole:
            self._captured.out = Upload((), room)
        return room

    def _keep(self, knowns: list[dict[int, Any]], room: list[Any]) -> None:
        """Copy results and Variables' values whose memory the next call overwrites."""
        pairs = list(zip(knowns, self._flow.copies(len(knowns)), strict=True))
        if self._captured.out is not None:
            arrays = [known[at] for known, (device, _) in pairs for at in device]
            self._captured.out((), arrays, room)
        left = iter(room)
        for known, (device, host) in pairs:
            known.update(zip(device, left, strict=False))
            for at in host:
                known[at] = known[at].copy()
