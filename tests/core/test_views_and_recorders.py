"""A write through a view is an op on the root, whoever made the view and when."""

import copy

import numpy as np
import pytest

import gpugrad as gg

VIEWS = {
    "tail": lambda a: a[1:],
    "every other": lambda a: a[::2],
    "reversed": lambda a: a[::-1],
    "transposed": lambda a: a.T,
    "tail of a transposed one": lambda a: a.T[1:],
    "row": lambda a: a[1],
    "row by a loop": lambda a: list(a)[1],
    "part of a row": lambda a: a[0][1:],
}


def _set(w):
    w[0] = 5.0


def _add(w):
    w += 2.0


def _multiply(w):
    w *= 3.0


def _multiply_a_part(w):
    w[1:] *= 3.0


def _multiply_an_element(w):
    w[(0,) * w.ndim] *= 3.0


WRITES = [_set, _add, _multiply, _multiply_a_part, _multiply_an_element]


def _loss(x, weights):
    return (x * x * x * weights).sum()


def _expected(view, write, start, weights):
    """The gradient by central differences of the program in NumPy, where views are memory."""

    def run(x):
        write(view(x))
        return _loss(x, weights)

    gradient = np.zeros_like(start)
    for i in np.ndindex(start.shape):
        step = np.zeros_like(start)
        step[i] = 1e-4
        gradient[i] = (run(start + step) - run(start - step)) / 2e-4
    return gradient


def _by_tape(x, w, write, weights):
    with gg.GradientTape() as tape:
        tape.watch(x)
        write(w())
        y = _loss(x, weights)
    return tape.gradient(y, x)


def _by_paused_tape(x, w, write, weights):
    with gg.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            made = w()
        write(made)
        y = _loss(x, weights)
    return tape.gradient(y, x)


def _by_inner_tape(x, w, write, weights):
    with gg.GradientTape() as outer:
        outer.watch(x)
        made = w()
        with gg.GradientTape() as tape:
            tape.watch(x)
            write(made)
            y = _loss(x, weights)
        inner = tape.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(y, x), inner)
    return inner


def _by_accumulator(x, w, write, weights):
    gradient = np.zeros(x.shape)
    start = x.copy()
    for i in np.ndindex(x.shape):
        direction = np.zeros(x.shape)
        direction[i] = 1.0
        x[...] = start
        with gg.ForwardAccumulator(x, gg.constant(direction)) as acc:
            write(w())
            gradient[i] = acc.jvp(_loss(x, weights)).item()
    return gradient


def _by_graph(x, w, write, weights):
    made = w()
    with gg.Graph().as_default():
        start = copy.copy(x)
        gg.sum(made)  # a Graph numbers what is read
        write(made)
        return gg.gradients(_loss(x, weights), start)[0]


@pytest.mark.parametrize("by", [
    _by_tape, _by_paused_tape, _by_inner_tape, _by_accumulator, _by_graph,
])  # fmt: skip
@pytest.mark.parametrize("is_older", [True, False])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_write_through_a_view_is_differentiated(view, write, is_older, by, rng):
    start, weights = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    x = gg.constant(start)
    made = VIEWS[view](x)
    w = (lambda: made) if is_older else (lambda: VIEWS[view](x))
    gradient = by(x, w, write, gg.constant(weights))
    expected = _expected(VIEWS[view], write, start, weights)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)


def _written(x):
    y = x * 2.0
    w = y[1:]
    y[...] = x * x
    return w  # which has not run its op again


def _read_outside(x, persistent=False):
    with gg.GradientTape(persistent) as tape:
        tape.watch(x)
        w = _written(x)
    assert w.tolist() == [4.0, 9.0]
    return tape.gradient(w, x)


def _by_jvp(x):
    with gg.ForwardAccumulator(x, gg.ones(3)) as acc:
        w = _written(x)
    return gg.concat([gg.zeros(1), acc.jvp(w)])


@pytest.mark.parametrize("gradient", [
    _read_outside, lambda x: _read_outside(x, True), _by_jvp,
    lambda x: gg.grad(lambda x: gg.sum(gg.function(_written)(x)))(x),
    lambda x: gg.sum(gg.jacobian(_written)(x), axis=0),
    lambda x: gg.vjp(_written, x)[1](gg.ones(2))[0],
    lambda x: gg.concat([gg.zeros(1), gg.linearize(_written, x)[1](gg.ones(3))]),
    lambda x: gg.grad(lambda x: gg.sum(gg.recompute_grad(_written)(x)))(x),
    lambda x: gg.vmap(gg.grad(lambda x: gg.sum(_written(x))))(x[None])[0],
], ids=[
    "tape", "persistent", "accumulator", "function", "jacobian", "vjp", "linearize", "recompute",
    "vmap",
])  # fmt: skip
def test_a_view_that_is_first_read_after_the_block_has_a_gradient(gradient):
    assert gradient(gg.constant([1.0, 2.0, 3.0])).tolist() == [0.0, 4.0, 6.0]


@pytest.mark.parametrize("write", [
    lambda x, w, sibling: x.__setitem__((1, 0), 10.0),
    lambda x, w, sibling: sibling.__setitem__((1, 0), 10.0),
    lambda x, w, sibling: w.__setitem__((0, 0), 10.0),
], ids=["root", "sibling", "itself"])  # fmt: skip
def test_a_watched_view_keeps_its_gradient_when_its_memory_is_written(write):
    x = gg.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    w, sibling = x[1:], x[:2]
    with gg.GradientTape() as tape:
        tape.watch(w)
        write(x, w, sibling)
        y = gg.sum(w * w)
    assert tape.gradient(y, w).tolist() == [[0.0, 8.0], [10.0, 12.0]]
    assert x[1, 0].item() == 10.0


def test_a_simulation_steps_an_interior_made_before_the_tape():
    def simulate(u, interior, steps=3):
        for _ in range(steps):
            interior += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])

    start = np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    u = gg.constant(start)
    interior = u[1:-1]
    with gg.GradientTape() as tape:
        tape.watch(u)
        simulate(u, interior)
        y = gg.sum(u * u)
    expected = []
    for step in np.eye(5) * 1e-5:
        ends = [start + step, start - step]
        for end in ends:
            simulate(end, end[1:-1])
        expected.append((np.sum(ends[0] ** 2) - np.sum(ends[1] ** 2)) / 2e-5)
    np.testing.assert_allclose(tape.gradient(y, u), expected, rtol=1e-8)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_constant_has_a_gradient_in_a_graph(how):
    with gg.Graph().as_default():
        x = gg.constant([1.0, 2.0])
        assert gg.gradients(gg.sum(how(x) * 2.0), x)[0].tolist() == [2.0, 2.0]


def test_loops_that_begin_with_a_constant_of_a_graph_have_a_gradient():
    with gg.Graph().as_default():
        c = gg.constant(2.0)
        loop = gg.while_loop(
            lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * c), (gg.constant(0), c)
        )
        last, _ = gg.scan(lambda carry, t: (carry * c, carry), c, gg.ones(3))
        chosen = gg.cond(c > 0, lambda v: v * c, lambda v: v, c)
        grads = [gg.gradients(y, c)[0].item() for y in (loop[1], last, chosen)]
    assert grads == [12.0, 32.0, 4.0]
