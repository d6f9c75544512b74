"""Checks of ranks of which one meets a NaN, and alone might run a backward pass or a call twice."""

import numpy as np
from common import D, W

import gpugrad as gg


def check_nan_on_one_rank_is_skipped_by_all():
    skip_nans(gg.optim.Adam(0.1, skip_nonfinite=True))
    skip_nans(gg.optim.LossScaleOptimizer(gg.optim.Adam(0.1), initial_scale=8.0))


def skip_nans(inner):
    v = gg.Variable(np.ones(3))
    optimizer, rng = D.Optimizer(inner, [v]), np.random.default_rng(0)

    def step(x):
        with gg.GradientTape() as tape:
            loss = gg.sum(x * v * v)
            if isinstance(optimizer.inner, gg.optim.LossScaleOptimizer):
                loss = optimizer.scale_loss(loss)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])

    traced, skipped = gg.function(step), 0
    for _ in range(30):
        bad, by = rng.random() < 0.3, rng.integers(W.size)
        skipped += bad
        x = gg.constant(np.full(3, np.nan if bad and by == W.rank else 1.0))
        (traced if rng.random() < 0.5 else step)(x)
    assert optimizer.skipped == skipped
    assert optimizer.iterations == 30 - skipped
    assert len(set(W.gather(v.numpy().tobytes()))) == 1
    assert np.isfinite(v.numpy()).all()


def check_nan_of_one_rank_behind_a_collective_keeps_ranks_in_step():
    """A second backward pass of one rank would run collectives that no other rank joins."""
    v, rng = gg.Variable(np.ones(2)), np.random.default_rng(0)

    def step(c):
        with gg.GradientTape() as tape:
            plain = gg.sum(D.all_gather(v * v) * c)
            loss = plain + gg.sum(gg.recompute_grad(lambda t: D.all_gather(t) * c)(v))
        return tape.gradient(loss, v)

    traced = gg.function(step)
    for k in range(20):
        c = np.ones(2 * W.size)
        bad, by = rng.random() < 0.5, rng.integers(W.size)
        if bad and W.rank == by:
            c[0] = np.nan  # makes the gradient of rank 0 a NaN
        before = W.collectives
        gradient = (traced if k % 3 else step)(gg.constant(c)).numpy()
        assert np.isnan(gradient[0]) == (bad and W.rank == 0)
        assert gradient[1] == 3 * W.size
        assert len(set(W.gather(W.collectives - before))) == 1


def shielded(v, x):
    """Its plain backward pass gives NaN for large x, and the masked one is right."""
    return gg.where(x < 100, gg.exp(v * x), 0.0)


def scanned(v, x):
    total, _ = gg.scan(
        lambda t, row: (t + D.all_gather(shielded(v, row)), t), 0.0 * D.all_gather(v), x
    )
    return gg.sum(total)


@gg.custom_gradient
def summed(x):
    """The sum over ranks, by a rule that only communicates backward."""
    return gg.sum(x), lambda g: D.all_reduce(g) * gg.ones_like(x)


LOSSES = {
    "alone": lambda v, x: gg.sum(shielded(v, x)),
    "gathered": lambda v, x: gg.sum(D.all_gather(shielded(v, x))),
    "rule": lambda v, x: summed(shielded(v, x)),
    "scan": scanned,
    "cond": lambda v, x: gg.cond(
        gg.sum(v) > 0, lambda y: gg.sum(D.all_gather(y)), lambda y: gg.sum(y), shielded(v, x)
    ),
    "recomputed": lambda v, x: gg.sum(gg.recompute_grad(lambda t: D.all_gather(shielded(t, x)))(v)),
}


def check_masked_gradients_of_one_rank_keep_all_in_step():
    for name, loss in LOSSES.items():
        masked_alone(name, loss)


def masked_alone(name, loss):
    """Gradients of a loss, eager, of a traced function and in a traced step."""
    rng, v = np.random.default_rng(0), gg.Variable(np.full(2, 0.5))
    optimizer = D.Optimizer(gg.optim.SGD(0.0), [v])

    def step(x, of):
        with gg.GradientTape() as tape:
            value = of(v, x)
        gradient = tape.gradient(value, v)
        optimizer.apply_gradients([(gradient, v)])
        return gradient

    ways = (step, loss), (step, gg.function(loss)), (gg.function(lambda x: step(x, loss)),)
    for k in range(6):
        x = np.ones((3, 2))
        by, bad = rng.integers(W.size), rng.random() < 0.8
        if bad and by == W.rank:
            x[1, 0] = 1e4
        right = (1 if name == "alone" else W.size) * np.where(x < 100, np.exp(0.5), 0).sum(0)
        for call, *of in ways:
            before = W.collectives
            gradient = call(gg.constant(x), *of).numpy()
            assert len(set(W.gather(W.collectives - before))) == 1, (name, k)
            assert np.allclose(gradient, right), (name, k, gradient, right)
