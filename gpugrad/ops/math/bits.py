"""Booleans packed into bytes, eight at a time."""

from typing import Any

import numpy as np

from gpugrad.core.samples import calls
from gpugrad.errors import ArgumentError, AxisError, DTypeError
from gpugrad.ops._axes import along_examples, check_axis
from gpugrad.registry.record import op


def _lines(name, x, axis, bitorder):
    """`x` with the axis at the end (flat if the axis is None), and the axis counted from 0."""
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{name}: bitorder must be 'big' or 'little', got {bitorder!r}.")
    if axis is None:
        return x.reshape(-1), 0
    check_axis(name, axis, x.shape)
    return x.swapaxes(axis, -1), axis % x.ndim


_LITTLE = {"bitorder": "little"}
_ERRORS: list[Any] = [
    ([np.ones(3)], {}, DTypeError, "float64"),
    ([np.array([1])], {"axis": 1}, AxisError, "axis 1"),
]


def _places(bitorder):
    return range(8)[:: 1 if bitorder == "little" else -1]


@op(
    differentiable=False,
    kinds="ib",
    batch=along_examples("packbits"),
    samples=calls(
        lambda rng: [rng.integers(0, 2, 10)],
        lambda rng: ([rng.integers(0, 2, (2, 3))], {"axis": 0, **_LITTLE}),
        lambda rng: ([rng.integers(0, 2, (2, 9)) > 0], {"axis": -1}),
        lambda rng: ([np.zeros((2, 0), dtype=bool)], {"axis": 1}),
    ),
    errors=[*_ERRORS, ([np.array([1])], {"bitorder": "up"}, ArgumentError, "bitorder must be")],
    captures=True,
)
def packbits(xp, x, /, axis=None, bitorder="big"):
    """Pack eight booleans at a time into a byte; the last byte is padded with zeros.

    Args:
        x: array of booleans or integers; nonzero ones are true.
        axis: along which; None takes the elements in row-major order.
        bitorder: ``"big"``: the first is the highest bit; ``"little"``: the lowest.

    Returns:
        uint8 Tensor. It has no gradient.

    >>> print(gg.packbits([True, False, True]))
    [160]
    """
    if x.dtype.kind not in "biu":
        raise DTypeError(f"packbits: x must be booleans or integers, not {x.dtype}.")
    x, axis = _lines("packbits", x, axis, bitorder)
    n = x.shape[-1]
    bits = xp.lib.zeros((*x.shape[:-1], 8 * -(-n // 8)), dtype="uint8")
    bits[..., :n] = x != 0
    bits = bits.reshape(*x.shape[:-1], -(-n // 8), 8)
    out = xp.lib.zeros(bits.shape[:-1], dtype="uint8")
    for k, place in enumerate(_places(bitorder)):
        out |= bits[..., k] << place
    return out.swapaxes(axis, -1)


@op(
    differentiable=False,
    kinds="i",
    batch=along_examples("unpackbits"),
    ref=lambda x, **how: np.unpackbits(x.astype(np.uint8), **how),
    samples=calls(
        lambda rng: [rng.integers(0, 256, 2)],
        lambda rng: ([rng.integers(0, 256, (2, 3))], {"axis": 0, **_LITTLE, "count": 11}),
        lambda rng: ([rng.integers(0, 256, (1, 2))], {"axis": -1, "count": -3}),
        lambda rng: ([rng.integers(0, 256, 1)], {"count": 12}),
    ),
    errors=[*_ERRORS, ([np.array([1])], {"count": -9}, ArgumentError, "count=-9")],
    captures=True,
)
def unpackbits(xp, x, /, axis=None, count=None, bitorder="big"):
    """Unpack bytes into eight zeros or ones each; the opposite of `packbits`.

    Args:
        x: array of uint8, or of other integers from 0 to 255.
        axis: along which; None takes the elements in row-major order.
        count: how many bits to return, padded with zeros; a negative count leaves out the last
            bits. None returns all.
        bitorder: ``"big"``: the highest bit comes first; ``"little"``: the lowest.

    Returns:
        uint8 Tensor of zeros and ones. It has no gradient.

    >>> print(gg.unpackbits([160], count=3))
    [1 0 1]
    """
    if x.dtype.kind not in "iu":
        raise DTypeError(f"unpackbits: x must be uint8 or another integer, not {x.dtype}.")
    x, axis = _lines("unpackbits", x.astype("uint8", copy=False), axis, bitorder)
    bits = xp.lib.stack([(x >> place) & 1 for place in _places(bitorder)], axis=-1)
    bits = bits.reshape(*x.shape[:-1], 8 * x.shape[-1])
    n = bits.shape[-1]
    if count is not None:
        if count < -n:
            raise ArgumentError(f"unpackbits: count={count} leaves out more than the {n} bits.")
        out = xp.lib.zeros((*x.shape[:-1], count if count >= 0 else n + count), dtype="uint8")
        kept = min(n, out.shape[-1])
        out[..., :kept] = bits[..., :kept]
        bits = out
    return bits.swapaxes(axis, -1)
