"""Shared by the benches: options, installed peers, interleaved medians, tables, JSON.

Machines are noisy, so a single time says little. Every contestant runs once per round, in a new
order each round, and the medians over all rounds are compared. The timer waits for the GPU before
and after the timed calls.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import importlib.metadata
import importlib.util
import json
import math
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Run = Callable[[], Any]
Maker = Callable[[], Run]

# ---- options ----------------------------------------------------------------------------


def options(doc: str, rounds: int, threads: int | None = None) -> argparse.ArgumentParser:
    """A parser with the options that every bench has; pass it to `parse_args`.

    A bench may declare one of them anew, to say what it means there.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0], conflict_handler="resolve")
    parser.add_argument("--device", help="cpu or cuda (a GPU, where there is one)")
    parser.add_argument(
        "--threads", type=int, default=threads, help=f"of all, on a CPU ({threads or 'their own'})"
    )
    parser.add_argument("--rounds", type=int, default=rounds, help=f"for the medians ({rounds})")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contestants to run (all)")
    parser.add_argument("--small", action="store_true", help="small sizes, to try the bench")
    parser.add_argument("--json", metavar="PATH", help="where to add the figures, a line a table")
    return parser


def parse_args(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the options and set environment variables; call it before importing any library."""
    args = parser.parse_args()
    if args.threads:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = str(args.threads)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)  # NumPy's BLAS must detect the processor, as the peers' do
    if args.device:
        os.environ["GPUGRAD_DEVICE"] = args.device
    if args.json:
        os.environ["GPUGRAD_BENCH_FIGURES"] = args.json
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leave memory to the peers
    if args.device:  # otherwise jax falls back to the CPU if it does not find the GPU
        os.environ.setdefault("JAX_PLATFORMS", "cpu" if args.device == "cpu" else "cuda")
    return args


# ---- peers ------------------------------------------------------------------------------


def installed(name: str) -> bool:
    """Whether a peer can be imported. A torch for CPUs takes no part on a GPU."""
    if importlib.util.find_spec(name) is None:
        return False
    on_gpu = os.environ.get("GPUGRAD_DEVICE", "cpu") != "cpu"
    return not (on_gpu and name == "torch" and importlib.metadata.version(name).endswith("+cpu"))


def torch_compiles(on_gpu: bool) -> bool:
    """Whether torch.compile works: it needs Triton for a GPU and g++ for a CPU."""
    return installed("torch") and (installed("triton") if on_gpu else bool(shutil.which("g++")))


def torch_compile(function: Any, **kwargs: Any) -> Any:
    """`torch.compile` for one shape, with empty caches.

    Without the reset it would compile for any shape from the second one on, and after eight shapes
    silently run uncompiled code.
    """
    import torch

    torch.compiler.reset()
    return torch.compile(function, dynamic=False, **kwargs)


def torch_ops(step: Any) -> tuple[int, int]:
    """The ops of torch that a step dispatches, and how many are views or read a scalar."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Ops(TorchDispatchMode):
        def __torch_dispatch__(self, op: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
            ops.append(op)
            return op(*args, **(kwargs or {}))

    step()  # makes the state of the optimizer
    ops: list[Any] = []
    with Ops():
        step()
    ops = [op for op in ops if op.namespace == "aten"]
    return len(ops), sum(op.is_view or "_local_scalar" in op.name() for op in ops)


def jax_runs(on_gpu: bool) -> bool:
    """Whether jax supports the device, without importing it."""
    plugins = ("jax_cuda12_plugin", "jax_cuda13_plugin")
    return installed("jax") and (not on_gpu or any(map(installed, plugins)))


def torch_weights(values: dict[str, Any]) -> dict[str, Any]:
    """Values of a model's Variables by name, with torch's names and layout."""
    import torch

    return {
        name.replace("kernel", "weight"): torch.from_numpy(v.T if name.endswith("kernel") else v)
        for name, v in values.items()
    }


def by_hand_in(on_gpu: bool) -> tuple[str, Any]:
    """The name of the hand-written contestant, and its array library."""
    library = "CuPy" if on_gpu else "NumPy"
    return f"{library} by hand", importlib.import_module(library.lower())


def copy_of(on_gpu: bool, array: Any) -> dict[str, Run]:
    """A contestant that copies an array: the yardstick for bytes per second."""
    _, lib = by_hand_in(on_gpu)
    source = lib.asarray(array)
    target = lib.empty_like(source)
    return {"copy": lambda: lib.copyto(target, source)}


def select(contestants: dict[str, Any], only: list[str] | None) -> dict[str, Any]:
    """gpugrad, the copy, and the contestants of --only; without that option all."""
    return {k: v for k, v in contestants.items() if not only or k in ("gpugrad", "copy", *only)}


def agree(contestants: dict[str, Run], rtol: float, atol: float = 0.0) -> None:
    """Record a failure of each contestant whose results differ from gpugrad's, as samples show."""
    import numpy as np

    ours: list[Any] = []
    with record_failure("gpugrad"):
        ours = [_host(a) for a in contestants["gpugrad"]()]
    for name, run in contestants.items():
        with record_failure(name):
            for a, b in zip(ours, map(_host, run()), strict=True):
                np.testing.assert_allclose(a, b, rtol, atol, err_msg=f"gpugrad and {name} differ")


SAMPLE = 1 << 20
"""The most elements of an array to compare: on the host, all of them took longer than the race."""


def _host(a: Any) -> Any:
    """Convert an array of torch, CuPy, jax or gpugrad, or a sample of it, to float64 of NumPy."""
    import numpy as np

    a = a.detach() if hasattr(a, "detach") else a
    size = math.prod(getattr(a, "shape", ()))
    if size > SAMPLE:  # an odd step meets all columns
        a = a.reshape((-1,))[:: size // SAMPLE | 1]
    if hasattr(a, "detach"):  # torch does not export bfloat16 to NumPy
        return a.double().cpu().numpy()
    array = a.get() if hasattr(a, "get") else a.numpy() if hasattr(a, "numpy") else a
    return np.asarray(array).astype(np.float64)


# ---- failures ---------------------------------------------------------------------------

failures: list[str] = []
"""Contestants that failed, with the error; the others continue."""


@contextlib.contextmanager
def record_failure(name: str) -> Iterator[None]:
    """Print and record an exception instead of ending the bench, so that other figures remain."""
    try:
        yield
    except Exception as error:
        traceback.print_exc()
        traceback.clear_frames(error.__traceback__)  # they hold its arrays
        failures.append(f"{name}: {type(error).__name__}")
        _free_memory()
        print(f"  {name} FAILED: {type(error).__name__}", flush=True)


def _free_memory() -> None:
    """Give the memory of a failed contestant to the others."""
    gc.collect()
    with contextlib.suppress(Exception):  # a broken context
        if "cupy" in sys.modules:
            sys.modules["cupy"].get_default_memory_pool().free_all_blocks()
        if "torch" in sys.modules:
            sys.modules["torch"].cuda.empty_cache()


def with_peers(own: Iterable[Any], torch: Any, jax: Any, on_gpu: bool) -> list[Any]:
    """Makers of contestants: `own`, and those of installed peers."""
    makers = [*own, *([torch] if installed("torch") else [])]
    return [*makers, *([jax] if jax_runs(on_gpu) else [])]


def run_makers(makers: Iterable[Callable[..., dict[str, Any]]], *args: Any) -> dict[str, Any]:
    """The contestants that the makers return, by name, without makers that fail."""
    contestants: dict[str, Any] = {}
    for make in makers:
        with record_failure(make.__name__):
            contestants |= make(*args)
    return contestants


MISSED = 8
"""Exit code of a bench whose contestants all ran, but where gpugrad missed a target."""


def status(good: bool = True) -> int:
    """The exit code of a bench: 1 if a contestant failed, 0 if it is good, else `MISSED`."""
    if failures:
        print(f"\nFAILED: {', '.join(failures)}")
        return 1
    return 0 if good else MISSED


# ---- races ------------------------------------------------------------------------------

END = time.monotonic() + float(os.environ.get("GPUGRAD_BENCH_SECONDS", "inf"))
"""When a bench ends its races early, after three rounds, so that its figures are not lost."""


def patience() -> float | None:
    """Seconds to wait for a contestant: half of those that are left, for the others need some."""
    return None if math.isinf(END) else max(20.0, (END - time.monotonic()) / 2)


def is_late(rounds: int) -> bool:
    """Whether the rounds so far must be enough."""
    return rounds >= 3 and time.monotonic() > END


def race(
    contestants: dict[str, Run], rounds: int = 30, inner: int = 1, wait: Run | None = None
) -> dict[str, float]:
    """Median seconds of a call per contestant, from interleaved rounds of `inner` calls.

    `wait` waits for a GPU; it runs before the clock starts and before it stops. Waiting for the
    device waits for all libraries of a process, because they share its context. A contestant that
    fails in the warm-up does not take part.
    """
    times: dict[str, list[float]] = {}
    for name, run in contestants.items():  # warm up: imports, caches, compilation
        with record_failure(name):
            for _ in range(3):
                run()
            if wait:
                wait()
            times[name] = []
    order, shuffle = list(times), random.Random(0)
    for k in range(rounds):
        if is_late(k):
            break
        shuffle.shuffle(order)
        for name in order:
            times[name].append(_timed(contestants[name], inner, wait))
    return {name: statistics.median(t) for name, t in times.items()}


def _timed(run: Run, inner: int, wait: Run | None) -> float:
    """Seconds of one of `inner` calls."""
    if wait:
        wait()
    start = time.perf_counter()
    for _ in range(inner):
        run()
    if wait:
        wait()
    return (time.perf_counter() - start) / inner


WAKING = 0.02
"""Seconds of untimed calls before each timed one."""


def race_apart(
    makers: dict[str, Maker], rounds: int = 30, inner: int = 1, wait: Run | None = None
) -> dict[str, float]:
    """`race` with each contestant in its own process.

    A library's idle threads spin on the cores that the next contestant needs: in one process,
    torch's step took five times as long beside ours as alone. So before each turn there is a
    pause, in which those threads fall asleep. Then untimed calls wake the contestant's threads and
    fill the caches: a core that has slept takes some milliseconds to reach its speed.
    """
    racing = start_all(makers, inner, wait)
    return in_turns({name: r.pipe for name, r in racing.items()}, rounds)


class Contestant(NamedTuple):
    """A contestant in its own process: seconds of the first call, results of the first ten."""

    pipe: Any
    first: float
    results: list[float]


def start(make: Maker, inner: int = 1, wait: Run | None = None) -> Contestant:
    """Start a process that makes a contestant and calls it ten times; calls return numbers.

    Processes start one after the other, because compilation takes all cores.
    """
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    process = context.Process(target=_take_turns, args=(make, inner, wait, far), daemon=True)
    process.start()
    far.close()
    try:
        return Contestant(near, *_receive(near))
    except TimeoutError:
        process.kill()
        raise


def _receive(pipe: Any) -> Any:
    """What a contestant sends; one that hangs does not hold up the others."""
    if not pipe.poll(limit := patience()):
        raise TimeoutError(f"no answer in {limit:.0f} s")
    return pipe.recv()


def start_all(
    makers: dict[str, Maker], inner: int = 1, wait: Run | None = None
) -> dict[str, Contestant]:
    """Start all contestants; those that fail are left out."""
    started: dict[str, Contestant] = {}
    for name, make in makers.items():
        with record_failure(name):  # EOFError: its process has ended and printed why
            started[name] = start(make, inner, wait)
    return started


def _take_turns(make: Maker, inner: int, wait: Run | None, pipe: Any) -> None:
    run = make()
    start = time.perf_counter()
    results = [float(run())]
    first = time.perf_counter() - start
    pipe.send((first, results + [float(run()) for _ in range(9)]))
    while True:
        try:
            pipe.recv()
        except EOFError:  # the race is over
            return
        start = time.perf_counter()
        while time.perf_counter() < start + WAKING:
            run()
        pipe.send(_timed(run, inner, wait))


def in_turns(pipes: dict[str, Any], rounds: int) -> dict[str, float]:
    """Median seconds of a call of contestants that have started."""
    times: dict[str, list[float]] = {name: [] for name in pipes}
    shuffle = random.Random(0)
    for k in range(rounds):
        if is_late(k):
            break
        order = list(times)
        shuffle.shuffle(order)
        for name in order:
            time.sleep(0.05)
            with record_failure(name):
                pipes[name].send(None)
                times[name].append(_receive(pipes[name]))
                continue
            del times[name]  # the contestant failed
    return {name: statistics.median(t) for name, t in times.items()}


# ---- output -----------------------------------------------------------------------------


def speed_of_copy(medians: dict[str, float], gigabytes: float) -> float | None:
    """Pop the copy from the medians and return its gigabytes per second; None if it failed."""
    seconds = medians.pop("copy", None)
    return gigabytes / seconds if seconds else None


def table(
    title: str,
    medians: dict[str, float],
    reach: dict[str, float] | None = None,
    work: tuple[float, str] | None = None,
    limit: float | None = None,
    part: float | None = None,
    most: float | None = None,
    **more: Any,
) -> bool:
    """Print medians, our ratio to each, and the targets; return True if no target was missed.

    A line of JSON with the figures and `more` is added to the file that GPUGRAD_BENCH_FIGURES or
    --json names.

    Args:
        title: title of the table.
        medians: seconds of a call, by contestant.
        reach: targets by peer: the largest ratio of our time to the peer's.
        work: amount of work in a call and its unit, as (2.0, "GB"), for a column per second.
        limit: work per second of a plain copy, for a column with the part of it.
        part: target: the least part of `limit`.
        most: target: the most seconds.
        more: further JSON values.
    """
    ours = medians.get("gpugrad")
    targets = _check_targets(ours, medians, reach or {}, work, limit, part, most)
    if path := os.environ.get("GPUGRAD_BENCH_FIGURES"):
        facts = {"work": work, "limit": limit, "reach": targets}
        facts = {name: value for name, value in facts.items() if value} | more
        with open(path, "a") as figures:
            figures.write(json.dumps({"title": title, "seconds": medians, **facts}) + "\n")
    print(f"\n{title}")
    for name, t in sorted(medians.items(), key=lambda item: item[1]):
        line = f"  {name:28s} {t * 1e6:12.1f} us"
        if work:
            line += f" {work[0] / t:9.3g} {work[1]}/s"
        if work and limit:
            line += f" {work[0] / t / limit:5.2f} of a copy"
        if ours and name != "gpugrad":
            line += f"   gpugrad is {ours / t:5.2f} of it"
        print(line, flush=True)
    for what, good in targets.items():
        print(f"  {what}: {'not known' if good is None else 'reached' if good else 'MISSED'}")
    return False not in targets.values()


def _check_targets(
    ours: float | None, medians: dict[str, float], reach: dict[str, float],
    work: tuple[float, str] | None, limit: float | None, part: float | None, most: float | None,
) -> dict[str, bool | None]:  # fmt: skip
    """By the text of each target: whether it was reached; None if it was not measured."""
    bounds: dict[str, float | None] = {}
    for name, ratio in reach.items():
        theirs = medians.get(name)
        bounds[f"at most {ratio:.2f} of {name}"] = theirs and ratio * theirs
    if part is not None:
        least = work[0] / limit / part if work and limit else None
        bounds[f"at least {part:.2f} of a copy"] = least
    if most is not None:
        bounds[f"at most {most * 1e3:g} ms"] = most
    return {what: ours <= b if ours and b else None for what, b in bounds.items()}
