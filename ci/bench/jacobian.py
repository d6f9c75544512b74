"""Jacobians and per-example gradients on the CPU, against a loop over rows and torch.func.

python ci/bench/jacobian.py [--threads N] [--rounds N] [--small] [--json PATH]
"""

from __future__ import annotations

import os

from peers import installed, jax_runs, options, parse_args, race, status, table

os.environ.setdefault("GPUGRAD_DEVICE", "cpu")
args = parse_args(options(__doc__, rounds=20, threads=1))

import numpy as np

import gpugrad as gg

RNG = np.random.default_rng(0)
W1 = RNG.standard_normal((256, 128)).astype(np.float32) / 11
W2 = RNG.standard_normal((256, 256)).astype(np.float32) / 16
X = RNG.standard_normal(128).astype(np.float32)
BATCH = RNG.standard_normal((64, 128)).astype(np.float32)


def jacobians() -> dict[str, object]:
    """The 256 x 128 Jacobian of two layers, in one backward pass and row by row."""
    w1, w2, x = gg.asarray(W1), gg.asarray(W2), gg.asarray(X)
    rows = gg.eye(256)

    def f(x):
        return gg.tanh(w2 @ gg.tanh(w1 @ x))

    def loop():
        with gg.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        return gg.stack([tape.gradient(y, x, output_gradients=rows[k]) for k in range(256)])

    jacobian = gg.jacobian(f)
    runs = {"gpugrad": lambda: jacobian(x), "gpugrad, row by row": loop}
    if installed("torch"):
        import torch

        torch.set_num_threads(args.threads)
        t1, t2, tx = (torch.from_numpy(a) for a in (W1, W2, X))
        reverse = torch.func.jacrev(lambda x: torch.tanh(t2 @ torch.tanh(t1 @ x)))
        runs["torch.func.jacrev"] = lambda: reverse(tx)
    return runs


POINTS = RNG.standard_normal((3200, 8)).astype(np.float32)
START = RNG.standard_normal(26).astype(np.float32) / 3


def tall() -> dict[str, object]:
    """The Jacobian of 3,200 residuals by 26 parameters of a small network, in forward mode."""

    def residuals(lib, points):
        return lambda p: lib.tanh(points @ p[:24].reshape(8, 3)) @ p[23:] - p[0]

    points, start = gg.asarray(POINTS), gg.asarray(START)
    f = residuals(gg, points)
    forward, rows = gg.jacobian(f, mode="forward"), gg.jacobian(f)
    runs = {"gpugrad": lambda: forward(start), "gpugrad, mode=reverse": lambda: rows(start)}
    traced = gg.function(forward)
    runs["gg.function"] = lambda: traced(start)
    if installed("torch"):
        import torch

        columns = torch.func.jacfwd(residuals(torch, torch.from_numpy(POINTS)))
        begin = torch.from_numpy(START)
        runs["torch.func.jacfwd"] = lambda: columns(begin)
    if jax_runs(False):
        import jax
        from jax import numpy as jnp

        compiled = jax.jit(jax.jacfwd(residuals(jnp, jnp.asarray(POINTS))))
        first = jnp.asarray(START)
        runs["jax.jit(jax.jacfwd)"] = lambda: jax.block_until_ready(compiled(first))
    return runs


def per_example(width: int) -> dict[str, object]:
    """Gradients of two layers' weights for each of 64 examples: vmap of grad, and a loop."""
    draw = np.random.default_rng(width).standard_normal
    first, second = draw((width, 128)) / 11, draw((width, width)) / np.sqrt(width)
    arrays = [a.astype(np.float32) for a in (first, second)] + [BATCH]
    w1, w2, batch = map(gg.asarray, arrays)

    def loss(weights, x):
        return gg.sum(gg.tanh(weights[1] @ gg.tanh(weights[0] @ x)) ** 2)

    one, weights = gg.grad(loss), [w1, w2]
    each = gg.vmap(one, in_axes=(None, 0))
    runs = {
        "gpugrad": lambda: each(weights, batch),
        "gpugrad, example by example": lambda: [one(weights, x) for x in batch],
    }
    if installed("torch"):
        import torch

        t1, t2, tb = map(torch.from_numpy, arrays)

        def torch_loss(w, x):
            return (torch.tanh(w[1] @ torch.tanh(w[0] @ x)) ** 2).sum()

        mapped = torch.func.vmap(torch.func.grad(torch_loss), in_dims=(None, 0))
        runs["torch.func.vmap(grad)"] = lambda: mapped([t1, t2], tb)
    return runs


if __name__ == "__main__":
    good = table(
        f"Jacobian of 256 outputs by 128 inputs, {args.threads} thread(s)",
        race(jacobians(), args.rounds),
        {"gpugrad, row by row": 0.2},
    )
    table("Jacobian of 3,200 residuals by 26 parameters", race(tall(), args.rounds))
    for width in (1, 10) if args.small else (1, 10, 100, 256, 1000):
        title = f"gradients of 64 examples by the weights of two layers, {width} wide"
        good &= table(title, race(per_example(width), args.rounds), {"torch.func.vmap(grad)": 1.0})
    raise SystemExit(status(good))
