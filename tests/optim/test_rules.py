"""Update rules: the text of their kernels, and formulas on arrays in blocks and together."""

from types import SimpleNamespace

import numpy as np
import pytest
from random_formulas import NAMES, random_formula

import gpugrad as gg
from gpugrad.kernels.codegen import update_kernel
from gpugrad.kernels.codegen.update_kernel import StepKernel
from gpugrad.optim import rules
from gpugrad.optim.rules import Rule


def without_layout(text):
    return " ".join(text.split())


def test_cuda_is_that_of_the_docstring():
    kernel = StepKernel("sgd", lambda xp, s, p, g: (p - s.rate * g,), ("rate",), 0)
    _, _, shown = update_kernel.__doc__.partition("::\n")
    shown = without_layout(shown.partition("\n\nA step")[0])
    assert shown in without_layout(kernel.source(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(100))
@pytest.mark.thin(3)
def test_blocks_and_small_arrays_are_stepped_as_whole_ones(seed, dtype, monkeypatch):
    monkeypatch.setattr(rules, "BLOCK", 64)
    monkeypatch.setattr(rules, "SMALL", 10)
    monkeypatch.setattr(rules, "PART", 100)
    rng = np.random.default_rng(seed)
    n_slots = int(rng.integers(0, 4))
    formula = random_formula(seed, n_slots)
    rule = Rule(StepKernel("random", formula, NAMES, n_slots))
    columns = [
        [rng.normal(size=n).astype(dtype) for _ in range(2 + n_slots)]
        for n in (7, 200, 0, 10, 1, 3, 64, 65, 9, 10, 10, 10, 10, 10, 10, 10)
    ]
    rows = [0] * 9 + [1] * 7
    expected = [[a.copy() for a in arrays] for arrays in columns]
    for _ in range(3):
        numbers = rng.uniform(0.01, 1.2, (2, 3)).astype(dtype).tolist()
        rule.step(columns, numbers, rows)
        for k, (arrays, row) in enumerate(zip(expected, rows, strict=True)):
            s = {n: np.array(x, dtype) for n, x in zip(NAMES, numbers[row], strict=True)}
            p, *slots = formula(np, SimpleNamespace(**s), *arrays)
            expected[k] = [p, arrays[1], *slots]
    for actual, desired in zip(columns, expected, strict=True):
        for a, d in zip(actual, desired, strict=True):
            assert a.dtype == dtype
            np.testing.assert_array_equal(a, d)


@pytest.mark.parametrize("size", [3, 9000])  # NumPy's step, and that in C
def test_an_average_that_fades_becomes_0_and_not_subnormal(size):
    v, optimizer = gg.Variable(np.zeros(size, np.float32)), gg.optim.SGD(0.1, momentum=0.9)
    optimizer.apply_gradients([(gg.ones(size), v)])
    for _ in range(1100):
        optimizer.apply_gradients([(gg.zeros(size), v)])
    assert (optimizer.state_dict({"w": v})["w.velocity"].numpy() == 0).all()


@pytest.mark.parametrize("size", [3, 9000])
def test_small_numbers_that_are_not_subnormal_stay(size):
    small = np.float32(2e-38)
    v, optimizer = gg.Variable(np.zeros(size, np.float32)), gg.optim.Adagrad(0.1)
    optimizer.apply_gradients([(gg.zeros(size) + np.sqrt(small), v)])
    before = optimizer.state_dict({"w": v})["w.total"].numpy()
    for _ in range(70):
        optimizer.apply_gradients([(gg.zeros(size), v)])
    after = optimizer.state_dict({"w": v})["w.total"].numpy()
    assert (before > 0).all()
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("size", [3, 9000])
def test_an_average_may_be_an_older_value_of_another_array(size):
    class History(gg.optim.Optimizer):
        slots = ("before", "earlier")  # and the default numbers

        def formula(self, xp, s, p, g, before, earlier):
            return p - s.rate * g, p, before

    v, optimizer = gg.Variable(np.ones(size)), History(1.0)
    for _ in range(2):
        optimizer.apply_gradients([(gg.ones(size, dtype="float64"), v)])
    state = optimizer.state_dict({"w": v})
    for array, value in ((v, -1), (state["w.before"], 0), (state["w.earlier"], 1)):
        np.testing.assert_array_equal(array.numpy(), value)


@pytest.mark.parametrize("size", [3, 9000])
def test_settings_may_have_the_names_of_functions(size):
    formula = lambda xp, s, p, g: (p - s.add * xp.sqrt(g) * s.sqrt,)  # noqa: E731
    rule = Rule(StepKernel("sgd", formula, ("add", "sqrt"), 0))
    p, g = np.zeros(size), np.full(size, 4.0)
    rule.step([[p, g]], [(2.0, 3.0)], [0])
    np.testing.assert_array_equal(p, -12.0)


def test_a_formula_with_too_few_results_changes_nothing():
    rule = Rule(StepKernel("short", lambda xp, s, p, g, m: (p - g,), (), 1))
    arrays = [np.ones(3) for _ in range(3)]
    with pytest.raises(ValueError, match="zip"):
        rule.step([arrays], [()], [0])
    assert all((a == 1).all() for a in arrays)
