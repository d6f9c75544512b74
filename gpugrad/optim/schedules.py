"""Learning rates as functions of the number of steps taken so far: ``SGD(cosine(0.1, 1000))``.

A schedule is any function of that number. Those here can be pickled and compared, say what they are
in their repr, and are put together by `warmup` and `join` and by multiplication with a number or
another schedule. They hold their last value after their last step.

>>> from gpugrad.optim import schedules
>>> rate = schedules.warmup(100, then=schedules.cosine(0.1, 1000))
>>> rate(0), rate(50), rate(100), rate(1100)
(0.0, 0.05, 0.1, 0.0)
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import ClassVar

import numpy as np

from gpugrad.core.arguments import FRACTION, NUMBER, POSITIVE, Kind
from gpugrad.core.known_as import answer_missing
from gpugrad.errors import ArgumentError, saying_where

__all__ = [
    "Schedule",
    "constant",
    "cosine",
    "exponential",
    "join",
    "one_cycle",
    "piecewise",
    "polynomial",
    "step",
    "warmup",
]


def __dir__() -> list[str]:
    return __all__


_Rate = float | Callable[[int], float]


class Schedule:
    """Base class of the schedules here: a function of the number of steps that can be multiplied.

    >>> 0.1 * gg.optim.schedules.constant(2.0)
    product(of=constant(learning_rate=2.0), by=0.1)
    """

    def __call__(self, step: int) -> float:
        """The learning rate after `step` steps."""
        return self._value(step)

    def _value(self, step: int) -> float:
        raise NotImplementedError

    def __mul__(self, other: _Rate) -> Schedule:
        return product(self, other)

    __rmul__ = __mul__

    _kinds: ClassVar[Mapping[str, Kind]]

    def __init_subclass__(cls, **kinds: Kind) -> None:
        """Declare the fields that may not be any number."""
        super().__init_subclass__()
        cls._kinds = kinds

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # every schedule is a dataclass
            value = getattr(self, field.name)
            if field.type == "_Rate" and callable(value):
                continue
            if field.type in ("float", "int", "_Rate"):
                self._kinds.get(field.name, NUMBER)(type(self).__name__, field.name, value)


def _at(rate: _Rate, step: int) -> float:
    return rate(step) if callable(rate) else float(rate)


@dataclass(frozen=True)
class product(Schedule):
    """The product of two schedules, or of a schedule and a number."""

    of: _Rate
    by: _Rate

    def _value(self, step: int) -> float:
        return _at(self.of, step) * _at(self.by, step)


@dataclass(frozen=True)
class constant(Schedule):
    """Always the same.

    >>> gg.optim.schedules.constant(0.1)(1000)
    0.1
    """

    learning_rate: float

    def _value(self, step: int) -> float:
        return float(self.learning_rate)


@dataclass(frozen=True)
class step(Schedule, every=POSITIVE):
    """Multiplied by `factor` after every `every` steps.

    >>> rate = gg.optim.schedules.step(1.0, every=10, factor=0.5)
    >>> rate(9), rate(10), rate(25)
    (1.0, 0.5, 0.25)
    """

    learning_rate: float
    every: int
    factor: float = 0.1

    def _value(self, step: int) -> float:
        return float(self.learning_rate * self.factor ** (step // self.every))


@dataclass(frozen=True)
class exponential(Schedule, steps=POSITIVE, factor=POSITIVE):
    """Multiplied by `factor` over every `steps` steps, smoothly, but at least `end`.

    >>> gg.optim.schedules.exponential(1.0, factor=0.25, steps=10)(5)
    0.5
    """

    learning_rate: float
    factor: float
    steps: int = 1
    end: float = 0.0

    def _value(self, step: int) -> float:
        return max(self.learning_rate * self.factor ** (step / self.steps), self.end)


@dataclass(frozen=True)
class polynomial(Schedule, steps=POSITIVE, power=POSITIVE):
    """From `learning_rate` to `end` in `steps` steps, as ``(1 - step / steps)**power``.

    >>> rate = gg.optim.schedules.polynomial(1.0, steps=10)
    >>> rate(5), rate(20)
    (0.5, 0.0)
    """

    learning_rate: float
    steps: int
    end: float = 0.0
    power: float = 1.0

    def _value(self, step: int) -> float:
        left = max(1 - step / self.steps, 0.0)
        return self.end + (self.learning_rate - self.end) * left**self.power


@dataclass(frozen=True)
class cosine(Schedule, steps=POSITIVE):
    """From `learning_rate` to `end` in `steps` steps along half a cosine.

    Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts".

    >>> rate = gg.optim.schedules.cosine(1.0, steps=10)
    >>> rate(0), rate(5), rate(10), rate(20)
    (1.0, 0.5, 0.0, 0.0)
    """

    learning_rate: float
    steps: int
    end: float = 0.0

    def _value(self, step: int) -> float:
        return _half_cosine(self.learning_rate, self.end, step / self.steps)


def _half_cosine(begin: float, end: float, part: float) -> float:
    # sin(pi / 2 * (1 - 2 part)) is the cosine, exactly 0 in the middle
    cosine = math.sin(math.pi / 2 * (1 - 2 * min(part, 1.0)))
    return end + (begin - end) * (1 + cosine) / 2


@dataclass(frozen=True)
class warmup(Schedule, steps=POSITIVE):
    """Linear from `start` to the first value of `then` in `steps` steps, and then `then`.

    `then` is a number or a schedule, whose own steps begin after the warm-up.

    >>> rate = gg.optim.schedules.warmup(10, then=0.1)
    >>> rate(0), rate(5), rate(10), rate(99)
    (0.0, 0.05, 0.1, 0.1)
    """

    steps: int
    then: _Rate
    start: float = 0.0

    def _value(self, step: int) -> float:
        if step >= self.steps:
            return _at(self.then, step - self.steps)
        return self.start + (_at(self.then, 0) - self.start) * step / self.steps


@dataclass(frozen=True)
class one_cycle(
    Schedule, steps=POSITIVE, divide_start=POSITIVE, divide_end=POSITIVE, rise=FRACTION
):
    """Up to `learning_rate` and down to almost 0 in `steps` steps, along half cosines.

    It begins with learning_rate / `divide_start`, rises for the fraction `rise` of the steps, and
    ends with the first value / `divide_end`: Smith and Topin 2018, "Super-Convergence".

    >>> rate = gg.optim.schedules.one_cycle(1.0, steps=100)
    >>> round(rate(0), 6), round(rate(29), 6), round(rate(99), 6)
    (0.04, 1.0, 4e-06)
    """

    learning_rate: float
    steps: int
    rise: float = 0.3
    divide_start: float = 25.0
    divide_end: float = 1e4

    def _value(self, step: int) -> float:
        top, last = self.learning_rate, self.steps - 1
        first = top / self.divide_start
        peak = self.rise * self.steps - 1
        if step <= peak and peak > 0:
            return _half_cosine(first, top, step / peak)
        fall = last - peak
        part = (step - peak) / fall if fall > 0 else 1.0
        return _half_cosine(top, first / self.divide_end, part)


@dataclass(frozen=True)
class join(Schedule):
    """One schedule after the other: the next begins, with its own step 0, at each boundary.

    >>> s = gg.optim.schedules
    >>> rate = s.join([s.constant(0.1), s.cosine(0.2, 10)], boundaries=[5])
    >>> rate(4), rate(5), rate(10)
    (0.1, 0.2, 0.1)
    """

    schedules: Sequence[_Rate]
    boundaries: Sequence[int]

    def __post_init__(self) -> None:
        _check_parts("join", "schedules", self.schedules, self.boundaries)

    def _value(self, step: int) -> float:
        k = bisect.bisect_right(self.boundaries, step)
        return _at(self.schedules[k], step - (self.boundaries[k - 1] if k else 0))


@dataclass(frozen=True)
class piecewise(Schedule):
    """Constant between boundaries: the next of the values begins at each boundary.

    >>> rate = gg.optim.schedules.piecewise([100, 200], [0.1, 0.01, 0.001])
    >>> rate(99), rate(100), rate(500)
    (0.1, 0.01, 0.001)
    """

    boundaries: Sequence[int]
    values: Sequence[float]

    def __post_init__(self) -> None:
        _check_parts("piecewise", "values", self.values, self.boundaries)

    def _value(self, step: int) -> float:
        return float(self.values[bisect.bisect_right(self.boundaries, step)])


def _check_parts(name: str, what: str, parts: Sequence[object], boundaries: Sequence[int]) -> None:
    for title, values in ((what, parts), ("boundaries", boundaries)):
        is_list = isinstance(values, (list, tuple, range))
        if not is_list and not (isinstance(values, np.ndarray) and values.ndim == 1):
            raise ArgumentError(f"{name}: {title} must be a list of numbers, got {values!r:.60}.")
        for value in values:
            if not callable(value) or title != "schedules":
                NUMBER(name, title, value)
    if len(parts) != len(boundaries) + 1:
        raise ArgumentError(
            f"{name}: {len(boundaries)} boundaries need {len(boundaries) + 1} {what}, got "
            f"{len(parts)}."
        )
    if any(b <= a for a, b in pairwise(boundaries)):
        raise ArgumentError(f"{name}: boundaries must increase, got {list(boundaries)}.")


answer_missing(__name__)
for _class in (constant, step, piecewise, exponential, cosine, polynomial, one_cycle, warmup, join):
    _class.__init__ = saying_where(_class.__init__)  # type: ignore[method-assign]
