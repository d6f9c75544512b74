"""One Adam step of an MLP 784-512-256-10 at batch 128 on the CPU, beside torch on as many threads.

python ci/bench/mlp.py [--threads N]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of both (all)")
parser.add_argument("--rounds", type=int, default=60, help="rounds to take medians of (60)")
args = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(args.threads)  # before NumPy and torch are imported
# torch's idle threads must not spin on the core that the next contestant needs, nor be kept from
# it: on two cores its step took five times as long beside ours as alone
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GPUGRAD_DEVICE", "cpu")

import numpy as np
from peers import installed, race, table

import gpugrad as gg

SIZES, BATCH = (784, 512, 256, 10), 128


def contestants() -> dict[str, object]:
    """The same step with the same numbers of weights, gpugrad's and each installed peer's."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH, SIZES[0])).astype(np.float32)
    labels = rng.integers(0, SIZES[-1], BATCH)

    model = gg.nn.Sequential(
        gg.nn.Dense(784, 512, activation=gg.relu),
        gg.nn.Dense(512, 256, activation=gg.relu),
        gg.nn.Dense(256, 10),
    )
    optimizer = gg.optim.Adam(learning_rate=1e-3)
    gx, gl = gg.asarray(x), gg.asarray(labels)
    variables = model.trainable_variables

    def ours():
        with gg.GradientTape() as tape:
            loss = gg.mean(gg.sparse_softmax_cross_entropy(model(gx), gl))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    found = {"gpugrad": ours}
    if installed("torch"):
        import torch

        torch.set_num_threads(args.threads)

        def with_torch(**options):
            layers = []
            for i, o in itertools.pairwise(SIZES):
                layers += [torch.nn.Linear(i, o), torch.nn.ReLU()]
            net = torch.nn.Sequential(*layers[:-1])
            adam = torch.optim.Adam(net.parameters(), lr=1e-3, **options)
            tx, tl = torch.from_numpy(x), torch.from_numpy(labels)

            def step():
                adam.zero_grad()
                loss = torch.nn.functional.cross_entropy(net(tx), tl)
                loss.backward()
                adam.step()
                return loss

            return step

        found["torch, default Adam"] = with_torch()
        found["torch, fused Adam"] = with_torch(fused=True)
    return found


def main() -> int:
    """Print the table."""
    title = f"MLP {'-'.join(map(str, SIZES))}, batch {BATCH}, Adam step, {args.threads} threads"
    table(title, race(contestants(), rounds=args.rounds), {"torch, default Adam": 1.0})
    return 0


if __name__ == "__main__":
    sys.exit(main())
