"""Products of sparse matrices in CSR form, for `gpugrad.scipy.sparse`.

A matrix is its `data`, with the integers `indices` and `indptr` of SciPy's CSR form: the pattern.
Gradients by `data` are computed on the pattern alone: nothing has the size of the full matrix. The
product and the sampled outer product are each other's derivatives, so they suffice for any order.
"""

import math
import weakref
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.kernels.cpu.large import kernels
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate

# ---- patterns ----------------------------------------------------------------------------


def checked(name, data, indices, indptr, shape, *dense):
    """Raise unless the arrays are a matrix in CSR form that fits the dense arrays' rows."""
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise DTypeError(f"{name}: indices {indices.dtype} and indptr {indptr.dtype} not integers.")
    if data.ndim != 1 or data.shape != indices.shape or indptr.shape != (shape[0] + 1,):
        raise ShapeError(
            f"{name}: data {data.shape}, indices {indices.shape} and indptr {indptr.shape} are no "
            f"CSR matrix of shape {tuple(shape)}: (nnz,), (nnz,) and ({shape[0] + 1},) are."
        )
    if type(indices) is np.ndarray:
        _check_places(name, indices, indptr, shape)
    for x, rows in dense:
        if x.ndim not in (1, 2) or x.shape[0] != rows:
            raise ShapeError(
                f"{name}: {x.shape} beside a matrix of shape {tuple(shape)} is not ({rows},) or "
                f"({rows}, k)."
            )


_checked: dict[int, tuple[Any, ...]] = {}


def _check_places(name, indices, indptr, shape):
    """Raise if an entry lies outside of the matrix: SciPy's products would read other memory."""
    known = _checked.get(id(indices))
    if known and known[0]() is indices and known[1]() is indptr and known[2] == tuple(shape):
        return
    ends = indptr[0] == 0 and indptr[-1] == indices.size and bool((indptr[1:] >= indptr[:-1]).all())
    if not ends or (indices.size and not 0 <= indices.min() <= indices.max() < shape[1]):
        raise ArgumentError(f"{name}: an entry lies outside of a matrix of shape {tuple(shape)}.")
    key = id(indices)
    forget = weakref.ref(indices, lambda _: _checked.pop(key, None))
    _checked[key] = forget, weakref.ref(indptr), tuple(shape)


def _rows(lib, indices, indptr):
    """The row of each entry."""
    if lib is np:
        return np.repeat(np.arange(indptr.size - 1, dtype=indices.dtype), np.diff(indptr))
    return lib.searchsorted(indptr, lib.arange(indices.size), side="right") - 1


def csr(data, indices, indptr, shape):
    """SciPy's matrix of NumPy arrays."""
    return NUMPY.scipy("sparse").csr_array((data, indices, indptr), shape=shape)


def _blocks(xp, data, indices, indptr, shape, n):
    """The block-diagonal matrix of `n` examples, and its shape; what lacks a batch is repeated."""

    def each(x, axes):
        return xp.broadcast_to(x, (n, *x.shape[-axes:])) if x.ndim == axes else x

    data, indices, indptr = each(data, 1), each(indices, 1), each(indptr, 1)
    nnz = indices.shape[1]
    ones = xp.getitem(indptr, index=(slice(None), slice(1))) * 0 + 1
    count = xp.cumulative_sum(ones, axis=0) - 1
    starts = xp.getitem(indptr, index=(slice(None), slice(shape[0]))) + count * nnz
    indptr = xp.pad_constant(xp.reshape(starts, (-1,)), [(0, 1)], value=n * nnz)
    flat = (xp.reshape(x, (-1,)) for x in (data, indices + count * shape[1]))
    return (*flat, indptr), (n * shape[0], n * shape[1])


def _stacked(xp, x, is_batched, n):
    """The rows of all examples, one example's after the other's."""
    x = x if is_batched else xp.broadcast_to(x, (n, *x.shape))
    return xp.reshape(x, (n * x.shape[1], *x.shape[2:]))


def batch_of(name):
    """The vmap rule of an op of a matrix and right-hand sides: one call for all examples.

    An iterative method gets one matrix at a time: it ends by the norm of a whole residual.
    """

    def batch(xp, batched, data, indices, indptr, b, *, shape=None, adjoint=False, **how):
        call = getattr(xp, name)
        n = next(
            x.shape[0]
            for x, is_one in zip((data, indices, indptr, b), batched, strict=True)
            if is_one
        )
        if not any(batched[:3]):  # the examples are columns
            columns = xp.moveaxis(b, 0, -1)
            wide = xp.reshape(columns, (columns.shape[0], math.prod(columns.shape[1:])))
            out = call(data, indices, indptr, wide, shape=shape, adjoint=adjoint, **how)
            out = xp.reshape(out, (out.shape[0], *columns.shape[1:]))
            return xp.moveaxis(out, -1, 0)
        if how.get("method") not in (None, "lu", "triangular"):
            examples = []
            for i in range(n):
                given = zip((data, indices, indptr, b), batched, strict=True)
                one = [xp.getitem(x, index=(i,)) if is_one else x for x, is_one in given]
                examples.append(call(*one, shape=shape, adjoint=adjoint, **how))
            return xp.stack(examples, axis=0)
        arrays, shape = _blocks(xp, data, indices, indptr, shape, n)
        b = _stacked(xp, b, batched[3], n)
        out = call(*arrays, b, shape=shape, adjoint=adjoint, **how)
        return xp.reshape(out, (n, out.shape[0] // n, *out.shape[1:]))

    return batch


def example(rng, m, n, *dense, shift=0.0, **how):
    """A sample: a matrix with some entries, its diagonal among them, and dense arrays."""
    pattern = rng.uniform(size=(m, n)) < 0.5
    pattern |= np.eye(m, n, dtype=bool)
    rows, indices = pattern.nonzero()
    data = uniform(rng, len(rows), low=-1, high=1) + shift * (rows == indices)
    indptr = np.searchsorted(rows, np.arange(m + 1))
    return [data, indices, indptr, *(uniform(rng, *s) for s in dense)], {"shape": (m, n), **how}


def full(data, indices, indptr, shape, adjoint=False):
    """The full matrix, for references."""
    out = np.zeros(shape, data.dtype)
    np.add.at(out, (_rows(np, indices, indptr), indices), data)
    return out.conj().T if adjoint else out


TWO = [np.ones(2), np.array([0, 1]), np.array([0, 1, 2])]
OF_TWO = {"shape": (2, 2)}


def errors_of(name):
    """Calls that an op of a matrix and right-hand sides must refuse."""
    return [
        ([*TWO, np.ones(3)], OF_TWO, ShapeError, rf"{name}.*\(3,\).*\(2, 2\)"),
        ([np.ones(3), *TWO[1:], np.ones(2)], OF_TWO, ShapeError, r"\(3,\).*\(2,\)"),
        ([np.ones(2), np.ones(2), TWO[2], np.ones(2)], OF_TWO, DTypeError, "integers"),
    ]


# ---- products ----------------------------------------------------------------------------


def _matmul_data(xp, g, indices, indptr, b, adjoint):
    x, y = (b, g) if adjoint else (g, b)
    return xp.csr_sampled(x, conjugate(xp, y), indices, indptr)


def _matmul_b(xp, g, data, indices, indptr, shape, adjoint):
    return xp.csr_matmul(data, indices, indptr, g, shape=shape, adjoint=not adjoint)


def _matmul_samples(rng):
    yield example(rng, 3, 4, (4,))
    yield example(rng, 3, 2, (3, 2), adjoint=True)
    yield example(rng, 2, 3, (3, 2))
    yield example(rng, 0, 3, (0,), adjoint=True)
    yield example(rng, 2, 2, (2, 0))


@op(
    vjp=[_matmul_data, None, None, _matmul_b],
    linear="each",
    kinds="fci",
    batch=batch_of("csr_matmul"),
    ref=lambda data, indices, indptr, b, shape, adjoint=False: (
        full(data, indices, indptr, shape, adjoint) @ b
    ),
    samples=_matmul_samples,
    errors=errors_of("csr_matmul"),
    captures=False,
)
def csr_matmul(xp, data, indices, indptr, b, /, *, shape, adjoint=False):
    """Product of a sparse matrix in CSR form with a vector or a matrix.

    Args:
        data: array of shape (nnz,).
        indices: integers of shape (nnz,), the columns; without a derivative.
        indptr: integers of shape (m + 1,), where each row starts; without a derivative.
        b: array of shape (n,) or (n, k); (m,) or (m, k) for the adjoint.
        shape: (m, n).
        adjoint: whether to multiply by the conjugate transpose.

    Returns:
        Tensor of shape (m,) or (m, k); (n,) or (n, k) for the adjoint.

    >>> print(gg.csr_matmul([2.0, 3.0], [1, 0], [0, 1, 2], [1.0, 10.0], shape=(2, 2)))
    [20.  3.]
    """
    m, n = shape
    checked("csr_matmul", data, indices, indptr, shape, (b, m if adjoint else n))
    if xp is NUMPY:
        a = csr(data, indices, indptr, shape)
        a = a.T if adjoint else a
        return (a.conj() if adjoint and data.dtype.kind == "c" else a) @ b
    # cuSPARSE has no kernel for the adjoint that does not sort, and none is tested here
    rows, size = _rows(xp.lib, indices, indptr), (n if adjoint else m, *b.shape[1:])
    here, there = (rows, indices) if adjoint else (indices, rows)
    values = conjugate(xp, data) if adjoint else data
    terms = values.reshape(-1, *(1,) * (b.ndim - 1)) * b[here]
    return xp.scatter_rows(terms, there, shape=size)


def _sampled_x(xp, g, y, indices, indptr, x_shape):
    shape = x_shape[0], y.shape[0]
    return xp.csr_matmul(g, indices, indptr, conjugate(xp, y), shape=shape)


def _sampled_y(xp, g, x, indices, indptr, y_shape):
    shape = x.shape[0], y_shape[0]
    return conjugate(xp, xp.csr_matmul(g, indices, indptr, x, shape=shape, adjoint=True))


def _sampled_batch(xp, batched, x, y, indices, indptr):
    given = zip((x, y, indices, indptr), batched, strict=True)
    n = next(array.shape[0] for array, is_one in given if is_one)
    shape = x.shape[batched[0]], y.shape[batched[1]]
    data = xp.broadcast_to(indices, (n, indices.shape[-1]))
    (_, indices, indptr), _ = _blocks(xp, data, indices, indptr, shape, n)
    x, y = _stacked(xp, x, batched[0], n), _stacked(xp, y, batched[1], n)
    return xp.reshape(xp.csr_sampled(x, y, indices, indptr), data.shape)


def _sampled_samples(rng):
    for m, n, *shapes in ((3, 4, (3,), (4,)), (2, 3, (2, 2), (3, 2)), (2, 0, (2,), (0,))):
        (_, *pattern, x, y), _ = example(rng, m, n, *shapes)
        yield [x, y, *pattern], {}


def _sampled_ref(x, y, indices, indptr):
    products = x @ y.T if x.ndim == 2 else np.outer(x, y)
    return products[_rows(np, indices, indptr), indices]


_ELEMENTS = 2**18
"""Elements of a block of gathered rows, so that many columns take no more memory than few."""


@op(
    vjp=[_sampled_x, _sampled_y, None, None],
    linear="each",
    kinds="fci",
    batch=_sampled_batch,
    ref=_sampled_ref,
    samples=_sampled_samples,
    errors=[
        ([np.ones(3), np.ones(2), *TWO[1:]], {}, ShapeError, r"csr_sampled.*\(3,\).*\(3, 2\)"),
        ([np.ones(2), np.ones((2, 1)), *TWO[1:]], {}, ShapeError, r"csr_sampled.*\(2, 1\)"),
    ],
    captures=False,
)
def csr_sampled(xp, x, y, indices, indptr, /):
    """Entries of the outer product ``x @ y.T`` at the pattern of a sparse matrix in CSR form.

    Args:
        x: array of shape (m,) or (m, k).
        y: array of shape (n,) or (n, k).
        indices: integers of shape (nnz,), the columns; without a derivative.
        indptr: integers of shape (m + 1,), where each row starts; without a derivative.

    Returns:
        Tensor of shape (nnz,).

    >>> print(gg.csr_sampled([2.0, 3.0], [1.0, 10.0], [1, 0], [0, 1, 2]))
    [20.  3.]
    """
    shape = x.shape[0], y.shape[0]
    checked("csr_sampled", indices, indices, indptr, shape, (x, shape[0]), (y, shape[1]))
    if x.shape[1:] != y.shape[1:]:
        raise ShapeError(f"csr_sampled: x {x.shape} and y {y.shape} differ in their columns.")
    if xp is NUMPY:
        out = kernels("sparse").sampled(x, y, indices, indptr)
        if out is not NotImplemented:
            return out
    rows, lib = _rows(xp.lib, indices, indptr), xp.lib
    if x.ndim == 1:
        return x[rows] * y[indices]
    step = max(1, _ELEMENTS // max(1, x.shape[1]))
    blocks = (slice(i, i + step) for i in range(0, max(1, indices.size), step))
    return lib.concatenate([(x[rows[part]] * y[indices[part]]).sum(-1) for part in blocks])
