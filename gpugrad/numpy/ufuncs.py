"""NumPy's ufuncs on Tensors: functions with the attributes and methods of a ufunc."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_calls import as_tensors, doubles
from gpugrad.array_api.numpy_protocols import op_of_ufunc
from gpugrad.core.backend import SCALARS, is_array
from gpugrad.core.devices import default_device, meet, put
from gpugrad.core.tensor import Tensor, holds_tensor, tensor
from gpugrad.core.views import View
from gpugrad.registry.on_tensors import function_with

# explicit, because Python calls functions with **keywords more slowly; None: not given
_KEYWORDS = ("out", "where", "casting", "order", "dtype", "subok", "signature")
_TENSORS = frozenset((Tensor, View))


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


def _given(run: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    return run(*args, **{k: v for k, v in keywords.items() if v is not None})


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
        is_plain = len(args) == numpys.nin and _TENSORS.issuperset(map(type, args))
        if is_plain and ours is not None and not keywords:
            return ours(*args)
        return _run(numpys, *args, **keywords)

    function: Any = run
    op = getattr(ours, "op", None)
    if op is not None and op.ufunc is not None and numpys.nout == 1:
        names = {
            "by_numpy": functools.partial(_given, run),
            "promoted": _read,
            "operand": _read,
            "impl": _WithNumbers(op.impl, numpys),
            "meet": _meet,
        }
        line = f"if {' or '.join(f'{k} is not None' for k in _KEYWORDS)}: return by_numpy("
        line += f"{', '.join(op.arrays)}, {', '.join(f'{k}={k}' for k in _KEYWORDS)})"
        parameters = ", ".join(f"{k}=None" for k in _KEYWORDS)
        function = function_with(op, parameters, line, names)
    function.__name__ = function.__qualname__ = numpys.__name__
    function.__module__, function.__doc__ = "gpugrad.numpy", docstring_of(numpys)
    for name in ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature"):
        setattr(function, name, getattr(numpys, name))
    for name in ("reduce", "accumulate", "reduceat", "outer", "at", "resolve_dtypes"):
        setattr(function, name, functools.partial(_run, getattr(numpys, name)))
    return function


def _run(function: Any, *args: Any, **keywords: Any) -> Any:
    """The call of a ufunc or its method, by ``__array_ufunc__`` if an argument is a Tensor.

    NumPy puts the arguments in order.
    """
    if holds_tensor((*args, *keywords.values())) or any(map(is_array, args)):
        if isinstance(args[0], (list, tuple)) and holds_tensor(args[0]):
            args = (tensor(args[0]), *args[1:])
        args = tuple(tensor(x) if type(x) is not np.ndarray and is_array(x) else x for x in args)
        args = tuple(doubles(args))
        if not any(isinstance(x, Tensor) for x in (*args, *_outs(keywords))):
            args = (tensor(args[0]), *args[1:])
    return as_tensors(function(*args, **keywords), (*args, *_outs(keywords)))


def docstring_of(numpys: Any) -> str:
    """The docstring of a function of NumPy; its examples print arrays, so they are no doctests."""
    return inspect.cleandoc(numpys.__doc__ or "").replace(">>> ", "> ")


def _outs(keywords: dict[str, Any]) -> tuple[Any, ...]:
    out = keywords.get("out")
    return out if isinstance(out, tuple) else (out,)


def _read(x: Any, *others: Any) -> Tensor:
    """The Tensor for an argument; floats in lists are float64."""
    return x._read() if isinstance(x, Tensor) else tensor(np.asarray(x))
