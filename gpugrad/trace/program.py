"""Programs: the steps of a traced function, in the order in which they ran.

`gpugrad.trace.tracing` writes a program, the passes of `gpugrad.function` rewrite it, and a replay
runs it. A step is an op and its arguments, or an *effect* that calls Python.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.core.user_code import NOWHERE, Where
from gpugrad.core.variable import Variable

Undo = Callable[[], Callable[[], None]]

CHECKS = frozenset(("no_nan", "same length", "check_numerics"))
"""Effects that only check values: the first two, whether the function must be called instead."""


class NotReplayable(Exception):
    """A replay would differ from the function, which must be called instead.

    Attributes:
        once: whether the next call can be replayed.
    """

    once = False


class NotMasked(NotReplayable):
    """A gradient is NaN, so the replay is one of a program with masked products."""

    def __init__(self) -> None:
        super().__init__("a gradient is NaN, so it is computed with masked products")


def check_shapes(loose: Sequence[tuple[int, tuple[int, ...]]], arrays: Sequence[Any]) -> None:
    """Raise NotReplayable if an array read does not have its shape in `Program.loose`."""
    for k, shape in loose:
        if arrays[k].shape != shape:
            raise NotReplayable("the shape of a Variable")


class Launched(Protocol):
    """Kernels on fixed memory that perform an effect: the attribute `launched` of its call.

    A CUDA graph can hold them, because only numbers on the device differ between runs.

    Attributes:
        version: changes when `launch` would launch something different.
        widens: optional; whether 16-bit floats may stand in for float32.
    """

    version: int

    def numbers(self) -> list[Any]:
        """Count a run; return its numbers as NumPy arrays, always of the same size."""

    def uncount(self) -> None:
        """Undo the last count, because nothing was launched."""

    def launch(self, arrays: list[Any], values: list[Any], live: list[Any]) -> list[Any]:
        """Launch on plain arrays.

        Args:
            arrays: what the effect reads.
            values: the arrays of the Variables that it changes; they are written to.
            live: the numbers, on the device.

        Returns:
            The arrays of the effect's own results.
        """


class Value:
    """A value of a program: an input, a constant or the result of a step.

    Attributes:
        shape, dtype: of the array.
        constant: the array, if it is the same in every run; else None.
        view: whether it may share memory with another value.
        host: whether it is a NumPy array.
    """

    __slots__ = ("constant", "dtype", "host", "shape", "view")

    def __init__(self, array: Any, constant: bool = False) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self.constant = array if constant else None
        self.host = isinstance(array, np.ndarray)
        self.view = False

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return math.prod(self.shape) * int(self.dtype.itemsize)

    def blank(self) -> Value:
        """Another value of the same shape and dtype, in the same kind of memory."""
        new = Value(self)
        new.host = self.host
        return new


class Step:
    """One op of a program, or one effect, whose `op` is None.

    Attributes:
        op: the record.
        args: a Value, a number, or None for each array argument; a variadic op has a list.
        params: the metadata arguments.
        outs: the results.
        name: the op's or effect's name.
        call: the function that an effect calls with the arrays of `args`; it returns those of
            `outs`.
        variables: the Variables that an effect changes; their values are the last of `outs`.
        undo: called before an effect; returns a function that restores everything else that the
            effect changes. None if that is not possible.
        backward: whether it belongs to a backward pass.
        phase: steps of different phases are never grouped.
        results: the arrays of `outs` in the traced run, until the program is planned, if the step
            reads only constants and they are small. All others are freed by who has read them last.
        xp: the reading of the arrays, or None if the step was not executed.
        where: the user's line and layer. Those of a gradient are those of its op.
    """

    __slots__ = (
        "args",
        "backward",
        "call",
        "name",
        "op",
        "outs",
        "params",
        "phase",
        "results",
        "undo",
        "variables",
        "where",
        "xp",
    )

    def __init__(
        self,
        op: Any,
        args: Sequence[Any],
        params: dict[str, Any],
        outs: list[Value],
        *,
        name: str = "",
        call: Callable[..., Any] | None = None,
        variables: Sequence[Variable] = (),
        undo: Undo | None = None,
    ) -> None:
        self.op, self.args, self.params, self.outs = op, tuple(args), params, outs
        self.name, self.call, self.variables = name or op.name, call, tuple(variables)
        self.undo, self.backward, self.phase = undo, False, 0
        self.results: list[Any] = []
        self.xp: Reading | None = None
        self.where = NOWHERE

    def __copy__(self) -> Step:
        """The step anew. Passes copy all steps many times, and Python's way takes 20 us a step."""
        kind: Any = type(self)
        new: Step = object.__new__(kind)
        new.args, new.params, new.outs, new.op = self.args, self.params, self.outs, self.op
        new.name, new.call, new.variables = self.name, self.call, self.variables
        new.undo, new.backward, new.phase = self.undo, self.backward, self.phase
        new.results, new.xp, new.where = self.results, self.xp, self.where
        for name in _more_slots(kind) if kind is not Step else ():
            if hasattr(self, name):
                setattr(new, name, getattr(self, name))
        return new

    @property
    def parts(self) -> Sequence[Step]:
        """The steps in it, if it is a group."""
        return ()

    @property
    def place(self) -> Where:
        """Where the step, or the first one in it, was called."""
        return self.parts[0].where if self.parts else self.where

    @property
    def programs(self) -> Sequence[tuple[str, Program]]:
        """Labels and programs of the functions that it may call."""
        return getattr(self.op or self.call, "programs", ())

    @property
    def launched(self) -> Launched | None:
        """The kernels that perform an effect, if there are any."""
        return getattr(self.call, "launched", None)

    @property
    def inputs(self) -> list[Value]:
        """The values that the step reads."""
        values: list[Value] = []
        for a in self.args:
            if type(a) is Value:
                values.append(a)
            elif type(a) is list:
                values += [v for v in a if type(v) is Value]
        return values


@functools.cache
def _more_slots(kind: Any) -> list[str]:
    """The attributes that a subclass of Step adds."""
    bases = kind.__mro__[: kind.__mro__.index(Step)]
    return [name for base in bases for name in base.__dict__.get("__slots__", ())]


def length_depends_on_values(step: Step) -> bool:
    """Whether the length of a step's result depends on values that differ between runs."""
    if step.op.length_by_values == "index":
        deciding = [v for v in step.inputs[1:] if v.dtype.kind == "b"]  # masks
    else:
        deciding = step.inputs[:1] if step.op.length_by_values else []
    return any(v.constant is None for v in deciding)


class Program:
    """The steps of a traced function, in the order in which they ran.

    Attributes:
        inputs: Values of the arguments.
        steps: in order.
        outputs: Values of the results.
        reads: Variables and their Values at the start.
        writes: the Variables that change, and their Values at the end.
    """

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.steps: list[Step] = []
        self.outputs: list[Value] = []
        self.reads: list[tuple[Variable, Value]] = []
        self.writes: list[tuple[Variable, Value]] = []

    def values(self) -> Iterator[Value]:
        """Every value once, in the order of first use."""
        seen: dict[int, Value] = {}
        for v in (*self.inputs, *(v for _, v in self.reads)):
            seen.setdefault(id(v), v)
        for step in self.steps:
            for v in (*step.inputs, *step.outs):
                seen.setdefault(id(v), v)
        for v in (*self.outputs, *(v for _, v in self.writes)):
            seen.setdefault(id(v), v)
        return iter(seen.values())

    def loose(self) -> list[tuple[int, tuple[int, ...]]]:
        """Positions in `reads` of the Variables that accept another shape, and their shapes."""
        return [(k, v.shape) for k, (var, v) in enumerate(self.reads) if var._fits != v.shape]

    def copy(self) -> Program:
        """A program with new lists of the same steps and values."""
        copy = Program()
        copy.inputs, copy.outputs = list(self.inputs), list(self.outputs)
        copy.steps, copy.reads, copy.writes = list(self.steps), list(self.reads), list(self.writes)
        return copy

    def forget_arrays(self) -> None:
        """Free the arrays of the traced run, in the steps and in their copies."""
        for step in self.steps:
            step.results.clear()  # in place: copies of a step share the list

    def __str__(self) -> str:
        return text(self)


def value_names(program: Program) -> dict[int, str]:
    """The names of all values but constants, by id: ``in0``, a Variable's name, ``t0``."""
    names = {id(v): f"in{k}" for k, v in enumerate(program.inputs)}
    seen: dict[str, int] = {}
    for variable, v in program.reads:
        nth = seen[variable.name] = seen.get(variable.name, 0) + 1
        names[id(v)] = variable.name if nth == 1 else f"{variable.name}#{nth}"
    count = 0
    for step in program.steps:
        for v in (v for part in step.parts or [step] for v in part.outs):
            if id(v) not in names:
                names[id(v)] = f"t{count}"
                count += 1
    return names


def argument_text(a: Any, names: dict[int, str]) -> str:
    """An argument of a step as text."""
    if isinstance(a, list):
        return "[" + ", ".join(argument_text(x, names) for x in a) + "]"
    if not isinstance(a, Value):
        return repr(a)
    if a.constant is not None:
        small = a.constant.size == 1
        return repr(a.constant.reshape(-1)[0].item()) if small else f"const{list(a.shape)}"
    return names[id(a)]


def step_text(step: Step, names: dict[int, str]) -> str:
    """A step as a line of text."""
    left = ", ".join(f"{names[id(v)]} {v.dtype}{list(v.shape)}" for v in step.outs)
    arguments = [argument_text(a, names) for a in step.args]
    defaults = {k: repr(v) for k, v in getattr(step.op, "params", {}).items()}
    arguments += [f"{k}={v!r:.40}" for k, v in step.params.items() if repr(v) != defaults.get(k)]
    return f"{left + ' = ' if left else ''}{step.name}({', '.join(arguments)})"


def text(program: Program) -> str:
    """A program as text, one line a step; the steps of a group are indented below it."""
    names = value_names(program)
    inputs = [f"{names[id(v)]} {v.dtype}{list(v.shape)}" for v in program.inputs]
    lines = ["inputs: " + ", ".join(inputs)]
    lines += [f"Variable {names[id(v)]} {v.dtype}{list(v.shape)}" for _, v in program.reads]
    for step in program.steps:
        lines.append(f"{step.name}:" if step.parts else step_text(step, names))
        lines += [f"    {step_text(part, names)}" for part in step.parts]
        for label, inner in step.programs:
            lines.append(f"    {label}:")
            lines += [f"        {below}" for below in text(inner).split("\n")]
    known = {variable._id: names[id(v)] for variable, v in program.reads}
    lines += [
        f"{known[variable._id]} <- {argument_text(v, names)}" for variable, v in program.writes
    ]
    lines.append("return " + ", ".join(argument_text(v, names) for v in program.outputs))
    return "\n".join(lines)


# ---- traced arrays in an index ------------------------------------------------------------


class Argument:
    """Stands in an index for a traced array: the position of the step's argument."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position

    def __repr__(self) -> str:
        return f"argument {self.position}"


def takes_arguments(index: Any) -> bool:
    """Whether an index holds arguments of the step, so that it differs between runs."""
    return Argument in map(type, index if type(index) is tuple else (index,))


def fill_index(index: Any, args: Sequence[Any]) -> Any:
    """An index with the step's arguments in place of their stand-ins."""
    if type(index) is tuple:
        return tuple(fill_index(part, args) for part in index)
    return args[index.position] if type(index) is Argument else index
