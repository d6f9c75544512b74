"""Schedules of learning rates."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import gpugrad as gg
from gpugrad import optim
from gpugrad.errors import ArgumentError
from gpugrad.optim import schedules as s

ALL = {
    "constant": s.constant(0.1),
    "step": s.step(0.1, every=3, factor=0.5),
    "exponential": s.exponential(0.1, 0.5, steps=4, end=0.02),
    "polynomial": s.polynomial(0.1, 10, end=0.01, power=2.0),
    "cosine": s.cosine(0.1, 10, end=0.01),
    "warmup": s.warmup(4, then=s.cosine(0.1, 10), start=0.01),
    "one_cycle": s.one_cycle(0.1, 20),
    "join": s.join([0.1, s.step(0.2, 2), lambda n: 1.0 / (n + 1)], [3, 7]),
    "piecewise": s.piecewise([3, 7], [0.1, 0.2, 0.05]),
    "product": 0.5 * s.cosine(0.1, 10) * s.step(1.0, 4),
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_traced_steps_follow_a_schedule(name, device):
    with gg.device(device):
        v, optimizer = gg.Variable(np.zeros(1)), optim.SGD(ALL[name])
        step = gg.function(lambda: optimizer.apply_gradients([(gg.ones_like(v), v)]))
        expected = 0.0
        for n in range(12):
            step()
            expected -= ALL[name](n)
            assert v.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", [n for n in ALL if n != "join"])
def test_schedules_are_pickled_and_say_what_they_are(name):
    schedule = ALL[name]
    again = pickle.loads(pickle.dumps(schedule))
    assert again == schedule
    assert eval(repr(schedule), vars(s)) == schedule
    assert repr(optim.Adam(schedule)).startswith(f"Adam(learning_rate={schedule!r}")
    assert isinstance(schedule(5), float)


def test_schedules_hold_their_last_value():
    for name, last in {"polynomial": 0.01, "cosine": 0.01, "one_cycle": 0.1 / 25 / 1e4,
                       "exponential": 0.02, "piecewise": 0.05}.items():  # fmt: skip
        assert ALL[name](10_000) == pytest.approx(last)


def test_warmup_rises_to_the_first_value_and_joins_its_schedule():
    schedule = ALL["warmup"]
    np.testing.assert_allclose([schedule(n) for n in range(5)], [0.01, 0.0325, 0.055, 0.0775, 0.1])
    assert schedule(9) == replace(schedule.then)(5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: s.cosine(0.1, 0), "cosine: steps must be above 0, got 0"),
        (lambda: s.step(0.1, -1), "step: every must be above 0"),
        (lambda: s.warmup(0, 0.1), "warmup: steps must be above 0"),
        (lambda: s.one_cycle(0.1, 10, rise=2.0), "rise must be from 0 to 1"),
        (lambda: s.exponential(0.1, 0.0), "factor must be above 0"),
        (lambda: s.polynomial(0.1, 5, power=0.0), "power must be above 0"),
        (lambda: s.join([0.1], [3]), "join: 1 boundaries need 2 schedules, got 1"),
        (lambda: s.piecewise([3, 3], [1, 2, 3]), r"boundaries must increase, got \[3, 3\]"),
    ],
)
def test_wrong_schedules_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


@pytest.mark.peers
def test_schedules_are_those_of_torch():
    torch = pytest.importorskip("torch", reason="compares with torch")
    lr = torch.optim.lr_scheduler
    pairs = {
        "step": lambda o: lr.StepLR(o, 3, 0.5),
        "cosine": lambda o: lr.CosineAnnealingLR(o, 10, 0.01),
        "one_cycle": lambda o: lr.OneCycleLR(o, 0.1, 20, cycle_momentum=False),
    }
    for name, make in pairs.items():
        other = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        theirs = make(other)
        for n in range(11 if name == "cosine" else 20):
            assert ALL[name](n) == pytest.approx(other.param_groups[0]["lr"], rel=1e-6), (name, n)
            other.step()
            theirs.step()
