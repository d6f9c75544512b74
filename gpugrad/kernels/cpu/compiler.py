"""Compiles C++ into shared libraries at first need, and keeps them in a private folder on disk.

`load` never raises: without a compiler it returns None, and NumPy computes. If something breaks
(the compiler fails or hangs, the disk is full or read-only), one warning of the process says why.

A library's file name is a hash of all that its code depends on: the text, the headers beside this
module, the flags, the compiler and, because of ``-march=native``, the processor. A SHA-256 at the
end of the file, behind what the loader reads, tells a damaged file, which is compiled again.

====================  =============================================================
environment variable  meaning
====================  =============================================================
GPUGRAD_CPU_KERNELS   0: no C kernels; always: also for programs that are too small to gain
CXX                   the compiler; by default g++, clang++ or c++, whichever is found
XDG_CACHE_HOME        the folder that holds gpugrad/cpu; by default ~/.cache
====================  =============================================================
"""

from __future__ import annotations

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
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from gpugrad.core.forking import new_lock

FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-shared",
    "-fPIC",
    "-pthread",
    "-w",
)
_SECONDS = 60  # that the compiler may take
_BYTES = 1 << 28  # of the libraries in the cache, which then loses those not used for longest
_HOME = Path(__file__).parent
_DIGEST = hashlib.sha256().digest_size


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
        self.libraries: dict[str, ctypes.CDLL | None] = {}
        self.broken = ""  # why no library can be compiled
        self.warned = False


_process = _Process()


def load(
    source: str, *, what: str, shared: bool = False, flags: Sequence[str] = ()
) -> ctypes.CDLL | None:
    """The library of a C++17 text, compiled or from the cache; None if NumPy has to compute.

    Args:
        source: the text. It may include the headers of this folder.
        what: what it computes, for the warning if the compiler refuses it.
        shared: whether libraries that are loaded later may call its functions.
        flags: more of them for the compiler.
    """
    if source in _process.libraries:
        return _process.libraries[source]
    with _process.lock:
        if source not in _process.libraries:
            _process.libraries[source] = _load(source, what, shared, flags)
        return _process.libraries[source]


def setting() -> str:
    """``"0"``, ``"1"`` or ``"always"``: what GPUGRAD_CPU_KERNELS says."""
    return os.environ.get("GPUGRAD_CPU_KERNELS", "1")


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
    if _declined() or _process.broken:
        return None
    try:
        path = _compiled(source, what, flags)
        mode = ctypes.RTLD_GLOBAL if shared else ctypes.RTLD_LOCAL
        try:
            return ctypes.CDLL(str(path), mode=mode)
        except OSError as error:
            raise _BrokenError(f"{path} cannot be loaded: {error}", for_all=True) from None
    except _BrokenError as error:
        if error.for_all:
            _process.broken = str(error)
        if not _process.warned:
            _process.warned = True
            scope = "C kernels are off" if error.for_all else f"There is no C kernel for {what}"
            warnings.warn(
                f"{scope}, NumPy computes instead: {error}. GPUGRAD_CPU_KERNELS=0 turns C kernels "
                "off without a warning.",
                RuntimeWarning,
                stacklevel=2,
            )
        return None


def _declined() -> str:
    """Why C kernels are not even tried; an empty string if they are."""
    if setting() == "0":
        return "GPUGRAD_CPU_KERNELS=0"
    if not sys.platform.startswith("linux"):
        return f"they are untested on {platform.system() or sys.platform}"
    return "" if _command() else "no C++ compiler is installed (g++ or clang++, or CXX)"


@functools.cache
def _command() -> tuple[str, ...]:
    for words in (shlex.split(os.environ.get("CXX", "")), ["g++"], ["clang++"], ["c++"]):
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
    changing = ("processor", "cpu MHz", "bogomips", "apicid", "initial apicid", "core id")
    lines = [line for line in text.splitlines() if line.partition("\t")[0].strip() not in changing]
    return "\n".join([platform.machine(), platform.libc_ver()[1], *lines])


def _vectors() -> str:
    flags = _processor().split()
    names = {"avx512f": "AVX-512", "avx2": "AVX2", "sve": "SVE", "asimd": "NEON"}
    return next((name for flag, name in names.items() if flag in flags), platform.machine())


# ---- the cache --------------------------------------------------------------------------


def _cache() -> Path:
    """A folder that only this user can write to, because libraries in it are loaded."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    path = (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "gpugrad" / "cpu"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = path.stat()
    if state.st_uid != os.geteuid():
        raise _BrokenError(f"{path} belongs to another user", for_all=True)
    if state.st_mode & 0o022:
        raise _BrokenError(f"others can write to {path}: run chmod 700 on it", for_all=True)
    return path


@functools.cache
def _headers() -> str:
    return "\0".join(f"{p.name}\0{p.read_text()}" for p in sorted(_HOME.glob("*.h")))


def _key(source: str, flags: Sequence[str]) -> str:
    compiler = _compiler()
    parts = (*FLAGS, *flags, *compiler.command, compiler.version, _processor(), _headers(), source)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _compiled(source: str, what: str, flags: Sequence[str]) -> Path:
    """The path of the compiled library, from the cache if it is there and intact."""
    try:
        path = _cache() / f"{_key(source, flags)}.so"
        if _is_intact(path):
            with contextlib.suppress(OSError):  # a cache that is read-only now
                os.utime(path)  # its last use
        else:
            _compile(source, what, flags, path)
            with contextlib.suppress(OSError):  # another process removes files, too
                _prune(path.parent)
        return path
    except (OSError, RuntimeError) as error:  # a RuntimeError: there is no home directory
        raise _BrokenError(f"the cache of compiled kernels: {error}", for_all=True) from None


def _is_intact(path: Path) -> bool:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(content[:-_DIGEST]).digest() == content[-_DIGEST:]


def _compile(source: str, what: str, flags: Sequence[str], path: Path) -> None:
    compiler = _compiler()
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="build-") as folder:
        text, library = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        text.write_text(source)
        _run(
            [*compiler.command, *FLAGS, *flags, f"-I{_HOME}", str(text), "-o", str(library)],
            f"{compiler.name}, compiling {what},",
            folder=folder,
        )
        content = library.read_bytes()
        library.write_bytes(content + hashlib.sha256(content).digest())
        library.replace(path)  # atomically: other processes may load or compile it too


def _prune(folder: Path) -> None:
    """Remove the libraries that were not used for longest, if all take too many bytes."""
    entries = [(entry, entry.stat()) for entry in os.scandir(folder) if entry.name.endswith(".so")]
    excess = sum(stat.st_size for _, stat in entries) - _BYTES
    for entry, stat in sorted(entries, key=lambda item: item[1].st_mtime):
        if excess <= 0:
            return
        excess -= stat.st_size
        os.unlink(entry.path)
