"""Autograd's way to run a function's graph again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gpugrad.compat.names import forwarding


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """`fun` with its first arguments, called anew each time; to trace once, use `gg.function`."""
    return functools.partial(fun, *args, **kwargs)


__getattr__, __dir__ = forwarding(__name__, own=globals())
