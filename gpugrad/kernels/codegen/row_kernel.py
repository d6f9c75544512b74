"""Kernels that work row by row: with reductions along rows, or sums over rows for each column.

A warp or a block reads a row once, into registers. Each reduction along the row is a loop over the
elements that its threads hold; a later loop recomputes values of an earlier one if it needs them,
which is cheaper than keeping them. Sums over rows accumulate in registers while a block goes from
row to row. The teams of threads that share a block add theirs up in shared memory, and a second
kernel adds up the sums of the blocks: in a fixed order and without atomics.

Lower bound, in bytes: each input read once, each result written once. Rows that are too long for
registers are read again by each loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpugrad.kernels.codegen.code import Code, NoCodeError, Reduction
from gpugrad.kernels.codegen.cuda import CUDA
from gpugrad.kernels.codegen.element_kernel import prelude
from gpugrad.kernels.codegen.kernel import Input, Kernel
from gpugrad.kernels.runtime.launch import type_name

MOST_BLOCKS = 1024
MOST_SUMMING = 132 * 4
"""Most blocks that sum over rows: each block's sums are written, and read by the second kernel."""

ELEMENTS = 16  # of a row per thread, at 4 bytes each


class RowKernel:
    """The CUDA source of a kernel that works row by row, and the shape of its launch.

    Args:
        code: the steps.
        most: elements of an access; fewer are for arrays that begin at no multiple of 16 bytes.

    Attributes:
        pack: elements of an access.
        block: threads per row, and rows at a time.
        blocks: the number of blocks.
        source: the kernel, and the second one if there are sums.
    """

    def __init__(self, code: Kernel, most: int = 8) -> None:
        self._code = code
        n = code.columns
        sizes = [i.dtype.itemsize for i in code.inputs if i.column]
        sizes += [r.value.dtype.itemsize for r in code.results]
        widest = max(sizes, default=4)
        self.pack = next(p for p in (8, 4, 2, 1) if p <= most and n % p == 0 and p * widest <= 16)
        held = ELEMENTS * 4 // max(widest, 4)
        threads = next((t for t in (32, 128, 256, 512) if t * held >= n), 1024)
        by_column = any(s.by_column for s in code.sums)
        # With two rows in each, half as many blocks write half as many sums. Rows share barriers,
        # so none may be left over; two blocks still fit into the registers of a processor.
        many = by_column and code.rows > MOST_SUMMING and code.rows % 2 == 0
        paired = many and threads == 128 and 2 * n <= threads * held
        self.block = (threads, 8 if threads == 32 else 2 if paired else 1)
        limit = MOST_SUMMING // (2 if paired else 1) if by_column else MOST_BLOCKS
        self.blocks = max(1, min(limit, -(-code.rows // self.block[1])))
        self._items = -(-n // (threads * self.pack))
        self._long = threads * held < n
        if self._long and by_column:
            raise NoCodeError("sums over rows that are too long for registers")
        self.source = prelude() + self._text() + self._ending()

    def _text(self) -> str:
        of, (threads, slots) = self._code, self.block
        step, many = threads * self.pack, f"[{self._items * self.pack}] = {{}}"
        parameters = [f"const {type_name(i.dtype)}* __restrict__ p{i.k}" for i in of.inputs]
        parameters += [f"{type_name(r.value.dtype)}* __restrict__ o{r.k}" for r in of.results]
        parameters += [f"{type_name(s.code.dtype)}* __restrict__ q{s.k}" for s in of.sums]
        scratch = {type_name(r.of.dtype) for r in of.body.reductions}
        scratch |= {type_name(s.code.dtype) for s in of.sums if not s.by_column}
        start = f"j = threadIdx.x * {self.pack}"
        lines = [
            f"#define HELD for (int k = 0, {start}; k < {self._items}; ++k, j += {step})",
            f"#define EACH for (int {start}; j < {of.columns}; j += {step})",
            f'extern "C" __global__ void __launch_bounds__({threads * slots}, '
            f"{2 if slots == 2 else 1}) kernel({', '.join(parameters)}) {{",
            *(f"__shared__ {t} {_scratch(t)}[{slots}][32];" for t in sorted(scratch)),
            *(
                f"{type_name(s.code.dtype)} s{s.k}{many if s.by_column else ' = 0'};"
                for s in of.sums
            ),
            *(self._held(i) for i in of.inputs if i.row == "0"),
            f"for (long long row = blockIdx.x * {slots}LL + threadIdx.y; row < {of.rows}; "
            f"row += gridDim.x * {slots}LL) {{",
            *(self._held(i) for i in of.inputs if i.row != "0"),
            *(
                f"const {type_name(i.dtype)} x{i.k} = p{i.k}[{i.row}];"
                for i in of.inputs
                if not i.column
            ),
        ]
        for stage in of.stages:
            lines += self._reduce(stage)
        lines += [self._write_elements(), *self._write_rows(), "}", *self._partials(), "}"]
        return "\n".join(line for line in lines if line) + "\n"

    # -- inputs

    def _held(self, i: Input) -> str:
        """Reads a thread's elements of an input into registers."""
        if self._long or not i.column:
            return ""
        pack, n = f"Pack<{type_name(i.dtype)}, {self.pack}>", self._code.columns
        return (
            f"{type_name(i.dtype)} x{i.k}_[{self._items * self.pack}];\n#pragma unroll\n"
            f"HELD if (j < {n}) {{ {pack} some = *(const {pack}*)(p{i.k} + {i.row} "
            f"+ j);\n#pragma unroll\nfor (int e = 0; e < {self.pack}; ++e) "
            f"x{i.k}_[k * {self.pack} + e] = some.at[e]; }}"
        )

    def _loop(
        self, codes: Sequence[Code], inside: Sequence[str], before: str = "", after: str = ""
    ) -> str:
        """A loop over the elements of a row that a thread holds, with the values of `codes`."""
        needed = self._code.body.needed(codes)
        lines = [*map(CUDA.line, needed)]
        used = [i for i in self._code.read_by(needed) if i.column]
        at = "y{0}.at[e]" if self._long else f"x{{0}}_[k * {self.pack} + e]"
        read = [f"const {type_name(i.dtype)} x{i.k} = {at.format(i.k)};" for i in used]
        for i in used if self._long else ():
            pack = f"Pack<{type_name(i.dtype)}, {self.pack}>"
            before += f"const {pack} y{i.k} = *(const {pack}*)(p{i.k} + {i.row} + j);\n"
        element = "\n".join([*read, *lines, *inside])
        return (
            f"{'EACH' if self._long else '#pragma unroll' + chr(10) + 'HELD'} "
            f"if (j < {self._code.columns}) {{\n{before}#pragma unroll\n"
            f"for (int e = 0; e < {self.pack}; ++e) {{\n{element}\n}}\n{after}}}"
        )

    # -- reductions along rows

    def _together(self, t: str, value: str, functor: str, none: str) -> str:
        """Reduces a value over the threads of a row."""
        if self.block[0] == 32:
            return f"warp_reduce({value}, {functor}())"
        return f"block_reduce({value}, {functor}(), {none}, {_scratch(t)}[threadIdx.y])"

    def _reduce(self, some: Sequence[Reduction]) -> list[str]:
        before, inside, after = [], [], []
        for r in some:
            t, functor, name = type_name(r.of.dtype), r.functor, r.code.value
            none = r.neutral(t)
            before.append(f"{t} all_{name} = {none};")
            inside.append(f"all_{name} = {functor}()(all_{name}, {r.of.name});")
            whole = self._together(t, f"all_{name}", functor, none)
            after.append(f"const {t} {name} = {whole};")
        return [*before, self._loop([r.of for r in some], inside), *after]

    # -- results and sums over rows

    def _write_elements(self) -> str:
        of, before, inside, after = self._code, "", [], ""
        for r in of.full:
            t = type_name(r.value.dtype)
            before += f"Pack<{t}, {self.pack}> w{r.k};\n"
            inside.append(f"w{r.k}.at[e] = ({t})({r.code.name});")  # t may be two words
            after += f"*(Pack<{t}, {self.pack}>*)(o{r.k} + row * {of.columns} + j) = w{r.k};\n"
        for s in of.sums:
            at = f"[k * {self.pack} + e]" if s.by_column else ""
            inside.append(f"s{s.k}{at} += {s.code.name};")
        codes = [r.code for r in (*of.full, *of.sums)]
        return self._loop(codes, inside, before, after) if inside else ""

    def _write_rows(self) -> list[str]:
        results = self._code.by_row
        if not results:
            return []
        lines = self._code.body.lines([r.code for r in results])
        lines += [f"o{r.k}[row] = ({type_name(r.value.dtype)})({r.code.name});" for r in results]
        return ["if (threadIdx.x == 0) {", *lines, "}"]

    def _partials(self) -> list[str]:
        """Adds up the sums of a block, and writes them to where the second kernel reads them."""
        n, p, more = self._code.columns, self.pack, self.block[1] - 1
        lines, widest = [], 0
        for s in self._code.sums:
            k, t, one, at, width = s.k, type_name(s.code.dtype), f"s{s.k}", "0", 1
            each = "if (threadIdx.x == 0)"
            if s.by_column:
                one, at, width = f"s{k}[k * {p} + e]", "j + e", n
                each = f"#pragma unroll\nHELD if (j < {n}) for (int e = 0; e < {p}; ++e)"
            else:
                lines.append(f"s{k} = {self._together(t, one, 'Sum', f'({t})0')};")
            write = f"q{k}[blockIdx.x * {width}LL + {at}] = {one};"
            if not more:
                lines.append(f"{each} {write}")
                continue
            widest = max(widest, width * s.code.dtype.itemsize)
            other = f"(({t}*)others)[y * {width} + {at}]"
            lines += [
                f"if (threadIdx.y) {{\nint y = threadIdx.y - 1;\n{each} {other} = {one};\n}}",
                f"__syncthreads();\nif (threadIdx.y == 0) {{\n{each} {{",
                f"for (int y = 0; y < {more}; ++y) {one} += {other};\n{write}\n}}\n}}",
                "__syncthreads();",
            ]
        shared = f"__shared__ double others[{-(-widest * more // 8)}];"
        return [shared, *lines] if widest else lines

    def _ending(self) -> str:
        """The second kernel: 32 x 32 threads for 32 columns, or one warp for a sum of all."""
        parameters, calls, n = [], [], self._code.columns
        for s in self._code.sums:
            k, t, out = s.k, type_name(s.code.dtype), type_name(s.value.dtype)
            parameters += [f"const {t}* __restrict__ q{k}", f"{out}* __restrict__ o{k}"]
            arguments = f"q{k}, o{k}, parts, ({t}){s.count or 1}"
            columns = f"end_columns({arguments}, {n}, ({t}(*)[33])held);"
            calls.append(columns if s.by_column else f"end_all({arguments});")
        if not calls:
            return ""
        parameters.append("int parts")
        return (
            'extern "C" __global__ void __launch_bounds__(1024) ending('
            f"{', '.join(parameters)}) {{\n__shared__ double held[32][33];\n"
            + "\n".join([*calls, "}\n"])
        )


def _scratch(t: str) -> str:
    """The name of the shared memory of a type; the type may have several words."""
    return f"scratch_{t.replace(' ', '_')}"
