"""Copies in C, and sums of rows by index: they have NumPy's bits, and its errors."""

import ml_dtypes
import numpy as np
import pytest
from needs import needs_compiler
from taping import taped

import gpugrad as gg
from gpugrad.errors import IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.cpu import copies, sums
from gpugrad.kernels.cpu.large import LARGE

pytestmark = needs_compiler

DTYPES = [np.bool_, np.int8, np.float16, ml_dtypes.bfloat16, np.float32, np.int64, np.complex128]


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).integers(-99, 99, shape).astype(dtype)


def indices(n, *shape, seed=1):
    """Indices of n rows, some of them from the end."""
    return np.random.default_rng(seed).integers(-n, n, shape)


LAYOUTS = {
    "one axis": ((LARGE + 3,), lambda x: x),
    "every other": ((LARGE * 2 + 3,), lambda x: x[::2]),
    "backwards": ((LARGE + 3,), lambda x: x[::-1]),
    "transposed": ((389, 411), lambda x: x.T),
    "transposed, few columns": ((70_000, 3), lambda x: x.T),
    "transposed, few rows": ((3, 70_000), lambda x: x.T),
    "heads": ((5, 37, 6, 131), lambda x: x.transpose(0, 2, 1, 3)),
    "last axis in front": ((31, 67, 71), lambda x: x.transpose(2, 0, 1)),
    "reversed axes": ((31, 67, 71), lambda x: x.T),
    "a slice, transposed": ((400, 911), lambda x: x[3:, 1::2].T),
    "flipped, transposed": ((400, 411), lambda x: x[::-1, ::-1].T),
    "broadcast": ((131, 1, 1, 67), lambda x: np.broadcast_to(x, (131, 5, 6, 67))),
    "broadcast columns": ((700, 1), lambda x: np.broadcast_to(x, (700, 333))),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_copy_has_the_elements_of_its_array(layout, dtype, threads):
    shape, view = LAYOUTS[layout]
    x = view(numbers(*shape, dtype=dtype))
    assert x.size >= LARGE
    out = np.empty(x.shape, dtype)
    assert copies.copy(x, out)
    assert np.array_equal(out, x)
    padded = np.zeros((*x.shape[:-1], x.shape[-1] + 5), dtype)
    assert copies.copy(x, padded[..., 2:-3])
    assert np.array_equal(padded[..., 2:-3], x)
    assert not padded[..., :2].any()
    assert not padded[..., -3:].any()


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_concat_of_large_arrays_is_numpys(dtype, axis, threads):
    parts = [numbers(60, 90, 30, dtype=dtype), numbers(60, 90, 30, dtype=dtype, seed=1)]
    parts.append(np.asfortranarray(parts[0]))
    parts.append(parts[1][:0] if axis == 0 else parts[1])
    out = gg.concat(parts, axis=axis).numpy()
    assert out.dtype == dtype
    assert np.array_equal(out, np.concatenate(parts, axis))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_stack_of_large_arrays_is_numpys(axis, threads):
    parts = [numbers(200, 300), numbers(300, 200, seed=1).T, numbers(200, 300, seed=2)]
    assert np.array_equal(gg.stack(parts, axis=axis).numpy(), np.stack(parts, axis))


def test_a_transposed_array_is_reshaped_in_row_major_order(threads):
    x = numbers(8, 100, 4, 50)
    y = gg.permute_dims(x, (0, 2, 1, 3))
    assert np.array_equal(gg.reshape(y, (32, 5000)).numpy(), x.swapaxes(1, 2).reshape(32, 5000))
    assert np.array_equal(gg.reshape(y, (8, 4, -1, 25, 2)).numpy().ravel(), y.numpy().ravel())
    with pytest.raises(ShapeError, match="reshape"):
        gg.reshape(y, (7, -1))


def test_a_formula_of_transposed_arrays_keeps_their_order(threads):
    x = np.random.default_rng(0).standard_normal((500, 300)).astype(np.float32)
    out = gg.nn.gelu(gg.matrix_transpose(x)).numpy()
    assert np.array_equal(out, gg.nn.gelu(x).numpy().T)
    assert out.flags.f_contiguous
    with gg.GradientTape() as tape:
        y = gg.asarray(x.T)
        tape.watch(y)
        z = gg.nn.gelu(y)
    g = numbers(300, 500)
    d = tape.gradient(z, y, gg.asarray(g)).numpy()
    with gg.GradientTape() as tape:
        y = gg.asarray(x)
        tape.watch(y)
        z = gg.nn.gelu(y)
    assert np.array_equal(tape.gradient(z, y, gg.asarray(g.T)).numpy(), d.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.thin(5)
def test_slices_at_indices_are_numpys(axis, dtype, threads):
    for x in (numbers(300, 40, 30, dtype=dtype), numbers(30, 40, 300, dtype=dtype).T):
        index = indices(30, 150) if axis is not None else indices(x.size, 50, 5000)
        part = gg.take(x, index, axis=axis).numpy()
        assert part.dtype == dtype
        assert np.array_equal(part, np.take(x, index, axis))
        rows = indices(30, 150)
        assert np.array_equal(gg.asarray(x)[rows].numpy(), x[rows])


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.uint64])
def test_indices_may_be_integers_of_any_kind(kind, threads):
    x, index = numbers(200, 1000), indices(200, 500) % 200
    assert np.array_equal(gg.take(x, index.astype(kind), axis=0).numpy(), x[index])
    rows, places = numbers(500, 1000), indices(200, 500, 700) % 200
    part = gg.take_along_axis(rows, places.astype(kind), axis=1).numpy()
    assert np.array_equal(part, np.take_along_axis(rows, places, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_along_an_axis_are_numpys(axis, dtype, threads):
    x, shape = numbers(70, 60, 80, dtype=dtype), [70, 60, 80]
    shape[axis] = 50
    index = indices(x.shape[axis], *shape)
    assert index.size >= LARGE
    part = gg.take_along_axis(x, index, axis=axis).numpy()
    assert np.array_equal(part, np.take_along_axis(x, index, axis))
    part = gg.take_along_axis(x, index[:1] if axis else index[:, :1], axis=axis).numpy()
    assert np.array_equal(part, np.take_along_axis(x, index[:1] if axis else index[:, :1], axis))


@pytest.mark.parametrize("wrong", [300, -301, 2**62, -(2**63)])
def test_an_index_out_of_bounds_is_an_error_in_large_arrays(wrong, threads):
    x, index = gg.asarray(numbers(300, 600)), indices(300, 500)
    index[77] = wrong
    along = np.broadcast_to(index[:300, None], (300, 500)).copy()
    calls = (
        lambda: gg.take(x, index, axis=0),
        lambda: x[index],
        lambda: gg.take_along_axis(x, along, axis=0),
        lambda: gg.index_add(x, numbers(500, 600), index=index),
        lambda: gg.scatter_rows(numbers(500, 600), index, shape=(300, 600)),
        lambda: gg.scatter_along_axis(numbers(300, 500), along, axis=1, shape=(300, 300)),
        lambda: gg.nn.embedding(np.where(index == wrong, index, abs(index) % 300), x),
    )
    for call in calls:
        with pytest.raises(IndexOutOfBoundsError, match=str(wrong)):
            call()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 7, 32, 100])
@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_rows_added_to_an_array_have_numpys_bits(rows, width, dtype, threads):
    n = LARGE // width + 1
    index, rng = indices(rows, n), np.random.default_rng(0)
    values, x = rng.standard_normal((n, width)).astype(dtype), numbers(rows, width, dtype=dtype)
    for base in (None, x):
        expected, out = np.zeros_like(x) if base is None else x.copy(), np.empty_like(x)
        np.add.at(expected, index, values)
        assert sums.add_rows(out, index, values, base)
        assert np.array_equal(out, expected)
    expected = x.copy()
    np.add.at(expected, index, values)
    assert np.array_equal(gg.index_add(x, values, index=index).numpy(), expected)
    assert np.array_equal(gg.index_add(x[::-1], values, index=-1 - index).numpy(), expected[::-1])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_elements_added_along_an_axis_have_numpys_bits(axis, dtype, threads):
    values, n = numbers(70, 40, 60, dtype=dtype), 50
    index, shape = indices(n, 70, 40, 60), [70, 40, 60]
    shape[axis] = n
    grid = list(np.indices(values.shape))
    grid[axis] = index
    expected = np.zeros(shape, dtype)
    np.add.at(expected, tuple(grid), values)
    out = gg.scatter_along_axis(values, index, axis=axis, shape=tuple(shape)).numpy()
    assert out.dtype == dtype
    assert np.array_equal(out, expected)


def test_the_gradient_of_a_slice_is_zero_elsewhere(threads):
    x, g = gg.asarray(numbers(600, 700)), numbers(300, 699, seed=2)
    tape, y = taped(lambda x: x[::-2, 1:], x)
    expected = np.zeros((600, 700), np.float32)
    expected[::-2, 1:] = g
    assert np.array_equal(tape.gradient(y, x, gg.asarray(g)).numpy(), expected)


def test_empty_arrays_are_numpys():
    x = np.zeros((0, LARGE), np.float32)
    assert gg.concat([numbers(2, LARGE), x]).shape == (2, LARGE)
    assert gg.take(x, np.zeros(0, np.int64), axis=0).shape == (0, LARGE)
    assert gg.take(numbers(2, LARGE), np.zeros(0, np.int64), axis=0).shape == (0, LARGE)
    with pytest.raises(IndexOutOfBoundsError):
        gg.take(x, np.zeros(3, np.int64), axis=0)
