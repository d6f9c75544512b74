"""The machine that gpugrad runs on: versions, devices, BLAS and compilers."""

from __future__ import annotations

import platform
import sys

import numpy as np

from gpugrad.core.backend import cupy
from gpugrad.core.devices import devices
from gpugrad.core.threads import workers
from gpugrad.kernels.cpu import compiler


def about() -> str:
    """Describe what gpugrad runs on, for a bug report: a line for each part.

    Returns:
        Versions, the devices, NumPy's BLAS, and which compiler writes kernels for traced functions
        on the CPU, or why none does.

    >>> print(gg.about())  # doctest: +ELLIPSIS
    gpugrad ..., Python ...
    NumPy ..., BLAS ...
    devices: cpu (... cores)...
    C kernels: ...
    """
    version = sys.modules["gpugrad"].__version__  # the package, which has imported this module
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    lib = cupy()
    gpus = [str(d) for d in devices() if d.kind != "cpu"]
    return "\n".join(
        [
            f"gpugrad {version}, Python {platform.python_version()} on {platform.platform()}",
            f"NumPy {np.__version__}, BLAS {blas['name']} {blas['version']}",
            f"devices: {', '.join([f'cpu ({workers()} cores)', *gpus])}"
            + (f"; CuPy {lib.__version__}" if lib is not None else "; CuPy is not installed"),
            compiler.status(),
        ]
    )
