"""Special functions with SciPy's names and arguments: `gg.special`.

All are differentiable to any order, except with respect to the order of a Bessel function, `n` of
`polygamma`, `expn` and `yn`, and `x` of `zeta`. The incomplete gamma and beta functions and their
inverses have gradients with respect to their parameters too. `jv`, `jn`, `yv`, `iv`, `ive`, `kv`
and `kve` run on the CPU only and raise `DeviceError` elsewhere.

>>> print(gg.special.gammaln([1.0, 5.0]))
[0.        3.1780539]
>>> print(gg.grad(lambda a: gg.special.gammainc(a, 1.0))(1.0))
-0.4317297
"""

from __future__ import annotations

from typing import Any

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import argument, tensor
from gpugrad.errors import saying_where
from gpugrad.ops.math.arithmetic import cbrt
from gpugrad.ops.math.transcendental import erf, erfc, exp2, expm1, log1p
from gpugrad.ops.nn.activations import log_sigmoid as log_expit
from gpugrad.ops.nn.activations import sigmoid as expit
from gpugrad.ops.special.bessel import (
    i0,
    i0e,
    i1,
    i1e,
    iv,
    ive,
    j0,
    j1,
    jv,
    k0,
    k0e,
    k1,
    k1e,
    kv,
    kve,
    y0,
    y1,
    yn,
    yv,
)
from gpugrad.ops.special.common import (
    boxcox,
    boxcox1p,
    cosm1,
    exp10,
    exprel,
    inv_boxcox,
    inv_boxcox1p,
    lambertw,
    logaddexp2,
    logit,
    sinc,
)
from gpugrad.ops.special.entropy import (
    divide_no_nan,
    entr,
    huber,
    kl_div,
    multiply_no_nan,
    pseudo_huber,
    rel_entr,
    xdivy,
    xlog1py,
    xlogy,
)
from gpugrad.ops.special.gamma import (
    beta,
    betaln,
    binom,
    digamma,
    gamma,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    rgamma,
    trigamma,
)
from gpugrad.ops.special.incomplete_beta import betainc, betaincc, betaincinv
from gpugrad.ops.special.incomplete_gamma import gammainc, gammaincc, gammainccinv, gammaincinv
from gpugrad.ops.special.integrals import (
    ellipe,
    ellipk,
    ellipkm1,
    exp1,
    expi,
    expn,
    shichi,
    sici,
    spence,
)
from gpugrad.ops.special.normal import dawsn, erfcinv, erfcx, erfinv, log_ndtr, ndtr, ndtri

__all__ = [
    "beta",
    "betainc",
    "betaincc",
    "betaincinv",
    "betaln",
    "binom",
    "boxcox",
    "boxcox1p",
    "cbrt",
    "cosm1",
    "dawsn",
    "digamma",
    "divide_no_nan",
    "ellipe",
    "ellipk",
    "ellipkm1",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp1",
    "exp2",
    "exp10",
    "expi",
    "expit",
    "expm1",
    "expn",
    "exprel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "gammasgn",
    "huber",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "inv_boxcox",
    "inv_boxcox1p",
    "iv",
    "ive",
    "j0",
    "j1",
    "jn",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kl_div",
    "kv",
    "kve",
    "lambertw",
    "log1p",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "logaddexp2",
    "loggamma",
    "logit",
    "logsumexp",
    "multigammaln",
    "multiply_no_nan",
    "ndtr",
    "ndtri",
    "poch",
    "polygamma",
    "pseudo_huber",
    "psi",
    "rel_entr",
    "rgamma",
    "shichi",
    "sici",
    "sinc",
    "softmax",
    "spence",
    "spherical_jn",
    "trigamma",
    "xdivy",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "yn",
    "yv",
    "zeta",
]


def __dir__() -> list[str]:
    return __all__


jn = jv
psi = digamma


def zeta(x: Any, q: Any = None) -> Any:
    """The Riemann zeta function of `x`, or Hurwitz's, the sum of (k + q)^-x from k = 0.

    Args:
        x: array of any shape, or a number; it has no gradient.
        q: array, broadcast against `x`; None is 1.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        NoGradientError: the gradient with respect to `x` is asked for.

    >>> print(gg.special.zeta([2.0, 4.0]))
    [1.644934  1.0823232]
    """
    return xp.zeta(argument("zeta", x), 1.0 if q is None else q)


@saying_where
def spherical_jn(n: int, z: Any, derivative: bool = False) -> Any:
    """Spherical Bessel function of the first kind, or its derivative.

    Args:
        n: non-negative int, the order.
        z: array of any shape.
        derivative: whether to return the derivative with respect to `z`.

    Returns:
        Tensor of the shape of `z`.

    Raises:
        ArgumentError: `n` is negative.

    >>> print(gg.special.spherical_jn(0, [0.0, 1.0]))
    [1.         0.84147096]
    """
    if not derivative:
        return xp.spherical_jn(z, n=n)
    above = xp.spherical_jn(z, n=n + 1)
    return (n * xp.spherical_jn(z, n=n - 1) - (n + 1) * above) / (2 * n + 1) if n else -above


@saying_where
def softmax(x: Any, axis: Any = None) -> Any:
    """Exponentials divided by their sum.

    Args:
        x: array of any shape.
        axis: int, tuple of ints, or None for all axes (`gg.softmax` takes the last).

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: `x` has no such axis.

    >>> print(gg.special.softmax([[0.0, 0.0], [0.0, 0.0]]))
    [[0.25 0.25]
     [0.25 0.25]]
    """
    if isinstance(axis, int):
        return xp.softmax(x, axis=axis)
    return xp.exp(log_softmax(x, axis))


@saying_where
def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithm of `softmax`, accurate where `softmax` underflows to 0.

    Args:
        x: array of any shape.
        axis: int, tuple of ints, or None for all axes (`gg.log_softmax` takes the last).

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: `x` has no such axis.

    >>> print(gg.special.log_softmax([[0.0, 0.0]]))
    [[-0.6931472 -0.6931472]]
    """
    if isinstance(axis, int):
        return xp.log_softmax(x, axis=axis)
    x = tensor(x)
    return x - xp.logsumexp(x, axis=axis, keepdims=True)


@saying_where
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b exp(a))) along axes, without overflow.

    Args:
        a: array of any shape, not empty along a reduced axis.
        axis: int, tuple of ints, or None for all axes.
        b: weights, broadcast against `a`; they may be negative or 0. None is 1.
        keepdims: whether reduced axes stay, with length 1.
        return_sign: whether to return log|sum| and the sign of the sum, instead of NaN for
            negative sums.

    Returns:
        Tensor without the reduced axes; two of them with `return_sign`.

    Raises:
        AxisError: `a` has no such axis.

    >>> print(gg.special.logsumexp([1000.0, 1000.0], b=[1.0, 3.0]))
    1001.3863
    """
    a = tensor(a)
    if b is None:
        total = xp.logsumexp(a, axis=axis, keepdims=keepdims)
        return (total, xp.sign(xp.exp(total))) if return_sign else total
    b = tensor(b)
    a = xp.where(b == 0, -float("inf"), a)  # a weight of 0 drops even an infinite exponential
    largest = xp.max(xp.stop_gradient(a), axis=axis, keepdims=True)
    largest = xp.where(xp.isfinite(largest), largest, 0)
    total = xp.sum(b * xp.exp(a - largest), axis=axis, keepdims=keepdims)
    shift = largest if keepdims else xp.reshape(largest, total.shape)
    if return_sign:
        return xp.log(xp.abs(total)) + shift, xp.sign(total)
    return xp.log(total) + shift
