"""Programs: what a function does, as steps in the order in which they ran.

`gpugrad.trace.tracing` writes them, the passes of `gpugrad.function` rewrite them, and a replay
reads them. A step is an op and its arguments, or an *effect* that calls Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from gpugrad.core.variable import Variable

__all__ = [
    "CHECKS", "Argument", "Launched", "NotReplayable", "Program", "Step", "Undo", "Value",
    "by_values", "called", "check_shapes", "filled", "line", "named", "takes_arguments",
]  # fmt: skip

Undo = Callable[[], Callable[[], None]]

CHECKS = frozenset(("no_nan", "same length"))
"""Effects that do nothing but find out whether the function has to be called instead."""


class NotReplayable(Exception):
    """A run of a program finds that the function would do something else: it is called instead.

    Attributes:
        once: whether it will not be so in the next call.
    """

    once = False


def check_shapes(loose: Sequence[tuple[Variable, tuple[int, ...]]]) -> None:
    """Raise a NotReplayable if a Variable has another shape now than in `Program.loose`."""
    for variable, shape in loose:
        if variable._data.shape != shape:
            raise NotReplayable(f"the shape of the Variable '{variable.name}'")


class Launched(Protocol):
    """What the call of an effect may have as `launched`: kernels that do it on fixed memory.

    A CUDA graph can hold them, as all that differs between runs is in numbers on the device.

    Attributes:
        version: another one once `launch` would launch something else than it did.
        widens: where it is there, whether 16-bit floats may stand in the place of float32.
    """

    version: int

    def numbers(self) -> list[Any]:
        """NumPy arrays of the next run's numbers, as many bytes each time; counts the run."""

    def uncount(self) -> None:
        """Take the last count back: nothing was launched."""

    def launch(self, arrays: list[Any], values: list[Any], live: list[Any]) -> list[Any]:
        """Launch on bare arrays of what the effect reads, and of the Variables that it moves.

        Those it writes to. `live` are the numbers on the device.

        Returns:
            The arrays of the effect's own results.
        """


class Value:
    """A value of a program: an input, a constant or the result of a step.

    Attributes:
        shape, dtype: of the array.
        constant: the array, if it is the same in every run; else None.
        view: whether its memory may be that of another value.
        host: whether it is an array of NumPy's.
    """

    __slots__ = ("constant", "dtype", "host", "shape", "view")

    def __init__(self, array: Any, constant: bool = False) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self.constant = array if constant else None
        self.host = isinstance(array, np.ndarray)
        self.view = False

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return int(np.prod(self.shape)) * int(self.dtype.itemsize)


class Step:
    """One op of a program, or one effect (`op` is None then).

    Attributes:
        op: the record.
        args: a Value, a number, or None for each array argument; a variadic op has a list.
        params: the metadata arguments.
        outs: the results.
        name: of the op or effect.
        call: what an effect calls with the arrays of `args`; it returns arrays for `outs`.
        variables: the Variables that an effect moves; their values are the last of `outs`.
        undo: called before an effect; returns what puts back all else that it changes. None if
            it cannot be put back.
        backward: whether it is of a backward pass.
        phase: steps of different phases are in no group together.
        results: the arrays of `outs` in the run that was traced, until the program is planned.
    """

    __slots__ = (
        "args", "backward", "call", "name", "op", "outs", "params", "phase", "results", "undo",
        "variables",
    )  # fmt: skip

    def __init__(
        self, op: Any, args: Sequence[Any], params: dict[str, Any], outs: list[Value], *,
        name: str = "", call: Callable[..., Any] | None = None,
        variables: Sequence[Variable] = (), undo: Undo | None = None,
    ) -> None:  # fmt: skip
        self.op, self.args, self.params, self.outs = op, tuple(args), params, outs
        self.name, self.call, self.variables = name or op.name, call, tuple(variables)
        self.undo, self.backward, self.phase = undo, False, 0
        self.results: list[Any] = []

    @property
    def parts(self) -> Sequence[Step]:
        """The steps of which it is made, if it is a group of them."""
        return ()

    @property
    def programs(self) -> Sequence[tuple[str, Program]]:
        """Those of the functions that it may call, and what they are to it."""
        return getattr(self.op or self.call, "programs", ())

    @property
    def launched(self) -> Launched | None:
        """How kernels do what it does, if it is an effect that they can do."""
        return getattr(self.call, "launched", None)

    @property
    def inputs(self) -> list[Value]:
        """The values that it reads."""
        found: list[Value] = []
        for a in self.args:
            found += [v for v in (a if isinstance(a, list) else [a]) if isinstance(v, Value)]
        return found


def by_values(step: Step) -> bool:
    """Whether values that differ between runs say how long the result of a step is."""
    if step.op.length_by_values == "index":
        deciding = [v for v in step.inputs[1:] if v.dtype.kind == "b"]  # masks
    else:
        deciding = step.inputs[:1] if step.op.length_by_values else []
    return any(v.constant is None for v in deciding)


class Program:
    """What a function does, as steps in the order in which they ran.

    Attributes:
        inputs: Values of the arguments.
        steps: in order.
        outputs: Values of the results.
        reads: Variables and the Values that they have at the start.
        writes: Variables and the Values that they have at the end, if they are others.
    """

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.steps: list[Step] = []
        self.outputs: list[Value] = []
        self.reads: list[tuple[Variable, Value]] = []
        self.writes: list[tuple[Variable, Value]] = []

    def values(self) -> Iterator[Value]:
        """Every value, in the order in which it comes up."""
        seen: dict[int, Value] = {}
        for v in (*self.inputs, *(v for _, v in self.reads)):
            seen.setdefault(id(v), v)
        for step in self.steps:
            for v in (*step.inputs, *step.outs):
                seen.setdefault(id(v), v)
        for v in (*self.outputs, *(v for _, v in self.writes)):
            seen.setdefault(id(v), v)
        return iter(seen.values())

    def loose(self) -> list[tuple[Variable, tuple[int, ...]]]:
        """Variables that may be given another shape, and the one that they have here."""
        return [(var, v.shape) for var, v in self.reads if var._fits != v.shape]

    def copy(self) -> Program:
        """A program with lists of its own, and the same steps and values."""
        made = Program()
        made.inputs, made.outputs = list(self.inputs), list(self.outputs)
        made.steps, made.reads, made.writes = list(self.steps), list(self.reads), list(self.writes)
        return made

    def forget_arrays(self) -> None:
        """Let go of the arrays of the run that was traced; copies of the steps do so too."""
        for step in self.steps:
            step.results.clear()  # in place: a step that a pass has copied has the same list

    def __str__(self) -> str:
        return text(self)


def named(program: Program) -> dict[int, str]:
    """Names of a program's values by id, but for constants: ``in0``, a Variable's, ``t0``."""
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


def called(a: Any, names: dict[int, str]) -> str:
    """An argument of a step as text."""
    if isinstance(a, list):
        return "[" + ", ".join(called(x, names) for x in a) + "]"
    if not isinstance(a, Value):
        return repr(a)
    if a.constant is not None:
        small = a.constant.size == 1
        return repr(a.constant.reshape(-1)[0].item()) if small else f"const{list(a.shape)}"
    return names[id(a)]


def line(step: Step, names: dict[int, str]) -> str:
    """A step as a line of text."""
    left = ", ".join(f"{names[id(v)]} {v.dtype}{list(v.shape)}" for v in step.outs)
    given = [called(a, names) for a in step.args]
    usual = {k: repr(v) for k, v in getattr(step.op, "params", {}).items()}
    given += [f"{k}={v!r:.40}" for k, v in step.params.items() if repr(v) != usual.get(k)]
    return f"{left + ' = ' if left else ''}{step.name}({', '.join(given)})"


def text(program: Program) -> str:
    """A program as readable text, one line a step; a group has its steps below it."""
    names = named(program)
    inputs = [f"{names[id(v)]} {v.dtype}{list(v.shape)}" for v in program.inputs]
    lines = ["inputs: " + ", ".join(inputs)]
    lines += [f"Variable {names[id(v)]} {v.dtype}{list(v.shape)}" for _, v in program.reads]
    for step in program.steps:
        lines.append(f"{step.name}:" if step.parts else line(step, names))
        lines += [f"    {line(part, names)}" for part in step.parts]
        for label, inner in step.programs:
            lines.append(f"    {label}:")
            lines += [f"        {below}" for below in text(inner).split("\n")]
    known = {variable._id: names[id(v)] for variable, v in program.reads}
    lines += [f"{known[variable._id]} <- {called(v, names)}" for variable, v in program.writes]
    lines.append("return " + ", ".join(called(v, names) for v in program.outputs))
    return "\n".join(lines)


# ---- traced arrays in an index ------------------------------------------------------------


class Argument:
    """The place of a traced array in an index: which of the step's arguments it is."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position

    def __repr__(self) -> str:
        return f"argument {self.position}"


def takes_arguments(index: Any) -> bool:
    """Whether an index has arguments of the step in it: then it differs between runs."""
    return Argument in map(type, index if type(index) is tuple else (index,))


def filled(index: Any, args: Sequence[Any]) -> Any:
    """An index with the arguments of a step in their places."""
    if type(index) is tuple:
        return tuple(filled(part, args) for part in index)
    return args[index.position] if type(index) is Argument else index
