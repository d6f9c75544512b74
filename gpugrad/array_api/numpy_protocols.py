"""NumPy's protocols: its functions on Tensors call gpugrad's functions.

A NumPy or scipy.special function calls gpugrad's function of that name, so that it is
differentiable and runs on the Tensor's device. If gpugrad has no such function, or none with these
arguments, NumPy computes it from the values, as of ``np.asarray(tensor)``: that raises if a tape
watches the Tensor or it is on a GPU, and otherwise returns a NumPy array.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_reductions import REDUCTIONS
from gpugrad.array_api.writes import write
from gpugrad.core.backend import ARRAYS, READINGS, TENSOR, is_array
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor, holds_tensor, tensor
from gpugrad.errors import DTypeError

_NAMES = {  # NumPy's name: gpugrad's, where they differ
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arccosh": "acosh",
    "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2",
    "arctanh": "atanh", "around": "round", "concatenate": "concat", "conjugate": "conj",
    "degrees": "rad2deg", "invert": "bitwise_invert", "left_shift": "bitwise_left_shift",
    "radians": "deg2rad", "right_shift": "bitwise_right_shift", "rint": "round",
}  # fmt: skip
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
_ARGUMENTS = {"a_max": "max", "a_min": "min", "reps": "repetitions"}
_UFUNC_DEFAULTS: dict[str, Any] = {
    "dtype": None,
    "initial": np._NoValue,
    "keepdims": False,
    "where": True,
}
_WITHOUT_EFFECT = frozenset(("kind", "subok", "hermitian"))  # on values
_IN_PLACE = frozenset(("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"))
_PRINTS = frozenset(("array2string", "array_repr", "array_str"))


# ---- ufuncs -----------------------------------------------------------------------------


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
    """Called by ``np.exp(tensor)``, ``np.add.reduce(tensor)`` and ``ndarray * tensor``."""
    for x in inputs:
        if type(x) is not Tensor and not _defers_to_tensor(x):
            return NotImplemented
    outs = keywords.pop("out", None)
    if outs is not None:
        where = keywords.pop("where", True) if method == "__call__" else True
        result = array_ufunc(self, ufunc, method, *inputs, **keywords)
        title, results = _title(ufunc, method), result if len(outs) > 1 else (result,)
        written = tuple(
            r
            if out is None
            else _write(title, out, r if where is True else TENSOR.where(where, r, out))
            for out, r in zip(outs, results, strict=True)
        )
        return written if len(outs) > 1 else written[0]
    if method == "at":
        return _at(ufunc, *inputs)
    function = _ufunc(ufunc, method)
    if function is not None:
        if method in ("__call__", "outer"):
            return _call(ufunc, function, inputs, **keywords) if keywords else function(*inputs)
        options = {
            k: v for k, v in keywords.items() if not _is_default(v, _UFUNC_DEFAULTS.get(k, ...))
        }
        if method in ("reduce", "accumulate"):
            options.setdefault("axis", 0)
        masked = REDUCTIONS.get(_REDUCTIONS.get(ufunc.__name__, "")) if method == "reduce" else None
        for candidate in (function, masked):
            if candidate is not None and _accepts(candidate, inputs, options):
                return candidate(*inputs, **options)
    return _on_values(_title(ufunc, method), getattr(ufunc, method), inputs, keywords)


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
    `where` leaves out are 0; NumPy leaves them uninitialized. `order` and `subok` change no value.
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
        results = tuple(TENSOR.where(where, r, _public().zeros_like(r)) for r in results)
    return results if ufunc.nout > 1 else results[0]


def _write(title: str, out: Any, result: Any) -> Any:
    """Write a result to `out`; to a NumPy array only if that cuts no gradient."""
    if isinstance(out, Tensor):
        return write(title, out, result)
    try:
        np.copyto(out, np.asarray(result), casting="same_kind")
    except DTypeError as error:
        raise DTypeError(
            f"{title}: the result would be written to a NumPy array: use x = x + y instead of an "
            f"array's +=, and no out=. {error}"
        ) from None
    return out


def _at(ufunc: Any, x: Any, index: Any, *values: Any) -> None:
    """``np.add.at(x, index, values)``: an index that repeats adds up."""
    title = _title(ufunc, "at")
    if ufunc not in (np.add, np.subtract) or not isinstance(x, Tensor):
        raise DTypeError(f"{title}: only numpy.add.at and numpy.subtract.at write to a Tensor.")
    values = values if ufunc is np.add else tuple(TENSOR.negative(v) for v in values)
    write(title, x, TENSOR.index_add(x, *values, index=index))


def _defers_to_tensor(x: Any) -> bool:
    """Whether the Tensor performs an operation of `x` and a Tensor."""
    if isinstance(x, (Tensor, np.generic, int, float, complex, list, tuple)):
        return True
    if isinstance(x, np.ndarray):
        return not isinstance(x, np.ma.MaskedArray)
    return is_array(x) or getattr(type(x), "__array_ufunc__", None) is None


def _public() -> Any:
    """The public namespace, in which the counterparts of NumPy's functions are found by name."""
    return sys.modules["gpugrad"]


def _title(ufunc: Any, method: str) -> str:
    is_numpys = getattr(np, ufunc.__name__, None) is ufunc
    name = f"numpy.{ufunc.__name__}" if is_numpys else f"the ufunc {ufunc.__name__}"
    return name if method == "__call__" else f"{name}.{method}"


@functools.cache
def _ufunc(ufunc: Any, method: str) -> Callable[..., Any] | None:
    """The op that corresponds to a method of a ufunc, or None."""
    name, n = ufunc.__name__, ufunc.nin
    if getattr(np, name, None) is ufunc:
        homes = [_public()]
    elif getattr(sys.modules.get("scipy.special"), name, None) is ufunc:
        homes = [_public().special, _public()]
    else:
        return None  # a user's own ufunc
    if method in ("__call__", "outer"):
        name = _NAMES.get(name, name)
    else:
        table = {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}.get(method, {})
        if name not in table:
            return None
        name = table[name]
    op = next((f for h in homes if (f := getattr(h, name, None)) is not None), None)
    if not callable(op) or (method == "__call__" and not _accepts(op, (None,) * n, {})):
        return None
    return functools.partial(_outer, op) if method == "outer" else op


def _outer(function: Callable[..., Any], a: Any, b: Any) -> Any:
    """The function of every pair of elements of `a` and `b`."""
    a, b = tensor(a), tensor(b)
    return function(a.reshape(a.shape + (1,) * b.ndim), b)


# ---- functions --------------------------------------------------------------------------


def array_function(
    self: Tensor, function: Any, types: Sequence[type], args: Any, keywords: Any
) -> Any:
    """Called by ``np.sum(tensor)``, ``np.concatenate`` and all of NumPy that is not a ufunc."""
    known = (Tensor, *ARRAYS)
    if not all(issubclass(t, known) and not issubclass(t, np.ma.MaskedArray) for t in types):
        return NotImplemented
    name = function.__name__
    if name in _METADATA:
        return _METADATA[name](*args, **keywords)
    title = f"{function.__module__}.{name}"
    if name in _CONVERSIONS and self.device.kind == "cpu" and not _is_followed(args):
        return _on_values(title, function, args, keywords)
    target = args[0] if args else next(iter(keywords.values()), None)
    if keywords.get("out") is not None:
        out = keywords.pop("out")
        return _write(title, out, function(*args, **keywords))
    if name in _PRINTS:
        shown = [v.numpy() if isinstance(v, Tensor) else v for v in args]
        return function(*shown, **keywords)
    ours = None if name in _IN_PLACE and not isinstance(target, Tensor) else _counterpart(function)
    masked = REDUCTIONS.get(_NAMES.get(name, name)) if function.__module__ == "numpy" else None
    for candidate in (ours, masked):
        if candidate is not None:
            call = _translate_arguments(function, candidate, args, keywords)
            if call is not None:
                return candidate(*call[0], **call[1])
    result = _on_values(title, function, args, keywords)
    like = not holds_tensor((*args, *keywords.values()))  # called for `like=` alone
    return tensor(result) if like else result


@functools.cache
def _counterpart(function: Any) -> Callable[..., Any] | None:
    """Gpugrad's function for one of NumPy's, or None."""
    home = _public()
    for part in function.__module__.split(".")[1:]:
        home = getattr(home, part, None)
    name = function.__name__
    adapter = _ADAPTERS.get(f"{function.__module__}.{name}".removeprefix("numpy."))
    if adapter is not None:
        return adapter
    ours = getattr(home, _NAMES.get(name, name), None)
    return ours if callable(ours) and not isinstance(ours, type) else None


def _translate_arguments(
    theirs: Any, ours: Any, args: Any, keywords: Any
) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of NumPy's function for gpugrad's; None if it does not accept them.

    Arrays are passed by position and the rest by name; arguments with NumPy's default are dropped.
    """
    try:
        numpys = _signature(theirs, ours)
        bound = numpys.bind(*args, **keywords).arguments
        accepted = _signature(ours).parameters
    except (TypeError, ValueError):
        return None
    arrays = sum(p.kind is p.POSITIONAL_ONLY for p in accepted.values())
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for place, (name, p) in enumerate(numpys.parameters.items()):
        if name not in bound:
            continue
        value = bound[name]
        if p.kind is p.VAR_POSITIONAL:
            if any(v is None for v in value):  # an array of objects, which only NumPy has
                return None
            positional += value
        elif p.kind is p.VAR_KEYWORD:
            named.update(value)
        elif place < arrays:
            positional.append(value)
        elif not _is_default(value, p.default) and name not in _WITHOUT_EFFECT:
            named[name if name in accepted else _ARGUMENTS.get(name, name)] = value
    return (positional, named) if _accepts(ours, positional, named) else None


@functools.cache
def _signature(function: Any, fallback: Any = None) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except ValueError:  # before NumPy 2.4 its functions in C have none
        if fallback is None:
            raise
        return inspect.signature(fallback)


def _accepts(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether a function can be called with these arguments."""
    try:
        _signature(function).bind(*args, **keywords)
    except (TypeError, ValueError):
        return False
    return True


def _is_default(value: Any, default: Any) -> bool:
    """Whether an argument is NumPy's default, so that it can be left out."""
    if value is default:
        return True
    return type(value) is type(default) and isinstance(value, (bool, int, str)) and value == default


# ---- functions with other arguments than gpugrad's ----------------------------------------


def _along_axis(function: str, a: Any, axis: Any, **keywords: Any) -> Any:
    """An op along an axis, or on the flattened array for axis None, as in NumPy."""
    a = tensor(a)
    a, axis = (a.reshape(-1), -1) if axis is None else (a, axis)
    return getattr(TENSOR, function)(a, axis=axis, **keywords)


def _take(a: Any, indices: Any, /, axis: Any = None) -> Any:
    a = tensor(a)
    return TENSOR.take(a.reshape(-1) if axis is None else a, indices, axis=axis or 0)


def _sort(a: Any, /, axis: Any = -1, *, stable: Any = None) -> Any:
    return _along_axis("sort", a, axis)


def _argsort(a: Any, /, axis: Any = -1, *, stable: Any = None) -> Any:
    return _along_axis("argsort", a, axis)


def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return tensor(condition).nonzero()
    return TENSOR.where(condition, x, y)


def _copy(a: Any, /, order: Any = "K") -> Any:
    return tensor(a).copy()


def _outer_product(a: Any, b: Any, /) -> Any:
    return TENSOR.outer(TENSOR.ravel(a), TENSOR.ravel(b))


def _take_along_axis(arr: Any, indices: Any, /, axis: Any = -1) -> Any:
    arr = tensor(arr)
    arr, axis = (arr.reshape(-1), -1) if axis is None else (arr, axis)
    return TENSOR.take_along_axis(arr, indices, axis=axis)


def _like(
    name: str,
    a: Any,
    /,
    dtype: Any = None,
    order: Any = "K",
    *,
    shape: Any = None,
    device: Any = None,
) -> Any:
    """``zeros_like`` and the like, also of another shape; they read no values."""
    a = tensor(a)
    if shape is None:
        return getattr(_public(), f"{name}_like")(a, dtype=dtype, device=device)
    dtype, device = dtype or a.dtype, device or a.device
    return getattr(_public(), name)(shape, dtype=dtype, device=device)


def _transpose(a: Any, /, axes: Any = None) -> Any:
    return tensor(a).transpose(*(() if axes is None else (tuple(axes),)))


def _cross(
    a: Any, b: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = TENSOR.moveaxis(a, axisa, -1), TENSOR.moveaxis(b, axisb, -1)
    return TENSOR.moveaxis(TENSOR.cross(a, b, axis=-1), -1, axisc)


def _svd(a: Any, /, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return TENSOR.svdvals(a)
    return _public().linalg.svd(a, full_matrices=full_matrices)


def _size(a: Any, axis: Any = None) -> Any:
    shape = tensor(a).shape
    if axis is None:
        return int(np.prod(shape))
    return int(np.prod([shape[i] for i in np.atleast_1d(axis)]))


def _memory(question: Any, *tensors: Any) -> bool:
    arrays = [x._data if isinstance(x, Tensor) else x for x in tensors]
    return bool(question(*arrays))


_METADATA: dict[str, Callable[..., Any]] = {  # reads no values, so no gradient is cut
    "iscomplexobj": lambda x: tensor(x).dtype.kind == "c",
    "isrealobj": lambda x: tensor(x).dtype.kind != "c",
    "may_share_memory": lambda a, b, max_work=None: _memory(np.may_share_memory, a, b),
    "ndim": lambda a: tensor(a).ndim,
    "shape": lambda a: tensor(a).shape,
    "shares_memory": lambda a, b, max_work=None: _memory(np.shares_memory, a, b),
    "size": _size,
}
_CONVERSIONS = frozenset(("atleast_1d", "atleast_2d", "atleast_3d"))
"""Functions with which SciPy converts what a user's function returns. Its compiled optimizers take
nothing but NumPy arrays, so the result is a Tensor only where that matters: see `_is_followed`."""

_ADAPTERS: dict[str, Callable[..., Any]] = {
    "argsort": _argsort,
    "copy": _copy,
    "cross": _cross,
    "empty_like": functools.partial(_like, "empty"),
    "identity": lambda n, dtype=None: _public().eye(n, dtype=dtype),
    "linalg.svd": _svd,
    "ones_like": functools.partial(_like, "ones"),
    "outer": _outer_product,
    "sort": _sort,
    "take": _take,
    "take_along_axis": _take_along_axis,
    "transpose": _transpose,
    "where": _where,
    "zeros_like": functools.partial(_like, "zeros"),
}


# ---- functions without a counterpart ------------------------------------------------------


def _on_values(title: str, function: Any, args: Any, keywords: Any) -> Any:
    """NumPy's result, computed from the values; raises if that would cut a gradient."""

    def values(x: Any) -> Any:
        if isinstance(x, Tensor):
            try:
                return np.asarray(x)
            except DTypeError as error:
                raise DTypeError(
                    f"{title}: gpugrad has no function of that name that accepts these arguments, "
                    f"so NumPy would have to compute it. {error}"
                ) from None
        if type(x) in (list, tuple):
            return type(x)(values(v) for v in x)
        return {k: values(v) for k, v in x.items()} if type(x) is dict else x

    return function(*values(tuple(args)), **values(dict(keywords)))


def _is_followed(args: Sequence[Any]) -> bool:
    """Whether a recorder of this thread, a trace or a vmap may follow what becomes of these."""
    return bool(threads.stack) or any(
        isinstance(x, Tensor) and READINGS[type(x._data)].nesting for x in args
    )


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
