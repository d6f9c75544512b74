"""Start the processes of gg.distributed by Ray or Dask, one for each GPU of a cluster.

python -m gpugrad.examples.launch ray --ranks 2
python -m gpugrad.examples.launch dask --ranks 2 --scheduler tcp://10.0.0.1:8786

Both only start processes and tell them rank and address; NCCL moves the arrays. Ray gives each rank
a GPU. Dask's workers must have one each, as those of dask-cuda do. Copy the function that you need:
`by_ray` and `by_dask` run any function of yours on every rank, and return what it returns.
"""

from __future__ import annotations

import argparse
import importlib
import socket
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.errors import GpugradError
from gpugrad.examples.common import UsageError


def library(name: str) -> Any:
    """A module that the example needs and gpugrad does not."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{error}: pip install {name}") from error


def own_address() -> str:
    """The name of the host and a free port, at which ranks can meet."""
    with socket.socket() as free:
        free.bind(("", 0))
        return f"{socket.gethostbyname(socket.gethostname())}:{free.getsockname()[1]}"


def joined(train: Callable[[], Any], rank: int, size: int, address: str) -> Any:
    """Join the other ranks and train; a process joins once."""
    gg.distributed.init(rank=rank, size=size, local_rank=0, address=address)
    return train()


def by_ray(train: Callable[[], Any], ranks: int) -> list[Any]:
    """The results of a function on that many ranks, each an actor of Ray with a GPU."""
    ray = library("ray")
    rank = ray.remote(num_gpus=1)(type("Rank", (), {"call": lambda self, f, *args: f(*args)}))
    actors = [rank.remote() for _ in range(ranks)]
    address = ray.get(actors[0].call.remote(own_address))
    return list(
        ray.get([a.call.remote(joined, train, k, ranks, address) for k, a in enumerate(actors)])
    )


def by_dask(train: Callable[[], Any], client: Any) -> list[Any]:
    """The results of a function on each worker of a Dask client, which has one GPU."""
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    address = client.submit(own_address, workers=workers[:1], pure=False).result()
    futures = [
        client.submit(joined, train, k, len(workers), address, workers=[worker], pure=False)
        for k, worker in enumerate(workers)
    ]
    return list(client.gather(futures))


def train() -> tuple[int, float]:
    """A short training run: the number of ranks, and the loss at the end."""
    x = np.random.default_rng(0).normal(size=(256, 4)).astype(np.float32)
    data = gg.data.Arrays(x, (x[:, 0] > 0).astype(np.int64))
    gg.set_seed(0)
    model = gg.nn.Sequential(gg.nn.Dense(4, 16, activation=gg.tanh), gg.nn.Dense(16, 2))
    optimizer = gg.distributed.Optimizer(gg.optim.AdamW(0.02), model)
    loader = gg.data.DataLoader(data, 32, shuffle=True, shard=True)
    step = (model, lambda y, labels: gg.mean(gg.sparse_softmax_cross_entropy(y, labels)))
    run = gg.train.fit(step, loader, 3, optimizer=optimizer, progress=False)
    return gg.distributed.size(), run.logs["loss"]


def main(argv: list[str] | None = None) -> int:
    """Start the ranks; returns 0, or 2 for an error that the user can fix."""
    how: Any = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("by", choices=("ray", "dask"))
    parser.add_argument("--ranks", type=int, default=2, help="processes (2)")
    parser.add_argument("--scheduler", help="address of Dask's scheduler; a cluster of its own")
    args = parser.parse_args(argv)
    try:
        if args.by == "ray":
            results = by_ray(train, args.ranks)
        else:
            dask = library("distributed")
            own = {"n_workers": args.ranks, "threads_per_worker": 1, "dashboard_address": None}
            with dask.Client(args.scheduler, **({} if args.scheduler else own)) as client:
                results = by_dask(train, client)
    except (UsageError, GpugradError) as error:
        print(f"launch: {error}", file=sys.stderr)
        return 2
    for rank, (size, loss) in enumerate(results):
        print(f"rank {rank} of {size}: loss {loss:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
