"""The op record, and how ops are declared.

An op is one record, complete when it is created. Three kinds:

- *elementwise*: `elementwise(...)`; partial derivatives `d`, one for each input, give the
  VJP, the JVP and the unbroadcasting;
- *primitive*: ``@op(vjp=[...])``; one rule for each input, so unwanted gradients are never
  computed;
- *composite*: ``@op()``; no rule: on recorded Tensors the body runs on Tensors, and its ops
  are what is recorded.

A formula takes `xp` first and calls only registered ops through it. `xp` is the reading: bare
NumPy or CuPy arrays, Tensors that an outer tape records, batched arrays (`vmap`), logging arrays
(`gg.function`), or elements that write CUDA. The names of a rule's
parameters are the list of what the tape saves for it: ``out``, an input's name, an input's
name with ``_shape`` or ``_dtype``, or a metadata argument's name.

In a signature, what stands before ``/`` are arrays, what stands after it is metadata:
``def take(xp, x, indices, /, *, axis)`` (``arrays=`` names them where that cannot be).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import keyword
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.core import backend
from gpugrad.core.backend import READINGS, SCALARS, Reading, forget
from gpugrad.core.devices import meet
from gpugrad.core.forking import cached_property, import_module
from gpugrad.core.samples import grid
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, saying_where
from gpugrad.kernels.cpu.large import LARGE, MIDDLE
from gpugrad.registry.docs import complete
from gpugrad.registry.fields import Checks, Forward, Replay, Rule, Rules, defaults
from gpugrad.registry.on_arrays import bare_function, through_float32
from gpugrad.registry.on_tensors import TAKEN, eager_function, follow
from gpugrad.registry.rules import DeclaredRules

OPS = backend.OPS
"""Every registered op, by name."""


class _ByType(dict[type, Callable[..., Any]]):
    """An op's function for each array type, looked up in the type's namespace once."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __missing__(self, kind: type) -> Callable[..., Any]:
        self[kind] = function = (
            self._of_numbers if kind in SCALARS else getattr(READINGS[kind], self.name)
        )
        return function

    def _of_numbers(self, *numbers: Any, **params: Any) -> Any:
        """Python numbers only: they become arrays on the default device."""
        *arrays, kind = meet(self.name, *numbers)
        return self[kind](*arrays, **params)


@dataclasses.dataclass(eq=False, repr=False, frozen=True, kw_only=True)
class Op(DeclaredRules, Forward, Replay, Checks):
    """One operation: its forward, its derivative rules, its samples and its documentation.

    The attributes of the groups in `gpugrad.registry.fields` are its own too.

    Attributes:
        kind: ``"elementwise"``, ``"primitive"`` or ``"composite"``.
        forward: the formula, or the library's name for it.
        signature: of the function that users call.
        doc: the docstring of that function, with every section.
        home: the module that declares the op.
        eager: the function that users call, of Tensors.

    >>> gg.OPS["tanh"]
    <elementwise op tanh(x, /)>
    >>> gg.OPS["tanh"].differentiable, gg.OPS["tanh"].kinds
    (True, 'fc')
    """

    kind: str
    forward: Any
    signature: inspect.Signature
    doc: str = ""
    home: str = ""
    eager: Callable[..., Any] = None  # type: ignore[assignment]  # made for the record

    def __post_init__(self) -> None:
        super().__post_init__()
        change = vars(self)  # of a frozen record, while it is made
        change["unused"], change["errors"] = frozenset(self.unused), tuple(self.errors)
        change["by_element"] = self.by_element or self.kind == "elementwise"
        if self.large is None:
            size = LARGE if self.is_library_function else MIDDLE  # NumPy's own loop is fast
            change["large"] = size if self.cpu is True else 0
        if self.ref is None:
            change["ref"] = f"numpy.{self.name}"
        if self.eager is None:
            change["eager"] = eager_function(self)

    @cached_property
    def impl(self) -> Mapping[type, Callable[..., Any]]:
        """The op's function on bare arrays, by their type."""
        return _ByType(self.name)

    @property
    def is_library_function(self) -> bool:
        """Whether the forward is a function of the array library, by the name `forward.name`."""
        return isinstance(self.forward, _LibraryFunction)

    @cached_property
    def ufunc(self) -> Any:
        """NumPy's ufunc of one or two arrays that is the forward on NumPy arrays, or None."""
        if not self.is_library_function or len(self.arrays) > 2:
            return None
        function = getattr(np, self.forward.name, None)
        return function if type(function) is np.ufunc and function.nout == 1 else None

    @property
    def is_opened(self) -> bool:
        """Whether recorded Tensors and arrays that wrap others go through its body: a composite."""
        return self.kind == "composite" and self.differentiable

    @cached_property
    def optional(self) -> frozenset[str]:
        """The arrays that may be left out."""
        ps = self.signature.parameters
        return frozenset(n for n in self.arrays if ps[n].default is None)

    @cached_property
    def indices(self) -> Sequence[int]:
        """Positions of the arrays without a gradient: indices and masks."""
        vjp = self.declared.vjp if self.declared.d is None else ()
        return [i for i, r in enumerate(() if callable(vjp) else vjp or ()) if r is None]

    @property
    def values(self) -> Sequence[int]:
        """Positions of the arrays that decide the dtype of the result: all but indices."""
        if self.variadic:
            return (0,)
        if self.kind == "composite":  # one that takes ints takes them as numbers
            return range(len(self.arrays)) if "i" in self.kinds else ()
        has_rules = self.declared.vjp is not None or self.declared.d is not None
        return [i for i in range(len(self.arrays) * has_rules) if i not in self.indices]

    def body(self, xp: Reading) -> Callable[..., Any]:
        """The forward in one reading, which computes with 16-bit floats in float32."""
        function = functools.partial(self.forward, xp)
        if self.native_half:
            return function
        return through_float32(function, self.values, self.widens)

    @property
    def widens(self) -> bool:
        """Whether small integers become int64, lest they wrap around in the formula.

        Results of elementwise ops have the dtypes of NumPy's ufuncs, and special functions SciPy's.
        """
        return self.kind != "elementwise" and not self.home.startswith("gpugrad.ops.special")

    def bare(self, xp: Reading) -> Callable[..., Any]:
        """The op's function on bare arrays of one library."""
        return bare_function(self, xp)

    def __repr__(self) -> str:
        return f"<{self.kind} op {self.name}{self.signature}>"

    def __reduce__(self) -> Any:
        """By name, and the module that declares it."""
        return _registered, (self.name, self.home)


def _registered(name: str, home: str) -> Op:
    if name not in OPS and home != "__main__":
        import_module(home)
    if name not in OPS:
        raise ArgumentError(
            f"{name}: this process has no such op; {home} declared it where it was pickled. "
            "Declare it in a module that both processes import."
        )
    return OPS[name]


class _LibraryFunction:
    """The forward of an op that the array library has, under the name `name`."""

    def __init__(self, name: str) -> None:
        self.name = name


# ---- declaring --------------------------------------------------------------------------


def _register(
    name: str, forward: Any, parameters: Sequence[inspect.Parameter], arrays: Sequence[str], *,
    kind: str, fields: dict[str, Any], doc: str, home: str,
) -> Callable[..., Any]:  # fmt: skip
    """Make the record of an op; returns its eager function."""
    ours = home.startswith("gpugrad.")
    if OPS.has(name) or (not ours and name in OPS):
        raise ArgumentError(f"op: there is an op named {name!r} already.")
    _refuse_unknown(kind, fields)
    if not ours:
        _refuse_names(name, [p.name for p in parameters], arrays)
    rules = {n: fields.pop(n) for n in _RULES if n in fields}
    params = {p.name: p.default for p in parameters if p.name not in arrays}
    errors = fields.get("errors", ())
    forget(name)  # of an op that had the name before
    record = OPS[name] = Op(
        name=name, forward=forward, kind=kind, arrays=tuple(arrays), params=params,
        signature=_SIGNATURE(parameters, __validate_parameters__=False), declared=Rules(**rules),
        # the tests check what the docs of our own ops claim about shapes
        doc=doc and complete(doc, arrays, params, errors, kind == "elementwise", ours), home=home,
        **fields,
    )  # fmt: skip
    return record.eager


def _refuse_names(op: str, names: Sequence[str], arrays: Sequence[str]) -> None:
    """Refuse arguments of a user's op whose names the op's generated function uses itself."""
    taken = {*TAKEN, *(a + end for a in arrays for end in ("_", "i"))}
    taken |= {"out"} - {*arrays}  # an array of this name is read before there is a result
    for name in names:
        if name in taken or name.startswith("_") or keyword.iskeyword(name):
            raise ArgumentError(
                f"{op}: an argument cannot be called {name!r}, a name that the function which is "
                "written for the op uses itself. Give the argument another name."
            )


_POSITIONAL, _EITHER, _KEYWORD = (
    inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)  # fmt: skip
_RULES = tuple(field.name for field in dataclasses.fields(Rules))
_SIGNATURE: Any = inspect.Signature

_OF_OTHERS = {"d", "singular"}
NOT_FOR_ELEMENTWISE = {
    "masked", "linear", "outputs", "unused", "variadic", "batch", "opens", "view", "by_element",
    "reduces", "length_by_values", "overwrites",
}  # fmt: skip


def _fields_of(declaration: str) -> dict[str, Any]:
    """The fields that `elementwise` or `op` takes, and their defaults."""
    others = NOT_FOR_ELEMENTWISE if declaration == "elementwise" else _OF_OTHERS
    return {name: default for name, default in defaults().items() if name not in others}


_FIELDS = {declaration: _fields_of(declaration) for declaration in ("elementwise", "op")}


def _refuse_unknown(kind: str, fields: Iterable[str]) -> None:
    declaration = "elementwise" if kind == "elementwise" else "op"
    known = _FIELDS[declaration]
    for name in fields:
        if name not in known:
            names = sorted({*known, *inspect.signature(globals()[declaration]).parameters})
            raise TypeError(f"{declaration}: there is no field {name!r}; there are {names}.")


@functools.cache
def _parameter(name: str, kind: Any) -> inspect.Parameter:
    """A parameter without a default; many ops have the same."""
    return inspect.Parameter(name, kind)


def elementwise(
    signature: str,
    *,
    forward: Any = None,
    domain: Any = (-2.0, 2.0),
    doc: str,
    example: tuple[str, str],
    **fields: Any,
) -> Callable[..., Tensor]:
    """Declare an elementwise op; return its eager function.

    Args:
        signature: ``"name(x, y)"``. No array may be called ``out``, or ``g`` and ``t`` beside
            ``vjp=`` and ``jvp=``: rules mean the result, its gradient and the tangent by these.
        forward: the library's name for it if that is another, or a formula ``(xp, x, y)``.
        domain: interval of the samples' values, or one for each array.
        doc: what it computes; the docstring adds what all elementwise ops have in common.
        example: arguments, and what printing the result gives.
        fields: of the record: partial derivatives ``d=``, one for each input, each a number or a
            function ``(xp, names...)`` of the values that it needs, by name; rules ``vjp=`` and
            ``jvp=`` instead, where g * d would lose accuracy or is no derivative in the complex
            sense: ``(xp, g, names...)`` and ``(xp, t, names...)``; and the others of
            `gpugrad.registry.fields`, such as ``singular=``, ``kinds=``, ``cuda=``, ``samples=``,
            ``ref=`` and ``errors=``.

    Raises:
        ArgumentError: there is an op of that name already, `signature` is not one, or an argument
            has a name that rules or the op's own function use for something else.

    >>> cube = gg.elementwise(
    ...     "cube(x)", forward=lambda xp, x: x * x * x, d=[lambda xp, x: 3 * x * x],
    ...     ref=lambda x: x**3, doc="Third power.", example=("2.0", "8.0"),
    ... )
    >>> gg.testing.check_op("cube")
    >>> gg.grad(cube)(2.0).item()
    12.0
    >>> forgotten = gg.OPS.pop("cube")
    """
    name, arrays = names_in(signature)
    if fields.get("differentiable", True) and fields.get("d") is None:
        fields["vjp"] = fields.get("vjp") or ()  # which are too few
    if isinstance(forward, str) and fields.get("ref") is None:
        fields["ref"] = f"numpy.{forward}"
    kinds = fields.get("kinds", "f")
    fields["samples"] = fields.get("samples") or grid(len(arrays), domain)
    fields["errors"] = fields.get("errors") or _elementwise_errors(len(arrays), kinds)
    return _register(
        name, forward if callable(forward) else _LibraryFunction(forward or name),
        [_parameter(n, _POSITIONAL) for n in arrays], arrays,
        kind="elementwise", fields=fields,
        doc=f"{doc}\n\n>>> print(gg.{name}({example[0]}))\n{example[1]}\n",
        home=_caller(),
    )  # fmt: skip


def _caller() -> str:
    """The module that declares an op, also by `elementwise_kernel`."""
    frame: Any = sys._getframe(2)
    while frame.f_globals.get("__name__") in (_KERNELS, "gpugrad.errors.where"):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "__main__"))  # of exec with a dict


_KERNELS = "gpugrad.registry.from_cuda"


def names_in(signature: str) -> tuple[str, tuple[str, ...]]:
    """The names of an elementwise op and of its arrays, as ``"name(x, y)"`` has them."""
    match = re.fullmatch(r"\s*(\w+)\s*\(\s*(\w+(?:\s*,\s*\w+)*)\s*\)\s*", signature)
    if match is None:
        raise ArgumentError(f"elementwise: {signature!r} is not a signature; write 'name(x, y)'.")
    return match[1], tuple(n.strip() for n in match[2].split(","))


def _elementwise_errors(n: int, kinds: str) -> list[Any]:
    if n == 1:
        return [(["text"], {}, DTypeError, "number")]
    dtype = np.float64 if "f" in kinds else np.int64
    arrays = [np.ones(length, dtype) for length in (2, 3, 3)]
    return [(arrays[:n], {}, ShapeError, r"\(2,\).*\(3,\)")]


def op(
    vjp: Sequence[Any] | Rule | None = None,
    *,
    name: str | None = None,
    arrays: Sequence[str] | None = None,
    **fields: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a primitive (with `vjp`) or composite op from its forward; a decorator.

    Args:
        vjp: one rule ``(xp, g, names...)`` for each array argument; None where there is no
            gradient, ``...`` where the rule is not known (then asking for it raises). Or one
            rule for all, which gives a tuple of all gradients where one pass over the arrays
            finds them together; that of a variadic op is told the input's position ``i`` instead.
        name: of the op, if the function's own would shadow a builtin that its module needs.
        arrays: names of the array arguments, where not all of them stand before ``/``; they
            come first in the forward. One whose default is None may be left out.
        fields: of the record; `gpugrad.registry.fields` describes them all. The most used are
            ``jvp=``, ``linear=`` and ``differentiable=`` for derivatives; ``batch=`` for `gg.vmap`;
            ``outputs=`` for several results; ``cuda=`` and ``cpu=`` for launchers of kernels;
            ``kinds=``, ``samples=``, ``ref=`` and ``errors=`` for the tests; and ``captures=True``
            for `gg.function`: a CUDA graph may hold the forward, as it reads no values on the host
            and copies no array from there. (Of an op with a launcher that is the default.)

    Raises:
        ArgumentError: there is an op of that name already, or an argument has a name that rules
            (``g``, ``out``, ...) or the op's own function use for something else.
        TypeError: a field that no op has, or a rule that reads what no call has.

    >>> def samples(rng):  # (arguments, keywords): all tests of the op are made from them
    ...     yield [rng.normal(size=4)], {}
    ...     yield [rng.normal(size=5)], {"n": 2}
    >>> @gg.op(
    ...     vjp=[lambda xp, g, n: xp.roll(g, -n)], linear=True, samples=samples,
    ...     ref=lambda x, n=1: np.roll(x, n), errors=[(["text"], {}, TypeError, "number")],
    ... )
    ... def turned(xp, x, /, *, n=1):
    ...     '''The elements of an array x, n places on; the last come first.
    ...
    ...     >>> print(gg.turned([1.0, 2.0, 3.0]))
    ...     [3. 1. 2.]
    ...     '''
    ...     return xp.lib.roll(x, n)
    >>> gg.testing.check_op("turned")
    >>> forgotten = gg.OPS.pop("turned")
    """
    if "opaque" in fields:  # the name of `opens` until it said more than whether
        opaque = fields.pop("opaque")
        keeps = opaque if callable(opaque) else lambda *args, **params: opaque
        fields["opens"] = lambda *args, **params: None if keeps(*args, **params) else "traced"

    def declare(forward: Callable[..., Any]) -> Callable[..., Any]:
        parameters = _parameters_of(forward)
        return _register(
            name or forward.__name__, forward, parameters,
            arrays or [p.name for p in parameters if p.kind is _POSITIONAL],
            kind="composite" if vjp is None else "primitive",
            fields={"vjp": vjp, **fields}, doc=_clean(forward.__doc__ or ""),
            home=forward.__module__,
        )  # fmt: skip

    return declare


def _describe_fields() -> None:
    """Let `help` and `inspect.signature` show every field that a declaration takes."""
    declare: Any
    for declare in (elementwise, op):
        ps = dict(inspect.signature(declare).parameters)
        del ps["fields"]
        for name, default in _FIELDS[declare.__name__].items():
            ps.setdefault(
                name, inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            )
        declare.__signature__ = inspect.Signature(list(ps.values()))


def _parameters_of(forward: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a forward but for `xp`; inspect.signature takes four times as long."""
    code = getattr(forward, "__code__", None)
    varied = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or code.co_flags & varied or vars(forward) or forward.__annotations__:
        return [p for p in inspect.signature(forward).parameters.values() if p.name != "xp"]
    n = code.co_argcount
    names = code.co_varnames[: n + code.co_kwonlyargcount]
    values = dict(zip(reversed(names[:n]), reversed(forward.__defaults__ or ()), strict=False))
    values |= forward.__kwdefaults__ or {}
    parameters = []
    for k, name in enumerate(names):
        kind = _POSITIONAL if k < code.co_posonlyargcount else _EITHER if k < n else _KEYWORD
        if name in values:
            parameters.append(inspect.Parameter(name, kind, default=values[name]))
        elif name != "xp":
            parameters.append(_parameter(name, kind))
    return parameters


def _clean(doc: str) -> str:
    """As inspect.cleandoc, which takes ten times as long, of a docstring that ends a line below."""
    text, _, indent = doc.rpartition("\n")
    if indent.strip() or not indent or not text.strip():
        return inspect.cleandoc(doc)
    return text.replace("\n" + indent, "\n").strip()


@saying_where
def no_gradient(name: str) -> None:
    """Say that an op declared with unknown rules (``...``) has no gradient there: it is None.

    The op gets a new record, which takes the place of the old one.

    Raises:
        ArgumentError: there is no such op, or it has all its gradients.

    >>> @gg.op(vjp=[...])  # asking for this gradient raises NoGradientError
    ... def rounded_up(xp, x, /):
    ...     return xp.lib.ceil(x)
    >>> gg.no_gradient("rounded_up")  # now it is None
    >>> forgotten = gg.OPS.pop("rounded_up")
    """
    if name not in OPS:
        raise ArgumentError(f"no_gradient: there is no op named {name!r}; see gg.OPS.")
    record = OPS[name]
    vjp = record.declared.vjp
    if vjp is None or callable(vjp) or ... not in list(vjp):
        raise ArgumentError(f"no_gradient: {name} has all its gradients, or is declared without.")
    declared = dataclasses.replace(record.declared, vjp=[None if r is ... else r for r in vjp])
    OPS[name] = record = dataclasses.replace(record, declared=declared)
    follow(record.eager, record)
    forget(name)


_describe_fields()
