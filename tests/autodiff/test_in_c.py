"""The tape's hot path in C computes, records, refuses and warns as Python does, to the last bit."""

import gc
import os
import sys
import threading
import warnings

import fresh
import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core.backend import OPS
from gpugrad.registry import in_c

PARTS = 40
needs_c = pytest.mark.skipif(in_c.module() is None, reason="needs a C++ compiler and Python.h")


@pytest.fixture
def both():
    """A function that returns the results of a call in Python and in C."""

    def run(call):
        found = []
        for on in (False, True):
            assert in_c.use(on) == on
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found.append((call(), [str(w.message) for w in caught]))
        return found

    yield run
    in_c.load()


def bits(value):
    """What must be equal: the bytes of arrays, the dtypes, the shapes, the texts of errors."""
    if isinstance(value, (list, tuple)):
        return [bits(v) for v in value]
    if isinstance(value, gg.Tensor):
        value = value.numpy()
        return value.dtype, value.shape, value.tobytes()
    return repr(value) if isinstance(value, Exception) else value


def attempt(call):
    try:
        return call()
    except Exception as error:
        return error


def gradients(f, *xs, seed=0):
    xs = [gg.asarray(x) for x in xs]
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(xs)
        y = f(*xs)
    upstream = np.random.default_rng(seed).standard_normal(y.shape).astype(y.dtype)
    return y, *tape.gradient(y, xs, output_gradients=gg.asarray(upstream))


def elementwise_ops():
    return [
        op for op in OPS.values()
        if op.kind == "elementwise" and op.differentiable and op.outputs == 1
        and not (op.variadic or op.params or op.optional) and op.home.startswith("gpugrad.")
    ]  # fmt: skip


def cases_of(op, rng):
    """Calls with arrays of few and of more elements, with special values, and with numbers."""
    for dtype in ("float32", "float64"):
        for shape, scale in (((5,), 3), ((), 1), ((1,), 1), ((2, 70), 0.4), ((6000,), 1)):
            arrays = [(rng.standard_normal(shape) * scale + 0.5).astype(dtype) for _ in op.arrays]
            if shape == (5,):
                for a in arrays:
                    a[:4] = rng.permutation([0, np.inf, -1, 1])
            yield op.eager, arrays
        if len(op.arrays) == 2:
            yield lambda x: op.eager(x, 0.7), arrays[:1]
            yield lambda x: op.eager(2, x), arrays[:1]
            if shape == (2, 70):  # one of them is a row, or a matrix, of the other
                a, b = (a.reshape(2, 7, 10) for a in arrays)
                yield from ((op.eager, [a, b[0, 0]]), (op.eager, [a[0], b]))


@needs_c
@pytest.mark.thin(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_ops_and_their_gradients_have_the_bits_of_python(part, both):
    def run():
        rng = np.random.default_rng(part)
        for op in elementwise_ops()[part::PARTS]:
            for f, arrays in cases_of(op, rng):
                yield op.name, attempt(lambda f=f, arrays=arrays: gradients(f, *arrays))

    (python, warned), (c, warned_in_c) = both(lambda: [(n, bits(r)) for n, r in run()])
    assert [a for a, b in zip(python, c, strict=True) if a != b] == []
    assert warned == warned_in_c


@needs_c
def test_most_rules_of_elementwise_ops_run_in_c():
    programs = [
        in_c._program_of(op, k, 0, 1 + sum(1 << 2 * j + 1 for j in range(len(op.saves))))
        for op in elementwise_ops() if type(op.plain) is tuple
        for k, rule in enumerate(op.plain) if rule is not None
    ]  # fmt: skip
    assert sum(p is not None for p in programs) >= 100


def unusual():
    """By name: calls that C leaves to Python, wholly or in part."""
    x = np.linspace(-1, 1, 6, dtype=np.float32)
    square = gg.custom_gradient(lambda x: (x * x, lambda g: 3 * g))

    def forward():
        with gg.ForwardAccumulator(t := gg.asarray(x), gg.ones(6)) as acc:
            y = gg.tanh(t) * t
        return acc.jvp(y)

    def second():
        with gg.GradientTape() as outer:
            outer.watch(t := gg.asarray(x))
            with gg.GradientTape() as inner:
                inner.watch(t)
                y = gg.tanh(t) * t
            g = inner.gradient(y, t)
        return outer.gradient(g, t)

    def graph():
        with gg.Graph().as_default():
            t = gg.asarray(x)
            return gg.gradients(gg.tanh(t) * t, [t])

    def write(t):
        y = t * 2.0
        v = y[1:]
        z = v * v
        y[2] = 7.0
        return z * v

    def variable():
        v = gg.Variable(x)
        with gg.GradientTape() as tape:
            y = gg.tanh(v * v) + v
        v.assign_add(gg.ones(6))
        return tape.gradient(y, v), [w is v for w in tape.watched_variables()]

    def network():
        rng = np.random.default_rng(0)
        w, b = gg.Variable(rng.standard_normal((3, 4))), gg.Variable(rng.standard_normal(4))
        frozen = gg.Variable(np.ones(4), trainable=False)
        with gg.GradientTape(persistent=True) as outer, gg.GradientTape() as tape:
            y = gg.relu(rng.standard_normal((5, 3)) @ w + b) * frozen
            y = gg.sigmoid(b + y) @ gg.asarray(rng.standard_normal((4, 2)))
            z = [y, gg.asarray(np.ones(3)) @ w, -0.0 * w + b]
        with outer:
            w.assign_add(gg.ones((3, 4), dtype="float64"))
            z.append(w @ b)
        seen = [[v is w, v is b] for t in (tape, outer) for v in t.watched_variables()]
        return z, tape.gradient(z[:3], [w, b]), outer.gradient(z, [w, b, frozen]), seen

    def dead():
        t = gg.asarray(x)
        with gg.GradientTape() as tape:
            tape.watch(t)
            y = gg.floor(t) * 2.0
        return tape.gradient(y, t), tape.explain(y, t).splitlines()[0][:40]

    def raising():
        with np.errstate(all="raise"):
            return gg.log(gg.asarray(x - 5))

    def stopped():
        with gg.GradientTape() as tape:
            tape.watch(t := gg.asarray(x))
            with tape.stop_recording():
                y = t * t
        return tape.gradient(y, t)

    return {
        "strided": lambda: gradients(lambda t: t * t, x[::2]),
        "transposed": lambda: gradients(lambda t: t.T * t.T + 1.0, x.reshape(2, 3)),
        "broadcast": lambda: gradients(lambda a, b: a * b + a, x.reshape(2, 3), x[:3]),
        "two dtypes": lambda: gradients(lambda a, b: a * b, x, x.astype(np.float64)),
        "half": lambda: gradients(lambda t: t * t, x.astype(np.float16)),
        "complex": lambda: gradients(lambda t: t * t, x.astype(np.complex64)),
        "a large number": lambda: gradients(lambda t: t * 1e300, x),
        "a small number": lambda: gradients(lambda t: t * 1e-42, x),
        "a complex number": lambda: attempt(lambda: gradients(lambda t: t * 1j, x)),
        "an overflow": lambda: gradients(lambda t: gg.exp(t * 1e3), x),
        "an error": raising,
        "shapes that differ": lambda: attempt(lambda: gg.asarray(x) * gg.asarray(x[:5])),
        "empty": lambda: gradients(lambda t: t * t, x[:0]),
        "integers": lambda: gg.asarray([1, 2]) * gg.asarray([3, 4]),
        "NaN": lambda: gradients(lambda t: gg.where(t > 0, gg.sqrt(t), t * 0.0), x),
        "a write": lambda: gradients(write, x),
        "out": lambda: gg.multiply(gg.asarray(x), 2.0, out=gg.zeros(6)),
        "forward": forward, "second order": second, "graph": graph,
        "variable": variable, "network": network,
        "products that do not fit": lambda: attempt(lambda: gg.ones((2, 3)) @ gg.ones((2, 3))),
        "a sum of -0": lambda: gradients(lambda a, b: (a + b) * -0.0, x.reshape(2, 3), x[:3]),
        "dead": dead, "stopped": stopped,
        "custom": lambda: gradients(lambda t: square(t) * t, x),
        "vmap": lambda: gg.vmap(lambda t: gg.tanh(t) * t)(gg.asarray(x.reshape(2, 3))),
        "function": lambda: gg.function(lambda t: gg.tanh(t) * t)(gg.asarray(x)),
        "an op without a rule": lambda: attempt(
            lambda: gradients(lambda t: gg.special.jv(t, t), x)
        ),
    }  # fmt: skip


@needs_c
def test_what_c_leaves_to_python_is_as_before(both):
    calls = unusual()
    (python, warned), (c, warned_in_c) = both(
        lambda: {name: bits(attempt(call)) for name, call in calls.items()}
    )
    assert python == c
    assert warned == warned_in_c


@needs_c
def test_nested_and_parallel_tapes_each_have_their_entries(both):
    def run():
        x = gg.asarray(np.linspace(-1, 1, 4))
        with gg.GradientTape(persistent=True) as outer:
            outer.watch(x)
            y = x * 2.0
            with gg.GradientTape() as inner:
                inner.watch(y)
                z = gg.tanh(y) * y
            w = z + x
        entries = [
            (op.name, len(ids), fits, bits([gg.asarray(a) for a in saved if a is not None]), params)
            for log in (outer.log, inner.log) for op, _, ids, fits, saved, params in log
        ]  # fmt: skip
        return entries, bits([inner.gradient(z, y), outer.gradient(w, [x, y])])

    (python, _), (c, _) = both(run)
    assert python == c
    assert [entry[0] for entry in c[0]] == [
        "multiply",
        "tanh",
        "multiply",
        "add",
        "tanh",
        "multiply",
    ]


def chain(x, n=50):
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(n):
            y = gg.tanh(y * x) + y * 0.5
    return tape.gradient(y, x)


@needs_c
def test_nothing_leaks():
    in_c.use(True)
    x, zero = gg.asarray(np.linspace(0.1, 1, 8)), gg.zeros(8)
    w, bias = gg.Variable(np.ones((8, 8))), gg.Variable(np.ones(8))

    def work():
        for _ in range(12):
            chain(x)
            with gg.GradientTape() as tape:
                y = gg.relu(gg.ones((3, 8), dtype="float64") @ w + bias)
            tape.gradient(y, [w, bias])
            attempt(lambda: w @ gg.ones((3, 8), dtype="float64"))
            with np.errstate(all="ignore"):
                gg.log(zero) / zero  # C begins, and Python computes
            attempt(lambda: x * gg.ones(3))

    work()
    gc.collect()
    before, references = sys.getallocatedblocks(), sys.getrefcount(x._data)
    work()
    gc.collect()
    blocks, now = sys.getallocatedblocks() - before, sys.getrefcount(x._data)
    assert blocks < 100
    assert now == references


@needs_c
def test_threads_and_forks_compute_what_one_thread_does():
    in_c.use(True)
    x = gg.asarray(np.linspace(0.1, 1, 300))
    expected, found = chain(x).tolist(), []
    threads = [
        threading.Thread(target=lambda: found.extend(chain(x).tolist() for _ in range(8)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 24
    assert all(f == expected for f in found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads of the pool
        child = os.fork()
    if not child:
        os._exit(chain(x).tolist() != expected)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@needs_c
@pytest.mark.slow
@pytest.mark.parametrize(("setting", "expected"), [("1", "False True"), ("0", "False False")])
def test_c_starts_when_many_ops_are_recorded_and_survives_the_exit(setting, expected):
    output = fresh.output_of("-c", f"""
import gpugrad as gg
from gpugrad.autodiff import backward, dead_branches
x = gg.ones(8)
tape = gg.GradientTape().__enter__()
tape.watch(x)
before, y = bool(backward.in_c), x
for _ in range(dead_branches.MANY + 100):
    y = y * x
print(before, bool(backward.in_c), tape.gradient(y, x).tolist()[0] == {2**13 + 101})
last = gg.GradientTape().__enter__()
last.watch(x)
z = x * x
""", GPUGRAD_CPU_KERNELS=setting)  # fmt: skip
    assert output.strip() == f"{expected} True"


def test_python_computes_where_c_cannot_be_compiled(monkeypatch):
    monkeypatch.setattr(in_c.sysconfig, "get_path", lambda name: "/nowhere")
    assert in_c.module.__wrapped__() is None
