"""Arguments, results and calls that all distributions share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.numpy import random
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.calling import public


def double(x: Any) -> Tensor:
    """A Tensor of float64, as SciPy computes."""
    x = asarray(x)
    return x if x.dtype == np.float64 else xp.astype(x, np.float64)


def attached(value: Tensor, formula: Tensor) -> Tensor:
    """The value, which has no derivative, with the derivatives of a formula for it."""
    return value + (formula - xp.stop_gradient(formula))


class Method:
    """A method that SciPy's own runs for plain values, and ours for Tensors that are followed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)  # type: ignore[arg-type]

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self
        return public(self._quiet(owner), getattr(owner.scipys, self.function.__name__))

    def _quiet(self, owner: Any) -> Callable[..., Any]:
        """The method without NumPy's warnings, which would be about values that are masked."""

        @functools.wraps(self.function)
        def call(*args: Any, **keywords: Any) -> Any:
            with np.errstate(all="ignore"):
                return self.function(owner, *args, **keywords)

        return call


def located(end: Any, loc: Any, scale: Any) -> Tensor:
    """An end of the support, scaled and shifted; infinity has no derivative."""
    end = double(end)
    finite = xp.isfinite(end)
    return xp.where(finite, xp.where(finite, end, 0.0) * scale + loc, end)


def log_of_part(p: Tensor, rest: Tensor) -> Tensor:
    """log(p), where p + rest = 1."""
    small = p < 0.5
    return xp.where(small, xp.log(xp.where(small, p, 0.5)), xp.log1p(-xp.where(small, 0.5, rest)))


def stream(random_state: Any) -> Any:
    """A source of random numbers, from what SciPy calls `random_state`."""
    if random_state is None:
        return random
    if isinstance(random_state, (int, np.integer)):
        return random.RandomState(int(random_state))
    return random_state
