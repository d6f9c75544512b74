"""Variables: creation, assignment, copies; and values handed out never change."""

import copy
import pickle

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError, DTypeError, IndexOutOfBoundsError, ShapeError

C = gg.constant


@pytest.mark.parametrize(
    ("initial", "dtype"),
    [
        (1.5, gg.float32), (3, gg.int64), (True, gg.bool), (1j, gg.complex64),
        ([1.0, 2.0], gg.float32), (np.float64(1.0), gg.float64), (np.ones(2, np.int8), gg.int8),
        (C([1.0], "bfloat16"), gg.bfloat16), (lambda: 2.0, gg.float32),
    ],
    ids=["float", "int", "bool", "complex", "list", "np.float64", "int8", "tensor", "callable"],
)  # fmt: skip
def test_variable_takes_the_dtype_of_its_value(initial, dtype):
    v = gg.Variable(initial)
    assert v.dtype == dtype
    assert isinstance(v, gg.Tensor)


def test_variable_needs_a_value():
    for make in (gg.Variable, lambda: gg.Variable(None), lambda: gg.Variable(lambda: None)):
        with pytest.raises(ArgumentError, match="initial_value"):
            make()


def test_variable_casts_its_value():
    v = gg.Variable(1, dtype=gg.float64)
    assert (v.item(), v.dtype) == (1.0, gg.float64)
    assert gg.Variable(0.1, dtype=gg.float64).item() == 0.1
    with pytest.raises(DTypeError, match="complex"):
        gg.Variable(1j, dtype=gg.float32)


def test_variable_copies_its_initial_value():
    a, w = np.ones(2, np.float32), gg.Variable([1.0, 2.0])
    v, u = gg.Variable(a), gg.Variable(w)
    a[:] = 5
    w.assign([7.0, 7.0])
    assert v.tolist() == [1.0, 1.0]
    assert u.tolist() == [1.0, 2.0]


def test_variable_attributes():
    v = gg.Variable([[1.0, 2.0]], name="w", trainable=False)
    assert (v.name, v.trainable, v.shape, v.ndim, v.size) == ("w", False, (1, 2), 2, 2)
    assert gg.Variable(1).trainable is True
    assert gg.Variable(1.0).name
    assert repr(v).startswith("Variable([[1., 2.]], shape=(1, 2), dtype=float32, device=cpu")
    assert "name='w'" in repr(v)


def test_trainable_may_be_set_and_functions_are_traced_for_each_setting():
    v, runs = gg.Variable(3.0), []

    @gg.function
    def slope():
        runs.append(v.trainable)
        with gg.GradientTape() as tape:
            y = v * v
        return tape.gradient(y, v, unconnected_gradients="zero")

    assert slope().item() == 6
    v.trainable = False
    assert slope().item() == 0
    v.trainable = True
    assert slope().item() == 6
    assert runs == [True, False]  # the first trace serves again


def test_copies_of_a_frozen_variable_know_how_it_was_created():
    v = gg.Variable(1.0)
    v.trainable = False
    for other in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        assert (other.trainable, other.created_trainable) == (False, True)


@pytest.mark.parametrize("start", [2.0, [2.0, 2.0]], ids=["number", "vector"])
def test_assign_add_and_sub_change_the_variable_and_return_it(start):
    v = gg.Variable(start)
    one = gg.ones_like(v)
    assert v.assign_add(one) is v
    assert np.all(v.numpy() == 3.0)
    assert v.assign_sub(one * 2) is v
    assert np.all(v.numpy() == 1.0)
    assert v.assign(one * 9) is v
    assert np.all((v * 1).numpy() == 9.0)
    assert v.assign(one, read_value=False) is None
    assert (v.shape, v.dtype) == (one.shape, gg.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "complex64"])
def test_assign_keeps_the_dtype(dtype):
    v = gg.Variable(1, dtype=dtype)
    v.assign(2)
    v.assign_add(3)
    v.assign_sub(1)
    assert (v.dtype, complex(v)) == (np.dtype(gg.constant(0, dtype).dtype), 4)


def test_assign_converts_numbers_and_arrays():
    v = gg.Variable(1.0)
    v.assign(2)
    v.assign(np.float64(3.5))
    assert v.item() == 3.5
    w = gg.Variable(0.0, dtype=gg.float64)
    w.assign(0.1)
    assert w.item() == 0.1
    w.assign_add(0.2)
    assert w.item() == 0.1 + 0.2


@pytest.mark.parametrize(
    ("start", "value", "kind", "words"),
    [
        ([1.0, 2.0], 3.0, ShapeError, r"assign.*\(\).*'w' \(2,\)"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], ShapeError, r"\(3,\)"),
        (1.0, C(1), DTypeError, "int64.*'w' float32"),
        (1.0, C(1.0, gg.float64), DTypeError, "astype"),
        (1, 1.5, DTypeError, "int64"),
        (1.0, 1j, DTypeError, "complex"),
        (1.0, "x", DTypeError, "x"),
        (1.0, None, DTypeError, "None"),
    ],
)
@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_assign_refuses_values_that_do_not_fit_and_changes_nothing(
    start, value, kind, words, method
):
    v = gg.Variable(start, name="w")
    if method != "assign":
        words = words.replace("assign", method) if words.startswith("assign.") else words
    with pytest.raises(kind, match=words):
        getattr(v, method)(value)
    assert v.tolist() == start


def test_assign_sub_of_booleans_raises_as_the_op_does():
    v = gg.Variable([True, False], name="w")
    with pytest.raises(DTypeError, match=r"assign_sub: .*variable: bool \(2,\)"):
        v.assign_sub([True, True])
    assert v.tolist() == [True, False]


def test_assign_accepts_other_shapes_if_the_variable_allows_them():
    v = gg.Variable([1.0, 2.0], shape=(None,))
    assert v.assign([1.0, 2.0, 3.0]).shape == (3,)
    with pytest.raises(ShapeError):
        v.assign([[1.0]])
    any_shape = gg.Variable(1.0, shape=None)
    assert any_shape.assign([[1.0]]).shape == (1, 1)
    with pytest.raises(ShapeError):
        any_shape.assign_add([1.0, 2.0])
    with pytest.raises(ShapeError):
        gg.Variable([1.0, 2.0], shape=(3,))


def test_in_place_operators_are_refused():
    v = gg.Variable(1.0)
    for statement in ("v += 1", "v -= 1", "v *= 2", "v /= 2", "v **= 2", "v //= 2", "v %= 2"):
        with pytest.raises(DTypeError, match="assign_add"):
            exec(statement, {"v": v})
    with pytest.raises(DTypeError, match="assign"):
        v[...] = 2.0
    assert v.item() == 1.0


def test_slices_of_a_variable_can_be_assigned():
    v = gg.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert v[0].assign([7.0, 8.0]) is v
    v[1, 1].assign(9.0)
    v[:, 0].assign(5.0)
    assert v.tolist() == [[5.0, 8.0], [5.0, 9.0]]
    with pytest.raises(ShapeError):
        v[0, 0].assign([1.0, 2.0])
    with pytest.raises(DTypeError):
        v[0].assign(C([1, 2]))
    assert v.tolist() == [[5.0, 8.0], [5.0, 9.0]]


def test_scatter_changes_rows():
    v = gg.Variable([[1.0], [2.0], [3.0]])

    def rows(values, indices):
        return gg.IndexedSlices(C(values), C(indices), (3, 1))

    assert v.scatter_add(rows([[10.0], [10.0]], [1, 1])) is v
    assert v.tolist() == [[1.0], [22.0], [3.0]]
    v.scatter_sub(rows([[1.0], [2.0]], [0, 1]))
    assert v.tolist() == [[0.0], [20.0], [3.0]]
    v.scatter_update(rows([[5.0]], [2]))
    assert v.tolist() == [[0.0], [20.0], [5.0]]
    with pytest.raises(IndexOutOfBoundsError, match="7"):
        v.scatter_add(rows([[1.0]], [7]))
    with pytest.raises(DTypeError, match="IndexedSlices"):
        v.scatter_add(C([[1.0]]))
    assert v.tolist() == [[0.0], [20.0], [5.0]]


def test_sparse_updates_do_not_need_a_dense_shape():
    v = gg.Variable([[1.0], [2.0], [3.0]])
    rows = gg.IndexedSlices(C([[10.0], [10.0]]), C([1, 1]))
    v.scatter_add(rows * 2)
    assert v.tolist() == [[1.0], [42.0], [3.0]]
    for optimizer in (gg.optim.SGD(0.5), gg.optim.SGD(0.5, momentum=0.5)):
        optimizer.apply_gradients([(rows, v)])
    assert v.tolist() == [[1.0], [22.0], [3.0]]
    with pytest.raises(ShapeError, match="dense_shape"):
        rows.to_dense()


def test_scatter_accepts_the_gradient_of_a_gather():
    v = gg.Variable([[1.0], [2.0], [3.0]])
    with gg.GradientTape() as tape:
        y = gg.sum(gg.gather(v, [0, 2, 2]) ** 2)
    v.scatter_sub(tape.gradient(y, v))
    assert v.tolist() == [[-1.0], [2.0], [-9.0]]


def test_variable_behaves_as_a_tensor_in_arithmetic():
    v, w = gg.Variable([1.0, 2.0]), gg.Variable([3.0, 4.0])
    for result, expected in (
        (v + w, [4.0, 6.0]), (np.ones(2, np.float32) - v, [0.0, -1.0]), (v @ w, 11.0),
        (v > 1, [False, True]), (v == w, [False, False]), (-v, [-1.0, -2.0]), (v[1], 2.0),
        (2 * v, [2.0, 4.0]), (gg.sum(v), 3.0), (abs(v), [1.0, 2.0]),
    ):  # fmt: skip
        assert isinstance(result, gg.Tensor)
        assert not isinstance(result, gg.Variable)
        assert result.tolist() == expected
    assert float(gg.Variable(2.5)) == 2.5
    assert bool(gg.Variable(0)) is False
    assert len(v) == 2
    assert [x.item() for x in v] == [1.0, 2.0]


def test_variable_values_are_snapshots():
    v = gg.Variable([1.0, 2.0])
    r, n, t, s = v.value(), v.numpy(), v.read_value(), v[0]
    tensor = gg.convert_to_tensor(v)
    assert not isinstance(tensor, gg.Variable)
    v.assign([5.0, 6.0])
    v.assign_add([1.0, 1.0])
    assert r.tolist() == t.tolist() == n.tolist() == tensor.tolist() == [1.0, 2.0]
    assert s.item() == 1.0


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))]
)
def test_variable_copies_are_independent(duplicate):
    v = gg.Variable([1.0, 2.0], name="w", trainable=False, shape=(None,), dtype=gg.bfloat16)
    w = duplicate(v)
    assert (w.name, w.trainable, w.dtype, w.tolist()) == ("w", False, gg.bfloat16, [1.0, 2.0])
    v.assign([9.0, 9.0])
    w._own()[...] = 5.0
    assert v.tolist() == [9.0, 9.0]
    assert w.tolist() == [5.0, 5.0]
    assert w.assign([1.0, 2.0, 3.0]).shape == (3,)
    a, b = gg.Variable(1.0), None
    with gg.GradientTape() as tape:
        b = duplicate(a)
        y = a * b
    assert [g.item() for g in tape.gradient(y, [a, b])] == [1.0, 1.0]


def test_variables_shared_in_a_structure_stay_shared_in_its_copies():
    v = gg.Variable(1.0)
    for twin in (copy.deepcopy([v, v]), pickle.loads(pickle.dumps([v, v]))):
        assert twin[0] is twin[1]
        assert twin[0] is not v


def test_own_writes_in_place_if_the_array_is_not_shared():
    v = gg.Variable(np.ones(4, np.float32))
    v.assign_add(np.ones(4, np.float32))
    memory = v._own().ctypes.data
    v._own()[...] += 1
    assert v._own().ctypes.data == memory
    assert v.tolist() == [3.0] * 4


OBSERVERS = {
    "value": lambda v: v.value(),
    "numpy": lambda v: v.numpy(),
    "array view": lambda v: np.asarray(v),
    "reshape": lambda v: gg.reshape(v, (2, 2)),
    "slice": lambda v: v[1:],
    "transpose": lambda v: gg.permute_dims(gg.reshape(v, (2, 2)), (1, 0)),
    "real": lambda v: v.value().real,
    "stop_gradient": gg.stop_gradient,
    "broadcast": lambda v: gg.broadcast_to(v, (2, 4)),
    "flip": gg.flip,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "expand_dims": lambda v: gg.expand_dims(v, axis=0),
    "split": lambda v: gg.split(v, 2)[0],
    "unstack": lambda v: gg.unstack(v)[0],
    "assigned": lambda v: gg.Variable(np.zeros(4, np.float32)).assign(v),
    "assigned view": lambda v: gg.Variable(np.zeros((2, 2), np.float32)).assign(
        gg.reshape(v, (2, 2))
    ),
    "iteration": lambda v: next(iter(v)),
    "where": lambda v: gg.where(True, v, v),
    "clip": lambda v: gg.clip(v, None, None),
}


@pytest.mark.parametrize("name", OBSERVERS)
def test_own_never_changes_values_handed_out(name):
    v = gg.Variable([1.0, 2.0, 3.0, 4.0])
    v.assign_add([0.0, 0.0, 0.0, 0.0])  # now only the Variable holds its array
    seen = OBSERVERS[name](v)
    before = np.array(seen.tolist())
    v._own()[...] = -7.0
    assert v.tolist() == [-7.0] * 4
    assert np.array_equal(seen.tolist(), before)


@pytest.mark.parametrize("name", OBSERVERS)
def test_own_of_values_handed_out_never_changes_the_variable(name):
    v = gg.Variable([1.0, 2.0, 3.0, 4.0])
    seen = OBSERVERS[name](v)
    if isinstance(seen, gg.Tensor):
        seen._own()[...] = -7.0
        assert v.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_own_never_changes_an_assigned_tensor():
    w = C([1.0, 2.0, 3.0, 4.0])
    v, u = gg.Variable(gg.zeros(4)), gg.Variable(gg.zeros((2, 2)))
    v.assign(w)
    u.assign(gg.reshape(w, (2, 2)))
    v._own()[...] = 5.0
    u._own()[...] = 6.0
    assert w.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_own_never_changes_a_saved_activation():
    v = gg.Variable([1.0, 2.0])
    x = C([3.0, 4.0])
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * v
        z = v * v
        s = gg.reshape(v, (2, 1)) * gg.reshape(x, (2, 1))
    v._own()[...] = 100.0
    assert tape.gradient(y, x).tolist() == [1.0, 2.0]
    assert tape.gradient(z, v).tolist() == [2.0, 4.0]
    assert tape.gradient(s, x).tolist() == [1.0, 2.0]


def test_own_never_changes_a_gradient():
    v, w = gg.Variable([1.0, 2.0]), gg.Variable([3.0, 4.0])
    with gg.GradientTape() as tape:
        y = v + w
    gv, gw = tape.gradient(y, [v, w], output_gradients=C([1.0, 1.0]))
    v.assign(gv)
    v._own()[...] = 9.0
    assert gv.tolist() == [1.0, 1.0]
    assert gw.tolist() == [1.0, 1.0]


def test_own_copies_an_array_that_cannot_be_written():
    t = gg.broadcast_to(C(1.0), (3,))
    t._own()[...] = 2.0
    assert t.tolist() == [2.0] * 3


def test_scatter_errors_name_the_call_and_change_nothing():
    v = gg.Variable(np.zeros((3, 2), np.float32))
    with pytest.raises(ValueError, match="scatter_add"):
        v.scatter_add(gg.IndexedSlices(gg.ones((1, 5)), gg.constant([0]), (3, 5)))
    with pytest.raises(IndexOutOfBoundsError, match=r"scatter_add: .*index 3"):
        v.scatter_add(gg.IndexedSlices(gg.ones((2, 2)), [0, 3], (3, 2)))
    assert v.tolist() == [[0.0, 0.0]] * 3
    v.scatter_add(gg.IndexedSlices(gg.ones((1, 2)), [0], (3, 2)))
    assert v.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_number_that_overflows_an_integer_variable_is_refused():
    v = gg.Variable([1, 2], dtype="int8")
    with pytest.raises(OverflowError, match=r"assign: .*300"):
        v.assign([300, 1])
    assert v.tolist() == [1, 2]
