"""Vector spaces of values: zeros, ones, random vectors and inner products of nested arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gpugrad.compat.autograd.boxes import LEAVES, apply, getval, leaves_of, map_leaves, pack

Function = Callable[..., Any]


class VSpace:
    """The vector space of a value: its zeros, ones, random vectors and sums.

    Args:
        value: a number, an array, or nested lists, tuples and dicts of them.
    """

    mappings: ClassVar[dict[Any, Any]] = {}
    """Makers of the spaces of types that a library has registered."""
    iscomplex = False

    def __init__(self, value: Any) -> None:
        self.shape = map_leaves(vspace, getval(value))

    @classmethod
    def register(cls, value_type: Any, vspace_maker: Any = None) -> None:
        """Say what the vector space of a type's values is."""
        VSpace.mappings[value_type] = vspace_maker or cls

    def _map(self, f: Function, *nests: Any) -> Any:
        return map_leaves(f, self.shape, *nests)

    @property
    def size(self) -> int:
        """The number of real numbers in a vector."""
        return sum(space.size for space in leaves_of(self.shape))

    def zeros(self) -> Any:
        """The vector 0."""
        return self._map(lambda space: space.zeros())

    def ones(self) -> Any:
        """The sum of the standard basis."""
        return self._map(lambda space: space.ones())

    def randn(self) -> Any:
        """A vector of normal random numbers of ``numpy.random``."""
        return self._map(lambda space: space.randn())

    def standard_basis(self) -> Any:
        """The vectors with a single 1, one after the other."""
        for number, space in enumerate(leaves_of(self.shape)):
            for vector in space.standard_basis():
                parts = [s.zeros() for s in leaves_of(self.shape)]
                parts[number] = vector
                yield pack(self.shape, parts)

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two vectors; None counts as 0."""
        return y if x is None else map_leaves(lambda a, b: a + b, x, y)

    mut_add = add

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """A multiple of a vector."""
        return map_leaves(lambda leaf: leaf * a, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The real inner product of two vectors."""
        products: list[Any] = []
        self._map(lambda space, a, b: products.append(space.inner_prod(a, b)), x, y)
        return sum(products)

    def covector(self, x: Any) -> Any:
        """The covector of a vector, which is its conjugate."""
        return self._map(lambda space, leaf: space.covector(leaf), x)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}_{self.__dict__}"


class ArrayVSpace(VSpace):
    """The vector space of an array or a number."""

    def __init__(self, value: Any) -> None:
        value = getval(value)
        value = value if isinstance(value, (np.ndarray, np.generic)) else np.asarray(value)
        self.shape, self.dtype = value.shape, value.dtype

    @property
    def size(self) -> int:
        """The number of real numbers in a vector."""
        return math.prod(self.shape) * (2 if self.iscomplex else 1)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    _units: tuple[Any, ...] = (1.0,)

    def zeros(self) -> Any:
        """The vector 0."""
        return np.zeros(self.shape, self.dtype)

    def ones(self) -> Any:
        """The sum of the standard basis."""
        ones = np.ones(self.shape, self.dtype)
        return ones * sum(self._units) if self.iscomplex else ones

    def randn(self) -> Any:
        """A vector of normal random numbers of ``numpy.random``."""
        return np.asarray(sum(unit * np.random.randn(*self.shape) for unit in self._units)).astype(
            self.dtype
        )

    def standard_basis(self) -> Any:
        """The vectors with a single unit, one after the other."""
        for index in np.ndindex(*self.shape):
            for unit in self._units:
                vector = self.zeros()
                vector[index] = unit
                yield vector

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The real inner product of two vectors."""
        if not self.iscomplex:
            return apply("sum", apply("multiply", x, y))
        return apply("real", apply("sum", apply("multiply", apply("conj", x), y)))

    def covector(self, x: Any) -> Any:
        """The covector of a vector, which is its conjugate."""
        return apply("conj", x) if self.iscomplex else x


class ComplexArrayVSpace(ArrayVSpace):
    """The vector space of a complex array or number over the real numbers."""

    iscomplex = True
    _units = (1.0, 1.0j)


LEAVES.update((ArrayVSpace, ComplexArrayVSpace))


def vspace(value: Any) -> VSpace:
    """The vector space of a value.

    Raises:
        TypeError: the value is no floating number, array or nest of them.

    >>> from gpugrad.compat.autograd.extend import vspace
    >>> vspace([1.0, {"a": np.ones(2)}]).size
    3
    """
    value = getval(value)
    registered = VSpace.mappings.get(type(value))
    if registered is not None:
        made: VSpace = registered(value)
        return made
    if isinstance(value, (np.ndarray, np.inexact)):
        return (ComplexArrayVSpace if value.dtype.kind == "c" else ArrayVSpace)(value)
    if isinstance(value, (list, tuple, dict)):
        return VSpace(value)
    if isinstance(value, (float, complex)):
        return vspace(np.asarray(value))
    raise TypeError(f"Can't find vector space for value {value} of type {type(value)}.")
