"""Compiling with NVRTC: which library is loaded, and how it finds its other parts."""

import os
import subprocess
import sys

from needs import needs_nvrtc, needs_shim

from gpugrad.kernels.runtime import launch
from gpugrad.testing.cuda import nvrtc

# What NVRTC does when it compiles: open its builtins by name, without a path.
LIBRARY = """
#include <dlfcn.h>
extern "C" int builtins_open() {
  return dlopen("libnvrtc-builtins.so.99.0", RTLD_NOW) != nullptr;
}
"""

LOAD = """
import pathlib, sys
from gpugrad.testing.cuda import nvrtc
nvrtc._search_paths = lambda: [pathlib.Path(sys.argv[1])]
print(nvrtc._library().builtins_open())
"""


@needs_shim
def test_nvrtc_finds_its_builtins_without_a_runpath(tmp_path):
    folder = tmp_path / "cu99" / "lib"
    folder.mkdir(parents=True)
    for name, text in (("libnvrtc.so.99", LIBRARY), ("libnvrtc-builtins.so.99.0", "")):
        subprocess.run(
            [os.environ.get("CXX", "g++"), "-shared", "-fPIC", f"-Wl,-soname,{name}", "-x", "c++",
             "-", "-o", str(folder / name)], input=text, text=True, check=True,
        )  # fmt: skip
    (folder / "libnvrtc.alt.so.99").write_text("another build, which must not be loaded")
    command = [sys.executable, "-c", LOAD, str(tmp_path)]  # a process that has loaded neither
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "1\n"


@needs_nvrtc
def test_a_kernel_compiles_with_the_installed_toolkit():
    compiled = nvrtc.compile_for("sm_80", launch.full_source("scatter.cu"), "spoil<float>")
    assert compiled.registers > 0
    assert compiled.spilled == 0
