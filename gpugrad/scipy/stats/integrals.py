"""Integrals over a distribution, by double exponential rules."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.recorder import watched_in
from gpugrad.core.backend import ARRAYS, READINGS
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.stats.common import double
from gpugrad.transforms.recompute import recompute_grad


def are_constants(shapes: Sequence[Any]) -> bool:
    """Whether no tape, trace or vmap follows the shapes."""
    arrays = [double(s) for s in shapes]
    return all(type(a._read()._data) in ARRAYS for a in arrays) and not watched_in(*arrays)


_POINTS = (0.5 - 0.5 / 3**0.5, 0.5 + 0.5 / 3**0.5)


def at_the_end(density: Callable[[Any], Any], x: Tensor) -> Tensor:
    """The integral of a density up to x, from the value of x: 0, with the derivatives by x.

    Those of the first four orders are exact, as Gauss's rule of two points is for cubic densities.
    """
    start = xp.stop_gradient(x)
    step = x - start
    return step * sum(density(start + part * step) for part in _POINTS) / 2


def lifted(shapes: Sequence[Any]) -> list[Any]:
    """Shapes with one more axis at the end, for the nodes of an integral."""
    return [double(s)[..., None] for s in shapes]


_STEP, _REACH = 0.0625, 4.0
_NODES = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)


def integral(
    function: Callable[[Any], Any], law: Any, shapes: Any, a: Any = None, b: Any = None
) -> Tensor:
    """The integral of a function times a density, by double exponential rules.

    The interval is split at the distribution's median: nodes are dense there, and at finite ends.
    Nodes that contribute nothing are left out, since formulas may have no derivative there.
    """
    low, high = law._ends(*shapes)
    a, b = (double(low if a is None else a)[..., None], double(high if b is None else b)[..., None])
    quarter, middle, three = (law._values("ppf", p, *shapes)[..., None] for p in (0.25, 0.5, 0.75))
    split = xp.minimum(xp.maximum(middle, a), b)
    panels = [_panel(*ends, three - quarter) for ends in ((a, split), (split, b))]
    x, d = (_joined([panel[i] for panel in panels]) for i in (0, 1))
    spare = xp.where(xp.logical_and(x > a, x < b), x, split)
    size = xp.abs(xp.stop_gradient(function(spare) * d))
    inside = xp.logical_and(x > a, x < b) & xp.isfinite(size)
    largest = xp.max(xp.where(inside, size, 0.0), axis=-1, keepdims=True)
    inside = inside & (size > 1e-18 * largest)
    values = function(xp.where(inside, x, split)) * d
    return xp.sum(xp.where(inside, values, 0.0), axis=-1)


NODES = 2 * _NODES.size
"""How many times an integral calls its function for each point."""

_PIECE = 1 << 17  # numbers that stay in a cache
_MANY = 1 << 20  # numbers above which there are pieces: an op's array takes 8 MiB


def in_pieces(formula: Callable[..., Any], numbers: int = NODES) -> Callable[..., Any]:
    """A formula of points and shapes that computes many of them in pieces.

    A piece is recomputed in the backward pass, so the memory is that of one piece. In a trace or
    under `vmap` there are no pieces.

    Args:
        formula: ``formula(law, x, *shapes)``.
        numbers: how many it computes for each point.
    """
    most = max(1, _PIECE // numbers)

    @functools.wraps(formula)
    def call(law: Any, *args: Any) -> Any:
        arrays = [double(a) for a in args]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        size = math.prod(shape)
        if size * numbers <= _MANY or any(READINGS[type(a._read()._data)].nesting for a in arrays):
            return formula(law, *args)
        points = [xp.broadcast_to(a, shape) if a.size > 1 else a for a in arrays]
        lines = [xp.reshape(a, (-1,)) for a in points]
        piece = recompute_grad(functools.partial(formula, law))
        parts = [
            piece(*(a if a.size == 1 else a[k : k + most] for a in lines))
            for k in range(0, size, most)
        ]
        return xp.reshape(xp.concat(parts), shape)

    return call


def _joined(parts: Sequence[Tensor]) -> Tensor:
    shape = np.broadcast_shapes(*(part.shape for part in parts))
    return xp.concat([xp.broadcast_to(part, shape) for part in parts], axis=-1)


def _panel(a: Tensor, b: Tensor, spread: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes between two ends, of which at most one is infinite, and their weights."""
    u = asarray(np.pi / 2 * np.sinh(_NODES))
    weight = asarray(np.pi / 2 * np.cosh(_NODES) * _STEP)
    to_left, to_right = xp.isfinite(a), xp.isfinite(b)
    start, stop = xp.where(to_left, a, b), xp.where(to_right, b, a)
    part, rest = xp.sigmoid(2 * u), xp.sigmoid(-2 * u)
    inner = xp.where(part < 0.5, start + (stop - start) * part, stop - (stop - start) * rest)
    far = spread * xp.exp(u)
    finite = xp.logical_and(to_left, to_right)
    x = xp.where(finite, inner, xp.where(to_left, start + far, stop - far))
    return x, xp.where(finite, 2 * (stop - start) * part * rest, far) * weight


def entropy_term(p: Tensor) -> Tensor:
    """-p log(p), 0 at 0."""
    return xp.where(p > 0, -p * xp.log(xp.where(p > 0, p, 1.0)), 0.0)
