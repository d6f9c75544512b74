"""The backward loop stays short and deals with gradients and rules only."""

import ast
import inspect
import re

import pytest

import gpugrad as gg
from gpugrad.autodiff import backward as backward_module
from gpugrad.autodiff.backward import Gradients, backward
from gpugrad.autodiff.gradients import reading_of
from gpugrad.registry.record import OPS

SCREEN = 60
"""Lines of a file that are visible when it is opened."""

OTHER_CONCERNS = re.compile(
    "arrays|batch|bottom|context|cuda|cupy|device|example|fuse|gpu|kernel|level|mask|nan|numpy|retry"
    "|revive|stack|tensor|trace|tracing|vmap|wraps"
)
"""Words of concerns that named steps hide: GPUs, vmap, traces, the second pass after a NaN."""


def _loop():
    tree = ast.parse(inspect.getsource(backward_module))
    return next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "backward")


def _names(node):
    """Every name, attribute, argument and keyword in a piece of code."""
    for part in ast.walk(node):
        for field in ("id", "attr", "arg"):
            if isinstance(name := getattr(part, field, None), str):
                yield name


def test_backward_loop_has_at_most_forty_lines():
    loop = _loop()
    assert loop.end_lineno - loop.lineno + 1 <= 40


def test_backward_loop_is_on_the_first_screen():
    loop = _loop()
    assert loop.end_lineno <= SCREEN
    before = [n for n in backward_module.__doc__.splitlines() if n]
    assert loop.lineno - len(before) < SCREEN / 2


def test_backward_loop_mentions_only_gradients_and_rules():
    assert [n for n in _names(_loop()) if OTHER_CONCERNS.search(n.lower())] == []


def test_pattern_matches_other_concerns():
    for line in ("with formulas_on_device(g): pass", "if masked: pass", "x = numpy.any(g)"):
        assert any(OTHER_CONCERNS.search(n.lower()) for n in _names(ast.parse(line)))


@pytest.mark.parametrize("target", [4, 3])
def test_backward_loop_computes_the_gradients_of_a_handwritten_log(target):
    """y = x * w has number 3, z = exp(y) number 4: the loop needs only the entries of the log."""
    x, w = (gg.constant(v).numpy() for v in (0.5, -2.0))
    z = gg.exp(x * w).numpy()
    saved = tuple({"x": x, "y": w}[name] for name in OPS["multiply"].saves)
    log = [
        (OPS["multiply"], 3, (1, 2), (None, None), saved, None),
        (OPS["exp"], 4, (3,), (None,), (z,), None),
    ]
    reading = reading_of("plain", z)
    grads = Gradients(reading, keep={1, 2}, stops=set())
    grads.add(target, gg.constant(1.0).numpy())
    backward(reversed(log), grads, {1, 2, 3, 4}, reading)
    slope = z if target == 4 else 1.0
    assert {i: round(float(g), 6) for i, g in grads.items() if i in (1, 2)} == {
        1: round(float(slope * w), 6),
        2: round(float(slope * x), 6),
    }
