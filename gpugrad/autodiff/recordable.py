"""A recorder's log: its entries, and the base class of their ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Rule = Callable[..., Any]
"""A gradient rule as the backward loop calls it: ``rule(xp, g, saved, params)``."""

Entry = tuple[Any, Any, tuple[int, ...], Any, Any, Any]
"""One executed op: ``(op, out, ids, shapes_and_dtypes, saved, params)``; see `backward`.

A plain tuple: every op creates one under a tape, and a named tuple takes six times as long.
"""


class Recordable:
    """The op of a log entry: its name and its rules.

    The base of the op record, and of everything else that a tape can log: a call of a
        `custom_gradient`, a traced function, control flow, or the input and output of a `vmap`. The
        defaults fit a call that builds its rules in `rules_for`.

    Attributes:
        name: the name in error messages.
        kind: an op's kind. Kernels compute the gradients of an ``"elementwise"`` op.
        outputs: number of results. With 1, `g` is an array; otherwise it is a tuple.
        unused: positions among several results whose missing gradient is passed as None; at the
            others it is passed as zeros.
        rules: one gradient rule for each input, or None for an input without a gradient; empty if
            each call builds its own in `rules_for`.
        masked: the rules that keep a gradient of exactly 0 at 0, also with an infinite factor.
        origins: the source of each saved value's serial number: the position of an input,
            ``"out"``, ``"all"`` (a list of all inputs), or None if it is not an array.
        partials, jvps, linear: derivatives for forward mode; see `forward`.
        push: function of the inputs' tangents that returns those of all results; it goes first.
    """

    name: str
    kind: str = ""
    outputs: Any = 1
    unused: Any = ()
    rules: Any = ()
    masked: Any = ()
    origins: Any = ()
    partials: Any = None
    jvps: Any = None
    linear: Any = False
    push: Any = None

    @property
    def plain(self) -> Any:
        """The rules of a pass whose NaN a second pass looks at: no product in them is masked."""
        return self.rules

    def rules_for(self, n: int) -> Sequence[Rule]:
        """The rules of one call with `n` inputs, if `rules` is empty."""
        raise NotImplementedError


def split_rule(rule: Rule, n: int) -> list[Rule]:
    """`n` rules that share one call of `rule`, which returns the gradients of all `n` inputs.

    The first of them that runs calls it.
    """
    gradients: list[Any] = []

    def part(k: int) -> Rule:
        def one(xp: Any, g: Any, saved: Any, params: Any) -> Any:
            if not gradients:
                gradients.extend(rule(xp, g, saved, params))
            return gradients[k]

        return one

    return [part(k) for k in range(n)]
