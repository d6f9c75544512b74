"""Launchers of kernels in C refuse what the formulas refuse, whatever the shapes are.

With ``GPUGRAD_CPU_KERNELS=always`` they get arrays as small as these.
"""

import functools

import numpy as np
import pytest

from gpugrad.core.backend import NUMPY, OPS
from gpugrad.kernels.cpu import random

LAUNCHED = sorted(  # by one of their own, not by a loop that is made of the formula
    name
    for name, op in OPS.items()
    if op.cpu not in (None, True) and op.home.startswith("gpugrad.")
)


def misfits(x):
    """Arrays of nearly the shape of `x`, empty ones, and NumPy's scalars."""
    yield x
    yield x[None]
    yield x[..., None]
    yield x.T
    for axis, n in enumerate(x.shape):
        yield x.take([], axis=axis)
        if n:
            yield x.take(0, axis=axis)
            yield np.concatenate([x, x.take([0], axis=axis)], axis=axis)
        if n > 1:
            yield x.take([0], axis=axis)
            yield x.take(range(n - 1), axis=axis)


def cases(op):
    """Arguments of which one array, also in a list, does not fit; and metadata."""
    for arrays, params in list(op.samples(np.random.default_rng(0)))[:3]:
        for k, a in enumerate(arrays):
            for j, x in enumerate(a if isinstance(a, (list, tuple)) else [a]):
                for y in misfits(x) if isinstance(x, np.ndarray) else ():
                    new = [*a[:j], y, *a[j + 1 :]] if isinstance(a, (list, tuple)) else y
                    yield [*arrays[:k], new, *arrays[k + 1 :]], params


def outcome(function, arrays, params):
    """The arrays of a call, or None if it raises."""
    try:
        with np.errstate(all="ignore"):
            found = function(*arrays, **params)
    except Exception:
        return None
    return [np.asarray(y) for y in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAUNCHED)
def test_a_launcher_takes_and_refuses_the_shapes_of_the_formula(name, monkeypatch):
    monkeypatch.setattr(random, "OFTEN", 0)  # few random numbers are drawn in C from now on
    op = OPS[name]
    formula = functools.partial(op.forward, NUMPY)
    for arrays, params in cases(op):
        expected = outcome(formula, arrays, params)
        actual = outcome(op.impl[np.ndarray], arrays, params)
        assert (actual is None) == (expected is None), (arrays, params)
        for a, b in zip(actual or [], expected or [], strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, 1e-9, 1e-9)
