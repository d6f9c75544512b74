"""Properties of the device, versions, bindings, and ceilings: copies, products, launches.

    python ci/gpu_parts/facts.py RECORDS

Each fact is recorded as soon as it is known, and one that fails names its error: the others follow.
"""

from __future__ import annotations

import importlib.metadata
import sys
import time
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import records

import gpugrad as gg
from gpugrad.kernels.libraries import cublaslt, cudnn, cusolver

PACKAGES = (
    "cupy-cuda12x", "cupy-cuda13x", "numpy", "scipy", "ml_dtypes", "cuda-bindings", "nvmath-python",
    "nvidia-cudnn-frontend", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "torch", "jax", "triton",
)  # fmt: skip
SMALL = 1024


def timed(call: Callable[[], Any], n: int = 200) -> tuple[float, float]:
    """Microseconds of a call for the host, and in all."""
    call(), call()
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    for _ in range(n):
        call()
    host = time.perf_counter()
    cupy.cuda.Device().synchronize()
    return (host - start) / n * 1e6, (time.perf_counter() - start) / n * 1e6


def properties() -> dict[str, Any]:
    found = cupy.cuda.runtime.getDeviceProperties(0)
    names = ("name", "multiProcessorCount", "totalGlobalMem", "l2CacheSize", "clockRate",
             "memoryClockRate", "memoryBusWidth", "sharedMemPerMultiprocessor")  # fmt: skip
    kept = {n: found[n] for n in names if n in found}
    return kept | {"name": kept["name"].decode()}


def versions() -> dict[str, Any]:
    runtime, known = cupy.cuda.runtime, {}
    for package in PACKAGES:
        try:
            known[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return known | {"driver": runtime.driverGetVersion(), "runtime": runtime.runtimeGetVersion()}


def binding(library: Any) -> str:
    return str(library.binding())


def copy_speed(n_bytes: int) -> float:
    """TB/s of a copy, reads and writes counted."""
    x = cupy.ones((n_bytes // 4,), cupy.float32)
    y = cupy.empty_like(x)
    return 2 * n_bytes / timed(lambda: cupy.copyto(y, x), 20)[1] / 1e6


def product_speed(dtype: str, precision: str, n: int) -> float:
    """TFLOP/s of the product of two square matrices."""
    a = gg.astype(gg.random.normal((n, n), device="cuda:0"), dtype=dtype)
    before = gg.get_matmul_precision()
    gg.set_matmul_precision(precision)
    try:
        return 2 * n**3 / timed(lambda: a @ a, 20)[1] / 1e6
    finally:
        gg.set_matmul_precision(before)


def add_times() -> dict[str, tuple[float, float]]:
    x = cupy.ones((SMALL,), cupy.float32)
    a = gg.ones((SMALL,), device="cuda:0")
    return {"cupy": timed(lambda: x + x), "gpugrad": timed(lambda: gg.add(a, a))}


def graph_times(nodes: int) -> tuple[float, float]:
    """Microseconds of a replay of a CUDA graph of additions, for the host and in all."""
    kernel = cupy.ElementwiseKernel("float32 a", "float32 b", "b = a + 1", f"one_of_{nodes}")
    x = cupy.ones((SMALL,), cupy.float32)
    y, stream = cupy.empty_like(x), cupy.cuda.Stream(non_blocking=True)
    kernel(x, y)
    with stream:
        stream.begin_capture()
        for _ in range(nodes):
            kernel(x, y)
        graph = stream.end_capture()
    return timed(graph.launch)


def facts(small: bool) -> dict[str, Callable[[], Any]]:
    """By name: a function that measures a fact. The sizes are small where nothing is measured."""
    big, n = (1 << 12, 16) if small else (1 << 30, 8192)
    return {
        "properties": properties, "versions": versions,
        "cuBLASLt": lambda: binding(cublaslt), "cuSOLVER": lambda: binding(cusolver),
        "cuDNN": lambda: binding(cudnn),
        "copy of 1 GiB, TB/s": lambda: copy_speed(big),
        "bfloat16 product, TFLOP/s": lambda: product_speed("bfloat16", "highest", n),
        "TF32 product, TFLOP/s": lambda: product_speed("float32", "high", n // 2),
        "float32 product, TFLOP/s": lambda: product_speed("float32", "highest", n // 2),
        "float64 product, TFLOP/s": lambda: product_speed("float64", "highest", n // 2),
        "add, us of the host and in all": add_times,
        **{f"graph of {k} nodes, us of the host and in all": lambda k=k: graph_times(k)
           for k in (1, 10, 100)},
    }  # fmt: skip


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, (float, np.floating)) else value


if __name__ == "__main__":
    failed = 0
    for name, measure in facts("--small" in sys.argv).items():
        try:
            value = rounded(measure())
        except Exception as error:
            failed, value = failed + 1, f"FAILED: {type(error).__name__}: {error}"[:300]
        records.write(sys.argv[1], "facts", name=name, value=value)
        print(f"{name}: {value}", flush=True)
    sys.exit(failed > 0)
