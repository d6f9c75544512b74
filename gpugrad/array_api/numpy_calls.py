"""The one door for NumPy's functions: NumPy's signature binds the arguments, an op computes.

NumPy's protocol, `gpugrad.numpy` and the methods of Tensor all call `call`. An argument that the
op lacks is applied here: ``out=`` is a recorded write, ``dtype=`` a cast, ``where=`` and
``initial=`` ops around a reduction. If gpugrad has no such function, or none with these arguments,
NumPy computes it from the values, as of ``np.asarray(tensor)``: that raises if a tape watches the
Tensor or it is on a GPU, and otherwise returns a NumPy array.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_adapters import ADAPTERS, LEAST_DTYPES, METADATA, public
from gpugrad.array_api.numpy_arguments import as_double, doubles, on_their_device
from gpugrad.array_api.numpy_linalg import LINALG_ADAPTERS
from gpugrad.array_api.numpy_reductions import REDUCTIONS
from gpugrad.array_api.numpy_results import as_dtype, cast_as, on_values, write_out
from gpugrad.array_api.writes import begin_write
from gpugrad.core.backend import READINGS
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.core.variable import Variable
from gpugrad.core.views import Shared, View
from gpugrad.errors import ArgumentError
from gpugrad.registry.numpys_form import RENAMED, numpys_signature

NAMES = {  # NumPy's name: gpugrad's, where they differ
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arccosh": "acosh",
    "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2",
    "arctanh": "atanh", "around": "round", "concatenate": "concat", "conjugate": "conj",
    "degrees": "rad2deg", "invert": "bitwise_invert", "left_shift": "bitwise_left_shift",
    "radians": "deg2rad", "right_shift": "bitwise_right_shift",
}  # fmt: skip
_WITHOUT_EFFECT = frozenset(("kind", "subok", "hermitian", "overwrite_input"))  # on values
_IN_PLACE = frozenset(("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"))
_PRINTS = frozenset(("array2string", "array_repr", "array_str"))
_CONVERSIONS = frozenset(("atleast_1d", "atleast_2d", "atleast_3d"))
"""Functions with which SciPy converts what a user's function returns. Its compiled optimizers take
nothing but NumPy arrays, so the result is a Tensor only where that matters: see `_is_followed`."""


def call(function: Any, args: Sequence[Any], keywords: Mapping[str, Any], own: bool = False) -> Any:
    """The result of one of NumPy's functions on Tensors.

    Args:
        function: NumPy's function, which is not a ufunc.
        args, keywords: its arguments.
        own: whether a namespace of gpugrad is called, in which lists of floats are float64.
    """
    plan = _plan(function)
    if plan is not None and plan.fits(args, keywords):
        result = plan.ours(*args, **keywords)
        if result is not NotImplemented:
            return result
    name = function.__name__
    if name in METADATA:
        return METADATA[name](*args, **keywords)
    title = f"{function.__module__}.{name}"
    if name in _CONVERSIONS and not own and not _is_followed(args) and _on_cpu(args):
        return on_values(title, function, args, keywords)
    if name in _PRINTS:
        shown = [v.numpy() if isinstance(v, Tensor) else v for v in args]
        return function(*shown, **keywords)
    ours = counterpart(function)
    if name in _IN_PLACE:
        target = args[0] if args else next(iter(keywords.values()), None)
        ours = ours if isinstance(target, Tensor) else None
    try:
        bound = _bind(function, ours, args, keywords)
    except ValueError:  # neither has a signature
        return on_values(title, function, args, keywords)
    except TypeError as error:
        raise TypeError(f"{title}() {error}") from None
    out = bound.arguments.pop("out", None)
    if out is not None:
        if "dtype" in bound.signature.parameters and out.dtype.kind in "biu":
            bound.arguments.setdefault("dtype", out.dtype)
        begin_write(out)
        result = call(function, bound.args, bound.kwargs, own)
        if name == "dot" and (out.dtype != result.dtype or not out.flags.c_contiguous):
            raise ArgumentError(
                f"{title}: out must have the dtype {result.dtype} and row-major order."
            )
        return write_out(title, out, result)
    masked = REDUCTIONS.get(NAMES.get(name, name)) if function.__module__ == "numpy" else None
    for candidate in (ours, masked):
        if candidate is not None:
            translated = _translate(function, bound, candidate, own)
            if translated is not None:
                result = _in_dtype(title, candidate, *translated)
                if result is not NotImplemented:
                    return result
    return on_values(title, function, args, keywords)


_TENSORS = frozenset((Tensor, Shared, Variable, View))
_ARRAYS = _TENSORS | {np.ndarray, np.float64, float, int, bool}
_METADATA_TYPES = frozenset((int, float, bool, str, tuple, type(None), np.dtype))


class _OfOperands:
    """The plan of `einsum`, which takes a string and then any number of arrays."""

    def __init__(self, ours: Any) -> None:
        self.ours = ours
        self.fitting: dict[Any, Any] = {}

    def fits(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
        """Whether all operands are Tensors, and nothing is given by name."""
        types = tuple(map(type, args))
        fits = not keywords and types[:1] == (str,) and _TENSORS.issuperset(types[1:])
        if fits:
            self.fitting[types] = self.ours
        return fits


class _Plan:
    """A call that needs no binding: the arguments given mean the same to gpugrad's function.

    Args:
        ours: gpugrad's function.
        arrays: how many arrays it takes first.
        places: how many arguments may be given by position, `least` of them must be.
        names: those that may be given by name.
        lengths: the position of a shape or of axes, which may be a list, too.
    """

    def __init__(
        self,
        ours: Any,
        arrays: int,
        least: int,
        places: int,
        names: frozenset[str],
        lengths: int | None,
    ) -> None:
        self.ours, self.arrays, self.least = ours, arrays, least
        self.places, self.names, self.lengths = places, names, lengths
        # `ours`, by types of arguments, of a list those of its elements, and names of keywords
        self.fitting: dict[Any, Any] = {}

    def fits(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
        """Whether arrays are Tensors, or beside one, and the rest are arguments that both have."""
        types = tuple(map(type, args))
        key = (types, *keywords, *map(type, keywords.values())) if keywords else types
        if key in self.fitting:
            return True
        if not self.least <= len(args) <= self.places:
            return False
        n = self.arrays
        is_list = n == 1 and types[0] in (list, tuple)
        arrays = frozenset(map(type, args[0])) if is_list else types[:n]
        rest = types[n:]
        if self.lengths is not None and types[self.lengths : self.lengths + 1] == (list,):
            rest = (*types[n : self.lengths], *types[self.lengths + 1 :])
        fits = (
            _ARRAYS.issuperset(arrays)
            and not _TENSORS.isdisjoint(arrays)
            and _METADATA_TYPES.issuperset(rest)
            and self.names.issuperset(keywords)
            and _METADATA_TYPES.issuperset(map(type, keywords.values()))
        )
        if fits and not is_list:
            self.fitting[key] = self.ours
        elif fits and not keywords:
            self.fitting[arrays, *types[1:]] = self.ours
        return fits


def fitting(function: Any) -> dict[Any, Any]:
    """Gpugrad's function by the types of the arguments of calls so far, if it takes them as given.

    >>> import gpugrad as gg
    >>> x = gg.numpy.transpose(gg.ones((2, 3)), (1, 0))
    >>> fitting(np.transpose)[gg.Tensor, tuple].__name__
    '_transpose'
    """
    if function.__name__ in METADATA:
        return {(kind,): METADATA[function.__name__] for kind in _TENSORS}
    plan = _plan(function)
    return {} if plan is None else plan.fitting


@functools.cache
def _plan(function: Any) -> _Plan | _OfOperands | None:
    name, title = function.__name__, f"{function.__module__}.{function.__name__}"
    special = name in METADATA or name in _CONVERSIONS or name in _PRINTS or name in _IN_PLACE
    if special or title in LEAST_DTYPES:
        return None
    ours = counterpart(function)
    try:
        theirs, accepted = _signature(function), _signature(ours).parameters
    except (TypeError, ValueError):
        return None
    if name == "einsum":
        return _OfOperands(ours)
    arrays = sum(p.kind is p.POSITIONAL_ONLY for p in accepted.values())
    numpys = list(theirs.parameters.values())
    numpys = [p for p in numpys if p.kind is not p.VAR_KEYWORD]
    if not arrays or any(p.kind is p.VAR_POSITIONAL for p in numpys):
        return None
    names: set[str] = set()  # of gpugrad's function
    least = sum(p.default is p.empty for p in numpys)
    for p in numpys[arrays:]:
        name = RENAMED.get(p.name, p.name)
        own = accepted.get(name)
        if own is not None and own.kind is not own.POSITIONAL_ONLY:
            if p.default in (np._NoValue, p.empty) or is_default(own.default, p.default):
                names.add(name)
            else:
                return None  # left out, it would mean something else
    places = arrays
    for p, own in zip(numpys[arrays:], list(accepted.values())[arrays:], strict=False):
        name = RENAMED.get(p.name, p.name)
        if own.kind is own.KEYWORD_ONLY or name != own.name or name not in names:
            break
        places += 1
    named = names.intersection(p.name for p in numpys)
    lengths = [i for i, p in enumerate(numpys[:places]) if p.name in ("shape", "axes")]
    of_list = lengths[0] if lengths and lengths[0] >= arrays else None
    return _Plan(ours, arrays, max(arrays, least), places, frozenset(named), of_list)


@functools.cache
def counterpart(function: Any) -> Callable[..., Any] | None:
    """Gpugrad's function for one of NumPy's, or None."""
    name, (_, *path) = function.__name__, function.__module__.split(".")
    title = ".".join((*path, name))
    adapter = ADAPTERS.get(title) or LINALG_ADAPTERS.get(title)
    if adapter is not None or "lib" in path:  # gpugrad's `lib` is NumPy's, by this very door
        return adapter
    home = public()
    for part in path:
        home = getattr(home, part, None)
    ours = getattr(home, NAMES.get(name, name), None)
    return ours if callable(ours) and not isinstance(ours, type) else None


@functools.cache
def _parameters(function: Any, ours: Any) -> dict[str, tuple[str, Any, str | None]] | None:
    """By parameter of NumPy's function: its role, default, and name in gpugrad's function.

    The roles are ``"array"``, ``"named"``, ``"*"`` and ``"**"``; a parameter without a name has no
    effect. None if gpugrad's function has no signature.
    """
    try:
        accepted = _signature(ours).parameters
    except ValueError:
        return None
    arrays = sum(p.kind is p.POSITIONAL_ONLY for p in accepted.values())
    parameters: dict[str, tuple[str, Any, str | None]] = {}
    for place, (name, p) in enumerate(_signature(function, ours).parameters.items()):
        kept = name if name in accepted else RENAMED.get(name, name)
        if p.kind is p.VAR_POSITIONAL:
            role = "*"
        elif p.kind is p.VAR_KEYWORD:
            role = "**"
        else:
            role = "array" if place < arrays else "named"
        parameters[name] = role, p.default, None if name in _WITHOUT_EFFECT else kept
    return parameters


def _translate(
    function: Any, bound: inspect.BoundArguments, ours: Any, own: bool
) -> tuple[list[Any], dict[str, Any], Any, str | None] | None:
    """The arguments of NumPy's function for gpugrad's; None if it does not accept them.

    Arrays are passed by position and the rest by name; arguments with NumPy's default are dropped.

    Returns:
        Arrays, named arguments, the dtype if `ours` has no such argument, and the casts allowed of
        the result; None for a cast of the arrays.
    """
    parameters = _parameters(function, ours)
    if parameters is None:
        return None
    accepted = _signature(ours).parameters
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        role, default, own_name = parameters[name]
        if role == "array":
            positional.append(value)
        elif role == "named":
            if own_name is not None and not is_default(value, default):
                named[own_name] = value
        elif role == "*":
            if any(v is None for v in value):  # an array of objects, which only NumPy has
                return None
            positional += value
        else:
            named.update(value)
    dtype = None if "dtype" in accepted else named.pop("dtype", None)
    casting = None if "casting" in accepted else named.pop("casting", None)
    if "casting" in parameters and dtype is not None:
        casting = casting or "same_kind"
    if not accepts(ours, positional, named):
        return None
    if own:
        op = getattr(ours, "op", None)
        positional = doubles(positional, op is not None and op.variadic)
        read = [as_double(v) if isinstance(v, (list, tuple)) else v for v in named.values()]
        given = [*named.values(), *positional]
        named = dict(zip(named, on_their_device([*read, *positional], given), strict=False))
    return positional, named, dtype, casting


def _in_dtype(
    title: str, ours: Any, arrays: list[Any], named: dict[str, Any], dtype: Any, casting: Any
) -> Any:
    """The call of gpugrad's function; it computes with, or returns, another dtype."""
    least: Any = LEAST_DTYPES.get(title)
    if least is not None:
        arrays = [as_dtype(x, least(tensor(x).dtype)) for x in arrays]
    if dtype is None:
        return ours(*arrays, **named)
    if casting is None:
        return ours(*(as_dtype(x, dtype) for x in arrays), **named)
    return cast_as(title, ours(*arrays, **named), dtype, casting)


@functools.cache
def _signature(function: Any, fallback: Any = None) -> inspect.Signature:
    try:
        return numpys_signature(function)
    except ValueError:  # before NumPy 2.4 its functions in C have none
        if fallback is None:
            raise
        return inspect.signature(fallback)


@functools.lru_cache(4096)
def _places(function: Any, ours: Any, n: int, names: tuple[str, ...]) -> inspect.BoundArguments:
    """A call with `n` positional arguments and these names: by parameter, the number or name."""
    return _signature(function, ours).bind(*range(n), **{name: name for name in names})


def _bind(
    function: Any, ours: Any, args: Sequence[Any], keywords: Mapping[str, Any]
) -> inspect.BoundArguments:
    """As ``Signature.bind``, which takes longer than most functions on small arrays."""
    places = _places(function, ours, len(args), tuple(keywords))
    given: dict[Any, Any] = {**dict(enumerate(args)), **keywords}
    arguments: dict[str, Any] = {}
    for name, place in places.arguments.items():
        if type(place) is tuple:  # of *args
            arguments[name] = tuple(given[p] for p in place)
        elif type(place) is dict:  # of **keywords
            arguments[name] = {k: given[p] for k, p in place.items()}
        else:
            arguments[name] = given[place]
    return inspect.BoundArguments(places.signature, arguments)


def accepts(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether a function can be called with these arguments."""
    try:
        _places(function, None, len(args), tuple(keywords))
    except (TypeError, ValueError):
        return False
    return True


def is_default(value: Any, default: Any) -> bool:
    """Whether an argument is NumPy's default, so that it can be left out."""
    if value is default:
        return True
    return type(value) is type(default) and isinstance(value, (bool, int, str)) and value == default


def _on_cpu(args: Sequence[Any]) -> bool:
    return all(x.device.kind == "cpu" for x in args if isinstance(x, Tensor))


def _is_followed(args: Sequence[Any]) -> bool:
    """Whether a recorder of this thread, a trace or a vmap may follow what becomes of these."""
    return bool(threads.stack) or any(
        isinstance(x, Tensor) and READINGS[type(x._data)].nesting for x in args
    )
