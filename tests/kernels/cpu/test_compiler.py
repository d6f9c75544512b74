"""The compiler of C kernels: its cache, and everything that can go wrong with it.

Each test runs in a process of its own, since a process finds the compiler and warns once.
"""

import os
import shutil
import stat
import subprocess
import textwrap
import threading

import numpy as np
import pytest
from fresh import output_of

from gpugrad.kernels.cpu import compiler

needs_compiler = pytest.mark.skipif(
    compiler.status().startswith("C kernels: none"), reason="needs a C++ compiler"
)

PROLOGUE = """
import warnings
from gpugrad.kernels.cpu import compiler
TEXT = 'extern "C" int successor(int x) { return x + 1; }'
def load(text=TEXT):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        library = compiler.load(text, what="a test")
    for warning in caught:
        print("warning:", warning.category.__name__, warning.message)
    print(library if library is None else library.successor(3))
"""


def run(body, tmp_path, **environment):
    """The lines that a new process prints, whose cache is in tmp_path."""
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "GPUGRAD_CPU_KERNELS": "1"}
    return output_of("-c", PROLOGUE + textwrap.dedent(body), **(own | environment)).splitlines()


def script(tmp_path, text):
    path = tmp_path / "compiler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def files(tmp_path):
    return sorted((tmp_path / "cache" / "gpugrad" / "cpu").iterdir())


@needs_compiler
def test_a_library_is_compiled_once_and_then_loaded(tmp_path):
    assert run("load()", tmp_path) == ["4"]
    (library,) = files(tmp_path)
    written = library.stat().st_ino
    assert run("load(); load()", tmp_path) == ["4", "4"]
    assert files(tmp_path) == [library]
    assert library.stat().st_ino == written


@needs_compiler
def test_the_cache_is_private(tmp_path):
    assert run("load()", tmp_path) == ["4"]
    folder = tmp_path / "cache" / "gpugrad" / "cpu"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@needs_compiler
def test_a_cache_that_others_can_write_to_is_refused(tmp_path):
    folder = tmp_path / "cache" / "gpugrad" / "cpu"
    folder.mkdir(parents=True)
    folder.chmod(0o770)
    lines = run("load(); load(TEXT + ' ')", tmp_path)
    assert "others can write to" in lines[0]
    assert lines[1:] == ["None", "None"]


@needs_compiler
@pytest.mark.parametrize("damage", [lambda b: b[:4000], lambda b: b[:999] + b"x" + b[1000:]])
def test_a_damaged_library_is_compiled_again(tmp_path, damage):
    run("load()", tmp_path)
    (library,) = files(tmp_path)
    whole = library.read_bytes()
    library.write_bytes(damage(whole))
    assert run("load()", tmp_path) == ["4"]
    assert library.stat().st_size == len(whole)


@needs_compiler
def test_a_full_cache_loses_what_was_not_used_for_longest(tmp_path):
    run("load(TEXT + '//1')", tmp_path)
    (first,) = files(tmp_path)
    run("load(TEXT + '//2')", tmp_path)
    (second,) = set(files(tmp_path)) - {first}
    os.utime(first, (1, 1))
    os.utime(second, (2, 2))
    run("load(TEXT + '//1')", tmp_path)  # used again
    run("compiler._BYTES = 40_000; load(TEXT + '//3')", tmp_path)
    assert first in files(tmp_path)
    assert second not in files(tmp_path)
    assert len(files(tmp_path)) == 2


@needs_compiler
def test_another_compiler_text_or_flag_is_another_library(tmp_path):
    run("load()", tmp_path)
    run("load(TEXT + ' ')", tmp_path)
    run("load()", tmp_path, CXX=f"{shutil.which('g++') or shutil.which('c++')} -DX")
    assert len(files(tmp_path)) == 3


@needs_compiler
def test_a_cache_of_another_user_is_refused(tmp_path):
    lines = run(
        """
        import os
        os.geteuid = lambda owner=os.geteuid(): owner + 1
        os.makedirs(os.environ["XDG_CACHE_HOME"] + "/gpugrad/cpu")
        load(); load(TEXT + " ")
        print(compiler.status())
        """,
        tmp_path,
    )
    assert lines[0].startswith("warning: RuntimeWarning C kernels are off")
    assert "belongs to another user" in lines[0]
    assert lines[1:3] == ["None", "None"]
    assert "belongs to another user" in lines[3]


@needs_compiler
def test_a_cache_that_cannot_be_written_gives_one_warning(tmp_path):
    (tmp_path / "cache").write_text("a file, where the folder should be")
    lines = run("load(); load(TEXT + ' '); print(compiler.status())", tmp_path)
    assert lines[0].startswith("warning: RuntimeWarning C kernels are off, NumPy computes instead")
    assert lines[1:3] == ["None", "None"]
    assert lines[3].startswith("C kernels: none, the cache of compiled kernels: ")


@needs_compiler
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_gives_one_warning(tmp_path):
    compiler_path = script(
        tmp_path, 'case "$*" in *--version*) exec g++ --version;; *) echo x >/dev/full;; esac'
    )
    lines = run("load(); load(TEXT + ' ')", tmp_path, CXX=compiler_path)
    assert "failed with status" in lines[0]
    assert lines[1:] == ["None", "None"]


def test_a_compiler_that_hangs_is_killed_with_its_children(tmp_path):
    (tmp_path / "cache").mkdir()
    path = script(tmp_path, f"sleep 1000 & echo $! > {tmp_path}/child; sleep 1000")
    lines = run("compiler._SECONDS = 0.5; load(); load(TEXT + ' ')", tmp_path, CXX=path)
    assert lines[0].startswith("warning: RuntimeWarning C kernels are off, NumPy computes instead")
    assert "took more than 0.5 seconds" in lines[0]
    assert lines[1:] == ["None", "None"]
    child = (tmp_path / "child").read_text().strip()
    state = subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, text=True)
    assert state.stdout.strip()[:1] in ("", "Z")


@needs_compiler
def test_a_text_that_does_not_compile_turns_off_only_itself(tmp_path):
    lines = run("load('nonsense'); load('nonsense'); load()", tmp_path)
    assert lines[0].startswith("warning: RuntimeWarning There is no C kernel for a test")
    assert "error" in lines[0]
    assert lines[1:] == ["None", "None", "4"]
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("text", ["exit 1", "case $* in *--version*) echo 1.0;; *) exit 1;; esac"])
def test_functions_run_on_if_the_compiler_fails(text, tmp_path):
    body = """
        import gpugrad as gg
        f = gg.function(lambda x: gg.scan(lambda c, v: (gg.tanh(c + v), None), x[0], gg.exp(x))[0])
        x = gg.constant([[0.0], [1.0]])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            values = [f(x).item() for _ in range(3)]
        print(len(caught), *[w.category.__name__ for w in caught])
        print(len(set(values)), f"{values[0]:.5f}")
    """
    how = {"CXX": script(tmp_path, text), "GPUGRAD_CPU_KERNELS": "always"}
    warned, value = run(body, tmp_path, **how)
    assert warned == "1 RuntimeWarning"
    assert value == f"1 {np.tanh(np.tanh(1) + np.e):.5f}"


def test_without_a_compiler_there_is_no_warning(tmp_path):
    lines = run("load(); print(compiler.status())", tmp_path, PATH=str(tmp_path), CXX="")
    assert lines == [
        "None", "C kernels: none, no C++ compiler is installed (g++ or clang++, or CXX)",
    ]  # fmt: skip


def test_the_environment_declines(tmp_path):
    lines = run("load(); print(compiler.status())", tmp_path, GPUGRAD_CPU_KERNELS="0")
    assert lines == ["None", "C kernels: none, GPUGRAD_CPU_KERNELS=0"]
    assert not (tmp_path / "cache").exists()


def test_other_systems_decline(tmp_path):
    lines = run("import sys; sys.platform = 'darwin'; load()", tmp_path)
    assert lines == ["None"]


def test_importing_compiles_nothing(tmp_path):
    run("import gpugrad", tmp_path)
    assert not (tmp_path / "cache").exists()


@needs_compiler
def test_threads_compile_a_text_once():
    text = '// of threads\nextern "C" int nine() { return 9; }'
    libraries = []
    threads = [
        threading.Thread(target=lambda: libraries.append(compiler.load(text, what="nine")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(library) for library in libraries}) == 1
    assert libraries[0].nine() == 9


@needs_compiler
def test_the_status_names_compiler_and_vectors():
    assert compiler.status().startswith("C kernels: ")
    assert "(native, " in compiler.status()
