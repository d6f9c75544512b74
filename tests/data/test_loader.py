"""DataLoader: order, workers, errors and resuming."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError, DataError

DataLoader, Arrays = gg.data.DataLoader, gg.data.Arrays


def values(loader):
    return [np.asarray(batch).tolist() for batch in loader]


def flat(batches):
    return list(itertools.chain.from_iterable(batches))


def noisy(k, rng):
    return k + rng.random()


def square(k):
    if k == 5:
        raise ValueError("five is bad")
    return k * k


class Stream:
    """An iterable without a length."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_cover_the_data_in_order(drop_last):
    loader = DataLoader(range(7), 3, drop_last=drop_last)
    desired = [[0, 1, 2], [3, 4, 5], [6]][: 2 if drop_last else 3]
    assert values(loader) == desired
    assert len(loader) == len(desired)
    assert values(DataLoader(Stream(7), 3, drop_last=drop_last)) == desired


def test_each_epoch_has_its_own_order_that_follows_from_the_seed():
    a, b = (DataLoader(range(50), 8, shuffle=True, seed=3) for _ in range(2))
    first, second = values(a), values(a)
    assert first != second
    assert sorted(flat(first)) == list(range(50))
    assert (values(b), values(b)) == (first, second)
    assert values(DataLoader(range(50), 8, shuffle=True, seed=4)) != first


def test_an_iterable_is_shuffled_in_a_buffer():
    loader = DataLoader(Stream(50), 8, shuffle=True, shuffle_buffer=10)
    first = flat(values(loader))
    assert sorted(first) == list(range(50))
    assert all(place >= k - 10 for place, k in enumerate(first))
    assert first != flat(values(loader)) != list(range(50))


def test_arrays_are_indexed_once_a_batch():
    class Counted(Arrays):
        calls = 0

        def take(self, indices):
            self.calls += 1
            return super().take(indices)

    dataset = Counted(np.arange(10.0), np.arange(10))
    x, _y = next(iter(DataLoader(dataset, 4, shuffle=True)))
    assert x.shape == (4,)
    assert dataset.calls == 1


def test_examples_are_stacked_leaf_by_leaf():
    examples = [{"x": np.ones(2) * k, "name": str(k), "y": gg.constant(k)} for k in range(3)]
    (batch,) = DataLoader(examples, 3)
    assert batch["x"].shape == (3, 2)
    assert batch["name"] == ["0", "1", "2"]
    assert batch["y"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("how", [{"num_workers": 3}, {"num_workers": 2, "processes": True}])
def test_workers_give_what_the_loader_gives_without_them(how):
    options = {"shuffle": True, "map": noisy, "batch_map": noisy, "seed": 1}
    desired, loader = (
        DataLoader(range(20), 3, **options),
        DataLoader(range(20), 3, **options, **how),
    )
    for _ in range(2):
        assert values(loader) == values(desired)
    loader.close()
    assert values(loader) == values(desired)
    loader.close()


def test_workers_are_ahead_by_a_bounded_number_of_batches():
    made = []

    def note(k):
        made.append(k)
        return k

    loader = DataLoader(range(100), 1, map=note, num_workers=2, prefetch=3)
    batches = iter(loader)
    next(batches)
    while len(made) < 2:
        time.sleep(0.001)
    time.sleep(0.05)
    assert len(made) <= 8
    batches.close()
    loader.close()


@pytest.mark.parametrize("how", [{}, {"num_workers": 2}, {"num_workers": 1, "processes": True}])
def test_an_exception_names_its_item(how):
    loader = DataLoader(range(8), 2, map=square, **how)
    batches = iter(loader)
    assert next(batches).tolist() == [0, 1]
    assert next(batches).tolist() == [4, 9]
    with pytest.raises(DataError, match="item 5: ValueError: five is bad"):
        next(batches)
    loader.close()
    with pytest.raises(DataError, match=r"batch of items 0\.\.\.1: ValueError"):
        next(iter(DataLoader([np.ones(1), np.ones(2)], 2)))


def die(k):
    if k == 5:
        os._exit(3)
    return k


def test_a_worker_process_that_dies_twice_names_its_batch():
    loader = DataLoader(range(8), 2, map=die, num_workers=1, processes=True)
    batches = iter(loader)
    assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(DataError, match=r"process died.*the batch of items 4\.\.\.5, twice"):
        next(batches)
    loader.close()


def die_once(path):
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path.stem


def test_a_worker_process_that_is_killed_is_replaced(tmp_path):
    paths = [tmp_path / f"{k}" for k in range(6)]
    for path in (*paths[:2], *paths[3:]):
        path.touch()
    loader = DataLoader(paths, 1, map=die_once, num_workers=2, processes=True)
    assert flat(values(loader)) == list("012345")
    (killed,) = loader._workers[0]._processes
    killed.kill()  # between two epochs
    assert flat(values(loader)) == list("012345")
    loader.close()


HANG = """
import sys, threading, time
import gpugrad as gg

def hang(k):
    if k:
        time.sleep(1000)
    return k

if __name__ == "__main__":
    how = {"num_workers": 2, "processes": sys.argv[1] == "processes"}
    loader = gg.data.DataLoader(range(3), map=hang, **how)
    next(iter(loader))
    start = time.perf_counter()
    loader.close()
    print(time.perf_counter() - start < 20)  # 1 s, unless the machine is busy
    loader = gg.data.DataLoader(range(3), map=hang, timeout=100.0, **how)
    batches = iter(loader)
    next(batches)
    loader.timeout = 0.1
    try:
        next(batches)
    except gg.errors.DataError as error:
        print("the batch of items 1...1 within timeout=0.1" in str(error))
    print(time.time(), flush=True)
"""


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_a_worker_that_hangs_can_be_left(workers, tmp_path):
    script = tmp_path / "hang.py"
    script.write_text(HANG)
    command = [sys.executable, script, workers]
    done = subprocess.run(command, timeout=300, capture_output=True, text=True, check=True)
    *found, end = done.stdout.split()
    assert found == ["True", "True"]
    assert done.stderr == ""
    assert time.time() - float(end) < 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_an_iteration_goes_on_in_a_fork():
    go_on = []

    def waiting(k):
        while k > 1 and not go_on:
            time.sleep(0.001)
        return k

    loader = DataLoader(range(8), 2, map=waiting, num_workers=2)
    batches, rest = iter(loader), [[2, 3], [4, 5], [6, 7]]
    assert next(batches).tolist() == [0, 1]
    if not (child := os.fork()):
        signal.alarm(200)  # kills a child that waits for the workers of its parent
        go_on.append(True)
        os._exit([values(batches), values(loader)] != [rest, [[0, 1], *rest]])
    status = os.waitpid(child, 0)[1]
    go_on.append(True)
    assert (status, values(batches)) == (0, rest)
    loader.close()


@pytest.mark.parametrize("how", [{}, {"num_workers": 1}])
def test_an_exception_of_a_signal_handler_passes_through(how):
    def raise_own(*_):
        raise OwnError

    def slow(k):
        if k == 3:
            os.kill(os.getpid(), signal.SIGALRM)
            time.sleep(0.1)
        return k

    before = signal.signal(signal.SIGALRM, raise_own)
    try:
        with pytest.raises(OwnError):
            values(DataLoader(range(8), 2, map=slow, **how))
    finally:
        signal.signal(signal.SIGALRM, before)


class OwnError(Exception):
    """What a handler raises."""


def test_what_a_worker_process_cannot_get_raises():
    loader = DataLoader(range(8), 2, map=lambda k: k, num_workers=1, processes=True)
    with pytest.raises(ArgumentError, match=r"processes=True pickles .* or use threads"):
        values(loader)


@pytest.mark.parametrize("dataset", [range(23), Stream(23)], ids=["indexed", "iterable"])
@pytest.mark.parametrize(
    ("stop", "processes"), [*((stop, False) for stop in (0, 1, 4, 5, 6, 8)), (4, True)]
)
@pytest.mark.thin(3)
def test_a_loader_resumes_exactly(dataset, stop, processes):
    def loader():
        return DataLoader(
            dataset, 4, shuffle=True, map=noisy, batch_map=noisy, shuffle_buffer=7,
            num_workers=1 if processes else 2, processes=processes,
        )  # fmt: skip

    whole = loader()
    desired = [batch.tolist() for _ in range(3) for batch in whole]
    whole.close()
    first = loader()
    epochs = itertools.chain.from_iterable(first for _ in range(3))
    before = [next(epochs).tolist() for _ in range(stop)]
    second = loader()
    second.load_state(tuple(first.state()))
    after = []
    while len(before) + len(after) < len(desired):
        after += [batch.tolist() for batch in second]
    assert before + after == desired
    first.close()
    second.close()


def test_a_state_of_other_data_raises():
    with pytest.raises(ArgumentError, match="at batch 9, but an epoch has 2"):
        DataLoader(range(4), 2).load_state((0, 9))
    with pytest.raises(ArgumentError, match="epoch must be a whole number"):
        DataLoader(range(4), 2).load_state((-1, 0))
    for wrong in ((1,), 5, None):
        with pytest.raises(ArgumentError, match="expected a pair"):
            DataLoader(range(4), 2).load_state(wrong)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DataLoader([], 2), "the dataset is empty"),
        (lambda: DataLoader(range(3), 4, drop_last=True), "3 examples, fewer than batch_size=4"),
        (lambda: DataLoader(range(3), 0), "batch_size must be a whole number above 0, got 0"),
        (lambda: DataLoader(range(3), 1.5), "batch_size.*got 1.5"),
        (lambda: DataLoader(range(3), num_workers=-1), "num_workers.*got -1"),
        (lambda: DataLoader(iter([1, 2])), "an iterator can be read only once"),
        (lambda: DataLoader(None), "must have a length and examples by index.*got None"),
        (lambda: DataLoader(3.0), "must have a length and examples by index.*got 3.0"),
        (lambda: DataLoader(np.array(1.0)), r"shape \(\) has no examples"),
        (lambda: DataLoader({"x": np.ones(3)}), r"gg\.data\.Arrays\(dict\)"),
        (lambda: DataLoader(range(3), map=3), "map must be a function or None, got 3"),
        (lambda: DataLoader(range(3), collate_fn=None), "collate_fn must be a function"),
        (lambda: values(DataLoader(Stream(0), 2)), "the iterable is empty"),
    ],
)
def test_arguments_that_make_no_batch_raise(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_a_batch_larger_than_the_data_holds_all_of_it():
    assert values(DataLoader(range(3), 10)) == [[0, 1, 2]]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_batches_go_to_the_device_ahead_of_time(num_workers, cuda):
    for device in ("cpu", cuda):
        loader = DataLoader(Arrays(np.ones((6, 2), "f4"), np.arange(6)), 4, num_workers=num_workers)
        batches = list(gg.prefetch_to_device(loader, device))
        assert [x.shape for x, _ in batches] == [(4, 2), (2, 2)]
        assert {part.device for batch in batches for part in batch} == {gg.device(device)}
        assert [labels.tolist() for _, labels in batches] == [[0, 1, 2, 3], [4, 5]]
        loader.close()


def test_threads_of_workers_end_with_the_loader():
    before = threading.active_count()
    loader = DataLoader(range(10), 2, num_workers=3)
    values(loader)
    loader.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("kind", [np.asarray, gg.constant, list])
def test_loader_of_an_array_gives_rows(kind):
    rows = np.arange(12.0).reshape(4, 3)
    batches = list(gg.data.DataLoader(kind(rows), batch_size=2))
    assert [np.asarray(batch).tolist() for batch in batches] == [
        rows[:2].tolist(), rows[2:].tolist()
    ]  # fmt: skip


@pytest.mark.parametrize("how", [{}, {"num_workers": 2}])
def test_an_iteration_that_ends_early_has_had_its_epoch(how):
    loader = DataLoader(range(6), 2, **how)
    assert next(iter(loader)).tolist() == [0, 1]
    assert values(loader) == [[0, 1], [2, 3], [4, 5]]
    assert loader.state() == (2, 0)
    shuffled = DataLoader(range(50), 10, shuffle=True, **how)
    firsts = {tuple(next(iter(shuffled)).tolist()) for _ in range(4)}
    assert len(firsts) == 4
    shuffled.load_state((1, 2))
    assert len(values(shuffled)) == 3
    assert len(values(shuffled)) == 5


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_state_is_that_of_the_loop_also_through_prefetching(device, size, request):
    device = request.getfixturevalue("cuda") if device == "cuda" else device

    def loader():
        return DataLoader(np.arange(14.0), 4, shuffle=True, num_workers=1)

    whole, position, state = [], [], loader()
    for _ in range(3):
        for batch in gg.prefetch_to_device(state, device, size):
            whole.append(batch.tolist())
            position.append(state.state())
        assert state.state().batch == 0
    state.close()
    assert position == [(epoch, batch) for epoch in range(3) for batch in range(1, 5)]
    for k in (0, 2, 3, 6):
        other = loader()
        other.load_state(position[k])
        rest = []
        while len(rest) < len(whole) - k - 1:
            rest += [b.tolist() for b in gg.prefetch_to_device(other, device, size)]
        assert rest == whole[k + 1 :]
        other.close()
    for _batch in gg.prefetch_to_device(state, device, size):
        break
    assert state.state() == (3, 1)


def test_collate_fn_is_called_for_arrays_too():
    loader = DataLoader(Arrays(np.arange(5.0)), 2, collate_fn=lambda examples: tuple(examples))
    assert list(loader) == [(0, 1), (2, 3), (4,)]


def test_dicts_are_stacked_by_key():
    (batch,) = DataLoader([{"a": 1, "b": 2}, {"b": 3, "a": 4}], 2)
    assert {k: v.tolist() for k, v in batch.items()} == {"a": [1, 4], "b": [2, 3]}
    for other in ({"b": 1, "c": 2}, {"a": 1}, 5):
        with pytest.raises(DataError, match=r"items 0\.\.\.1: StructureError.*'a', 'b'"):
            values(DataLoader([{"a": 1, "b": 2}, other], 2))


class Foreign:
    """An array of another library, whose `take` counts elements, as NumPy's does."""

    def __init__(self, array):
        self.array = array
        self.shape = array.shape

    def __len__(self):
        return len(self.array)

    def __getitem__(self, index):
        return self.array[index]

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def take(self, indices):
        return self.array.take(indices)


def test_loader_of_a_foreign_array_gives_rows():
    rows = np.arange(12.0).reshape(4, 3)
    assert values(DataLoader(Foreign(rows), 2)) == [rows[:2].tolist(), rows[2:].tolist()]


def unpicklable(k):
    return (lambda: k) if k == 5 else k


def test_what_a_worker_process_cannot_return_names_the_batch():
    loader = DataLoader(range(8), 2, map=unpicklable, num_workers=1, processes=True)
    with pytest.raises(DataError, match=r"return the batch of items 4\.\.\.5.*picklable"):
        values(loader)
    loader.close()
