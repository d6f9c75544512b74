"""The fast Hankel transform, and lengths that transform fast."""

from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.devices import adopt
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError
from gpugrad.ops._scipy import of_numbers
from gpugrad.ops.fft.complex import scipy_fft


def _transform(name: str, a: Any, dln: float, mu: float, offset: float, bias: float) -> Tensor:
    """SciPy's transform of one pulse has the kernel; that of `a` is a convolution with it."""
    if not max(abs(mu), abs(bias)) < 1e6:  # SciPy's gamma function would not return
        raise ArgumentError(f"{name}: mu={mu} and bias={bias} must be smaller than 1e6.")
    a = tensor(a)
    n = a.shape[-1]
    steps = (np.arange(n) - (n - 1) / 2) * dln
    first, last = np.exp(-bias * steps), np.exp(-bias * (steps + offset))
    if name == "ifht":
        first, last = 1 / last, 1 / first
    pulse = np.zeros(n)
    pulse[n // 2] = 1 / first[n // 2]
    kernel = getattr(scipy_fft(), name)(pulse, dln, mu, offset, bias) / last
    first, last, factors = (
        tensor(adopt(v, a.device))
        for v in (first, last, np.fft.rfft(np.roll(kernel[::-1], -(n // 2))))
    )
    spectrum = xp.rfft(a * first if bias else a)
    out = xp.flip(xp.irfft(spectrum * xp.astype(factors, spectrum.dtype), n), axis=-1)
    return out * last if bias else out


@of_numbers
def fht(a: Any, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Tensor:
    """Fast Hankel transform of a periodic sequence with logarithmic spacing, as SciPy's.

    A. Hamilton, "Uncorrelated modes of the non-linear power spectrum", 2000, Appendix B.

    Args:
        a: real array of shape (..., n).
        dln: number, the logarithmic spacing.
        mu: number, the order of the transform.
        offset: number, the logarithm of the product of the centres; `fhtoffset` finds a good one.
        bias: number, the exponent of a power law that is taken out first.

    Returns:
        Tensor of the shape of `a`, linear in it: float32 for float32 and 16 bits if `bias` is 0,
        else float64.

    Raises:
        DTypeError: `a` is complex.

    >>> print(gg.fft.fht(gg.array([0.0, 1.0, 0.0]), 1.0, 0.0))
    [ 0.29145185  0.93048392 -0.22193577]
    """
    return _transform("fht", a, dln, mu, offset, bias)


@of_numbers
def ifht(A: Any, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Tensor:
    """Inverse of `fht` with the same arguments.

    Raises:
        DTypeError: `A` is complex.

    >>> a = gg.fft.fht(gg.array([0.0, 1.0, 0.0]), 1.0, 0.0)
    >>> print(gg.fft.ifht(a, 1.0, 0.0).numpy().round(6) + 0)
    [0. 1. 0.]
    """
    return _transform("ifht", A, dln, mu, offset, bias)


@of_numbers
def fhtoffset(dln: float, mu: float, initial: float = 0.0, bias: float = 0.0) -> float:
    """Offset near `initial` with which `fht` rings least.

    >>> print(round(gg.fft.fhtoffset(0.1, 2.0, 0.5), 6))
    0.545458
    """
    return float(scipy_fft().fhtoffset(dln, mu, initial, bias))


@of_numbers
def next_fast_len(target: int, real: bool = False) -> int:
    """Smallest length from `target` on that transforms fast.

    >>> gg.fft.next_fast_len(13)
    14
    """
    return int(scipy_fft().next_fast_len(target, real))


@of_numbers
def prev_fast_len(target: int, real: bool = False) -> int:
    """Largest length up to `target` that transforms fast.

    >>> gg.fft.prev_fast_len(13)
    12
    """
    return int(scipy_fft().prev_fast_len(target, real))
