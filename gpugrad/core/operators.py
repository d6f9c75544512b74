"""The base of arrays that wrap others, and Python's operators for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "matmul": "matmul",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
UNARY = {"neg": "negative", "invert": "bitwise_invert"}
COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
EQUALITY = {"eq": "equal", "ne": "not_equal"}


def add_operators(kind: type, xp: Any) -> None:
    """Add Python's operators to a type that wraps arrays: each calls the op of its reading `xp`."""

    def operator(name: str, reflected: bool = False) -> Callable[..., Any]:
        def method(self: Any, *other: Any) -> Any:
            return getattr(xp, name)(*((*other, self) if reflected else (self, *other)))

        return method

    for symbol, name in (BINARY | UNARY | COMPARISONS | EQUALITY).items():
        setattr(kind, f"__{symbol}__", operator(name))
    for symbol, name in BINARY.items():
        setattr(kind, f"__r{symbol}__", operator(name, reflected=True))


class Wrapper:
    """An array that wraps another one, `inner`, and forwards its attributes.

    A subclass says with `_refuse` why it has no values.
    """

    __slots__ = ()
    __array_ufunc__ = None  # ndarray * Wrapper must call Wrapper.__rmul__
    base = True  # as for a NumPy view, so that nobody writes to its memory
    inner: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Length along each axis."""
        return self.inner.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.inner.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.inner.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.inner.dtype

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return self.inner.nbytes

    def copy(self) -> Any:
        """The array itself, because nobody writes to it."""
        return self

    def _refuse(self, *args: Any, **keywords: Any) -> Any:
        raise NotImplementedError

    def _no_values(self, *args: Any, **keywords: Any) -> Any:
        return self._refuse()

    item = tolist = get = view = _no_values
    __bool__ = __float__ = __int__ = __index__ = __iter__ = _no_values
