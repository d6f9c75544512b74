"""gg.debug: where the first NaN or infinity comes from, forward, backward and in replays."""

import asyncio
import functools
import inspect
import re
import threading

import numpy as np
import pytest
from needs import needs_thresholds
from taping import taped

import gpugrad as gg
from gpugrad.core.devices import CPU
from gpugrad.core.listening import recorders, threads
from gpugrad.errors import GpugradError, NoGradientError, NumericsError
from gpugrad.testing.checks.subject import Subject
from gpugrad.trace.numerics import checks

DEVICES = pytest.mark.parametrize("device", ["cpu", "cuda:0"])
WRAPPED = pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])


def line_of(function, comment):
    """file:line of the line with a comment in a function's source."""
    lines, first = inspect.getsourcelines(function)
    (k,) = [k for k, line in enumerate(lines) if line.rstrip().endswith(f"# {comment}")]
    return f"test_debug.py:{first + k}"


@pytest.fixture(autouse=True)
def _nothing_stays():
    yield
    assert not checks
    assert not recorders
    assert not threads.stack


def logs(x):
    y = gg.exp(x)
    z = gg.log(y - 1)  # here
    return gg.sum(z * 2)


@DEVICES
@WRAPPED
def test_nans_names_the_op_its_inputs_and_the_line(wrapped, device):
    f = wrapped(logs)
    good, bad = ([1.0, 2.0, 3.0], [0.0, 2.0, 1.5])
    with gg.device(device), gg.debug.nans():
        good, bad = gg.constant(good), gg.constant(bad)
        for _ in range(2):  # the second call is a replay
            assert np.isfinite(f(good).item())
        with pytest.raises(NumericsError) as caught:
            f(bad)
    text = str(caught.value)
    assert text.startswith(f"log: a NaN or an infinity arises here, at {line_of(logs, 'here')}.")
    assert f"result: float32 (3,) on {device}" in text
    assert re.search(r"x: float32 \(3,\) on \S+ from 0 to 6.38.*, 0 NaN, 0 infinite", text)
    assert isinstance(caught.value, FloatingPointError)
    assert isinstance(caught.value, GpugradError)


@DEVICES
def test_the_first_call_of_a_function_is_checked_too(device):
    with gg.device(device), gg.debug.nans(), pytest.raises(NumericsError, match=r"^log: .*:\d+\."):
        gg.function(logs)(gg.zeros(3))


@DEVICES
@WRAPPED
def test_what_comes_from_outside_is_not_blamed(wrapped, device):
    with gg.device(device):
        mask = gg.constant([0.0, -np.inf])
        x, missing = gg.constant([1.0, 2.0]), gg.constant([1.0, np.nan])
        with gg.debug.nans():
            f = wrapped(lambda x, mask, missing: (gg.softmax(x + mask), gg.sum(missing * 2)))
            for _ in range(2):
                weights, total = f(x, mask, missing)
            # a number is an input
            assert not np.isfinite(wrapped(lambda x: gg.where(x > 1, x, -np.inf))(x).numpy()).all()
            # an infinity explains no NaN
            with pytest.raises(NumericsError, match=r"^subtract"):
                wrapped(lambda a: a - a)(mask)
    np.testing.assert_array_equal(weights.numpy(), [1, 0])
    assert np.isnan(total.item())


@DEVICES
@WRAPPED
def test_infinities_may_be_meant(wrapped, device):
    with gg.device(device), gg.debug.nans(infinities=False):
        x = gg.constant([0.0, -1.0])
        with np.errstate(divide="ignore"):
            assert wrapped(lambda x: gg.log(x + 1))(x).numpy()[1] == -np.inf
        with pytest.raises(NumericsError, match=r"^log"):
            wrapped(gg.log)(x - 1)


OPS = {
    "elementwise": (lambda x: gg.log(x), "log"),
    "number": (lambda x: 1 / x, "divide"),
    "integers": (lambda x: 1 / gg.astype(x, "int32"), "divide"),
    "primitive": (lambda x: gg.prod(gg.concat([x + 1e30, x + 1e30])), "prod"),
    "variadic": (lambda x: gg.concat([x, gg.sqrt(x - 1)]), "sqrt"),
    "composite": (lambda x: gg.std(x[:0]), "std|mean|divide"),
    "cast": (lambda x: gg.astype(x + 1e30, "float16"), "astype"),
    "half": (lambda x: gg.astype(x + 300, "float16") ** 2.0, "power|square"),
    "complex": (lambda x: gg.log(gg.astype(x, "complex64")), "log"),
    "several results": (lambda x: gg.modf(x / 0 + 1)[0], "divide"),
    "vmap": (gg.vmap(lambda a: gg.log(a)), "log"),
    "bfloat16": (lambda x: gg.log(gg.astype(x, "bfloat16")), "log"),
    "product": (lambda x: (x + 1e30) @ (x + 1e30), "matmul"),
}


@DEVICES
@WRAPPED
@pytest.mark.parametrize("case", OPS)
def test_nans_finds_every_kind_of_op(case, wrapped, device):
    function, name = OPS[case]
    with gg.device(device), gg.debug.nans(), pytest.raises(NumericsError, match=f"^({name}):"):
        wrapped(function)(gg.constant([0.0, 1.0, 2.0]))


def test_nans_checks_only_its_own_thread():
    done = []

    def other():
        with np.errstate(all="ignore"):
            done.append(gg.log(gg.zeros(2) - 1))

    with gg.debug.nans():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert np.isnan(done[0].numpy()).all()


@WRAPPED
def test_nans_checks_its_own_task_and_those_it_starts(wrapped):
    f, zeros = wrapped(gg.log), gg.zeros(2)

    async def logarithm():
        await asyncio.sleep(0)
        with np.errstate(divide="ignore"):
            return f(zeros)

    async def checked(start):
        with gg.debug.nans():
            await asyncio.sleep(0)
            return await start()

    async def main():
        for start in (logarithm, lambda: asyncio.create_task(logarithm())):
            other = asyncio.create_task(logarithm())
            with pytest.raises(NumericsError, match=r"^log: "):
                await checked(start)
            assert np.isinf((await other).numpy()).all()
            assert np.isinf((await logarithm()).numpy()).all()

    asyncio.run(main())


def roots(x):
    return gg.sum(gg.sqrt(x))  # forward


@DEVICES
@WRAPPED
def test_nans_names_the_gradient_and_both_lines(wrapped, device):
    def gradient(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = roots(x)
        return tape.gradient(y, x)  # backward

    f = wrapped(gradient)
    with gg.device(device), gg.debug.nans():
        for _ in range(2):
            f(gg.ones(2))
        with pytest.raises(NumericsError) as caught:
            f(gg.constant([0.0, 1.0]))
    here, there = line_of(gradient, "backward"), line_of(roots, "forward")
    assert f"at {here}, in the gradient of sqrt at {there}." in str(caught.value)
    if wrapped is not gg.function:
        assert str(caught.value).startswith("gradient of sqrt: ")


@DEVICES
def test_nans_sees_a_function_under_a_tape(device):
    f = gg.function(roots)
    with gg.device(device), gg.debug.nans():
        for x in ([1.0, 1.0], [4.0, 4.0]):
            expected = np.array(x) ** -0.5 / 2
            np.testing.assert_array_equal(gg.grad(f)(gg.constant(x)).numpy(), expected)
        with pytest.raises(NumericsError, match="gradient of sqrt"):
            gg.grad(f)(gg.constant([0.0, 1.0]))


@WRAPPED
def test_masked_gradients_are_no_error(wrapped):
    f = wrapped(gg.grad(lambda x: gg.sum(gg.where(x > 0, gg.sqrt(x), 0.0))))
    with gg.debug.nans():
        for _ in range(2):
            assert f(gg.constant([0.0, 4.0])).numpy().tolist() == [0.0, 0.25]


@WRAPPED
def test_gradients_that_the_user_has_written_are_checked_op_by_op(wrapped):
    @gg.custom_gradient
    def doubled(x):
        return x * 2, lambda g: gg.log(g) * 3  # written

    root = gg.recompute_grad(lambda x: gg.sqrt(x) * 2)
    line = line_of(doubled.__wrapped__, "written")
    with gg.debug.nans():
        f = wrapped(gg.grad(lambda x, k: gg.sum(doubled(x)) * k))
        for _ in range(2):
            f(gg.ones(2), gg.constant(1.0))
        with pytest.raises(NumericsError, match=rf"log: .* at {line}"):
            f(gg.ones(2), gg.constant(-1.0))
        f = wrapped(gg.grad(lambda x: gg.sum(root(x))))
        for _ in range(2):
            f(gg.ones(2))
        with pytest.raises(NumericsError, match=r"gradient of sqrt"):
            f(gg.zeros(2))


def test_second_order_and_forward_mode_are_checked():
    x = gg.constant(0.0)
    with gg.debug.nans():
        with pytest.raises(NumericsError, match="in the gradient of power"):
            gg.grad(gg.grad(lambda x: x**1.5))(x)
        with pytest.raises(NumericsError, match=r"^tangent of sqrt"):
            gg.jvp(gg.sqrt, (x,), (gg.ones(()),))


@DEVICES
@WRAPPED
def test_a_sum_of_gradients_that_overflows_is_found(wrapped, device):
    f = wrapped(gg.grad(lambda x: gg.sum(gg.minimum(x * 2e38, 0) + x * 2e38)))
    with gg.device(device), gg.debug.nans(), pytest.raises(NumericsError, match=r"^sum of grad"):
        f(gg.constant([-0.5, -0.25]))
    y = gg.constant(np.float16([1.0, 2.0]), device=device)
    f = wrapped(gg.grad(lambda y: gg.sum(gg.astype(y, "float32")) * 1e5))
    with gg.debug.nans(), pytest.raises(NumericsError, match=r"^sum of grad|^gradient of"):
        f(y)


@DEVICES
@pytest.mark.parametrize("first", [True, False], ids=["traced", "replayed"])
def test_a_call_that_raises_changes_nothing(first, device):
    with gg.device(device):
        v, count = gg.Variable([1.0, 2.0]), gg.Variable(0.0)
        optimizer, generator = gg.optim.Adam(0.1), gg.random.Generator(3)

        @gg.function
        def step(x):
            count.assign_add(1.0)
            noise = gg.random.uniform((2,), generator=generator)
            optimizer.minimize(lambda: gg.sum(v * v + noise * x), [v])
            return gg.sum(gg.log(v * x))  # after the update

        with gg.debug.nans():
            for _ in range(0 if first else 2):
                step(gg.constant(1.0))
            before = [v.numpy(), count.numpy(), generator.state, optimizer.iterations]
            state = {k: a.numpy() for k, a in optimizer.state_dict({"v": v}).items()}
            with pytest.raises(NumericsError, match=r"^log"):
                step(gg.constant(0.0))
    after = [v.numpy(), count.numpy(), generator.state, optimizer.iterations]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_equal(other, one)
    for name, array in optimizer.state_dict({"v": v}).items():
        np.testing.assert_array_equal(array.numpy(), state[name])


@DEVICES
@WRAPPED
def test_an_optimizers_step_that_overflows_is_taken_back(wrapped, device):
    with gg.device(device):
        v, w = gg.Variable([1.0]), gg.Variable([1.0], name="w")
        optimizer = gg.optim.SGD(1e30, momentum=0.9)
        step = wrapped(lambda g: optimizer.apply_gradients([(g * 1e-30, v), (g, w)]))
        with gg.debug.nans():
            step(gg.constant([0.0]))
            with pytest.raises(NumericsError, match=r"SGD.apply_gradients of 'w'"):
                step(gg.constant([1e30]))
    assert (v.numpy()[0], w.numpy()[0], optimizer.iterations) == (1, 1, 1)
    assert optimizer.state_dict({"v": v, "w": w})["w.velocity"].numpy()[0] == 0


@DEVICES
@WRAPPED
@needs_thresholds
def test_finite_programs_give_the_same_bits(wrapped, device, rng):
    def trained(check):
        with gg.device(device):
            v = gg.Variable(rng_values.astype("f4"))
            optimizer = gg.optim.Adam(0.1, global_clipnorm=0.5)

            @wrapped
            def step(x):
                return optimizer.minimize(lambda: gg.mean(gg.softmax(gg.tanh(x @ v)) ** 2), [v])

            for _ in range(3):
                with gg.debug.nans() if check else gg.device(device):
                    loss = step(gg.constant(rng_values.T.astype("f4")))
        return np.append(v.numpy(), loss.numpy())

    rng_values = rng.normal(size=(4, 3))
    one, other = trained(False), trained(True)
    if device == "cpu" or wrapped is not gg.function:
        np.testing.assert_array_equal(one, other)
    else:  # fused kernels round differently
        np.testing.assert_allclose(one, other, rtol=1e-5)


@DEVICES
def test_branches_and_loops_are_checked_in_replays(device):
    @gg.function
    def branch(x):
        return gg.cond(gg.sum(x) > 0, lambda: gg.log(x), lambda: x * 2)  # branch

    @gg.function
    def loop(x):
        return gg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, gg.sqrt(c[1] - 1)), (0, x))[1]

    @gg.function
    def gradient(x):
        return gg.grad(lambda x: gg.sum(gg.cond(gg.sum(x) > 0, lambda: gg.sqrt(x), lambda: x)))(x)

    with gg.device(device), gg.debug.nans():
        one, zero = gg.constant([1.0, 2.0]), gg.constant([0.0, 2.0])
        for _ in range(2):
            np.testing.assert_allclose(branch(one).numpy(), np.log([1, 2]), rtol=1e-6)
            np.testing.assert_array_equal(branch(-zero).numpy(), [0, -4])
            assert np.isfinite(loop(one * 50).numpy()).all()
            assert np.isfinite(gradient(one).numpy()).all()
        with pytest.raises(NumericsError, match=f"^log: .*{line_of(branch.__wrapped__, 'branch')}"):
            branch(zero)
        with pytest.raises(NumericsError, match=r"^sqrt"):
            loop(one)
        with pytest.raises(NumericsError, match="sqrt"):
            gradient(zero)


def test_functions_are_as_fast_as_before_outside_of_the_block():
    f = gg.function(lambda x: gg.sum(gg.tanh(x) * 2))
    x = gg.ones(3)
    f(x)
    program = str(f.lower(x))
    with gg.debug.nans():
        f(x)
    assert str(f.lower(x)) == program
    assert f.cache_info().traces == 2


@DEVICES
@pytest.mark.parametrize(
    "options",
    [{"steps_per_call": 2}, {"donate": "x"}, {"memory_limit": 10**6}, {"passes": ()}],
    ids=str,
)
def test_nans_works_with_every_option_of_function(options, device):
    v = gg.Variable(0.0, device=device)

    @functools.partial(gg.function, **options)
    def f(x):
        v.assign_add(gg.sum(x))
        return gg.log(x)

    with gg.device(device):
        f(gg.ones((2, 2)))
        with gg.debug.nans():
            for _ in range(2):
                assert (f(gg.ones((2, 2))).numpy() == 0).all()
            before = v.numpy()
            with pytest.raises(NumericsError, match=r"^log"):
                f(gg.zeros((2, 2)))
    assert before == v.numpy() == 12


@DEVICES
@WRAPPED
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_check_numerics_raises_with_the_message_and_the_line(bad, wrapped, device):
    def doubled(x):
        return gg.debug.check_numerics(x * 2, "the loss") + 1  # checked

    f = wrapped(doubled)
    with gg.device(device):
        for _ in range(2):
            np.testing.assert_array_equal(f(gg.constant([1.0, 2.0])).numpy(), [3, 5])
        with pytest.raises(NumericsError) as caught:
            f(gg.constant([1.0, bad]))
    text = str(caught.value)
    assert text.startswith(f"the loss: float32 (2,) on {device} from 2 to 2, ")
    assert f"checked at {line_of(doubled, 'checked')}" in text


@DEVICES
@WRAPPED
def test_check_numerics_is_the_identity_for_gradients(wrapped, device):
    def f(x):
        return gg.sum(gg.debug.check_numerics(x * x, "x") * 3)

    with gg.device(device):
        x, v = gg.constant([1.0, 2.0]), gg.Variable([1.0, 2.0])
        for _ in range(2):
            np.testing.assert_array_equal(wrapped(gg.grad(f))(x).numpy(), [6, 12])
            np.testing.assert_array_equal(gg.grad(wrapped(f))(x).numpy(), [6, 12])
            np.testing.assert_array_equal(gg.vmap(gg.grad(f))(x).numpy(), [6, 12])
        with gg.GradientTape() as tape:
            y = gg.debug.check_numerics(v, "v") * 2
        np.testing.assert_array_equal(tape.gradient(y, v).numpy(), [2, 2])
        with pytest.raises(NumericsError, match=r"^x: "):
            gg.grad(wrapped(f))(x * np.inf)
        with pytest.raises(NumericsError, match=r"^x: "):
            gg.vmap(f)(x * np.inf)


def test_check_numerics_in_a_branch_raises_when_it_is_taken():
    @gg.function
    def f(x):
        return gg.cond(
            gg.sum(x) > 0, lambda: gg.debug.check_numerics(x / x, "ratio"), lambda: x * 2
        )

    f(gg.constant([1.0, 2.0]))
    assert f(gg.constant([0.0, -1.0])).numpy().tolist() == [0, -2]
    with pytest.raises(NumericsError, match=r"^ratio: "):
        f(gg.constant([0.0, 1.0]))


def test_check_numerics_takes_integers():
    assert gg.debug.check_numerics(gg.constant([1, 2]), "n").numpy().tolist() == [1, 2]


def test_effects_get_arrays_also_of_an_op_with_several_results():
    f = gg.function(lambda x: gg.debug.check_numerics(gg.modf(x)[0], "fraction"))
    for _ in range(2):
        assert f(gg.constant(1.5)).item() == 0.5


def _value_and_gradient(function, xs):
    tape, ys = taped(function, xs)
    gradients = tape.gradient(ys, xs, unconnected_gradients="zero")
    return ys, [g.to_dense() if isinstance(g, gg.IndexedSlices) else g for g in gradients]


@WRAPPED
@pytest.mark.parametrize("name", sorted(n for n, op in gg.OPS.items() if op.differentiable))
@pytest.mark.parametrize(
    "samples", [slice(1), pytest.param(slice(1, 3), marks=pytest.mark.slow)], ids=["first", "more"]
)
@pytest.mark.thin(5)
def test_nans_changes_no_value_of_an_op(name, samples, wrapped):
    """Formulas may compute infinities and select other values."""
    for sample in Subject(gg.OPS[name], 0, 1, CPU).samples[samples]:
        case = sample.case()
        f = wrapped(functools.partial(_value_and_gradient, case.function))
        xs = [case.put(x) for x in case.point]
        try:
            with np.errstate(all="ignore"):
                expected = [x.numpy() for part in f(xs) for x in part]
        except NoGradientError:
            continue
        if not all(np.isfinite(x).all() for x in expected):
            continue
        with gg.debug.nans():
            for _ in range(1 if wrapped is not gg.function else 2):
                results = [x.numpy() for part in f(xs) for x in part]
                for result, x in zip(results, expected, strict=True):
                    np.testing.assert_allclose(result, x, rtol=1e-12, atol=1e-300)
                    if wrapped is not gg.function:
                        np.testing.assert_array_equal(result, x)
