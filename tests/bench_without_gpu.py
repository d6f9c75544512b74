"""Run a bench as on a GPU, on the made-up driver and without peers: NAME ARGUMENT ...

The shim runs the kernels on the CPU, so the printed times mean nothing.
"""

import os
import runpy
import sys
from pathlib import Path

from fakes import cublaslt as fake_cublaslt
from fakes import cusolver as fake_cusolver

from gpugrad.testing.cuda import driver

BENCHES = Path(__file__).parents[1] / "ci" / "bench"

if __name__ == "__main__":
    if not driver.is_active():
        driver.activate()
    fake_cublaslt.install()
    fake_cusolver.install()
    sys.modules |= dict.fromkeys(("torch", "jax"))  # as if they were not installed
    sys.argv = [f"{BENCHES / sys.argv[1]}.py", *sys.argv[2:], "--device", "cuda:0"]
    os.environ["GPUGRAD_DEVICE"] = "cuda:0"
    sys.path.insert(0, str(BENCHES))
    runpy.run_path(sys.argv[0], run_name="__main__")
