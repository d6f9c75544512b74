"""The tutorials run, print nearly the numbers that they show, and draw their pictures.

``python tests/test_tutorials.py NAME...`` draws the pictures of docs/pictures anew.
"""

import contextlib
import io
import re
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gpugrad as gg

PAGES = Path(__file__).parent.parent / "docs" / "tutorials"
PICTURES = PAGES.parent / "pictures"
NAMES = sorted({page.stem for page in PAGES.glob("*.md")} - {"README"})
FAST = {"graph"}  # below two seconds
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d+\.?\d*")


def run(name, folder):
    """Run a page; its globals, and pairs of the lines that its code prints and that it shows."""
    shutil.copy(PAGES / "digits_0_4.safetensors", folder)
    gg.set_seed(0)
    scope, pairs = {"__name__": name}, []
    with contextlib.chdir(folder):
        for code, text in BLOCK.findall((PAGES / f"{name}.md").read_text()):
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(code, f"{name}.md", "exec"), scope)
            shown = text.splitlines() or re.findall(r"^ *print\(.*\)  # (.+)$", code, re.MULTILINE)
            pairs.append((output.getvalue().splitlines(), shown))
    return scope, pairs


def slow_unless_fast(names):
    return [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in names]


@pytest.mark.parametrize("name", slow_unless_fast(NAMES))
def test_a_tutorial_prints_what_it_shows_and_draws_its_picture(name, tmp_path):
    _, pairs = run(name, tmp_path)
    for actual, shown in pairs:
        assert [NUMBER.sub("#", a) for a in actual] == [NUMBER.sub("#", a) for a in shown]
        for a, b in zip(actual, shown, strict=True):  # training differs between CPUs
            numbers = (np.array(NUMBER.findall(line), float) for line in (a, b))
            np.testing.assert_allclose(*numbers, rtol=0.1, atol=0.02, err_msg=a)
    assert (tmp_path / f"{name}.png").stat().st_size > 2000


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_is_listed_and_has_a_small_picture(name):
    text = (PAGES / f"{name}.md").read_text()
    assert f"]({name}.md)" in (PAGES / "README.md").read_text()
    assert f"](../pictures/{name}.png)" in text
    assert f'savefig("{name}.png"' in text
    assert (PICTURES / f"{name}.png").stat().st_size < 60_000
    assert len(text.splitlines()) <= 170


def torch_block(name):
    text = (PAGES / f"{name}.md").read_text()
    return re.search(r"^```python torch\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]


@pytest.mark.peers
def test_torch_s_programs_in_tutorials_do_what_the_pages_say(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    exec(torch_block("finetune"), {})
    new, old = (gg.checkpoint.load(f / "digits_0_4.safetensors")[0] for f in (tmp_path, PAGES))
    assert {k: np.shape(v) for k, v in new.items()} == {k: np.shape(v) for k, v in old.items()}
    scope = {}
    exec(torch_block("ports"), scope)
    assert abs(scope["curve"][-1] - run("ports", tmp_path)[0]["curve"][-1]) < 0.03


@pytest.mark.peers
def test_the_ported_script_runs_in_tensorflow_with_another_import(tmp_path):
    pytest.importorskip("tensorflow")
    code = BLOCK.findall((PAGES / "ports.md").read_text())[0][0]
    assert code.count("import gpugrad.compat.tf as tf") == 1
    scope = {}
    exec(code.replace("import gpugrad.compat.tf as tf", "import tensorflow as tf"), scope)
    assert abs(float(scope["right"]) - 0.89) < 0.05


if __name__ == "__main__":
    import tempfile

    from PIL import Image

    for each in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory() as directory:
            start = time.perf_counter()
            for printed, _ in run(each, Path(directory))[1]:
                print(*printed, sep="\n")
            picture = Image.open(Path(directory) / f"{each}.png").convert("RGB").quantize(64)
            picture.save(PICTURES / f"{each}.png", optimize=True)  # a third of the bytes
        print(f"{each}: {time.perf_counter() - start:.1f} s")
