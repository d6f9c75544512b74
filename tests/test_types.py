"""Stubs, signatures, `dir` and completion: what type checkers and editors see."""

import ast
import importlib
import inspect
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from test_public_names import MODULES

import gpugrad as gg

HOME = Path(__file__).parents[1]
STUBS = runpy.run_path(str(HOME / "ci" / "stubs"))
NAMESPACES = sorted({*MODULES, *STUBS["NAMESPACES"]})
HERE = Path(__file__).parent / "typed"
README = re.findall(r"```python\n(.*?)```", (HOME / "README.md").read_text(), re.S)[:2]


def _slow_if_scipy(names):
    slow = pytest.mark.slow
    return [pytest.param(n, marks=slow) if n.startswith("gpugrad.scipy.") else n for n in names]


@pytest.mark.parametrize(
    "name", [*_slow_if_scipy(STUBS["NAMESPACES"]), STUBS["METHODS"], STUBS["DRAWS"]]
)
def test_a_stub_is_what_ci_stubs_writes(name):
    """If this fails, run ci/stubs."""
    text = STUBS["path_of"](name).read_text()
    if not text.startswith(STUBS["HEAD"]):
        pytest.skip(f"with other versions: {text.splitlines()[0]}")
    assert text == STUBS["stub"](name)


def test_stubs_have_types_for_all_parameters_and_results():
    for path in sorted((HOME / "gpugrad").rglob("*.pyi")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                a = node.args
                every = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
                bare = [p.arg for p in filter(None, every) if p.annotation is None]
                assert bare in ([], ["self"]), f"{path.name}:{node.lineno} {node.name}{bare}"
                assert node.returns is not None, f"{path.name}:{node.lineno} {node.name}"


# ---- at run time


def _vague(thing):
    """Whether a callable shows no parameters of its own."""
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return True
    kinds = [p.kind for p in parameters.values()]
    stars = [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]
    return kinds == stars or next(iter(parameters), "") == "xp"


def _is_called(thing):
    """Whether a public name is a function, or a class that users call."""
    if not isinstance(thing, type):
        return callable(thing) and hasattr(thing, "__name__") and not hasattr(thing, "__args__")
    is_protocol = getattr(thing, "_is_protocol", False)
    return not is_protocol and not issubclass(thing, (Exception, dict, gg.Tensor))  # it raises


@pytest.mark.parametrize("name", _slow_if_scipy(NAMESPACES))
def test_public_callables_show_their_own_parameters(name):
    """Except those that show none in NumPy and SciPy either."""
    module, library = importlib.import_module(name), None
    if name.startswith(("gpugrad.numpy", "gpugrad.scipy.")):
        library = importlib.import_module(name.removeprefix("gpugrad."))
    things = {each: getattr(module, each) for each in module.__all__}
    vague = [n for n, thing in things.items() if _is_called(thing) and _vague(thing)]
    assert [n for n in vague if not (hasattr(library, n) and _vague(getattr(library, n)))] == []


@pytest.mark.parametrize("name", NAMESPACES)
def test_dir_shows_public_names_and_no_imports(name):
    module = importlib.import_module(name)
    names = dir(module)
    assert set(module.__all__) <= set(names)
    others = {"Any", "annotations", "builtins", "functools", "importlib", "np", "sys", "types"}
    assert others.isdisjoint(names)
    assert [n for n in names if n.startswith("_") and n not in module.__all__] == []
    assert [n for n in names if n.endswith("x_grad") or n.endswith("entropy_grad")] == []


def test_dir_of_gpugrad_has_its_namespaces():
    assert {"data", "distributed", "numpy", "scipy", "train", "typing"} <= set(dir(gg))
    assert "reshape" in dir(gg.ones(3))


def test_help_shows_public_parameters():
    import pydoc

    text = pydoc.plain(pydoc.render_doc(gg.sum))
    assert "sum(x, /, axis=None, *, dtype=None, keepdims=False)" in text
    assert "xp" not in text
    assert str(inspect.signature(gg.nn.MaxPool2d)).startswith("(kernel_size, stride=None, ")


# ---- type checkers and editors


def _expected(path):
    lines = path.read_text().splitlines()
    return [k for k, line in enumerate(lines, 1) if "# mistake" in line]


def _programs(folder):
    """The files to check, the README's programs among them."""
    readme = [folder / f"readme{k}.py" for k in range(len(README))]
    for path, text in zip(readme, README, strict=True):
        path.write_text(text if "import gpugrad" in text else f"import gpugrad as gg\n{text}")
    return [HERE / "mistakes.py", HERE / "program.py", *readme, HOME / "gpugrad/examples/digits.py"]


def _compare(found, programs):
    for path in programs:
        lines = sorted({line for file, line, _ in found if Path(file).name == path.name})
        messages = "\n".join(f"{f}:{k} {m}" for f, k, m in found if Path(f).name == path.name)
        assert lines == _expected(path), messages


@pytest.mark.slow
def test_mypy_finds_planted_mistakes_and_nothing_else(tmp_path):
    pytest.importorskip("mypy", reason="needs mypy: pip install -e '.[dev]'")
    programs = _programs(tmp_path)
    options = ["--no-error-summary", "--allow-untyped-defs", "--allow-untyped-calls"]
    command = [sys.executable, "-m", "mypy", *options, *map(str, programs)]
    run = subprocess.run(command, cwd=HOME, capture_output=True, text=True)
    found = [
        (m[1], int(m[2]), m[3])
        for m in re.finditer(r"^(.+?):(\d+): error: (.*)$", run.stdout, re.M)
    ]
    assert found, run.stdout + run.stderr
    _compare(found, programs)


@pytest.mark.peers
def test_pyright_finds_planted_mistakes_and_nothing_else(tmp_path):
    pytest.importorskip("pyright", reason="needs pyright: pip install pyright")
    programs = _programs(tmp_path)
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    command += map(str, programs)
    run = subprocess.run(command, cwd=HOME, capture_output=True, text=True)
    found = [
        (d["file"], d["range"]["start"]["line"] + 1, d["message"])
        for d in json.loads(run.stdout)["generalDiagnostics"]
        # the README prints the loss after its loop
        if d["severity"] == "error" and "PossiblyUnbound" not in d["rule"]
    ]
    assert found, run.stdout + run.stderr
    _compare(found, programs)


@pytest.mark.slow
def test_editors_complete_the_methods_of_a_result():
    jedi = pytest.importorskip("jedi", reason="needs jedi: pip install -e '.[dev]'")
    project = jedi.Project(HOME)
    for text, name in (
        ("gg.ones(3).resh", "reshape"), ("gg.train.Check", "Checkpoints"),
        ("gg.soft", "softmax"), ("gg.nn.Max", "MaxPool2d"), ("gg.ones(3).mean().", "item"),
    ):  # fmt: skip
        script = jedi.Script(f"import gpugrad as gg\n{text}", project=project)
        assert name in [c.name for c in script.complete(2, len(text))]
    (signature,) = jedi.Script("import gpugrad as gg\ngg.sum(", project=project).get_signatures()
    assert [p.name for p in signature.params][:2] == ["x", "axis"]
