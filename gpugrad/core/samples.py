"""Sample inputs: every generated test of an op runs on them.

A sampler takes a NumPy random generator and yields (arguments, keywords): float64 arrays in the
op's domain, in shapes that have broken autodiff libraries before (0-d, empty, broadcast, one long
axis).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Sample = tuple[list[Any], dict[str, Any]]
Sampler = Callable[[Any], Iterator[Sample]]  # of a np.random.Generator: naming it imports it
Domain = tuple[float, float] | Sequence[tuple[float, float]]


def _draw(rng: np.random.Generator, domain: Any, shape: Any) -> np.ndarray[Any, Any]:
    low, high = domain
    return np.asarray(rng.uniform(low, high, shape))


def grid(n: int, domain: Domain = (-2.0, 2.0)) -> Sampler:
    """Samples of an elementwise op of `n` arrays: equal shapes, broadcast ones, 0-d and empty.

    `domain` is an interval, or one for each array. Values of several arrays never tie.
    """
    domains = [domain] * n if isinstance(domain[0], (int, float)) else list(domain)
    several = [[(2, 3), (1, 3), (2, 1), ()], [(4,), (), (1,), (4,)]] if n > 1 else [[(2, 3)]]

    def sampler(rng: np.random.Generator) -> Iterator[Sample]:
        for shapes in ([(3,)] * n, [()] * n, [(0, 2)] * n, *several):
            yield [_draw(rng, d, s) for d, s in zip(domains, shapes, strict=False)], {}

    return sampler


def shaped(*cases: Any, domain: Domain = (-2.0, 2.0)) -> Sampler:
    """Arrays of given shapes: a case is ``[(2, 3)]``, with keywords ``([(2, 3)], {"axis": 0})``."""

    def sampler(rng: np.random.Generator) -> Iterator[Sample]:
        for case in cases:
            shapes, keywords = case if isinstance(case, tuple) else (case, {})
            yield [_draw(rng, domain, s) for s in shapes], dict(keywords)

    return sampler


def lists(*cases: Sequence[tuple[int, ...]]) -> Sampler:
    """Samples of an op on a list of arrays: each case is a list of shapes."""
    return lambda rng: (([[uniform(rng, *s) for s in case]], {}) for case in cases)


def along_axis(*keywords: dict[str, Any], domain: Domain = (-2.0, 2.0)) -> Sampler:
    """Samples of an op along axes of one array: the default, 0, -1, and those in `keywords`."""

    def sampler(rng: np.random.Generator) -> Iterator[Sample]:
        yield [_draw(rng, domain, (4,))], {}
        yield [_draw(rng, domain, (2, 3))], {"axis": 0}
        yield [_draw(rng, domain, (2, 3, 2))], {"axis": -1}
        for more in keywords:
            yield [_draw(rng, domain, (2, 3, 2))], dict(more)

    return sampler


def integers(n: int, low: int, high: int) -> Sampler:
    """Samples of an op on integers: `n` arrays of int64."""

    def sampler(rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3,), (2, 3), (), (0,)):
            yield [np.asarray(rng.integers(low, high, shape)) for _ in range(n)], {}

    return sampler


def uniform(rng: np.random.Generator, *shape: int, low: float = -2.0, high: float = 2.0) -> Any:
    """One float64 array, for a handwritten sampler."""
    return _draw(rng, (low, high), shape)


def calls(*makers: Callable[[np.random.Generator], Sample | list[Any]]) -> Sampler:
    """Handwritten samples: functions of the generator that return one, or its arguments alone."""

    def sampler(rng: np.random.Generator) -> Iterator[Sample]:
        for make in makers:
            sample = make(rng)
            yield sample if isinstance(sample, tuple) else (sample, {})

    return sampler
