"""Sparse arrays from others, and from diagonals: stacks, blocks, triangles and products.

Each function computes the pattern with SciPy's function of its name, over positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.backend import as_dtype
from gpugrad.core.tensor import Tensor
from gpugrad.errors import DTypeError
from gpugrad.numpy.creation import asarray
from gpugrad.numpy.random import seeded_rng
from gpugrad.scipy.sparse.arithmetic import Sparse
from gpugrad.scipy.sparse.arrays import csr_array, dia_matrix
from gpugrad.scipy.sparse.pattern import SCIPY, Pattern, on
from gpugrad.scipy.sparse.structure import CLASSES


def issparse(x: Any) -> bool:
    """Whether `x` is a sparse array of gpugrad's or SciPy's.

    >>> gg.scipy.sparse.issparse(gg.scipy.sparse.eye_array(2)), gg.scipy.sparse.issparse(gg.ones(2))
    (True, False)
    """
    return isinstance(x, Sparse) or SCIPY.issparse(x)


def isspmatrix(x: Any) -> bool:
    """Whether `x` is a sparse matrix, not an array, of gpugrad's or SciPy's.

    >>> gg.scipy.sparse.isspmatrix(gg.scipy.sparse.eye(2))
    True
    """
    return not x.is_array if isinstance(x, Sparse) else SCIPY.isspmatrix(x)


def _of_format(name: str) -> Callable[[Any], bool]:
    def check(x: Any) -> bool:
        return isspmatrix(x) and x.format == name

    check.__name__ = check.__qualname__ = f"isspmatrix_{name}"
    check.__doc__ = f"""Whether `x` is a sparse matrix, not an array, of the format in the name.

    >>> gg.scipy.sparse.{check.__name__}(gg.scipy.sparse.eye(2, format="{name}"))
    True
    """
    return check


isspmatrix_csr, isspmatrix_csc = _of_format("csr"), _of_format("csc")
isspmatrix_coo, isspmatrix_dia = _of_format("coo"), _of_format("dia")
isspmatrix_bsr, isspmatrix_lil = _of_format("bsr"), _of_format("lil")
isspmatrix_dok = _of_format("dok")
get_index_dtype = SCIPY.get_index_dtype


def safely_cast_index_arrays(A: Any, idx_dtype: Any = np.int32, msg: str = "") -> Any:
    """The index arrays of a sparse array in another dtype; ValueError if that cannot hold them.

    >>> places = gg.scipy.sparse.safely_cast_index_arrays(gg.scipy.sparse.csr_array([[0.0, 5.0]]))
    >>> [p.dtype.name for p in places]
    ['int32', 'int32']
    """
    return SCIPY.safely_cast_index_arrays(sparse(A).pattern.at, idx_dtype, msg)


def sparse(x: Any) -> Any:
    """`x` itself, or the sparse array of a dense one or of SciPy's."""
    return x if isinstance(x, Sparse) else csr_array(x)


def _joined(arrays: list[Any], build: Callable[[list[Any]], Any]) -> Any:
    """The array that SciPy builds of several, from positions in the data of all."""
    kind = np.result_type(*(a.dtype for a in arrays))
    data, patterns, start = [], [], 0
    for a in arrays:
        a = a.sum_of_places()
        at = a.pattern.at.copy()
        at.data = at.data + start
        start += at.data.size
        patterns.append(at)
        data.append(xp.ravel(xp.astype(a.data, kind)))
    whole = csr_array._made(xp.concat(data), arrays[0].pattern)
    return whole._moved(build(patterns))


def _cast(a: Any, dtype: Any) -> Any:
    return a if dtype is None else a.astype(dtype)


def _stacked(build: Any, blocks: Any, format: str | None, dtype: Any) -> Any:
    joined = _joined([sparse(b) for b in blocks], lambda ats: build(ats, format=format))
    return _cast(joined, dtype)


def hstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Sparse arrays beside each other, as SciPy's `hstack`.

    >>> a = gg.scipy.sparse.eye_array(2)
    >>> gg.scipy.sparse.hstack([a, a]).shape
    (2, 4)
    """
    return _stacked(SCIPY.hstack, blocks, format, dtype)


def vstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Sparse arrays below each other, as SciPy's `vstack`.

    >>> a = gg.scipy.sparse.eye_array(2)
    >>> gg.scipy.sparse.vstack([a, a]).shape
    (4, 2)
    """
    return _stacked(SCIPY.vstack, blocks, format, dtype)


def block_array(blocks: Any, *, format: str | None = None, dtype: Any = None) -> Any:
    """An array of blocks in rows and columns, where None is a block of zeros.

    >>> a = gg.scipy.sparse.eye_array(2)
    >>> gg.scipy.sparse.block_array([[a, None], [None, a]]).shape
    (4, 4)
    """
    return _blocks(SCIPY.block_array, blocks, format, dtype)


def bmat(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """`block_array`, which returns a matrix if all blocks are matrices.

    >>> a = gg.scipy.sparse.eye(2)
    >>> gg.scipy.sparse.bmat([[a, None], [None, a]]).shape
    (4, 4)
    """
    return _blocks(SCIPY.bmat, blocks, format, dtype)


def _blocks(build: Any, blocks: Any, format: str | None, dtype: Any) -> Any:
    rows = [[None if b is None else sparse(b) for b in row] for row in blocks]
    arrays = [b for row in rows for b in row if b is not None]
    if not arrays:
        raise DTypeError("block_array: no block is an array.")

    def built(ats: list[Any]) -> Any:
        rest = iter(ats)
        grid = [[None if b is None else next(rest) for b in row] for row in rows]
        return build(grid, format=format)

    return _cast(_joined(arrays, built), dtype)


def block_diag(mats: Any, format: str | None = None, dtype: Any = None) -> Any:
    """An array of blocks along its diagonal.

    >>> a = gg.scipy.sparse.eye_array(2)
    >>> gg.scipy.sparse.block_diag([a, a]).nnz
    4
    """
    arrays = [sparse(b) for b in mats]
    return _cast(_joined(arrays, lambda ats: SCIPY.block_diag(ats, format=format)), dtype)


def kron(A: Any, B: Any, format: str | None = None) -> Any:
    """Kronecker product of two sparse arrays.

    >>> a = gg.scipy.sparse.eye_array(2)
    >>> gg.scipy.sparse.kron(a, [[1.0, 2.0]]).shape
    (2, 4)
    """
    a, b = (sparse(x).sum_of_places().tocoo() for x in (A, B))
    if not a.nnz or not b.nnz:  # of float64, whatever theirs is, as SciPy's
        return _constant(SCIPY.kron(a.pattern.at, b.pattern.at), format, a.device).astype(float)
    left = a._moved(SCIPY.kron(a.pattern.at, b.pattern.ones, format="coo"))
    right = b._moved(SCIPY.kron(a.pattern.ones, b.pattern.at, format="coo"))
    return left.with_data(left.data * right.data).asformat(format)


def kronsum(A: Any, B: Any, format: str | None = None) -> Any:
    """Kronecker sum of two square sparse arrays: kron(I, A) + kron(B, I).

    >>> a = gg.scipy.sparse.diags_array([[1.0, 2.0]], offsets=[0])
    >>> print(gg.scipy.sparse.kronsum(a, a).diagonal())
    [2. 3. 3. 4.]
    """
    a, b = sparse(A), sparse(B)
    if any(x.ndim != 2 or x.shape[0] != x.shape[1] for x in (a, b)):
        raise ValueError(f"kronsum: A {a.shape} and B {b.shape} must be square.")
    total = kron(eye_array(b.shape[0], dtype=a.dtype), a) + kron(
        b, eye_array(a.shape[0], dtype=b.dtype)
    )
    return total.asformat(format)


def tril(A: Any, k: int = 0, format: str | None = None) -> Any:
    """The entries on and below a diagonal.

    >>> print(gg.scipy.sparse.tril(gg.scipy.sparse.csr_array([[1.0, 2.0], [3.0, 4.0]])).toarray())
    [[1. 0.]
     [3. 4.]]
    """
    a = sparse(A)
    return a._moved(SCIPY.tril(a.pattern.at, k, format=format or a.format))


def triu(A: Any, k: int = 0, format: str | None = None) -> Any:
    """The entries on and above a diagonal.

    >>> print(gg.scipy.sparse.triu(gg.scipy.sparse.csr_array([[1.0, 2.0], [3.0, 4.0]])).toarray())
    [[1. 2.]
     [0. 4.]]
    """
    a = sparse(A)
    return a._moved(SCIPY.triu(a.pattern.at, k, format=format or a.format))


def find(A: Any) -> tuple[Any, Any, Tensor]:
    """Rows, columns and values of the elements other than 0; the values are differentiable.

    >>> rows, columns, values = gg.scipy.sparse.find(gg.scipy.sparse.csr_array([[0.0, 5.0]]))
    >>> print(rows, columns, values)
    [0] [1] [5.]
    """
    coo = sparse(A).tocsr().tocoo()
    coo.eliminate_zeros()
    return coo.row, coo.col, coo.data


def _diagonals(diagonals: Any, offsets: Any) -> tuple[list[Tensor], list[int]]:
    offsets = [int(k) for k in np.atleast_1d(np.asarray(offsets))]
    first = diagonals[0] if isinstance(diagonals, (list, tuple)) and len(diagonals) else diagonals
    # a Tensor has its own: np.ndim would ask for its values
    depth = first.ndim if isinstance(first, Tensor) else np.ndim(first)
    if len(offsets) == 1 and depth + (first is not diagonals) < 2:
        diagonals = [diagonals]
    rows = [d if isinstance(d, Tensor) else asarray(d) for d in diagonals]
    rows = [xp.reshape(d, (1,)) if d.ndim == 0 else d for d in rows]
    return rows, offsets


def diags_array(
    diagonals: Any,
    /,
    *,
    offsets: Any = 0,
    shape: Any = None,
    format: str | None = None,
    dtype: Any = None,
) -> Any:
    """A sparse array of diagonals, each of its own length or one number; differentiable by them.

    >>> print(gg.scipy.sparse.diags_array([[1.0, 2.0], [5.0]], offsets=[0, 1]).toarray())
    [[1. 5.]
     [0. 2.]]
    """
    return _diags(SCIPY.diags_array, diagonals, offsets, shape, format, dtype)


def diags(
    diagonals: Any,
    offsets: Any = 0,
    shape: Any = None,
    format: str | None = None,
    dtype: Any = None,
) -> Any:
    """`diags_array`, which returns a matrix.

    >>> print(gg.scipy.sparse.diags([1.0, 2.0], 1).toarray())
    [[0. 1. 0.]
     [0. 0. 2.]
     [0. 0. 0.]]
    """
    matrix = lambda d, **how: SCIPY.dia_matrix(SCIPY.diags_array(d, **how))  # noqa: E731
    return _diags(matrix, diagonals, offsets, shape, format, dtype)


def _diags(build: Any, diagonals: Any, offsets: Any, shape: Any, format: Any, dtype: Any) -> Any:
    rows, offsets = _diagonals(diagonals, offsets)
    ones = [np.ones(d.size, np.int8) for d in rows]
    at = build(ones, offsets=offsets, shape=shape, dtype=np.int8).astype(np.int64)
    (m, n), width = at.shape, at.data.shape[1]
    kind, parts = np.result_type(*(d.dtype for d in rows)), []
    for d, k in zip(rows, offsets, strict=True):
        start, length = max(k, 0), min(m + k, n - k, m, n)
        d = d if d.dtype == kind else xp.astype(d, kind)
        d = d if d.size == length else xp.broadcast_to(d, (length,))
        ends = [on(np.zeros(size, kind), d.device) for size in (start, width - start - length)]
        parts += [ends[0], d, ends[1]]
    data = xp.reshape(xp.concat(parts), at.data.shape)
    whole = CLASSES["dia", isinstance(at, SCIPY.sparray)]._made(data, Pattern(at))
    return _cast(whole.asformat(format), dtype)


def permute_dims(A: Any, axes: Any = None, copy: bool = False) -> Any:
    """The array with its axes in another order; their reverse if None.

    >>> print(gg.scipy.sparse.permute_dims(gg.scipy.sparse.coo_array([[1.0, 2.0]])).toarray())
    [[1.]
     [2.]]
    """
    return sparse(A).transpose(axes)


def swapaxes(A: Any, axis1: int, axis2: int) -> Any:
    """The array with two of its axes exchanged.

    >>> gg.scipy.sparse.swapaxes(gg.scipy.sparse.coo_array([[1.0, 2.0]]), 0, 1).shape
    (2, 1)
    """
    a = sparse(A)
    axes = np.arange(a.ndim)
    axes[[axis1, axis2]] = axes[[axis2, axis1]]
    return a if axes[axis1] == axis1 else a.transpose(axes)


def expand_dims(A: Any, /, *, axis: int = 0) -> Any:
    """A COO array with one more axis of length 1.

    >>> gg.scipy.sparse.expand_dims(gg.scipy.sparse.coo_array([1.0, 0.0, 2.0])).shape
    (1, 3)
    """
    return sparse(A)._moved(SCIPY.expand_dims(sparse(A).pattern.entries, axis=axis))


def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: Any = None) -> Any:
    """A sparse matrix of the rows of `data`, each along the diagonal that `diags` tells.

    >>> print(gg.scipy.sparse.spdiags([[1.0, 2.0], [0.0, 5.0]], [0, 1], 2, 2).toarray())
    [[1. 5.]
     [0. 2.]]
    """
    shape = m if n is None else (m, n)
    return dia_matrix((data, diags), shape=shape).asformat(format)


def of_scipy(x: Any, device: Any = None) -> Any:
    """SciPy's sparse array or matrix as one of gpugrad's."""
    return CLASSES[x.format, isinstance(x, SCIPY.sparray)](x, device=device)


def _constant(at: Any, format: Any, device: Any) -> Any:
    return of_scipy(at, device).asformat(format)


def eye_array(
    m: int,
    n: int | None = None,
    *,
    k: int = 0,
    dtype: Any = float,
    format: str | None = None,
    device: Any = None,
) -> Any:
    """A sparse array with ones on a diagonal.

    >>> print(gg.scipy.sparse.eye_array(2, k=1).toarray())
    [[0. 1.]
     [0. 0.]]
    """
    at = SCIPY.eye_array(m, n, k=k, dtype=as_dtype(dtype))
    return _constant(at, format or "dia", device)


def eye(
    m: int,
    n: int | None = None,
    k: int = 0,
    dtype: Any = float,
    format: str | None = None,
    device: Any = None,
) -> Any:
    """A sparse matrix with ones on a diagonal.

    >>> print(gg.scipy.sparse.eye(2) * gg.constant([2.0, 3.0]))  # a matrix product
    [2. 3.]
    """
    return _constant(SCIPY.eye(m, n, k, as_dtype(dtype)), format or "dia", device)


def identity(n: int, dtype: Any = "d", format: str | None = None, device: Any = None) -> Any:
    """The identity as a sparse matrix.

    >>> print(gg.scipy.sparse.identity(2).toarray())
    [[1. 0.]
     [0. 1.]]
    """
    return eye(n, dtype=dtype, format=format, device=device)


def random_array(
    shape: Any, *, density: float = 0.01, format: str = "coo", dtype: Any = None, rng: Any = None
) -> Any:
    """A sparse array with random entries at random places, drawn by SciPy.

    Without `rng`, `gg.set_seed` repeats them; in a `gg.function` it is needed.

    >>> a = gg.scipy.sparse.random_array((4, 5), density=0.25, rng=np.random.default_rng(0))
    >>> a.shape, a.nnz
    ((4, 5), 5)
    """
    rng = seeded_rng() if rng is None else rng
    return _constant(SCIPY.random_array(shape, density=density, dtype=dtype, rng=rng), format, None)


def random(
    m: int,
    n: int,
    density: float = 0.01,
    format: str = "coo",
    dtype: Any = None,
    rng: Any = None,
    data_rvs: Any = None,
    *,
    random_state: Any = None,
) -> Any:
    """A sparse matrix with random entries at random places, drawn as by `random_array`.

    Args:
        data_rvs: ``data_rvs(count)`` draws the entries; by default they are from 0 to 1.
        random_state: SciPy's older name of `rng`.

    >>> gg.scipy.sparse.random(4, 5, density=0.25, rng=np.random.default_rng(0)).nnz
    5
    """
    rng = random_state if rng is None else rng
    rng = seeded_rng() if rng is None else rng
    draw = data_rvs and (lambda count: np.asarray(data_rvs(count)))
    drawn = SCIPY.random(m, n, density, dtype=dtype, rng=rng, data_rvs=draw)
    return _constant(drawn, format, None)


rand = random


def save_npz(file: Any, matrix: Any, compressed: bool = True) -> None:
    """Save a sparse array's values, as SciPy's function of that name.

    >>> import io
    >>> file = io.BytesIO()
    >>> gg.scipy.sparse.save_npz(file, gg.scipy.sparse.csr_array([[0.0, 5.0]]))
    >>> start = file.seek(0)
    >>> print(gg.scipy.sparse.load_npz(file).toarray())
    [[0. 5.]]
    """
    SCIPY.save_npz(file, sparse(matrix).on_host(), compressed)


def load_npz(file: Any, device: Any = None) -> Any:
    """The sparse array that `save_npz` has written.

    >>> import io
    >>> file = io.BytesIO()
    >>> gg.scipy.sparse.save_npz(file, gg.scipy.sparse.csr_array([[0.0, 5.0]]))
    >>> start = file.seek(0)
    >>> gg.scipy.sparse.load_npz(file).format
    'csr'
    """
    return of_scipy(SCIPY.load_npz(file), device)
