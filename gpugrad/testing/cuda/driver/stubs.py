"""Generates stand-ins for NVIDIA's shared libraries, whose functions Python implements.

CuPy's modules are linked to libraries such as libcublas.so.13 by symbol and version. A stub library
defines the symbols that they need; each function looks up its implementation in `libraries`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from gpugrad.testing.cuda.driver.libraries import SYMBOLS

_HEADER = Path(__file__).parent / "native" / "stub.h"
_FACES = ("libcudart.so.13", "libcuda.so.1", "libcublasLt.so.13", "libnvJitLink.so.13")
"""Other names of libgpugrad_cuda.so; CuPy's loader asks for the last two."""
_UNUSED = "libgpugrad_unused.so"
"""Functions of the CUDA runtime that CuPy's module names and the driver does not have."""


def build_stubs(site: Path, library: Path, runtime: Path, compile_all: Callable[..., None]) -> None:
    """Compile the stub libraries into `library`.

    Args:
        site: the directory with CuPy.
        library: where libgpugrad_cuda.so is.
        runtime: CuPy's compiled runtime module.
        compile_all: runs commands in parallel.
    """
    needed = _needed(site)
    for name, symbols in SYMBOLS.items():
        needed.setdefault(name, set()).update(symbols)
    driver = library / "libgpugrad_cuda.so"
    defined = set(re.findall(r" [TW] (cu\w+)", _nm("--defined-only", driver)))
    unused = set(re.findall(r" U (cuda\w+)", _nm("-u", runtime))) - defined
    sources = {name: stub_source(name, symbols) for name, symbols in needed.items()}
    sources[_UNUSED] = "".join(f"int {s}() {{ return 801; }}\n" for s in sorted(unused))
    sources |= dict.fromkeys(_FACES, "")
    commands = []
    for name, source in sources.items():
        path, versions = library / f"{name}.c", library / f"{name}.map"
        path.write_text(source)
        versions.write_text(f"{name} {{ global: *; }};\n")
        script = [] if name == _UNUSED else [f"-Wl,--version-script={versions}"]
        commands.append(
            [
                "gcc",
                "-O1",
                "-shared",
                "-fPIC",
                "-w",
                path,
                *script,
                f"-Wl,-soname,{name}",
                "-Wl,--no-as-needed",
                driver,
                "-Wl,-rpath,$ORIGIN",
                "-o",
                library / name,
            ]
        )
    compile_all(commands)
    for path in (*library.glob("*.c"), *library.glob("*.map")):
        path.unlink()


def stub_source(library: str, symbols: Sequence[str] | set[str]) -> str:
    """The C source of a stub library.

    >>> stub_source("libcurand.so.10", ["curandGetVersion"]).splitlines()[-1]
    'STUB("libcurand.so.10", curandGetVersion)'
    """
    lines = [f'STUB("{library}", {symbol})\n' for symbol in sorted(symbols)]
    return _HEADER.read_text() + "".join(lines)


def _nm(option: str, path: Path) -> str:
    result = subprocess.run(["nm", option, path], capture_output=True, text=True, check=True)
    return result.stdout


def _needed(site: Path) -> dict[str, set[str]]:
    """By library: the symbols that CuPy's modules import from it."""
    needed: dict[str, set[str]] = {}
    for module in site.glob("**/*.so"):
        result = subprocess.run(
            ["nm", "-D", "-u", module], capture_output=True, text=True, check=True
        )
        for symbol, library in re.findall(r" U (cu\w+)@(libcu\w+\.so\.\d+)", result.stdout):
            if library in SYMBOLS:
                needed.setdefault(library, set()).add(symbol)
    return needed
