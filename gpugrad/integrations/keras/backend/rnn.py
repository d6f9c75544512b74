"""Runs after Keras' backend/numpy/rnn.py, in its namespace."""

# ruff: noqa: D103
from __future__ import annotations

from keras.src import tree
from keras.src.backend.gpugrad.core import cast, convert_to_tensor

import gpugrad as gg


def numpy_scan(f, init, xs, reverse=False, mask=None):
    init = tree.map_structure(convert_to_tensor, init)

    def step(states, x):
        new, y = f(states, x)
        pairs = zip(tree.flatten(init), tree.flatten(new), strict=True)
        return tree.pack_sequence_as(init, [cast(b, a.dtype) for a, b in pairs]), y

    return gg.scan(step, init, xs, reverse=reverse)
