"""Casts and turns many arrays in one launch.

An array of shape (n, channels, *spatial) is *turned* if its channels are last in memory, as cuDNN
reads 16-bit floats fastest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import BFLOAT16, READINGS
from gpugrad.kernels.by_hand.rows import FLOATS
from gpugrad.kernels.runtime.launch import launch, pointer, type_name
from gpugrad.kernels.runtime.tables import CHUNK, THREADS, as_contiguous, tables

NARROW = (np.dtype(np.float16), BFLOAT16)
"""The dtypes that float32 arrays can be rounded to."""

_PAIRS = tuple((np.dtype(np.float32), d) for d in NARROW) + tuple((d, d) for d in FLOATS)
INSTANCES = (
    *(("casts.cu", f"cast<{type_name(dtype)}>") for dtype in NARROW),
    *(("casts.cu", f"turn<{type_name(a)}, {type_name(b)}>") for a, b in _PAIRS),
)
VECTOR = tuple(name for _, name in INSTANCES)

_MOST = 84  # TURNS of casts.cu
_TURNS = np.dtype(
    [(n, np.uintp, _MOST) for n in ("from", "to")]
    + [(n, np.int32, _MOST) for n in ("rows", "columns", "tall", "wide", "first")]
    + [("count", np.int32), ("tiles", np.int32)],
    align=True,
)
_BLOCKS = 132 * 8


def cast_all(arrays: Sequence[Any], dtype: Any, into: Sequence[Any] = ()) -> Sequence[Any]:
    """float32 arrays of one device, rounded to a dtype of NARROW: new ones, or those of `into`."""
    sources = [as_contiguous(a) for a in arrays]
    lib = READINGS[type(sources[0])].lib
    results = into or [lib.ndarray(a.shape, dtype) for a in sources]
    for table, chunks in tables([sources, results]):
        launch("casts.cu", f"cast<{type_name(dtype)}>", chunks, THREADS, (table,))
    return results


def turn_all(arrays: Sequence[Any], dtype: Any) -> list[Any]:
    """float32 arrays, rounded to a dtype of NARROW, with channels last in memory."""
    sources = [as_contiguous(a) for a in arrays]
    lib = READINGS[type(sources[0])].lib
    results = [lib.ndarray((len(a), *a.shape[2:], a.shape[1]), dtype) for a in sources]
    shapes = [(a.shape[1], math.prod(a.shape[2:])) for a in sources]
    _turn(sources, results, shapes)
    return [lib.moveaxis(r, -1, 1) for r in results]


def straighten(arrays: Sequence[Any]) -> list[Any]:
    """The arrays in C order: themselves, or copies, in one launch for each dtype of turned ones."""
    results = [*arrays]
    turned: dict[Any, list[int]] = {}
    for k, a in enumerate(arrays):
        if a.flags.c_contiguous:
            continue
        if _is_turned(a):
            turned.setdefault(a.dtype, []).append(k)
        else:
            results[k] = as_contiguous(a)
    for dtype, places in turned.items():
        sources = [arrays[k] for k in places]
        lib = READINGS[type(sources[0])].lib
        copies = [lib.ndarray(a.shape, dtype) for a in sources]
        _turn(sources, copies, [(math.prod(a.shape[2:]), a.shape[1]) for a in sources])
        for k, copy in zip(places, copies, strict=True):
            results[k] = copy
    return results


def _is_turned(a: Any) -> bool:
    if a.ndim < 3 or a.dtype not in FLOATS or 0 in a.shape:
        return False
    order = (0, *range(2, a.ndim), 1)
    return bool(a.transpose(order).flags.c_contiguous)


def _turn(sources: Sequence[Any], results: Sequence[Any], shapes: Sequence[Any]) -> None:
    """Turn arrays, each as slices of a shape, into contiguous results."""
    name = f"turn<{type_name(sources[0].dtype)}, {type_name(results[0].dtype)}>"
    for begin in range(0, len(sources), _MOST):
        turns, tiles = np.zeros((), _TURNS), 0
        part = slice(begin, begin + _MOST)
        turns["count"] = len(sources[part])
        for k, (a, b, (rows, columns)) in enumerate(
            zip(sources[part], results[part], shapes[part], strict=True)
        ):
            wide = min(columns, max(CHUNK // rows, 64))
            tall = min(rows, CHUNK // wide)
            turns["from"][k], turns["to"][k] = pointer(a), pointer(b)
            turns["rows"][k], turns["columns"][k] = rows, columns
            turns["tall"][k], turns["wide"][k] = tall, wide
            turns["first"][k] = tiles
            tiles += a.size // (rows * columns) * -(-rows // tall) * -(-columns // wide)
        turns["tiles"] = tiles
        launch("casts.cu", name, max(1, min(tiles, _BLOCKS)), THREADS, (turns[()],))
