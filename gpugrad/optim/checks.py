"""Checks of gradients, all of them before the first Variable changes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gpugrad.autodiff.upstream import require_like
from gpugrad.core import devices
from gpugrad.core.backend import READINGS, is_inexact
from gpugrad.core.holders import opened
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, argument
from gpugrad.core.user_code import user_level
from gpugrad.core.variable import Variable
from gpugrad.errors import (
    ArgumentError,
    CheckpointError,
    DeviceError,
    DTypeError,
    GpugradError,
    GpugradWarning,
    IndexOutOfBoundsError,
    ShapeError,
)

Gradient = Tensor | IndexedSlices


def check_condition(name: str, when: Any) -> Tensor:
    """The condition `when` as a Tensor of one element; or ShapeError."""
    when = argument(name, when)
    if when.size != 1:
        raise ShapeError(
            f"{name}: when must have one element, its shape is {when.shape}. Use gg.any or gg.all."
        )
    return when


def check_number(name: str, key: str, value: Any, low: float, high: float) -> float:
    """A number of a loaded state, above `low` and at most `high`; or CheckpointError."""
    if value.dtype.kind in "iuf" and low < value <= high:
        return float(value)
    raise CheckpointError(f"{name}: '{key}' is {value}, expected a number in ({low}, {high}].")


def check_count(name: str, key: str, value: Any) -> int:
    """A count of a loaded state, an integer of at least 0; or CheckpointError."""
    if value.dtype.kind in "iuf" and 0 <= value < 2**53 and value == np.floor(value):
        return int(value)
    raise CheckpointError(f"{name}: '{key}' is {value}, expected a count of steps.")


def take_array(
    name: str, state: dict[str, Any], key: str, shape: tuple[int, ...], dtype: Any = None
) -> np.ndarray[Any, Any]:
    """Remove an array of this shape and dtype from a state that is loaded; or CheckpointError."""
    if key not in state:
        raise CheckpointError(f"{name}: the state lacks '{key}'.")
    value = state.pop(key)
    array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.shape != shape:
        raise CheckpointError(f"{name}: '{key}' has shape {array.shape}, expected {shape}.")
    if dtype is not None and array.dtype != dtype:
        raise CheckpointError(f"{name}: '{key}' is {array.dtype}, expected {dtype}.")
    return array


def write_rule(rule: str) -> np.ndarray[Any, Any]:
    """The name of an update rule as `check_rule` reads it from a state: bytes in UTF-8."""
    return np.frombuffer(rule.encode(), np.uint8).copy()


def check_rule(name: str, rule: str, state: dict[str, Any]) -> None:
    """Remove the name of the update rule from a state that is loaded; older ones lack it.

    CheckpointError if it is another rule's, whose averages mean something else.
    """
    if "rule" not in state:
        return
    value = state.pop("rule")
    letters = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    other = letters.tobytes().decode(errors="replace") if letters.dtype == np.uint8 else "no rule"
    if other != rule:
        raise CheckpointError(
            f"{name}: the state belongs to {other:.60}, not to {rule}. To load it all the same, "
            "remove 'rule' from the state."
        )


def warn_of_left_out(name: str, names: Mapping[str, Variable], known: Iterable[Variable]) -> None:
    """Warn of Variables that have a state, but are not among those whose state is saved."""
    saved = {v._id for v in names.values()}
    left_out = ", ".join(f"'{v.name}'" for v in known if v._id not in saved)
    if left_out:
        warnings.warn(
            f"{name}: the state of {left_out} is left out, because the names do not include them. "
            "Save them too to continue a run: in gg.train.Checkpoints they are parts.",
            GpugradWarning,
            stacklevel=user_level(),
        )


def check_empty(name: str, state: dict[str, Any]) -> None:
    """CheckpointError if a state has arrays that were not taken."""
    if state:
        raise CheckpointError(
            f"{name}: unexpected state {sorted(state)[:6]}: it belongs to another optimizer or "
            "model."
        )


def check_pairs(
    name: str, grads_and_vars: Any
) -> tuple[list[tuple[Gradient, Variable]], list[Variable]]:
    """The pairs with a gradient, as a Tensor or IndexedSlices, and the Variables without one.

    Raises:
        ArgumentError, DTypeError: no pair has a gradient, an item is not a pair of a gradient and a
            Variable, or a Variable is repeated.
    """
    pairs: list[tuple[Gradient, Variable]] = []
    skipped: list[Variable] = []
    seen: set[int] = set()
    try:
        items = iter(grads_and_vars)
    except (TypeError, GpugradError):
        raise ArgumentError(
            f"{name}: expected pairs (gradient, Variable), got {grads_and_vars!r:.60}."
        ) from None
    for pair in items:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentError(f"{name}: expected pairs (gradient, Variable), got {pair!r:.60}.")
        gradient, variable = pair
        if not isinstance(variable, Variable):
            variable = opened(variable)
        if not isinstance(variable, Variable):
            raise DTypeError(
                f"{name}: expected pairs (gradient, Variable), got a {type(variable).__name__} in "
                "the place of a Variable."
            )
        if variable._id in seen:
            raise ArgumentError(f"{name}: the Variable '{variable.name}' is repeated.")
        seen.add(variable._id)
        rows = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        if isinstance(rows, Tensor) and READINGS[type(rows._data)].nesting > 1:
            raise ArgumentError(
                f"{name}: under vmap the gradient differs between examples, but the Variable "
                f"'{variable.name}' has one value. Return the gradient from the function and apply "
                "it outside vmap."
            )
        if gradient is None:
            skipped.append(variable)
        else:
            is_gradient = type(gradient) is Tensor or isinstance(gradient, IndexedSlices)
            pairs.append((gradient if is_gradient else argument(name, gradient), variable))
    if not pairs:
        if not skipped:
            raise ArgumentError(f"{name}: got no gradients.")
        names = ", ".join(f"'{v.name}'" for v in skipped)
        raise ArgumentError(
            f"{name}: no gradients: all are None ({names}). tape.explain(loss, variable) says why."
        )
    return pairs, skipped


def _on_the_gpu(array: Any) -> bool:
    """Whether it is a plain array of the only GPU."""
    return not READINGS[type(array)].nesting and devices.gpu_count() == 1


def check_gradient(
    name: str, gradient: Any, variable: Variable, path: str | None = None
) -> Gradient:
    """The gradient of a Variable, converted to Tensors and checked.

    Args:
        name: the optimizer's name.
        gradient: the user's argument.
        variable: the Variable.
        path: what messages call it, its name if None.

    Raises:
        ArgumentError, DTypeError, ShapeError, DeviceError, IndexOutOfBoundsError: it does not fit
            the Variable.
    """
    if type(gradient) is Tensor and type(gradient._data) is type(variable._data):  # most of them
        data, own = gradient._data, variable._data
        alike = data.shape == own.shape and data.dtype == own.dtype and data.dtype.kind in "fc"
        if alike and (type(own) is np.ndarray or _on_the_gpu(own)):
            return gradient
    rows = isinstance(gradient, IndexedSlices)
    g: Any = argument(name, gradient.values if rows else gradient)
    about = f"{name}: the Variable '{path or variable.name}'"
    if not is_inexact(variable.dtype):
        raise DTypeError(
            f"{about} is {variable.dtype}, but optimizers need a floating dtype. Change its dtype, "
            "or use variable.assign_sub."
        )
    if rows:
        indices = argument(name, gradient.indices)
        dense_shape = variable.shape if gradient.dense_shape is None else gradient.dense_shape
        fits = indices.shape == g.shape[:1] and g.shape[1:] == dense_shape[1:]
        if indices.dtype.kind not in "iu" or not fits:
            raise ArgumentError(
                f"{about}: its gradient has values of shape {g.shape} for {dense_shape} at indices "
                f"{indices.dtype} {indices.shape}: each row of values needs one integer index."
            )
        g = IndexedSlices(g, indices, dense_shape)
    require_like(about, "gradient", variable, g)
    if not rows:
        return g
    if indices.device != g.device:
        raise DeviceError(
            f"{about} is on {g.device}, the indices of its gradient are on {indices.device}. Move "
            "them with x.to_device(device)."
        )
    if indices.size:
        with devices.formulas_on(indices._data):
            low, high = int(indices._data.min()), int(indices._data.max())
        if low < 0 or high >= g.shape[0]:
            raise IndexOutOfBoundsError(
                f"{about} has {g.shape[0]} rows, the indices of its gradient run from {low} "
                f"to {high}."
            )
    return g
