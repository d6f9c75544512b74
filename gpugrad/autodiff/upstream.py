"""Upstream gradients that match their targets, and zeros in the place of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.convert import constant
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.errors import DeviceError, DTypeError, GpugradError, ShapeError, reraise


def check_upstream(what: str, targets: Sequence[Tensor], values: Sequence[Any]) -> list[Any]:
    """Upstream gradients as Tensors that match their targets; None stands for ones."""
    return [
        value
        if value is None or _fits(target, value)
        else check_like(f"{what}[{k}]: the target", "gradient", target, value)
        for k, (target, value) in enumerate(zip(targets, values, strict=True))
    ]


def _fits(target: Tensor, value: Any) -> bool:
    """Whether a gradient is a Tensor as it should be: for most, a faster `check_like`."""
    if type(value) is not Tensor:
        return False
    g, like = value._data, target._data
    on_host = type(g) is np.ndarray and type(like) is np.ndarray
    return on_host and g.shape == like.shape and g.dtype == like.dtype


def check_like(about: str, part: str, like: Tensor, value: Any) -> Tensor:
    """`value` as a Tensor of the shape, dtype and device of `like`.

    Args:
        about: the words for `like` in messages.
        part: those for the value.
        like, value: a Tensor, and an argument.

    Raises:
        ShapeError, DTypeError, DeviceError: it does not fit.
    """
    try:
        if not hasattr(value, "dtype"):
            value = constant(value, like.dtype, device=like.device)
        value = tensor(value)
    except GpugradError as error:
        reraise(error, about.rpartition(": ")[0], {}, {})
    require_like(about, part, like, value)
    return value


def require_like(about: str, part: str, like: Any, value: Any) -> None:
    """Raise unless a Tensor or IndexedSlices has the shape, dtype and device of `like`."""
    if value.shape != like.shape:
        raise ShapeError(
            f"{about} has shape {like.shape}, its {part} has {value.shape}. They must be the same; "
            "broadcast it with gg.broadcast_to."
        )
    if value.dtype != like.dtype:
        raise DTypeError(
            f"{about} is {like.dtype}, its {part} is {value.dtype}. Cast it with "
            "gg.astype(x, dtype)."
        )
    if value.device != like.device:
        raise DeviceError(
            f"{about} is on {like.device}, its {part} is on {value.device}. Move it with "
            "x.to_device(device)."
        )


def zeros_for(t: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """Zeros with the dtype, device and (unless `shape` is given) the shape of `t`."""
    return wrap(full_on_device_of(t._data, t.shape if shape is None else shape, t.dtype))
