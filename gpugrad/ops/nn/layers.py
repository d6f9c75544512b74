"""Linear layers, and lookups in tables of vectors."""

import math

import numpy as np

from gpugrad.autodiff.batched import all_batched
from gpugrad.core.samples import calls, shaped, uniform
from gpugrad.errors import ArgumentError, DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.by_hand import scatter
from gpugrad.ops.arrays.index_rules import check_range, taken
from gpugrad.registry.on_arrays import beside_number
from gpugrad.registry.record import op


@op(
    arrays=("x", "weight", "bias"),
    native_half=True,
    ref=lambda x, weight, bias=0.0: x @ weight.T + bias,
    samples=shaped(
        [(2, 3), (4, 3), (4,)],
        [(3,), (2, 3)],
        [(2, 2, 3), (1, 3), (1,)],
        [(0, 3), (2, 3), (2,)],
        [(2, 3), (3,), ()],
    ),
    errors=[
        ([np.ones((2, 3)), np.ones((3, 4))], {}, ShapeError, r"linear.*\(2, 3\).*\(3, 4\)"),
        ([np.ones((2, 3)), np.ones((4, 3)), np.ones(3)], {}, ShapeError, r"linear.*\(3,\)"),
    ],
    mixed="half",
)
def linear(xp, x, weight, /, bias=None):
    """Multiply by a transposed matrix and add a bias: x @ weight.T + bias.

    Args:
        x: array of shape (..., n).
        weight: array of shape (m, n): a row for each result, as in torch; `gg.nn.Dense` has
            its kernel transposed. A vector (n,) gives results without that axis.
        bias: array of shape (m,); None for none.

    Returns:
        Tensor of shape (..., m).

    >>> print(gg.linear([1.0, 2.0], [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [0.0, 0.0, 10.0]))
    [ 1.  3. 12.]
    """
    if not x.ndim or weight.ndim not in (1, 2) or x.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            f"linear: x {x.shape} and weight {weight.shape} are not (..., n) and (m, n)."
        )
    y = xp.matmul(x, xp.matrix_transpose(weight) if weight.ndim == 2 else weight)
    if bias is None:
        return y
    if getattr(bias, "shape", ()) not in (weight.shape[:-1], ()):
        raise ShapeError(f"linear: bias {bias.shape} does not fit the weight {weight.shape}.")
    return beside_number(xp.add, y, bias)


@op(
    arrays=("x1", "x2", "weight", "bias"),
    native_half=True,
    ref=lambda x1, x2, weight, bias=0.0: np.einsum("...i,kij,...j->...k", x1, weight, x2) + bias,
    samples=shaped(
        [(2, 3), (2, 2), (4, 3, 2), (4,)],
        [(3,), (2,), (1, 3, 2)],
        [(2, 1, 2), (2, 1, 2), (2, 2, 2)],
    ),
    errors=[
        ([np.ones(3), np.ones(2), np.ones((4, 2, 3))], {}, ShapeError, r"bilinear.*\(4, 2, 3\)"),
        ([np.ones((2, 3)), np.ones((1, 2)), np.ones((4, 3, 2))], {}, ShapeError, "bilinear"),
    ],
    mixed="half",
)
def bilinear(xp, x1, x2, weight, /, bias=None):
    """Sum over i and j of x1[i] weight[k, i, j] x2[j], plus bias[k].

    Args:
        x1: array of shape (..., n1).
        x2: array of shape (..., n2).
        weight: array of shape (m, n1, n2).
        bias: array of shape (m,); None for none.

    Returns:
        Tensor of shape (..., m).

    >>> print(gg.bilinear([1.0, 2.0], [3.0, 4.0], [[[1.0, 0.0], [0.0, 1.0]]]))
    [11.]
    """
    fits = weight.ndim == 3 and x1.ndim and x1.shape[:-1] == x2.shape[:-1]
    if not fits or weight.shape[1:] != (x1.shape[-1], x2.shape[-1]):
        raise ShapeError(
            f"bilinear: x1 {x1.shape}, x2 {x2.shape} and weight {weight.shape} are not (..., n1), "
            "(..., n2) and (m, n1, n2)."
        )
    m, n1, n2 = weight.shape
    rows = xp.reshape(xp.permute_dims(weight, (1, 0, 2)), (n1, m * n2))
    y = xp.reshape(xp.matmul(x1, rows), (*x1.shape[:-1], m, n2))
    y = xp.squeeze(xp.matmul(y, xp.expand_dims(x2, axis=-1)), -1)
    return y if bias is None else beside_number(xp.add, y, bias)


def _check_rows(name, indices, weight):
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"{name}: indices are {indices.dtype}; row numbers must be integers.")
    if not weight.ndim:
        raise ShapeError(f"{name}: weight is 0-d, it must have rows.")
    check_range(name, indices, weight.shape[0], 0, first=0)


def _take_rows_vjp(xp, g, indices, weight_shape):
    rows = xp.reshape(g, (indices.size, *weight_shape[1:]))
    return xp.scatter_rows(rows, xp.reshape(indices, (indices.size,)), shape=weight_shape)


def _take_rows_batch(xp, batched, indices, weight):
    if not batched[1]:
        return xp.take_rows(indices, weight)
    indices, weight = all_batched(xp, batched, (indices, weight))
    n, rows = weight.shape[:2]
    # concatenate the tables, and shift each example's indices to its own
    first = xp.cumulative_sum(xp.sum(indices * 0, axis=tuple(range(1, indices.ndim))) + rows) - rows
    indices = indices + xp.reshape(first, (n, *(1,) * (indices.ndim - 1)))
    return xp.take_rows(indices, xp.reshape(weight, (n * rows, *weight.shape[2:])))


@op(
    vjp=[None, _take_rows_vjp],
    batch=_take_rows_batch,
    native_half=True,
    cuda=scatter.take_rows,
    kinds="fc",
    linear="each",
    ref=lambda indices, weight: weight[indices],
    samples=calls(
        lambda rng: [np.array([0, 2, 0]), uniform(rng, 3, 2)],
        lambda rng: [np.array([[2, 1], [2, 0]]), uniform(rng, 3)],
        lambda rng: [np.array(1), uniform(rng, 2, 2)],
        lambda rng: [np.zeros(0, np.int64), uniform(rng, 2, 2)],
    ),
    errors=[
        ([np.array([-1]), np.ones((2, 3))], {}, IndexOutOfBoundsError, "take_rows: index -1"),
        ([np.array([0.5]), np.ones((2, 3))], {}, DTypeError, "take_rows: indices are float64"),
        ([np.array([0]), np.float64(1.0)], {}, ShapeError, "take_rows: weight is 0-d"),
    ],
)
def take_rows(xp, indices, weight, /):
    """Rows of a table; `embedding` calls it. `gather` has a gradient of these rows only."""
    _check_rows("take_rows", indices, weight)
    return xp.lib.asarray(taken(xp, weight, indices.astype(np.int64, copy=False), 0))


def _padding(name, padding_idx, weight):
    """The row of `padding_idx`, counted from 0."""
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise IndexOutOfBoundsError(
            f"{name}: padding_idx={padding_idx} is not a row of a table with {rows} rows."
        )
    return padding_idx % rows


def _broadcast(xp, mask, rows):
    """A mask over indices, shaped to broadcast with the rows at them."""
    return xp.reshape(mask, (*mask.shape, *(1,) * (rows.ndim - mask.ndim)))


@op(
    native_half=True,
    ref=lambda indices, weight, padding_idx=None, sparse=False: weight[indices],
    samples=calls(
        lambda rng: [np.array([0, 2, 0]), uniform(rng, 3, 2)],
        lambda rng: ([np.array([[2, 1], [2, 0]]), uniform(rng, 3, 2)], {"sparse": True}),
    ),
    errors=[
        ([np.array([2]), np.ones((2, 3))], {}, IndexOutOfBoundsError, "index 2"),
        ([np.array([0.5]), np.ones((2, 3))], {}, DTypeError, "indices are float64"),
        ([np.array([0]), np.ones((2, 3))], {"padding_idx": 2}, IndexOutOfBoundsError, "embedding"),
    ],
)
def embedding(xp, indices, weight, /, *, padding_idx=None, sparse=False):
    """Rows of a table of vectors.

    Args:
        indices: nonnegative integers of any shape.
        weight: the table, of shape (rows, n).
        padding_idx: row that gets no gradient; a negative one counts from the end.
        sparse: whether the gradient by `weight` is `IndexedSlices`, the rows that were read,
            instead of an array of the shape of `weight`.

    Returns:
        Tensor of shape ``indices.shape + (n,)``.

    >>> print(gg.embedding([1, 0, 1], [[1.0, 2.0], [3.0, 4.0]]))
    [[3. 4.]
     [1. 2.]
     [3. 4.]]
    """
    rows = xp.gather(weight, indices) if sparse else xp.take_rows(indices, weight)
    if padding_idx is None:
        return rows
    padding = xp.equal(indices, _padding("embedding", padding_idx, weight))
    return xp.where(_broadcast(xp, padding, rows), xp.stop_gradient(rows), rows)


def _bag_ref(indices, weight, per_sample_weights=None, mode="mean", padding_idx=None, sparse=False):
    rows, kept = weight[indices], np.ones(indices.shape)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[..., None]
    if padding_idx is not None:
        kept = np.where(indices == padding_idx % len(weight), 0, kept)
    if mode == "max":
        return rows.max(-2)
    total = np.sum(rows * kept[..., None], -2)
    return total / kept.sum(-1)[..., None] if mode == "mean" else total


@op(
    arrays=("indices", "weight", "per_sample_weights"),
    ref=_bag_ref,
    samples=calls(
        lambda rng: [np.array([[0, 2, 0], [1, 1, 2]]), uniform(rng, 3, 2)],
        lambda rng: (
            [np.array([[0, 2], [1, 2]]), uniform(rng, 3, 2), uniform(rng, 2, 2)],
            {"mode": "sum"},
        ),
        lambda rng: ([np.array([[0, 2], [1, 0]]), uniform(rng, 3, 2)], {"mode": "max"}),
        lambda rng: (
            [np.array([[0, 2], [1, 2]]), uniform(rng, 3, 2)],
            {"padding_idx": -1, "sparse": True},
        ),
    ),
    errors=[
        ([np.array([[2]]), np.ones((2, 3))], {}, IndexOutOfBoundsError, "index 2"),
        ([np.array([[0]]), np.ones((2, 3))], {"mode": "min"}, ArgumentError, "mode='min'"),
        ([np.array([[0]]), np.ones((2, 3)), np.ones((1, 1))], {}, ArgumentError, "mode='sum'"),
        ([np.array(0), np.ones((2, 3))], {}, ShapeError, "embedding_bag.*0-d"),
    ],
)
def embedding_bag(
    xp, indices, weight, /, per_sample_weights=None, *, mode="mean", padding_idx=None, sparse=False
):
    """Sums, means or maxima of rows of a table: one for each bag of indices.

    For concatenated bags (torch's ``offsets``) use `segment_sum`, `segment_mean` or `segment_max`
    on the rows that `embedding` returns.

    Args:
        indices: integers of shape (..., bag). Pad shorter bags with `padding_idx`.
        weight: the table, of shape (rows, n).
        per_sample_weights: array of the shape of `indices`, factors for ``mode="sum"``.
        mode: ``"mean"``, ``"sum"`` or ``"max"``.
        padding_idx: row that is left out. A bag of only this row gives 0.
        sparse: as for `embedding`.

    Returns:
        Tensor of shape (..., n).

    >>> print(gg.embedding_bag([[0, 1], [1, 1]], [[1.0, 2.0], [3.0, 4.0]]))
    [[2. 3.]
     [3. 4.]]
    """
    if mode not in ("mean", "sum", "max"):
        raise ArgumentError(f"embedding_bag: mode={mode!r} must be 'mean', 'sum' or 'max'.")
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError("embedding_bag: per_sample_weights need mode='sum'.")
    if not indices.ndim:
        raise ShapeError("embedding_bag: the indices are 0-d, without an axis of bags.")
    rows = xp.embedding(indices, weight, sparse=sparse)
    if per_sample_weights is not None:
        if per_sample_weights.shape != indices.shape:
            raise ShapeError(
                f"embedding_bag: per_sample_weights {per_sample_weights.shape} and indices "
                f"{indices.shape} must have the same shape."
            )
        rows = rows * xp.expand_dims(per_sample_weights, axis=-1)
    axis = indices.ndim - 1
    if padding_idx is None:
        return getattr(xp, mode)(rows, axis=axis)
    kept = xp.not_equal(indices, _padding("embedding_bag", padding_idx, weight))
    mask = _broadcast(xp, kept, rows)
    if mode == "max":
        some = xp.any(mask, axis=axis)
        return xp.where(some, xp.max(xp.where(mask, rows, -math.inf), axis=axis), 0)
    total = xp.sum(xp.where(mask, rows, 0), axis=axis)
    if mode == "sum":
        return total
    return total / xp.maximum(xp.sum(xp.astype(mask, rows.dtype), axis=axis), 1)
