"""Tensors from Python numbers, nested lists and arrays: `constant` and `convert_to_tensor`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.backend import TENSOR
from gpugrad.core.from_python import no_part_lost, no_value_lost, numbers_only, to_numpy
from gpugrad.core.holders import opened
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.known_as import answering
from gpugrad.core.tensor import Tensor, holds_tensor, tensor, wrap
from gpugrad.errors import ArgumentError, DTypeError, GpugradError, ShapeError, reraise


@answering
def constant(value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor from a number, nested lists or an array; the values are copied.

    Args:
        value: Python floats become float32, Python ints int64; arrays keep their dtype.
        dtype: of the result.
        shape: of the result; a single value is repeated.
        device: where to put it; the default device if None.

    Raises:
        DTypeError: the value does not consist of numbers, or the dtype is not numeric.
        ShapeError: the value does not fill the shape.

    >>> gg.constant([1.0, 2.0])
    Tensor([1., 2.], shape=(2,), dtype=float32, device=cpu)
    """
    if type(value) is np.ndarray and dtype is None and shape is None:
        kind = value.dtype
        if kind.kind in "biufc" and kind.isnative:  # nothing to convert
            return wrap(devices.put(value, devices.device(device)))
    value = opened(value, dtype)
    if holds_tensor(value):
        return _convert_tensor(tensor(value), dtype, shape, device)
    if not isinstance(value, np.ndarray) and backend.is_array(value):  # stays where it is
        d = devices.device_of(value) if device is None else devices.device(device)
        array = devices.copy_array(devices.move(value, d))
    else:
        d = devices.device(device)
        try:
            array = to_numpy(value, dtype)
        except GpugradError as error:
            reraise(error, "constant", {}, {})
        if dtype is not None and numbers_only(value):
            no_value_lost("constant", array, backend.as_dtype(dtype))
    with devices.formulas_on(array):
        if dtype is not None:
            dtype = no_part_lost("constant", array.dtype, backend.as_dtype(dtype))
            array = array.astype(dtype, copy=False)
        if shape is not None:
            array = _fill(array, _lengths(shape))
    return wrap(devices.put(array, d) if type(array) is np.ndarray else array)


def _lengths(shape: Any) -> tuple[int, ...]:
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else shape
    try:
        return tuple(operator.index(n) for n in lengths)
    except (TypeError, GpugradError):
        raise ArgumentError(
            f"constant: shape must be an int or a tuple of ints, got {shape!r:.60}."
        ) from None


def _fill(array: Any, shape: tuple[int, ...]) -> Any:
    """The array reshaped, or its only value repeated to the shape."""
    size = int(np.prod(shape))
    if array.size not in (1, size):
        raise ShapeError(f"constant: {array.size} values do not fill the shape {shape}.")
    return (array if array.size == size else array.repeat(size)).reshape(shape)


def _convert_tensor(t: Tensor, dtype: Any, shape: Any, device: Any) -> Tensor:
    """`constant` of a Tensor: differentiable conversions, or the Tensor itself."""
    if dtype is not None and t.dtype != backend.as_dtype(dtype):
        t = TENSOR.astype(t, no_part_lost("constant", t.dtype, backend.as_dtype(dtype)))
    if shape is not None and t.shape != (lengths := _lengths(shape)):
        change = TENSOR.broadcast_to if t.size == 1 else TENSOR.reshape
        t = change(t, lengths)
    return t.__copy__() if device is None else t.to_device(device).__copy__()


@answering
def convert_to_tensor(value: Any, dtype: Any = None) -> Tensor:
    """Return `value` as a Tensor: a Tensor itself, a Variable's value, else `constant`.

    An object whose class has ``__gpugrad_tensor__(self, dtype)`` is the Tensor which that returns.

    Raises:
        DTypeError: `value` is a Tensor with a dtype other than `dtype` (cast it with astype).

    >>> gg.convert_to_tensor(2.0).dtype.name
    'float32'
    """
    value = opened(value, dtype)
    if not isinstance(value, IndexedSlices) and not holds_tensor(value):
        return constant(value, dtype)
    t = tensor(value)
    if dtype is not None and backend.as_dtype(dtype) != t.dtype:
        raise DTypeError(
            f"convert_to_tensor: the tensor is {t.dtype}, {backend.as_dtype(dtype)} was asked "
            "for. Cast it with gg.astype(x, dtype)."
        )
    return t
