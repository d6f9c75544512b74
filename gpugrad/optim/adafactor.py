"""Adafactor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from gpugrad.core.arguments import ABOVE_0, NOT_NEGATIVE, Range
from gpugrad.core.variable import Variable
from gpugrad.errors import DTypeError
from gpugrad.optim.groups import Options, ranges
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.step import Schedule

_NEGATIVE = Range(lambda x: -math.inf < x <= 0, "0 or below")


class Adafactor(Optimizer):
    """Adafactor: the squares of a matrix's gradient kept as one row and one column.

    With gradient g, learning rate lr, and t the number of steps of the Variable; R and C are means
    over the last axis and the one before::

        beta = 1 - t**beta_2_decay
        R = beta * R + (1 - beta) * mean(g**2, axis=-1)
        C = beta * C + (1 - beta) * mean(g**2, axis=-2)
        u = g / sqrt(R * C / mean(R))
        u = u / maximum(1, rms(u) / clip_threshold)
        rate = minimum(lr, 1 / sqrt(t))
        variable -= rate * maximum(epsilon_2, rms(variable)) * u

    Vectors and numbers keep all of g**2. This is torch's variant of Shazeer and Stern 2018,
    "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost". Variables are stepped one by
    one, also on a GPU.

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        beta_2_decay: the exponent of t, 0 or below.
        epsilon_1: the least root of a mean square; None for the dtype's resolution.
        epsilon_2: the least root mean square of a Variable.
        clip_threshold: above 0.
        weight_decay: 0 or above; first multiplies the Variable by 1 - lr * weight_decay.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    Raises:
        DTypeError: at a step, a Variable is complex.

    >>> gg.optim.Adafactor(0.01)
    Adafactor(learning_rate=0.01, iterations=0)
    """

    hyper = ranges(
        beta_2_decay=_NEGATIVE, epsilon_2=ABOVE_0, clip_threshold=ABOVE_0, weight_decay=NOT_NEGATIVE
    )
    slots = ("row", "column", "v")

    def __init__(
        self,
        learning_rate: Schedule = 0.01,
        beta_2_decay: float = -0.8,
        epsilon_1: float | None = None,
        epsilon_2: float = 0.001,
        clip_threshold: float = 1.0,
        weight_decay: float = 0.0,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.beta_2_decay, self.epsilon_1, self.epsilon_2 = beta_2_decay, epsilon_1, epsilon_2
        self.clip_threshold, self.weight_decay = clip_threshold, weight_decay
        super().__init__(learning_rate, name, **options)
        if epsilon_1 is not None:
            self.epsilon_1 = ABOVE_0(self.name, "epsilon_1", epsilon_1)

    def sizes(self, variable: Variable) -> dict[str, int]:
        """A row and a column of a matrix; all squares of a vector or a number."""
        if variable.dtype.kind == "c":
            raise DTypeError(f"{self.name}: the Variable '{variable.name}' is complex.")
        if variable.ndim < 2:
            return {"v": variable.size}
        *rest, rows, columns = variable.shape
        return {"row": math.prod(rest) * rows, "column": math.prod(rest) * columns}

    def by_array(self, variable: Variable) -> bool:
        """All of them."""
        return True

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The settings."""
        return {
            "add": step**h.beta_2_decay,
            "keep": 1 - rate * h.weight_decay,
            "rate": min(rate, 1 / math.sqrt(step)),
            "epsilon": h.epsilon_2,
            "threshold": h.clip_threshold,
        }

    def move_array(self, xp: Any, s: Any, p: Any, g: Any, averages: Mapping[str, Any]) -> Any:
        """The step of a Variable."""
        if not p.size:
            return p
        least = np.finfo(p.dtype).eps if self.epsilon_1 is None else self.epsilon_1
        rate = s.rate * xp.maximum(_rms(xp, p), s.epsilon)
        square = xp.square(g)
        if "v" in averages:
            v = averages["v"].reshape(p.shape)
            v += s.add * (square - v)
        else:
            row = averages["row"].reshape(*p.shape[:-1], 1)
            column = averages["column"].reshape(*p.shape[:-2], 1, p.shape[-1])
            row += s.add * (square.mean(-1, keepdims=True) - row)
            column += s.add * (square.mean(-2, keepdims=True) - column)
            v = row * column / xp.maximum(row.mean(-2, keepdims=True), least)
        update = g / xp.sqrt(xp.maximum(v, least * least))
        update /= xp.maximum(_rms(xp, update) / s.threshold, 1)
        return s.keep * p - rate.astype(p.dtype) * update


def _rms(xp: Any, x: Any) -> Any:
    return xp.sqrt(xp.square(x).mean())
