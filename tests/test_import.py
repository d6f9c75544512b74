"""What importing gpugrad loads, and what it offers."""

import operator
import subprocess
import sys

import pytest

import gpugrad as gg


def _loaded(statement):
    """Names of the modules that a fresh interpreter has after a statement."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in run.stdout.split()} | set(run.stdout.split())


def test_import_loads_neither_cupy_nor_scipy_nor_the_training_half():
    loaded = _loaded("import gpugrad")
    assert not loaded & {"cupy", "scipy", "array_api_compat", "safetensors", "matplotlib"}
    assert not loaded & {"gpugrad.nn", "gpugrad.optim", "gpugrad.testing", "doctest"}


def test_training_half_is_there_when_asked_for():
    assert {"gpugrad.nn", "gpugrad.optim"} <= _loaded("import gpugrad as gg; gg.nn; gg.optim.Adam")


def test_every_public_name_exists_and_every_op_is_public():
    assert [name for name in gg.__all__ if not hasattr(gg, name)] == []
    assert sorted(gg.__all__) == sorted(set(gg.__all__))
    assert [name for name in gg.OPS if not hasattr(gg, name)] == []


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_op"):
        _ = gg.no_such_op


@pytest.mark.parametrize("name", sorted({"cat", "jit", "no_grad", *gg._KNOWN_AS}))
def test_name_that_others_use_is_answered_with_the_one_here(name):
    with pytest.raises(AttributeError, match=rf"'{name}'\. It is called gg\.") as caught:
        getattr(gg, name)
    here = str(caught.value).rpartition("gg.")[2].removesuffix(" here.")
    assert callable(operator.attrgetter(here)(gg))
