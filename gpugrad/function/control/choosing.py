"""`cond` and `while_loop` in a traced function: programs of which values choose.

The functions of their steps hold no Tensor: the program would keep it alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.tensor import Tensor
from gpugrad.function.control.branch import Branch
from gpugrad.function.cpu.loop_memory import choice, repetition


class Cond:
    """The function of a `cond` step: of a boolean, and of the arguments of both branches."""

    def __init__(self, yes: Branch, no: Branch) -> None:
        self._yes, self._no = yes, no

    def __call__(self, pred: Tensor, *tensors: Tensor) -> list[Tensor]:
        """The results of a branch, recorded by the recorders of this thread."""
        return (self._yes if pred else self._no)(*tensors)

    def c_call(self, xp: Any, pred: Any, *args: Any) -> Any:
        """It as a step of a loop in C: see the field `c_call` of ops."""
        if pred.dtype != np.bool_:
            return NotImplemented
        yes, no = self._yes.in_loop(), self._no.in_loop()
        return NotImplemented if yes is None or no is None else choice(yes, no)


class While:
    """The function of a `while_loop` step: of the carry, and of what test and body capture."""

    def __init__(self, holds: Branch, then: Branch, n_carry: int, most: int | None) -> None:
        self._holds, self._then, self._n, self._most = holds, then, n_carry, most

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """The last carry, recorded by the recorders of this thread."""
        now, more = list(tensors[: self._n]), tensors[self._n :]
        holds, then = self._holds, self._then
        return iterate(lambda *c: holds(*c, *more)[0], lambda *c: then(*c, *more), now, self._most)

    def c_call(self, xp: Any, *args: Any) -> Any:
        """It as a step of a loop in C: see the field `c_call` of ops."""
        (flag,) = self._holds.program.outputs
        if flag.dtype != np.bool_ or flag.shape:
            return NotImplemented
        test, body = self._holds.in_loop(), self._then.in_loop(self._n)
        if test is None or body is None:
            return NotImplemented
        most = -1 if self._most is None else max(self._most, 0)
        return repetition(test, body, self._n, len(args) - self._n, most)


def iterate(
    goes_on: Callable[..., Any], body: Callable[..., Any], carry: list[Tensor], most: int | None
) -> list[Tensor]:
    """The last carry of a loop, which ends after `most` iterations or when a test fails."""
    count = 0
    while most is None or count < most:
        with recording_stopped():  # a bool has no gradient
            if not goes_on(*carry):
                break
        carry, count = body(*carry), count + 1
    return carry
