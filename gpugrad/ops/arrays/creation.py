"""Functions that create tensors, with the array API's names."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.backend import TENSOR
from gpugrad.core.convert import constant
from gpugrad.core.dlpack import from_cuda_memory, from_dlpack
from gpugrad.core.from_python import no_part_lost
from gpugrad.core.holders import opened
from gpugrad.core.known_as import answering
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import Tensor, argument, holds_tensor, tensor, wrap
from gpugrad.core.views import share
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, reraise, saying_where
from gpugrad.registry.record import op

Shape = int | tuple[int, ...] | list[int]


def _new(values: np.ndarray[Any, Any], device: Any) -> Tensor:
    d = devices.device(device)
    return wrap(values if d.kind == "cpu" else devices.put(values, d))


def _length(name: str, what: str, n: Any) -> int:
    """`n` as an int that is not negative."""
    try:
        length = operator.index(n)
    except TypeError:
        raise ArgumentError(f"{name}: {what} must be an int, got {n!r:.60}.") from None
    if length < 0:
        raise ShapeError(f"{name}: {what} must not be negative, got {n}.")
    return length


_INTS = frozenset((int,))


def _as_shape(name: str, shape: Any) -> tuple[int, ...]:
    if type(shape) is tuple and _INTS.issuperset(map(type, shape)) and min(shape, default=0) >= 0:
        return shape
    several = isinstance(shape, (tuple, list)) or getattr(shape, "ndim", 0) != 0
    lengths = shape if several else (shape,)
    return tuple(_length(name, f"in shape={shape!r:.60}, a length", n) for n in lengths)


def _full(name: str, shape: Shape, value: Any, dtype: Any, device: Any) -> Tensor:
    """One value everywhere, created on the device itself, without a copy on the host."""
    d, dtype = devices.device(device), backend.as_dtype(np.float32 if dtype is None else dtype)
    shape = _as_shape(name, shape)
    if d.kind == "cpu" and type(value) is int and value in (0, 1):  # numbers of every dtype
        try:
            if not value:
                return wrap(np.zeros(shape, dtype))
            array = np.empty(shape, dtype)  # np.ones takes twice as long
            array.fill(1)
            return wrap(array)
        except (MemoryError, ValueError) as error:
            reraise(error, name, {}, {"shape": shape, "dtype": dtype, "device": d})
    empty_array = devices.put(np.zeros(0, dtype), d)
    with devices.formulas_on(empty_array):
        try:
            return wrap(backend.READINGS[type(empty_array)].lib.full(shape, value, dtype=dtype))
        except (MemoryError, OverflowError, ValueError) as error:
            reraise(error, name, {}, {"shape": shape, "dtype": dtype, "device": d})


_zeros = functools.partial(_full, "zeros_like", value=0)


@answering
def zeros(shape: Shape, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor of zeros.

    Args:
        shape: int or tuple of ints.
        dtype: float32 if None.
        device: the default device if None.

    >>> print(gg.zeros(2))
    [0. 0.]
    """
    return _full("zeros", shape, 0, dtype, device)


@answering
def ones(shape: Shape, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor of ones; arguments as `zeros`.

    >>> print(gg.ones(2))
    [1. 1.]
    """
    return _full("ones", shape, 1, dtype, device)


@answering
def empty(shape: Shape, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make an uninitialised Tensor; here its values are zeros. Arguments as `zeros`.

    >>> gg.empty((2, 3)).shape
    (2, 3)
    """
    return _full("empty", shape, 0, dtype, device)


@saying_where
def full(shape: Shape, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor with one value everywhere.

    Args:
        shape: int or tuple of ints.
        fill_value: a number, or a 0-d Tensor, which receives gradients.
        dtype: the dtype of the value if None.
        device: if None the default device, or the device of a Tensor.

    Raises:
        ShapeError: `fill_value` is more than one number.
        DTypeError: the value is complex for a real dtype, or not finite for integers.

    >>> print(gg.full(2, 7.0))
    [7. 7.]
    """
    fill_value = opened(fill_value, dtype)
    if isinstance(fill_value, Tensor):
        value = asarray(fill_value, dtype=dtype, device=device)
    else:
        value = constant(fill_value, None, device="cpu")
    if value.ndim:
        raise ShapeError(f"full: fill_value must be one number, its shape is {value.shape}.")
    if isinstance(fill_value, Tensor):
        return TENSOR.broadcast_to(value, shape).copy()
    dtype = value.dtype if dtype is None else backend.as_dtype(dtype)
    no_part_lost("full", value.dtype, dtype)
    if dtype.kind in "iu" and not np.isfinite(value.numpy()):
        raise DTypeError(f"full: {fill_value} cannot be represented in {dtype}.")
    return _full("full", shape, fill_value, dtype, device)


def _like(name: str, make: Any, x: Any, *value: Any, dtype: Any, device: Any) -> Tensor:
    """The result of `make` for the shape, and where nothing else is said the rest, of `x`."""
    x = x if type(x) is Tensor else argument(name, x)
    dtype, device = x.dtype if dtype is None else dtype, x.device if device is None else device
    return make(x.shape, *value, dtype=dtype, device=device)


@answering
def zeros_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make zeros with the shape, dtype and device of another array.

    >>> print(gg.zeros_like([1.0, 2.0]))
    [0. 0.]
    """
    return _like("zeros_like", _zeros, x, dtype=dtype, device=device)


@answering
def ones_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make ones with the shape, dtype and device of another array.

    >>> print(gg.ones_like([1.0, 2.0]))
    [1. 1.]
    """
    return _like("ones_like", ones, x, dtype=dtype, device=device)


@answering
def empty_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor of zeros with the shape, dtype and device of another array.

    >>> gg.empty_like([1.0, 2.0]).shape
    (2,)
    """
    return zeros_like(x, dtype=dtype, device=device)


@answering
def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor of one value with the shape, dtype and device of another array.

    >>> print(gg.full_like([1.0, 2.0], 7))
    [7. 7.]
    """
    return _like("full_like", full, x, fill_value, dtype=dtype, device=device)


@saying_where
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Make evenly spaced values from `start` up to, but not including, `stop`.

    Args:
        start, stop, step: numbers; a single one is `stop`, and `start` is 0.
        dtype: int64 if all are ints, else float32.
        device: the default device if None.

    Raises:
        ArgumentError: `step` is 0.
        DTypeError: one of them is not a number.

    >>> print(gg.arange(3))
    [0 1 2]
    """
    if stop is None:
        start, stop = 0, start
    for what, n in (("start", start), ("stop", stop), ("step", step)):
        if type(n) not in (int, float) and (np.ndim(n) or not hasattr(n, "__float__")):
            raise DTypeError(f"arange: {what} must be a number, got {n!r:.60}.")
    if step == 0:
        raise ArgumentError("arange: step must not be 0.")
    all_ints = _INTS.issuperset(map(type, (start, stop, step))) or all(
        isinstance(n, (int, np.integer)) for n in (start, stop, step)
    )
    dtype = backend.as_dtype(dtype or (np.int64 if all_ints else np.float32))
    return _new(np.arange(start, stop, step).astype(dtype, copy=False), device)


@saying_where
def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """Make `num` evenly spaced values from `start` to `stop`.

    Args:
        start, stop: numbers or arrays; Tensors receive gradients.
        num: how many.
        dtype: if None, the Tensors' dtype, or float32 (complex64 if an end is complex).
        device: if None, the Tensors' device, or the default device.
        endpoint: whether `stop` is included.

    Returns:
        Tensor of shape (num,), or (num, ...) for arrays of any shape.

    Raises:
        ArgumentError: `num` is negative.

    >>> print(gg.linspace(0.0, 1.0, 3))
    [0.  0.5 1. ]
    """
    num, start, stop = _length("linspace", "num", num), opened(start), opened(stop)
    if isinstance(start, Tensor) or isinstance(stop, Tensor):
        like = start if isinstance(start, Tensor) else stop
        real = np.float32 if like.dtype.kind in "biu" else np.empty(0, like.dtype).real.dtype
        ndim = max(np.ndim(start), np.ndim(stop))
        i = asarray(np.arange(num, dtype=real), device=like.device)
        i, steps = TENSOR.reshape(i, (num, *(1,) * ndim)), num - 1 if endpoint else num
        values = start + i * ((stop - start) / max(steps, 1))  # with NumPy's roundings
        if endpoint and num > 1:
            values = TENSOR.where(i == num - 1, stop, values)
        values = TENSOR.floor(values) if _is_integer(dtype) else values
        return asarray(values, dtype=dtype, device=device)
    values = np.linspace(start, stop, num, endpoint=endpoint)
    floats = np.complex64 if values.dtype.kind == "c" else np.float32
    values = np.floor(values) if _is_integer(dtype) else values
    return _new(values.astype(backend.as_dtype(dtype or floats)), device)


def _is_integer(dtype: Any) -> bool:
    """Whether values are rounded down to a dtype, as NumPy's linspace does."""
    return dtype is not None and backend.as_dtype(dtype).kind in "iu"


@saying_where
def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Tensor:
    """Make a matrix with ones on its `k`-th diagonal.

    Args:
        n_rows, n_cols: numbers of rows and of columns; square if None.
        k: 0 for the main diagonal; positive ones lie above it.
        dtype: float32 if None.
        device: the default device if None.

    Raises:
        ArgumentError: a number of rows or columns is not an int, or negative.

    >>> print(gg.eye(2))
    [[1. 0.]
     [0. 1.]]
    """
    n_rows = _length("eye", "n_rows", n_rows)
    n_cols = n_rows if n_cols is None else _length("eye", "n_cols", n_cols)
    dtype = backend.as_dtype(dtype or np.float32)
    return _new(np.eye(n_rows, n_cols, k, dtype), device)


@answering
def asarray(
    obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None
) -> Tensor:
    """Make a Tensor from anything that is or contains numbers; a Tensor is returned unchanged.

    Args:
        obj: number, nested lists (Tensors in them are stacked, differentiably), NumPy or CuPy
            array, Tensor or Variable, or another library's array.
        dtype: dtype of the result; a Tensor is cast, differentiably.
        device: device of the result; None leaves a Tensor where it is.
        copy: True always copies; False raises where a copy would be needed.

    Raises:
        DTypeError: `obj` is not numeric.
        ArgumentError: `copy=False`, but a copy is needed.

    >>> print(gg.asarray([1, 2], dtype=gg.float32))
    [1. 2.]
    """
    if type(obj) is np.ndarray and copy is None:
        return constant(obj, dtype, device=device)
    obj = opened(obj, dtype)
    is_tensor = isinstance(obj, Tensor)
    if copy is not None and not isinstance(copy, (int, np.bool_)):
        raise DTypeError(f"asarray: copy must be True, False or None, got {copy!r:.60}.")
    is_cupys = type(obj) in backend.ARRAYS and type(obj) is not np.ndarray
    if _is_on_gpu(obj) or (is_cupys and copy is False):
        read = from_dlpack if hasattr(obj, "__dlpack__") else from_cuda_memory
        x = read(obj, device=device, copy=copy)
        return asarray(x, dtype=dtype, copy=False if copy is False else None)

    def need_copy(why: str) -> None:
        if copy is False:
            raise ArgumentError(f"asarray: {why} needs a copy, and copy=False.")

    if copy is False and type(obj) is np.ndarray:
        if dtype is not None and obj.dtype != backend.as_dtype(dtype):
            need_copy("another dtype")
        if devices.device(device) != "cpu":
            need_copy("another device")
        if obj.dtype.kind not in "biufc" and obj.dtype != backend.BFLOAT16:
            raise DTypeError(f"asarray: dtype {obj.dtype} is not numeric.")
        return share(obj)
    if not (is_tensor or holds_tensor(obj)):
        need_copy(f"a {type(obj).__name__}")
        return constant(obj, dtype, device=device)
    x = tensor(obj)
    if dtype is not None and backend.as_dtype(dtype) != x.dtype:
        need_copy("another dtype")
        x = TENSOR.astype(x, backend.as_dtype(dtype))
    if device is not None and devices.device(device) != x.device:
        need_copy("another device")
        x = x.to_device(device)
    if copy and x is obj:
        return x.__copy__() if x.dtype == bool else TENSOR.positive(x)
    return x


@answering
def array(
    obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = True
) -> Tensor:
    """Make a Tensor of a copy, as NumPy's ``array``; otherwise as `asarray`.

    Args:
        obj, dtype, device: see `asarray`.
        copy: None copies only where that is needed; False raises there.

    >>> x = gg.ones(2)
    >>> y = gg.array(x)
    >>> y[0] = 5.0
    >>> print(x, y)
    [1. 1.] [5. 1.]
    """
    return asarray(obj, dtype, device=device, copy=copy)


def _is_on_gpu(obj: Any) -> bool:
    """Whether `obj` is another library's array on a GPU, which NumPy would reject."""
    if type(obj) in backend.ARRAYS or isinstance(obj, Tensor) or backend.is_array(obj):
        return False
    device_of = getattr(obj, "__dlpack_device__", None)
    if device_of is None or not hasattr(obj, "__dlpack__"):
        return hasattr(obj, "__cuda_array_interface__")
    return int(device_of()[0]) != 1  # 1 is kDLCPU


_HERE = {"device": devices.CPU, "source": devices.CPU}


@op(
    vjp=[lambda xp, g, device, source: xp.to_device(g, device=source, source=device)],
    name="to_device",
    linear=True,
    native_half=True,
    kinds="fci",
    batch="stack",
    ref=lambda x, device, source: x,
    samples=shaped(([(2, 3)], dict(_HERE))),
    errors=[(["text"], _HERE, DTypeError, "number")],
)
def _to_device(xp, x, /, *, device, source):
    """The op behind `gg.to_device`; `source` is the device of `x`."""
    return devices.move(x, device)


@saying_where
def to_device(x: Any, /, device: Any, *, stream: Any = None) -> Tensor:
    """Copy an array to another device; the gradient is copied back.

    Args:
        x: array, or nested lists of numbers.
        device: the device, as "cpu" or "cuda:0".
        stream: None; copies run on the current stream.

    Returns:
        Tensor on that device; `x` itself if it is there.

    Raises:
        DeviceError: there is no such device.
        ArgumentError: `stream` is not None.

    >>> print(gg.to_device([1.0, 2.0], "cpu"))
    [1. 2.]
    """
    return tensor(x).to_device(device, stream=stream)
