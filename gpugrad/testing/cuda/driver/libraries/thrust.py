"""Thrust's sorts, which CuPy calls through ``cupy.cuda.thrust``: NumPy sorts.

CuPy's policy is ``par_nosync``: a sort does not wait for the stream, which may be captured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.testing.cuda.driver.libraries import view, work

available = True
_SORTED = frozenset("?bBhHiIlLqQefdFD")


def get_build_version() -> int:
    """The version of the Thrust that is imitated."""
    return 300000


def _check(dtype: Any, error: type[Exception], what: str) -> None:
    if np.dtype(dtype).char not in _SORTED:
        raise error(f"Sorting {what} with dtype '{dtype}' is not supported")


def _run(name: str, function: Callable[[], object]) -> None:
    stream = sys.modules["cupy"].cuda.get_current_stream().ptr
    work(stream, "thrust", name, function)


def _rows(pointer: int, dtype: Any, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    return view(pointer, dtype, (int(np.prod(shape)),)).reshape(tuple(shape))


def sort(dtype: Any, data: int, keys: int, shape: Sequence[int]) -> None:
    """Sort along the last axis in place."""
    _check(dtype, NotImplementedError, "arrays")
    _run("sort", lambda: _rows(data, dtype, shape).sort(axis=-1))


def lexsort(dtype: Any, indices: int, keys: int, k: int, n: int) -> None:
    """Indices that sort by the last of `k` keys, then by the one before, and so on."""
    _check(dtype, TypeError, "keys")

    def run() -> None:
        view(indices, np.intp, (n,))[:] = np.lexsort(_rows(keys, dtype, (k, n)))

    _run("lexsort", run)


def argsort(dtype: Any, indices: int, data: int, keys: int, shape: Sequence[int]) -> None:
    """Indices that sort along the last axis; equal elements keep their order."""
    _check(dtype, NotImplementedError, "arrays")

    def run() -> None:
        values = _rows(data, dtype, shape)
        _rows(indices, np.intp, shape)[...] = np.argsort(values, axis=-1, kind="stable")
        values.sort(axis=-1, kind="stable")  # Thrust sorts the data along with the indices

    _run("argsort", run)
