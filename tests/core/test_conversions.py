"""Python numbers in Tensors as NumPy converts them, and functions at the edge of their domain."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import AxisError, NumberOverflowError

BIG = 2**63
INF = np.inf


def _written(lib, start, index, value, asarray):
    x = asarray(np.array(start))
    x[index] = value
    return x


CASES = {
    "uint64 beside int": lambda lib, a: lib.array([np.uint64(2**64 - 1), 0], dtype="u8"),
    "big int beside int": lambda lib, a: lib.array([BIG, 1], dtype="u8"),
    "whole float": lambda lib, a: lib.asarray([0.0, 2.0], dtype="int32"),
    "interp at infinity": lambda lib, a: lib.interp(
        a([0, 0.5, 1, 1.5, 2.0]), a([0, 1, 2.0]), a([1, INF, 3])
    ),
    "interp between infinities": lambda lib, a: lib.interp(
        a([0.5, 1.0]), a([0, 1.0]), a([INF, INF])
    ),
    "float into ints": lambda lib, a: _written(lib, [1, 2], 0, 1.5, a),
    "floats into ints": lambda lib, a: _written(lib, [1, 2], slice(None), [1.5, -2.5], a),
    "array of floats into ints": lambda lib, a: _written(lib, [1, 2], slice(1), a([2.5]), a),
    "float into bools": lambda lib, a: _written(lib, [True, False], 1, 0.5, a),
    "!= None": lambda lib, a: a([1.0, 2.0]) != None,  # noqa: E711
    "== None": lambda lib, a: a([1.0, 2.0]) == None,  # noqa: E711
    "take of a number": lambda lib, a: lib.take(a(3.0), [0]),
    "gradient of float32": lambda lib, a: lib.gradient(a(np.float32([1, 4, 9])), a([0, 1.0, 3])),
    "cond -inf": lambda lib, a: lib.linalg.cond(a([[1.0, 2], [3, 5]]), -INF),
    "cond of singular": lambda lib, a: lib.linalg.cond(
        a([[[1.0, 2], [2, 4]], [[1.0, 0], [0, 2]]]), 1
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_result_is_numpys(name):
    actual = np.asarray(CASES[name](gg, lambda v: gg.asarray(np.asarray(v))))
    expected = np.asarray(CASES[name](np, np.asarray))
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected)


def test_out_of_numpys_function_may_be_positional():
    x = gg.asarray([1.0, 2.0])
    np.cumsum(x, 0, None, x)
    assert x.tolist() == [1.0, 3.0]


def test_interp_beside_infinity_has_finite_gradients_elsewhere():
    x = gg.asarray([0.5, 2.5])
    slope = gg.grad(lambda x: gg.interp(x, [0.0, 1.0, 2.0, 3.0], [1.0, 2.0, np.inf, 3.0])[0])(x)
    assert slope.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("call", [
    lambda: gg.asarray([300], "int8"), lambda: gg.asarray([1], "int8") + 300,
    lambda: gg.asarray([1, 2], "uint8").__setitem__(0, -3),
    lambda: gg.asarray([1, 2]).__setitem__(0, float("inf")),
])  # fmt: skip
def test_python_number_out_of_range_is_an_overflow_error_as_in_numpy(call):
    with pytest.raises(NumberOverflowError) as caught:
        call()
    assert isinstance(caught.value, OverflowError)
    assert not isinstance(caught.value, TypeError)


def test_errors_are_of_numpys_classes():
    with pytest.raises(np.exceptions.AxisError, match="axis 3"):
        gg.sum(gg.ones(2), axis=3)
    assert issubclass(AxisError, np.exceptions.AxisError)
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        gg.linalg.eigh(gg.ones((2, 3)))
