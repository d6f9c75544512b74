"""Signals sampled along one axis: convolution, interpolation, phases."""

import math
from typing import Any

import numpy as np

from gpugrad.core.arguments import check_numbers
from gpugrad.core.backend import NUMPY, SCALARS, is_inexact
from gpugrad.core.samples import shaped, uniform
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.kernels.cpu.large import MIDDLE
from gpugrad.ops._axes import arrays_of, check_axis
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate


def _start(n, m, mode):
    """Where the result of a mode starts in the full convolution, and how long it is."""
    least = min(n, m)
    return {
        "full": (0, n + m - 1),
        "same": ((least - 1) // 2, max(n, m)),
        "valid": (least - 1, max(n, m) - least + 1),
    }[mode]


def _reversed(xp, x):
    return conjugate(xp, xp.flip(x, axis=-1) if x.ndim else x)


def _convolve_rule(xp, g, shape, other, mode):
    """The gradient by the array of this shape, which was convolved with `other`."""
    n, m = math.prod(shape), other.size
    return xp.reshape(_convolve_slope(xp, g, n, m, other, mode), shape)


def _convolve_slope(xp, g, n, m, other, mode):
    if mode == "valid" and n >= m:
        return xp.convolve(g, _reversed(xp, other), mode="full")
    if mode == "same":
        start, length = _start(n, m, mode)
        g = xp.pad(g, (start, n + m - 1 - start - length))
    return xp.convolve(_reversed(xp, other), g, mode="valid")


def _convolve_batch(xp, batched, x1, x2, *, mode):
    """By Fourier transforms: no array library convolves many pairs of lines at a time."""
    x1, x2 = (
        x if x.ndim > b else xp.reshape(x, (*x.shape, 1))
        for x, b in zip((x1, x2), batched, strict=True)
    )
    n, m = x1.shape[-1], x2.shape[-1]
    exact = x1.dtype.kind in "biu" and x2.dtype.kind in "biu"
    if x1.dtype.kind == "c" or x2.dtype.kind == "c":
        y = xp.ifft(xp.fft(x1, n=n + m - 1) * xp.fft(x2, n=n + m - 1))
    else:
        y = xp.irfft(xp.rfft(x1, n=n + m - 1) * xp.rfft(x2, n=n + m - 1), n=n + m - 1)
    start, length = _start(n, m, mode)
    y = xp.getitem(y, index=(Ellipsis, slice(start, start + length)))
    return xp.astype(xp.round(y), np.result_type(x1.dtype, x2.dtype)) if exact else y


_PAIRS = shaped(
    [(4,), (3,)],
    ([(3,), (4,)], {"mode": "valid"}),
    ([(5,), (2,)], {"mode": "valid"}),
    ([(4,), (2,)], {"mode": "same"}),
    ([(2,), (5,)], {"mode": "same"}),
    [(1,), (1,)],
    [(), (3,)],
)
_PAIR_ERRORS: list[Any] = [
    ([np.ones((2, 2)), np.ones(2)], {}, ShapeError, r"convolve: .*\(2, 2\)"),
    ([np.ones(0), np.ones(2)], {}, ShapeError, r"convolve: .*\(0,\)"),
    ([np.ones(3), np.ones(2)], {"mode": "half"}, ArgumentError, "convolve: no mode 'half'"),
]


@op(
    vjp=[
        lambda xp, g, x1_shape, x2, mode: _convolve_rule(xp, g, x1_shape, x2, mode),
        lambda xp, g, x1, x2_shape, mode: _convolve_rule(xp, g, x2_shape, x1, mode),
    ],
    linear="each",
    kinds="fci",
    batch=_convolve_batch,
    samples=_PAIRS,
    ref=lambda x1, x2, mode="full": np.convolve(x1, x2, mode),
    errors=_PAIR_ERRORS,
)
def convolve(xp, x1, x2, /, mode="full"):
    """Convolution of two sequences: y_k = sum over j of x1_j x2_(k - j).

    Args:
        x1: array of shape (n,), not empty, or a number, which is a sequence of length 1.
        x2: array of shape (m,), not empty, or a number.
        mode: ``"full"`` for all n + m - 1 elements; ``"same"`` for the max(n, m) in the
            middle; ``"valid"`` for elements where the shorter lies within the longer.

    Returns:
        Tensor of one axis.

    >>> print(gg.convolve([1.0, 2.0, 3.0], [1.0, 10.0]))
    [ 1. 12. 23. 30.]
    """
    if x1.ndim > 1 or x2.ndim > 1 or not x1.size or not x2.size:
        raise ShapeError(
            f"convolve: x1 and x2 must be two non-empty sequences, their shapes are {x1.shape} "
            f"and {x2.shape}."
        )
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"convolve: no mode {mode!r}; choose 'full', 'same' or 'valid'.")
    # NumPy takes ten times as long for strided or broadcast arrays
    x1, x2 = xp.lib.ascontiguousarray(x1), xp.lib.ascontiguousarray(x2)
    return xp.lib.convolve(x1, x2, mode=mode)


@op(
    kinds="fci",
    samples=_PAIRS,
    errors=_PAIR_ERRORS,
    ref=lambda x1, x2, mode="valid": np.correlate(*np.atleast_1d(x1, x2), mode),
)
def correlate(xp, x1, x2, /, mode="valid"):
    """Correlation of two sequences: y_k = sum over j of x1_(j + k) conj(x2_j).

    Args:
        x1: array of shape (n,), not empty, or a number, which is a sequence of length 1.
        x2: array of shape (m,), not empty, or a number.
        mode: ``"full"``, ``"same"`` or ``"valid"``, as for `convolve`.

    Returns:
        Tensor of one axis.

    >>> print(gg.correlate([1.0, 2.0, 3.0], [1.0, 10.0]))
    [21. 32.]
    """
    x1, x2 = arrays_of(xp, x1, x2)
    if x1.size >= x2.size:
        return xp.convolve(x1, _reversed(xp, x2), mode=mode)
    # "same" is off centre by half an element towards the longer one
    return _reversed(xp, xp.convolve(x2, _reversed(xp, x1), mode=mode))


def _sorted_period(xp, x, points, values, period):
    """All points within one period, and one point beyond on both sides."""
    period = abs(period)
    x, points = xp.remainder(x, period), xp.remainder(points, period)
    order = xp.argsort(points)
    points, values = xp.take(points, order), xp.take(values, order)
    first, last = (slice(0, 1),), (slice(-1, None),)
    before, after = xp.getitem(points, index=last), xp.getitem(points, index=first)
    points = xp.concat([before - period, points, after + period])
    before, after = xp.getitem(values, index=last), xp.getitem(values, index=first)
    values = xp.concat([before, values, after])
    return x, points, values


def _lines(xp, points, values):
    """The lines between points, and one beyond the last, as a piecewise polynomial has them.

    A line between numbers that are not finite is their sum, but for its start.
    """
    low, high = (xp.getitem(values, index=slice(*ends)) for ends in ((None, -1), (1, None)))
    finite, steps = xp.isfinite(low) & xp.isfinite(high), xp.diff(points)
    rises = xp.where(finite, high, 0.0) - xp.where(finite, low, 0.0)
    slopes = rises / xp.where(xp.equal(steps, 0), 1.0, steps)
    slopes = xp.where(finite, slopes, low + high)
    if slopes.size:
        slopes = xp.concat([slopes, xp.getitem(slopes, index=slice(-1, None))])
    else:  # one point
        slopes = xp.astype(xp.isnan(values), values.dtype)
    rows = xp.expand_dims(xp.stack([slopes, values], axis=0), axis=2)
    return rows, xp.pad(points, ((0, 1),), constant_values=math.inf)


def _interp_samples(rng):
    points = np.array([-2.0, -0.7, 0.4, 1.1])
    for x in (uniform(rng, 2, 3), uniform(rng, low=-0.5, high=0.3), np.array([-3.0, 2.5, 0.1])):
        yield [x, points, uniform(rng, 4)], {}
    yield [np.array([-3.0, 2.5, 0.1]), points, uniform(rng, 4)], {"left": 0.0, "right": 7.0}
    yield [uniform(rng, 3), np.array([0.3]), uniform(rng, 1)], {}
    yield [uniform(rng, 3), np.array([0.9, 0.2, 0.5]), uniform(rng, 3)], {"period": 1.3}


@op(
    samples=_interp_samples,
    ref=lambda x, points, values, left=None, right=None, period=None: np.interp(
        x, points, values, left, right, period
    ),
    errors=[
        ([np.ones(2), np.ones(2), np.ones(3)], {}, ShapeError, r"interp: .*\(2,\) and \(3,\)"),
        ([np.ones(2), np.ones(0), np.ones(0)], {}, ShapeError, r"interp: .*\(0,\)"),
        ([np.ones(2), np.ones(2), np.ones(2)], {"period": 0}, ArgumentError, "period"),
        ([np.ones(2) + 1j, np.ones(2), np.ones(2)], {}, DTypeError, "interp: x complex128"),
    ],
)
def interp(xp, x, points, values, /, left=None, right=None, period=None):
    """Values at `x` of the piecewise linear function through points.

    All three arrays get gradients; the one by `x` is the slope of the piece to the right.

    Args:
        x: array of any shape, or a number.
        points: array of shape (n,), in ascending order (in any order with a `period`).
        values: array of shape (n,): the values at the points.
        left, right: results below the first and above the last point; None: that point's value.
        period: period of the function; `left` and `right` are then ignored.

    >>> print(gg.interp([0.5, 3.0], [0.0, 1.0, 2.0], [0.0, 10.0, 40.0]))
    [ 5. 40.]
    """
    if any(type(a) in SCALARS for a in (points, values)):
        raise DTypeError("interp: points and values must be arrays, not numbers.")
    if points.ndim != 1 or points.shape != values.shape or not points.size:
        raise ShapeError(
            "interp: points and values must be two sequences of one length, their shapes are "
            f"{points.shape} and {values.shape}."
        )
    ends = {"left": left, "right": right}
    check_numbers("interp", **{side: v for side, v in ends.items() if v is not None})
    if period == 0:
        raise ArgumentError("interp: the period must not be 0.")
    if type(x) in SCALARS:
        x = xp.getitem(points, index=(0,)) * 0 + x
    if "c" in (x.dtype.kind, points.dtype.kind):
        raise DTypeError(f"interp: x {x.dtype} and points {points.dtype} must both be real.")
    if xp is NUMPY and period is None and x.dtype == points.dtype == values.dtype == np.float64:
        some = x.reshape(-1)[:64]
        if x.size < MIDDLE or (some[1:] >= some[:-1]).all():  # it guesses well where they ascend
            return np.asarray(np.interp(x, points, values, left, right))
    points, values = (v if is_inexact(v.dtype) else xp.astype(v, float) for v in (points, values))
    if period is not None:
        x, points, values = _sorted_period(xp, x, points, values, period)
        left = right = None
    shape, x = x.shape, xp.reshape(x, (-1,))
    first, last = (xp.getitem(points, index=(j,)) for j in (0, points.size - 1))
    inside = xp.clip(x, first, last)
    is_complex = values.dtype.kind == "c"
    parts = (xp.real(values), xp.imag(values)) if is_complex else (values,)
    lines = [xp.piecewise_polynomial(*_lines(xp, points, v), inside) for v in parts]
    y = xp.reshape(xp.complex(*lines) if is_complex else lines[0], (-1,))
    # the first point may stand twice
    y = xp.where(x < first, xp.getitem(values, index=(0,)) if left is None else left, y)
    if right is not None:
        y = xp.where(x > last, right, y)
    return xp.reshape(y, shape)


@op(
    ref=lambda p, discont=None, axis=-1, period=2 * np.pi: np.unwrap(
        p, discont, axis, period=period
    ),
    samples=shaped(
        [(6,)],
        ([(4, 2)], {"axis": 0, "discont": 4.0}),
        ([(2, 4)], {"period": 1.5}),
        [(0,)],
        [(2, 1)],
        domain=(-9, 9),
    ),
    errors=[([np.ones(3)], {"axis": 1}, AxisError, "unwrap: axis 1")],
)
def unwrap(xp, p, /, discont=None, axis=-1, *, period=2 * math.pi):
    """Phases without jumps: adds whole periods where neighbours differ by over half of one.

    Args:
        discont: the largest difference that is not a jump; at least half a period.
        period: the period after which phases repeat.

    Returns:
        Tensor of the shape of `p`. Its gradient is 1: the added periods are constant.

    >>> print(gg.unwrap([0.0, 3.0, -3.0, 0.0]))
    [0.        3.        3.2831855 6.2831855]
    """
    check_axis("unwrap", axis, p.shape)
    if not p.shape[axis]:
        return xp.positive(p)
    half = period / 2
    step = xp.diff(xp.stop_gradient(p), axis=axis)
    short = xp.remainder(step + half, period) - half
    short = xp.where(xp.equal(short, -half) & (step > 0), half, short)
    least = half if discont is None else discont
    jump = xp.where(xp.abs(step) < least, 0.0, short - step)
    return p + xp.cumulative_sum(jump, axis=axis, include_initial=True)
