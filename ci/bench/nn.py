"""Layers and losses, forward and backward, on the CPU against torch with equal threads.

python ci/bench/nn.py [--small] [--threads N] [--rounds N] [NAME ...]

Prints the ratio of our time to torch's, from medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("names", nargs="*", metavar="NAME", help="of the workloads to run (all)")
parser.add_argument("--small", action="store_true", help="small arrays: the cost of the calls")
parser.add_argument("--threads", type=int, default=1, help="threads of both (1)")
parser.add_argument("--rounds", type=int, default=15, help="rounds to take medians of (15)")
args = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(args.threads)  # before NumPy and torch are imported
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # see function.py
os.environ.setdefault("GPUGRAD_DEVICE", "cpu")

import numpy as np
from peers import installed, race

import gpugrad as gg

Function = Callable[..., Any]


def workloads(small: bool) -> dict[str, tuple[Function, Function, list[Any]]]:
    """By name: our function, torch's, and the arrays that both differentiate by."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(args.threads)
    rng = np.random.default_rng(0)
    n, width, classes, side = (32, 16, 10, 8) if small else (4096, 512, 1000, 56)
    batch, channels = (2, 4) if small else (8, 32)

    def normal(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape).astype(np.float32)

    def both(numbers: Any) -> tuple[Any, Any]:
        return gg.asarray(numbers), torch.from_numpy(numbers)

    rows, images = normal(n, width), normal(batch, channels, side, side)
    labels, torch_labels = both(rng.integers(0, classes, n // 2))
    ids, torch_ids = both(rng.integers(0, n, n))
    grid = rng.uniform(-1.1, 1.1, (batch, side, side, 2)).astype(np.float32)
    twice = {"scale_factor": 2, "mode": "bilinear"}
    return {
        "layer_norm": (
            lambda x, w, b: gg.nn.layer_norm(x, w, b),
            lambda x, w, b: F.layer_norm(x, (width,), w, b),
            [rows, normal(width), normal(width)],
        ),
        "batch_norm": (
            lambda x: gg.nn.batch_norm(x, training=True)[0],
            lambda x: F.batch_norm(x, None, None, training=True),
            [images],
        ),
        "softmax": (lambda x: gg.nn.softmax(x, -1), lambda x: F.softmax(x, -1), [rows]),
        "cross_entropy": (
            lambda x: gg.nn.cross_entropy(x, labels),
            lambda x: F.cross_entropy(x, torch_labels),
            [normal(n // 2, classes)],
        ),
        "gelu": (gg.nn.gelu, F.gelu, [rows]),
        "silu": (gg.nn.silu, F.silu, [rows]),
        "dropout": (lambda x: gg.nn.dropout(x, 0.1), lambda x: F.dropout(x, 0.1), [rows]),
        "embedding": (
            lambda w: gg.nn.embedding(ids, w), lambda w: F.embedding(torch_ids, w), [rows],
        ),
        "attention": (
            lambda q, k, v: gg.nn.scaled_dot_product_attention(q, k, v, is_causal=True),
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            [normal(batch, 4, 4 * side, 64) for _ in range(3)],
        ),
        "conv2d": (
            lambda x, w: gg.nn.conv2d(x, w, padding=1), lambda x, w: F.conv2d(x, w, padding=1),
            [images, normal(channels, channels, 3, 3)],
        ),
        "depthwise conv2d": (
            lambda x, w: gg.nn.conv2d(x, w, padding=1, groups=channels),
            lambda x, w: F.conv2d(x, w, padding=1, groups=channels),
            [images, normal(channels, 1, 3, 3)],
        ),
        "max_pool2d": (
            lambda x: gg.nn.max_pool2d(x, 3, 2, 1), lambda x: F.max_pool2d(x, 3, 2, 1), [images],
        ),
        "adaptive_max_pool2d": (
            lambda x: gg.nn.adaptive_max_pool2d(x, 6), lambda x: F.adaptive_max_pool2d(x, 6),
            [images],
        ),
        "interpolate": (
            lambda x: gg.nn.interpolate(x, **twice), lambda x: F.interpolate(x, **twice), [images],
        ),
        "grid_sample": (
            lambda x, at: gg.nn.grid_sample(x, at),
            lambda x, at: F.grid_sample(x, at, align_corners=False),
            [images, grid],
        ),
    }  # fmt: skip


def contestants(ours: Function, theirs: Function, arrays: list[Any]) -> dict[str, Function]:
    """Forward and backward, ours and torch's."""
    import torch

    leaves = [torch.from_numpy(a).requires_grad_() for a in arrays]
    variables = [gg.Variable(a) for a in arrays]
    g = torch.ones_like(theirs(*leaves))
    upstream = gg.asarray(g.numpy())

    def gpugrad() -> object:
        with gg.GradientTape() as tape:
            y = ours(*variables)
        return tape.gradient(y, variables, output_gradients=upstream)

    return {"gpugrad": gpugrad, "torch": lambda: torch.autograd.grad(theirs(*leaves), leaves, g)}


def main() -> int:
    """Print the table."""
    if not installed("torch"):
        print("nn: torch is not installed, so there is nothing to compare with.")
        return 0
    cases = workloads(args.small)
    if unknown := set(args.names) - set(cases):
        parser.error(f"no workloads {sorted(unknown)}; there are {list(cases)}")
    print(f"forward and backward, threads: {args.threads}{', small arrays' * args.small}")
    for name in args.names or cases:
        raced = race(contestants(*cases[name]), rounds=args.rounds, inner=10 if args.small else 1)
        ours, theirs = raced["gpugrad"] * 1e3, raced["torch"] * 1e3
        print(f"  {name:20s} {ours:9.3f} ms   torch {theirs:9.3f} ms   {ours / theirs:6.2f} of it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
