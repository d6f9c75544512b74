"""The line about compilation that takes long, and the logger."""

import io
import logging
import time

import pytest

from gpugrad.core import progress


class Terminal(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


@pytest.fixture
def lines(monkeypatch):
    """Run compilations of some seconds each with little patience; what a terminal shows."""

    def run(*seconds, is_terminal=True, handlers=(), between=0.0):
        monkeypatch.setattr(logging.getLogger(), "handlers", [*handlers])  # without pytest's
        stream = Terminal(is_terminal)
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setattr(progress, "_burst", progress._Burst())
        monkeypatch.setattr(progress, "PATIENCE", 0.05)
        for k, n in enumerate(seconds):
            with progress.compiling(f"kernel {k}"):
                time.sleep(n)
            time.sleep(between)
        return stream.getvalue().splitlines()

    return run


def test_a_terminal_shows_one_line_about_what_takes_long_and_how_far_it_is(lines):
    assert lines(0.0) == []
    (line,) = lines(0.03, 0.1, 0.1)
    assert line.startswith("gpugrad: compiling kernel 1 for 0 s, 1 done before it; it is kept")


def test_the_line_counts_compilation_alone_and_comes_once_though_python_traces_in_between(lines):
    assert lines(0.01, 0.01, between=0.06) == []
    assert len(lines(0.06, 0.06, between=0.06)) == 1


def test_without_a_terminal_or_with_a_handler_of_the_program_stderr_stays_empty(lines, caplog):
    assert lines(0.1, is_terminal=False) == []
    caplog.set_level(logging.INFO, "gpugrad")
    caplog.clear()
    assert lines(0.1, handlers=[caplog.handler]) == []
    assert [r.levelname for r in caplog.records] == ["WARNING", "INFO"]
    assert {r.name for r in caplog.records} == {"gpugrad"}


def test_compilation_that_fails_is_passed_on(lines):
    with pytest.raises(ValueError, match="no"), progress.compiling("x"):
        raise ValueError("no")
