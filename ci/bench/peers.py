"""What the benches share: options, peers that are installed, interleaved medians, tables, JSON.

These machines are noisy: a single time says little. Every contestant runs once a round, in a
new order each round, and what is compared are the medians over all rounds. A GPU is waited for
before and after the calls that are timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

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
    parser.add_argument("--json", metavar="PATH", help="where to write the figures as well")
    return parser


def settled(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options, put where libraries look for them: to be called before any is imported."""
    args = parser.parse_args()
    if args.threads:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = str(args.threads)
    if args.device:
        os.environ["GPUGRAD_DEVICE"] = args.device
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leave memory to the others
    return args


# ---- peers ------------------------------------------------------------------------------


def installed(name: str) -> bool:
    """Whether a peer can be imported."""
    return importlib.util.find_spec(name) is not None


def torch_compiles(on_gpu: bool) -> bool:
    """Whether torch.compile can: it writes Triton for a GPU and C++ for a CPU."""
    return installed("torch") and (installed("triton") if on_gpu else bool(shutil.which("g++")))


def torch_weights(values: dict[str, Any]) -> dict[str, Any]:
    """Values of a model's Variables by name, as the same model in torch names and lays them out."""
    import torch

    return {
        name.replace("kernel", "weight"): torch.from_numpy(v.T if name.endswith("kernel") else v)
        for name, v in values.items()
    }


def chosen(contestants: dict[str, Any], only: list[str] | None) -> dict[str, Any]:
    """Ours and those of --only; all without it."""
    if unknown := set(only or ()) - set(contestants):
        raise SystemExit(f"no contestants {sorted(unknown)}; there are {list(contestants)}")
    return {k: v for k, v in contestants.items() if not only or k in ("gpugrad", *only)}


# ---- races ------------------------------------------------------------------------------


def race(
    contestants: dict[str, Run], rounds: int = 30, inner: int = 1, wait: Run | None = None
) -> dict[str, float]:
    """Median seconds of one call, a contestant, from interleaved rounds of `inner` calls.

    `wait` waits for a GPU: it is called before the clock starts and before it stops. Waiting for
    the device waits for all libraries of a process: they share its context.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants)
    shuffle = random.Random(0)
    for run in contestants.values():  # warm up: imports, caches, compilation
        for _ in range(3):
            run()
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
    pipes, times, shuffle = {}, {name: [] for name in makers}, random.Random(0)
    for name, make in makers.items():
        pipes[name] = _started(_take_turns, make, inner, wait)
        pipes[name].recv()  # one after the other: compilation takes all cores
    order = list(makers)
    for _ in range(rounds):
        shuffle.shuffle(order)
        for name in order:
            time.sleep(0.05)
            pipes[name].send(None)
            times[name].append(pipes[name].recv())
    return {name: statistics.median(t) for name, t in times.items()}


def _started(work: Callable[..., None], *args: Any) -> Any:
    """The near end of a pipe to a new process that does `work`, given the far end last."""
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    context.Process(target=work, args=(*args, far), daemon=True).start()
    far.close()
    return near


def _take_turns(make: Maker, inner: int, wait: Run | None, pipe: Any) -> None:
    run = make()
    for _ in range(10):
        run()
    pipe.send(None)
    while True:
        try:
            pipe.recv()
        except EOFError:  # the race is over
            return
        run()
        pipe.send(_timed(run, inner, wait))


# ---- first calls ------------------------------------------------------------------------

_CACHES = ("CUPY_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Where compiled kernels are kept between processes."""


def first_calls(
    makers: dict[str, Maker], steps: int
) -> tuple[dict[str, dict[str, float]], dict[str, list[float]]]:
    """Seconds of the first call, "cold" and "warm", and the losses of `steps` calls, a contestant.

    The first call traces and compiles. It is timed in a new process whose caches of kernels are
    empty, and in another that finds there what the first one compiled.
    """
    seconds: dict[str, dict[str, float]] = {"cold": {}, "warm": {}}
    losses = {}
    for name, make in makers.items():
        with tempfile.TemporaryDirectory() as folder:
            for found in seconds.values():
                found[name], losses[name] = _started(_begin, make, steps, folder).recv()
    return seconds, losses


def _begin(make: Maker, steps: int, folder: str, pipe: Any) -> None:
    os.environ.update({name: os.path.join(folder, name) for name in _CACHES})
    run = make()
    start = time.perf_counter()
    losses = [float(run())]
    first = time.perf_counter() - start
    pipe.send((first, losses + [float(run()) for _ in range(steps - 1)]))


# ---- what is told -----------------------------------------------------------------------


def table(
    title: str,
    medians: dict[str, float],
    reach: dict[str, float] | None = None,
    work: tuple[float, str] | None = None,
) -> bool:
    """Print medians and our ratio to each; True if every ratio in `reach` is reached.

    `work` is the amount that a call does and its unit, as (2.0, "GB"): a column has it by second.
    The medians are added to the file that GPUGRAD_BENCH_FIGURES names, as a line of JSON.
    """
    if path := os.environ.get("GPUGRAD_BENCH_FIGURES"):
        with open(path, "a") as figures:
            figures.write(json.dumps({"title": title, "seconds": medians}) + "\n")
    ours, good = medians["gpugrad"], True
    print(f"\n{title}")
    for name, t in sorted(medians.items(), key=lambda item: item[1]):
        line = f"  {name:28s} {t * 1e6:12.1f} us"
        if work:
            line += f" {work[0] / t:9.3g} {work[1]}/s"
        if name != "gpugrad":
            line += f"   gpugrad is {ours / t:5.2f} of it"
            if reach and name in reach:
                reached = ours <= reach[name] * t
                good = good and reached
                line += f" (reach: {reach[name]:.2f}{'' if reached else ' MISSED'})"
        print(line, flush=True)
    return good


_PEERS = ("autograd", "cupy", "jax", "numpy", "tensorflow", "torch")


def report(bench: str, tables: dict[str, dict[str, float]], path: str | None, **more: Any) -> None:
    """Write as JSON, if there is a path: seconds by table and contestant, and our ratio to each."""
    if path is None:
        return
    import gpugrad as gg

    homes = metadata.packages_distributions()
    ratios = {
        title: {name: seconds["gpugrad"] / t for name, t in seconds.items() if name != "gpugrad"}
        for title, seconds in tables.items()
        if "gpugrad" in seconds
    }
    found = {
        "bench": bench, "arguments": sys.argv[1:], "device": str(gg.device()),
        "python": platform.python_version(), "gpugrad": gg.__version__,
        "versions": {name: metadata.version(homes[name][0]) for name in _PEERS if name in homes},
        "seconds": tables, "ratios": ratios, **more,
    }  # fmt: skip
    with open(path, "w") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
