"""Array libraries: NumPy always, CuPy when it is first asked for.

A `Reading` is what the formulas may call as ``xp``. `READINGS` holds the readings by the type of
their arrays.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np

from gpugrad.core.forking import cached_property, import_module, new_rlock
from gpugrad.errors import DTypeError

SCALARS = frozenset((int, float, bool, complex))
"""Python's own numbers: weak, they take the dtype of the array they meet."""

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALF = frozenset((np.dtype(np.float16), BFLOAT16))
"""Sixteen-bit floats: formulas that are more than one ufunc compute them in float32."""


def _of_all(method: Any) -> Any:
    """A method of `Ops` that asks for every op."""

    @functools.wraps(method)
    def call(self: Any) -> Any:
        self._load()
        return method(self)

    return call


class Ops(dict[str, Any]):
    """Op records by name. Shelves of ops are imported when a name on them is first asked for."""

    def __init__(self) -> None:
        self._deferred: list[Callable[[], None]] = []
        self._loading = new_rlock(awaited=4)

    def defer(self, declare: Callable[[], None]) -> None:
        """Call `declare`, which registers more ops, when a name is missing or all are asked for."""
        self._deferred.append(declare)

    def _load(self, name: object = None) -> None:
        """Import shelves until one has the name, or all of them."""
        with self._loading:  # another thread waits until they are there
            while self._deferred and not super().__contains__(name):
                declare = self._deferred.pop(0)
                try:
                    declare()
                except BaseException:  # Ctrl-C, too: the next who asks tries again
                    self._deferred.insert(0, declare)
                    raise

    def has(self, name: str) -> bool:
        """Whether an op is registered by now."""
        return super().__contains__(name)

    def __missing__(self, name: str) -> Any:
        self._load(name)
        if not self.has(name):
            raise KeyError(name)
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The record of that name, or `default`."""
        return self[name] if name in self else default  # noqa: SIM401  # this is that method

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            self._load(name)
        return super().__contains__(name)

    __iter__, __len__ = _of_all(dict.__iter__), _of_all(dict.__len__)
    keys, values, items = _of_all(dict.keys), _of_all(dict.values), _of_all(dict.items)


OPS = Ops()
"""Every op record, by name. `gpugrad.registry.record` declares them."""


class Reading:
    """The `xp` of formulas: its attributes are the ops.

    A subclass says with `function_of` how an op runs on its arrays. That function is built when the
    op is first called, and kept as an attribute.

    Attributes:
        nesting: 0 for a library's arrays, higher for arrays that wrap others. If a call has two
            kinds, the higher wraps the lower.
    """

    nesting = 0
    dtype = None  # it stands among arrays in calls of formulas, and is none

    def __init__(self, name: str) -> None:
        self.__name__ = name
        _readings.append(self)

    def function_of(self, op: Any) -> Callable[..., Any]:
        """The function that runs an op on arrays of this reading."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        op = OPS.get(name)
        if op is None:
            raise AttributeError(f"xp.{name}: not a registered op, so a formula may not call it.")
        function = self.function_of(op)
        setattr(self, name, function)
        return function

    @cached_property
    def unmasked(self) -> Reading:
        """The same reading with plain products in place of masked ones."""
        return _Unmasked(self)

    def __repr__(self) -> str:
        return f"<the {self.__name__} reading of the ops>"


class _Unmasked(Reading):
    def __init__(self, xp: Reading) -> None:
        super().__init__(xp.__name__)
        self._xp, self.nesting = xp, xp.nesting

    @cached_property
    def masked_multiply(self) -> Any:
        return self._xp.multiply

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._xp, name)
        setattr(self, name, value)
        return value


_readings: list[Reading] = []


def forget(name: str) -> None:
    """Drop the functions of an op that the readings keep: its record has changed, or is gone."""
    for xp in _readings:
        vars(xp).pop(name, None)


class LibraryReading(Reading):
    """The ops on arrays of NumPy or CuPy; ``xp.lib`` is the library itself, for leaf ops."""

    def __init__(self, name: str, load: Callable[[], Any], scipy: str) -> None:
        super().__init__(name)
        self._load, self._scipy = load, scipy

    def function_of(self, op: Any) -> Callable[..., Any]:
        """The library's function, a kernel, or the op's formula."""
        return op.bare(self)

    @cached_property
    def lib(self) -> Any:
        """The array library."""
        return self._load()

    def scipy(self, name: str) -> Any:
        """A module of SciPy, or of cupyx.scipy, for its arrays."""
        with warnings.catch_warnings():  # cupyx.scipy.signal imports what it calls experimental
            warnings.simplefilter("ignore", FutureWarning)
            return import_module(f"{self._scipy}.{name}")

    @cached_property
    def special(self) -> Any:
        """SciPy's special functions for its arrays."""
        return self.scipy("special")

    @cached_property
    def linalg(self) -> Any:
        """SciPy's linear algebra for its arrays."""
        return self.scipy("linalg")

    @cached_property
    def add_reduce(self) -> Any:
        """The sum. For NumPy it is the ufunc's method, which takes 0.8 us; np.sum takes 2.0."""
        return np.add.reduce if self.lib is np else self.lib.sum


class TensorReading(Reading):
    """The ops on Tensors, as users call them."""

    def function_of(self, op: Any) -> Callable[..., Any]:
        """The op's eager function; of numbers only, elementwise ones give a number, as in NumPy.

        The eager function would round it to float32, in a rule that computes in float64.
        """
        eager, bare = op.eager, op.bare
        if op.kind != "elementwise":
            return eager

        def run(*args: Any) -> Any:
            if SCALARS.issuperset(map(type, args)):
                return np.asarray(bare(NUMPY)(*args)).item()
            return eager(*args)

        return run


NUMPY = LibraryReading("numpy", lambda: np, "scipy")
TENSOR: Reading = TensorReading("tensor")
READINGS: dict[type, Reading] = {np.ndarray: NUMPY}
"""The readings, by the type of their arrays. A new kind of array is one more entry."""
ARRAYS: set[type] = {np.ndarray}
"""The types that a Tensor may hold."""
EXAMPLES: set[type] = set()
"""The array types that hold a value for each example of a vmap; empty while no vmap runs."""


@functools.cache
def cupy() -> Any:
    """CuPy, imported on the first call; None if it is not installed."""
    try:
        module = import_module("cupy")
    except ImportError:
        return None
    if module.__file__ is None:  # a folder of that name on the path
        return None
    READINGS[module.ndarray] = LibraryReading(
        "cupy", lambda: import_module("array_api_compat.cupy"), "cupyx.scipy"
    )
    ARRAYS.add(module.ndarray)
    return module


def reading(*arrays: Any) -> Reading:
    """The reading of plain arrays taken together; a NumPy scalar is NumPy's."""
    outermost = None
    for array in arrays:
        own = READINGS.get(type(array))
        if own is not None and (outermost is None or own.nesting > outermost.nesting):
            outermost = own
    return outermost or NUMPY


def as_array(value: Any, kind: type) -> Any:
    """A plain array; NumPy scalars and numbers become arrays of type `kind`."""
    if type(value) in ARRAYS:
        return value
    if kind is np.ndarray:
        return np.asarray(value)
    xp = READINGS.get(kind, NUMPY)
    library: Any = NUMPY if xp.nesting else xp
    return library.lib.asarray(value)


def between_numbers(op: Any, args: Iterable[Any]) -> bool:
    """Whether a formula computes with numbers only, one of them rounded to bfloat16.

    NumPy's result is again such a number, which may meet arrays of any library.
    """
    kinds = {type(a) for a in args} if op.kind == "elementwise" else set()
    return BFLOAT16.type in kinds and kinds <= {BFLOAT16.type, np.bool_, *SCALARS}


def is_array(x: Any) -> bool:
    """Whether `x` is an array that a Tensor may hold; a CuPy array makes CuPy known."""
    if type(x) in ARRAYS:
        return True
    return type(x).__module__.partition(".")[0] == "cupy" and cupy() and type(x) in ARRAYS


def may_share(a: Any, b: Any) -> bool:
    """Whether the memory of two arrays may overlap."""
    return type(a) is type(b) and bool(np.may_share_memory(a, b))


def innermost_array(array: Any) -> Any:
    """The library's array inside all wrappers."""
    while hasattr(array, "inner"):
        array = array.inner
    return array


def untraced(x: Any) -> Any:
    """The array of a Tensor, without traces around it; a Batched one stays."""
    x = getattr(x, "_data", x)
    while hasattr(x, "inner") and not hasattr(x, "stacked"):
        x = x.inner
    return x


def on_gpu(x: Any) -> bool:
    """Whether a kernel takes x: a plain or traced array on a GPU (not Batched), or its Tensor."""
    x = untraced(x)
    return type(x) in READINGS and not READINGS[type(x)].nesting and type(x) is not np.ndarray


# ---- dtypes ------------------------------------------------------------------------------


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype of a name, a type or a dtype; numbers and booleans only."""
    if dtype is BFLOAT16 or (isinstance(dtype, str) and dtype == "bfloat16"):
        return BFLOAT16
    try:
        result = np.dtype(dtype)
    except TypeError as error:
        raise DTypeError(f"{dtype!r} is not a dtype: {error}") from error
    if result.kind not in "biufc" and result != BFLOAT16:
        raise DTypeError(f"dtype {result} is not numeric: use a bool, int, float or complex dtype.")
    return result


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype has gradients: floating point or complex."""
    return dtype.kind in "fcV"
