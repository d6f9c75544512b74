"""Modules that importing gpugrad loads, and names that it offers."""

import re
from pathlib import Path

import pytest
from fresh import output_of

import gpugrad as gg


def _loaded(statement):
    """Names of the modules that a fresh interpreter has after a statement."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    names = output_of("-c", code).split()
    return {name.partition(".")[0] for name in names} | set(names)


def test_import_loads_neither_cupy_nor_scipy_nor_the_training_half():
    loaded = _loaded("import gpugrad")
    assert not loaded & {"cupy", "scipy", "array_api_compat", "safetensors", "matplotlib"}
    later = {"nn", "optim", "testing", "compat"}
    assert not loaded & {"doctest", *(f"gpugrad.{name}" for name in later)}


def test_a_folder_called_cupy_is_not_taken_for_cupy(tmp_path):
    (tmp_path / "cupy").mkdir()
    code = f"import os; os.chdir({str(tmp_path)!r}); import gpugrad as gg; print(gg.ones(2))"
    assert output_of("-c", code, GPUGRAD_DEVICE="") == "[1. 1.]\n"


def test_import_loads_two_shelves_of_ops_and_not_what_traces_functions():
    loaded = _loaded("import gpugrad")
    for later in ("function", "linalg", "fft", "special", "ops.nn", "ops.linalg", "ops.special"):
        assert f"gpugrad.{later}" not in loaded
    # logging comes with concurrent.futures, whose locks forks must take before ours
    assert not loaded & {"numpy.random", "difflib", "pathlib", "html"}


def test_a_step_of_a_network_loads_no_ops_that_it_lacks():
    loaded = _loaded(
        """
import gpugrad as gg
model = gg.nn.Sequential(gg.nn.Dense(4, 4, activation=gg.gelu), gg.nn.LayerNorm(4))
q, optimizer = gg.ones((1, 1, 3, 4)), gg.optim.Adam(0.1)
@gg.function
def step(x):
    with gg.GradientTape() as tape:
        x = gg.dot_product_attention(model(x), x, x)
        loss = gg.sparse_softmax_cross_entropy(x, [[[0, 1, 2]]])
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
step(q), step(q)
"""
    )
    assert "gpugrad.ops.nn" in loaded
    for other in ("fft", "special.elliptic", "scipy"):
        assert f"gpugrad.ops.{other}" not in loaded


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    "statement",
    [
        "gg.relu(gg.ones(3))", "gg.inv([[2.0]])", "gg.fft.fft(gg.ones(4))", "gg.mse",
        "gg.set_seed(0)", "gg.cond(True, lambda: gg.ones(2), lambda: gg.zeros(2))",
        "gg.function(gg.tanh)(gg.ones(2))", "gg.OPS['softmax']",
        "gg.grad(lambda x: gg.sum(gg.special.gammaln(x)))(gg.ones(2))", "sorted(gg.OPS)[500]",
        "vars(gg.nn.functional)['relu']",
    ],
)  # fmt: skip
@pytest.mark.thin(2)
def test_what_is_loaded_later_is_there_when_asked_for(statement):
    _loaded(f"import gpugrad as gg; {statement}")


def test_function_is_the_decorator_after_its_folder_is_imported():
    _loaded("import gpugrad.function.plan; import gpugrad as gg; gg.function(gg.tanh)(gg.ones(2))")


def test_an_op_cannot_take_the_name_of_one_that_is_loaded_later():
    declare = "gg.op(vjp=[lambda xp, g: g])"
    code = (
        "import gpugrad as gg\ndef relu(xp, x, /): 'Relu.'\n"
        f"try: {declare}(relu)\nexcept gg.errors.ArgumentError: pass\nelse: raise SystemExit(1)"
    )
    _loaded(code)


def test_threads_that_ask_for_ops_at_once_all_get_them():
    _loaded(
        "import gpugrad as gg, concurrent.futures as f\n"
        "names = ['relu', 'softmax', 'cholesky', 'fft', 'gammaln', 'conv2d', 'erfinv', 'lu'] * 4\n"
        "pool = f.ThreadPoolExecutor(8)\n"
        "assert [op.name for op in pool.map(gg.OPS.__getitem__, names)] == names"
    )


def test_training_half_is_there_when_asked_for():
    assert {"gpugrad.nn", "gpugrad.optim"} <= _loaded("import gpugrad as gg; gg.nn; gg.optim.Adam")


def test_every_public_name_exists_and_every_op_is_public():
    assert [name for name in gg.__all__ if not hasattr(gg, name)] == []
    assert sorted(gg.__all__) == sorted(set(gg.__all__))
    assert [name for name in gg.OPS if not hasattr(gg, name)] == []


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_op"):
        _ = gg.no_such_op


def _names_elsewhere():
    """The names of other libraries in the tables of the guides: the last part of each."""
    guides = (Path(__file__).parent.parent / "docs").glob("coming-from-*.md")
    lines = [line for guide in guides for line in guide.read_text().splitlines()]
    cells = [line.split("|")[1].strip() for line in lines if line[:2] == "| " and "| `gg." in line]
    others = {"key", "orbax"}  # of jax.random, and a library
    names = (re.fullmatch(r"`(?!x\.)[\w.]*?(\w+)(\(\))?`", cell) for cell in cells)
    return sorted({m[1] for m in names if m} - others)


@pytest.mark.parametrize("name", _names_elsewhere())
def test_names_in_the_guide_for_users_of_other_libraries_are_answered(name):
    for namespace in (gg, gg.nn, gg.optim, gg.train, gg.data, gg.random):
        try:
            getattr(namespace, name)
        except AttributeError as error:
            if "It is called gg." in str(error):
                return
        else:
            return
    raise AssertionError(f"{name} is neither a name here nor told what it is called")


def test_ops_that_failed_to_load_are_loaded_when_asked_for_again():
    _loaded(
        "import gpugrad as gg, importlib\n"
        "real = importlib.import_module\n"
        "def interrupted(*args): raise KeyboardInterrupt\n"
        "importlib.import_module = interrupted\n"
        "try: gg.OPS['softmax']\nexcept KeyboardInterrupt: pass\nelse: raise SystemExit(1)\n"
        "importlib.import_module = real\n"
        "assert gg.OPS['softmax'].name == 'softmax' and len(gg.OPS) >= 576"
    )


_IMPORTS_IN_A_TRACE = """
import contextlib, importlib, pkgutil
import gpugrad as gg

def load():
    for module in pkgutil.walk_packages(gg.__path__, "gpugrad.", onerror=print):
        if not module.name.startswith(("gpugrad.examples", "gpugrad.testing.cuda")):
            with contextlib.suppress(ImportError):  # of a library that is not installed
                loaded = importlib.import_module(module.name)
                for name in list(getattr(loaded, "__all__", ()))[-1:]:  # which may load more
                    getattr(loaded, name, None)
    len(gg.OPS)

x = gg.constant([1.0, 2.0])
f = gg.function(FUNCTION)
f(x)
assert "Generator" not in str(f.lower(x)), f.lower(x)
gg.set_seed(0)
f(x)
first = gg.random.normal(()).item()
gg.set_seed(0)
f(x)
assert gg.random.normal(()).item() == first
"""


@pytest.mark.thin(2)
@pytest.mark.parametrize("function", [
    "lambda x: load() or x * 2",
    "lambda x: gg.scan(lambda c, _: (load() or c * 2, None), x, None, length=3)[0]",
])  # fmt: skip
def test_what_an_import_makes_is_in_no_trace_and_restarts_no_stream(function):
    code = _IMPORTS_IN_A_TRACE.replace("FUNCTION", function)
    output_of("-W", "error", "-c", code)
