"""Initializers with TensorFlow's names: classes whose instances are functions of a shape."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import random
from gpugrad.compat.tf.convert import ints, tensor
from gpugrad.compat.tf.shapes import numpys


def _initializer(
    make: Callable[..., Any], usual: str | None = "float32", draws=True, **defaults
) -> Callable[..., Any]:
    """A class of initializers whose settings have defaults, of a function of a shape.

    With a seed the same numbers come in each call.

    Args:
        make: the function of a shape and the settings.
        usual: the dtype if none is given, None for that of `make`.
        draws: whether a seed comes after the settings, before the dtype.
        defaults: the settings.
    """

    def settings(*args, seed=None, dtype=None, **keywords) -> Callable[..., Any]:
        names = [*defaults, *(["seed"] if draws else []), "dtype"]
        if len(args) > len(names) or keywords.keys() - defaults.keys():
            raise TypeError(f"tf.initializers: {args} and {keywords} do not fit {names}.")
        given = {**defaults, "seed": seed, **dict(zip(names, args, strict=False)), **keywords}
        own, seed = given.pop("dtype", dtype), given.pop("seed")

        def initialize(shape, dtype=None, **others) -> Any:
            if seed is not None:
                given["seed"] = gg.random.Generator(int(seed))
            x, kind = make(ints(shape), **given), dtype or own or usual
            return x if kind is None else gg.astype(x, numpys(kind))

        return initialize

    return settings


def _own(name: str, make: Any = None, **defaults) -> Callable[..., Any]:
    """Gpugrad's initializer of that name; one that takes two axes takes one, too, as both fans."""
    make = make or getattr(gg.nn.initializers, name)

    def draw(shape, seed=None, **given) -> Any:
        if len(shape) == 1:
            return make(shape * 2, generator=seed, **given)[0]
        return make(shape, generator=seed, **given)

    return _initializer(draw, **defaults)


def _constant(shape, value, seed=None) -> Any:
    x = tensor(value)
    return gg.broadcast_to(x, shape) if x.ndim == 0 else gg.reshape(x, shape)


def _identity(shape, gain, seed=None) -> Any:
    return gain * gg.eye(*shape)


zeros_initializer = _initializer(lambda shape, seed=None: gg.zeros(shape), draws=False)
ones_initializer = _initializer(lambda shape, seed=None: gg.ones(shape), draws=False)
constant_initializer = _initializer(_constant, None, False, value=0)
random_normal_initializer = _initializer(random._OPS["normal"], mean=0.0, stddev=0.05)
random_uniform_initializer = _initializer(random._OPS["uniform"], minval=-0.05, maxval=0.05)

Zeros = zeros = zeros_initializer
Ones = ones = ones_initializer
Constant = constant = _initializer(_constant, draws=False, value=0)
RandomNormal = random_normal = random_normal_initializer
RandomUniform = random_uniform = random_uniform_initializer
TruncatedNormal = _initializer(random._OPS["truncated_normal"], mean=0.0, stddev=0.05)
VarianceScaling = variance_scaling = _own(
    "variance_scaling", scale=1.0, mode="fan_in", distribution="truncated_normal"
)


def _scaled(scale: float, mode: str, distribution: str) -> Callable[..., Any]:
    """`VarianceScaling` with fixed settings."""
    make = gg.nn.initializers.variance_scaling
    given: Any = {"scale": scale, "mode": mode, "distribution": distribution}
    return _own("variance_scaling", functools.partial(make, **given))


GlorotUniform = glorot_uniform = _scaled(1.0, "fan_avg", "uniform")
GlorotNormal = glorot_normal = _scaled(1.0, "fan_avg", "truncated_normal")
HeUniform = he_uniform = _scaled(2.0, "fan_in", "uniform")
HeNormal = he_normal = _scaled(2.0, "fan_in", "truncated_normal")
LecunUniform = lecun_uniform = _scaled(1.0, "fan_in", "uniform")
LecunNormal = lecun_normal = _scaled(1.0, "fan_in", "truncated_normal")
Orthogonal = orthogonal = orthogonal_initializer = _own("orthogonal", gain=1.0)
Identity = identity = _initializer(_identity, draws=False, gain=1.0)
truncated_normal = TruncatedNormal

__getattr__, __dir__ = forwarding(__name__, gg.nn.initializers, own=globals())
