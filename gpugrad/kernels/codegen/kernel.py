"""A kernel: steps on the elements of `rows` times `columns`, before a renderer writes its loops."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from gpugrad.kernels.codegen.code import Body, Code, Reduction


@dataclasses.dataclass(frozen=True)
class Input:
    """An array that a kernel reads as ``x{k}``. An element's offset is `row` + column * `column`.

    Attributes:
        k: its number.
        value: the array or the value of a program, with a shape and a dtype.
        row: the offset of the row number `row`, as text; "0" if it is the same for all rows.
        column: the stride of columns, in elements.
        at: an offset of all elements.
        part: which column it is, if it is one, or None.
    """

    k: int
    value: Any
    row: str = "0"
    column: int = 1
    at: int = 0
    part: int | None = None

    @property
    def name(self) -> str:
        """The name of its element."""
        return f"x{self.k}" if self.part is None else f"x{self.k}_{self.part}"

    @property
    def pointer(self) -> str:
        """The address of the first element, as text."""
        return f"(p{self.k} + {self.at})" if self.at else f"p{self.k}"

    @property
    def dtype(self) -> Any:
        """The dtype of the array."""
        return self.value.dtype


@dataclasses.dataclass(frozen=True)
class Result:
    """An array that a kernel writes.

    Attributes:
        k: its number among the results, or among the sums.
        code: the value of an element.
        value: the array or the value of a program, with a shape and a dtype.
        is_full: whether there is an element for each of the kernel's, or one for each row.
        count: of a sum that is a mean, the number of its terms, else None.
        by_column: of a sum, whether it runs over rows, for each column; else it is over all.
        step, at: how far elements are apart in memory, and the offset of the first one.
    """

    k: int
    code: Code
    value: Any
    is_full: bool = True
    count: int | None = None
    by_column: bool = False
    step: int = 1
    at: int = 0


@dataclasses.dataclass
class Kernel:
    """Steps on elements.

    Attributes:
        body: the nodes of the steps.
        inputs: the arrays that it reads.
        results: those that it writes.
        sums: sums over rows or over all elements, which end it.
        rows, columns: how many there are; `columns` is 0 if each call says how many.
    """

    body: Body
    inputs: list[Input]
    results: list[Result]
    sums: list[Result]
    rows: int
    columns: int

    @property
    def stages(self) -> list[list[Reduction]]:
        """The reductions along rows that one loop over a row computes, loop after loop."""
        every = self.body.reductions
        return [[r for r in every if r.stage == k] for k in sorted({r.stage for r in every})]

    @property
    def full(self) -> list[Result]:
        """The results with an element for each of the kernel's."""
        return [r for r in self.results if r.is_full]

    @property
    def by_row(self) -> list[Result]:
        """The results with an element for each row."""
        return [r for r in self.results if not r.is_full]

    def width(self, s: Result) -> int:
        """The number of elements of a sum."""
        return self.columns if s.by_column else 1

    def read_by(self, codes: Sequence[Code]) -> list[Input]:
        """The inputs among some nodes."""
        names = {c.value for c in codes if c.is_input}
        return [i for i in self.inputs if i.name in names]
