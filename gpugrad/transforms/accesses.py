"""Variables, and Tensors in objects, that a function reads beside its other arguments."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gpugrad.core import nest
from gpugrad.core.backend import is_array
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.trace.listener import Listener

Function = Callable[..., Any]


class Accesses(Listener):
    """A listener that notes which trainable Variables are read, and records nothing.

    Attributes:
        variables: the trainable Variables that were read, by serial number.
        used: serial numbers among `known` of Tensors that ops or Python have read.
    """

    def __init__(self, known: Iterable[int] = ()) -> None:
        self.variables: dict[int, Variable] = {}
        self.known, self.used = frozenset(known), set[int]()

    def take(self, entry: Any, out: Any) -> None:
        """Note the Tensors that an op reads."""
        self.used.update(self.known.intersection(entry[2]))

    def _note_values(self, tensor: Tensor) -> None:
        """Note a Tensor whose values Python reads."""
        self.used.update(self.known.intersection((tensor._id,)))

    def touched(self, variable: Variable) -> None:
        """Note that a Variable was read."""
        if variable.trainable:
            self.variables[variable._id] = variable

    def __enter__(self) -> Accesses:
        return self.listen()

    def __exit__(self, *exc: object) -> None:
        self.leave()


def is_number(leaf: Any) -> bool:
    """Whether a leaf of arguments is a Tensor, an array or a number."""
    return isinstance(leaf, (Tensor, int, float, complex, np.generic)) or is_array(leaf)


_NO_OWNERS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, str, bytes)
"""Arguments whose attributes are not looked through for Tensors."""


def watched_in_objects(f: Function, args: Any, keywords: Any) -> dict[int, str]:
    """Watched Tensors in objects among the arguments, by serial number, with the object's path.

    The Variables of a Module are found when they are read.
    """
    found: dict[int, str] = {}
    seen: set[int] = set()

    def search(path: str, value: Any, depth: int) -> None:
        if id(value) in seen or depth < 0 or hasattr(value, "named_variables"):
            return
        seen.add(id(value))
        slots = [s for kind in type(value).__mro__ for s in getattr(kind, "__slots__", ())]
        owned = [*getattr(value, "__dict__", {}).values()]
        owned += [getattr(value, s) for s in slots if hasattr(value, s)]
        for leaf in nest.flatten(owned):
            if isinstance(leaf, Tensor):
                if any(leaf._id in r.known for r in threads.stack) or isinstance(leaf, Variable):
                    found.setdefault(leaf._id, path)
            elif not isinstance(leaf, _NO_OWNERS):
                search(path, leaf, depth - 1)

    for name, value in inspect.signature(f).bind(*args, **keywords).arguments.items():
        for path, leaf in zip(nest.paths(name, value), nest.flatten(value), strict=True):
            if not (is_number(leaf) or isinstance(leaf, _NO_OWNERS)):
                search(path, leaf, 3)
    return found
