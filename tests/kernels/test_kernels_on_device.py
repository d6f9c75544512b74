"""Generated kernels run on a device, which is a fake one where there is no GPU."""

import numpy as np
import pytest
from needs import needs_shim
from taping import tape_gradient, taped

import gpugrad as gg
from gpugrad.core.backend import BFLOAT16, cupy
from gpugrad.kernels.codegen import element_kernel
from gpugrad.kernels.runtime import launch as launch_module
from gpugrad.kernels.runtime.launch import launch
from gpugrad.testing import check_op

pytestmark = needs_shim


def gradients(function, device, arrays):
    xs = [gg.constant(a).to_device(device) for a in arrays]
    tape, y = taped(function, *xs)
    return [t.to_device("cpu") for t in (y, *tape.gradient(y, xs))]


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, w, b: gg.tanh(x * w + b), [(3, 4), (4,), (4,)]),
        (lambda x, w: gg.exp(x.T) / (1 + w * w), [(3, 4), (4, 1)]),
    ],
    ids=["leading", "trailing"],
)
def test_backward_pass_on_a_device_runs_kernels(function, shapes, cuda, rng, monkeypatch):
    ran, get_kernel = [], element_kernel.get_kernel
    monkeypatch.setattr(
        element_kernel, "get_kernel", lambda s, n: ran.append(n) or get_kernel(s, n)
    )
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    actual, desired = gradients(function, cuda, arrays), gradients(function, "cpu", arrays)
    assert sum("_by_" in name for name in ran) == 3
    for a, d in zip(actual, desired, strict=True):
        assert (a.dtype, a.shape) == (d.dtype, d.shape)
        np.testing.assert_allclose(a.numpy(), d.numpy(), rtol=2e-5, atol=1e-6)


def test_scalars_out_of_the_dtypes_range_use_the_library(cuda):
    x = gg.constant(np.array([1, 2], np.int8)).to_device(cuda)
    assert gg.less(x, 1000).to_device("cpu").numpy().all()


@pytest.mark.parametrize("function", [lambda x: x * 2.5 + 1, lambda x: gg.clip(x, 0.3, 1)])
def test_scalars_keep_bfloat16_in_a_kernel(function, cuda, rng):
    x = rng.normal(size=7).astype(BFLOAT16)
    actual, desired = gradients(function, cuda, [x]), gradients(function, "cpu", [x])
    for a, d in zip(actual, desired, strict=True):
        assert (a.dtype, a.shape) == (d.dtype, d.shape)
        np.testing.assert_allclose(a.numpy().astype(float), d.numpy().astype(float), 1e-2)


def test_scalars_keep_bfloat16_under_vmap(cuda, rng):
    x = rng.normal(size=(3, 4)).astype(BFLOAT16)
    each = gg.vmap(gg.grad(lambda v: gg.sum((v - 1.5) ** 3)))
    actual, desired = each(gg.constant(x, device=cuda)), each(gg.constant(x, device="cpu"))
    assert actual.dtype == BFLOAT16
    np.testing.assert_allclose(actual.numpy().astype(float), desired.numpy().astype(float), 1e-2)


@pytest.mark.parametrize("function", [gg.add, gg.maximum, gg.bitwise_and, gg.less])
def test_integers_beyond_int64_use_the_library(function, cuda):
    x = np.array([1, 2, 2**64 - 1], np.uint64)
    for number in (2**63, 2**64 - 1, 7):
        actual = function(gg.constant(x, device=cuda), number)
        np.testing.assert_array_equal(actual.numpy(), function(gg.constant(x), number).numpy())


@pytest.mark.parametrize("f", [lambda a: a**2, lambda a: 2.0**a, lambda a: a**2.5])
def test_second_order_gradient_of_bfloat16_with_a_scalar(f, cuda):
    def curvature(x):
        return tape_gradient(lambda x: tape_gradient(f, x), x)

    x = gg.constant([1.0, 2.0], dtype="bfloat16")
    actual, desired = curvature(x.to_device(cuda)), curvature(x)
    np.testing.assert_allclose(*(a.numpy().astype(float) for a in (actual, desired)), rtol=0.02)


@pytest.mark.parametrize("name", sorted(op.name for op in gg.OPS.values() if op.cuda is not None))
def test_hand_written_kernel_on_a_device_matches_the_cpu(name, cuda):
    """The only test of the kernels by hand under compute-sanitizer: others run them on the CPU."""
    check_op(name, checks=["device"], device=cuda)


HOLD = """
extern "C" __global__ void hold(float* y, int n) {
  __shared__ float own[1024];
  extern __shared__ float more[];
  own[threadIdx.x] = 1, more[n - 1 - threadIdx.x] = 2;
  __syncthreads();
  if (threadIdx.x == 0) y[0] = own[31] + more[n - 32];
}"""


def test_kernels_may_have_the_shared_memory_that_a_launch_asks_for_and_what_they_declare(cuda):
    y = cupy().zeros(1, np.float32)
    for kib in (1, 46, 100, 47):  # 46 and 4 of its own are more than 48
        launch(HOLD, "hold", 1, 32, [y, np.int32(kib * 256)], kib * 1024)
        assert y.get().tolist() == [3]
    allowed = launch_module._compile(HOLD, "hold", 0).kernel.max_dynamic_shared_size_bytes
    assert allowed == 100 * 1024  # another thread may be about to launch it with as many
