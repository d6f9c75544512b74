"""NumPy's loops on the pool's threads, and sums over axes."""

import warnings

import numpy as np
import pytest
from needs import needs_compiler
from taping import taped

import gpugrad as gg
from gpugrad.core.backend import OPS
from gpugrad.errors import ShapeError
from gpugrad.kernels.cpu import elementwise, pool, sums, ufuncs
from gpugrad.kernels.cpu.large import LARGE

pytestmark = needs_compiler

NAMES = [name for name, op in sorted(OPS.items()) if op.ufunc is not None and not op.cpu]


def uniform(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype(dtype)


def bits(x):
    return x.view(f"u{x.itemsize}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_a_ufunc_has_numpys_bits_on_threads(name, dtype, threads):
    ufunc = OPS[name].ufunc
    if not any(t.startswith(np.dtype(dtype).char) for t in ufunc.types):
        return  # of integers
    arrays = [uniform(300, 501, dtype=dtype, seed=k) for k in range(ufunc.nin)]
    arrays[0] += 1 if name == "acosh" else 0
    arrays[0][7, ::5] = np.nan
    with np.errstate(all="ignore"):
        out, expected = ufuncs._on_threads(ufunc, tuple(arrays)), ufunc(*arrays)
        eager = OPS[name].eager(*arrays).numpy()
    assert out.dtype == expected.dtype
    assert np.array_equal(bits(out), bits(expected))
    assert np.array_equal(bits(eager), bits(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
def test_division_in_c_has_numpys_bits(name, dtype):
    special = [0, -0.0, 1, -1, np.inf, np.nan, 1e-40, 3e38, 2**27, 2**28, -(2**29), 7.5, 0.1]
    x, y = (a.ravel() for a in np.meshgrid(np.array(special, dtype), np.array(special, dtype)))
    normal = np.random.default_rng(0).standard_normal((2, 10_000))
    x = np.concatenate([x, normal[0] * 10 ** np.linspace(-6, 10, 10_000)]).astype(dtype)
    y = np.concatenate([y, normal[1]]).astype(dtype)
    with np.errstate(all="ignore"):
        eager, expected = OPS[name].eager(x, y).numpy(), OPS[name].ufunc(x, y)
        loop = elementwise.forward_of(OPS[name])((x, y), {})
    for out in (eager, loop):
        np.testing.assert_array_equal(out, expected)
        same = np.signbit(out) == np.signbit(expected)
        assert np.all(same | np.isnan(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 8, 100, 129, 136, 1000, 5000])
def test_sums_and_products_of_rows_have_numpys_bits(n, dtype, threads):
    rows = LARGE // n + 1
    for x in (uniform(rows, n, dtype=dtype) - dtype(0.5), np.full((rows, n), -0.0, dtype)):
        for keepdims in (False, True):
            total = sums.reduced(x, -1, keepdims)
            assert np.array_equal(bits(total), bits(np.sum(x, -1, keepdims=keepdims)))
            product = sums.product_of_rows(x, 1, keepdims)
            assert np.array_equal(bits(product), bits(np.prod(x, -1, keepdims=keepdims)))


OPERANDS = {
    "a row": (uniform(300, 501), uniform(501)),
    "a column": (uniform(300, 501), uniform(300, 1)),
    "a number": (uniform(300, 501), 2),
    "a number first": (0.3, uniform(300, 501)),
    "a middle axis": (uniform(30, 50, 101), uniform(50, 1)),
    "an outer sum": (uniform(400, 1), uniform(501)),
    "few columns": (uniform(70_000, 3), uniform(3)),
    "slices": (uniform(300, 502)[:, 1:], uniform(300, 502, seed=1)[:, :-1]),
    "steps": (uniform(300, 1002)[:, ::2], uniform(300, 501)),
    "backwards": (uniform(300, 501)[::-1, ::-1], uniform(300, 501)),
    "transposed": (uniform(501, 300).T, uniform(501, 300, seed=1).T),
    "one transposed": (uniform(300, 501), uniform(501, 300).T),
    "the other transposed": (uniform(501, 300).T, uniform(300, 501)),
    "permuted": (uniform(30, 50, 101).transpose(1, 0, 2), uniform(101, 30, 50).transpose(2, 1, 0)),
    "broadcast": (np.broadcast_to(uniform(501), (300, 501)), uniform(300, 501)),
    "an array with itself": (uniform(300, 501),) * 2,
    "no axes": (uniform(300, 501), np.array(2, np.float32)),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_of_other_shapes_and_layouts_have_numpys_bits(name, threads):
    x, y = OPERANDS[name]
    for ufunc in (np.subtract, np.greater):
        out = ufuncs._on_threads(ufunc, (x, y))
        assert np.array_equal(out, ufunc(x, y))
    assert np.array_equal(gg.subtract(x, y).numpy(), x - y)


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.complex64, np.bool_])
def test_other_dtypes_are_left_to_numpy(dtype):
    x = uniform(300, 501).astype(dtype)
    assert ufuncs._on_threads(np.add, (x, x)) is NotImplemented
    assert ufuncs._on_threads(np.add, (x, uniform(300, 501))) is NotImplemented
    assert np.array_equal(gg.add(x, x).numpy(), x + x)


def test_arrays_between_addresses_are_left_to_numpy():
    x = np.zeros(4 * LARGE + 1, np.uint8)[1:].view(np.float32)
    assert ufuncs._on_threads(np.exp, (x,)) is NotImplemented
    assert (gg.exp(x).numpy() == 1).all()


def test_a_broadcast_array_leaves_the_result_in_the_order_of_the_other():
    x, row = uniform(400, 401), np.broadcast_to(uniform(401), (400, 401))
    for args in ((row, x), (x, row), (row, row)):
        out = ufuncs._on_threads(np.add, args)
        assert out.flags.c_contiguous
        assert np.array_equal(bits(out), bits(np.add(*args)))


def test_arrays_that_do_not_broadcast_are_an_error():
    with pytest.raises(ShapeError, match=r"\(300, 501\).*\(500,\)"):
        gg.add(uniform(300, 501), uniform(500))


def test_a_number_that_is_rounded_with_a_warning_is_numpys():
    x = uniform(300, 501)
    assert ufuncs._on_threads(np.multiply, (x, 1e300)) is NotImplemented
    assert np.array_equal(ufuncs.on_threads(np.multiply, x, np.inf), x * np.float32(np.inf))


@pytest.mark.parametrize(
    ("ufunc", "number", "message"),
    [
        (np.divide, 0.0, "divide by zero"),
        (np.multiply, 1e38, "overflow"),
        (np.subtract, np.inf, "invalid value"),
    ],
)
def test_numpy_reports_what_a_loop_raised(ufunc, number, message, threads):
    x = uniform(300, 501)
    x[299, 500] = np.inf if ufunc is np.subtract else 9
    with np.errstate(all="warn"), pytest.warns(RuntimeWarning, match=message):
        ufuncs.on_threads(ufunc, x, number)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=message):
        ufuncs.on_threads(ufunc, x, number)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ufuncs._on_threads(ufunc, (x, number)) is not NotImplemented


def test_a_product_of_gradients_has_numpys_bits(threads):
    x, g = uniform(300, 501), uniform(501, 300, seed=1).T
    x = gg.asarray(x)
    tape, y = taped(gg.sin, x)
    assert np.array_equal(tape.gradient(y, x, gg.asarray(g)).numpy(), g * np.cos(x.numpy()))


@gg.function
def two_products(x):
    return gg.grad(lambda x: gg.sum(gg.exp(x) + gg.tanh(x) * 2.0))(x)


def test_a_traced_program_of_large_arrays_is_the_eager_one():
    x = gg.asarray(uniform(300, 501))
    expected = np.exp(x.numpy()) + 2 / np.cosh(x.numpy()) ** 2
    for _ in range(2):
        np.testing.assert_allclose(two_products(x).numpy(), expected, rtol=1e-6)


def test_a_sum_of_gradients_is_written_in_place(threads):
    x, y = uniform(300, 501), uniform(501, 300, seed=1).T
    for other in (y, uniform(501), x):
        expected, out = x + other, x.copy()
        other = out if other is x else other
        with np.errstate(all="ignore"):
            assert ufuncs._on_threads(np.add, (out, other), out) is out
        assert np.array_equal(out, expected)
    for other in (out[::-1], out[:, ::-1]):  # which NumPy copies first
        expected = out + other
        assert ufuncs.on_threads(np.add, out, other, out=out) is out
        assert np.array_equal(out, expected)


def test_an_overflow_of_a_sum_in_place_is_reported_once(threads):
    x = uniform(300, 501)
    x[-1, -1] = 3e38
    with np.errstate(all="warn"), pytest.warns(RuntimeWarning, match="overflow"):
        out = ufuncs.on_threads(np.add, x, x.copy(), out=x)
    assert out is x
    assert x[-1, -1] == np.inf


@pytest.mark.parametrize("factor", ["array", "number"])
def test_a_gradient_of_zero_meets_an_infinite_factor_in_large_arrays(factor):
    """0 * inf is NaN. Only rules that read floats can give it: their gradients are searched."""
    x, infinite = gg.asarray(uniform(300, 501)), np.full((300, 501), np.inf, np.float32)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * (infinite if factor == "array" else np.inf)
        z = gg.where(x > 2, y, 0.0)
    assert not tape.gradient(z, x).numpy().any()


AXES = [
    ((700, 301), (0,)), ((700, 301), 0), ((7, 111, 301), (0, 1)), ((7, 111, 301), 1),
    ((70_000, 3), (0,)), ((3, 70_000), (0,)), ((5, 4, 9000), (-3,)), ((1, 200_000), 0),
    ((40_000, 2, 2), (0,)), ((5, 40_000, 2, 2), (1, 2)), ((2500, 61), -2),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axis"), AXES)
def test_a_sum_over_axes_is_close_to_the_exact_one(shape, axis, dtype, threads):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for keepdims in (False, True):
        out = sums.reduced(x, axis, keepdims)
        exact = x.astype(np.longdouble).sum(axis, keepdims=keepdims)
        bound = 8 * np.finfo(dtype).eps * np.abs(x).sum(axis, keepdims=keepdims)
        assert (out.shape, out.dtype) == (exact.shape, dtype)
        assert (np.abs(out - exact) <= bound).all()
        assert np.array_equal(gg.sum(x, axis=axis, keepdims=keepdims).numpy(), out)


def test_a_sum_does_not_depend_on_the_number_of_threads():
    x, before = uniform(2000, 301), pool.threads()
    try:
        results = [(pool.set_threads(n), sums.reduced(x, 0, False))[1] for n in (1, 2, 3)]
    finally:
        pool.set_threads(before)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


@pytest.mark.parametrize("axis", [(0, 2), (), 2, -3])
def test_other_sums_are_left_to_numpy(axis):
    x = uniform(60, 70, 80) if axis == (0, 2) else uniform(300, 501)
    assert sums.reduced(x, axis, False) is NotImplemented
    assert sums.reduced(x.T, 0, False) is NotImplemented
