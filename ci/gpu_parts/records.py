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
    return [r for r in records if part in (None, r["part"])]


def summary(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the results file says about each part that wrote records."""
    facts = {r["name"]: r["value"] for r in read(path, "facts")}
    ops, kernels = last_states(path), {tuple(r["kernel"]): r for r in read(path, "kernels")}
    result: dict[str, Any] = {"facts": facts} if facts else {}
    if ops:
        bad = [r for r in ops.values() if r["state"] != "passed"]
        result["ops"] = {
            "checked": len(ops), "samples": sum(r.get("samples", 0) for r in ops.values()),
            "failures": [{k: r[k] for k in ("op", "phase", "state", "why") if k in r} for r in bad],
        }  # fmt: skip
    if kernels:
        bad = [r for r in kernels.values() if r.get("why") or r.get("spilled")]
        most = max(kernels.values(), key=lambda r: r.get("registers", 0))
        result["kernels"] = {
            "loaded": len(kernels), "most_registers": [most.get("registers", 0), *most["kernel"]],
            "failures": [{k: v for k, v in r.items() if k != "part"} for r in bad],
        }  # fmt: skip
    profiles = {r["step"]: {k: v for k, v in r.items() if k != "part"}
                for r in read(path, "profile")}  # fmt: skip
    return result | ({"profiles": profiles} if profiles else {})


def last_states(path: str | os.PathLike[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """The last record of each op in each phase; "begun" if its process has not come back."""
    return {(r["op"], r["phase"]): r for r in read(path, "ops")}
