"""Where an op was called: the user's line, and the layer in whose `forward` that was."""

from __future__ import annotations

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
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code in layer_calls:
            layer = frame.f_locals["self"]
            return Where(user_line(), vars(layer).get("_path") or type(layer).__name__)
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    return Where(user_line(), "")


_HOME = os.path.dirname(os.path.dirname(__file__)) + os.sep
_LIBRARIES = (_HOME, os.path.dirname(np.__file__) + os.sep, "<gpugrad", "<__array_function__")


def _user_frame() -> tuple[FrameType, int]:
    """The frame of the code that called gpugrad or NumPy, and the number of frames above it."""
    frame, above = sys._getframe(0), 0
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_LIBRARIES) or name.startswith(_HOME + "examples"):
            break
        frame, above = frame.f_back, above + 1
    return frame, above


def user_line() -> str:
    """file:line of the code that called into gpugrad."""
    frame, _ = _user_frame()
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def user_level() -> int:
    """The `stacklevel` with which a warning from the caller of this names the user's line."""
    return _user_frame()[1] - 1
