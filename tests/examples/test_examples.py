"""The options that all examples share, and the results of the small ones."""

import importlib
import re
import signal
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

import gpugrad as gg
from gpugrad import checkpoint
from gpugrad.examples import common

SMALL = {
    "digits": "--batch-size 128",
    "charlm": "--width 16 --layers 1 --heads 2 --length 16 --batch-size 32 --characters 4000 "
    "--write 3",
    "vae": "--width 16 --batch-size 256",
    "neural_ode": "--width 8 --steps 3 --batch-size 128",
    "custom_kernel": "--width 8 --points 200",
    "gp": "--points 40 --inducing 5",
    "deblur": "--side 24",
    "register": "--side 32",
    "heat": "--rings 4 --heatings 2",
    "equalizer": "--samples 200",
}


@pytest.fixture(autouse=True)
def _import_custom_kernel_anew():  # its op is forgotten after each test
    yield
    sys.modules.pop("gpugrad.examples.custom_kernel", None)


def main(name, *options):
    return importlib.import_module(f"gpugrad.examples.{name}").main([*map(str, options)])


def run(name, output, *options, device="cpu"):
    small = SMALL[name].split()
    return main(name, "--device", device, "--quiet", "--output", output, *small, *options)


def last_checkpoint(output):
    return checkpoint.load(max((output / "checkpoints").iterdir()))[0]


@pytest.mark.parametrize(
    "name", [n if n in ("gp", "digits") else pytest.param(n, marks=pytest.mark.slow) for n in SMALL]
)
def test_a_run_stopped_by_ctrl_c_ends_exactly_as_an_uninterrupted_one(
    name, tmp_path, monkeypatch, capsys
):
    def stop(self, run):
        if run.step == 3:
            signal.raise_signal(signal.SIGINT)

    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert run(name, whole, "--epochs", 4) == 0
    assert (whole / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(common._Announce, "end_of_step", stop)
    assert run(name, stopped, "--epochs", 4) == 130
    monkeypatch.undo()
    capsys.readouterr()
    assert run(name, stopped, "--epochs", 4, "--resume") == 0
    assert "at step 3." in capsys.readouterr().out
    a, b = last_checkpoint(whole), last_checkpoint(stopped)
    assert a.keys() == b.keys()
    for key in a:
        np.testing.assert_array_equal(a[key], b[key], err_msg=key)


@pytest.mark.parametrize("name", SMALL)
def test_it_runs_on_the_gpu_with_the_same_command(name, tmp_path, cuda):
    assert run(name, tmp_path, "--epochs", 1, device=cuda) == 0


@pytest.mark.parametrize("name", SMALL)
def test_help_says_what_it_reaches_and_has_the_shared_options(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(name, "--help")
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert "second" in text
    assert "shared machine" in text
    for option in ("--epochs", "--seed", "--device", "--output", "--resume", "--quiet"):
        assert option in text


def number_after(words, text):
    return float(re.search(rf"{re.escape(words)} (-?[\d.]+\d)", text)[1])


@pytest.mark.slow
def test_vae_needs_fewer_nats_for_digits_it_has_not_seen(tmp_path, capsys):
    full = ["--device", "cpu", "--quiet", "--output", tmp_path]
    assert main("vae", *full, "--epochs", 15) == 0
    assert number_after("Held-out digits:", capsys.readouterr().out) < 30  # 44 without a picture


@pytest.mark.parametrize("gradient", ["adjoint", pytest.param("unrolled", marks=pytest.mark.slow)])
def test_neural_ode_follows_the_spiral(gradient, tmp_path, capsys):
    full = ["--device", "cpu", "--quiet", "--output", tmp_path]
    options = "--epochs", 10, "--steps", 5, "--gradient", gradient
    assert main("neural_ode", *full, *options) == 0
    text = capsys.readouterr().out
    assert number_after("Error of the whole spiral:", text) < 1.2


def test_neural_ode_needs_more_points_than_steps(tmp_path, capsys):
    assert run("neural_ode", tmp_path, "--steps", 600) == 2
    assert "--steps 600: the spiral has only 600 steps" in capsys.readouterr().err


def test_the_adjoint_gradient_converges_to_the_unrolled_one_with_the_fourth_power(rng):
    from gpugrad.examples import neural_ode

    start, weights = gg.constant(rng.normal(size=(3, 2))), gg.Variable(rng.normal(size=(2, 2)))

    def gradients(solver, steps):
        with gg.GradientTape() as tape:
            tape.watch(start)
            states = solver(lambda y: gg.tanh(y @ weights), start, steps, 1 / steps)
            value = gg.sum(states[-1] ** 2) + gg.sum(states[steps // 2])
        return np.concatenate([g.numpy().ravel() for g in tape.gradient(value, [start, weights])])

    errors = []
    for steps in (4, 8, 16):
        a = gradients(neural_ode.solve_with_adjoint, steps)
        errors.append(np.abs(a - gradients(neural_ode.solve, steps)).max())
    assert errors[2] < 1e-6
    np.testing.assert_array_less(10, np.divide(errors[:-1], errors[1:]))


def test_snake_passes_the_checks_of_an_op():
    importlib.import_module("gpugrad.examples.custom_kernel")
    gg.testing.check_op("snake")


@pytest.mark.slow
def test_snake_continues_a_wave_and_relu_does_not(tmp_path, capsys):
    full = ["--device", "cpu", "--quiet", "--output", tmp_path]
    assert main("custom_kernel", *full) == 0
    text = capsys.readouterr().out
    assert number_after("Error outside:", text) < 0.5
    assert number_after("with snake,", text) > 2


def test_gp_learns_the_noise_and_its_sparse_bound_is_tight(tmp_path, capsys):
    full = ["--device", "cpu", "--quiet", "--output", tmp_path]
    assert main("gp", *full, "--points", 100) == 0
    text = capsys.readouterr().out
    assert 0.15 < number_after("noise", text) < 0.25
    evidence, bound = (number_after(w, text) for w in ("log marginal likelihood", "bound"))
    assert evidence - 0.5 < bound <= evidence + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words", "most"),
    [("vae", "Held-out digits:", 25.5), ("neural_ode", "Error of the whole spiral:", 0.3)],
)
def test_the_whole_run_reaches_what_its_docstring_says(name, words, most, tmp_path, capsys):
    assert main(name, "--device", "cpu", "--quiet", "--output", tmp_path) == 0
    assert number_after(words, capsys.readouterr().out) < most
