"""Generated kernels of elementwise ops: the forward, and all gradients of a call at once.

Both are the op's own formulas, read as CUDA. Running a formula on one-element NumPy arrays gives
the dtypes of its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import BFLOAT16, HALF, NUMPY, SCALARS
from gpugrad.core.devices import formulas_on, gpu_count
from gpugrad.kernels.codegen.code import Code, NoCodeError, read
from gpugrad.kernels.codegen.code_reading import CODE, LIB
from gpugrad.kernels.codegen.element_kernel import NUMBERS
from gpugrad.kernels.codegen.elementwise import Elementwise, decline, remember

_ROUNDED: dict[type, type] = {BFLOAT16.type: float, np.float32: float, np.bool_: bool}


def kind_of(value: Any) -> Any:
    """The part of an argument that a kernel depends on: an array's dtype, or a number's type.

    A scalar rounded to bfloat16 counts as a Python number, also after a cast or a comparison.
    """
    kind = type(value)
    if kind in SCALARS:
        return kind
    return _ROUNDED.get(kind) or value.dtype


def saved_kind(value: Any) -> Any:
    """`kind_of` a value that a tape saved; anything else, as a shape, in a tuple of one."""
    return kind_of(value) if hasattr(value, "strides") or type(value) in SCALARS else (value,)


def _sample_of(kind: Any, bfloat16: bool) -> Any:
    """A one-element array or a number of that kind, to run a formula on."""
    if kind not in SCALARS:
        return np.ones(1, kind)
    return BFLOAT16.type(1) if bfloat16 and kind in (int, float) else kind(1)


# ---- forward -----------------------------------------------------------------------------


def forward_of(op: Any, kinds: Sequence[Any]) -> Elementwise:
    """The kernel of an op for dtypes or types of Python numbers.

    Raises:
        NoCodeError: the formula is not straight-line CUDA.
    """

    def formula(*codes: Code) -> list[Any]:
        result = read(getattr(CODE, op.name), *codes)
        # such an op returns its argument, without a copy; positive alone promises a new array
        if any(result is c for c in codes) and op.name != "positive":
            raise NoCodeError(f"{op.name} changes nothing")
        return [result]

    ones = [_sample_of(k, BFLOAT16 in kinds) for k in kinds]
    with np.errstate(all="ignore"):
        dtype = read(op.bare(NUMPY), *ones).dtype
    return Elementwise(op.name, kinds, formula, [dtype])


def kernel_first(op: Any, formula: Callable[..., Any]) -> Callable[..., Any]:
    """An op on CuPy arrays: its generated kernel if it exists, else the formula."""
    kernels: dict[Any, Elementwise | None] = {}
    ready: dict[Any, Callable[[Sequence[Any]], Any]] = {}

    def prepare(args: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
        if all(type(a) in NUMBERS for a in args):  # a rule's: there is no array to compute
            return decline
        kinds = tuple(map(kind_of, args))
        if kinds not in kernels:
            try:
                kernels[kinds] = forward_of(op, kinds)
            except NoCodeError:
                kernels[kinds] = None
        kernel = kernels[kinds]
        return decline if kernel is None else kernel.prepare(args)

    def generated_first(*args: Any) -> Any:
        # everything that the launch depends on, so that the next launch is one lookup
        layouts = [
            type(a) if type(a) in NUMBERS else (a.dtype, a.shape, a.strides, a.data.ptr & 15)
            for a in args
        ]
        key = tuple(layouts)
        run = ready.get(key) or remember(ready, key, prepare(args))
        results = run(args)
        return formula(*args) if results is NotImplemented else results[0]

    return generated_first


# ---- backward ----------------------------------------------------------------------------

_backward: dict[Any, Elementwise | None] = {}


def identity(xp: Any, g: Any, saved: Any, params: Any) -> Any:
    """The rule of an input whose gradient is the cotangent itself."""
    return g


def gradients_of(
    op: Any,
    rules: Sequence[Any],
    at: Sequence[int],
    kind: Any,
    saved: Sequence[Any],
    dtypes: Sequence[Any],
) -> Elementwise:
    """The kernel of some gradients of an op.

    Args:
        op: the record.
        rules: the rules of all inputs: the op's, or those of a masked pass.
        at: indices of the inputs whose gradients are wanted.
        kind: dtype of the cotangent.
        saved: `saved_kind` of each value that the rules read.
        dtypes: dtypes of the gradients; None for the dtype that the formula gives.

    Raises:
        NoCodeError: a rule is not straight-line CUDA.
    """
    kinds = [kind, *(s for s in saved if type(s) is not tuple)]

    def formula(g: Code, *values: Code) -> list[Any]:
        rest = iter(values)
        own = [_widen_dtype(s[0]) if type(s) is tuple else next(rest) for s in saved]
        grads = [read(rules[k], CODE, g, own, None) for k in at]
        return [
            LIB.real(x) if type(x) is Code and x.dtype.kind == "c" and d.kind != "c" else x
            for x, d in zip(grads, out_dtypes, strict=True)
        ]

    ones = [s[0] if type(s) is tuple else _sample_of(s, BFLOAT16 in kinds) for s in saved]
    with np.errstate(all="ignore"):
        out_dtypes = [
            d or read(rules[k], NUMPY, np.ones(1, kind), ones, None).dtype
            for k, d in zip(at, dtypes, strict=True)
        ]
    name = "_".join((op.name, "by" if rules is op.rules else "masked", *(op.arrays[k] for k in at)))
    return Elementwise(name, kinds, formula, out_dtypes)


def _widen_dtype(value: Any) -> Any:
    return np.dtype(np.float32) if value in HALF else value


_ready: dict[Any, tuple[list[int], list[int], Callable[[Sequence[Any]], Any]]] = {}


def gradients(
    op: Any,
    rules: Sequence[Any],
    g: Any,
    saved: Sequence[Any],
    fits: Sequence[Any],
    wanted: Sequence[bool],
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Compute the wanted gradients of a call in one kernel; return new rules and fits.

    The kernel reads the cotangent and the saved values once and writes all gradients, summed for
    broadcast inputs. The new rules return these gradients. Where there is no kernel, `rules` and
    `fits` are returned unchanged.
    """
    if type(g) is tuple:
        return rules, fits
    values = [g, *saved]
    layouts: list[Any] = []
    for a in values:
        if type(a) in NUMBERS:
            layouts.append(type(a))
        elif hasattr(a, "strides"):
            layouts.append((a.dtype, a.shape, a.strides, a.data.ptr & 15))
        else:
            layouts.append((a,))
    key = op, rules is op.rules, tuple(wanted), tuple(fits), tuple(layouts)
    at, used, run = _ready.get(key) or remember(
        _ready, key, _prepare_gradients(op, rules, values, fits, wanted)
    )
    if not at:
        return rules, fits
    args = [values[k] for k in used]
    if gpu_count() > 1:
        with formulas_on(g):
            grads = run(args)
    else:
        grads = run(args)
    if grads is NotImplemented:
        return rules, fits
    rules, fits = list(rules), list(fits)
    for k, gradient in zip(at, grads, strict=True):
        rules[k], fits[k] = _constant_rule(gradient), None
    return rules, fits


def _prepare_gradients(
    op: Any,
    rules: Sequence[Any],
    values: Sequence[Any],
    fits: Sequence[Any],
    wanted: Sequence[bool],
) -> tuple[list[int], list[int], Callable[[Sequence[Any]], Any]]:
    """Indices of inputs that get a gradient, indices of `values` that are used, and the launch."""
    at = [k for k, w in enumerate(wanted) if w and not (rules[k] is identity and fits[k] is None)]
    if not at:
        return [], [], decline
    kind, *kinds = map(saved_kind, values)
    fitted = [fits[k] or (None, None) for k in at]
    key = tuple([rules[k] for k in at]), kind, tuple(kinds), tuple([dtype for _, dtype in fitted])
    if key not in _backward:
        try:
            _backward[key] = gradients_of(op, rules, at, kind, kinds, key[3])
        except NoCodeError:
            _backward[key] = None
    kernel = _backward[key]
    if kernel is None:
        return [], [], decline
    used = [0, *(k for k, kind in enumerate(kinds, 1) if type(kind) is not tuple)]
    return at, used, kernel.prepare([values[k] for k in used], [shape for shape, _ in fitted])


def _constant_rule(gradient: Any) -> Callable[..., Any]:
    """A rule that returns a gradient computed before."""
    return lambda xp, g, saved, params: gradient
