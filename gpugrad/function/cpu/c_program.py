"""The steps of a program that run in C, and its kernels, compiled as one library."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.for_shapes import wanted
from gpugrad.function.cpu.blocks import find_groups
from gpugrad.function.cpu.runs import in_runs
from gpugrad.function.cpu.view_layouts import Layout, Layouts, contiguous, is_view
from gpugrad.function.gpu.kernel_code import KernelCode
from gpugrad.function.passes.fuse import FusedKernel, fuse_groups_in_c
from gpugrad.function.passes.open import is_opened
from gpugrad.function.passes.pieces import Pieces
from gpugrad.function.passes.rewrite import is_product
from gpugrad.function.step_calls import op_call
from gpugrad.kernels.codegen.c_kernel import CKernel
from gpugrad.kernels.codegen.code import NoCodeError
from gpugrad.kernels.codegen.cpp import prelude
from gpugrad.kernels.cpu import compiler, products, step_table
from gpugrad.kernels.cpu.compiler import setting
from gpugrad.kernels.cpu.large import LARGE
from gpugrad.kernels.cpu.moves import Function
from gpugrad.trace.program import Program, Step, Value, length_depends_on_values, takes_arguments

WORTH = 1 << 20
"""Elements that elementwise steps compute in a replay, from which compiling kernels is worth
a second of the first call: NumPy takes about a millisecond for them. Those that a product reads
count, too: a model that predicts one token has few others, but many steps.
``GPUGRAD_CPU_KERNELS=always`` compiles all kernels."""

EXPANDED = 5
"""Elementwise steps in one that is expanded, such as softmax."""

UPDATED = 2
"""Elements that count for each one of a Variable that the program updates."""

STEP = 1 << 10
"""Elements that NumPy computes in the time that Python takes to call it."""

OTHER = 2 * STEP
"""The same for a small product, a join, and what reads or writes at an index."""

LOOPED = 1 << 6
"""Steps of all iterations of a loop, from which it is compiled: Python takes half a millisecond."""

LINES = 400
"""Lines of kernels that a compiler gets, while others compile the rest."""

NUMBERS = 4000
"""The same of kernels of single numbers, for which it has less to do."""

_POINTERS = 256  # of a kernel; see step_table.cpp


def is_worth_compiling(program: Program, times: int = 1) -> bool:
    """Whether a program that runs `times` times computes enough elements to be compiled."""
    if setting() in ("0", "always"):
        return setting() == "always"
    elements = 0
    for step in program.steps:
        op, steps = step.op, EXPANDED * is_opened(step)
        steps = steps or int(op is not None and bool(op.by_element or op.reduces))
        if is_product(step):
            elements += OTHER + max(math.prod(v.shape) for v in step.inputs)
        elif steps:
            n = max(math.prod(v.shape) for v in (*step.inputs, *step.outs))
            if n >= LARGE and (op is None or op.cpu or is_opened(step)):
                return True  # an eager call compiles a kernel for it, too
            elements += steps * (n + STEP)
        elif op is not None and _moves(step):
            elements += OTHER
        elif step.variables:  # of an optimizer: the program is called many times
            elements += UPDATED * sum(math.prod(v.shape) for v in step.outs)
    return elements * times >= WORTH


def _moves(step: Step) -> bool:
    """Whether C copies elements for a step for which NumPy has no single call, or a slow one."""
    op = step.op
    assert op is not None
    is_join = op.kind != "control" and any(isinstance(a, list) for a in step.args)
    return (is_join or op.c_call is not None) and not all(v.view for v in step.outs)


def is_worth_looping(program: Program, times: int) -> bool:
    """Whether the body of a loop of so many iterations is compiled.

    Only the number of steps decides, so that a loop that is called often computes the same bits
    each time. Python takes some microseconds for each step.
    """
    if setting() in ("0", "always"):
        return setting() == "always"
    steps = sum(not all(v.view for v in step.outs) for step in program.steps)
    return steps * times >= LOOPED


_started: set[Any] = set()  # functions and ops whose libraries are loaded, or will be soon


def load_ahead(program: Program) -> None:
    """Start to compile what a replay needs besides its kernels, while Python writes these."""
    loads: dict[Any, Callable[[], Any]] = {step_table.library: step_table.library}
    updates = []  # of optimizers, which are not kept: they hold a model's Variables
    for step in program.steps:
        if is_product(step):
            loads.setdefault(products.library, products.library)
        elif _has_call(step) and step.op.kind != "control":
            loads[step.op, step.outs[0].dtype] = functools.partial(_planned, step)
        elif (load := getattr(step.call, "load", None)) is not None:  # of an optimizer
            updates.append(load)
    compiler.ahead(*(loads[key] for key in loads if key not in _started), *updates)
    _started.update(loads)


class CProgram:
    """A program whose kernels are written in C++.

    Args:
        program: the program.
        in_loop: whether it is the body of a loop: its inputs are contiguous arrays, as slices of
            stacks are, and Python computes single steps within the call.

    Attributes:
        program: the program; steps that cannot be written are not in kernels.
        kernels: the text of each kernel, by the step's id.
        products: ids of the products that run in C too.
        calls: the address of a C function and the numbers that it reads, by the step's id.
        functions: C functions of arrays that compute a step, by the step's id.
        left: ids of the steps that Python computes within a call.
        copies: where pieces and reshapes that move elements go in their result, by the step's id.
        layouts: of the values that these compute, and of views of them.
        refused: names of ops that cannot be written, and why.
        source: the text of the library; equal kernels are in it once.
    """

    def __init__(self, program: Program, in_loop: bool = False) -> None:
        self.program, self._in_loop = program, in_loop
        self._batches = _batches(program)
        self.refused: dict[str, str] = {}
        self._libraries: dict[str, Any] | None = None  # by the name of a kernel
        self._write(program)
        apart = {v for kernel in self._whole for v in self._refused_parts(kernel)}
        if apart:
            loose = program.copy()
            loose.steps = [part for step in program.steps for part in step.parts or [step]]
            self._write(fuse_groups_in_c(loose, apart))
            self.program = find_groups(self.program)

    def _write(self, program: Program) -> None:
        self.program = program.copy()
        self.program.steps = []
        self.kernels: dict[int, CKernel] = {}
        self._whole: list[FusedKernel] = []  # kernels that cannot be written
        self.products: set[int] = set()
        self.calls: dict[int, tuple[int, Sequence[int]]] = {}
        self.functions: dict[int, Function] = {}
        self.left: set[int] = set()
        self.copies: dict[int, list[Layout]] = {}
        self.layouts = Layouts()
        # a call makes the arrays from outside contiguous that it reads, or reads views of
        outside = (*program.inputs, *(v for _, v in program.reads))
        self.layouts.new(v for v in outside if v.dtype != object)
        self._names: dict[str, str] = {}  # of kernels, by text
        for step in program.steps:
            self._add(step)
        texts = [text.replace("NAME", name) for text, name in self._names.items()]
        self.source = "\n".join([prelude(), *texts])

    def _refused_parts(self, kernel: FusedKernel) -> list[int]:
        """Ids of the results of steps that cannot be written, not even alone."""
        results = []
        for step in kernel.parts:
            (out,) = step.outs
            is_sum = any(step is s for s in kernel.sums)
            steps, sums = ([], [step]) if is_sum else ([step], [])
            alone = FusedKernel(steps, sums, kernel.shape)
            alone.close({id(out)})
            try:
                CKernel(KernelCode(alone))
            except NoCodeError as error:
                self.refused[step.name] = str(error)
                results.append(id(out))
        return results

    def _add(self, step: Step) -> None:
        if _views_constant(step):
            return
        if isinstance(step, FusedKernel) and not self._written(step):
            self.program.steps += step.parts
            return
        self.program.steps.append(step)
        if _is_product(step):
            self.products.add(id(step))
        elif type(call := _call(step, self._in_loop)) is Function:
            self.functions[id(step)] = call
        elif call is not None:
            self.calls[id(step)] = call
        elif targets := self._targets(step):
            self.copies[id(step)] = targets
        elif not isinstance(step, FusedKernel):
            if self.layouts.view(step):
                return
            is_free = not self._in_loop and any(v.view for v in step.outs)  # NumPy moves nothing
            if not is_free and (function := in_runs(step)) is not None:
                self.functions[id(step)] = function
            elif self._in_loop and _can_be_left(step):
                self.left.add(id(step))
            else:
                return
        self.layouts.new(step.outs)

    def _targets(self, step: Step) -> list[Layout]:
        """Where a step copies its arguments to, if it only copies elements."""
        if isinstance(step, Pieces):
            (out,), targets = step.outs, step.targets()
            copies = 0 not in out.shape and all(
                v.dtype == out.dtype and v.shape == shape and 0 not in shape
                for v, (shape, *_) in zip(step.args, targets, strict=True)
            )
            return [Layout(out, *target[1:]) for target in targets] if copies else []
        if step.op is None or step.op.view != "reshape" or step.outs[0].view:
            return []
        (x,), (out,) = step.inputs, step.outs
        if self.layouts.get(x) is None or x.dtype != out.dtype or 0 in x.shape:
            return []
        return [Layout(out, 0, contiguous(x))]

    def _written(self, step: FusedKernel) -> bool:
        try:
            code = KernelCode(step, strides=self._strides(step))
            kernel = CKernel(code, self._in_loop, self._batches)
            if len(kernel.inputs) + len(kernel.outs) >= _POINTERS:
                raise NoCodeError("too many arrays")
        except NoCodeError:
            self._whole.append(step)
            return False
        self.kernels[id(step)] = kernel
        self._names.setdefault(kernel.text, f"k{len(self._names)}")
        return True

    def _strides(self, step: FusedKernel) -> dict[int, list[int]]:
        """The strides of the inputs that can be read where they are."""
        strides: dict[int, list[int]] = {}
        for v in step.inputs:
            if self.is_read_in_place(v):
                steps = self.layouts[v].strides
                strides[id(v)] = [s // v.dtype.itemsize for s in steps]
        return strides

    def is_read_in_place(self, v: Value) -> bool:
        """Whether kernels read a value where it is computed, as its last axis is contiguous."""
        layout = self.layouts.get(v)
        if layout is None or layout.root.dtype != v.dtype:
            return False
        size = v.dtype.itemsize
        last = not v.shape or v.shape[-1] == 1 or layout.strides[-1] == size
        return last and all(s % size == 0 for s in layout.strides)

    @property
    def loaded(self) -> bool:
        """Whether the kernels can be called."""
        return self._libraries is not None

    def load(self) -> bool:
        """Compile the library, or read it from the cache; whether that succeeded."""
        if not self.loaded and step_table.library() is not None:
            loads = {
                part: functools.partial(
                    compiler.load,
                    "\n".join([prelude(), *(t.replace("NAME", self._names[t]) for t in part)]),
                    what=f"{len(part)} kernels of a traced function",
                    flags=flags,
                    keep=False,
                )
                for part, flags in self._parts()
            }
            compiler.ahead(*[*loads.values()][1:], *self._wanted())
            libraries = {part: load() for part, load in loads.items()}
            if None not in libraries.values():
                self._libraries = {
                    self._names[text]: one for part, one in libraries.items() for text in part
                }
                for step in self.program.steps:
                    getattr(step.call, "load", lambda: None)()  # of an optimizer
        return self.loaded

    def _wanted(self) -> list[Callable[[], Any]]:
        """Functions that load what the steps need that Python computes between calls."""
        found = (self.kernels, self.products, self.calls, self.functions, self.copies)
        steps = (s for s in self.program.steps if not all(v.view for v in s.outs))
        left = {step.op for step in steps if not any(id(step) in f for f in found)}
        each = [kernels for op in left for kernels in wanted.pop(op, ())]
        return [functools.partial(getattr, kernels, "loaded") for kernels in each]

    def _parts(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The kernels' texts, for some compilers that take about the same time, and their flags."""
        numbers = {k.text for k in self.kernels.values() if k.of_numbers}
        others = self._names.keys() - numbers
        # runs once in a replay, without a loop: -O3 gains nothing; the bits are the same
        flags: tuple[str, ...] = () if self._in_loop else ("-O1",)
        parts = [(part, flags) for part in _divided(numbers, NUMBERS)]
        return parts + [(part, ()) for part in _divided(others, LINES)]

    def entry(self, kernel: CKernel, places: Sequence[tuple[int, int]]) -> list[int]:
        """The numbers that describe a call of a kernel, given the slot and offset of each array."""
        name = self._names[kernel.text]
        end = self._address(name, "_end") if kernel.partial else 0
        numbers = [self._address(name), end, kernel.n, kernel.grain, kernel.partial]
        numbers += [number for place in places for number in place]
        return [step_table.KERNEL, len(numbers), *numbers]

    def _address(self, name: str, more: str = "") -> int:
        function = getattr((self._libraries or {})[name], name + more)
        return ctypes.cast(function, ctypes.c_void_p).value or 0


def _divided(texts: Iterable[str], most: int) -> list[tuple[str, ...]]:
    """Texts in parts of about the same length, of about `most` lines, but at most four."""
    ordered = sorted(texts, key=lambda text: (-len(text), text))
    lines = sum(text.count("\n") for text in ordered)
    parts: list[list[str]] = [[] for _ in range(min(1 + lines // most, 4))]
    for text in ordered:
        min(parts, key=lambda part: sum(map(len, part))).append(text)
    return [tuple(part) for part in parts if part]


def _batches(program: Program) -> set[int]:
    """Lengths of the inputs' first axes, without those that other axes of such arrays have."""
    lengths = {v.shape[0] for v in program.inputs if v.shape}
    arrays = (v for v in program.values() if v.shape and v.shape[0] in lengths)
    return lengths.difference(*(v.shape[1:] for v in arrays))


def _views_constant(step: Step) -> bool:
    """Whether a step is a view of a constant, and so its result is one, too."""
    if not is_view(step) or takes_arguments(step.params.get("index")) or len(step.outs) != 1:
        return False
    if len(step.args) != 1 or not isinstance(step.args[0], Value):
        return False
    (x,), (out,) = step.args, step.outs
    if x.constant is None or not isinstance(x.constant, (np.ndarray, np.generic)):
        return False
    out.constant = np.asarray(op_call(step, NUMPY)(x.constant))
    return True


def _is_product(step: Step) -> bool:
    """Whether a step is a product that BLAS computes."""
    if not is_product(step) or not step_table.multiplies():
        return False
    (out,) = step.outs
    return all(
        isinstance(a, Value) and len(a.shape) > 1 and a.dtype == out.dtype and 0 not in a.shape
        for a in step.args
    ) and out.dtype in (np.float32, np.float64)


def _call(step: Step, in_loop: bool) -> Any:
    """The function in C that computes a step, as the field `c_call` gives it."""
    if not _has_call(step) or step_table.library() is None:
        return None
    if step.op.kind == "control" and not in_loop:  # it may take long: Ctrl-C ends it
        return None
    return _planned(step)


def _has_call(step: Step) -> bool:
    if step.op is None or step.op.c_call is None:
        return False
    return len(step.outs) == 1 or step.op.kind == "control"


def _planned(step: Step) -> Any:
    if not all(isinstance(a, Value) and 0 not in a.shape for a in (*step.args, *step.outs)):
        return None
    planned = step.op.c_call(NUMPY, *step.args, **step.params)
    return None if planned is NotImplemented else planned


def _can_be_left(step: Step) -> bool:
    """Whether Python can compute a step between others, into arrays of known shapes."""
    op = step.op
    if op is None or (op.kind != "control" and op.opens == "effect"):
        return False
    if any(v.dtype == object for v in (*step.inputs, *step.outs)):
        return False
    return not length_depends_on_values(step) and all(0 not in v.shape for v in step.outs)
