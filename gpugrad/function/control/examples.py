"""Control flow for all examples of a vmap that is not among those in which it was traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from gpugrad.autodiff.batched import Level, levels_running, levels_stopped
from gpugrad.autodiff.borders import unwrap_level, wrap_level
from gpugrad.core import devices
from gpugrad.core.backend import innermost_array
from gpugrad.core.tensor import Tensor
from gpugrad.function.control.branch import Branch
from gpugrad.function.control.tracing import BranchTrace, trace_branch
from gpugrad.trace.array import current_trace
from gpugrad.trace.shapes import blank_arrays


def trace_examples(
    branch: Branch, size: int, is_each: list[bool], tensors: Sequence[Tensor], n_carry: int = 0
) -> tuple[BranchTrace, list[Any]]:
    """Trace a branch or body for all examples, which its arrays have in front.

    Args:
        branch: the branch.
        size: the number of examples.
        is_each: which arguments have a value for each example. In the carry those become true that
            the body gives one.
        tensors: its arguments, which tell the device.
        n_carry: how many first arguments are replaced by as many first results. All other results
            have a value for each example.

    Returns:
        Its trace, and the results as NumPy or CuPy arrays.
    """
    trace, n = current_trace(), n_carry
    assert trace is not None
    places = [devices.device_of(innermost_array(t._data)) for t in tensors]

    def run(*arrays: Tensor) -> list[Tensor]:
        with Level(size, randomness="same") as level:
            pairs = zip(arrays, is_each, strict=True)
            outs = branch.run(*(wrap_level(a, level, 0) if each else a for a, each in pairs))
            for k, out in enumerate(outs[:n]):
                is_each[k] |= level.is_in(out._data)
            results = [*is_each[:n], *(True for _ in outs[n:])]
            pairs = zip(outs, results, strict=True)
            return [unwrap_level(out, level, 0) if each else out for out, each in pairs]

    before: list[bool] = []
    while is_each != before:
        before, inputs = [*is_each], branch.program.inputs
        specs = [
            ((size,) * each + v.shape, v.dtype) for v, each in zip(inputs, is_each, strict=True)
        ]
        like = blank_arrays(specs, places[0] if places else devices.default_device())
        with levels_stopped():
            traced, outs = trace_branch(trace, branch.label, run, like)
    return traced, outs


def without_levels(x: Tensor, levels: Sequence[Level], repeat: bool = False) -> Tensor:
    """A Tensor with the examples of some levels in front; with `repeat` also of those it lacks."""
    for level in sorted(levels, key=lambda level: -level.serial):
        if repeat or level.is_in(x._data):
            x = unwrap_level(x, level, 0)
    return x


def with_levels(x: Tensor, levels: Sequence[Level]) -> Tensor:
    """The opposite of `without_levels`."""
    for level in sorted(levels, key=lambda level: level.serial):
        x = wrap_level(x, level, 0)
    return x


@contextlib.contextmanager
def stopped(levels: Sequence[Level]) -> Iterator[None]:
    """Leave some of the vmaps that are running."""
    others = [level for level in levels_running() if level not in levels]
    with levels_stopped(), contextlib.ExitStack() as entered:
        for level in others:
            entered.enter_context(level)
        yield
