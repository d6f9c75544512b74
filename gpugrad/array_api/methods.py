"""Adds the ops to Tensor as operators and methods.

An op whose first argument is the tensor is the method itself, without a wrapper's frame.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gpugrad.array_api import numpy_protocols, writes
from gpugrad.array_api.info import VERSIONS
from gpugrad.array_api.memory import MEMORY
from gpugrad.core import backend, devices, dlpack
from gpugrad.core.backend import SCALARS, TENSOR
from gpugrad.core.tensor import Tensor, holds_tensor, new, tensor, wrap
from gpugrad.core.variable import Variable, VariableSlice
from gpugrad.errors import ArgumentError, DTypeError
from gpugrad.ops.arrays import arrange, creation, gather, indexing, join, select, sort
from gpugrad.ops.arrays import shape as shaping
from gpugrad.ops.math import (
    arithmetic,
    comparison,
    complex,
    cumulative,
    numeric,
    products,
    reduction,
    statistics,
    tensor_products,
)


def _reflected(op: Any) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        return op(other, self)

    return method


def _comparison(op: Any) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        """Elementwise, also beside None; as a whole beside values that are not numeric."""
        if other is None:
            return creation.full(self.shape, op is comparison.not_equal, bool, device=self.device)
        if isinstance(other, Tensor) or type(other) in SCALARS or hasattr(other, "dtype"):
            return op(self, other)
        is_read = isinstance(other, (list, tuple)) or holds_tensor(other)
        return op(self, other) if is_read else NotImplemented

    return method


_OPERATORS = {  # with a reflected form
    "add": arithmetic.add, "sub": arithmetic.subtract, "mul": arithmetic.multiply,
    "truediv": arithmetic.divide, "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder, "pow": arithmetic.power, "matmul": products.matmul,
    "and": comparison.bitwise_and, "or": comparison.bitwise_or, "xor": comparison.bitwise_xor,
    "lshift": comparison.bitwise_left_shift, "rshift": comparison.bitwise_right_shift,
    "divmod": numeric.divmod_,
}  # fmt: skip


def _getitem(self: Tensor, index: Any) -> Tensor:
    return indexing.getitem(self, index=indexing.frozen_index(index))


def _contains(self: Tensor, value: Any) -> bool:
    """Whether any element equals a value."""
    same = self == value
    return isinstance(same, Tensor) and bool(reduction.any_(same))


def _variable_getitem(self: Variable, index: Any) -> Tensor:
    """A part of the value as a Tensor that can assign to that part of the Variable."""
    index = indexing.frozen_index(index)
    part = indexing.getitem(self, index=index)
    result = new(VariableSlice)
    result._data, result._id, result._variable, result._index = part._data, part._id, self, index
    return result


def _set_real(self: Tensor, value: Any) -> None:
    writes.setitem(complex.real(self), ..., value)


def _set_imag(self: Tensor, value: Any) -> None:
    writes.setitem(complex.imag(self), ..., value)


_REVERSED = [tuple(range(n))[::-1] for n in range(65)]  # NumPy's arrays have at most 64 axes


def _reversed(self: Tensor) -> Tensor:
    """The axes in reverse order."""
    return shaping.permute_dims(self, _REVERSED[self.ndim])


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """Permute the axes; without arguments, reverse them."""
    order = tuple(axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes)
    if not order or (len(order) == 1 and order[0] is None):
        return _reversed(self)
    return shaping.permute_dims(self, order)


def _adjoint(self: Tensor) -> Tensor:
    """The conjugate transpose; of a one-dimensional array, the conjugate."""
    return complex.conj(self if self.ndim < 2 else shaping.matrix_transpose(self))


def _matvec(self: Tensor, x: Any) -> Tensor:
    """The product with a vector; SciPy finds it and makes a linear operator of the matrix."""
    return products.matmul(self, x)


def _rmatvec(self: Tensor, x: Any) -> Tensor:
    """The product of the conjugate transpose with a vector."""
    return products.matmul(_adjoint(self), x)


def _fill(self: Tensor, value: Any) -> None:
    """Set every element to one value; differentiable with respect to the value."""
    self[...] = value


def _sort(self: Tensor, axis: int = -1, kind: Any = None, *, stable: Any = None) -> None:
    """Sort the elements in place along an axis, as NumPy's method; stable and differentiable."""
    writes.begin_write(self)
    self[...] = sort.sort(self, axis=axis)


def _view(self: Tensor, dtype: Any = None) -> Any:
    """A view of the same tensor, or a copy of its bytes as numbers of another dtype.

    Viewing complex numbers as real and imaginary parts is differentiable; other changes of dtype
    have no gradient. Bytes without a meaning, such as ``"V8"``, are those of a NumPy array, by
    which zarr compares values.

    Raises:
        DTypeError: a tape watches the tensor, whose gradient would be cut.
    """
    if isinstance(dtype, str) and dtype.lstrip("|").startswith("V"):
        try:
            return np.array(self).view(dtype)
        except (TypeError, ValueError) as error:
            raise DTypeError(f"view: {self.dtype} {self.shape} as {dtype}: {error}") from error
    dtype = self.dtype if dtype is None else backend.as_dtype(dtype)
    if dtype == self.dtype:
        return shaping.reshape(self, self.shape)
    is_parts = self.dtype.kind == "c" and dtype.char == self.dtype.char.lower()
    if self.ndim and is_parts:
        parts = join.stack([complex.real(self), complex.imag(self)], axis=-1)
        return shaping.reshape(parts, (*self.shape[:-1], 2 * self.shape[-1]))
    try:
        return wrap(devices.copy_array(self._handed_out("other numbers").view(dtype)))
    except ValueError as error:
        raise DTypeError(f"view: {self.dtype} {self.shape} as {dtype}: {error}") from error


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The module gpugrad, as a namespace of the array API standard.

    Raises:
        ArgumentError: gpugrad does not provide that version of the standard.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ArgumentError(
            f"__array_namespace__: no version {api_version!r} of the array API; gpugrad provides "
            f"{', '.join(VERSIONS)}."
        )
    return sys.modules["gpugrad"]


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on another device, itself if it is there already; differentiable.

    Args:
        device: a device or its name.
        stream: None; the array API requires the parameter.

    Raises:
        ArgumentError: `stream` is not None.
    """
    if stream is not None:
        raise ArgumentError("to_device: stream= must be None; copies run on the current stream.")
    d = devices.device(device)
    if d == self.device:
        return tensor(self)
    return TENSOR.to_device(self, device=d, source=self.device)


class Reference:
    """A Tensor as a key of dictionaries: ``==`` compares identities, not elements.

    >>> x = gg.constant([1.0, 2.0])
    >>> names = {x.ref(): "weights"}
    >>> names[x.ref()], x.ref() == gg.constant([1.0, 2.0]).ref(), x.ref().deref() is x
    ('weights', False, True)
    """

    __slots__ = ("_tensor",)

    def __init__(self, x: Tensor) -> None:
        self._tensor = x

    def deref(self) -> Tensor:
        """The Tensor."""
        return self._tensor

    def __eq__(self, other: object) -> Any:
        return self._tensor is other._tensor if isinstance(other, Reference) else NotImplemented

    def __hash__(self) -> int:
        return id(self._tensor)

    def __repr__(self) -> str:
        return f"<Reference to {self._tensor!r}>"


def _ref(self: Tensor) -> Reference:
    """A reference that can be a key, as TensorFlow's ``ref``; it keeps the Tensor alive."""
    return Reference(self)


_METHODS = {
    "__neg__": arithmetic.negative, "__pos__": arithmetic.positive, "__abs__": arithmetic.abs_,
    "__invert__": comparison.bitwise_invert, "__round__": comparison.round_,
    "__lt__": comparison.less, "__le__": comparison.less_equal, "__gt__": comparison.greater,
    "__ge__": comparison.greater_equal, "__eq__": _comparison(comparison.equal),
    "__ne__": _comparison(comparison.not_equal), "__contains__": _contains,
    "__getitem__": _getitem, "__setitem__": writes.setitem, "T": property(_reversed),
    "mT": property(shaping.matrix_transpose), "H": property(_adjoint),
    "real": property(complex.real, _set_real), "imag": property(complex.imag, _set_imag),
    "sum": reduction.sum_, "mean": reduction.mean,
    "prod": reduction.prod, "var": reduction.var,
    "std": reduction.std, "max": reduction.max_,
    "min": reduction.min_, "any": reduction.any_,
    "all": reduction.all_, "argmax": reduction.argmax,
    "argmin": reduction.argmin, "ptp": statistics.ptp,
    "cumsum": cumulative.cumsum,
    "cumprod": cumulative.cumprod, "dot": products.dot,
    "matvec": _matvec, "rmatvec": _rmatvec, "trace": tensor_products.trace,
    "conj": complex.conj, "conjugate": complex.conj, "clip": comparison.clip,
    "round": comparison.round_, "transpose": _transpose,
    "squeeze": shaping.squeeze, "swapaxes": shaping.swapaxes, "diagonal": arrange.diagonal,
    "repeat": arrange.repeat, "take": gather.take, "nonzero": gather.nonzero,
    "sort": _sort, "argsort": sort.argsort, "choose": select.choose,
    "argpartition": sort.argpartition, "searchsorted": sort.searchsorted, "fill": _fill,
    "view": _view, "ref": _ref, **MEMORY,
    "to_device": _to_device, "__dlpack__": dlpack.dlpack,
    "__dlpack_device__": dlpack.dlpack_device,
    "__cuda_array_interface__": property(dlpack.cuda_array_interface),
    "__array_namespace__": _array_namespace,
    "__array_ufunc__": numpy_protocols.OnTheType(numpy_protocols.array_ufunc),
    "__array_function__": numpy_protocols.array_function,
}  # fmt: skip

_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip

for _name, _op in _OPERATORS.items():
    setattr(Tensor, f"__{_name}__", _op)
    setattr(Tensor, f"__r{_name}__", _reflected(_op))
for _name, _symbol in _SYMBOLS.items():
    setattr(Tensor, f"__i{_name}__", writes.in_place(_OPERATORS[_name], _symbol))
for _name, _method in _METHODS.items():
    setattr(Tensor, _name, _method)
Variable.__getitem__ = _variable_getitem  # type: ignore[method-assign,assignment]
