"""Adds up the partial sums that kernels leave, at once for all kernels whose sums nobody has read.

A kernel that sums over rows, as the gradient of a norm's weight, ends with a launch that adds up
what its blocks have summed. A transformer has dozens of such sums, which only the optimizer reads:
inside a `Waiting` they wait, and its `add_up` computes them in one launch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.kernels.by_hand.rows import FLOATS, names
from gpugrad.kernels.runtime.launch import launch, type_name
from gpugrad.kernels.runtime.tables import tables

_NAMES = names("add_parts<{}, {}>", ["float"], [d for d in FLOATS if d != np.float64])
INSTANCES = tuple(("partial_sums.cu", name) for name in (*_NAMES, "add_parts<double, double>"))
VECTOR: tuple[str, ...] = ()

_ROWS = 32  # as in partial_sums.cu
_BLOCKS = 132 * 8


class Sums(NamedTuple):
    """Partial sums of one kernel, to be added up.

    Attributes:
        partials, sums: for each sum, the array of parts times columns, and the result.
        parts, columns: the shape of the partial sums.
        end: launches the kernel's own second kernel.
    """

    partials: Sequence[Any]
    sums: Sequence[Any]
    parts: int
    columns: int
    end: Callable[[], None]


class _Here(threading.local):
    def __init__(self) -> None:
        self.waiting: list[list[Sums]] = []


_here = _Here()


class Waiting:
    """Inside its ``with`` block, sums wait until `add_up`; it calls that when it ends well."""

    def __init__(self) -> None:
        self._sums: list[Sums] = []

    def __len__(self) -> int:
        return len(self._sums)

    def __enter__(self) -> Waiting:
        _here.waiting.append(self._sums)
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        _here.waiting.pop()
        if kind is None:
            self.add_up()

    def add_up(self) -> None:
        """Launch once for each size and dtype; the own ending of a kernel that waits alone."""
        if len(self._sums) == 1:
            self._sums.pop().end()
        groups: dict[Any, list[tuple[Any, Any]]] = {}
        for one in self._sums:
            for pair in zip(one.partials, one.sums, strict=True):
                key = one.parts, one.columns, *(a.dtype for a in pair)
                groups.setdefault(key, []).append(pair)
        for (parts, columns, *_), pairs in groups.items():
            _launch([p for p, _ in pairs], [s for _, s in pairs], parts, columns)
        self._sums.clear()


def _launch(partials: Sequence[Any], sums: Sequence[Any], parts: int, columns: int) -> None:
    name = f"add_parts<{type_name(partials[0].dtype)}, {type_name(sums[0].dtype)}>"
    for table, _ in tables([partials, sums]):
        blocks = min(int(table["count"]) * -(-columns // 32), _BLOCKS)
        sizes = np.int32(parts), np.int32(columns)
        launch("partial_sums.cu", name, blocks, (32, _ROWS), (table, *sizes))


def end_or_wait(sums: Sums) -> None:
    """Launch a kernel's ending, or leave it to the innermost `Waiting`."""
    if _here.waiting:
        _here.waiting[-1].append(sums)
    else:
        sums.end()
