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
        const __grid_constant__ Table<2> table, sgd_settings given,
        const sgd_settings* live) {
      constexpr int W = WIDE<T, G>;
      sgd_settings s = live ? *live : given;
      each_chunk(table, [&](int i, long long start, int n) {
        each_element<W, float>(n, [&](float& x0, float& x1) { sgd_each(x0, x1, s); },
            (T*)nullptr, (T*)table.at[0][i] + start, (const G*)table.at[1][i] + start);
      });
    }

A step is bound by memory bandwidth: Adam in float32 reads p, g, m, v and writes p, m, v, which are
28 bytes per element. So accesses have 16 bytes, and a launch takes up to 86 arrays, see `tables`.

A second kernel, ``sgd_rounded``, also writes the new p rounded to 16 bits, for the matrix products
of the next step: 2 bytes per element, where casts take 6.

A rule that reads norms of whole arrays, as LAMB's, takes two launches. The first,
``lamb_measure``, computes the direction u of each element, updates the averages and adds up the
squares of p and of u, in at most `SEGMENTS` partial sums per array. The second adds up the partial
sums of its array, always in the same order, and steps. So results do not depend on timing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpugrad.core.backend import READINGS
from gpugrad.kernels.codegen.code import Body, cast, compute_dtype
from gpugrad.kernels.codegen.code_reading import LIB
from gpugrad.kernels.codegen.cuda import indented
from gpugrad.kernels.runtime.launch import TYPES, headers, launch, type_name
from gpugrad.kernels.runtime.tables import THREADS, as_contiguous, segments_of, tables

NORMS = ("p_norm", "u_norm")
"""The settings that the second kernel of a rule with norms computes: the norms of p and u."""


class StepKernel:
    """The kernels of one update rule.

    Args:
        name: the name of the kernels.
        formula: ``formula(xp, s, p, g, *slots)``, which returns the new ``(p, *slots)``.
        settings: the names of the numbers that `s` holds; with `measure` also `NORMS`.
        n_slots: the number of averages.
        measure: None, or ``measure(xp, s, p, g, *slots)``, which returns ``(u, *slots)``: then the
            formula may read ``s.p_norm`` and ``s.u_norm``, and finds the new averages.

    Attributes:
        names: the names of its kernels.
        rounds: whether `step` takes arrays for rounded copies.
        formula, settings, n_arrays: the formula, its settings, and its arrays: p, g and averages.

    Raises:
        NoCodeError: when it is launched, if the formula is not straight-line CUDA.
    """

    def __init__(
        self,
        name: str,
        formula: Callable[..., Any],
        settings: Sequence[str],
        n_slots: int,
        measure: Callable[..., Any] | None = None,
    ) -> None:
        self.name, self.formula, self._measure = name, formula, measure
        self.names: tuple[str, ...] = (f"{name}_measure", name) if measure else (name,)
        self.rounds = measure is None
        self.settings, self.n_arrays = tuple(settings), 2 + n_slots
        self.source = functools.cache(self._source)

    def lines(
        self,
        formula: Callable[..., Any],
        inputs: Sequence[str],
        results: Sequence[str],
        dtype: np.dtype[Any],
    ) -> str:
        """The lines of C and CUDA that compute a formula of elements of one dtype.

        Args:
            formula: the rule's formula or `measure`.
            inputs: the expressions of its arrays' elements.
            results: the expressions that the results are assigned to, when all have been read.
            dtype: the dtype of all values.
        """
        body = Body(LIB)
        values = [body.input(x, dtype) for x in inputs]
        s = SimpleNamespace(**{k: body.input(f"s.{k}", dtype) for k in self.settings})
        codes = [cast(body, r, dtype) for r in formula(LIB, s, *values)]
        stores = [f"{x} = {code.name};" for x, code in zip(results, codes, strict=True)]
        return "".join(f"{line}\n" for line in body.lines(codes) + stores)

    def _source(self, dtype: Any) -> str:
        """The source of the kernels for arrays of this dtype."""
        dtype = compute_dtype(dtype)
        name, n, slots = self.name, self.n_arrays, [f"x{k}" for k in range(2, self.n_arrays)]
        fields = " ".join(f"{TYPES[dtype]} {k};" for k in self.settings)
        text = f"struct {name}_settings {{ {fields} }};\n"
        text += self._each(name, self.formula, dtype, ["x0", *slots])
        if self._measure is None:
            text += self._kernel(name, dtype, n, "each_chunk(table")
            text += self._kernel(f"{name}_rounded", dtype, n + 1, "each_chunk(table", rounded=True)
        else:
            first = f"{name}_measure"
            text += self._each(first, self._measure, dtype, ["u", *slots])
            text += self._kernel(first, dtype, n + 1, "measure_segments(table", measures=True)
            walk = "each_measured_chunk(table, s.p_norm, s.u_norm"
            text += self._kernel(name, dtype, n + 1, walk)
        return headers("functions.cuh", "tables.cuh") + indented(text)

    def _each(
        self, own: str, formula: Callable[..., Any], dtype: np.dtype[Any], results: Sequence[str]
    ) -> str:
        """The function ``own_each`` of one element, which assigns the results to its parameters."""
        t, inputs = TYPES[dtype], [f"x{k}" for k in range(self.n_arrays)]
        params = [f"{t}& {x}" if x in results else f"const {t} {x}" for x in inputs]
        params += [f"{t}& {x}" for x in results if x not in inputs]
        return (
            f"static __device__ __forceinline__ void {own}_each(\n"
            f"    {', '.join(params)}, const {self.name}_settings& s) {{\n"
            f"{self.lines(formula, inputs, results, dtype)}}}\n"
        )

    def _kernel(
        self,
        own: str,
        dtype: np.dtype[Any],
        n: int,
        walk: str,
        measures: bool = False,
        rounded: bool = False,
    ) -> str:
        """A kernel whose table has `n` columns, and the start of its walk over their elements."""
        t, settings = TYPES[dtype], f"{self.name}_settings"
        kinds = ["const T" if measures else "T", "const G", *[t] * (self.n_arrays - 2)]
        arrays = [f"({kind}*)table.at[{k}][i] + start" for k, kind in enumerate(kinds)]
        values = ", ".join(f"x{k}" for k in range(self.n_arrays))
        types, wide, copy = "class T, class G = T", "WIDE<T, G>", "(T*)nullptr"
        if rounded:
            types, wide = "class T, class G, class H", "PACKED<H>"
            copy = f"part_of((H*)table.at[{n - 1}][i], start)"
        element = f"{self.name}_each({values}, s);"
        if measures:
            element = f"{t} u; {own}_each({values}, u, s); add_squares(sum, x0, u);"
        return (
            f"template <{types}> __global__ void __launch_bounds__(256, 1) {own}(\n"
            f"    const __grid_constant__ Table<{n}> table, {settings} given,\n"
            f"    const {settings}* live) {{\n"
            f"constexpr int W = {wide};\n{settings} s = live ? *live : given;\n"
            f"{walk}, [&](int i, long long start, int n{', double2& sum' * measures}) {{\n"
            f"each_element<W, {t}>(n, [&]({t}& {values.replace(', ', f', {t}& ')}) "
            f"{{ {element} }},\n    {', '.join([copy, *arrays])});\n}});\n}}\n"
        )

    def step(
        self,
        columns: Sequence[Sequence[Any]],
        settings: Sequence[float],
        live: Any = None,
        rounded: Sequence[Any] | None = None,
    ) -> None:
        """Move arrays along their gradients, in place.

        Args:
            columns: lists of arrays of one device: p, g and one list per average. All but g are
                C-contiguous. All have one real dtype, with two exceptions: averages of 16-bit
                floats are float32, and gradients of float32 may be 16-bit floats.
            settings: the numbers of the step.
            live: None, or a device array of settings that the kernel reads instead when it runs,
                so that the replay of a CUDA graph takes a new learning rate.
            rounded: for each p, in float32, an array of a 16-bit dtype for the rounded result, or
                None; all of one dtype.
        """
        dtype = columns[0][0].dtype
        source = self.source(dtype)
        by_value = np.array(tuple(settings), _struct_of(compute_dtype(dtype), len(settings)))[()]
        every = [columns[0], [*map(as_contiguous, columns[1])], *columns[2:]]
        if rounded is not None:
            every.append(rounded)
        kinds = dict.fromkeys(g.dtype for g in every[1])
        for kind in kinds:
            same_kind: list[Any] = [*every]
            if len(kinds) > 1:
                rows = [row for row in zip(*every, strict=True) if row[1].dtype == kind]
                same_kind = list(zip(*rows, strict=True))
            types = [dtype] if kind == dtype else [dtype, kind]
            own = {a.dtype for a in same_kind[-1] if a is not None} if rounded is not None else ()
            if own:
                types = [dtype, kind, *own]
            elif rounded is not None:
                same_kind.pop()
            name = f"{'_rounded' if own else ''}<{', '.join(map(type_name, types))}>"
            self._launch(source, name, same_kind, (by_value, live))

    def _launch(
        self, source: str, suffix: str, columns: Sequence[Sequence[Any]], numbers: Any
    ) -> None:
        """Launch the kernels with this suffix of their names on arrays of the same types."""
        if self._measure:
            first = columns[0][0]
            ends = np.cumsum([0, *(segments_of(a.size) for a in columns[0])]).tolist()
            sums = READINGS[type(first)].lib.ndarray(2 * ends[-1] + 2, np.float64)
            columns = [*columns, [sums[2 * k :] for k in ends[:-1]]]
            for table, segments in tables(columns, segmented=True):
                launch(source, self.names[0] + suffix, segments, THREADS, (table, *numbers))
        for table, chunks in tables(columns):
            launch(source, self.name + suffix, chunks, THREADS, (table, *numbers))


@functools.cache
def _struct_of(dtype: np.dtype[Any], n: int) -> np.dtype[Any]:
    """The dtype of the struct of `n` settings."""
    return np.dtype([("", dtype)] * n)
