"""tf.random, on gpugrad's counter-based streams: other numbers than TensorFlow's, same laws."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.convert import ints, tensor
from gpugrad.core.tensor import Tensor

_streams: dict[int, Any] = {}


def set_seed(seed: int) -> None:
    """Restart all streams: the same numbers come again."""
    _streams.clear()
    gg.set_seed(int(seed))


set_random_seed = set_seed


def stream(seed) -> Any:
    """The stream of an op's ``seed=``, which goes on from call to call; None for the default."""
    if seed is None:
        return None
    if seed not in _streams:
        _streams[seed] = gg.random.Generator(int(seed))
    return _streams[seed]


def _of(generator, dtype) -> dict[str, Any]:
    return {"dtype": np.dtype(dtype), "generator": generator}


def _full(shape, *parameters) -> Any:
    return ints(shape), *(p if isinstance(p, (int, float)) else tensor(p) for p in parameters)


def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None) -> Tensor:
    """Normal numbers."""
    return gg.random.normal(*_full(shape, mean, stddev), **_of(stream(seed), dtype))


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None) -> Tensor:
    """Normal numbers at most two standard deviations from the mean."""
    z = gg.random.truncated_normal(ints(shape), **_of(stream(seed), dtype))
    return z * stddev + mean


def uniform(
    shape, minval=0, maxval=None, dtype="float32", seed=None, name=None, generator=None
) -> Tensor:
    """Numbers from `minval` to before `maxval`, 1 by default."""
    generator = generator or stream(seed)
    if np.dtype(dtype).kind in "iu":
        return gg.random.integers(ints(shape), int(minval), int(maxval), **_of(generator, dtype))
    z = gg.random.uniform(ints(shape), **_of(generator, dtype))
    return (
        z
        if minval == 0 and maxval is None
        else z * ((1 if maxval is None else maxval) - minval) + minval
    )


def gamma(shape, alpha, beta=None, dtype="float32", seed=None, name=None) -> Tensor:
    """Gamma numbers of a shape parameter and a rate, for each of them an array of `shape`."""
    alpha = tensor(alpha, like=np.dtype(dtype))
    rate = tensor(1.0 if beta is None else beta, like=alpha.dtype)
    lengths = (*ints(shape), *np.broadcast_shapes(alpha.shape, rate.shape))
    return gg.random.gamma(lengths, alpha, **_of(stream(seed), dtype)) / rate


def poisson(shape, lam, dtype="float32", seed=None, name=None) -> Tensor:
    """Poisson numbers of a rate, for each of them an array of `shape`."""
    lam = tensor(lam)
    drawn = gg.random.poisson((*ints(shape), *lam.shape), lam, generator=stream(seed))
    return gg.astype(drawn, dtype)


def categorical(logits, num_samples, dtype="int64", seed=None, name=None) -> Tensor:
    """Class numbers by the logits in each row, `num_samples` a row."""
    logits = tensor(logits)
    drawn = gg.random.categorical(
        logits[:, None, :], (logits.shape[0], int(num_samples)), generator=stream(seed)
    )
    return gg.astype(drawn, dtype)


multinomial = categorical


def shuffle(value, seed=None, name=None) -> Tensor:
    """The parts along the first axis in random order."""
    return gg.random.permutation(tensor(value), generator=stream(seed))


def _stateless(seed) -> Any:
    low, high = ints(seed)
    return gg.random.Generator((low * 0x9E3779B97F4A7C15 ^ high) % 2**63)


def stateless_normal(
    shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg=None
) -> Tensor:
    """Normal numbers, a function of a seed of two ints."""
    return gg.random.normal(*_full(shape, mean, stddev), **_of(_stateless(seed), dtype))


def stateless_truncated_normal(
    shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg=None
) -> Tensor:
    """`truncated_normal`, a function of a seed of two ints."""
    return gg.random.truncated_normal(ints(shape), **_of(_stateless(seed), dtype)) * stddev + mean


def stateless_uniform(
    shape, seed, minval=0, maxval=None, dtype="float32", name=None, alg=None
) -> Tensor:
    """`uniform`, a function of a seed of two ints."""
    return uniform(shape, minval, maxval, dtype, generator=_stateless(seed))


class Generator:
    """A stream of random numbers.

    >>> import gpugrad.compat.tf as tf
    >>> tf.random.Generator.from_seed(1).normal((2, 3)).shape
    (2, 3)
    """

    def __init__(self, stream=None) -> None:
        self._stream = gg.random.Generator() if stream is None else stream

    @classmethod
    def from_seed(cls, seed, alg=None) -> Generator:
        """A stream that a seed determines."""
        return cls(gg.random.Generator(int(seed)))

    @classmethod
    def from_non_deterministic_state(cls, alg=None) -> Generator:
        """A stream that differs from run to run."""
        return cls(gg.random.Generator(int(np.random.SeedSequence().generate_state(1)[0])))

    def normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None) -> Tensor:
        """Normal numbers."""
        return gg.random.normal(*_full(shape, mean, stddev), **_of(self._stream, dtype))

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None) -> Tensor:
        """Normal numbers at most two standard deviations from the mean."""
        return gg.random.truncated_normal(ints(shape), **_of(self._stream, dtype)) * stddev + mean

    def uniform(self, shape, minval=0, maxval=None, dtype="float32", name=None) -> Tensor:
        """Numbers from `minval` to before `maxval`."""
        return uniform(shape, minval, maxval, dtype, generator=self._stream)

    def reset_from_seed(self, seed) -> None:
        """Start again from a seed."""
        self._stream = gg.random.Generator(int(seed))

    def split(self, count=1) -> list[Generator]:
        """Independent streams, and this one goes on."""
        return [Generator(s) for s in self._stream.split(count)]


def get_global_generator() -> Generator:
    """The stream that is used without a seed."""
    return Generator(gg.random.default_generator())


_look_up, _names = forwarding(__name__, own=globals())


def __getattr__(name: str) -> Any:
    return _look_up(name)


def __dir__() -> list[str]:
    return _names()
