"""Settings, memory and the log of the made-up GPUs, from Python."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from gpugrad.testing.cuda.driver.place import overlay


@functools.cache
def library() -> Any:
    """The driver's native functions."""
    native = ctypes.CDLL(str(overlay() / "lib" / "libgpugrad_cuda.so"))
    native.gpugrad_get.restype = ctypes.c_long
    native.gpugrad_used.restype = ctypes.c_size_t
    native.gpugrad_take_log.restype = ctypes.c_char_p
    native.gpugrad_take_complaints.restype = ctypes.c_char_p
    native.gpugrad_enqueue.argtypes = (
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.py_object,
    )
    return native


def get_setting(name: str) -> int:
    """A setting; see `change_setting`."""
    return int(library().gpugrad_get(name.upper().encode()))


def change_setting(name: str, value: int) -> None:
    """Change a setting. A process starts with that of the environment's ``GPUGRAD_CUDA_<NAME>``.

    Args:
        name: ``"devices"``, their number; ``"memory"``, the bytes of each; ``"peers"``, whether
            they can access each other's memory; ``"late"``, whether a stream's work waits until
            something waits for it; ``"null_work"``, whether devices do nothing, so that their
            memory holds zeros, or with 2 only what the host copies there: set it in the
            environment.
        value: a number; 0 or 1 where the setting is a condition.
    """
    if library().gpugrad_set(name.upper().encode(), ctypes.c_long(value)):
        raise KeyError(name)


def used(device: int = 0) -> int:
    """The bytes that are allocated on a device, the free blocks of CuPy's pools among them."""
    return int(library().gpugrad_used(device))


def take_complaints() -> list[str]:
    """The reasons of errors since the last call."""
    return str(library().gpugrad_take_complaints().decode()).splitlines()


@dataclass(frozen=True)
class Work:
    """One piece of work that a stream was told to do.

    Attributes:
        way: ``"run"``, ``"capture"``, or ``"replay"`` where a graph's launch runs it.
        kind: ``"kernel"``, ``"copy"``, ``"set"``, ``"graph"``, ``"wait"`` or a library's name.
        name: the kernel or function.
        grid, block: the kernel's; a graph's grid starts with its number of nodes.
        bytes: of dynamic shared memory for a kernel, else the bytes copied or set.
        device: the GPU's number.
        stream: the stream's handle: 0 for the default stream, -1 if the host waits.
        waits_for: the handle of the stream that is waited for, else -1.
        arrays: those that a kernel of CuPy's takes: the bytes of an element, shape and strides.
        notes: the texts of `noted`, the outermost first.
    """

    way: str
    kind: str
    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    bytes: int
    device: int
    stream: int
    waits_for: int
    arrays: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]
    notes: tuple[str, ...]


def _parse(line: str) -> Work:
    way, kind, name, grid, block, *numbers, arrays, notes = line.split("\t")
    sizes = [tuple(int(n) for n in text.split(",")) for text in (grid, block)]
    layouts = []
    for text in arrays.split(";")[:-1]:
        item, *rest = map(int, text.split(","))
        axes = len(rest) // 2
        layouts.append((item, tuple(rest[:axes]), tuple(rest[axes:])))
    said = tuple(notes.split(_BETWEEN)[1:])
    moved, device, stream, waits_for = map(int, numbers)
    return Work(
        way, kind, name, sizes[0], sizes[1], moved, device, stream, waits_for, tuple(layouts), said
    )


_BETWEEN = "\x1f"
_notes: ContextVar[str] = ContextVar("_notes", default="")


@contextlib.contextmanager
def noted(text: str) -> Iterator[None]:
    """Context manager: work that this thread enqueues keeps this line of text for the log.

    Work that is captured while the log is off has no notes, also when a graph replays it.
    """
    token = _notes.set(_notes.get() + _BETWEEN + text)
    library().gpugrad_note(_notes.get().encode())
    try:
        yield
    finally:
        _notes.reset(token)
        library().gpugrad_note(_notes.get().encode())


@contextlib.contextmanager
def logged() -> Iterator[list[Work]]:
    """Context manager that collects the work of all streams; the list is full at its end."""
    before, work = get_setting("log"), list[Work]()
    library().gpugrad_take_log()
    change_setting("log", 1)
    try:
        yield work
    finally:
        change_setting("log", before)
        work += [_parse(line) for line in library().gpugrad_take_log().decode().splitlines()]
