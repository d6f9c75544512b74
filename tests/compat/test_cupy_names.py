"""CuPy's names and call forms: kernels, `cuda` without a GPU, and errors."""

import operator

import numpy as np
import pytest
from gpugrad.compat.cupyx.scipy.special import erf
from needs import needs_shim

import gpugrad as gg
import gpugrad.compat.cupy as cp
import gpugrad.compat.cupyx as cupyx
from gpugrad.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    KernelError,
    NoGradientError,
    ShapeError,
)
from gpugrad.testing.cuda import shim

Elementwise, Reduction, Raw = cp.ElementwiseKernel, cp.ReductionKernel, cp.RawKernel
X = np.arange(6.0).reshape(2, 3)


@pytest.fixture(params=["cpu", "cuda:0"])
def on(request):
    with gg.device(request.param):
        yield request.param


def _indexed(x):
    """Raw arrays by flat index and by position, two outputs, code before and after the loop."""
    k = Elementwise(
        "raw T x, int32 n", "T y, raw S z", "y = x[n - 1 - i] + by; z[i] = _ind.size() + x.size()",
        "indexed", loop_prep="T by = 1", after_loop="by = 0",
    )  # fmt: skip
    return k(x.ravel(), 6, cp.empty(6), cp.zeros(6, "i4"))


MAX = """struct best { double v; long long at; __device__ best() : v(-1e300), at(-1) {}
  __device__ best(double v, long long at) : v(v), at(at) {} };
__device__ best larger(best a, best b) { return a.v >= b.v ? a : b; }"""
CALLS = {
    "promotes nothing": (
        lambda x: Elementwise("T x, float32 y, S n", "S z", "z = x + y * n")(
            x, cp.float32(2), cp.asarray(3)),
        [[6, 7, 8], [9, 10, 11]],
    ),
    "writes in place": (lambda x: Elementwise("T x", "T y", "y += x")(x, x.copy()), 2 * X),
    "tuple": (
        lambda x: Elementwise("T x", "T y", "y = -x", return_tuple=True)(x.T)[0], -X.T),
    "no return": (lambda x: Elementwise("T x", "T y", "y = x", no_return=True)(x) is None, True),
    "raw": (lambda x: _indexed(x)[0], [6.0, 5, 4, 3, 2, 1]),
    "raw output": (lambda x: _indexed(x)[1], [12] * 6),
    "position": (
        lambda x: Elementwise("T x, raw T y", "T z", "z = x + y[_ind.get()]", "at",
                              False)(x, x), 2 * X),
    "half": (lambda x: Elementwise("T x", "T y", "y = x + x")(x.astype("f2")), 2 * X),
    "empty": (lambda x: Elementwise("T x", "T y", "y = x")(x[:0]), X[:0]),
    "axes": (lambda x: Reduction("T x, T y", "T z", "x * y", "a + b", "z = a", "0")(
        x, x[:1], axis=(-1,), keepdims=True), [[5.0], [14.0]]),
    "out": (lambda x: Reduction("T x", "int32 n", "x > 1", "a + b", "n = a", "0")(
        x, axis=0, out=cp.zeros(3, "i4")), [1, 1, 2]),
    "struct": (lambda x: Reduction("T x", "int64 n", "best(x, _J)", "larger(a, b)", "n = a.at",
                                   None, "argmax", reduce_type="best", preamble=MAX)(-x, axis=1),
               [0, 0]),
    "none": (lambda x: Reduction("T x", "T z", "x", "a + b", "z = a", "7")(
        x[:, :0], axis=1), [7, 7]),
}  # fmt: skip


@needs_shim
@pytest.mark.parametrize("name", CALLS)
def test_kernel_is_called_as_cupys(name, on):
    call, expected = CALLS[name]
    result = call(cp.asarray(X))
    cp.testing.assert_array_equal(result, expected)
    assert getattr(result, "device", on) == on


SUMS = """
template <class T> __global__ void sums(const T* __restrict__ x, T *y, int n /* each */, T by) {
  extern __shared__ char memory[];
  T* all = (T*)memory;
  all[threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) for (int k = 0; k < n; ++k) y[blockIdx.x] += by * BY * all[k];
}"""


@needs_shim
def test_raw_kernel_writes_what_it_does_not_promise_to_read(on):
    """Writes are recorded, through views too, and have the declared gradient."""
    module = cp.RawModule(code=SUMS, options=("-DBY=2.0",), name_expressions=("sums<double>",))
    rules = {
        "x": lambda xp, g, by, x: 2.0 * by * xp.broadcast_to(xp.expand_dims(g, axis=1), x.shape)
    }
    sums = module.get_function("sums<double>", vjp=rules)
    x, y = cp.asarray(X), cp.zeros((2, 2))
    with gg.GradientTape() as tape:
        tape.watch(x)
        sums((2,), (3,), (x, y[0], 3, 1.0), shared_mem=24)
        sums((2,), (3,), (x, y[0], 3, 1.0), shared_mem=24)
        loss = cp.sum(y[0] ** 2)
    cp.testing.assert_array_equal(y, [[12.0, 48.0], [0.0, 0.0]])
    assert loss.device == on
    cp.testing.assert_array_equal(tape.gradient(loss, x), [[48.0] * 3, [192.0] * 3])


@needs_shim
def test_gradients_of_kernels_are_declared_or_none_with_a_reason():
    plain = Elementwise("T x, S n", "T y", "y = x * n", "plain")
    known = Elementwise("T x, T z", "T y", "y = x * z", d={"x": lambda xp, z: z})
    x, n = cp.asarray(X), cp.arange(3)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = plain(x, n), known(x[:1], x)
    assert tape.gradient(y, x) is None
    assert "cupy_plain" in (why := tape.explain(y, x))
    assert "declared without" in why
    with pytest.raises(NoGradientError, match="by the input z was declared"):
        tape.gradient(z, x)
    gg.testing.check_grads(lambda x: known(x, X.sum() * cp.ones(3)), (x[:1],))
    add = Reduction("T x, T y", "T z", "x + y", "a + b", "z = a", "0", d=[1.0, 1.0])
    gg.testing.check_grads(lambda x: add(x, cp.ones((2, 4)), axis=1), (x[:, :1],))
    fused = cp.fuse()(lambda x: cp.exp(plain(x, n)) + known(x, x))
    cp.testing.assert_allclose(fused(x), np.exp(X * [0, 1, 2]) + X * X)
    cp.testing.assert_array_equal(gg.vmap(plain, in_axes=(0, None))(x, n), X * [0, 1, 2])


def _one(*args, params="T x, raw T y", d=None, **keywords):
    return Elementwise(params, "T z", "z = x + y[0]", d=d)(*args, **keywords)


T, F4 = cp.ones(2), cp.ones(2, "f4")
REFUSED = {
    "dtypes": (lambda: _one(T, F4), DTypeError, r"y is float32.*'T y' is float64.*astype"),
    "array": (lambda: _one(T, np.ones(2)), DTypeError, "Tensors and numbers, got ndarray"),
    "count": (lambda: _one(T), ArgumentError, "2 inputs and 0 or 1 outputs"),
    "output": (lambda: _one(T, T, 1.0), DTypeError, "outputs must be Tensors"),
    "output shape": (lambda: _one(T, T, T[:1]), ShapeError, r"z is \(1,\), not \(2,\)"),
    "shapes": (lambda: _one(T, T, cp.ones(3)), ShapeError, r"\(2,\).*\(3,\)"),
    "size": (lambda: _one(T, T, size=3), ArgumentError, "size= is needed if all arrays are raw"),
    "type": (lambda: _one(T, T, params="T x, raw T y, S n"), ArgumentError, "3 inputs"),
    "letter": (lambda: Elementwise("T x, S n", "T y", "y = x")(T, 3), DTypeError, "'S'.*'int32 n'"),
    "parameter": (lambda: _one(T, T, params="x, y"), ArgumentError, "'x' is not a parameter"),
    "index": (lambda: _one(T, T, params="T i"), ArgumentError, "'T i' is not a parameter"),
    "derivative": (lambda: _one(T, T, d={"w": 1}), ArgumentError, r"by \['x', 'y'\], got.*'w'"),
    "source": (lambda: Raw("__global__ void f(int x) { y; }", "f")((1,), (1,), (1,)),
               KernelError, "f: .*does not compile"),
    "out of bounds": (lambda: Raw("__global__ void g(double* x) { x[2] = 1; }", "g")(
        (1,), (1,), (T,)), KernelError, "outside"),
    "module": (lambda: cp.RawModule(), ArgumentError, "code= or path="),
    "jit": (lambda: cupyx.jit.rawkernel(), ArgumentError, "RawKernel or ElementwiseKernel"),
    "name": (lambda: cp.lingspace, AttributeError, "no 'lingspace'.*linspace"),
    "cupyx": (lambda: cupyx.scater_add, AttributeError, "scatter_add"),
}  # fmt: skip


@needs_shim
@pytest.mark.parametrize("name", REFUSED)
def test_bad_calls_are_refused_with_the_way_out(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()


def test_kernel_without_a_compiler_says_what_to_do(monkeypatch):
    monkeypatch.setattr(shim, "unavailable", lambda: "needs g++")
    with pytest.raises(KernelError, match=r"needs g\+\+. Install one, use a GPU"):
        _one(T, T)


def test_cuda_without_a_gpu_breaks_no_program(monkeypatch):
    monkeypatch.setattr(cp.cuda, "is_available", lambda: False)
    monkeypatch.setattr(cp, "is_available", lambda: False)
    stream, start, end = cp.cuda.Stream(non_blocking=True), cp.cuda.Event(), cp.cuda.Event()
    with cp.cuda.Device(0) as device, stream, cp.cuda.using_allocator(cp.cuda.MemoryPool().malloc):
        start.record()
        stream.record(end)
        stream.wait_event(end)
    for waits in (device, stream, end, cp.cuda.Stream.null, cp.cuda.get_current_stream()):
        waits.synchronize()
    assert cp.cuda.get_elapsed_time(start, end) >= 0
    pool = cp.get_default_memory_pool()
    pool.free_all_blocks()
    assert (pool.used_bytes(), cp.get_default_pinned_memory_pool().n_free_blocks()) == (0, 0)
    assert cp.cuda.runtime.getDeviceCount() == 0
    assert int(cp.cuda.Device()) == 0
    cp.cuda.nvtx.RangePush("step")
    with pytest.raises(DeviceError), cp.cuda.Device(9):
        pass
    with pytest.raises(AttributeError, match="Stream"):
        _ = cp.cuda.Streem


def test_cuda_on_a_device_is_cupys(cuda):
    with cp.cuda.Device(0) as device, cp.cuda.Stream() as stream:
        x = cp.arange(3.0)
        assert x.device == cuda
        assert cp.cuda.get_current_stream() == stream
    device.synchronize()
    assert device.compute_capability
    assert cp.get_default_memory_pool().used_bytes() > 0
    assert cp.cuda.runtime.getDeviceCount() > 0
    assert not cp.cuda.Stream.null.ptr


def test_modules_of_cupyx_scipy_are_scipys_on_tensors():
    """Those of `gpugrad.scipy`, loaded when they are first used."""
    from gpugrad.compat.cupyx.scipy.signal.windows import hann
    from gpugrad.compat.cupyx.scipy.sparse.linalg import cg

    from gpugrad.compat.cupyx.scipy import fft, ndimage

    x = cp.asarray(X)
    with fft.get_fft_plan(x, axes=(1,)) as plan:
        cp.testing.assert_allclose(fft.fft(x, plan=plan), np.fft.fft(X))
    assert ndimage.sobel(x).shape == hann(6).reshape(2, 3).shape
    assert cg is gg.scipy.sparse.linalg.cg
    assert "cg" in dir(cupyx.scipy.sparse.linalg)
    assert cupyx.scipy.get_array_module(x) is cupyx.scipy
    assert cupyx.scipy.get_array_module(X).__name__ == "scipy"
    for name in ("nothing", "ndimage.nothing"):
        with pytest.raises(AttributeError, match="nothing"):
            operator.attrgetter(name)(cupyx.scipy)


def test_names_are_numpys_and_cupys(capsys):
    x = cp.array([[1, 4], [9, 16]], "f8")
    assert {"ElementwiseKernel", "linspace", "linalg", "testing"} <= set(dir(cp))
    assert isinstance(x, cp.ndarray)
    assert cp.float32 is np.float32
    assert cp.get_array_module(1, x) is cp
    assert cp.get_array_module(np.ones(1)) is np
    assert cp.asnumpy(x, order="F").flags.f_contiguous
    assert cp.asnumpy(x, out=np.zeros((2, 2)))[1, 1] == 16
    cp.testing.assert_allclose(cupyx.rsqrt(x), 1 / np.sqrt(x.get()))
    cp.testing.assert_allclose(erf(x), cupyx.scipy.special.erf(x))
    for scatter, expected in ((cupyx.scatter_max, [7, 4]), (cupyx.scatter_min, [7, 2])):
        scatter(x, 0, cp.asarray([7.0, 2.0]))
        assert x[0].tolist() == expected
    assert (cp.Inf, cp.AxisError) == (np.inf, np.exceptions.AxisError)
    assert cp.trapz(x[0]).item() == 4.5
    assert (cp.NINF, cp.asfarray([1]).dtype) == (-np.inf, "f8")
    assert cp.msort(cp.asarray(X[::-1])).tolist() == X.tolist()
    state = cp.random.get_random_state()
    cp.random.set_random_state(cp.random.RandomState(3))
    drawn = cp.random.rand(2).tolist()
    cp.random.set_random_state(state)
    assert drawn == cp.random.RandomState(3).rand(2).tolist() != cp.random.rand(2).tolist()
    with pytest.raises(DTypeError, match="RandomState is needed, got a int"):
        cp.random.set_random_state(3)
    calls = []
    noted = cp.memoize(for_each_device=True)(lambda n: calls.append(n) or n)
    assert [noted(1), noted(1)] == [1, 1]
    assert calls == [1]
    cp.clear_memo()
    assert noted(1)
    assert calls == [1, 1]
    with cupyx.errstate(linalg="raise"), cupyx.allow_synchronize(False):
        cp.show_config()
    assert cupyx.seterr(linalg="raise") == cupyx.geterr()
    assert "gpugrad" in cupyx.get_runtime_info()
    assert isinstance(cupyx.empty_like_pinned(cupyx.zeros_pinned(2)), np.ndarray)
    assert "gpugrad" in capsys.readouterr().out
    assert "f: " in repr(cupyx.profiler.benchmark(lambda: None, n_repeat=2, name="f"))
