"""After an assignment nothing reads or writes the memory that a Variable had before."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core import backend

pytestmark = pytest.mark.device


def train(device, kept):
    """Losses of steps between which all Variables get new arrays; the old memory becomes NaN."""
    cp, results = backend.cupy(), []
    with gg.device(device):
        x = gg.reshape(gg.linspace(-1.0, 1.5, 12), (4, 3))
        w, b = gg.Variable(gg.full((3, 2), 0.5)), gg.Variable(gg.zeros(2))
        only_read = gg.Variable(gg.full((3, 2), 0.5))
        optimizer = gg.optim.SGD(0.1, momentum=0.9)

        def eager(x):
            with gg.GradientTape() as tape:
                loss = gg.mean(gg.square(x @ w + b - 1))
            optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
            return loss

        traced, read = gg.function(eager), gg.function(lambda x: gg.sum(gg.tanh(x @ only_read)))
        for k in range(12):
            results += [f(x).item() for f in ((eager, traced, read)[k % 3], traced, read)]
            if k < 5:  # traces, captures, replays
                continue
            for v in (w, b, only_read):
                shape, old = v.shape, v._data if kept else None
                v.assign(gg.full(shape, 0.25 + k / 16))
                if kept and device != "cpu" and old is not v._data:
                    old[...] = np.nan
            if device != "cpu":  # memory that was freed goes to the next array of its size
                spoilt = [
                    cp.full(v.shape, np.nan, np.float32)
                    for v in (w, b, only_read)
                    for _ in range(4)
                ]
                del spoilt
    return results


@pytest.mark.parametrize("kept", [True, False], ids=["held by another", "freed"])
def test_no_step_uses_the_memory_that_a_variable_had_before(cuda, kept):
    np.testing.assert_allclose(train(cuda, kept), train("cpu", kept), rtol=1e-4, atol=1e-6)
