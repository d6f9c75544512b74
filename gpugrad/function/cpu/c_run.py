"""Neighbouring steps of a program that a replay in C writes as one call."""

from __future__ import annotations

from typing import Any

Place = tuple[str, int, int]
"""``"fixed"`` or, for an array from outside, ``"array"``; its number; and an offset in bytes."""


class Run:
    """Neighbouring steps, as one call.

    Attributes:
        name: the name of the call in the replay's text.
        line: the index of its line there.
        steps: kind of step, its first numbers or its kernel, and the places of its arrays.
        arrays: the names of the arrays from outside, and their numbers.
        sizes: for each of them, its itemsize if it must be contiguous, else 0.
        fresh: ids of the values that its steps compute.
    """

    def __init__(self, name: str, line: int) -> None:
        self.name, self.line = name, line
        self.steps: list[tuple[int, Any, list[Place]]] = []
        self.arrays: dict[str, int] = {}
        self.sizes: list[int] = []
        self.fresh: set[int] = set()

    def array(self, name: str, size: int = 0) -> Place:
        """The place of an array from outside."""
        k = self.arrays.setdefault(name, len(self.arrays))
        if k == len(self.sizes):
            self.sizes.append(0)
        self.sizes[k] = self.sizes[k] or size
        return "array", k, 0
