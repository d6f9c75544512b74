"""`ci/gpu`: its message without a GPU, the time limits of its parts, and its results."""

import datetime
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import REAL_GPU
from needs import needs_shim

import gpugrad as gg
from gpugrad.testing.cuda import driver

SCRIPT = Path(__file__).parents[2] / "ci" / "gpu"


@pytest.fixture(scope="module")
def gpu():
    loader = importlib.machinery.SourceFileLoader("ci_gpu", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("ci_gpu", loader))
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = before
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


def test_a_command_ends_in_time_with_its_children(gpu, tmp_path):
    log, mark = tmp_path / "log", tmp_path / "mark"
    child = f"import time; time.sleep(4); open({str(mark)!r}, 'w')"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    start = time.monotonic()
    assert gpu.run([sys.executable, "-c", code], 1, log) == "out of time"
    assert time.monotonic() - start < 3.5
    time.sleep(max(0.0, 5.5 - (time.monotonic() - start)))
    assert not mark.exists()


def test_a_command_passes_or_fails_and_is_logged(gpu, tmp_path):
    log = tmp_path / "log"
    assert gpu.run([sys.executable, "-c", "print('all well')"], 30, log) == "passed"
    assert gpu.run([sys.executable, "-c", "raise SystemExit(3)"], 30, log) == "failed"
    assert "all well" in log.read_text()


def test_results_are_named_kept_and_shown(gpu, tmp_path, monkeypatch, capsys):
    figures = {"title": "a step", "seconds": {"gpugrad": 1e-5, "torch": 2e-5}}

    def bench(python, limit, log, path, which):
        path.write_text(json.dumps(figures) + "\n")
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

    def bench(python, limit, log, path, which):
        path.write_text(json.dumps(figures) + "\n")
        yield which[0].stem, f"{limit:.0f}"

    monkeypatch.setattr(gpu, "device", lambda python: {"gpu": "H100", "driver": 13000})
    monkeypatch.setattr(gpu, "commit", lambda: "a")
    monkeypatch.setitem(gpu.PARTS, "bench", bench)
    monkeypatch.setitem(gpu.PARTS, "stress", lambda *args: [("pytest", "passed")])
    only = ["--only", "bench", "--benches", "mlp", "--out", str(tmp_path)]
    gpu.main([*only, "--seconds", "70"])
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


def test_tests_out_of_time_report_their_progress(gpu, tmp_path):
    (tmp_path / "test_slow.py").write_text(
        "import time\ndef test_bad(): assert 0\ndef test_slow(): time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    outcome = gpu.run_pytest(command, 5, tmp_path / "log")
    assert outcome.startswith("out of time: 1 failed in"), outcome


def test_the_sanitizer_runs_every_kernel_by_hand_on_the_device(gpu, tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(gpu.shutil, "which", lambda name: sys.executable)
    monkeypatch.setattr(gpu, "run_pytest", lambda command, *args, **env: commands.append(command))
    list(gpu.sanitizer(sys.executable, 60, tmp_path / "log", tmp_path / "figures"))
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

    monkeypatch.setattr(gpu.shutil, "which", lambda name: name)
    answer = subprocess.CompletedProcess([], 0, "CUDA Version: 13.0")
    monkeypatch.setattr(
        gpu.subprocess, "run",
        lambda command, **keywords: answer if command == ["nvidia-smi"] else refuses(command),
    )  # fmt: skip
    with pytest.raises(gpu.Failure, match=r"could not be created.*\n.*wheels"):
        gpu.make_venv(tmp_path / "venv")
    assert not (tmp_path / "venv").exists()


def test_figures_are_kept_when_the_run_is_stopped(gpu, tmp_path, monkeypatch):
    figures, mark = {"title": "a step", "seconds": {"torch": 1e-5}}, tmp_path / "mark"
    child = f"import time; time.sleep(3); open({str(mark)!r}, 'w')"

    def bench(python, limit, log, path, which):
        path.write_text(json.dumps(figures) + "\n")
        yield "mlp", "failed"
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        yield "gpt2", gpu.run([sys.executable, "-c", child], 60, log)

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


def test_benches_with_a_gpu_mode_are_found_and_training_steps_come_last(gpu):
    names = [path.stem for path in gpu.benches()]
    assert {"adamw", "attention", "convolution", "function", "gp", "matmul", "mlp", "overhead",
            "rows"} == set(names[:-2])  # fmt: skip
    assert names[-2:] == ["gpt2", "resnet"]
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
    records = gpu.read_figures(tmp_path / "f")
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


def test_a_bench_continues_without_failed_peers(capsys):
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
    failed = ["broken: ValueError", "torch: AssertionError", "jax.jit: ValueError"]
    assert peers.failures[:3] == failed
    assert peers.failures[3].startswith("torch: ")
    assert peers.status() == 1
    assert "jax.jit FAILED: ValueError" in capsys.readouterr().out


# ---- the parts, on the made-up driver

STAND_IN = Path(__file__).parents[1] / "stand_in"
PARTS = SCRIPT.parent / "gpu_parts"


@pytest.fixture
def on_stand_in(monkeypatch):
    """Let the processes of commands find the made-up driver."""
    if REAL_GPU:
        pytest.skip(reason="the parts run on the GPU itself")
    if why := driver.unavailable():
        pytest.skip(reason=why)
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))


def records_of(path, part):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line["part"] == part]


SMALL_PARTS = {
    "facts": ["--small"], "ops": ["--processes", "2", "--ops", "tanh", "take", "linear"],
    "kernels": ["--processes", "1", "--only", "spoil<"], "matmul": ["--rounds", "1", "--small"],
}  # fmt: skip
SMALL_TESTS = {
    "tests": ["tests/core/test_devices.py", "-k", "moving or to_device"],
    "tests/test_stress.py": ["tests/test_stress.py", "-k", "out_of_memory"],
}


@pytest.mark.slow
@needs_shim
def test_all_parts_run_on_the_stand_in(gpu, tmp_path, monkeypatch, capsys, on_stand_in):
    original = gpu.run

    def small_run(command, limit, log, **environment):
        return original([*command, *SMALL_PARTS.get(Path(command[1]).stem, [])], limit, log,
                        **environment)  # fmt: skip

    def small_pytest(command, *args, **environment):
        *command, last = [c for c in command if c not in ("-n", "--dist", "worksteal")]
        return original([*command[:3], "-m", "not slow", *SMALL_TESTS[last]], *args, **environment)

    monkeypatch.setattr(gpu, "run", small_run)
    monkeypatch.setattr(gpu, "run_pytest", small_pytest)
    monkeypatch.setattr(gpu, "STEPS", ("mlp",))
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)  # no sanitizer
    assert gpu.main(["--out", str(tmp_path), "--benches", "matmul"]) == 0, capsys.readouterr().out
    (path,) = tmp_path.glob("*.json")
    kept = json.loads(path.read_text())
    assert list(kept["parts"]) == list(gpu.PARTS)
    assert kept["facts"]["properties"]["name"] == "gpugrad made-up H100"
    assert kept["ops"]["checked"] == 15
    assert kept["ops"]["failures"] == []
    assert kept["kernels"]["loaded"] == 4
    assert kept["profiles"]["mlp"]["launches"] > 5
    assert [figure["title"] for figure in kept["figures"]]
    for suffix in (".log", ".jsonl"):
        assert path.with_suffix(suffix).exists()


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
    states = {(r["op"], r["phase"]): r for r in records_of(tmp_path / "r.jsonl", "ops")}
    assert len(states) == 25
    assert {r["state"] for (op, _), r in states.items() if op == "sinh"} == {"crashed"}
    assert [op for (op, _), r in states.items() if r["state"] == "hung"] == ["cosh"]
    assert sum(r["state"] == "passed" for r in states.values()) == 19
    assert "[sinh] native: crashed: exit 11" in done.stdout
    assert "25 pairs of op and phase, 6 of them not passed" in done.stdout
    before = len(records_of(tmp_path / "r.jsonl", "ops"))
    subprocess.run(command, capture_output=True, check=False)  # it has nothing left to do
    assert len(records_of(tmp_path / "r.jsonl", "ops")) == before


def test_an_op_that_differs_on_the_device_is_described(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SCRIPT.parents[1]))
    code = (
        "import sys; sys.argv = ['ops']\n"
        f"sys.path.insert(0, {str(PARTS)!r})\nimport ops\nimport numpy as np, gpugrad as gg\n"
        "print(ops.compare([gg.constant([1.0, 2.5])], [gg.constant([1.0, 2.0])]))\n"
        "print(ops.compare([gg.constant([1.0])], [gg.constant([1.0], 'float64')]))\n"
        "print(ops.compare([gg.constant([1, 2])], [gg.constant([1, 3])]))\n"
        "print(ops.compare([gg.constant([np.nan])], [gg.constant([np.nan])]) == '')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "result 0 differs by 5.00e-01: [1.  2.5] for [1. 2.]",
        "result 0 is float32 (1,) for float64 (1,)", "result 0 is [1 2] for [1 3]", "True",
    ]  # fmt: skip


def test_tables_are_printed_from_a_results_file(tmp_path):
    results = {
        "gpu": "made-up", "commit": "0123456789abcdef", "parts": {"ops": {"ops": "failed"}},
        "facts": {"copy of 1 GiB, TB/s": 2.9, "properties": {"name": "made-up"}},
        "ops": {"checked": 10, "samples": 30, "failures": [
            {"op": "tanh", "phase": "native", "state": "hung", "why": "killed"}]},
        "kernels": {"loaded": 5, "most_registers": [255, "a.cu", "b<float>"], "failures": [
            {"kernel": ["a.cu", "c<float>"], "registers": 9, "spilled": 16}]},
        "profiles": {"mlp": {"host_us": 1.0, "total_us": 2.0, "launches": 3.0, "kernels_us": 1.5,
                             "by": "CUPTI", "kernels": [[1.5, 3.0, "k"]]}},
        "figures": [{"title": "a step", "seconds": {"gpugrad": 1e-5, "torch": 2e-5}}],
    }  # fmt: skip
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results))
    command = [sys.executable, str(PARTS / "tables.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in (
        "Measured on made-up, commit 0123456789ab:", "| copy of 1 GiB, TB/s | 2.9 |",
        "9 of 10 pairs of op and phase agree with the CPU (30 samples).",
        "| tanh, native | hung: killed |", "| c<float> | 16 bytes of local memory, 9 registers |",
        "5 kernels loaded; b<float> has the most registers: 255.", "| k | 3 | 1.5 |",
        "mlp: host 1.0 us, total 2.0 us a step; 3 launches, 2 us of kernels (CUPTI).",
        "| a step | 10.0 us | torch 0.50 | - |", "| ops | ops failed |",
    ):  # fmt: skip
        assert line in done.stdout.splitlines()
    path.write_text(json.dumps({"gpu": "made-up", "commit": "0", "parts": {}}))
    subprocess.run(command, check=True)  # nothing has run


def test_tests_on_a_device_have_its_marker():
    files = ("tests/ops/test_ops.py", "tests/function/test_gpu.py", "tests/core/test_devices.py")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", "device", *files]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=SCRIPT.parents[1]
    )
    for name in ("test_op_on_a_device[tanh]", "test_gpu.py", "test_to_device_copies"):
        assert name in done.stdout
    assert "test_op[tanh]" not in done.stdout
