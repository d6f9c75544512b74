"""The fields of an op record, in groups. Each default is right for an op that a user declares.

`gpugrad.registry.record.Op` has all of these fields as attributes, but for the rules, which it
keeps in `declared`: a tape reads them bound to the op.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["GROUPS", "Checks", "Forward", "Gradient", "Replay", "Rule", "Rules", "defaults"]

Rule = Callable[..., Any]

_group = dataclasses.dataclass(init=False, eq=False, repr=False, frozen=True)


@dataclasses.dataclass(eq=False, frozen=True)
class Rules:
    """Derivative rules, as they are declared.

    Attributes:
        vjp: one rule ``(xp, g, names...)`` for each array argument; None where there is no
            gradient, ``...`` where the rule is not known (then asking for it raises). Or one rule
            for all, which gives a tuple of all gradients where one pass over the arrays finds them
            together; that of a variadic op is told the input's position ``i`` instead.
        jvp: rules ``(xp, t, names...)``, whose results add up, for an op of one result. None makes
            them by transposing.
        masked: rules to take instead where a gradient has come out NaN: of a cotangent of 0 they
            give 0, also beside an infinite factor. None is `vjp`.
        d: of an elementwise op, one partial derivative for each input: a number, or a function
            ``(xp, names...)``.
    """

    vjp: Sequence[Any] | Rule | None = None
    jvp: Sequence[Any] | None = None
    masked: Sequence[Any] | None = None
    d: Sequence[Any] | None = None


@_group
class Gradient:
    """What a tape asks.

    Attributes:
        differentiable: False says that the gradient is None.
        linear: True if the op is linear in its arrays taken together: its JVP is itself. ``"each"``
            if it is linear in each array alone (a product).
        singular: partials can be infinite; a gradient of exactly 0 then stays 0.
        outputs: number of results; more than 1 makes a tuple, and ``g`` is one too.
        unused: positions in it where a rule takes None for a result that nothing was made of; at
            the others it gets zeros.
        variadic: the one array argument is a list of arrays.
        kinds: of dtype that the op takes: ``f`` float, ``c`` complex, ``i`` int, ``b`` bool.
            Without ``c`` complex arguments are refused under a tape, unless the op is linear.
    """

    differentiable: bool = True
    linear: bool | str = False
    singular: bool = False
    outputs: int = 1
    unused: Sequence[int] = ()
    variadic: bool = False
    kinds: str = "f"


@_group
class Forward:
    """How the forward runs.

    Attributes:
        native_half: it gets 16-bit floats as they are.
        cuda: the launcher of a kernel for it, ``(xp, *arrays, **params)`` of plain arrays, which
            returns what the forward does, or NotImplemented for arguments that the kernel does not
            take. It runs first on CuPy arrays.
        batch: how `gg.vmap` runs a primitive, where every array may have a batch axis in front:
            ``"stack"`` (the op takes stacks: axes in front of those that it works on, broadcast
            against each other), ``"axis"`` (it works along its argument ``axis``), ``"loop"`` (one
            example at a time), or a formula ``(xp, batched, *arrays, **params)`` that gets arrays
            whose axis 0 is the batch where `batched` (a tuple of bools) says so, and gives results
            with it. None is ``"loop"``. Composites need none.
        opaque: a traced function keeps a composite as one step, for its kernel's sake, where others
            become the steps of their bodies; or a function of the arguments that says so.
    """

    native_half: bool = False
    cuda: Callable[..., Any] | None = None
    batch: Any = None
    opaque: bool | Callable[..., bool] = False


@_group
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


@_group
class Checks:
    """What `gpugrad.testing.check_op` asks.

    Attributes:
        samples: function of a NumPy random generator that yields (arguments, keywords).
        ref: the function on NumPy arrays that the forward must equal, or its dotted name; NumPy's
            function of the op's name if None.
        errors: calls that must fail: (arguments, keywords, exception class, words).
    """

    samples: Any = None
    ref: Any = None
    errors: Sequence[Any] = ()


GROUPS: tuple[Any, ...] = (Rules, Gradient, Forward, Replay, Checks)


@functools.cache
def defaults() -> Mapping[str, Any]:
    """The default of every field, by name."""
    return {field.name: field.default for group in GROUPS for field in dataclasses.fields(group)}
