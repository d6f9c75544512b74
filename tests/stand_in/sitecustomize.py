"""With this folder on PYTHONPATH every Python starts with the made-up driver and its libraries.

For commands that start processes of their own, such as ci/gpu.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fakes import cublaslt, cusolver

from gpugrad.testing.cuda import driver

driver.activate()
cublaslt.install()
cusolver.install()
sys.modules |= dict.fromkeys(("torch", "jax"))  # as if they were not installed
