"""Creation, shapes, indices: the names of TensorFlow's root that are no mathematics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.tf.convert import TensorShape, axes, ints, tensor, together
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError


def constant(value, dtype=None, shape=None, name=None) -> Tensor:
    """A Tensor of a number, nested lists or an array; see `gpugrad.constant`."""
    x = tensor(value) if dtype is None else gg.constant(value, dtype)
    return x if shape is None else gg.constant(x, x.dtype, ints(shape))


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None) -> Tensor:
    """A Tensor itself, a Variable's value, else `constant`."""
    return tensor(value, dtype)


def cast(x, dtype, name=None) -> Any:
    """Other dtype, same values; complex numbers lose their imaginary part."""
    if isinstance(x, gg.IndexedSlices):
        return gg.IndexedSlices(gg.astype(x.values, dtype), x.indices, x.dense_shape)
    x = tensor(x)
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        x = gg.real(x)
    return gg.astype(x, dtype, copy=False)


def saturate_cast(value, dtype, name=None) -> Tensor:
    """`cast` after values are clipped to the range of the dtype."""
    x, info = tensor(value), np.iinfo if np.dtype(dtype).kind in "iu" else gg.finfo
    return cast(gg.clip(x, info(dtype).min, info(dtype).max), dtype)


def identity(input, name=None) -> Tensor:
    """A new Tensor of the same values, through which gradients flow."""
    return gg.reshape(x := tensor(input), x.shape)


def identity_n(input, name=None) -> list[Tensor]:
    """`identity` of each."""
    return [identity(x) for x in input]


def zeros(shape, dtype="float32", name=None, layout=None) -> Tensor:
    """Zeros."""
    return gg.zeros(ints(shape), dtype=dtype)


def ones(shape, dtype="float32", name=None, layout=None) -> Tensor:
    """Ones."""
    return gg.ones(ints(shape), dtype=dtype)


def zeros_like(input, dtype=None, name=None, layout=None) -> Tensor:
    """Zeros of the shape of `input`."""
    return gg.zeros_like(tensor(input), dtype=dtype)


def ones_like(input, dtype=None, name=None, layout=None) -> Tensor:
    """Ones of the shape of `input`."""
    return gg.ones_like(tensor(input), dtype=dtype)


def fill(dims, value, name=None, layout=None) -> Tensor:
    """A Tensor of one value."""
    value = tensor(value)
    return (
        gg.positive(gg.broadcast_to(value, ints(dims)))
        if value.dtype != bool
        else gg.full(ints(dims), bool(value))
    )


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None) -> Tensor:
    """Identity matrices."""
    columns = None if num_columns is None else int(num_columns)
    matrix = gg.eye(int(num_rows), columns, dtype=dtype)
    return (
        matrix
        if batch_shape is None
        else gg.broadcast_to(matrix, (*ints(batch_shape), *matrix.shape))
    )


def range(start, limit=None, delta=1, dtype=None, name=None) -> Tensor:
    """Numbers from `start`, or 0, up to before `limit` in steps of `delta`."""
    start, limit = (0, start) if limit is None else (start, limit)
    bounds = together(start, limit, delta)
    dtype = dtype or gg.result_type(*(b.dtype for b in bounds))
    return gg.arange(*[float(b) if b.dtype.kind == "f" else int(b) for b in bounds], dtype=dtype)


def linspace(start, stop, num, name=None, axis=0) -> Tensor:
    """`num` evenly spaced numbers, both ends among them."""
    start, stop = together(start, stop)
    start, stop = (gg.astype(x, "float64") if x.dtype.kind in "iu" else x for x in (start, stop))
    weights = gg.linspace(0, 1, int(num), dtype=start.dtype)
    points = gg.expand_dims(start, axis=axis)
    weights = gg.reshape(weights, [-1] + [1] * (start.ndim - axis % (start.ndim + 1)))
    return points + weights * (gg.expand_dims(stop, axis=axis) - points)


def shape(input, out_type="int32", name=None) -> Tensor:
    """The shape as a Tensor."""
    return gg.asarray(np.array(tensor(input).shape, dtype=out_type))


def size(input, out_type="int32", name=None) -> Tensor:
    """The number of elements as a Tensor."""
    return gg.constant(tensor(input).size, out_type)


def rank(input, name=None) -> Tensor:
    """The number of axes as a Tensor."""
    return gg.constant(tensor(input).ndim, "int32")


def reshape(tensor, shape, name=None) -> Tensor:
    """Other shape, same elements in the same order."""
    return gg.reshape(_tensor(tensor), ints(shape))


_tensor = tensor


def transpose(a, perm=None, conjugate=False, name=None) -> Tensor:
    """Axes in another order, by default the reverse."""
    a = tensor(a)
    order = tuple(reversed(tuple(np.arange(a.ndim).tolist()))) if perm is None else ints(perm)
    result = gg.permute_dims(a, order)
    return gg.conj(result) if conjugate else result


def expand_dims(input, axis=None, name=None, **v1) -> Tensor:
    """A new axis of length 1."""
    return gg.expand_dims(tensor(input), axis=int(v1.get("dim", axis)))


def squeeze(input, axis=None, name=None, **v1) -> Tensor:
    """Without axes of length 1: all, or the given ones."""
    x, axis = tensor(input), axes(v1.get("squeeze_dims", axis))
    return gg.squeeze(x, axis=axis or None)


def concat(values, axis, name=None) -> Tensor:
    """Tensors one after the other along an axis."""
    if isinstance(axis, (list, tuple)):
        raise ArgumentError("concat: the values come first, then the axis.")
    parts = together(*values) if isinstance(values, (list, tuple)) else [tensor(values)]
    return gg.concat(parts, axis=int(axis))


def stack(values, axis=0, name=None) -> Tensor:
    """Tensors beside each other along a new axis."""
    return gg.stack(together(*values), axis=axis)


def unstack(value, num=None, axis=0, name=None) -> list[Tensor]:
    """The parts along an axis."""
    return list(gg.unstack(tensor(value), axis=axis))


def split(value, num_or_size_splits, axis=0, num=None, name=None) -> list[Tensor]:
    """Equal parts along an axis, or parts of given sizes, of which one may be -1.

    Raises:
        ShapeError: the parts do not add up to the axis.
    """
    x, axis = tensor(value), int(axis)
    if np.ndim(num_or_size_splits) == 0:
        return list(gg.split(x, int(num_or_size_splits), axis=axis))
    sizes = list(ints(num_or_size_splits))
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[axis] - sum(sizes) - 1
    if sum(sizes) != x.shape[axis]:
        raise ShapeError(
            f"split: sizes {sizes} do not add up to axis {axis} of the shape {x.shape}."
        )
    return list(gg.split(x, np.cumsum(sizes)[:-1].tolist(), axis=axis))


def tile(input, multiples, name=None) -> Tensor:
    """`input` repeated along each axis."""
    return gg.tile(tensor(input), ints(multiples))


def repeat(input, repeats, axis=None, name=None) -> Tensor:
    """Each element repeated."""
    repeats = int(repeats) if np.ndim(repeats) == 0 else tensor(repeats)
    return gg.repeat(tensor(input), repeats, axis=axis)


def broadcast_to(input, shape, name=None) -> Tensor:
    """`input` repeated to a shape by NumPy's rules."""
    return gg.broadcast_to(tensor(input), ints(shape))


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None) -> Tensor:
    """More elements at both ends of each axis."""
    modes = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}
    if mode.upper() not in modes:
        raise ArgumentError(f"pad: mode={mode!r} is not one of {', '.join(modes)}.")
    widths = [
        ints(pair) for pair in (paddings.numpy() if isinstance(paddings, Tensor) else paddings)
    ]
    values = {} if mode.upper() != "CONSTANT" else {"constant_values": constant_values}
    return gg.pad(_tensor(tensor), widths, modes[mode.upper()], **values)


def reverse(tensor, axis, name=None) -> Tensor:
    """Elements in reverse order along axes."""
    return gg.flip(_tensor(tensor), axis=axes(axis))


def roll(input, shift, axis, name=None) -> Tensor:
    """Elements moved along axes; the last become the first."""
    return gg.roll(tensor(input), axes(shift), axis=axes(axis))


def sort(values, axis=-1, direction="ASCENDING", name=None) -> Tensor:
    """Sorted along an axis."""
    return gg.sort(tensor(values), axis=axis, descending=_descending("sort", direction))


def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None) -> Tensor:
    """The indices that sort along an axis."""
    order = gg.argsort(tensor(values), axis=axis, descending=_descending("argsort", direction))
    return gg.astype(order, "int32")


def _descending(name: str, direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ArgumentError(f"{name}: direction={direction!r} is not 'ASCENDING' or 'DESCENDING'.")
    return direction == "DESCENDING"


def searchsorted(sorted_sequence, values, side="left", out_type="int32", name=None) -> Tensor:
    """Where values belong in a sorted sequence; rows of a matrix each by itself."""
    order, values = together(sorted_sequence, values)
    find: Any = lambda row, v: gg.searchsorted(row, v, side=side)  # noqa: E731
    for _ in np.arange(order.ndim - 1):
        find = gg.vmap(find)
    return gg.astype(find(order, values), out_type)


def unique(x, out_idx="int32", name=None) -> tuple[Tensor, Tensor]:
    """The different elements in the order of their first place, and the index of each element."""
    found = gg.unique_all(tensor(x))
    order = gg.argsort(found.indices)
    place = gg.argsort(order)
    return gg.take(found.values, order), gg.astype(gg.take(place, found.inverse_indices), out_idx)


def where(condition, x=None, y=None, name=None) -> Tensor:
    """`x` where a condition holds, else `y`; of the condition alone, the indices where it holds."""
    condition = tensor(condition)
    if x is None and y is None:
        return gg.argwhere(condition)
    x, y = together(x, y)
    return gg.where(condition, x, y)


def clip_by_value(t, clip_value_min, clip_value_max, name=None) -> Tensor:
    """Values below the least or above the greatest become that."""
    t, least, most = together(t, clip_value_min, clip_value_max)
    return gg.clip(t, least, most)


def one_hot(
    indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None
) -> Tensor:
    """`on_value` at the index along a new axis of length `depth`, by default the last."""
    indices, axis = tensor(indices), -1 if axis is None else axis
    values = [v for v in (on_value, off_value) if v is not None]
    dtype = dtype or (tensor(values[0]).dtype if values else "float32")
    hot = gg.moveaxis(gg.one_hot(indices, int(depth), dtype="bool"), -1, axis)
    on, off = (
        gg.constant(d if v is None else v, dtype) for v, d in ((on_value, 1), (off_value, 0))
    )
    return gg.where(hot, on, off)


def _rows(indices: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """Indices of the batch axes, which broadcast against `indices`."""
    return [
        gg.reshape(gg.arange(n), (1,) * b + (n,) + (1,) * (indices.ndim - b - 1))
        for b, n in enumerate(lengths)
    ]


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None) -> Any:
    """Parts of `params` along an axis, by default the first after the batch axes."""
    indices = tensor(indices)
    axis = batch_dims if axis is None else int(axis)
    if batch_dims == 0 and axis == 0:
        return gg.gather(params if isinstance(params, gg.Variable) else tensor(params), indices)
    params = tensor(params)
    axis %= params.ndim
    batch_dims %= indices.ndim + 1
    if batch_dims == 0:
        return gg.take(params, indices, axis=axis)
    moved = gg.moveaxis(params, axis, batch_dims)
    taken = moved[(*_rows(indices, params.shape[:batch_dims]), indices)]
    own = tuple(np.arange(batch_dims, indices.ndim).tolist())
    return gg.moveaxis(taken, own, tuple(a + axis - batch_dims for a in own))


def gather_nd(params, indices, batch_dims=0, name=None) -> Tensor:
    """Parts of `params`, each by an index along the last axis of `indices`."""
    params, indices = tensor(params), tensor(indices)
    index = gg.unstack(indices, axis=-1)
    return params[(*_rows(index[0], params.shape[:batch_dims]), *index)]


def boolean_mask(tensor, mask, axis=0, name=None) -> Tensor:
    """The parts where a mask holds, whose axes begin at `axis`."""
    return _tensor(tensor)[(slice_(None),) * axis + (_tensor(mask),)]


slice_ = slice


def slice(input_, begin, size, name=None) -> Tensor:
    """A part from `begin` on of `size`; -1 stands for the rest of an axis."""
    parts = zip(ints(begin), ints(size), strict=True)
    return tensor(input_)[tuple(slice_(b, None if n == -1 else b + n) for b, n in parts)]


def strided_slice(input_, begin, end, strides=None, name=None) -> Tensor:
    """A part from `begin` to before `end` in steps of `strides`."""
    begin, end = ints(begin), ints(end)
    strides = (1,) * len(begin) if strides is None else ints(strides)
    return tensor(input_)[
        tuple(slice_(*bounds) for bounds in zip(begin, end, strides, strict=True))
    ]


def _places(indices) -> tuple[Tensor, ...]:
    return tuple(gg.unstack(tensor(indices), axis=-1))


def scatter_nd(indices, updates, shape, name=None) -> Tensor:
    """Zeros to which updates are added at indices."""
    updates = tensor(updates)
    return gg.index_add(gg.zeros(ints(shape), dtype=updates.dtype), updates, index=_places(indices))


def tensor_scatter_nd_add(tensor, indices, updates, name=None) -> Tensor:
    """`tensor` with updates added at indices."""
    x, updates = together(tensor, updates)
    return gg.index_add(x, updates, index=_places(indices))


def tensor_scatter_nd_sub(tensor, indices, updates, name=None) -> Tensor:
    """`tensor` with updates subtracted at indices."""
    x, updates = together(tensor, updates)
    return gg.index_add(x, -updates, index=_places(indices))


def tensor_scatter_nd_update(tensor, indices, updates, name=None) -> Tensor:
    """`tensor` with updates in place of what is at indices."""
    x, updates = together(tensor, updates)
    return gg.index_put(x, updates, index=_places(indices))


def tensor_scatter_nd_max(tensor, indices, updates, name=None) -> Tensor:
    """`tensor` with the maxima of itself and of updates at indices."""
    x, updates = together(tensor, updates)
    x = gg.positive(x)
    x.scatter_max(_places(indices), updates)
    return x


def tensor_scatter_nd_min(tensor, indices, updates, name=None) -> Tensor:
    """`tensor` with the minima of itself and of updates at indices."""
    x, updates = together(tensor, updates)
    x = gg.positive(x)
    x.scatter_min(_places(indices), updates)
    return x


def sequence_mask(lengths, maxlen=None, dtype="bool", name=None) -> Tensor:
    """For each length a row that holds up to before it."""
    lengths = tensor(lengths)
    maxlen = int(gg.max(lengths)) if maxlen is None else int(maxlen)
    return gg.astype(gg.arange(maxlen) < gg.expand_dims(lengths, axis=-1), dtype)


def meshgrid(*args, indexing="xy", name=None) -> list[Tensor]:
    """Coordinates of a grid."""
    return list(gg.meshgrid(*map(tensor, args), indexing=indexing))


def ensure_shape(x, shape, name=None) -> Tensor:
    """`x` itself.

    Raises:
        ShapeError: its shape does not fit, where None fits all lengths.
    """
    x = tensor(x)
    if shape is not None and not TensorShape(x.shape).is_compatible_with(TensorShape(shape)):
        raise ShapeError(f"ensure_shape: the shape is {x.shape}, {tuple(shape)} was asked for.")
    return x


def complex(real, imag, name=None) -> Tensor:
    """Complex numbers of two parts."""
    return gg.complex(*together(real, imag))


def bitcast(input, type, name=None) -> Tensor:
    """The same bytes read as another dtype of that size."""
    return tensor(input).view(np.dtype(type))


def is_tensor(x) -> bool:
    """Whether something is a Tensor, a Variable or IndexedSlices."""
    return isinstance(x, (Tensor, gg.IndexedSlices))


def get_static_value(tensor, partial=False) -> Any:
    """The values as a NumPy array."""
    return _tensor(tensor).numpy()


def broadcast_static_shape(shape_x, shape_y) -> TensorShape:
    """The shape to which two broadcast."""
    return TensorShape(np.broadcast_shapes(tuple(shape_x), tuple(shape_y)))


def broadcast_dynamic_shape(shape_x, shape_y) -> Tensor:
    """`broadcast_static_shape` as a Tensor."""
    return constant(list(np.broadcast_shapes(ints(shape_x), ints(shape_y))), "int32")
