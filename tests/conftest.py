"""What every test has: the CPU as default device, a CUDA device (real or fake), fixed seeds."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import numpy as np
import pytest

os.environ["GPUGRAD_DEVICE"] = "cpu"

sys.path.insert(0, str(Path(__file__).parent))

import fake_cublaslt
import fake_cupy


def _has_gpu() -> bool:
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    return bool(cupy.cuda.is_available())


REAL_GPU = _has_gpu()
if not REAL_GPU:  # before gpugrad asks: it asks once
    fake_cupy.install()
    fake_cublaslt.install()

from gpugrad.kernels.generated import composed  # noqa: E402  # after the fake

hypothesis.settings.register_profile(
    "gpugrad", derandomize=True, deadline=None, print_blob=True, database=None
)
hypothesis.settings.load_profile("gpugrad")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("gpu") and not REAL_GPU:
            item.add_marker(pytest.mark.skip(reason="needs a real CUDA device"))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def _composed(request: pytest.FixtureRequest) -> Iterator[None]:
    """On the fake CuPy a kernel is compiled by g++, for a second: tests say that they want it."""
    if REAL_GPU or request.node.get_closest_marker("kernels"):
        yield
        return
    with composed():
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def cuda() -> str:
    """A CUDA device: the real one where there is one, else that of the fake CuPy."""
    return "cuda:0"
