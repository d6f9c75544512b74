"""The `open_norms` pass: norms fuse with the kernels around them."""

import numpy as np
import pytest
from needs import needs_shim
from test_fuse import assert_right, normal, on_shim, program_of, value_and_gradients

import gpugrad as gg
from gpugrad.function.passes.axes import split_axes
from gpugrad.function.passes.fuse import FusedKernel, fuse_groups, launches
from gpugrad.function.passes.open import open_norms
from gpugrad.ops._axes import LONG_ROW


def norm(x, weight=None, bias=None, **params):
    return gg.standardize_affine(x, weight, bias, **params)[0]


def block(x, y, weight, bias):
    """A residual sum, and its norm cast to bfloat16 for a product."""
    x = x + y
    return x, gg.astype(norm(x, weight, bias), "bfloat16")


def test_a_sum_its_norm_and_a_cast_are_one_kernel(rng):
    args = normal(rng, 2, 5, 8), normal(rng, 2, 5, 8), normal(rng, 8), normal(rng, 8)
    (kernel,) = fuse_groups(open_norms(program_of(block, *args))).steps
    assert isinstance(kernel, FusedKernel)
    assert {v.dtype for v in kernel.outs} == {np.dtype(np.float32), gg.bfloat16}
    assert len(fuse_groups(program_of(block, *args)).steps) == 3


def test_a_norm_with_its_gradient_is_two_kernels(rng):
    args = normal(rng, 4, 5), normal(rng, 4, 5), normal(rng, 5), normal(rng, 5)
    program = program_of(value_and_gradients(norm), *args)
    kernels = launches(fuse_groups(split_axes(open_norms(program))))
    assert len(kernels) == 2, kernels  # the second adds up the partial sums of the blocks


def one_row(n):
    return gg.zeros((1, n))


@pytest.mark.parametrize(
    ("f", "args"),
    [(lambda x: norm(x, centered=False), [gg.ones((3, 4))]),
     (lambda x: norm(x, axis=0), [gg.ones((3, 4))]),
     (lambda x: norm(x, axis=(0, 1), along=1), [gg.ones((3, 4))]),
     (norm, [one_row(LONG_ROW + 1)])],
    ids=["not centered", "axis 0", "all axes", "long rows"],
)  # fmt: skip
def test_other_norms_are_unchanged(f, args):
    program = program_of(f, *args)
    assert [s.name for s in open_norms(program).steps] == [s.name for s in program.steps]


@needs_shim
@pytest.mark.parametrize("shape", [(8, 16), (3, 7), (2, 3, 33), (1, 40), (5, 1), (2, 1030)])
@pytest.mark.parametrize("weights", [0, 1, 2])
def test_norms_are_right(shape, weights, rng):
    rows = [normal(rng, shape[-1]) for _ in range(weights)]
    assert_right(value_and_gradients(norm), normal(rng, *shape), normal(rng, *shape), *rows)


@needs_shim
@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 4e-3), ("bfloat16", 3e-2)])
def test_sixteen_bit_norms_are_right(dtype, tolerance, rng):
    x, weight, bias = (gg.astype(normal(rng, *s), dtype) for s in ((4, 12), (12,), (12,)))
    assert_right(norm, x, weight, bias, tolerance=tolerance)
    assert_right(norm, x, gg.astype(weight, "float32"), tolerance=tolerance)


@needs_shim
def test_rows_without_variance_are_zero(rng):
    x = gg.constant(np.repeat(rng.normal(size=(3, 1)).astype(np.float32), 4, 1))
    assert_right(lambda x: gg.standardize_affine(x, eps=0.0), x)


@needs_shim
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_rows_whose_variance_overflows_are_nan_and_not_zero():
    x = gg.constant(np.array([[1e20, 3e20, -2e20], [1.0, 3.0, -2.0]], np.float32))
    _, (actual,) = on_shim(lambda x: norm(x) + 1, x)
    np.testing.assert_array_equal(np.isnan(actual), [[True] * 3, [False] * 3])


def regular(x):
    return (x - gg.mean(x, axis=-1, keepdims=True)) / gg.std(x, axis=-1, keepdims=True)


def direction(x):
    return x / gg.vector_norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("f", [regular, direction])
def test_division_by_a_std_or_norm_is_one_kernel(f, rng):
    (kernel,) = fuse_groups(open_norms(program_of(f, normal(rng, 5, 8)))).steps
    assert isinstance(kernel, FusedKernel)


@needs_shim
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_std_and_vector_norm_are_right(axis, rng):
    x = normal(rng, 3, 4, 6)
    for f in (lambda x: gg.std(x, axis=axis, correction=1), lambda x: gg.vector_norm(x, axis=axis)):
        assert_right(value_and_gradients(f), normal(rng, *f(x).shape), x)


@needs_shim
@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("f", [gg.std, gg.vector_norm])
def test_std_and_vector_norm_are_right_where_squares_leave_the_range(f, scale, rng):
    x = gg.constant((scale * rng.normal(size=(3, 4))).astype(np.float32))
    assert_right(value_and_gradients(lambda x: f(x, axis=-1) / scale), normal(rng, 3), x)


def test_std_of_too_few_elements_is_unchanged():
    program = program_of(lambda x: gg.std(x, correction=4), gg.ones(4))
    assert [s.name for s in open_norms(program).steps] == ["std"]
