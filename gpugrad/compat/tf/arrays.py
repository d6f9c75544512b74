"""Creation, shapes, indices: the names of TensorFlow's root that are no mathematics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.convert import ints, op, ops, tensor, together
from gpugrad.compat.tf.shapes import TensorShape, numpys
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError


@op
def constant(value=..., dtype=None, shape=None) -> Tensor:
    """A Tensor of a number, nested lists or an array; see `gpugrad.constant`."""
    x = tensor(value) if dtype is None else gg.constant(value, dtype)
    return x if shape is None else gg.constant(x, x.dtype, shape)


@op
def cast(x=..., dtype=...) -> Any:
    dtype = numpys(dtype)
    if isinstance(x, gg.IndexedSlices):
        return gg.IndexedSlices(gg.astype(x.values, dtype), x.indices, x.dense_shape)
    x = tensor(x)
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = gg.real(x)
    return gg.astype(x, dtype, copy=False)


@op
def saturate_cast(value, dtype) -> Tensor:
    info = (gg.iinfo if dtype.kind in "iu" else gg.finfo)(dtype)
    return cast(gg.clip(value, info.min, info.max), dtype)


@op
def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32") -> Tensor:
    matrix = gg.eye(num_rows, num_columns, dtype=dtype)
    batch = () if batch_shape is None else batch_shape
    return gg.broadcast_to(matrix, (*batch, *matrix.shape)) if batch else matrix


@op
def range(start=..., limit=None, delta=1, dtype=None) -> Tensor:
    start, limit = (0, start) if limit is None else (start, limit)
    bounds = together(start, limit, delta)
    dtype = dtype or gg.result_type(*(b.dtype for b in bounds))
    return gg.arange(*[float(b) if b.dtype.kind == "f" else int(b) for b in bounds], dtype=dtype)


@op
def linspace(start, stop, num, name=None, axis=0) -> Tensor:
    start, stop = (gg.astype(x, "float64") if x.dtype.kind in "iu" else x for x in (start, stop))
    points = gg.expand_dims(start, axis=axis)
    weights = gg.linspace(0, 1, num, dtype=start.dtype)
    weights = gg.reshape(weights, [-1] + [1] * (start.ndim - axis % (start.ndim + 1)))
    return points + weights * (gg.expand_dims(stop, axis=axis) - points)


def ensure_rank(name: str, x: Tensor, n: int) -> Tensor:
    """`x` itself, if it has `n` axes."""
    if x.ndim != n:
        raise ShapeError(f"{name}: the shape {x.shape} has {x.ndim} axes, not {n}.")
    return x


def _transpose(a, perm=None, conjugate=False) -> Tensor:
    result = gg.permute_dims(a, tuple(np.arange(a.ndim)[::-1].tolist()) if perm is None else perm)
    return gg.conj(result) if conjugate else result


@op
def concat(values=..., axis=...) -> Tensor:
    if isinstance(axis, (list, tuple)):
        raise ArgumentError("concat: the values come first, then the axis.")
    parts = together(*values) if isinstance(values, (list, tuple)) else [tensor(values)]
    return gg.concat(parts, axis=int(axis))


@op
def split(value, num_or_size_splits=..., axis=0, num=None) -> list[Tensor]:
    if np.ndim(num_or_size_splits) == 0:
        return list(gg.split(value, int(num_or_size_splits), axis=axis))
    sizes = list(ints(num_or_size_splits))
    if -1 in sizes:
        sizes[sizes.index(-1)] = value.shape[axis] - sum(sizes) - 1
    if sum(sizes) != value.shape[axis]:
        raise ShapeError(
            f"split: sizes {sizes} do not add up to axis {axis} of the shape {value.shape}."
        )
    return list(gg.split(value, np.cumsum(sizes)[:-1].tolist(), axis=axis))


@op
def pad(tensor, paddings=..., mode="CONSTANT", constant_values=0) -> Tensor:
    if mode.upper() not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ArgumentError(f"pad: mode={mode!r} is not 'CONSTANT', 'REFLECT' or 'SYMMETRIC'.")
    pairs = paddings.numpy() if isinstance(paddings, Tensor) else paddings
    values = {"constant_values": constant_values} if mode.upper() == "CONSTANT" else {}
    return gg.pad(tensor, [ints(pair) for pair in pairs], mode.lower(), **values)


def _descending(name: str, direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ArgumentError(f"{name}: direction={direction!r} is not 'ASCENDING' or 'DESCENDING'.")
    return direction == "DESCENDING"


@op
def searchsorted(sorted_sequence, values, side="left", out_type="int32") -> Tensor:
    find: Any = lambda row, v: gg.searchsorted(row, v, side=side)
    for _ in np.arange(sorted_sequence.ndim - 1):
        find = gg.vmap(find)
    return gg.astype(find(sorted_sequence, values), out_type)


@op
def unique(x, out_idx="int32") -> tuple[Tensor, Tensor]:
    found = gg.unique_all(x)
    order = gg.argsort(found.indices)
    place = gg.argsort(order)
    return gg.take(found.values, order), gg.astype(gg.take(place, found.inverse_indices), out_idx)


@op
def where(condition, x=None, y=None) -> Tensor:
    alone = x is None and y is None
    return gg.argwhere(condition) if alone else gg.where(condition, *together(x, y))


@op
def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None) -> Tensor:
    """`on_value` at the index along a new axis of length `depth`, by default the last."""
    values = [v for v in (on_value, off_value) if v is not None]
    dtype = dtype or (tensor(values[0]).dtype if values else "float32")
    hot = gg.moveaxis(gg.one_hot(indices, depth, dtype="bool"), -1, -1 if axis is None else axis)
    on, off = (1 if on_value is None else on_value), (0 if off_value is None else off_value)
    return gg.where(hot, gg.constant(on, dtype), gg.constant(off, dtype))


def _rows(indices: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """Indices of the batch axes, which broadcast against `indices`."""
    return [
        gg.reshape(gg.arange(n), (1,) * b + (n,) + (1,) * (indices.ndim - b - 1))
        for b, n in enumerate(lengths)
    ]


@op
def gather(params, indices, validate_indices=None, axis=None, batch_dims=0) -> Any:
    """Parts of `params` along an axis, by default the first after the batch axes."""
    axis = batch_dims if axis is None else axis
    if batch_dims == 0 and axis == 0:
        return gg.gather(params, indices)
    params = tensor(params)
    axis %= params.ndim
    batch_dims %= indices.ndim + 1
    if batch_dims == 0:
        return gg.take(params, indices, axis=axis)
    moved = gg.moveaxis(params, axis, batch_dims)
    taken = moved[(*_rows(indices, params.shape[:batch_dims]), indices)]
    own = tuple(np.arange(batch_dims, indices.ndim).tolist())
    return gg.moveaxis(taken, own, tuple(a + axis - batch_dims for a in own))


@op
def gather_nd(params, indices, batch_dims=0) -> Tensor:
    """Parts of `params`, each by an index along the last axis of `indices`."""
    params, index = tensor(params), gg.unstack(indices, axis=-1)
    return params[(*_rows(index[0], params.shape[:batch_dims]), *index)]


slice_ = slice


@op
def strided_slice(input_, begin, end=..., strides=None) -> Tensor:
    steps = (1,) * len(begin) if strides is None else ints(strides)
    return input_[tuple(slice_(*bounds) for bounds in zip(begin, ints(end), steps, strict=True))]


def _places(indices: Tensor) -> tuple[Tensor, ...]:
    return tuple(gg.unstack(indices, axis=-1))


def _scattered(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda tensor, indices, updates: f(tensor, updates, index=_places(indices))


def _extreme(method: str) -> Callable[..., Tensor]:
    def write(tensor, updates, index) -> Tensor:
        x = gg.positive(tensor)
        getattr(x, method)(index, updates)
        return x

    return write


def _stitched(indices=..., data=...) -> Tensor:
    """The parts of `data` in the rows that `indices` give; of several for one row, the last."""
    places = gg.concat([gg.ravel(tensor(i)) for i in indices])
    parts = together(*data)
    rest = parts[0].shape[tensor(indices[0]).ndim :]
    rows = gg.concat([gg.reshape(x, (-1, *rest)) for x in parts])
    zeros = gg.zeros((int(gg.max(places)) + 1, *rest), dtype=rows.dtype)
    return gg.index_put(zeros, rows, index=(places,))


@op
def ensure_shape(x, shape=...) -> Tensor:
    if shape is not None and not TensorShape(shape).is_compatible_with(x.shape):
        raise ShapeError(f"ensure_shape: the shape is {x.shape}, {tuple(shape)} was asked for.")
    return x


def is_tensor(x) -> bool:
    return isinstance(x, (Tensor, gg.IndexedSlices)) or hasattr(x, "__gpugrad_tensor__")


def meshgrid(*args, indexing="xy", name=None) -> list[Tensor]:
    return list(gg.meshgrid(*map(tensor, args), indexing=indexing))


_OPS = ops(
    """input axis: expand_dims
    input shift axis: roll
    tensor axis: reverse=flip
    tensor shape: reshape
    input shape: broadcast_to
    shape dtype='float32': zeros ones
    input dtype=None: zeros_like ones_like
    t clip_value_min clip_value_max: clip_by_value=clip
    real imag: complex""",
    convert_to_tensor=lambda value=..., dtype=None, dtype_hint=None: tensor(value, dtype),
    identity=lambda input: gg.reshape(input, input.shape),
    identity_n=lambda input=...: [gg.reshape(x := tensor(each), x.shape) for each in input],
    fill=lambda dims, value: (
        gg.full(dims, bool(value))
        if value.dtype == bool
        else gg.positive(gg.broadcast_to(value, dims))
    ),
    shape=lambda input, out_type="int32": gg.asarray(np.array(input.shape, dtype=out_type)),
    size=lambda input, out_type="int32": gg.constant(input.size, out_type),
    rank=lambda input: gg.constant(input.ndim, "int32"),
    squeeze=lambda input, axis=None: gg.squeeze(input, axis=None if axis == () else axis),
    stack=lambda values=..., axis=0: gg.stack(together(*values), axis=axis),
    parallel_stack=lambda values=...: gg.stack(together(*values)),
    unstack=lambda value, num=None, axis=0: list(gg.unstack(value, axis=axis)),
    repeat=lambda input, repeats=..., axis=None: gg.repeat(
        input, int(repeats) if np.ndim(repeats) == 0 else tensor(repeats), axis=axis
    ),
    tile=lambda input, multiples: gg.tile(ensure_rank("tile", input, len(multiples)), multiples),
    transpose=_transpose,
    sort=lambda values, axis=-1, direction="ASCENDING": gg.sort(
        values, axis=axis, descending=_descending("sort", direction)
    ),
    argsort=lambda values, axis=-1, direction="ASCENDING", stable=False: gg.astype(
        gg.argsort(values, axis=axis, descending=_descending("argsort", direction)), "int32"
    ),
    boolean_mask=lambda tensor, mask, axis=0: tensor[(slice_(None),) * axis + (mask,)],
    slice=lambda input_, begin, size: input_[
        tuple(slice_(b, None if n == -1 else b + n) for b, n in zip(begin, size, strict=True))
    ],
    scatter_nd=lambda indices, updates, shape: gg.index_add(
        gg.zeros(shape, dtype=updates.dtype), updates, index=_places(indices)
    ),
    tensor_scatter_nd_add=_scattered(gg.index_add),
    tensor_scatter_nd_sub=_scattered(
        lambda x, updates, index: gg.index_add(x, -updates, index=index)
    ),
    tensor_scatter_nd_update=_scattered(gg.index_put),
    tensor_scatter_nd_max=_scattered(_extreme("scatter_max")),
    tensor_scatter_nd_min=_scattered(_extreme("scatter_min")),
    sequence_mask=lambda lengths, maxlen=None, dtype="bool": gg.astype(
        gg.arange(int(gg.max(lengths)) if maxlen is None else maxlen)
        < gg.expand_dims(lengths, axis=-1),
        dtype,
    ),
    dynamic_partition=lambda data, partitions=..., num_partitions=...: [
        data[gg.equal(tensor(partitions), i)] for i in np.arange(int(num_partitions)).tolist()
    ],
    dynamic_stitch=_stitched,
    shape_n=lambda input=..., out_type="int32": [
        gg.asarray(np.array(tensor(x).shape, dtype=out_type)) for x in input
    ],
    bitcast=lambda input, type=...: input.view(numpys(type)),
    get_static_value=lambda tensor, partial=False: tensor.numpy(),
    broadcast_static_shape=lambda shape_x=..., shape_y=...: TensorShape(
        np.broadcast_shapes(tuple(shape_x), tuple(shape_y))
    ),
    broadcast_dynamic_shape=lambda shape_x=..., shape_y=...: constant(
        list(np.broadcast_shapes(ints(shape_x), ints(shape_y))), "int32"
    ),
)
__getattr__, __dir__ = forwarding(__name__, _OPS, own=globals())
