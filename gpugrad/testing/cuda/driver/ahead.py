"""Compiles the kernels of a program before it runs, many with one call of g++.

On null devices a program runs without kernels. What it would compile is written to a directory;
then `compile_all` compiles that. A kernel takes 10 ms so, and 170 ms when the program needs it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpugrad.testing.cuda.driver.place import HOME, base
from gpugrad.testing.cuda.shim.build import Prelude, Source, build_together

_VARIABLE = "GPUGRAD_CUDA_WANTED"
_TOGETHER = 64  # kernels of a library
_HEADERS = base() / "wheels" / "cupy" / "_core" / "include"
_CUPYS = Prelude(
    "cupy_kernel.h",
    HOME / "headers",
    (f"-I{_HEADERS}", *(f"-I{_HEADERS}/cupy/_cccl/{part}" for part in ("thrust", "libcudacxx"))),
)
_OURS = Prelude()


def is_cupys(text: str) -> bool:
    """Whether CuPy generated a source."""
    return "<cupy/" in text


def prelude_of(text: str) -> Prelude:
    """The header that comes before a source."""
    return _CUPYS if is_cupys(text) else _OURS


def note(source: Source) -> None:
    """Remember a source that null devices do not compile, if `prepare` asked for that."""
    if folder := os.environ.get(_VARIABLE):
        content = json.dumps([source.text, source.names])
        file = Path(folder, f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.json")
        if not file.exists():
            file.write_text(content)


def collecting(folder: str) -> dict[str, str]:
    """The environment of a process on null devices whose sources `note` writes to a directory."""
    return {"GPUGRAD_CUDA_NULL_WORK": "1", _VARIABLE: folder}


def compile_all(folder: Path) -> int:
    """Compile what `note` wrote to a directory; the number of sources."""
    sources: dict[Prelude, list[Source]] = {_CUPYS: [], _OURS: []}
    for file in sorted(folder.glob("*.json")):
        text, names = json.loads(file.read_text())
        sources[prelude_of(text)].append(Source(text, tuple(names), prelude_of(text)))
    batches = [
        each[i : i + _TOGETHER] for each in sources.values() for i in range(0, len(each), _TOGETHER)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(build_together, batches))
    return sum(map(len, sources.values()))


def prepare(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command on null devices, then compile its kernels; the number of sources."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {**environment, **collecting(folder)}
        subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, check=False)
        return compile_all(Path(folder))
