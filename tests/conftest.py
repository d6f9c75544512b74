"""Fixtures of all tests: the CPU as default device, a CUDA device, fixed seeds.

The CUDA device is a GPU where there is one. Else it is made up: the real CuPy runs on the driver of
gpugrad.testing.cuda.driver. Where that has not been built, the tests of devices are skipped.
"""

import collections
import contextlib
import ctypes
import functools
import importlib.util
import os
import random
import signal
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["GPUGRAD_DEVICE"] = "cpu"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # workers' spinning threads slow each other

import hypothesis
import numpy as np
import pytest

try:
    import resource
except ImportError:  # on Windows
    resource = None

sys.path.insert(0, str(Path(__file__).parent))

from fakes import cublaslt as fake_cublaslt
from fakes import cusolver as fake_cusolver
from fakes.allocation import FailingAllocation

from gpugrad.testing.cuda import driver


def _has_gpu() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    return bool(cupy.cuda.is_available())


REAL_GPU = not driver.is_active() and _has_gpu()
if "cupy" not in sys.modules and not driver.is_active() and not driver.unavailable():
    driver.activate()  # before gpugrad looks for CuPy, which it does once
REAL_CUPY = REAL_GPU or driver.is_active()
NO_DEVICE = driver.unavailable() or "needs a GPU: CuPy was imported and finds none"
if not REAL_GPU:
    fake_cublaslt.install()
    fake_cusolver.install()

from gpugrad.core import backend  # noqa: E402  # after the driver
from gpugrad.core.devices import gpu_count  # noqa: E402
from gpugrad.function.cpu import c_program  # noqa: E402
from gpugrad.kernels.cpu import pool  # noqa: E402
from gpugrad.registry import in_c  # noqa: E402
from gpugrad.registry.record import OPS  # noqa: E402

hypothesis.settings.register_profile(
    "gpugrad", derandomize=True, deadline=None, print_blob=True, database=None
)
hypothesis.settings.load_profile("gpugrad")


if REAL_CUPY and os.environ.get("GPUGRAD_TESTS_POOL") == "none":  # for compute-sanitizer
    import cupy

    cupy.cuda.set_allocator(None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--programs", type=int, default=40, help="random programs that tests/fuzz runs"
    )
    parser.addoption("--seed", type=int, default=0, help="of the first of them")
    parser.addoption(
        "--every", type=int, default=1, metavar="K", help="run each K-th slow case of a test"
    )


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of a job in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # children inherit that, too
    if REAL_GPU and importlib.util.find_spec("nvmath") is None:  # else products warn and tests fail
        config.addinivalue_line("filterwarnings", "ignore:gpugrad. nvmath-python:RuntimeWarning")


def pytest_sessionstart(session: pytest.Session) -> None:
    in_c.load()  # from the first test on, not in the middle of one


def _uses_a_device(item: pytest.Item) -> bool:
    """Whether a test asks for the fixture `cuda`, or names a device itself."""
    if "cuda" in getattr(item, "fixturenames", ()) or "on_a_device" in item.name:
        return True
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    code = getattr(getattr(item, "function", None), "__code__", None)
    named = any(isinstance(p, str) and p in ("cuda", "cuda:0") for p in params)
    return named or (code is not None and _names_cuda(code))


@functools.cache
def _names_cuda(code: types.CodeType) -> bool:
    return any(
        const in ("cuda", "cuda:0") if isinstance(const, str) else
        isinstance(const, types.CodeType) and _names_cuda(const)
        for const in code.co_consts
    )  # fmt: skip


def _thin(items: list[pytest.Item]) -> None:
    """Mark the cases that the marker `thin` leaves out as slow."""
    cases: dict[str, int] = collections.Counter()
    for item in items:
        if (thin := item.get_closest_marker("thin")) is not None:
            test = item.nodeid.partition("[")[0]
            if cases[test] % thin.args[0]:
                item.add_marker("slow")
            cases[test] += 1


def _of_every(items: list[pytest.Item], k: int) -> list[pytest.Item]:
    """Without the slow cases of each test but its first, its K-th, and so on."""
    cases: dict[str, int] = collections.Counter()
    kept = []
    for item in items:
        if item.get_closest_marker("slow") is not None:
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if (cases[test] - 1) % k:
                continue
        kept.append(item)
    return kept


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _uses_a_device(item):
            item.add_marker("device")
    _thin(items)
    items[:] = _of_every(items, config.getoption("every"))
    if REAL_GPU:  # first the tests that need a GPU, as the time on one is short
        items.sort(key=lambda item: item.get_closest_marker("device") is None)
    if not REAL_CUPY:  # thousands of skipped tests would take some seconds
        gone = [item for item in items if item.get_closest_marker("device")]
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if not item.get_closest_marker("device")]


_memory: list[int] = []
"""The most bytes that this process, or each worker, had at once."""


def _most_memory() -> float:
    """Bytes that a process may have in the default run.

    ``pytest -n 2`` must run on a laptop with 8 GB. One process alone runs all tests.
    """
    return 2.2e9 if REAL_CUPY or len(_memory) == 1 else 1.5e9


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_testnodedown(node: Any) -> None:
    _memory.append(getattr(node, "workeroutput", {}).get("memory", 0))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 if resource else 0
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["memory"] = used
        return
    _memory.append(used)
    whole = session.config.getoption("markexpr") == "not slow and not peers"
    if whole and not REAL_GPU and max(_memory) > _most_memory() and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not REAL_CUPY:
        terminalreporter.write_line(f"Tests of devices were skipped: gpugrad {NO_DEVICE}")
    terminalreporter.write_line(
        f"A process had at most {max(_memory) / 1e9:.2f} GB; {_most_memory() / 1e9} are allowed."
    )


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(0)
    np.random.seed(0)


FOR_CALLERS = ("gpugrad.compat.", "gpugrad.examples.")
"""Modules that declare ops whenever they are called."""


@pytest.fixture(autouse=True)
def _no_declared_ops_stay() -> Iterator[None]:
    """After each test, forget the ops that it declared and their readings."""
    before = set(OPS)
    yield
    for name in OPS.keys() - before:
        home = OPS[name].home
        if home.startswith("gpugrad.") and not home.startswith(FOR_CALLERS):
            continue  # the test was the first to load its module
        del OPS[name]
        backend.forget(name)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(params=["C", pytest.param("Python", marks=pytest.mark.slow)])
def both_tapes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small ops and the tape run in C, then in Python."""
    if in_c.use(request.param == "C") != (request.param == "C"):
        pytest.skip(reason="needs a C++ compiler and Python.h")
    yield
    in_c.load()


@pytest.fixture
def python_tape() -> Iterator[None]:
    """Small ops and the tape run in Python."""
    in_c.use(False)
    yield
    in_c.load()


@pytest.fixture
def numpy_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced functions compile no C kernels, whose last bits differ from those of eager calls."""
    monkeypatch.setattr(c_program, "setting", lambda: "0")


@pytest.fixture
def launches_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """A function of modules: the names of the kernels that they launch from then on."""

    def noted(*modules: types.ModuleType) -> list[str]:
        names: list[str] = []
        real = modules[0].launch
        for module in modules:
            monkeypatch.setattr(
                module, "launch", lambda s, n, *a: names.append(n) or real(s, n, *a)
            )
        return names

    return noted


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Threads of the pool of C kernels: each test runs with one and with several."""
    before = pool.threads()
    pool.set_threads(request.param)
    yield request.param
    pool.set_threads(before)


@pytest.fixture
def cuda() -> str:
    """A CUDA device: the real one where there is one, else one of the made-up driver."""
    return "cuda:0"


@pytest.fixture
def second(cuda: str) -> str:
    """A second CUDA device: every test that needs two asks for it."""
    if gpu_count() < 2:
        pytest.skip(reason="needs two GPUs")
    return "cuda:1"


HOST = -1
"""The host in the place of a stream that waits."""


@pytest.fixture
def waits(cuda: str) -> Callable[[], contextlib.AbstractContextManager[list[tuple[int, int]]]]:
    """Context manager of pairs (stream, the stream that it waited for); full at its end."""
    if REAL_GPU:
        pytest.skip(reason="a GPU does not log which streams waited")
    return _logged_waits


@contextlib.contextmanager
def _logged_waits() -> Iterator[list[tuple[int, int]]]:
    pairs: list[tuple[int, int]] = []
    with driver.logged() as work:
        yield pairs
    pairs += [(w.stream, w.waits_for) for w in work if w.kind == "wait"]


@pytest.fixture
def failing() -> Iterator[FailingAllocation]:
    """Allocations that fail one by one; entered."""
    with FailingAllocation(backend.cupy()) as allocation:
        yield allocation
