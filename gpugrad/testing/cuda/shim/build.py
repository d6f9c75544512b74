"""Compiles kernel sources into shared libraries with g++, and caches them by their text.

With ``GPUGRAD_SHIM_FMA=1`` in the environment, products and sums become fused multiply-adds, as
NVRTC makes them; the CPU must have them. Without it each operation rounds, as in NumPy.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpugrad.core.forking import cached_property

__all__ = ["Prelude", "ShimError", "build_kernels", "build_runtime", "unavailable"]

_HOME = Path(__file__).parent
_FMA = os.environ.get("GPUGRAD_SHIM_FMA") == "1"
_ROUNDING = ("-ffp-contract=fast", "-mfma") if _FMA else ("-ffp-contract=off",)
_FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-w", "-fwrapv", *_ROUNDING)
_LINKER = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()  # in a third of the time of ld


class ShimError(AssertionError):
    """A kernel does not compile, deadlocks, or reads or writes outside its arrays."""


@dataclass(frozen=True)
class Prelude:
    """The header that comes before a source, and is compiled in advance.

    Attributes:
        header: its name.
        folder: where it is, if it is not one of the shim's.
        options: more options of the compiler.
    """

    header: str = "cudashim.h"
    folder: Path | None = None
    options: tuple[str, ...] = ()

    @cached_property
    def files(self) -> list[Path]:
        """The headers that may be included."""
        folders = (_HOME, self.folder) if self.folder else (_HOME,)
        return [file for folder in folders for file in sorted(folder.glob("*.h"))]


_SHIM = Prelude()


@functools.cache
def unavailable() -> str:
    """Why kernels cannot be run on this CPU, or an empty string if they can."""
    return "" if _compiler() else "needs g++ (or another C++ compiler in CXX)"


def _compiler() -> str | None:
    return shutil.which(os.environ.get("CXX", "g++"))


def build_kernels(source: str, names: Sequence[str], prelude: Prelude = _SHIM) -> Path:
    """The shared library of a source's kernels: `shim_run_0` runs the first of `names`.

    Raises:
        ShimError: it does not compile; the message has the compiler's first lines.
    """
    text = f'#include "{prelude.header}"\n' + _to_cpp(source)
    for k, name in enumerate(names):
        text += (
            f'\nextern "C" const char* shim_run_{k}(void** args, const unsigned* size, '
            "size_t shared, int schedule) {\n"
            f"  return shim::launch([](void** a) {{ shim::call({name}, a); }}, args, size, shared, "
            "schedule, __start_shim_shared, __stop_shim_shared);\n}\n"
            f'extern "C" int shim_sizes_{k}(size_t* out) {{ return shim::sizes({name}, out); }}\n'
        )
    return _build(text, prelude)


def build_runtime() -> Path:
    """The shared library of cudashim.cpp, which must be loaded before those of kernels."""
    return _build((_HOME / "cudashim.cpp").read_text(), None)


def _to_cpp(source: str) -> str:
    dynamic = r"extern\s+__shared__\s+(?:__align__\(\d+\)\s*)?([\w:<> ]+?)\s+(\w+)\s*\[\s*\]\s*;"
    return re.sub(dynamic, r"\1* \2 = (\1*)shim::dynamic_shared;", source)


@functools.cache
def _contents(prelude: Prelude) -> str:
    return "".join((*prelude.options, *(p.read_text() for p in prelude.files)))


def _cache() -> Path:
    """A directory that only this user can write to, because libraries in it are loaded."""
    path = Path(tempfile.gettempdir()) / f"gpugrad-shim-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_uid != os.getuid() or path.stat().st_mode & 0o022:
        path = Path(tempfile.mkdtemp(prefix="gpugrad-shim-"))
    return path


def _key(compiler: str, prelude: Prelude, text: str = "") -> str:
    parts = (compiler, *_FLAGS, _contents(prelude), text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@functools.cache
def _precompiled(compiler: str, prelude: Prelude) -> Path:
    """The folder of precompiled headers: they take a third of a small kernel's compile time."""
    folder = _cache() / _key(compiler, prelude)
    if folder.exists():
        return folder
    build = Path(tempfile.mkdtemp(dir=_cache()))
    for header in prelude.files:
        shutil.copy(header, build)
    name = str(build / prelude.header)
    command = [compiler, *_FLAGS, *prelude.options, "-x", "c++-header", name, "-o", f"{name}.gch"]
    subprocess.run(command, capture_output=True, check=False)  # on failure the headers are read
    try:
        build.replace(folder)
    except OSError:  # another process was faster
        shutil.rmtree(build)
    return folder


def _build(text: str, prelude: Prelude | None) -> Path:
    """The path of the compiled library, from the cache if it is there."""
    compiler = _compiler()
    if compiler is None:
        raise ShimError(f"Kernels cannot be run on this CPU: gpugrad {unavailable()}.")
    library = _cache() / f"{_key(compiler, prelude or _SHIM, text)}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "kernels.so"
        Path(folder, "kernels.cpp").write_text(text)
        include = f"-I{_precompiled(compiler, prelude) if prelude else _HOME}"
        options = prelude.options if prelude else ()
        command = [compiler, *_FLAGS, *_LINKER, *options, include, "kernels.cpp", "-o", str(output)]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode:
            lines = "\n".join(result.stderr.splitlines()[:20])
            raise ShimError(f"The kernel source does not compile:\n{lines}")
        complete = library.with_suffix(f".{os.getpid()}")
        shutil.move(output, complete)
        complete.replace(library)  # atomically: other processes may be building it too
    return library
