"""Single eager ops at 1e2, 1e4 and 1e6 elements beside torch, or beside gg.function.

python ci/bench/sizes.py [--ops NAME ...] [--sizes N ...] [--gradient] [--traced] [--elapsed]
    [--threads N] [--rounds N] [--json PATH]

Processor time of one thread by default; ``--elapsed`` with ``--threads 2`` measures threads. The
libraries take turns in one process, and the smallest time of a call counts: other programs of the
machine only add to it. ``--traced`` compares with a `gg.function` of the same op.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from peers import installed, options, parse_args, record_failure, status

parser = options(__doc__, rounds=5, threads=1)
parser.add_argument("--ops", nargs="+", metavar="NAME", help="which of them (all)")
parser.add_argument("--sizes", nargs="+", type=int, default=[100, 10_000, 1_000_000], metavar="N")
parser.add_argument("--gradient", action="store_true", help="with the gradient of the sum")
parser.add_argument("--traced", action="store_true", help="beside gg.function, not torch")
parser.add_argument("--elapsed", action="store_true", help="elapsed time, not processor time")
args = parse_args(parser)

import numpy as np

import gpugrad as gg

REACH = {100: (1.2, 3), 10_000: (0.9, 3), 1_000_000: (0.8, 2)}
"""Targets by size: the geometric mean of our times over torch's, and the largest of them."""

TRACED_MOST = 1.05
"""The target: the largest time of gg.function over the eager one."""

SECONDS = 0.004
"""A measurement repeats a call until it takes this time."""

# ---- ops: names that both libraries have, by arguments, and expressions -------------------

SAME = {
    "x": "exp sin cos tanh sigmoid relu abs sign floor ceil trunc round square exp2 expm1 sinh "
         "cosh asinh atan erf erfc negative isnan isfinite signbit sinc nan_to_num sum mean max "
         "min prod std var argmax argmin cumsum cumprod sort argsort "
         "median count_nonzero flatten ravel",
    "p": "log log2 log10 log1p sqrt rsqrt reciprocal",
    "u": "asin acos atanh tan",
    "x y": "add subtract multiply maximum minimum hypot logaddexp logaddexp2 atan2 copysign "
           "less greater fmax fmin outer dot",
    "x p": "divide remainder fmod floor_divide",
    "p y": "pow",
    "m": "tril triu fliplr flipud diagonal trace",
    "m w": "matmul kron",
}  # fmt: skip

NN = ("relu6 elu selu silu mish softplus softsign hardtanh hardswish hardsigmoid leaky_relu gelu "
      "tanhshrink hardshrink softshrink celu")  # fmt: skip

SPECIAL = {
    "x": "digamma i0 i0e i1 i1e erfcx ndtr log_ndtr bessel_j0 bessel_j1 expit",
    "p": "gammaln entr",
    "u": "erfinv logit ndtri",
    "p q": "xlogy xlog1py gammainc zeta",
}

# An expression reads L (the library), N (its nn.functional), S (special), A (linalg), R (random)
BOTH = {
    "sum rows": "L.sum(m, -1)", "sum columns": "L.sum(m, 0)", "mean rows": "L.mean(m, -1)",
    "prod rows": "L.prod(m, -1)", "prod columns": "L.prod(m, 0)", "argmax rows": "L.argmax(m, -1)",
    "all": "L.all(b)", "any": "L.any(b)", "all rows": "L.all(b2, -1)",
    "cumsum rows": "L.cumsum(m, -1)", "cumsum columns": "L.cumsum(m, 0)",
    "cumprod rows": "L.cumprod(m, -1)",
    "logsumexp rows": "L.logsumexp(m, -1)", "softmax": "L.softmax(m, -1)",
    "softmax columns": "L.softmax(m, 0)", "log_softmax": "L.log_softmax(m, -1)",
    "add a row": "m + v", "add a number": "x + 2.5", "multiply by a column": "m * v[:, None]",
    "pairs subtract": "v[:, None] - v", "pairs hypot": "L.hypot(v[:, None], v)",
    "pairs logaddexp": "L.logaddexp(v[:, None], v)",
    "power 2": "x ** 2", "power 3": "x ** 3", "power -1": "p ** -1", "power 1.7": "p ** 1.7",
    "where": "L.where(b, x, y)", "where a number": "L.where(b, x, 0.0)",
    "clip": "L.clip(x, -0.5, 0.5)", "lerp": "L.lerp(x, y, 0.3)",
    "comparison": "x > 0", "equal": "x == y", "logical_and": "L.logical_and(b, b)",
    "logical_not": "L.logical_not(b)",
    "integers add": "k + k", "integers multiply": "k * 3", "integers floor_divide": "k // 7",
    "integers remainder": "k % 7", "bitwise_and": "L.bitwise_and(k, k)", "integers sum": "L.sum(k)",
    "reshape": "L.reshape(x, (-1, 10))", "stack": "L.stack([x, y])",
    "expand": "L.broadcast_to(v, m.shape) + m", "transpose": "m.T + m",
    "roll": "L.roll(x, 3)", "roll rows": "L.roll(m, 3, 0)", "flip": "L.flip(x, (0,))",
    "tile": "L.tile(v, (3,))", "meshgrid": "L.meshgrid(v, v, indexing='ij')[0] + m",
    "slice": "m[1:, ::2] + 1", "a row": "m[3]", "index rows": "m[r]", "index pairs": "m[r, r]",
    "mask": "x[b]", "zeros_like": "L.zeros_like(x)", "ones": "L.ones(x.shape)",
    "arange": "L.arange(x.shape[0])", "linspace": "L.linspace(0, 1, x.shape[0])",
    "eye": "L.eye(m.shape[0])", "nonzero": "L.nonzero(b)", "searchsorted": "L.searchsorted(t, x)",
    "bincount": "L.bincount(k)", "isin": "L.isin(k, r)",
    "einsum": "L.einsum('ij,kj->ik', m, w)", "tensordot": "L.tensordot(m, w, 1)",
    "matrix @ vector": "m @ v", "batched matmul": "c @ c", "diff": "L.diff(x)",
    "normalize": "N.normalize(m)", "glu": "N.glu(m)",
    "linear": "N.linear(m, w, v)", "instance_norm": "N.instance_norm(c)",
    "cross_entropy": "N.cross_entropy(m, r)", "nll_loss": "N.nll_loss(m, r)",
    "mse_loss": "N.mse_loss(x, y)", "l1_loss": "N.l1_loss(x, y)",
    "huber_loss": "N.huber_loss(x, y)", "smooth_l1_loss": "N.smooth_l1_loss(x, y)",
    "binary_cross_entropy_with_logits": "N.binary_cross_entropy_with_logits(x, u)",
    "embedding": "N.embedding(r, m)",
    "cosine_similarity": "N.cosine_similarity(m, w)", "pairwise_distance":
    "N.pairwise_distance(m, w)", "attention": "N.scaled_dot_product_attention(h, h, h)",
    "max_pool1d": "N.max_pool1d(c, 2)", "avg_pool1d": "N.avg_pool1d(c, 2)",
    "max_pool2d": "N.max_pool2d(d, 2)", "avg_pool2d": "N.avg_pool2d(d, 2)",
    "conv1d": "N.conv1d(c, f)", "conv2d": "N.conv2d(d, e)",
    "vector_norm": "A.vector_norm(x)", "matrix_norm": "A.matrix_norm(m)",
    "det": "A.det(s)", "inv": "A.inv(s)", "solve": "A.solve(s, s)",
    "cholesky": "A.cholesky(s)", "qr": "A.qr(s)[1]", "eigvalsh": "A.eigvalsh(s)",
    "svdvals": "A.svdvals(s)", "cross": "A.cross(o, o)",
}  # fmt: skip

EACH = {
    "astype float16": ("L.astype(x, L.float16)", "x.to(L.float16)"),
    "astype float64": ("L.astype(x, L.float64)", "x.to(L.float64)"),
    "astype int32": ("L.astype(x, L.int32)", "x.to(L.int32)"),
    "astype bool": ("L.astype(x, L.bool)", "x.to(L.bool)"),
    "max rows": ("L.max(m, -1)", "L.amax(m, -1)"), "min columns": ("L.min(m, 0)", "L.amin(m, 0)"),
    "std rows": ("L.std(m, -1)", "L.std(m, -1, correction=0)"),
    "var columns": ("L.var(m, 0)", "L.var(m, 0, correction=0)"),
    "sort rows": ("L.sort(m)", "L.sort(m, stable=True)[0]"),
    "cumulative_max": ("L.cumulative_max(x, 0)", "L.cummax(x, 0)[0]"),
    "cumulative_logsumexp": ("L.cumulative_logsumexp(x)", "L.logcumsumexp(x, 0)"),
    "top_k": ("L.top_k(m, 3)[0]", "L.topk(m, 3)[0]"),
    "concat": ("L.concat([x, y])", "L.cat([x, y])"),
    "concat columns": ("L.concat([m, w], 1)", "L.cat([m, w], 1)"),
    "split": ("[a + 1 for a in L.split(m, 2, 1)]", "[a + 1 for a in L.chunk(m, 2, 1)]"),
    "permute": ("L.permute_dims(c, (2, 0, 1)) + 1", "L.permute(c, (2, 0, 1)) + 1"),
    "copy of a transpose": ("L.asarray(m.T, copy=True)", "m.T.contiguous()"),
    "pad": ("L.pad(m, 2)", "N.pad(m, (2, 2, 2, 2))"),
    "repeat": ("L.repeat(x, 2)", "L.repeat_interleave(x, 2)"),
    "take": ("L.take(m, r, axis=0)", "L.index_select(m, 0, r)"),
    "take columns": ("L.take(m, r, axis=1)", "L.index_select(m, 1, r)"),
    "take_along_axis": ("L.take_along_axis(m, r2, -1)", "L.take_along_dim(m, r2, -1)"),
    "index_add": ("L.index_add(m, w, index=r)", "L.index_add(m, 0, r, w)"),
    "scatter_add": ("L.scatter_along_axis(w, r2, axis=1, shape=m.shape)",
                    "L.zeros_like(m).scatter_add(1, r2, w)"),
    "put at rows": ("L.index_put(m, w, index=r)", "L.index_put(m, (r,), w)"),
    "segment_sum": ("L.segment_sum(m, r, v.shape[0])",
                    "L.zeros_like(m).index_add_(0, r, m)"),
    "segment_max": ("L.segment_max(m, r, v.shape[0])",
                    "L.zeros_like(m).index_reduce_(0, r, m, 'amax')"),
    "one_hot": ("L.one_hot(r, v.shape[0])", "N.one_hot(r, v.shape[0]).float()"),
    "batch_norm": ("N.batch_norm(c, None, None, training=True)[0]",
                   "N.batch_norm(c, None, None, training=True)"),
    "interpolate": ("N.interpolate(d, scale_factor=2, mode='bilinear')",) * 2,
    "layer_norm": ("N.layer_norm(m, v, v)", "N.layer_norm(m, v.shape, v, v)"),
    "rms_norm": ("N.rms_norm(m, v)", "N.rms_norm(m, v.shape, v)"),
    "group_norm": ("N.group_norm(c, num_groups=2)", "N.group_norm(c, 2)"),
    "norm rows": ("A.vector_norm(m, axis=-1)", "A.vector_norm(m, 2, -1)"),
    "cdist": ("N.cdist(m, w)", "L.cdist(m, w)"),
    "vecdot": ("L.vecdot(m, w)", "A.vecdot(m, w)"),
    "dropout": ("N.dropout(x, 0.5)",) * 2,
    "uniform": ("R.uniform(x.shape)", "L.rand(x.shape)"),
    "normal": ("R.normal(x.shape)", "L.randn(x.shape)"),
    "random integers": ("R.integers(x.shape, 0, 10)", "L.randint(0, 10, x.shape)"),
    "permutation": ("R.permutation(x.shape[0])", "L.randperm(x.shape[0])"),
    "bernoulli": ("R.bernoulli(x.shape, 0.3)", "L.bernoulli(L.full(x.shape, 0.3))"),
    "rfft": ("L.fft.rfft(x)",) * 2, "fft2": ("L.fft.fft2(m)",) * 2,
    "irfft": ("L.fft.irfft(L.fft.rfft(m))",) * 2,
    "complex abs": ("L.abs(z)",) * 2, "complex multiply": ("z * z",) * 2,
    "quantile": ("L.quantile(v, 0.3)",) * 2,
}  # fmt: skip


def ops() -> dict[str, tuple[str, str]]:
    """By name, our expression and torch's."""
    every = {name: (f"L.{name}({names.replace(' ', ', ')})",) * 2
             for names, of in SAME.items() for name in of.split()}  # fmt: skip
    for name in ("std", "var"):
        every[name] = (f"L.{name}(x)", f"L.{name}(x, correction=0)")
    for name in ("cumsum", "cumprod"):
        every[name] = (f"L.{name}(x, 0)",) * 2
    every["sort"] = ("L.sort(x)", "L.sort(x, stable=True)[0]")
    every["argsort"] = ("L.argsort(x)", "L.argsort(x, stable=True)")
    every["kron"] = ("L.kron(v, v)",) * 2
    every["outer"] = ("L.outer(v, v)",) * 2
    every |= {name: (f"N.{name}(x)",) * 2 for name in NN.split()}
    for names, of in SPECIAL.items():
        call = f"({names.replace(' ', ', ')})"
        for name in of.split():
            ours = name.removeprefix("bessel_")
            every[name] = (f"S.{ours}{call}", f"S.{name}{call}")
    every |= {name: (text, text) for name, text in BOTH.items()}
    every["clip"] = ("L.clip(x, -0.5, 0.5)", "L.clamp(x, -0.5, 0.5)")
    return every | EACH


def arrays(n: int) -> dict[str, Any]:
    """The arguments of ops by the letters of the expressions."""
    rng, side = np.random.default_rng(0), int(n**0.5)

    def of(*shape: int) -> Any:
        return rng.standard_normal(shape, np.float32)

    some = min(side, 200)
    s = of(some, some)
    f32 = np.float32
    return {
        **{"x": of(n), "y": of(n), "p": abs(of(n)) + f32(0.5), "q": abs(of(n)) + f32(1.5)},
        **{"u": rng.uniform(0.01, 0.99, n).astype(f32), "b": of(n) > 0, "t": np.sort(of(100))},
        **{"m": of(side, side), "w": of(side, side), "v": of(side), "b2": of(side, side) > 0},
        **{"k": rng.integers(0, 50, n), "r": rng.integers(0, side, side)},
        **{"r2": rng.integers(0, side, (side, side)), "o": of(n // 3, 3)},
        "c": of(max(n // 1000, 1), 10, 10) if n < 1000 else of(n // 400, 20, 20),
        "d": of(1, 1, 10, 10) if n < 1000 else of(n // 4000 + 1, 4, 32, 32),
        "e": of(2, 1, 3, 3) if n < 1000 else of(8, 4, 3, 3),
        "f": of(4, 10, 3) if n < 1000 else of(8, 20, 3),
        "h": of(1, 2, 5, 10) if n < 1000 else of(2, 4, max(n // 512, 16) if n < 1e5 else 512, 64),
        "s": s @ s.T / some + np.eye(some, dtype=f32),
        "z": of(n) + 1j * of(n),
    }  # fmt: skip


# ---- the race ----------------------------------------------------------------------------


def ours(text: str, of: Mapping[str, Any], traced: bool) -> Callable[[], Any]:
    names = {"L": gg, "N": gg.nn, "S": gg.special, "A": gg.linalg, "R": gg.random}
    used = [k for k in of if k in compile(text, "", "eval").co_names]
    function = eval(f"lambda {', '.join(used)}: {text}", names)
    given = [gg.asarray(of[k]) for k in used]
    floats = [a for a in given if a.dtype.kind == "f"]

    def both(*given: Any) -> Any:
        with gg.GradientTape() as tape:
            tape.watch([a for a in given if a.dtype.kind == "f"])
            out = function(*given)
        return out, tape.gradient(out, [a for a in given if a.dtype.kind == "f"])

    run = both if args.gradient and floats else function
    run = gg.function(run) if traced else run
    return lambda: run(*given)


def torchs(text: str, of: Mapping[str, Any]) -> Callable[[], Any]:
    import torch

    torch.set_num_threads(args.threads)
    names = {"L": torch, "N": torch.nn.functional, "S": torch.special, "A": torch.linalg}
    used = [k for k in of if k in compile(text, "", "eval").co_names]
    function = eval(f"lambda {', '.join(used)}: {text}", names)
    given = [torch.from_numpy(np.array(of[k])) for k in used]
    floats = [a for a in given if a.dtype.is_floating_point]

    def both() -> Any:
        out = function(*given)
        return torch.autograd.grad(out.sum(), floats, allow_unused=True)

    if args.gradient and floats:
        for a in floats:
            a.requires_grad_()
        return both
    return lambda: function(*given)


def fastest(runs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The smallest seconds of a call by contestant, which take turns."""
    clock = time.perf_counter if args.elapsed else time.process_time
    inner, best = {}, dict.fromkeys(runs, float("inf"))
    for name, run in runs.items():
        for _ in range(3):
            run()
        start = clock()
        run()
        inner[name] = max(1, min(500, int(SECONDS / max(clock() - start, 1e-6))))
    for _ in range(args.rounds):
        for name, run in runs.items():
            start = clock()
            for _ in range(inner[name]):
                run()
            best[name] = min(best[name], (clock() - start) / inner[name])
    return best


def main() -> int:
    """Print a table for each size: the geometric mean and the worst rows."""
    good = True
    other = "gpugrad, traced" if args.traced else "torch"
    if other == "torch" and not installed("torch"):
        print("torch is not installed")
        return status()
    every = {n: t for n, t in ops().items() if not args.ops or n in args.ops}
    for n in args.sizes:
        of, ratios = arrays(n), dict[str, float]()
        for name, (text, theirs) in every.items():
            with record_failure(f"{name}, {n}"):
                runs = {"gpugrad": ours(text, of, False)}
                runs[other] = ours(text, of, True) if args.traced else torchs(theirs, of)
                best = fastest(runs)
                ratio = best["gpugrad"] / best[other]
                ratios[name] = 1 / ratio if args.traced else ratio
        worst = sorted(ratios, key=ratios.__getitem__, reverse=True)
        mean = statistics.geometric_mean(ratios.values())
        title = "traced over eager" if args.traced else "gpugrad over torch"
        print(f"\n{title}, {n} elements: geometric mean {mean:.2f} of {len(ratios)} ops; worst")
        print("  " + ", ".join(f"{name} {ratios[name]:.2f}" for name in worst[:60]), flush=True)
        reach, most = REACH.get(n, (1.2, 3)) if not args.traced else (1.0, TRACED_MOST)
        good &= mean <= reach and ratios[worst[0]] <= most
    return status(good)


if __name__ == "__main__":
    sys.exit(main())
