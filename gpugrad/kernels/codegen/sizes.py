"""Numbers that a C kernel reads from an array, so that its text is that of other batches, too."""

from __future__ import annotations

from typing import Any

import numpy as np

_NUMBER = "number "  # begins the uses of floats
_FEW = 16


class Sizes:
    """The numbers of one kernel, as 64 bits each."""

    def __init__(self) -> None:
        self._by_use: dict[str, int] = {}

    @property
    def values(self) -> list[int]:
        """The elements of the array."""
        return [*self._by_use.values()]

    def whole(self, use: str, n: int) -> str:
        """A whole number, as the text reads it.

        Two uses may have equal numbers by chance, so each has its own.
        """
        self._by_use[use] = n
        return f"d{[*self._by_use].index(use)}"

    def number(self, use: str, x: Any) -> str:
        """The same for a float."""
        return self.whole(_NUMBER + use, int(np.float64(x).view(np.int64)))

    def lines(self, at: int) -> list[str]:
        """The lines that read them from array number `at`; all of them must be known."""
        lines = []
        for k, use in enumerate(self._by_use):
            t = "double" if use.startswith(_NUMBER) else "long"
            lines.append(f"const {t} d{k} = ((const {t}*)p[{at}])[{k}];")
        return lines


def is_share(value: Any) -> bool:
    """Whether a number is 1 / n or 2 / n for a large n, as the gradients of means have it."""
    n = 2 / abs(float(value)) if value else 0.0
    return _FEW < n < 1 << 40 and abs(n - round(n)) < 1e-6 * n
