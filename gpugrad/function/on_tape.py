"""A traced function under a tape: one entry in its log, whose rule is the traced backward pass.

Function and gradient are traced together, and the steps parted: those that depend on the upstream
gradients are the backward program, the others the forward one, which also returns what the
backward one reads. For a gradient of the gradient the function itself is called again on Tensors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

from gpugrad.autodiff.recorded_call import RecordedCall
from gpugrad.autodiff.recorder import graphs
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.backend import TENSOR, innermost_array, is_array, is_inexact
from gpugrad.core.devices import default_device, full_beside
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, tensor, threads, wrap
from gpugrad.core.training import is_training, training
from gpugrad.core.variable import Variable
from gpugrad.function.plan import Options, optimized, planned
from gpugrad.function.results import filled, taken
from gpugrad.function.signature import Signature
from gpugrad.trace.array import tracing
from gpugrad.trace.program import OtherwiseError, Program, Value
from gpugrad.trace.tracing import Tracing

__all__ = ["Pair", "known", "tapes_only"]


def tapes_only() -> bool:
    """Whether what records in this thread are plain tapes, and at least one."""
    return bool(threads.stack) and all(type(r) is GradientTape for r in threads.stack)


def known(x: Tensor) -> bool:
    """Whether a recorder of this thread would see what is done to `x`."""
    return bool(x._id) and is_inexact(x.dtype) and any(x._id in r.known for r in threads.stack)


def _differentiable(result: Any) -> list[Tensor]:
    """The Tensors of a result that may have gradients; tapes know its Variables by themselves.

    Raises:
        OtherwiseError: there are IndexedSlices, which are no one Tensor.
    """
    leaves = nest.flatten(result)
    if IndexedSlices in map(type, leaves):
        raise OtherwiseError("a result is IndexedSlices")
    tensors = [t for t in leaves if isinstance(t, Tensor) and not isinstance(t, Variable)]
    return [t for t in tensors if is_inexact(t.dtype)]


def _as_now(leaf: Any) -> Any:
    """A leaf of the arguments that does not change when the user's array or Tensor does."""
    if isinstance(leaf, Variable):
        return leaf
    return copy(leaf) if isinstance(leaf, Tensor) else tensor(leaf) if is_array(leaf) else leaf


@contextlib.contextmanager
def _with_values(values: Sequence[tuple[Variable, Any]]) -> Iterator[None]:
    """Variables have the values that they had."""
    now = [(variable, variable._data) for variable, _ in values]
    for variable, had in values:
        variable._data = had
    try:
        yield
    finally:
        for variable, data in now:
            variable._data = data


class _Watchful(Tracing):
    """A trace that remembers which Tensors were there before it: their numbers in `captured`."""

    def __enter__(self) -> _Watchful:
        self.captured: set[int] = set()
        graphs.append(self)  # so that ops tell it what they read
        super().__enter__()
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        try:
            super().__exit__(kind, *exc)
        finally:
            graphs.remove(self)

    def numbered(self, x: Tensor) -> None:
        """Remember a Tensor that an op reads, if it is a constant of the program."""
        if not tracing(x._data):
            self.captured.add(x._id)


class _WithGradient(NamedTuple):
    """A function and its gradient, traced together.

    Attributes:
        trace: its program takes the leaves of the arguments, then the upstream gradients.
        form: of the result.
        outputs: the arrays of the result.
        targets: those of them that are inexact, which have upstream gradients.
        gradients: by the Tensors asked for and then by the Variables; None where there is none.
        variables: that the function reads.
    """

    trace: _Watchful
    form: Any
    outputs: list[Any]
    targets: list[Any]
    gradients: list[Tensor | None]
    variables: list[Variable]


def _trace_with_gradient(
    f: Callable[..., Any], args: Any, keywords: Any, wanted: Sequence[Tensor], structure: Any,
    passes: Sequence[str],
) -> _WithGradient:  # fmt: skip
    """Trace a function and its gradient by some Tensors and by the Variables that it reads.

    Raises:
        OtherwiseError: the function has effects; none has happened yet.
    """
    # where the function is called again, effects would come again
    trace = _Watchful(pure=True, passes=passes)
    with trace:
        given, named, sources = structure(trace, args, keywords, wanted)
        tape = GradientTape()
        with tape:
            tape.watch(sources)
            result = f(*given, **named)
        targets = _differentiable(result)
        given_ids = {id(s) for s in sources}
        variables = [v for v in tape.watched_variables() if id(v) not in given_ids]
        ones = [TENSOR.positive(t) * 0 + 1 for t in targets]
        seeds = [wrap(trace.input(innermost_array(t._data))) for t in ones]
        made = tape.gradient(targets, [*sources, *variables], seeds) if targets else []
        gradients = [None if g is None else tensor(g) for g in made]  # rows are made dense
        form, outputs = taken(result)
        inexact = [t._data for t in targets]
        del result, targets  # Tensors that `f` has written to must be its own
    return _WithGradient(trace, form, outputs, inexact, gradients, variables)


def _connected(
    program: Program, seeds: Sequence[Value], gradients: Sequence[Value | None]
) -> list[frozenset[int] | None]:
    """For each gradient the results, by number, from which it comes; None if there is none."""
    none, every = frozenset[int](), frozenset(range(len(seeds)))
    of = {id(seed): frozenset((k,)) for k, seed in enumerate(seeds)}
    for step in program.steps:
        found = none.union(*(of.get(id(v), none) for v in step.inputs))
        of.update((id(v), found) for v in step.outs)
    return [None if g is None else of.get(id(g), none) or every for g in gradients]


def _parted(program: Program, n_inputs: int, n_outputs: int) -> tuple[Program, Program]:
    """The steps before the upstream gradients, and those that depend on them or have a phase.

    The first returns its `n_outputs` and then what the second one reads; the second takes that,
    then the upstream gradients.
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


class _FunctionCall(RecordedCall):
    """One call of a traced function.

    Args:
        name: of the function.
        backward: function of what is held and the upstream gradients: gradients by the sources.
        held: what the forward program has kept for it.
        connected: what `_connected` says of the gradients.
        sources: Tensors and Variables by which they are.
        again: calls the function itself, of the sources; returns the results that have gradients.
    """

    def __init__(
        self, name: str, backward: Callable[..., Any], held: list[Any],
        connected: Sequence[frozenset[int] | None], sources: Sequence[Tensor],
        again: Callable[[], list[Tensor]],
    ) -> None:  # fmt: skip
        super().__init__(name)
        self._backward, self._held, self._connected = backward, held, connected
        self._sources, self._again = sources, again

    def record(self, outs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Offer the call to this thread's recorders."""
        self.unused, self._kinds = range(len(outs)), [(o.shape, o.dtype) for o in outs]
        super().record(outs, inputs)

    def gradients(self, xp: Any, g: tuple[Any, ...]) -> list[Any]:
        """What the backward program gives, or a tape under which the function runs again."""
        there = {k: x for k, x in enumerate(g) if x is not None}
        if xp is not TENSOR and not xp.wraps:  # arrays with examples are not replayed
            like = next(iter(there.values()))
            full = [full_beside(like, *kind) if x is None else x
                    for x, kind in zip(g, self._kinds, strict=True)]  # fmt: skip
            try:
                found = iter(self._backward([*self._held, *full]))
                made = [None if of is None else (of, next(found)) for of in self._connected]
                return [x[1] if x and not x[0].isdisjoint(there) else None for x in made]
            except OtherwiseError:
                pass
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self._sources)
            targets = self._again()
        upstream = [x if isinstance(x, Tensor) else wrap(x) for x in there.values()]
        found = tape.gradient([targets[k] for k in there], self._sources, upstream)
        return [x if x is None or xp is TENSOR else tensor(x)._data for x in found]


class Pair:
    """One signature under tapes: a forward and a backward program.

    Attributes:
        forward, backward: what replays them.
        others: numbers of what is read and has no gradient by it: the function must be called
            itself where a tape knows one.
        read: the Variables that are read.
    """

    def __init__(
        self, f: Any, args: Any, keywords: Any, wanted: list[Tensor], options: Options,
        signature: Signature,
    ) -> None:  # fmt: skip
        both = _trace_with_gradient(f, args, keywords, wanted, signature.inputs, options.passes)
        if not both.targets:
            raise OtherwiseError("there is nothing to differentiate")
        self._result, self._variables, self._signature = both.form, both.variables, signature
        self._n_outputs = len(both.outputs)
        self._is_target = [any(o is t for t in both.targets) for o in both.outputs]
        trace, program = both.trace, both.trace.program
        self.read = [variable for variable, _ in program.reads]
        sources = {id(v) for v in (*both.variables, *wanted)}
        self.others = trace.captured | {v._id for v, _ in program.reads if id(v) not in sources}
        trace.returned(both.outputs)
        gradients = [None if g is None else trace.place(g._data) for g in both.gradients]
        n = len(program.inputs) - len(both.targets)
        self._connected = _connected(program, program.inputs[n:], gradients)
        program.outputs += [v for v in gradients if v is not None]
        forward, backward = _parted(optimized(program, options), n, self._n_outputs)
        self.forward, self.backward = (planned(p, options)[1] for p in (forward, backward))
        program.forget_arrays()

    def __call__(
        self, f: Any, arrays: list[Any], args: Any, keywords: Any, wanted: list[Tensor]
    ) -> Any:
        """What `f` returns of the arguments, whose arrays are `arrays`, recorded."""
        for v in self._variables:
            v._read()  # so that tapes that watch Variables on first use know of it
        mode, device = is_training(), default_device()
        values = [(v, v._data) for v in self.read]
        args, keywords = self._signature.mapped(_as_now, args, keywords)

        def again() -> list[Tensor]:
            with training(mode), device, _with_values(values):
                return _differentiable(f(*args, **keywords))

        sources = [*map(_as_now, wanted), *self._variables]
        name = getattr(f, "__name__", "function")
        return filled(self._result, iter(self.replayed(name, arrays, sources, again)))

    def replayed(
        self, name: str, arrays: list[Any], sources: list[Tensor], again: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """The Tensors of the result, recorded; `again` is as `_FunctionCall` has it."""
        made = self.forward(arrays)
        outs = [wrap(a) for a in made[: self._n_outputs]]
        held = made[self._n_outputs :]
        op = _FunctionCall(name, self.backward, held, self._connected, sources, again)
        targets = [o for o, is_target in zip(outs, self._is_target, strict=True) if is_target]
        op.record(targets, sources)
        return outs
