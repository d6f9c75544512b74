"""Replay on a GPU: what can be captured runs as CUDA graphs, the rest step by step between them.

A graph is a fixed list of launches on fixed memory, so what goes in is copied to where the graph
reads it (unless it is there, as Variables that were moved in place are), and what a program
returns is copied out: what an earlier call returned never changes.
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
from gpugrad.function.fuse import Kernel, fuse
from gpugrad.function.products import Product, find_products
from gpugrad.kernels import cublaslt
from gpugrad.kernels.code import NoCodeError
from gpugrad.kernels.graphs import Graph
from gpugrad.program import Program, Step, Value

__all__ = ["Launches", "Run"]


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

        def given(a: Any) -> Any:
            if isinstance(a, list):
                return [given(x) for x in a]
            if not isinstance(a, Value):
                return a
            return a.constant if a.constant is not None else known[id(a)]

        for step, call in self.steps:
            results = call(*(given(a) for a in step.args))
            known.update(zip(map(id, step.outs), results, strict=True))
        return [known[id(v)] for v in self.outputs]


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
        self._captures = xp is not NUMPY
        self._graphs: dict[int, Any] = {}  # by position of the run; False where it is refused
        self._lock = threading.Lock()
        for step in program.steps:
            call, fixed = _call(step, xp)
            if not self.runs or self.runs[-1].fixed is not fixed:
                self.runs.append(Run(fixed))
            self.runs[-1].steps.append((step, call))
        wanted = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
        for run in reversed(self.runs):
            run.close(wanted)
            wanted.update(map(id, run.inputs))

    def __call__(self, arrays: list[Any], release: Callable[[], None] | None = None) -> list[Any]:
        """As of a `Replay`: run on bare arrays of the program's inputs."""
        program = self.program
        known = dict(zip(map(id, program.inputs), arrays, strict=True))
        known |= {id(v): variable._data for variable, v in program.reads}
        arrays.clear()
        like = next(iter(known.values()), np.zeros(()))
        with self._lock, formulas_on(like):  # graphs have memory of their own, for one call
            fixed: set[int] = set()
            for k, run in enumerate(self.runs):
                given = [known[id(v)] for v in run.inputs]
                graph = self._graph(k, run, given) if run.fixed and self._captures else None
                made = graph(given) if graph else run(given)
                known.update(zip(map(id, run.outputs), made, strict=True))
                if graph:
                    fixed.update(map(id, run.outputs))
            leaving = [*program.outputs, *(v for _, v in program.writes)]
            for v in leaving:
                if id(v) in fixed:
                    fixed.discard(id(v))
                    known[id(v)] = known[id(v)].copy()

        def of(v: Value) -> Any:
            return v.constant if v.constant is not None else known[id(v)]

        for variable, v in program.writes:
            variable._data = of(v)
        if release:
            release()
        return [of(v) for v in program.outputs]

    def _graph(self, k: int, run: Run, given: list[Any]) -> Any:
        """The run as a CUDA graph, or False where CuPy refuses to capture it."""
        if k not in self._graphs:
            try:
                self._graphs[k] = Graph(run, given)
            except (RuntimeError, NotImplementedError):
                self._graphs[k] = False
        return self._graphs[k]


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
