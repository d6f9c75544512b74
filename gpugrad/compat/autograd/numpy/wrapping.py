"""The names of a module of functions of arrays, with functions that take boxes, too."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable
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
        if not (holds_box(args) or (keywords and holds_box(keywords))):
            return plain(*args, **keywords)
        if has_rules(call):
            return call_with_rules(call, args, keywords)
        function = own[0] if own else found()
        return box(function(*unbox(args), **(unbox(keywords) if keywords else keywords)))

    own: list[Callable[..., Any]] = []

    def found() -> Callable[..., Any]:
        own.append(ours())
        return own[0]

    call.fun = plain  # type: ignore[attr-defined]  # as a primitive has it
    if not isinstance(plain, np.ufunc):
        functools.update_wrapper(call, plain)
    call.__name__, call.__doc__ = name, plain.__doc__
    return call


class _Filled(types.ModuleType):
    """A module with the names of another one.

    Others copy all functions of its dict, and a ``__getattr__`` there would be one of them.
    """

    def __getattr__(self, name: str) -> Any:
        return _look_ups[self.__name__](name)


_look_ups: dict[str, Callable[[str], Any]] = {}


def fill(module: str, look_up: Callable[[str], Any], names: Iterable[str]) -> None:
    """Put names of another module into one; `look_up` finds the others, or raises."""
    this = sys.modules[module]
    for name in set(names) - vars(this).keys():
        setattr(this, name, look_up(name))
    _look_ups[module] = look_up
    this.__class__ = _Filled


def wrapped_names(
    module: str, plain: Any, ours: Any
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The look-up of a module with the names of `plain`, and all its names.

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
