"""Compiles kernels with NVRTC for any architecture, without a GPU, and reads the compiler's report.

Needs the wheels ``nvidia-cuda-nvrtc`` and ``nvidia-cuda-runtime`` (for the headers) of CUDA 12 or
13, or a CUDA toolkit. No driver is needed.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpugrad.errors import KernelError
from gpugrad.kernels.runtime.launch import OPTIONS


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel."""

    cubin: bytes
    ptx: str
    registers: int  # of a thread
    spilled: int  # bytes of register spills


def _search_paths() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    homes = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    return [*homes, Path("/usr/local/cuda")]


@functools.cache
def _library() -> ctypes.CDLL | None:
    for place in _search_paths():
        for path in sorted(place.glob("**/libnvrtc.so*")):
            # NVRTC opens its builtins by name. CUDA 13's wheel has no RUNPATH to find them beside
            # itself, so they are loaded first.
            for builtins in path.parent.glob("libnvrtc-builtins.so*"):
                ctypes.CDLL(str(builtins))
            return ctypes.CDLL(str(path))
    return None


@functools.cache
def _headers() -> tuple[str, ...]:
    # in the order of _library: of two toolkits the library and the headers are the same one's
    paths = [p for d in _search_paths() for p in sorted(d.glob("**/include/cuda_fp16.h"))]
    folders = [p.parent for p in paths]
    return tuple(f"-I{p}" for p in dict.fromkeys(folders))


@functools.cache
def unavailable() -> str:
    """Why kernels cannot be compiled here, or an empty string if they can."""
    if _library() is None or not _headers():
        return "needs nvidia-cuda-nvrtc and nvidia-cuda-runtime: pip install 'gpugrad[compile]'"
    return ""


def compile_for(architecture: str, source: str, name: str) -> Compiled:
    """Compile one kernel for one architecture.

    Args:
        architecture: ``"sm_90"``.
        source: CUDA C++ as returned by `gpugrad.kernels.runtime.launch.full_source`.
        name: the kernel with its template arguments: ``"softmax<float, 256>"``.
    """
    return compile_all(architecture, source, [name])[name]


def compile_all(architecture: str, source: str, names: Sequence[str]) -> dict[str, Compiled]:
    """Compile several kernels of one source together, which is much faster than one by one.

    Returns:
        By name, each kernel's assembly text and report; `cubin` contains all of them.
    """
    library = _library()
    if library is None:
        raise KernelError(f"{names[0]} cannot be compiled: gpugrad {unavailable()}.")
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    for name in names:
        library.nvrtcAddNameExpression(program, name.encode())
    options = (*OPTIONS, f"-arch={architecture}", "--ptxas-options=-v", *_headers())
    encoded = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    failed = library.nvrtcCompileProgram(program, len(options), encoded)
    try:
        log = _text(library, program, "ProgramLog")
        if failed:
            lines = [line for line in log.splitlines() if line.strip()]
            what = names[0] if len(names) == 1 else f"One of {len(names)} kernels"
            raise KernelError(
                f"{what} does not compile for {architecture}:\n" + "\n".join(lines[:20])
            )
        reports = dict(_REPORT.findall(log))
        texts = {
            e.partition("(")[0].strip(): e
            for e in _text(library, program, "PTX").split(".entry")[1:]
        }
        cubin = _bytes(library, program, "CUBIN")
        mangled = {name: _mangled_name(library, program, name) for name in names}
        return {
            name: Compiled(
                cubin,
                texts[symbol],
                int(re.findall(r"Used (\d+) registers", reports[symbol])[0]),
                sum(int(n) for n in re.findall(r"(\d+) bytes spill", reports[symbol])),
            )
            for name, symbol in mangled.items()
        }
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


_REPORT = re.compile(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry|\Z)", re.DOTALL)
"""A kernel's mangled name and its part of the log."""


def _mangled_name(library: ctypes.CDLL, program: ctypes.c_void_p, name: str) -> str:
    mangled = ctypes.c_char_p()
    library.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(mangled))
    return (mangled.value or b"").decode()


def _bytes(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw


def _text(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    return _bytes(library, program, what).rstrip(b"\0").decode()
