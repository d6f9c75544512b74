"""The `recompute` pass: bytes moved, memory held, and unchanged results."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from test_fuse import (
    assert_right,
    layer_norm,
    needs_shim,
    normal,
    on_shim,
    program_of,
    random_program,
    value_and_gradients,
)

import gpugrad as gg
from gpugrad.core.backend import NUMPY
from gpugrad.errors import ArgumentError
from gpugrad.function.gpu.runs import argument
from gpugrad.function.memory import lives, roots_of
from gpugrad.function.passes.fuse import FusedKernel, fuse_groups, launches
from gpugrad.function.passes.in_place import overwriting
from gpugrad.function.passes.products import find_products
from gpugrad.function.passes.recompute import CALLS, STEPS, moved, recompute
from gpugrad.function.step_calls import op_call


def kernels(program):
    return [s for s in program.steps if isinstance(s, FusedKernel)]


def both(f, *args, products=True):
    """The fused program without and with recomputed values."""
    program = program_of(f, *args)
    fused = fuse_groups(find_products(program) if products else program)
    return fused, recompute(fused)


def bytes_of(program):
    return moved(kernels(program))


def assert_same_bits(f, *args):
    _, desired = on_shim(f, *args, without="recompute")
    _, actual = on_shim(f, *args)
    for a, d in zip(actual, desired, strict=True):
        assert a.dtype == d.dtype
        np.testing.assert_array_equal(a, d)


def assert_holds_no_more(before, after):
    assert len(after.steps) == len(before.steps)
    pairs = zip(lives(after, set()), lives(before, set()), strict=True)
    assert all(a <= b for a, b in pairs)


def step_by_step(program, *args):
    """The results of a fused program when the steps of its kernels run one by one."""
    values = dict(zip(map(id, program.inputs), (t._data for t in args), strict=True))
    for step in program.steps:
        for part in [*step.steps, *step.sums] if isinstance(step, FusedKernel) else [step]:
            arrays = [argument(a, values) for a in part.args]
            results = op_call(part, NUMPY)(*arrays) if part.op else part.run(NUMPY, *arrays)
            values.update(zip(map(id, part.outs), [results] if part.op else results, strict=True))
    return [argument(v, values) for v in program.outputs]


def swish(x):
    return x * gg.sigmoid(1.702 * x)


def network(activation):
    """The loss of two dense layers, and its gradients."""

    def loss(x, w, b, u, c):
        return gg.sum(activation(activation(x @ w + b) @ u + c))

    return value_and_gradients(loss)


def network_arguments(rng, dtype=np.float32):
    shapes = (8, 16), (16, 24), (24,), (24, 12), (12,)
    return gg.constant(1.0, dtype), *(normal(rng, *s, dtype=dtype) for s in shapes)


def test_an_activation_of_plain_ops_stores_nothing_for_its_gradient(rng):
    before, after = both(network(swish), *network_arguments(rng))
    hidden = 8 * 24 * 4
    # the sigmoid and its argument: written, and read
    assert bytes_of(before) - bytes_of(after) == 4 * hidden
    assert launches(after)[4] == launches(before)[4]
    assert len(launches(after)) == len(launches(before)) == 10
    forward, _, backward = kernels(after)
    assert len(forward.outs) == 1  # the input of the next product
    assert len(backward.inputs) == 2
    assert_holds_no_more(before, after)


def test_adding_a_bias_is_recomputed_where_no_product_does_it(rng):
    before, after = both(network(swish), *network_arguments(rng), products=False)
    shapes = [sorted(v.shape for v in kernels(p)[-1].inputs) for p in (before, after)]
    assert shapes == [[(8, 24)] * 4, [(8, 24), (8, 24), (24,)]]
    assert [len(kernels(p)[0].outs) for p in (before, after)] == [4, 1]
    assert_holds_no_more(before, after)


def test_a_norm_between_products_stores_its_input_and_one_number_per_row(rng):
    def f(x, scale, shift, w):
        return gg.sum(gg.tanh(layer_norm(x @ w, scale, shift) @ w))

    x, row, w = normal(rng, 32, 16), normal(rng, 16), normal(rng, 16, 16)
    before, after = both(value_and_gradients(f), gg.constant(1.0), x, row, row * 2, w)
    whole = [sum(v.shape == (32, 16) for v in kernels(p)[0].outs) for p in (before, after)]
    assert whole == [3, 1]
    assert len(launches(after)) == len(launches(before))
    assert_holds_no_more(before, after)


def test_a_kernel_left_without_outputs_is_not_launched(rng):
    def f(x, w):
        y = gg.exp(x)
        return (w @ w) * y

    n = 256  # smaller kernels move behind the product anyway
    x = normal(rng, n, n)
    before, after = both(f, x, x)
    assert [len(kernels(p)) for p in (before, after)] == [2, 1]
    assert bytes_of(before) - bytes_of(after) == 2 * n * n * 4


@needs_shim
def test_values_that_a_product_reads_or_that_are_returned_are_stored(rng):
    def f(x, w):
        y = gg.sigmoid(x)
        z = y * 2
        return (z @ w) * y, y

    x, w = normal(rng, 8, 6), normal(rng, 6, 6)
    before, after = both(f, x, w)
    assert [len(k.outs) for k in kernels(before)] == [len(k.outs) for k in kernels(after)] == [2, 1]
    assert {id(v) for v in after.outputs} <= {id(v) for s in after.steps for v in s.outs}
    assert_right(f, x, w)


@pytest.mark.parametrize(
    ("n", "op", "recomputed"),
    [
        (STEPS, lambda y: y * 0.5, True), (STEPS + 1, lambda y: y * 0.5, False),
        (CALLS, gg.tanh, True), (CALLS + 1, gg.tanh, False), (1, gg.special.gammaln, False),
    ],
)  # fmt: skip
def test_only_cheap_values_are_recomputed(rng, n, op, recomputed):
    def f(x, w):
        y = x
        for _ in range(n):
            y = op(y)
        return ((x * w) @ w) * y * x

    x = gg.abs(normal(rng, 8, 8))
    before, after = both(f, x, x)
    assert (bytes_of(after) < bytes_of(before)) is recomputed


def test_a_mask_is_read_instead_of_recomputed(rng):
    def f(x, noise, w):
        mask = noise > 0.5
        y = gg.where(mask, x, 0.0)
        return gg.where(mask, (y @ w) * 2, 0.0)

    x = normal(rng, 8, 8)
    before, after = both(f, x, x + 1, x)
    assert bytes_of(after) == bytes_of(before)


def test_scores_are_not_read_after_their_gradient_overwrites_them(rng):
    def f(x, labels):
        scores = x @ x
        y = gg.tanh(scores)
        with gg.GradientTape() as tape:
            tape.watch(scores)
            loss = gg.sum(gg.sparse_softmax_cross_entropy(scores, labels))
        return (tape.gradient(loss, scores) @ x) * y

    n = 256  # smaller steps move behind the gradient, which then overwrites nothing
    before, after = both(f, normal(rng, n, n), gg.constant(rng.integers(0, n, n)))
    assert bytes_of(after) == bytes_of(before)
    assert len(overwriting(after)) == len(overwriting(before)) == 1


def test_recomputing_does_not_hold_more_memory(rng):
    def f(x, w, u):
        y = gg.astype(x @ w, np.float64)
        return y, (y @ u) * y

    x = normal(rng, 6, 6)
    before, after = both(f, x, x, normal(rng, 6, 6, dtype=np.float64))
    assert bytes_of(after) == bytes_of(before)  # the product is not kept, although it is smaller


@pytest.mark.parametrize(("axis", "recomputed"), [(0, True), (None, False)])
def test_recomputing_keeps_the_order_of_sums(rng, axis, recomputed):
    def f(x, row, w):
        y = gg.tanh(x + row)
        return gg.sum((x @ w) * y, axis=axis)

    x = normal(rng, 6, 6)
    before, after = both(f, x, normal(rng, 6), x)
    assert (bytes_of(after) < bytes_of(before)) is recomputed


@pytest.mark.parametrize("updated_before", [True, False])
def test_a_variable_is_not_read_after_its_update(updated_before):
    v = gg.Variable(np.ones((6, 6), np.float32))
    optimizer = gg.optim.SGD(0.1)

    def f(x):
        y, gradient = gg.tanh(v), (gg.exp(v) + x) @ x
        if updated_before:
            optimizer.apply_gradients([(gradient, v)])
        z = (gradient @ x + v) * y  # reads v itself, so this runs after the update
        if not updated_before:
            optimizer.apply_gradients([(gradient, v)])
        return z

    before, after = both(f, gg.ones((6, 6)))
    assert (bytes_of(after) < bytes_of(before)) is not updated_before


def test_the_pass_is_selected_by_its_name(rng):
    f = gg.function(lambda x: x * 2, passes=("groups", "recompute"))
    np.testing.assert_array_equal(f(gg.ones(3)), 2 * np.ones(3))
    with pytest.raises(ArgumentError, match="'recompute'"):
        gg.function(lambda x: x, passes=("recomputation",))


def test_a_reshaped_result_of_a_kernel_has_its_own_memory(rng):
    def f(x):
        y = gg.reshape(gg.exp(x), (2, 3, 4))
        return y, gg.sqrt(y)

    before, _ = both(f, normal(rng, 6, 4))
    reshaped, _ = before.outputs
    assert reshaped.view
    assert roots_of(before)[id(reshaped)] == id(reshaped)


@needs_shim
def test_gradients_of_a_network_are_right_and_bitwise_unchanged(rng):
    f, args = network(swish), network_arguments(rng)
    assert_right(f, *args)
    assert_same_bits(f, *args)


@needs_shim
def test_recomputed_16_bit_floats_are_rounded_as_if_stored(rng):
    def f(x, w):
        y = x * 1.1
        return (y @ w) * (y - x) + y

    x, w = (normal(rng, *s, dtype=gg.bfloat16) for s in ((8, 6), (6, 6)))
    before, after = both(f, x, w)
    assert bytes_of(after) < bytes_of(before)
    assert_same_bits(f, x, w)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_programs_are_bitwise_unchanged(data):
    f, args = random_program(data)
    before, after = both(f, *args)
    assert bytes_of(after) <= bytes_of(before)
    assert len(launches(after)) <= len(launches(before))
    if len(after.steps) == len(before.steps):
        assert_holds_no_more(before, after)
    actual, desired = step_by_step(after, *args), step_by_step(before, *args)
    for a, d in zip(actual, desired, strict=True):
        np.testing.assert_array_equal(a, d)
