"""C kernels of traced functions: the results of NumPy's replay, up to rounding."""

import math

import numpy as np
import pytest
from comparing import near, same_unless_compiled
from needs import needs_compiler, needs_thresholds
from taping import taped

import gpugrad as gg
from gpugrad.function.cpu import c_program
from gpugrad.function.cpu.c_replay import CReplay
from gpugrad.function.passes.fuse import FusedKernel
from gpugrad.kernels.codegen.c_kernel import RANGE, CKernel
from gpugrad.kernels.cpu import compiler, pool

pytestmark = [needs_compiler, pytest.mark.thin(3)]


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    monkeypatch.setattr(c_program, "setting", lambda: "always")


def replay_of(f):
    """The replay of a function that was called with one signature."""
    (plan,) = f._plans.values()
    return plan.replay


def check(f, *args, tolerance=2e-6, kernels=None):
    """Compare a replay with an eager call; return the replay."""
    traced = gg.function(f)
    with np.errstate(all="ignore"):
        traced(*args)
        pairs = zip(as_list(traced(*args)), as_list(f(*args)), strict=True)
        for a, b in pairs:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            if a.dtype.kind == "f":
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)
            else:
                np.testing.assert_array_equal(a.numpy(), b.numpy())
    replay = replay_of(traced)
    assert isinstance(replay, CReplay)
    if kernels is not None:
        assert sum(isinstance(s, FusedKernel) for s in replay._program.steps) == kernels
    return replay


def as_list(results):
    return results if isinstance(results, (tuple, list)) else [results]


def normal(rng, *shape, dtype=np.float32):
    return gg.constant(rng.normal(size=shape).astype(dtype))


# ---- elements ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 16, 17, 1000, 2 * RANGE + 3])
def test_a_chain_is_one_kernel_for_any_length(n, dtype, rng):
    x, y = normal(rng, n, dtype=dtype), normal(rng, n, dtype=dtype)
    check(lambda x, y: gg.tanh(x * y + 2) / (1 + gg.exp(-x)), x, y, kernels=1)


@pytest.mark.parametrize(
    ("one", "other"),
    [((4, 5), (5,)), ((4, 5), (4, 1)), ((4, 5), ()), ((3, 4, 5), (3, 1, 5)), ((3, 4, 5), (4, 1)),
     ((2, 3, 4, 5), (1, 3, 1, 1)), ((7, 1), (7, 1)), ((7, 1), (1, 6)), ((1, 40), (40,)),
     ((3, 4, 20), (4, 1)), ((500, 3), (3,)), ((500, 3), (500, 1)), ((20, 5, 7), (1, 5, 1))],
)  # fmt: skip
def test_arguments_are_broadcast(one, other, rng):
    x, y = normal(rng, *one), normal(rng, *other)
    check(lambda x, y: gg.exp(x - y) * y, x, y)


@pytest.mark.parametrize("order", ["transposed", "every other", "reversed"])
def test_arrays_in_any_memory_order_are_read(order, rng):
    x = rng.normal(size=(6, 8)).astype(np.float32)
    x = {"transposed": x.T, "every other": x[::2, ::2], "reversed": x[::-1]}[order]
    check(lambda x: gg.tanh(x) + gg.sum(x, axis=0), gg.constant(x))
    check(lambda x: gg.tanh(gg.transpose(gg.exp(x))), gg.constant(x))


def test_comparisons_choices_casts_and_integers(rng):
    x, k = normal(rng, 5, 19), gg.constant(rng.integers(-9, 9, (5, 19)))

    def f(x, k):
        big = gg.logical_and(x > 0, gg.logical_not(k < 3))
        chosen = gg.where(big, x, gg.astype(k, "float32"))
        return (
            chosen, big, gg.astype(big, "int64") + k * 2, gg.maximum(k, 4) // 3, k % 4,
            gg.astype(x * 10, "int32"), gg.astype(x * 10, "int8"), gg.astype(k, "uint8"),
            gg.isnan(x / (k - k)), gg.astype(k, "float64") * 1.5, gg.bitwise_and(k, 5), gg.abs(k),
        )  # fmt: skip

    check(f, x, k)


def test_products_of_integers_stay_numpys():
    a = np.arange(6, dtype="int8").reshape(2, 3)
    f = gg.function(lambda a, b: gg.einsum("ij,kj->ik", a, b))
    assert f(a, a).numpy().tolist() == f(a, a).numpy().tolist() == (a @ a.T).tolist()


def test_special_values_are_kept():
    x = gg.constant(np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3e38], np.float32))
    check(lambda x: (x + 0, x * -1, gg.maximum(x, 0), gg.sign(x), gg.abs(x), gg.sqrt(x)), x)
    y = gg.function(lambda x: -x * 1)
    y(x)
    np.testing.assert_array_equal(np.signbit(y(x).numpy()), ~np.signbit(x.numpy()))


def test_a_value_does_not_depend_on_its_place(rng):
    f = gg.function(lambda x: gg.tanh(gg.exp(gg.sin(x)) - gg.log(x * x)))
    x = rng.normal(size=1000).astype(np.float32)
    f(gg.constant(x)), f(gg.constant(x[:37]))
    whole = f(gg.constant(x)).numpy()
    for start in range(0, 900, 53):
        part = f(gg.constant(x[start : start + 37])).numpy()
        np.testing.assert_array_equal(part, whole[start : start + 37])


# ---- rows --------------------------------------------------------------------------------

SHAPES = [(1, 1), (3, 1), (5, 7), (4, 16), (3, 4, 33), (2, 300), (200, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reductions_along_rows_over_rows_and_of_all(shape, dtype, rng):
    def f(x):
        y = gg.exp(x - gg.max(x, axis=-1, keepdims=True))
        p = y / gg.sum(y, axis=-1, keepdims=True)
        axes = tuple(range(len(shape) - 1))
        return p, gg.mean(p * x, axis=-1), gg.sum(p, axis=axes), gg.sum(x * x), gg.mean(p)

    check(f, normal(rng, *shape, dtype=dtype), tolerance=5e-6)


@pytest.mark.thin(6)
@pytest.mark.parametrize("rows", [37, 3000])
@pytest.mark.parametrize(("columns", "dtype"), [(2, np.float64), (3, np.float32), (4, np.float32)])
def test_short_rows_are_vectors_of_rows(rows, columns, dtype, rng):
    x, y = (normal(rng, rows, columns, dtype=dtype) for _ in range(2))
    row, each = normal(rng, columns, dtype=dtype), normal(rng, rows, 1, dtype=dtype)

    def f(x, y):
        apart = x - y * row
        size = gg.sqrt(gg.sum(apart * apart, axis=-1, keepdims=True))
        peak, least = gg.max(x, axis=1), gg.min(gg.where(y > 0, x, y), axis=1)
        near = gg.sum((x[:20, None] - y[None, :30]) ** 2, axis=-1)
        return apart / size * each, size, gg.astype(apart > peak[:, None], "int32"), least, near

    assert "store_apart" in check(f, x, y)._compiled.source


def test_sums_over_axes_but_the_last_are_in_a_loop_in_c(monkeypatch, rng):
    x, calls = normal(rng, 4, 5, 3), []
    monkeypatch.setattr(c_program, "_can_be_left", lambda step: calls.append(step.name))

    def step(state, k):
        parts = [gg.mean(x * state, axis=a, keepdims=True) for a in (0, 1, (0, 1))]
        parts += [gg.sum(x - state, axis=a) for a in (0, 1, (0, 1))]
        return gg.tanh(sum(gg.mean(p) for p in parts)) + k, parts

    def f(x):
        return gg.scan(step, gg.ones((), "float32"), gg.arange(20, dtype="float32"))[1]

    for a, b in zip(gg.function(f)(x), f(x), strict=True):
        near(a, b.numpy(), 1e-5)
    assert not calls


def test_maxima_of_nan_and_infinity():
    rows = [[1, np.nan, 2], [np.inf, 1, np.nan], [-np.inf] * 3, [3, 2, np.inf]]
    x = gg.constant(np.array(rows, np.float32))
    check(lambda x: (gg.max(x * 1, axis=-1), gg.min(x * 1, axis=-1)), x)


@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "masked_softmax", "standardize", "rms_standardize"]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_and_norms_are_kernels(name, shape, rng):
    replay = check(lambda x: getattr(gg, name)(x * 3), normal(rng, *shape), kernels=1)
    assert name not in {s.name for s in replay._program.steps}


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_masked_softmax_of_rows_without_a_score_is_0(is_causal, rng):
    mask = gg.constant(rng.random((4, 6)) > 0.7)
    check(lambda x: gg.masked_softmax(x, mask, is_causal=is_causal), normal(rng, 2, 4, 6))


@pytest.mark.parametrize("eps", [0.0, 1e-5])
@pytest.mark.parametrize("scale", [1e-30, 1, 1e30])
def test_standardize_of_values_whose_squares_overflow_or_vanish(eps, scale, rng):
    x = gg.constant((rng.normal(size=(5, 9)) * scale).astype(np.float32))
    check(lambda x: gg.standardize(x, eps=eps)[0], x, tolerance=1e-5)
    check(lambda x: gg.standardize(x, (0,), eps=eps)[0], x, tolerance=1e-5)
    check(lambda x: gg.rms_standardize(x, eps=eps), x, tolerance=1e-5)
    images = x * gg.ones((2, 3, 1, 1))
    check(lambda x: gg.standardize(x, (0, 2, 3), eps=eps)[0], images, tolerance=1e-5)


def loss_and_gradients(f, scores, *others):
    with gg.GradientTape() as tape:
        tape.watch([scores, *others])
        loss = gg.sum(f(scores * 2, *others) * 1.5)
    return loss, *tape.gradient(loss, [scores, *others])


def left_in_python(replay):
    compiled = replay._compiled
    return [
        s.name for s in replay._program.steps
        if s.op is not None and not s.op.view
        and not any(id(s) in of for of in (compiled.kernels, compiled.products, compiled.copies))
    ]  # fmt: skip


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("ignored", [None, 1, -5])
@pytest.mark.parametrize("shape", [(7,), (5, 3), (2, 3, 40)])
def test_cross_entropy_with_classes_and_its_gradient_are_kernels(shape, ignored, smoothing, rng):
    labels = rng.integers(0, shape[-1], shape[:-1])
    labels = np.where(
        rng.random(labels.shape) < 0.3, labels if ignored is None else ignored, labels
    )
    how = {"ignore_index": ignored, "label_smoothing": smoothing}

    def f(x, labels):
        return loss_and_gradients(lambda x: gg.sparse_softmax_cross_entropy(x, labels, **how), x)

    replay = check(f, normal(rng, *shape), gg.constant(labels), tolerance=1e-5)
    assert not any("cross_entropy" in name for name in left_in_python(replay))


def test_cross_entropy_with_probabilities_and_its_gradients_are_kernels(rng):
    def f(x, y):
        return loss_and_gradients(gg.softmax_cross_entropy, x, y)

    replay = check(f, normal(rng, 6, 9), gg.softmax(normal(rng, 6, 9)), tolerance=1e-5)
    assert not any("cross_entropy" in name for name in left_in_python(replay))


def test_cross_entropy_of_scores_that_are_minus_infinity():
    x = gg.constant(np.array([[0.0, -np.inf, 1.0], [-np.inf, 2.0, -np.inf]], np.float32))
    y = gg.constant(np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], np.float32))
    labels = gg.constant(np.array([2, 1]))
    check(lambda x, y: gg.softmax_cross_entropy(x, y), x, y)
    check(lambda x: gg.sparse_softmax_cross_entropy(x, labels), x)
    check(lambda x: gg.sparse_softmax_cross_entropy(x, labels, label_smoothing=0.1), x)


def test_a_label_that_is_no_class_raises_in_a_replay(rng):
    f = gg.function(lambda x, y: loss_and_gradients(
        lambda x: gg.sparse_softmax_cross_entropy(x, y, ignore_index=-1), x
    ))  # fmt: skip
    x, right = normal(rng, 3, 4), gg.constant(np.array([0, -1, 3]))
    first = f(x, right)
    with pytest.raises(gg.errors.IndexOutOfBoundsError, match="0 to 4, the 4 classes"):
        f(x, gg.constant(np.array([0, 4, 1])))
    np.testing.assert_array_equal(f(x, right)[1], first[1])


# ---- batch norms -------------------------------------------------------------------------


def large(replay, elements):
    """The kernels that go over so many elements."""
    kernels = [s for s in replay._program.steps if isinstance(s, FusedKernel)]
    return [k for k in kernels if math.prod(k.shape) == elements]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(4, 6, 5, 7), (3, 5, 8), (2, 4, 3, 3, 4), (1, 4, 6, 6), (5, 3, 1, 1)]
)
def test_batch_norm_of_images_is_two_kernels_in_each_direction(shape, dtype, rng):
    x, r, g = (normal(rng, *shape, dtype=dtype) for _ in range(3))
    weight, bias = (normal(rng, shape[1], dtype=dtype) for _ in range(2))

    def forward(x, weight, bias):
        y, mean, var = gg.batch_norm(x * 3, None, None, weight, bias, training=True)
        return gg.relu(y + r), mean, var

    def backward(x, weight, bias):
        tape, (y, *_) = taped(forward, x, weight, bias)
        return tape.gradient(y, [x, weight, bias], g)

    for f, kernels in ((forward, 2), (backward, 4)):
        replay = check(f, x, weight, bias, tolerance=1e-4 if dtype == np.float32 else 1e-11)
        assert len(large(replay, math.prod(shape))) <= kernels or shape[-1] == 1, replay._program


@pytest.mark.parametrize("far", [1e4, -3e4])
def test_batch_norm_of_images_far_from_zero_loses_no_precision(far, rng):
    """Bounds hold for any numbers: float32 adds a row of 99 in 4 lanes or more, then 8 means.

    The mean of a row is off by at most 8 ulp, that of all by 3 more. Both enter the variance
    squared; a formula of squares of x would be off by far**2 ulp, 12 or more.
    """
    x = normal(rng, 8, 3, 9, 11) + far
    traced = gg.function(lambda x: gg.batch_norm(x, None, None, training=True)[1:])
    traced(x)
    mean, var = traced(x)
    wide = x.numpy().astype(np.float64)
    spread = np.ptp(wide.mean((2, 3)))
    of_row, of_all = (ulp * 2.0**-23 * abs(far) for ulp in (8, 11))
    np.testing.assert_allclose(mean, wide.mean((0, 2, 3)), atol=of_all)
    off = of_row + of_all
    bound = of_row**2 + off**2 + 2 * off * spread + 1e-5
    np.testing.assert_allclose(var, wide.var((0, 2, 3), ddof=1), atol=bound)


def test_costly_values_are_computed_once(rng):
    replay = check(lambda x: gg.softmax(x), normal(rng, 8, 40))
    (kernel,) = replay._compiled.kernels.values()
    assert kernel.text.count("exp(") == 1


# ---- threads -----------------------------------------------------------------------------


def test_results_do_not_depend_on_the_number_of_threads(rng):
    x, y = normal(rng, 700, 200), normal(rng, 200)

    def f(x):
        z = gg.softmax(x * y)
        return z, gg.sum(z, axis=0), gg.sum(x * x), gg.tanh(x) + 1

    f = gg.function(f)
    f(x)
    results, before = [], pool.threads()
    try:
        for n in (1, 2, 5):
            pool.set_threads(n)
            results.append([a.numpy() for a in f(x)])
    finally:
        pool.set_threads(before)
    assert max(k.n // k.grain for k in replay_of(f)._compiled.kernels.values()) > 1
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


# ---- programs ----------------------------------------------------------------------------


def test_training_is_as_with_numpy(rng, monkeypatch):
    x, y = normal(rng, 32, 20), normal(rng, 32, 5)

    def losses():
        gg.set_seed(0)
        model = gg.nn.Sequential(
            gg.nn.Dense(20, 40), gg.nn.LayerNorm(40), gg.nn.gelu, gg.nn.Dense(40, 5)
        )
        optimizer = gg.optim.Adam(0.01)
        weights = model.trainable_variables

        @gg.function
        def step(x, y):
            return optimizer.minimize(lambda: gg.mean((model(x) - y) ** 2), weights)

        return [step(x, y).item() for _ in range(8)], replay_of(step)

    ours, replay = losses()
    assert isinstance(replay, CReplay)
    monkeypatch.setattr(c_program, "setting", lambda: "0")
    plain, replay = losses()
    assert not isinstance(replay, CReplay)
    near(ours, plain, 1e-5)


def test_results_and_arguments_of_earlier_calls_never_change(rng):
    f = gg.function(lambda x: (gg.exp(x), gg.sum(gg.exp(x) * 2, axis=0), x * 2))
    x = normal(rng, 40, 30)
    f(x)
    before = x.numpy()
    first = f(x)
    copies = [a.numpy() for a in first]
    f(x + 1)
    for a, b in zip(first, copies, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)
    np.testing.assert_array_equal(x.numpy(), before)


def test_a_kernel_overwrites_what_it_reads_last_only_in_order(rng):
    def f(x, y):
        a = gg.exp(x @ y)
        b = a * gg.sum(a, axis=0)  # reads all rows of the sum of `a`
        return gg.transpose(b) @ b, gg.sum(gg.tanh(b) * b, axis=-1)

    check(f, normal(rng, 6, 6), normal(rng, 6, 6), tolerance=1e-4)


def test_neighbouring_kernels_are_one_call(rng):
    def f(x):
        y = gg.tanh(x)
        z = gg.reshape(gg.sum(y, axis=0, keepdims=True) + 1, (4, 5))
        return gg.sum(gg.exp(z), axis=-1)

    replay = check(f, normal(rng, 9, 20))
    assert len(replay._compiled.kernels) > 1
    assert len(replay._runs) == 1


def test_equal_kernels_are_compiled_once(rng):
    def f(x, w):
        for _ in range(4):
            x = gg.tanh(x @ w)
        return x

    replay = check(f, normal(rng, 8, 8), normal(rng, 8, 8))
    assert len(replay._compiled.kernels) == 4
    assert replay._compiled.source.count("tanh(") == 1


def test_a_step_that_cannot_be_written_stays_with_numpy(rng):
    x = gg.constant(rng.uniform(-0.9, 0.9, (5, 6)).astype(np.float32))

    def f(x):
        y = gg.special.erfcinv(1 - gg.tanh(x) * 0.5)
        return gg.exp(y) * 2, gg.sum(y * x, axis=-1), gg.tanh(x @ gg.transpose(x))

    replay = check(f, x, kernels=3)
    assert replay._compiled.refused == {"erfcinv": "C kernels have no erfcinv"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_other_dtypes_stay_with_numpy(dtype, rng):
    x = gg.astype(normal(rng, 8), dtype)
    f = gg.function(lambda x: gg.exp(x) * 2 + x)
    f(x)
    assert not isinstance(replay_of(f), CReplay)


# ---- runs of steps -----------------------------------------------------------------------


def test_a_recurrent_loop_is_one_call(rng):
    w, xs = normal(rng, 12, 32), normal(rng, 5, 3, 4)

    def f(w, xs):
        h = c = gg.zeros((3, 8))
        for x in gg.unstack(xs):
            z = gg.concat([x, h], axis=1) @ w
            i, f, g, o = gg.split(z, 4, axis=1)
            c = gg.sigmoid(f) * c + gg.sigmoid(i) * gg.tanh(g)
            h = gg.sigmoid(o) * gg.tanh(c)
        return h

    replay = check(f, w, xs)
    assert len(replay._runs) == 1
    assert "concat" not in replay.source


@pytest.mark.parametrize(
    "view",
    [lambda y: y[:, 2:5], lambda y: y[1:3], lambda y: y[::2], lambda y: y[:, ::2],
     lambda y: y[::-1], lambda y: gg.transpose(y), lambda y: gg.reshape(y, (8, 3)),
     lambda y: gg.reshape(gg.transpose(y), (3, 8)), lambda y: y[2], lambda y: y[1, 3],
     lambda y: gg.expand_dims(y[:, 1], axis=-1), lambda y: gg.broadcast_to(y[:, :1], (4, 6)),
     lambda y: gg.permute_dims(gg.reshape(y, (4, 2, 3)), (1, 0, 2))],
)  # fmt: skip
def test_views_between_kernels_are_read_where_they_are(view, rng):
    def f(x):
        y = gg.tanh(x)
        z = gg.exp(view(y)) * 2
        return z, gg.sum(z * z), view(y) + 1, y @ gg.transpose(y)

    check(f, normal(rng, 4, 6))
    check(lambda x: (view(gg.tanh(x)), gg.sum(gg.exp(x))), normal(rng, 4, 6))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "bool", "complex64"])
def test_joined_arrays_are_copied(dtype, rng):
    x, y = (gg.astype(normal(rng, 3, 4) * 3, dtype) for _ in range(2))

    def f(x, y, z):
        joined = gg.concat([x, y, x], axis=1)
        stacked = gg.stack([gg.transpose(x), gg.transpose(y)], axis=1)
        z = gg.tanh(z)
        return gg.where(joined != y[:1, :1], 1, 0), stacked != x[0, 0], joined, gg.exp(z)

    check(f, x, y, normal(rng, 5))


def test_large_joins_are_copied_by_several_threads(rng):
    x = normal(rng, 300, 400)
    check(lambda x: gg.tanh(gg.concat([x, x + 1, gg.transpose(x[:, :300])], axis=1)), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((16, 16), (1, 0)), ((7, 40), (1, 0)), ((40, 7), (1, 0)), ((300, 257), (1, 0)),
        ((5, 33, 17), (0, 2, 1)), ((40, 3, 90), (2, 1, 0)), ((40, 3, 400), (1, 2, 0)),
    ],
)  # fmt: skip
def test_permuted_copies_move_every_element(shape, axes, dtype, rng):
    x = gg.astype(normal(rng, *shape) * 1000, dtype)

    def f(x, permuted, y):
        stacked = gg.stack([gg.permute_dims(x, axes), gg.permute_dims(x, axes)])
        return stacked == permuted, gg.tanh(y)

    permuted = gg.constant(np.ascontiguousarray(x.numpy().transpose(axes)))
    replay = check(f, x, permuted, normal(rng, 5))
    assert "stack" not in replay.source


def test_a_kernel_that_reads_a_transposed_result_stays_in_the_run(rng):
    def f(x, y):
        p = x @ y
        return gg.sum(gg.tanh(p) + gg.exp(gg.transpose(p)) * gg.transpose(gg.sin(p))), p @ p

    replay = check(f, normal(rng, 8, 5), normal(rng, 5, 8), tolerance=1e-5)
    assert len(replay._runs) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3,), (2500,), (3, 40)])
def test_a_gradient_that_is_nan_is_detected_between_the_steps_of_one_call(shape, dtype, rng):
    calls = []

    def f(x, y):
        calls.append(x)
        with gg.GradientTape() as tape:
            tape.watch((x, y))
            z = gg.tanh(gg.sum(gg.where(x > 0, x * gg.log(x), 0)) * gg.sum(y))
        of_x, of_y = tape.gradient(z, [x, y])
        return gg.exp(-of_x), gg.exp(-of_y)

    traced, y = gg.function(f), normal(rng, *shape, dtype=dtype)
    x = gg.abs(normal(rng, *shape, dtype=dtype)) + 0.1
    for i, k in enumerate((0, x.size - 1, x.size // 2)):
        array = x.numpy()
        array.flat[k] = 0
        for a in (x, gg.constant(array), x):
            n = len(calls)
            with np.errstate(all="ignore"):
                results = traced(a, y)
                # the third replay with a NaN is one of a program with masks, traced for the second
                assert len(calls) == n + ((a is not x and i < 2) or n == 0)
                for result, expected in zip(results, f(a, y), strict=True):
                    near(result, expected, 1e-5)
        assert len(replay_of(traced)._runs) == 1


def test_products_that_are_left_to_numpy_run_between_the_others(rng):
    def f(x):
        y = gg.tanh(x)
        square = gg.transpose(y) @ y  # NumPy computes half of it
        strided = gg.tanh(x)[:, ::2] @ y[:4]
        return gg.exp(square), gg.tanh(strided @ y[:8] * 0.1), gg.sum(square)

    check(f, normal(rng, 16, 8), tolerance=1e-5)


def test_stacks_of_matrices_are_multiplied_in_the_run(rng):
    def f(x, y):
        heads = gg.permute_dims(gg.reshape(gg.tanh(x), (2, 5, 3, 4)), (0, 2, 1, 3))
        p = gg.softmax(heads @ gg.matrix_transpose(heads))
        return gg.reshape(gg.permute_dims(p @ heads, (0, 2, 1, 3)), x.shape) @ y

    replay = check(f, normal(rng, 2, 5, 12), normal(rng, 12, 6), tolerance=1e-5)
    assert len(replay._runs) == 1


def test_effects_and_ops_of_numpy_stand_between_runs(rng):
    generator = gg.random.Generator(0)
    v = gg.Variable(np.ones((4, 4), np.float32))

    def f(x):
        y = gg.tanh(x @ v)
        noise = generator.uniform(y.shape)
        z = gg.sort(y + noise, axis=-1)
        v.assign(gg.exp(z) * 0.1)
        return gg.sum(v), gg.linalg.slogdet(y)[1] * 2

    traced = gg.function(f)
    x, state, start = normal(rng, 4, 4), generator.state, v.numpy()
    results = [[a.item() for a in traced(x)] for _ in range(4)]
    generator.state = state
    v.assign(start)
    near(results, [[a.item() for a in f(x)] for _ in range(4)], 1e-5)


# ---- when they are compiled --------------------------------------------------------------


@pytest.mark.parametrize(("n", "compiled"), [(100, False), (c_program.WORTH // 2, True)])
@needs_thresholds
def test_only_programs_that_compute_enough_are_compiled(n, compiled, monkeypatch):
    monkeypatch.setattr(c_program, "setting", lambda: "1")
    f = gg.function(lambda x: gg.tanh(x) * 2)
    f(gg.ones(n))
    assert isinstance(replay_of(f), CReplay) == compiled


def test_without_a_compiler_numpy_computes(monkeypatch, rng):
    monkeypatch.setattr(c_program.compiler, "load", lambda *args, **keywords: None)
    f = gg.function(lambda x: gg.tanh(x) * 2)
    x = normal(rng, 7, 11)
    f(x)
    same_unless_compiled(f(x), gg.tanh(x) * 2, 1e-6)
    assert not isinstance(replay_of(f), CReplay)


def test_a_memory_limit_is_searched_without_compiling(monkeypatch, rng):
    loaded = []
    load = compiler.load
    monkeypatch.setattr(
        c_program.compiler, "load", lambda text, **k: loaded.append(1) or load(text, **k)
    )

    def f(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(5):
                y = gg.tanh(y @ x)
            loss = gg.sum(y)
        return tape.gradient(loss, x)

    x = normal(rng, 32, 32)
    g = gg.function(f, remat="auto", memory_limit=int(gg.function(f).memory(x).peak * 0.9))
    loaded.clear()
    g(x)
    assert len(loaded) <= 3  # the program, and at most the pool and the products


def test_the_kernel_of_a_chain_is_readable(rng):
    replay = check(lambda x, y: gg.tanh(x * y), normal(rng, 1000), normal(rng, 1000))
    ((kernel),) = replay._compiled.kernels.values()
    assert isinstance(kernel, CKernel)
    assert kernel.text.strip() == TEXT
    assert math.ceil(kernel.n / kernel.grain) == 1


TEXT = """
extern "C" void NAME(char** p, long from, long to, char* part) {
constexpr int N = LANES<4>;
const float* p0 = (const float*)p[0];
const float* p1 = (const float*)p[1];
float* o0 = (float*)p[2];
each_block<N, -1>(from, to, [&](long j, auto n) __attribute__((always_inline)) {
const V<float, N> x0 = load<N>(p0 + j, n);
const V<float, N> x1 = load<N>(p1 + j, n);
const V<float, N> v0 = x0;
const V<float, N> v1 = x1;
const V<float, N> v2 = v0 * v1;
const V<float, N> v3 = tanh(v2);
store(o0 + j, v3, n);
});
}
""".strip()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_to_and_of_16_bit_floats_are_left_to_numpy(dtype, rng):
    def f(x):
        y = x * 2
        narrow = gg.sum(y, dtype=dtype), gg.sum(x > 0, axis=0, dtype=dtype)
        return *narrow, gg.sum(gg.astype(y, dtype), dtype="float32"), gg.exp(x)

    x = normal(rng, 4, 5)
    replay = check(f, x, kernels=None)  # a text that does not compile would warn
    assert replay._compiled.kernels


@pytest.mark.parametrize(
    ("read", "columns"),
    [
        (lambda y: y[:, 2:5], 3),
        (lambda y: y[..., -4:], 4),
        (lambda y: y[1:, 2:5], 6),
        (lambda y: y[:, ::2], 6),
        (lambda y: y[:, 1], 6),
        (lambda y: y[:, 2:5] + y[:, :3], 6),
    ],
)
def test_a_product_computes_the_columns_that_are_read(read, columns, rng):
    x, w = normal(rng, 3, 4), normal(rng, 4, 6)
    replay = check(lambda x, w: gg.tanh(read(x @ w)), x, w)
    (product,) = (s for s in replay._program.steps if s.name == "matmul")
    assert product.outs[0].shape == (3, columns)


ARGUMENTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "strided": lambda x: x[::2, ::-1],
    "broadcast": lambda x: gg.broadcast_to(x[0], x.shape),
}


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_kernels_read_views_of_arguments_where_they_are(argument, rng):
    x = ARGUMENTS[argument](normal(rng, 12, 12))
    w, places = gg.Variable(normal(rng, 12, 12)), gg.constant([2, 0, 1])
    n = x.shape[0]

    def shifted(x):
        return gg.tanh(x[1:, 2:] * x[:-1, 2:] + x[1:, :-2]) + w[1:n, 2:] - w[: n - 1, 1:-1]

    replay = check(shifted, x)
    assert len(replay._runs[0].arrays) == 3  # the argument, the Variable and the result

    def others(x):
        y = gg.reshape(gg.exp(x[1:5] * 0.1), (2, -1)) @ gg.reshape(x[:4].T, (24, 2))
        z = gg.take(x[1:], places, axis=0) + gg.sort(x[1:4], axis=1) * gg.reshape(x, (12, -1))[0, 0]
        return y, z, gg.tanh(x[::2].T[:, ::-1]) + 1, gg.exp(gg.reshape(x, (-1,))) * 2, x[1:]

    check(others, x)
    assert np.array_equal(gg.function(others)(x)[4].numpy(), x[1:].numpy())


@pytest.mark.parametrize("large", [False, True])
@needs_thresholds
def test_a_large_array_keeps_the_kernel_that_its_op_has_on_the_cpu(large, rng):
    n, m = (64, 96) if large else (4, 3)

    def normalized(a):
        return gg.sum(gg.linalg.cholesky(a @ a.T + n * gg.eye(n, dtype="float64")) ** 3)

    def far(x):
        return gg.sum(gg.nn.cdist(x, x[::-1] + 3) ** 2)

    def differing(x):
        return gg.sum(gg.OPS["pair_sums"].eager(x, x[::-1] + 3, term="canberra") ** 2)

    def own(x):
        return gg.sum(gg.OPS["own_pair_sums"].eager(x, term="canberra") ** 2)

    def sampled(places):
        return gg.sum(gg.OPS["bilinear_sample"].eager(image, places) ** 2)

    image = normal(rng, 1, m, m, m, dtype=np.float64)
    shapes = rng.uniform(0.5, 3.0, (m, m))  # of incomplete functions
    cases = {
        "gammainc_grad_a": (lambda a: gg.sum(gg.special.gammainc(a, 2.0)), shapes),
        "betainc_grad_a": (lambda a: gg.sum(gg.special.betainc(a, 1.5, 0.4)), shapes),
        "betainc_grad_b": (lambda b: gg.sum(gg.special.betainc(1.5, b, 0.4)), shapes),
        "cholesky_grad": (normalized, normal(rng, n, n, dtype=np.float64)),
        "euclidean_distances_grad": (far, normal(rng, m, 16, dtype=np.float64)),
        "pair_sums_grad": (differing, normal(rng, m, 16, dtype=np.float64)),
        "own_pair_sums_grad": (own, normal(rng, 4 * m, 16, dtype=np.float64)),
        "bilinear_sample_grads": (sampled, normal(rng, 1, m * m, 2, dtype=np.float64)),
    }
    alone = [op for op in gg.OPS.values() if op.is_opened and op.cpu not in (None, True)]
    assert {op.name for op in alone if op.cuda is None} == {*cases}
    for name, (f, x) in cases.items():
        gradient = gg.function(gg.grad(f), passes=())
        assert (name in str(gradient.lower(x))) == large
        np.testing.assert_allclose(gradient(x).numpy(), gg.grad(f)(x).numpy(), 1e-7, 1e-7)
    f, x = cases["cholesky_grad"]
    second = gg.grad(lambda x: gg.sum(gg.grad(f)(x) ** 2))
    desired = second(x).numpy()
    np.testing.assert_allclose(gg.function(second, passes=())(x).numpy(), desired, 1e-7, 1e-7)


def test_a_batch_of_another_length_has_the_kernels_of_the_one_before(rng):
    w, v, scale = normal(rng, 24, 40), normal(rng, 40, 10), normal(rng, 40)

    def eager(x, labels):
        y = gg.nn.layer_norm(gg.tanh(x @ w), scale, eps=1e-5) @ v
        return gg.nn.cross_entropy(y, labels)

    @gg.function
    def step(x, labels):
        slope = gg.grad(lambda x: gg.mean(x**2))(x)
        return eager(x, labels), gg.mean(gg.exp(x)), gg.sum(x * 2, axis=1), gg.tanh(slope)

    for n in (16, 33, 48, 700):
        x, labels = normal(rng, n, 24), gg.constant(rng.integers(0, 10, n))
        results, x64 = step(x, labels), x.numpy().astype(np.float64)
        values = eager(x, labels), np.exp(x64).mean(), 2 * x64.sum(1), np.tanh(2 * x64 / x64.size)
        for result, value in zip(results, values, strict=True):
            near(result, value, 1e-5)
    texts = {plan.replay._compiled.source for plan in step._plans.values()}
    assert len(texts) == 1


def test_operators_on_single_floats_are_c_without_vectors_and_have_numpys_bits(rng):
    def f(x):
        y = x[0] * x[1] - x[2] / x[3]
        return gg.where(y > 0, -y, x[4] + 1) * y, gg.maximum(y, x[5])

    x = gg.constant(rng.standard_normal(6).astype(np.float32))
    replay = check(f, x, tolerance=0.0)
    assert "V<" not in replay._compiled.source
    assert "V<" in check(lambda x: gg.exp(x[0] * x[1]), x)._compiled.source


EMPTY = [np.ones((0,)), np.broadcast_to(1.0, (0,)), np.ones((8, 9))[:0, ::2], np.ones((2, 0, 3)).T]


@pytest.mark.parametrize("x", EMPTY, ids=lambda x: f"{x.shape} {x.strides}")
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_arrays_without_elements_are_summed_in_programs_with_kernels(x, axis):
    def f(x, y):
        return gg.sum(gg.sin(x) * 2 + x, axis=axis), gg.sum(gg.tanh(y) * gg.exp(y), axis=0)

    def slopes(x, y):
        return gg.grad(lambda x: gg.sum(f(x, y)[0] ** 2))(x), f(x, y)

    x, y = gg.constant(x), gg.constant(np.ones((3, 5)))
    g, (a, b) = gg.function(slopes)(x, y)
    wanted, (c, d) = slopes(x, y)
    near(a, c)
    near(b, d)
    near(g, wanted)


def written(x, value):
    x = x * 1
    x[x > 0.1] = value
    return x


@pytest.mark.parametrize(
    "f",
    [lambda x: x[x > 0.1] * 2, lambda x: x[x > 1] * 2, lambda x: written(x, 3.0)],
    ids=["selected", "nothing", "written"],
)
def test_a_mask_of_a_number_selects_it_in_programs_with_kernels(f):
    def g(x, y):
        return f(x), gg.sum(gg.tanh(y) * gg.exp(y), axis=0)

    x, y = gg.constant(0.5), gg.constant(np.ones((3, 5)))
    for a, b in zip(gg.function(g)(x, y), g(x, y), strict=True):
        near(a, b)
