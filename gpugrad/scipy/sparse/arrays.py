"""The public classes of sparse arrays and matrices: formats, and what only some of these have."""

from __future__ import annotations

from typing import Any

from gpugrad.core.tensor import Tensor
from gpugrad.scipy.sparse.arithmetic import Sparse


class _Arrays(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Sparse) and x.is_array


class sparray(metaclass=_Arrays):
    """Whatever is a sparse array, not a matrix, for `isinstance`.

    >>> isinstance(gg.scipy.sparse.eye_array(2), gg.scipy.sparse.sparray)
    True
    """


class csr_array(Sparse):
    """Sparse array in compressed rows; arguments as `Sparse`.

    >>> data = gg.constant([2.0, 4.0])
    >>> a = gg.scipy.sparse.csr_array((data, ([0, 1], [1, 0])), shape=(2, 2))
    >>> print(a @ gg.constant([1.0, 10.0]))
    [20.  4.]
    """

    format = "csr"


class csc_array(Sparse):
    """Sparse array in compressed columns; arguments as `Sparse`.

    >>> a = gg.scipy.sparse.csc_array([[0.0, 5.0], [3.0, 0.0]])
    >>> print(a.data, a.indices)
    [3. 5.] [1 0]
    """

    format = "csc"


class coo_array(Sparse):
    """Sparse array of entries with their rows and columns; arguments as `Sparse`.

    >>> a = gg.scipy.sparse.coo_array((gg.constant([5.0, 1.0]), ([0, 0], [1, 1])), shape=(1, 2))
    >>> print(a.toarray())
    [[0. 6.]]
    """

    format = "coo"


class dia_array(Sparse):
    """Sparse array of diagonals; arguments as `Sparse`.

    >>> a = gg.scipy.sparse.dia_array(([[1.0, 2.0]], [0]), shape=(2, 2))
    >>> print(a.toarray())
    [[1. 0.]
     [0. 2.]]
    """

    format = "dia"


class bsr_array(Sparse):
    """Sparse array of dense blocks, in compressed rows of these; arguments as `Sparse`.

    `arg1` may be ``(data, indices, indptr)`` with data of shape (blocks, r, c). `blocksize` is
    the shape (r, c), or None for one that fits.

    >>> a = gg.scipy.sparse.bsr_array(np.kron(np.eye(2), np.ones((2, 2))), blocksize=(2, 2))
    >>> a.data.shape, a.blocksize
    ((2, 2, 2), (2, 2))
    """

    format = "bsr"

    def __init__(
        self,
        arg1: Any,
        shape: Any = None,
        dtype: Any = None,
        copy: bool = False,
        blocksize: Any = None,
        *,
        device: Any = None,
    ) -> None:
        settings = {} if blocksize is None else {"blocksize": tuple(blocksize)}
        super().__init__(arg1, shape, dtype, copy, device=device, **settings)

    @property
    def blocksize(self) -> tuple[int, int]:
        """The shape of a block."""
        rows, columns = self.pattern.at.blocksize
        return int(rows), int(columns)


class lil_array(Sparse):
    """Sparse array to which entries are written one by one; arguments as `Sparse`.

    Its pattern is that of a CSR array, in which a new entry takes time in proportion to all.

    >>> a = gg.scipy.sparse.lil_array((2, 2))
    >>> a[0, 1] = 5.0
    >>> print(a.toarray())
    [[0. 5.]
     [0. 0.]]
    """

    format = "lil"


class dok_array(Sparse):
    """Sparse array as a dict of its entries, by (row, column); arguments as `Sparse`.

    Its pattern is that of a CSR array, in which a new entry takes time in proportion to all.

    >>> a = gg.scipy.sparse.dok_array((2, 2))
    >>> a[0, 1] = 5.0
    >>> list(a.keys()), (0, 0) in a, a.get((0, 0), -1.0)
    ([(0, 1)], False, -1.0)
    """

    format = "dok"

    def __len__(self) -> int:
        return self.nnz

    def keys(self) -> Any:
        """The places of the entries, tuples of ints."""
        coords = (c.tolist() for c in self.pattern.entries.coords)
        return dict.fromkeys(zip(*coords, strict=True)).keys()

    __iter__ = lambda self: iter(self.keys())  # noqa: E731
    __contains__ = lambda self, key: key in self.keys()  # noqa: E731

    def values(self) -> list[Tensor]:
        """The entries as Tensors of shape ()."""
        return list(self._entries())

    def items(self) -> Any:
        """Pairs of places and entries."""
        return zip(self.keys(), self.values(), strict=True)

    def get(self, key: Any, default: Any = 0.0) -> Any:  # type: ignore[override]  # a dict's
        """The entry at a place, or `default` if there is none."""
        return self[key] if key in self.keys() else default


class spmatrix(Sparse):
    """The base class of matrices, for `isinstance`.

    >>> isinstance(gg.scipy.sparse.eye(2), gg.scipy.sparse.spmatrix)
    True
    """

    is_array = False

    def getformat(self) -> str:
        """The format."""
        return self.format

    def get_shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape

    def getH(self) -> Any:
        """Conjugate transpose."""
        return self.conj().T

    def asfptype(self) -> Any:
        """The matrix with floating-point entries."""
        return self if self.dtype.kind in "fc" else self.astype("float64")


class csr_matrix(spmatrix, csr_array):
    """`csr_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power.

    >>> a = gg.scipy.sparse.csr_matrix([[0.0, 5.0], [1.0, 0.0]])
    >>> print((a**2).toarray())
    [[5. 0.]
     [0. 5.]]
    """

    is_array = False


class csc_matrix(spmatrix, csc_array):
    """`csc_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power.

    >>> a = gg.scipy.sparse.csc_matrix([[0.0, 5.0], [1.0, 0.0]])
    >>> print((a**2).toarray())
    [[5. 0.]
     [0. 5.]]
    """

    is_array = False


class coo_matrix(spmatrix, coo_array):
    """`coo_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power.

    >>> a = gg.scipy.sparse.coo_matrix([[0.0, 5.0], [1.0, 0.0]])
    >>> print((a**2).toarray())
    [[5. 0.]
     [0. 5.]]
    """

    is_array = False


class dia_matrix(spmatrix, dia_array):
    """`dia_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power.

    >>> a = gg.scipy.sparse.dia_matrix([[0.0, 5.0], [1.0, 0.0]])
    >>> print((a**2).toarray())
    [[5. 0.]
     [0. 5.]]
    """

    is_array = False


class bsr_matrix(spmatrix, bsr_array):
    """`bsr_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power.

    >>> a = gg.scipy.sparse.bsr_matrix([[0.0, 5.0], [1.0, 0.0]])
    >>> print((a**2).toarray())
    [[5. 0.]
     [0. 5.]]
    """

    is_array = False


class lil_matrix(spmatrix, lil_array):
    """`lil_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power.

    >>> a = gg.scipy.sparse.lil_matrix([[0.0, 5.0], [1.0, 0.0]])
    >>> print((a**2).toarray())
    [[5. 0.]
     [0. 5.]]
    """

    is_array = False


class dok_matrix(spmatrix, dok_array):
    """`dok_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power.

    >>> a = gg.scipy.sparse.dok_matrix([[0.0, 5.0], [1.0, 0.0]])
    >>> print((a**2).toarray())
    [[5. 0.]
     [0. 5.]]
    """

    is_array = False
