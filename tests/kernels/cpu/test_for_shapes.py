"""Ops whose values nobody reads load no kernels."""

import numpy as np
import pytest
from needs import needs_compiler

import gpugrad as gg
from gpugrad.core.for_shapes import for_shapes
from gpugrad.kernels.cpu import compiler, pool, sums

X, IMAGES = np.ones((96, 96), np.float32), np.ones((2, 8, 16, 16), np.float32)


@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda: gg.nn.gelu(X), X.shape),
        (lambda: gg.nn.softmax(X), X.shape),
        (lambda: gg.cumsum(X, axis=0), X.shape),
        (lambda: gg.take(X, np.zeros(96, int), axis=0), X.shape),
        (lambda: gg.matmul(X, X), X.shape),
        (lambda: gg.nn.conv2d(IMAGES, np.ones((16, 8, 3, 3), np.float32)), (2, 16, 14, 14)),
    ],
)
def test_ops_for_shapes_load_no_kernels(f, shape, monkeypatch):
    monkeypatch.setattr(compiler, "_load", lambda *args: pytest.fail("a kernel was loaded"))
    with for_shapes():
        assert f().shape == shape


def test_a_first_call_runs_the_function_and_its_effects_once(capsys):
    calls = []

    @gg.function
    def f(x):
        calls.append(1)
        gg.debug.print("sum {}", gg.sum(x))
        return gg.nn.gelu(x)

    np.testing.assert_allclose(f(X), gg.nn.gelu(X), rtol=1e-6)
    assert calls == [1]
    assert capsys.readouterr().out.count("sum") == 1


@needs_compiler
def test_a_plan_loads_what_the_steps_left_to_python_call(monkeypatch):
    running = pool.Kernels("sums", "#define TYPE float\n#define RUNNING\n", running="l oo llll")
    unused = pool.Kernels("sums", "#define TYPE float\n#define TOTALS\n", totals="oo l")
    monkeypatch.setattr(sums, "_IN_C", [{"running": running, "totals": unused}])
    monkeypatch.setattr(compiler, "ahead", lambda *loads: [load() for load in loads])
    x = np.ones((512, 512), np.float32)
    gg.function(lambda x: gg.cumsum(gg.exp(x) + 1, axis=0) + 1).lower(x)
    assert ("loaded" in vars(running), "loaded" in vars(unused)) == (True, False)
