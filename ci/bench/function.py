"""gpugrad.function against eager calls, torch, tf.function, jax.jit and CuPy by hand.

python ci/bench/function.py [--device cuda] [--threads N] [--rounds N] [--elements N] [--json PATH]

A copy in the same run shows which part of the memory bandwidth the long chain reaches.
"""

from __future__ import annotations

import os
from typing import Any

import peers

parser = peers.options(__doc__, rounds=20, threads=os.cpu_count())
parser.add_argument("--elements", type=int, help="of the long chain (1e8; 1e7 on a CPU)")
args = peers.parse_args(parser)
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads would spin on others' cores

import numpy as np

import gpugrad as gg

ON_GPU = gg.device().kind == "cuda"
ELEMENTS = args.elements or (10_000 if args.small else 100_000_000 if ON_GPU else 10_000_000)
WAIT = gg.cuda.synchronize if ON_GPU else None
RNG = np.random.default_rng(0)


def deep() -> dict[str, Any]:
    """Value and gradient of ``tanh(y * x)`` 50 times over on 8 floats."""
    data = RNG.standard_normal(8).astype(np.float32)
    x = gg.asarray(data)

    def chain(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(50):
                y = gg.tanh(y * x)
            z = gg.sum(y)
        return z, tape.gradient(z, x)

    traced = gg.function(chain)
    runs = {"gpugrad": lambda: traced(x), "gpugrad, eager": lambda: chain(x)}
    if peers.installed("tensorflow") and not ON_GPU:
        import tensorflow as tf

        @tf.function
        def with_tf(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x
                for _ in range(50):
                    y = tf.tanh(y * x)
                z = tf.reduce_sum(y)
            return z, tape.gradient(z, x)

        tx = tf.constant(data)
        runs["tf.function"] = lambda: with_tf(tx)
    return runs


DATA = RNG.standard_normal(ELEMENTS, np.float32)


def ten(lib: Any, x: Any) -> Any:
    """Ten elementwise ops, and a sum."""
    y = lib.tanh(lib.sin(x) * 1.5) + x
    y = lib.cos(lib.exp(-(y * y)) * 0.5) - x
    return lib.sum(lib.tanh(y))


def gpugrad() -> dict[str, Any]:
    def ours(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            z = ten(gg, x)
        return z, tape.gradient(z, x)

    x, traced = gg.asarray(DATA), gg.function(ours)
    return {"gpugrad": lambda: traced(x), "gpugrad, eager": lambda: ours(x)}


def copying() -> dict[str, Any]:
    return peers.copy_of(ON_GPU, DATA)


def torch() -> dict[str, Any]:
    import torch as t

    t.set_num_threads(args.threads)
    x = t.from_numpy(DATA).to("cuda" if ON_GPU else "cpu").requires_grad_()

    def both(f):
        def run():
            z = f(x)
            return z, t.autograd.grad(z, x)

        return run

    eager = lambda x: ten(t, x)  # noqa: E731
    runs = {"torch, eager": both(eager)}
    if ON_GPU and peers.torch_compiles(ON_GPU):
        runs["torch.compile"] = both(peers.torch_compile(eager))
    return runs


def jax() -> dict[str, Any]:
    import jax as j

    x, both = j.numpy.asarray(DATA), j.jit(j.value_and_grad(lambda x: ten(j.numpy, x)))
    return {"jax.jit": lambda: j.block_until_ready(both(x))}


def long() -> dict[str, Any]:
    """Value and gradient of ten elementwise ops on many floats."""
    own = [gpugrad, copying, *([by_hand] if ON_GPU else [])]
    return peers.run_makers(peers.with_peers(own, torch, jax, ON_GPU))


def by_hand() -> dict[str, Any]:
    """The long chain as a CuPy user would write it: a kernel for values and slopes, and a sum."""
    name, cupy = peers.by_hand_in(ON_GPU)
    x = cupy.asarray(DATA)
    kernel = cupy.ElementwiseKernel(
        "float32 x", "float32 value, float32 slope",
        """
        float t = tanhf(sinf(x) * 1.5f), y = t + x, dy = (1 - t * t) * 1.5f * cosf(x) + 1;
        float e = expf(-y * y), s, c;
        sincosf(e * 0.5f, &s, &c);
        value = tanhf(c - x);
        slope = (1 - value * value) * (s * e * y * dy - 1);
        """,
        "value_and_slope",
    )  # fmt: skip

    def run() -> Any:
        value, slope = kernel(x)
        return value.sum(), slope

    return {name: run}


if __name__ == "__main__":
    print(f"{gg.device()}, {args.threads} thread(s)")
    good = peers.table(
        "tanh(y * x) 50 times on 8 floats, value and gradient",
        peers.race(peers.select(deep(), args.only), args.rounds, inner=10, wait=WAIT),
        None if ON_GPU else {"gpugrad, eager": 0.5, "tf.function": 1.0},
    )
    raced = peers.race(
        peers.select(long(), args.only),
        max(args.rounds // 4, 3),
        inner=5 if ON_GPU else 1,
        wait=WAIT,
    )
    moved = ELEMENTS * 8 / 1e9  # by a copy, and by one kernel that reads x and writes the gradient
    good &= peers.table(
        f"ten elementwise ops on {ELEMENTS:,} floats, value and gradient",
        raced,
        None if ON_GPU else {"torch, eager": 0.3, "jax.jit": 1.1},
        work=(moved, "GB"),
        limit=peers.speed_of_copy(raced, moved),
        part=0.9 if ON_GPU else None,
    )
    raise SystemExit(peers.status(good))
