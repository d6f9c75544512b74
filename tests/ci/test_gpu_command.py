"""`ci/gpu`: its message without a GPU, the time limits of its parts, and its results."""

import datetime
import importlib.machinery
import importlib.util
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import REAL_GPU
from needs import needs_driver

import gpugrad as gg
from gpugrad.testing.cuda import driver
from gpugrad.testing.cuda.driver import place

SCRIPT = Path(__file__).parents[2] / "ci" / "gpu"


@pytest.fixture(scope="module")
def gpu():
    loader = importlib.machinery.SourceFileLoader("ci_gpu", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("ci_gpu", loader))
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    module.missing = lambda python: {}  # of this machine
    return module


def called(*arguments):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(REAL_GPU, reason="there is a GPU")
def test_without_a_gpu_it_names_what_is_needed_and_writes_nothing(tmp_path):
    done = called("--out", str(tmp_path))
    assert done.returncode == 2
    assert "ci/gpu: no CUDA device answers" in done.stderr
    assert "ci/check" in done.stderr
    assert list(tmp_path.iterdir()) == []


NVMATH = {"no nvmath": None, "an nvmath that does not import": "import none_such", "nvmath": ""}


@pytest.mark.parametrize("case", NVMATH)
def test_without_products_by_cublaslt_it_stops(case, gpu, tmp_path, monkeypatch, capsys):
    if NVMATH[case] is not None:
        (tmp_path / "nvmath" / "bindings").mkdir(parents=True)
        for name, text in (
            ("__init__", ""),
            ("bindings/__init__", ""),
            ("bindings/cublasLt", NVMATH[case]),
        ):
            (tmp_path / "nvmath" / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    from gpu_parts.machine import missing

    ran = []
    monkeypatch.setattr(gpu, "missing", missing)
    monkeypatch.setattr(gpu, "device", lambda python: {"gpu": "H100", "driver": 13000})
    monkeypatch.setitem(
        gpu.PARTS, "stress", lambda *args: [("pytest", ran.append("passed") or "passed")]
    )
    command = ["--only", "stress", "--out", str(tmp_path / "out")]
    assert gpu.main(command) == (0 if case == "nvmath" else 2)
    assert len(ran) == (case == "nvmath")
    assert ("--allow-missing" in capsys.readouterr().err) == (case != "nvmath")
    assert gpu.main([*command, "--allow-missing"]) == 0


def test_help_and_unknown_parts():
    done = called("-h")
    assert done.returncode == 0
    assert "in calls of at most ten minutes" in done.stdout
    done = called("--only", "tests,nothing")
    assert done.returncode == 2
    assert "no part 'nothing'; there are facts, ops, kernels, profile, bench, tests" in done.stderr


def test_calls_have_all_parts_in_order_and_fit_ten_minutes(gpu):
    assert list(gpu.LIMITS) == list(gpu.PARTS)
    parts = [name for only, _ in gpu.CALLS for name in only.split(",")]
    assert [*dict.fromkeys(parts)] == list(gpu.PARTS)
    assert gpu.CALL < 10 * 60
    for only, _ in gpu.CALLS:  # a call does not cut what its parts need by default
        if only != "bench":
            assert sum(gpu.LIMITS[n] for n in only.split(",")) <= gpu.CALL
    benches = [name for _, which in gpu.CALLS if which for name in which.split(",")]
    assert sorted(benches) == sorted(path.stem for path in gpu.benches())


@pytest.mark.slow
def test_a_command_ends_in_time_with_its_children(gpu, tmp_path):
    child, start = tmp_path / "child", time.monotonic()
    code = f"sleep 100 & echo $! > {child}; wait"
    assert gpu.run(["sh", "-c", code], 1, tmp_path / "log") == "out of time"
    assert time.monotonic() - start < 60
    state = subprocess.run(["ps", "-o", "stat=", "-p", child.read_text()], capture_output=True)
    assert state.stdout.strip()[:1] in (b"", b"Z")


def test_a_command_passes_or_fails_and_is_logged(gpu, tmp_path):
    log = tmp_path / "log"
    assert gpu.run([sys.executable, "-c", "print('all well')"], 30, log) == "passed"
    assert gpu.run([sys.executable, "-c", "raise SystemExit(3)"], 30, log) == "failed"
    assert "all well" in log.read_text()


def write_figures(setup, figures):
    with setup.records.open("a") as file:
        file.write(json.dumps(figures) + "\n")


def test_results_are_named_kept_and_shown(gpu, tmp_path, monkeypatch, capsys):
    figures = {"title": "a step", "seconds": {"gpugrad": 1e-5, "torch": 2e-5}}

    def bench(setup, limit):
        write_figures(setup, figures)
        yield "mlp", "passed"

    monkeypatch.setattr(gpu, "device", lambda python: {"gpu": "NVIDIA H100 80GB", "driver": 13000})
    monkeypatch.setitem(gpu.PARTS, "bench", bench)
    monkeypatch.setitem(gpu.PARTS, "stress", lambda *args: [("pytest", "failed")])
    assert gpu.main(["--only", "bench", "--out", str(tmp_path)]) == 0
    assert gpu.main(["--only", "bench,stress", "--out", str(tmp_path)]) == 1
    (path,) = tmp_path.glob("*.json")
    assert path.name == f"nvidia-h100-80gb-{datetime.date.today().isoformat()}.json"
    kept = json.loads(path.read_text())
    assert kept["figures"] == [figures]
    assert kept["parts"] == {"bench": {"mlp": "passed"}, "stress": {"pytest": "failed"}}
    assert {"commit", "versions", "date", "seconds"} <= set(kept)
    assert kept["versions"]["numpy"]
    output = capsys.readouterr().out
    assert "| a step | 10.0 us | torch 0.50 |" in output
    assert "| stress | pytest failed |" in output


def test_separate_runs_add_to_one_file(gpu, tmp_path, monkeypatch):
    figures = {"title": "a step", "seconds": {"gpugrad": 1e-5}}

    def bench(setup, limit):
        write_figures(setup, figures)
        yield setup.benches[0].stem, f"{limit / 100:.0f}"

    monkeypatch.setattr(gpu, "device", lambda python: {"gpu": "H100", "driver": 13000})
    monkeypatch.setattr(gpu, "commit", lambda: "a")
    monkeypatch.setitem(gpu.PARTS, "bench", bench)
    monkeypatch.setitem(gpu.PARTS, "stress", lambda *args: [("pytest", "passed")])
    only = ["--only", "bench", "--benches", "mlp", "--out", str(tmp_path)]
    gpu.main([*only, "--seconds", "7000"])
    assert gpu.main(["--only", "stress", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("*.json")
    kept = json.loads(path.read_text())
    assert kept["parts"] == {"bench": {"mlp": "70"}, "stress": {"pytest": "passed"}}
    assert kept["figures"] == [figures]
    figures["seconds"] = {"gpugrad": 2e-5}
    gpu.main(only)
    assert json.loads(path.read_text())["figures"] == [figures]
    monkeypatch.setattr(gpu, "commit", lambda: "b")
    gpu.main(["--only", "stress", "--out", str(tmp_path)])
    assert set(json.loads(path.read_text())["parts"]) == {"stress"}


def test_commit_comes_from_the_environment_without_git(gpu, monkeypatch):
    monkeypatch.setenv("GPUGRAD_COMMIT", "0123abc")
    assert gpu.commit() == "0123abc"
    monkeypatch.delenv("GPUGRAD_COMMIT")
    monkeypatch.setenv("PATH", "")
    assert gpu.commit() == "unknown"


@pytest.mark.slow
def test_tests_out_of_time_report_their_progress(gpu, tmp_path):
    (tmp_path / "test_slow.py").write_text(
        "import time\ndef test_bad(): assert 0\ndef test_slow(): time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    log = tmp_path / "log"
    log.write_text("7 failed in 1 s, an earlier run\n")
    outcome = gpu.run_pytest(command, 5, log)
    assert outcome.startswith("out of time: 1 failed in"), outcome
    kill = "import os\ndef test_kill(): os._exit(1)\n"
    (tmp_path / "test_slow.py").write_text(f"def test_bad(): assert 0\n{kill}")
    assert gpu.run_pytest([*command, "-vv"], 60, log) == "failed: 1 failed"


@pytest.mark.slow
def test_the_sanitizer_runs_every_kernel_by_hand_on_the_device(gpu, tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(gpu, "find_sanitizer", lambda: sys.executable)
    monkeypatch.setattr(gpu, "run_pytest", lambda command, *args, **env: commands.append(command))
    list(gpu.sanitizer(gpu.Setup(sys.executable, tmp_path / "log"), 60))
    assert [command[2] for command in commands] == list(gpu.TOOLS)
    pytest_command = commands[0][commands[0].index(sys.executable, 1) :]
    done = subprocess.run(
        [*pytest_command, "--collect-only"], capture_output=True, text=True, check=False,
        cwd=SCRIPT.parents[1],
    )  # fmt: skip
    with_kernels = [op.name for op in gg.OPS.values() if op.cuda is not None]
    assert len(with_kernels) > 40
    assert [
        name
        for name in with_kernels
        if f"kernel_on_a_device_matches_the_cpu[{name}]" not in done.stdout
    ] == []


def test_an_environment_that_cannot_be_created_is_removed(gpu, tmp_path, monkeypatch):
    def refuses(command, **keywords):
        Path(command[-1]).joinpath("bin").mkdir(parents=True)
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr("shutil.which", lambda name: name)
    answer = subprocess.CompletedProcess([], 0, "CUDA Version: 13.0")
    monkeypatch.setattr(
        subprocess, "run",
        lambda command, **keywords: answer if command == ["nvidia-smi"] else refuses(command),
    )  # fmt: skip
    with pytest.raises(gpu.Failure, match=r"could not be created.*\n.*wheels"):
        gpu.make_venv(tmp_path / "venv")
    assert not (tmp_path / "venv").exists()


@pytest.mark.slow
def test_figures_are_kept_when_the_run_is_stopped(gpu, tmp_path, monkeypatch):
    figures, mark = {"title": "a step", "seconds": {"torch": 1e-5}}, tmp_path / "mark"
    child = f"import time; time.sleep(3); open({str(mark)!r}, 'w')"

    def bench(setup, limit):
        write_figures(setup, figures)
        yield "mlp", "failed"
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        yield "gpt2", gpu.run([sys.executable, "-c", child], 60, setup.log)

    monkeypatch.setattr(gpu, "device", lambda python: {"gpu": "H100", "driver": 13000})
    monkeypatch.setitem(gpu.PARTS, "bench", bench)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match="143"):
            gpu.main(["--only", "bench", "--out", str(tmp_path)])
    finally:
        signal.signal(signal.SIGTERM, before)
    kept = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert kept["figures"] == [figures]
    assert kept["parts"] == {"bench": {"mlp": "failed"}}
    assert "| a step | failed | - |" in gpu.table(kept)
    time.sleep(3)
    assert not mark.exists()


def test_benches_with_a_gpu_mode_are_found_and_long_ones_come_last(gpu):
    names = [path.stem for path in gpu.benches()]
    assert {"adamw", "attention", "convolution", "function", "gp", "matmul", "mlp", "overhead",
            "rows"} == set(names[:-2])  # fmt: skip
    assert names[-4:] == ["attention", "rows", "resnet", "gpt2"]  # the longest are last
    assert [path.stem for path in gpu.benches("resnet,mlp")] == ["mlp", "resnet"]
    with pytest.raises(gpu.Failure, match="no bench 'nn' for a GPU; there are adamw, "):
        gpu.benches("nn,mlp")


def test_a_bench_writes_its_figures(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("peers", SCRIPT.parent / "bench" / "peers.py")
    peers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peers)
    monkeypatch.setenv("GPUGRAD_BENCH_FIGURES", str(tmp_path / "f"))
    assert peers.status() == 0
    peers.table("a", {"gpugrad": 1.0, "torch": 2.0})
    peers.table("b", {"gpugrad": 3.0})
    lines = [json.loads(line) for line in (tmp_path / "f").read_text().splitlines()]
    assert [line["title"] for line in lines] == ["a", "b"]
    assert lines[0]["seconds"] == {"gpugrad": 1.0, "torch": 2.0}


def test_a_bench_reports_targets_reached_and_missed(gpu, tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("peers", SCRIPT.parent / "bench" / "peers.py")
    peers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peers)
    monkeypatch.setenv("GPUGRAD_BENCH_FIGURES", str(tmp_path / "f"))
    times = {"gpugrad": 2.0, "torch": 1.95, "copy": 1.0}
    copy = peers.speed_of_copy(times, 8.0)
    assert peers.table("near", dict(times), {"torch": 1 / 0.97}, (14.4, "GB"), copy, part=0.9)
    assert peers.table("alone", {"gpugrad": 2.0}, {"torch": 1.0}, part=0.9)
    assert not peers.table("far", times, {"torch": 1.0}, (14.3, "GB"), copy, part=0.9, most=2.0)
    assert "at most 1.03 of torch: reached" in capsys.readouterr().out
    records = [json.loads(line) for line in (tmp_path / "f").read_text().splitlines()]
    assert [gpu.describe_reach(figure) for figure in records] == [
        "0.90 of a copy; at most 1.03 of torch: yes; at least 0.90 of a copy: yes",
        "at most 1.00 of torch: not known; at least 0.90 of a copy: not known",
        "0.89 of a copy; at most 1.00 of torch: MISSED; at least 0.90 of a copy: MISSED; "
        "at most 2000 ms: yes",
    ]
    assert peers.speed_of_copy(times, 8.0) is None  # it has failed
    assert (peers.status(True), peers.status(False)) == (0, gpu.MISSED)
    late = [sys.executable, "-c", f"raise SystemExit({peers.MISSED})"]
    assert gpu.run(late, 30, tmp_path / "log") == "missed"
    peers.failures.append("torch: ValueError")
    assert peers.status(False) == 1


@pytest.mark.slow
def test_a_bench_continues_without_failed_peers(capsys, monkeypatch):
    spec = importlib.util.spec_from_file_location("peers", SCRIPT.parent / "bench" / "peers.py")
    peers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peers)

    def broken(*args):
        raise ValueError("no plan")

    runs = peers.run_makers([broken, lambda n: {"gpugrad": lambda: [n], "torch": lambda: [2]}], 1)
    peers.agree(runs, 1e-3)
    raced = peers.race(runs | {"jax.jit": broken}, rounds=2)
    assert set(raced) == {"gpugrad", "torch"}
    assert peers.table("without ours", {"torch": 1.0}, {"torch": 0.5})
    pipe, far = multiprocessing.Pipe()
    far.close()
    assert peers.in_turns({"torch": pipe}, 2) == {}
    pipe, _answers_never = multiprocessing.Pipe()
    monkeypatch.setattr(peers, "patience", lambda: 0.1)
    assert peers.in_turns({"jax.jit": pipe}, 2) == {}
    assert peers.failures.pop() == "jax.jit: TimeoutError"
    failed = ["broken: ValueError", "torch: AssertionError", "jax.jit: ValueError"]
    assert peers.failures[:3] == failed
    assert peers.failures[3].startswith("torch: ")
    assert peers.status() == 1
    assert "jax.jit FAILED: ValueError" in capsys.readouterr().out


@pytest.mark.parametrize("shape", [(3,), (1025, 2048)])
def test_benches_compare_a_sample_of_large_results(shape):
    spec = importlib.util.spec_from_file_location("peers", SCRIPT.parent / "bench" / "peers.py")
    peers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peers)
    ours = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    same = {"gpugrad": lambda: [gg.asarray(ours)], "numpy": lambda: [ours]}
    peers.agree(same, 1e-6)
    assert peers.failures == []
    peers.agree(same | {"jax": lambda: [ours + (ours > 1)]}, 1e-9)
    peers.agree(same | {"torch": lambda: [ours[:-1]]}, 1e-6)
    assert peers.failures == ["jax: AssertionError", "torch: AssertionError"]


def test_a_late_bench_ends_its_race_after_three_rounds(monkeypatch):
    spec = importlib.util.spec_from_file_location("peers", SCRIPT.parent / "bench" / "peers.py")
    peers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peers)
    calls = []
    assert set(peers.race({"gpugrad": lambda: calls.append(1)}, rounds=9)) == {"gpugrad"}
    assert len(calls) == 3 + 9  # warm-up and rounds
    monkeypatch.setattr(peers, "END", time.monotonic())
    peers.race({"gpugrad": lambda: calls.append(1)}, rounds=9)
    assert len(calls) == 3 + 9 + 3 + 3


# ---- the parts, on the real CuPy over the made-up driver

STAND_IN = Path(__file__).parents[1] / "stand_in"
PARTS = SCRIPT.parent / "gpu_parts"


@pytest.fixture
def on_stand_in(monkeypatch):
    """Let the processes of commands find CuPy over the made-up driver."""
    if REAL_GPU:
        pytest.skip(reason="the parts run on the GPU itself")
    if driver.unavailable():
        pytest.skip(reason=driver.unavailable())
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))


def records_of(path, part):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line["part"] == part]


def on_driver(settings):
    """The environment of processes that use the made-up driver, and find gpugrad."""
    environment = place.environment()
    paths = environment["PYTHONPATH"], str(SCRIPT.parents[1])
    return environment | settings | {"PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.slow  # CI builds the driver before the slow tests
@needs_driver
@pytest.mark.parametrize("call", range(1, 6))
def test_calls_run_on_the_real_cupy(call, tmp_path):
    """Calls 4 and 5 run tests, which need values; in the others kernels do nothing."""
    environment = on_driver({"GPUGRAD_CUDA_NULL_WORK": str(int(call < 4))})
    environment["PYTHONPATH"] += os.pathsep + str(STAND_IN)  # for cuBLASLt and cuSOLVER
    command = [sys.executable, str(SCRIPT), "--call", str(call), "--small", "--out", str(tmp_path)]
    command.append("--allow-missing")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    (path,) = tmp_path.glob("*.json")
    log = path.with_suffix(".log").read_text()
    kept = json.loads(path.read_text())
    wrong = {(part, name) for part, each in kept["parts"].items() for name, outcome in each.items()
             if outcome not in ("passed", "missed", "not installed")}  # fmt: skip
    assert wrong <= {("bench", "gp")}, log[-8000:]  # zeros are no positive definite matrix
    assert path.name.startswith("gpugrad-made-up-h100-"), done.stdout
    assert "compute-sanitizer is not installed: no sanitizer" in done.stdout
    check = {1: check_call_1, 2: check_benches, 3: check_benches}.get(call)
    if check:
        check(kept)


def check_call_1(kept):
    assert list(kept["parts"]) == ["facts", "ops", "kernels", "profile"]
    assert kept["facts"]["properties"]["multiProcessorCount"] == 132
    assert kept["facts"]["cuDNN"].startswith("missing: ModuleNotFoundError")
    assert kept["facts"]["cuBLASLt"] == "works"
    assert kept["ops"] == {"checked": 20, "failures": []}
    assert kept["kernels"]["loaded"] == 8
    for step, launches in (("mlp", 10), ("gpt2", 50), ("resnet", 100)):
        profile = kept["profiles"][step]
        assert profile["launches"] > launches
        assert len(profile["first_calls_s"]) == 4
        assert {registers for registers, _ in profile["registers"].values()} == {32}
        assert profile["by"] == "steps alone, as torch is not installed"


def check_benches(kept):
    outcomes = kept["parts"]["bench"]
    assert len(kept["figures"]) >= len(outcomes) - 1
    missing = [f["title"] for f in kept["figures"] if "gpugrad" not in f["seconds"]]
    assert [title for title in missing if "Gaussian" not in title] == []


TORCH = """
import os, signal, types
CRASHES = {crashes}

def profile(activities):
    if CRASHES:
        os.kill(os.getpid(), signal.SIGSEGV)
    raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")

def zeros(*shape, device):
    assert device == "cuda"

profiler = types.SimpleNamespace(profile=profile, ProfilerActivity=types.SimpleNamespace(CUDA=1))
"""


@pytest.mark.slow
@needs_driver
@pytest.mark.parametrize("crashes", [False, True])
def test_a_profiler_that_fails_loses_no_times(tmp_path, crashes):
    (tmp_path / "torch.py").write_text(TORCH.format(crashes=crashes))
    environment = on_driver({"GPUGRAD_CUDA_NULL_WORK": "1"})
    environment["PYTHONPATH"] += os.pathsep + str(tmp_path)
    command = [sys.executable, "-P", str(PARTS / "profile_step.py"), str(tmp_path / "r.jsonl"),
               "mlp", "--small"]  # fmt: skip
    environment["PYTHONPATH"] += os.pathsep + str(PARTS)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == (-signal.SIGSEGV if crashes else 0), done.stderr
    (*_, record) = records_of(tmp_path / "r.jsonl", "profile")
    assert record["total_us"] >= record["host_us"] > 0
    assert len(record["registers"]) > 5
    if not crashes:
        assert record["by"].startswith("steps alone, as RuntimeError: CUPTI_ERROR_INSUFFICIENT")
        assert record["launches"] > 10


@pytest.mark.slow
@needs_driver
def test_a_bare_machine_runs_what_it_can(tmp_path):
    """No g++, git or home directory; packages only as wheels."""
    wheel = tmp_path / "carried-1.0-py3-none-any.whl"
    about = "Metadata-Version: 2.1\nName: carried\nVersion: 1.0\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("nvmath/__init__.py", "")
        archive.writestr("carried-1.0.dist-info/METADATA", about)
        archive.writestr("carried-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("carried-1.0.dist-info/RECORD", "")
    bare = {"HOME": "/proc/no-home", "PATH": str(tmp_path), "GPUGRAD_CUDA_NULL_WORK": "1",
            "GPUGRAD_CACHE_DIR": str(place.cache().parent)}  # fmt: skip
    command = [sys.executable, str(SCRIPT), "--only", "facts,kernels", "--small", "--out",
               str(tmp_path), "--allow-missing", "--wheels", str(tmp_path)]  # fmt: skip
    environment = {k: v for k, v in on_driver(bare).items() if k != "XDG_CACHE_HOME"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "g++ is not installed: no compiled programs on the CPU" in lines
    # it was installed, but cannot be imported whole
    assert any(line.startswith("nvmath is not installed") for line in lines)
    assert any(
        line.startswith("the home directory is read-only: CUPY_CACHE_DIR=") for line in lines
    )
    assert any(line.startswith("| kernel | NVRTC 13.0 compiles in") for line in lines)
    assert "commit unknown" in done.stdout
    wheel.write_text("nothing")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot be installed" in done.stderr


@pytest.mark.slow
@needs_driver
def test_facts_that_need_more_memory_than_there_is_name_it(tmp_path):
    command = [sys.executable, str(PARTS / "facts.py"), str(tmp_path / "r.jsonl"), "--small"]
    settings = {"GPUGRAD_CUDA_MEMORY": "60000"}
    done = subprocess.run(command, env=on_driver(settings), capture_output=True, check=False)
    assert done.returncode == 1
    facts = {r["item"]: r for r in records_of(tmp_path / "r.jsonl", "facts")}
    assert "OutOfMemoryError" in facts["copy of 1 GiB, TB/s"]["why"]
    assert facts["graph of 100 nodes, us of the host and in all"]["state"] == "passed"


BROKEN = """
import runpy
runpy.run_path({site!r})
import os, signal, time
import gpugrad as gg
from gpugrad.core.backend import OPS


def hang_once(rng, samples=OPS["cosh"].samples):
    if not os.path.exists({mark!r}):
        open({mark!r}, "w").close()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(600)
    return samples(rng)


object.__setattr__(OPS["sinh"], "samples", lambda rng: os._exit(11))
object.__setattr__(OPS["cosh"], "samples", hang_once)
"""


@pytest.mark.slow
def test_ops_continue_after_a_crash_and_a_hang(tmp_path, monkeypatch, on_stand_in):
    (tmp_path / "sitecustomize.py").write_text(
        BROKEN.format(site=str(STAND_IN / "sitecustomize.py"), mark=str(tmp_path / "hung"))
    )
    root = str(SCRIPT.parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), root)))
    command = [
        sys.executable, str(PARTS / "ops.py"), str(tmp_path / "r.jsonl"), "--processes", "2",
        "--seconds", "100", "--hung", "8", "--ops", "sin", "sinh", "cos", "cosh", "take",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    states = {tuple(r["item"]): r for r in records_of(tmp_path / "r.jsonl", "ops")}
    assert len(states) == 25
    assert {r["state"] for (op, _), r in states.items() if op == "sinh"} == {"crashed"}
    assert [op for (op, _), r in states.items() if r["state"] == "hung"] == ["cosh"]
    assert sum(r["state"] == "passed" for r in states.values()) == 19
    assert "[sinh] [native]: crashed: exit 11" in done.stdout
    assert "ops: 25 items, 6 did not pass" in done.stdout
    before = len(records_of(tmp_path / "r.jsonl", "ops"))
    subprocess.run(command, capture_output=True, check=False)  # it has nothing left to do
    assert len(records_of(tmp_path / "r.jsonl", "ops")) == before


WORK = """
import os, sys, time, signal
sys.path.insert(0, {parts!r})
import workers
import cupy

def measure(item):
    if item == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if item == "hang":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(600)
    if item == "memory":
        raise MemoryError("no room")
    if item == "wrong":
        return {{"why": "3 is not 4"}}
    if item == "broken":
        def refuse(self): raise RuntimeError("an illegal memory access")
        cupy.cuda.Device = type("Device", (), {{"synchronize": refuse}})
        raise ValueError("lost")
    return {{"value": item}}

args = workers.parser("", processes=1, seconds=100, hung=1.5).parse_args()
items = ["a", "crash", "b", "hang", "c", "memory", "d", "wrong", "e", "broken", "f"]
sys.exit(workers.run(args, "facts", items, measure))
"""


def test_workers_go_on_behind_items_that_crash_hang_or_fail(tmp_path, on_stand_in):
    script, path = tmp_path / "script.py", tmp_path / "r.jsonl"
    script.write_text(WORK.format(parts=str(PARTS)))
    command = [sys.executable, str(script), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    outcomes = {r["item"]: (r["state"], r.get("why", "")) for r in records_of(path, "facts")}
    assert [item for item, (state, _) in outcomes.items() if state == "passed"] == list("abcdef")
    assert outcomes["crash"] == ("crashed", "ended by SIGSEGV")
    assert outcomes["hang"] == ("hung", "no end after 2 s; killed")
    assert outcomes["memory"][1].startswith("MemoryError: no room @ ")
    assert outcomes["wrong"] == ("failed", "3 is not 4")
    assert outcomes["broken"][0] == "crashed"
    assert "ValueError: lost @ workers.py" in outcomes["broken"][1]
    assert "facts: 11 items, 5 did not pass" in done.stdout
    assert "in measure" in done.stderr  # where it hung


@pytest.mark.slow
def test_items_without_time_are_left_to_the_next_run(gpu, tmp_path, on_stand_in):
    script, path = tmp_path / "script.py", tmp_path / "r.jsonl"
    script.write_text(WORK.format(parts=str(PARTS)).replace("items = ", "items = ['a', 'z'] or "))
    command = [sys.executable, str(script), str(path)]
    assert gpu.run([*command, "--seconds", "-9"], 60, tmp_path / "log") == "unfinished"
    assert gpu.run(command, 60, tmp_path / "log") == "passed"
    assert [r["item"] for r in records_of(path, "facts") if r["state"] == "passed"] == ["a", "z"]
    path.unlink()
    script.write_text(script.read_text().replace("import cupy", "import cupy_lacks_this"))
    assert gpu.run(command, 60, tmp_path / "log") == "failed"


FRAGILE = """
import sys, time, types
import pytest

broken = []

class Device:
    def synchronize(self):
        if broken:
            raise RuntimeError("an illegal memory access")

sys.modules["cupy"] = types.SimpleNamespace(cuda=types.SimpleNamespace(Device=Device))

@pytest.mark.parametrize("k", range(6))
def test_some(k):
    assert not broken
    if k == 2:
        broken.append(k)
        raise ValueError("the reason")
    if k == 3:
        time.sleep(60)
"""


@pytest.mark.slow
def test_tests_go_on_after_one_that_hangs_and_one_that_breaks_the_context(gpu, tmp_path):
    (tmp_path / "test_fragile.py").write_text(FRAGILE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    setup = gpu.Setup(sys.executable, tmp_path / "log")
    command = ["-n", "1", str(tmp_path), "-c", str(tmp_path / "pytest.ini")]
    outcome = setup.pytest(100, [], command, GPUGRAD_TESTS_HUNG="2")
    assert outcome.startswith("failed: 2 failed, 4 passed in"), outcome
    log = setup.log.read_text()
    assert "test_some[2] broke the CUDA context:" in log
    assert "ValueError: the reason" in log
    assert "in test_some\n" in log[log.index("Timeout") :]  # where the other one hung
    assert log.count("crashed while running") >= 2


RESULTS = {
    "gpu": "made-up", "date": "2026-01-31", "commit": "0123456789abcdef",
    "parts": {"ops": {"ops": "failed"}},
    "facts": {"copy of 1 GiB, TB/s": 2.9, "properties": {"name": "made-up"}},
    "ops": {"checked": 10, "failures": [
        {"item": ["tanh", "native"], "state": "hung", "why": "killed"}]},
    "kernels": {"loaded": 5, "most_registers": [255, "a.cu", "b<float>"], "failures": [
        {"item": ["a.cu", "c<float>"], "registers": 9, "why": "16 bytes of local memory"}]},
    "profiles": {
        "mlp": {"host_us": 1.0, "total_us": 2.0, "launches": 3.0, "kernels_us": 1.5,
                "first_calls_s": [0.5, 0.1],
                "registers": {"k": [40, 0], "spiller": [255, 8]}, "by": "CUPTI",
                "kernels": [[1.5, 3.0, "k"]]},
        "gpt2": {"first_calls_s": [9.0]}},
    "figures": [{"title": "a step", "seconds": {"gpugrad": 1e-5, "torch": 2e-5}}],
}  # fmt: skip


def tables(*arguments):
    command = [sys.executable, str(PARTS / "tables.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_tables_are_printed_from_a_results_file(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(RESULTS))
    lines = tables(path).stdout.splitlines()
    for line in (
        "Measured on made-up, commit 0123456789ab:", "| copy of 1 GiB, TB/s | 2.9 |",
        "9 of 10 pairs of op and phase agree with the CPU.", "| tanh, native | hung: killed |",
        "| c<float> | 16 bytes of local memory, 9 registers |",
        "5 kernels loaded; b<float> has the most registers: 255.", "| k | 3 | 1.5 |",
        "mlp: first calls 0.5, 0.1 s; then host 1.0 us, total 2.0 us a step; 3 launches, 2 us of "
        "kernels (CUPTI).",
        "2 kernels loaded; spiller has the most registers: 255. Spills: spiller.",
        "gpt2: first calls 9.0 s; the profiler did not end.",
        "| a step | 10.0 us | torch 0.50 | - |", "| ops | ops failed |",
    ):  # fmt: skip
        assert line in lines
    path.write_text(json.dumps({"gpu": "made-up", "commit": "0", "parts": {}}))
    assert tables(path).returncode == 0  # nothing has run
    fact = {"part": "facts", "item": "a fact", "state": "passed", "value": 3}
    path.with_suffix(".jsonl").write_text(json.dumps(fact))
    assert "| a fact | 3 |" in tables(path).stdout  # of a run that was killed


def test_tables_are_written_into_the_places_of_a_document(tmp_path):
    document, results = tmp_path / "README.md", tmp_path / "results"
    text = "# A\n\n<!-- ci/gpu: bench, facts -->\n<!-- ci/gpu: end -->\n\nB\n"
    document.write_text(text)
    results.mkdir()
    assert tables("--check", document, "--results", results).returncode == 1
    assert document.read_text() == text
    assert tables("--write", document, "--results", results).returncode == 0
    assert "-->\nNot measured on a GPU yet.\n<!-- ci/gpu: end -->\n\nB\n" in document.read_text()
    older = RESULTS | {"date": "2026-01-30", "commit": "older"}
    for name, each in (("a", RESULTS), ("b", older), ("c", RESULTS | {"gpu": "another"})):
        (results / f"{name}.json").write_text(json.dumps(each))
    tables("--write", document, "--results", results)
    written = document.read_text()
    assert written.count("Measured on") == 2
    assert "commit older" not in written
    assert written.index("on another,") < written.index("on made-up,") < written.index("\nB\n")
    assert written.index("| a step | 10.0 us |") < written.index("| copy of 1 GiB, TB/s | 2.9 |")
    assert tables("--check", document, "--results", results).returncode == 0
    document.write_text("<!-- ci/gpu: nothing -->\n<!-- ci/gpu: end -->\n")
    assert "there is no part 'nothing'" in tables("--write", document).stderr


def test_results_of_calls_that_ran_apart_are_merged(tmp_path):
    name, results = "made-up-2026-01-31.json", tmp_path / "results"
    first, second = RESULTS | {"figures": []}, {
        "gpu": "made-up", "date": "2026-01-31", "commit": RESULTS["commit"],
        "parts": {"bench": {"mlp": "passed"}}, "figures": RESULTS["figures"],
    }  # fmt: skip
    for folder, each in (("1", first), ("2", second)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(json.dumps(each))
    done = tables("--keep", tmp_path / "1" / name, tmp_path / "2" / name, "--results", results)
    assert done.stdout.split() == [str(results / name)]
    kept = json.loads((results / name).read_text())
    assert {k: kept[k] for k in RESULTS if k != "parts"} == {
        k: v for k, v in RESULTS.items() if k != "parts"
    }
    assert kept["parts"] == {"ops": {"ops": "failed"}, "bench": {"mlp": "passed"}}
    newer = second | {"commit": "newer"}
    (tmp_path / "2" / name).write_text(json.dumps(newer))
    tables("--keep", tmp_path / "2" / name, "--results", results)
    assert json.loads((results / name).read_text()) == newer
    (tmp_path / "2" / name).write_text(json.dumps(newer | {"small": True}))
    assert "is a rehearsal" in tables("--keep", tmp_path / "2" / name).stderr


def test_tables_of_the_documents_are_those_of_the_results():
    root = SCRIPT.parents[1]
    done = tables("--check", root / "README.md", *sorted((root / "docs").glob("*.md")))
    assert done.returncode == 0, done.stdout


def test_tests_on_a_device_have_its_marker():
    files = ("tests/ops/test_ops.py", "tests/function/test_gpu.py", "tests/core/test_devices.py")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", "device", *files]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=SCRIPT.parents[1]
    )
    for name in ("test_op_on_a_device[tanh]", "test_gpu.py", "test_to_device_copies"):
        assert name in done.stdout
    assert "test_op[tanh]" not in done.stdout
