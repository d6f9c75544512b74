"""einops on Tensors: ``rearrange``, ``reduce``, ``repeat``, ``einsum``, ``pack`` and ``unpack``.

Leans on `einops._backends.AbstractBackend`, whose subclasses einops asks for the arrays that it
does not know. Tried with einops 0.8.2.

>>> import gpugrad.integrations.einops  # doctest: +SKIP
>>> einops.reduce(gg.ones((2, 3)), "a b -> a", "sum")  # doctest: +SKIP
Tensor([3., 3.], shape=(2,), dtype=float32, device=cpu)
"""

from __future__ import annotations

from typing import Any

import gpugrad as gg
from gpugrad.integrations.library import library

_Base: Any = library("einops._backends", "einops", "0.8.2").AbstractBackend


class GpugradBackend(_Base):
    """The operations that einops makes of its patterns; methods have einops' names."""

    framework_name = "gpugrad"

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Whether an array is a Tensor, also a Variable."""
        return isinstance(tensor, gg.Tensor)

    from_numpy = staticmethod(gg.asarray)
    arange = staticmethod(gg.arange)
    stack_on_zeroth_dimension = staticmethod(gg.stack)
    tile = staticmethod(gg.tile)
    concat = staticmethod(gg.concat)
    add_axis = staticmethod(gg.expand_dims)
    transpose = staticmethod(gg.permute_dims)
    reshape = staticmethod(gg.reshape)
    einsum = staticmethod(gg.einsum)

    def to_numpy(self, x: Any) -> Any:
        """The values, without their gradient."""
        return x.numpy()

    def is_float_type(self, x: Any) -> bool:
        """Whether `mean` is allowed."""
        return gg.isdtype(x.dtype, "real floating")

    def reduce(self, x: Any, operation: str, axes: Any) -> Any:
        """A reduction by its name."""
        return getattr(gg, operation)(x, axis=tuple(axes))
