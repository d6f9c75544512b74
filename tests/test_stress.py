"""Many steps, many threads and little memory: minutes on a GPU, a short run on the stand-in."""

import gc
import threading

import numpy as np
import pytest
from conftest import REAL_GPU

import gpugrad as gg
from gpugrad.errors import OutOfMemoryError

STEPS = 10_000 if REAL_GPU else 40
THREADS = 8


def trained(device, steps, seed):
    """The weights of two layers after some steps."""
    rng = np.random.default_rng(seed)
    w = [gg.Variable(gg.constant(rng.normal(size=s), device=device)) for s in ((4, 8), (8, 1))]
    x = gg.constant(rng.normal(size=(16, 4)), device=device)
    y = gg.constant(rng.normal(size=(16, 1)), device=device)
    optimizer = gg.optim.Adam(0.01)
    for _ in range(steps):
        optimizer.minimize(lambda: gg.mse(gg.tanh(x @ w[0]) @ w[1], y), w)
    return [v.numpy() for v in w]


def test_memory_does_not_grow_with_steps(cuda):
    trained(cuda, 10, 0)
    gc.collect()
    before = gg.cuda.memory_stats(cuda).in_use
    gg.cuda.reset_peak(cuda)
    trained(cuda, 10, 0)
    peak = gg.cuda.memory_stats(cuda).peak
    gg.cuda.reset_peak(cuda)
    trained(cuda, STEPS, 0)
    stats = gg.cuda.memory_stats(cuda)
    gc.collect()
    assert stats.peak <= peak + (1 << 16)
    assert gg.cuda.memory_stats(cuda).in_use <= before + (1 << 16)


def test_threads_with_streams_match_single_runs(cuda):
    steps, weights, failed = STEPS // 20, {}, []

    def work(seed):
        try:
            with gg.device(cuda), gg.cuda.stream():
                weights[seed] = trained(cuda, steps, seed)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []
    for seed in range(THREADS):
        for a, b in zip(weights[seed], trained("cpu", steps, seed), strict=True):
            np.testing.assert_allclose(a, b, 1e-6, 1e-8)


def test_training_continues_after_running_out_of_memory_many_times(cuda):
    gc.collect()
    gg.cuda.empty_cache(cuda)
    limit = gg.cuda.memory_stats(cuda).reserved + (8 << 20)
    gg.cuda.set_memory_limit(limit, device=cuda)
    try:
        for _ in range(20):
            with pytest.raises(OutOfMemoryError):
                gg.zeros(limit + 1, dtype="uint8", device=cuda)
            weights = trained(cuda, 3, 1)
    finally:
        gg.cuda.set_memory_limit(device=cuda)
    for a, b in zip(weights, trained("cpu", 3, 1), strict=True):
        np.testing.assert_allclose(a, b, 1e-9)
