"""The made-up CUDA driver: its memory, streams, captures and launches, through the real CuPy."""

import os
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import numpy as np
import pytest
from needs import needs_driver, needs_shim

from gpugrad.core import backend
from gpugrad.kernels.runtime.launch import OPTIONS, full_source
from gpugrad.testing.cuda import driver
from gpugrad.testing.cuda.driver import build, place, stubs
from gpugrad.testing.cuda.driver.libraries import SYMBOLS

ROOT = Path(__file__).parents[2]
on_driver = pytest.mark.skipif(
    not driver.is_active(), reason=driver.unavailable() or "there is a GPU"
)

SOURCE = """
extern "C" __global__ void add_one(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
"""


@pytest.fixture
def cp():
    """CuPy with an empty pool of its own: other tests' arrays and graphs hold blocks of CuPy's."""
    cupy = backend.cupy()
    cupy.get_default_memory_pool().free_all_blocks()
    driver.take_complaints()
    with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc):
        yield cupy
    driver.take_complaints()


@pytest.fixture
def setting():
    """Changes a setting of the driver until the test's end."""
    before = {}

    def change(name, value):
        before.setdefault(name, driver.get_setting(name))
        driver.change_setting(name, value)

    yield change
    for name, value in before.items():
        driver.change_setting(name, value)


@pytest.fixture
def kernel(cp):
    return cp.RawKernel(SOURCE, "add_one")


@needs_driver
def test_a_running_program_can_activate_the_driver():
    code = """
        from gpugrad.testing.cuda import driver
        driver.activate()
        import gpugrad as gg
        print(gg.add(gg.ones(2, device="cuda:0"), 1).device, driver.is_active())
        try:
            driver.activate()
        except RuntimeError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    first, second = run.stdout.splitlines()
    assert first == "cuda:0 True"
    assert "CuPy has been imported" in second


@needs_driver
def test_kernels_that_a_program_will_need_are_compiled_ahead(tmp_path):
    code = f"""
        import cupy
        from gpugrad.testing.cuda.driver import get_setting
        from gpugrad.testing.cuda.shim import build
        original = build._build
        def alone(text, prelude):
            if prelude and not get_setting("null_work"):
                print("compiled alone")
            return original(text, prelude)
        build._build = alone
        twice = "extern \\"C\\" __global__ void twice(int* x) {{ *x *= 2; }} // {uuid.uuid4()}"
        x = cupy.ones(1, cupy.int32)
        cupy.RawKernel(twice, "twice")((1,), (1,), (x,))
        print(x.item())
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    command = [sys.executable, "-m", "gpugrad.testing.cuda.driver"]
    outputs = [
        subprocess.run(
            [*command, *way, "python", str(script)],
            cwd=ROOT, capture_output=True, text=True, timeout=300,
        ).stdout
        for way in (["prepare"], [])
    ]  # fmt: skip
    assert "kernel sources are compiled" in outputs[0]
    assert outputs[1].split() == ["2"]


@pytest.mark.slow
@needs_driver
def test_ops_agree_with_the_cpu_in_all_phases():
    command = [sys.executable, str(ROOT / "ci" / "on_device"), "--made-up", "--ops", "tanh,matmul"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "bfloat16: 2 of 2 ops agree" in run.stdout


def test_a_build_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.BuildError, match=r"it needs g\+\+"):
        build.build()
    assert "driver build" in driver.unavailable()


@needs_shim
def test_without_a_network_the_build_names_the_package_index(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUGRAD_CACHE_DIR", str(tmp_path))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(build.BuildError, match="the package index did not answer"):
        build.build()
    assert not place.base().exists()


def test_a_stub_library_defines_each_symbol():
    source = stubs.stub_source("libcufft.so.12", ["cufftCreate", "cufftDestroy"])
    assert source.count("STUB(") == 3  # and the macro itself
    assert 'STUB("libcufft.so.12", cufftCreate)' in source
    assert "libcublas.so.13" in SYMBOLS


@on_driver
def test_memory_is_limited_and_cupys_pool_gives_back_free_blocks(cp, setting):
    before = driver.used(0)
    setting("memory", before + (1 << 20))
    x = cp.empty(600 << 10, np.uint8)
    with pytest.raises(cp.cuda.memory.OutOfMemoryError, match="Out of memory allocating"):
        cp.empty(600 << 10, np.uint8)
    del x  # now in the pool, which frees it for a larger block
    assert cp.empty(700 << 10, np.uint8).size == 700 << 10
    assert driver.used(0) - before == 700 << 10


@on_driver
def test_cupys_pool_splits_a_free_block(cp):
    whole = cp.empty(1 << 20, np.uint8)
    start, used = whole.data.ptr, driver.used(0)
    del whole
    parts = [cp.empty(256 << 10, np.uint8) for _ in range(4)]
    assert [p.data.ptr - start for p in parts] == [k << 18 for k in range(4)]
    assert driver.used(0) == used


@on_driver
def test_fresh_memory_is_nan(cp):
    with cp.cuda.using_allocator(None):
        assert np.isnan(cp.empty(5, np.float32).get()).all()


@on_driver
def test_an_access_outside_of_an_allocation_is_an_illegal_address(cp, kernel):
    with cp.cuda.using_allocator(None):
        x = cp.zeros(64, np.float32)  # 256 bytes: the end of a page
        with pytest.raises(cp.cuda.driver.CUDADriverError, match="cudaErrorIllegalAddress"):
            kernel((1,), (65,), (x, np.int32(65)))
    assert "add_one: reads or writes outside" in driver.take_complaints()[0]


@on_driver
def test_a_write_behind_the_end_of_an_allocation_shows_when_it_is_freed(cp):
    write = cp.RawKernel(SOURCE.replace("+= 1", "= 1"), "add_one")
    with cp.cuda.using_allocator(None):
        x = cp.zeros(3, np.float32)  # 12 bytes, padded to 256
        write((1,), (4,), (x, np.int32(4)))
        del x
    assert "wrote behind the end" in driver.take_complaints()[0]


@on_driver
def test_a_copy_beyond_an_allocation_is_an_invalid_value(cp):
    memory = cp.cuda.memory.Memory(512)
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        cp.cuda.runtime.memset(memory.ptr, 0, 513)


@on_driver
def test_pointers_say_where_they_point(cp):
    attributes = cp.cuda.runtime.pointerGetAttributes
    x, pinned = cp.zeros(3), cp.cuda.alloc_pinned_memory(8)
    assert (attributes(x.data.ptr).type, attributes(x.data.ptr).device) == (2, 0)
    assert attributes(pinned.ptr).type == 1
    assert attributes(np.zeros(3).ctypes.data).type == 0


@on_driver
def test_two_devices_read_each_other_only_as_peers(cp, setting):
    with cp.cuda.Device(1):
        there = cp.arange(3.0)
    with pytest.warns(RuntimeWarning, match="Peer access has been activated"):
        here = there + cp.ones(3)
    assert here.get().tolist() == [1, 2, 3]
    assert cp.asarray(there).device.id == 0
    setting("peers", 0)
    assert not cp.cuda.runtime.deviceCanAccessPeer(0, 1)
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidDevice"):
        cp.cuda.Device(7).use()


@pytest.fixture
def stream(cp):
    return cp.cuda.Stream(non_blocking=True)


@on_driver
def test_a_graph_replays_what_was_captured(cp, stream, kernel):
    x = cp.zeros(4, np.float32)
    with stream:
        stream.begin_capture()
        kernel((1,), (4,), (x, np.int32(4)))
        x *= 2
        graph = stream.end_capture()
    assert x.get().tolist() == [0] * 4
    for _ in range(3):
        graph.launch()
    assert x.get().tolist() == [14] * 4


@on_driver
def test_work_of_other_streams_joins_a_capture_through_events(cp, stream):
    other, x = cp.cuda.Stream(non_blocking=True), cp.zeros(2)
    with stream:
        stream.begin_capture()
        x += 1
        other.wait_event(stream.record())
        with other:
            x += 10
        stream.wait_event(other.record())
        graph = stream.end_capture()
    graph.launch()
    assert x.get().tolist() == [11, 11]


def _synchronize(cp, stream, other, x):
    cp.cuda.runtime.streamSynchronize(stream.ptr)


def _synchronize_device(cp, stream, other, x):
    cp.cuda.runtime.deviceSynchronize()


def _query(cp, stream, other, x):
    if status := cp.cuda.runtime.streamQuery(stream.ptr):
        raise cp.cuda.runtime.CUDARuntimeError(status)


def _wait_for_an_event_in_the_capture(cp, stream, other, x):
    stream.record().synchronize()


def _wait_for_uncaptured_work(cp, stream, other, x):
    stream.wait_event(other.record())


def _leave_work_on_another_stream(cp, stream, other, x):
    other.wait_event(stream.record())
    with other:
        x += 1


@on_driver
@pytest.mark.parametrize(
    ("forbidden", "error"),
    [
        (_synchronize, "cudaErrorStreamCaptureUnsupported"),
        (_synchronize_device, "cudaErrorStreamCaptureUnsupported"),
        (_query, "cudaErrorStreamCaptureUnsupported"),
        (_wait_for_an_event_in_the_capture, "cudaErrorCapturedEvent"),
        (_wait_for_uncaptured_work, "cudaErrorStreamCaptureIsolation"),
        (_leave_work_on_another_stream, "cudaErrorStreamCaptureUnjoined"),
    ],
)
def test_a_capture_forbids_what_cuda_forbids(cp, stream, forbidden, error):
    other, x = cp.cuda.Stream(non_blocking=True), cp.zeros(2)
    x += 1  # compiles the kernel
    runtime = cp.cuda.runtime
    with stream:
        stream.begin_capture()
        x += 1
        raised = None
        try:
            forbidden(cp, stream, other, x)
        except runtime.CUDARuntimeError as first:
            raised = str(first)
        with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCapture") as end:
            stream.end_capture()
    assert error in (raised or str(end.value))
    assert not stream.is_capturing()
    assert x.get().tolist() == [1, 1]


@on_driver
def test_only_the_relaxed_mode_allows_allocations_in_a_capture(cp, stream):
    runtime = cp.cuda.runtime
    with stream:
        stream.begin_capture()
        memory = cp.cuda.memory.Memory(512)
        stream.end_capture()
        stream.begin_capture(runtime.streamCaptureModeGlobal)
        with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureUnsupported"):
            cp.cuda.memory.Memory(512)
        with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
            stream.end_capture()
    assert memory.ptr


@on_driver
def test_the_legacy_stream_is_taken_while_a_blocking_stream_is_captured(cp):
    blocking, x = cp.cuda.Stream(), cp.zeros(2)
    runtime = cp.cuda.runtime
    x += 1
    blocking.begin_capture()
    with pytest.raises(cp.cuda.driver.CUDADriverError, match="cudaErrorStreamCaptureImplicit"):
        x += 1
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
        blocking.end_capture()


@on_driver
@pytest.mark.parametrize("waits", [True, False])
def test_late_work_shows_a_missing_wait(cp, stream, setting, waits):
    x, y = cp.zeros(2), cp.zeros(2)
    x += 1
    cp.cuda.Device().synchronize()
    setting("late", 1)
    other = cp.cuda.Stream(non_blocking=True)
    with stream:
        x += 1
    if waits:
        other.wait_event(stream.record())
    with other:
        y += x
    other.synchronize()
    stream.synchronize()
    assert y.get().tolist() == ([2, 2] if waits else [1, 1])


@on_driver
@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [((1, 65536), (1,), 0), ((1,), (1025,), 0), ((1,), (1, 1, 65), 0), ((1,), (1,), 49153)],
)  # fmt: skip
def test_a_launch_beyond_the_limits_is_an_invalid_value(cp, kernel, grid, block, shared):
    x = cp.zeros(4, np.float32)
    with pytest.raises(cp.cuda.driver.CUDADriverError, match="cudaErrorInvalidValue"):
        kernel(grid, block, (x, np.int32(4)), shared_mem=shared)
    assert driver.take_complaints()[0].startswith("add_one: ")


BARRIER = """
extern "C" __global__ void count(int* out, unsigned* arrived) {
  if (threadIdx.x == 0) atomicAdd(out, 1);
  grid_barrier(arrived);
  if (threadIdx.x == 0) out[1 + blockIdx.x] = out[0];
}
"""


@on_driver
def test_blocks_wait_for_each_other_in_a_cooperative_launch_that_fits(cp, stream):
    kernel = cp.RawKernel(full_source(BARRIER), "count", options=OPTIONS).kernel
    cooperative = {"enable_cooperative_groups": True}
    out, arrived = cp.zeros(8, "i"), cp.zeros(1, "I")
    with stream:
        stream.begin_capture()
        kernel((7, 1, 1), (64, 1, 1), (out, arrived), **cooperative)
        graph = stream.end_capture()
    cp.cuda.Device().synchronize()
    for times in (1, 2, 3):
        graph.launch()
        cp.cuda.Device().synchronize()
        assert out.tolist() == [7 * times] * 8
    with pytest.raises(ValueError, match="exceeds the limit"):
        kernel((1, 2 * 132 + 1, 1), (1024, 1, 1), (out, arrived), **cooperative)
    with pytest.raises(cp.cuda.driver.CUDADriverError, match="cudaErrorLaunchFailure"):
        kernel((2, 1, 1), (64, 1, 1), (out, arrived))
    assert "not cooperative" in "".join(driver.take_complaints())


@on_driver
def test_dynamic_shared_memory_has_a_limit_that_kernels_raise(cp, kernel):
    x = cp.zeros(4, np.float32)
    text = "__shared__ float own[1024]; own[threadIdx.x] = 1; x[threadIdx.x] += own[threadIdx.x];"
    holds = cp.RawKernel(f'extern "C" __global__ void holds(float* x) {{ {text} }}', "holds")
    with pytest.raises(cp.cuda.driver.CUDADriverError, match="cudaErrorInvalidValue"):
        holds((1,), (4,), (x,), shared_mem=46 << 10)  # and 4 that it declares
    holds.max_dynamic_shared_size_bytes = 46 << 10
    holds((1,), (4,), (x,), shared_mem=46 << 10)
    assert x.get().tolist() == [1] * 4
    x[...] = 0
    kernel.max_dynamic_shared_size_bytes = 64 << 10
    kernel((1,), (4,), (x, np.int32(4)), shared_mem=64 << 10)
    assert x.get().tolist() == [1] * 4
    with pytest.raises(cp.cuda.driver.CUDADriverError, match="cudaErrorInvalidValue"):
        kernel.max_dynamic_shared_size_bytes = 228 << 10


@on_driver
@pytest.mark.parametrize("start", ["__launch_bounds__(8)\nvoid", "void __launch_bounds__(8)"])
def test_launch_bounds_may_stand_on_either_side_of_the_type(cp, start):
    source = f'extern "C" __global__ {start} one(int* x) {{ *x = 1; }}'
    x = cp.zeros(1, cp.int32)
    cp.RawKernel(source, "one")((1,), (1,), (x,))
    assert x.get().tolist() == [1]


@on_driver
def test_a_kernel_that_does_not_compile_shows_the_compilers_message(cp):
    with pytest.raises(cp.cuda.compiler.CompileException, match="lost"):
        cp.RawKernel('extern "C" __global__ void k(int* x) { *x = lost; }', "k").compile()


@on_driver
def test_the_log_lists_launches_copies_and_library_calls(cp, stream, kernel):
    x, a = cp.zeros(4, np.float32), cp.ones((2, 2))
    with driver.logged() as work:
        kernel((2,), (32,), (x, np.int32(4)))
        a @ a
        x.get()
        with stream:
            stream.begin_capture()
            with driver.noted("outer"), driver.noted("inner"):
                x += 1
            graph = stream.end_capture()
        graph.launch()
    assert [w.notes for w in work if w.way == "replay"] == [("outer", "inner")]
    assert work[-1].arrays == ((4, (4,), (4,)),) * 2
    assert work[0].arrays == work[0].notes == ()
    kernels = [w for w in work if w.kind == "kernel"]
    assert (kernels[0].name, kernels[0].grid, kernels[0].block) == (
        "add_one",
        (2, 1, 1),
        (32, 1, 1),
    )
    assert "gemm" in next(w.name for w in work if w.kind == "cublas")
    assert ("copy", "DtoH", 16) in [(w.kind, w.name, w.bytes) for w in work]
    assert [w.way for w in kernels[-2:]] == ["capture", "replay"]
    assert [w.grid[0] for w in work if w.kind == "graph"] == [1]
