"""Update rules: one formula per optimizer, which NumPy runs, and which becomes C++ and CUDA.

A rule is a function ``formula(xp, s, p, g, *slots)`` of one element of a Variable, its gradient,
its averages, and the settings `s` of the step. It returns the new ``(p, *slots)``. SGD with
momentum is::

    def formula(xp, s, p, g, velocity):
        velocity = s.momentum * velocity + g
        return p - s.rate * velocity, velocity

With NumPy as `xp` it steps blocks of arrays that fit into the cache.
`kernels.codegen.update_kernel` runs it once, on values that write C: the lines of a CUDA kernel,
and of the loop of `kernels.cpu.update_loop`, which steps all Variables in one call from some
thousand elements on. NumPy and the loop compute the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpugrad.core.threads import run_parallel
from gpugrad.kernels.codegen.update_kernel import StepKernel
from gpugrad.kernels.cpu.update_loop import LEAST, StepLoop
from gpugrad.optim.arrays import state_dtype

BLOCK = 1 << 15
"""Elements of a block: Adam's arrays and intermediate results fill about 1 MiB of cache."""

SMALL = 1 << 11
"""Elements up to which Variables are stepped together: a NumPy call costs more than their copy."""

PART = 1 << 19
"""Least elements of a part of a step that is worth a thread: 4 ms of Adam."""

Block = tuple[Sequence[float], list[Sequence[Any]]]
"""Numbers of a step, and lists (p, g, averages) of flat arrays: a slice of one, or small ones."""


class Rule:
    """An update rule, compiled when first needed: for GPUs, and as a loop for the CPU."""

    def __init__(self, kernel: StepKernel) -> None:
        self.kernel, self.loop = kernel, StepLoop(kernel)

    def step(
        self,
        columns: Sequence[Sequence[Any]],
        numbers: Sequence[Sequence[float]],
        rows: Sequence[int],
    ) -> None:
        """Move arrays of the CPU along their gradients, in place, on several threads.

        Args:
            columns: for each Variable its flat arrays: p, g and the averages. Averages of 16-bit
                floats are float32, and their steps are rounded once.
            numbers: the settings of each group of Variables that share them.
            rows: for each Variable the index of its settings.
        """
        loop = self.loop
        in_c = (loop.used or sum([g.size for _, g, *_ in columns]) >= LEAST) and loop.takes(columns)
        if in_c and loop.step(columns, numbers, rows) is not NotImplemented:
            return
        parts = _split(columns, numbers, rows)
        if len(parts) > 1:
            run_parallel(self._step_blocks, parts)
        else:
            with np.errstate(all="ignore"):
                self._step_blocks(*parts[0])

    def _step_blocks(self, part: Sequence[Block]) -> None:
        for numbers, members in part:
            columns = members[0]
            if len(members) > 1:
                columns = [np.concatenate(arrays) for arrays in zip(*members, strict=True)]
            p, g, *slots = columns
            dtype = state_dtype(p.dtype)
            if p.dtype != dtype:
                p, g = p.astype(dtype), g.astype(dtype)
            pairs = zip(self.kernel.settings, numbers, strict=True)
            s = SimpleNamespace(**{name: np.array(x, dtype) for name, x in pairs})
            new = self.kernel.formula(np, s, p, g, *slots)
            own = [id(a) for a in (p, *slots)]  # a copy of one that is written before it is read
            new = [a.copy() if id(a) in own else a for a in new]
            start = 0
            for first, _, *rest in members:
                stop = start + first.size
                for array, values in [*zip((first, *rest), new, strict=True)]:
                    array[...] = values[start:stop]
                start = stop


def _split(
    columns: Sequence[Sequence[Any]], numbers: Sequence[Sequence[float]], rows: Sequence[int]
) -> list[tuple[list[Block]]]:
    """Arrays as blocks, in parts that are worth a thread."""
    blocks: list[Block] = []
    small: list[Sequence[Any]] = []
    kind, room = None, 0  # of the block that holds `small`
    for arrays, row in zip(columns, rows, strict=True):
        n = arrays[0].size
        if n > SMALL:
            for start in range(0, n, BLOCK):
                blocks.append((numbers[row], [[a[start : start + BLOCK] for a in arrays]]))
            continue
        if (row, arrays[0].dtype) != kind or n > room:
            small, kind, room = [], (row, arrays[0].dtype), BLOCK
            blocks.append((numbers[row], small))
        small.append(arrays)
        room -= n
    parts: list[tuple[list[Block]]] = [([],)]
    size = 0
    for block in blocks:
        if size >= PART:
            parts.append(([],))
            size = 0
        parts[-1][0].append(block)
        size += sum(p.size for p, *_ in block[1])
    return parts
