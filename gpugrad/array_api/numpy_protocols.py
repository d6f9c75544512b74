"""NumPy's protocols: what its functions do when they are given Tensors.

A NumPy (or SciPy special) function calls gpugrad's function of that name, so that it is
differentiable and runs where the Tensor is. What gpugrad does not have, or not with those
arguments, NumPy computes from the values, as for any ``np.asarray(tensor)``: that raises where
a tape watches the Tensor or it is on a GPU, and else gives a NumPy array.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import ARRAYS, TENSOR, is_array
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import DTypeError

__all__ = ["array_function", "array_ufunc"]

_NAMES = {  # NumPy's name: gpugrad's, where they differ
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arccosh": "acosh",
    "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2",
    "arctanh": "atanh", "around": "round", "concatenate": "concat", "conjugate": "conj",
    "degrees": "rad2deg", "invert": "bitwise_invert", "left_shift": "bitwise_left_shift",
    "radians": "deg2rad", "right_shift": "bitwise_right_shift", "rint": "round",
}  # fmt: skip
_REDUCED = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min",
            "logical_and": "all", "logical_or": "any", "logaddexp": "logsumexp"}  # fmt: skip
_ACCUMULATED = {"add": "cumulative_sum", "multiply": "cumulative_prod"}
_ARGUMENTS = {"a_max": "max", "a_min": "min", "reps": "repetitions"}
_UFUNC_DEFAULTS: dict[str, Any] = {
    "casting": "same_kind", "dtype": None, "initial": np._NoValue, "keepdims": False, "order": "K",
    "subok": True, "where": True,
}  # fmt: skip
_WITHOUT_EFFECT = frozenset(("kind", "subok"))  # on values
_IN_PLACE = frozenset(("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"))
_PRINTS = frozenset(("array2string", "array_repr", "array_str"))


# ---- ufuncs -----------------------------------------------------------------------------


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
    """What ``np.exp(tensor)``, ``np.add.reduce(tensor)`` and ``ndarray * tensor`` call."""
    for x in inputs:
        if type(x) is not Tensor and not _is_known(x):
            return NotImplemented
    if keywords.pop("out", None) is not None or method == "at":
        raise _writes(_title(ufunc, method))
    function = _ufunc(ufunc, method)
    if function is not None:
        if not keywords and method == "__call__":
            return function(*inputs)
        given = {k: v for k, v in keywords.items() if not _is(v, _UFUNC_DEFAULTS.get(k, ...))}
        if method in ("reduce", "accumulate"):
            given.setdefault("axis", 0)
        if _fits(function, inputs, given):
            return function(*inputs, **given)
    return _on_values(_title(ufunc, method), getattr(ufunc, method), inputs, keywords)


def _writes(title: str) -> DTypeError:
    return DTypeError(
        f"{title}: the result of a function of Tensors is a new Tensor, and is not written into "
        "what is there already: use x = x + y for an array's +=, no out=, and y[index] = value on "
        "Tensors."
    )


def _is_known(x: Any) -> bool:
    """Whether `x` leaves it to a Tensor what to do with the two."""
    if isinstance(x, (Tensor, np.generic, int, float, complex, list, tuple)):
        return True
    if isinstance(x, np.ndarray):
        return not isinstance(x, np.ma.MaskedArray)
    return is_array(x) or getattr(type(x), "__array_ufunc__", None) is None


def _public() -> Any:
    """The public namespace, in which NumPy's functions find theirs by name."""
    return sys.modules["gpugrad"]


def _title(ufunc: Any, method: str) -> str:
    is_numpys = getattr(np, ufunc.__name__, None) is ufunc
    name = f"numpy.{ufunc.__name__}" if is_numpys else f"the ufunc {ufunc.__name__}"
    return name if method == "__call__" else f"{name}.{method}"


@functools.cache
def _ufunc(ufunc: Any, method: str) -> Callable[..., Any] | None:
    """The op that computes what a method of a ufunc does; None if there is none."""
    name, n = ufunc.__name__, ufunc.nin
    if getattr(np, name, None) is ufunc:
        homes = [_public()]
    elif getattr(sys.modules.get("scipy.special"), name, None) is ufunc:
        homes = [_public().special, _public()]
    else:
        return None  # a user's own, of whatever name
    if method in ("__call__", "outer"):
        name = _NAMES.get(name, name)
    else:
        table = {"reduce": _REDUCED, "accumulate": _ACCUMULATED}.get(method, {})
        if name not in table:
            return None
        name = table[name]
    found = next((f for h in homes if (f := getattr(h, name, None)) is not None), None)
    if not callable(found) or (method == "__call__" and not _fits(found, (None,) * n, {})):
        return None
    return functools.partial(_outer, found) if method == "outer" else found


def _outer(function: Callable[..., Any], a: Any, b: Any) -> Any:
    """Every element of `a` with every one of `b`."""
    a, b = tensor(a), tensor(b)
    return function(a.reshape(a.shape + (1,) * b.ndim), b)


# ---- functions --------------------------------------------------------------------------


def array_function(
    self: Tensor, function: Any, types: Sequence[type], args: Any, keywords: Any
) -> Any:
    """What ``np.sum(tensor)``, ``np.concatenate`` and all of NumPy that is no ufunc call."""
    known = (Tensor, *ARRAYS)
    if not all(issubclass(t, known) and not issubclass(t, np.ma.MaskedArray) for t in types):
        return NotImplemented
    name = function.__name__
    if name in _ABOUT:
        return _ABOUT[name](*args, **keywords)
    title = f"{function.__module__}.{name}"
    target = args[0] if args else next(iter(keywords.values()), None)
    if keywords.get("out") is not None or (name in _IN_PLACE and isinstance(target, Tensor)):
        raise _writes(title)
    if name in _PRINTS:
        shown = [v.numpy() if isinstance(v, Tensor) else v for v in args]
        return function(*shown, **keywords)
    ours = None if name in _IN_PLACE else _counterpart(function)  # gpugrad's return a new tensor
    if ours is not None:
        call = _translated(function, ours, args, keywords)
        if call is not None:
            return ours(*call[0], **call[1])
    return _on_values(title, function, args, keywords)


@functools.cache
def _counterpart(function: Any) -> Callable[..., Any] | None:
    """The function of gpugrad that has the name of NumPy's."""
    home = _public()
    for part in function.__module__.split(".")[1:]:
        home = getattr(home, part, None)
    name = function.__name__
    if function.__module__ == "numpy" and name in _ADAPTED:
        return _ADAPTED[name]
    found = getattr(home, _NAMES.get(name, name), None)
    return found if callable(found) and not isinstance(found, type) else None


def _translated(
    theirs: Any, ours: Any, args: Any, keywords: Any
) -> tuple[list[Any], dict[str, Any]] | None:
    """Arguments for NumPy's function as gpugrad's takes them; None if it does not take them.

    Arrays are passed by position and the rest by name; what has NumPy's default is left out.
    """
    try:
        asked = _signature(theirs, ours)
        bound = asked.bind(*args, **keywords).arguments
        takes = _signature(ours).parameters
    except (TypeError, ValueError):
        return None
    arrays = sum(p.kind is p.POSITIONAL_ONLY for p in takes.values())
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for place, (name, p) in enumerate(asked.parameters.items()):
        if name not in bound:
            continue
        value = bound[name]
        if p.kind is p.VAR_POSITIONAL:
            if any(v is None for v in value):  # an array of objects, which is NumPy's alone
                return None
            positional += value
        elif p.kind is p.VAR_KEYWORD:
            named.update(value)
        elif place < arrays:
            positional.append(value)
        elif not _is(value, p.default) and name not in _WITHOUT_EFFECT:
            named[name if name in takes else _ARGUMENTS.get(name, name)] = value
    return (positional, named) if _fits(ours, positional, named) else None


@functools.cache
def _signature(function: Any, otherwise: Any = None) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except ValueError:  # before NumPy 2.4 its functions in C do not say
        if otherwise is None:
            raise
        return inspect.signature(otherwise)


def _fits(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether a function takes these arguments."""
    try:
        _signature(function).bind(*args, **keywords)
    except (TypeError, ValueError):
        return False
    return True


def _is(value: Any, default: Any) -> bool:
    """Whether an argument is NumPy's default, so that leaving it out changes nothing."""
    if value is default:
        return True
    return type(value) is type(default) and isinstance(value, (bool, int, str)) and value == default


# ---- where the names mean something else --------------------------------------------------


def _flat(function: str, a: Any, axis: Any, **keywords: Any) -> Any:
    """Of all elements for axis None, as NumPy does it."""
    a = tensor(a)
    a, axis = (a.reshape(-1), -1) if axis is None else (a, axis)
    return getattr(TENSOR, function)(a, axis=axis, **keywords)


def _take(a: Any, indices: Any, /, axis: Any = None) -> Any:
    a = tensor(a)
    return TENSOR.take(a.reshape(-1) if axis is None else a, indices, axis=axis or 0)


def _sort(a: Any, /, axis: Any = -1, *, stable: Any = None) -> Any:
    return _flat("sort", a, axis)


def _argsort(a: Any, /, axis: Any = -1, *, stable: Any = None) -> Any:
    return _flat("argsort", a, axis)


def _nancumsum(a: Any, /, axis: Any = None, *, dtype: Any = None) -> Any:
    return _flat("nancumsum", a, axis, dtype=dtype)


def _nancumprod(a: Any, /, axis: Any = None, *, dtype: Any = None) -> Any:
    return _flat("nancumprod", a, axis, dtype=dtype)


def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return tensor(condition).nonzero()
    return TENSOR.where(condition, x, y)


def _copy(a: Any, /, order: Any = "K") -> Any:
    return tensor(a).copy()


def _outer_product(a: Any, b: Any, /) -> Any:
    return TENSOR.outer(TENSOR.ravel(a), TENSOR.ravel(b))


def _transpose(a: Any, /, axes: Any = None) -> Any:
    return tensor(a).transpose(*(() if axes is None else (tuple(axes),)))


def _size(a: Any, axis: Any = None) -> Any:
    shape = tensor(a).shape
    if axis is None:
        return int(np.prod(shape))
    return int(np.prod([shape[i] for i in np.atleast_1d(axis)]))


_ABOUT: dict[str, Callable[..., Any]] = {  # the array but not its values: no gradient is cut
    "iscomplexobj": lambda x: tensor(x).dtype.kind == "c",
    "isrealobj": lambda x: tensor(x).dtype.kind != "c",
    "ndim": lambda a: tensor(a).ndim,
    "shape": lambda a: tensor(a).shape,
    "size": _size,
}
_ADAPTED: dict[str, Callable[..., Any]] = {
    "argsort": _argsort, "copy": _copy, "nancumprod": _nancumprod, "nancumsum": _nancumsum,
    "outer": _outer_product, "sort": _sort, "take": _take, "transpose": _transpose,
    "where": _where,
}  # fmt: skip


# ---- what gpugrad does not have -----------------------------------------------------------


def _on_values(title: str, function: Any, args: Any, keywords: Any) -> Any:
    """NumPy's own answer, from the values; raises where that would cut a gradient."""

    def values(x: Any) -> Any:
        if isinstance(x, Tensor):
            try:
                return np.asarray(x)
            except DTypeError as error:
                raise DTypeError(
                    f"{title}: gpugrad has no function of that name that takes these arguments, "
                    f"so NumPy would have to compute it. {error}"
                ) from None
        if type(x) in (list, tuple):
            return type(x)(values(v) for v in x)
        return {k: values(v) for k, v in x.items()} if type(x) is dict else x

    return function(*values(tuple(args)), **values(dict(keywords)))


class OnTheType:
    """A protocol that NumPy finds on the type, while a GPU tensor itself says None.

    CuPy asks the tensor, and would take it for an array of its own; told None it leaves
    ``cupy_array * tensor`` to the tensor.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __get__(self, x: Tensor | None, owner: type | None = None) -> Any:
        if x is None:
            return self.function
        return self.function.__get__(x) if x.device.kind == "cpu" else None
