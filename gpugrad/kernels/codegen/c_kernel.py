"""A `Kernel` as a C++ function of vectors, for a range of its rows.

Without reductions along rows, and if every array has all elements or one, or rows are short, the
elements are one long row, and the range is one of elements. For ``tanh(x * y)`` with 1000 elements
the text is::

    extern "C" void k0(char** p, long from, long to, char* part) {
      constexpr int N = LANES<4>;
      const float* p0 = (const float*)p[0];
      const float* p1 = (const float*)p[1];
      float* o0 = (float*)p[2];
      each_block<N, -1>(from, to, [&](long j, auto n) __attribute__((always_inline)) {
        const V<float, N> x0 = load<N>(p0 + j, n);
        ...
        const V<float, N> v3 = tanh(v2);
        store(o0 + j, v3, n);
      });
    }

Otherwise there is a loop over rows. Each stage of reductions is a loop over the columns; a later
loop reads values that are costly, such as exp, from a buffer of one row. Sums over rows go to
`part`, one for each range, and a second function adds up the parts in order. The ranges depend on
the shape alone, so results do not depend on the number of threads.

The text holds few sizes, so that a batch of another length has the kernels of the one before. The
number of rows is an argument. So is the length of a row if it is long, or that of a batch; else the
compiler should know it. Of one long row, the text says whether whole vectors always fill it. Other
sizes, such as the number of terms of a mean, are in an array behind all others.

The kernel of an eager op goes over arrays of any length: it has no columns of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from gpugrad.kernels.codegen import one_element
from gpugrad.kernels.codegen.code import Code, NoCodeError, Reduction
from gpugrad.kernels.codegen.cpp import CPP, HEAD, is_costly, lanes, stored, type_of
from gpugrad.kernels.codegen.kernel import Input, Kernel, Result
from gpugrad.kernels.codegen.short_rows import columns_of, has_short_rows, over_rows
from gpugrad.kernels.codegen.sizes import Sizes, is_share

RANGE = 16_384
"""Elements of a range, at least: less is not worth another thread."""

RANGES = 16
"""Ranges at most."""

MOST_LANES = 16
"""Elements of a vector, at most: a shorter row takes as long as one."""

WIDE = 512
"""Columns of a row from which their number is an argument: loops are then long enough."""

SHORT = 6
"""Columns of a row, at least, for functions such as exp: with fewer, a vector of elements of
several rows takes less time, although it is read one by one."""

FEW = 12
"""Values of a loop, at most, that are summed in four parts: it is written four times."""

STRIP = 4096
"""Elements that one sum adds up, before it is added to the sum of a range."""

BUFFERS = 1 << 17
"""Bytes of row buffers at most, on the stack."""


class CKernel:
    """The text of a kernel.

    Args:
        kernel: the kernel. Columns of its inputs are contiguous.
        in_loop: whether it is called for the small arrays of a loop's body: the compiler then knows
            how many elements follow after whole vectors.
        batches: lengths of batches, as far as that is known.
        any_length: whether it computes one row of any length, by addresses that move.

    Attributes:
        text: the function, whose name is NAME, and for sums a second one, NAME_end.
        inputs: the arrays that it reads, in order.
        outs: the arrays that it writes, in order.
        n: the number of rows, or of elements if they are one long row.
        grain: how many of them a range has.
        partial: the bytes of a range's sums.

    Raises:
        NoCodeError: a step cannot be written.
    """

    def __init__(
        self,
        kernel: Kernel,
        in_loop: bool = False,
        batches: Collection[int] = (),
        any_length: bool = False,
    ) -> None:
        self._in_loop, self._any_length, self._sizes = in_loop, any_length, Sizes()
        self._code = code = kernel
        self._rows, self._columns = code.rows, code.columns
        self.inputs = [i.value for i in code.inputs]
        self.outs = [r.value for r in (*code.results, *code.sums)]
        self._check()
        self._long = self._is_one_row()
        if not self._long and has_short_rows(kernel):
            self._code, self._long = over_rows(kernel, columns_of(kernel)), True
            code = self._code
        if self._long:
            self._rows, self._columns = 1, code.rows * code.columns
        self.n = self._columns if self._long else self._rows
        ranges = max(1, min(RANGES, self._rows * max(self._columns, MOST_LANES) // RANGE))
        self.grain = -(-self.n // ranges)
        if self._long:
            self.grain = -(-self.grain // STRIP) * STRIP
        self._varies = code.columns in batches and code.columns >= MOST_LANES
        # the text does not hold the number of columns
        self._is_free = not self._long and (self._varies or self._columns >= WIDE)
        self._width = (
            self._sizes.whole("columns", self._columns) if self._is_free else str(self._columns)
        )
        self._places, self.partial = self._parts()
        self._by_column = self._depending_on_columns()
        self._buffers = self._buffered()
        self.of_numbers = one_element.is_one(code)
        self.text = one_element.text(code) if self.of_numbers else self._text()

    @property
    def sizes(self) -> list[int]:
        """Whole numbers that it reads from one more array."""
        return self._sizes.values

    @property
    def scratch(self) -> int:
        """The bytes of the sums of all ranges."""
        return self.partial * -(-self.n // self.grain)

    def reads_in_order(self, values: Iterable[Any]) -> bool:
        """Whether each element of these inputs is read for the element of that place alone."""
        ids = set(map(id, values))
        inputs = [i for i in self._code.inputs if id(i.value) in ids]
        return all(i.part is None and self._is_whole(i) and self._reads_columns(i) for i in inputs)

    def writes_in_order(self, v: Any) -> bool:
        """Whether a result has an element for each element of the kernel, in order."""
        return any(v is r.value and r.step == 1 for r in self._code.full)

    def _check(self) -> None:
        """Raise NoCodeError for what vectors cannot do."""
        of = self._code
        if not self._rows * self._columns and not self._any_length:
            raise NoCodeError("no elements")
        if any(i.column not in (0, 1) for i in of.inputs):
            raise NoCodeError("columns that are not contiguous")
        for v in (*self.inputs, *self.outs):
            type_of(v.dtype)

    def _is_one_row(self) -> bool:
        of = self._code
        costly = any(map(is_costly, of.body.codes))
        return (
            not of.body.reductions
            and ((costly and self._columns < SHORT) or all(map(self._is_whole, of.inputs)))
            and not of.by_row
            and (self._columns == 1 or not any(s.by_column for s in of.sums))
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
        for s in self._code.sums:
            places.append(at)
            at += -(-self._code.width(s) * s.code.dtype.itemsize // 64) * 64
        return places, at

    def _line(self, code: Code) -> str:
        """The line that computes a value; a number that may differ from batch to batch is read."""
        is_float = code.op == "literal" and code.dtype.kind == "f"
        if is_float and is_share(code.value) and not self._any_length:
            number = self._sizes.number(code.name, code.value)
            return f"const {CPP.type(code.dtype)} {code.name} = ({type_of(code.dtype)}){number};"
        return CPP.line(code)

    def _length(self) -> str:
        """The length of a row as `each_block` must know it."""
        of, n = self._code, self._columns
        if self._long and (self._in_loop or n < MOST_LANES):
            return str(n % MOST_LANES)
        if self._long or self._is_free:
            is_whole = of.columns % MOST_LANES == 0 and not self._varies
            return "0" if is_whole and (of.rows > 1 or self._is_free) else "-1"
        return str(n)

    # -- which loop computes a value

    def _depending_on_columns(self) -> set[Code]:
        """The values that differ within a row."""
        inputs = {i.name for i in self._code.inputs if self._reads_columns(i)}
        values: set[Code] = set()
        for code in self._code.body.codes:
            if (code.is_input and code.value in inputs) or not values.isdisjoint(code.args):
                values.add(code)
        return values

    def _reads_columns(self, i: Input) -> bool:
        return bool(i.column) or (self._long and i.row != "0")

    def _loops(self) -> list[list[Code]]:
        """The results of each loop over columns."""
        of = self._code
        loops = [[r.of for r in stage] for stage in of.stages]
        return [*loops, [r.code for r in (*of.full, *of.sums)]]

    def _buffered(self) -> set[Code]:
        """The costly values that several loops read."""
        if self._long:
            return set()
        values, room = set[Code](), BUFFERS
        read = [{*self._code.body.needed(loop)} for loop in self._loops()]
        for code in self._code.body.codes:
            costly = code in self._by_column and is_costly(code)
            size = (self._columns + 16) * code.dtype.itemsize
            if costly and sum(code in needed for needed in read) > 1 and size <= room:
                values.add(code)
                room -= size
        return values

    # -- the text

    def _text(self) -> str:
        of = self._code
        types = [type_of(v.dtype) for v in self.inputs]
        lines = [f"const {t}* p{k} = (const {t}*)p[{k}];" for k, t in enumerate(types)]
        for k, v in enumerate(self.outs[: len(self.outs) - len(of.sums)]):
            t = type_of(v.dtype)
            lines.append(f"{t}* o{k} = ({t}*)p[{len(types) + k}];")
        for s in of.sums:
            t = type_of(s.code.dtype)
            lines.append(f"{t}* s{s.k} = ({t}*)(part + {self._place(s)});")
            if self._is_wide(s):
                lines.append(f"for (long j = 0; j < {self._width}; ++j) s{s.k}[j] = 0;")
            else:
                lines.append(f"V<{t}, N> z{s.k} = ({t})0;")
        sizes = [v.dtype.itemsize for v in (*self.inputs, *self.outs)]
        if not self._any_length:
            sizes += [c.dtype.itemsize for c in of.body.codes]
        narrow = [s.k for s in of.sums if not self._is_wide(s)]
        ends = [f"s{k}[0] = over_lanes(Sum(), z{k})[0];" for k in narrow]
        body, ending = self._body(), self._ending()
        inside = [*self._sizes.lines(len(self.inputs) + len(self.outs)), *lines, *body, *ends, "}"]
        return "\n".join([HEAD, lanes(sizes), *inside, ending])

    def _place(self, s: Result) -> str:
        """Where a sum of a range begins, as text."""
        at = self._places[s.k]
        return self._sizes.whole(f"place {s.k}", at) if self._is_free and at else str(at)

    def _is_wide(self, s: Result) -> bool:
        """Whether a sum has a result for each column."""
        return s.by_column and not self._long

    def _body(self) -> list[str]:
        """The loop over rows, or over strips of one long row, with the loops over their columns."""
        of, lines, start, stop = self._code, list[str](), "0", self._width
        if not self._long:
            n = self._columns + MOST_LANES
            room = 1 << n.bit_length() if self._is_free else n
            for c in sorted(self._buffers, key=_name):
                lines.append(f"alignas(64) {type_of(c.dtype)} b_{c.name}[{room}];")
            lines.append("for (long row = from; row < to; ++row) {")
        lines += [
            f"const {CPP.type(i.dtype)} {i.name} = "
            f"{i.pointer}[{'0' if self._long else self._row(i)}];"
            for i in of.inputs
            if not self._reads_columns(i)
        ]
        known: set[Code] = set()  # values of the row
        kept: set[Code] = set()  # values in buffers
        if self._long:
            start, stop = "from", "to"
            lines += self._of_row(self._loops()[-1], known)
            if of.sums:
                lines.append(f"for (long start = from; start < to; start += {STRIP}) {{")
                lines.append(f"const long stop = start + {STRIP} < to ? start + {STRIP} : to;")
                start, stop = "start", "stop"
        for stage in of.stages:
            lines += self._reduce(stage, known, kept)
        narrow = [s for s in of.sums if not self._is_wide(s)]
        lines += [
            f"V<{type_of(s.code.dtype)}, N> y{s.k} = ({type_of(s.code.dtype)})0;" for s in narrow
        ]
        inside = self._written() + self._summed()
        if inside:
            lines += self._loop(start, stop, self._loops()[-1], inside, known, kept)
        lines += [f"z{s.k} += y{s.k};" for s in narrow]
        lines += self._of_row([r.code for r in of.by_row], known)
        lines += [f"o{r.k}[row] = {stored(r.code, r.value.dtype)}[0];" for r in of.by_row]
        return [*lines, "}"] if of.sums or not self._long else lines

    def _of_row(self, results: Iterable[Code], known: set[Code]) -> list[str]:
        """Lines that compute values of the row."""
        new = [c for c in self._code.body.needed(results, known) if c not in self._by_column]
        known.update(new)
        return [*map(self._line, new)]

    def _loop(
        self,
        start: str,
        stop: str,
        results: Sequence[Code],
        inside: Sequence[str],
        known: set[Code],
        kept: set[Code],
        in_four: bool = False,
    ) -> list[str]:
        """Lines of a loop over columns, after the values of the row that it reads."""
        needed = self._code.body.needed(results, known | kept)
        before = self._of_row((c for c in needed if c not in self._by_column), known)
        codes = [c for c in needed if c in self._by_column]
        direct = {c for code in codes for c in code.args} | set(results)
        read = [i for i in self._code.read_by(codes) if self._reads_columns(i)]
        lines = [f"const {CPP.type(i.dtype)} {i.name} = {self._loaded(i)};" for i in read]
        lines += [
            f"const {CPP.type(c.dtype)} {c.name} = load<N, N>(b_{c.name} + j);"
            for c in sorted(kept & direct, key=_name)
        ]
        kept.update(self._buffers.intersection(codes))
        for code in codes:
            lines.append(self._line(code))
            if code in self._buffers:
                lines.append(f"store<N>(b_{code.name} + j, {code.name});")
        block = "\n".join(["", *lines, *inside, ""])
        call, params, rest = f"each_block<N, {self._length()}>", "long j, auto n", ""
        if in_four:
            call, params = call.replace("block", "block_of_four"), f"{params}, int k"
        if self._any_length:
            arrays = [(f"{type_of(r.value.dtype)}*", f"o{r.k}") for r in self._code.results]
            arrays += [(f"const {type_of(i.dtype)}*", f"p{i.k}") for i in read]
            call, params = "each_vector<N>", ", ".join(f"{t} {name}" for t, name in arrays)
            rest = "".join(f", {name}" for _, name in arrays)
        head = f"{call}({start}, {stop}, [&]({params}) __attribute__((always_inline))"
        return [*before, f"{head} {{{block}}}{rest});"]

    def _loaded(self, i: Input) -> str:
        """The elements of an input in a block of columns."""
        if self._any_length:
            return f"load<N, N>(p{i.k})"
        if self._long and not self._is_whole(i):
            last, columns = self._sizes.whole("last", self._columns - 1), self._code.columns
            t = type_of(i.dtype)
            return (
                f"each_lane<{t}, N>([&](long k) {{ const long e = j + k < {last} ? j + k : "
                f"{last}, row = e / {columns}; "
                f"return {i.pointer}[{i.row} + e % {columns} * {i.column}]; }})"
            )
        offset = "" if self._long or i.row == "0" else f"{self._row(i)} + "
        return f"load<N>({i.pointer} + {offset}j, n)"

    def _row(self, i: Input) -> str:
        """The offset of a row of an input."""
        return f"row * {self._width}" if i.row == f"row * {self._columns}" else i.row

    def _reduce(self, some: Sequence[Reduction], known: set[Code], kept: set[Code]) -> list[str]:
        """Lines that reduce values along the row."""
        before, inside, after = [], [], []
        stop, values = self._width, [r.of for r in some]
        in_four = self._waits(values, known | kept)
        for r in some:
            t, name, functor = type_of(r.of.dtype), r.code.value, f"{r.functor}()"
            rest, total = r.neutral(t), f"all_{r.code.value}"
            four = f"[4] = {{{', '.join([rest] * 4)}}}" if in_four else f" = {rest}"
            before.append(f"V<{t}, N> {total}{four};")
            after.append(f"const V<{t}, N> {name} = over_lanes({functor}, {total});")
            total += "[k]" * in_four
            inside.append(f"{total}.of = {functor}({total}.of, first({r.of.name}, {rest}, n).of);")
        loop = self._loop("0", stop, values, inside, known, kept, in_four)
        return [*before, *loop, *after]

    def _waits(self, results: Iterable[Code], known: set[Code]) -> bool:
        """Whether a loop of long rows computes little, so that a sum waits for the one before."""
        codes = [c for c in self._code.body.needed(results, known) if c in self._by_column]
        few = len(codes) <= FEW and not any(map(is_costly, codes))
        return few and (self._varies or self._columns >= 4 * MOST_LANES)

    def _written(self) -> list[str]:
        if self._any_length:
            return [f"store<N>(o{r.k}, {r.code.name});" for r in self._code.results]
        row = "" if self._long else f"row * {self._width} + "
        return [
            f"store(o{r.k} + {row}j, {stored(r.code, r.value.dtype)}, n);"
            if r.step == 1
            else f"store_apart<{r.step}>(o{r.k} + {r.at}, j, {stored(r.code, r.value.dtype)}, n);"
            for r in self._code.full
        ]

    def _summed(self) -> list[str]:
        lines = []
        for s in self._code.sums:
            k, t, name = s.k, type_of(s.code.dtype), s.code.name
            if self._is_wide(s):
                sum_ = f"V<{t}, N>(load<N>(s{k} + j, n)) + {name}"
                lines.append(f"store(s{k} + j, {sum_}, n);")
            else:
                lines.append(f"y{k} += first({name}, ({t})0, n);")
        return lines

    def _ending(self) -> str:
        """The function that adds up the sums of the ranges."""
        lines, first = [], len(self.inputs) + len(self._code.results)
        for s in self._code.sums:
            t, out = type_of(s.code.dtype), type_of(s.value.dtype)
            mean = f" / ({t}){self._sizes.whole(f'count {s.k}', s.count)}" if s.count else ""
            width = self._width if s.by_column and self._is_free else self._code.width(s)
            apart = self._sizes.whole("apart", self.partial) if self._is_free else self.partial
            lines.append(
                f"for (long j = 0; j < {width}; ++j) {{\n{t} sum = 0;\n"
                f"for (long r = 0; r < ranges; ++r) "
                f"sum += (({t}*)(part + r * {apart} + {self._place(s)}))[j];\n"
                f"(({out}*)p[{first + s.k}])[j] = ({out})(sum{mean});\n}}"
            )
        if not lines:
            return ""
        head = 'extern "C" void NAME_end(char** p, char* part, long ranges) {'
        return "\n".join([head, *self._sizes.lines(len(self.inputs) + len(self.outs)), *lines, "}"])


def _name(code: Code) -> str:
    return code.name
