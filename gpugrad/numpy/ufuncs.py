"""NumPy's ufuncs on Tensors: functions with the attributes and methods of a ufunc."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_calls import as_tensors, doubles
from gpugrad.array_api.numpy_protocols import op_of_ufunc
from gpugrad.core.backend import is_array
from gpugrad.core.tensor import Tensor, holds_tensor, tensor
from gpugrad.core.views import View
from gpugrad.registry.on_tensors import function_with

_TENSORS = frozenset((Tensor, View))


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
    if op is not None and op.ufunc is not None:
        names = {"by_numpy": run, "promoted": _read, "operand": _read}
        arrays = ", ".join(op.arrays)
        numbers = " and ".join(f"type({n}) in SCALARS" for n in op.arrays)
        line = f"if rest or keywords or {numbers}: return by_numpy({arrays}, *rest, **keywords)"
        function = function_with(op, "*rest, **keywords", line, names)
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
