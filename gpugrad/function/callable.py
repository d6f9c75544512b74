"""`Function`: a function of Tensors, traced once for each signature and then replayed."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from gpugrad.autodiff.batched import levels_running
from gpugrad.autodiff.graph import GraphNeeded, in_graph
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core import backend
from gpugrad.core.decorated import public_name
from gpugrad.core.forking import new_rlock
from gpugrad.core.listening import recorders, threads
from gpugrad.core.ranks import ranks
from gpugrad.core.replaceable import write_together
from gpugrad.core.settings import numerics
from gpugrad.core.tensor import Tensor
from gpugrad.core.user_code import user_level
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, GpugradWarning, saying_where
from gpugrad.function.cache import Cache
from gpugrad.function.differentiate import known, tapes_only
from gpugrad.function.donation import releaser
from gpugrad.function.inspect.lowered import Lowered
from gpugrad.function.memory import Memory, measure
from gpugrad.function.on_tape import Pair
from gpugrad.function.plan import FirstCall, MaskedCall, Options, Plan
from gpugrad.function.signature import Names, Signature, never
from gpugrad.function.structures import fill_holes, split_arrays
from gpugrad.trace.array import current_trace
from gpugrad.trace.listener import leave_ended_blocks
from gpugrad.trace.profiling import Span, in_span, profiles
from gpugrad.trace.program import NotMasked, NotReplayable, Program
from gpugrad.trace.shapes import ShapeTrace
from gpugrad.trace.tracing import Tracing

CacheInfo = namedtuple("CacheInfo", "hits traces otherwise")
"""How often a `Function` replayed, traced, or called the Python function instead."""

P = ParamSpec("P")
R = TypeVar("R")

_MANY = 16  # traces after which another one is worth a warning


class Function(Generic[P, R]):
    """A traced function, as `gg.function` returns it; call it like the function itself."""

    @functools.partial(saying_where, name="function")
    def __init__(
        self,
        f: Callable[P, R],
        passes: Sequence[str] | None = None,
        static: Names = (),
        remat: str | None = None,
        memory_limit: int | None = None,
        donate: Names = (),
    ) -> None:
        functools.update_wrapper(self, f)
        self._arguments: tuple[Any, ...] = (f, passes, static, remat, memory_limit, donate)
        self.__name__ = getattr(f, "__name__", type(f).__name__)  # a partial has no name
        self._options = Options.of(self.__name__, passes, remat, memory_limit)
        self._f, self._signature = f, Signature(f, static, donate)
        self._plans, self._pairs = Cache(), Cache()
        self._latest: Plan | None = None  # the plan of the last call, if it may fit the next
        self._lock = new_rlock()
        self._counts = [0, 0, 0]
        self._warned = self._in_graph = False
        self._creating: set[Any] = set()

    def __call__(self, /, *args: P.args, **keywords: P.kwargs) -> R:
        """Replay the program for arguments like these, or trace it."""
        if current_trace() is not None or levels_running():
            return self._f(*args, **keywords)  # part of another trace or of a vmap
        if recorders:
            if profiles and not in_span():
                call = functools.partial(Function.__call__, self)
                return self._timed(call, args, keywords)
            if threads.stack:
                leave_ended_blocks()
            if threads.stack:
                args, keywords = self._signature.opened(args, keywords)
                if tapes_only() and not numerics():
                    return self._recorded(args, keywords)
                return self._f(*args, **keywords)
        latest = self._latest
        if latest is not None and not keywords and (fitting := latest.fits(args)) is not None:
            return self._replayed(latest, fitting, args, keywords, None)
        args, keywords = self._signature.opened(args, keywords)
        key, arrays = self._signature.key(args, keywords)
        release = None
        if self._signature.donate:
            release = releaser(self._signature.donated(args, keywords), self.__name__)
        plan = self._plans.get(key)
        if plan is None:
            with self._lock:
                plan = self._plans.get(key)
                if plan is None:
                    self._warn(self._plans, key, args, keywords)
                    # a check of numerics names the layer in which a value is NaN
                    if not numerics() or self._options.memory_limit is not None or ranks.size > 1:
                        with contextlib.suppress(NotReplayable):
                            return self._first(key, arrays, args, keywords, release)
                    return self._trace(key, arrays, args, keywords, release)
        if not self._signature.donate:
            if plan.fits is None:
                plan.fits = self._signature.test(args, keywords)
            if plan.fits is not never:
                self._latest = plan
        return self._replayed(plan, arrays, args, keywords, release)

    def __repr__(self) -> str:
        traces = self._counts[1]
        return f"<gg.function {self.__name__}: {traces} trace{'s' * (traces != 1)}>"

    def _timed(self, call: Callable[..., Any], args: Any, keywords: Any) -> Any:
        """A call as one span of the running profiles."""
        before = self._counts[1]
        with Span("function", self.__name__) as span:
            result = call(*args, **keywords)
            if self._counts[1] > before:
                span.rename("trace")
            elif not self._signature.donate and not threads.stack:
                for profile in profiles:
                    profile.calls[id(self)] = self, args, keywords
        return result

    def _recorded(self, args: Any, keywords: Any) -> Any:
        """A call under tapes: one entry in their logs, or the function itself if it has effects."""
        leaves = [x for x in self._signature.leaves(args, keywords) if isinstance(x, Tensor)]
        wanted = list({id(x): x for x in leaves if known(x)}.values())
        key, arrays = self._signature.key(args, keywords)
        ids = [id(x) for x in leaves]
        key = ("with gradient", key, tuple(ids.index(id(x)) for x in wanted))
        pair: Any = self._pairs.get(key)
        if pair is None:
            self._warn(self._pairs, key, args, keywords)
            once = False
            with self._lock, recording_stopped():
                try:
                    pair = self._with_graph(
                        lambda: Pair(
                            self._f, args, keywords, wanted, self._options, self._signature
                        )
                    )
                except NotReplayable as error:
                    pair = False  # it has effects
                    once = error.once
            if pair or not once:
                self._pairs[key] = pair
            self._counts[1] += 1
        if pair and not any(n in r.known for n in pair.others for r in threads.stack):
            with contextlib.suppress(NotReplayable):
                result = pair(self._f, arrays, args, keywords, wanted)
                self._counts[0] += 1
                return result
        self._counts[2] += 1
        return self._f(*args, **keywords)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else _Method(self, owner)

    def __reduce__(self) -> Any:
        """Pickle and copy by name if a module has it, as for functions; other copies trace anew."""
        return public_name(self) or (type(self), self._arguments)

    def lower(self, /, *args: Any, **keywords: Any) -> Lowered:
        """The program for arguments like these, after the passes; ``print`` shows it.

        If there was no call with such arguments yet, the function is traced, and Variables,
        optimizers and random generators are reset afterwards.

        Raises:
            ArgumentError: there was no such call yet, and an effect of it cannot be undone.

        >>> print(gg.function(lambda x: gg.sum(x * x)).lower(gg.ones(3)))
        inputs: in0 float32[3]
        t0 float32[3] = multiply(in0, in0)
        t1 float32[] = sum(t0)
        return t1
        """
        plan = self._plan(args, keywords)
        return Lowered(self.__name__, plan.program, plan.replay, self._arrays(args, keywords))

    def memory(self, /, *args: Any, **keywords: Any) -> Memory:
        """The memory that a replay with arguments like these takes; raises as `lower` does.

        >>> f = gg.function(lambda x: gg.sum(gg.tanh(gg.exp(x) + 1)))
        >>> print(f.memory(gg.ones((100, 256))))
        peak 200 KiB, at step 4 of 4: sum -> float32[]
          arguments            100 KiB
          planned buffers      100 KiB
          results                  4 B
        """
        plan = self._plan(args, keywords)
        return measure(plan.program, plan.replay)

    def _arrays(self, args: Any, keywords: Any) -> list[Any]:
        return self._signature.key(*self._signature.opened(args, keywords))[1]

    def _plan(self, args: Any, keywords: Any) -> Plan:
        """The plan for arguments like these; before the first call, trace and undo the effects."""
        args, keywords = self._signature.opened(args, keywords)
        key, _ = self._signature.key(args, keywords)
        plan = self._plans.get(key)
        if plan is not None:
            return plan
        trial = functools.partial(Tracing, trial=True)
        try:
            with self._lock, recording_stopped():
                trace, form, _ = self._traced(args, keywords, trial)
            return Plan(trace.program, form, self._options)
        except NotReplayable as error:
            raise ArgumentError(
                f"{self.__name__} was not called with such arguments yet, and its effect '{error}' "
                "cannot be undone. Call it once before."
            ) from None

    def cache_info(self) -> CacheInfo:
        """How often it replayed, traced, or called the Python function instead."""
        return CacheInfo(*self._counts)

    def clear(self) -> None:
        """Drop all traced programs."""
        self._latest = None
        self._plans.clear()
        self._pairs.clear()

    def _replayed(
        self,
        plan: Plan,
        arrays: list[Any],
        args: Any,
        keywords: Any,
        release: Callable[[], None] | None,
        count: int = 1,
    ) -> Any:
        """The result of a program, or of the function itself where a replay would differ."""
        try:
            results = iter(plan.run(arrays, release))
        except NotReplayable as error:
            is_nan = type(error) is NotMasked
        else:
            self._counts[0] += count
            return fill_holes(plan.result, results)
        if is_nan and (plan.masked or self._is_worth_masking(plan)):
            arrays = self._signature.key(args, keywords)[1]  # a replay has emptied the list
            if plan.masked:
                return self._replayed(plan.masked, arrays, args, keywords, release)
            with self._lock:
                return self._trace(None, arrays, args, keywords, release, plan)
        self._counts[2] += count
        result = self._f(*args, **keywords)
        if release:
            release()
        return result

    def _is_worth_masking(self, plan: Plan) -> bool:
        """Count a replay that has met a NaN; whether another program is worth its trace.

        With several processes, a trace and its replay would communicate twice.
        """
        plan.nans += 1
        return self._options.is_worth_masking(plan.nans) and ranks.size == 1

    def _trace(
        self,
        key: Any,
        arrays: list[Any],
        args: Any,
        keywords: Any,
        release: Callable[[], None] | None,
        plain: Plan | None = None,
    ) -> Any:
        """The result of the first call, which writes the program; masked, beside a `plain` plan."""
        # after it, no replay, in which this rank would communicate once more than others
        first = FirstCall if ranks.size == 1 else Tracing
        trace, form, outputs = self._traced(args, keywords, MaskedCall if plain else first)
        self._counts[1] += 1
        if trace.makes is not None:  # for example a layer that creates its Variables when called
            self._creates(key, trace.makes)
        if trace.makes is None or not trace.committed:
            plan = Plan(trace.program, form, self._options)
            if trace.makes is None and plain:
                plain.masked = plan
            elif trace.makes is None:
                self._plans[key] = plan
            if not trace.committed:  # see `FirstCall`; or another thread has changed its Variables
                del trace, outputs  # they hold arrays that a replay may write over
                return self._replayed(plan, arrays, args, keywords, release, count=0)
        if release:
            release()
        return fill_holes(form, iter([backend.innermost_array(o) for o in outputs]))

    def _first(
        self,
        key: Any,
        arrays: list[Any],
        args: Any,
        keywords: Any,
        release: Callable[[], None] | None,
    ) -> Any:
        """The result of the first call by a replay, planned on shapes: all is computed once.

        Raises:
            NotReplayable: the function must be traced on values. Nothing has changed, but that
                Variables exist which it creates.
        """
        trace: Any
        with recording_stopped():
            trace, form, _ = self._traced(args, keywords, ShapeTrace)
        made, plan = trace.makes, Plan(trace.program, form, self._options)
        created = trace.values_of_created() if made is not None else None
        del trace  # it holds the arguments
        if made is None:
            self._plans[key] = plan
        else:
            self._creates(key, made)
        try:
            results = iter(plan.run(arrays, release))
        except NotReplayable:
            arrays[:] = self._signature.key(args, keywords)[1]  # a replay has emptied the list
            self._plans.drop(key)
            if created is not None:
                self._set_created(created, list(arrays))
            raise
        self._counts[1] += 1
        return fill_holes(form, results)

    def _set_created(self, created: tuple[Sequence[Variable], Program], arrays: list[Any]) -> None:
        """Give Variables that the function has created their values, as shapes alone cannot."""
        variables, program = created
        if variables:
            write_together(variables, Plan(program, None, self._options).run(arrays))

    def _traced(
        self, args: Any, keywords: Any, new: Callable[..., Tracing] = FirstCall
    ) -> tuple[Tracing, Any, list[Any]]:
        """A trace of a call, the form of the result, and its arrays."""

        def traced() -> tuple[Tracing, Any, list[Any]]:
            trace = new(passes=self._options.passes)
            try:
                with trace:
                    inputs = self._signature.inputs(trace, args, keywords, [])
                    form, outputs = split_arrays(self._f(*inputs[0], **inputs[1]))
                    trace.returned(outputs)
            except BaseException:
                trace.end()
                if isinstance(trace, ShapeTrace) and trace.created:
                    arrays = self._signature.key(args, keywords)[1]
                    self._set_created(trace.values_of_created(), arrays)
                raise
            return trace, form, outputs

        return self._with_graph(traced)

    def _with_graph(self, trace: Callable[[], Any]) -> Any:
        """The result of `trace`; if the function calls `gradients`, traced once more in a Graph.

        A Graph numbers and keeps everything, so other functions are traced without one.
        """
        try:
            return trace()
        except GraphNeeded:
            if self._in_graph:  # it has stopped recording
                raise
            self._in_graph, self._f = True, in_graph(self._f)
            return trace()

    def _creates(self, key: Any, variable: Variable) -> None:
        """Note that a call has created a Variable. The next call will not, so it is traced anew."""
        if key in self._creating:
            warnings.warn(
                f"{self.__name__} creates Variables in every call, as '{variable.name}', so it is "
                "traced in every call. Create them outside, or in the first call only.",
                GpugradWarning,
                stacklevel=user_level(),
            )
        self._creating.add(key)

    def _warn(self, traced: Cache, key: Any, args: Any, keywords: Any) -> None:
        if traced.added < _MANY or self._warned:
            return
        self._warned = True
        before, now = traced.newest, key
        if traced is self._pairs:
            (_, before, _), (_, now, _) = before, now
        changed = self._signature.changes(before, now, args, keywords)
        warnings.warn(
            f"{self.__name__} is traced for the {traced.added + 1}th time. What changed: "
            f"{'; '.join(changed) or 'which arguments gradients are taken with respect to'}.",
            GpugradWarning,
            stacklevel=user_level(),
        )


class _Method(functools.partial[Any]):
    """A `Function` bound to an object as a method; all objects share its programs."""

    func: Function[..., Any]

    def lower(self, /, *args: Any, **keywords: Any) -> Lowered:
        """See `Function.lower`."""
        return self.func.lower(*self.args, *args, **keywords)

    def memory(self, /, *args: Any, **keywords: Any) -> Memory:
        """See `Function.memory`."""
        return self.func.memory(*self.args, *args, **keywords)

    def cache_info(self) -> CacheInfo:
        """See `Function.cache_info`."""
        return self.func.cache_info()

    def clear(self) -> None:
        """See `Function.clear`."""
        self.func.clear()
