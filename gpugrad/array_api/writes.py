"""Writes to Tensors: ``x[i] = v`` and ``x += v``.

They follow NumPy: a write to a view reaches the Tensor that owns the elements, and every other view
of it. Arrays are copied on write: recorders, Variables and programs keep the values that they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.backend import READINGS, SCALARS, TENSOR, is_inexact, may_share
from gpugrad.core.convert import constant
from gpugrad.core.from_python import numbers_only
from gpugrad.core.listening import graphs, recorders, threads
from gpugrad.core.tensor import Tensor, index_parts, tensor, tensor_with_id
from gpugrad.core.variable import Variable
from gpugrad.core.views import Element, Shared, View, arranged, sharing
from gpugrad.errors import ArgumentError, DTypeError, NumberOverflowError, ShapeError, reraise
from gpugrad.ops.arrays import index_rules, indexing
from gpugrad.trace.array import current_trace


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value``; in place if nothing is recorded and nobody else holds the array."""
    view = value if type(value) is View else None
    if view is not None and _is_part(view, self, index):
        return  # the second half of `x[index] += v`
    overlaps = type(value) is Shared or (view is not None and view.root is _root(self))
    try:
        if isinstance(value, (list, tuple)) and numbers_only(value):
            try:  # in the dtype of x: 0.1 would change in float32
                value = constant(value, self.dtype, device=self.device)
            except NumberOverflowError:
                raise
            except DTypeError:  # fractions
                value = constant(value, np.float64, device=self.device)
        elif type(value) not in SCALARS:
            value = tensor(value)
        value = whole(value, self.dtype)
        _refuse_read_only(self, value)
        if _needs_new_array(self, index, value):
            _renew(self)
            _replace(self, indexing.setitem(self, value, index=indexing.frozen_index(index)))
            return
        array = value._data if isinstance(value, Tensor) else value
        if overlaps:
            array, value = array.copy(), view  # the memory may be the same
        data = _own(self, view)
        if data is None:
            _replace(self, indexing.setitem(self, value, index=indexing.frozen_index(index)))
            return
        with devices.formulas_on(data):
            index_rules.assign("setitem", READINGS[type(data)], data, array, index)
    except Exception as error:
        reraise(error, "setitem", {"x": self, "value": value}, {"index": index})


def whole(value: Any, dtype: np.dtype[Any]) -> Any:
    """Floats without their fractions, as NumPy writes them to integers."""
    if dtype.kind not in "biu":
        return value
    if type(value) is float:
        return bool(value) if dtype.kind == "b" else int(value)
    is_float = isinstance(value, Tensor) and is_inexact(value.dtype) and value.dtype.kind != "c"
    return TENSOR.astype(value, dtype) if is_float else value


def in_place(op: Callable[..., Any], symbol: str) -> Callable[[Tensor, Any], Tensor]:
    """The method for an augmented assignment such as ``x += v``, which keeps shape and dtype."""

    def method(self: Tensor, other: Any) -> Tensor:
        if type(self) is Element:
            if hasattr(self, "of"):  # the first half of `x[i] += v`, for an older view `x`
                view, index = self.of
                _renew(view)
                self = indexing.getitem(view, index=index)
            return op(self, other)
        begin_write(self, other)
        return write(f"x {symbol}= v", self, op(self, other), f"write x = x {symbol} v")

    return method


def begin_write(x: Any, value: Any = None) -> None:
    """Let recorders see the elements of `x` before a function reads them, and then writes to `x`.

    Those that it keeps have a gradient then, also where `x` is a view that is older than the
    recorders, or where they watch another view of the same elements.
    """
    if type(x) is Tensor:
        if recorders:
            _renew(x)
    elif type(x) is View and (threads.stack or _needs_new_array(x, (), value)):
        _renew(x)


def write(name: str, x: Tensor, result: Any, instead: str = "leave out out=") -> Tensor:
    """Give `x` the values of a result of its shape, as ``out=`` does; returns `x`.

    Args:
        name: what writes, for messages.
        x: the Tensor to write to.
        result: of its shape, and of a dtype of the same kind.
        instead: what to do for a new Tensor, for messages.

    Raises:
        ShapeError, DTypeError: the result has another shape, or a cast to the dtype of `x` would
            change its kind (float to int, complex to float).
    """
    if isinstance(x, Variable):
        raise DTypeError(f"{name}: assign to a Variable with v.assign(value).")
    result = tensor(result)
    if result.shape != x.shape:
        raise ShapeError(
            f"{name}: the result has shape {result.shape} and is written to a Tensor of shape "
            f"{x.shape}. For a new Tensor {instead}."
        )
    if result.dtype != x.dtype:
        floats = is_inexact(x.dtype) and is_inexact(result.dtype) and result.dtype.kind != "c"
        if not (floats or np.can_cast(result.dtype, x.dtype, "same_kind")):
            raise DTypeError(
                f"{name}: the result is {result.dtype} and is written to a Tensor of {x.dtype}. "
                f"For a new Tensor {instead}."
            )
        result = TENSOR.astype(result, x.dtype)
    _refuse_read_only(x, result)
    if type(x) is not Tensor and not _needs_new_array(x, (), result):
        setitem(x, ..., result)
    else:
        _renew(x)
        _replace(x, result)
    return x


def _root(x: Tensor) -> Tensor:
    return x.root if type(x) is View else x


def _is_part(view: View, x: Tensor, index: Any) -> bool:
    """Whether a view is ``x[index]`` and has its elements."""
    if view.parent is not x or view.op.name != "getitem" or index_rules.has_arrays(index):
        return False
    return bool(view.params == (index,))


def _refuse_read_only(x: Tensor, value: Any) -> None:
    """Refuse a write that would not reach what `x` is a view of, or would not be recorded."""
    if type(x) is Element:
        raise ArgumentError(
            "An element x[i] is a number, as in NumPy, and not a view: a write to it would not "
            "reach x. Write x[i] = v; or write to a copy, x[i].copy()."
        )
    owner = x
    for view in x.line if type(x) is View else ():
        if isinstance(view.op.writes, str):
            raise ArgumentError(f"A view by {view.op.name} is read-only: {view.op.writes}.")
        owner = view.parent
    if type(owner) is Shared:
        flags = getattr(owner._data, "flags", None)
        if not getattr(flags, "writeable", True):
            raise ArgumentError(
                "A view of shared memory by broadcast_to, or of a diagonal, is read-only. Write to "
                "a copy: x = x.copy()."
            )
        _refuse_recorded(owner, value)
    elif type(owner) is not Tensor:
        raise DTypeError(
            "This is a view of a Variable's value: assign to the Variable, by v.assign(value) or "
            "v[index].assign(value); or write to a copy, x = x.copy()."
        )


def _refuse_recorded(x: Shared, value: Any) -> None:
    """Refuse a write that recorders must see, since those who share the memory do not."""
    numbers = {x._id, value._id if isinstance(value, Tensor) else 0}
    watched = (weak() for recorder in threads.stack for weak, _ in recorder._views)
    for other in (*watched, *sharing.values()) if threads.stack else ():
        if other is not None and may_share(x._data, _root(other)._data):
            numbers.add(other._id)
    wraps = len(READINGS) > 1 and backend.reading(x._data, getattr(value, "_data", None)).nesting
    if wraps or current_trace() is not None or graphs or _are_known(numbers):
        raise DTypeError(
            "The Tensor shares its memory with another library, with a NumPy array or with another "
            "Tensor, and a write to that cannot be recorded. Write to a copy: x = x.copy()."
        )


def _are_known(numbers: set[int]) -> bool:
    return any(i in recorder.known for recorder in threads.stack for i in numbers)


def _needs_new_array(x: Tensor, index: Any, value: Any) -> bool:
    """Whether a write is an op on a whole array: if it is recorded, traced or inside vmap."""
    root, is_tensor = _root(x), isinstance(value, Tensor)
    if type(root) is Shared:
        return False
    if root._id or x._id or (is_tensor and value._id) or graphs or current_trace() is not None:
        return True
    if is_tensor and value.device != x.device:
        return True
    if len(READINGS) > 1:
        parts = [root._data, getattr(value, "_data", None), *index_parts(index)]
        return bool(backend.reading(*parts).nesting)
    return False


def _renew(x: Tensor) -> None:
    """Let recorders see what the elements of `x` are, before a write that they record.

    A view that is watched has elements of its own: they are written to its root. A view that is
    older than a recorder runs its op again.
    """
    root = _root(x)
    for recorder in threads.stack:
        for weak, serial in recorder._views:
            view = weak()
            if type(view) is View and view.root is root and view.is_number(serial):
                for each in view.line[1:]:
                    each.forget()
                _replace(view, tensor_with_id(view._array, serial))
    if type(x) is not View:
        return
    unknown = any(root._id in r.known and x._id not in r.known for r in threads.stack)
    if unknown or not all(v.is_linked for v in x.line):
        for each in x.line:
            each.forget()


def _replace(x: Tensor, result: Tensor) -> None:
    """Give `x` another value, and the Tensor that it is a view of."""
    while type(x) is View:
        result = x.op.writes(TENSOR, x.parent, result, **x.named)
        x = x.parent
    trace = current_trace()
    if trace is not None:
        trace.writes(x)
    x._data, x._id = _in_order_of(x, result)._data, result._id


def _in_order_of(x: Tensor, result: Tensor) -> Tensor:
    """The result with the memory order of `x`, which a write to its elements keeps."""
    before: Any = x._data
    if before.ndim < 2 or READINGS[type(before)].nesting:
        return result
    order = "C" if before.flags.c_contiguous else "F" if before.flags.f_contiguous else "K"
    return arranged(result, order)


def _own(x: Tensor, value: View | None) -> Any:
    """The array of `x` to write to, copied first if others than `x` and its root hold the memory.

    A view that is written to it may hold the memory, too.

    Returns:
        None if the view's op copies, so that a write to its array would not reach the root.
    """
    views, root = set(x.line if type(x) is View else ()), _root(x)
    if value is not None and value.root is root:
        views.update(value.line)
    root._own(views)
    data = x._data
    shares = data is root._data or data.base is root._data
    return data if shares else None
