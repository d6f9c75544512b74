"""The fields of an op record, in groups. Each default is right for an op that a user declares."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

__all__ = ["Replay"]


@dataclasses.dataclass(eq=False, kw_only=True)
class Replay:
    """What the passes and the replays of `gg.function` ask.

    Attributes:
        captures: whether a CUDA graph may hold the forward. A captured forward runs once in Python,
            and later launches repeat its kernels on the same memory. So it may not read values on
            the host, and may not copy arrays from the host: a graph keeps only their address. (An
            FFT may not be captured either: CuPy may drop its plan and its work area.) A function of
            the step's arguments decides for each step: traced arrays have a shape and a dtype
            there. None: true with a `cuda` launcher, for a `view`, and for an elementwise op that
            is a function of the library or whose formula reads as CUDA. A primitive or composite
            without a launcher is captured only where all of its arguments are arrays: a number is
            copied from the host.
        view: how the elements of the result lie in the memory of the argument, if the op moves
            none: ``"reshape"`` (all of them, in the same order), ``"broadcast"`` (repeated by
            NumPy's rules) or ``"strides"`` (in another order, or some of them). It may copy where
            the memory does not allow a view.
        by_element: True if each element of the result is a formula of the arrays' elements in its
            place, and of metadata. Always true of an elementwise op.
        reduces: ``"sum"``, ``"mean"``, ``"max"`` or ``"min"``, if that is what the op computes
            along ``axis``; without such an argument, along the axes that the result lacks.
        cost: how many functions such as exp an element costs where a kernel recomputes the op
            instead of reading its result: 0 for arithmetic. None: never recompute it there.
        length_by_values: True if the values of the first array decide the shape of the result;
            ``"index"`` if masks in an index do.
        overwrites: position of the array that the `cuda` launcher, called with ``over=True``,
            writes the result over. None if it cannot.
    """

    captures: bool | Callable[..., bool] | None = None
    view: str | None = None
    by_element: bool = False
    reduces: str | None = None
    cost: int | None = None
    length_by_values: bool | str = False
    overwrites: int | None = None
