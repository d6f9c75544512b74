"""Generated kernels read arrays of any layout and sum results; planted bugs are caught."""

import functools

import numpy as np
import pytest
from needs import needs_shim

from gpugrad.autodiff.backward import refit
from gpugrad.core.backend import NUMPY
from gpugrad.kernels.codegen.element_kernel import LONG
from gpugrad.kernels.codegen.elementwise import Elementwise
from gpugrad.testing.cuda import shim

pytestmark = needs_shim


def near(a, d, tolerance=1e-5):
    """Whether arrays agree; errors are relative to the largest element."""
    scale = max(1.0, np.abs(d).max(initial=0))
    return np.allclose(a, d, rtol=tolerance, atol=tolerance * scale)


def product(*codes):
    return [codes[0] * codes[1]]


def random(rng, shape, dtype=np.float32):
    return np.asarray(rng.normal(size=shape)).astype(dtype)


LAYOUTS = {
    "one": lambda r: (random(r, ()), random(r, ())),
    "odd": lambda r: (random(r, 1003), random(r, 1003)),
    "empty": lambda r: (random(r, (0, 3)), random(r, 3)),
    "element": lambda r: (random(r, (7, 9)), random(r, (1, 1))),
    "row": lambda r: (random(r, (5, 16)), random(r, 16)),
    "odd row": lambda r: (random(r, (5, 7)), random(r, 7)),
    "column": lambda r: (random(r, (5, 16)), random(r, (5, 1))),
    "outer": lambda r: (random(r, (5, 1)), random(r, (1, 12))),
    "channel": lambda r: (random(r, (2, 3, 4, 4)), random(r, (3, 1, 1))),
    "transposed": lambda r: (random(r, (5, 8)).T, random(r, (5, 8)).T),
    "half transposed": lambda r: (random(r, (5, 8)).T, random(r, (8, 5))),
    "every second": lambda r: (random(r, (6, 20))[::2, ::2], random(r, (3, 10))),
    "backwards": lambda r: (random(r, (6, 8))[::-1, ::-1], random(r, (6, 8))),
    "not aligned": lambda r: (random(r, 65)[1:], random(r, 64)),
    "five axes": lambda r: (random(r, (2, 3, 2, 3, 4)), random(r, (3, 1, 3, 1))),
    "two dtypes": lambda r: (random(r, 37, np.float16), random(r, 37)),
    "bytes": lambda r: (random(r, (3, 40)) > 0, random(r, (3, 40), np.float64)),
}


def sums(shape):
    """The whole shape, and the shapes of sums over all, leading and trailing axes."""
    few = [(), shape[1:], (1, *shape[1:]), (*shape[:-1], 1), (1, *shape[1:-1], 1)]
    return [shape, *(few if len(shape) > 1 else few[:1])]


@pytest.fixture(scope="module")
def laid_out():
    """By layout: its arrays, and a function that returns results and sums by shape."""
    rng, layouts = np.random.default_rng(0), {}

    def results(x, y, kernel):
        return {s: kernel(x, y, shapes=[s])[0] for s in sums(np.broadcast_shapes(x.shape, y.shape))}

    with shim.deferred() as launches, np.errstate(all="ignore"):  # nothing is computed yet
        for name, arrays in LAYOUTS.items():
            x, y = arrays(rng)
            kernel = Elementwise("product", [x.dtype, y.dtype], product, [np.result_type(x, y)])
            layouts[name] = x, y, functools.partial(results, x, y, kernel)
            layouts[name][2]()
    launches.compile()
    return layouts


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
def test_arrays_of_any_layout_are_read(laid_out, schedule):
    for name, (x, y, results) in laid_out.items():
        with shim.running(schedule):
            by_shape = results()
        whole = x.astype(np.float64) * y
        for shape, a in by_shape.items():
            assert a.dtype == np.result_type(x, y), name
            want = refit(NUMPY, whole, (shape, np.dtype(np.float64)))
            assert near(a, np.asarray(want), 4e-3 if a.dtype == np.float16 else 1e-5), (name, shape)


@pytest.mark.parametrize("steps", [3, LONG])
def test_long_formula_is_emitted_once_and_gives_the_same_results(steps, rng):
    def formula(x, y):
        for k in range(steps):
            x = x * 0.9 + y * (k / steps)
        return [x, x - y]

    x, y = random(rng, 37, np.float16), random(rng, 37)
    with shim.deferred() as launches:
        results = Elementwise("steps", [x.dtype, y.dtype], formula, [y.dtype, x.dtype])(x, y)
    launches.run()
    assert launches.source.count("__noinline__ steps") == (steps == LONG)
    for actual, want in zip(results, formula(x.astype(np.float32), y), strict=True):
        assert near(actual, want, 1e-3)


def test_result_has_the_layout_of_transposed_inputs(laid_out):
    x, _, results = laid_out["transposed"]
    with shim.running():
        assert results()[x.shape].strides == x.strides


def test_many_rows_and_long_rows_are_summed_in_two_stages():
    rng = np.random.default_rng(0)
    x, w = random(rng, (2100, 6)), random(rng, 6)
    y, one = random(rng, (2, 9001)), random(rng, (2, 1))

    def gradients(g, x, w):
        return [g * w, g * x]

    kernel = Elementwise("both", [np.float32] * 3, gradients, [np.float32] * 2)
    with shim.running("backwards"):
        whole, leading = kernel(x, x, w, shapes=[None, (6,)])
        again, trailing = kernel(y, y, one, shapes=[None, (2, 1)])
    np.testing.assert_array_equal(whole, x * w)
    np.testing.assert_array_equal(again, y * one)
    np.testing.assert_allclose(leading, (x * x).sum(0), rtol=1e-5)
    np.testing.assert_allclose(trailing, (y * y).sum(1, keepdims=True), rtol=1e-5)


def test_sums_over_other_axes_are_computed_from_whole_results():
    x = random(np.random.default_rng(0), (2, 3, 4))
    kernel = Elementwise("product", [np.float32] * 2, product, [np.float32])
    with shim.running():
        (actual,) = kernel(x, x, shapes=[(3, 1)])
    np.testing.assert_allclose(actual, (x * x).sum((0, 2)).reshape(3, 1), rtol=1e-5)


PLANTED = {
    "a sum without a barrier": (
        "__syncthreads();\n  for (int k = threadIdx.y",
        "for (int k = threadIdx.y",
    ),
    "a row beyond the last": ("row < rows", "row <= rows"),
    "a column beyond the last": ("c < columns", "c <= columns"),
    "a wrong stride": ("i0 * s1_0", "i0 * s1_0 * 2"),
    "a wrong partial": ("v0 * v1", "v0 * v0"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_caught(name):
    rng = np.random.default_rng(0)
    cases = [(random(rng, (70, 8)), random(rng, 8), (8,)), (random(rng, 13), random(rng, 13), ()),
             (random(rng, (6, 8)), random(rng, (12, 8))[::2], (6, 1))]  # fmt: skip
    kernel = Elementwise("product", [np.float32] * 2, product, [np.float32])
    caught = planted = 0
    for x, y, shape in cases:
        with shim.deferred() as launches:
            (actual,) = kernel(x, y, shapes=[shape])
        want = np.asarray(refit(NUMPY, x * y, (actual.shape, actual.dtype)))
        for correct in (True, False):
            source = launches.source
            broken = source if correct else source.replace(*PLANTED[name])
            planted += broken != source
            module = shim.compile_module(broken, launches.names)
            for schedule in shim.SCHEDULES:
                try:
                    for _, kernel_name, grid, block, args, params in launches.launches:
                        module.run(kernel_name, grid, block, args, **params, schedule=schedule)
                    right = near(actual, want)
                except shim.ShimError:
                    right = False
                assert right or not correct
                caught += not right
    assert planted
    assert caught
