"""Steps of several processes that average gradients, against the same without communication.

python ci/bench/distributed.py [--ranks N] [--rounds N] [--small] [--json PATH]

It starts its own ranks by mpiexec (gpugrad[mpi]), one thread each, which train a Transformer block
eagerly and traced. "apart" steps without averaging; torch's DistributedDataParallel goes over gloo,
if torch is installed. Every rank runs the contestants in one order, between barriers.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import peers

parser = peers.options(__doc__, rounds=20, threads=1)
parser.add_argument("--ranks", type=int, default=2, help="processes (2)")
parser.add_argument("--port", type=int, help="of torch's ranks; set by the bench itself")
args = peers.parse_args(parser)

import numpy as np

import gpugrad as gg

WIDTH, LENGTH, BATCH = (32, 8, 2) if args.small else (256, 64, 8)
MISSING = "This bench needs mpiexec and mpi4py: pip install 'gpugrad[mpi]'."

Run = Any


def start() -> int:
    """Run this file on each rank."""
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if mpiexec is None or not peers.installed("mpi4py"):
        print(MISSING, file=sys.stderr)
        return 1
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [mpiexec, "-n", str(args.ranks), sys.executable, *sys.argv, "--port", port]
    return subprocess.run(command, check=False).returncode


def weights() -> list[np.ndarray]:
    rng, w = np.random.default_rng(0), WIDTH
    shapes = [(w, 3 * w), (w, w), (w, 4 * w), (4 * w, w)]
    return [rng.standard_normal(s, np.float32) * 0.05 for s in shapes]


def batch(rank: int) -> list[np.ndarray]:
    rng = np.random.default_rng(rank)
    return [rng.standard_normal((BATCH, LENGTH, WIDTH), np.float32) for _ in range(2)]


def ours(average: bool, traced: bool) -> Run:
    variables = [gg.Variable(w) for w in weights()]
    optimizer: Any = gg.optim.SGD(1e-3)
    if average:
        optimizer = gg.distributed.Optimizer(optimizer, variables)

    def loss(x: Any, y: Any) -> Any:
        qkv, out, up, down = variables
        q, k, v = gg.split(gg.expand_dims(x @ qkv, 1), 3, axis=-1)
        x = x + gg.squeeze(gg.nn.scaled_dot_product_attention(q, k, v), 1) @ out
        return gg.mean((x + gg.nn.gelu(x @ up) @ down - y) ** 2)

    def step(x: Any, y: Any) -> Any:
        with gg.GradientTape() as tape:
            value = loss(x, y)
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        return value

    call = gg.function(step) if traced else step
    x, y = map(gg.constant, batch(gg.distributed.rank()))
    return lambda: call(x, y)


def theirs(average: bool) -> Run:
    import torch as t

    class Block(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = t.nn.ParameterList([t.tensor(w) for w in weights()])

        def forward(self, x: Any) -> Any:
            qkv, out, up, down = self.weights
            q, k, v = (x @ qkv)[:, None].chunk(3, dim=-1)
            x = x + t.nn.functional.scaled_dot_product_attention(q, k, v)[:, 0] @ out
            return x + t.nn.functional.gelu(x @ up) @ down

    model: Any = Block()
    if average:
        model = t.nn.parallel.DistributedDataParallel(model)
    optimizer = t.optim.SGD(model.parameters(), 1e-3)
    x, y = map(t.tensor, batch(gg.distributed.rank()))

    def step() -> Any:
        optimizer.zero_grad()
        value = ((model(x) - y) ** 2).mean()
        value.backward()
        optimizer.step()
        return value

    return step


def main() -> int:
    """Print the tables."""
    if args.port is None:
        return start()
    world = gg.distributed.init(120)
    runs = {
        "gpugrad": ours(True, True),
        "gpugrad, traced, apart": ours(False, True),
        "gpugrad, eager": ours(True, False),
        "gpugrad, eager, apart": ours(False, False),
    }
    if peers.installed("torch"):
        import torch as t

        t.set_num_threads(1)
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
        t.distributed.init_process_group("gloo", rank=world.rank, world_size=world.size)
        runs |= {"torch, DDP": theirs(True), "torch, apart": theirs(False)}
    medians = peers.race(runs, args.rounds, inner=1, wait=gg.distributed.barrier)
    good = True
    if world.rank == 0:
        title = f"A block of width {WIDTH} on {world.size} ranks by {world.how}"
        good = peers.table(title, medians, {"gpugrad, traced, apart": 1 / 0.85})
        pairs = [("gpugrad, eager", "gpugrad, eager, apart"), ("torch, DDP", "torch, apart")]
        for name, apart in [("gpugrad", "gpugrad, traced, apart"), *pairs]:
            if name in medians and apart in medians:
                print(f"  {name}: {medians[apart] / medians[name]:.2f} of the speed apart")
    gg.distributed.barrier()
    return peers.status(good)


if __name__ == "__main__":
    sys.exit(main())
