"""A line search for the strong Wolfe conditions.

It brackets an interval that holds a good step, and then shrinks it by cubic interpolation: Nocedal
and Wright 2006, "Numerical Optimization", algorithms 3.5 and 3.6. The bounds of the trial steps are
those of minFunc and torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

_DECREASE, _CURVATURE = 1e-4, 0.9


class Point(NamedTuple):
    """A point of the line: its step length, and the loss, gradient and slope there."""

    t: float
    loss: float
    gradient: Any
    slope: float


def search(
    at: Callable[[float], Point], start: Point, t: float, most: int, smallest: float
) -> tuple[Point, int]:
    """A point that satisfies the strong Wolfe conditions, or the best of the last interval.

    Args:
        at: evaluates the loss at a step length.
        start: the point of step length 0, whose slope is below 0.
        t: the first step length.
        most: the largest number of evaluations, besides the first.
        smallest: the largest change of an interval's length that is not worth an evaluation.

    Returns:
        The point, and the number of evaluations.
    """
    bracket, done, count = _bracket(at, start, t, most)
    if done:
        return bracket[0], count
    low, high = sorted(bracket, key=_loss)
    stuck = False
    while count <= most and abs(high.t - low.t) >= smallest:
        t, stuck = _inside(low, high, _cubic(bracket[0], bracket[1]), stuck)
        new = at(t)
        count += 1
        too_high = not new.loss <= start.loss + _DECREASE * t * start.slope
        if too_high or new.loss >= low.loss:
            bracket = [new if point is high else point for point in bracket]
            low, high = sorted(bracket, key=_loss)
            continue
        if abs(new.slope) <= -_CURVATURE * start.slope:
            return new, count
        if new.slope * (high.t - low.t) >= 0:
            bracket = [low if point is high else point for point in bracket]
            high = low
        bracket = _replaced(bracket, low, new)
        low = new
    return low, count


def _loss(point: Point) -> float:
    return point.loss if not math.isnan(point.loss) else math.inf


def _replaced(bracket: list[Point], old: Point, new: Point) -> list[Point]:
    """The bracket with `new` in the first place of `old`."""
    k = 0 if bracket[0] is old else 1
    return [new if i == k else point for i, point in enumerate(bracket)]


def _bracket(
    at: Callable[[float], Point], start: Point, t: float, most: int
) -> tuple[list[Point], bool, int]:
    """Two points that bracket a good step; or one good point and True; the evaluations."""
    previous, new = start, at(t)
    for k in range(most):
        bound = start.loss + _DECREASE * new.t * start.slope
        if not new.loss <= bound or (k > 1 and new.loss >= previous.loss):
            return [previous, new], False, k + 1
        if abs(new.slope) <= -_CURVATURE * start.slope:
            return [new], True, k + 1
        if new.slope >= 0:
            return [previous, new], False, k + 1
        low, high = new.t + 0.01 * (new.t - previous.t), new.t * 10
        t = _cubic(previous, new, (low, high))
        previous, new = new, at(t)
    return [start, new], False, most + 1


def _inside(low: Point, high: Point, t: float, stuck: bool) -> tuple[float, bool]:
    """A trial step that makes progress: not twice near the same end of the interval."""
    first, last = sorted((low.t, high.t))
    margin = 0.1 * (last - first)
    if min(last - t, t - first) >= margin:
        return t, False
    if not (stuck or t >= last or t <= first):
        return t, True
    return (last - margin if abs(t - last) < abs(t - first) else first + margin), False


def _cubic(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """The minimum of the cubic through two points and their slopes, within bounds."""
    low, high = bounds or sorted((a.t, b.t))
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t or not math.isfinite(a.loss + b.loss + a.slope + b.slope):
        return (low + high) / 2
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    below = b.slope - a.slope + 2 * d2
    if below == 0:
        return (low + high) / 2
    return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / below), low), high)
