"""What the benches share: options, peers that are installed, interleaved medians, tables, JSON.

These machines are noisy: a single time says little. Every contestant runs once a round, in a
new order each round, and what is compared are the medians over all rounds. A GPU is waited for
before and after the calls that are timed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import multiprocessing
import os
import random
import shutil
import statistics
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Run = Callable[[], Any]
Maker = Callable[[], Run]

# ---- options ----------------------------------------------------------------------------


def options(doc: str, rounds: int, threads: int | None = None) -> argparse.ArgumentParser:
    """A parser of what every bench takes; `settled` reads it."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--device", help="cpu or cuda (a GPU, where there is one)")
    parser.add_argument(
        "--threads", type=int, default=threads, help=f"of all, on a CPU ({threads or 'their own'})"
    )
    parser.add_argument("--rounds", type=int, default=rounds, help=f"for the medians ({rounds})")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contestants to run (all)")
    parser.add_argument("--json", metavar="PATH", help="where to add the figures, a line a table")
    return parser


def settled(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options, put where libraries look for them: to be called before any is imported."""
    args = parser.parse_args()
    if args.threads:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = str(args.threads)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # NumPy's BLAS is to take the
        os.environ.pop(name, None)  # processor for what it is, as those of the peers do
    if args.device:
        os.environ["GPUGRAD_DEVICE"] = args.device
    if args.json:
        os.environ["GPUGRAD_BENCH_FIGURES"] = args.json
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leave memory to the others
    if args.device:  # or jax would run on the CPU where it does not find the GPU
        os.environ.setdefault("JAX_PLATFORMS", "cpu" if args.device == "cpu" else "cuda")
    return args


# ---- peers ------------------------------------------------------------------------------


def installed(name: str) -> bool:
    """Whether a peer can be imported."""
    return importlib.util.find_spec(name) is not None


def torch_compiles(on_gpu: bool) -> bool:
    """Whether torch.compile can: it writes Triton for a GPU and C++ for a CPU."""
    return installed("torch") and (installed("triton") if on_gpu else bool(shutil.which("g++")))


def compiled(function: Any, **given: Any) -> Any:
    """`torch.compile` for one shape, as if it were the first thing that is compiled.

    What it keeps for a line of code is forgotten: from the second shape on it would compile for any
    shape, and after eight give up and silently run what is not compiled.
    """
    import torch

    torch.compiler.reset()
    return torch.compile(function, dynamic=False, **given)


def jax_runs(on_gpu: bool) -> bool:
    """Whether jax has what it needs for the device; asked without importing it."""
    plugins = ("jax_cuda12_plugin", "jax_cuda13_plugin")
    return installed("jax") and (not on_gpu or any(map(installed, plugins)))


def torch_weights(values: dict[str, Any]) -> dict[str, Any]:
    """Values of a model's Variables by name, as the same model in torch names and lays them out."""
    import torch

    return {
        name.replace("kernel", "weight"): torch.from_numpy(v.T if name.endswith("kernel") else v)
        for name, v in values.items()
    }


def by_hand_in(on_gpu: bool) -> tuple[str, Any]:
    """What is written by hand is called, and the library that it is written in."""
    library = "CuPy" if on_gpu else "NumPy"
    return f"{library} by hand", importlib.import_module(library.lower())


def copy_of(on_gpu: bool, array: Any) -> dict[str, Run]:
    """A copy of an array from the host: the yardstick for bytes per second."""
    _, lib = by_hand_in(on_gpu)
    source = lib.asarray(array)
    target = lib.empty_like(source)
    return {"copy": lambda: lib.copyto(target, source)}


def chosen(contestants: dict[str, Any], only: list[str] | None) -> dict[str, Any]:
    """Ours, the copy that it is held against, and those of --only; all without it."""
    return {k: v for k, v in contestants.items() if not only or k in ("gpugrad", "copy", *only)}


def agree(contestants: dict[str, Run], rtol: float, atol: float = 0.0) -> None:
    """Note, as a failure, each whose list of arrays is not what ours is."""
    import numpy as np

    ours: list[Any] = []
    with noted("gpugrad"):
        ours = [_host(a) for a in contestants["gpugrad"]()]
    for name, run in contestants.items():
        with noted(name):
            for a, b in zip(ours, map(_host, run()), strict=True):
                np.testing.assert_allclose(a, b, rtol, atol, err_msg=f"gpugrad and {name} differ")


def _host(a: Any) -> Any:
    """A float64 NumPy array of a torch, CuPy, jax or our own."""
    import numpy as np

    if hasattr(a, "detach"):  # NumPy has no bfloat16, so torch does not export it
        return a.detach().double().cpu().numpy()
    found = a.get() if hasattr(a, "get") else a.numpy() if hasattr(a, "numpy") else a
    return np.asarray(found).astype(np.float64)


# ---- failures ---------------------------------------------------------------------------

failures: list[str] = []
"""Who has failed at what; the others go on."""


@contextlib.contextmanager
def noted(name: str) -> Iterator[None]:
    """Print what goes wrong and note it, instead of ending the bench: all figures count."""
    try:
        yield
    except Exception as error:
        traceback.print_exc()
        failures.append(f"{name}: {type(error).__name__}")
        print(f"  {name} FAILED: {type(error).__name__}", flush=True)


def with_peers(own: Iterable[Any], torch: Any, jax: Any, on_gpu: bool) -> list[Any]:
    """Makers of contestants: our own, and those of peers that are installed."""
    found = [*own, *([torch] if installed("torch") else [])]
    return [*found, *([jax] if jax_runs(on_gpu) else [])]


def made(makers: Iterable[Callable[..., dict[str, Any]]], *given: Any) -> dict[str, Any]:
    """What the makers make, by name, but for those that fail."""
    found: dict[str, Any] = {}
    for make in makers:
        with noted(make.__name__):
            found |= make(*given)
    return found


MISSED = 8
"""What a bench exits with where all have run and we were slower than was to be reached."""


def status(good: bool = True) -> int:
    """What a bench exits with: 0 if it is good, 1 if somebody has failed, else `MISSED`."""
    if failures:
        print(f"\nFAILED: {', '.join(failures)}")
        return 1
    return 0 if good else MISSED


# ---- races ------------------------------------------------------------------------------


def race(
    contestants: dict[str, Run], rounds: int = 30, inner: int = 1, wait: Run | None = None
) -> dict[str, float]:
    """Median seconds of one call, a contestant, from interleaved rounds of `inner` calls.

    `wait` waits for a GPU: it is called before the clock starts and before it stops. Waiting for
    the device waits for all libraries of a process: they share its context. Who fails when it
    warms up does not take part.
    """
    times: dict[str, list[float]] = {}
    for name, run in contestants.items():  # warm up: imports, caches, compilation
        with noted(name):
            for _ in range(3):
                run()
            if wait:
                wait()
            times[name] = []
    order, shuffle = list(times), random.Random(0)
    for _ in range(rounds):
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


def race_apart(
    makers: dict[str, Maker], rounds: int = 30, inner: int = 1, wait: Run | None = None
) -> dict[str, float]:
    """What `race` gives, of contestants that are made in processes of their own.

    Threads of a library that wait for work spin on the cores that the next contestant needs:
    in one process torch's step took five times as long beside ours as alone. So they take turns
    after a pause, in which those threads fall asleep, and a call that is not timed, which wakes
    those of the contestant and fills the caches.
    """
    racing = all_begun(makers, inner, wait)
    return in_turns({name: r.pipe for name, r in racing.items()}, rounds)


class Begun(NamedTuple):
    """A contestant in a process of its own: seconds of its first call, results of the first ten."""

    pipe: Any
    first: float
    results: list[float]


def begun(make: Maker, inner: int = 1, wait: Run | None = None) -> Begun:
    """Start a process that makes a contestant, whose calls give numbers, and calls it ten times.

    One is begun after the other: compilation takes all cores.
    """
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    context.Process(target=_take_turns, args=(make, inner, wait, far), daemon=True).start()
    far.close()
    return Begun(near, *near.recv())


def all_begun(
    makers: dict[str, Maker], inner: int = 1, wait: Run | None = None
) -> dict[str, Begun]:
    """All of them, but for those that fail."""
    found: dict[str, Begun] = {}
    for name, make in makers.items():
        with noted(name):  # EOFError: its process has ended, and said why
            found[name] = begun(make, inner, wait)
    return found


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
        run()
        pipe.send(_timed(run, inner, wait))


def in_turns(pipes: dict[str, Any], rounds: int) -> dict[str, float]:
    """Median seconds of one call of those that have begun."""
    times: dict[str, list[float]] = {name: [] for name in pipes}
    shuffle = random.Random(0)
    for _ in range(rounds):
        order = list(times)
        shuffle.shuffle(order)
        for name in order:
            time.sleep(0.05)
            with noted(name):
                pipes[name].send(None)
                times[name].append(pipes[name].recv())
                continue
            del times[name]  # it has failed
    return {name: statistics.median(t) for name, t in times.items()}


# ---- what is told -----------------------------------------------------------------------


def speed_of_copy(medians: dict[str, float], gigabytes: float) -> float | None:
    """Gigabytes a second of the copy, which is taken out of the medians; None if it has failed."""
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
    """Print medians, our ratio to each, and what was to be reached; True if nothing was missed.

    They are added, with `more`, to the file that GPUGRAD_BENCH_FIGURES or --json names, as a line
    of JSON.

    Args:
        title: of the table.
        medians: seconds of a call, by contestant.
        reach: at most what part of a peer's time ours is to be.
        work: the amount that a call does and its unit, as (2.0, "GB"): a column has it by second.
        limit: what a plain copy reached of that by second: another column has the part of it.
        part: of `limit`, at least what we are to reach.
        most: seconds that we may take.
        more: JSON.
    """
    ours = medians.get("gpugrad")
    said = _reached(ours, medians, reach or {}, work, limit, part, most)
    if path := os.environ.get("GPUGRAD_BENCH_FIGURES"):
        about = {"work": work, "limit": limit, "reach": said}
        kept = {name: value for name, value in about.items() if value} | more
        with open(path, "a") as figures:
            figures.write(json.dumps({"title": title, "seconds": medians, **kept}) + "\n")
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
    for what, good in said.items():
        print(f"  {what}: {'not known' if good is None else 'reached' if good else 'MISSED'}")
    return False not in said.values()


def _reached(
    ours: float | None, medians: dict[str, float], reach: dict[str, float],
    work: tuple[float, str] | None, limit: float | None, part: float | None, most: float | None,
) -> dict[str, bool | None]:  # fmt: skip
    """Whether each thing was reached that was to be, in words; None where it was not measured."""
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
