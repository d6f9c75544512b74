"""Upstream gradients that match their targets, and zeros in the place of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpugrad.core.convert import constant
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.errors import DeviceError, DTypeError, GpugradError, ShapeError, reraise


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


def zeros_for(t: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """Zeros with the dtype, device and (unless `shape` is given) the shape of `t`."""
    return wrap(full_on_device_of(t._data, t.shape if shape is None else shape, t.dtype))
