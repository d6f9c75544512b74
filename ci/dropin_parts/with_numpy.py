"""A pytest plugin: libraries that know several backends run their tests on NumPy's alone.

The plugins of the suites on gpugrad call its functions with another name.
"""

import importlib
import os
from pathlib import Path
from typing import Any

for name, value in {"EINOPS_TEST_BACKENDS": "numpy", "TENSORLY_BACKEND": "numpy"}.items():
    os.environ.setdefault(name, value)
for library in ("PYTORCH", "JAX", "CUPY", "TENSORFLOW"):
    os.environ[f"POT_BACKEND_DISABLE_{library}"] = "1"


def autoray_backends(name: str) -> None:
    """Let autoray's tests make the parameters of one backend."""
    conftest = importlib.import_module("tests.conftest")
    made = conftest.gen_params
    conftest._ALL_BACKENDS[:] = conftest._AVAILABLE_BACKENDS = [name]
    conftest.gen_params = lambda backends, **keywords: made(backends=[name], **keywords)


def pyhf_backends(kind: Any) -> None:
    """Let pyhf's tests find one class in the place of all backends but NumPy's."""
    retriever = importlib.import_module("pyhf.tensor").BackendRetriever
    for name in ("jax_backend", "pytorch_backend", "tensorflow_backend"):
        setattr(retriever, name, kind)


if os.environ["PLUGIN"] == "with_numpy":  # the run on the original, in the checkout
    if Path("autoray").is_dir():
        autoray_backends("numpy")
    if Path("src/pyhf").is_dir():  # its conftest.py makes one of each
        pyhf_backends(importlib.import_module("pyhf.tensor").BackendRetriever.numpy_backend)
