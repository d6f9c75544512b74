"""Compiles kernel sources into shared libraries with g++, and caches them by their text.

With ``GPUGRAD_SHIM_FMA=1`` in the environment, products and sums become fused multiply-adds, as
NVRTC makes them; the CPU must have them. Without it each operation rounds, as in NumPy.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpugrad.core.forking import cached_property

_HOME = Path(__file__).parent
_FMA = os.environ.get("GPUGRAD_SHIM_FMA") == "1"
_ROUNDING = ("-ffp-contract=fast", "-mfma") if _FMA else ("-ffp-contract=off",)
_CHECKS = ("-fsanitize=alignment", "-nodefaultlibs")  # its handler is in cudashim.cpp
_FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-w", "-fwrapv", *_ROUNDING, *_CHECKS)
_LIBRARIES = ("-lstdc++", "-lm", "-lgcc_s", "-lc")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_INTEGER = re.compile(r"\btypedef\s+[\w ]+\s+u?int(?:8|16|32|64)_t\s*;")
"""Definitions that NVRTC needs, and that <stdint.h> has for g++."""
_CONSTANT = re.compile(r"^(?=__constant__ \w+ (M_\w+) = )", re.MULTILINE)
"""Constants of CuPy's whose names are macros in <math.h>, which NVRTC lacks."""
_LINKER = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()  # in a third of the time of ld


class ShimError(AssertionError):
    """A kernel does not compile, deadlocks, or reads or writes outside its arrays."""


@dataclass(frozen=True)
class Prelude:
    """The header that comes before a source, and is compiled in advance."""

    header: str = "cudashim.h"
    folder: Path | None = None
    options: tuple[str, ...] = ()

    @cached_property
    def files(self) -> list[Path]:
        """The headers that may be included."""
        folders = (_HOME, self.folder) if self.folder else (_HOME,)
        return [file for folder in folders for file in sorted(folder.glob("*.h"))]


_SHIM = Prelude()


@dataclass(frozen=True)
class Source:
    """A source for `build_kernels`, its kernels' names, and the header before it."""

    text: str
    names: tuple[str, ...]
    prelude: Prelude = _SHIM


@dataclass(frozen=True)
class Compiled:
    """A shared library, and the number `n` of a source's first kernel: ``shim_run_<n>``."""

    library: Path
    first: int = 0


@functools.cache
def unavailable() -> str:
    """Why kernels cannot be run on this CPU, or an empty string if they can."""
    return "" if _compiler() else "needs g++ (or another C++ compiler in CXX)"


def _compiler() -> str | None:
    return shutil.which(os.environ.get("CXX", "g++"))


def build_kernels(source: Source) -> Compiled:
    """Compile a source's kernels, unless the cache has them.

    Raises:
        ShimError: it does not compile; the message has the compiler's first lines.
    """
    text = _standing_alone(source)
    note = _path(text, source.prelude, "together")
    if note.exists():
        name, first = note.read_text().split()
        if (library := _cache() / name).exists():
            return Compiled(library, int(first))
    return Compiled(_build(text, source.prelude))


def _standing_alone(source: Source) -> str:
    return f'#include "{source.prelude.header}"\n{_to_cpp(source.text)}{_exports(source.names)}'


def _exports(names: Sequence[str], first: int = 0, section: str = "shim_shared") -> str:
    return "".join(
        f'\nextern "C" const char* shim_run_{k}(void** args, const unsigned* size, '
        "size_t shared, int schedule) {\n"
        f"  return shim::launch([](void** a) {{ shim::call({name}, a); }}, args, size, shared, "
        f"schedule, __start_{section}, __stop_{section});\n}}\n"
        f'extern "C" int shim_static_{k}() {{ return __stop_{section} - __start_{section}; }}\n'
        f'extern "C" int shim_sizes_{k}(size_t* out) {{ return shim::sizes({name}, out); }}\n'
        for k, name in enumerate(names, first)
    )


def build_together(sources: Sequence[Source]) -> None:
    """Compile sources of one prelude into one library, where `build_kernels` finds them.

    That takes 10 ms a kernel instead of 170. A source that does not compile is left out.
    """
    missing = [s for s in dict.fromkeys(sources) if not _is_built(s)]
    if not missing:
        return
    firsts = [0, *itertools.accumulate(len(s.names) for s in missing)][:-1]
    prelude = missing[0].prelude
    sections = [_section(s, n) for s, n in zip(missing, firsts, strict=True)]
    try:
        library = _build(
            f'#include "{prelude.header}"\n{_heads(missing)}{"".join(sections)}', prelude
        )
    except ShimError:
        if len(missing) > 1:  # find the source that does not compile
            middle = len(missing) // 2
            build_together(missing[:middle])
            build_together(missing[middle:])
        return
    for source, n in zip(missing, firsts, strict=True):
        note = _path(_standing_alone(source), source.prelude, "together")
        with tempfile.NamedTemporaryFile("w", dir=_cache(), delete=False) as file:
            file.write(f"{library.name} {n}")
        Path(file.name).replace(note)


def _is_built(source: Source) -> bool:
    text = _standing_alone(source)
    return any(_path(text, source.prelude, suffix).exists() for suffix in ("so", "together"))


def _guarded(text: str) -> tuple[str, str]:
    """The guarded definitions of gpugrad's headers for all kernels, and the rest of a text."""
    if "#ifndef GPUGRAD_COMMON" not in text:
        return "", text
    head, end, rest = text.rpartition("#endif\n")
    return head + end, rest


def _heads(sources: Sequence[Source]) -> str:
    """The lines before the namespaces: inside, an overload of sqrt would hide all others."""
    heads, rests = zip(*(_guarded(source.text) for source in sources), strict=True)
    includes = (line.strip() for rest in rests for line in _INCLUDE.findall(rest))
    return "\n".join(dict.fromkeys((*includes, *heads))) + "\n"


def _section(source: Source, first: int) -> str:
    """A source in a namespace, with shared memory and macros of its own."""
    text = _to_cpp(_INCLUDE.sub("", _guarded(source.text)[1])).replace('extern "C"', "")
    shared = f"shim_shared_{first}"
    bounds = "".join(
        f'extern char __{end}_{shared}[] __attribute__((weak, visibility("hidden")));\n'
        for end in ("start", "stop")
    )
    lines = [
        "#undef __shared__",
        f'#define __shared__ __attribute__((section("{shared}"))) static',
        f"namespace source_{first} {{\n{text}{_exports(source.names, first, shared)}}}",
        *(f"#undef {macro}" for macro in dict.fromkeys(_MACRO.findall(text))),
    ]
    return bounds + "\n".join(lines) + "\n"


def build_runtime() -> Path:
    """The shared library of cudashim.cpp, which must be loaded before those of kernels."""
    return _build((_HOME / "cudashim.cpp").read_text(), None)


def _to_cpp(source: str) -> str:
    dynamic = r"extern\s+__shared__\s+(?:__align__\(\d+\)\s*)?([\w:<> ]+?)\s+(\w+)\s*\[\s*\]\s*;"
    source = _CONSTANT.sub(r"#undef \1\n", _INTEGER.sub("", source))
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


def _path(text: str, prelude: Prelude, suffix: str) -> Path:
    """The place of a result in the cache."""
    compiler = _compiler()
    if compiler is None:
        raise ShimError(f"Kernels cannot be run on this CPU: gpugrad {unavailable()}.")
    return _cache() / f"{_key(compiler, prelude, text)}.{suffix}"


def _build(text: str, prelude: Prelude | None) -> Path:
    """The path of the compiled library, from the cache if it is there."""
    library = _path(text, prelude or _SHIM, "so")
    if library.exists():
        return library
    compiler = str(_compiler())
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "kernels.so"
        Path(folder, "kernels.cpp").write_text(text)
        include = f"-I{_precompiled(compiler, prelude) if prelude else _HOME}"
        options = prelude.options if prelude else ()
        command = [compiler, *_FLAGS, *_LINKER, *options, include, "kernels.cpp", *_LIBRARIES]
        command += ["-o", str(output)]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode:
            lines = "\n".join(result.stderr.splitlines()[:20])
            raise ShimError(f"The kernel source does not compile:\n{lines}")
        _put(output, library)
    return library


def _put(file: Path, target: Path) -> None:
    complete = target.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    shutil.move(file, complete)
    complete.replace(target)
