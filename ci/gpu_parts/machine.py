"""What ci/gpu needs to know about the machine, and what it sets up there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpu_parts.process import ROOT

PACKAGES = ("gpugrad", "cupy-cuda12x", "cupy-cuda13x", "numpy", "nvmath-python", "torch", "jax",
            "nvidia-cudnn-frontend", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")  # fmt: skip


USES = {
    "nvmath": "matrix products by CuPy, which graphs cannot capture in 16 bits",
    "cudnn": "convolution and attention by our own kernels",
    "torch": "no CUPTI, and benches without torch",
    "pytest": "no tests",
    "hypothesis": "no tests",
    "xdist": "tests in one process",
    "g++": "no compiled programs on the CPU",
    "compute-sanitizer": "no sanitizer",
}
"""What happens without a module or a program."""


ASK = """
import json
import gpugrad, cupy
runtime = cupy.cuda.runtime
count = runtime.getDeviceCount()
print(json.dumps({
    "gpu": runtime.getDeviceProperties(0)["name"].decode(), "count": count,
    "capability": cupy.cuda.Device(0).compute_capability,
    "driver": runtime.driverGetVersion(), "runtime": runtime.runtimeGetVersion(),
}))
"""


class Failure(Exception):
    """The reason why ci/gpu cannot continue."""


def device(python: str) -> dict[str, object]:
    """The GPU's properties from CuPy; raises a Failure with advice if there is none."""
    result = subprocess.run(
        [python, "-c", ASK], capture_output=True, text=True, check=False, cwd=ROOT
    )
    if result.returncode == 0:
        return dict(json.loads(result.stdout))
    last = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
    if "No module named" in last and "cupy" not in last:
        raise Failure(f"{python} cannot import gpugrad: {last}; --wheels installs from wheels.")
    raise Failure(
        f"no CUDA device answers to {python}: {last}\n"
        "This command needs an NVIDIA GPU with its driver (nvidia-smi shows it) and CuPy: "
        "pip install '.[cuda12,test]', or ci/gpu --venv .venv-gpu. Checks without a GPU: ci/check."
    )


def make_venv(home: Path) -> str:
    """The Python of a virtual environment for the parts, created if it does not exist."""
    python = home / "bin" / "python"
    if not python.exists():
        if shutil.which("nvidia-smi") is None:
            raise Failure("no nvidia-smi: without a driver there is no GPU to test, so no --venv.")
        text = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=False).stdout
        version = re.search(r"CUDA Version:\s*(\d+)", text)
        major = min(max(int(version[1]), 12), 13) if version else 12
        print(f"creating {home} for CUDA {major}", flush=True)
        requirement = f"{ROOT}[cuda{major},test,cublaslt,cudnn{major}]"
        try:
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
            # without the pin nvmath-python installs bindings of the newest CUDA
            subprocess.run([str(python), "-m", "pip", "install", "-q", f"cuda-bindings=={major}.*",
                            "-e", requirement], check=True)  # fmt: skip
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(home, ignore_errors=True)  # or a later run would use it as if complete
            raise Failure(
                f"{home} could not be created: {error}\nWithout a package index, install the "
                "requirements of '.[cuda13,test,cublaslt,cudnn13]' from wheels and omit --venv."
            ) from error
    return str(python)


@contextlib.contextmanager
def wheels_installed(python: str, wheels: Path | None) -> Iterator[None]:
    """Install the wheels of a directory into a temporary one, from which processes import."""
    if wheels is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="gpugrad-wheels-") as site:
        paths = [str(path) for path in sorted(wheels.glob("*.whl"))]
        command = [python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile",
                   "--no-cache-dir", "--target", site, *paths]  # fmt: skip
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if not paths or result.returncode:
            why = (result.stderr.strip().splitlines() or [""])[-1] if paths else "no *.whl is there"
            raise Failure(f"the wheels of {wheels} cannot be installed: {why}")
        before = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (site, before)))
        try:
            yield
        finally:
            os.environ["PYTHONPATH"] = before


def find_caches() -> list[str]:
    """Move the caches of compiled kernels if the home directory is read-only; the new places."""
    homes = {"CUPY_CACHE_DIR": "~/.cupy/kernel_cache", "XDG_CACHE_HOME": "~/.cache",
             "TRITON_HOME": "~"}  # fmt: skip
    moved = []
    for name, default in homes.items():
        if name not in os.environ and not _is_writable(Path(default).expanduser()):
            os.environ[name] = os.path.join(tempfile.gettempdir(), "gpugrad-caches", name.lower())
            moved.append(name)
    return moved


def _is_writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def missing(python: str) -> dict[str, str]:
    """What is not installed or cannot be imported, and what happens without it."""
    code = (
        "import importlib.util as u, sys\nprint(*[n for n in sys.argv[1:] if not u.find_spec(n)])\n"
        "try: import nvmath.bindings.cublasLt\n"  # an older cuda-core breaks it
        "except Exception as e: print('nvmath', file=sys.stdout), print(repr(e), file=sys.stderr)"
    )
    names = [name for name in USES if name not in ("g++", "compute-sanitizer")]
    command = [python, "-c", code, *names]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    absent = {*result.stdout.split(), *(() if shutil.which("g++") else ("g++",))}
    absent |= set() if find_sanitizer() else {"compute-sanitizer"}
    return {name: use for name, use in USES.items() if name in absent}


def find_sanitizer() -> str | None:
    """The path of compute-sanitizer."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    return tool if Path(tool).exists() else None


def versions(python: str) -> dict[str, str]:
    """The versions of the installed packages in PACKAGES."""
    code = (
        "import importlib.metadata as m, json, platform, sys\nresult = {'python': "
        "platform.python_version()}\nfor n in sys.argv[1:]:\n try: result[n] = m.version(n)\n"
        " except m.PackageNotFoundError: pass\nprint(json.dumps(result))"
    )
    command = [python, "-c", code, *PACKAGES]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(result.stdout))


def commit() -> str:
    """GPUGRAD_COMMIT, or else the commit, with a + if the working tree differs from it."""
    if name := os.environ.get("GPUGRAD_COMMIT"):
        return name
    try:
        command = ["git", "describe", "--always", "--abbrev=40", "--dirty=+"]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return result.stdout.strip()


def find_libraries(python: str) -> None:
    """Put the wheels of CUDA's libraries on LD_LIBRARY_PATH.

    NVRTC 13 opens its builtins by name and has no RUNPATH to find them.
    """
    code = (
        "import glob, importlib.util as u\nspec = u.find_spec('nvidia')\n"
        "print(':'.join(d for p in (spec.submodule_search_locations if spec else ()) "
        "for d in sorted(glob.glob(p + '/*/lib'))))"
    )
    result = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    places = [result.stdout.strip(), os.environ.get("LD_LIBRARY_PATH", "")]
    os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, places))
