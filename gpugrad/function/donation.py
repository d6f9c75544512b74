"""Donated arguments: Tensors whose memory a call may reuse.

A call releases a donated array after the last step that reads it, so that later steps can reuse
its memory; but not before the last step that may make the function be called instead. Anything else
that sees the array (a view, a tape, another Tensor) keeps it alive: nothing is ever overwritten.
The Tensor passed is always empty afterwards, so a program that uses it again fails the same way
everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from gpugrad.core.backend import READINGS, Reading
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError


class Donated:
    """The content of a donated Tensor; every use raises."""

    __slots__ = ("_to",)
    donated = True

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


class _DonatedReading(Reading):
    """Refuses every op, because the arrays are gone."""

    nesting = 1

    def function_of(self, op: Any) -> Callable[..., NoReturn]:

        def refuse(*args: Any, **keywords: Any) -> NoReturn:
            for a in args:
                for array in a if isinstance(a, (list, tuple)) else [a]:
                    if type(array) is Donated:
                        array._refuse()
            raise ArgumentError(f"{op.name}: an argument was donated.")

        return refuse


READINGS[Donated] = _DonatedReading("donated")


def releaser(tensors: Sequence[Tensor], name: str) -> Callable[[], None]:
    """The function that takes the arrays out of Tensors donated to the function `name`."""

    def release() -> None:
        for t in tensors:
            t._data = Donated(name)

    return release
