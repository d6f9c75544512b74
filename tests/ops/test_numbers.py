"""Python numbers beside arrays: they take the arrays' dtype, and lose no digits."""

import numpy as np
import pytest

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
