"""Replay on the CPU: a program as one Python function, with buffers planned beforehand.

Each step is a line: a ufunc or a matrix product that writes to a buffer of the arena, or the op's
own function. A buffer is reused once all values in it have been read. Results and values of
Variables get new memory at each run, so results of earlier runs never change. Values have the names
of the printed program::

    def run(arrays, reads, arena, release, hold):
        in0, = arrays
        arrays.clear()
        b0, = arena
        if release: release()
        t0 = sin(in0, b0)
        t1 = tanh(t0, b0)
        t0 = None
        t2 = sum(t1)
        ...
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, as_array
from gpugrad.core.replaceable import Update, read_together, write_together
from gpugrad.core.scopes import updating
from gpugrad.function.cpu.arena import arrays_in_one_block
from gpugrad.function.cpu.blocks import (
    SMALLEST,
    Group,
    compile_group,
    numpy_of,
    out_keyword,
    ufunc_of,
)
from gpugrad.function.cpu.over import call_over, position_over
from gpugrad.function.cpu.source import Names, compile_function
from gpugrad.function.passes.rewrite import is_product
from gpugrad.function.step_calls import effect_call, op_call, reraise_as_op
from gpugrad.kernels.cpu import products
from gpugrad.kernels.cpu.large import LARGE, on_threads
from gpugrad.trace.program import Program, Step, Value, check_shapes, value_names

_RESERVED = ("run", "arrays", "reads", "arena", "release", "hold", "values", "slots")


class CpuReplay:
    """A planned program.

    Args:
        program: the program, in groups.
        arena: whether results go to planned buffers.
        in_place: whether a result may overwrite what it is computed from, and a Variable's new
            value its old one.

    Attributes:
        source: the text of the function.
        arena_bytes: the bytes of the buffers that one run at a time takes.
        buffered: ids of the Values in these buffers.
        xp: the namespace of the arrays.
        repeats: whether it can run several steps in one call: False.
    """

    repeats = False

    def __init__(self, program: Program, arena: bool = True, in_place: bool = True) -> None:
        self._arena, self._in_place = arena, in_place
        self._identifiers = Names(_RESERVED, letters="b")
        self._identifiers.bind("asarray", functools.partial(as_array, kind=np.ndarray))
        self._names = self._value_names(program)
        self._shared: dict[tuple[int, str], str] = {}  # names of objects that steps share
        self._lines: list[str] = []
        self._step_of_line: dict[int, Step] = {}
        self._buffers: list[tuple[tuple[int, ...], Any]] = []
        self._program, self._loose = program, program.loose()
        self._read = [variable for variable, _ in program.reads]
        self._moved = [variable for variable, _ in program.writes]
        updated = {v._id for step in program.steps for v in step.variables}
        assert updated <= {v._id for v in self._moved}
        self._updates = bool(updated)
        self.buffered: set[int] = set()
        self.xp = next((s.xp for s in program.steps if s.xp is not None), NUMPY)
        self._write()
        self.source = "\n    ".join(self._lines) + "\n"
        self.arena_bytes = sum(int(np.prod(s)) * d.itemsize for s, d in self._buffers)
        self._run = compile_function(self.source, "run", self._identifiers.scope, "program")
        self._arenas: deque[list[Any]] = deque()  # one for each thread that runs at once

    def __call__(self, arrays: list[Any], release: Callable[[], None] | None = None) -> list[Any]:
        """Run the program on plain arrays; Variables change only after all steps have succeeded.

        Args:
            arrays: the arrays of the inputs. The list is emptied, so that an array is freed when
                the last step that reads it has run.
            release: called once no later step can make the function be called instead.

        Raises:
            NotReplayable: a Variable's shape differs from the program's. Nothing has run.
        """
        if not self._moved:
            return self._results(arrays, release)
        with updating:  # a run in another thread would overwrite what this one writes
            return self._results(arrays, release)

    def _results(self, arrays: list[Any], release: Callable[[], None] | None) -> list[Any]:
        reads = read_together(self._read)
        check_shapes(self._loose, reads)
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = self._new_arena()
        update = Update() if self._updates else None
        with np.errstate(all="ignore"):
            try:
                hold = update and update.hold
                results, writes = self._run(arrays, reads, arena, release, hold)
            except BaseException as error:
                if update:
                    update.fail()  # what optimizers have updated stays updated
                step = self._step_at(error)
                if step is not None and isinstance(error, Exception):
                    reraise_as_op(error, step)
                raise
        if update:
            update.finish(self._moved, writes)
        elif self._moved:
            write_together(self._moved, writes)
        self._arenas.append(arena)
        return results

    def _new_arena(self) -> list[Any]:
        return arrays_in_one_block(self._buffers)

    def _step_at(self, error: BaseException) -> Step | None:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code is not self._run.__code__:
            trace = trace.tb_next
        return None if trace is None else self._step_of_line.get(trace.tb_lineno)

    # -- names

    def _value_names(self, program: Program) -> dict[int, str]:
        """The names in the printed program as identifiers, by id of the Value."""
        names = value_names(program)
        variables = {id(v) for _, v in program.reads}
        self._identifiers.reserve(name for at, name in names.items() if at not in variables)
        return {
            at: self._identifiers.new(name) if at in variables else name
            for at, name in names.items()
        }

    def _name(self, a: Any) -> str:
        if isinstance(a, list):
            return "[" + ", ".join(map(self._name, a)) + "]"
        if isinstance(a, Value):
            if a.constant is not None:
                return self._shared_name("const", a.constant)
            return self._names[id(a)]
        if type(a) in (int, bool) or (type(a) is float and math.isfinite(a)):
            return repr(a)
        return self._identifiers.bind("const", a)

    def _shared_name(self, name: str, thing: Any) -> str:
        """The one global name of an object that several steps may use."""
        key = id(thing), name
        if key not in self._shared:
            self._shared[key] = self._identifiers.bind(name, thing)
        return self._shared[key]

    # -- the text

    def _write(self) -> None:
        program, lines = self._program, self._lines
        lines.append("def run(arrays, reads, arena, release, hold):")
        if program.inputs:
            lines.append(f"{', '.join(self._names[id(v)] for v in program.inputs)}, = arrays")
            lines.append("arrays.clear()")
        if program.reads:
            lines.append(f"{', '.join(self._names[id(v)] for _, v in program.reads)}, = reads")
            lines.append("reads.clear()")  # an update in place needs the only reference
        at = len(lines)
        self._write_steps()
        if names := self._names_of_arena():
            lines.insert(at, f"{', '.join(names)}, = arena")
            self._step_of_line = {n + 1: step for n, step in self._step_of_line.items()}
        outs = ", ".join(f"asarray({self._name(v)})" for v in program.outputs)
        writes = ", ".join(f"asarray({self._name(v)})" for _, v in program.writes)
        lines.append(f"return [{outs}], [{writes}]")

    def _names_of_arena(self) -> list[str]:
        return [f"b{k}" for k in range(len(self._buffers))]

    def _write_steps(self) -> None:
        program, lines = self._program, self._lines
        roots = self._roots()
        leaving = [*program.outputs, *(v for _, v in program.writes)]
        self._escaping = {roots[id(v)] for v in leaving if id(v) in roots}
        # the step that reads a value last: any value in the same memory, or this one
        last_of_root = {
            roots.get(id(v), id(v)): k for k, step in enumerate(program.steps) for v in step.inputs
        }
        last = {id(v): k for k, step in enumerate(program.steps) for v in step.inputs}
        last = self._last_reads(last, {at: last_of_root.get(r, -1) for at, r in roots.items()})
        unread: dict[int, set[int]] = {}  # by step: what no later one reads
        for at, k in last.items():
            unread.setdefault(k, set()).add(at)
        kept = {id(v) for v in leaving}
        kept |= {id(v) for s in program.steps for v in s.inputs if v.constant is not None}
        self._held: dict[int, int] = {}  # buffer by root
        self._free: dict[Any, list[int]] = {}
        # steps that may raise NotReplayable: a check does, and another effect might
        effects = [(k, s) for k, s in enumerate(program.steps) if s.op is None and not s.parts]
        checks = [k for k, s in effects if not s.variables]
        lines += [] if checks else ["if release: release()"]
        for k, step in enumerate(program.steps):
            read = (roots.get(id(v), id(v)) for v in step.inputs)
            ends = {r for r in read if last_of_root[r] == k}
            done = unread.get(k, set()) - kept
            self._step(step, ends, roots, done)
            self._step_of_line[len(lines)] = step
            for r in ends:
                if r in self._held and r not in self._escaping:
                    slot = self._held.pop(r)
                    self._free.setdefault(self._buffers[slot], []).append(slot)
            done = self._named(done)
            if done and not step.variables:
                lines.append(f"{' = '.join(sorted(self._names[v] for v in done))} = None")
            if checks and k == checks[-1]:
                lines.append("if release: release()")

    def _last_reads(self, last: dict[int, int], of_root: dict[int, int]) -> dict[int, int]:
        """The step that reads each value last; `of_root` counts those that read views of it."""
        return last

    def _named(self, done: set[int]) -> set[int]:
        """The values in `done` that have a name in the text."""
        return done

    def _roots(self) -> dict[int, int]:
        """The first value whose memory a value may share, by id."""
        roots: dict[int, int] = {}
        for v in (*self._program.inputs, *(v for _, v in self._program.reads)):
            roots[id(v)] = id(v)
        for step in self._program.steps:
            for v in step.outs:
                roots[id(v)] = id(v)
                if v.view and step.op is not None:  # a kernel's results have new memory
                    shared = {roots[id(a)] for a in step.inputs if id(a) in roots}
                    if shared:
                        first = min(shared)
                        for key, root in roots.items():
                            if root in shared:
                                roots[key] = first
                        roots[id(v)] = first
        return roots

    def _step(self, step: Step, ends: set[int], roots: dict[int, int], done: set[int]) -> None:
        if isinstance(step, Group):
            self._call(step, self._identifiers.bind(step.name, compile_group(step)))
            return
        if step.op is None:
            self._effect(step, done)
            return
        (out, *more) = step.outs
        function = None if more or out.view or self.xp is not NUMPY else _writer_to_buffer(step)
        if function is None:
            run = op_call(step, self.xp)
            if self._overwritten(step, ends, roots, done) is not None:
                run = call_over(step, run)
            self._call(step, self._identifiers.bind(step.op.name, run))
            return
        args = [self._name(a) for a in step.args]
        if _is_plain_relu(step):
            args.append(self._identifiers.bind("zeros", _zeros(out)))
        in_place = step.op.by_element and step.op.numpy is None
        buffer = self._buffer(out, ends if in_place else set(), roots)
        if buffer:
            self.buffered.add(id(out))
            args.append(out_keyword(function) + buffer)
        call = f"{self._shared_name(step.op.name, function)}({', '.join(args)})"
        result = call if out.shape or buffer else f"asarray({call})"
        self._lines.append(f"{self._names[id(out)]} = {result}")

    def _overwritten(
        self, step: Step, ends: set[int], roots: dict[int, int], done: set[int]
    ) -> Value | None:
        """The argument that a step can write its result over, if no later step reads its memory."""
        if not self._in_place or self.xp is not NUMPY or (at := position_over(step)) is None:
            return None
        v = step.args[at]
        is_read_last = isinstance(v, Value) and id(v) in done
        return v if is_read_last and roots.get(id(v), id(v)) in ends else None

    def _call(self, step: Step, function: str) -> None:
        names = [self._names[id(v)] for v in step.outs]
        call = f"{function}({', '.join(self._name(a) for a in step.args)})"
        if step.op is None or step.op.outputs > 1:
            self._lines.append(f"{', '.join(names)}, = {call}")
        else:
            self._lines.append(f"{names[0]} = {call if step.outs[0].shape else f'asarray({call})'}")

    def _buffer(self, out: Value, ends: set[int], roots: dict[int, int]) -> str:
        """The buffer that a result goes to; "" for a result that leaves the program."""
        if not self._arena or roots[id(out)] in self._escaping or not out.shape:
            return ""
        kind = (out.shape, out.dtype)
        for root in ends if self._in_place else ():  # elementwise: it may overwrite an argument
            slot = self._held.get(root)
            if slot is not None and self._buffers[slot] == kind and root not in self._escaping:
                del self._held[root]
                self._held[roots[id(out)]] = slot
                return f"b{slot}"
        spare = self._free.get(kind)
        if spare:
            slot = spare.pop()
        else:
            slot = len(self._buffers)
            self._buffers.append(kind)
        self._held[roots[id(out)]] = slot
        return f"b{slot}"

    def _effect(self, step: Step, done: set[int]) -> None:
        n = len(step.args) - len(step.variables)
        names = [self._names[id(v)] for v in step.outs]
        args = ", ".join(self._name(a) for a in step.args[:n])
        values = [self._name(a) for a in step.args[n:]]
        call = self._identifiers.bind(step.name, effect_call(step))
        targets = f"{', '.join(names)}, = " if names else ""
        if not values:
            self._lines.append(f"{targets}{call}([{args}], (), [])")
            return
        # dropped here, so that an update in place holds the only reference to the array
        self._lines.append(f"values = [{', '.join(values)}]")
        free = {self._names[id(a)] for a in step.args[n:] if id(a) in done and self._in_place}
        if free := free.difference(map(self._name, step.args[:n])):  # one is a gradient too
            self._lines.append(f"{' = '.join(sorted(free))} = None")
        variables = self._identifiers.bind(f"{step.name}_variables", step.variables)
        self._lines.append(f"hold({variables})")
        self._lines.append(f"{targets}{call}([{args}], {variables}, values)")


def _writer_to_buffer(step: Step) -> Any:
    """NumPy's function that executes a step and can write to an array, or None."""
    if _is_plain_relu(step):
        return np.maximum
    if not is_product(step):
        return _ufunc(step) or numpy_of(step)
    if not all(isinstance(a, Value) for a in step.args) or step.outs[0].dtype.char in "eE":
        return None  # the op rounds 16-bit floats itself
    matrices = all(len(a.shape) == 2 for a in step.args)
    return products.matmul_for(*step.args) or (np.matmul if matrices else None)


def _ufunc(step: Step) -> Any:
    """The ufunc of a step, on threads if it is large, or None if a kernel has the same bits."""
    ufunc, n = ufunc_of(step.op), math.prod(step.outs[0].shape)
    if ufunc is None or (step.op.cpu and step.op.large <= n < LARGE):
        return None
    return functools.partial(on_threads, ufunc) if n >= LARGE else ufunc


def _is_plain_relu(step: Step) -> bool:
    """Whether a step is a relu that is faster as the maximum of two arrays, one of them zeros.

    NumPy has vector instructions for two arrays, but not for an array and a number.
    """
    (out, *_) = step.outs
    return step.op.name == "relu" and out.dtype.char in "fd" and math.prod(out.shape) <= SMALLEST


@functools.cache
def _flat_zeros(dtype: np.dtype[Any]) -> Any:
    return np.zeros(SMALLEST, dtype)  # it is only read, so the system allocates no pages for it


def _zeros(out: Value) -> Any:
    return _flat_zeros(out.dtype)[: math.prod(out.shape)].reshape(out.shape)
