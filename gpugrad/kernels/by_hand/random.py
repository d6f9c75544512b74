"""Random numbers on the GPU, with the same bits as `ops.random.philox` on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import READINGS, cupy
from gpugrad.core.devices import Device
from gpugrad.kernels.by_hand.rows import FLOATS, names
from gpugrad.kernels.runtime.launch import TYPES, launch, type_name

_SOURCE = "random.cu"
_M64 = (1 << 64) - 1
_WORDS = {4: "unsigned", 8: "Word"}
_KINDS = {
    "uniform": "Uniform", "normal": "Normal", "exponential": "Exponential", "laplace": "Laplace",
    "gumbel": "Gumbel", "logistic": "Logistic",
}  # fmt: skip
"""Kinds of real numbers; each number takes one word of its own width."""
_REALS = ("float32", "float64")
_WHOLE = tuple(d for d in TYPES if d.kind in "iu")

INSTANCES = tuple(
    (_SOURCE, name)
    for name in (
        *names("draw<float, unsigned, {}>", _KINDS.values()),
        *names("draw<double, Word, {}>", _KINDS.values()),
        "draw<unsigned, unsigned, Bits>",
        "draw<Word, Word, Bits>",
        *names("draw_integers<{}>", _WHOLE),
        *names("dropout<{}>", FLOATS),
        "keep",
    )
)
VECTOR = (*names("dropout<{}>", FLOATS),)  # the others read no arrays


def noise(
    xp: Any,
    kind: str,
    key: tuple[int, int],
    first: int,
    n: int,
    dtype: Any,
    *parameters: Any,
    state: Any = None,
) -> Any:
    """`n` numbers, the same that `gpugrad.ops.random.generator` draws on the host.

    Args:
        xp: reading of the result.
        kind: ``"bits"``, ``"integers"`` or one of `_KINDS`.
        key, first: the stream's key, and the counter of the first block as one number.
        n: how many numbers.
        dtype: dtype of the numbers.
        parameters: for integers: low and high.
        state: uint64 array (4,) on the device that replaces the key: key, counter and word 2 of
            the counter, to which `first` is added.

    Returns:
        Array (n,), or NotImplemented for other kinds and dtypes.
    """
    dtype = np.dtype(dtype)
    name = _kernel(kind, dtype)
    if name is None:
        return NotImplemented
    per, numbers = 32 // dtype.itemsize, []
    if kind == "integers":
        low, high = parameters
        per, numbers = 4, [np.uint64(low & _M64), np.uint64(high - low & _M64)]
    out = xp.lib.ndarray(n, dtype)
    if n:
        args = [out, np.int64(n), state, *_stream(key, first), *numbers]
        launch(_SOURCE, name, -(-n // (per * 128)), 128, args)
    return out


def _kernel(kind: str, dtype: np.dtype[Any]) -> str | None:
    if kind == "bits":
        word = _WORDS[dtype.itemsize]
        return f"draw<{word}, {word}, Bits>"
    if kind == "integers":
        return f"draw_integers<{type_name(dtype)}>"
    if kind in _KINDS and dtype.name in _REALS:
        return f"draw<{type_name(dtype)}, {_WORDS[dtype.itemsize]}, {_KINDS[kind]}>"
    return None


def draws(kind: str, dtype: Any) -> bool:
    """Whether `noise` supports a kind and dtype."""
    return _kernel(kind, np.dtype(dtype)) is not None


def state_of(key: tuple[int, int], first: int) -> Any:
    """The host array of words that `noise` reads as `state`."""
    return np.array(_stream(key, first), np.uint64)


def _stream(key: tuple[int, int], first: int) -> list[np.uint64]:
    return [np.uint64(v) for v in (*key, first & _M64, first >> 128)]


def noise_on(device: Device, *args: Any, **kwargs: Any) -> Any:
    """`noise` on a GPU."""
    with cupy().cuda.Device(device.index):
        return noise(READINGS[cupy().ndarray], *args, **kwargs)


def stream_dropout(
    xp: Any, x: Any, *, key: tuple[int, int], first: int, p: float, state: Any = None
) -> Any:
    """The launcher of `gpugrad.ops.nn.dropout.stream_dropout`; `state` as for `noise`."""
    if x.dtype not in FLOATS or not 0 <= p < 1:
        return NotImplemented
    out = xp.lib.ndarray(x.shape, x.dtype)
    if x.size:
        x = xp.lib.ascontiguousarray(x)
        scale = x.dtype.type(1 / (1 - p))
        scale = scale if x.dtype == np.float64 else np.float32(scale)
        args = [x, out, np.int64(x.size), state, *_stream(key, first), np.float32(p), scale]
        launch(_SOURCE, f"dropout<{type_name(x.dtype)}>", -(-x.size // 1024), 128, args)
    return out


def stream_mask(xp: Any, stream: Any, *, shape: tuple[int, ...], p: float) -> Any:
    """The launcher of `gpugrad.ops.nn.dropout.stream_mask`."""
    if getattr(stream, "dtype", None) != np.uint64 or stream.shape != (4,):
        return NotImplemented
    out = xp.lib.ndarray(shape, np.bool_)
    if out.size:
        args = [out, np.int64(out.size), xp.lib.ascontiguousarray(stream), np.float32(p)]
        launch(_SOURCE, "keep", -(-out.size // 1024), 128, args)
    return out
