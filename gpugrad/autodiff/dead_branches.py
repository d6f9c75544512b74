"""Dead branches: tapes and accumulators drop what belongs to results that nothing can reach.

A serial number is one int object, shared by the Tensor, by the entry that computes it and by the
entries that read it. So its reference count tells whether anyone can ask for it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.autodiff.explain import Barrier
from gpugrad.autodiff.recordable import Entry
from gpugrad.core.listening import recorders, threads
from gpugrad.core.tensor import Tensor
from gpugrad.trace.listener import Listener

STRIDE = 61
"""`grow` is called with the result of each 61st op: as a prime, it is each op of a loop in turn."""

MANY = 2**13
"""Serial numbers after which it pays to compile what records."""

when_many: list[Callable[[], None]] = []
"""Functions that `grow` calls once after `MANY` serial numbers."""

_ENTRY_BYTES = 1000
_LEAST_BYTES = 2**24  # that a listener must have grown by before dead branches are looked for


def grow(out: Tensor) -> None:
    """Tell the listeners of this thread that some entries like that of `out` have been added."""
    if when_many and out._id > MANY:
        with contextlib.suppress(IndexError):  # another thread has taken it
            when_many.pop()()
    growing = [r for r in threads.stack if isinstance(r, Growing)]
    for listener in growing:
        listener._new_bytes += STRIDE * (out.nbytes + _ENTRY_BYTES)
    if any(r._new_bytes > max(r._bytes, _LEAST_BYTES) for r in growing):
        drop_unreachable(growing)


def drop_unreachable(listeners: Sequence[Growing]) -> None:
    """Drop dead branches from all of these listeners: each holds numbers of the others."""
    before = [r._entries() for r in listeners]
    _drop_records([r for r in listeners if isinstance(r, LogGrowing)])
    for r in listeners:
        if isinstance(r, ForwardGrowing):
            r._drop_tangents()
    for r, n in zip(listeners, before, strict=True):
        r._bytes = (r._bytes + r._new_bytes) * r._entries() // max(n, 1)
        r._new_bytes = 0


class Growing(Listener):
    """A listener that keeps something of each op, until nothing can reach the op's results.

    Attributes:
        _bytes, _new_bytes: an estimate of what it held when it was last looked at, and of what it
            has taken since.
    """

    passive = False
    _bytes = _new_bytes = 0

    def _entries(self) -> int:
        """How many results it keeps something of."""
        return len(self.known)


class ForwardGrowing(Growing):
    """A listener with a dictionary `known` of tangents."""

    def _drop_tangents(self) -> None:
        """Drop the tangents of results that nothing can reach."""
        serials, sets = list(self.known), _sets()
        for k in range(len(serials)):
            if not _is_reachable(serials, k, sets):
                del self.known[serials[k]]


class LogGrowing(Growing):
    """A listener with a log of entries, and with barriers."""

    log: list[Entry]
    barriers: list[Barrier]

    def _entries(self) -> int:
        """The length of the log."""
        return len(self.log)

    def _take_records(self) -> list[Any]:
        """Its entries and barriers in the order of execution; it has none from now on.

        Of a line that assigns to the same Variable in a loop, the first barrier stays.
        """
        log, barriers = list(self.log), self.barriers  # a backward pass may be reading the log
        self.log, self.barriers = [], []
        records, start, lines = list[Any](), 0, set[Any]()
        for barrier in barriers:
            line = -barrier[2], barrier[1], barrier[4]  # -barrier[2]: no reference to the number
            if line not in lines:
                records += log[start : barrier[0]]
                records.append(barrier)
                start = barrier[0]
            lines.add(line)
        return records + log[start:] if records else log

    def _put_records(self, records: list[Any]) -> None:
        """Set its entries and barriers."""
        for record in records:
            if len(record) == _BARRIER:
                self.barriers.append((len(self.log), *record[1:]))
            else:
                self.log.append(record)


_BARRIER = 5  # the length of a barrier; that of an entry is 6


def _drop_records(listeners: Sequence[LogGrowing]) -> None:
    """Drop entries and barriers, the newest first, from all logs at once: they share entries."""
    todo = [r._take_records() for r in listeners]
    kept = [list[Any]() for _ in todo]
    sets, same = _sets(), list[Any]()
    try:
        if len(todo) == 1:
            (records,), (alive,) = todo, kept
            many = 2 + len(sets)  # from the record and from this call come two references
            while records:
                record = records.pop()
                if len(record) != _BARRIER and sys.getrefcount(record[1]) > many:
                    alive.append(record)  # most of them; a tuple of results has one reference
                else:
                    _keep_or_forget(listeners[0], record, 1, alive, sets)
        ages = [_age(records) for records in todo]
        while ages and (newest := min(ages)) < 0:
            for place in [k for k, age in enumerate(ages) if age == newest]:
                same.append((place, todo[place].pop()))
                ages[place] = _age(todo[place])
            holders = len({id(record) for _, record in same})
            for place, record in same:
                _keep_or_forget(listeners[place], record, holders, kept[place], sets)
            same.clear()  # their numbers must not be seen as reachable
    finally:
        for r, new, old in zip(listeners, kept, todo, strict=True):
            r._put_records(old + new[::-1])


def _age(records: Sequence[Any]) -> int:
    """How old the last record is: less than 0, the less the newer; no reference to its number."""
    if not records:
        return 0
    record = records[-1]
    if len(record) == _BARRIER:
        return -2 * max(record[2], *record[3]) - 1
    return -2 * (record[1] if type(record[1]) is int else record[1][0][0])


def _keep_or_forget(
    listener: LogGrowing, record: Any, holders: int, kept: list[Any], sets: Sequence[Any]
) -> None:
    """Keep a record whose result can be reached, or forget its number."""
    if len(record) == _BARRIER:
        if _is_reachable(record, 2, sets, holders):
            kept.append(record)
        else:
            listener.dead.discard(record[2])
    elif type(record[1]) is int:
        if _is_reachable(record, 1, sets, holders):
            kept.append(record)
        else:
            listener.known.discard(record[1])
    elif any(_is_reachable(out, 0, sets, holders) for out in record[1]):
        kept.append(record)
    else:
        listener.known.difference_update(out[0] for out in record[1])


def _sets() -> list[Any]:
    """Sets that refer to a serial number without making it reachable."""
    growing = [r for r in recorders if isinstance(r, Growing)]
    return [s for r in growing for s in (r.known, r.dead) if type(s) in (set, dict) and s]


def _is_reachable(holder: Any, place: int, sets: Sequence[Any], holders: int = 1) -> bool:
    """Whether a serial number has references beyond its holders, this call's and `sets`."""
    others = sys.getrefcount(holder[place]) - holders - 1
    return others > len(sets) or others > sum(holder[place] in s for s in sets)
