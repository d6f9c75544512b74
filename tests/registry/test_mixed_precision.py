"""gg.mixed_precision: what each op computes in, in every mode."""

import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core.settings import mixed_dtype
from gpugrad.errors import ArgumentError
from gpugrad.registry.record import forget

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3)).astype("f4")
HALF = ["bfloat16", "float16"]


@pytest.fixture(autouse=True)
def seeded():
    gg.set_seed(0)  # whatever other tests have drawn


def policies(which):
    return sorted(name for name, op in gg.OPS.items() if op.mixed == which)


def first_call(op):
    """The arguments of the first sample with float arrays, as float32 Tensors."""
    for args, keywords in op.samples(np.random.default_rng(0)):
        flat = args[0] if op.variadic else args
        if any(np.asarray(a).dtype.kind == "f" for a in flat if a is not None):

            def cast(a):
                return gg.constant(a, "float32") if np.asarray(a).dtype.kind == "f" else a

            if op.variadic:
                return [[cast(a) for a in args[0]]], keywords
            return [a if a is None else cast(a) for a in args], keywords
    raise AssertionError(f"{op.name} has no sample with floats")


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", policies("half"))
def test_products_are_computed_in_16_bits(name, dtype):
    op = gg.OPS[name]
    args, keywords = first_call(op)
    with gg.mixed_precision(dtype):
        out = op.eager(*args, **keywords)
        again = gg.function(lambda: op.eager(*args, **keywords))()
    half = [gg.astype(a, dtype) if isinstance(a, gg.Tensor) else a for a in args]
    desired = op.eager(*half, **keywords)
    outs, wanted, traced = (t if isinstance(t, tuple) else (t,) for t in (out, desired, again))
    for a, b, c in zip(outs, wanted, traced, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.numpy(), b.numpy())
        np.testing.assert_array_equal(c.numpy(), b.numpy())
    assert outs[0].dtype == dtype


@pytest.mark.parametrize("name", policies("float32"))
def test_sums_and_losses_of_16_bit_floats_are_float32(name):
    op = gg.OPS[name]
    args, keywords = first_call(op)
    args = [gg.astype(a, "bfloat16") if isinstance(a, gg.Tensor) else a for a in args]
    with gg.mixed_precision("bfloat16"):
        out = op.eager(*args, **keywords)
    desired = op.eager(
        *[gg.astype(a, "float32") if isinstance(a, gg.Tensor) else a for a in args], **keywords
    )
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out.numpy(), desired.numpy())


def step(w, x):
    with gg.GradientTape() as tape:
        y = gg.layer_norm(gg.nn.gelu(x @ w))
        loss = gg.sum(gg.exp(y) * y)
    return loss, tape.gradient(loss, w), y


@pytest.mark.parametrize("dtype", HALF)
def test_variables_and_their_gradients_stay_float32(dtype):
    w = gg.Variable(RNG.normal(size=(3, 5)).astype("f4"))
    exact, exact_gradient, _ = step(w, X)
    with gg.mixed_precision(dtype):
        loss, gradient, y = step(w, X)
        traced = gg.function(step)(w, X)
    assert (y.dtype, loss.dtype, gradient.dtype) == (dtype, "float32", "float32")
    np.testing.assert_allclose(loss.numpy(), exact.numpy(), rtol=3e-2)
    np.testing.assert_allclose(gradient.numpy(), exact_gradient.numpy(), rtol=0.2, atol=0.2)
    for a, b in zip(traced, (loss, gradient, y), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.numpy().astype("f4"), b.numpy().astype("f4"), rtol=2e-2)
    after = step(w, X)
    np.testing.assert_array_equal(after[0].numpy(), exact.numpy())


def test_float64_and_plain_numbers_stay():
    with gg.mixed_precision("bfloat16"):
        assert (gg.constant(X, "float64") @ X.T.astype("f8")).dtype == np.float64
        assert gg.exp(gg.constant(X, "float64")).dtype == np.float64
        assert gg.power(gg.constant(X, "bfloat16"), 2).dtype == np.float32
        assert (X @ gg.constant(X.T)).dtype == ml_dtypes.bfloat16


def test_bodies_of_composites_and_rules_compute_in_the_dtypes_that_they_get():
    """Else a tape would change a result: composites are opened on Tensors only."""
    a = gg.constant(X.T @ X + np.eye(3, dtype="f4"))
    composites = {
        "linalg.matrix_power": lambda x: gg.linalg.matrix_power(x, 3),
        "kron": lambda x: gg.kron(x, x),
        "softmax": lambda x: gg.softmax(x),
        "nn.rms_norm": lambda x: gg.nn.rms_norm(x),
    }
    for name, f in composites.items():
        exact, exact_gradient = f(a), gg.grad(lambda x, f=f: gg.sum(f(x) ** 2))(a)
        with gg.mixed_precision("bfloat16"):
            plain = f(a)
            with gg.GradientTape() as tape:
                tape.watch(a)
                taped = f(a)
            second = gg.grad(lambda x, f=f: gg.sum(gg.grad(lambda y: gg.sum(f(y) ** 2))(x)))(a)
            gradient = gg.grad(lambda x, f=f: gg.sum(f(x) ** 2))(a)
        for result in (plain, taped):
            assert result.dtype == np.float32, name
            np.testing.assert_array_equal(result.numpy(), exact.numpy(), err_msg=name)
        np.testing.assert_array_equal(gradient.numpy(), exact_gradient.numpy(), err_msg=name)
        assert second.dtype == np.float32


def test_forward_mode_and_second_order_keep_their_dtypes():
    w = gg.constant(RNG.normal(size=(3, 5)).astype("f4"))

    def f(w):
        return gg.sum(gg.tanh(X @ w))

    with gg.mixed_precision("bfloat16"):
        _, tangent = gg.jvp(f, (w,), (w,))
        hessian_product = gg.hvp(f, (w,), (w,))
    exact = gg.hvp(f, (w,), (w,))
    assert tangent.dtype == np.float32
    a, b = (t[0] if isinstance(t, tuple) else t for t in (hessian_product, exact))
    assert a.dtype == np.float32
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0.2, atol=0.1)


def test_blocks_nest_and_belong_to_their_thread():
    seen = []
    with gg.mixed_precision("float16"):
        with gg.mixed_precision(None):
            assert (gg.constant(X) @ X.T).dtype == np.float32
        with gg.mixed_precision("bfloat16"):
            assert mixed_dtype() == ml_dtypes.bfloat16
        thread = threading.Thread(target=lambda: seen.append(mixed_dtype()))
        thread.start()
        thread.join()
        assert (gg.constant(X) @ X.T).dtype == np.float16
    assert seen == [None]
    assert mixed_dtype() is None

    @gg.mixed_precision("bfloat16")
    def product(x):
        return x @ x.T

    assert product(gg.constant(X)).dtype == ml_dtypes.bfloat16


def test_a_user_s_op_may_say_what_it_computes_in():
    @gg.op(vjp=[lambda xp, g: g * 2], mixed="float32", samples=None)
    def doubled_for_this_test(xp, x, /):
        return x * 2

    try:
        with gg.mixed_precision("bfloat16"):
            assert doubled_for_this_test(gg.constant(X, "bfloat16")).dtype == np.float32
    finally:
        dict.pop(gg.OPS, "doubled_for_this_test")
        forget("doubled_for_this_test")


@pytest.mark.parametrize("dtype", ["float32", "int8", "nothing", 3.0])
def test_other_dtypes_raise(dtype):
    with pytest.raises(ArgumentError, match="mixed_precision"):
        gg.mixed_precision(dtype)


LAYERS = {
    "Dense": (lambda: gg.nn.Dense(8, 8), (4, 8)),
    "Conv2d": (lambda: gg.nn.Conv2d(8, 8, 3), (2, 8, 5, 5)),
    "attention": (lambda: gg.nn.TransformerBlock(8, 2, causal=True), (2, 3, 8)),
    "LSTM": (lambda: gg.nn.LSTM(8, 8), (2, 3, 8)),
    "GRU": (lambda: gg.nn.GRU(8, 8, use_bias=False), (2, 3, 8)),
    "norms": (
        lambda: gg.nn.Sequential(
            gg.nn.Dense(8, 8), gg.nn.LayerNorm(8), gg.nn.RMSNorm(8), gg.nn.BatchNorm(8)
        ),
        (4, 8),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_train_in_mixed_precision(name):
    make, shape = LAYERS[name]
    layer, x = make(), RNG.normal(size=shape).astype("f4")

    def gradients():
        with gg.GradientTape() as tape, gg.nn.training(False):
            y = layer(x)
            y = y[0] if isinstance(y, tuple) else y
            loss = gg.mean(y * y * gg.tanh(y + 1))
        return loss, *tape.gradient(loss, layer.trainable_variables)

    exact = gradients()
    with gg.mixed_precision("bfloat16"):
        for results in (gradients(), gg.function(gradients)()):
            for a, b in zip(results, exact, strict=True):
                assert a.dtype == np.float32
                scale = np.abs(b.numpy()).max()
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0.1, atol=0.05 * scale)


def test_float16_with_a_loss_scale_skips_a_step_that_overflows():
    w = gg.Variable(np.full((3, 1), 1e-4, "f4"))
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.1), initial_scale=2.0**15)

    @gg.function
    def step(x):
        with gg.mixed_precision("float16"), gg.GradientTape() as tape:
            loss = optimizer.scale_loss(gg.sum((x @ w) ** 2))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])

    before = w.numpy()
    step(gg.constant(np.full((4, 3), 60000.0, "f4")))  # its products are infinite in float16
    np.testing.assert_array_equal(w.numpy(), before)
    step(gg.constant(X))
    assert np.any(w.numpy() != before)


def test_ops_ask_for_the_precision_only_once_it_was_used():
    program = """
import gpugrad as gg
from gpugrad.registry.function_text import source
x = gg.ones((2, 2))
x @ x
assert "mixed" not in source(gg.OPS["matmul"])
with gg.mixed_precision("bfloat16"):
    assert (x @ x).dtype == "bfloat16"
assert "mixed" in source(gg.OPS["matmul"]) and "mixed" not in source(gg.OPS["tanh"])
assert (x @ x).dtype == "float32"
"""
    subprocess.run([sys.executable, "-c", program], check=True)
