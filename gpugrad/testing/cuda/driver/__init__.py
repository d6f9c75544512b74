"""Real CuPy without a GPU: CuPy's own code on made-up GPUs, whose kernels run on the CPU.

    python -m gpugrad.testing.cuda.driver build       # once: downloads CuPy, compiles the driver
    python -m gpugrad.testing.cuda.driver python my_script.py
    python -m gpugrad.testing.cuda.driver pytest --pyargs my_package

g++ takes 0.2 s for a kernel. If a program needs hundreds, put `prepare` before its first run: it
runs on devices that do nothing, and then its kernels are compiled together, in 0.01 s each:

    python -m gpugrad.testing.cuda.driver prepare pytest --pyargs my_package

CuPy's Python and Cython code runs unchanged. What lies below it is made up: the CUDA runtime and
driver (`native/`), NVRTC, cuBLAS, cuSOLVER, cuFFT and Thrust (`libraries/`). Kernels, CuPy's and
ours, are compiled by g++ and run by `gpugrad.testing.cuda.shim`. CUDA graphs are recorded and
replayed, and what a capture forbids returns CUDA's error.

`activate` does in a running program what the second command does for a new one.
"""

from gpugrad.testing.cuda.driver.control import (
    Work,
    change_setting,
    get_setting,
    logged,
    noted,
    take_complaints,
    used,
)
from gpugrad.testing.cuda.driver.place import activate, is_active, unavailable

__all__ = [
    "Work",
    "activate",
    "change_setting",
    "get_setting",
    "is_active",
    "logged",
    "noted",
    "take_complaints",
    "unavailable",
    "used",
]
