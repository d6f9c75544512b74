"""Tensors that a tape watches, in the place of an op's parameters."""

import inspect

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core.backend import is_inexact
from gpugrad.errors import DTypeError

WITHOUT_SLOPE = {("lstsq", "rcond")}  # handed to pinv as an array, which has no gradient either
BOUNDS = {"q": (0, 1, 100)}  # there is no value beyond, for a difference
WITH_PARAMETERS = [n for n, op in gg.OPS.items() if op.differentiable and op.params]


def values_of(call, arrays, params):
    """The sum of the real parts of each result."""
    out = call(*arrays, **params)
    outs = out if isinstance(out, tuple) else (out,)
    return [gg.sum(gg.real(o)) for o in outs if is_inexact(o.dtype)]


def as_float(value):
    """The value of a parameter as a float64 array; 1.01 for None, a string, or no value."""
    try:
        return np.asarray(1.01 if value is None else value, np.float64)
    except (TypeError, ValueError):
        return np.asarray(1.01)


def calls_with(op):
    """Every sample's arrays and parameters, the name of one parameter, and its value as floats."""
    for args, keywords in list(op.samples(np.random.default_rng(0)))[:3]:
        arrays, rest = args[: len(op.arrays)], args[len(op.arrays) :]
        params = {**dict(zip(op.params, rest, strict=False)), **keywords}
        for name, default in op.params.items():
            given = params.get(name, default)
            value = None if given is inspect.Parameter.empty else given
            yield arrays, {k: v for k, v in params.items() if k != name}, name, as_float(value)


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_watched_tensor_in_a_parameter_is_differentiated_or_refused(name):
    op = gg.OPS[name]
    for arrays, params, parameter, value in calls_with(op):
        for watch in (False, True) if (name, parameter) not in WITHOUT_SLOPE else ():
            t = gg.constant(value)
            xs = [gg.constant(a) if isinstance(a, np.ndarray) else a for a in arrays]
            with gg.GradientTape(persistent=True) as tape:
                tape.watch(t)
                if watch:
                    tape.watch([x for x in xs if hasattr(x, "dtype") and is_inexact(x.dtype)])
                try:
                    results = values_of(op.eager, xs, {**params, parameter: t})
                except Exception:  # the message is the subject of other tests
                    continue
            if not results:
                continue
            grads = [tape.gradient(r, t) for r in results]
            where = f"{name}({parameter}={value})"
            assert any(g is not None for g in grads), f"{where} loses its gradient"
            h = 1e-6
            if any(bound in value for bound in BOUNDS.get(parameter, ())):
                continue
            beside = [
                values_of(op.eager, xs, {**params, parameter: (value + d).tolist()})
                for d in (h, -h)
            ]
            for g, up, down in zip(grads, *beside, strict=True):
                slope = (up - down) / (2 * h)
                got = 0.0 if g is None else gg.sum(g).item()
                assert abs(got - slope.item()) <= 1e-4 * (1 + abs(got)), where


@pytest.mark.parametrize("read", [lambda v: v, lambda v: v * 1.0], ids=["Variable", "Tensor"])
def test_watched_parameter_without_a_gradient_is_named_with_the_way_out(read):
    v = gg.Variable(1.0)
    with gg.GradientTape() as tape:
        beta = read(v)
        with pytest.raises(DTypeError, match=r"softplus: .* beta=.*gg.stop_gradient\(beta\)"):
            gg.softplus(gg.ones(2), beta=beta)
        y = gg.softplus(gg.ones(2), beta=gg.stop_gradient(beta))
    assert tape.gradient(y, v) is None


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_a_refused_parameter_is_named_whether_the_array_is_watched_or_not(name):
    op = gg.OPS[name]
    if op.is_opened or op.outputs > 1 or op.variadic:
        return
    for arrays, params, parameter, value in calls_with(op):
        messages = []
        for watch in (False, True):
            t = gg.constant(value)
            xs = [gg.constant(a) if isinstance(a, np.ndarray) else a for a in arrays]
            with gg.GradientTape() as tape:
                tape.watch(t)
                if watch:
                    tape.watch([x for x in xs if hasattr(x, "dtype") and is_inexact(x.dtype)])
                try:
                    op.eager(*xs, **{**params, parameter: t})
                except DTypeError as error:
                    messages.append(str(error))
                except Exception:  # it does not take the value
                    messages.append("")
        if any("gets no gradient here" in message for message in messages):
            assert all(f"{name}: " in m and f"{parameter}=" in m for m in messages), messages


@pytest.mark.parametrize("bound", ["low", "high"])
def test_watched_bound_of_truncated_normal_is_refused(bound):
    t = gg.constant(0.5)
    with pytest.raises(DTypeError, match=rf"truncated_normal: .* {bound}=.*gg.stop_gradient"):
        gg.grad(lambda t: gg.sum(gg.random.truncated_normal(3, **{bound: t})))(t)
    gg.random.truncated_normal(3, **{bound: t})


def test_watched_tensor_in_a_tuple_in_a_parameter_is_refused():
    v = gg.Variable(3.0)
    with gg.GradientTape(), pytest.raises(DTypeError, match="pad"):
        gg.pad(gg.ones(2), 2, constant_values=(v, 1.0))


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_gradient_by_a_quantiles_level_is_the_slope_between_neighbours(name):
    x, q = gg.constant([8.0, 1.0, 2.0, 4.0]), gg.constant(np.array([0.2, 0.9, 0.0, 1.0]))
    slopes = gg.grad(lambda q: gg.sum(gg.OPS[name].eager(x, q)))(q)
    np.testing.assert_allclose(slopes, [3.0, 12.0, 0.0, 0.0])
    steps = gg.grad(lambda q: gg.sum(gg.OPS[name].eager(x, q, method="lower")))(q)
    np.testing.assert_allclose(steps, np.zeros(4))
