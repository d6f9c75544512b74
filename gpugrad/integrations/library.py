"""Helpers of the integrations: importing a library, and its NumPy backend on Tensors."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import types
import warnings
from typing import Any

import gpugrad.numpy
from gpugrad.errors import GpugradWarning
from gpugrad.numpy.namespace import of_tensors
from gpugrad.registry import in_c

np: Any = gpugrad.numpy
"""The namespace, whose names are made when first asked for: type checkers do not see them."""


def library(module: str, package: str, *tried: str) -> Any:
    """A module of another library.

    Args:
        module: the module's name.
        package: the name by which pip installs it.
        tried: versions that the integration was tried with.

    Raises:
        ImportError: it is not installed.

    >>> library("scipy", "scipy", "1.").__name__
    'scipy'
    """
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(
            f"gpugrad.integrations needs {package}. Install it: pip install {package}=={tried[-1]}"
        ) from error
    compare_version(package, tried)
    return found


@functools.cache
def compare_version(package: str, tried: tuple[str, ...]) -> None:
    """Warn, once, if another version is installed than those tried."""
    version = importlib.metadata.version(package)
    if not version.startswith(tried):
        warnings.warn(
            f"gpugrad.integrations was tried with {package} {' and '.join(tried)}, not {version}.",
            GpugradWarning,
            stacklevel=4,
        )


def on_tensors(kind: Any, names: dict[str, Any], **keywords: Any) -> Any:
    """A subclass of a library's NumPy backend, whose methods read other globals than NumPy's.

    So the library's own code runs, on Tensors.

    Args:
        kind: the backend's class.
        names: globals that its methods get, such as ``{"np": gpugrad.numpy}``.
        keywords: of the class statement.
    """
    in_c.load()  # a backend is called with many small arrays
    members = {}
    for name, thing in vars(kind).items():
        f = thing.__func__ if isinstance(thing, staticmethod) else thing
        if isinstance(f, types.FunctionType):
            new = types.FunctionType(
                f.__code__, f.__globals__ | names, name, f.__defaults__, f.__closure__
            )
            new.__kwdefaults__ = f.__kwdefaults__
        elif f is thing:
            continue
        else:  # a function of NumPy, registered by its name
            new = of_tensors(f)
        members[name] = new if f is thing else staticmethod(new)
    return types.new_class(
        f"Gpugrad{kind.__name__}", (kind,), keywords, lambda d: d.update(members)
    )
