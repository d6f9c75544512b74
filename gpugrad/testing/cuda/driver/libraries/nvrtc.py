"""NVRTC: g++ and the shim compile the source; the "cubin" is a text that names the result.

`native/modules.cpp` reads that text. With the setting ``null_work`` nothing is compiled.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from dataclasses import dataclass, field
from typing import Any

from gpugrad.testing.cuda.driver import ahead, control
from gpugrad.testing.cuda.driver.libraries import Library, view, write
from gpugrad.testing.cuda.shim.build import ShimError, Source, build_kernels, build_runtime

LIBRARY = Library("libnvrtc.so.13", failed=11, missing=11)
_COMPILATION_FAILED = 6
_LENIENT = 8  # CuPy's kernels use barriers after threads have returned; see cudashim.cpp
_BOUNDS = r"(?:__launch_bounds__\([^)]*\)\s+)?"  # stands on either side of the type
_KERNEL = re.compile(rf'extern\s+"C"\s+__global__\s+{_BOUNDS}void\s+{_BOUNDS}(\w+)\s*\(')

_CUPYS = re.compile(r"__global__ void cupy_\w+\((.*?)\) {")
_ARRAY = re.compile(r"CArray<(?:thrust::)?(.+), (\d+), [01], [01]>")
_BYTES = {
    "bool": 1, "signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2, "float16": 2,
    "int": 4, "unsigned int": 4, "float": 4, "complex<double>": 16,
}  # fmt: skip
"""Of CuPy's types that do not take 8."""


@dataclass
class _Program:
    source: str
    names: list[str] = field(default_factory=list)
    lowered: dict[str, Any] = field(default_factory=dict)
    log: bytes = b""
    image: bytes = b""


_programs: dict[int, _Program] = {}
_numbers = itertools.count(1)


def _text(pointer: int) -> str:
    return (ctypes.cast(pointer, ctypes.c_char_p).value or b"").decode()


def _macros(source: str, options: list[bytes]) -> str:
    """The definitions by options ``-DNAME=VALUE`` that a source uses."""
    found = (re.fullmatch(r"-D(\w+)=?(.*)", option.decode()) for option in options)
    used = (m for m in found if m and re.search(rf"\b{m[1]}\b", source))
    return "".join(f"#define {m[1]} {m[2] or 1}\n" for m in used)


def _compile(program: _Program) -> bytes:
    names = program.names or _KERNEL.findall(program.source)
    program.lowered = {name: ctypes.create_string_buffer(name.encode()) for name in names}
    source = Source(program.source, tuple(names), ahead.prelude_of(program.source))
    schedule = _LENIENT if ahead.is_cupys(program.source) else 0
    lines: list[object] = ["gpugrad host kernels", schedule, "", "", 0]
    if names and control.get_setting("null_work"):
        ahead.note(source)
    elif names:
        compiled = build_kernels(source)
        lines[2:] = [build_runtime(), compiled.library, compiled.first]
    lines += [name + _arrays(program.source) for name in names]
    return "\n".join(map(str, lines)).encode() + b"\n\0"


def _arrays(source: str) -> str:
    """A kernel's line for `native/modules.cpp`: the array parameters of one of CuPy's kernels."""
    found = _CUPYS.search(source) if ahead.is_cupys(source) else None
    parameters = re.split(r", (?![^<]*>)", found[1]) if found else ()
    arrays = ((place, _ARRAY.search(text)) for place, text in enumerate(parameters))
    return "".join(f"\t{place} {_BYTES.get(a[1], 8)} {a[2]}" for place, a in arrays if a)


@LIBRARY.function("nvrtcVersion", "pp")
def version(major: int, minor: int) -> None:
    """CUDA 13.0."""
    write(major, "i4", 13)
    write(minor, "i4", 0)


@LIBRARY.function("nvrtcGetErrorString", "i")
def error_string(code: int) -> int:
    """The name of a status."""
    return ctypes.addressof(_COMPILATION if code == _COMPILATION_FAILED else _INTERNAL)


_COMPILATION = ctypes.create_string_buffer(b"NVRTC_ERROR_COMPILATION")
_INTERNAL = ctypes.create_string_buffer(b"NVRTC_ERROR_INTERNAL_ERROR")


@LIBRARY.function("nvrtcCreateProgram", "pppipp")
def create_program(
    to: int, source: int, name: int, headers: int, texts: int, includes: int
) -> None:
    """Keep the source."""
    number = next(_numbers)
    _programs[number] = _Program(_text(source))
    write(to, "u8", number)


@LIBRARY.function("nvrtcDestroyProgram", "p")
def destroy_program(pointer: int) -> None:
    """Forget the source."""
    del _programs[int(view(pointer, "u8")[()])]


@LIBRARY.function("nvrtcAddNameExpression", "pp")
def add_name_expression(program: int, name: int) -> None:
    """Ask for a kernel with its template arguments."""
    _programs[program].names.append(_text(name))


@LIBRARY.function("nvrtcCompileProgram", "pip")
def compile_program(number: int, options: int, texts: int) -> int:
    """Compile with g++, or find the result in the shim's cache."""
    program = _programs[number]
    given = ctypes.cast(texts, ctypes.POINTER(ctypes.c_char_p))[:options]
    program.source = _macros(program.source, given) + program.source
    try:
        program.image = _compile(program)
    except ShimError as error:
        program.log = str(error).encode()
        return _COMPILATION_FAILED
    return 0


@LIBRARY.function("nvrtcGetLoweredName", "ppp")
def lowered_name(program: int, name: int, to: int) -> None:
    """A kernel's name in the module; here that is the name expression itself."""
    write(to, "u8", ctypes.addressof(_programs[program].lowered[_text(name)]))


def _size(number: int, to: int) -> None:
    write(to, "u8", len(_programs[number].image))


def _copy(number: int, to: int) -> None:
    image = _programs[number].image
    ctypes.memmove(to, image, len(image))


for _symbol in ("CUBIN", "PTX"):
    LIBRARY.function(f"nvrtcGet{_symbol}Size", "pp")(_size)
    LIBRARY.function(f"nvrtcGet{_symbol}", "pp")(_copy)


@LIBRARY.function("nvrtcGetProgramLogSize", "pp")
def log_size(number: int, to: int) -> None:
    """The bytes of the compiler's messages."""
    write(to, "u8", len(_programs[number].log) + 1)


@LIBRARY.function("nvrtcGetProgramLog", "pp")
def log(number: int, to: int) -> None:
    """The compiler's messages."""
    text = _programs[number].log + b"\0"
    ctypes.memmove(to, text, len(text))
