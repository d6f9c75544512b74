"""The fields of an op record, in groups. Each default is right for an op that a user declares.

`gpugrad.registry.record.Op` has all of these fields as attributes, except the rules, which it keeps
in `declared`: a tape reads them bound to the op.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Rule = Callable[..., Any]

_group = dataclasses.dataclass(init=False, eq=False, repr=False, frozen=True)


@dataclasses.dataclass(eq=False, frozen=True)
class Rules:
    """Derivative rules, as declared.

    Attributes:
        vjp: one rule ``(xp, g, names...)`` for each array argument; None if there is no gradient,
            ``...`` if the rule is unknown (requesting that gradient raises). Or one rule for all,
            which returns a tuple of all gradients, if one pass over the arrays computes them
            together. The rule of a variadic op gets the input's position ``i`` instead.
        jvp: rules ``(xp, t, names...)``, whose results add up, for an op with one result. None
            transposes the VJP.
        masked: rules for a second pass after a NaN gradient: they map a cotangent of 0 to 0, also
            with an infinite factor. None means `vjp`.
        d: partial derivatives of an elementwise op, one for each input: a number, or a function
            ``(xp, names...)``.
    """

    vjp: Sequence[Any] | Rule | None = None
    jvp: Sequence[Any] | None = None
    masked: Sequence[Any] | None = None
    d: Sequence[Any] | None = None


@_group
class Gradient:
    """Fields that a tape reads.

    Attributes:
        differentiable: False if the gradient is None.
        linear: True if the op is jointly linear in its arrays: its JVP is the op itself. ``"each"``
            if it is linear in each array separately (a product).
        singular: whether partials can be infinite; a gradient that a mask made 0 then stays 0.
        outputs: number of results; if more than 1, the result and ``g`` are tuples.
        unused: positions in ``g`` where a rule accepts None for the gradient of an unused result;
            at the others it gets zeros.
        variadic: whether the only array argument is a list of arrays.
        kinds: kinds of dtype that the op takes: ``f`` float, ``c`` complex, ``i`` int, ``b`` bool.
            Without ``c``, complex arguments raise under a tape, unless the op is linear.
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
        native_half: whether it gets 16-bit floats without a cast. ``"wide"``: it does, and its
            results are float32 or complex64 then.
        cuda: the launcher of a kernel for it, ``(xp, *arrays, **params)`` of plain arrays, which
            returns the forward's results, or NotImplemented for arguments that the kernel does not
            take. It runs first on CuPy arrays.
        cpu: the same for NumPy arrays: the launcher of a C kernel. It gets 16-bit floats in
            float32, unless `native_half` is set. True if the op's own formula, and those of its
            gradients, are written as one loop in C: `gpugrad.kernels.cpu.elementwise`.
        large: the least size of the first array that the `cpu` launcher is called with; by default
            0. If `cpu` is True, 2^17 for a ufunc of NumPy and 2^13 for other formulas: a loop for
            smaller arrays is not worth its compilation.
        numpy: the forward of an elementwise op on NumPy arrays, ``(*arrays, out=None)``, if it is
            another than the formula. It gets 16-bit floats, too. A replay passes a buffer as `out`
            if all arrays have its dtype, float32 or float64, and its shape, and share no memory
            with it.
        batch: how `gg.vmap` runs a primitive, whose arrays may each have a batch axis in front:
            ``"stack"`` (the op broadcasts any axes in front of those that it works on),
            ``"matrices"`` (the same, for matrices in the last two axes), ``"axis"`` (it works along
            its arguments ``axis``, ``axes``, ``axis1``, ``axis2``, ``source`` and ``destination``,
            if it has any), ``"loop"`` (one example at a time), or a formula
            ``(xp, batched, *arrays, **params)`` that gets arrays with the batch as axis 0, as
            `batched` (a tuple of bools) says for each, and returns results with the batch as axis
            0. None means ``"loop"``. Composites need none.
        writes: for an op whose result is a view of `x` in NumPy: the formula of `x` after a write
            through that view, ``(xp, x, part, **params)``, where `part` is the view's new value.
        mixed: what `gg.mixed_precision` does with floating-point arguments: ``"half"`` casts
            float32 to the 16-bit dtype, ``"float32"`` casts 16-bit floats to float32. None leaves
            them.
        opens: where `gg.function` writes the steps of the op's formula instead of the op, so that
            kernels fuse them with their neighbours. The formula must then consist of ops.
            ``"traced"``: at once, in the trace. ``"kernels"``: where kernels are generated, on a
            GPU or in C. ``"c"``: in C alone, because a GPU has a kernel of the op's own. None:
            nowhere. ``"effect"``: nowhere, and each replay calls the op in the order of the steps,
            because its result depends on more than its arguments. Or a function of the arguments
            that returns one of these: values of the program have a shape and a dtype there. Only
            composites can be opened in the trace.
    """

    native_half: bool | str = False
    cuda: Callable[..., Any] | None = None
    cpu: Callable[..., Any] | bool | None = None
    large: int | None = None
    numpy: Callable[..., Any] | None = None
    batch: Any = None
    writes: Callable[..., Any] | None = None
    mixed: str | None = None
    opens: str | Callable[..., str | None] | None = "traced"


@_group
class Replay:
    """Fields that the passes and the replays of `gg.function` read.

    Attributes:
        captures: whether a CUDA graph may hold the forward. A captured forward runs once in Python,
            and later launches repeat its kernels on the same memory. So it may not read values on
            the host, and may not copy arrays from the host: a graph keeps only their address. (An
            FFT may not be captured either: CuPy may drop its plan and its work area.) A function of
            the step's arguments decides for each step: traced arrays have a shape and a dtype
            there. None: true with a `cuda` launcher, for a `view`, and for an elementwise op that
            is a library function or whose formula can be written as CUDA. A primitive or composite
            without a launcher is captured only if all of its arguments are arrays: a number is
            copied from the host.
        view: how the elements of the result lie in the memory of the argument, if the op moves
            none: ``"reshape"`` (all, in the same order), ``"broadcast"`` (repeated by NumPy's
            rules) or ``"strides"`` (in another order, or only some). The op may copy if the memory
            does not allow a view.
        by_element: whether each element of the result is a formula of the arrays' elements at the
            same place, and of metadata. Always true for an elementwise op.
        reduces: ``"sum"``, ``"mean"``, ``"max"`` or ``"min"``, if the op computes that along
            ``axis`` or, without such an argument, along the axes that the result lacks.
        cost: number of functions such as exp per element, if a kernel recomputes the op instead of
            reading its result: 0 for arithmetic. None: never recompute it.
        length_by_values: True if the values of the first array determine the result's shape;
            ``"index"`` if masks in an index do.
        overwrites: position of the array that the `cuda` launcher, or without one the `cpu`
            launcher, overwrites with the result if called with ``over=True``. None if it cannot.
        c_call: how C kernels on the CPU compute the op between them, without Python. It is called
            as the `cpu` launcher, with values that have a shape and a dtype, and after them the
            arrays in the index. It returns the address of
            ``void f(const long* numbers, const void* a, const void* b, void* out)``, for two
            contiguous arrays, and the numbers; a `gpugrad.kernels.cpu.moves.Function`; or
            NotImplemented.
    """

    captures: bool | Callable[..., bool] | None = None
    view: str | None = None
    by_element: bool = False
    reduces: str | None = None
    cost: int | None = None
    length_by_values: bool | str = False
    overwrites: int | None = None
    c_call: Callable[..., Any] | None = None


@_group
class Checks:
    """Fields that `gpugrad.testing.check_op` reads.

    Attributes:
        samples: function of a NumPy random generator that yields (arguments, keywords).
        ref: the function on NumPy arrays that the forward must equal, or its dotted name; NumPy's
            function of the op's name if None.
        errors: calls that must fail: (arguments, keywords, exception class, words of the message).
    """

    samples: Any = None
    ref: Any = None
    errors: Sequence[Any] = ()


GROUPS: tuple[Any, ...] = (Rules, Gradient, Forward, Replay, Checks)


@functools.cache
def defaults() -> Mapping[str, Any]:
    """The default of every field, by name."""
    return {field.name: field.default for group in GROUPS for field in dataclasses.fields(group)}
