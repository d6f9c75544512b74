#!/usr/bin/env python3
"""Prints the tables of a results file as Markdown, for the README.

ci/gpu_parts/tables.py ci/bench/results/GPU-DATE.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def table(results: dict[str, Any]) -> str:
    """The results as Markdown: a table for each part that ran."""
    head = f"Measured on {results['gpu']}, commit {str(results['commit'])[:12]}:"
    parts = (facts, ops, kernels, profiles, benches, outcomes)
    return "\n\n".join([head, *filter(None, (part(results) for part in parts))])


def facts(results: dict[str, Any]) -> str:
    """Ceilings and costs of a launch."""
    known = results.get("facts", {})
    rows = [(k, v) for k, v in known.items() if k not in ("properties", "versions")]
    return _rows("fact", "value", rows)


def ops(results: dict[str, Any]) -> str:
    """How many ops were compared with the CPU, and those that differ."""
    found = results.get("ops")
    if not found:
        return ""
    bad = [(f"{r['op']}, {r['phase']}", f"{r['state']}: {r.get('why', '')}"[:160])
           for r in found["failures"]]  # fmt: skip
    count = f"{found['checked'] - len(bad)} of {found['checked']} pairs of op and phase agree"
    return f"{count} with the CPU ({found['samples']} samples).\n\n" + _rows("op", "state", bad)


def kernels(results: dict[str, Any]) -> str:
    """Kernels that spill or fail, as loaded."""
    found = results.get("kernels")
    if not found:
        return ""
    bad = [(r["kernel"][1], r.get("why") or f"{r['spilled']} bytes of local memory, "
            f"{r['registers']} registers") for r in found["failures"]]  # fmt: skip
    most = found["most_registers"]
    text = f"{found['loaded']} kernels loaded; {most[-1]} has the most registers: {most[0]}."
    return f"{text}\n\n" + _rows("kernel", "as loaded", bad)


def profiles(results: dict[str, Any]) -> str:
    """The longest kernels of each step."""
    texts = []
    for name, p in results.get("profiles", {}).items():
        texts.append(
            f"{name}: host {p['host_us']:.1f} us, total {p['total_us']:.1f} us a step; "
            f"{p['launches']:.0f} launches, {p['kernels_us']:.0f} us of kernels ({p['by']})."
        )
        rows = [(kernel[:90], f"{n:.0f} | {t:.1f}") for t, n, kernel in p["kernels"][:12]]
        texts.append(_rows("kernel", "launches | us", rows))
    return "\n\n".join(texts)


def _rows(first: str, second: str, rows: list[tuple[str, Any]]) -> str:
    if not rows:
        return ""
    columns = 2 + second.count("|")
    lines = [f"| {first} | {second} |", "|" + "---|" * columns]
    lines += [f"| {k.replace('|', '/')} | {v} |" for k, v in rows]
    return "\n".join(lines)


def benches(results: dict[str, Any]) -> str:
    """Each workload beside its peers, and whether it reached its targets."""
    if not results.get("figures"):
        return ""
    lines = ["| workload | gpugrad | over its peers | reach |", "|---|---|---|---|"]
    for figure in results["figures"]:
        ours = figure["seconds"].get("gpugrad")
        peers = [f"{name} {ours / t:.2f}" for name, t in figure["seconds"].items()
                 if ours and name != "gpugrad"]  # fmt: skip
        time_of = f"{ours * 1e6:.1f} us" if ours else "failed"
        lines.append(
            f"| {figure['title']} | {time_of} | {', '.join(peers) or '-'} | "
            f"{describe_reach(figure)} |"
        )
    return "\n".join(lines)


def outcomes(results: dict[str, Any]) -> str:
    """How each part ended."""
    rows = [(part, ", ".join(f"{k} {v}" for k, v in each.items()) or "nothing to run")
            for part, each in results["parts"].items()]  # fmt: skip
    return _rows("part", "outcome", rows)


def describe_reach(figure: dict[str, Any]) -> str:
    """Our part of a copy's speed, and whether each target was reached."""
    ours, (work, _) = figure["seconds"].get("gpugrad"), figure.get("work") or (0, "")
    texts = [f"{work / ours / figure['limit']:.2f} of a copy"] if ours and "limit" in figure else []
    words = {True: "yes", False: "MISSED", None: "not known"}
    texts += [f"{what}: {words[good]}" for what, good in figure.get("reach", {}).items()]
    return "; ".join(texts) or "-"


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text())))
