"""The formulas of each kind of draw on the host, from a key and a counter."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.float_errors import no_overflow
from gpugrad.kernels.cpu import random as cpu_kernels
from gpugrad.ops.random import philox, rejection

Array = np.ndarray[Any, Any]
_M64 = (1 << 64) - 1


def _bits(key: philox.Key, first: int, n: int, dtype: Any) -> Array:
    return philox.words(key, first, n, 8 * np.dtype(dtype).itemsize)


def _integers(key: philox.Key, first: int, n: int, dtype: Any, low: int, high: int) -> Array:
    start = np.uint64(low & _M64)

    def formula(w: Array) -> Array:
        return philox.below(w, high - low) + start

    numbers = cpu_kernels.integers(key, first, n, low, high)
    if numbers is not NotImplemented:
        return numbers.view(dtype) if dtype == np.int64 else numbers.astype(dtype)
    with no_overflow():  # integers are counted modulo 2^64
        return philox.in_chunks(formula, key, first, n, np.uint64).astype(dtype)


def _permutation(key: philox.Key, first: int, n: int, dtype: Any, length: int) -> Array:
    """The sorting order of each `length` words.

    Positions in the low bits make the words differ, and are the result after sorting. For 2^20
    elements 44 bits stay random: ties are likely for one pair at most.
    """
    position = np.uint64((1 << max(length - 1, 0).bit_length()) - 1)
    words = philox.words(key, first, n).reshape(-1, max(length, 1))
    words &= ~position
    words |= np.arange(words.shape[1], dtype=np.uint64)
    if not cpu_kernels.sort_words(words):
        words.sort()
    words &= position
    return words.view(dtype) if dtype == np.int64 else words.astype(dtype)


def _truncated_normal(
    key: philox.Key, first: int, n: int, dtype: Any, low: float, high: float
) -> Array:
    """The quantile of F(low) + u (F(high) - F(low)), on the side of 0 where F is small."""
    if low > 0:
        return -_truncated_normal(key, first, n, dtype, -high, -low)
    start = 0.5 * math.erfc(-low / math.sqrt(2))
    span = 0.5 * math.erfc(-high / math.sqrt(2)) - start

    def formula(w: Array) -> Array:
        p = start + span * (w.astype(np.float64) * 2.0**-64 + 2.0**-65)
        return philox.quantile(p - 0.5, lambda at: np.minimum(p[at], 1.0 - p[at]))

    numbers = philox.in_chunks(formula, key, first, n, np.float64)
    return np.clip(numbers.astype(dtype), low, high)


def _by_rejection(sampler: Callable[..., Array]) -> Callable[..., Array]:
    def make(key: philox.Key, first: int, n: int, dtype: Any, *parameters: Array) -> Array:
        return sampler(key, first, *parameters).astype(dtype, copy=False)

    return make


OWN = 256  # bits of a block: each element has counters of its own
KINDS: dict[str, tuple[int | None, Callable[..., Array]]] = {
    # bits of an element (None: as many as its dtype has), function
    "bits": (None, _bits),
    "uniform": (None, philox.uniform),
    "normal": (None, functools.partial(philox.in_chunks, philox.normal)),
    "exponential": (None, functools.partial(philox.in_chunks, philox.exponential)),
    "laplace": (None, functools.partial(philox.in_chunks, philox.laplace)),
    "gumbel": (None, functools.partial(philox.in_chunks, philox.gumbel)),
    "logistic": (None, functools.partial(philox.in_chunks, philox.logistic)),
    "integers": (64, _integers),
    "permutation": (64, _permutation),
    "truncated_normal": (64, _truncated_normal),
    "gamma": (OWN, _by_rejection(rejection.gamma)),
    "log_gamma": (OWN, _by_rejection(rejection.log_gamma)),
    "poisson": (OWN, _by_rejection(rejection.poisson)),
    "binomial": (OWN, _by_rejection(rejection.binomial)),
    "hypergeometric": (OWN, _by_rejection(rejection.hypergeometric)),
    "zipf": (OWN, _by_rejection(rejection.zipf)),
    "vonmises": (OWN, _by_rejection(rejection.vonmises)),
}


def blocks(kind: str, n: int, dtype: np.dtype[Any]) -> int:
    """The number of counters that a draw of `n` numbers takes."""
    return -(-n * (KINDS[kind][0] or 8 * dtype.itemsize) // 256)
