"""Autograd's way to run a function's graph again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """`fun` with its first arguments, called anew each time; to trace once, use `gg.function`."""
    return functools.partial(fun, *args, **kwargs)
