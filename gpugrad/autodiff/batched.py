"""vmap's arrays: they hold the values of all examples, but have the shape of one.

A `Batched` array wraps an array with the examples along axis 0. It has its own reading of the
formulas: a composite runs unchanged, an elementwise op gets its arrays aligned behind the batch
axis, and a primitive runs the `batch` formula of its record. In nested vmaps the inner vmap's
Batched array wraps the outer one's.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import (
    ARRAYS,
    EXAMPLES,
    NUMPY,
    READINGS,
    Reading,
    between_numbers,
    reading,
)
from gpugrad.core.forking import new_rlock
from gpugrad.core.operators import Wrapper, add_operators
from gpugrad.core.tensor import index_parts, require_one_library
from gpugrad.errors import ArgumentError, AxisError, ShapeError
from gpugrad.kernels.cpu.large import LARGE, elements, on_threads


class _BatchedReading(Reading):
    """Runs an op on all examples together; runs a composite's body."""

    nesting = 2

    def function_of(self, op: Any) -> Callable[..., Any]:
        """The body of a composite, or the rule `batch` of another op."""
        return op.body(self) if op.is_opened else batched_reading(op)


BATCHED = _BatchedReading("batched")
_serial = itertools.count(1)
_alive: set[int] = set()
_alive_lock = new_rlock()  # a level may be freed at any time, here too


class _Active(threading.local):
    """The levels of the vmaps that one thread is running, the outermost first."""

    levels: tuple[Level, ...] = ()


_active = _Active()


def levels_running() -> tuple[Level, ...]:
    """The levels of the vmaps that this thread is running, the outermost first."""
    return _active.levels


class levels_stopped:
    """Leaves the vmaps that this thread is running, for the length of the block."""

    def __enter__(self) -> None:
        self._levels, _active.levels = _active.levels, ()

    def __exit__(self, *exc: object) -> None:
        _active.levels = self._levels


class Level:
    """One run of a `vmap`: its number of examples, and how it draws random numbers.

    Inside its ``with`` block every value and every gradient belongs to one example; outside, a
    gradient is the sum over the examples.
    """

    serial = 0

    def __init__(self, size: int, randomness: str) -> None:
        self.size, self.randomness, self.serial = size, randomness, next(_serial)
        with _alive_lock:
            _alive.add(self.serial)
            READINGS[Batched] = BATCHED  # only while there is a level: ops are faster without
            ARRAYS.add(Batched)
            EXAMPLES.add(Batched)

    def __del__(self) -> None:
        with _alive_lock:
            _alive.discard(self.serial)
            if not _alive:
                EXAMPLES.discard(Batched)
                ARRAYS.discard(Batched)
                READINGS.pop(Batched, None)

    def is_in(self, array: Any) -> bool:
        """Whether a plain array has a value for each example."""
        return any(level is self for level in levels_of(array))

    def __enter__(self) -> Level:
        _active.levels = (*_active.levels, self)
        return self

    def __exit__(self, *exc: object) -> None:
        _active.levels = tuple(level for level in _active.levels if level is not self)


class Batched(Wrapper):
    """An array with the shape of one example, which holds the values of all examples of a level."""

    __slots__ = ("level", "stacked")

    def __init__(self, stacked: Any, level: Level) -> None:
        self.stacked, self.level = stacked, level

    @property
    def inner(self) -> Any:
        """The array that it wraps."""
        return self.stacked

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one example."""
        return self.stacked.shape[1:]

    @property
    def ndim(self) -> int:
        """Number of axes of one example."""
        return self.stacked.ndim - 1

    @property
    def size(self) -> int:
        """Number of elements of one example."""
        return int(np.prod(self.shape))

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The examples in another dtype."""
        return BATCHED.astype(self, dtype)

    def _refuse(self, *args: Any, **keywords: Any) -> Any:
        if self.level not in _active.levels:
            raise ArgumentError(
                f"A tensor with a value for each of {self.level.size} examples has left its vmap "
                "other than as the function's result. Return it."
            )
        raise ArgumentError(
            f"Inside vmap a tensor has a value for each of {self.level.size} examples, so it is "
            "not one number or array. Choose between values with gg.where, or return it from the "
            "function and look at it outside."
        )

    def __repr__(self) -> str:
        return f"<{self.level.size} examples of shape {self.shape}>"


add_operators(Batched, BATCHED)


def levels_of(x: Any) -> list[Level]:
    """The levels at which an array is Batched, the innermost first."""
    levels = []
    while type(x) is Batched:
        levels.append(x.level)
        x = x.stacked
    return levels


def unwrap_levels(array: Any) -> Any:
    """An array without vmap's wrappers: the examples of the outermost level along axis 0."""
    while type(array) is Batched:
        array = array.stacked
    return array


def wrap_levels(array: Any, levels: Sequence[Level]) -> Any:
    """The opposite of `unwrap_levels`."""
    for level in sorted(levels, key=lambda level: level.serial):
        array = Batched(array, level)
    return array


# ---- the reading -------------------------------------------------------------------------

Rule = Callable[..., Any]


def batched_reading(op: Any) -> Callable[..., Any]:
    """An op's function on arrays, some of them Batched."""
    family = "stack" if op.kind == "elementwise" else op.batch or "loop"
    rule = family if callable(family) else _FAMILIES[family](op)
    names, is_indexed = tuple(op.signature.parameters), "index" in op.params

    def run(*args: Any, **keywords: Any) -> Any:
        bound = {**op.params, **dict(zip(names, args, strict=False)), **keywords}
        arrays = [bound.pop(n, None) for n in op.arrays]
        flat = arrays[0] if op.variadic else arrays
        parts = index_parts(bound["index"]) if is_indexed else ()
        level: Any = None  # the innermost
        for a in (*flat, *parts):
            if type(a) is Batched and (level is None or a.level.serial > level.serial):
                level = a.level
        if level is None and between_numbers(op, flat):
            return op.bare(NUMPY)(*args, **keywords)[()]  # a rounded number, not an array
        if level is None:
            return getattr(reading(*flat), op.name)(*args, **keywords)
        if is_indexed:
            require_one_library(op.name, flat, bound["index"])
            bound["index"] = _index_at_level(bound["index"], level)
            parts = [p.stacked if type(p) is Each else p for p in index_parts(bound["index"])]
        elif len(flat) > 1:
            require_one_library(op.name, flat)
        batched = tuple([type(a) is Batched and a.level is level for a in flat])
        inner = [a.stacked if b else a for a, b in zip(flat, batched, strict=True)]
        xp = reading(*inner, *parts)
        results = rule(xp, batched, *([inner] if op.variadic else inner), **bound)
        if op.outputs > 1:
            return tuple(Batched(r, level) for r in results)
        return Batched(results, level)

    return run


def aligned(xp: Any, batched: Sequence[bool], arrays: Sequence[Any]) -> list[Any]:
    """Arrays with the batch axis first, then as many axes as the longest shape has."""
    ranks = [a.ndim - b for a, b in zip(arrays, batched, strict=True) if hasattr(a, "ndim")]
    rank = max(ranks)

    def align(a: Any) -> Any:
        return xp.reshape(a, (a.shape[0], *(1,) * (rank + 1 - a.ndim), *a.shape[1:]))

    pairs = zip(arrays, batched, strict=True)
    return [align(a) if b and a.ndim <= rank else a for a, b in pairs]


def need_axes(name: str, batched: Sequence[bool], arrays: Sequence[Any], least: Any) -> None:
    """ShapeError if an example has too few axes: the op would take the batch axis for one."""
    for a, b, n in zip(arrays, batched, least, strict=True):
        if b and a.ndim - 1 < n:
            raise ShapeError(
                f"{name}: an example has shape {a.shape[1:]}, at least {n} axes are needed."
            )


def stack(op: Any) -> Rule:
    """Batch rule of an op that broadcasts any number of leading axes: the op itself."""
    is_plain = op.ufunc is not None and op.cpu is None

    def rule(xp: Any, batched: Sequence[bool], *arrays: Any, **params: Any) -> Any:
        arrays = arrays if len(arrays) == 1 else aligned(xp, batched, arrays)  # type: ignore[assignment]
        if xp is NUMPY and is_plain and elements(arrays) >= LARGE:
            return on_threads(op.ufunc, *arrays)
        return getattr(xp, op.name)(*arrays, **params)

    return rule


def _matrices(op: Any) -> Rule:
    """Batch rule of an op of stacks of matrices: a batch of vectors is not one matrix."""
    run = stack(op)

    def rule(xp: Any, batched: Sequence[bool], *arrays: Any, **params: Any) -> Any:
        need_axes(op.name, batched, arrays, (2,) * len(arrays))
        return run(xp, batched, *arrays, **params)

    return rule


def all_batched(xp: Any, batched: Sequence[bool], arrays: Sequence[Any]) -> list[Any]:
    """Arrays that all have the batch axis first: those without one are broadcast."""
    n = next(a.shape[0] for a, b in zip(arrays, batched, strict=True) if b)
    return [
        a if b or a is None else xp.broadcast_to(a, (n, *a.shape))
        for a, b in zip(arrays, batched, strict=True)
    ]


def batch_axis_of(axis: Any, ndim: int) -> Any:
    """The axis of a batch for an axis of one example of `ndim` axes; None is all of them."""
    if axis is None:
        return 1 if ndim == 1 else tuple(range(1, ndim + 1))
    if isinstance(axis, (tuple, list)):
        return tuple(batch_axis_of(a, ndim) for a in axis)
    if not -ndim <= axis < ndim:  # -ndim - 1 would be the batch axis
        raise AxisError(f"axis {axis} is out of bounds for an example of {ndim} axes.")
    return axis + 1 if axis >= 0 else axis


_AXES = {"axis", "axes", "axis1", "axis2", "source", "destination"}
"""Arguments that count the axes of an example."""


def _axis(op: Any) -> Rule:
    """Batch rule of an op along axes: the op itself, with axes counted behind the batch axis."""
    axes = [name for name in op.params if name in _AXES]

    def rule(xp: Any, batched: Sequence[bool], *arrays: Any, **params: Any) -> Any:
        stacked = all_batched(xp, batched, arrays)
        n = stacked[0].ndim - 1
        params |= {name: batch_axis_of(params[name], n) for name in axes}
        return getattr(xp, op.name)(*stacked, **params)

    return rule


def loop(op: Any) -> Rule:
    """Batch rule of any other op: run it on one example after the other."""

    def rule(xp: Any, batched: Sequence[bool], *arrays: Any, **params: Any) -> Any:
        flat = arrays[0] if op.variadic else arrays
        n = next(a.shape[0] for a, b in zip(flat, batched, strict=True) if b)
        if not n:
            raise ArgumentError(f"{op.name}: vmap runs it example by example, but got no examples.")
        rows = []
        for k in range(n):
            row = [xp.getitem(a, index=k) if b else a for a, b in zip(flat, batched, strict=True)]
            rows.append(getattr(xp, op.name)(*([row] if op.variadic else row), **params))
        if op.outputs == 1:
            return xp.stack(rows, axis=0)
        return tuple(xp.stack(column, axis=0) for column in zip(*rows, strict=True))

    return rule


_FAMILIES = {"stack": stack, "matrices": _matrices, "axis": _axis, "loop": loop}


# ---- an index with a value for each example ----------------------------------------------


class Each:
    """Part of an index with a value for each example: an array with the batch axis first."""

    __slots__ = ("stacked",)

    def __init__(self, stacked: Any) -> None:
        self.stacked = stacked


def _index_at_level(index: Any, level: Level) -> Any:
    parts = [
        Each(p.stacked) if type(p) is Batched and p.level is level else p
        for p in index_parts(index)
    ]
    return tuple(parts) if type(index) is tuple else parts[0]
