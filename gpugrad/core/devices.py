"""Devices: which there are, which is chosen, and where arrays are."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad import errors
from gpugrad.core.backend import ARRAYS, BFLOAT16, NAMESPACES, SCALARS, cupy, innermost_array
from gpugrad.errors import ArgumentError, DeviceError, DTypeError

__all__ = [
    "CPU",
    "Device",
    "copied",
    "default_device",
    "device",
    "device_of",
    "devices",
    "formulas_on",
    "full_beside",
    "gpu_count",
    "host",
    "meet",
    "meet_arrays",
    "move",
    "one_library",
    "put",
    "require",
    "set_device",
]


class _Choices(threading.local):
    """The devices chosen by `with` in one thread, innermost last."""

    def __init__(self) -> None:
        self.stack: list[Device] = []


_choices = _Choices()
_chosen: list[Device] = []  # by set_device; at most one


class Device:
    """A place where arrays live: ``cpu``, or ``cuda:`` and a number. Made by `device`.

    A value that can be compared (also with its name), hashed, and used in a ``with``
    statement to create arrays there.
    """

    __slots__ = ("_name", "index", "kind")

    def __init__(self, kind: str, index: int) -> None:
        self.kind, self.index = kind, index
        self._name = "cpu" if kind == "cpu" else f"cuda:{index}"

    def __repr__(self) -> str:
        return f"device('{self}')"

    def __str__(self) -> str:
        return self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, str):
            try:
                other = _parse(other)
            except ArgumentError:
                return False
        if not isinstance(other, Device):
            return NotImplemented
        return (self.kind, self.index) == (other.kind, other.index)

    def __enter__(self) -> Device:
        _choices.stack.append(require(self))
        return self

    def __exit__(self, *exc: object) -> None:
        _choices.stack.pop()


CPU = Device("cpu", 0)
_NAME = re.compile(r"(?:.*/)?(?:device:)?(cpu|gpu|cuda)(?::(\d+))?", re.IGNORECASE)


@functools.cache
def _cuda(index: int) -> Device:
    return Device("cuda", index)


def _parse(name: str) -> Device:
    match = _NAME.fullmatch(name)
    if match is None or (match[1].lower() == "cpu" and int(match[2] or 0)):
        raise ArgumentError(
            f"device: {name!r} names no device. Write 'cpu', 'cuda:0', or '/gpu:0'."
        )
    return CPU if match[1].lower() == "cpu" else _cuda(int(match[2] or 0))


@functools.cache
def gpu_count() -> int:
    """How many GPUs answer. CuPy imports without one, so importing it proves nothing."""
    return 0 if cupy() is None else _answered()[0]


@functools.cache
def _answered() -> tuple[int, str]:
    """How many GPUs answer CuPy, and what CUDA says of more than that there is none."""
    try:
        return int(cupy().cuda.runtime.getDeviceCount()), ""
    except RuntimeError as error:
        return 0, "" if "cudaErrorNoDevice" in str(error) else str(error)


def require(d: Device) -> Device:
    """`d` itself, if it is there; DeviceError with the way out if it is not."""
    if d.kind == "cpu" or d.index < gpu_count():
        return d
    if cupy() is None:
        way_out = (
            "CuPy is not installed: pip install 'gpugrad[cuda12]' (or cuda13, as your driver has)."
        )
    elif gpu_count() == 0:
        way_out = _unanswered()
    else:
        way_out = f"GPUs that answer: {[str(_cuda(i)) for i in range(gpu_count())]}."
    raise DeviceError(f"There is no device {d}. {way_out} Or choose gg.device('cpu').")


def _unanswered() -> str:
    said = _answered()[1]
    return (
        f"CuPy is installed, but no GPU answers{f' ({said})' if said else ''}: "
        "check the driver with nvidia-smi."
    )


def device(name: str | Device | None = None) -> Device:
    """Return the device of that name; a value, and a context manager that makes it the default.

    Args:
        name: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or TensorFlow's ``"/cpu:0"`` and
            ``"/gpu:0"``. None means the current default.

    Raises:
        ArgumentError: the name is not a device's name.
        DeviceError: used as a context (or to create an array) where it is not there.

    >>> with gg.device("cpu"):
    ...     print(gg.zeros(2).device)
    cpu
    """
    if name is None:
        return default_device()
    return name if isinstance(name, Device) else _parse(str(name))


def set_device(name: str | Device) -> None:
    """Make `name` the default device of all threads; a ``with`` statement goes first.

    >>> gg.set_device("cpu")
    """
    _chosen[:] = [require(device(name))]


def devices() -> list[Device]:
    """Every device that answers, the CPU first.

    >>> str(gg.devices()[0])
    'cpu'
    """
    return [CPU, *(_cuda(i) for i in range(gpu_count()))]


def default_device() -> Device:
    """Where new arrays go: ``with``, else `set_device`, else ``GPUGRAD_DEVICE``, else a GPU."""
    if _choices.stack:
        return _choices.stack[-1]
    if not _chosen:
        name = os.environ.get("GPUGRAD_DEVICE")
        if not name and cupy() is not None and _answered()[1]:
            warnings.warn(
                f"gpugrad: {_unanswered()} Until then arrays are made on the CPU, which "
                "gg.set_device('cpu') or GPUGRAD_DEVICE=cpu chooses without a warning.",
                RuntimeWarning, stacklevel=2,
            )  # fmt: skip
        set_device(name if name else "cuda:0" if gpu_count() else CPU)
    return _chosen[0]


# ---- arrays on devices -------------------------------------------------------------------


def device_of(array: Any) -> Device:
    """The device that holds a bare array (or the NumPy scalar that 0-d arithmetic gives)."""
    array = innermost_array(array)
    return CPU if isinstance(array, (np.ndarray, np.generic)) else _cuda(int(array.device.id))


def put(array: np.ndarray[Any, Any], d: Device) -> Any:
    """A new bare array on device `d` with the values of a NumPy array."""
    if require(d).kind == "cpu":
        return np.array(array)
    with cupy().cuda.Device(d.index):
        try:
            return cupy().array(array)
        except MemoryError as error:
            errors.reraise(error, f"copying to {d}", {"array": array}, {})


def host(array: Any) -> np.ndarray[Any, Any]:
    """A new NumPy array with the values of a bare array."""
    return np.array(array) if isinstance(array, (np.ndarray, np.generic)) else array.get()


def formulas_on(array: Any) -> contextlib.AbstractContextManager[Any]:
    """Run formulas near `array`: on its GPU, or without NumPy's warnings of inf and nan."""
    array = innermost_array(array)
    on_cpu = isinstance(array, (np.ndarray, np.generic))
    return np.errstate(all="ignore") if on_cpu else array.device


def copied(array: Any) -> Any:
    """A copy of a bare array, beside it."""
    with formulas_on(array):  # CuPy would copy to the current GPU
        return array.copy()


def move(array: Any, d: Device) -> Any:
    """The bare array on device `d`: itself if it is there, else a copy."""
    here = device_of(array)
    if here == d:
        return array
    if here.kind == d.kind:
        with cupy().cuda.Device(require(d).index):
            return cupy().array(array)
    return put(host(array), d)


def full_beside(like: Any, shape: tuple[int, ...], dtype: Any, value: float = 0) -> Any:
    """A bare array with one value everywhere, beside another array and of its kind."""
    stacked = getattr(like, "stacked", None)
    if stacked is not None:  # Batched: a value for each example
        return type(like)(
            full_beside(stacked, (stacked.shape[0], *shape), dtype, value), like.level
        )
    like = innermost_array(like)
    if isinstance(like, (np.ndarray, np.generic)):
        return np.full(shape, value, dtype)
    with formulas_on(like):
        made = type(like)(shape, dtype)
        made.fill(value)  # CuPy's full takes four times as long
        return made


# ---- arrays that meet --------------------------------------------------------------------


def meet(name: str, *values: Any) -> tuple[Any, ...]:
    """Values that one op takes together, and the array type in which it reads them.

    Arrays of two libraries are refused, never moved. A Python number stays as it is (the
    library's own promotion then treats it as weak), except beside bfloat16, which NumPy
    would promote to float32.
    """
    arrays = [v for v in values if type(v) in ARRAYS]
    kinds = {type(a) for a in arrays}
    if len(kinds) > 1:
        one_library(name, arrays)
        kinds = {max(kinds, key=lambda k: NAMESPACES[k].nesting)}
    if len(kinds) == 1:
        if any(a.dtype == BFLOAT16 for a in arrays):
            values = tuple(BFLOAT16.type(v) if type(v) in (float, int) else v for v in values)
        return (*values, kinds.pop())
    # numbers only: they are promoted among themselves, as Python does
    numbers = [v for v in values if v is not None]
    common = type(sum(numbers)) if not all(type(v) is bool for v in numbers) else bool
    dtype = {float: np.float32, complex: np.complex64}.get(common)
    d = default_device()
    host_arrays = [v if v is None else np.asarray(v, dtype) for v in values]
    if any(v is not None and v.dtype.kind == "O" for v in host_arrays):
        raise DTypeError(f"{name}: {numbers} has a number too large for an array.")
    arrays = [v if v is None else put(v, d) for v in host_arrays]
    return (*arrays, type(next(a for a in arrays if a is not None)))


def one_library(name: str, arrays: Sequence[Any]) -> None:
    """Refuse bare arrays of two libraries, also below what wraps them."""
    if len({type(innermost_array(a)) for a in arrays}) > 1:
        where = " and ".join(str(device_of(a)) for a in arrays)
        raise DeviceError(
            f"{name}: its arrays are on {where}. Move a Tensor with x.to_device(device), an array "
            "of NumPy with gg.asarray(x, device=device); gpugrad never moves data between devices "
            "by itself."
        )


def meet_arrays(name: str, *values: Any, fixed: Sequence[int] = ()) -> tuple[Any, ...]:
    """`meet` for an op that takes arrays only: a number becomes one, beside the others.

    An int or a bool at one of the positions `fixed` stays of its kind: it is an index or a mask.
    """
    *met, kind = meet(name, *values)
    like = innermost_array(next(v for v in met if type(v) in ARRAYS))
    lib = NAMESPACES[type(like)].lib

    def made(given: Any, v: Any, own: bool) -> Any:
        if own and type(given) in (int, bool):
            return lib.asarray(given)
        return lib.asarray(v, dtype=lib.result_type(like, v)) if type(v) in SCALARS else v

    with formulas_on(like):
        arrays = [made(*vs, i in fixed) for i, vs in enumerate(zip(values, met, strict=True))]
    return (*arrays, kind)
