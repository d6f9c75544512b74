"""What several tests compare arrays with."""

import numpy as np


def same(a, b):
    """Assert that values are equal, to the bit but for the sign of 0."""
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def near(a, b, tolerance=1e-12):
    """Assert that values are equal up to rounding."""
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)
