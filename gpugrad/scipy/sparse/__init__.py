"""SciPy's ``sparse`` on Tensors: arrays of differentiable entries at the places of a fixed pattern.

The data is a Tensor or a Variable on either device. Gradients live on the pattern: nothing has the
size of the full array. `linalg` solves systems and differentiates the solutions.

>>> data = gg.constant([2.0, 4.0])
>>> def energy(data):
...     a = gg.scipy.sparse.csr_array((data, ([0, 1], [0, 1])), shape=(2, 2))
...     return gg.sum(gg.scipy.sparse.linalg.spsolve(a, gg.ones(2)))
>>> print(gg.grad(energy)(data))
[-0.25   -0.0625]
"""

from __future__ import annotations

from scipy import sparse as _scipys

from gpugrad.scipy.signatures import lazy
from gpugrad.scipy.sparse import arrays, construct, csgraph, linalg

_NAMES = {**vars(construct), **vars(arrays), "csgraph": csgraph, "linalg": linalg}
_NAMES |= {name: getattr(_scipys, name) for name in ("SparseEfficiencyWarning", "SparseWarning")}
__all__ = sorted({"csgraph", "linalg"}.union(_scipys.__all__).intersection(_NAMES))


__getattr__, __dir__ = lazy(globals(), _NAMES.__getitem__)
