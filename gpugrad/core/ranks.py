"""The processes that train together, for rooms that do not import `gpugrad.distributed`."""

from __future__ import annotations

from typing import Any


class _Ranks:
    """The process alone, until `gpugrad.distributed.init` joins others.

    Attributes:
        rank: the number of this process.
        size: the number of processes.
        gather: returns the picklable values of all ranks, in their order.
        average: gives Variables the means of their values over ranks, where they differ.
    """

    def __init__(self) -> None:
        self.rank, self.size = 0, 1
        self.gather: Any = lambda value: [value]
        self.average: Any = lambda variables: None

    def any(self, flag: bool) -> bool:
        """Whether a flag is set on any rank."""
        return flag if self.size == 1 else any(self.gather(flag))


ranks = _Ranks()
