"""Runs after Keras' backend/numpy/random.py, in its namespace."""

# ruff: noqa: D103
from __future__ import annotations

import weakref

import numpy as numpy_itself
from keras.src.backend.config import floatx
from keras.src.backend.gpugrad.core import cast, convert_to_numpy, convert_to_tensor
from keras.src.random.seed_generator import SeedGenerator, draw_seed, global_seed_generator

import gpugrad as gg
from gpugrad.core import devices
from gpugrad.core.backend import innermost_array
from gpugrad.trace.array import current_trace, pause_trace

_streams = weakref.WeakKeyDictionary()


def _generator(seed):
    """The stream for a seed: a function of its numbers, but one that goes on inside of a trace."""
    seed = global_seed_generator() if seed is None and current_trace() is not None else seed
    if current_trace() is None or not isinstance(seed, SeedGenerator):
        return _started(convert_to_numpy(draw_seed(seed)))
    if seed not in _streams:
        with pause_trace():  # the stream is older than the trace, and goes on at each replay
            _streams[seed] = _started(devices.host(innermost_array(seed.state.value._data)))
    return _streams[seed]


def _started(state):
    words = state.astype("uint64").ravel().tolist()
    return gg.random.Generator(numpy_itself.random.SeedSequence(words))


def _shape(shape):
    return tuple(int(n) for n in shape)


def _parameter(x):
    return x if isinstance(x, (int, float)) else convert_to_tensor(x)


def _law(draw, **defaults):
    """A function that draws from a distribution, with Keras' names of its parameters."""

    def call(shape, *args, dtype=None, seed=None, **names):
        given = {**defaults, **dict(zip(defaults, args, strict=False)), **names}
        parameters = map(_parameter, given.values())
        return cast(draw(_shape(shape), *parameters, generator=_generator(seed)), dtype or floatx())

    return call


normal = _law(gg.random.normal, mean=0.0, stddev=1.0)
uniform = _law(gg.random.uniform, minval=0.0, maxval=1.0)
gamma = _law(gg.random.gamma, alpha=1.0)
beta = _law(gg.random.beta, alpha=1.0, beta=1.0)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    draw = gg.random.truncated_normal(_shape(shape), generator=_generator(seed))
    return cast(draw * _parameter(stddev) + _parameter(mean), dtype or floatx())


def randint(shape, minval, maxval, dtype="int32", seed=None):
    low, high = int(minval), int(maxval)
    draw = gg.random.integers(_shape(shape), low, high, generator=_generator(seed))
    return cast(draw, dtype)


def categorical(logits, num_samples, dtype="int64", seed=None):
    logits = convert_to_tensor(logits)
    shape = (logits.shape[0], int(num_samples))
    draw = gg.random.categorical(logits[:, None, :], shape, generator=_generator(seed))
    return cast(draw, dtype)


def shuffle(x, axis=0, seed=None):
    return gg.random.permutation(convert_to_tensor(x), axis=axis, generator=_generator(seed))


def binomial(shape, counts, probabilities, dtype=None, seed=None):
    counts = cast(counts, "int64")
    draw = gg.random.binomial(
        _shape(shape), counts, _parameter(probabilities), generator=_generator(seed)
    )
    return cast(draw, dtype or floatx())


def dropout(inputs, rate, noise_shape=None, seed=None):
    x = convert_to_tensor(inputs)
    if noise_shape is not None:
        noise_shape = tuple(
            m if n is None else int(n) for m, n in zip(x.shape, noise_shape, strict=True)
        )
    return gg.nn.functional.dropout(x, rate, noise_shape=noise_shape, generator=_generator(seed))
