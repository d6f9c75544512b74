"""A Tensor read from a Variable is a value of its own.

The recorders that watch the Variable at that moment see where it comes from; for all others it is
a constant. So a derivative must equal the one with a copy of the numbers in its place.
"""

import itertools

import numpy as np
import pytest
from taping import taped

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.core.variable import Variable

READS = {
    "value": lambda v: v.value(),
    "read_value": lambda v: v.read_value(),
    "convert_to_tensor": gg.convert_to_tensor,
    "asarray": gg.asarray,
    "asarray(copy=True)": lambda v: gg.asarray(v, copy=True),
    "asarray(device=)": lambda v: gg.asarray(v, device="cpu"),
    "constant": gg.constant,
    "constant(dtype=)": lambda v: gg.constant(v, v.dtype),
    "constant(device=)": lambda v: gg.constant(v, device="cpu"),
    "copy": lambda v: v.copy(),
    "to_device": lambda v: v.to_device("cpu"),
    "view": lambda v: v.view(),
    "astype": lambda v: gg.astype(v, v.dtype),
    "reshape": lambda v: gg.reshape(v, v.shape),
    "getitem": lambda v: v[...],
    "dropout in evaluation": gg.nn.training(False)(lambda v: gg.nn.Dropout(0.5)(v)),
    "diff of order 0": lambda v: gg.diff(v, 0),
    "function": lambda v: gg.function(lambda: v.value())(),
    "vmap": lambda v: gg.vmap(lambda k: v.value() + 0 * k)(gg.constant([0.0]))[0],
}


def f(v, old):
    return gg.sum(v * old + (v - old) ** 2 * old + gg.sin(v))


def elements(v, old):
    return v * old + v**2


def by_tape(v, old, persistent=False):
    with gg.GradientTape(persistent) as tape:
        y = f(v, old)
    return tape.gradient(y, v)


def by_nested_tapes(v, old):
    with gg.GradientTape() as outer:
        with gg.GradientTape() as inner:
            y = f(v, old)
        g = inner.gradient(y, v)
    return g, outer.gradient(g, v)


def by_jacobian_of_tape(v, old):
    with gg.GradientTape() as tape:
        y = elements(v, old)
    return tape.jacobian(y, v)


def by_accumulator(v, old):
    with gg.ForwardAccumulator(v, gg.constant([1.0, 2.0])) as acc:
        y = f(v, old)
    return acc.jvp(y)


def by_accumulator_over_tape(v, old):
    with gg.ForwardAccumulator(v, gg.constant([1.0, 2.0])) as acc:
        g = by_tape(v, old)
    return acc.jvp(g)


def by_function(v, old):
    step = gg.function(lambda: by_tape(v, old))
    return [step() for _ in range(3)]


def by_function_of_the_read(v, old):
    step = gg.function(lambda old: by_tape(v, old))
    return [step(old) for _ in range(3)]


def by_tape_of_function(v, old):
    call = gg.function(lambda: f(v, old))
    results = []
    for _ in range(3):
        with gg.GradientTape() as tape:
            y = call()
        results.append(tape.gradient(y, v))
    return results


def by_tape_of_function_of_the_read(v, old):
    call = gg.function(f)
    results = []
    for _ in range(3):
        with gg.GradientTape() as tape:
            y = call(v, old)
        results.append(tape.gradient(y, v))
    return results


def by_branch(v, old):
    @gg.function
    def step(p):
        with gg.GradientTape() as tape:
            y = gg.cond(p, lambda: f(v, old), lambda: 2 * f(v, old))
        return tape.gradient(y, v)

    return [step(gg.constant(p)) for p in (True, False, True)]


def by_vmap(v, old):
    def one(k):
        with gg.GradientTape() as tape:
            y = k * f(v, old)
        return tape.gradient(y, v)

    return gg.vmap(one)(gg.constant([1.0, 2.0]))


def by_tape_of_vmap(v, old):
    with gg.GradientTape() as tape:
        y = gg.vmap(lambda k: k * f(v, old))(gg.constant([1.0, 2.0]))
    return tape.gradient(y, v)


def by_graph(v, old):
    with gg.Graph().as_default():
        return gg.gradients(f(v, old), v)


def by_recomputing(v, old):
    with gg.GradientTape() as tape:
        y = gg.recompute_grad(lambda: f(v, old))()
    return tape.gradient(y, v)


TRANSFORMS = {
    "tape": by_tape,
    "persistent tape": lambda v, old: by_tape(v, old, persistent=True),
    "nested tapes": by_nested_tapes,
    "jacobian of a tape": by_jacobian_of_tape,
    "grad": lambda v, old: gg.grad(lambda v: f(v, old))(v),
    "jacobian": lambda v, old: gg.jacobian(lambda v: elements(v, old))(v),
    "hessian": lambda v, old: gg.hessian(lambda v: f(v, old))(v),
    "hvp": lambda v, old: gg.hvp(lambda v: f(v, old), (v,), (gg.constant([1.0, 2.0]),)),
    "ForwardAccumulator": by_accumulator,
    "ForwardAccumulator over a tape": by_accumulator_over_tape,
    "function": by_function,
    "function of the read": by_function_of_the_read,
    "tape of a function": by_tape_of_function,
    "tape of a function of the read": by_tape_of_function_of_the_read,
    "branch": by_branch,
    "vmap": by_vmap,
    "tape of vmap": by_tape_of_vmap,
    "recompute_grad": by_recomputing,
    "gradients": by_graph,
}


def assert_same(actual, expected):
    pairs = zip(nest.flatten(actual), nest.flatten(expected), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def variable(start=(3.0, 4.0)):
    return gg.Variable(list(start))


def read_outside(read, v):
    return read(v)


def read_in_an_earlier_tape(read, v):
    with gg.GradientTape() as tape:
        old = read(v)
    tape.gradient(old, v)
    return old


def read_while_paused(read, v):
    with gg.GradientTape() as tape, tape.stop_recording():
        return read(v)


def read_in_an_accumulator(read, v):
    with gg.ForwardAccumulator(v, gg.constant([1.0, 1.0])):
        return read(v)


WHERE = [read_outside, read_in_an_earlier_tape, read_while_paused, read_in_an_accumulator]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("assigned", [False, True], ids=["same", "assigned"])
@pytest.mark.thin(3)
def test_read_from_before_is_a_constant(read, transform, assigned):
    for where in WHERE if read in ("value", "constant", "function") else WHERE[:1]:
        v = variable()
        old = where(READS[read], v)
        if assigned:
            v.assign([10.0, 20.0])
        expected = TRANSFORMS[transform](v, gg.constant([3.0, 4.0]))
        assert_same(TRANSFORMS[transform](v, old), expected)


def test_difference_to_the_value_before_an_assignment_has_a_gradient():
    v = gg.Variable(3.0)
    old = v.value()
    with gg.GradientTape() as tape:
        y = v * old
    assert tape.gradient(y, v).item() == 3.0
    v.assign(10.0)
    with gg.GradientTape() as tape:
        y = (v - old) ** 2
    assert tape.gradient(y, v).item() == 14.0


def test_read_while_the_tape_is_paused_is_a_constant_for_that_tape_only():
    v = variable()
    with gg.GradientTape() as outer, gg.GradientTape() as tape:
        with tape.stop_recording():
            old = v.value()
        y = gg.sum(v * old)
    assert tape.gradient(y, v).tolist() == [3.0, 4.0]
    assert outer.gradient(y, v).tolist() == [6.0, 8.0]


def test_read_before_a_nested_tape_is_a_constant_for_the_nested_tape_only():
    v = variable()
    with gg.GradientTape() as outer:
        old = v.value()
        with gg.GradientTape() as inner:
            y = gg.sum(v * v * old)
        g = inner.gradient(y, v)  # 2 v old
    assert g.tolist() == [18.0, 32.0]
    assert outer.gradient(g, v).tolist() == [12.0, 16.0]


def test_read_in_a_traced_function_before_its_tape_is_a_constant():
    v = variable()

    @gg.function
    def step(p):
        old = v.value()
        with gg.GradientTape() as tape:
            y = gg.cond(p, lambda: f(v, old), lambda: 2 * f(v, old))
        with gg.GradientTape() as plain:
            z = f(v, old)
        v.assign_add([1.0, 1.0])
        return tape.gradient(y, v), plain.gradient(z, v), old

    for p in (True, False, True):
        now = gg.constant(v.numpy())
        expected = by_tape(v, now)
        first, second, old = step(gg.constant(p))
        assert_same([first, second, old], [expected if p else 2 * expected, expected, now])


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("read", READS)
@pytest.mark.thin(2)
def test_read_while_recorded_is_the_variable(read, transform, monkeypatch):
    v, plain = variable(), f
    expected = TRANSFORMS[transform](v, v)
    monkeypatch.setitem(globals(), "f", lambda v, old: plain(v, READS[read](v)))
    monkeypatch.setitem(globals(), "elements", lambda v, old: READS[read](v) * v + v**2)
    assert_same(TRANSFORMS[transform](v, v), expected)


def test_read_can_be_watched_and_is_a_source_of_its_own():
    v = variable()
    old = v.value()
    tape, y = taped(lambda old: gg.sum(v * v * old), old)
    g, by_old = tape.gradient(y, [v, old])
    assert g.tolist() == [18.0, 32.0]
    assert by_old.tolist() == [9.0, 16.0]


def arguments_as_variables(op):
    """Each sample's call with Variables for its arrays, and those Variables."""
    for args, keywords in op.samples(np.random.default_rng(0)):
        variables = []

        def variable(a, variables=variables):
            if isinstance(a, list):
                return [variable(x) for x in a]
            if not isinstance(a, np.ndarray) or a.dtype.kind not in "fc":
                return a
            variables.append(Variable(a))
            return variables[-1]

        args = [variable(a) for a in args]
        keywords = {k: variable(a) if k in op.arrays else a for k, a in keywords.items()}
        if variables:
            yield args, keywords, variables


def test_no_op_returns_a_tensor_with_the_number_of_its_argument():
    shared, calls = set(), itertools.count()
    for name, op in gg.OPS.items():
        for args, keywords, variables in arguments_as_variables(op):
            try:
                with gg.GradientTape():
                    results = nest.flatten(op.eager(*args, **keywords))
            except gg.errors.GpugradError:
                continue
            next(calls)
            numbers = {v._id for v in variables}
            if any(getattr(r, "_id", None) in numbers for r in results):
                shared.add(name)
    assert not shared
    assert next(calls) > 2000
