"""The processes that train together, for rooms that do not import `gpugrad.distributed`."""

from __future__ import annotations

from typing import Any


class _Ranks:
    """The process alone, until `gpugrad.distributed.init` joins others.

    Attributes:
        rank: the number of this process.
        size: the number of processes.
        gather: returns the picklable values of all ranks, in their order.
    """

    def __init__(self) -> None:
        self.rank, self.size = 0, 1
        self.gather: Any = lambda value: [value]


ranks = _Ranks()
