"""Memory shared with other libraries: DLPack, and the CUDA array interface.

A Tensor that shares its memory becomes a `Shared` one: tapes copy what they save of it, since the
other library may write to it. On the CPU the protocol's read-only flag asks it not to; a library
whose DLPack is too old for the flag gets a copy. Of a Variable or a view every library gets a copy.
With ``copy=False`` a view and an older library get the memory, too.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.backend import TENSOR
from gpugrad.core.devices import Device
from gpugrad.core.from_python import BFLOAT, UINT, from_host, relabeled
from gpugrad.core.tensor import Tensor, next_id, tensor
from gpugrad.core.views import Element, Shared, View, share, sharing
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, saying_where

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
_SHAREABLE = (Tensor, Element, Shared)  # Variables replace their arrays; views have none
_READ_ONLY = (1, 0)  # the first version of DLPack in which an array can be read-only


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return the capsule that ``from_dlpack`` of any library reads; that function calls this.

    Args:
        stream: the GPU stream on which the caller will read; None on the CPU.
        max_version: the newest version of DLPack that the caller knows.
        dl_device: the target, as (kind, number); None for the tensor's own device.
        copy: True for a copy, False to raise where one is needed.

    Raises:
        DTypeError: a tape watches the tensor, whose gradient would be cut.
        BufferError: the request cannot be met.
    """
    data = self._handed_out("another library's array")
    owner = self.root if type(self) is View and copy is False else self
    if type(owner) in _SHAREABLE:
        lent, data = _lent(owner), self._data
        if data.size and not backend.may_share(data, lent):
            raise BufferError("This view has elements of its own; use x.copy().")
    elif copy is False:
        raise BufferError("The memory of a Variable is not shared; use v.value().copy().")
    else:
        data = devices.copy_array(data)
    if self.device.kind != "cpu":
        with devices.formulas_on(data):
            if copy and dl_device in (None, dlpack_device(self)):  # CuPy copies to the host only
                data, copy = data.copy(), None
            return data.__dlpack__(
                stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
            )
    is_bfloat16 = data.dtype == backend.BFLOAT16
    shared = data.view(np.uint16) if is_bfloat16 else data.view()
    shared.flags.writeable = False
    if max_version is None or max_version < _READ_ONLY:
        if copy is not False:
            shared = shared.copy()
        elif data.flags.writeable:
            shared.flags.writeable = True
        else:
            raise BufferError("The memory is read-only, and DLPack before 1.0 cannot say so.")
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    capsule = shared.__dlpack__(stream=stream, **options)
    return relabeled(capsule, UINT, BFLOAT) if is_bfloat16 else capsule


def _lent(x: Tensor) -> Any:
    """The array of a Tensor, for others to write to: from now on no tape keeps it."""
    if type(x) is not Shared:
        x._own()  # copied if a tape, or a Tensor of the same array, holds it
        x.__class__ = Shared
        x._id = x._id or next_id()
        sharing[id(x)] = x  # type: ignore[assignment]
    return x._data


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """Return the tensor's device as DLPack's (kind, number): (1, 0) is the CPU, (2, i) a GPU."""
    d = self.device
    return (_CPU, 0) if d.kind == "cpu" else (_CUDA, d.index)


def cuda_array_interface(self: Tensor) -> dict[str, Any]:
    """Describe a GPU tensor's memory to Numba and others; a CPU tensor has no such attribute.

    Raises:
        AttributeError: the tensor is on the CPU, or is a Variable or a view of another Tensor.
        DTypeError: a tape watches the tensor, whose gradient would be cut.
    """
    if self.device.kind == "cpu":
        raise AttributeError("__cuda_array_interface__: the tensor is on the CPU.")
    if type(self) not in _SHAREABLE:
        raise AttributeError(
            "__cuda_array_interface__: the memory of a Variable or of a view is not shared; use "
            "x.copy()."
        )
    self._handed_out("another library's array")
    array = _lent(self)
    weakref.finalize(self, id, array).atexit = False  # its reader holds the Tensor only
    return dict(array.__cuda_array_interface__)


@saying_where
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Make a Tensor of another library's array, sharing its memory if possible.

    Writes to shared memory are seen on both sides, but tapes copy what they save of it.

    Args:
        x: an array with the methods ``__dlpack__`` and ``__dlpack_device__``.
        device: the result's device; by default the array's.
        copy: True for a copy, False to raise where one is needed.

    Raises:
        DTypeError: `x` lacks these methods, or has a dtype that gpugrad does not support.
        DeviceError: the array is on a device that gpugrad does not reach.
        ArgumentError: `copy=False` where a copy is needed.

    >>> print(gg.from_dlpack(np.asarray([1.0, 2.0])))
    [1. 2.]
    """
    if isinstance(x, Tensor):
        return _on_device(x, x.device, device, copy)
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise DTypeError(f"from_dlpack: a {type(x).__name__} has no __dlpack__; use gg.asarray.")
    kind, index = x.__dlpack_device__()
    if kind in (_CUDA, _CUDA_MANAGED):
        d = devices.device(f"cuda:{index}")
        if index >= devices.gpu_count():
            raise DeviceError(f"from_dlpack: the array is on {d}, which CuPy does not reach.")
        read = backend.cupy().from_dlpack
    elif kind in (_CPU, _CUDA_HOST):
        d, read = devices.CPU, from_host
    else:
        raise DeviceError(f"from_dlpack: the array is on a device of kind {kind}: not CPU or CUDA.")
    try:
        array = read(x).view()
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise DTypeError(f"from_dlpack: {error}") from error
    if array.dtype.kind not in "biufc" and array.dtype != backend.BFLOAT16:
        raise DTypeError(f"from_dlpack: an array of dtype {array.dtype} is not numeric.")
    return _on_device(share(array), d, device, copy)


def from_cuda_memory(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Make a Tensor of an array that has only ``__cuda_array_interface__``, such as Numba's.

    It takes the arguments of `from_dlpack` and raises the same errors.
    """
    devices.require(devices.device("cuda:0"))
    try:
        array = backend.cupy().asarray(x).view()
    except (RuntimeError, TypeError, ValueError) as error:
        raise DTypeError(f"A {type(x).__name__} is not an array of CUDA memory: {error}") from error
    return _on_device(share(array), devices.device_of(array), device, copy)


def _on_device(x: Tensor, here: Device, device: Any, copy: bool | None) -> Tensor:
    """`x` on the requested device, shared or copied as `copy` says; of a Variable its value."""
    x = tensor(x)
    there = here if device is None else devices.device(device)
    if there != here:
        if copy is False:
            raise ArgumentError(f"from_dlpack: {there} needs a copy, and copy=False.")
        return x.to_device(there)
    if not copy:
        return x
    return x.__copy__() if x.dtype == bool else TENSOR.positive(x)
