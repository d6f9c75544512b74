"""Releases that nobody tried are reported."""

import runpy
from pathlib import Path

import pytest

untried = runpy.run_path(str(Path(__file__).parents[2] / "ci" / "newest"))["untried"]


@pytest.mark.parametrize(
    ("bound", "version", "says"),
    [
        ("1.18.1", "1.18.1", None),
        ("1.18.1", "1.17.9", None),
        ("1.18.1", "1.18.10", "newer than 1.18.1"),
        ("1.18.1", "2.0", "newer than 1.18.1"),
        ("<3", "2.99.1", None),
        ("<3", "3.0.0", "refuses it"),
        ("", "99.0", None),
    ],
)
def test_a_release_that_was_not_tried_is_reported(bound, version, says):
    lines = untried({"scipy": bound}, {"scipy": version, "unbounded": "1.0"})
    assert len(lines) == bool(says)
    assert not says or says in lines[0]
