"""Allocations of CuPy that fail one by one."""

from types import ModuleType
from typing import Any, Self


class FailingAllocation:
    """Inside its ``with`` statement the allocation that `after` selects fails.

    It counts the allocations of CuPy's current pool, not those of a CUDA graph's own pool.

    Args:
        cupy: the module.

    Attributes:
        done: whether it has failed, or none is to fail.
    """

    def __init__(self, cupy: ModuleType) -> None:
        self._cuda, self._left = cupy.cuda, 0

    def __enter__(self) -> Self:
        self._before = self._cuda.get_allocator()
        self._cuda.set_allocator(self._allocate)
        return self

    def __exit__(self, *exc: object) -> None:
        self._cuda.set_allocator(self._before)

    def _allocate(self, size: int) -> Any:
        self._left -= 1
        if self._left == 0:
            raise self._cuda.memory.OutOfMemoryError(size, 0, 0)
        return self._before(size)

    def after(self, n: int) -> None:
        """Let the `n`-th allocation from now on fail, or none if `n` is 0."""
        self._left = n

    @property
    def done(self) -> bool:
        return self._left <= 0
