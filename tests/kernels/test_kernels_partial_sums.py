"""Partial sums of several kernels, added up in one launch."""

import numpy as np
import pytest
from needs import each_architecture, needs_nvrtc, needs_shim

import gpugrad as gg
from gpugrad.core.backend import BFLOAT16
from gpugrad.kernels.by_hand import partial_sums
from gpugrad.kernels.by_hand.partial_sums import INSTANCES, Sums, Waiting, end_or_wait
from gpugrad.kernels.runtime import launch
from gpugrad.testing.cuda import nvrtc, shim

CASES = [(np.float32, np.float32), (np.float64, np.float64), (np.float32, np.float16),
         (np.float32, BFLOAT16)]  # fmt: skip


def refuse():
    raise AssertionError("the kernel's own ending ran")


@needs_shim
@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize(("wide", "dtype"), CASES, ids=str)
def test_sums_that_wait_are_added_up_in_one_launch(wide, dtype, schedule, rng, launches_of):
    parts, columns = 37, 70
    partials = [rng.normal(size=(parts, columns)).astype(wide) for _ in range(5)]
    sums = [np.full(columns, 7, dtype) for _ in partials]
    launches = launches_of(partial_sums)
    with shim.running(schedule), Waiting() as waiting:
        for some in (slice(0, 2), slice(2, 3), slice(3, 5)):
            flat = [p.reshape(-1) for p in partials[some]]
            end_or_wait(Sums(flat, sums[some], parts, columns, refuse))
        assert len(waiting) == 3
        assert not launches
    assert len(launches) == 1
    for p, s in zip(partials, sums, strict=True):
        np.testing.assert_allclose(
            s.astype(np.float64), p.sum(0).astype(dtype).astype(np.float64), 1e-2, 1e-2
        )
        if wide == dtype:
            np.testing.assert_allclose(s, p.sum(0), 1e-5, 1e-5)


def test_a_kernel_that_waits_alone_or_with_nobody_runs_its_own_ending():
    ended = []
    alone = Sums([np.zeros(6)], [np.zeros(3)], 2, 3, lambda: ended.append("own"))
    end_or_wait(alone)
    assert ended == ["own"]
    with Waiting():
        end_or_wait(alone)
        assert ended == ["own"]
    assert ended == ["own"] * 2


def test_sums_of_a_step_that_failed_do_not_wait_for_the_next():
    alone = Sums([np.zeros(6)], [np.zeros(3)], 2, 3, refuse)

    def fail():
        with Waiting():
            end_or_wait(alone)
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fail()
    with Waiting() as waiting:
        assert not len(waiting)


@needs_shim
@pytest.mark.parametrize("read_early", [False, True])
def test_gradients_of_several_norms_are_right(read_early, cuda, rng):
    x = rng.normal(size=(40, 12)).astype(np.float32)

    def training(device, wrapped):
        weights = [gg.Variable(np.linspace(0.5, 1, 12).astype(np.float32), device=device)
                   for _ in range(6)]  # fmt: skip
        optimizer = gg.optim.SGD(0.1)

        def step(x):
            with gg.GradientTape() as tape:
                y = x
                for a, b in zip(weights[::2], weights[1::2], strict=True):
                    y = gg.tanh(gg.nn.layer_norm(y, a, b))
                loss = gg.mean(y**2)
            gradients = tape.gradient(loss, weights)
            if read_early:
                loss = loss + gg.sum(gradients[4] ** 2)
            optimizer.apply_gradients(zip(gradients, weights, strict=True))
            return loss

        step = wrapped(step)
        losses = [step(gg.constant(x, device=device)).numpy() for _ in range(4)]
        return [*losses, *(w.numpy() for w in weights)]

    for a, b in zip(training("cuda:0", gg.function), training("cpu", lambda f: f), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)


@needs_nvrtc
@each_architecture
def test_kernels_compile_without_spills(architecture):
    for source, name in INSTANCES:
        kernel = nvrtc.compile_for(architecture, launch.full_source(source), name)
        assert kernel.spilled == 0, name
        assert ".local" not in kernel.ptx, name
