"""A traced step does no more work than the eager one: it has the kernels, and no more memory."""

import gc
import importlib
import threading
import tracemalloc

import numpy as np
import pytest
from needs import needs_compiler, needs_thresholds

import gpugrad as gg
from gpugrad.core.backend import OPS
from gpugrad.function.cpu import c_program
from gpugrad.function.cpu.blocks import Group
from gpugrad.kernels.cpu import elementwise, ufuncs
from gpugrad.kernels.cpu.large import LARGE
from gpugrad.ops.nn import normalization

pytestmark = needs_compiler

PLAN = importlib.import_module("gpugrad.function.plan")  # gpugrad.function is a function


def programs(monkeypatch):
    """The programs that are planned, and whether each one is compiled; none is."""
    seen, decide = [], c_program.is_worth_compiling

    def planned(program, times=1):
        seen.append((program, decide(program, times)))
        return False

    monkeypatch.setattr(PLAN, "is_worth_compiling", planned)
    return seen


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_op_that_eager_calls_run_in_c_is_compiled_in_a_trace(monkeypatch):
    seen, x = programs(monkeypatch), gg.asarray(np.full(LARGE, 0.5, np.float32))
    monkeypatch.setattr(elementwise.Loops, "_kernel", lambda *args: None)  # compiling takes long
    names = [n for n, op in OPS.items() if op.cpu is True and "x" in op.arrays[0] and not op.params]
    assert len(names) > 15
    for name in names:
        gg.function(OPS[name].eager)(*[x] * len(OPS[name].arrays))
    assert [n for n, (_, compiled) in zip(names, seen, strict=True) if not compiled] == []


def test_a_program_of_many_small_steps_is_compiled(monkeypatch):
    monkeypatch.setattr(c_program, "WORTH", 40 * c_program.STEP)
    seen = programs(monkeypatch)

    def f(x):
        for _ in range(10):
            x = gg.stack([x[1] @ x[0], x[0] + x[1]])
        return x

    gg.function(f)(gg.ones((2, 2, 2)))
    assert seen[-1][1]


def test_scalars_and_small_results_of_a_program_in_c_take_no_call_of_python(monkeypatch):
    monkeypatch.setattr(c_program, "setting", lambda: "always")

    def f(a):
        (p, q, r), (s, t, u), (v, w, x) = ([row[k] for k in range(3)] for row in a)
        return p * (t * x - u * w) - q * (s * x - u * v) + r * (s * w - t * v)

    a, g = gg.constant(np.arange(9.0).reshape(3, 3) ** 2), gg.function(gg.value_and_grad(f))
    _, slope = g(a)
    np.testing.assert_allclose(slope, np.linalg.det(a) * np.linalg.inv(a).T)
    (plan,) = g._plans.values()
    assert plan.replay.source.count("empty(") == 2  # the value and the gradient
    assert "pieces(" not in plan.replay.source


@needs_thresholds
def test_a_ufunc_runs_on_threads_in_a_trace_as_in_an_eager_call(monkeypatch):
    calls, run = [], ufuncs._IN_C.ufunc
    monkeypatch.setattr(ufuncs._IN_C, "ufunc", lambda *args: calls.append(args) or run(*args))
    x, y = gg.asarray(np.ones((300, 500), np.float32)), gg.asarray(np.ones(500, np.float32))
    f = gg.function(lambda x, y: (x + y) * y)
    f(x, y)
    calls.clear()
    np.testing.assert_array_equal(f(x, y).numpy(), 2)
    assert len(calls) == 2


SIDE = 600
STEPS = {
    "slices": lambda x, y: [part + 1 for part in gg.split(x, 2, axis=1)],
    "shifted slices": lambda x, y: x[1:, 1:] + x[:-1, 1:] + x[1:, :-1] + x[:-1, :-1],
    "concat": lambda x, y: gg.concat([x, y], axis=1),
    "a transpose": lambda x, y: gg.permute_dims(x, (1, 0)) + y,
    "flip": lambda x, y: gg.flip(x, (0,)) * 2,
    "take": lambda x, y: gg.take(x, np.arange(SIDE)[::-1], axis=0),
    "pad": lambda x, y: gg.pad(x, 1),
    "a sum": lambda x, y: gg.sum(x * y, axis=0),
    "roll": lambda x, y: gg.roll(x, 3, axis=1),
}


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", STEPS)
def test_a_traced_step_takes_no_more_memory(name, monkeypatch):
    seen = programs(monkeypatch)
    x, y = (gg.asarray(np.ones((SIDE, SIDE), np.float32) * k) for k in (1, 2))
    traced = gg.function(STEPS[name])

    def peak(function):
        function(x, y)
        function(x, y)
        for thread in threading.enumerate():  # what they load would count, too
            if thread.name == "gpugrad compiler":
                thread.join()
        gc.collect()
        tracemalloc.start()
        peaks = []
        for _ in range(3):  # other threads may add to one
            tracemalloc.reset_peak()
            function(x, y)
            peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        return min(peaks)

    assert peak(traced) <= 1.05 * peak(STEPS[name]) + 20_000
    assert len(seen) == 1


@pytest.mark.parametrize("eps", [0.0, 1e-5])
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_squares_of_scaled_elements_are_not_subnormal(dtype, eps):
    x = np.random.default_rng(0).standard_normal((4, 5, 6)).astype(dtype)
    with np.errstate(under="raise", over="ignore", invalid="ignore"):  # an underflow takes long
        for axis in (-1, (0, 2)):
            _, mean_square = normalization._moments(np, x, axis)
            normalization._lengths(np, mean_square, x.dtype, eps)


@pytest.mark.parametrize(
    ("f", "width", "in_four"), [(gg.sum, 64, True), (gg.max, 1000, True), (gg.sum, 40, False)]
)
def test_a_sum_of_long_rows_does_not_wait_for_each_addition(f, width, in_four, monkeypatch):
    texts = []
    monkeypatch.setattr(c_program.CProgram, "load", lambda self: texts.append(self.source))
    monkeypatch.setattr(PLAN, "is_worth_compiling", lambda *args: True)
    gg.function(lambda x: f(2 * x, -1))(gg.ones((3, width), "float32"))
    assert ("each_block_of_four" in texts[0]) == in_four


def test_steps_that_share_no_values_are_not_run_in_blocks(monkeypatch):
    programs(monkeypatch)

    def groups(f):
        traced = gg.function(f)
        traced(gg.ones((SIDE, 2 * SIDE)))
        (planned,) = traced._plans.values()
        return [s for s in planned.replay._program.steps if isinstance(s, Group)]

    assert not groups(lambda x: [x[:, :SIDE] + 1, x[:, SIDE:] + 1])
    assert groups(lambda x: [x + 1, x - 1])
