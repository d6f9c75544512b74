"""The tape's hot path in C: `load` compiles it, and lets ops and backward passes use it.

`kernels/cpu/tape.cpp` runs ops of small float arrays, records every op, and walks back through a
log. It gets what it runs from the records: an op that is one of NumPy's ufuncs is the ufunc's own
loop, and a gradient rule is a list of such loops, which `_Steps` writes by running the rule. So
results have NumPy's bits. Formulas and rules that are more than ufuncs stay functions in Python.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpugrad.autodiff import backward, dead_branches, recorder
from gpugrad.core import listening
from gpugrad.core.backend import NUMPY, OPS, Reading
from gpugrad.core.scopes import scopes
from gpugrad.core.tensor import Tensor, next_id
from gpugrad.core.variable import Variable
from gpugrad.core.views import View
from gpugrad.kernels.cpu import compiler, ufuncs
from gpugrad.kernels.cpu.large import FEW, LARGE, PLAIN
from gpugrad.registry import on_tensors
from gpugrad.registry.function_text import runs_formula
from gpugrad.trace.numerics import checks

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_NUMBER_TYPES = {float, int, bool}
_NONE, _ARRAY, _NUMBER, _OTHER = range(4)  # kinds of saved values, as in tape.cpp
_RESULT, _SHAPE = -1, 8  # what is saved, as in tape_op.h
_BOOL = np.dtype(bool)


@functools.cache
def module() -> Any:
    """The module in C, or None where it cannot be compiled or does not fit this Python."""
    include = sysconfig.get_path("include")
    locks = not sysconfig.get_config_var("Py_GIL_DISABLED")
    if sys.implementation.name != "cpython" or not locks or not Path(include, "Python.h").exists():
        return None
    text = (Path(compiler.__file__).parent / "tape.cpp").read_text()
    versions = f"{sys.version} {np.__version__}".replace("\n", " ")
    flags = (f"-I{include}", f"-I{np.get_include()}")
    library = compiler.load(f"{text}// {versions}\n", what="the tape", flags=flags)
    if library is None:
        return None
    c = ctypes.PYFUNCTYPE(ctypes.py_object)(("gpugrad_tape", library))()
    if c is None:
        return None
    serials: Any = next_id
    c.setup(
        Tensor,
        View,
        Variable,
        listening.Stack,
        listening.stack_variable,
        listening.recorders,
        listening.graphs,
        checks,
        scopes,
        serials.__self__,
        dead_branches.grow,
        dead_branches.STRIDE,
        FEW,
        _rules_of,
        _program_of,
    )
    return c


def _is_own(op: Any) -> bool:
    """Whether an op of a log is a record of gpugrad's: C keeps these for good."""
    return OPS.get(op.name) is op and op.home.startswith("gpugrad.")


def _small_op(op: Any) -> Any:
    """The op on small arrays, in C; None if C cannot read its arguments or save what rules read.

    If its forward is no ufunc, C calls the formula: that saves the code around it.
    """
    c = module()
    plain = op.differentiable and op.outputs == 1 and len(op.arrays) in (1, 2)
    special = op.variadic or op.params or op.optional or op.writes or op.is_opened
    if not plain or special or not _is_own(op):
        return None
    kernels: list[Any] = []
    for dtype in _FLOATS:
        found = ufuncs._loop(op.ufunc, dtype.char)
        loop, data, to = found or (0, 0, None)
        kernels += [loop, data or 0] if to == dtype else [0, 0]
    formula = None
    if op.ufunc is None:
        own = runs_formula(op)
        formula = functools.partial(op.forward, NUMPY) if own else op.impl[np.ndarray]
    saved = []
    for name in op.saves:
        array, _, what = name.rpartition("_")
        if name == "out":
            saved.append((_RESULT, 0))
        elif array in op.arrays and what == "shape":
            saved.append((_SHAPE + op.arrays.index(array), 0))
        elif name in op.arrays:
            readers = op.readers[name]
            every = not readers or len(readers) == len(op.arrays)
            bits = 0 if every else sum(1 << op.arrays.index(r) for r in readers)
            saved.append((op.arrays.index(name), bits))
        else:
            return None
    by_element, most = op.kind == "elementwise", op.large or LARGE
    return c.small_op(op, len(op.arrays), most, formula, by_element, tuple(kernels), tuple(saved))


# ---- rules ------------------------------------------------------------------------------


def _rules_of(op: Any) -> Any:
    """The rules of a record, if they are the same functions for each call; else None."""
    if not _is_own(op) or op.variadic:
        return None
    return op.plain if type(op.plain) is tuple and op.plain else None


class _NoStepsError(Exception):
    """A rule that is more than ufuncs of its arrays."""


class Value(np.lib.mixins.NDArrayOperatorsMixin):
    """An array, or a Python number, while a rule is read: each operation adds a step."""

    shape = "the gradient's"

    def __init__(self, steps: _Steps, place: Any, dtype: np.dtype[Any] | None) -> None:
        self._steps, self.place = steps, place
        if dtype is not None:
            self.dtype = dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        if method != "__call__" or keywords:
            raise _NoStepsError
        return self._steps.step(ufunc, *args)

    def __pow__(self, other: Any) -> Any:
        raise _NoStepsError  # for some exponents an array's ** is another ufunc

    __rpow__ = __ipow__ = __pow__

    @property
    def size(self) -> int:
        """The largest number of elements that are few; of more a rule must not ask."""
        if not self._steps.few:
            raise _NoStepsError
        return FEW


PLAIN.add(Value)


class _Steps(Reading):
    """The reading that writes a rule as steps: ufuncs of values."""

    def __init__(self, dtype: np.dtype[Any], inputs: int, few: bool) -> None:
        self.__name__ = "steps"
        self._dtype, self._inputs, self.few = dtype, inputs, few
        self.constants: list[float] = []
        self._made: list[Any] = []
        self.lib = self

    def function_of(self, op: Any) -> Callable[..., Any]:
        """A step for a ufunc; the formula of other ops of elements."""
        if op.ufunc is not None:
            return functools.partial(self.step, op.ufunc)
        if op.numpy is not None:
            return op.numpy
        if op.kind != "elementwise" or op.is_library_function:
            raise _NoStepsError
        return functools.partial(op.forward, self)

    def step(self, ufunc: Any, *args: Any) -> Value:
        """The result of a ufunc of values and Python numbers."""
        values = [self._value(a) for a in args if a is not None]
        dtypes = {getattr(v, "dtype", None) for v in values}
        is_logical = dtypes == {_BOOL}
        if not (is_logical or self._dtype in dtypes):  # numbers alone are Python's
            raise _NoStepsError
        found = ufuncs._loop(ufunc, "?" if is_logical else self._dtype.char)
        if found is None or len(values) != ufunc.nin or found[2] not in (self._dtype, _BOOL):
            raise _NoStepsError
        if not is_logical:
            values = [
                v if getattr(v, "dtype", None) != _BOOL else self.where(v, 1, 0) for v in values
            ]
        places = [*(v.place for v in values), -1, -1][:3]
        return self._add(found[0], found[1] or 0, places, found[2])

    def where(self, condition: Any, x: Any, y: Any) -> Value:
        """NumPy's `where`."""
        x, y = self._value(x), self._value(y)
        if type(condition) is not Value or getattr(condition, "dtype", None) != _BOOL:
            raise _NoStepsError
        if _BOOL in (getattr(x, "dtype", None), getattr(y, "dtype", None)):
            raise _NoStepsError
        return self._add(0, 0, (x.place, condition.place, y.place), self._dtype)

    def _add(self, loop: int, data: int, places: Sequence[Any], dtype: Any) -> Value:
        self._made.append((loop, data, *places, dtype == _BOOL))
        return Value(self, ("step", len(self._made) - 1), dtype)

    def _value(self, x: Any) -> Value:
        if type(x) is Value:
            return x
        if getattr(x, "dtype", None) == self._dtype and x.ndim == 0:
            x = x.item()
        if type(x) not in _NUMBER_TYPES or not ufuncs._is_exact(x):
            raise _NoStepsError
        self.constants.append(float(x))
        return Value(self, ("constant", len(self.constants) - 1), None)

    def program(self, result: Any) -> Any:
        """The constants, steps and place of the result, as tape.cpp runs them."""
        if type(result) is not Value or getattr(result, "dtype", None) != self._dtype:
            raise _NoStepsError
        first = {"constant": self._inputs, "step": self._inputs + len(self.constants)}

        def number(place: Any) -> int:
            return place if type(place) is int else first[place[0]] + place[1]

        steps = [(*made[:2], *map(number, made[2:5]), made[5]) for made in self._made]
        return tuple(self.constants), tuple(steps), number(result.place)


def _program_of(op: Any, rule: int, double: int, kinds: int) -> Any:
    """A rule as (constants, steps, place of the result), or None if it is not made of ufuncs.

    Args:
        op: the record.
        rule: the position of the rule's input.
        double: whether the arrays are float64.
        kinds: one bit for at most `FEW` elements, and two for each saved value: None, an array, a
            Python number, or anything else.
    """
    dtype, n = _FLOATS[double], len(op.saves)
    steps = _Steps(dtype, 1 + n, bool(kinds & 1))
    saved: list[Any] = []
    for k in range(n):
        kind = kinds >> 2 * k + 1 & 3
        value = Value(steps, 1 + k, dtype if kind == _ARRAY else None)
        saved.append({_NONE: None, _OTHER: object()}.get(kind, value))
    try:
        return steps.program(op.plain[rule](steps, Value(steps, 0, dtype), tuple(saved), None))
    except Exception:  # the rule itself may refuse what is no array
        return None


# ---- use --------------------------------------------------------------------------------


def _pull(log: list[Any], grads: Any, needed: Any, reading: Any) -> None:
    """`backward` of a whole log on NumPy arrays, by the loop in C."""

    def one_entry(entry: Any) -> None:
        backward.backward((entry,), grads, needed, reading)

    module().backward(
        log,
        grads,
        needed,
        grads._not_popped,
        grads._stops,
        grads._owned,
        NUMPY,
        one_entry,
        backward.rule_failed,
        grads.add,
    )


def use(on: bool) -> bool:
    """Let ops and backward passes run in C, or in Python; whether they run in C now."""
    dead_branches.when_many.clear()
    on = on and module() is not None
    if on == bool(backward.in_c):
        return on
    backward.run_in_c(_pull if on else None)
    on_tensors.use_in_c(_small_op if on else None, module().record if on else recorder.record)
    return on


def load() -> None:
    """Compile the module for a process that records many ops, unless kernels are off."""
    if compiler.setting() != "0":
        use(True)
