"""gg.function's signatures: which calls share a program, static arguments, retracing warnings."""

import dataclasses
import math

import numpy as np
import pytest
from comparing import near
from taping import tape_gradient

import gpugrad as gg
from gpugrad.errors import ArgumentError, DTypeError
from gpugrad.function.signature import Signature

RNG = np.random.default_rng(0)
X = gg.constant(RNG.normal(size=(4, 3)))
Y = gg.constant(RNG.normal(size=(4, 3)))


def test_another_signature_is_traced_again():
    f = gg.function(lambda x, n=1: x * n)
    f(X)
    f(X)
    f(X[:2])
    f(gg.astype(X, "float32"))
    f(X, 2)
    f(X, n=2)
    assert f.cache_info().traces == 5


def test_the_same_tensor_twice_is_another_signature():
    def f(a, b):
        return tape_gradient(lambda a: gg.sum(a * b), a)

    g = gg.function(f)
    for _ in range(2):
        near(g(X, Y), Y)
        near(g(X, X), 2 * X)


def test_an_argument_that_cannot_be_compared_is_refused():
    with pytest.raises(ArgumentError, match="bytearray"):
        gg.function(lambda x, b: x)(X, bytearray(b"a"))


def test_signed_zeros_and_nan_are_different_signatures():
    f = gg.function(lambda x, n: x * 0 + math.copysign(1, n) if n == n else x * 5)
    for _ in range(2):
        assert f(gg.ones(1), 0.0).item() == 1
        assert f(gg.ones(1), -0.0).item() == -1
        assert f(gg.ones(1), float("nan")).item() == 5
    assert f.cache_info().traces == 3


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, gg.bfloat16.type])
def test_signed_zeros_and_nan_of_numpy_are_different_signatures(kind):
    f = gg.function(lambda x, n: x * 0 + math.copysign(1, n) if n == n else x * 5)
    for _ in range(2):
        for n, want in ((0.0, 1), (-0.0, -1), (math.nan, 5)):
            assert f(gg.ones(1), kind(n)).item() == want
    assert f.cache_info().traces == 3


def test_a_cupy_array_may_be_an_argument():
    array = gg.ones(3, device="cuda:0")._data
    f = gg.function(lambda x: x * 2)
    for k in (1, 3):
        assert f(array * k).tolist() == [2 * k] * 3
    assert f.cache_info() == (1, 1, 0)


@pytest.mark.parametrize(
    ("choose", "chosen", "before"),
    [(gg.set_matmul_precision, "high", "highest"), (gg.set_deterministic, True, False)],
)
def test_another_setting_is_another_signature(choose, chosen, before):
    f = gg.function(lambda x: x @ x)  # a graph keeps the settings of its capture
    x = gg.ones((3, 3))
    try:
        for setting in (before, chosen, before):
            choose(setting)
            f(x)
    finally:
        choose(before)
    assert f.cache_info() == (1, 2, 0)


@dataclasses.dataclass
class Batch:
    image: gg.Tensor
    weights: list


CHANGES = {
    "number": (lambda k: ((X, k), {}), r"n: 15, then 16\. Pass it as a Tensor, gg.constant\(n\)"),
    "text": (lambda k: ((X,), {"n": f"a{k}"}), r"n: 'a15', then 'a16'\. Keep to few values"),
    "shape": (lambda k: ((gg.ones(k + 1),), {}), r"x: shape \(16,\), then \(17,\)\. Pad it"),
    "inside": (lambda k: ((Batch(X, [Y, {"a": gg.ones(k + 1)}]),), {}),
               r"x\.weights\[1\]\['a'\]: shape"),
    "Variable": (lambda k: ((X, gg.Variable(1.0)), {}), "n: another Variable"),
    "structure": (lambda k: (([X] * (k + 1),), {}), "the structure of its arguments"),
    "rest": (lambda k: ((X, 1, 2, k), {}), r"argument 3: 15, then 16"),
    "keyword": (lambda k: ((X,), {"other": k}), r"other: 15, then 16"),
    "same": (lambda k: ((X, [X if k >> i & 1 else Y for i in range(5)]), {}),
             r"n\[0\]: whether it is the same Tensor"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_many_traces_warn_and_name_the_argument_that_changes(kind):
    call, message = CHANGES[kind]
    f = gg.function(lambda x, n=1, *rest, **more: gg.ones(2))
    for k in range(16):
        args, keywords = call(k)
        f(*args, **keywords)
    args, keywords = call(16)
    with pytest.warns(UserWarning, match=f"traced for the 17th time.*{message}") as caught:
        f(*args, **keywords)
    assert caught[0].filename == __file__
    f(*call(17)[0], **call(17)[1])  # warns only once


def test_many_traces_under_tapes_warn():
    f = gg.function(lambda x, n: gg.sum(x * n))
    for k in range(16):
        gg.grad(f)(X, k)
    with pytest.warns(UserWarning, match="for the 17th time.*n: 15, then 16") as caught:
        gg.grad(f)(X, 16)
    assert caught[0].filename == __file__
    gg.grad(f)(X, 17)

    f, x = gg.function(lambda x: gg.sum(gg.stack(x))), [gg.constant(float(k)) for k in range(5)]

    def call(k):
        with gg.GradientTape() as tape:
            tape.watch([x[i] for i in range(5) if k >> i & 1])
            f(x)

    for k in range(1, 17):
        call(k)
    with pytest.warns(UserWarning, match="which arguments gradients are taken"):
        call(17)


def test_the_warning_of_several_steps_names_the_line_of_the_call():
    f = gg.function(lambda x: gg.sum(x), steps_per_call=2)
    for k in range(1, 17):
        f(gg.ones((2, k)))
    with pytest.warns(UserWarning, match=r"x: shape \(16,\), then \(17,\)") as caught:
        f(gg.ones((2, 17)))
    assert caught[0].filename == __file__


@dataclasses.dataclass(frozen=True)
class Config:
    scale: float
    table: np.ndarray | None = None


@dataclasses.dataclass(eq=False)
class Layer:
    seen: set


def test_a_static_dataclass_is_compared_by_its_fields():
    f = gg.function(lambda x, c: x * c.scale if c.table is None else x * c.table.sum(), static="c")
    for _ in range(2):
        assert f(gg.ones(3, dtype="int64"), Config(2)).dtype == "int64"
        assert f(gg.ones(3, dtype="int64"), Config(2.0)).dtype == "float64"
        for table in (np.ones(3), np.ones(4), np.arange(3.0), np.array([1, 2.5], object)):
            near(f(X, Config(1.0, table)), X.numpy() * table.sum())
    assert f.cache_info() == (6, 6, 0)
    one, g = Layer({1}), gg.function(lambda x, c: x * len(c.seen), static="c")
    near(g(X, one), X), near(g(X, one), X), near(g(X, Layer({1, 2})), 2 * X)
    assert g.cache_info().traces == 2


STATICS = {
    "number": (lambda k: k, "n, which is static: 15, then 16"),
    "float": (lambda k: k / 2, "n, which is static: 7.5, then 8.0"),
    "array": (lambda k: np.full(2, k), r"static: int64 \[15 15\], then int64 \[16 16\]"),
    "Tensor": (lambda k: gg.constant(float(k)), "float32 15.0, then float32 16.0"),
    "inside": (lambda k: Batch(X, [1, {"a": k}]), r"n\.weights\[1\]\['a'\], which is static: 15, "),
    "keys": (lambda k: [{f"a{k}": 0}], r"n\[0\], which is static: dict of a15, then dict of a16"),
    "another": (lambda k: [0] * k, "n, which is static: list of 0, 1, .* 14, then list of 0"),
}  # fmt: skip


@pytest.mark.parametrize("kind", STATICS)
def test_the_warning_says_where_a_static_argument_changes(kind):
    make, message = STATICS[kind]
    f = gg.function(lambda x, n: x * 2, static="n")
    for k in range(16):
        f(X, make(k))
    with pytest.warns(UserWarning, match=message):
        f(X, make(16))


@pytest.mark.parametrize("static", ["n", 1, ("n",), [1]])
def test_a_static_tensor_is_compared_by_value_and_may_be_read(static):
    f = gg.function(lambda x, n: x * 2 if n.item() > 0 else x, static=static)
    for n in (1, 2, 1, -1):
        want = X.numpy() * (2 if n > 0 else 1)
        near(f(X, gg.constant(n)), want)
        near(f(X, n=gg.constant(n)), want)
    # by position, then by keyword: two signatures for each value
    assert f.cache_info().traces == 6


@pytest.mark.parametrize(
    "value", [[1, [2.0, "a"]], {"a": [1, 2]}, np.arange(3), (1, None), Batch, print]
)
def test_a_static_argument_is_passed_unchanged(value):
    got = []
    f = gg.function(lambda x, *, how: got.append(how) or x + 1, static="how")
    for _ in range(3):
        f(X, how=value)
    assert len(got) == 1
    assert got[0] is value


def test_invalid_static_arguments_are_refused():
    with pytest.raises(ArgumentError, match="bytearray"):
        gg.function(lambda x, n: x, static="n")(X, bytearray(b"a"))
    with pytest.raises(ArgumentError, match="static argument n is a Variable"):
        gg.function(lambda x, n: x, static="n")(X, gg.Variable(1.0))
    for wrong in ("m", 2, -1):
        with pytest.raises(
            ArgumentError, match=r"is not an argument\. The arguments are x, n, how"
        ):
            gg.function(lambda x, n, *, how=0: x, static=wrong)
    gg.function(lambda x, **more: x, static="m")
    gg.function(lambda x, *more: x, static=5)


def test_a_static_tensor_under_a_tape_has_no_gradient():
    f = gg.function(lambda x, n: gg.sum(x**2) * n.item(), static="n")
    n = gg.constant(3.0)
    for _ in range(2):
        near(gg.grad(lambda x: f(x, n))(X), 6 * X.numpy(), 1e-6)
    with pytest.raises(DTypeError, match="static argument"):
        gg.grad(lambda n: f(X, n))(n)


def test_views_and_shared_tensors_have_the_signature_of_other_tensors():
    f = gg.function(lambda x: x * 2)
    x = gg.ones((64, 8))
    for argument in (x[3:11], gg.ones((8, 8)), gg.asarray(np.ones((8, 8), np.float32), copy=False)):
        assert f(argument).tolist() == np.full((8, 8), 2).tolist()
    assert f.cache_info().traces == 1


def test_the_compiled_test_accepts_calls_with_the_same_key_and_no_others():
    signature = Signature(lambda x, y: x)
    x, y = gg.ones((3, 2)), gg.ones(2, dtype="float32")
    fits, (key, _) = signature.test((x, y), {}), signature.key((x, y), {})
    calls = {
        "same": (gg.zeros((3, 2)), gg.zeros(2, dtype="float32")), "one more": (x, y, y),
        "one less": (x,), "another shape": (x.T, y),
        "another dtype": (x, gg.ones(2, dtype="float64")), "an array": (x, np.ones(2, np.float32)),
        "a Variable": (x, gg.Variable(y)), "a view": (x[:], y), "a number": (x, 1.0),
    }  # fmt: skip
    for what, args in calls.items():
        arrays, same = fits(args), signature.key(args, {})[0] == key
        assert (arrays is not None) <= same, what
        assert (arrays is not None) == (what == "same"), what
        if arrays is not None:
            assert all(a is x._data for a, x in zip(arrays, args, strict=True))
    with gg.mixed_precision("float16"):
        assert fits((x, y)) is None
    assert fits((x, y)) is not None
    twice = signature.test((x, gg.ones((3, 2))), {})
    assert twice((x, gg.ones((3, 2)))) is not None
    assert twice((x, x)) is None


@pytest.mark.parametrize(
    "args", [(1.0,), (), ([gg.ones(2)],), (gg.Variable(1.0),)], ids=["number", "none", "list", "v"]
)
def test_calls_of_other_arguments_have_no_compiled_test(args):
    test = Signature(lambda *args: args).test(args, {})
    assert test(args) is None


def test_a_function_called_in_turns_with_two_shapes_replays_the_right_program():
    function = gg.function(lambda x: gg.sum(x) * 2)
    for n in (3, 4, 3, 3, 4, 4, 3, 5):
        assert function(gg.ones(n)).item() == 2 * n
    assert function.cache_info() == (5, 3, 0)
    function.clear()
    assert function(gg.ones(3)).item() == 6
