"""Replay on a GPU: what can be captured runs as CUDA graphs, the rest step by step between them.

A graph is a fixed list of launches on fixed memory. Arguments are copied to where it reads them;
Variables are there already, and optimizers move them there. What differs from run to run, such as
a learning rate, a step number or where a random stream is, comes as numbers on the device. What a
program returns is copied out: what an earlier call returned never changes.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.backend import NUMPY, Namespace, formulas_on
from gpugrad.function.calls import effect_call, op_call
from gpugrad.function.cuda.kernel import compiled
from gpugrad.function.cuda.slots import Slot, moved_in_place, slot_of
from gpugrad.function.fuse import Kernel, fuse
from gpugrad.function.products import Product, find_products
from gpugrad.kernels import cublaslt
from gpugrad.kernels.code import NoCodeError
from gpugrad.kernels.graphs import Graph, Numbers
from gpugrad.program import Program, Step, Value

__all__ = ["Launches", "Run"]

_LOCK = threading.RLock()  # graphs share the memory of Variables


class Run:
    """Steps of a program, one after another, as functions of bare arrays.

    Attributes:
        inputs: the values that it reads from outside.
        outputs: the values that are read from outside.
        fixed: whether it is launches of kernels on memory that can be fixed, and nothing else.
    """

    def __init__(self, fixed: bool) -> None:
        self.fixed = fixed
        self.steps: list[tuple[Step, Callable[..., Any]]] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []

    def close(self, wanted: set[int]) -> None:
        """Find what it reads from outside, and what of it others read."""
        own = {id(v) for step, _ in self.steps for v in step.outs}
        read = [v for step, _ in self.steps for v in step.inputs]
        self.inputs = list(
            {id(v): v for v in read if id(v) not in own and v.constant is None}.values()
        )
        made = (v for step, _ in self.steps for v in step.outs)
        self.outputs = [v for v in made if id(v) in wanted]

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays of the outputs, from those of the inputs."""
        known = dict(zip(map(id, self.inputs), arrays, strict=True))
        for step, call in self.steps:
            results = call(*(_given(a, known) for a in step.args))
            known.update(zip(map(id, step.outs), results, strict=True))
        return [known[id(v)] for v in self.outputs]


def _given(a: Any, known: dict[int, Any]) -> Any:
    if isinstance(a, list):
        return [_given(x, known) for x in a]
    if not isinstance(a, Value):
        return a
    return a.constant if a.constant is not None else known[id(a)]


class Launches:
    """A program made ready for a GPU: fused, and cut into what can be captured and what cannot.

    Attributes:
        program: as it is launched.
        runs: its parts, in order.
        arena_bytes, buffered: as of a `Replay`; memory comes from pools here.
    """

    arena_bytes, buffered = 0, frozenset[int]()

    def __init__(self, program: Program, xp: Namespace) -> None:
        self.program = program = fuse(find_products(program))
        self.runs: list[Run] = []
        self._xp, self._captures = xp, xp is not NUMPY
        in_place = moved_in_place(program) if self._captures else {}
        self._effects = [step for step in program.steps if id(step) in in_place]
        self._live: dict[int, list[Any]] = {}  # numbers on the device, by effect
        for step in program.steps:
            call, fixed = self._launch(step) if id(step) in in_place else _call(step, xp)
            if not self.runs or self.runs[-1].fixed is not fixed:
                self.runs.append(Run(fixed))
            self.runs[-1].steps.append((step, call))
        wanted = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
        for run in reversed(self.runs):
            run.close(wanted)
            wanted.update(map(id, run.inputs))
        self._moves = {k: v for moves in in_place.values() for k, v in moves.items()}
        self._slots: dict[int, Slot] = {}  # of Values that graphs read, and of what they move
        if self._captures:
            captured = {id(v) for run in self.runs if run.fixed for v in run.inputs}
            self._slots = {id(v): slot_of(var) for var, v in program.reads if id(v) in captured}
        for at in self._moves.values():
            self._slots[at].moved = True
        self._graphs: dict[int, Any] = {}  # by position of the run; False where it is refused
        self._versions: Any = None  # of what the graphs have captured

    def __call__(self, arrays: list[Any], release: Callable[[], None] | None = None) -> list[Any]:
        """As of a `Replay`: run on bare arrays of the program's inputs."""
        program = self.program
        like = next(iter([*arrays, *(v._data for v, _ in program.reads)]), np.zeros(()))
        with _LOCK, formulas_on(like):  # graphs have memory of their own, for one call at a time
            self._prepare()
            known = dict(zip(map(id, program.inputs), arrays, strict=True))
            known |= {id(v): variable._data for variable, v in program.reads}
            known |= {at: slot.own for at, slot in self._slots.items()}
            arrays.clear()
            lent = set(self._slots)  # what others write to in the next call
            for k, run in enumerate(self.runs):
                known.update(zip(map(id, run.outputs), self._made(k, run, known), strict=True))
                known |= {made: self._slots[at].own for made, at in self._moves.items()}
                if self._captures:
                    lent.update(id(v) for v in run.outputs if run.fixed or v.view)

            def of(v: Value) -> Any:
                if id(v) in lent:
                    lent.discard(id(v))
                    known[id(v)] = known[id(v)].copy()
                return v.constant if v.constant is not None else known[id(v)]

            results = [of(v) for v in program.outputs]
            for variable, v in program.writes:
                if id(v) in self._moves:
                    self._slots[self._moves[id(v)]].show()
                else:
                    variable._data = of(v)
        if release:
            release()
        return results

    def _launch(self, step: Step) -> tuple[Callable[..., Any], bool]:
        """As `_call`, of an effect that kernels do."""
        n = len(step.args) - len(step.variables)
        launched: Any = step.launched

        def call(*arrays: Any) -> list[Any]:
            made = launched.launch(list(arrays[:n]), list(arrays[n:]), self._live[id(step)])
            return [*made, *arrays[n:]]

        return call, True

    def _prepare(self) -> None:
        """Put values and numbers where graphs read them; forget graphs that read others."""
        for slot in self._slots.values():
            slot.fill()
        launched: list[Any] = [step.launched for step in self._effects]
        numbers = [effect.numbers() for effect in launched]
        flat = [a for some in numbers for a in some]
        versions = [x.version for x in (*self._slots.values(), *launched)]
        if versions != self._versions:
            self._versions = versions
            self._graphs.clear()
            self._numbers = Numbers(self._xp, flat)
            live = iter(self._numbers.live)
            self._live = {
                id(step): [next(live) for _ in some]
                for step, some in zip(self._effects, numbers, strict=True)
            }
        if flat:
            self._numbers(flat)

    def _made(self, k: int, run: Run, known: dict[int, Any]) -> list[Any]:
        """The results of a run, as a CUDA graph if CuPy does not refuse to capture it."""
        if not (run.fixed and self._captures):
            return run([known[id(v)] for v in run.inputs])
        free = [v for v in run.inputs if id(v) not in self._slots]
        given = [known[id(v)] for v in free]

        def launches(arrays: Sequence[Any]) -> list[Any]:
            at = dict(zip(map(id, free), arrays, strict=True))
            at |= {value: slot.own for value, slot in self._slots.items()}
            made = run([at[id(v)] for v in run.inputs])
            # nothing but the slot may hold on to its array
            return [
                None if id(v) in self._moves else m for v, m in zip(run.outputs, made, strict=True)
            ]

        if k not in self._graphs:
            self._graphs[k] = Graph(launches, given)
        if self._graphs[k]:
            try:
                return self._graphs[k](given)
            except (RuntimeError, NotImplementedError):
                self._graphs[k] = False
        return launches(given)


def _call(step: Step, xp: Namespace) -> tuple[Callable[..., Any], bool]:
    """What runs a step on bare arrays and gives a list, and whether it can be captured."""
    if isinstance(step, Kernel):
        try:
            launched = compiled(step)
        except NoCodeError:
            return _one_by_one(step, xp), False
        return lambda *arrays: launched(xp, arrays), True
    if isinstance(step, Product):
        return functools.partial(step.run, xp), cublaslt.binding() is not None
    if step.op is None:
        return _with_effect(step), False
    launches = step.op.cuda is not None
    if step.op.name == "matmul":  # CuPy's own cannot be captured
        launches = cublaslt.binding() is not None
    return _listed(step, xp), launches or all(v.view for v in step.outs)


def _listed(step: Step, xp: Namespace) -> Callable[..., Any]:
    call = op_call(step, xp)
    assert step.op is not None
    return call if step.op.outputs > 1 else lambda *args: [call(*args)]


def _with_effect(step: Step) -> Callable[..., Any]:
    call, n = effect_call(step), len(step.args) - len(step.variables)
    return lambda *arrays: call(list(arrays[:n]), step.variables, list(arrays[n:]))


def _one_by_one(kernel: Kernel, xp: Namespace) -> Callable[..., Any]:
    """A kernel that cannot be written: its steps as they are."""
    run = Run(fixed=False)
    run.steps = [(s, _listed(s, xp)) for s in (*kernel.steps, *kernel.sums)]
    run.close({id(v) for v in kernel.outs})
    order = [next(k for k, a in enumerate(kernel.inputs) if a is v) for v in run.inputs]
    places = [next(k for k, a in enumerate(run.outputs) if a is v) for v in kernel.outs]

    def call(*arrays: Any) -> list[Any]:
        made = run([arrays[k] for k in order])
        return [made[k] for k in places]

    return call
