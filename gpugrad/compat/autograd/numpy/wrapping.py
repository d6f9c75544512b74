"""The names of a module of functions of arrays, with functions that take boxes, too."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.compat.autograd.boxes import box, holds_box, unbox
from gpugrad.compat.autograd.core import call_with_rules, has_rules
from gpugrad.compat.names import forwarding

_ITERATORS: tuple[Any, ...] = (type({}.values()), map, filter, zip, types.GeneratorType)


def wrapped(name: str, plain: Callable[..., Any], ours: Callable[[], Any]) -> Callable[..., Any]:
    """A function that is `plain`, and for boxes the one that `ours` returns.

    Rules that a library has set by `defvjp` or `defjvp` go before our own.
    """

    def call(*args: Any, **keywords: Any) -> Any:
        if args and isinstance(args[0], _ITERATORS):
            args = (list(args[0]), *args[1:])
        if not (holds_box(args) or holds_box(keywords)):
            return plain(*args, **keywords)
        if has_rules(call):
            return call_with_rules(call, args, keywords)
        return box(ours()(*unbox(args), **unbox(keywords)))

    call.fun = plain  # type: ignore[attr-defined]  # as a primitive has it
    if not isinstance(plain, np.ufunc):
        functools.update_wrapper(call, plain)
    call.__name__, call.__doc__ = name, plain.__doc__
    return call


def wrapped_names(
    module: str, plain: Any, ours: Any
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module with the names of `plain`.

    Args:
        module: its name.
        plain: a module for plain values.
        ours: the module, or the function of a name, for Tensors.
    """
    look_up, names = forwarding(module, plain)

    @functools.cache  # rules belong to one object
    def get(name: str) -> Any:
        value = look_up(name)
        if isinstance(value, (type, types.ModuleType)) or not callable(value):
            return value
        own = (lambda: ours(name)) if callable(ours) else (lambda: getattr(ours, name))
        return wrapped(name, value, own)

    return get, names
