"""Forked processes: none hangs on what another thread was doing, and each draws its own numbers."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

import gpugrad

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

FORKS = 4
BEGIN = """
import os, signal, sys, threading, time, warnings
import numpy as np
import gpugrad as gg
from gpugrad.core import forking, listening, scopes

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks beside threads
sys.setswitchinterval(1e-5)

def in_fork(call):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(200)  # kills a child that hangs
        try:
            result = repr(call())
            os.write(write, result.encode())
            os._exit(0)
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            os._exit(1)
    status = os.waitpid(pid, 0)[1]
    os.close(write)
    with os.fdopen(read) as pipe:
        result = pipe.read()
    assert status == 0, f"the child ended with {status}"
    return eval(result)

x = gg.constant(np.linspace(0.0, 1.0, 8))
v = gg.Variable(np.ones(8))
weights = [gg.Variable(np.ones(3)), gg.Variable(np.ones(4))]
optimizer = gg.optim.Adam(0.1)
generator = gg.random.Generator(1)
kept = gg.function(lambda a: gg.tanh(a * v))
kept(x)
step = gg.function(lambda: optimizer.apply_gradients([(w.value() * 0.1, w) for w in weights]))

def train():
    with gg.GradientTape() as tape:
        loss = gg.sum(gg.tanh(weights[0])) + gg.sum(weights[1] ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

def everything():
    kept(x)
    gg.function(lambda a: gg.exp(a) * v)(x)
    v.assign(v.value() * 1.0)
    v.assign_add(gg.ones_like(v) * 0.0)
    train()
    step()
    generator.normal(3)
    gg.vmap(gg.sum)(gg.ones((3, 2)))
    gg.random.normal(3)
    threads = {t for t in scopes.scopes if t != threading.get_ident()}
    return len(listening.recorders), len(threads), gg.exp(x).shape
"""

BUSY = {
    "traces": "gg.function(lambda a: gg.tanh(gg.exp(a) * v))(x)",
    "replays": "kept(x)",
    "assigns": "v.assign(v.value() * 1.0)",
    "steps": "train()",
    "replays steps": "step()",
    "draws": "generator.normal(3); gg.random.normal(3)",
    "restarts streams": "generator.state = generator.state; generator.split()",
    "runs a vmap": "gg.vmap(gg.sum)(gg.ones((3, 2)))",
    "runs jobs": "gpugrad.core.threads.run_parallel(abs, [(1,)] * 4)",
    "records in a Graph": "with gg.Graph().as_default(): gg.gradients(x * x, x)",
    "checks for NaN": "with gg.debug.nans(): gg.tanh(x)",
}


def run(text):
    """Run a script behind `BEGIN`; what it prints."""
    script = [sys.executable, "-c", BEGIN + textwrap.dedent(text)]
    ended = subprocess.run(script, timeout=300, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return ended.stdout


@pytest.mark.parametrize("busy", BUSY)
@pytest.mark.thin(2)
def test_fork_while_another_thread_is_busy_goes_on_with_everything(busy):
    run(f"""
    import gpugrad
    stop = False
    def work():
        while not stop:
            {BUSY[busy]}
    thread = threading.Thread(target=work)
    thread.start()
    try:
        for k in range({FORKS}):
            time.sleep(0.0007 * k)
            assert in_fork(everything) == (0, 0, (8,))
    finally:
        stop = True
        thread.join()
    """)


def test_locks_held_by_another_thread_are_free_in_a_fork():
    run("""
    forking.LONGEST_WAIT = 0.2
    held, end = threading.Event(), threading.Event()
    def hold():
        for lock in list(forking._locks):
            lock.acquire()
        held.set()
        end.wait()
        for lock in list(forking._locks):
            lock.release()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert len(forking._locks) >= 7  # of the library, two functions and two generators
    assert in_fork(everything) == (0, 0, (8,))
    end.set()
    thread.join()
    everything()
    """)


def test_fork_waits_for_the_update_of_another_thread():
    out = run("""
    held = threading.Event()
    def hold():
        with scopes.updating:
            held.set()
            time.sleep(0.5)
            v.assign(2 * v.value())
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    print(in_fork(lambda: v.numpy().tolist()))
    """)
    assert out.strip() == str([2.0] * 8)


def test_fork_inside_a_tape_a_trace_and_an_update_goes_on_there():
    run("""
    def children(a):
        assert in_fork(lambda: float(gg.sum(gg.exp(gg.zeros(2))))) == 2.0
        return a * v
    gg.function(children)(x)
    def gradient():
        y = gg.sum(x * x)
        return tape.gradient(y, x).tolist()
    with scopes.updating, gg.GradientTape() as tape:
        tape.watch(x)
        assert in_fork(gradient) == (2 * x).tolist()
        assert in_fork(lambda: len(listening.recorders)) == 1
    everything()
    """)


def test_fork_drops_the_tapes_of_other_threads():
    run("""
    opened, end = threading.Event(), threading.Event()
    def record():
        with gg.debug.nans(), gg.GradientTape(), gg.Graph().as_default():
            opened.set()
            end.wait()
    thread = threading.Thread(target=record)
    thread.start()
    opened.wait()
    from gpugrad.core.listening import graphs
    from gpugrad.trace.numerics import checks
    before = len(listening.recorders), len(graphs), len(checks)
    assert before == (3, 1, 1), before
    assert in_fork(lambda: (len(listening.recorders), len(graphs), len(checks))) == (0, 0, 0)
    end.set()
    thread.join()
    """)


def test_fork_while_another_thread_imports_ops_waits_for_them():
    run(
        """
    name = "betaln"
    assert not gpugrad_ops.has(name)
    threads = [threading.Thread(target=lambda: gpugrad_ops[name]) for _ in range(2)]
    for t in threads:
        t.start()
    time.sleep(0.002)
    assert in_fork(lambda: gg.special.betaln(x + 1, 2).shape) == (8,)
    """.replace("gpugrad_ops", "gg.core.backend.OPS")
    )


@pytest.mark.parametrize(("begun", "first_use"), [
    ("scipy", "gg.special.betaln(x + 1, 2)"),
    ("gpugrad.nn", "gg.nn.functional.relu(x)"),
    ("gpugrad.scipy.interpolate", "gg.scipy.interpolate.CubicSpline(np.arange(8), x)(x)"),
])  # fmt: skip
@pytest.mark.thin(2)
def test_fork_while_another_thread_imports_waits_for_it(begun, first_use):
    run(f"""
    assert "{begun}" not in sys.modules
    thread = threading.Thread(target=lambda: {first_use})
    thread.start()
    while "{begun}" not in sys.modules:
        time.sleep(0)
    assert in_fork(lambda: {first_use}.shape) == (8,)
    thread.join()
    """)


def test_cached_property_that_another_thread_computes_is_free_in_a_fork():
    run("""
    ends = []  # a list, not an Event: the fork may copy an Event while the thread holds its lock
    class Slow:
        @forking.cached_property
        def value(self):
            started.set()
            while not ends:
                time.sleep(0.001)
            return 1
    started = threading.Event()
    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    started.wait()
    other = Slow()
    def value():
        ends.append(1)
        return other.value
    assert in_fork(value) == 1
    ends.append(1)
    """)


def test_forked_processes_draw_numbers_of_their_own():
    run("""
    def draw():
        return gg.random.normal(4).tolist()
    def grandchild():
        return draw(), in_fork(draw)
    fixed = lambda: generator.normal(4).tolist()
    draws = [in_fork(draw), in_fork(draw), draw(), *in_fork(grandchild)]
    assert len({x for draw in draws for x in draw}) == 20
    assert in_fork(fixed) == in_fork(fixed) == fixed()
    """)


def test_set_seed_repeats_the_numbers_of_forked_processes():
    run("""
    def draw():
        return gg.random.normal(4).tolist()
    def epoch():
        gg.random.set_seed(7)
        children = [in_fork(draw), in_fork(draw)]
        return children + [draw(), in_fork(draw)]
    def seeded():
        gg.random.set_seed(7)
        return draw()
    first = epoch()
    assert first == epoch() and len({x for draw in first for x in draw}) == 16
    state = gg.random.default_generator().state
    in_fork(draw)
    assert gg.random.default_generator().state == state  # a fork draws nothing from the parent's
    gg.random.set_seed(7)
    assert in_fork(seeded) == draw()
    """)


def test_processes_of_multiprocessing_train_and_draw():
    run("""
    import multiprocessing
    context = multiprocessing.get_context("fork")
    def work(queue):
        everything()
        queue.put(gg.random.normal(2).tolist())
    stop = False
    def busy():
        while not stop:
            train()
    thread = threading.Thread(target=busy)
    thread.start()
    queue = context.Queue()
    workers = [context.Process(target=work, args=(queue,)) for _ in range(3)]
    try:
        for w in workers:
            w.start()
        draws = [queue.get(timeout=200) for _ in workers]
        for w in workers:
            w.join()
    finally:
        stop = True
    assert len({x for draw in draws for x in draw}) == 6
    """)


def test_every_lock_of_the_library_is_created_by_forking():
    home = pathlib.Path(gpugrad.__file__).parent
    others = [
        path.name
        for path in home.rglob("*.py")
        if path.name != "forking.py"
        and re.search(r"\b(Lock|RLock|Condition)\(|functools.cached_property", path.read_text())
    ]
    assert others == []
