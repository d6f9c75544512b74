"""Writes an update rule as NumPy calls: see `gpugrad.optim.rules`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.function.cpu.source import compile_function
from gpugrad.kernels.cpu.steps import Call, StepLoop
from gpugrad.optim.nodes import ONE, Node, Scalar, reachable, root_of, scalar

_SMALLEST_SCALE = 2.0**-10
_UFUNCS = "absolute add divide maximum multiply positive reciprocal sign sqrt square"
_SCOPE = {name: getattr(np, name) for name in _UFUNCS.split()}
_WITH_NUMBER = {"shift": "add", "at_least": "maximum"}


class Passes(NamedTuple):
    """A rule as NumPy calls.

    Attributes:
        text: the source of `begin`.
        scratch: the number of scratch arrays of a block.
        decays: for each average, whether it has a scale; others must be passed without.
        loop: the same calls as one loop in C.
    """

    text: str
    scratch: int
    decays: tuple[bool, ...]
    loop: StepLoop

    def begin(self, settings: Sequence[float], scales: Sequence[float]) -> Any:
        """The function that updates a block, the new scales of the averages, and its numbers.

        It takes flat arrays (p, g, averages, and a sequence of scratch arrays). `loop` takes the
        numbers.
        """
        return _compiled(self.text)(settings, scales)


@functools.lru_cache(maxsize=512)
def _compiled(text: str) -> Callable[..., Any]:
    return compile_function(text, "begin", _SCOPE, "update rule")


def _listed(names: Iterable[str]) -> str:
    return "".join(f"{name}, " for name in names).rstrip()


def _numpy_lines(call: Call) -> list[str]:
    """A call in NumPy; one that scales an array in place is skipped if the number is 1."""
    out = f"out={call.out}" if call.ufunc == "maximum" else call.out  # NumPy 2.4 insists on it
    line = f"{call.ufunc}({', '.join(call.operands)}, {out})"
    if call.ufunc == "multiply" and call.operands[0] == call.out and call.operands[1][0] in "fk":
        return [f"if {call.operands[1]} != 1.0:", f"    {line}"]
    return [line]


class Writer:
    """Writes the passes of a rule.

    A value is an array in a register times a factor. The registers ``p``, ``m0``... are those
    arrays themselves, and ``t0``... are scratch.
    """

    def __init__(
        self, nodes: list[Node], raw: list[Node], results: list[Node], settings: Sequence[str]
    ) -> None:
        self._raw, self._settings = raw, settings
        homes = [raw[0].name, *(r.name for r in raw[2:])]
        self._homes = dict(zip(homes, results, strict=True))
        self._at = {n: i for i, n in enumerate(nodes)}
        self._needed = reachable(results)
        self._last: dict[Node, int] = {}  # by value: the last node that reads it
        for node in nodes:
            if node in self._needed and node.op != "scale":
                for arg in node.args:
                    self._last[root_of(arg)] = self._at[node]
        for result in results:
            self._last[root_of(result)] = len(nodes)
        self._nodes = nodes
        self._register: dict[Node, str] = {r: r.name for r in raw}
        self._holds: dict[str, Node | None] = {r.name: r for r in raw}
        self._factor: dict[Node, Scalar] = dict.fromkeys(raw, ONE)
        self._decays = self._find_decays()
        self._prelude: list[str] = []
        self._calls: list[Call] = []
        self._numbers: dict[str, str] = {}

    def _find_decays(self) -> dict[str, Node]:
        """By home: the node ``s.decay * slot`` that is added to, in place, for the new slot.

        Every other read of the slot must come before that.
        """
        decays = {}
        for raw in self._raw[2:]:
            result = self._homes[raw.name]
            if result.op not in ("add", "maximum"):
                continue
            for arg in result.args:
                if arg.op == "scale" and arg.args[0] is raw:
                    readers = [n for n in self._needed if raw in map(root_of, n.args)]
                    others = [n for n in readers if n.op != "scale" and n is not result]
                    if all(self._at[n] < self._at[result] for n in others):
                        decays[raw.name] = arg
        return decays

    def write(self) -> Passes:
        """The text of the passes."""
        slots = [r.name for r in self._raw[2:]]
        for i, name in enumerate(slots):
            if name in self._decays:
                self._factor[self._raw[2 + i]] = Scalar(f"c{i}", safe=True)
                self._prelude += [
                    f"d{i} = c{i} * {scalar(self._decays[name].by).text}",
                    f"f{i} = 1.0",
                    f"if d{i} < {_SMALLEST_SCALE!r}:",
                    f"    f{i}, d{i} = d{i}, 1.0",
                ]
        for node in self._nodes:
            if node in self._needed and node.op not in ("scale", "input"):
                self._emit(node)
        scales = [self._finish(home) for home in self._homes][1:]
        scratch = sorted((r for r in self._holds if r[0] == "t"), key=lambda r: int(r[1:]))
        arrays, numbers = [r.name for r in self._raw], self._number_names()
        loop = StepLoop(self._calls, arrays, scratch, numbers)
        lines = [
            "def begin(settings, scales):",
            f"    ({_listed(f's_{name}' for name in self._settings)}) = settings",
            f"    ({_listed(f'c{i}' for i in range(len(slots)))}) = scales",
            *(f"    {line}" for line in self._prelude),
            f"    def step({', '.join(arrays)}, t):",
            f"        ({_listed(scratch)}) = t",
            *(f"        {line}" for call in self._calls for line in _numpy_lines(call)),
            f"    return step, ({_listed(scales)}), ({_listed(numbers)})",
        ]
        decays = tuple(scale != "1.0" for scale in scales)
        return Passes("\n".join(lines) + "\n", len(scratch), decays, loop)

    def _number_names(self) -> list[str]:
        """The names of the numbers that the calls read."""
        return [*(f"f{home[1:]}" for home in self._decays), *self._numbers.values()]

    # -- values

    def _value(self, node: Node) -> tuple[str, Scalar]:
        """The register and the factor of a value."""
        if node.op != "scale":
            return self._register[node], self._factor[node]
        for name, decay in self._decays.items():
            if node is decay:
                return name, Scalar(f"d{name[1:]}", safe=True)
        register, factor = self._value(node.args[0])
        return register, factor * node.by

    def _number(self, scalar: Scalar) -> str:
        """The name of a scalar, computed once per step."""
        if scalar.text not in self._numbers:
            self._numbers[scalar.text] = name = f"k{len(self._numbers)}"
            self._prelude.append(f"{name} = {scalar.text}")
        return self._numbers[scalar.text]

    def _free(self, register: str, at: int) -> bool:
        """Whether nothing reads the register's value after node number `at`."""
        held = self._holds.get(register)
        return held is None or self._last.get(held, -1) <= at

    def _scratch(self, at: int, besides: Sequence[str] = ()) -> str:
        """A scratch register that is free at a node, before it."""
        for register, held in self._holds.items():
            free = held is None or self._last.get(held, -1) < at
            if register[0] == "t" and free and register not in besides:
                return register
        register = f"t{sum(r[0] == 't' for r in self._holds)}"
        self._holds[register] = None
        return register

    def _place(self, node: Node, operands: Sequence[str]) -> str:
        """The register that a node writes to: its home, that of an operand, or a new one."""
        at = self._at[node]
        for home, result in self._homes.items():
            if root_of(result) is node and self._free(home, at):
                return home
        for register in operands:
            if register[0] == "t" and self._free(register, at):
                return register
        return self._scratch(at, operands)

    def _plain(self, node: Node, arg: Node, besides: Sequence[str] = ()) -> str:
        """The register of an operand whose factor is multiplied out."""
        register, factor = self._value(arg)
        if factor.text == "1.0":
            return register
        at, k = self._at[node], self._number(factor)
        if register != "g" and register not in besides and self._free(register, at):
            self._calls.append(Call("multiply", (register, k), register))
            return register
        to = self._scratch(at, (register, *besides))
        self._holds[to] = node  # only this node reads it
        self._calls.append(Call("multiply", (register, k), to))
        return to

    # -- operations

    def _emit(self, node: Node) -> None:
        if node.op in ("add", "maximum"):
            register, factor = self._emit_sum(node)
        elif node.op in _WITH_NUMBER:
            register, factor = self._emit_shift(node)
        elif node.op in ("multiply", "divide"):
            register, factor = self._emit_product(node)
        else:
            register, factor = self._emit_function(node)
        self._register[node], self._factor[node] = register, factor
        self._holds[register] = node

    def _emit_sum(self, node: Node) -> tuple[str, Scalar]:
        base, other = node.args
        for home, decay in self._decays.items():
            if decay in node.args and self._homes[home] is node:
                base, other = decay, node.args[node.args[0] is decay]
                self._calls.append(Call("multiply", (home, f"f{home[1:]}"), home))
        (b, fb), (o, fo) = self._value(base), self._value(other)
        if not fb.safe and fo.safe:
            (base, b, fb), (other, o, fo) = (other, o, fo), (base, b, fb)
        if not fb.safe:
            b, fb = self._plain(node, base, (o,)), ONE
        if node.op == "maximum" and not fo.safe:
            o, fo = self._plain(node, other, (b,)), ONE
            b, fb = self._plain(node, base, (o,)) if fb.text != "1.0" else b, ONE
        to, ratio = self._place(node, (b, o)), fo / fb
        if ratio.text != "1.0":
            at, k = self._at[node], self._number(ratio)
            own = o[0] == "t" and self._free(o, at) and o != b
            fits = to[0] == "t" and to != b
            scaled = o if own else to if fits else self._scratch(at, (b, o))
            self._calls.append(Call("multiply", (o, k), scaled))
            o = scaled
        self._calls.append(Call(node.op, (b, o), to))
        return to, fb

    def _emit_shift(self, node: Node) -> tuple[str, Scalar]:
        (arg,) = node.args
        register, factor = self._value(arg)
        if not factor.safe:
            register, factor = self._plain(node, arg), ONE
        to = self._place(node, (register,))
        k = self._number(node.by / factor)
        self._calls.append(Call(_WITH_NUMBER[node.op], (register, k), to))
        return to, factor

    def _emit_product(self, node: Node) -> tuple[str, Scalar]:
        x, y = node.args
        (a, fa), (b, fb) = self._value(x), self._value(y)
        if node.op == "divide" and not fb.safe:
            b, fb = self._plain(node, y, (a,)), ONE
        to = self._place(node, (b, a))
        self._calls.append(Call(node.op, (a, b), to))
        return to, fa / fb if node.op == "divide" else fa * fb

    def _emit_function(self, node: Node) -> tuple[str, Scalar]:
        (arg,) = node.args
        register, factor = self._value(arg)
        if node.op != "square" and not factor.safe:
            register, factor = self._plain(node, arg), ONE
        to = self._place(node, (register,))
        self._calls.append(Call(node.op, (register,), to))
        if factor.text == "1.0" or node.op == "sign":
            return to, ONE
        if node.op == "square":
            return to, factor.to("2")
        if node.op == "sqrt":
            return to, factor.to("0.5")
        return to, ONE / factor if node.op == "reciprocal" else factor

    def _finish(self, home: str) -> str:
        """Bring a result home, and return the scale of the average."""
        result = self._homes[home]
        register, factor = self._value(result)
        if home in self._decays and register == home and factor.text == f"d{home[1:]}":
            return factor.text
        if factor.text != "1.0":
            self._calls.append(Call("multiply", (register, self._number(factor)), home))
        elif register != home:
            self._calls.append(Call("positive", (register,), home))
        return "1.0"
