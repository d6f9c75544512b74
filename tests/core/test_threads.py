"""The threads that share NumPy's work."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from gpugrad.core import threads


@pytest.fixture(autouse=True)
def three_workers(monkeypatch):
    monkeypatch.setattr(threads, "workers", lambda: 3)


def test_results_are_in_the_order_of_the_jobs():
    jobs = [(k, 1) for k in range(50)]
    assert threads.run_parallel(lambda a, b: a - b, jobs) == list(range(-1, 49))
    assert threads.run_parallel(abs, []) == []


def test_jobs_run_on_several_threads_at_once():
    both = threading.Barrier(2, timeout=100)
    threads.run_parallel(both.wait, [(), ()])  # neither returns before the other has started


def test_no_thread_warns_about_infinities():
    jobs = [(k,) for k in range(1, 9)]
    results = threads.run_parallel(lambda x: np.log(np.zeros(100_000)) * x, jobs)
    assert all(np.isneginf(r).all() for r in results)


def test_error_is_raised_after_all_jobs_have_stopped():
    ran = []

    def job(k):
        if k == 3:
            raise ValueError("third")
        ran.append(k)

    with pytest.raises(ValueError, match="third"):
        threads.run_parallel(job, [(k,) for k in range(20)])
    before = list(ran)
    threads.run_parallel(abs, [(1,), (2,)])
    assert ran == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_process_starts_its_own_threads():
    text = (
        "import os, threading, warnings; from gpugrad.core import threads\n"
        "threads.workers = lambda: 2\n"
        "def run(): b = threading.Barrier(2, timeout=100); threads.run_parallel(b.wait, [(), ()])\n"
        "run()\n"
        "warnings.simplefilter('ignore')\n"
        "pid = os.fork()\n"
        "run()\n"
        "os._exit(0) if pid == 0 else None\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True, timeout=300)
