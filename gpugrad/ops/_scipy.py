"""Forwards that call SciPy's special functions on the CPU, and CuPy's on a GPU."""

import functools
from collections.abc import Callable
from typing import Any

from gpugrad.core.backend import NUMPY
from gpugrad.errors import ArgumentError, DeviceError, GpugradError, reraise
from gpugrad.registry.on_arrays import typed


def of_numbers(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """A function that SciPy computes on the host: its errors name it."""
    name = name or function.__name__

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except GpugradError as error:
            reraise(error, name, {}, {})
        except Exception as error:
            raise ArgumentError(f"{name}: {error}") from error

    return call


def library_has(xp, name):
    """Whether the array library's ``special`` has a function."""
    return hasattr(xp.special, name)


def library(name):
    """A forward that calls a function of the array library's ``special``."""

    def forward(xp, *arrays):
        try:
            # some of SciPy's functions treat a Python number as float64
            return getattr(xp.special, name)(*typed(*arrays))
        except (AttributeError, TypeError) as error:
            refuse_lack(xp, name, arrays, error)
            raise

    return forward


def refuse_lack(xp, name, arrays, error):
    """DeviceError if `error` is because CuPy's ``special`` lacks what SciPy's has."""
    if xp is not NUMPY and (lack := _lack(xp, name, arrays)):
        raise DeviceError(
            f"{name}: {lack}, so it runs on the CPU only. Move its arguments there with "
            "x.to_device('cpu')."
        ) from error


def _lack(xp, name, arrays):
    """A clause that says what CuPy's ``special`` lacks for these arguments; "" if nothing."""
    if not library_has(xp, name):
        return f"cupyx.scipy.special lacks {name}"
    types = getattr(getattr(NUMPY.special, name), "types", ())  # of a ufunc: "D->D"
    if xp.lib.result_type(*arrays).kind == "c" and any("D" in signature for signature in types):
        return f"cupyx.scipy.special.{name} takes no complex numbers"
    return ""
