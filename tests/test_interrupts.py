"""Signals at any moment: Variables keep their values or get all new ones; nothing stays open."""

import dis
import inspect
import os
import signal
import sys

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.autodiff.batched import levels_running
from gpugrad.core.listening import graphs, recorders, threads
from gpugrad.core.scopes import scopes, updating
from gpugrad.trace.array import current_trace

HOME = os.path.dirname(gg.__file__) + os.sep
SAMPLES = 25
MANY = 500  # of up to 24,000; all of them take an hour
X = gg.constant([0.5, 2.0])


class Model:
    """Variables and an optimizer, and what a user does with them."""

    def __init__(self):
        self.v, self.w = gg.Variable([1.0, 2.0]), gg.Variable([3.0, 4.0])
        self.optimizer = gg.optim.Adam(0.25)
        self.optimizer.build([self.v, self.w])

    def assign(self):
        self.v.assign(self.v * 2 + X)
        self.w.assign_add(self.v)
        return self.w * X

    def gradient(self):
        with gg.GradientTape() as tape:
            y = gg.sum(self.v * self.w)
            with tape.stop_recording():
                z = self.v * 2
        return tape.gradient(y, self.v) + z

    def step(self):
        return self.optimizer.minimize(lambda: gg.sum(self.v * self.w * X), [self.v, self.w])

    def branch(self):
        y = gg.cond(gg.sum(self.v) > 0, lambda: self.v * 2, lambda: self.w * 1)
        self.w.assign(y)
        return y

    def forward(self):
        with gg.ForwardAccumulator(self.v, X) as accumulator:
            y = self.v * self.w
        return accumulator.jvp(y)

    def graph(self):
        with gg.Graph().as_default():
            y = self.v * self.w
            return gg.gradients(y, self.v)[0]

    def mapped(self):
        return gg.vmap(lambda x: x * self.v + self.w)(X)

    def jacobian(self):
        with gg.GradientTape() as tape:
            y = self.v * self.w
        return tape.jacobian(y, self.v)

    def state(self):
        names = {"v": self.v, "w": self.w}
        arrays = {**names, **self.optimizer.state_dict(names)}
        return {name: x.numpy() for name, x in arrays.items()}


def traced(method):
    return lambda model: gg.function(getattr(model, method))


def replayed(method):
    def prepare(model):
        f = gg.function(getattr(model, method))
        f.lower()
        f()
        return f

    return prepare


def taped(method):
    def prepare(model):
        f = gg.function(getattr(model, method))

        def call():
            with gg.GradientTape() as tape:
                y = f()
            return tape.gradient(y, model.v)

        return call

    return prepare


def eager(method):
    return lambda model: getattr(model, method)


USES = {
    "tape": eager("gradient"),
    "optimizer": eager("step"),
    "accumulator": eager("forward"),
    "Graph": eager("graph"),
    "vmap": eager("mapped"),
    "jacobian": eager("jacobian"),
    "trace": traced("assign"),
    "trace with an optimizer": traced("step"),
    "trace with a branch": traced("branch"),
    "replay": replayed("assign"),
    "replay with an optimizer": replayed("step"),
    "trace under a tape": taped("jacobian"),
}


CALLS = {dis.opmap[name] for name in ("CALL", "CALL_FUNCTION_EX")}
LOOPS = {dis.opmap["JUMP_BACKWARD"]}


def run(call, at, number=signal.SIGINT):
    """Call it with a signal at moment number `at` in gpugrad's code; the number of moments before.

    CPython looks for signals when a Python function starts, after a call of any other function, and
    when a loop jumps back; the trace function sees these moments one after the other.
    """
    count, depth = 0, 0
    last = {}  # the last instruction of each frame, and how many Python functions had started

    def moment(frame):
        nonlocal count
        count += 1
        if count == at:
            signal.getsignal(number)(number, frame)

    def follow(frame, event, arg):
        if event != "opcode":
            if event == "return":
                last.pop(id(frame), None)
            return follow
        code, starts = last.get(id(frame), (None, 0))
        now = frame.f_code.co_code[frame.f_lasti]
        last[id(frame)] = now, depth
        if code in LOOPS or (code in CALLS and starts == depth):
            moment(frame)
        return follow

    def enter(frame, event, arg):
        nonlocal depth
        depth += 1
        if not frame.f_code.co_filename.startswith((HOME, "<gpugrad")):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if not frame.f_code.co_flags & inspect.CO_GENERATOR:  # whose `try` may be around it
            moment(frame)
        return follow

    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(None)
    return count


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def interrupt(name, at, number=signal.SIGINT):
    """Use gpugrad with a signal at a moment, then look at what is left, and go on."""
    use, model, expected = USES[name], Model(), Model()
    call, expected_call = use(model), use(expected)
    before = model.state()
    first = expected_call()
    after = expected.state()
    try:
        run(call, at, number)
        assert same(model.state(), after)  # it came to a `__del__`, where Python ignores it
    except (KeyboardInterrupt, SystemExit):
        pass
    with gg.GradientTape():  # a tape whose end was interrupted leaves when the next one starts
        assert len(threads.stack) == 1
    assert (threads.stack, recorders, graphs, scopes) == ([], [], [], {})
    assert (current_trace(), levels_running(), updating._is_owned()) == (None, (), False)
    assert [signal.getsignal(n) for n in HANDLERS] == [*HANDLERS.values()]
    if same(model.state(), before):
        np.testing.assert_array_equal(call(), first)
        assert same(model.state(), after)
    else:
        assert same(model.state(), after)
        np.testing.assert_allclose(call(), expected_call(), 1e-6)
    assert gg.function(lambda x: x + model.v)(X).tolist() == (X + model.v).tolist()


def moments(name):
    """The number of moments of a use; all code is written and compiled before it is counted."""
    USES[name](Model())()
    return run(USES[name](Model()), -1)


HANDLERS = {signal.SIGINT: signal.default_int_handler}
HANDLERS |= dict.fromkeys((signal.SIGTERM, signal.SIGALRM), lambda *_: sys.exit(143))


@pytest.fixture(autouse=True)
def _handlers():
    before = {number: signal.signal(number, handler) for number, handler in HANDLERS.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", USES)
@pytest.mark.thin(3)
def test_signals_leave_all_old_or_all_new_values(name):
    count = moments(name)
    for k, at in enumerate(np.linspace(1, count, SAMPLES, dtype=int)):
        interrupt(name, at, [*HANDLERS][k % len(HANDLERS)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", USES)
def test_signals_at_many_moments_leave_all_old_or_all_new_values(name):
    count = moments(name)
    for k, at in enumerate(np.unique(np.linspace(1, count, MANY, dtype=int))):
        interrupt(name, at, [*HANDLERS][k % len(HANDLERS)])
