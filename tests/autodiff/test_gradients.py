"""Graph and gradients(): TensorFlow's tf.gradients, where nothing has to be watched."""

import weakref

import numpy as np
import pytest
from taping import tape_gradient

import gpugrad as gg
from gpugrad.autodiff import recorder as recorder_module
from gpugrad.autodiff.gradients import is_nan
from gpugrad.core import listening
from gpugrad.errors import ArgumentError, DTypeError, NoGradientError, ShapeError, TapeError

C = gg.constant


def values(gs):
    assert isinstance(gs, list)
    return [None if g is None else g.tolist() for g in gs]


@pytest.fixture
def graph():
    with gg.Graph().as_default() as g:
        yield g


def test_gradients_outside_a_graph_error_suggests_as_default():
    x = C(2.0)
    with pytest.raises(TapeError, match=r"gg\.Graph\(\)\.as_default\(\)"):
        gg.gradients(x * x, x)


def test_graph_yields_itself_and_leaves_nothing_behind():
    graph = gg.Graph()
    with graph.as_default() as entered:
        assert entered is graph
        x = C(2.0)
        y = x * x
    assert not recorder_module.threads.stack
    assert not listening.graphs
    with graph.as_default():  # entering again continues the recording
        assert values(gg.gradients(y, x)) == [4.0]


def test_graph_entered_within_itself_records_once():
    graph = gg.Graph()
    with graph.as_default():
        x = C(2.0)
        with graph.as_default():
            y = x * x
            z = x * y
            assert values(gg.gradients(z, [x, y])) == [12.0, 2.0]
        assert listening.graphs == [graph]


def test_graph_ends_after_an_exception():
    with pytest.raises(ZeroDivisionError), gg.Graph().as_default():
        _ = 1 / 0
    assert not recorder_module.threads.stack
    assert not listening.recorders
    assert not listening.graphs


def test_gradients_of_operations_before_the_graph_are_none():
    x = C(2.0)
    y = x * x
    with gg.Graph().as_default():
        z = y * 3
        assert values(gg.gradients(z, [x, y])) == [None, 3.0]


def test_gradients_inside_a_tape_use_its_watched_tensors():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert values(gg.gradients(y, x)) == [6.0]


def test_gradients_prefer_the_graph_around_a_tape(graph):
    x = C(3.0)
    with gg.GradientTape():
        y = x * x
        assert values(gg.gradients(y, x)) == [6.0]


def test_tape_works_inside_a_graph(graph):
    x = C(3.0)
    g = tape_gradient(lambda x: x * x, x)
    assert values(gg.gradients(g, x)) == [2.0]


def test_gradients_return_a_flat_list(graph):
    a, b = C(2.0), C(3.0)
    y = a * b
    assert values(gg.gradients(y, a)) == [3.0]
    assert values(gg.gradients([y], (a, b))) == [3.0, 2.0]
    assert gg.gradients(y, []) == []
    assert values(gg.gradients([], [a])) == [None]


def test_gradients_with_respect_to_constants_and_intermediates(graph):
    x = C(3.0)
    y = x * x
    z = y * y
    assert values(gg.gradients(z, [x, y, z])) == [108.0, 18.0, 1.0]
    assert values(gg.gradients(y, [z])) == [None]  # downstream


def test_gradients_of_dependent_ys_add_up(graph):
    x = C(3.0)
    y = x * x
    assert values(gg.gradients([y, y * y], x)) == [6.0 + 108.0]
    assert values(gg.gradients([y, y], x)) == [12.0]
    assert values(gg.gradients([x, y], [x, x])) == [7.0, 7.0]
    assert values(gg.gradients(x, x)) == [1.0]


def test_gradients_of_dependent_targets_are_total_derivatives(graph):
    """y is both a target and a source: as a target it adds 1 to its own gradient."""
    x = C(1.0)
    y = x * 2
    z = y * 3
    assert values(gg.gradients([y, z], [x, y])) == [8.0, 4.0]


def test_gradients_of_variables(graph):
    v = gg.Variable([1.0, 2.0], dtype=gg.float64)
    assert values(gg.gradients(v * v, v)) == [[2.0, 4.0]]
    assert values(gg.gradients(v, v)) == [[1.0, 1.0]]
    (g,) = gg.gradients(C(1.0) * 1, v, unconnected_gradients="zero")
    assert (g.tolist(), g.dtype) == ([0.0, 0.0], gg.float64)


def test_gradients_with_respect_to_a_number_are_none(graph):
    assert values(gg.gradients(C(2.0) * 3, 3.0)) == [None]


def test_gradients_take_nested_lists(graph):
    a, b = C(2.0), C(3.0)
    y, z = a * b, b * b
    assert values(gg.gradients([[y], (z,)], [a, [b]])) == [3.0, 8.0]
    assert values(gg.gradients([[y], z], b, grad_ys=[[C(10.0)], None])) == [26.0]
    assert values(gg.gradients([[y]], [a], stop_gradients=[[b]])) == [3.0]


def test_gradients_in_a_traced_function_need_no_graph():
    v = gg.Variable(1.0)
    runs = []

    @gg.function
    def slopes(x):
        runs.append(1)
        v.assign_add(1.0)
        y = x * x
        z = y * v
        return gg.gradients(z, [x, y, v])

    for k in range(3):
        assert values(slopes(C(3.0 + k))) == [2 * (3 + k) * (2 + k), 2 + k, (3 + k) ** 2]
    assert v.numpy() == 4.0
    assert len(runs) == 2  # without a Graph, then with one
    with gg.GradientTape() as tape:
        x = C(2.0)
        tape.watch(x)
        slope = gg.function(lambda x: gg.gradients(x * x * x, x)[0])(x)
    assert (slope.item(), tape.gradient(slope, x).item()) == (12.0, 12.0)
    inner = gg.function(lambda x: gg.gradients(x * x, x)[0])
    assert gg.function(lambda x: inner(x) + 1)(C(2.0)).item() == 5.0
    branch = gg.function(lambda x: gg.cond(x > 0, lambda: gg.gradients(x * x, x)[0], lambda: x))
    with pytest.raises(TapeError, match=r"gg\.Graph\(\)\.as_default\(\)"):
        branch(C(2.0))


@pytest.mark.parametrize("bad", [None, {"a": 1}, [{"a": 1}]], ids=repr)
def test_gradients_take_tensors_and_lists_only(bad, graph):
    x = C(2.0)
    with pytest.raises(DTypeError, match="list of Tensors"):
        gg.gradients(bad, x)
    with pytest.raises(DTypeError, match="list of Tensors"):
        gg.gradients(x, bad)


def test_gradients_of_gradients_give_higher_orders(graph):
    x = C(2.0)
    y = x**4
    (d1,) = gg.gradients(y, x)
    (d2,) = gg.gradients(d1, x)
    (d3,) = gg.gradients(d2, x)
    assert values([d1, d2, d3]) == [32.0, 48.0, 48.0]
    assert values(gg.gradients(gg.gradients(x * 5, x), x)) == [None]  # linear


def test_gradients_of_integers_are_none_except_of_themselves(graph):
    k, x = C(3), C(3.0)
    assert values(gg.gradients(k, k)) == [1]
    assert values(gg.gradients(k * k, k)) == [None]
    through = gg.astype(gg.astype(x, gg.int32), gg.float32)
    assert values(gg.gradients(through, x)) == [None]


def test_grad_ys_weight_each_y_and_none_means_ones(graph):
    x = C([1.0, 2.0])
    y, z = x * x, x * 3
    assert values(gg.gradients(y, x, grad_ys=C([1.0, 10.0]))) == [[2.0, 40.0]]
    assert values(gg.gradients([y, z], x, grad_ys=[None, C([1.0, 0.0])])) == [[5.0, 4.0]]
    assert values(gg.gradients([y], x, grad_ys=[[1.0, 10.0]])) == [[2.0, 40.0]]


@pytest.mark.parametrize(
    ("grad_ys", "kind", "words"),
    [
        ([1.0, 1.0], ArgumentError, "2 grad_ys for 1 ys"),
        ([], ArgumentError, "0 grad_ys for 1 ys"),
        ([1.0], ShapeError, r"grad_ys\[0\].*\(2,\)"),
        ([[1.0, 2.0, 3.0]], ShapeError, r"\(3,\)"),
        ([np.ones(2)], DTypeError, "float64"),
        ([np.ones(2, np.int32)], DTypeError, "int32"),
        ([np.ones(2, np.complex64)], DTypeError, "complex64"),
    ],
)
def test_grad_ys_that_do_not_match_are_refused(grad_ys, kind, words, graph):
    x = C([1.0, 2.0])
    with pytest.raises(kind, match=words):
        gg.gradients(x * x, x, grad_ys=grad_ys)


def test_complex_y_needs_grad_ys(graph):
    z = C(7 + 3j)
    with pytest.raises(DTypeError, match="grad_ys"):
        gg.gradients(z * z, z)
    assert values(gg.gradients(z * z, z, grad_ys=C(1 + 0j))) == [14 - 6j]


@pytest.mark.parametrize("which", ["both", "b alone", "b", "none", "a"])
def test_stop_gradients_give_partial_derivatives(which, graph):
    a = C(0.0)
    b = 2 * a
    stops = {"both": [a, b], "b alone": b, "b": [b], "none": [], "a": [a]}[which]
    expected = [3.0, 1.0] if which in ("none", "a") else [1.0, 1.0]
    assert values(gg.gradients(a + b, [a, b], stop_gradients=stops)) == expected


def test_stop_gradients_equal_stop_gradient_for_every_subset_of_a_network():
    rng = np.random.default_rng(1)
    start = rng.normal(size=(2, 2))

    def network(stopped):
        def maybe(name, t):
            return gg.stop_gradient(t) if name in stopped else t

        with gg.Graph().as_default():
            a = maybe("a", C(start))
            b = maybe("b", gg.matmul(a, a + 0.1))
            c = maybe("c", gg.matmul(b, a))
            d = maybe("d", gg.matmul(c, b + a))
            y = gg.matmul(d, c)
            return values(gg.gradients(y, [a, b, c, d]))

    with gg.Graph().as_default():
        nodes = {}
        nodes["a"] = a = C(start)
        nodes["b"] = b = gg.matmul(a, a + 0.1)
        nodes["c"] = c = gg.matmul(b, a)
        nodes["d"] = d = gg.matmul(c, b + a)
        y = gg.matmul(d, c)
        for bits in range(16):
            stopped = [n for k, n in enumerate("abcd") if bits >> k & 1]
            grads = gg.gradients(y, [a, b, c, d], stop_gradients=[nodes[n] for n in stopped])
            for ours, theirs in zip(values(grads), network(stopped), strict=True):
                assert (ours is None) == (theirs is None)
                if ours is not None:
                    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_stop_gradients_of_one_result_do_not_stop_the_others(graph):
    @gg.custom_gradient
    def two(x):
        return (x * 2, x * 3), lambda a, b: a * 2 + b * 3

    x = C(1.0)
    a, b = two(x)
    assert values(gg.gradients(a + b, x)) == [5.0]
    assert values(gg.gradients(a + b, x, stop_gradients=[b])) == [2.0]
    assert values(gg.gradients(a * b, [x, b], stop_gradients=[a])) == [6.0, 2.0]


@pytest.mark.parametrize("zero", ["zero", gg.UnconnectedGradients.ZERO])
def test_unconnected_gradients_are_none_or_zeros(zero, graph):
    x, k = C([1.0, 2.0]), C([[1, 2]], gg.int16)
    y = C(1.0) * 2
    assert values(gg.gradients(y, [x, k])) == [None, None]
    gx, gk = gg.gradients(y, [x, k], unconnected_gradients=zero)
    assert (gx.tolist(), gx.dtype) == ([0.0, 0.0], gg.float32)
    assert (gk.tolist(), gk.dtype) == ([[0, 0]], gg.int16)
    assert values(gg.gradients(gg.sum(x * 0), x)) == [[0.0, 0.0]]
    with pytest.raises(ArgumentError, match="nonsense"):
        gg.gradients(y, x, unconnected_gradients="nonsense")


@pytest.mark.parametrize(
    "method",
    [
        None, 0, 1, 2, gg.AggregationMethod.ADD_N, gg.AggregationMethod.DEFAULT,
        gg.AggregationMethod.EXPERIMENTAL_TREE, gg.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
    ],
)  # fmt: skip
def test_aggregation_methods_give_the_same_numbers(method, graph):
    x = C(10.0)
    y = x + x + x * x
    grads = gg.gradients(
        y, x, aggregation_method=method, gate_gradients=True, name="g",
        colocate_gradients_with_ops=True,
    )  # fmt: skip
    assert values(grads) == [22.0]


def test_unknown_aggregation_method_is_refused(graph):
    x = C(1.0)
    with pytest.raises(ArgumentError, match="7"):
        gg.gradients(x, x, aggregation_method=7)


def test_missing_rule_is_an_error_only_between_xs_and_ys(graph):
    @gg.op(vjp=[...])
    def unknown_rule(xp, x, /):
        return xp.lib.sin(x)

    x = C(1.0)
    h = unknown_rule(x)
    y = h * 2
    with pytest.raises(NoGradientError, match=r"unknown_rule.*stop_gradient"):
        gg.gradients(y, x)
    assert values(gg.gradients(y, h)) == [2.0]  # x is its output
    assert values(gg.gradients(x * 3, x)) == [3.0]  # off the path
    assert values(gg.gradients(y, x, stop_gradients=[h])) == [None]
    stopped = gg.stop_gradient(h) * 2 + x
    assert values(gg.gradients(stopped, x)) == [1.0]


def test_proxy_of_a_list_is_accepted_as_a_list_of_sources():
    variables = type("List", (list,), {})([gg.Variable(2.0), gg.Variable(3.0)])
    with gg.GradientTape() as tape:
        y = variables[0] * variables[1]
    grads = tape.gradient(y, weakref.proxy(variables))
    assert [g.item() for g in grads] == [3, 2]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_a_nan_is_seen_at_any_place(dtype, rng):
    assert not is_nan(np.zeros(0, dtype))
    for n in (1, 7, 64, 4097):
        x = rng.normal(size=n).astype(dtype)
        x[0] = np.inf
        assert not is_nan(x)
        for place in (0, n // 2, n - 1):
            with_nan = x.copy()
            with_nan[place] = complex(1, np.nan) if with_nan.dtype.kind == "c" else np.nan
            assert is_nan(with_nan)
            assert is_nan(with_nan[::-1])
            assert is_nan(np.broadcast_to(with_nan, (2, n)))
