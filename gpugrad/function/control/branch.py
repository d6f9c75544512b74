"""Running a function within a traced one: a branch or a loop body that `within` wrote down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import ARRAYS, is_inexact
from gpugrad.core.tensor import Tensor, made_of, threads, wrap
from gpugrad.function.control.own_gradient import without_own
from gpugrad.function.on_tape import Pair, known, tapes_only
from gpugrad.function.plan import Options, optimized, planned
from gpugrad.function.signature import Signature
from gpugrad.trace.array import running
from gpugrad.trace.program import NotReplayable, Program, Undo, Value, filled

__all__ = ["Sub"]


class Sub:
    """A function within a traced one, as a function of a list of Tensors.

    Replayed where nobody records; one entry of the log under tapes, as a traced function is;
    step by step on Tensors else, so that every order and mode of derivative is there.

    Attributes:
        effects: what happens in it besides computing, by name, and how it is undone.
        shown: the program that is replayed.
    """

    def __init__(
        self, label: str, program: Program, effects: Sequence[tuple[str, Undo | None]],
        passes: Sequence[str] | None,
    ) -> None:  # fmt: skip
        self.label, self.effects = label, effects
        self._options = Options.of(label, passes, None, None)
        self._program = optimized(program, self._options)
        shown = optimized(without_own(self._program), self._options)
        self.shown, self._replay = planned(shown, self._options)
        self._program.forget_arrays()
        self._pairs: dict[tuple[int, ...], Any] = {}

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """What the function returns, recorded by whoever records."""
        if running() is not None or (threads.stack and not tapes_only()):
            return self.run(*tensors)
        if not threads.stack:
            return [wrap(a) for a in self._replay([t._data for t in tensors])]
        given = [made_of(t._data, t._id) for t in tensors]  # no object twice
        wanted = [k for k, t in enumerate(given) if known(t)]
        if not wanted:
            return [wrap(a) for a in self._replay([t._data for t in given])]
        sources = [given[k] for k in wanted]
        if len({t._id for t in sources}) < len(sources):
            return self.run(*tensors)
        pair: Any = self._pairs.get(tuple(wanted))
        if pair is None:
            with recording_stopped():
                try:
                    signature = Signature(self.run)
                    pair = Pair(self.run, given, {}, sources, self._options, signature)
                except NotReplayable:
                    pair = False  # it has effects
            self._pairs[tuple(wanted)] = pair
        if pair is False:
            return self.run(*tensors)

        def again() -> list[Tensor]:
            return [t for t in self.run(*given) if is_inexact(t.dtype)]

        made: list[Tensor] = pair.replayed(self.label, [t._data for t in given], sources, again)
        return made

    def run(self, *tensors: Tensor) -> list[Tensor]:
        """Do what the program says, step by step."""
        at: dict[int, Tensor] = {
            id(v): t for v, t in zip(self._program.inputs, tensors, strict=True)
        }

        def found(a: Any) -> Any:
            if isinstance(a, list):
                return [found(x) for x in a]
            if not isinstance(a, Value):
                return wrap(a) if type(a) in ARRAYS else a
            return at[id(a)] if a.constant is None else wrap(a.constant)

        trace = running()
        for step in self._program.steps:
            args, call = [found(a) for a in step.args], cast(Any, step.call)
            if step.op is not None:
                params = dict(step.params)
                if "index" in params:
                    params["index"] = filled(params["index"], args)
                made = step.op.eager(*args[: len(step.op.arrays) or None], **params)
            elif step.programs:  # a Staged that has effects
                made = call.eager(*args)
            elif trace is not None:
                about = [(v.shape, v.dtype) for v in step.outs]
                made = trace.effect(step.name, call, args, undo=step.undo, about=about)
            else:
                made = call(*args)
            made = [made] if isinstance(made, Tensor) else made
            at.update((id(v), t) for v, t in zip(step.outs, made, strict=True))
        return [found(v) for v in self._program.outputs]
