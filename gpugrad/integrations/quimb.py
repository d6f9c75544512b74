"""quimb's optimizer of tensor networks: ``TNOptimizer(..., autodiff_backend="gpugrad")``.

Leans on `quimb.tensor.optimize._BACKEND_HANDLERS`, the table of what `autodiff_backend` may be, and
on autoray. Options: ``jit_fn=True`` traces the loss with `gg.function`, ``device=`` as
`gg.device`. Tried with quimb 1.15.0.
"""

from __future__ import annotations

from typing import Any

import gpugrad as gg
import gpugrad.integrations.autoray  # quimb calls functions by it
from gpugrad.core import nest
from gpugrad.integrations.library import library

optimize = library("quimb.tensor.optimize", "quimb", "1.15")


class GpugradHandler:
    """Evaluates a loss of nested arrays, its gradient and Hessian-vector products for quimb."""

    def __init__(self, jit_fn: bool = False, device: Any = None) -> None:
        self.jit_fn, self.device = jit_fn, device

    def to_constant(self, x: Any) -> Any:
        """An array on the device."""
        return gg.asarray(x, device=self.device)

    to_variable = to_constant

    def setup_fn(self, fn: Any) -> None:
        """Take the loss."""
        wrap = gg.function if self.jit_fn else lambda f: f
        self._fn, self._both = wrap(fn), wrap(gg.value_and_grad(fn))
        self._hvp = wrap(lambda x, t: gg.jvp(gg.grad(fn), (x,), (t,))[1])

    def value(self, arrays: Any) -> Any:
        """The loss, as a number."""
        return self._fn(self._ours(arrays)).numpy()

    def value_and_grad(self, arrays: Any) -> Any:
        """The loss and its gradient, which like quimb's is not conjugated back: it goes uphill."""
        value, slopes = self._both(self._ours(arrays))
        return value.numpy(), _numpy(slopes)

    def hessp(self, primals: Any, tangents: Any) -> Any:
        """The Hessian times a vector."""
        return _numpy(self._hvp(self._ours(primals), self._ours(tangents)))

    def _ours(self, arrays: Any) -> Any:
        return nest.map_structure(self.to_constant, arrays)


def _numpy(tensors: Any) -> Any:
    return nest.map_structure(lambda t: t.numpy(), tensors)


optimize._BACKEND_HANDLERS["gpugrad"] = GpugradHandler
