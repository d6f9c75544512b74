"""A lowered program as one HTML page: steps with their time, their memory and what they read.

The page is one file that loads nothing. Rows are of one height, so that the arcs on the left,
from the step that makes a value to those that read it, need no layout.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from gpugrad.function.memory import Memory, lives, size
from gpugrad.trace.program import Program, Step, line, named

__all__ = ["page"]

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
"""

SCRIPT = """
for (const row of document.querySelectorAll("tr[data-row]")) {
  const arcs = document.querySelectorAll(`path[data-from="${row.dataset.row}"],` +
    `path[data-to="${row.dataset.row}"]`);
  row.onmouseenter = () => arcs.forEach(a => a.classList.add("hit"));
  row.onmouseleave = () => arcs.forEach(a => a.classList.remove("hit"));
}
"""


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
    fixed = memory.inputs + memory.averages + memory.constants + memory.arena
    fixed += sum({id(v): v.nbytes for _, v in program.reads}.values())
    held = [fixed + n for n in lives(program, buffered)]
    known = [t for t in times if t is not None]
    longest, most = max(known, default=0.0) or 1.0, max(held, default=0) or 1
    names = named(program)
    rows: list[str] = []
    arcs: list[str] = []
    maker: dict[int, int] = {}

    def arc(start: int, end: int) -> None:
        y0, y1 = (start + 0.5) * ROW, (end + 0.5) * ROW
        reach = GUTTER - 12 - min(GUTTER - 20, 10 + 5 * (end - start))
        arcs.append(
            f'<path data-from="{start}" data-to="{end}" '
            f'd="M{GUTTER - 8} {y0} C{reach} {y0} {reach} {y1} {GUTTER - 8} {y1}"/>'
        )

    def row(step: Step, said: str, number: str, cells: str, kind: str = "") -> None:
        at = len(rows)
        for start in sorted({maker[id(v)] for v in step.inputs if id(v) in maker} - {at}):
            arc(start, at)
        rows.append(
            f'<tr data-row="{at}"{kind}><td style="padding-left:{GUTTER}px">{number}</td>{cells}'
            f'<td class="step">{html.escape(said)}</td></tr>'  # last, as it can be long
        )

    def bar(amount: float, whole: float, said: str, kind: str) -> str:
        width = max(1, round(80 * amount / whole)) if amount else 0
        return f'<td class="bar {kind}"><i style="width:{width}px"></i>{said}</td>'

    for k, (step, seconds) in enumerate(zip(program.steps, times, strict=True)):
        timed = (
            '<td class="bar time"><em>not measured</em></td>' if seconds is None
            else bar(seconds, longest, f"{seconds * 1e6:,.1f} us", "time")
        )  # fmt: skip
        made = sum(v.nbytes for v in step.outs)
        cells = f"{timed}<td>{size(made) if step.outs else ''}</td>"
        cells += bar(held[k], most, size(held[k]), "held")
        first = len(rows)
        said = f"{step.name}:" if step.parts else line(step, names)
        row(step, said, str(k + 1), cells, ' class="group"' if step.parts else "")
        for part in step.parts:
            row(part, line(part, names), "", "<td></td>" * 3, ' class="part"')
            maker.update((id(v), len(rows) - 1) for v in part.outs)
        if not step.parts:
            maker.update((id(v), first) for v in step.outs)
    total = f"{sum(known) * 1e6:,.1f} us" if known else "not measured"
    facts = {
        "steps": str(len(program.steps)), "steps one by one": total,
        "peak memory": size(memory.peak), "arguments": size(memory.inputs),
        "Variables": size(memory.variables), "optimizers' own": size(memory.averages),
        "planned buffers": size(memory.arena), "results": size(memory.outputs),
        "kept for backward": size(memory.kept),
    }  # fmt: skip
    said = "".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in facts.items())
    given = ", ".join(f"{names[id(v)]} {v.dtype}{list(v.shape)}" for v in program.inputs)
    head = "".join(
        f"<th{look}>{label}</th>"
        for label, look in (("#", f' style="padding-left:{GUTTER}px"'), ("time, run alone", ""),
                            ("makes", ""), ("held meanwhile", ""), ("step", ""))
    )  # fmt: skip
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}'
        f"</title><style>{STYLE}</style></head><body>\n<h1>{html.escape(title)}</h1>\n"
        f"<p>Arguments: {html.escape(given) or 'none'}. Lines on the left lead from where a value "
        "is made to where it is read. What an op takes within itself is not in the memory.</p>\n"
        f'<dl>{said}</dl>\n<div class="program">'
        f'<svg width="{GUTTER}" height="{len(rows) * ROW}">{"".join(arcs)}</svg>\n'
        f"<table><thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(rows)
        + f"\n</tbody></table></div>\n<script>{SCRIPT}</script></body></html>\n"
    )  # fmt: skip
