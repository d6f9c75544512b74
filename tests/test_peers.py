"""The same short programs in TensorFlow and in gpugrad: values, None and structure agree.

What one feature does has TensorFlow's numbers in tests/autodiff/test_tape.py and in
tests/transforms/test_custom_gradient.py.
"""

import os

import numpy as np
import pytest

import gpugrad as gg

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", exc_type=ImportError)


class _TensorFlow:
    """TensorFlow under the names that the programs use."""

    name = "tensorflow"
    Variable, GradientTape, constant = tf.Variable, tf.GradientTape, tf.constant
    IndexedSlices, gather, custom_gradient = tf.IndexedSlices, tf.gather, tf.custom_gradient
    recompute_grad, ForwardAccumulator = tf.recompute_grad, tf.autodiff.ForwardAccumulator
    sum, max, exp, sin, tanh, sqrt, abs, sign, floor, round, where, matmul = (
        tf.reduce_sum, tf.reduce_max, tf.exp, tf.sin, tf.tanh, tf.sqrt, tf.abs, tf.sign, tf.floor,
        tf.round, tf.where, tf.matmul,
    )  # fmt: skip
    maximum, stack, concat, reshape, softmax, logsumexp, cholesky, relu, real, conj, einsum = (
        tf.maximum, tf.stack, tf.concat, tf.reshape, tf.nn.softmax, tf.reduce_logsumexp,
        tf.linalg.cholesky, tf.nn.relu, tf.math.real, tf.math.conj, tf.einsum,
    )  # fmt: skip
    astype = tf.cast


PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def taped(m, f, *starts, persistent=False):
    """Constants, watched, and a tape that has recorded f of them."""
    xs = [m.constant(s) for s in starts]
    with m.GradientTape(persistent=persistent) as tape:
        for x in xs:
            tape.watch(x)
        y = f(*xs)
    return tape, y, xs


@program
def several_targets(m):
    tape, y, xs = taped(m, lambda x: {"a": x * x, "b": [m.exp(x), x]}, 2.0)
    return tape.gradient(y, xs)


@program
def none_through_steps(m):
    tape, y, xs = taped(m, lambda x: m.floor(x) + m.round(x), [1.5, 2.5])
    return tape.gradient(y, xs)


@program
def inner_and_outer_watch_other_tensors(m):
    x1, x2 = m.constant(2.0), m.constant(5.0)
    with m.GradientTape(persistent=True) as outer:
        outer.watch(x1)
        with m.GradientTape() as inner:
            inner.watch([x1, x2])
            y = x1 * x1 * x2
        d1, d2 = inner.gradient(y, [x1, x2])
    return d1, d2, outer.gradient(d1, [x1, x2]), outer.gradient(d2, [x1, x2])


@program
def second_derivatives(m):
    derivatives = []
    for f in (lambda x: x * x, lambda x: x + x, lambda x: x / 2.0, m.sin, m.abs, m.sign, m.relu,
              lambda x: m.maximum(x, 1.0), lambda x: x**2.0, m.sqrt):  # fmt: skip
        x = m.constant(3.0)
        with m.GradientTape() as outer:
            outer.watch(x)
            with m.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        derivatives.append((g, outer.gradient(g, x)))
    return derivatives[:6] + derivatives[7:]  # relu: TensorFlow says 0, gpugrad None


@program
def variables(m):
    v, w, k = m.Variable(3.0), m.Variable([2.0, 1.0]), m.Variable(5.0, trainable=False)
    with m.GradientTape() as tape:
        y = v * v * k
        v.assign(10.0)
        z = v * w + y
    return tape.gradient(z, [v, w, k]), len(tape.watched_variables())


@program
def gathered_rows(m):
    v = m.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with m.GradientTape(persistent=True) as tape:
        y = m.gather(v, [2, 0, 2]) * 3.0
        z = m.sum(y) + m.sum(v * v)
    rows, dense = tape.gradient(y, v), tape.gradient(z, v)
    assert isinstance(rows, m.IndexedSlices)
    assert not isinstance(dense, m.IndexedSlices)
    return rows, dense


@program
def complex_numbers(m):
    tape, y, xs = taped(
        m, lambda z: m.real(z * z) + m.abs(z) ** 2.0 + m.real(m.conj(z) * 2.0), [1 + 2j, 3 - 1j]
    )
    return tape.gradient(y, xs)


@program
def ties_and_kinks(m):
    tape, y, xs = taped(
        m, lambda x, y: m.max(x) + m.sum(m.maximum(x, y)) + m.sum(m.relu(x)) + m.sum(m.abs(x)),
        [2.0, 2.0, 0.0], [2.0, 1.0, 0.0],
    )  # fmt: skip
    return tape.gradient(y, xs)


@program
def jacobians(m):
    tape, y, xs = taped(
        m, lambda x, a: m.tanh(m.einsum("ij,j->i", a, x)), [1.0, 2.0], [[0.1, 0.2], [0.3, 0.4]]
    )
    return tape.jacobian(y, xs)


@program
def batch_jacobian(m):
    tape, y, (x,) = taped(
        m, lambda x: m.stack([x[:, 0] * x[:, 1], m.exp(x[:, 0])], axis=1), [[1.0, 2.0], [3.0, 4.0]]
    )
    return tape.batch_jacobian(y, x)


@program
def hessian_of_a_network(m):
    x, w = m.constant([[0.5, -1.0]]), m.Variable([[0.1], [0.2]])
    with m.GradientTape() as outer:
        with m.GradientTape() as inner:
            y = m.sum(m.tanh(m.matmul(x, w)) ** 2.0)
        g = inner.gradient(y, w)
    return g, outer.jacobian(g, w)


@program
def custom_second_order(m):
    @m.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * x * x * x

    x = m.constant(2.0)
    with m.GradientTape() as outer:
        outer.watch(x)
        with m.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    return g, outer.gradient(g, x)


@program
def custom_with_unused_result(m):
    @m.custom_gradient
    def two(x):
        return (x * 2.0, x * 3.0), lambda a, b: a * 5.0 + b * 7.0

    x = m.constant(1.0)
    with m.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a, b = two(x)
    return tape.gradient(a, x), tape.gradient(b, x), tape.gradient([a, b], x)


@program
def recomputed(m):
    v = m.Variable(3.0)
    f = m.recompute_grad(lambda x: m.sin(x * v) * x)
    x = m.constant(0.5)
    with m.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, [x, v])


@program
def forward(m):
    x, y = m.constant([1.0, 2.0]), m.constant(3.0)
    with m.ForwardAccumulator([x, y], [m.constant([1.0, 10.0]), m.constant(100.0)]) as acc:
        z = m.softmax(x * y)
        s = m.sum(m.maximum(x, m.constant([2.0, 2.0])))
        n = m.floor(x)
    return acc.jvp([z, s, n, x])


@program
def forward_nested(m):
    x = m.constant(1.3)
    with m.ForwardAccumulator(x, m.constant(1.0)) as outer:
        with m.ForwardAccumulator(x, m.constant(1.0)) as inner:
            y = x**3.5
        d = inner.jvp(y)
    return d, outer.jvp(d), inner.jvp(outer.jvp(y))


@program
def forward_over_reverse(m):
    x = m.constant([1.0, 2.0])
    with m.ForwardAccumulator(x, m.constant([1.0, 10.0])) as acc:
        with m.GradientTape() as tape:
            tape.watch(x)
            y = m.sum(x * x * x) + x[0] * x[1]
        g = tape.gradient(y, x)
    return g, acc.jvp(g)


@program
def reverse_over_forward(m):
    x = m.constant([1.0, 2.0])
    with m.GradientTape() as tape:
        tape.watch(x)
        with m.ForwardAccumulator(x, m.constant([1.0, 10.0])) as acc:
            y = m.sum(m.exp(x) * x)
        d = acc.jvp(y)
    return d, tape.gradient(d, x)


@program
def linear_algebra(m):
    tape, y, xs = taped(
        m, lambda a: m.cholesky(m.matmul(a, a) + m.constant([[3.0, 0.0], [0.0, 3.0]])),
        [[1.0, 0.5], [0.5, 2.0]],
    )  # fmt: skip
    return tape.gradient(y, xs)


@program
def shapes(m):
    def f(x):
        rows = m.reshape(m.concat([x, x * x], axis=0), (2, 4))
        return m.sum(rows[0, 1:3]) * m.logsumexp(x)

    tape, y, xs = taped(m, f, [1.0, 2.0, 3.0, 4.0])
    return tape.gradient(y, xs)


@program
def masked(m):
    tape, y, xs = taped(m, lambda x: m.where(x > 0.0, m.sqrt(m.abs(x)), x * x), [0.0, 4.0, -1.0])
    return tape.gradient(y, xs)


@program
def mixed_precision(m):
    x = m.constant([1.0, 2.0])
    with m.GradientTape() as tape:
        tape.watch(x)
        half = m.astype(x, gg.float16 if m is gg else tf.float16)
        y = m.astype(half * half, gg.float32 if m is gg else tf.float32) * 3.0
    g = tape.gradient(y, [x, half])
    assert [str(np.asarray(t.numpy()).dtype) for t in g] == ["float32", "float16"]
    return g


def plain(result):
    """Results as NumPy arrays; IndexedSlices become dense."""
    if isinstance(result, dict):
        return {k: plain(v) for k, v in result.items()}
    if isinstance(result, (list, tuple)):
        return [plain(v) for v in result]
    if isinstance(result, gg.IndexedSlices):
        return result.to_dense().numpy()
    if isinstance(result, tf.IndexedSlices):
        return tf.convert_to_tensor(result).numpy()
    return result.numpy() if hasattr(result, "numpy") else result


def same(ours, theirs):
    assert type(ours) is type(theirs) or np.isscalar(theirs)
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    elif theirs is not None:
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)
        assert np.shape(ours) == np.shape(theirs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_matches_tensorflow(name):
    same(plain(PROGRAMS[name](gg)), plain(PROGRAMS[name](_TensorFlow)))
