"""A traced function under a tape: one entry in its log, whose rule is the traced backward pass.

The function and its gradient are traced together, and the steps are split: those that depend on
the upstream gradients form the backward program, the others the forward program, which also returns
what the backward program reads. For a second-order gradient the function itself is called again, on
Tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from threading import get_ident
from typing import Any, NamedTuple

from gpugrad.autodiff.recorded_call import RecordedCall
from gpugrad.autodiff.recorder import graphs
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.backend import TENSOR, innermost_array, is_array, is_inexact
from gpugrad.core.devices import default_device, full_on_device_of
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.listening import threads
from gpugrad.core.replaceable import read_together
from gpugrad.core.scopes import Scope, scopes
from gpugrad.core.settings import is_training, training
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.function.plan import Options, optimized, planned
from gpugrad.function.signature import Signature
from gpugrad.function.structures import fill_holes, split_arrays
from gpugrad.trace.array import is_traced
from gpugrad.trace.program import NotReplayable, Program, Value
from gpugrad.trace.tracing import Tracing


def tapes_only() -> bool:
    """Whether this thread has recorders, and all of them are plain tapes."""
    return bool(threads.stack) and all(type(r) is GradientTape for r in threads.stack)


def known(x: Tensor) -> bool:
    """Whether a recorder of this thread would record operations on `x`."""
    return bool(x._id) and is_inexact(x.dtype) and any(x._id in r.known for r in threads.stack)


def _differentiable(result: Any) -> list[Tensor]:
    """The Tensors of a result that may have gradients; tapes know its Variables by themselves.

    Raises:
        NotReplayable: the result has IndexedSlices, which are not a single Tensor.
    """
    leaves = nest.flatten(result)
    if IndexedSlices in map(type, leaves):
        raise NotReplayable("a result is IndexedSlices")
    tensors = [t for t in leaves if isinstance(t, Tensor) and not isinstance(t, Variable)]
    return [t for t in tensors if is_inexact(t.dtype)]


def _snapshot(leaf: Any) -> Any:
    """A leaf of the arguments that does not change when the user's array or Tensor does."""
    if isinstance(leaf, Variable):
        return leaf
    return copy(leaf) if isinstance(leaf, Tensor) else tensor(leaf) if is_array(leaf) else leaf


class _CapturingTrace(Tracing):
    """A trace that notes which Tensors from outside are read: their ids in `captured`."""

    def __enter__(self) -> _CapturingTrace:
        self.captured: set[int] = set()
        super().__enter__()
        return self

    def listen(self, place: int | None = None) -> _CapturingTrace:
        """Follow this thread's ops, which report what they read."""
        graphs.append(self)
        return super().listen(place)

    def _leave(self) -> None:
        if self in graphs:
            graphs.remove(self)
        super()._leave()

    def numbered(self, x: Tensor) -> None:
        """Note a Tensor that an op reads, if it is a constant of the program."""
        if not is_traced(x._data):
            self.captured.add(x._id)


class _WithGradient(NamedTuple):
    """A function and its gradient, traced together.

    Attributes:
        trace: the trace; its program takes the leaves of the arguments, then the upstream
            gradients.
        form: the form of the result.
        outputs: the arrays of the result.
        targets: the inexact ones of these, which have upstream gradients.
        gradients: with respect to the requested Tensors, then the Variables; None if unconnected.
        variables: the Variables that the function reads.
    """

    trace: _CapturingTrace
    form: Any
    outputs: list[Any]
    targets: list[Any]
    gradients: list[Tensor | None]
    variables: list[Variable]

    def program(self) -> tuple[Program, list[Value | None]]:
        """The program, which returns the results and then the gradients; and the gradients."""
        trace, program = self.trace, self.trace.program
        trace.returned(self.outputs)
        gradients = [None if g is None else trace.place(g._data) for g in self.gradients]
        program.outputs += [v for v in gradients if v is not None]
        return program, gradients


def trace_with_gradient(
    f: Callable[..., Any],
    args: Any,
    keywords: Any,
    wanted: Sequence[Tensor],
    structure: Any,
    passes: Sequence[str],
) -> _WithGradient:
    """Trace a function and its gradient with respect to Tensors and to the Variables it reads.

    Raises:
        NotReplayable: the function has effects; none has happened yet.
    """
    # pure, because a fallback calls the function again, which would repeat its effects
    trace = _CapturingTrace(pure=True, passes=passes)
    try:
        with trace:
            args, keywords, sources = structure(trace, args, keywords, wanted)
            tape = GradientTape()
            with tape:
                tape.watch(sources)
                result = f(*args, **keywords)
            targets = _differentiable(result)
            source_ids = {id(s) for s in sources}
            variables = [v for v in tape.watched_variables() if id(v) not in source_ids]
            ones = [TENSOR.positive(t) * 0 + 1 for t in targets]
            seeds = [wrap(trace.input(innermost_array(t._data))) for t in ones]
            grads = tape.gradient(targets, [*sources, *variables], seeds) if targets else []
            # IndexedSlices become dense
            gradients = [None if g is None else tensor(g) for g in grads]
            form, outputs = split_arrays(result)
            inexact = [t._data for t in targets]
            del result, targets  # a Tensor that `f` has written to must not outlive the trace
    except BaseException:
        trace.end()
        raise
    return _WithGradient(trace, form, outputs, inexact, gradients, variables)


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


def split_backward(program: Program, n_inputs: int, n_outputs: int) -> tuple[Program, Program]:
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


class _FunctionCall(RecordedCall):
    """One call of a traced function.

    Args:
        name: the function's name.
        backward: function of `held` and the upstream gradients that returns the gradients with
            respect to the sources.
        held: values that the forward program has kept for it.
        connected: what `_connected` returns for the gradients.
        sources: the Tensors and Variables that gradients are taken with respect to.
        again: calls the function itself on the sources; returns the results that have gradients.
    """

    def __init__(
        self,
        name: str,
        backward: Callable[..., Any],
        held: list[Any],
        connected: Sequence[frozenset[int] | None],
        sources: Sequence[Tensor],
        again: Callable[[], list[Tensor]],
    ) -> None:
        super().__init__(name)
        self._backward, self._held, self._connected = backward, held, connected
        self._sources, self._again = sources, again

    def record(self, outs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Offer the call to this thread's recorders."""
        self.unused, self._kinds = range(len(outs)), [(o.shape, o.dtype) for o in outs]
        super().record(outs, inputs)

    def gradients(self, xp: Any, g: tuple[Any, ...]) -> list[Any]:
        """Gradients from the backward program, or from a tape over another run of the function."""
        upstream = {k: x for k, x in enumerate(g) if x is not None}
        if xp is not TENSOR and not xp.nesting:  # batched arrays are not replayed
            like = next(iter(upstream.values()))
            pairs = zip(g, self._kinds, strict=True)
            full = [full_on_device_of(like, *kind) if x is None else x for x, kind in pairs]
            try:
                grads = iter(self._backward([*self._held, *full]))
                every = [None if of is None else (of, next(grads)) for of in self._connected]
                return [x[1] if x and not x[0].isdisjoint(upstream) else None for x in every]
            except NotReplayable:
                pass
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self._sources)
            targets = self._again()
        seeds = [x if isinstance(x, Tensor) else wrap(x) for x in upstream.values()]
        gradients = tape.gradient([targets[k] for k in upstream], self._sources, seeds)
        return [x if x is None or xp is TENSOR else tensor(x)._data for x in gradients]


class Pair:
    """A forward and a backward program, for one signature under tapes.

    Attributes:
        forward, backward: their replays.
        others: ids of Tensors that are read but are not sources: the function itself must be called
            if a tape knows one of them.
        read: the Variables that are read.
    """

    def __init__(
        self,
        f: Any,
        args: Any,
        keywords: Any,
        wanted: list[Tensor],
        options: Options,
        signature: Signature,
    ) -> None:
        both = trace_with_gradient(f, args, keywords, wanted, signature.inputs, options.passes)
        if not both.targets:
            raise NotReplayable("there is nothing to differentiate")
        self._result, self._variables, self._signature = both.form, both.variables, signature
        self._n_outputs = len(both.outputs)
        self._is_target = [any(o is t for t in both.targets) for o in both.outputs]
        program, gradients = both.program()
        self.read = [variable for variable, _ in program.reads]
        sources = {id(v) for v in (*both.variables, *wanted)}
        self.others = both.trace.captured | {
            v._id for v, _ in program.reads if id(v) not in sources
        }
        n = len(program.inputs) - len(both.targets)
        self._connected = _connected(program, program.inputs[n:], gradients)
        whole = optimized(program, options)
        programs = split_backward(whole, n, self._n_outputs)
        self.forward, self.backward = (planned(p, options)[1] for p in programs)
        program.forget_arrays()

    def __call__(
        self, f: Any, arrays: list[Any], args: Any, keywords: Any, wanted: list[Tensor]
    ) -> Any:
        """Replay `f` on arguments whose arrays are `arrays`, and record the call."""
        for v in self._variables:
            v._read()  # so that tapes that watch Variables on first use watch it
        mode, device = is_training(), default_device()
        values = dict(zip([v._id for v in self.read], read_together(self.read), strict=True))
        args, keywords = self._signature.mapped(_snapshot, args, keywords)

        def again() -> list[Tensor]:
            with training(mode), device, Scope(scopes.get(get_ident(), {}) | values):
                return _differentiable(f(*args, **keywords))

        sources = [*map(_snapshot, wanted), *self._variables]
        name = getattr(f, "__name__", "function")
        return fill_holes(self._result, iter(self.replayed(name, arrays, sources, again)))

    def replayed(
        self, name: str, arrays: list[Any], sources: list[Tensor], again: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """The Tensors of the result, recorded; for `again` see `_FunctionCall`."""
        results = self.forward(arrays)
        outs = [wrap(a) for a in results[: self._n_outputs]]
        held = results[self._n_outputs :]
        op = _FunctionCall(name, self.backward, held, self._connected, sources, again)
        targets = [o for o, is_target in zip(outs, self._is_target, strict=True) if is_target]
        op.record(targets, sources)
        return outs
