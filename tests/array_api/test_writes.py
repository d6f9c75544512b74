"""Writes to Tensors: through views, by augmented assignment and NumPy's functions, from outside."""

import contextlib
import ctypes
import math
import weakref

import numpy as np
import pytest
from taping import taped

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.errors import ArgumentError, DTypeError, GpugradError, ShapeError

A = np.arange(12.0).reshape(3, 4)


def both(write, *arrays):
    """The contents of arrays after a function wrote to them: of Tensors, and of NumPy arrays."""
    tensors, numpys = [gg.asarray(a) for a in arrays], [a.copy() for a in arrays]
    write(*tensors)
    write(*numpys)
    for t, a in zip(tensors, numpys, strict=True):
        np.testing.assert_array_equal(t.numpy(), a)


# ---- views --------------------------------------------------------------------------------


def set_all(x, value):
    x[...] = value


def each_row(x):
    for row in x:
        row[:] = row * 2 + 1


def augment_part(x):
    x[1] += 2
    x[0, 1] *= 5
    x[:, [0, 2]] -= 1


def swap_elements(x):
    x[0, 0], x[0, 1] = x[0, 1], x[0, 0]  # whole-index reads are values, not views
    first = x[1, 1]
    x[1, 1] = 70
    x[2, 2] = first


def nested(x):
    v = x.T[1:]
    w = v.reshape(3, 1, 3)[:, 0]
    w[1][::2] = -7
    v += 1
    x[2, 2] = 50
    w *= 2
    w[0, 0] = v[1, 1]


def overlapping(x):
    x[1:] = x[:-1]
    x[:, 1:] += x[:, :-1]
    x[::-1][0] = x[0]


WRITES = {
    "an element of a row": lambda x: x[1].__setitem__(0, 5),
    "an element of the transpose": lambda x: x.T.__setitem__((2, 1), 9),
    "a column": lambda x: x[:, 1].__iadd__(3),
    "iteration": each_row,
    "reshape": lambda x: x.reshape(-1).__setitem__(slice(None, None, 2), 7),
    "newaxis": lambda x: x[None, ..., None][0, 1].__setitem__(2, 4),
    "augmented parts": augment_part,
    "elements": swap_elements,
    "views of views": nested,
    "overlapping memory": overlapping,
    "whole": lambda x: x.__imul__(3),
    "ravel": lambda x: x.ravel().__setitem__(-1, 2),
    "a copy": lambda x: x.flatten().__setitem__(0, 100),
    "an advanced index": lambda x: x[[0, 1]].__setitem__(0, 100),
    "view()": lambda x: x.view().__setitem__(0, 100),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_a_write_through_a_view_reaches_what_numpys_reaches(write, dtype):
    both(write, A.astype(dtype))


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_a_recorded_write_through_a_view_is_differentiable(write):
    def f(x):
        y = x * 1.5
        before = gg.sum(y * y)  # of the old values
        other = y[1:]  # a view that no write goes through
        write(y)
        return before + gg.sum(gg.sin(y)) + gg.sum(other * 0.25)

    x = gg.asarray(A / 7 + 0.01)
    gg.testing.check_grads(f, (x,), order=1)
    traced = gg.function(f)
    for _ in range(2):
        np.testing.assert_allclose(traced(x).item(), f(x).item(), rtol=1e-12)
    np.testing.assert_allclose(gg.grad(traced)(x), gg.grad(f)(x), rtol=1e-12)
    many = gg.stack([x, x + 0.1])
    rows = [gg.grad(f)(row) for row in many]
    np.testing.assert_allclose(gg.vmap(gg.grad(f))(many), gg.stack(rows), rtol=1e-12)


def public_functions():
    """NumPy's functions of one array that gpugrad has, with arguments for those that need some."""
    more = {
        "reshape": ((6, 2),), "permute_dims": ((1, 0),), "moveaxis": (0, 1), "swapaxes": (0, 1),
        "rollaxis": (1,), "expand_dims": (0,), "split": (2,), "array_split": (2,), "hsplit": (2,),
        "vsplit": (3,), "broadcast_to": ((2, 3, 4),), "take": (0,),
    }  # fmt: skip
    for name in sorted(set(gg.__all__) & set(dir(np))):
        if callable(getattr(np, name)) and not isinstance(getattr(np, name), type):
            yield name, more.get(name, ())


def leaves(result):
    if isinstance(result, (list, tuple)):
        return [leaf for r in result for leaf in leaves(r)]
    return [result] if getattr(result, "shape", None) is not None else []


def effects(function, make, args, places):
    """`x` and the array that it views, after a write to each array of ``function(x)``.

    "refused" where that raises.
    """
    seen = []
    for k in places:
        base, x = make()
        try:
            leaves(function(x, *args))[k][...] = 77
        except (ValueError, TypeError):
            seen.append("refused")
        else:
            seen.append([np.array(x.tolist()).tolist(), np.array(base.tolist()).tolist()])
    return seen


PARTS = {  # the shape of an array, and how the argument is a view of it, or None: it is the array
    "vector": ((12,), None), "matrix": ((3, 4), None), "block": ((2, 3, 4), None),
    "part of a vector": ((12,), lambda a: a[2:10]), "element": ((12,), lambda a: a[1, ...]),
    "rows": ((5, 4), lambda a: a[1:4]), "transpose": ((4, 3), lambda a: a.T),
    "part of a block": ((3, 2, 4), lambda a: a[1:, ::-1]),
}  # fmt: skip
REFUSES_MORE = {"meshgrid": "one-dimensional arrays only", "where": "it takes three arguments"}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.filterwarnings("ignore")
def test_a_functions_result_is_a_view_where_numpys_is(part, dtype):
    shape, view = PARTS[part]

    def make(as_array):
        a = as_array(np.arange(1.0, np.prod(shape) + 1).reshape(shape).astype(dtype))
        return a, a if view is None else view(a)

    compared = set()
    for name, args in public_functions():
        try:
            results = leaves(getattr(np, name)(make(np.copy)[1], *args))
            places = [k for k, leaf in enumerate(results) if isinstance(leaf, np.ndarray)]
            expected = effects(getattr(np, name), lambda: make(np.copy), args, places)
        except Exception:  # it takes other arguments
            continue
        if name in REFUSES_MORE or (name.startswith("histogram") and dtype == "complex128"):
            continue
        try:
            getattr(gg, name)(make(gg.asarray)[1], *args)
        except (TypeError, ValueError):  # it refuses the argument, so no write is lost
            continue
        seen = effects(getattr(gg, name), lambda: make(gg.asarray), args, places)
        if name == "diag" and expected == ["refused"]:  # a copy here, read-only in NumPy
            continue
        assert seen == expected, name
        compared.add(name)
    assert compared >= {"asarray", "broadcast_arrays", "ravel", "real", "trim_zeros"}


@pytest.mark.parametrize("part", [lambda a: a, lambda a: a[1:]])
def test_a_cast_that_need_not_copy_returns_the_tensor_itself(part):
    y, a = gg.asarray(A), A.copy()
    for z in (y, a):
        part(z).astype(z.dtype, copy=False)[0] = 5
        part(z).astype(np.float32, copy=False)[0] = 9
        part(z).astype(z.dtype)[0] = 9
    np.testing.assert_array_equal(y, a)
    v = gg.Variable(A)
    kept = gg.astype(v, v.dtype, copy=False)
    v.assign(A + 1)
    np.testing.assert_array_equal(kept, A)


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[::-1, ::-1]], ids=["itself", "view"])
def test_functions_of_more_arguments_return_views_where_numpys_do(part):
    calls = {
        "dsplit": lambda m, x: m.dsplit(m.reshape(x, (1, 3, 4)), 2)[1],
        "astype": lambda m, x: m.astype(x, x.dtype, copy=False),
        "array": lambda m, x: m.array(x, copy=False),
        "nan_to_num": lambda m, x: m.nan_to_num(x, copy=False),
        "einsum": lambda m, x: m.einsum("ij->ji", x),
        "einsum of labels": lambda m, x: m.einsum(x, [..., 1], [1, ...]),
        "einsum of a sum": lambda m, x: m.einsum("ij->j", x),
        "split": lambda m, x: m.split(x.T, [1, 3])[1],
        "iteration over unstack": lambda m, x: list(m.unstack(x, axis=1))[2],
        "broadcast_arrays": lambda m, x: m.broadcast_arrays(x, x[0])[0],
    }
    for name, call in calls.items():
        seen = []
        for m, x in ((np, A.copy()), (gg, gg.asarray(A))):
            call(m, part(x))[...] = 77
            seen.append(np.array(x.tolist()).tolist())
        assert seen[0] == seen[1], name


def test_einsum_of_a_diagonal_refuses_writes_and_names_another_way():
    with pytest.raises(GpugradError, match="fill_diagonal"):
        gg.einsum("ii->i", gg.ones((3, 3)))[:] = 5.0


def test_nan_to_num_without_a_copy_writes_to_its_argument_and_is_recorded():
    x = gg.asarray([2.0, math.nan, 3.0])
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * 1.0
        assert np.nan_to_num(y[1:], copy=False, nan=7.0).tolist() == [7.0, 3.0]
        total = gg.sum(y * y)
    assert y.tolist() == [2.0, 7.0, 3.0]
    assert tape.gradient(total, x).tolist() == [4.0, 0.0, 6.0]


def test_writes_to_an_ops_result_reach_the_argument_recorded_or_not(rng):
    gg.linalg.svd, gg.fft.fft, gg.special.erf, gg.nn.relu, gg.random.normal  # noqa: B018

    def after(op, arguments, keywords, recorded):
        """The arguments after a write to each result."""
        arrays = [gg.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
        inputs = [a for a in arrays if isinstance(a, gg.Tensor) and a.dtype.kind in "fc"]
        with gg.GradientTape() if recorded else contextlib.nullcontext() as tape:
            if recorded:
                tape.watch(inputs)
            results = op.eager(*arrays, **keywords)
            for out in results if isinstance(results, tuple) else (results,):
                with contextlib.suppress(DTypeError, ArgumentError):  # it is read-only
                    out[...] = out + 1 if out.dtype != bool else True
        return [np.array(x.tolist()) for x in inputs]

    for op in gg.OPS.values():
        if op.variadic or not op.samples or op.differentiable is False:
            continue
        for arguments, keywords in op.samples(rng):
            try:
                expected = after(op, arguments, keywords, False)
            except gg.errors.GpugradError:  # the sample is of a device, or of lists
                continue
            seen = after(op, arguments, keywords, True)
            for a, b in zip(expected, seen, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=op.name)


def test_tapes_keep_the_values_from_before_a_write():
    x = gg.asarray(A)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = gg.sum(y * y)
        y[1][0] = 100.0
        y.T[0] += 5.0
    np.testing.assert_allclose(tape.gradient(z, x), 4 * A**3)


@pytest.mark.parametrize("by", ["index", "broadcast", "diagonal", "imag", "variable", "slice"])
def test_a_write_that_cannot_reach_its_elements_raises(by):
    x, v = gg.asarray(A), gg.Variable(A)
    view, error = {
        "index": (v.reshape(-1), DTypeError),
        "broadcast": (gg.broadcast_to(x, (2, 3, 4)), ArgumentError),
        "diagonal": (gg.diagonal(x), ArgumentError), "imag": (gg.imag(x), DTypeError),
        "variable": (v.T, DTypeError), "slice": (v[1], DTypeError),
    }[by]  # fmt: skip
    for write in (lambda: set_all(view, 1.0), lambda: view.__iadd__(1.0), lambda: view[:1].fill(1)):
        with pytest.raises(error):
            write()
    np.testing.assert_array_equal(x, A)
    np.testing.assert_array_equal(v.numpy(), A)


def _write_each(x):
    for element in x[0]:
        element[...] = 5.0


@pytest.mark.parametrize("run", [
    lambda f, x: f(x), lambda f, x: gg.function(f)(x), lambda f, x: gg.vmap(f)(gg.stack([x, x])),
    lambda f, x: gg.jvp(f, [x], [x]),
], ids=["eager", "function", "vmap", "jvp"])  # fmt: skip
@pytest.mark.parametrize("write", [
    lambda x: set_all(x[0, 1], 5.0), lambda x: set_all(x[0][1], 5.0), _write_each,
    lambda x: np.copyto(x[0, 1], 5.0), lambda x: np.add(x[0, 0], 1.0, out=x[0, 1]),
    lambda x: set_all(x.sum(axis=1)[0], 5.0),
], ids=["element", "of a row", "loop", "copyto", "out=", "of a result"])  # fmt: skip
def test_a_write_to_an_element_raises_as_in_numpy(run, write):
    def f(x):
        x = x + 0.0
        write(x)
        return x

    with pytest.raises(TypeError):
        f(A)
    with pytest.raises(ArgumentError, match=r"is a number, as in NumPy.*x\[i\] = v"):
        run(f, gg.asarray(A))


def test_augmented_assignment_to_an_element_makes_a_new_one():
    x = gg.asarray(A)
    element = x[0, 1]
    element += 5.0
    x[1, 0] += 5.0
    x[0, 2, ...][...] = 7.0  # with an ellipsis it is a view
    assert element.item() == A[0, 1] + 5.0
    changed = A.copy()
    changed[1, 0], changed[0, 2] = A[1, 0] + 5.0, 7.0
    np.testing.assert_array_equal(x, changed)


def test_writes_through_a_view_do_not_copy_the_whole_array():
    x = gg.zeros((100, 100))
    memory = weakref.ref(x._data)  # an address may be that of a new array
    for k in range(100):
        x[k, 0] += k
        x.T[1][k] = 2 * k
        x[k][2:4] -= 1
        x[k] *= 2
        x[k, 50:60] = x[k, 60:70]
    for row in x:
        row[5:] = 9
    assert memory() is x._data
    assert x[7, :6].tolist() == [14, 28, -2, -2, 0, 9]


@pytest.mark.parametrize("shared", [False, True])
def test_a_part_may_be_written_to_a_part_that_overlaps_it(shared):
    array = np.arange(6.0)
    x = gg.asarray(array, copy=not shared)
    x[1:] = x[:-1]
    x[:2] = x[::-1][:2]
    assert x.tolist() == [4.0, 3.0, 1.0, 2.0, 3.0, 4.0]


# ---- augmented assignment -------------------------------------------------------------------


def test_augmented_assignment_writes_into_the_same_tensor():
    def write(x):
        same = x
        for _ in range(2):
            x += 1
            x *= 3
            x -= x[0]
            x **= 2
        assert same is x

    both(write, A)
    both(lambda n: n.__ior__(4).__ixor__(1).__iand__(7).__ilshift__(2).__irshift__(1), np.arange(8))
    both(lambda x: x.__imatmul__(np.ones((4, 4))), A)
    both(lambda x: x.__itruediv__(4).__ifloordiv__(0.5).__imod__(3), A)


def test_augmented_assignment_keeps_dtype_and_shape_or_raises():
    x = gg.asarray(A, dtype=gg.float32)
    x += gg.asarray(A)
    assert x.dtype == gg.float32
    n = gg.arange(3)
    with pytest.raises(DTypeError, match=r"x \+= v: the result is float"):
        n += 0.5
    with pytest.raises(ShapeError, match=r"x \*= v: the result has shape \(2, 3\)"):
        n *= gg.ones((2, 1), dtype=gg.int64)
    assert n.tolist() == [0, 1, 2]


def test_augmented_assignment_in_a_traced_function_stays_in_it():
    def f(x):
        total = gg.zeros(())
        for k in range(3):
            y = x * k
            y += 1
            total += gg.sum(y[1:])
        return total

    x = gg.constant([1.0, 2.0, 3.0])
    for g in (gg.function(f), f):
        assert g(x).item() == 21
        assert gg.grad(g)(x).tolist() == [0, 3, 3]

    @gg.function
    def writes(x):
        x += 1
        return x

    with pytest.raises(gg.errors.TraceError, match="argument"):
        writes(x)
    assert x.tolist() == [1, 2, 3]


# ---- sources ---------------------------------------------------------------------------------


@pytest.mark.parametrize("persistent", [False, True])
def test_a_source_is_the_value_that_was_watched(persistent):
    def f(x):
        x[0] = 9.0
        x += 1
        return gg.sum(x * x)

    x = gg.constant([1.0, 2.0, 3.0])
    with gg.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        before = gg.sum(x**3)
        after = f(x)
    assert tape.gradient(after, x).tolist() == [0, 6, 8]
    assert gg.grad(f)(gg.constant([1.0, 2.0, 3.0])).tolist() == [0, 6, 8]
    if persistent:
        x[1] = 100.0  # after the tape
        assert tape.gradient(before, x).tolist() == [3, 12, 27]
        assert tape.jacobian(before, x).tolist() == [3, 12, 27]


def test_a_source_watched_again_is_its_new_value():
    x = gg.constant([1.0, 2.0])
    with gg.GradientTape() as tape:
        tape.watch(x)
        x[0] = 5.0
        tape.watch(x)
        y = gg.sum(x * x)
    assert tape.gradient(y, x).tolist() == [10, 4]


# ---- NumPy's functions that write -----------------------------------------------------------


def numpy_writes(np):
    mask = A % 3 == 0
    return {
        "copyto": lambda x: np.copyto(x, A[0]),
        "copyto where": lambda x: np.copyto(x, 5.0, where=mask),
        "fill_diagonal": lambda x: np.fill_diagonal(x, 5.0),
        "fill_diagonal tall": lambda x: np.fill_diagonal(x.T, [1.0, 2.0], wrap=True),
        "place": lambda x: np.place(x, mask, [1.0, 2.0]),
        "put": lambda x: np.put(x, [0, -1, 5], [1.0, 2.0]),
        "put clip": lambda x: np.put(x, [0, 100], 3.0, mode="clip"),
        "put wrap": lambda x: np.put(x, [0, 100, -30], 3.0, mode="wrap"),
        "put_along_axis": lambda x: np.put_along_axis(x, np.asarray([[1], [0], [3]]), 0.5, axis=1),
        "put_along_axis flat": lambda x: np.put_along_axis(
            arr=x, indices=np.asarray([3, 1]), values=np.asarray([7.0, 8.0]), axis=None
        ),
        "putmask": lambda x: np.putmask(x, mask, [1.0, 2.0, 3.0]),
        "to a view": lambda x: np.put(x[1:].T, [1, 2], 3.0),
    }  # fmt: skip


@pytest.mark.parametrize("name", numpy_writes(np))
def test_numpys_functions_that_write_do(name):
    a = A.copy()
    numpy_writes(np)[name](a)
    for namespace in (gg, np):  # NumPy's own functions, called with a Tensor, are ours
        x = gg.asarray(A)
        assert numpy_writes(namespace)[name](x) is None
        np.testing.assert_array_equal(x, a)

    def f(x):
        y = x * 2.0
        numpy_writes(gg)[name](y)
        return gg.sum(gg.sin(y))

    gg.testing.check_grads(f, (gg.asarray(A / 7),), order=1)


def test_functions_that_write_refuse_what_is_not_a_tensor():
    for call in (
        lambda x: gg.put(x, 0, 1.0), lambda x: gg.copyto(x, 1.0), lambda x: gg.place(x, True, 1.0),
        lambda x: gg.putmask(x, True, 1.0), lambda x: gg.fill_diagonal(x, 1.0),
        lambda x: gg.put_along_axis(x, [[0]], 1.0, 0),
    ):  # fmt: skip
        with pytest.raises(DTypeError, match="writes to a Tensor, got a list"):
            call([1.0, 2.0])
        with pytest.raises(DTypeError, match="assign"):
            call(gg.Variable(np.ones((1, 1))))
    with pytest.raises(DTypeError, match="casting='safe'"):
        gg.copyto(gg.zeros(2), gg.zeros(2, dtype=gg.float64), casting="safe")
    with pytest.raises(ArgumentError, match="mode='nearest'"):
        gg.put(gg.zeros(2), 0, 1.0, mode="nearest")
    with pytest.raises(ArgumentError, match="no values"):
        gg.place(gg.zeros(2), [True, False], [])


def test_out_and_at_write_to_tensors():
    x, y = gg.asarray(A), gg.zeros((3, 4), dtype=gg.float64)
    assert np.exp(x, out=y) is y
    np.testing.assert_allclose(y, np.exp(A))
    assert np.sum(x, axis=0, out=y[1]) is not None
    np.testing.assert_allclose(y[1], A.sum(0))
    np.add.at(y, [0, 0], 1.0)
    np.testing.assert_allclose(y[0], np.exp(A[0]) + 2)
    np.subtract.at(y, ([2], [1]), 1.0)
    np.testing.assert_allclose(y[2, 1], np.exp(A[2, 1]) - 1)
    np.multiply.at(y, ([0, 0], [1, 1]), 2.0)
    np.testing.assert_allclose(y[0, 1], 4 * (np.exp(A[0, 1]) + 2))
    np.testing.assert_allclose(np.exp(x, out=np.zeros((3, 4))), np.exp(A))
    with pytest.raises(ShapeError, match=r"numpy\.exp"):
        np.exp(x, out=gg.zeros(3))
    tensors, arrays = (gg.asarray(A), gg.zeros((3, 4), dtype=gg.float64)), (A.copy(), A * 0)
    for quotient, rest in (tensors, arrays):
        assert np.divmod(quotient, 5.0, out=(quotient, rest), where=A > 2)[1] is rest
        np.modf(rest, rest, quotient)
    np.testing.assert_array_equal(tensors, arrays)


def test_methods_and_options_of_numpy_that_write_do():
    a = np.array([[3.0, np.nan, 1.0], [-np.inf, 5.0, 4.0]])
    x = gg.asarray(a)
    for y in (x, a):
        y[1].sort()
        y.sort(axis=0)
    np.testing.assert_array_equal(x, a)
    for namespace in (gg, np):
        y = gg.asarray(a)
        assert namespace.nan_to_num(y, copy=False, neginf=-7.0) is y
        np.testing.assert_array_equal(y, np.nan_to_num(a, neginf=-7.0))
    with pytest.raises(DTypeError, match="nan_to_num: copy=False writes to a Tensor, got a list"):
        gg.nan_to_num([1.0], copy=False)

    def f(x):
        y = x * 2.0
        gg.nan_to_num(y[0], copy=False, nan=1.0)
        y.sort(axis=1)
        return gg.sum(y[0] * gg.constant([1.0, 2.0, 3.0], gg.float64))

    x = gg.asarray([[3.0, np.nan, 2.0]], gg.float64)
    assert gg.grad(f)(x).tolist() == gg.function(gg.grad(f))(x).tolist() == [[6.0, 0.0, 4.0]]


# ---- memory that others write to ------------------------------------------------------------


def by_dlpack_out():
    x = gg.constant([1.0, 2.0, 3.0])
    owner = np.from_dlpack(x)
    address = owner.__array_interface__["data"][0]
    raw = (ctypes.c_char * owner.nbytes).from_address(address)  # a library that ignores read-only
    return x, np.frombuffer(raw, np.float32), owner


def by_dlpack_in():
    array = np.asarray([1.0, 2.0, 3.0], np.float32)
    return gg.from_dlpack(array), array, None


def by_asarray():
    array = np.asarray([1.0, 2.0, 3.0], np.float32)
    return gg.asarray(array, copy=False), array, None


@pytest.mark.parametrize("make", [by_dlpack_out, by_dlpack_in, by_asarray])
@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1:], lambda x: x.reshape(3, 1)[::-1]])
def test_a_tape_copies_what_it_saves_of_shared_memory(make, part):
    x, memory, _alive = make()
    expected = gg.grad(lambda x: gg.sum(gg.exp(part(x)) * part(x)))(gg.constant([1.0, 2.0, 3.0]))
    view = part(x)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = gg.sum(gg.exp(part(x)) * part(x))
        other = gg.Variable(1.0)
        z = other * gg.sum(gg.stop_gradient(view))
        memory[:] = 100.0
    assert x.tolist() == [100.0] * 3, "the memory is shared"
    assert view.ravel().tolist() == [100.0] * view.size
    np.testing.assert_allclose(tape.gradient([y, z], x), expected)
    x[0] = 5.0
    x[1:][1] += 2.0
    assert memory.tolist() == [5, 100, 102]
    v = gg.Variable(x)
    v.assign(x)
    kept = gg.function(lambda a: a * 2 + x)
    assert kept(gg.zeros(3)).tolist() == [5, 100, 102]
    memory[:] = 7.0
    assert v.numpy().tolist() == [5, 100, 102]
    for other in (x, x[1:], view, gg.asarray(memory, copy=False)):  # all of one memory
        for watched in (x, x[1:], view, gg.asarray(memory, copy=False)):
            with gg.GradientTape() as tape:
                tape.watch(watched)
                with pytest.raises(DTypeError, match="shares its memory"):
                    other[-1] = 1.0
                y = gg.sum(watched * watched)
            np.testing.assert_array_equal(tape.gradient(y, watched), 2 * watched)
    assert x.tolist() == [7.0] * 3


def identity(x):
    z = gg.function(lambda x: x)(x)
    return z * z * z


CUBES = {
    "function": gg.function(lambda x: x * x * x),
    "function that returns its argument": identity,
    "vmap": gg.vmap(lambda x: x * x * x),
    "recompute_grad": gg.recompute_grad(lambda x: x * x * x),
    "custom_gradient": gg.custom_gradient(lambda x: (x * x * x, lambda g: g * 3 * x * x)),
    "cond": lambda x: gg.cond(gg.constant(True), lambda: x * x * x, lambda: x),
    "scan": lambda x: gg.scan(lambda c, a: (c + a**3, c), gg.constant(0.0), x)[0],
    "einsum": lambda x: gg.einsum("i,i,i->i", x, x, x),
}


@pytest.mark.parametrize("make", [by_dlpack_out, by_dlpack_in, by_asarray])
@pytest.mark.parametrize("cube", CUBES.values(), ids=CUBES)
def test_no_transform_saves_memory_that_others_write_to(cube, make):
    x, memory, _alive = make()
    for watched in (x, x[::-1]):
        memory[:] = [1.0, 2.0, 3.0]
        for _ in range(2):  # the second call of a function is a replay
            tape, y = taped(cube, watched)
            value, expected = y.numpy(), 3 * watched.numpy() ** 2
            memory[:] = 100.0
            np.testing.assert_array_equal(y, value)
            np.testing.assert_allclose(tape.gradient(y, watched), expected)
            memory[:] = [1.0, 2.0, 3.0]


def test_whether_reshape_is_a_view_does_not_depend_on_the_order_in_memory():
    def f(x):
        y = gg.positive(x.T)  # its memory has the order of x, but not in a traced function
        y.reshape(-1)[0] = 50
        z = (x * 1).T.reshape(-1)  # a copy in NumPy, too
        z[1] = 70
        w = y.T.ravel()
        w[2] = 90
        return y, z, w, x * 1

    x = gg.asarray(A)
    expected = [a.tolist() for a in f(x)]
    traced = gg.function(f)
    assert [a.tolist() for a in traced(x)] == expected
    assert [a.tolist() for a in traced(x)] == expected
    with gg.GradientTape() as tape:
        tape.watch(x)
        assert [a.tolist() for a in f(x)] == expected
    batched = gg.vmap(f)(gg.stack([x, x]))
    assert [a[0].tolist() for a in batched] == expected
    assert expected[0][0][0] == 50
    assert expected[3] == A.tolist()


READ_ONLY = {  # ops whose results are read-only in NumPy too
    "broadcast_to": "elements share memory",
    "diagonal": "NumPy's diagonal is",
    "getitem": "an element x[i] is a number",
    "imag": "of real numbers: zeros that share memory",
}


def test_the_results_of_ops_can_be_written():
    refused = set()
    for name, op in gg.OPS.items():
        if op.samples is None:
            continue
        for args, keywords in op.samples(np.random.default_rng(0)):
            for result in nest.flatten(op.eager(*args, **keywords)):
                try:
                    result[...] = result.copy()
                except ArgumentError:
                    refused.add(name)
    assert refused <= set(READ_ONLY)


def test_an_array_full_of_a_tensors_value_can_be_written_with_gradients():
    for make in (lambda x: gg.full((3,), x), lambda x: gg.full_like(gg.zeros(3), x)):
        x = gg.constant(2.0)
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = make(x)
            y[0] = 5.0
            loss = gg.sum(y * y)
        assert y.tolist() == [5.0, 2.0, 2.0]
        assert tape.gradient(loss, x).item() == 8.0  # 2 x for each of two elements
