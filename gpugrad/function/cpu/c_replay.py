"""Replay on the CPU with C kernels: neighbouring kernels are one call.

Python prepares each call once: the addresses of the kernels, and their places in a table of
pointers, the *slots*. A slot holds the address of a buffer of the arena, of a constant, or of an
array from outside; only these are filled in before a call::

    def run(arrays, reads, arena, release, hold):
        in0, = arrays
        arrays.clear()
        b0, slots, = arena
        if release: release()
        t9 = empty((), dtype)
        kernels(slots, in0, t9)
        in0 = None
        ...
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.function.cpu.c_kernels import CKernel
from gpugrad.function.cpu.c_program import CProgram
from gpugrad.function.cpu.replay import CpuReplay
from gpugrad.function.passes.fuse import FusedKernel
from gpugrad.function.passes.pieces import Pieces
from gpugrad.trace.program import Program, Step, Value

__all__ = ["CReplay"]

Place = tuple[str, int]
"""``("buffer", k)``, ``("constant", k)`` or, for an array from outside, ``("array", k)``."""


class _Run:
    """Neighbouring kernels, as one call.

    Attributes:
        name: the name of the call in the replay's text.
        line: the index of its line there.
        calls: the kernels, and where their arrays are.
        arrays: the names of the arrays from outside, and their numbers.
    """

    def __init__(self, name: str, line: int) -> None:
        self.name, self.line = name, line
        self.calls: list[tuple[CKernel, list[Place]]] = []
        self.arrays: dict[str, int] = {}

    @property
    def text(self) -> str:
        """The line that calls it."""
        return f"{self.name}({', '.join(['slots', *self.arrays])})"


class _Slots:
    """The table of pointers of one replay, and memory for partial sums."""

    def __init__(self, fixed: list[Any], others: int, scratch: int) -> None:
        self.pointers = np.zeros(len(fixed) + others, np.uintp)
        self.pointers[: len(fixed)] = [a.ctypes.data for a in fixed]
        self.address = self.pointers.ctypes.data
        self._scratch = np.empty(scratch, np.uint8)
        self.scratch = self._scratch.ctypes.data


class CReplay(CpuReplay):
    """A planned program with C kernels; see `CpuReplay`.

    Args:
        compiled: the program and its kernels. If they are not loaded, it can be measured, but not
            run.
        arena, in_place: see `CpuReplay`.
    """

    def __init__(self, compiled: CProgram, arena: bool = True, in_place: bool = True) -> None:
        self._compiled = compiled
        self._open: _Run | None = None  # the run that the next kernel may join
        self._runs: list[_Run] = []
        self._constants: dict[int, tuple[int, Any]] = {}  # that kernels read, by id of the Value
        self._places: dict[int, Place] = {}  # of contiguous values that kernels have computed
        self._named = _read_by_name(compiled.program)
        super().__init__(compiled.program, arena, in_place)

    def _write(self) -> None:
        super()._write()
        if self._compiled.loaded:
            for run in self._runs:
                self._identifiers.scope[run.name] = self._bound(run)

    def _bound(self, run: _Run) -> Any:
        constants = len(self._buffers)
        first = {"buffer": 0, "constant": constants, "array": constants + len(self._constants)}
        table: list[int] = []
        for kernel, places in run.calls:
            table += self._compiled.entry(kernel, [first[kind] + k for kind, k in places])
        numbers = np.array(table, np.int64)
        return functools.partial(
            _call, self._compiled.call(), numbers, numbers.ctypes.data, len(run.calls),
            first["array"],
        )  # fmt: skip

    def _names_of_arena(self) -> list[str]:
        return super()._names_of_arena() + ["slots"] * bool(self._runs)

    def _new_arena(self) -> list[Any]:
        arena = super()._new_arena()
        if self._runs:
            fixed = arena + [array for _, array in self._constants.values()]
            scratch = max(k.scratch for run in self._runs for k, _ in run.calls)
            arena.append(_Slots(fixed, max(len(run.arrays) for run in self._runs), scratch))
        return arena

    # -- the text

    def _step(self, step: Step, ends: set[int], roots: dict[int, int], done: set[int]) -> None:
        if isinstance(step, FusedKernel):
            self._kernel(step, ends, roots)
            return
        if self._is_reshape(step):
            (out,) = step.outs
            place = self._places[id(out)] = self._places[id(step.inputs[0])]
            if place[0] == "buffer" and id(out) not in self._named:
                return
            if self._open:
                self._insert(self._open, self._line_of(super()._step, step, ends, roots, done))
                return
        self._open = None
        if isinstance(step, Pieces):
            run = functools.partial(step.run, NUMPY)
            self._call(step, self._identifiers.bind("pieces", run))
            return
        super()._step(step, ends, roots, done)

    def _line_of(self, write: Any, *args: Any) -> str:
        write(*args)
        return self._lines.pop()

    def _insert(self, run: _Run, line: str) -> None:
        self._lines.insert(run.line, line)
        run.line += 1

    def _is_reshape(self, step: Step) -> bool:
        """Whether a step is another view of memory whose place is known."""
        return step.op is not None and step.op.view == "reshape" and step.outs[0].view and (
            id(step.inputs[0]) in self._places
        )

    def _kernel(self, step: FusedKernel, ends: set[int], roots: dict[int, int]) -> None:
        kernel = self._compiled.kernels[id(step)]
        if self._open is None:
            name = self._identifiers.new("kernels")
            self._open = _Run(name, len(self._lines))
            self._runs.append(self._open)
            self._lines.append("")
        run = self._open
        places = [self._place(v, run) for v in kernel.inputs]
        read = {r: [v for v in step.inputs if roots.get(id(v), id(v)) == r] for r in ends}
        free = {r for r, values in read.items() if kernel.reads_in_order(values)}
        for v in kernel.outs:
            name = self._names[id(v)]
            buffer = self._buffer(v, free if kernel.writes_in_order(v) else set(), roots)
            if buffer:
                self.buffered.add(id(v))
                self._places[id(v)] = "buffer", int(buffer[1:])
                if id(v) in self._named:
                    self._insert(run, f"{name} = {buffer}")
            else:
                empty, dtype = self._shared_name("empty", np.empty), self._dtype_name(v)
                self._insert(run, f"{name} = {empty}({v.shape!r}, {dtype})")
                self._places[id(v)] = "array", run.arrays.setdefault(name, len(run.arrays))
            places.append(self._place(v, run))
        run.calls.append((kernel, places))
        self._lines[run.line] = run.text

    def _dtype_name(self, v: Value) -> str:
        return self._shared_name("dtype", v.dtype)

    def _place(self, v: Value, run: _Run) -> Place:
        if v.constant is not None:
            array = np.ascontiguousarray(v.constant)
            k, _ = self._constants.setdefault(id(v), (len(self._constants), array))
            return "constant", k
        place = self._places.get(id(v))
        if place is not None and place[0] == "buffer":
            return place
        name = self._names[id(v)]
        return "array", run.arrays.setdefault(name, len(run.arrays))


def _read_by_name(program: Program) -> set[int]:
    """Ids of the values that a line of the replay reads, and not only kernels."""
    names = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    for step in reversed(program.steps):
        is_reshape = step.op is not None and step.op.view == "reshape" and step.outs[0].view
        if not isinstance(step, FusedKernel) and not (
            is_reshape and id(step.outs[0]) not in names
        ):
            names.update(map(id, step.inputs))
    return names


def _call(
    call: Any, table: Any, address: int, count: int, first: int, slots: _Slots, *arrays: Any
) -> None:
    """Fill in the addresses of the arrays from outside, and run the kernels in `table`."""
    pointers, copies = slots.pointers, []
    for k, a in enumerate(arrays, first):
        if type(a) is not np.ndarray or not a.flags.c_contiguous:  # NumPy may return a scalar
            a = np.ascontiguousarray(a)
            copies.append(a)
        pointers[k] = a.ctypes.data
    call(address, count, slots.address, slots.scratch)
