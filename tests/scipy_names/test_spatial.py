"""`gg.scipy.spatial` against SciPy: values, derivatives also at zero distance, errors."""

import contextlib
import doctest
import pickle
import warnings

import numpy as np
import pytest
import scipy.spatial as sp
from needs import needs_compiler
from scipy.spatial import distance as theirs
from scipy.spatial import transform as sp_transform

import gpugrad as gg
from gpugrad.errors import DTypeError
from gpugrad.kernels.cpu import pairs
from gpugrad.testing import check_grads

space = gg.scipy.spatial
ours, turns = space.distance, space.transform
RNG = np.random.default_rng(0)
A, B = RNG.uniform(0.1, 1, (5, 3)), RNG.uniform(0.1, 1, (4, 3))
W = np.array([0.5, 1.0, 2.0])
SETS = {"dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"}
PLAIN = {"jensenshannon", "mahalanobis", "seuclidean"}
OF_COUNTS = SETS | {"hamming"}
METRICS = [info.canonical_name for info in theirs._METRIC_INFOS]
CASES = [(n, {}) for n in METRICS] + [(n, {"w": W}) for n in METRICS if n not in PLAIN]
CASES += [("minkowski", {"p": p, **w}) for p in (1, 3.5, np.inf) for w in ({}, {"w": W})]
CASES += [("mahalanobis", {"VI": np.diag(W)}), ("seuclidean", {"V": W})]
T = gg.asarray


def _id(case):
    return "-".join(map(str, case)) if isinstance(case, tuple) else None


def _arrays(name):
    return (A > 0.5, B > 0.5) if name in SETS else (A, B)


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_distances_equal_scipys(case):
    name, options = case
    a, b = _arrays(name)
    with gg.GradientTape():  # without one, SciPy's own runs
        pairs = ours.cdist(T(a), T(b), name, **options), ours.pdist(T(a), name, **options)
        one = {"VI": np.diag(W)} if name == "mahalanobis" else {"V": W}
        options_of_one = one if name in ("mahalanobis", "seuclidean") else options
        u, v = a[0], b[1]
        single = getattr(ours, name)(T(u), T(v), **options_of_one)
    np.testing.assert_allclose(pairs[0], theirs.cdist(a, b, name, **options), atol=1e-12)
    np.testing.assert_allclose(pairs[1], theirs.pdist(a, name, **options), atol=1e-12)
    expected = getattr(theirs, name)(u, v, **options_of_one)
    np.testing.assert_allclose(single, expected, atol=1e-12)
    again = ours.cdist(T(a), T(b), name, **options)
    np.testing.assert_allclose(again, pairs[0], atol=1e-12)
    assert again.dtype == pairs[0].dtype == np.float64


@pytest.mark.thin(5)
@pytest.mark.parametrize("case", CASES, ids=_id)
def test_distances_have_derivatives_by_vectors_and_options(case):
    name, options = case
    arrays = {
        k: v for k, v in options.items() if isinstance(v, np.ndarray) or (k == "p" and v == 3.5)
    }
    if name in OF_COUNTS:
        sets = _arrays(name)
        if arrays:
            check_grads(lambda w: ours.cdist(*map(T, sets), name, w=w), (W,))
        return

    def distances(a, b, *values):
        given = dict(zip(arrays, values, strict=True))
        return ours.cdist(a, b, name, **(options | given)), ours.pdist(a, name, **(options | given))

    values = [np.asarray(v) for v in arrays.values()]
    check_grads(distances, (A, B[:2], *values))
    batch = gg.vmap(lambda a: ours.cdist(a, T(B), name, **options))(T(np.stack([A, A[::-1]])))
    np.testing.assert_allclose(batch[0], theirs.cdist(A, B, name, **options), atol=1e-12)
    traced = gg.function(lambda a: ours.pdist(a, name, **options))(T(A))
    np.testing.assert_allclose(traced, theirs.pdist(A, name, **options), atol=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if c[0] not in OF_COUNTS], ids=_id)
def test_derivatives_at_zero_distance_are_finite(case):
    name, options = case
    options = {"VI": np.diag(W)} if name == "mahalanobis" else options
    options = {"V": W} if name == "seuclidean" else options

    def total(a):
        return gg.sum(ours.cdist(a, a, name, **options))

    points = T(A[[0, 0]])
    g, h = gg.grad(total)(points), gg.hessian(total)(points)
    assert np.isfinite(g).all()
    assert np.isfinite(h).all()
    if name == "sqeuclidean":  # it is smooth
        w = options.get("w", np.ones(3))
        expected = 4 * np.kron([[1, -1], [-1, 1]], np.diag(w)).reshape(2, 3, 2, 3)
        np.testing.assert_allclose(h, expected)


@pytest.mark.filterwarnings("ignore:.*removed in SciPy 1.20")
def test_other_functions_of_distances():
    d = theirs.pdist(A)
    with gg.GradientTape():
        assert ours.squareform(gg.zeros(0)).shape == (1, 1)
        matrix = ours.squareform(T(d))
        np.testing.assert_array_equal(matrix, theirs.squareform(d))
        np.testing.assert_array_equal(ours.squareform(matrix), d)
        np.testing.assert_allclose(
            [float(x) for x in ours.directed_hausdorff(T(A), T(B))], theirs.directed_hausdorff(A, B)
        )
        js = ours.jensenshannon(T(A), T(A[::-1].copy()), 2.0, axis=1, keepdims=True)
        mine = ours.cdist(T(A), T(B), lambda u, v: gg.sum((u - v) ** 4))
        for name, w in (("euclidean", None), ("sqeuclidean", W), ("minkowski", W)):
            expected = [getattr(theirs, name)(a, A[0], w=w) for a in A]
            np.testing.assert_allclose(getattr(ours, name)(T(A), T(A[0]), w=w), expected)
    expected = theirs.jensenshannon(A, A[::-1], 2.0, axis=1, keepdims=True)
    np.testing.assert_allclose(js, expected)
    np.testing.assert_allclose(mine, theirs.cdist(A, B, lambda u, v: np.sum((u - v) ** 4)))
    check_grads(lambda a, b: ours.directed_hausdorff(a, b)[0], (A, B))
    check_grads(lambda d: gg.sum(ours.squareform(d) ** 3), (d,))
    np.testing.assert_allclose(space.distance_matrix(A, B, 3), sp.distance_matrix(A, B, 3))
    for p in (1, 2, np.inf):
        result = space.minkowski_distance(A, A[0], p), space.minkowski_distance_p(A, A[0], p)
        np.testing.assert_allclose(result[0], sp.minkowski_distance(A, A[0], p))
        np.testing.assert_allclose(result[1], sp.minkowski_distance_p(A, A[0], p))
    u, v = A[:2]
    expected = np.sqrt(np.sum((np.sqrt(u) - np.sqrt(v)) ** 2) / 2)
    np.testing.assert_allclose(ours.hellinger(u, v), expected)
    kl = ours.cdist(A, A, "kl_divergence")[0, 1]
    np.testing.assert_allclose(kl, np.sum(u * np.log(u / v)))
    assert ours.is_valid_dm(ours.squareform(d))
    assert ours.num_obs_y(T(d)) == 5
    for tape in (gg.GradientTape(), contextlib.nullcontext()):
        out = gg.zeros((5, 4), dtype="float64")
        with tape:
            ours.cdist(T(A), T(B), out=out)
        np.testing.assert_allclose(out, theirs.cdist(A, B))


BAD = {
    "2-dimensional": lambda d, t: d.cdist(t(A[0]), t(A)),
    "same number of columns": lambda d, t: d.cdist(t(A), t(B[:, :2])),
    "Unknown Distance Metric": lambda d, t: d.cdist(t(A), t(B), "euclidian"),
    "2nd argument metric": lambda d, t: d.cdist(t(A), t(B), 3),
    "same size as input": lambda d, t: d.cdist(t(A), t(B), "minkowski", w=t(W[:2])),
    "non-negative": lambda d, t: d.cdist(t(A), t(B), "cityblock", w=t(-W)),
    "greater than 0": lambda d, t: d.minkowski(t(A[0]), t(A[1]), p=-1),
    "too small": lambda d, t: d.pdist(t(A[:2]), "mahalanobis"),
    "one-dimensional": lambda d, t: d.pdist(t(A), "seuclidean", V=t(A)),
    "1-D": lambda d, t: d.cityblock(t(A), t(A)),
    "must be symmetric": lambda d, t: d.squareform(t(A[:3])),
    "diagonal must be zero": lambda d, t: d.squareform(t(np.eye(3))),
    "binomial": lambda d, t: d.squareform(t(np.ones(4))),
    "must be square": lambda d, t: d.squareform(t(A)),
    "incorrect shape": lambda d, t: d.cdist(t(A), t(B), out=np.zeros((2, 2))),
    "unexpected keyword": lambda d, t: d.cdist(t(A), t(B), "jensenshannon", w=t(W)),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_arguments_raise_scipys_errors(words):
    with pytest.raises((ValueError, TypeError), match=words) as error:
        BAD[words](theirs, np.asarray)
    with gg.GradientTape(), pytest.raises(error.type, match=words):
        BAD[words](ours, T)


V, Q = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 4))
TIMES = np.array([0.4, 1.3, 2.9])
AXES = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])


def _spline(t, q, times, order=0):
    spline = t.RotationSpline(np.arange(4.0), t.Rotation.from_rotvec(q))
    result = spline(times, order)
    return result if order else result.as_matrix()


def _moved(t, v):
    return t.RigidTransform.from_components(v, t.Rotation.from_rotvec(v)).inv()


TURNS = {
    "quat": lambda t, q: t.Rotation.from_quat(q).as_quat(canonical=True),
    "scalar_first": lambda t, q: t.Rotation.from_quat(q, scalar_first=True).as_matrix(),
    "matrix": lambda t, v: t.Rotation.from_matrix(t.Rotation.from_rotvec(v).as_matrix()).as_quat(),
    "rotvec": lambda t, v: t.Rotation.from_rotvec(v).as_rotvec(),
    "mrp": lambda t, v: t.Rotation.from_mrp(v).as_mrp(),
    "extrinsic": lambda t, v: t.Rotation.from_euler("xyz", v).as_euler("zyx"),
    "intrinsic": lambda t, v: t.Rotation.from_euler("ZXZ", v, degrees=True).as_euler("XYX"),
    "davenport": lambda t, v: t.Rotation.from_davenport(AXES, "e", v).as_davenport(AXES, "i"),
    "product": lambda t, q: (t.Rotation.from_quat(q) * t.Rotation.from_quat(q[::-1])).as_matrix(),
    "inverse": lambda t, q: t.Rotation.from_quat(q).inv().apply(np.array([1.0, 2, 3])),
    "power": lambda t, v: (t.Rotation.from_rotvec(v) ** 0.3).as_quat(),
    "magnitude": lambda t, q: t.Rotation.from_quat(q).magnitude(),
    "mean": lambda t, q: t.Rotation.from_quat(q).mean(weights=[1.0, 2, 3, 4]).as_matrix(),
    "index": lambda t, q: t.Rotation.from_quat(q)[1:3][0].as_matrix(),
    "concatenate": lambda t, q: t.Rotation.concatenate([t.Rotation.from_quat(q)] * 2).as_matrix(),
    "align": lambda t, v: t.Rotation.align_vectors(v, v[:, [1, 2, 0]] + 0.1)[0].as_matrix(),
    "reduce": lambda t, q: t.Rotation.from_quat(q).reduce(t.Rotation.create_group("O")).as_matrix(),
    "slerp": lambda t, v: t.Slerp(np.arange(4.0), t.Rotation.from_rotvec(v))(TIMES).as_matrix(),
    "spline": lambda t, v: _spline(t, v, TIMES),
    "rate": lambda t, v: _spline(t, v, TIMES, 1),
    "acceleration": lambda t, v: _spline(t, v, TIMES, 2),
    "rigid": lambda t, v: _moved(t, v).as_matrix(),
}
OF_Q = ["quat", "scalar_first", "product", "inverse", "magnitude", "mean", "index"]
OF_Q += ["concatenate", "reduce"]


@pytest.mark.parametrize("name", TURNS)
def test_rotations_equal_scipys(name):
    f, x = TURNS[name], Q if name in OF_Q else V
    np.testing.assert_allclose(f(turns, T(x)), f(sp_transform, x), atol=1e-12)


@pytest.mark.thin(7)
@pytest.mark.parametrize("name", TURNS)
def test_rotations_have_derivatives(name):
    f, x = TURNS[name], Q if name in OF_Q else V
    check_grads(lambda x: f(turns, x), (x,))


ZERO = {
    "rotvec to quat": lambda r, v: r.from_rotvec(v).as_quat(),
    "and back": lambda r, v: (r.from_rotvec(v) * r.from_rotvec(0.5 * v)).as_rotvec(),
    "of quat": lambda r, v: r.from_quat(gg.concat([v, gg.ones_like(v[:1])])).as_rotvec(),
    "power": lambda r, v: (r.from_rotvec(v) ** 0.3).as_matrix(),
    "mrp": lambda r, v: r.from_rotvec(v).as_mrp(),
}


@pytest.mark.parametrize("name", ZERO)
def test_derivatives_at_the_identity_are_exact(name):
    check_grads(lambda v: ZERO[name](turns.Rotation, v), (np.zeros(3),))
    traced = gg.function(gg.jacobian(lambda v: ZERO[name](turns.Rotation, v)))(T(np.zeros(3)))
    assert np.isfinite(traced).all()


def test_rotations_batch_trace_pickle_and_refuse():
    rotation = turns.Rotation
    for f in (
        lambda v: rotation.from_euler("xyz", v).as_rotvec(),
        lambda v: rotation.from_matrix(rotation.from_rotvec(v).as_matrix()).as_euler("zyx"),
    ):
        expected = np.stack([f(v) for v in T(V)])
        np.testing.assert_allclose(gg.vmap(f)(T(V)), expected, atol=1e-12)
        np.testing.assert_allclose(gg.function(f)(T(V)), expected, atol=1e-12)
    with pytest.raises(ValueError, match="zero norm"):
        rotation.from_quat(gg.zeros(4))
    with pytest.raises(ValueError, match="shape"):
        rotation.from_quat([1.0, 0.0])
    with pytest.raises(ValueError, match="determinant"):
        rotation.from_matrix(T(-np.eye(3)))
    with pytest.raises(ValueError, match="range"):
        turns.Slerp([0, 1], rotation.identity(2))([3.0])
    with pytest.warns(UserWarning, match="Gimbal lock"):
        rotation.from_euler("xyz", [0.1, np.pi / 2, 0.3]).as_euler("xyz")
    again = pickle.loads(pickle.dumps(rotation.from_rotvec(T(V))))
    np.testing.assert_allclose(again.as_rotvec(), V)
    assert len(rotation.random(3, rng=0)) == 3
    assert rotation.identity().single


def test_rotations_of_plain_arrays_leave_them_alone():
    """SciPy's compiled functions compute them, in any layout, and might normalize in place."""
    rotation, values = turns.Rotation, np.array([[1.0, 2, 3, 4], [2, 0, 0, 0]])
    q = gg.asarray(values)
    turned, scipys = rotation(q, copy=False), sp_transform.Rotation(values)
    assert np.array_equal(q, values)
    v = np.arange(6.0).reshape(2, 3)
    for vectors in (v, np.asfortranarray(v), v[::-1], np.broadcast_to(v[:1], v.shape), v[0]):
        result = turned.apply(gg.asarray(vectors))
        assert isinstance(result, gg.Tensor)
        np.testing.assert_allclose(result, scipys.apply(vectors.copy()), 1e-12, 1e-12)
    with pytest.raises(ValueError, match="zero norm"):
        rotation.from_quat(gg.zeros((2, 4), dtype="float64"))


def test_procrustes_and_arcs():
    for result, expected in zip(
        space.procrustes(A, A[::-1]), sp.procrustes(A, A[::-1]), strict=True
    ):
        np.testing.assert_allclose(result, expected, atol=1e-12)
    check_grads(lambda a, b: space.procrustes(a, b), (A, RNG.uniform(size=A.shape)))
    a, b = (v / np.linalg.norm(v) for v in V[:2])
    np.testing.assert_allclose(
        space.geometric_slerp(a, b, TIMES), sp.geometric_slerp(a, b, TIMES), atol=1e-12
    )

    def arc(a, b, t):
        return space.geometric_slerp(*(v / gg.vector_norm(v) for v in (a, b)), t)

    check_grads(arc, (a, b, TIMES[:1]))
    check_grads(arc, (a, a + 1e-9, TIMES[:1]), eps=1e-6**0.5, rtol=1e-4, atol=1e-5)
    with pytest.warns(UserWarning, match="antipodes"):
        space.geometric_slerp([1.0, 0.0], [-1.0, 0.0], 0.5)
    for wrong in ([1.0, 0.0], [[2.0, 0.0]]), ([2.0, 0.0], [0.0, 1.0]):
        with pytest.raises(ValueError, match=r"one-dimensional|unit n-sphere"):
            space.geometric_slerp(*wrong, 0.5)


def test_trees_and_triangulations_are_scipys_and_say_so_under_a_tape():
    tree, expected = space.KDTree(T(A)), sp.KDTree(A)
    for x, y in zip(tree.query(T(B), 2), expected.query(B, 2), strict=True):
        assert isinstance(x, gg.Tensor)
        np.testing.assert_array_equal(x, y)
    assert tree.count_neighbors(space.KDTree(B), 0.5) == expected.count_neighbors(sp.KDTree(B), 0.5)
    hull = space.ConvexHull(T(V[:, :2]))
    np.testing.assert_array_equal(hull.vertices, sp.ConvexHull(V[:, :2]).vertices)
    triangles = space.Delaunay(T(V[:, :2]))
    assert int(triangles.find_simplex(T(V[:, :2].mean(0)))) >= 0
    assert space.Voronoi(V[:, :2]).vertices.shape[1] == 2
    with pytest.raises(DTypeError, match=r"sparse_distance_matrix.*gradient"):
        gg.grad(lambda x: space.KDTree(x).sparse_distance_matrix(tree, 0.5)[0, 0])(T(A))
    with pytest.raises(DTypeError, match=r"Delaunay.*gradient"):
        gg.grad(lambda x: gg.sum(space.Delaunay(x).points))(T(V[:, :2]))
    with pytest.raises(sp.QhullError):
        space.Delaunay(np.zeros((3, 2)))


@pytest.mark.parametrize("options", [{}, {"k": 2, "p": 3.0}, {"k": [1, 3]}])
@pytest.mark.parametrize("box", [None, 2.0])
def test_distances_to_neighbours_have_gradients(options, box):
    def distances(s, x, y):
        return s.KDTree(x, boxsize=box).query(y, **options)[0]

    points, at = RNG.random((7, 3)), RNG.random((4, 3))
    _, tangent = gg.jvp(lambda x: distances(space, x, T(at)), [T(points)], [T(0 * points)])
    assert not tangent.numpy().any()
    np.testing.assert_allclose(distances(space, T(points), at), distances(sp, points, at))
    check_grads(lambda x, y: distances(space, x, y), (points, at))
    far = gg.grad(lambda y: gg.min(space.KDTree(points).query(y, 2, distance_upper_bound=0.1)[0]))
    assert np.isfinite(far(T(points[:1] + 0.01))).all()


ON_A_GPU = {
    "euclidean": lambda s, a: s.distance.cdist(a, a[:2]),
    "spline": lambda s, a: _spline(s.transform, a[:4], TIMES),
    "weighted": lambda s, a: s.distance.pdist(a, "minkowski", p=3, w=W),
    "correlation": lambda s, a: s.distance.correlation(a[0], a[1], w=W),
    "mahalanobis": lambda s, a: s.distance.pdist(a, "mahalanobis"),
    "rotation": lambda s, a: s.transform.Rotation.from_rotvec(a).mean().as_matrix(),
    "euler": lambda s, a: s.transform.Rotation.from_euler("xyz", a).as_euler("zyx"),
    "slerp": lambda s, a: s.transform.Slerp(
        [0.0, 1, 2, 3], s.transform.Rotation.from_rotvec(a[:4])
    )(TIMES).as_rotvec(),
}


@pytest.mark.device
@pytest.mark.thin(3)
@pytest.mark.parametrize("name", ON_A_GPU)
def test_functions_run_on_a_gpu_and_stay_there(name, cuda):
    f, x = ON_A_GPU[name], gg.asarray(A, device=cuda)
    result = f(space, x)
    assert result.device == cuda
    np.testing.assert_allclose(result.numpy(), f(sp, A), atol=1e-9)

    def loss(x):
        return gg.sum(f(space, x) ** 2)

    np.testing.assert_allclose(gg.grad(loss)(x).numpy(), gg.grad(loss)(T(A)), atol=1e-9)


@pytest.mark.device
def test_searches_accept_arrays_of_a_gpu(cuda):
    points = gg.asarray(A, device=cuda)
    distance, index = space.KDTree(points).query(points[:2])
    np.testing.assert_array_equal(index.numpy(), [0, 1])
    np.testing.assert_array_equal(distance.numpy(), [0, 0])
    ours, host = (
        gg.grad(lambda x, p=p: gg.sum(space.KDTree(p, boxsize=2).query(x)[0]))(p[:2] + 0.01)
        for p in (points, T(A))
    )
    assert ours.device == cuda
    np.testing.assert_allclose(ours.numpy(), host)
    rows, _ = gg.scipy.optimize.linear_sum_assignment(points)
    assert rows.device == cuda
    with pytest.raises(DTypeError, match=r"linear_sum_assignment.*gradient"):
        gg.grad(lambda x: gg.scipy.optimize.linear_sum_assignment(x)[0])(points)


@pytest.mark.parametrize("module", [space, ours, turns])
def test_examples(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {n: getattr(module, n) for n in module.__all__}
    finder = doctest.DocTestFinder(recurse=False)
    for name, value in [("module", module), *names.items()]:
        doc = value.__doc__ or ""
        if not doc.startswith("SciPy's") and "gg.scipy" in doc:
            for example in finder.find(value, name, globs={"gg": gg, "np": np}):
                runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
                runner.run(example)
                assert not runner.failures, example.name


@needs_compiler
@pytest.mark.parametrize("term", pairs.TERMS)
@pytest.mark.parametrize(
    ("dtype", "m", "n", "k"), [("float64", 301, 258, 3), ("float32", 70, 900, 17)]
)
def test_kernels_of_all_pairs_equal_the_formula(term, dtype, m, n, k, rng):
    x, y = (np.abs(rng.normal(size=(size, k))).astype(dtype) for size in (m, n))
    y[:2], x[-1, 0], y[5, 0], x[:, 1] = x[:2], 0, 0, x[:, 0]  # equal vectors, zeros, and ties
    g = rng.normal(size=(n, m)).astype(dtype)
    how, close = {"term": term, "p": 2.5}, {"rtol": 3e-4, "atol": 3e-2}
    close = close if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-10}
    sums = pairs.pair_sums(None, x, y, **how)
    slopes = [pairs.pair_sums_grad(None, h, x, y, **how) for h in (g.T, g.T.copy())]
    assert sums is not NotImplemented
    sum_, slope = (gg.OPS[name].ref for name in ("pair_sums", "pair_sums_grad"))
    np.testing.assert_allclose(sums, sum_(x, y, **how), **close)
    with np.errstate(all="ignore"):
        desired = slope(g.T, x, y, **how)
    for slope in slopes:
        np.testing.assert_allclose(slope, desired, **close)
    own, g = pairs.own_pair_sums(None, x, **how), rng.normal(size=m * (m - 1) // 2).astype(dtype)
    own_ref, own_slope = (gg.OPS[name].ref for name in ("own_pair_sums", "own_pair_sums_grad"))
    assert own is not NotImplemented
    np.testing.assert_allclose(own, own_ref(x, **how), **close)
    with np.errstate(all="ignore"):
        desired = own_slope(g, x, **how)
    np.testing.assert_allclose(pairs.own_pair_sums_grad(None, g, x, **how), desired, **close)


def test_distances_of_all_pairs_have_the_gradients_of_single_pairs(rng):
    x, y, w = rng.uniform(0.5, 2, (3, 4)), rng.uniform(0.5, 2, (2, 4)), rng.uniform(0.5, 2, 4)
    root = rng.normal(size=(4, 4))
    cases = [(name, {"w": w}) for name in ("cityblock", "braycurtis", "sqeuclidean", "euclidean")]
    cases += [("minkowski", {"p": 3, "w": w}), ("seuclidean", {"V": w}), ("chebyshev", {})]
    cases += [("mahalanobis", {"VI": root @ root.T + root - root.T}), ("jensenshannon", {})]
    for name, options in cases:
        one, names = getattr(ours, name), tuple(options)

        def all_pairs(x, y, *values, name=name, names=names):
            return gg.sum(ours.cdist(x, y, name, **dict(zip(names, values, strict=True))) ** 2)

        def each(x, y, *values, one=one, names=names):
            given = dict(zip(names, values, strict=True))
            return sum(one(u, v, **given) ** 2 for u in x for v in y)

        arrays = [np.asarray(a, float) for a in (x, y, *options.values())]
        argnums = tuple(i for i, a in enumerate(arrays) if a.ndim)
        for a, b in zip(*(gg.grad(f, argnums)(*arrays) for f in (all_pairs, each)), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-9, 1e-9, err_msg=name)
