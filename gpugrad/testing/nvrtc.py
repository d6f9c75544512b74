"""Compile kernels with NVRTC where there is no GPU, for any architecture, and read its report.

Needs the wheels ``nvidia-cuda-nvrtc`` and ``nvidia-cuda-runtime`` (its headers) of CUDA 12 or 13,
or a CUDA toolkit. No driver is needed.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from gpugrad.errors import KernelError
from gpugrad.kernels.launch import OPTIONS

__all__ = ["Compiled", "compile_for", "unavailable"]


@dataclass(frozen=True)
class Compiled:
    """A kernel in machine code.

    Attributes:
        cubin: the machine code.
        ptx: the assembly text.
        registers: of one thread.
        spilled: bytes that did not fit into registers.
    """

    cubin: bytes
    ptx: str
    registers: int
    spilled: int


def _places() -> list[Path]:
    found = importlib.util.find_spec("nvidia")
    homes = [Path(p) for p in (found.submodule_search_locations or ())] if found else []
    return [*homes, Path("/usr/local/cuda")]


@functools.cache
def _library() -> ctypes.CDLL | None:
    for place in _places():
        for path in sorted(place.glob("**/libnvrtc.so*")):
            if "builtins" not in path.name and "alt" not in path.name:
                return ctypes.CDLL(str(path))
    return None


@functools.cache
def _headers() -> tuple[str, ...]:
    found = [p.parent for place in _places() for p in place.glob("**/include/cuda_fp16.h")]
    return tuple(f"-I{p}" for p in dict.fromkeys(found))


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
        source: CUDA C++, as `gpugrad.kernels.launch.code_of` gives it.
        name: of the kernel with its template arguments: ``"softmax<float, 256>"``.

    Raises:
        KernelError: the compiler refuses it, in its own lines.
    """
    library = _library()
    if library is None:
        raise KernelError(f"{name} cannot be compiled: it {unavailable()}.")
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    library.nvrtcAddNameExpression(program, name.encode())
    options = (*OPTIONS, f"-arch={architecture}", "--ptxas-options=-v", *_headers())
    given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    failed = library.nvrtcCompileProgram(program, len(options), given)
    try:
        log = _text(library, program, "ProgramLog")
        if failed:
            lines = [line for line in log.splitlines() if line.strip()]
            raise KernelError(
                f"{name} does not compile for {architecture}:\n" + "\n".join(lines[:20])
            )
        spills = [int(n) for n in re.findall(r"(\d+) bytes spill", log)]
        registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
        cubin = _bytes(library, program, "CUBIN")
        return Compiled(cubin, _text(library, program, "PTX"), max(registers), sum(spills))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _bytes(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    held = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, held)
    return held.raw


def _text(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    return _bytes(library, program, what).rstrip(b"\0").decode()
