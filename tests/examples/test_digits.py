"""The digits example: it learns, resumes exactly, and reports errors clearly."""

import json
import re
import shutil
import sys

import numpy as np
import pytest
from fresh import output_of

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

from gpugrad import checkpoint
from gpugrad.examples import digits


def run(output, *options):
    return digits.main(["--device", "cpu", "--quiet", "--output", str(output), *map(str, options)])


def last_checkpoint(output):
    arrays, texts = checkpoint.load(max((output / "checkpoints").iterdir()))
    return arrays, json.loads(texts["states"])["run"]


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """The output of a run of four epochs."""
    output = tmp_path_factory.mktemp("short")
    assert run(output, "--epochs", 4) == 0
    return output


@pytest.mark.slow
def test_whole_run_reads_at_least_97_percent_of_the_test_digits(tmp_path, capsys):
    assert run(tmp_path) == 0
    output = capsys.readouterr().out
    accuracy = float(re.search(r"Test accuracy ([\d.]+)%", output)[1])
    assert accuracy >= 97
    wrong = int(re.search(r"(\d+) of 360 test digits are read wrongly", output)[1])
    assert accuracy == round(100 * (1 - wrong / 360), 2)
    rows = re.findall(r"^ *(\d+) +(\d) +(\d) +([\d.]+)%$", output, re.MULTILINE)
    assert len(rows) == wrong
    assert all(true != predicted for _, true, predicted, _ in rows)
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_convolutions_read_at_least_98_5_percent(tmp_path, capsys):
    assert run(tmp_path, "--model", "cnn", "--epochs", 30) == 0
    assert float(re.search(r"Test accuracy ([\d.]+)%", capsys.readouterr().out)[1]) >= 98.5


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_a_short_run_learns(model, short, tmp_path):
    if model != "mlp":
        assert run(tmp_path, "--epochs", 3, "--model", model) == 0
    history = last_checkpoint(short if model == "mlp" else tmp_path)[1]["history"]
    assert history[-1]["val_accuracy"] > 0.9
    assert history[-1]["loss"] < history[0]["loss"] / 2


def test_a_resumed_run_ends_exactly_as_an_uninterrupted_one(short, tmp_path, capsys):
    assert run(tmp_path, "--epochs", 2) == 0
    assert run(tmp_path, "--epochs", 4, "--resume") == 0
    assert "Going on after epoch 2" in capsys.readouterr().out
    whole, resumed = last_checkpoint(short)[0], last_checkpoint(tmp_path)[0]
    assert whole.keys() == resumed.keys()
    for name in whole:
        np.testing.assert_array_equal(whole[name], resumed[name])


def test_a_finished_run_can_be_resumed_only_to_report(short, capsys):
    assert run(short, "--epochs", 4, "--resume") == 0
    assert "after 4 epochs" in capsys.readouterr().out


def test_a_new_run_overwrites_the_old_one(tmp_path):
    for epochs in (2, 1):
        assert run(tmp_path, "--epochs", epochs) == 0
    assert last_checkpoint(tmp_path)[1]["epoch"] == 1


def test_split_is_fixed_stratified_and_disjoint():
    train, test = digits.load_data()
    again = digits.load_data()[1]
    np.testing.assert_array_equal(test.indices, again.indices)
    assert len(train.labels) + len(test.labels) == 1797
    assert not set(train.indices) & set(test.indices)
    counts = np.bincount(test.labels)
    assert counts.min() >= 34
    assert counts.max() <= 38


def damaged(path):
    path.write_bytes(path.read_bytes()[:-100])


def of_another_model(path):
    _, metadata = checkpoint.load(path)
    checkpoint.save(path, {"w": np.ones(3)}, metadata)


def of_another_program(path):
    for each in path.parent.glob("*.safetensors"):
        checkpoint.save(each, {"w": np.ones(3)})


def without_settings(path):
    (path.parents[1] / "settings.json").unlink()


@pytest.mark.parametrize(
    ("spoil", "options", "words"),
    [
        (without_settings, (), "there is no run in"),
        (damaged, (), "is damaged"),
        (of_another_model, (), "does not fit"),
        (of_another_program, (), "was not written by"),
        (lambda path: None, ("--seed", 1), "resume it with: --seed 0"),
    ],
    ids=["missing", "damaged", "another model", "another program", "settings"],
)
def test_a_wrong_checkpoint_is_a_clear_error_and_is_kept(
    short, tmp_path, capsys, spoil, options, words
):
    shutil.copytree(short, tmp_path, dirs_exist_ok=True)
    (tmp_path / "digits.png").unlink()
    path = max((tmp_path / "checkpoints").iterdir())
    spoil(path)
    before = path.read_bytes()
    assert run(tmp_path, "--resume", "--epochs", 5, *options) == 2
    output = capsys.readouterr()
    assert words in output.err
    assert "Traceback" not in output.err
    assert path.read_bytes() == before
    assert not (tmp_path / "digits.png").exists()


@pytest.mark.parametrize("package", ["sklearn.datasets", "matplotlib", "tqdm"])
def test_missing_package_says_how_to_install_it(package, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    assert run(tmp_path) == 2
    assert "pip install 'gpugrad[examples]'" in capsys.readouterr().err


def test_missing_device_and_folder_that_cannot_be_made_are_errors(tmp_path, capsys):
    assert digits.main(["--device", "cuda:7", "--output", str(tmp_path)]) == 2
    assert "cuda:7" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert run(tmp_path / "file" / "x") == 2
    assert "--output" in capsys.readouterr().err
    (tmp_path / "digits.png").mkdir()
    assert run(tmp_path, "--epochs", 1) == 2
    assert "digits.png" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [["--epochs", "0"], ["--learning-rate", "-1"], ["--seed", "-1"], ["--batch-size", "x"]],
)
def test_options_out_of_range_are_refused(options, capsys):
    with pytest.raises(SystemExit) as stopped:
        digits.main(options)
    assert stopped.value.code == 2
    assert options[0] in capsys.readouterr().err


def test_runs_on_the_gpu_with_the_same_command(tmp_path, cuda, capsys):
    assert (
        digits.main(["--device", cuda, "--epochs", "1", "--quiet", "--output", str(tmp_path)]) == 0
    )
    accuracy = float(re.search(r"Test accuracy ([\d.]+)%", capsys.readouterr().out)[1])
    assert accuracy > 80


def test_module_runs_as_a_command():
    text = output_of("-m", "gpugrad.examples.digits", "--help")
    for option in ("epochs", "model", "batch-size", "learning-rate", "seed", "device", "resume"):
        assert f"--{option}" in text
