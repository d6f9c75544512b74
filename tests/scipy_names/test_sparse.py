"""gg.scipy.sparse: SciPy's values in all formats, gradients on the pattern, and bad input."""

import gc
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

import gpugrad as gg
from gpugrad.errors import ShapeError, SingularMatrixError
from gpugrad.ops.scipy.sparse import solutions
from gpugrad.testing import check_grads

s, L = gg.scipy.sparse, gg.scipy.sparse.linalg
RNG = np.random.default_rng(0)
WIDE = sp.random_array((5, 4), density=0.5, rng=RNG, format="csr")
SQUARE = (sp.random_array((5, 5), density=0.4, rng=RNG) + 4 * sp.eye_array(5)).tocsr()
DATA, B = gg.asarray(SQUARE.data), gg.asarray(RNG.normal(size=5))
V, C = RNG.normal(size=4), RNG.normal(size=(4, 3))
FORMATS = ("csr", "csc", "coo", "dia")


def full(x):
    return np.asarray(x.toarray() if s.issparse(x) else x)


def square(data, format="csr"):
    return s.csr_array((data, SQUARE.indices, SQUARE.indptr), shape=(5, 5)).asformat(format)


LIKE_SCIPY = [
    lambda m, a: a, lambda m, a: a @ V, lambda m, a: a @ C, lambda m, a: C.T @ a.T,
    lambda m, a: V @ a.T, lambda m, a: a @ a.T, lambda m, a: a.T @ sp.csr_array(WIDE),
    lambda m, a: a + a, lambda m, a: a - a.tocsc() * 3, lambda m, a: a + WIDE.toarray(),
    lambda m, a: 2 * a, lambda m, a: a / 2, lambda m, a: -a, lambda m, a: abs(-a),
    lambda m, a: a * a, lambda m, a: a.multiply(V), lambda m, a: a * WIDE.toarray(),
    lambda m, a: a.multiply(np.ones((5, 1))), lambda m, a: a.power(2), lambda m, a: a.sqrt(),
    lambda m, a: a.sum(), lambda m, a: a.sum(0), lambda m, a: a.sum(-1), lambda m, a: a.mean(1),
    lambda m, a: a.diagonal(1), lambda m, a: a.trace(), lambda m, a: a.astype("float32"),
    lambda m, a: a.tocsc().tocoo().tocsr(), lambda m, a: a.todia(), lambda m, a: a.reshape(4, 5),
    lambda m, a: a.tocsr()[1:3], lambda m, a: a.tocsc()[:, 1], lambda m, a: a.tocsr()[2, 1],
    lambda m, a: a.tocsr()[[0, 1], [1, 2]], lambda m, a: a.tocsr()[[3, 0]][:, ::-1],
    lambda m, a: m.kron(a, a), lambda m, a: m.hstack([a, a]), lambda m, a: m.vstack([a, a]),
    lambda m, a: m.block_array([[a, None], [None, a]]), lambda m, a: m.block_diag([a, a]),
    lambda m, a: m.tril(a), lambda m, a: m.triu(a, 1), lambda m, a: m.find(a)[2],
    lambda m, a: m.kronsum(a[:4] if a.format == "csr" else a.tocsr()[:4], m.eye_array(2)),
    lambda m, a: m.linalg.norm(a), lambda m, a: m.linalg.norm(a, 1),
    lambda m, a: m.linalg.norm(a, np.inf), lambda m, a: m.linalg.norm(a, axis=1),
    lambda m, a: m.diags_array([V, V[1:]], offsets=[0, 1]), lambda m, a: m.eye_array(3, 4, k=1),
    lambda m, a: m.diags([1.0, -2.0], [0, 1], shape=(3, 3)), lambda m, a: m.identity(3),
    lambda m, a: m.spdiags(C.T, [0, 1, -1], 4, 4), lambda m, a: m.csr_array((3, 2)) @ V[:2],
    lambda m, a: m.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0]))).tocsr(),
    lambda m, a: m.csr_array(([1.0, 2.0], [1, 1], [0, 2, 2]), shape=(2, 2)) @ V[:2],
    lambda m, a: a.tocsr() > 0.5, lambda m, a: a.tocsr() != a.tocsr() * 2,
    lambda m, a: m.csr_matrix(WIDE) * V, lambda m, a: m.csc_matrix(WIDE).sum(0),
    lambda m, a: m.csr_matrix(SQUARE) ** 2, lambda m, a: m.dia_matrix(SQUARE) * B.numpy(),
    lambda m, a: m.csr_array(WIDE.toarray()), lambda m, a: (a * 1j).conj().T @ np.ones(5),
    lambda m, a: (a * 1j).tocsc() @ (V * 1j),
    lambda m, a: m.csr_array((WIDE > 0.5) * 3) @ [1, 2, 3, 4],
]  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
def test_values_dtypes_and_shapes_are_those_of_scipy(format):
    theirs = WIDE.asformat(format)
    ours = getattr(s, f"{format}_array")(theirs)
    assert ours.nnz == theirs.nnz
    for i, of in enumerate(LIKE_SCIPY):
        want, got = full(of(sp, theirs)), full(of(s, ours))
        assert (got.shape, got.dtype) == (want.shape, want.dtype), (i, got.dtype, want.dtype)
        np.testing.assert_allclose(got, want, atol=1e-12, err_msg=f"case {i}")


def mixed(data, b, format):
    a = square(data, format)
    wide = s.hstack([a @ a.T, s.kron(a, a).tocsr()[:5, :3]]) + s.tril(
        s.hstack([a, a.tocsr()[:, :3]])
    )
    twice = s.coo_array((gg.concat([data, data]), [np.tile(x, 2) for x in SQUARE.nonzero()]))
    return (
        gg.sum(gg.sin(wide @ wide.T @ b / 100))
        + L.norm(twice.multiply(b))
        + gg.sum(b @ a)
        + (b[0] * a).sum(0)[1]
    )


def solved(data, b, format):
    a = square(data, format)
    one = L.spsolve(a, b) + L.splu(a).solve(b, "T")
    low = L.spsolve_triangular(a, gg.stack([b, one], axis=1))
    up = L.spsolve_triangular(a, b, lower=False, unit_diagonal=True)
    return gg.sum(gg.sin(one + up)) + gg.sum(low)


def iterated(data, b, format):
    a, m = square(data, format), sp.diags_array(1 / SQUARE.diagonal())
    h, exact = a @ a.T, {"rtol": 1e-13, "x0": b}
    xs = [f(h, b, **exact)[0] for f in (L.cg, L.minres)]
    xs += [f(a, b, M=m, **exact)[0] for f in (L.gmres, L.bicgstab)]
    exact = {"atol": 1e-13, "btol": 1e-13}
    xs += [L.lsqr(a[:, :3], b, damp=0.3, **exact)[0], L.lsmr(a[:3], b[:3], **exact)[0]]
    return sum(gg.sum(gg.sin(x)) for x in xs)


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("f", [mixed, solved, iterated])
def test_gradients_of_all_orders_eager_traced_and_batched(f, format):
    loss = lambda data, b: f(data, b, format)  # noqa: E731
    check_grads(loss, [DATA, B])
    g = gg.grad(loss)
    np.testing.assert_allclose(gg.function(g)(DATA, B), g(DATA, B), rtol=1e-6)
    both = gg.vmap(g, in_axes=(0, None))(gg.stack([DATA, DATA * 1.5]), B)
    np.testing.assert_allclose(both[1], g(DATA * 1.5, B), rtol=1e-5)


def test_iterative_solvers_equal_scipys():
    a, b = SQUARE @ SQUARE.T, B.numpy()
    for name in ("cg", "minres", "gmres", "bicgstab"):
        x, info = getattr(L, name)(s.csr_array(a), B, rtol=1e-12)
        np.testing.assert_allclose(x, getattr(sp.linalg, name)(a, b, rtol=1e-12)[0])
        assert info == 0
    np.testing.assert_allclose(
        L.lsqr(s.csr_array(WIDE), B, damp=0.5, atol=1e-12, btol=1e-12)[0],
        sp.linalg.lsqr(WIDE, b, damp=0.5, atol=1e-12, btol=1e-12)[0],
        rtol=1e-9,
    )


def test_expm_multiply_equals_scipys_and_has_gradients():
    want = sp.linalg.expm_multiply(SQUARE, B.numpy())
    np.testing.assert_allclose(L.expm_multiply(square(DATA), B), want, rtol=1e-9)
    check_grads(lambda data, b: gg.sum(L.expm_multiply(square(data / 4), b)), [DATA, B])


def test_eigenvalues_and_singular_values_equal_scipys_and_have_gradients():
    v0, a = np.ones(5), SQUARE + SQUARE.T
    np.testing.assert_allclose(
        L.eigsh(s.csr_array(a), 2, sigma=0.0)[0], sp.linalg.eigsh(a, 2, sigma=0.0)[0]
    )
    u, w, vt = L.svds(s.csr_array(SQUARE), 2, v0=v0)
    np.testing.assert_allclose(w, sp.linalg.svds(SQUARE, 2)[1])
    np.testing.assert_allclose((u * w) @ vt @ vt.T, SQUARE @ vt.T.numpy())

    def loss(data):
        values, vectors = L.eigsh(square(data) + square(data).T, 2, v0=v0)
        weights = np.arange(5)[:, None]
        return (
            gg.sum(gg.sin(values))
            + gg.sum(weights * vectors**2)
            + L.svds(square(data), 1, v0=v0)[1][0]
        )

    check_grads(loss, [DATA])


def test_a_variable_is_read_at_each_product():
    v = gg.Variable(SQUARE.data)
    a = square(v)
    v.assign(2 * v)
    with gg.GradientTape() as tape:
        y = gg.sum(a @ B)
    np.testing.assert_allclose(a @ B, 2 * SQUARE @ B.numpy())
    np.testing.assert_allclose(tape.gradient(y, v), B.numpy()[SQUARE.indices])


def test_factors_are_kept_for_the_backward_pass(monkeypatch):
    calls, splu, before = [], scipy.sparse.linalg.splu, set(solutions._kept)
    monkeypatch.setattr(scipy.sparse.linalg, "splu", lambda a: calls.append(1) or splu(a))
    data = gg.asarray(SQUARE.data * 1.25)
    g = gg.grad(lambda d: gg.sum(L.spsolve(square(d), B) ** 2))
    g(data)
    assert len(calls) == 1
    data[0] = 9.0  # in place or not, the factors are not those of the old values
    np.testing.assert_allclose(g(data), g(gg.asarray(data.numpy())))
    assert len(calls) == 3
    del data
    gc.collect()
    assert set(solutions._kept) <= before


def test_memory_is_linear_in_the_entries():
    n = 100_000
    ones = gg.ones(n, dtype="float64")

    def loss(d):
        a = s.diags_array([d[1:], 2 + d * d, d[:-1]], offsets=[-1, 0, 1])
        x = L.spsolve((a.T @ a + s.eye_array(n)).tocsc(), ones)
        return gg.sum(x**2) + gg.sum(a.tocsr()[10:] @ x) + s.kron(a, [[1.0, 2.0]]).sum()

    tracemalloc.start()
    try:
        assert gg.grad(loss)(ones).shape == (n,)
        assert tracemalloc.get_traced_memory()[1] < 4e8  # n * n would be 8e10
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: s.csr_array(([1.0], [0], [0, 1]), shape=(3, 3)), ValueError),
        (lambda: s.coo_array(([1.0, 2.0], ([0], [1]))), ValueError),
        (lambda: s.csr_array(([1.0], ([5], [0])), shape=(3, 3)), ValueError),
        (lambda: s.csr_array(SQUARE) @ np.ones(4), ValueError),
        (lambda: s.csr_array(SQUARE) @ 2.0, ValueError),
        (lambda: s.csr_array(SQUARE) + s.csr_array(WIDE), ValueError),
        (lambda: s.csr_array(SQUARE) + 1, NotImplementedError),
        (lambda: s.csr_array(SQUARE).asformat("xyz"), ValueError),
        (lambda: s.csr_array(SQUARE)[9, 9], IndexError),
        (lambda: len(s.csr_array(SQUARE)), TypeError),
        (lambda: bool(s.csr_array(SQUARE)), ValueError),
        (lambda: s.csr_array(SQUARE).power(0), ValueError),
        (lambda: L.spsolve(s.csr_array(WIDE), B), ShapeError),
        (lambda: L.cg(s.csr_array(SQUARE), B[:4]), ShapeError),
        (lambda: L.spsolve(s.csr_array((5, 5)), B), SingularMatrixError),
        (lambda: L.splu(s.csc_array(np.ones((2, 2)))), RuntimeError),
        (lambda: L.spsolve_triangular(s.csr_array((5, 5)), B), np.linalg.LinAlgError),
        (lambda: gg.grad(lambda d: L.eigsh(square(d * 1j), 2)[0][0])(DATA), TypeError),
        (lambda: L.norm(s.csr_array(SQUARE), -2), NotImplementedError),
    ],
)
def test_bad_input_raises_scipys_class_of_error(call, error):
    with pytest.raises(error):
        call()


def test_no_convergence_warns_with_the_residual():
    a = s.diags_array([np.arange(1.0, 50)], offsets=[0]).tocsr()
    with pytest.warns(RuntimeWarning, match=r"cg: no convergence after 2 iterations.*residual"):
        _, info = L.cg(a, np.ones(49), maxiter=2)
    assert info == 2


def test_patterns_of_int64_duplicates_and_no_entries():
    big = (SQUARE.indices.astype(np.int64), SQUARE.indptr.astype(np.int64))
    np.testing.assert_allclose(s.csr_array((DATA, *big)) @ B, SQUARE @ B.numpy())
    twice = s.csr_array(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 1))
    assert twice.nnz == 2
    assert twice.toarray().item() == twice.tocsc().data.item() == 3
    empty = s.csc_array((2, 0))
    assert (empty.T @ gg.ones(2)).shape == (0,)
    assert (empty @ gg.ones((0, 3))).shape == (2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert L.spsolve(s.csr_array((0, 0)), np.ones(0)).shape == (0,)
