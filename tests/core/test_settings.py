"""Settings of the process and of a thread, and the key that stands for all of them."""

import asyncio
import threading

import pytest

import gpugrad as gg
from gpugrad.core import settings
from gpugrad.core.devices import default_device


def key():
    return settings.key(default_device)


def in_a_thread(f):
    results = []
    thread = threading.Thread(target=lambda: results.append(f()))
    thread.start()
    thread.join()
    return results[0]


@pytest.fixture
def restored():
    yield
    gg.set_matmul_precision("highest")
    gg.set_deterministic(False)


PROCESS_WIDE = [
    (gg.set_matmul_precision, ("high", "highest"), "the matmul precision"),
    (gg.set_deterministic, (True, False), "set_deterministic"),
]


def test_key_names_every_setting():
    assert key().values == ("cpu", "highest", False, False, "", key().values[5], None)
    v, before = gg.Variable(1.0), key()
    v.trainable = False
    (change,) = key().changes(before)
    assert change[0] == "Variable.trainable"
    v.trainable = True
    assert key() is before


@pytest.mark.parametrize(("choose", "values", "name"), PROCESS_WIDE)
def test_process_setting_changes_the_key_of_every_thread(choose, values, name, restored):
    before = key()
    in_a_thread(lambda: choose(values[0]))
    after = key()
    assert after is not before
    assert before.changes(after) == [(name, *reversed(values))]
    assert in_a_thread(key) is after
    choose(values[1])
    assert key() is before


def test_thread_setting_changes_only_the_key_of_that_thread(cuda):
    before = key()
    for block, name in [
        (gg.device(cuda), "the default device"),
        (gg.nn.training(), "nn.training"),
        (gg.debug.nans(), "debug.nans"),
    ]:
        with block:
            (change,) = before.changes(key())
            assert change[0] == name
            assert in_a_thread(key) is before
        assert key() is before


def test_equal_settings_share_one_key():
    before = key()
    with gg.device("cpu"), gg.nn.training(False):
        assert key() is before


def test_key_chooses_the_default_device_if_none_is_set(monkeypatch):
    monkeypatch.setattr(settings._process, "device", None)
    monkeypatch.setattr(settings._process, "version", object())
    chosen = []
    assert settings.key(lambda: chosen.append(1) or default_device()).values[0] == "cpu"
    assert chosen == [1]


DECORATORS = [
    (lambda: gg.nn.training(), lambda: gg.nn.is_training()),
    (lambda: gg.mixed_precision("bfloat16"), lambda: (gg.ones((2, 2)) @ gg.ones((2, 2))).nbytes),
]


@pytest.mark.parametrize(("block", "setting"), DECORATORS, ids=["training", "mixed_precision"])
def test_a_decorated_coroutine_runs_inside_the_block(block, setting):
    plain = setting()
    with block():
        inside = setting()

    @block()
    async def decorated():
        before = setting()
        await asyncio.sleep(0)
        return before, setting()

    async def other():
        before = setting()
        await asyncio.sleep(0)
        return before, setting()

    async def both():
        return await asyncio.gather(decorated(), other(), decorated())

    assert asyncio.run(both()) == [(inside, inside), (plain, plain), (inside, inside)]
    assert inside != plain == setting()


@pytest.mark.parametrize(("block", "setting"), DECORATORS, ids=["training", "mixed_precision"])
def test_a_decorated_generator_raises(block, setting):
    def numbers():
        yield setting()

    async def numbers_in_time():
        yield setting()

    for f in (numbers, numbers_in_time):
        with pytest.raises(gg.errors.ArgumentError, match="is a generator function"):
            block()(f)
