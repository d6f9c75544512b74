"""Philox4x64-10: the bits of all random numbers, and numbers that are exact functions of them.

A counter-based generator is a hash. Philox (Salmon et al. 2011, "Parallel random numbers: as
easy as 1, 2, 3") hashes a counter of four 64-bit words with a key of two into a *block* of four
64-bit words. No word depends on another one, so any thread of any device computes its own.

It is 4x64-10 and not the other common variant, 4x32-10, because NumPy has it in C (ten times as
fast as array operations for 4x32), and because on a GPU the 64-bit products cost no more than
writing the result to memory.

**From (key, counter, i) to bits.** A draw that starts at counter `first` reads, as element i,

- of 64 bits: word ``i % 4`` of the block of counter (``first + i // 4``, 0, 0, 0);
- of 32 bits: the halves of the same words, low half first: half ``i % 8`` of block
  ``first + i // 8``.

So an element never depends on how many are drawn. The other counter words are 0, except in the
rounds of rejection samplers (word 1), in the second draw of a call that makes two (word 2), and
where keys are derived (word 3). Below, `first` is a counter as one number: word 0 + 2^128 word 2.

**From bits to numbers.** Formulas use only +, -, *, /, square root, comparison and integer
operations, each rounded once: IEEE 754 fixes every bit of the result, so a GPU that does not
contract products and sums into FMAs gives the same. float32 numbers come from one 32-bit word,
float64 numbers from one 64-bit word. Below, w is the word and B its number of bits.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Key = tuple[int, int]

CHUNK = 1 << 14  # numbers computed at a time, so that intermediate results stay in the cache

_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10
_M64 = (1 << 64) - 1
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def block(key: Key, counter: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """The four words of one counter, in Python integers: the definition.

    >>> from gpugrad.ops.random.philox import block
    >>> [hex(w) for w in block((0, 0), (0, 0, 0, 0))]  # the published test vector
    ['0x16554d9eca36314c', '0xdb20fe9d672d0fdc', '0xd7e772cee186176b', '0x7e68b68aec7ba23b']
    """
    (k0, k1), (c0, c1, c2, c3) = key, counter
    for _ in range(_ROUNDS):
        p0, p1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (p1 >> 64) ^ c1 ^ k0, p1 & _M64, (p0 >> 64) ^ c3 ^ k1, p0 & _M64
        k0, k1 = (k0 + _WEYL[0]) & _M64, (k1 + _WEYL[1]) & _M64
    return c0, c1, c2, c3


def blocks(key: Key, first: int, at: Array, second: int) -> Array:
    """Blocks (n, 4) of the counters `first` + `at` (integers, n), with `second` as word 1."""
    k0, k1 = key
    c0 = np.uint64(first & _M64) + at.astype(np.uint64)
    c1, c2 = np.full_like(c0, second), np.full_like(c0, first >> 128)
    c3 = np.zeros_like(c0)
    for _ in range(_ROUNDS):
        high0, high1 = below(c0, _MULTIPLIERS[0]), below(c2, _MULTIPLIERS[1])
        low0, low1 = c0 * np.uint64(_MULTIPLIERS[0]), c2 * np.uint64(_MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ np.uint64(k0), low1, high0 ^ c3 ^ np.uint64(k1), low0
        k0, k1 = (k0 + _WEYL[0]) & _M64, (k1 + _WEYL[1]) & _M64
    return np.stack([c0, c1, c2, c3], axis=-1)


def below(w: Array, n: int) -> Array:
    """The high 64 bits of w * n (uint64, n up to 2^64): an integer from 0 to n - 1.

    Lemire 2019's multiply-shift without its rejection: probabilities differ by at most a part in
    2^64 / n.
    """
    if n == 1 << 64:
        return w
    high, low = w >> _HALF, w & _LOW
    n_high, n_low = np.uint64(n >> 32), np.uint64(n & 0xFFFFFFFF)
    carried = high * n_low + (low * n_low >> _HALF)
    if not n_high:
        return carried >> _HALF
    middle = low * n_high + (carried & _LOW)
    return high * n_high + (carried >> _HALF) + (middle >> _HALF)


class _Host(threading.local):
    """NumPy's Philox of this thread: setting its state takes a tenth of the time of a new one."""

    def __init__(self) -> None:
        self.bits = np.random.Philox(0)
        self.draw = np.random.Generator(self.bits)
        self.nothing = np.zeros(4, np.uint64)


_host = _Host()


def _at(key: Key, first: int, second: int = 0) -> np.random.Generator:
    """NumPy's generator, positioned at the block of counter `first`, with `second` as word 1."""
    before = (first + (second << 64) - 1) % (1 << 256)  # it counts up before it hashes
    counter = np.frombuffer(before.to_bytes(32, "little"), "<u8").astype(np.uint64, copy=False)
    _host.bits.state = {
        "bit_generator": "Philox",
        "state": {"counter": counter, "key": np.array(key, np.uint64)},
        "buffer": _host.nothing,
        "buffer_pos": 4,
        "has_uint32": 0,
        "uinteger": 0,
    }
    return _host.draw


def _next_words(draw: np.random.Generator, n: int, bits: int) -> Array:
    longs = draw.bit_generator.random_raw(-(-n * bits // 64))  # a sixth of the time of `integers`
    if bits == 64:
        return longs
    return longs.astype("<u8", copy=False).view("<u4").astype(np.uint32, copy=False)[:n]


def words(key: Key, first: int, n: int, bits: int = 64, *, second: int = 0) -> Array:
    """`n` words of `bits` bits (32 or 64) from the block of `first` on, `second` its word 1."""
    return _next_words(_at(key, first, second), n, bits)


def uniform(key: Key, first: int, n: int, dtype: Any) -> Array:
    """(w >> 8) / 2^24 in float32, (w >> 11) / 2^53 in float64: from 0, always below 1."""
    return _at(key, first).random(n, np.dtype(dtype))  # NumPy's C code has this formula


def in_chunks(formula: Callable[[Array], Array], key: Key, first: int, n: int, dtype: Any) -> Array:
    """`formula` of n words as wide as `dtype`, the dtype of the result."""
    numbers = np.empty(n, dtype)
    draw = _at(key, first)
    with np.errstate(all="ignore"):
        for i in range(0, n, CHUNK):
            part = numbers[i : i + CHUNK]
            part[:] = formula(_next_words(draw, len(part), 8 * numbers.itemsize))
    return numbers


class _Format:
    """Constants of a floating-point format of B bits."""

    def __init__(self, real: Any, signed: Any, fraction: int, terms: int) -> None:
        self.real, self.signed, self.fraction = real, signed, fraction
        self.bits = 8 * np.dtype(real).itemsize
        self.unit = real(2.0**-self.bits)
        self.half_unit = real(2.0 ** -(self.bits + 1))
        self.root = signed(np.array(math.sqrt(0.5), real).view(signed))
        self.atanh = [real(1 / (2 * k + 3)) for k in range(terms)]  # atanh(s) = s + s^3/3 + ...
        self.ln2 = real(math.log(2))


_F32 = _Format(np.float32, np.int32, 23, 4)
_F64 = _Format(np.float64, np.int64, 52, 11)


def _format(x: Array) -> _Format:
    return _F32 if x.itemsize == 4 else _F64


def _polynomial(coefficients: Any, x: Array) -> Array:
    """c0 + c1 x + c2 x^2 + ..., by Horner's rule."""
    *rest, last = coefficients
    result = x * last + rest[-1]
    for c in rest[-2::-1]:
        result *= x
        result += c
    return result


def _log_of_parts(k: Array, f: Array, form: _Format) -> Array:
    """log((1 + f) 2^k), with 1 + f from sqrt(1/2) to sqrt(2): 2 atanh(f / (2 + f)) + k ln 2."""
    s = f / (f + form.real(2))
    z = s * s
    s += s
    return k * form.ln2 + (s + s * (z * _polynomial(form.atanh, z)))


def _parts(x: Array, form: _Format) -> tuple[Array, Array]:
    """Exponent k and m with x = m 2^k and sqrt(1/2) <= m < sqrt(2), for positive x."""
    k = x.view(form.signed) - form.root >> form.fraction
    m = (x.view(form.signed) - (k << form.fraction)).view(form.real)
    return k.astype(form.real), m


def log(x: Array) -> Array:
    """Natural logarithm of positive normal numbers, to 3 units in the last place."""
    form = _format(x)
    k, m = _parts(x, form)
    return _log_of_parts(k, m - form.real(1), form)


def exponential(w: Array) -> Array:
    """-log(p) with p = (w + 1/2) / 2^B.

    Where p is above sqrt(1/2) it is -log(1 - c) with c = (~w + 1/2) / 2^B, so that results near 0
    are as exact as large ones. They run from 2^-(B + 1) to (B + 1) ln 2.
    """
    form = _format(w)
    k, m = _parts(w.astype(form.real) * form.unit + form.half_unit, form)
    c = (~w).astype(form.real) * form.unit + form.half_unit
    return -_log_of_parts(k, np.where(k == 0, -c, m - form.real(1)), form)


def laplace(w: Array) -> Array:
    """`exponential` of the other bits of w, with its top bit as the sign."""
    size, sign = exponential(w << w.dtype.type(1)), w.view(_format(w).signed) < 0
    return np.where(sign, -size, size)


def gumbel(w: Array) -> Array:
    """-log(`exponential`)."""
    return -log(exponential(w))


def logistic(w: Array) -> Array:
    """log(p) - log(1 - p), p as in `exponential`."""
    return exponential(~w) - exponential(w)


# Wichura 1988, algorithm AS 241: rational approximations of the normal quantile. PPND7 for
# float32, PPND16 for float64; numerator and denominator near the middle, in the tails, and far
# out (beyond the reach of 32 bits).
_MIDDLE = {
    4: ((3.3871327179, 50.434271938, 159.29113202, 59.109374720),
        (1.0, 17.895169469, 78.757757664, 67.187563600)),
    8: ((3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427,
         13731.693765509461125, 45921.953931549871457, 67265.770927008700853,
         33430.575583588128105, 2509.0809287301226727),
        (1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
         21213.794301586595867, 39307.895800092710610, 28729.085735721942674,
         5226.4952788528545610)),
}  # fmt: skip
_TAIL = {
    4: ((1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103),
        (1.0, 0.73700164250, 0.12021132975)),
    8: ((1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
         3.64784832476320460504, 1.27045825245236838258, 0.241780725177450611770,
         0.0227238449892691845833, 7.74545014278341407640e-4),
        (1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550,
         0.148103976427480074590, 0.0151986665636164571966, 5.47593808499534494600e-4,
         1.05075007164441684324e-9)),
}  # fmt: skip
_FAR = (
    (6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
     0.296560571828504891230, 0.0265321895265761230930, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def quantile(q: Array, tail: Callable[[Array], Array]) -> Array:
    """The normal quantile of 1/2 + q, to about 4 units in the last place.

    Args:
        q: from -1/2 to 1/2.
        tail: function from positions in q to the exact 1/2 - abs(q) there.
    """
    bytes_ = q.itemsize
    upper, lower = _MIDDLE[bytes_]
    r = q.dtype.type(0.180625) - q * q
    z = q * _polynomial(upper, r)
    z /= _polynomial(lower, r)
    at = np.flatnonzero(np.abs(q) > 0.425)
    r = np.sqrt(-log(tail(at)))
    upper, lower = _TAIL[bytes_]
    shifted = r - q.dtype.type(1.6)
    size = _polynomial(upper, shifted) / _polynomial(lower, shifted)
    if bytes_ == 8:
        far = r > 5
        size[far] = _polynomial(_FAR[0], r[far] - 5) / _polynomial(_FAR[1], r[far] - 5)
    z[at] = np.copysign(size, q[at])
    return z


def normal(w: Array) -> Array:
    """`quantile` of 1/2 + (i + 1/2) / 2^B, where i is w as a signed number.

    The tails use all bits of w: the largest is 6.3 in float32 and 9.2 in float64.
    """
    form = _format(w)
    i = w.view(form.signed)
    top, shift = np.iinfo(form.signed).max, form.bits - 1

    def tail(at: Array) -> Array:
        part = i[at]
        left = top - (part ^ (part >> shift))  # the count of numbers further out
        return left.astype(form.real) * form.unit + form.half_unit

    return quantile(i.astype(form.real) * form.unit + form.half_unit, tail)
