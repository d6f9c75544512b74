"""Initial values of Variables: functions of a shape, a random generator and a dtype.

Each is called as ``initializer(shape, generator=None, dtype="float32")`` and returns a Tensor. To
change another parameter, use ``functools.partial(normal, stddev=0.02)`` or write your own function.

`fan_in` and `fan_out` are the last two lengths of the shape, each times the product of the others
(height and width of a convolution kernel).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gpugrad import linalg, random
from gpugrad.core.arguments import POSITIVE, one_of, takes
from gpugrad.core.backend import TENSOR, as_dtype
from gpugrad.core.convert import constant
from gpugrad.core.known_as import answer_missing
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ShapeError, saying_where
from gpugrad.ops.random.generator import Generator

__all__ = [
    "Initializer",
    "full",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "zeros",
]

answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__


Initializer = Callable[..., Tensor]
Shape = tuple[int, ...]


@saying_where
def zeros(shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32") -> Tensor:
    """Zeros.

    >>> print(gg.nn.initializers.zeros((2,)))
    [0. 0.]
    """
    return constant(0, as_dtype(dtype), shape)


@saying_where
def ones(shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32") -> Tensor:
    """Ones.

    >>> print(gg.nn.initializers.ones((2,)))
    [1. 1.]
    """
    return constant(1, as_dtype(dtype), shape)


@saying_where
def full(
    shape: Shape, *, value: float = 0.0, generator: Generator | None = None, dtype: Any = "float32"
) -> Tensor:
    """One value everywhere.

    >>> print(gg.nn.initializers.full((2,), value=0.5))
    [0.5 0.5]
    """
    return constant(value, as_dtype(dtype), shape)


@saying_where
def normal(
    shape: Shape,
    *,
    mean: float = 0.0,
    stddev: float = 0.05,
    generator: Generator | None = None,
    dtype: Any = "float32",
) -> Tensor:
    """Normally distributed numbers.

    >>> weights = gg.nn.initializers.normal((64, 64), stddev=0.02, generator=gg.random.Generator(0))
    >>> round(gg.std(weights).item(), 3)
    0.02
    """
    return random.normal(shape, mean, stddev, dtype=dtype, generator=generator)


@saying_where
def uniform(
    shape: Shape,
    *,
    low: float = -0.05,
    high: float = 0.05,
    generator: Generator | None = None,
    dtype: Any = "float32",
) -> Tensor:
    """Uniformly distributed numbers from `low` to `high`.

    >>> weights = gg.nn.initializers.uniform((64, 64), generator=gg.random.Generator(0))
    >>> gg.max(abs(weights)).item() <= 0.05
    True
    """
    return random.uniform(shape, low, high, dtype=dtype, generator=generator)


@saying_where
def glorot_uniform(
    shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32"
) -> Tensor:
    """Uniform numbers of variance 2 / (fan_in + fan_out): Glorot and Bengio 2010.

    >>> gg.nn.initializers.glorot_uniform((3, 2)).shape
    (3, 2)
    """
    fan_in, fan_out = _fans(shape)
    bound = math.sqrt(6 / (fan_in + fan_out))
    return uniform(shape, low=-bound, high=bound, generator=generator, dtype=dtype)


@saying_where
def glorot_normal(
    shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32"
) -> Tensor:
    """Normal numbers of variance 2 / (fan_in + fan_out).

    >>> weights = gg.nn.initializers.glorot_normal((64, 128), generator=gg.random.Generator(0))
    >>> round(gg.std(weights).item(), 1)  # sqrt(2 / (64 + 128))
    0.1
    """
    stddev = math.sqrt(2 / sum(_fans(shape)))
    return normal(shape, stddev=stddev, generator=generator, dtype=dtype)


@saying_where
def he_uniform(
    shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32"
) -> Tensor:
    """Uniform numbers of variance 2 / fan_in, for layers before a ReLU: He et al. 2015.

    >>> weights = gg.nn.initializers.he_uniform((200, 64), generator=gg.random.Generator(0))
    >>> round(gg.std(weights).item(), 1)  # sqrt(2 / 200)
    0.1
    """
    bound = math.sqrt(6 / _fans(shape)[0])
    return uniform(shape, low=-bound, high=bound, generator=generator, dtype=dtype)


@saying_where
def he_normal(
    shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32"
) -> Tensor:
    """Normal numbers of variance 2 / fan_in, for layers before a ReLU.

    >>> weights = gg.nn.initializers.he_normal((200, 64), generator=gg.random.Generator(0))
    >>> round(gg.std(weights).item(), 1)  # sqrt(2 / 200)
    0.1
    """
    stddev = math.sqrt(2 / _fans(shape)[0])
    return normal(shape, stddev=stddev, generator=generator, dtype=dtype)


@saying_where
def lecun_normal(
    shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32"
) -> Tensor:
    """Normal numbers of variance 1 / fan_in, for layers before a SELU.

    >>> weights = gg.nn.initializers.lecun_normal((100, 64), generator=gg.random.Generator(0))
    >>> round(gg.std(weights).item(), 1)  # sqrt(1 / 100)
    0.1
    """
    stddev = math.sqrt(1 / _fans(shape)[0])
    return normal(shape, stddev=stddev, generator=generator, dtype=dtype)


@saying_where
def truncated_normal(
    shape: Shape,
    *,
    mean: float = 0.0,
    stddev: float = 0.05,
    generator: Generator | None = None,
    dtype: Any = "float32",
) -> Tensor:
    """Normally distributed numbers within two standard deviations of the mean.

    `stddev` is that of the normal distribution before it is cut: 0.88 of it remains.

    >>> draws = gg.nn.initializers.truncated_normal((1000,), stddev=1.0)
    >>> bool(gg.all(abs(draws) <= 2))
    True
    """
    return random.truncated_normal(shape, mean, stddev, dtype=dtype, generator=generator)


@saying_where
@takes(scale=POSITIVE, mode=one_of("fan_in", "fan_out", "fan_avg"))
@takes(distribution=one_of("truncated_normal", "normal", "uniform"))
def variance_scaling(
    shape: Shape,
    *,
    scale: float = 1.0,
    mode: str = "fan_in",
    distribution: str = "truncated_normal",
    generator: Generator | None = None,
    dtype: Any = "float32",
) -> Tensor:
    """Numbers of variance scale / fan, as the initializer of this name in Keras and JAX.

    Args:
        shape: at least two lengths.
        scale: the variance times the fan. Glorot's initializers have 1 and ``"fan_avg"``, He's 2
            and ``"fan_in"``, LeCun's 1 and ``"fan_in"``.
        mode: ``"fan_in"``, ``"fan_out"`` or ``"fan_avg"``, their mean.
        distribution: ``"truncated_normal"``, ``"normal"`` or ``"uniform"``.
        generator, dtype: as for all initializers.

    Raises:
        ArgumentError: an unknown `mode` or `distribution`, or a `scale` that is not above 0.

    >>> gg.nn.initializers.variance_scaling((3, 2), scale=2.0, mode="fan_out").shape
    (3, 2)
    """
    fan_in, fan_out = _fans(shape)
    fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
    stddev = math.sqrt(scale / fans[mode])
    how = {"generator": generator, "dtype": dtype}
    if distribution == "uniform":
        return uniform(shape, low=-math.sqrt(3) * stddev, high=math.sqrt(3) * stddev, **how)
    if distribution == "normal":
        return normal(shape, stddev=stddev, **how)
    return truncated_normal(shape, stddev=stddev / _CUT_STDDEV, **how)


_CUT_STDDEV = 0.87962566103423978
"""The standard deviation of standard normal numbers within [-2, 2]."""


@saying_where
def orthogonal(
    shape: Shape, *, gain: float = 1.0, generator: Generator | None = None, dtype: Any = "float32"
) -> Tensor:
    """A matrix with orthonormal columns, or rows if those are fewer, times `gain`.

    More than two axes are joined into rows, but for the last. Saxe et al. 2014, "Exact solutions to
    the nonlinear dynamics of learning in deep linear neural networks".

    >>> q = gg.nn.initializers.orthogonal((4, 2))
    >>> bool(gg.allclose(q.T @ q, gg.eye(2), atol=1e-6))
    True
    """
    _fans(shape)  # which checks the shape
    rows, columns = math.prod(shape[:-1]), shape[-1]
    wide = "float64" if as_dtype(dtype) == "float64" else "float32"  # QR has no 16-bit floats
    draws = random.normal((max(rows, columns), min(rows, columns)), dtype=wide, generator=generator)
    q, r = linalg.qr(draws)
    signs = TENSOR.where(TENSOR.diagonal(r) < 0, -1, 1)  # so that all rotations are equally likely
    q = TENSOR.multiply(q, TENSOR.astype(signs, q.dtype))
    if rows < columns:
        q = TENSOR.matrix_transpose(q)
    return TENSOR.astype(TENSOR.reshape(TENSOR.multiply(q, gain), shape), as_dtype(dtype))


def _fans(shape: Shape) -> tuple[int, int]:
    if len(shape) < 2:
        raise ShapeError(
            f"This initializer needs a shape with at least two axes, got {tuple(shape)}. Use "
            "normal, uniform, zeros or ones."
        )
    window = math.prod(shape[:-2])
    return max(window * shape[-2], 1), max(window * shape[-1], 1)
