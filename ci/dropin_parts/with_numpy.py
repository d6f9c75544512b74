"""A pytest plugin: libraries that know several backends run their tests on NumPy's alone.

The plugins of the suites on gpugrad call its functions with another name.
"""

import importlib
import os
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


def pytest_configure(config) -> None:  # before a test module is imported
    if config.rootpath.name.startswith("autoray") and not config.pluginmanager.has_plugin(
        "as_autoray"
    ):
        autoray_backends("numpy")
