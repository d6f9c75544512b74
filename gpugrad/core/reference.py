"""References to Tensors, which are not hashable by value."""

from __future__ import annotations

from typing import Any


class Reference:
    """A Tensor, compared and hashed by identity: see `Tensor.ref`."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def deref(self) -> Any:
        """The Tensor."""
        return self._tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._tensor is other._tensor

    def __hash__(self) -> int:
        return id(self._tensor)
