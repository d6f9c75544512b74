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

A second kernel, ``sgd_rounded``, also writes the new p rounded to 16 bits, for the matrix products
of the next step: 2 bytes per element, where casts take 6.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.kernels.codegen.code import LIB, Body, cast, compute_dtype
from gpugrad.kernels.runtime.launch import TYPES, headers, launch, type_name
from gpugrad.kernels.runtime.tables import THREADS, as_contiguous, tables


class StepKernel:
    """The kernels of one update rule.

    Args:
        name: the name of the kernels.
        formula: ``formula(xp, s, p, g, *slots)``, which returns the new ``(p, *slots)``.
        settings: the names of the numbers that `s` holds.
        n_slots: the number of averages.

    Attributes:
        names: the names of its kernels.

    Raises:
        NoCodeError: when it is launched, if the formula is not straight-line CUDA.
    """

    rounds = True
    """Whether `step` takes arrays for rounded copies."""

    def __init__(
        self, name: str, formula: Callable[..., Any], settings: Sequence[str], n_slots: int
    ) -> None:
        self.name, self._formula = name, formula
        self.names: tuple[str, ...] = (name,)
        self._settings, self._n_slots = tuple(settings), n_slots
        self._sources: dict[Any, str] = {}

    def source(self, dtype: Any) -> str:
        """The source of the kernels for arrays of this dtype."""
        dtype = compute_dtype(dtype)
        if dtype not in self._sources:
            self._sources[dtype] = self._write(dtype)
        return self._sources[dtype]

    def _write(self, dtype: np.dtype[Any]) -> str:
        n = 2 + self._n_slots
        written = [0, *range(2, n)]
        names = [f"x{k}" for k in written]
        return (
            headers("functions.cuh", "tables.cuh")
            + struct_text(self.name, self._settings, dtype)
            + each_text(self.name, self.name, self._formula, self._settings, n, dtype, names)
            + kernel_text(self.name, TYPES[dtype], n, written)
            + kernel_text(self.name, TYPES[dtype], n, written, rounded=True)
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
        copies = [] if rounded is None else [rounded]
        kinds = dict.fromkeys(g.dtype for g in every[1])
        for kind in kinds:
            same_kind = [*every, *copies]
            if len(kinds) > 1:
                rows = zip(*same_kind, strict=True)
                same_kind = list(zip(*[row for row in rows if row[1].dtype == kind], strict=True))
            types = [dtype] if kind == dtype else [dtype, kind]
            own = {a.dtype for a in same_kind[-1] if a is not None} if copies else set()
            if own:
                types = [dtype, kind, *own]
            elif copies:
                same_kind.pop()
            name = f"{'_rounded' if own else ''}<{', '.join(map(type_name, types))}>"
            self._launch(source, name, same_kind, (by_value, live))

    def _launch(
        self, source: str, suffix: str, columns: Sequence[Sequence[Any]], numbers: Any
    ) -> None:
        """Launch the kernel with this suffix of its name on arrays of the same types."""
        for table, chunks in tables(columns):
            launch(source, self.name + suffix, chunks, THREADS, (table, *numbers))


@functools.cache
def _struct_of(dtype: np.dtype[Any], n: int) -> np.dtype[Any]:
    """The dtype of the struct of `n` settings."""
    return np.dtype([("", dtype)] * n)


def struct_text(name: str, settings: Sequence[str], dtype: np.dtype[Any]) -> str:
    """The struct of the settings."""
    fields = " ".join(f"{TYPES[dtype]} {k};" for k in settings)
    return f"struct {name}_settings {{ {fields} }};\n"


def formula_lines(
    formula: Callable[..., Any],
    settings: Sequence[str],
    inputs: Sequence[str],
    results: Sequence[str],
    dtype: np.dtype[Any],
) -> list[str]:
    """The lines of C and CUDA that compute a formula of elements of one dtype.

    Args:
        formula: the formula, which returns as many values as there are results.
        settings: the names of the members of a struct ``s``.
        inputs: the expressions of the formula's arguments.
        results: the expressions that the results are assigned to, when all inputs have been read.
        dtype: the dtype of all values.
    """
    body = Body()
    values = [body.input(x, dtype) for x in inputs]
    s = types.SimpleNamespace(**{k: body.input(f"s.{k}", dtype) for k in settings})
    codes = [cast(body, r, dtype) for r in formula(LIB, s, *values)]
    stores = [f"{x} = {code.name};" for x, code in zip(results, codes, strict=True)]
    return body.lines(codes) + stores


def each_text(
    own: str,
    name: str,
    formula: Callable[..., Any],
    settings: Sequence[str],
    n: int,
    dtype: np.dtype[Any],
    results: Sequence[str],
) -> str:
    """The function ``own_each`` of one element, which assigns the results to these parameters.

    Its parameters are ``x0`` to ``x(n - 1)``, then others among the results, then the settings of
    the struct ``name_settings``.
    """
    t = TYPES[dtype]
    lines = formula_lines(formula, settings, [f"x{k}" for k in range(n)], results, dtype)
    params = [f"{t}& x{k}" if f"x{k}" in results else f"const {t} x{k}" for k in range(n)]
    params += [f"{t}& {x}" for x in results if x[0] != "x"]
    text = "".join(f"  {line}\n" for line in lines)
    return (
        f"static __device__ __forceinline__ void {own}_each(\n"
        f"    {', '.join(params)}, const {name}_settings& s) {{\n{text}}}\n"
    )


def loop_text(
    own: str, t: str, n: int, written: Sequence[int], extra: str = "", rounded: bool = False
) -> str:
    """The loop over `n` elements from `start` of array `i`, in packs of `W` if they are aligned.

    Args:
        own: the function of one element, without ``_each``.
        t: the type of computations.
        n: the number of columns: arrays of T, of G, and then of `t`.
        written: the columns that are stored.
        extra: an argument of the function that is not an array, with a comma.
        rounded: whether column `n` has arrays of H, or null, for the rounded first column.
    """
    kinds = ["T", "G", *[t] * (n - 2)]
    places = "".join(
        f"    {kind}* a{k} = ({kind}*)table.at[{k}][i] + start;\n" for k, kind in enumerate(kinds)
    )
    pointers = ", ".join(f"a{k}" for k in range(n))
    packs, values = (", ".join(f"b{k}{of}" for k in range(n)) for of in ("[j]", ""))
    loads = "".join(f"      load<W>(a{k} + k, b{k});\n" for k in range(n))
    stores = "".join(f"      store<W>(b{k}, a{k} + k);\n" for k in written)
    reads = "".join(f"      {t} b{k} = ({t})a{k}[k];\n" for k in range(n))
    writes = "".join(f"      a{k}[k] = ({kinds[k]})b{k};\n" for k in written)
    if rounded:
        places += f"    H* r = (H*)table.at[{n}][i];\n    if (r) r += start;\n"
        pointers += ", r"
        stores += "      if (r) store<W>(b0, r + k);\n"
        writes += "      if (r) r[k] = (H)b0;\n"
    return (
        f"{places}    int whole = aligned({pointers}) ? n / W * W : 0;\n"
        f"    for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {{\n"
        f"      {t} {', '.join(f'b{k}[W]' for k in range(n))};\n{loads}"
        "#pragma unroll\n"
        f"      for (int j = 0; j < W; ++j) {own}_each({packs}, {extra}s);\n{stores}"
        f"    }}\n"
        f"    for (int k = whole + threadIdx.x; k < n; k += blockDim.x) {{\n{reads}"
        f"      {own}_each({values}, {extra}s);\n{writes}"
        f"    }}\n"
    )


def head_text(own: str, name: str, columns: int, rounded: bool = False) -> str:
    """The first lines of a kernel whose table has these columns."""
    types = "class T, class G, class H" if rounded else "class T, class G = T"
    return (
        f"template <{types}> __global__ void __launch_bounds__(256, 1) {own}(\n"
        f"    const __grid_constant__ Table<{columns}> table, {name}_settings given,\n"
        f"    const {name}_settings* live) {{\n"
        f"  constexpr int W = {'PACKED<H>' if rounded else 'WIDE<T, G>'};\n"
        f"  {name}_settings s = live ? *live : given;\n"
    )


def kernel_text(name: str, t: str, n: int, written: Sequence[int], rounded: bool = False) -> str:
    """The kernel that steps all arrays of a table, and perhaps rounds the first column."""
    own = f"{name}_rounded" if rounded else name
    return (
        f"{head_text(own, name, n + rounded, rounded)}"
        f"  each_chunk(table, [&](int i, long long start, int n) {{\n"
        f"{loop_text(name, t, n, written, rounded=rounded)}  }});\n}}\n"
    )
