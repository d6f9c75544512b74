"""Objects that hold a Tensor: the gradient arrives, or the call raises; none is lost."""

import numpy as np
import pytest

import gpugrad as gg
import gpugrad.numpy as gnp


class Opaque:
    """An object whose numbers NumPy reads by methods that leave the tape."""

    def __init__(self, held):
        self.held = held

    def __array__(self, dtype=None, copy=None):
        return np.array(self.held.numpy(), dtype)


class Holder(Opaque):
    """The same, and it returns its Tensor; NumPy's way is never asked."""

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("__array__ was asked")

    def __gpugrad_tensor__(self, dtype=None):
        return self.held


class Sequence(Opaque):
    __array__ = None

    def __len__(self):
        return len(self.held)

    def __getitem__(self, k):
        return self.held.numpy()[k]


def _set(h):
    x = gg.zeros(2)
    x[:] = h
    return x


def _custom(h):
    return gg.custom_gradient(lambda x: (gg.asarray(x) * 3.0, lambda g: [g * 3.0]))(h)


ENTRANCES = {
    "op": lambda h: gg.exp(h),
    "two arrays": lambda h: gg.multiply(h, 3.0),
    "op of a list": lambda h: gg.stack([h, [1.0, 2.0]]),
    "composite": lambda h: gg.softmax(h, axis=0),
    "parameter": lambda h: gg.quantile([1.0, 5.0, 7.0], gg.multiply(h, 0.3)),
    "operator": lambda h: gg.ones(2) * h,
    "reflected": lambda h: [1.0, 2.0] @ gg.asarray(h),
    "method": lambda h: gg.ones(2).dot(h),
    "asarray": lambda h: gg.asarray(h, dtype=gg.float64),
    "in a list": lambda h: gg.asarray([h, h]),
    "constant": lambda h: gg.constant([[h], [h]]),
    "convert": lambda h: gg.convert_to_tensor(h),
    "full": lambda h: gg.full(3, gg.sum(h)) + gg.sum(gg.linspace(h, 3.0, 4)),
    "concat": lambda h: gg.concat([gg.ones(1), h]),
    "set item": _set,
    "numpy's function": lambda h: np.multiply(gg.ones(2), h),
    "gpugrad.numpy": lambda h: gnp.asarray(h) + gnp.exp(h) + gnp.sum(h),
    "random": lambda h: gg.random.Generator(0).normal((2,), h, 1.0),
    "vmap": lambda h: gg.vmap(lambda x: x * x)(h),
    "vmap's closure": lambda h: gg.vmap(lambda x: x * h)(gg.ones((3, 2))),
    "custom_gradient": _custom,
    "recompute": lambda h: gg.recompute_grad(lambda x: gg.multiply(x, x))(h),
    "function": lambda h: gg.function(lambda x: gg.sin(x))(h),
    "function's closure": lambda h: gg.function(lambda x: x * gg.sin(h))(gg.ones(2)),
    "cond": lambda h: gg.cond(True, lambda x: gg.sin(x), lambda x: gg.cos(x), h),
    "scan": lambda h: gg.scan(lambda c, x: (c + x, c), gg.zeros(2), gg.stack([h, h]))[0],
}  # fmt: skip


def _gradient(f, held, argument):
    with gg.GradientTape() as tape:
        tape.watch(held)
        y = f(argument)
    return tape.gradient(y, held)


@pytest.mark.parametrize("name", ENTRANCES)
def test_a_gradient_arrives_or_the_call_raises(name):
    f = ENTRANCES[name]
    for held in (gg.Variable([0.5, 0.7]), gg.constant([0.5, 0.7])):
        exact = _gradient(f, held, held).numpy()
        assert np.abs(exact).sum() > 0
        for kind in (Holder, Opaque, Sequence):
            try:
                got = _gradient(f, held, kind(held))
            except (gg.errors.GpugradError, TypeError):
                if kind is Holder:
                    raise
                continue
            np.testing.assert_allclose(got.numpy(), exact, 1e-6)


def test_sources_optimizers_and_transforms_take_holders():
    v = gg.Variable([1.0, 2.0])
    h = Holder(v)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(h)
        y = gg.multiply(h, h)
    g = tape.gradient(y, [h, {"a": h}])
    assert g[0].tolist() == g[1]["a"].tolist() == tape.gradient(y, h).tolist() == [2.0, 4.0]
    assert tape.jacobian(y, h).shape == (2, 2)
    assert "is not None" in tape.explain(y, h)
    optimizer = gg.optim.SGD(0.5)
    optimizer.apply_gradients([(g[0], h)])
    assert v.tolist() == [0.0, 0.0]
    optimizer.minimize(lambda: gg.sum(gg.multiply(h, 2.0)), [h])
    v.assign(h)
    assert v.tolist() == [-1.0, -1.0]
    for of in (gg.grad(lambda x: gg.sum(x * x)), lambda x: gg.vjp(gg.sum, x)[1](1.0)[0]):
        assert of(h).shape == (2,)
    assert gg.jvp(gg.exp, [h], [h])[1].shape == (2,)
    with gg.Graph().as_default():
        assert gg.gradients(gg.multiply(h, 3.0), [h])[0].tolist() == [3.0, 3.0]
    assert gg.ones(4)[Holder(gg.constant([1, 2]))].shape == (2,)
    assert gg.asarray(h, dtype="float64").dtype == "float64"
    scale = gg.function(lambda x: x * 2.0)  # traced once, not for each object
    assert [float(scale(Holder(gg.constant(k)))) for k in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]


def test_values_that_a_user_reads_stay_allowed():
    v = gg.Variable([1.0, 2.0])
    with gg.GradientTape():
        y = v * v
        assert v.numpy()[0] == float(y[0]) == np.asarray(Opaque(v))[0] == 1.0
        gg.vmap(lambda x: x * np.asarray(Opaque(v))[0])(gg.ones(2))
        assert gg.asarray(Opaque(gg.ones(2))).tolist() == [1.0, 1.0]  # nobody watches it


@pytest.mark.parametrize("read", [lambda o: gg.sin(o.held), lambda o: gg.asarray(o.held.numpy())])
@pytest.mark.parametrize("kind", [gg.Variable, gg.constant])
def test_custom_gradient_names_an_object_whose_gradient_it_would_lose(read, kind):
    held = kind([1.0, 2.0])
    square = gg.custom_gradient(lambda x, owner: (read(owner[0]) * x, lambda g, **_: [g]))
    with gg.GradientTape() as tape:
        tape.watch(held)
        if kind is gg.Variable and "sin" in read.__code__.co_names:  # `variables=` has it
            return
        with pytest.raises(gg.errors.DTypeError, match=r"owner\[0\].*__gpugrad_tensor__"):
            square(2.0, [Opaque(held)])
        unread = gg.custom_gradient(lambda x, owner: (x * 2.0, lambda g: [g]))
        assert float(unread(2.0, Opaque(held))) == 4.0


def test_a_holder_must_return_a_tensor():
    class Wrong:
        def __gpugrad_tensor__(self, dtype=None):
            return 3.0

    with pytest.raises(gg.errors.DTypeError, match=r"Wrong\.__gpugrad_tensor__"):
        gg.exp(Wrong())
