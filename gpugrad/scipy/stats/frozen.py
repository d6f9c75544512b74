"""Distributions with their parameters."""

from __future__ import annotations

import functools
from typing import Any

_POINTS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
_WITH_ARGUMENT = dict.fromkeys(_POINTS, "x") | {
    "pmf": "k",
    "logpmf": "k",
    "ppf": "q",
    "isf": "q",
    "interval": "confidence",
    "moment": "order",
}
"""Methods with an argument before the parameters, and its name."""


class Frozen:
    """A distribution with its parameters; it has the distribution's methods without them."""

    def __init__(self, dist: Any, args: Any, kwds: Any) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds
        dist.scipys._parse_args(*args, **kwds)  # SciPy's TypeErrors

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("dist", "args", "kwds"):
            raise AttributeError(name)
        method = getattr(self.dist, name)

        @functools.wraps(method)
        def call(*args: Any, **keywords: Any) -> Any:
            if name in _WITH_ARGUMENT:
                head, *rest = args if args else (keywords.pop(_WITH_ARGUMENT[name]),)
                return method(head, *self.args, *rest, **self.kwds, **keywords)
            if name == "expect":
                shapes, loc, scale = self.dist.scipys._parse_args(*self.args, **self.kwds)
                keywords |= {} if self.dist.discrete else {"scale": scale}
                return method(*args, args=tuple(shapes), loc=loc, **keywords)
            if name == "rvs":
                keywords |= dict(zip(("size", "random_state"), args, strict=False))
                args = ()
            if name == "stats" and args:
                keywords["moments"], args = args[0], ()
            return method(*self.args, *args, **self.kwds, **keywords)

        return call
