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
    """An array of another library: NumPy's, CuPy's, pandas' and others that NumPy reads.

    >>> from gpugrad.typing import SupportsArray
    >>> def on_gpugrad(x: SupportsArray) -> gg.Tensor:
    ...     return gg.asarray(x)
    >>> print(on_gpugrad(np.arange(3)))
    [0 1 2]
    """

    def __array__(self) -> Any:
        """The values as a NumPy array."""


class HasDType(Protocol):
    """An object that NumPy takes for a dtype, as another library's dtype.

    >>> from types import SimpleNamespace
    >>> like = SimpleNamespace(dtype=np.dtype("float64"))
    >>> gg.zeros(2, dtype=like).dtype.name
    'float64'
    """

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
    """The keywords of NumPy's ufuncs that the op of the same name takes beside its arrays.

    >>> from gpugrad.typing import UfuncKeywords
    >>> keywords: UfuncKeywords = {"where": [True, False], "out": gg.zeros(2)}
    >>> print(gg.add([1.0, 2.0], 1.0, **keywords))
    [2. 0.]
    """

    out: Tensor | None
    where: ArrayLike | None
    dtype: DTypeLike


class NumpyUfuncKeywords(TypedDict, total=False):
    """The keywords of the ufuncs of `gpugrad.numpy` and `gpugrad.scipy.special`, beside `out`.

    >>> import gpugrad.numpy as gnp
    >>> from gpugrad.typing import NumpyUfuncKeywords
    >>> keywords: NumpyUfuncKeywords = {"dtype": "float32", "casting": "same_kind"}
    >>> gnp.add(1.0, 2.0, **keywords).dtype.name
    'float32'
    """

    where: ArrayLike | None
    dtype: DTypeLike
    casting: str
    order: str
    subok: bool
    signature: Any
