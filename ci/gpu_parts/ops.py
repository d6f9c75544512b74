"""Every op on cuda:0 against the CPU: in its own dtypes, in a gg.function, and in narrow floats.

    python ci/gpu_parts/ops.py RECORDS [--processes 12] [--seconds 210] [--ops NAME ...]

A process takes every N-th pair of phase and op and records its beginning and its end. One that
crashes, hangs or breaks its CUDA context is started anew and goes on behind the pair that it was
at. A later run with the same records continues where this one stopped.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from typing import Any

import numpy as np
import records

PHASES = ("native", "function", "float32", "bfloat16", "float16")
TOLERANCES = {
    "float64": (1e-8, 1e-10), "complex128": (1e-8, 1e-10), "float32": (2e-4, 2e-5),
    "complex64": (2e-4, 2e-5), "float16": (8e-3, 4e-3), "bfloat16": (6e-2, 3e-2),
}  # fmt: skip
SLOW = 25
"""Seconds after which Python interrupts an op."""
HUNG = 60.0
"""Seconds after which a process is killed: an op that Python cannot interrupt waits for CUDA."""
BROKEN = 3
"""The exit code of a process whose CUDA context no longer works."""


class SlowError(Exception):
    """An op takes longer than SLOW seconds."""


# ---- one process -------------------------------------------------------------------------


def work(path: str, k: int, n: int, seconds: float, only: list[str]) -> None:
    """Check every n-th pair that nobody has begun."""
    import gpugrad as gg

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    signal.signal(signal.SIGALRM, _interrupt)
    start, begun = time.monotonic(), records.last_states(path)
    pairs = [(name, phase) for phase in PHASES for name in gg.OPS if not only or name in only]
    for j, (name, phase) in enumerate(pairs):
        op = gg.OPS[name]
        skipped = "device" in op.params or (phase[-2:] in ("32", "16") and "f" not in op.kinds)
        if j % n != k or (name, phase) in begun or skipped:
            continue
        if time.monotonic() - start > seconds:
            return
        about = {"op": name, "phase": phase, "worker": k}
        records.write(path, "ops", **about, state="begun")
        try:
            signal.alarm(SLOW)
            samples, why = check(op, phase)
            state = "failed" if why else "passed"
        except SlowError:
            samples, why, state = 0, f"over {SLOW} s", "slow"
        except Exception as error:
            samples, why, state = 0, _describe(error), "failed"
        finally:
            signal.alarm(0)
        if state != "passed" and not _is_alive():
            records.write(path, "ops", **about, state="crashed", why=why)
            os._exit(BROKEN)
        reason = {"why": why} if why else {}
        records.write(path, "ops", **about, state=state, samples=samples, **reason)


def _interrupt(*_: Any) -> None:
    raise SlowError


def _is_alive() -> bool:
    import cupy

    try:
        cupy.cuda.Device().synchronize()
    except Exception:
        return False
    return True


def _describe(error: BaseException) -> str:
    error = error.__cause__ or error
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    where = " > ".join(f"{f.filename.rpartition('/')[2]}:{f.lineno}" for f in frames)
    return f"{type(error).__name__}: {str(error)[:300]} @ {where}"


def check(op: Any, phase: str) -> tuple[int, str]:
    """The number of samples that were compared, and what differs or fails first."""
    from gpugrad.testing.checks.subject import Subject

    dtype = None if phase in PHASES[:2] else phase
    subject = Subject(op, 0, 1, "cuda:0")
    samples = subject.samples if dtype is None else subject.real_samples[:2]
    compared = 0
    for sample in samples[:1] if phase == "function" else samples:
        try:
            here = sample if dtype is None else sample.astype(_dtype(dtype))
            runs = list(_runs(here, phase))
        except SlowError:
            raise
        except Exception:  # the CPU refuses it too
            continue
        import gpugrad as gg

        there = here.replace(here.leaves, device=gg.device("cuda:0"))
        for what, desired, run in runs:
            try:
                results = run(there)
                difference = compare(results, desired) if op.ref is not None else ""
            except gg.errors.DeviceError as error:
                if "runs on the CPU only" in str(error):
                    return compared, ""
                raise
            if difference:
                return compared, f"{here.title}: {what}: {difference}"
        compared += 1
    return compared, ""


def _dtype(name: str) -> Any:
    from gpugrad.core.backend import BFLOAT16

    return BFLOAT16 if name == "bfloat16" else np.dtype(name).type


def _runs(here: Any, phase: str) -> Any:
    """(what, the CPU's result, a function of the sample on the device), one after the other."""
    if phase == "function":
        if here.inexact_leaves:
            yield "function", _step(here)(*_sources(here)), _four_calls
        return
    results = here.results()
    yield "forward", results, lambda there: there.results()
    if not here.op.differentiable or not here.inexact_leaves or not _inexact(results):
        return
    for persistent in (False, True) if phase == "native" else (False,):
        run = _gradients(persistent)
        yield f"gradient{' on an outer tape' * persistent}", run(here), run


def _sources(sample: Any) -> list[Any]:
    return [sample.put(sample.leaves[i]) for i in sample.inexact_leaves]


def _inexact(results: Any) -> list[Any]:
    from gpugrad.core.backend import is_inexact

    return [y for y in results if is_inexact(y.dtype)]


def _with_sources(sample: Any, xs: Any) -> list[Any]:
    leaves = [sample.put(a) for a in sample.leaves]
    for i, x in zip(sample.inexact_leaves, xs, strict=True):
        leaves[i] = x
    return sample.call(leaves)


def _gradients(persistent: bool) -> Any:
    import gpugrad as gg

    def run(sample: Any) -> list[Any]:
        xs = _sources(sample)
        with gg.GradientTape(persistent=persistent) as tape:
            tape.watch(xs)
            ys = _inexact(_with_sources(sample, xs))
            if persistent:
                return tape.gradient(ys, xs, None, "zero")
        return tape.gradient(ys, xs, None, "zero")

    return run


def _step(sample: Any) -> Any:
    """A function of the sample's float arrays: the results, and their gradients."""
    import gpugrad as gg

    def step(*xs: Any) -> list[Any]:
        with gg.GradientTape() as tape:
            tape.watch(xs)
            ys = _with_sources(sample, xs)
        floats = _inexact(ys)
        if not floats or not sample.op.differentiable:
            return list(ys)
        return [*ys, *tape.gradient(floats, list(xs), None, "zero")]

    return step


def _four_calls(sample: Any) -> list[Any]:
    """The results of the fourth call: traced, captured, and launched twice."""
    import gpugrad as gg

    step = gg.function(_step(sample))
    for _ in range(3):
        step(*_sources(sample))
    return list(step(*_sources(sample)))


def compare(actual: Any, desired: Any) -> str:
    """What differs between two lists of results; an empty string if nothing does."""
    from gpugrad.testing.close import as_numpy

    pairs = [(as_numpy(a), as_numpy(d)) for a, d in zip(actual, desired, strict=True)]
    for j, (a, d) in enumerate(pairs):
        if (a.dtype, a.shape) != (d.dtype, d.shape):
            return f"result {j} is {a.dtype} {a.shape} for {d.dtype} {d.shape}"
        if d.dtype.kind not in "fcV":
            if not np.array_equal(a, d):
                return f"result {j} is {a.ravel()[:4]} for {d.ravel()[:4]}"
            continue
        rtol, atol = TOLERANCES[d.dtype.name]
        wide = np.complex128 if d.dtype.kind == "c" else np.float64
        a, d = a.astype(wide), d.astype(wide)
        if not np.allclose(a, d, rtol=rtol, atol=atol, equal_nan=True):
            worst = np.nanmax(np.abs(a - d))
            return f"result {j} differs by {worst:.2e}: {a.ravel()[:3]} for {d.ravel()[:3]}"
    return ""


# ---- all processes -----------------------------------------------------------------------


class Workers:
    """The processes; each is replaced when it crashes or hangs."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.end = args, time.monotonic() + args.seconds
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, k: int) -> None:
        left = max(1.0, self.end - time.monotonic())
        options = {"processes": self.args.processes, "seconds": left, "worker": k}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        command = [sys.executable, __file__, self.args.records, *words]
        if self.args.ops:
            command += ["--ops", *self.args.ops]
        self.running[k] = subprocess.Popen(command)

    def latest(self) -> dict[int, dict[str, Any]]:
        """The last record of each process."""
        return {r["worker"]: r for r in records.read(self.args.records, "ops")}

    def replace(self, k: int, last: dict[str, Any] | None, state: str, why: str) -> None:
        """Note the pair that a process did not finish, and start another process."""
        if last and last["state"] == "begun":
            pair = {key: last[key] for key in ("op", "phase", "worker")}
            records.write(self.args.records, "ops", **pair, state=state, why=why)
        elif not (last and last["state"] == "crashed"):
            return  # it ended between two ops, or before the first: another would do the same
        if time.monotonic() < self.end:
            self.start(k)

    def watch(self) -> None:
        for k in range(self.args.processes):
            self.start(k)
        since: dict[int, tuple[Any, float]] = {}
        while self.running and time.monotonic() < self.end + SLOW:
            time.sleep(0.5)
            latest, now = self.latest(), time.monotonic()
            for k, process in list(self.running.items()):
                last = latest.get(k)
                if since.get(k, (None, 0.0))[0] != last:
                    since[k] = last, now
                hangs = last and last["state"] == "begun" and now - since[k][1] > self.args.hung
                if process.poll() is None and not hangs:
                    continue
                if hangs:
                    process.kill()
                code = process.wait()
                del self.running[k]
                if hangs:
                    self.replace(k, last, "hung", f"no end after {self.args.hung:.0f} s; killed")
                elif code:
                    self.replace(k, self.latest().get(k), "crashed", f"exit {code}")
        for process in self.running.values():
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records")
    parser.add_argument("--processes", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--seconds", type=float, default=210.0)
    parser.add_argument("--ops", nargs="*", default=[], help="only these (all)")
    parser.add_argument("--hung", type=float, default=HUNG, help="seconds (%(default).0f)")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker is not None:
        work(args.records, args.worker, args.processes, args.seconds, args.ops)
        return 0
    Workers(args).watch()
    states = records.last_states(args.records).values()
    bad = [r for r in states if r["state"] != "passed"]
    for r in sorted(bad, key=lambda r: (r["phase"], r["op"])):
        print(f"[{r['op']}] {r['phase']}: {r['state']}: {r.get('why', '')[:200]}")
    print(f"{len(states)} pairs of op and phase, {len(bad)} of them not passed")
    return 1 if bad or not states else 0


if __name__ == "__main__":
    sys.exit(main())
