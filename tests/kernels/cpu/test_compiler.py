"""The compiler of C kernels: its cache, and everything that can go wrong with it.

Each test runs in a process of its own, since a process finds the compiler and warns once.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import textwrap
import threading

import numpy as np
import pytest
from fresh import output_of
from needs import needs_compiler

from gpugrad.kernels.cpu import compiler, library_folder

TEXT = 'extern "C" int successor(int x) { return x + 1; }'
PROLOGUE = f"""
import warnings
from gpugrad.kernels.cpu import compiler
TEXT = {TEXT!r}
"""
PROLOGUE += """
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


PLANTED = TEXT.replace("x + 1", "x + 100")


def plant(tmp_path, text=PLANTED):
    """Write a library, with a right digest, over the one in the cache."""
    built = tmp_path / "planted.so"
    command = [shutil.which("g++") or "c++", "-shared", "-fPIC", "-xc++", "-", "-o", str(built)]
    subprocess.run(command, input=text, text=True, check=True)
    content = built.read_bytes()
    (library,) = files(tmp_path)
    library.write_bytes(content + hashlib.sha256(content).digest())
    return library


UNSAFE = {
    "folder": lambda library: library.parent.chmod(0o770),
    "parent": lambda library: library.parent.parent.parent.chmod(0o777),
    "swapped folder": lambda library: swap(library.parent),
    "file": lambda library: library.chmod(0o606),
    "link": lambda library: library.symlink_to(library.rename(library.parent.parent / "mine")),
    "pipe": lambda library: (library.unlink(), os.mkfifo(library)),
}


def swap(folder):
    """Put a link to a folder of another user's where the folder was."""
    moved = folder.rename(folder.parent.parent.parent / "theirs")
    moved.chmod(0o777)
    folder.symlink_to(moved)


@needs_compiler
@pytest.mark.parametrize("case", UNSAFE)
@pytest.mark.thin(2)
def test_a_library_that_others_could_have_written_is_not_loaded(tmp_path, case):
    run("load()", tmp_path)
    library = plant(tmp_path)
    assert run("load()", tmp_path) == ["103"]
    UNSAFE[case](library)
    *warned, value = run("load()", tmp_path)
    assert value == "4"
    if case in ("folder", "parent", "swapped folder"):
        (line,) = warned
        assert "others can write to" in line
        assert "delete" in line
        assert "chmod" not in line
    else:
        assert not warned
        assert run("load()", tmp_path) == ["4"]  # it was replaced


@pytest.mark.parametrize(
    ("owner", "mode", "own", "reason"),
    [
        (0, 0o755, True, ""), (0, 0o755, False, ""), (7, 0o700, False, "user 7 owns"),
        (7, 0o1777, False, "user 7 owns"), (0, 0o1777, False, ""), (0, 0o777, False, "others"),
        (0, 0o1777, True, "others"), (0, 0o770, True, "others"), (0, 0o770, False, "others"),
    ],
)  # fmt: skip
def test_owner_and_mode_decide_who_else_can_write(owner, mode, own, reason):
    me, group = os.geteuid(), 12345
    state = os.stat_result((mode, 0, 0, 1, me + owner, group, 0, 0, 0, 0))
    expected = reason.replace("user 7", f"user {me + 7}")
    assert library_folder.others(state, own=own).startswith(expected)
    assert bool(library_folder.others(state, own=own)) == bool(reason)


@needs_compiler
def test_the_bytes_that_are_checked_are_the_bytes_that_are_loaded(tmp_path):
    run("load()", tmp_path)
    body = f"""
        import ctypes, os
        def swapped(path, mode, load=ctypes.CDLL):
            os.rename({str(tmp_path / "planted.so")!r}, name)
            return load(path, mode=mode)
        (name,) = (e.path for e in os.scandir({str(files(tmp_path)[0].parent)!r}))
        ctypes.CDLL = swapped
        load()
    """
    library = files(tmp_path)[0]
    intact = library.read_bytes()
    plant(tmp_path)
    library.write_bytes(intact)
    assert run(body, tmp_path) == ["4"]


DAMAGE = {
    "short": lambda b: b[:4000],
    "a byte": lambda b: b[:999] + b"x" + b[1000:],
    "not for this machine": lambda b: b"text" + hashlib.sha256(b"text").digest(),
}


@needs_compiler
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_library_that_does_not_load_is_compiled_again(tmp_path, damage):
    run("load()", tmp_path)
    (library,) = files(tmp_path)
    whole = library.read_bytes()
    library.write_bytes(damage(whole))
    assert run("load()", tmp_path) == ["4"]
    assert library.stat().st_size == len(whole)


@needs_compiler
@pytest.mark.parametrize("change", [lambda f: f.chmod(0o666), lambda f: f.write_bytes(b"text")])
@pytest.mark.thin(2)
def test_numpys_blas_is_copied_once_and_again_if_the_copy_is_not_ours(tmp_path, change):
    body = """
        import numpy as np
        from gpugrad.kernels.cpu import products
        a = np.arange(6400.0).reshape(80, 80)
        print(np.array_equal(products.product(a, a), a @ a))
    """
    assert run(body, tmp_path) == ["True"]
    (copy,) = (f for f in files(tmp_path) if f.name.startswith("copy-"))
    first = copy.stat().st_ino, copy.read_bytes()
    assert run(body, tmp_path) == ["True"]
    assert (copy.stat().st_ino, copy.read_bytes()) == first
    change(copy)
    assert run(body, tmp_path) == ["True"]
    assert copy.read_bytes() == first[1]
    assert not copy.stat().st_mode & 0o077


@needs_compiler
def test_what_a_killed_compile_left_goes_but_not_the_folder_of_a_running_one(tmp_path):
    slow = script(tmp_path, 'case "$*" in *--version*) exec g++ --version;; *) sleep 1000;; esac')
    body = """
        import os, signal, threading, time
        threading.Thread(target=load, daemon=True).start()
        folder = os.environ["XDG_CACHE_HOME"] + "/gpugrad/cpu"
        while not (os.path.isdir(folder) and os.listdir(folder)):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with pytest.raises(AssertionError):  # it kills itself
        run(body, tmp_path, CXX=slow)
    assert [f.name[:6] for f in files(tmp_path)] == ["build-"]
    held = files(tmp_path)[0].parent / "build-running"
    held.mkdir()
    with library_folder._lock(str(held), without_locks=True):
        assert run("load()", tmp_path) == ["4"]
        assert {f.suffix or f.name for f in files(tmp_path)} == {"build-running", ".so"}
    assert run("load(TEXT + ' ')", tmp_path) == ["4"]
    assert {f.suffix for f in files(tmp_path)} == {".so"}


@needs_compiler
@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("flags\t\t: fpu avx2 new", True), ("model\t\t: 2", True), ("microcode\t: 0x2", False),
        ("cache size\t: 2 KB", False), ("cpu MHz\t\t: 2.0", False), ("bugs\t\t: meltdown", False),
        ("Features\t: fp asimd", True), ("CPU part\t: 0xd0c", True),
    ],
)  # fmt: skip
def test_the_key_holds_what_changes_code(monkeypatch, line, changes):
    def key(text):
        monkeypatch.setattr(compiler.Path, "read_text", lambda *_, **__: text)
        return compiler._processor.__wrapped__()

    before = "vendor_id\t: x\nmodel\t\t: 1\nflags\t\t: fpu avx2\nmicrocode\t: 0x1\n"
    name = line.partition("\t")[0]
    after = "\n".join([*(x for x in before.splitlines() if not x.startswith(name)), line])
    assert (key(before) != key(after)) == changes


@needs_compiler
def test_a_full_cache_loses_what_was_not_used_for_longest(tmp_path):
    run("load(TEXT + '//1')", tmp_path)
    (first,) = files(tmp_path)
    run("load(TEXT + '//2')", tmp_path)
    (second,) = set(files(tmp_path)) - {first}
    os.utime(first, (1, 1))
    os.utime(second, (2, 2))
    run("load(TEXT + '//1')", tmp_path)  # used again
    less = "from gpugrad.kernels.cpu import library_folder as f; f._BYTES = 40_000"
    run(f"{less}; load(TEXT + '//3')", tmp_path)
    assert first in files(tmp_path)
    assert second not in files(tmp_path)
    assert len(files(tmp_path)) == 2


@needs_compiler
def test_another_compiler_text_or_flag_is_another_library(tmp_path):
    run("load()", tmp_path)
    run("load(TEXT + ' ')", tmp_path)
    run("load()", tmp_path, CXX=f"{shutil.which('g++') or shutil.which('c++')} -DX")
    assert len(files(tmp_path)) == 3


NO_CACHE = {
    "a file is in its place": 'open(os.environ["XDG_CACHE_HOME"], "w").close()',
    "there is no home": 'del os.environ["XDG_CACHE_HOME"]; os.environ["HOME"] = "/proc/none"',
    "it cannot run code": "library_folder.LibraryFolder.load = "
    "lambda self, *args, load=library_folder.LibraryFolder.load: "
    'load(self, *args) if "tmp/gpugrad-" in str(self.path) else None',
}


@needs_compiler
@pytest.mark.parametrize("case", NO_CACHE)
def test_without_a_usable_cache_libraries_are_in_a_temporary_folder(tmp_path, case):
    (tmp_path / "tmp").mkdir()
    start = f"import os; from gpugrad.kernels.cpu import library_folder; {NO_CACHE[case]}; "
    body = start + (
        "load(); sys.stdout.flush(); os.fork() or sys.exit(); os.wait(); load(TEXT + ' ')"
    )
    warned, *values = run(f"import sys; {body}", tmp_path, TMPDIR=str(tmp_path / "tmp"))
    assert warned.startswith("warning: GpugradWarning The cache of compiled kernels cannot be used")
    assert values == ["4", "4"]
    assert not list((tmp_path / "tmp").iterdir())


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
    assert lines[0].startswith("warning: GpugradWarning C kernels are off, NumPy computes instead")
    assert "took more than 0.5 seconds" in lines[0]
    assert lines[1:] == ["None", "None"]
    child = (tmp_path / "child").read_text().strip()
    state = subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, text=True)
    assert state.stdout.strip()[:1] in ("", "Z")


@needs_compiler
def test_a_text_that_does_not_compile_turns_off_only_itself(tmp_path):
    lines = run("load('nonsense'); load('nonsense'); load()", tmp_path)
    assert lines[0].startswith("warning: GpugradWarning There is no C kernel for a test")
    assert "error" in lines[0]
    assert lines[1:] == ["None", "None", "4"]
    assert len(files(tmp_path)) == 1


@needs_compiler
@pytest.mark.parametrize(
    ("variable", "value", "choices"),
    [
        ("GPUGRAD_CPU_KERNELS", "off", "one of 1, 0, always"),
        ("GPUGRAD_MALLOC", "no", "one of 1, 0"),
        ("GPUGRAD_DEVICE", "tpu", "a device name"),
        ("OMP_NUM_THREADS", "\u00b2", "a whole number above 0"),
        ("OMP_NUM_THREADS", "two", "a whole number above 0"),
        ("CXX", 'g++ "-O2', "the command of a compiler"),
    ],
)  # fmt: skip
@pytest.mark.thin(3)
def test_a_senseless_environment_variable_is_named_with_its_choices(
    tmp_path, variable, value, choices
):
    body = """
        import gpugrad as gg
        from gpugrad.core import host_memory
        from gpugrad.kernels.cpu import pool
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                host_memory.keep_freed_memory()
                pool.threads()
                gg.device()
            except gg.errors.ArgumentError as error:
                print(error)
        for warning in caught:
            print(warning.message)
    """
    (line,) = run(body, tmp_path, **{variable: value})
    assert f"environment variable {variable} must be {choices}, got {value!r}" in line


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
    assert warned == "1 GpugradWarning"
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
