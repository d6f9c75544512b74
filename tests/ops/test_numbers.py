"""Python numbers beside arrays: they take the arrays' dtype, and lose no digits."""

import numpy as np
import pytest
from taping import taped

import gpugrad as gg

JOINS = {
    "stack": lambda t: gg.stack([t, 1.3]),
    "concat": lambda t: gg.concat([gg.reshape(t, (1,)), [1.3]]),
    "concat of three": lambda t: gg.concat([[1.3], gg.reshape(t, (1,)), [1.3]])[1:],
    "hstack": lambda t: gg.hstack([t, 1.3]),
    "vstack": lambda t: gg.vstack([t, 1.3])[:, 0],
    "column_stack": lambda t: gg.column_stack([gg.reshape(t, (1,)), [1.3]])[0],
    "asarray": lambda t: gg.asarray([t, 1.3]),
}


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_number_joined_with_an_array_has_every_digit_of_its_dtype(join, dtype):
    t = gg.astype(gg.constant(1.0), dtype)
    joined = join(t)
    assert joined.dtype == t.dtype
    assert joined[1].item() == gg.astype(gg.constant(np.float64(1.3)), dtype).item()


BESIDE = {
    "add": lambda t: gg.add(t, [1.3, 1.3]), "radd": lambda t: gg.add((1.3, 1.3), t),
    "iadd": lambda t: written(t, lambda x: x.__iadd__([1.3, 1.3])),
    "where": lambda t: gg.where([True, False], [1.3, 0.0], t),
    "dot": lambda t: gg.dot(t, [1.3, 1.3]), "matmul": lambda t: gg.matmul([[1.3, 1.3]], t),
    "kron": lambda t: gg.kron(t, [1.3]), "polyval": lambda t: gg.polyval([1.3, 2.0], t),
    "solve": lambda t: gg.linalg.solve(gg.diag(t), [1.3, 1.3]),
    "lstsq": lambda t: gg.linalg.lstsq(gg.diag(t), [1.3, 1.3])[0],
    "logsumexp": lambda t: gg.special.logsumexp(t, b=[1.3, 0.7]),
    "sph_harm_y_all": lambda t: gg.real(gg.special.sph_harm_y_all(2, 1, t, 1.3)),
    "outer": lambda t: np.add.outer(t, [1.3, 0.7]),
    "interp": lambda t: gg.interp(t, [0.0, 1.3], [1.3, 2]),
    "average": lambda t: gg.average(t, weights=[1.3, 1.0]),
    "averaged": lambda t: gg.average([1.3, 1.0], weights=t), "block": lambda t: gg.block([t, 1.3]),
    "histogram": lambda t: gg.histogram(t, bins=[0, 1.3, 2])[1],
    "complex": lambda t: gg.abs(t * [1.3j, 1.3]),
    "copyto": lambda t: written(t, lambda x: gg.copyto(x, 1.3)),
    "copyto list": lambda t: written(t, lambda x: gg.copyto(x, [1.3, 1.3], where=[True, False])),
    "put": lambda t: written(t, lambda x: gg.put(x, [0], 1.3)),
    "place": lambda t: written(t, lambda x: gg.place(x, x > 1, [1.3])),
    "putmask": lambda t: written(t, lambda x: gg.putmask(x, x > 1, [1.3])),
    "put_along_axis": lambda t: written(t, lambda x: gg.put_along_axis(x, [0], [1.3], 0)),
    "fill_diagonal": lambda t: written(gg.diag(t), lambda x: gg.fill_diagonal(x, [1.3, 0.1])),
    "setitem": lambda t: written(t, lambda x: x.__setitem__(slice(None), [1.3, 0.1])),
}  # fmt: skip


def written(x, write):
    x = x.copy()
    write(x)
    return x


def test_arrays_equal_lists_of_the_same_numbers():
    t, numbers = gg.constant(np.array([0.7, 1.9])), [0.7, 1.9]
    for same in (gg.array_equal, gg.array_equiv, np.array_equal):
        assert same(t, numbers)
        assert same(numbers, t)


@pytest.mark.parametrize("call", BESIDE.values(), ids=BESIDE)
def test_lists_of_numbers_beside_float64_keep_all_digits(call, monkeypatch):
    t = gg.constant(np.array([0.7, 1.9]))
    expected = call(t)
    tape, recorded = taped(call, t)
    gradient = tape.gradient(recorded, t)
    assert (expected.dtype, recorded.dtype) == (gg.float64, gg.float64)
    assert call(gg.astype(t, "float32")).dtype == "float32"
    with monkeypatch.context() as patch:  # as if Python floats became float64 anywhere
        exact = lambda x, dtype=None: np.asarray(x)  # noqa: E731
        for module in ("gpugrad.core.tensor", "gpugrad.core.convert"):
            patch.setattr(f"{module}.to_numpy", exact)
        np.testing.assert_allclose(expected, call(t), rtol=1e-15)
        tape, y = taped(call, t)
        np.testing.assert_allclose(recorded, y, rtol=1e-15)
        if gradient is not None:
            np.testing.assert_allclose(gradient, tape.gradient(y, t), rtol=1e-15)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "int16", "bool"])
def test_lists_of_numbers_beside_integers_keep_all_digits_of_the_result(dtype):
    x = gg.constant([1, 1], dtype=dtype)
    for y in (x * [1.3, 1.3], gg.maximum([1.3, 1.3], x), x * [1.3 + 0j, 1.3]):
        assert y[0].item() == y.dtype.type(1.3)
        assert y.dtype.char in ("dD" if x.dtype.itemsize > 2 else "fF")
    if dtype not in ("bool", "uint64"):  # no indices; no exponents
        assert gg.take([1.3, 1.4], x).dtype == gg.ldexp([1.3, 1.4], x).dtype == "float32"


def test_number_joined_with_integers_has_every_digit():
    assert gg.stack([gg.constant(1), 1.3])[1].item() == 1.3
    assert gg.stack([gg.constant(1.0), 2]).dtype == "float32"
    assert gg.stack([gg.constant(1.0), 2j]).dtype == "complex64"


SEVERAL = [
    n for n, op in gg.OPS.items()
    if n != "setitem"  # which has the dtype of what it writes to
    and len(op.arrays) > 1 and "f" in op.kinds and op.kind != "primitive" and not op.variadic
]  # fmt: skip


@pytest.mark.parametrize("watch", [False, True], ids=["", "watched"])
@pytest.mark.parametrize("name", SEVERAL)
def test_numbers_beside_an_array_are_as_exact_as_arrays(name, watch):
    op = gg.OPS[name]
    for args, keywords in op.samples(np.random.default_rng(0)):
        others = [v for v in keywords.values() if isinstance(v, np.ndarray)]
        if others or any(
            not isinstance(a, np.ndarray) or a.shape or a.dtype.kind != "f" for a in args
        ):
            continue
        expected = op.eager(*map(gg.constant, args), **keywords)
        for k in range(len(args)):
            for dtype in (np.float64, np.float32):
                x = gg.constant(args[k].astype(dtype))
                mixed = [x if i == k else a.item() for i, a in enumerate(args)]
                with gg.GradientTape() as tape:
                    if watch:
                        tape.watch(x)
                    out = op.eager(*mixed, **keywords)
                one = out[0] if isinstance(out, tuple) else out
                every = expected[0] if isinstance(expected, tuple) else expected
                if every.dtype == np.float64:
                    assert one.dtype == dtype, f"{name}: {mixed} gives {one.dtype}"
                    if dtype is np.float64:
                        np.testing.assert_allclose(one.numpy(), every.numpy(), rtol=1e-13)


def test_number_in_the_formula_of_a_users_kernel_keeps_the_dtype_of_the_array():
    scaled = gg.elementwise_kernel(
        "scaled_by_exp(x, beta)", "exp(beta) * x", formula=lambda xp, x, beta: xp.exp(beta) * x,
        d=[lambda xp, beta: xp.exp(beta), lambda xp, out: out],
    )  # fmt: skip
    try:
        for dtype in (np.float32, np.float64):
            x = gg.constant(np.ones(1, dtype))
            calls = [scaled, gg.function(scaled), gg.grad(lambda x, b: gg.sum(scaled(x, b)))]
            for call in [*calls, gg.vmap(lambda x, b=0.5: scaled(x, b))]:
                y = call(x, 0.5) if call in calls else call(x)
                assert y.dtype == dtype
                np.testing.assert_allclose(y.numpy(), np.exp(0.5), rtol=np.finfo(dtype).eps)
    finally:
        gg.OPS.pop("scaled_by_exp")
