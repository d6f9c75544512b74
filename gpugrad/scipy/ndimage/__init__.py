"""SciPy's ``ndimage`` on Tensors: filters, splines, morphology and measurements.

All functions whose result varies smoothly are differentiable, also by weights, sigma, shifts,
angles, matrices and coordinates. The others, such as `label`, run SciPy's function, or cupyx's on
a GPU, and raise if a tape watches an argument.

>>> turned = lambda angle: gg.scipy.ndimage.rotate([[0.0, 1.0], [2.0, 5.0]], angle, reshape=False)
>>> gg.grad(lambda angle: gg.sum(turned(angle)))(10.0).dtype
dtype('float32')
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_results import as_tensors
from gpugrad.core.backend import NUMPY, reading
from gpugrad.core.tensor import Tensor
from gpugrad.errors import DTypeError
from gpugrad.scipy.ndimage import (
    examples,
    filters,
    fourier,
    generic,
    interpolation,
    measurements,
    ranks,
)
from gpugrad.scipy.ndimage.common import SCIPY, wrapped

__all__ = sorted(SCIPY.__all__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gpugrad.scipy.ndimage' has no attribute {name!r}")
    for module in (filters, generic, ranks, interpolation, fourier, measurements):
        if name in vars(module):
            return vars(module)[name]
    globals()[name] = function = _without_derivative(name)
    return function


def __dir__() -> list[str]:
    return __all__


def _without_derivative(name: str) -> Callable[..., Any]:
    """A function of SciPy's, or of cupyx's, on plain arrays."""

    def plain(x: Any) -> Any:
        if isinstance(x, Tensor):
            try:
                return x._handed_out(f"an argument of scipy.ndimage.{name}")
            except DTypeError as error:
                raise DTypeError(f"{name}: has no derivative. {error}") from None
        return type(x)(map(plain, x)) if type(x) in (list, tuple) else x

    def function(*args: Any, **keywords: Any) -> Any:
        args = tuple(map(plain, args))
        keywords = {k: plain(v) for k, v in keywords.items()}
        xp = reading(*args, *keywords.values())
        if xp is NUMPY:  # a function of Tensors may be among the arguments
            args = tuple(map(_plain_results, args))
            keywords = {k: _plain_results(v) for k, v in keywords.items()}
        result = getattr(xp.scipy("ndimage"), name)(*args, **keywords)
        return as_tensors(result, args) if xp is NUMPY else wrapped(result)

    function.__name__ = function.__qualname__ = name
    function.passes_through = True  # type: ignore[attr-defined]  # ci/scipy_page asks
    function.__doc__ = f"""SciPy's function of its name on either device; raises under a tape.

    {examples.of(name)}
    """
    function.__signature__ = inspect.signature(getattr(SCIPY, name))  # type: ignore[attr-defined]
    return function


def _plain_results(x: Any) -> Any:
    """A function with NumPy arrays as its results; anything else as it is."""
    if not isinstance(x, types.FunctionType):
        return x

    @functools.wraps(x)
    def function(*args: Any, **keywords: Any) -> Any:
        result = x(*args, **keywords)
        return np.asarray(result)[()] if isinstance(result, Tensor) else result

    return function
