"""Fixtures of all tests: the CPU as default device, a CUDA device (real or fake), fixed seeds."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ["GPUGRAD_DEVICE"] = "cpu"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # workers' spinning threads slow each other

import hypothesis
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fakes import cublaslt as fake_cublaslt
from fakes import cupy as fake_cupy
from fakes import cusolver as fake_cusolver


def _has_gpu() -> bool:
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    return bool(cupy.cuda.is_available())


REAL_GPU = _has_gpu()
if not REAL_GPU:  # before gpugrad looks for CuPy, which it does once
    fake_cupy.install()
    fake_cublaslt.install()
    fake_cusolver.install()

from gpugrad.core import backend  # noqa: E402  # after the fake
from gpugrad.function.cpu import c_program  # noqa: E402
from gpugrad.kernels.codegen.for_ops import library_functions  # noqa: E402
from gpugrad.registry.record import OPS  # noqa: E402

hypothesis.settings.register_profile(
    "gpugrad", derandomize=True, deadline=None, print_blob=True, database=None
)
hypothesis.settings.load_profile("gpugrad")


if REAL_GPU and os.environ.get("GPUGRAD_TESTS_POOL") == "none":  # for compute-sanitizer
    import cupy

    cupy.cuda.set_allocator(None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--programs", type=int, default=200, help="random programs that tests/fuzz runs"
    )
    parser.addoption("--seed", type=int, default=0, help="of the first of them")


def pytest_configure(config: pytest.Config) -> None:
    if REAL_GPU and importlib.util.find_spec("nvmath") is None:  # else products warn and tests fail
        config.addinivalue_line("filterwarnings", "ignore:gpugrad. nvmath-python:RuntimeWarning")


def _needs_a_gpu(item: pytest.Item) -> bool:
    words = ("device", "cuda", "kernel", "cublaslt", "cudnn", "prefetch")
    return "cuda" in getattr(item, "fixturenames", ()) or any(w in item.nodeid for w in words)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if REAL_GPU:  # first the tests that need a GPU, as the time on one is short
        items.sort(key=lambda item: not _needs_a_gpu(item))
    for item in items:
        if item.get_closest_marker("gpu") and not REAL_GPU:
            item.add_marker(pytest.mark.skip(reason="needs a real CUDA device"))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def _composed(request: pytest.FixtureRequest) -> Iterator[None]:
    """On the fake CuPy, g++ takes a second per kernel, so tests opt in by a marker."""
    if REAL_GPU or request.node.get_closest_marker("kernels"):
        yield
        return
    with library_functions():
        yield


@pytest.fixture(autouse=True)
def _no_declared_ops_stay() -> Iterator[None]:
    """After each test, forget the ops that it declared and their readings."""
    before = set(OPS)
    yield
    for name in OPS.keys() - before:
        del OPS[name]
        backend.forget(name)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def numpy_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced functions compile no C kernels, whose last bits differ from those of eager calls."""
    monkeypatch.setattr(c_program, "setting", lambda: "0")


@pytest.fixture
def cuda() -> str:
    """A CUDA device: the real one where there is one, else that of the fake CuPy."""
    return "cuda:0"


@pytest.fixture
def failing() -> Iterator[fake_cupy.failing_allocation]:
    """An entered `fake_cupy.failing_allocation`."""
    if not hasattr(backend.cupy().cuda.Stream, "waits"):
        pytest.skip(reason="the allocations of the real CuPy cannot be made to fail one by one")
    with fake_cupy.failing_allocation() as allocation:
        yield allocation
