"""SciPy on Tensors: ``scipy.ndimage.sobel(tensor)`` runs `gpugrad.scipy.ndimage.sobel`.

Each function of SciPy that gpugrad differentiates, and the methods of each distribution, ask
whether an argument is a Tensor; else SciPy's own runs. So programs and libraries that call SciPy
get gradients where they would raise. Classes stay SciPy's: take those of `gpugrad.scipy`. Ufuncs of
`scipy.special` know Tensors without it. Leans on SciPy's modules having their functions as
attributes, which it replaces. Tried with SciPy 1.17 and 1.18.

>>> import gpugrad.integrations.scipy  # doctest: +SKIP
>>> gg.grad(lambda x: gg.sum(scipy.ndimage.sobel(x) ** 2))(gg.ones((4, 4)))  # doctest: +SKIP
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.integrations.library import library

library("scipy", "scipy", "1.17.", "1.18.")
_MODULES = """
    ndimage signal signal.windows fft linalg interpolate integrate optimize spatial spatial.distance
    stats sparse.linalg
""".split()  # noqa: SIM905
_METHODS = "pdf logpdf cdf logcdf sf logsf ppf isf pmf logpmf".split()  # noqa: SIM905


def _is_ours(x: Any) -> bool:
    return isinstance(x, gg.Tensor) or (type(x) in (tuple, list) and any(map(_is_ours, x)))


def _by_arguments(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def call(*args: Any, **keywords: Any) -> Any:
        function = ours if _is_ours([*args, *keywords.values()]) else theirs
        return function(*args, **keywords)

    return call


def _put(home: Any, ours: Any, name: str) -> None:
    theirs = getattr(home, name)
    if inspect.isroutine(theirs) and not getattr(ours, "passes_through", False):
        setattr(home, name, _by_arguments(ours, theirs))


for module in _MODULES:
    ours, theirs = (importlib.import_module(f"{p}scipy.{module}") for p in ("gpugrad.", ""))
    for name in {*ours.__all__}.intersection(theirs.__all__):
        thing = getattr(ours, name)
        if hasattr(thing, "scipys"):  # a distribution
            for method in _METHODS:
                if hasattr(thing, method) and hasattr(getattr(theirs, name), method):
                    _put(getattr(theirs, name), getattr(thing, method), method)
        else:
            _put(theirs, thing, name)
