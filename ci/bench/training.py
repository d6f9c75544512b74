"""What the benches of training steps share: first steps, losses beside torch's, and the race."""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
from typing import Any

from peers import Maker, all_begun, chosen, in_turns, table, torch_compiles

CACHES = ("CUPY_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Where libraries keep compiled kernels from one process to the next."""


def makers(ours: Any, theirs: Any, on_gpu: bool) -> dict[str, Maker]:
    """The contestants: `ours`, and `theirs` given whether to compile, where torch is installed."""
    found = {"gpugrad": ours, "torch, eager": functools.partial(theirs, compiled=False)}
    if torch_compiles(on_gpu):
        found["torch.compile"] = functools.partial(theirs, compiled=True)
    return found


def same(losses: dict[str, list[float]], tolerance: float) -> bool:
    """Print the losses; True if all fall, and differ from ours by little.

    That is by a part `tolerance` of the first loss: what is learned by heart ends near 0.
    """
    if "gpugrad" not in losses:
        return False
    ours, good = losses["gpugrad"], True
    print()
    for name, found in losses.items():
        apart = max(abs(a - b) for a, b in zip(ours, found, strict=True)) / found[0]
        fine = found[-1] < found[0] and apart <= tolerance
        good = good and fine
        print(
            f"  {name:28s} loss {found[0]:.4f}, in step {len(found)} {found[-1]:.4f}; "
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
) -> bool:
    """Print the tables of one model; True if all train the same.

    A contestant is a maker of a step: a function that trains once and returns the loss. All begin
    with the same weights. The first step traces and compiles: it is timed in a process whose
    caches of kernels are empty, and in another that finds what the first one compiled.
    """
    contestants = chosen(contestants, args.only)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({name: os.path.join(folder, name) for name in CACHES})
        compiled = {k: make for k, make in contestants.items() if "eager" not in k}
        cold = {name: one.first for name, one in all_begun(compiled).items()}
        table(f"{title}: first step, empty caches", cold)
        racing = all_begun(contestants, inner=3, wait=wait)
        table(f"{title}: first step, filled caches", {name: r.first for name, r in racing.items()})
        medians = in_turns({name: r.pipe for name, r in racing.items()}, args.rounds)
    losses = {name: r.results for name, r in racing.items()}
    table(title, medians, work=work, losses=losses)
    return same(losses, tolerance)
