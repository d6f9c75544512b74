"""Random real numbers: noise, transformed by differentiable ops.

Parameters that are Tensors get gradients: the noise is a constant, and the formula that applies a
location, a scale or another parameter is recorded. Gamma samples, and all that is computed from
them, have the implicit gradients of `ops.random.gradients`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpugrad.autodiff.recorder import refuse_parameters
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor, operand, tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.ops.random.sampling import (
    Call,
    Shape,
    Source,
    check,
    distribution,
    finite,
    not_negative,
    positive,
    shape_first,
)


@distribution((not_negative, "stddev"))
def normal(call, mean=0.0, stddev=1.0):
    """Normal random numbers with a mean and a standard deviation.

    Args:
        shape: int or tuple of ints, to which the parameters broadcast. None for their own shape.
        mean, stddev: numbers or arrays. Tensors get gradients.
        dtype: of the result. None for the dtype of array parameters, else float32.
        device: of the result. None for the device of array parameters, else the default device.
        generator: the default generator if None.

    Returns:
        Tensor of the shape.

    Raises:
        ArgumentError: a negative `stddev` (parameters on a GPU are not checked), or a dtype that
            is not real floating point.
        ShapeError: parameters that do not broadcast to `shape`.

    >>> gg.random.normal((2, 3)).dtype.name
    'float32'
    """
    return call.located(call.noise("normal"), mean, stddev)


@distribution()
def uniform(call, low=0.0, high=1.0):
    """Random numbers from `low` up to, but not including, `high`; other arguments as `normal`.

    Where a bound is an array, rounding can give `high` itself.

    >>> bool(gg.all(gg.random.uniform(5, 2.0, 3.0) >= 2))
    True
    """
    numbers = isinstance(low, float) and isinstance(high, float)
    if numbers and not -np.inf < low <= high < np.inf:
        raise ArgumentError(f"uniform: low={low:g} and high={high:g} must be finite and in order.")
    noise = call.noise("uniform")
    if numbers and (low, high) == (0, 1) and call.dtype == call.work:
        return noise
    result = call.located(noise, low, high - low)
    if numbers and low < high:  # rounding must not give `high`
        end, start = call.dtype.type(high), call.dtype.type(low)
        result = TENSOR.minimum(result, float(np.nextafter(end, start)))
    return result


@distribution((not_negative, "scale"))
def exponential(call, scale=1.0):
    """Exponential random numbers with mean `scale`, all above 0; other arguments as `normal`.

    >>> bool(gg.all(gg.random.exponential(5, 2.0) > 0))
    True
    """
    return call.located(call.noise("exponential"), 0.0, scale)


def _location_scale(kind: str, what: str) -> Callable[..., Tensor]:
    def draw(call, loc=0.0, scale=1.0):
        return call.located(call.noise(kind), loc, scale)

    draw.__name__ = kind
    draw.__doc__ = f"""{what}; other arguments as `normal`.

    >>> gg.random.{kind}((2, 3)).shape
    (2, 3)
    """
    return distribution((not_negative, "scale"))(draw)


laplace = _location_scale("laplace", "Laplace: `loc` plus or minus `scale` times an exponential")
gumbel = _location_scale("gumbel", "Gumbel, the limit of maxima: `loc` - `scale` log(exponential)")
logistic = _location_scale("logistic", "Logistic: `loc` + `scale` log(u / (1 - u)) for a uniform u")


@distribution((not_negative, "scale"))
def cauchy(call, loc=0.0, scale=1.0):
    """Cauchy: `loc` + `scale` times a quotient of normal numbers; others as `normal`.

    >>> gg.random.cauchy((2, 3)).shape
    (2, 3)
    """
    pair = call.noise("normal", event=(2,))
    return call.located(pair[..., 0] / pair[..., 1], loc, scale)


@distribution((not_negative, "sigma"))
def lognormal(call, mean=0.0, sigma=1.0):
    """Exponentials of normal numbers with `mean` and deviation `sigma`; others as `normal`.

    >>> bool(gg.all(gg.random.lognormal(5) > 0))
    True
    """
    return call.rounded(TENSOR.exp(mean + sigma * call.noise("normal")))


@distribution((positive, "concentration"), (not_negative, "scale"))
def weibull(call, concentration=1.0, scale=1.0):
    """Weibull: `scale` times an exponential number to the 1 / `concentration`; others as `normal`.

    >>> bool(gg.all(gg.random.weibull(5, 2.0) > 0))
    True
    """
    return call.located(call.noise("exponential") ** (1 / concentration), 0.0, scale)


@distribution((positive, "alpha"), (not_negative, "scale"))
def pareto(call, alpha=1.0, scale=1.0):
    """Pareto: numbers from `scale` up, above x with probability (`scale` / x) ** `alpha`.

    Other arguments as `normal`. (``numpy.random.pareto`` is this minus 1, for scale 1.)

    >>> bool(gg.all(gg.random.pareto(5, 3.0, 2.0) >= 2))
    True
    """
    return call.located(TENSOR.exp(call.noise("exponential") / alpha), 0.0, scale)


@distribution((positive, "alpha"), (not_negative, "scale"), wide=True)
def gamma(call, alpha=1.0, scale=1.0):
    """Gamma random numbers with shape parameter `alpha`, `scale`, and mean alpha * scale.

    Other arguments as `normal`. Both parameters get gradients; the one by `alpha` is implicit.

    >>> bool(gg.all(gg.random.gamma(5, 2.0) > 0))
    True
    """
    return call.located(call.gamma(alpha), 0.0, scale)


@distribution((positive, "df"), wide=True)
def chisquare(call, df=1.0):
    """Sums of squares of `df` normal numbers; `df` need not be an integer. Others as `normal`.

    >>> bool(gg.all(gg.random.chisquare(5, 3.0) > 0))
    True
    """
    return call.rounded(2 * call.gamma(df / 2))


@distribution((positive, "df"), (not_negative, "scale"), wide=True)
def student_t(call, df=1.0, loc=0.0, scale=1.0):
    """Student's t: `loc` + `scale` * normal / sqrt(chisquare(df) / df). Others as `normal`.

    >>> gg.random.student_t((2, 3), 4.0).shape
    (2, 3)
    """
    half = df / 2
    spread = half**0.5 * TENSOR.exp(-0.5 * call.gamma(half, log=True))
    return call.located(spread * call.noise("normal"), loc, scale)


@distribution((positive, "alpha", "beta"), wide=True)
def beta(call, alpha=1.0, beta=1.0):
    """Beta random numbers from 0 to 1, with mean alpha / (alpha + beta); others as `normal`.

    Computed from logarithms of gamma numbers, so that small parameters do not give 0 / 0.

    >>> bool(gg.all(gg.random.beta(5, 2.0, 3.0) < 1))
    True
    """
    return call.rounded(TENSOR.sigmoid(call.gamma(alpha, log=True) - call.gamma(beta, log=True)))


@saying_where
def dirichlet(
    alpha, shape: Shape = None, *, dtype=None, device=None, generator: Source = None
) -> Tensor:
    """Random probabilities that sum to 1 along the last axis.

    Args:
        alpha: array (..., k) of numbers above 0; the means are proportional to them.
        shape: of the result without its last axis, to which ``alpha.shape[:-1]`` broadcasts;
            None for ``alpha.shape[:-1]``.
        dtype, device, generator: as for `normal`.

    Returns:
        Tensor (*shape, k), with the implicit gradient by `alpha`.

    >>> gg.random.dirichlet([1.0, 2.0, 3.0], shape=4).shape
    (4, 3)
    """
    alpha = tensor(alpha)
    if not alpha.ndim:
        raise ShapeError("dirichlet: alpha needs an axis, its shape is ().")
    check("dirichlet", positive, alpha=alpha)
    call = Call("dirichlet", shape, dtype, device, generator, alpha, events=(1,), wide=True).real()
    (alpha,) = call.parameters
    logs = call.gamma(alpha, log=True, event=alpha.shape[-1:])
    return call.rounded(TENSOR.softmax(logs))


@shape_first
def truncated_normal(
    shape: Shape = None,
    mean=0.0,
    stddev=1.0,
    low: float = -2.0,
    high: float = 2.0,
    *,
    dtype=None,
    device=None,
    generator: Source = None,
) -> Tensor:
    """Normal numbers between `low` and `high` standard deviations from the mean.

    Args:
        shape, mean, stddev, dtype, device, generator: as for `normal`.
        low, high: numbers, in units of `stddev`; infinite for no bound. They get no gradient.

    Raises:
        ArgumentError: bounds out of order, or both beyond 37 on one side; see also `normal`.
        DTypeError: a tape watches a bound.

    >>> bool(gg.all(gg.abs(gg.random.truncated_normal(5, 0.0, 3.0)) <= 6))
    True
    """
    refuse_parameters("truncated_normal", {"low": low, "high": high})
    low, high = float(low), float(high)
    if not low < high:
        raise ArgumentError(f"truncated_normal: low={low} is not below high={high}.")
    if low > 37 or high < -37:
        raise ArgumentError(
            f"truncated_normal: the probability from low={low} to high={high} is too small for "
            "float64; `low` must be at most 37, `high` at least -37."
        )
    check("truncated_normal", not_negative, stddev=stddev)
    call = Call("truncated_normal", shape, dtype, device, generator, mean, stddev).real()
    return call.located(call.noise("truncated_normal", low, high), *call.parameters)


@saying_where
def multivariate_normal(
    mean,
    cov=None,
    shape: Shape = None,
    *,
    scale_tril=None,
    dtype=None,
    device=None,
    generator: Source = None,
) -> Tensor:
    """Normal vectors with a mean and a covariance matrix.

    Args:
        mean: array (..., n).
        cov: array (..., n, n) of symmetric positive definite matrices; or None, and
        scale_tril: array (..., n, n) of their lower triangular factors: `cov` is
            ``scale_tril @ scale_tril.mT``.
        shape: of the result without its last axis; None for the shape of the parameters.
        dtype, device, generator: as for `normal`.

    Returns:
        Tensor (*shape, n): mean + scale_tril @ normal numbers.

    Raises:
        ArgumentError: both or none of `cov` and `scale_tril`.
        SingularMatrixError: `cov` is not positive definite.

    >>> gg.random.multivariate_normal([1.0, 2.0], [[2.0, 1.0], [1.0, 2.0]], shape=5).shape
    (5, 2)
    """
    if (cov is None) == (scale_tril is None):
        raise ArgumentError("multivariate_normal: pass one of cov and scale_tril.")
    matrix = scale_tril if cov is None else cov
    mean, matrix = operand(mean, matrix), operand(matrix, mean)
    if matrix.ndim < 2 or not mean.shape[-1:] == matrix.shape[-1:] == matrix.shape[-2:-1]:
        raise ShapeError(
            "multivariate_normal: mean must be (..., n) and matrices (..., n, n), got "
            f"{mean.shape} and {matrix.shape}."
        )
    check("multivariate_normal", finite, mean=mean)
    options = dtype, device, generator
    call = Call("multivariate_normal", shape, *options, mean, matrix, events=(1, 2)).real()
    mean, matrix = call.parameters
    factor = matrix if cov is None else TENSOR.cholesky(matrix)
    noise = call.noise("normal", event=mean.shape[-1:])
    if factor.ndim == 2 and noise.ndim > 1:  # one matrix product, not many products by vectors
        return call.rounded(mean + TENSOR.matmul(noise, TENSOR.matrix_transpose(factor)))
    turned = TENSOR.matmul(factor, TENSOR.expand_dims(noise, axis=-1))
    return call.rounded(mean + TENSOR.squeeze(turned, axis=-1))
