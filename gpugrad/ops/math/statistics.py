"""Averages with weights, ranges, covariance and correlation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.arguments import check_numbers
from gpugrad.core.backend import SCALARS, TENSOR
from gpugrad.core.samples import along_axis, uniform
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import AxisError, DTypeError, ShapeError, saying_where
from gpugrad.ops._axes import checked_axes
from gpugrad.ops.math.reduction import EMPTY
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate


@op(
    kinds="fi", samples=along_axis({"axis": None}, {"axis": (0, 2), "keepdims": True}), errors=EMPTY
)
def ptp(xp, x, /, axis=None, *, keepdims=False):
    """Distance from the smallest to the largest element along axes.

    Args:
        x: array of any shape, not of length 0 along a reduced axis.

    >>> print(gg.ptp([1.0, 4.0, 2.0]))
    3.0
    """
    largest = xp.max(x, axis=axis, keepdims=keepdims)
    return largest - xp.min(x, axis=axis, keepdims=keepdims)


def _spread_weights(xp, x, weights, axis):
    """Weights of the averaged axes only, reshaped to broadcast with `x`."""
    if weights.shape == x.shape:
        return weights
    axes = checked_axes("average", x, axis)
    if axis is None or weights.shape != tuple(x.shape[a] for a in axes):
        raise ShapeError(
            f"average: weights {weights.shape} must have the shape {x.shape} of x, or of its "
            f"axes {axis}."
        )
    order = tuple(np.argsort(axes).tolist())
    lengths = tuple(n if i in axes else 1 for i, n in enumerate(x.shape))
    return xp.reshape(xp.permute_dims(weights, order), lengths)


def _average_samples(rng):
    def weights(*shape):
        return uniform(rng, *shape, low=0.5)

    yield [uniform(rng, 4), weights(4)], {}
    yield [uniform(rng, 3, 2), weights(3)], {"axis": 0}
    yield [uniform(rng, 2, 3), weights(2, 3)], {"axis": 1, "keepdims": True}
    yield [uniform(rng, 2, 1, 3), weights(3, 2)], {"axis": (2, 0)}
    yield [uniform(rng, 2, 3)], {"axis": (0, 1)}


@op(
    name="average",
    arrays=("x", "weights"),
    kinds="fc",
    samples=_average_samples,
    ref=lambda x, weights=None, axis=None, **how: np.average(x, axis, weights, **how),
    errors=[
        ([np.ones(3), np.ones(2)], {}, ShapeError, r"average: weights \(2,\)"),
        ([np.ones((2, 3)), np.ones(3)], {"axis": 2}, AxisError, "axis=2"),
        ([np.ones(3), 2.0], {}, DTypeError, "average: weights"),
    ],
)
def _average(xp, x, /, weights=None, *, axis=None, keepdims=False):
    """The op behind `gg.average`."""
    if weights is None:
        return xp.mean(x, axis=axis, keepdims=keepdims)
    if type(weights) in SCALARS or type(x) in SCALARS:
        raise DTypeError("average: weights and x must be arrays, not numbers.")
    weights = _spread_weights(xp, x, weights, axis)
    if not all(x.shape[a] for a in checked_axes("average", x, axis)):
        return xp.mean(x * weights, axis=axis, keepdims=keepdims)  # NaN with no warning
    total = xp.sum(weights, axis=axis, keepdims=keepdims)
    if weights.shape != x.shape:  # lengths of 1 among the axes that are not averaged
        total = xp.sum(xp.broadcast_to(weights, x.shape), axis=axis, keepdims=keepdims)
    return xp.sum(x * weights, axis=axis, keepdims=keepdims) / total


@saying_where
def average(
    x: Any,
    /,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Weighted mean along axes, as numpy.average.

    Args:
        x: array of any shape.
        axis: int, tuple of ints, or None for all axes.
        weights: array of the shape of `x`, or of its averaged axes only; equal if None. They
            get gradients too.
        returned: whether to return the sum of the weights as well.
        keepdims: whether reduced axes stay, with length 1.

    Returns:
        Tensor without the reduced axes, NaN where there are no elements; with `returned` a
        pair of it and the sums of weights, in the same shape.

    Raises:
        AxisError: `x` has no such axis.
        ShapeError: the weights do not fit.

    >>> print(gg.average([1.0, 4.0], weights=[2.0, 1.0]))
    2.0
    """
    x = tensor(x, weights)
    weights = None if weights is None else tensor(weights, x)
    mean = TENSOR.average(x, weights, axis=axis, keepdims=keepdims)
    if not returned:
        return mean
    if weights is None:
        n = math.prod(x.shape[a] for a in checked_axes("average", x, axis))
        return mean, TENSOR.stop_gradient(mean) * 0 + n
    every = TENSOR.broadcast_to(_spread_weights(TENSOR, x, weights, axis), x.shape)
    return mean, TENSOR.sum(every, axis=axis, keepdims=keepdims)


def _rows(xp, name, m, rowvar):
    """One row per variable, one column per observation."""
    if type(m) in SCALARS or m.ndim > 2:
        raise ShapeError(f"{name}: a matrix is needed, the shape is {getattr(m, 'shape', ())}.")
    if m.ndim < 2:
        return xp.reshape(m, (1, m.size))
    return m if rowvar else xp.permute_dims(m, (1, 0))


def _weights_of(name, what, w, n):
    if type(w) in SCALARS or w.shape != (n,):
        raise ShapeError(
            f"{name}: {what} {getattr(w, 'shape', w)} must be ({n},), one for each observation."
        )
    return w


def _observations(xp, name, m, y, rowvar):
    x = _rows(xp, name, m, rowvar)
    if y is None:
        return x
    y = _rows(xp, name, y, rowvar)
    if x.shape[1] != y.shape[1]:
        raise ShapeError(f"{name}: {x.shape[1]} and {y.shape[1]} observations.")
    return xp.concat([x, y])


def _covariance(xp, name, m, y, fweights, aweights, rowvar, ddof):
    x = _observations(xp, name, m, y, rowvar)
    n = x.shape[1]
    if fweights is None and aweights is None:
        d = x - xp.mean(x, axis=1, keepdims=True)
        weighted, divisor = d, n - ddof
        if divisor <= 0:
            divisor = float("nan")
    else:
        f = 1
        if fweights is not None:
            real = np.finfo(x.dtype).dtype if x.dtype.kind in "fc" else np.float64
            f = xp.astype(_weights_of(name, "fweights", fweights, n), real)
            if fweights.dtype.kind not in "iub":
                dtype = fweights.dtype
                raise DTypeError(f"{name}: fweights are {dtype}, not integers; see aweights.")
        a = 1 if aweights is None else _weights_of(name, "aweights", aweights, n)
        w = f * a
        total = xp.sum(w)
        d = x - xp.reshape(xp.sum(x * w, axis=1) / total, (x.shape[0], 1))
        weighted = d * w
        used = xp.sum(w * a) / total if ddof else 0
        divisor = total - ddof * used
    return xp.matmul(weighted, conjugate(xp, xp.permute_dims(d, (1, 0)))) / divisor


def _samples_of_matrices(rng):
    yield [uniform(rng, 2, 4)], {}
    yield [uniform(rng, 4, 2), uniform(rng, 4, 1)], {"rowvar": False}
    yield [uniform(rng, 4), uniform(rng, 4)], {}
    yield [uniform(rng, 5)], {}


def _cov_samples(rng):
    yield from _samples_of_matrices(rng)
    weights = {"fweights": np.array([1, 2, 1, 3]), "aweights": uniform(rng, 4, low=0.5)}
    yield [uniform(rng, 2, 4)], {**weights, "ddof": 0}
    yield [uniform(rng, 2, 4)], {"aweights": weights["aweights"], "bias": True}


def _cov_reference(m, y=None, fweights=None, aweights=None, **keywords):
    if not np.iscomplexobj(aweights):
        return np.cov(m, y, fweights=fweights, aweights=aweights, **keywords)
    # NumPy refuses complex weights: computed by the definition, without a correction
    w = aweights if fweights is None else aweights * fweights
    d = m - (m @ w / w.sum())[:, None]
    return np.einsum("ik,jk,k->ij", d, d.conj(), w) / w.sum()


@op(
    arrays=("m", "y", "fweights", "aweights"),
    kinds="fc",
    samples=_cov_samples,
    ref=_cov_reference,
    errors=[
        ([np.ones((2, 2, 2))], {}, ShapeError, r"cov: .*\(2, 2, 2\)"),
        ([np.ones((2, 3)), np.ones((2, 4))], {}, ShapeError, "cov: 3 and 4"),
        ([np.ones((2, 3))], {"aweights": np.ones(2)}, ShapeError, r"cov: aweights \(2,\)"),
        ([np.ones((2, 3)), None, False], {}, ShapeError, "cov: fweights False"),
        ([np.ones((2, 3)), None, np.ones(3)], {}, DTypeError, "cov: fweights are float64"),
    ],
)
def cov(xp, m, /, y=None, fweights=None, aweights=None, *, rowvar=True, bias=False, ddof=None):
    """Covariance matrix of variables.

    Args:
        m: array of shape (variables, observations), or of one axis for one variable.
        y: further variables, in the same form.
        fweights: integers of shape (observations,): how often each was observed.
        aweights: numbers of shape (observations,): the weight of each. They get gradients.
        bias: whether to divide by the number of observations n, not by n - 1.
        ddof: number subtracted from n instead.

    Returns:
        Tensor of shape (variables, variables), or () for one variable. NaN where the divisor
        is not positive.

    >>> print(gg.cov([[1.0, 2.0, 3.0], [1.0, 4.0, 7.0]]))
    [[1. 3.]
     [3. 9.]]
    """
    ddof = (0 if bias else 1) if ddof is None else ddof
    check_numbers("cov", "biuf", ddof=ddof)
    c = _covariance(xp, "cov", m, y, fweights, aweights, rowvar, ddof)
    return xp.reshape(c, ()) if c.shape == (1, 1) else c


def _clipped(xp, c):
    if c.dtype.kind == "c":
        return xp.complex(xp.clip(xp.real(c), -1.0, 1.0), xp.clip(xp.imag(c), -1.0, 1.0))
    return xp.clip(c, -1.0, 1.0)


@op(
    arrays=("x", "y"),
    kinds="fc",
    samples=_samples_of_matrices,
    errors=[([np.ones((2, 2, 2))], {}, ShapeError, r"corrcoef: .*\(2, 2, 2\)")],
)
def corrcoef(xp, x, /, y=None, *, rowvar=True):
    """Correlation coefficients of variables: covariance divided by standard deviations.

    Args:
        x: array of shape (variables, observations), or of one axis for one variable.
        y: further variables, in the same form.

    Returns:
        Tensor of shape (variables, variables), or () for one variable, between -1 and 1. NaN,
        with gradient 0, for a constant variable.

    >>> print(gg.corrcoef([[0.0, 2.0], [1.0, -1.0]]))
    [[ 1. -1.]
     [-1.  1.]]
    """
    x = _observations(xp, "corrcoef", x, y, rowvar)
    n = x.shape[0]
    d = x - xp.mean(x, axis=1, keepdims=True)
    s = xp.vector_norm(d, axis=1, keepdims=True)
    constant = xp.equal(s, 0)
    d = d / xp.where(constant, 1.0, s)
    c = _clipped(xp, xp.matmul(d, conjugate(xp, xp.permute_dims(d, (1, 0)))))
    c = xp.where(constant | xp.reshape(constant, (1, n)), float("nan"), c)
    return xp.reshape(c, ()) if n == 1 else c
