"""C kernels of eager ops on large arrays: they compute what NumPy computes of parts."""

import numpy as np
import pytest
from needs import needs_compiler
from taping import gradients

import gpugrad as gg
from gpugrad.core.backend import NUMPY, OPS
from gpugrad.function.cpu import c_program
from gpugrad.kernels.cpu import bilinear, elementwise, nan, pairs, resample, sums, top_k
from gpugrad.kernels.cpu.large import LARGE
from gpugrad.ops.nn.resample import Taps

pytestmark = needs_compiler

DTYPES = [np.float32, np.float64]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


WIDE = normal(1200, 131)  # no whole number of vectors
LABELS = np.random.default_rng(1).integers(0, 131, 1200)
LABELS[::7] = -100
ROWS = {
    "softmax": (gg.softmax, WIDE, []),
    "log_softmax": (gg.log_softmax, WIDE, []),
    "logsumexp": (lambda x: gg.logsumexp(x, axis=1), WIDE, []),
    "logsumexp with axes": (lambda x: gg.logsumexp(x, axis=(-1,), keepdims=True), WIDE, []),
    "masked_softmax": (lambda x: gg.masked_softmax(x, x < 1), WIDE, []),
    "layer_norm": (gg.layer_norm, WIDE, [normal(131), normal(131)]),
    "layer_norm without bias": (gg.layer_norm, WIDE, [normal(131)]),
    "layer_norm without weight": (gg.layer_norm, WIDE, []),
    "group_norm": (
        lambda x: gg.reshape(gg.group_norm(gg.reshape(x, (-1, 2, 131)), num_groups=1), x.shape),
        WIDE,
        [],
    ),
    "instance_norm": (
        lambda x: gg.reshape(gg.instance_norm(gg.reshape(x, (-1, 2, 131))), x.shape),
        WIDE,
        [],
    ),
    "rfft": (lambda x: gg.real(gg.fft.rfft(x)), WIDE, []),
    "abs of complex": (lambda x: gg.abs(gg.fft.fft(x)), WIDE, []),
    "cumsum": (lambda x: gg.cumsum(x, axis=1), WIDE, []),
    "top_k": (lambda x: gg.top_k(x, 5)[0], WIDE, []),
    "cdist": (gg.cdist, normal(1200, 40), [normal(110, 40)]),
    "exp": (gg.exp, WIDE, []),
    "gelu": (gg.nn.gelu, WIDE, []),
    "relu": (gg.nn.relu, WIDE, []),
    "softplus": (gg.nn.softplus, WIDE, []),
    "tanh": (gg.tanh, WIDE, []),
    "sigmoid": (gg.sigmoid, WIDE, []),
}
"""Functions of rows: the array of rows, and arrays that all rows share."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROWS)
def test_a_large_array_gives_what_its_parts_give(name, dtype, threads):
    function, x, shared = ROWS[name]
    x, shared = x.astype(dtype), [a.astype(dtype) for a in shared]
    g = normal(*function(gg.asarray(x), *shared).shape, seed=1).astype(dtype)
    out, (dx, *rest) = gradients(function, [x, *shared], g)
    parts = [
        gradients(function, [x[k : k + 20], *shared], g[k : k + 20]) for k in range(0, len(x), 20)
    ]
    assert x.size >= LARGE > 20 * x.shape[1] or name == "cdist"
    expected = [np.concatenate([p for p, _ in parts]), np.concatenate([d[0] for _, d in parts])]
    expected += [np.sum([d[k] for _, d in parts], 0) for k in range(1, len(shared) + 1)]
    eps = np.finfo(dtype).eps
    for actual, desired in zip([out, dx, *rest], expected, strict=True):
        assert actual.dtype == dtype
        np.testing.assert_allclose(actual, desired, 30 * eps, 30 * eps * np.abs(desired).max())


EXACT = {
    "triu": (lambda x: gg.triu(x, 2), lambda x: np.triu(x, 2)),
    "tril": (lambda x: gg.tril(x, -3), lambda x: np.tril(x, -3)),
    "take": (lambda x: gg.take(x, [3, -1, 0, 3], axis=1), lambda x: x.take([3, -1, 0, 3], 1)),
    "roll": (lambda x: gg.roll(x, -2, axis=1), lambda x: np.roll(x, -2, 1)),
    "cross": (lambda x: gg.cross(x[:, :3], x[:, 3:6]), lambda x: np.cross(x[:, :3], x[:, 3:6])),
    "clip": (lambda x: gg.clip(x, -0.5, 0.25), lambda x: np.clip(x, -0.5, 0.25)),
    "median": (gg.median, lambda x: gg.quantile(x, 0.5).numpy()),
}
"""Functions that have another way for large, or small, arrays, and the usual way."""


@pytest.mark.parametrize("special", [None, -0.0, np.inf, np.nan])
@pytest.mark.parametrize("name", EXACT)
def test_arrays_of_each_size_give_the_same_bits(name, special):
    ours, usual = EXACT[name]
    for x in (normal(5, 7), normal(6, 8), normal(40, 41), normal(3000, 7)):
        x = x.astype(np.float32)
        x[::3, 1] = x[::3, 1] if special is None else special
        with np.errstate(invalid="ignore"):
            actual, desired = ours(x).numpy(), np.asarray(usual(x))
        assert actual.dtype == desired.dtype == np.float32
        numbers = desired == desired
        assert np.array_equal(actual == actual, numbers)
        bits = actual[numbers].view(np.uint32), desired[numbers].view(np.uint32)
        assert np.array_equal(*bits), x.shape


def square(x):
    return gg.reshape(x, (-1, 4, 4))


ERRORS = {
    **{name: (op.eager, 0) for name, op in OPS.items() if op.cpu is True and len(op.arrays) == 1},
    "sum": (gg.sum, 3e38),
    "sum over rows": (lambda x: gg.sum(gg.reshape(x, (-1, 2, 4)), axis=1), 3e38),
    "mean": (gg.mean, 3e38),
    "cumulative_sum": (gg.cumulative_sum, 3e38),
    "softmax": (gg.softmax, np.inf),
    "log_softmax": (gg.log_softmax, np.inf),
    "layer_norm": (lambda x: gg.layer_norm(square(x)), np.inf),
    "batch_norm": (lambda x: gg.batch_norm(square(x), training=True), np.inf),
    "cross entropy": (lambda x: gg.softmax_cross_entropy(square(x), square(x)), np.inf),
    "matmul": (lambda x: square(x) @ square(x), 1e30),
    "conv1d": (lambda x: gg.conv1d(gg.reshape(x, (1, 1, -1)), gg.full((9, 1, 2), 2.0)), 3e38),
    "multiply": (lambda x: x * x, 1e30),
}
"""Functions, and an element for which NumPy reports an error; 0 for several to try."""


@pytest.mark.parametrize("name", ERRORS)
def test_errstate_raises_for_large_arrays_as_for_small_ones(name):
    function, element = ERRORS[name]

    def raises(size, element):
        x = np.full(size, 0.5, np.float32)
        x[-6:] = element
        try:
            with np.errstate(all="raise"):
                function(gg.asarray(x))
        except FloatingPointError:
            return True
        return False

    for one in [element] if element else (200, -200, 1e30, -1e30, np.inf, -np.inf, np.nan, 0):
        small = raises(16, one)
        assert raises(2 * LARGE, one) == small, one
        assert small or not element


@pytest.mark.parametrize("reduction", ["none", "sum"])
def test_cross_entropy_of_many_rows_is_that_of_each(reduction, threads):
    def losses(x, labels):
        return gg.nn.cross_entropy(x, gg.asarray(labels), reduction=reduction)

    x = WIDE.astype(np.float32)
    g = normal(1200, seed=1).astype(np.float32) if reduction == "none" else np.float32(2)
    out, (dx,) = gradients(lambda x: losses(x, LABELS), [x], g)
    for k in (0, 1, 7, 1199):
        one = g[k : k + 1] if reduction == "none" else g
        part, (d,) = gradients(lambda x, k=k: losses(x, LABELS[k : k + 1]), [x[k : k + 1]], one)
        np.testing.assert_allclose(dx[k : k + 1], d, 1e-5, 1e-6)
        if reduction == "none":
            np.testing.assert_allclose(out[k], part[0], 1e-5)
    assert not dx[::7].any()


@np.errstate(invalid="ignore")  # of NumPy's formula
@pytest.mark.parametrize("dtype", DTYPES)
def test_large_rows_that_a_mask_hides_are_zero(dtype, threads):
    x = WIDE.astype(dtype)
    mask = np.arange(1200)[:, None] % 5 > 0
    x[1], x[5], x[6, 0], x[7, 0] = -np.inf, np.nan, np.nan, np.inf
    g = normal(*x.shape, seed=1).astype(dtype)
    out, (dx,) = gradients(lambda x: gg.masked_softmax(x, mask), [x], g)
    hidden = ~mask[:, 0]
    hidden[1] = True
    for actual in (out, dx):
        assert not actual[hidden].any()
        assert np.isnan(actual[6]).all()
        assert np.isfinite(actual[8:]).all()
    few, (d,) = gradients(lambda x: gg.masked_softmax(x, mask[:20]), [x[:20]], g[:20])
    np.testing.assert_array_equal(np.isnan(out[:20]), np.isnan(few))
    np.testing.assert_array_equal(np.isnan(dx[:20]), np.isnan(d))


def test_rows_of_infinities_and_nan_are_numpys():
    x = WIDE.astype(np.float32)
    x[0], x[1, 5], x[2, 3], x[3, 130] = -np.inf, np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        for function in (gg.softmax, gg.log_softmax):
            whole, part = function(x).numpy(), function(x[:4]).numpy()
            np.testing.assert_allclose(whole[:4], part, 1e-5)


@pytest.mark.parametrize("width", [1, 2, 15, 131])
def test_logsumexp_of_infinities_and_nan_is_numpys(width, threads):
    x = np.resize(WIDE, (LARGE // width + 1, width)).astype(np.float32)
    x[0], x[1, 0], x[2, 0], x[3, -1], x[4], x[5] = -np.inf, np.inf, np.nan, -np.inf, np.nan, np.inf
    g = normal(len(x), seed=1).astype(np.float32)
    g[[0, 6]] = 0
    with np.errstate(invalid="ignore"):
        out, (d,) = gradients(lambda x: gg.logsumexp(x, -1), [x], g)
        part, (d_part,) = gradients(lambda x: gg.logsumexp(x, -1), [x[:9]], g[:9])
    np.testing.assert_allclose(out[:9], part, 1e-5, 1e-6)
    np.testing.assert_allclose(d[:9], d_part, 1e-5, 1e-6)


def test_rows_whose_variance_overflows_are_normalized():
    x = WIDE.astype(np.float32)
    x[4], x[4, ::2] = 1e25, -1e25
    np.testing.assert_allclose(gg.layer_norm(x).numpy()[4], gg.layer_norm(x[4:5]).numpy()[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_have_numpys_bits(dtype, threads):
    for shape in ((300, 500), (7, 201, 133), (3, 70_000), (200_000,)):
        x = normal(*shape).astype(dtype)
        for axis in range(len(shape)):
            assert np.array_equal(sums.running_sum(x, axis), np.cumsum(x, axis))
            for what in ("multiply", "maximum", "minimum"):
                expected = getattr(np, what).accumulate(x, axis)
                assert np.array_equal(sums.running_sum(x, axis, what=what), expected)
            back = np.flip(np.cumsum(np.flip(x, axis), axis), axis)
            assert np.array_equal(sums.running_sum(x, axis, back=True), back)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 31, 32, 100])
@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_sums_of_rows_by_index_have_numpys_bits(rows, width, dtype, threads):
    n = LARGE // width + 1
    index = np.random.default_rng(0).integers(0, rows, n)
    values, out = normal(n, width).astype(dtype), np.zeros((rows, width), dtype)
    expected = out.copy()
    np.add.at(expected, index, values)
    assert sums.add_rows(out, index, values)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("width", [1, 3, 100])
@pytest.mark.parametrize("name", ["segment_max", "segment_min"])
@pytest.mark.thin(3)
def test_extremes_of_large_groups_are_numpys(name, width):
    ids = np.random.default_rng(0).integers(-1, 9, LARGE // width + 1)
    x = normal(len(ids), width).astype(np.float32)
    x[np.flatnonzero(ids == 2)[0]] = np.nan
    expected = np.full((12, width), -np.inf if name == "segment_max" else np.inf, np.float32)
    ufunc = np.maximum if name == "segment_max" else np.minimum
    ufunc.at(expected, np.where(ids < 0, 11, ids), x)
    np.testing.assert_array_equal(getattr(gg, name)(x, ids, 11), expected[:11])


@pytest.mark.parametrize("shape", [(50_005,), (200, 300), (2, 40_000)])
@pytest.mark.thin(2)
def test_norms_and_products_of_float32_are_those_of_float64(shape, threads):
    x = np.exp(0.1 * normal(*shape)).astype(np.float32)
    for scale in (1, 1e-30, 1e30):
        y = x * np.float32(scale)
        for axis in (None, -1, 0, len(shape) - 1, tuple(range(-len(shape), 0))):
            expected = np.linalg.vector_norm(y.astype(float), axis=axis)
            np.testing.assert_allclose(gg.vector_norm(y, axis=axis), expected, 1e-6)
    for special in (1.0, 0.0, np.inf, np.nan, -1.0):
        x.flat[3] = special
        np.testing.assert_allclose(gg.prod(x), np.prod(x.astype(float)), 1e-6)
    with pytest.raises(gg.errors.AxisError):
        gg.vector_norm(x, axis=len(shape))


@pytest.mark.parametrize("name", ["digamma", "i0", "i1", "i0e", "i1e", "j0", "gammaln", "erfinv"])
@pytest.mark.thin(3)
def test_special_functions_in_c_are_scipys_to_few_units(name):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-45, 45, LARGE), rng.uniform(-1, 1, LARGE)])
    x = x / 45.1 if name == "erfinv" else x
    few, ufunc = slice(None, None, 300), getattr(NUMPY.special, name)
    for dtype, units in ((np.float32, 4), (np.float64, 30)):
        y = x.astype(dtype)
        exact, out = ufunc(y[few].astype(float)), getattr(gg.special, name)(y).numpy()[few]
        size = np.abs(exact) + (name == "digamma")  # whose terms cancel beside its roots
        np.testing.assert_array_less(
            np.abs(out - exact)[np.isfinite(exact)],
            (units * np.spacing(size.astype(dtype)))[np.isfinite(exact)] + 1e-300,
        )
        np.testing.assert_array_equal(np.isnan(out), np.isnan(exact))


@pytest.mark.parametrize("n", [LARGE, LARGE + 1, 3 * LARGE - 7])
def test_a_total_is_close_to_the_exact_one(n, threads):
    x = normal(n).astype(np.float32)
    total = sums.reduced(x, None, keepdims=False)
    assert (total.shape, total.dtype) == ((), np.float32)
    exact = x.astype(np.float64).sum()
    assert abs(total - exact) <= 1e-6 * np.abs(x).sum()
    assert sums.reduced(x[::2], None, keepdims=False) is NotImplemented


UNARY = sorted(name for name, op in OPS.items() if op.cpu is True and len(op.arrays) == 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values_of_a_large_array_are_those_of_a_small_one(name, dtype):
    eps, tiny, huge = np.finfo(dtype).eps, np.finfo(dtype).tiny, np.finfo(dtype).max
    special = [np.inf, np.nan, 0, tiny, 1, 12, 45, 300, huge / 4, huge]
    x = np.array([*special, *(-v for v in special)], dtype)
    results = []
    for array in (x, np.resize(x, LARGE)):
        out, (d,) = gradients(OPS[name].eager, [array], np.ones_like(array))
        results.append((out[: x.size], d[: x.size]))
    for small, large in zip(*results, strict=True):
        # of J0 near 1e37, which is below 1e-19, only SciPy from 1.18 on has a right digit
        atol = 1e-19 if name == "j0" else 100 * tiny
        np.testing.assert_allclose(large, small, rtol=100 * eps, atol=atol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [LARGE, 3 * LARGE - 7])
def test_a_nan_is_found_at_any_place(n, dtype, threads):
    x = normal(n).astype(dtype)
    x[0], x[1] = np.inf, -np.inf
    assert nan.has_nan(x) is False
    for place in (0, 15, n // 2, n - 1):
        before, x[place] = x[place], np.nan
        assert nan.has_nan(x) is True
        assert nan.has_nan(x.reshape(-1, 1).T) is True
        x[place] = before
    assert nan.has_nan(x[: LARGE - 1]) is NotImplemented


VIEWS = {
    "transposed": lambda x: x.transpose(2, 0, 1),
    "columns": lambda x: x[:, :, 1:-1],
    "backwards": lambda x: x[::-1, :, ::-2],
    "broadcast": lambda x: np.broadcast_to(x[:, None, :, :1], (*x.shape[:1], 5, *x.shape[1:])),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_nan_of_a_view_is_found_and_no_other(view, threads):
    x = np.full((40, 67, 130), np.nan, np.float32)
    seen = VIEWS[view](x)
    np.copyto(seen if seen.flags.writeable else x[:, :, :1], 1)
    assert nan.has_nan(seen) is False
    for place in ((0, 0, 0), (20, 33, 0), (39, 66, 0)):
        x[place], before = np.nan, x[place]
        assert nan.has_nan(seen) is bool(np.isnan(seen).any())
        x[place] = before


def test_a_trace_of_linear_ops_asks_for_no_nan():
    def lowered(f):
        def both(x, g):
            with gg.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            return tape.gradient(y, x, output_gradients=g)

        return str(gg.function(both).lower(gg.ones((3, 4)), gg.ones((3, 4))))

    assert "no_nan" in lowered(gg.exp)
    assert "no_nan" not in lowered(lambda x: gg.flip(gg.concat([x[:1], x[1:]], axis=0), axis=0))


def test_a_large_gradient_has_no_nan_of_a_masked_branch():
    x = np.zeros(LARGE, np.float32)
    x[:5] = 2
    with np.errstate(all="ignore"):
        _, (d,) = gradients(lambda x: gg.where(x > 0, gg.sqrt(x) * gg.log(x), 0), [x], x + 1)
    assert np.isfinite(d).all()
    assert d[:5].all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [9, 63, 131, 5000])
@pytest.mark.parametrize("k", [1, 8, 9, 33, 64])
@pytest.mark.thin(7)
def test_top_k_keeps_the_order_of_equal_elements(k, width, dtype, threads):
    k, shape = min(k, width), (-(-LARGE // width), width)
    rng = np.random.default_rng(0)
    for x in (rng.integers(0, 4, shape), normal(*shape), np.full(shape, -np.inf)):
        x = x.astype(dtype)
        values, indices = top_k.top_k(x, k)
        order = np.argsort(-x, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
        for place in (0, width // 2, width - 1):
            with_nan = x.copy()
            with_nan[3, place] = np.nan
            assert top_k.top_k(with_nan, k) is NotImplemented


def test_distances_whose_squares_vanish_or_overflow_are_left_to_the_formula():
    x = normal(400, 20).astype(np.float32)
    assert pairs.distances(NUMPY, x, x) is not NotImplemented
    for scale in (1e-30, 1e30):
        assert (
            pairs.distances(NUMPY, x * np.float32(scale), x * np.float32(scale)) is NotImplemented
        )
    distances = gg.cdist(x * np.float32(1e30), x * np.float32(1e30)).numpy()
    assert np.isfinite(distances).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_ctc_of_many_sequences_is_that_of_each(dtype, threads):
    rng = np.random.default_rng(0)
    steps, n, classes, width = 120, 40, 6, 15
    x = np.log(rng.dirichlet(np.ones(classes), (steps, n))).astype(dtype)
    targets = rng.integers(1, classes, (n, width))
    lengths = rng.integers(0, steps + 1, n), rng.integers(0, width + 1, n)

    def losses(of):
        return lambda x: gg.ctc_losses(x, targets[of], *(a[of] for a in lengths))

    with np.errstate(all="ignore"):
        out, (d,) = gradients(losses(slice(None)), [x], np.ones(n, dtype))
        for k in range(0, n, 4):
            part, (dk,) = gradients(losses(slice(k, k + 4)), [x[:, k : k + 4]], np.ones(4, dtype))
            np.testing.assert_allclose(out[k : k + 4], part, 1e-5)
            np.testing.assert_allclose(
                d[:, k : k + 4], dk, 0, 2e-4 if dtype == np.float32 else 1e-11
            )


IN_C = [name for name, op in sorted(OPS.items()) if op.cpu is True]
NOT_WRITTEN = {(name, c): 1 for name in ("digamma", "j0") for c in "fd"}  # polygamma, j1
NOT_WRITTEN |= {(name, "d"): 0 for name in ("erfinv", "gammaln", "j0")}  # too few digits


@pytest.mark.parametrize("name", IN_C)
def test_loops_and_their_gradients_can_be_written(name):
    op = OPS[name]
    for dtype in map(np.dtype, DTYPES):
        formulas = [(elementwise.forward_of(op).formula, len(op.arrays))]
        formulas += [(elementwise.rule_of(op, r).formula, 1 + len(op.saves)) for r in op.rules if r]
        for formula, n in formulas[: NOT_WRITTEN.get((name, dtype.char))]:
            assert "gpugrad_kernel" in elementwise.text(formula, dtype, [dtype] * n, op.params)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", IN_C)
@pytest.mark.thin(40)
def test_loops_give_what_numpy_gives(name, dtype):
    op, few = OPS[name], slice(-300, None)
    args, params = next(iter(op.samples(np.random.default_rng(0))))
    large = [np.resize(np.asarray(a), LARGE + 3).astype(dtype) for a in args]

    def f(*arrays):
        return op.eager(*arrays, **params)

    with np.errstate(all="ignore"):
        out, grads = gradients(f, large, np.ones_like(large[0]))
        small, some = gradients(f, [a[few] for a in large], np.ones(300, dtype))
    rtol = 3e-5 if dtype == np.float32 else 1e-10
    for a, b in zip((out, *grads), (small, *some), strict=True):
        np.testing.assert_allclose(a[few], b, rtol, rtol * np.abs(b).max())


HALVES = [-7, -4, -3.5, -2, -1, -0.5, 0.5, 1, 1.5, 3, 4, 5, 6.5, 8]


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_powers_are_products_with_the_same_bits_everywhere(dtype, monkeypatch):
    x = np.concatenate([normal(LARGE), [0.0, -0.0, np.inf, np.nan, 1e-40, 3e38]]).astype(dtype)
    few, limits = slice(-500, None), np.finfo(dtype)
    monkeypatch.setattr(c_program, "setting", lambda: "always")
    with np.errstate(all="ignore"):
        traced = gg.function(lambda x: [gg.power(x, y) for y in HALVES])(x)
        for y, in_c in zip(HALVES, traced, strict=True):
            exact = np.power(np.longdouble(x), y).astype(dtype)
            large, small = (
                gradients(lambda x, y=y: gg.power(x, y), [a], np.ones_like(a)) for a in (x, x[few])
            )
            np.testing.assert_array_equal(large[0], in_c)
            np.testing.assert_array_equal(large[0][few], small[0])
            np.testing.assert_array_equal(large[1][0][few], small[1][0])
            np.testing.assert_allclose(large[0], exact, 4 * limits.eps, limits.smallest_normal)


def test_numbers_that_may_change_from_call_to_call_compile_nothing(monkeypatch):
    loops = elementwise.forward_of(OPS["softplus"])
    x = normal(64).astype(np.float32)
    assert loops((x,), {"beta": 1.0}) is not NotImplemented
    monkeypatch.delattr(elementwise, "compiler")
    assert loops((x,), {"beta": 1.5}) is NotImplemented
    assert loops((x, x[:32]), {"beta": 1.0}) is NotImplemented
    assert loops((x.astype(np.float16),), {"beta": 1.0}) is NotImplemented


BROADCAST = [
    ((40, 1), (1, 300)),
    ((7, 1, 3), (1, 500, 3)),
    ((300, 40), (40,)),
    ((40,), (300, 1)),
    ((3, 1, 5, 1), (1, 60, 1, 20)),
    ((1, 9000), ()),
    ((200, 3, 20), (3, 1)),
]


@pytest.mark.parametrize("piece", [7, 1000, 1 << 17])
@pytest.mark.parametrize("shapes", BROADCAST, ids=str)
@pytest.mark.parametrize("name", ["hypot", "logaddexp", "power", "xlogy"])
def test_arrays_that_are_broadcast_run_in_c(name, shapes, piece, monkeypatch):
    function = "run" if () in shapes else "run_broadcast"  # C takes a number for no axes
    calls, run = [], getattr(elementwise, function)
    monkeypatch.setattr(elementwise, "_PIECE", piece)
    monkeypatch.setattr(elementwise, function, lambda *a: calls.append(a) or run(*a))
    op = OPS[name]
    for x, y in (shapes, shapes[::-1]):
        x, y = (np.abs(normal(*s)) + 0.1 if s else np.float64(1.5).reshape(()) for s in (x, y))
        g = np.ones(np.broadcast_shapes(x.shape, y.shape))
        actual, slopes = gradients(op.eager, [x, y], g)
        assert len(calls) >= 1
        whole = [np.broadcast_to(a, g.shape) for a in (x, y)]
        expected, wanted = gradients(op.eager, [a.copy() for a in whole], g)
        same = 1e-15 if name == "power" and () in shapes else 0  # a power by one number
        np.testing.assert_allclose(actual, expected, same)
        for a, b, like in zip(slopes, wanted, (x, y), strict=True):
            total = NUMPY.sum_to(b, like.shape)
            np.testing.assert_allclose(a, total, 1e-10, 1e-10)
        calls.clear()


@pytest.mark.parametrize("name", ["logaddexp", "hypot", "copysign"])
def test_a_number_before_a_large_array_runs_in_c(name, monkeypatch):
    calls, loop = [], elementwise.Loops.__call__
    monkeypatch.setattr(
        elementwise.Loops, "__call__", lambda self, *a: calls.append(loop(self, *a)) or calls[-1]
    )
    x = normal(10_000)
    result = OPS[name].eager(1.5, x).numpy()
    assert [type(r) for r in calls] == [np.ndarray]
    np.testing.assert_allclose(result, OPS[name].ufunc(1.5, x), 1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 7, 16, 129])
def test_an_element_of_a_loop_does_not_depend_on_its_place(n, dtype):
    loops = elementwise.forward_of(OPS["gelu"])
    x = normal(300).astype(dtype)
    params = {"approximate": "none"}
    assert np.array_equal(loops((x[:n],), params), loops((x,), params)[:n])
    assert np.array_equal(loops((x[::2],), params), loops((x,), params)[::2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("zeros", [False, True])
def test_few_places_in_large_images_are_sampled(zeros, dtype, threads):
    x = normal(2, 600, 40, 35).astype(dtype)
    places = np.random.default_rng(1).uniform(0, [39, 34], (2, 60, 2)).astype(dtype)
    places[:, :2] = [[-0.5, 34], [39, -0.3]] if zeros else [[39, 34], [0, 0]]
    g, eps = normal(2, 600, 60, seed=2).astype(dtype), np.finfo(dtype).eps
    sample, grads = OPS["bilinear_sample"].forward, OPS["bilinear_sample_grads"].forward
    actual = [
        bilinear.bilinear(NUMPY, x, places, zeros=zeros),
        *bilinear.bilinear_grads(NUMPY, g, x, places, zeros=zeros),
    ]
    expected = [sample(NUMPY, x, places, zeros=zeros), *grads(NUMPY, g, x, places, zeros=zeros)]
    for a, e, ulps in zip(actual, expected, (30, 100, 5000), strict=True):
        np.testing.assert_allclose(a, e, 0, ulps * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("channels", [3, 16, 30])
def test_grid_sample_of_many_places_is_that_of_few(channels, dtype, padding_mode, threads):
    rows = 1800 // channels
    x = normal(2, channels, 12, 9).astype(dtype)
    grid = np.random.default_rng(1).uniform(-1.4, 1.4, (2, rows, 20, 2)).astype(dtype)

    def sample(x, grid):
        return gg.nn.grid_sample(x, grid, padding_mode=padding_mode)

    g = normal(2, channels, rows, 20, seed=2).astype(dtype)
    out, (dx, d_grid) = gradients(sample, [x, grid], g)
    total, eps = np.zeros_like(x), np.finfo(dtype).eps
    for k in range(0, rows, rows // 6):
        some = slice(k, k + rows // 6)
        part, (dxk, d_part) = gradients(sample, [x, grid[:, some]], g[:, :, some])
        np.testing.assert_allclose(out[:, :, some], part, 0, 30 * eps)
        np.testing.assert_allclose(d_grid[:, some], d_part, 0, 2000 * eps)
        total += dxk
    np.testing.assert_allclose(dx, total, 0, 4 * rows * eps)  # sums of places


_SIZES = {"size": (51, 49)}, {"size": (19, 50)}, {"scale_factor": 1.7}, {"scale_factor": 0.6}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", _SIZES, ids=str)
@pytest.mark.parametrize("mode", ["nearest", "area", "bilinear", "bicubic"])
@pytest.mark.parametrize("align_corners", [False, True])
@np.errstate(invalid="ignore")  # of NumPy's sums with infinities
@pytest.mark.thin(9)
def test_resized_images_are_those_of_fewer(mode, align_corners, sizes, dtype, threads):
    def resize(x):
        return gg.nn.interpolate(x, **sizes, mode=mode, align_corners=align_corners)

    x = normal(5, 50, 27, 33).astype(dtype)
    x[0, 0, 0, 0], x[1, 1, 5, 5] = np.inf, np.nan
    g = normal(*resize(gg.asarray(x)).shape, seed=1).astype(dtype)
    out, (dx,) = gradients(resize, [x], g)
    for k in range(5):  # too few for C, with NumPy's sums in the same order
        some = slice(10 * k, 10 * k + 10)
        part, (d,) = gradients(resize, [x[:, some]], g[:, some])
        np.testing.assert_array_equal(out[:, some], part)
        np.testing.assert_array_equal(dx[:, some], d)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rows_of_taps_without_weight_give_zeros(axis, dtype, threads):
    taps = Taps([[0, 2, 1], [1, 1, 1], [2, 0, 2]], [[1, 2, 3], [0, 0, 0], [0, 1, 0]], 3)
    x = np.moveaxis(np.full((3, 300, 200), np.inf, dtype), 0, axis)
    out = OPS["resample"].forward(NUMPY, x, taps, axis=axis)
    np.testing.assert_array_equal(resample.resample(NUMPY, x, taps, axis=axis), out)
    assert not np.take(out, 1, axis).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 40, 25, 23), (30, 40, 131)])
@pytest.mark.parametrize("weights", [0, 1, 2])
def test_batch_norm_of_many_channels_is_that_of_each(weights, dtype, shape, threads):
    def norm(x, *weights):
        return gg.nn.batch_norm(x, None, None, *weights, training=True)[0]

    x, g = 3 + normal(*shape).astype(dtype), normal(*shape, seed=1).astype(dtype)
    weights = [normal(40, seed=k).astype(dtype) for k in range(weights)]
    out, grads = gradients(norm, [x, *weights], g)
    for c in range(0, 40, 8):
        some = slice(c, c + 8)
        part, few = gradients(norm, [x[:, some], *(w[some] for w in weights)], g[:, some])
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(out[:, some], part, 0, 50 * eps)
        np.testing.assert_allclose(grads[0][:, some], few[0], 0, 50 * eps)
        for actual, desired in zip(grads[1:], few[1:], strict=True):
            np.testing.assert_allclose(actual[some], desired, 0, 30 * eps * np.sqrt(x[:, 0].size))


def test_batch_norm_of_many_numbers_whose_variance_overflows_has_gradients():
    x, g = 1e20 * normal(6, 40, 25, 23).astype(np.float32), normal(6, 40, 25, 23, seed=1)

    def norm(x):
        return gg.nn.batch_norm(x, training=True)[0]

    with np.errstate(over="ignore"):
        out, (dx,) = gradients(norm, [x], g.astype(np.float32))
    expected, (d,) = gradients(norm, [x.astype(np.float64)], g)
    np.testing.assert_allclose(out, expected, 0, 1e-5)
    np.testing.assert_allclose(dx, d, 0, 1e-5 * np.abs(d).max())


def test_batch_norm_of_many_numbers_gives_the_running_statistics_of_few():
    x, old = 3 + normal(600, 40, 8), [normal(40), np.abs(normal(40))]
    _, *new = gg.nn.batch_norm(x, *old, training=True, momentum=0.3)
    expected = [0.7 * old[0] + 0.3 * x.mean((0, 2)), 0.7 * old[1] + 0.3 * x.var((0, 2), ddof=1)]
    for actual, desired in zip(new, expected, strict=True):
        np.testing.assert_allclose(actual, desired, 1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("mode", ["symmetric", "wrap", "edge"])
def test_the_adjoint_of_padding_adds_each_element_once(axis, mode):
    shape = [50, 60, 70]
    places = np.pad(np.arange(shape[axis]), (2, 3), mode)
    index = (*[slice(None)] * axis, places)
    values = np.random.default_rng(0).normal(size=np.zeros(shape)[index].shape)
    expected = np.zeros(shape)
    np.add.at(expected, index, values)
    result = gg.scatter_at(values, index=index, shape=tuple(shape)).numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    beyond = (*[slice(None)] * axis, np.r_[1 : shape[axis] + 1, 5, 5, 5, 5, 5])
    with pytest.raises(gg.errors.IndexOutOfBoundsError):
        gg.scatter_at(values, index=beyond, shape=tuple(shape))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_casts_to_float16_and_back_have_numpys_bits(threads):
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    every = every[np.isfinite(every)]
    halfway = (every[:-1].astype(np.float32) + every[1:].astype(np.float32)) / 2
    more = [1e-45, -1e-8, 65519.9, 65520, -3e38, np.inf]
    for x in (every, np.concatenate([halfway, normal(3), more, [-np.inf]]).astype(np.float32)):
        dtype = "float32" if x.dtype == np.float16 else "float16"
        out = gg.astype(x, dtype).numpy()
        assert np.array_equal(out.view("u1"), x.astype(dtype).view("u1"))
        assert np.isnan(gg.astype(np.full(LARGE, np.nan, x.dtype), dtype).numpy()).all()


# ---- what small arrays do, too: GPUGRAD_CPU_KERNELS=always tests each op in these ways -----


def test_an_index_that_is_a_number_takes_its_axis_away():
    x, i = gg.constant(normal(4, LARGE)), gg.constant(np.array(2))
    for row in (x[i], gg.take(x, i, axis=0), gg.gather(x, i), gg.nn.embedding(i, x)):
        np.testing.assert_array_equal(row, x.numpy()[2])


INDICES = {
    "apart": ([3, 1, 3], slice(None), [0, 2, 0]),
    "before a slice": ([3, 1, 3], [0, 2, 0], slice(1, 4000)),
    "a new axis": ([3, 1, 3], None, slice(None)),
    "before an ellipsis": ([3, 1, 3], [0, 2, 0], ...),
    "a mask": (np.array([True, False, True, True]), 0),
    "a run": (slice(None), slice(None), np.r_[0:3000, 5, 5]),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_gradients_at_an_index_add_up(index):
    x = normal(4, 3, 4000)
    index = tuple(np.array(p) if isinstance(p, list) else p for p in index)
    _, (slope,) = gradients(lambda x: x[index], [x], (g := normal(*x[index].shape, seed=1)))
    expected = np.zeros_like(x)
    np.add.at(expected, index, g)
    np.testing.assert_allclose(slope, expected, 1e-12, 1e-12)


@pytest.mark.parametrize("row", [(), (3,)])
@pytest.mark.parametrize("how", ["prod", "sum", "max", "min"])
def test_segments_are_reduced_as_numpy_does(how, row):
    rows = np.random.default_rng(0).integers(0, 3000, 10_000)
    values, start = (
        normal(10_000, *row) + 1.2,
        {"prod": 1.0, "sum": 0.0, "max": -np.inf, "min": np.inf},
    )
    ufunc = {"prod": np.multiply, "sum": np.add, "max": np.maximum, "min": np.minimum}[how]
    expected = np.full((3000, *row), start[how])
    ufunc.at(expected, rows, values)
    result = getattr(gg, f"segment_{how}")(gg.constant(values), rows, 3000)
    np.testing.assert_allclose(result, expected, 1e-10)


@pytest.mark.parametrize("axis", [(0, 0), (1, -1), (0, -3), 2, -3, "a", 1.0, True])
@pytest.mark.parametrize("f", [gg.sum, gg.mean, gg.linalg.vector_norm], ids=lambda f: f.__name__)
def test_axes_that_numpy_refuses_are_refused(f, axis):
    errors = []
    for n in (3, 600):
        with pytest.raises((ValueError, TypeError)) as caught:
            f(gg.ones((n, 600), dtype="float32"), axis=axis)
        errors.append(type(caught.value))
    assert errors[0] is errors[1]
    with pytest.raises((ValueError, TypeError)):
        f(gg.ones(LARGE), axis=axis if axis != (1, -1) else 1)


X, Y = normal(300, 40), normal(200, 41)
WRONG = {
    "euclidean_distances": ([X, Y], {}),
    "euclidean_distances_grad": ([np.ones((300, 200)), X, Y, np.ones((300, 200))], {}),
    "pair_sums": ([X, Y], {"term": "squares"}),
    "pair_sums_grad": ([np.ones((300, 7)), X, X], {"term": "squares"}),
    "own_pair_sums_grad": ([np.ones(3), X], {"term": "squares"}),
    "ctc_losses_grad": (
        [np.ones((100, 3, 20)), np.full((3, 90), 55), np.full(3, 100), np.full(3, 90)],
        {},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shapes_and_labels_are_refused(name):
    arrays, params = WRONG[name]
    with pytest.raises((gg.errors.ShapeError, gg.errors.IndexOutOfBoundsError), match=name[:5]):
        OPS[name].eager(*arrays, **params)


@pytest.mark.parametrize("scale", [2.0**-60, 1.0, 2.0**80])
def test_distances_keep_the_digits_of_their_second_derivative(scale):
    a, b, g, h = normal(100, 3), normal(90, 3, seed=1), normal(100, 90), normal(100, 3, seed=2)

    def curvature(dtype, scale):
        x, y = (gg.constant((v * scale).astype(dtype)) for v in (a, b))
        weights = gg.constant(g.astype(dtype))

        def slope(x):
            return gg.grad(lambda x: gg.sum(weights * gg.cdist(x, y)))(x)

        (result,) = gg.vjp(slope, x)[1](gg.constant(h.astype(dtype)))
        return result.numpy().astype(float) * scale

    expected = curvature(float, 1.0)
    np.testing.assert_allclose(curvature(np.float32, scale), expected, 1e-4, 1e-5)


NORMS = {
    "layer_norm": lambda x, w, b: gg.layer_norm(x, w, b),
    "rms_norm": lambda x, w, b: gg.rms_norm(x, w),
    "group_norm": lambda x, w, b: gg.group_norm(x, w, b, num_groups=4),
    "instance_norm": lambda x, w, b: gg.instance_norm(x, w, b),
    "batch_norm": lambda x, w, b: gg.batch_norm(x, w, b, training=True)[0],
}


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
@pytest.mark.parametrize("name", NORMS)
def test_a_large_constant_meets_variables_in_a_trace(name, dtype):
    norm, x = NORMS[name], gg.constant(normal(8, 16, 16, 16).astype(np.float32))
    w, b = (gg.Variable(normal(16, seed=k).astype(np.float32)) for k in (1, 2))

    def slopes():
        with gg.GradientTape() as tape:
            y = gg.sum(norm(x, w, b) ** 2)
        return [g for g in tape.gradient(y, [w, b]) if g is not None]

    with gg.mixed_precision(dtype):
        for a, c in zip(gg.function(slopes)(), slopes(), strict=True):
            np.testing.assert_allclose(a, c, 1e-3, 1e-2)


METRICS = ["cityblock", "sqeuclidean", "canberra", "chebyshev", "minkowski", "euclidean"]


@pytest.mark.parametrize("metric", METRICS)
def test_the_gradient_of_a_sum_of_distances_is_that_of_weights_of_1(metric):
    """The cotangent of a sum is one number, whose strides are 0."""
    x, y = gg.constant(X), gg.constant(X[:200] + 1)
    cdist, ones = gg.scipy.spatial.distance.cdist, gg.constant(np.ones((300, 200)))
    plain = gg.grad(lambda x: gg.sum(cdist(x, y, metric)))(x)
    weighted = gg.grad(lambda x: gg.sum(ones * cdist(x, y, metric)))(x)
    np.testing.assert_allclose(plain, weighted, 1e-10, 1e-10)


def test_a_condensed_distance_has_a_gradient_in_a_trace():
    x = gg.constant(X[:100])
    f = gg.grad(lambda x: gg.sum(gg.scipy.spatial.distance.pdist(x, "cityblock") ** 2))
    np.testing.assert_allclose(gg.function(f)(x), f(x), 1e-10)
