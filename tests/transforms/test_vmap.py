"""vmap: what it maps, how it nests with derivatives, and what it refuses.

test_ops.py checks that every op under vmap equals the loop over examples.
"""

import sys
import threading

import numpy as np
import pytest
from comparing import near
from taping import taped

import gpugrad as gg
from gpugrad.autodiff import tape as tape_module
from gpugrad.autodiff.gradients import differentiate
from gpugrad.errors import ArgumentError, AxisError, ShapeError, StructureError

RNG = np.random.default_rng(0)
X = gg.constant(RNG.normal(size=(4, 3)))
W = gg.constant(RNG.normal(size=(3, 3)))


def loss(w, x):
    return gg.sum(gg.tanh(w @ x) * x) + gg.sum(w * w)


def rows(f, *args):
    return np.stack([f(*(a[i] for a in args)).numpy() for i in range(len(args[0]))])


# ---- axes and structures -----------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_in_axes_select_the_batch_axis_of_arguments(axis):
    got = gg.vmap(gg.sum, in_axes=axis)(X)
    near(got, X.numpy().sum(0 if axis else 1))


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_out_axes_place_the_batch_axis_of_results(axis):
    got = gg.vmap(lambda x: x * 2, out_axes=axis)(X)
    near(got, np.moveaxis(2 * X.numpy(), 0, axis))


def test_arguments_and_results_may_be_nested():
    f = gg.vmap(
        lambda p, y: {"a": p["x"] * y, "b": [gg.sum(p["x"]), y]},
        in_axes=({"x": 0, "s": None}, None),
    )
    got = f({"x": X, "s": "a string"}, 2.0)
    near(got["a"], 2 * X.numpy())
    near(got["b"][0], X.numpy().sum(1))
    assert got["b"][1].tolist() == [2.0] * 4


def test_keyword_arguments_are_mapped():
    near(gg.vmap(lambda x, *, y: x * y)(X, y=X), X.numpy() ** 2)


def test_unbatched_result_is_repeated_or_returned_once():
    near(gg.vmap(lambda x: W)(X), np.broadcast_to(W.numpy(), (4, 3, 3)))
    near(gg.vmap(lambda x: (gg.sum(x), W), out_axes=(0, None))(X)[1], W.numpy())


def test_axis_size_suffices_without_arguments():
    assert gg.vmap(lambda: gg.ones(2), axis_size=3)().shape == (3, 2)


def test_empty_batch_gives_an_empty_result():
    assert gg.vmap(lambda x: gg.sum(x) * W)(X[:0]).shape == (0, 3, 3)


def test_vectorized_map_maps_axis_0():
    near(gg.vectorized_map(lambda p: p[0] @ p[1], (X, X)), (X.numpy() ** 2).sum(1))


def test_examples_of_float32_and_bfloat16_keep_their_dtype():
    for dtype in (gg.float32, gg.bfloat16, gg.float16):
        assert gg.vmap(lambda x: gg.softmax(x) * 2)(gg.astype(X, dtype)).dtype == dtype


# ---- derivatives, inside and outside -----------------------------------------------------


def test_vmap_of_grad_gives_per_example_gradients():
    got = gg.vmap(gg.grad(loss), in_axes=(None, 0))(W, X)
    near(got, rows(lambda x: gg.grad(loss)(W, x), X))


def test_grad_of_vmap_is_the_sum_over_examples():
    got = gg.grad(lambda w: gg.sum(gg.vmap(loss, (None, 0))(w, X)))(W)
    near(got, rows(lambda x: gg.grad(loss)(W, x), X).sum(0))


def test_grad_through_per_example_gradients_to_third_order():
    def one(w, many):
        each = many(gg.grad(loss), w)
        return gg.sum(each * each)

    def vectorized(f, w):
        return gg.vmap(f, (None, 0))(w, X)

    def looped(f, w):
        return gg.stack([f(w, X[i]) for i in range(len(X))])

    def curvature(w, many):
        return gg.sum(gg.grad(one)(w, many) ** 2)

    near(gg.grad(one)(W, vectorized), gg.grad(one)(W, looped))
    near(gg.grad(curvature)(W, vectorized), gg.grad(curvature)(W, looped), 1e-10)


@pytest.mark.parametrize(
    "inner",
    [
        lambda w, x: gg.grad(lambda x: gg.sum(gg.sinh(w @ x)))(x) ** 2,
        lambda w, x: gg.hessian(lambda x: gg.sum(gg.sinh(w @ x)))(x) ** 2,
        lambda w, x: gg.grad(lambda w: gg.sum(gg.sinh(w @ x)))(w) ** 2,
        lambda w, x: gg.jvp(lambda x: gg.sinh(gg.matrix_transpose(w) @ x), [x], [x])[1] ** 2,
        lambda w, x: gg.grad(lambda x: gg.sum(gg.linalg.inv(w + gg.eye(3)) @ gg.sin(x)))(x) ** 2,
        lambda w, x: gg.vmap(lambda y: gg.grad(lambda x: gg.sum(gg.sinh(w @ x) * y))(x))(X) ** 2,
    ],
)
def test_derivatives_inside_vmap_can_be_differentiated_outside(inner):
    got = gg.grad(lambda w: gg.sum(gg.vmap(lambda x: gg.sum(inner(w, x)))(X)))(W)
    near(got, gg.grad(lambda w: sum(gg.sum(inner(w, X[i])) for i in range(4)))(W), 1e-9)


def test_gradient_of_a_captured_tensor_sums_over_examples():
    tape, y = taped(lambda W: gg.vmap(lambda x: gg.sum(W @ x) + gg.sum(W))(X), W)
    near(tape.gradient(y, W), np.tile(X.numpy().sum(0), (3, 1)) + 4)


def test_gradient_of_a_captured_variable_sums_over_examples():
    v = gg.Variable(W)
    with gg.GradientTape() as tape:
        y = gg.vmap(lambda x: loss(v, x))(X)
    near(tape.gradient(y, v), rows(lambda x: gg.grad(loss)(W, x), X).sum(0))


def test_outer_tape_used_inside_vmap_gives_per_example_gradients():
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(W)
        got = gg.vmap(lambda x: tape.gradient(gg.sum(W @ x), W))(X)
    near(got, rows(lambda x: gg.grad(lambda w: gg.sum(w @ x))(W), X))


def test_nested_vmaps_compute_all_pairs():
    got = gg.vmap(lambda x: gg.vmap(lambda y: x @ y + gg.sum(W @ y))(X))(X)
    near(got, X.numpy() @ X.numpy().T + (X.numpy() @ W.numpy().T).sum(1))


def test_gradients_inside_nested_vmaps():
    got = gg.vmap(lambda x: gg.vmap(gg.grad(lambda y: gg.sum(gg.sin(x * y))))(X))(X)
    x = X.numpy()
    near(got, x[:, None] * np.cos(x[:, None] * x[None]))


def test_grad_of_nested_vmaps_sums_over_both():
    got = gg.grad(lambda w: gg.sum(gg.vmap(lambda x: gg.vmap(lambda y: x @ w @ y)(X))(X)))(W)
    total = X.numpy().sum(0)
    near(got, np.outer(total, total))


def test_forward_mode_inside_and_outside_vmap():
    inside = gg.vmap(lambda x: gg.jvp(lambda t: gg.sum(t**3), [x], [gg.ones_like(x)])[1])(X)
    near(inside, (3 * X.numpy() ** 2).sum(1))
    _, outside = gg.jvp(lambda w: gg.vmap(loss, (None, 0))(w, X), [W], [gg.ones_like(W)])
    near(outside, rows(lambda x: gg.jvp(lambda w: loss(w, x), [W], [gg.ones_like(W)])[1], X))


def test_hvp_through_vmap_equals_that_of_the_batched_function():
    def mapped(w):
        return gg.sum(gg.vmap(lambda x: gg.sum(gg.tanh(w @ x)))(X) ** 2)

    def batched(w):
        return gg.sum(gg.sum(gg.tanh(X @ gg.matrix_transpose(w)), axis=1) ** 2)

    ones = [gg.ones_like(W)]
    near(gg.hvp(mapped, [W], ones)[0], gg.hvp(batched, [W], ones)[0])


def test_jacobians_and_vmap_nest_both_ways():
    def f(x):
        return gg.tanh(W @ x)

    near(gg.vmap(gg.jacobian(f))(X), rows(gg.jacobian(f), X))
    full = gg.jacobian(gg.vmap(f))(X).numpy()
    near(np.stack([full[i, :, i] for i in range(4)]), rows(gg.jacobian(f), X))
    near(gg.vmap(gg.hessian(lambda x: gg.sum(f(x) ** 2)))(X),
         rows(gg.hessian(lambda x: gg.sum(f(x) ** 2)), X))  # fmt: skip


def test_custom_gradient_applies_under_vmap():
    @gg.custom_gradient
    def doubled(w, x):
        return w * x, lambda dy: (2 * dy * x, gg.ones_like(x))

    got = gg.vmap(gg.grad(lambda w, x: gg.sum(doubled(w, x)), (0, 1)), (None, 0))(X[0], X)
    near(got[0], 2 * X.numpy())
    near(got[1], np.ones((4, 3)))
    w, x = gg.grad(lambda w, x: gg.sum(gg.vmap(doubled, (None, 0))(w, x)), (0, 1))(X[0], X)
    near(w, 2 * X.numpy().sum(0))
    near(x, np.ones((4, 3)))


def test_constant_custom_gradient_counts_once_per_example():
    @gg.custom_gradient
    def f(w, x):
        return w * x, lambda dy: (gg.ones(()), gg.ones(()))

    got = gg.grad(lambda w: gg.sum(gg.vmap(f, (None, 0))(w, X[:, 0])))(gg.constant(1.0))
    assert got.item() == 4.0


@pytest.mark.parametrize("closed_over", [True, False])
def test_custom_gradient_may_differ_between_examples_where_the_value_does_not(closed_over):
    def one(w, x):
        @gg.custom_gradient
        def scaled(w, *others):
            return gg.positive(w), lambda dy: (dy * x, *(None for _ in others))

        return gg.sum(scaled(w, *(() if closed_over else (x,))) ** 2 * x)

    got = gg.grad(lambda w: gg.sum(gg.vmap(one, (None, 0))(w, X)))(X[0])
    near(got, rows(lambda x: gg.grad(one)(X[0], x), X).sum(0))


def test_recompute_grad_works_under_vmap():
    f = gg.recompute_grad(loss)
    near(gg.vmap(gg.grad(f), (None, 0))(W, X), gg.vmap(gg.grad(loss), (None, 0))(W, X))
    near(gg.grad(lambda w: gg.sum(gg.vmap(f, (None, 0))(w, X)))(W),
         gg.grad(lambda w: gg.sum(gg.vmap(loss, (None, 0))(w, X)))(W))  # fmt: skip


def test_rows_of_a_table_are_gathered_for_each_example():
    table, ids = gg.constant(RNG.normal(size=(5, 2))), gg.constant([[0, 1], [1, 1], [4, 0]])
    near(gg.vmap(lambda i: gg.gather(table, i))(ids), table.numpy()[ids.numpy()])
    each = gg.vmap(gg.grad(lambda t, i: gg.sum(gg.gather(t, i) ** 2)), (None, 0))(table, ids)
    near(each, np.stack([gg.grad(lambda t, i=i: gg.sum(gg.gather(t, i) ** 2))(table).numpy()
                         for i in ids]))  # fmt: skip


# ---- indices -----------------------------------------------------------------------------

INDEX = gg.constant([2, 0, 1, 2])
PAIRS = gg.constant([[0, 1], [2, 2], [1, 0], [2, 1]])
CUBE = gg.constant(RNG.normal(size=(4, 3, 2, 3)))


@pytest.mark.parametrize(
    "read",
    [
        lambda x, i, p: x[i], lambda x, i, p: x[p], lambda x, i, p: x[:, 0, i],
        lambda x, i, p: x[..., p], lambda x, i, p: x[p, :, i], lambda x, i, p: x[i, None, :, p],
        lambda x, i, p: x[[0, 2], :, p], lambda x, i, p: x[1:, :, i],
        lambda x, i, p: x[np.array([True, False, True]), 0], lambda x, i, p: x[0, [1, 0], ::-1],
        lambda x, i, p: x[[0, 1], :, [2, 0]], lambda x, i, p: W[i] + W[p][0],
    ],
)  # fmt: skip
def test_index_may_differ_between_examples(read):
    got = gg.vmap(read)(CUBE, INDEX, PAIRS)
    near(got, rows(read, CUBE, INDEX, PAIRS))

    def total(x, i, p):
        return gg.sum(read(x, i, p) ** 3)

    near(gg.vmap(gg.grad(total))(CUBE, INDEX, PAIRS), rows(gg.grad(total), CUBE, INDEX, PAIRS))
    outside = gg.grad(lambda x: gg.sum(gg.vmap(total)(x, INDEX, PAIRS)))(CUBE)
    near(outside, rows(gg.grad(total), CUBE, INDEX, PAIRS))


@pytest.mark.parametrize(
    "read",
    [
        lambda x, i, j: x[i, j], lambda x, i, j: x[i, None, j], lambda x, i, j: x[[i, j]],
        lambda x, i, j: x[:, [j, 0]].T * x[i],
        lambda x, i, j: x[gg.stack([i, j]), gg.stack([j, i])],
    ],
)  # fmt: skip
def test_index_may_differ_between_examples_of_nested_vmaps(read):
    square = gg.constant(RNG.normal(size=(3, 3)))

    def over(many, f):
        return many(lambda i: many(lambda j: f(square, i, j), INDEX[:3]), INDEX)

    def vectorized(f, along):
        return gg.vmap(f)(along)

    def looped(f, along):
        return gg.stack([f(along[k]) for k in range(len(along))])

    for f in (read, gg.grad(lambda x, i, j: gg.sum(read(x, i, j) ** 2))):
        near(over(lambda g, a: vectorized(g, a), f), over(lambda g, a: looped(g, a), f))


ENTRIES = {  # of an index into axes of length 3: the entry, and the number of axes that it consumes
    "int": (1, 1), "negative int": (-1, 1), "slice": (slice(None), 1), "end": (slice(1, None), 1),
    "reversed": (slice(None, None, -1), 1), "none": (None, 0), "list": ([2, 0], 1),
    "column": (np.array([[1], [0]]), 1), "0-d": (np.array(2), 1),
    "mask": (np.array([True, False, True]), 1), "matrix mask": (np.eye(3, k=1, dtype=bool), 2),
    "own int": ("own int", 1), "own pair": ("own pair", 1),
}  # fmt: skip


def random_index(rng, ndim):
    """Names of ENTRIES that consume at most `ndim` axes, and for half of all indices an ellipsis.

    Often the ellipsis stands for no axis.
    """
    names = rng.choice(list(ENTRIES), rng.integers(1, 6)).tolist()
    while sum(ENTRIES[name][1] for name in names) > ndim:
        names.pop()
    if rng.random() < 0.5:
        names.insert(rng.integers(len(names) + 1), "...")
    return names


def test_random_indices_under_vmap_equal_the_loop_over_examples():
    rng = np.random.default_rng(0)
    x, v = gg.constant(rng.normal(size=(4, 3, 3, 3, 3))), gg.constant(rng.normal(size=4))
    for _ in range(400):
        ndim = int(rng.integers(2, 5))
        names = random_index(rng, ndim)
        cubes = x[(slice(None), *(0,) * (4 - ndim))]

        def index(i, p, names=names):
            own = {"own int": i, "own pair": p, "...": Ellipsis}
            return tuple(own[name] if name in own else ENTRIES[name][0] for name in names)

        def read(x, i, p, v, index=index):
            return x[index(i, p)]

        def write(x, i, p, v, index=index):
            x = x + 0
            x[index(i, p)] = v
            return x

        def slope(x, i, p, v, read=read):
            return gg.grad(lambda x: gg.sum(read(x, i, p, v) ** 2))(x)

        args = cubes, INDEX, PAIRS, v
        for f in (read, write, slope):
            got, want = gg.vmap(f)(*args), rows(f, *args)
            assert got.shape == want.shape, (f.__name__, names)
            np.testing.assert_array_equal(got, want, err_msg=f"{f.__name__} {names}")


@pytest.mark.parametrize("of", [gg.jacobian, gg.hessian])
def test_derivatives_of_a_read_with_an_empty_ellipsis_have_its_order_of_axes(of):
    a = gg.constant(RNG.normal(size=(2, 3, 2)))
    x = np.asarray(a)

    def read(a):
        return a[:, [0, 1], ..., 0]

    if of is gg.jacobian:
        units = np.eye(x.size).reshape(x.size, *x.shape)
        want = np.stack([u[:, [0, 1], ..., 0] for u in units], axis=-1).reshape(2, 2, *x.shape)
        near(gg.jacobian(read)(a), want)
    else:
        w = gg.constant([[1.0, 2.0], [3.0, 4.0]])
        diagonal = np.zeros_like(x)
        diagonal[:, [0, 1], ..., 0] = 2 * np.asarray(w)
        near(gg.hessian(lambda a: gg.sum(w * read(a) ** 2))(a).reshape((12, 12)),
             np.diag(diagonal.ravel()))  # fmt: skip


def test_jacobian_of_a_read_at_per_example_indices():
    got = gg.vmap(lambda p: gg.jacobian(lambda w: w[p])(W[0]))(PAIRS)
    near(got, np.eye(3)[PAIRS.numpy()])


def test_gradient_of_reads_at_per_example_indices_is_summed():
    got = gg.grad(lambda w: gg.sum(gg.vmap(lambda i: gg.sum(w[i]))(INDEX)))(W)
    near(got, np.array([1.0, 1.0, 2.0])[:, None] * np.ones(3))


@pytest.mark.parametrize("value", ["number", "own", "shared"])
@pytest.mark.parametrize("where", ["own", "shared"])
@pytest.mark.parametrize("at", ["own", "shared"])
def test_setitem_under_vmap_equals_the_loop_over_examples(value, where, at):
    def write(x, i, v):
        x = x if where == "own" else gg.constant(W.numpy())
        x[i if at == "own" else 1] = {"number": 7.0, "own": v, "shared": W[0]}[value]
        return x * 2

    matrices = gg.constant(RNG.normal(size=(4, 3, 3)))
    near(gg.vmap(write)(matrices, INDEX, X), rows(write, matrices, INDEX, X))
    gradient = gg.grad(lambda v, x, i: gg.sum(write(x, i, v) ** 2))
    near(gg.vmap(gradient)(X, matrices, INDEX), rows(gradient, X, matrices, INDEX))


# ---- refusals ----------------------------------------------------------------------------


def branching(x):
    return x if gg.sum(x) > 0 else -x


@pytest.mark.parametrize(
    "look", [branching, lambda x: x * gg.sum(x).item(), lambda x: x.numpy(), lambda x: float(x[0]),
             lambda x: np.asarray(x), lambda x: x.tolist()],
)  # fmt: skip
def test_reading_a_value_under_vmap_raises_with_a_hint(look):
    with pytest.raises(ArgumentError, match=r"4 examples.*gg\.where"):
        gg.vmap(look)(X)


def test_boolean_mask_under_vmap_raises_with_a_hint():
    with pytest.raises(ArgumentError, match=r"gg\.where\(mask"):
        gg.vmap(lambda x: x[x > 0])(X)


def test_tensor_that_has_left_vmap_raises():
    kept = []
    gg.vmap(lambda x: kept.append(x) or x)(X)
    with pytest.raises(ArgumentError, match="has left its vmap"):
        kept[0].numpy()


def test_printing_under_vmap_shows_the_shape_of_an_example(capsys):
    gg.vmap(lambda x: print(x) or x)(X)
    assert "4 examples of shape (3,)" in capsys.readouterr().out


def test_assigning_a_batched_tensor_to_a_variable_raises_and_changes_nothing():
    v = gg.Variable([1.0, 2.0, 3.0], dtype=gg.float64)
    with pytest.raises(ArgumentError, match=r"assign.*vmap"):
        gg.vmap(lambda x: v.assign(x))(X)
    assert v.numpy().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: gg.vmap(gg.add)(X, X[:2]), ShapeError, r"got \[2, 4\].*\(4, 3\), \(2, 3\)"),
        (lambda: gg.vmap(gg.sum, 2)(X), AxisError, r"in_axes 2.*\(4, 3\)"),
        (lambda: gg.vmap(gg.sum, out_axes=1)(X), AxisError, "out_axes 1"),
        (lambda: gg.vmap(gg.sum, None)(X), ArgumentError, "axis_size="),
        (lambda: gg.vmap(gg.sum, (0, 0))(X), StructureError, "2 entries for 1"),
        (lambda: gg.vmap(gg.sum, ({"a": 0},))([X]), StructureError, "structure"),
        (lambda: gg.vmap(gg.sum, out_axes=None)(X), ArgumentError, "differs between examples"),
        (lambda: gg.vmap(gg.sum, axis_size=3)(X), ShapeError, r"\[3, 4\]"),
        (lambda: gg.vmap(gg.sum, randomness="any")(X), ArgumentError, "randomness"),
        (lambda: gg.vmap(lambda x: gg.sum(x, axis=1))(X), AxisError, "axis 1"),
        (lambda: gg.vmap(lambda x: gg.cumulative_max(x, -2))(X), AxisError, r"axis -2.*\(3,\)"),
        (lambda: gg.vmap(gg.cumulative_min)(X[:, 0]), AxisError, "axis= is needed"),
        (lambda: gg.vmap(lambda x: gg.reshape(x, (4, 3)))(X), ShapeError, r"\(4, 3\)"),
    ],
)  # fmt: skip
def test_errors_name_the_inconsistent_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_error_under_vmap_leaves_no_level_open():
    with pytest.raises(ZeroDivisionError):
        gg.vmap(lambda x: 1 // 0)(X)
    test_grad_of_vmap_is_the_sum_over_examples()


# ---- randomness --------------------------------------------------------------------------


def test_random_numbers_under_vmap_require_randomness():
    with pytest.raises(ArgumentError, match="randomness"):
        gg.vmap(lambda x: x + gg.random.normal((3,)))(X)


def test_random_numbers_are_the_same_or_different_as_chosen():
    def noise(x):
        return gg.random.normal((3,), dtype=gg.float64) + 0 * x

    gg.set_seed(0)
    same = gg.vmap(noise, randomness="same")(X).numpy()
    assert (same == same[0]).all()
    different = gg.vmap(noise, randomness="different")(X).numpy()
    assert len(np.unique(different)) == different.size


def test_each_example_gets_its_own_permutation():
    gg.set_seed(0)
    rows_of = gg.constant(np.tile(np.arange(5.0), (20, 1)))
    got = gg.vmap(gg.random.permutation, randomness="different")(rows_of).numpy()
    assert (np.sort(got) == rows_of.numpy()).all()
    assert len(np.unique(got, axis=0)) > 10


def test_same_randomness_with_batched_parameters_is_refused():
    with pytest.raises(ArgumentError, match="randomness='different'"):
        gg.vmap(lambda x: gg.random.poisson((3,), gg.exp(x)), randomness="same")(X)


def test_unbatched_terms_of_a_gradient_do_not_hide_batched_ones():
    """Two unbatched terms were summed in place, then two batched ones: the last one got lost."""

    def slope(x, w):
        tape, y = taped(lambda w: w * x + w * (2 * x) + w * 3 + w * 4, w)
        return tape.gradient(y, w, output_gradients=W[1])

    w = W[0]
    near(gg.vmap(slope, in_axes=(0, None))(X, w), rows(lambda x: slope(x, w), X))


# ---- jacobians in chunks -----------------------------------------------------------------


@pytest.mark.parametrize("chunk_bytes", [1, 300, 10**9])
def test_jacobian_in_chunks_equals_the_unchunked_one(chunk_bytes):
    got = gg.jacobian(lambda x: gg.tanh(x @ W), chunk_bytes=chunk_bytes)(X)
    near(got, gg.jacobian(lambda x: gg.tanh(x @ W))(X), 0)


def test_jacobian_runs_one_backward_pass_per_chunk(monkeypatch):
    passes = []
    monkeypatch.setattr(
        tape_module, "differentiate", lambda *args: passes.append(1) or differentiate(*args)
    )
    gg.jacobian(lambda x: gg.tanh(x))(X)
    assert len(passes) == 1
    gg.jacobian(lambda x: gg.tanh(x), chunk_bytes=1)(X)
    assert len(passes) == 1 + X.size


# ---- in traced functions, and in several threads


NOISES = {
    "normal": lambda r: gg.random.normal(r.shape),
    "dropout": lambda r: gg.nn.dropout(r, 0.5),
    "gamma": lambda r: gg.random.gamma(r.shape, gg.abs(r) + 0.5),
    "nested": lambda r: gg.vmap(lambda s: gg.random.uniform(()), randomness="different")(r),
}


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("randomness", ["different", "same"])
def test_random_numbers_under_vmap_in_a_function_equal_eager_ones(name, randomness, rng):
    def f(x):
        return gg.vmap(lambda r: r + NOISES[name](r), randomness=randomness)(x)

    x = gg.constant(rng.normal(size=(4, 3)).astype(np.float32))
    if (name, randomness) == ("gamma", "same"):
        for run in (f, gg.function(f)):
            with pytest.raises(ArgumentError, match="the parameters of these numbers must"):
                run(x)
        return
    draws = []
    for run in (f, gg.function(f)):
        gg.set_seed(3)
        draws.append([run(x).numpy() for _ in range(3)])
    np.testing.assert_allclose(draws[0], draws[1], 1e-6)
    assert len({a.tobytes() for a in draws[0]}) == 3


V = gg.Variable([1.0, 2.0, 3.0])


def filled(x):
    y = gg.zeros(3, dtype=gg.float64)
    y[gg.argsort(x)] = x
    return y


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: gg.vmap(lambda k: W[k])(i), lambda x, i: gg.vmap(lambda r, k: r[k])(X, i),
        lambda x, i: gg.vmap(lambda r: r[i])(X), lambda x, i: gg.vmap(filled)(x),
        lambda x, i: gg.vmap(lambda k: V[k] * 2)(i),
        lambda x, i: gg.vmap(lambda a: gg.vmap(lambda b: b[gg.argmax(a)])(X))(x),
    ],
)  # fmt: skip
def test_traced_function_indexes_constants_under_vmap(f):
    near(gg.function(f)(X, INDEX), f(X, INDEX))


def test_traced_jacobians_of_masked_elements_equal_eager_ones():
    def hessian(x):
        return gg.hessian(lambda x: gg.sum(x[x > 1.0] ** 3))(x)

    fast = gg.function(hessian)
    for x in ([1.0, 2.0, 3.0], [4.0, 0.0, 5.0], [0.0, 0.0, 7.0]):
        near(fast(gg.constant(x)), hessian(gg.constant(x)))
    near(gg.function(gg.jacobian(lambda x: x[x > 1.0]))([1.0, 2.0, 3.0]), np.eye(3)[1:])


def test_gradients_of_one_thread_do_not_see_the_vmaps_of_another():
    done = threading.Event()

    def map_on():
        while not done.is_set():
            gg.vmap(lambda r: r * 2)(gg.ones((4, 3)))

    thread, before = threading.Thread(target=map_on), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(1000):
            assert gg.grad(lambda x: gg.sum(x * x))(gg.ones(3)).tolist() == [2, 2, 2]
    finally:
        sys.setswitchinterval(before)
        done.set()
        thread.join()


MASKS_0D = [True, np.True_, np.array(True), np.array(False), gg.constant(True)]


@pytest.mark.parametrize("index", [*MASKS_0D, *((m, 0) for m in MASKS_0D)], ids=repr)
def test_a_0d_mask_under_vmap_is_refused_with_the_line_to_write(index):
    for f in (lambda x: x[index], lambda x: gg.setitem(x, 1.0, index=index)):
        with pytest.raises(ArgumentError, match=r"0-d mask, as an index; write x\[None\] for"):
            gg.vmap(f)(np.ones((2, 3)))
    x = gg.constant(np.arange(6.0).reshape(2, 3))
    assert gg.vmap(lambda x: x[None])(x).shape == (2, *x[0][True].shape)
    assert gg.vmap(lambda x: x[None][:0])(x).shape == (2, *x[0][False].shape)
