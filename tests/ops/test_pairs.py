"""Elementwise ops of two arguments: Python numbers, real and complex arrays, of both signs."""

import itertools

import numpy as np
import pytest

import gpugrad as gg

OPS = [
    op
    for op in gg.OPS.values()
    if op.kind == "elementwise" and len(op.arrays) == 2 and "c" in op.kinds and op.differentiable
    if not op.name.endswith("_slope")  # whose second argument is a function of the first
    if not op.name.startswith("hankel")  # whose order is real, and has no gradient
]
REAL = np.array([0.7, 1.9, -0.6, -2.3])
COMPLEX = np.array([0.4 + 0.9j, -1.1 - 0.3j, 0.8 - 0.5j, -0.6 + 1.2j])


def _pairs():
    """Two arguments, at least one of them an array."""
    arrays, numbers = [REAL, COMPLEX], [2, 0.5, -1.5, -2, 3, 0.6 - 0.8j, -0.7 + 0.4j]
    first, second = [*arrays, *numbers], [1.125 * x for x in (*arrays, *numbers)]
    pairs = itertools.product(first, second)
    return [pair for pair in pairs if any(isinstance(x, np.ndarray) for x in pair)]


def _difference(f, x, direction):
    ends = [f(gg.constant(x + h * direction)).numpy() for h in (1e-6, -1e-6)]
    return (ends[0] - ends[1]) / 2e-6


@np.errstate(all="ignore")
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_derivatives_by_each_argument_of_a_pair(op, rng):
    for pair, k in itertools.product(_pairs(), (0, 1)):
        x = pair[k]
        if not isinstance(x, np.ndarray):
            continue
        other = pair[1 - k]

        def f(x, k=k, other=other):
            if isinstance(other, np.ndarray):
                other = gg.constant(other)
            return op.eager(*((x, other) if k == 0 else (other, x)))

        out = f(gg.constant(x)).numpy()
        upstream = rng.normal(size=4) + (1j * rng.normal(size=4) if out.dtype.kind == "c" else 0)
        for direction in (1, 1j) if x.dtype.kind == "c" else (1,):
            direction = np.full(4, direction, x.dtype)
            expected = _difference(f, x, direction)
            defined = np.isfinite(out) & np.isfinite(expected) & (np.abs(expected) < 1e4)
            _, pull = gg.vjp(f, gg.constant(x))
            (gradient,) = pull(gg.constant(upstream))
            pushed = gg.jvp(f, [gg.constant(x)], [gg.constant(direction)])[1]
            about = f"{op.name} of {pair}, by argument {k}"
            close = {"rtol": 1e-5, "atol": 1e-6, "err_msg": about}
            np.testing.assert_allclose(pushed.numpy()[defined], expected[defined], **close)
            along = np.real(np.conj(gradient.numpy()) * direction)
            by_upstream = np.real(np.conj(upstream) * expected)
            np.testing.assert_allclose(along[defined], by_upstream[defined], **close)


@np.errstate(all="ignore")
def test_rules_that_are_recorded_compute_with_numbers_as_those_that_are_not(rng):
    compared = 0
    for op in gg.OPS.values():
        if op.kind != "elementwise" or len(op.arrays) != 2 or not op.differentiable:
            continue
        args, _ = next(s for s in op.samples(rng) if all(np.size(a) for a in s[0]))
        for k in (0, 1):
            x = gg.constant(np.asarray(args[k], np.float64))
            number = np.ravel(args[1 - k])[0].item()

            def f(x, op=op, k=k, number=number):
                return gg.sum(op.eager(*((x, number) if k == 0 else (number, x))))

            try:
                plain = gg.grad(f)(x)
            except gg.errors.GpugradError:  # there is no such derivative
                continue
            recorded = gg.vjp(gg.grad(f), x)[0]
            np.testing.assert_allclose(recorded, plain, rtol=1e-13, err_msg=op.name)
            compared += 1
    assert compared > 80
