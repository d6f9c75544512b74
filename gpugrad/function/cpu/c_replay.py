"""Replay on the CPU with C kernels: neighbouring kernels, products and copies are one call.

Python prepares each call once. It passes only the arrays that come from outside; buffers of the
arena, views of them and constants are in fixed *slots*::

    def run(arrays, reads, arena, release, hold):
        in0, = arrays
        arrays.clear()
        b0, slots, = arena
        if release: release()
        t9 = empty((), dtype)
        steps(slots, in0, t9)
        in0 = None
        ...

A view between two steps of a call moves no elements, so its line, if there is one, comes before the
call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.function.cpu.c_program import CProgram
from gpugrad.function.cpu.c_run import Place, Run
from gpugrad.function.cpu.over import reused
from gpugrad.function.cpu.replay import CpuReplay
from gpugrad.function.cpu.view_layouts import Layout, contiguous, is_view, view_of
from gpugrad.function.passes.fuse import FusedKernel
from gpugrad.function.passes.pieces import Pieces
from gpugrad.function.step_calls import effect_call, in_python
from gpugrad.kernels.cpu import step_table
from gpugrad.kernels.cpu.large import WIDE
from gpugrad.kernels.cpu.step_table import InPython, Slots, Steps
from gpugrad.trace.program import Step, Value, takes_arguments

SMALL = 1 << 12
"""Bytes of a result of pieces up to which it is joined in a buffer and copied."""


class CReplay(CpuReplay):
    """A planned program with C kernels; see `CpuReplay`.

    Args:
        compiled: the program and its kernels. If they are not loaded, it can be measured, but not
            run.
        arena, in_place: see `CpuReplay`.
    """

    def __init__(self, compiled: CProgram, arena: bool = True, in_place: bool = True) -> None:
        self._compiled = compiled
        self._open: Run | None = None  # the run that the next step may join
        self._runs: list[Run] = []
        self._fixed: dict[Any, tuple[int, Any]] = {}  # numbers of fixed slots, and what they hold
        self._homes: dict[int, int] = {}  # buffers of new values, by id
        self._parts: dict[int, int] = {}  # offsets of values that are part of a buffer, by id
        self._temporary: list[int] = []  # buffers for copies that one kernel reads
        self._bound: set[int] = set()  # values whose names are in the text
        super().__init__(compiled.program, arena, in_place)

    def _write(self) -> None:
        program = self._program
        self._bound.update(id(v) for v in (*program.inputs, *(v for _, v in program.reads)))
        super()._write()
        if self._compiled.loaded:
            for run in self._runs:
                self._identifiers.scope[run.name] = self._prepared(run)

    def _prepared(self, run: Run) -> Steps:
        first = {"fixed": 0, "array": len(self._fixed)}
        table: list[int] = []
        by_python: dict[int, InPython] = {}
        for kind, about, places in run.steps:
            slots = [first[where] + k for where, k, _ in places]
            if kind == step_table.KERNEL:
                offsets = [offset for *_, offset in places]
                table += self._compiled.entry(about, list(zip(slots, offsets, strict=True)))
            elif kind == step_table.CALL:
                address, numbers = about
                pairs = zip(slots, (offset for *_, offset in places), strict=True)
                words = [address, *numbers, *(word for pair in pairs for word in pair)]
                table += [kind, len(words), *words]
            elif kind == step_table.CHECK:
                wide, call = about
                by_python[len(table)] = functools.partial(_checked, call)
                table += [kind, 1 + len(slots), wide, *slots]
            elif kind == step_table.FUNCTION:
                address, numbers, call = about
                by_python[len(table)] = call
                words = [address, len(numbers), *numbers, *slots]
                table += [kind, len(words), *words]
            elif kind == step_table.LEAVE:
                by_python[len(table)] = about
                table += [kind, 1 + len(slots), 0, *slots]
            else:
                table += [kind, 1 + len(slots), about, *slots]
        return Steps(table, run.sizes, by_python)

    def _names_of_arena(self) -> list[str]:
        return super()._names_of_arena() + ["slots"] * bool(self._runs)

    def _new_arena(self) -> list[Any]:
        arena = super()._new_arena()
        if self._runs:
            arena.append(self._slots(arena))
        return arena

    def _slots(self, buffers: Sequence[Any]) -> Slots:
        fixed = [
            thing if isinstance(thing, np.ndarray) else view_of(thing[1:], buffers[thing[0]])
            for _, thing in self._fixed.values()
        ]
        kernels = self._compiled.kernels.values()
        scratch = max((kernel.scratch for kernel in kernels), default=0)
        return Slots(fixed, max(len(run.arrays) for run in self._runs), scratch)

    # -- the text

    def _name(self, a: Any) -> str:
        if isinstance(a, Value) and a.constant is None and id(a) not in self._bound:
            self._lines.append(self._binding(a))
        return super()._name(a)

    def _binding(self, v: Value) -> str:
        """The line that gives a name to a value in a buffer."""
        layout = self._compiled.layouts[v]
        self._bound.add(id(v))
        buffer = f"b{self._homes[id(layout.root)]}"
        if layout.root is v:
            return f"{self._names[id(v)]} = {buffer}"
        about = v.shape, v.dtype, layout.offset, layout.strides
        view = functools.partial(view_of, about)
        return f"{self._names[id(v)]} = {self._identifiers.bind('view', view)}({buffer})"

    def _last_reads(self, last: dict[int, int], of_root: dict[int, int]) -> dict[int, int]:
        """An array is also read where kernels read views of it."""
        outside = (*self._program.inputs, *(v for _, v in self._program.reads))
        steps = self._program.steps
        computed = (v for s in steps for v in s.outs if s.op is None or not v.view)
        every = (v for v in (*outside, *computed) if id(v) in last)
        return last | {id(v): max(last[id(v)], of_root[id(v)]) for v in every}

    def _named(self, done: set[int]) -> set[int]:
        return done & self._bound

    def _step(self, step: Step, ends: set[int], roots: dict[int, int], done: set[int]) -> None:
        if id(step) in self._compiled.products:
            wide = int(step.outs[0].dtype.itemsize == 8)
            self._one_result(step, roots, self._array_place, step_table.PRODUCT, wide)
        elif id(step) in self._compiled.calls:
            call = self._compiled.calls[id(step)]
            self._one_result(step, roots, self._whole_place, step_table.CALL, call)
        elif id(step) in self._compiled.functions:
            function = self._compiled.functions[id(step)]
            about = function.address, function.numbers, in_python(step)
            if (old := self._overwritten(step, ends, roots, done)) is not None:
                self._reuse(old, *step.outs)
            self._arrays(step, roots, step_table.FUNCTION, about, function.tables)
        elif id(step) in self._compiled.left:
            self._arrays(step, roots, step_table.LEAVE, in_python(step))
        elif self._copied(step, roots) or self._checked(step):
            pass
        elif isinstance(step, FusedKernel):
            self._kernel(step, ends, roots)
        elif not self._is_view(step, ends, roots, done):
            self._in_python(step, ends, roots, done)

    def _in_python(self, step: Step, ends: set[int], roots: dict[int, int], done: set[int]) -> None:
        """Write a step that is not C."""
        self._open = None
        self._bound.update(map(id, step.outs))
        if isinstance(step, Pieces):
            run = functools.partial(step.run, NUMPY)
            self._call(step, self._identifiers.bind(step.name, run))
        else:
            super()._step(step, ends, roots, done)

    def _is_view(self, step: Step, *others: Any) -> bool:
        """Write a view whose line may come before the open call, or needs none."""
        if not is_view(step):
            return False
        layouts = [self._compiled.layouts.get(v) for v in step.outs]
        roots = [layout.root for layout in layouts if layout is not None]
        if any(id(root) in self._homes for root in roots):
            return True  # named when a line reads it
        if self._open is None or takes_arguments(step.params.get("index")):
            return False
        sources = [self._compiled.layouts.get(v) for v in step.inputs]
        fresh = any(s is not None and id(s.root) in self._open.fresh for s in sources)
        if fresh and not roots:  # a copy of what the call has not computed yet
            return False
        if not all(v.constant is not None or id(v) in self._bound for v in step.inputs):
            return False
        self._bound.update(map(id, step.outs))
        super()._step(step, *others)
        self._insert(self._open, self._lines.pop())
        return True

    def _insert(self, run: Run, line: str) -> None:
        self._lines.insert(run.line, line)
        run.line += 1

    def _open_run(self) -> Run:
        if self._open is None:
            self._open = Run(self._identifiers.new("steps"), len(self._lines))
            self._runs.append(self._open)
            self._lines.append("")
        return self._open

    def _finish(self, run: Run, kind: int, about: Any, places: list[Place]) -> None:
        run.steps.append((kind, about, places))
        self._lines[run.line] = f"{run.name}({', '.join(['slots', *run.arrays])})"
        if kind != step_table.COPY:
            for slot in self._temporary:
                self._free.setdefault(self._buffers[slot], []).append(slot)
            self._temporary.clear()

    def _kernel(self, step: FusedKernel, ends: set[int], roots: dict[int, int]) -> None:
        kernel = self._compiled.kernels[id(step)]
        run = self._open_run()
        places = [self._element_place(v, run) for v in kernel.inputs]
        read = {r: [v for v in step.inputs if roots.get(id(v), id(v)) == r] for r in ends}
        free = {r for r, values in read.items() if kernel.reads_in_order(values)}
        for v in kernel.outs:
            over = free if kernel.writes_in_order(v) else set[int]()
            places.append(self._new_place(v, over, roots, run))
        if kernel.sizes:
            places.append(self._constant_place(np.array(kernel.sizes)))
        self._finish(run, step_table.KERNEL, kernel, places)

    def _one_result(
        self, step: Step, roots: dict[int, int], place: Callable[..., Place], kind: int, about: Any
    ) -> None:
        run = self._open_run()
        places = [place(v, run) for v in step.args]
        places.append(self._new_place(step.outs[0], set(), roots, run))
        self._finish(run, kind, about, places)

    def _arrays(
        self, step: Step, roots: dict[int, int], kind: int, about: Any, tables: Sequence[Any] = ()
    ) -> None:
        """Write a step that gets arrays, not addresses: what it reads, tables, and its results."""
        run = self._open_run()
        place = self._array_place if kind == step_table.LEAVE else self._contiguous_place
        places = [place(v, run) for v in step.inputs]
        places += [self._constant_place(table) for table in tables]
        places += [self._new_place(v, set(), roots, run) for v in step.outs]
        self._finish(run, kind, about, places)

    def _reuse(self, old: Value, out: Value) -> None:
        """Write that a result goes over an array from outside, if nobody else sees it then."""
        if id(old) in self._bound and id(old) not in self._homes:
            call = self._shared_name("reused", reused)
            line = f"{self._names[id(out)]} = {call}({self._names[id(old)]}, None)"
            self._insert(self._open_run(), line)
            self._bound.add(id(out))

    def _copied(self, step: Step, roots: dict[int, int]) -> bool:
        """Write a step as copies; False if it does more, or its result leaves the program."""
        targets = self._compiled.copies.get(id(step))
        if targets is None or not self._arena:
            return False
        (out,) = step.outs
        leaves = roots[id(out)] in self._escaping and id(out) not in self._homes
        if leaves and out.nbytes > SMALL:
            return False
        run = self._open_run()
        home = self._homes.get(id(out))
        pairs = [
            (v, target)
            for v, target in zip(step.inputs, targets, strict=True)
            if (self._homes.get(id(v)), self._parts.get(id(v))) != (home, target.offset)
        ]  # the others are where they have been computed
        sources = [self._array_place(v, run) for v, _ in pairs]
        if leaves:
            home = self._temporary_buffer(out)
        else:
            self._new_place(out, set(), roots, run)
            home = self._homes[id(out)]
        for (v, target), source in zip(pairs, sources, strict=True):
            place = self._slot((home, v.shape, v.dtype, target.offset, target.strides))
            self._finish(run, step_table.COPY, v.dtype.itemsize, [place, source])
        if leaves:
            whole = self._slot((home, out.shape, out.dtype, 0, contiguous(out)))
            place = self._new_place(out, set(), roots, run)
            self._finish(run, step_table.COPY, out.dtype.itemsize, [place, whole])
        return True

    def _checked(self, step: Step) -> bool:
        """Write a check that gradients have no NaN; False if it is another step, or not C."""
        dtypes = {v.dtype for v in step.inputs}
        if step.call is None or step.name != "no_nan" or not dtypes <= WIDE.keys():
            return False
        run, call = self._open_run(), effect_call(step)
        for dtype in dtypes:
            some = [v for v in step.inputs if v.dtype == dtype]
            places = [self._array_place(v, run) for v in some]
            self._finish(run, step_table.CHECK, (WIDE[dtype], call), places)
        return True

    # -- places

    def _new_place(self, v: Value, over: set[int], roots: dict[int, int], run: Run) -> Place:
        """The place of a result."""
        run.fresh.add(id(v))
        if id(v) in self._bound:
            return run.array(self._names[id(v)])
        buffer = f"b{self._homes[id(v)]}" if id(v) in self._parts else self._buffer(v, over, roots)
        if not buffer and not v.shape and self._arena and roots[id(v)] not in self._escaping:
            self._buffers.append((v.shape, v.dtype))  # a scalar: NumPy would return a new one
            buffer = f"b{len(self._buffers) - 1}"
        if buffer:
            self.buffered.add(id(v))
            self._homes[id(v)] = int(buffer[1:])
            return self._fixed_place(self._compiled.layouts[v], v)
        name, self_empty = self._names[id(v)], self._shared_name("empty", np.empty)
        dtype = self._shared_name("dtype", v.dtype)
        self._insert(run, f"{name} = {self_empty}({v.shape!r}, {dtype})")
        self._bound.add(id(v))
        return run.array(name)

    def _element_place(self, v: Value, run: Run) -> Place:
        """The place of an array that a kernel reads: its first element counts."""
        if v.constant is not None:
            return self._constant_place(np.ascontiguousarray(v.constant))
        if self._compiled.is_read_in_place(v):
            layout = self._compiled.layouts[v]
            root = layout.root
            if id(root) in self._homes:
                kind, k, _ = self._fixed_place(self._compiled.layouts[root], root)
            else:
                kind, k, _ = run.array(self._array_text(root, run), v.dtype.itemsize)
            return kind, k, layout.offset
        if self._compiled.layouts.get(v) is not None:
            return self._copy_place(v, run)
        return run.array(self._array_text(v, run), v.dtype.itemsize)

    def _whole_place(self, v: Value, run: Run) -> Place:
        """The place of an array that must be contiguous."""
        layout = self._compiled.layouts.get(v)
        if v.constant is None and layout is not None and layout.strides != contiguous(v):
            return self._copy_place(v, run)
        return self._element_place(v, run)

    def _contiguous_place(self, v: Value, run: Run) -> Place:
        """The place of an array that is contiguous, or of a copy of it."""
        if v.constant is not None:
            return self._constant_place(np.ascontiguousarray(v.constant))
        layout = self._compiled.layouts.get(v)
        if layout is None:
            return run.array(self._array_text(v, run), v.dtype.itemsize)
        if layout.strides != contiguous(v):
            return self._copy_place(v, run)
        if id(layout.root) not in self._homes:
            return run.array(self._array_text(v, run), v.dtype.itemsize)
        return self._array_place(v, run)

    def _copy_place(self, v: Value, run: Run) -> Place:
        """The place of a contiguous copy of a view, for one step."""
        slot = self._temporary_buffer(v)
        place = self._slot((slot, v.shape, v.dtype, 0, contiguous(v)))
        self._finish(run, step_table.COPY, v.dtype.itemsize, [place, self._array_place(v, run)])
        return place

    def _temporary_buffer(self, v: Value) -> int:
        """The number of a buffer like a value, until a step other than a copy has run."""
        kind = v.shape, v.dtype
        spare = self._free.get(kind)
        slot = spare.pop() if spare else len(self._buffers)
        if slot == len(self._buffers):
            self._buffers.append(kind)
        self._temporary.append(slot)
        return slot

    def _array_place(self, v: Value, run: Run) -> Place:
        if v.constant is not None:
            return self._constant_place(v.constant)
        layout = self._compiled.layouts.get(v)
        if layout is not None and id(layout.root) in self._homes:
            return self._fixed_place(layout, v)
        return run.array(self._array_text(v, run))

    def _array_text(self, v: Value, run: Run) -> str:
        """An array from outside; an op with several results may have returned a scalar."""
        if id(v) not in self._bound:
            self._insert(run, self._binding(v))
        name = self._names[id(v)]
        return name if v.shape else f"asarray({name})"

    def _fixed_place(self, layout: Layout, v: Value) -> Place:
        offset = self._parts.get(id(layout.root), 0) + layout.offset
        return self._slot((self._homes[id(layout.root)], v.shape, v.dtype, offset, layout.strides))

    def _constant_place(self, array: Any) -> Place:
        array = np.asarray(array)  # a scalar is one, too
        return self._slot(array, id(array))

    def _slot(self, thing: Any, key: Any = None) -> Place:
        k, _ = self._fixed.setdefault(key or thing, (len(self._fixed), thing))
        return "fixed", k, 0


def _checked(call: Callable[..., Any], arrays: list[Any]) -> None:
    call(arrays, (), [])
