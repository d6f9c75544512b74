"""gg.function's passes=, donate= and steps_per_call=, and memory reuse."""

import copy
import gc
import tracemalloc

import numpy as np
import pytest
from comparing import near, same
from steps import masked_gradient, training_step
from taping import taped

import gpugrad as gg
from gpugrad.core.devices import gpu_count
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.function.passes import PASSES, pass_names
from gpugrad.function.plan import MEMORY
from gpugrad.trace.shapes import ShapeTrace

RNG = np.random.default_rng(0)
X = gg.constant(RNG.normal(size=(4, 3)))


@pytest.mark.parametrize("row", PASSES, ids=lambda row: f"{row.name}-{row.where}")
def test_a_pass_names_its_function_and_its_file(row):
    assert row.name in row.run.__name__
    file = row.run.__module__.rpartition(".")[2]
    several = [r for r in PASSES if r.run.__module__ == row.run.__module__]
    assert len(several) > 1 or row.name == "groups" or row.name == file


def test_unknown_passes_are_refused_and_passes_run_in_table_order():
    with pytest.raises(
        ArgumentError, match=r"no passes \['x'\]; choose from \('constants', .*'in place'\)"
    ):
        gg.function(gg.sin, passes=["x"])
    texts = {
        str(gg.function(lambda x: gg.sin(x) + gg.sin(x * 1), passes=passes).lower(X))
        for passes in (["identities", "common"], ["common", "identities"])
    }
    assert len(texts) == 1
    assert texts.pop().count("sin(") == 1


def fields(program):
    return [
        (id(s), s.op, s.name, s.phase, s.backward, [*map(id, (s.params, *s.args, *s.outs))])
        for s in program.steps
    ]


@pytest.mark.parametrize("place", ["c", "gpu"])
def test_passes_change_no_step_of_the_program_that_they_read(place):
    """Programs share the steps that a pass keeps."""
    model = gg.nn.Sequential([gg.nn.TransformerBlock(8, 2), gg.nn.LayerNorm(8), gg.nn.Dense(8, 3)])

    def loss(y, t):
        return gg.mse(gg.reshape(gg.reshape(y.mT.mT, (-1,)), (2, 2, 2, 3)), t)

    step = gg.function(training_step(model, gg.optim.Adam(0.1), loss))
    x, y = gg.ones((2, 4, 8), dtype="float32"), gg.ones((2, 2, 2, 3), dtype="float32")
    program = step._traced((x, y), {}, ShapeTrace)[0].program
    kept = set()
    for one in PASSES:
        if {"both", place} & {*one.where}:
            before, steps = fields(program), {*map(id, program.steps)}
            new = one.run(program)
            assert fields(program) == before, one.name
            kept |= steps & {*map(id, new.steps)}
            program = new
    assert kept


def training():
    v = gg.Variable(np.ones(3), name="v")
    optimizer, generator = gg.optim.Adam(0.1), gg.random.Generator(1)

    def step(batch, rate=1.0):
        with gg.GradientTape() as tape:
            noise = generator.normal(batch["x"].shape, dtype=batch["x"].dtype)
            loss = gg.sum((v * batch["x"] + noise - batch["y"]) ** 2) * rate
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        return {"loss": loss, "v": v * 1, "name": "a"}

    return step, v


@pytest.mark.usefixtures("numpy_replay")
@pytest.mark.parametrize("as_array", [False, True])
def test_several_steps_in_a_call_equal_single_steps(as_array):
    (one, v), (many, w) = training(), training()
    many = gg.function(many, steps_per_call=4)
    for k in range(3):
        batch = {"x": np.ones((4, 5, 3)) * k + RNG.normal(size=(4, 5, 3)), "y": np.ones((4, 5, 1))}
        results = [
            one({name: gg.constant(a[i]) for name, a in batch.items()}, 0.5) for i in range(4)
        ]
        stacked = batch if as_array else {name: gg.constant(a) for name, a in batch.items()}
        got = many(stacked, 0.5)
        assert got["loss"].shape == (4,)
        assert got["v"].shape == (4, 3)
        assert got["name"] == "a"
        same(got["loss"], [r["loss"] for r in results])
        same(got["v"], [r["v"] for r in results])
        same(v, w)
    assert many.cache_info() == (11, 1, 0)


def test_several_steps_take_numbers_from_an_array():
    f = gg.function(lambda x, n: x * n, steps_per_call=3)
    for k in range(2):
        same(f(np.full((3, 2), 2.0), np.arange(3) + k), 2.0 * np.arange(k, k + 3)[:, None] * [1, 1])
    assert f.cache_info() == (5, 1, 0)


def test_several_steps_work_under_a_tape_and_vmap():
    w = gg.Variable(2.0)
    f = gg.function(lambda x, v: gg.sum(x * x * w) * v, steps_per_call=4)
    tape, y = taped(lambda X: gg.sum(f(X, w)), X)
    gx, gw = tape.gradient(y, [X, w])
    near(gx, 2 * X.numpy() * 4, 1e-6)
    near(gw, 2 * 2 * np.sum(X.numpy() ** 2), 1e-5)
    near(gg.vmap(lambda x: f(x, 3.0))(gg.stack([X, X * 2])),
         np.stack([6 * (X.numpy() ** 2).sum(1), 24 * (X.numpy() ** 2).sum(1)]), 1e-6)  # fmt: skip
    assert "multiply" in str(f.lower(X, 2.0))
    assert f.memory(X, 2.0).inputs == X.nbytes // 4


def test_a_first_axis_of_the_wrong_length_is_refused():
    f = gg.function(lambda a, b, n: a["x"], steps_per_call=5, static="n")
    with pytest.raises(ShapeError, match=r"a\['x'\] has shape \(4, 3\), and steps_per_call=5"):
        f({"x": X}, 1, n=X)
    with pytest.raises(ShapeError, match=r"b has shape \(\)"):
        f({"x": gg.ones(5)}, gg.constant(1.0), n=X)
    assert f({"x": gg.ones(5)}, 1, n=X).shape == (5,)
    for wrong in (0, 2.0, True):
        with pytest.raises(ArgumentError, match="steps_per_call must be a positive int"):
            gg.function(lambda x: x, steps_per_call=wrong)


def test_several_steps_refuse_indexed_slices_as_results():
    table = gg.Variable(np.ones((5, 2)))

    @gg.function(steps_per_call=2)
    def f(i):
        with gg.GradientTape() as tape:
            y = gg.sum(gg.gather(table, i))
        return tape.gradient(y, table)

    with pytest.raises(ArgumentError, match="to_dense"):
        f(gg.constant([[0, 1], [1, 2]]))


USES = {
    "op": lambda x: x + 1, "other side": lambda x: 1 - x, "function": lambda x: gg.sum(x),
    "shape": lambda x: x.shape, "repr": repr, "numpy": lambda x: x.numpy(), "index": lambda x: x[0],
    "list": lambda x: gg.concat([gg.ones((4, 3)), x]), "float": float, "dtype": lambda x: x.dtype,
    "gradient": lambda x: gg.grad(gg.sum)(x), "np": lambda x: np.asarray(x),
    "assign": lambda x: gg.Variable(np.ones((4, 3))).assign(x),
    "set": lambda x: x.__setitem__(0, 1),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_using_a_donated_tensor_raises(use):
    f = gg.function(lambda x, y: x * y, donate="x")
    for _ in range(3):  # including the traced call
        x, y = X * 1, X * 1
        same(f(x, y), X.numpy() ** 2)
        with pytest.raises(ArgumentError, match="was donated to <lambda>, which has taken"):
            USES[use](x)
        same(y, X)
        with pytest.raises(ArgumentError, match="was donated to <lambda>"):
            f(x, y)


@pytest.mark.parametrize("use", ["op", "shape", "index"])
def test_using_a_tensor_donated_to_several_steps_raises(use):
    def product(x, y):
        if x.shape == (2,):
            raise ZeroDivisionError
        return x * y

    f = gg.function(product, donate="x", steps_per_call=4)
    for _ in range(3):
        x, y = X * 1, X * 1
        same(f(x, y), X.numpy() ** 2)
        with pytest.raises(ArgumentError, match="was donated to product, which has taken"):
            USES[use](x)
        same(y, X)
        with pytest.raises(ArgumentError, match="was donated to product"):
            f(x, y)
    x = X[:, :2]
    with pytest.raises(ZeroDivisionError):
        f(x, x)
    same(x, X[:, :2])
    x = X * 1
    same(gg.grad(lambda x: gg.sum(f(x, X)))(x), X)
    same(x, X)


def test_views_and_copies_of_a_donated_tensor_keep_their_values():
    f = gg.function(lambda x: gg.tanh(x) * 2, donate=0)
    values = X.numpy()
    v = gg.Variable(X * 1)
    for _ in range(3):
        x = X * 1
        view, other, array = x[1:], copy.copy(x), np.asarray(x)
        near(f(x), np.tanh(values) * 2)
        same(view, values[1:]), same(other, values), same(array, values)
        near(f(v.value()), np.tanh(values) * 2)
        same(v, values)


@pytest.mark.parametrize("n", [8, 1 << 17])
@pytest.mark.parametrize("others", [lambda x: None, lambda x: x[1:], copy.copy, np.asarray])
def test_a_write_goes_over_donated_memory_if_nobody_else_sees_it(n, others):
    place = gg.constant([2])
    f = gg.function(lambda x, i: gg.index_put(x, [7.0], index=i), donate="x")
    fill = gg.function(lambda x, i: gg.index_fill(x, index=i, value=7.0), donate="x")
    chain = gg.function(lambda x, i: f(gg.index_put(x, [3.0], index=i) * 2, i + 1), donate="x")
    for g in (f, f, fill, fill, chain, chain):
        x = gg.asarray(np.arange(n, dtype=np.float32), copy=True)
        address, kept = x._data.ctypes.data, others(x)
        values = None if kept is None else np.array(kept)
        y = g(x, place)
        if g is not chain:
            assert (y._data.ctypes.data == address) == (kept is None)
        assert kept is None or np.array_equal(kept, values)
        assert y[:5].tolist() == ([0, 2, 6, 7, 8] if g is chain else [0, 1, 7, 3, 4])


def test_donated_memory_is_freed_after_the_last_step_that_reads_it():
    n = 1 << 18

    def chain(x):
        x = gg.cumulative_sum(x)
        for _ in range(3):
            x = gg.cumulative_sum(x) / n
        return x

    used = {}
    for donate in ((), "x"):
        f = gg.function(chain, donate=donate)
        f(gg.ones(n)), f(gg.ones(n))
        gc.collect()
        tracemalloc.start()
        f(gg.ones(n))
        used[donate] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert used["x"] <= used[()] - 3.9 * n  # float32


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the branch not taken
def test_a_donated_tensor_is_available_if_the_python_function_runs():
    f = gg.function(masked_gradient, donate="x")
    for values in ([1.0, 2.0], [0.0, 2.0]):
        x = gg.constant(values)
        want = masked_gradient(x)
        same(f(x), want)
        with pytest.raises(ArgumentError, match="donated"):
            x + 1
    assert f.cache_info().otherwise == 1


def test_errors_and_tapes_leave_a_donated_tensor_usable():
    f = gg.function(lambda x, i: gg.take(x, i) + gg.random.uniform(()), donate="x")
    x = gg.ones(3)
    f(gg.ones(3), gg.constant([0]))
    with pytest.raises(gg.errors.IndexOutOfBoundsError):
        f(x, gg.constant([5]))
    same(x, np.ones(3))
    g = gg.function(lambda x: gg.sum(x * x), donate="x")
    same(gg.grad(g)(x), 2 * np.ones(3))
    same(x, np.ones(3))


@pytest.mark.usefixtures("numpy_replay")
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("without", [None, *MEMORY])
def test_memory_reuse_can_be_switched_off(without, device):
    if device != "cpu" and gpu_count() == 0:
        pytest.skip(reason="needs a CUDA device")
    passes = {*pass_names(), *MEMORY} - {without}

    def training(wrapped):
        v = gg.Variable(np.ones((8, 8)), device=device)
        x, adam = gg.ones((8, 8), dtype="float64", device=device), gg.optim.Adam(0.1)

        def step(x):
            return adam.minimize(lambda: gg.sum(gg.exp(gg.sin(x @ v) * 2) ** 2), [v])

        step = wrapped(step)
        losses = [step(x).item() for _ in range(4)]
        return step, x, v, losses

    f, x, v, losses = training(lambda f: gg.function(f, passes=tuple(passes)))
    near(losses, training(lambda f: f)[3], 1e-12)
    planned = f.memory(x).arena
    addresses = set()
    for _ in range(3):
        f(x)
        addresses.add(v._data.ctypes.data if device == "cpu" else v._data.data.ptr)
    assert (len(addresses) == 1) == (without != "in place")
    if device == "cpu":
        most = gg.function(f.__wrapped__).memory(x).arena
        assert (planned == 0) == (without == "arena")
        assert (planned > most) == (without == "in place")
