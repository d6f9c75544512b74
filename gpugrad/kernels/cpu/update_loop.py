"""Steps of optimizers over the arrays of all Variables in one call, with the bits of NumPy's calls.

`kernels.codegen.update_kernel` writes the lines of one element, and a loop in C runs them for one
element after the other. NumPy, which runs the same formula on arrays, rounds after the same
operations. (Of a NaN, the sign and the payload may differ.) SGD with momentum, the example of
`gpugrad.optim.rules`, becomes this, and the same for doubles::

    #include "update_loop.h"
    struct Rule {
      static const int ARRAYS = 3, NUMBERS = 2;
      static void run(float* const* arrays, const float* numbers, long n) {
        float *x0 = arrays[0], *x1 = arrays[1], *x2 = arrays[2];
        const struct { float momentum, rate; } s = {numbers[0], numbers[1]};
        INDEPENDENT
        for (long j = 0; j < n; ++j) {
          const float v0 = x0[j];
          const float v1 = x1[j];
          const float v2 = x2[j];
          const float v3 = s.momentum;
          const float v4 = s.rate;
          const float v5 = v3 * v2;
          const float v6 = v5 + v1;
          const float v7 = v4 * v6;
          const float v8 = v0 - v7;
          x0[j] = v8;
          x2[j] = v6;
        }
      }
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.forking import cached_property
from gpugrad.kernels.codegen.cuda import indented
from gpugrad.kernels.codegen.update_kernel import StepKernel
from gpugrad.kernels.cpu import compiler, pool
from gpugrad.kernels.cpu.large import WIDE
from gpugrad.kernels.runtime.launch import TYPES

LEAST = 1 << 13
"""Elements of all Variables from which the loop is compiled: fewer should not wait for that."""


class StepLoop:
    """The loop of one update rule, compiled at the first step that is large enough.

    Args:
        rule: the formula, and the lines of an element.

    Attributes:
        used: whether it was compiled: then it steps Variables of any size.
    """

    def __init__(self, rule: StepKernel) -> None:
        self._rule, self.used = rule, False

    def source(self, rule: str = "Rule", function: str = "gpugrad_step") -> str:
        """The text of a library with this function."""
        sizes = f"ARRAYS = {self._rule.n_arrays}, NUMBERS = {len(self._rule.settings)}"
        return indented(
            f'#include "update_loop.h"\nstruct {rule} {{\nstatic const int {sizes};\n'
            f"{''.join(map(self._run, WIDE))}}};\nSTEP({function}, {rule})\n"
        )

    def _run(self, dtype: Any) -> str:
        """The function that steps `n` elements of one dtype."""
        t, n, names = TYPES[dtype], self._rule.n_arrays, self._rule.settings
        arrays = ", ".join(f"*x{k} = arrays[{k}]" for k in range(n))
        numbers = ", ".join(f"numbers[{k}]" for k in range(len(names)))
        struct = f"const struct {{ {t} {', '.join(names)}; }} s = {{{numbers}}};\n"
        inputs = [f"x{k}[j]" for k in range(n)]
        lines = self._rule.lines(self._rule.formula, inputs, [inputs[0], *inputs[2:]], dtype)
        return (
            f"static void run({t}* const* arrays, const {t}* numbers, long n) {{\n{t} {arrays};\n"
            f"{struct if names else ''}INDEPENDENT\n"
            f"for (long j = 0; j < n; ++j) {{\n{lines}}}\n}}\n"
        )

    @cached_property
    def _step(self) -> Any:
        """The compiled function, or None."""
        if pool.library() is None:
            return None
        library = compiler.load(self.source(), what="an optimizer's step")
        return None if library is None else typed(library.gpugrad_step)

    def takes(self, columns: Sequence[Sequence[Any]]) -> bool:
        """Whether `step` takes arrays of the dtype of the first gradient.

        The loop is compiled here, which may warn, and a warning may be an error.
        """
        return columns[0][1].dtype in WIDE and self.load()

    def load(self) -> bool:
        """Compile the loop now, and use it for arrays of any size; whether that succeeded."""
        self.used = True
        return self._step is not None

    def step(
        self,
        columns: Sequence[Sequence[Any]],
        numbers: Sequence[Sequence[float]],
        rows: Sequence[int],
    ) -> Any:
        """Move arrays along their gradients, in place; NotImplemented if NumPy has to.

        Args:
            columns: the arrays of each Variable, flat and contiguous, whose gradients `takes`
                accepts.
            numbers: the numbers of each group of Variables that share them.
            rows: for each Variable the index of its numbers.
        """
        arrays = [a for column in columns for a in column]
        if len({a.dtype for a in arrays}) > 1:
            return NotImplemented
        return call(self._step, WIDE[arrays[0].dtype], arrays, numbers, rows)


def typed(function: Any) -> Any:
    """A function of a compiled library, with the types of its arguments."""
    long, pointer = ctypes.c_long, ctypes.c_void_p
    function.argtypes, function.restype = [long, pointer, pointer, pointer, long], long
    return function


def call(
    function: Any,
    wide: int,
    arrays: Sequence[Any],
    numbers: Sequence[Sequence[float]],
    rows: Sequence[int],
) -> Any:
    """Call a compiled function; NotImplemented if it does not take arrays with this layout."""
    objects, index = (ctypes.py_object * len(arrays))(*arrays), (ctypes.c_long * len(rows))(*rows)
    table = np.array(numbers, np.float64)
    taken = function(wide, objects, table.ctypes.data, index, len(rows))
    return None if taken else NotImplemented
