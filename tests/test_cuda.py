"""`gg.cuda`: memory, its limits and running out of it; streams; lost and missing devices."""

import contextlib
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core import backend
from gpugrad.errors import ArgumentError, IndexOutOfBoundsError, OutOfMemoryError
from gpugrad.testing.cuda import driver

MEGA = 1 << 20


@pytest.fixture
def limit(cuda):
    """A function after whose call a number of bytes fits into the device's memory, and no more.

    CuPy's pool splits blocks. The rest of a block of which a part is in use stays free in the pool,
    beyond the reach of `empty_cache`, and may hold what the limit should refuse.
    """
    fillers = []

    def set_limit(room):
        fillers.clear()
        gc.collect()
        gg.cuda.empty_cache(cuda)
        reserved = gg.cuda.memory_stats(cuda).reserved
        gg.cuda.set_memory_limit(max(reserved, 1), device=cuda)
        with contextlib.suppress(OutOfMemoryError):
            while True:
                fillers.append(gg.zeros(room, dtype="uint8", device=cuda))
        gg.cuda.set_memory_limit(reserved + room, device=cuda)

    yield set_limit
    gg.cuda.set_memory_limit(device=cuda)


def test_memory_is_counted_cached_and_freed(cuda):
    gg.cuda.empty_cache(cuda)
    before = gg.cuda.memory_stats(cuda)
    x = gg.zeros(MEGA, dtype="float32", device=cuda)
    held = gg.cuda.memory_stats(cuda)
    assert held.in_use - before.in_use == 4 * MEGA
    assert held.reserved >= held.in_use
    assert held.limit == 0
    del x
    kept = gg.cuda.memory_stats(cuda)
    assert kept.in_use == before.in_use
    assert kept.reserved == held.reserved
    assert gg.cuda.empty_cache(cuda) >= 4 * MEGA
    assert gg.cuda.memory_stats(cuda).reserved == before.reserved
    assert gg.cuda.memory_stats(cuda).free <= gg.cuda.memory_stats(cuda).total


def test_peak_counts_from_its_reset(cuda):
    gg.cuda.reset_peak(cuda)
    start = gg.cuda.memory_stats(cuda).in_use
    x = gg.zeros(MEGA, dtype="float32", device=cuda)
    y = x + 1
    del x, y
    stats = gg.cuda.memory_stats(cuda)
    assert stats.peak >= start + 8 * MEGA
    gg.cuda.reset_peak(cuda)
    assert gg.cuda.memory_stats(cuda).peak == gg.cuda.memory_stats(cuda).in_use < stats.peak


def test_reset_peak_is_refused_with_another_allocator(cuda):
    cupy = backend.cupy()
    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(lambda size: cupy.get_default_memory_pool().malloc(size))
    try:
        with pytest.raises(ArgumentError, match=r"reset_peak: an allocator was set"):
            gg.cuda.reset_peak(cuda)
    finally:
        cupy.cuda.set_allocator(before)


def test_out_of_memory_names_the_op_the_bytes_and_the_way_out(cuda, limit):
    x = gg.ones(MEGA, dtype="float32", device=cuda)
    limit(MEGA)
    with pytest.raises(OutOfMemoryError) as raised:
        gg.exp(x)
    message = str(raised.value)
    held = f"{gg.cuda.memory_stats(cuda).in_use:,}"
    for words in ("exp", f"{4 * MEGA:,} bytes", f"Arrays hold {held}", "free", "recompute_grad",
                  f"float32 ({MEGA},) on cuda:0"):  # fmt: skip
        assert words in message
    assert isinstance(raised.value, MemoryError)


@pytest.mark.parametrize("graph", [False, True])
def test_replay_out_of_memory_raises_and_can_run_later(graph, cuda, limit):
    x = gg.ones(MEGA, dtype="float32", device=cuda)
    f = gg.function(lambda x: gg.exp(x) * 2)
    for _ in range(3 if graph else 1):
        f(x)
    gg.cuda.empty_cache(cuda)
    limit(MEGA)
    with pytest.raises(OutOfMemoryError, match=r"gg.function: .* in0: float32 \(1048576,\)"):
        f(x)
    gg.cuda.set_memory_limit(device=cuda)
    np.testing.assert_allclose(f(x).numpy()[:2], 2 * np.e, 1e-6)


def test_creating_an_array_out_of_memory_names_the_call(cuda, limit):
    limit(MEGA)
    with pytest.raises(OutOfMemoryError, match=r"^zeros: .*shape=\(1048576,\), dtype=.*float32"):
        gg.zeros(MEGA, device=cuda)
    with pytest.raises(OutOfMemoryError, match=r"^copying to cuda:0: .*float64 \(1048576,\)"):
        gg.constant(np.zeros(MEGA), device=cuda)


@pytest.mark.parametrize("optimizer", [
    gg.optim.SGD(0.1), gg.optim.SGD(0.1, momentum=0.9), gg.optim.Adam(0.1),
])  # fmt: skip
def test_optimizer_step_out_of_memory_changes_nothing(optimizer, cuda, failing):
    variables = [gg.Variable(np.ones(s, np.float32), device=cuda) for s in ((4, 3), (5,), (2, 3))]
    rows = gg.IndexedSlices(
        gg.ones((2, 3), device=cuda), gg.constant([1, 1], device=cuda), dense_shape=(4, 3)
    )
    turned = gg.transpose(gg.ones((3, 2), device=cuda))
    gradients = [rows, gg.ones(5, device=cuda), turned]

    def state():
        steps = [s.step for s in optimizer._states.values()]
        return [v.numpy().tolist() for v in variables], optimizer.iterations, steps

    failures = 0
    while failing.done:
        failures += 1
        optimizer.build(variables)
        before = state()
        failing.after(failures)
        try:
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
        except gg.OutOfMemoryError:
            assert state() == before
    failing.after(0)  # no more
    assert failures > 1
    assert state()[1:] == (1, [1, 1, 1])


def test_gradient_out_of_memory_at_any_allocation_says_so(cuda, failing):
    x, failures, messages = gg.ones((2, 3), device=cuda), 0, []
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = gg.tanh(x) * gg.transpose(gg.ones((3, 2), device=cuda))
    while failing.done:
        failures += 1
        failing.after(failures)
        try:
            tape.gradient(y, x)
        except gg.OutOfMemoryError as error:
            messages.append(str(error))
    assert len(messages) == failures - 1 > 1
    assert all(text.startswith("gradient") for text in messages)


def test_cached_memory_is_used_before_memory_runs_out(cuda, limit):
    limit(9 * MEGA)
    for k in range(1, 9):  # different sizes, so that no cached block fits
        gg.zeros(k * MEGA // 4, dtype="float32", device=cuda)
    assert gg.cuda.memory_stats(cuda).reserved <= gg.cuda.memory_stats(cuda).limit


def test_memory_beside_a_split_block_does_not_count_as_room(cuda, limit):
    block = gg.zeros(4 * MEGA, dtype="float32", device=cuda)
    del block
    part = gg.zeros(MEGA, dtype="float32", device=cuda)  # a part of that block
    limit(MEGA)
    for _ in range(2):
        with pytest.raises(OutOfMemoryError):
            part * 2
    gg.cuda.set_memory_limit(device=cuda)
    assert (part * 2).shape == (MEGA,)


def test_a_tape_survives_running_out_of_memory(cuda, limit):
    x = gg.ones(MEGA, dtype="float32", device=cuda)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = gg.sum(x * x)
        limit(MEGA)
        with pytest.raises(OutOfMemoryError, match=r"^multiply"):
            x * 3.0
        gg.cuda.set_memory_limit(device=cuda)
        z = y * 2.0
    limit(MEGA)
    with pytest.raises(OutOfMemoryError, match="gradient"):
        tape.gradient(z, x)
    gg.cuda.set_memory_limit(device=cuda)
    assert (tape.gradient(z, x).numpy() == 4).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size": 5, "fraction": 0.5}, "not both"), ({"size": 0}, "size must be above 0, got 0"),
        ({"fraction": 0}, "at most 1, got 0"), ({"fraction": 1.5}, "at most 1, got 1.5"),
    ],
)  # fmt: skip
def test_a_limit_out_of_range_is_refused(arguments, words, cuda):
    with pytest.raises(ArgumentError, match=words):
        gg.cuda.set_memory_limit(device=cuda, **arguments)


def test_a_limit_may_be_a_fraction(cuda):
    gg.cuda.set_memory_limit(fraction=0.25, device=cuda)
    stats = gg.cuda.memory_stats(cuda)
    gg.cuda.set_memory_limit(device=cuda)
    assert stats.limit == stats.total // 4
    assert gg.cuda.memory_stats(cuda).limit == 0


def _indexing(cuda, bad):
    """Ops with an index out of bounds among its indices, and the ops that must be named."""
    x = gg.constant(np.arange(12.0, dtype=np.float32).reshape(4, 3), device=cuda)
    at, along = gg.constant([0, bad], device=cuda), gg.constant([[0], [bad]], device=cuda)
    flat = gg.constant([0.0, 1.0, 2.0, 3.0], device=cuda)
    return {
        "take": lambda: gg.take(x, at, axis=0),
        "gather": lambda: gg.gather(x, at),
        "take_rows": lambda: gg.nn.functional.embedding(at, x),
        "take_along_axis": lambda: gg.take_along_axis(x, along, axis=0),
        "getitem": lambda: x[at],
        "getitem of two axes": lambda: x[at, at],
        "scatter_rows": lambda: gg.scatter_rows(x[:2], at, shape=(4, 3)),
        "scatter_along_axis": lambda: gg.scatter_along_axis(
            along * 1.0, along, axis=0, shape=(4, 1)
        ),
        "index_add": lambda: gg.index_add(flat, flat[:2], index=at),
        "class_scores": lambda: gg.nll_loss(x[:2], at),
        "ctc_losses": lambda: gg.ctc_loss(
            x[:, None], at[None], *(gg.constant([n], device=cuda) for n in (4, 2))
        ),
        "scatter_rows of segments": lambda: gg.segment_sum(x[:2], at, num_segments=4),
        "segment_max": lambda: gg.segment_max(x[:2], at, num_segments=4),
        "segment_min": lambda: gg.segment_min(x[:2], at, num_segments=4),
        "segment_prod": lambda: gg.segment_prod(x[:2], at, num_segments=4),
        "index_put": lambda: gg.index_put(flat, flat[:2], index=at),
    }


_INDEXING = list(_indexing("cpu", 0))


@pytest.mark.parametrize("name", _INDEXING)
def test_an_index_out_of_bounds_raises_when_the_host_waits_for_the_device(name, cuda):
    op = name.partition(" ")[0]
    result = _indexing(cuda, 9)[name]()
    pattern = rf"{op}: an index is out of bounds .*test_cuda.py:\d+.*check_indices\(\"now\"\)"
    with pytest.raises(IndexOutOfBoundsError, match=pattern):
        gg.cuda.synchronize(cuda)
    gg.cuda.synchronize(cuda)  # it was reported
    result.numpy()
    _indexing(cuda, 2)[name]().numpy()


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(), lambda x: x.item(), float, lambda x: x.tolist(), bool, str,
        lambda x: gg.cuda.synchronize(x.device),
    ],
)  # fmt: skip
def test_every_read_of_a_value_reports_an_index_out_of_bounds(read, cuda):
    x, at = gg.ones((4,), device=cuda), gg.constant(7, device=cuda)
    y = gg.take(x, at)
    with pytest.raises(IndexOutOfBoundsError, match=r"take: an index .* from -4 to 3"):
        read(y)


@pytest.mark.parametrize("name", _INDEXING)
def test_indices_are_checked_in_the_call_or_never(name, cuda):
    call = _indexing(cuda, 9)[name]
    with gg.cuda.check_indices("now"), pytest.raises(IndexOutOfBoundsError, match=r"\b9|indices"):
        call()
    with gg.cuda.check_indices("never"):
        call().numpy()
    gg.cuda.synchronize(cuda)


def test_gradients_of_indexing_copy_nothing_to_the_host(cuda, monkeypatch):
    table, at = gg.ones((5, 3), device=cuda), gg.constant([4, 0, 4], device=cuda)
    copies, array = [], backend.cupy().ndarray
    for method in ("get", "item", "__int__", "__bool__"):
        original = getattr(array, method)
        monkeypatch.setattr(
            array, method, lambda *args, f=original: copies.append(1) or f(*args), raising=False
        )
    for read in (gg.take, gg.gather, lambda x, at, axis: x[at], gg.take_along_axis):
        index = at[:, None] if read is gg.take_along_axis else at
        with gg.GradientTape() as tape:
            tape.watch(table)
            y = gg.sum(read(table, index, axis=0))
        tape.gradient(y, table)
    assert copies == []


def test_many_calls_report_an_index_out_of_bounds_without_a_wait(cuda):
    x, good = gg.ones((4,), device=cuda), gg.constant([0], device=cuda)

    def take_often():
        gg.take(x, gg.constant([5], device=cuda))
        for _ in range(300):
            gg.take(x, good)

    with pytest.raises(IndexOutOfBoundsError, match="take: an index"):
        take_often()


def test_the_check_of_indices_is_a_statement_and_a_context(cuda):
    x, bad = gg.ones((4,), device=cuda), gg.constant([5], device=cuda)
    with pytest.raises(ArgumentError, match="check_indices: 'soon' is not one of 'now', 'later'"):
        gg.cuda.check_indices("soon")
    gg.cuda.check_indices("never")
    try:
        with gg.cuda.check_indices("now"), pytest.raises(IndexOutOfBoundsError, match="index 5"):
            gg.take(x, bad)
        gg.take(x, bad).numpy()
    finally:
        gg.cuda.check_indices("later")
    with pytest.raises(IndexOutOfBoundsError):
        gg.take(x, bad).numpy()
    with pytest.raises(IndexOutOfBoundsError, match="index 5"):
        gg.take(gg.ones((4,)), [5])  # on the CPU always in the call


def test_stream_waits_for_earlier_work_and_is_waited_for(cuda, waits):
    with waits() as pairs:
        with gg.cuda.stream(device=cuda) as s:
            assert backend.cupy().cuda.get_current_stream().ptr == s.ptr != 0
            x = gg.ones(3, device=cuda) + 1
            with gg.cuda.stream(device=cuda) as t:
                assert backend.cupy().cuda.get_current_stream().ptr == t.ptr
            assert backend.cupy().cuda.get_current_stream().ptr == s.ptr
        assert backend.cupy().cuda.get_current_stream().ptr == 0
    assert pairs == [(s.ptr, 0), (t.ptr, s.ptr), (s.ptr, t.ptr), (0, s.ptr)]
    assert x.tolist() == [2, 2, 2]
    assert (str(s.device), repr(s)) == (cuda, f"<stream {s.ptr:#x} on {cuda}>")
    s.synchronize()


def test_stream_is_exited_and_waited_for_after_an_exception(cuda, waits):
    s = gg.cuda.stream(device=cuda)
    with waits() as pairs:
        for _ in range(2):  # and it can be entered again
            with pytest.raises(KeyError), s:
                raise KeyError
    assert backend.cupy().cuda.get_current_stream().ptr == 0
    assert pairs == [(s.ptr, 0), (0, s.ptr)] * 2


def test_a_stream_of_another_library_is_used(cuda):
    theirs = backend.cupy().cuda.Stream(non_blocking=True)

    class Theirs:
        def __cuda_stream__(self):
            return 0, theirs.ptr

    with gg.cuda.stream(Theirs(), device=cuda) as s:
        assert s.ptr == theirs.ptr
    assert gg.cuda.stream(s).ptr == theirs.ptr
    with pytest.raises(ArgumentError, match="a int is not a stream"):
        gg.cuda.stream(7)


def test_replays_on_the_default_streams_of_two_threads_run_in_order(cuda):
    cp = backend.cupy()
    v = gg.Variable(gg.zeros(4, device=cuda))
    step = gg.function(lambda x: v.assign(v * 2 + x))
    ones = [gg.full((4,), float(k), device=cuda) for k in (1, 3, 5)]

    def run(x):
        with cp.cuda.Stream.ptds:
            step(x)

    for _ in range(3):  # traces, compiles, captures
        step(ones[0])
    v.assign(gg.zeros(4, device=cuda))
    step(ones[0])
    cp.cuda.Device().synchronize()
    before = driver.get_setting("late") if driver.is_active() else 0
    try:
        if driver.is_active():  # streams run when somebody waits for them
            driver.change_setting("late", 1)
        for x in ones[1:]:
            thread = threading.Thread(target=run, args=(x,))
            thread.start()
            thread.join()
        with cp.cuda.Stream.ptds:
            step(ones[0])
            cp.cuda.Stream.ptds.synchronize()
            cp.cuda.Device().synchronize()
    finally:
        if driver.is_active():
            driver.change_setting("late", before)
    assert v.numpy().tolist() == [((1 * 2 + 3) * 2 + 5) * 2 + 1] * 4


def test_a_stream_belongs_to_its_device_and_to_its_thread(second):
    seen = []
    with gg.cuda.stream(device=second) as s:
        assert int(backend.cupy().cuda.Device().id) == 1
        thread = threading.Thread(
            target=lambda: seen.append(backend.cupy().cuda.get_current_stream(1).ptr)
        )
        thread.start()
        thread.join()
    assert int(backend.cupy().cuda.Device().id) == 0
    assert str(s.device) == "cuda:1"
    assert seen == [0]


def test_threads_with_streams_train_independently(cuda):
    results = {}

    def train(k):
        with gg.device(cuda), gg.cuda.stream():
            v = gg.Variable(np.full(4, float(k)))
            for _ in range(20):
                with gg.GradientTape() as tape:
                    loss = gg.sum(v * v)
                v.assign_sub(0.1 * tape.gradient(loss, v))
            results[k] = v.numpy()

    threads = [threading.Thread(target=train, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(8):
        np.testing.assert_allclose(results[k], k * 0.8**20, 1e-6)


def test_synchronize_returns(cuda):
    gg.cuda.synchronize(cuda)
    gg.cuda.synchronize()


def test_tensor_becomes_a_cupy_array_without_a_copy(cuda):
    x = gg.constant([1.0, 2.0], device=cuda)
    there = backend.cupy().asarray(x)
    assert there.get().tolist() == [1.0, 2.0]
    pointer = there.__cuda_array_interface__["data"][0]
    assert pointer == x.__cuda_array_interface__["data"][0]


def test_cupy_array_of_a_tensor_sees_its_writes_and_keeps_its_memory(cuda):
    x = gg.constant([1.0, 2.0], device=cuda)
    there = backend.cupy().asarray(x)
    x[0] = 5.0
    there[1] = 6.0
    assert x.tolist() == [5.0, 6.0]
    y = gg.constant([7.0, 8.0], device=cuda)  # would reuse memory that is free
    assert there.get().tolist() == [5.0, 6.0]
    assert y.tolist() == [7.0, 8.0]


@pytest.mark.parametrize("read_only", [False, True])
def test_array_with_only_the_cuda_interface_becomes_a_tensor(cuda, read_only):
    held = backend.cupy().asarray(np.arange(6.0).reshape(2, 3))

    class Theirs:
        @property
        def __cuda_array_interface__(self):
            interface = dict(held.__cuda_array_interface__)
            return {**interface, "data": (interface["data"][0], read_only)}

    for make in (gg.asarray, lambda a: gg.asarray(a, dtype="float32")):
        x = make(Theirs())
        assert (x.device, x.tolist()) == (cuda, held.tolist())


def test_lost_device_error_names_the_op_and_what_to_do(cuda, monkeypatch):
    class CUDARuntimeError(RuntimeError):  # gpugrad recognizes CuPy's error by this name
        pass

    def lost(*args, **keywords):
        raise CUDARuntimeError("cudaErrorECCUncorrectable: uncorrectable ECC error encountered")

    monkeypatch.setattr(backend.READINGS[backend.cupy().ndarray].lib, "flip", lost)
    with pytest.raises(CUDARuntimeError, match="ECC") as caught:
        gg.flip(gg.zeros(3, device=cuda))
    where, way_out = caught.value.__notes__
    assert "the op flip, given x: float32 (3,)" in where
    assert "CUDA_LAUNCH_BLOCKING=1" in way_out
    assert "checkpoint" in way_out


@pytest.mark.parametrize(
    "call",
    ["synchronize()", "stream()", "memory_stats()", "empty_cache()", "set_memory_limit()",
     "reset_peak()", "memory_stats('cuda:0')"],
)  # fmt: skip
def test_device_error_without_a_gpu_names_what_to_install(call):
    code = (
        "import sys; sys.modules['cupy'] = None\n"
        "import gpugrad as gg\nassert 'gpugrad.cuda' not in sys.modules\n"
        "assert gg.cuda.is_available() is False\n"
        f"try: gg.cuda.{call}\nexcept gg.errors.DeviceError as e: print(e)"
    )
    env = {k: v for k, v in os.environ.items() if k != "GPUGRAD_DEVICE"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "There is no device cuda:0. CuPy is not installed: pip install" in done.stdout, done


def test_the_cpu_is_refused_as_a_cuda_device():
    for call in (gg.cuda.synchronize, gg.cuda.memory_stats, gg.cuda.empty_cache):
        with pytest.raises(ArgumentError, match="a CUDA device is needed, got cpu"):
            call("cpu")
