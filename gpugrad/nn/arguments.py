"""Checks of layers' arguments, and the warning about training mode."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.arguments import check_whole
from gpugrad.core.listening import threads
from gpugrad.core.settings import mode_is_chosen
from gpugrad.core.user_code import user_level
from gpugrad.errors import ArgumentError

Activation = Callable[[Any], Any] | None


def whole_numbers(layer: str, **lengths: Any) -> list[int]:
    """Convert lengths to ints; raise an ArgumentError that names one that is not a positive int."""
    return [check_whole(layer, what, n, 1) for what, n in lengths.items()]


def check_activation(layer: str, activation: Any) -> None:
    """Raise an ArgumentError unless the activation is a function or None."""
    if activation is not None and not callable(activation):
        raise ArgumentError(
            f"{layer}: activation must be a function such as gg.relu, got {activation!r}."
        )


def activation_suffix(activation: Activation) -> str:
    """The activation as an argument in the repr of a layer, after the others."""
    name = getattr(activation, "__name__", None)
    return f", activation={name}" if name else ""


def check_range(layer: str, what: str, value: Any, most: float) -> float:
    """A float from 0 to `most`; raises an ArgumentError that names the layer and argument."""
    if not isinstance(value, (int, float, np.number)) or not 0 <= value <= most:
        limits = "of at least 0" if most == math.inf else f"from 0 to {most}"
        raise ArgumentError(f"{layer}: {what} must be a number {limits}, got {value!r:.60}.")
    return float(value)


_warned: set[str] = set()
"""The layer classes that have warned."""


def warn_without_training(layer: Any) -> None:
    """Warn, once for each class of layers, if a tape records and nobody has chosen a mode."""
    name = type(layer).__name__
    if name in _warned or mode_is_chosen():
        return
    if any(isinstance(recorder, GradientTape) for recorder in threads.stack):
        _warned.add(name)
        warnings.warn(
            f"{name} runs in inference mode under a GradientTape. To train, put the step in "
            "`with gg.nn.training():`; if inference is meant, in `with gg.nn.training(False):`.",
            stacklevel=user_level(),
        )
