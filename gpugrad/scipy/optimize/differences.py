"""Derivatives by finite differences, and SciPy's functions without a derivative."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.optimize as scipys

from gpugrad.array_api.numpy_results import on_values
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.calling import from_gpu
from gpugrad.scipy.optimize.calls import for_scipy, home_of, on_device, tensors_in


def approx_fprime(xk: Any, f: Any, epsilon: Any = 1.4901161193847656e-08, *args: Any) -> Tensor:
    """Derivatives of a function by forward differences.

    Args:
        xk: array of shape (n,).
        f: ``f(xk, *args)`` of a Tensor returns a number or an array of shape (m,).
        epsilon: the step, a number or an array of shape (n,).
        args: further arguments of `f`.

    Returns:
        Tensor of shape (n,) or (m, n), with derivatives by all that `f` reads.

    >>> print(gg.scipy.optimize.approx_fprime([2.0], lambda x: gg.sum(x * x)).round(4))
    [4.]
    """
    x = xp.astype(asarray(xk), "float64")
    steps = xp.broadcast_to(xp.astype(asarray(epsilon, device=x.device), x.dtype), x.shape)
    start = tensor(f(x, *args))
    columns = [
        (tensor(f(x + xp.getitem(steps, index=i) * unit, *args)) - start)
        / xp.getitem(steps, index=i)
        for i, unit in enumerate(on_device(np.eye(x.size), x.device))
    ]
    return xp.stack([xp.squeeze(c) if c.size == 1 else c for c in columns], axis=-1)


def without_derivative(name: str) -> Any:
    """A function of SciPy's on values, which calls a user's functions with Tensors."""
    function = getattr(scipys, name)
    if isinstance(function, type) or not callable(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        home = home_of(*args, *keywords.values())
        args = tuple(for_scipy(name, from_gpu(x), home) for x in args)
        keywords = {k: for_scipy(name, from_gpu(x), home) for k, x in keywords.items()}
        return tensors_in(on_values(f"scipy.optimize.{name}", function, args, keywords), home)

    call.__module__ = "gpugrad.scipy.optimize"
    return call
