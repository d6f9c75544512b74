"""Layers: objects that own Variables and find the Variables of the layers inside them.

The functions of `gpugrad.nn.functional` are available here too: ``gg.nn.relu``.
"""

from typing import Any

from gpugrad.core.settings import is_training, training
from gpugrad.nn import functional, initializers
from gpugrad.nn.layers import Conv2d, Dense, Dropout, Embedding, Flatten, Sequential
from gpugrad.nn.module import Module
from gpugrad.nn.normalization import BatchNorm, LayerNorm

__all__ = [
    "BatchNorm",
    "Conv2d",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "LayerNorm",
    "Module",
    "Sequential",
    "functional",
    "initializers",
    "is_training",
    "training",
]


_KNOWN_AS = {  # names in torch or Keras
    "BatchNorm1d": "BatchNorm",
    "BatchNorm2d": "BatchNorm",
    "BatchNorm3d": "BatchNorm",
    "Conv2D": "Conv2d",
    "Linear": "Dense",
    "init": "initializers",
}


def __getattr__(name: str) -> Any:
    if name in functional.__all__:
        return getattr(functional, name)
    hint = f" It is called gg.nn.{_KNOWN_AS[name]} here." if name in _KNOWN_AS else ""
    raise AttributeError(f"module 'gpugrad.nn' has no attribute {name!r}.{hint}")


def __dir__() -> list[str]:
    return [*__all__, *functional.__all__]
