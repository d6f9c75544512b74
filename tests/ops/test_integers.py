"""Integers do not wrap around in a formula that makes floats of them: 3 - 5 is not 254."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core.backend import OPS

# of SciPy's special functions a result has the dtype of theirs, so has one of NumPy's ufuncs
NAMES = sorted(
    name
    for name, op in OPS.items()
    if op.home.startswith("gpugrad.ops.")
    and not op.home.startswith(("gpugrad.ops.special", "gpugrad.ops.random"))
    and op.kind != "elementwise"
    and name != "ediff1d"  # whose differences are integers, as NumPy's
    and op.samples
)


def as_integers(a, dtype):
    """Whole numbers from 0 on in place of floats, also in lists."""
    if isinstance(a, (list, tuple)):
        return type(a)(as_integers(x, dtype) for x in a)
    if not isinstance(a, np.ndarray) or a.dtype != np.float64:
        return a
    a = np.nan_to_num(a, posinf=3, neginf=-3)
    a = a - a.min() if a.size and a.ndim else abs(a)  # in the same order: some are sorted
    return np.rint(a * 30).clip(0, 120).astype(dtype)


def outcome(op, arrays, params):
    """The results of a call, or None if it raises."""
    try:
        y = op.eager(*arrays, **params)
    except Exception:
        return None
    return [np.asarray(r) for r in (y if isinstance(y, tuple) else (y,))]


@pytest.mark.thin(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_a_float_of_small_integers_is_that_of_equal_floats(name):
    op = OPS[name]
    for arrays, params in list(op.samples(np.random.default_rng(0)))[:3]:
        if any(isinstance(a, np.ndarray) and a.size > 5000 for a in arrays):
            continue
        floats = [as_integers(a, np.float64) for a in arrays]
        expected = outcome(op, floats, params)
        for dtype in ("u1", "u4", "i1"):
            actual = outcome(op, [as_integers(a, dtype) for a in arrays], params)
            for a, b in zip(actual or [], expected or [], strict=False):
                if a.dtype.kind in "fc":
                    np.testing.assert_allclose(a, b, 1e-6, 1e-6, err_msg=f"{dtype} {params}")


@pytest.mark.parametrize("how", [lambda f: f, gg.function, gg.vmap])
@pytest.mark.parametrize("f", [gg.l1_loss, gg.huber_loss, gg.mse_loss, gg.cdist])
def test_integers_do_not_wrap_in_a_trace_either(f, how):
    x, y = np.array([[[3, 200]], [[5, 7]]], "u1"), np.array([[[5, 100]], [[9, 1]]], "u1")
    expected = how(f)(gg.asarray(x.astype(float)), gg.asarray(y.astype(float)))
    np.testing.assert_allclose(how(f)(gg.asarray(x), gg.asarray(y)), expected, 1e-6)


@pytest.mark.parametrize("ends", [(-3.7, 3.9), (0.0, -5.5), (-1.0, 1.0)])
@pytest.mark.parametrize("how", [{}, {"endpoint": False}, {"dtype": "int64"}])
def test_linspace_of_tensors_has_numpys_roundings(ends, how):
    for num in (0, 1, 9, 50):
        expected = np.linspace(*ends, num, **how)
        tensors = [gg.asarray(np.array(v)) for v in ends]
        np.testing.assert_array_equal(gg.linspace(*tensors, num, **how), expected)
        plain = gg.linspace(*ends, num, **{"dtype": "float64", **how})
        np.testing.assert_array_equal(plain, expected)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i4", "u4"])
def test_a_derivative_of_a_polynomial_of_small_integers_has_numpys_dtype(dtype):
    p = np.array([100, 90, 80, 70, 60, 50], dtype)
    actual, expected = gg.polyder(gg.asarray(p)), np.polyder(p)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
