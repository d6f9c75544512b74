"""Drawings of a lowered program: an HTML page, and a graph in Graphviz's language.

The page is one file that loads nothing. Each step is a row with its time, its memory, its module,
its line and its text: in the program's order, sorted by time, or folded by module. Rows have one
height, so the arcs on the left, from the step that makes a value to the steps that read it, need no
layout.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from gpugrad.core.format import format_bytes
from gpugrad.function.memory import LABELS, Memory, lives
from gpugrad.trace.program import Program, Step, Value, step_text, value_names


class _Row(NamedTuple):
    """A step in a drawing: one by itself, a group, or one part of a group."""

    step: Step
    is_part: bool = False


def _rows(program: Program) -> list[_Row]:
    """A row for each step and, after a group, for each of its parts."""
    rows: list[_Row] = []
    for step in program.steps:
        rows.append(_Row(step))
        rows += [_Row(part, is_part=True) for part in step.parts]
    return rows


def _makers(rows: Sequence[_Row]) -> dict[int, int]:
    """The number of the row that makes each value, by id; in a group, the part's row."""
    return {id(v): k for k, row in enumerate(rows) if not row.step.parts for v in row.step.outs}


# ---- the page ----------------------------------------------------------------------------

ROW = 26  # height of a row, in pixels
GUTTER = 150  # width of the arcs

STYLE = """
:root { --ink: #1d2733; --soft: #66758a; --line: #e3e8ee; --back: #fbfcfd; --card: #fff;
  --time: #d9641e; --bytes: #1f5fa8; --group: #f1f5f9; --hit: #fff3d6; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe6ee; --soft: #91a0b3; --line: #2a3442;
  --back: #12171e; --card: #181f28; --time: #f0914e; --bytes: #6aa5e8; --group: #1d2631;
  --hit: #3a3420; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 32px 40px; background: var(--back); color: var(--ink);
  font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; }
p { margin: 0 0 18px; color: var(--soft); }
dl { display: flex; flex-wrap: wrap; gap: 12px; margin: 0 0 24px; }
dl div { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 8px 14px; }
dt { color: var(--soft); font-size: 12px; }
dd { margin: 0; font-size: 17px; font-variant-numeric: tabular-nums; }
.program { position: relative; overflow-x: auto; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; }
.program svg { position: absolute; left: 0; top: 34px; pointer-events: none; }
path { fill: none; stroke: var(--soft); stroke-opacity: .35; stroke-width: 1.2; }
path.hit { stroke: var(--time); stroke-opacity: 1; stroke-width: 2; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 12px; height: 34px; }
th, td { padding: 0 12px; white-space: nowrap; }
td { height: 26px; box-shadow: inset 0 1px var(--line); font-variant-numeric: tabular-nums; }
td.step { font: 12.5px ui-monospace, monospace; width: 99%; }
tr.part td.step { padding-left: 34px; color: var(--soft); }
tr.part td { background: var(--group); }
tr:hover td { background: var(--hit); }
td.bar { min-width: 150px; }
td.bar i { display: inline-block; height: 9px; border-radius: 2px; margin-right: 6px;
  vertical-align: baseline; background: var(--bytes); }
td.time i { background: var(--time); }
em { color: var(--soft); font-style: normal; }
.view { display: none; }
input[name="view"] { margin: 0 6px 18px 0; }
label { margin-right: 22px; }
#order:checked ~ .order, #time:checked ~ .time-view, #module:checked ~ .modules { display: block; }
.view:not(.program) { overflow-x: auto; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; }
details details { margin-left: 22px; }
summary { padding: 7px 14px; cursor: pointer; box-shadow: inset 0 1px var(--line);
  font-variant-numeric: tabular-nums; }
summary:hover { background: var(--hit); }
summary i { display: inline-block; height: 9px; border-radius: 2px; background: var(--time); }
summary strong { display: inline-block; min-width: 300px; font: 12.5px ui-monospace, monospace; }
"""

TABS = "\n".join(
    f'<input type="radio" name="view" id="{key}"{checked}><label for="{key}">{label}</label>'
    for key, label, checked in (
        ("order", "in order", " checked"),
        ("time", "by time", ""),
        ("module", "by module", ""),
    )
)

SCRIPT = """
for (const row of document.querySelectorAll("tr[data-row]")) {
  const arcs = document.querySelectorAll(`path[data-from="${row.dataset.row}"],` +
    `path[data-to="${row.dataset.row}"]`);
  row.onmouseenter = () => arcs.forEach(a => a.classList.add("hit"));
  row.onmouseleave = () => arcs.forEach(a => a.classList.remove("hit"));
}
"""


class _Measured(NamedTuple):
    """A step as a row of a page."""

    number: int
    step: Step
    seconds: float | None
    cells: str
    """The cells of its time and its memory."""
    text: str
    """The step as text, escaped."""


def _bar(amount: float, whole: float, text: str, kind: str) -> str:
    """A cell with a bar of this part of the whole."""
    width = max(1, round(80 * amount / whole)) if amount else 0
    return f'<td class="bar {kind}"><i style="width:{width}px"></i>{text}</td>'


def _place_cells(step: Step) -> str:
    """The cells of a step's module and line; a group has those of its first step."""
    place = step.place
    first = step.parts[0] if step.parts else step
    mark = " <em>gradient</em>" if first.backward else ""
    return f"<td>{html.escape(place.layer)}{mark}</td><td>{html.escape(place.line)}</td>"


def _by_module(rows: Sequence[_Measured]) -> str:
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
        self.rows: list[_Measured] = []
        self.inside: dict[str, _Module] = {}

    @property
    def all_rows(self) -> list[_Measured]:
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
        content = _content(inner, whole, "(its own steps)") if inner.inside else _table(inner.rows)
        folded.append((inner.seconds, _fold(inner.path, inner.all_rows, whole, content)))
    if module.rows:
        seconds = sum(row.seconds or 0.0 for row in module.rows)
        folded.append((seconds, _fold(own, module.rows, whole, _table(module.rows))))
    return "\n".join(text for _, text in sorted(folded, key=lambda pair: -pair[0]))


def _fold(title: str, rows: Sequence[_Measured], whole: float, content: str) -> str:
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


_COLUMNS = ("time, run alone", "makes", "held meanwhile", "module", "line", "step")


def _table(rows: Sequence[_Measured]) -> str:
    """A table with a row for each step."""
    head = "".join(f"<th>{column}</th>" for column in ("#", *_COLUMNS))
    lines = [
        f"<tr><td>{row.number}</td>{row.cells}{_place_cells(row.step)}"
        f'<td class="step">{row.text}</td></tr>'
        for row in rows
    ]
    body = "\n".join(lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def page(
    title: str, program: Program, times: Sequence[float | None], memory: Memory, buffered: set[int]
) -> str:
    """The page.

    Args:
        title: its heading.
        program: in groups.
        times: seconds for each step, None where not measured.
        memory: of the whole.
        buffered: ids of the Values in planned buffers.
    """
    names, rows = value_names(program), _rows(program)
    inputs = ", ".join(f"{names[id(v)]} {v.dtype}{list(v.shape)}" for v in program.inputs)
    facts = _facts(program, times, memory)
    cells = _cells(program, times, memory, buffered)
    measured = [
        _Measured(k + 1, step, seconds, cells[k], _text(step, names))
        for k, (step, seconds) in enumerate(zip(program.steps, times, strict=True))
    ]
    by_time = sorted(measured, key=lambda row: -(row.seconds or 0.0))  # those without one come last
    remaining = iter(measured)
    lines = []
    for k, row in enumerate(rows):
        kind = ' class="part"' if row.is_part else ' class="group"' if row.step.parts else ""
        m = None if row.is_part else next(remaining)
        number, shown = (m.number, m.cells) if m else ("", "<td></td>" * 3)
        lines.append(
            f'<tr data-row="{k}"{kind}><td style="padding-left:{GUTTER}px">{number}</td>{shown}'
            f"{_place_cells(row.step)}"
            f'<td class="step">{_text(row.step, names)}</td></tr>'  # last, as it can be long
        )
    head = f'<th style="padding-left:{GUTTER}px">#</th>'
    head += "".join(f"<th>{column}</th>" for column in _COLUMNS)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}'
        f"</title><style>{STYLE}</style></head><body>\n<h1>{html.escape(title)}</h1>\n"
        f"<p>Arguments: {html.escape(inputs) or 'none'}. Lines on the left lead from the step that "
        "makes a value to the steps that read it. Memory that an op takes and frees while it runs "
        "is not counted.</p>\n"
        f"<dl>{facts}</dl>\n{TABS}\n"
        f'<div class="view time-view">{_table(by_time)}</div>\n'
        f'<div class="view modules">{_by_module(measured)}</div>\n'
        '<div class="view order program">'
        f'<svg width="{GUTTER}" height="{len(rows) * ROW}">{_arcs(rows)}</svg>\n'
        f"<table><thead><tr>{head}</tr></thead><tbody>\n"
        + "\n".join(lines)
        + f"\n</tbody></table></div>\n<script>{SCRIPT}</script></body></html>\n"
    )


def _text(step: Step, names: dict[int, str]) -> str:
    return html.escape(f"{step.name}:" if step.parts else step_text(step, names))


def _arcs(rows: Sequence[_Row]) -> str:
    makers, arcs = _makers(rows), []
    for end, row in enumerate(rows):
        for start in sorted({makers[id(v)] for v in row.step.inputs if id(v) in makers} - {end}):
            y0, y1 = (start + 0.5) * ROW, (end + 0.5) * ROW
            reach = GUTTER - 12 - min(GUTTER - 20, 10 + 5 * (end - start))
            arcs.append(
                f'<path data-from="{start}" data-to="{end}" '
                f'd="M{GUTTER - 8} {y0} C{reach} {y0} {reach} {y1} {GUTTER - 8} {y1}"/>'
            )
    return "".join(arcs)


def _cells(
    program: Program, times: Sequence[float | None], memory: Memory, buffered: set[int]
) -> list[str]:
    """The cells of each step: its time, the bytes of its results and the bytes held meanwhile."""
    fixed = memory.inputs + memory.averages + memory.constants + memory.arena
    fixed += sum({id(v): v.nbytes for _, v in program.reads}.values())
    held = [fixed + n for n in lives(program, buffered)]
    longest = max((t for t in times if t is not None), default=0.0) or 1.0
    most = max(held, default=0) or 1

    cells = []
    for step, seconds, n in zip(program.steps, times, held, strict=True):
        if seconds is None:
            timed = '<td class="bar time"><em>not measured</em></td>'
        else:
            timed = _bar(seconds, longest, f"{seconds * 1e6:,.1f} us", "time")
        makes = format_bytes(sum(v.nbytes for v in step.outs)) if step.outs else ""
        cells.append(f"{timed}<td>{makes}</td>{_bar(n, most, format_bytes(n), 'held')}")
    return cells


def _facts(program: Program, times: Sequence[float | None], memory: Memory) -> str:
    known = [t for t in times if t is not None]
    facts = {
        "steps": str(len(program.steps)),
        "steps one by one": f"{sum(known) * 1e6:,.1f} us" if known else "not measured",
        "peak memory": format_bytes(memory.peak),
    }
    facts |= {label: format_bytes(getattr(memory, name)) for name, label in LABELS.items()}
    return "".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in facts.items())


# ---- the graph ---------------------------------------------------------------------------

INPUT = ', shape=ellipse, fillcolor="#fdf3dc", color="#b08a3e"'
OUTPUT = ', shape=ellipse, fillcolor="#e2f2e4", color="#4f8a58"'
EFFECT = ', fillcolor="#f9e1e1", color="#a05050"'


def dot(program: Program, title: str) -> str:
    """The text for ``dot -Tsvg``: steps are boxes, a group is a frame around its steps."""
    lines = [
        f"digraph {_quoted(title)} {{",
        '  rankdir=TB; node [shape=box, style="rounded,filled", fillcolor="#eef3f8",'
        ' color="#5b7a99", fontname="Helvetica", fontsize=11];',
        '  edge [color="#8899aa", fontname="Helvetica", fontsize=9];',
    ]
    names, rows = value_names(program), _rows(program)
    inputs = [*program.inputs, *(v for _, v in program.reads)]
    makers = {at: f"s{k}" for at, k in _makers(rows).items()}
    makers |= {id(v): f"i{k}" for k, v in enumerate(inputs)}
    lines += [_node(f"i{k}", [names[id(v)], _kind(v)], INPUT) for k, v in enumerate(inputs)]
    edges: list[tuple[str, str, str]] = []
    for k, row in enumerate(rows):
        step = row.step
        if row.step.parts:
            lines.append(
                f"  subgraph cluster_{k} {{ label={_quoted(step.name)}; style=rounded; "
                'color="#9fb3c8"; fontname="Helvetica"; fontsize=10;'
            )
            continue
        look = EFFECT if step.op is None else ""
        lines.append(_node(f"s{k}", [step.name, *map(_kind, step.outs)], look))
        read = {id(v): names[id(v)] for v in step.inputs if id(v) in makers}
        edges += [(makers[at], f"s{k}", name) for at, name in read.items()]
        if row.is_part and not (rows[k + 1 : k + 2] and rows[k + 1].is_part):
            lines.append("  }")
    results = [("return", v) for v in program.outputs]
    results += [(f"new {variable.name}", v) for variable, v in program.writes]
    for k, (label, v) in enumerate(results):
        lines.append(_node(f"o{k}", [label, _kind(v)], OUTPUT))
        if id(v) in makers:
            edges.append((makers[id(v)], f"o{k}", names.get(id(v), "")))
    lines += [f"  {a} -> {b} [label={_quoted(label)}];" for a, b, label in edges]
    return "\n".join([*lines, "}"]) + "\n"


def _node(key: str, label: Sequence[str], look: str) -> str:
    return f"  {key} [label={_quoted(chr(10).join(label))}{look}];"


def _kind(v: Value) -> str:
    return f"{v.dtype} {list(v.shape)}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
