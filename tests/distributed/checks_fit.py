"""Checks of data, layers and `fit` over ranks."""

import os
import pickle
import subprocess
import sys
import tempfile

import numpy as np
from common import D, W, parts

import gpugrad as gg


def check_loaders_cut_the_batches_of_one_process():
    whole = gg.data.DataLoader(range(20), 6, shuffle=True)
    own = gg.data.DataLoader(range(20), 6, shuffle=True, shard=True)
    for _ in range(2):
        batches, mine = [b.tolist() for b in whole], [b.tolist() for b in own]
        everyone = W.gather(mine)
        joined = [[i for m in everyone for i in m[k]] for k in range(len(batches))]
        assert joined == batches
    few = gg.data.DataLoader(gg.data.Arrays(np.ones((3 * W.size - 1, 3))), 2 * W.size, shard=True)
    shapes = [b[0].shape if isinstance(b, tuple) else b.shape for b in few]
    full, last = (*shapes, (0, 3))[:2]  # one rank has no second batch
    assert full == (2, 3)
    assert last[1:] == (3,)
    assert sum(W.gather(last[0])) == W.size - 1


def fitted(folder, epochs, alone=False, stop_after=None):
    """A run of `fit` with everything that ranks must agree on."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(37, 4))
    data = gg.data.Arrays(x, (x[:, 0] > 0).astype(int))
    gg.set_seed(1)
    layers = (
        gg.nn.Dense(4, 8, activation=gg.tanh, dtype="float64"),
        gg.nn.Dense(8, 2, dtype="float64"),
    )
    net = gg.nn.Sequential(*layers)
    optimizer = gg.optim.Adam(0.02)
    optimizer = optimizer if alone else D.Optimizer(optimizer, net)
    loader = gg.data.DataLoader(data, 6, shuffle=True, shard=not alone)
    held = gg.data.DataLoader(data, 10, shard=not alone)

    class Stop(gg.train.Callback):
        def end_of_step(self, run):
            if stop_after == run.step and W.rank == W.size - 1:
                run.interrupted = True  # as a signal of this rank's own

    saves = gg.train.Checkpoints(folder, model=net, optimizer=optimizer, loader=loader)
    run = gg.train.fit(
        (net, lambda y, labels: gg.mean(gg.sparse_softmax_cross_entropy(y, labels))),
        loader, epochs, optimizer=optimizer, metrics=[gg.train.Accuracy()], validation=held,
        callbacks=[saves, Stop(), gg.train.JSONLog(f"{folder}/log.jsonl")], progress=False,
    )  # fmt: skip
    return run, [v.numpy() for v in net.variables]


def check_fit_is_that_of_one_process_and_resumes():
    folders = W.gather(tempfile.mkdtemp())
    one, right = fitted(folders[W.rank], 3, alone=True) if W.size == 1 else (None, None)
    if W.size > 1:
        one, right = W.gather(alone_elsewhere(folders[0]) if W.rank == 0 else None)[0]
    else:
        one = one.history
    shared = W.gather(tempfile.mkdtemp())[0]
    first, _ = fitted(shared, 3, stop_after=9)
    assert first.interrupted
    assert first.step == 9
    run, weights = fitted(shared, 3)
    assert max(np.abs(a - b).max() for a, b in zip(weights, right, strict=True)) < 1e-10
    assert len(set(W.gather(weights[0].tobytes()))) == 1
    for a, b in zip(run.history, one, strict=True):
        for name in b:
            assert name == "seconds" or abs(a[name] - b[name]) < 1e-9, (name, a, b)
    if W.rank == 0:
        with open(f"{shared}/log.jsonl") as file:
            assert len(file.readlines()) == 3


def alone_elsewhere(folder):
    """The history and weights of one process, by a process that no launcher has started."""
    code = (
        "import pickle, sys; sys.argv = ['--alone']; import checks_fit\n"
        f"run, w = checks_fit.fitted({folder!r}, 3, alone=True)\n"
        f"pickle.dump((run.history, w), open({folder!r} + '/result', 'wb'))"
    )
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "MPI", "HYD"))}
    clean["GPUGRAD_DEVICE"] = "cpu"
    subprocess.run(
        [sys.executable, "-c", code], env=clean, cwd=os.path.dirname(__file__), check=True
    )
    with open(f"{folder}/result", "rb") as file:
        return pickle.load(file)


def check_batch_norm_over_ranks_is_that_of_the_whole_batch():
    x = np.random.default_rng(0).normal(size=(6 * W.size, 3)) * 2 + 5
    mine = gg.constant(x[slice(*parts(len(x)))])
    whole = gg.nn.BatchNorm(3, dtype="float64")
    layer = D.convert(gg.nn.Sequential(gg.nn.BatchNorm(3, dtype="float64")))

    def loss(y):
        return gg.sum(gg.sin(y) * y)

    with gg.nn.training():
        one, gradient = gg.value_and_grad(lambda t: loss(whole(t)))(gg.constant(x))
        own, mine_gradient = gg.value_and_grad(lambda t: loss(layer(t)))(mine)
    assert abs(sum(W.gather(float(own))) - float(one)) < 1e-9
    assert np.allclose(mine_gradient.numpy(), gradient.numpy()[slice(*parts(len(x)))], atol=1e-10)
    for a, b in (
        (layer[0].running_mean, whole.running_mean),
        (layer[0].running_var, whole.running_var),
    ):
        assert np.allclose(a.numpy(), b.numpy())


def check_running_statistics_are_averaged_when_validated():
    x = np.random.default_rng(W.rank).normal(size=(8, 3)) + W.rank
    data = gg.data.Arrays(x, np.zeros(8, int))
    net = gg.nn.Sequential(gg.nn.BatchNorm(3, dtype="float64"), gg.nn.Dense(3, 2, dtype="float64"))
    optimizer = D.Optimizer(gg.optim.SGD(0.1), net)
    loss = net, lambda y, labels: gg.mean(gg.sparse_softmax_cross_entropy(y, labels))
    loader, seen = gg.data.DataLoader(data, 8), []

    class Seen(gg.train.Callback):
        def end_of_step(self, run):
            seen.append(net[0].running_mean.numpy())

    gg.train.fit(
        loss, loader, 1, optimizer=optimizer, validation=loader, callbacks=[Seen()], progress=False
    )
    right = sum(W.gather(seen[0])) / W.size
    assert np.allclose(net[0].running_mean.numpy(), right, atol=1e-12)
    assert W.size == 1 or not np.allclose(seen[0], right)
