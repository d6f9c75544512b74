"""Docstring examples run; public callables have docstrings, and public functions examples."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import types
import typing
from pathlib import Path

import numpy as np
import pytest
from needs import needs_shim, needs_thresholds
from test_public_names import MODULES as HOMES

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
@needs_thresholds
def test_docstring_examples_run(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if "gpugrad.integrations needs" not in str(error):
            raise
        pytest.skip(str(error))
    for lazy in getattr(module, "__all__", ()):
        getattr(module, lazy)  # a function may be made when it is first asked for
    runner, output = doctest.DocTestRunner(NearNumbers(), verbose=False), []
    source = inspect.getsource(module)
    for example in doctest.DocTestFinder().find(module, name, extraglobs={"gg": gg, "np": np}):
        title = example.docstring.strip().partition("\n")[0]
        if name.startswith("gpugrad.scipy.") and title not in source:
            continue  # SciPy's own docstring
        runner.run(example, out=output.append)
    assert not runner.failures, "".join(output)


def without_example(names):
    """Public functions and classes without an example, but for types that only annotate."""
    for name in names:
        home, _, last = name.rpartition(".")
        thing = getattr(importlib.import_module(home), last)
        ours = (getattr(thing, "__module__", "") or "").startswith("gpugrad")
        annotates = getattr(thing, "_is_protocol", False) or typing.is_typeddict(thing)
        if ours and not annotates and (inspect.isroutine(thing) or inspect.isclass(thing)):
            example = (inspect.getdoc(thing) or "").partition(">>>")[2]
            if not example.strip():
                yield name


def test_every_public_function_and_class_has_an_example():
    """Methods count with their class; what is SciPy's own has SciPy's documentation."""
    names = [f"{home}.{n}" for home in HOMES for n in importlib.import_module(home).__all__]
    assert len(names) > 1000
    assert not list(without_example(names))


def test_a_function_without_an_example_is_seen(monkeypatch):
    function = types.FunctionType((lambda: None).__code__, {"__name__": "gpugrad.errors"})
    monkeypatch.setattr(gg.errors, "bare", function, raising=False)
    assert list(without_example(["gpugrad.errors.bare"])) == ["gpugrad.errors.bare"]


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
