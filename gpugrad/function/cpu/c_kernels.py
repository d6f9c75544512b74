"""A `FusedKernel` as a C++ function of vectors, for a range of its rows.

Without reductions along rows, and if every array has all elements or one, or rows are short, the
elements are one long row, and the range is one of elements. For ``tanh(x * y)`` with 1000 elements
the text is::

    extern "C" void k0(char** p, long from, long to, char* part) {
      constexpr int N = LANES<4>;
      const float* p0 = (const float*)p[0];
      const float* p1 = (const float*)p[1];
      float* o0 = (float*)p[2];
      each_block<N, 1000>(from, to, [&](long j, auto n) __attribute__((always_inline)) {
        const V<float, N> x0 = load<n.value, N>(p0 + j);
        ...
        const V<float, N> v3 = tanh(v2);
        store<n.value>(o0 + j, v3);
      });
    }

Otherwise there is a loop over rows. Each stage of reductions is a loop over the columns; a later
loop reads values that are costly, such as exp, from a buffer of one row. Sums over rows go to
`part`, one for each range, and a second function adds up the parts in order. The ranges depend on
the shape alone, so results do not depend on the number of threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set

from gpugrad.function.gpu.codegen import Input, KernelCode
from gpugrad.function.passes.fuse import FusedKernel, count_of_mean, reduction
from gpugrad.kernels.codegen.code import Code, NoCodeError, Reduction
from gpugrad.kernels.cpu.lines import check, declared, lanes, stored, vector
from gpugrad.kernels.runtime.launch import type_name
from gpugrad.trace.program import Step, Value

RANGE = 16_384
"""Elements of a range, at least: less is not worth another thread."""

RANGES = 16
"""Ranges at most."""

VECTOR = 16
"""Elements of a vector, at most: a shorter row takes as long as one."""

SHORT = 6
"""Columns of a row, at least, for functions such as exp: with fewer, a vector of elements of
several rows takes less time, although it is read one by one."""

STRIP = 4096
"""Elements that one sum adds up, before it is added to the sum of a range."""

BUFFERS = 1 << 17
"""Bytes of row buffers at most, on the stack."""

_COSTLY = re.compile(r"\b(?!infinity|not_a_number|floor|ceil|trunc|rint|fabs|sign)[a-z]\w*[<(]")
_WORD = re.compile(r"\w+")


class CKernel:
    """The text of a kernel.

    Args:
        kernel: the kernel.
        strides: of inputs that are views, in elements, by id; their last axis is contiguous.

    Attributes:
        text: the function, whose name is NAME, and for sums a second one, NAME_end.
        inputs: the arrays that it reads, in order; without `strides` they must be contiguous.
        outs: the arrays that it writes, in order.
        n: the number of rows, or of elements if they are one long row.
        grain: how many of them a range has.
        partial: the bytes of a range's sums.

    Raises:
        NoCodeError: a step cannot be written.
    """

    def __init__(self, kernel: FusedKernel, strides: Mapping[int, Sequence[int]]) -> None:
        self._code = code = KernelCode(kernel, strides=strides)
        self._rows, self._columns = code.rows, code.columns
        self.inputs = [i.value for i in code.inputs]
        self.outs = [v for _, v in code.results] + [s.outs[0] for _, s in code.sums]
        self._check()
        self._long = self._is_one_row()
        if self._long:
            self._rows, self._columns = 1, code.rows * code.columns
        self.n = self._columns if self._long else self._rows
        ranges = max(1, min(RANGES, self._rows * max(self._columns, VECTOR) // RANGE))
        self.grain = -(-self.n // ranges)
        if self._long:
            self.grain = -(-self.grain // STRIP) * STRIP
        self._places, self.partial = self._parts()
        self._by_column = self._depending_on_columns()
        self._buffers = self._buffered()
        self.text = self._text()

    @property
    def scratch(self) -> int:
        """The bytes of the sums of all ranges."""
        return self.partial * -(-self.n // self.grain)

    def reads_in_order(self, values: Iterable[Value]) -> bool:
        """Whether each element of these inputs is read for the element of that place alone."""
        ids = set(map(id, values))
        inputs = [i for i in self._code.inputs if id(i.value) in ids]
        return all(self._is_whole(i) and self._reads_columns(i) for i in inputs)

    def writes_in_order(self, v: Value) -> bool:
        """Whether a result has an element for each element of the kernel, in order."""
        return self._code.is_full(v) and any(v is result for _, result in self._code.results)

    def _check(self) -> None:
        """Raise NoCodeError for what vectors cannot do."""
        of = self._code
        if not self._rows * self._columns:
            raise NoCodeError("no elements")
        if any(i.column not in (0, 1) for i in of.inputs):
            raise NoCodeError("columns that are not contiguous")
        values = [*(i.value for i in of.inputs), *self.outs]
        check(of.body.codes, [v.dtype for v in values])

    def _is_one_row(self) -> bool:
        of = self._code
        costly = any(_COSTLY.search(code.text) for code in of.body.codes)
        return (
            not of.body.reductions
            and ((costly and self._columns < SHORT) or all(map(self._is_whole, of.inputs)))
            and all(of.is_full(v) for _, v in of.results)
            and (self._columns == 1 or all(reduction(s) != "column" for _, s in of.sums))
        )

    def _is_whole(self, i: Input) -> bool:
        """Whether an input has an element for each, in the same order, or only one."""
        if not i.column and i.row == "0":
            return True
        rows, columns = self._code.rows, self._code.columns
        return (i.column == 1 or columns == 1) and (rows == 1 or i.row == f"row * {columns}")

    def _parts(self) -> tuple[list[int], int]:
        """Where each sum of a range begins, in bytes, and the bytes of all."""
        places, at = [], 0
        for code, step in self._code.sums:
            places.append(at)
            at += -(-self._width(step) * code.dtype.itemsize // 64) * 64
        return places, at

    def _width(self, step: Step) -> int:
        return self._code.columns if reduction(step) == "column" else 1

    # -- which loop computes a value

    def _depending_on_columns(self) -> set[str]:
        """Names of the values that differ within a row."""
        names = {f"x{i.k}" for i in self._code.inputs if self._reads_columns(i)}
        for code in self._code.body.codes:
            if {*_WORD.findall(code.text)} & names:
                names.add(code.name)
        return names

    def _reads_columns(self, i: Input) -> bool:
        return bool(i.column) or (self._long and i.row != "0")

    def _loops(self) -> list[list[Code]]:
        """What each loop over columns computes in the end."""
        of = self._code
        stages = sorted({r.stage for r in of.body.reductions})
        loops = [[r.of for r in of.body.reductions if r.stage == stage] for stage in stages]
        full = [c for c, v in of.results if of.is_full(v)]
        return [*loops, full + [c for c, _ in of.sums]]

    def _needed(self, results: Iterable[Code], known: Set[str] = frozenset()) -> list[Code]:
        """The values that results are computed from, in order, without what is known."""
        names = {c.name for c in results} - known
        for code in reversed(self._code.body.codes):
            if code.name in names:
                names.update({c.name for c in code.of} - known)
        return [c for c in self._code.body.codes if c.name in names]

    def _buffered(self) -> set[str]:
        """Names of the costly values that several loops read."""
        if self._long:
            return set()
        loops, names, room = self._loops(), set[str](), BUFFERS
        read = [{c.name for c in self._needed(loop)} for loop in loops]
        for code in self._code.body.codes:
            costly = code.name in self._by_column and _COSTLY.search(code.text)
            size = (self._columns + 16) * code.dtype.itemsize
            if costly and sum(code.name in names for names in read) > 1 and size <= room:
                names.add(code.name)
                room -= size
        return names

    # -- the text

    def _text(self) -> str:
        of = self._code
        types = [i.type for i in of.inputs]
        lines = [f"const {t}* p{k} = (const {t}*)p[{k}];" for k, t in enumerate(types)]
        for k, (_, v) in enumerate(of.results):
            t = type_name(v.dtype)
            lines.append(f"{t}* o{k} = ({t}*)p[{len(types) + k}];")
        for k, (code, step) in enumerate(of.sums):
            t = type_name(code.dtype)
            lines.append(f"{t}* s{k} = ({t}*)(part + {self._places[k]});")
            if self._is_wide(step):
                lines.append(f"for (long j = 0; j < {self._columns}; ++j) s{k}[j] = 0;")
            else:
                lines.append(f"V<{t}, N> z{k} = ({t})0;")
        sizes = [v.dtype.itemsize for v in (*self.inputs, *self.outs)]
        sizes += [c.dtype.itemsize for c in of.body.codes]
        body = self._one_row() if self._long else self._each_row()
        ends = [
            f"s{k}[0] = over_lanes(Sum(), z{k})[0];"
            for k, (_, step) in enumerate(of.sums)
            if not self._is_wide(step)
        ]
        head = 'extern "C" void NAME(char** p, long from, long to, char* part) {'
        return "\n".join([head, lanes(sizes), *lines, *body, *ends, "}", self._ending()])

    def _is_wide(self, step: Step) -> bool:
        """Whether a sum has a result for each column."""
        return reduction(step) == "column" and not self._long

    def _one_row(self) -> list[str]:
        """A loop over strips of the elements."""
        of, columns = self._code, self._columns
        lines = [f"const {vector(i.type)} x{i.k} = p{i.k}[0];" for i in self._row_inputs()]
        strip = [
            f"V<{type_name(c.dtype)}, N> y{k} = ({type_name(c.dtype)})0;"
            for k, (c, _) in enumerate(of.sums)
        ]
        (loop,) = self._loops()
        lines += declared(c for c in self._needed(loop) if c.name not in self._by_column)
        inner = [c for c in self._needed(loop) if c.name in self._by_column]
        inside = self._written() + self._summed()
        if not of.sums:
            return [*lines, self._loop("from", "to", columns, declared(inner), inside)]
        return [
            *lines,
            f"for (long start = from; start < to; start += {STRIP}) {{",
            f"const long stop = start + {STRIP} < to ? start + {STRIP} : to;",
            *strip,
            self._loop("start", "stop", columns, declared(inner), inside),
            *(f"z{k} += y{k};" for k in range(len(of.sums))),
            "}",
        ]

    def _each_row(self) -> list[str]:
        of, columns = self._code, self._columns
        types = {c.name: type_name(c.dtype) for c in of.body.codes}
        lines = [
            f"alignas(64) {types[name]} b_{name}[{columns + 16}];" for name in sorted(self._buffers)
        ]
        lines.append("for (long row = from; row < to; ++row) {")
        lines += [f"const {vector(i.type)} x{i.k} = p{i.k}[{i.row}];" for i in self._row_inputs()]
        known: set[str] = set()  # values of the row
        kept: set[str] = set()  # values in buffers
        stages = sorted({r.stage for r in of.body.reductions})
        for stage, loop in zip(stages, self._loops(), strict=False):
            some = [r for r in of.body.reductions if r.stage == stage]
            lines += self._reduce(some, loop, known, kept)
        narrow = [(k, c) for k, (c, s) in enumerate(of.sums) if not self._is_wide(s)]
        lines += [f"V<{type_name(c.dtype)}, N> y{k} = ({type_name(c.dtype)})0;" for k, c in narrow]
        inside = self._written() + self._summed()
        if inside:
            lines += self._columns_loop(self._loops()[-1], inside, known, kept)
        lines += [f"z{k} += y{k};" for k, _ in narrow]
        per_row = [(k, c, v) for k, (c, v) in enumerate(of.results) if not of.is_full(v)]
        lines += self._of_row([c for _, c, _ in per_row], known)
        lines += [f"o{k}[row] = {stored(c, v.dtype)}[0];" for k, c, v in per_row]
        return [*lines, "}"]

    def _row_inputs(self) -> list[Input]:
        return [i for i in self._code.inputs if not self._reads_columns(i)]

    def _of_row(self, results: Iterable[Code], known: set[str]) -> list[str]:
        """Lines that compute values of the row."""
        new = [c for c in self._needed(results, known) if c.name not in self._by_column]
        known.update(c.name for c in new)
        return declared(new)

    def _columns_loop(
        self, results: Sequence[Code], inside: list[str], known: set[str], kept: set[str]
    ) -> list[str]:
        """Lines of a loop over the columns, after the values of the row that it reads."""
        stops = known | kept
        needed = self._needed(results, stops)
        lines = self._of_row((c for c in needed if c.name not in self._by_column), known)
        inner = [c for c in needed if c.name in self._by_column]
        direct = {c.name for code in inner for c in code.of} | {c.name for c in results}
        types = {c.name: type_name(c.dtype) for c in self._code.body.codes}
        text = [
            f"const {vector(types[name])} {name} = load<N, N>(b_{name} + j);"
            for name in sorted(kept & direct)
        ]
        for code in inner:
            text += declared([code])
            if code.name in self._buffers:
                text.append(f"store<N>(b_{code.name} + j, {code.name});")
                kept.add(code.name)
        return [*lines, self._loop("0", str(self._columns), self._columns, text, inside)]

    def _loop(self, start: str, stop: str, length: int, text: list[str], inside: list[str]) -> str:
        words = set(_WORD.findall(" ".join([*text, *inside])))
        loads = [
            f"const {vector(i.type)} x{i.k} = {self._loaded(i)};"
            for i in self._code.inputs
            if self._reads_columns(i) and f"x{i.k}" in words
        ]
        block = "\n".join(["", *loads, *text, *inside, ""])
        return (
            f"each_block<N, {length}>({start}, {stop}, "
            f"[&](long j, auto n) __attribute__((always_inline)) {{{block}}});"
        )

    def _loaded(self, i: Input) -> str:
        """The elements of an input in a block of columns."""
        if self._long and not self._is_whole(i):
            last, columns = self._columns - 1, self._code.columns
            return (
                f"each_lane<{i.type}, N>([&](long k) {{ const long e = j + k < {last} ? j + k : "
                f"{last}, row = e / {columns}; return p{i.k}[{i.row} + e % {columns} * {i.column}];"
                " })"
            )
        offset = "" if self._long or i.row == "0" else f"{i.row} + "
        return f"load<n.value, N>(p{i.k} + {offset}j)"

    def _reduce(
        self, some: Sequence[Reduction], loop: Sequence[Code], known: set[str], kept: set[str]
    ) -> list[str]:
        """Lines that reduce values along the row."""
        before, inside, after = [], [], []
        for r in some:
            t, name = type_name(r.of.dtype), r.code.text
            rest = {"max": f"-infinity<{t}>()", "min": f"infinity<{t}>()"}.get(r.kind, f"({t})0")
            functor = f"{r.kind.title()}()"
            before.append(f"V<{t}, N> all_{name} = {rest};")
            inside.append(
                f"all_{name}.of = {functor}(all_{name}.of, first<n.value>({r.of.name}, {rest}).of);"
            )
            after.append(f"const V<{t}, N> {name} = over_lanes({functor}, all_{name});")
        return [*before, *self._columns_loop(loop, inside, known, kept), *after]

    def _written(self) -> list[str]:
        of, row = self._code, "" if self._long else f"row * {self._columns} + "
        return [
            f"store<n.value>(o{k} + {row}j, {stored(code, v.dtype)});"
            for k, (code, v) in enumerate(of.results)
            if of.is_full(v)
        ]

    def _summed(self) -> list[str]:
        lines = []
        for k, (code, step) in enumerate(self._code.sums):
            t = type_name(code.dtype)
            if self._is_wide(step):
                sum_ = f"V<{t}, N>(load<n.value, N>(s{k} + j)) + {code.name}"
                lines.append(f"store<n.value>(s{k} + j, {sum_});")
            else:
                lines.append(f"y{k} += first<n.value>({code.name}, ({t})0);")
        return lines

    def _ending(self) -> str:
        """The function that adds up the sums of the ranges."""
        lines, first = [], len(self.inputs) + len(self._code.results)
        for k, (code, step) in enumerate(self._code.sums):
            t, out, width = type_name(code.dtype), type_name(step.outs[0].dtype), self._width(step)
            mean = f" / ({t}){count_of_mean(step)}" if step.op.reduces == "mean" else ""
            lines.append(
                f"for (long j = 0; j < {width}; ++j) {{\n{t} sum = 0;\n"
                f"for (long r = 0; r < ranges; ++r) "
                f"sum += (({t}*)(part + r * {self.partial} + {self._places[k]}))[j];\n"
                f"(({out}*)p[{first + k}])[j] = ({out})(sum{mean});\n}}"
            )
        if not lines:
            return ""
        head = 'extern "C" void NAME_end(char** p, char* part, long ranges) {'
        return "\n".join([head, *lines, "}"])
