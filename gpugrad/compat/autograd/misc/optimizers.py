"""Gradient descent on nests of arrays: autograd's three optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpugrad.compat.autograd.numpy as np
from gpugrad.compat.autograd.misc.flatten import flatten
from gpugrad.compat.autograd.wrap_util import wraps
from gpugrad.compat.names import forwarding

Function = Callable[..., Any]


def unflatten_optimizer(optimize: Function) -> Function:
    """An optimizer of nests of arrays, from one of flat arrays."""

    @wraps(optimize)
    def of_nests(grad: Function, x0: Any, callback: Any = None, *args: Any, **keywords: Any) -> Any:
        flat, unflatten = flatten(x0)

        def flat_grad(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def flat_callback(x: Any, i: int, g: Any) -> None:
            callback(unflatten(x), i, unflatten(g))

        told = flat_callback if callback else None
        return unflatten(optimize(flat_grad, flat, told, *args, **keywords))

    return of_nests


def _descend(grad: Function, x: Any, callback: Any, num_iters: int, step: Function) -> Any:
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        x = x - step(g, i)
    return x


@unflatten_optimizer
def sgd(
    grad: Function,
    x: Any,
    callback: Any = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Gradient descent with momentum; ``grad(x, i)`` gets the number of the iteration."""
    velocity = np.zeros(len(x))

    def step(g: Any, i: int) -> Any:
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * g
        return -step_size * velocity

    return _descend(grad, x, callback, num_iters, step)


@unflatten_optimizer
def rmsprop(
    grad: Function,
    x: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Gradient descent scaled by a mean of squared gradients."""
    squares = np.ones(len(x))

    def step(g: Any, i: int) -> Any:
        nonlocal squares
        squares = squares * gamma + g**2 * (1 - gamma)
        return step_size * g / (np.sqrt(squares) + eps)

    return _descend(grad, x, callback, num_iters, step)


@unflatten_optimizer
def adam(
    grad: Function,
    x: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam, as in Kingma and Ba 2015, https://arxiv.org/abs/1412.6980."""
    m, v = np.zeros(len(x)), np.zeros(len(x))

    def step(g: Any, i: int) -> Any:
        nonlocal m, v
        m, v = (1 - b1) * g + b1 * m, (1 - b2) * g**2 + b2 * v
        mean, square = m / (1 - b1 ** (i + 1)), v / (1 - b2 ** (i + 1))
        return step_size * mean / (np.sqrt(square) + eps)

    return _descend(grad, x, callback, num_iters, step)


__getattr__, __dir__ = forwarding(__name__, own=globals())
