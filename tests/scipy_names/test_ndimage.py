"""`gg.scipy.ndimage` against SciPy: values, dtypes, gradients, errors."""

import doctest
import inspect
import warnings

import numpy as np
import pytest
import scipy.ndimage as sp
from needs import needs_compiler

import gpugrad as gg
from gpugrad.core.backend import NUMPY
from gpugrad.errors import DTypeError
from gpugrad.kernels.cpu import splines as kernel
from gpugrad.ops.scipy import splines as formulas
from gpugrad.testing import check_grads

nd = gg.scipy.ndimage
MODES = [
    "reflect",
    "grid-mirror",
    "constant",
    "grid-constant",
    "nearest",
    "mirror",
    "wrap",
    "grid-wrap",
]
RNG = np.random.default_rng(0)
IMAGE, LINE = RNG.normal(size=(7, 6)), RNG.normal(size=9)
SOLID, ODD, EVEN = RNG.normal(size=(4, 5, 3)), RNG.normal(size=(3, 5)), RNG.normal(size=(2, 4))
HOLES, LABELS = np.array([[1, 0, 1], [0, 1, 1]]), RNG.integers(0, 4, (7, 6))
KERNEL, POINTS = RNG.normal(size=5), RNG.uniform(-9, 15, (2, 4, 3))
TURN = np.array([[0.9, 0.3], [-0.2, 1.1]])


def _check(name, *args, rtol=1e-10, **keywords):
    """Equal values and dtypes by ops, which run under a tape, and by SciPy where it is faster."""
    expected = getattr(sp, name)(*args, **keywords)
    with gg.GradientTape():
        result = getattr(nd, name)(*map(_tensor, args), **keywords)
    for values in (result, getattr(nd, name)(*map(_tensor, args), **keywords)):
        _equal(values, expected, rtol)


def _tensor(x):
    return gg.asarray(x) if isinstance(x, np.ndarray) else x


def _equal(result, expected, rtol):
    if isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        for a, b in zip(result, expected, strict=True):
            _equal(a, b, rtol)
        return
    expected = np.asarray(expected)
    array = result.numpy() if isinstance(result, gg.Tensor) else np.asarray(result)
    assert array.dtype == expected.dtype
    np.testing.assert_allclose(array, expected, rtol=rtol, atol=rtol)


FILTERS = [
    ("convolve", ODD),
    ("convolve", EVEN),
    ("correlate", ODD),
    ("correlate", EVEN),
    ("convolve1d", KERNEL, 0),
    ("correlate1d", KERNEL[:4], 1),
    ("gaussian_filter", 1.2),
    ("gaussian_filter", [0.7, 2.0], [1, 3]),
    ("gaussian_filter1d", 0.8, 0, 2),
    ("gaussian_gradient_magnitude", 1.1),
    ("gaussian_laplace", [0.9, 1.2]),
    ("laplace",),
    ("sobel", 0),
    ("prewitt",),
    ("uniform_filter", 3),
    ("uniform_filter", [4, 7]),
    ("uniform_filter1d", 5, 0),
    ("minimum_filter", 3),
    ("maximum_filter", [2, 5]),
    ("maximum_filter1d", 4, 0),
    ("minimum_filter1d", 3),
    ("maximum_filter", None, HOLES),
    ("median_filter", 3),
    ("median_filter", None, HOLES),
    ("percentile_filter", 30, [2, 3]),
    ("percentile_filter", -5, 3),
    ("rank_filter", -2, 3),
    ("rank_filter", 0, None, HOLES),
    ("grey_erosion", 3),
    ("grey_erosion", None, HOLES, np.ones((2, 3))),
    ("grey_dilation", None, None, np.rint(3 * EVEN)),
    ("grey_dilation", [2, 3]),
    ("grey_opening", 2),
    ("grey_closing", None, HOLES),
    ("morphological_gradient", 3),
    ("morphological_laplace", None, HOLES),
    ("white_tophat", 2),
    ("black_tophat", 3),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", FILTERS, ids=lambda case: case[0])
@pytest.mark.thin(3)
def test_filters_equal_scipys_in_every_mode(case, mode):
    name, *args = case
    more = {"mode": mode} | ({"cval": 0.7} if "constant" in mode else {})
    _check(name, IMAGE, *args, **more)


SAFE = {
    "uniform_filter", "uniform_filter1d", "minimum_filter", "maximum_filter", "maximum_filter1d",
    "minimum_filter1d", "median_filter", "percentile_filter", "rank_filter", "grey_opening",
    "grey_closing",
}  # fmt: skip
"""Filters whose results lie between elements of the input. The others also have negative results,
which C does not define as unsigned numbers."""


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        (case, dtype)
        for case in FILTERS
        for dtype in ("float32", "int16", *(["uint8", "bool"] if case[0] in SAFE else []))
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_filters_have_scipys_dtypes(case, dtype):
    name, *args = case
    image = (IMAGE * 20 + (60 if dtype == "uint8" else 0)).astype(dtype)
    _check(name, image, *args, rtol=3e-5)


@pytest.mark.parametrize(
    ("name", "args", "keywords"),
    [
        ("correlate", (ODD,), {"origin": (-1, 2)}),
        ("convolve", (EVEN,), {"origin": (-1, 1)}),
        ("convolve", (EVEN,), {"origin": (0, -2)}),
        ("correlate1d", (KERNEL,), {"origin": 2}),
        ("uniform_filter", (4,), {"origin": (1, -2)}),
        ("maximum_filter", (3,), {"origin": 1}),
        ("median_filter", (3,), {"origin": (-1, 1)}),
        ("grey_dilation", (4,), {"origin": -1}),
        ("grey_dilation", (None, HOLES), {"origin": (0, 1)}),
        ("gaussian_filter", (1.0,), {"axes": 0}),
        ("median_filter", (3,), {"axes": (1,)}),
        ("gaussian_filter", (1.0,), {"radius": 2, "mode": ["wrap", "mirror"]}),
        ("sobel", (), {"mode": ["nearest", "constant"], "cval": 2.0}),
        ("correlate", (KERNEL,), {"axes": 0}),
        ("minimum_filter", (2,), {"axes": 1}),
        ("gaussian_filter", (0,), {}),
        ("uniform_filter", (1,), {"output": "float32"}),
        ("laplace", (), {"output": np.float32}),
        ("correlate", (ODD + 1j * ODD,), {}),
        ("convolve1d", (KERNEL * 1j,), {"mode": "constant", "cval": 0.5}),
    ],
)
def test_filters_take_origins_axes_modes_and_outputs(name, args, keywords):
    _check(name, IMAGE, *args, rtol=1e-6 if "output" in keywords else 1e-10, **keywords)


@pytest.mark.parametrize("name", ["uniform_filter", "convolve", "gaussian_filter"])
def test_filters_of_complex_images(name):
    args = {"uniform_filter": (3,), "convolve": (ODD * (1 - 2j),), "gaussian_filter": (1.0,)}[name]
    if name == "gaussian_filter":
        result = nd.gaussian_filter(gg.asarray(IMAGE + 2j), 1.0).numpy()
        np.testing.assert_allclose(result, sp.gaussian_filter(IMAGE, 1.0) + 2j)
    else:
        _check(name, IMAGE * (1 + 1j), *args, mode="constant", cval=0.5 - 1j)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", range(6))
def test_splines_equal_scipys_in_every_order_and_mode(order, mode):
    more = {"order": order, "mode": mode, "cval": 0.3}
    _check("map_coordinates", IMAGE, POINTS, **more)
    _check("affine_transform", IMAGE, TURN, [0.3, -1.2], **more)
    _check("affine_transform", IMAGE, np.array([0.7, 1.3]), 0.4, (5, 8), **more)
    _check("shift", IMAGE, (1.3, -9.7), **more)
    _check("shift", LINE, 2.6, prefilter=False, **more)
    _check("geometric_transform", LINE, lambda i: (i[0] * 0.7 - 1.1,), (12,), **more)
    _check("rotate", IMAGE, 33.0, **more)
    _check("zoom", IMAGE, (1.7, 0.6), **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's, about some modes
        _check("zoom", LINE, 2.1, grid_mode=True, **more)
    _check("spline_filter1d", IMAGE, order, 0, mode=mode)
    if order > 1:
        _check("spline_filter", SOLID, order, mode=mode)


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "complex128"])
def test_splines_have_scipys_dtypes(dtype):
    image = (IMAGE * 20 + 60).astype(dtype)
    for name, arg in (("shift", 0.7), ("zoom", 1.6), ("rotate", 20)):
        _check(name, image, arg, rtol=3e-5)
    _check("rotate", SOLID, 40, (0, 2), order=1)


def test_fourier_filters_equal_scipys():
    for x in (LINE, IMAGE, SOLID, IMAGE + 1j * IMAGE, IMAGE.astype("float32")):
        for name, value in (
            ("gaussian", 0.7),
            ("uniform", 2.5),
            ("ellipsoid", 1.5),
            ("shift", 0.6),
        ):
            for more in ({}, {"n": 11, "axis": 0}):
                _check(f"fourier_{name}", x, value, rtol=1e-6 if x.itemsize < 8 else 1e-10, **more)


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "sum_labels",
        "mean",
        "median",
        "variance",
        "standard_deviation",
        "minimum",
        "maximum",
        "extrema",
        "center_of_mass",
    ],
)
def test_measurements_equal_scipys(name):
    for image in (IMAGE, (IMAGE * 9).astype(int)):
        for more in ((), (LABELS,), (LABELS, 2), (LABELS, [3, 1, 1]), (LABELS, [[0], [2]])):
            if name != "center_of_mass" or np.ndim(more[1] if len(more) > 1 else 0) < 2:
                _check(name, image, *more)
    if name in ("sum_labels", "minimum", "maximum"):
        _check(name, IMAGE, LABELS, [9, 1])


@pytest.mark.parametrize(
    "name", ["gaussian_filter", "uniform_filter", "maximum_filter", "median_filter"]
)
def test_filters_of_empty_images_are_empty(name):
    result = getattr(nd, name)(np.zeros((0, 3)), 3)
    assert result.shape == (0, 3)


GRADIENTS = {
    "weights and cval": (
        lambda x, w, c: nd.correlate(x, w, mode="constant", cval=c),
        IMAGE,
        ODD,
        0.3,
    ),
    "even weights": (lambda x, w: nd.convolve(x, w, origin=(-1, 1)), IMAGE, EVEN),
    "weights of an axis": (lambda x, w: nd.convolve1d(x, w, 0, mode="mirror"), IMAGE, KERNEL[:4]),
    "sigma": (lambda x, s: nd.gaussian_filter(x, s, [0, 2], radius=3), IMAGE, [0.8, 1.1]),
    "magnitude": (lambda x, s: nd.gaussian_gradient_magnitude(x, s, radius=2), IMAGE, 1.0),
    "means": (lambda x: nd.uniform_filter(x, 3, mode="wrap"), IMAGE),
    "maximum": (lambda x: nd.maximum_filter(x, 3), IMAGE),
    "median": (lambda x: nd.median_filter(x, (2, 3)), IMAGE),
    "structure": (lambda x, s: nd.grey_dilation(x, structure=s), IMAGE, ODD),
    "tophat": (lambda x: nd.white_tophat(x, 2), IMAGE),
    "shift": (lambda x, s, c: nd.shift(x, s, order=4, cval=c), IMAGE, [0.3, 1.4], 0.2),
    "angle": (lambda x, a: nd.rotate(x, a, order=2, reshape=False, mode="mirror"), IMAGE, 12.0),
    "matrix": (
        lambda x, m, o: nd.affine_transform(x, m, o, order=3, mode="reflect"),
        IMAGE,
        TURN,
        [0.2, -0.3],
    ),
    "scale": (
        lambda x, m, o: nd.affine_transform(x, m, o, order=1, mode="wrap"),
        IMAGE,
        [0.7, 1.1],
        [0.21, 0.3],
    ),
    "coordinates": (
        lambda x, t: nd.map_coordinates(x, t, order=5, mode="grid-wrap"),
        IMAGE,
        POINTS,
    ),
    "zoom": (lambda x: nd.zoom(x, 1.5, mode="nearest"), IMAGE),
    "spline": (lambda x: nd.spline_filter(x, 3, mode="reflect"), IMAGE),
    "fourier": (lambda x, s: nd.fourier_ellipsoid(nd.fourier_gaussian(x, s), s), IMAGE, 0.8),
    "fourier shift": (lambda x, s: gg.real(nd.fourier_shift(x, s)), IMAGE, [0.4, 1.2]),
    "variance": (lambda x: nd.variance(x, LABELS, [1, 2, 3]), IMAGE),
    "center": (lambda x: gg.stack(nd.center_of_mass(x * x, LABELS, 2)), IMAGE),
    "middle": (lambda x: nd.median(x, LABELS, [0, 3]), IMAGE),
    "mapping": (
        lambda x, a: nd.geometric_transform(x, lambda i: (i[0] * a + 0.1, i[1] + a), order=2),
        IMAGE,
        0.3,
    ),
    "least": (lambda x: nd.minimum(x, LABELS, [0, 3]), IMAGE),
}


@pytest.mark.parametrize("case", GRADIENTS.values(), ids=GRADIENTS)
def test_gradients_by_every_floating_argument(case):
    f, *args = case
    check_grads(f, [gg.asarray(np.asarray(a, float)) for a in args], order=1)


@pytest.mark.parametrize("case", ["even weights", "sigma", "shift", "matrix", "variance"])
def test_filters_trace_and_batch(case):
    f, *args = GRADIENTS[case]
    args = [gg.asarray(np.asarray(a, float)) for a in args]
    expected = f(*args).numpy()
    np.testing.assert_allclose(gg.function(f)(*args).numpy(), expected, rtol=1e-9, atol=1e-9)
    batch = [gg.stack([a, 0.9 * a]) for a in args]
    last = f(*[0.9 * a for a in args]).numpy()
    result = gg.vmap(f)(*batch).numpy()
    np.testing.assert_allclose(result, np.stack([expected, last]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "args", "keywords"),
    [
        ("correlate1d", (ODD,), {}),
        ("correlate", (KERNEL,), {}),
        ("correlate", (ODD,), {"mode": "even"}),
        ("correlate", (ODD,), {"mode": ["wrap"] * 2}),
        ("correlate", (ODD,), {"origin": 5}),
        ("convolve1d", (KERNEL,), {"axis": 2}),
        ("gaussian_filter", ([1, 2, 3],), {}),
        ("gaussian_filter", (1,), {"order": -1}),
        ("gaussian_filter", (1,), {"radius": -1}),
        ("gaussian_filter", (1,), {"axes": (0, 0)}),
        ("uniform_filter1d", (0,), {}),
        ("uniform_filter1d", (3,), {"origin": 2}),
        ("maximum_filter", (), {}),
        ("minimum_filter", (None, np.zeros((2, 2))), {}),
        ("median_filter", (), {}),
        ("rank_filter", (9, 3), {}),
        ("rank_filter", (1.5, 3), {}),
        ("percentile_filter", (101, 3), {}),
        ("grey_erosion", (), {}),
        ("median_filter", (None, np.ones(3)), {}),
        ("shift", (1.0,), {"order": 6}),
        ("spline_filter", (1,), {}),
        ("shift", ((1, 2, 3),), {}),
        ("map_coordinates", (np.ones((3, 2)),), {}),
        ("map_coordinates", (np.ones(2) * 1j,), {}),
        ("affine_transform", (np.ones((3, 2)),), {}),
        ("affine_transform", (np.eye(3) * 2,), {}),
        ("rotate", (1.0, (0, 5)), {}),
        ("rotate", (1.0, (0, 0.5)), {}),
        ("sum_labels", (np.ones(5), 1), {}),
        ("zoom", ((1, 2, 3),), {}),
        ("laplace", (np.zeros((2, 2)),), {}),
        ("fourier_shift", (1.0,), {"output": np.float32}),
    ],
)
def test_errors_are_scipys(name, args, keywords):
    try:
        kind = type(getattr(sp, name)(IMAGE, *args, **keywords))
    except (RuntimeError, ValueError, TypeError) as error:
        kind = type(error)
    with pytest.raises(kind):
        getattr(nd, name)(gg.asarray(IMAGE), *map(_tensor, args), **keywords)


def test_results_are_written_to_output():
    out = gg.zeros(IMAGE.shape, dtype=gg.float64)
    assert nd.gaussian_filter(IMAGE, 1.0, output=out) is out
    np.testing.assert_allclose(out.numpy(), sp.gaussian_filter(IMAGE, 1.0))


def test_functions_without_a_derivative_pass_through_and_say_so_under_a_tape():
    labels, n = nd.label(gg.asarray(IMAGE) > 0)
    assert n == sp.label(IMAGE > 0)[1]
    np.testing.assert_array_equal(labels.numpy(), sp.label(IMAGE > 0)[0])
    with pytest.raises(DTypeError, match=r"label: has no derivative.*stop_gradient"):
        gg.grad(lambda x: nd.label(x)[0])(gg.asarray(IMAGE))


def test_names_signatures_and_examples():
    assert set(nd.__all__) == set(sp.__all__)
    failed = []
    finder = doctest.DocTestFinder(recurse=False)
    for name in nd.__all__:
        function = getattr(nd, name)
        assert inspect.signature(function) == inspect.signature(getattr(sp, name))
        assert function.__doc__
        for test in finder.find(function, name, globs={"gg": gg, "np": np}):
            failed += [name] * doctest.DocTestRunner(verbose=False).run(test).failed
    assert not failed


ON_A_GPU = {
    "filter": lambda m, x: m.convolve(x, ODD, mode="mirror"),
    "rank": lambda m, x: m.median_filter(m.maximum_filter(x, (1, 2)), footprint=HOLES),
    "spline": lambda m, x: m.affine_transform(x, TURN, 0.3, order=3, mode="nearest"),
    "labels": lambda m, x: m.mean(x, LABELS, [2, 0]),
    "no derivative": lambda m, x: m.label(x > 0)[0],
}


@pytest.mark.device
@pytest.mark.parametrize("name", ON_A_GPU)
def test_functions_run_on_a_gpu_and_stay_there(name, cuda):
    f = ON_A_GPU[name]
    result = f(nd, gg.asarray(IMAGE, device=cuda))
    assert result.device == cuda
    np.testing.assert_allclose(result.numpy(), f(sp, IMAGE), rtol=1e-9, atol=1e-9)
    if name != "no derivative":
        x = gg.asarray(IMAGE, device=cuda)
        slope = gg.grad(lambda x: gg.sum(f(nd, x) ** 2))(x).numpy()
        expected = gg.grad(lambda x: gg.sum(f(nd, x) ** 2))(gg.asarray(IMAGE)).numpy()
        np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.thin(3)
@pytest.mark.parametrize("order", [1, 3, 5])
@pytest.mark.parametrize("mode", ["constant", "reflect", "mirror", "wrap", "grid-wrap", "nearest"])
def test_gradients_of_splines_at_more_points_than_elements(mode, order):
    """Their taps are looked up in a table."""
    rng = np.random.default_rng(order)
    inside = mode == "constant"  # elsewhere it is not differentiable
    low, high = (0.1, 2.9) if inside else (-9.0, 14.0)
    where, image = rng.uniform(low, high, size=(2, 30)), rng.normal(size=(4, 5))
    at = lambda c, t: gg.spline_at(c, t, order=order, mode=mode)  # noqa: E731
    theirs = sp.map_coordinates(image, where, order=order, mode=mode, prefilter=False)
    np.testing.assert_allclose(at(image, where), theirs, atol=1e-12)
    check_grads(at, [image, where], order=1)


@needs_compiler
@pytest.mark.thin(7)
@pytest.mark.parametrize("mode", kernel.MODES)
@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize(("shape", "dtype"), [((7,), "f8"), ((2, 1), "f8"), ((4, 3, 5), "f4")])
def test_kernel_of_splines_equals_the_formula(shape, dtype, order, mode, rng, monkeypatch):
    monkeypatch.setattr(kernel, "LARGE", 1)
    x, g = rng.normal(size=shape).astype(dtype), rng.normal(size=200).astype(dtype)
    where = rng.uniform(-12, 14, (len(shape), 200))
    where[:, ::7] = np.rint(where[:, ::7])
    how = shape, order, mode
    value = kernel.spline(x, where, None, *how)
    assert value is not NotImplemented
    close = {"rtol": 2e-3 if dtype == "f4" else 1e-8, "atol": 2e-3 if dtype == "f4" else 1e-8}
    read = [formulas._read(NUMPY, x, where, order, mode, k) for k in (None, *range(len(shape)))]
    np.testing.assert_allclose(value, read[0], **close)
    slopes = np.stack([g * part * bool(order) for part in read[1:]])
    np.testing.assert_allclose(kernel.spline(x, where, g, *how, slopes=True), slopes, **close)
    spread, taps = np.zeros(x.size), formulas._taps(NUMPY, shape, where, order, mode, factor=g)
    for at, w in taps:
        np.add.at(spread, at, np.broadcast_to(w, at.shape))
    np.testing.assert_allclose(kernel.spline(None, where, g, *how).ravel(), spread, **close)


@pytest.mark.parametrize("structure", [np.ones((3, 3)), np.arange(6.0).reshape(2, 3) - 2.5])
@pytest.mark.parametrize("dtype", ["u1", "i2", "i8", "?", "f4", "f8"])
def test_grey_morphology_with_a_structure_is_scipys_also_under_a_tape(dtype, structure):
    x = np.random.default_rng(0).integers(0, 5, (6, 7)).astype(dtype)
    names = """grey_dilation grey_erosion grey_opening grey_closing morphological_laplace
        morphological_gradient white_tophat black_tophat"""
    for name in names.split():
        ours, theirs = (getattr(m, name) for m in (nd, sp))
        try:
            expected = theirs(x, structure=structure)
        except TypeError:  # of bools, which NumPy does not subtract
            continue
        with gg.GradientTape():
            recorded = ours(x, structure=structure)
        for y in (ours(x, structure=structure), recorded):
            assert y.dtype == expected.dtype
            np.testing.assert_array_equal(y, expected)
