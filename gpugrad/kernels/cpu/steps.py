"""Steps of optimizers over the arrays of all Variables in one call, with the bits of NumPy's calls.

`gpugrad.optim.passes` writes an update rule as NumPy calls on arrays. One loop in C makes the same
calls on one element after the other: both round after each of them. (Of a NaN, the sign and the
payload may differ.) SGD with momentum, whose NumPy calls `gpugrad.optim.rules` shows, becomes::

    #include "steps.h"
    struct Rule {
      static const int ARRAYS = 3, NUMBERS = 3;
      template <class T> static void run(T* const* arrays, const T* numbers, long n) {
        T *p_ = arrays[0], *g_ = arrays[1], *m0_ = arrays[2];
        const T f0 = numbers[0], k0 = numbers[1], k1 = numbers[2];
        INDEPENDENT
        for (long j = 0; j < n; ++j) {
          T p = p_[j], g = g_[j], m0 = m0_[j], t0;
          m0 = m0 * f0;
          t0 = g * k0;
          m0 = m0 + t0;
          t0 = m0 * k1;
          p = p + t0;
          p_[j] = p, m0_[j] = m0;
        }
      }
    };
    STEP(gpugrad_step, Rule)
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.forking import cached_property
from gpugrad.kernels.cpu import compiler, pool
from gpugrad.kernels.cpu.large import WIDE

LEAST = 1 << 13
"""Elements of all Variables from which the loop is compiled: fewer should not wait for that."""

_IN_C = {
    "absolute": "absolute({})",
    "add": "{} + {}",
    "divide": "{} / {}",
    "maximum": "maximum({}, {})",
    "multiply": "{} * {}",
    "positive": "{}",
    "reciprocal": "T(1) / {}",
    "sign": "sign({})",
    "sqrt": "root({})",
    "square": "{0} * {0}",
}


class Call(NamedTuple):
    """A NumPy call: ``ufunc(*operands, out=out)``. An operand is an array or a number, by name."""

    ufunc: str
    operands: tuple[str, ...]
    out: str


class StepLoop:
    """The loop of one update rule, compiled at the first step that is large enough.

    Args:
        calls: what a step does with an element.
        arrays: the names of a Variable's arrays: the parameter, the gradient, the averages.
        scratch: the names of scratch arrays, which become local variables.
        numbers: the names of the numbers.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        arrays: Sequence[str],
        scratch: Sequence[str],
        numbers: Sequence[str],
    ) -> None:
        self._calls, self._arrays = tuple(calls), tuple(arrays)
        self._scratch, self._numbers = tuple(scratch), tuple(numbers)

    def source(self, rule: str = "Rule", function: str = "gpugrad_step") -> str:
        """The text of a library with this function."""
        numbers = [f"{name} = numbers[{i}]" for i, name in enumerate(self._numbers)]
        values = [*(f"{name} = {name}_[j]" for name in self._arrays), *self._scratch]
        written = [a for a in self._arrays if a in {call.out for call in self._calls}]
        stores = [f"{name}_[j] = {name}" for name in written]
        lines = [
            '#include "steps.h"',
            f"struct {rule} {{",
            f"  static const int ARRAYS = {len(self._arrays)}, NUMBERS = {len(numbers)};",
            "  template <class T> static void run(T* const* arrays, const T* numbers, long n) {",
            f"    T {', '.join(f'*{name}_ = arrays[{i}]' for i, name in enumerate(self._arrays))};",
            *([f"    const T {', '.join(numbers)};"] if numbers else []),
            "    INDEPENDENT",
            "    for (long j = 0; j < n; ++j) {",
            f"      T {', '.join(values)};",
            *(f"      {c.out} = {_IN_C[c.ufunc].format(*c.operands)};" for c in self._calls),
            *([f"      {', '.join(stores)};"] if stores else []),
            "    }",
            "  }",
            "};",
            f"STEP({function}, {rule})",
        ]
        return "\n".join(lines) + "\n"

    @cached_property
    def _step(self) -> Any:
        """The compiled function, or None."""
        if pool.library() is None:
            return None
        library = compiler.load(self.source(), what="an optimizer's step")
        return None if library is None else typed(library.gpugrad_step)

    def takes(self, gradients: Sequence[Any]) -> bool:
        """Whether a step with these gradients is worth a call of `step`.

        The loop is compiled here, which may warn, and a warning may be an error.
        """
        if gradients[0].dtype not in WIDE:
            return False
        large = "_step" in self.__dict__ or sum([g.size for g in gradients]) >= LEAST
        return large and self.load()

    def load(self) -> bool:
        """Compile the loop now, and use it for arrays of any size; whether that succeeded."""
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
