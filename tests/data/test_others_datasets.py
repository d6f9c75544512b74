"""DataLoader over the datasets of other libraries, and over stand-ins that are called like them."""

from itertools import chain
from typing import NamedTuple

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import DataError

DataLoader = gg.data.DataLoader


class Ranks(NamedTuple):
    """In place of `gpugrad.core.ranks.ranks`."""

    rank: int
    size: int


class HuggingFace:
    """Called like `datasets.Dataset`: `take` gives the first examples, not those at indices."""

    def __init__(self, n):
        self.n, self.shape = n, (n, 2)

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return {"x": float(index), "name": str(index)}

    def __getitems__(self, indices):
        assert type(indices) is list
        assert {int}.issuperset(map(type, indices))
        return [self[k] for k in indices]

    def take(self, n):
        return HuggingFace(n)


class Array:
    """Called like a tensor of torch, which NumPy does not read."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    def __array__(self, *args, **keywords):
        raise TypeError("not on the host")


class TorchMap:
    """Called like a map-style dataset of torch."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return Array([index, -index]), index


class IterableDataset:
    """Called like torch's and Hugging Face's class of that name."""

    epoch = 0

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        raise NotImplementedError

    def __iter__(self):
        return iter([Array([float(k), self.epoch]) for k in range(self.n)])

    def set_epoch(self, epoch):
        self.epoch = epoch

    def take(self, n):
        return IterableDataset(n)


def hugging_face(n):
    rows = {"x": [float(k) for k in range(n)], "name": [str(k) for k in range(n)]}
    return pytest.importorskip("datasets").Dataset.from_dict(rows)


def hugging_face_stream(n):
    return hugging_face(n).with_format("numpy").to_iterable_dataset()


def torch_map(n):
    torch = pytest.importorskip("torch")
    return torch.utils.data.TensorDataset(torch.arange(n), torch.ones(n, dtype=torch.bfloat16))


def torch_subset(n):
    return pytest.importorskip("torch").utils.data.Subset(torch_map(2 * n), range(n))


def torch_stream(n):
    torch = pytest.importorskip("torch")

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(torch.arange(n, dtype=torch.float32))

        def __len__(self):
            return n

    return Stream()


def rows(batches):
    """The first column of each batch."""
    columns = [b["x"] if isinstance(b, dict) else b[0] if type(b) is tuple else b for b in batches]
    return [[float(np.ravel(example)[0]) for example in c] for c in columns]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        HuggingFace, TorchMap, IterableDataset, hugging_face, hugging_face_stream, torch_map,
        torch_subset, torch_stream,
    ],
)  # fmt: skip
def test_loader_of_anothers_dataset_covers_it_and_resumes_in_an_epoch(make, shuffle):
    dataset, options = make(11), {"batch_size": 3, "shuffle": shuffle, "seed": 1}
    loader = DataLoader(dataset, **options)
    batches = iter(loader)
    first, position = rows([next(batches), next(batches)]), loader.state()
    rest = rows(batches)
    assert [len(b) for b in first + rest] == [3, 3, 3, 2]
    assert sorted(chain(*first, *rest)) == list(range(11))
    assert shuffle == (first[0] != [0, 1, 2])
    for workers in ({}, {"num_workers": 2}):
        other = DataLoader(dataset, **options, **workers)
        other.load_state(position)
        assert rows(other) == rest
        assert sorted(chain(*rows(other))) == list(range(11))
        other.close()


@pytest.mark.parametrize("make", [HuggingFace, pytest.param(hugging_face, marks=pytest.mark.slow)])
def test_worker_processes_read_anothers_dataset(make):
    loader = DataLoader(make(7), 3, num_workers=1, processes=True)
    assert rows(loader) == [[0, 1, 2], [3, 4, 5], [6]]
    loader.close()


@pytest.mark.parametrize("make", [HuggingFace, TorchMap, IterableDataset, hugging_face, torch_map])
def test_ranks_share_anothers_dataset(make, monkeypatch):
    parts = []
    for rank in range(2):
        monkeypatch.setattr("gpugrad.data.loader.ranks", Ranks(rank, 2))
        parts.append(rows(DataLoader(make(5), 4, shard=True)))
    assert parts == [[[0, 1], []], [[2, 3], [4]]]


def test_each_epoch_of_a_stream_has_its_number_also_when_resumed():
    loader = DataLoader(IterableDataset(2), 2)
    loader.load_state((3, 0))
    assert [batch[:, 1].tolist() for _ in range(2) for batch in loader] == [[3, 3], [4, 4]]


def test_maps_get_the_examples_that_were_read_together():
    loader = DataLoader(HuggingFace(4), 2, map=lambda e: e["x"] * 10)
    assert [b.tolist() for b in loader] == [[0, 10], [20, 30]]


def test_bfloat16_of_torch_keeps_its_dtype():
    batch = next(iter(DataLoader(torch_map(4), 2)))
    assert batch[1].dtype == gg.bfloat16


def test_dataset_that_returns_too_few_examples_raises():
    class Short(HuggingFace):
        def __getitems__(self, indices):
            return super().__getitems__(indices)[:-1]

    with pytest.raises(DataError, match=r"items 0\.\.\.1: .*__getitems__ returned 1 .* for 2"):
        next(iter(DataLoader(Short(4), 2)))


def test_take_is_called_of_subclasses_of_dataset_only():
    class Ours(gg.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            raise AssertionError

        def take(self, indices):
            return indices * 2

    assert [b.tolist() for b in DataLoader(Ours(), 2)] == [[0, 2], [4, 6]]
