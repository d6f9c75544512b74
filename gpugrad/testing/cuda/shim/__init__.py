"""Run CUDA kernels on the CPU: the source as NVRTC gets it, compiled by g++ against a shim.

`cudashim.h` says what is modelled. Arrays are copied into memory between two pages that may be
neither read nor written: they end where one begins, or begin where one ends in the last schedule.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import mmap
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpugrad.kernels.runtime import launch

__all__ = [
    "SCHEDULES", "Module", "ShimError", "compile_module", "deferred", "joined", "module", "running",
    "unavailable",
]  # fmt: skip

SCHEDULES = ("round robin", "warp by warp", "backwards")
"""The orders in which the threads of a block run; a race shows in some of them only."""

_running = threading.Lock()  # a library holds the state of the one block that runs
_HOME = Path(__file__).parent
_ALIGNED = 16  # the widest access of a thread
_PAGE = mmap.PAGESIZE
_NONE, _ALL = 0, 3  # what a page may be used for
_FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-w", "-fwrapv", "-ffp-contract=off")
_LINKER = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()  # in a third of the time of ld


class ShimError(AssertionError):
    """A kernel that does not compile, deadlocks, or reads or writes outside of its arrays."""


@functools.cache
def unavailable() -> str:
    """Why kernels cannot be run on this CPU, or an empty string if they can."""
    return "" if _compiler() else "needs g++ (or another C++ compiler in CXX)"


def _compiler() -> str | None:
    return shutil.which(os.environ.get("CXX", "g++"))


class Module:
    """Kernels of one source, ready to run. Made by `compile_module`."""

    def __init__(self, library: ctypes.CDLL, names: Sequence[str]) -> None:
        self._library = library
        self._position = {name: k for k, name in enumerate(names)}

    def run(
        self, name: str, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any],
        *, shared: int = 0, schedule: str = "round robin",
    ) -> None:  # fmt: skip
        """Run one kernel once; arrays among `args` are written to in place.

        Args:
            name: as it was given to `compile_module`.
            grid, block: of threads: one to three numbers.
            args: NumPy arrays, which become pointers to their first element, None for a null
                pointer, and NumPy scalars of exactly the types of the parameters.
            shared: bytes of dynamic shared memory.
            schedule: one of `SCHEDULES`.

        Raises:
            ShimError: arguments that do not fit, a deadlock, or what is read or written outside
                of an array.
        """
        k = self._position[name]
        at_end = schedule != SCHEDULES[-1]
        copies = {id(a): _Guarded(a, at_end) for a in args if isinstance(a, np.ndarray)}
        guarded = [copies.get(id(a)) for a in args]  # one that is given twice is one memory
        held = [
            np.array(
                [g.pointer if g else 0 if a is None else a], np.uintp if g or a is None else None
            )
            for a, g in zip(args, guarded, strict=True)
        ]
        self._fit(name, k, [h.itemsize for h in held])
        run = getattr(self._library, f"shim_run_{k}")
        run.restype = ctypes.c_char_p
        pointers = (ctypes.c_void_p * len(held))(*(h.ctypes.data for h in held))
        size = (ctypes.c_uint * 6)(*launch.three(grid), *launch.three(block))
        with _running:
            wrong = run(pointers, size, ctypes.c_size_t(shared), SCHEDULES.index(schedule))
            fault = _runtime().shim_fault() or 0
        given = [(k, g) for k, g in enumerate(guarded) if g]
        if wrong:
            beside = [f", beside argument {k}" for k, g in given if g.is_beside(fault)]
            raise ShimError(f"{name} ({schedule}): {wrong.decode()}{''.join(beside[:1])}.")
        for k, g in given:
            if not g.unharmed():
                raise ShimError(f"{name} ({schedule}): wrote outside of argument {k}.")
        for _, g in given:
            g.give_back()

    def _fit(self, name: str, k: int, given: list[int]) -> None:
        sizes = (ctypes.c_size_t * 64)()
        n = getattr(self._library, f"shim_sizes_{k}")(sizes)
        if list(sizes[:n]) != given:
            raise ShimError(
                f"{name}: its parameters have {list(sizes[:n])} bytes, the arguments {given}."
            )


class running:
    """While its ``with`` statement runs, kernels that are launched on NumPy arrays run here.

    Args:
        schedule: one of `SCHEDULES`.

    >>> from gpugrad.testing.cuda import shim
    >>> with shim.running("backwards"):
    ...     pass  # call a launcher of gpugrad.kernels on NumPy arrays
    """

    def __init__(self, schedule: str = "round robin") -> None:
        self._schedule = schedule

    def __enter__(self) -> running:
        self._before = launch.on_host
        launch.on_host = self._run
        return self

    def __exit__(self, *exc: object) -> None:
        launch.on_host = self._before

    def _run(
        self, source: str, name: str, grid: Any, block: Any, args: Sequence[Any], shared: int
    ) -> None:
        module(source, name).run(name, grid, block, args, shared=shared, schedule=self._schedule)


class deferred:
    """While its ``with`` statement runs, kernels are written down; `run` compiles all at once.

    That is a hundred times as fast as one at a time. Results are there after `run`; or after the
    same calls are made again while `running`, which finds them compiled.

    >>> from gpugrad.testing.cuda import shim
    >>> with shim.deferred() as launches:
    ...     pass  # call launchers of gpugrad.kernels on NumPy arrays
    >>> launches.run("backwards")
    """

    def __init__(self) -> None:
        self.launches: list[tuple[Any, ...]] = []

    def __enter__(self) -> deferred:
        self._before = launch.on_host
        launch.on_host = lambda *given: self.launches.append(given)
        return self

    def __exit__(self, *exc: object) -> None:
        launch.on_host = self._before

    @property
    def source(self) -> str:
        """The sources of all, as one."""
        return joined([source for source, *_ in self.launches])

    @property
    def names(self) -> list[str]:
        """The names of the kernels."""
        return list(dict.fromkeys(name for _, name, *_ in self.launches))

    def run(self, schedule: str = "round robin") -> None:
        """Run what was written down, in order; it may be run again, on other values."""
        self.compile()
        for source, name, grid, block, args, shared in self.launches:
            module(source, name).run(name, grid, block, args, shared=shared, schedule=schedule)

    def compile(self) -> None:
        """Compile all, once."""
        if self.launches and (self.launches[0][:2] not in _ready):
            made = compile_module(self.source, self.names)
            _ready.update({(source, name): made for source, name, *_ in self.launches})


_ready: dict[tuple[str, str], Module] = {}  # what was compiled together


def joined(sources: Sequence[str]) -> str:
    """Several sources as one; of what stands before the last guard's end, each text once."""
    parts = [source.rpartition("#endif\n") for source in sources]
    heads, texts = dict.fromkeys(h + e for h, e, _ in parts), dict.fromkeys(t for _, _, t in parts)
    return "".join((*heads, *texts))


def module(source: str, name: str) -> Module:
    """`compile_module` of one kernel, which is kept."""
    if (source, name) not in _ready:
        _ready[source, name] = compile_module(source, [name])
    return _ready[source, name]


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class _Guarded:
    """A copy of an array's memory between two pages that fault, aligned as the array is."""

    def __init__(self, array: np.ndarray[Any, Any], at_end: bool) -> None:
        low, high = np.lib.array_utils.byte_bounds(array)
        if array.size == 0:
            low = high = array.ctypes.data
        self._array, self._low, self._bytes = array, low, high - low
        pages = -(-(self._bytes + _ALIGNED) // _PAGE)
        self._memory = np.frombuffer(mmap.mmap(-1, (pages + 2) * _PAGE), np.uint8)
        self._memory[:] = 0xFF
        self._base, self._last = self._memory.ctypes.data, (pages + 1) * _PAGE
        room = self._last - _PAGE - self._bytes
        beside = low % _ALIGNED  # how far from where the widest access may be
        self._start = _PAGE + ((room - beside) // _ALIGNED * _ALIGNED if at_end else 0) + beside
        self._own()[...] = self._outside()
        self.pointer = self._base + self._start + (array.ctypes.data - low)
        self._let(_NONE)

    def _let(self, use: int) -> None:
        for page in (self._base, self._base + self._last):
            if _libc().mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), use):
                raise OSError("mprotect")

    def is_beside(self, address: int) -> bool:
        """Whether an address is in the memory that is kept for it."""
        return 0 <= address - self._base < self._memory.size

    def _own(self) -> np.ndarray[Any, Any]:
        return self._memory[self._start : self._start + self._bytes]

    def _outside(self) -> np.ndarray[Any, Any]:
        held = (ctypes.c_uint8 * self._bytes).from_address(self._low)
        return np.frombuffer(memoryview(held), np.uint8) if self._bytes else np.empty(0, np.uint8)

    def unharmed(self) -> bool:
        """Whether what lies between it and the two pages is as it was."""
        before = self._memory[_PAGE : self._start]
        after = self._memory[self._start + self._bytes : self._last]
        return bool((before == 0xFF).all() and (after == 0xFF).all())

    def give_back(self) -> None:
        if self._array.flags.writeable:
            self._outside()[...] = self._own()


def compile_module(source: str, names: Sequence[str]) -> Module:
    """Compile CUDA source for the CPU, or find what was compiled from it before.

    Args:
        source: as NVRTC gets it. ``extern __shared__ T name[];`` is understood.
        names: of its kernels, as they would be called: ``"softmax<float, 256>"``.

    Raises:
        ShimError: the compiler refuses it; its first lines are in the message.

    >>> from gpugrad.testing.cuda import shim
    >>> source = '''
    ... __global__ void twice(const float* x, float* y, int n) {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) y[i] = 2 * x[i];
    ... }'''
    >>> module = shim.compile_module(source, ["twice"])
    >>> x = np.arange(5, dtype=np.float32)
    >>> y = np.empty_like(x)
    >>> module.run("twice", 2, 4, [x, y, np.int32(5)])
    >>> y.tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    text = _translated(source)
    for k, name in enumerate(names):
        text += (
            f'\nextern "C" const char* shim_run_{k}(void** args, const unsigned* size, '
            "size_t shared, int schedule) {\n"
            f"  return shim::launch([](void** a) {{ shim::call({name}, a); }}, args, size, shared, "
            "schedule, __start_shim_shared, __stop_shim_shared);\n}\n"
            f'extern "C" int shim_sizes_{k}(size_t* out) {{ return shim::sizes({name}, out); }}\n'
        )
    _runtime()
    return Module(ctypes.CDLL(str(_built(text, _headers_for))), list(names))


@functools.cache
def _runtime() -> ctypes.CDLL:
    """The compiled cudashim.cpp. Loaded for all, as the kernels' libraries are linked to it."""
    text = (_HOME / "cudashim.cpp").read_text()
    library = ctypes.CDLL(str(_built(text, lambda compiler: _HOME)), mode=ctypes.RTLD_GLOBAL)
    library.shim_fault.restype = ctypes.c_void_p
    return library


def _translated(source: str) -> str:
    dynamic = r"extern\s+__shared__\s+(?:__align__\(\d+\)\s*)?([\w ]+?)\s+(\w+)\s*\[\s*\]\s*;"
    return '#include "cudashim.h"\n' + re.sub(
        dynamic, r"\1* \2 = (\1*)shim::dynamic_shared;", source
    )


@functools.cache
def _headers() -> str:
    return "".join(p.read_text() for p in sorted(_HOME.glob("*.h")))


def _cache() -> Path:
    """A directory of this user's own, as what lies there is loaded and run."""
    path = Path(tempfile.gettempdir()) / f"gpugrad-shim-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_uid != os.getuid() or path.stat().st_mode & 0o022:
        path = Path(tempfile.mkdtemp(prefix="gpugrad-shim-"))
    return path


def _key(compiler: str, text: str = "") -> str:
    parts = (compiler, *_FLAGS, _headers(), text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@functools.cache
def _headers_for(compiler: str) -> Path:
    """Where the headers are, compiled: a third of the time of a small kernel goes into them."""
    folder = _cache() / _key(compiler)
    if folder.exists():
        return folder
    made = Path(tempfile.mkdtemp(dir=_cache()))
    for header in _HOME.glob("*.h"):
        shutil.copy(header, made)
    name = str(made / "cudashim.h")
    command = [compiler, *_FLAGS, "-x", "c++-header", name, "-o", f"{name}.gch"]
    subprocess.run(command, capture_output=True, check=False)  # else they are read as they are
    try:
        made.replace(folder)
    except OSError:  # another process has been faster
        shutil.rmtree(made)
    return folder


def _built(text: str, headers: Callable[[str], Path]) -> Path:
    compiler = _compiler()
    if compiler is None:
        raise ShimError(f"Kernels cannot be run on this CPU: it {unavailable()}.")
    built = _cache() / f"{_key(compiler, text)}.so"
    if built.exists():
        return built
    with tempfile.TemporaryDirectory() as folder:
        code, made = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        code.write_text(text)
        command = [
            compiler,
            *_FLAGS,
            *_LINKER,
            f"-I{headers(compiler)}",
            str(code),
            "-o",
            str(made),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = "\n".join(done.stderr.splitlines()[:20])
            raise ShimError(f"The compiler refuses the kernel source:\n{lines}")
        moved = built.with_suffix(f".{os.getpid()}")
        shutil.move(made, moved)
        moved.replace(built)  # at once, as other processes may be building it too
    return built
