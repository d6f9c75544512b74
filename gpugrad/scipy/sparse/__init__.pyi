# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import DTypeLike, DeviceLike
from typing import Any
from gpugrad.scipy.sparse import csgraph as csgraph
from gpugrad.scipy.sparse import linalg as linalg
from gpugrad.scipy.sparse.arrays import bsr_array as bsr_array
from gpugrad.scipy.sparse.arrays import bsr_matrix as bsr_matrix
from gpugrad.scipy.sparse.arrays import coo_array as coo_array
from gpugrad.scipy.sparse.arrays import coo_matrix as coo_matrix
from gpugrad.scipy.sparse.arrays import csc_array as csc_array
from gpugrad.scipy.sparse.arrays import csc_matrix as csc_matrix
from gpugrad.scipy.sparse.arrays import csr_array as csr_array
from gpugrad.scipy.sparse.arrays import csr_matrix as csr_matrix
from gpugrad.scipy.sparse.arrays import dia_array as dia_array
from gpugrad.scipy.sparse.arrays import dia_matrix as dia_matrix
from gpugrad.scipy.sparse.arrays import dok_array as dok_array
from gpugrad.scipy.sparse.arrays import dok_matrix as dok_matrix
from gpugrad.scipy.sparse.arrays import lil_array as lil_array
from gpugrad.scipy.sparse.arrays import lil_matrix as lil_matrix
from gpugrad.scipy.sparse.arrays import sparray as sparray
from gpugrad.scipy.sparse.arrays import spmatrix as spmatrix
from scipy.sparse._base import SparseEfficiencyWarning as SparseEfficiencyWarning
from scipy.sparse._base import SparseWarning as SparseWarning

__all__: list[str]

def block_array(blocks: Any, *, format: str | None = None, dtype: DTypeLike = None) -> Any:
    """An array of blocks in rows and columns, where None is a block of zeros."""

def block_diag(mats: Any, format: str | None = None, dtype: DTypeLike = None) -> Any:
    """An array of blocks along its diagonal."""

def bmat(blocks: Any, format: str | None = None, dtype: DTypeLike = None) -> Any:
    """`block_array`, which returns a matrix if all blocks are matrices."""

def diags(
    diagonals: Any,
    offsets: Any = 0,
    shape: Any = None,
    format: str | None = None,
    dtype: DTypeLike = None,
) -> Any:
    """`diags_array`, which returns a matrix."""

def diags_array(
    diagonals: Any,
    /,
    *,
    offsets: Any = 0,
    shape: Any = None,
    format: str | None = None,
    dtype: DTypeLike = None,
) -> Any:
    """A sparse array of diagonals, each of its own length or one number; differentiable by them."""

def expand_dims(A: Any, /, *, axis: int = 0) -> Any:
    """A COO array with one more axis of length 1."""

def eye(
    m: int,
    n: int | None = None,
    k: int = 0,
    dtype: DTypeLike = ...,
    format: str | None = None,
    device: DeviceLike = None,
) -> Any:
    """A sparse matrix with ones on a diagonal."""

def eye_array(
    m: int,
    n: int | None = None,
    *,
    k: int = 0,
    dtype: DTypeLike = ...,
    format: str | None = None,
    device: DeviceLike = None,
) -> Any:
    """A sparse array with ones on a diagonal."""

def find(A: Any) -> tuple[Any, Any, Tensor]:
    """Rows, columns and values of the elements other than 0; the values are differentiable."""

def get_index_dtype(arrays: Any = (), maxval: Any = None, check_contents: bool = False) -> Any:
    """Based on input (integer) arrays `a`, determine a suitable index data type that can hold
    the data in the arrays.
    """

def hstack(blocks: Any, format: str | None = None, dtype: DTypeLike = None) -> Any:
    """Sparse arrays beside each other, as SciPy's `hstack`."""

def identity(
    n: int, dtype: DTypeLike = "d", format: str | None = None, device: DeviceLike = None
) -> Any:
    """The identity as a sparse matrix."""

def issparse(x: Any) -> bool:
    """Whether `x` is a sparse array of gpugrad's or SciPy's."""

def isspmatrix(x: Any) -> bool:
    """Whether `x` is a sparse matrix, not an array, of gpugrad's or SciPy's."""

def isspmatrix_bsr(x: Any) -> bool:
    """Whether `x` is a sparse matrix, not an array, of the format in the name."""

def isspmatrix_coo(x: Any) -> bool:
    """Whether `x` is a sparse matrix, not an array, of the format in the name."""

def isspmatrix_csc(x: Any) -> bool:
    """Whether `x` is a sparse matrix, not an array, of the format in the name."""

def isspmatrix_csr(x: Any) -> bool:
    """Whether `x` is a sparse matrix, not an array, of the format in the name."""

def isspmatrix_dia(x: Any) -> bool:
    """Whether `x` is a sparse matrix, not an array, of the format in the name."""

def isspmatrix_dok(x: Any) -> bool:
    """Whether `x` is a sparse matrix, not an array, of the format in the name."""

def isspmatrix_lil(x: Any) -> bool:
    """Whether `x` is a sparse matrix, not an array, of the format in the name."""

def kron(A: Any, B: Any, format: str | None = None) -> Any:
    """Kronecker product of two sparse arrays."""

def kronsum(A: Any, B: Any, format: str | None = None) -> Any:
    """Kronecker sum of two square sparse arrays: kron(I, A) + kron(B, I)."""

def load_npz(file: Any, device: DeviceLike = None) -> Any:
    """The sparse array that `save_npz` has written."""

def permute_dims(A: Any, axes: Any = None, copy: bool = False) -> Any:
    """The array with its axes in another order; their reverse if None."""

def rand(
    m: int,
    n: int,
    density: float = 0.01,
    format: str = "coo",
    dtype: DTypeLike = None,
    rng: Any = None,
    data_rvs: Any = None,
    *,
    random_state: Any = None,
) -> Any:
    """A sparse matrix with random entries at random places, drawn as by `random_array`."""

def random(
    m: int,
    n: int,
    density: float = 0.01,
    format: str = "coo",
    dtype: DTypeLike = None,
    rng: Any = None,
    data_rvs: Any = None,
    *,
    random_state: Any = None,
) -> Any:
    """A sparse matrix with random entries at random places, drawn as by `random_array`."""

def random_array(
    shape: Any,
    *,
    density: float = 0.01,
    format: str = "coo",
    dtype: DTypeLike = None,
    rng: Any = None,
) -> Any:
    """A sparse array with random entries at random places, drawn by SciPy."""

def safely_cast_index_arrays(A: Any, idx_dtype: Any = ..., msg: str = "") -> Any:
    """The index arrays of a sparse array in another dtype; ValueError if that cannot hold them."""

def save_npz(file: Any, matrix: Any, compressed: bool = True) -> None:
    """Save a sparse array's values, as SciPy's function of that name."""

def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: Any = None) -> Any:
    """A sparse matrix of the rows of `data`, each along the diagonal that `diags` tells."""

def swapaxes(A: Any, axis1: int, axis2: int) -> Any:
    """The array with two of its axes exchanged."""

def tril(A: Any, k: int = 0, format: str | None = None) -> Any:
    """The entries on and below a diagonal."""

def triu(A: Any, k: int = 0, format: str | None = None) -> Any:
    """The entries on and above a diagonal."""

def vstack(blocks: Any, format: str | None = None, dtype: DTypeLike = None) -> Any:
    """Sparse arrays below each other, as SciPy's `vstack`."""
