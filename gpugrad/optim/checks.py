"""What optimizers ask of gradients before the first Variable moves."""

from __future__ import annotations

from typing import Any

from gpugrad.core import devices
from gpugrad.core.backend import READINGS, is_inexact
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, IndexOutOfBoundsError, ShapeError

__all__ = ["Gradient", "fitting", "one_element", "paired"]

Gradient = Tensor | IndexedSlices


def one_element(name: str, when: Any) -> Tensor:
    """What says whether a step is taken, as a Tensor.

    Raises:
        ShapeError: it has more than one element.
    """
    when = tensor(when)
    if when.size != 1:
        raise ShapeError(
            f"{name}: when has the shape {when.shape}, one element is needed. Use gg.any or gg.all."
        )
    return when


def paired(
    name: str, grads_and_vars: Any
) -> tuple[list[tuple[Gradient, Variable]], list[Variable]]:
    """The pairs that have a gradient, as a Tensor or rows, and the Variables that have none.

    Args:
        name: of the optimizer.
        grads_and_vars: whatever a user gave.

    Raises:
        ArgumentError, DTypeError: there are no such pairs, or a Variable comes twice.
    """
    pairs: list[tuple[Gradient, Variable]] = []
    skipped: list[Variable] = []
    seen: set[int] = set()
    for pair in grads_and_vars:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentError(f"{name}: pairs (gradient, Variable) are needed, got {pair!r:.60}.")
        gradient, variable = pair
        if not isinstance(variable, Variable):
            raise DTypeError(
                f"{name}: only Variables are moved, got a {type(variable).__name__}. A "
                "pair is (gradient, Variable)."
            )
        if variable._id in seen:
            raise ArgumentError(f"{name}: the Variable '{variable.name}' comes twice.")
        seen.add(variable._id)
        rows = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        if isinstance(rows, Tensor) and READINGS[type(rows._data)].nesting > 1:
            raise ArgumentError(
                f"{name}: under vmap the gradient differs between examples, and the "
                f"Variable '{variable.name}' has one value. Return it from the function and "
                "apply it outside."
            )
        if gradient is None:
            skipped.append(variable)
        else:
            is_rows = isinstance(gradient, IndexedSlices)
            pairs.append((gradient if is_rows else tensor(gradient), variable))
    if not pairs:
        names = ", ".join(f"'{v.name}'" for v in skipped)
        raise ArgumentError(
            f"{name}: no gradients"
            + (f": all are None ({names}). tape.explain(loss, variable) says why." if skipped
               else " were given.")
        )  # fmt: skip
    return pairs, skipped


def fitting(name: str, gradient: Any, variable: Variable) -> Gradient:
    """The gradient, if a Variable can be moved along it; of rows the arrays as Tensors.

    Raises:
        ArgumentError, DTypeError, ShapeError, DeviceError, IndexOutOfBoundsError: it cannot.
    """
    rows = isinstance(gradient, IndexedSlices)
    g: Any = tensor(gradient.values if rows else gradient)
    about = f"{name}: the Variable '{variable.name}'"
    if not is_inexact(variable.dtype):
        raise DTypeError(
            f"{about} is {variable.dtype}, and an optimizer's steps are no whole numbers. Make "
            "it of a floating dtype, or use variable.assign_sub."
        )
    if rows:
        indices = tensor(gradient.indices)
        whole = variable.shape if gradient.dense_shape is None else gradient.dense_shape
        fits = indices.shape == g.shape[:1] and g.shape[1:] == whole[1:]
        if indices.dtype.kind not in "iu" or not fits:
            raise ArgumentError(
                f"{about}: its gradient has values {g.shape} for {whole} at indices "
                f"{indices.dtype} {indices.shape}: one int is needed for each row of them."
            )
        g = IndexedSlices(g, indices, whole)
    if g.shape != variable.shape:
        raise ShapeError(f"{about} has shape {variable.shape}, its gradient {g.shape}.")
    if g.dtype != variable.dtype:
        raise DTypeError(
            f"{about} is {variable.dtype}, its gradient {g.dtype}. Cast it with "
            "gg.astype(g, dtype)."
        )
    if g.device != variable.device:
        raise DeviceError(
            f"{about} is on {variable.device}, its gradient on {g.device}. Move it with "
            "g.to_device(device)."
        )
    if not rows:
        return g
    if indices.device != g.device:
        raise DeviceError(
            f"{about} is on {g.device}, the indices of its gradient on {indices.device}. Move "
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
