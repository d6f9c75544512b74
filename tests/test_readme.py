"""The README and the pages that it leads to tell the truth: code runs, numbers are counted."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from needs import needs_thresholds

import gpugrad as gg

HOME = Path(__file__).parent.parent
README = (HOME / "README.md").read_text()
REPOSITORY = "https://github.com/gpugrad/gpugrad"
NO_GPU = "No GPU has run this version yet"


@needs_thresholds
def test_code_of_the_readme_runs_and_prints_what_is_shown():
    """Behind ``print(...)`` or in the next text block, where ``...`` leaves lines out."""
    scope = {"__name__": "script"}
    for code, shown in re.findall(
        r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", README, re.DOTALL | re.MULTILINE
    ):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, "script.py", "exec"), scope)
        printed, end = " ".join(output.getvalue().split()), 0
        comments = re.findall(r"^ *print\(.*\)  # (.+)$", code, re.MULTILINE)
        assert not comments or output.getvalue().splitlines() == comments
        for part in shown.split("...\n"):
            end = printed.index(" ".join(part.split()), end)
    assert gg.OPS.pop("swish").kind == "elementwise"


def test_first_screen_says_for_whom_and_what_a_gpu_has_shown():
    lines = README.splitlines()
    assert len(lines) <= 150
    head = "\n".join(lines[:20])
    assert "**It is for you** if" in head
    assert "**It is not for you** if" in head
    measured = list((HOME / "ci/bench/results").glob("*.json"))
    for text in (head, (HOME / "docs/limits.md").read_text()):
        assert (NO_GPU in text) == (not measured), "Say what the GPU has shown."


def test_readme_has_two_commands_that_set_up_a_fresh_machine():
    commands = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    assert len(commands) == 2
    assert all(c.startswith("python3 -m venv .venv && .venv/bin/pip install -e ") for c in commands)


def test_links_of_the_readme_are_absolute_and_lead_to_files_of_the_repository():
    links = re.findall(r"\]\((.*?)\)", README)
    assert len(links) > 5
    raw = REPOSITORY.replace("github", "raw.githubusercontent")
    for link in links:
        path = re.fullmatch(rf"(?:{REPOSITORY}(?:/blob/main/(.*))?|{raw}/main/(.*))", link)
        assert path, link
        assert (HOME / (path[1] or path[2] or "")).exists(), link


def test_counts_of_ops_and_of_scipys_names_are_right():
    (said,) = re.findall(r"^- (\d+) ops,", (HOME / "docs/features.md").read_text(), re.MULTILINE)
    assert int(said) == sum(op.home.startswith("gpugrad.ops.") for op in gg.OPS.values())
    page, count = (HOME / "docs/scipy_names.md").read_text(), {"gpugrad": 0}
    for peers, names in re.findall(r"^\| derivative \| (.*?) \| (.*) \|$", page, re.MULTILINE):
        for library in ("gpugrad", *filter(None, peers.split(", "))):
            count[library] = count.get(library, 0) + names.count("`") // 2
    (row,) = re.findall(r"^\| SciPy's names with a gradient.*$", README, re.MULTILINE)
    total = re.search(r"^\| all \| \d+ \| (\d+) \|", page, re.MULTILINE)[1]
    assert f"[of {total}]" in row
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    peers = [count[name] for name in ("gpugrad", "torch", "jax", "autograd")]
    assert cells == [str(peers[0]), "not counted", *map(str, peers[1:]), "0"]


def test_times_are_those_of_the_page_of_speed():
    page = (HOME / "docs/speed.md").read_text()
    (row,) = re.findall(r"^\| CPU time of an Adam step.*$", README, re.MULTILINE)
    (full,) = re.findall(r"^\| `mlp.py`: Adam step .*$", page, re.MULTILINE)
    names = ("tf.function", "torch", "jax.jit", "autograd")
    assert row.split(" | ")[2:6] == [re.search(rf"{name} ([\d.]+)", full)[1] for name in names]


@pytest.mark.parametrize("file", ["CITATION.cff", "CHANGELOG.md"])
def test_version_is_the_same_everywhere(file):
    assert gg.__version__ in (HOME / file).read_text()
