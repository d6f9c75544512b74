"""The names of ``scipy.special``; those of `gpugrad.special` and `gpugrad` take boxes too."""

from typing import Any

import scipy.special as _plain

import gpugrad as gg
from gpugrad.compat.autograd.numpy.wrapping import wrapped, wrapped_names
from gpugrad.errors import NoGradientError


def _ours(name: str) -> Any:
    found = getattr(gg.special, name, None) or getattr(gg, name, None)
    if found is None:
        raise NoGradientError(f"scipy.special.{name} has no derivative in gpugrad.")
    return found


def _logsumexp(x: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """``log(sum(b * exp(x)))``."""
    if b is None:
        return gg.logsumexp(x, axis=axis, keepdims=keepdims)
    top = gg.stop_gradient(gg.max(x, axis=axis, keepdims=True))
    total = gg.log(gg.sum(b * gg.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else gg.squeeze(total, axis=axis)


logsumexp = wrapped("logsumexp", _plain.logsumexp, lambda: _logsumexp)
__getattr__, __dir__ = wrapped_names(__name__, _plain, _ours)
