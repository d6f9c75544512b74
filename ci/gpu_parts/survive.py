"""A pytest plugin: ends a process whose test hangs or breaks its CUDA context.

    pytest -n 8 -p gpu_parts.survive tests

xdist reports that test as crashed and starts another process. Otherwise a hung test would keep
pytest from ending, and after a broken context all later tests of the process would fail. Without
xdist it only prints where the test hangs.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Iterator

import pytest

HUNG = float(os.environ.get("GPUGRAD_TESTS_HUNG", "120"))
"""Seconds of a test."""
IN_XDIST = "PYTEST_XDIST_WORKER" in os.environ
STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)  # pytest does not capture this one


@pytest.fixture(autouse=True)
def _ends_if_hung(request: pytest.FixtureRequest) -> Iterator[None]:
    stderr = request.config.stash[STDERR]
    faulthandler.dump_traceback_later(HUNG, exit=IN_XDIST, file=stderr)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.failed and IN_XDIST and _is_broken():
        text = f"{item.nodeid} broke the CUDA context:\n{report.longreprtext}\n"
        os.write(item.config.stash[STDERR], text.encode())
        os._exit(3)
    return report


def _is_broken() -> bool:
    cupy = sys.modules.get("cupy")
    try:
        if cupy is not None:
            cupy.cuda.Device().synchronize()
    except Exception:
        return True
    return False
