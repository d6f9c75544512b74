"""Where gpugrad was called: the line of a user's code, and the layer in whose `forward` it is."""

from __future__ import annotations

import functools
import os
import sys
from types import CodeType, FrameType
from typing import NamedTuple

from gpugrad.errors import EXAMPLES, LIBRARIES


@functools.lru_cache(1024)
def is_library(file: str) -> bool:
    """Whether a file of code is not a user's."""
    return file.startswith(LIBRARIES) and not file.startswith(EXAMPLES)


def _user_frame() -> tuple[FrameType, int]:
    """The frame of the code that called gpugrad or NumPy, and the number of frames above it."""
    frame, above = sys._getframe(0), 0
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not is_library(name):
            break
        frame, above = frame.f_back, above + 1
    return frame, above


def place() -> tuple[CodeType, int]:
    """The text of `line_of`, for a message that is rarely needed."""
    frame, _ = _user_frame()
    return frame.f_code, frame.f_lineno


def line_of(place: tuple[CodeType, int]) -> str:
    """A `place` as file:line."""
    code, line = place
    return f"{os.path.basename(code.co_filename)}:{line}"


def user_line() -> str:
    """file:line of the code that called into gpugrad."""
    return line_of(place())


def user_level() -> int:
    """The `stacklevel` with which a warning from the caller of this names the user's line."""
    return _user_frame()[1] - 1


_CONVERSIONS = frozenset(
    ("__array__", "__array_interface__", "__array_struct__", "__dlpack__", "__getitem__")
) | {"__float__", "__complex__", "__int__", "__index__"}
"""Methods by which NumPy and Python read the numbers of an object."""


@functools.lru_cache(1024)
def _is_ours(file: str) -> bool:
    return file.startswith(LIBRARIES[:2]) and not file.startswith(EXAMPLES)


def called_by_conversion() -> bool:
    """Whether gpugrad is reading the numbers of a user's object, whose method has led here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    entered = ""  # the user's function that gpugrad has called, perhaps through NumPy
    while frame is not None and not _is_ours(frame.f_code.co_filename):
        if not is_library(frame.f_code.co_filename):
            entered = frame.f_code.co_name
        frame = frame.f_back
    return frame is not None and entered in _CONVERSIONS


layer_calls: set[CodeType] = set()
"""Code of the methods that call a layer. Their `self` has its path as the attribute `_path`."""


class Where(NamedTuple):
    """A place in the user's program."""

    line: str
    """``file:line``."""
    layer: str
    """The path of the innermost layer, the class of one without a path, or ""."""


NOWHERE = Where("", "")


def where() -> Where:
    """The place that the running op was called from.

    It is read from the call stack, so that neither ops nor layers keep track of it.
    """
    frame: FrameType | None = sys._getframe(1)
    line = layer = ""
    while frame is not None and not (line and layer):
        if not layer and frame.f_code in layer_calls:
            module = frame.f_locals["self"]
            layer = vars(module).get("_path") or type(module).__name__
        if not line and (frame.f_back is None or not is_library(frame.f_code.co_filename)):
            line = line_of((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return Where(line, layer)
