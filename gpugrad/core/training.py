"""Whether a model trains: what layers that behave otherwise then ask."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from gpugrad.errors import ArgumentError

__all__ = ["is_training", "training"]


class _Modes(threading.local):
    """Of this thread, the innermost last."""

    def __init__(self) -> None:
        self.stack = [False]


_modes = _Modes()


class training:  # it reads as a statement
    """Let layers do what they do in training, in this thread, inside a ``with`` block.

    `gg.nn.Dropout` drops then, and `gg.nn.BatchNorm` takes the statistics of the batch. Outside of
    such a block models are used, not trained. A `gg.function` is traced once for each of the two,
    and what a gradient computes again is computed as it was. It decorates functions, too.

    Args:
        on: whether they train; ``training(False)`` is for a look at a model within a step.

    Raises:
        ArgumentError: `on` is no bool: as a decorator it is ``@gg.nn.training()``.

    >>> with gg.nn.training():
    ...     gg.nn.is_training()
    True
    >>> gg.nn.is_training()
    False
    """

    def __init__(self, on: bool = True) -> None:
        if not isinstance(on, bool):
            raise ArgumentError(f"nn.training: on must be True or False, got {on!r:.60}. As a "
                                "decorator write @gg.nn.training().")  # fmt: skip
        self.on = on

    def __enter__(self) -> None:
        _modes.stack.append(self.on)

    def __exit__(self, *exc: object) -> None:
        _modes.stack.pop()

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function, run in such a block."""

        @functools.wraps(f)
        def run(*args: Any, **keywords: Any) -> Any:
            with training(self.on):
                return f(*args, **keywords)

        return run


def is_training() -> bool:
    """Whether this thread is inside a `training` block.

    >>> gg.nn.is_training()
    False
    """
    return _modes.stack[-1]
