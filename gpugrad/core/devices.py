"""Devices: names, which ones answer, the default, and arrays on them."""

from __future__ import annotations

import contextlib
import functools
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad import errors
from gpugrad.core import environment, settings
from gpugrad.core.backend import ARRAYS, BFLOAT16, READINGS, SCALARS, cupy, innermost_array
from gpugrad.core.float_errors import no_errors
from gpugrad.core.index_checks import raise_late
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, GpugradWarning


class Device:
    """Where arrays live: ``cpu``, or ``cuda:`` and a number. `device` returns one.

    It compares equal to its name, can be hashed, and is a context manager in which new arrays
    are created on it.

    >>> gg.device("cpu")
    device('cpu')
    >>> gg.device("cpu") == "cpu"
    True
    >>> with gg.device("cpu"):
    ...     print(gg.ones(2).device)
    cpu
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
        settings.enter("devices", require(self))
        return self

    def __exit__(self, *exc: object) -> None:
        settings.leave("devices")


CPU = Device("cpu", 0)
_NAME = re.compile(r"(?:.*/)?(?:device:)?(cpu|gpu|cuda)(?::(\d+))?", re.IGNORECASE)


@functools.cache
def _cuda(index: int) -> Device:
    return Device("cuda", index)


def _parse(name: str) -> Device:
    match = _NAME.fullmatch(name)
    if match is None or (match[1].lower() == "cpu" and int(match[2] or 0)):
        raise ArgumentError(
            f"device: {name!r} is not a device name. Write 'cpu', 'cuda:0', or '/gpu:0'."
        )
    return CPU if match[1].lower() == "cpu" else _cuda(int(match[2] or 0))


@functools.cache
def gpu_count() -> int:
    """The number of GPUs that answer. CuPy imports without one, so its import proves nothing."""
    return 0 if cupy() is None else _ask_cuda()[0]


@functools.cache
def _ask_cuda() -> tuple[int, str]:
    """The number of GPUs that CuPy can use, and CUDA's error, if it is not just "no device"."""
    try:
        return int(cupy().cuda.runtime.getDeviceCount()), ""
    except RuntimeError as error:
        return 0, "" if "cudaErrorNoDevice" in str(error) else str(error)


def require(d: Device) -> Device:
    """`d` itself if it answers, else DeviceError."""
    if d.kind == "cpu" or d.index < gpu_count():
        return d
    if cupy() is None:
        way_out = (
            "CuPy is not installed: pip install 'gpugrad[cuda12]', or cuda13 for newer drivers."
        )
    elif gpu_count() == 0:
        way_out = _no_answer()
    else:
        way_out = f"GPUs that answer: {[str(_cuda(i)) for i in range(gpu_count())]}."
    raise DeviceError(f"There is no device {d}. {way_out} Or choose gg.device('cpu').")


def _no_answer() -> str:
    error = _ask_cuda()[1]
    return (
        f"CuPy is installed, but no GPU answers{f' ({error})' if error else ''}: "
        "check the driver with nvidia-smi."
    )


def device(name: str | Device | None = None) -> Device:
    """Return the device of that name, which is also a context manager: the default inside it.

    Args:
        name: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or TensorFlow's ``"/cpu:0"`` and
            ``"/gpu:0"``. None means the current default.

    Raises:
        ArgumentError: the name is not a device name.
        DeviceError: on use in a ``with`` statement, or to create an array, if it does not answer.

    >>> with gg.device("cpu"):
    ...     print(gg.zeros(2).device)
    cpu
    """
    if name is None:
        return default_device()
    return name if isinstance(name, Device) else _parse(str(name))


def set_device(name: str | Device) -> None:
    """Make `name` the default device of all threads; a ``with`` statement takes precedence.

    >>> gg.set_device("cpu")
    """
    settings.set_default_device(require(device(name)))


def devices() -> list[Device]:
    """All devices that answer, the CPU first.

    >>> str(gg.devices()[0])
    'cpu'
    """
    return [CPU, *(_cuda(i) for i in range(gpu_count()))]


def default_device() -> Device:
    """Where new arrays go: the first set of ``with``, `set_device`, ``GPUGRAD_DEVICE``, a GPU."""
    chosen: Device | None = settings.explicit_device()
    if chosen is not None:
        return chosen
    named = environment.read("GPUGRAD_DEVICE", _parse, "a device name")
    if named is None and cupy() is not None and _ask_cuda()[1]:
        message = (
            f"gpugrad: {_no_answer()} Until then new arrays go to the CPU; gg.set_device('cpu') "
            "or GPUGRAD_DEVICE=cpu chooses it without this warning."
        )
        warnings.warn(message, GpugradWarning, stacklevel=2)
    set_device(named or ("cuda:0" if gpu_count() else CPU))
    return default_device()


# ---- arrays on devices -------------------------------------------------------------------


def device_of(array: Any) -> Device:
    """The device that holds a plain array (or the NumPy scalar that 0-d arithmetic returns)."""
    array = innermost_array(array)
    return CPU if isinstance(array, (np.ndarray, np.generic)) else _cuda(int(array.device.id))


def put(array: np.ndarray[Any, Any], d: Device) -> Any:
    """A new plain array on device `d` with the values of a NumPy array."""
    if require(d).kind == "cpu":
        return np.array(array)
    with cupy().cuda.Device(d.index):
        try:
            return cupy().array(array)
        except MemoryError as error:
            errors.reraise(error, f"copying to {d}", {"array": array}, {})


def adopt(array: np.ndarray[Any, Any], d: Device) -> Any:
    """`put` of a NumPy array that nobody else has: on the CPU that one itself."""
    return array if require(d).kind == "cpu" else put(array, d)


def host(array: Any) -> np.ndarray[Any, Any]:
    """A new NumPy array with the values of a plain array."""
    if isinstance(array, (np.ndarray, np.generic)):
        return np.array(array)
    values = array.get()
    raise_late()
    return values


def formulas_on(array: Any) -> contextlib.AbstractContextManager[Any]:
    """A context for formulas on `array`: its GPU, or no inf and nan warnings from NumPy."""
    array = innermost_array(array)
    if isinstance(array, (np.ndarray, np.generic)):
        return no_errors()
    return array.device if gpu_count() > 1 else _HERE  # to make a GPU current takes a call


_HERE = contextlib.nullcontext()


def copy_array(array: Any, order: str = "C") -> Any:
    """A copy of a plain array, on the same device."""
    with formulas_on(array):  # CuPy would copy to the current GPU
        return array.copy(order)


def move(array: Any, d: Device) -> Any:
    """The plain array on device `d`: itself if it is there already, else a copy."""
    here = device_of(array)
    if here == d:
        return array
    if here.kind == d.kind:
        with cupy().cuda.Device(require(d).index):
            return cupy().array(array)
    return adopt(host(array), d)


def full_on_device_of(like: Any, shape: tuple[int, ...], dtype: Any, value: float = 0) -> Any:
    """A plain array filled with one value, of the type of `like` and on its device."""
    if type(like) is np.ndarray:
        array = np.empty(shape, dtype)  # np.full takes twice as long for a small array
        array.fill(value)
        return array
    stacked = getattr(like, "stacked", None)
    if stacked is not None:  # Batched: one array for each example
        return type(like)(
            full_on_device_of(stacked, (stacked.shape[0], *shape), dtype, value), like.level
        )
    like = innermost_array(like)
    if isinstance(like, (np.ndarray, np.generic)):
        return np.full(shape, value, dtype)
    with formulas_on(like):
        array = type(like)(shape, dtype)
        array.fill(value)  # CuPy's full takes four times as long
        return array


# ---- arrays that meet --------------------------------------------------------------------


_NUMPYS = frozenset((np.ndarray, type(None)))
"""Types of the arguments of most calls."""

_NUMPYS_AND_NUMBERS = _NUMPYS | SCALARS


def meet(
    name: str, *values: Any, rounded: bool = True, fixed: Sequence[int] = ()
) -> tuple[Any, ...]:
    """The arguments of one op as values of one library, followed by the library's array type.

    Arrays of two libraries raise; they are never moved. A Python number stays a number, which the
    library promotes as weak. Next to bfloat16 NumPy would promote it to float32, so there it is
    rounded to a scalar of bfloat16, if `rounded`; but not an int at one of the positions `fixed`,
    which is an order or an exponent.
    """
    plain = _NUMPYS if rounded else _NUMPYS_AND_NUMBERS
    if plain.issuperset(map(type, values)) and np.ndarray in map(type, values):
        return (*values, np.ndarray)
    arrays = [v for v in values if type(v) in ARRAYS]
    kinds = {type(a) for a in arrays}
    if len(kinds) > 1:
        one_library(name, arrays)
        kinds = {max(kinds, key=lambda k: READINGS[k].nesting)}
    if len(kinds) == 1:
        if rounded and any(a.dtype == BFLOAT16 for a in arrays):
            values = tuple(
                BFLOAT16.type(v) if type(v) is float or (type(v) is int and i not in fixed) else v
                for i, v in enumerate(values)
            )
        return (*values, kinds.pop())
    # numbers promote each other as in Python if there are no arrays
    numbers = [v for v in values if v is not None]
    common = type(sum(numbers)) if not all(type(v) is bool for v in numbers) else bool
    dtype = {float: np.float32, complex: np.complex64}.get(common)
    d = default_device()
    host_arrays = [
        v if v is None else np.asarray(v, None if i in fixed and type(v) is int else dtype)
        for i, v in enumerate(values)
    ]
    if any(v is not None and v.dtype.kind == "O" for v in host_arrays):
        raise DTypeError(f"{name}: {numbers} has a number too large for an array.")
    arrays = [v if v is None else put(v, d) for v in host_arrays]
    return (*arrays, type(next(a for a in arrays if a is not None)))


def one_library(name: str, arrays: Sequence[Any]) -> None:
    """Raise if plain arrays, or the arrays inside them, come from two libraries."""
    if len({type(innermost_array(a)) for a in arrays}) > 1:
        where = " and ".join(str(device_of(a)) for a in arrays)
        raise DeviceError(
            f"{name}: its arrays are on {where}. Move a Tensor with x.to_device(device), a NumPy "
            "array with gg.asarray(x, device=device); gpugrad never moves data between devices "
            "implicitly."
        )


def meet_arrays(name: str, *values: Any, fixed: Sequence[int] = ()) -> tuple[Any, ...]:
    """`meet` for an op that takes arrays only: numbers become arrays of the others' library.

    An int or a bool at one of the positions `fixed` is an index or a mask, and keeps its kind.
    """
    *met, kind = meet(name, *values, rounded=False)
    if kind is np.ndarray and _NUMPYS.issuperset(map(type, values)):
        return (*met, kind)
    like = innermost_array(next(v for v in met if type(v) in ARRAYS))
    lib = READINGS[type(like)].lib

    def as_array(value: Any, v: Any, keeps_kind: bool) -> Any:
        if keeps_kind and type(value) in (int, bool):
            return lib.asarray(value)
        if type(v) not in SCALARS:
            return v
        # NumPy gives float64 for bfloat16 and a Python number
        stays = like.dtype == BFLOAT16 and type(v) in (int, float)
        return lib.asarray(v, dtype=BFLOAT16 if stays else lib.result_type(like, v))

    with formulas_on(like):
        arrays = [as_array(*vs, i in fixed) for i, vs in enumerate(zip(values, met, strict=True))]
    return (*arrays, kind)
