"""Whether a model trains: what layers that behave otherwise then ask."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

__all__ = ["is_training", "training"]


class _Mode(threading.local):
    on = False


_mode = _Mode()


@contextlib.contextmanager
def training(on: bool = True) -> Iterator[None]:
    """Let layers do what they do in training, in this thread, inside a ``with`` block.

    `gg.nn.Dropout` drops then, and `gg.nn.BatchNorm` takes the statistics of the batch. Outside of
    such a block models are used, not trained. A `gg.function` is traced once for each of the two,
    and what a gradient computes again is computed as it was. It decorates functions, too.

    Args:
        on: whether they train; ``training(False)`` is for a look at a model within a step.

    >>> import gpugrad as gg
    >>> with gg.nn.training():
    ...     gg.nn.is_training()
    True
    >>> gg.nn.is_training()
    False
    """
    before, _mode.on = _mode.on, bool(on)
    try:
        yield
    finally:
        _mode.on = before


def is_training() -> bool:
    """Whether this thread is inside a `training` block.

    >>> import gpugrad as gg
    >>> gg.nn.is_training()
    False
    """
    return _mode.on
