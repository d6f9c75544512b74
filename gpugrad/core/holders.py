"""Objects of other libraries that hold a Tensor: they return it by ``__gpugrad_tensor__``."""

from __future__ import annotations

from typing import Any

from gpugrad.errors import DTypeError

HOLDER = "__gpugrad_tensor__"
"""The method that returns the Tensor or Variable itself; it gets the wanted dtype, or None."""


def opened(x: Any, dtype: Any = None) -> Any:
    """`x`, or the Tensor that it holds."""
    ask = getattr(type(x), HOLDER, None)
    if ask is None:
        return x
    held = ask(x, dtype)
    if not hasattr(type(held), "_read"):  # only Tensors have it
        raise DTypeError(
            f"{type(x).__name__}.{HOLDER}: it must return a Tensor or a Variable, it returned "
            f"{held!r:.60}."
        )
    return held
