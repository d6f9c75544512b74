"""Kernels over rows of any length, run on the CPU by the shim: softmax, cross entropy, norms."""

import numpy as np
import pytest
from comparing import DTYPES, by_kernel, compare, near_largest
from needs import each_architecture, needs_nvrtc, needs_shim

import gpugrad as gg
from gpugrad.core.backend import NUMPY
from gpugrad.kernels.by_hand import cross_entropy, norms, rows, softmax
from gpugrad.kernels.runtime.launch import full_source
from gpugrad.testing.cuda import nvrtc, shim

pytestmark = needs_shim

LENGTHS = [1, 7, 32, 129, 1000, 4099]
"""Less than a pack, partial packs, a warp, a block, and rows that begin unaligned."""


def drawn(rng, dtype, *shape, scale=3.0):
    return (rng.normal(size=shape) * scale).astype(DTYPES[dtype][0])


def losing(rng, dtype, n, lines=3):
    """Gradients of the losses, scores, and labels, one of which is ignored."""
    labels = rng.integers(0, n, lines)
    labels[0] = -1
    return drawn(rng, dtype, lines), drawn(rng, dtype, lines, n), labels


def of_norm(rng, dtype, n, lines=3, weight=True):
    x = drawn(rng, dtype, lines, n) + DTYPES[dtype][0].type(1)
    wide = np.float64 if dtype == "float64" else np.float32
    mean, var = (f(x.astype(wide), -1, keepdims=True) for f in (np.mean, np.var))
    small = [rng.normal(size=(lines, 1)).astype(wide) for _ in range(2)]
    weights = [drawn(rng, dtype, n)] if weight else []
    return [drawn(rng, dtype, lines, n), x, mean.astype(wide), var.astype(wide), *small, *weights]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_softmax_of_rows_of_any_length(n, dtype, rng):
    x, g = drawn(rng, dtype, 3, n), drawn(rng, dtype, 3, n, scale=1)
    for name in ("softmax", "log_softmax"):
        compare(name, dtype, x, axis=-1)
        compare(f"{name}_grad", dtype, g, *by_kernel(name, x, axis=-1), axis=-1)
    compare("logsumexp", dtype, x, axis=-1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_cross_entropy_of_rows_of_any_length(n, dtype, rng):
    g, x, labels = losing(rng, dtype, n)
    for keywords in ({"ignore_index": -1}, {"ignore_index": -1, "label_smoothing": 0.1}):
        compare("sparse_softmax_cross_entropy", dtype, x, labels, **keywords)
        compare("sparse_softmax_cross_entropy_grad", dtype, g, x, labels, **keywords)
    p = np.abs(drawn(rng, dtype, 3, n, scale=1 / n))
    compare("softmax_cross_entropy", dtype, x, p)
    compare("softmax_cross_entropy_grad", dtype, g, x, p)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [*LENGTHS, 9000])  # too long for a block to hold the column sums
def test_norms_of_rows_of_any_length(n, dtype, centered, rng):
    arrays = of_norm(rng, dtype, n)
    bias = drawn(rng, dtype, n)
    compare("standardize_affine", dtype, arrays[1], arrays[-1], bias, centered=centered)
    compare("standardize_affine_grad", dtype, *arrays, eps=1e-3, centered=centered)
    compare("standardize_affine_grads", dtype, *arrays, eps=1e-3, centered=centered)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [7, 129, 4099])
def test_standardize_of_rows_of_any_length(n, dtype, rng):
    g, x, _, var, *small = of_norm(rng, dtype, n, weight=False)
    compare("standardize", dtype, x)
    compare("rms_standardize", dtype, x)
    compare("standardize_grad", dtype, g, x, var, *small)
    compare("rms_standardize_grad", dtype, g, x, var, small[1])
    compare("standardize", dtype, x.reshape(3, n, 1), axis=(1, 2))


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("n", [33, 2100])
def test_every_schedule_gives_the_same_bits(n, schedule, rng):
    g, x, labels = losing(rng, "float32", n)
    calls = [
        ("softmax", [x]), ("log_softmax_grad", [x, x]), ("logsumexp", [x], {"axis": -1}),
        ("sparse_softmax_cross_entropy", [x, labels], {"label_smoothing": 0.1}),
        ("sparse_softmax_cross_entropy_grad", [g, x, labels]),
        ("softmax_cross_entropy", [x, np.abs(x)]),
        ("softmax_cross_entropy_grad", [g, x, np.abs(x)]),
        ("standardize_affine", [x]), ("standardize_affine_grads", of_norm(rng, "float32", n)),
    ]  # fmt: skip
    for name, arrays, *params in calls:
        keywords = params[0] if params else {}
        first, second = (by_kernel(name, *arrays, schedule=s, **keywords)
                         for s in ("round robin", schedule))  # fmt: skip
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("dtype", "n"), [("float32", 33_000), ("float64", 9_000)])
def test_rows_too_long_for_registers_are_read_again(dtype, n, rng):
    g, x, labels = losing(rng, dtype, n, lines=1)
    labels[0] = 5
    assert rows.plan(1, n, DTYPES[dtype][0], 16)[0] == 0
    compare("softmax", dtype, x, axis=-1)
    compare("softmax_grad", dtype, x, *by_kernel("softmax", x), axis=-1)
    compare("sparse_softmax_cross_entropy", dtype, x, labels, label_smoothing=0.1)
    compare("sparse_softmax_cross_entropy_grad", dtype, g, x, labels)
    compare("softmax_cross_entropy_grad", dtype, g, x, np.abs(x) / n)
    compare("standardize_affine", dtype, x)
    compare("standardize_affine_grad", dtype, *of_norm(rng, dtype, n, 1, weight=False))


def test_cross_entropy_gradients_of_a_mean_read_one_cotangent(rng):
    for n in (5, 3000):
        g, x, labels = losing(rng, "float32", n)
        broadcast = np.broadcast_to(np.float32(0.25), g.shape)
        for name, of in (
            ("sparse_softmax_cross_entropy_grad", labels),
            ("softmax_cross_entropy_grad", np.abs(x)),
        ):
            for actual, desired in zip(
                by_kernel(name, broadcast, x, of),
                by_kernel(name, broadcast + g * 0, x, of),
                strict=True,
            ):
                np.testing.assert_array_equal(actual, desired)


TOLERANCES_OF_LONG = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 2e-2}
LONG = {
    "float32": (16380, 20001, 25000),
    "float16": (33000, 50304),
    "bfloat16": (50301,),
    "float64": (9000, 12001),
}


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("dtype", LONG)
def test_cross_entropy_gradients_of_long_rows_keep_them_in_shared_memory(
    dtype, schedule, rng, launches_of
):
    names = launches_of(cross_entropy)
    for n in LONG[dtype]:
        g, x, labels = losing(rng, dtype, n, lines=2)
        op = gg.OPS["sparse_softmax_cross_entropy_grad"]
        desired = op.bare(NUMPY)(g, x, labels, ignore_index=-1)
        with shim.running(schedule):
            actual = op.cuda(NUMPY, g, x.copy(), labels, ignore_index=-1, over=True)
        near = TOLERANCES_OF_LONG[dtype]
        np.testing.assert_allclose(actual.astype(float), desired.astype(float), near, near * 1e-3)
    assert all(name.endswith(", -1>") for name in names), names


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("n", [7, 1000, 33_000])
def test_cross_entropy_gradients_may_overwrite_the_scores(n, schedule, rng):
    g, x, labels = losing(rng, "float32", n, lines=2)
    for name, *others in (
        ("sparse_softmax_cross_entropy_grad", labels), ("softmax_cross_entropy_grad", np.abs(x)),
    ):  # fmt: skip
        (desired,) = by_kernel(name, g, x, *others)
        op = gg.OPS[name]
        inputs = [g, x.copy(), *others]
        with shim.running(schedule):
            actual = op.cuda(NUMPY, *inputs, over=True)
        assert np.shares_memory(actual, inputs[op.overwrites])
        np.testing.assert_array_equal(actual, desired)


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("n", [7, 1000, 33_000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.thin(4)
def test_fused_loss_and_gradient_match_two_kernels(dtype, n, schedule, rng):
    g, x, labels = losing(rng, dtype, n, lines=6)
    labels[1], x[2] = n, -np.inf  # an unknown class; a row without a score
    x[3, labels[3]] = -np.inf
    for of, ignored in ((g.dtype, None), (g.dtype, -1), (np.result_type(g, np.float32), n)):
        up = g.astype(of)
        (losses,) = by_kernel(
            "sparse_softmax_cross_entropy", x, labels, ignore_index=ignored, dtype=of
        )
        (d,) = by_kernel("sparse_softmax_cross_entropy_grad", up, x, labels, ignore_index=ignored)
        for over in (False, True):
            before = x.copy()
            with shim.running(schedule):
                actual = cross_entropy.loss_and_gradient(
                    NUMPY, up, before, labels, ignore_index=ignored, over=over
                )
            assert np.shares_memory(actual[1], before) == over
            for a, b in zip(actual, (losses, d), strict=True):
                np.testing.assert_array_equal(a.astype(np.float64), b.astype(np.float64))


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize(("n", "lines"), [(7, 1), (7, 3), (40, 130), (1030, 7), (33_000, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.thin(7)
def test_the_last_block_adds_the_losses_up(dtype, n, lines, schedule, rng, monkeypatch):
    arrived = np.full(1, 1 << 31, np.uint32)  # as an odd number of barriers leaves it
    monkeypatch.setattr(cross_entropy, "barrier_of", lambda array: arrived)
    g, x, labels = losing(rng, dtype, n, lines=lines)
    wide = np.result_type(g, np.float32)
    by = rng.uniform(1, 9, ()).astype(wide)
    for of, ignored in ((wide, -1), (g.dtype, -1), (wide, labels[-1])):
        second = np.full(3, 7, of)
        place = np.array([second[1:].ctypes.data], np.uintp)
        for total, divisor, count in (("mean", None, lines), ("sum", None, 1), ("sum", by, by)):
            arrays = [g.astype(of), x, labels, *([] if divisor is None else [by.astype(of)])]
            with shim.running(schedule):
                losses, d, added = cross_entropy.loss_and_gradient(
                    NUMPY, *arrays, ignore_index=ignored, total=total, place=place
                )
                separate = cross_entropy.loss_and_gradient(NUMPY, *arrays[:3], ignore_index=ignored)
            for a, b in zip((losses, d), separate, strict=True):
                np.testing.assert_array_equal(a.astype(np.float64), b.astype(np.float64))
            assert (added.shape, added.dtype) == ((), of)
            np.testing.assert_array_equal(second.astype(float), [7, added.astype(float), 7])
            near_largest(added, losses.astype(np.float64).sum() / count, DTYPES[dtype][1])
            assert arrived.item() == 1 << 31


def test_no_losses_that_count_by_no_count_are_0(rng):
    g, x, _ = losing(rng, "float32", 5)
    with shim.running("round robin"):
        *_, added = cross_entropy.loss_and_gradient(
            NUMPY, g, x, np.full(3, -1), np.zeros((), np.float32), ignore_index=-1, total="sum"
        )
    assert added == 0


@pytest.mark.parametrize("n", [8, 300])
def test_more_rows_than_blocks_that_sum_columns(n, rng):
    arrays = of_norm(rng, "float32", n, lines=2200 if n == 8 else 550)
    compare("standardize_affine_grads", "float32", *arrays)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("n", [40, 41])
def test_unaligned_and_strided_arrays(n, dtype, rng):
    """A view that begins within a pack, one with gaps, and one that runs backwards."""
    flat = drawn(rng, dtype, 5 * n + 1)
    unaligned = flat[1:].reshape(5, n)
    gaps, backwards = drawn(rng, dtype, 5, 2 * n)[:, ::2], drawn(rng, dtype, 5, n)[:, ::-1]
    for x in (unaligned, gaps, backwards):
        compare("softmax", dtype, x)
        compare("softmax_grad", dtype, unaligned, np.ascontiguousarray(x))
        compare("softmax_cross_entropy_grad", dtype, x[:, 0], unaligned, x)
        arrays = of_norm(rng, dtype, n, 5)
        compare("standardize_affine_grads", dtype, x, unaligned, *arrays[2:])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_of_an_array(axis, rng):
    x = drawn(rng, "float32", 4, 5, 6)
    compare("softmax", "float32", x, axis=axis)
    compare("log_softmax_grad", "float32", x, -np.abs(x), axis=axis)
    compare("logsumexp", "float32", x, axis=axis, keepdims=True)
    compare("softmax_cross_entropy", "float32", x, np.abs(x), axis=axis)


def test_unsupported_arguments_are_declined():
    x = np.ones((3, 4), np.float32)
    for name, args, params in (
        ("softmax", [x.astype(np.int64)], {}), ("softmax", [x], {"axis": 2}),
        ("softmax", [x[:0]], {}), ("softmax", [x[0, 0]], {}), ("softmax_grad", [x, x[0]], {}),
        ("softmax_grad", [1.0, x], {}), ("logsumexp", [x], {"axis": (0, 1)}),
        ("softmax_cross_entropy", [x, x.astype(np.float16)], {}),
        ("sparse_softmax_cross_entropy", [x, np.zeros(3)], {}),
        ("sparse_softmax_cross_entropy", [x, np.zeros(2, int)], {}),
        ("standardize_affine", [x], {"axis": 0, "centered": False}),
        ("standardize_affine", [x[:0]], {}),
        ("standardize_affine", [x, x[0].astype(np.float64)], {}),
    ):  # fmt: skip
        assert gg.OPS[name].cuda(NUMPY, *args, **params) is NotImplemented, (name, params)


@pytest.mark.parametrize("n", [5, 200])
def test_infinities_and_nan_match_the_formula(n, rng):
    x = drawn(rng, "float32", 7, n)
    x[0, 1], x[1], x[2, 3], x[3, 2], x[4, :4] = -np.inf, -np.inf, np.inf, np.nan, -np.inf
    x[5], x[6] = 1e38, -1e38
    for name in ("softmax", "log_softmax", "logsumexp"):
        compare(name, "float32", x, axis=-1)
    labels = np.full(7, 4)
    compare("sparse_softmax_cross_entropy", "float32", x, labels)
    p = np.zeros_like(x)
    p[:, 4] = 1
    compare("softmax_cross_entropy", "float32", x, p)
    compare("softmax_cross_entropy", "float32", x, 0 * p)


def test_out_of_range_label_gives_nan_in_its_row_only(rng):
    g, x, labels = losing(rng, "float32", 9)
    labels[:] = 3, 9, -1
    (losses,) = by_kernel("sparse_softmax_cross_entropy", x, labels)
    (dx,) = by_kernel("sparse_softmax_cross_entropy_grad", g, x, labels)
    assert np.isnan(losses).tolist() == [False, True, True]
    assert np.isnan(dx).all(1).tolist() == [False, True, True]
    assert np.isfinite(dx[0]).all()


def test_an_ignored_row_of_nan_has_a_gradient_of_zero(rng):
    g, x, labels = losing(rng, "float32", 9)
    x[0] = np.nan
    (dx,) = by_kernel("sparse_softmax_cross_entropy_grad", g, x, labels, ignore_index=-1)
    assert (dx[0] == 0).all()


def test_norms_of_equal_elements_are_the_bias(rng):
    x, weight, bias = np.full((2, 6), 3, np.float32), np.ones(6, np.float32), np.arange(6.0)
    y, _, var = by_kernel("standardize_affine", x, weight, bias.astype(np.float32), eps=0.0)
    np.testing.assert_array_equal(y, [bias, bias])
    assert (var == 0).all()


def test_large_mean_costs_no_precision(rng):
    x = (rng.normal(size=(2, 500)) + 1e4).astype(np.float32)
    y, _, _ = by_kernel("standardize_affine", x, eps=0.0)
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(-1, keepdims=True)) / wide.std(-1, keepdims=True)
    np.testing.assert_allclose(y, exact, atol=2e-3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "cross_entropy"])
def test_gradients_on_a_gpu_match_the_cpu(name, dtype, cuda, rng):
    x, weight = drawn(rng, dtype, 4, 24), drawn(rng, dtype, 24)
    labels = np.array([3, -100, 23, 0])

    def gradients(device):
        with gg.device(device):
            inputs = [gg.constant(a) for a in ((x,) if name == "cross_entropy" else (x, weight))]
            others = [gg.constant(labels)] if name == "cross_entropy" else []
            if name == "layer_norm":
                inputs.append(inputs[1] * 0.5)
            with gg.GradientTape() as tape:
                tape.watch(inputs)
                y = getattr(gg.nn, name)(*inputs, *others)
                loss = gg.sum(gg.astype(y, "float32") ** 2)
            return [y, *tape.gradient(loss, inputs)]

    for a, b in zip(gradients(cuda), gradients("cpu"), strict=True):
        assert a.dtype == b.dtype == x.dtype
        wide = [t.numpy().astype(np.float64) for t in (a, b)]
        tolerance = 10 * DTYPES[dtype][1]
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)


@needs_nvrtc
@each_architecture
@pytest.mark.parametrize("module", [softmax, cross_entropy, norms], ids=lambda m: m.__name__)
def test_kernels_hold_their_rows_in_registers_and_move_16_bytes(module, architecture):
    """The largest kernel of each kind; ci/compile_kernels compiles all of them."""
    largest = {name.split("<")[0]: (source, name) for source, name in module.INSTANCES}
    for source, name in largest.values():
        kernel = nvrtc.compile_for(architecture, full_source(source), name)
        assert kernel.spilled == 0, name
        read = (
            "ld.global.cg.v4"
            if "_backward" in name and module is cross_entropy
            else ("ld.global.nc.v4")
        )  # the read-only cache must not hold what may be overwritten
        assert name not in module.VECTOR or read in kernel.ptx, name
        if name.startswith(
            ("softmax", "norm_forward", "norm_backward", "sparse_back", "dense_back")
        ):
            assert "st.global.wb.v4" in kernel.ptx, name
