"""GradientTape: what is recorded, what gradient() returns, and what it refuses.

The values are TensorFlow 2.21's; where gpugrad differs on purpose (it raises where TensorFlow
loses something silently), the test says so.
"""

import collections
import copy
import dataclasses
import gc
import inspect
import threading
import types
import warnings
import weakref

import numpy as np
import pytest
from comparing import value
from taping import tape_gradient, taped

import gpugrad as gg
from gpugrad.autodiff import backward as backward_module
from gpugrad.autodiff import dead_branches
from gpugrad.autodiff import recorder as recorder_module
from gpugrad.core import listening
from gpugrad.errors import (
    ArgumentError,
    DTypeError,
    NoGradientError,
    ShapeError,
    StructureError,
    TapeError,
)

C = gg.constant


def values(gs):
    return [value(g) for g in gs]


def squared(x, **flags):
    """A tape that has recorded y = x * x."""
    with gg.GradientTape(**flags) as tape:
        tape.watch(x)
        y = x * x
    return tape, y


def alive(array):
    """A function that tells whether an array still exists."""
    reference = weakref.ref(array)
    return lambda: gc.collect() >= 0 and reference() is not None


# ---- entering and leaving -------------------------------------------------------------------


def test_tape_enter_returns_the_tape():
    tape = gg.GradientTape()
    with tape as entered:
        assert entered is tape


def test_tape_refuses_unknown_arguments():
    with pytest.raises(TypeError):
        gg.GradientTape(eager=True)


def test_tape_cannot_be_entered_while_it_records():
    tape = gg.GradientTape()
    with tape, pytest.raises(TapeError, match="cannot be entered again"):
        tape.__enter__()


def test_tape_entered_again_continues_the_same_recording():
    x = C(3.0)
    tape = gg.GradientTape()
    with tape:
        tape.watch(x)
        y = 2 * x
    between = y * 5
    with tape:
        z = 2 * y
    assert tape.gradient(z, x).item() == 4.0
    tape = gg.GradientTape()
    with tape:
        tape.watch(x)
        y = 2 * x
    between = y * 5
    with tape:
        z = between * 1
    assert tape.gradient(z, x) is None  # what ran between the two blocks was not recorded


def test_tape_entered_again_after_its_gradient_is_empty():
    x = C(3.0)
    tape, y = squared(x)
    assert tape.gradient(y, x).item() == 6.0
    with tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_tape_exit_without_enter_is_harmless():
    x, tape = C(3.0), gg.GradientTape()
    tape.__exit__(None, None, None)
    with tape:
        tape.watch(x)
        y = x * x
    tape.__exit__(None, None, None)
    assert tape.gradient(y, x).item() == 6.0


def test_tape_keeps_operations_before_an_exception():
    x, tape = C(3.0), gg.GradientTape()
    with pytest.raises(ZeroDivisionError), tape:  # noqa: PT012
        tape.watch(x)
        y = x * x
        _ = 1 / 0
    z = x * x * x
    assert tape.gradient(y, x).item() == 6.0
    assert not recorder_module.threads.stack
    assert z.item() == 27.0


def test_tapes_can_exit_in_any_order():
    x = C(3.0)
    a, b = gg.GradientTape(), gg.GradientTape()
    a.__enter__()
    a.watch(x)
    y = x * x
    b.__enter__()
    b.watch(x)
    z = x * y
    a.__exit__(None, None, None)
    w = x * z
    b.__exit__(None, None, None)
    assert a.gradient([y, z], x).item() == 6.0 + 27.0
    assert b.gradient(z, x).item() == 9.0  # y was computed before b recorded
    with gg.GradientTape() as c:
        c.watch(x)
        w = x * x
    assert c.gradient(w, x).item() == 6.0


def test_tape_never_entered_has_no_gradient():
    x = C(1.0)
    with pytest.raises(TapeError, match="persistent"):
        gg.GradientTape().gradient(x, x)


# ---- watch ----------------------------------------------------------------------------------


def test_watch_accepts_nested_structures_and_returns_none():
    x, y, z = C(1.0), C(2.0), gg.Variable(3.0, trainable=False)
    with gg.GradientTape() as tape:
        assert tape.watch({"a": [x, (y,)], "b": z}) is None
        tape.watch([])
        tape.watch(x)  # twice is harmless
        out = x * y * z
    assert values(tape.gradient(out, [x, y, z])) == [6.0, 3.0, 2.0]


@pytest.mark.parametrize("thing", [np.ones(2), 3.0, "x", None], ids=repr)
def test_watch_refuses_non_tensors(thing):
    with gg.GradientTape() as tape, pytest.raises(DTypeError, match=type(thing).__name__):
        tape.watch(thing)


def test_watch_that_raises_watches_nothing():
    x = C(2.0)
    with gg.GradientTape() as tape:
        with pytest.raises(DTypeError):
            tape.watch([x, 3.0])
        y = x * x
    assert tape.gradient(y, x) is None


def test_watch_of_an_intermediate_keeps_its_history():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.watch(y)
        z = y * y
    assert values(tape.gradient(z, [x, y])) == [108.0, 18.0]


def test_watch_after_use_records_later_operations_only():
    x = C(3.0)
    with gg.GradientTape(persistent=True) as tape:
        before = x * x
        tape.watch(x)
        after = x * 5
    assert tape.gradient(before, x) is None
    assert tape.gradient(after, x).item() == 5.0


def test_watch_outside_the_block_raises_instead_of_being_lost():
    x, tape = C(3.0), gg.GradientTape()
    with pytest.raises(TapeError, match="with"):
        tape.watch(x)
    with tape:
        pass
    with pytest.raises(TapeError, match="with"):
        tape.watch(x)


def test_watch_after_the_gradient_inside_the_block_raises():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        tape.gradient(x * x, x)
        with pytest.raises(TapeError):
            tape.watch(x)


def test_watch_from_another_thread_raises_instead_of_being_lost():
    x, raised = C(3.0), []

    def elsewhere():
        try:
            tape.watch(x)
        except TapeError as error:
            raised.append(error)

    with gg.GradientTape() as tape:
        worker = threading.Thread(target=elsewhere)
        worker.start()
        worker.join()
    assert len(raised) == 1


def test_watch_inside_stop_recording_holds_afterwards():
    x = C(3.0)
    with gg.GradientTape() as tape:
        with tape.stop_recording():
            tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).item() == 6.0


@pytest.mark.parametrize("x", [C([1, 2]), C(True)], ids=["int", "bool"])
def test_watch_of_integers_warns(x):
    with gg.GradientTape() as tape, pytest.warns(UserWarning, match="has no gradient"):
        tape.watch(x)


def test_watch_applies_to_one_tape_only():
    """The inner tape's gradient 2 x1 x2 is differentiated only by what the outer one watches."""
    x1, x2 = C(2.0), C(3.0)
    with gg.GradientTape(persistent=True) as outer:
        outer.watch(x1)
        d1, d2 = tape_gradient(lambda x1, x2: x1 * x1 * x2, x1, x2)
    assert values([d1, d2]) == [12.0, 4.0]
    assert outer.gradient(d1, x1).item() == 6.0
    assert outer.gradient(d1, x2) is None


def test_watch_by_an_outer_tape_does_not_reach_the_inner():
    x1, x2 = C(2.0), C(5.0)
    with gg.GradientTape() as outer:
        outer.watch(x2)
        inner, z = taped(lambda x1: x1 * x2, x1)
        assert values(inner.gradient(z, [x1, x2])) == [5.0, None]
    assert outer.gradient(z, x2).item() == 2.0


# ---- what counts as the same tensor ---------------------------------------------------------


def test_unwatched_source_beside_a_watched_one_is_none():
    x, k = C(2.0), C(5.0)
    squared(k)  # another tape has watched k: that must not matter
    tape, z = taped(lambda x: x * k, x, persistent=True)
    for _ in range(2):  # nor must an earlier call
        assert values(tape.gradient(z, [x, k])) == [5.0, None]


@pytest.mark.parametrize(
    "again",
    [lambda x: C(3.0), lambda x: x + 0, lambda x: gg.positive(x), lambda x: gg.reshape(x, ())],
    ids=["equal", "plus zero", "positive", "reshape"],
)
def test_source_that_only_equals_the_watched_one_is_none(again):
    x = C(3.0)
    tape, y = squared(x)
    assert tape.gradient(y, again(x)) is None


@pytest.mark.parametrize(
    "same", [gg.convert_to_tensor, gg.asarray, copy.copy, copy.deepcopy], ids=lambda f: f.__name__
)
def test_source_may_be_an_alias_of_the_watched_tensor(same):
    x = C(3.0)
    tape, y = taped(lambda x: same(x) * same(x), x)
    assert tape.gradient(y, same(x)).item() == 6.0


def test_identity_ops_return_distinct_tensors():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        same = [gg.positive(x), x + 0, x - 0, x * 1]
        tape.watch(same)
        y = x * 2
        for s in same:
            y = y + s * 3
    results = values(tape.gradient(y, [x, *same]))
    assert results == [2.0 + 4 * 3.0, 3.0, 3.0, 3.0, 3.0]


# ---- targets --------------------------------------------------------------------------------


def test_target_that_is_the_source_gives_ones():
    x = C([3.0, 4.0])
    with gg.GradientTape(persistent=True) as tape:
        pass
    assert tape.gradient(x, x).tolist() == [1.0, 1.0]  # though it was never watched
    i, b, v = C(3), C(True), gg.Variable(2.0)
    g = tape.gradient(i, i)
    assert (g.item(), g.dtype) == (1, gg.int64)
    assert tape.gradient(b, b).item() is True
    assert tape.gradient(v, v).item() == 1.0


def test_nonscalar_target_is_summed():
    x = C([1.0, 2.0])
    tape, y = squared(x)
    assert tape.gradient(y, x).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (lambda x, y: [y, y], 8.0),
        (lambda x, y: [x, y], 5.0),
        (lambda x, y: {"b": y, "a": (x, [y])}, 9.0),
        (lambda x, y: [x, x], 2.0),
        (lambda x, y: (), None),
    ],
    ids=["twice", "with source", "nested", "source twice", "empty"],
)
def test_targets_add_up(targets, expected):
    x = C(2.0)
    tape, y = squared(x)
    assert value(tape.gradient(targets(x, y), x)) == expected


def test_targets_may_depend_on_each_other():
    x, y = C(3.0), C(5.0)
    tape, z = taped(lambda x, y: y * y, x, y)
    assert values(tape.gradient([x, y, z], [x, y])) == [1.0, 11.0]


def test_targets_of_mixed_dtypes_are_seeded_in_their_own_dtype():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = gg.astype(x, gg.float64) * 2.0
        z = x * x
    g = tape.gradient([y, z], x)
    assert (g.item(), g.dtype) == (8.0, gg.float32)


@pytest.mark.parametrize(
    "bad", [None, 3.0, np.ones(2), "s", iter(())], ids=lambda b: type(b).__name__
)
def test_refused_target_or_source_does_not_use_up_the_tape(bad):
    x = C(3.0)
    tape, y = squared(x)
    several = [] if bad is None else [(y, [x, bad])]  # None among sources has the gradient None
    for args in ((bad, x), ([y, bad], x), (y, bad), *several):
        with pytest.raises(DTypeError, match=r"target|sources"):
            tape.gradient(*args)
    assert tape.gradient(y, x).item() == 6.0


def test_integer_target_has_no_gradient():
    x = C([1.0, 3.0])
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        i, b = gg.argmax(x), x > 2
        through = gg.astype(gg.astype(x, gg.int32), gg.float32) * 2
    assert tape.gradient(i, x) is None
    assert tape.gradient(b, x) is None
    assert tape.gradient(through, x) is None


def test_indexed_slices_cannot_be_a_target_but_their_values_can():
    v = gg.Variable([[1.0, 2.0], [3.0, 4.0]])
    with gg.GradientTape() as outer:
        with gg.GradientTape() as inner:
            y = gg.sum(gg.gather(v, [1, 1]) ** 3)
        g = inner.gradient(y, v)
        assert isinstance(g, gg.IndexedSlices)
        with pytest.raises(DTypeError, match=r"\.values"):
            outer.gradient(g, v)
    assert value(g) == [[0.0, 0.0], [54.0, 96.0]]
    tape, y = taped(lambda g: gg.sum(g.values * 2), g)  # watches g.values
    assert tape.gradient(y, g.values).shape == (2, 2)


# ---- sources --------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class Model:
    weight: object
    parts: list


@dataclasses.dataclass(frozen=True)
class Frozen:
    weight: object


STRUCTURES = {
    "list": lambda x, y: [x, y], "tuple": lambda x, y: (x, y), "namedtuple": Pair,
    "dict": lambda x, y: {"b": x, "a": y}, "nested": lambda x, y: [[x], (y, []), {}],
    "ordered": lambda x, y: collections.OrderedDict(q=x, p=y),
    "namedtuple nest": lambda x, y: Pair([x], {"k": y}),
    "mapping": lambda x, y: types.MappingProxyType({"b": x, "a": y}),
    "dataclass": lambda x, y: Model(x, [y]),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURES)
def test_sources_keep_their_structure(name):
    x, y = C(2.0), C(3.0)
    tape, z = taped(lambda x, y: x * x * y, x, y)
    results = tape.gradient(z, STRUCTURES[name](x, y))
    assert repr(results) == repr(STRUCTURES[name](C(12.0), C(4.0)))


def test_sources_may_be_dict_values_and_dataclasses():
    x, y = C(2.0), C(3.0)
    tape, z = taped(lambda x, y: x * x * y, x, y, persistent=True)
    assert values(tape.gradient(z, {"b": x, "a": y}.values())) == [12.0, 4.0]
    frozen = tape.gradient(z, Frozen(y))
    assert isinstance(frozen, Frozen)
    assert frozen.weight.item() == 4.0


def test_results_in_a_counter_are_not_added_up():
    x = collections.Counter(a=gg.constant(1.0), b=gg.constant(2.0))
    results = gg.function(lambda tree: tree)(x)
    assert type(results) is collections.Counter
    assert {k: v.item() for k, v in results.items()} == {"a": 1.0, "b": 2.0}


def test_a_module_among_sources_is_refused_with_the_way_out():
    with gg.GradientTape() as tape:
        y = gg.Variable(1.0) * 2
    with pytest.raises(DTypeError, match="Pass its trainable_variables"):
        tape.gradient(y, gg.nn.Dense(2, 2))


def test_sources_in_a_defaultdict_keep_its_class():
    x = C(2.0)
    tape, y = squared(x)
    sources = collections.defaultdict(list, k=x)
    results = tape.gradient(y, sources)
    assert type(results) is collections.defaultdict
    assert results["k"].item() == 4.0
    assert sources["k"] is x


def test_empty_sources_give_an_empty_list():
    tape, y = squared(C(2.0))
    assert tape.gradient(y, []) == []


def test_sources_may_repeat():
    x, y = C(3.0), C(5.0)
    tape, z = taped(lambda x, y: x * 3 + y * 11, x, y, persistent=True)
    assert values(tape.gradient(z, [y, y])) == [11.0, 11.0]
    assert values(tape.gradient(z, [x, y, x])) == [3.0, 11.0, 3.0]


def test_source_downstream_of_the_target_is_none():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(y, [x, z])[1] is None


def test_intermediate_source_does_not_end_the_chain():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert values(tape.gradient(z, [x, y, z])) == [108.0, 18.0, 1.0]


def test_gradient_of_a_source_used_in_two_dtypes_has_the_source_dtype():
    x = C([1.0, 2.0], gg.float16)
    tape, y = taped(lambda x: gg.sum(gg.astype(x, gg.float64) * 3.0) + gg.sum(x * C([1.0, 1.0])), x)
    g = tape.gradient(y, x)
    assert g.dtype == gg.float16
    assert g.tolist() == [4.0, 4.0]


def test_gradient_of_a_broadcast_source_is_summed():
    x, y = C([[1.0], [2.0]]), C(3.0)
    dx, dy = tape_gradient(lambda x, y: x * y * gg.ones((2, 4)), x, y)
    assert dx.tolist() == [[12.0], [12.0]]
    assert dy.item() == 12.0


# ---- output_gradients -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "upstream",
    [C([1.0, 10.0]), [1.0, 10.0], np.array([1, 10], np.float32), gg.Variable([1.0, 10.0])],
    ids=["tensor", "list", "ndarray", "variable"],
)
def test_output_gradients_weight_each_element(upstream):
    x = C([1.0, 2.0])
    tape, y = squared(x)
    assert tape.gradient(y, x, output_gradients=upstream).tolist() == [2.0, 40.0]


def test_output_gradients_follow_the_targets_structure():
    x = C(2.0)
    tape, (y, z) = taped(lambda x: (x * x, x * 3), x, persistent=True)
    assert tape.gradient([y, z], x, output_gradients=[10.0, 1.0]).item() == 43.0
    assert tape.gradient([y, z], x, output_gradients=(None, C(1.0))).item() == 7.0
    by_key = tape.gradient({"y": y, "z": z}, x, output_gradients={"z": 1.0, "y": 10.0})
    assert by_key.item() == 43.0
    assert tape.gradient([y, x], x, output_gradients=[1.0, 2.0]).item() == 6.0
    assert tape.gradient(y, x, output_gradients=None).item() == 4.0


def test_zero_output_gradients_give_zero_not_none():
    x = C(2.0)
    tape, y = squared(x)
    assert tape.gradient(y, x, output_gradients=0.0).item() == 0.0


def test_output_gradients_may_be_indexed_slices():
    v = gg.Variable([[1.0], [2.0]])
    with gg.GradientTape() as tape:
        y = v * 3
    rows = gg.IndexedSlices(C([[2.0], [2.0]]), C([1, 1]), (2, 1))
    assert tape.gradient(y, v, output_gradients=rows).tolist() == [[0.0], [12.0]]


@pytest.mark.parametrize(
    ("upstream", "kind", "words"),
    [
        ([1.0], StructureError, "2"),
        ([1.0, 1.0, 1.0], StructureError, "2"),
        ([], StructureError, "2"),
        (1.0, StructureError, "output_gradients"),
        ([1.0, [1.0, 2.0, 3.0]], ShapeError, r"output_gradients\[1\].*\(2,\).*\(3,\)"),
        ([1.0, 1.0], ShapeError, r"\(2,\).*\(\)"),
        ([1.0, np.ones(2)], DTypeError, r"output_gradients\[1\].*float32.*float64"),
        ([C(1), np.ones(2, np.float32)], DTypeError, r"output_gradients\[0\].*float32.*int64"),
        ([1j, [1.0, 1.0]], DTypeError, r"output_gradients\[0\]"),
        (["x", [1.0, 1.0]], DTypeError, "x"),
    ],
    ids=["short", "long", "empty", "one", "shape", "scalar", "float64", "int", "complex", "text"],
)
def test_refused_output_gradients_do_not_use_up_the_tape(upstream, kind, words):
    x = C([1.0, 2.0])
    tape, targets = taped(lambda x: [gg.sum(x * x), x * 3], x)
    with pytest.raises(kind, match=words):
        tape.gradient(targets, x, output_gradients=upstream)
    assert tape.gradient(targets, x).tolist() == [5.0, 7.0]


def test_output_gradients_for_dicts_need_the_same_keys():
    x = C(2.0)
    tape, y = squared(x)
    with pytest.raises(StructureError, match="keys"):
        tape.gradient({"y": y}, x, output_gradients={"z": 1.0})


def test_output_gradients_are_differentiated_by_outer_tapes():
    x, u = C(3.0), C(1.0)
    outer, g = taped(lambda u: tape_gradient(lambda x: x * x, x, output_gradients=u), u)
    assert outer.gradient(g, u).item() == 6.0


# ---- unconnected_gradients ------------------------------------------------------------------


@pytest.mark.parametrize("zero", ["zero", gg.UnconnectedGradients.ZERO])
@pytest.mark.parametrize(
    "x",
    [C([1.0, 2.0]), C(np.nan), C(3), C(True), C(1j), gg.Variable([[1.0]]), C([1.0], "bfloat16")],
    ids=lambda x: str(x.dtype),
)
def test_unconnected_zero_has_the_sources_shape_and_dtype(x, zero):
    with gg.GradientTape(persistent=True) as tape:
        y = C(1.0) * 2
    assert tape.gradient(y, x) is None
    assert tape.gradient(y, x, unconnected_gradients="none") is None
    assert tape.gradient(y, x, unconnected_gradients=gg.UnconnectedGradients.NONE) is None
    g = tape.gradient(y, x, unconnected_gradients=zero)
    assert (g.shape, g.dtype) == (x.shape, x.dtype)
    assert not np.any(g.numpy())


def test_unconnected_zero_without_targets():
    x = C(1.0)
    tape, _ = squared(x)
    assert tape.gradient([], x, unconnected_gradients="zero").item() == 0.0


@pytest.mark.parametrize("word", ["ZERO", "nonsense", None, 0])
def test_refused_unconnected_gradients_value_does_not_use_up_the_tape(word):
    x = C(2.0)
    tape, y = squared(x)
    with pytest.raises(ArgumentError, match="unconnected_gradients"):
        tape.gradient(y, x, unconnected_gradients=word)
    assert tape.gradient(y, x).item() == 4.0


def test_zero_derivative_is_not_unconnected():
    x = C(2.0)
    assert tape_gradient(lambda x: x * 0, x).item() == 0.0


# ---- how often gradients can be computed ----------------------------------------------------


@pytest.mark.parametrize("method", ["gradient", "jacobian", "batch_jacobian"])
def test_second_gradient_of_a_nonpersistent_tape_is_refused(method):
    x = C([[2.0]])
    tape, y = squared(x)
    getattr(tape, method)(y, x)
    for again in ("gradient", "jacobian", "batch_jacobian"):
        with pytest.raises(TapeError, match="persistent=True"):
            getattr(tape, again)(y, x)


def test_persistent_tape_gives_any_number_of_gradients():
    x = C(3.0)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert [tape.gradient(z, x).item() for _ in range(3)] == [108.0] * 3
    assert tape.gradient(y, x).item() == 6.0


def test_persistent_accepts_any_truth_value():
    x = C(3.0)
    tape, y = squared(x, persistent=1)
    assert [tape.gradient(y, x).item() for _ in range(2)] == [6.0, 6.0]


def test_gradient_inside_the_block_ends_the_recording():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert tape.gradient(y, x).item() == 6.0
        assert not recorder_module.threads.stack
        x * x
    with pytest.raises(TapeError):
        tape.gradient(y, x)


def test_gradient_inside_the_block_of_a_persistent_tape_is_recorded():
    x = C(3.0)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * x
        dy = tape.gradient(y, x)
        d2y = tape.gradient(dy, x)
    assert values([dy, d2y, tape.gradient(d2y, x)]) == [27.0, 18.0, 6.0]


def test_gradient_outside_the_block_is_not_recorded():
    x = C(3.0)
    tape, y = squared(x, persistent=True)
    g = tape.gradient(y, x)
    assert tape.gradient(g, x) is None


@pytest.mark.parametrize("persistent", [False, True])
def test_gradient_inside_stop_recording_is_not_recorded_and_leaves_nothing_recording(persistent):
    x = C(3.0)
    with gg.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            g = tape.gradient(y, x)
    assert g.item() == 6.0
    assert not recorder_module.threads.stack
    assert not listening.recorders
    if persistent:
        assert tape.gradient(g, x) is None


def test_gradient_can_be_computed_in_another_thread():
    x, results = C(3.0), []
    tape, y = squared(x)
    worker = threading.Thread(target=lambda: results.append(tape.gradient(y, x).item()))
    worker.start()
    worker.join()
    assert results == [6.0]


# ---- failing rules --------------------------------------------------------------------------


@pytest.mark.parametrize("persistent", [False, True])
def test_rule_that_fails_leaves_the_tape_usable(persistent):
    @gg.custom_gradient
    def fragile(x):
        def grad(dy):
            if failing:
                raise RuntimeError("not today")
            return dy * 2

        return x * 2, grad

    x, failing = C(3.0), True
    tape, y = taped(lambda x: fragile(x) * x, x, persistent=persistent)
    with pytest.raises(RuntimeError, match="not today"):
        tape.gradient(y, x)
    assert not recorder_module.threads.stack
    assert not listening.recorders
    failing = False
    assert tape.gradient(y, x).item() == 12.0


def test_missing_rule_raises_only_when_it_is_needed():
    @gg.op(vjp=[...])
    def half_known(xp, x, /):
        return xp.lib.sin(x)

    x = C(1.0)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        h = half_known(x)
        y = h * 2
        other = x * 3
    with pytest.raises(NoGradientError, match=r"half_known.*stop_gradient"):
        tape.gradient(y, x)
    assert tape.gradient(other, x).item() == 3.0
    assert tape.gradient(y, h).item() == 2.0
    gg.no_gradient("half_known")
    assert tape.gradient(y, x) is None


def test_no_gradient_also_applies_to_masked_passes():
    @gg.op(vjp=[..., lambda xp, g: g])
    def half_known(xp, x, y, /):
        return x + y

    def gradient(by):
        x, y = C(-1.0), C(2.0)
        with gg.GradientTape() as tape:
            tape.watch({"x": x, "y": y}[by])
            z = half_known(x, y) + gg.where(x * y > 0, (x - y) * np.inf, 0)
        return tape.gradient(z, {"x": x, "y": y}[by])

    assert gradient("y").item() == 1.0  # NaN at first: products are masked in a second pass
    gg.no_gradient("half_known")
    assert gradient("x").item() == 0.0


def test_rules_of_results_that_the_target_does_not_use_never_run():
    calls = []

    @gg.custom_gradient
    def spy(x):
        def grad(dy):
            calls.append(1)
            return dy

        return x * 1, grad

    x = C(3.0)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        unused = spy(x)
        stopped = gg.stop_gradient(spy(x)) * 2
        y = x * x
    assert tape.gradient(y, x).item() == 6.0
    assert tape.gradient(stopped, x) is None
    assert calls == []
    assert tape.gradient(unused, x).item() == 1.0
    assert calls == [1]
    w = C(2.0)  # nor those that lead to no requested source
    tape, y = taped(lambda x, w: spy(x) * w, x, w, persistent=True)
    assert tape.gradient(y, w).item() == 3.0
    assert calls == [1]
    assert values(tape.gradient(y, [x, w])) == [2.0, 3.0]
    assert calls == [1, 1]


# ---- stop_recording and reset ---------------------------------------------------------------


def test_stop_recording_skips_operations_inside_it():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording() as nothing:
            hidden = x * x
        z = y + hidden + x
    assert nothing is None
    assert tape.gradient(z, x).item() == 7.0


def test_stop_recording_pauses_this_tape_only():
    x = C(3.0)
    with gg.GradientTape() as outer, gg.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        with inner.stop_recording():
            y = x * x
    assert inner.gradient(y, x) is None
    assert outer.gradient(y, x).item() == 6.0


def test_stop_recording_resumes_after_an_exception():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(ZeroDivisionError), tape.stop_recording():
            _ = 1 / 0
        y = x * x
    assert tape.gradient(y, x).item() == 6.0


def test_stop_recording_and_reset_need_a_tape_that_records():
    tape = gg.GradientTape()
    with pytest.raises(TapeError, match="not recording"), tape.stop_recording():
        pass
    with pytest.raises(TapeError, match="not recording"):
        tape.reset()
    with tape, tape.stop_recording():
        with pytest.raises(TapeError, match="not recording"), tape.stop_recording():
            pass
        with pytest.raises(TapeError, match="not recording"):
            tape.reset()
    with pytest.raises(TapeError, match="not recording"):
        tape.reset()


def test_tape_entered_inside_its_own_pause_still_records_afterwards():
    x = C(3.0)
    with gg.GradientTape() as tape:
        with tape.stop_recording(), tape:
            tape.watch(x)
            y = x * x
        tape.watch(y)
        z = y * y
    assert tape.gradient(z, x).item() == 108.0
    assert not recorder_module.threads.stack


def test_reset_forgets_records_watches_and_variables():
    x, v, w = C(3.0), gg.Variable(2.0), gg.Variable(5.0)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * v
        tape.reset()
        assert tape.watched_variables() == ()
        z = x * x * w
    assert tape.gradient(y, [x, v]) == [None, None]
    assert values(tape.gradient(z, [x, w])) == [None, 9.0]
    assert tape.watched_variables() == (w,)


# ---- Variables ------------------------------------------------------------------------------


def test_variables_are_watched_when_read_if_trainable():
    v, w, k = gg.Variable(2.0), gg.Variable(3.0), gg.Variable(5.0, trainable=False)
    with gg.GradientTape() as tape:
        y = w * v * k
    assert tape.watched_variables() == (v, w)  # in order of creation
    assert values(tape.gradient(y, [v, w, k])) == [15.0, 10.0, None]
    assert tape.watched_variables() == (v, w)


def test_variables_can_be_watched_explicitly():
    v, w = gg.Variable(2.0), gg.Variable(3.0)
    with gg.GradientTape(watch_accessed_variables=False) as tape:
        early = w * 2
        tape.watch(w)
        y = v * w + early
    assert tape.watched_variables() == (w,)
    assert values(tape.gradient(y, [v, w])) == [None, 2.0]


def test_watched_variables_are_empty_before_the_block():
    assert gg.GradientTape().watched_variables() == ()


def test_variable_read_while_paused_is_not_watched():
    v = gg.Variable(2.0)
    with gg.GradientTape() as tape, tape.stop_recording():
        v * v
    assert tape.watched_variables() == ()


def test_variable_gradient_is_the_sum_over_its_reads():
    v = gg.Variable(3.0)
    with gg.GradientTape(persistent=True) as tape:
        r = v.value()
        y = v * r * v.read_value()
    assert tape.gradient(y, v).item() == 27.0
    assert tape.gradient(y, r).item() == 9.0


def test_variable_gradient_uses_the_value_that_was_read():
    v = gg.Variable(3.0)
    with gg.GradientTape(persistent=True) as tape:
        y = v * v
        v.assign(10.0)
        z = v * v
    assert values([tape.gradient(t, v) for t in (y, z, [y, z])]) == [6.0, 20.0, 26.0]


@pytest.mark.parametrize("start", [1.0, [1.0, 1.0]])
def test_variable_updated_in_a_loop(start):
    v, y = gg.Variable(start), 0.0
    with gg.GradientTape() as tape:
        for _ in range(3):
            y = y + v * v
            v.assign_add(gg.ones_like(v))
    assert np.all(tape.gradient(y, v).numpy() == 12.0)


def test_assign_carries_no_gradient():
    v, w = gg.Variable(1.0), gg.Variable(2.0)
    with gg.GradientTape() as tape:
        v.assign(w * w)
        y = v * v
    assert values(tape.gradient(y, [v, w])) == [8.0, None]
    with gg.GradientTape() as tape:
        y = v.assign_add(w) * 2
    assert values(tape.gradient(y, [v, w])) == [2.0, None]


def test_variable_created_inside_the_tape_cuts_the_chain():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        v = gg.Variable(x * x)
        y = v * 2
    assert values(tape.gradient(y, [x, v])) == [None, 2.0]


def test_python_max_over_variables():
    vs = [gg.Variable(2.0), gg.Variable(3.0), gg.Variable(5.0)]
    with gg.GradientTape() as tape:
        y = max(vs) * 1
    assert values(tape.gradient(y, vs)) == [None, None, 1.0]


def test_integer_variable_has_no_gradient():
    v = gg.Variable([1, 2])
    with gg.GradientTape() as tape:
        y = gg.sum(v * 2.0)
    assert tape.watched_variables() == (v,)
    assert tape.gradient(y, v) is None


def test_numpy_conversion_of_a_variable_inside_a_tape_is_refused():
    """Otherwise it would silently cut the gradient before the tape has seen the Variable."""
    v = gg.Variable([1.0, 2.0])
    with gg.GradientTape(), pytest.raises(DTypeError, match=r"x\.numpy"):
        np.asarray(v)
    assert np.asarray(v).tolist() == [1.0, 2.0]


# ---- higher order ---------------------------------------------------------------------------

SECOND = {
    "x*x": (lambda x: x * x, 6.0, 2.0), "x+x": (lambda x: x + x, 2.0, None),
    "x*5": (lambda x: x * 5, 5.0, None), "x-1": (lambda x: x - 1, 1.0, None),
    "-x": (lambda x: -x, -1.0, None), "x/2": (lambda x: x / 2, 0.5, None),
    "reshape": (lambda x: gg.reshape(x, (1,)), 1.0, None), "sum": (gg.sum, 1.0, None),
    "x%2": (lambda x: x % 2, 1.0, None), "abs": (gg.abs, 1.0, 0.0),
    "maximum": (lambda x: gg.maximum(x, 1.0), 1.0, None), "sign": (gg.sign, 0.0, None),
    "x**1": (lambda x: x**1, 1.0, 0.0), "square": (gg.square, 6.0, 2.0),
    "x**2": (lambda x: x**2, 6.0, 2.0), "x**3": (lambda x: x**3, 27.0, 18.0),
    "exp": (gg.exp, np.exp(3.0), np.exp(3.0)), "1/x": (lambda x: 1 / x, -1 / 9, 2 / 27),
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_second_derivative(name):
    """None, not 0, where the first derivative does not use x: as in TensorFlow."""
    f, first, second = SECOND[name]
    x = C(3.0, gg.float64)
    outer, g = taped(lambda x: tape_gradient(f, x), x)
    assert g.item() == pytest.approx(first, rel=1e-12)
    g2 = outer.gradient(g, x)
    assert g2 is None if second is None else g2.item() == pytest.approx(second, rel=1e-12)


def test_derivatives_to_the_fifth_order():
    x = C(0.5, gg.float64)
    tapes = [gg.GradientTape() for _ in range(5)]
    for tape in tapes:
        tape.__enter__()
        tape.watch(x)
    d, results = gg.sin(x) * gg.exp(x), []
    for tape in reversed(tapes):
        d = tape.gradient(d, x)
        results.append(d.item())
    s, c, e = np.sin(0.5), np.cos(0.5), np.exp(0.5)
    expected = [e * (s + c), 2 * e * c, 2 * e * (c - s), -4 * e * s, -4 * e * (s + c)]
    assert results == pytest.approx(expected, rel=1e-12)


def test_inner_gradient_outside_the_outer_block_is_a_constant():
    x = C(3.0)
    outer, (inner, y) = taped(lambda x: taped(lambda x: x * x, x), x)
    assert outer.gradient(inner.gradient(y, x), x) is None


def test_inner_gradient_may_be_used_in_the_outer_target():
    x = C(3.0)
    with gg.GradientTape() as outer:
        outer.watch(x)
        inner, y = taped(lambda x: x * x, x)
        z = inner.gradient(y, x) * y  # 2 x^3
    assert outer.gradient(z, x).item() == 54.0


def test_gradient_of_a_vector_gradient_is_row_sums_of_the_hessian():
    x = C([2.0, 3.0])
    outer, g = taped(lambda x: tape_gradient(lambda x: x[0] * x[0] * x[1], x), x)
    assert outer.gradient(g, x).tolist() == [10.0, 4.0]


# ---- IndexedSlices --------------------------------------------------------------------------


def test_gather_gradient_keeps_repeated_rows():
    v = gg.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with gg.GradientTape() as tape:
        y = gg.gather(v, [2, 0, 2]) * 3
    g = tape.gradient(y, v)
    assert isinstance(g, gg.IndexedSlices)
    assert (g.shape, g.dtype, g.dense_shape) == ((3, 2), gg.float32, (3, 2))
    assert sorted(g.indices.tolist()) == [0, 2, 2]
    assert value(g) == [[3.0, 3.0], [0.0, 0.0], [6.0, 6.0]]
    assert gg.convert_to_tensor(g).tolist() == value(g)


def test_gradients_of_gathers_stay_sparse_until_a_dense_use():
    v = gg.Variable([[1.0], [2.0], [3.0]])
    with gg.GradientTape(persistent=True) as tape:
        rows = gg.sum(gg.gather(v, [0, 2])) + gg.sum(gg.gather(v, [1]) * 2)
        mixed = rows + gg.sum(v * v)
    g = tape.gradient(rows, v)
    assert isinstance(g, gg.IndexedSlices)
    assert sorted(g.indices.tolist()) == [0, 1, 2]
    assert value(g) == [[1.0], [2.0], [1.0]]
    dense = tape.gradient(mixed, v)
    assert isinstance(dense, gg.Tensor)
    assert dense.tolist() == [[3.0], [6.0], [7.0]]


def test_sparse_gradient_becomes_dense_in_the_rule_of_another_op():
    x = C([[1.0], [2.0]])
    g = tape_gradient(lambda x: gg.gather(x * x, [1, 1]), x)
    assert value(g) == [[0.0], [8.0]]


def test_sparse_gradient_of_one_result_beside_an_unused_one():
    x = gg.Variable([[3.0, 1.0], [4.0, 2.0]])
    with gg.GradientTape(persistent=True) as tape:
        q, _ = gg.linalg.qr(x)
        gathered, indexed = gg.gather(q, [1, 1]), q[[1, 1]]
    assert tape.gradient(gathered, x).tolist() == tape.gradient(indexed, x).tolist()


def test_gather_along_another_axis_and_indexing_are_dense():
    x = C([[1.0, 2.0], [3.0, 4.0]])
    tape, (y, z) = taped(lambda x: (gg.gather(x, [1, 1], axis=1), x[0]), x, persistent=True)
    assert tape.gradient(y, x).tolist() == [[0.0, 2.0], [0.0, 2.0]]
    assert tape.gradient(z, x).tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_product_of_three_gathers():
    v = gg.Variable([1.0, 2.0, 3.0])
    with gg.GradientTape() as tape:
        y = gg.gather(v, [0, 1]) * gg.gather(v, [1, 2]) * gg.gather(v, [1, 1])
    # y = [v0 v1 v1, v1 v2 v1]
    assert value(tape.gradient(y, v)) == [4.0, 4.0 + 12.0, 4.0]


def test_second_order_through_a_sparse_gradient():
    v = gg.Variable([1.0, 2.0])
    with gg.GradientTape() as outer:
        with gg.GradientTape() as inner:
            y = gg.sum(gg.gather(v, [1, 1]) ** 3)
        g = gg.convert_to_tensor(inner.gradient(y, v))
    assert g.tolist() == [0.0, 24.0]
    assert value(outer.gradient(g, v)) == [0.0, 24.0]


def test_unconnected_gather_gradient_is_dense_zeros():
    v = gg.Variable([1.0, 2.0])
    with gg.GradientTape() as tape:
        gg.gather(v, [0])
        y = C(1.0) * 1
    assert tape.gradient(y, v, unconnected_gradients="zero").tolist() == [0.0, 0.0]


# ---- complex --------------------------------------------------------------------------------

COMPLEX = {
    "z*z": (lambda z: z * z, 2 - 4j), "exp": (gg.exp, np.exp(1 - 2j)),
    "conj": (gg.conj, 1 + 0j), "real": (gg.real, 1 + 0j), "imag": (gg.imag, 1j),
    "abs": (gg.abs, (1 + 2j) / np.sqrt(5)), "abs**2": (lambda z: gg.abs(z) ** 2, 2 + 4j),
    "real(z*z)": (lambda z: gg.real(z * z), 2 - 4j), "angle": (gg.angle, -0.4 + 0.2j),
    "1j*z": (lambda z: 1j * z, -1j), "1/z": (lambda z: 1 / z, 0.12 - 0.16j),
    "sqrt": (gg.sqrt, np.conj(0.5 / np.sqrt(1 + 2j))), "log": (gg.log, 0.2 + 0.4j),
    "sin": (gg.sin, np.conj(np.cos(1 + 2j))), "|z|^2": (lambda z: gg.real(z * gg.conj(z)), 2 + 4j),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_gradient_is_real_derivative_plus_i_times_imaginary_derivative(name):
    f, expected = COMPLEX[name]
    z = C(1 + 2j, gg.complex128)
    g = tape_gradient(f, z)
    assert g.dtype == gg.complex128
    assert g.item() == pytest.approx(expected, rel=1e-12)


def test_complex_abs_at_zero_has_gradient_zero():
    z = C(0j)
    assert tape_gradient(gg.abs, z).item() == 0


def test_complex_product_with_a_real_source_gives_a_real_gradient():
    a = C(2.0, gg.float64)
    with gg.GradientTape() as tape:
        tape.watch(a)
        w = gg.complex(a, a * 2) ** 2  # (-3 + 4i) a^2, upstream 1: the real part counts
    g = tape.gradient(w, a)
    assert (g.dtype, g.item()) == (gg.float64, -12.0)


@pytest.mark.parametrize(
    "call",
    [gg.softplus, lambda z: gg.softmax(z, axis=0), gg.special.gamma,
     lambda z: gg.multiply_no_nan(2.0, z), lambda z: gg.nn.layer_norm(z),
     lambda z: gg.nn.mse_loss(z, z + 1)],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["tape", "forward", "function", "graph"])
def test_real_only_ops_refuse_to_record_complex_tensors(call, mode):
    z = C([1 + 2j, 3 - 1j], gg.complex128)
    call(z)  # works without a tape
    refused = pytest.raises(DTypeError, match=r"real numbers.* complex128 .*gg.stop_gradient\(x\)")
    if mode == "forward":
        with gg.ForwardAccumulator(z, z), refused:
            call(z)
    elif mode == "graph":
        with gg.Graph().as_default(), refused:
            y = call(z)
            gg.gradients(y, z)
    else:
        run = gg.function(call) if mode == "function" else call
        with gg.GradientTape() as tape:
            tape.watch(z)
            with refused:
                run(z)
            w = z * gg.abs(call(gg.stop_gradient(z)))
        assert tape.gradient(w, z).dtype == gg.complex128


def test_complex_jacobian_is_the_conjugate_derivative():
    z = C([1 + 2j, 3 - 1j])
    tape, w = squared(z)
    np.testing.assert_allclose(
        tape.jacobian(w, z).numpy(), np.diag([2 - 4j, 6 + 2j]).astype(np.complex64), rtol=1e-6
    )


# ---- threads --------------------------------------------------------------------------------


def test_tape_records_only_its_own_thread():
    x, results = C(3.0), []
    with gg.GradientTape() as tape:
        tape.watch(x)
        worker = threading.Thread(target=lambda: results.append(x * x))
        worker.start()
        worker.join()
    assert tape.gradient(results[0], x) is None


def test_threads_record_side_by_side():
    v, results = gg.Variable(2.0), {}
    barrier = threading.Barrier(4)

    def work(n):
        with gg.GradientTape() as tape:
            barrier.wait(timeout=100)
            y = v
            for _ in range(n):
                y = y * v
            barrier.wait(timeout=100)
        results[n] = (tape.gradient(y, v).item(), len(recorder_module.threads.stack))

    workers = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3, 4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert results == {n: ((n + 1) * 2.0**n, 0) for n in (1, 2, 3, 4)}
    assert not listening.recorders


def test_tape_may_be_continued_in_another_thread():
    x, tape, results = C(3.0), gg.GradientTape(), []
    with tape:
        tape.watch(x)
        y = x * x

    def go_on():
        with tape:
            results.append(y * 2)

    worker = threading.Thread(target=go_on)
    worker.start()
    worker.join()
    assert tape.gradient(results[0], x).item() == 12.0


# ---- jacobian -------------------------------------------------------------------------------


def test_jacobian_has_target_axes_then_source_axes():
    x, m = C([1.0, 2.0]), C([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with gg.GradientTape(persistent=True) as tape:
        tape.watch([x, m])
        y = x @ m
        s = gg.sum(y * y)
    jx, jm = tape.jacobian(y, (x, m))
    assert jx.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert jm.shape == (3, 2, 3)
    expected = np.zeros((3, 2, 3))
    for j in range(3):
        expected[j, :, j] = [1.0, 2.0]
    assert jm.tolist() == expected.tolist()
    assert tape.jacobian(s, x).shape == (2,)
    assert tape.jacobian(y, []) == []


def test_jacobian_of_two_sources():
    x, y = C([1.0, 2.0]), C([3.0, 4.0])
    tape, z = taped(lambda x, y: x * x * y, x, y)
    results = tape.jacobian(z, {"x": x, "y": y})
    assert results["x"].tolist() == [[6.0, 0.0], [0.0, 16.0]]
    assert results["y"].tolist() == [[1.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize("flags", [{"parallel_iterations": 2}, {"experimental_use_pfor": False}])
def test_jacobian_accepts_the_flags_of_tensorflow(flags):
    x = C([1.0, 2.0])
    tape, y = squared(x)
    assert tape.jacobian(y, x, **flags).tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_unconnected_jacobian_is_none_or_zeros():
    x = C([1.0, 2.0])
    tape, y = squared(x, persistent=True)
    k = C([1.0, 2.0, 3.0], gg.float64)
    assert tape.jacobian(y, k) is None
    zeros = tape.jacobian(y, k, unconnected_gradients="zero")
    assert zeros.tolist() == [[0.0] * 3] * 2
    assert zeros.dtype == gg.float64
    with pytest.raises(ArgumentError, match="unconnected_gradients"):
        tape.jacobian(y, x, unconnected_gradients="nonsense")


def test_jacobian_of_an_empty_target_is_empty():
    x = C([1.0, 2.0])
    tape, y = taped(lambda x: x[:0] * 2, x)
    assert tape.jacobian(y, x).shape == (0, 2)


@pytest.mark.parametrize("bad", [None, 3.0, [C(1.0)]], ids=["None", "number", "list"])
def test_jacobian_needs_one_tensor_as_target(bad):
    x = C(1.0)
    tape, y = squared(x)
    with pytest.raises(DTypeError, match="jacobian"):
        tape.jacobian(bad, x)
    assert tape.jacobian(y, x).item() == 2.0


def test_jacobian_of_integers_is_none():
    x = C([1.0, 2.0])
    tape, y = taped(lambda x: gg.astype(x, gg.int32), x)
    assert tape.jacobian(y, x) is None


def test_jacobian_of_a_gather_is_dense():
    v = gg.Variable([1.0, 2.0])
    with gg.GradientTape() as tape:
        y = gg.gather(v, [1, 1, 0])
    assert tape.jacobian(y, v).tolist() == [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]


def test_jacobian_is_differentiated_by_outer_tapes():
    x = C([1.0, 2.0])
    with gg.GradientTape() as outer:
        outer.watch(x)
        inner, y = taped(lambda x: x * x * x, x)
        j = inner.jacobian(y, x)
    assert outer.gradient(j, x).tolist() == [6.0, 12.0]


def test_jacobian_respects_custom_gradient():
    @gg.custom_gradient
    def odd(x):
        return x * 2, lambda dy: dy * 100

    x = C([1.0, 2.0])
    tape, y = taped(odd, x)
    assert tape.jacobian(y, x).tolist() == [[100.0, 0.0], [0.0, 100.0]]


def test_batch_jacobian_is_one_jacobian_per_example():
    x = C([[1.0, 2.0], [3.0, 4.0]])
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = gg.stack([x[:, 0] * x[:, 1], x[:, 0], x[:, 1] ** 2], axis=1)
    expected = [[[2.0, 1.0], [1.0, 0.0], [0.0, 4.0]], [[4.0, 3.0], [1.0, 0.0], [0.0, 8.0]]]
    assert tape.batch_jacobian(y, x).tolist() == expected


@pytest.mark.parametrize(
    ("target", "source", "kind", "words"),
    [
        ((2,), (2, 2), ShapeError, r"target.*\(2,\)"),
        ((2, 2), (2,), ShapeError, r"source.*\(2,\)"),
        ((4, 2), (2, 2), ShapeError, r"\(4, 2\).*\(2, 2\)"),
    ],
)
def test_batch_jacobian_refuses_shapes_without_a_common_batch(target, source, kind, words):
    tape, _ = squared(C(1.0))
    with pytest.raises(kind, match=words):
        tape.batch_jacobian(gg.ones(target), gg.ones(source))


def test_batch_jacobian_refuses_lists():
    x = C([[1.0]])
    tape, y = squared(x)
    with pytest.raises(DTypeError, match="batch_jacobian"):
        tape.batch_jacobian(y, [x])


@pytest.mark.parametrize("shape", [(1, 0), (0, 2)])
def test_batch_jacobian_of_an_empty_tensor_is_empty(shape):
    x = gg.ones(shape)
    tape, y = squared(x)
    assert tape.batch_jacobian(y, x).shape == (*shape, shape[1])


def test_batch_jacobian_unconnected_is_zeros():
    x = C([[1.0, 2.0]], gg.float64)
    tape, _ = squared(x)
    g = tape.batch_jacobian(gg.ones((1, 3), dtype=gg.float64), x)
    assert (g.tolist(), g.dtype) == ([[[0.0, 0.0]] * 3], gg.float64)


# ---- explain --------------------------------------------------------------------------------


def line_of(text):
    """file:line of the line in the calling test that holds `text`."""
    frame = inspect.currentframe().f_back
    lines, start = inspect.getsourcelines(frame.f_code)
    results = [start + k for k, line in enumerate(lines) if text in line and "line_of" not in line]
    return f"test_tape.py:{results[0]}"


def test_explain_says_that_there_is_a_gradient():
    x = C(3.0)
    tape, y = squared(x)
    assert "is not None" in tape.explain(y, x)
    assert "target is the source" in tape.explain(y, y)
    assert tape.gradient(y, x).item() == 6.0  # explain does not use up the tape


@pytest.mark.parametrize(
    "stop",
    [gg.floor, gg.ceil, gg.round, gg.trunc, lambda x: gg.astype(x, gg.int32), gg.argmax,
     lambda x: x > 1, lambda x: x // 2],
    ids=["floor", "ceil", "round", "trunc", "astype", "argmax", "greater", "floor_divide"],
)  # fmt: skip
def test_explain_names_the_op_without_a_gradient_and_its_line(stop, request):
    x = C([1.5, 2.5])
    with gg.GradientTape() as tape:
        tape.watch(x)
        steps = stop(x * 2)
        y = gg.sum(steps * 1.0)
    assert tape.gradient(y, x) is None
    message = tape.explain(y, x)
    assert f"only through {request.node.callspec.id} (test_tape.py:" in message
    assert "no gradient" in message


def test_explain_names_the_line_of_floor():
    x = C(1.5)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = gg.floor(x) * 2
    assert f"floor ({line_of('y = gg.floor(x)')})" in tape.explain(y, x)


def test_explain_finds_a_barrier_behind_other_ops():
    x, w = C([1.5, 2.5]), gg.Variable(2.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        a, b = gg.unstack(gg.floor(x) + 1.0)
        y = a * b * w
    assert values(tape.gradient(y, [x, w])) == [None, 6.0]
    assert "floor" in tape.explain(y, x)


def test_explain_names_stop_gradient_and_its_line():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = gg.stop_gradient(x * x) * 2
    assert tape.gradient(y, x) is None
    message = tape.explain(y, x)
    assert f"stop_gradient ({line_of('y = gg.stop_gradient')})" in message


def test_explain_names_assign_and_its_line():
    v, w = gg.Variable(1.0), gg.Variable(2.0)
    with gg.GradientTape() as tape:
        v.assign(w * w)
        y = v * v
    assert tape.gradient(y, w) is None
    message = tape.explain(y, w)
    assert f"assign ({line_of('v.assign(w * w)')})" in message


def test_explain_says_that_a_variable_was_not_read():
    v, k = gg.Variable(3.0, name="v"), gg.Variable(2.0, name="k", trainable=False)
    with gg.GradientTape() as tape:
        y = k * 2
    assert "'v' was not read" in tape.explain(y, v)
    assert "trainable=False" in tape.explain(y, k)


def test_explain_says_why_the_source_and_the_target_are_not_connected():
    x, w, i = C(3.0), C(2.0), C([1, 2])
    tape, y = taped(lambda w: gg.sum(i * w) + x, w, persistent=True)
    other, z = taped(lambda x, w: x * x, x, w, persistent=True)
    for t, target, source, words in (
        (tape, y, x, "not watched"), (tape, y, i, "int64"), (tape, C(1.0), C(2.0), "not watched"),
        (tape, y * 2, w, "outside"), (other, z, w, "leads"),
    ):  # fmt: skip
        assert t.gradient(target, source) is None
        assert words in t.explain(target, source)


def test_explain_says_that_a_view_is_older_than_the_watch():
    x = C([1.0, 2.0, 3.0])
    older = x[1:]
    for factor in (1.0, gg.Variable(2.0)):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = gg.sum(older * factor)
        assert tape.gradient(y, x) is None
        assert "A view of the source by getitem, of shape (2,), is older" in tape.explain(y, x)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = gg.sum(older) + x[0]
    assert tape.gradient(y, x).tolist() == [1.0, 0.0, 0.0]
    assert "is not None. A view of the source by getitem" in tape.explain(y, x)
    del older
    tape, y = taped(lambda x: gg.sum(x[1:]), x)
    assert "older" not in tape.explain(y, x)


@pytest.mark.parametrize("persistent", [False, True])
def test_explain_knows_arguments_without_a_gradient(persistent):
    x = C(3.0)
    tape, y = taped(lambda x: gg.copysign(2.0, x), x, persistent=persistent)
    assert tape.gradient(y, x) is None
    assert "is not None" not in tape.explain(y, x)


def test_explain_after_a_gradient_makes_no_false_claim():
    """The record is gone, so explain must not claim that no path leads to the target."""
    x = C(3.0)
    tape, y = squared(x)
    tape.gradient(y, x)
    try:
        message = tape.explain(y, x)
    except TapeError:
        return
    assert "Nothing" not in message
    assert "not None" in message


def test_explain_refuses_non_tensors():
    x = C(3.0)
    tape, y = squared(x)
    with pytest.raises(DTypeError):
        tape.explain(y, 3.0)


# ---- what is held, and what is freed --------------------------------------------------------


def test_gradient_frees_all_arrays_of_a_nonpersistent_tape():
    x = gg.ones(3)
    with gg.GradientTape() as tape:
        tape.watch(x)
        a = gg.exp(x)
        y = gg.sum(a * a)
    watched, inner, out = alive(x._data), alive(a._data), alive(y._data)
    g = tape.gradient(y, x)
    del x, a, y
    assert not any(exists() for exists in (watched, inner, out))
    assert g.shape == (3,)
    del tape


def test_gradient_of_none_also_frees_the_arrays():
    x = gg.ones(3)
    with gg.GradientTape() as tape:
        tape.watch(x)
        a = gg.exp(x)
        y = gg.sum(gg.floor(a * a))
    inner = alive(a._data)
    assert tape.gradient(y, x) is None
    del a
    assert not inner()
    assert "floor" in tape.explain(y, x)


def test_explain_of_a_tape_that_recorded_nothing_raises():
    with pytest.raises(TapeError, match="recorded nothing"):
        gg.GradientTape().explain(C(1.0), C(2.0))


def test_intermediate_that_no_rule_reads_is_freed_at_once():
    x = gg.ones(3)
    with gg.GradientTape() as tape:
        tape.watch(x)
        a = x + 1.0
        b = gg.exp(a)  # keeps its result, not its argument
        y = gg.sum(b)  # keeps a shape
        sum_in, exp_in = alive(b._data), alive(a._data)
        del a
        assert not exp_in()
        del b
        assert sum_in()  # exp's rule reads it
    assert tape.gradient(y, x).shape == (3,)
    assert not sum_in()


@gg.custom_gradient
def double(x):
    return x + 1.0, lambda dy: dy * 2  # closes over nothing


@pytest.mark.parametrize(
    ("use", "slope"),
    [(double, 2.0), (lambda a: a * 2.0, 2.0), (lambda a: a @ gg.ones((3, 3)), 3.0),
     (lambda a: a * gg.ones(3), 1.0), (lambda a: a / 2.0, 0.5)],
    ids=["custom gradient", "number", "matmul", "constant", "divide"],
)  # fmt: skip
def test_factor_of_a_constant_is_not_held(use, slope):
    """Only the constant's own gradient would read it, and nobody watches the constant."""
    x = gg.ones(3)
    with gg.GradientTape() as tape:
        tape.watch(x)
        a = x + 1.0
        y = use(a)
        exists = alive(a._data)
        del a
        assert not exists()
    assert tape.gradient(y, x).tolist() == [slope] * 3


def test_persistent_tape_holds_arrays_until_it_is_deleted():
    x = gg.ones(3)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a = gg.exp(x)
        y = gg.sum(a)
    exists = alive(a._data)
    del a
    tape.gradient(y, x)
    assert exists()
    del tape
    assert not exists()


def test_deleted_tape_frees_arrays_without_the_garbage_collector():
    gc.disable()
    try:
        x = gg.ones(3)
        with gg.GradientTape() as tape:
            tape.watch(x)
            a = gg.exp(x)
        reference = weakref.ref(a._data)
        del a, tape
        assert reference() is None
    finally:
        gc.enable()


# ---- aliasing is never observable -----------------------------------------------------------


def test_equal_gradients_can_be_changed_independently():
    x, y = C([1.0, 2.0]), C([3.0, 4.0])
    u = C([5.0, 6.0])
    with gg.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = x + y
        w = gg.positive(x)
    dx, dy, dx2 = tape.gradient(z, [x, y, x], output_gradients=u)
    dx[0] = 100.0
    dx._own()[...] = -1.0
    same = tape.gradient(w, x, output_gradients=u)
    same._own()[...] = -2.0
    assert dy.tolist() == [5.0, 6.0]
    assert dx2.tolist() == [5.0, 6.0]
    assert u.tolist() == [5.0, 6.0]
    assert tape.gradient(z, x, output_gradients=u).tolist() == [5.0, 6.0]


def test_gradient_of_a_reshape_does_not_alias_output_gradients():
    x = C([1.0, 2.0, 3.0, 4.0])
    u = C([[5.0, 6.0], [7.0, 8.0]])
    g = tape_gradient(lambda x: gg.reshape(x, (2, 2)), x, output_gradients=u)
    g._own()[...] = 0.0
    assert u.tolist() == [[5.0, 6.0], [7.0, 8.0]]


def test_persistent_tape_is_not_changed_by_its_own_backward_passes():
    """Sums are computed in place, but never in a saved value or an output gradient."""
    x = C([1.0, 2.0])
    u = C([1.0, 1.0])
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x
        for _ in range(4):
            y = y + x * y
        z = y + y + gg.positive(y)
    first = tape.gradient(z, x, output_gradients=u).tolist()
    assert tape.gradient(z, x, output_gradients=u).tolist() == first
    assert u.tolist() == [1.0, 1.0]
    assert x.tolist() == [1.0, 2.0]


def test_gradient_changed_in_place_does_not_change_the_tape():
    x = C([1.0, 2.0])
    tape, y = taped(lambda x: x * x, x, persistent=True)
    g = tape.gradient(y, x)
    g[...] = 0.0
    assert tape.gradient(y, x).tolist() == [2.0, 4.0]


def test_setitem_of_a_watched_tensor_is_differentiated():
    x, k = C([1.0, 2.0, 3.0]), C(5.0)
    before = copy.copy(x)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch([x, k])
        before = copy.copy(x)
        y = x * x
        x[1] = k * k
        z = x * 10
    assert y.tolist() == [1.0, 4.0, 9.0]
    assert tape.gradient(y, before).tolist() == [2.0, 4.0, 6.0]
    assert tape.gradient(z, before).tolist() == [10.0, 0.0, 10.0]
    assert tape.gradient(z, k).item() == 100.0
    assert tape.gradient(z, x).tolist() == [10.0, 0.0, 10.0]  # by the value that was watched


# ---- size -----------------------------------------------------------------------------------


def _chain(n):
    x = C(1.0, gg.float64)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(n):
            y = y * 1.0 + 0.0
    return tape.gradient(y, x).item()


def test_chain_of_a_hundred_thousand_ops():
    assert _chain(50_000) == 1.0


@pytest.mark.slow
def test_chain_of_a_million_ops():
    assert _chain(500_000) == 1.0


class Counting:
    """Counts the calls of a function."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **keywords):
        self.calls += 1
        return self.function(*args, **keywords)


@pytest.mark.parametrize("start", [1.0, [1.0, 2.0]], ids=["number", "vector"])
@pytest.mark.slow
def test_gradients_of_a_variable_used_a_hundred_thousand_times_are_summed_in_place(
    start, monkeypatch, python_tape
):
    v = gg.Variable(start)
    with gg.GradientTape() as tape:
        y = [v * 2.0 for _ in range(100_000)]
    plus = Counting(backward_module.plus)
    monkeypatch.setattr(backward_module, "plus", plus)
    g = tape.gradient(y, v)
    assert np.all(g.numpy() == 200_000.0)
    if start != 1.0:
        assert plus.calls == 1  # the first sum allocates, all others add to it in place


# ---- dead branches --------------------------------------------------------------------------


def test_a_tape_drops_what_nothing_can_reach_any_more():
    x, big = C(2.0), gg.ones(100_000)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * 3
        kept = [gg.sin(big * x)]
        for _ in range(400):
            gg.sin(big * x)
            gg.split(big * x, 4)
        z = y * y + gg.sum(kept[0])
    assert len(tape.log) < 200
    assert tape.gradient(z, x).item() == pytest.approx(36 + 1e5 * np.cos(2.0), rel=1e-3)


DEAD = {  # 1000 times, on a tape that watches x
    "an index": lambda x, big, v: gg.argmax(big * x),
    "a step": lambda x, big, v: gg.round(gg.sin(big * x)) + 1,
    "a mask": lambda x, big, v: gg.where(big * x > 1, 1.0, 0.0),
    "a stopped gradient": lambda x, big, v: big * x - gg.stop_gradient(gg.max(big * x)),
    "an assignment": lambda x, big, v: v.assign(gg.sin(big * x)),
    "an update": lambda x, big, v: v.assign_add(gg.round(gg.sin(big * x))),
}


def test_nested_tapes_drop_deep_branches():
    x, big = C(2.0), gg.ones(100_000)
    with gg.GradientTape() as outer, gg.GradientTape() as middle, gg.GradientTape() as inner:
        tapes = outer, middle, inner
        outer.watch(x)
        middle.watch([x, big])
        y = big * x
        inner.watch(y)
        for _ in range(20):
            z = y
            for _ in range(50):
                z = gg.nn.softmax(gg.sin(z) * big)
        loss = gg.sum(y * z)
    assert max(len(tape.log) for tape in tapes) < 600  # 300 of the last iterations
    for tape, source in zip(tapes, (x, x, y), strict=True):
        assert tape.gradient(loss, source) is not None


def test_a_tape_notices_each_op_of_a_loop():
    x, big = C(2.0), gg.ones(100_000)
    for first in range(8):
        with gg.GradientTape() as tape:
            tape.watch([x, *(C(0.0) for _ in range(first))])
            for _ in range(600):
                gg.sum(big * x)
                gg.sum(gg.sum(gg.abs(big * x)))
        assert len(tape.log) < 1500


@pytest.mark.parametrize("branch", DEAD)
def test_a_tape_drops_branches_that_end_without_a_gradient(branch):
    x, big = C(2.0), gg.ones(100_000)
    v = gg.Variable(big)
    with gg.GradientTape() as outer, gg.GradientTape() as tape:
        for t in (outer, tape):
            t.watch(x)
        for _ in range(1000):
            DEAD[branch](x, big, v)
    assert max(len(tape.log), len(outer.log)) < 500
    assert max(len(tape.barriers), len(outer.barriers)) < 500


def test_explain_tells_of_a_barrier_after_dead_branches_were_dropped():
    x, v = C(2.0), gg.Variable(1.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        for _ in range(5):
            gg.round(x * 3)
            v.assign(gg.sin(x))
        y = v * 2.0
        z = gg.stop_gradient(x * 2) + 1
        dead_branches.drop_unreachable([tape])
    assert len(tape.log) == 3
    assert "assign" in tape.explain(y, x)
    assert "stop_gradient" in tape.explain(z, x)


def test_an_accumulator_drops_tangents_that_nothing_can_reach_any_more():
    x, big = C(2.0), gg.ones(100_000)
    with gg.GradientTape() as tape, gg.ForwardAccumulator(x, C(1.0)) as forward:
        tape.watch(x)
        y = big * x
        for _ in range(400):
            y = gg.sin(y)
            gg.split(big * x, 4)
    assert len(forward.known) < 1000  # the tape can reach 400
    forward = gg.ForwardAccumulator(x, C(1.0))
    with forward:
        y = big * x
        for _ in range(400):
            y = gg.sin(y)
            gg.split(big * x, 4)
    assert len(forward.known) < 500
    value, slope = 2.0, 1.0
    for _ in range(400):
        value, slope = np.sin(value), slope * np.cos(value)
    assert forward.jvp(y)[0].item() == pytest.approx(slope, rel=1e-4)
    assert forward.jvp(x).item() == 1.0


def test_a_graph_drops_what_nothing_can_reach_any_more():
    with gg.Graph().as_default() as graph:
        x, big = C(2.0), gg.ones(100_000)
        for _ in range(400):
            y = gg.sin(big * x)
        (g,) = gg.gradients(y, x)
    assert len(graph.log) < 200
    assert g.item() == pytest.approx(1e5 * np.cos(2.0), rel=1e-3)


def test_what_a_tape_drops_changes_no_gradient(monkeypatch, rng):
    monkeypatch.setattr(dead_branches, "_LEAST_BYTES", -1)  # it looks at each 61st number

    def f(x, w):
        total = gg.zeros((), dtype=gg.float64)
        for k in range(40):
            h = gg.tanh(x @ w + k)
            a, b = gg.split(h, 2)
            gg.argmax(h)  # without a gradient
            unused = gg.exp(a) * gg.sum(b)
            if k % 3 == 0:
                total += gg.sum(a * b) + gg.max(unused)
        return total

    x, w = rng.normal(size=(4, 3)), rng.normal(size=(3, 3)) / 3
    gg.testing.check_grads(f, (x, w), order=2)
    with gg.GradientTape(persistent=True) as tape:
        x, w = gg.asarray(x), gg.asarray(w)
        tape.watch(x)
        y = f(x, w)
        gradients = [tape.gradient(y, x) for _ in range(30)]  # recorded too
    for g in gradients:
        np.testing.assert_array_equal(g, gradients[0])
    with gg.Graph().as_default():
        graph_gradients = [gg.gradients(f(x, w), x)[0] for _ in range(3)]
    for g in graph_gradients:
        np.testing.assert_array_equal(g, gradients[0])
    t = gg.asarray(rng.normal(size=(4, 3)))
    with gg.ForwardAccumulator(x, t) as forward:
        tangent = forward.jvp(f(x, w))
    assert tangent.item() == pytest.approx(gg.sum(gradients[0] * t).item())


@pytest.mark.parametrize("nested", [False, True])
def test_a_name_that_holds_no_variable_any_more_is_named_at_the_next_none(nested):
    other = gg.Variable(1.0)
    v = gg.Variable([1.0, 2.0])
    rest, found = gg.constant([1.0, 2.0]), []
    for _ in range(2):
        with gg.GradientTape() as tape:
            loss = gg.sum(v * v) * other
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            g = tape.gradient(loss, {"a": [other, v]} if nested else v)
        g = g["a"][1] if nested else g
        found.append([str(w.message) for w in caught])
        if g is not None:
            v = v - 0.1 * g
    assert g is None
    assert found[0] == []
    (text,) = found[1]
    assert f"source {int(nested)} was a Variable when this line ran before" in text
    assert "v.assign_sub(lr * g)" in text
    assert "v.assign_sub(lr * g)" in tape.explain(loss, v)
    with gg.GradientTape() as tape:
        tape.watch(v)
        loss = gg.sum(v * v)
    assert tape.gradient(loss, rest) is None  # another line: no warning
