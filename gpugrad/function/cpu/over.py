"""Steps that write their result over an argument, if at that moment nobody else sees its array.

That a step is the last one to read a value is known beforehand. Whether an array was donated, or
whether somebody keeps a view of it, its reference count tells at each replay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.trace.program import Step, fill_index, takes_arguments


def position_over(step: Step) -> int | None:
    """The argument that a step of NumPy arrays can write its result over, or None."""
    op = step.op
    if op is None or op.kind == "control" or op.cuda is not None or op.cpu in (None, True):
        return None
    return op.overwrites


def call_over(step: Step, copying: Callable[..., Any]) -> Callable[..., Any]:
    """The function that executes such a step; `copying` does if others see the array."""
    op, params, at = step.op, step.params, position_over(step)
    assert at is not None
    n, index = len(op.arrays), step.params.get("index")

    def call(*args: Any) -> Any:
        if sys.getrefcount(args[at]) > _ALONE or not _is_whole(args[at]):
            return copying(*args)
        filled = {"index": fill_index(index, args)} if takes_arguments(index) else {}
        return op.cpu(NUMPY, *args[:n], **params | filled, over=True)

    return call


def reused(*args: Any) -> Any:
    """The array args[0], if nobody but the caller's variable sees it; else a new one like it."""
    if sys.getrefcount(args[0]) > _ALONE or not _is_whole(args[0]):
        return np.empty(args[0].shape, args[0].dtype)
    return args[0]


def _is_whole(array: Any) -> bool:
    return type(array) is np.ndarray and array.base is None and array.flags.carray


def _count(*args: Any) -> int:
    return sys.getrefcount(args[0])


def _references(arrays: list[Any]) -> int:
    (array,) = arrays
    arrays.clear()
    return _count(array, None)


_ALONE = _references([np.empty(1)])
"""The `sys.getrefcount` of an argument that one variable of the caller refers to."""
