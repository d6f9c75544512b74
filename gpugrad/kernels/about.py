"""The machine that gpugrad runs on: versions, devices, BLAS and compilers."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import numpy as np

from gpugrad.core.backend import cupy
from gpugrad.core.devices import gpu_count
from gpugrad.core.format import format_bytes
from gpugrad.core.threads import workers
from gpugrad.kernels.cpu import compiler

BEGIN = """
Begin with an example, which says with --help what it does:
  python -m gpugrad.examples.digits    reads handwritten digits: training, checkpoints, a picture
  python -m gpugrad.examples.charlm    a small GPT that writes characters
  python -m gpugrad.examples.deblur    an inverse problem: the gradient of a filter of SciPy's
In Python: import gpugrad as gg; help(gg.GradientTape). The guides are in docs/."""


def about() -> str:
    """Describe what gpugrad runs on, for a bug report: a line for each part.

    Returns:
        Versions, NumPy's BLAS, the devices with their memory, which compiler writes kernels for
        traced functions on the CPU, or why none does, where compiled kernels are kept, the
        environment variables that are set, and examples. ``python -m gpugrad`` prints it.

    >>> print(gg.about())  # doctest: +ELLIPSIS
    gpugrad ..., Python ...
    NumPy ..., BLAS ..., SciPy ...
    devices: cpu (... cores)...
    C kernels: ...
    """
    version = sys.modules["gpugrad"].__version__  # the package, which has imported this module
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    lines = [
        f"gpugrad {version}, Python {platform.python_version()} on {platform.platform()}",
        f"NumPy {np.__version__}, BLAS {blas['name']} {blas['version']}, "
        f"SciPy {importlib.metadata.version('scipy')}",
        f"devices: cpu ({workers()} cores)",
        *_gpus(),
        compiler.status(),
    ]
    if folder := compiler.home():
        sizes = [f.stat().st_size for f in folder.glob("*") if f.is_file()]
        lines.append(f"cache: {folder}, {len(sizes)} files, {format_bytes(sum(sizes))}")
    names = ("CXX", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "XDG_CACHE_HOME")
    is_ours = [n for n in sorted(os.environ) if n.startswith("GPUGRAD_") or n in names]
    lines += [f"{name}={os.environ[name]}" for name in is_ours]
    return "\n".join(lines) + "\n" + BEGIN


def _gpus() -> list[str]:
    """A line for each GPU, or why there is none."""
    lib = cupy()
    if lib is None:
        return ["no GPU: CuPy is not installed"]
    if not gpu_count():
        return [f"no GPU answers; CuPy {lib.__version__}"]
    runtime = lib.cuda.runtime
    lines = [
        f"CuPy {lib.__version__}, CUDA {runtime.runtimeGetVersion()}, "
        f"driver {runtime.driverGetVersion()}"
    ]
    for k in range(gpu_count()):
        facts = runtime.getDeviceProperties(k)
        name, memory = facts["name"].decode(), format_bytes(facts["totalGlobalMem"])
        lines.append(f"cuda:{k}: {name}, {memory}, compute {facts['major']}.{facts['minor']}")
    return lines
