"""TensorLy on Tensors: ``tensorly.set_backend("gpugrad")`` after this import.

Leans on `tensorly.backend`: the code of its NumPy backend runs on `gpugrad.numpy`, and the list of
names that `set_backend` accepts gets ``"gpugrad"``. Decompositions are differentiable, as
``parafac`` and ``tucker`` with `gg.grad`. Tried with TensorLy 0.10.0.
"""

from __future__ import annotations

from typing import Any

import gpugrad as gg
from gpugrad.integrations.library import library, np, on_tensors

backend = library("tensorly.backend", "tensorly", "0.10", "0.9")
numpy_backend = library("tensorly.backend.numpy_backend", "tensorly", "0.10", "0.9")

_names = {"np": np, "scipy": gg.scipy}
GpugradBackend = on_tensors(numpy_backend.NumpyBackend, _names, backend_name="gpugrad")


def _to_numpy(tensor: Any) -> Any:
    """The values, without their gradient."""
    return np.asarray(tensor).numpy()


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Least squares; as in NumPy, there are no residuals unless the columns are independent."""
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond=rcond)
    has_any = int(rank) == a.shape[1] < a.shape[0]
    return x, residuals if has_any else residuals[:0], rank, s


GpugradBackend.register_method("to_numpy", _to_numpy)
GpugradBackend.register_method("lstsq", _lstsq)
if "gpugrad" not in backend.BackendManager.available_backend_names:
    backend.BackendManager.available_backend_names.append("gpugrad")
