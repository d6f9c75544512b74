"""Softmax, norms and cross entropy over rows, forward and backward, against their peers.

python ci/bench/rows.py [--device cuda] [--rows N] [--rounds N] [NAME ...]

Peers, if installed: torch eager and compiled, jax.jit, and formulas as a user of CuPy would write
them (in float16 in place of bfloat16). All results must agree. The table shows the medians of
interleaved rounds, and the bandwidth of the unavoidable traffic (each input read once, each result
written once) as a part of the bandwidth of a copy of the same arrays in the same run. On a CPU the
arrays are smaller.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import peers

parser = peers.options(__doc__, rounds=15, threads=1)
parser.add_argument("names", nargs="*", metavar="NAME", help="of the workloads to run (all)")
parser.add_argument("--rows", type=int, help="of each array (4096; 128 on a CPU)")
parser.add_argument("--lengths", type=int, nargs="+", help="of a row")
args = peers.parse_args(parser)

import numpy as np

import gpugrad as gg

Function = Callable[[], Any]
ON_GPU = gg.device().kind == "cuda"
BIG = ON_GPU and not args.small
ROWS = args.rows or (4096 if BIG else 128)
LENGTHS = args.lengths or ([1024, 4096, 16384, 50304] if BIG else [1024, 4096])
DTYPES = ("float32", "bfloat16") if ON_GPU else ("float32",)
REACH, PART = ({"torch": 1.0}, 0.8) if ON_GPU else (None, None)

TRAFFIC = {"softmax": 5, "layer_norm": 5, "rms_norm": 5, "cross_entropy": 3}
"""Arrays that forward and backward together must read and write at least once."""


class Workload:
    """A function over rows, with its arrays on the host in float32."""

    def __init__(self, name: str, n: int, dtype: str) -> None:
        rng = np.random.default_rng(0)
        self.name, self.n, self.dtype = name, n, dtype
        self.x = rng.standard_normal((ROWS, n), np.float32)
        self.weights = [rng.standard_normal(n, np.float32) for _ in range(self.n_weights)]
        self.labels = rng.integers(0, n, ROWS)
        shape = () if name == "cross_entropy" else self.x.shape
        self.g = np.asarray(rng.standard_normal(shape, np.float32))

    @property
    def n_weights(self) -> int:
        return {"layer_norm": 2, "rms_norm": 1}.get(self.name, 0)

    @property
    def nbytes(self) -> int:
        return TRAFFIC[self.name] * self.x.size * (4 if self.dtype == "float32" else 2)


def gpugrad(w: Workload) -> dict[str, Function]:
    put = lambda a: gg.asarray(a, dtype=w.dtype)  # noqa: E731
    variables = [gg.Variable(put(a)) for a in (w.x, *w.weights)]
    g, labels = put(w.g), gg.asarray(w.labels)
    function = getattr(gg.nn, w.name)
    extra = [labels] if w.name == "cross_entropy" else []

    def step() -> Any:
        with gg.GradientTape() as tape:
            y = function(*variables, *extra)
        return [y, *tape.gradient(y, variables, output_gradients=g)]

    return {"gpugrad": step}


def torch(w: Workload) -> dict[str, Function]:
    import torch as t
    import torch.nn.functional as F

    device = "cuda" if ON_GPU else "cpu"
    put = lambda a: t.from_numpy(a).to(device, getattr(t, w.dtype))  # noqa: E731
    leaves = [put(a).requires_grad_() for a in (w.x, *w.weights)]
    g, labels = put(w.g), t.from_numpy(w.labels).to(device)
    calls = {
        "softmax": lambda x: F.softmax(x, -1),
        "layer_norm": lambda x, a, b: F.layer_norm(x, (w.n,), a, b),
        "rms_norm": lambda x, a: F.rms_norm(x, (w.n,), a),
        "cross_entropy": lambda x: F.cross_entropy(x, labels),
    }
    eager = calls[w.name]
    runs = {"torch": eager}
    if ON_GPU and peers.torch_compiles(ON_GPU):  # on a CPU compiling takes minutes
        runs["torch.compile"] = peers.torch_compile(eager)

    def both(f: Callable[..., Any]) -> Function:
        def step() -> Any:
            y = f(*leaves)
            return [y, *t.autograd.grad(y, leaves, g)]

        return step

    return {name: both(f) for name, f in runs.items()}


def jax(w: Workload) -> dict[str, Function]:
    import jax as j
    import jax.numpy as jnp

    arrays = [jnp.asarray(a, w.dtype) for a in (w.x, *w.weights)]
    g, labels = jnp.asarray(w.g, w.dtype), jnp.asarray(w.labels)

    def layer_norm(x: Any, a: Any, b: Any) -> Any:
        d = x.astype("float32")
        d = d - d.mean(-1, keepdims=True)
        return (d * j.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * a + b

    def rms_norm(x: Any, a: Any) -> Any:
        d = x.astype("float32")
        return (d * j.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * a

    def cross_entropy(x: Any) -> Any:
        log_p = j.nn.log_softmax(x.astype("float32"))
        return -jnp.take_along_axis(log_p, labels[:, None], 1).mean().astype(x.dtype)

    calls = {"softmax": j.nn.softmax, "layer_norm": layer_norm, "rms_norm": rms_norm,
             "cross_entropy": cross_entropy}  # fmt: skip

    @j.jit
    def step(arrays: Any, g: Any) -> Any:
        y, pull = j.vjp(calls[w.name], *arrays)
        return [y, *pull(g)]

    return {"jax.jit": lambda: j.block_until_ready(step(arrays, g))}


def by_hand(w: Workload) -> dict[str, Function]:
    """Each function and its gradients as a user of the array library would write them."""
    name, lib = peers.by_hand_in(ON_GPU)
    dtype = "float32" if w.dtype == "float32" else "float16"
    x, g, *weights = (lib.asarray(a, dtype) for a in (w.x, w.g, *w.weights))
    labels = lib.asarray(w.labels)
    mean = functools.partial(lib.mean, axis=-1, keepdims=True)
    index = lib.arange(ROWS)

    def softmax() -> Any:
        e = lib.exp(x - x.max(-1, keepdims=True))
        y = e / e.sum(-1, keepdims=True)
        return [y, y * (g - (y * g).sum(-1, keepdims=True))]

    def layer_norm() -> Any:
        a, b = weights
        d = x - mean(x)
        r = 1 / lib.sqrt(mean(d * d) + 1e-5)
        n, ga = d * r, g * a
        return [n * a + b, r * (ga - mean(ga) - n * mean(ga * n)), (g * n).sum(0), g.sum(0)]

    def rms_norm() -> Any:
        (a,) = weights
        r = 1 / lib.sqrt(mean(x * x) + 1e-6)
        n, ga = x * r, g * a
        return [n * a, r * (ga - n * mean(ga * n)), (g * n).sum(0)]

    def cross_entropy() -> Any:
        z = x - x.max(-1, keepdims=True)
        e = lib.exp(z)
        total = e.sum(-1, keepdims=True)
        loss = (lib.log(total[:, 0]) - z[index, labels]).mean()
        e /= total
        e[index, labels] -= 1
        return [loss, e * (g / ROWS)]

    steps = (softmax, layer_norm, rms_norm, cross_entropy)
    return {name: next(step for step in steps if step.__name__ == w.name)}


def copying(w: Workload) -> dict[str, Function]:
    """A copy of the rows in float32."""
    return peers.copy_of(ON_GPU, w.x)


def main() -> int:
    """Print the table."""
    if unknown := set(args.names) - set(TRAFFIC):
        parser.error(f"no workloads {sorted(unknown)}; there are {list(TRAFFIC)}")
    makers = peers.with_peers([gpugrad, copying, by_hand], torch, jax, ON_GPU)
    wait, good = gg.cuda.synchronize if ON_GPU else None, True
    for name in args.names or TRAFFIC:
        for dtype in DTYPES:
            for n in LENGTHS:
                w = Workload(name, n, dtype)
                runs = peers.select(peers.run_makers(makers, w), args.only)
                if n == LENGTHS[0]:  # comparing the longest would take longer than the bench
                    others = {who: run for who, run in runs.items() if who != "copy"}
                    rtol = 1e-4 if dtype == "float32" else 3e-2
                    peers.agree(others, rtol, atol=rtol * ROWS**0.5)  # weights have sums over rows
                medians = peers.race(runs, args.rounds, inner=10 if ON_GPU else 1, wait=wait)
                limit = peers.speed_of_copy(medians, 2 * w.x.nbytes / 1e9)
                title = f"{name} of {ROWS} rows of {n}, {dtype}, forward and backward"
                good &= peers.table(title, medians, REACH, (w.nbytes / 1e9, "GB"), limit, PART)
    return peers.status(good)


if __name__ == "__main__":
    sys.exit(main())
