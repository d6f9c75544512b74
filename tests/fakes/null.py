"""Devices that do nothing, so that only the host's time of a program counts."""

from __future__ import annotations

import os
from collections.abc import Callable

from fakes import counted, cublaslt, cusolver
from gpugrad.testing.cuda import driver


def install() -> tuple[str, Callable[[Callable[[], object]], int]]:
    """Have ``import cupy`` import CuPy over null devices, or `counted` if no driver was built.

    Returns:
        What it is, and a function that counts the launches of a call.
    """
    os.environ |= {"GPUGRAD_CUDA_NULL_WORK": "1", "GPUGRAD_CUDA_DEVICES": "1"}
    if driver.unavailable():
        counted.install(with_cudnn=False)
        counted.uncounted.append(True)
        return "counted CuPy", _count_nodes
    driver.activate()
    cublaslt.install()
    cusolver.install()
    return "CuPy on the null driver", _count_work


def _count_nodes(call: Callable[[], object]) -> int:
    counted.uncounted.clear()
    before = len(counted.nodes)
    call()
    counted.uncounted.append(True)
    return len(counted.nodes) - before


def _count_work(call: Callable[[], object]) -> int:
    with driver.logged() as work:
        call()
    return len(work)
