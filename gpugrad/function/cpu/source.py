"""Generated Python: readable names, and lines that tracebacks show."""

from __future__ import annotations

import contextlib
import itertools
import keyword
import linecache
import re
import weakref
from collections.abc import Callable, Iterable
from typing import Any

_numbers = itertools.count()
_dead: list[str] = []
"""Files of functions that are gone. The next compilation removes them from linecache, since a
finalizer may run inside of linecache's own loop over its files."""


class Names:
    """Names of one generated function: unique identifiers.

    Args:
        reserved: identifiers that the text uses by itself.
        letters: also reserved, followed by a number: ``b0``, ``b1``, ...

    Attributes:
        scope: the globals of the function, by name.
    """

    def __init__(self, reserved: Iterable[str], letters: str) -> None:
        self.scope: dict[str, Any] = {}
        self._used: dict[str, int] = {}
        self._numbered = re.compile(rf"[{letters}]\d+")
        self.reserve(reserved)

    def reserve(self, identifiers: Iterable[str]) -> None:
        """Keep identifiers for the text itself."""
        self._used |= dict.fromkeys(identifiers, 1)

    def new(self, name: str) -> str:
        """An identifier like `name`, with a number if `name` is in use.

        >>> names = Names(["arrays"], letters="b")
        >>> names.new("dense/bias"), names.new("dense/bias"), names.new("arrays"), names.new("b0")
        ('dense_bias', 'dense_bias_2', 'arrays_2', 'b0_2')
        """
        base = re.sub(r"\W", "_", name, flags=re.ASCII)
        if not base.isidentifier() or keyword.iskeyword(base):
            base = f"_{base}"
        n = self._used.get(base, 1 if self._numbered.fullmatch(base) else 0) + 1
        identifier = base if n == 1 else f"{base}_{n}"
        while identifier in self._used:
            n += 1
            identifier = f"{base}_{n}"
        self._used[base] = n
        self._used.setdefault(identifier, 1)
        return identifier

    def bind(self, name: str, thing: Any) -> str:
        """A global identifier like `name` for an object."""
        identifier = self.new(name)
        self.scope[identifier] = thing
        return identifier


def compile_function(
    source: str, name: str, scope: dict[str, Any], title: str
) -> Callable[..., Any]:
    """Compile the function `name` of a text; tracebacks show its lines while it lives."""
    with contextlib.suppress(IndexError):  # empty; another thread may be taking names, too
        while True:
            linecache.cache.pop(_dead.pop(), None)
    file = f"<gpugrad {title} {next(_numbers)}>"
    scope = dict(scope)
    exec(compile(source, file, "exec"), scope)
    function: Callable[..., Any] = scope[name]
    # without a modification time, so that linecache.checkcache keeps it
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    weakref.finalize(function, _dead.append, file).atexit = False
    return function
