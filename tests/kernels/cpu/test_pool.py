"""The pool of threads: every piece once, from any thread, after a fork, and with signals."""

import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from fresh import output_of
from needs import needs_compiler

from gpugrad.kernels.cpu import compiler, pool

pytestmark = needs_compiler

TEXT = """
#include "pool.h"
#include <atomic>
#include <vector>
#include <thread>
#include <chrono>

namespace {
struct Counts { std::vector<std::atomic<int>> of; long work; bool nested; };
void piece(void* state, long k) {
  Counts& counts = *(Counts*)state;
  for (volatile long i = 0; i < counts.work * (k % 7); ++i) {}
  if (counts.nested) {
    std::atomic<int> inner{0};
    gpugrad_parallel([](void* p, long) { ++*(std::atomic<int>*)p; }, &inner, 3);
    if (inner != 3) return;
  }
  ++counts.of[k];
}
}

// How many pieces of how many jobs were not computed exactly once.
extern "C" long wrong(long jobs, long pieces, long work, long nested) {
  long wrong = 0;
  for (long j = 0; j < jobs; ++j) {
    long n = pieces + j % 5;
    Counts counts{std::vector<std::atomic<int>>(n), work, nested != 0};
    gpugrad_parallel(piece, &counts, n);
    for (auto& count : counts.of) wrong += count != 1;
  }
  return wrong;
}

extern "C" void squares(char** p, long low, long high, char* partial) {
  double sum = 0;
  for (long i = low; i < high; ++i) sum += ((double*)p[0])[i] * ((double*)p[0])[i];
  *(double*)partial = sum;
}
extern "C" void add(char** p, char* partials, long count) {
  double sum = 0;
  for (long k = 0; k < count; ++k) sum += *(double*)(partials + 64 * k);
  *(double*)p[1] = sum;
}
extern "C" double sum_of_squares(double* x, long n, long grain) {
  double result = 0;
  char* pointers[2] = {(char*)x, (char*)&result};
  std::vector<double> partials(8 * ((n + grain - 1) / grain + 1));
  gpugrad_run(squares, add, n, grain, pointers, (char*)partials.data(), 64);
  return result;
}

extern "C" void meet(long* met) {
  gpugrad_parallel([](void* p, long) {
    std::atomic<long>& met = *(std::atomic<long>*)p;
    ++met;  // at most a minute, where one thread runs all
    for (int k = 0; k < 60000 && met > 0 && met < 4; ++k)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (met < 4) met = -4;
  }, met, 4);
}

extern "C" void sleep_in_pieces(long milliseconds) {
  gpugrad_parallel([](void* ms, long) {
    std::this_thread::sleep_for(std::chrono::milliseconds(*(long*)ms));
  }, &milliseconds, 4);
}
"""


@pytest.fixture(scope="module")
def library():
    assert pool.library() is not None
    result = compiler.load(TEXT, what="the tests of the pool")
    result.wrong.argtypes, result.wrong.restype = [ctypes.c_long] * 4, ctypes.c_long
    result.sum_of_squares.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
    result.sum_of_squares.restype = ctypes.c_double
    result.sleep_in_pieces.argtypes, result.sleep_in_pieces.restype = [ctypes.c_long], None
    return result


@pytest.mark.parametrize(
    ("jobs", "pieces", "work"), [(2000, 1, 0), (2000, 3, 0), (300, 40, 200), (3, 9, 10**6)]
)
def test_a_job_computes_every_piece_once(library, threads, jobs, pieces, work):
    assert library.wrong(jobs, pieces, work, 0) == 0


def test_a_job_inside_a_piece_runs_there(library, threads):
    assert library.wrong(200, 10, 50, 1) == 0


def test_threads_that_change_in_number_compute_every_piece_once(library):
    before = pool.threads()
    for n in (4, 1, 2, 6, 3, 1, 5):
        pool.set_threads(n)
        assert pool.threads() == n
        assert library.wrong(100, 7, 20, 0) == 0
    pool.set_threads(before)


def test_several_python_threads_may_call_at_once(library, threads):
    results = []
    callers = [
        threading.Thread(target=lambda: results.append(library.wrong(500, 6, 30, 0)))
        for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [0] * 4


def test_a_job_after_workers_fell_asleep_wakes_them(library, threads):
    for _ in range(3):
        time.sleep(0.05)
        assert library.wrong(1, 20, 1000, 0) == 0


def test_workers_share_a_job(library):
    """No piece ends before all have begun."""
    before, met = pool.threads(), ctypes.c_long(0)
    pool.set_threads(4)
    library.meet(ctypes.byref(met))
    pool.set_threads(before)
    assert met.value == 4


@pytest.mark.parametrize(("n", "grain"), [(0, 8), (1, 8), (1000, 8), (1000, 999), (1000, 5000)])
def test_sums_do_not_depend_on_the_number_of_threads(library, n, grain):
    x = np.random.default_rng(0).normal(size=n)
    before, results = pool.threads(), []
    for count in (1, 2, 5):
        pool.set_threads(count)
        results.append(library.sum_of_squares(x.ctypes.data, n, grain))
    pool.set_threads(before)
    assert results[0] == results[1] == results[2]
    assert results[0] == pytest.approx(np.sum(x * x))


def _in_child(library, queue):
    others = len(os.listdir("/proc/self/task"))  # SciPy starts its own in a forked process
    queue.put((library.wrong(200, 6, 30, 0), len(os.listdir("/proc/self/task")) - others))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_starts_its_own_threads(library):
    before = pool.threads()
    pool.set_threads(3)
    assert library.wrong(10, 6, 30, 0) == 0
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(library, queue))
    child.start()
    assert queue.get() == (0, 2)  # beside the one that forked
    child.join()
    assert child.exitcode == 0
    assert library.wrong(10, 6, 30, 0) == 0
    pool.set_threads(before)


def test_an_interrupt_comes_after_the_job():
    """Workers block signals, so Python's main thread gets them."""
    code = f"""
import os, signal, threading, time
from gpugrad.kernels.cpu import compiler, pool
pool.library()
pool.set_threads(3)
library = compiler.load({TEXT!r}, what="a test")
library.sleep_in_pieces(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores Ctrl-C
for _ in range(5):
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        library.sleep_in_pieces(60)
        time.sleep(10)
        print("no interrupt")
    except KeyboardInterrupt:
        pass
print(library.wrong(100, 5, 10, 0))
"""
    assert output_of("-c", code) == "0\n"


def test_a_process_ends_while_workers_run():
    code = """
from gpugrad.kernels.cpu import pool
pool.library()
pool.set_threads(4)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("setting", "expected"), [("1", 1), ("1,2", 1), ("", None), ("x", None)])
def test_openmp_sets_the_number_of_threads(setting, expected):
    code = "from gpugrad.kernels.cpu import pool; print(pool.threads())"
    threads = int(output_of("-c", code, OMP_NUM_THREADS=setting))
    assert threads == (expected or len(os.sched_getaffinity(0)))
