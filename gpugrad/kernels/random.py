"""Random numbers made on the GPU: the same bits as `gpugrad.ops.philox` makes on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.backend import NAMESPACES, Device, cupy
from gpugrad.kernels.launch import TYPES, launch, type_name

__all__ = ["INSTANCES", "VECTOR", "noise", "noise_on"]

_SOURCE = "random.cu"
_M64 = (1 << 64) - 1
_WORDS = {4: "unsigned", 8: "Word"}
_KINDS = {
    "uniform": "Uniform", "normal": "Normal", "exponential": "Exponential", "laplace": "Laplace",
    "gumbel": "Gumbel", "logistic": "Logistic",
}  # fmt: skip
"""Kinds of real numbers, of a word as wide as they are."""
_REALS = ("float32", "float64")
_WHOLE = tuple(d for d in TYPES if d.kind in "iu")

INSTANCES = tuple(
    (_SOURCE, name)
    for name in (
        *(f"draw<{type_name(d)}, {_WORDS[np.dtype(d).itemsize]}, {f}>"
          for f in _KINDS.values() for d in _REALS),
        "draw<unsigned, unsigned, Bits>", "draw<Word, Word, Bits>",
        *(f"draw_integers<{type_name(d)}>" for d in _WHOLE),
    )
)  # fmt: skip
VECTOR: tuple[str, ...] = ()  # nothing is read


def noise(
    xp: Any, kind: str, key: tuple[int, int], first: int, n: int, dtype: Any, *parameters: Any,
    state: Any = None,
) -> Any:  # fmt: skip
    """`n` numbers as `gpugrad.ops.generator` draws them on the host.

    Args:
        xp: reading of the arrays to make.
        kind: ``"bits"``, ``"integers"`` or one of `_KINDS`; all others are declined.
        key, first: of the stream: its key, and the counter of the first block as one number.
        n: how many.
        dtype: of the numbers.
        parameters: of integers: low and high.
        state: uint64 array (4,) on the device, in place of the key: key, counter and word 2 of
            the counter, to which `first` is added.

    Returns:
        Array (n,), or NotImplemented.
    """
    dtype = np.dtype(dtype)
    if kind == "bits":
        word = _WORDS[dtype.itemsize]
        name, per, numbers = f"draw<{word}, {word}, Bits>", 32 // dtype.itemsize, []
    elif kind == "integers":
        low, high = parameters
        name, per = f"draw_integers<{type_name(dtype)}>", 4
        numbers = [np.uint64(low & _M64), np.uint64(high - low & _M64)]
    elif kind in _KINDS and dtype.name in _REALS:
        name = f"draw<{type_name(dtype)}, {_WORDS[dtype.itemsize]}, {_KINDS[kind]}>"
        per, numbers = 32 // dtype.itemsize, []
    else:
        return NotImplemented
    out = xp.lib.empty(n, dtype=dtype)
    if n:
        where = [np.uint64(v) for v in (*key, first & _M64, first >> 128)]
        blocks = -(-n // (per * 128))
        launch(_SOURCE, name, blocks, 128, [out, np.int64(n), state, *where, *numbers])
    return out


def noise_on(device: Device, *args: Any) -> Any:
    """`noise` on a GPU."""
    with cupy().cuda.Device(device.index):
        return noise(NAMESPACES[cupy().ndarray], *args)
