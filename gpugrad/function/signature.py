"""Signatures: the part of the arguments that a program depends on, and its inputs."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.core import backend, devices, nest, settings
from gpugrad.core.backend import BFLOAT16, is_array
from gpugrad.core.devices import gpu_count
from gpugrad.core.holders import HOLDER, opened
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.core.views import Element, Shared, View
from gpugrad.errors import ArgumentError
from gpugrad.function.cache import by_identity
from gpugrad.function.cpu.source import compile_function
from gpugrad.kernels.runtime.launch import gpu_of
from gpugrad.trace.tracing import Tracing

Names = str | int | Sequence[str | int]
"""Arguments, by name or position."""

_EXACT = frozenset((float, complex, *(np.dtype(c).type for c in "efdgFDG"), BFLOAT16.type))
"""Types of numbers that are compared by repr: -0.0 == 0.0, and nan != nan."""


class Signature:
    """Distinguishes calls of one function.

    Args:
        f: the function.
        static: arguments that are compared by value and passed to `f` unchanged.
        donate: arguments whose memory a call may reuse.
    """

    def __init__(self, f: Callable[..., Any], static: Names = (), donate: Names = ()) -> None:
        self._names, self._by_name, self._more = _parameters(f)
        self._static = self._chosen("static", static)
        self.donate = self._chosen("donate", donate)

    def _chosen(self, what: str, which: Names) -> frozenset[Any]:
        """Arguments chosen by name or position, stored under both: a call may use either."""
        chosen: set[Any] = set()
        for one in [which] if isinstance(which, (str, int)) else which:
            if isinstance(one, str) and one in self._names:
                chosen |= {one, self._names.index(one)}
            elif isinstance(one, int) and 0 <= one < len(self._names):
                chosen |= {one, self._names[one]}
            elif one in self._by_name or ("*" if type(one) is int else "**") in self._more:
                chosen.add(one)
            else:
                raise ArgumentError(
                    f"function: {what}={one!r} is not an argument. The arguments are "
                    f"{', '.join([*self._names, *self._by_name]) or 'none'}, counted from 0."
                )
        return frozenset(chosen)

    def key(self, args: Any, keywords: Any) -> tuple[Any, list[Any]]:
        """A hashable of all that a program depends on, and the arrays of the arguments, each once.

        Raises:
            ArgumentError: an argument cannot be compared.
        """
        statics: Any = ()
        if self._static:
            args, keywords, static = self._split(args, keywords)
            statics = tuple((at, self._by_value(at, value)) for at, value in static)
        leaves: Any = args
        forms: Any = len(args), 0
        if not _are_tensors(args, keywords):
            leaves = []
            forms = _form(args, leaves), _form(keywords, leaves)
        elif len(args) == 1 or len(set(map(id, args))) == len(args):  # most calls
            own = [leaf._kept() for leaf in args]
            kinds = tuple(
                [
                    (k, a.shape, a.dtype, "cpu" if type(a) is np.ndarray else gpu_of(a))
                    for k, a in enumerate(own)
                ]
            )
            return (*forms, kinds, settings.key(devices.default_device), statics), own
        arrays: list[Any] = []
        seen: dict[int, int] = {}
        parts: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, Variable):
                parts.append(("Variable", leaf._id, leaf.shape, leaf.dtype))
            elif isinstance(leaf, Tensor) or is_array(leaf):
                at = seen.get(id(leaf))
                if at is None:
                    at = seen[id(leaf)] = len(arrays)
                    arrays.append(tensor(leaf)._kept())
                array = arrays[at]
                device = "cpu" if type(array) is np.ndarray else gpu_of(array)
                parts.append((at, array.shape, array.dtype, device))
            else:
                parts.append(_value(leaf))
        in_force = settings.key(devices.default_device)
        return (*forms, tuple(parts), in_force, statics), arrays

    def test(self, args: Any, keywords: Any) -> Callable[[Any], list[Any] | None]:
        """A compiled test of whether positional arguments have the key that these have.

        It returns their arrays, or None: then `key` tells. Most calls pass Tensors only; for all
        others it returns None. For one argument it is::

            def fits(args):
                if len(args) != 1 or in_force() is not settings:
                    return None
                x0, = args
                if not (type(x0) is t0):
                    return None
                a0 = x0._data
                if type(a0) is k0 and a0.shape == s0 and a0.dtype is d0:
                    return [a0]
        """
        distinct = len(set(map(id, args))) == len(args)
        if self._static or not (_are_tensors(args, keywords) and distinct and len(args) <= 8):
            return never
        places = range(len(args))
        data = [x._data for x in args]
        scope: dict[str, Any] = {
            "in_force": functools.partial(settings.key, devices.default_device)
        }
        scope["settings"] = scope["in_force"]()
        for k, (x, a) in enumerate(zip(args, data, strict=True)):
            scope |= {f"t{k}": type(x), f"k{k}": type(a), f"s{k}": a.shape, f"d{k}": a.dtype}
        several = [k for k in places if type(data[k]) is not np.ndarray and gpu_count() > 1]
        reads = ["_data" if type(x) is Tensor else "_kept()" for x in args]
        tensors = [f"type(x{k}) is t{k}" for k in places]
        tensors += [f"x{j} is not x{k}" for k in places for j in range(k)]
        arrays = [
            f"type(a{k}) is k{k} and a{k}.shape == s{k} and a{k}.dtype is d{k}" for k in places
        ]
        arrays += [f"a{k}.device.id == {gpu_of(data[k])}" for k in several]
        text = (
            "def fits(args):\n"
            f"    if len(args) != {len(args)} or in_force() is not settings:\n        return None\n"
            f"    {', '.join(f'x{k}' for k in places)}, = args\n"
            f"    if not ({' and '.join(tensors)}):\n        return None\n"
            + "".join(f"    a{k} = x{k}.{read}\n" for k, read in enumerate(reads))
            + f"    if {' and '.join(arrays)}:\n"
            f"        return [{', '.join(f'a{k}' for k in places)}]\n"
        )
        fits: Any = compile_function(text, "fits", scope, "test of arguments")
        return fits

    def inputs(
        self, trace: Tracing, args: Any, keywords: Any, wanted: Sequence[Tensor]
    ) -> tuple[Any, Any, list[Tensor]]:
        """The arguments with a trace's inputs in place of their arrays, and the inputs of `wanted`.

        Variables stay.
        """
        inputs: dict[int, Tensor] = {}

        def traced(leaf: Any) -> Any:
            if isinstance(leaf, Variable) or not (isinstance(leaf, Tensor) or is_array(leaf)):
                return leaf
            if id(leaf) not in inputs:
                inputs[id(leaf)] = wrap(trace.input(tensor(leaf)._data))
            return inputs[id(leaf)]

        args, keywords = self.mapped(traced, args, keywords)
        return args, keywords, [inputs.get(id(x), x) for x in wanted]

    def opened(self, args: Any, keywords: Any) -> tuple[Any, Any]:
        """The arguments with Tensors in place of the objects that hold them, but static ones."""
        if _are_tensors(args, keywords):
            return args, keywords
        if any(hasattr(type(leaf), HOLDER) for leaf in self.leaves(args, keywords)):
            args, keywords = self.mapped(opened, args, keywords)
        return args, keywords

    def leaves(self, args: Any, keywords: Any) -> list[Any]:
        """The leaves of the arguments that are not static."""
        if self._static:
            args, keywords, _ = self._split(args, keywords)
        return nest.flatten((args, keywords))

    def paths(self, args: Any, keywords: Any) -> Iterator[tuple[str, Any]]:
        """The same leaves, each with its path in source form."""
        if self._static:
            args, keywords, _ = self._split(args, keywords)
        for name, value in self.named(args, keywords):
            yield from zip(nest.paths(name, value), nest.flatten(value), strict=True)

    def mapped(self, f: Callable[[Any], Any], args: Any, keywords: Any) -> tuple[Any, Any]:
        """The arguments with `f` applied to each leaf that is not static."""
        static: list[tuple[Any, Any]] = []
        if self._static:
            args, keywords, static = self._split(args, keywords)
        elif _are_tensors(args, keywords):
            return tuple(map(f, args)), keywords
        args, keywords = nest.map_structure(f, (args, keywords))
        if static:
            positions = list(args)
            for at, value in static:
                if isinstance(at, int):
                    positions[at] = value
                else:
                    keywords[at] = value
            args = tuple(positions)
        return args, keywords

    def donated(self, args: Any, keywords: Any) -> list[Tensor]:
        """The Tensors of the arguments that are donated."""
        chosen = [value for at, value in enumerate(args) if at in self.donate]
        chosen += [value for name, value in keywords.items() if name in self.donate]
        leaves = nest.flatten(chosen)
        return [x for x in leaves if isinstance(x, Tensor) and not isinstance(x, Variable)]

    def named(self, args: Any, keywords: Any) -> Iterator[tuple[str, Any]]:
        """Every argument with the name of its parameter."""
        for at, value in enumerate(args):
            inside = at < len(self._names)
            yield self._names[at] if inside else f"argument {at}", value
        yield from keywords.items()

    def changes(self, before: Any, now: Any, args: Any, keywords: Any) -> list[str]:
        """How the key of an earlier call differs from this call's, and what to do about it."""
        changes = []
        paths = [path for path, _ in self.paths(args, keywords)]
        if before[:2] != now[:2]:
            changes.append("the structure of its arguments, or how they are passed. Keep to one")
        else:
            leaves = zip(paths, before[2], now[2], strict=True)
            changes += [_change(path, a, b) for path, a, b in leaves if a != b]
        for (at, a), (_, b) in zip(before[4], now[4], strict=False):
            if a != b:
                name = at if isinstance(at, str) else [*self._names, *["an argument"] * at][at]
                path, *values = _where(name, a, b)
                was, now_is = map(_shown, values)
                changes.append(
                    f"{path}, which is static: {was}, then {now_is}. If it takes many values, do "
                    "not declare it static"
                )
        changes += [
            f"{name}: {a}, then {b}. Call it under one" for name, a, b in before[3].changes(now[3])
        ]
        return changes

    def _split(self, args: Any, keywords: Any) -> tuple[Any, Any, list[tuple[Any, Any]]]:
        """The arguments with None in place of static ones, and the static ones by position."""
        static: list[tuple[Any, Any]] = []

        def without_static(at: Any, value: Any) -> Any:
            if at not in self._static:
                return value
            static.append((at, value))
            return None

        return (
            tuple(without_static(at, value) for at, value in enumerate(args)),
            {name: without_static(name, value) for name, value in keywords.items()},
            static,
        )

    def _by_value(self, at: Any, value: Any) -> Any:
        """A hashable that is equal for equal values of a static argument."""
        value = opened(value)
        if isinstance(value, Variable):
            name = self._names[at] if isinstance(at, int) and at < len(self._names) else at
            raise ArgumentError(
                f"function: the static argument {name} is a Variable, '{value.name}', whose value "
                "may change before the next call. Leave it out of static=."
            )
        if isinstance(value, Tensor) or is_array(value):
            array: Any = value
            if isinstance(value, Tensor):
                array = value._handed_out("a static argument")
            if array.dtype.hasobject:  # the bytes are addresses
                return type(value), array.shape, (("tolist()", self._by_value(at, array.tolist())),)
            device = str(devices.device_of(array))
            return type(value), array.dtype, array.shape, device, devices.host(array).tobytes()
        children = None if _has_identity(value) else nest.children(value)
        if children is None:
            return _value(value)
        parts = tuple((key, self._by_value(at, child)) for key, child in children)
        return type(value), len(parts), parts


def _parameters(f: Callable[..., Any]) -> tuple[list[str], list[str], list[str]]:
    """Names of positional and of keyword-only parameters, and "*" and "**" for others."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # a built-in has no signature
        return [], [], ["*", "**"]
    kind = inspect.Parameter
    first = (kind.POSITIONAL_ONLY, kind.POSITIONAL_OR_KEYWORD)
    more = {kind.VAR_POSITIONAL: "*", kind.VAR_KEYWORD: "**"}
    return (
        [p.name for p in parameters if p.kind in first],
        [p.name for p in parameters if p.kind == kind.KEYWORD_ONLY],
        [more[p.kind] for p in parameters if p.kind in more],
    )


def never(args: Any) -> None:
    """The test of a signature for which none is compiled."""


_TENSORS = frozenset((Tensor, Element, View, Shared))


def _are_tensors(args: Any, keywords: Any) -> bool:
    """Whether all arguments are Tensors, as in most calls: then no nest is traversed."""
    return not keywords and bool(args) and _TENSORS.issuperset(map(type, args))


def _value(leaf: Any) -> tuple[type, Any]:
    kind = type(leaf)
    if kind in _EXACT:
        return kind, repr(leaf)
    try:
        hash(leaf)
    except TypeError:
        raise ArgumentError(
            f"function: an argument is a {kind.__name__}, which is neither a Tensor nor hashable, "
            "so changes to it cannot be detected."
        ) from None
    return kind, by_identity(leaf)


def _has_identity(value: Any) -> bool:
    """Whether a dataclass compares by identity, declared by ``eq=False``."""
    return dataclasses.is_dataclass(value) and type(value).__hash__ is object.__hash__


def _where(path: str, a: Any, b: Any) -> tuple[str, Any, Any]:
    """The path of the first difference between two static keys, and both values there."""
    while len(a) == len(b) == 3 and a[:2] == b[:2]:
        (key, one), (other, two) = next(
            pair for pair in zip(a[2], b[2], strict=True) if pair[0] != pair[1]
        )
        if key != other:
            break
        path += f".{key}" if dataclasses.is_dataclass(a[0]) else f"[{key!r}]"
        a, b = one, two
    return path, a, b


def _shown(static: Any) -> str:
    """The key of a static argument, for a message."""
    kind, *_, last = static
    if len(static) == 5:
        _, dtype, shape, _, data = static
        return f"{dtype} {' '.join(str(np.frombuffer(data, dtype).reshape(shape)).split()):.60}"
    if len(static) == 3:
        return f"{kind.__name__} of {', '.join(str(key) for key, _ in last)}"
    return last if kind in _EXACT else f"{last!r:.60}"


def _form(structure: Any, leaves: list[Any]) -> Any:
    """The structure without its leaves, which are appended to `leaves`."""
    children = nest.children(structure)
    if children is None:
        leaves.append(structure)
        return None
    return type(structure), tuple([(key, _form(child, leaves)) for key, child in children])


def _described(key: Any) -> str:
    """The key of a leaf, for a message."""
    kind, *values = key
    if isinstance(kind, int):
        return f"{values[1]} {list(values[0])}"
    return values[0] if kind in _EXACT else f"{values[0]!r:.60}"


def _change(path: str, a: Any, b: Any) -> str:
    if "Variable" in (a[0], b[0]):
        return f"{path}: another Variable. Call it with the same ones"
    if not (isinstance(a[0], int) and isinstance(b[0], int)):
        number = b[0] in backend.SCALARS
        way = f"Pass it as a Tensor, gg.constant({path})" if number else "Keep to few values"
        return f"{path}: {_described(a)}, then {_described(b)}. {way}"
    ways = {"shape": "Pad it to one shape", "dtype": "Cast it", "device": "Move it"}
    for k, (what, way) in enumerate(ways.items(), 1):
        if a[k] != b[k]:
            before, now = (f"cuda:{v}" if type(v) is int else v for v in (a[k], b[k]))
            return f"{path}: {what} {before}, then {now}. {way}"
    return f"{path}: whether it is the same Tensor as another argument"
