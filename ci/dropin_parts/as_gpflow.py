"""Imported before pytest starts: gpugrad in TensorFlow's place, for GPflow's own tests.

GPflow asks TensorFlow Probability for bijectors, densities and a Variable behind a bijector. That
library needs TensorFlow's private modules, so these few stand in for it.
"""

import operator
import sys
import types
from typing import Any
from unittest.mock import MagicMock

import as_tensorflow  # noqa: F401
import numpy as np
import tensorflow as tf

import gpugrad as gg

tf_any: Any = tf


class Bijector:
    """A function with its inverse and the logarithm of its Jacobian."""

    def __init__(self, *parts: Any, name: Any = None, **options: Any) -> None:
        self.parts, self.name = parts, name or type(self).__name__.lower()

    def forward(self, x: Any) -> Any:
        return self._forward(tf.convert_to_tensor(x))

    def inverse(self, y: Any) -> Any:
        return self._inverse(tf.convert_to_tensor(y))

    __call__ = forward

    def forward_log_det_jacobian(self, x: Any, event_ndims: int = 0) -> Any:
        found = self._log_slope(tf.convert_to_tensor(x))
        return tf.reduce_sum(found, axis=list(range(-event_ndims, 0)))

    def inverse_log_det_jacobian(self, y: Any, event_ndims: int = 0) -> Any:
        return -self.forward_log_det_jacobian(self.inverse(y), event_ndims)

    def _forward(self, x: Any) -> Any:
        return x

    _inverse = _forward

    def _log_slope(self, x: Any) -> Any:
        return tf.zeros_like(x)


def _bijector(name: str, forward: Any, inverse: Any, log_slope: Any) -> type:
    own = {"_forward": forward, "_inverse": inverse, "_log_slope": log_slope}
    return type(name, (Bijector,), {k: (lambda s, x, f=f: f(x)) for k, f in own.items()})


class Shift(Bijector):
    """Adds a constant."""

    def _forward(self, x: Any) -> Any:
        return x + tf.cast(self.parts[0], x.dtype)

    def _inverse(self, y: Any) -> Any:
        return y - tf.cast(self.parts[0], y.dtype)


class Sigmoid(Bijector):
    """Numbers as numbers of an interval, by default that from 0 to 1."""

    def _interval(self, x: Any) -> Any:
        low, high = (tf.cast(part, x.dtype) for part in self.parts or (0.0, 1.0))
        return low, high - low

    def _forward(self, x: Any) -> Any:
        low, length = self._interval(x)
        return low + length * tf.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        low, length = self._interval(y)
        y = (y - low) / length
        return tf.math.log(y) - tf.math.log1p(-y)

    def _log_slope(self, x: Any) -> Any:
        return tf.math.log(self._interval(x)[1]) - tf.math.softplus(-x) - tf.math.softplus(x)


class Chain(Bijector):
    """Bijectors one after the other, the last one first."""

    def _forward(self, x: Any) -> Any:
        for part in reversed(self.parts[0]):
            x = part.forward(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in self.parts[0]:
            y = part.inverse(y)
        return y

    def _log_slope(self, x: Any) -> Any:
        total = tf.zeros_like(x)
        for part in reversed(self.parts[0]):
            total += part._log_slope(x)
            x = part.forward(x)
        return total


class FillTriangular(Bijector):
    """Vectors as lower triangular matrices."""

    def _forward(self, x: Any) -> Any:
        n = int((np.sqrt(8 * x.shape[-1] + 1) - 1) / 2)
        zeros = gg.zeros((*x.shape[:-1], n, n), dtype=x.dtype)
        return gg.index_put(zeros, x, index=(..., *np.tril_indices(n)))

    def _inverse(self, y: Any) -> Any:
        return y[(..., *np.tril_indices(y.shape[-1]))]


class TransformedVariable(tf_any.Module):
    """A Variable, seen through a bijector."""

    def __init__(
        self, initial_value: Any, bijector: Any, dtype: Any = None, name: Any = None, **options: Any
    ) -> None:
        self._name, self.bijector = name or bijector.name, bijector
        start = bijector.inverse(tf.convert_to_tensor(initial_value, dtype=dtype))
        self._pretransformed_input = tf_any.Variable(start, name=self._name, **options)

    def value(self) -> Any:
        return self.bijector.forward(self._pretransformed_input)

    def __gpugrad_tensor__(self, dtype: Any = None) -> Any:
        return self.value() if dtype is None else tf.cast(self.value(), dtype)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.value().numpy(), dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.value(), name)

    shape = property(lambda self: tf_any.TensorShape(self.value().shape))
    dtype = property(lambda self: tf_any.as_dtype(self._pretransformed_input.dtype))


for _name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]:
    _f = getattr(operator, _name)
    setattr(TransformedVariable, f"__{_name}__", lambda a, b, f=_f: f(a.value(), b))
    _reflected = lambda a, b, f=_f: f(tf.convert_to_tensor(b), a.value())  # noqa: E731
    setattr(TransformedVariable, f"__r{_name}__", _reflected)
for _name in ["neg", "abs", "getitem", "lt", "le", "gt", "ge"]:
    _f = getattr(operator, _name)
    setattr(TransformedVariable, f"__{_name}__", lambda a, *b, f=_f: f(a.value(), *b))


class Distribution:
    """A density from `gpugrad.scipy.stats`."""


def _distribution(name: str, make: Any) -> type:
    """A distribution whose methods are those of a frozen one of `gpugrad.scipy.stats`."""

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        self.own, self.args, self.keywords = None, args, keywords

    def frozen(self: Any) -> Any:
        read = [tf.convert_to_tensor(a) for a in self.args]
        return make(*read, **{k: tf.convert_to_tensor(v) for k, v in self.keywords.items()})

    methods = {
        "log_prob": lambda self, x: frozen(self).logpdf(tf.convert_to_tensor(x)),
        "prob": lambda self, x: frozen(self).pdf(tf.convert_to_tensor(x)),
        "mean": lambda self: frozen(self).mean(),
        "variance": lambda self: frozen(self).var(),
        "stddev": lambda self: frozen(self).std(),
    }
    return type(name, (Distribution,), {"__init__": __init__, **methods})


stats = gg.scipy.stats
bijectors = types.SimpleNamespace(
    Bijector=Bijector, Chain=Chain, Shift=Shift, FillTriangular=FillTriangular,
    Identity=_bijector("Identity", lambda x: x, lambda y: y, tf.zeros_like),
    Exp=_bijector("Exp", tf.exp, tf.math.log, lambda x: x),
    Reciprocal=_bijector(
        "Reciprocal", tf.math.reciprocal, tf.math.reciprocal, lambda x: -2 * tf.math.log(tf.abs(x))
    ),
    Sigmoid=Sigmoid,
    Softplus=_bijector(
        "Softplus", tf.math.softplus, lambda y: y + tf.math.log(-tf.math.expm1(-y)),
        lambda x: -tf.math.softplus(-x),
    ),
)  # fmt: skip
distributions = types.SimpleNamespace(
    Distribution=Distribution,
    Normal=_distribution("Normal", lambda loc, scale: stats.norm(loc, scale)),
    Gamma=_distribution(
        "Gamma", lambda concentration, rate: stats.gamma(concentration, scale=1 / rate)
    ),
    Beta=_distribution("Beta", lambda concentration1, concentration0: stats.beta(
        concentration1, concentration0
    )),
    Uniform=_distribution("Uniform", lambda low, high: stats.uniform(low, high - low)),
    Exponential=_distribution("Exponential", lambda rate: stats.expon(scale=1 / rate)),
    StudentT=_distribution("StudentT", lambda df, loc, scale: stats.t(df, loc, scale)),
)  # fmt: skip


def _module(name: str, **members: Any) -> Any:
    module = types.ModuleType(name)
    module.__dict__.update(members, __version__="0.25.0")
    sys.modules[name] = module
    return module


class Reference:
    """An object, compared by identity."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def deref(self) -> Any:
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._wrapped is self._wrapped

    def __hash__(self) -> int:
        return id(self._wrapped)


_module(
    "tensorflow_probability", bijectors=bijectors, distributions=distributions,
    util=types.SimpleNamespace(
        TransformedVariable=TransformedVariable, DeferredTensor=TransformedVariable
    ),
    stats=types.SimpleNamespace(), mcmc=types.SimpleNamespace(), python=MagicMock(),
)  # fmt: skip
tf_any.summary = types.SimpleNamespace(SummaryWriter=object)  # of a monitor that no test here uses
tf_any.saved_model = types.SimpleNamespace()
_module("tensorflow.python.util.object_identity", Reference=Reference)
_module("tensorflow.python.data.ops.iterator_ops", OwnedIterator=type(iter([])))
