"""Initializers with TensorFlow's names: classes whose instances are functions of a shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import arrays, random
from gpugrad.compat.tf.convert import ints
from gpugrad.compat.tf.shapes import numpys


def _initializer(make: Callable[..., Any], **defaults) -> Callable[..., Any]:
    """A class of initializers whose settings have defaults, of a function of a shape."""

    def settings(*args, **keywords) -> Callable[..., Any]:
        given = {**defaults, **dict(zip(defaults, args, strict=False)), **keywords}
        given = {k: v for k, v in given.items() if k not in ("seed", "dtype")}
        return lambda shape, dtype="float32", **others: gg.astype(
            make(ints(shape), **given), numpys(dtype)
        )

    return settings


def _both_fans(name: str) -> Callable[..., Any]:
    """Gpugrad's initializer of that name, which takes one axis, too, as both fans."""
    make = getattr(gg.nn.initializers, name)
    return lambda shape: make(shape * 2)[0] if len(shape) == 1 else make(shape)


zeros_initializer = _initializer(arrays._OPS["zeros"])
ones_initializer = _initializer(arrays._OPS["ones"])
constant_initializer = _initializer(arrays._OPS["fill"], value=0)
random_normal_initializer = _initializer(random._OPS["normal"], mean=0.0, stddev=0.05)
random_uniform_initializer = _initializer(random._OPS["uniform"], minval=-0.05, maxval=0.05)

Zeros = zeros = zeros_initializer
Ones = ones = ones_initializer
Constant = constant = constant_initializer
RandomNormal = random_normal_initializer
RandomUniform = random_uniform_initializer
TruncatedNormal = _initializer(random._OPS["truncated_normal"], mean=0.0, stddev=0.05)
GlorotUniform = glorot_uniform = _initializer(_both_fans("glorot_uniform"))
GlorotNormal = glorot_normal = _initializer(_both_fans("glorot_normal"))
HeUniform = he_uniform = _initializer(_both_fans("he_uniform"))
HeNormal = he_normal = _initializer(_both_fans("he_normal"))
LecunNormal = lecun_normal = _initializer(_both_fans("lecun_normal"))

__getattr__, __dir__ = forwarding(__name__, gg.nn.initializers, own=globals())
