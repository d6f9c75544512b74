"""Elementwise ops as generated kernels: the forward, and all gradients of a call at once.

Both are the op's own formulas, read as CUDA. What they give is what they give on NumPy arrays:
its dtypes are found by running them there on one element.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import BFLOAT16, HALF, NUMPY, SCALARS
from gpugrad.core.devices import formulas_on, gpu_count
from gpugrad.kernels.codegen.code import CODE, LIB, Code, NoCodeError
from gpugrad.kernels.codegen.elementwise import Elementwise, declined, kept
from gpugrad.kernels.codegen.text import NUMBERS

__all__ = [
    "composed",
    "first",
    "forward_of",
    "gradients",
    "gradients_of",
    "identity",
    "kind_of",
    "saved_kind",
]


enabled = True
"""Whether elementwise ops on a GPU run as generated kernels; else as the library's functions."""


@contextlib.contextmanager
def composed() -> Iterator[None]:
    """Run elementwise ops as the library's functions, in all threads: to compare, or in tests.

    >>> from gpugrad.kernels.codegen import for_ops
    >>> with for_ops.composed():
    ...     pass  # what runs on a GPU here runs no generated kernel
    """
    global enabled
    before, enabled = enabled, False
    try:
        yield
    finally:
        enabled = before


_ROUNDED: dict[type, type] = {BFLOAT16.type: float, np.float32: float, np.bool_: bool}


def kind_of(value: Any) -> Any:
    """On what a kernel depends: an array's dtype, a Python number's type.

    What was rounded to bfloat16, and may be in float32 or compared since, is a number too.
    """
    kind = type(value)
    if kind in SCALARS:
        return kind
    return _ROUNDED.get(kind) or value.dtype


def saved_kind(value: Any) -> Any:
    """`kind_of` of a value that a tape saved; what is no value, as a shape, in a tuple."""
    return kind_of(value) if hasattr(value, "strides") or type(value) in SCALARS else (value,)


def _one(kind: Any, bfloat16: bool) -> Any:
    """An element of that kind, to run a formula on."""
    if kind not in SCALARS:
        return np.ones(1, kind)
    return BFLOAT16.type(1) if bfloat16 and kind in (int, float) else kind(1)


# ---- forward -----------------------------------------------------------------------------


def forward_of(op: Any, kinds: Sequence[Any]) -> Elementwise:
    """The kernel of an op for dtypes, or types of Python numbers.

    Raises:
        NoCodeError: its formula has none.
    """

    def formula(*codes: Code) -> list[Any]:
        made = _read(getattr(CODE, op.name), *codes)
        # such an op returns its argument, without a copy; positive alone promises a new array
        if any(made is c for c in codes) and op.name != "positive":
            raise NoCodeError(f"{op.name} changes nothing")
        return [made]

    ones = [_one(k, BFLOAT16 in kinds) for k in kinds]
    with np.errstate(all="ignore"):
        dtype = _read(op.bare(NUMPY), *ones).dtype
    return Elementwise(op.name, kinds, formula, [dtype])


def _read(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:  # if it is an error, the formula itself raises it too
        raise NoCodeError(str(error)) from error


def first(op: Any, formula: Callable[..., Any]) -> Callable[..., Any]:
    """An op on bare device arrays: its kernel where it has one, else the formula."""
    kernels: dict[Any, Elementwise | None] = {}
    ready: dict[Any, Callable[[Sequence[Any]], Any]] = {}

    def prepared(args: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
        kinds = tuple(map(kind_of, args))
        if kinds not in kernels:
            try:
                kernels[kinds] = forward_of(op, kinds)
            except NoCodeError:
                kernels[kinds] = None
        kernel = kernels[kinds]
        return declined if kernel is None else kernel.prepared(args)

    def generated_first(*args: Any) -> Any:
        if not enabled:
            return formula(*args)
        key = tuple([  # all that the launch depends on, so that the next one only looks for it
            type(a) if type(a) in NUMBERS else (a.dtype, a.shape, a.strides, a.data.ptr & 15)
            for a in args
        ])  # fmt: skip
        run = ready.get(key) or kept(ready, key, prepared(args))
        made = run(args)
        return formula(*args) if made is NotImplemented else made[0]

    return generated_first


# ---- backward ----------------------------------------------------------------------------

_backward: dict[Any, Elementwise | None] = {}


def identity(xp: Any, g: Any, saved: Any, params: Any) -> Any:
    """The rule of an input whose gradient is the cotangent itself."""
    return g


def gradients_of(
    op: Any, rules: Sequence[Any], at: Sequence[int], kind: Any, saved: Sequence[Any],
    dtypes: Sequence[Any],
) -> Elementwise:  # fmt: skip
    """The kernel of some gradients of an op.

    Args:
        op: the record.
        rules: of all inputs: the op's, or those for a masked pass.
        at: the positions of the inputs whose gradients are wanted.
        kind: dtype of the cotangent.
        saved: what the rules read: dtypes and types of numbers in the place of values, and in a
            tuple of one what is no value.
        dtypes: of the gradients; None for what the formula gives.

    Raises:
        NoCodeError: a rule is no straight line of CUDA.
    """
    kinds = [kind, *(s for s in saved if type(s) is not tuple)]

    def formula(g: Code, *values: Code) -> list[Any]:
        rest = iter(values)
        own = [_widened(s[0]) if type(s) is tuple else next(rest) for s in saved]
        made = [_read(rules[k], CODE, g, own, None) for k in at]
        return [
            LIB.real(m) if type(m) is Code and m.dtype.kind == "c" and d.kind != "c" else m
            for m, d in zip(made, found, strict=True)
        ]

    ones = [s[0] if type(s) is tuple else _one(s, BFLOAT16 in kinds) for s in saved]
    with np.errstate(all="ignore"):
        found = [
            d or _read(rules[k], NUMPY, np.ones(1, kind), ones, None).dtype
            for k, d in zip(at, dtypes, strict=True)
        ]
    name = "_".join((op.name, "by" if rules is op.rules else "masked", *(op.arrays[k] for k in at)))
    return Elementwise(name, kinds, formula, found)


def _widened(value: Any) -> Any:
    return np.dtype(np.float32) if value in HALF else value


_ready: dict[Any, tuple[list[int], list[int], Callable[[Sequence[Any]], Any]]] = {}


def gradients(
    op: Any, rules: Sequence[Any], g: Any, saved: Sequence[Any], fits: Sequence[Any],
    wanted: Sequence[bool],
) -> tuple[Sequence[Any], Sequence[Any]]:  # fmt: skip
    """The rules and fits of one call, where the gradients that are wanted are known already.

    One kernel reads the cotangent and what was saved once, and writes all gradients, those of
    broadcast inputs summed. What cannot be so is left to the rules.
    """
    if not enabled or type(g) is tuple:
        return rules, fits
    given = [g, *saved]
    key = op, rules is op.rules, tuple(wanted), tuple(fits), tuple([
        type(a) if type(a) in NUMBERS
        else (a.dtype, a.shape, a.strides, a.data.ptr & 15) if hasattr(a, "strides") else (a,)
        for a in given
    ])  # fmt: skip
    at, values, run = _ready.get(key) or kept(
        _ready, key, _prepared(op, rules, given, fits, wanted)
    )
    if not at:
        return rules, fits
    given = [given[k] for k in values]
    if gpu_count() > 1:
        with formulas_on(g):
            made = run(given)
    else:
        made = run(given)
    if made is NotImplemented:
        return rules, fits
    rules, fits = list(rules), list(fits)
    for k, gradient in zip(at, made, strict=True):
        rules[k], fits[k] = _known(gradient), None
    return rules, fits


def _prepared(
    op: Any, rules: Sequence[Any], given: Sequence[Any], fits: Sequence[Any], wanted: Sequence[bool]
) -> tuple[list[int], list[int], Callable[[Sequence[Any]], Any]]:
    """Inputs whose gradients a kernel gives, which of `given` it takes, and what launches it."""
    at = [k for k, w in enumerate(wanted) if w and not (rules[k] is identity and fits[k] is None)]
    if not at:
        return [], [], declined
    kind, *kinds = map(saved_kind, given)
    fitted = [fits[k] or (None, None) for k in at]
    key = tuple([rules[k] for k in at]), kind, tuple(kinds), tuple([dtype for _, dtype in fitted])
    if key not in _backward:
        try:
            _backward[key] = gradients_of(op, rules, at, kind, kinds, key[3])
        except NoCodeError:
            _backward[key] = None
    kernel = _backward[key]
    if kernel is None:
        return [], [], declined
    values = [0, *(k for k, kind in enumerate(kinds, 1) if type(kind) is not tuple)]
    return at, values, kernel.prepared([given[k] for k in values], [shape for shape, _ in fitted])


def _known(gradient: Any) -> Callable[..., Any]:
    """A rule whose gradient is there."""
    return lambda xp, g, saved, params: gradient
