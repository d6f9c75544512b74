"""Every bench runs with small sizes, and its training matches torch's."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from needs import needs_driver, needs_shim

import gpugrad as gg

BENCHES = Path(__file__).parents[2] / "ci" / "bench"

SMALL = {
    "adamw": ["--rounds", "1"],
    "attention": ["--rounds", "1", "--tokens", "32", "--lengths", "16"],
    "compile": ["--ops", "20,40", "--models", "MLP", "--rounds", "1"],
    "convolution": ["--rounds", "1", "stage 4"],
    "decode": ["--rounds", "1", "--small"],
    "distributed": ["--rounds", "1", "--small"],
    "fit": ["--rounds", "1", "--small"],
    "function": ["--rounds", "1", "--elements", "1000", "--only", "torch, eager"],
    "gp": ["--rounds", "1", "--points", "32"],
    "gpt2": ["--rounds", "1", "--only", "torch, eager"],
    "gradbench": ["--rounds", "1", "--small"],
    "imports": ["--rounds", "1"],
    "jacobian": ["--rounds", "1", "--small"],
    "matmul": ["--rounds", "1"],
    "memory": ["--small"],
    "mlp": ["--rounds", "1", "--only", "torch, default Adam", "NumPy by hand"],
    "models": [
        "--rounds",
        "1",
        "--small",
        "--only",
        "torch, eager",
        "--models",
        "GPT",
        "GRU layer",
    ],
    "nn": ["--rounds", "1", "--small"],
    "ops": ["--rounds", "1", "--small"],
    "resnet": ["--rounds", "1", "--batch", "2", "--only", "torch, eager"],
    "rows": ["--rounds", "1", "--rows", "4", "--lengths", "16"],
    "scan": ["--rounds", "1", "--ops", "roll"],
    "science": ["--rounds", "1", "--small"],
    "sizes": ["--rounds", "1", "--sizes", "100", "--ops", "add", "softmax", "take"],
}
"""Arguments that make each bench short; overhead is not here, as ci/check runs it."""

NO_FIGURES = {"compile", "imports", "memory", "nn", "sizes"}
"""Benches that print one table for all and write no figures."""

ON_A_GPU = {
    "adamw": (["--small"], {"at least 0.85 of a copy"}),
    "attention": (["--tokens", "16", "--lengths", "16", "--heads", "1"],
                  {"at most 1.11 of torch, its choice"}),
    "convolution": (["--examples", "1", "shortcut 2"], {"at most 1.05 of torch"}),
    "function": (["--elements", "1000"], {"at least 0.90 of a copy"}),
    "gp": (["--points", "32"], {"at most 0.50 of torch"}),
    "matmul": (["--small"], {"at most 1.03 of torch"}),
    "overhead": ([], {"at most 1.00 of torch"}),
    "rows": (["--rows", "4", "--lengths", "16"],
             {"at most 1.00 of torch", "at least 0.80 of a copy"}),
}  # fmt: skip
"""Benches of kernels: arguments that make them short on a GPU, and their targets."""


def test_every_bench_has_small_arguments():
    helpers = {"peers", "training", "overhead"}
    assert {path.stem for path in BENCHES.glob("*.py")} == SMALL.keys() | helpers


@pytest.fixture
def figures(tmp_path):
    """A function that runs a bench and reads its figures; it fails if the bench does."""

    def run(name: str, on_a_gpu: list[str] | None = None) -> list[dict]:
        path, command = tmp_path / "figures", [BENCHES / f"{name}.py", *SMALL.get(name, ())]
        if on_a_gpu is not None:
            stand_in = Path(__file__).parents[1] / "bench_without_gpu.py"
            command = [stand_in, name, "--rounds", "1", *on_a_gpu]
        done = subprocess.run(
            [sys.executable, *command],
            env=os.environ | {"GPUGRAD_BENCH_FIGURES": str(path), "GPUGRAD_DEVICE": "cpu"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == 0 or "MISSED" in done.stdout, done.stdout
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return run


@pytest.fixture
def peers():
    """ci/bench/peers.py, which the benches share, as a module."""
    spec = importlib.util.spec_from_file_location("peers", BENCHES / "peers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")  # torch's own warnings
def test_torch_compiles_each_shape_of_a_bench_separately(peers):
    torch, shapes = pytest.importorskip("torch"), []

    def backend(graph, inputs):
        shapes.append(inputs[0].shape)
        return graph.forward

    for n in range(2, 14):  # torch.compile gives up after 8
        peers.torch_compile(lambda x: torch.softmax(x, -1), backend=backend)(torch.ones(3, n))
    assert shapes == [(3, n) for n in range(2, 14)]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SMALL.keys() - {"gpt2", "resnet"}))
def test_bench_runs_with_small_sizes(name, figures):
    records = figures(name)
    assert all(figure["seconds"]["gpugrad"] > 0 for figure in records)
    assert bool(records) == (name not in NO_FIGURES)


@pytest.mark.slow
def test_every_model_of_the_bench_trains(monkeypatch):
    monkeypatch.syspath_prepend(BENCHES)
    from networks import MODELS, libraries

    losses_of = {name: kind for name, kind in MODELS.items() if not name.endswith("layer")}
    for kind in losses_of.values():  # layers run by the libraries' own classes
        model = kind(small=True)
        w = {name: gg.Variable(a) for name, a in model.weights().items()}
        batch = [gg.asarray(a) for a in model.batch(np.random.default_rng(1))]
        optimizer = (gg.optim.AdamW if model.by_adam else gg.optim.SGD)(model.rate)
        losses = []
        for _ in range(5):
            with gg.GradientTape() as tape:
                losses.append(model.loss(libraries.of_gpugrad(), w, *batch))
            grads = tape.gradient(losses[-1], list(w.values()))
            assert all(g is not None for g in grads), kind
            optimizer.apply_gradients(zip(grads, w.values(), strict=True))
        assert float(losses[-1]) < float(losses[0]), kind


@needs_driver
@pytest.mark.slow
@needs_shim
@pytest.mark.parametrize("name", ON_A_GPU)
def test_bench_on_a_gpu_runs_beside_cupy_and_reports_its_targets(name, figures):
    arguments, reach = ON_A_GPU[name]
    records = figures(name, arguments)
    judged = [set(figure["reach"]) for figure in records if "reach" in figure]
    others = name == "function"  # its table of small ops, for replay, has no target
    assert judged == [reach] * (len(records) - others)
    assert all(figure["seconds"]["gpugrad"] > 0 for figure in records)
    beside = [figure for figure in records if "CuPy by hand" in figure["seconds"]]
    assert len(beside) == len(judged)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("name", ["gpt2", "resnet"])
def test_training_bench_matches_torch(name, figures):
    pytest.importorskip("torch")
    losses = figures(name)[-1]["losses"]
    ours, theirs = losses["gpugrad"], losses["torch, eager"]
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)  # equal weights, so equal losses
    assert ours == pytest.approx(theirs, abs=1e-3 * theirs[0])
    assert ours[-1] < 0.95 * ours[0]
