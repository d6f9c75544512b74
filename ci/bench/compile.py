"""First calls on the CPU with an empty cache: chains of ops, models, a new length, scalars.

python ci/bench/compile.py [--ops 100,400,1600] [--models NAME ...] [--rounds N]

Each first call is one of a new process. Its seconds are those of a clock, and in brackets the
processor time of Python and of the compilers. A call is a training step, and needs the files
in C, too. Then comes the call with another length of the batch.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from peers import jax_runs, options, status

parser = options(__doc__, rounds=3, threads=1)
parser.add_argument("--models", nargs="*", help="which of them (all)")
parser.add_argument(
    "--ops", type=lambda text: [*map(int, text.split(","))], default=[100, 400, 1600]
)
args = parser.parse_args()
COLD = {"MLP": 2.0, "GPT": 2.0, "ViT": 2.0, "U-Net": 2.0, "determinant": 0.5}  # seconds
AGAIN = {"MLP": 0.1, "GPT": 0.1, "ViT": 0.1, "U-Net": 0.1}  # another length, and no new library
LINEAR = 1.2  # n times the ops take at most 1.2 n times the time

CHAIN = """
import sys, time
import numpy as np
n = {n}
x = np.random.default_rng(0).standard_normal(1 << 15, np.float32)

def chain(lib, x):
    y = x
    for k in range(n // 2):
        y = lib.sin(y * (1 + k * 1e-5)) + x
    return y

"""
FIRST = {
    "gpugrad": """
import gpugrad as gg
gg.function(lambda x: gg.exp(x) + 1)(np.zeros(1 << 20, np.float32))  # the files in C
f, x = gg.function(lambda x: chain(gg, x)), gg.asarray(x)
start = time.perf_counter()
f(x).numpy()
print(time.perf_counter() - start)
""",
    "jax.jit": """
import jax
from jax import numpy as jnp
f, x = jax.jit(lambda x: chain(jnp, x)), jnp.asarray(x)
start = time.perf_counter()
jax.block_until_ready(f(x))
print(time.perf_counter() - start)
""",
}

MODELS = """
import os, pathlib, resource, sys, time
import numpy as np
import gpugrad as gg
from gpugrad import nn
rng, f32 = np.random.default_rng(0), np.float32
name = sys.argv[1]
WIDTH, TIME = 128, 64

class GPT(nn.Module):
    def __init__(self):
        self.tokens, self.places = nn.Embedding(96, WIDTH), gg.Variable(np.zeros((64, WIDTH), f32))
        self.blocks = [nn.TransformerBlock(WIDTH, 4, causal=True) for _ in range(4)]
        self.norm, self.last = nn.LayerNorm(WIDTH), nn.Dense(WIDTH, 96)
    def forward(self, x):
        y = self.tokens(x) + self.places
        for block in self.blocks: y = block(y)
        return gg.reshape(self.last(self.norm(y)), (-1, 96))

class ViT(nn.Module):
    def __init__(self):
        self.first, self.places = nn.Dense(48, WIDTH), gg.Variable(np.zeros((64, WIDTH), f32))
        self.blocks = [nn.TransformerBlock(WIDTH, 4) for _ in range(4)]
        self.norm, self.last = nn.LayerNorm(WIDTH), nn.Dense(WIDTH, 10)
    def forward(self, x):
        y = gg.permute_dims(gg.reshape(x, (x.shape[0], 3, 8, 4, 8, 4)), (0, 2, 4, 1, 3, 5))
        y = self.first(gg.reshape(y, (x.shape[0], 64, 48))) + self.places
        for block in self.blocks: y = block(y)
        return self.last(gg.mean(self.norm(y), axis=1))

class Residual(nn.Module):
    def __init__(self, i, o):
        self.norms = [nn.GroupNorm(8, i), nn.GroupNorm(8, o)]
        self.convs = [nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1)]
        self.time, self.skip = nn.Dense(TIME, o), nn.Conv2d(i, o, 1) if i != o else None
    def forward(self, x, t):
        y = self.convs[0](nn.silu(self.norms[0](x))) + self.time(t)[:, :, None, None]
        return self.convs[1](nn.silu(self.norms[1](y))) + (self.skip(x) if self.skip else x)

class UNet(nn.Module):
    def __init__(self, w=32):
        self.time, self.first = nn.Dense(TIME, TIME), nn.Conv2d(3, w, 3, padding=1)
        self.down = [Residual(w, w), Residual(w, 2 * w), Residual(2 * w, 2 * w)]
        self.up = [Residual(4 * w, 2 * w), Residual(4 * w, w), Residual(2 * w, w)]
        self.middle, self.last = Residual(2 * w, 2 * w), nn.Conv2d(w, 3, 3, padding=1)
    def forward(self, x):
        rates = gg.exp(-gg.arange(TIME // 2, dtype="float32"))
        angles = gg.mean(x, axis=(1, 2, 3))[:, None] * rates
        t = nn.silu(self.time(gg.concat([gg.sin(angles), gg.cos(angles)], axis=1)))
        y, kept = self.first(x), []
        for k, block in enumerate(self.down):
            kept.append(block(y, t))
            y = nn.avg_pool2d(kept[-1], 2) if k < 2 else kept[-1]
        y = self.middle(y, t)
        for k, block in enumerate(self.up):
            y = block(gg.concat([y, kept.pop()], axis=1), t)
            y = gg.repeat(gg.repeat(y, 2, axis=2), 2, axis=3) if k < 2 else y
        return self.last(y)

def determinant(rows):
    if len(rows) == 1: return rows[0][0]
    sum_ = 0.0
    for k, x in enumerate(rows[0]):
        term = x * determinant([row[:k] + row[k + 1:] for row in rows[1:]])
        sum_ = sum_ - term if k % 2 else sum_ + term
    return sum_

def batch(n):
    if name == "determinant": return (rng.standard_normal((6, 6)),)
    if name == "GPT": return tuple(rng.integers(0, 96, (2, n, 64)))
    if name == "MLP": return rng.standard_normal((n, 784), f32), rng.integers(0, 10, n)
    images = rng.standard_normal((n, 3, 32, 32), f32)
    return images, images[::-1].copy() if name == "U-Net" else rng.integers(0, 10, n)

if name == "determinant":
    rows = lambda x: [[x[i, j] for j in range(6)] for i in range(6)]
    step = gg.function(gg.grad(lambda x: determinant(rows(x))))
else:
    layers = [nn.Dense(784, 256), nn.ReLU(), nn.Dense(256, 256), nn.GELU(), nn.Dense(256, 10)]
    model = {"GPT": GPT, "ViT": ViT, "U-Net": UNet, "MLP": lambda: nn.Sequential(layers)}[name]()
    loss, optimizer = gg.mse if name == "U-Net" else nn.cross_entropy, gg.optim.AdamW(1e-3)
    @gg.function
    def step(x, y):
        with gg.GradientTape() as tape:
            value = loss(model(x), gg.reshape(y, (-1,)) if name == "GPT" else y)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))
        return value

def processor():
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)

for n in (128, 140) if name == "MLP" else (16, 20):
    arguments = [gg.asarray(a) for a in batch(n)]
    clock, used = time.perf_counter(), processor()
    np.asarray(step(*arguments))
    libraries = len([*pathlib.Path(os.environ["XDG_CACHE_HOME"]).rglob("*.so")])
    print(time.perf_counter() - clock, processor() - used, libraries)
"""


def models() -> bool:
    """Print the first calls of models; whether all took as little time as they should."""
    good = True
    for name in args.models if args.models is not None else COLD:
        rounds = []
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory() as cache:
                environment = {**os.environ, "XDG_CACHE_HOME": cache, "GPUGRAD_DEVICE": "cpu"}
                command = [sys.executable, "-c", MODELS, name]
                lines = subprocess.check_output(command, env=environment, text=True).splitlines()
                rounds.append([[*map(float, line.split())] for line in lines])
        # by call: seconds, processor time, libraries so far
        (cold, used, libraries), (again, used_again, after) = (
            [statistics.median(values) for values in zip(*calls, strict=True)]
            for calls in zip(*rounds, strict=True)
        )
        kept = cold <= COLD[name]
        text = f"{name}: cold {cold:.2f} s ({used:.2f}), at most {COLD[name]}"
        if name in AGAIN:
            kept &= again <= AGAIN[name] and after == libraries
            text += f"; another length {again:.2f} s ({used_again:.2f}), at most {AGAIN[name]}"
            text += f", {after - libraries:.0f} new libraries"
        print(f"{text}: {'reached' if kept else 'MISSED'}", flush=True)
        good &= kept
    return good


def seconds(library: str, n: int) -> float:
    """Of the first call of a chain of n ops in a new process."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "GPUGRAD_DEVICE": "cpu"}
        text = CHAIN.format(n=n) + FIRST[library]
        return float(subprocess.check_output([sys.executable, "-c", text], env=environment))


def main() -> int:
    """Print the seconds by library and number of ops; check that ours grow linearly."""
    good = models()
    for library in FIRST if jax_runs(False) else ["gpugrad"]:
        times = [seconds(library, n) for n in args.ops]
        pairs = zip(args.ops, times, strict=True)
        print(f"{library}: " + ", ".join(f"{n} ops {t:.2f} s" for n, t in pairs))
        if library == "gpugrad":
            more, growth = args.ops[-1] / args.ops[0], times[-1] / times[0]
            linear = growth <= LINEAR * more
            good &= linear
            kept = f"at most {LINEAR * more:.1f}: {'reached' if linear else 'MISSED'}"
            print(f"  {more:.0f} times the ops: {growth:.1f} times the time, {kept}")
    return status(good)


if __name__ == "__main__":
    sys.exit(main())
