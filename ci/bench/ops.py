"""Single ops, eager, forward and gradient on a CPU, beside torch and jax.jit.

python ci/bench/ops.py [--ops NAME ...] [--small] [--shrink N] [--traced] [--cpu-time] [--compiled]
    [--threads N] [--rounds N] [--json PATH]

Each library runs in its own process, and they take turns after a pause, in which threads fall
asleep. Results and gradients are compared first. Other programs disturb the times less with
``--cpu-time --threads 1``, which counts a process's own processor time. ``--only gpugrad --traced``
compares with a `gg.function` of the same op, which must not be slower, at ``--shrink`` 1, 4 and 16.
"""

from __future__ import annotations

import functools
import math
import multiprocessing
import random
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from peers import failures, installed, jax_runs, options, parse_args, select, status, table

parser = options(__doc__, rounds=15, threads=2)
parser.add_argument("--ops", nargs="+", metavar="NAME", help="which of them (all)")
parser.add_argument("--small", action="store_true", help="small arrays: what a call takes")
parser.add_argument("--shrink", type=int, default=1, metavar="N", help="divide lengths by N")
parser.add_argument("--traced", action="store_true", help="our own gg.function takes part")
parser.add_argument("--cpu-time", action="store_true", help="processor time, not elapsed time")
parser.add_argument("--compiled", action="store_true", help="torch.compile takes part")
args = parse_args(parser)

import numpy as np

Functions = dict[str, Callable[..., Any]]
Arrays = tuple[list[Any], list[Any]]

REACH, MOST = 0.9, 2.5
"""Targets: the geometric mean of our times over torch's, and the largest of them."""

TRACED, TRACED_MOST = "gpugrad, traced", 1.05
"""Our own gg.function, and the target: the largest of its times over the eager ones."""

RANDOM = {"dropout", "normal"}
"""Ops whose results differ from library to library."""

POWERS = (4, -1, 2.5, 0.5, 1.7)

SECONDS = 0.01
"""A measurement repeats a call until it takes this time."""

# ---- arguments --------------------------------------------------------------------------


def arguments() -> dict[str, Callable[[], Arrays]]:
    """For each op: its arrays with a gradient, and the other ones."""
    rng, s = np.random.default_rng(0), 16 if args.small else args.shrink

    def of(*shape: int) -> Any:
        return rng.standard_normal(shape, np.float32)

    def each(*shapes: tuple[int, ...]) -> Callable[[], Arrays]:
        return lambda: ([of(*shape) for shape in shapes], [])

    def below(n: int, *shape: int) -> Any:
        return rng.integers(0, n, shape)

    def definite(n: int) -> Any:
        a = of(n, n)
        return a @ a.T / n + np.eye(n, dtype=np.float32)

    def ctc() -> Arrays:
        steps, n, classes, labels = 200 // s, 16, 32, 40 // s
        return [of(steps, n, classes)], [
            1 + below(classes - 1, n, labels),
            np.full(n, steps),
            np.full(n, labels),
        ]

    def sampled() -> Arrays:
        side = 64 // s
        return [of(8, 16, side, side), rng.uniform(-1.1, 1.1, (8, side, side, 2)).astype("f4")], []

    n, rows, width, side = 2**20 // s**2, 2048 // s, 512 // s, 56 // s
    flat, matrix, images = each((n,)), each((rows, width)), each((8, 32, side, side))
    norm = each((rows, width), (width,), (width,))
    small = 256 // s
    attention = (4, 8, 128 // s, 64)
    return {
        **dict.fromkeys(("exp", "tanh", "erf", "gelu", "gelu_tanh", "silu", "relu"), flat),
        **dict.fromkeys(("sum", "var", "max", "logsumexp", "cumsum", "permute"), matrix),
        **dict.fromkeys(("softmax", "log_softmax", "sort", "top_k", "dropout"), matrix),
        **dict.fromkeys(("max_pool2d", "avg_pool2d", "interpolate"), images),
        "add": each((rows, width), (width,)),
        **{f"power {y}": lambda: ([abs(of(n)) + 0.5], []) for y in POWERS},
        "where": lambda: ([of(n), of(n)], [below(2, n) > 0]),
        "layer_norm": norm,
        "batch_norm": each((8, 32, side, side), (32,), (32,)),
        "cross_entropy": lambda: ([of(rows, width)], [below(width, rows)]),
        "matmul": each((width, width), (width, width)),
        "conv2d": each((8, 32, side, side), (32, 32, 3, 3)),
        "einsum": each((8, rows // 16, 64), (8, rows // 16, 64)),
        "take": lambda: ([of(rows, width)], [below(rows, rows)]),
        "take_along_axis": lambda: ([of(rows, width)], [below(width, rows, 64 // s)]),
        "index_add": lambda: ([of(rows, width), of(rows, width)], [below(rows, rows)]),
        "getitem": matrix,
        "concat": each((rows, width), (rows, width)),
        "embedding": lambda: ([of(rows, width)], [below(rows, 32, 128 // s)]),
        "cdist": each((1024 // s, 64), (1024 // s, 64)),
        "grid_sample": sampled,
        "ctc_loss": ctc,
        "lstm_cell": lambda: ([of(64, 256 // s), of(64, small), of(64, small),
                               of(small, 4 * small) / 16, of(small, 4 * small) / 16], []),
        "attention": each(attention, attention, attention),
        "rfft": matrix,
        "cholesky": lambda: ([definite(small)], []),
        "solve": lambda: ([definite(small), of(small, 16)], []),
        "svd": lambda: ([of(small // 2, small // 2)], []),
        "normal": lambda: ([], [np.zeros((rows, width), np.float32)]),
    }  # fmt: skip


# ---- libraries: the functions by op, and what runs one with its gradient ----------------


def with_gpugrad(traced: bool = False) -> tuple[Functions, Any]:
    """Ours."""
    import gpugrad as gg

    def lstm_cell(x, h, c, w, u):
        z = x @ w + h @ u
        n = z.shape[1] // 4
        i, f, g, o = (z[:, k * n : (k + 1) * n] for k in range(4))
        c = gg.sigmoid(f) * c + gg.sigmoid(i) * gg.tanh(g)
        return gg.sigmoid(o) * gg.tanh(c)

    functions: Functions = {
        **{n: getattr(gg, n) for n in ("exp", "tanh", "sum", "softmax", "log_softmax")},
        "where": lambda x, y, c: gg.where(c, x, y),
        **{n: getattr(gg, n) for n in ("erf", "add", "matmul", "take_along_axis", "layer_norm")},
        **{n: getattr(gg.nn, n) for n in ("gelu", "silu", "relu", "dropout", "conv2d")},
        **{n: getattr(gg.nn, n) for n in ("cross_entropy", "cdist", "grid_sample")},
        **{n: getattr(gg.linalg, n) for n in ("cholesky", "solve")},
        **{f"power {y}": lambda x, y=y: x**y for y in POWERS},
        "gelu_tanh": lambda x: gg.nn.gelu(x, "tanh"),
        "var": lambda x: gg.var(x, -1),
        "max": lambda x: gg.max(x, -1),
        "logsumexp": lambda x: gg.logsumexp(x, -1),
        "cumsum": lambda x: gg.cumsum(x, -1),
        "permute": lambda x: gg.exp(gg.permute_dims(x, (1, 0))),
        "sort": gg.sort,
        "top_k": lambda x: gg.top_k(x, 8)[0],
        "max_pool2d": lambda x: gg.nn.max_pool2d(x, 2),
        "avg_pool2d": lambda x: gg.nn.avg_pool2d(x, 2),
        "interpolate": lambda x: gg.nn.interpolate(x, scale_factor=2, mode="bilinear"),
        "batch_norm": lambda x, w, b: gg.nn.batch_norm(x, None, None, w, b, training=True)[0],
        "einsum": lambda x, y: gg.einsum("bik,bjk->bij", x, y),
        "take": lambda x, i: gg.take(x, i, axis=0),
        "index_add": lambda x, y, i: gg.index_add(x, y, index=i),
        "getitem": lambda x: x[::2, 1:],
        "concat": lambda x, y: gg.concat([x, y], axis=1),
        "embedding": lambda w, i: gg.nn.embedding(i, w),
        "ctc_loss": lambda x, *rest: gg.nn.ctc_loss(gg.log_softmax(x), *rest),
        "lstm_cell": lstm_cell,
        "attention": gg.nn.scaled_dot_product_attention,
        "rfft": lambda x: gg.abs(gg.fft.rfft(x)),
        "svd": lambda x: gg.linalg.svd(x, full_matrices=False)[1],
        "normal": lambda x: gg.random.normal(x.shape),
    }

    def prepare(function: Any, arrays: Any, others: Any) -> Any:
        arrays, others = [*map(gg.asarray, arrays)], [*map(gg.asarray, others)]
        g = gg.asarray(cotangent(function(*arrays, *others).shape))

        def both(arrays: Any, others: Any, g: Any) -> Any:
            with gg.GradientTape() as tape:
                tape.watch(arrays)
                out = function(*arrays, *others)
            return [out, *(tape.gradient(out, arrays, g) if arrays else ())]

        run = gg.function(both) if traced else both
        return lambda: run(arrays, others, g)

    return functions, prepare


def with_torch(compiled: bool = False) -> tuple[Functions, Any]:
    """The same in torch."""
    import torch
    from torch.nn import functional as F

    if args.threads:
        torch.set_num_threads(args.threads)

    functions: Functions = {
        **{n: getattr(torch, n) for n in ("exp", "tanh", "sum", "erf", "add", "matmul", "cdist")},
        **{n: getattr(F, n) for n in ("gelu", "silu", "relu", "dropout", "conv2d")},
        **{n: getattr(torch.linalg, n) for n in ("cholesky", "solve")},
        "cross_entropy": F.cross_entropy,
        **{f"power {y}": lambda x, y=y: x**y for y in POWERS},
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "softmax": lambda x: F.softmax(x, -1),
        "log_softmax": lambda x: F.log_softmax(x, -1),
        "var": lambda x: torch.var(x, -1, correction=0),
        "max": lambda x: torch.amax(x, -1),
        "logsumexp": lambda x: torch.logsumexp(x, -1),
        "cumsum": lambda x: torch.cumsum(x, -1),
        "permute": lambda x: torch.exp(torch.permute(x, (1, 0))),
        "sort": lambda x: torch.sort(x, stable=True)[0],
        "top_k": lambda x: torch.topk(x, 8)[0],
        "max_pool2d": lambda x: F.max_pool2d(x, 2),
        "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
        "interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        "where": lambda x, y, c: torch.where(c, x, y),
        "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
        "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        "einsum": lambda x, y: torch.einsum("bik,bjk->bij", x, y),
        "take": lambda x, i: torch.index_select(x, 0, i),
        "take_along_axis": lambda x, i: torch.take_along_dim(x, i, -1),
        "index_add": lambda x, y, i: torch.index_add(x, 0, i, y),
        "getitem": lambda x: x[::2, 1:],
        "concat": lambda x, y: torch.cat([x, y], 1),
        "embedding": lambda w, i: F.embedding(i, w),
        "grid_sample": lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        "ctc_loss": lambda x, *rest: F.ctc_loss(F.log_softmax(x, -1), *rest),
        "lstm_cell": lambda x, h, c, w, u: torch.lstm_cell(x, (h, c), w.T, u.T)[0],
        "attention": F.scaled_dot_product_attention,
        "rfft": lambda x: torch.abs(torch.fft.rfft(x)),
        "svd": lambda x: torch.linalg.svd(x, full_matrices=False)[1],
        "normal": lambda x: torch.randn(x.shape),
    }

    def prepare(function: Any, arrays: Any, others: Any) -> Any:
        function = torch.compile(function) if compiled else function
        arrays = [torch.from_numpy(a).requires_grad_() for a in arrays]
        others = [*map(torch.from_numpy, others)]
        g = torch.from_numpy(cotangent(tuple(function(*arrays, *others).shape)))

        def run() -> Any:
            out = function(*arrays, *others)
            return [out.detach(), *(torch.autograd.grad(out, arrays, g) if arrays else ())]

        return run

    return functions, prepare


def with_jax() -> tuple[Functions, Any]:
    """The ops that jax has under the same meaning, with their gradients in one `jax.jit`."""
    import jax
    from jax import numpy as jnp

    def pooled(x: Any, start: float, function: Any) -> Any:
        return jax.lax.reduce_window(x, start, function, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    functions: Functions = {
        **{n: getattr(jnp, n) for n in ("exp", "tanh", "sum", "add", "matmul", "sort")},
        **{n: getattr(jax.nn, n) for n in ("silu", "relu", "softmax", "log_softmax")},
        **{n: getattr(jnp.linalg, n) for n in ("cholesky", "solve")},
        "erf": jax.scipy.special.erf,
        "gelu": lambda x: jax.nn.gelu(x, approximate=False),
        **{f"power {y}": lambda x, y=y: x**y for y in POWERS},
        "gelu_tanh": jax.nn.gelu,
        "var": lambda x: jnp.var(x, -1),
        "max": lambda x: jnp.max(x, -1),
        "logsumexp": lambda x: jax.nn.logsumexp(x, -1),
        "cumsum": lambda x: jnp.cumsum(x, -1),
        "permute": lambda x: jnp.exp(jnp.transpose(x)),
        "top_k": lambda x: jax.lax.top_k(x, 8)[0],
        "max_pool2d": lambda x: pooled(x, -math.inf, jax.lax.max),
        "avg_pool2d": lambda x: pooled(x, 0.0, jax.lax.add) / 4,
        "where": lambda x, y, c: jnp.where(c, x, y),
        "conv2d": lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "VALID"),
        "einsum": lambda x, y: jnp.einsum("bik,bjk->bij", x, y),
        "take": lambda x, i: jnp.take(x, i, axis=0),
        "take_along_axis": lambda x, i: jnp.take_along_axis(x, i, -1),
        "index_add": lambda x, y, i: x.at[i].add(y),
        "getitem": lambda x: x[::2, 1:],
        "concat": lambda x, y: jnp.concatenate([x, y], 1),
        "embedding": lambda w, i: w[i],
        "rfft": lambda x: jnp.abs(jnp.fft.rfft(x)),
        "svd": lambda x: jnp.linalg.svd(x, full_matrices=False)[1],
    }

    def prepare(function: Any, arrays: Any, others: Any) -> Any:
        arrays, others = [*map(jnp.asarray, arrays)], [*map(jnp.asarray, others)]
        g = jnp.asarray(cotangent(jax.eval_shape(function, *arrays, *others).shape))

        @jax.jit
        def both(arrays: Any, others: Any, g: Any) -> Any:
            out, back = jax.vjp(lambda *arrays: function(*arrays, *others), *arrays)
            return [out, *back(g)]

        return lambda: jax.block_until_ready(both(arrays, others, g))

    return functions, prepare


def cotangent(shape: tuple[int, ...]) -> Any:
    """The gradient by an op's result."""
    return np.asarray(np.random.default_rng(1).standard_normal(shape, np.float32))


# ---- processes --------------------------------------------------------------------------


def serve(library: Callable[[], tuple[Functions, Any]], pipe: Any) -> None:
    """Answer messages: an op's name by its results, a number of calls by seconds of a call."""
    functions, prepare = library()
    every, run = arguments(), lambda: []
    clock = time.process_time if args.cpu_time else time.perf_counter
    while True:
        try:
            message = pipe.recv()
        except EOFError:
            return
        if isinstance(message, str):
            results: Any = None
            drawn = every[message]()  # also without the op, so that all draw the same numbers
            try:
                if message in functions:
                    run = prepare(functions[message], *drawn)
                    results = [np.array(a, np.float32) for a in run()]
            except Exception:
                traceback.print_exc()
                results = "failed"
            pipe.send(results)
            continue
        run()
        start = clock()
        for _ in range(message):
            run()
        pipe.send((clock() - start) / message)


def start(library: Callable[[], tuple[Functions, Any]]) -> Any:
    """The pipe to a new process that serves a library."""
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    context.Process(target=serve, args=(library, far), daemon=True).start()
    far.close()
    return near


def call(pipe: Any, message: Any) -> Any:
    """A message's answer."""
    pipe.send(message)
    return pipe.recv()


def agreeing(op: str, pipes: dict[str, Any]) -> dict[str, Any]:
    """The libraries that have the op, and whose results are ours."""
    results = {name: call(pipe, op) for name, pipe in pipes.items()}
    ours = results["gpugrad"]
    for name, theirs in results.items():
        if theirs == "failed" or (theirs is not None and ours == "failed"):
            failures.append(f"{op} of {name}")
        elif theirs is not None and op not in RANDOM:
            for a, b in zip(ours, theirs, strict=True):
                apart = np.abs(a - b).max() if a.shape == b.shape else math.inf
                if not apart <= 1e-3 * max(1, np.abs(b).max()):
                    failures.append(f"{op} of {name}: differs by {apart:.1e}")
    return {n: pipes[n] for n, r in results.items() if r is not None and r != "failed"}


def medians(pipes: dict[str, Any]) -> dict[str, float]:
    """Median seconds of a call by library, which take turns."""
    inner = {n: max(1, int(SECONDS / max(call(p, 1), 1e-6))) for n, p in pipes.items()}
    times: dict[str, list[float]] = {name: [] for name in pipes}
    order, shuffle = list(pipes), random.Random(0)
    for _ in range(args.rounds):
        shuffle.shuffle(order)
        for name in order:
            time.sleep(0 if args.threads == 1 else 0.05)
            times[name].append(call(pipes[name], inner[name]))
    return {name: statistics.median(t) for name, t in times.items()}


def summarize(ratios: dict[str, dict[str, float]]) -> bool:
    """Print our ratios to each library; return True if those to torch reach the targets."""
    good = True
    for name, of in ratios.items():
        mean = statistics.geometric_mean(of.values())
        worst = sorted(of, key=of.__getitem__, reverse=True)
        print(f"\ngpugrad over {name}: geometric mean {mean:.2f} of {len(of)} ops")
        print("  " + ", ".join(f"{op} {of[op]:.2f}" for op in worst))
        good &= name != "torch" or (mean <= REACH and of[worst[0]] <= MOST)
        good &= name != TRACED or of[worst[-1]] >= 1 / TRACED_MOST
    return good


def main() -> int:
    """Print a table for each op, and a summary."""
    libraries: dict[str, Any] = {"gpugrad": with_gpugrad}
    if installed("torch"):
        libraries["torch"] = with_torch
        if args.compiled:
            libraries["torch.compile"] = functools.partial(with_torch, compiled=True)
    if jax_runs(False):
        libraries["jax.jit"] = with_jax
    libraries = select(libraries, args.only)
    if args.traced:
        libraries[TRACED] = functools.partial(with_gpugrad, traced=True)
    pipes = {name: start(library) for name, library in libraries.items()}
    ratios: dict[str, dict[str, float]] = {name: {} for name in pipes if name != "gpugrad"}
    for op in args.ops or arguments():
        seconds = medians(agreeing(op, pipes))
        table(op, seconds, reach={"torch": MOST})
        for name in ratios.keys() & seconds.keys() if "gpugrad" in seconds else ():
            ratios[name][op] = seconds["gpugrad"] / seconds[name]
    return status(summarize({name: of for name, of in ratios.items() if of}))


if __name__ == "__main__":
    sys.exit(main())
