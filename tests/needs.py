"""Markers that skip tests of kernels where a compiler is missing, with the reason."""

import pytest

from gpugrad.kernels.cpu import compiler
from gpugrad.testing.cuda import driver, nvrtc, shim

needs_compiler = pytest.mark.skipif(
    compiler.status().startswith("C kernels: none"), reason="needs a C++ compiler"
)
needs_thresholds = pytest.mark.skipif(
    compiler.setting() == "always",
    reason="with GPUGRAD_CPU_KERNELS=always small arrays have kernels, too",
)
needs_shim = pytest.mark.skipif(
    bool(shim.unavailable()), reason=shim.unavailable() or "there is a C++ compiler"
)
needs_driver = pytest.mark.skipif(
    bool(driver.unavailable()), reason=driver.unavailable() or "the made-up driver is here"
)
needs_nvrtc = pytest.mark.skipif(
    bool(nvrtc.unavailable()), reason=nvrtc.unavailable() or "NVRTC is here"
)
each_architecture = pytest.mark.parametrize(  # ci/compile_kernels compiles all kernels
    "architecture", [pytest.param(f"sm_{n}", marks=pytest.mark.slow) for n in (75, 80, 90, 100)]
)
