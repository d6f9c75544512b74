"""Every optimizer that torch has: 50 steps from the same start, to rounding."""

import numpy as np
import pytest
from update_rules import make

import gpugrad as gg

torch = pytest.importorskip("torch", reason="compares with torch")
pytestmark = pytest.mark.peers

TORCH = {
    "sgd-decay": ("SGD", {"weight_decay": 0.1}),
    "momentum": ("SGD", {"momentum": 0.9}),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "adam": ("Adam", {}),
    "amsgrad": ("Adam", {"amsgrad": True, "betas": (0.9, 0.9)}),
    "adamw": ("AdamW", {"weight_decay": 0.1}),
    "nadam": ("NAdam", {}),
    "nadam-decay": ("NAdam", {"weight_decay": 0.1}),
    "radam": ("RAdam", {"weight_decay": 0.1}),
    "radam-short": ("RAdam", {"betas": (0.9, 0.9)}),
    "adamax": ("Adamax", {"weight_decay": 0.1}),
    "rmsprop": ("RMSprop", {"alpha": 0.9, "eps": 1e-7}),
    "rmsprop-all": (
        "RMSprop",
        {"alpha": 0.9, "eps": 1e-7, "momentum": 0.9, "centered": True, "weight_decay": 0.1},
    ),
    "adagrad": ("Adagrad", {}),
    "adagrad-all": (
        "Adagrad", {"initial_accumulator_value": 0.1, "lr_decay": 0.1, "weight_decay": 0.1},
    ),
    "adadelta": ("Adadelta", {}),
    "adadelta-decay": ("Adadelta", {"weight_decay": 0.1, "rho": 0.8}),
    "adafactor": ("Adafactor", {}),
    "adafactor-decay": ("Adafactor", {"weight_decay": 0.1}),
}  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("name", TORCH)
def test_fifty_steps_are_those_of_torch(name, device, rng):
    kind, settings = TORCH[name]
    start, gradients = rng.normal(size=(4, 5)), rng.normal(size=(50, 4, 5))
    theirs = torch.tensor(start, requires_grad=True)
    other = getattr(torch.optim, kind)([theirs], lr=0.1, **settings)
    with gg.device(device):
        ours, optimizer = gg.Variable(start), make(name)
        for g in gradients:
            optimizer.apply_gradients([(gg.constant(g), ours)])
            theirs.grad = torch.tensor(g)
            other.step()
    tolerance = 1e-7 if kind == "NAdam" else 1e-10  # torch multiplies its momenta in float32
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), tolerance, tolerance)


def test_fifty_steps_of_muon_are_those_of_torch_to_its_bfloat16(rng):
    start, gradients = rng.normal(size=(6, 4)), rng.normal(size=(50, 6, 4))
    theirs = torch.tensor(start, requires_grad=True)
    other = torch.optim.Muon([theirs], lr=0.02)
    ours, optimizer = gg.Variable(start), make("muon")
    optimizer.learning_rate = 0.02
    for g in gradients:
        optimizer.apply_gradients([(gg.constant(g), ours)])
        theirs.grad = torch.tensor(g)
        other.step()
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), 0, 0.02)
    assert abs(ours.numpy() - start).max() > 0.2


@pytest.mark.parametrize("search", ["strong_wolfe", None])
def test_fifty_steps_of_lbfgs_are_those_of_torch(search):
    start = np.linspace(-1.2, 1.0, 6)
    theirs = torch.tensor(start, requires_grad=True)
    rate = 1.0 if search else 1e-3
    settings = {"max_iter": 5, "history_size": 10, "line_search_fn": search}
    other = torch.optim.LBFGS([theirs], rate, **settings)
    x = gg.Variable(start)
    ours = gg.optim.LBFGS(rate, max_iterations=5, line_search=search)

    def loss(x):
        return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()

    def closure():
        other.zero_grad()
        value = loss(theirs)
        value.backward()
        return value

    for _ in range(10):
        expected = other.step(closure)
        value = ours.minimize(lambda: loss(x.value()), [x])
        np.testing.assert_allclose(value.item(), expected.item(), 1e-6, 1e-12)
    np.testing.assert_allclose(x.numpy(), theirs.detach().numpy(), 1e-6)
    assert ours.evaluations == other.state[theirs]["func_evals"]
