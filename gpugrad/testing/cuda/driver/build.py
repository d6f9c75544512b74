"""Builds the driver: CuPy from the package index, with one module compiled anew.

CuPy's wheel has the CUDA runtime linked into ``cupy_backends/cuda/api/runtime.so``. That module is
compiled again from CuPy's source distribution, against the driver. Nothing else of CuPy changes,
except that ``cupy.cuda.thrust``, which is compiled CUDA code, is replaced by `libraries/thrust.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from gpugrad.testing.cuda.driver import stubs
from gpugrad.testing.cuda.driver.place import CUPY, HOME, base, cache, overlay

_CUDA = "13.0.*"
_WHEELS = (
    f"cupy-cuda13x=={CUPY}",
    "cuda-pathfinder>=1.3.4,<2",
    "cython>=3.1,!=3.2.6,<4",
    f"nvidia-cuda-runtime=={_CUDA}",
    f"nvidia-cuda-crt=={_CUDA}",
    f"nvidia-cuda-profiler-api=={_CUDA}",
)
_SITE = ("cupy", "cupy_backends", "cupyx", "cuda")  # of the wheels: what the overlay has
_CONSTANTS = {
    "CUPY_CUDA_VERSION": 13000,
    "CUPY_HIP_VERSION": 0,
    "CUPY_USE_CUDA_PYTHON": 0,
    "CUPY_CUFFT_STATIC": False,
    "CUPY_DTYPE_UNSUPPORTED": False,
}
_RUNTIME = Path("cupy_backends", "cuda", "api")
_FLAGS = ("-O1", "-fPIC", "-w")


class BuildError(Exception):
    """Something that the build needs is missing; the message says what."""


def build() -> Path:
    """Build the driver unless it is in the cache, and return its directory.

    Raises:
        BuildError: the platform, a program or the network is missing.
    """
    target = overlay()
    if (target / "complete").exists():
        return target
    _check()
    started = time.monotonic()
    if not (base() / "complete").exists():
        _atomically(base(), _build_base)
    _atomically(target, _build_overlay)
    _say(f"done in {time.monotonic() - started:.0f} s")
    return target


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _check() -> None:
    if sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"):
        raise BuildError("it needs Linux on x86-64 or 64-bit ARM.")
    for program in ("g++", "nm"):
        if not shutil.which(program):
            raise BuildError(f"it needs {program}: install g++ and binutils.")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise BuildError("it needs Python.h: install Python's development headers.")


def _atomically(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a temporary directory beside the target, then move it there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        fill(folder)
        (folder / "complete").touch()
        if target.exists():
            shutil.rmtree(target)  # an interrupted build of an older version
        folder.replace(target)
    except OSError:
        if not (target / "complete").exists():  # else another process was faster
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: Sequence[str | Path], what: str, **keywords: object) -> str:
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **keywords
    )  # type: ignore[call-overload]
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines()
        errors = [line for line in lines if "rror" in line] or lines
        raise BuildError(f"{what} failed: {' '.join(errors[:3])}")
    return str(result.stdout)


# ---- what depends on the versions only


def _build_base(folder: Path) -> None:
    wheels = _download()
    _say("unpacking")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "wheels")
    with tarfile.open(_download_source()) as archive:
        archive.extractall(folder / "source", filter="data")
    source = folder / "source" / f"cupy-{CUPY}"
    _say("compiling CuPy's runtime module")
    constants = [f"--compile-time-env={name}={value}" for name, value in _CONSTANTS.items()]
    pyx = _RUNTIME / "runtime.pyx"
    _run(
        [sys.executable, "-m", "cython", "-3", *constants, pyx],
        "Cython",
        cwd=source,
        env={**os.environ, "PYTHONPATH": str(folder / "wheels"), "PYTHONWARNINGS": "ignore"},
    )
    _run(
        [
            "g++",
            *_FLAGS,
            "-fpermissive",
            "-x",
            "c++",
            "-c",
            _RUNTIME / "runtime.c",
            *_include(folder),
            "-I.",
            "-Icupy_backends",
            "-o",
            folder / "runtime.o",
        ],
        "g++",
        cwd=source,
    )
    shutil.rmtree(folder / "source")


def _include(folder: Path) -> list[str]:
    cuda = folder / "wheels" / "nvidia" / "cu13" / "include"
    return [f"-I{cuda}", f"-I{sysconfig.get_path('include')}"]


def _download() -> list[Path]:
    downloads = cache() / "downloads"
    _say(f"downloading CuPy {CUPY} and CUDA's headers (80 MB)")
    with tempfile.TemporaryDirectory() as folder:
        _pip([*_WHEELS, "--only-binary", ":all:"], Path(folder))
        downloads.mkdir(parents=True, exist_ok=True)
        paths = [downloads / path.name for path in sorted(Path(folder).iterdir())]
        for path in paths:
            shutil.move(Path(folder) / path.name, path)
    return paths


def _download_source() -> Path:
    path = cache() / "downloads" / f"cupy-{CUPY}.tar.gz"
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            # its set-up script insists on a CUDA toolkit, unless documentation is to be built
            _pip(["--no-binary", "cupy", f"cupy=={CUPY}"], Path(folder), READTHEDOCS="True")
            shutil.move(Path(folder) / path.name, path)
    return path


def _pip(arguments: Sequence[str], folder: Path, **variables: str) -> None:
    command: list[str | Path] = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["-d", folder]
    known = cache() / "downloads"
    if known.exists():
        command += ["--find-links", known]
    try:
        _run([*command, *arguments], "pip", env={**os.environ, **variables})
    except BuildError as error:
        if "No module named pip" in str(error):
            raise BuildError("it needs pip: python -m ensurepip.") from error
        raise BuildError(f"the package index did not answer or lacks a package: {error}") from error


# ---- what depends on the driver's sources


def _build_overlay(folder: Path) -> None:
    site, library = folder / "site", folder / "lib"
    library.mkdir()
    for name in _SITE:  # links, as CuPy has 3,000 files of 200 MB
        shutil.copytree(base() / "wheels" / name, site / name, copy_function=os.link)
    _say("compiling the driver")
    sources = sorted(HOME.glob("native/*.cpp"))
    flags = [*_FLAGS, "-std=c++17", *_include(base())]
    _in_parallel(
        [
            [str(w) for w in ("g++", *flags, "-c", source, "-o", library / f"{source.stem}.o")]
            for source in sources
        ]
    )
    objects = sorted(library.glob("*.o"))
    driver = library / "libgpugrad_cuda.so"
    _run(["g++", "-shared", *objects, "-Wl,-soname,libgpugrad_cuda.so", "-o", driver], "g++")
    for path in objects:
        path.unlink()
    _say("compiling the libraries' stubs")
    stubs.build_stubs(site, library, base() / "runtime.o", _in_parallel)
    _replace_modules(site, library)


def _replace_modules(site: Path, library: Path) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    runtime = site / _RUNTIME / f"runtime{suffix}"
    runtime.unlink()
    up = "/".join([".."] * (len(_RUNTIME.parts) + 1))
    libraries = sorted(library.glob("*.so*"))
    _run(
        [
            "g++",
            "-shared",
            base() / "runtime.o",
            "-Wl,--no-as-needed",
            *libraries,
            f"-Wl,-rpath,$ORIGIN/{up}/lib",
            "-o",
            runtime,
        ],
        "g++",
    )
    (site / "cupy" / "cuda" / f"thrust{suffix}").unlink()
    text = '"""Replaces CuPy\'s module, which is compiled CUDA code."""\n'
    text += "from gpugrad.testing.cuda.driver.libraries.thrust import *  # noqa: F403\n"
    (site / "cupy" / "cuda" / "thrust.py").write_text(text)


def _in_parallel(commands: Sequence[Sequence[str | Path]]) -> None:
    running = [
        subprocess.Popen([str(w) for w in c], stderr=subprocess.PIPE, text=True) for c in commands
    ]
    for process in running:
        _, errors = process.communicate()
        if process.returncode:
            raise BuildError(f"g++ failed: {' '.join(errors.splitlines()[:3])}")
