"""Optimizers that optax defines alike: 50 steps from the same start, to rounding.

optax's amsgrad, nadam and adafactor are other formulas than torch's, which gpugrad follows; so are
its lars with weight decay and its line search.
"""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad import optim

jax = pytest.importorskip("jax", reason="compares with optax")
optax = pytest.importorskip("optax", reason="compares with optax")
pytestmark = pytest.mark.peers

RATE = 0.1
CASES = {
    "sgd": (optim.SGD(RATE), lambda: optax.sgd(RATE)),
    "momentum": (optim.SGD(RATE, momentum=0.9), lambda: optax.sgd(RATE, momentum=0.9)),
    "nesterov": (
        optim.SGD(RATE, momentum=0.9, nesterov=True),
        lambda: optax.sgd(RATE, momentum=0.9, nesterov=True),
    ),
    "adam": (optim.Adam(RATE), lambda: optax.adam(RATE)),
    "adamw": (optim.AdamW(RATE, weight_decay=0.1), lambda: optax.adamw(RATE, weight_decay=0.1)),
    "adamax": (optim.Adamax(RATE), lambda: optax.adamax(RATE)),
    "radam": (optim.RAdam(RATE, epsilon=1e-20), lambda: optax.radam(RATE, eps=1e-20)),
    "rmsprop": (
        optim.RMSprop(RATE, epsilon=1e-7),
        lambda: optax.rmsprop(RATE, decay=0.9, eps=1e-7, eps_in_sqrt=False),
    ),
    "rmsprop-all": (
        optim.RMSprop(RATE, epsilon=1e-7, momentum=0.9, centered=True),
        lambda: optax.rmsprop(
            RATE, decay=0.9, eps=1e-7, eps_in_sqrt=False, momentum=0.9, centered=True
        ),
    ),
    "adagrad": (
        optim.Adagrad(RATE, initial_accumulator_value=0.1, epsilon=1e-20),
        lambda: optax.adagrad(RATE, initial_accumulator_value=0.1, eps=0.0),
    ),
    "adadelta": (
        optim.Adadelta(RATE, rho=0.8, epsilon=1e-6),
        lambda: optax.adadelta(RATE, rho=0.8, eps=1e-6),
    ),
    "lion": (optim.Lion(RATE, weight_decay=0.1), lambda: optax.lion(RATE, weight_decay=0.1)),
    "lamb": (
        optim.LAMB(RATE, weight_decay=0.01),
        lambda: optax.lamb(RATE, eps=1e-6, weight_decay=0.01),
    ),
    "lars": (
        optim.LARS(RATE, trust_coefficient=0.1, epsilon=1e-9),
        lambda: optax.lars(RATE, trust_coefficient=0.1, eps=1e-9),
    ),
    "clipped": (
        optim.Adam(RATE, global_clipnorm=1.0),
        lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adam(RATE)),
    ),
    "accumulated": (
        optim.Adam(RATE, accumulate=5),
        lambda: optax.MultiSteps(optax.adam(RATE), every_k_schedule=5),
    ),
    "cosine": (
        optim.SGD(optim.schedules.warmup(10, then=optim.schedules.cosine(RATE, 40))),
        lambda: optax.sgd(optax.warmup_cosine_decay_schedule(0.0, RATE, 10, 50)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_fifty_steps_are_those_of_optax(name, rng):
    optimizer, make = CASES[name]
    start, gradients = rng.normal(size=(4, 5)), rng.normal(size=(50, 4, 5))
    ours = gg.Variable(start)
    with jax.enable_x64(True):
        theirs, other = jax.numpy.asarray(start), make()
        state = other.init(theirs)
        for g in gradients:
            optimizer.apply_gradients([(gg.constant(g), ours)])
            updates, state = other.update(jax.numpy.asarray(g), state, theirs)
            theirs = optax.apply_updates(theirs, updates)
    tolerance = 1e-6 if name in ("accumulated", "cosine") else 1e-9  # whose steps are float32
    np.testing.assert_allclose(ours.numpy(), np.asarray(theirs), tolerance, tolerance)
    assert abs(ours.numpy() - start).max() > 1e-3
