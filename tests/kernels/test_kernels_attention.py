"""Attention's kernels on both engines, run on the CPU by the shim."""

import numpy as np
import pytest
from comparing import near_largest
from needs import each_architecture, needs_nvrtc, needs_shim

import gpugrad as gg
from gpugrad.core.backend import NUMPY, as_dtype
from gpugrad.kernels.by_hand import attention
from gpugrad.kernels.runtime import launch
from gpugrad.ops.nn import attention as attention_ops
from gpugrad.testing.cuda import nvrtc, shim

pytestmark = needs_shim

TOLERANCES = {"float64": 1e-10, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}
OF = ("query", "key", "value")

forward = gg.OPS["flash_attention"].bare(NUMPY)
grad = gg.OPS["flash_attention_grad"].bare(NUMPY)


def drawn(rng, shape, dtype="float64"):
    return rng.normal(size=shape).astype(as_dtype(dtype))


def assert_near(actual, desired, dtype):
    assert actual.dtype == desired.dtype
    near_largest(actual, desired, TOLERANCES[dtype])


def check(arrays, dtype, schedules=shim.SCHEDULES, seed=1, **params):
    """Results and gradients of the kernels against those of the formulas."""
    rng = np.random.default_rng(seed)
    out, lse = forward(*arrays, **params)
    g, g_lse = drawn(rng, out.shape, dtype), drawn(rng, lse.shape).astype(lse.dtype)
    inputs = [g, *arrays[:3], out, lse, g_lse, *arrays[3:]]
    for schedule in schedules:
        with shim.running(schedule):
            actual = attention.forward(NUMPY, *arrays, **params)
        assert actual is not NotImplemented
        for a, d, name in zip(actual, (out, lse), (dtype, dtype), strict=True):
            assert_near(a, d, name)
        for of in OF:
            with shim.running(schedule):
                gradient = attention.grad(NUMPY, *inputs, of=of, **params)
            assert gradient is not NotImplemented
            assert_near(gradient, grad(*inputs, of=of, **params), dtype)


ENGINES = [
    ("sm_90", "float64"), ("sm_90", "float32"), ("sm_75", "float32"), ("sm_75", "float16"),
    ("sm_90", "float16"), ("sm_90", "bfloat16"),
]  # fmt: skip
"""sm_75 runs multiply-adds in small tiles; 16-bit floats on sm_90 run on tensor cores."""


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("m", "n"), [(70, 90), (90, 70), (1, 130), (129, 3)])
@pytest.mark.parametrize(("architecture", "dtype"), ENGINES)
@pytest.mark.thin(5)
def test_lengths_that_are_not_multiples_of_a_tile(
    architecture, dtype, m, n, is_causal, monkeypatch
):
    monkeypatch.setattr(attention, "architecture", lambda: architecture)
    rng = np.random.default_rng(0)
    arrays = [drawn(rng, (2, length, k), dtype) for length, k in ((m, 16), (n, 16), (n, 8))]
    schedules = shim.SCHEDULES if (m, n) == (70, 90) else shim.SCHEDULES[1:2]
    check(arrays, dtype, schedules, is_causal=is_causal)


@pytest.mark.parametrize(
    "longest", [1, 33, 80, *(pytest.param(n, marks=pytest.mark.slow) for n in (136, 192))]
)
@pytest.mark.parametrize(("architecture", "dtype"), [("sm_75", "float32"), ("sm_90", "bfloat16")])
def test_every_head_size(architecture, dtype, longest, monkeypatch):
    monkeypatch.setattr(attention, "architecture", lambda: architecture)
    rng = np.random.default_rng(0)
    arrays = [drawn(rng, (n, longest), dtype) for n in (20, 40, 40)]
    check(arrays, dtype, shim.SCHEDULES[:1], is_causal=True)


def test_kernel_declines_what_exceeds_shared_memory():
    rng = np.random.default_rng(0)
    query, key, value = (drawn(rng, (n, 256)) for n in (2, 3, 3))
    out, lse = forward(query, key, value)
    with shim.running():
        assert_near(attention.forward(NUMPY, query, key, value)[0], out, "float64")
        inputs = [out, query, key, value, out, lse, lse]
        assert attention.grad(NUMPY, *inputs, of="key") is NotImplemented


@pytest.mark.parametrize(("m", "n"), [(70, 90), (33, 136)])  # rows of whole blocks, and others
@pytest.mark.parametrize(("architecture", "dtype"), [("sm_75", "float32"), ("sm_90", "bfloat16")])
@pytest.mark.thin(3)
def test_dropout_draws_the_same_mask_as_the_formula(architecture, dtype, m, n, monkeypatch):
    monkeypatch.setattr(attention, "architecture", lambda: architecture)
    rng = np.random.default_rng(0)
    arrays = [drawn(rng, (h, length, 16), dtype) for h, length in ((4, m), (2, n), (2, n))]
    stream = np.array([5, 6, 2**40, 1], np.uint64)
    schedules = shim.SCHEDULES if n == 90 else shim.SCHEDULES[:1]
    check([*arrays, None, stream], dtype, schedules, enable_gqa=True, dropout_p=0.3)
    check([*arrays, None, stream], dtype, schedules[:1], enable_gqa=True, dropout_p=0.3,
          is_causal=True)  # fmt: skip


def test_invalid_random_streams_are_declined():
    query = np.ones((2, 3), np.float32)
    stream = np.zeros(4, np.uint64)
    for wrong, p in ((stream[:3], 0.5), (stream.astype(np.int64), 0.5), (stream, 1.0)):
        result = attention.forward(NUMPY, *[query] * 3, None, wrong, dropout_p=p)
        assert result is NotImplemented


@pytest.mark.parametrize("traced", [False, True])
def test_dropout_on_a_gpu_matches_the_cpu(traced, cuda):
    rng = np.random.default_rng(0)
    arrays = [drawn(rng, (2, 3, n, 8), "float32") for n in (9, 13, 13)]

    def step(*inputs):
        with gg.GradientTape() as tape:
            tape.watch(inputs)
            out = gg.nn.scaled_dot_product_attention(*inputs, dropout_p=0.4)
        return out, *tape.gradient(out, inputs, out * out)

    def results(device, step):
        gg.set_seed(3)
        inputs = [gg.constant(a, device=device) for a in arrays]
        return [t.numpy() for _ in range(3) for t in step(*inputs)]

    function = gg.function(step) if traced else step
    actual, desired = results(cuda, function), results("cpu", step)
    for a, d in zip(actual, desired, strict=True):
        np.testing.assert_allclose(a, d, rtol=1e-4, atol=1e-5)
    assert not np.array_equal(actual[0], actual[4])  # another mask each time
    if traced:
        replay = next(iter(function._plans.values())).replay
        names = [s.name for s in replay.program.steps]
        assert "flash_attention" in names
        assert [run.fixed for run in replay.runs] == [True]


MASKS = {
    "per head": (2, 4, 20, 30), "shared": (20, 30), "per key": (2, 1, 1, 30),
    "per query": (4, 20, 1), "single": (1, 1),
}  # fmt: skip


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("dtype", ["float64", pytest.param("float16", marks=pytest.mark.slow)])
def test_masks_of_every_broadcast_shape(dtype, additive, mask):
    rng = np.random.default_rng(2)
    arrays = [drawn(rng, (2, h, n, 8), dtype) for h, n in ((4, 20), (2, 30), (2, 30))]
    chosen = rng.uniform(size=MASKS[mask]) < 0.6
    chosen[..., 0, :] = False  # at least one query sees no key
    if additive:
        some = drawn(rng, chosen.shape, dtype)
        chosen = np.where(chosen, some, as_dtype(dtype).type(-np.inf))
    check([*arrays, chosen], dtype, shim.SCHEDULES[2:], enable_gqa=True, is_causal=True, scale=0.7)


def test_fully_masked_query_gives_0_with_a_gradient_of_0():
    rng = np.random.default_rng(0)
    query, key, value = (drawn(rng, (n, 8), "float32") for n in (4, 5, 5))
    mask = np.ones((4, 5), bool)
    mask[2] = False
    key[1] = np.nan  # masked everywhere, so it must not show
    mask[:, 1] = False
    with shim.running():
        out, lse = attention.forward(NUMPY, query, key, value, mask)
        inputs = [np.ones_like(out), query, key, value, out, lse, np.ones_like(lse), mask]
        by_query = attention.grad(NUMPY, *inputs, of="query")
        by_value = attention.grad(NUMPY, *inputs, of="value")
    assert lse[2] == -np.inf
    assert (out[2] == 0).all()
    assert (by_value[1] == 0).all()
    assert np.isfinite(out).all()
    assert np.isnan(by_query[0]).all()  # 0 times the key's NaN, as in the formula
    key[1] = 0
    with shim.running():
        by_query = attention.grad(NUMPY, *inputs, of="query")
    assert (by_query[2] == 0).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nan_and_infinite_scores_stay_in_their_rows(dtype, bad):
    rng = np.random.default_rng(0)
    query, key, value = (drawn(rng, (n, 8), dtype) for n in (70, 80, 80))
    query[3, 0] = bad
    key[:, 0] = 1
    with np.errstate(all="ignore"):
        out, lse = forward(query, key, value)
    with shim.running():
        actual = attention.forward(NUMPY, query, key, value)
    assert_near(actual[0], out, dtype)
    assert_near(actual[1], lse, dtype)
    assert np.isnan(actual[0][3].astype(np.float32)).all()
    assert np.isfinite(np.delete(actual[0], 3, 0).astype(np.float32)).all()


def test_large_scores_do_not_overflow():
    rng = np.random.default_rng(0)
    arrays = [drawn(rng, (n, 8), "float32") * 30 for n in (20, 70, 70)]
    with shim.running():
        out, lse = attention.forward(NUMPY, *arrays)
    assert np.abs(lse).max() > 100
    assert_near(out, forward(*arrays)[0], "float32")


@pytest.mark.parametrize(
    "shapes",
    [
        [(3, 20, 8), (20, 8), (20, 8)],  # keys shared by all
        [(2, 3, 20, 8), (2, 1, 30, 8), (2, 1, 30, 8)],  # one head of keys
        [(20, 8), (3, 30, 8), (1, 30, 8)],
        [(2, 1, 3, 20, 8), (4, 1, 30, 8), (1, 30, 8)],
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_batches_broadcast_and_their_gradients_are_summed(shapes, dtype):
    rng = np.random.default_rng(0)
    check([drawn(rng, s, dtype) for s in shapes], dtype, shim.SCHEDULES[:1])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_views_of_every_layout(dtype):
    rng = np.random.default_rng(0)
    rows = [
        drawn(rng, (1, n, 2, 16), dtype).swapaxes(1, 2) for n in (20, 30, 30)
    ]  # heads after tokens
    check(rows, dtype, shim.SCHEDULES[:1])
    base = drawn(rng, (70 * 16 + 1,), dtype)
    unaligned = [base[1 : 1 + n * 16].reshape(n, 16) for n in (20, 30, 30)]
    check(unaligned, dtype, shim.SCHEDULES[:1])
    columns = [drawn(rng, (8, n), dtype).T for n in (20, 30, 30)]
    check(columns, dtype, shim.SCHEDULES[:1])
    turned = [drawn(rng, (n, 8), dtype)[::-1] for n in (20, 30, 30)]
    check(turned, dtype, shim.SCHEDULES[:1])


@pytest.mark.parametrize("shapes", [[(0, 8), (3, 8), (3, 4)], [(2, 8), (0, 8), (0, 4)],
                                    [(0, 2, 8), (0, 3, 8), (0, 3, 4)]])  # fmt: skip
def test_empty_queries_keys_and_batches(shapes):
    check([np.ones(s) for s in shapes], "float64", shim.SCHEDULES[:1])


def test_results_are_bitwise_equal_in_every_schedule():
    rng = np.random.default_rng(0)
    arrays = [drawn(rng, (2, n, 16), "float32") for n in (70, 90, 90)]
    out, lse = forward(*arrays)
    results = set()
    for schedule in shim.SCHEDULES:
        with shim.running(schedule):
            parts = [*attention.forward(NUMPY, *arrays)]
            parts += [attention.grad(NUMPY, out, *arrays, out, lse, lse, of=of) for of in OF]
        results.add(b"".join(p.tobytes() for p in parts))
    assert len(results) == 1


JOINT = {
    "more queries": ((1, 2, 130, 64), (1, 2, 70, 64), 64, {}),
    "more keys, causal": ((1, 1, 65, 64), (1, 1, 140, 64), 40, {"is_causal": True}),
    "keys that no query sees": ((2, 20, 16), (2, 150, 16), 8, {"is_causal": True}),
    "groups of heads": ((1, 4, 70, 48), (1, 2, 66, 48), 48, {"enable_gqa": True}),
    "groups of causal heads": (
        (1, 4, 150, 16), (1, 2, 200, 16), 16, {"is_causal": True, "enable_gqa": True},
    ),
    "one key head": ((2, 3, 33, 24), (2, 1, 65, 24), 16, {"is_causal": True, "enable_gqa": True}),
}  # fmt: skip


@pytest.mark.parametrize("case", JOINT)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.thin(5)
def test_all_gradients_come_from_one_launch(case, dtype, launches_of):
    query, key, width, params = JOINT[case]
    rng, names = np.random.default_rng(0), launches_of(attention)
    arrays = [drawn(rng, s, dtype) for s in (query, key, (*key[:-1], width))]
    schedules = shim.SCHEDULES if dtype == "float16" else shim.SCHEDULES[:1]
    check(arrays, dtype, schedules, **params)
    kinds = [name.partition("<")[0] for name in names]
    backward = [kind for kind in kinds if kind != "attention_forward"]
    assert backward == ["attention_delta", "attention_grads"] * len(schedules)


def test_deterministic_gradients_come_from_kernels_without_atomics(launches_of):
    rng, names = np.random.default_rng(0), launches_of(attention)
    gg.set_deterministic()
    try:
        check([drawn(rng, (2, 70, 16), "float16") for _ in range(3)], "float16")
    finally:
        gg.set_deterministic(False)
    assert not any(name.startswith("attention_grads") for name in names)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_results_and_gradients_have_the_layout_of_their_arguments(dtype):
    rng = np.random.default_rng(0)
    whole = drawn(rng, (2, 9, 3, 4, 16), dtype)
    query, key, value = np.moveaxis(whole, (2, 3), (0, 2))
    g = drawn(rng, (2, 9, 4, 16), dtype).swapaxes(1, 2)
    with shim.running():
        out, lse = attention.forward(NUMPY, query, key, value, is_causal=True)
        assert out.swapaxes(1, 2).flags.c_contiguous
        inputs = [g, query, key, value, out, lse]
        grads = {of: attention.grad(NUMPY, *inputs, of=of, is_causal=True) for of in OF}
    for of, d in grads.items():
        assert_near(d, grad(*inputs, of=of, is_causal=True), dtype)
        assert d.swapaxes(1, 2).flags.c_contiguous or d.strides == query.strides
    if dtype == "bfloat16":  # as the three arguments do, the gradients share one array
        assert len({id(d.base) for d in grads.values()}) == 1
        assert {d.strides for d in grads.values()} == {query.strides}


def test_unsupported_arguments_are_declined():
    x, mask = np.ones((2, 4)), np.ones((2, 2), np.float32)
    long = np.ones((2, 257), np.float32)
    for args in ((x, x, 1.0), (x, x, x.astype("f")), (x, x, x, mask), (long, long, long),
                 (x, np.ones((3, 4)), x), (np.ones(4), x, x), (x[:, :0], x[:, :0], x),
                 (x.astype(int),) * 3, (x, x, x, np.ones((3, 2), bool)),
                 (np.ones((3, 2, 4)), *[np.ones((2, 2, 4))] * 2)):  # fmt: skip
        with shim.running():
            assert attention.forward(NUMPY, *args) is NotImplemented, [np.shape(a) for a in args]
    out, lse = forward(x, x, x)
    with shim.running():
        inputs = [out, x, x, x, out, lse, lse]
        assert attention.grad(NUMPY, *inputs, mask.astype(float), of="attn_mask") is NotImplemented


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_fused_attention_and_its_gradients_match_the_composed_one(dtype, monkeypatch):
    rng = np.random.default_rng(0)
    arrays = [gg.Variable(drawn(rng, (2, n, 8), dtype)) for n in (5, 7, 7)]
    mask = gg.Variable(drawn(rng, (5, 7), dtype))
    results = []
    for fused in (False, True):
        monkeypatch.setattr(attention_ops, "_is_fused", lambda *a, fused=fused: fused)
        with gg.GradientTape() as outer:
            with gg.GradientTape() as tape:
                y = gg.nn.scaled_dot_product_attention(*arrays, mask, is_causal=True)
                total = gg.sum(y * y)
            grads = tape.gradient(total, [*arrays, mask])
            moved = gg.sum(gg.stack([gg.sum(g * g) for g in grads]))
        results.append([y, *grads, *outer.gradient(moved, [*arrays, mask])])
    for actual, desired in zip(*results, strict=True):
        assert_near(actual.numpy(), desired.numpy(), dtype)


def test_kernels_run_on_a_device(cuda, launches_of):
    rng, names = np.random.default_rng(0), launches_of(attention)
    arrays = [gg.constant(drawn(rng, (2, 9, 8), "float32"), device=cuda) for _ in "qkv"]
    arrays = [gg.Variable(a) for a in arrays]
    with gg.GradientTape() as tape:
        y = gg.nn.scaled_dot_product_attention(*arrays)
    tape.gradient(y, arrays)
    kinds = [name.partition("<")[0] for name in names]
    assert kinds.count("attention_forward") == 1
    assert kinds.count("attention_grad") == 3


def test_integer_attention_on_a_device_matches_the_cpu(cuda):
    arrays = [np.arange(6).reshape(3, 2), np.eye(2, dtype=int), np.array([[1], [4]])]
    here, there = (
        gg.nn.scaled_dot_product_attention(*(gg.constant(a, device=d) for a in arrays))
        for d in ("cpu", cuda)
    )
    assert_near(there.numpy(), here.numpy(), "float64")


@pytest.mark.slow  # half a minute: ci/compile_kernels compiles them as well
@needs_nvrtc
@each_architecture
def test_kernels_compile_without_spills_and_copy_sixteen_bytes(architecture):
    since = "sm_75" if architecture == "sm_75" else "sm_80"
    names = [name for name, on in attention.ARCHITECTURES.items() if since in on]
    compiled = nvrtc.compile_all(architecture, launch.full_source("attention.cu"), names)
    for name, kernel in compiled.items():
        assert kernel.spilled == 0, name
        if name in attention.VECTOR and "Mma" not in name:
            assert "ld.global.v4" in kernel.ptx, name
        if "Mma" in name:
            assert "cp.async.cg.shared.global" in kernel.ptx, name
            assert "mma.sync.aligned.m16n8k16" in kernel.ptx, name
