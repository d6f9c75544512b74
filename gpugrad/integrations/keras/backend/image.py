"""Runs after Keras' backend/numpy/image.py, in its namespace."""

# ruff: noqa: D103
from __future__ import annotations

from keras.src.backend.gpugrad.core import convert_to_tensor

import gpugrad as gg

_map_coordinates = map_coordinates  # noqa: F821  # Keras' own, which pads as far as they reach


def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0.0):
    x, places = convert_to_tensor(inputs), convert_to_tensor(coordinates)
    if fill_mode in ("constant", "nearest") and places.shape[0] == x.ndim:
        ends = gg.reshape(gg.asarray(x.shape), (-1, *[1] * (places.ndim - 1)))
        places = gg.minimum(gg.where(places > -1, places, -1), ends)  # NaN is outside, too
    return _map_coordinates(x, places, order, fill_mode, fill_value)
