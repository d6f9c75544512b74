"""One file of JSON lines for all scripts of a run: a crash loses no line written before it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write(path: str | os.PathLike[str], part: str, **record: Any) -> None:
    """Append a record; lines of several processes do not mix, as each is one write."""
    line = json.dumps({"part": part, **record}) + "\n"
    with open(path, "ab", buffering=0) as file:
        file.write(line.encode())


def read(path: str | os.PathLike[str], part: str | None = None) -> list[dict[str, Any]]:
    """All records, or those of one part; a line that a crash cut off is left out."""
    if not os.path.exists(path):
        return []
    records = []
    for line in Path(path).read_text(errors="replace").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return [r for r in records if part in (None, r.get("part"))]


def key(item: Any) -> Any:
    """An item that a dict can hold: JSON turns tuples into lists."""
    return tuple(item) if isinstance(item, (list, tuple)) else item


def outcomes(path: str | os.PathLike[str], part: str) -> dict[Any, dict[str, Any]]:
    """The last record of each item that is not only begun."""
    return {key(r["item"]): r for r in read(path, part) if r["state"] != "begun"}


def summary(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the results file says about each part that wrote records."""
    facts, ops, kernels = (outcomes(path, part) for part in ("facts", "ops", "kernels"))
    result: dict[str, Any] = {}
    if facts:
        result["facts"] = {name: r.get("value", _reason(r)) for name, r in facts.items()}
    if ops:
        result["ops"] = {"checked": len(ops), "failures": _failures(ops)}
    if loaded := {k: r for k, r in kernels.items() if "registers" in r}:
        most = max(loaded.values(), key=lambda r: r["registers"])
        result["kernels"] = {
            "loaded": len(loaded), "most_registers": [most["registers"], *most["item"]],
            "failures": _failures(kernels),
        }  # fmt: skip
    profiles = {r["step"]: {k: v for k, v in r.items() if k != "part"}
                for r in read(path, "profile")}  # fmt: skip
    figures = {r["title"]: r for r in read(path) if "title" in r}  # the benches' own lines
    result |= {"profiles": profiles} if profiles else {}
    return result | ({"figures": [*figures.values()]} if figures else {})


def _failures(outcomes: dict[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in r.items() if k not in ("part", "worker")}
        for r in outcomes.values()
        if r["state"] != "passed"
    ]


def _reason(record: dict[str, Any]) -> str:
    return f"{record['state'].upper()}: {record.get('why', '')}"
