"""gpugrad.bridge: gradients cross to torch and JAX and back, arrays without copies."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad import bridge
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, TraceError

X = np.linspace(-1.0, 2.0, 5, dtype=np.float32)


class Torch:
    """The calls that tests make of torch, by the names that both libraries get here."""

    def __init__(self):
        self.lib = pytest.importorskip("torch")
        self.to, self.come = bridge.to_torch, bridge.from_torch
        self.array, self.tanh, self.sum = self.lib.tensor, self.lib.tanh, self.lib.sum

    def pointer(self, x):
        return x.data_ptr()

    def grad(self, f, times):
        def gradient(x):
            x = x.detach().requires_grad_()
            y = f(x)
            for _ in range(times):
                (y,) = self.lib.autograd.grad(y.sum(), x, create_graph=True)
            return y.detach()

        return gradient


class Jax:
    """The same of JAX."""

    def __init__(self):
        self.lib = pytest.importorskip("jax")
        self.to, self.come = bridge.to_jax, bridge.from_jax
        numpy = self.lib.numpy
        self.array, self.tanh, self.sum = numpy.asarray, numpy.tanh, numpy.sum

    def pointer(self, x):
        return x.unsafe_buffer_pointer()

    def grad(self, f, times):
        for _ in range(times):
            f = self.lib.grad(lambda x, f=f: f(x).sum())
        return f


@pytest.fixture(params=[Torch, Jax], ids=lambda kind: kind.__name__.lower())
def other(request):
    return request.param()


def ours(x):
    return gg.tanh(x) * x


def nth_gradient(f, times):
    for _ in range(times):
        f = gg.grad(lambda x, f=f: gg.sum(f(x)))
    return f


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_gradients_of_any_order_cross_in_both_directions(other, times):
    desired = nth_gradient(ours, times)(gg.constant(X)).numpy()
    there = other.grad(other.to(ours), times)(other.array(X))
    back = nth_gradient(other.come(lambda x: other.tanh(x) * x), times)(gg.constant(X))
    round_trip = nth_gradient(other.come(other.to(ours)), times)(gg.constant(X))
    for actual in (there, back, round_trip):
        np.testing.assert_allclose(np.asarray(actual), desired, rtol=2e-4, atol=1e-5)


def test_no_array_is_copied(other):
    seen = []

    def there(t):
        seen.append(other.pointer(t))
        return t

    def here(t):
        seen.append(t)
        seen.append(gg.exp(t))
        return seen[-1]

    x = gg.zeros(1 << 16, dtype="float32")
    other.come(there)(x)
    a = other.array(np.ones(1 << 16, np.float32))
    b = other.to(here)(a)
    x, a, b = x._data.ctypes.data, other.pointer(a), other.pointer(b)
    for ours, theirs in [
        (x, seen[0]),
        (seen[1]._data.ctypes.data, a),
        (seen[2]._data.ctypes.data, b),
    ]:
        aligned = isinstance(other, Torch) or ours % 64 == 0  # else JAX copies
        assert ours == theirs or not aligned


def test_arguments_and_results_are_nested_and_integers_have_no_gradient(other):
    def f(pair, *, by, name):
        x, k = pair["x"], pair["k"]
        return {"y": x * by, "at": (k + 1, name)}

    there = other.to(f)({"x": other.array(X), "k": other.array([1, 2])}, by=2.0, name="a")
    back = other.come(f)({"x": gg.constant(X), "k": gg.constant([1, 2])}, by=2.0, name="a")
    for result in (there, back):
        np.testing.assert_allclose(np.asarray(result["y"]), 2 * X)
        assert np.asarray(result["at"][0]).tolist() == [2, 3]
        assert result["at"][1] == "a"
    k = gg.constant([0, 2])
    taken = other.come(lambda x, k: (x[k], k))
    assert gg.grad(lambda x: gg.sum(taken(x, k)[0]))(gg.constant(X)).tolist() == [1, 0, 1, 0, 0]
    k = other.array([0, 2])
    picked = other.to(lambda x, k: (gg.take(x, k), k))
    slope = other.grad(lambda x: picked(x, k)[0], 1)(other.array(X))
    assert np.asarray(slope).tolist() == [1, 0, 1, 0, 0]


def test_complex_gradients_keep_their_convention(other):
    z = gg.constant([1.0 + 2.0j, 0.3 - 0.5j])

    def real(t):
        return (t * t * t).real.sum()

    desired = gg.grad(real)(z).numpy()
    assert np.abs(desired.imag).min() > 0
    for f in (other.come(real), other.come(other.to(real))):
        np.testing.assert_allclose(gg.grad(f)(z).numpy(), desired, rtol=1e-5)


def test_tape_differentiates_by_variables_and_twice(other):
    v = gg.Variable(X)
    f = other.come(lambda x: other.sum(other.tanh(x)))
    with gg.GradientTape(persistent=True) as tape:
        y = f(v) * 2.0
    for _ in range(2):
        slope = tape.gradient(y, v)
        np.testing.assert_allclose(slope.numpy(), 2 / np.cosh(X) ** 2, rtol=1e-5)


@pytest.mark.parametrize("within", [gg.function, gg.vmap])
def test_traced_arguments_raise(other, within):
    def tanh_there(x):
        return other.tanh(x)

    with pytest.raises(TraceError, match=r"from_\w+\(tanh_there\).*outside"):
        within(other.come(tanh_there))(gg.constant(X))


def test_gradient_by_variables_that_a_function_reads_raises(other):
    v = gg.Variable(1.0)
    f = other.to(lambda x: x * v)
    with pytest.raises(ArgumentError, match=r"reads the Variables .*functional_call"):
        other.grad(f, 1)(other.array(X))
    v.trainable = False


def test_writes_to_results_reach_nobody(other):
    x = gg.constant(X)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = other.come(lambda t: other.lib.exp(t) if hasattr(other.lib, "exp") else t)(x)
    same = other.come(lambda t: t)(x)
    same[0] = 7.0
    assert x.numpy().tolist() == X.tolist()
    assert tape.gradient(y, x).shape == (5,)


# ---- torch


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_torch_sees_a_write_between_forward_and_backward(torch):
    x = torch.ones(3, requires_grad=True)
    a = x * 1
    y = bridge.to_torch(gg.square)(a)
    a.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_write_to_a_result_in_torch_leaves_the_tape(torch):
    x = torch.ones(3, requires_grad=True)
    y = bridge.to_torch(gg.exp)(x)
    y.mul_(2)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(np.ones(3)), rtol=1e-6)


def test_no_tape_is_kept_without_gradients(torch):
    with torch.no_grad():
        y = bridge.to_torch(gg.exp)(torch.ones(3, requires_grad=True))
    assert not y.requires_grad


def test_parameters_of_torch_must_be_arguments(torch):
    layer = torch.nn.Linear(2, 1)
    x = gg.ones((3, 2))
    with pytest.raises(ArgumentError, match=r"\(1, 2\).*functional_call"):
        gg.grad(lambda x: gg.sum(bridge.from_torch(layer)(x)))(x)
    weights = {k: gg.Variable(p.detach().numpy()) for k, p in layer.named_parameters()}
    called = bridge.from_torch(lambda w, x: torch.func.functional_call(layer, w, (x,)))
    with gg.GradientTape() as tape:
        loss = gg.sum(called(weights, x))
    assert tape.gradient(loss, weights)["weight"].tolist() == [[3.0, 3.0]]
    layer.requires_grad_(False)
    assert gg.grad(lambda x: gg.sum(bridge.from_torch(layer)(x)))(x).shape == (3, 2)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda torch: torch.ones(2).to_sparse(), DTypeError),
        (lambda torch: torch.ones(2, device="meta"), DeviceError),
        (lambda torch: torch.ones(2, dtype=torch.float8_e4m3fn), DTypeError),
    ],
    ids=["sparse", "meta", "float8"],
)
def test_tensor_that_gpugrad_does_not_hold_is_named(torch, make, error):
    with pytest.raises(error, match=r"to_torch\(tanh\): argument 0 \(torch\.\w+ \(2,\) on \w+\)"):
        bridge.to_torch(gg.tanh)(make(torch))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "complex64"])
def test_dtypes_cross_with_gradients(torch, dtype):
    x = torch.ones(3, dtype=getattr(torch, dtype), requires_grad=True)
    bridge.to_torch(lambda t: gg.real(t * t))(x).sum().backward()
    assert x.grad.dtype == x.dtype
    assert x.grad.tolist() == [2, 2, 2]
    slope = gg.grad(lambda t: gg.sum(bridge.from_torch(lambda u: u * u)(t).real))(
        gg.ones(3, dtype=dtype)[::-1]
    )
    assert (slope.dtype.name, slope.tolist()) == (dtype, [2, 2, 2])


# ---- JAX


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


def test_jax_compiles_and_maps_a_function_of_ours(jax):
    f = bridge.to_jax(lambda x: gg.sum(gg.tanh(x)))
    x = jax.numpy.asarray(X)
    desired = 1 / np.cosh(X) ** 2
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), desired, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(x[:, None])[:, 0], desired, rtol=1e-5)


def test_float64_raises_where_jax_would_round_it(jax):
    with pytest.raises(DTypeError, match=r"from_jax.*argument 0 \(float64 .*float32.*enable_x64"):
        bridge.from_jax(jax.numpy.sin)(gg.ones(2, dtype="float64"))
    with pytest.raises(DTypeError, match=r"to_jax.*result 0 \(float64 .*float32.*enable_x64"):
        bridge.to_jax(lambda x: gg.astype(x, "float64"))(jax.numpy.ones(2))
    assert bridge.to_jax(gg.argmax)(jax.numpy.ones(2)).dtype == "int32"
