"""The processes that train together, for rooms that do not import `gpugrad.distributed`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np


class Shard(NamedTuple):
    """A stretch of the elements of an array, of which each rank holds one.

    Attributes:
        array: the elements, in one axis.
        start: the first of them, in the flat array.
        shape: that of the whole array.
    """

    array: Any
    start: int
    shape: tuple[int, ...]


def join_shards(
    pieces: Iterable[Mapping[str, Shard]], wanted: Mapping[str, Shard] | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """The whole arrays, by name.

    Args:
        wanted: stretches that are needed of some arrays: the rest is left at 0, and as long as
            nobody reads that, the system gives no memory to it.

    >>> parts = [{"a": Shard(np.ones(2), 0, (3,))}, {"a": Shard(np.zeros(1), 2, (3,))}]
    >>> join_shards(parts)
    {'a': array([1., 1., 0.])}
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for some in pieces:
        for name, (array, start, shape) in some.items():
            if name not in arrays:
                arrays[name] = np.zeros(shape, array.dtype)
            first, last = start, start + array.size
            if wanted is not None and name in wanted:
                own = wanted[name]
                first, last = max(first, own.start), min(last, own.start + own.array.size)
            if first < last:
                arrays[name].reshape(-1)[first:last] = array[first - start : last - start]
    return arrays


class _Ranks:
    """The process alone, until `gpugrad.distributed.init` joins others.

    Attributes:
        rank: the number of this process.
        size: the number of processes.
        gather: returns the picklable values of all ranks, in their order.
        average: gives Variables the means of their values over ranks, where they differ.
        captured: how many collectives CUDA graphs hold.
        launch: launches a graph that holds so many, by a function, while a watchdog looks at it.
        parts: where the elements of a Variable begin in the whole one, and its shape, by id: of
            Variables that hold this rank's part only.
    """

    def __init__(self) -> None:
        self.rank, self.size = 0, 1
        self.gather: Any = lambda value: [value]
        self.average: Any = lambda variables: None
        self.captured = 0
        self.launch: Any = lambda number, launch: launch()
        self.parts: dict[int, tuple[int, tuple[int, ...]]] = {}

    def any(self, flag: bool) -> bool:
        """Whether a flag is set on any rank."""
        return flag if self.size == 1 else any(self.gather(flag))


ranks = _Ranks()


def own_part(v: Any) -> Any:
    """A Variable, or the `Shard` that it holds."""
    if v._id not in ranks.parts:
        return v
    return Shard(v.numpy().reshape(-1).copy(), *ranks.parts[v._id])


def cut_part(array: Any, v: Any) -> Any:
    """The part of a whole array that a Variable holds; the array, if it is another one."""
    if v is None or v._id not in ranks.parts or np.shape(array) != ranks.parts[v._id][1]:
        return array
    start, _ = ranks.parts[v._id]
    return np.asarray(array).reshape(-1)[start : start + v.size]
