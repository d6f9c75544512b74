"""Recurrent layers against their formulas, step by step."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.errors import ArgumentError, DTypeError, ShapeError

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
    with pytest.raises(ArgumentError, match="LSTM: state must be a list of the states of 1 "):
        layer(numbers(2, 7, 3), [None, None])
    with pytest.raises(ArgumentError, match="LSTM: layers"):
        nn.LSTM(3, 4, layers=0)


@pytest.mark.parametrize("name", LAYERS)
def test_a_state_that_does_not_fit_names_the_cell(name):
    layer, x, h = LAYERS[name](3, 4), numbers(2, 7, 3), numbers(2, 4)
    cell, wide, narrow = layer.cells[0], h.astype("f8"), numbers(1, 4)
    if name == "LSTM":
        wide, narrow = (h, wide), (narrow, h)
        for wrong in (h, [h], (h, h, h)):
            with pytest.raises(ArgumentError, match=r"LSTMCell: state must be \(h, c\), got"):
                layer(x, [wrong])
    for call in (lambda state: layer(x, [state]), lambda state: cell(x[:, 0], state)):
        with pytest.raises(DTypeError, match=rf"{name}Cell: (state|c) is float64"):
            call(wide)
        with pytest.raises(ShapeError, match=rf"{name}Cell: (state|h) must .*\(2, 4\), got \(1, 4"):
            call(narrow)
    with pytest.raises(ArgumentError, match=rf"{name}: the state of a bidirectional layer"):
        LAYERS[name](3, 4, bidirectional=True)(x, [[h, h, h]])


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_lengths_give_what_each_sequence_gives_alone(name, wrapped):
    layer = randomised(LAYERS[name](3, 4, layers=2, bidirectional=True))
    x, lengths = gg.Variable(numbers(4, 7, 3)), np.array([7, 1, 4, 0])

    def run(x):
        return layer(x, lengths=lengths)

    with gg.GradientTape() as tape:
        ys, states = (gg.function(run) if wrapped else run)(x)
        loss = gg.sum(ys**2)
    slopes = tape.gradient(loss, x).numpy()
    for k, n in enumerate(lengths):
        assert not ys.numpy()[k, n:].any()
        assert not slopes[k, n:].any()
        if n:
            part = gg.Variable(x.numpy()[k, :n])
            with gg.GradientTape() as tape:
                y, last = layer(part)
                loss = gg.sum(y**2)
            np.testing.assert_allclose(ys.numpy()[k, :n], y.numpy(), 1e-5, 1e-6)
            np.testing.assert_allclose(slopes[k, :n], tape.gradient(loss, part).numpy(), 1e-4, 1e-5)
            for a, b in zip(nest.flatten(states), nest.flatten(last), strict=True):
                np.testing.assert_allclose(a.numpy()[k], b.numpy(), 1e-5, 1e-6)
        else:
            assert not any(a.numpy()[k].any() for a in nest.flatten(states))


def test_wrong_lengths_are_refused():
    with pytest.raises(ShapeError, match=r"GRUCell: lengths must have the shape \(2,\), got \(3,"):
        nn.GRU(3, 4)(numbers(2, 7, 3), lengths=[1, 2, 3])
    with pytest.raises(DTypeError, match="GRUCell: lengths must be integers, got float32"):
        nn.GRU(3, 4)(numbers(2, 7, 3), lengths=[1.0, 2.0])


def test_an_rnn_may_have_another_activation():
    layer, x = randomised(nn.RNN(3, 4, 2, activation=gg.relu)), numbers(1, 1, 3)
    first, second = (cell.kernel.numpy() for cell in layer.cells)
    h = np.maximum(x @ first + layer.cells[0].bias.numpy(), 0)
    h = np.maximum(h @ second + layer.cells[1].bias.numpy(), 0)
    np.testing.assert_allclose(layer(x)[0].numpy(), h, 1e-5)
    with pytest.raises(ArgumentError, match="RNNCell: activation must be a function"):
        nn.RNNCell(3, 4, activation="relux")


@pytest.mark.peers
def test_lengths_and_relu_are_those_of_torch():
    torch = pytest.importorskip("torch")
    rnn = torch.nn.utils.rnn
    for name, how in (("LSTM", {}), ("GRU", {}), ("RNN", {"nonlinearity": "relu"})):
        peer = getattr(torch.nn, name)(3, 4, 2, bidirectional=True, batch_first=True, **how)
        ours = {"activation": gg.relu} if how else {}
        layer = LAYERS[name](3, 4, 2, bidirectional=True, **ours)
        nn.load_torch(layer, peer.state_dict())
        x, lengths = numbers(3, 7, 3), [2, 7, 5]
        packed = rnn.pack_padded_sequence(torch.tensor(x), lengths, True, enforce_sorted=False)
        desired = rnn.pad_packed_sequence(peer(packed)[0], True)[0]
        actual = layer(x, lengths=lengths)[0]
        np.testing.assert_allclose(actual.numpy(), desired.detach().numpy(), 1e-4, 1e-5)


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
