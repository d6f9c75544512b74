"""``scipy.linalg`` on Tensors: `gpugrad.linalg` with SciPy's arguments, defaults and results.

``overwrite_a=``, ``overwrite_b=`` and names of LAPACK drivers have no effect. ``check_finite=``
looks at arrays on the CPU, outside `gpugrad.function` and `vmap`: a GPU would have to wait.
Forms that only LAPACK computes (`schur`, `hessenberg`, `qz`) and choices of signs, pivots and ranks
read values on the host; they have gradients, but no `vmap`.

>>> c = gg.scipy.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
>>> print(c, c.dtype)
[[2. 1.]
 [0. 2.]] float64
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
from scipy import linalg as _scipys

from gpugrad import linalg as _ours
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError
from gpugrad.scipy.linalg import banded, bases, equations, factors, forms, functions, turned

_HOMES = {
    name: value
    for part in (banded, bases, equations, factors, forms, functions, turned)
    for name, value in vars(part).items()
    if name in _scipys.__all__ and callable(value)
}
__all__ = sorted({*_HOMES, *_ours.__all__})


def _refuse_infinite(name: str, x: Any) -> None:
    """Raise if an array on the CPU holds an infinity or NaN."""
    if isinstance(x, (tuple, list)):
        for part in x:
            _refuse_infinite(name, part)
        return
    array = x._data if isinstance(x, Tensor) else x
    if isinstance(array, np.ndarray) and array.dtype.kind in "fc" and not np.isfinite(array).all():
        raise ArgumentError(
            f"scipy.linalg.{name}: an array must not contain infs or NaNs; check_finite=False lets "
            "them through."
        )


def _checking(name: str) -> Any:
    """A function that looks for infinities and NaNs first, if SciPy's does."""
    f, scipys = _HOMES.get(name, getattr(_ours, name, None)), getattr(_scipys, name, None)
    if name == "matmul_toeplitz" or not inspect.isroutine(scipys):  # SciPy's checks nothing
        return f
    if "check_finite" not in inspect.signature(scipys).parameters:
        return f
    place = list(inspect.signature(scipys).parameters).index("check_finite")
    takes = "check_finite" in inspect.signature(f).parameters

    @functools.wraps(f)
    def call(*args: Any, **keywords: Any) -> Any:
        check = args[place] if len(args) > place else keywords.get("check_finite", True)
        if check:
            _refuse_infinite(name, (*args[name == "lu_solve" :], *keywords.values()))
        if not takes:
            keywords.pop("check_finite", None)
        return f(*args, **keywords)

    return call


def __getattr__(name: str) -> Any:
    if name not in __all__:
        return getattr(_ours, name)
    globals()[name] = function = _checking(name)  # found without this function the next time
    return function


def __dir__() -> list[str]:
    return __all__
