"""Fused GPU kernels: how many a program gets, and that they compute what its steps do."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from needs import needs_nvrtc, needs_shim
from steps import training_step
from taping import taped

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.core.backend import NUMPY
from gpugrad.function.gpu.kernel_code import KernelCode
from gpugrad.function.gpu.kernel_launch import RowWise
from gpugrad.function.gpu.replay import Launches
from gpugrad.function.passes import pass_names
from gpugrad.function.passes.epilogues import Product
from gpugrad.function.passes.fuse import (
    MOST_IN_C,
    FusedKernel,
    fuse_groups,
    fuse_groups_in_c,
    launches,
)
from gpugrad.function.passes.losses import join_losses
from gpugrad.function.passes.products import find_products
from gpugrad.kernels.codegen import row_kernel
from gpugrad.kernels.codegen.row_kernel import RowKernel
from gpugrad.kernels.runtime.launch import full_source
from gpugrad.testing.cuda import nvrtc, shim


def value_and_gradients(f):
    """A function of a cotangent and arrays that returns the result of `f` and its gradients."""

    def both(g, *xs):
        tape, y = taped(f, *xs)
        return y, tape.gradient(y, list(xs), g)

    return both


def layer_norm(x, gamma, beta):
    c = x - gg.mean(x, axis=-1, keepdims=True)
    v = gg.mean(c * c, axis=-1, keepdims=True)
    return c / gg.sqrt(v + 1e-5) * gamma + beta


def test_an_outer_sum_before_a_product_joins_the_kernel_after_it():
    def nearest(p, c):  # squared distances of all pairs are never in memory
        squares = gg.sum(p * p, axis=1, keepdims=True) + gg.sum(c * c, axis=1)
        return gg.sum(gg.min(squares - 2.0 * (p @ c.T), axis=1))

    p, c = gg.ones((200, 8)), gg.ones((100, 8))
    kernels = launches(fuse_groups_in_c(program_of(nearest, p, c)))
    (joined,) = [k for k in kernels if "200x100" in k]
    assert joined == "kernel 200x100 of multiply, add, subtract, min"


def test_kernels_in_c_have_few_steps_so_that_compilers_take_linear_time():
    def f(x):
        y = x
        for k in range(150):
            y = gg.sin(y) + k
        return y * x

    kernels = fuse_groups_in_c(program_of(f, gg.ones((30, 4)))).steps
    assert [len(kernel.steps) for kernel in kernels] == [MOST_IN_C] * 3 + [1]
    (whole,) = fuse_groups(program_of(f, gg.ones((30, 4)))).steps
    assert len(whole.steps) == 301


def softmax(x):
    e = gg.exp(x - gg.max(x, axis=-1, keepdims=True))
    return e / gg.sum(e, axis=-1, keepdims=True)


def program_of(f, *args):
    """The program as it is traced for GPU arrays: without a check for NaN."""
    program = gg.function(f, passes=pass_names("both")).lower(*args).program.copy()
    program.steps = [s for s in program.steps if s.name != "no_nan"]
    return program


def kernels_of(f, *args):
    return launches(fuse_groups(find_products(program_of(f, *args))))


def first_kernel(f, *args):
    return next(s for s in fuse_groups(program_of(f, *args)).steps if isinstance(s, FusedKernel))


def on_shim(f, *args, schedule="round robin", without=None):
    run = Launches(program_of(f, *args), NUMPY, {*pass_names("gpu")} - {without})
    leaves = [x for x in nest.flatten(args) if isinstance(x, gg.Tensor)]
    arrays = list({id(x): x._data for x in leaves}.values())
    with shim.running(schedule):
        return run, run(arrays)


def assert_right(f, *args, tolerance=2e-5):
    desired = [np.asarray(t) for t in nest.flatten(f(*args))]
    for schedule in shim.SCHEDULES:
        _, actual = on_shim(f, *args, schedule=schedule)
        for a, d in zip(actual, desired, strict=True):
            assert a.dtype == d.dtype
            scale = max(1.0, np.abs(d.astype(np.float64)).max(initial=0))
            np.testing.assert_allclose(
                a.astype(np.float64), d.astype(np.float64), tolerance, tolerance * scale
            )


def normal(rng, *shape, dtype=np.float32):
    return gg.constant(rng.normal(size=shape), dtype=dtype)


def test_a_handwritten_layer_norm_and_its_gradient_are_two_kernels(rng):
    f = value_and_gradients(layer_norm)
    x, row = normal(rng, 8, 16), normal(rng, 16)
    kernels = kernels_of(f, normal(rng, 8, 16), x, row, normal(rng, 16))
    assert len(kernels) == 2, kernels


def test_a_handwritten_softmax_and_its_gradient_are_one_kernel(rng):
    x = normal(rng, 8, 16)
    assert len(kernels_of(value_and_gradients(softmax), x, x)) == 1


def test_an_elementwise_chain_with_its_gradient_and_sum_is_one_kernel_and_a_final_sum(rng):
    def f(x):
        y = x
        for _ in range(5):
            y = gg.tanh(y * 1.1) + gg.sin(y)
        return gg.sum(y)

    x = normal(rng, 40, 50)
    kernels = kernels_of(value_and_gradients(f), gg.constant(1.0), x)
    assert len(kernels) == 2, kernels  # the second adds up the partial sums of the blocks
    kernel = first_kernel(value_and_gradients(f), gg.constant(1.0), x)
    assert len(kernel.inputs) == 2
    assert len(kernel.outs) == 2


@needs_shim
def test_averages_that_nothing_waits_for_are_one_kernel_for_each_width(rng):
    def f(x, y, *averages):
        results = []
        for k, average in enumerate(averages):
            x = (x if k % 2 else y) @ (gg.ones((8, 8)) if k % 2 else gg.ones((4, 8)))
            results.append(average * 0.9 + gg.sum(x, axis=0) * 0.1)
        return x, *results

    args = normal(rng, 3, 8), normal(rng, 3, 4), *(normal(rng, 8) for _ in range(4))
    names = launches(fuse_groups(program_of(f, *args)))
    assert sum(name.startswith("kernel 8 of") for name in names) == 1, names
    assert_right(f, *args)


def test_no_step_moves_behind_an_effect(rng):
    v, optimizer = gg.Variable(gg.ones((3,))), gg.optim.SGD(0.1)

    def f(x):
        y = v * 2
        optimizer.apply_gradients([(gg.ones((3,)), v)])
        return y, gg.exp(x * v)

    steps = fuse_groups(program_of(f, normal(rng, 3, 3))).steps
    effect = next(k for k, s in enumerate(steps) if s.call is not None)
    assert any("multiply" in s.name for s in steps[:effect]), [s.name for s in steps]
    assert any("exp" in s.name for s in steps[effect:]), [s.name for s in steps]


@needs_shim
def test_a_kernel_result_that_others_reshape_is_written_once(rng):
    def f(x, w):
        y = gg.exp(x)
        return y @ w, gg.reshape(gg.expand_dims(y, axis=0), (6, 4)).mT @ gg.reshape(y, (6, 4))

    args = normal(rng, 2, 3, 4), normal(rng, 4, 4)
    kernel = first_kernel(f, *args)
    assert [s.name for s in kernel.steps] == ["exp"]
    assert [v.shape for v in kernel.outs] == [(2, 3, 4)]
    assert_right(f, *args)


def mlp_step(*widths):
    gg.set_seed(0)
    *hidden, last = itertools.pairwise(widths)
    layers = [gg.nn.Dense(*pair, activation=gg.relu) for pair in hidden]
    return training_step(gg.nn.Sequential(*layers, gg.nn.Dense(*last)), gg.optim.Adam(0.01))


@pytest.mark.parametrize("widths", [(20, 16, 10), (20, 16, 12, 10)])
def test_a_training_step_is_three_kernels_per_layer_plus_one(widths, rng):
    step = gg.function(mlp_step(*widths), passes=pass_names("both"))
    x, labels = normal(rng, 8, 20), gg.constant(rng.integers(0, 10, 8))
    step(x, labels)  # creates the optimizer's state
    program = step.lower(x, labels).program.copy()
    program.steps = [s for s in program.steps if s.name != "no_nan"]
    fused = fuse_groups(find_products(join_losses(program)))
    layers = len(widths) - 1
    assert len(launches(fused)) == 3 * layers + 1, launches(fused)
    assert sum(isinstance(s, Product) for s in fused.steps) == 2 * layers


def step_with_work_for_each_pass(x, w, b, v, u, labels):
    with gg.GradientTape() as tape:
        tape.watch([x, w, b, v, u])
        y, _, _ = gg.standardize_affine(x)
        one, two = gg.unstack(gg.relu(y @ w + b) * gg.mean(gg.exp(x), axis=(0, 1)), axis=1)
        v16, u16 = (gg.astype(a, "bfloat16") for a in (v, u))
        h = gg.astype(one * gg.tanh(two), "bfloat16") @ v16
        scores = gg.astype(gg.gelu(h + v16[0], approximate="tanh") @ v16.mT @ u16, "float32")
        loss = gg.nn.cross_entropy(scores, labels)
        z, _, _ = gg.standardize_affine(v, v[0], v[1], axis=0, along=1)
        loss = loss + gg.sum(gg.sin(gg.relu(z))) + gg.sum(gg.cos(gg.nn.embedding([1, 4, 1], u)))
        loss = loss + gg.sum(gg.sin(gg.nn.embedding([*range(6)], w)))  # all rows, in order
    return loss, tape.gradient(loss, [x, w, b, v, u])


@needs_shim
@pytest.mark.parametrize("name", [None, *pass_names("gpu")])
@pytest.mark.thin(3)
def test_results_are_right_without_any_one_pass(name, rng):
    x, w, b = normal(rng, 5, 2, 6), normal(rng, 6, 6), normal(rng, 6)
    v, u, labels = normal(rng, 6, 8) / 2, normal(rng, 6, 9) / 2, rng.integers(0, 9, 5)
    args = x, w, b, v, u, gg.constant(labels)
    desired = nest.flatten(step_with_work_for_each_pass(*args))
    run, actual = on_shim(step_with_work_for_each_pass, *args, without=name)
    for a, d in zip(actual, desired, strict=True):
        d = d.numpy().astype(np.float64)
        np.testing.assert_allclose(a.astype(np.float64), d, 0.05, 0.02 * np.abs(d).max())
    every, _ = on_shim(step_with_work_for_each_pass, *args)
    moves_collectives = name == "overlap"  # of which there are none
    assert name is None or moves_collectives or str(run.program) != str(every.program)


SHAPES = [(8, 16), (3, 7), (2, 3, 33), (1, 40), (70, 5), (5, 1), (2, 1030), (40, 600)]


@needs_shim
@pytest.mark.parametrize("shape", SHAPES)
def test_layer_norm_is_right(rng, shape):
    x, g, row = normal(rng, *shape), normal(rng, *shape), normal(rng, shape[-1])
    assert_right(value_and_gradients(layer_norm), g, x, row, row * 2)


@needs_shim
@pytest.mark.parametrize("shape", [(2, 3, 3), (3, 4, 8), (5, 5)])
def test_one_value_per_row_is_broadcast_along_the_row(rng, shape):
    def f(x, row):
        scale = gg.sum(x * x, axis=-1) * row
        return x * gg.expand_dims(scale, axis=-1)

    x, g, row = normal(rng, *shape), normal(rng, *shape), normal(rng, *shape[:-1])
    assert_right(value_and_gradients(f), g, x, row)


@needs_shim
@pytest.mark.parametrize("shape", [*SHAPES, (2, 20_000)])
def test_softmax_is_right(rng, shape):
    x, g = normal(rng, *shape), normal(rng, *shape)
    assert_right(value_and_gradients(softmax), g, x)


@needs_shim
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(gg.float64, 1e-12), (gg.float16, 4e-3), (gg.bfloat16, 4e-2)]
)
def test_other_dtypes_are_right(rng, dtype, tolerance):
    x, g, row = (normal(rng, *s, dtype=dtype) for s in ((6, 24), (6, 24), (24,)))
    assert_right(value_and_gradients(softmax), g, x, tolerance=tolerance)
    assert_right(lambda x, row: gg.tanh(x * row) + 1, x, row, tolerance=tolerance)


@needs_shim
def test_broadcasts_casts_and_reshapes_are_right(rng):
    def f(x, row, column, middle):
        y = gg.reshape(x * row + column, (6, 4))
        z = gg.astype(y > 0, gg.float32) * y
        z = gg.where(z > 0.5, z, gg.reshape(middle * x, (6, 4)))
        return gg.sum(z, axis=0), gg.sum(z), gg.max(z, axis=-1), z

    arguments = normal(rng, 2, 3, 4), normal(rng, 4), normal(rng, 2, 3, 1), normal(rng, 2, 1, 4)
    assert_right(f, *arguments)


@needs_shim
@pytest.mark.parametrize("rows", [7, 8, 70])
@pytest.mark.parametrize("columns", [6, 520, 1030])  # rows of a warp, and of four
def test_sums_of_every_kind_in_one_kernel_are_right(rows, columns, rng, monkeypatch):
    monkeypatch.setattr(row_kernel, "MOST_SUMMING", 4)

    def f(x, y):
        z = x * (y - gg.mean(y, axis=-1, keepdims=True))
        counts = gg.sum(gg.astype(z > 0, "int32"), axis=0)
        return z, gg.sum(z, axis=0), gg.mean(z * y, axis=0), counts, gg.sum(y), gg.sum(x * x)

    x, y = normal(rng, rows, columns), normal(rng, rows, columns)
    assert_right(f, x, y)
    form = RowKernel(KernelCode(first_kernel(f, x, y)))
    paired = rows % 2 == 0 and columns == 520
    assert form.block[1] == (8 if columns == 6 else 1 + paired)
    assert form.blocks == (min(4, -(-rows // 8)) if columns == 6 else 4 // (1 + paired))


@needs_shim
@pytest.mark.parametrize("size", [1, 3, 40, 1000, 5000])
def test_full_sums_are_right(rng, size):
    x = normal(rng, size)
    assert_right(lambda x: (gg.sum(x * x), gg.mean(gg.exp(x)), x + 1), x)


@needs_shim
@pytest.mark.parametrize(
    ("value", "other"),
    [
        (lambda x: x * 256, lambda y: gg.reshape(y, (2, 2, 6))),
        (lambda x: gg.max(x * 256, axis=-1, keepdims=True), lambda y: gg.broadcast_to(y, (4, 6))),
    ],
    ids=["reshape", "broadcast"],
)
def test_readers_in_another_shape_see_the_rounded_16_bit_value(value, other):
    def f(x):
        y = value(x)
        r = other(y)
        return r, gg.isfinite(y), gg.isfinite(r)

    with np.errstate(over="ignore"):
        _, actual = on_shim(f, gg.constant(np.full((4, 6), 300, np.float16)))
    r, *finite = actual
    assert np.isinf(r).all()
    assert not np.any([x.any() for x in finite])


@needs_shim
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_the_sum_in_a_16_bit_mean_may_exceed_the_range_of_float16(axis, rng):
    x = normal(rng, 300, 7, dtype=np.float16) + 300
    assert_right(lambda x: (x * 2, gg.mean(x * 2, axis=axis)), x, tolerance=2e-3)


@needs_shim
@pytest.mark.parametrize("columns", [6, 300])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64"])
def test_sums_of_integers_are_right(dtype, columns, rng):
    def f(x):
        y = x * x
        along = [gg.sum(y, axis=a, dtype=d) for a in (-1, 0) for d in (None, dtype)]
        return y, *along, gg.sum(y), gg.mean(y, axis=-1), gg.mean(y, axis=0), gg.mean(y)

    assert_right(f, gg.constant(rng.integers(0, 200, (5, columns)), dtype))


@needs_shim
@pytest.mark.parametrize("read", [gg.exp, lambda u: gg.sum(u, axis=()), lambda u: u * u])
def test_a_product_with_a_row_does_not_affect_other_readers_of_the_row(read, rng):
    assert_right(
        lambda x, u: (x @ gg.reshape(u, (1, 8)), read(u)), normal(rng, 5, 1), normal(rng, 8)
    )


@needs_shim
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_product_does_not_affect_a_sum_of_its_factor_in_another_dtype(dtype, rng):
    a, b = normal(rng, 2, 9, dtype=dtype), normal(rng, 9, 8, dtype=dtype)
    assert_right(lambda a, b: (a @ b, gg.sum(b, axis=0, dtype="float32")), a, b, tolerance=2e-3)


@needs_shim
@pytest.mark.parametrize("shape", [(4, 3), (1, 9), (2, 3, 4), (9000,), (2, 1)])
def test_maxima_and_minima_along_any_axes_are_right(rng, shape):
    def f(x):
        n = x.ndim
        along = [None, 0, -1, tuple(range(n)), tuple(range(n - 1)), tuple(range(1, n))]
        return [r(x * 2, axis=a, keepdims=k)
                for r in (gg.max, gg.min) for a in along for k in (False, True)]  # fmt: skip

    assert_right(f, normal(rng, *shape))


@needs_shim
@pytest.mark.parametrize("dtype", ["int32", "bool", "float32"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_sums_are_right(shape, dtype):
    x = gg.zeros(shape, dtype=dtype)
    assert_right(lambda x: [gg.sum(x, axis=a) for a in (None, 0, -1)], x)


@needs_shim
def test_reductions_of_a_scalar_along_an_axis_are_right():
    assert_right(lambda x: [r(x * 2, axis=-1) for r in (gg.sum, gg.mean, gg.max)], gg.constant(1.5))


@needs_shim
def test_a_maximum_propagates_nan(rng):
    x = np.ones((3, 40), np.float32)
    x[1, 35] = np.nan
    assert_right(lambda x: gg.max(x, axis=-1, keepdims=True) * x, gg.constant(x))


@needs_shim
def test_a_training_step_on_the_shim_updates_variables_as_eager_does(rng):
    x, labels = normal(rng, 8, 20), gg.constant(rng.integers(0, 10, 8))
    eager, traced = (mlp_step(20, 16, 12, 10) for _ in range(2))
    traced = gg.function(traced, passes=pass_names("both"))
    eager(x, labels), traced(x, labels)
    program = traced.lower(x, labels).program.copy()
    program.steps = [s for s in program.steps if s.name != "no_nan"]
    run = Launches(program, NUMPY)
    with shim.running():
        for _ in range(3):
            (loss,) = run([x._data, labels._data])
            np.testing.assert_allclose(loss, eager(x, labels).numpy(), rtol=1e-5)


UNARY = [
    gg.sin, gg.tanh, gg.exp, gg.square, softmax, lambda x: gg.sum(x, axis=-1, keepdims=True) + x,
    lambda x: gg.sum(x, axis=0) * x, lambda x: x - gg.mean(x), lambda x: gg.astype(x > 0, x.dtype),
    lambda x: gg.reshape(x, (4, 6)), lambda x: gg.reshape(gg.transpose(x), x.shape),
    lambda x: x * gg.max(x, axis=-1, keepdims=True), lambda x: gg.reshape(x, (24,)),
    lambda x: x * gg.max(x), lambda x: x - gg.min(x, axis=0),
    lambda x: gg.expand_dims(gg.sum(x, axis=-1), -1) * x,
    lambda x: gg.reshape(gg.matmul(gg.reshape(x, (4, 6)), gg.eye(6, dtype=x.dtype)), x.shape),
]  # fmt: skip
BINARY = [
    gg.add, gg.multiply, gg.maximum, lambda a, b: gg.where(a > b, a, b * 2),
    lambda a, b: a * gg.mean(b, axis=-1, keepdims=True),
]  # fmt: skip


def random_program(data):
    """A function of two (2, 12) arrays that returns results and gradients, and two such arrays."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    ops = data.draw(st.lists(st.sampled_from([*UNARY, *BINARY]), min_size=2, max_size=7))
    picks = [data.draw(st.integers(0, 10)) for _ in ops]

    def f(x, y):
        values = [x, y]
        for op, k in zip(ops, picks, strict=True):
            a = values[-1]
            if op in BINARY:
                b = gg.reshape(values[k % len(values)], a.shape)
                values.append(gg.tanh(op(a, b)))
            else:
                values.append(gg.tanh(op(a)))
        return values[2:], gg.sum(values[-1])

    def with_gradient(x, y):
        tape, (results, total) = taped(f, x, y)
        return results, tape.gradient(total, [x, y], unconnected_gradients="zero")

    return with_gradient, [normal(rng, 2, 12, dtype=np.float64) for _ in range(2)]


@needs_shim
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_random_programs_are_right(data):
    f, args = random_program(data)
    assert_right(f, *args, tolerance=1e-9)


@needs_nvrtc
@pytest.mark.parametrize("name", ["kernel", "ending"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64"])
@pytest.mark.thin(3)
def test_sums_of_integers_compile(dtype, name):
    def f(x):
        return [gg.sum(x * x, axis=a, dtype=dtype) for a in (-1, 0, None)]

    source = RowWise(first_kernel(f, gg.zeros((4, 300), dtype=dtype))).source
    nvrtc.compile_for("sm_90", full_source(source), name)


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("shape", [(64, 1024), (64, 50_304), (64, 10)])
@pytest.mark.thin(5)
def test_kernels_do_not_spill_registers_and_move_sixteen_bytes(rng, shape, architecture):
    x = gg.constant(np.zeros(shape, np.float32))
    kernel = first_kernel(value_and_gradients(softmax), x, x)
    compiled = nvrtc.compile_for(architecture, full_source(RowWise(kernel).source), "kernel")
    assert compiled.spilled == 0
    if shape[-1] % 4 == 0:
        assert "ld.global.nc.v4" in compiled.ptx or "ld.global.v4" in compiled.ptx
