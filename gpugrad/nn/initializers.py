"""Initial values of Variables: functions of a shape, a random generator and a dtype.

To change a parameter, use ``functools.partial(normal, stddev=0.02)`` or write your own function.

`fan_in` and `fan_out` are the last two lengths of the shape, each times the product of the others
(height and width of a convolution kernel).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gpugrad import random
from gpugrad.core.backend import as_dtype
from gpugrad.core.convert import constant
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ShapeError, saying_where
from gpugrad.ops.random.generator import Generator

__all__ = [
    "Initializer",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "normal",
    "ones",
    "uniform",
    "zeros",
]

Initializer = Callable[..., Tensor]
Shape = tuple[int, ...]


@saying_where
def zeros(shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32") -> Tensor:
    """Zeros."""
    return constant(0, as_dtype(dtype), shape)


@saying_where
def ones(shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32") -> Tensor:
    """Ones."""
    return constant(1, as_dtype(dtype), shape)


@saying_where
def normal(
    shape: Shape,
    *,
    mean: float = 0.0,
    stddev: float = 0.05,
    generator: Generator | None = None,
    dtype: Any = "float32",
) -> Tensor:
    """Normally distributed numbers."""
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
    """Uniformly distributed numbers from `low` to `high`."""
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
    """Normal numbers of variance 2 / (fan_in + fan_out)."""
    stddev = math.sqrt(2 / sum(_fans(shape)))
    return normal(shape, stddev=stddev, generator=generator, dtype=dtype)


@saying_where
def he_uniform(
    shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32"
) -> Tensor:
    """Uniform numbers of variance 2 / fan_in, for layers before a ReLU: He et al. 2015."""
    bound = math.sqrt(6 / _fans(shape)[0])
    return uniform(shape, low=-bound, high=bound, generator=generator, dtype=dtype)


@saying_where
def he_normal(
    shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32"
) -> Tensor:
    """Normal numbers of variance 2 / fan_in, for layers before a ReLU."""
    stddev = math.sqrt(2 / _fans(shape)[0])
    return normal(shape, stddev=stddev, generator=generator, dtype=dtype)


@saying_where
def lecun_normal(
    shape: Shape, *, generator: Generator | None = None, dtype: Any = "float32"
) -> Tensor:
    """Normal numbers of variance 1 / fan_in, for layers before a SELU."""
    stddev = math.sqrt(1 / _fans(shape)[0])
    return normal(shape, stddev=stddev, generator=generator, dtype=dtype)


def _fans(shape: Shape) -> tuple[int, int]:
    if len(shape) < 2:
        raise ShapeError(
            f"This initializer needs a shape with at least two axes, got {tuple(shape)}. Use "
            "normal, uniform, zeros or ones."
        )
    window = math.prod(shape[:-2])
    return max(window * shape[-2], 1), max(window * shape[-1], 1)
