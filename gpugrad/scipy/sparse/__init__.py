"""SciPy's ``sparse`` on Tensors: arrays of differentiable entries at the places of a fixed pattern.

The data is a Tensor or a Variable on either device. Gradients live on the pattern: nothing has the
size of the full array. `linalg` solves systems and differentiates the solutions.

>>> data = gg.constant([2.0, 4.0])
>>> def energy(data):
...     a = gg.scipy.sparse.csr_array((data, ([0, 1], [0, 1])), shape=(2, 2))
...     return gg.sum(gg.scipy.sparse.linalg.spsolve(a, gg.ones(2)))
>>> print(gg.grad(energy)(data))
[-0.25   -0.0625]
"""

from __future__ import annotations

from scipy.sparse import SparseEfficiencyWarning, SparseWarning

from gpugrad.scipy.sparse import csgraph, linalg
from gpugrad.scipy.sparse.arrays import (
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    dia_array,
    dia_matrix,
    sparray,
    spmatrix,
)
from gpugrad.scipy.sparse.construct import (
    block_array,
    block_diag,
    bmat,
    diags,
    diags_array,
    eye,
    eye_array,
    find,
    hstack,
    identity,
    issparse,
    isspmatrix,
    isspmatrix_coo,
    isspmatrix_csc,
    isspmatrix_csr,
    isspmatrix_dia,
    kron,
    kronsum,
    load_npz,
    permute_dims,
    rand,
    random,
    random_array,
    save_npz,
    spdiags,
    swapaxes,
    tril,
    triu,
    vstack,
)

__all__ = [
    "SparseEfficiencyWarning",
    "SparseWarning",
    "block_array",
    "block_diag",
    "bmat",
    "coo_array",
    "coo_matrix",
    "csc_array",
    "csc_matrix",
    "csgraph",
    "csr_array",
    "csr_matrix",
    "dia_array",
    "dia_matrix",
    "diags",
    "diags_array",
    "eye",
    "eye_array",
    "find",
    "hstack",
    "identity",
    "issparse",
    "isspmatrix",
    "isspmatrix_coo",
    "isspmatrix_csc",
    "isspmatrix_csr",
    "isspmatrix_dia",
    "kron",
    "kronsum",
    "linalg",
    "load_npz",
    "permute_dims",
    "rand",
    "random",
    "random_array",
    "save_npz",
    "sparray",
    "spdiags",
    "spmatrix",
    "swapaxes",
    "tril",
    "triu",
    "vstack",
]
