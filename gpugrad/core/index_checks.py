"""Checks of indices on a GPU that do not wait for it.

A kernel skips an index that is out of bounds and writes 1 to a flag. The flags are pinned memory of
the host, which kernels of every GPU can write to: nothing is copied, and where all indices are good
nothing crosses the bus. The host looks at them when it has waited for a GPU anyway, and once in a
while between.
"""

from __future__ import annotations

import importlib
import itertools
from types import CodeType
from typing import Any

import numpy as np

from gpugrad.core.user_code import line_of, place
from gpugrad.errors import ArgumentError, IndexOutOfBoundsError

TIMES = ("now", "later", "never")

_FLAGS = 4096
"""More than the launches that CUDA queues: a flag is free when its turn comes again."""

_EVERY = 256
"""Calls after which the flags are read although the host has not waited for a GPU."""


def extremes(indices: Any) -> tuple[int, int]:
    """The smallest and the largest of some integers; `argmin` finds that of few in NumPy sooner."""
    if type(indices) is np.ndarray:
        return indices.item(indices.argmin()), indices.item(indices.argmax())
    return int(indices.min()), int(indices.max())


def within(indices: Any, n: int) -> bool:
    """Whether integers in NumPy are known to be from 0 to n - 1, by one look at them.

    As unsigned numbers, negative ones are the largest.
    """
    is_plain = type(indices) is np.ndarray and indices.dtype == np.int64 and indices.size
    return bool(is_plain and np.maximum.reduce(indices.view(np.uint64), None) < n)


class _Checks:
    """The flags, and the calls that they belong to."""

    def __init__(self) -> None:
        self.when = "later"
        self.flags: Any = None  # pinned; the last one belongs to no call
        self.calls: list[Any] = [None] * _FLAGS
        self.numbers = itertools.count()


_checks = _Checks()


class check_indices:  # it reads as a statement
    """Choose when an index that is out of bounds on a GPU raises IndexOutOfBoundsError.

    No kernel reads or writes out of bounds: it reads NaN (0 for integers) and skips writes. The
    setting holds for all threads, from the call on; a ``with`` statement restores the previous one.
    On the CPU the call itself always raises. A CUDA graph of a `gg.function` checks nothing:
    there floats become NaN.

    Args:
        when: ``"later"``, the default: at the next synchronization (`gg.cuda.synchronize`,
            ``x.numpy()``, ``x.item()``, printing), with the op and the line that called it.
            ``"now"``: in the call, with the index; each such call waits for the GPU.
            ``"never"``.

    Raises:
        ArgumentError: `when` is not one of the three.

    >>> with gg.cuda.check_indices("now"):
    ...     y = gg.take([1.0, 2.0, 3.0], [2, 0])
    """

    def __init__(self, when: str) -> None:
        if when not in TIMES:
            names = ", ".join(map(repr, TIMES))
            raise ArgumentError(f"cuda.check_indices: {when!r} is not one of {names}.")
        self._before, _checks.when = _checks.when, when

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _checks.when = self._before


def when() -> str:
    """When an index out of bounds on a GPU raises: see `check_indices`."""
    return _checks.when


def flag_of(name: str, length: int, first: int) -> np.uintp:
    """The address of a flag for a call of an op from the user's line.

    Args:
        name: the op.
        length: the length of the axis; 0 if several axes have indices.
        first: the least index; -2**63 if any negative one is allowed.
    """
    number = next(_checks.numbers)
    slot = number % _FLAGS
    if number % _EVERY == 0:
        raise_late()
    flags = _allocated() if _checks.flags is None else _checks.flags
    _checks.calls[slot] = name, length, first, place()
    return np.uintp(flags.ctypes.data + slot * flags.itemsize)


def ignored_flag() -> np.uintp:
    """The address of a flag that nobody reads."""
    flags = _allocated() if _checks.flags is None else _checks.flags
    return np.uintp(flags.ctypes.data + _FLAGS * flags.itemsize)


def _allocated() -> Any:
    flags = importlib.import_module("cupyx").empty_pinned((_FLAGS + 1,), dtype=np.int32)
    flags[...] = 0
    _checks.flags = flags
    return flags


def raise_late() -> None:
    """Raise the IndexOutOfBoundsError of a call whose kernel has met a bad index by now."""
    flags = _checks.flags
    if flags is None or not flags[:_FLAGS].any():
        return
    slots = flags[:_FLAGS].nonzero()[0]
    calls = [_checks.calls[slot] for slot in slots]
    flags[...] = 0  # each is reported once
    raise IndexOutOfBoundsError(_describe(calls))


def _describe(calls: list[tuple[str, int, int, tuple[CodeType, int]]]) -> str:
    name, length, first, where = calls[0]
    others = f" {len(calls) - 1} later calls have bad indices too." if len(calls) > 1 else ""
    start = f"from {first} " if first > -(2**63) else ""
    bounds = f" Indices run {start}to {length - 1}." if length else ""
    return (
        f"{name}: an index is out of bounds on a GPU.{bounds} The call was at {line_of(where)}; "
        f"its results are wrong, and all that depend on them.{others} For an error in the call, "
        'with the index, use gg.cuda.check_indices("now").'
    )
