"""Docstring examples run; public callables have docstrings, and public functions examples."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from needs import needs_shim

import gpugrad as gg
from gpugrad.testing.close import NearNumbers

MODULES = sorted(
    m.name for m in pkgutil.walk_packages(gg.__path__, "gpugrad.") if "__main__" not in m.name
)


COMPILING = "gpugrad.testing.cuda.shim"


@pytest.mark.parametrize(
    "name",
    [pytest.param(m, marks=needs_shim if m == COMPILING else ()) for m in ("gpugrad", *MODULES)],
)
def test_docstring_examples_run(name):
    module = importlib.import_module(name)
    runner, output = doctest.DocTestRunner(NearNumbers(), verbose=False), []
    for example in doctest.DocTestFinder().find(module, name, extraglobs={"gg": gg, "np": np}):
        runner.run(example, out=output.append)
    assert not runner.failures, "".join(output)


@pytest.mark.parametrize(
    "home", [gg, gg.cuda, gg.nn, gg.optim, gg.testing], ids=lambda m: m.__name__
)
def test_public_functions_and_classes_have_a_docstring_and_functions_an_example(home):
    for name in home.__all__:
        thing = getattr(home, name)
        if callable(thing):
            assert inspect.getdoc(thing), name
        if inspect.isfunction(thing):
            assert ">>>" in thing.__doc__, name
