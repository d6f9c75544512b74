"""NumPy's names for autograd's programs: plain values stay NumPy's, boxes give boxes.

A call without a box is NumPy's own. Else `gpugrad.numpy` computes it on Tensors.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as _np

import gpugrad.numpy as _gnp
from gpugrad.compat.autograd.boxes import ArrayBox, box, holds_box, unbox
from gpugrad.compat.autograd.core import notrace_primitive
from gpugrad.compat.autograd.numpy.wrapping import fill, wrapped_names

_SUBMODULES = [
    "fft",
    "linalg",
    "numpy_boxes",
    "numpy_vjps",
    "numpy_vspaces",
    "numpy_wrapper",
    "random",
]
_look_up, _names = wrapped_names(__name__, _np, _gnp)

__version__ = _np.__version__

ndim, shape = notrace_primitive(_np.ndim), notrace_primitive(_np.shape)
iscomplexobj = notrace_primitive(_np.iscomplexobj)
result_type = notrace_primitive(_np.result_type)


def _find(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _look_up(name)


def where(condition: Any, *args: Any, **keywords: Any) -> Any:
    """NumPy's ``where``; of Python's numbers it makes a Python number, as autograd does."""
    values = [*args, *(keywords[name] for name in sorted(keywords))]  # x, then y
    if holds_box((condition, values)):
        return box(_gnp.where(unbox(condition), *unbox(values)))
    result = _np.where(condition, *values)
    arrays = (_np.ndarray, _np.generic)
    is_plain = values and not any(isinstance(v, arrays) for v in (condition, *values))
    return result.tolist() if is_plain else result


def _castable(kind: Any) -> Any:
    """A type of integers whose call takes a box, and is not differentiated."""
    return type(kind.__name__, (kind,), {"__new__": notrace_primitive(kind.__new__)})


int8, int16, int32, int64 = map(_castable, (_np.int8, _np.int16, _np.int32, _np.int64))


class _Joined:
    """``r_`` and ``c_``, which take boxes between their brackets, too."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, index: Any) -> Any:
        if holds_box(index):
            return box(getattr(_gnp, self._name)[unbox(index)])
        return getattr(_np, self._name)[index]


r_, c_ = _Joined("r_"), _Joined("c_")


def concatenate_args(axis: int, *arrays: Any) -> Any:
    """The arguments joined along an axis."""
    return _look_up("concatenate")(arrays, axis)


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Matrices with the last axis of `D` on their diagonals.

    Raises:
        NotImplementedError: other than ``offset=0, axis1=-1, axis2=-2``, as in autograd.
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError(
            "Currently make_diagonal only supports offset=0, axis1=-1, axis2=-2"
        )
    D = D if isinstance(D, ArrayBox) else _np.asarray(D)
    return D[..., None] * _np.eye(D.shape[-1])


def msort(a: Any) -> Any:
    """A copy that is sorted along the first axis."""
    return _look_up("sort")(a, axis=0)


row_stack = _look_up("vstack")


def _astype(a: Any, *args: Any, **keywords: Any) -> Any:
    return a.astype(*args, **keywords)


for _name in _SUBMODULES:  # a ``from autograd.numpy import *`` copies them, too
    importlib.import_module(f"{__name__}.{_name}")
# NumPy imports testing, f2py and others when they are first asked for: so do we
fill(__name__, _find, set(_names()) & vars(_np).keys() - {*_SUBMODULES})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
