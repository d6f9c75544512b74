"""Checks that each of several ranks runs: ``mpiexec -n 2 python ranks.py RESULTS CHECK...``.

A check is a function whose name begins with ``check_``. Rank 0 writes what failed, by name, as
JSON. With ``--gpu ADDRESS RANK SIZE`` the ranks have made-up GPUs and meet at an address.
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
import warnings
import zlib

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"

ON_GPUS = "--gpu" in sys.argv
if ON_GPUS:
    at = sys.argv.index("--gpu")
    host, RANK, SIZE = sys.argv[at + 1 : at + 4]
    del sys.argv[at : at + 4]
    from gpugrad.testing.cuda.driver import place

    os.environ["GPUGRAD_DEVICE"] = "cuda:0"
    place.activate()
    join = {"address": host, "rank": int(RANK), "size": int(SIZE), "local_rank": 0}
else:
    join = {}

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import gpugrad as gg  # noqa: E402

D = gg.distributed
warnings.simplefilter("ignore")


# ---- ops


def check_ops_by_their_records():
    for name in ("all_reduce", "all_reduce_extremum", "all_gather", "reduce_scatter", "broadcast",
                 "all_to_all"):  # fmt: skip
        checks = [c for c in gg.testing.ops.CHECKS if c != "documentation"]  # for one process
        gg.testing.check_op(name, checks=checks)


def check_gradients_against_differences_over_ranks():
    r, n = W.rank, W.size
    x0 = np.random.default_rng(100 + r).normal(size=(2 * n, 3))
    weights = gg.constant(np.random.default_rng(7 + r).normal(size=(2 * n * n, 3)))

    def loss(x):
        a, b = D.all_reduce(x, "mean"), D.all_gather(gg.tanh(x))
        c, d = D.reduce_scatter(x * x), D.all_to_all(gg.sin(x))
        e = D.broadcast(x**2, root=n - 1)
        terms = gg.sin(a) * weights[: 2 * n], b * weights, c * c * (r + 1), d * weights[: 2 * n], e
        return sum(gg.sum(t) for t in terms)

    gradient = gg.grad(loss)(gg.constant(x0)).numpy()
    for who in range(n):
        for i in range(2 * n):
            values = []
            for step in (1e-5, -1e-5):
                x = x0.copy()
                x[i, 1] += step * (r == who)
                values.append(sum(W.gather(float(loss(gg.constant(x))))))
            if r == who:
                assert abs((values[0] - values[1]) / 2e-5 - gradient[i, 1]) < 1e-7


def check_traced_collectives_run_once_a_call_and_keep_their_order():
    @gg.function
    def f(x):
        first = gg.sum(D.all_reduce(x)) * 0  # no pass drops it
        return gg.sum(D.all_gather(x)) + D.all_reduce(x)[0] - D.all_reduce(x)[0] + first

    x = gg.constant(np.arange(4.0) + W.rank)
    for _ in range(3):
        before = W.collectives
        assert float(f(x)) == sum(6 + 4 * r for r in range(W.size))
        assert (
            ON_GPUS or W.size == 1 or W.collectives - before == 4
        )  # a launch of a CUDA graph counts none


def several(*checks):
    """Checks that mean something among several ranks only."""
    return checks if W.size > 1 else ()


def check_bad_arguments_name_the_op_before_anything_is_sent():
    before = W.collectives
    for error, words, call in (
        (
            RuntimeError,
            "is on cpu|before",
            lambda: D.all_reduce(np.ones(2)) if ON_GPUS else D.init(),
        ),
        *several((ValueError, "multiple", lambda: D.reduce_scatter(np.ones(2 * W.size + 1)))),
        (IndexError, "axis 1", lambda: D.all_gather(np.ones(3), axis=1)),
        (ValueError, "root=9", lambda: D.broadcast(np.ones(3), root=9)),
        (TypeError, "mean", lambda: D.all_reduce(np.ones(3, int), "mean")),
        (ValueError, "reduction", lambda: D.all_reduce(np.ones(3), "product")),
        (RuntimeError, "called before", D.init),
    ):
        with pytest.raises(error, match=words):
            call()
    assert W.collectives == before


def check_all_dtypes_empty_arrays_and_views():
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "int32", "uint8"):
        x = gg.astype(gg.constant(np.arange(2 * W.size) % 3), dtype)
        total = D.all_reduce(x)
        assert total.dtype == x.dtype
        assert (gg.astype(total, "complex64") == gg.astype(x, "complex64") * W.size).all()
        assert D.all_gather(x).shape == (2 * W.size**2,)
    assert D.all_reduce(gg.ones((0, 3))).shape == (0, 3)
    assert D.all_gather(gg.ones((0, 3))).shape == (0, 3)
    turned = gg.constant(np.arange(6.0).reshape(2, 3)).T
    assert (D.all_reduce(turned, "mean") == turned).all()


# ---- training


def parts(n):
    return n * W.rank // W.size, n * (W.rank + 1) // W.size


def model():
    rng = np.random.default_rng(0)
    shapes = {"rows": (20, 6), "w": (6, 16), "b": (16,), "out": (16, 20), "unused": (3,)}
    return {k: gg.Variable(rng.normal(size=s) * 0.3, name=k) for k, s in shapes.items()}


def loss_of(m, x, y):
    h = gg.tanh(gg.gather(m["rows"], x) @ m["w"] + m["b"])
    return gg.mean(gg.sparse_softmax_cross_entropy(h @ m["out"], y))


def train(make, alone=False, traced=False, weighted=False, scaled=False, steps=10, **options):
    """Weights after some steps, of one process on whole batches or of all ranks on their parts."""
    m = model()
    if "shard" in options:
        del m["unused"]
    variables = list(m.values())
    optimizer = make()
    if scaled:
        optimizer = gg.optim.LossScaleOptimizer(optimizer)
    if not alone:
        optimizer = D.Optimizer(optimizer, variables, bucket_bytes=700, **options)

    def step(x, y, n):
        with gg.GradientTape() as tape:
            loss = loss_of(m, x, y)
            target = optimizer.scale_loss(loss) if scaled else loss
        pairs = [
            p
            for p in zip(tape.gradient(target, variables), variables, strict=True)
            if p[0] is not None
        ]
        optimizer.apply_gradients(pairs, **({"weight": n} if weighted and not alone else {}))
        return loss

    call, rng = gg.function(step) if traced else step, np.random.default_rng(5)
    for k in range(steps):
        batch = rng.integers(0, 20, size=(2, 12 + (k if weighted else 0)))
        if not alone:
            batch = batch[:, slice(*parts(batch.shape[1]))]
        n = gg.constant(float(batch.shape[1]), "float64") if traced else batch.shape[1]
        call(gg.constant(batch[0]), gg.constant(batch[1]), n)
    return [v.numpy() for v in variables]


def like_one_process(make, traced=False, **how):
    one = train(make, alone=True, **how)  # which ignores options of distributed.Optimizer
    before = W.collectives
    ranks = train(make, traced=traced, **how)
    assert W.collectives > before or W.size == 1
    assert max(np.abs(a - b).max() for a, b in zip(one, ranks, strict=True)) < 1e-10
    assert len(set(W.gather(zlib.crc32(b"".join(a.tobytes() for a in ranks))))) == 1


def adam(**options):
    return lambda: gg.optim.Adam(1e-2, global_clipnorm=0.5, **options)


def check_eager_steps_are_those_of_one_process():
    like_one_process(adam())


def check_traced_steps_are_those_of_one_process():
    like_one_process(adam(), traced=True)


def check_accumulated_steps_are_those_of_one_process():
    like_one_process(adam(accumulate=2))
    like_one_process(adam(accumulate=2), traced=True)


def check_scaled_losses_are_those_of_one_process():
    like_one_process(adam(), scaled=True)
    like_one_process(adam(), scaled=True, traced=True)


def check_uneven_batches_are_exact_by_their_weights():
    like_one_process(adam(), weighted=True)
    like_one_process(adam(), weighted=True, traced=True)


def check_sparse_gradients_are_those_of_one_process():
    like_one_process(lambda: gg.optim.SGD(0.1))
    like_one_process(lambda: gg.optim.Adagrad(0.1))


def check_sharded_steps_and_states_are_those_of_one_process():
    groups = [(lambda name, v: v.ndim > 1, {"weight_decay": 0.1})]
    for make in (
        lambda: gg.optim.AdamW(1e-2, groups=groups, global_clipnorm=0.5, skip_nonfinite=True),
        lambda: gg.optim.LAMB(1e-2),
        lambda: gg.optim.Muon(1e-2),
    ):
        for traced in (False, True):
            like_one_process(make, traced=traced, shard="optimizer")


def check_sharded_states_load_at_any_number_of_ranks():
    rng = np.random.default_rng(0)
    values = [rng.normal(size=s) for s in ((5, 3), (4,), (7,))]
    grads = [[gg.constant(rng.normal(size=v.shape)) for v in values] for _ in range(4)]

    def run(first, second):
        variables = [gg.Variable(v, name=f"v{k}") for k, v in enumerate(values)]
        state = None
        for wrapped, part in ((first, grads[:2]), (second, grads[2:])):
            optimizer = gg.optim.AdamW(0.1)
            if wrapped:
                optimizer = D.Optimizer(optimizer, variables, shard=wrapped[0])
            names = {v.name: v for v in variables}
            if state is not None:
                optimizer.load_state_dict(state, names)
            for gs in part:
                optimizer.apply_gradients(zip(gs, variables, strict=True))
            state = optimizer.state_dict(names)
        return [v.numpy() for v in variables], state

    one, state = run(None, None)
    for ways in ((["optimizer"], None), (None, ["optimizer"]), (["optimizer"], ["optimizer"])):
        got, other = run(*ways)
        assert max(np.abs(a - b).max() for a, b in zip(one, got, strict=True)) < 1e-12
        assert state.keys() == other.keys()
        for key, value in state.items():
            assert np.allclose(value.numpy(), other[key].numpy(), atol=1e-12), key


def check_weights_of_accumulated_steps_count_examples():
    v = gg.Variable(np.zeros(1))
    optimizer = D.Optimizer(gg.optim.SGD(1.0, accumulate=2), [v])
    gradients, weights = [1.0 + W.rank, 5.0 - W.rank], [1 + W.rank, 3]
    for g, n in zip(gradients, weights, strict=True):
        optimizer.apply_gradients([(gg.constant([g], "float64"), v)], weight=n)
    total = sum(W.gather(sum(weights)))
    mean = sum(W.gather(sum(g * n for g, n in zip(gradients, weights, strict=True)))) / total
    assert abs(v.numpy()[0] + mean) < 1e-12


def check_ranks_without_data_or_gradients_take_the_same_step():
    v, w, u = (gg.Variable(np.zeros(2)) for _ in range(3))
    optimizer = D.Optimizer(gg.optim.SGD(1.0), [v, w, u])
    nan = gg.constant([np.nan, np.inf], "float64")
    if W.rank:  # without data: whatever it has does not count
        optimizer.apply_gradients([(nan, v)] if W.rank % 2 else [], weight=0)
    else:
        optimizer.apply_gradients([(gg.constant([1.0, 2.0], "float64"), v)], weight=3)
    assert (v.numpy() == [-1, -2]).all()
    optimizer.apply_gradients([(gg.ones(2, dtype="float64"), w)] if W.rank == 0 else [])
    assert np.allclose(w.numpy(), -1 / W.size)
    assert (u.numpy() == 0).all()
    assert optimizer.iterations == 2
    sharded = D.Optimizer(gg.optim.SGD(1.0), [v], shard="optimizer")
    sums = D.Optimizer(gg.optim.SGD(1.0, accumulate=1), [v])
    for refused, pairs in (
        (optimizer, []),
        (optimizer, [(nan, v)]),
        (sharded, [(nan, v)]),
        (sums, []),
    ):
        with pytest.raises(ValueError, match="no rank has data"):
            refused.apply_gradients(pairs, weight=0)
    assert (v.numpy() == [-1, -2]).all()


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
        "import pickle, sys; sys.argv = ['ranks']; import ranks; import gpugrad as gg\n"
        "ranks.W = gg.distributed.init(rank=0, size=1)\n"
        f"run, w = ranks.fitted({folder!r}, 3, alone=True)\n"
        f"pickle.dump((run.history, w), open({folder!r} + '/result', 'wb'))"
    )
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "MPI", "HYD"))}
    clean["GPUGRAD_DEVICE"] = "cpu"
    subprocess.run(
        [sys.executable, "-c", code], env=clean, cwd=os.path.dirname(__file__), check=True
    )
    with open(f"{folder}/result", "rb") as file:
        return pickle.load(file)


def check_compressed_gradients_are_rounded_once():
    v = gg.Variable(np.zeros(3, "float32"))
    optimizer = D.Optimizer(gg.optim.SGD(1.0), [v], compress="bfloat16")
    g = np.float32([1.0, 0.1, 1e-20])
    optimizer.apply_gradients([(gg.constant(g), v)])
    assert np.allclose(-v.numpy(), g, rtol=2**-7)


def check_one_rank_that_traces_anew_stays_in_step():
    v = gg.Variable(np.zeros(3))
    optimizer = D.Optimizer(gg.optim.SGD(1.0), [v])

    @gg.function
    def step(x):
        with gg.GradientTape() as tape:
            loss = gg.sum(gg.mean(x, axis=0) * v)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        return loss

    right = 0.0
    for k in range(5):
        rows = 2 if k in (2, 4) and W.rank == 0 else 4
        before = W.collectives
        step(gg.constant(np.full((rows, 3), k + 1.0 + W.rank)))
        right += k + 1 + (W.size - 1) / 2
        assert ON_GPUS or W.size == 1 or W.collectives - before == 2
        assert np.allclose(v.numpy(), -right)


def check_nan_on_one_rank_is_skipped_by_all():
    skip_nans(gg.optim.Adam(0.1, skip_nonfinite=True))
    skip_nans(gg.optim.LossScaleOptimizer(gg.optim.Adam(0.1), initial_scale=8.0))


def skip_nans(inner):
    v = gg.Variable(np.ones(3))
    optimizer, rng = D.Optimizer(inner, [v]), np.random.default_rng(0)

    def step(x):
        with gg.GradientTape() as tape:
            loss = gg.sum(x * v * v)
            if isinstance(optimizer.inner, gg.optim.LossScaleOptimizer):
                loss = optimizer.scale_loss(loss)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])

    traced, skipped = gg.function(step), 0
    for _ in range(30):
        bad, by = rng.random() < 0.3, rng.integers(W.size)
        skipped += bad
        x = gg.constant(np.full(3, np.nan if bad and by == W.rank else 1.0))
        (traced if rng.random() < 0.5 else step)(x)
    assert optimizer.skipped == skipped
    assert optimizer.iterations == 30 - skipped
    assert len(set(W.gather(v.numpy().tobytes()))) == 1
    assert np.isfinite(v.numpy()).all()


def check_a_condition_of_one_rank_is_that_of_all():
    v = gg.Variable(np.zeros(2))
    optimizer = D.Optimizer(gg.optim.SGD(1.0), [v])
    g = gg.ones(2, dtype="float64")
    optimizer.apply_gradients([(g, v)], when=W.rank > 0)
    assert (v.numpy() == 0).all()

    @gg.function
    def step(when):
        optimizer.apply_gradients([(g, v)], when=when)

    step(gg.constant(W.rank > 0))
    assert (v.numpy() == 0).all()
    step(gg.constant(True))
    assert (v.numpy() == -1).all()


def check_models_that_differ_are_named():
    for shape, words in several(((2, W.rank + 1), "Variable 0"), ((2, 1), "missing")):
        variables = [gg.Variable(np.zeros(shape))]
        if words == "missing" and W.rank:
            variables.append(gg.Variable(np.zeros(1)))
        with pytest.raises(gg.errors.DistributedError, match=words):
            D.Optimizer(gg.optim.SGD(0.1), variables)


def check_values_of_rank_0_and_own_random_numbers():
    gg.set_seed(3)
    v = gg.Variable(np.full(3, float(W.rank)))
    D.Optimizer(gg.optim.SGD(0.1), [v])
    assert (v.numpy() == 0).all()
    assert len(set(W.gather(float(gg.random.normal(()))))) == W.size


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


def main():
    global W
    W = D.init(30, **join)
    results, *names = sys.argv[1:]
    failed = {}
    for name in names or [k for k in globals() if k.startswith("check_")]:
        try:
            globals()[name]()
            error = None
        except (Exception, pytest.fail.Exception):
            error = traceback.format_exc()
        errors = [e for e in W.gather(error) if e]
        failed[name] = errors[0] if errors else None
    if W.rank == 0:
        with open(results, "w") as file:
            json.dump(failed, file)


if __name__ == "__main__":
    main()
