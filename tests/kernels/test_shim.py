"""The shim, which runs CUDA kernels on the CPU, detects a kernel's errors."""

import uuid

import ml_dtypes
import numpy as np
import pytest
from needs import needs_nvrtc, needs_shim

from gpugrad.errors import KernelError
from gpugrad.kernels.runtime import launch
from gpugrad.testing.cuda import nvrtc, shim
from gpugrad.testing.cuda.shim import build

pytestmark = needs_shim

BLOCK_SUM = """
__global__ void block_sum(const float* x, float* y, int n) {
  __shared__ float part[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int half = blockDim.x / 2; half; half /= 2) {
    if (t < half) part[t] += part[t + half];
    %s
  }
  if (t == 0) y[blockIdx.x] = part[0];
}
"""


def block_sums(barrier, schedule):
    x, y = np.arange(500, dtype=np.float32), np.zeros(2, np.float32)
    module = shim.compile_module(BLOCK_SUM % barrier, ["block_sum"])
    module.run("block_sum", 2, 256, [x, y, np.int32(500)], schedule=schedule)
    return bool((y == [x[:256].sum(), x[256:].sum()]).all())


def test_a_reduction_is_right_in_every_schedule():
    assert all(block_sums("__syncthreads();", s) for s in shim.SCHEDULES)


def test_a_missing_barrier_shows_in_some_schedule():
    assert not all(block_sums("", s) for s in shim.SCHEDULES)


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
def test_a_write_beyond_the_end_is_an_error(schedule):
    source = "__global__ void fill(float* y, int n) { if (threadIdx.x <= n) y[threadIdx.x] = 1; }"
    module = shim.compile_module(source, ["fill"])
    with pytest.raises(shim.ShimError, match=r"fill.*outside of argument 0"):
        module.run("fill", 1, 32, [np.zeros(7, np.float32), np.int32(7)], schedule=schedule)


@pytest.mark.parametrize(("schedule", "step"), [*[(s, 1) for s in shim.SCHEDULES[:2]],
                                                (shim.SCHEDULES[-1], -1)])  # fmt: skip
@pytest.mark.parametrize("size", [4, 1024, 3000])
def test_a_read_out_of_bounds_is_an_error(schedule, step, size):
    source = """__global__ void beside(const float* x, float* y, int n, int step) {
      for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i + step] * 0;
    }"""
    module = shim.compile_module(source, ["beside"])
    x, y = (np.ones(size, np.float32) for _ in range(2))
    with pytest.raises(shim.ShimError, match=r"beside.*reads or writes outside.*argument 0"):
        module.run("beside", 1, 32, [x, y, np.int32(size), np.int32(step)], schedule=schedule)
    module.run("beside", 1, 32, [x, y, np.int32(size), np.int32(0)], schedule=schedule)
    assert not y.any()


def test_reading_a_null_pointer_is_an_error():
    source = "__global__ void at(const float* x, float* y) { y[0] = x[0]; }"
    module, y = shim.compile_module(source, ["at"]), np.zeros(1, np.float32)
    with pytest.raises(shim.ShimError, match=r"writes outside of its arguments\."):
        module.run("at", 1, 1, [None, y])


def test_threads_that_wait_for_each_other_are_an_error():
    source = "__global__ void half() { if (threadIdx.x < 16) __syncthreads(); else __syncwarp(); }"
    with pytest.raises(shim.ShimError, match=r"half.*(deadlock|have returned)"):
        shim.compile_module(source, ["half"]).run("half", 1, 64, [])


def test_a_source_may_define_the_integers_that_nvrtc_lacks():
    source = """typedef unsigned long long uint64_t; typedef signed char  int8_t;
    __global__ void wide(uint64_t* x, int8_t by) { *x = (uint64_t)1 << by; }"""
    x = np.zeros(1, np.uint64)
    shim.compile_module(source, ["wide"]).run("wide", 1, 1, [x, np.int8(40)])
    assert x[0] == 2**40


NEIGHBOURS = """
__global__ void neighbours(float* x, unsigned* arrived, int rounds) {
  __shared__ float own;
  extern __shared__ float more[];
  int blocks = gridDim.x * gridDim.y, block = blockIdx.y * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0) own = x[block], more[0] = 0;
  for (int k = 0; k < rounds; ++k) {
    %s
    float right = x[(block + 1) %% blocks];
    %s
    if (threadIdx.x == 33) x[block] = right, more[0] += 1;
  }
  __syncthreads();
  if (threadIdx.x == 7) x[block] += 100 * own + 10000 * more[0];
}
"""


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("grid", [1, 6, (2, 3)])
def test_a_grid_barrier_lets_all_blocks_pass_together(grid, schedule):
    """The memory of the barrier serves launches of other grids, and odd numbers of barriers."""
    barrier = "grid_barrier(arrived);"
    source = launch.read_source("common.cuh") + NEIGHBOURS % (barrier, barrier)
    module, arrived = shim.compile_module(source, ["neighbours"]), np.zeros(1, np.uint32)
    for blocks, size, rounds in ((6, grid, 3), (4, 4, 2)):
        blocks = 1 if size == 1 else blocks
        x = np.arange(blocks, dtype=np.float32)
        args = [x, arrived, np.int32(rounds)]
        module.run("neighbours", size, 64, args, cooperative=True, shared=4, schedule=schedule)
        want = (np.arange(blocks) + rounds) % blocks + 100 * np.arange(blocks) + 10000 * rounds
        np.testing.assert_array_equal(x, want)
    one = launch.read_source("common.cuh") + "__global__ void one(unsigned* a) { grid_barrier(a); }"
    module = shim.compile_module(one, ["one"])
    for top in (1 << 31, 0):
        module.run("one", 5, 64, [arrived], cooperative=True, schedule=schedule)
        assert arrived.item() == top


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("grid", [1, 6, (2, 3)])
@pytest.mark.parametrize("top", [0, 1 << 31])  # as barriers leave the memory
def test_one_block_is_the_last_and_reads_what_all_wrote(grid, top, schedule):
    text = """
__global__ void all(int* x, int* sum, unsigned* arrived) {
  int blocks = gridDim.x * gridDim.y, block = blockIdx.y * gridDim.x + blockIdx.x;
  if (threadIdx.x == 33) x[block] = block + 1;
  if (!is_last_block(arrived)) return;
  if (threadIdx.x < blocks) atomicAdd(sum, x[threadIdx.x]);
}
"""
    module = shim.compile_module(launch.read_source("common.cuh") + text, ["all"])
    arrived, sums = np.full(1, top, np.uint32), np.zeros(1, np.int32)
    for _ in range(2):
        args = [np.zeros(6, np.int32), sums, arrived]
        module.run("all", grid, 64, args, schedule=schedule)
        assert arrived.item() == top
    assert sums.item() == (2 if grid == 1 else 42)


def test_a_missing_grid_barrier_gives_other_values():
    source = launch.read_source("common.cuh") + NEIGHBOURS % ("", "__syncthreads();")
    x = np.arange(6, dtype=np.float32)
    args = [x, np.zeros(1, np.uint32), np.int32(3)]
    shim.compile_module(source, ["neighbours"]).run("neighbours", 6, 64, args, shared=4)
    assert (x % 100 != (np.arange(6) + 3) % 6).any()


def test_blocks_that_wait_need_a_cooperative_launch_that_ends():
    text = "__global__ void all(unsigned* a) { if (blockIdx.x < 3) grid_barrier(a); }"
    module = shim.compile_module(launch.read_source("common.cuh") + text, ["all"])
    with pytest.raises(shim.ShimError, match=r"all.*not cooperative"):
        module.run("all", 3, 32, [np.zeros(1, np.uint32)])
    with pytest.raises(shim.ShimError, match=r"all.*deadlock: blocks wait"):
        module.run("all", 4, 32, [np.zeros(1, np.uint32)], cooperative=True)
    module.run("all", 3, 32, [np.zeros(1, np.uint32)], cooperative=True)


def test_arguments_of_another_size_are_an_error():
    source = "__global__ void one(float* y, int n) {}"
    module = shim.compile_module(source, ["one"])
    with pytest.raises(shim.ShimError, match=r"\[8, 4\] bytes, the arguments \[8, 8\]"):
        module.run("one", 1, 1, [np.zeros(1, np.float32), np.int64(1)])


def test_compile_error_shows_the_compilers_message():
    with pytest.raises(shim.ShimError, match="no_such_function"):
        shim.compile_module("__global__ void bad(float* y) { y[0] = no_such_function(); }", ["bad"])


SCALED = """
#include <cuda_fp16.h>
#define FACTOR {factor}
typedef {type} number;
extern "C" __global__ void scaled(number* x) {{
  __shared__ number part[32];
  part[threadIdx.x] = FACTOR * x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = part[threadIdx.x ^ 1];
}}
// {comment}
"""


def test_sources_compiled_together_keep_their_names_macros_and_shared_memory():
    comment = uuid.uuid4().hex  # not in the cache
    texts = [
        SCALED.format(factor=factor, type=type_name, comment=comment)
        for factor in (2, 3) for type_name in ("float", "double")
    ]  # fmt: skip
    wrong = f"__global__ void scaled(float* x) {{ FACTOR; }} // {comment}"
    sources = [build.Source(text, ("scaled",)) for text in (*texts, wrong)]
    build.build_together(sources)
    compiled = [build.build_kernels(source) for source in sources[:4]]
    assert len({c.library for c in compiled}) < 4
    assert len({(c.library, c.first) for c in compiled}) == 4
    for text, factor, dtype in zip(texts, (2, 2, 3, 3), ("f4", "f8", "f4", "f8"), strict=True):
        x = np.array([1, 2], dtype)
        shim.compile_module(text, ["scaled"]).run("scaled", 1, 2, [x])
        assert x.tolist() == [2 * factor, factor]
    with pytest.raises(shim.ShimError, match="FACTOR"):  # no other source defines it
        shim.compile_module(wrong, ["scaled"])


@pytest.mark.parametrize(
    ("type_name", "dtype"), [("__half", "float16"), ("__nv_bfloat16", "bfloat16")]
)
def test_16_bit_floats_round_as_numpy_does(type_name, dtype):
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    source = (
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\ntemplate <class T> __global__ void "
        "narrow(const float* x, T* y, int n) { for (int i = 0; i < n; ++i) y[i] = T(x[i]); }"
    )
    name = f"narrow<{type_name}>"
    x = np.random.default_rng(0).normal(size=2000) * 10.0 ** np.repeat(range(-9, 11), 100)
    corners = [0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.9, 65520, 6e-8]
    x = np.concatenate([x, corners]).astype(np.float32)
    y = np.zeros(x.size, dtype)
    shim.compile_module(source, [name]).run(name, 1, 1, [x, y, np.int32(x.size)])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y.astype(np.float32), x.astype(dtype).astype(np.float32))


ROW_SUM = """
template <class T> __global__ void row_sum(const T* x, T* y, int n) {
  __shared__ compute_t<T> scratch[32];
  const Pack<T, PACKED<T>>* row = (const Pack<T, PACKED<T>>*)(x + (long long)blockIdx.x * n);
  compute_t<T> sum = 0;
  for (int i = threadIdx.x; i < n / PACKED<T>; i += blockDim.x) {
    Pack<T, PACKED<T>> some = row[i];
#pragma unroll
    for (int k = 0; k < PACKED<T>; ++k) sum += compute_t<T>(some.at[k]);
  }
  sum = block_reduce(sum, Sum(), compute_t<T>(0), scratch);
  if (threadIdx.x == 0) y[blockIdx.x] = T(sum);
}
"""


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("threads", [32, 96, 256])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_launch_runs_on_numpy_arrays(schedule, threads, dtype):
    x, y = np.arange(3 * 64).reshape(3, 64).astype(dtype), np.zeros(3, dtype)
    with shim.running(schedule):
        launch.launch(
            ROW_SUM, f"row_sum<{launch.type_name(dtype)}>", 3, threads, [x, y, np.int32(64)]
        )
    np.testing.assert_array_equal(y, x.sum(1))


def test_a_launch_on_numpy_arrays_needs_the_shim():
    with pytest.raises(KernelError, match="CuPy arrays"):
        launch.launch(ROW_SUM, "row_sum<float>", 1, 32, [np.zeros(4, np.float32)])


@needs_nvrtc
def test_nvrtc_reports_registers_spills_and_errors():
    kernel = nvrtc.compile_for("sm_90", launch.full_source(ROW_SUM), "row_sum<float>")
    assert kernel.spilled == 0
    assert 0 < kernel.registers < 64
    assert "ld.global.v4" in kernel.ptx
    with pytest.raises(KernelError, match=r"broken does not compile for sm_80:\n.*no_such_thing"):
        nvrtc.compile_for("sm_80", "__global__ void broken() { no_such_thing(); }", "broken")


def test_a_write_between_the_elements_of_a_view_is_an_error():
    source = "__global__ void fill(float* x, int step) { x[threadIdx.x * step] = 1; }"
    module = shim.compile_module(source, ["fill"])
    memory = np.zeros(12, np.float32)
    module.run("fill", 1, 6, [memory[::2], np.int32(2)])
    assert memory.tolist() == [1, 0] * 6
    with pytest.raises(shim.ShimError, match=r"outside of argument 0"):
        module.run("fill", 1, 6, [memory[::2], np.int32(1)])


def test_views_of_one_array_are_written_side_by_side():
    source = """
    __global__ void fill(float* x, float* y) {
      x[threadIdx.x * 2] = 1;
      y[threadIdx.x * 2] = 2;
    }"""
    memory = np.zeros(12, np.float32)
    shim.compile_module(source, ["fill"]).run("fill", 1, 6, [memory[::2], memory[1::2]])
    assert memory.tolist() == [1, 2] * 6
