"""NumPy's ufuncs on Tensors: functions with the attributes and methods of a ufunc."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_protocols import op_of_ufunc, run_ufunc
from gpugrad.core.backend import SCALARS, is_array
from gpugrad.core.devices import default_device, meet, put
from gpugrad.core.holders import opened
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.views import View
from gpugrad.registry.on_tensors import UFUNC_METHODS, function_with

_KEYWORDS = ("out", "where", "casting", "order", "dtype", "subok", "signature")
_TENSORS = frozenset((Tensor, View))
_ARRAYS = _TENSORS | {np.ndarray, np.float64, float, int, bool}


class _WithNumbers:
    """The readings of an op, and NumPy's for numbers alone, which it makes float64."""

    __slots__ = ("_impl", "_ufunc")

    def __init__(self, impl: Any, numpys: Any) -> None:
        self._impl, self._ufunc = impl, numpys

    def __getitem__(self, kind: type) -> Any:
        return self._of_numbers if kind in SCALARS else self._impl[kind]

    def _of_numbers(self, *numbers: Any) -> Any:
        return put(np.asarray(self._ufunc(*numbers)), default_device())


def _meet(name: str, *values: Any, **how: Any) -> tuple[Any, ...]:
    if SCALARS.issuperset(map(type, values)):
        values = tuple(put(np.asarray(v), default_device()) for v in values)
    return meet(name, *values, **how)


def _given(run: Callable[..., Any], arrays: Any, params: Any, numpys: dict[str, Any]) -> Any:
    return run(*arrays, **params, **{k: v for k, v in numpys.items() if v is not None})


class _IsUfunc(type):
    def __instancecheck__(cls, thing: Any) -> bool:
        return hasattr(thing, "reduceat") and hasattr(thing, "nargs")


class ufunc(metaclass=_IsUfunc):
    """The type of ufuncs, for `isinstance`: each is a function with NumPy's attributes.

    >>> import gpugrad.numpy as np
    >>> np.multiply.outer(np.arange(2), np.asarray([1.5, 2.0])).tolist()
    [[0.0, 0.0], [1.5, 2.0]]
    >>> isinstance(np.add, np.ufunc), np.add.nin
    (True, 2)
    """


@functools.cache
def ufunc_of(numpys: Any) -> Callable[..., Any]:
    """The function for one of NumPy's ufuncs."""
    ours = op_of_ufunc(numpys, "__call__")

    def run(*args: Any, **keywords: Any) -> Any:
        types = set(map(type, args))
        is_plain = _ARRAYS.issuperset(types) and not _TENSORS.isdisjoint(types)
        if is_plain and ours is not None and len(args) == numpys.nin and not keywords:
            return ours(*args)
        return run_ufunc(numpys, *args, own=True, **keywords)

    function: Any = run
    function.__signature__ = _signature_of(numpys)
    op = getattr(ours, "op", None)
    if op is not None and op.ufunc is not None and numpys.nout == 1:
        names = {
            "by_numpy": functools.partial(_given, run),
            "promoted": _read,
            "operand": _read,
            "impl": _WithNumbers(op.impl, numpys),
            "meet": _meet,
        }
        function = function_with(op, _KEYWORDS, names)
    function.__name__ = function.__qualname__ = numpys.__name__
    function.__module__, function.__doc__ = "gpugrad.numpy", docstring_of(numpys)
    for name in ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature"):
        setattr(function, name, getattr(numpys, name))
    for name in (*UFUNC_METHODS, "resolve_dtypes"):
        setattr(function, name, functools.partial(run_ufunc, getattr(numpys, name), own=True))
    return function


def _signature_of(numpys: Any) -> inspect.Signature:
    """The signature of a ufunc; before NumPy 2.4 it has none."""
    keywords = [*inspect.signature(_like).parameters.values()]
    if numpys.signature is not None:
        keywords = [p for p in keywords if p.name != "where"]
    names = ("x",) if numpys.nin == 1 else [f"x{k}" for k in range(1, numpys.nin + 1)]
    arrays = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    return inspect.Signature(arrays + keywords)


def _like(
    out: Any = None, *, where: Any = True, casting: str = "same_kind", order: str = "K",
    dtype: Any = None, subok: bool = True, signature: Any = None,
) -> None:  # fmt: skip
    """The keywords of ufuncs."""


def docstring_of(numpys: Any) -> str:
    """The docstring of a function of NumPy; its examples print arrays, so they are no doctests."""
    return inspect.cleandoc(numpys.__doc__ or "").replace(">>> ", "> ")


def _read(x: Any, *others: Any) -> Tensor:
    """The Tensor for an argument; numbers and lists are on the device of the Tensors beside it."""
    x = opened(x)
    if isinstance(x, Tensor):
        return x._read()
    if is_array(x):
        return tensor(x)
    home = next((v.device for v in others if isinstance(v, Tensor)), None)
    return wrap(put(np.asarray(x), home or default_device()))
