"""``scipy.linalg`` on Tensors: `gpugrad.linalg` with SciPy's arguments, defaults and results.

``overwrite_a=``, ``overwrite_b=``, ``check_finite=`` and names of LAPACK drivers have no effect.
Forms that only LAPACK computes (`schur`, `hessenberg`, `qz`) and choices of signs, pivots and ranks
read values on the host; they have gradients, but no `vmap`.

>>> c = gg.scipy.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
>>> print(c, c.dtype)
[[2. 1.]
 [0. 2.]] float64
"""

from __future__ import annotations

from typing import Any

from scipy import linalg as _scipys

from gpugrad import linalg as _ours
from gpugrad.scipy.linalg import banded, bases, equations, factors, forms, functions, turned

_HOMES = {
    name: part
    for part in (banded, bases, equations, factors, forms, functions, turned)
    for name, value in vars(part).items()
    if name in _scipys.__all__ and callable(value)
}
__all__ = sorted({*_HOMES, *_ours.__all__})


def __getattr__(name: str) -> Any:
    return getattr(_HOMES.get(name, _ours), name)


def __dir__() -> list[str]:
    return __all__
