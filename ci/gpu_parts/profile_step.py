"""Which kernels a bench's step launches, and how long each takes.

    python ci/gpu_parts/profile_step.py RECORDS mlp|gpt2|resnet [ARGUMENT ...]

CUPTI measures the kernels, through torch's profiler. Without torch each step of the traced program
is timed alone. The arguments go to the bench.
"""

from __future__ import annotations

import collections
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import records

MAKERS: dict[str, tuple[Any, ...]] = {"mlp": (True,), "gpt2": (), "resnet": ("float16",)}
"""The steps, and the arguments of their benches' with_gpugrad."""
FEW = 3
"""Calls that are profiled."""


def make_step(name: str) -> Any:
    """gpugrad's step of a bench: a `functools.partial` of a `gg.function`."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
    return importlib.import_module(name).with_gpugrad(*MAKERS[name])


def race(step: Callable[[], Any], n: int) -> dict[str, float]:
    """Microseconds of a step for the host, and in all: the best of three runs."""
    import gpugrad as gg

    best = [float("inf"), float("inf")]
    for _ in range(3):
        gg.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            step()
        host = time.perf_counter() - start
        gg.cuda.synchronize()
        best = [min(best[0], host), min(best[1], time.perf_counter() - start)]
    return {"host_us": best[0] / n * 1e6, "total_us": best[1] / n * 1e6}


def by_cupti(step: Callable[[], Any]) -> list[tuple[float, float, str]]:
    """(microseconds, launches, kernel) of a step, the longest first."""
    import torch

    import gpugrad as gg

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(FEW):
            step()
        gg.cuda.synchronize()
    times = collections.defaultdict(list)
    for event in profile.events():
        if "CUDA" in str(event.device_type):
            times[event.name].append(event.time_range.elapsed_us())
    rows = [(sum(t) / FEW, len(t) / FEW, name) for name, t in times.items()]
    return sorted(rows, reverse=True)


def by_step(step: Any) -> list[tuple[float, float, str]]:
    """The same for the steps of the traced program, each run alone."""
    lowered = step.func.lower(*step.args, **step.keywords)
    times: dict[str, list[float]] = collections.defaultdict(list)
    for part, seconds in zip(lowered.program.steps, lowered.times(), strict=True):
        times[part.name].append((seconds or 0.0) * 1e6)
    return sorted(((sum(t), float(len(t)), name) for name, t in times.items()), reverse=True)


def main() -> int:
    path, name, *rest = sys.argv[1:]
    has_torch = importlib.util.find_spec("torch") is not None
    if has_torch:  # before CuPy: CUPTI must see the context from its start
        import torch

        has_torch = torch.cuda.is_available()
        if has_torch:
            torch.zeros(1, device="cuda")
    os.environ["GPUGRAD_DEVICE"] = "cuda:0"
    sys.argv = [f"{name}.py", "--device", "cuda:0", *rest]
    step, first = make_step(name), []
    for _ in range(4):  # trace, compile, capture, launch
        start = time.perf_counter()
        loss = float(step())
        first.append(round(time.perf_counter() - start, 3))
    import gpugrad as gg

    record: dict[str, Any] = {"step": name, "loss": loss, "first_calls_s": first}
    record |= race(step, 200 if name == "mlp" and not rest else 20)
    record["memory"] = gg.cuda.memory_stats("cuda:0")._asdict()
    rows = by_cupti(step) if has_torch else by_step(step)
    record |= {
        "by": "CUPTI" if has_torch else "steps alone", "kernels_us": sum(r[0] for r in rows),
        "launches": sum(r[1] for r in rows), "kernels": rows[:60],
    }  # fmt: skip
    records.write(path, "profile", **record)
    print(
        f"{name}: host {record['host_us']:.1f} us, total {record['total_us']:.1f} us a step; "
        f"{record['launches']:.0f} launches, {record['kernels_us']:.0f} us of kernels"
    )
    for t, n, kernel in rows[:28]:
        print(f"{t:10.1f} us {n:6.1f} x {t / max(n, 1):8.1f}  {kernel[:110]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
