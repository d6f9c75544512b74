"""Several steps in one call: one batch per step along a new first axis."""

from __future__ import annotations

from typing import Any

from gpugrad.autodiff.batched import levels_running
from gpugrad.core import nest
from gpugrad.core.backend import TENSOR, is_array
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.function.callable import Function, P, R
from gpugrad.function.donation import releaser
from gpugrad.function.plan import Plan
from gpugrad.function.signature import Signature
from gpugrad.function.structures import fill_holes
from gpugrad.trace.array import current_trace
from gpugrad.trace.profiling import in_span, profiles
from gpugrad.trace.program import NotReplayable


class Steps(Function[P, R]):
    """A `Function` that takes several steps per call; `lower` and `memory` describe one step."""

    def __init__(self, steps: int, *options: Any) -> None:
        *others, donate = options
        super().__init__(*others)  # each step reads a view, so the memory is free after the last
        self._donate = Signature(self._f, donate=donate)
        if type(steps) is not int or steps < 1:
            raise ArgumentError(f"function: steps_per_call must be a positive int, got {steps!r}.")
        self._steps = steps
        self._arguments = (steps, *options)

    def _parts(self, args: Any, keywords: Any, alone: bool = False) -> list[tuple[Any, Any]]:
        """The arguments of each step.

        If `alone`, nothing records or traces the call, so that Tensors are split without ops.
        """
        k, at = self._steps, 0
        args, keywords = self._signature.opened(args, keywords)

        def cut(leaf: Any) -> Any:
            if alone and type(leaf) is Tensor:
                return wrap(leaf._data[at, ...])  # `...` keeps an array, not a NumPy scalar
            return leaf[at, ...] if _is_array(leaf) else leaf

        for path, leaf in self._signature.paths(args, keywords):
            if _is_array(leaf) and leaf.shape[:1] != (k,):
                raise ShapeError(
                    f"{self.__name__}: {path} has shape {leaf.shape}, and steps_per_call={k} needs "
                    f"length {k} along the first axis: one part for each step. Pass values that "
                    "all steps share as a Variable, a Python number, or gg.broadcast_to(x, (k, "
                    "*x.shape))."
                )
        steps = []
        for at in range(k):  # noqa: B007  # `cut` reads it
            steps.append(self._signature.mapped(cut, args, keywords))
        return steps

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        """Run the steps one after the other, and stack their results."""
        if profiles and not in_span():
            return self._timed(self.__call__, args, keywords)
        alone = current_trace() is None and not levels_running() and not threads.stack
        parts = self._parts(args, keywords, alone)
        results = self._together(parts) if alone else None
        if results is None:
            call = super().__call__
            results = [call(*args, **keywords) for args, keywords in parts]
        if alone:
            releaser(self._donate.donated(args, keywords), self.__name__)()
        return _stack(self.__name__, results)

    def _together(self, parts: list[tuple[Any, Any]]) -> list[Any] | None:
        """The results of all steps by one CUDA graph; None if they must run one by one."""
        keys = [self._signature.key(*part) for part in parts]
        plan = self._plans.get(keys[0][0])
        if plan is None or not plan.replay.repeats or any(key != keys[0][0] for key, _ in keys):
            return None
        try:
            results = plan.replay.several([arrays for _, arrays in keys])
        except NotReplayable:
            return None
        self._counts[0] += len(parts)
        return [fill_holes(plan.result, iter(r)) for r in results]

    def _plan(self, args: Any, keywords: Any) -> Plan:
        args, keywords = self._parts(args, keywords)[0]
        return super()._plan(args, keywords)

    def _arrays(self, args: Any, keywords: Any) -> list[Any]:
        return super()._arrays(*self._parts(args, keywords)[0])


def _is_array(leaf: Any) -> bool:
    return is_array(leaf) or (isinstance(leaf, Tensor) and not isinstance(leaf, Variable))


def _stack(name: str, results: list[Any]) -> Any:
    """Stack the Tensors in the results of several steps; other leaves are the first step's."""
    columns = [nest.flatten_like(results[0], r, f"{name}: the results") for r in results]
    leaves = []
    for column in zip(*columns, strict=True):
        if isinstance(column[0], IndexedSlices):
            raise ArgumentError(
                f"{name}: a result is IndexedSlices, which steps_per_call cannot stack. Return "
                "x.to_dense()."
            )
        is_tensor = isinstance(column[0], Tensor) and not isinstance(column[0], Variable)
        leaves.append(TENSOR.stack(list(column)) if is_tensor else column[0])
    return nest.pack(results[0], leaves)
