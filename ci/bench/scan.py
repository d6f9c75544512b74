"""Scans with one kind of step in the body, and their derivatives, against jax.lax.scan on the CPU.

python ci/bench/scan.py [--threads N] [--rounds N] [--ops roll,take ...]
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from peers import jax_runs, options, race, status, table

parser = options(__doc__, rounds=15, threads=1)
parser.add_argument("--ops", type=lambda text: text.split(","), help="some of them, with commas")
args = parser.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(args.threads)  # before NumPy and jax are imported
os.environ.setdefault("GPUGRAD_DEVICE", "cpu")
os.environ.setdefault("XLA_FLAGS", f"--xla_cpu_multi_thread_eigen={str(args.threads > 1).lower()}")

import numpy as np

import gpugrad as gg

STEPS, WIDTH = 200, 8
MOST, TIMES = 2e-6, 2.0  # a step takes at most so long, or so many times jax's

RNG = np.random.default_rng(0)
X = RNG.standard_normal((STEPS, WIDTH), np.float32)
START = RNG.standard_normal(WIDTH, np.float32)
W = RNG.standard_normal((WIDTH, WIDTH), np.float32) / 4
TABLE = RNG.standard_normal((20, WIDTH), np.float32)
ROWS, ORDER = RNG.integers(0, 20, STEPS), RNG.permutation(WIDTH)


SIMULATED = 300
REACH = {"gradient": 3.0, "Jacobian": 10.0, "forward Jacobian": 10.0, "Hessian": 10.0}
"""Derivatives of a simulation, and how many times jax's they take at most."""

PARAMETERS = np.array([1.0, 0.1, 0.5, 1.0, 2.0, 0.3, 0.4], np.float32)


def bodies(
    lib: Any, of: Any, softmax: Any, add_at: Any, write_at: Any, control: Any
) -> dict[str, Any]:
    """The functions of (carry, x) by the op that they test; `of` makes a library's array."""
    w, table_, order = of(W), of(TABLE), of(ORDER)
    steps = {
        "multiply": lambda c, x: c * 0.9,
        "softmax": lambda c, x: softmax(c),
        "take": lambda c, x: lib.take(c, order) * 0.9,
        "index by data": lambda c, k: c * 0.9 + table_[k],
        "roll": lambda c, x: lib.roll(c, 1) * 0.9,
        "repeat": lambda c, x: lib.repeat(c[:4], 2) * 0.9,
        "write": lambda c, x: write_at(c * 0.9, x[1]),
        "scatter": lambda c, x: add_at(c * 0.9, order, x),
        "cumsum": lambda c, x: lib.cumsum(c) * 0.1,
        "pad": lambda c, x: lib.pad(c[1:], (0, 1)) * 0.9,
        "split": lambda c, x: lib.concatenate(lib.split(c, 2)[::-1]) * 0.9,
        "filter": lambda c, x: lib.concatenate([x[:1], c[:-1]]),
        "sort": lambda c, x: lib.sort(c) * 0.9,
        "argmax": lambda c, x: c * 0.9 + c[lib.argmax(c)] * 0.01,
        "where": lambda c, x: lib.where(x > 0, c, -c) * 0.9,
        "einsum": lambda c, x: lib.einsum("i,ij->j", c, w),
        "vector @ matrix": lambda c, x: lib.tanh(c @ w),
        "matrix @ vector": lambda c, x: lib.tanh(w @ c),
        "vector @ vector": lambda c, x: c * 0.9 + (c @ x) * 0.01,
        "scan": lambda c, x: control.scan(lambda c, v: (c * 0.9 + v, None), c, x[:3])[0],
        "cond": lambda c, x: control.cond(x[0] > 0, lambda c: c * 0.9, lambda c: -c, c),
        "while": lambda c, x: control.while_loop(lambda c: c @ c > 4, lambda c: c * 0.7, c),
    }
    return {
        name: (lambda c, x, step=step: (step(c, x) + (0.1 if x.ndim == 0 else x), lib.sum(c)))
        for name, step in steps.items()
    }


def simulation(lib: Any, scan: Any) -> Any:
    """A function of parameters and a first state: the last state of an oscillator."""

    def last(p: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            x, v = state[:2], state[2:]
            a = -p[0] * x - p[1] * v + p[2] * lib.sin(x)
            return lib.concatenate([x + 0.01 * v, v + 0.01 * a]), None

        return scan(step, p[3:], None, length=SIMULATED)[0]

    return last


def derivatives(simulated: Any, lib: Any, transforms: Any, jacobians: Any) -> dict[str, Any]:
    """The functions of `REACH`."""

    def loss(p: Any) -> Any:
        return lib.sum(simulated(p) ** 2)

    reverse, forward = (jacobian(simulated) for jacobian in jacobians)
    functions = transforms.value_and_grad(loss), reverse, forward, transforms.hessian(loss)
    return dict(zip(REACH, functions, strict=True))


def losses(scan: Any, lib: Any, body: Any, xs: Any) -> Any:
    """A function of the first carry: the sum of the last one."""

    def loss(c: Any) -> Any:
        last, sums = scan(body, c, xs)
        return lib.sum(last) + lib.sum(sums) * 0.01

    return loss


def ours() -> dict[str, Any]:
    """The calls of `gg.function` by op: a loss, and its gradient."""

    def write_at(c: Any, value: Any) -> Any:
        c[0] = value
        return c

    def add_at(c: Any, at: Any, x: Any) -> Any:
        return gg.index_add(c, x, index=at)

    start, calls = gg.asarray(START), dict[str, Any]()
    forward = functools.partial(gg.jacobian, mode="forward")
    p, of = gg.asarray(PARAMETERS), simulation(gg, gg.scan)
    for name, f in derivatives(of, gg, gg, (gg.jacobian, forward)).items():
        calls[name] = [functools.partial(gg.function(f), p)]
    for name, body in bodies(gg, gg.asarray, gg.softmax, add_at, write_at, gg).items():
        xs = gg.asarray(ROWS if name == "index by data" else X)
        loss = losses(gg.scan, gg, body, xs)
        both = gg.function(loss), gg.function(gg.grad(loss))
        calls[name] = [lambda f=f: f(start) for f in both[: 1 + (name != "while")]]
    return calls


def theirs() -> dict[str, Any]:
    """The same by jax.jit and jax.lax.scan."""
    import jax
    from jax import numpy as jnp

    start, calls = jnp.asarray(START), dict[str, Any]()
    writes = {
        "add_at": lambda c, at, x: c.at[at].add(x),
        "write_at": lambda c, value: c.at[0].set(value),
    }
    p, of = jnp.asarray(PARAMETERS), simulation(jnp, jax.lax.scan)
    every = derivatives(of, jnp, jax, (jax.jacrev, jax.jacfwd))
    for name, f in {name: jax.jit(f) for name, f in every.items()}.items():
        calls[name] = [lambda f=f: jax.block_until_ready(f(p))]
    for name, body in bodies(jnp, jnp.asarray, jax.nn.softmax, control=jax.lax, **writes).items():
        xs = jnp.asarray(ROWS if name == "index by data" else X)
        loss = losses(jax.lax.scan, jnp, body, xs)
        both = jax.jit(loss), jax.jit(jax.grad(loss))  # jax has no gradient of a while_loop
        both = both[: 1 + (name != "while")]
        calls[name] = [lambda f=f: jax.block_until_ready(f(start)) for f in both]
    return calls


def main() -> int:
    """Print a table for each op, and the steps that take too long."""
    every = {"gpugrad": ours()}
    if jax_runs(False):
        every["jax.lax.scan"] = theirs()
    slow = []
    for name in args.ops or every["gpugrad"]:
        for k, what in enumerate(("", ", gradient")[: len(every["gpugrad"][name])]):
            runs = {library: calls[name][k] for library, calls in every.items()}
            seconds = race(runs, args.rounds, inner=3)
            if name in REACH:
                reach = dict.fromkeys(list(every)[1:], REACH[name])
                reached = table(f"{name} of {SIMULATED} steps", seconds, reach)
                slow += [] if reached else [f"the {name}"]
                continue
            table(f"{name}{what}: {STEPS} steps", seconds)
            step = seconds["gpugrad"] / STEPS
            most = max(MOST * (k + 1), TIMES * seconds.get("jax.lax.scan", 0) / STEPS)
            slow += [f"{name}{what} {step * 1e6:.1f} us a step"] if step > most else []
    print("\nMISSED, too slow: " + ", ".join(slow) if slow else "\nnothing is too slow")
    return status(not slow)


if __name__ == "__main__":
    sys.exit(main())
