"""Attention, forward and backward, against torch, jax and formulas that store the scores.

python ci/bench/attention.py [--device cuda] [--rounds N] [--lengths N [N ...]]

The table shows the medians of interleaved rounds, and floating-point operations per second: 4 m n k
per head forward, 2.5 times that backward, half of both if causal. On a CPU lengths are small.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

import peers

parser = peers.options(__doc__, rounds=15, threads=1)
parser.add_argument("--lengths", type=int, nargs="+", help="of queries and keys")
parser.add_argument("--heads", type=int, help="of an example (as in a model of width 2048)")
parser.add_argument("--tokens", type=int, help="of all examples (16384; 256 on a CPU)")
args = peers.parse_args(parser)

import numpy as np

import gpugrad as gg

ON_GPU = gg.device().kind == "cuda"
BIG = ON_GPU and not args.small
LENGTHS = args.lengths or ([1024, 2048, 4096, 8192] if BIG else [128, 256])
TOKENS = args.tokens or (16384 if BIG else 256)
DTYPE = "bfloat16" if ON_GPU else "float32"
REACH = {"torch, its choice": 1 / 0.9} if ON_GPU else None
HEADS = {k: args.heads or (2048 if BIG else 256) // k for k in (64, 128)}
"""Heads by head size, as in a model of width 2048 (256 on a CPU)."""

LONGEST = 4096
"""The most queries for which contestants store the scores on a GPU."""

Function = Callable[[], Any]


def gpugrad(arrays: list[Any], g: Any, causal: bool) -> dict[str, tuple[Function, Function]]:
    variables = [gg.Variable(gg.asarray(a, dtype=DTYPE)) for a in arrays]
    upstream = gg.asarray(g, dtype=DTYPE)

    def forward() -> Any:
        return gg.nn.scaled_dot_product_attention(*variables, is_causal=causal)

    def formula() -> Any:
        scores = gg.matmul(variables[0], gg.matrix_transpose(variables[1]))
        scores = scores * float(arrays[0].shape[-1]) ** -0.5
        p = gg.nn.masked_softmax(scores, is_causal=causal)
        return gg.matmul(p, variables[2])

    def both(run: Function) -> Function:
        def step() -> Any:
            with gg.GradientTape() as tape:
                y = run()
            return [y, *tape.gradient(y, variables, output_gradients=upstream)]

        return step

    runs = {"gpugrad": (forward, both(forward))}
    if ON_GPU and arrays[0].shape[-2] <= LONGEST:
        runs["formula"] = (formula, both(formula))
    return runs


def torch(arrays: list[Any], g: Any, causal: bool) -> dict[str, tuple[Function, Function]]:
    import torch as t
    from torch.nn.attention import SDPBackend, sdpa_kernel

    device = "cuda" if ON_GPU else "cpu"
    leaves = [t.from_numpy(a).to(device, getattr(t, DTYPE)).requires_grad_() for a in arrays]
    upstream = t.from_numpy(g).to(device, getattr(t, DTYPE))
    backends = {"torch, its choice": None}
    if ON_GPU:
        backends |= {
            "torch, flash": SDPBackend.FLASH_ATTENTION, "torch, cuDNN": SDPBackend.CUDNN_ATTENTION,
        }  # fmt: skip

    eager = functools.partial(t.nn.functional.scaled_dot_product_attention, is_causal=causal)

    def by(backend: Any, run: Callable[..., Any] = eager) -> tuple[Function, Function]:
        within = contextlib.nullcontext if backend is None else lambda: sdpa_kernel(backend)

        def forward() -> Any:
            with t.no_grad(), within():
                return run(*leaves)

        def both() -> Any:
            with within():
                y = run(*leaves)
            return [y, *t.autograd.grad(y, leaves, upstream)]

        return forward, both

    runs = {name: by(backend) for name, backend in backends.items()}
    if ON_GPU and peers.torch_compiles(ON_GPU):
        runs["torch.compile"] = by(None, peers.torch_compile(eager))
    return runs


def jax(arrays: list[Any], g: Any, causal: bool) -> dict[str, tuple[Function, Function]]:
    import jax as j

    put = lambda a: j.numpy.asarray(a.swapaxes(1, 2), DTYPE)  # noqa: E731  # jax's heads come after the tokens
    leaves, upstream = [put(a) for a in arrays], put(g)

    @j.jit
    def run(q: Any, k: Any, v: Any) -> Any:
        how = "cudnn" if ON_GPU else "xla"
        return j.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=how)

    @j.jit
    def both(arrays: Any, g: Any) -> Any:
        y, pull = j.vjp(run, *arrays)
        return [y, *pull(g)]

    return {
        "jax.jit": (
            lambda: j.block_until_ready(run(*leaves)),
            lambda: j.block_until_ready(both(leaves, upstream)),
        )
    }


def by_hand(arrays: list[Any], g: Any, causal: bool) -> dict[str, tuple[Function, Function]]:
    """The formula as a user of the array library would write it, in float16 on CuPy."""
    name, lib = peers.by_hand_in(ON_GPU)
    n, scale = arrays[0].shape[-2], arrays[0].shape[-1] ** -0.5
    if ON_GPU and n > LONGEST:
        return {}
    q, k, v, g = (lib.asarray(a, "float16" if ON_GPU else "float32") for a in (*arrays, g))
    hidden = lib.triu(lib.full((n, n), -lib.inf, q.dtype), 1) if causal else None

    def weights() -> Any:
        scores = lib.matmul(q, k.swapaxes(-1, -2)) * q.dtype.type(scale)
        if hidden is not None:
            scores += hidden
        e = lib.exp(scores - scores.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def both() -> Any:
        p = weights()
        gp = lib.matmul(g, v.swapaxes(-1, -2))
        gs = p * (gp - (gp * p).sum(-1, keepdims=True)) * q.dtype.type(scale)
        gq, gk = lib.matmul(gs, k), lib.matmul(gs.swapaxes(-1, -2), q)
        return [lib.matmul(p, v), gq, gk, lib.matmul(p.swapaxes(-1, -2), g)]

    return {name: (lambda: lib.matmul(weights(), v), both)}


def _results(runs: dict[str, tuple[Function, Function]]) -> dict[str, Function]:
    """Functions that return the result and the gradients, in our layout."""
    runs = {who: both for who, (_, both) in runs.items()}
    if theirs := runs.get("jax.jit"):
        runs["jax.jit"] = lambda: [a.swapaxes(1, 2) for a in theirs()]
    return runs


def main() -> int:
    """Print the table."""
    good = True
    makers = peers.with_peers([gpugrad, by_hand], torch, jax, ON_GPU)
    rng = np.random.default_rng(0)
    for k, heads in HEADS.items():
        for n in LENGTHS:
            shape = (max(TOKENS // n, 1), heads, n, k)
            *arrays, g = (rng.standard_normal(shape, np.float32) for _ in range(4))
            for causal in (False, True):
                runs = peers.select(peers.run_makers(makers, arrays, g, causal), args.only)
                if n == LENGTHS[0]:  # comparing the longest would take longer than the bench
                    rtol = 3e-2 if ON_GPU else 1e-4
                    peers.agree(_results(runs), rtol, atol=rtol)
                work = 4.0 * n * n * k * heads * shape[0] * (0.5 if causal else 1)
                for what, at, times in (("forward", 0, 1.0), ("forward and backward", 1, 3.5)):
                    contestants = {name: both[at] for name, both in runs.items()}
                    wait = gg.cuda.synchronize if ON_GPU else None
                    medians = peers.race(contestants, args.rounds, wait=wait)
                    title = f"attention, {what}, {shape}, {DTYPE}{', causal' * causal}"
                    good &= peers.table(title, medians, REACH, work=(work * times / 1e12, "TFLOP"))
    return peers.status(good)


if __name__ == "__main__":
    sys.exit(main())
