"""Donated arguments: Tensors that a call takes the memory of.

A call lets go of a donated array after its last step that reads it, so that what comes next may
have its memory; but not before the last step that can find that the function must be called
instead. Whatever else sees the array, a view, a tape, another Tensor, keeps it alive: nothing
is ever written over. The Tensor that was given is empty in every case, so that a program which
uses it again fails the same way everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from gpugrad.core.backend import NAMESPACES, Namespace
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError

__all__ = ["emptied"]

DONATED = Namespace("donated", wraps=1)


class Donated:
    """What is in a Tensor that was donated."""

    __slots__ = ("_to",)

    def __init__(self, to: str) -> None:
        self._to = to

    def _refuse(self) -> NoReturn:
        raise ArgumentError(
            f"This Tensor was donated to {self._to}, which has taken its memory. Use what the call "
            "returned, or leave the argument out of donate=."
        )

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()

    def __repr__(self) -> str:
        return f"<donated to {self._to}>"


def _refusing(op: Any) -> Callable[..., NoReturn]:
    def run(*args: Any, **keywords: Any) -> NoReturn:
        for a in args:
            for array in a if isinstance(a, (list, tuple)) else [a]:
                if type(array) is Donated:
                    array._refuse()
        raise ArgumentError(f"{op.name}: an argument was donated.")

    return run


DONATED.of = _refusing
NAMESPACES[Donated] = DONATED


def emptied(tensors: Sequence[Tensor], name: str) -> Callable[[], None]:
    """What takes the arrays out of Tensors that were donated to a function."""

    def release() -> None:
        for t in tensors:
            t._data = Donated(name)

    return release
