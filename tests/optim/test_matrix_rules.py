"""Adafactor and Muon, which step whole matrices."""

import numpy as np
import pytest
from update_rules import MATRICES, Written, make

import gpugrad as gg
from gpugrad import optim
from gpugrad.errors import ArgumentError, DTypeError
from gpugrad.optim.muon import orthogonal


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
@pytest.mark.parametrize("name", MATRICES)
def test_matrices_follow_the_formula(name, wrapped, device, rng):
    shapes = [(3, 4), (6, 2)]
    expected = [Written(name, rng.normal(size=s)) for s in shapes]
    with gg.device(device):
        variables, optimizer = [gg.Variable(w.p) for w in expected], make(name)

        @wrapped
        def step(*gradients):
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        for _ in range(6):
            gradients = [rng.normal(size=s) for s in shapes]
            step(*map(gg.constant, gradients))
            for w, g in zip(expected, gradients, strict=True):
                w.step(g)
    for v, w in zip(variables, expected, strict=True):
        np.testing.assert_allclose(v.numpy(), w.p, 1e-9, 1e-9)


@pytest.mark.parametrize("name", MATRICES)
def test_state_of_matrices_continues_bit_for_bit(name, rng):
    gradients = rng.normal(size=(20, 4, 3)).astype(np.float32)
    whole, half = (gg.Variable(np.ones((4, 3), np.float32)) for _ in range(2))
    one, first, second = make(name), make(name), make(name)
    for g in gradients:
        one.apply_gradients([(gg.constant(g), whole)])
    for g in gradients[:9]:
        first.apply_gradients([(gg.constant(g), half)])
    again = gg.Variable(half.numpy())
    second.load_state_dict(first.state_dict({"w": half}), {"w": again})
    for g in gradients[9:]:
        second.apply_gradients([(gg.constant(g), again)])
    np.testing.assert_array_equal(again.numpy(), whole.numpy())


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_matrices_keep_their_dtype(name, dtype, rng):
    start, g = rng.normal(size=(2, 3, 4))
    v, expected = gg.Variable(gg.constant(start, dtype)), Written(name, start)
    make(name).apply_gradients([(gg.constant(g, dtype), v)])
    expected.step(g)
    assert v.dtype == gg.constant(0, dtype).dtype
    tolerance = {"float16": 5e-3, "bfloat16": 5e-2}.get(dtype, 1e-5)
    np.testing.assert_allclose(v.numpy().astype(float), expected.p, tolerance, tolerance)


def test_adafactor_keeps_a_row_and_a_column(rng):
    matrix, stack, vector = (gg.Variable(rng.normal(size=s)) for s in ((5, 7), (2, 3, 4), (6,)))
    optimizer = optim.Adafactor()
    optimizer.apply_gradients([(gg.ones_like(v), v) for v in (matrix, stack, vector)])
    state = optimizer.state_dict({"matrix": matrix, "stack": stack, "vector": vector})
    shapes = {k: t.shape for k, t in state.items() if t.shape and k != "rule"}
    assert shapes == {
        "matrix.row": (5,), "matrix.column": (7,), "stack.row": (6,), "stack.column": (8,),
        "vector.v": (6,),
    }  # fmt: skip


def test_adafactor_of_complex_variables_is_an_error():
    v = gg.Variable(np.ones(2, complex), name="phase")
    with pytest.raises(DTypeError, match="Adafactor: the Variable 'phase' is complex"):
        optim.Adafactor().apply_gradients([(gg.ones_like(v), v)])


def test_muon_leaves_other_variables_to_adamw(rng):
    kernel, bias, table = (
        gg.Variable(rng.normal(size=s), name=n)
        for s, n in (((3, 3), "kernel"), ((3,), "bias"), ((4, 3), "table"))
    )
    muon = optim.Muon(0.02, adam_learning_rate_ratio=0.5, matrices=lambda name, v: name != "table")
    matrix = Written("muon", kernel.numpy())
    others = [Written("adamw", v.numpy(), beta_2=0.95) for v in (bias, table)]
    for _ in range(4):
        g = [rng.normal(size=v.shape) for v in (kernel, bias, table)]
        muon.apply_gradients(zip(map(gg.constant, g), (kernel, bias, table), strict=True))
        for w, a, rate in zip((matrix, *others), g, (0.02, 0.01, 0.01), strict=True):
            w.step(a, rate)
    for v, w in zip((kernel, bias, table), (matrix, *others), strict=True):
        np.testing.assert_allclose(v.numpy(), w.p, 1e-10)


@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3), (0, 3), (1, 1)])
def test_orthogonal_brings_singular_values_near_1(shape, rng):
    x = orthogonal(np, rng.normal(size=shape), iterations=10)
    assert x.shape == shape
    values = np.linalg.svd(x, compute_uv=False)
    assert (values > 0.65).all()
    assert (values < 1.25).all()


def test_build_that_comes_too_late_for_muon_is_an_error():
    v = gg.Variable(np.ones((2, 2)), name="v")
    muon = optim.Muon(matrices=lambda name, variable: name != "embedding")
    muon.apply_gradients([(gg.ones_like(v), v)])
    with pytest.raises(ArgumentError, match=r"by its path 'embedding' .* before the first step"):
        muon.build({"embedding": v})


def test_unknown_adjustment_is_refused():
    with pytest.raises(ArgumentError, match='adjust must be "original" or "match_rms_adamw"'):
        optim.Muon(adjust="none")
