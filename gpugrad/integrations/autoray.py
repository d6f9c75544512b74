"""autoray on Tensors: ``autoray.do("linalg.svd", x)`` finds gpugrad's functions.

Leans on `autoray.register_function`, `register_module_alias` and `register_backend`. Names and
arguments are those of `gpugrad.numpy`, and creation functions put arrays of ``like=`` on its
device. Tried with autoray 0.9.1.

>>> import gpugrad.integrations.autoray  # doctest: +SKIP
>>> autoray.do("linalg.svd", gg.ones((4, 2)))[0].shape  # doctest: +SKIP
(4, 2)
"""

from __future__ import annotations

from typing import Any

import gpugrad as gg
from gpugrad.core.views import Element, Shared, View
from gpugrad.integrations.library import library, np

autoray = library("autoray.autoray", "autoray", "0.9.1")


def _svd(x: Any, full_matrices: bool = False, **keywords: Any) -> Any:
    """The singular value decomposition, thin as in autoray's other backends."""
    return gg.linalg.svd(x, full_matrices=full_matrices, **keywords)


def _solve_triangular(a: Any, b: Any, lower: bool = False, **keywords: Any) -> Any:
    """The solution with a triangular matrix, upper by default as in SciPy."""
    return gg.linalg.solve_triangular(a, b, lower=lower, **keywords)


def _default_rng(seed: Any = None, **keywords: Any) -> Any:
    """The generator of a seed, or a generator itself."""
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)


for kind in (gg.Tensor, gg.Variable, Element, Shared, View, np.random.Generator):
    autoray.register_backend(kind, "gpugrad")
autoray.register_module_alias(
    "gpugrad.scipy", "gpugrad.scipy"
)  # before the next, which is a prefix
autoray.register_module_alias("gpugrad", "gpugrad.numpy")
for name, function in {
    "to_numpy": lambda x: x.numpy(),
    "complex": lambda re, im: re + 1j * im,
    "linalg.svd": _svd,
    "scipy.linalg.expm": gg.linalg.expm,
    "scipy.linalg.solve_triangular": _solve_triangular,
    "stop_gradient": gg.stop_gradient,
    "random.default_rng": _default_rng,
}.items():
    autoray.register_function("gpugrad", name, function)
