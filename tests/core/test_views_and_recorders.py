"""A write through a view is an op on the root, whoever made the view and when."""

import contextlib
import copy

import numpy as np
import pytest
from comparing import same_unless_compiled

import gpugrad as gg
from gpugrad.core.views import View

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


WRITERS = {
    "x *= 2": lambda a: a.__imul__(2.0),
    "out=": lambda a: np.multiply(a, 2.0, out=a),
    "out= and where=": lambda a: np.multiply(a, 2.0, out=a, where=np.arange(a.size) < 1),
    "put": lambda a: np.put(a, [0], [7.0]),
    "put_along_axis": lambda a: np.put_along_axis(a, np.array([1]), 7.0, 0),
    "putmask": lambda a: np.putmask(a, np.arange(a.size) < 1, 7.0),
    "place": lambda a: np.place(a, np.arange(a.size) < 1, 7.0),
    "copyto": lambda a: np.copyto(a, 7.0, where=np.arange(a.size) < 1),
    "add.at": lambda a: np.add.at(a, np.array([0, 0]), 7.0),
    "flat": lambda a: a.flat.__setitem__(1, 7.0),
    "sort": lambda a: a.sort(),
    "partition": lambda a: a.partition(1),
    "cumsum": lambda a: a.cumsum(out=a),
    "nan_to_num": lambda a: np.nan_to_num(a, copy=False),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=list(WRITERS))
@pytest.mark.parametrize("through", ["root", "sibling", "itself", "older"])
def test_a_function_that_writes_differentiates_what_it_keeps(write, through):
    start, weights = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0])

    def written(x, w, sibling):
        write({"root": x, "sibling": sibling}.get(through, w))
        return w * w * weights

    def run(last):
        x = np.append(start[: start.size - last.size], last)
        return written(x, x[1:], x[:]).sum()

    x = gg.constant(start)
    w, sibling = x[1:], x[:]
    source, point = (x, start) if through == "older" else (w, start[1:])
    with gg.GradientTape() as tape:
        tape.watch(source)
        y = gg.sum(written(x, w, sibling))
    steps = 1e-5 * np.eye(point.size)
    expected = [(run(point + step) - run(point - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(tape.gradient(y, source), expected, 1e-6, 1e-6)


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


WAYS = {
    "slice": lambda xp, a: a[1:, ::-1],
    "row by a loop": lambda xp, a: list(a)[1],
    "new axis": lambda xp, a: a[None, ..., 1:],
    "transposed": lambda xp, a: xp.swapaxes(a.T[1:], 0, 1),
    "moved axis": lambda xp, a: xp.moveaxis(a, 0, -1),
    "reshaped": lambda xp, a: xp.ravel(xp.reshape(a, (9, 1)))[2:],
    "squeezed": lambda xp, a: xp.squeeze(xp.expand_dims(a, axis=1), axis=1),
    "turned": lambda xp, a: xp.rot90(xp.flip(a, axis=0)),
    "split": lambda xp, a: xp.split(a, 3, axis=1)[2],
    "real part": lambda xp, a: xp.real(a),
    "at least 3d": lambda xp, a: xp.atleast_3d(a),
    "broadcast": lambda xp, a: xp.broadcast_to(a[1:], (2, 2, 3)),
    "broadcast arrays": lambda xp, a: xp.broadcast_arrays(a, np.ones((2, 1, 1)))[0],
    "diagonal": lambda xp, a: xp.diagonal(a, 1),
    "diagonal by einsum": lambda xp, a: xp.einsum("ii->i", a),
    "transposed by einsum": lambda xp, a: xp.einsum("ij->ji", a),
    "windows": lambda xp, a: _windows(xp)(a, 2, axis=1),
    "windows of both axes": lambda xp, a: _windows(xp)(a, (2, 3)),
    "row of windows": lambda xp, a: _windows(xp)(a, 2, axis=0)[1],
    "torch's unfold": lambda xp, a: (
        gg.OPS["windows"].eager(a, 2, axis=0, step=1) if xp is gg else _windows(np)(a, 2, axis=0)
    ),
}


def _windows(xp):
    return xp.sliding_window_view if xp is gg else np.lib.stride_tricks.sliding_window_view


def _cubes(x, w, writes):
    if writes:
        x[0] = 2.0 * x[1]
    return (w * w * w).sum() + (x * x).sum()


def _slopes(view, start, writes, constant):
    """The value in NumPy and its gradient by differences; a `constant` view is that of a copy."""

    def run(x):
        return _cubes(x, view(np, start.copy() if constant else x), writes)

    steps = 1e-5 * np.eye(start.size).reshape(-1, *start.shape)
    slopes = [(run(start + step) - run(start - step)) / 2e-5 for step in steps]
    return run(start.copy()), np.reshape(slopes, start.shape)


def _readings(view, start, writes):
    """By when the view was made: a value, the gradient, and whether it is older than the recorder.

    A view made while a tape is paused counts as older.
    """
    x = gg.constant(start)
    older = view(gg, x)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = _cubes(x, older, writes)
    yield "before a tape", y, tape.gradient(y, x), True

    x = gg.constant(start)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = _cubes(x, view(gg, x), writes)
    yield "in a tape", y, tape.gradient(y, x), False

    x = gg.constant(start)
    with gg.GradientTape() as outer:
        outer.watch(x)
        between = view(gg, x)
        with gg.GradientTape() as inner:
            inner.watch(x)
            y = _cubes(x, between, writes)
        of_inner = inner.gradient(y, x)
    yield "between tapes, the inner one", y, of_inner, True
    yield "between tapes, the outer one", y, outer.gradient(y, x), False

    x = gg.constant(start)
    with gg.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            paused = view(gg, x)
        y = _cubes(x, paused, writes)
    yield "while a tape was paused", y, tape.gradient(y, x), True

    for is_older in (True, False):
        gradient = np.zeros(start.shape)
        for i in np.ndindex(start.shape):
            x, direction = gg.constant(start), np.zeros(start.shape)
            older, direction[i] = view(gg, x), 1.0
            with gg.ForwardAccumulator(x, gg.constant(direction)) as acc:
                y = _cubes(x, older if is_older else view(gg, x), writes)
                gradient[i] = acc.jvp(y).item()
        yield f"an accumulator, older {is_older}", y, gradient, is_older

    for is_older in (True, False):
        x = gg.constant(start)
        older = view(gg, x)
        with gg.Graph().as_default():
            first = copy.copy(x)
            y = _cubes(x, older if is_older else view(gg, x), writes)
            gradient = gg.gradients(y, first)[0]
        yield f"a Graph, older {is_older}", y, gradient, is_older


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_view_shows_writes_and_is_a_constant_only_where_older_and_not_written_since(
    way, writes, rng
):
    view, start = WAYS[way], rng.normal(size=(3, 3))
    for when, y, gradient, is_older in _readings(view, start, writes):
        value, slopes = _slopes(view, start, writes, is_older and not writes)
        np.testing.assert_allclose(y.item(), value, err_msg=when)
        np.testing.assert_allclose(gradient, slopes, 1e-6, 1e-6, err_msg=when)


@pytest.mark.parametrize("way", WAYS)
def test_a_write_through_any_view_reaches_what_it_is_a_view_of_or_raises(way):
    x = gg.zeros((3, 3))
    view = WAYS[way](gg, x)
    if any(kind in way for kind in ("broadcast", "diagonal", "windows", "unfold")):
        with pytest.raises(gg.errors.ArgumentError, match="read-only"):
            view[...] = 1.0
    else:
        view[...] = 1.0
        assert WAYS[way](gg, x).numpy().all()


@pytest.mark.parametrize("numerics", [False, True])
@pytest.mark.parametrize("name", sorted(name for name, op in gg.OPS.items() if op.writes))
def test_a_view_of_a_written_view_shows_later_writes(name, numerics, rng):
    op = gg.OPS[name]
    for (x,), params in op.samples(rng):
        if x.dtype.kind != "f" or not x.size:
            continue

        def program(a, params=params):
            a = gg.positive(a)
            part = a[...]
            part[...] = gg.tanh(a)
            view = op.eager(part, **params)
            a[...] = gg.tanh(a)
            return view * 1

        a = gg.constant(x)
        with gg.debug.nans() if numerics else contextlib.nullcontext(), gg.GradientTape() as tape:
            tape.watch(a)
            recorded = program(a)
        is_copy = type(op.eager(a, **params)) is not View  # an element is a number in NumPy
        wanted = op.eager(gg.tanh(a) if is_copy else gg.tanh(gg.tanh(a)), **params)
        same_unless_compiled(recorded, wanted)
        same_unless_compiled(program(gg.constant(x)), wanted)
        same_unless_compiled(gg.function(program)(a), wanted)


@pytest.mark.parametrize("outer", ["reshape", "transpose", "atleast_2d", "expand_dims", "flip"])
@pytest.mark.parametrize("inner", ["windows", "broadcast_to", "transpose", "flip", "ravel"])
@pytest.mark.parametrize("shape", [(2,), (3,), (3, 2)])
def test_a_view_of_a_view_shows_later_writes_in_traces_as_in_eager_calls(shape, inner, outer, rng):
    params = {"windows": {"size": 2, "axis": 0}, "broadcast_to": {"shape": (2, *shape)},
              "reshape": {"shape": (-1,)}}  # fmt: skip

    def program(a):
        a = gg.positive(a)
        part = a[...]
        part[...] = gg.tanh(a)
        view = gg.OPS[inner].eager(part, **params.get(inner, {}))
        view = gg.OPS[outer].eager(view, **params.get(outer, {}))
        a[...] = gg.tanh(a)
        return view * 1

    a = gg.constant(rng.normal(size=shape))
    expected = program(a)
    same_unless_compiled(gg.function(program)(a), expected)
    with gg.GradientTape() as tape:
        tape.watch(a)
        recorded = program(a)
    same_unless_compiled(recorded, expected)
