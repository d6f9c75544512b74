"""Checks the arguments of gradient calls, and replaces unconnected gradients."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from gpugrad.core import nest
from gpugrad.core.convert import constant
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, GpugradError, ShapeError, reraise


class UnconnectedGradients(enum.Enum):
    """What `gradient` returns for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


class AggregationMethod:
    """Accepted for compatibility with TensorFlow; gradients are always added in place."""

    ADD_N = DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def flatten_tensors(what: str, structure: Any, with_none: bool = False) -> list[Tensor]:
    """The Tensors of a structure, which may hold None `with_none`; DTypeError for others."""
    if isinstance(structure, Tensor):
        return [structure]
    leaves = nest.flatten(structure)
    if with_none and structure is not None:
        leaves = [leaf for leaf in leaves if leaf is not None]
    for leaf in leaves:
        if isinstance(leaf, IndexedSlices):
            raise DTypeError(f"{what}: IndexedSlices have no gradient of their own; use .values.")
        if not isinstance(leaf, Tensor):
            is_module = hasattr(leaf, "trainable_variables")
            raise DTypeError(
                f"{what}: expected Tensors and Variables, or nested lists, tuples and dicts of "
                f"them; got {type(leaf).__name__} {leaf!r:.60}."
                f"{' Pass its trainable_variables.' if is_module else ''}"
            )
    return leaves


def pack_tensors(structure: Any, values: Sequence[Any]) -> Any:
    """A structure with other leaves in the places of its Tensors."""
    if isinstance(structure, Tensor):
        return values[0]
    leaves = nest.flatten(structure)
    if len(leaves) > len(values):  # some are None
        rest = iter(values)
        values = [next(rest) if isinstance(x, Tensor) else x for x in leaves]
    return nest.pack(structure, values)


def check_upstream(what: str, targets: Sequence[Tensor], values: Sequence[Any]) -> list[Any]:
    """Upstream gradients as Tensors that match their targets; None stands for ones."""
    return [
        None if value is None else check_like(f"{what}[{k}]", "target", target, value)
        for k, (target, value) in enumerate(zip(targets, values, strict=True))
    ]


def check_like(what: str, role: str, like: Tensor, value: Any) -> Tensor:
    """`value` as a Tensor of the shape, dtype and device of `like`, which messages call `role`."""
    try:
        if not hasattr(value, "dtype"):
            value = constant(value, like.dtype, device=like.device)
        value = tensor(value)
    except GpugradError as error:
        reraise(error, what, {}, {})
    if value.shape != like.shape:
        raise ShapeError(
            f"{what}: the {role}'s shape is {like.shape}, got {value.shape}. They must be "
            "the same; broadcast it with gg.broadcast_to."
        )
    if value.dtype != like.dtype:
        raise DTypeError(
            f"{what}: the {role} is {like.dtype}, got {value.dtype}. Cast it with "
            "gg.astype(x, dtype)."
        )
    if value.device != like.device:
        raise DeviceError(
            f"{what}: the {role} is on {like.device}, got {value.device}. Move it with "
            "x.to_device(device)."
        )
    return value


def as_unconnected(value: Any) -> UnconnectedGradients:
    """The choice that `value` names; ArgumentError if it names none."""
    if isinstance(value, UnconnectedGradients):
        return value
    try:
        return UnconnectedGradients(value)
    except (TypeError, ValueError):  # NumPy refuses to compare some arrays
        raise ArgumentError(
            f"unconnected_gradients: {value!r} is neither 'none' nor 'zero'."
        ) from None


def fill_unconnected(grads: list[Any], sources: Sequence[Tensor], how: Any) -> list[Any]:
    """Gradients with zeros in place of None, if `how` says so."""
    if as_unconnected(how) is UnconnectedGradients.NONE:
        return grads
    return [zeros_for(s) if g is None else g for g, s in zip(grads, sources, strict=True)]


def zeros_for(t: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """Zeros with the dtype, device and (unless `shape` is given) the shape of `t`."""
    return wrap(full_on_device_of(t._data, t.shape if shape is None else shape, t.dtype))
