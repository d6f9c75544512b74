"""What the benches of whole training steps do: first calls, losses beside torch's, and the race."""

from __future__ import annotations

import argparse
import functools
from typing import Any

from peers import Maker, chosen, first_calls, race_apart, table, torch_compiles

STEPS = 5
"""How many steps are taken to compare the losses."""


def makers(ours: Any, theirs: Any, on_gpu: bool) -> dict[str, Maker]:
    """The contestants: `ours`, and `theirs` given whether to compile, where torch is installed."""
    found = {"gpugrad": ours, "torch, eager": functools.partial(theirs, compiled=False)}
    if torch_compiles(on_gpu):
        found["torch.compile"] = functools.partial(theirs, compiled=True)
    return found


def same(losses: dict[str, list[float]], tolerance: float) -> bool:
    """Print the losses; True if all fall, and are the same up to a part `tolerance` of them."""
    ours, good = losses["gpugrad"], True
    for name, found in losses.items():
        apart = max(abs(a - b) / abs(b) for a, b in zip(ours, found, strict=True))
        fine = found[-1] < found[0] and apart <= tolerance
        good = good and fine
        print(
            f"  {name:28s} loss {found[0]:.4f}, after {STEPS} steps {found[-1]:.4f}; "
            f"apart by {apart:.0e} of it at most{'' if fine else ': NOT THE SAME TRAINING'}"
        )
    return good


def compare(
    title: str,
    contestants: dict[str, Maker],
    args: argparse.Namespace,
    *,
    tolerance: float,
    wait: Any,
    work: tuple[float, str],
) -> tuple[dict[str, dict[str, float]], dict[str, list[float]], bool]:
    """Print all of one model: seconds by table, the losses, and whether the training is the same.

    A contestant is a maker of a step: a function that trains once and returns the loss. All begin
    with the same weights.
    """
    contestants = chosen(contestants, args.only)
    first, losses = first_calls(contestants, STEPS)
    tables = {f"{title}: first step, {state} caches": found for state, found in first.items()}
    tables[title] = race_apart(contestants, args.rounds, inner=3, wait=wait)
    for name, seconds in tables.items():
        table(name, seconds, work=work if name == title else None)
    print()
    return tables, losses, same(losses, tolerance)
