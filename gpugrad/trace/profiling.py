"""Spans around ops, gradients, replays and batches, from which `gg.profile` takes its times.

Nothing asks for a span unless `profiles` has an entry. Spans do not nest: what runs inside of one,
such as the ops of a composite op or of a replay, belongs to it.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.backend import ARRAYS, cupy
from gpugrad.core.devices import gpu_count
from gpugrad.core.forking import drop_other_entries, in_child
from gpugrad.core.tensor import Tensor
from gpugrad.core.user_code import NOWHERE, Where, where


class Event(NamedTuple):
    """One thing that took time; `gg.profile` lists them."""

    kind: str
    """``"op"``, ``"gradient"``, ``"function"``, ``"trace"``, ``"optimizer"`` or ``"data"``.

    In tables and files also ``"step"`` and ``"rest"``, of a function.
    """
    name: str
    """The op, the traced function, the optimizer or the loader."""
    start: int
    """In nanoseconds of `time.perf_counter_ns`."""
    duration: int
    """In nanoseconds."""
    nbytes: int
    """Bytes of the arguments and the results, as far as they are known."""
    where: Where
    """The user's line, and the layer. Those of a gradient are those of its op."""
    thread: int
    """The identifier of the thread."""


class Profile:
    """A record of spans.

    Attributes:
        events: in the order in which they ended.
        calls: by id, traced functions and the arguments of their last replay.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.calls: dict[int, tuple[Any, Any, Any]] = {}
        self._thread = get_ident()  # after a fork, that of another thread is dropped


profiles: list[Profile] = []
"""The profiles that are running, of any thread. Each gets the spans of all threads."""

in_child(functools.partial(drop_other_entries, profiles))

origins: dict[int, Where] = {}
"""By serial number, where a recorded result was computed, while a profile is running."""


class _Here(threading.local):
    where: Where | None = None
    """The place of the span that this thread is in."""


_here = _Here()


def in_span() -> bool:
    """Whether this thread is in a span already."""
    return _here.where is not None


class Span:
    """A ``with`` block whose time is written to all profiles, unless it is inside another one.

    On a GPU it waits for the current stream at both ends, and is an NVTX range.
    """

    __slots__ = ("_gpu", "_kind", "_name", "_start", "_where", "nbytes", "outermost")

    def __init__(self, kind: str, name: str, at: Where | None = None) -> None:
        self._kind, self._name, self._where, self.nbytes = kind, name, at, 0
        self._gpu: Any = None

    def __enter__(self) -> Span:
        self.outermost = _here.where is None
        if self.outermost:
            self._where = _here.where = self._where or where()
            if gpu_count():
                self._gpu = cupy()
                self._gpu.cuda.get_current_stream().synchronize()
                self._gpu.cuda.nvtx.RangePush(f"{self._kind} {self._name}")
            self._start = time.perf_counter_ns()
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        if not self.outermost:
            return
        _here.where = None
        if self._gpu is not None:
            self._gpu.cuda.get_current_stream().synchronize()
        took = time.perf_counter_ns() - self._start
        if self._gpu is not None:
            self._gpu.cuda.nvtx.RangePop()
        if kind is None:
            event = Event(
                self._kind,
                self._name,
                self._start,
                took,
                self.nbytes,
                self._where or NOWHERE,
                get_ident(),
            )
            for profile in list(profiles):
                profile.events.append(event)

    def rename(self, kind: str) -> None:
        """Change the kind of the event."""
        self._kind = kind

    def note(self, out: Any, inputs: Iterable[Any]) -> None:
        """Remember where results were computed, and count the bytes."""
        at = _here.where or NOWHERE
        for result in out if isinstance(out, tuple) else (out,):
            if isinstance(result, Tensor) and result._id:
                origins[result._id] = at
        if self.outermost:
            self.nbytes = bytes_of(out) + bytes_of(inputs)


def bytes_of(values: Any) -> int:
    """Bytes of the arrays and Tensors in nested lists and tuples."""
    if isinstance(values, (list, tuple)):
        return sum(map(bytes_of, values))
    if isinstance(values, Tensor) or type(values) in ARRAYS:
        return int(np.prod(values.shape)) * int(values.dtype.itemsize)
    return 0


def timed_entries(walk: Iterator[Any], grads: dict[int, Any]) -> Generator[Any]:
    """The entries of a backward pass; each is a span, unless no gradient reaches it."""
    for entry in walk:
        op, out, _, _, saved, _ = entry
        numbers = (out,) if type(out) is int else tuple(o[0] for o in out)
        present = [grads[n] for n in numbers if n in grads]
        if not present:
            yield entry
            continue
        with Span("gradient", op.name, origins.get(numbers[0])) as span:
            span.nbytes = bytes_of(present) + bytes_of(saved or ())
            yield entry  # the loop's body runs before the next line


def timed_batches(name: str, batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches; while a profile runs, each wait for one is a span."""
    with contextlib.suppress(StopIteration):
        while True:
            if profiles:
                with Span("data", name) as span:
                    batch = next(batches)
                    span.nbytes = bytes_of(batch)
            else:
                batch = next(batches)
            yield batch
