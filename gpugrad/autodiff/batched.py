"""vmap's arrays: one value for each example, written as if there were one.

A `Batched` array has the shape of one example; the array that it wraps has the examples along
axis 0. It is one more reading of the formulas: a composite runs as it is, an elementwise op
gets its arrays aligned behind the batch axis, a primitive runs the formula that its record
gives as `batch`. What is Batched of an inner `vmap` wraps what is Batched of an outer one.

At the borders of a `vmap` tapes record linear ops of their own: `enter` makes an array
Batched, `leave` undoes it, and where an array that is the same for all examples meets others a
`crossing` says that its gradient, seen from outside, is the sum over the examples.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.backward import crossings
from gpugrad.autodiff.recorder import graphs, number, record
from gpugrad.core.backend import (
    ARRAYS,
    EXAMPLES,
    NUMPY,
    READINGS,
    TENSOR,
    Reading,
    as_array,
    between_numbers,
    hang_operators,
    is_inexact,
    reading,
)
from gpugrad.core.tensor import Tensor, index_parts, recorders, together, wrap
from gpugrad.errors import ArgumentError, AxisError

__all__ = [
    "BATCHED",
    "Batched",
    "Each",
    "Level",
    "aligned",
    "all_batched",
    "batched_reading",
    "behind",
    "crossed",
    "dressed",
    "enter",
    "leave",
    "levels_of",
    "levels_running",
    "levels_stopped",
    "loop",
    "reopened",
    "spread",
    "spread_everywhere",
    "stack",
    "stripped",
]


class _BatchedReading(Reading):
    """Runs an op on the examples together; of a composite its body."""

    nesting = 2

    def function_of(self, op: Any) -> Callable[..., Any]:
        """The body of a composite, or the rule `batch` of another op."""
        return op.body(self) if op.is_opened else batched_reading(op)


BATCHED = _BatchedReading("batched")
_serial = itertools.count(1)
_alive: set[int] = set()
_alive_lock = threading.RLock()  # a level may die wherever memory is freed, here too


class _Active(threading.local):
    """The levels of the vmaps that one thread is running, the outermost first."""

    levels: tuple[Level, ...] = ()


_active = _Active()


def levels_running() -> tuple[Level, ...]:
    """The levels of the vmaps that this thread is running, the outermost first."""
    return _active.levels


@contextlib.contextmanager
def levels_stopped() -> Iterator[None]:
    """What this thread does is not part of the vmaps that it runs."""
    levels, _active.levels = _active.levels, ()
    try:
        yield
    finally:
        _active.levels = levels


class Level:
    """One run of a `vmap`: how many examples there are, and what is random in it.

    Used in a ``with`` statement: while it is active, every value is that of one example, so
    gradients are too. From outside, a gradient is the sum over the examples.
    """

    def __init__(self, size: int, randomness: str) -> None:
        self.size, self.randomness, self.serial = size, randomness, next(_serial)
        with _alive_lock:
            _alive.add(self.serial)
            READINGS[Batched] = BATCHED  # while there is a level: ops need not look for it else
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
        """Whether a bare array has a value for each example."""
        return any(level is self for level in levels_of(array))

    def __enter__(self) -> Level:
        _active.levels = (*_active.levels, self)
        return self

    def __exit__(self, *exc: object) -> None:
        _active.levels = tuple(level for level in _active.levels if level is not self)


class Batched:
    """A bare array of every example of a level, of the shape of one; the examples along axis 0.

    Attributes:
        stacked: the array with the examples along axis 0.
        level: the run of `vmap` that it belongs to.
    """

    __slots__ = ("level", "stacked")
    __array_ufunc__ = None  # ndarray * Batched must come to Batched.__rmul__
    base = True  # of NumPy's: whether the memory is another array's, so that nobody writes to it

    def __init__(self, stacked: Any, level: Level) -> None:
        self.stacked, self.level = stacked, level

    @property
    def inner(self) -> Any:
        """What it wraps."""
        return self.stacked

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one example."""
        return self.stacked.shape[1:]

    @property
    def ndim(self) -> int:
        """Number of axes of one example."""
        return self.stacked.ndim - 1

    @property
    def size(self) -> int:
        """Number of elements of one example."""
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.stacked.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all examples together."""
        return self.stacked.nbytes

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The examples in another dtype."""
        return BATCHED.astype(self, dtype)

    def copy(self) -> Batched:
        """Itself, as nobody writes to it."""
        return self

    def _refuse(self, *args: Any, **keywords: Any) -> Any:
        if self.level not in _active.levels:
            raise ArgumentError(
                f"A tensor with a value for each of {self.level.size} examples has left the vmap "
                "that it was made in, by another way than the function's result. Return it."
            )
        raise ArgumentError(
            f"Inside vmap a tensor has a value for each of {self.level.size} examples, so it is no "
            "one number or array. Choose between values with gg.where, or return it from the "
            "function and look at it outside."
        )

    item = tolist = get = view = __bool__ = __float__ = __int__ = __index__ = __iter__ = _refuse

    def __repr__(self) -> str:
        return f"<{self.level.size} examples of shape {self.shape}>"


hang_operators(Batched, BATCHED)


# ---- the reading -------------------------------------------------------------------------

Rule = Callable[..., Any]


def _top(arrays: Sequence[Any]) -> Level | None:
    """The innermost level of some bare arrays."""
    levels = [a.level for a in arrays if type(a) is Batched]
    return max(levels, key=lambda level: level.serial, default=None)


def batched_reading(op: Any) -> Callable[..., Any]:
    """An op's function on bare arrays of which some are Batched."""
    family = "stack" if op.kind == "elementwise" else op.batch or "loop"
    rule = family if callable(family) else _FAMILIES[family](op)
    names = tuple(op.signature.parameters)

    def run(*args: Any, **given: Any) -> Any:
        bound = {**op.params, **dict(zip(names, args, strict=False)), **given}
        arrays = [bound.pop(n, None) for n in op.arrays]
        flat = arrays[0] if op.variadic else arrays
        level = _top([*flat, *index_parts(bound.get("index"))])
        if level is None and between_numbers(op, flat):
            return op.bare(NUMPY)(*args, **given)[()]  # rounded as they are, and no array
        if level is None:
            return getattr(reading(*flat), op.name)(*args, **given)
        together(op.name, flat, bound.get("index"))
        if "index" in bound:
            bound["index"] = _at_level(bound["index"], level)
        batched = tuple(type(a) is Batched and a.level is level for a in flat)
        inner = [a.stacked if b else a for a, b in zip(flat, batched, strict=True)]
        parts = index_parts(bound.get("index"))
        xp = reading(*inner, *(p.stacked if type(p) is Each else p for p in parts))
        results = rule(xp, batched, *([inner] if op.variadic else inner), **bound)
        if op.outputs > 1:
            return tuple(Batched(r, level) for r in results)
        return Batched(results, level)

    return run


def aligned(xp: Any, batched: Sequence[bool], arrays: Sequence[Any]) -> list[Any]:
    """Arrays with the batch axis in front of as many axes as the longest shape has."""
    ranks = [a.ndim - b for a, b in zip(arrays, batched, strict=True) if hasattr(a, "ndim")]
    rank = max(ranks)
    return [
        xp.reshape(a, (a.shape[0], *(1,) * (rank + 1 - a.ndim), *a.shape[1:]))
        if b and a.ndim <= rank else a
        for a, b in zip(arrays, batched, strict=True)
    ]  # fmt: skip


def stack(op: Any) -> Rule:
    """The op itself, which takes any number of axes in front and broadcasts them."""

    def rule(xp: Any, batched: Sequence[bool], *arrays: Any, **params: Any) -> Any:
        return getattr(xp, op.name)(*aligned(xp, batched, arrays), **params)

    return rule


def all_batched(xp: Any, batched: Sequence[bool], arrays: Sequence[Any]) -> list[Any]:
    """Arrays that all have the batch axis in front: those that had none are stretched."""
    n = next(a.shape[0] for a, b in zip(arrays, batched, strict=True) if b)
    return [
        a if b or a is None else xp.broadcast_to(a, (n, *a.shape))
        for a, b in zip(arrays, batched, strict=True)
    ]


def behind(axis: Any, ndim: int) -> Any:
    """Axes of an example of `ndim` axes as axes behind the batch axis; None is all of them."""
    if axis is None:
        return 1 if ndim == 1 else tuple(range(1, ndim + 1))
    if isinstance(axis, (tuple, list)):
        return tuple(behind(a, ndim) for a in axis)
    if not -ndim <= axis < ndim:  # -ndim - 1 would be the batch axis
        raise AxisError(f"axis {axis} is out of bounds for an example of {ndim} axes.")
    return axis + 1 if axis >= 0 else axis


def _axis(op: Any) -> Rule:
    """The op itself, along axes counted behind the batch axis."""

    def rule(xp: Any, batched: Sequence[bool], *arrays: Any, **params: Any) -> Any:
        stacked = all_batched(xp, batched, arrays)
        axis = behind(params["axis"], stacked[0].ndim - 1)
        return getattr(xp, op.name)(*stacked, **params | {"axis": axis})

    return rule


def loop(op: Any) -> Rule:
    """One example after the other."""

    def rule(xp: Any, batched: Sequence[bool], *arrays: Any, **params: Any) -> Any:
        flat = arrays[0] if op.variadic else arrays
        n = next(a.shape[0] for a, b in zip(flat, batched, strict=True) if b)
        if not n:
            raise ArgumentError(f"{op.name}: vmap runs it example by example, and there is none.")
        rows = []
        for k in range(n):
            row = [xp.getitem(a, index=k) if b else a for a, b in zip(flat, batched, strict=True)]
            rows.append(getattr(xp, op.name)(*([row] if op.variadic else row), **params))
        if op.outputs == 1:
            return xp.stack(rows, axis=0)
        return tuple(xp.stack(column, axis=0) for column in zip(*rows, strict=True))

    return rule


_FAMILIES = {"stack": stack, "axis": _axis, "loop": loop}


# ---- an index with a value for each example ----------------------------------------------


class Each:
    """A part of an index that is an array with a batch axis in front."""

    __slots__ = ("stacked",)

    def __init__(self, stacked: Any) -> None:
        self.stacked = stacked


def _at_level(index: Any, level: Level) -> Any:
    parts = [
        Each(p.stacked) if type(p) is Batched and p.level is level else p
        for p in index_parts(index)
    ]
    return tuple(parts) if type(index) is tuple else parts[0]


# ---- the borders -------------------------------------------------------------------------


class _Border:
    """What a tape logs for a linear function of one array that is no op: its two rules."""

    origins, partials, linear, outputs = (), None, False, 1

    def __init__(self, name: str, forward: Rule, adjoint: Rule, inside: Rule | None) -> None:
        self.name, self.inside = name, inside
        self.rules = self.masked = (lambda xp, g, saved, params: adjoint(g),)
        self.jvps = (lambda xp, t, saved, params: forward(t),)


def _recorded(
    name: str, x: Tensor, data: Any, forward: Rule, adjoint: Rule, inside: Rule | None = None
) -> Tensor:
    """A Tensor of `data`, which a function without an op has made of `x`."""
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
def reopened(*tensors: Tensor) -> Iterator[None]:
    """Make the levels of some Tensors active again: what runs is for one example."""
    levels = {level: None for t in tensors for level in levels_of(t._data)}
    with contextlib.ExitStack() as entered:
        for level in levels:
            if level not in _active.levels:
                entered.enter_context(level)
        yield


def enter(x: Any, level: Level, axis: int) -> Any:
    """`x`, with one example of `level` after the other along `axis`, as Batched."""
    if isinstance(x, Tensor):
        data = enter(x._data, level, axis)
        return _recorded("vmap's input", x, data, lambda t: enter(t, level, axis),
                         lambda g: leave(g, level, axis))  # fmt: skip
    if type(x) is Batched and x.level.serial > level.serial:  # the innermost stays outside
        return Batched(enter(x.stacked, level, axis + 1), x.level)
    return Batched(reading(x).moveaxis(x, axis, 0), level)


def leave(x: Any, level: Level, axis: int) -> Any:
    """`x` with the examples of `level` along `axis`; the same for each if it has none."""
    if isinstance(x, Tensor):
        if not level.is_in(x._data):
            return _repeated(TENSOR, x, level, axis)
        data = leave(x._data, level, axis)
        return _recorded("vmap's output", x, data, lambda t: leave(t, level, axis),
                         lambda g: enter(g, level, axis))  # fmt: skip
    if not level.is_in(x):
        return _repeated(reading(x), x, level, axis)
    if x.level is not level:
        return Batched(leave(x.stacked, level, axis + 1), x.level)
    return reading(x.stacked).moveaxis(x.stacked, 0, axis)


def _repeated(xp: Any, x: Any, level: Level, axis: int) -> Any:
    shape = (*x.shape[:axis], level.size, *x.shape[axis:])
    return xp.broadcast_to(xp.expand_dims(x, axis=axis), shape)


def levels_of(x: Any) -> list[Level]:
    """The levels at which a bare array is Batched."""
    found = []
    while type(x) is Batched:
        found.append(x.level)
        x = x.stacked
    return found


def stripped(array: Any) -> Any:
    """A bare array without the levels of vmap: the examples of the outermost along axis 0."""
    while type(array) is Batched:
        array = array.stacked
    return array


def dressed(array: Any, levels: Sequence[Level]) -> Any:
    """The opposite of `stripped`."""
    for level in sorted(levels, key=lambda level: level.serial):
        array = Batched(array, level)
    return array


def crossed(*values: Any) -> list[Any]:
    """An op's arguments, where some that are recorded meet examples: each through a crossing."""
    levels = [level for v in values if isinstance(v, Tensor) for level in levels_of(v._data)]
    return [
        functools.reduce(_crossing, [n for n in levels if n not in levels_of(v._data)], v)
        if isinstance(v, Tensor) and (v._id or graphs) else v
        for v in values
    ]  # fmt: skip


def _crossing(x: Any, level: Level) -> Any:
    """`x` itself, for each example of `level`."""
    if not isinstance(x, Tensor):
        return x
    before = crossings.get(x._id)

    def inside(array: Any) -> Any:
        return _spread(array if before is None else before.inside(array), level)

    return _recorded("vmap", x, x._data, lambda t: _crossing(t, level),
                     lambda g: _summed(g, level), inside)  # fmt: skip


def _summed(g: Any, level: Level) -> Any:
    """A gradient as it is for one example inside, summed over the examples from outside."""
    if level in _active.levels:
        return g
    data = g._data if isinstance(g, Tensor) else g
    if not level.is_in(data):  # it has crossed before, where a rule ran on Tensors
        return g
    if isinstance(g, Tensor):
        return _recorded("vmap", g, _summed(data, level), lambda t: _summed(t, level),
                         lambda h: _spread(h, level))  # fmt: skip
    if g.level is not level:
        return Batched(_summed(g.stacked, level), g.level)
    return as_array(reading(g.stacked).sum(g.stacked, axis=0), type(g.stacked))


def _spread(x: Any, level: Level) -> Any:
    """`x` as Batched, the same for each example."""
    data = x._data if isinstance(x, Tensor) else x
    if level.is_in(data):
        return x
    if type(data) is Batched and data.level.serial > level.serial:
        made = Batched(_spread(data.stacked, level), data.level)
    else:
        made = Batched(_repeated(reading(data), data, level, 0), level)
    if not isinstance(x, Tensor):
        return made
    return _recorded("vmap", x, made, lambda t: _spread(t, level), lambda g: _summed(g, level))


def spread_everywhere(x: Any) -> Any:
    """A bare array with a value for each example of every vmap that is running."""
    return functools.reduce(_spread, _active.levels, x)


def spread(x: Tensor, index: Any) -> Tensor:
    """`x` with a value for each example, if an index that it is read at has such values."""
    levels = [level for part in index_parts(index) for level in levels_of(part)]
    return functools.reduce(_spread, levels, x)
