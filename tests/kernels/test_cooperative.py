"""Cooperative launches: the memory of their barriers, which streams do not share."""

import threading

import numpy as np
import pytest
from needs import needs_shim

import gpugrad as gg
from gpugrad.core.backend import cupy
from gpugrad.kernels.runtime import cooperative


@pytest.fixture
def cp(cuda, monkeypatch):
    monkeypatch.setattr(cooperative, "_barriers", {})  # a new stream may have an old one's address
    return cupy()


def test_a_barrier_belongs_to_a_stream_and_to_the_thread_that_has_the_stream(cp):
    x = cp.empty(1)
    first = cooperative.barrier_of(x)
    with cp.cuda.Stream(non_blocking=True) as stream:
        other = cooperative.barrier_of(x)
        assert cooperative.barrier_of(x) is other is not first
    found = []

    def look(stream):
        with stream:
            found.append(cooperative.barrier_of(x))

    # each thread may get the identifier of the last
    for each in (stream, cp.cuda.Stream.null, *[cp.cuda.Stream.ptds] * 3):
        thread = threading.Thread(target=look, args=(each,))
        thread.start(), thread.join()
    assert (found[0], found[1]) == (other, first)
    assert len({a.data.ptr for a in (first, other, *found)}) == 5
    assert [a.item() for a in (first, other, *found)] == [0] * 7


def test_a_barrier_is_not_allocated_in_the_pool_of_a_graph(cp):
    pool = cp.cuda.MemoryPool()
    with cp.cuda.using_allocator(pool.malloc), cp.cuda.Stream(non_blocking=True):
        x = cp.empty(1)
        before = pool.used_bytes()
        cooperative.barrier_of(x)
        assert pool.used_bytes() == before > 0


def test_a_barrier_that_is_new_in_a_capture_is_cleared_by_the_graph(cp):
    stream = cp.cuda.Stream(non_blocking=True)
    x = cp.empty(1)
    with stream:
        stream.begin_capture()
        one, two = (cooperative.barrier_of(x) for _ in range(2))
        stream.end_capture()
    assert one is not two


@needs_shim
def test_replays_of_a_graph_pass_its_barriers_every_time(cuda, rng):
    x = gg.asarray(rng.normal(size=(4, 8, 3, 5)).astype(np.float32))
    weight, bias = gg.ones(8), gg.zeros(8)

    @gg.function
    def step(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y, *_ = gg.nn.batch_norm(x, None, None, weight, bias, training=True)
            loss = gg.sum(y**3)
        return tape.gradient(loss, x)

    first = step(x).numpy()
    for _ in range(3):  # a graph is captured, and launched again
        np.testing.assert_array_equal(step(x).numpy(), first)
