"""A pytest plugin: libraries that know several backends run their tests on NumPy's alone."""

import os

BACKEND = os.environ.get("DROPIN_BACKEND", "numpy")
os.environ |= {"EINOPS_TEST_BACKENDS": BACKEND, "TENSORLY_BACKEND": "numpy"}
for library in ("PYTORCH", "JAX", "CUPY", "TENSORFLOW"):
    os.environ[f"POT_BACKEND_DISABLE_{library}"] = "1"
