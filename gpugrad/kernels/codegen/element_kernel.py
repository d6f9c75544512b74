"""One kernel of elements: the lines of a formula, the loops over its arrays, and its launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import BFLOAT16, SCALARS
from gpugrad.core.devices import gpu_count
from gpugrad.kernels.codegen.code import compute_dtype
from gpugrad.kernels.codegen.cuda import CUDA, indented
from gpugrad.kernels.codegen.layout import Layout, summed_axes
from gpugrad.kernels.runtime.launch import TYPES, cpp_bool, get_kernel, headers, launch

LONG = 100
"""Most lines of a one-element function that is inlined wherever it is used."""

NUMBERS = {
    float: np.float64, int: np.int64, complex: np.complex128, bool: np.bool_,
    BFLOAT16.type: np.float64, np.float32: np.float64, np.bool_: np.bool_,
}  # fmt: skip
"""How Python numbers, and scalars computed from them and bfloat16, are passed to a kernel."""

THREADS = 256
BLOCKS = 132 * 16
"""Most blocks of a launch; a block then takes several parts. 132 is an H100's processors."""


def prelude() -> str:
    """The headers that precede the text of a generated kernel."""
    return headers("complex.cuh", "functions.cuh", "elementwise.cuh")


class ElementKernel:
    """A kernel that computes some results of a formula, for arrays in one layout.

    Args:
        of: the `Elementwise`.
        at: indices of the results that it computes.
        own: their shapes.
        layout: the layout of the arrays.

    Attributes:
        source: the CUDA source.
    """

    def __init__(
        self, of: Any, at: Sequence[int], own: Sequence[tuple[int, ...]], layout: Layout
    ) -> None:
        self._layout, self._body = layout, of.body
        self._results = [*zip(own, [of.dtypes[k] for k in at], strict=True)]
        self._codes = [of.results[k] for k in at]
        self._grid, self._threads, self._splits = _geometry(layout)
        shape, split, threads = layout.shape, self._splits > 1, self._threads
        self._parts: list[tuple[tuple[int, ...], np.dtype[Any]]] = []  # arrays the kernel writes
        for (result, dtype), fold in zip(self._results, layout.folded, strict=True):
            if fold is None:
                whole = tuple(shape[k] for k in layout.order)
                later = summed_axes(shape, result)
                self._parts.append((whole, compute_dtype(dtype) if later else dtype))
            elif split:
                self._parts.append(((self._splits, *result), compute_dtype(dtype)))
            else:
                self._parts.append((result, dtype))
        back = tuple(int(k) for k in np.argsort(layout.order))
        self._back = None if back == tuple(range(len(shape))) else back
        places = "".join(layout.place(k) for k in range(len(layout.strides)))
        marks = "".join("w" if f is None else f[0] for f in layout.folded)
        some = "" if len(at) == len(of.dtypes) else f"_{'_'.join(map(str, at))}"
        self.name = f"{of.name}{some}_{places}{marks}{len(layout.dims)}{layout.index[0]}"
        self.name += f"{layout.pack}_{threads[0]}" + "s" * split
        self.source = of.head + self._text(of.inputs)
        self._has_numbers = any(i in SCALARS for i in of.inputs)
        self._kernel: Any = None  # kept only if there is one GPU
        self._empty = 0 in shape
        self._done = not (split or self._empty or self._back) and all(
            part == own for (part, _), (own, _) in zip(self._parts, self._results, strict=True)
        )

    def run(self, kind: Any, args: Sequence[Any]) -> list[Any]:
        """The results, as arrays of type `kind`."""
        parts = [kind(shape, dtype) for shape, dtype in self._parts]
        if not self._empty:
            if self._has_numbers:
                args = [NUMBERS[type(a)](a) if type(a) in NUMBERS else a for a in args]
            params = (*args, *parts, *self._sizes)
            if kind is np.ndarray:
                launch(self.source, self.name, self._grid, self._threads, params)
            else:
                kernel = self._kernel or self._get_kernel()
                kernel(self._grid, self._threads, params)
        if self._done:  # the kernel has written the results themselves
            return parts
        arrays = []
        for part, fold, (shape, dtype) in zip(
            parts, self._layout.folded, self._results, strict=True
        ):
            if fold is None:
                part = part if self._back is None else part.transpose(self._back)
                arrays.append(part if part.shape == shape else _sum_to_shape(part, shape, dtype))
            elif self._empty:
                arrays.append(_zeros(part, shape, dtype))
            elif self._splits > 1:
                arrays.append(_sum_partials(kind, part, shape, dtype))
            else:
                arrays.append(part)
        return arrays

    def _get_kernel(self) -> Any:
        kernel = get_kernel(self.source, self.name)
        if gpu_count() == 1:
            self._kernel = kernel
        return kernel

    # -- the text

    def _text(self, inputs: Sequence[Any]) -> str:
        """The text of the kernel. Finds the arguments after the arrays, numbers and results."""
        layout = self._layout
        self._index, self._pack, self._outer = layout.index, layout.pack, len(layout.dims) - 1
        types = [dtype for _, dtype in self._parts]
        self._types = [TYPES[np.dtype(t)] for t in types]
        self._inputs = [TYPES[np.dtype(NUMBERS[i] if i in SCALARS else i)] for i in inputs]
        arrays = [k for k, i in enumerate(inputs) if i not in SCALARS]
        self._place = {k: layout.place(n) for n, k in enumerate(arrays)}
        self._whole = [k for k, f in enumerate(layout.folded) if not f]
        self._wide = {k: TYPES[compute_dtype(types[k])] for k, f in enumerate(layout.folded) if f}
        self._bytes = max((compute_dtype(types[k]).itemsize for k in self._wide), default=0)
        sizes = {"rows": layout.rows, "columns": layout.columns}
        sizes |= {f"d{i}": layout.dims[i] for i in range(1, self._outer)}
        strides = dict(zip(arrays, layout.strides, strict=True))
        for k, place in self._place.items():
            if place in "rvs":
                sizes |= {f"s{k}_{i}": strides[k][i] for i in range(self._outer)}
        sizes |= {f"t{k}": strides[k][-1] for k, place in self._place.items() if place == "s"}
        kind = np.int32 if self._index == "int" else np.int64
        self._sizes = [kind(v) for v in sizes.values()]
        params = [
            f"const {t}* __restrict__ a{k}" if k in self._place else f"const {t} x{k}"
            for k, t in enumerate(self._inputs)
        ]
        params += [f"{t}* __restrict__ r{k}" for k, t in enumerate(self._types)]
        params += [f"const {self._index} {n}" for n in sizes]
        fold = next((f for f in layout.folded if f), None)
        function, (wide, tall) = self._function(), self._threads
        walk = {None: self._all, "columns": self._rows, "rows": self._columns}[fold]()
        return indented(
            f"{function}__global__ void __launch_bounds__({wide * tall}, 1) {self.name}(\n"
            f"    {', '.join(params)}) {{\n{walk}}}\n"
        )

    def _function(self) -> str:
        """The function of one element, with the arguments that it uses.

        If it has more than `LONG` lines it is not inlined: a kernel would contain it once for each
        element of a pack, which is hundreds of kilobytes and takes seconds to compile.
        """
        outs = [(self._types[k], f"y{k}", self._codes[k]) for k in self._whole]
        outs += [(t, f"y{k}", self._codes[k]) for k, t in self._wide.items()]
        needed = self._body.needed([c for _, _, c in outs])
        lines, used = [*map(CUDA.line, needed)], {c.value for c in needed if c.is_input}
        self._uses = [k for k in range(len(self._inputs)) if f"x{k}" in used]
        params = [f"const {self._inputs[k]} x{k}" for k in self._uses]
        own, text = f"{self.name}_each", "".join(f"{line}\n" for line in lines)
        values = [f"({t}){c.name}" for t, _, c in outs]
        called = ""
        if len(lines) > LONG:
            struct, fields = f"{own}_results", " ".join(f"{t} {n};" for t, n, _ in outs)
            called = (
                f"struct {struct} {{ {fields} }};\n"
                f"static __device__ __noinline__ {struct} {own}_called({', '.join(params)}) {{\n"
                f"{text}return {{{', '.join(values)}}};\n}}\n"
            )
            args = ", ".join(f"x{k}" for k in self._uses)
            text = f"const {struct} results = {own}_called({args});\n"
            values = [f"results.{n}" for _, n, _ in outs]
        params += [f"{t}& {n}" for t, n, _ in outs]
        stores = "".join(f"{n} = {v};\n" for (_, n, _), v in zip(outs, values, strict=True))
        return (
            f"{called}static __device__ __forceinline__ void {own}({', '.join(params)}) {{\n"
            f"{text}{stores}}}\n"
        )

    # -- the three loops over the elements

    def _all(self) -> str:
        """A loop in which every thread takes a pack of columns of some row."""
        i, pack = self._index, self._pack
        rows, place = "", f"column = at * {pack}"
        if self._outer:
            rows, place = "rows * ", f"row = at / parts, column = (at - row * parts) * {pack}"
        return (
            f"{self._packs()}for ({i} at = ({i})blockIdx.x * blockDim.x + threadIdx.x; "
            f"at < {rows}parts; at += ({i})gridDim.x * blockDim.x) {{\n"
            f"const {i} {place};\n{self._row()}{self._part()}}}\n"
        )

    def _rows(self) -> str:
        """A loop in which a warp or a block sums a row, its threads taking packs in turn."""
        i, (wide, tall) = self._index, self._threads
        sums = "".join(f"{t} f{k} = ({t})0;\n" for k, t in self._wide.items())
        done = "".join(
            f"f{k} = row_reduce<{wide}>(f{k}, Sum(), ({t})0, scratch);\n"
            f"if (threadIdx.x == 0) r{k}[({i})blockIdx.y * rows + row] = ({self._types[k]})f{k};\n"
            for k, t in self._wide.items()
        )
        return (
            f"__shared__ double2 scratch[32];\n{self._packs()}"
            f"for ({i} row = ({i})blockIdx.x * {tall} + threadIdx.y; row < rows; "
            f"row += ({i})gridDim.x * {tall}) {{\n{self._row()}{sums}"
            f"for ({i} at = ({i})blockIdx.y * {wide} + threadIdx.x; at < parts; "
            f"at += ({i})gridDim.y * {wide}) {{\nconst {i} column = at * {self._pack};\n"
            f"{self._part()}}}\n{done}}}\n"
        )

    def _columns(self) -> str:
        """A loop in which a thread sums a pack of columns over some rows, and then the block."""
        i, (wide, tall), pack = self._index, self._threads, self._pack
        sums = "".join(f"{t} f{k}[{pack}] = {{}};\n" for k, t in self._wide.items())
        done = "".join(
            f"fold_columns<{wide}, {tall}, {pack}>(f{k}, r{k} + ({i})blockIdx.y * columns + column,"
            " at < parts, memory);\n"
            for k in self._wide
        )
        return (
            f"__shared__ double2 memory[{-(-wide * tall * pack * self._bytes // 16)}];\n"
            f"{self._packs()}const {i} at = ({i})blockIdx.x * {wide} + threadIdx.x, "
            f"column = at * {pack};\n{sums}"
            f"if (at < parts) for ({i} row = ({i})blockIdx.y * {tall} + threadIdx.y; row < rows; "
            f"row += ({i})gridDim.y * {tall}) {{\n{self._row()}{self._part()}}}\n{done}"
        )

    # -- a row, and a pack of its columns

    def _packs(self) -> str:
        """Lines for the number of packs of a row, and for arrays of one element."""
        pack = self._pack
        count = "columns" if pack == 1 else f"(columns + {pack - 1}) / {pack}"
        once = [k for k, place in self._place.items() if place == "o"]
        return f"const {self._index} parts = {count};\n" + "".join(
            f"const {self._inputs[k]} c{k} = *a{k};\n" for k in once
        )

    def _row(self) -> str:
        """Lines for the start of the row in each array."""
        i, outer, lines = self._index, self._outer, []
        if outer > 1:
            lines.append(f"{i} rest = row;")
            for n in range(outer - 1, 0, -1):
                lines.append(f"const {i} i{n} = rest % d{n};\nrest /= d{n};")
        if outer:
            lines.append(f"const {i} i0 = {'rest' if outer > 1 else 'row'};")
        for k, place in self._place.items():
            if place == "o":
                continue
            steps = [f" + i{n} * s{k}_{n}" for n in range(outer)]
            at = " + row * columns" * bool(outer) if place == "f" else "".join(steps)
            lines.append(f"const {self._inputs[k]}* b{k} = a{k}{at};")
            if place == "r":
                lines.append(f"const {self._inputs[k]} c{k} = *b{k};")
        return "".join(f"{line}\n" for line in lines)

    def _part(self) -> str:
        """Lines for a pack of columns; the last pack of a single row may be incomplete."""
        pack, whole = self._pack, self._elements(self._pack, "column")
        if pack == 1 or self._outer:
            return whole
        return (
            f"if (column + {pack} <= columns) {{\n{whole}}} else {{\n"
            f"#pragma unroll 1\nfor ({self._index} c = column; c < columns; ++c) {{\n"
            f"{self._elements(1, 'c')}}}\n}}\n"
        )

    def _elements(self, pack: int, column: str) -> str:
        """Lines that load, compute and store a pack of columns, and add to sums."""
        row, begin, args, end = "row * columns + " * bool(self._outer), [], [], []
        for k in self._uses:
            t, place = self._inputs[k], self._place.get(k)
            if place is None or place in "or":
                args.append(f"{'x' if place is None else 'c'}{k}")
            elif pack == 1:
                args.append(f"b{k}[{column}{f' * t{k}' if place == 's' else ''}]")
            else:
                few = f"Few<{t}, {pack}>"
                begin.append(f"const {few} p{k} = *(const {few}*)(b{k} + {column});")
                args.append(f"p{k}.at[k]")
        for k in self._whole:
            if pack == 1:
                args.append(f"r{k}[{row}{column}]")
                continue
            few = f"Few<{self._types[k]}, {pack}>"
            begin.append(f"{few} q{k};")
            args.append(f"q{k}.at[k]")
            end.append(f"*({few}*)(r{k} + {row}{column}) = q{k};")
        args += [f"y{k}" for k in self._wide]
        at = ("[k]" if pack > 1 else "[0]") if "rows" in self._layout.folded else ""
        lines = [
            *(f"{t} y{k};" for k, t in self._wide.items()),
            f"{self.name}_each({', '.join(args)});",
            *(f"f{k}{at} += y{k};" for k in self._wide),
        ]
        if pack > 1:
            lines = ["#pragma unroll", f"for (int k = 0; k < {pack}; ++k) {{", *lines, "}"]
        return "".join(f"{line}\n" for line in (*begin, *lines, *end))


def _zeros(part: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The sum of an empty array."""
    out = type(part)(shape, dtype)
    out[...] = 0
    return out


def _geometry(layout: Layout) -> tuple[tuple[int, ...], tuple[int, int], int]:
    """Grid, block, and the number of parts that a sum is split into."""
    fold = next((f for f in layout.folded if f), None)
    parts = -(-layout.columns // layout.pack)
    if fold is None:
        return (_blocks(layout.rows * parts, THREADS),), (THREADS, 1), 1
    if fold == "columns":
        wide = 32 if layout.rows > 1 and parts <= 512 else THREADS
        across = _blocks(layout.rows, THREADS // wide)
        splits = max(1, min(-(-parts // (4 * wide)), 2 * 264 // across))
        return (across, splits), (wide, THREADS // wide), splits
    wide = min(32, 1 << (parts - 1).bit_length())
    across, tall = _blocks(parts, wide), THREADS // wide
    splits = max(1, min(-(-layout.rows // (4 * tall)), 2 * 264 // across))
    if layout.rows <= 16 * tall:  # 16 elements a thread are not worth a second launch
        splits = 1
    return (across, splits), (wide, tall), splits


def _blocks(n: int, each: int) -> int:
    return max(1, min(-(-n // each), BLOCKS))


def _sum_partials(kind: Any, part: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The sum of partial results over their first axis."""
    out, splits = kind(shape, dtype), part.shape[0]
    n = out.size
    few = n < THREADS
    types = f"{TYPES[part.dtype]}, {TYPES[np.dtype(dtype)]}, {cpp_bool(few)}"
    grid = -(-n * (32 if few else 1) // THREADS)
    launch(
        prelude(),
        f"fold_partials<{types}>",
        grid,
        THREADS,
        (part, out, np.int32(splits), np.int64(n)),
    )
    return out


def _sum_to_shape(whole: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A sum over axes that are neither rows nor columns; or a reshape by axes of length 1."""
    axes = tuple(sorted(summed_axes(whole.shape, shape)))
    if not axes:
        return whole.reshape(shape)
    return whole.sum(axis=axes, keepdims=True).reshape(shape).astype(dtype, copy=False)
