"""The values of an update rule's formula: nodes of a graph, and the numbers of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Scalar:
    """A number of a step: its expression in the settings; `safe` if it is never 0 or negative."""

    __slots__ = ("safe", "text")

    def __init__(self, text: str, safe: bool = False) -> None:
        self.text, self.safe = text, safe

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Node):
            return NotImplemented
        other = scalar(other)
        if "1.0" in (self.text, other.text):
            return other if self.text == "1.0" else self
        return Scalar(f"{self.text} * {other.text}", self.safe and other.safe)

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Node):
            return NotImplemented
        other = scalar(other)
        if other.text == "1.0":
            return self
        of = f"({other.text})" if " " in other.text else other.text
        return Scalar(f"{self.text} / {of}", self.safe and other.safe)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Node):
            return NotImplemented
        return Scalar(f"({self.text} + {scalar(other).text})")

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Node):
            return NotImplemented
        return Scalar(f"({self.text} - {scalar(other).text})")

    def __rmul__(self, other: float) -> Scalar:
        return scalar(other) * self

    def __rtruediv__(self, other: float) -> Scalar:
        return scalar(other) / self

    def __radd__(self, other: float) -> Scalar:
        return scalar(other) + self

    def __rsub__(self, other: float) -> Scalar:
        return scalar(other) - self

    def __neg__(self) -> Scalar:
        return scalar(-1.0) * self

    def to(self, power: str) -> Scalar:
        """The power of the number."""
        base = self.text if self.text.isidentifier() else f"({self.text})"
        return Scalar(f"{base}**{power}", self.safe)


def scalar(value: Any) -> Scalar:
    """A Python number as a Scalar; a Scalar itself."""
    if isinstance(value, Scalar):
        return value
    return Scalar(repr(float(value)), float(value) > 0)


ONE = scalar(1.0)


class SettingNames:
    """The settings of a step as attributes."""

    def __init__(self, names: Sequence[str]) -> None:
        self.__dict__.update({name: Scalar(f"s_{name}") for name in names})


class Node:
    """A value of the formula; each operation on it adds a node to the list."""

    __slots__ = ("args", "by", "name", "nodes", "op")
    __hash__ = object.__hash__

    def __init__(
        self, nodes: list[Node], op: str, *args: Node, by: Any = None, name: str = ""
    ) -> None:
        self.nodes, self.op, self.args, self.by, self.name = nodes, op, args, by, name
        nodes.append(self)

    def __add__(self, other: Any) -> Node:
        if isinstance(other, Node):
            return Node(self.nodes, "add", self, other)
        return Node(self.nodes, "shift", self, by=scalar(other))

    def __sub__(self, other: Any) -> Node:
        return self + -other

    def __rsub__(self, other: Any) -> Node:
        return -self + other

    def __mul__(self, other: Any) -> Node:
        if isinstance(other, Node):
            return Node(self.nodes, "multiply", self, other)
        return Node(self.nodes, "scale", self, by=scalar(other))

    def __truediv__(self, other: Any) -> Node:
        if isinstance(other, Node):
            return Node(self.nodes, "divide", self, other)
        return Node(self.nodes, "scale", self, by=ONE / scalar(other))

    def __rtruediv__(self, other: Any) -> Node:
        return Node(self.nodes, "reciprocal", self) * other

    def __neg__(self) -> Node:
        return self * -1.0

    __radd__, __rmul__ = __add__, __mul__


class Namespace:
    """The ``xp`` of a rule that is read on nodes."""

    def sqrt(self, x: Node) -> Node:
        """The square root."""
        return Node(x.nodes, "sqrt", x)

    def square(self, x: Node) -> Node:
        """The square."""
        return Node(x.nodes, "square", x)

    def absolute(self, x: Node) -> Node:
        """The absolute value."""
        return Node(x.nodes, "absolute", x)

    def sign(self, x: Node) -> Node:
        """-1, 0 or 1."""
        return Node(x.nodes, "sign", x)

    def maximum(self, x: Node, y: Node | float) -> Node:
        """The larger one."""
        if isinstance(y, Node):
            return Node(x.nodes, "maximum", x, y)
        return Node(x.nodes, "at_least", x, by=scalar(y))


XP = Namespace()


def root_of(node: Node) -> Node:
    """The node in whose register a value is."""
    while node.op == "scale":
        (node,) = node.args
    return node


def reachable(results: Sequence[Node]) -> set[Node]:
    """The nodes that results depend on, themselves included."""
    needed: set[Node] = set()
    stack = list(results)
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            stack += node.args
    return needed
