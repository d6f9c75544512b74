"""Looking at values while a traced function runs."""

from __future__ import annotations

import builtins
from typing import Any

from gpugrad.autodiff.batched import levels_of, levels_running, unwrap_level
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.trace.array import running

__all__ = ["print"]


def print(format: str, /, *args: Any, **keywords: Any) -> None:
    """Print values, in a traced function at each replay and in the order of the calls.

    Args:
        format: as of `str.format`: ``"{} {name:.3f}"``.
        args, keywords: for its fields. Of a Tensor it is the values as a NumPy array (as a Python
            number for one of shape ``()``); all else is what it was when it was traced.

    Under `gg.vmap` there is a line for each example, the last vmap's varying fastest. Gradients
    are not affected; a traced function that prints is under tapes not replayed but called. Where
    `gg.cond` and its like are differentiated twice in a traced function, what they compute again
    they print again.

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
    given = [*args, *keywords.values()]
    places = [k for k, value in enumerate(given) if isinstance(value, Tensor)]

    def say(*tensors: Tensor) -> list[Tensor]:
        values = list(given)
        for k, t in zip(places, tensors, strict=True):
            values[k] = t.numpy() if t.ndim else t.item()
        n = len(args)
        builtins.print(format.format(*values[:n], **dict(zip(names, values[n:], strict=True))))
        return []

    values = [wrap(given[k]._read()._data) for k in places]
    trace = running()
    with recording_stopped():
        for line in _examples(values):
            if trace is None:
                say(*line)
            else:
                trace.effect("print", say, line)


def _examples(tensors: list[Tensor]) -> list[list[Tensor]]:
    """The Tensors of each example of the vmaps that are running, the outermost first."""
    lines = [tensors]
    for level in levels_running():
        if any(level.is_in(t._data) for line in lines for t in line):
            lines = [list(each) for line in lines for each in zip(*[
                list(unwrap_level(t, level, 0)) if level in levels_of(t._data) else [t] * level.size
                for t in line
            ], strict=True)]  # fmt: skip
    return lines
