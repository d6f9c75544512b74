"""Learning rates of TensorFlow 1 that fall with the global step: functions of Tensors.

>>> from gpugrad.compat.tf import v1 as tf
>>> tf.train.exponential_decay(0.1, 4, 2, 0.5)().numpy().round(4).item()
0.025
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.v1.graph import Node, executing_eagerly
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError


def _decay(f: Callable[..., Tensor]) -> Callable[..., Any]:
    """A function of float Tensors as a Node of a graph; without one as a function to call."""

    @functools.wraps(f)
    def call(*args: Any, name=None, **keywords: Any) -> Any:
        if executing_eagerly():
            return functools.partial(f, *args, **keywords)
        return Node(f, args, keywords, name)

    return call


def _number(x: Any) -> Any:
    return x if isinstance(x, (int, float)) else gg.astype(tensor(x), "float32")


def _done(step: Any, decay_steps: Any, staircase: Any = False) -> Tensor:
    part = gg.astype(tensor(step), "float32") / _number(decay_steps)
    return gg.floor(part) if staircase else part


def _until(step: Any, decay_steps: Any) -> Tensor:
    """The part of the steps that is done, at most 1."""
    return gg.minimum(_done(step, decay_steps), 1.0)


@_decay
def exponential_decay(
    learning_rate, global_step, decay_steps, decay_rate, staircase=False
) -> Tensor:
    rate = gg.log(gg.astype(tensor(decay_rate), "float32"))
    return _number(learning_rate) * gg.exp(rate * _done(global_step, decay_steps, staircase))


@_decay
def natural_exp_decay(
    learning_rate, global_step, decay_steps, decay_rate, staircase=False
) -> Tensor:
    part = _done(global_step, decay_steps, staircase)
    return _number(learning_rate) * gg.exp(-_number(decay_rate) * part)


@_decay
def inverse_time_decay(
    learning_rate, global_step, decay_steps, decay_rate, staircase=False
) -> Tensor:
    part = _done(global_step, decay_steps, staircase)
    return _number(learning_rate) / (1 + _number(decay_rate) * part)


@_decay
def polynomial_decay(
    learning_rate, global_step, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False
) -> Tensor:
    part = _done(global_step, decay_steps)
    part = part / gg.maximum(gg.ceil(part), 1.0) if cycle else gg.minimum(part, 1.0)
    end = _number(end_learning_rate)
    return (_number(learning_rate) - end) * (1 - part) ** _number(power) + end


@_decay
def cosine_decay(learning_rate, global_step, decay_steps, alpha=0.0) -> Tensor:
    wave = 0.5 * (1 + gg.cos(math.pi * _until(global_step, decay_steps)))
    return _number(learning_rate) * ((1 - alpha) * wave + alpha)


@_decay
def cosine_decay_restarts(
    learning_rate, global_step, first_decay_steps, t_mul=2.0, m_mul=1.0, alpha=0.0
) -> Tensor:
    part = _done(global_step, first_decay_steps)
    if t_mul == 1:
        restarts = gg.floor(part)
        part = part - restarts
    else:
        restarts = gg.floor(gg.log(1 - part * (1 - t_mul)) / math.log(t_mul))
        before = (1 - t_mul**restarts) / (1 - t_mul)
        part = (part - before) / t_mul**restarts
    wave = 0.5 * m_mul**restarts * (1 + gg.cos(math.pi * part))
    return _number(learning_rate) * ((1 - alpha) * wave + alpha)


@_decay
def linear_cosine_decay(
    learning_rate, global_step, decay_steps, num_periods=0.5, alpha=0.0, beta=0.001
) -> Tensor:
    part = _until(global_step, decay_steps)
    wave = 0.5 * (1 + gg.cos(2 * math.pi * num_periods * part))
    return _number(learning_rate) * ((alpha + 1 - part) * wave + beta)


@_decay
def piecewise_constant(x, boundaries, values) -> Tensor:
    if len(values) != len(boundaries) + 1:
        raise ArgumentError("piecewise_constant: values must be one more than boundaries.")
    passed = gg.astype(tensor(x), "float64") > gg.constant(boundaries, "float64")
    return gg.stack([tensor(v) for v in values])[gg.sum(passed)]


piecewise_constant_decay = piecewise_constant
__getattr__, __dir__ = forwarding(__name__, own=globals())
