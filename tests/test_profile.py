"""gg.profile: what it measures, where it says that was, and that it costs nothing otherwise."""

import json
import threading

import numpy as np
import pytest
from comparing import same
from conftest import HOST

import gpugrad as gg
from gpugrad.core.backend import cupy
from gpugrad.core.listening import recorders
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.trace.profiling import origins, profiles

gg.set_seed(0)
MODEL = gg.nn.Sequential(gg.nn.Dense(8, 16, activation=gg.tanh), gg.nn.Dense(16, 3))
X, LABELS = gg.random.normal((6, 8)), gg.constant([0, 1, 2, 0, 1, 2])


def training_step(optimizer, x=X, labels=LABELS):
    with gg.GradientTape() as tape:
        loss = gg.mean(gg.sparse_softmax_cross_entropy(MODEL(x), labels))
    variables = MODEL.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


def test_profile_counts_ops_gradients_and_steps():
    optimizer = gg.optim.SGD(0.1)
    with gg.profile() as profile:
        training_step(optimizer)
        training_step(optimizer)
    counts = {name: total.calls for name, total in profile.by_op().items()}
    assert counts == {
        "op matmul": 4, "op add": 4, "op tanh": 2, "op sparse_softmax_cross_entropy": 2,
        "op mean": 2, "gradient matmul": 4, "gradient add": 4, "gradient tanh": 2,
        "gradient sparse_softmax_cross_entropy": 2, "gradient mean": 2, "optimizer SGD": 2,
    }  # fmt: skip


def test_profile_counts_bytes_of_arguments_and_results():
    with gg.profile() as profile:
        gg.ones((3, 4)) @ gg.ones((4, 5))
    assert profile.by_op()["op matmul"].nbytes == 4 * (12 + 20 + 15)


def test_profile_names_the_users_line_and_the_layer_also_of_gradients():
    with gg.profile() as profile:
        training_step(gg.optim.SGD(0.1))
    lines = {event.where.line.partition(":")[0] for event in profile.events}
    assert lines == {"test_profile.py"}
    modules = {k: total.calls for k, total in profile.by_module().items()}
    assert modules == {"layers.0": 6, "layers.1": 4, "": 5}
    of_matmul = {e.where for e in profile.events if e.name == "matmul"}
    assert {place.layer for place in of_matmul} == {"layers.0", "layers.1"}
    assert len({place.line for place in of_matmul}) == 1  # forward and backward


def test_profile_shows_a_composite_op_as_one():
    with gg.profile() as profile, gg.GradientTape() as tape:
        tape.watch(X)
        gg.layer_norm(X)
    assert [event.name for event in profile.events] == ["layer_norm"]


def test_profile_divides_replays_among_the_steps_of_the_function():
    optimizer = gg.optim.Adam(0.1)
    step = gg.function(lambda x, labels: training_step(optimizer, x, labels))
    with gg.profile() as profile:
        for _ in range(3):
            step(X, LABELS)
    assert [event.kind for event in profile.events] == ["trace", "function", "function"]
    by_op = profile.by_op()
    assert by_op["step matmul"].calls == 2 * 5
    assert by_op["rest <lambda>"].calls == 2
    whole = sum(event.duration for event in profile.events) / 1e9
    assert sum(t.seconds for t in by_op.values()) == pytest.approx(whole, rel=0.01, abs=1e-6)
    assert {"layers.0", "layers.1", ""} == set(profile.by_module())


def test_profile_does_not_divide_functions_of_one_name():
    f, g = gg.function(lambda x: gg.tanh(x)), gg.function(lambda x: gg.exp(x))
    f(X), g(X)
    with gg.profile() as profile:
        f(X), g(X)
    assert set(profile.by_op()) == {"function <lambda>"}


def test_profile_measures_several_steps_per_call_as_one_call():
    f = gg.function(lambda x: gg.tanh(x), steps_per_call=3)
    x = gg.ones((3, 4))
    with gg.profile() as profile:
        f(x)
        y = f(x)
    assert [event.kind for event in profile.events] == ["trace", "function"]
    same(y, gg.tanh(x))


def test_profile_measures_waits_for_batches():
    loader = gg.data.DataLoader(gg.data.Arrays(np.ones((10, 2), np.float32)), batch_size=4)
    with gg.profile() as profile:
        n = sum(len(batch) for batch in loader)
    assert n == 10
    assert profile.by_op()["data DataLoader"].nbytes == 10 * 2 * 4


def test_profile_writes_a_chrome_trace(tmp_path):
    with gg.profile(tmp_path / "trace.json") as profile:
        training_step(gg.optim.SGD(0.1))
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(rows) == len(profile.events)
    assert {row["ph"] for row in rows} == {"X"}
    assert all(row["dur"] >= 0 and row["ts"] >= 0 for row in rows)
    ends = [row["ts"] + row["dur"] for row in rows]
    assert all(end <= row["ts"] + 1e-3 for end, row in zip(ends, rows[1:], strict=False))
    (first,) = [row for row in rows if row["name"] == "matmul"][:1]
    assert first["args"]["module"] == "layers.0"
    assert first["args"]["line"].startswith("test_profile.py:")


def test_profile_prints_tables_sorted_by_time():
    with gg.profile() as profile:
        training_step(gg.optim.SGD(0.1))
    by_op, by_module = str(profile).split("\n\n")
    seconds = [float(line.split()[0]) for line in by_op.splitlines()[2:]]
    assert seconds == sorted(seconds, reverse=True)
    assert "(in no module)" in by_module


def test_profile_changes_no_results_and_costs_nothing_afterwards():
    before, code = MODEL(X), gg.tanh.__code__
    with gg.profile():
        same(MODEL(X), before)
        assert gg.tanh.__code__ is not code
    assert gg.tanh.__code__ == code
    assert not profiles
    assert not origins
    assert not any(isinstance(r, gg.profile) for r in recorders)


def test_profile_of_an_op_that_raises_leaves_it_out():
    with gg.profile() as profile:
        with pytest.raises(ShapeError):
            gg.ones(2) @ gg.ones(3)
        gg.exp(X)
    assert [event.name for event in profile.events] == ["exp"]


def test_profile_goes_on_after_an_error_in_a_gradient():
    @gg.custom_gradient
    def fails(x):
        return x * 1.0, lambda g: 1 / 0

    with gg.profile() as profile, gg.GradientTape() as tape:
        tape.watch(X)
        y = fails(X)
        try:
            tape.gradient(y, X)
        except ZeroDivisionError as error:
            held = error
        gg.exp(X)
    assert held.__traceback__ is not None
    assert profile.events[-1].name == "exp"


def test_profile_measures_all_threads():
    with gg.profile() as profile:
        thread = threading.Thread(target=lambda: gg.exp(X))
        thread.start()
        thread.join()
    assert [event.name for event in profile.events] == ["exp"]


def test_profiles_nest_and_the_inner_one_sees_less():
    with gg.profile() as outer:
        gg.exp(X)
        with gg.profile() as inner:
            gg.exp(X)
    assert (len(outer.events), len(inner.events)) == (2, 1)


def test_profile_divides_the_steps_of_fit_among_modules():
    model = gg.nn.Sequential(gg.nn.Dense(3, 4), gg.nn.Dense(4, 1))
    data = [(np.ones((2, 3), "f4"), np.ones((2, 1), "f4"))] * 3
    with gg.profile() as profile:
        gg.train.fit(
            (model, gg.mse), data, 3, optimizer=gg.optim.SGD(0.1), validation=data, progress=False
        )
    assert {"layers.0", "layers.1"} <= set(profile.by_module())
    calls = {name: total.calls for name, total in profile.by_op().items()}
    assert calls["trace train_step"] == calls["trace evaluation_step"] == 1


def test_profile_refuses_a_path_before_it_measures(tmp_path):
    with pytest.raises(ArgumentError, match="there is no folder"):
        gg.profile(tmp_path / "none" / "trace.json")
    with pytest.raises(ArgumentError, match="path must be a path, got 3"):
        gg.profile(3)


def test_profile_is_used_once():
    profile = gg.profile()
    with profile:
        pass
    with pytest.raises(ArgumentError, match="used before"), profile:
        pass


def test_profile_works_with_vmap_forward_mode_and_mixed_precision():
    with gg.profile() as profile, gg.mixed_precision("bfloat16"):
        gg.vmap(gg.grad(lambda x: gg.sum(gg.tanh(x))))(X)
        gg.jvp(gg.tanh, [X], [X])
        assert (X @ X.T).dtype == gg.bfloat16
    assert {event.name for event in profile.events} >= {"tanh", "matmul"}


def test_profile_marks_ranges_of_nvtx(cuda, monkeypatch):
    ranges, nvtx = [], cupy().cuda.nvtx
    monkeypatch.setattr(nvtx, "RangePush", lambda message, id_color=-1: ranges.append(message))
    monkeypatch.setattr(nvtx, "RangePop", lambda: ranges.append("end"))
    with gg.device(cuda), gg.profile():
        gg.tanh(gg.ones((4, 4)))
    assert ranges == ["op tanh", "end"]


def test_profile_waits_for_the_gpu_before_and_after_an_op(cuda, waits):
    with gg.device(cuda), waits() as pairs, gg.profile() as profile:
        gg.tanh(gg.ones((4, 4)))
    assert [event.name for event in profile.events] == ["tanh"]
    assert pairs == [(HOST, 0)] * 2
