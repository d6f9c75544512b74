"""Random programs: gradients of composed ops against finite differences.

A program is a list of smooth ops, each applied to values computed before. This covers what tests
of single ops cannot: values used more than once, gradients that are broadcast and summed back,
results that nothing uses. Hypothesis seeds each test from its name and source, so renaming a test
changes the programs that it draws.
"""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from taping import taped

import gpugrad as gg
from gpugrad.core.devices import CPU
from gpugrad.errors import GpugradError
from gpugrad.testing import assert_close, check_grads
from gpugrad.testing.checks.subject import Subject

UNARY = {
    "sin": gg.sin,
    "tanh": gg.tanh,
    "exp": lambda x: gg.exp(gg.tanh(x)),  # bounded, so that chains stay bounded
    "log": lambda x: gg.log(1.5 + gg.sin(x)),
    "sqrt": lambda x: gg.sqrt(1.0 + x * x),
    "square": lambda x: gg.square(gg.sin(x)),
    "divide": lambda x: x / (1.0 + x * x),
    "mean": lambda x: gg.mean(x, axis=-1, keepdims=True) if x.ndim else x,
    "sum": lambda x: 0.3 * gg.sum(x, axis=0) if x.ndim else x,
    "flip": lambda x: gg.flip(x) if x.ndim else x,
    "reshape": lambda x: gg.reshape(x, (-1,))[:1],
    "transpose": lambda x: gg.permute_dims(x, tuple(reversed(range(x.ndim)))),
    "stack": lambda x: gg.stack([x, gg.sin(x)]) if x.ndim < 3 else x,
    "softmax": lambda x: gg.softmax(x) if x.ndim else x,
    "getitem": lambda x: x[..., ::2] if x.ndim else x,
}
BINARY = {
    "add": gg.add,
    "subtract": gg.subtract,
    "multiply": lambda x, y: x * gg.tanh(y),
    "divide": lambda x, y: x / (2.0 + gg.cos(y)),
    "hypot": lambda x, y: gg.hypot(1.0 + x * x, y),
    "atan2": lambda x, y: gg.atan2(x, 2.0 + gg.sin(y)),
    "power": lambda x, y: (1.5 + gg.sin(x)) ** gg.tanh(y),
    "logaddexp": gg.logaddexp,
}


@st.composite
def programs(draw):
    """Inputs, and steps: the name of an op and the positions of the values that it reads."""
    shapes = draw(mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3)).input_shapes
    seed = draw(st.integers(0, 2**16))
    position = st.integers(0, 99)
    steps = draw(
        st.lists(
            st.one_of(
                st.tuples(st.sampled_from(sorted(UNARY)), position),
                st.tuples(st.sampled_from(sorted(BINARY)), position, position),
            ),
            min_size=3, max_size=8,
        )
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(-1.5, 1.5, s)) for s in shapes], steps


def run(steps, inputs):
    """The values of the program. A step whose arrays do not broadcast reads only the first."""
    values = list(inputs)
    for name, *reads in steps:
        x, *more = (values[i % len(values)] for i in reads)
        if not more:
            values.append(UNARY[name](x))
        elif fits(x, more[0]):
            values.append(BINARY[name](x, more[0]))
        else:
            values.append(BINARY[name](x, x))
    return values[len(inputs) :]


def fits(x, y):
    try:
        return len(np.broadcast_shapes(x.shape, y.shape)) <= 4
    except ValueError:
        return False


def result(steps, inputs):
    """The last value, and the sum of the means of all, so that most values are used twice."""
    values = run(steps, inputs)
    return values[-1], sum(gg.mean(v) for v in values if v.size)


@hypothesis.settings(max_examples=300)
@hypothesis.given(programs())
def test_random_programs_have_the_gradients_that_differences_say(program):
    inputs, steps = program
    check_grads(lambda *xs: result(steps, xs), inputs, order=1, rtol=1e-5)


@pytest.mark.slow
@hypothesis.settings(max_examples=100)
@hypothesis.given(programs())
def test_random_programs_have_the_second_order_that_differences_say(program):
    inputs, steps = program
    check_grads(lambda *xs: result(steps[:4], xs), inputs, order=2, modes=["rev"], rtol=1e-5)


@hypothesis.settings(max_examples=150)
@hypothesis.given(programs())
def test_random_programs_are_the_same_watched_and_not(program):
    inputs, steps = program
    xs = [gg.constant(x) for x in inputs]
    with gg.GradientTape() as tape:
        tape.watch(xs)
        watched = run(steps, xs)
    for a, b in zip(watched, run(steps, xs), strict=True):
        assert_close(a, b, rtol=0, atol=0)


@hypothesis.settings(max_examples=150)
@hypothesis.given(programs())
def test_random_programs_give_gradients_of_their_inputs_shape_in_float32(program):
    inputs, steps = program
    xs = [gg.constant(x, np.float32) for x in inputs]
    tape, y = taped(lambda xs: result(steps, xs), xs)
    for x, g in zip(xs, tape.gradient(y, xs), strict=True):
        assert g is None or (g.shape == x.shape and g.dtype == np.float32)


# A length is itself data: a kernel's width, a polynomial's degree, bins, classes, a summed label.
LENGTH_IS_DATA = {
    "rate_filter",
    "bilinear_sample", "bilinear_sample_grads", "bin_counts", "conv1d", "conv2d", "convolution",
    "convolution_input_grad",
    "convolution_weight_grad", "convolve", "correlate", "digitize", "einsum", "grid_sample",
    "piecewise_polynomial", "polyadd", "polysub", "polyval", "searchsorted",
    "sparse_softmax_cross_entropy", "spline_at",
}  # fmt: skip
EXACT_SHAPES = {  # rules of other ops, which get arrays of one shape
    "ctc_losses_grad", "flash_attention", "flash_attention_grad", "log_softmax_grad",
}  # fmt: skip


def one_shorter(sample):
    """The sample with one axis of one array cut to length 1, and with that broadcast by hand."""
    arrays = [k for k, x in enumerate(sample.leaves) if isinstance(x, np.ndarray)]
    for k in arrays if len(arrays) > 1 else ():
        x = sample.leaves[k]
        for axis in (axis for axis, n in enumerate(x.shape) if n > 1):
            short, leaves = np.take(x, [0], axis), list(sample.leaves)
            full = np.broadcast_to(short, x.shape).copy()
            yield [sample.replace([*leaves[:k], v, *leaves[k + 1 :]]) for v in (short, full)]


@pytest.mark.parametrize("name", sorted({*gg.OPS} - LENGTH_IS_DATA - EXACT_SHAPES))
@pytest.mark.thin(3)
def test_an_array_of_length_1_is_broadcast_before_anything_else(name):
    """An op refuses it, or gives what it gives for the array that is broadcast by hand."""
    for sample in Subject(gg.OPS[name], 0, 1, CPU).real_samples:
        for pair in one_shorter(sample):
            try:
                actual, desired = ([np.asarray(y) for y in s.results()] for s in pair)
            except GpugradError:
                continue
            if [y.shape for y in actual] == [y.shape for y in desired]:
                for a, d in zip(actual, desired, strict=True):
                    np.testing.assert_allclose(a, d, 1e-12, 1e-12, err_msg=sample.title)
