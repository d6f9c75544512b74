"""The usual recipe for a transformer, all options at once: resumed, it continues bit for bit."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad import nn, optim
from gpugrad.optim import schedules


def no_decay(name, variable):
    return variable.ndim < 2


class Run:
    """A model, its optimizer, and averages of its weights."""

    def __init__(self, wrapped, scaled):
        gg.random.set_seed(3)
        self.model = nn.Sequential([nn.Dense(4, 8), nn.Dense(8, 2)])
        self.inner = optim.AdamW(
            schedules.warmup(2, then=schedules.cosine(0.1, 8)),
            weight_decay=0.1,
            groups=[("*1.kernel", {"learning_rate": 0.01}), (no_decay, {"weight_decay": 0.0})],
            global_clipnorm=0.5,
            accumulate=2,
            skip_nonfinite=True,
        )
        self.optimizer = self.inner
        if scaled:
            self.optimizer = optim.LossScaleOptimizer(self.inner, initial_scale=2.0**8)
        self.inner.build(self.model)
        self.ema = optim.EMA(self.model, 0.9)
        self.scaled, self.step = scaled, wrapped(self._step)

    def _step(self, x):
        with gg.GradientTape() as tape:
            loss = gg.mean(self.model(x) ** 2)
            loss = self.optimizer.scale_loss(loss) if self.scaled else loss
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        self.ema.update()

    def values(self):
        return [v.numpy() for v in (*self.model.variables, *self.ema.averages)]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("scaled", [False, True])
def test_the_recipe_resumes_bit_for_bit_and_is_the_same_traced(scaled, device, tmp_path, rng):
    xs = rng.normal(size=(15, 3, 4)).astype(np.float32)
    xs[4, 0, 0] = np.nan
    with gg.device(device):
        whole, half, again = (Run(gg.function, scaled) for _ in range(3))
        eager = Run(lambda f: f, scaled)
        for run in (whole, eager):
            for x in xs:
                run.step(gg.constant(x))
        for x in xs[:7]:  # in the middle of two calls that make a step
            half.step(gg.constant(x))
        gg.checkpoint.save(tmp_path / "model", half.model, optimizer=half.optimizer)
        gg.checkpoint.save(tmp_path / "ema", half.model, optimizer=half.ema)
        gg.checkpoint.restore(tmp_path / "model", again.model, again.optimizer)
        gg.checkpoint.restore(tmp_path / "ema", again.model, again.ema)
        for x in xs[7:]:
            again.step(gg.constant(x))
    for a, b, c in zip(whole.values(), again.values(), eager.values(), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, c, 1e-5, 1e-6)
    # a loss scale skips the call, `skip_nonfinite` the step of two calls
    assert again.inner.iterations == whole.inner.iterations == (7 if scaled else 6)
    assert again.inner.skipped == whole.inner.skipped == 1
