"""Types for annotations, as the stubs of gpugrad's own functions use them: `gpugrad.typing`.

Shapes and dtypes are not part of a type; the docstrings give them.

>>> from gpugrad.typing import ArrayLike
>>> def energy(x: ArrayLike) -> gg.Tensor:
...     return gg.sum(gg.square(x))
>>> energy([1.0, 2.0]).item()
5.0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypedDict

import numpy as np

from gpugrad.core.devices import Device
from gpugrad.core.tensor import Tensor

__all__ = [
    "ArrayLike",
    "Axis",
    "DTypeLike",
    "DeviceLike",
    "HasDType",
    "NumpyUfuncKeywords",
    "Shape",
    "SupportsArray",
    "UfuncKeywords",
]


def __dir__() -> list[str]:
    return __all__


class SupportsArray(Protocol):
    """An array of another library: NumPy's, CuPy's, pandas' and others that NumPy reads."""

    def __array__(self) -> Any:
        """The values as a NumPy array."""


class HasDType(Protocol):
    """An object that NumPy takes for a dtype, as another library's dtype."""

    dtype: np.dtype[Any]


ArrayLike: TypeAlias = Tensor | SupportsArray | complex | list[Any] | tuple[Any, ...] | range
"""Values that ops take for an array: Tensors, arrays, numbers and nested lists of numbers.

A string is not one of them.
"""

DTypeLike: TypeAlias = np.dtype[Any] | type[Any] | str | HasDType | None
"""A dtype: `gg.float32`, ``np.float32``, ``"float32"``, ``float``; None for the default."""

DeviceLike: TypeAlias = Device | str | None
"""A device or its name; None for the default one."""

Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
"""One axis, several, or None, mostly for all of them."""

Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""A shape, or the length of one axis. It also stands for sizes along several axes."""


class UfuncKeywords(TypedDict, total=False):
    """The keywords of NumPy's ufuncs that the op of the same name takes beside its arrays."""

    out: Tensor | None
    where: ArrayLike | None
    dtype: DTypeLike


class NumpyUfuncKeywords(TypedDict, total=False):
    """The keywords of the ufuncs of `gpugrad.numpy` and `gpugrad.scipy.special`, beside `out`."""

    where: ArrayLike | None
    dtype: DTypeLike
    casting: str
    order: str
    subok: bool
    signature: Any
