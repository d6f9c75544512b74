"""EMA and SWA of weights."""

import contextlib

import numpy as np
import pytest

import gpugrad as gg
from gpugrad import nn, optim
from gpugrad.errors import ArgumentError, CheckpointError, DTypeError
from gpugrad.kernels.codegen import update_kernel


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
@pytest.mark.parametrize("kind", ["ema", "schedule", "swa"])
def test_averages_follow_the_formula(kind, wrapped, device, rng):
    with gg.device(device):
        v, w = gg.Variable(rng.normal(size=(2, 3))), gg.Variable(rng.normal(size=4))
        optimizer = optim.SGD(0.5)
        if kind == "swa":
            averages = optim.SWA([v, w])
        else:
            averages = optim.EMA([v, [w]], 0.75 if kind == "ema" else lambda n: (1 + n) / (10 + n))
        expected = [v.numpy(), w.numpy()]

        @wrapped
        def step(g, h):
            optimizer.apply_gradients([(g, v), (h, w)])
            averages.update()

        for n in range(5):
            step(gg.constant(rng.normal(size=(2, 3))), gg.constant(rng.normal(size=4)))
            decay = {"ema": 0.75, "schedule": (1 + n) / (10 + n), "swa": n / (n + 1)}[kind]
            for k, x in enumerate((v, w)):
                expected[k] = decay * expected[k] + (1 - decay) * x.numpy()
    for average, e in zip(averages.averages, expected, strict=True):
        np.testing.assert_allclose(average.numpy(), e, 1e-12)
    assert averages.updates == 5


def test_apply_gives_the_values_back_even_after_an_error():
    v = gg.Variable([1.0, 2.0])
    ema = optim.EMA([v], 0.5)
    v.assign([3.0, 4.0])
    ema.update()
    with contextlib.suppress(ZeroDivisionError), ema.apply():
        assert v.tolist() == [2.0, 3.0]
        raise ZeroDivisionError
    assert v.tolist() == [3.0, 4.0]
    ema.assign()
    assert v.tolist() == [2.0, 3.0]


def test_averages_of_a_module_are_saved_and_restored(tmp_path, rng):
    def train(model, optimizer, ema, xs):
        for x in xs:
            optimizer.minimize(lambda x=x: gg.sum(model(gg.constant(x)) ** 2))
            ema.update()

    xs = rng.normal(size=(8, 2, 3)).astype(np.float32)
    whole, half = nn.Dense(3, 2), nn.Dense(3, 2)
    half.load_state_dict(whole.state_dict())
    one = optim.EMA(whole, 0.9)
    train(whole, optim.SGD(0.1), one, xs)
    two = optim.EMA(half, 0.9)
    train(half, optim.SGD(0.1), two, xs[:4])
    gg.checkpoint.save(tmp_path / "ema.safetensors", half, optimizer=two)
    again = nn.Dense(3, 2)
    three = optim.EMA(again, 0.9)
    gg.checkpoint.restore(tmp_path / "ema.safetensors", again, three)
    train(again, optim.SGD(0.1), three, xs[4:])
    for a, b in zip(three.averages, one.averages, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    state = three.state_dict()
    with pytest.raises(CheckpointError, match=r"lacks '0\.average'"):
        three.load_state_dict({k: t for k, t in state.items() if k != "0.average"})
    with pytest.raises(CheckpointError, match="unexpected state"):
        three.load_state_dict({**state, "5.average": state["0.average"]})
    with pytest.raises(CheckpointError, match="SWA: the state belongs to EMA, not to SWA"):
        optim.SWA(again).load_state_dict(state)
    state.pop("rule")  # older files lack it
    three.load_state_dict(state)


@pytest.mark.parametrize("make", [optim.EMA, lambda vs: optim.Adam(0.1)])
def test_a_saved_state_warns_of_variables_that_it_leaves_out(make, tmp_path):
    model, other = nn.Dense(1, 1), gg.Variable([1.0], name="other")
    keeper = make([*model.variables, other])
    if isinstance(keeper, optim.Adam):
        keeper.apply_gradients([(gg.ones_like(v), v) for v in [*model.variables, other]])
    with pytest.warns(UserWarning, match="the state of 'other' is left out"):
        gg.checkpoint.save(tmp_path / "a.safetensors", model, optimizer=keeper)
    gg.checkpoint.save(tmp_path / "a.safetensors", {**model.state(), "o": other}, optimizer=keeper)


def test_averages_of_16_bit_variables_are_float32():
    v = gg.Variable(gg.constant([1.0], "float16"))
    ema = optim.EMA([v], 0.999)
    for _ in range(10):
        v.assign(gg.constant([2.0], "float16"))
        ema.update()
    assert ema.averages[0].dtype == np.float32
    np.testing.assert_allclose(ema.averages[0].numpy(), 2 - 0.999**10, 1e-6)
    with ema.apply():
        assert v.dtype == np.float16


def test_an_update_on_a_gpu_is_one_launch(cuda, launches_of):
    counted = launches_of(update_kernel)
    variables = [gg.Variable(np.ones(n), device=cuda) for n in (3, 5, 70)]
    optim.EMA(variables, 0.9).update()
    assert len(counted) == 1


def test_an_update_is_skipped_if_when_is_false():
    v = gg.Variable([1.0])
    ema = optim.EMA([v], 0.0)
    v.assign([2.0])
    ema.update(when=gg.constant(False))
    assert (ema.averages[0].tolist(), ema.updates) == ([1.0], 0)


def test_wrong_arguments_of_averages_are_refused():
    for decay in (1.0, -0.1):
        with pytest.raises(ArgumentError, match="decay must be at least 0 and below 1"):
            optim.EMA([gg.Variable(1.0)], decay)
    with pytest.raises(ArgumentError, match="SWA: there are no Variables"):
        optim.SWA([])
    with pytest.raises(DTypeError, match="'n' is int"):
        optim.EMA([gg.Variable(1, name="n")])
