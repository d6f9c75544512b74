"""One AdamW step of all weights of GPT-2 small, 124 million in 148 tensors, against the peers.

python ci/bench/adamw.py [--device cuda] [--rounds N] [--json PATH]

Gradients are precomputed. The table shows the medians of interleaved rounds, and the bandwidth of
the unavoidable traffic (read weight, gradient and both moments, write weight and moments) as a part
of the bandwidth of a copy in the same run. On a CPU there are two layers of width 64.
"""

from __future__ import annotations

import sys
from typing import Any

import peers

args = peers.parse_args(peers.options(__doc__, rounds=20, threads=1))

import numpy as np

import gpugrad as gg

ON_GPU = gg.device().kind == "cuda"
LAYERS, WIDTH, WORDS, PLACES = (
    (2, 64, 128, 32) if args.small or not ON_GPU else (12, 768, 50257, 1024)
)
RATE, DECAY, BETAS, EPSILON = 6e-4, 0.1, (0.9, 0.95), 1e-8

Run = Any


def shapes() -> list[tuple[int, ...]]:
    """The shapes of GPT-2's weights."""
    w = WIDTH
    layer = [(w,), (w,), (w, 3 * w), (3 * w,), (w, w), (w,), (w,), (w,), (w, 4 * w), (4 * w,),
             (4 * w, w), (w,)]  # fmt: skip
    return [(WORDS, w), (PLACES, w), *LAYERS * layer, (w,), (w,)]


def data() -> list[list[np.ndarray]]:
    """Weights and gradients."""
    rng = np.random.default_rng(0)
    return [[rng.standard_normal(s, np.float32) for s in shapes()] for _ in range(2)]


def gpugrad(weights: Any, gradients: Any) -> dict[str, Run]:
    variables = [gg.Variable(gg.asarray(a)) for a in weights]
    gradients = [gg.asarray(a) for a in gradients]
    pairs = list(zip(gradients, variables, strict=True))
    adam = gg.optim.AdamW(RATE, weight_decay=DECAY, beta_2=BETAS[1], epsilon=EPSILON)
    return {"gpugrad": lambda: adam.apply_gradients(pairs)}


def torch(weights: Any, gradients: Any) -> dict[str, Run]:
    import torch as t

    def make_step(**options: Any) -> Run:
        leaves = [t.tensor(a, device="cuda" if ON_GPU else "cpu") for a in weights]
        for leaf, g in zip(leaves, gradients, strict=True):
            leaf.grad = t.tensor(g, device=leaf.device)
        return t.optim.AdamW(leaves, RATE, BETAS, EPSILON, DECAY, **options).step

    runs = {"torch": make_step(), "torch, fused": make_step(fused=True)}
    if ON_GPU and peers.torch_compiles(ON_GPU):
        runs["torch.compile"] = peers.torch_compile(make_step())
    return runs


def jax(weights: Any, gradients: Any) -> dict[str, Run]:
    import functools

    import jax as j

    @functools.partial(j.jit, donate_argnums=0)
    def step(state: Any, gradients: Any) -> Any:
        t, *lists = state
        t += 1
        moved = zip(*map(functools.partial(adamw, j.numpy, t), *lists, gradients), strict=True)
        return [t, *map(list, moved)]

    put = lambda arrays: [j.numpy.asarray(a) for a in arrays]  # noqa: E731
    zeros = [[np.zeros_like(a) for a in weights] for _ in range(2)]
    state, gradients = [[j.numpy.float32(0), *map(put, (weights, *zeros))]], put(gradients)

    def run() -> Any:
        state[0] = step(state[0], gradients)
        return j.block_until_ready(state[0])

    return {"jax.jit": run}


def adamw(lib: Any, t: Any, p: Any, m: Any, v: Any, g: Any) -> tuple[Any, Any, Any]:
    """AdamW's new weight and moments in step t."""
    m = BETAS[0] * m + (1 - BETAS[0]) * g
    v = BETAS[1] * v + (1 - BETAS[1]) * g * g
    rate, root = RATE / (1 - BETAS[0] ** t), (1 - BETAS[1] ** t) ** 0.5
    return p * (1 - RATE * DECAY) - rate * m / (lib.sqrt(v) / root + EPSILON), m, v


def by_hand(weights: Any, gradients: Any) -> dict[str, Run]:
    """As a user would write it: a CuPy kernel per tensor, or NumPy formulas."""
    name, lib = peers.by_hand_in(ON_GPU)
    if ON_GPU:
        kernel = lib.ElementwiseKernel(
            "float32 g, float32 rate, float32 root", "float32 p, float32 m, float32 v",
            f"""
            m += {1 - BETAS[0]}f * (g - m);
            v += {1 - BETAS[1]}f * (g * g - v);
            p = p * {1 - RATE * DECAY}f - rate * m / (sqrtf(v) / root + {EPSILON}f);
            """,
            "adamw",
        )  # fmt: skip
    lists = [[lib.asarray(a) for a in arrays] for arrays in (weights, gradients)]
    lists += [[lib.zeros_like(a) for a in lists[0]] for _ in range(2)]
    steps = [0]

    def run() -> None:
        steps[0] += 1
        t = steps[0]
        for p, g, m, v in zip(*lists, strict=True):
            if ON_GPU:
                kernel(g, RATE / (1 - BETAS[0] ** t), (1 - BETAS[1] ** t) ** 0.5, p, m, v)
            else:
                p[...], m[...], v[...] = adamw(lib, t, p, m, v, g)

    return {name: run}


def copying(weights: Any, gradients: Any) -> dict[str, Run]:
    """A copy of the same number of elements."""
    return peers.copy_of(ON_GPU, np.ones(sum(a.size for a in weights), np.float32))


def main() -> int:
    """Print the table."""
    weights, gradients = data()
    count = sum(a.size for a in weights)
    makers = peers.with_peers([gpugrad, copying, by_hand], torch, jax, ON_GPU)
    runs = peers.select(peers.run_makers(makers, weights, gradients), args.only)
    medians = peers.race(runs, args.rounds, inner=3, wait=gg.cuda.synchronize if ON_GPU else None)
    limit = peers.speed_of_copy(medians, 8 * count / 1e9)
    title = f"AdamW step of {count:,} weights in {len(weights)} tensors on {gg.device()}"
    work, part = (28 * count / 1e9, "GB"), 0.85 if ON_GPU else None
    return peers.status(peers.table(title, medians, work=work, limit=limit, part=part))


if __name__ == "__main__":
    sys.exit(main())
