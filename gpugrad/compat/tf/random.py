"""tf.random, on gpugrad's counter-based streams: other numbers than TensorFlow's, same laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.convert import ints, ops, tensor
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError

_streams: dict[int, Any] = {}


def set_seed(seed: int) -> None:
    """Restart all streams: the same numbers come again."""
    _streams.clear()
    gg.set_seed(int(seed))


set_random_seed = set_seed


def stream(seed) -> Any:
    """The stream of an op's ``seed=``, which goes on from call to call; None for the default."""
    if seed is None or isinstance(seed, gg.random.Generator):
        return seed
    if seed not in _streams:
        _streams[seed] = gg.random.Generator(int(seed))
    return _streams[seed]


def _parameter(p: Any) -> Any:
    return p if isinstance(p, (int, float)) else tensor(p)


def _normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None) -> Tensor:
    mean, stddev = _parameter(mean), _parameter(stddev)
    return gg.random.normal(shape, mean, stddev, dtype=dtype, generator=stream(seed))


def _truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None) -> Tensor:
    drawn = gg.random.truncated_normal(shape, dtype=dtype, generator=stream(seed))
    return drawn * stddev + mean


def _uniform(shape, minval=0, maxval=None, dtype="float32", seed=None) -> Tensor:
    if np.dtype(dtype).kind in "iu":
        if maxval is None:
            raise ArgumentError(f"tf.random.uniform: {dtype} needs maxval=.")
        least, most = int(minval), int(maxval)
        return gg.random.integers(shape, least, most, dtype=dtype, generator=stream(seed))
    z = gg.random.uniform(shape, dtype=dtype, generator=stream(seed))
    if minval == 0 and maxval is None:
        return z
    return z * ((1 if maxval is None else maxval) - minval) + minval


def _gamma(shape, alpha=..., beta=None, dtype="float32", seed=None) -> Tensor:
    alpha = tensor(alpha, like=np.dtype(dtype))
    rate = tensor(1.0 if beta is None else beta, like=alpha.dtype)
    lengths = (*shape, *np.broadcast_shapes(alpha.shape, rate.shape))
    return gg.random.gamma(lengths, alpha, dtype=dtype, generator=stream(seed)) / rate


def _poisson(shape, lam, dtype="float32", seed=None) -> Tensor:
    drawn = gg.random.poisson((*shape, *lam.shape), lam, generator=stream(seed))
    return gg.astype(drawn, dtype)


def _categorical(logits, num_samples, dtype="int64", seed=None) -> Tensor:
    shape = logits.shape[0], num_samples
    drawn = gg.random.categorical(logits[:, None, :], shape, generator=stream(seed))
    return gg.astype(drawn, dtype)


def _stateless(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The op whose stream is a function of its seed, which is two ints."""

    def draw(shape=..., seed=..., *args, **options) -> Tensor:
        words = ints(seed)
        if len(words) != 2:
            raise ArgumentError(f"tf.random: the seed of a stateless op is two ints, not {words}.")
        low, high = words
        own = gg.random.Generator((low * 0x9E3779B97F4A7C15 ^ high) % 2**63)
        return f(shape, *args, seed=own, **options)

    return draw


_OPS = ops(
    normal=_normal,
    truncated_normal=_truncated_normal,
    uniform=_uniform,
    gamma=_gamma,
    poisson=_poisson,
    categorical=_categorical,
    multinomial=_categorical,
    shuffle=lambda value, seed=None: gg.random.permutation(value, generator=stream(seed)),
)
_OPS |= {
    f"stateless_{name}": _stateless(_OPS[name])
    for name in ("normal", "truncated_normal", "uniform", "gamma", "poisson")
}


def stateless_categorical(logits, num_samples, seed, dtype="int64", name=None) -> Tensor:
    """Classes by unscaled log-probabilities; a function of its seed, which is two ints."""
    draw = lambda shape, seed: _OPS["categorical"](logits, num_samples, dtype, seed)
    return _stateless(draw)((), seed)


class Generator:
    """A stream of random numbers; ``normal``, ``truncated_normal`` and ``uniform`` draw them.

    >>> import gpugrad.compat.tf as tf
    >>> tf.random.Generator.from_seed(1).normal((2, 3)).shape.as_list()
    [2, 3]
    """

    def __init__(self, stream=None) -> None:
        self._stream = gg.random.Generator() if stream is None else stream

    @classmethod
    def from_seed(cls, seed, alg=None) -> Generator:
        return cls(gg.random.Generator(int(seed)))

    @classmethod
    def from_non_deterministic_state(cls, alg=None) -> Generator:
        return cls(gg.random.Generator(int(np.random.SeedSequence().generate_state(1)[0])))

    def __getattr__(self, name: str) -> Any:
        if name not in ("normal", "truncated_normal", "uniform"):
            raise AttributeError(f"tf.random.Generator has no {name!r}", name=name)
        return lambda *args, **keywords: _OPS[name](*args, **keywords, seed=self._stream)

    def reset_from_seed(self, seed) -> None:
        self._stream = gg.random.Generator(int(seed))

    def split(self, count=1) -> list[Generator]:
        """Independent streams, and this one goes on."""
        return [Generator(s) for s in self._stream.split(count)]


def get_global_generator() -> Generator:
    return Generator(gg.random.default_generator())


__getattr__, __dir__ = forwarding(__name__, _OPS, own=globals())
