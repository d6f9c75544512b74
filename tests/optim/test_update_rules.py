"""Every optimizer follows the formula of its paper: eager, traced, on both devices, and resumed."""

import numpy as np
import pytest
from update_rules import CASES, Written, make

import gpugrad as gg
from gpugrad import optim
from gpugrad.kernels.codegen import update_kernel

TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
SHAPES = [(3, 4), (5,), (), (0,), (70_001,)]  # the last has two blocks


@pytest.fixture(params=CASES)
def name(request):
    return request.param


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.thin(2)
def test_optimizer_follows_the_formula(name, device, wrapped, dtype, rng):
    shapes = SHAPES if device == "cpu" else SHAPES[:4]
    starts = [rng.normal(size=s).astype(dtype) for s in shapes]
    expected = [Written(name, s.astype("float64")) for s in starts]
    with gg.device(device):
        variables, optimizer = [gg.Variable(s) for s in starts], make(name)

        @wrapped
        def step(*gradients):
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        for _ in range(8):
            gradients = [rng.normal(size=s).astype(dtype) for s in shapes]
            step(*map(gg.constant, gradients))
            for w, g in zip(expected, gradients, strict=True):
                w.step(g.astype("float64"))
    for v, w in zip(variables, expected, strict=True):
        assert v.dtype == dtype
        np.testing.assert_allclose(v.numpy(), w.p, TOLERANCE[dtype], TOLERANCE[dtype])
    assert optimizer.iterations == 8


def test_optimizer_follows_the_formula_for_400_steps(name, rng):
    # six of them look for subnormal numbers in the averages
    v = gg.Variable(rng.normal(size=50))
    expected, optimizer = Written(name, v.numpy()), make(name, 0.01)
    for _ in range(400):
        g = rng.normal(size=50)
        optimizer.apply_gradients([(gg.constant(g), v)])
        expected.step(g, 0.01)
    np.testing.assert_allclose(v.numpy(), expected.p, 1e-8, 1e-8)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
def test_groups_and_clipping_work_with_every_optimizer(name, wrapped, device, rng):
    shapes, factor, limit = [(3, 4), (4,), (2,)], [1.0, 1.0, 0.1], 0.5
    with gg.device(device):
        variables = [
            gg.Variable(rng.normal(size=s), name=n)
            for s, n in zip(shapes, ("kernel", "bias", "slow"), strict=True)
        ]
        expected = [Written(name, v.numpy()) for v in variables]
        decays = "weight_decay" in type(make(name)).hyper
        expected[1] = Written(name, expected[1].p, **{"weight_decay": 0.0} if decays else {})
        groups = [
            ("slow", {"learning_rate": lambda step: 0.01}),
            (lambda n, v: v.ndim < 2, {"weight_decay": 0.0} if decays else {}),
        ]
        optimizer = make(name, groups=groups, global_clipnorm=limit)

        @wrapped
        def step(*gradients):
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        for _ in range(4):
            gradients = [rng.normal(size=s) for s in shapes]
            step(*map(gg.constant, gradients))
            norm = np.linalg.norm(np.concatenate([g.ravel() for g in gradients]))
            for w, g, f in zip(expected, gradients, factor, strict=True):
                w.step(g * min(1, limit / norm), 0.1 * f)
    for v, w in zip(variables, expected, strict=True):
        np.testing.assert_allclose(v.numpy(), w.p, 1e-9, 1e-9)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_state_restored_in_the_middle_continues_bit_for_bit(name, device, rng):
    gradients = rng.normal(size=(60, 7)).astype(np.float32)

    def run(optimizer, v, gradients):
        for g in gradients:
            optimizer.apply_gradients([(gg.constant(g), v)])

    with gg.device(device):
        whole, half = (gg.Variable(np.ones(7, np.float32)) for _ in range(2))
        run(make(name), whole, gradients)
        first, second = make(name), make(name)
        run(first, half, gradients[:31])
        again = gg.Variable(half.numpy())
        state = {k: t.numpy() for k, t in first.state_dict({"w": half}).items()}
        second.load_state_dict(state, {"w": again})
        run(second, again, gradients[31:])
    np.testing.assert_array_equal(again.numpy(), whole.numpy())


@pytest.mark.parametrize("traced", [False, True])
def test_a_step_on_a_gpu_is_one_launch_or_two_with_norms(name, traced, cuda, launches_of):
    counted = launches_of(update_kernel)
    with gg.device(cuda):
        variables = [gg.Variable(np.ones(n)) for n in (3, 5, 70)]
        optimizer = make(name)

        def step(x):
            optimizer.apply_gradients([(gg.ones_like(v) * x, v) for v in variables])

        step = gg.function(step) if traced else step
        step(gg.constant(1.0, "float64"))
        counted.clear()
        step(gg.constant(2.0, "float64"))
    assert len(counted) == (2 if name in ("lamb", "lars") else 1)


@pytest.mark.parametrize("traced", [False, True])
def test_two_groups_are_two_launches(traced, cuda, launches_of):
    counted = launches_of(update_kernel)
    groups = [(lambda name, v: v.ndim < 2, {"weight_decay": 0.0})]
    with gg.device(cuda):
        variables = [gg.Variable(np.ones(s)) for s in ((3, 2), (3,), (4, 4), (), (5,))]
        optimizer = optim.AdamW(0.1, groups=groups)

        def step(x):
            optimizer.apply_gradients([(gg.ones_like(v) * x, v) for v in variables])

        step = gg.function(step) if traced else step
        step(gg.constant(1.0, "float64"))
        counted.clear()
        step(gg.constant(2.0, "float64"))
    assert counted == ["adamw<double>"] * 2


@pytest.mark.parametrize("name", ["lamb", "lars"])
def test_norms_of_zeros_scale_nothing(name, cuda):
    for device in ("cpu", cuda):
        v, optimizer = gg.Variable(np.zeros(3), device=device), make(name)
        expected = Written(name, np.zeros(3))
        for g in (np.zeros(3), np.array([1.0, 0.0, -2.0])):
            optimizer.apply_gradients([(gg.constant(g, device=device), v)])
            expected.step(g)
        np.testing.assert_allclose(v.numpy(), expected.p, 1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_averages_of_16_bit_variables_are_float32(name, dtype, rng):
    start, g = rng.normal(size=6).astype(np.float32), rng.normal(size=6)
    v, expected, optimizer = gg.Variable(gg.constant(start, dtype)), None, make(name, 0.01)
    expected = Written(name, v.numpy().astype("float64"))
    optimizer.apply_gradients([(gg.constant(g, dtype), v)])
    expected.step(gg.constant(g, dtype).numpy().astype("float64"), 0.01)
    state = optimizer.state_dict({"w": v})
    assert all(state[f"w.{slot}"].dtype == np.float32 for slot in optimizer.slots)
    tolerance = 2e-3 if dtype == "float16" else 1e-2
    np.testing.assert_allclose(v.numpy().astype("float64"), expected.p, tolerance, tolerance)


def test_weight_decay_of_one_group_is_enough():
    decayed, other = gg.Variable(np.ones(2), name="kernel"), gg.Variable(np.ones(2), name="bias")
    zero = gg.zeros(2, dtype="float64")
    for name in ("sgd", "adamw", "lion"):
        optimizer = make(name) if name == "sgd" else CASES[name][0](0.1, weight_decay=0.0)
        optimizer = type(optimizer)(0.1, weight_decay=0.0, groups={"kernel": {"weight_decay": 0.5}})
        optimizer.apply_gradients([(zero, decayed), (zero, other)])
    assert (other.numpy() == 1).all()
    np.testing.assert_allclose(decayed.numpy(), 0.95**3)


def test_momentum_of_one_group_is_enough(rng):
    a, b = gg.Variable(np.ones(3), name="a"), gg.Variable(np.ones(3), name="b")
    optimizer = optim.SGD(0.1, groups={"b": {"momentum": 0.9}})
    expected = Written("sgd", a.numpy()), Written("momentum", b.numpy())
    for _ in range(3):
        g = rng.normal(size=3)
        optimizer.apply_gradients([(gg.constant(g), a), (gg.constant(g), b)])
        for w in expected:
            w.step(g)
    np.testing.assert_allclose(a.numpy(), expected[0].p)
    np.testing.assert_allclose(b.numpy(), expected[1].p)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
def test_indexed_slices_touch_only_their_rows_in_adagrad(wrapped, device, rng, monkeypatch):
    monkeypatch.setattr(gg.IndexedSlices, "to_dense", None)  # would be called otherwise
    start = rng.normal(size=(6, 2))
    expected = Written("adagrad", start)
    with gg.device(device):
        table, optimizer = gg.Variable(start), optim.Adagrad(0.1)

        @wrapped
        def step(values, indices):
            optimizer.apply_gradients([(gg.IndexedSlices(values, indices), table)])

        for at in ([4, 1, 4], [0, 1, 2], [1, 1, 1]):
            values = rng.normal(size=(3, 2))
            step(gg.constant(values), gg.constant(at))
            g = np.zeros_like(start)
            np.add.at(g, at, values)
            expected.step(g)
    np.testing.assert_allclose(table.numpy(), expected.p, 1e-12)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_rows_in_16_bits_are_summed_as_in_the_dense_gradient(name, dtype, device):
    values = gg.constant(np.array([[1.0], [2.0**-8], [2.0**-8], [3.0]]), dtype, device=device)
    rows = gg.IndexedSlices(values, gg.constant([1, 1, 1, 0], device=device), (3, 1))
    one, other = (gg.Variable(gg.ones((3, 1), dtype=dtype, device=device)) for _ in range(2))
    make(name).apply_gradients([(rows, one)])
    make(name).apply_gradients([(rows.to_dense(), other)])
    np.testing.assert_array_equal(one.numpy(), other.numpy())
