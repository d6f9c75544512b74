"""Hangs the ops on Tensor.

An op whose first argument is the tensor is the method itself: no wrapper frame on the way.
"""

from __future__ import annotations

from typing import Any

from gpugrad import backend
from gpugrad.backend import SCALARS
from gpugrad.errors import reraise
from gpugrad.ops import (
    arranging,
    comparison,
    creation,
    elementwise,
    gathering,
    indexing,
    products,
    reduction,
    shaping,
    sorting,
)
from gpugrad.recorder import graphs
from gpugrad.tensor import Tensor, new, tensor
from gpugrad.variable import Variable, VariableSlice

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
    "clip": comparison.clip, "repeat": arranging.repeat, "argsort": sorting.argsort,
    "take": gathering.take, "round": comparison.round_,
}.items():  # fmt: skip
    setattr(Tensor, _name, _op)


def _getitem(self: Tensor, index: Any) -> Tensor:
    return indexing.getitem(self, index=indexing.frozen_index(index))


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
        value = value if type(value) in SCALARS else tensor(value)
    except Exception as error:
        reraise(error, "setitem", {"x": self, "value": value}, {"index": index})
    recorded = self._id or graphs or (isinstance(value, Tensor) and value._id)
    if recorded or (isinstance(value, Tensor) and value.device != self.device):
        made = indexing.setitem(self, value, index=indexing.frozen_index(index))
        self._data, self._id = made._data, made._id
        return
    given = value._data if isinstance(value, Tensor) else value
    data = self._own()
    try:
        with backend.formulas_on(data):
            indexing.assign("setitem", backend.NAMESPACES[type(data)], data, given, index)
    except Exception as error:
        reraise(error, "setitem", {"x": self, "value": value}, {"index": index})


def _reshape(self: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape, given as one tuple or as numbers."""
    return shaping.reshape(self, shape[0] if len(shape) == 1 else shape)


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """Axes in another order, reversed if none is given."""
    order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    return shaping.permute_dims(self, tuple(order) or tuple(range(self.ndim))[::-1])


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on another device (itself if it is there); differentiable.

    Args:
        device: a device or its name.
        stream: accepted for the array API's sake; only None.
    """
    d = backend.device(device)
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
}.items():  # fmt: skip
    setattr(Tensor, _name, _method)
