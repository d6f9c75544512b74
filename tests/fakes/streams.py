"""The stand-ins for NVIDIA's libraries put their work on the streams of the made-up driver."""

from __future__ import annotations

import sys
from collections.abc import Callable

from gpugrad.testing.cuda.driver.libraries import work

__all__ = ["enqueue", "is_capturing"]


def enqueue(stream: int, name: str, launch: Callable[[], object]) -> None:
    """Run the work now, or record it where the stream is being captured."""
    work(stream, "nvmath", name, launch)


def is_capturing(stream: int) -> bool:
    """Whether a stream is being captured."""
    return bool(sys.modules["cupy"].cuda.runtime.streamIsCapturing(stream))
