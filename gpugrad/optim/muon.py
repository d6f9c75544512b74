"""Muon."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, Unpack

from gpugrad.core.arguments import ABOVE_0, BELOW_1, FLAG, takes
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError
from gpugrad.optim.adam import AdamW
from gpugrad.optim.groups import Options, ranges
from gpugrad.optim.step import Schedule

_COEFFICIENTS = 3.4445, -4.7750, 2.0315


def _is_matrix(name: str, variable: Variable) -> bool:
    return variable.ndim == 2


class Muon(AdamW):
    """Muon: momentum of matrices, made orthogonal; AdamW for all other Variables.

    With gradient g and learning rate lr::

        m = momentum * m + (1 - momentum) * g
        u = orthogonal(momentum * m + (1 - momentum) * g)       # of m if nesterov=False
        variable -= lr * (weight_decay * variable + scale * u)

    `orthogonal` brings the singular values near 1 by five Newton-Schulz iterations. Jordan et al.
    2024, "Muon: An optimizer for hidden layers in neural networks". torch iterates in bfloat16; the
    iterations here are in float32 or wider. Embeddings and the last layer of a network are usually
    left to AdamW, see `matrices`. Matrices are stepped one by one, also on a GPU.

    Args:
        learning_rate: that of matrices: a number, or a function of the number of steps taken so
            far.
        weight_decay: 0 or above, of all Variables.
        momentum: decay factor of a matrix's average, from 0 to below 1.
        nesterov: whether to use Nesterov momentum, which looks one step ahead.
        adjust: ``"original"`` scales a step by sqrt(max(1, rows / columns)); ``"match_rms_adamw"``
            by 0.2 * sqrt(max(rows, columns)), so that AdamW's learning rates fit.
        adam_learning_rate_ratio: the learning rate of other Variables, as a multiple of that of
            matrices.
        beta_1, beta_2, epsilon: those of AdamW.
        matrices: function of the name and the Variable that says whether Muon steps a matrix; by
            default it steps all of them.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> hidden = lambda name, variable: "embedding" not in name
    >>> gg.optim.Muon(0.02, matrices=hidden)
    Muon(learning_rate=0.02, iterations=0)
    """

    hyper = ranges(**AdamW.hyper, momentum=BELOW_1, adam_learning_rate_ratio=ABOVE_0)

    @takes(nesterov=FLAG)
    def __init__(
        self,
        learning_rate: Schedule = 0.02,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        adjust: Literal["original", "match_rms_adamw"] = "original",
        adam_learning_rate_ratio: float = 0.015,
        beta_1: float = 0.9,
        beta_2: float = 0.95,
        epsilon: float = 1e-8,
        matrices: Callable[[str, Variable], Any] = _is_matrix,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.momentum, self.nesterov, self.adjust = momentum, nesterov, adjust
        self.adam_learning_rate_ratio, self.matrices = adam_learning_rate_ratio, matrices
        super().__init__(learning_rate, weight_decay, beta_1, beta_2, epsilon, name=name, **options)
        if not callable(matrices):
            raise ArgumentError(f"{self.name}: matrices must be a function, got {matrices!r:.60}.")
        if adjust not in ("original", "match_rms_adamw"):
            raise ArgumentError(
                f'{self.name}: adjust must be "original" or "match_rms_adamw", got {adjust!r:.60}.'
            )

    def by_array(self, variable: Variable) -> bool:
        """Whether it is a matrix of real numbers that `matrices` selects."""
        is_matrix = variable.ndim == 2 and variable.dtype.kind != "c"
        return is_matrix and bool(self.matrices(self.path_of(variable), variable))

    def sizes(self, variable: Variable) -> dict[str, int]:
        """One average of a matrix, AdamW's of others."""
        if self.by_array(variable):
            return {"m": variable.size}
        return super().sizes(variable)

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """AdamW's numbers, and two for matrices."""
        adam = super().numbers(h, rate * h.adam_learning_rate_ratio, step)
        keep = 1 - rate * h.weight_decay
        return {**adam, "rate": rate, "momentum": h.momentum, "keep_matrix": keep}

    def move_array(self, xp: Any, s: Any, p: Any, g: Any, averages: Mapping[str, Any]) -> Any:
        """The step of a matrix."""
        m = averages["m"].reshape(p.shape)
        m *= s.momentum
        m += (1 - s.momentum) * g
        ahead = s.momentum * m + (1 - s.momentum) * g if self.nesterov else m
        rows, columns = p.shape
        scale = math.sqrt(max(1, rows / max(columns, 1)))
        if self.adjust == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        return s.keep_matrix * p - s.rate * scale * orthogonal(xp, ahead)


def orthogonal(xp: Any, x: Any, iterations: int = 5) -> Any:
    """A matrix with about the same singular vectors, and singular values of 0.7 to 1.2."""
    if not x.size:
        return x
    a, b, c = _COEFFICIENTS
    tall = x.shape[0] > x.shape[1]
    y = x.T if tall else x
    y = y / xp.maximum(xp.sqrt(xp.square(y).sum()), 1e-7)
    for _ in range(iterations):
        gram = y @ y.T
        y = a * y + (b * gram + c * (gram @ gram)) @ y
    return y.T if tall else y
