"""Optimizers: their formulas, their state, and steps that change all or nothing."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import gpugrad as gg
from gpugrad import optim
from gpugrad.core import threads
from gpugrad.errors import (
    ArgumentError,
    CheckpointError,
    DeviceError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
)
from gpugrad.ops.arrays import index_rules
from gpugrad.optim import rules

MAKERS = {
    "sgd": lambda: optim.SGD(0.1),
    "momentum": lambda: optim.SGD(0.1, momentum=0.9),
    "nesterov": lambda: optim.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optim.Adam(0.1),
    "adam-quick": lambda: optim.Adam(0.1, beta_1=0.0, beta_2=0.5),
    "adamw": lambda: optim.AdamW(0.1, weight_decay=0.1),
}

START = [1.0, -2.0, 3.0]
GRADIENTS = [[0.5, -1.0, 0.0], [0.25, 2.0, -1e-3], [-1.0, 0.5, 1e-3]]


@pytest.fixture(params=MAKERS, ids=str)
def make(request):
    return MAKERS[request.param]


def run(optimizer, variable, gradients):
    for g in gradients:
        optimizer.apply_gradients([(gg.constant(np.asarray(g, variable.dtype)), variable)])
    return variable.numpy()


def test_results_do_not_depend_on_the_number_of_threads(make, rng, monkeypatch):
    gradients = [gg.constant(rng.normal(size=n).astype(np.float32)) for n in (300_007, 5, 70_000)]

    def moved():
        optimizer = make()
        variables = [gg.Variable(np.ones(g.shape, np.float32)) for g in gradients]
        for _ in range(2):
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return [v.numpy() for v in variables]

    expected = moved()
    monkeypatch.setattr(rules, "PART", 1)
    monkeypatch.setattr(threads, "workers", lambda: 3)
    for got, want in zip(moved(), expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "complex128"])
def test_optimizer_keeps_the_dtype(make, dtype, rng):
    values, g = rng.normal(size=(2, 5)), rng.normal(size=5)
    start = values[0] + 1j * values[1] if dtype.startswith("c") else values[0]
    v = gg.Variable(gg.constant(start, dtype))
    expected = gg.Variable(start)
    g = g + 1j * g if dtype.startswith("c") else g
    for _ in range(3):
        optimizer, other = make(), make()
        optimizer.apply_gradients([(gg.constant(g, dtype), v)])
        other.apply_gradients([(gg.constant(g), expected)])
    assert v.dtype == gg.constant(0, dtype).dtype
    tolerance = {"float16": 4e-3, "bfloat16": 4e-2}.get(dtype, 1e-5)
    close = v.numpy().astype(expected.dtype)
    np.testing.assert_allclose(close, expected.numpy(), rtol=tolerance, atol=tolerance)


# ---- in place, unless something else sees it ---------------------------------------------


def test_step_does_not_change_values_read_before(make):
    v = gg.Variable(np.array(START))
    read, copied, part = v.value(), copy.deepcopy(v), v[1:]
    other = gg.Variable(np.zeros(3))
    other.assign(v)
    run(make(), v, GRADIENTS)
    for kept in (read, copied, other):
        np.testing.assert_array_equal(kept.numpy(), START)
    np.testing.assert_array_equal(part.numpy(), START[1:])


def test_variable_that_shares_memory_with_a_tensor_is_copied_first(make):
    whole = gg.constant(np.arange(6.0))
    v = gg.Variable(np.zeros(3))
    v.assign(whole[:3])
    matrix = gg.constant(np.arange(6.0).reshape(2, 3))
    w = gg.Variable(np.zeros((3, 2)))
    w.assign(matrix.T)
    make().apply_gradients([(gg.ones(3, dtype="float64"), v), (matrix.T, w)])
    np.testing.assert_array_equal(whole.numpy(), np.arange(6.0))
    np.testing.assert_array_equal(matrix.numpy().ravel(), np.arange(6.0))
    assert w.numpy()[2, 1] < 5


def test_array_is_written_in_place_when_nothing_else_sees_it():
    v = gg.Variable(np.array(START))
    run(optim.Adam(0.1), v, GRADIENTS[:1])
    before = v._data.ctypes.data
    run(optim.Adam(0.1), v, GRADIENTS)
    assert v._data.ctypes.data == before


def test_gradient_is_not_changed(make):
    v, g = gg.Variable(np.array(START)), gg.constant(np.array(GRADIENTS[0]))
    optimizer = make()
    optimizer.apply_gradients([(g, v)])
    optimizer.apply_gradients([(g, v)])
    np.testing.assert_array_equal(g.numpy(), GRADIENTS[0])


def test_step_inside_a_recording_tape_does_not_disturb_it():
    v = gg.Variable(3.0)
    with gg.GradientTape() as tape:
        y = v * v
        optim.SGD(1.0).apply_gradients([(gg.constant(1.0), v)])
    assert tape.gradient(y, v).item() == 6


# ---- errors change nothing ---------------------------------------------------------------


def wrong_gradients():
    yield gg.ones(3, dtype="float64"), ShapeError, r"'b' has shape \(2,\), its gradient has \(3,\)"
    yield gg.ones(2, dtype="float32"), DTypeError, "'b' is float64, its gradient is float32"
    yield (
        gg.IndexedSlices(gg.ones(1, dtype="float64"), gg.constant([2]), (2,)),
        IndexOutOfBoundsError,
        "2 rows",
    )
    yield "text", DTypeError, "number"
    for n, at in ((1, [0, 1]), (1, [0.5]), (2, [[0, 1]])):
        rows = gg.IndexedSlices(gg.ones(n, dtype="float64"), at, (2,))
        yield rows, ArgumentError, r"'b': its gradient has values of shape \(.*one integer"


@pytest.mark.parametrize("case", range(7))
def test_wrong_gradient_changes_nothing(make, case):
    g, error, words = list(wrong_gradients())[case]
    a, b = gg.Variable(np.ones(2), name="a"), gg.Variable(np.ones(2), name="b")
    right = gg.ones(2, dtype="float64")
    optimizer = make()
    optimizer.apply_gradients([(right, a), (right, b)])
    values, state = (a.numpy(), b.numpy()), optimizer.state_dict()
    with pytest.raises(error, match=words):
        optimizer.apply_gradients([(gg.IndexedSlices(right, [0, 1], (2,)), a), (g, b)])
    np.testing.assert_array_equal((a.numpy(), b.numpy()), values)
    after = optimizer.state_dict()
    assert list(after) == list(state)
    assert all((after[k].numpy() == state[k].numpy()).all() for k in state)


def test_gradient_on_another_device_is_refused(cuda):
    v = gg.Variable(np.ones(2))
    with pytest.raises(DeviceError, match="cuda"):
        optim.SGD().apply_gradients([(gg.constant(np.ones(2), device=cuda), v)])
    indices = gg.constant([0, 1], device=cuda)
    rows = gg.IndexedSlices(gg.constant(np.ones(2), device=v.device), indices, (2,))
    for move in (lambda: optim.SGD().apply_gradients([(rows, v)]), lambda: v.scatter_add(rows)):
        with pytest.raises(DeviceError, match=f"indices.* on {cuda}"):
            move()
    assert v.tolist() == [1, 1]


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_variable_resized_since_its_averages_is_refused(device):
    v, w = (gg.Variable([1.0, 2.0], shape=[None], device=device) for _ in range(2))
    optimizer = optim.Adam(0.1)
    optimizer.apply_gradients([(gg.ones(2, device=device), x) for x in (w, v)])
    v.assign(gg.ones(3, device=device))
    before = w.tolist()
    with pytest.raises(ShapeError, match=r"Adam: the Variable .* now has shape \(3,\)"):
        optimizer.apply_gradients([(gg.ones_like(x), x) for x in (w, v)])
    assert (w.tolist(), v.tolist()) == (before, [1.0, 1.0, 1.0])
    assert optimizer.iterations == optimizer.state_dict()["0.step"].item() == 1


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("start", [[1, 2], [True, False]])
def test_integer_and_bool_variables_are_refused(start, device):
    v, optimizer = gg.Variable(start, device=device), optim.Adam(0.1)
    with pytest.raises(DTypeError, match=r"Adam: the Variable .* is (int64|bool)"):
        optimizer.apply_gradients([(gg.constant(start, device=device), v)])
    assert (v.tolist(), optimizer.iterations) == (start, 0)


@pytest.mark.parametrize("traced", [False, True])
def test_per_example_gradient_under_vmap_is_refused(traced):
    v, optimizer = gg.Variable([1.0, 2.0], name="v"), optim.SGD(0.1)

    def f(g):
        optimizer.apply_gradients([(g, v)])
        return g

    mapped = gg.vmap(f)
    with pytest.raises(ArgumentError, match=r"SGD: under vmap .*'v' has one value"):
        (gg.function(mapped) if traced else mapped)(gg.ones((3, 2)))
    assert v.tolist() == [1.0, 2.0]


def test_learning_rate_that_fails_changes_nothing():
    v, optimizer = gg.Variable(1.0), optim.Adam(lambda step: 0.1 if step < 1 else float("nan"))
    optimizer.apply_gradients([(gg.constant(1.0), v)])
    before = v.numpy()
    with pytest.raises(ArgumentError, match="learning rate"):
        optimizer.apply_gradients([(gg.constant(1.0), v)])
    assert v.numpy() == before
    assert optimizer.iterations == 1


@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
def test_missing_gradients_are_skipped_with_one_warning(wrapped):
    a, b = gg.Variable(1.0, name="a"), gg.Variable(1.0, name="b")
    optimizer = optim.SGD(0.5)
    step = wrapped(lambda: optimizer.apply_gradients([(gg.constant(1.0), a), (None, b)]))
    with pytest.warns(UserWarning, match="'b' is None.*explain") as caught:
        step()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step()
    assert (a.numpy(), b.numpy()) == (0, 1)


def test_no_gradient_at_all_is_an_error():
    with pytest.raises(ArgumentError, match=r"all are None.*'a'"):
        optim.SGD().apply_gradients([(None, gg.Variable(1.0, name="a"))])
    with pytest.raises(ArgumentError, match="got no gradients"):
        optim.SGD().apply_gradients([])


@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
def test_invalid_pairs_are_refused(wrapped):
    v, g = gg.Variable(1.0, name="v"), gg.constant(1.0)
    for pairs, error, words in (
        ([(v, g)], DTypeError, "got a .*Tensor in the place of a Variable"),
        ([g], ArgumentError, "pairs"),
        ([(g, v), (g, v)], ArgumentError, "'v' is repeated"),
    ):
        with pytest.raises(error, match=words):
            wrapped(lambda pairs=pairs: optim.SGD().apply_gradients(pairs))()


@pytest.mark.parametrize(
    "call",
    [
        lambda: optim.SGD(-1.0), lambda: optim.SGD("fast"), lambda: optim.SGD(gg.Variable(0.1)),
        lambda: optim.SGD(float("inf")), lambda: optim.SGD(momentum=1.0),
        lambda: optim.SGD(nesterov=True), lambda: optim.Adam(beta_1=1.0),
        lambda: optim.Adam(epsilon=0), lambda: optim.AdamW(weight_decay=-1),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(call):
    with pytest.raises(ArgumentError, match=r"must be|needs"):
        call()


# ---- skipped steps -------------------------------------------------------------------------


def test_step_is_applied_only_if_when_is_true(make):
    one, two = make(), make()
    a, b = gg.Variable(np.array(START)), gg.Variable(np.array(START))
    for k, g in enumerate(GRADIENTS):
        for when in (False, gg.constant([0.0]), np.bool_(False)):
            one.apply_gradients([(gg.constant(np.full(3, np.nan)), a)], when=when)
        one.apply_gradients([(gg.constant(g, "float64"), a)], when=gg.constant(k + 1))
        two.apply_gradients([(gg.constant(g, "float64"), b)])
    np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert one.iterations == two.iterations == 3


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_replay_evaluates_when_again(device, sparse, make, rng):
    def stepping(optimizer):
        def step(x, limit):
            with gg.GradientTape() as tape:
                loss = gg.sum(gg.gather(v, gg.constant([0, 2])) * x)
            g = tape.gradient(loss, v)
            g = g if sparse else gg.convert_to_tensor(g)
            optimizer.apply_gradients([(g, v)], when=gg.max(x) < limit)
            return loss, v.value() * 2

        return step

    with gg.device(device):
        ends = []
        for wrapped in (lambda f: f, gg.function):
            v = gg.Variable(np.arange(3.0))
            optimizer = make()
            step = wrapped(stepping(optimizer))
            results = []
            for k, data in enumerate(np.random.default_rng(0).normal(size=(8, 2))):
                results += [t.numpy() for t in step(gg.constant(data), gg.constant(k % 3 - 0.1))]
            ends.append([*results, v.numpy(), optimizer.iterations])
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert 0 < ends[0][-1] < 8


def test_when_must_have_one_element():
    v = gg.Variable([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"SGD: when must have one element, .* \(2,\).*gg.all"):
        optim.SGD(0.1).apply_gradients([(gg.ones(2), v)], when=gg.constant([True, False]))
    np.testing.assert_array_equal(v.numpy(), [1, 2])


# ---- sparse gradients --------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 2), None])
@pytest.mark.parametrize("wrap", [lambda f: f, gg.function], ids=["eager", "traced"])
def test_sparse_gradient_updates_like_the_dense_one(make, wrap, shape):
    a, b = gg.Variable(np.ones((4, 2))), gg.Variable(np.ones((4, 2)))
    optimizer, dense = make(), make()

    @wrap
    def step(values, indices):
        optimizer.apply_gradients([(gg.IndexedSlices(values, indices, shape), a)])

    for at in ([2, 0, 2], [1, 1, 0], [3, 2, 1]):
        values = gg.constant(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        step(values, gg.constant(at))
        rows = gg.IndexedSlices(values, gg.constant(at), (4, 2))
        dense.apply_gradients([(rows.to_dense(), b)])
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-14)
    with pytest.raises(IndexOutOfBoundsError, match=r"4 rows, .* from 0 to 4"):
        step(values, gg.constant([0, 4, 1]))
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-14)


@pytest.mark.parametrize("in_order", [False, True])
def test_sparse_gradient_updates_on_a_gpu(cuda, monkeypatch, in_order):
    atomics, add = [], index_rules.atomic_add
    monkeypatch.setattr(index_rules, "atomic_add", lambda *args: (atomics.append(args), add(*args)))
    gg.set_deterministic(in_order)
    try:
        with gg.device(cuda):
            v = gg.Variable(np.ones((3, 1)))
            rows = gg.IndexedSlices(gg.constant(np.ones((2, 1))), gg.constant([1, 1]), (3, 1))
            optim.SGD(0.5).apply_gradients([(rows, v)])
    finally:
        gg.set_deterministic(False)
    np.testing.assert_array_equal(v.numpy().ravel(), [1, 0, 1])
    assert len(atomics) == (not in_order)


# ---- minimize, schedules -----------------------------------------------------------------


def test_minimize_accepts_a_function_or_a_tensor_with_its_tape():
    v = gg.Variable([3.0, -4.0])
    optimizer = optim.SGD(0.25)
    assert optimizer.minimize(lambda: gg.sum(v * v), [v]).item() == 25
    with gg.GradientTape() as tape:
        loss = gg.sum(v * v)
    optimizer.minimize(loss, [v], tape)
    np.testing.assert_array_equal(v.numpy(), [0.75, -1.0])
    assert optimizer.iterations == 2


def test_minimize_finds_the_variables_that_the_loss_reads():
    v, w = gg.Variable(1.0), gg.Variable(1.0)
    optim.SGD(0.5).minimize(lambda: v * 2.0)
    assert (v.numpy(), w.numpy()) == (0, 1)


def test_minimize_takes_the_trainable_variables_of_a_module():
    model = gg.nn.Sequential(gg.nn.Dense(2, 2).freeze(), gg.nn.Dense(2, 1))
    before = [v.numpy() for v in model.variables]
    gg.optim.SGD(0.5).minimize(lambda: gg.sum(model(gg.ones((1, 2)))), model)
    moved = [bool((v.numpy() != old).any()) for v, old in zip(model.variables, before, strict=True)]
    assert moved == [False, False, True, True]


def test_minimize_of_a_tensor_without_its_tape_says_what_is_needed():
    v = gg.Variable(1.0)
    with pytest.raises(ArgumentError, match="tape="):
        optim.SGD().minimize(v * v, [v])
    with pytest.raises(ArgumentError, match="drop tape="):
        optim.SGD().minimize(lambda: v * v, [v], gg.GradientTape())


def test_learning_rate_may_be_a_function_of_the_steps_and_may_be_set():
    v, optimizer = gg.Variable(np.array(0.0)), optim.SGD(lambda step: 10.0**-step)
    run(optimizer, v, [1.0, 1.0, 1.0])
    assert v.numpy() == pytest.approx(-1.11)
    optimizer.learning_rate = 1.0
    run(optimizer, v, [1.0])
    assert v.numpy() == pytest.approx(-2.11)


def test_a_schedule_may_read_a_variable():
    rate, v = gg.Variable(0.5), gg.Variable(1.0)
    optimizer = optim.SGD(lambda step: rate)
    for value in (0.5, 0.25):
        rate.assign(value)
        optimizer.apply_gradients([(gg.constant(1.0), v)])
    assert v.item() == 0.25


def test_optimizers_reach_the_minimum_of_a_quadratic(rng):
    a = rng.normal(size=(4, 4))
    a, b = a @ a.T + np.eye(4), rng.normal(size=4)
    for optimizer in (optim.SGD(0.02, 0.9), optim.Adam(0.05)):
        x = gg.Variable(np.zeros(4))
        for _ in range(2000):
            optimizer.minimize(lambda x=x: gg.sum(x * gg.matmul(a, x)) / 2 - gg.sum(b * x))
        np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, b), atol=1e-3)


# ---- state -------------------------------------------------------------------------------


def test_state_is_a_copy_numbered_without_names(make):
    v, optimizer = gg.Variable(np.array(START)), make()
    run(optimizer, v, GRADIENTS[:2])
    state = optimizer.state_dict()
    assert {name for name in state if not name.startswith("0.")} == {"iterations", "rule"}
    kept = {name: t.numpy() for name, t in state.items()}
    run(optimizer, v, GRADIENTS[2:])
    assert all((state[name].numpy() == kept[name]).all() for name in state)
    other = make()
    other.build([v])
    other.load_state_dict(state)
    assert other.iterations == 2


def test_wrong_state_changes_nothing(rng):
    v, optimizer = gg.Variable(np.array(START)), optim.Adam(0.1)
    run(optimizer, v, GRADIENTS)
    state = optimizer.state_dict({"w": v})
    lacking = {k: t for k, t in state.items() if k != "w.v"}
    reshaped = {**state, "w.m": gg.zeros(2, dtype="float64")}
    cast = {**state, "w.m": gg.zeros(3, dtype="float32")}
    for wrong, names, words in (
        (lacking, {"w": v}, "lacks 'w.v'"),
        (reshaped, {"w": v}, r"\(2,\), expected \(3,\)"),
        (cast, {"w": v}, "float32, expected float64"),
        (state, {"other": v}, "another optimizer or model"),
        ({}, {"w": v}, "iterations"),
    ):
        with pytest.raises(CheckpointError, match=words):
            optimizer.load_state_dict(wrong, names)
        assert optimizer.iterations == 3
        after = optimizer.state_dict({"w": v})
        assert all((after[k].numpy() == state[k].numpy()).all() for k in state)
    with pytest.raises(CheckpointError, match="belongs to Adam, not to SGD"):
        optim.SGD().load_state_dict(state, {"w": v})


def test_averages_of_older_files_are_multiplied_by_their_scale():
    v, optimizer = gg.Variable(np.array(START)), optim.SGD(0.1, momentum=0.9)
    optimizer.apply_gradients([(v.value(), v)])
    state = {k: t.numpy() for k, t in optimizer.state_dict({"w": v}).items()}
    older = state | {"w.velocity": state["w.velocity"] * 4, "w.velocity.scale": np.array(0.25)}
    optimizer.load_state_dict(older, {"w": v})
    again = {k: t.numpy() for k, t in optimizer.state_dict({"w": v}).items()}
    assert again.keys() == state.keys()
    for key, array in state.items():
        np.testing.assert_array_equal(again[key], array)


@pytest.mark.parametrize(
    ("name", "fraction"), [("iterations", 0.5), ("w.step", 0.5), ("w.m.scale", 1.5)]
)
@pytest.mark.parametrize("value", [np.nan, np.inf, -1, None, 1e300, 1j, True])
def test_wrong_counts_and_scales_change_nothing(name, fraction, value):
    v, optimizer = gg.Variable(np.array(START)), optim.Adam(0.1)
    run(optimizer, v, GRADIENTS)
    state = optimizer.state_dict({"w": v})
    wrong = np.asarray(fraction if value is None else value)
    with pytest.raises(CheckpointError, match=f"'{name}' is"):
        optimizer.load_state_dict({**state, name: wrong}, {"w": v})
    after = optimizer.state_dict({"w": v})
    assert all((after[k].numpy() == state[k].numpy()).all() for k in state)


def test_late_variable_is_bias_corrected_by_its_own_steps():
    a, b = gg.Variable(np.ones(1)), gg.Variable(np.ones(1))
    optimizer = optim.Adam(0.1)
    run(optimizer, a, [[1.0]] * 5)
    run(optimizer, b, [[1.0]])
    assert b.numpy() == pytest.approx(0.9)


# ---- clipping ----------------------------------------------------------------------------


def test_clip_by_global_norm_scales_all_together():
    rows = gg.IndexedSlices(gg.constant([[2.0]]), gg.constant([1]), (3, 1))
    grads = [gg.constant([1.0, 2.0]), None, rows, gg.constant(4.0)]
    clipped, norm = optim.clip_by_global_norm(grads, 2.5)
    assert norm.item() == 5
    np.testing.assert_allclose(clipped[0].numpy(), [0.5, 1.0])
    assert clipped[1] is None
    np.testing.assert_allclose(clipped[2].values.numpy(), [[1.0]])
    assert clipped[3].item() == 2


def test_clip_does_not_change_small_gradients():
    clipped, norm = optim.clip_by_global_norm([gg.constant([3.0, 4.0])], 6.0)
    np.testing.assert_array_equal(clipped[0].numpy(), [3, 4])
    clipped, norm = optim.clip_by_global_norm([gg.zeros(3)], 1.0)
    np.testing.assert_array_equal(clipped[0].numpy(), 0)
    assert norm.item() == 0


@pytest.mark.parametrize("max_norm", [np.inf, 1e300])
def test_clip_to_an_unreached_norm_changes_nothing(max_norm):
    clipped, norm = optim.clip_by_global_norm([gg.constant([3.0, 4.0])], max_norm)
    np.testing.assert_array_equal(clipped[0].numpy(), [3, 4])
    assert norm.item() == 5


def test_clip_of_half_precision_does_not_overflow():
    clipped, norm = optim.clip_by_global_norm([gg.constant([3e4, 4e4], "float16")], 5.0)
    assert norm.item() == pytest.approx(5e4, rel=1e-3)
    assert clipped[0].dtype == np.float16
    np.testing.assert_allclose(clipped[0].numpy(), [3, 4], rtol=1e-2)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_clip_of_an_infinite_gradient_is_nan_everywhere():
    clipped, norm = optim.clip_by_global_norm([gg.constant([np.inf]), gg.ones(2)], 1.0)
    assert norm.item() == np.inf
    assert all(np.isnan(g.numpy()).all() for g in clipped)


def test_clip_refuses_invalid_arguments():
    with pytest.raises(ArgumentError, match="above 0"):
        optim.clip_by_global_norm([gg.ones(2)], 0.0)
    with pytest.raises(ArgumentError, match="None"):
        optim.clip_by_global_norm([None], 1.0)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))], ids=["copy", "pickle"]
)
def test_copy_of_variable_and_optimizer_continues_like_the_original(copied):
    v, optimizer = gg.Variable(np.array([1.0, 2.0])), optim.Adam(0.1)

    def step(v, optimizer):
        optimizer.minimize(lambda: gg.sum(v**3), [v])

    for _ in range(3):
        step(v, optimizer)
    v2, optimizer2 = copied((v, optimizer))
    for _ in range(3):
        step(v, optimizer)
        step(v2, optimizer2)
    assert v2.tolist() == v.tolist()
    assert len(optimizer2.state_dict()) == len(optimizer.state_dict())


def test_clip_sums_repeated_rows_before_the_norm():
    rows = gg.IndexedSlices(gg.ones((2, 2)), gg.constant([1, 1]), (4, 2))
    clipped, norm = optim.clip_by_global_norm([rows], 1.0)
    assert norm.item() == pytest.approx(np.sqrt(8.0))
    assert np.linalg.norm(clipped[0].to_dense().numpy()) == pytest.approx(1.0)


def test_loss_that_reads_no_variable_is_an_error():
    with pytest.raises(ArgumentError, match="read no trainable Variable"):
        optim.SGD(0.1).minimize(lambda: gg.constant(1.0))


# ---- clipping as an option ----------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
@pytest.mark.parametrize("option", ["clipnorm", "clipvalue", "global_clipnorm"])
@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_clipping_options_limit_what_the_step_uses(kind, option, wrapped, device, rng):
    gradients = [rng.normal(size=shape) for shape in ((3,), (2, 2))]
    limit = 0.5

    def limited(grads):
        if option == "clipvalue":
            return [np.clip(g, -limit, limit) for g in grads]
        norms = [np.linalg.norm(g) for g in grads]
        if option == "global_clipnorm":
            norms = [np.linalg.norm(norms)] * 2
        return [g * min(1, limit / norm) for g, norm in zip(grads, norms, strict=True)]

    with gg.device(device):
        one, other = ([gg.Variable(np.ones_like(g)) for g in gradients] for _ in range(2))
        clipping, plain = kind(0.1, **{option: limit}), kind(0.1)

        @wrapped
        def step(*grads):
            clipping.apply_gradients(zip(grads, one, strict=True))

        for factor in (1.0, 0.01, 3.0):  # 0.01: within the limit
            step(*(gg.constant(g * factor) for g in gradients))
            grads = [gg.constant(g) for g in limited([g * factor for g in gradients])]
            plain.apply_gradients(zip(grads, other, strict=True))
    for v, w in zip(one, other, strict=True):
        np.testing.assert_allclose(v.numpy(), w.numpy(), rtol=1e-12)


@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
@pytest.mark.parametrize(
    ("option", "expected"),
    [("clipnorm", [1 - 0.8, 1, 1 - 0.6]), ("clipvalue", [0, 1, 0]),
     ("global_clipnorm", [1 - 0.8, 1, 1 - 0.6])],
)  # fmt: skip
def test_clipping_options_add_repeated_rows_first(option, expected, wrapped):
    table = gg.Variable(np.ones((3, 1), "f4"))
    optimizer = optim.SGD(1.0, **{option: 1.0})

    @wrapped
    def step(values):
        rows = gg.IndexedSlices(values, gg.constant([2, 0, 2]))
        optimizer.apply_gradients([(rows, table)])

    step(gg.constant([[1.0], [4.0], [2.0]]))
    np.testing.assert_allclose(table.numpy()[:, 0], expected, atol=1e-6)


def test_clipping_options_survive_copies_and_check_their_gradients():
    v = gg.Variable([1.0])
    optimizer = pickle.loads(pickle.dumps(optim.SGD(1.0, clipvalue=0.5)))
    with pytest.raises(ShapeError, match="its gradient has"):
        optimizer.apply_gradients([(gg.ones(3), v)])
    optimizer.apply_gradients([(gg.constant([4.0]), v)])
    assert v.numpy()[0] == 0.5


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"clipnorm": 1.0, "clipvalue": 1.0}, ArgumentError, "use one of clipnorm, clipvalue"),
        ({"global_clipnorm": 0.0}, ArgumentError, "global_clipnorm must be above 0, got 0.0"),
        ({"clipnorm": np.nan}, ArgumentError, "clipnorm must be above 0, got nan"),
        ({"clip_norm": 1.0}, TypeError, "unexpected keyword argument 'clip_norm'"),
    ],
)
def test_clipping_options_out_of_range_are_refused(options, error, words):
    for kind in (optim.SGD, optim.Adam, optim.AdamW):
        with pytest.raises(error, match=words):
            kind(0.1, **options)
