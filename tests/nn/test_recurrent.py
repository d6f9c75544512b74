"""Recurrent layers against their formulas, step by step."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.errors import ArgumentError, ShapeError

nn = gg.nn
LAYERS = {"RNN": nn.RNN, "LSTM": nn.LSTM, "GRU": nn.GRU}


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("f4")


def randomised(layer):
    rng = np.random.default_rng(1)
    for v in layer.variables:
        v.assign(rng.normal(size=v.shape).astype("f4") * 0.5)
    return layer


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(name, cell, x, state):
    """One step in NumPy: the next state and the output."""
    k, u, b = (v.numpy() for v in (cell.kernel, cell.recurrent_kernel, cell.bias))
    if name == "RNN":
        h = np.tanh(x @ k + state @ u + b)
        return h, h
    if name == "LSTM":
        h, c = state
        i, f, g, o = np.split(x @ k + h @ u + b, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h, c), h
    r, z, n = np.split(x @ k + b, 3, -1)
    r2, z2, n2 = np.split(state @ u + cell.recurrent_bias.numpy(), 3, -1)
    z = sigmoid(z + z2)
    h = z * state + (1 - z) * np.tanh(n + sigmoid(r + r2) * n2)
    return h, h


def run(name, cell, x, reverse=False):
    zero = np.zeros((x.shape[0], cell.units))
    state, ys = ((zero, zero) if name == "LSTM" else zero), [None] * x.shape[1]
    for t in range(x.shape[1])[:: -1 if reverse else 1]:
        state, ys[t] = step(name, cell, x[:, t], state)
    return np.stack(ys, 1), state


def same(actual, desired):
    if isinstance(desired, tuple):
        for a, d in zip(actual, desired, strict=True):
            same(a, d)
    else:
        np.testing.assert_allclose(actual.numpy(), desired, 1e-4, 1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_match_the_formula_step_by_step(name):
    layer = randomised(LAYERS[name](3, 4, layers=2))
    x = numbers(2, 7, 3)
    y, state = layer(x)
    first, first_state = run(name, layer.cells[0], x)
    second, second_state = run(name, layer.cells[1], first)
    same(y, second)
    same(state[0], first_state)
    same(state[1], second_state)


@pytest.mark.parametrize("name", LAYERS)
def test_a_bidirectional_layer_joins_both_directions(name):
    layer = randomised(LAYERS[name](3, 4, bidirectional=True))
    x = numbers(2, 7, 3)
    y, [(there, back)] = layer(x)
    forward, forward_state = run(name, layer.cells[0], x)
    backward, backward_state = run(name, layer.reverse_cells[0], x, reverse=True)
    same(y, np.concatenate([forward, backward], -1))
    same(there, forward_state)
    same(back, backward_state)


@pytest.mark.parametrize("name", LAYERS)
def test_a_sequence_in_two_parts_goes_on_from_the_state(name):
    layer, x = randomised(LAYERS[name](3, 4, layers=2)), numbers(2, 7, 3)
    y, state = layer(x)
    first, between = layer(x[:, :3])
    second, after = layer(x[:, 3:], between)
    np.testing.assert_allclose(gg.concat([first, second], axis=1).numpy(), y.numpy(), 1e-4, 1e-6)
    for a, b in zip(nest.flatten(state), nest.flatten(after), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_reach_every_variable_in_functions_too(name):
    layer, x = LAYERS[name](3, 4, layers=2, bidirectional=True, dropout=0.2), numbers(2, 5, 3)

    def gradients():
        with gg.GradientTape() as tape, nn.training(False):
            loss = gg.sum(layer(x)[0] ** 2)
        return tape.gradient(loss, layer.trainable_variables)

    eager = gradients()
    assert all(g is not None for g in eager)
    for a, b in zip(eager, gg.function(gradients)(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-5)


def test_the_forget_gate_begins_open():
    cell = nn.LSTMCell(2, 3)
    np.testing.assert_array_equal(cell.bias.numpy(), [0] * 3 + [1] * 3 + [0] * 6)
    assert not nn.LSTMCell(2, 3, unit_forget_bias=False).bias.numpy().any()
    assert nn.LSTMCell(2, 3, use_bias=False).bias is None


def test_wrong_inputs_name_the_layer():
    layer = nn.LSTM(3, 4)
    with pytest.raises(ShapeError, match=r"LSTMCell: the last axis of x must have length 3"):
        layer(numbers(2, 7, 5))
    with pytest.raises(ShapeError, match="x needs a time axis"):
        layer(numbers(3))
    with pytest.raises(ArgumentError, match="LSTM: state must have 1 entries"):
        layer(numbers(2, 7, 3), [None, None])
    with pytest.raises(ArgumentError, match="LSTM: layers"):
        nn.LSTM(3, 4, layers=0)


@pytest.mark.peers
@pytest.mark.parametrize("name", LAYERS)
def test_layers_match_torch(name):
    torch = pytest.importorskip("torch")
    layer, x = randomised(LAYERS[name](3, 4, layers=2, bidirectional=True)), numbers(2, 7, 3)
    peer = getattr(torch.nn, name)(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    with torch.no_grad():
        for k in range(2):
            for cell, suffix in ((layer.cells[k], ""), (layer.reverse_cells[k], "_reverse")):
                second = getattr(cell, "recurrent_bias", None)
                values = {
                    "weight_ih": cell.kernel.numpy().T,
                    "weight_hh": cell.recurrent_kernel.numpy().T,
                    "bias_ih": cell.bias.numpy(),
                    "bias_hh": 0 * cell.bias.numpy() if second is None else second.numpy(),
                }
                for what, value in values.items():
                    getattr(peer, f"{what}_l{k}{suffix}").copy_(torch.from_numpy(value.copy()))
        desired = peer(torch.from_numpy(x))[0].numpy()
    np.testing.assert_allclose(layer(x)[0].numpy(), desired, 1e-4, 1e-5)
