"""`gpugrad`'s functions with NumPy's arguments: positional order, out=, where=, dtype=."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.array_api import numpy_calls

A = np.arange(6.0, dtype="f4").reshape(2, 3)


def _at(xp, a):
    y = xp.asarray(a, copy=True)
    xp.add.at(y, ([0, 0], 1), 2.0)
    return y


def test_functions_take_numpys_arguments():
    forms = (
        lambda xp, a: xp.sum(a, 0, "f8"),
        lambda xp, a: xp.std(a, 0, "f8", None, 1),
        lambda xp, a: xp.max(a, 0, None, True),
        lambda xp, a: xp.max(a, 1, initial=4.0, where=a > 1),
        lambda xp, a: xp.add(a, a, out=xp.zeros((2, 3), dtype="f4")),
        lambda xp, a: xp.add(a, a, xp.ones((2, 3), dtype="f4"), where=a > 2),
        lambda xp, a: xp.add(a, 1, dtype="f8"),
        lambda xp, a: xp.cumsum(a, 0, "f8", xp.zeros((2, 3), dtype="f8")),
        lambda xp, a: xp.clip(a, 1, 2, xp.zeros((2, 3), dtype="f4")),
        lambda xp, a: xp.take(a, xp.asarray([7]), 1, mode="wrap"),
        lambda xp, a: xp.stack([a, a], 1, xp.zeros((2, 2, 3), dtype="f4")),
        lambda xp, a: xp.matmul(a, a.T, out=xp.zeros((2, 2), dtype="f4")),
        lambda xp, a: xp.linalg.svd(a, False, False),
        lambda xp, a: xp.add.reduce(a),
        lambda xp, a: xp.maximum.accumulate(a, 1),
        lambda xp, a: xp.multiply.outer(a[0], a),
        lambda xp, a: xp.add.reduceat(a, [0, 2], axis=1),
        _at,
        lambda xp, a: a.sum(1, "f8"),
    )
    for form in forms:
        expected, actual = form(np, A), form(gg, gg.asarray(A))
        assert isinstance(actual, gg.Tensor)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_numbers_take_the_place_of_arrays():
    """Of functions that are no single op; tests/ops/test_number_arguments.py has the ops."""
    for form in (
        lambda xp: xp.convolve(3.0, [1.0, 2.0]),
        lambda xp: xp.polyadd(3, [1.0, 2.0]),
        lambda xp: xp.outer(2.0, [1.0, 3.0]),
        lambda xp: xp.ldexp(1.5, 2),
        lambda xp: xp.extract(True, [1.0]),
        lambda xp: xp.piecewise(1.0, [True], [3.0]),
    ):
        assert form(gg).tolist() == np.asarray(form(np)).tolist()


def test_forms_are_recorded_traced_profiled_and_keep_gradients():
    def form(x):
        y = gg.exp(x)
        z = gg.sum(y * y, 0, None, gg.zeros(3, y.dtype))
        gg.add(y, 1.0, out=y)  # a tape has saved y
        return z

    gg.testing.check_grads(form, (gg.asarray(A / 4),), modes=("rev",), order=1)
    np.testing.assert_allclose(gg.function(form)(gg.asarray(A)), np.sum(np.exp(A) ** 2, 0), 1e-5)
    with gg.profile():
        assert gg.sum(gg.asarray(A), 0, "f8").dtype == gg.add(gg.asarray(A), 1, dtype="f8").dtype


def test_other_arguments_are_refused_by_name():
    t = gg.asarray(A)
    for call, message in (
        (lambda: gg.sum(t, nothing=1), r"sum\(\) got an unexpected keyword argument 'nothing'"),
        (lambda: gg.sum(t, 0, None, None, True, 0, True, 1), "from 1 to 7 positional"),
        (lambda: gg.add(t, t, 3), "numpy.add: out= must be a Tensor or an array, got a int"),
        (lambda: gg.add(t, t, out=gg.zeros(2)), "numpy.add"),
        (lambda: gg.cumulative_sum(t, 0, out=t, include_initial=True), "numpy.cumulative_sum"),
        (lambda: gg.top_k(t, 1, 2, 3), "positional"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_arrays_and_numbers_beside_tensors_mean_what_they_do_where_arguments_are_bound(monkeypatch):
    t, a = gg.asarray(A), A.astype("f8")
    calls = [
        lambda xp: xp.dot(a, t.T),
        lambda xp: xp.where(a > 2, t, 1),
        lambda xp: xp.where(t > 2, 0.5, t),
        lambda xp: xp.concatenate([t, a], 1),
        lambda xp: xp.concatenate((t, t), axis=None),
        lambda xp: xp.stack((a, t)),
        lambda xp: xp.hstack([t, a]),
        lambda xp: xp.outer(t, np.float64(2)),
        lambda xp: xp.linalg.solve(a[:, :2], t[:, :2]),
        lambda xp: xp.expand_dims(t, 1),
        lambda xp: xp.expand_dims(t, axis=(0, 1)),
        lambda xp: xp.power(t, 2),
        lambda xp: xp.power(2.0, t),
        lambda xp: xp.matmul(a.T, t),
        lambda xp: xp.arctan2(t, np.float64(1)),
        lambda xp: xp.equal(True, t),
    ]
    of_tensors = [call(xp) for call in calls for xp in (np, gg.numpy)]
    with pytest.raises(TypeError, match="expand_dims"):
        gg.numpy.expand_dims(t)
    monkeypatch.setattr(numpy_calls, "_plan", lambda function: None)
    bound = [call(xp) for call in calls for xp in (np, np)]
    for actual, expected in zip(of_tensors, bound, strict=True):
        assert (type(actual), actual.dtype) == (type(expected), expected.dtype)
        np.testing.assert_array_equal(actual.numpy(), expected.numpy())
