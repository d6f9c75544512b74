"""Layers: objects that own Variables and find those of the objects inside them.

The functions of `gpugrad.nn.functional` are here too: ``gg.nn.relu``, ``gg.nn.cross_entropy``.
"""

from typing import Any

from gpugrad.nn import functional, initializers
from gpugrad.nn.layers import Dense, Flatten, Sequential
from gpugrad.nn.module import Module

__all__ = ["Dense", "Flatten", "Module", "Sequential", "functional", "initializers"]


def __getattr__(name: str) -> Any:
    if name in functional.__all__:
        return getattr(functional, name)
    raise AttributeError(f"module 'gpugrad.nn' has no attribute {name!r}.")


def __dir__() -> list[str]:
    return [*__all__, *functional.__all__]
