"""gpugrad.function on the CPU, beside eager calls, torch, TensorFlow's function and jax.jit.

python ci/bench/function.py [--threads N] [--rounds N] [--elements N]
"""

from __future__ import annotations

import argparse
import os

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of all (all)")
parser.add_argument("--rounds", type=int, default=20, help="rounds to take medians of (20)")
parser.add_argument("--elements", type=int, default=10_000_000, help="of the long chain (1e7)")
args = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(args.threads)  # before NumPy and torch are imported
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # see mlp.py
os.environ.setdefault("GPUGRAD_DEVICE", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from peers import installed, race, table

import gpugrad as gg

RNG = np.random.default_rng(0)


def deep() -> dict[str, object]:
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
    found = {"gpugrad": lambda: traced(x), "gpugrad, eager": lambda: chain(x)}
    if installed("tensorflow"):
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
        found["tf.function"] = lambda: with_tf(tx)
    return found


def long() -> dict[str, object]:
    """Value and gradient of ten elementwise ops on many floats."""
    data = RNG.standard_normal(args.elements).astype(np.float32)

    def ten(lib, x):
        y = lib.tanh(lib.sin(x) * 1.5) + x
        y = lib.cos(lib.exp(-(y * y)) * 0.5) - x
        return lib.sum(lib.tanh(y))

    def ours(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            z = ten(gg, x)
        return z, tape.gradient(z, x)

    x, traced = gg.asarray(data), gg.function(ours)
    found = {"gpugrad": lambda: traced(x), "gpugrad, eager": lambda: ours(x)}
    if installed("torch"):
        import torch

        torch.set_num_threads(args.threads)
        tx = torch.from_numpy(data).requires_grad_()
        found["torch, eager"] = lambda: torch.autograd.grad(ten(torch, tx), tx)
    if installed("jax"):
        import jax

        jx = jax.numpy.asarray(data)
        both = jax.jit(jax.value_and_grad(lambda x: ten(jax.numpy, x)))
        found["jax.jit"] = lambda: jax.block_until_ready(both(jx))
    return found


if __name__ == "__main__":
    print(f"{args.threads} thread(s)")
    good = table(
        "tanh(y * x) 50 times on 8 floats, value and gradient",
        race(deep(), args.rounds, inner=10),
        {"gpugrad, eager": 0.5, "tf.function": 1.0},
    )
    good &= table(
        f"ten elementwise ops on {args.elements:,} floats, value and gradient",
        race(long(), max(args.rounds // 4, 3)),
        {"torch, eager": 0.3, "jax.jit": 1.1},
    )
    raise SystemExit(not good)
