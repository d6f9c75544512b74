"""Debugging: print values inside traced functions."""

from __future__ import annotations

import builtins
from typing import Any

from gpugrad.autodiff.batched import Level, levels_of, levels_running, unwrap_level
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.trace.array import current_trace

__all__ = ["print"]


def print(format: str, /, *args: Any, **keywords: Any) -> None:
    """Print values; in a traced function at each replay, in the order of the calls.

    Args:
        format: a format string, as for `str.format`: ``"{} {name:.3f}"``.
        args, keywords: values for its fields. A Tensor is formatted as a NumPy array, one of shape
            ``()`` as a Python number; other values are those at the time of tracing.

    Under `gg.vmap` there is a line for each example, and the innermost vmap varies fastest.
    Gradients are not affected. Under a tape, a traced function that prints is called instead of
    replayed. When `gg.cond` or a loop is differentiated twice in a traced function, what it
    recomputes is printed again.

    >>> @gg.function
    ... def f(x):
    ...     gg.debug.print("x is {x}, its sum {:.2f}", gg.sum(x), x=x)
    ...     return x * 2
    >>> y = f(gg.constant([1.0, 2.0]))
    x is [1. 2.], its sum 3.00
    >>> y = f(gg.constant([3.0, 4.0]))
    x is [3. 4.], its sum 7.00
    """
    names = list(keywords)
    arguments = [*args, *keywords.values()]
    positions = [k for k, value in enumerate(arguments) if isinstance(value, Tensor)]

    def print_line(*tensors: Tensor) -> list[Tensor]:
        values = list(arguments)
        for k, t in zip(positions, tensors, strict=True):
            values[k] = t.numpy() if t.ndim else t.item()
        n = len(args)
        builtins.print(format.format(*values[:n], **dict(zip(names, values[n:], strict=True))))
        return []

    values = [wrap(arguments[k]._read()._data) for k in positions]
    trace = current_trace()
    with recording_stopped():
        for line in _examples(values):
            if trace is None:
                print_line(*line)
            else:
                trace.effect("print", print_line, line)


def _examples(tensors: list[Tensor]) -> list[list[Tensor]]:
    """The Tensors of each example of the running vmaps, the outermost vmap varying slowest."""
    lines = [tensors]
    for level in levels_running():
        if any(level.is_in(t._data) for line in lines for t in line):
            parts = [[_each(t, level) for t in line] for line in lines]
            lines = [list(each) for columns in parts for each in zip(*columns, strict=True)]
    return lines


def _each(t: Tensor, level: Level) -> list[Tensor]:
    """The Tensors of a level's examples: the same one for each if it does not vary there."""
    if level in levels_of(t._data):
        return list(unwrap_level(t, level, 0))
    return [t] * level.size
