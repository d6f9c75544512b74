"""Derivative rules, as a tape calls them: functions of (xp, g, saved, params).

`xp` is the reading, `g` the gradient of the result, `saved` what the tape kept for the rules, in
the order of the op's `saves`, and `params` the call's metadata.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from gpugrad.autodiff.recordable import Recordable, Rule, split_rule
from gpugrad.core.backend import SCALARS
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.errors import NoGradientError
from gpugrad.kernels.codegen import for_ops
from gpugrad.registry.on_tensors import compiled

__all__ = ["DeclaredRules", "Rule", "conjugate"]


class DeclaredRules(Recordable):
    """The half of an op that a tape reads: its rules, and the list of what they read."""

    def __init__(
        self, name: str, arrays: tuple[str, ...], params: dict[str, Any], *,
        vjp: Sequence[Any] | Rule | None, jvp: Sequence[Any] | None,
        masked: Sequence[Any] | None, partials: Sequence[Any] | None,
        singular: bool, variadic: bool,
    ) -> None:  # fmt: skip
        for given in (vjp, jvp, masked, partials):
            if given is not None and not callable(given) and len(given) != len(arrays):
                raise TypeError(f"{name}: one partial or rule for each of {arrays} is needed.")
        self.name, self.arrays, self.params = name, arrays, params
        self.singular, self.variadic = singular, variadic
        self._bind(vjp, jvp, partials)
        self._masked = tuple(_bind_rule(r, self) for r in masked or ())

    def _bind(self, vjp: Any, jvp: Any, partials: Any) -> None:
        """Order what the rules read into one list of saves, and make rules index it."""
        rules = [vjp] if callable(vjp) else list(vjp or ())
        every = [f for f in (*rules, *(jvp or ()), *(partials or ())) if callable(f)]
        saves: list[str] = []
        for rule in every:
            saves += [n for n in _reads(rule) if self._is_saved(n) and n not in saves]
        self.saves = tuple(saves)
        per_input = [[] for _ in self.arrays] if callable(vjp) else [
            [n for given in (rules, jvp or (), partials or ()) if k < len(given)
             and callable(given[k]) for n in _reads(given[k])]
            for k in range(len(self.arrays))
        ]  # fmt: skip
        self.readers = {  # the inputs whose rules read a saved array: else it is not kept
            n: tuple(a for a, reads in zip(self.arrays, per_input, strict=True) if n in reads)
            for n in saves
        }
        self.origins = tuple(self._origin(n) for n in saves)
        bind = functools.partial(_bind_rule, op=self)
        self.partials = None if partials is None else tuple(
            bind(p) if callable(p) else p for p in partials
        )  # fmt: skip
        self.jvps = None if jvp is None else tuple(bind(r) if r else None for r in jvp)
        self.rules: tuple[Any, ...] = ()
        if callable(vjp) and self.variadic:
            self._each = bind(vjp)
        elif callable(vjp):
            self.rules = _Joint(bind(vjp), len(self.arrays))
        elif partials is not None:
            self.rules = tuple(_bind_partial(p, self) for p in partials)
        else:
            self.rules = tuple(
                _missing_rule(self.name) if r is ... else bind(r) if r else None for r in rules
            )

    @functools.cached_property
    def masked(self) -> tuple[Any, ...]:
        """The rules for a pass in which a gradient of exactly 0 meets something infinite."""
        if self._masked:
            return self._masked
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

    def spread(self, n: int) -> list[Rule]:
        """The rules of a variadic op's `n` inputs, from its one rule."""
        return [functools.partial(self._each, i=i) for i in range(n)]

    def _is_saved(self, name: str) -> bool:
        return name == "out" or name.removesuffix("_shape").removesuffix("_dtype") in self.arrays

    def _origin(self, name: str) -> Any:
        """Whose serial number a saved value has: an input's position, "out", "all", or None."""
        if name.endswith(("_shape", "_dtype")):
            return None
        return name if name == "out" else "all" if self.variadic else self.arrays.index(name)


_GIVEN = ("xp", "g", "t", "i")  # what a rule gets that is not saved


def _names(function: Rule) -> tuple[str, ...]:
    """Parameter names; inspect.signature takes ten times as long, at every import."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _reads(rule: Rule) -> list[str]:
    return [n for n in _names(rule) if n not in _GIVEN]


def _bind_rule(rule: Rule, op: DeclaredRules, body: str = "{}") -> Rule:
    """``rule(xp, g, out, axis)`` as a function of (xp, g, saved, params) that looks them up.

    `body` is what to make of the call: one expression, so that no frame is added to it.
    """
    given, args = ["xp", "g", "s", "k"], []
    if _names(rule)[:1] != ("xp",):
        raise TypeError(f"{op.name}: the first parameter of a rule is xp, this has {_names(rule)}.")
    for name in _names(rule):
        if name in ("xp", "g", "t"):
            args.append("g" if name == "t" else name)
        elif name == "i":
            given.append("i")
            args.append("i")
        elif name in op.saves:
            args.append(f"s[{op.saves.index(name)}]")
        elif name in op.params:
            args.append(f"k[{name!r}]")
        else:
            raise TypeError(
                f"{op.name}: a rule reads {name!r}, which is no argument of the op. It may read "
                f"{[*op.arrays, *op.params, 'out']}, and NAME_shape or NAME_dtype of an array."
            )
    text = f"lambda {', '.join(given)}: " + body.format(f"rule({', '.join(args)})")
    return eval(compiled(text, "eval"), {"rule": rule, "conj": conjugate})


class _Joint(tuple[Rule, ...]):
    """The rules of inputs whose gradients one rule computes together.

    Whoever goes through them gets rules that share one call of it, made when the first is asked.
    """

    rule: Rule

    def __new__(cls, rule: Rule, n: int) -> _Joint:
        made = super().__new__(cls, split_rule(rule, n))
        made.rule = rule
        return made

    def __iter__(self) -> Iterator[Rule]:
        return iter(split_rule(self.rule, len(self)))


def _missing_rule(name: str) -> Rule:
    def missing(xp: Any, g: Any, saved: Any, params: Any) -> Any:
        raise NoGradientError(
            f"{name} has no derivative rule for this input. Stop the gradient before it with "
            "gg.stop_gradient(x), or give it one with gg.custom_gradient."
        )

    missing.is_missing = True  # type: ignore[attr-defined]  # for no_gradient
    return missing


def conjugate(xp: Any, d: Any) -> Any:
    """The complex conjugate; a real array itself, where `xp.conj` would copy it."""
    if type(d) in SCALARS:
        return d.conjugate()
    return xp.conj(d) if d.dtype.kind == "c" else d


def _bind_partial(partial: Any, op: DeclaredRules) -> Rule:
    """The VJP g * conj(d) of a partial derivative: a number, or a function of what it names.

    Where d can be infinite and g is exactly 0 (`op.singular`), their product is 0.
    """
    if not callable(partial):
        if partial == 1:
            return for_ops.identity
        return eval(compiled("lambda xp, g, s, k: g * d", "eval"), {"d": partial})
    if op.singular:
        return _bind_rule(partial, op, "xp.masked_multiply(g, conj(xp, {}))")
    return _bind_rule(partial, op, "g * {0} if g.dtype.kind != 'c' else g * conj(xp, {0})")


def _sheltered(rule: Rule) -> Rule:
    """A rule that gives 0 for NaN where the whole cotangent is 0.

    Not for all that it gives: that is 0 too, but has a derivative by the cotangent.
    """
    if getattr(rule, "is_missing", False):
        return rule

    def sheltered(xp: Any, g: Any, saved: Any, params: Any) -> Any:
        found = rule(xp, g, saved, params)
        if found is None or isinstance(found, IndexedSlices):
            return found
        given = [part for part in (g if type(g) is tuple else (g,)) if part is not None]
        parts = [xp.any(xp.not_equal(part, 0)) for part in given]
        some = functools.reduce(xp.logical_or, parts)
        every = found if type(found) is tuple else (found,)
        kept = [f if f is None else xp.where(xp.logical_or(some, f == f), f, 0) for f in every]
        return tuple(kept) if type(found) is tuple else kept[0]

    return sheltered


def _masked_rule(partial: Rule) -> Rule:
    return lambda xp, g, s, k: xp.masked_multiply(g, conjugate(xp, partial(xp, g, s, k)))
