"""Derivative rules, as a tape calls them: functions of (xp, g, saved, params).

`xp` is the reading, `g` the gradient of the result, `saved` the values that the tape kept for the
rules, in the order of the op's `saves`, and `params` the call's metadata.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpugrad.autodiff.recordable import Recordable, Rule, split_rule
from gpugrad.core.backend import NUMPY, OPS, SCALARS, reading
from gpugrad.core.forking import cached_property
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.errors import ArgumentError, DTypeError, NoGradientError
from gpugrad.kernels.codegen import for_ops
from gpugrad.kernels.cpu.large import LARGE, on_threads
from gpugrad.registry.fields import Gradient, Rules
from gpugrad.registry.on_arrays import with_loop
from gpugrad.registry.on_tensors import compiled


@dataclasses.dataclass(eq=False, repr=False, frozen=True, kw_only=True)
class DeclaredRules(Gradient, Recordable):
    """The part of an op that a tape reads: its rules, and the list of values that they read.

    The rules are bound to the op when they are first asked for: most ops of a program that imports
    gpugrad are never differentiated.

    Attributes:
        name: the name under which formulas call the op (``xp.name``).
        arrays: names of the array arguments.
        params: names and defaults of the metadata arguments.
        declared: the rules as declared, with named parameters.
    """

    name: str
    arrays: tuple[str, ...]
    params: dict[str, Any]
    declared: Rules

    def __post_init__(self) -> None:
        declared, n = self.declared, len(self.arrays)
        for kind in ("vjp", "jvp", "masked", "d"):
            rules = getattr(declared, kind)
            if rules is None:
                continue
            self._check_names(kind)
            if not callable(rules) and not (isinstance(rules, (list, tuple)) and len(rules) == n):
                raise DTypeError(
                    f"{self.name}: one partial or rule for each of {self.arrays} is needed."
                )
            for rule in [rules] if callable(rules) else rules:
                if callable(rule):
                    self._check(rule, kind)

    def _given(self, kind: str) -> tuple[str, ...]:
        """The parameters of rules that are no arguments of the op, and not its result."""
        return (*_GIVEN[kind], *("i" * self.variadic))

    def _check_names(self, kind: str) -> None:
        """Refuse arguments whose names mean something else in the rules of that kind."""
        for name in (*self.arrays, *self.params):
            stem, _, what = name.rpartition("_")
            means = _MEANINGS[name] if name in (*self._given(kind), "out") else ""
            if what in ("shape", "dtype") and stem in self.arrays:
                means = f"the {what} of {stem}"
            if means:
                raise ArgumentError(
                    f"{self.name}: an argument is called {name!r}, which in its rules {kind}= "
                    f"stands for {means}. Give the argument another name."
                )

    def _check(self, rule: Rule, kind: str) -> None:
        """Refuse a rule that reads a name that no call has. Masked rules read what others save."""
        names, saved = _names(rule), self.saves if kind == "masked" else None
        if names[:1] != ("xp",):
            raise DTypeError(f"{self.name}: the first parameter of a rule must be xp, got {names}.")
        for name in names:
            kept = self._is_saved(name) if saved is None else name in saved
            if not (kept or name in self._given(kind) or name in self.params):
                raise TypeError(
                    f"{self.name}: a rule reads {name!r}, which is not an argument of the op. It "
                    f"may read {[*self.arrays, *self.params, 'out']}, and NAME_shape or NAME_dtype "
                    "of an array."
                )

    @cached_property
    def saves(self) -> tuple[str, ...]:
        """The names of values that a tape keeps for the rules, in the order of their indices."""
        saved: dict[str, None] = {}
        for kind in ("vjp", "jvp", "d"):
            rules, given = getattr(self.declared, kind) or (), self._given(kind)
            for rule in [rules] if callable(rules) else rules:
                names = _names(rule) if callable(rule) else ()
                saved |= dict.fromkeys(n for n in names if n not in given and self._is_saved(n))
        return tuple(saved)

    @cached_property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """For each saved name the inputs whose rules read it, the only ones that it is kept for."""
        vjp = self.declared.vjp
        if callable(vjp):
            return dict.fromkeys(self.saves, ())
        every = [rules for rules in (vjp, self.declared.jvp, self.declared.d) if rules]
        reads = {
            a: {n for rules in every if callable(rules[k]) for n in _names(rules[k])}
            for k, a in enumerate(self.arrays)
        }
        return {n: tuple(a for a in self.arrays if n in reads[a]) for n in self.saves}

    @cached_property
    def origins(self) -> tuple[Any, ...]:
        """Where the serial number of a saved value comes from: see `_origin`."""
        return tuple(map(self._origin, self.saves))

    @cached_property
    def partials(self) -> tuple[Any, ...] | None:
        """Partial derivatives as functions of (xp, saved, params), or numbers."""
        d = self.declared.d
        return (
            None if d is None else tuple(_bind_rule(p, self, "d") if callable(p) else p for p in d)
        )

    @cached_property
    def jvps(self) -> tuple[Any, ...] | None:
        """The rules `jvp`, bound."""
        jvp = self.declared.jvp
        return None if jvp is None else tuple(r and _bind_rule(r, self, "jvp") for r in jvp)

    @cached_property
    def rules(self) -> tuple[Any, ...]:
        """The rules `vjp`, bound, one for each input; none if the op is variadic."""
        return self._bound(masked=self.singular)

    @cached_property
    def plain(self) -> tuple[Any, ...]:
        """The same without masked products, for a pass that a second one may follow."""
        return self._bound(masked=False) if self.singular else self.rules

    def _bound(self, masked: bool) -> tuple[Any, ...]:
        vjp, d = self.declared.vjp, self.declared.d
        if callable(vjp):
            return () if self.variadic else _Joint(_bind_rule(vjp, self, "vjp"), len(self.arrays))
        if d is not None:
            return tuple(_bind_partial(p, self, masked) for p in d)
        xp = "xp.unmasked" if self.singular and not masked else "xp"
        bound = [
            _missing_rule(self.name, k) if r is ... else r and _bind_rule(r, self, "vjp", xp=xp)
            for k, r in enumerate(vjp or ())
        ]
        loops = getattr(self, "cpu", None) is True
        return tuple(with_loop(self, r) if r and loops else r for r in bound)

    @cached_property
    def _each(self) -> Rule:
        return _bind_rule(self.declared.vjp, self, "vjp")  # type: ignore[arg-type]

    @cached_property
    def masked(self) -> tuple[Any, ...]:
        """The rules for a pass in which a gradient of exactly 0 meets an infinite factor."""
        if self.declared.masked:
            return tuple(r and _bind_rule(r, self, "masked") for r in self.declared.masked)
        if type(self.rules) is _Joint:
            return _Joint(_sheltered(self.rules.rule), len(self.rules))
        if self.partials is None:
            return tuple(r and _sheltered(r) for r in self.rules)
        if self.singular:
            return self.rules
        return tuple(
            _masked_rule(p) if callable(p) else r
            for p, r in zip(self.partials, self.rules, strict=True)
        )

    def rules_for(self, n: int) -> list[Rule]:
        """The rules of a variadic op's `n` inputs, from its only rule."""
        return [functools.partial(self._each, i=i) for i in range(n)]

    def _is_saved(self, name: str) -> bool:
        return name == "out" or name.removesuffix("_shape").removesuffix("_dtype") in self.arrays

    def _origin(self, name: str) -> Any:
        """Whose serial number a saved value has: an input's position, "out", "all", or None."""
        if name.endswith(("_shape", "_dtype")):
            return None
        return name if name == "out" else "all" if self.variadic else self.arrays.index(name)


_GIVEN = {"vjp": ("xp", "g"), "masked": ("xp", "g"), "jvp": ("xp", "t"), "d": ("xp",)}
"""Parameters of the rules of each kind that are not saved values."""

_MEANINGS = {
    "xp": "the array library",
    "g": "the gradient of the result",
    "t": "the tangent",
    "i": "the position of an input",
    "out": "the result",
}


def _names(function: Rule) -> tuple[str, ...]:
    """Parameter names; inspect.signature takes ten times as long, at every import."""
    code = getattr(function, "__code__", None)
    if code is None:
        raise DTypeError(f"op: a rule must be a Python function, got {function!r:.60}.")
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _bind_rule(
    rule: Rule, op: DeclaredRules, kind: str, body: str = "{}", xp: str = "xp", **scope: Any
) -> Rule:
    """``rule(xp, g, out, axis)`` as a function of (xp, g, saved, params) that looks them up.

    `body` is an expression of the call: a single one, so that it adds no frame. It may name what is
    in `scope`.
    """
    parameters, args = ["xp", "g", "s", "k", *("i" * op.variadic)], []
    for name in _names(rule):
        if name in op._given(kind):
            args.append({"t": "g", "xp": xp}.get(name, name))
        elif name in op.saves:
            args.append(f"s[{op.saves.index(name)}]")
        else:
            args.append(f"k[{name!r}]")
    text = f"lambda {', '.join(parameters)}: " + body.format(f"rule({', '.join(args)})")
    return eval(compiled(text, "eval"), {"rule": rule, **_SCOPE, **scope})


class _Joint(tuple[Rule, ...]):
    """The rules of inputs whose gradients one rule computes together.

    Each iteration yields rules that share one call; the first one to run makes it.
    """

    rule: Rule

    def __new__(cls, rule: Rule, n: int) -> _Joint:
        rules = super().__new__(cls, split_rule(rule, n))
        rules.rule = rule
        return rules

    def __iter__(self) -> Iterator[Rule]:
        return iter(split_rule(self.rule, len(self)))


def _missing_rule(name: str, k: int) -> Rule:
    """The rule of input `k` if none is known."""

    def missing(xp: Any, g: Any, saved: Any, params: Any) -> Any:
        record = OPS.get(name)
        if record is not None and k in record.indices:  # `no_gradient` came after the call
            return None
        raise NoGradientError(
            f"{name} has no derivative rule for this input. Stop the gradient before it with "
            "gg.stop_gradient(x), or give it one with gg.custom_gradient."
        )

    missing.is_missing = True  # type: ignore[attr-defined]  # it is not sheltered
    return missing


def conjugate(xp: Any, d: Any) -> Any:
    """The complex conjugate; a real array is returned itself (`xp.conj` would copy it)."""
    if type(d) in SCALARS:
        return d.conjugate()
    return xp.conj(d) if d.dtype.kind == "c" else d


def _product(xp: Any, g: Any, d: Any) -> Any:
    """The VJP of a partial derivative d, which is an array or a number."""
    if g.dtype.kind == "c":
        return g * conjugate(xp, d)
    if xp is NUMPY and g.size >= LARGE and (type(d) is np.ndarray or type(d) in SCALARS):
        return on_threads(np.multiply, g, d)
    return g * d


_SMALL = f"g * {{0}} if g.dtype.kind == 'f' and (xp is not numpy or g.size < {LARGE}) else "
_TIMES = _SMALL + "product(xp, g, {0})"
"""The same without a call for most gradients."""
_SCOPE = {"conj": conjugate, "numpy": NUMPY, "product": _product}


def _bind_partial(partial: Any, op: DeclaredRules, masked: bool) -> Rule:
    """The VJP g * conj(d) of a partial derivative d: a number, or a function of named values.

    If it is masked, their product is 0 where g is exactly 0 and d infinite.
    """
    if not callable(partial):
        if partial == 1:
            return for_ops.identity
        text = "lambda xp, g, s, k: " + _TIMES.format("d")
        return eval(compiled(text, "eval"), {"d": partial, **_SCOPE})
    if masked:
        return _bind_rule(partial, op, "d", "xp.masked_multiply(g, conj(xp, {}))")
    if getattr(op, "cpu", None) is True:
        loop = with_loop(op, _bind_rule(partial, op, "d", "product(xp, g, {0})"))
        return _bind_rule(partial, op, "d", _SMALL + "large(xp, g, s, k)", large=loop)
    return _bind_rule(partial, op, "d", _TIMES)


def _sheltered(rule: Rule) -> Rule:
    """A rule that returns 0 instead of NaN if the whole cotangent is 0.

    It keeps the other elements: these are 0 too, but have a derivative by the cotangent.
    """
    if getattr(rule, "is_missing", False):
        return rule

    def sheltered(xp: Any, g: Any, saved: Any, params: Any) -> Any:
        result = rule(xp, g, saved, params)
        if result is None or isinstance(result, IndexedSlices):
            return result
        cotangents = [part for part in (g if type(g) is tuple else (g,)) if part is not None]
        every = result if type(result) is tuple else (result,)
        parts = [xp.any(xp.not_equal(part, 0)) for part in cotangents]
        some = functools.reduce(xp.logical_or, parts)
        xp = reading(some, *(r for r in every if r is not None))  # collectives of constants: traced
        kept = [r if r is None else xp.where(xp.logical_or(some, r == r), r, 0) for r in every]
        return tuple(kept) if type(result) is tuple else kept[0]

    sheltered.is_sheltered = True  # type: ignore[attr-defined]  # only a whole 0 makes a difference
    return sheltered


def _masked_rule(partial: Rule) -> Rule:
    def masked(xp: Any, g: Any, saved: Any, params: Any) -> Any:
        d = partial(xp, g, saved, params)
        if type(d) not in SCALARS and d.dtype.kind == "b":  # a mask: 0 also for an infinite g
            return xp.where(d, g, 0)
        return xp.masked_multiply(g, conjugate(xp, d))

    return masked
