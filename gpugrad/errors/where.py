"""Whose code raised an error: functions that name themselves and their arguments in theirs."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import os
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import numpy as np

from gpugrad.errors.classes import GpugradError, NumericsError
from gpugrad.errors.meaning import reraise

F = TypeVar("F", bound=Callable[..., Any])


def saying_where(function: F, name: str = "") -> F:
    """Decorate a function that is not an op: its errors name it and its arguments.

    Errors that come from the user's code, which it may call, pass unchanged.

    Args:
        function: the function, or a method.
        name: its public name if that is another; a class's for its ``__init__``.

    >>> @gg.errors.saying_where
    ... def half(x):
    ...     return x / 2
    >>> half(3.0)
    1.5
    """

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except Exception as error:
            if isinstance(error, (AssertionError, NumericsError)) or _is_from_users_code(error):
                raise
            arrays = dict(zip(_parameter_names(function), args, strict=False))
            owner = arrays.pop("self", None)
            is_init = function.__name__ == "__init__"
            title = name or (type(owner).__name__ if is_init else function.__name__)
            if type(error) is TypeError and keywords and not str(error).startswith(f"{title}: "):
                # the module has tables, which `import gpugrad` does not need
                known_as = importlib.import_module("gpugrad.core.known_as")
                if (wrong := known_as.wrong_keywords(function, title, keywords)) is not None:
                    raise wrong from None
            named = isinstance(error, (GpugradError, TypeError))
            if named and str(error).startswith(f"{title}: "):
                raise
            if type(error) is TypeError and re.match(r"[A-Z]\w*: ", str(error)):  # of a layer
                raise
            if isinstance(error, AttributeError):  # perhaps of an argument of another type
                reraise(error, title, {}, arrays | keywords)
            reraise(error, title, arrays, keywords)

    return cast(F, call)


def _parameter_names(function: Any) -> Iterable[str]:
    try:
        return inspect.signature(function).parameters
    except ValueError:  # it wraps a built-in
        return (f"argument {k}" for k in itertools.count())


_HOME = os.path.dirname(os.path.dirname(__file__)) + os.sep
EXAMPLES = os.path.join(_HOME, "examples", "")
LIBRARIES = (
    _HOME,
    "<gpugrad",
    "<frozen ",
    "<__array_function__",
    os.path.dirname(np.__file__) + os.sep,
)
"""How the names of files begin that are not a user's; but those in `EXAMPLES` are."""
_PYTHON = os.path.dirname(os.__file__) + os.sep


def _is_from_users_code(error: Exception) -> bool:
    """Whether an error has passed through code that is not a library's, below the caller."""
    trace = error.__traceback__ and error.__traceback__.tb_next
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        is_python = file.startswith(_PYTHON) and "site-packages" not in file
        is_library = is_python or file.startswith(LIBRARIES) or file.endswith(".pyx")
        if file.startswith(EXAMPLES) or not is_library:
            return True
        trace = trace.tb_next
    return False
