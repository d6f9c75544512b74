"""Simplifications of every program: constants, transposes, identities, common and dead steps."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import ARRAYS, HALF, NUMPY
from gpugrad.core.devices import host
from gpugrad.core.tensor import Tensor
from gpugrad.function.passes.rewrite import (
    Readers,
    Rewriter,
    axis_order,
    is_cast,
    is_product,
    is_reshape,
    rewritten,
    swaps_last_two,
)
from gpugrad.registry.record import OPS
from gpugrad.trace.program import Program, Step, Value

# ---- constants ---------------------------------------------------------------------------


def fold_constants(program: Program) -> Program:
    """Replace steps that read only constants by their results in the traced run."""

    def fold(rewriter: Rewriter, step: Step) -> Sequence[Value] | None:
        known = step.op is not None and len(step.results) == len(step.outs)
        if not known or any(v.constant is None for v in step.inputs):
            return None
        return [Value(array, constant=True) for array in step.results]

    return rewritten(program, fold)


# ---- transposes --------------------------------------------------------------------------


def unify_transposes(program: Program) -> Program:
    """Write each transpose of the last two axes as `matrix_transpose`, also those of a product.

    The view costs nothing on either library, and a matrix product reads the strides of its
    arguments. Under one name two transposes cancel, and the same one written in two ways, such as
    ``x.T`` in a model and the transpose that matmul's gradient takes, is one step.

    If a product is only read transposed, as the gradient of a layer's weights may be, its factors
    are transposed instead: then its memory is in the order in which the readers go through it.
    """

    def unify(rewriter: Rewriter, step: Step) -> Sequence[Value] | None:
        if step.op is None or len(step.outs) != 1 or not swaps_last_two(step):
            return None
        step = copy.copy(step)
        step.op = OPS["matrix_transpose"]
        step.name, step.params = step.op.name, {}
        rewriter.keep(step)
        return step.outs

    return _transpose_factors(rewritten(program, unify))


def _transpose_factors(program: Program) -> Program:
    readers, rewriter, removed = Readers(program), Rewriter(program), set()

    def transposed(of: Step, x: Value) -> Value:
        if x.constant is not None:
            return Value(x.constant.swapaxes(-1, -2), constant=True)
        view = rewriter.step(of, "matrix_transpose", [x], {}, (*x.shape[:-2], *x.shape[:-3:-1]))
        view.view = True
        return view

    for step in program.steps:
        if id(step) in removed:
            continue
        transpose = _transpose_of(step, readers)
        step = rewriter.renamed(step)
        if transpose is None:
            rewriter.keep(step)
            continue
        removed.add(id(transpose))
        a, b = (transposed(step, x) for x in step.args[::-1])
        (out,) = transpose.outs
        rewriter.replace(out, rewriter.step(step, "matmul", [a, b], {}, out.shape, out.dtype))
    return rewriter.program()


def _transpose_of(step: Step, readers: Readers) -> Step | None:
    """The transpose that is the only reader of a product, unless a view reads the transpose.

    After the rewrite it would be a view of the product; in the traced run it is a copy.
    """
    if not is_product(step) or any(len(v.shape) < 2 for v in step.inputs):
        return None
    transpose = readers.only(step.outs[0])
    if transpose is None or not swaps_last_two(transpose):
        return None
    every = readers.of(transpose.outs[0])
    copies = (s.op is None or s.op.by_element for s in every)
    return transpose if all(copies) else None


# ---- outer products ----------------------------------------------------------------------


def multiply_outer(program: Program) -> Program:
    """Write a matrix product of a column and a row as `multiply`, which joins kernels.

    Gradients by the input of a network with one output are such products.
    """

    def multiply(rewriter: Rewriter, step: Step) -> Sequence[Value] | None:
        if not is_product(step):
            return None
        (a, b), (out,) = step.args, step.outs
        numbers = a.dtype == b.dtype and a.dtype.kind in "fciuV"  # matmul does booleans otherwise
        if not numbers or min(len(a.shape), len(b.shape)) < 2 or a.shape[-1] != 1:
            return None
        return [rewriter.step(step, "multiply", step.args, {}, out.shape, out.dtype)]

    return rewritten(program, multiply)


# ---- identities --------------------------------------------------------------------------


def remove_identities(program: Program) -> Program:
    """Remove steps that return their argument, bit for bit; join two reshapes or transposes."""
    makers: dict[int, Step] = {}

    def remove(rewriter: Rewriter, step: Step) -> Sequence[Value] | None:
        out = step.outs[0] if len(step.outs) == 1 and step.op is not None else None
        same = None if out is None else _same(step)
        if out is not None and isinstance(same, Value) and _alike(same, out):
            return [same]
        before = makers.get(id(step.args[0])) if step.args else None
        if before is not None:
            order = axis_order(before)
            if order and [order[k] for k in axis_order(step) or ()] == [*range(len(order))]:
                return [before.args[0]]
            same_op = before.op is step.op and is_reshape(step) and "shape" in step.params
            if same_op and before.outs[0].view:  # of a copy, this one is a view
                step = rewriter.with_args(step, before.args)
                makers[id(step.outs[0])] = step
                rewriter.keep(step)
                return step.outs
        if out is not None:
            makers[id(out)] = step
        return None

    return rewritten(program, remove)


def is_number(x: Any, number: float) -> bool:
    """Whether an argument is this number; -0 is not 0."""
    if isinstance(x, Value):
        if x.constant is None or not x.constant.size or any(x.constant.strides):
            return False
        x = host(x.constant[(0,) * x.constant.ndim])  # its GPU need not be the current one
    return bool(x == number) and (number != 0 or not np.signbit(np.real(x)))


def _counts_to(indices: Any, n: int) -> bool:
    """Whether an argument is the constant 0, 1, ... n - 1."""
    rows = indices.constant if isinstance(indices, Value) else None
    return rows is not None and rows.shape == (n,) and np.array_equal(host(rows), np.arange(n))


def remove_scatter_identities(program: Program) -> Program:
    """Remove sums of rows that are all rows of the result, in order.

    On the CPU they stay, where replays keep the sign of a zero: the sum 0 + -0.0 is 0.0.
    """

    def remove(rewriter: Rewriter, step: Step) -> Sequence[Value] | None:
        if step.name != "scatter_rows" or step.op is None:
            return None
        (values, indices), (out,) = step.args, step.outs
        same = _alike(values, out) and _counts_to(indices, out.shape[0])
        return [values] if same else None

    return rewritten(program, remove)


def _same(step: Step) -> Any:
    """The argument that a step returns, provided that its result has the same shape and dtype."""
    op = step.op
    if op.kind == "control":
        return None
    if (x := passed_on(step)) is not None:
        return x
    sums_none = op.reduces == "sum" and "axis" not in step.params
    if op.view in ("reshape", "broadcast") or is_cast(step) or sums_none:
        return step.args[0]
    if step.name != "take_rows":
        return None
    indices, table = step.args  # all rows in order, as embeddings of positions take them
    return table if _counts_to(indices, table.shape[0]) else None


def _alike(x: Value, y: Value) -> bool:
    return (x.shape, x.dtype) == (y.shape, y.dtype)


def passed_on(step: Step) -> Any:
    """The argument that an elementwise op returns, since the other one is 0 or 1; or None."""
    op = step.op
    if op is None or op.kind != "elementwise":
        return None
    if len(step.args) != 2 and not op.is_library_function:
        return None
    if len(step.args) > 1 and all(type(a) is Value and a.constant is None for a in step.args):
        return None
    return next((a for k, a in enumerate(step.args) if _passes_on(step, k)), None)


def _passes_on(step: Step, k: int) -> bool:
    """Whether an elementwise op returns its argument k, since the other one is 0 or 1."""
    x, others = step.args[k], [a for i, a in enumerate(step.args) if i != k]
    numbers = [n for n in (0, 1) for a in others if is_number(a, n)]
    if not isinstance(x, Value) or x.dtype.kind not in "fiuV" or len(numbers) != len(others):
        return False
    dtype = np.dtype(np.float32) if x.dtype in HALF else x.dtype
    return _is_identity(step.op, dtype, k, *numbers)


@functools.cache
def _is_identity(op: Any, dtype: np.dtype, k: int, *numbers: int) -> bool:
    """Whether an op returns its argument k, bit for bit, if the other one is this number."""
    limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    values = [0, 1, 3, limits.min, limits.min // 3, limits.max]
    if dtype.kind == "f":  # x + 0 changes -0.0
        values += [-0.0, 1.5, -2.75, limits.tiny, limits.smallest_subnormal]
        values += [np.inf, -np.inf, np.nan]
    x = np.array(values, dtype)
    try:
        with np.errstate(all="ignore"):
            result = op.bare(NUMPY)(*numbers[:k], x, *numbers[k:])
    except (TypeError, ValueError):  # such as 1 ** -3, of ints
        return False
    return result.dtype == dtype and result.tobytes() == x.tobytes()


# ---- common subexpressions ---------------------------------------------------------------


def share_common(program: Program) -> Program:
    """Compute once what is computed twice, from the same values with the same parameters."""
    seen: dict[Any, Step] = {}
    longer = _extensions(program)

    def share(rewriter: Rewriter, step: Step) -> Sequence[Value] | None:
        if step.op is None:
            return None
        if longer and (more := longer.get(_call_key(step, getattr(step.op, "call", None)))):
            more = rewriter.with_args(more, more.args)  # a copy: the step itself comes later
            if (outs := share(rewriter, more)) is None:
                rewriter.keep(more)
            return (outs or more.outs)[: len(step.outs)]
        params = tuple((k, _key(step.params[k])) for k in sorted(step.params))
        first = seen.setdefault((step.op, _key(step.args), params), step)
        return None if first is step else first.outs

    return rewritten(program, share)


def _extensions(program: Program) -> dict[Any, Step]:
    """The steps of control flow that return more than others, by function and arguments of these.

    The gradient of a loop in a body runs such a loop, beside the loop itself.
    """
    control = [s for s in program.steps if s.op is not None and s.op.kind == "control"]
    pairs = [(s, getattr(s.op, "extends", None)) for s in control]
    return {_call_key(s, of): s for s, of in pairs if of is not None}


def _call_key(step: Step, call: Any) -> Any:
    return id(call), _key(step.args)


def _key(x: Any) -> Any:
    """A hashable that is equal for equal arguments."""
    if isinstance(x, Value):
        array = x.constant
        if array is None or array.size != 1:
            return id(x)
        return "constant", x.shape, x.dtype, array.tobytes()
    if isinstance(x, (list, tuple)):
        return (type(x), *map(_key, x))
    if isinstance(x, Tensor):  # as an index may be
        return _key(x._data)
    if isinstance(x, np.ndarray):
        return "array", x.shape, x.dtype.str, x.tobytes()
    if type(x) in ARRAYS:  # a GPU array, whose repr does not show all elements
        return id(x)
    if isinstance(x, slice):
        return "slice", x.start, x.stop, x.step
    return type(x), repr(x)


# ---- dead steps --------------------------------------------------------------------------


def remove_dead(program: Program) -> Program:
    """Remove steps that no result, no Variable and no effect needs."""
    new = program.copy()
    needed = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    kept = []
    for step in reversed(program.steps):
        if step.op is None or any(id(v) in needed for v in step.outs):
            kept.append(step)
            needed.update(id(v) for v in step.inputs)
    new.steps = kept[::-1]
    return new
