"""Variable: a Tensor whose value can be replaced."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

from gpugrad.core import backend, devices, settings
from gpugrad.core.backend import TENSOR, as_array, innermost_array, is_inexact
from gpugrad.core.convert import constant
from gpugrad.core.format import format_values
from gpugrad.core.from_python import no_part_lost, no_value_lost, numbers_only
from gpugrad.core.holders import opened
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.listening import current_stack, recorders, threads
from gpugrad.core.replaceable import Replaceable
from gpugrad.core.scopes import scopes, updating
from gpugrad.core.tensor import Tensor, new, next_id, tensor
from gpugrad.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    GpugradError,
    ShapeError,
    describe,
    reraise,
    saying_where,
)

_ANY = object()


class Variable(Replaceable):
    """A Tensor whose value can be replaced, and that tapes watch automatically.

    Args:
        initial_value: a number, lists, an array, a Tensor, or a function that returns one.
        trainable: whether tapes watch it on first use.
        name: for messages.
        dtype: the Variable's dtype; by default the value's.
        shape: the shape of values that may be assigned; None stands for an axis of any length, and
            ``shape=None`` allows any shape. The default is the initial value's shape.

    >>> v = gg.Variable(2.0)
    >>> v.assign_add(1.0).numpy().item()
    3.0
    """

    __slots__ = ("_created_trainable", "_fits", "_name", "_trainable")

    @saying_where
    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        shape: Any = _ANY,
        *,
        device: Any = None,
    ) -> None:
        if callable(initial_value) and not isinstance(initial_value, Tensor):
            initial_value = initial_value()
        if initial_value is None:
            raise ArgumentError("Variable: an initial_value is needed.")
        if isinstance(initial_value, Tensor) and device is None:
            device = initial_value.device
        data = constant(initial_value, dtype, device=device)._data
        self._id = next_id()
        self._value = innermost_array(data) if scopes else data  # without what a trace puts around
        self._data = data
        self._name = name or f"Variable_{self._id}"
        self._trainable = self._created_trainable = bool(trainable)
        self._fits = data.shape if shape is _ANY else shape
        self._check_shape("Variable", data.shape)
        for recorder in threads.stack:
            recorder._made(self)

    @property
    def name(self) -> str:
        """The name; by default one with a serial number, in a `gg.nn.Module` the path."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def trainable(self) -> bool:
        """Whether tapes watch the Variable on first use; may be set.

        A traced function is traced again for other settings of its Variables.

        >>> v = gg.Variable(1.0)
        >>> v.trainable = False
        >>> with gg.GradientTape() as tape:
        ...     y = v * 2
        >>> tape.watched_variables()
        ()
        """
        return self._trainable

    @trainable.setter
    def trainable(self, on: bool) -> None:
        if on != self._trainable:
            self._trainable = bool(on)
            settings.switch_trainable(self._id)

    @property
    def created_trainable(self) -> bool:
        """Whether the Variable was trainable when it was created."""
        return self._created_trainable

    def _read(self) -> Tensor:
        """The current value under the Variable's serial number, for an op.

        A Tensor that the caller keeps needs its own number: see `value`. Under the Variable's, an
        old value would be differentiated as if it were a function of the new one.
        """
        if recorders:
            stack = current_stack()
            if stack.thread == get_ident():
                for recorder in stack:
                    recorder.touched(self)
        t = new(Tensor)
        try:
            t._data = self._data if scopes else self._value
        except AttributeError:  # as in `_data`
            t._data = self._data
        t._id = self._id
        return t

    def _values(self) -> Any:
        if scopes and get_ident() in scopes:
            return self._read()._data  # so that a trace knows of it
        return self._data

    def value(self) -> Tensor:
        """A Tensor of the current value; a later assign does not change it.

        If a recorder that is active now watches the Variable, the gradient flows through; for other
        recorders the Tensor is a constant.
        """
        if recorders and threads.stack:
            return TENSOR.reshape(self, self._data.shape)  # a view
        t = self._read()
        t._id = 0
        return t

    read_value = _snapshot = value

    def _check_shape(self, op: str, shape: tuple[int, ...]) -> None:
        fits = self._fits
        if fits is not None and (
            len(fits) != len(shape)
            or any(a not in (None, b) for a, b in zip(fits, shape, strict=True))
        ):
            raise ShapeError(
                f"{op}: the value has shape {shape}, the Variable '{self._name}' {fits}. "
                "Variables do not broadcast; reshape the value, or create the Variable with shape=."
            )

    def _fit(self, op: str, value: Any) -> Any:
        """A plain array of `value` with the Variable's dtype, on its device."""
        for recorder in threads.stack:
            recorder.assigned(self)
        own, value = self._data, opened(value)
        if isinstance(value, IndexedSlices):
            value = value.to_dense()
        if isinstance(value, Tensor) and backend.READINGS[type(value._data)].nesting > 1:
            raise ArgumentError(
                f"{op}: under vmap the value differs between examples, and the Variable "
                f"'{self._name}' has one value. Return it from the function and assign outside."
            )
        if isinstance(value, Tensor):
            if isinstance(value, Variable):
                value = value._read()  # so that tapes see it
            if value.dtype != own.dtype:
                raise DTypeError(
                    f"{op}: the value is {value.dtype}, the Variable '{self._name}' {own.dtype}. "
                    "Cast it with gg.astype(x, dtype)."
                )
            if value.device != devices.device_of(own):
                raise DeviceError(
                    f"{op}: the value is on {value.device}, the Variable '{self._name}' on "
                    f"{self.device}. Move it with x.to_device(device)."
                )
            for recorder in threads.stack:
                recorder.barrier(op, (value._id,), self._id)
            data = value._kept()
        else:
            # 0.1 as float64 differs from 0.1 as float32
            dtype = own.dtype if is_inexact(own.dtype) else None
            try:
                data = constant(value, dtype, device=self.device)._data
            except GpugradError as error:
                reraise(error, op, {}, {})
            if is_inexact(data.dtype) and not is_inexact(own.dtype):
                described = describe({"value": value})
                raise DTypeError(
                    f"{op}: {described} does not fit the {own.dtype} Variable '{self._name}'."
                )
            if numbers_only(value):
                no_value_lost(op, data, own.dtype)
            with devices.formulas_on(data):
                data = data.astype(no_part_lost(op, data.dtype, own.dtype), copy=False)
        return data

    def assign(
        self, value: Any, use_locking: Any = None, name: Any = None, read_value: bool = True
    ) -> Variable | None:
        """Replace the value by one of the same shape and dtype; no gradient flows through.

        Raises:
            ShapeError, DTypeError, DeviceError: the value does not fit; nothing is changed.
        """
        data = self._fit("assign", value)
        self._check_shape("assign", data.shape)
        with updating:
            self._data = data  # perhaps shared: nobody writes to an array that others can see
        return self if read_value else None

    def _update(self, op: str, value: Any, step: Callable[[Any, Any], Any], read: bool) -> Any:
        data = self._fit(op, value)
        if data.shape != self.shape:
            self._check_shape(op, data.shape)
            raise ShapeError(f"{op}: the value has shape {data.shape}, the Variable {self.shape}.")
        with updating:
            try:
                with devices.formulas_on(data):
                    result = step(self._data, data)
            except Exception as error:
                reraise(error, op, {"variable": self, "value": value}, {})
            self._data = as_array(result, type(data))  # NumPy's 0-d sums are scalars
        return self if read else None

    def assign_add(
        self, delta: Any, use_locking: Any = None, name: Any = None, read_value: bool = True
    ) -> Any:
        """Add a value of the same shape and dtype; raises as `assign` does."""
        return self._update("assign_add", delta, lambda a, b: a + b, read_value)

    def assign_sub(
        self, delta: Any, use_locking: Any = None, name: Any = None, read_value: bool = True
    ) -> Any:
        """Subtract a value of the same shape and dtype; raises as `assign` does."""
        return self._update("assign_sub", delta, lambda a, b: a - b, read_value)

    def _scatter(self, op: str, slices: IndexedSlices, how: str) -> Variable:
        if not isinstance(slices, IndexedSlices):
            raise DTypeError(f"{op}: IndexedSlices are needed, got {type(slices).__name__}.")
        values, indices = self._fit(op, slices.values), tensor(slices.indices)
        if indices.device != self.device:
            raise DeviceError(
                f"{op}: the Variable is on {self.device}, the indices on {indices.device}. Move "
                "them with x.to_device(device)."
            )
        xp = backend.reading(self._data, values)
        with updating:
            try:
                self._data = getattr(xp, how)(self._data, values, index=indices._data)
            except Exception as error:
                reraise(error, op, {"variable": self, "values": slices.values}, {})
        return self

    def scatter_add(  # type: ignore[override]  # TensorFlow's method, not CuPy's
        self, slices: IndexedSlices
    ) -> Variable:
        """Add rows; a row named twice is added twice."""
        return self._scatter("scatter_add", slices, "index_add")

    @saying_where
    def scatter_sub(self, slices: IndexedSlices) -> Variable:
        """Subtract rows; a row named twice is subtracted twice."""
        return self._scatter("scatter_sub", -slices, "index_add")

    def scatter_update(self, slices: IndexedSlices) -> Variable:
        """Replace rows."""
        return self._scatter("scatter_update", slices, "index_put")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise DTypeError("Assign to elements of a Variable with v[index].assign(value).")

    def _no_inplace(self, other: Any) -> Any:
        raise DTypeError(
            "`variable += value` would replace the Variable by a Tensor: use "
            "variable.assign_add(value), or write `x = variable + value` for a new Tensor."
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = _no_inplace
    __ipow__ = __imatmul__ = __iand__ = __ior__ = __ixor__ = _no_inplace

    def __copy__(self) -> Variable:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        v = new(Variable)
        v._id, data = next_id(), self._data
        v._value = innermost_array(data) if scopes else data
        v._data = data
        v._name, v._fits = self._name, self._fits
        v._trainable, v._created_trainable = self._trainable, self._created_trainable
        return v

    def __reduce__(self) -> Any:
        values = devices.host(self._data)
        trainable = self._trainable, self._created_trainable
        return _unpickle_variable, (values, str(self.device), trainable, self._name, self._fits)

    def __repr__(self) -> str:
        return (
            f"Variable({format_values(self._data, prefix='Variable(')}, shape={self.shape}, "
            f"dtype={self.dtype}, device={self.device}, name='{self._name}')"
        )


def _unpickle_variable(
    values: Any, device: str, trainable: tuple[bool, bool], name: str, fits: Any
) -> Variable:
    v = Variable(values, trainable[0], name, shape=fits, device=device)
    v._created_trainable = trainable[1]
    return v


class VariableSlice(Tensor):
    """The Tensor ``v[index]``, which can also assign to that part of the Variable."""

    __slots__ = ("_index", "_variable")

    _index: Any
    _variable: Variable

    def assign(self, value: Any) -> Variable:
        """Set this part of the Variable; the value broadcasts to it."""
        variable = self._variable
        data = variable._fit("assign", value)
        xp = backend.reading(variable._data, data)
        with updating:
            try:
                variable._data = xp.setitem(variable._data, data, index=self._index)
            except Exception as error:
                reraise(error, "assign", {"part": self, "value": data}, {})
        return variable
