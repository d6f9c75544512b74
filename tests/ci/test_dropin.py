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


def test_every_suite_has_a_row_and_its_parts(dropin):
    assert dropin.SUITES.keys() == dropin.rows().keys()
    plugins = {p for s in dropin.SUITES.values() for p in (s.plugin, s.original, s.before)}
    assert plugins - {"sys"} <= {path.stem for path in (HOME / "ci" / "dropin_parts").glob("*.py")}
    used = {
        suite.environment or dropin.LIBRARIES[suite.library or name].environment
        for name, suite in dropin.SUITES.items()
    }
    assert used == dropin.ENVIRONMENTS.keys()


@pytest.fixture
def started(dropin, monkeypatch, tmp_path):
    """Start the command with arguments; pytest is a program that prints `output[plugin]`."""

    def start(output, *arguments):
        for folder in ("paragami", "autograd-gamma", "venvs/autograd/bin"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        python = tmp_path / "venvs" / "autograd" / "bin" / "python"
        lines = "".join(f'"import {p},"*) printf "{text}";;\n' for p, text in output.items())
        python.write_text(f'#!/bin/sh\necho $PLUGIN >> ran\ncase "$2" in {lines}esac\n')
        python.chmod(0o755)
        monkeypatch.setattr(sys, "argv", ["dropin", str(tmp_path), *arguments])
        with pytest.raises(SystemExit) as end:
            dropin.main()
        return end.value.code

    return start


OUTPUT = {"sys": "FAILED t::a - Why\n1 failed, 9 passed, 2 skipped in 3.0s\n"}
OUTPUT["as_autograd"] = "FAILED t::a\nFAILED t::b\n2 failed, 8 passed in 61.5s (0:01:01)\n"


def test_a_count_that_falls_fails_and_is_written(dropin, started, capsys):
    assert started(OUTPUT, "--write", "autograd-gamma") == "autograd-gamma: 8 pass, 9 did"
    assert re.search(r"8 of 9 pass, 2 fail, in .* time\n  t::b\n$", capsys.readouterr().out)
    assert dropin.rows()["autograd-gamma"][1:4] == ("8", "9", "2")
    assert started(OUTPUT, "autograd-gamma") == 0


def test_a_suite_that_does_not_end_fails_and_the_next_one_runs(started, capsys, tmp_path):
    broken = {**OUTPUT, "as_autograd": "3 errors during collection"}
    code = started(broken, "paragami", "autograd-gamma")
    names = re.findall(r"^([\w-]+) did not end: see .*\.gpugrad\.txt$", code, re.MULTILINE)
    assert names == ["paragami", "autograd-gamma"]
    started(OUTPUT, "--resume", "autograd-gamma")  # the original's side has ended
    ran = (tmp_path / "autograd-gamma" / "ran").read_text().split()
    assert ran == ["sys", "as_autograd", "as_autograd"]
    started(OUTPUT, "nothing")
    assert "no suite nothing; there are autograd," in capsys.readouterr().err
