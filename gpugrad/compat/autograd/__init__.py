"""Autograd's names: a program for HIPS/autograd runs with one import changed, also on a GPU.

Numbers and arrays that are not differentiated stay NumPy's. Python floats are float64, and
gradients by complex numbers are not conjugated, as in autograd. `install` puts this package in
place of autograd, for libraries that import it.

>>> import gpugrad.compat.autograd.numpy as np
>>> from gpugrad.compat.autograd import grad, elementwise_grad
>>> def tanh(x):
...     return (1.0 - np.exp(-2 * x)) / (1.0 + np.exp(-2 * x))
>>> print(round(grad(tanh)(1.0), 4), elementwise_grad(elementwise_grad(tanh))(np.zeros(2)))
0.42 [0. 0.]
"""

# ruff: noqa: F401  # autograd's names
from __future__ import annotations

import sys

from gpugrad.compat.autograd import builtins, core, extend, numpy
from gpugrad.compat.autograd.builtins import dict, isinstance, list, tuple, type
from gpugrad.compat.autograd.core import primitive
from gpugrad.compat.autograd.differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from gpugrad.compat.names import AliasFinder, forwarding

__version__ = "1.9.1"
"""The version of autograd whose names these are, and whose own tests this was tried with."""


def install() -> None:
    """Let ``import autograd`` find this package, before anything has imported autograd.

    Raises:
        ImportError: autograd itself is imported already.

    >>> import gpugrad.compat.autograd
    >>> gpugrad.compat.autograd.install()
    >>> import autograd.numpy as np
    >>> print(np.tanh(0.0))
    0.0
    """
    loaded = sys.modules.get("autograd")
    if loaded is not None and loaded is not sys.modules[__name__]:
        raise ImportError(
            "gpugrad.compat.autograd.install: autograd is imported already. Call install() before "
            "the first import of autograd and of libraries that use it."
        )
    if loaded is None:
        sys.meta_path.insert(0, AliasFinder("autograd", __name__))
    sys.modules["autograd"] = sys.modules[__name__]


__getattr__, __dir__ = forwarding(__name__, own=globals(), submodules=("misc", "scipy"))
