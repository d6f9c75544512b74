"""The C kernels of a program, compiled as one library; equal kernels are in it once."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

from gpugrad.function.cpu.c_kernels import CKernel
from gpugrad.function.passes.fuse import FusedKernel
from gpugrad.kernels.codegen.code import NoCodeError
from gpugrad.kernels.cpu import compiler, pool
from gpugrad.kernels.cpu.compiler import setting
from gpugrad.kernels.cpu.vectors import prelude
from gpugrad.trace.program import Program, Step

__all__ = ["CProgram", "is_worth_compiling"]

WORTH = 1 << 20
"""Elements that elementwise steps compute in a replay, from which compiling kernels is worth
seconds of the first call: NumPy takes about a millisecond for them. ``GPUGRAD_CPU_KERNELS=always``
compiles all kernels."""

_POINTERS = 256  # of a kernel; see calls.h


def is_worth_compiling(program: Program) -> bool:
    """Whether a program computes enough elements to be compiled."""
    if setting() in ("0", "always"):
        return setting() == "always"
    steps = (s for s in program.steps if s.op is not None and (s.op.by_element or s.op.reduces))
    return sum(math.prod(s.outs[0].shape) for s in steps) >= WORTH


class CProgram:
    """A program whose kernels are written in C++.

    Attributes:
        program: the program, with the parts of a kernel in its place if it cannot be written.
        kernels: the text of each kernel, by the step's id.
        refused: names of the kernels that cannot be written, and why.
        source: the text of the library.
    """

    def __init__(self, program: Program) -> None:
        self.program = program.copy()
        self.program.steps = []
        self.kernels: dict[int, CKernel] = {}
        self.refused: list[tuple[str, str]] = []
        self._names: dict[str, str] = {}  # of equal kernels, by text
        for step in program.steps:
            self._add(step)
        texts = [text.replace("NAME", name) for text, name in self._names.items()]
        self.source = "\n".join([prelude(), '#include "calls.h"', *texts])
        self._library: Any = None

    def _add(self, step: Step) -> None:
        if not isinstance(step, FusedKernel):
            self.program.steps.append(step)
            return
        try:
            kernel = CKernel(step)
            if len(kernel.inputs) + len(kernel.outs) > _POINTERS:
                raise NoCodeError("too many arrays")
        except NoCodeError as error:
            self.refused.append((step.name, str(error)))
            self.program.steps += step.parts
            return
        self.program.steps.append(step)
        self.kernels[id(step)] = kernel
        self._names.setdefault(kernel.text, f"k{len(self._names)}")

    def load(self) -> bool:
        """Compile the library, or read it from the cache; whether that succeeded."""
        if self.kernels and self._library is None and pool.library() is not None:
            what = f"{len(self._names)} kernels of a traced function"
            self._library = compiler.load(self.source, what=what)
        return self.loaded

    @property
    def loaded(self) -> bool:
        """Whether the kernels can be called."""
        return self._library is not None

    def call(self) -> Any:
        """The C function that runs several kernels: see ``calls.h``."""
        call = self._library.gpugrad_calls
        call.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        call.restype = None
        return call

    def entry(self, kernel: CKernel, slots: Sequence[int]) -> list[int]:
        """The line of a table that describes a call of a kernel."""
        name = self._names[kernel.text]
        end = _address(self._library, f"{name}_end") if kernel.partial else 0
        return [
            _address(self._library, name), end, kernel.n, kernel.grain, kernel.partial,
            len(slots), *slots,
        ]  # fmt: skip


def _address(library: Any, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


