"""Runs commands with time limits, and ends them with all their children."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MISSED = 8
"""Exit code of a bench that ran but missed a target."""
UNFINISHED = 9
"""Exit code of a script that had no time for some of its items; the others passed."""
OUTCOMES = {0: "passed", MISSED: "missed", UNFINISHED: "unfinished"}


def run(command: list[str], limit: float, log: Path, **environment: str) -> str:
    """Run a command in its own process group; an outcome as "passed" or "out of time".

    Its output goes to the log; a terminal shows the last line while it runs.
    """
    start, shown = time.monotonic(), ""
    with log.open("ab") as out:
        out.write(f"\n$ {' '.join(command)}\n".encode())
        out.flush()
        # gpugrad may not be installed
        places = filter(None, (str(ROOT), str(ROOT / "ci"), os.environ.get("PYTHONPATH")))
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places), **environment},
            preexec_fn=_interruptible,
        )  # fmt: skip
        try:
            while process.poll() is None:
                if time.monotonic() - start > limit:
                    _end(process)
                    return "out of time"
                time.sleep(max(0.0, min(1.0, limit)))
                lines = log.read_text(errors="replace").strip().splitlines()
                if sys.stdout.isatty() and lines and lines[-1] != shown:
                    shown = lines[-1]
                    print(f"\r\033[K  {time.monotonic() - start:4.0f} s  {shown[:90]}", end="",
                          flush=True)  # fmt: skip
        except BaseException:  # do not leave the command running when ci/gpu ends
            _end(process)
            raise
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    return OUTCOMES.get(process.returncode, "failed")


def _interruptible() -> None:
    """Restore SIGINT, which the processes of a shell's background job ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a command, so that pytest prints its summary, and then kill its group."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # the CUDA driver may hold it
        process.wait(5)


def run_pytest(command: list[str], limit: float, log: Path, **environment: str) -> str:
    """`run` pytest; if it did not pass, the outcome has its counts of tests."""
    before = log.stat().st_size if log.exists() else 0
    outcome = run(command, limit, log, **environment)
    if outcome == "passed":
        return outcome
    text = log.read_bytes()[before:].decode(errors="replace")
    counts = re.findall(r"^.*\d+ (?:passed|failed|error).* in .*$", text, re.MULTILINE)
    if not counts:  # it was killed before it counted
        words = re.findall(r"\b(PASSED|FAILED|ERROR)\b", text)
        counts = [
            ", ".join(f"{n} {word.lower()}" for word, n in collections.Counter(words).items())
        ]
    return f"{outcome}: {counts[-1].strip('= ')}".rstrip(": ")
