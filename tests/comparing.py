"""Comparisons of arrays, and of ops' kernels with their formulas."""

import ml_dtypes
import numpy as np

import gpugrad as gg
from gpugrad.core.backend import NUMPY
from gpugrad.kernels.cpu import compiler
from gpugrad.testing.cuda import shim

DTYPES = {
    "float64": (np.dtype("float64"), 1e-12),
    "float32": (np.dtype("float32"), 2e-5),
    "float16": (np.dtype("float16"), 4e-3),
    "bfloat16": (np.dtype(ml_dtypes.bfloat16), 3e-2),
}
"""By name: a dtype, and the tolerance of its kernels relative to the formula."""


def same(a, b):
    """Assert that values are bitwise equal except for the sign of 0."""
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def near(a, b, tolerance=1e-12):
    """Assert that values are equal up to rounding."""
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def same_unless_compiled(a, b, tolerance=1e-12):
    """`same`; with GPUGRAD_CPU_KERNELS=always `near`, since C rounds otherwise than NumPy."""
    if compiler.setting() == "always":
        near(a, b, tolerance)
    else:
        same(a, b)


def value(g):
    """A gradient as plain Python: None, a number or nested lists."""
    if g is None:
        return None
    return (g.to_dense() if isinstance(g, gg.IndexedSlices) else g).tolist()


def near_largest(actual, desired, tolerance, about=""):
    """Assert that values are equal up to rounding relative to the largest element, as in sums."""
    actual, desired = (np.asarray(x).astype(np.float64) for x in (actual, desired))
    assert actual.shape == desired.shape, about
    atol = tolerance * max(1.0, np.abs(desired[np.isfinite(desired)]).max(initial=0))
    np.testing.assert_allclose(actual, desired, rtol=tolerance, atol=atol, err_msg=about)


def by_kernel(name, *arrays, schedule="round robin", **params):
    """Results of an op by its kernel, run on the CPU by the shim."""
    with shim.running(schedule):
        results = gg.OPS[name].cuda(NUMPY, *arrays, **params)
    assert results is not NotImplemented
    return results if isinstance(results, tuple) else (results,)


def by_formula(name, *arrays, **params):
    """Results of an op in float64, on the values of the narrow arrays."""
    wide = [a.astype(np.float64) if a.dtype.kind in "fV" else a for a in arrays]
    with np.errstate(all="ignore"):
        results = gg.OPS[name].bare(NUMPY)(*wide, **params)
    return results if isinstance(results, tuple) else (results,)


def compare(name, dtype, *arrays, schedule="round robin", **params):
    """Results of an op by its kernel, checked against those of its formula."""
    results = by_kernel(name, *arrays, schedule=schedule, **params)
    for k, (a, d) in enumerate(zip(results, by_formula(name, *arrays, **params), strict=True)):
        near_largest(a, d, DTYPES[dtype][1], f"result {k}")
    return results
