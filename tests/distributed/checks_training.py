"""Checks of steps with means over ranks, on each rank."""

import zlib

import numpy as np
import pytest
from common import ON_GPUS, STEPS, D, W, adam, like_one_process

import gpugrad as gg
from gpugrad.testing.cuda import driver


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


def check_rows_are_gathered_where_that_is_fewer_bytes():
    rng = np.random.default_rng(W.rank)
    few, many = (gg.constant(rng.integers(0, 50, size=n + W.rank)) for n in (3, 400))
    sent, before = [], W.run
    W.run = lambda text, *call: (sent.append(text), before(text, *call))[1]
    kinds = {"rows": few, "dense": many, "mixed": few, "one": few if W.rank == 0 else None}
    try:
        for kind, indices in kinds.items():
            for traced in (False, True) if kind in ("rows", "dense") else (False,):
                v = gg.Variable(np.zeros((50, 4)), name="table")
                optimizer = D.Optimizer(gg.optim.SGD(1.0), [v])
                mine, g = np.zeros((50, 4)), []
                if indices is not None:
                    np.add.at(mine, indices.numpy(), 1.0 + W.rank)
                    values = gg.full((indices.size, 4), 1.0 + W.rank, dtype="float64")
                    g = [gg.IndexedSlices(values, indices, v.shape)]
                if kind == "mixed" and W.rank == W.size - 1:
                    g = [gg.constant(mine)]

                def step(values, indices, v=v, optimizer=optimizer):
                    optimizer.apply_gradients([(gg.IndexedSlices(values, indices, v.shape), v)])

                sent.clear()
                if traced:
                    gg.function(step)(g[0].values, g[0].indices)
                else:
                    optimizer.apply_gradients([(one, v) for one in g])
                whole = [text for text in sent if "float64[50, 4]" in text]
                dense = kind in ("dense", "mixed") or (traced and ON_GPUS)  # nobody reads lengths
                assert W.size == 1 or bool(whole) == dense, (kind, sent)
                assert np.allclose(v.numpy(), -sum(W.gather(mine)) / W.size), (kind, traced)
    finally:
        W.run = before


def check_weights_of_0_count_in_no_kind_of_step():
    """The values of a rank without data never matter, and a world without data raises."""
    for traced, shard, accumulate in (
        (False, None, 1),
        (True, None, 1),
        (False, "optimizer", 1),
        (True, "optimizer", 1),
        (False, None, 2),
    ):
        v = gg.Variable(np.zeros(5))
        inner = gg.optim.SGD(1.0, accumulate=accumulate)
        optimizer = D.Optimizer(inner, [v], shard=shard)

        def step(g, weight, v=v, optimizer=optimizer):
            optimizer.apply_gradients([(g, v)], weight=weight)

        step = gg.function(step) if traced else step

        def call(g, weight, step=step, traced=traced, times=accumulate):
            for _ in range(times):
                step(g, gg.constant(weight, "float64") if traced else weight)

        about, nan = (traced, shard, accumulate), gg.constant(np.full(5, np.nan))
        g = gg.ones(5, dtype="float64")
        call(*((g, 3.0) if W.rank == 0 else (nan, 0.0)))  # one rank has data
        assert (v.numpy() == -1).all(), about
        if not (traced and ON_GPUS):
            with pytest.raises(ValueError, match="no rank has data"):
                call(nan, 0.0)
            assert (v.numpy() == -1).all(), about
        call(g, 2.0)
        assert (v.numpy() == -2).all(), about
        for weight in (-1, np.inf, np.nan, "many"):
            with pytest.raises(ValueError, match="weight"):
                optimizer.apply_gradients([(g, v)], weight=weight)


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


def check_gradients_of_all_dtypes_empty_and_strided():
    for dtype in ("float16", "complex64", *([] if ON_GPUS else ["bfloat16", "complex128"])):
        number = 1 + 2j if dtype.startswith("c") else 1.0
        for shard in (None, "optimizer"):
            v, empty = (gg.Variable(gg.zeros(s, dtype=dtype)) for s in ((4, 2), (0, 3)))
            optimizer = D.Optimizer(gg.optim.SGD(1.0), [v, empty], shard=shard)
            turned = np.arange(8.0).reshape(2, 4).T * number
            g = gg.astype(gg.constant(turned * (1 + W.rank)), dtype)
            optimizer.apply_gradients([(g, v), (gg.zeros((0, 3), dtype=dtype), empty)])
            mean = (1 + (W.size - 1) / 2) * turned
            tolerance = 2**-6 if v.dtype.itemsize == 2 else 1e-6
            assert np.allclose(-v.numpy().astype(mean.dtype), mean, rtol=tolerance), (dtype, shard)


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


def check_models_that_differ_are_named(monkeypatch=pytest.MonkeyPatch):
    v, w = np.zeros((2, 1)), np.zeros(1)
    for others, words in (
        ([np.zeros((2, 3))], "Variable 0"),  # another shape
        ([v.astype("float32")], "Variable 0"),  # another dtype
        ([w, v], "Variable 0"),  # another order
        ([v, w, w], "missing"),
    ):
        values = [v, w] if W.rank == 0 or W.size == 1 else others
        variables = [gg.Variable(value) for value in values]
        if W.size > 1:
            with pytest.raises(gg.errors.DistributedError, match=words):
                D.Optimizer(gg.optim.SGD(0.1), variables)
    with monkeypatch.context() as patched:
        patched.setattr(gg, "__version__", f"1.{W.rank}")
        if W.size > 1:
            with pytest.raises(gg.errors.DistributedError, match="different versions"):
                D.Optimizer(gg.optim.SGD(0.1), [gg.Variable(v)])


def check_values_of_rank_0_and_own_random_numbers():
    gg.set_seed(3)
    v = gg.Variable(np.full(3, float(W.rank)))
    D.Optimizer(gg.optim.SGD(0.1), [v])
    assert (v.numpy() == 0).all()
    assert len(set(W.gather(float(gg.random.normal(()))))) == W.size


def check_random_faults_of_data_on_one_rank_keep_all_in_step():
    """NaNs, other lengths, no data, other dtypes and skipped steps of one rank, at random."""
    rng, v = np.random.default_rng(1), {}
    for who in ("ranks", "one"):
        v[who] = [gg.Variable(np.zeros((6, 3))), gg.Variable(np.ones(3))]
    one = gg.optim.Adam(0.1, skip_nonfinite=True)
    optimizer = D.Optimizer(gg.optim.Adam(0.1, skip_nonfinite=True), v["ranks"], bucket_bytes=100)

    def loss(table, w, rows, x):
        return gg.mean(gg.sum(gg.gather(table, rows) * x + gg.tanh(x * w), axis=1))

    def step(rows, x, weight):
        with gg.GradientTape() as tape:
            value = loss(*v["ranks"], rows, gg.astype(x, "float64"))
        pairs = zip(tape.gradient(value, v["ranks"]), v["ranks"], strict=True)
        optimizer.apply_gradients(pairs, weight=weight)

    traced = gg.function(step)
    for k in range(STEPS):
        by, n = rng.integers(W.size), int(rng.integers(1, 6))
        kind = rng.choice(["none", "nan", "short", "empty", "dtype", "eager", "skip"])
        rows, x = rng.integers(0, 6, size=(W.size, n)), rng.normal(size=(W.size, n, 3))
        x[by, 0, 0] = np.nan if kind == "nan" else x[by, 0, 0]
        x = x.astype("float32").astype("float64") if kind == "dtype" else x
        lengths = [n - (r == by and kind == "short" and n > 1) for r in range(W.size)]
        lengths[by] = 0 if kind == "empty" and W.size > 1 else lengths[by]
        m, mine = lengths[W.rank], W.rank == by
        dtype = "float32" if mine and kind == "dtype" else "float64"
        own = gg.constant(rows[W.rank, :m]), gg.constant(x[W.rank, :m].astype(dtype))
        skips = kind == "skip" and (ON_GPUS or k % 2)
        if not m:
            optimizer.apply_gradients([], weight=0)
        elif skips:  # all are eager, since a traced step cannot skip by itself
            optimizer.apply_gradients(
                [(gg.ones(u.shape, dtype="float64"), u) for u in v["ranks"]], when=not mine
            )
        else:
            (step if mine and kind == "eager" else traced)(*own, m)
        everything = [np.concatenate([a[r, :j] for r, j in enumerate(lengths)]) for a in (rows, x)]
        with gg.GradientTape() as tape:
            value = loss(*v["one"], *map(gg.constant, everything))
        pairs = zip(tape.gradient(value, v["one"]), v["one"], strict=True)
        one.apply_gradients(pairs, when=not skips)
        for a, b in zip(v["ranks"], v["one"], strict=True):
            assert np.abs(a.numpy() - b.numpy()).max() < 1e-9, (k, kind, by)
        digest = zlib.crc32(b"".join(u.numpy().tobytes() for u in v["ranks"]))
        assert len(set(W.gather((digest, W.collectives)))) == 1 or ON_GPUS, (k, kind, by)


def check_buckets_start_as_early_as_their_gradients_in_one_graph():
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(4, 8)) * 0.3 for _ in range(4)]
    x = gg.constant(np.random.default_rng(W.rank).normal(size=(4, 8)))
    results = []
    for without in ((), ("overlap",)):
        variables = [gg.Variable(w) for w in weights]
        optimizer = D.Optimizer(gg.optim.SGD(0.1), variables, bucket_bytes=300)

        def step(x, weight, variables=variables, optimizer=optimizer):
            with gg.GradientTape() as tape:
                h = x
                for v in variables:  # no cuBLAS, which a graph does not hold
                    h = gg.cumulative_sum(h * v, axis=1)
                loss = gg.mean(h * h)
            pairs = zip(tape.gradient(loss, variables), variables, strict=True)
            optimizer.apply_gradients(pairs, weight=weight)

        passes = [p for p in gg.function(step)._options.passes if p not in without]
        call = gg.function(step, passes=passes)
        one = gg.constant(1.0, "float64")
        for _ in range(4):
            call(x, one)
        (plan,) = call._plans.values()
        names = [s.name for s in plan.program.steps]
        starts = [k for k, name in enumerate(names) if name == "start_mean"]
        assert len(starts) == 4
        others = max(k for k, name in enumerate(names) if "_mean" not in name and "app" not in name)
        assert (starts[-2] < others) == (ON_GPUS and not without), names
        if ON_GPUS:
            assert len(plan.replay.runs) == 1
            with driver.logged() as log:
                call(x, one)
            graphs = [work.name for work in log if work.way == "replay"]
            sums = [k for k, name in enumerate(graphs) if name == "ncclAllReduce"]
            assert len(sums) == 5  # the header, too
            assert not [work for work in log if work.way == "run" and "nccl" in work.name]
            backward = any("scan" in name for name in graphs[sums[1] :])
            assert backward == (not without), graphs
        results.append([v.numpy() for v in variables])
    for a, b in zip(*results, strict=True):
        assert (a == b).all()
