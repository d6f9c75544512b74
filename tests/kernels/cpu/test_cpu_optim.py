"""Optimizers' steps in C: every bit as NumPy computes it."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.kernels.cpu import compiler, optim, pool

pytestmark = pytest.mark.skipif(
    compiler.status().startswith("C kernels: none"), reason="needs a C++ compiler"
)

OPTIMIZERS = {
    "Adam": lambda: gg.optim.Adam(0.01),
    "AdamW": lambda: gg.optim.AdamW(lambda n: 0.01 / (n + 1), weight_decay=0.1, epsilon=1e-3),
    "SGD": lambda: gg.optim.SGD(0.1),
    "momentum": lambda: gg.optim.SGD(0.1, momentum=0.9),
    "Nesterov": lambda: gg.optim.SGD(0.1, momentum=0.5, nesterov=True),
    "global_clipnorm": lambda: gg.optim.Adam(0.01, global_clipnorm=1.0),
}
SHAPES = [(130, 70), (5,), (), (0, 3), (1,), (16384,), (16385,), (300, 100)]


@pytest.fixture(autouse=True)
def several_threads():
    before = pool.threads()
    pool.set_threads(3)
    yield
    pool.set_threads(before)


def train(make, dtypes, traced=False, steps=80, shapes=SHAPES):
    """The Variables after some steps; 80 steps multiply the averages out."""
    rng = np.random.default_rng(0)
    draw = rng.standard_normal
    variables = [gg.Variable(draw(s).astype(d)) for s in shapes for d in dtypes]
    slopes = [draw(v.shape).astype(v.dtype) for v in variables]
    optimizer = make()

    def step(k):
        gradients = [
            v.value() * 0.1 + s * k.astype(v.dtype) for v, s in zip(variables, slopes, strict=True)
        ]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    if traced:
        step = gg.function(step)
    for k in range(steps):
        step(gg.constant(np.sin(k)))
    return [v.numpy() for v in variables], optimizer.state_dict()


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtypes", [("f4",), ("f8", "f4")])
def test_steps_have_the_bits_of_numpy(name, dtypes, traced, monkeypatch):
    kinds, plain = [], optim.step

    def step(*args):
        result = plain(*args)
        kinds.append(result)
        return result

    monkeypatch.setattr(optim, "step", step)
    actual, state = train(OPTIMIZERS[name], dtypes, traced)
    assert None in kinds
    monkeypatch.setattr(optim, "step", lambda *args: NotImplemented)
    desired, state_desired = train(OPTIMIZERS[name], dtypes)
    for a, d in zip(actual, desired, strict=True):
        assert a.dtype == d.dtype
        assert np.array_equal(a, d)
    assert state.keys() == state_desired.keys()
    for key, value in state.items():
        assert np.array_equal(value.numpy(), state_desired[key].numpy()), key


def test_a_step_is_one_call(monkeypatch):
    calls, plain = [], optim.step
    monkeypatch.setattr(optim, "step", lambda *args: calls.append(args[0]) or plain(*args))
    train(OPTIMIZERS["AdamW"], ["f4"], steps=3)
    assert calls == ["adam"] * 3


@pytest.mark.parametrize("dtypes", [["c8"], ["f2", "f4"]])
def test_complex_numbers_step_as_pairs_and_halves_in_numpy(dtypes, monkeypatch):
    actual, _ = train(OPTIMIZERS["Adam"], dtypes, steps=5)
    monkeypatch.setattr(optim, "step", lambda *args: NotImplemented)
    desired, _ = train(OPTIMIZERS["Adam"], dtypes, steps=5)
    for a, d in zip(actual, desired, strict=True):
        assert np.array_equal(a, d)


def test_small_variables_are_left_to_numpy():
    arrays = [np.ones(9, np.float32)] * 4
    assert optim.step("adam", [arrays], [(1.0, 1.0, 1.0, 1.0, 1.0)]) is NotImplemented


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e-42, 3e38])
def test_extreme_gradients_have_the_bits_of_numpy(value):
    results = []
    for launch in (True, False):
        v = gg.Variable(np.linspace(-1, 1, 10_000, dtype=np.float32))
        g = np.full(10_000, value, np.float32) * np.sign(v.numpy())
        optimizer = gg.optim.Adam(0.01)
        with pytest.MonkeyPatch.context() as patch:
            if not launch:
                patch.setattr(optim, "step", lambda *args: NotImplemented)
            for _ in range(3):
                optimizer.apply_gradients([(gg.constant(g), v)])
        results.append(v.numpy())
    assert np.array_equal(*results, equal_nan=True)
