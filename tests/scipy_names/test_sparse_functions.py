"""gg.scipy.sparse: formats for construction, spectra of complex arrays, and graphs."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpugrad as gg
from gpugrad.testing import check_grads

s, L = gg.scipy.sparse, gg.scipy.sparse.linalg
RNG = np.random.default_rng(0)
SQUARE = (sp.random_array((5, 5), density=0.4, rng=RNG) + 4 * sp.eye_array(5)).tocsr()
DATA = gg.asarray(SQUARE.data)


def square(data):
    return s.csr_array((data, SQUARE.indices, SQUARE.indptr), shape=(5, 5))


@pytest.mark.parametrize("format", ["lil", "dok"])
@pytest.mark.filterwarnings("error")
def test_formats_for_construction_are_written_without_a_warning(format):
    def product(v):
        a = getattr(s, f"{format}_matrix")((3, 3), dtype="float64")
        a[0, 1], a[[1, 2], [0, 2]] = v[0], v[1:]
        return a, gg.sum(a @ np.array([1.0, 10.0, 100.0]))

    v = constant = gg.constant([2.0, 3.0, 4.0], dtype="float64")
    a, _ = product(constant)
    np.testing.assert_array_equal(a.toarray(), [[0, 2, 0], [3, 0, 0], [0, 0, 4]])
    np.testing.assert_array_equal(gg.grad(lambda v: product(v)[1])(v), [10.0, 1.0, 100.0])
    if format == "dok":
        assert [*a] == [(0, 1), (1, 0), (2, 2)]
        assert [float(v) for _, v in a.items()] == [2.0, 3.0, 4.0]
        assert (len(a), (2, 2) in a, a.get((0, 0), 7), float(a.get((2, 2)))) == (3, True, 7, 4.0)


SPECTRA = {
    "eigsh": lambda a: L.eigsh(a + a.conj().T, 1, v0=np.ones(5) + 0j),
    "eigs": lambda a: L.eigs(a, 1, v0=np.ones(5) + 0j),
    "svds": lambda a: L.svds(a, 1, v0=np.ones(5))[1:],
    "svds SM": lambda a: L.svds(gg.scipy.sparse.csc_array(a.real), 1, which="SM", v0=np.ones(5))[
        :2
    ],
}


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_of_complex_arrays_have_gradients(name):
    def loss(data, angle):
        parts = SPECTRA[name](square(data * gg.exp(1j * angle)))
        parts = [gg.real(x * (2 + 1j) if x.ndim < 2 else gg.abs(x)) for x in parts]
        return sum(gg.sum(gg.sin(x) * np.arange(1.0, x.size + 1).reshape(x.shape)) for x in parts)

    check_grads(loss, [DATA, gg.asarray(RNG.normal(size=DATA.size))])


GRAPHS = {
    "laplacian": lambda g, a: g.laplacian(a),
    "laplacian, normed": lambda g, a: g.laplacian(a, normed=True, use_out_degree=True),
    "laplacian, symmetrized": lambda g, a: g.laplacian(a, symmetrized=True, return_diag=True)[1],
    "minimum_spanning_tree": lambda g, a: g.minimum_spanning_tree(a),
    "shortest_path": lambda g, a: g.shortest_path(a),
    "undirected": lambda g, a: g.shortest_path(a, directed=False, return_predecessors=True)[0],
    "dijkstra": lambda g, a: g.dijkstra(a, indices=[0, 3], limit=9.0),
    "dense": lambda g, a: g.floyd_warshall(a.toarray()),
}


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", GRAPHS)
def test_functions_of_graphs_have_gradients_by_the_weights(name):
    pattern = sp.random_array((7, 7), density=0.35, rng=np.random.default_rng(2)).tocsr()
    weights = np.random.default_rng(3).uniform(1, 2, pattern.nnz)

    def of(module, data):
        a = (data, pattern.indices, pattern.indptr)
        x = GRAPHS[name](module.csgraph, module.csr_array(a, shape=(7, 7)))
        x = x.toarray() if module.issparse(x) else x
        return x if module is sp else gg.where(gg.isinf(x), 0, x)

    with gg.GradientTape() as tape:
        tape.watch(data := gg.asarray(weights))
        ours = of(s, data)
        expected = of(sp, weights)
    del tape
    np.testing.assert_allclose(ours, np.where(np.isinf(expected), 0, expected), atol=1e-12)
    check_grads(lambda data: of(s, data), [weights], order=1)
