"""The NumPy reading of update rules: its text, and random formulas against plain NumPy."""

import textwrap
from types import SimpleNamespace

import numpy as np
import pytest

from gpugrad.kernels.codegen import steps
from gpugrad.optim import rules
from gpugrad.optim.rules import Rule


def momentum(xp, s, p, g, velocity):
    velocity = s.momentum * velocity + g
    return p - s.rate * velocity, velocity


def without_layout(text):
    return " ".join(text.split())


def test_passes_are_those_of_the_docstring():
    text = Rule("sgd", momentum, ("momentum", "rate"), 1).passes.text
    assert textwrap.indent(text, "    ") in rules.__doc__


def test_cuda_is_that_of_the_docstring():
    kernel = steps.StepKernel("sgd", lambda xp, s, p, g: (p - s.rate * g,), ("rate",), 0)
    _, _, shown = steps.__doc__.partition("::\n")
    shown = without_layout(shown.partition("...")[0])
    assert shown in without_layout(kernel.source(np.float32))


NAMES = ("a", "b", "c")


def operations(xp, s, x, y, number):
    return [
        lambda: x + y,
        lambda: x - y,
        lambda: x * y,
        lambda: x / (xp.absolute(y) + 0.5),
        lambda: number * x,
        lambda: x + number,
        lambda: number - x,
        lambda: x / 3.0,
        lambda: 1.0 / (xp.absolute(x) + 1.0),
        lambda: xp.sqrt(xp.absolute(x) * 2.0),
        lambda: xp.square(number * x) * 0.1,
        lambda: xp.sign(s.b * x),
        lambda: xp.maximum(x, number * y),
        lambda: xp.maximum(s.c * x, 0.0),
        lambda: -x,
    ]


def random_formula(seed, n_slots):
    """A formula of random operations; the same one whenever it is called."""

    def formula(xp, s, p, g, *slots):
        rng = np.random.default_rng(seed)
        raw = [p, g, *slots]
        new = []
        for m in slots:  # averages that decay, are compared, or neither
            kind = rng.integers(4)
            if kind == 0:
                new.append(s.a * m + s.b * g)
            elif kind == 1:
                new.append(s.c * xp.square(g) + m * s.b)
            elif kind == 2:
                new.append(xp.maximum(s.a * m, xp.absolute(g) + 0.1))
            else:
                new.append(m + xp.absolute(p))
        values = [*raw, *new] if rng.integers(2) else [p, g, *new]
        for _ in range(rng.integers(1, 9)):
            x, y = (values[k] for k in rng.integers(len(values), size=2))
            number = [s.a, s.b, s.c, 2.0, -0.5, s.a * s.b, 1 - s.c][rng.integers(7)]
            values.append(operations(xp, s, x, y, number)[rng.integers(15)]())
        return s.c * p + s.a * values[-1], *new

    return formula


@pytest.mark.parametrize("seed", range(300))
def test_random_formulas_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    n_slots = int(rng.integers(0, 4))
    formula = random_formula(seed, n_slots)
    passes = Rule("random", formula, NAMES, n_slots).passes
    arrays = [rng.normal(size=7) for _ in range(2 + n_slots)]
    expected = [a.copy() for a in arrays]
    scales = [1.0] * n_slots
    g = arrays[1].copy()
    for _ in range(3):
        s = dict(zip(NAMES, rng.uniform(0.01, 1.2, 3), strict=True))
        step, scales = passes.begin(tuple(s.values()), scales)
        step(*arrays, [np.empty(7) for _ in range(passes.scratch)])
        p, *slots = formula(np, SimpleNamespace(**s), *expected)
        expected = [p, g, *slots]
        np.testing.assert_allclose(arrays[0], p, 1e-9, 1e-9, err_msg=passes.text)
        for array, scale, slot in zip(arrays[2:], scales, slots, strict=True):
            np.testing.assert_allclose(array * scale, slot, 1e-9, 1e-9, err_msg=passes.text)
        np.testing.assert_array_equal(arrays[1], g)
        for k in range(n_slots):  # a GPU, or a checkpoint, may have multiplied it out
            if not passes.decays[k]:
                assert scales[k] == 1.0


def test_an_average_that_fades_becomes_0_and_not_subnormal():
    passes = Rule("sgd", momentum, ("momentum", "rate"), 1).passes
    p, g, m = np.zeros(3, np.float32), np.zeros(3, np.float32), np.ones(3, np.float32)
    scales = [1.0]
    for _ in range(2000):
        step, scales = passes.begin((0.9, 0.1), scales)
        step(p, g, m, [np.empty(3, np.float32) for _ in range(passes.scratch)])
    assert (m == 0).all()


def test_settings_may_have_the_names_of_functions():
    rule = Rule("sgd", lambda xp, s, p, g: (p - s.add * xp.sqrt(g) * s.sqrt,), ("add", "sqrt"), 0)
    p, g = np.zeros(2), np.array([4.0, 9.0])
    step, _ = rule.passes.begin((2.0, 3.0), ())
    step(p, g, [np.empty(2) for _ in range(rule.passes.scratch)])
    assert p.tolist() == [-12.0, -18.0]
