"""Kernels of optimizers' update rules: a step of all arrays of one dtype in one launch.

A rule is a function of the elements of a Variable, its gradient and its averages, see
`gpugrad.optim.rules`. Read on `Code`s, SGD's ``p - s.rate * g`` in float32 becomes::

    struct sgd_settings { float rate; };
    static __device__ __forceinline__ void sgd_each(
        float& x0, const float x1, const sgd_settings& s) {
      const float v0 = x0;
      const float v1 = x1;
      const float v2 = s.rate;
      const float v3 = v2 * v1;
      const float v4 = v0 - v3;
      x0 = v4;
    }
    template <class T, class G = T> __global__ void __launch_bounds__(256, 1) sgd(
        const __grid_constant__ Table<2> table, sgd_settings given, const sgd_settings* live) {
      ...

A step is bound by memory bandwidth: Adam in float32 reads p, g, m, v and writes p, m, v, which are
28 bytes per element. So accesses have 16 bytes, and a launch takes up to 86 arrays, see `tables`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.kernels.codegen.code import LIB, Body, cast, compute_dtype
from gpugrad.kernels.runtime.launch import TYPES, launch, type_name
from gpugrad.kernels.runtime.tables import THREADS, as_contiguous, tables

__all__ = ["StepKernel"]


class StepKernel:
    """The kernels of one update rule.

    Args:
        name: the name of the kernels.
        formula: ``formula(xp, s, p, g, *slots)``, which returns the new ``(p, *slots)``.
        settings: the names of the numbers that `s` holds.
        n_slots: the number of averages.

    Raises:
        NoCodeError: when it is launched, if the formula is not straight-line CUDA.
    """

    def __init__(
        self, name: str, formula: Callable[..., Any], settings: Sequence[str], n_slots: int
    ) -> None:
        self.name, self._formula = name, formula
        self._names, self._n_slots = tuple(settings), n_slots
        self._sources: dict[Any, str] = {}

    def source(self, dtype: Any) -> str:
        """The source of the kernels for arrays of this dtype."""
        dtype = compute_dtype(dtype)
        if dtype not in self._sources:
            self._sources[dtype] = self._write(dtype)
        return self._sources[dtype]

    def _write(self, dtype: np.dtype[Any]) -> str:
        body, name, t = Body(), self.name, TYPES[dtype]
        n = 2 + self._n_slots
        values = [body.input(f"x{k}", dtype) for k in range(n)]
        s = types.SimpleNamespace(**{k: body.input(f"s.{k}", dtype) for k in self._names})
        results = [cast(body, r, dtype) for r in self._formula(LIB, s, *values)]
        written = [0, *range(2, n)]
        lines = body.lines(results)
        lines += [f"x{k} = {r.name};" for k, r in zip(written, results, strict=True)]
        params = ", ".join(f"const {t} x1" if k == 1 else f"{t}& x{k}" for k in range(n))
        fields = " ".join(f"{t} {k};" for k in self._names)
        text = "".join(f"  {line}\n" for line in lines)
        return (
            '#include "functions.cuh"\n#include "tables.cuh"\n'
            f"struct {name}_settings {{ {fields} }};\n"
            f"static __device__ __forceinline__ void {name}_each(\n"
            f"    {params}, const {name}_settings& s) {{\n{text}}}\n" + _kernel(name, t, n, written)
        )

    def step(
        self, columns: Sequence[Sequence[Any]], settings: Sequence[float], live: Any = None
    ) -> None:
        """Move arrays along their gradients, in place.

        Args:
            columns: lists of arrays of one device: p, g and one list per average. All but g are
                C-contiguous. All have one real dtype, with two exceptions: averages of 16-bit
                floats are float32, and gradients of float32 may be 16-bit floats.
            settings: the numbers of the step.
            live: None, or a device array of settings that the kernel reads instead when it runs,
                so that the replay of a CUDA graph takes a new learning rate.
        """
        dtype = columns[0][0].dtype
        source = self.source(dtype)
        array = np.array(settings, np.float32 if dtype in HALF else dtype)
        by_value = array.view([("", array.dtype)] * array.size)[0]
        rows = list(zip(columns[0], map(as_contiguous, columns[1]), *columns[2:], strict=True))
        for kind in dict.fromkeys(g.dtype for _, g, *_ in rows):
            name = type_name(dtype) if kind == dtype else f"{type_name(dtype)}, {type_name(kind)}"
            same_kind = [row for row in rows if row[1].dtype == kind]
            for table, chunks in tables(list(zip(*same_kind, strict=True))):
                launch(source, f"{self.name}<{name}>", chunks, THREADS, (table, by_value, live))


def _kernel(name: str, t: str, n: int, written: Sequence[int]) -> str:
    """The loop over all arrays, in packs of `W` elements where they are aligned."""
    kinds = ["T", "G", *[t] * (n - 2)]
    const = ["", "const ", *[""] * (n - 2)]
    places = "".join(
        f"    {const[k]}{kinds[k]}* a{k} = ({const[k]}{kinds[k]}*)table.at[{k}][i] + start;\n"
        for k in range(n)
    )
    pointers = ", ".join(f"a{k}" for k in range(n))
    loads = "".join(f"      load<W>(a{k} + k, b{k});\n" for k in range(n))
    stores = "".join(f"      store<W>(b{k}, a{k} + k);\n" for k in written)
    reads = "".join(f"      {t} b{k} = ({t})a{k}[k];\n" for k in range(n))
    writes = "".join(f"      a{k}[k] = ({kinds[k]})b{k};\n" for k in written)
    return (
        f"template <class T, class G = T> __global__ void __launch_bounds__(256, 1) {name}(\n"
        f"    const __grid_constant__ Table<{n}> table, {name}_settings given,\n"
        f"    const {name}_settings* live) {{\n"
        f"  constexpr int W = WIDE<T, G>;\n"
        f"  {name}_settings s = live ? *live : given;\n"
        f"  each_chunk(table, [&](int i, long long start, int n) {{\n{places}"
        f"    int whole = aligned({pointers}) ? n / W * W : 0;\n"
        f"    for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {{\n"
        f"      {t} {', '.join(f'b{k}[W]' for k in range(n))};\n{loads}"
        "#pragma unroll\n"
        f"      for (int j = 0; j < W; ++j)\n"
        f"        {name}_each({', '.join(f'b{k}[j]' for k in range(n))}, s);\n{stores}"
        f"    }}\n"
        f"    for (int k = whole + threadIdx.x; k < n; k += blockDim.x) {{\n{reads}"
        f"      {name}_each({', '.join(f'b{k}' for k in range(n))}, s);\n{writes}"
        f"    }}\n  }});\n}}\n"
    )
