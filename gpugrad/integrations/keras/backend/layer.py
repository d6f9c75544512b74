"""Runs after Keras' backend/numpy/layer.py, in its namespace."""

from __future__ import annotations

from keras.src import tree

import gpugrad as gg


class NumpyLayer:
    """The base of all layers: their results are plain Tensors, no views of the inputs."""

    def __call__(self, *args, **kwargs):
        """The layer's results."""
        results = super().__call__(*args, **kwargs)
        return tree.map_structure(lambda x: x._read() if isinstance(x, gg.Tensor) else x, results)
