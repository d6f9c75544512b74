"""Works through a list of items in processes that may crash, hang or break their CUDA context.

A process takes every N-th item that has no outcome, and records its beginning and its end. If it
does not come back, the item is recorded as crashed or hung, and another process goes on behind it.
A later run with the same records continues where this one stopped.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import records
from process import UNFINISHED

Measure = Callable[[Any], dict[str, Any]]
"""Returns what to record of an item; with the key "why" the item has failed."""

BROKEN = 3
"""The exit code of a process whose CUDA context no longer works."""


class SlowError(BaseException):
    """An item takes longer than --slow seconds; no Exception, as items may catch those."""


def parser(
    doc: str, processes: int, seconds: float, hung: float, slow: int = 25
) -> argparse.ArgumentParser:
    """The options of a script that calls `run`: their defaults.

    Python interrupts an item after `slow` seconds. After `hung` seconds its process is killed, as
    an item that Python cannot interrupt waits for CUDA.
    """
    result = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("records", help="the file to add to")
    result.add_argument("--processes", type=int, default=min(processes, os.cpu_count() or 1))
    result.add_argument("--seconds", type=float, default=seconds, help="of all items (%(default)g)")
    result.add_argument("--hung", type=float, default=hung, help="seconds of an item (%(default)g)")
    result.add_argument("--slow", type=int, default=slow, help="the same for Python")
    result.add_argument("--small", action="store_true", help="few items, small sizes: a rehearsal")
    result.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    return result


def run(args: argparse.Namespace, part: str, items: Iterable[Any], measure: Measure) -> int:
    """Measure all items; the exit code of the script."""
    if args.worker is not None:
        _work(args, part, list(items), measure)
        return 0
    processes, items = _Processes(args, part), list(items)
    processes.watch()
    return max(_report(args.records, part, items), processes.gave_up, key=_SEVERITY.index)


def _report(path: str, part: str, items: list[Any]) -> int:
    states = records.outcomes(path, part)
    wanted = [states.get(records.key(item)) for item in items]
    bad = [r for r in wanted if r and r["state"] != "passed"]
    for r in bad:
        print(f"{_title(r['item'])}: {r['state']}: {r.get('why', '')[:200]}")
    left = f", {wanted.count(None)} not begun" * (None in wanted)
    print(f"{part}: {len(items)} items, {len(bad)} did not pass{left}")
    return 1 if bad else UNFINISHED if None in wanted else 0


def _title(item: Any) -> str:
    return " ".join(f"[{word}]" for word in ([item] if isinstance(item, str) else item))


_SEVERITY = (0, UNFINISHED, 1)


# ---- one process -------------------------------------------------------------------------


def _work(args: argparse.Namespace, part: str, items: list[Any], measure: Measure) -> None:
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _interrupt)
    start, done = time.monotonic(), records.outcomes(args.records, part)
    for item in items[args.worker :: args.processes]:
        if records.key(item) in done:
            continue
        if time.monotonic() - start > 0.85 * args.seconds:
            return
        about = {"item": item, "worker": args.worker}
        records.write(args.records, part, **about, state="begun")
        result = _measured(item, measure, args)
        state = result.pop("state", "failed" if "why" in result else "passed")
        broken = state != "passed" and not _is_alive()
        state = "crashed" if broken else state
        records.write(args.records, part, **about, state=state, **result)
        if broken:
            os._exit(BROKEN)


def _measured(item: Any, measure: Measure, args: argparse.Namespace) -> dict[str, Any]:
    try:
        # the log of a hung process has its frames
        faulthandler.dump_traceback_later(0.9 * args.hung)
        signal.alarm(args.slow)
        return measure(item)
    except SlowError:
        return {"why": f"over {args.slow} s", "state": "slow"}
    except Exception as error:
        return {"why": _describe(error)}
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()


def _interrupt(*_: Any) -> None:
    raise SlowError


def _is_alive() -> bool:
    """Whether the context still works; also frees what a failed item left in CuPy's pools."""
    import cupy

    gc.collect()
    try:
        cupy.cuda.Device().synchronize()
        cupy.get_default_memory_pool().free_all_blocks()
    except Exception:
        return False
    return True


def _describe(error: BaseException) -> str:
    error = error.__cause__ or error
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    where = " > ".join(f"{f.filename.rpartition('/')[2]}:{f.lineno}" for f in frames)
    return f"{type(error).__name__}: {str(error)[:300]} @ {where}"


# ---- all processes -----------------------------------------------------------------------


class _Processes:
    """The processes; each is replaced when it crashes or hangs."""

    def __init__(self, args: argparse.Namespace, part: str) -> None:
        self.args, self.part, self.end = args, part, time.monotonic() + args.seconds
        self.before = len(records.read(args.records, part))
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.gave_up = 0
        alone = args.processes == 1  # others' BLAS threads would take each other's cores
        threads = {} if alone else dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.environment = os.environ | threads
        self.fruitless: dict[int, int] = {}  # exits before the first item, by process

    def start(self, k: int) -> None:
        left = max(1.0, self.end - time.monotonic())
        command = [sys.executable, *sys.argv, "--processes", str(self.args.processes)]
        command += ["--seconds", str(left), "--worker", str(k)]
        self.running[k] = subprocess.Popen(command, env=self.environment)

    def latest(self) -> dict[int, dict[str, Any]]:
        """The last record of each process of this run."""
        return {r["worker"]: r for r in records.read(self.args.records, self.part)[self.before :]}

    def ended(self, k: int, last: dict[str, Any] | None, code: int, hung: bool) -> None:
        """Record the item that a process did not finish, and start another process."""
        unfinished = last and last["state"] == "begun"
        if last and unfinished:
            why = f"no end after {self.args.hung:.0f} s; killed" if hung else _exit(code)
            state = "hung" if hung else "crashed"
            about = {"item": last["item"], "worker": k}
            records.write(self.args.records, self.part, **about, state=state, why=why)
        self.fruitless[k] = 0 if unfinished or code == BROKEN else self.fruitless.get(k, 0) + 1
        if code and time.monotonic() < self.end:
            if self.fruitless[k] < 3:
                self.start(k)
            else:  # the log has its error
                self.gave_up = 1

    def watch(self) -> None:
        """Run until all items have outcomes, or the time is over."""
        for k in range(self.args.processes):
            self.start(k)
        since: dict[int, tuple[Any, float]] = {}  # the last record of a process, and when it came
        while self.running and time.monotonic() < self.end:
            time.sleep(0.2)
            latest, now = self.latest(), time.monotonic()
            for k, process in list(self.running.items()):
                last = latest.get(k)
                if since.get(k, (None, 0.0))[0] != last:
                    since[k] = last, now
                busy = last is not None and last["state"] == "begun"
                hung = busy and now - since[k][1] > self.args.hung
                if process.poll() is None and not hung:
                    continue
                code = _kill(process) if hung else process.wait()
                del self.running[k]
                self.ended(k, last if hung else self.latest().get(k), code, hung)
        for process in self.running.values():
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> int:
    process.kill()
    try:
        return process.wait(5)
    except subprocess.TimeoutExpired:  # the CUDA driver holds it
        return -signal.SIGKILL


def _exit(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    return f"ended by {signal.Signals(-code).name}"
