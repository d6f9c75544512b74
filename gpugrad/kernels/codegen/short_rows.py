"""Kernels of short rows, such as points in space: vectors hold elements of different rows.

A loop over a row of three elements would use three lanes of a vector, and one for what it computes
from the row's sum. So the values of each column become values of their own, and what remains is a
kernel of one long column. For the squared distances of points with three coordinates the text is::

    const V<float, N> x0_0 = each_lane<float, N>(...);
    const V<float, N> x0_1 = each_lane<float, N>(...);
    ...
    const V<float, N> v8 = v2 + v5;
    const V<float, N> v9 = v8 + v7;
    store(o0 + j, v9, n);
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from gpugrad.kernels.codegen.code import Body, Code
from gpugrad.kernels.codegen.cpp import is_costly
from gpugrad.kernels.codegen.kernel import Input, Kernel, Result

SHORT = 4
"""Columns at most. A row of more fills a vector, and the text has each value for each column."""

ROWS = 16
"""Rows at least."""

MOST = 128
"""Values of all columns at most, which the compiler sees in one loop."""

COSTLY = 16
"""Values that functions such as exp count for."""

_COMBINED = {"sum": "add", "max": "maximum", "min": "minimum"}


def has_short_rows(kernel: Kernel) -> bool:
    """Whether a kernel is worth writing so. Sums over rows go on in order, so it must have none."""
    if not 1 < kernel.columns <= SHORT or kernel.rows < ROWS or kernel.sums:
        return False
    by_column = columns_of(kernel)
    values = sum(COSTLY if is_costly(c) else 1 for c in kernel.body.codes if by_column(c))
    return values * kernel.columns <= MOST


def over_rows(kernel: Kernel, by_column: Callable[[Code], bool]) -> Kernel:
    """The kernel whose elements are the rows of another.

    Args:
        kernel: the other one.
        by_column: whether a value differs within a row.
    """
    old, body = kernel, Body(kernel.body.lib)
    inputs: dict[tuple[int, int], Input] = {}
    by_name = {i.name: i for i in old.inputs}
    reductions = {r.code: r for r in old.body.reductions}
    new: dict[tuple[Code, int], Code] = {}

    def value(code: Code, column: int) -> Code:
        """The value in a column; those of the row are of column 0."""
        key = code, column if by_column(code) else 0
        if key not in new:
            new[key] = written(code, key[1])
        return new[key]

    def written(code: Code, column: int) -> Code:
        if code.is_input:
            i = by_name[code.value]
            part = dataclasses.replace(i, column=0, at=i.at + column * i.column, part=column)
            inputs[i.k, column] = part
            return body.add(code.op, code.dtype, value=part.name, weak=code.weak)
        if code in reductions:
            r = reductions[code]
            total = value(r.of, 0)
            for k in range(1, old.columns):
                total = body.add(_COMBINED[r.kind], code.dtype, total, value(r.of, k))
            return total
        args = [value(a, column) for a in code.args]
        return body.add(code.op, code.dtype, *args, value=code.value, how=code.how, weak=code.weak)

    for code in old.body.codes:  # in order, as results come after what they read
        for column in range(old.columns if by_column(code) else 1):
            value(code, column)
    results = [_part(r, value, k, old.columns) for r in old.results for k in _columns(r, old)]
    return Kernel(body, [*inputs.values()], results, [], old.rows, 1)


def _columns(r: Result, old: Kernel) -> range:
    return range(old.columns if r.is_full else 1)


def _part(r: Result, value: Callable[[Code, int], Code], column: int, columns: int) -> Result:
    step = columns if r.is_full else 1
    return dataclasses.replace(r, code=value(r.code, column), is_full=True, step=step, at=column)


def columns_of(kernel: Kernel) -> Callable[[Any], bool]:
    """Whether a value of a kernel differs within a row."""
    read = {i.name for i in kernel.inputs if i.column}
    values: set[Code] = set()
    for code in kernel.body.codes:
        if (code.is_input and code.value in read) or not values.isdisjoint(code.args):
            values.add(code)
    return values.__contains__
