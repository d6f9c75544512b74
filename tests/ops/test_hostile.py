"""Hostile values in the place of every argument of every op: numbers come back, or a named error.

The default run changes one sample of each op, and one more that passes other parameters; each
argument gets every fourth value. The slow run passes all values in every sample.
"""

import inspect
import warnings

import numpy as np
import pytest
from hostile import ENDLESS, HOSTILE, JUNK, NOT_FLAGS, NOT_NUMBERS, bounded_calls, refusal

import gpugrad as gg
from gpugrad.core.backend import BFLOAT16
from gpugrad.errors import GpugradError

OURS = sorted(n for n, op in gg.OPS.items() if op.home.startswith("gpugrad.") and n not in ENDLESS)


def calls_of(op, every):
    """The place that each call changes, the value, its arguments, and values that must raise."""
    samples = list(op.samples(np.random.default_rng(0)))
    if not every:
        first, others = samples[0], samples[1:]
        samples = [first, *[s for s in others if set(s[1]) - set(first[1])][:1]]
    for args, keywords in samples:
        bound = op.signature.bind(*args, **keywords)
        bound.apply_defaults()
        for k, (name, parameter) in enumerate(op.signature.parameters.items()):
            refused = refused_in(name, parameter.default)
            for value in (*refused, *(HOSTILE if every else HOSTILE[k % 4 :: 4])):
                arguments = {**bound.arguments, name: value}
                yield name, value, inspect.BoundArguments(op.signature, arguments), refused


def refused_in(name, default):
    """Values that an op must refuse as this argument."""
    if name == "index":
        return [v for v in JUNK if type(v) is not object]
    if type(default) is bool:
        return NOT_FLAGS
    return NOT_NUMBERS if type(default) is float else JUNK


def outcome(op, bound):
    """The fault of one call: "" if it returns numbers, None if it raises as documented."""
    complaint, result = refusal([op.name], lambda: op.eager(*bound.args, **bound.kwargs))
    for r in result if isinstance(result, tuple) else (result,):
        is_tensor = isinstance(r, gg.Tensor)
        if complaint == "" and not (is_tensor and (r.dtype.kind in "biufc" or r.dtype == BFLOAT16)):
            return f"returns {type(r).__name__} {getattr(r, 'dtype', '')}"
    return complaint


def complaints(name, every):
    """The faults of the calls of an op, a line each."""
    op, wrong = gg.OPS[name], []
    for place, value, bound, refused in calls_of(op, every):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", RuntimeWarning)  # of NaN, of an overflow
            warnings.simplefilter("error", np.exceptions.ComplexWarning)  # a lost imaginary part
            complaint = outcome(op, bound)
        if complaint == "" and any(value is r for r in refused):
            complaint = "is accepted"
        if complaint:
            wrong.append(f"{name}({place}={value!r:.60}) {complaint:.200}")
    return wrong


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shelf", range(8))
def test_hostile_arguments_give_numbers_or_a_named_error(shelf, every):
    wrong = []
    with bounded_calls():
        for name in OURS[shelf::8]:
            wrong += complaints(name, every)
    assert not wrong, f"{len(wrong)} calls:\n" + "\n".join(wrong)


@pytest.mark.parametrize("n", [10**6, 2**70, -1, 0, 1.5, "abc", None, {}])
def test_array_split_refuses_hostile_numbers_of_pieces(n):
    with bounded_calls(), pytest.raises(GpugradError, match="array_split"):
        gg.array_split([1.0, 2.0], n)


def test_local_response_norm_of_a_window_beyond_the_channels_is_exact():
    x = np.array([[1.0, -2.0, 3.0]])
    for size in (5, 6, 7, 1000, 10**6):
        expected = x / np.sqrt(2.0 + (x * x).sum() / size)
        out = gg.OPS["local_response_norm"].eager(x, size, alpha=1.0, beta=0.5, k=2.0)
        np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_users_op_takes_parameters_of_any_type():
    @gg.op(samples=lambda rng: [], name="applied")
    def applied(xp, x, /, *, function, settings=(), fast=False):
        """`function` of an array."""
        return function(x) * (len(settings) + len(fast or ()))

    try:
        assert applied(2.0, function=lambda x: x + 1, settings={"a": 1}, fast="yes").item() == 12
    finally:
        gg.OPS.pop("applied")
