"""`gg.profile`: where the time goes, by op, by layer, and as a trace for a viewer."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gpugrad.core.arguments import PATH
from gpugrad.core.format import format_bytes, format_html
from gpugrad.core.listening import recorders
from gpugrad.errors import ArgumentError
from gpugrad.registry.on_tensors import rewrite
from gpugrad.trace.profiling import Event, Profile, origins, profiles


class Total(NamedTuple):
    """The sum of some events."""

    calls: int
    seconds: float
    nbytes: int


class profile(Profile):  # it reads as a statement
    """Measure how long each op takes in a ``with`` block; ``print(profile)`` shows tables.

    It measures the ops that the program calls, with everything that runs inside them; each op's
    gradient; calls of a `gg.function` (the first call, which traces, is a separate entry); steps of
    optimizers; and waits for batches of a `gg.data.DataLoader`, in all threads. After the block,
    each step of a traced function runs alone, on the last arguments, and the steps share the time
    of the replays. The remaining time, such as the optimizer's step, is the function's ``rest``.
    Functions of the same name are not divided. The first call of an op compiles it.

    On a GPU every measured op waits for the current stream before and after, so that its time is
    that of its launch and its kernels. The program as a whole takes longer than without a profile.
    Each op is an NVTX range, too.

    Outside of such blocks nothing is slower: ops run other code only inside the block.

    Args:
        path: file for `save` at the end of the block; None for none.

    Attributes:
        events: a list of everything that was measured: `kind`, `name`, `start` and `duration` in
            nanoseconds, `nbytes`, `where` (the user's line, and the layer's path) and `thread`.

    Raises:
        ArgumentError: the profile has been used before, or the folder of `path` does not exist.

    >>> with gg.profile() as profile:
    ...     y = gg.tanh(gg.ones((100, 100)) @ gg.ones((100, 100)))
    >>> {name: total.calls for name, total in sorted(profile.by_op().items())}
    {'op matmul': 1, 'op tanh': 1}
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        super().__init__()
        if path is not None and not PATH("profile", "path", path).parent.is_dir():
            raise ArgumentError(f"profile: there is no folder {Path(path).parent}.")
        self._path = path
        self._steps: dict[str, list[tuple[Any, float]]] = {}
        self._entered = False

    def __enter__(self) -> profile:
        if self._entered:
            raise ArgumentError("profile: it has been used before; create one for each block.")
        self._entered = True
        profiles.append(self)
        recorders.append(self)  # a traced function looks at `profiles` only if there are any
        if len(profiles) == 1:
            rewrite()
        return self

    def __exit__(self, *exc: object) -> None:
        profiles.remove(self)
        recorders.remove(self)
        if not profiles:
            origins.clear()
            rewrite()
        calls, self.calls = self.calls, {}
        names = [function.__name__ for function, _, _ in calls.values()]
        for function, args, keywords in calls.values():
            if names.count(function.__name__) > 1:  # events do not tell them apart
                continue
            with contextlib.suppress(Exception):  # a Variable has another shape by now
                self._steps[function.__name__] = _times(function.lower(*args, **keywords))
        if self._path is not None:
            self.save(self._path)

    # ---- tables

    def by_op(self) -> dict[str, Total]:
        """Totals by kind and name, such as ``"gradient matmul"``; the longest first."""
        return self._totals(lambda event: f"{event.kind} {event.name}")

    def by_line(self) -> dict[str, Total]:
        """Totals by the user's line, ``file:line``; the longest first."""
        return self._totals(lambda event: event.where.line)

    def by_module(self) -> dict[str, Total]:
        """Totals by the path of the innermost layer, "" for none; the longest first."""
        return self._totals(lambda event: event.where.layer)

    def _totals(self, key: Callable[[Event], str]) -> dict[str, Total]:
        totals: dict[str, Total] = {}
        for event in self._divided():
            calls, seconds, nbytes = totals.get(key(event), (0, 0.0, 0))
            totals[key(event)] = Total(
                calls + 1, seconds + event.duration / 1e9, nbytes + event.nbytes
            )
        return dict(sorted(totals.items(), key=lambda pair: -pair[1].seconds))

    def _divided(self) -> Iterator[Event]:
        """The events, with the steps of a replay in the place of the replay."""
        for event in self.events:
            steps = self._steps.get(event.name) if event.kind == "function" else None
            if not steps:
                yield event
                continue
            start = event.start
            whole = sum(seconds for _, seconds in steps) * 1e9
            scale = min(1e9, event.duration / whole * 1e9)
            for step, seconds in steps:
                took = round(seconds * scale)
                nbytes = sum(v.nbytes for v in (*step.inputs, *step.outs))
                yield event._replace(
                    kind="step",
                    name=step.name,
                    start=start,
                    duration=took,
                    nbytes=nbytes,
                    where=step.place,
                )
                start += took
            rest = event.start + event.duration - start
            yield event._replace(kind="rest", start=start, duration=max(rest, 0), nbytes=0)

    def __str__(self) -> str:
        """Tables by op and by module."""
        whole = sum(event.duration for event in self.events) / 1e9
        parts = [_table("op", self.by_op(), whole)]
        by_module = self.by_module()
        if set(by_module) - {""}:
            parts.append(_table("module", by_module, whole))
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return f"<profile: {len(self.events)} events>"

    def _repr_html_(self) -> str:
        return format_html(f"profile: {len(self.events)} events", str(self))

    # ---- the trace

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Chrome trace, for ``chrome://tracing`` or https://ui.perfetto.dev.

        Args:
            path: file name; the format is JSON.
        """
        events = self.events + [e for e in self._divided() if e.kind == "step"]
        first = min((e.start for e in events), default=0)
        rows = [
            {
                "name": e.name,
                "cat": e.kind,
                "ph": "X",
                "pid": os.getpid(),
                "tid": e.thread,
                "ts": (e.start - first) / 1e3,
                "dur": e.duration / 1e3,
                "args": {"line": e.where.line, "module": e.where.layer, "bytes": e.nbytes},
            }
            for e in sorted(events, key=lambda e: (e.start, -e.duration))
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": rows, "displayTimeUnit": "ms"}, file)


def _times(lowered: Any) -> list[tuple[Any, float]]:
    """The steps of a program and their seconds, without effects, which do not run alone."""
    pairs = zip(lowered.program.steps, lowered.times(), strict=True)
    return [(step, seconds) for step, seconds in pairs if seconds]


def _table(title: str, totals: dict[str, Total], whole: float, most: int = 30) -> str:
    rows = [("time ms", "share", "calls", "bytes", title)]
    for name, total in list(totals.items())[:most]:
        share = total.seconds / whole if whole else 0.0
        rows.append(
            (
                f"{total.seconds * 1e3:.3f}",
                f"{share:.1%}",
                str(total.calls),
                format_bytes(total.nbytes),
                name or "(in no module)",
            )
        )
    rest = list(totals.values())[most:]
    if rest:
        seconds = sum(t.seconds for t in rest)
        rows.append((f"{seconds * 1e3:.3f}", "", "", "", f"({len(rest)} others)"))
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    lines = [
        "  ".join([*(cell.rjust(w) for cell, w in zip(row, widths, strict=False)), row[4]])
        for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])
