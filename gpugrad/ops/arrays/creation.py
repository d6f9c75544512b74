"""Functions that make tensors: the array API's, with its names."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.backend import TENSOR
from gpugrad.core.dlpack import from_cuda_memory, from_dlpack
from gpugrad.core.samples import calls, uniform
from gpugrad.core.tensor import Tensor, constant, no_part_lost, tensor, wrap
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, reraise, saying_where
from gpugrad.registry.record import op

Shape = int | tuple[int, ...] | list[int]


def _new(values: np.ndarray[Any, Any], device: Any) -> Tensor:
    d = devices.device(device)
    return wrap(values if d == "cpu" else devices.put(values, d))


def _whole(name: str, what: str, n: Any) -> int:
    """`n` as an int that is not negative."""
    try:
        made = operator.index(n)
    except TypeError:
        raise ArgumentError(f"{name}: {what} must be an int, got {n!r:.60}.") from None
    if made < 0:
        raise ShapeError(f"{name}: {what} must not be negative, got {n}.")
    return made


def _as_shape(name: str, shape: Any) -> tuple[int, ...]:
    several = isinstance(shape, (tuple, list)) or getattr(shape, "ndim", 0) != 0
    lengths = shape if several else (shape,)
    return tuple(_whole(name, f"in shape={shape!r:.60}, a length", n) for n in lengths)


def _filled(name: str, shape: Shape, value: Any, dtype: Any, device: Any) -> Tensor:
    """Made on the device itself: no host copy of a large array."""
    d, made = devices.device(device), backend.as_dtype(np.float32 if dtype is None else dtype)
    shape = _as_shape(name, shape)
    seed = devices.put(np.zeros(0, made), d)
    with devices.formulas_on(seed):
        try:
            return wrap(backend.NAMESPACES[type(seed)].lib.full(shape, value, dtype=made))
        except (MemoryError, OverflowError, ValueError) as error:
            reraise(error, name, {}, {"shape": shape, "dtype": made, "device": d})


def zeros(shape: Shape, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor of zeros.

    Args:
        shape: int or tuple of ints.
        dtype: float32 if None.
        device: the default device if None.

    >>> print(gg.zeros(2))
    [0. 0.]
    """
    return _filled("zeros", shape, 0, dtype, device)


def ones(shape: Shape, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor of ones; arguments as `zeros`.

    >>> print(gg.ones(2))
    [1. 1.]
    """
    return _filled("ones", shape, 1, dtype, device)


def empty(shape: Shape, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor to be filled later; its values are zeros. Arguments as `zeros`.

    >>> gg.empty((2, 3)).shape
    (2, 3)
    """
    return _filled("empty", shape, 0, dtype, device)


def full(shape: Shape, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor with one value everywhere.

    Args:
        shape: int or tuple of ints.
        fill_value: a number, or a 0-d Tensor, to which the gradients come back.
        dtype: that of the value if None.
        device: the default device if None; a Tensor's own.

    Raises:
        ShapeError: `fill_value` is more than one number.
        DTypeError: a complex value for a real dtype, or one that the integers do not hold.

    >>> print(gg.full(2, 7.0))
    [7. 7.]
    """
    if isinstance(fill_value, Tensor):
        value = asarray(fill_value, dtype=dtype, device=device)
    else:
        value = constant(fill_value, None, device="cpu")
    if value.ndim:
        raise ShapeError(f"full: fill_value must be one number, its shape is {value.shape}.")
    if isinstance(fill_value, Tensor):
        return TENSOR.broadcast_to(value, shape)
    made = value.dtype if dtype is None else backend.as_dtype(dtype)
    no_part_lost("full", value.dtype, made)
    if made.kind in "iu" and not np.isfinite(value.numpy()):
        raise DTypeError(f"full: there is no {fill_value} among numbers of dtype {made}.")
    return _filled("full", shape, fill_value, made, device)


def zeros_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make zeros in the shape, dtype and device of another array.

    >>> print(gg.zeros_like([1.0, 2.0]))
    [0. 0.]
    """
    x = tensor(x)
    return zeros(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def ones_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make ones in the shape, dtype and device of another array.

    >>> print(gg.ones_like([1.0, 2.0]))
    [1. 1.]
    """
    x = tensor(x)
    return ones(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def empty_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor to be filled later in the shape, dtype and device of another array.

    >>> gg.empty_like([1.0, 2.0]).shape
    (2,)
    """
    return zeros_like(x, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Make one value everywhere in the shape, dtype and device of another array.

    >>> print(gg.full_like([1.0, 2.0], 7))
    [7. 7.]
    """
    x = tensor(x)
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


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
    """Make evenly spaced values from `start` up to but without `stop`.

    Args:
        start, stop, step: with one argument it is `stop`, and `start` is 0.
        dtype: int64 if all are ints, else float32.
        device: the default device if None.

    Raises:
        ArgumentError: `step` is 0.
        DTypeError: an end or a step that is no number.

    >>> print(gg.arange(3))
    [0 1 2]
    """
    if stop is None:
        start, stop = 0, start
    for what, n in (("start", start), ("stop", stop), ("step", step)):
        if np.ndim(n) or not hasattr(n, "__float__"):
            raise DTypeError(f"arange: {what} must be a number, got {n!r:.60}.")
    if step == 0:
        raise ArgumentError("arange: step must not be 0.")
    whole = all(isinstance(n, (int, np.integer)) for n in (start, stop, step))
    made = backend.as_dtype(dtype or (np.int64 if whole else np.float32))
    return _new(np.arange(start, stop, step).astype(made), device)


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
        start, stop: the ends, numbers or 0-d Tensors, to which gradients come back. `stop` is
            left out if not `endpoint`.
        num: how many.
        dtype: None for float32 (complex64 if an end is complex); for Tensors theirs.
        device: the default device if None; for Tensors theirs.

    Raises:
        ArgumentError: `num` is negative.

    >>> print(gg.linspace(0.0, 1.0, 3))
    [0.  0.5 1. ]
    """
    num = _whole("linspace", "num", num)
    if isinstance(start, Tensor) or isinstance(stop, Tensor):
        beside = start if isinstance(start, Tensor) else stop
        real = np.float32 if beside.dtype.kind in "biu" else np.empty(0, beside.dtype).real.dtype
        t = linspace(0, 1, num, dtype=real, device=beside.device, endpoint=endpoint)
        return asarray(start * (1 - t) + stop * t, dtype=dtype, device=device)
    values = np.linspace(start, stop, num, endpoint=endpoint)
    floats = np.complex64 if values.dtype.kind == "c" else np.float32
    return _new(values.astype(backend.as_dtype(dtype or floats)), device)


@saying_where
def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Tensor:
    """Make a matrix with ones on its `k`-th diagonal.

    Args:
        n_rows, n_cols: how many; as many columns as rows if None.
        k: 0 for the main diagonal; those above it are positive.
        dtype: float32 if None.
        device: the default device if None.

    Raises:
        ArgumentError: a number of rows or columns that is no int, or negative.

    >>> print(gg.eye(2))
    [[1. 0.]
     [0. 1.]]
    """
    n_rows = _whole("eye", "n_rows", n_rows)
    n_cols = n_rows if n_cols is None else _whole("eye", "n_cols", n_cols)
    made = backend.as_dtype(dtype or np.float32)
    return _new(np.eye(n_rows, n_cols, k=k).astype(made), device)


def asarray(
    obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None
) -> Tensor:
    """Make a Tensor of anything that is or holds numbers; a Tensor stays itself.

    Args:
        obj: number, nested lists (Tensors among them are stacked, differentiably), NumPy or
            CuPy array, Tensor or Variable, or another library's array.
        dtype: of the result; a Tensor is cast, differentiably.
        device: of the result; None keeps a Tensor where it is.
        copy: True for a new Tensor in any case; False raises where a copy would be needed.

    Raises:
        DTypeError: not numbers.
        ArgumentError: `copy=False` where a copy is needed.

    >>> print(gg.asarray([1, 2], dtype=gg.float32))
    [1. 2.]
    """
    is_tensor = isinstance(obj, Tensor)
    if _is_on_gpu(obj):
        read = from_dlpack if hasattr(obj, "__dlpack__") else from_cuda_memory
        made = read(obj, device=device, copy=copy)
        return asarray(made, dtype=dtype, copy=False if copy is False else None)
    if copy is False and type(obj) is np.ndarray:
        if dtype is not None and obj.dtype != backend.as_dtype(dtype):
            raise ArgumentError("asarray: another dtype needs a copy, and copy=False.")
        if devices.device(device) != "cpu":
            raise ArgumentError("asarray: another device needs a copy, and copy=False.")
        if obj.dtype.kind not in "biufc" and obj.dtype != backend.BFLOAT16:
            raise DTypeError(f"asarray: an array of dtype {obj.dtype} holds no numbers.")
        return wrap(obj)
    if not is_tensor and not (isinstance(obj, (list, tuple)) and _any_tensor(obj)):
        if copy is False:
            raise ArgumentError(f"asarray: a {type(obj).__name__} needs a copy, and copy=False.")
        return constant(obj, dtype, device=device)
    made = tensor(obj)
    if dtype is not None and backend.as_dtype(dtype) != made.dtype:
        if copy is False:
            raise ArgumentError("asarray: another dtype needs a copy, and copy=False.")
        made = TENSOR.astype(made, backend.as_dtype(dtype))
    if device is not None and devices.device(device) != made.device:
        if copy is False:
            raise ArgumentError("asarray: another device needs a copy, and copy=False.")
        made = made.to_device(device)
    if copy and made is obj:
        return made.__copy__() if made.dtype == bool else TENSOR.positive(made)
    return made


def _is_on_gpu(obj: Any) -> bool:
    """Whether it is another library's array on a GPU, which NumPy would refuse."""
    if type(obj) in backend.ARRAYS or isinstance(obj, Tensor) or backend.is_array(obj):
        return False
    where = getattr(obj, "__dlpack_device__", None)
    if where is None or not hasattr(obj, "__dlpack__"):
        return hasattr(obj, "__cuda_array_interface__")
    return int(where()[0]) != 1


def _any_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_any_tensor(v) for v in value)
    return isinstance(value, Tensor)


def _to_device_vjp(xp, g, device, source):
    return xp.to_device(g, device=source, source=device)


def _to_device_batch(xp, batched, x, *, device, source):
    return xp.to_device(x, device=device, source=source)


_HERE = {"device": devices.CPU, "source": devices.CPU}


@op(
    vjp=[_to_device_vjp],
    linear=True,
    keeps_half=True,
    kinds="fci",
    batch=_to_device_batch,
    ref=lambda x, device, source: x,
    samples=calls(lambda rng: ([uniform(rng, 2, 3)], dict(_HERE))),
    errors=[(["text"], _HERE, DTypeError, "number")],
)
def to_device(xp, x, /, *, device, source):
    """Copy an array to another device; what ``x.to_device(device)`` calls.

    Args:
        device: where to.
        source: where from; the gradient goes back there.

    Returns:
        Tensor of the same values on `device`.

    >>> print(gg.constant([1.0, 2.0]).to_device("cpu"))
    [1. 2.]
    """
    return devices.move(x, device)
