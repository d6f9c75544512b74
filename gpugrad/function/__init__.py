"""`gpugrad.function`: a function of Tensors, traced once for each signature and then replayed."""

from __future__ import annotations

import functools
import threading
import warnings
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad import backend, nest
from gpugrad.batched import levels_running
from gpugrad.errors import ArgumentError
from gpugrad.function.groups import find_groups
from gpugrad.function.numpy_replay import Replay
from gpugrad.function.passes import PASSES
from gpugrad.function.under_tape import (
    Recorded,
    parted,
    record_call,
    tapes_only,
    trace_with_gradient,
)
from gpugrad.recorder import recording_stopped
from gpugrad.tensor import IndexedSlices, Tensor, tensor, threads, wrap
from gpugrad.trace import OtherwiseError, Program, Tracing, running
from gpugrad.variable import Variable

__all__ = ["CacheInfo", "Function", "function"]

CacheInfo = namedtuple("CacheInfo", "hits traces otherwise")
"""How often a `Function` replayed, traced, and called the Python function instead."""

_MANY = 16  # traces from which on a new one is worth a warning


class _Plan:
    """One signature of a function: its program, what runs it, and the form of its result."""

    def __init__(self, program: Program, result: Any, passes: Sequence[str]) -> None:
        self.program, self.replay = _planned(program, passes)
        self.result = result


def _planned(program: Program, passes: Sequence[str]) -> tuple[Program, Replay]:
    for name in passes:
        if name in PASSES:
            program = PASSES[name](program)
    return program, Replay(find_groups(program) if "groups" in passes else program)


class _Pair:
    """One signature under tapes: a forward and a backward program."""

    def __init__(
        self, f: Any, args: Any, keywords: Any, wanted: list[Tensor], passes: Sequence[str]
    ) -> None:
        trace, result, targets, gradients, variables = trace_with_gradient(
            f, args, keywords, wanted, _given
        )
        program, n = trace.program, len(trace.program.inputs) - len(targets)
        self.variables = variables
        self.result, outputs = _taken(result)
        if not targets:
            raise OtherwiseError("there is nothing to differentiate")
        found = [g for g in gradients if g is not None]
        self.places = [g is not None for g in gradients]
        self.is_target = [any(o is t._data for t in targets) for o in outputs]
        program.outputs = [trace.place(o) for o in outputs]
        program.outputs += [trace.place(tensor(g)._data) for g in found]
        for name in passes:
            if name in PASSES:
                program = PASSES[name](program)
        forward, backward = parted(program, n, len(outputs))
        self.forward, self.backward = (_planned(p, passes)[1] for p in (forward, backward))
        self.n_outputs = len(outputs)

    def __call__(
        self, f: Any, arrays: list[Any], args: Any, keywords: Any, wanted: list[Tensor]
    ) -> Any:
        for v in self.variables:
            v._read()  # so that tapes that watch Variables on first use know of it
        made = self.forward(arrays)
        outs = [wrap(a) for a in made[: self.n_outputs]]
        sources = [*wanted, *self.variables]

        def again() -> Any:
            def run() -> list[Tensor]:
                result = f(*args, **keywords)
                return [t for t in nest.flatten(result)
                        if isinstance(t, Tensor) and backend.is_inexact(t.dtype)]  # fmt: skip

            return sources, run

        op = Recorded(getattr(f, "__name__", "function"), self.backward, made[self.n_outputs :],
                      self.places, again)  # fmt: skip
        targets = [o for o, is_target in zip(outs, self.is_target, strict=True) if is_target]
        record_call(op, targets, sources)
        return _filled(self.result, iter(outs))


def _given(trace: Tracing, args: Any, keywords: Any, wanted: list[Tensor]) -> Any:
    """The arguments as inputs of a trace, and among them those that are `wanted`."""
    inputs: dict[int, Tensor] = {}

    def traced(leaf: Any) -> Any:
        if isinstance(leaf, Variable) or not (isinstance(leaf, Tensor) or type(leaf) is np.ndarray):
            return leaf
        if id(leaf) not in inputs:
            inputs[id(leaf)] = wrap(trace.input(tensor(leaf)._data))
        return inputs[id(leaf)]

    given, named = nest.map_structure(traced, (args, keywords))
    return given, named, [inputs[id(x)] for x in wanted]


class Function:
    """What `gg.function` makes of a function; call it as the function itself."""

    def __init__(self, f: Callable[..., Any], passes: Sequence[str] | None = None) -> None:
        functools.update_wrapper(self, f)
        every = (*PASSES, "groups")
        self._passes = every if passes is None else tuple(passes)
        if unknown := set(self._passes) - set(every):
            raise ArgumentError(f"function: there are the passes {every}, not {sorted(unknown)}.")
        self._f = f
        self._plans: dict[Any, _Plan] = {}
        self._pairs: dict[Any, Any] = {}
        self._lock = threading.RLock()
        self._counts = [0, 0, 0]
        self._warned = False

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Replay what the function did with arguments like these, or trace it."""
        if running() is not None or levels_running():
            return self._f(*args, **keywords)  # part of what is traced or mapped
        if threads.stack:
            return self._recorded(args, keywords) if tapes_only() else self._f(*args, **keywords)
        key, arrays = self._signature(args, keywords)
        plan = self._plans.get(key)
        if plan is None:
            with self._lock:
                if key not in self._plans:
                    return self._trace(key, args, keywords)
                plan = self._plans[key]
        try:
            results = iter(plan.replay(arrays))
        except OtherwiseError:
            self._counts[2] += 1
            return self._f(*args, **keywords)
        self._counts[0] += 1
        return _filled(plan.result, results)

    def _recorded(self, args: Any, keywords: Any) -> Any:
        """A call under tapes: one entry of their logs, or the function itself if it has effects."""
        leaves = [x for x in nest.flatten((args, keywords)) if isinstance(x, Tensor)]
        wanted = [x for x in leaves if x._id and any(x._id in r.known for r in threads.stack)]
        key, arrays = self._signature(args, keywords)
        ids = [id(x) for x in leaves]
        key = ("with gradient", key, tuple(ids.index(id(x)) for x in wanted))
        pair: Any = self._pairs.get(key)
        if pair is None:
            with self._lock, recording_stopped():
                try:
                    pair = _Pair(self._f, args, keywords, wanted, self._passes)
                except OtherwiseError:
                    pair = False  # it has effects
            self._pairs[key] = pair
            self._counts[1] += 1
        if pair is False:
            self._counts[2] += 1
            return self._f(*args, **keywords)
        self._counts[0] += 1
        return pair(self._f, arrays, args, keywords, wanted)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def lower(self, *args: Any, **keywords: Any) -> Program:
        """The program for arguments like these, after the passes; ``print`` shows it.

        Raises:
            ArgumentError: the function was not called with such arguments before.
        """
        key, _ = self._signature(args, keywords)
        if key not in self._plans:
            raise ArgumentError(
                f"lower: {self.__name__} was not called with such arguments yet, and calling it "  # type: ignore[attr-defined]
                "may have effects. Call it once, then lower it."
            )
        return self._plans[key].program

    def cache_info(self) -> CacheInfo:
        """How often it replayed, traced, and called the Python function after all."""
        return CacheInfo(*self._counts)

    def clear(self) -> None:
        """Forget what was traced."""
        self._plans.clear()
        self._pairs.clear()

    # -- tracing

    def _signature(self, args: Any, keywords: Any) -> tuple[Any, list[Any]]:
        """What a program depends on, and the arrays of the arguments, each one once."""
        arrays: list[Any] = []
        seen: dict[int, int] = {}
        parts: list[Any] = []
        for leaf in nest.flatten((args, keywords)):
            if isinstance(leaf, Variable):
                parts.append(("Variable", leaf._id, leaf.shape, leaf.dtype))
            elif isinstance(leaf, Tensor) or type(leaf) is np.ndarray:
                at = seen.get(id(leaf))
                if at is None:
                    at = seen[id(leaf)] = len(arrays)
                    arrays.append(tensor(leaf)._data)
                array = arrays[at]
                parts.append((at, array.shape, array.dtype, str(backend.device_of(array))))
            else:
                try:
                    hash(leaf)
                except TypeError:
                    raise ArgumentError(
                        f"function: an argument is a {type(leaf).__name__}, which is neither a "
                        "Tensor nor hashable, so it cannot be told whether it has changed."
                    ) from None
                parts.append((type(leaf), leaf))
        return (_form(args), _form(keywords), tuple(parts), backend.default_device()), arrays

    def _trace(self, key: Any, args: Any, keywords: Any) -> Any:
        self._warn(key)
        with Tracing() as trace:
            given, named, _ = _given(trace, args, keywords, [])
            result = self._f(*given, **named)
            form, outputs = _taken(result)
        program = trace.program
        program.outputs = [trace.place(o) for o in outputs]
        self._plans[key] = _Plan(program, form, self._passes)
        for step in program.steps:
            step.results = []
        self._counts[1] += 1
        return _filled(form, iter([backend.bottom(o) for o in outputs]))

    def _warn(self, key: Any) -> None:
        if len(self._plans) < _MANY or self._warned:
            return
        self._warned = True
        before = next(reversed(self._plans))
        changed = [
            f"leaf {k}: {a!r:.60} and {b!r:.60}"
            for k, (a, b) in enumerate(zip(before[2], key[2], strict=False)) if a != b
        ]  # fmt: skip
        warnings.warn(
            f"{self.__name__} is traced for the {len(self._plans) + 1}th time. What changed among "  # type: ignore[attr-defined]
            f"its arguments: {'; '.join(changed) or 'their structure'}. Give numbers that change "
            "as Tensors, and pad what changes its shape.",
            stacklevel=5,
        )


def _form(structure: Any) -> Any:
    children = nest.children(structure)
    if children is None:
        return None
    return type(structure), tuple((k, _form(child)) for k, child in children)


class _Hole:
    """Where a result stands in a structure."""

    __slots__ = ("kind", "shape")

    def __init__(self, kind: str, shape: Any = None) -> None:
        self.kind, self.shape = kind, shape


def _taken(result: Any) -> tuple[Any, list[Any]]:
    """The structure of a result with holes for its arrays, and those arrays."""
    outputs: list[Any] = []
    leaves: list[Any] = []
    for leaf in nest.flatten(result):
        if isinstance(leaf, Variable):
            leaves.append(leaf)
        elif isinstance(leaf, Tensor):
            outputs.append(leaf._data)
            leaves.append(_Hole("tensor"))
        elif isinstance(leaf, IndexedSlices):
            outputs += [leaf.values._data, leaf.indices._data]
            leaves.append(_Hole("rows", leaf.dense_shape))
        else:
            leaves.append(leaf)
    return nest.pack(result, leaves), outputs


def _filled(form: Any, arrays: Any) -> Any:
    def filled(leaf: Any) -> Any:
        if type(leaf) is not _Hole:
            return leaf
        if leaf.kind == "tensor":
            made = next(arrays)
            return made if isinstance(made, Tensor) else wrap(made)
        return IndexedSlices(wrap(next(arrays)), wrap(next(arrays)), leaf.shape)

    return nest.map_structure(filled, form)


def function(f: Callable[..., Any] | None = None, *, passes: Sequence[str] | None = None) -> Any:
    """Make a function that runs once for each signature and replays what it did; a decorator.

    Args:
        f: function of Tensors, Variables and hashable values, in any nested structure. What it
            computes must follow from the values of its Tensor arguments and of Variables; other
            values that it reads, and its own branches, are those of the first call. Tapes,
            optimizers and random numbers in it work as outside.
        passes: which optimizations run; all if None.

    A signature is the structure of the arguments, shapes, dtypes and devices of their Tensors,
    which of them are the same, and the other values. Under a tape the gradient is traced with the
    function, and the call is one entry of the log. Inside a `vmap`, a ForwardAccumulator or
    another traced function, and under a tape if it has effects, the function itself is called.

    Raises:
        TraceError: a value is asked for while the function is traced, as by ``if x > 0``.
        ArgumentError: an argument that is neither a Tensor nor hashable.

    >>> import gpugrad as gg
    >>> @gg.function
    ... def step(x):
    ...     return gg.sum(x * x)
    >>> step(gg.constant([1.0, 2.0])).item(), step(gg.constant([2.0, 2.0])).item()
    (5.0, 8.0)
    >>> step.cache_info().traces
    1
    """
    if f is None:
        return functools.partial(function, passes=passes)
    return Function(f, passes)
