"""With this folder on PYTHONPATH every Python starts with the stand-ins for CuPy and its libraries.

For commands that start processes of their own, such as ci/gpu. On the made-up driver, whose CuPy is
the real one, only the libraries have stand-ins.
"""

import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fakes import cublaslt, cupy, cusolver

if importlib.util.find_spec("cupy") is None:
    cupy.install()
cublaslt.install()
cusolver.install()
sys.modules |= dict.fromkeys(("torch", "jax"))  # as if they were not installed
