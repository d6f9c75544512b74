"""`ci/docs`: links, the API reference, versions, and the site, where Sphinx is installed."""

import importlib.machinery
import importlib.util
import json
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "ci"))

from docs_parts import docstrings, layout, links, source  # noqa: E402
from docs_parts.api import NAMES, Reference  # noqa: E402

BLOB = f"{links.REPOSITORY}/blob/main"
RAW = "https://raw.githubusercontent.com/gpugrad/gpugrad/main"


def test_links_stay_in_the_repository_and_lead_somewhere():
    assert not source.broken_links()
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "gpugrad/ops/README.md"} <= {
        *links.PAGES
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a](../../outside.md)", "page.md:1: ../../outside.md leaves the repository"),
        ("\n\n[a](/etc/passwd)", "page.md:3: /etc/passwd leaves the repository"),
        ("[a](gone.md#part)", "page.md:1: gone.md#part leads nowhere"),
        ('<img src="gone.png">', "page.md:1: gone.png leads nowhere"),
        (f"[a]({BLOB}/gone.md)", f"page.md:1: {BLOB}/gone.md leads nowhere"),
        (
            "[a](page.md) [b](#part) [c](https://x.org)\n```\n[d](gone.md)\n```\n`[e](gone.md)`",
            None,
        ),
    ],
)
def test_a_link_that_fails_is_named_with_its_line(text, fault, tmp_path):
    (tmp_path / "page.md").write_text(text)
    assert list(links.broken(tmp_path, tmp_path / "page.md")) == ([fault] if fault else [])


@pytest.mark.parametrize(
    ("target", "to"),
    [
        ("../CONTRIBUTING.md#style", "project/contributing.md#style"),
        ("../gpugrad/ops/README.md", "api/ops.md"),
        ("README.md#part", "guides.md#part"),
        (f"{BLOB}/docs/gpt.md#part", "gpt.md#part"),
        (f"{RAW}/docs/pictures/heat.png", "pictures/heat.png"),
        (f"{BLOB}/gpugrad/examples/vae.py", f"{BLOB}/gpugrad/examples/vae.py"),
        ("gpt.md", "gpt.md"),
        ("../gpugrad/examples", f"{links.REPOSITORY}/tree/main/gpugrad/examples"),
        ("../LICENSE", f"{BLOB}/LICENSE"),
        ("#part", "#part"),
        ("https://x.org/a", "https://x.org/a"),
    ],
)
def test_a_link_leads_to_the_page_of_the_site_or_into_the_repository(target, to):
    assert links.for_site(f"[a]({target})", "docs/data.md", "data.md", HOME) == f"[a]({to})"


def test_a_docstring_becomes_markdown():
    doc = "Sum of `x`, *not* `tanh`.\n\nArgs:\n    x: array, or\n        a list.\n\nRaises:\n"
    doc += "    ShapeError: no.\n\nAs::\n\n    y = 1\n\n>>> gg.sum(1)\n1\n"
    text = docstrings.markdown(doc, {"tanh": "tanh.md", "ShapeError": "error.md"}.get)
    assert text == (
        "Sum of `x`, \\*not\\* [`tanh`](tanh.md).\n\n"
        "**Arguments**\n\n- `x`: array, or\n  a list.\n\n"
        "**Errors**\n\n- [`ShapeError`](error.md): no.\n\nAs:\n\n```text\ny = 1\n```\n\n"
        "```pycon\n>>> gg.sum(1)\n1\n```"
    )


@pytest.fixture(scope="module")
def reference():
    return Reference()


def test_every_public_name_has_a_page_or_a_row(reference):
    names = [line.split("(")[0] for line in NAMES.read_text().splitlines()]
    names = {name for name in names if name.startswith("gpugrad.")}
    assert names == {*reference.by_name, *reference.values}
    pages = [entry.page.lower() for entry in reference.entries.values()]
    assert len(pages) == len(set(pages)) > 1000  # also where file names ignore case


def test_the_page_of_an_op_has_its_signature_example_and_modes(reference):
    text = reference._page_of(reference.by_name["gpugrad.linalg.svd"])
    assert "{py:function} gpugrad.linalg.svd(x, /" in text
    assert ">>> " in text
    for row in (
        "dtypes",
        "gradient",
        "forward mode",
        "vmap",
        "complex gradients",
        "kernel on a GPU",
    ):
        assert f"\n| {row} | " in text


def test_the_page_of_a_class_has_the_methods_of_bases_without_a_page(reference):
    text = reference._page_of(reference.by_name["gpugrad.optim.Adam"])
    assert "A subclass of [`gpugrad.optim.Optimizer`](" in text
    assert "{py:method}" in text
    assert ".apply_gradients(" not in text
    base = reference._page_of(reference.by_name["gpugrad.optim.Optimizer"])
    assert "{py:method} gpugrad.optim.Optimizer.apply_gradients(grads_and_vars" in base


def test_a_page_that_no_section_names_joins_the_last():
    text = "# Guides\n\nText.\n\n## A\n\n- [a](a.md)\n\n## B\n\n- [b](b.md), [a](a.md)\n"
    assert source.sections(text, ["a.md", "b.md", "c.md"]) == {"A": ["a.md"], "B": ["b.md", "c.md"]}


@pytest.fixture(scope="module")
def command():
    loader = importlib.machinery.SourceFileLoader("ci_docs", str(HOME / "ci" / "docs"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("ci_docs", loader))
    loader.exec_module(module)
    return module


def test_without_sphinx_the_command_says_what_to_install(command, monkeypatch, capsys):
    monkeypatch.setattr(command, "NEEDS", ("sphinx_that_is_missing",))
    monkeypatch.setattr(sys, "argv", ["ci/docs"])
    assert command.main() == 2
    assert "sphinx_that_is_missing" in (error := capsys.readouterr().err)
    assert "pip install -e '.[docs]'" in error


def test_a_broken_link_stops_the_build(command, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(source, "broken_links", lambda: ["docs/a.md:1: gone.md leads nowhere"])
    assert command.build(tmp_path, "dev", 1) == 1
    assert "docs/a.md:1: gone.md leads nowhere" in capsys.readouterr().err


def test_the_switcher_lists_the_versions_that_were_built(command, tmp_path):
    for version in ("dev", "0.9.0", "0.10.0"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "index.html").touch()
    (tmp_path / "0.11.0").mkdir()  # a build that failed
    command.write_versions(tmp_path)
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [each["version"] for each in listed] == ["0.10.0", "0.9.0", "dev"]
    assert listed[0] == {
        "name": "0.10.0 (stable)", "version": "0.10.0", "url": "../0.10.0/", "preferred": True
    }  # fmt: skip
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text()


@pytest.mark.slow
def test_a_page_that_scrolls_sideways_and_a_picture_that_is_missing_are_seen(tmp_path):
    if not layout.browser():
        pytest.skip(f"needs one of {layout.BROWSERS}")
    wide = "<p style='width:500px'>wide</p>"
    for name, body in {"narrow": "<p>text</p>", "wide": wide, "lost": "<img src=no.png>"}.items():
        (tmp_path / f"{name}.html").write_text(f"<body style='margin:0'><article>{body}</article>")
    found = layout.measure(tmp_path, ["/narrow.html", "/wide.html", "/lost.html"])
    assert [(page, width) for page, width, _ in found] == [
        ("/lost.html", 1280), ("/wide.html", 390), ("/lost.html", 390)
    ]  # fmt: skip
    assert "500 pixels: P" in found[1][2]
