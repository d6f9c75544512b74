"""Random numbers in C, with the same bits as `ops.random.philox`."""

from __future__ import annotations

import collections
import functools
import math
import operator
from typing import Any

import numpy as np

from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import WIDE
from gpugrad.kernels.cpu.pool import Kernels

LEAST = 1 << 13
"""Numbers from which the kernel is used at once: fewer should not wait for a compiler."""

OFTEN = 16
"""Calls for fewer numbers after which the kernel computes them, too, as its bits are NumPy's."""

_calls: collections.Counter[Any] = collections.Counter()


def _pays(job: Any, n: int) -> bool:
    """Whether the kernel of a job is worth its compiler, for n numbers."""
    if n >= LEAST:
        return True
    _calls[job] += 1
    return _calls[job] > OFTEN


_REALS = ("uniform", "normal", "exponential", "laplace", "gumbel", "logistic")
_M64 = (1 << 64) - 1


@functools.cache
def _in_c(kind: str, wide: int) -> Kernels:
    """The functions in C for a kind and a dtype; to compile all of them takes a second."""
    t = ("float", "double")[wide]
    job = f"numbers<{t}, {kind.title()}>" if kind in _REALS else kind
    job += f"<{t}>" * (kind == "dropout")
    long = kind == "integers" or (wide and kind in _REALS)
    head = f"#define JOB {job}\n#define OF_A_BLOCK {4 if long else 8}\n"
    return Kernels("random", head, draw="wwww o l o d f")


def _draw(
    kind: str, wide: int, key: Any, first: int, out: Any, x: Any = None, p: float = 0.0
) -> Any:
    """Fill `out`; NotImplemented without a compiler."""
    in_c = _in_c(kind, wide)
    if not in_c:
        return NotImplemented
    k0, k1 = map(operator.index, key)
    place = (k0, k1, first & _M64, first >> 128)
    scale = 1 / (1 - p) if p < 1 else 0.0
    in_c.draw(*place, out, out.size, out if x is None else x, scale, p)
    return out


def noise(kind: str, key: tuple[int, int], first: int, n: int, dtype: Any) -> Any:
    """`n` numbers, the same that `gpugrad.ops.random.generator` draws in NumPy.

    Args:
        kind: such as ``"normal"``.
        key, first: the stream's key, and the counter of the first block as one number.
        n: how many numbers.
        dtype: dtype of the numbers.

    Returns:
        Array (n,), or NotImplemented for few numbers and for other kinds and dtypes.
    """
    wide = WIDE.get(dtype)
    if wide is None or kind not in _REALS or not _pays((kind, wide), n) or not _in_c(kind, wide):
        return NotImplemented
    return _draw(kind, wide, key, first, np.empty(n, dtype))


def integers(key: tuple[int, int], first: int, n: int, low: int, high: int) -> Any:
    """`n` integers from `low` up to `high` - 1 as uint64, modulo 2^64; NotImplemented for few."""
    if high - low >= 1 << 64 or not _pays("integers", n) or not _in_c("integers", 0):
        return NotImplemented
    about = np.array([high - low, low & _M64], np.uint64)
    return _draw("integers", 0, key, first, np.empty(n, np.uint64), about)


_SORT = Kernels("sort_words", sort_words="o l l")


def sort_words(words: Any) -> bool:
    """Sort rows of random uint64, none of them twice, in place; False for few."""
    rows, n = words.shape
    if n < LEAST or not _SORT:
        return False
    _SORT.sort_words(words, rows, n)
    return True


def stream_dropout(xp: Any, x: Any, /, *, key: tuple[int, int], first: int, p: float) -> Any:
    """The launcher of `gpugrad.ops.nn.dropout.stream_dropout`."""
    is_array = type(x) is np.ndarray and x.dtype in WIDE
    if not is_array or not 0 <= p < 1 or not _pays(("dropout", x.dtype), x.size):
        return NotImplemented
    out = np.empty(x.shape, x.dtype)
    return _draw("dropout", WIDE[x.dtype], key, operator.index(first), out, row_major(x), p)


def stream_mask(xp: Any, stream: Any, /, *, shape: tuple[int, ...], p: float) -> Any:
    """The launcher of `gpugrad.ops.nn.dropout.stream_mask`."""
    if stream.dtype != np.uint64 or stream.shape != (4,) or not _pays("keep", math.prod(shape)):
        return NotImplemented
    k0, k1, first, third = stream.tolist()
    return _draw("keep", 0, (k0, k1), first + (third << 128), np.empty(shape, np.bool_), p=p)
