"""Steps that only move elements, in the same way at each run: rolls, repetitions, padding, indices.

A step's own function tells where each element comes from: it is run on arrays of numbers that all
differ. C then copies runs of elements.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.function.step_calls import op_call
from gpugrad.kernels.cpu import moves, step_table
from gpugrad.trace.program import Step, Value, takes_arguments

_MOST = 1 << 16
"""Elements of the arrays, at most: a run may be a single one."""

_RANGE = 1 << 22  # of the numbers that stand for elements, which float32 holds


def in_runs(step: Step) -> moves.Function | None:
    """The C function that copies a step's elements; None if the step does anything else."""
    op, dtypes = step.op, {v.dtype for v in (*step.inputs, *step.outs)}
    if op is None or op.kind == "control" or op.opens == "effect" or len(dtypes) != 1:
        return None
    if op.by_element or len(step.outs) != 1 or takes_arguments(step.params.get("index")):
        return None
    (dtype,), out, arrays = dtypes, step.outs[0], step.inputs
    size = sum(math.prod(v.shape) for v in arrays)
    if op.reduces and math.prod(out.shape) != size:
        return None
    if dtype.char not in "fdil" or not 0 < size <= _MOST or not 0 < math.prod(out.shape) <= _MOST:
        return None
    if step_table.library() is None:
        return None
    with np.errstate(all="ignore"):
        labels = _labels(arrays, dtype)
        found = [_run(step, numbers) for numbers in labels]
        if any(f is None or f.shape != out.shape or f.dtype != dtype for f in found):
            return None
        return _function(arrays, labels, found)


def _labels(arrays: list[Value], dtype: Any) -> list[np.ndarray]:
    """Numbers for all elements, several times: random ones, others, the first in reverse order.

    Sums and means of the first are not those of the second; what is sorted is not so in reverse.
    Small numbers follow, also negative ones: large ones may be limited, or lie outside of a grid.
    """
    n, rng = sum(math.prod(v.shape) for v in arrays), np.random.default_rng(0)
    gaps = rng.integers(1, _RANGE // n, (2, n), endpoint=True)
    one, other = (_RANGE + rng.permutation(row.cumsum() - 1) for row in gaps)
    small = rng.permutation(n) - n // 2 + 0.25
    few = [small / (n + 1), small * 1.5] if dtype.kind == "f" else [small // 1, small // 1 * 3 + 1]
    return [numbers.astype(dtype) for numbers in (one, other, 3 * _RANGE - one, *few)]


def _run(step: Step, labels: Any) -> Any:
    """The result of a step of numbers in place of its arrays."""
    at, start = dict[int, Any](), 0
    for v in step.inputs:
        n = math.prod(v.shape)
        at.setdefault(id(v), labels[start : start + n].reshape(v.shape))
        start += n

    def argument(a: Any) -> Any:
        if isinstance(a, list):
            return [argument(x) for x in a]
        return at[id(a)] if isinstance(a, Value) else a

    try:
        return np.asarray(op_call(step, NUMPY)(*map(argument, step.args)))
    except Exception:
        return None


def _function(arrays: list[Value], labels: list[Any], found: list[Any]) -> Any:
    one, *others = (f.reshape(-1) for f in found)
    order = np.argsort(labels[0])
    ends = np.cumsum([math.prod(v.shape) for v in arrays])
    near = np.searchsorted(labels[0], one, sorter=order)
    place = order[np.minimum(near, ends[-1] - 1)]
    is_moved = labels[0][place] == one
    for numbers, result in zip(labels[1:], others, strict=True):
        if not np.array_equal(np.where(is_moved, numbers[place], one), result):
            return None
    constants, which = np.unique(one[~is_moved], return_inverse=True)
    array = np.searchsorted(ends, place, side="right")
    array[~is_moved] = len(arrays)
    place -= np.concatenate([[0], ends])[array]
    place[~is_moved] = which.reshape(-1)
    table = _table(array, place)
    constants = constants if len(constants) else np.zeros(1, one.dtype)
    made = moves.runs(len(arrays), one.dtype.itemsize, table, constants)
    return None if made is NotImplemented else made


def _table(array: Any, place: Any) -> Any:
    """Runs of places in one array with equal steps: (array, first place, step, length)."""
    n, at, rows, step = len(array), 0, [], np.diff(place)
    turns = np.flatnonzero((np.diff(step) != 0) | (array[2:] != array[1:-1])) + 2
    ends = iter([*turns.tolist(), n])
    end = next(ends)
    while at < n:
        if at + 1 == n or array[at + 1] != array[at]:
            rows.append((array[at], place[at], 1, 1))
            at += 1
            continue
        while end <= at + 1:
            end = next(ends)
        rows.append((array[at], place[at], step[at], end - at))
        at = end
    return np.array(rows, np.int64)
