"""Collectives that nobody else takes part in."""

from __future__ import annotations

from typing import Any


class Alike:
    """The engine of ranks that all have the same array: of one process, and of a trace."""

    name, kind, rank = "one process", None, 0

    def __init__(self, size: int = 1) -> None:
        self.size = size

    def all_reduce(self, x: Any, how: str) -> Any:
        """The sum, mean, max or min."""
        return x * self.size if how == "sum" and self.size > 1 else x.copy()

    def reduce_scatter(self, x: Any, how: str) -> Any:
        """The first part of the sum or mean."""
        return self.all_reduce(x[0], how)

    def all_gather(self, x: Any) -> Any:
        """The array once for each rank."""
        return x[None].repeat(self.size, 0)

    def all_to_all(self, x: Any) -> Any:
        """The first part once for each rank."""
        return self.all_gather(x[0])

    def broadcast(self, x: Any, root: int) -> Any:
        """The array."""
        return x.copy()

    def sum_in_place(self, x: Any) -> None:
        """Leave the array of one process."""

    start_sum = wait = sum_in_place
