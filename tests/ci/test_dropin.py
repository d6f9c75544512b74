"""ci/dropin compares counts with docs/dropin.md, and writes them there."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]


@pytest.fixture
def dropin(monkeypatch, tmp_path):
    loader = importlib.machinery.SourceFileLoader("dropin", str(HOME / "ci" / "dropin"))
    spec = importlib.util.spec_from_loader("dropin", loader)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    page = tmp_path / "dropin.md"
    page.write_text(module.PAGE.read_text())
    monkeypatch.setattr(module, "PAGE", page)
    return module


def test_every_suite_has_a_row_and_its_plugins(dropin):
    assert dropin.SUITES.keys() == dropin.rows().keys()
    plugins = {p for s in dropin.SUITES.values() for p in (s.plugin, s.original, s.before)} - {
        "sys"
    }
    assert plugins - {"sys"} <= {path.stem for path in (HOME / "ci" / "dropin_parts").glob("*.py")}


def test_a_count_that_falls_fails_and_is_written(dropin, monkeypatch, capsys):
    found = {
        "sys": dropin.Run(9, 1, 2.0, frozenset({"t::a"})),
        "as_autograd": dropin.Run(8, 2, 3.0, frozenset({"t::a", "t::b"})),
    }
    monkeypatch.setattr(dropin, "run", lambda suite, checkout, plugin: found[plugin])
    monkeypatch.setattr(sys, "argv", ["dropin", "--write", f"autograd-gamma={HOME}"])
    with pytest.raises(SystemExit, match="autograd-gamma: 8 pass, 9 did"):
        dropin.main()
    assert re.search(r"8 of 9 pass, 2 fail, in 1.50 .*\n  t::b\n$", capsys.readouterr().out)
    assert dropin.rows()["autograd-gamma"][1:5] == ("8", "9", "2", "1.50")
    with pytest.raises(SystemExit, match=r"^0$"):
        dropin.main()
