"""Two more views of a page: the steps sorted by time, and folded by module."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from gpugrad.trace.program import Step

__all__ = ["COLUMNS", "Measured", "bar", "by_module", "by_time", "place_cells"]


class Measured(NamedTuple):
    """A step as a row of a page."""

    number: int
    step: Step
    seconds: float | None
    cells: str
    """The cells of its time and its memory."""
    text: str
    """The step as text, escaped."""


def bar(amount: float, whole: float, text: str, kind: str) -> str:
    """A cell with a bar of this part of the whole."""
    width = max(1, round(80 * amount / whole)) if amount else 0
    return f'<td class="bar {kind}"><i style="width:{width}px"></i>{text}</td>'


def place_cells(step: Step) -> str:
    """The cells of a step's module and line; a group has those of its first step."""
    place = step.place
    first = step.parts[0] if step.parts else step
    mark = " <em>gradient</em>" if first.backward else ""
    return f"<td>{html.escape(place.layer)}{mark}</td><td>{html.escape(place.line)}</td>"


def by_time(rows: Sequence[Measured]) -> str:
    """A table of the steps, the slowest first; those without a time come last."""
    ordered = sorted(rows, key=lambda row: -(row.seconds or 0.0))
    return _table("#", ordered)


def by_module(rows: Sequence[Measured]) -> str:
    """A folded table for each module, the slowest first."""
    modules: dict[str, list[Measured]] = {}
    for row in rows:
        modules.setdefault(row.step.place.layer, []).append(row)
    seconds = {name: sum(r.seconds or 0.0 for r in inside) for name, inside in modules.items()}
    whole = sum(seconds.values())
    parts = []
    for name, inside in sorted(modules.items(), key=lambda pair: -seconds[pair[0]]):
        measured = any(row.seconds is not None for row in inside)
        share = round(100 * seconds[name] / whole) if whole else 0
        time = f"{seconds[name] * 1e6:,.1f} us, {share} %" if measured else "not measured"
        steps = f"{len(inside)} step{'s' if len(inside) > 1 else ''}"
        parts.append(
            f'<details><summary><i style="width:{share}px;margin-right:{110 - share}px"></i>'
            f"<strong>{html.escape(name) or '(in no module)'}</strong> {time}, {steps}</summary>"
            f"{_table('#', inside)}</details>"
        )
    return "\n".join(parts)


COLUMNS = ("time, run alone", "makes", "held meanwhile", "module", "line", "step")


def _table(first: str, rows: Sequence[Measured]) -> str:
    head = "".join(f"<th>{column}</th>" for column in (first, *COLUMNS))
    lines = [
        f"<tr><td>{row.number}</td>{row.cells}{place_cells(row.step)}"
        f'<td class="step">{row.text}</td></tr>'
        for row in rows
    ]
    body = "\n".join(lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"
