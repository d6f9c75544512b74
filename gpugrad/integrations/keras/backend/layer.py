"""Runs after Keras' backend/numpy/layer.py, in its namespace."""

from __future__ import annotations

from keras.src import tree

import gpugrad as gg


class NumpyLayer:
    """What all layers inherit: a layer's results are plain Tensors, no views of its inputs."""

    def __call__(self, *args, **kwargs):
        """The layer's results."""
        results = super().__call__(*args, **kwargs)
        return tree.map_structure(lambda x: x._read() if isinstance(x, gg.Tensor) else x, results)
