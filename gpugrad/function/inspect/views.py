"""Two more views of a page: the steps sorted by time, and folded by module."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from gpugrad.trace.program import Step


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


def by_module(rows: Sequence[Measured]) -> str:
    """Folded tables, nested by the modules' paths; at each level, the slowest module first."""
    root = _Module("")
    for row in rows:
        module = root
        for name in filter(None, row.step.place.layer.split(".")):
            path = f"{module.path}.{name}" if module.path else name
            module = module.inside.setdefault(name, _Module(path))
        module.rows.append(row)
    return _content(root, root.seconds, "(in no module)")


class _Module:
    """The steps of a module: its own, and those of the modules inside it by their names."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows: list[Measured] = []
        self.inside: dict[str, _Module] = {}

    @property
    def all_rows(self) -> list[Measured]:
        return [*self.rows, *(row for module in self.inside.values() for row in module.all_rows)]

    @property
    def seconds(self) -> float:
        return sum(row.seconds or 0.0 for row in self.all_rows)


def _content(module: _Module, whole: float, own: str) -> str:
    """The folded modules inside, among them the module's own steps under the title `own`."""
    folded = []
    for inner in module.inside.values():
        while not inner.rows and len(inner.inside) == 1:  # such as a list with one layer
            (inner,) = inner.inside.values()
        content = _content(inner, whole, "(its own steps)") if inner.inside else table(inner.rows)
        folded.append((inner.seconds, _fold(inner.path, inner.all_rows, whole, content)))
    if module.rows:
        seconds = sum(row.seconds or 0.0 for row in module.rows)
        folded.append((seconds, _fold(own, module.rows, whole, table(module.rows))))
    return "\n".join(text for _, text in sorted(folded, key=lambda pair: -pair[0]))


def _fold(title: str, rows: Sequence[Measured], whole: float, content: str) -> str:
    seconds = sum(row.seconds or 0.0 for row in rows)
    measured = any(row.seconds is not None for row in rows)
    share = round(100 * seconds / whole) if whole else 0
    time = f"{seconds * 1e6:,.1f} us, {share} %" if measured else "not measured"
    steps = f"{len(rows)} step{'s' if len(rows) > 1 else ''}"
    return (
        f'<details><summary><i style="width:{share}px;margin-right:{110 - share}px"></i>'
        f"<strong>{html.escape(title)}</strong> {time}, {steps}</summary>\n"
        f"{content}</details>"
    )


COLUMNS = ("time, run alone", "makes", "held meanwhile", "module", "line", "step")


def table(rows: Sequence[Measured]) -> str:
    """A table with a row for each step."""
    head = "".join(f"<th>{column}</th>" for column in ("#", *COLUMNS))
    lines = [
        f"<tr><td>{row.number}</td>{row.cells}{place_cells(row.step)}"
        f'<td class="step">{row.text}</td></tr>'
        for row in rows
    ]
    body = "\n".join(lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"
