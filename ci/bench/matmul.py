"""Matrix products, forward and with both gradients, against torch, jax and the array library.

python ci/bench/matmul.py [--device cuda] [--rounds N] [--json PATH]

On a GPU the factors are 8192 x 8192 and 64 pairs of 1024 x 1024, in bfloat16, in float32 rounded to
TensorFloat-32 and in float32; on a CPU 512 x 512 and 8 pairs of 128 x 128 in float32. CuPy uses
float16 in place of bfloat16, which it cannot multiply in batches, and rounds as CUPY_TF32 says.
"""

from __future__ import annotations

import sys
from typing import Any

import peers

args = peers.parse_args(peers.options(__doc__, rounds=20, threads=1))

import numpy as np

import gpugrad as gg

ON_GPU = gg.device().kind == "cuda"
SMALL = args.small or not ON_GPU
SHAPES = [(512, 512), (8, 128, 128)] if SMALL else [(8192, 8192), (64, 1024, 1024)]
REACH = {"torch": 1 / 0.97} if ON_GPU else None
CASES = {"bfloat16": "highest", "TF32": "high", "float32": "highest"}
"""The precision of float32 products, by the name of the case."""
JAX_CASES = {"bfloat16": "default", "TF32": "tensorfloat32", "float32": "float32"}


def contestants(shape: tuple[int, ...], case: str) -> dict[str, tuple[Any, Any]]:
    """By name: the product, and the product with its gradients, which are products too."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for _ in range(3)]
    dtype = "bfloat16" if case == "bfloat16" else "float32"
    gg.set_matmul_precision(CASES[case])
    a, b, upstream = (gg.asarray(x, dtype=dtype) for x in arrays)

    def ours() -> Any:
        with gg.GradientTape() as tape:
            tape.watch([a, b])
            y = gg.matmul(a, b)
        return [y, *tape.gradient(y, [a, b], output_gradients=upstream)]

    runs = {"gpugrad": (lambda: [gg.matmul(a, b)], ours)}
    if peers.installed("torch"):
        import torch

        if args.threads:
            torch.set_num_threads(args.threads)
        torch.set_float32_matmul_precision(CASES[case])
        device = "cuda" if ON_GPU else "cpu"
        ta, tb, tg = (torch.from_numpy(x).to(device, getattr(torch, dtype)) for x in arrays)
        leaves = [ta.clone().requires_grad_(), tb.clone().requires_grad_()]

        def by(product: Any) -> tuple[Any, Any]:
            def both() -> Any:
                y = product(*leaves)
                return [y, *torch.autograd.grad(y, leaves, tg)]

            return lambda: [product(ta, tb)], both

        runs["torch"] = by(torch.matmul)
        if ON_GPU and peers.torch_compiles(ON_GPU):
            runs["torch.compile"] = by(peers.torch_compile(lambda a, b: torch.matmul(a, b)))
    if peers.jax_runs(ON_GPU):
        with peers.record_failure("jax.jit"):
            runs["jax.jit"] = with_jax(arrays, dtype, JAX_CASES[case])
    name, lib = peers.by_hand_in(ON_GPU)
    la, lb, lg = (lib.asarray(a, "float16" if case == "bfloat16" else "float32") for a in arrays)
    runs[name] = (
        lambda: [lib.matmul(la, lb)],
        lambda: [la @ lb, lg @ lb.swapaxes(-1, -2), la.swapaxes(-1, -2) @ lg],
    )
    return runs


def with_jax(arrays: Any, dtype: str, precision: str) -> tuple[Any, Any]:
    """jax's entry for `contestants`."""
    import jax

    a, b, g = (jax.numpy.asarray(x, dtype) for x in arrays)

    def product(a: Any, b: Any) -> Any:
        return jax.numpy.matmul(a, b, precision=precision)

    @jax.jit
    def both(a: Any, b: Any, g: Any) -> Any:
        y, pull = jax.vjp(product, a, b)
        return [y, *pull(g)]

    run = jax.jit(product)
    return (
        lambda: [jax.block_until_ready(run(a, b))],
        lambda: jax.block_until_ready(both(a, b, g)),
    )


def main() -> int:
    """Print the tables."""
    good = True
    for shape in SHAPES:
        for case in CASES if ON_GPU else ["float32"]:
            runs = peers.select(contestants(shape, case), args.only)
            rtol = 1e-4 if case == "float32" else 2e-2
            peers.agree({k: f for k, (_, f) in runs.items()}, rtol, atol=rtol * shape[-1] ** 0.5)
            flops = 2 * np.prod(shape, dtype=float) * shape[-1]
            for at, (what, products) in enumerate((("product", 1), ("and both gradients", 3))):
                raced = peers.race(
                    {name: both[at] for name, both in runs.items()}, args.rounds,
                    inner=5, wait=gg.cuda.synchronize if ON_GPU else None,
                )  # fmt: skip
                title = f"matmul of {shape}, {case}, {what}, on {gg.device()}"
                good &= peers.table(title, raced, REACH, work=(products * flops / 1e12, "TFLOP"))
    return peers.status(good)


if __name__ == "__main__":
    sys.exit(main())
