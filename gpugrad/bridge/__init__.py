"""Functions of torch and JAX as functions of Tensors, and the reverse: differentiable across.

Arrays pass through DLPack and share their memory. Neither side sees writes of the other: gpugrad
copies before it writes, torch raises if an argument is written to before the backward pass, and JAX
never writes. torch and JAX are imported by the first call.

A gradient crosses as often as it has to: gradients of gradients too. `gpugrad.function` and
`gpugrad.vmap` cannot look into a function of torch or JAX, and raise.
"""

from gpugrad.bridge.jax import from_jax, to_jax
from gpugrad.bridge.torch import from_torch, to_torch

__all__ = ["from_jax", "from_torch", "to_jax", "to_torch"]


def __dir__() -> list[str]:
    return __all__
