"""Update rules: one formula per optimizer, read as passes over memory here and as CUDA on a GPU.

A rule is a function ``formula(xp, s, p, g, *slots)`` of one element of a Variable, its gradient,
its averages, and the settings `s` of the step. It returns the new ``(p, *slots)``. SGD with
momentum is::

    def formula(xp, s, p, g, velocity):
        velocity = s.momentum * velocity + g
        return p - s.rate * velocity, velocity

`kernels.codegen.steps` reads it on elements that write CUDA. Here it is read on `_Node`s, which
write the fewest NumPy calls: scalars are not multiplied into arrays but carried along as a factor
until an addition needs it, and an average that decays keeps its factor for the next step. The text
of that example is::

    def begin(settings, scales):
        s_momentum, s_rate, = settings
        c0, = scales
        d0 = c0 * s_momentum
        f0 = None
        if d0 < 0.0009765625:
            f0, d0 = d0, 1.0
        k0 = 1.0 / d0
        k1 = d0 * s_rate * -1.0
        def step(p, g, m0, t):
            (t0,) = t
            if f0 is not None:
                multiply(m0, f0, m0)
            multiply(g, k0, t0)
            add(m0, t0, out=m0)
            multiply(m0, k1, t0)
            add(p, t0, out=p)
        return step, (d0,)

The average is the array times its scale ``d0``. So a decay passes over no memory. The array is
multiplied out when the scale gets small, every 66 steps for a decay of 0.9. Fading values then
become 0. Multiplied by 0.9 at every step they would end at the smallest subnormal number and stay
there, and a pass over subnormals takes 45 times as long.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.function.cpu.source import compile_function
from gpugrad.kernels.codegen.steps import StepKernel

__all__ = ["Formula", "Passes", "Rule"]

Formula = Callable[..., Sequence[Any]]
"""``formula(xp, s, p, g, *slots)``, which returns the new ``(p, *slots)``."""

_SMALLEST_SCALE = 2.0**-10

_UFUNCS = "absolute add divide maximum multiply reciprocal sign sqrt square"
_SCOPE = {name: getattr(np, name) for name in _UFUNCS.split()}
_WITH_NUMBER = {"shift": "add", "at_least": "maximum"}


class Rule:
    """An update rule, compiled when first needed: for the CPU, and for GPUs.

    Args:
        name: the name of its kernels.
        formula: ``formula(xp, s, p, g, *slots)``, which returns the new ``(p, *slots)``.
        settings: the names of the numbers in `s`.
        n_slots: the number of averages.

    Attributes:
        kernel: its kernels.
    """

    def __init__(self, name: str, formula: Formula, settings: Sequence[str], n_slots: int) -> None:
        self._formula, self._settings, self._n_slots = formula, tuple(settings), n_slots
        self.kernel = StepKernel(name, formula, settings, n_slots)

    @functools.cached_property
    def passes(self) -> Passes:
        """The function of the module's docstring."""
        nodes: list[_Node] = []
        names = ["p", "g", *(f"m{i}" for i in range(self._n_slots))]
        raw = [_Node(nodes, "input", name=name) for name in names]
        results = list(self._formula(XP, _Settings(self._settings), *raw))
        return _Writer(nodes, raw, results, self._settings).write()


class Passes(NamedTuple):
    """A rule as NumPy calls.

    Attributes:
        text: the source of `begin`.
        scratch: the number of scratch arrays of a block.
        decays: for each average, whether it has a scale; others must be passed without.
    """

    text: str
    scratch: int
    decays: tuple[bool, ...]

    def begin(self, settings: Sequence[float], scales: Sequence[float]) -> Any:
        """The function that updates a block, and the new scales of the averages.

        It takes flat arrays (p, g, averages, and a sequence of scratch arrays).
        """
        return _compiled(self.text)(settings, scales)


@functools.lru_cache(maxsize=512)
def _compiled(text: str) -> Callable[..., Any]:
    return compile_function(text, "begin", _SCOPE, "update rule")


class _Scalar:
    """A number of a step: its expression in the settings; `safe` if it is never 0 or negative."""

    __slots__ = ("safe", "text")

    def __init__(self, text: str, safe: bool = False) -> None:
        self.text, self.safe = text, safe

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, _Node):
            return NotImplemented
        other = _scalar(other)
        if "1.0" in (self.text, other.text):
            return other if self.text == "1.0" else self
        return _Scalar(f"{self.text} * {other.text}", self.safe and other.safe)

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, _Node):
            return NotImplemented
        other = _scalar(other)
        if other.text == "1.0":
            return self
        of = f"({other.text})" if " " in other.text else other.text
        return _Scalar(f"{self.text} / {of}", self.safe and other.safe)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, _Node):
            return NotImplemented
        return _Scalar(f"({self.text} + {_scalar(other).text})")

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, _Node):
            return NotImplemented
        return _Scalar(f"({self.text} - {_scalar(other).text})")

    def __rmul__(self, other: float) -> _Scalar:
        return _scalar(other) * self

    def __rtruediv__(self, other: float) -> _Scalar:
        return _scalar(other) / self

    def __radd__(self, other: float) -> _Scalar:
        return _scalar(other) + self

    def __rsub__(self, other: float) -> _Scalar:
        return _scalar(other) - self

    def __neg__(self) -> _Scalar:
        return _scalar(-1.0) * self

    def to(self, power: str) -> _Scalar:
        """The power of the number."""
        base = self.text if self.text.isidentifier() else f"({self.text})"
        return _Scalar(f"{base}**{power}", self.safe)


def _scalar(value: Any) -> _Scalar:
    if isinstance(value, _Scalar):
        return value
    return _Scalar(repr(float(value)), float(value) > 0)


_ONE = _scalar(1.0)


class _Settings:
    """The settings of a step as attributes."""

    def __init__(self, names: Sequence[str]) -> None:
        self.__dict__.update({name: _Scalar(f"s_{name}") for name in names})


class _Node:
    """A value of the formula; each operation on it adds a node to the list."""

    __slots__ = ("args", "by", "name", "nodes", "op")
    __hash__ = object.__hash__

    def __init__(
        self, nodes: list[_Node], op: str, *args: _Node, by: Any = None, name: str = ""
    ) -> None:
        self.nodes, self.op, self.args, self.by, self.name = nodes, op, args, by, name
        nodes.append(self)

    def __add__(self, other: Any) -> _Node:
        if isinstance(other, _Node):
            return _Node(self.nodes, "add", self, other)
        return _Node(self.nodes, "shift", self, by=_scalar(other))

    def __sub__(self, other: Any) -> _Node:
        return self + -other

    def __rsub__(self, other: Any) -> _Node:
        return -self + other

    def __mul__(self, other: Any) -> _Node:
        if isinstance(other, _Node):
            return _Node(self.nodes, "multiply", self, other)
        return _Node(self.nodes, "scale", self, by=_scalar(other))

    def __truediv__(self, other: Any) -> _Node:
        if isinstance(other, _Node):
            return _Node(self.nodes, "divide", self, other)
        return _Node(self.nodes, "scale", self, by=_ONE / _scalar(other))

    def __rtruediv__(self, other: Any) -> _Node:
        return _Node(self.nodes, "reciprocal", self) * other

    def __neg__(self) -> _Node:
        return self * -1.0

    __radd__, __rmul__ = __add__, __mul__


class _Namespace:
    """The ``xp`` of a rule that is read on nodes."""

    def sqrt(self, x: _Node) -> _Node:
        """The square root."""
        return _Node(x.nodes, "sqrt", x)

    def square(self, x: _Node) -> _Node:
        """The square."""
        return _Node(x.nodes, "square", x)

    def absolute(self, x: _Node) -> _Node:
        """The absolute value."""
        return _Node(x.nodes, "absolute", x)

    def sign(self, x: _Node) -> _Node:
        """-1, 0 or 1."""
        return _Node(x.nodes, "sign", x)

    def maximum(self, x: _Node, y: _Node | float) -> _Node:
        """The larger one."""
        if isinstance(y, _Node):
            return _Node(x.nodes, "maximum", x, y)
        return _Node(x.nodes, "at_least", x, by=_scalar(y))


XP = _Namespace()


class _Writer:
    """Writes the passes of a rule.

    A value is an array in a register times a factor. The registers ``p``, ``m0``... are those
    arrays themselves, and ``t0``... are scratch.
    """

    def __init__(
        self, nodes: list[_Node], raw: list[_Node], results: list[_Node], settings: Sequence[str]
    ) -> None:
        self._raw, self._settings = raw, settings
        homes = [raw[0].name, *(r.name for r in raw[2:])]
        self._homes = dict(zip(homes, results, strict=True))
        self._at = {n: i for i, n in enumerate(nodes)}
        self._needed = _reachable(results)
        self._last: dict[_Node, int] = {}  # by value: the last node that reads it
        for node in nodes:
            if node in self._needed and node.op != "scale":
                for arg in node.args:
                    self._last[_root(arg)] = self._at[node]
        for result in results:
            self._last[_root(result)] = len(nodes)
        self._nodes = nodes
        self._register: dict[_Node, str] = {r: r.name for r in raw}
        self._holds: dict[str, _Node | None] = {r.name: r for r in raw}
        self._factor: dict[_Node, _Scalar] = dict.fromkeys(raw, _ONE)
        self._decays = self._find_decays()
        self._prelude: list[str] = []
        self._lines: list[str] = []
        self._numbers: dict[str, str] = {}

    def _find_decays(self) -> dict[str, _Node]:
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
                    readers = [n for n in self._needed if raw in map(_root, n.args)]
                    others = [n for n in readers if n.op != "scale" and n is not result]
                    if all(self._at[n] < self._at[result] for n in others):
                        decays[raw.name] = arg
        return decays

    def write(self) -> Passes:
        """The text of the passes."""
        slots = [r.name for r in self._raw[2:]]
        for i, name in enumerate(slots):
            if name in self._decays:
                self._factor[self._raw[2 + i]] = _Scalar(f"c{i}", safe=True)
                self._prelude += [
                    f"d{i} = c{i} * {_scalar(self._decays[name].by).text}",
                    f"f{i} = None",
                    f"if d{i} < {_SMALLEST_SCALE!r}:",
                    f"    f{i}, d{i} = d{i}, 1.0",
                ]
        for node in self._nodes:
            if node in self._needed and node.op not in ("scale", "input"):
                self._emit(node)
        scales = [self._finish(home) for home in self._homes][1:]
        scratch = sorted((r for r in self._holds if r[0] == "t"), key=lambda r: int(r[1:]))
        unpacked = ", ".join(scratch) + "," * (len(scratch) == 1)
        block = [f"({unpacked}) = t"] if scratch else []
        block += self._lines or ["pass"]
        head = [f"{', '.join(f's_{name}' for name in self._settings)}, = settings"]
        if slots:
            head.append(f"{', '.join(f'c{i}' for i in range(len(slots)))}, = scales")
        lines = [
            "def begin(settings, scales):",
            *(f"    {line}" for line in head + self._prelude),
            f"    def step({', '.join(r.name for r in self._raw)}, t):",
            *(f"        {line}" for line in block),
            f"    return step, ({', '.join(scales)}{',' * (len(scales) == 1)})",
        ]
        decays = tuple(scale != "1.0" for scale in scales)
        return Passes("\n".join(lines) + "\n", len(scratch), decays)

    # -- values

    def _value(self, node: _Node) -> tuple[str, _Scalar]:
        """The register and the factor of a value."""
        if node.op != "scale":
            return self._register[node], self._factor[node]
        for name, decay in self._decays.items():
            if node is decay:
                return name, _Scalar(f"d{name[1:]}", safe=True)
        register, factor = self._value(node.args[0])
        return register, factor * node.by

    def _number(self, scalar: _Scalar) -> str:
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

    def _place(self, node: _Node, operands: Sequence[str]) -> str:
        """The register that a node writes to: its home, that of an operand, or a new one."""
        at = self._at[node]
        for home, result in self._homes.items():
            if _root(result) is node and self._free(home, at):
                return home
        for register in operands:
            if register[0] == "t" and self._free(register, at):
                return register
        return self._scratch(at, operands)

    def _plain(self, node: _Node, arg: _Node, besides: Sequence[str] = ()) -> str:
        """The register of an operand whose factor is multiplied out."""
        register, factor = self._value(arg)
        if factor.text == "1.0":
            return register
        at, k = self._at[node], self._number(factor)
        if register != "g" and self._free(register, at):
            self._lines += [f"if {k} != 1.0:", f"    multiply({register}, {k}, {register})"]
            return register
        to = self._scratch(at, (register, *besides))
        self._holds[to] = node  # only this node reads it
        self._lines.append(f"multiply({register}, {k}, {to})")
        return to

    # -- operations

    def _emit(self, node: _Node) -> None:
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

    def _emit_sum(self, node: _Node) -> tuple[str, _Scalar]:
        base, other = node.args
        for home, decay in self._decays.items():
            if decay in node.args and self._homes[home] is node:
                base, other = decay, node.args[node.args[0] is decay]
                i = home[1:]
                self._lines += [f"if f{i} is not None:", f"    multiply({home}, f{i}, {home})"]
        (b, fb), (o, fo) = self._value(base), self._value(other)
        if not fb.safe and fo.safe:
            (base, b, fb), (other, o, fo) = (other, o, fo), (base, b, fb)
        if not fb.safe:
            b, fb = self._plain(node, base, (o,)), _ONE
        if node.op == "maximum" and not fo.safe:
            o, fo = self._plain(node, other, (b,)), _ONE
            b, fb = self._plain(node, base, (o,)) if fb.text != "1.0" else b, _ONE
        to, ratio = self._place(node, (b, o)), fo / fb
        if ratio.text != "1.0":
            at, k = self._at[node], self._number(ratio)
            own = o[0] == "t" and self._free(o, at) and o != b
            fits = to[0] == "t" and to != b
            scaled = o if own else to if fits else self._scratch(at, (b, o))
            self._lines.append(f"multiply({o}, {k}, {scaled})")
            o = scaled
        self._lines.append(f"{node.op}({b}, {o}, out={to})")
        return to, fb

    def _emit_shift(self, node: _Node) -> tuple[str, _Scalar]:
        (arg,) = node.args
        register, factor = self._value(arg)
        if not factor.safe:
            register, factor = self._plain(node, arg), _ONE
        to = self._place(node, (register,))
        k = self._number(node.by / factor)
        self._lines.append(f"{_WITH_NUMBER[node.op]}({register}, {k}, out={to})")
        return to, factor

    def _emit_product(self, node: _Node) -> tuple[str, _Scalar]:
        x, y = node.args
        (a, fa), (b, fb) = self._value(x), self._value(y)
        if node.op == "divide" and not fb.safe:
            b, fb = self._plain(node, y, (a,)), _ONE
        to = self._place(node, (b, a))
        self._lines.append(f"{node.op}({a}, {b}, {to})")
        return to, fa / fb if node.op == "divide" else fa * fb

    def _emit_function(self, node: _Node) -> tuple[str, _Scalar]:
        (arg,) = node.args
        register, factor = self._value(arg)
        if node.op != "square" and not factor.safe:
            register, factor = self._plain(node, arg), _ONE
        to = self._place(node, (register,))
        self._lines.append(f"{node.op}({register}, {to})")
        if factor.text == "1.0" or node.op == "sign":
            return to, _ONE
        if node.op == "square":
            return to, factor.to("2")
        if node.op == "sqrt":
            return to, factor.to("0.5")
        return to, _ONE / factor if node.op == "reciprocal" else factor

    def _finish(self, home: str) -> str:
        """Bring a result home, and return the scale of the average."""
        result = self._homes[home]
        register, factor = self._value(result)
        if home in self._decays and register == home and factor.text == f"d{home[1:]}":
            return factor.text
        if factor.text != "1.0":
            self._lines.append(f"multiply({register}, {self._number(factor)}, {home})")
        elif register != home:
            self._lines.append(f"{home}[...] = {register}")
        return "1.0"


def _root(node: _Node) -> _Node:
    """The node in whose register a value is."""
    while node.op == "scale":
        (node,) = node.args
    return node


def _reachable(results: Sequence[_Node]) -> set[_Node]:
    needed: set[_Node] = set()
    stack = list(results)
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            stack += node.args
    return needed
