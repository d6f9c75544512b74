"""Runs: parts of a program that either fit in a CUDA graph or run step by step.

A graph can hold launches, and memory of the pool that it keeps. It cannot hold a step that waits
for a result (an index that is checked, a shape that depends on values), nor cuBLAS, cuSOLVER and
cuRAND, which CuPy refuses to capture. A refusal ends the capture, and the step is left out then.
Two things would be captured but wrong in later launches: an array from the host, because only its
address is captured, and an FFT, because CuPy owns its plan and work area and may free them. So an
op's record sets `captures` only if its forward does neither, on CuPy 14. Sorts can be captured:
they are Thrust's, under a policy that does not wait for the stream. So can CuPy's and CUB's
reductions, which take their memory from the pool.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.core.backend import Reading
from gpugrad.function.gpu.kernel_launch import compile_kernel
from gpugrad.function.passes.epilogues import Product
from gpugrad.function.passes.fuse import FusedKernel, fuse_groups
from gpugrad.function.passes.pieces import Pieces
from gpugrad.function.passes.rewrite import FusedStep
from gpugrad.function.step_calls import effect_call, op_call, reraise_as_op
from gpugrad.kernels.by_hand.partial_sums import Waiting
from gpugrad.kernels.codegen.code import NoCodeError
from gpugrad.kernels.codegen.for_ops import forward_of, kind_of
from gpugrad.kernels.libraries import cublaslt
from gpugrad.trace.program import Step, Value


class Run:
    """Consecutive steps of a program, as functions of plain arrays.

    Attributes:
        inputs, reads: the values that the run reads from outside, and their ids.
        outputs, names: its values that are read outside, and their ids.
        effects, launched: the effects that kernels perform, and their `Launched`.
        links: ids of inputs that must be copied to where its graph reads them, because no earlier
            graph has computed or received them.
        passed: ids of outputs that other graphs read where they are.
        remembers: whether a step keeps arrays for a gradient, in an object.
        fixed: whether it consists of kernel launches on memory that can be fixed.
    """

    def __init__(self, fixed: bool) -> None:
        self.fixed = fixed
        self.steps: list[tuple[Step, Callable[..., Any]]] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.effects: list[Step] = []
        self.launched: list[Any] = []
        self.reads: list[int] = []
        self.names: list[int] = []
        self.links: list[int] = []
        self.passed: list[int] = []
        self.remembers = False
        self._last: list[list[int]] = []  # for each step, the ids that no later step reads

    def close(self, wanted: set[int]) -> None:
        """Find the values that enter and leave the run, and the last reader of each other value."""
        own = {id(v) for step, _ in self.steps for v in step.outs}
        read = [v for step, _ in self.steps for v in step.inputs]
        self.inputs = list(
            {id(v): v for v in read if id(v) not in own and v.constant is None}.values()
        )
        self.outputs = [v for step, _ in self.steps for v in step.outs if id(v) in wanted]
        self.remembers = any(v.dtype == object for v in self.outputs)
        self.reads, self.names = list(map(id, self.inputs)), list(map(id, self.outputs))
        last = {id(v): k for k, (s, _) in enumerate(self.steps) for v in (*s.inputs, *s.outs)}
        self._last = [[] for _ in self.steps]
        for v in {*last} - {*self.names}:
            self._last[last[v]].append(v)

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays of the outputs, computed from the arrays of the inputs."""
        known = dict(zip(self.reads, arrays, strict=True))
        with Waiting() as waiting:
            of: set[int] = set()  # ids of the sums that wait
            for (step, call), done in zip(self.steps, self._last, strict=True):
                if of and not of.isdisjoint(map(id, step.inputs)):
                    waiting.add_up()
                    of.clear()
                before = len(waiting)
                try:
                    results = call(*(argument(a, known) for a in step.args))
                except Exception as error:
                    reraise_as_op(error, step)
                    raise
                if len(waiting) > before and isinstance(step, FusedKernel):
                    of.update(id(s.outs[0]) for s in step.sums)
                known.update(zip(map(id, step.outs), results, strict=True))
                del results
                for v in done:  # so that the next step can reuse its memory
                    known.pop(v, None)
        return [known[at] for at in self.names]


def argument(a: Any, known: dict[int, Any]) -> Any:
    """An argument of a step as an array or number; `known` has arrays by the id of their Value."""
    if isinstance(a, list):
        return [argument(x, known) for x in a]
    if not isinstance(a, Value):
        return a
    return a.constant if a.constant is not None else known[id(a)]


def call_of(step: Step, xp: Reading) -> tuple[Callable[..., Any], bool]:
    """The function that executes a step and returns a list, and whether it can be captured."""
    if isinstance(step, FusedKernel):
        try:
            launched = compile_kernel(step)
        except NoCodeError:
            captured = all(map(can_be_captured, step.parts))
            return _one_by_one(step.parts, step.inputs, step.outs, xp), captured
        return lambda *arrays: launched(xp, arrays), True
    if isinstance(step, Product):
        return functools.partial(step.run, xp), cublaslt.binding() is not None
    if isinstance(step, Pieces):
        return functools.partial(step.run, xp), True
    if isinstance(step, FusedStep):
        return _fused(step, xp), all(map(can_be_captured, step.unfused.steps))
    if step.op is None:
        effect, n = effect_call(step), len(step.args) - len(step.variables)
        return lambda *arrays: effect([*arrays[:n]], step.variables, [*arrays[n:]]), False
    if step.op.kind == "control":  # it may read values; its branches have their own graphs
        return _listed(step, xp), False
    return _listed(step, xp), can_be_captured(step)


def can_be_captured(step: Step) -> bool:
    """Whether an op's function on plain arrays only launches work on memory that can be fixed."""
    op: Any = step.op
    if callable(op.captures):
        return bool(op.captures(*step.args, **step.params))
    if op.captures is False:
        return False
    if op.cuda is not None or op.view or all(v.view for v in step.outs):
        return True
    if op.kind == "elementwise":
        return op.captures or op.is_library_function or _has_code(op, step.args)
    arrays = all(isinstance(a, Value) or a is None for a in step.args)  # no numbers to send
    return bool(op.captures) and arrays


def _has_code(op: Any, args: Any) -> bool:
    """Whether an elementwise formula can be written as CUDA; others may use host arrays."""
    try:
        forward_of(op, tuple(map(kind_of, args)))
    except NoCodeError:
        return False
    return True


def _listed(step: Step, xp: Reading) -> Callable[..., Any]:
    call = op_call(step, xp)
    assert step.op is not None
    return call if step.op.outputs > 1 else lambda *args: [call(*args)]


def _fused(step: FusedStep, xp: Reading) -> Callable[..., Any]:
    """Executes steps in one launch, or one by one if the launch declines."""
    unfused = step.unfused
    fallback = _one_by_one(fuse_groups(unfused).steps, unfused.inputs, unfused.outputs, xp)

    def call(*arrays: Any) -> list[Any]:
        results = step.run(xp, *arrays)
        return fallback(*arrays) if results is NotImplemented else results

    return call


def _one_by_one(
    steps: Sequence[Step], inputs: Sequence[Value], outs: Sequence[Value], xp: Reading
) -> Callable[..., Any]:
    """Executes steps one by one: a function from the arrays of `inputs` to the arrays of `outs`."""
    run = Run(fixed=False)
    run.steps = [(s, call_of(s, xp)[0]) for s in steps]
    run.close({id(v) for v in outs})
    order = [next(k for k, a in enumerate(inputs) if a is v) for v in run.inputs]
    places = [next(k for k, a in enumerate(run.outputs) if a is v) for v in outs]

    def call(*arrays: Any) -> list[Any]:
        results = run([arrays[k] for k in order])
        return [results[k] for k in places]

    return call
