"""Collectives as ops: each rank passes an array, and the results depend on those of all ranks.

The derivative of a collective is that of the sum over ranks of what each of them differentiates, so
it is a collective as well: all ranks run the backward pass alike.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core import nest
from gpugrad.core.arguments import one_of
from gpugrad.core.devices import device_of
from gpugrad.core.tensor import Tensor
from gpugrad.distributed.engine import Engine
from gpugrad.distributed.world import world
from gpugrad.errors import ArgumentError, AxisError, DeviceError, DTypeError, ShapeError
from gpugrad.registry.record import op
from gpugrad.trace.array import TRACED, Traced, current_trace


def _collective(rules: Any = None, **fields: Any) -> Callable[[Any], Any]:
    """`op` for a formula that each replay of a trace runs, also if its array is a constant."""

    def decorate(formula: Any) -> Any:
        @functools.wraps(formula)
        def run(xp: Any, x: Any, /, *args: Any, **params: Any) -> Any:
            trace = current_trace()
            if trace is None or trace.sizing:
                return formula(xp, x, *args, **params)
            x = xp.lib.asarray(x)
            named = dict(zip(list(inspect.signature(formula).parameters)[2:], args, strict=False))
            return getattr(TRACED, formula.__name__)(Traced(x, trace.place(x)), **named, **params)

        linear: dict[str, Any] = {"linear": True} if rules else {"differentiable": False}
        function = op(rules, **linear, opens="effect", captures=True, **fields)(run)

        @functools.wraps(function)
        def of_each(x: Any, *args: Any, **params: Any) -> Any:
            if nest.children(x) is None or Tensor not in map(type, nest.flatten(x)):
                return function(x, *args, **params)
            return nest.map_structure(lambda leaf: function(leaf, *args, **params), x)

        of_each.__module__ = __name__  # where pickle finds it
        return of_each

    return decorate


def _run(xp: Any, name: str, x: Any, *args: Any) -> Any:
    """The result of the engine's method of this name for a C-contiguous array.

    While a function is traced, ranks may run different code, so nothing is sent: the result then
    has the right shape, and the values of this rank's array.
    """
    if current_trace() is not None:
        return getattr(Engine(world().size), name)(x, *args)
    engine, device = world().engine, device_of(x)
    if engine.kind not in (None, device.kind):
        raise DeviceError(
            f"{name}: x is on {device}, but ranks communicate by {engine.name}, between "
            f"{'GPUs' if engine.kind == 'cuda' else 'CPUs'}. Move it with x.to_device(device)."
        )
    contiguous = xp.lib.asarray(x, order="C")  # unlike ascontiguousarray, 0-d as well
    return world().run(f"{name} {x.dtype}{list(x.shape)}", name, contiguous, *args)


def _parts(xp: Any, name: str, x: Any, axis: int) -> Any:
    """`x` with a new first axis, of one part along `axis` for each rank."""
    n, axis = world().size, _axis(name, x, axis)
    if x.shape[axis] % n:
        raise ShapeError(
            f"{name}: axis {axis} of the shape {x.shape} is no multiple of the {n} ranks."
        )
    shape = (*x.shape[:axis], n, x.shape[axis] // n, *x.shape[axis + 1 :])
    return xp.lib.moveaxis(x.reshape(shape), axis, 0)


def _joined(xp: Any, parts: Any, axis: int) -> Any:
    """The parts along the first axis joined along an axis of theirs."""
    moved = xp.lib.moveaxis(parts, 0, axis)
    shape = moved.shape
    return moved.reshape((*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _axis(name: str, x: Any, axis: int) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"{name}: axis {axis} is out of bounds for the shape {x.shape}.")
    return axis % x.ndim


def _check_mean(name: str, x: Any, how: str) -> None:
    if x.dtype.kind == "b" or (how == "mean" and x.dtype.kind in "iu"):
        raise DTypeError(
            f"{name}: the {how} needs numbers{' with a fraction' * (how == 'mean')}, got {x.dtype}."
        )


_reductions = one_of("sum", "mean")
_extrema = one_of("max", "min")


def _samples(*shapes: tuple[int, ...], **keywords: Any) -> Any:
    """Samples of these shapes, whose first axis every number of ranks up to 4 divides."""

    def samples(rng: np.random.Generator) -> Any:
        for shape in shapes:
            for used in ({}, keywords):
                yield [rng.normal(size=shape)], used

    return samples


@_collective(
    [lambda xp, g, reduction: xp.all_reduce(g, reduction=reduction)],
    kinds="fc",
    batch="stack",
    samples=_samples((3, 2), (), reduction="mean"),
    ref=lambda x, reduction="sum": Engine(world().size).all_reduce(x, reduction),
    errors=[(([1.0],), {"reduction": "max"}, ValueError, "reduction")],
)
def all_reduce(xp, x, /, reduction="sum"):
    """The sum or the mean over ranks, elementwise, on each of them.

    Args:
        x: array of any shape; shape and dtype are the same on all ranks. 16-bit floats are summed
            in float32 on CPUs.
        reduction: ``"sum"`` or ``"mean"``.

    >>> print(gg.distributed.all_reduce([1.0, 2.0]))  # of one process
    [1. 2.]
    """
    _reductions("all_reduce", "reduction", reduction)
    _check_mean("all_reduce", x, reduction)
    return _run(xp, "all_reduce", x, reduction)


@_collective(
    kinds="fi",
    batch="stack",
    samples=_samples((3, 2), (), reduction="min"),
    ref=lambda x, reduction="max": x,
    errors=[(([1.0],), {"reduction": "sum"}, ValueError, "reduction")],
)
def all_reduce_extremum(xp, x, /, reduction="max"):
    """The largest or the smallest value over ranks, elementwise, on each of them.

    Args:
        x: array of any shape; shape and dtype are the same on all ranks.
        reduction: ``"max"`` or ``"min"``.

    >>> print(gg.distributed.all_reduce_extremum([1.0, 2.0]))  # of one process
    [1. 2.]
    """
    _extrema("all_reduce_extremum", "reduction", reduction)
    return _run(xp, "all_reduce", x, reduction)


@_collective(
    [lambda xp, g, axis: xp.reduce_scatter(g, axis=axis)],
    kinds="fcib",
    batch="axis",
    samples=_samples((3, 2), axis=1),
    ref=lambda x, axis=0: np.concatenate([x] * world().size, axis),
    errors=[(([1.0],), {"axis": 1}, IndexError, "axis")],
)
def all_gather(xp, x, /, axis=0):
    """The arrays of all ranks, concatenated along an axis, on each of them.

    Args:
        x: array of at least one axis; shape and dtype are the same on all ranks.

    Returns:
        An array whose axis `axis` is as long as those of all ranks together.

    >>> print(gg.distributed.all_gather([1.0, 2.0]))  # of one process
    [1. 2.]
    """
    axis = _axis("all_gather", x, axis)
    return _joined(xp, _run(xp, "all_gather", x), axis)


@_collective(
    [
        lambda xp, g, axis, reduction: xp.all_gather(
            g / world().size if reduction == "mean" else g, axis=axis
        )
    ],
    kinds="fc",
    batch="axis",
    samples=_samples((12, 2), axis=-2, reduction="mean"),
    ref=lambda x, axis=0, reduction="sum": Engine(world().size).all_reduce(
        np.split(x, world().size, axis)[world().rank], reduction
    ),
    errors=[(([1.0],), {"axis": 1}, IndexError, "axis")],
)
def reduce_scatter(xp, x, /, axis=0, reduction="sum"):
    """The part of this rank, along an axis, of the sum or the mean over ranks.

    Args:
        x: array whose axis `axis` is a multiple of the number of ranks; shape and dtype are the
            same on all ranks.
        reduction: ``"sum"`` or ``"mean"``.

    Returns:
        An array whose axis `axis` is as long as that of `x` divided by the number of ranks.

    >>> print(gg.distributed.reduce_scatter([1.0, 2.0]))  # of one process
    [1. 2.]
    """
    _reductions("reduce_scatter", "reduction", reduction)
    _check_mean("reduce_scatter", x, reduction)
    return _run(xp, "reduce_scatter", _parts(xp, "reduce_scatter", x, axis), reduction)


@_collective(
    # all ranks run the same ops
    [lambda xp, g, root: xp.all_reduce(g) * float(world().rank == root)],
    kinds="fcib",
    batch="stack",
    samples=_samples((3, 2), (), root=0),
    ref=lambda x, root=0: x,
    errors=[(([1.0],), {"root": 9999}, ValueError, "root")],
)
def broadcast(xp, x, /, root=0):
    """The array of one rank, on each of them.

    Args:
        x: array of any shape; shape and dtype are the same on all ranks.
        root: the rank whose array all get.

    >>> print(gg.distributed.broadcast([1.0, 2.0]))  # of one process
    [1. 2.]
    """
    if not 0 <= root < world().size:
        raise ArgumentError(f"broadcast: root={root}, but ranks run from 0 to {world().size - 1}.")
    return _run(xp, "broadcast", x, root)


@_collective(
    [lambda xp, g, axis: xp.all_to_all(g, axis=axis)],
    kinds="fcib",
    batch="axis",
    samples=_samples((12, 2), axis=-2),
    ref=lambda x, axis=0: np.concatenate(
        [np.split(x, world().size, axis)[world().rank]] * world().size, axis
    ),
    errors=[(([1.0],), {"axis": 1}, IndexError, "axis")],
)
def all_to_all(xp, x, /, axis=0):
    """Part k along an axis of each rank's array, concatenated in the order of ranks, on rank k.

    Args:
        x: array whose axis `axis` is a multiple of the number of ranks; shape and dtype are the
            same on all ranks.

    >>> print(gg.distributed.all_to_all([1.0, 2.0]))  # of one process
    [1. 2.]
    """
    axis = _axis("all_to_all", x, axis)
    return _joined(xp, _run(xp, "all_to_all", _parts(xp, "all_to_all", x, axis)), axis)
