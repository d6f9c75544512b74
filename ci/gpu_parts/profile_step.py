"""Which kernels a bench's step launches, how long each takes, and its registers.

    python ci/gpu_parts/profile_step.py RECORDS mlp|gpt2|resnet [ARGUMENT ...]

CUPTI measures the kernels, through torch's profiler. Without it each step of the traced program is
timed alone, by CUDA graphs. The arguments go to the bench. What is known is recorded after each
stage, so that a crash of the profiler loses no times.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import records

MAKERS: dict[str, tuple[Any, ...]] = {"mlp": (True,), "gpt2": (), "resnet": ("float16",)}
"""The steps, and the arguments of their benches' with_gpugrad."""
FEW = 3
"""Calls that are profiled."""
Rows = list[tuple[float, float, str]]
"""(microseconds, launches, kernel) of a step, the longest first."""


def make_step(name: str) -> Any:
    """gpugrad's step of a bench: a `functools.partial` of a `gg.function`."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
    return importlib.import_module(name).with_gpugrad(*MAKERS[name])


@contextlib.contextmanager
def loaded_kernels() -> Iterator[dict[str, tuple[int, int]]]:
    """The registers and the bytes of local memory of each kernel that gpugrad loads."""
    import cupy

    loaded: dict[str, tuple[int, int]] = {}

    class Module(cupy.RawModule):  # type: ignore[misc, name-defined]  # cupy has no types
        def get_function(self, name: str) -> Any:
            kernel = super().get_function(name)
            about = kernel.attributes
            loaded[name] = about["num_regs"], about["local_size_bytes"]
            return kernel

    with mock.patch.object(cupy, "RawModule", Module):
        yield loaded


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


def start_cupti() -> str:
    """Prepare torch's profiler before CuPy creates the context; why there is none, if so."""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    try:
        import torch

        torch.zeros(1, device="cuda")
    except Exception as error:
        return f"torch cannot use the GPU: {error}".splitlines()[0][:200]
    return ""


def by_cupti(step: Callable[[], Any]) -> Rows:
    """The kernels of a step."""
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
    if not times:
        raise RuntimeError("CUPTI measured no kernel")
    rows = [(sum(t) / FEW, len(t) / FEW, name) for name, t in times.items()]
    return sorted(rows, reverse=True)


def by_step(step: Any) -> Rows:
    """The steps of the traced program, each run alone."""
    lowered = step.func.lower(*step.args, **step.keywords)
    times: dict[str, list[float]] = collections.defaultdict(list)
    for part, seconds in zip(lowered.program.steps, lowered.times(), strict=True):
        name = part.name if seconds is not None else f"{part.name} (not measured: an effect)"
        times[name].append((seconds or 0.0) * 1e6)
    return sorted(((sum(t), float(len(t)), name) for name, t in times.items()), reverse=True)


def profile(step: Any, without: str) -> dict[str, Any]:
    """The kernels by CUPTI, or if that fails the program's steps alone."""
    by, rows = "CUPTI", []
    if not without:
        try:
            rows = by_cupti(step)
        except Exception as error:
            without = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    if without:
        by, rows = f"steps alone, as {without}", by_step(step)
    return {
        "by": by, "kernels_us": sum(r[0] for r in rows), "launches": sum(r[1] for r in rows),
        "kernels": rows[:60],
    }  # fmt: skip


def main() -> int:
    path, name, *rest = sys.argv[1:]
    without_cupti = start_cupti()
    os.environ["GPUGRAD_DEVICE"] = "cuda:0"
    sys.argv = [f"{name}.py", "--device", "cuda:0", *rest]
    record: dict[str, Any] = {"step": name, "first_calls_s": []}

    def learn(**more: Any) -> None:
        record.update(more)
        records.write(path, "profile", **record)

    with loaded_kernels() as kernels:
        step = make_step(name)
        for _ in range(4):  # trace, compile, capture, launch
            start = time.perf_counter()
            loss = float(step())
            record["first_calls_s"].append(round(time.perf_counter() - start, 3))
            print(f"call: loss {loss:.4f}, {record['first_calls_s'][-1]} s", flush=True)
    learn(loss=loss, registers=kernels)
    import gpugrad as gg

    learn(**race(step, 2 if "--small" in rest else 200 if name == "mlp" else 20))
    print(f"{name}: host {record['host_us']:.1f} us, total {record['total_us']:.1f} us a step",
          flush=True)  # fmt: skip
    learn(memory=gg.cuda.memory_stats("cuda:0")._asdict())
    learn(**profile(step, without_cupti))
    print(f"{record['launches']:.0f} launches, {record['kernels_us']:.0f} us of kernels, measured "
          f"by {record['by']}")  # fmt: skip
    for t, n, kernel in record["kernels"][:28]:
        print(f"{t:10.1f} us {n:6.1f} x {t / max(n, 1):8.1f}  {kernel[:110]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
