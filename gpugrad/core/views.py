"""Tensors whose memory is not theirs alone: views of Tensors, and memory that others write to."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Collection
from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.for_shapes import for_shapes
from gpugrad.core.listening import recorders, threads
from gpugrad.core.tensor import Tensor, new, next_id, tensor_with_id, wrap
from gpugrad.errors import ArgumentError


class View(Tensor):
    """A Tensor of elements of another one: writes to either show in both, as in NumPy.

    A write may give the root a new array. The view then runs its op again, when it is next read,
    so that recorders see where its elements come from.

    Attributes:
        parent: the Tensor, View or Variable that the op was called with.
        op, params: the record of the op, and its parameters.
        root: the Tensor that owns the elements.
    """

    __slots__ = ("_late", "_seen", "op", "params", "parent", "root")

    _seen: Any  # the root's array when this view's was computed
    _late: int  # the serial number, if a recorder that had not seen the op gave it
    parent: Tensor
    op: Any
    params: tuple[Any, ...]
    root: Tensor

    @property
    def named(self) -> dict[str, Any]:
        """The parameters by name."""
        return dict(zip(self.op.params, self.params, strict=True))

    def _refresh(self) -> None:
        if hasattr(self.root._data, "donated"):  # the view keeps its elements
            self._seen = self.root._data
            return
        fresh = self.op.eager(self.parent, **self.named)
        if type(fresh) is View:  # not `fresh._data`: of a Shared root it would run the op again
            self._array, self._number = fresh._array, fresh._number
        else:
            self._array = fresh._data
            if not any(self._number in recorder.known for recorder in threads.stack):
                self._number = fresh._id  # a watched view keeps its own
        self._seen = None if type(self.root) is Shared else self.root._data
        for recorder in threads.stack:
            recorder.refreshed(self)

    def is_number(self, serial: int) -> bool:
        """Whether it has the elements that got that serial number."""
        return self._number == serial and self._seen is self.root._data

    def _numbered(self) -> None:
        self._late = self._number

    @property
    def is_linked(self) -> bool:
        """Whether recorders that know its number may know what it is a view of."""
        return self._number == 0 or getattr(self, "_late", 0) != self._number

    def forget(self) -> None:
        """Run the op again when the view is next read."""
        self._seen = None

    @property
    def _data(self) -> Any:
        if self.root._data is not self._seen:
            self._refresh()
        return self._array

    @_data.setter
    def _data(self, array: Any) -> None:
        self._array, self._seen = array, self.root._data

    @property
    def _id(self) -> int:
        if self.root._data is not self._seen:
            self._refresh()
        return self._number

    @_id.setter
    def _id(self, serial: int) -> None:
        self._number = serial

    def _read(self) -> Tensor:
        data = self._data
        if recorders and type(self.root) is Shared:
            data = devices.copy_array(data)
        return tensor_with_id(data, self._id)

    def _glance(self) -> Tensor:
        return tensor_with_id(self._data, self._id)

    def _kept(self) -> Any:
        return devices.copy_array(self._data) if type(self.root) is Shared else self._data

    @property
    def line(self) -> list[View]:
        """The view, the view that it is a view of, and so on."""
        views, v = [], self
        while isinstance(v, View):
            views.append(v)
            v = v.parent  # type: ignore[assignment]
        return views


class Element(Tensor):
    """The Tensor ``x[i]`` of one element: a number in NumPy, and not a view.

    Attributes:
        of: the View `x` and the index, if there was a recorder, which may not know `x`.
    """

    __slots__ = ("of",)

    of: tuple[View, Any]

    def _read(self) -> Tensor:
        return self


class Shared(Tensor):
    """A Tensor of memory that others may write to, for example another library's array.

    What a recorder may save of it is copied. A write goes to the memory, where all see it.
    """

    __slots__ = ()

    def _read(self) -> Tensor:
        data = devices.copy_array(self._data) if recorders else self._data
        return tensor_with_id(data, self._id)

    def _glance(self) -> Tensor:
        return tensor_with_id(self._data, self._id)

    def _kept(self) -> Any:
        return devices.copy_array(self._data)

    def _own(self, views: Collection[View] = ()) -> Any:
        return self._data


sharing: weakref.WeakValueDictionary[int, Shared] = weakref.WeakValueDictionary()
"""Every Shared Tensor, by its id."""


def share(array: Any) -> Tensor:
    """A Tensor around an array to which others may write."""
    if type(array) is np.ndarray and not array.flags.writeable:
        return wrap(array)
    return _shared(array)


def _shared(array: Any) -> Tensor:
    t = new(Shared)
    t._data, t._id = array, next_id()
    sharing[id(t)] = t
    return t


def arranged(x: Tensor, order: str | None, copy: bool = False) -> Tensor:
    """The Tensor with its elements in a memory order; another Tensor of the same value if needed.

    Args:
        x: the Tensor.
        order: ``"C"``, ``"F"``, ``"A"`` (F if `x` is in F order, else C), or the order that it has:
            ``"K"`` or None.
        copy: whether to copy in any case.

    Raises:
        ArgumentError: there is no such order.
    """
    kind = "K" if order is None else str(order)[:1].upper()
    if kind not in tuple("CFAK"):
        raise ArgumentError(f"order={order!r} is not 'C', 'F', 'A' or 'K'.")
    data = x._data
    if backend.READINGS[type(data)].nesting:  # its library chooses the order
        return x.__copy__() if copy else x
    flags = data.flags
    if kind == "A":
        kind = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    fits = kind == "K" or (flags.f_contiguous if kind == "F" else flags.c_contiguous)
    if fits and not copy:
        return x
    result = x.__copy__()  # the serial number is that of the value
    with devices.formulas_on(data):
        lib: Any = backend.READINGS[type(data)]
        result._data = lib.lib.array(data, order=kind)
    return result


def _is_element(index: Any) -> bool:
    """Whether an index is ints only: of a whole element NumPy returns a number, not a view."""
    return {int}.issuperset(map(type, index if type(index) is tuple else (index,)))


def _element(array: Any, parent: Any, index: Any) -> Element:
    t = new(Element)
    t._data, t._id = array, 0
    if recorders and type(parent) is View:
        t.of = parent, index
    return t


def _shares(array: Any, of: Any) -> bool:
    base = array.base
    return array is of or (base is not None and (base is of or base is of.base))


def _shares_in_rows(parent: Tensor, op: Any, params: tuple[Any, ...]) -> bool:
    """Whether an op is a view if the root's elements lie in row-major order.

    NumPy's reshape copies if the memory does not allow a view. A user does not see the order of the
    elements in memory, which a traced function changes: whether a write reaches the root must not
    depend on it.
    """
    line = parent.line[::-1] if isinstance(parent, View) else []
    shape = parent.root.shape if isinstance(parent, View) else parent.shape
    steps = (*((v.op, v.params) for v in line), (op, params))
    cached = all(map(_is_plain, (values for _, values in steps)))
    return (_is_view_in_rows if cached else _is_view_in_rows.__wrapped__)(shape, steps)


def _is_plain(params: Any) -> bool:
    """Whether parameters are equal only if they mean the same, and hold no arrays."""
    if type(params) is tuple:
        return all(map(_is_plain, params))
    return params is None or type(params) in (int, str)


@functools.lru_cache(1024)  # a copy, which NumPy makes here, takes time
def _is_view_in_rows(shape: tuple[int, ...], steps: tuple[tuple[Any, Any], ...]) -> bool:
    """Whether ops of a new array return a view of it."""
    array = root = np.empty(shape, bool)
    for each, values in steps:
        if each.kind == "elementwise":
            array = root = np.empty(array.shape, bool)
        else:
            with for_shapes():
                array = each.bare(backend.NUMPY)(
                    array, **dict(zip(each.params, values, strict=True))
                )
    # windows have a base of their own; an array without elements has no memory to share
    return _shares(array, root) or np.may_share_memory(array, root)


def view_or_copy(array: Any, of: Any, parent: Any, op: Any, params: tuple[Any, ...]) -> Tensor:
    """The result of an op: a View of `parent`, whose array is `of`, unless the op has copied."""
    wraps = array.base is True
    if not array.ndim and op.name == "getitem" and _is_element(*params):
        return _element(array, parent, *params)
    if not isinstance(parent, Tensor):
        return wrap(array)
    root = parent.root._data if type(parent) is View else of
    # the real and imaginary parts are views in NumPy; so are all views that are read-only
    if op.kind == "elementwise" or isinstance(op.writes, str):
        shares = True
    elif op.name != "getitem" and (wraps or not root.flags.c_contiguous):
        shares = _shares_in_rows(parent, op, params)
    else:
        shares = _shares(backend.innermost_array(array), backend.innermost_array(of))
    if not shares:
        return wrap(array)
    if type(parent) is Shared:  # also of an array that is only read, as a broadcast one
        return _shared(array)
    out = new(View)
    out._array, out._number, out.parent, out.op, out.params = array, 0, parent, op, params
    if type(parent) is Tensor:
        out.root, out._seen = parent, of
    elif type(parent) is View:
        out.root, out._seen = parent.root, parent._seen
    else:  # the value of a Variable now
        out.root, out._seen = wrap(of), of
    return out
