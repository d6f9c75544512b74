"""Ops with user-written kernels: declaration, checks on the CPU, and clear errors."""

import re

import numpy as np
import pytest
from needs import needs_nvrtc, needs_shim

import gpugrad as gg
from gpugrad.core.backend import BFLOAT16, NUMPY
from gpugrad.errors import ArgumentError, DTypeError, KernelError
from gpugrad.kernels.runtime import launch
from gpugrad.testing.cuda import nvrtc, shim

pytestmark = needs_shim


def swish(cuda="x / (1 + exp(-beta * x))", **record):
    return gg.elementwise_kernel(
        "my_swish(x, beta)", cuda, formula=lambda xp, x, beta: x / (1 + xp.exp(-beta * x)),
        d=[lambda xp, x, beta, out: out * beta + xp.sigmoid(beta * x) * (1 - out * beta),
           lambda xp, x, beta, out: out * (x - out)],
        **record,
    )  # fmt: skip


SQUARE_SUM = """
template <class T> __global__ void square_sum(const T* x, T* out, long long n) {
  __shared__ compute_t<T> scratch[32];
  compute_t<T> sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    compute_t<T> v = x[blockIdx.x * n + i];
    sum += v * v;
  }
  sum = block_reduce(sum, Sum(), compute_t<T>(0), scratch);
  if (threadIdx.x == 0) out[blockIdx.x] = T(sum);
}
"""


def square_sum(source=SQUARE_SUM, **record):
    def samples(rng):
        yield [rng.normal(size=(3, 40))], {}
        yield [rng.normal(size=(2, 1))], {}
        yield [rng.normal(size=(0, 3))], {}

    defaults = {
        "grid": lambda x: x.shape[0], "block": 64, "scalars": lambda x: [x.shape[1]],
        "results": lambda x: (x.shape[:1], x.dtype), "samples": samples,
        "ref": lambda x: (x**2).sum(1), "errors": [(["text"], {}, DTypeError, "number")],
        "vjp": [lambda xp, g, x: 2 * xp.expand_dims(g, axis=1) * x],
    }  # fmt: skip

    @gg.raw_kernel(source, **{**defaults, **record})
    def square_sum(xp, x, /):
        """The sum of squares of each row of a matrix x.

        >>> import gpugrad as gg
        >>> print(gg.square_sum([[3.0, 4.0]]))
        [25.]
        """
        return xp.sum(x * x, axis=1)

    return square_sum


def test_elementwise_kernel_passes_every_check_of_an_op():
    swish(domain=[(-2, 2), (0.5, 2)])
    gg.testing.check_op("my_swish")


def test_raw_kernel_passes_every_check_of_an_op():
    square_sum()
    gg.testing.check_op("square_sum")


def test_wrong_kernel_is_caught_on_the_cpu():
    swish("x / (1 + exp(beta * x))")
    with pytest.raises(gg.testing.GradientCheckError, match="my_swish"):
        gg.testing.check_op("my_swish", checks=["kernel"])


def test_missing_barrier_in_a_raw_kernel_is_caught_on_the_cpu():
    square_sum("""
        template <class T> __global__ void square_sum(const T* x, T* out, long long n) {
          __shared__ compute_t<T> part[64];
          compute_t<T> sum = 0;
          for (int i = threadIdx.x; i < n; i += 64) sum += compute_t<T>(x[blockIdx.x * n + i])
            * compute_t<T>(x[blockIdx.x * n + i]);
          part[threadIdx.x] = sum;
          if (threadIdx.x == 0) {
            for (int i = 1; i < 64; ++i) sum += part[i];
            out[blockIdx.x] = T(sum);
          }
        }""")
    with pytest.raises(gg.testing.GradientCheckError, match="square_sum"):
        gg.testing.check_op("square_sum", checks=["kernel"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BFLOAT16])
@pytest.mark.parametrize(
    ("x", "beta"),
    [((5, 7), (5, 7)), ((5, 7), ()), ((), (3, 2)), ((4, 1), (1, 9)), ((33,), 1.5), ((0, 3), ()),
     ((), ()), ((1, 1), (1,)), ((2000,), (2000,))],
)  # fmt: skip
def test_elementwise_kernel_broadcasts_on_the_device(dtype, x, beta, cuda, rng):
    op = swish()

    def array(shape):
        return shape if isinstance(shape, float) else rng.normal(size=shape).astype(dtype)

    def put(a):
        return a if isinstance(a, float) else gg.constant(a, device=cuda)

    a, b = array(x), array(beta)
    actual, desired = op(put(a), put(b)), op(a, b)
    assert (actual.shape, actual.dtype, actual.device) == (desired.shape, desired.dtype, cuda)
    t = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3}.get(np.dtype(dtype).name, 2e-2)
    np.testing.assert_allclose(actual.numpy().astype(float), desired.numpy().astype(float), t, t)


def test_kernel_accepts_views_and_unaligned_arrays(cuda, rng):
    op, x = swish(), rng.normal(size=(6, 9)).astype(np.float32)
    there = gg.constant(x, device=cuda)
    for cut in (lambda a: a[1:, ::2], lambda a: a.T, lambda a: a[0, 1:], lambda a: a[::-1]):
        np.testing.assert_allclose(op(cut(there), 2.0).numpy(), op(cut(x), 2.0).numpy(), 1e-5)


def test_kernel_falls_back_to_the_formula_for_unsupported_dtypes(cuda):
    op = swish()
    ints, wide = gg.constant([1, 2], device=cuda), gg.constant([1.0, 2.0], "float64", device=cuda)
    narrow = gg.constant([1.0, 2.0], "float32", device=cuda)
    assert op(ints, 1.0).tolist() == op(gg.constant([1, 2]), 1.0).tolist()
    assert op(wide, narrow).dtype == np.float64


def test_raw_kernel_supports_several_results_and_keywords(cuda, rng):
    @gg.raw_kernel(
        """
        template <class T> __global__ void halves(const T* x, T* low, T* high, long long n,
                                                  compute_t<T> at) {
          long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= n) return;
          compute_t<T> v = x[i];
          low[i] = T(v < at ? v : compute_t<T>(0));
          high[i] = T(v < at ? compute_t<T>(0) : v);
        }""",
        grid=lambda x, at: -(-x.size // 32), block=32, scalars=lambda x, at: [x.size, at],
        results=lambda x, at: [(x.shape, x.dtype)] * 2, outputs=2,
        vjp=[lambda xp, g, x, at: xp.where(x < at, g[0], g[1])],
        samples=lambda rng: iter([([rng.normal(size=(4, 9))], {"at": 0.3})]),
    )  # fmt: skip
    def halves(xp, x, /, *, at=0.0):
        return xp.where(x < at, x, 0.0), xp.where(x < at, 0.0, x)

    gg.testing.check_op("halves", checks=["vjp", "jvp", "second_order", "kernel", "device"])
    x = gg.constant(rng.normal(size=50).astype(np.float16), device=cuda)
    low, high = halves(x, at=0.5)
    np.testing.assert_array_equal((low + high).numpy(), x.numpy())


def test_kernel_for_one_dtype_falls_back_to_the_formula_for_others(cuda):
    launched = []

    @gg.raw_kernel(
        "__global__ void plus_one(const float* x, float* out) { *out = *x + 1.0f; }",
        grid=lambda x: launched.append(x.dtype) or 1, block=1, vjp=[lambda xp, g: g],
    )  # fmt: skip
    def plus_one(xp, x, /):
        return x + 1

    assert plus_one(gg.constant([1.0], "float32", device=cuda)).tolist() == [2]
    assert plus_one(gg.constant([1.0], "float64", device=cuda)).tolist() == [2]
    assert launched == [np.float32]


def test_source_without_the_kernel_is_refused():
    with pytest.raises(ArgumentError, match=r"no __global__ function 'square_sum'"):
        square_sum("__global__ void another(const float* x) {}")


@pytest.mark.parametrize("signature", ["my_swish", "(x)", "my_swish()", "f(x", ""])
def test_invalid_signature_is_refused(signature):
    with pytest.raises(ArgumentError, match=r"write 'name\(x, y\)'"):
        gg.elementwise_kernel(signature, "x", formula=lambda xp, x: x, d=[1])


def test_compile_error_names_the_op_and_the_line_of_its_source(cuda):
    op = square_sum(SQUARE_SUM.replace("v * v", "w * w"))
    with pytest.raises(KernelError) as raised:
        op(gg.constant([[1.0]], device=cuda))
    line = SQUARE_SUM[: SQUARE_SUM.index("v * v")].count("\n") + 1
    assert re.search(rf"square_sum[:(]{line}\b", str(raised.value))  # g++ or NVRTC
    assert "square_sum<float> does not compile for sm_" in str(raised.value)


@needs_nvrtc
def test_compile_error_names_op_dtype_architecture_and_line():
    source = f'#line 1 "square_sum"\n{SQUARE_SUM.replace("v * v", "w * w")}'
    with pytest.raises(KernelError, match=r"square_sum<float> does not .* sm_90:\n") as e:
        nvrtc.compile_for("sm_90", launch.full_source(source), "square_sum<float>")
    assert 'square_sum(7): error: identifier "w"' in str(e.value)


@needs_nvrtc
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BFLOAT16])
def test_generated_source_compiles_and_loads_sixteen_bytes(dtype):
    x = np.ones((4, 64), dtype)
    with shim.deferred() as launches:
        swish().op.cuda(NUMPY, x, x[0])
    ((source, name, *_),) = launches.launches
    kernel = nvrtc.compile_for("sm_90", source, name)
    assert kernel.spilled == 0
    assert re.search(rf"ld\.global\.nc\.v{2 if dtype == np.float64 else 4}\.", kernel.ptx)
