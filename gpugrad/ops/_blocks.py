"""NumPy formulas of several passes, run on blocks that stay in the cache."""

import numpy as np

BLOCK = 2**16
"""Elements per block."""


def in_blocks(formula, x):
    """``formula(x)`` of one-dimensional parts of an array, which returns arrays of their size."""
    flat = x.reshape(-1)
    if flat.size <= BLOCK:
        return formula(flat).reshape(x.shape)
    out = np.empty_like(flat)
    for i in range(0, flat.size, BLOCK):
        out[i : i + BLOCK] = formula(flat[i : i + BLOCK])
    return out.reshape(x.shape)
