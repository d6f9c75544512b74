"""The guides in docs/ tell the truth: their code runs, and prints what its comments say."""

import contextlib
import importlib.machinery
import io
import itertools
import re
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
from fresh import output_of
from needs import needs_shim, needs_thresholds

import gpugrad as gg

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
MARKED = [  # a page whose CUDA kernels are compiled for the CPU where there is no GPU
    pytest.param(page, marks=needs_shim) if page.stem == "coming-from-cupy" else page
    for page in PAGES
]


def blocks(page, kind="python"):
    """The code blocks of a page: ``python`` for gpugrad's, ``python torch`` for torch's."""
    return [code.lstrip("\n") for code in placed_blocks(page, kind)]


def placed_blocks(page, kind="python"):
    """The code blocks of a page, each below as many empty lines as stand above it in the page."""
    text = page.read_text()
    for found in re.finditer(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield "\n" * text.count("\n", 0, found.start(1)) + found[1]


def run_blocks(page, scope):
    """Run the code of a page; an error's traceback, and what this raises, say the page's line."""
    for code in placed_blocks(page):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(code, str(page), "exec"), scope)
        if comments := expected(code):
            lines = output.getvalue().splitlines()
            places = [i for i, x in enumerate(code.splitlines(), 1) if expected(x)]
            for place, comment, line in itertools.zip_longest(places, comments, lines):
                assert line == comment, f"{page}:{place}: prints {line!r}"


def expected(code):
    """The output that the code promises: the comments behind ``print(...)``."""
    return re.findall(r"^ *print\(.*\)  # (.+)$", code, re.MULTILINE)


@pytest.mark.parametrize("page", MARKED, ids=lambda page: page.stem)
@needs_thresholds
def test_code_of_a_guide_runs_and_prints_what_its_comments_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gg.set_seed(0)
    run_blocks(page, {"__name__": page.stem})


@pytest.mark.parametrize("line", ["print(1 + 1)  # 3", "gg.no_such_name"])
def test_a_guide_that_does_not_run_fails_with_its_line(line, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n```python\nimport gpugrad as gg\n\n{line}\n```\n")
    with pytest.raises((AssertionError, AttributeError)) as caught:
        run_blocks(page, {})
    text = "".join(traceback.format_exception(caught.value))
    assert f"{page}:6" in text or f'"{page}", line 6' in text


NEEDS = re.compile(r"^```python needs (\w+)", re.MULTILINE)
NEEDING = sorted({(page, name) for page in PAGES for name in NEEDS.findall(page.read_text())})


@pytest.mark.parametrize(("page", "library"), NEEDING, ids=lambda part: getattr(part, "stem", part))
def test_code_of_a_guide_that_needs_another_library_runs(page, library):
    """In a process of its own: a library may be replaced, or print warnings when it is imported."""
    if importlib.machinery.PathFinder.find_spec(library) is None:  # others may stand in for it here
        pytest.skip(f"{library} is not installed")
    code = "\n".join(blocks(page, f"python needs {library}"))
    assert output_of("-c", code).splitlines() == expected(code)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_links_between_guides_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_index_lists_every_guide():
    text = (DOCS / "README.md").read_text()
    assert {p.name for p in PAGES} - {"README.md"} == set(re.findall(r"\]\((\w[\w-]*\.md)\)", text))


@pytest.mark.parametrize("page", sorted(DOCS.glob("coming-from-*.md")), ids=lambda page: page.stem)
def test_tables_of_names_name_what_there_is(page):
    """In the last column, all that begins with ``gg.``."""
    for row in re.findall(r"^\|.*\|$", page.read_text(), re.MULTILINE):
        for name in re.findall(r"`(gg\.[\w.]+)", row.rsplit("|", 2)[1]):
            thing = gg
            for part in name.split(".")[1:]:
                thing = getattr(thing, part)


def lines_of(code):
    return [x for x in code.splitlines() if x.strip() and not x.strip().startswith("#")]


def test_gpt_recipe_is_no_longer_than_the_same_program_in_torch():
    page = DOCS / "gpt.md"
    (ours, *_), (theirs,) = blocks(page), blocks(page, "python torch")
    assert len(lines_of(ours)) <= len(lines_of(theirs))
    assert max(map(len, ours.splitlines())) <= 100


def run_recipe(folder, monkeypatch, epochs):
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    code = blocks(DOCS / "gpt.md")[0]
    assert code.count("EPOCHS = 4") == 1
    scope = {}
    with contextlib.redirect_stderr(io.StringIO()):
        exec(code.replace("EPOCHS = 4", f"EPOCHS = {epochs}"), scope)
    return scope


def test_gpt_recipe_learns_and_resumes_bit_for_bit(tmp_path, monkeypatch):
    whole = run_recipe(tmp_path / "whole", monkeypatch, 4)
    run_recipe(tmp_path / "parts", monkeypatch, 2)
    again = run_recipe(tmp_path / "parts", monkeypatch, 4)
    losses = [logs["loss"] for logs in whole["run"].history]
    assert losses[-1] < 0.7 * losses[0]
    for a, b in zip(whole["model"].variables, again["model"].variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    for a, b in zip(whole["ema"].averages, again["ema"].averages, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.peers
def test_torch_program_beside_the_gpt_recipe_learns_as_much(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    ours = run_recipe(tmp_path, monkeypatch, 4)
    scope = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(blocks(DOCS / "gpt.md", "python torch")[0], scope)
    assert abs(scope["loss"].item() - ours["run"].history[-1]["loss"]) < 0.5
