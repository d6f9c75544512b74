"""Properties of the device, versions, bindings, and ceilings: copies, products, launches.

    python ci/gpu_parts/facts.py RECORDS [--small]

Each fact is recorded as soon as it is known; the others follow one that fails, crashes or hangs.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import time
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import workers

import gpugrad as gg

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
    numbers = {"driver": runtime.driverGetVersion(), "runtime": runtime.runtimeGetVersion()}
    return known | {"cupy": cupy.__version__} | numbers


def library(module: str, version: str, create: str) -> str:
    """The version of a bound library that works, or why it is missing."""
    try:
        bound = importlib.import_module(module)
        getattr(bound, create)()
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        return f"missing: {type(error).__name__}: {error}"[:300]
    return str(getattr(bound, version)()) if hasattr(bound, version) else "works"


def compile_kernel() -> str:
    """NVRTC, its builtins and CUDA's headers: without one of them no kernel of ours runs."""
    start = time.perf_counter()
    source = '#include <cuda_bf16.h>\nextern "C" __global__ void one(float* x) { x[0] = 1; }'
    x = cupy.zeros((1,), cupy.float32)
    cupy.RawModule(code=source).get_function("one")((1,), (1,), (x,))
    cupy.cuda.Device().synchronize()
    seconds, version = time.perf_counter() - start, cupy.cuda.nvrtc.getVersion()
    return f"NVRTC {'.'.join(map(str, version))} compiles in {seconds:.2f} s"


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
    big, n = (1 << 16, 16) if small else (1 << 30, 8192)
    return {
        "properties": properties, "versions": versions, "kernel": compile_kernel,
        "cuBLASLt": lambda: library("nvmath.bindings.cublasLt", "get_version", "create"),
        "cuSOLVER": lambda: library("nvmath.bindings.cusolverDn", "get_version", "create"),
        "cuDNN": lambda: library("cudnn", "backend_version", "create_handle"),
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


def main() -> int:
    args = workers.parser(__doc__, processes=1, seconds=55, hung=40).parse_args()
    args.processes = 1  # or they would slow each other
    known = facts(args.small)

    def measure(name: str) -> dict[str, Any]:
        value = rounded(known[name]())
        print(f"{name}: {value}", flush=True)
        return {"value": value}

    return workers.run(args, "facts", known, measure)


if __name__ == "__main__":
    sys.exit(main())
