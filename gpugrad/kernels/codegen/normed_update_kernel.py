"""Kernels of update rules that read norms of whole arrays, as LAMB's: two launches for all arrays.

The first kernel computes the direction u of each element, updates the averages and adds up the
squares of p and of u, in at most `SEGMENTS` partial sums per array. The second adds up the partial
sums of its array, always in the same order, and steps. So results do not depend on timing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import READINGS
from gpugrad.kernels.codegen.update_kernel import (
    StepKernel,
    each_text,
    head_text,
    loop_text,
    struct_text,
)
from gpugrad.kernels.runtime.launch import TYPES, headers, launch
from gpugrad.kernels.runtime.tables import THREADS, segments_of, tables

NORMS = ("p_norm", "u_norm")
"""The settings that the second kernel computes: the norms of p and u."""


class NormedStepKernel(StepKernel):
    """The kernels of one rule with norms.

    Args:
        name: the name of the second kernel; the first is ``NAME_measure``.
        measure: ``measure(xp, s, p, g, *slots)``, which returns ``(u, *slots)``.
        formula: ``formula(xp, s, p, g, *slots)``, which returns ``(p, *slots)`` and may read
            ``s.p_norm`` and ``s.u_norm``.
        settings: the names of the numbers in `s`, with `NORMS`.
        n_slots: the number of averages.
    """

    rounds = False

    def __init__(
        self,
        name: str,
        measure: Callable[..., Any],
        formula: Callable[..., Any],
        settings: Sequence[str],
        n_slots: int,
    ) -> None:
        super().__init__(name, formula, settings, n_slots)
        self._measure = measure
        self.names = (f"{name}_measure", name)

    def _write(self, dtype: np.dtype[Any]) -> str:
        name, t, n = self.name, TYPES[dtype], 2 + self._n_slots
        slots = [f"x{k}" for k in range(2, n)]
        first = f"{name}_measure"
        return (
            headers("functions.cuh", "tables.cuh")
            + struct_text(name, self._settings, dtype)
            + each_text(first, name, self._measure, self._settings, n, dtype, ["u", *slots])
            + _sums_text(first, name, t, n)
            + head_text(first, name, n + 1)
            + "  __shared__ double scratch[32];\n"
            "  each_segment(table, [&](int i, int segment, int segments) {\n"
            f"    double2* sums = (double2*)table.at[{n}][i];\n"
            "    double2 sum = make_double2(0, 0);\n"
            "    for (long long start = (long long)segment * CHUNK; start < table.size[i];\n"
            "         start += (long long)segments * CHUNK) {\n"
            "    long long left = table.size[i] - start;\n"
            "    int n = left < CHUNK ? (int)left : CHUNK;\n"
            + loop_text(f"{first}_sums", t, n, range(2, n), "sum, ")
            + "    }\n"
            "    sum.x = block_reduce(sum.x, Sum(), 0.0, scratch);\n"
            "    sum.y = block_reduce(sum.y, Sum(), 0.0, scratch);\n"
            "    if (threadIdx.x == 0) sums[segment] = sum;\n"
            "  });\n}\n"
            + each_text(name, name, self._formula, self._settings, n, dtype, ["x0", *slots])
            + head_text(name, name, n + 1)
            + "  __shared__ double scratch[32];\n"
            "  each_chunk(table, [&](int i, long long start, int n) {\n"
            f"    const double2* sums = (const double2*)table.at[{n}][i];\n"
            "    double2 sum = make_double2(0, 0);\n"
            "    for (int k = threadIdx.x; k < segments_of(table.size[i]); k += blockDim.x) {\n"
            "      sum.x += sums[k].x;\n"
            "      sum.y += sums[k].y;\n"
            "    }\n"
            f"    s.p_norm = ({t})sqrt(block_reduce(sum.x, Sum(), 0.0, scratch));\n"
            f"    s.u_norm = ({t})sqrt(block_reduce(sum.y, Sum(), 0.0, scratch));\n"
            + loop_text(name, t, n, [0, *range(2, n)])
            + "  });\n}\n"
        )

    def _launch(
        self, source: str, suffix: str, columns: Sequence[Sequence[Any]], numbers: Any
    ) -> None:
        first = columns[0][0]
        counts = [segments_of(a.size) for a in columns[0]]
        ends = np.cumsum([0, *counts]).tolist()
        sums = READINGS[type(first)].lib.ndarray(2 * ends[-1] + 2, np.float64)
        parts = [sums[2 * k :] for k in ends[:-1]]
        whole = [*columns, parts]
        for table, segments in tables(whole, segmented=True):
            launch(source, f"{self.name}_measure{suffix}", segments, THREADS, (table, *numbers))
        for table, chunks in tables(whole):
            launch(source, self.name + suffix, chunks, THREADS, (table, *numbers))


def _sums_text(first: str, name: str, t: str, n: int) -> str:
    """The function of one element that also adds up the squares."""
    params = ", ".join(f"{t}& x{k}" for k in range(n))
    args = ", ".join(f"x{k}" for k in range(n))
    return (
        f"static __device__ __forceinline__ void {first}_sums_each(\n"
        f"    {params}, double2& sum, const {name}_settings& s) {{\n"
        f"  {t} u;\n"
        "  sum.x += (double)x0 * (double)x0;\n"
        f"  {first}_each({args}, u, s);\n"
        "  sum.y += (double)u * (double)u;\n}\n"
    )
