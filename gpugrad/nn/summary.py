"""The table of a Module's parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core import nest
from gpugrad.core.format import format_bytes
from gpugrad.core.settings import training


def summary(module: Any, inputs: Sequence[Any]) -> str:
    """The text of `Module.summary`."""
    results = _results(module, inputs) if inputs else {}
    rows = [("layer", "type", *(("result",) if inputs else ()), "parameters", "memory")]
    for path, part in module.named_modules():
        variables = part.variables
        rows.append(
            (
                path,
                type(part).__name__,
                *((results.get(id(part), part._without_result),) if inputs else ()),
                f"{sum(v.size for v in variables):,}",
                format_bytes(sum(v.nbytes for v in variables)),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    rule = "-" * max(map(len, lines))
    variables = module.variables
    n, trained = (sum(v.size for v in vs) for vs in (variables, module.trainable_variables))
    memory = format_bytes(sum(v.nbytes for v in variables))
    total = f"{n:,} parameters ({memory}), {trained:,} of them trainable"
    return "\n".join([lines[0], rule, *lines[1:], rule, total])


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Texts to the left, and the two columns of numbers to the right."""
    first = len(row) - 2
    return [
        text.rjust(width) if k >= first else text.ljust(width)
        for k, (text, width) in enumerate(zip(row, widths, strict=True))
    ]


def _results(module: Any, inputs: Sequence[Any]) -> dict[int, str]:
    """The shapes of the results of each Module in one call, by the Module's id."""
    shapes: dict[int, str] = {}

    def note(part: Any, args: Any, result: Any) -> None:
        leaves = [leaf for leaf in nest.flatten(result) if hasattr(leaf, "shape")]
        shapes[id(part)] = ", ".join(str(tuple(leaf.shape)) for leaf in leaves)

    handles = [part.register_forward_hook(note) for _, part in module.named_modules()]
    try:
        with recording_stopped(), training(False):  # no random numbers, no running statistics
            module(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return shapes
