"""The borders of a vmap, where tapes record linear functions.

`wrap_level` makes an array Batched, and `unwrap_level` undoes it. A *crossing* marks where an array
that all examples share meets a Batched one: its gradient, seen from outside, is the sum over the
examples.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from gpugrad.autodiff.batched import Batched, Level, levels_of, levels_running
from gpugrad.autodiff.readings import crossings
from gpugrad.autodiff.recordable import Recordable
from gpugrad.autodiff.recorder import number, record
from gpugrad.core.backend import TENSOR, as_array, is_inexact, reading
from gpugrad.core.listening import graphs, recorders
from gpugrad.core.tensor import Tensor, index_parts, wrap

Linear = Callable[[Any], Any]


class _Border(Recordable):
    """A linear function of one array at the border of a vmap, as a tape logs it: its two rules."""

    def __init__(self, name: str, forward: Linear, adjoint: Linear, inside: Linear | None) -> None:
        self.name, self.inside = name, inside
        self.rules = self.masked = (lambda xp, g, saved, params: adjoint(g),)
        self.jvps = (lambda xp, t, saved, params: forward(t),)


def _record_border(
    name: str, x: Tensor, data: Any, forward: Linear, adjoint: Linear, inside: Linear | None = None
) -> Tensor:
    """A Tensor of `data`, which the border function `forward` has computed from `x`."""
    out = wrap(data)
    if recorders and is_inexact(x.dtype):
        serial = number(x) if graphs else x._id
        if serial:
            border = _Border(name, forward, adjoint, inside)
            record(border, out, (serial,), (None,), (), None)
            if inside is not None and out._id:
                crossings[out._id] = border
    return out


@contextlib.contextmanager
def inside_levels_of(*tensors: Tensor) -> Iterator[None]:
    """Activate the levels of some Tensors again, so that code runs for one example."""
    levels = {level: None for t in tensors for level in levels_of(t._data)}
    with contextlib.ExitStack() as entered:
        for level in levels:
            if level not in levels_running():
                entered.enter_context(level)
        yield


def wrap_level(x: Any, level: Level, axis: int) -> Any:
    """`x`, which has the examples of `level` along `axis`, as a Batched array."""
    if isinstance(x, Tensor):
        wrap = functools.partial(wrap_level, level=level, axis=axis)
        unwrap = functools.partial(unwrap_level, level=level, axis=axis)
        return _record_border("vmap's input", x, wrap(x._kept()), wrap, unwrap)
    if type(x) is Batched and x.level.serial > level.serial:  # inner levels wrap outer ones
        return Batched(wrap_level(x.stacked, level, axis + 1), x.level)
    return Batched(reading(x).moveaxis(x, axis, 0) if axis else x, level)


def unwrap_level(x: Any, level: Level, axis: int) -> Any:
    """`x` with the examples of `level` along `axis`; repeated for each if all share it."""
    if isinstance(x, Tensor):
        if not level.is_in(x._data):
            return _repeat(TENSOR, x, level, axis)
        wrap = functools.partial(wrap_level, level=level, axis=axis)
        unwrap = functools.partial(unwrap_level, level=level, axis=axis)
        return _record_border("vmap's output", x, unwrap(x._data), unwrap, wrap)
    if not level.is_in(x):
        return _repeat(reading(x), x, level, axis)
    if x.level is not level:
        return Batched(unwrap_level(x.stacked, level, axis + 1), x.level)
    return reading(x.stacked).moveaxis(x.stacked, 0, axis) if axis else x.stacked


def examples(x: Tensor, level: Level) -> list[Tensor]:
    """The Tensors of a level's examples: the same one for each if it does not vary there."""
    return list(unwrap_level(x, level, 0)) if level.is_in(x._data) else [x] * level.size


def _repeat(xp: Any, x: Any, level: Level, axis: int) -> Any:
    shape = (*x.shape[:axis], level.size, *x.shape[axis:])
    return xp.broadcast_to(xp.expand_dims(x, axis=axis), shape)


def meet_levels(*values: Any) -> list[Any]:
    """An op's arguments, with a crossing for each recorded one that meets Batched ones."""
    levels = [level for v in values if isinstance(v, Tensor) for level in levels_of(v._data)]
    return [
        functools.reduce(_cross, [n for n in levels if n not in levels_of(v._data)], v)
        if isinstance(v, Tensor) and (v._id or graphs)
        else v
        for v in values
    ]


def _cross(x: Any, level: Level) -> Any:
    """`x` itself; outside, its gradient is summed over the examples of `level`."""
    if not isinstance(x, Tensor):
        return x
    before = crossings.get(x._id)

    def inside(array: Any) -> Any:
        return _wrap_shared(array if before is None else before.inside(array), level)

    total = functools.partial(_sum_examples, level=level)
    cross = functools.partial(_cross, level=level)
    return _record_border("vmap", x, x._data, cross, total, inside)


def _sum_examples(g: Any, level: Level) -> Any:
    """A gradient: unchanged inside the level, summed over its examples outside."""
    if level in levels_running():
        return g
    data = g._data if isinstance(g, Tensor) else g
    if not level.is_in(data):  # it crossed already, where a rule ran on Tensors
        return g
    if isinstance(g, Tensor):
        total = functools.partial(_sum_examples, level=level)
        share = functools.partial(_wrap_shared, level=level)
        return _record_border("vmap", g, total(data), total, share)
    if g.level is not level:
        return Batched(_sum_examples(g.stacked, level), g.level)
    return as_array(reading(g.stacked).sum(g.stacked, axis=0), type(g.stacked))


def _wrap_shared(x: Any, level: Level) -> Any:
    """`x` as a Batched array with the same value for each example."""
    data = x._data if isinstance(x, Tensor) else x
    if level.is_in(data):
        return x
    if type(data) is Batched and data.level.serial > level.serial:
        batched = Batched(_wrap_shared(data.stacked, level), data.level)
    else:
        batched = Batched(_repeat(reading(data), data, level, 0), level)
    if not isinstance(x, Tensor):
        return batched
    total = functools.partial(_sum_examples, level=level)
    share = functools.partial(_wrap_shared, level=level)
    return _record_border("vmap", x, batched, share, total)


def give_each_example(x: Any) -> Any:
    """A Tensor or array with a value for each example of every vmap that is running."""
    return functools.reduce(_wrap_shared, levels_running(), x)


def give_each(x: Tensor, index: Any) -> Tensor:
    """`x` with a value for each example, if the index that reads it has one."""
    levels = [level for part in index_parts(index) for level in levels_of(part)]
    return functools.reduce(_wrap_shared, levels, x)
