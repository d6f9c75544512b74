"""Signatures: what of the arguments a program depends on, and what is an input of it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.core import backend, devices, nest
from gpugrad.core.backend import BFLOAT16, is_array
from gpugrad.core.determinism import deterministic
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.training import is_training
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError
from gpugrad.kernels.libraries.cublaslt import get_matmul_precision
from gpugrad.trace.tracing import Tracing

__all__ = ["Names", "Signature"]

Names = str | int | Sequence[str | int]
"""Arguments, by name or position."""

_EXACT = frozenset((float, complex, *(np.dtype(c).type for c in "efdgFDG"), BFLOAT16.type))
"""Of numbers that are told apart by repr: -0.0 == 0.0, and nan != nan."""

_SETTINGS = ("the default device", "the matmul precision", "set_deterministic", "nn.training")


class Signature:
    """Tells calls of one function apart.

    Args:
        f: the function.
        static: arguments that are compared by value and that `f` gets as they are.
        donate: arguments whose memory a call may take.
    """

    def __init__(self, f: Callable[..., Any], static: Names = (), donate: Names = ()) -> None:
        self._names, self._by_name, self._more = _parameters(f)
        self._static = self._chosen("static", static)
        self.donate = self._chosen("donate", donate)

    def _chosen(self, what: str, which: Names) -> frozenset[Any]:
        """Arguments given by name or position, as both: a call may use either.

        Raises:
            ArgumentError: the function has no such parameter.
        """
        found: set[Any] = set()
        for one in [which] if isinstance(which, (str, int)) else which:
            if isinstance(one, str) and one in self._names:
                found |= {one, self._names.index(one)}
            elif isinstance(one, int) and 0 <= one < len(self._names):
                found |= {one, self._names[one]}
            elif one in self._by_name or ("*" if type(one) is int else "**") in self._more:
                found.add(one)
            else:
                raise ArgumentError(
                    f"function: {what}={one!r} is no argument; there are "
                    f"{', '.join([*self._names, *self._by_name]) or 'none'}, counted from 0."
                )
        return frozenset(found)

    def key(self, args: Any, keywords: Any) -> tuple[Any, list[Any]]:
        """What a program depends on, and the arrays of the arguments, each one once.

        Raises:
            ArgumentError: an argument that cannot be compared.
        """
        statics: Any = ()
        if self._static:
            args, keywords, found = self._parted(args, keywords)
            statics = tuple((at, self._by_value(at, value)) for at, value in found)
        leaves: Any = args
        forms: Any = len(args), 0
        if not _are_tensors(args, keywords):
            leaves = []
            forms = _form(args, leaves), _form(keywords, leaves)
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
                    arrays.append(tensor(leaf)._data)
                array = arrays[at]
                device = array.device  # of NumPy's arrays "cpu"
                device = device if type(array) is np.ndarray else device.id
                parts.append((at, array.shape, array.dtype, device))
            else:
                parts.append(_value(leaf))
        device, precision = devices.default_device(), get_matmul_precision()
        settings = device, precision, deterministic(), is_training()
        return (*forms, tuple(parts), settings, statics), arrays

    def inputs(
        self, trace: Tracing, args: Any, keywords: Any, wanted: Sequence[Tensor]
    ) -> tuple[Any, Any, list[Tensor]]:
        """The arguments with inputs of a trace for their arrays, and those for `wanted`.

        A Variable stays what it is.
        """
        inputs: dict[int, Tensor] = {}

        def traced(leaf: Any) -> Any:
            if isinstance(leaf, Variable) or not (isinstance(leaf, Tensor) or is_array(leaf)):
                return leaf
            if id(leaf) not in inputs:
                inputs[id(leaf)] = wrap(trace.input(tensor(leaf)._data))
            return inputs[id(leaf)]

        given, named = self.mapped(traced, args, keywords)
        return given, named, [inputs.get(id(x), x) for x in wanted]

    def leaves(self, args: Any, keywords: Any) -> list[Any]:
        """The leaves of the arguments that are not static."""
        if self._static:
            args, keywords, _ = self._parted(args, keywords)
        return nest.flatten((args, keywords))

    def paths(self, args: Any, keywords: Any) -> Iterator[tuple[str, Any]]:
        """Those leaves, each with how it is written."""
        if self._static:
            args, keywords, _ = self._parted(args, keywords)
        for name, value in self.named(args, keywords):
            yield from zip(_paths(name, value), nest.flatten(value), strict=True)

    def mapped(self, f: Callable[[Any], Any], args: Any, keywords: Any) -> tuple[Any, Any]:
        """The arguments with `f` of each leaf that is not static."""
        found: list[tuple[Any, Any]] = []
        if self._static:
            args, keywords, found = self._parted(args, keywords)
        elif _are_tensors(args, keywords):
            return tuple(map(f, args)), keywords
        given, named = nest.map_structure(f, (args, keywords))
        if found:
            positions = list(given)
            for at, value in found:
                if isinstance(at, int):
                    positions[at] = value
                else:
                    named[at] = value
            given = tuple(positions)
        return given, named

    def donated(self, args: Any, keywords: Any) -> list[Tensor]:
        """The Tensors of the arguments that are donated."""
        chosen = [value for at, value in enumerate(args) if at in self.donate]
        chosen += [value for name, value in keywords.items() if name in self.donate]
        return [
            x for x in nest.flatten(chosen)
            if isinstance(x, Tensor) and not isinstance(x, Variable)
        ]  # fmt: skip

    def named(self, args: Any, keywords: Any) -> Iterator[tuple[str, Any]]:
        """Every argument with its name in the function."""
        for at, value in enumerate(args):
            inside = at < len(self._names)
            yield self._names[at] if inside else f"argument {at}", value
        yield from keywords.items()

    def changes(self, before: Any, now: Any, args: Any, keywords: Any) -> list[str]:
        """What differs between the key of an earlier call and that of this one, and what to do."""
        said = []
        paths = [path for path, _ in self.paths(args, keywords)]
        if before[:2] != now[:2]:
            said.append("the structure of its arguments, or how they are given. Keep to one")
        else:
            said += [
                _change(path, a, b)
                for path, a, b in zip(paths, before[2], now[2], strict=True) if a != b
            ]  # fmt: skip
        for (at, a), (_, b) in zip(before[4], now[4], strict=False):
            if a != b:
                name = at if isinstance(at, str) else [*self._names, *["an argument"] * at][at]
                path, *values = _where(name, a, b)
                was, now_is = map(_shown, values)
                said.append(f"{path}, which is static: {was}, then {now_is}. If it takes many "
                            "values, do not declare it static")  # fmt: skip
        said += [
            f"{what}: {a}, then {b}. Call it under one"
            for what, a, b in zip(_SETTINGS, before[3], now[3], strict=True) if a != b
        ]  # fmt: skip
        return said

    def _parted(self, args: Any, keywords: Any) -> tuple[Any, Any, list[tuple[Any, Any]]]:
        """The arguments with None for what is static, and the static ones by place."""
        found: list[tuple[Any, Any]] = []

        def left(at: Any, value: Any) -> Any:
            if at not in self._static:
                return value
            found.append((at, value))
            return None

        return (
            tuple(left(at, value) for at, value in enumerate(args)),
            {name: left(name, value) for name, value in keywords.items()},
            found,
        )

    def _by_value(self, at: Any, value: Any) -> Any:
        """Something hashable that is equal for equal values of a static argument."""
        if isinstance(value, Variable):
            name = self._names[at] if isinstance(at, int) and at < len(self._names) else at
            raise ArgumentError(
                f"function: the argument {name} is static and a Variable, '{value.name}', whose "
                "value may be another in the next call. Leave it out of static=."
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
    """Names by position, names of what is given by name only, and "*" and "**" for more."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # of a built-in
        return [], [], ["*", "**"]
    kind = inspect.Parameter
    first = (kind.POSITIONAL_ONLY, kind.POSITIONAL_OR_KEYWORD)
    more = {kind.VAR_POSITIONAL: "*", kind.VAR_KEYWORD: "**"}
    return (
        [p.name for p in parameters if p.kind in first],
        [p.name for p in parameters if p.kind == kind.KEYWORD_ONLY],
        [more[p.kind] for p in parameters if p.kind in more],
    )


def _are_tensors(args: Any, keywords: Any) -> bool:
    """Whether a call is of Tensors alone, as most are: they need not be walked through."""
    return not keywords and {*map(type, args)} == {Tensor}


def _value(leaf: Any) -> tuple[type, Any]:
    kind = type(leaf)
    if kind in _EXACT:
        return kind, repr(leaf)
    try:
        hash(leaf)
    except TypeError:
        raise ArgumentError(
            f"function: an argument is a {kind.__name__}, which is neither a Tensor nor hashable, "
            "so it cannot be told whether it has changed."
        ) from None
    return kind, leaf


def _has_identity(value: Any) -> bool:
    """Whether a dataclass says with ``eq=False`` that each of its objects is another."""
    return dataclasses.is_dataclass(value) and type(value).__hash__ is object.__hash__


def _where(path: str, a: Any, b: Any) -> tuple[str, Any, Any]:
    """Where two static arguments, as they are compared, differ first, and what is there."""
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
    """A static argument, as it is compared, for a message."""
    kind, *_, last = static
    if len(static) == 5:
        _, dtype, shape, _, data = static
        return f"{dtype} {' '.join(str(np.frombuffer(data, dtype).reshape(shape)).split()):.60}"
    if len(static) == 3:
        return f"{kind.__name__} of {', '.join(str(key) for key, _ in last)}"
    return last if kind in _EXACT else f"{last!r:.60}"


def _form(structure: Any, leaves: list[Any]) -> Any:
    """What a structure is without its leaves, which are put to `leaves`."""
    children = nest.children(structure)
    if children is None:
        leaves.append(structure)
        return None
    return type(structure), tuple([(key, _form(child, leaves)) for key, child in children])


def _paths(name: str, structure: Any) -> Iterator[str]:
    """How each leaf is written: ``batch['x'][0]``."""
    children = nest.children(structure)
    if children is None:
        yield name
    for key, child in children or ():
        part = f".{key}" if dataclasses.is_dataclass(structure) else f"[{key!r}]"
        yield from _paths(name + part, child)


def _change(path: str, a: Any, b: Any) -> str:
    if "Variable" in (a[0], b[0]):
        return f"{path}: another Variable. Call it with the same ones"
    if not (isinstance(a[0], int) and isinstance(b[0], int)):
        said = [f"{v[1]} {list(v[0])}" if isinstance(kind, int) else
                v[0] if kind in _EXACT else f"{v[0]!r:.60}" for kind, *v in (a, b)]  # fmt: skip
        number = b[0] in backend.SCALARS
        way = f"Give it as a Tensor, gg.constant({path})" if number else "Keep to few values"
        return f"{path}: {said[0]}, then {said[1]}. {way}"
    for k, what, way in (
        (1, "shape", "Pad it to one shape"), (2, "dtype", "Cast it"), (3, "device", "Move it"),
    ):  # fmt: skip
        if a[k] != b[k]:
            before, now = (f"cuda:{v}" if type(v) is int else v for v in (a[k], b[k]))
            return f"{path}: {what} {before}, then {now}. {way}"
    return f"{path}: whether it is the same Tensor as another argument"
