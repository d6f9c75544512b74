"""Runs after Keras' backend/numpy/math.py, in its namespace."""

# ruff: noqa: D103
from __future__ import annotations

from keras.src.backend.gpugrad.core import convert_to_tensor

import gpugrad as gg
import gpugrad.numpy as np


def _segments(reduce):
    def call(data, segment_ids, num_segments=None, sorted=False):
        ids = convert_to_tensor(segment_ids)
        n = int(gg.max(ids)) + 1 if num_segments is None else num_segments
        ids = gg.where(ids < n, ids, -1)  # rows of other segments are left out
        return reduce(convert_to_tensor(data), ids, n)

    return call


segment_sum, segment_prod = _segments(gg.segment_sum), _segments(gg.segment_prod)
segment_max, segment_min = _segments(gg.segment_max), _segments(gg.segment_min)


def _parts(z):
    return np.real(z), np.imag(z)


def fft(x):
    return _parts(np.fft.fft(_get_complex_tensor_from_tuple(x)))  # noqa: F821  # of Keras' module


def fft2(x):
    return _parts(np.fft.fft2(_get_complex_tensor_from_tuple(x)))  # noqa: F821


def logsumexp(x, axis=None, keepdims=False):
    return gg.logsumexp(convert_to_tensor(x), axis=axis, keepdims=keepdims)


def extract_sequences(x, sequence_length, sequence_stride):
    windows = np.lib.stride_tricks.sliding_window_view(
        convert_to_tensor(x), sequence_length, axis=-1
    )
    return windows[..., ::sequence_stride, :]
