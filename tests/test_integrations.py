"""gpugrad.integrations: other libraries on Tensors, with gradients, and what registers them."""

import collections
import importlib
import importlib.util
import json
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from fresh import output_of

import gpugrad as gg
import gpugrad.numpy as gnp
from gpugrad.integrations import library

FOLDER = Path(library.__file__).parent
MODULES = {"einops": "einops", "tensorly": "tensorly", "autoray": "autoray", "quimb": "quimb"}
MODULES |= {"pot": "ot", "pyhf": "pyhf", "scipy": "scipy"}


@pytest.fixture
def integrated(request, monkeypatch):
    """The library of an integration, registered."""
    name = request.param
    monkeypatch.setenv("POT_BACKEND_DISABLE_CUPY", "1")  # it asks for curand, which no driver fakes
    theirs = pytest.importorskip(MODULES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        importlib.import_module(f"gpugrad.integrations.{name}")
    return theirs


def with_(name):
    return pytest.mark.parametrize("integrated", [name], indirect=True)


def slope_along(f, x, direction, step=1e-6):
    """The derivative of a function by central differences."""
    ahead, behind = (float(f(x + sign * step * direction)) for sign in (1, -1))
    return (ahead - behind) / (2 * step)


def assert_gradient(f, x, rtol=1e-5):
    direction = gg.asarray(np.random.default_rng(0).normal(size=x.shape))
    actual = float(gg.sum(gg.grad(f)(x) * direction))
    np.testing.assert_allclose(actual, slope_along(f, x, direction), rtol=rtol)


# ---- the helpers


def test_every_library_has_a_short_file_with_its_version():
    files = {p.stem: p.read_text() for p in FOLDER.glob("*.py") if p.stem in MODULES}
    assert files.keys() == MODULES.keys()
    for name, text in files.items():
        assert text.count("\n") <= 60, name
        assert "Leans on" in text, name
        assert "Tried with" in text, name


def test_import_of_gpugrad_loads_none_of_the_libraries():
    code = "import gpugrad.integrations, gpugrad.bridge, sys; print('\\n'.join(sys.modules))"
    loaded = set(output_of("-c", code).split())
    assert not loaded & ({*MODULES.values(), "torch", "jax", "datasets"} - {"scipy"})
    assert "gpugrad.integrations.scipy" not in loaded


@pytest.mark.parametrize("name", MODULES)
def test_missing_library_is_named_with_the_command_that_installs_it(name):
    if importlib.util.find_spec(MODULES[name]) is not None:
        pytest.skip(f"{MODULES[name]} is installed, so its absence cannot be tried")
    with pytest.raises(ImportError, match=r"needs \w+\. Install it: pip install \w+==[\d.]+$"):
        importlib.import_module(f"gpugrad.integrations.{name}")


def test_a_version_that_was_not_tried_warns_once(monkeypatch):
    monkeypatch.setitem(sys.modules, "made_up", types.ModuleType("made_up"))
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "2.0")
    with pytest.warns(UserWarning, match=r"tried with made-up 1\.0 and 1\.1, not 2\.0"):
        library.library("made_up", "made-up", "1.0", "1.1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        library.library("made_up", "made-up", "1.0", "1.1")
        library.library("made_up", "made-up", "2.0")


class _NumpyBackend:
    """As libraries write theirs."""

    exp = staticmethod(np.exp)

    def double(self, x, *, by=2):
        return np.asarray(x) * by


def test_methods_of_a_numpy_backend_run_on_tensors():
    ours = library.on_tensors(_NumpyBackend, {"np": gnp})()
    assert isinstance(ours, _NumpyBackend)
    assert gg.grad(lambda x: gg.sum(ours.double(ours.exp(x), by=3)))(gg.zeros(2)).tolist() == [3, 3]
    assert type(_NumpyBackend().double([1.0])) is np.ndarray


# ---- the libraries


@with_("einops")
def test_einops_is_differentiable(integrated):
    x = gg.asarray(np.arange(24.0).reshape(2, 3, 4))
    pattern = "a (b three) c -> a c"
    assert_gradient(lambda x: gg.sum(integrated.reduce(x, pattern, "max", three=3) ** 2), x)
    packed, shapes = integrated.pack([x, gg.Variable(x)], "* b c")
    assert packed.shape == (4, 3, 4)
    assert [t.shape for t in integrated.unpack(packed, shapes, "* b c")] == [(2, 3, 4)] * 2


@with_("tensorly")
@pytest.mark.parametrize("name", ["parafac", "tucker"])
def test_tensorly_decompositions_are_differentiable(integrated, name):
    decompose = getattr(importlib.import_module("tensorly.decomposition"), name)
    x = gg.asarray(np.random.default_rng(1).uniform(size=(3, 4, 2)))
    with integrated.backend_context("gpugrad"):

        def error(x):
            rank = 2 if name == "parafac" else (2, 2, 2)
            found = decompose(x, rank=rank, n_iter_max=4, init="svd", tol=None)
            return integrated.norm(x - found.to_tensor())

        assert_gradient(error, x, rtol=1e-4)


@with_("autoray")
def test_autoray_finds_functions_and_creates_beside_an_array(integrated):
    x = gg.ones((4, 2), dtype="float32")
    for array in (x, gg.Variable(x), x[1:], x.T):
        assert integrated.infer_backend(array) == "gpugrad"
    u, s, _ = integrated.do("linalg.svd", x)
    assert (u.shape, s.shape) == ((4, 2), (2,))
    eye = integrated.do("eye", 2, like=x)
    assert (type(eye), eye.dtype) == (gg.Tensor, np.float32)
    rng = integrated.do("random.default_rng", 0, like=x)
    assert integrated.do("random.default_rng", rng, like=x) is rng
    assert rng.normal(size=(2, 3)).shape == (2, 3)
    assert gg.grad(lambda x: gg.sum(integrated.do("scipy.linalg.expm", x[:2])))(x).shape == (4, 2)


@with_("quimb")
@pytest.mark.parametrize("jit", [False, True])
def test_quimb_optimizes_a_tensor_network(integrated, jit):
    qtn = importlib.import_module("quimb.tensor")
    psi, ham = qtn.MPS_rand_state(4, 4, seed=1), qtn.MPO_ham_heis(4)

    def energy(psi, ham):
        k, h, b = qtn.tensor_network_align(psi, ham, psi.H)
        return (k & h & b) ^ all

    optimizer = qtn.TNOptimizer(
        psi, loss_fn=energy, norm_fn=lambda psi: psi / (psi.H @ psi) ** 0.5,
        loss_constants={"ham": ham}, autodiff_backend="gpugrad", jit_fn=jit, progbar=False,
    )  # fmt: skip
    optimizer.optimize(40)
    exact = integrated.groundenergy(integrated.ham_heis(4))
    assert optimizer.loss == pytest.approx(exact, abs=1e-3)


@with_("pot")
@pytest.mark.parametrize("name", ["emd2", "sinkhorn2"])
def test_transport_is_differentiable_by_weights_and_costs(integrated, name):
    rng = np.random.default_rng(2)
    a, b = (gg.asarray(w / w.sum()) for w in rng.uniform(1, 2, size=(2, 4)))
    cost = gg.asarray(rng.uniform(size=(4, 4)))
    more = () if name == "emd2" else (0.5,)
    solve = getattr(integrated, name)
    assert_gradient(lambda cost: solve(a, b, cost, *more), cost, rtol=1e-4)
    if name == "sinkhorn2":
        assert_gradient(lambda a: solve(a / gg.sum(a), b, cost, *more), a, rtol=1e-4)


@with_("pyhf")
def test_pyhf_fits_with_gradients(integrated):
    fits = {}
    for name in ("numpy", "gpugrad"):
        integrated.set_backend(name)
        model = integrated.simplemodels.uncorrelated_background(
            [5.0, 9.0], [50.0, 60.0], [7.0, 8.0]
        )
        data = [53.0, 65.0, *model.config.auxdata]
        cls = integrated.infer.hypotest(1.0, data, model, test_stat="qtilde")
        fits[name] = np.asarray([*integrated.infer.mle.fit(data, model), cls])
    integrated.set_backend("numpy")
    np.testing.assert_allclose(fits["gpugrad"], fits["numpy"], rtol=1e-4)


SCIPY_CALLS = [((), 112), (("gpugrad.integrations.scipy",), 240)]
"""Modules to import, and how many of SciPy's functions then have a gradient by our Tensors."""


@pytest.mark.slow
@pytest.mark.parametrize(("modules", "least"), SCIPY_CALLS)
def test_scipys_functions_have_gradients_or_raise(modules, least):
    outcomes = json.loads(output_of(str(Path(__file__).with_name("scipy_calls.py")), *modules))
    found = collections.Counter(outcomes.values())
    assert len(outcomes) == 275
    assert found["gradient"] >= least
    others = {k: v for k, v in outcomes.items() if v not in ("gradient", "raises", "none")}
    assert others == {"stats:ks_2samp": "cut"}  # by ranks alone
    assert found["none"] <= 7  # by ranks, positions, or constants


@pytest.mark.slow
def test_scipy_is_scipys_for_arrays():
    code = """
import numpy as np, scipy.ndimage, scipy.stats, gpugrad as gg, gpugrad.integrations.scipy
x = np.arange(9.0).reshape(3, 3)
assert type(scipy.ndimage.sobel(x)) is np.ndarray is type(scipy.stats.norm.pdf(x))
slope = gg.grad(lambda t: gg.sum(scipy.ndimage.sobel(t) * scipy.stats.norm.pdf([t])[0]))(x)
ours = gg.scipy.ndimage.sobel, gg.scipy.stats.norm.pdf
print(np.allclose(slope, gg.grad(lambda t: gg.sum(ours[0](t) * ours[1](t)))(x)))
"""
    assert output_of("-c", code).strip() == "True"
