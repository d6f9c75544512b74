"""The names that `load_torch` matched, and the message about those that do not match."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gpugrad.core.variable import Variable

_SHOWN = 20
"""The names of a kind that a message lists."""


class TorchReport(NamedTuple):
    """The report of `load_torch`: the names that it matched.

    >>> model = gg.nn.Dense(3, 2)
    >>> state = {"weight": np.ones((2, 3), "float32"), "bias": np.zeros(2, "float32")}
    >>> report = gg.nn.load_torch(model, state)
    >>> report.missing, report.unexpected
    ([], [])
    """

    matched: dict[str, str]
    """Names in the file, by the Variable's name; of two that were added, both."""
    missing: list[str]
    """Variables without a value."""
    unexpected: list[str]
    """Names in the file without a Variable."""

    def __str__(self) -> str:
        lines = [f"{ours} <- {theirs}" for ours, theirs in self.matched.items()]
        lines += [f"{name}: missing" for name in self.missing]
        lines += [f"{name}: unexpected" for name in self.unexpected]
        return "\n".join(lines)


def in_order(name: str) -> list[tuple[int, str]]:
    """The key that sorts layer 2 before layer 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def differences(
    report: TorchReport,
    variables: Mapping[str, Variable],
    names: Mapping[str, str],
    shapes: Mapping[str, tuple[int, ...]],
    dropped: Sequence[str],
) -> str:
    """The message of an error: the names that do not match, each with the nearest on our side.

    Args:
        report: the report.
        variables: the Variables by path.
        names, shapes: of a name in the file, the path that it became, and its value's shape.
        dropped: the names in the file that `names` dropped.
    """

    def nearest(theirs: str) -> str:
        size = sorted(shapes[theirs])
        alike = [path for path in report.missing if sorted(variables[path].shape) == size]
        ratio, path = max(
            (difflib.SequenceMatcher(None, names[theirs], path).ratio(), path)
            for path in alike or report.missing
        )
        return f", nearest '{path}'" if alike or ratio > 0.5 else ""

    def of_file(name: str) -> str:
        renamed = f" = '{names[name]}'" if names[name] != name else ""
        return f"'{name}'{renamed} {shapes[name]}{nearest(name) if report.missing else ''}"

    def of_module(path: str) -> str:
        return f"'{path}' {variables[path].shape}"

    lines = [
        f"load_torch: names do not match. Variables without a value: {len(report.missing)}; names "
        f"without a Variable: {len(report.unexpected)}.",
        *_listed("missing", report.missing, of_module),
        *_listed("unexpected", report.unexpected, of_file),
        *(_listed("dropped by names=", dropped, repr) if report.missing else ()),
        "Map names with names={pattern: replacement}, drop some with None, or load what matches "
        "with strict=False.",
    ]
    return "\n".join(lines)


def _listed(title: str, names: Sequence[str], line: Callable[[str], Any]) -> list[str]:
    lines = [f"  {title}: {line(name)}" for name in names[:_SHOWN]]
    rest = len(names) - _SHOWN
    return [*lines, f"  {title}: {rest} more"] if rest > 0 else lines
