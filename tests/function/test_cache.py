"""What the programs of a function keep alive, and how many there are."""

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from needs import needs_compiler

import gpugrad as gg
from gpugrad.function import cache
from gpugrad.function.cpu import c_program

X = gg.ones((2, 3))


class Model(gg.nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.optimizer = gg.nn.Dense(3, 1), gg.optim.Adam(0.1)

    @gg.function
    def forward(self, x):
        return gg.sum(self.dense(x))

    @gg.function
    def step(self, x):
        variables = self.dense.trainable_variables
        return self.optimizer.minimize(lambda: gg.sum(self.dense(x)), variables)

    def gradient(self, x):
        return gg.grad(self.forward)(x)


first = gg.function(lambda model, x: model.dense(x))
static = gg.function(lambda x, model: model.dense(x), static="model")
USES = {
    "call": lambda model: model.forward(X),
    "step": lambda model: model.step(X),
    "tape": lambda model: model.gradient(X),
    "argument": lambda model: first(model, X),
    "keyword": lambda model: Model.forward(model, x=X),
    "static": lambda model: static(X, model),
    "inside": lambda model: nested(X, {"models": [model]}),
}
nested = gg.function(lambda x, parts: parts["models"][0].dense(x))


@pytest.mark.filterwarnings("ignore:.*is traced for the")
@pytest.mark.parametrize("name", USES)
@pytest.mark.thin(3)
def test_programs_keep_no_object_alive_that_a_call_has_got(name):
    models = [Model() for _ in range(3)]
    for _ in range(2):
        for model in models:
            USES[name](model)
    gone = [weakref.ref(x) for model in models for x in (model, model.dense.kernel)]
    del models, model
    gc.collect()
    gc.collect()  # the programs have cycles of their own
    assert [x() for x in gone] == [None] * 6


def test_a_step_in_c_keeps_no_model_alive():
    x, gone = gg.ones((4, 200_000)), []
    for _ in range(2):
        dense, optimizer = gg.nn.Dense(200_000, 1), gg.optim.Adam(0.1)
        step = gg.function(lambda x, f=dense, by=optimizer: by.minimize(
            lambda: gg.sum(f(x)), f.trainable_variables))  # fmt: skip
        step(x)
        gone += [weakref.ref(dense), weakref.ref(dense.kernel)]
        del dense, optimizer, step
        gc.collect()
        gc.collect()
    assert [one() is None for one in gone] == [True] * 4


def test_a_program_serves_the_object_that_it_was_traced_for():
    first, second = Model(), Model()
    for model in (first, second, first):
        np.testing.assert_allclose(model.forward(X), gg.sum(model.dense(X)), 1e-6)
    traces = Model.forward.cache_info().traces
    first.forward(X), second.forward(X)
    assert Model.forward.cache_info().traces == traces


def test_programs_that_were_not_used_for_longest_go(monkeypatch):
    monkeypatch.setattr(cache, "MOST", 3)
    f = gg.function(lambda x, n: x * n)
    for n in (1, 2, 3, 1, 4):
        f(X, n)
    assert f.cache_info().traces == 4
    for n in (1, 3, 4):
        f(X, n)
    assert f.cache_info().traces == 4
    f(X, 2)
    assert f.cache_info().traces == 5


def mapped():
    """The files of which this process has mapped something."""
    return {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}


@needs_compiler
def test_the_library_of_a_program_goes_with_it(monkeypatch):
    monkeypatch.setattr(c_program, "setting", lambda: "always")
    f = gg.function(lambda x: gg.tanh(x * 0.37) + gg.exp(x) * 0.11)
    desired = f(gg.ones((50, 60))).numpy()  # loads the pool of threads, too
    f.clear()
    gc.collect()
    before = mapped()
    f(gg.ones((50, 60)))
    assert len(mapped() - before) == 1
    f.clear()
    gc.collect()
    assert mapped() == before
    np.testing.assert_array_equal(f(gg.ones((50, 60))), desired)
