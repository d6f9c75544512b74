"""NumPy's protocols: its functions on Tensors call gpugrad's functions.

A NumPy or scipy.special function calls gpugrad's function of that name, so that it is
differentiable and runs on the Tensor's device: see `numpy_calls`. Ufuncs are bound here.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_adapters import public
from gpugrad.array_api.numpy_arguments import doubles
from gpugrad.array_api.numpy_calls import NAMES, accepts, call, is_default
from gpugrad.array_api.numpy_reductions import REDUCTIONS
from gpugrad.array_api.numpy_results import as_tensors, cast_as, on_values, write_out
from gpugrad.array_api.writes import begin_write, write
from gpugrad.core.backend import ARRAYS, TENSOR, is_array
from gpugrad.core.tensor import Tensor, holds_tensor, operand, tensor
from gpugrad.core.views import arranged
from gpugrad.errors import DTypeError
from gpugrad.registry.on_tensors import BY_NUMPY

_REDUCTIONS = {  # a ufunc whose `reduce` is an op of gpugrad
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
    "logaddexp": "logsumexp",
}
# a ufunc whose `accumulate` is an op of gpugrad
_ACCUMULATIONS = {"add": "cumulative_sum", "multiply": "cumulative_prod"}
_UFUNC_DEFAULTS: dict[str, Any] = {
    "dtype": None,
    "initial": np._NoValue,
    "keepdims": False,
    "where": True,
}


_SHAPING = frozenset(("axes", "axis", "keepdims"))  # of generalized ufuncs


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
    """Called by ``np.exp(tensor)``, ``np.add.reduce(tensor)`` and ``ndarray * tensor``."""
    for x in inputs:
        if type(x) is not Tensor and not _defers_to_tensor(x):
            return NotImplemented
    outs = keywords.pop("out", None)
    if outs is not None:
        where = keywords.pop("where", True) if method == "__call__" else True
        for out in outs:
            begin_write(out)
        result = array_ufunc(self, ufunc, method, *inputs, **keywords)
        title, results = _title(ufunc, method), result if len(outs) > 1 else (result,)
        if "casting" in keywords:
            how = keywords["casting"]
            pairs = zip(results, outs, strict=True)
            results = [r if o is None else cast_as(title, r, o.dtype, how) for r, o in pairs]
        written = tuple(
            r if out is None else write_out(title, out, _stretched(r, out, where))
            for out, r in zip(outs, results, strict=True)
        )
        return written if len(outs) > 1 else written[0]
    if method == "at":
        return _at(ufunc, *inputs)
    function = op_of_ufunc(ufunc, method)
    if function is not None:
        if method in ("__call__", "outer") and not _SHAPING.intersection(keywords):
            return _call(ufunc, function, inputs, **keywords) if keywords else function(*inputs)
        options = {
            k: v for k, v in keywords.items() if not is_default(v, _UFUNC_DEFAULTS.get(k, ...))
        }
        if method in ("reduce", "accumulate"):
            options.setdefault("axis", 0)
        masked = REDUCTIONS.get(_REDUCTIONS.get(ufunc.__name__, "")) if method == "reduce" else None
        for candidate in (function, masked):
            if candidate is not None and accepts(candidate, inputs, options):
                return candidate(*inputs, **options)
    return on_values(_title(ufunc, method), getattr(ufunc, method), inputs, keywords)


def _stretched(result: Any, out: Any, where: Any) -> Any:
    """The result of a ufunc for `out`, to whose shape it is broadcast."""
    if where is not True:
        return TENSOR.where(where, result, out)
    shape = getattr(out, "shape", ())
    is_wider = len(shape) >= result.ndim and result.shape != shape
    if is_wider and all(a in (1, b) for a, b in zip(result.shape[::-1], shape[::-1], strict=False)):
        return arranged(TENSOR.broadcast_to(result, shape), "C", copy=True)
    return result


def _call(
    ufunc: Any,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    dtype: Any = None,
    signature: Any = None,
    casting: str = "same_kind",
    where: Any = True,
    order: str = "K",
    subok: bool = True,
) -> Any:
    """A ufunc's call with NumPy's keywords, by the op that corresponds to it.

    NumPy says which dtypes it would compute with, and whether `casting` allows that. Elements that
    `where` leaves out are 0; NumPy leaves them uninitialized. `subok` changes nothing.
    """
    outs: Sequence[Any] = ()
    if dtype is not None or signature is not None or casting != "same_kind":
        if isinstance(signature, str):
            signature = tuple(np.dtype(c) for c in signature.replace("->", ""))
        elif signature is None:
            signature = (None,) * ufunc.nin + (dtype and np.dtype(dtype),) * ufunc.nout
        given = [type(x) if type(x) in (int, float, complex) else tensor(x).dtype for x in inputs]
        dtypes = ufunc.resolve_dtypes(
            (*given, *(None,) * ufunc.nout), signature=signature, casting=casting
        )
        inputs = [TENSOR.astype(tensor(x), d) for x, d in zip(inputs, dtypes, strict=False)]
        outs = dtypes[ufunc.nin :]
    result = function(*inputs)
    results = result if ufunc.nout > 1 else (result,)
    if outs:
        results = tuple(TENSOR.astype(r, d) for r, d in zip(results, outs, strict=True))
    if where is not True:
        results = tuple(TENSOR.where(where, r, public().zeros_like(r)) for r in results)
    if order != "K":
        results = tuple(arranged(r, order) for r in results)
    return results if ufunc.nout > 1 else results[0]


def _at(ufunc: Any, x: Any, index: Any, *values: Any) -> None:
    """``np.add.at(x, index, values)``: an index that repeats adds up."""
    title = _title(ufunc, "at")
    if not isinstance(x, Tensor):
        raise DTypeError(f"{title}: it writes to a Tensor, got a {type(x).__name__}.")
    begin_write(x)
    if x.dtype.kind in "biu":  # as NumPy casts
        values = tuple(TENSOR.astype(tensor(v), x.dtype) for v in values)
    if ufunc not in (np.add, np.subtract):
        array = np.array(on_values(title, np.asarray, (x,), {}))
        on_values(title, lambda a, *rest: ufunc.at(array, *rest), (x, index, *values), {})
        write(title, x, tensor(array))
        return
    values = values if ufunc is np.add else tuple(TENSOR.negative(v) for v in values)
    write(title, x, TENSOR.index_add(x, *values, index=index))


def _defers_to_tensor(x: Any) -> bool:
    """Whether the Tensor performs an operation of `x` and a Tensor."""
    if isinstance(x, (Tensor, np.generic, int, float, complex, list, tuple)):
        return True
    if isinstance(x, np.ndarray):
        return not isinstance(x, np.ma.MaskedArray)
    return is_array(x) or getattr(type(x), "__array_ufunc__", None) is None


def _title(ufunc: Any, method: str) -> str:
    is_numpys = getattr(np, ufunc.__name__, None) is ufunc
    name = f"numpy.{ufunc.__name__}" if is_numpys else f"the ufunc {ufunc.__name__}"
    return name if method == "__call__" else f"{name}.{method}"


@functools.cache
def op_of_ufunc(ufunc: Any, method: str) -> Callable[..., Any] | None:
    """The op that corresponds to a method of a ufunc, or None."""
    name, n = ufunc.__name__, ufunc.nin
    if getattr(np, name, None) is ufunc:
        homes = [public()]
    elif getattr(sys.modules.get("scipy.special"), name, None) is ufunc:
        homes = [public().special, public()]
    else:
        return None  # a user's own ufunc
    if method in ("__call__", "outer"):
        name = NAMES.get(name, name)
    else:
        table = {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}.get(method, {})
        if name not in table:
            return None
        name = table[name]
    op = next((f for h in homes if (f := getattr(h, name, None)) is not None), None)
    if not callable(op) or (method == "__call__" and not accepts(op, (None,) * n, {})):
        return None
    return functools.partial(_outer, op) if method == "outer" else op


def _outer(function: Callable[..., Any], a: Any, b: Any) -> Any:
    """The function of every pair of elements of `a` and `b`."""
    a, b = operand(a, b), operand(b, a)
    return function(a.reshape(a.shape + (1,) * b.ndim), b)


def run_ufunc(function: Any, *args: Any, own: bool = False, **keywords: Any) -> Any:
    """The call of a ufunc or its method, by ``__array_ufunc__`` if an argument is a Tensor.

    NumPy puts the arguments in order. Lists of floats are float64 for an `own` call of
    `gpugrad.numpy`, and lists alone are NumPy's.
    """
    outs = keywords.get("out")
    outs = outs if isinstance(outs, tuple) else (outs,)
    if not own or holds_tensor((*args, *keywords.values())) or any(map(is_array, args)):
        if isinstance(args[0], (list, tuple)) and holds_tensor(args[0]):
            args = (tensor(args[0]), *args[1:])
        args = tuple(tensor(x) if type(x) is not np.ndarray and is_array(x) else x for x in args)
        is_at = function.__name__ == "at"
        if own:
            read = doubles(args)
            args = (args[0], args[1], *read[2:]) if is_at else tuple(read)  # an index stays
        if not is_at and not any(isinstance(x, Tensor) for x in (*args, *outs)):
            args = (tensor(args[0]), *args[1:])
    return as_tensors(function(*args, **keywords), (*args, *outs))


def in_numpys_form(
    op: Any, function: Any, arrays: Sequence[Any], params: dict[str, Any], numpys: dict[str, Any]
) -> Any:
    """The call of an op with arguments that only NumPy's function of that name has.

    Args:
        op, function: the record, and NumPy's function.
        arrays, params: the arguments that the op has.
        numpys: those that it has not, by name; None: not given.
    """
    ps = op.signature.parameters
    named = {k: v for k, v in params.items() if v is not ps[k].default}
    named |= {k: v for k, v in numpys.items() if v is not None}
    inputs = []
    for name, x in zip(op.arrays, arrays, strict=True):
        if name not in op.optional:
            inputs.append(x)
        elif x is not None:
            named[name] = x
    if isinstance(function, np.ufunc):
        return run_ufunc(function, *inputs, **named)
    return as_tensors(call(function, inputs, named), (*inputs, named.get("out")))


BY_NUMPY["function"], BY_NUMPY["ufunc"] = in_numpys_form, run_ufunc


def array_function(
    self: Tensor, function: Any, types: Sequence[type], args: Any, keywords: Any
) -> Any:
    """Called by ``np.sum(tensor)``, ``np.concatenate`` and all of NumPy that is not a ufunc."""
    known = (Tensor, *ARRAYS)
    if not all(issubclass(t, known) and not issubclass(t, np.ma.MaskedArray) for t in types):
        return NotImplemented
    if _takes_like(function):
        with self.device:
            return getattr(public().numpy, function.__name__)(*args, **keywords)
    return call(function, args, keywords)


@functools.cache
def _takes_like(function: Any) -> bool:
    """Whether a function makes arrays, and NumPy asks the Tensor that was passed as ``like=``."""
    try:
        return "like" in inspect.signature(function).parameters
    except ValueError:  # before NumPy 2.4, of functions in C the docstring alone says it
        return "like=None" in (function.__doc__ or "").partition("\n\n")[0]


class OnTheType:
    """A protocol that NumPy finds on the type, while a GPU tensor's own attribute is None.

    CuPy looks at the tensor and would treat it as one of its arrays; seeing None, it leaves
    ``cupy_array * tensor`` to the tensor.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __get__(self, x: Tensor | None, owner: type | None = None) -> Any:
        if x is None:
            return self.function
        return self.function.__get__(x) if x.device.kind == "cpu" else None
