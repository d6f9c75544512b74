"""gg.scipy.sparse: SciPy's values in all formats, gradients on the pattern, and bad input."""

import gc
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg
from needs import needs_compiler

import gpugrad as gg
from gpugrad.errors import ShapeError, SingularMatrixError
from gpugrad.kernels.cpu.large import kernels
from gpugrad.ops.scipy.sparse import solutions
from gpugrad.testing import check_grads

s, L = gg.scipy.sparse, gg.scipy.sparse.linalg
RNG = np.random.default_rng(0)
WIDE = sp.random_array((5, 4), density=0.5, rng=RNG, format="csr")
SQUARE = (sp.random_array((5, 5), density=0.4, rng=RNG) + 4 * sp.eye_array(5)).tocsr()
DATA, B = gg.asarray(SQUARE.data), gg.asarray(RNG.normal(size=5))
V, C = RNG.normal(size=4), RNG.normal(size=(4, 3))
FORMATS = ("csr", "csc", "coo", "dia", "bsr", "lil", "dok")


def full(x):
    return np.asarray(x.toarray() if s.issparse(x) else x)


def square(data, format="csr"):
    return s.csr_array((data, SQUARE.indices, SQUARE.indptr), shape=(5, 5)).asformat(format)


def written(a):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
        a[1:3, 2] = 7.0
        a[[0, 4], [3, 3]] = np.array([8.0, 9.0])
        a.setdiag(V[:2], 1)
    return a


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
    lambda m, a: a.maximum(a.tocsr() * -2), lambda m, a: a.minimum(WIDE.toarray()[:1]),
    lambda m, a: a.tocsr().max(), lambda m, a: a.tocsr().min(),
    lambda m, a: (a.tocsr() - 1 * a.tocsr()).tocsr().max(1), lambda m, a: a.tocsr().max(0),
    lambda m, a: m.csr_array(WIDE).min(1, explicit=True), lambda m, a: a.tocsr().argmax(1),
    lambda m, a: a.tocsr() < WIDE.toarray(), lambda m, a: a.tocsr().nonzero()[1],
    lambda m, a: m.kron(a, m.csr_array((2, 2))),
    lambda m, a: m.permute_dims(a.tocoo().copy(), (1, 0)),
    lambda m, a: written(a.tocsr().copy()), lambda m, a: m.linalg.norm(a, 2),
    lambda m, a: 1.0 * m.linalg.norm(a, 0, axis=0), lambda m, a: m.linalg.norm(a, -np.inf, axis=1),
    lambda m, a: m.linalg.norm(a, 3, axis=(0,)), lambda m, a: m.linalg.norm(a, -1),
    lambda m, a: m.linalg.expm((a @ a.T).tocsc() / 9),
    lambda m, a: m.linalg.inv(m.csc_array(SQUARE)),
    lambda m, a: m.linalg.matrix_power(m.csr_array(SQUARE), 5),
    lambda m, a: m.linalg.spbandwidth(m.csr_array(SQUARE)),
    lambda m, a: m.linalg.is_sptriangular(m.tril(m.csr_array(SQUARE))),
    lambda m, a: m.linalg.spilu(m.csc_array(SQUARE)).solve(B.numpy(), "T"),
    lambda m, a: (2 * m.linalg.aslinearoperator(a).T @ m.linalg.aslinearoperator(a)).matvec(V),
    lambda m, a: m.csgraph.shortest_path(m.csr_array(SQUARE)),
    lambda m, a: a.tobsr((5, 2)).data, lambda m, a: m.bsr_matrix(SQUARE) ** 2,
    lambda m, a: m.expand_dims(m.coo_array(V)), lambda m, a: m.linalg.onenormest(a @ a.T),
    lambda m, a: m.linalg.spsolve(m.csc_array(SQUARE), m.csc_array(WIDE)),
    lambda m, a: m.linalg.expm_multiply(m.csr_array(SQUARE / 9), B.numpy(), 0.1, 1, 3, True),
    lambda m, a: m.linalg.funm_multiply_krylov(scipy.linalg.expm, SQUARE, B.numpy(), t=0.1),
    lambda m, a: m.linalg.LaplacianNd((2, 2), boundary_conditions="periodic").matmat(np.eye(4)),
    lambda m, a: m.bsr_array((np.ones((2, 2, 2)), [0, 1], [0, 1, 2])),
]  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
def test_values_dtypes_and_shapes_are_those_of_scipy(format):
    theirs, tried = WIDE.asformat(format), 0
    ours = getattr(s, f"{format}_array")(theirs)
    host = ours.on_host().asformat(format)
    assert (ours.nnz, ours.format, type(host)) == (theirs.nnz, format, type(theirs))
    for i, of in enumerate(LIKE_SCIPY):
        try:
            want = full(of(sp, theirs))
        except (AttributeError, TypeError):  # of SciPy's formats for construction
            continue
        got, tried = full(of(s, ours)), tried + 1
        assert (got.shape, got.dtype) == (want.shape, want.dtype), (i, got.dtype, want.dtype)
        np.testing.assert_allclose(got, want, atol=1e-12, err_msg=f"case {i}")
    assert tried > len(LIKE_SCIPY) - (20 if format in ("bsr", "lil", "dok") else 1)


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


ITERATIVE = [
    "bicg",
    "bicgstab",
    "cg",
    "cgs",
    "gcrotmk",
    "gmres",
    "lgmres",
    "minres",
    "qmr",
    "tfqmr",
]


@pytest.mark.parametrize("name", ITERATIVE)
def test_iterative_solvers_equal_scipys_and_differentiate_through_operators(name):
    a, b = SQUARE @ SQUARE.T, B.numpy()
    start = {"x0": np.ones(5), "rtol": 1e-13}
    x, info = getattr(L, name)(s.csr_array(a), B, **start)
    np.testing.assert_allclose(x, getattr(sp.linalg, name)(a, b, **start)[0], rtol=1e-8)
    assert info == 0

    def of(wrapped):
        solve = getattr(L, name)
        return lambda d, b: gg.sum(solve(wrapped(square(d) @ square(d).T), b, rtol=1e-13)[0] ** 2)

    slopes = [gg.grad(of(w), argnums=(0, 1))(DATA, B) for w in (lambda a: a, L.aslinearoperator)]
    for one, other in zip(*slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7)


def test_operators_of_tensors_differentiate_twice_and_may_be_scipys():
    def loss(data, b):
        a = L.aslinearoperator(square(data)) + L.LinearOperator(
            (5, 5), lambda v: v * b, lambda v: v * b
        )
        return gg.sum(L.gmres(a, b, rtol=1e-13)[0]) + gg.sum(
            L.lsmr(a, b, atol=1e-13, btol=1e-13)[0]
        )

    check_grads(loss, [DATA, B])
    fixed = sp.linalg.aslinearoperator(SQUARE)
    slope = gg.grad(lambda b: gg.sum(L.gmres(fixed, b, rtol=1e-13)[0]))(B)
    np.testing.assert_allclose(slope, np.linalg.solve(SQUARE.toarray().T, np.ones(5)))


def test_least_squares_equal_scipys():
    b = B.numpy()
    np.testing.assert_allclose(
        L.lsqr(s.csr_array(WIDE), B, damp=0.5, atol=1e-12, btol=1e-12)[0],
        sp.linalg.lsqr(WIDE, b, damp=0.5, atol=1e-12, btol=1e-12)[0],
        rtol=1e-9,
    )


def test_expm_multiply_equals_scipys_and_has_gradients():
    want = sp.linalg.expm_multiply(SQUARE, B.numpy())
    np.testing.assert_allclose(L.expm_multiply(square(DATA), B), want, rtol=1e-9)


def functions(data, b):
    a = square(data / 4)
    powers = L.expm(a) + L.matrix_power(a, 3) + L.inv(a).tocsr() + a.tobsr((1, 5)).tocsr()
    times = L.expm_multiply(L.aslinearoperator(a), b, 0.1, 1.0, 3)
    grid = L.LaplacianNd((5,)) @ times[1]
    total = gg.sum(powers @ L.expm_multiply(a, b)) + L.norm(a, 2) + L.onenormest(a.todok())
    return total + gg.sum(times[0] * grid)


def extremes(data, b):
    a = square(data)
    a.setdiag(b[:4], 1)
    return gg.sum(a.maximum(a.T).minimum(0.4 * b) @ b) + a.max() + a.min(1).sum() + L.norm(a, 1)


@pytest.mark.parametrize("f", [functions, extremes])
@pytest.mark.filterwarnings("ignore:Changing the sparsity")
def test_functions_of_arrays_have_gradients(f):
    check_grads(f, [DATA, B], order=1)


def test_eigenvalues_and_singular_values_equal_scipys_and_have_gradients():
    v0, a = np.ones(5), SQUARE + SQUARE.T
    np.testing.assert_allclose(
        L.eigsh(s.csr_array(a), 2, sigma=0.0)[0], sp.linalg.eigsh(a, 2, sigma=0.0)[0]
    )
    u, w, vt = L.svds(s.csr_array(SQUARE), 2, v0=v0)
    np.testing.assert_allclose(w, sp.linalg.svds(SQUARE, 2)[1])
    np.testing.assert_allclose((u * w) @ vt @ vt.T, SQUARE @ vt.T.numpy())
    start = np.eye(5)[:, :1]

    def generalized(data, m):
        a, m = square(data) + square(data).T, s.diags_array([m], offsets=[0]).tocsr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # LOBPCG's, that n is small
            found = L.lobpcg(a, start, m, tol=1e-9, maxiter=99)
        return found[0][0] + L.eigsh(a, 1, m, v0=v0)[0][0] + gg.sum(v0 * found[1][:, 0] ** 2)

    check_grads(generalized, [DATA, gg.asarray(1 + V.max() - np.append(V, 0.0))], order=1)


@pytest.mark.filterwarnings("ignore:Changing the sparsity")
def test_a_written_entry_has_the_gradient():
    def loss(data, v):
        a = square(data)
        a[0] = v
        return gg.sum(a @ B)

    by_data, by_value = gg.grad(loss, argnums=(0, 1))(DATA, B)
    np.testing.assert_allclose(by_value, B.numpy())
    assert not by_data.numpy()[: SQUARE.indptr[1]].any()


def test_a_variable_is_read_at_each_product():
    v = gg.Variable(SQUARE.data)
    a = square(v)
    v.assign(2 * v)
    with gg.GradientTape() as tape:
        y = gg.sum(a @ B)
    np.testing.assert_allclose(a @ B, 2 * SQUARE @ B.numpy())
    np.testing.assert_allclose(tape.gradient(y, v), B.numpy()[SQUARE.indices])


def test_to_device_keeps_the_pattern_and_the_gradient():
    """It called the op with a position for a keyword: every call raised."""
    g = gg.grad(lambda data: gg.sum(square(data).to_device("cpu") @ B))(DATA)
    np.testing.assert_allclose(g, B.numpy()[SQUARE.indices])


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


def slope(f):
    return gg.grad(lambda d: gg.sum(f(d)))(DATA)


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
        (lambda: L.norm(s.csr_array(SQUARE), -2), NotImplementedError),
        (lambda: L.norm(s.csr_array(SQUARE), 3), ValueError),
        (lambda: L.norm(s.csr_array(SQUARE), axis=(0, 0)), ValueError),
        (lambda: L.cg(s.csr_array(SQUARE), B, x0=np.ones(4)), ValueError),
        (lambda: L.gmres(L.aslinearoperator(WIDE), B), ValueError),
        (lambda: L.lsmr(WIDE, np.ones(3)), ValueError),
        (lambda: L.inv(np.eye(2)), TypeError),
        (lambda: L.expm(WIDE), ValueError),
        (lambda: L.matrix_power(SQUARE, -1), ValueError),
        (lambda: L.spilu(s.csc_array((2, 2))), RuntimeError),
        (lambda: L.is_sptriangular(np.eye(2)), TypeError),
        (lambda: slope(lambda d: L.eigsh(L.aslinearoperator(square(d)), 2)[0]), TypeError),
        (lambda: slope(lambda d: s.csgraph.maximum_flow(square(d), 0, 1).flow_value), TypeError),
        (lambda: slope(lambda d: L.funm_multiply_krylov(np.sin, square(d), B)), TypeError),
        (lambda: s.bsr_array(SQUARE, blocksize=(2, 2)), ValueError),
        (lambda: s.bsr_array(SQUARE)[0, 0], NotImplementedError),
    ],
)
def test_bad_input_raises_scipys_class_of_error(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("wrapped", [lambda a: a, L.aslinearoperator])
def test_no_convergence_warns_with_the_residual_forward_and_backward(wrapped):
    a = wrapped(s.diags_array([np.arange(1.0, 50)], offsets=[0]).tocsr())
    words = r"cg: no convergence after 2 iterations.*residual.*gradient is that of the exact"
    with pytest.warns(RuntimeWarning, match=words):
        _, info = L.cg(a, np.ones(49), maxiter=2)
    assert info == 2
    with pytest.warns(RuntimeWarning, match=words) as warned:
        gg.grad(lambda b: gg.sum(L.cg(a, b, maxiter=2)[0] ** 2))(gg.ones(49, dtype="float64"))
    assert len(warned) == 2


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


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("index", "columns"), [(np.int32, ()), (np.int64, (3,))])
def test_kernel_of_sampled_products_equals_the_formula(dtype, index, columns, rng):
    pattern = sp.random_array((1500, 1200), density=0.08, rng=rng, format="csr")
    places = pattern.indices.astype(index), pattern.indptr.astype(index)
    x, y = (rng.normal(size=(n, *columns)).astype(dtype) for n in pattern.shape)
    out = kernels("sparse").sampled(x, y, *places)
    assert out is not NotImplemented
    rows = np.repeat(np.arange(1500), np.diff(places[1]))
    desired = x[rows] * y[places[0]]
    desired = desired.sum(-1) if columns else desired
    np.testing.assert_allclose(out, desired, 1e-4 if dtype == "float32" else 1e-12, 1e-6)


@pytest.mark.parametrize(
    "other",
    [
        lambda a: a.copy(),
        lambda a: a.tocsr(copy=True),
        lambda a: a.tocsc(),
        lambda a: a.tocoo(),
        lambda a: a.tolil(),
        lambda a: a[:],
        lambda a: a[[0, 1, 2]],
        lambda a: a.transpose(copy=True),
        lambda a: a.reshape((3, 3), copy=True),
        lambda a: a.conj(),
        lambda a: a.astype(float),
        lambda a: a.sorted_indices(),
        lambda a: s.tril(a),
        lambda a: a.asformat("dia"),
        lambda a: s.csr_array(a, copy=True),
        lambda a: s.csr_array((a.data, a.indices, a.indptr), copy=True),
    ],
)
def test_a_write_to_another_arrays_data_does_not_reach_this_one(other):
    data = gg.asarray(np.array([1.0, 2.0, 3.0]))
    a = s.csr_array((data, ([0, 1, 2], [0, 1, 2])))
    with gg.GradientTape() as tape:
        tape.watch(data)
        total = gg.sum(other(a) @ np.array([1.0, 10.0, 100.0]))
    assert tape.gradient(total, data).tolist() == [1.0, 10.0, 100.0]
    b = other(a)
    b.data[...] = 7.0
    assert a.data.tolist() == data.tolist() == [1.0, 2.0, 3.0]


def test_sums_and_full_arrays_are_written_to_out():
    a = s.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    for axis in (None, (0, 1), (-1,)):
        np.testing.assert_array_equal(a.sum(axis=axis), a.toarray().sum(axis=axis))
    for call, shape in ((a.sum, (3,)), (a.mean, (3,))):
        out = gg.zeros(shape, dtype="float64")
        assert call(axis=0, out=out) is out
        np.testing.assert_array_equal(out, call(axis=0))
        with pytest.raises(ValueError, match="out has the shape"):
            call(axis=1, out=out)
    out = gg.zeros((2, 3), dtype="float64")
    assert a.toarray(out=out) is out
    np.testing.assert_array_equal(out, a.toarray())
    assert a.toarray(order="F").flags.f_contiguous
    with pytest.raises(TypeError, match="casting='safe' forbids float64 to int64"):
        a.astype(int, casting="safe")
    for wrong in ({"order": "K"}, {"order": "C", "out": out}, {"out": gg.zeros(3)}):
        with pytest.raises(ValueError, match=r"order|out"):
            a.toarray(**wrong)
