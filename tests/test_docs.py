"""Docstring examples run; public callables have docstrings, and public functions examples."""

import ast
import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import numpy as np
import pytest
from needs import needs_shim

import gpugrad as gg
from gpugrad.testing.close import NearNumbers

PACKAGE = Path(gg.__file__).parent
MODULES = sorted(
    m.name for m in pkgutil.walk_packages(gg.__path__, "gpugrad.") if "__main__" not in m.name
)


COMPILING = (
    "gpugrad.testing.cuda.shim",
    "gpugrad.compat.cupy.kernels",
    "gpugrad.compat.cupy.raw_kernels",
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(m, marks=needs_shim if m in COMPILING else ()) for m in ("gpugrad", *MODULES)],
)
def test_docstring_examples_run(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if "gpugrad.integrations needs" not in str(error):
            raise
        pytest.skip(str(error))
    runner, output = doctest.DocTestRunner(NearNumbers(), verbose=False), []
    source = inspect.getsource(module)
    for example in doctest.DocTestFinder().find(module, name, extraglobs={"gg": gg, "np": np}):
        title = example.docstring.strip().partition("\n")[0]
        if name.startswith("gpugrad.scipy.") and title not in source:
            continue  # SciPy's own docstring
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


def _docstrings(path):
    """The lines and the texts of a file's docstrings, those of attributes too."""
    for node in ast.walk(ast.parse(path.read_text())):
        body = getattr(node, "body", None)
        for line in body if isinstance(body, list) else ():
            if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
                yield line.lineno, line.value.value


def test_docstrings_begin_with_their_noun():
    """A docstring that begins with "What" or "Those" leaves its subject to be guessed."""
    riddles = [
        f"{path.relative_to(PACKAGE)}:{line}: {text.strip():.60}"
        for path in PACKAGE.rglob("*.py") for line, text in _docstrings(path)
        if isinstance(text, str) and text.split()[:1] in (["What"], ["Those"], ["That"], ["Which"])
    ]  # fmt: skip
    assert not riddles, "name the noun instead"
