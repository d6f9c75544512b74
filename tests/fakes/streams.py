"""The stand-ins for NVIDIA's libraries put their work on the streams of the made-up driver."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

from gpugrad.testing.cuda.driver import get_setting
from gpugrad.testing.cuda.driver.libraries import work


@functools.cache
def does_nothing() -> bool:
    """Whether devices do nothing, so that only the host's time of a call counts."""
    return bool(get_setting("null_work"))


def enqueue(stream: int, name: str, launch: Callable[[], object]) -> None:
    """Run the work now, or record it where the stream is being captured."""
    work(stream, "nvmath", name, launch)


def is_capturing(stream: int) -> bool:
    """Whether a stream is being captured."""
    return bool(sys.modules["cupy"].cuda.runtime.streamIsCapturing(stream))
