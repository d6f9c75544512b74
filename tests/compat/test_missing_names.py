"""Every namespace that stands for another library's names the nearest ones of a missing name."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import gpugrad as gg
import gpugrad.compat

_OURS = re.compile(
    r"\b(names|boxes|core|derivatives|nodes|convert|shapes|vector_spaces|wrapping|common|kernels|on_host|"
    "raw_kernels|graph|session|state|saving|control|__main__)$"
)
_OF_PYTHON = ("annotations", "TYPE_CHECKING", "wrapped_names")


def _namespaces() -> list[str]:
    found = [m.name for m in pkgutil.walk_packages(gpugrad.compat.__path__, "gpugrad.compat.")]
    return [name for name in found if not _OURS.search(name)]


@pytest.mark.parametrize("name", ["gpugrad", "gpugrad.nn", "gpugrad.optim", *_namespaces()])
def test_a_missing_name_is_answered_by_the_nearest_ones(name):
    module = importlib.import_module(name)
    names = [n for n in dir(module) if not n.startswith("_") and n not in _OF_PYTHON]
    known = max(names, key=len)
    with pytest.raises(AttributeError, match=f"nearest names are .*{known}"):
        getattr(module, f"{known}x")
    assert not hasattr(module, "a_name_of_nothing")


def test_the_nearest_names_are_found_when_the_message_is_read():
    with pytest.raises(AttributeError, match="relu, relu6") as raised:
        _ = gg.relux
    assert raised.value.name == "relux"
