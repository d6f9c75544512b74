"""NumPy's objects that are indexed to make arrays: ``r_``, ``c_``, ``mgrid`` and ``ogrid``."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.array_api.numpy_results import as_tensors
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import holds_tensor, tensor
from gpugrad.numpy.creation import asarray


class _Indexed:
    """An object that makes Tensors of its index, as one of NumPy makes arrays."""

    def __init__(self, numpys: Any) -> None:
        self.numpys = numpys

    def __getitem__(self, key: Any) -> Any:
        return as_tensors(self.numpys[key])


class _Joined(_Indexed):
    """``r_`` or ``c_``, which join arrays.

    NumPy joins arrays of positions in place of Tensors; the elements are then taken from there.
    """

    def __getitem__(self, key: Any) -> Any:
        if not holds_tensor(key):
            return super().__getitem__(key)
        parts = list(key) if isinstance(key, tuple) else [key]
        pool: list[Any] = []
        size = 0
        for i, part in enumerate(parts):
            if isinstance(part, str):
                continue
            made = holds_tensor(part) or not isinstance(part, slice)
            x = tensor(asarray(part)) if made else as_tensors(np.r_[part])
            parts[i] = np.arange(size, size + x.size).reshape(x.shape)
            size += x.size
            pool.append(TENSOR.ravel(x))
        joined = TENSOR.concat(pool, axis=0)
        places = asarray(np.ascontiguousarray(self.numpys[tuple(parts)]), device=joined.device)
        return TENSOR.take(joined, places, axis=0)


r_, c_ = _Joined(np.r_), _Joined(np.c_)
mgrid, ogrid = _Indexed(np.mgrid), _Indexed(np.ogrid)
