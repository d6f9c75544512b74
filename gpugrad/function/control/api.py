"""Branches and loops that depend on values: `cond`, `while_loop` and `scan`, as in JAX.

Outside a traced function they are Python's own ``if``, ``while`` and ``for``, so tapes,
accumulators and `vmap` see each op. In a traced function they are one step, with programs for the
branches and bodies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import levels_of, levels_running, unwrap_levels
from gpugrad.autodiff.borders import give_each_example
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core import devices, nest
from gpugrad.core.arguments import CALLABLE
from gpugrad.core.backend import TENSOR, innermost_array, is_array
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.holders import opened
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.views import View
from gpugrad.errors import ArgumentError, ShapeError, StructureError, saying_where
from gpugrad.function.control.choosing import Cond, While, iterate, last_of
from gpugrad.function.control.control_step import ControlStep
from gpugrad.function.control.scanning import Scan, scan_slices
from gpugrad.function.control.tracing import BranchTrace, make_branches, trace_branch
from gpugrad.function.structures import Form, agreed, blanks, is_array_like, tensors_of
from gpugrad.trace.array import current_trace, is_traced
from gpugrad.trace.shapes import Specs, blank_arrays
from gpugrad.trace.tracing import Tracing

Function = Callable[..., Any]


@saying_where
def cond(pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
    """Call one of two functions: ``true_fn(*operands) if pred else false_fn(*operands)``.

    Args:
        pred: a bool, or a Tensor of one element.
        true_fn, false_fn: functions of the operands that return Tensors in any nested structure.
        operands: nested structures; leaves that are not arrays are passed on unchanged.

    In a traced function whose arguments decide `pred`, each run calls the branch that `pred`
    selects. Both must return the same structure, shapes and dtypes; a Python number becomes
    `gg.constant` of it. Branches may read Tensors and Variables from outside, and draw random
    numbers; they may not assign to Variables. Tracing runs the Python code of both branches once,
    but the other branch has no effect. Elsewhere only the chosen branch is called. Under `vmap`,
    where `pred` differs between examples, both are computed and `gg.where` chooses.

    Raises:
        ShapeError: `pred` has more than one element, or results differ in shape.
        DTypeError, StructureError: results differ in dtype or structure.
        TraceError: a branch assigns to a Variable in a traced function.

    >>> @gg.function
    ... def f(x):
    ...     return gg.cond(gg.sum(x) > 0, lambda x: x * 2, lambda x: -x, x)
    >>> f(gg.constant([1.0, 2.0])).tolist(), f(gg.constant([1.0, -2.0])).tolist()
    ([2.0, 4.0], [-1.0, 2.0])
    """
    CALLABLE("cond", "true_fn", true_fn)
    CALLABLE("cond", "false_fn", false_fn)
    pred = opened(pred)
    if is_array(pred):
        pred = tensor(pred)
    if isinstance(pred, Tensor) and pred.size != 1:
        raise ShapeError(
            f"cond: pred must have one element, its shape is {pred.shape}. Use gg.any or gg.all, "
            "or gg.where to choose element by element."
        )
    if not isinstance(pred, Tensor):
        return tensors_of((true_fn if pred else false_fn)(*_copies(operands)))
    pred = TENSOR.reshape(pred, ()) if pred.ndim else pred._read()
    names = (f"true_fn {_name(true_fn)}", f"false_fn {_name(false_fn)}")
    if levels_of(pred._data):
        yes, no = (tensors_of(f(*_copies(operands))) for f in (true_fn, false_fn))
        pred = TENSOR.astype(pred, np.dtype(bool))
        pairs = agreed("cond", names, yes, no)
        chosen = [TENSOR.where(pred, a, b) if isinstance(a, Tensor) else a for a, b in pairs]
        return nest.pack(yes, chosen)
    trace = current_trace()
    if trace is None or not is_traced(pred._data):
        return tensors_of((true_fn if pred else false_fn)(*_copies(operands)))
    return _traced_cond(trace, pred, (true_fn, false_fn), names, operands)


def _copies(operands: Any) -> Any:
    """Copies of Tensors, for a function to write to: in a traced function it has its own."""
    return nest.map_structure(lambda x: copy(x) if type(x) in (Tensor, View) else x, operands)


def _traced_cond(
    trace: Tracing, pred: Tensor, branches: Any, names: tuple[str, str], operands: Any
) -> Any:
    operands = Form(tensors_of(operands, numbers=False))
    tensors = [*map(give_each_example, operands.tensors)]
    results: dict[str, Form] = {}

    def traced(branch: Function, name: str) -> tuple[BranchTrace, list[Any]]:
        def run(*tensors: Tensor) -> list[Tensor]:
            result = tensors_of(branch(*operands(tensors)))
            results[name] = Form(blanks(result))
            return Form(result).tensors

        return trace_branch(trace, f"cond: {name}", run, _like(tensors))

    (true_trace, arrays), (false_trace, _) = map(traced, branches, names)
    agreed("cond", names, *(form.structure for form in results.values()))
    branches, captured = make_branches([("true", true_trace), ("false", false_trace)])
    step = ControlStep(
        "cond", Cond(branches[0], branches[1]), branches, _specs(arrays), levels_running()
    )
    return results[names[0]](step(pred, *tensors, *captured))


@saying_where
def while_loop(
    cond_fn: Function, body_fn: Function, init: Any, *, maximum_iterations: int | None = None
) -> Any:
    """Apply a function as long as a condition holds: ``while cond_fn(x): x = body_fn(x)``.

    Args:
        cond_fn: function of the carry that returns a bool, or a Tensor of one element.
        body_fn: function of the carry that returns the next one, of the same structure, shapes
            and dtypes.
        init: the first carry, a nested structure of Tensors, arrays and numbers; other leaves are
            passed on unchanged.
        maximum_iterations: the most iterations, whatever `cond_fn` returns.

    Unlike JAX's, it has gradients in reverse mode too, also in a traced function: each iteration
    keeps what the body's backward pass reads. In a traced function it is one step, and each run
    decides anew how often to iterate; the functions may read Tensors and Variables from outside and
    draw random numbers, but not assign to Variables. Under `vmap` it iterates until all examples
    are done; finished examples keep their values.

    Raises:
        ShapeError, DTypeError, StructureError: `body_fn` changes the carry's kind, or `cond_fn`
            returns more than one element.

    >>> @gg.function
    ... def root(a):
    ...     far = lambda x: gg.abs(x * x - a) > 1e-6
    ...     return gg.while_loop(far, lambda x: 0.5 * (x + a / x), a)
    >>> round(root(gg.constant(9.0)).item(), 4), round(gg.grad(root)(9.0).item(), 4)
    (3.0, 0.1667)
    """
    CALLABLE("while_loop", "cond_fn", cond_fn)
    CALLABLE("while_loop", "body_fn", body_fn)
    form = Form(tensors_of(init))
    names = ("init", f"body_fn {_name(body_fn)}")
    levels = levels_running()

    def condition(*carry: Tensor) -> Any:
        holds = cond_fn(form(carry))
        if not is_array_like(holds):
            return holds
        holds = tensor(holds)
        if holds.size != 1:
            raise ShapeError(
                f"while_loop: cond_fn {_name(cond_fn)} must return one element, not the shape "
                f"{holds.shape}. Use gg.any or gg.all."
            )
        return TENSOR.astype(TENSOR.reshape(holds, ()), np.dtype(bool))

    def body(*carry: Tensor) -> list[Tensor]:
        result = body_fn(form(_copies(carry)))
        pairs = agreed("while_loop", names, form(carry), result)
        new = [b for a, b in pairs if isinstance(a, Tensor)]
        if levels:  # an example that is done keeps its values
            holds = condition(*carry)
            new = [TENSOR.where(holds, b, a) for a, b in zip(carry, new, strict=True)]
        return new

    def goes_on(*carry: Tensor) -> Any:
        holds = condition(*carry)
        if not isinstance(holds, Tensor):
            return holds
        return TENSOR.any(wrap(unwrap_levels(holds._data)))

    carry, trace = [*map(give_each_example, form.tensors)], current_trace()
    if trace is None:
        return form(last_of(iterate(goes_on, body, carry, maximum_iterations)))
    labels = (f"while_loop: cond_fn {_name(cond_fn)}", f"while_loop: {names[1]}")
    return form(_traced_while(trace, labels, goes_on, body, carry, maximum_iterations))


def _traced_while(
    trace: Tracing,
    labels: tuple[str, str],
    goes_on: Function,
    body: Function,
    carry: list[Tensor],
    most: int | None,
) -> list[Tensor]:
    def test(*carry: Tensor) -> list[Tensor]:
        return [tensor(goes_on(*carry))]

    like = _like(carry)
    test_trace, _ = trace_branch(trace, labels[0], test, like, one_for_all=True)
    body_trace, arrays = trace_branch(trace, labels[1], body, like)
    (holds, then), captured = make_branches([("while", test_trace), ("do", body_trace)])
    call = While(holds, then, len(carry), most)
    step = ControlStep("while_loop", call, (holds, then), _specs(arrays), levels_running())
    return step(*carry, *captured)


@saying_where
def scan(
    f: Function, init: Any, xs: Any, *, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """Carry a value along an axis: ``carry, y = f(carry, x)`` for each x along axis 0 of `xs`.

    Args:
        f: function of the carry and a slice of `xs` that returns the next carry, of the same
            structure, shapes and dtypes, and y: any nested structure of Tensors, or None.
        init: the first carry, a nested structure of Tensors, arrays and numbers; other leaves are
            passed on unchanged.
        xs: a nested structure of arrays of equal length along axis 0, or None.
        length: length of axis 0; needed if `xs` has no arrays.
        reverse: whether to begin at the end; each y still has the position of its x.

    Returns:
        The last carry, and the ys stacked along axis 0.

    In a traced function it is one step, not the steps of `f` `length` times. Its gradient is one
    step too; each iteration keeps what the body's backward pass reads. `f` may read Tensors and
    Variables from outside and draw random numbers, but not assign to Variables.

    Raises:
        ArgumentError: neither `xs` nor `length` determines the length.
        ShapeError, DTypeError, StructureError: lengths differ, or `f` changes the carry's kind.

    >>> @gg.function
    ... def running_sum(x):
    ...     return gg.scan(lambda total, v: (total + v, total), 0.0, x)
    >>> last, before = running_sum(gg.constant([1.0, 2.0, 3.0]))
    >>> print(last, before)
    6.0 [0. 1. 3.]
    """
    CALLABLE("scan", "f", f)
    name = _name(f)
    form, along = Form(tensors_of(init)), Form(tensors_of(xs))
    n = _length(name, along.tensors, length)
    trace = current_trace()
    if n == 0 and trace is None:
        return form(form.tensors), _no_ys(f, init, xs)
    ys_form: list[Form] = []  # one, once the body was called

    def body(*carry_and_x: Tensor) -> list[Tensor]:
        carry, x = carry_and_x[: len(form.tensors)], carry_and_x[len(form.tensors) :]
        result = f(form(_copies(carry)), along(_copies(x)))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise StructureError(
                f"scan: {name} must return a pair (carry, y), it returned "
                f"{type(result).__name__} {result!r:.60}."
            )
        pairs = agreed("scan", ("init", f"the carry of {name}"), form(carry), result[0])
        y = tensors_of(result[1])
        ys_form[:] = [Form(blanks(y))]
        return [*(b for a, b in pairs if isinstance(a, Tensor)), *Form(y).tensors]

    if trace is None:
        results = scan_slices(body, form.tensors, along.tensors, n, reverse, 0)
    else:
        carry, slices = (
            [*map(give_each_example, form.tensors)],
            [*map(give_each_example, along.tensors)],
        )
        results = _traced_scan(trace, name, body, carry, slices, n, reverse)
    return form(results[: len(form.tensors)]), ys_form[0](results[len(form.tensors) :])


def _no_ys(f: Function, init: Any, xs: Any) -> Any:
    """The ys of zero steps: tracing the function tells their shapes and dtypes."""
    with recording_stopped(), Tracing():
        ys = tensors_of(scan(f, init, xs, length=0)[1])

    def zeros(y: Any) -> Any:
        if not isinstance(y, Tensor):
            return y
        return wrap(full_on_device_of(innermost_array(y._data), y.shape, y.dtype))

    return nest.map_structure(zeros, ys)


def _traced_scan(
    trace: Tracing,
    name: str,
    body: Function,
    carry: list[Tensor],
    xs: list[Tensor],
    n: int,
    reverse: bool,
) -> list[Tensor]:
    levels = levels_running()
    axis = len(levels)
    slices = [_like_slice(x, axis, n) for x in xs]
    inner, arrays = trace_branch(trace, f"scan: {name}", body, [*_like(carry), *slices])
    (branch,), captured = make_branches([("body", inner)])
    n_carry = len(carry)
    device = devices.device_of(arrays[0]) if arrays else devices.default_device()
    y_specs = [((*y.shape[:axis], n, *y.shape[axis:]), y.dtype) for y in arrays[n_carry:]]
    # it captures no Tensor and no array: the program would keep it alive
    call: Function = Scan(branch, n_carry, len(xs), n, reverse, axis)
    if not n:
        call = functools.partial(_no_iterations, n_carry, y_specs, device)
    specs = [*_specs(arrays[:n_carry]), *y_specs]
    return ControlStep("scan", call, (branch,), specs, levels)(*carry, *xs, *captured)


def _no_iterations(n_carry: int, y_specs: Specs, device: Any, *tensors: Tensor) -> list[Tensor]:
    return [*tensors[:n_carry], *map(wrap, blank_arrays(y_specs, device))]


def _length(name: str, xs: Sequence[Tensor], length: int | None) -> int:
    if any(not x.ndim for x in xs):
        raise ShapeError(f"scan of {name}: xs has an array of shape (), which has no axis 0.")
    lengths = {x.shape[0] for x in xs} | (set() if length is None else {int(length)})
    if len(lengths) > 1:
        raise ShapeError(
            f"scan of {name}: the lengths along axis 0 differ: xs has {[x.shape for x in xs]}, "
            f"length={length}."
        )
    if not lengths:
        raise ArgumentError(f"scan of {name}: xs has no arrays; say how often with length=.")
    return lengths.pop()


def _like_slice(x: Tensor, axis: int, n: int) -> Any:
    """An array like one slice of `x` along an axis of length n: the first one, if n is not 0."""
    array = innermost_array(x._data)
    if n:
        return array[(slice(None),) * axis + (0, ...)]
    return full_on_device_of(array, array.shape[:axis] + array.shape[axis + 1 :], array.dtype)


def _specs(arrays: Sequence[Any]) -> Specs:
    return [(a.shape, a.dtype) for a in arrays]


def _like(tensors: Sequence[Tensor]) -> list[Any]:
    return [innermost_array(t._data) for t in tensors]


def _name(f: Function) -> str:
    return getattr(f, "__name__", type(f).__name__)
