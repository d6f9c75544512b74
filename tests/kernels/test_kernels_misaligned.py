"""Arrays may begin at any multiple of their elements' size: views do. A GPU refuses wider accesses
there, and so does the shim."""

import numpy as np
import pytest
from needs import needs_shim

import gpugrad as gg
from gpugrad.core.backend import NUMPY
from gpugrad.function.gpu.kernel_launch import RowWise
from gpugrad.function.passes import pass_names
from gpugrad.function.passes.fuse import FusedKernel, fuse_groups
from gpugrad.testing.cuda import shim
from gpugrad.testing.cuda.shim.build import Source, build_together

pytestmark = needs_shim

OPS = [op for op in gg.OPS.values() if op.cuda is not None and op.kind != "elementwise"]


def moved(x, by):
    """The same values, `by` elements behind a multiple of 16 bytes."""
    x = np.asarray(x)
    memory = np.empty(x.nbytes + 32 + by * x.itemsize, np.uint8)
    start = -memory.ctypes.data % 16 + by * x.itemsize
    view = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


WIDE = "const int4* x, int4* y) { y[threadIdx.x] = x[threadIdx.x]; }"


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("by", [1, 2, 3, 4])
def test_the_shim_refuses_a_misaligned_access(by, place):
    module = shim.compile_module(f"__global__ void copy({WIDE}", ["copy"])
    arrays = [moved(np.ones(16, np.int32), by if k == place else 0) for k in range(2)]
    if by == 4:
        module.run("copy", 1, 4, arrays)
        return
    with pytest.raises(shim.ShimError, match=f"misaligned address, next to argument {place}"):
        module.run("copy", 1, 4, arrays)


def layer_norm(x, gamma):
    c = x - gg.mean(x, axis=-1, keepdims=True)
    return c / gg.sqrt(gg.mean(c * c, axis=-1, keepdims=True) + 1e-5) * gamma


def scaled(x, gamma):
    e = gg.exp(x * gamma - gg.max(x * gamma, axis=-1, keepdims=True))
    return e / gg.sum(e, axis=-1, keepdims=True)


def both(x, gamma):
    with gg.GradientTape() as tape:
        tape.watch([x, gamma])
        y = layer_norm(x, gamma)
    return y, *tape.gradient(y, [x, gamma])


@pytest.mark.parametrize(
    ("dtype", "columns"),
    [
        ("float16", 64),
        ("float32", 64),
        ("float64", 64),
        ("float64", 8200),
    ],  # the last is read again
)
def test_generated_row_kernels_read_arrays_that_begin_anywhere(rng, dtype, columns):
    f = both if columns == 64 else scaled
    arguments = [rng.normal(size=s).astype(dtype) for s in ((64, columns), (columns,))]
    program = gg.function(f, passes=pass_names("both")).lower(*map(gg.constant, arguments)).program
    program = program.copy()
    program.steps = [s for s in program.steps if s.name != "no_nan"]  # as on a GPU
    groups = fuse_groups(program).steps
    kernels = [k for k in groups if isinstance(k, FusedKernel) and not k.is_plain]
    assert kernels
    for kernel in kernels:
        run = RowWise(kernel)
        inputs = [rng.uniform(0.5, 1, v.shape).astype(v.dtype) for v in kernel.inputs]
        with shim.running():
            expected = run(NUMPY, inputs)
            tolerance = 1e-2 if dtype == "float16" else 1e-5
            for by in (1, 2, 4):
                for a, b in zip(run(NUMPY, [moved(x, by) for x in inputs]), expected, strict=True):
                    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def calls():
    """Calls of the ops with kernels by hand, on arrays behind a multiple of 16 bytes."""
    for op in OPS:
        for args, params in list(op.samples(np.random.default_rng(0)))[:3]:
            args = [
                moved(a.astype("f") if a.dtype == float else a, 1)
                if isinstance(a, np.ndarray)
                else a
                for a in args
            ]
            yield op, args, params


def test_kernels_by_hand_read_arrays_that_begin_anywhere():
    with shim.deferred() as collected, np.errstate(all="ignore"):
        for op, args, params in calls():
            op.cuda(NUMPY, *args, **params)
    build_together([Source(source, (name,)) for source, name, *_ in collected.launches])
    for op, args, params in calls():
        with shim.running("backwards"), np.errstate(all="ignore"):
            results = op.cuda(NUMPY, *args, **params)
        if results is NotImplemented:
            continue
        expected = op.bare(NUMPY)(*args, **params)
        several = isinstance(expected, tuple)
        for a, b in zip(
            *((results, expected) if several else ([results], [expected])), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=op.name)


def test_a_function_on_a_device_reads_arguments_and_variables_that_begin_anywhere(cuda):
    with gg.device(cuda):
        x = gg.reshape(gg.cumsum(gg.ones(257))[1:], (4, 64))
        v, gamma = gg.Variable(x), gg.ones(65)[1:]
        step = gg.function(lambda x: (layer_norm(x, gamma), layer_norm(v, gamma)))
        for by in (1.0, 2.0):
            v.assign(gg.reshape(gg.cumsum(gg.full((257,), by))[1:], (4, 64)))
            expected = layer_norm(x, gamma).numpy(), layer_norm(v, gamma).numpy()
            for a, b in zip(step(x), expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-6)
