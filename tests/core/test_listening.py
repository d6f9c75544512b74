"""Tapes and other ``with`` blocks belong to the asyncio task that opened them."""

import asyncio
import contextvars
import gc
import threading

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core import settings
from gpugrad.core.listening import graphs, recorders, threads
from gpugrad.errors import NumericsError, TapeError
from gpugrad.trace.numerics import checks


@pytest.fixture(autouse=True)
def nothing_stays_open():
    yield
    gc.collect()
    assert (list(threads.stack), recorders, graphs, checks) == ([], [], [], [])


def C(value):
    return gg.constant(float(value))


async def trained(v, factor, steps):
    """The value of a Variable after steps of a tape that other tasks interrupt."""
    for _ in range(steps):
        with gg.GradientTape() as tape:
            y = v * factor
            await asyncio.sleep(0)
            y = y * y
            await asyncio.sleep(0)
        assert tape.watched_variables() == (v,)
        assert [entry[0].name for entry in tape.log] == ["multiply", "multiply"]
        v.assign_sub(0.01 * tape.gradient(y, v))
    return v.numpy().item()


def test_interleaved_tasks_record_only_their_own_ops():
    async def main():
        tasks = [trained(gg.Variable(1.0), k, 5) for k in range(1, 6)]
        return await asyncio.gather(*tasks)

    for k, value in enumerate(asyncio.run(main()), 1):
        np.testing.assert_allclose(value, (1 - 0.02 * k * k) ** 5, rtol=1e-5)


BLOCKS = {
    "GradientTape": (gg.GradientTape, lambda: len(threads.stack)),
    "Graph": (lambda: gg.Graph().as_default(), lambda: len(threads.stack)),
    "ForwardAccumulator": (lambda: gg.ForwardAccumulator(C(1), C(1)), lambda: len(threads.stack)),
    "nn.training": (gg.nn.training, gg.nn.is_training),
    "device": (lambda: gg.device("cpu"), lambda: len(settings._task.get().settings.devices)),
    "debug.nans": (gg.debug.nans, settings.numerics),
}


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.thin(2)
def test_block_holds_only_in_its_task_and_in_tasks_started_inside(name):
    block, state = BLOCKS[name]
    outside = state()

    async def main():
        opened, end = asyncio.Event(), asyncio.Event()

        async def first():
            with block():
                inside = state()
                inner = asyncio.create_task(probe())
                opened.set()
                await end.wait()
                assert state() == inside != outside
                assert await inner == inside
            assert state() == outside

        async def probe():
            return state()

        async def second():
            await opened.wait()
            seen = [state()]
            with block(), block():  # ends after the first one, which opened before
                end.set()
                await asyncio.sleep(0.01)
                seen.append(state())
            return [*seen, state()]

        _, (before, within, after) = await asyncio.gather(first(), second())
        assert before == after == outside != within

    asyncio.run(main())
    assert state() == outside


def test_paused_tape_is_paused_in_its_task():
    async def main(x):
        async def pausing():
            with gg.GradientTape() as tape:
                tape.watch(x)
                with tape.stop_recording():
                    await asyncio.sleep(0)
                    y = x * x
                    await asyncio.sleep(0)
                z = x * y
                await asyncio.sleep(0)
            return tape.gradient(z, x).item()

        return await asyncio.gather(pausing(), pausing())

    assert asyncio.run(main(C(3))) == [9.0, 9.0]


def test_traced_functions_and_accumulators_work_in_interleaved_tasks():
    f = gg.function(lambda a: a * gg.exp(a))

    async def both(value):
        x = C(value)
        with gg.GradientTape() as tape, gg.ForwardAccumulator(x, C(1)) as forward:
            tape.watch(x)
            await asyncio.sleep(0)
            y = f(x)
            await asyncio.sleep(0)
            z = y * x
        await asyncio.sleep(0)
        return tape.gradient(z, x).item(), forward.jvp(z).item()

    async def main():
        return await asyncio.gather(*(both(k) for k in range(4)))

    for k, (backward, forward) in enumerate(asyncio.run(main())):
        want = (2 * k + k * k) * np.exp(k)
        np.testing.assert_allclose([backward, forward], [want, want], rtol=1e-6)


def test_tape_records_tasks_that_start_inside_until_it_ends():
    async def main():
        x = C(3)

        async def square(t):
            await asyncio.sleep(0)
            return t * t

        with gg.GradientTape() as tape:
            tape.watch(x)
            y = sum(await asyncio.gather(square(x), square(2 * x)))
        assert tape.gradient(y, x).item() == 30

    asyncio.run(main())


@pytest.mark.parametrize("own_tape", [False, True])
def test_task_that_goes_on_after_the_tape_around_it_leaves_that(own_tape):
    async def main():
        x, ended = C(3), asyncio.Event()

        async def late():
            if not own_tape:
                await ended.wait()
                return x * x, len(threads.stack)
            with gg.GradientTape() as inner:
                inner.watch(x)
                await ended.wait()
                y = x * x
                count = len(threads.stack)
            return inner.gradient(y, x).item(), count

        with gg.GradientTape() as other:
            other.watch(x)
            with gg.GradientTape(persistent=True) as tape:
                tape.watch(x)
                task = asyncio.create_task(late())
                await asyncio.sleep(0.01)
            before = len(tape.log)
            ended.set()
            result, count = await task
        assert len(tape.log) == before
        assert count == 1 + own_tape  # `other` is still open
        if own_tape:
            assert result == 6
            assert len(tape.log) == 0

    asyncio.run(main())


def test_task_started_before_a_tape_does_not_see_it():
    async def main():
        with gg.GradientTape():
            pass  # the task below starts with a stack that this task has used
        opened = asyncio.Event()

        async def early():
            await opened.wait()
            return len(threads.stack)

        task = asyncio.create_task(early())
        with gg.GradientTape():
            opened.set()
            assert await task == 0

    asyncio.run(main())


@pytest.mark.parametrize("how", ["cancelled", "raises"])
def test_task_that_ends_inside_a_tape_closes_it(how):
    async def main():
        async def broken():
            with gg.nn.training(), gg.GradientTape(), gg.debug.nans():
                if how == "raises":
                    raise ValueError
                await asyncio.sleep(100)

        task = asyncio.create_task(broken())
        with gg.GradientTape() as tape:
            await asyncio.sleep(0.01)
            task.cancel()
            (result,) = await asyncio.gather(task, return_exceptions=True)
            assert isinstance(result, (asyncio.CancelledError, ValueError))
            assert list(threads.stack) == recorders == [tape]

    asyncio.run(main())


def test_nan_is_reported_in_the_task_that_checks():
    async def main():
        async def checked():
            with gg.debug.nans():
                await asyncio.sleep(0)
                with pytest.raises(NumericsError):
                    gg.log(C(-1))
                await asyncio.sleep(0)

        async def unchecked():
            await asyncio.sleep(0)
            with np.errstate(invalid="ignore"):
                return gg.log(C(-1)).item()

        _, value = await asyncio.gather(checked(), unchecked())
        assert np.isnan(value)

    asyncio.run(main())


def test_thread_with_a_copy_of_the_context_has_its_settings_but_no_tape():
    async def main():
        v = gg.Variable(3.0)

        def work():
            with pytest.raises(TapeError, match="not recording here"):
                tape.watch(C(1))
            y = v * v
            with gg.GradientTape() as own:
                z = v * v * v
            return y, own.gradient(z, v).item(), gg.nn.is_training(), len(threads.stack)

        with gg.nn.training(), gg.GradientTape() as tape:
            y, gradient, training, count = await asyncio.to_thread(work)
            assert (gradient, training, count) == (27, True, 0)
            assert tape.watched_variables() == ()
            assert tape.log == []
            y = v * v
        assert tape.gradient(y, v).item() == 6

    asyncio.run(main())


def test_new_thread_has_neither_settings_nor_tapes():
    seen = []
    with gg.nn.training(), gg.GradientTape():
        thread = threading.Thread(
            target=contextvars.Context().run,
            args=(lambda: seen.append((gg.nn.is_training(), len(threads.stack))),),
        )
        thread.start()
        thread.join()
    assert seen == [(False, 0)]


def test_code_in_a_copied_context_is_recorded_while_the_tape_is_open():
    x = C(3)
    with gg.GradientTape() as tape:
        tape.watch(x)
        context = contextvars.copy_context()
        y = context.run(lambda: x * x)
    context.run(lambda: x * x)
    assert len(tape.log) == 1
    assert context.run(lambda: len(threads.stack)) == 0
    assert tape.gradient(y, x).item() == 6


def test_tape_in_a_generator_is_open_while_the_generator_is():
    def generate(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            yield tape
        yield None

    x = C(3)
    generator = generate(x)
    tape = next(generator)
    y = x * x
    with gg.GradientTape() as own:
        own.watch(x)
        next(generator)  # closes the outer tape first
        z = x * x
    assert len(tape.log) == 1
    assert tape.gradient(y, x).item() == own.gradient(z, x).item() == 6


def test_tape_that_another_task_closes_leaves_its_own():
    async def main():
        async def generate():
            with gg.GradientTape() as tape:
                yield tape

        generator = generate()
        tape = await anext(generator)
        assert list(threads.stack) == [tape]
        await asyncio.create_task(generator.aclose())
        assert list(threads.stack) == recorders == []

    asyncio.run(main())


def test_tapes_inside_a_long_one_leave_nothing_behind():
    with gg.GradientTape() as outer:
        for _ in range(100):
            with gg.GradientTape(), gg.GradientTape():
                pass
        assert outer._longer == []
        assert list(threads.stack) == [outer]
