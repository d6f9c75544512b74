"""Hangs the ops on Tensor.

An op whose first argument is the tensor is the method itself: no wrapper frame on the way.
"""

from __future__ import annotations

import sys
from typing import Any

from gpugrad.array_api import numpy_protocols
from gpugrad.array_api.info import VERSIONS
from gpugrad.autodiff.recorder import graphs
from gpugrad.core import backend, devices, dlpack
from gpugrad.core.backend import NAMESPACES, SCALARS
from gpugrad.core.tensor import Tensor, constant, index_parts, new, numbers_only, tensor, wrap
from gpugrad.core.variable import Variable, VariableSlice
from gpugrad.errors import ArgumentError, DTypeError, reraise
from gpugrad.ops.arrays import arrange, creation, gather, index_rules, indexing, join, sort
from gpugrad.ops.arrays import shape as shaping
from gpugrad.ops.math import (
    comparison,
    cumulative,
    elementwise,
    numeric,
    products,
    reduction,
    statistics,
)
from gpugrad.trace.array import running

__all__: list[str] = []


def _reflected(op: Any) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        return op(other, self)

    return method


def _comparing(op: Any) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        """Elementwise; False for what is no number, as ``x == None``."""
        if isinstance(other, Tensor) or type(other) in SCALARS or hasattr(other, "dtype"):
            return op(self, other)
        return op(self, other) if isinstance(other, (list, tuple)) else NotImplemented

    return method


_name: str
_op: Any

for _name, _op in {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply,
    "truediv": elementwise.divide, "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder, "pow": elementwise.power, "matmul": products.matmul,
    "and": comparison.bitwise_and, "or": comparison.bitwise_or, "xor": comparison.bitwise_xor,
    "lshift": comparison.bitwise_left_shift, "rshift": comparison.bitwise_right_shift,
}.items():  # fmt: skip
    setattr(Tensor, f"__{_name}__", _op)
    setattr(Tensor, f"__r{_name}__", _reflected(_op))

for _name, _op in {
    "neg": elementwise.negative, "pos": elementwise.positive, "abs": elementwise.abs_,
    "invert": comparison.bitwise_invert, "round": comparison.round_,
    "lt": comparison.less, "le": comparison.less_equal, "gt": comparison.greater,
    "ge": comparison.greater_equal,
}.items():  # fmt: skip
    setattr(Tensor, f"__{_name}__", _op)

Tensor.__eq__ = _comparing(comparison.equal)  # type: ignore[method-assign]
Tensor.__ne__ = _comparing(comparison.not_equal)  # type: ignore[method-assign]

for _name, _op in {
    "sum": reduction.sum_, "mean": reduction.mean, "prod": reduction.prod, "var": reduction.var,
    "std": reduction.std, "max": reduction.max_, "min": reduction.min_, "any": reduction.any_,
    "all": reduction.all_, "argmax": reduction.argmax, "argmin": reduction.argmin,
    "astype": shaping.astype, "squeeze": shaping.squeeze, "conj": elementwise.conj,
    "clip": comparison.clip, "repeat": arrange.repeat, "argsort": sort.argsort,
    "take": gather.take, "round": comparison.round_, "conjugate": elementwise.conj,
    "cumsum": cumulative.cumsum, "cumprod": cumulative.cumprod, "dot": products.dot,
    "flatten": shaping.flatten, "nonzero": gather.nonzero, "ravel": shaping.ravel,
    "searchsorted": sort.searchsorted, "sort": sort.sort, "swapaxes": shaping.swapaxes,
}.items():  # fmt: skip
    setattr(Tensor, _name, _op)


def _getitem(self: Tensor, index: Any) -> Tensor:
    return indexing.getitem(self, index=indexing.frozen_index(index))


def _contains(self: Tensor, value: Any) -> bool:
    """Whether any element equals a value."""
    same = self == value
    return isinstance(same, Tensor) and bool(reduction.any_(same))


def _variable_getitem(self: Variable, index: Any) -> Tensor:
    """A part of the value, which can also assign to that part of the Variable."""
    index = indexing.frozen_index(index)
    part = indexing.getitem(self, index=index)
    slot = new(VariableSlice)
    slot._data, slot._id, slot._variable, slot._index = part._data, part._id, self, index
    return slot


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    """Copy-on-write: the name gets a new value, what others have seen stays as it was.

    In place where nobody records either of the two and nothing else sees the array.
    """
    try:
        if isinstance(value, (list, tuple)) and numbers_only(value):
            value = constant(value, self.dtype, device=self.device)  # with every digit
        elif type(value) not in SCALARS:
            value = tensor(value)
    except Exception as error:
        reraise(error, "setitem", {"x": self, "value": value}, {"index": index})
    trace = running()
    if trace is not None:
        trace.writes(self)
    recorded = self._id or graphs or trace or (isinstance(value, Tensor) and value._id)
    if len(NAMESPACES) > 1:
        parts = [self._data, getattr(value, "_data", None), *index_parts(index)]
        recorded = recorded or backend.reading(*parts).nesting
    if recorded or (isinstance(value, Tensor) and value.device != self.device):
        made = indexing.setitem(self, value, index=indexing.frozen_index(index))
        self._data, self._id = made._data, made._id
        return
    given = value._data if isinstance(value, Tensor) else value
    data = self._own()
    try:
        with devices.formulas_on(data):
            index_rules.assign("setitem", backend.NAMESPACES[type(data)], data, given, index)
    except Exception as error:
        reraise(error, "setitem", {"x": self, "value": value}, {"index": index})


def _reshape(self: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape, given as one tuple or as numbers."""
    return shaping.reshape(self, shape[0] if len(shape) == 1 else shape)


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """Axes in another order, reversed if none is given."""
    order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    return shaping.permute_dims(self, tuple(order) or tuple(range(self.ndim))[::-1])


def _adjoint(self: Tensor) -> Tensor:
    """The conjugate transpose; an array of one axis is only conjugated."""
    return elementwise.conj(self if self.ndim < 2 else shaping.matrix_transpose(self))


def _copy(self: Tensor) -> Tensor:
    """A new tensor of the same values; the gradient flows through."""
    return creation.asarray(self, copy=True)


def _fill(self: Tensor, value: Any) -> None:
    """Give every element one value; differentiable in the value."""
    self[...] = value


def _view(self: Tensor, dtype: Any = None) -> Tensor:
    """The same tensor, or its bytes read as another dtype, as NumPy's method.

    Complex numbers viewed as their real and imaginary parts are differentiable; other
    changes of dtype have no gradient.

    Raises:
        DTypeError: a tape watches the tensor, whose gradient would be cut.
    """
    made = self.dtype if dtype is None else backend.as_dtype(dtype)
    if made == self.dtype:
        return self.__copy__()
    is_parts = self.dtype.kind == "c" and made.char == self.dtype.char.lower()
    if self.ndim and is_parts:
        parts = join.stack([elementwise.real(self), elementwise.imag(self)], axis=-1)
        return shaping.reshape(parts, (*self.shape[:-1], 2 * self.shape[-1]))
    try:
        return wrap(devices.copied(self._handed_out("other numbers").view(made)))
    except ValueError as error:
        raise DTypeError(f"view: {self.dtype} {self.shape} as {made}: {error}") from error


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The module gpugrad, as a namespace of the array API standard.

    Raises:
        ArgumentError: a version of the standard that it does not provide.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ArgumentError(
            f"__array_namespace__: no version {api_version!r} of the array API; gpugrad provides "
            f"{', '.join(VERSIONS)}."
        )
    return sys.modules["gpugrad"]


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on another device (itself if it is there); differentiable.

    Args:
        device: a device or its name.
        stream: accepted for the array API's sake; only None.

    Raises:
        ArgumentError: a stream.
    """
    if stream is not None:
        raise ArgumentError("to_device: stream= must be None; copies run on the current stream.")
    d = devices.device(device)
    if d == self.device:
        return self
    return creation.to_device(self, device=d, source=self.device)


Tensor.__getitem__ = _getitem  # type: ignore[method-assign]
Tensor.__setitem__ = _setitem  # type: ignore[method-assign]
Variable.__getitem__ = _variable_getitem  # type: ignore[method-assign,assignment]
for _name, _method in {
    "reshape": _reshape, "transpose": _transpose, "to_device": _to_device,
    "T": property(_transpose), "mT": property(shaping.matrix_transpose),
    "real": property(elementwise.real), "imag": property(elementwise.imag),
    "H": property(_adjoint), "copy": _copy, "diagonal": arrange.diagonal, "fill": _fill,
    "ptp": statistics.ptp, "trace": products.trace, "view": _view, "__divmod__": numeric.divmod_,
    "__rdivmod__": _reflected(numeric.divmod_), "__contains__": _contains,
    "__array_namespace__": _array_namespace, "__dlpack__": dlpack.dlpack,
    "__dlpack_device__": dlpack.dlpack_device,
    "__cuda_array_interface__": property(dlpack.cuda_array_interface),
    "__array_ufunc__": numpy_protocols.OnTheType(numpy_protocols.array_ufunc),
    "__array_function__": numpy_protocols.array_function,
}.items():  # fmt: skip
    setattr(Tensor, _name, _method)
