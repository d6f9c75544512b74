"""Shared by the benches of training steps: first steps, comparison of losses, and the race."""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
from typing import Any

from peers import Maker, in_turns, installed, select, start_all, table, torch_compiles

CACHES = ("XDG_CACHE_HOME", "CUPY_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Environment variables for the libraries' caches of compiled kernels on disk."""


def makers(ours: Any, theirs: Any, on_gpu: bool) -> dict[str, Maker]:
    """The contestants: `ours`, and `theirs`, eager and compiled."""
    contestants = {"gpugrad": ours}
    if installed("torch"):
        contestants["torch, eager"] = functools.partial(theirs, compiled=False)
    if torch_compiles(on_gpu):
        contestants["torch.compile"] = functools.partial(theirs, compiled=True)
    return contestants


def same(losses: dict[str, list[float]], tolerance: float) -> bool:
    """Print the losses; return True if all fall and stay close to ours.

    The tolerance is relative to the first loss, because the last one may be near 0.
    """
    if "gpugrad" not in losses:
        return False
    ours, good = losses["gpugrad"], True
    print()
    for name, theirs in losses.items():
        apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / (theirs[0] or 1.0)
        fine = theirs[-1] < theirs[0] and apart <= tolerance
        good = good and fine
        print(
            f"  {name:28s} loss {theirs[0]:.4f}, in step {len(theirs)} {theirs[-1]:.4f}; "
            f"ours differs by {apart:.0e} of the first{'' if fine else ': NOT THE SAME TRAINING'}"
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
    reach: dict[str, float] | None = None,
) -> bool:
    """Print the tables of one model; return True if all train the same, and as fast as `reach`.

    A contestant is a maker of a step, a function that trains once and returns the loss. All start
    with the same weights. The first step traces and compiles: it is timed once in a process with
    empty kernel caches, and once in a process that finds the kernels of the first.
    """
    contestants = select(contestants, args.only)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({name: os.path.join(folder, name) for name in CACHES})
        compiled = {k: make for k, make in contestants.items() if "eager" not in k}
        cold = {name: one.first for name, one in start_all(compiled).items()}
        table(f"{title}: first step, empty caches", cold)
        racing = start_all(contestants, inner=3, wait=wait)
        table(f"{title}: first step, filled caches", {name: r.first for name, r in racing.items()})
        medians = in_turns({name: r.pipe for name, r in racing.items()}, args.rounds)
    losses = {name: r.results for name, r in racing.items()}
    reached = table(title, medians, reach, work, losses=losses)
    return same(losses, tolerance) and reached
