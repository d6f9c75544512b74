"""The gradient of traced code: a forward program, and a backward program that reads what it keeps.

`differentiate` is the one way to get both. A traced function under a tape replays them
(`on_tape.Pair`), and so do the branches of `cond` and `while_loop`; `scan` runs each as a loop
(`control/loop_gradient.py`). Derivative rules are formulas, so the gradient is traced like
everything else: a tape inside the trace differentiates the function for upstream gradients that are
inputs of the program. The passes see function and gradient as one program. Then its steps are
split: those that depend on the upstream gradients are the backward program.

Products are not masked, so a replay whose gradient `is_nan` does not count. Then, and for
derivatives of the gradient, the function itself runs on Tensors under a tape (`by_tape`). A `Pair`
that has met two of them is traced once more with `masks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.backend import TENSOR, Reading, innermost_array, is_inexact
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.function.plan import Options, optimized
from gpugrad.function.signature import Signature
from gpugrad.function.structures import split_arrays
from gpugrad.trace.array import is_traced
from gpugrad.trace.program import NotReplayable, Program, Value
from gpugrad.trace.shapes import run_for_shapes
from gpugrad.trace.tracing import Tracing

Gradients = Callable[[Sequence[Tensor]], list[Tensor]]
"""Gradients by each source, given those of the inexact results."""


def tapes_only() -> bool:
    """Whether this thread has recorders, and all of them are plain tapes."""
    return bool(threads.stack) and all(type(r) is GradientTape for r in threads.stack)


def known(x: Tensor) -> bool:
    """Whether a recorder of this thread would record operations on `x`."""
    return bool(x._id) and is_inexact(x.dtype) and any(x._id in r.known for r in threads.stack)


class Derivative(NamedTuple):
    """A function and its gradient by some Tensors, and by the Variables that it reads.

    Attributes:
        form: the form of the result.
        forward: takes the leaves of the arguments; returns the arrays of the result, then what
            `backward` reads.
        backward: takes that, then the gradient of each inexact result; returns the gradients that
            exist.
        n_outputs: the number of arrays in the result.
        targets: the positions of the inexact ones.
        connected: for each source, the numbers of the targets that its gradient flows back from, or
            None if there is no gradient.
        variables: the sources after the Tensors.
        others: ids of Tensors that are read but are not sources.
    """

    form: Any
    forward: Program
    backward: Program
    n_outputs: int
    targets: list[int]
    connected: list[frozenset[int] | None]
    variables: list[Variable]
    others: set[int]


class _CapturingTrace(Tracing):
    """A trace that notes which Tensors from outside are read: their ids in `captured`."""

    sees_reads = True

    def __enter__(self) -> Self:
        self.captured: set[int] = set()
        return super().__enter__()

    def numbered(self, x: Tensor) -> None:
        if not is_traced(x._data):
            self.captured.add(x._id)

    def _note_values(self, tensor: Tensor) -> None:
        """Note a Tensor whose values Python reads: an outer tape may watch it."""
        self.captured.add(tensor._id)


class _BodyTrace(_CapturingTrace):
    """The same for a loop's body, on arrays that only carry shapes and dtypes."""

    abstract, boxes = True, False

    def computed(
        self, op: Any, xp: Reading, arrays: list[Any], params: dict[str, Any]
    ) -> tuple[Any, bool]:
        """An op's results on placeholders."""
        return run_for_shapes(getattr(xp, op.name), arrays, params)


def differentiable(result: Any) -> list[Tensor]:
    """The Tensors of a result that may have gradients; tapes know its Variables by themselves.

    Raises:
        NotReplayable: the result has IndexedSlices, which are not a single Tensor.
    """
    leaves = nest.flatten(result)
    if IndexedSlices in map(type, leaves):
        raise NotReplayable("a result is IndexedSlices")
    tensors = [t for t in leaves if isinstance(t, Tensor) and not isinstance(t, Variable)]
    return [t for t in tensors if is_inexact(t.dtype)]


def differentiate(
    f: Callable[..., Any],
    args: Any,
    keywords: Any,
    wanted: Sequence[Tensor],
    signature: Signature,
    options: Options,
    masks: bool = False,
    is_body: bool = False,
) -> Derivative:
    """Trace a function and its gradient by the arguments `wanted` and the Variables it reads.

    The products of the gradient are masked if `masks`. If `is_body`, it is the body of a loop, and
    the arguments only carry shapes and dtypes.

    Raises:
        NotReplayable: the function has effects, none of which has happened yet, or nothing to
            differentiate.
    """
    # pure, because a fallback calls the function again, which would repeat its effects
    kind = _BodyTrace if is_body else _CapturingTrace
    trace = kind(pure=True, passes=options.passes)
    trace.masks = masks

    def called(inputs: Any, keys: Any, sources: list[Tensor]) -> tuple[Any, ...]:
        """The form, arrays, gradients, Variables; a Tensor that `f` has written to dies with it."""
        tape = GradientTape()
        with tape:
            tape.watch(sources)
            result = f(*inputs, **keys)
        targets = differentiable(result)
        if not targets:
            raise NotReplayable("there is nothing to differentiate")
        ids = {id(s) for s in sources}
        variables = [v for v in tape.watched_variables() if id(v) not in ids]
        ones = [TENSOR.positive(t) * 0 + 1 for t in targets]
        seeds = [wrap(trace.input(innermost_array(t._data))) for t in ones]
        steps = trace.program.steps
        n = len(steps)
        grads = tape.gradient(targets, [*sources, *variables], seeds)
        if len(steps) > n and steps[-1].name == "no_nan":
            steps.pop()  # who replays the gradient looks at it
        # IndexedSlices become dense
        grads = [None if g is None else tensor(g) for g in grads]
        return *split_arrays(result), grads, variables

    try:
        with trace:
            arguments = signature.inputs(trace, args, keywords, wanted)
            form, outputs, grads, variables = called(*arguments)
    except BaseException:
        trace.end()
        raise
    trace.returned(outputs)
    program, n_outputs = trace.program, len(outputs)
    targets = [k for k, a in enumerate(outputs) if is_inexact(a.dtype)]
    gradients = [None if g is None else trace.place(g._data) for g in grads]
    program.outputs += [v for v in gradients if v is not None]
    n = len(program.inputs) - len(targets)
    connected = _connected(program, program.inputs[n:], gradients)
    forward, backward = _split(optimized(program, options), n, n_outputs)
    program.forget_arrays()
    sources = {id(v) for v in (*variables, *wanted)}
    others = trace.captured | {v._id for v, _ in program.reads if id(v) not in sources}
    return Derivative(form, forward, backward, n_outputs, targets, connected, variables, others)


def _connected(
    program: Program, seeds: Sequence[Value], gradients: Sequence[Value | None]
) -> list[frozenset[int] | None]:
    """For each gradient the numbers of the results that it flows back from, or None."""
    none, every = frozenset[int](), frozenset(range(len(seeds)))
    of = {id(seed): frozenset((k,)) for k, seed in enumerate(seeds)}
    for step in program.steps:
        results = none.union(*(of.get(id(v), none) for v in step.inputs))
        of.update((id(v), results) for v in step.outs)
    return [None if g is None else of.get(id(g), none) or every for g in gradients]


def _split(program: Program, n_inputs: int, n_outputs: int) -> tuple[Program, Program]:
    """Split a program into a forward and a backward one.

    The backward program has the steps that depend on upstream gradients, or have a phase. The
    forward program returns its `n_outputs` and then what the backward program reads; the backward
    program takes that, then the upstream gradients.
    """
    seeds = program.inputs[n_inputs:]
    late = {id(v) for v in seeds}
    forward, backward = program.copy(), program.copy()
    forward.steps, backward.steps = [], []
    for step in program.steps:
        if step.phase or any(id(v) in late for v in step.inputs):
            late.update(id(v) for v in step.outs)
            backward.steps.append(step)
        else:
            forward.steps.append(step)
    gradients = program.outputs[n_outputs:]
    read = [v for s in backward.steps for v in s.inputs] + gradients
    held: dict[int, Value] = {id(v): v for v in read if id(v) not in late and v.constant is None}
    forward.inputs = program.inputs[:n_inputs]
    forward.outputs = program.outputs[:n_outputs] + list(held.values())
    backward.inputs = [*held.values(), *seeds]
    backward.outputs, backward.reads, backward.writes = gradients, [], []
    return forward, backward


def by_tape(
    call: Callable[..., list[Tensor]], tensors: Sequence[Tensor], wanted: Sequence[int]
) -> tuple[list[Tensor], Gradients]:
    """The results of a function of Tensors, and their gradients by those at `wanted`.

    For what is not one program: loops and branches, and derivatives of gradients. Gradients are
    dense, and zeros where there are none.
    """
    args = list(tensors)
    for k in wanted:  # one argument passed twice is two
        args[k] = TENSOR.positive(args[k]) if known(args[k]) else wrap(args[k]._data)
    sources = [args[k] for k in wanted]
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(sources)
        outs = call(*args)
    targets = [t for t in outs if is_inexact(t.dtype)]

    def gradients(g: Sequence[Tensor]) -> list[Tensor]:
        return [tensor(x) for x in tape.gradient(targets, sources, list(g), "zero")]

    return outs, gradients
