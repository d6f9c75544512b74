#!/usr/bin/env python3
"""Prints results of ci/gpu as Markdown tables, or writes them into documents.

    ci/gpu_parts/tables.py ci/bench/results/GPU-DATE.json
    ci/gpu_parts/tables.py --keep CALL_1/GPU-DATE.json CALL_2/GPU-DATE.json
                                                           add them to ci/bench/results
    ci/gpu_parts/tables.py --write README.md docs/*.md     fill their marked places
    ci/gpu_parts/tables.py --check README.md docs/*.md     fail if a place is out of date

A place begins with a line ``<!-- ci/gpu: bench, profile -->``, which names parts, and ends with
``<!-- ci/gpu: end -->``. It gets the newest results of each GPU in ci/bench/results.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu_parts import records

RESULTS = Path(__file__).resolve().parents[1] / "bench" / "results"
MOST = 40
"""Rows of a table."""
PLACE = re.compile(r"(<!-- ci/gpu: (?!end)(.*?) -->\n).*?(<!-- ci/gpu: end -->)", re.DOTALL)


def load(path: Path) -> dict[str, Any]:
    """A results file, with the records beside it that a stopped run did not summarise."""
    results = json.loads(path.read_text())
    return dict(results | records.summary(path.with_suffix(".jsonl")))


def keep(paths: list[Path], folder: Path) -> list[Path]:
    """Merge the results of calls that ran apart; those of an older commit are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for path in paths:
        new, kept = load(path), folder / path.name
        if new.get("small"):
            raise ValueError(f"{path} is a rehearsal with --small: its times mean nothing.")
        old = json.loads(kept.read_text()) if kept.exists() else {}
        if old.get("commit") == new["commit"]:
            figures = {f["title"]: f for r in (old, new) for f in r.get("figures", ())}
            for name in ("parts", "seconds", "facts", "profiles"):
                new[name] = old.get(name, {}) | new.get(name, {})
            new = old | new | {"figures": [*figures.values()]}
        kept.write_text(json.dumps(new, indent=2) + "\n")
        written[kept] = None
    return list(written)


def newest(folder: Path) -> list[dict[str, Any]]:
    """The newest results of each GPU; rehearsals do not count."""
    every = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    every = [results for results in every if not results.get("small")]
    by_gpu = {r["gpu"]: r for r in sorted(every, key=lambda r: str(r["date"]))}
    return [by_gpu[gpu] for gpu in sorted(by_gpu)]


def table(results: dict[str, Any], parts: list[str] | None = None) -> str:
    """The results as Markdown: a table for each part that ran, or for the named ones."""
    head = f"Measured on {results['gpu']}, commit {str(results['commit'])[:12]}:"
    texts = [PARTS[name](results) for name in parts or PARTS]
    return "\n\n".join([head, *(text.strip() for text in texts if text)])


def write(text: str, folder: Path) -> str:
    """A document with its places filled."""
    results = newest(folder)

    def fill(place: re.Match[str]) -> str:
        parts = [name.strip() for name in place[2].split(",")]
        if unknown := set(parts) - set(PARTS):
            raise ValueError(f"there is no part {unknown.pop()!r}; there are {', '.join(PARTS)}.")
        tables = [table(r, parts) for r in results] or ["Not measured on a GPU yet."]
        return "".join([place[1], "\n\n".join(tables), "\n", place[3]])

    return PLACE.sub(fill, text)


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
    bad = [(", ".join(r["item"]), f"{r['state']}: {r.get('why', '')}"[:160])
           for r in found["failures"]]  # fmt: skip
    count = f"{found['checked'] - len(bad)} of {found['checked']} pairs of op and phase agree"
    return f"{count} with the CPU.\n\n" + _rows("op", "state", bad)


def kernels(results: dict[str, Any]) -> str:
    """Kernels that spill or fail, as loaded."""
    found = results.get("kernels")
    if not found:
        return ""
    bad = [(r["item"][1], f"{r['why']}{_registers(r)}") for r in found["failures"]]
    most = found["most_registers"]
    text = f"{found['loaded']} kernels loaded; {most[-1]} has the most registers: {most[0]}."
    return f"{text}\n\n" + _rows("kernel", "as loaded", bad)


def _registers(record: dict[str, Any]) -> str:
    return f", {record['registers']} registers" if "registers" in record else ""


def profile(results: dict[str, Any]) -> str:
    """The longest kernels of each step."""
    texts = []
    for name, p in results.get("profiles", {}).items():
        text = f"{name}: first calls {', '.join(map(str, p['first_calls_s']))} s"
        if "total_us" in p:
            text += f"; then host {p['host_us']:.1f} us, total {p['total_us']:.1f} us a step"
        if "kernels" not in p:
            texts.append(f"{text}; the profiler did not end.")
            continue
        texts.append(f"{text}; {p['launches']:.0f} launches, {p['kernels_us']:.0f} us of kernels "
                     f"({p['by']}).")  # fmt: skip
        if loaded := p.get("registers"):
            worst = max(loaded, key=lambda kernel: loaded[kernel][0])
            spills = [kernel for kernel, (_, spilled) in loaded.items() if spilled]
            texts.append(f"{len(loaded)} kernels loaded; {worst} has the most registers: "
                         f"{loaded[worst][0]}. Spills: {', '.join(spills) or 'none'}.")  # fmt: skip
        rows = [(kernel[:90], f"{n:.0f} | {t:.1f}") for t, n, kernel in p["kernels"][:12]]
        texts.append(_rows("kernel", "launches | us", rows))
    return "\n\n".join(texts)


def _rows(first: str, second: str, rows: list[tuple[str, Any]]) -> str:
    if not rows:
        return ""
    columns = 2 + second.count("|")
    lines = [f"| {first} | {second} |", "|" + "---|" * columns]
    lines += [f"| {k.replace('|', '/')} | {v} |" for k, v in rows[:MOST]]
    more = [f"\nand {len(rows) - MOST} more"] * (len(rows) > MOST)
    return "\n".join([*lines, *more])


def bench(results: dict[str, Any]) -> str:
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


PARTS = {f.__name__: f for f in (facts, ops, kernels, profile, bench, outcomes)}


def describe_reach(figure: dict[str, Any]) -> str:
    """Our part of a copy's speed, and whether each target was reached."""
    ours, (work, _) = figure["seconds"].get("gpugrad"), figure.get("work") or (0, "")
    texts = [f"{work / ours / figure['limit']:.2f} of a copy"] if ours and "limit" in figure else []
    words = {True: "yes", False: "MISSED", None: "not known"}
    texts += [f"{what}: {words[good]}" for what, good in figure.get("reach", {}).items()]
    return "; ".join(texts) or "-"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, help="results, or documents")
    parser.add_argument("--write", action="store_true", help="fill the documents' places")
    parser.add_argument("--check", action="store_true", help="fail if that changed a document")
    parser.add_argument("--keep", action="store_true", help="merge results into --results")
    parser.add_argument("--results", type=Path, default=RESULTS, help="their directory")
    args = parser.parse_args()
    if args.keep:
        print(*keep(args.files, args.results), sep="\n")
        return 0
    if not args.write and not args.check:
        print("\n\n".join(table(load(path)) for path in args.files))
        return 0
    outdated = []
    for path in args.files:
        text = path.read_text()
        if (filled := write(text, args.results)) != text:
            outdated.append(path)
            if args.write:
                path.write_text(filled)
    for path in outdated:
        print(f"{path} {'is written' if args.write else 'is out of date: use --write'}")
    return int(args.check and bool(outdated))


if __name__ == "__main__":
    sys.exit(main())
