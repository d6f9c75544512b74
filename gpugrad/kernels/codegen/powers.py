"""Small whole and half powers as products and roots: one formula for NumPy, C++ and CUDA.

``pow`` takes ten times as long as a product, and in NumPy a hundred times for negative numbers.
`uniform_power` in ``functions.h`` and ``functions.cuh`` is the same formula for a power that only
the call tells.
"""

from __future__ import annotations

from typing import Any

MOST = 8
"""The largest such power: products are off by at most 4 units in the last place."""


def by_products(lib: Any, x: Any, y: Any) -> Any:
    """``x ** y`` of floats, or None if `y` is no number of halves up to `MOST`.

    Positive half powers of -inf are NaN, as its root is; pow would give inf.

    Args:
        lib: NumPy, or a library of its functions.
        x: real numbers; complex ones for whole powers, and a root.
        y: a Python number.
    """
    if type(y) not in (int, float) or not 0 < abs(y) <= MOST or y * 2 % 1:
        return None
    whole, half = int(abs(y)), y % 1 != 0
    if half and y != 0.5:  # which is sqrt
        if x.dtype.kind == "c":
            return None
        x = x + 0  # the root of -0.0 is -0.0, but its power is 0.0
    power = x if whole else lib.sqrt(x)
    for bit in f"{whole:b}"[1:]:
        power = lib.square(power)
        if bit == "1":
            power = power * x
    if half and whole:
        power = power * lib.sqrt(x)
    if y < 0:
        return lib.reciprocal(power)
    return power if y != 1 else lib.positive(x)
