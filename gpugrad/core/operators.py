"""Python's operators for arrays that wrap others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "matmul": "matmul",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
UNARY = {"neg": "negative", "invert": "bitwise_invert"}
COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
EQUALITY = {"eq": "equal", "ne": "not_equal"}


def add_operators(kind: type, xp: Any) -> None:
    """Add Python's operators to a type that wraps arrays: each calls the op of its reading `xp`."""

    def operator(name: str, reflected: bool = False) -> Callable[..., Any]:
        def method(self: Any, *other: Any) -> Any:
            return getattr(xp, name)(*((*other, self) if reflected else (self, *other)))

        return method

    for symbol, name in (BINARY | UNARY | COMPARISONS | EQUALITY).items():
        setattr(kind, f"__{symbol}__", operator(name))
    for symbol, name in BINARY.items():
        setattr(kind, f"__r{symbol}__", operator(name, reflected=True))
