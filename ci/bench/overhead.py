"""What gpugrad costs over NumPy, an op; and a chain of tiny ops beside torch, autograd, TensorFlow.

    python ci/bench/overhead.py            print both tables
    python ci/bench/overhead.py --check    fail if an op is over budget (what ci/check runs)

The budget is 1.0 us with no tape and 1.5 us recording on the machine that the design was
measured on. Machines differ, so it is scaled by the time of a fixed piece of Python.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time

os.environ.setdefault("GPUGRAD_DEVICE", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from peers import installed, race, table

import gpugrad as gg

IDLE, RECORDING = 1000.0, 1500.0  # nanoseconds, on the reference machine
REFERENCE = 185.0
"""Nanoseconds of `yardstick` there: not measured on it, but worked out from what one program
took there and here (the design's prototype, ten figures), so good to about 20 %."""


class Box:
    """What `yardstick` makes."""

    __slots__ = ("a", "b")


def yardstick() -> float:
    """Nanoseconds of a fixed piece of interpreter work: calls, attributes, tuples, dicts."""

    def make(a: int, b: int) -> Box:
        box = object.__new__(Box)
        box.a, box.b = a, b
        return box

    found: dict[int, tuple[int, int]] = {}
    start = time.perf_counter()
    for i in range(1000):
        box = make(i, i)
        found[i & 15] = (box.a, box.b)
    return (time.perf_counter() - start) * 1e6


def cases() -> dict[str, tuple[object, object]]:
    """Name: (gpugrad's call, NumPy's call on the same values)."""
    a, m = np.linspace(0.1, 1, 8, dtype=np.float32), np.ones((4, 4), np.float32)
    x, y = gg.asarray(a), gg.asarray(m)
    add_reduce = np.add.reduce
    return {
        "tanh(x)": (lambda: gg.tanh(x), lambda: np.tanh(a)),
        "exp(x)": (lambda: gg.exp(x), lambda: np.exp(a)),
        "x + x": (lambda: x + x, lambda: a + a),
        "x * x": (lambda: x * x, lambda: a * a),
        "x * 2.0": (lambda: x * 2.0, lambda: a * 2.0),
        "x / x": (lambda: x / x, lambda: a / a),
        "maximum(x, 0.5)": (lambda: gg.maximum(x, 0.5), lambda: np.maximum(a, 0.5)),
        "matmul(m, m)": (lambda: gg.matmul(y, y), lambda: np.matmul(m, m)),
        "sum(m, axis=0)": (lambda: gg.sum(y, axis=0), lambda: add_reduce(m, axis=0)),
        "reshape(m, (16,))": (lambda: gg.reshape(y, (16,)), lambda: m.reshape((16,))),
    }


def over_numpy(
    pairs: dict[str, tuple], rounds: int, yard: list[float]
) -> dict[str, tuple[float, float]]:
    """Name: (NumPy's nanoseconds, gpugrad's nanoseconds over it), medians of rounds.

    `yard` is added to in each round, so that it sees the machine as the ops saw it.
    """
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in pairs}
    loop = range(500)
    for _ in range(rounds):
        yard += [yardstick() for _ in range(5)]
        for name, (ours, numpy) in pairs.items():
            for call, times in zip((numpy, ours), found[name], strict=True):
                start = time.perf_counter()
                for _ in loop:
                    call()
                times.append((time.perf_counter() - start) / len(loop) * 1e9)
    medians = {name: tuple(map(statistics.median, pair)) for name, pair in found.items()}
    return {name: (numpy, ours - numpy) for name, (numpy, ours) in medians.items()}


def recording(
    pairs: dict[str, tuple], rounds: int, yard: list[float]
) -> dict[str, tuple[float, float]]:
    """`over_numpy` while a tape watches the inputs; the log is emptied after each op."""
    tape = gg.GradientTape(persistent=True)
    watched = [c.cell_contents for ours, _ in pairs.values() for c in ours.__closure__]
    with tape:
        tape.watch([t for t in watched if isinstance(t, gg.Tensor)])
        found = [over_numpy(pairs, 1, yard) for _ in range(rounds) if not tape.log.clear()]
    return {
        name: tuple(statistics.median(r[name][k] for r in found) for k in (0, 1)) for name in pairs
    }


def chain_contestants(n: int = 50) -> dict[str, object]:
    """Forward and backward of y = tanh(y * x), `n` times, on 8 float32."""
    a = np.linspace(-1, 1, 8).astype(np.float32)
    x = gg.asarray(a)

    def ours():
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(n):
                y = gg.tanh(y * x)
        return tape.gradient(y, x)

    found = {"gpugrad": ours}
    if installed("torch"):
        import torch

        torch.set_num_threads(1)

        def with_torch():
            t = torch.tensor(a, requires_grad=True)
            y = t
            for _ in range(n):
                y = torch.tanh(y * t)
            y.sum().backward()
            return t.grad

        found["torch"] = with_torch
    if installed("autograd"):
        import autograd
        import autograd.numpy as anp

        def f(t):
            y = t
            for _ in range(n):
                y = anp.tanh(y * t)
            return anp.sum(y)

        g = autograd.grad(f)
        found["autograd"] = lambda: g(a)
    if installed("tensorflow"):
        import tensorflow as tf

        t = tf.constant(a)

        def with_tf():
            with tf.GradientTape() as tape:
                tape.watch(t)
                y = t
                for _ in range(n):
                    y = tf.tanh(y * t)
            return tape.gradient(y, t)

        found["tensorflow"] = with_tf
    return found


def main() -> int:
    """Print the tables; with --check, return 1 if an op is over budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only the budget; fail if missed")
    parser.add_argument("--rounds", type=int, default=40, help="rounds to take medians of (40)")
    args = parser.parse_args()

    gc.disable()
    pairs, yard = cases(), []
    idle, taped = over_numpy(pairs, args.rounds, yard), recording(pairs, args.rounds, yard)
    scale = statistics.median(yard) / REFERENCE
    print(f"Nanoseconds an op over NumPy (this machine takes {scale:.2f} of the reference's time)")
    print(f"  {'op':20s} {'NumPy':>8s} {'no tape':>9s} {'recording':>10s}")
    for name in pairs:
        print(f"  {name:20s} {idle[name][0]:8.0f} {idle[name][1]:9.0f} {taped[name][1]:10.0f}")
    print(f"  {'budget, scaled':20s} {'':8s} {IDLE * scale:9.0f} {RECORDING * scale:10.0f}")
    over = [n for n in pairs if idle[n][1] > IDLE * scale or taped[n][1] > RECORDING * scale]
    gc.enable()
    if args.check:
        print(f"over budget: {', '.join(over)}" if over else "within budget")
        return 1 if over else 0
    reach = {"torch": 0.75, "autograd": 0.4, "tensorflow": 0.12}
    title = "y = tanh(y * x), 50 times, on 8 float32: forward + backward"
    table(title, race(chain_contestants(), rounds=args.rounds, inner=5), reach)
    return 0


if __name__ == "__main__":
    sys.exit(main())
