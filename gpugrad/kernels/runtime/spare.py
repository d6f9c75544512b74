"""Results that a launch computes along with the requested one, kept for the next calls."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import cupy


class Spare(threading.local):
    """Results computed along with the requested one, kept while their inputs are alive."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.problem: Any = None
        self.results: dict[str, Any] = {}

    def take(
        self,
        name: str,
        asked: Sequence[Any],
        problem: Any,
        compute: Callable[[], dict[str, Any] | None],
    ) -> Any:
        """The result `name`; each one that `compute` returns is handed out once.

        Args:
            name: a key of the results.
            asked: the arrays that all of them are computed from: the same objects in all calls.
            problem: equal in calls that want results of one computation.
            compute: returns all results, or None to decline, which gives NotImplemented.
        """
        problem = (problem, _stream(asked[0]))
        same = all(ref() is x for ref, x in zip(self.asked, asked, strict=False))
        if self.problem != problem or not same or name not in self.results:
            results = compute()
            if results is None:
                return NotImplemented
            # once the cotangent is deleted, its backward pass is over
            first = weakref.ref(asked[0], lambda _: results.clear())
            self.asked, self.problem = [first, *map(weakref.ref, asked[1:])], problem
            self.results = results
        return self.results.pop(name)


def _stream(array: Any) -> Any:
    """The current stream, and whether it captures; None for NumPy arrays."""
    if type(array) is np.ndarray:
        return None
    stream = cupy().cuda.get_current_stream()
    return int(stream.ptr), bool(stream.is_capturing())
