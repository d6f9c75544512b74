"""How gpugrad rewords the errors of NumPy and CuPy."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import OptimizeWarning
from scipy.sparse import SparseEfficiencyWarning

import gpugrad as gg
from gpugrad.errors import DTypeError, GpugradWarning, ShapeError
from gpugrad.errors.classes import warning_like
from gpugrad.errors.meaning import _plain_text

C = gg.constant
A, B, V = np.ones((2, 3), np.float32), np.ones((4, 5), np.float32), np.ones(4, np.float32)

INTERNALS = re.compile(
    r"gufunc|core dimension|operand|remapped|newaxis|did not contain|casting rule|<class|dtype\(|"
    r"ufunc|numpy|coerced|reduction operation"
)

CASES = {
    "lengths": (
        lambda: gg.matmul(C(A), C(B)), ShapeError,
        "axes that must have the same length have lengths 3 and 4. Got x1: float32 (2, 3) on cpu, "
        "x2: float32 (4, 5) on cpu. The last axis of the first must be as long as the "
        "second-to-last axis of the second.",
    ),
    "axes": (
        lambda: gg.matmul(C(1.0), C(A)), ShapeError,
        "array 0 has 0 axes, at least 1 needed. Got x1: float32 () on cpu, x2: float32 (2, 3) on "
        "cpu.",
    ),
    "last axes": (
        lambda: gg.linalg.vecdot(C(A), C(V)), ShapeError,
        "axes that must have the same length have lengths 3 and 4. Got x1: float32 (2, 3) on cpu, "
        "x2: float32 (4,) on cpu, axis=-1. The last axes must have the same length.",
    ),
    "solve": (
        lambda: gg.linalg.solve(C(np.eye(3)), C(np.ones((4, 2)))), ShapeError,
        "axes that must have the same length have lengths 3 and 4. Got x1: float64 (3, 3) on cpu, "
        "x2: float64 (4, 2) on cpu. The last axis of the first must be as long as the "
        "second-to-last axis of the second.",
    ),
    "shapes": (
        lambda: gg.add(C(A), C(V)), ShapeError,
        "the shapes (2, 3) and (4,) do not broadcast. Got x: float32 (2, 3) on cpu, y: float32 "
        "(4,) on cpu. Shapes must agree, counted from the last axis; an axis "
        "of length 1 broadcasts.",
    ),
    "broadcast_to": (
        lambda: gg.broadcast_to(C(A), (5, 3)), ShapeError,
        "the shapes (2, 3) and (5, 3) do not broadcast. Got x: float32 (2, 3) on cpu, shape=(5, "
        "3). Shapes must agree, counted from the last axis; an axis "
        "of length 1 broadcasts.",
    ),
    "fewer axes": (
        lambda: gg.broadcast_to(C(A), (3,)), ShapeError,
        "the result has fewer axes than the array. Got x: float32 (2, 3) on cpu, shape=(3,).",
    ),
    "assignment": (
        lambda: gg.setitem(C(A), C(V), index=0), ShapeError,
        "the shape (4,) does not broadcast to (3,). Got x: float32 (2, 3) on cpu, value: float32 "
        "(4,) on cpu, index=0. Shapes must agree, counted from the last axis; an axis "
        "of length 1 broadcasts.",
    ),
    "no loop": (
        lambda: gg.gcd(C(A), 2), DTypeError,
        "these dtypes are not supported. Got x: float32 (2, 3) on cpu, y: 2. Convert with "
        "gg.astype(x, dtype) first.",
    ),
    "no coercion": (
        lambda: gg.atan2(C(A + 1j), C(A)), DTypeError,
        "these dtypes are not supported. Got x: complex64 (2, 3) on cpu, y: float32 (2, 3) on cpu. "
        "Convert with gg.astype(x, dtype) first.",
    ),
    "difference of booleans": (
        lambda: gg.subtract(C([True]), C([True])), DTypeError,
        "booleans cannot be subtracted; use gg.logical_xor if that is meant. Got x: bool (1,) on "
        "cpu, y: bool (1,) on cpu. Convert with gg.astype(x, dtype) first.",
    ),
    "negative of booleans": (
        lambda: gg.negative(C([True])), DTypeError,
        "booleans cannot be negated; use gg.logical_not if that is meant. Got x: bool (1,) on cpu. "
        "Convert with gg.astype(x, dtype) first.",
    ),
    "maximum": (
        lambda: gg.max(C(np.ones((0, 3), np.float32)), axis=0), ShapeError,
        "an empty array has no maximum. Got x: float32 (0, 3) on cpu, axis=0, keepdims=False.",
    ),
    "permutation": (
        lambda: gg.permute_dims(C(A), (0,)), gg.errors.AxisError,
        "axes must name every axis of the array once. Got x: float32 (2, 3) on cpu, axes=(0,). "
        "Axes count from 0, or backward from -1.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_error_names_the_op_once_and_no_numpy_internals(case):
    call, kind, text = CASES[case]
    with pytest.raises(kind) as caught:
        call()
    name, message = str(caught.value).split(": ", 1)
    assert message == text
    assert name in gg.OPS
    assert not re.search(rf"(?<!\.)\b{name}\b", message)
    assert not INTERNALS.search(message)


TEXTS = {
    "operands could not be broadcast together with shapes (3,) (4,) (2,2) ":
        "the shapes (3,), (4,) and (2, 2) do not broadcast",
    "operands could not be broadcast together with remapped shapes [original->remapped]: "
    "(2,3)->(2,newaxis,3) (4,5)->(4,newaxis,5) ": "the shapes (2, 3) and (4, 5) do not broadcast",
    "operands could not be broadcast together": "the shapes given do not broadcast",
    "shape mismatch: objects cannot be broadcast to a single shape.  Mismatch is between arg 0 "
    "with shape (3,) and arg 2 with shape (4,).": "the shapes (3,) and (4,) do not broadcast",
    "non-broadcastable output operand with shape (3,) doesn't match the broadcast shape (2,3)":
        "the shape (2, 3) does not broadcast to (3,)",
    "Cannot cast ufunc 'add' output from dtype('float64') to dtype('int64') with casting rule "
    "'same_kind'": "float64 does not convert to int64 without loss",
    "Cannot cast array data from dtype('complex64') to dtype('float64') according to the rule "
    "'safe'": "complex64 does not convert to float64 without loss",
    "Wrong type (<class 'numpy.float32'>) of arguments for cupy_gcd":
        "these dtypes are not supported",
    "zero-size array to reduction operation cupy_max which has no identity":
        "an empty array has no max",
    "attempt to get argmax of an empty sequence": "an empty array has no argmax",
    "data type <class 'numpy.int64'> not inexact": "int64 is not a floating-point dtype",
    "The DType <class 'numpy.dtypes.Int16DType'> could not be promoted by <class "
    "'numpy.dtype[bfloat16]'>. This means that no common DType exists for the given inputs.":
        "there is no dtype that all of these promote to",
    "accumulate does not allow multiple axes": "one axis is needed, not several",
    "cannot reshape array of size 6 into shape (4,)":
        "cannot reshape array of size 6 into shape (4,)",
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_library_messages_are_reworded(text):
    assert _plain_text(ValueError(text)) == TEXTS[text]


@pytest.mark.parametrize("name", ["add", "matmul", "sum"])
def test_gpugrad_messages_name_the_op_once(name):
    text = f"{name}: already named"
    for message in (text, "not named yet"):
        with pytest.raises(ShapeError) as caught:
            gg.errors.reraise(ShapeError(message), gg.OPS[name].name, {}, {})
        assert str(caught.value).count(name) == 1


def test_singular_matrix_is_a_linalg_error_of_numpy():
    for call in (gg.linalg.inv, gg.linalg.cholesky):
        with pytest.raises(np.linalg.LinAlgError):
            call(np.zeros((2, 2)))


FLOATING_POINT_ERRORS = {
    "multiply": lambda x: x * x,
    "square": gg.square,  # a word that other errors have when shapes do not fit
    "log": lambda x: gg.log(0 * x),
    "divide": lambda x: x / 0,
    "floor_divide": lambda x: gg.astype(x, "int64") // 0,
    "sum": lambda x: gg.sum(x * 3e8),
    "astype": lambda x: gg.astype(x, "float16"),
    "softmax": lambda x: gg.softmax(x * np.inf),
}


@pytest.mark.parametrize("name", FLOATING_POINT_ERRORS)
def test_errors_that_errstate_asks_for_are_floating_point_errors(name):
    x = C([1e30, 1e30]) if name in ("multiply", "square", "sum", "softmax") else C([7e4, 7e4])
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=r"encount") as caught:
        FLOATING_POINT_ERRORS[name](x)
    assert isinstance(caught.value, gg.errors.NumericsError)
    assert str(caught.value).endswith("np.errstate or np.seterr asks for an error here.")


CALLS_OF_A_FUNCTION = {
    "grad": lambda f, x: gg.grad(f)(x),
    "jacobian": lambda f, x: gg.jacobian(f)(x),
    "hvp": lambda f, x: gg.hvp(f, [x], [x]),
    "vjp": lambda f, x: gg.vjp(f, x),
    "vmap": lambda f, x: gg.vmap(f)(x),
    "vectorized_map": lambda f, x: gg.vectorized_map(f, x),
    "cond": lambda f, x: gg.cond(True, f, f, x),
    "while_loop": lambda f, x: gg.while_loop(f, f, x),
    "scan": lambda f, x: gg.scan(lambda c, x: f(x), 0.0, x),
    "function": lambda f, x: gg.function(f)(x),
    "recompute_grad": lambda f, x: gg.recompute_grad(f)(x),
    "minimize": lambda f, x: gg.optim.SGD().minimize(lambda: f(x)),
    "apply_along_axis": lambda f, x: gg.apply_along_axis(f, 0, x),
}


@pytest.mark.parametrize("name", CALLS_OF_A_FUNCTION)
def test_an_error_of_the_users_function_passes_unchanged(name):
    def wrong(x):
        raise TypeError("'<=' not supported between instances of mine")

    x = gg.constant([1.0, 2.0])
    with pytest.raises(TypeError, match=r"^'<=' not supported between instances of mine$") as own:
        CALLS_OF_A_FUNCTION[name](wrong, x)
    assert own.value.__cause__ is None
    with pytest.raises(gg.errors.ShapeError, match=r"^reshape: "):
        CALLS_OF_A_FUNCTION[name](lambda x: gg.reshape(x, (7,)), x)


def _warnings():
    """(file, line, expression of the category) of each warning of the package."""
    home = Path(gg.__file__).parent
    for path in sorted(home.rglob("*.py")):
        if "warnings.warn(" not in (text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
                named = [k.value for k in node.keywords if k.arg == "category"]
                category = [*node.args[1:2], *named]
                yield path.relative_to(home), node.lineno, " ".join(map(ast.unparse, category))


def test_every_warning_is_of_our_class():
    found = [*_warnings()]
    assert len(found) > 20
    of_others = {"kind", "warning_like(OptimizeWarning)"}
    assert [w for w in found if w[2] not in {"GpugradWarning", *of_others}] == []
    for theirs in (RuntimeWarning, UserWarning, OptimizeWarning, SparseEfficiencyWarning):
        assert {GpugradWarning, theirs} <= {*warning_like(theirs).__mro__}
