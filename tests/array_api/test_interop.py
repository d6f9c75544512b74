"""Tensors in other libraries: NumPy's protocols, plotting and tables, SciPy, scikit-learn.

Tests marked `peers` run SciPy and scikit-learn in a separate process, since both read
SCIPY_ARRAY_API at import. Run as a program, this file prints their outcomes.
"""

import copy
import functools
import importlib
import json
import operator
import os
import pickle
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from taping import taped

import gpugrad as gg
from gpugrad.array_api.numpy_protocols import _takes_like
from gpugrad.core import backend
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, ShapeError

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 3, 4))
V = RNG.normal(size=4)
M = RNG.normal(size=(2, 3, 3))
POSITIVE = np.abs(A) + 0.5
GAPS = np.where(A > 0.5, np.nan, A)

# ---- NumPy's functions ------------------------------------------------------------------------

DIFFERENTIABLE = {
    "absolute": lambda t: np.absolute(t(A)), "add": lambda t: np.add(A, t(B)),
    "add.accumulate": lambda t: np.add.accumulate(t(A)),
    "add.outer": lambda t: np.add.outer(V, t(A)),
    "add.reduce": lambda t: np.add.reduce(t(A)), "amin": lambda t: np.amin(t(A)),
    "angle": lambda t: np.angle(t(A + 1j * B), deg=True),
    "arctan2": lambda t: np.arctan2(t(A), t(B)),
    "average": lambda t: np.average(t(A), 0, t(POSITIVE)),
    "broadcast_to": lambda t: np.broadcast_to(t(V), (3, 4)),
    "clip": lambda t: np.clip(t(A), -0.5, 0.5),
    "clip a_min": lambda t: np.clip(t(A), a_min=0, a_max=None),
    "concatenate": lambda t: np.concatenate([t(A), t(B)], 1), "copy": lambda t: np.copy(t(A)),
    "cross": lambda t: np.cross(t(A[:, :3]), t(B[:, :3])),
    "cross axes": lambda t: np.cross(t(A[:, :3]), t(B[:, :3]), axisa=0, axisb=1, axisc=0),
    "cross axis": lambda t: np.cross(t(A), t(B), axis=0),
    "einsum of lists": lambda t: np.einsum(t(A), [0, 1], t(B), [2, 1], [2, 0]),
    "einsum of lists, implicit": lambda t: np.einsum(t(A), [1, 0]),
    "einsum optimize": lambda t: np.einsum("ij,ij->i", t(A), t(B), optimize=True),
    "linalg.svd values": lambda t: np.linalg.svd(t(M), compute_uv=False),
    "cumprod": lambda t: np.cumprod(t(A), 1),
    "cumsum": lambda t: np.cumsum(t(A)), "cumulative_sum": lambda t: np.cumulative_sum(t(V)),
    "diagonal": lambda t: np.diagonal(t(M), 1, 1, 2),
    "diff": lambda t: np.diff(t(A), 2, 0, prepend=1.0), "dot": lambda t: np.dot(t(A), t(V)),
    "einsum": lambda t: np.einsum("ij,ij->i", t(A), t(B)), "exp": lambda t: np.exp(t(A)),
    "expand_dims": lambda t: np.expand_dims(t(A), 1), "flip": lambda t: np.flip(t(A)),
    "hypot": lambda t: np.hypot(t(A), t(B)), "kron": lambda t: np.kron(t(A), t(B)),
    "logaddexp.reduce": lambda t: np.logaddexp.reduce(t(A)),
    "matmul": lambda t: np.matmul(t(A), t(V)),
    "max": lambda t: np.max(t(A), 0), "maximum": lambda t: np.maximum(t(A), 0),
    "maximum.reduce": lambda t: np.maximum.reduce(t(A), axis=None),
    "mean": lambda t: np.mean(t(A), axis=-1, keepdims=True),
    "moveaxis": lambda t: np.moveaxis(t(M), 0, -1),
    "multiply.reduce": lambda t: np.multiply.reduce(t(A), axis=1, keepdims=True),
    "nancumprod": lambda t: np.nancumprod(t(GAPS), axis=0),
    "nancumsum": lambda t: np.nancumsum(t(GAPS)),
    "nanmean": lambda t: np.nanmean(t(GAPS), 0), "nansum": lambda t: np.nansum(t(GAPS), 1),
    "nanmean dtype": lambda t: np.nanmean(t(GAPS), dtype=np.complex128),
    "nanstd": lambda t: np.nanstd(t(GAPS), axis=1, ddof=1),
    "outer": lambda t: np.outer(t(A), t(V)),
    "pad": lambda t: np.pad(t(A), ((0, 1), (2, 0)), constant_values=3.0),
    "pad edge": lambda t: np.pad(t(A), 1, mode="edge"),
    "power": lambda t: np.power(t(POSITIVE), 2.5),
    "prod": lambda t: np.prod(t(A), 1), "ravel": lambda t: np.ravel(t(A)),
    "repeat": lambda t: np.repeat(t(A), 2), "reshape": lambda t: np.reshape(t(A), (4, 3)),
    "roll": lambda t: np.roll(t(A), 1), "sort": lambda t: np.sort(t(A), axis=None),
    "sort kind": lambda t: np.sort(t(A), 0, kind="stable"),
    "split": lambda t: np.split(t(A), [1], 1)[1],
    "sqrt": lambda t: np.sqrt(t(POSITIVE)), "squeeze": lambda t: np.squeeze(t(A[None])),
    "stack": lambda t: np.stack([t(A), B], axis=2), "std": lambda t: np.std(t(A), 0, ddof=1),
    "sum": lambda t: np.sum(t(A), axis=0),
    "sum positional": lambda t: np.sum(t(A), 0, None, None, True),
    "swapaxes": lambda t: np.swapaxes(t(M), 0, 2), "take": lambda t: np.take(t(A), [1, 5]),
    "take axis": lambda t: np.take(t(A), [1, 2], axis=1),
    "tensordot": lambda t: np.tensordot(t(A), t(B), axes=([0, 1], [0, 1])),
    "tile": lambda t: np.tile(t(A), (2, 1)), "trace": lambda t: np.trace(t(M)),
    "transpose": lambda t: np.transpose(t(M)),
    "transpose axes": lambda t: np.transpose(t(M), (1, 0, 2)),
    "tril": lambda t: np.tril(t(A)), "triu": lambda t: np.triu(t(A), k=1),
    "var": lambda t: np.var(t(A)),
    "vecdot": lambda t: np.vecdot(t(A), t(B)), "where": lambda t: np.where(A > 0, t(A), t(B)),
    "linalg.det": lambda t: np.linalg.det(t(M)), "linalg.inv": lambda t: np.linalg.inv(t(M)),
    "linalg.norm": lambda t: np.linalg.norm(t(A)),
    "linalg.norm axis": lambda t: np.linalg.norm(t(A), axis=1),
    "linalg.solve": lambda t: np.linalg.solve(t(M), np.ones((2, 3, 1))),
    "fft.rfft": lambda t: np.abs(np.fft.rfft(t(V))),
    "scipy.special.erf": lambda t: scipy.special.erf(t(A)),
}  # fmt: skip
DISCRETE = {
    "argmax": lambda t: np.argmax(t(A)), "argsort": lambda t: np.argsort(t(A)),
    "count_nonzero": lambda t: np.count_nonzero(t(A)),
    "full_like": lambda t: np.full_like(t(A), 3.0),
    "greater": lambda t: np.greater(t(A), 0), "isfinite": lambda t: np.isfinite(t(A)),
    "like": lambda t: np.ones(3, like=t(A)).astype(float),
    "nonzero": lambda t: np.where(t(A) > 0)[1],
    "round": lambda t: np.round(t(A), 1),
    "searchsorted": lambda t: np.searchsorted(np.sort(V), t(V), "right"),
    "zeros_like": lambda t: np.zeros_like(t(A)), "any": lambda t: np.any(t(A) > 0, axis=0),
}  # fmt: skip


def _same(actual, expected):
    assert isinstance(actual, gg.Tensor)
    assert actual.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", [*DIFFERENTIABLE, *DISCRETE])
def test_numpy_function_dispatches_to_gpugrad(name):
    call = {**DIFFERENTIABLE, **DISCRETE}[name]
    _same(call(gg.asarray), call(lambda a: a))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_numpy_function_is_differentiable(name):
    watched = []

    def watch(a):
        watched.append(gg.asarray(a))
        tape.watch(watched[-1])
        return watched[-1]

    with gg.GradientTape() as tape:
        y = DIFFERENTIABLE[name](watch)
    assert all(g is not None for g in tape.gradient(y, watched))


def test_numpy_functions_write_a_tensors_values_into_numpys_arrays():
    a = np.zeros(4)
    np.put_along_axis(a, np.array([1]), gg.asarray(V)[:1], 0)
    assert a.tolist() == [0, V[0], 0, 0]


def test_numpy_computes_functions_that_gpugrad_lacks():
    x = gg.asarray(A)
    for own in (np.atleast_1d(x), np.atleast_2d(x), x.numpy(), x.get()):
        own[0] = 0.0  # a writable copy
    assert x.tolist() == A.tolist()
    assert type(np.lib.scimath.sqrt(x)) is np.ndarray
    assert np.frexp(x)[1].tolist() == np.frexp(A)[1].tolist()
    assert np.allclose(x, A)
    assert np.array_equal(x, A)


@pytest.mark.parametrize("call", [
    np.lib.scimath.sqrt, lambda x: np.logaddexp.reduce(x, where=A > 0),
    lambda x: np.add.reduceat(x, [0, 1]), np.asarray, lambda x: np.array([x, x]), np.float64,
    lambda x: np.mean([x, x]), lambda x: np.sum([x, x]), lambda x: np.max((x, x)),
    lambda x: np.sin([x]), lambda x: np.add([x], 1), lambda x: np.dot([x], [1]),
    lambda x: np.linalg.norm([x]), lambda x: np.where([True], [x], 0),
], ids=["scimath", "where=", "reduceat", "asarray", "array", "float64", "mean", "sum", "max", "sin",
        "add", "dot", "norm", "where"])  # fmt: skip
def test_numpy_never_cuts_a_gradient_silently(call):
    x = gg.asarray(A)
    with gg.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(TypeError, match=r"cut its gradient|only 0-dim|size-1|scalar"):
            call(x)


@pytest.mark.parametrize("name", ["mean", "sum", "max", "sin"])
def test_numpys_function_of_a_list_of_tensors_names_the_way_out(name):
    """NumPy dispatches no list: it converts each element."""
    x, ours, theirs = gg.constant(0.5), getattr(gg, name), getattr(np, name)
    with gg.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(DTypeError, match="gpugrad's function of that name, which takes lists"):
            theirs([x, x])
        y = gg.sum(ours([x, x]))
    assert tape.gradient(y, x) is not None
    with pytest.raises(
        gg.errors.TraceError, match=rf"{Path(__file__).name}:\d+: a value was asked"
    ):
        gg.function(lambda x: theirs([x, x]))(x)


@pytest.mark.parametrize("join", [np.stack, np.concatenate, np.vstack, np.hstack])
def test_numpy_joins_a_list_of_tensors_with_gradients(join):
    x = gg.constant([0.5, 1.0])
    assert gg.grad(lambda x: gg.sum(join([x, x])))(x).tolist() == [2.0, 2.0]


def test_error_names_the_numpy_function():
    x = gg.asarray(A)
    with gg.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(DTypeError, match=r"numpy\.lib\.scimath\.sqrt"):
            np.lib.scimath.sqrt(x)
        with pytest.raises(DTypeError, match=r"numpy\.add\.reduceat"):
            np.add.reduceat(x, [0, 1])
        assert (np.ndim(x), np.shape(x), np.size(x), np.size(x, 1)) == (2, (3, 4), 12, 4)
        assert not np.iscomplexobj(x)
        assert np.array_repr(x).startswith("array(")


@pytest.mark.parametrize("call", [
    lambda x, a: np.add(x, 1.0, out=a), lambda x, a: np.sum(x, out=a),
    lambda x, a: operator.iadd(a, x), lambda x, a: np.add.at(a, [0], x[0]),
], ids=["out=", "sum out=", "iadd", "add.at"])  # fmt: skip
def test_writing_a_watched_result_into_a_numpy_array_is_refused(call):
    x, a = gg.asarray(A), A.copy()
    with gg.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(DTypeError, match=r"NumPy array|writes to a Tensor"):
            call(x, a)
    assert a.tolist() == A.tolist()
    assert x.tolist() == A.tolist()


def test_errors_of_mapped_functions_come_from_gpugrad():
    with pytest.raises(ShapeError, match=r"add.*\(2,\).*\(3,\)"):
        np.add(np.ones(2), gg.ones(3))


OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "ge", "eq", "ne"]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("other", [POSITIVE, POSITIVE[0], np.float64(1.5), np.int64(2)],
                         ids=["array", "row", "float64", "int64"])  # fmt: skip
def test_operators_of_arrays_and_tensors_return_tensors(name, other):
    run, x = getattr(operator, name), gg.asarray(POSITIVE)
    _same(run(other, x), run(other, POSITIVE))
    _same(run(x, other), run(POSITIVE, other))


def test_matmul_and_bitwise_operators_with_arrays():
    _same(A @ gg.asarray(V), A @ V)
    _same(np.array([6, 5]) & gg.asarray([3, 3]), [2, 1])


def test_operators_of_other_array_types_take_precedence():
    masked = np.ma.masked_array([1.0, 2.0], [False, True]) + gg.asarray([1.0, 1.0])
    assert masked.tolist() == [2.0, None]


def test_masked_elements_are_refused():
    x, masked = gg.asarray([1.0, 1.0]), np.ma.masked_array([1.0, 2.0], [False, True])
    for f in (gg.asarray, gg.exp, lambda m: x + m, gg.Variable, gg.Variable(x).assign):
        with pytest.raises(DTypeError, match=r"masked.*x\.filled"):
            f(masked)
    assert (x + np.ma.masked_array([1.0, 2.0])).tolist() == [2.0, 3.0]


def test_user_defined_ufunc_is_not_mapped_to_an_op():
    square = np.frompyfunc(lambda x: x + 1, 1, 1)
    assert square(gg.asarray([1.0])).tolist() == [2.0]


# ---- evenly spaced numbers ------------------------------------------------------------------

ENDS = {
    "numbers": (1.0, 4.0), "an array and a number": ([1.0, 2.0], 4.0),
    "arrays": ([1.0, 2.0], [[3.0], [4.0]]), "negative": (-1.0, -8.0), "complex": (1j, 2.0 + 1j),
}  # fmt: skip


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
def test_spaced_numbers_between_tensors_are_numpys(name, ends):
    arrays = [np.asarray(end) for end in ends]
    tensors = [gg.constant(a, a.dtype) for a in arrays]
    for endpoint in (True, False):
        desired = getattr(np, name)(*arrays, 5, endpoint=endpoint)
        for start, stop in [tensors, (tensors[0], arrays[1]), (arrays[0], tensors[1])]:
            for library in (gg, np):
                result = getattr(library, name)(start, stop, 5, endpoint=endpoint)
                np.testing.assert_allclose(result, desired, rtol=1e-6)


@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
def test_spaced_numbers_between_tensors_have_gradients_and_are_traced(name):
    space = getattr(gg, name)
    a, b = gg.constant(1.5, "float64"), gg.constant(2.0, "float64")
    gg.testing.check_grads(lambda a, b: space(a, b, 4), (a, b))
    np.testing.assert_allclose(gg.function(lambda a: space(a, b, 4))(a), space(a, b, 4))
    pairs = gg.vmap(lambda a: space(a, b, 4))(gg.stack([a, a + 1]))
    np.testing.assert_allclose(pairs[1], space(a + 1, b, 4))


def test_logspace_takes_a_tensor_as_its_base():
    base = gg.constant([2.0, 3.0], "float64")
    np.testing.assert_allclose(gg.logspace(1, 2, 3, base=base), [[2, 3], [2**1.5, 3**1.5], [4, 9]])


# ---- arguments that gpugrad's functions lack -----------------------------------------------------

_MASK = A > -0.5


@pytest.mark.parametrize("initial", [None, 0.25])
@pytest.mark.parametrize("where", [None, A > -0.5, A[0] > -2.0])
@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}], ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "nansum", "nanprod", "nanmax",
                                  "nanmin"])  # fmt: skip
def test_numpy_reduction_takes_where_and_initial(name, options, where, initial):
    options = options | ({} if where is None else {"where": where})
    options |= {} if initial is None else {"initial": initial}
    x = GAPS if name.startswith("nan") else A

    def call(x):
        return getattr(np, name)(x, **options)

    if where is not None and initial is None and name[-3:] in ("max", "min"):
        with pytest.raises(ValueError, match="initial"):
            call(gg.asarray(x))
        return
    _same(call(gg.asarray(x)), call(x))
    if not name.startswith("nan"):
        gg.testing.check_grads(call, (gg.asarray(x),))


KEYWORDS = {
    "dtype": {"dtype": "f4"}, "signature": {"signature": "f->f"}, "order": {"order": "F"},
    "casting": {"casting": "unsafe", "dtype": np.float32}, "subok": {"subok": False},
    "where": {"where": A > 0}, "where and dtype": {"where": A > 0, "dtype": "f4"},
}  # fmt: skip


@pytest.mark.parametrize("name", KEYWORDS)
def test_numpy_ufuncs_with_keywords_are_differentiable(name):
    keywords = KEYWORDS[name]
    tape, y = taped(lambda x: np.exp(x, **keywords), x := gg.constant(A))
    out = {"out": np.zeros(A.shape, y.dtype)} if "where" in keywords else {}
    expected = np.exp(A, **{**keywords, **({"casting": "same_kind"} if out else {})}, **out)
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected, rtol=1e-6)  # exp' = exp


def test_numpy_ufuncs_refuse_a_cast_as_numpy_does():
    for keywords in ({"dtype": "i4"}, {"casting": "no", "dtype": "f4"}, {"casting": "wrong"}):
        with pytest.raises((TypeError, ValueError)) as expected:
            np.exp(A, **keywords)
        with pytest.raises(expected.type):
            np.exp(gg.asarray(A), **keywords)


@pytest.mark.parametrize(
    "make",
    [
        lambda like: np.identity(3, like=like), lambda like: np.eye(3, like=like),
        lambda like: np.full((2, 3), 1.5, like=like), lambda like: np.arange(3, like=like),
        lambda like: np.tri(3, like=like), lambda like: np.array([1, 2], like=like),
        lambda like: np.fromfunction(np.add, (2, 2), like=like), lambda like: np.ones(3, like=like),
        lambda like: np.asarray([0.1, 2], like=like), lambda like: np.asanyarray(A, like=like),
        lambda like: np.asfortranarray(A, like=like), lambda like: np.require(A, "f4", like=like),
    ],
)  # fmt: skip
def test_numpy_functions_for_like_return_tensors(make):
    """They have NumPy's dtype, and keep a gradient."""
    _same(made := make(x := gg.asarray(A)), make(None))
    assert not made.ndim or made.flags.f_contiguous == make(None).flags.f_contiguous
    for convert in (np.asarray, np.asanyarray, np.ascontiguousarray, np.require, np.array):
        assert gg.grad(lambda x, convert=convert: gg.sum(convert(x, like=x) ** 2))(x) is not None


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": 0, "keepdims": True}], ids=str)
@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd"])
def test_numpy_mean_and_variance_take_where(name, options):
    where = np.array([[True, False, True, True], [True, True, False, True], [False] + 3 * [True]])
    x = np.where(B > 1.5, np.nan, B) if name.startswith("nan") else B
    for more in [{}] if name.endswith("mean") else [{}, {"ddof": 1}]:

        def call(x, more=more):
            return getattr(np, name)(x, where=where, **options, **more)

        _same(call(gg.asarray(x)), call(x))
        if not name.startswith("nan"):
            gg.testing.check_grads(call, (gg.asarray(x),))


def test_numpy_any_and_all_take_where():
    x, where = A > 0, B > 0
    for name in ("any", "all"):
        call = getattr(np, name)
        _same(call(gg.asarray(x), axis=0, where=where), call(x, axis=0, where=where))


OUT = {
    "add": lambda x, out: np.add(x, x, out=out), "sum": lambda x, out: np.sum(x, 0, out=out[0]),
    "matmul": lambda x, out: np.matmul(x, x[:, :3], out=out[:, :3]),
    "cumsum": lambda x, out: np.cumsum(x, 1, out=out),
    "concatenate": lambda x, out: np.concatenate([x[:1], x[1:]], out=out),
    "clip": lambda x, out: np.clip(x, -0.5, 0.5, out=out),
    "where": lambda x, out: np.add(x, 1, out=out, where=_MASK[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", OUT)
def test_numpy_function_writes_to_out(name):
    square = M[0] if name == "matmul" else A
    outs = [np.full((3, 4), 7.0)[:, : square.shape[1]] for _ in range(3)]
    tensor_out = gg.asarray(outs[2].copy())
    returned = OUT[name](square, outs[0])
    on_array = OUT[name](gg.asarray(square), outs[1])
    OUT[name](gg.asarray(square), tensor_out)
    np.testing.assert_allclose(outs[1], outs[0])
    np.testing.assert_allclose(tensor_out, outs[0])
    assert on_array.shape == returned.shape
    assert type(on_array) is np.ndarray


def test_array_in_place_operators_take_tensors_that_no_tape_watches():
    a, x = np.ones(3), gg.asarray(V[:3])
    a += x
    np.testing.assert_allclose(a, 1 + V[:3])
    with gg.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(DTypeError, match=r"x = x \+ y"):
            a += x


@pytest.mark.parametrize("x", [A > 0, np.round(A), V], ids=["bool", "matrix", "vector"])
def test_where_of_a_condition_alone_gives_its_indices(x):
    for found in (gg.where(x), gg.where(gg.asarray(x)), np.where(gg.asarray(x))):
        for actual, desired in zip(found, np.where(x), strict=True):
            _same(actual, desired)
    with pytest.raises(DTypeError, match="where"):
        gg.where(x, None, 1.0)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "divmod"])
def test_integer_division_by_zero_warns_as_numpys(name):
    x, zero = np.array([1, -2]), np.array([0, 0])
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        desired = getattr(np, name)(x, zero)
    for number in (zero, 0):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            actual = getattr(gg, name)(gg.asarray(x), number)
        np.testing.assert_array_equal(np.array(actual), np.array(desired))


def test_view_as_bytes_is_numpys():
    raw = gg.asarray(A).view("V8")
    assert raw.dtype == np.dtype("V8")
    assert np.array_equal(raw, A.view("V8"))
    with pytest.raises(DTypeError, match="V7"):
        gg.asarray(A).view("V7")


@pytest.mark.parametrize("versioned", [False, True])
def test_dlpack_passes_bfloat16_on(versioned):
    class Foreign:
        """An array of another library, which exports the memory of `x`."""

        def __init__(self, x):
            self.x = x

        def __dlpack__(self, max_version=None, **options):
            return self.x.__dlpack__(max_version=(1, 0) if versioned else None)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    x = gg.asarray([[1.0, 2.5], [3.0, -4.0]], dtype="bfloat16")
    y = gg.from_dlpack(Foreign(x))
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.numpy(), x.numpy())
    assert gg.grad(lambda y: gg.sum(y * y))(y).tolist() == [[2.0, 5.0], [6.0, -8.0]]


def test_numpy_functions_that_read_no_values_work_under_a_tape():
    x = gg.asarray(A)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x * 2
        for f in (np.zeros_like, np.ones_like, np.empty_like):
            assert f(y, shape=(2, 5), order="F").shape == (2, 5)
            assert f(y, dtype="float32").dtype == "float32"
            assert type(f(y)) is type(gg.zeros(1))
        assert np.shares_memory(y, y)
        assert not np.may_share_memory(y, x)


def test_take_along_axis_without_an_axis_is_of_all_elements():
    at = np.array([0, 5, 5, 11])
    got = gg.grad(lambda x: gg.sum(np.take_along_axis(x, at, axis=None) * [1.0, 2.0, 3.0, 4.0]))(A)
    assert np.take_along_axis(gg.asarray(A), at, None).tolist() == A.ravel()[at].tolist()
    assert got.numpy().ravel()[at].tolist() == [1.0, 5.0, 5.0, 4.0]


class Unreadable:
    """As a torch array: of bfloat16 and of others, NumPy cannot read it."""

    def __init__(self, x, error):
        self.x, self.error = x, error

    def __array__(self, dtype=None, copy=None):
        raise self.error

    def __dlpack__(self, **options):
        return self.x.__dlpack__()

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_arrays_of_bfloat16_that_numpy_cannot_read_are_read_by_dlpack():
    x = gg.asarray([[1.0, 2.5], [3.0, -4.0]], dtype="bfloat16")
    foreign = Unreadable(x, TypeError("unsupported ScalarType BFloat16"))
    for y in (gg.asarray(foreign), gg.constant(foreign), gg.positive(foreign)):
        assert y.dtype == x.dtype
        assert y.tolist() == x.tolist()
    with pytest.raises(DTypeError, match="Unreadable becomes no NumPy array: it requires grad"):
        gg.asarray(Unreadable(x, RuntimeError("it requires grad")))


VIEWS_OF_VIEWS = {
    "broadcast": lambda x: gg.broadcast_to(x[:1], (4, 3)),
    "row": lambda x: x.T[0],
    "reshape": lambda x: x[:1].reshape(3, 1),
    "deep": lambda x: x.T[1:].T[0][None],
    "diagonal": lambda x: gg.linalg.diagonal(x[:, 1:]),
}


@pytest.mark.parametrize("view", VIEWS_OF_VIEWS)
def test_views_of_views_follow_memory_that_another_library_has_received(view):
    f = VIEWS_OF_VIEWS[view]
    x = gg.asarray(np.arange(6.0).reshape(2, 3))
    y = f(x)
    there = np.from_dlpack(x)
    assert y.tolist() == f(gg.asarray(x.numpy())).tolist()
    x[0, 1] = 7.0
    assert there[0, 1] == 7.0
    assert y.tolist() == f(gg.asarray(x.numpy())).tolist()


@pytest.mark.parametrize("view", VIEWS_OF_VIEWS)
def test_a_tape_copies_views_of_memory_that_another_library_may_write_to(view):
    f, memory = VIEWS_OF_VIEWS[view], np.arange(6.0).reshape(2, 3)
    expected = gg.grad(lambda x: gg.sum(f(x) ** 2))(memory.copy())
    x = gg.from_dlpack(memory)
    tape, z = taped(lambda x: gg.sum(f(x) ** 2), x)
    memory[:] = 0
    assert tape.gradient(z, x).tolist() == expected.tolist()
    if view in ("broadcast", "diagonal"):
        with pytest.raises(ArgumentError, match="read-only"):
            f(x)[0] = 1.0


def rosenbrock(x):
    return gg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def residuals(x):
    return gg.stack([x[0] - 1, 10 * (x[1] - x[0] ** 2)])


START = np.array([1.3, 0.7])


@pytest.mark.parametrize("method", [
    "CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "Newton-CG", "dogleg", "trust-ncg", "trust-krylov",
    "trust-exact", "trust-constr",
])  # fmt: skip
def test_scipy_minimizes_with_gradients_and_hessians(method):
    from scipy.optimize import minimize

    takes_hessians = method.startswith(("Newton", "dogleg", "trust"))
    hess = {"hess": gg.hessian(rosenbrock)} if takes_hessians else {}
    ways = [(rosenbrock, gg.grad(rosenbrock), hess), (gg.value_and_grad(rosenbrock), True, hess)]
    if takes_hessians and method not in ("dogleg", "trust-exact"):
        product = {"hessp": lambda x, p: gg.hvp(rosenbrock, [x], [p * 1.0])[0]}
        ways.append((rosenbrock, gg.grad(rosenbrock), product))
    for f, jac, options in ways:
        result = minimize(f, START, jac=jac, method=method, **options)
        np.testing.assert_allclose(result.x, [1, 1], rtol=2e-3)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_scipy_minimizes_under_constraints(method):
    from scipy.optimize import minimize

    inside = {
        "type": "ineq",
        "fun": lambda x: 1 - gg.sum(x * x, keepdims=True),
        "jac": lambda x: gg.reshape(-2 * gg.constant(x), (1, 2)),
    }
    result = minimize(
        rosenbrock, [0.5, 0.5], jac=gg.grad(rosenbrock), method=method, constraints=inside
    )
    np.testing.assert_allclose(result.x, [0.7864, 0.6177], rtol=2e-3)


@pytest.mark.parametrize(
    ("method", "loss"),
    [("lm", "linear"), *[(m, loss) for m in ("trf", "dogbox") for loss in ("linear", "soft_l1")]],
)
def test_scipy_solves_least_squares_with_jacobians(method, loss):
    from scipy.optimize import least_squares

    jac = gg.jacobian(residuals)
    for f, df in ((residuals, jac), (gg.function(residuals), gg.function(jac))):
        result = least_squares(f, START, df, method=method, loss=loss)
        np.testing.assert_allclose(result.x, [1, 1], rtol=1e-3)


@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
def test_numpys_conversions_return_arrays_unless_something_follows_the_tensor(name):
    convert, x = getattr(np, name), gg.constant([1.0, 2.0])
    assert type(convert(x)) is np.ndarray
    assert [type(a) for a in convert(x, 1.0)] == [np.ndarray, np.ndarray]
    f = lambda x: gg.sum(convert(x) ** 2)  # noqa: E731
    assert gg.grad(f)(x).tolist() == gg.function(gg.grad(f))(x).tolist() == [2, 4]
    assert gg.vmap(f)(x[None]).tolist() == [gg.function(f)(x).item()] == [5]


# ---- devices ----------------------------------------------------------------------------------


def test_numpy_functions_run_on_the_device_of_the_tensor(cuda):
    x = gg.asarray(A, device=cuda)
    assert np.exp(x).device == np.sum(x).device == np.concatenate([x, x]).device == cuda
    with pytest.raises(DTypeError, match=r"x\.numpy\(\)"):
        np.lib.scimath.sqrt(x)
    with pytest.raises(DeviceError, match="to_device"):
        np.ones(4) + x


def test_operators_of_cupy_arrays_and_tensors_return_tensors(cuda):
    cupy = backend.cupy()
    x, array = gg.asarray(V, device=cuda), cupy.asarray(V)
    tape, y = taped(lambda x: array * x + (x + array), x)
    assert isinstance(y, gg.Tensor)
    assert y.device == cuda
    assert tape.gradient(y, x).tolist() == (V + 1).tolist()
    assert x.__array_ufunc__ is None  # so that CuPy leaves it to the tensor


# ---- methods ----------------------------------------------------------------------------------

METHODS = {
    "sum": lambda x: x.sum(0), "mean": lambda x: x.mean(axis=1, keepdims=True),
    "prod": lambda x: x.prod(), "std": lambda x: x.std(ddof=1), "var": lambda x: x.var(axis=0),
    "max": lambda x: x.max(1), "min": lambda x: x.min(), "ptp": lambda x: np.ptp(x, 0),
    "argmax": lambda x: x.argmax(), "argmin": lambda x: x.argmin(axis=1), "any": lambda x: x.any(),
    "all": lambda x: x.all(axis=0), "reshape": lambda x: x.reshape(4, -1),
    "astype": lambda x: x.astype(np.float32), "flatten": lambda x: x.flatten(),
    "ravel": lambda x: x.ravel(), "T": lambda x: x.T, "mT": lambda x: x.mT,
    "transpose": lambda x: x.transpose(1, 0), "swapaxes": lambda x: x.swapaxes(0, 1),
    "cumsum": lambda x: x.cumsum(), "cumprod": lambda x: x.cumprod(axis=1),
    "clip": lambda x: x.clip(-0.5, 0.5), "repeat": lambda x: x.repeat(2, axis=0),
    "round": lambda x: x.round(1), "squeeze": lambda x: x[None].squeeze(0),
    "diagonal": lambda x: x.diagonal(1), "trace": lambda x: x.trace(), "dot": lambda x: x.dot(V),
    "take": lambda x: x.take([0, 2], axis=1), "nonzero": lambda x: (x > 0).nonzero()[0],
    "argsort": lambda x: x.argsort(axis=0), "copy": lambda x: x.copy(),
    "conj": lambda x: x.conj(), "conjugate": lambda x: x.conjugate(), "real": lambda x: x.real,
    "imag": lambda x: x.imag, "view": lambda x: x.view(), "view bytes": lambda x: x.view(np.int64),
    "searchsorted": lambda x: x[0].copy().searchsorted(0.0), "divmod": lambda x: divmod(x, 0.5)[0],
    "rdivmod": lambda x: divmod(2.0, x)[1],
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_method_equals_numpy(name):
    _same(METHODS[name](gg.asarray(A)), METHODS[name](A))


def test_methods_that_differ_from_numpy():
    x = gg.asarray(A + 1j * B)
    assert x.H.tolist() == (A + 1j * B).conj().T.tolist()
    assert x.view(np.float64).tolist() == (A + 1j * B).view(np.float64).tolist()
    filled = gg.zeros(2)
    filled.fill(3.0)
    assert filled.tolist() == [3.0, 3.0]
    assert (gg.ones(2).itemsize, complex(gg.asarray(1j))) == (4, 1j)
    with pytest.raises(DTypeError, match=r"view.*complex128"):
        gg.ones(3).view(np.complex128)


def test_view_of_complex_parts_is_differentiable_and_other_views_are_refused():
    x = gg.asarray(A + 1j * B)
    got = gg.grad(lambda x: gg.sum(x.view(gg.float64) ** 2))(x)
    assert got.tolist() == (2 * (A + 1j * B)).tolist()
    with gg.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(DTypeError, match="cut its gradient"):
            x.view(gg.int64)


# ---- plotting, tables, copies -----------------------------------------------------------------


def test_numpy_testing_and_approx_accept_tensors():
    x = gg.asarray([1.0, 2.0])
    np.testing.assert_allclose(x, [1.0, 2.0])
    np.testing.assert_array_equal(x, [1.0, 2.0])
    assert x == pytest.approx([1.0, 2.0])
    assert pytest.approx(1.0) == x[0]
    with pytest.raises(AssertionError, match="Mismatched"):
        np.testing.assert_allclose(x, [1.0, 3.0])


def test_copies_and_pickles_keep_the_values():
    x = gg.asarray(A)
    for twin in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        _same(twin, A)


NAMESPACES = (gg, gg.linalg, gg.fft, gg.special, gg.nn, gg.optim, gg.random, gg.cuda, gg.testing)


def test_public_functions_and_ops_are_copied_and_pickled_by_name():
    public = [getattr(home, n) for home in NAMESPACES for n in dir(home) if not n.startswith("_")]
    functions = [f for f in public if callable(f) and not isinstance(f, types.ModuleType)]
    for f in (*functions, *gg.OPS.values()):
        assert pickle.loads(pickle.dumps(f)) is f, f
        assert copy.deepcopy(f) is f
        assert copy.copy(f) is f


@pytest.mark.parametrize(
    "f", [gg.function(gg.exp), gg.grad(lambda x: gg.sum(gg.exp(x))), lambda x: gg.exp(x)]
)
def test_joblib_caches_results(f, tmp_path):
    joblib = pytest.importorskip("joblib")
    cached = joblib.Memory(tmp_path, verbose=0).cache(f)
    first, second = cached(gg.constant([0.0, 1.0])), cached(gg.constant([0.0, 1.0]))
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    np.testing.assert_allclose(second.numpy(), [1, np.e], rtol=1e-6)
    assert cached.check_call_in_cache(gg.constant([0.0, 1.0]))


def test_cloudpickle_takes_functions_that_use_the_package():
    cloudpickle = pytest.importorskip("cloudpickle")
    one, x = gg.ones(1), gg.constant(1.0)
    for f in (lambda x: gg.exp(x), lambda x: gg.checkpoint(gg.exp)(x)):
        decorated = [(d(f), x) for d in (gg.function, gg.grad, gg.value_and_grad)]
        for g, value in [(f, x), (gg.vmap(f), one), *decorated]:
            np.testing.assert_equal(pickle.loads(cloudpickle.dumps(g))(value), g(value))


def test_cloudpickle_keeps_custom_derivatives():
    cloudpickle = pytest.importorskip("cloudpickle")

    def tripled(x):
        return gg.sin(x), lambda dy: 3 * dy

    pushed = gg.custom_jvp(lambda x: gg.sin(x))
    pushed.defjvp(lambda p, t: (gg.sin(p[0]), 3 * t[0]))
    root = gg.implicit_diff(lambda y, a: y * y - a)(lambda a: gg.sqrt(a))
    passed = gg.grad_pass_through(lambda x: gg.round(x))
    for f in (gg.custom_gradient(tripled), pushed, root, passed):
        twin = pickle.loads(cloudpickle.dumps(f))
        derivatives = [(gg.grad(g)(4.0), gg.grad(gg.grad(lambda x, g=g: g(x) ** 2))(4.0))
                       for g in (f, twin)]  # fmt: skip
        np.testing.assert_array_equal(*derivatives)
        assert derivatives[0][0].item() != 0


_OP_IN_A_MODULE = """
import gpugrad as gg

@gg.op(samples=lambda rng: [], vjp=[lambda xp, g, x: g * 2 * x])
def squared_elsewhere(xp, x, /):
    return x * x
"""


def test_an_op_in_a_users_module_is_pickled_by_its_place(tmp_path, monkeypatch):
    (tmp_path / "users_ops.py").write_text(_OP_IN_A_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    ops = importlib.import_module("users_ops")
    try:
        stored = pickle.dumps([ops.squared_elsewhere, ops.squared_elsewhere.op])
        assert pickle.loads(stored) == [ops.squared_elsewhere, ops.squared_elsewhere.op]
    finally:
        gg.OPS.pop("squared_elsewhere")
    (tmp_path / "ops.pkl").write_bytes(stored)
    code = (
        "import pickle; f, op = pickle.load(open('ops.pkl', 'rb')); print(f(3.0).item(), op.name)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout  # fmt: skip
    assert output.split() == ["9.0", "squared_elsewhere"]


def test_an_op_that_a_process_lacks_is_named():
    @gg.op(samples=lambda rng: [], name="declared_in_main")
    def declared_in_main(xp, x, /):
        return x * x

    object.__setattr__(declared_in_main.op, "home", "__main__")
    stored = pickle.dumps(declared_in_main.op)
    gg.OPS.pop("declared_in_main")
    with pytest.raises(ArgumentError, match="declared_in_main: this process has no such op"):
        pickle.loads(stored)


def test_an_order_in_memory_changes_no_cast():
    x = gg.asarray(A).astype("float32", order="F", copy=False)  # as zarr calls it
    assert x.tolist() == A.astype("float32").tolist()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["f2", "f4", "i8", "c8", "?"])
def test_zarr_stores_tensors(dtype, zarr_format):
    zarr = pytest.importorskip("zarr")
    x = gg.constant([[1, 0], [1, 1]], dtype=np.dtype(dtype))
    stored = zarr.create_array(
        store=zarr.storage.MemoryStore(), shape=x.shape, dtype=x.dtype, zarr_format=zarr_format
    )
    stored[:] = x
    np.testing.assert_array_equal(gg.constant(stored[:]).numpy(), x.numpy())


def test_numpy_saves_tensors(tmp_path):
    np.savez(tmp_path / "x.npz", x=gg.asarray(A))
    assert np.load(tmp_path / "x.npz")["x"].tolist() == A.tolist()


def test_matplotlib_draws_tensors():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    x, y = gg.asarray(V), gg.asarray(A)
    for draw in (lambda: plt.plot(x, x), lambda: plt.scatter(x, x, c=x), lambda: plt.hist(x),
                 lambda: plt.imshow(y), lambda: plt.contour(y), lambda: plt.bar(x, x),
                 lambda: plt.fill_between(x, x), lambda: plt.errorbar(x, x, yerr=abs(x)),
                 lambda: plt.axhline(x[0]),
                 lambda: plt.figure().add_subplot(projection="3d").plot_surface(y, y, y),
                 ):  # fmt: skip
        draw()
    plt.close("all")


@pytest.mark.peers
def test_pandas_reads_tensors():
    pandas = pytest.importorskip("pandas")
    x = gg.asarray(A)
    assert pandas.DataFrame(x).shape == (3, 4)
    assert pandas.Series(x[0]).sum() == pytest.approx(A[0].sum())


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [
    "data", "add", "exp", "sum", "mean skipna", "mean", "std", "where", "T", "concat", "dot",
    "cumsum", "repr", "rolling", "rolling max",
])  # fmt: skip
def test_xarray_keeps_tensors_and_gradients(name):
    xarray = pytest.importorskip("xarray")
    calls = {
        "data": lambda d: d, "add": lambda d: d + 1, "exp": np.exp, "sum": lambda d: d.sum(),
        "mean skipna": lambda d: d.mean("a", skipna=False), "mean": lambda d: d.mean("a"),
        "std": lambda d: d.std("a", ddof=1, skipna=False), "where": lambda d: d.where(d > 0, 0.0),
        "T": lambda d: d.T, "concat": lambda d: xarray.concat([d, d], "a"),
        "dot": lambda d: d.dot(d), "cumsum": lambda d: d.cumsum("b", skipna=False),
        "repr": lambda d: d, "rolling": lambda d: d.rolling(a=2, min_periods=1).mean(),
        "rolling max": lambda d: d.rolling(b=2, center=True).max().fillna(0.0),
    }  # fmt: skip

    def array(a):
        return xarray.DataArray(a, dims=("a", "b"))

    x = gg.asarray(A)
    tape, y = taped(lambda x: calls[name](array(x)).data, x)
    _same(y, calls[name](array(A)).data)
    assert tape.gradient(y, x) is not None
    if name == "repr":
        assert "Tensor(" in repr(array(x))
        assert x._repr_inline_(40).startswith("gpugrad cpu ")
        assert len(x._repr_inline_(40)) <= 40


@pytest.mark.peers
@pytest.mark.parametrize("library", ["torch", "jax", "tensorflow"])
def test_dlpack_with_other_libraries(library):
    module = pytest.importorskip(library)
    x = gg.asarray(A.astype("float32"))
    there = {
        "torch": lambda: module.from_dlpack(x), "jax": lambda: module.numpy.from_dlpack(x),
        "tensorflow": lambda: module.experimental.dlpack.from_dlpack(x.__dlpack__()),
    }[library]()  # fmt: skip
    np.testing.assert_array_equal(np.asarray(there), x.numpy())
    back = gg.asarray(np.asarray(there)) if library == "tensorflow" else gg.from_dlpack(there)
    assert back.tolist() == x.tolist()
    if library == "torch":
        assert gg.asarray(there).tolist() == module.asarray(x).tolist() == x.tolist()


@pytest.mark.peers
def test_array_api_helpers_and_einops_accept_tensors():
    compat = pytest.importorskip("array_api_compat")
    extra = pytest.importorskip("array_api_extra")
    x = gg.asarray(A)
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x) is gg
    assert compat.device(x) == "cpu"
    assert compat.size(x) == 12
    result = extra.atleast_nd(x, ndim=3)
    assert result.shape == (1, 3, 4)
    once = extra.at(x, 0).set(0.0, copy=True)
    assert once.tolist()[0] == [0.0] * 4
    einops = pytest.importorskip("einops.array_api")
    got = gg.grad(lambda x: gg.sum(einops.reduce(x, "a b -> b", "mean") ** 2))(x)
    assert got.shape == (3, 4)


# ---- SciPy and scikit-learn -------------------------------------------------------------------


def _scipy_calls():
    import scipy.cluster.vq
    import scipy.differentiate
    import scipy.fft
    import scipy.integrate
    import scipy.optimize
    import scipy.signal
    import scipy.spatial.transform
    import scipy.stats

    s = scipy
    v, w = RNG.normal(size=(2, 20))
    positive, x3 = np.abs(v) + 0.5, RNG.normal(size=(20, 3))
    return {
        "zscore": (s.stats.zscore, v), "skew": (s.stats.skew, v), "kurtosis": (s.stats.kurtosis, v),
        "gmean": (s.stats.gmean, positive), "sem": (s.stats.sem, v),
        "variation": (s.stats.variation, positive),
        "circmean": (s.stats.circmean, v), "kstat": (s.stats.kstat, v),
        "pearsonr": (lambda x, y: s.stats.pearsonr(x, y).statistic, v, w),
        "ttest_ind": (lambda x, y: s.stats.ttest_ind(x, y).statistic, v, w),
        "directional_stats": (lambda x: s.stats.directional_stats(x).mean_direction, x3),
        "trapezoid": (s.integrate.trapezoid, v),
        "cumulative_simpson": (lambda x: s.integrate.cumulative_simpson(x, dx=1.0), v),
        "rosen": (s.optimize.rosen, v), "whiten": (s.cluster.vq.whiten, x3),
        "rotation": (lambda x: s.spatial.transform.Rotation.from_rotvec(x).as_matrix(), x3),
        "erf": (s.special.erf, v), "gammaln": (s.special.gammaln, positive),
        "logsumexp": (s.special.logsumexp, v),
        "softmax": (s.special.softmax, v), "xlogy": (lambda x: s.special.xlogy(x, x), positive),
        "rfft": (lambda x: abs(s.fft.rfft(x)), v), "fftconvolve": (s.signal.fftconvolve, v, w),
        "hilbert": (lambda x: abs(s.signal.hilbert(x)), v),
    }  # fmt: skip


SCIPY = [
    "zscore", "skew", "kurtosis", "gmean", "sem", "variation", "circmean", "kstat", "pearsonr",
    "ttest_ind", "directional_stats", "trapezoid", "cumulative_simpson", "rosen", "whiten",
    "rotation", "erf", "gammaln", "logsumexp", "softmax", "xlogy", "rfft", "fftconvolve", "hilbert",
]  # fmt: skip
ESTIMATORS = {
    "StandardScaler": "preprocessing", "MinMaxScaler": "preprocessing",
    "MaxAbsScaler": "preprocessing", "Normalizer": "preprocessing",
    "PolynomialFeatures": "preprocessing", "KernelCenterer": "preprocessing",
    "PCA": "decomposition", "Ridge": "linear_model", "RidgeCV": "linear_model",
    "LogisticRegression": "linear_model", "LinearDiscriminantAnalysis": "discriminant_analysis",
    "Nystroem": "kernel_approximation",
}  # fmt: skip
FITTED = ("MinMaxScaler", "PCA", "Ridge")
ARGUMENTS = {"PCA": {"n_components": 2, "svd_solver": "full"}, "Ridge": {"solver": "svd"},
             "Nystroem": {"random_state": 0}}  # fmt: skip


def _gradients(call, arrays):
    """Whether the call on Tensors equals that on arrays, and its gradients are finite."""
    expected = np.asarray(call(*arrays))
    xs = [gg.asarray(a) for a in arrays]
    with gg.GradientTape() as tape:
        for x in xs:
            tape.watch(x)
        y = call(*xs)
    if not np.allclose(np.asarray(gg.stop_gradient(y)), expected):
        return "different result"
    grads = [gg.asarray(g) if g is not None else None for g in tape.gradient(y, xs)]
    if any(g is None for g in grads):
        return "no gradient"
    return "ok" if all(bool(gg.all(gg.isfinite(g))) for g in grads) else "not finite"


def _probe():
    """The outcome of every call of SciPy and scikit-learn, by name."""
    from sklearn import config_context
    from sklearn.decomposition import PCA
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.utils.estimator_checks import check_array_api_input

    outcomes = {}

    def run(name, function):
        try:
            outcomes[name] = function() or "ok"
        except Exception as error:
            outcomes[name] = f"{type(error).__name__}: {error}"[:300]

    for name, (call, *arrays) in _scipy_calls().items():
        run(name, functools.partial(_gradients, call, arrays))
    for name, home in ESTIMATORS.items():
        cls = getattr(importlib.import_module(f"sklearn.{home}"), name)
        estimator = cls(**ARGUMENTS.get(name, {}))
        check = functools.partial(check_array_api_input, name, estimator, "gpugrad")
        run(name, functools.partial(check, dtype_name="float64", check_values=True))

    x, y = RNG.normal(size=(20, 3)), RNG.normal(size=20)
    with config_context(array_api_dispatch=True):
        for name, fit in {
            "MinMaxScaler": lambda x: MinMaxScaler().fit_transform(x) ** 3,
            "PCA": lambda x: PCA(2, svd_solver="full").fit_transform(x) ** 2,
            "Ridge": lambda x, y: Ridge(solver="svd").fit(x, y).predict(x),
        }.items():
            arrays = [x, y] if name == "Ridge" else [x]
            run(f"gradient of {name}", functools.partial(_gradients, fit, arrays))
    return outcomes


@pytest.fixture(scope="module")
def outcomes():
    for module in ("sklearn", "array_api_compat"):
        pytest.importorskip(module)
    ran = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, check=False,
        env={**os.environ, "SCIPY_ARRAY_API": "1", "GPUGRAD_DEVICE": "cpu",
             "PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[1:3]))},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.peers
@pytest.mark.parametrize("name", [*SCIPY, *ESTIMATORS, *(f"gradient of {n}" for n in FITTED)])
def test_scipy_and_sklearn_take_tensors(outcomes, name):
    assert outcomes[name] == "ok"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(_probe()))


def test_functions_that_take_like_are_found_whether_or_not_they_have_a_signature():
    """Before NumPy 2.4 functions in C have none: ci/check --all runs this with the oldest NumPy."""
    takes = ["arange", "array", "empty", "eye", "frombuffer", "fromiter", "ones", "zeros"]
    others = ["concatenate", "copyto", "dot", "putmask", "sum", "where"]
    assert [name for name in takes + others if _takes_like(getattr(np, name))] == takes
