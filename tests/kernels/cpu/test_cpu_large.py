"""C kernels of eager ops on large arrays: they compute what NumPy computes of parts."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core.backend import NUMPY, OPS
from gpugrad.kernels.cpu import compiler, elementwise, pairs, sums, top_k
from gpugrad.kernels.cpu.large import LARGE

pytestmark = pytest.mark.skipif(
    compiler.status().startswith("C kernels: none"), reason="needs a C++ compiler"
)

DTYPES = [np.float32, np.float64]


def gradients(function, arrays, g):
    """A result, and its gradients by the arrays."""
    arrays = [gg.asarray(a) for a in arrays]
    with gg.GradientTape() as tape:
        tape.watch(arrays)
        out = function(*arrays)
    grads = tape.gradient(out, arrays, gg.asarray(g))
    return out.numpy(), [d.numpy() for d in grads]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


WIDE = normal(1200, 131)  # no whole number of vectors
LABELS = np.random.default_rng(1).integers(0, 131, 1200)
LABELS[::7] = -100
ROWS = {
    "softmax": (gg.softmax, WIDE, []),
    "log_softmax": (gg.log_softmax, WIDE, []),
    "layer_norm": (gg.layer_norm, WIDE, [normal(131), normal(131)]),
    "layer_norm without bias": (gg.layer_norm, WIDE, [normal(131)]),
    "layer_norm without weight": (gg.layer_norm, WIDE, []),
    "cumsum": (lambda x: gg.cumsum(x, axis=1), WIDE, []),
    "top_k": (lambda x: gg.top_k(x, 5)[0], WIDE, []),
    "cdist": (gg.cdist, normal(1200, 40), [normal(110, 40)]),
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


def test_rows_of_infinities_and_nan_are_numpys():
    x = WIDE.astype(np.float32)
    x[0], x[1, 5], x[2, 3], x[3, 130] = -np.inf, np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        for function in (gg.softmax, gg.log_softmax):
            whole, part = function(x).numpy(), function(x[:4]).numpy()
            np.testing.assert_allclose(whole[:4], part, 1e-5)


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


@pytest.mark.parametrize("n", [LARGE, LARGE + 1, 3 * LARGE - 7])
def test_a_total_is_close_to_the_exact_one(n, threads):
    x = normal(n).astype(np.float32)
    total = sums.reduced(x, None, keepdims=False)
    assert (total.shape, total.dtype) == ((), np.float32)
    exact = x.astype(np.float64).sum()
    assert abs(total - exact) <= 1e-6 * np.abs(x).sum()
    assert sums.reduced(x[::2], None, keepdims=False) is NotImplemented


def test_top_k_keeps_the_order_of_equal_elements():
    x = np.random.default_rng(0).integers(0, 4, (1000, 200)).astype(np.float32)
    values, indices = top_k.top_k(x, 9)
    order = np.argsort(-x, axis=1, kind="stable")[:, :9]
    assert np.array_equal(indices, order)
    assert np.array_equal(values, np.take_along_axis(x, order, 1))
    x[3, 4] = np.nan
    assert top_k.top_k(x, 9) is NotImplemented


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


# ---- formulas of elements ---------------------------------------------------------------

IN_C = [name for name, op in sorted(OPS.items()) if op.cpu is True]


@pytest.mark.parametrize("name", IN_C)
def test_loops_and_their_gradients_can_be_written(name):
    op = OPS[name]
    for dtype in map(np.dtype, DTYPES):
        formula = elementwise.forward_of(op).formula
        assert "gpugrad_kernel" in elementwise.text(formula, dtype, len(op.arrays), op.params)
        for rule in op.rules:
            formula = elementwise.rule_of(op, rule).formula
            assert "gpugrad_kernel" in elementwise.text(
                formula, dtype, 1 + len(op.saves), op.params
            )


def test_numbers_that_may_change_from_call_to_call_compile_nothing(monkeypatch):
    loops = elementwise.forward_of(OPS["softplus"])
    x = normal(64).astype(np.float32)
    assert loops((x,), {"beta": 1.0}) is not NotImplemented
    monkeypatch.delattr(elementwise, "compiler")
    assert loops((x,), {"beta": 1.5}) is NotImplemented
    assert loops((x, x[:32]), {"beta": 1.0}) is NotImplemented
    assert loops((x.astype(np.float16),), {"beta": 1.0}) is NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 7, 16, 129])
def test_an_element_of_a_loop_does_not_depend_on_its_place(n, dtype):
    loops = elementwise.forward_of(OPS["gelu"])
    x = normal(300).astype(dtype)
    params = {"approximate": "none"}
    assert np.array_equal(loops((x[:n],), params), loops((x,), params)[:n])
    assert np.array_equal(loops((x[::2],), params), loops((x,), params)[::2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_grid_sample_of_many_places_is_that_of_few(dtype, padding_mode, threads):
    x = normal(2, 30, 12, 9).astype(dtype)
    grid = np.random.default_rng(1).uniform(-1.4, 1.4, (2, 60, 20, 2)).astype(dtype)

    def sample(x, grid):
        return gg.nn.grid_sample(x, grid, padding_mode=padding_mode)

    g = normal(2, 30, 60, 20, seed=2).astype(dtype)
    out, (dx, d_grid) = gradients(sample, [x, grid], g)
    total, eps = np.zeros_like(x), np.finfo(dtype).eps
    for k in range(0, 60, 10):
        part, (dxk, d_part) = gradients(sample, [x, grid[:, k : k + 10]], g[:, :, k : k + 10])
        np.testing.assert_allclose(out[:, :, k : k + 10], part, 0, 30 * eps)
        np.testing.assert_allclose(d_grid[:, k : k + 10], d_part, 0, 2000 * eps)
        total += dxk
    np.testing.assert_allclose(dx, total, 0, 200 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 40, 25, 23), (30, 40, 131)])
def test_batch_norm_of_many_channels_is_that_of_each(dtype, shape, threads):
    def norm(x):
        return gg.nn.batch_norm(x, training=True)[0]

    x, g = 3 + normal(*shape).astype(dtype), normal(*shape, seed=1).astype(dtype)
    out, (dx,) = gradients(norm, [x], g)
    for c in range(0, 40, 8):
        some = slice(c, c + 8)
        part, (d,) = gradients(norm, [x[:, some]], g[:, some])
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(out[:, some], part, 0, 50 * eps)
        np.testing.assert_allclose(dx[:, some], d, 0, 50 * eps)
