"""Tensor: creation, dtypes, operators, indexing, and the protocols of Python and NumPy."""

import copy
import operator
import pickle
import threading

import numpy as np
import pytest
from taping import tape_gradient, taped

import gpugrad as gg
from gpugrad.core import tensor as tensor_module
from gpugrad.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    IndexOutOfBoundsError,
    NumberOverflowError,
    ShapeError,
)

C = gg.constant


# ---- creation -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [gg.constant, gg.asarray, gg.convert_to_tensor])
@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1.0, gg.float32, ()), (1, gg.int64, ()), (True, gg.bool, ()), (1j, gg.complex64, ()),
        ([1, 2.5], gg.float32, (2,)), ([[1], [2]], gg.int64, (2, 1)), ([], gg.float32, (0,)),
        ((1.0, 2.0), gg.float32, (2,)), ([True, False], gg.bool, (2,)), (range(3), gg.int64, (3,)),
        (np.float64(1.0), gg.float64, ()), ([np.float64(1.0)], gg.float64, (1,)),
        (np.ones((2, 0)), gg.float64, (2, 0)), (np.arange(3, dtype=np.uint8), gg.uint8, (3,)),
        (np.ones(2, np.float16), gg.float16, (2,)), (np.complex128(1j), gg.complex128, ()),
    ],
    ids=repr,
)  # fmt: skip
def test_creation_follows_the_dtype_of_the_value(make, data, dtype, shape):
    t = make(data)
    assert (t.dtype, t.shape) == (dtype, shape)
    assert t.tolist() == np.asarray(data).tolist()


@pytest.mark.parametrize("make", [gg.constant, gg.asarray, gg.convert_to_tensor])
@pytest.mark.parametrize(
    "bad", ["text", None, ["a"], [[1], [1, 2]], object(), np.array(["a"]), {"a": 1}, 2**70],
    ids=["text", "None", "texts", "ragged", "object", "array of text", "dict", "huge"],
)  # fmt: skip
def test_creation_refuses_non_numeric_values(make, bad):
    with pytest.raises((DTypeError, ShapeError)):
        make(bad)


@pytest.mark.parametrize(
    "dtype",
    ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int8", "uint64"],
)
def test_constant_accepts_a_dtype_or_its_name(dtype):
    t = C([1, 2], dtype)
    assert str(t.dtype) == dtype
    assert C(1, t.dtype).dtype == t.dtype
    assert t.dtype == getattr(gg, dtype)
    assert t.tolist() == [1, 2]


def test_constant_is_exact_in_the_requested_dtype():
    assert C(0.1, gg.float64).item() == 0.1
    assert C([0.1, 0.2], "float64").tolist() == [0.1, 0.2]
    assert C(0.1 + 0.2j, gg.complex128).item() == 0.1 + 0.2j
    assert gg.asarray(0.1, dtype=gg.float64).item() == 0.1
    assert gg.convert_to_tensor(0.1, gg.float64).item() == 0.1
    assert C(2**53 + 1, gg.int64).item() == 2**53 + 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float64"])
def test_empty_constant_accepts_any_dtype(dtype):
    for y in (C([], dtype), gg.asarray([], dtype=dtype)):
        assert y.dtype == dtype
        assert y.shape == (0,)


@pytest.mark.parametrize("dtype", ["text", object, str, "datetime64[s]", 5, "S3"])
def test_constant_refuses_non_numeric_dtypes(dtype):
    with pytest.raises(DTypeError, match="dtype"):
        C(1.0, dtype)


def test_constant_fills_a_shape():
    assert C(2.0, shape=(2, 2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert C([1, 2, 3, 4], shape=(2, 2)).tolist() == [[1, 2], [3, 4]]
    assert C(1.0, shape=3).shape == (3,)
    assert C(1.0, shape=(0, 2)).shape == (0, 2)
    for value, shape in (([1, 2], (3,)), ([], (1,)), ([1, 2, 3], (2, 2))):
        with pytest.raises(ShapeError, match="fill"):
            C(value, shape=shape)


def test_creation_copies_the_array():
    a = np.ones(3)
    tensors = [C(a), gg.asarray(a), gg.convert_to_tensor(a), gg.positive(a), gg.asarray([a])]
    a[:] = 5.0
    assert all(np.all(t.numpy() == 1.0) for t in tensors)


def test_array_argument_of_an_op_is_copied_before_it_is_saved():
    a, x = np.ones(3), C([1.0, 2.0, 3.0])
    tape, y = taped(lambda x: x * a, x)
    a[:] = 100.0
    assert tape.gradient(y, x).tolist() == [1.0, 1.0, 1.0]


def test_asarray_copy_decides_whether_memory_is_shared():
    a = np.ones(2, np.float32)
    shared = gg.asarray(a, copy=False)
    a[0] = 5.0
    assert shared.tolist() == [5.0, 1.0]
    t = C([1.0])
    assert gg.asarray(t) is t
    assert gg.asarray(t, copy=True) is not t
    assert gg.asarray(C(True), copy=True) is not None
    for data, keywords in ((a, {"dtype": "float64"}), ([1.0], {}), (t, {"dtype": "float64"})):
        with pytest.raises(ArgumentError, match="copy=False"):
            gg.asarray(data, copy=False, **keywords)


def test_asarray_and_convert_to_tensor_of_lists_of_tensors_are_differentiable():
    x, y = C(2.0), C(3.0)
    for make in (gg.asarray, gg.convert_to_tensor, lambda v: gg.ones(2) * v):
        with gg.GradientTape() as tape:
            tape.watch([x, y])
            z = make([x * 2, y]) * C([1.0, 10.0])
        assert [g.item() for g in tape.gradient(z, [x, y])] == [2.0, 10.0]


def test_asarray_casts_tensors_differentiably_and_convert_to_tensor_refuses():
    x = C([1.0, 2.0])
    tape, y = taped(lambda x: gg.asarray(x, dtype=gg.float64) * 3.0, x)
    g = tape.gradient(y, x)
    assert (y.dtype, g.dtype, g.tolist()) == (gg.float64, gg.float32, [3.0, 3.0])
    with pytest.raises(DTypeError, match="astype"):
        gg.convert_to_tensor(x, dtype=gg.float64)


def test_tensor_class_cannot_be_called():
    with pytest.raises(TypeError, match=r"gg\.constant"):
        gg.Tensor([1.0])


# ---- dtype promotion ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.sub, operator.truediv])
def test_python_numbers_are_weak(op, dtype):
    x = C([1.0, 2.0], dtype)
    numbers = [2, 2.0, True] + ([1j] if "complex" in dtype else [])
    for number in numbers:
        assert op(x, number).dtype == x.dtype
        assert op(number, x).dtype == x.dtype


@pytest.mark.parametrize(
    ("x", "y", "dtype"),
    [
        (C([1], "int8"), 1, "int8"), (C([1], "int8"), 1.0, "float64"),
        (C([True]), 1, "int64"), (C([1.0]), 1j, "complex64"), (C([1.0]), np.float64(1), "float64"),
        (C([1.0]), C([1.0], "float64"), "float64"), (C([1]), C([1.0]), "float64"),
        (C([1.0], "float16"), C([1.0]), "float32"), (C([1.0], "bfloat16"), C([1.0]), "float32"),
        (C([1.0]), np.ones(1), "float64"), (C([1.0], "float16"), 1e-3, "float16"),
    ],
)  # fmt: skip
def test_dtypes_are_promoted_as_in_numpy(x, y, dtype):
    assert str((x + y).dtype) == dtype
    assert str((y + x).dtype) == dtype


def test_two_numbers_are_promoted_as_in_python():
    assert gg.add(1, 2).dtype == gg.int64
    assert gg.add(1, 2.0).dtype == gg.float32
    assert gg.add(1.0, 2j).dtype == gg.complex64
    assert gg.add(True, 1).item() == 2


@pytest.mark.parametrize("call", [lambda f: f, gg.function], ids=["eager", "traced"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_integer_powers_are_products(dtype, call, rng):
    x = np.append(rng.normal(size=1000), [0.0, -0.0, 1e19, 1e-19, np.inf, -np.inf, np.nan])
    x = x.astype(dtype)
    with np.errstate(all="ignore"):
        for y, product in {2: x * x, 3: x * x * x, 4: (x * x) ** 2, -2: 1 / (x * x)}.items():
            for power in (y, float(y)):
                result = call(lambda x, power=power: x**power)(gg.constant(x)).numpy()
                np.testing.assert_array_equal(result, product, strict=True)
                np.testing.assert_allclose(result, np.power(x, y), 4 * np.finfo(dtype).eps)


def test_complex_power_of_a_real_number_is_complex():
    assert (C([-2.0]) ** (2 + 0j)).dtype == gg.complex64


def test_number_that_does_not_fit_the_dtype_is_refused():
    with pytest.raises(OverflowError, match=r"add.*300"):
        C([1], "int8") + 300


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "uint8"])
def test_number_used_as_an_index_stays_an_integer(dtype):
    x = C([1, 2], dtype)
    for y in (gg.take(x, -1), x.take(1), gg.gather(x, 1)):
        assert y.dtype == x.dtype
        assert y.numpy().real == 2
    assert gg.sparse_softmax_cross_entropy(C([0.0, 0.0]), 1).item() == pytest.approx(np.log(2))
    assert gg.grad(lambda x: gg.take(x, 1))(C([1.0, 2.0])).tolist() == [0, 1]
    with pytest.raises(DTypeError, match="take: indices must be integers, not float32"):
        gg.take(C([1.0, 2.0]), 1.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: gg.logsumexp(x, axis=n), lambda x, n: gg.tensordot(x, x.T, axes=n),
        lambda x, n: gg.tensordot(x, x, axes=(n, n)), lambda x, n: gg.vector_norm(x, ord=n),
        lambda x, n: gg.sliding_window_view(x, n, axis=n), lambda x, n: gg.constant(2.0, shape=n),
        lambda x, n: gg.grad(lambda a, b: gg.sum(a * b * b), argnums=n)(x, x),
        lambda x, n: gg.vmap(gg.sum, in_axes=n)(x),
    ],
)  # fmt: skip
def test_numpy_integers_are_accepted_as_ints(f):
    x = C(A[0], "float64")
    np.testing.assert_array_equal(f(x, np.int64(1)).numpy(), f(x, 1).numpy(), strict=True)


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_float16_is_promoted_to_float32_by_wide_integers(dtype):
    a, n = C([1.5, 2.5], "float16"), C([1, 30_001], dtype)
    for y in (a + n, gg.concat([a, n])[2:], gg.einsum("i,i->i", a, n), gg.stack([a, n])[1]):
        assert y.dtype == "float32"
        assert y[1].item() in (30_003.5, 30_001.0, 75_002.5)
    for f in (gg.outer, gg.kron, gg.polyval):
        with gg.GradientTape() as tape:
            tape.watch(a)
            recorded = f(a, n)
        assert recorded.dtype == f(a, n).dtype == gg.function(f)(a, n).dtype == "float32"
        assert tape.gradient(recorded, a).dtype == "float16"
    assert gg.outer(a, n)[1, 1].item() == 75_002.5
    assert gg.take(a, C([1, 0], dtype)).dtype == "float16"  # indices take no part in promotion


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_formulas_compute_in_float32(dtype):
    x = C(np.full(4096, 1.0), dtype)
    assert gg.sum(x).item() == 4096.0  # one by one, bfloat16 would stick at 256
    assert gg.mean(x).dtype == x.dtype
    g = tape_gradient(gg.logsumexp, x)
    assert g.dtype == x.dtype
    np.testing.assert_allclose(g.numpy().astype(np.float32), 1 / 4096, rtol=1e-2)


def test_bfloat16_converts_to_python_numbers_and_text():
    x = C([1.5, 2.0], "bfloat16")
    assert x.tolist() == [1.5, 2.0]
    assert isinstance(x[0].item(), float)
    assert float(x[0]) == 1.5
    assert repr(x) == "Tensor([1.5, 2. ], shape=(2,), dtype=bfloat16, device=cpu)"
    assert x.numpy().dtype == gg.bfloat16
    assert (x * x > 2).tolist() == [True, True]


# ---- operators ------------------------------------------------------------------------------

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip


@pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
def test_operators_with_arrays_and_numbers_on_either_side(op):
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 3.0])
    expected, reflected = op(a, b), op(b, a)
    for left, right in ((C(a), C(b)), (C(a), b), (a, C(b)), (C(a), [2.0, 3.0])):
        result = op(left, right)
        assert isinstance(result, gg.Tensor)
        assert result.tolist() == expected.tolist()
    assert op(b, C(a)).tolist() == reflected.tolist()
    for number in (2, 2.0, np.float64(2.0), np.array(2.0)):
        assert op(C(a), number).tolist() == op(a, 2.0).tolist()
        assert op(number, C(a)).tolist() == op(2.0, a).tolist()
        assert isinstance(op(number, C(a)), gg.Tensor)


@pytest.mark.parametrize(
    "op",
    [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift],
    ids=lambda f: f.__name__,
)
def test_bit_operators(op):
    a, b = np.array([6, 5]), np.array([3, 1])
    for left, right in ((C(a), C(b)), (C(a), b), (a, C(b))):
        assert op(left, right).tolist() == op(a, b).tolist()
    assert op(C(a), 1).tolist() == op(a, 1).tolist()
    assert op(6, C(b)).tolist() == op(6, b).tolist()
    assert (~C(a)).tolist() == (~a).tolist()


def test_unary_operators():
    x = C([-1.5, 2.5])
    assert (-x).tolist() == [1.5, -2.5]
    assert (+x).tolist() == [-1.5, 2.5]
    assert +x is not x
    assert abs(x).tolist() == [1.5, 2.5]
    assert round(x).tolist() == [-2.0, 2.0]


def test_matmul_with_arrays_on_either_side():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    for left, right in ((C(a), C(b)), (C(a), b), (a, C(b))):
        assert (left @ right).tolist() == (a @ b).tolist()


def test_equality_with_a_non_number_is_false_and_with_none_elementwise():
    x = C([1.0])
    assert (x == None).tolist() == [False]  # noqa: E711
    assert (x != None).tolist() == [True]  # noqa: E711
    assert (x == "a") is False
    assert x not in ("a", object())
    with pytest.raises(TypeError):
        _ = x < "a"


@pytest.mark.parametrize("bad", ["text", None, object(), {}], ids=lambda v: type(v).__name__)
def test_operators_refuse_non_numbers(bad):
    with pytest.raises(TypeError):
        C(1.0) + bad
    with pytest.raises(TypeError):
        bad * C(1.0)


def test_operator_error_names_the_shapes_that_do_not_broadcast():
    with pytest.raises(ShapeError, match=r"multiply.*x: float32 \(2,\).*y: float32 \(3,\)"):
        C([1.0, 2.0]) * C([1.0, 2.0, 3.0])


def test_error_shows_a_dtype_that_is_a_class():
    with pytest.raises(AxisError, match=r"sum: axis 4 .*dtype=<class 'numpy.float64'>"):
        gg.sum(C([1.0]), axis=4, dtype=np.float64)


# ---- indexing -------------------------------------------------------------------------------

A = np.arange(24.0).reshape(2, 3, 4)
INDICES = {
    "int": 1, "negative": -1, "np.int64": np.int64(1), "pair": (1, 2), "full": (1, 2, 3),
    "slice": slice(0, 1), "step": (slice(None), slice(None, None, 2)),
    "reversed": (slice(None, None, -1), slice(2, 0, -1)), "empty slice": slice(5, 9),
    "ellipsis": Ellipsis, "ellipsis int": (Ellipsis, 2), "int ellipsis": (1, Ellipsis),
    "newaxis": None, "newaxes": (None, 1, None, slice(1)), "empty tuple": (),
    "list": [1, 0, 1], "negative list": [-1, 0], "empty list": [],
    "array": np.array([[0, 1], [1, 1]]),
    "two arrays": (np.array([0, 1]), np.array([2, 0])),
    "arrays apart": (np.array([0, 1]), slice(None), np.array([3, 0])),
    "array and int": (slice(None), 1, [3, 0]), "broadcast arrays": ([[0], [1]], [0, 2]),
    "mask": A > 5, "row mask": np.array([True, False]),
    "mask inside": (1, np.array([True, False, True])),
    "mask of two axes": A[:, :, 0] > 3, "True": True, "False": False, "mask list": [True, False],
    "no element": A > 100,
}  # fmt: skip


def as_tensors(index):
    """The index with Tensors instead of arrays."""
    if isinstance(index, tuple):
        return tuple(as_tensors(i) for i in index)
    return C(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("name", INDICES)
def test_indexing_equals_numpy(name):
    index = INDICES[name]
    expected = A[index]
    for i in (index, as_tensors(index)):
        x = C(A)
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = x[i]
        assert y.shape == expected.shape
        assert y.tolist() == expected.tolist()
        g = np.zeros_like(A)
        np.add.at(g, index, 1.0)
        assert tape.gradient(y, x).tolist() == g.tolist()


def test_a_list_with_a_slice_is_an_index_by_axes_as_in_tensorflow():
    x = C(A)
    assert x[[slice(None), 0]].tolist() == A[:, 0].tolist()
    assert x[[..., None, [0, 1]]].tolist() == A[..., None, [0, 1]].tolist()
    x[[slice(1), slice(1)]] = 7.0
    assert x[0, 0].tolist() == np.full(A[0, 0].shape, 7.0).tolist()


@pytest.mark.parametrize("name", INDICES)
def test_setitem_equals_numpy(name):
    index = INDICES[name]
    shape = A[index].shape
    for value in (7, 7.5, np.random.default_rng(0).normal(size=shape)):
        expected = A.copy()
        expected[index] = value
        for i in (index, as_tensors(index)):
            x = C(A)
            x[i] = value
            assert x.tolist() == expected.tolist()
            assert (x.dtype, x.shape) == (gg.float64, A.shape)


@pytest.mark.parametrize("name", ["int", "step", "mask", "two arrays", "ellipsis", "reversed"])
def test_setitem_is_differentiable(name):
    index = INDICES[name]
    shape = A[index].shape
    x, v = C(A), C(np.ones(shape))
    old = copy.copy(x)
    with gg.GradientTape() as tape:
        tape.watch([x, v])
        old = copy.copy(x)
        x[index] = v * 2
        y = x * 3
    go, gv = tape.gradient(y, [old, v])
    expected = np.full(A.shape, 3.0)
    expected[index] = 0.0
    assert go.tolist() == expected.tolist()
    assert gv.tolist() == np.full(shape, 6.0).tolist()


@pytest.mark.parametrize(
    ("index", "kind", "words"),
    [
        (5, IndexOutOfBoundsError, "5"), (-3, IndexOutOfBoundsError, "-3"),
        ((0, 0, 0, 0), IndexOutOfBoundsError, "4|too many"), ([0, 9], IndexOutOfBoundsError, "9"),
        (1.5, (IndexOutOfBoundsError, DTypeError), "1.5|float"),
        ("a", (IndexOutOfBoundsError, DTypeError), "a"),
        (np.array([True, False, True]), (IndexOutOfBoundsError, ShapeError), "3"),
        (([0, 1], [0, 1, 2]), (ShapeError, IndexOutOfBoundsError), "broadcast"),
    ],
    ids=repr,
)  # fmt: skip
def test_indexing_error_names_the_problem(index, kind, words):
    with pytest.raises(kind, match=words):
        C(A)[index]
    with pytest.raises(kind, match=words):
        C(A)[index] = 1.0


@pytest.mark.parametrize("watched", [False, True])
def test_setitem_of_a_list_keeps_precision_and_refuses_numbers_that_do_not_fit(watched):
    with gg.GradientTape() as tape:
        x = C([1.0, 1.0, 1.0], "float64")
        if watched:
            tape.watch(x)
        x[:2] = [0.1, 0.2]
        assert x.tolist() == [0.1, 0.2, 1.0]
    with pytest.raises(NumberOverflowError, match=r"setitem: .*\[-3\] does not fit uint8"):
        C([1], "uint8")[:] = [-3]


def test_setitem_refuses_values_that_do_not_fit():
    x = C([1.0, 2.0, 3.0])
    with pytest.raises(ShapeError):
        x[:2] = [1.0, 2.0, 3.0]
    with pytest.raises(DTypeError):
        x[0] = "a"
    with pytest.raises(DTypeError, match="complex"):
        x[0] = 1j
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_setitem_does_not_change_earlier_copies():
    x = C([1.0, 2.0, 3.0, 4.0])
    copies = [
        x[[1, 2]], x[x > 2], gg.flatten(x), copy.copy(x), copy.deepcopy(x), gg.stop_gradient(x),
        np.asarray(x), gg.array(x), x.copy(), gg.Variable(x), gg.Variable(x).value(), x[1],
    ]  # fmt: skip
    before = [np.array(v.tolist()) for v in copies]
    x[...] = 0.0
    x[1] = 5.0
    for y, values in zip(copies, before, strict=True):
        assert np.array_equal(y.tolist(), values)
        if type(y) is gg.Tensor:
            y[...] = 100.0
    assert x.tolist() == [0.0, 5.0, 0.0, 0.0]


def test_setitem_of_an_overlapping_slice():
    x = C([1.0, 2.0, 3.0, 4.0])
    x[1:] = x[:-1]
    assert x.tolist() == [1.0, 1.0, 2.0, 3.0]


# ---- Python protocols -----------------------------------------------------------------------


def test_length_and_iteration():
    x = C([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    _, b = x
    assert b.tolist() == [3.0, 4.0]
    assert 3.0 in C([1.0, 3.0])
    assert list(C([])) == []
    for call in (len, iter, list):
        with pytest.raises(TypeError, match="0-d"):
            call(C(1.0))
    assert tape_gradient(lambda x: sum(row[0] for row in x), x).tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_in_searches_all_elements():
    x = C([[1.0, 2.0], [3.0, float("nan")]])
    assert 3.0 in x
    assert C([5.0, 2.0]) in x
    assert 2.0 in x[0, 1]
    for other in (4.0, float("nan"), "3.0", None):
        assert other not in x
    assert 1.0 not in C([])


def test_one_element_tensors_convert_to_python_numbers():
    assert float(C([[2.5]])) == 2.5
    assert int(C(2.9)) == 2
    assert complex(C(1 + 2j)) == 1 + 2j
    assert bool(C([0.0])) is False
    assert bool(C(np.nan)) is True
    assert C([[3]]).item() == 3
    assert type(C(True).item()) is bool
    assert [10, 20, 30][C(1)] == 20
    assert list(range(5))[C(1) : C(3)] == [1, 2]


@pytest.mark.parametrize("convert", [float, int, complex, bool, lambda x: x.item()])
@pytest.mark.parametrize("x", [C([1.0, 2.0]), C([])], ids=["two", "none"])
def test_conversion_to_a_number_requires_one_element(convert, x):
    with pytest.raises(ArgumentError, match=r"\(2,\)|\(0,\)"):
        convert(x)


@pytest.mark.parametrize("x", [C(1.0), C([1]), C(True)], ids=["float", "vector", "bool"])
def test_operator_index_requires_an_integer_scalar(x):
    with pytest.raises(TypeError):
        operator.index(x)


def test_format_and_text():
    assert f"{C(1.25):.1f} {C(3):03d} {C([2.5]):.2e}" == "1.2 003 2.50e+00"
    assert f"{C([1.0, 2.0])}" == str(C([1.0, 2.0])) == "[1. 2.]"
    assert f"{C([1.0, 2.0]):>10}" == "   [1. 2.]"
    assert repr(C(1.0)) == "Tensor(1.0, shape=(), dtype=float32, device=cpu)"
    assert repr(C([[1, 2]])) == "Tensor([[1, 2]], shape=(1, 2), dtype=int64, device=cpu)"
    assert repr(gg.zeros((0, 3))).startswith("Tensor([], shape=(0, 3)")


def test_repr_of_a_large_tensor_copies_only_its_edges(monkeypatch):
    x = gg.reshape(gg.arange(1_000_000), (1000, 1000))
    copied, host = [], tensor_module.devices.host
    monkeypatch.setattr(tensor_module.devices, "host", lambda a: copied.append(a.size) or host(a))
    text = repr(x)
    assert sum(copied) <= 100
    assert "..." in text
    for number in (" 0,", " 999]", "999000", "999999"):
        assert number in text
    assert len(text.splitlines()) == 7
    assert str(gg.arange(2000)) == "[   0    1    2 ... 1997 1998 1999]"
    assert "..." not in repr(gg.arange(1000))


def test_hash_is_by_identity():
    x, y = C(1.0), C(1.0)
    assert len({x, y, x}) == 2
    assert {x: 1}[x] == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int8", "bool"])
def test_pickle_and_copies(dtype):
    x = C([[1, 0], [3, 4]], dtype)
    for twin in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert (twin.dtype, twin.device, twin.tolist()) == (x.dtype, x.device, x.tolist())
        twin[0] = 0
        assert twin.tolist() != x.tolist()


def test_attributes():
    x = C([[1.0, 2.0, 3.0]], "float16")
    assert (x.shape, x.ndim, x.size, x.nbytes, x.dtype) == ((1, 3), 2, 3, 6, gg.float16)
    assert x.device == "cpu"
    assert x.T.shape == x.mT.shape == (3, 1)
    with pytest.raises(AttributeError):
        x.note = 1


def test_numpy_returns_a_copy():
    x = C([1.0, 2.0])
    a = x.numpy()
    a[0] = 100.0
    assert x.tolist() == [1.0, 2.0]


def test_methods_equal_the_ops():
    x = C([[1.0, 4.0], [3.0, 2.0]])
    assert x.sum().item() == gg.sum(x).item() == 10.0
    assert x.mean(axis=0).tolist() == [2.0, 3.0]
    assert x.reshape(4).shape == x.reshape((4,)).shape == x.reshape(-1).shape == (4,)
    assert x.reshape(1, 4).shape == (1, 4)
    assert x.transpose(1, 0).tolist() == x.transpose((1, 0)).tolist() == x.T.tolist()
    assert x.argmax(axis=1).tolist() == [1, 0]
    assert x.astype(gg.int32).dtype == gg.int32
    assert C(1 + 2j).real.item() == 1.0
    assert C(1 + 2j).imag.item() == 2.0


# ---- NumPy protocols ------------------------------------------------------------------------


def test_numpy_reads_an_unwatched_tensor():
    x = C([1.0, 2.0])
    view = np.asarray(x)
    assert view.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5.0
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    fresh = np.array(x)
    fresh[0] = 5.0
    assert x.tolist() == [1.0, 2.0]
    assert np.stack([x, x]).tolist() == [[1.0, 2.0]] * 2


def test_numpy_cannot_cast_a_tensor_without_a_copy():
    with pytest.raises(ValueError, match="float32 to float64 needs a copy"):
        np.asarray(C([1.0]), dtype=np.float64, copy=False)
    assert np.asarray(C([1.0]), dtype=np.float32, copy=False).tolist() == [1.0]


def test_numpy_conversion_of_a_watched_tensor_is_refused():
    x, other = C([1.0, 2.0]), C([3.0, 4.0])
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * 2
        for watched in (x, y):
            with pytest.raises(DTypeError, match=r"x\.numpy\(\), or gg\.stop_gradient"):
                np.asarray(watched)
        assert np.asarray(other).tolist() == [3.0, 4.0]
        assert x.numpy().tolist() == [1.0, 2.0]
        assert np.asarray(gg.stop_gradient(x)).tolist() == [1.0, 2.0]
        seen = []
        worker = threading.Thread(target=lambda: seen.append(np.asarray(x).tolist()))
        worker.start()
        worker.join()
    assert seen == [[1.0, 2.0]]  # that thread records nothing
    assert np.asarray(x).tolist() == [1.0, 2.0]
    with gg.ForwardAccumulator(x, C([1.0, 1.0])), pytest.raises(DTypeError):
        np.asarray(x)


def test_numpy_functions_on_tensors_never_cut_a_gradient_silently():
    x = C([1.0, 2.0])
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        for function, slope in ((np.sin, np.cos([1.0, 2.0])), (np.exp, np.exp([1.0, 2.0]))):
            y = function(x)
            assert isinstance(y, gg.Tensor)
            np.testing.assert_allclose(tape.gradient(y, x).numpy(), slope, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -2, None])
def test_put_along_axis_under_vmap_equals_numpy_and_is_differentiable(axis, rng):
    x = rng.normal(size=(3, 2, 4))
    shape = (5,) if axis is None else (1, 4) if axis == 1 else (5, 4)
    places = rng.integers(-2, 2, (3, *shape))
    values = rng.normal(size=(3, *((2, 4) if axis == 1 else shape)))
    expected = x.copy()
    for one, i, v in zip(expected, places, values, strict=True):
        np.put_along_axis(one, i, v, axis)

    def put(x, i, v):
        y = gg.array(x)
        gg.put_along_axis(y, i, v, axis)
        return y

    np.testing.assert_array_equal(gg.vmap(put)(x, places, values).numpy(), expected)
    gg.testing.check_grads(lambda x, v: put(x, places[0], v), (x[0], values[0]))
    # of several writes to one element only the last has a gradient


def test_put_along_axis_refuses_indices_of_another_rank():
    with pytest.raises(ValueError, match="put_along_axis: the indices have 2 axes, the array 1"):
        gg.put_along_axis(gg.ones(3), [[0]], 1.0, axis=0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "int64"])
def test_mean_and_variance_of_an_empty_axis_are_nan_without_a_warning(dtype):
    x = gg.zeros((0, 2), dtype=dtype)
    for f in (gg.mean, gg.var, gg.std, gg.average, lambda x, **k: gg.average(x, weights=x, **k)):
        y = f(x, axis=0)
        assert y.shape == (2,)
        assert np.isnan(y.numpy()).all()
    assert np.isnan(gg.var([1.0], correction=1).item())
    assert gg.grad(lambda x: gg.sum(gg.mean(x, axis=0)))(gg.zeros((0, 2))).shape == (0, 2)


def test_astype_can_move_to_another_device(cuda):
    x = C([1.5, -2.5])
    for y in (gg.astype(x, "float64", device=cuda), x.astype("float64", device=cuda)):
        assert (y.dtype, y.device, y.tolist()) == (gg.float64, cuda, [1.5, -2.5])
    g = gg.grad(lambda x: gg.sum(gg.astype(x, "float64", device=cuda) ** 2))(x)
    assert (g.dtype, g.device, g.tolist()) == (gg.float32, "cpu", [3.0, -5.0])


def test_setitem_in_a_loop_copies_the_array_once():
    x = gg.zeros(100)
    seen = x + 0.0
    x[0] = 1.0  # only x holds its array, so this writes in place
    memory = x._data.ctypes.data
    for i in range(100):
        x[i] = float(i)
    assert x._data.ctypes.data == memory
    assert x.tolist() == list(range(100))
    assert seen.tolist() == [0.0] * 100


def test_failed_setitem_leaves_the_tensor_unchanged():
    x = gg.arange(4)
    for index, value, error in (
        (9, 1, IndexError),
        (0, 0.5j, TypeError),
        (0, float("nan"), ValueError),
        ([0, 1], [1, 2, 3], ValueError),
    ):
        with pytest.raises(error, match="setitem"):
            x[index] = value
    assert x.tolist() == [0, 1, 2, 3]


def test_references_are_keys_of_tensors_and_variables():
    x, v = gg.constant([1.0, 2.0]), gg.Variable([1.0, 2.0])
    keys = {x.ref(): "x", v.ref(): "v"}
    assert keys[x.ref()] == "x"
    assert keys[v.ref()] == "v"
    assert v.ref().deref() is v
    assert x.ref() != x.copy().ref()
    assert x.ref() != "x"
    assert len({v.ref(), v.ref(), x.ref()}) == 2
    assert repr(v.ref()) == f"<Reference to {v!r}>"
