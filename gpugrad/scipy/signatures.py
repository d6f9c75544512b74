"""Functions with the signatures of SciPy's, and modules with its names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def with_signature(
    formula: Callable[..., Any], home: Any, call: Callable[[inspect.BoundArguments], Any]
) -> Callable[..., Any]:
    """A function with the name of `formula` and the signature of SciPy's of that name.

    Args:
        formula: gives the name and the docstring.
        home: SciPy's module.
        call: computes the result from all arguments, SciPy's defaults among them.

    The function raises TypeError for arguments that SciPy's does not have.
    """
    name = formula.__name__
    signature = inspect.signature(getattr(home, name))

    @functools.wraps(formula)
    def function(*args: Any, **keywords: Any) -> Any:
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{name}() got other arguments than SciPy's: {error}") from None
        bound.apply_defaults()
        return call(bound)

    function.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    return function


def lazy(home: dict[str, Any], find: Callable[[str], Any]) -> tuple[Any, Any]:
    """`__getattr__` and `__dir__` of a module that finds its public names when they are asked for.

    Args:
        home: the module's globals, which keep what was found.
        find: finds the value of a name of its ``__all__``.
    """

    def get(name: str) -> Any:
        if name not in home["__all__"]:
            raise AttributeError(f"module {home['__name__']!r} has no attribute {name!r}")
        home[name] = value = find(name)
        return value

    return get, lambda: home["__all__"]
