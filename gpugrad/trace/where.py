"""Where an op was called: the user's line, and the layer in whose `forward` that was."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import NamedTuple

from gpugrad.core.user_code import is_library, line_of

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
