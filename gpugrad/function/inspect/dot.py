"""A program as a graph, in Graphviz's language."""

from __future__ import annotations

from gpugrad.trace.program import Program, Step, Value, named

__all__ = ["dot"]


def dot(program: Program, title: str) -> str:
    """The text for ``dot -Tsvg``: boxes are steps, groups are frames around theirs."""
    lines = [
        f"digraph {_quoted(title)} {{",
        '  rankdir=TB; node [shape=box, style="rounded,filled", fillcolor="#eef3f8",'
        ' color="#5b7a99", fontname="Helvetica", fontsize=11];',
        '  edge [color="#8899aa", fontname="Helvetica", fontsize=9];',
    ]
    names = named(program)
    maker: dict[int, str] = {}

    def node(key: str, label: str, look: str = "") -> None:
        lines.append(f"  {key} [label={_quoted(label)}{look}];")

    for k, v in enumerate((*program.inputs, *(v for _, v in program.reads))):
        maker[id(v)] = f"i{k}"
        look = ', shape=ellipse, fillcolor="#fdf3dc", color="#b08a3e"'
        node(f"i{k}", f"{names[id(v)]}\n{_kind(v)}", look)
    edges: list[tuple[str, str, str]] = []
    count = 0

    def write(step: Step) -> None:
        nonlocal count
        key = f"s{count}"
        count += 1
        effect = ', fillcolor="#f9e1e1", color="#a05050"' if step.op is None else ""
        node(key, "\n".join([step.name, *map(_kind, step.outs)]), effect)
        for v in {id(v): v for v in step.inputs}.values():
            if id(v) in maker:
                edges.append((maker[id(v)], key, names[id(v)]))
        maker.update((id(v), key) for v in step.outs)

    for k, step in enumerate(program.steps):
        if step.parts:
            lines.append(
                f"  subgraph cluster_{k} {{ label={_quoted(step.name)}; style=rounded; "
                'color="#9fb3c8"; fontname="Helvetica"; fontsize=10;'
            )
        for part in step.parts or [step]:
            write(part)
        if step.parts:
            lines.append("  }")
    results = [("return", v) for v in program.outputs]
    results += [(f"new {variable.name}", v) for variable, v in program.writes]
    for k, (label, v) in enumerate(results):
        node(
            f"o{k}", f"{label}\n{_kind(v)}", ', shape=ellipse, fillcolor="#e2f2e4", color="#4f8a58"'
        )
        if id(v) in maker:
            edges.append((maker[id(v)], f"o{k}", names.get(id(v), "")))
    lines += [f"  {a} -> {b} [label={_quoted(label)}];" for a, b, label in edges]
    return "\n".join([*lines, "}"]) + "\n"


def _kind(v: Value) -> str:
    return f"{v.dtype} {list(v.shape)}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
