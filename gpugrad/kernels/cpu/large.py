"""From which size on eager ops use C kernels, and how they load them."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import on_gpu
from gpugrad.core.float_errors import MODES

FEW = 128
"""Elements up to which an exponential takes less time than a look at all results."""

PLAIN: set[type] = {np.ndarray}
"""The type of NumPy arrays, and that of what stands for one while a rule is read for C."""

# `compiler.setting` checks it; that module is loaded when something is compiled
_ALWAYS = os.environ.get("GPUGRAD_CPU_KERNELS") == "always"

LARGE = 2 if _ALWAYS else 1 << 17
"""Elements from which an eager op uses a C kernel where NumPy reads memory once as well, so that
only threads gain. Only the size decides, so that a run that is resumed computes the same."""

MIDDLE = 2 if _ALWAYS else 1 << 13
"""The same where NumPy takes several passes or slow loops. Fewer elements are not worth a second
of a compiler, once for all processes of a user."""

LARGEST_STEP = 1 << 17
"""Elements that one thread moves in a step of a program in C; of more, threads or NumPy do."""

WIDE = {np.dtype(np.float32): 0, np.dtype(np.float64): 1}
"""The dtypes of kernels that are written for both, and the numbers by which C knows them."""


_harmless: tuple[Any, Any] = (None, None)  # the last that turned no error into an exception


def errors_raise() -> bool:
    """Whether `np.errstate` turns floating-point errors into more than warnings.

    C kernels report none, so they decline and NumPy computes, as it does for small arrays.
    """
    global _harmless
    modes = MODES and MODES.get()
    last, before = _harmless
    if modes is not None and (modes is last or modes is before):  # np.geterr takes 2 us
        return False
    if not {"ignore", "warn"}.issuperset(np.geterr().values()):
        return True
    _harmless = modes, last
    return False


@functools.cache  # importlib alone takes 0.6 us
def kernels(name: str) -> Any:
    """A module of this folder; `import gpugrad` does not load it, nor the compiler."""
    return importlib.import_module(f"gpugrad.kernels.cpu.{name}")


def are_numpys(*arrays: Any) -> bool:
    """Whether all are NumPy's, or Tensors of such: traced or Batched ones have no values to ask."""
    return all(a is None or type(getattr(a, "_data", a)) is np.ndarray for a in arrays)


def elements(args: Sequence[Any]) -> int:
    """The size of the array to which NumPy's arrays among some are broadcast; 0 if they cannot."""
    shape, size = None, 0
    for a in args:
        if type(a) is not np.ndarray or a.shape == shape:
            continue
        if shape is not None:
            try:
                return np.broadcast(*(b for b in args if type(b) is np.ndarray)).size
            except ValueError:
                return 0
        shape, size = a.shape, a.size
    return size


def on_threads(ufunc: Any, *args: Any, out: Any = None) -> Any:
    """``ufunc(*args, out=out)`` of plain arrays and Python numbers, whose result is large."""
    return kernels("ufuncs").on_threads(ufunc, *args, out=out)


def steps_unless(takes: Callable[..., bool]) -> Callable[..., str | None]:
    """The field `opens` of an op that has a kernel on the CPU alone: one step where that is called.

    ``takes(*arrays)`` says whether the arrays are large enough.
    """

    def opens(first: Any, *others: Any, **params: Any) -> str | None:
        return "traced" if on_gpu(first) or not takes(first, *others) else None

    return opens
