"""Where an op was called: the user's line, and the layer in whose `forward` that was."""

from __future__ import annotations

import functools
import os
import sys
from types import CodeType, FrameType
from typing import NamedTuple

import numpy as np

__all__ = ["NOWHERE", "Where", "layer_calls", "user_level", "user_line", "where"]

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
        if not line and (frame.f_back is None or not _is_library(frame.f_code.co_filename)):
            line = _line_of(frame)
        frame = frame.f_back
    return Where(line, layer)


_HOME = os.path.dirname(os.path.dirname(__file__)) + os.sep
_LIBRARIES = (_HOME, os.path.dirname(np.__file__) + os.sep, "<gpugrad", "<__array_function__")


@functools.lru_cache(1024)
def _is_library(file: str) -> bool:
    return file.startswith(_LIBRARIES) and not file.startswith(_HOME + "examples")


def _user_frame() -> tuple[FrameType, int]:
    """The frame of the code that called gpugrad or NumPy, and the number of frames above it."""
    frame, above = sys._getframe(0), 0
    while frame.f_back is not None:
        if not _is_library(frame.f_code.co_filename):
            break
        frame, above = frame.f_back, above + 1
    return frame, above


def user_line() -> str:
    """file:line of the code that called into gpugrad."""
    return _line_of(_user_frame()[0])


def _line_of(frame: FrameType) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def user_level() -> int:
    """The `stacklevel` with which a warning from the caller of this names the user's line."""
    return _user_frame()[1] - 1
