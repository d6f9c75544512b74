"""Array libraries: NumPy always, CuPy when it is first asked for.

A `Namespace` is one reading of the formulas: what they may call as ``xp``. Readings are
found by array type, so a new kind of array is one line in `NAMESPACES`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np

from gpugrad import errors
from gpugrad.errors import DTypeError

__all__ = [
    "ARRAYS",
    "BFLOAT16",
    "EXAMPLES",
    "HALF",
    "NAMESPACES",
    "NUMPY",
    "SCALARS",
    "TENSOR",
    "Namespace",
    "as_array",
    "as_dtype",
    "between_numbers",
    "cupy",
    "innermost_array",
    "is_array",
    "is_inexact",
    "on_gpu",
    "reading",
]

SCALARS = frozenset((int, float, bool, complex))
"""Python's own numbers: weak, they take the dtype of the array they meet."""

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALF = frozenset((np.dtype(np.float16), BFLOAT16))
"""Sixteen-bit floats: formulas that are more than one ufunc compute them in float32."""


class Namespace:
    """What a formula may call as `xp`: the registered ops, in one reading.

    ``xp.lib`` is the array library itself, for the forward of a leaf op. An op's function
    is built on its first use by `read`, which `gpugrad.registry.record` provides, and kept as an
    attribute from then on.
    """

    read: Callable[[Namespace, str], Any]
    of: Callable[[Any], Callable[..., Any]]
    """Of arrays that wrap others: an op's function on them."""

    def __init__(self, name: str, load: Callable[[], Any] | None = None, wraps: int = 0) -> None:
        self.__name__ = name
        self._load = load
        self.wraps = wraps
        """Above 0 if its arrays are made of others; of two kinds the higher is outside."""

    def __getattr__(self, name: str) -> Any:
        if name == "lib" and self._load is not None:
            value: Any = self._load()
        elif name in ("special", "linalg") and self._load is not None:
            home = "scipy" if self.__name__ == "numpy" else "cupyx.scipy"
            value = importlib.import_module(f"{home}.{name}")
        elif name == "add_reduce":  # the ufunc's method: 0.8 us where np.sum takes 2.0
            value = np.add.reduce if self is NUMPY else self.lib.sum
        else:
            value = Namespace.read(self, name)
        setattr(self, name, value)
        return value

    def __repr__(self) -> str:
        return f"<the {self.__name__} reading of the ops>"


NUMPY = Namespace("numpy", lambda: np)
TENSOR = Namespace("tensor")
NAMESPACES: dict[type, Namespace] = {np.ndarray: NUMPY}
ARRAYS: set[type] = {np.ndarray}
"""The types that a Tensor may hold."""
EXAMPLES: set[type] = set()
"""Those of them that hold a value for each example of a vmap, while there are any."""


@functools.cache
def cupy() -> Any:
    """CuPy, imported now if it was not; None where it is not installed."""
    try:
        module = importlib.import_module("cupy")
    except ImportError:
        return None
    NAMESPACES[module.ndarray] = Namespace(
        "cupy", lambda: importlib.import_module("array_api_compat.cupy")
    )
    ARRAYS.add(module.ndarray)
    errors.memory_of_device = _memory_of_device
    return module


def _memory_of_device() -> tuple[int, int, int]:
    """Bytes of the current GPU: held by arrays, kept by CuPy's pool, and free."""
    pool = cupy().get_default_memory_pool()
    return pool.used_bytes(), pool.free_bytes(), cupy().cuda.runtime.memGetInfo()[0]


def reading(*arrays: Any) -> Namespace:
    """The reading of bare arrays taken together; a NumPy scalar is NumPy's."""
    found = None
    for array in arrays:
        own = NAMESPACES.get(type(array))
        if own is not None and (found is None or own.wraps > found.wraps):
            found = own
    return found or NUMPY


def as_array(value: Any, kind: type) -> Any:
    """A bare array, of the library of array type `kind` if it is a NumPy scalar or a number."""
    if type(value) in ARRAYS:
        return value
    xp = NAMESPACES.get(kind, NUMPY)
    return (NUMPY if xp.wraps else xp).lib.asarray(value)


def between_numbers(op: Any, args: Iterable[Any]) -> bool:
    """Whether a formula computes with numbers alone, of which one was rounded to bfloat16.

    What NumPy makes of them is such a number again, beside arrays of any library.
    """
    kinds = {type(a) for a in args} if op.kind == "elementwise" else set()
    return BFLOAT16.type in kinds and kinds <= {BFLOAT16.type, np.bool_, *SCALARS}


def is_array(x: Any) -> bool:
    """Whether `x` is an array that a Tensor may hold; a CuPy array makes CuPy known."""
    if type(x) in ARRAYS:
        return True
    return type(x).__module__.partition(".")[0] == "cupy" and cupy() and type(x) in ARRAYS


def innermost_array(array: Any) -> Any:
    """The array of the library itself, below what wraps it."""
    while hasattr(array, "inner"):
        array = array.inner
    return array


def on_gpu(x: Any) -> bool:
    """Whether a kernel takes x: a bare or traced array on a GPU (none of vmap's), or its Tensor."""
    x = getattr(x, "_data", x)
    while hasattr(x, "inner") and not hasattr(x, "stacked"):
        x = x.inner
    return type(x) in NAMESPACES and not NAMESPACES[type(x)].wraps and type(x) is not np.ndarray


# ---- dtypes ------------------------------------------------------------------------------


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype of a name, a type or a dtype; numbers and booleans only."""
    if dtype is BFLOAT16 or (isinstance(dtype, str) and dtype == "bfloat16"):
        return BFLOAT16
    try:
        made = np.dtype(dtype)
    except TypeError as error:
        raise DTypeError(f"{dtype!r} is not a dtype: {error}") from error
    if made.kind not in "biufc" and made != BFLOAT16:
        raise DTypeError(f"dtype {made} is no number's: use a bool, int, float or complex dtype.")
    return made


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype has gradients: floating point or complex."""
    return dtype.kind in "fcV"
