"""Several steps in one call: one batch per step along a new first axis."""

from __future__ import annotations

from typing import Any

from gpugrad.core import nest
from gpugrad.core.backend import TENSOR, is_array
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.function.signature import Signature

__all__ = ["split_steps", "stack_results"]


def split_steps(
    signature: Signature, name: str, k: int, args: Any, keywords: Any, alone: bool
) -> list[tuple[Any, Any]]:
    """Split the arguments into one set for each of `k` steps.

    If `alone`, nothing records or traces the call, so that Tensors are split without ops.

    Raises:
        ShapeError: an array does not have length `k` along its first axis.
    """
    at = 0

    def cut(leaf: Any) -> Any:
        if alone and type(leaf) is Tensor:
            return wrap(leaf._data[at, ...])  # `...` keeps an array, not a NumPy scalar
        return leaf[at, ...] if _is_array(leaf) else leaf

    for path, leaf in signature.paths(args, keywords):
        if _is_array(leaf) and leaf.shape[:1] != (k,):
            raise ShapeError(
                f"{name}: {path} has shape {leaf.shape}, and steps_per_call={k} needs length {k} "
                "along the first axis: one part for each step. Pass values that all steps share "
                "as a Variable, a Python number, or gg.broadcast_to(x, (k, *x.shape))."
            )
    steps = []
    for at in range(k):  # noqa: B007  # `cut` reads it
        steps.append(signature.mapped(cut, args, keywords))
    return steps


def _is_array(leaf: Any) -> bool:
    return is_array(leaf) or (isinstance(leaf, Tensor) and not isinstance(leaf, Variable))


def stack_results(name: str, results: list[Any]) -> Any:
    """Stack the Tensors in the results of several steps; other leaves are the first step's.

    Raises:
        ArgumentError: a result is IndexedSlices, or the structures differ.
    """
    columns = [nest.flatten_like(results[0], r, f"{name}: the results") for r in results]
    leaves = []
    for column in zip(*columns, strict=True):
        if isinstance(column[0], IndexedSlices):
            raise ArgumentError(
                f"{name}: a result is IndexedSlices, which steps_per_call cannot stack. Return "
                "x.to_dense()."
            )
        is_tensor = isinstance(column[0], Tensor) and not isinstance(column[0], Variable)
        leaves.append(TENSOR.stack(list(column)) if is_tensor else column[0])
    return nest.pack(results[0], leaves)
