"""Compiles C++ into shared libraries at first need, and keeps them in a private folder on disk.

`load` never raises: without a compiler it returns None, and NumPy computes. If something breaks
(the compiler fails or hangs, the disk is full or read-only), one warning of the process says why.

A library's file name is a hash of all that its code depends on: the text, the headers beside this
module, the flags, the compiler and, because of ``-march=native``, the processor's features.
`library_folder.py` describes the folder. If it is unsafe, or cannot be written, a warning says so
and a temporary folder of this process takes its place.

====================  =============================================================
environment variable  meaning
====================  =============================================================
GPUGRAD_CPU_KERNELS   1, or 0: no C kernels; always: also for programs that are too small to gain
CXX                   the compiler; by default g++, clang++ or c++, whichever is found
XDG_CACHE_HOME        the folder that holds gpugrad/cpu; by default ~/.cache
====================  =============================================================
"""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import dataclasses
import functools
import hashlib
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gpugrad.core import environment
from gpugrad.core.forking import new_lock
from gpugrad.core.progress import compiling
from gpugrad.errors import ArgumentError, GpugradWarning
from gpugrad.kernels.cpu.library_folder import LibraryFolder, UnsafeError, temporary_folder

FLAGS = (
    "-std=c++17",
    "-O3",
    "-falign-loops=32",  # else a loop's speed changes by 5 % with the text before it
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-shared",
    "-fPIC",
    "-pthread",
    "-w",
)
_SECONDS = 200  # that the compiler may take
_HOME = Path(__file__).parent


class _BrokenError(Exception):
    """Why no library can be compiled, or not this one."""

    def __init__(self, reason: str, *, for_all: bool = False) -> None:
        super().__init__(reason)
        self.for_all = for_all


@dataclasses.dataclass(frozen=True)
class _Compiler:
    command: tuple[str, ...]
    version: str  # the first line that it prints with --version

    @property
    def name(self) -> str:
        """``"g++ 12.2"``."""
        number = re.findall(r"\d+\.\d+", self.version)
        return " ".join([Path(self.command[-1]).name, *number[-1:]])


class _Process:
    """The libraries that this process has loaded, and the errors of those that failed."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.sources: dict[str, threading.Lock] = {}  # of libraries that some thread loads
        self.libraries: dict[str, ctypes.CDLL | None] = {}
        self.unkept: weakref.WeakValueDictionary[str, ctypes.CDLL] = weakref.WeakValueDictionary()
        self.broken = ""  # why no library can be compiled
        self.warned = False
        self.folder: LibraryFolder | None = None  # that of the cache, or a temporary one
        self.unusable = ""  # why the cache is not used
        self.is_temporary = False


_process = _Process()


def load(
    source: str, *, what: str, shared: bool = False, flags: Sequence[str] = (), keep: bool = True
) -> ctypes.CDLL | None:
    """The library of a C++17 text, compiled or from the cache; None if NumPy has to compute.

    Args:
        source: the text. It may include the headers of this folder.
        what: what it computes, for the warning if the compiler refuses it.
        shared: whether libraries that are loaded later may call its functions.
        flags: more of them for the compiler.
        keep: whether it stays loaded, or goes with the last object that has the result.
    """
    if source in _process.libraries:
        return _process.libraries[source]
    with _process.lock:
        lock = _process.sources.setdefault(source, new_lock())
    with lock:
        library = _process.unkept.get(source) or _process.libraries.get(source)
        if library is None and source not in _process.libraries:
            library = _load(source, what, shared, flags)
            if keep or library is None:
                _process.libraries[source] = library
            else:
                _process.unkept[source] = library
                end = weakref.finalize(library, _ctypes.dlclose, library._handle)
                end.atexit = False  # a thread may still compute
    _process.sources.pop(source, None)
    return library


class _Ahead(threading.local):
    is_thread = False


_ahead = _Ahead()


def ahead(*loads: Callable[[], Any]) -> None:
    """Call functions that load libraries in threads, one each, so that several compilers run.

    Whoever needs a library later waits for it, and warns if it cannot be compiled.
    """

    def run(load: Callable[[], Any]) -> None:
        _ahead.is_thread = True
        with contextlib.suppress(Exception):
            load()

    for load in loads:
        with contextlib.suppress(RuntimeError):  # no more threads, or the process ends
            threading.Thread(target=run, args=(load,), name="gpugrad compiler").start()


def setting() -> str:
    """``"0"``, ``"1"`` or ``"always"``: what GPUGRAD_CPU_KERNELS says."""
    return environment.choose("GPUGRAD_CPU_KERNELS", "1", "0", "always")


def status() -> str:
    """One line that says which compiler is used, or why none is."""
    try:
        if reason := _declined() or _process.broken:
            return f"C kernels: none, {reason}"
        compiler = _compiler()
    except _BrokenError as error:
        return f"C kernels: none, {error}"
    return f"C kernels: {compiler.name} (native, {_vectors()})"


def _load(source: str, what: str, shared: bool, flags: Sequence[str]) -> ctypes.CDLL | None:
    try:
        if _declined() or _process.broken:
            return None
        mode = ctypes.RTLD_GLOBAL if shared else ctypes.RTLD_LOCAL
        return _loaded(source, what, flags, mode)
    except _BrokenError as error:
        if _ahead.is_thread:  # no cache keeps the answer
            raise
        if error.for_all:
            _process.broken = str(error)
        if not _process.warned:
            _process.warned = True
            scope = "C kernels are off" if error.for_all else f"There is no C kernel for {what}"
            _warn(f"{scope}, NumPy computes instead: {error}")
        return None


def _warn(text: str) -> None:
    text += ". GPUGRAD_CPU_KERNELS=0 turns C kernels off without a warning."
    warnings.warn(text, GpugradWarning, stacklevel=2)


def _declined() -> str:
    """Why C kernels are not even tried; an empty string if they are."""
    if setting() == "0":
        return "GPUGRAD_CPU_KERNELS=0"
    if not sys.platform.startswith("linux"):
        return f"they are untested on {platform.system() or sys.platform}"
    return "" if _command() else "no C++ compiler is installed (g++ or clang++, or CXX)"


@functools.cache
def _command() -> tuple[str, ...]:
    try:
        own = environment.read("CXX", shlex.split, "the command of a compiler")
    except ArgumentError as error:
        raise _BrokenError(str(error).removesuffix("."), for_all=True) from None
    for words in (own, ["g++"], ["clang++"], ["c++"]):
        if words and (path := shutil.which(words[0])):
            return (path, *words[1:])
    return ()


@functools.cache
def _compiler() -> _Compiler:
    command = _command()
    output = _run([*command, "--version"], f"{command[0]} --version", for_all=True)
    return _Compiler(command, output.partition("\n")[0].strip())


def _run(command: Sequence[str], name: str, *, for_all: bool = False, folder: str = "") -> str:
    """The output of a command; its temporary files go to `folder`."""
    environment = {**os.environ, "LC_ALL": "C", **({"TMPDIR": folder} if folder else {})}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise _BrokenError(f"{command[0]} cannot be started: {error}", for_all=True) from None
    try:
        output, errors = process.communicate(timeout=_SECONDS)
    except BaseException as error:  # the compiler's own children have the pipes open too
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        reason = f"{name} took more than {_SECONDS} seconds"
        raise _BrokenError(reason, for_all=True) from None
    if process.returncode:
        texts = errors.replace(f"{folder}/", "").splitlines() if folder else errors.splitlines()
        lines = [line for line in texts if "error" in line] or texts
        reason = f"{name} failed with status {process.returncode}: {' '.join(lines[:1])[:300]}"
        raise _BrokenError(reason.rstrip(". :"), for_all=for_all)
    return output


# ---- the processor ----------------------------------------------------------------------


@functools.cache
def _processor() -> str:
    """All that ``-march=native`` may depend on."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace").partition("\n\n")[0]
    except OSError:
        text = platform.processor()
    # not the microcode, the size of a cache or what the kernel knows of bugs: they change no code
    kept = "vendor_id|cpu family|model|flags|Features|CPU (implementer|architecture|variant|part)"
    lines = [line for line in text.splitlines() if re.fullmatch(rf"({kept})\s*:.*", line)]
    return "\n".join([platform.machine(), platform.libc_ver()[1], *lines])


def _vectors() -> str:
    flags = _processor().split()
    names = {"avx512f": "AVX-512", "avx2": "AVX2", "sve": "SVE", "asimd": "NEON"}
    return next((name for flag, name in names.items() if flag in flags), platform.machine())


# ---- the cache --------------------------------------------------------------------------


def _folders() -> Iterator[LibraryFolder]:
    """The `LibraryFolder` of this user; then, with a warning, a temporary one of this process."""
    if _process.folder is None:
        try:
            _process.folder = LibraryFolder(_path())
        except (OSError, RuntimeError, UnsafeError) as error:  # a RuntimeError: there is no home
            _process.unusable = str(error)
    if _process.folder is not None:
        yield _process.folder
    if not _process.is_temporary:
        if _ahead.is_thread:
            raise _BrokenError(_process.unusable)
        _warn(
            "The cache of compiled kernels cannot be used, so each process compiles its own in a "
            f"temporary folder: {_process.unusable}"
        )
        _process.folder, _process.is_temporary = temporary_folder(), True
        yield _process.folder


def _path() -> Path:
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "gpugrad" / "cpu"


def home() -> Path | None:
    """Where compiled kernels are kept; None if there is no home."""
    with contextlib.suppress(RuntimeError):
        return _process.folder.path if _process.folder is not None else _path()
    return None


def cache() -> LibraryFolder | None:
    """The folder that other processes use, too; None before a kernel was loaded from it."""
    return None if _process.is_temporary else _process.folder


@functools.cache
def _headers() -> str:
    return "\0".join(f"{p.name}\0{p.read_text()}" for p in sorted(_HOME.glob("*.h")))


def _key(source: str, flags: Sequence[str]) -> str:
    compiler = _compiler()
    parts = (*FLAGS, *flags, *compiler.command, compiler.version, _processor(), _headers(), source)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _loaded(source: str, what: str, flags: Sequence[str], mode: int) -> ctypes.CDLL:
    """The library, from the cache if it is there, intact and loads; else compiled."""
    name = f"{_key(source, flags)}.so"
    try:
        for folder in _folders():
            try:
                if (library := folder.load(name, mode)) is not None:
                    return library
                _compile(source, what, flags, folder, name)
                if (library := folder.load(name, mode)) is not None:
                    return library
                _process.unusable = f"{folder.path / name} cannot be loaded"
            except OSError as error:  # read-only, or full
                _process.unusable = str(error)
    except OSError as error:
        _process.unusable = str(error)
    raise _BrokenError(f"the cache of compiled kernels: {_process.unusable}", for_all=True)


def _compile(source: str, what: str, flags: Sequence[str], to: LibraryFolder, name: str) -> None:
    compiler = _compiler()
    with to.build() as folder, compiling(f"{what} with {compiler.name}"):
        text, library = folder / "kernels.cpp", folder / "kernels.so"
        text.write_text(source)
        _run(
            [*compiler.command, *FLAGS, *flags, f"-I{_HOME}", str(text), "-o", str(library)],
            f"{compiler.name}, compiling {what},",
            folder=str(folder),
        )
        to.store(library, name)
