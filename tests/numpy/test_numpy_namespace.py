"""gpugrad.numpy beside NumPy: each call runs with both, on Tensors and on arrays."""

import io
import pickle
import warnings

import numpy as np
import pytest

import gpugrad as gg
import gpugrad.numpy as gnp
from gpugrad.errors import ArgumentError, DTypeError

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 4))
F = np.asfortranarray(RNG.normal(size=(3, 4)))
MASK = A > 0
I8 = RNG.integers(-9, 9, (3, 4)).astype("i1")


def tensors(value):
    """Arrays within a value as Tensors of the same memory order."""
    if isinstance(value, np.ndarray):
        return gnp.array(value)
    return type(value)(map(tensors, value)) if isinstance(value, (list, tuple)) else value


def same(actual, expected):
    """Values, dtype, shape and memory order."""
    if isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            same(a, e)
        return
    if isinstance(expected, (np.ndarray, np.generic)):
        assert isinstance(actual, gg.Tensor)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert actual.flags.c_contiguous >= expected.flags.c_contiguous
        assert actual.flags.f_contiguous >= expected.flags.f_contiguous
        rtol = 1e-2 if expected.dtype == np.float16 else 1e-6
        np.testing.assert_allclose(actual.numpy(), expected, rtol=rtol, atol=1e-12)
    else:
        assert actual == expected


def _out(xp, call, *out):
    call(*out)
    return list(out)


CALLS = {
    "add list": lambda xp, a, f: xp.add(a, [1.0, 2.0, 3.0, 4.0]),
    "numbers": lambda xp, a, f: [xp.add(1.0, 2), xp.exp(1), xp.sqrt([1.0, 2.0]), xp.maximum(1, 2)],
    "float32 beside numbers": lambda xp, a, f: xp.multiply(a.astype("f4"), 2.5),
    "ufunc dtype": lambda xp, a, f: xp.add(a, f, dtype="f4"),
    "ufunc out": lambda xp, a, f: _out(xp, lambda o: xp.add(a, f, o), xp.zeros((3, 4))),
    "ufunc out where": lambda xp, a, f: _out(
        xp, lambda o: xp.add(a, f, out=o, where=a > 0), xp.ones((3, 4))
    ),
    "reduce": lambda xp, a, f: xp.add.reduce(a, 0, "f4", None, True),
    "reduce where": lambda xp, a, f: xp.multiply.reduce(a, axis=1, where=a > 0, initial=2.0),
    "accumulate": lambda xp, a, f: xp.multiply.accumulate(a, 1),
    "reduceat": lambda xp, a, f: xp.add.reduceat(a, [0, 2], axis=1),
    "outer": lambda xp, a, f: xp.subtract.outer(a, [1.0, 2.0]),
    "at": lambda xp, a, f: _out(xp, lambda o: xp.add.at(o, ([0, 0], 1), 2.0), a.copy()),
    "at of floats on integers": lambda xp, a, f: _out(
        xp, lambda o: (xp.add.at(o, [0, 0], 1.5), xp.subtract.at(o, ([],), 1)), xp.ones(3, "i4")
    ),
    "maximum at": lambda xp, a, f: _out(xp, lambda o: xp.maximum.at(o, [0, 0], 0.5), a.copy()),
    "sum": lambda xp, a, f: [xp.sum(a, 0, "f4", None, True), a.sum(1, "f4"), a.sum(axis=0)],
    "sum out": lambda xp, a, f: _out(xp, lambda o: a.sum(0, None, o), xp.zeros(4)),
    "max": lambda xp, a, f: [a.max(0, None, True), xp.max(a, 1, initial=9.0), xp.amin(a)],
    "std": lambda xp, a, f: [a.std(0, "f4", None, 1), xp.var(a, 1, ddof=2), xp.mean(a, 0, "f4")],
    "integers": lambda xp, a, f: [xp.mean(xp.arange(5)), xp.sum(xp.ones(3, bool)), xp.arange(2, 9)],
    "cumsum": lambda xp, a, f: [a.cumsum(0, "f4"), xp.cumprod(a), xp.nancumsum(a, 1)],
    "trace": lambda xp, a, f: [a.trace(1, 0, 1, "f4"), xp.trace(a, dtype="c8")],
    "take": lambda xp, a, f: [
        xp.take(a, [5, -9], 1, mode="wrap"), a.take([0, 7], None, None, "clip")
    ],
    "concatenate": lambda xp, a, f: [
        xp.concatenate([a, f], axis=None), xp.concatenate((a, f), 1, dtype="f4", casting="unsafe")
    ],
    "order of creation": lambda xp, a, f: [
        xp.zeros((2, 3), order="F"), xp.full((2, 3), 7, order="F"), xp.array(a, order="F"),
        xp.asarray(f), xp.ascontiguousarray(f), xp.asfortranarray(a), xp.ones_like(f),
        xp.empty((2, 3), "i4", "F") * 0, xp.full_like(f, 2, "i2"), xp.zeros_like(f, order="C"),
        xp.full_like(f, [1.0, 2.0, 3.0, 4.0]), xp.full((2, 2), [5, 6], order="F"),
    ],
    "order of elementwise": lambda xp, a, f: [xp.exp(f), f + 1, f * f, abs(f), f.astype("f4"), -f],
    "order of elements": lambda xp, a, f: [
        a.reshape((4, 3), order="F"), xp.reshape(f, (2, 6), order="A"), a.ravel("F"), f.ravel("K"),
        f.flatten("F"), xp.ravel(f), f.copy(), f.copy("K"), a.copy("F"), f.astype("i4", order="C"),
    ],
    "ndmin": lambda xp, a, f: [xp.array(3.0, ndmin=2), xp.array(a, "f4", ndmin=3)],
    "r_": lambda xp, a, f: [xp.r_[a[0], 0, 1:3], xp.r_["1,2,0", a[0], a[1]], xp.c_[a, f]],
    "grids": lambda xp, a, f: [xp.mgrid[0:2, 0:3], xp.ogrid[0:1:3j][0], xp.ix_([0, 1], [2])[1]],
    "creation": lambda xp, a, f: [
        xp.identity(2), xp.eye(2, k=1), xp.linspace(0, 1, 4, retstep=True)[0], xp.tri(3),
        xp.frombuffer(b"abcd", "u1"), xp.fromfunction(lambda i, j: i + j, (2, 2)),
    ],
    "float64 as NumPy": lambda xp, a, f: [
        xp.cov(a.astype("f4")), xp.interp(a[0].astype("f4"), [-1, 0, 1], [0, 1.0, 3]),
        xp.vander(a[0].astype("f4"), 3), xp.average(a, 0, weights=[0.1, 0.2, 0.7]),
    ],
    "methods": lambda xp, a, f: [
        a.clip(-0.5, 0.5), a.round(1), a.argsort(1, "stable"), a.compress([True, False, True], 0),
        a.repeat(2, 1), xp.array([2, 0]).choose(a[:, :2]), a[0].searchsorted(0.5),
        a.byteswap().byteswap(), a.flat[5], a.flat[1:3], a.dot(f.T), a.squeeze(),
    ],
    "method values": lambda xp, a, f: [
        a.item(0, 1), a.item(3), a.tobytes(), f.tobytes("F"), len(a.flat), a.flags["C_CONTIGUOUS"],
        f.flags.fnc, f.strides, a.base is None, a[0].base is None, list(a.shape),
    ],
    "writes": lambda xp, a, f: _out(xp, lambda o: (
        setattr(o, "flat", [1.0, 2.0, 3.0]), o.sort(0, "stable"), o.put([0, 5], [1.0, 2.0]),
        o.partition(2, 1), o[0].fill(3), o.flat.__setitem__(7, 4.0),
        xp.copyto(o[1:2], [[[7.0]]]), xp.fill_diagonal(o, 0.0),
    ), a.copy()),
    "statistics": lambda xp, a, f: [
        xp.median(a, 1, overwrite_input=True), xp.percentile(a, [10, 50], 0), xp.histogram(a, 3)[0],
        xp.histogram2d(a[0], a[1], 2)[0], xp.bincount(xp.array([0, 1, 1]), minlength=4),
    ],
    "convolve": lambda xp, a, f: [xp.convolve(3.0, a[0]), xp.correlate(a[0], [1.0, 2.0], "full")],
    "polynomials": lambda xp, a, f: [
        xp.poly1d([1.0, 2.0])(a), (xp.poly1d([1.0, 2]) * xp.poly1d([3.0, 1])).coeffs,
        xp.polyval([1.0, 2.0], a), xp.polynomial.polynomial.polyvander(a[0], 2),
        xp.polynomial.polynomial.polyval(a, f), xp.polynomial.polynomial.polyval(a[0], f, False),
        xp.polynomial.polynomial.polyvalfromroots(a, [1, 2]),
    ],
    "linalg": lambda xp, a, f: [xp.linalg.norm(a, axis=0), xp.linalg.inv(a[:, :3]), xp.fft.fft(a)],
    "types": lambda xp, a, f: [
        xp.float32(3).item(), xp.result_type("i4", "f4"), xp.finfo(xp.float32).bits, xp.pi,
        xp.issubdtype(xp.int8, xp.integer), xp.isscalar(3.0), xp.can_cast("i4", "f8"), xp.s_[1:2],
    ],
    "vectorize": lambda xp, a, f: xp.vectorize(lambda x, y: max(x, y))(a, 0.25),
    "edges": lambda xp, a, f: [
        xp.roots(xp.array([0.0, 1, -3, 2])), xp.roots(xp.array([1.0, 0, 1])),
        xp.zeros_like(xp.swapaxes(xp.reshape(a, (3, 2, 2)), 0, 1)), xp.ones_like(f, shape=(2, 2)),
        xp.median(xp.array([xp.nan, 1j, 2])), a.transpose(None), xp.triu(a[0]), xp.polymul(2, a[0]),
        xp.ravel(xp.broadcast_to(a[:, None], (3, 2, 4)), "K"), xp.ravel(xp.swapaxes(f, 0, 1), "K"),
    ],
    "edge dtypes": lambda xp, a, f: [
        xp.roots(xp.array([0.0, 5, 0], "f4")), xp.polymul(a[0], a[0, :0]),
        xp.quantile(a.astype("f4"), [0.2, 0.3], 0),
        xp.percentile(a.astype("f4"), [20], method="lower"),
        xp.quantile(a.astype("f4"), 0.2), xp.nanquantile(a.astype("f4"), [0.5], 1, method="hazen"),
    ],
    "arguments that only NumPy has": lambda xp, a, f: [
        xp.linalg.pinv(a, 0.5), xp.linalg.pinv(a, rcond=0.5), xp.linalg.matrix_rank(a, tol=2.0),
        xp.linalg.matrix_rank(a[0]), xp.linalg.lstsq(a.T, a[0]), xp.linalg.lstsq(a, a[:, 0], -1),
        xp.std(a, mean=xp.mean(a, keepdims=True)), xp.add(a, a, order="F"),
        xp.fft.irfft(a.astype("f2")), xp.fft.hfft(a.astype("f2"), 3, 0, "ortho"),
        xp.linalg.eig(a.T @ a).eigenvalues, xp.linalg.eigvals(a[:, :3]),
        xp.concatenate([a.astype("f4"), [[1, 2, 3, 4]]]),
        xp.add(a, 1, out=xp.zeros((3, 4), "i4"), casting="unsafe"),
        xp.rint(xp.arange(3, dtype="i1")),
        xp.choose([0, 1, 2, 0], a), xp.histogram_bin_edges(a, "auto"), xp.histogram(a, "fd")[0],
        xp.add(a, 1, out=xp.ones((2, 3, 4))),
    ],
    "matmul": lambda xp, a, f: [xp.matmul(a.T, f), xp.einsum("ij,ij->j", a, f), xp.dot(a, f.T)],
    "stride tricks": lambda xp, a, f: xp.lib.stride_tricks.sliding_window_view(a, (2, 2)),
    "in place shape": lambda xp, a, f: _out(xp, lambda o: setattr(o, "shape", (2, 6)), a.copy()),
    "order of what is written": lambda xp, a, f: [
        _out(xp, lambda o, call=call: call(o, o.copy("K")), f.copy("K"))  # shared, at first
        for call in (
            lambda o, old: xp.exp(a, out=o), lambda o, old: o.__iadd__(a), lambda o, old: o.sort(0),
            lambda o, old: o.__setitem__(..., a), lambda o, old: xp.cumsum(a, 0, out=o.T.T),
            lambda o, old: o.put([1], 2.0), lambda o, old: xp.copyto(o, a),
            lambda o, old: o.fill(1),
        )
    ],
    "resize": lambda xp, a, f: _out(xp, lambda o: o.resize((2, 7), refcheck=False), a.copy()),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_call_is_numpys(name):
    call = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = call(np, A, F)
        same(call(gnp, tensors(A), tensors(F)), expected)


def test_every_name_of_numpy_is_there():
    without = {"random", "matrix", "memmap", "ma", "core", "char", "strings", "newaxis"}
    for name in {n for n in np.__all__ if n[0] != "_"} - without:
        assert getattr(gnp, name) is not None
    made = gnp.ndarray((2, 3), "f4", order="F")
    assert type(made) is gg.Tensor
    assert isinstance(made, gnp.ndarray)
    assert issubclass(gg.Variable, gnp.ndarray)
    assert not isinstance(A, gnp.ndarray)
    assert made.flags.f_contiguous
    with pytest.raises(AttributeError, match="nothing_such"):
        gnp.nothing_such  # noqa: B018


UFUNCS = [f for f in map(vars(np).get, sorted(np.__all__)) if isinstance(f, np.ufunc) and f.nin < 3]


@pytest.mark.parametrize("numpys", UFUNCS, ids=lambda f: f.__name__)
def test_ufunc_has_numpys_attributes_and_writes_to_out_without_harm(numpys):
    """A tape keeps what it saved when `out` overwrites it."""
    ours = getattr(gnp, numpys.__name__)
    assert isinstance(ours, gnp.ufunc)
    assert (ours.nin, ours.nout, ours.types) == (numpys.nin, numpys.nout, numpys.types)
    assert pickle.loads(pickle.dumps(ours)) is ours
    args = [np.abs(A[:, :3]) + 0.5, np.abs(F[:, :3]) + 1.5][: numpys.nin]
    try:
        with np.errstate(all="ignore"):
            expected = numpys(*args)
    except TypeError:  # of integers or times
        return
    x = [gnp.array(a) for a in args]
    with gg.GradientTape() as tape, np.errstate(all="ignore"):
        tape.watch(x)
        y = gnp.exp(x[0])
        total = gnp.sum(y * y)
        if numpys.nout == 1 and np.can_cast(expected.dtype, y.dtype) and expected.shape == y.shape:
            try:
                ours(*x, out=y)
            except DTypeError:  # NumPy alone has it, and would cut a gradient
                return
            np.testing.assert_allclose(y.numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(tape.gradient(total, x[0]), 2 * np.exp(2 * args[0]), rtol=1e-6)


DIFFERENTIABLE = {
    "out": lambda x: gnp.multiply(x, x, out=gnp.zeros((3, 4))),
    "sum out": lambda x: gnp.sum(x * x, 0, None, gnp.zeros(4)),
    "order F": lambda x: gnp.array(x * x, order="F"),
    "reshape F": lambda x: gnp.arange(12.0) * x.reshape((12,), order="F"),
    "copy": lambda x: x.copy("F") * x, "astype": lambda x: x.astype("f8", "F") ** 2,
    "r_": lambda x: gnp.r_[x[0], 1.0, x[1] ** 2], "c_": lambda x: gnp.c_[x, x[:, 0]] ** 2,
    "array of Tensors": lambda x: gnp.array([x[0], x[1] * 2]),
    "poly1d": lambda x: gnp.poly1d([1.0, 2.0, 3.0])(x),
    "reduce": lambda x: gnp.add.reduce(x * x, 0, None, None, True),
    "where": lambda x: gnp.sum(x * x, where=gnp.asarray(MASK), initial=1.0),
    "shape": lambda x: _reshaped(x * x), "put": lambda x: _put(x * x),
    "std mean": lambda x: gnp.std(x, 1, mean=x[:, :1], ddof=1),
    "polyval": lambda x: gnp.polynomial.polynomial.polyval(x[0], x),
    "polyvalfromroots": lambda x: gnp.polynomial.polynomial.polyvalfromroots(x[0], x[:, 0]),
    "pinv": lambda x: gnp.linalg.pinv(x, 1e-3),
    "wider out": lambda x: gnp.exp(x, gnp.zeros((2, 3, 4))),
    "sliding": lambda x: gnp.lib.stride_tricks.sliding_window_view(x, 2, axis=1),
}  # fmt: skip


def _reshaped(x):
    x.shape = (12,)
    return x * gnp.arange(12.0)


def _put(x):
    x.put([0, 3], [1.0, 2.0])
    x.flat[7] = 0.0
    return x


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.thin(2)
def test_call_forms_are_recorded_and_traced(name):
    call = DIFFERENTIABLE[name]
    gg.testing.check_grads(call, (gnp.array(A),))
    traced = gg.function(call)(gnp.array(A))
    np.testing.assert_allclose(traced, call(gnp.array(A)), rtol=1e-12)


def test_order_that_depends_on_memory_is_refused_in_a_trace():
    def call(x):
        return gnp.arange(12.0) * gnp.asfortranarray(x).ravel("K")

    gg.testing.check_grads(call, (gnp.array(A),))
    with pytest.raises(ArgumentError, match="a traced function or vmap chooses"):
        gg.function(call)(gnp.array(A))


ERRORS = {
    "out shape": (ValueError, lambda xp, a: xp.add(a, a, out=xp.zeros(3))),
    "out dtype": (TypeError, lambda xp, a: xp.add(a, a, out=xp.zeros((3, 4), int))),
    "casting": (TypeError, lambda xp, a: a.astype(int, casting="safe")),
    "axis": (np.exceptions.AxisError, lambda xp, a: xp.sum(a, axis=5)),
    "casting of out": (
        TypeError, lambda xp, a: xp.add(a, a, out=xp.zeros((3, 4), "f4"), casting="safe")
    ),
    "axis type": (TypeError, lambda xp, a: xp.sum(a, axis="a")),
    "unknown keyword": (TypeError, lambda xp, a: xp.sum(a, nothing=1)),
    "too many arguments": (TypeError, lambda xp, a: xp.sum(a, 0, None, None, True, 0, True, 1)),
    "order": (ValueError, lambda xp, a: xp.zeros(3, order="Q")),
    "reshape": (ValueError, lambda xp, a: a.reshape(5)),
    "shape": (ValueError, lambda xp, a: setattr(a, "shape", (5,))),
    "take": (IndexError, lambda xp, a: xp.take(a, [99])),
    "mode": (ValueError, lambda xp, a: xp.take(a, [0], mode="no")),
    "quantile": (ValueError, lambda xp, a: xp.quantile(a, 1.5)),
    "range": (OverflowError, lambda xp, a: xp.array([1], "u1") + 300),
    "item": (ValueError, lambda xp, a: a.item()),
    "item index": (IndexError, lambda xp, a: a.item(99)),
    "sliding": (
        ValueError,
        lambda xp, a: xp.lib.stride_tricks.sliding_window_view(a, 2, axis=(0, 1), writeable=True),
    ),
    "dot out": (ValueError, lambda xp, a: xp.dot(a, a.T, out=xp.zeros((3, 3), "f4"))),
    "copyto": (TypeError, lambda xp, a: xp.copyto(a, 1j)),
    "singular": (np.linalg.LinAlgError, lambda xp, a: xp.linalg.inv(xp.zeros((2, 2)))),
    "vander": (ValueError, lambda xp, a: xp.vander(a)),
    "not square": (np.linalg.LinAlgError, lambda xp, a: xp.linalg.eigh(a)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # since NumPy 2.5
@pytest.mark.parametrize("name", ERRORS)
def test_bad_arguments_raise_numpys_class(name):
    kind, call = ERRORS[name]
    for xp, a in ((np, A.copy()), (gnp, gnp.array(A))):
        with pytest.raises(kind):
            call(xp, a)


def test_functions_without_an_op_refuse_to_cut_a_gradient():
    x = gnp.array(A)
    with gg.GradientTape() as tape:
        tape.watch(x)
        for call in (lambda: gnp.vectorize(abs)(x), lambda: gnp.maximum.at(x, 0, 1.0), x.byteswap):
            with pytest.raises(DTypeError, match="cut its gradient"):
                call()


def test_files_and_texts_hold_the_values(tmp_path):
    x, file = gnp.array(A), io.BytesIO()
    gnp.save(file, x)
    file.seek(0)
    same(gnp.load(file), A)
    gnp.savetxt(tmp_path / "a.txt", x)
    same(gnp.loadtxt(tmp_path / "a.txt"), A)
    gnp.savez(tmp_path / "a.npz", x=x)
    same(gnp.asarray(gnp.load(tmp_path / "a.npz")["x"]), A)
    x.tofile(tmp_path / "a.bin")
    same(gnp.fromfile(tmp_path / "a.bin").reshape(3, 4), A)
    np.testing.assert_array_equal(pickle.loads(x.dumps()), A)
    assert gnp.array2string(x, precision=2) == np.array2string(A, precision=2)


def test_transfers_as_cupys():
    x = gnp.array(F)
    assert isinstance(x.get(), np.ndarray)
    assert x.get(order="F").flags.f_contiguous
    out = np.zeros((3, 4))
    assert x.get(out=out) is out
    x.set(A)
    np.testing.assert_array_equal(x, A)
    with pytest.raises(ValueError, match=r"set: .*\(3,\)"):
        x.set(np.zeros(3))
    x.scatter_add(([0, 0], 1), 1.0)
    assert x.item(0, 1) == pytest.approx(A[0, 1] + 2)
    x.scatter_max(1, 0.0)
    x.scatter_min(1, 0.0)
    assert not x[1].any()


def test_memory_of_arrays_is_shared_only_if_that_is_asked_for():
    a = A.copy()
    views = [gnp.reshape(a, (4, 3)), gnp.asarray(a), gnp.nan_to_num(a, copy=False), gnp.positive(a)]
    views += [gnp.ravel(a), *gnp.split(a, 3), gnp.add(a, 0.0, out=a)]
    before = [x.numpy() for x in views]
    shared = gnp.asarray(a, copy=False)
    a[...] = 7.0
    assert shared.item(0, 0) == 7.0
    for x, values in zip(views, before, strict=True):
        np.testing.assert_array_equal(x, values)
    with pytest.raises(ValueError, match="copy=False"):
        gnp.array([1.0], copy=False)


def test_a_tensor_with_views_keeps_its_shape():
    x = gnp.array(A)
    y = x[0]
    with pytest.raises(ArgumentError, match="has views"):
        x.shape = (12,)
    y.shape = (2, 2)
    y[0] = 0.0
    assert x[0, :2].tolist() == [0.0, 0.0]
    with pytest.raises(DTypeError, match="Variable"):
        gg.Variable([1.0, 2.0]).shape = (1, 2)


@pytest.mark.parametrize("name", ["eye", "arange", "linspace", "zeros", "fromfunction"])
def test_creation_accepts_the_device_of_a_tensor(name):
    home = gg.asarray(1.0).device
    args = {"zeros": (3,), "linspace": (0, 1), "fromfunction": (lambda i: i, (2,))}.get(name, (3,))
    if name == "fromfunction":
        with pytest.raises(TypeError, match="device"):
            gnp.fromfunction(*args, device=home)
    else:
        result = getattr(gnp, name)(*args, device=home)
        assert result.device == home
        np.testing.assert_array_equal(result, getattr(np, name)(*args))
