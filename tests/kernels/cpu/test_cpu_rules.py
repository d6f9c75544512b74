"""Optimizers' steps in C: every bit as NumPy computes it, in any number of threads."""

import textwrap

import numpy as np
import pytest
from fresh import output_of
from needs import needs_compiler
from random_formulas import NAMES, random_formula
from update_rules import CASES, make

import gpugrad as gg
from gpugrad.kernels.codegen.update_kernel import StepKernel
from gpugrad.kernels.cpu import compiler, pool, update_loop
from gpugrad.optim.rules import Rule

ELEMENTWISE = [name for name in CASES if name not in ("lamb", "lars")]  # they read norms
SHAPES = [(130, 70), (5,), (), (0, 3), (1,), (16_384,), (16_385,), (300, 100)]


@pytest.fixture(params=[1, 2])
def threads(request):
    before = pool.threads()
    pool.set_threads(request.param)
    yield request.param
    pool.set_threads(before)


@pytest.fixture
def calls(monkeypatch):
    """The result of each step in C."""
    results, real = [], update_loop.StepLoop.step

    def step(*args):
        results.append(real(*args))
        return results[-1]

    monkeypatch.setattr(update_loop.StepLoop, "step", step)
    return results


def in_numpy(f, *args, **keywords):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update_loop.StepLoop, "step", lambda *args: NotImplemented)
        return f(*args, **keywords)


def assert_same_bits(actual, desired, message=""):
    """The same dtype and bits; a NaN may have another sign and payload."""
    assert actual.dtype == desired.dtype
    if desired.dtype.kind == "c":
        actual, desired = (a.reshape(-1).view(a.real.dtype) for a in (actual, desired))
    numbers = ~np.isnan(desired)
    np.testing.assert_array_equal(np.isnan(actual), ~numbers, message)
    for of in (np.signbit, np.positive):  # 0.0 == -0.0
        np.testing.assert_array_equal(of(actual)[numbers], of(desired)[numbers], message)


def train(optimizer, dtypes, traced=False, n_steps=6, shapes=SHAPES):
    """The Variables and the state after some steps."""
    rng = np.random.default_rng(0)

    def draw(shape, dtype):
        values = rng.standard_normal(shape)
        return (values + 1j * values[::-1] if dtype == "complex64" else values).astype(dtype)

    variables = [gg.Variable(draw(s, d)) for s in shapes for d in dtypes]
    slopes = [draw(v.shape, v.dtype) for v in variables]

    def step(k):
        gradients = [
            v.value() * 0.1 + s * gg.astype(k, v.dtype)
            for v, s in zip(variables, slopes, strict=True)
        ]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    step = gg.function(step) if traced else step
    for k in range(n_steps):
        step(gg.constant(np.sin(k)))
    state = [tensor.numpy() for tensor in optimizer.state_dict().values()]
    return [v.numpy() for v in variables] + state


def assert_trains_as_numpy(name, dtypes, traced=False, **options):
    keywords = {k: options.pop(k) for k in ("n_steps", "shapes") if k in options}
    actual = train(make(name, **options), dtypes, traced, **keywords)
    desired = in_numpy(train, make(name, **options), dtypes, **keywords)
    for a, d in zip(actual, desired, strict=True):
        assert_same_bits(a, d)


def test_source_is_that_of_the_docstring():
    def momentum(xp, s, p, g, velocity):
        velocity = s.momentum * velocity + g
        return p - s.rate * velocity, velocity

    text = Rule(StepKernel("sgd", momentum, ("momentum", "rate"), 1)).loop.source()
    floats, _, doubles = text.partition("  static void run(double")
    assert textwrap.indent(floats, "    ") in update_loop.__doc__
    assert doubles.count("\n") > floats.count("\n") - 3


def test_equal_rules_are_one_library():
    sources = {make("adamw", rate)._rule.loop.source() for rate in (0.1, 0.2)}
    assert sources == {make("adam")._rule.loop.source()}


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_steps_have_the_bits_of_numpy(name, dtype, threads, calls):
    assert_trains_as_numpy(name, [dtype])
    assert calls == [None] * 6


@needs_compiler
@pytest.mark.parametrize("name", ["momentum", "adamw", "amsgrad", "rmsprop-all", "lion"])
def test_traced_steps_have_the_bits_of_numpy(name, calls):
    assert_trains_as_numpy(name, ["float32"], traced=True)
    assert calls == [None] * 6  # the trace, on shapes, takes no step


@needs_compiler
@pytest.mark.parametrize("name", ["adam", "momentum", "adamax"])
def test_long_runs_have_the_bits_of_numpy(name, calls):
    assert_trains_as_numpy(name, ["float32"], n_steps=140, shapes=[(9000,)])
    assert calls == [None] * 140


@needs_compiler
@pytest.mark.parametrize("name", ["sgd-decay", "nadam-decay", "adamw"])
def test_groups_with_other_settings_have_the_bits_of_numpy(name, calls, threads):
    groups = [
        (lambda name, v: v.ndim == 1, {"weight_decay": 0.0, "learning_rate": lambda n: 1 / (n + 2)})
    ]
    assert_trains_as_numpy(name, ["float32"], groups=groups)
    assert calls == [None] * 6


@needs_compiler
def test_complex_numbers_step_as_pairs(calls):
    assert_trains_as_numpy("adam", ["complex64"], shapes=[(9000,), (3,)])
    assert calls == [None] * 6


@needs_compiler
@pytest.mark.parametrize("dtypes", [["float16"], ["bfloat16"], ["float32", "float64"]])
def test_16_bits_and_several_dtypes_are_left_to_numpy(dtypes, calls):
    train(make("adam"), dtypes)
    assert None not in calls


@needs_compiler
def test_a_warning_of_the_compiler_that_is_an_error_leaves_the_state(monkeypatch):
    v, optimizer = gg.Variable(np.ones(9000, np.float32)), make("adam")
    optimizer.apply_gradients([(v.value(), v)])
    before = [v.numpy(), *(t.numpy() for t in optimizer.state_dict().values())]

    def load(*args, **keywords):
        raise RuntimeWarning("There is no C kernel.")

    with monkeypatch.context() as patch:
        patch.setattr(compiler, "load", load)
        optimizer._rules.clear()
        with pytest.raises(RuntimeWarning):
            optimizer.apply_gradients([(v.value(), v)])
    after = [v.numpy(), *(t.numpy() for t in optimizer.state_dict().values())]
    for a, b in zip(after, before, strict=True):
        assert_same_bits(a, b)


def test_few_elements_are_left_to_numpy(calls):
    train(make("adam"), ["float32"], shapes=[(90, 90), (91,)])
    assert None not in calls


@needs_compiler
@pytest.mark.parametrize("k", [0, 1, 2])
def test_arrays_with_another_layout_or_dtype_are_left_to_numpy(k):
    loop = make("momentum")._rule.loop
    odd = [
        np.ones((9000, 1), np.float32),
        np.ones(18_000, np.float32)[::2],
        np.ones(9001, np.float32),
        np.ones(9000, np.float16),
        np.zeros(36_001, np.uint8)[1:].view(np.float32),
    ]
    for array in odd:
        arrays = [np.ones(9000, np.float32) for _ in range(3)]
        arrays[k] = array
        assert loop.step([arrays], [(1.0,) * 3], [0]) is NotImplemented
        assert all((a == 1).all() for a in arrays if a is not array)


@needs_compiler
@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_gradients_have_the_bits_of_numpy(name, dtype):
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    values = [np.inf, -np.inf, np.nan, 0.0, -0.0, tiny, -tiny, huge, -huge, 1.0]
    start = np.resize(np.array([1.0, -0.0, 0.0, tiny, huge, -1.0, np.inf], dtype), 9001)

    def steps_of():
        v, optimizer = gg.Variable(start), make(name)
        for shift in range(3):
            g = np.resize(np.roll(np.array(values, dtype), shift), 9001)
            optimizer.apply_gradients([(gg.constant(g), v)])
        return [v.numpy(), *(t.numpy() for t in optimizer.state_dict().values())]

    for a, d in zip(steps_of(), in_numpy(steps_of), strict=True):
        assert_same_bits(a, d)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(50, 300, 50))]
)
@pytest.mark.thin(3)
def test_random_formulas_have_the_bits_of_numpy(first, dtype, threads):
    sources, rules = "", []
    for seed in range(first, first + 50):
        n_slots = int(np.random.default_rng(seed).integers(4))
        rule = Rule(StepKernel("random", random_formula(seed, n_slots), NAMES, n_slots))
        sources += rule.loop.source(f"Rule{seed}", f"step{seed}")
        rules.append((seed, n_slots, rule))
    library = compiler.load(sources, what="random formulas")
    rng = np.random.default_rng(first)
    for seed, n_slots, rule in rules:
        function = update_loop.typed(getattr(library, f"step{seed}"))
        variables = [[rng.normal(size=n).astype(dtype) for _ in range(2 + n_slots)]
                     for n in (1003, 16_390)]  # fmt: skip
        expected = [[a.copy() for a in arrays] for arrays in variables]
        for _ in range(3):
            settings = tuple(rng.uniform(0.01, 1.2, 3).tolist())
            arrays = [a for arrays in variables for a in arrays]
            wide = dtype == "float64"
            assert update_loop.call(function, wide, arrays, [settings], [0, 0]) is None
            in_numpy(rule.step, expected, [settings], [0, 0])
        for actual, desired in zip(variables, expected, strict=True):
            for a, d in zip(actual, desired, strict=True):
                assert_same_bits(a, d, rule.loop.source())


def test_numbers_of_numpy_do_not_widen_a_step():
    class Half(gg.optim.Optimizer):
        def numbers(self, h, rate, step):
            return {"rate": np.float64(rate)}

        def formula(self, xp, s, p, g):
            return (p - s.rate * g,)

    class Same(Half):
        def numbers(self, h, rate, step):
            return {"rate": rate}

    results = []
    for kind in (Half, Same):
        v = gg.Variable(np.linspace(-1, 1, 100, dtype=np.float32))
        kind(0.1).apply_gradients([(v.value() * 3, v)])
        results.append(v.numpy())
    assert_same_bits(*results)


def test_without_kernels_numpy_takes_the_steps():
    text = """
        import hashlib, numpy as np, gpugrad as gg
        from gpugrad.kernels.cpu import compiler
        v, optimizer = gg.Variable(np.linspace(-1, 1, 20_000, dtype="f4")), gg.optim.AdamW(0.1)
        for _ in range(3):
            optimizer.apply_gradients([(v.value() * 2, v)])
        print(hashlib.sha256(v.numpy()).hexdigest(), compiler._process.libraries)
    """
    output = [
        output_of("-W", "error", "-c", textwrap.dedent(text), GPUGRAD_CPU_KERNELS=kernels)
        for kernels in "01"
    ]
    output = [text.split(maxsplit=1) for text in output]
    assert output[0][0] == output[1][0]
    assert "CDLL" not in output[0][1]


@needs_compiler
def test_a_program_in_c_steps_small_variables_in_c(calls, monkeypatch):
    monkeypatch.setenv("GPUGRAD_CPU_KERNELS", "always")

    def train(traced):
        v, optimizer = gg.Variable(np.arange(5, dtype=np.float32)), gg.optim.Adam(0.1)

        def step():
            optimizer.minimize(lambda: gg.sum(gg.tanh(v) ** 2))

        for _ in range(3):
            (step := gg.function(step) if traced else step)()
            traced = False
        return v.numpy()

    eager = train(traced=False)
    before = len(calls)
    np.testing.assert_allclose(train(traced=True), eager, rtol=1e-6)
    assert calls[before:] == [None] * 3
