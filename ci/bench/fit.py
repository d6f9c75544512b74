"""`gg.train.fit` of (model, loss), against the same loop by hand and torch's, on a CPU.

python ci/bench/fit.py [--threads N] [--rounds N] [--small] [--json PATH]

Five epochs of Adam steps of an MLP over shuffled batches. By hand it is a traced step and a loop
that reads the loss as often as `fit` does. Each contestant traces or builds its step anew, as a new
training run does.
"""

from __future__ import annotations

from typing import Any

from peers import installed, options, parse_args, race, status, table

parser = options(__doc__, rounds=20, threads=1)
args = parse_args(parser)

import numpy as np

import gpugrad as gg

EPOCHS = 5
EXAMPLES, BATCH, LOG_EVERY = (512 if args.small else 4096), 128, 10
X = np.random.default_rng(0).standard_normal((EXAMPLES, 64)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, 10, EXAMPLES)


def contestants(width: int) -> dict[str, Any]:
    """The epochs with one hidden layer of that width."""
    runs = {"gpugrad": by_fit(width), "gpugrad, by hand": by_hand(width)}
    if installed("torch"):
        runs["torch, by hand"] = with_torch(width)
    return runs


def _loss(logits: Any, labels: Any) -> Any:
    return gg.mean(gg.sparse_softmax_cross_entropy(logits, labels))


def parts(width: int) -> tuple[Any, Any, Any]:
    """The model, its optimizer and the batches."""
    model = gg.nn.Sequential(gg.nn.Dense(64, width), gg.tanh, gg.nn.Dense(width, 10))
    data = gg.data.DataLoader(gg.data.Arrays(X, Y), batch_size=BATCH, shuffle=True)
    return model, gg.optim.Adam(1e-3), data


def by_fit(width: int) -> Any:
    model, optimizer, data = parts(width)
    pair = (model, _loss)
    return lambda: gg.train.fit(
        pair, data, EPOCHS, optimizer=optimizer, progress=False, log_every=LOG_EVERY
    )


def by_hand(width: int) -> Any:
    model, optimizer, data = parts(width)

    def train() -> None:
        @gg.function
        def step(x, y):
            with gg.GradientTape() as tape:
                loss = _loss(model(x), y)
            optimizer.minimize(loss, model.trainable_variables, tape=tape)
            return loss

        for _ in range(EPOCHS):
            for k, (x, y) in enumerate(data):
                loss = step(x, y)
                if k % LOG_EVERY == 0:
                    float(loss)

    return train


def with_torch(width: int) -> Any:
    import torch as t

    t.set_num_threads(args.threads)
    model = t.nn.Sequential(t.nn.Linear(64, width), t.nn.Tanh(), t.nn.Linear(width, 10))
    optimizer = t.optim.Adam(model.parameters(), 1e-3)
    arrays = t.utils.data.TensorDataset(t.from_numpy(X), t.from_numpy(Y))
    data = t.utils.data.DataLoader(arrays, batch_size=BATCH, shuffle=True)

    def train() -> None:
        for _ in range(EPOCHS):
            for k, (x, y) in enumerate(data):
                optimizer.zero_grad()
                loss = t.nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                if k % LOG_EVERY == 0:
                    loss.item()

    return train


if __name__ == "__main__":
    good = True
    for width in (32, 256):
        title = f"{EPOCHS * EXAMPLES // BATCH} Adam steps of an MLP 64-{width}-10, batch {BATCH}"
        good &= table(title, race(contestants(width), args.rounds), {"gpugrad, by hand": 1.1})
    raise SystemExit(status(good))
