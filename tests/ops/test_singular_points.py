"""Gradients at singular points: behind an overflow, and behind a mask.

A gradient of exactly 0 absorbs an infinite factor only if an op such as `where` chose another
branch. The 0 of 1 / inf behind an overflow is none, nor that of ``square`` at 0: the gradient must
be right, infinite or NaN.
"""

import contextlib
import itertools

import numpy as np
import pytest
from hostile import ENDLESS
from taping import tape_gradient, taped

import gpugrad as gg
from gpugrad.errors import DeviceError, GpugradError, NumericsError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

OVERFLOWS = {"exp": gg.exp, "-exp": lambda x: -gg.exp(x)}  # at 100, in float32
ZERO_BY_CONVENTION = {
    "nan_to_num": "it replaces what is not finite, which is a mask",
    "cumulative_logsumexp": "-inf has no weight: that is how scores are masked",
    "flash_attention": "-inf has no weight: that is how scores are masked",
}


OF_SCIPY = {"tklmbda": "SciPy's own values are wrong where lambda is below -1e40"}


def _first_sample(op):
    """The first small sample with elements.

    None for `linalg` but its norms: LAPACK may hang on infinities, and an eigenvector of a matrix
    of equal numbers is arbitrary.
    """
    if ("linalg" in op.home and not op.home.endswith("norms")) or op.variadic or op.samples is None:
        return None
    for args, keywords in op.samples(np.random.default_rng(0)):
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        if arrays and all(0 < a.size < 30 for a in arrays):
            return args, keywords
    return None


def _positions(op, args):
    """The positions of the float arguments that have a gradient."""
    rules = op.rules or [True] * len(args)
    return [
        k
        for k, (a, rule) in enumerate(zip(args, rules, strict=False))
        if getattr(a, "dtype", 0) == np.float64 and rule and not getattr(rule, "is_missing", False)
    ]


def _sum_of_floats(results):
    results = results if isinstance(results, (tuple, list)) else (results,)
    return sum(gg.sum(gg.real(r)) for r in results if r.dtype.kind in "fc")


def _value_and_gradient(op, sample, k, inner, x):
    """The sum of an op's results, and its gradient by x where argument k starts with inner(x).

    None if nothing differentiable connects them.
    """
    args, keywords = sample
    args = [np.asarray(a, x.dtype) if getattr(a, "dtype", 0) == np.float64 else a for a in args]
    first = np.arange(args[k].size).reshape(args[k].shape) == 0

    def f(x):
        changed = [gg.where(first, inner(x), a) if i == k else a for i, a in enumerate(args)]
        return _sum_of_floats(op.eager(*changed, **keywords))

    tape, value = taped(f, x)
    gradient = tape.gradient(value, x) if isinstance(value, gg.Tensor) else None
    return None if gradient is None else (value.item(), gradient.item())


DIFFERENTIABLE = sorted(
    n for n, op in gg.OPS.items() if op.differentiable and n not in ENDLESS and _first_sample(op)
)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.thin(3)
def test_gradient_behind_an_overflow_is_never_finite_and_wrong(name):
    op = gg.OPS[name]
    args, _ = sample = _first_sample(op)
    for k, inner in itertools.product(_positions(op, args), OVERFLOWS.values()):
        try:
            single = _value_and_gradient(op, sample, k, inner, gg.constant(100.0, gg.float32))
            if single is None or not np.isfinite(single[1]) or np.isnan(single[0]):
                continue
            double = _value_and_gradient(op, sample, k, inner, gg.constant(100.0, gg.float64))
        except GpugradError:
            continue
        if np.isfinite(double[1]) and name not in ZERO_BY_CONVENTION | OF_SCIPY:
            np.testing.assert_allclose(single[1], double[1], 1e-3, 1e-6)


@pytest.mark.parametrize("op", [gg.asinh, gg.log10, gg.log2])
def test_slope_at_large_numbers_does_not_overflow(op):
    x = np.array([1e19, 1e30, 3e38])
    single = gg.grad(lambda x: gg.sum(op(x)))(gg.constant(x, gg.float32))
    double = gg.grad(lambda x: gg.sum(op(x)))(gg.constant(x, gg.float64))
    np.testing.assert_allclose(single.numpy(), double.numpy(), 1e-5)


LOST = {  # functions of 100 in float32: an infinite intermediate value, then a slope of 1 / inf
    "log": lambda x: gg.log(1 + gg.exp(x)),
    "scaled": lambda x: 1e-30 * gg.log(1e-10 * gg.exp(x)),
    "log10": lambda x: gg.log10(gg.cosh(x)),
    "sum": lambda x: gg.log(gg.sum(gg.exp(gg.stack([x, x])))),
    "product": lambda x: gg.log(gg.exp(x) * gg.exp(x)),
    "power": lambda x: gg.log(x ** (50 * gg.ones_like(x))),
    "gamma": lambda x: gg.log(gg.special.gamma(x)),
    "sqrt of a square": lambda x: gg.sqrt(gg.square(1e18 * x)),
    "x**0.5": lambda x: gg.exp(x) ** 0.5,
    "x**y": lambda x: gg.exp(x) ** (0.5 * gg.ones_like(x)),
    "beside a mask": lambda x: gg.where(x < 0, gg.exp(x) ** 2, gg.log(gg.exp(x))),
}
KEPT = {  # zeros that masks and flat functions make
    "not chosen": lambda x: gg.where(x > 200, gg.log(gg.exp(x)), 0),
    "minimum": lambda x: gg.minimum(gg.log(gg.exp(x)), 1.0),
    "relu": lambda x: gg.relu(-gg.exp(x)),
    "clip": lambda x: gg.clip(gg.sqrt(gg.exp(x)), 0.0, 1.0),
    "index": lambda x: gg.stack([gg.log(gg.exp(x)), 0 * x])[1],
    "maximum of several": lambda x: gg.max(gg.stack([-gg.log(gg.exp(x)), 0 * x])),
    "1 / (1 + exp(x))": lambda x: 1 / (1 + gg.exp(x)),
    "tanh": lambda x: gg.tanh(gg.exp(x)),
}


def _in_every_mode(f, x, cuda):
    """The gradient of f at x: eager, under a tape, traced, replayed, per example, on a device."""
    with gg.GradientTape() as tape:
        tape.watch(x)
        under_a_tape = gg.grad(f)(x)
    traced = gg.function(gg.grad(f))
    traced(gg.full_like(x, 1.5))
    per_example = gg.vmap(gg.grad(f))(gg.stack([x, x]))[0]
    on_device = gg.grad(f)(x.to_device(cuda)).numpy()
    return [g.item() for g in (gg.grad(f)(x), under_a_tape, traced(x), per_example, on_device)]


@pytest.mark.parametrize("name", LOST)
def test_zero_behind_an_overflow_is_not_taken_for_a_mask(name, cuda):
    x = gg.constant(100.0, gg.float32)
    assert np.isnan(_in_every_mode(LOST[name], x, cuda)).all()
    assert np.isnan(gg.jvp(LOST[name], [x], [gg.ones_like(x)])[1].item())


@pytest.mark.parametrize("name", KEPT)
def test_zero_of_a_mask_or_a_flat_function_absorbs_an_overflow(name, cuda):
    gradients = _in_every_mode(KEPT[name], gg.constant(100.0, gg.float32), cuda)
    assert gradients[:-1] == [0.0] * 4
    assert gradients[-1] == 0 or np.isnan(gradients[-1])  # no second pass on a device


def _infinite_slopes(op):
    """Positions k and arguments for which the partial by argument k is infinite."""
    args, _ = _first_sample(op)
    for k, point in itertools.product(_positions(op, args), (0.0, 1.0, -1.0)):
        at = [np.full_like(a, point) if i == k else a for i, a in enumerate(args)]
        with gg.GradientTape() as tape:
            arrays = [gg.constant(a) for a in at]
            tape.watch(arrays[k])
            y = op.eager(*arrays)
        g = tape.gradient(y, arrays[k])
        if g is not None and np.isinf(g.numpy()).any():
            yield k, at


ELEMENTWISE = [n for n in DIFFERENTIABLE if gg.OPS[n].kind == "elementwise"]


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.thin(3)
def test_masked_infinite_slope_leaves_a_gradient_of_zero(name, cuda):
    op = gg.OPS[name]
    for k, at in _infinite_slopes(op):

        def masked(x, k=k, at=at):
            others = [gg.asarray(a, device=x.device) for a in at]
            y = op.eager(*(x if i == k else a for i, a in enumerate(others)))
            return gg.sum(gg.where(x != x, y, 0))

        x = gg.constant(at[k])
        traced = gg.function(gg.grad(masked))
        traced(x)
        gradients = {
            "eager": gg.grad(masked)(x),
            "replay": traced(x),
            "vmap": gg.vmap(gg.grad(masked))(gg.stack([x, x]))[0],
            "forward": gg.jvp(masked, [x], [gg.ones_like(x)])[1],
        }
        with contextlib.suppress(DeviceError):  # an op that runs on the CPU only
            gradients["device"] = gg.grad(masked)(x.to_device(cuda))
        assert not [mode for mode, g in gradients.items() if g.numpy().any()], (k, at)


POINTS = {  # zeros, ties, and where piecewise functions change
    "zeros": lambda a: np.zeros_like(a),
    "ones": lambda a: np.ones_like(a),
    "mixed": lambda a: np.resize([0.0, 1.0, -1.0, 0.0], a.shape),
    "halves": lambda a: np.resize([0.5, -0.5, 2.0], a.shape),
    "far": lambda a: np.resize([3.0, -3.0, 6.0, 20.0], a.shape),
}
OUTSIDE_ITS_DOMAIN = {
    "beta_moment": "x and y add up to 1; elsewhere some of its terms are NaN",
    "chdtri": "its first argument is a probability",
    "csr_lstsq": "it iterates up to a tolerance",
    **dict.fromkeys(
        ("airye", "chdtriv", "chndtr", "chndtridf", "chndtrix", "fdtridfd", "gdtrib",
         "itmodstruve0", "itstruve0", "ncfdtr", "ncfdtri", "spherical_in", "stdtridf"),
        "its second derivative at 0 is a limit that no formula of it has: some modes give NaN",
    ),
}  # fmt: skip


def _losses_at_kinks(op, points):
    """Functions of one array, and the point: it stands in one argument, or in all of a shape."""
    args, keywords = _first_sample(op)
    positions = _positions(op, args)
    for point, k in itertools.product(points, positions):
        for shared in ({k}, {i for i in positions if args[i].shape == args[k].shape}):
            if shared == {k} or k == min(shared):

                def loss(x, shared=shared):
                    y = op.eager(*(x if i in shared else a for i, a in enumerate(args)), **keywords)
                    results = y if isinstance(y, (tuple, list)) else (y,)
                    parts = [gg.real(r) for r in results if r.dtype.kind in "fc"]
                    return sum(
                        gg.sum((r + r * r) * WEIGHTS[: r.size].reshape(r.shape)) for r in parts
                    )

                yield loss, gg.constant(point(args[k]))


WEIGHTS = np.linspace(0.7, 1.3, 1000)


def _reverse_over_reverse(f, x, v):
    return tape_gradient(lambda x: gg.sum(gg.grad(f)(x) * v), x, unconnected_gradients="zero")


@pytest.mark.parametrize("name", sorted({*DIFFERENTIABLE} - {*OUTSIDE_ITS_DOMAIN}))
@pytest.mark.parametrize(
    "points",
    [("zeros",), pytest.param(("mixed", "far", "ones", "halves"), marks=pytest.mark.slow)],
    ids=str,
)
@pytest.mark.thin(3)
def test_second_derivatives_agree_at_kinks(name, points):
    for loss, x in _losses_at_kinks(gg.OPS[name], [POINTS[p] for p in points]):
        v = gg.constant(np.linspace(1.0, 2.0, x.size).reshape(x.shape))
        try:
            value, g = gg.value_and_grad(loss)(x)
        except GpugradError:  # not in the domain, or an integer argument
            continue
        if not np.isfinite(value.numpy()).all() or not np.isfinite(g.numpy()).all():
            continue
        hessian = gg.hessian(loss)(x).numpy().reshape(x.size, x.size) @ v.numpy().ravel()
        for product in (gg.hvp(loss, [x], [v])[0], _reverse_over_reverse(loss, x, v)):
            np.testing.assert_allclose(product.numpy().ravel(), hessian, 1e-6, 1e-8)


@pytest.mark.parametrize(
    "f",
    [
        gg.linalg.vector_norm,
        lambda q: gg.linalg.vector_norm(q) ** 2,
        gg.std,
        lambda q: gg.hypot(q[0], q[0]),
        lambda q: gg.norm(q),
    ],
)
def test_second_derivative_of_a_norm_at_zero_is_zero_in_all_modes(f, cuda):
    for device in ("cpu", cuda):
        q = gg.zeros(2, device=device)
        v = gg.ones(2, device=device)
        assert gg.hvp(f, [q], [v])[0].numpy().tolist() == [0.0, 0.0]
        assert _reverse_over_reverse(f, q, v).numpy().tolist() == [0.0, 0.0]
        assert gg.function(gg.hessian(f))(q).numpy().tolist() == [[0.0, 0.0]] * 2


@pytest.mark.parametrize(
    "f",
    [
        lambda y: gg.where(y > 1, y, 0), lambda y: gg.relu(y - 1), lambda y: gg.nn.relu6(y - 1),
        lambda y: gg.minimum(y, -1.0), lambda y: gg.maximum(1.0, y), lambda y: gg.fmax(y, 1.0),
        lambda y: gg.clip(y, 1.0, 2.0), lambda y: gg.nn.threshold(y, 1.0, 0.0),
        lambda y: gg.nn.hardtanh(y, 1.0, 2.0), lambda y: gg.nn.hardshrink(y),
        lambda y: gg.nn.softshrink(y),
    ],
)  # fmt: skip
def test_mask_absorbs_an_infinite_tangent(f):
    x = gg.constant([0.0, 0.0])  # the slope of the root is infinite there

    def masked(x):
        return f(gg.sqrt(x))

    for g in (gg.grad(lambda x: gg.sum(masked(x)))(x), gg.jvp(masked, [x], [gg.ones_like(x)])[1]):
        assert g.tolist() == [0.0, 0.0]


STEEP = {  # infinite slopes at 0, where the value is 0
    "sqrt": gg.sqrt,
    "power": lambda x: x**0.5,
    "power of an array": lambda x: x ** (0.5 * gg.ones_like(gg.stop_gradient(x))),
    "cbrt": gg.cbrt,
    "acosh": lambda x: gg.acosh(1 + x),
}
BLOCKED = {  # the gradient is 0 whatever x is
    "where": lambda y, x: gg.where(x != x, y * y, 0 * x),
    "product with a mask": lambda y, x: gg.sin(y) * (x > 0),
    "constant 0": lambda y, x: gg.exp(y) * gg.zeros_like(x),
    "index": lambda y, x: gg.square(gg.stack([y, x + 1]))[1] * 0 + gg.stack([y, x])[1] * 0,
    "relu of a square": lambda y, x: gg.relu(gg.square(y) - 1),
    "relu at its kink": lambda y, x: gg.relu(-gg.square(y)),
    "clip": lambda y, x: gg.tanh(gg.clip(y, 1.0, 2.0)),
    "maximum of several": lambda y, x: gg.max(gg.stack([y, x + 1])) * 0,
    "matrix product": lambda y, x: gg.sum(
        gg.reshape(gg.where(x != x, y, 0), (1, 1)) @ gg.ones((1, 2), device=x.device)
    ),
    "masked score": lambda y, x: gg.masked_softmax(
        gg.stack([y, x, 1 + x]), gg.stack([x != x, x == x, x == x])
    )[1] * 0,
    "product with a function's result": lambda y, x: gg.grad(gg.relu)(x - 1) * y,
}  # fmt: skip
LIVE = {  # it is 0 at this point only
    "square": lambda y, x: gg.square(y),
    "product": lambda y, x: y * y,
    "power": lambda y, x: y**2 + y**3.0,
    "cosine": lambda y, x: gg.cos(y),
    "norm": lambda y, x: gg.vecdot(gg.stack([y, y]), gg.stack([y, y])),
    "matrix product": lambda y, x: gg.sum(gg.reshape(y, (1, 1)) @ gg.reshape(y, (1, 1))),
    "product with x": lambda y, x: x * y,
    "difference": lambda y, x: gg.exp(y) - gg.sin(y),
    "branch taken": lambda y, x: gg.where(x == x, gg.square(y), 0),
    "beside a mask": lambda y, x: gg.sum(
        gg.where(gg.arange(2, device=x.device) > 0, gg.stack([y, y]), 0) ** 2
    ),
}


@pytest.mark.parametrize("steep", STEEP)
@pytest.mark.parametrize("outer", [*BLOCKED, *(f"live {name}" for name in LIVE)])
@pytest.mark.thin(3)
def test_zero_times_infinity_is_zero_only_where_a_mask_made_the_zero(steep, outer, cuda):
    live = outer.startswith("live")
    g = LIVE[outer.removeprefix("live ")] if live else BLOCKED[outer]

    def f(x):
        return g(STEEP[steep](x), x)

    x = gg.constant(0.0)
    *gradients, on_device = _in_every_mode(f, x, cuda)
    gradients.append(gg.hessian(f)(x).item())
    assert np.isnan(gradients).all() if live else gradients == [0.0] * len(gradients)
    assert on_device == 0 or np.isnan(on_device)  # no second pass on a device
    if live:
        assert np.isnan(gg.jvp(f, [x], [gg.ones_like(x)])[1].item())


def test_zero_of_another_source_or_of_a_seed_is_that_of_a_mask():
    a, x = gg.constant(0.0), gg.zeros(2)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch([a, x])
        y = gg.square(a) * gg.sqrt(x)
        z = gg.sqrt(x)
    assert tape.gradient(y, x).tolist() == [0.0, 0.0]  # whatever x is: a is held at 0
    assert tape.gradient(y, [a, x])[1].tolist() == [0.0, 0.0]
    assert tape.gradient(z, x, gg.constant([0.0, 1.0])).tolist() == [0.0, np.inf]
    with gg.debug.nans(), pytest.raises(NumericsError, match="gradient of sqrt"):
        gg.grad(lambda x: gg.square(gg.sqrt(x)))(0.0)


def test_second_derivatives_at_a_kink_are_those_of_its_side_without_a_gradient():
    x, one = gg.zeros(2), gg.ones(2)
    for f in (lambda x: gg.sum(gg.abs(x) ** 2), lambda x: gg.linalg.vector_norm(x) ** 2):
        (second,) = gg.hvp(lambda x, f=f: f(x) + gg.sum(x * x), [x], [one])
        assert second.tolist() == [2.0, 2.0]  # of 4


@pytest.mark.parametrize("how", ["inside", "outside"])
def test_replays_that_meet_a_masked_nan_again_are_those_of_a_program_with_masks(how):
    """The first calls the Python function, the second traces it, and later ones replay that."""
    calls, v = [], gg.Variable([1.0, 2.0])

    def f(x):
        calls.append(x)
        return gg.sum(gg.where(x > 0, gg.sqrt(x), 0.0) * x * v)

    traced = gg.function(gg.grad(f) if how == "inside" else f)
    numbers = []
    for x in ([1.0, 4.0], [1.0, 4.0], [4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [1.0, 4.0], [4.0, 0.0]):
        x = gg.constant(x)
        if how == "inside":
            gradient = traced(x)
        else:
            tape, y = taped(traced, x)
            v.assign(v * 2)  # after the call: its gradient is by the value that it has read
            gradient = tape.gradient(y, x)
            v.assign(v / 2)
        np.testing.assert_allclose(gradient, 1.5 * np.sqrt(x.numpy()) * v.numpy())
        numbers.append(len(calls))
    assert numbers == [1, 1, 2, 3, 3, 3, 3]
