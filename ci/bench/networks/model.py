"""The base class of a model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

Arrays = dict[str, Any]


def sizes(**values: Any) -> Mapping[str, Any]:
    """Sizes of a model, by name."""
    return MappingProxyType(values)


class Model:
    """A loss of weights and a batch, in functions that each library has under a name of its own.

    Attributes:
        rate: learning rate.
        by_adam: whether AdamW trains it, else SGD.
        reach: target on two cores: a peer, and the largest ratio of our time to its.
        wide: sizes of the bench, attributes of the model.
        narrow: those of a trial.
        scale: standard deviation of all kernels; by default that of He et al. 2015.
    """

    rate: ClassVar[float] = 1e-3
    by_adam: ClassVar[bool] = True
    reach: ClassVar[tuple[str, float]] = ("torch, eager", 1.0)
    wide: ClassVar[Mapping[str, Any]] = sizes()
    narrow: ClassVar[Mapping[str, Any]] = sizes()
    scale: ClassVar[float] = 0.0

    def __init__(self, small: bool) -> None:
        vars(self).update({**self.wide, **(self.narrow if small else {})})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no size {name!r}")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the weights. "norm" in a name: (2, n), a scale and a shift."""
        raise NotImplementedError

    def batch(self, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """The arguments of a step."""
        raise NotImplementedError

    def loss(self, lib: Any, w: Arrays, *batch: Any) -> Any:
        """The loss, of shape ()."""
        raise NotImplementedError

    def weights(self) -> dict[str, np.ndarray]:
        """The initial weights, float32."""
        rng = np.random.default_rng(0)

        def initial(name: str, shape: tuple[int, ...]) -> np.ndarray:
            if "norm" in name:
                return np.stack([np.ones(shape[1:]), np.zeros(shape[1:])])
            if "bias" in name:
                return np.zeros(shape)
            n = math.prod(shape[1:]) if len(shape) > 3 else shape[0]
            return rng.standard_normal(shape) * (self.scale or (2 / n) ** 0.5)

        shapes = self.shapes().items()
        return {name: initial(name, shape).astype(np.float32) for name, shape in shapes}


def layers(name: str, widths: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The shapes of the weights of layers that follow one another."""
    shapes: dict[str, tuple[int, ...]] = {}
    for k, (n, m) in enumerate(itertools.pairwise(widths)):
        shapes |= {f"{name} {k}": (n, m), f"{name} {k} bias": (m,)}
    return shapes


def run_layers(lib: Any, w: Arrays, name: str, x: Any) -> Any:
    """Layers of `layers` with relu between them."""
    k = 0
    while f"{name} {k}" in w:
        x = lib.relu(x) if k else x
        x = x @ w[f"{name} {k}"] + w[f"{name} {k} bias"]
        k += 1
    return x
