"""What several tests compare arrays with."""

import ml_dtypes
import numpy as np

DTYPES = {
    "float64": (np.dtype("float64"), 1e-12),
    "float32": (np.dtype("float32"), 2e-5),
    "float16": (np.dtype("float16"), 4e-3),
    "bfloat16": (np.dtype(ml_dtypes.bfloat16), 3e-2),
}
"""By name: a dtype of kernels, and how near they come to the formula."""


def same(a, b):
    """Assert that values are equal, to the bit but for the sign of 0."""
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def near(a, b, tolerance=1e-12):
    """Assert that values are equal up to rounding."""
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)
