"""Creation functions with NumPy's arguments: floats are float64, `order` is that of the memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad import ops  # noqa: F401  # the ops that creation of Tensors from Tensors calls
from gpugrad.array_api.numpy_adapters import laid_out
from gpugrad.core.backend import SCALARS, TENSOR, as_dtype, is_array
from gpugrad.core.devices import adopt, default_device, device
from gpugrad.core.holders import opened
from gpugrad.core.tensor import Tensor, holds_tensor, wrap
from gpugrad.core.views import arranged
from gpugrad.errors import ArgumentError, DTypeError, reraise
from gpugrad.ops.arrays import creation


class _IsTensor(type):
    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, Tensor)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, Tensor)


class ndarray(Tensor, metaclass=_IsTensor):
    """The type of Tensors, for `isinstance`; called with a shape it makes one, as `empty`.

    >>> import gpugrad.numpy as np
    >>> isinstance(np.ndarray((2, 3), "f4", order="F"), np.ndarray)
    True
    """

    __slots__ = ()

    def __new__(  # type: ignore[misc]  # a Tensor, which needs no __init__
        cls, shape: Any, dtype: Any = float, *, order: str = "C", device: Any = None
    ) -> Tensor:
        """A Tensor of zeros."""
        return empty(shape, dtype, order, device=device)


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
    device: Any = None,
) -> Tensor:
    """A Tensor of anything that NumPy's ``array`` takes; of Tensors, recorded.

    Args:
        object: number, nested lists (also with Tensors in them), array or Tensor.
        dtype: of the result; a cast is unsafe, as NumPy's.
        copy: True copies, None copies if that is needed, False raises if that is needed.
        order: of the memory: ``"C"``, ``"F"``, ``"A"`` or ``"K"``.
        ndmin: the least number of axes; axes of length 1 are put first.
        subok, like: without effect.
        device: the default device if None.

    >>> import gpugrad.numpy as np
    >>> np.array(1.5, ndmin=2)
    Tensor([[1.5]], shape=(1, 1), dtype=float64, device=cpu)
    """
    is_plain = dtype is None and order == "K" and not ndmin and device is None
    if is_plain and not copy and type(object) is Tensor:
        return object
    object = opened(object, dtype)
    if holds_tensor(object) or _is_foreign(object):
        x = _of_tensors(object, dtype, copy, device)
    elif copy is False:
        x = creation.asarray(object, dtype=dtype, device=device, copy=False)
    else:
        x = wrap(adopt(_of_numbers(object, dtype, order), _device(device)))
    if x.ndim < ndmin:
        x = TENSOR.reshape(x, (1,) * (ndmin - x.ndim) + x.shape)
    return x if order == "K" else arranged(x, order)


_NUMPY_READS = frozenset((np.ndarray, list, tuple, *SCALARS))


def _is_foreign(value: Any) -> bool:
    """Whether NumPy cannot read an array, as one on a GPU."""
    if type(value) in _NUMPY_READS:
        return False
    return is_array(value) or hasattr(value, "__dlpack__")


def _of_tensors(value: Any, dtype: Any, copy: bool | None, on: Any) -> Tensor:
    if isinstance(value, (list, tuple)):
        items = [_of_tensors(v, None, None, on) for v in value]
        return creation.asarray(TENSOR.stack(items), dtype=dtype, device=on)
    value = opened(value)
    if not isinstance(value, Tensor) and not _is_foreign(value):
        return wrap(adopt(_of_numbers(value, dtype, "K"), _device(on)))
    real = dtype is not None and as_dtype(dtype).kind != "c"
    if real and isinstance(value, Tensor) and value.dtype.kind == "c":
        value = TENSOR.real(value)
    return creation.asarray(value, dtype=dtype, device=on, copy=copy)


def _of_numbers(value: Any, dtype: Any, order: Any) -> np.ndarray[Any, Any]:
    try:
        result = np.array(value, dtype=None if dtype is None else as_dtype(dtype), order=order)
    except Exception as error:
        reraise(error, "array", {}, {"object": value, "dtype": dtype})
    if result.dtype.kind not in "biufcV":
        raise DTypeError(f"numpy.array: elements of dtype {result.dtype} are not numbers.")
    return result


def _device(on: Any) -> Any:
    return default_device() if on is None else device(on)


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Tensor:
    """A Tensor; `a` itself if it is one of that dtype and order. Arguments as `array`."""
    return array(a, dtype, copy=copy, order=order or "K", device=device)


asanyarray = asarray


def asarray_chkfinite(a: Any, dtype: Any = None, order: str | None = None) -> Tensor:
    """`asarray`, which raises ArgumentError if an element is infinite or NaN."""
    x = asarray(a, dtype, order)
    if x.dtype.kind in "fc" and not bool(TENSOR.all(TENSOR.isfinite(x))):
        raise ArgumentError("numpy.asarray_chkfinite: the array must not contain infs or NaNs.")
    return x


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Tensor:
    """A Tensor of at least one axis with its elements in row-major order."""
    return array(a, dtype, copy=None, order="C", ndmin=1)


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Tensor:
    """A Tensor with its elements in column-major order."""
    return array(a, dtype, copy=None, order="F")


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Tensor:
    """A Tensor that meets requirements: ``"C"`` or ``"F"`` order; it always owns what it writes."""
    known = {"C": "C", "F": "F", "CONTIGUOUS": "C", "FORTRAN": "F"}
    known |= {"C_CONTIGUOUS": "C", "F_CONTIGUOUS": "F"}
    wanted = {known.get(str(r).upper(), str(r).upper()) for r in requirements or ()}
    if {"C", "F"} <= wanted:
        raise ArgumentError("numpy.require: the order cannot be both C and F.")
    order = "C" if "C" in wanted else "F" if "F" in wanted else "A"
    return array(a, dtype, copy=True if wanted & {"O", "OWNDATA"} else None, order=order)


def _new(name: str, shape: Any, value: Any, dtype: Any, order: str | None, on: Any) -> Tensor:
    if type(shape) in (int, tuple) and order == "C" and type(value) is int and on is None:
        make = creation.ones if value else creation.zeros
        return make(shape, dtype or float)
    order = "C" if order is None else str(order).upper()
    if order not in ("C", "F"):
        raise ArgumentError(f"numpy.{name}: order={order!r} is not 'C' or 'F'.")
    lengths = shape.tolist() if hasattr(shape, "tolist") else shape
    lengths = tuple(lengths) if isinstance(lengths, (list, tuple, range)) else (lengths,)
    axes = range(len(lengths))
    return laid_out(lengths, value, dtype or float, on, axes[::-1] if order == "F" else axes)


def zeros(
    shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
) -> Tensor:
    """A Tensor of zeros."""
    return _new("zeros", shape, 0, dtype, order, device)


def ones(
    shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Tensor:
    """A Tensor of ones."""
    return _new("ones", shape, 1, dtype, order, device)


def empty(
    shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
) -> Tensor:
    """A Tensor to be filled; here its values are zeros."""
    return _new("empty", shape, 0, dtype, order, device)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tensor:
    """A Tensor of one value, or of an array that broadcasts to the shape."""
    value = asarray(fill_value, dtype, device=device)
    plain = value if isinstance(fill_value, Tensor) or value.ndim else value.numpy()[()]
    return _new("full", shape, plain, value.dtype, order, device)
