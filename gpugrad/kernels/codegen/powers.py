"""Small whole and half powers as products and roots: one formula for NumPy, C++ and CUDA.

``pow`` takes ten times as long as a product, and in NumPy a hundred times for negative numbers.
`uniform_power` in ``functions.h`` and ``functions.cuh`` is the same formula for a power that only
the call tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MOST = 8
"""The largest such power: products are off by at most 4 units in the last place."""

_products: dict[float, Callable[[Any, Any], Any]] = {}
_HALVES = frozenset(n / 2 for n in range(-2 * MOST, 2 * MOST + 1) if n)


def by_products(lib: Any, x: Any, y: Any) -> Any:
    """``x ** y`` of floats, or None if `y` is no number of halves up to `MOST`.

    Positive half powers of -inf are NaN, as its root is; pow would give inf.

    Args:
        lib: NumPy, or a library of its functions.
        x: real numbers; complex ones for whole powers, and a root.
        y: a Python number.
    """
    if type(y) is not int and type(y) is not float:
        return None
    product = _products.get(y)
    if product is None and y in _HALVES:
        product = _products[y] = eval(f"lambda lib, x: {_product(y)}")
    return product and product(lib, x)


def _product(y: float) -> str:
    """The product, written out: ``lib.square(x) * x`` for 3."""
    whole, root = int(abs(y)), "lib.sqrt(x)"
    power = "x" if whole else root
    for bit in f"{whole:b}"[1:]:
        power = f"lib.square({power})" + " * x" * (bit == "1")
    if y % 1 and whole:
        power += f" * {root}"
    if y == 1:
        return "lib.positive(x)"
    power = power if y > 0 else f"lib.reciprocal({power})"
    if not y % 1 or y == 0.5:  # which is sqrt
        return power
    # the root of -0.0 is -0.0, but its power is 0.0
    return f"None if x.dtype.kind == 'c' else (lambda x: {power})(x + 0)"
