"""The names of a module of NumPy, whose functions take and return Tensors."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_calls import call, fitting
from gpugrad.array_api.numpy_results import as_tensors
from gpugrad.core.backend import is_array
from gpugrad.core.devices import device
from gpugrad.core.known_as import MissingNameError, nearest
from gpugrad.core.tensor import Tensor, holds_tensor, tensor
from gpugrad.numpy.ufuncs import docstring_of, ufunc_of


def namespace(numpys: Any, *without: str) -> tuple[Callable[[str], Any], list[str]]:
    """The ``__getattr__`` of a module that has a NumPy module's names, and the names.

    Functions and ufuncs of NumPy become functions of Tensors. Its types and constants are its own.
    """
    home = f"gpugrad.{numpys.__name__}"
    public = getattr(numpys, "__all__", None) or dir(numpys)
    names = sorted(n for n in public if not n.startswith("_") and n not in without)

    def look_up(name: str) -> Any:
        if name.startswith("_") or name in without or not hasattr(numpys, name):
            raise MissingNameError(f"{home} has no {name!r}.", name, lambda: nearest(name, names))
        value = of_tensors(getattr(numpys, name))
        module = vars(sys.modules[home]) if home in sys.modules else {}
        if module.get("__getattr__") is look_up:
            module[name] = value  # found without this function the next time
        return value

    return look_up, names


def of_tensors(thing: Any) -> Any:
    """The function of Tensors for one of NumPy; other things unchanged."""
    if isinstance(thing, np.ufunc):
        return ufunc_of(thing)
    return thing if isinstance(thing, type) or not callable(thing) else _of_tensors(thing)


_LISTS = (list, tuple)


@functools.cache
def _of_tensors(thing: Any) -> Callable[..., Any]:
    fits: dict[Any, Any] | None = None  # looked up at the first call: it imports the ops

    @functools.wraps(thing)
    def function(*args: Any, **keywords: Any) -> Any:
        nonlocal fits
        if fits is None:
            fits = fitting(thing)
        types = (*map(type, args),)
        if keywords:
            ours = fits.get((types, *keywords, *map(type, keywords.values())))
        else:  # most calls
            ours = fits.get(types)
            if ours is None and types and types[0] in _LISTS:
                ours = fits.get((frozenset(map(type, args[0])), *types[1:]))
        if ours is not None:
            result = ours(*args, **keywords)
            if type(result) is Tensor:
                return result
            if result is not NotImplemented:
                return as_tensors(result)
        if args and isinstance(args[0], Tensor):
            return as_tensors(call(thing, args, keywords, own=True))
        if not (holds_tensor(args) or _any_tensor(keywords)):
            if not any(is_array(x) and type(x) is not np.ndarray for x in args):
                on = keywords.get("device")
                if on is not None:
                    with device(on):  # NumPy knows no other than "cpu"
                        return as_tensors(thing(*args, **{**keywords, "device": "cpu"}))
                return as_tensors(thing(*args, **keywords), (*args, *keywords.values()))
            args = tuple(tensor(x) if is_array(x) else x for x in args)
        return as_tensors(call(thing, args, keywords, own=True))

    function.__module__ = f"gpugrad.{thing.__module__}"
    function.__doc__ = docstring_of(thing)
    return function


def _any_tensor(keywords: Mapping[str, Any]) -> bool:
    return bool(keywords) and holds_tensor(tuple(keywords.values()))


def on_host(value: Any) -> Any:
    """The values of Tensors, also in lists, for NumPy; raises if that cuts a gradient."""
    if isinstance(value, Tensor):
        return np.asarray(value)
    return type(value)(map(on_host, value)) if type(value) in (list, tuple) else value
