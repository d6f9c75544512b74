"""Kernels that draw random numbers, run on the CPU by the shim, match their twins in NumPy."""

import numpy as np
import pytest
from needs import needs_nvrtc, needs_shim

import gpugrad as gg
from gpugrad.core.backend import NUMPY, as_dtype
from gpugrad.kernels.by_hand import random
from gpugrad.kernels.runtime import launch
from gpugrad.ops.random import philox
from gpugrad.ops.random.kinds import KINDS
from gpugrad.testing.cuda import nvrtc, shim

pytestmark = needs_shim

KEY = (0x243F6A8885A308D3, 0x13198A2E03707344)
REALS = ["uniform", "normal", "exponential", "laplace", "gumbel", "logistic"]


def drawn(kind, key, first, n, dtype, *parameters, schedule="round robin", **state):
    with shim.running(schedule):
        return random.noise(NUMPY, kind, key, first, n, dtype, *parameters, **state)


def twin(kind, key, first, n, dtype, *parameters):
    return KINDS[kind][1](key, first, n, np.dtype(dtype), *parameters)


def assert_same(actual, desired):
    assert actual.dtype == desired.dtype
    assert actual.tobytes() == desired.tobytes()  # bit for bit


def test_bits_match_the_published_block():
    actual = drawn("bits", (0, 0), 0, 4, "uint64")
    assert actual.tolist() == [
        0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B
    ]  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 8, 9, 1023, 1025])
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_bits_of_any_length_match_numpy(dtype, n):
    for schedule in shim.SCHEDULES:
        actual = drawn("bits", KEY, 2**40 + 1, n, dtype, schedule=schedule)
        assert_same(actual, twin("bits", KEY, 2**40 + 1, n, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", REALS)
def test_real_numbers_match_numpy_bitwise(kind, dtype):
    assert_same(drawn(kind, KEY, 5, 40001, dtype), twin(kind, KEY, 5, 40001, dtype))


CORNERS = [
    "0x0", "0x1", "0x7", "0x7fffffffffffffff", "0x8000000000000000", "0xffffffffffffffff",
    "0xfffffffffffffffe", "0x8000000000000001", "0x7ffffffffffffffe", "0xb504f333f9de6484",
    "0xb504f333f9de6485", "0x100", "0xffffff0000000000", "0x7fffffff7fffffff", "0x80000000",
    "0x8000000080000000", "0xf3333333f3333333", "0x0ccccccc0ccccccc", "0x6ccccccc6ccccccc",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [k for k in REALS if k != "uniform"])
def test_formulas_agree_at_corner_cases(kind, dtype):
    """A stream rarely draws these words, so the formula is called on each."""
    words = np.array([int(c, 16) for c in CORNERS], np.uint64)
    words = words if dtype == "float64" else words.view(np.uint32)
    function = random._KINDS[kind]
    word = {"float32": ("float", "unsigned"), "float64": ("double", "Word")}[dtype]
    source = launch.full_source("random.cu") + (
        f"__global__ void of_words(const {word[1]}* w, {word[0]}* out, int n) {{"
        f"  for (int i = 0; i < n; ++i) out[i] = {function}()(w[i]); }}"
    )
    actual = np.zeros(words.size, dtype)
    module = shim.compile_module(source, ["of_words"])
    module.run("of_words", 1, 1, [words, actual, np.int32(words.size)])
    with np.errstate(all="ignore"):
        assert_same(actual, getattr(philox, kind)(words.copy()))


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(0, 3, "int64"), (-5, 6, "int32"), (-128, 128, "int8"), (0, 2**16, "uint16"),
     (0, 2**64, "uint64"), (-(2**63), 2**63, "int64"), (7, 8, "uint8"), (2**63, 2**64, "uint64")],
)  # fmt: skip
def test_integers_match_numpy(low, high, dtype):
    for schedule in shim.SCHEDULES:
        actual = drawn("integers", KEY, 9, 1003, dtype, low, high, schedule=schedule)
        assert_same(actual, twin("integers", KEY, 9, 1003, dtype, low, high))


def test_second_draw_of_a_call_uses_another_counter_word():
    first = 77 + (1 << 128)
    assert_same(drawn("bits", KEY, first, 9, "uint64"), twin("bits", KEY, first, 9, "uint64"))


def test_stream_on_the_device_overrides_the_key():
    state = np.array([*KEY, 100, 1], np.uint64)
    actual = drawn("normal", (1, 2), 11, 50, "float32", state=state)
    assert_same(actual, twin("normal", KEY, 111 + (1 << 128), 50, "float32"))


def test_draws_without_a_kernel_are_declined():
    assert drawn("gamma", KEY, 0, 4, "float64", np.ones(4)) is NotImplemented
    assert drawn("permutation", KEY, 0, 4, "int64", 4) is NotImplemented
    assert drawn("normal", KEY, 0, 4, "float16") is NotImplemented


@pytest.mark.parametrize(
    "call",
    [
        lambda r, d: r.normal((3, 5), device=d), lambda r, d: r.uniform(7, 1.0, 3.0, device=d),
        lambda r, d: r.integers((2, 3), -4, 9, device=d), lambda r, d: r.bits(9, device=d),
        lambda r, d: r.bernoulli(9, 0.3, device=d),
        lambda r, d: r.normal(5, dtype="float16", device=d),
        lambda r, d: r.gamma(4, 2.0, device=d), lambda r, d: r.permutation(6, device=d),
        lambda r, d: r.cauchy((2, 2), dtype="float64", device=d),
    ],
)  # fmt: skip
def test_a_seed_gives_the_same_numbers_on_every_device(call, cuda):
    results = [call(gg.random.Generator(3), d) for d in ("cpu", cuda)]
    np.testing.assert_array_equal(results[0].numpy(), results[1].numpy())
    assert str(results[1].device) == str(gg.device(cuda))


FLOATS = {n: as_dtype(n) for n in ("float64", "float32", "float16", "bfloat16")}


@pytest.mark.parametrize("n", [1, 8, 1025])
@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout_kernel_matches_its_formula_bitwise(dtype, n):
    x = np.random.default_rng(0).normal(size=n + 1).astype(FLOATS[dtype])
    for view in (x[1:], x[:0:-1]):  # unaligned, and reversed
        place = {"key": KEY, "first": 6, "p": 0.3}
        desired = gg.OPS["stream_dropout"].bare(NUMPY)(view, **place)
        for schedule in shim.SCHEDULES:
            with shim.running(schedule):
                actual = random.stream_dropout(NUMPY, view, **place)
            assert_same(actual, desired)


@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout_on_a_device_matches_the_cpu_and_saves_no_mask(dtype, cuda):
    results = []
    for device in ("cpu", cuda):
        generator = gg.random.Generator(5)
        x = gg.constant(np.arange(1.0, 21.0), dtype=FLOATS[dtype], device=device)
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = gg.nn.dropout(x, 0.3, generator=generator)
        results.append((y, tape.gradient(y, x), generator.state["counter"]))
        assert device == "cpu" or gg.OPS["stream_dropout"].saves == ()
    for mine, theirs in zip(*[f[:2] for f in results], strict=True):
        assert_same(theirs.numpy(), mine.numpy())
    assert results[0][2] == results[1][2]


def test_traced_dropout_on_a_device_draws_anew_at_each_replay(cuda):
    x, generator = gg.ones(64, device=cuda), gg.random.Generator(5)
    eager = [gg.nn.dropout(x, generator=gg.random.Generator(5)).numpy()]
    dropped = gg.function(lambda x: gg.nn.dropout(x, generator=generator))
    results = [dropped(x).numpy() for _ in range(3)]
    np.testing.assert_array_equal(results[0], eager[0])
    assert not (results[1] == results[2]).all()


@needs_nvrtc
@pytest.mark.parametrize("real", ["float, unsigned", "double, Word"])
def test_kernels_write_16_bytes_without_fma(real):
    kernel = nvrtc.compile_for("sm_90", launch.full_source("random.cu"), f"draw<{real}, Normal>")
    assert kernel.spilled == 0
    assert "st.global.v4" in kernel.ptx or "st.global.v2" in kernel.ptx
    assert "fma." not in kernel.ptx
