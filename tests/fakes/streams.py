"""Where the stand-ins for NVIDIA's libraries put their work: on the streams of the CuPy in use.

On the stand-in for CuPy work runs at once or is added to its capture. On the real CuPy over the
made-up driver (`gpugrad.testing.cuda.driver`) the driver does that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from gpugrad.testing.cuda.driver.libraries import work

__all__ = ["enqueue", "is_capturing"]


def _on_the_stand_in() -> bool:
    return sys.modules["cupy"].__spec__.loader is None


def enqueue(stream: int, name: str, launch: Callable[[], object]) -> None:
    """Run the work now, or record it where the current stream is being captured."""
    if not _on_the_stand_in():
        work(stream, "nvmath", name, launch)
        return
    capture = sys.modules["fakes.cupy"]._current.capture
    launch() if capture is None else capture.append(launch)


def is_capturing(stream: int) -> bool:
    """Whether a stream is being captured."""
    if not _on_the_stand_in():
        return bool(sys.modules["cupy"].cuda.runtime.streamIsCapturing(stream))
    return sys.modules["fakes.cupy"]._current.capture is not None
