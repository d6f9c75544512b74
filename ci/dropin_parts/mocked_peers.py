"""Imported before pytest starts: mocks of libraries whose tests a suite leaves out.

pymanopt's conftest and examples import them all. Those that are installed are left alone.
"""

import importlib.machinery
import importlib.util
import random
import sys
from unittest.mock import MagicMock

import numpy as np

missing = [name for name in ("tensorflow", "torch", "jax") if not importlib.util.find_spec(name)]
for name in [*missing, *(["jax.numpy"] if "jax" in missing else [])]:
    # SciPy asks of each array whether it is one of these classes
    sys.modules[name] = mock = MagicMock(Tensor=type("Tensor", (), {}), Array=type("Array", (), {}))
    mock.__spec__ = importlib.machinery.ModuleSpec(name, None)

random.seed(42)
np.random.seed(42)
