"""POT (Python Optimal Transport) on Tensors: ``ot.emd2(a, b, M)`` of Tensors, and their gradients.

Leans on `ot.backend`: the code of its NumPy backend runs on `gpugrad.numpy`, registered by
`_register_backend_implementation`. Network simplex solvers compute on the CPU, and POT gives their
gradients by the dual variables; all else is differentiated as written. Tried with POT 0.9.7.

>>> import gpugrad.integrations.pot  # doctest: +SKIP
>>> gg.grad(lambda cost: ot.emd2([], [], cost))(gg.ones((2, 2)))  # doctest: +SKIP
"""

from typing import Any

import gpugrad as gg
from gpugrad.integrations.library import library, np, on_tensors

backend = library("ot.backend", "POT", "0.9.7")
solvers = library("ot.lp._barycenter_solvers", "POT", "0.9.7")
_names: Any = {"np": np, "special": gg.scipy.special, "scipy": gg.scipy}
_names |= {n: getattr(gg.scipy.sparse, n) for n in ("coo_array", "csr_matrix", "issparse")}
_Base: Any = on_tensors(backend.NumpyBackend, _names)


class GpugradBackend(_Base):
    """POT's NumPy backend on Tensors; methods have POT's names."""

    __name__ = "gpugrad"
    __type__ = gg.Tensor
    __type_list__ = (gg.ones((), dtype="float32"), gg.ones((), dtype="float64"))
    rng_ = np.random.RandomState()
    qr = staticmethod(np.linalg.qr)  # POT's asks for NumPy's version

    def _to_numpy(self, a: Any) -> Any:
        return a.numpy() if isinstance(a, gg.Tensor) else a

    def _from_numpy(self, a: Any, type_as: Any = None) -> Any:
        home = {} if type_as is None else {"dtype": type_as.dtype, "device": type_as.device}
        return np.asarray(a, **home)

    def _detach(self, a: Any) -> Any:
        return gg.stop_gradient(a)

    def set_gradients(self, val: Any, inputs: Any, grads: Any) -> Any:
        """A value whose gradients by the inputs are given."""
        return gg.custom_gradient(lambda *_: (val, lambda g: [g * d for d in grads]))(*inputs)

    def sparse_coo_data(self, a: Any) -> Any:
        """Rows, columns and values for POT's own code, and the shape."""
        return *(self._to_numpy(x) for x in (a.row, a.col, a.data)), a.shape

    def device_type(self, type_as: Any) -> str:
        """``"CPU"`` or ``"GPU"``."""
        return "CPU" if type_as.device.kind == "cpu" else "GPU"


def _to_int_array(x: Any, nx: Any = None, theirs: Any = solvers._to_int_array) -> Any:
    return x.astype("int64") if isinstance(x, gg.Tensor) else theirs(x, nx)


solvers._to_int_array = _to_int_array  # which goes by the names of backends
backend._register_backend_implementation(GpugradBackend)
