"""Where the built driver is, and how a process uses it."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
import sysconfig
from pathlib import Path

CUPY = "14.2.0"
HOME = Path(__file__).parent
_TAG = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
_SETTINGS = {
    "CUPY_ACCELERATORS": "",  # CUB's kernels do not compile with g++
    "CUPY_CACHE_IN_MEMORY": "1",  # the shim caches compiled kernels
}


def cache() -> Path:
    """The directory of downloads and built drivers."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gpugrad"
    return Path(os.environ.get("GPUGRAD_CACHE_DIR", default)) / "cuda-driver"


def base() -> Path:
    """The directory of what depends on the versions of CuPy and Python only."""
    return cache() / f"cupy-{CUPY}-{_digest(HOME / 'build.py')}-{_TAG}"


def overlay() -> Path:
    """The directory that goes first on the search path; its name has the hash of the sources."""
    sources = ("build.py", "stubs.py", "libraries/__init__.py")
    digest = _digest(*(HOME / name for name in sources), *sorted(HOME.glob("native/*")))
    return cache() / f"driver-{CUPY}-{digest}-{_TAG}"


@functools.cache
def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def unavailable() -> str:
    """Why the driver cannot be used here, or an empty string if it can."""
    if not (overlay() / "complete").exists():
        return "needs the made-up CUDA driver: python -m gpugrad.testing.cuda.driver build"
    return ""


def is_active() -> bool:
    """Whether ``import cupy`` imports the CuPy that uses the driver."""
    spec = importlib.util.find_spec("cupy")
    return bool(spec and spec.origin and Path(spec.origin).is_relative_to(overlay()))


def environment() -> dict[str, str]:
    """The environment variables of a process that uses the driver."""
    before = os.environ.get("PYTHONPATH")
    paths = [str(overlay() / "site"), *([before] if before else [])]
    return {**os.environ, **_SETTINGS, "PYTHONPATH": os.pathsep.join(paths)}


def activate() -> None:
    """Make ``import cupy`` import the CuPy that uses the driver, from now on in this process.

    Raises:
        RuntimeError: CuPy has been imported, or the driver has not been built.
    """
    if "cupy" in sys.modules:
        raise RuntimeError("CuPy has been imported: activate the driver before that.")
    if why := unavailable():
        raise RuntimeError(f"The driver cannot be activated: gpugrad {why}.")
    os.environ.update(_SETTINGS)
    sys.path.insert(0, str(overlay() / "site"))
