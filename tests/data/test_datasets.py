"""Datasets, and arrays in files that are read where they are indexed."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import (
    ArgumentError,
    CheckpointError,
    DataError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
)

data = gg.data


def test_arrays_of_any_structure_have_examples_and_batches():
    x, y = np.arange(12.0).reshape(4, 3), np.arange(4)
    dataset = data.Arrays(x, y)
    assert len(dataset) == 4
    assert dataset[2][0].tolist() == [6, 7, 8]
    batch = data.Arrays({"x": x, "more": [y]}).take(np.array([3, 1]))
    assert batch["x"].tolist() == [[9, 10, 11], [3, 4, 5]]
    assert batch["more"][0].tolist() == [3, 1]
    assert data.Arrays(gg.constant(x)).take(np.array([1])).shape == (1, 3)


def test_arrays_of_different_lengths_raise():
    with pytest.raises(ShapeError, match=r"one length; the shapes are \[\(4,\), \(3,\)\]"):
        data.Arrays(np.ones(4), np.ones(3))
    with pytest.raises(ShapeError, match=r"needs a first axis.*np\.asarray"):
        data.Arrays(np.ones(4), 3.0)
    with pytest.raises(ArgumentError, match="no array"):
        data.Arrays()


@pytest.mark.parametrize("stride", [None, 1, 3])
def test_windows_cover_the_tokens(stride):
    tokens = np.arange(23, dtype=np.uint8)
    dataset = data.Windows(tokens, 4, stride)
    step = stride or 4
    starts = [k for k in range(0, 23, step) if k + 5 <= 23]
    assert len(dataset) == len(starts)
    for k, start in enumerate(starts):
        x, y = dataset[k]
        assert x.tolist() == list(range(start, start + 4))
        assert y.tolist() == list(range(start + 1, start + 5))
        assert x.dtype == np.int32
    with pytest.raises(IndexOutOfBoundsError):
        dataset.take(np.array([len(starts)]))


def test_windows_of_too_few_tokens_raise():
    with pytest.raises(ShapeError, match="more than length=4"):
        data.Windows(np.arange(4), 4)
    with pytest.raises(ShapeError, match="one axis"):
        data.Windows(np.ones((9, 2)), 4)
    with pytest.raises(ArgumentError, match="above 0"):
        data.Windows(np.arange(9), 4, stride=0)


@pytest.mark.parametrize("piece", [1 << 24, 4, 1])
def test_lines_are_those_of_the_file(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(data.Lines, "_PIECE", piece)
    for text in ("one\ntwo\n\nfour\n", "one\r\ntwo", "ä\n", "\n"):
        path = tmp_path / "a.txt"
        path.write_bytes(text.encode())
        lines, desired = data.Lines(path), text.splitlines()
        assert len(lines) == len(desired)
        assert list(lines) == desired
        assert lines[-1] == desired[-1]
        assert lines[::2] == desired[::2]
        with pytest.raises(IndexOutOfBoundsError, match="out of bounds"):
            lines[len(desired)]


def test_files_are_memory_mapped_and_read_only(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6).reshape(3, 2))
    (tmp_path / "x.txt").write_bytes(b"hello")
    gg.checkpoint.save(
        tmp_path / "x.safetensors", {"a": np.arange(3), "b": np.ones((2, 2), "f4")}, {"k": "v"}
    )
    arrays, metadata = gg.checkpoint.load(tmp_path / "x.safetensors", mmap=True)
    assert metadata == {"k": "v"}
    assert arrays["a"].tolist() == [0, 1, 2]
    assert arrays["b"].shape == (2, 2)
    npy = data.open_npy(tmp_path / "x.npy")
    text = data.open_text(tmp_path / "x.txt")
    assert npy[1].tolist() == [2, 3]
    assert text.tobytes() == b"hello"
    for array in (arrays["a"], npy, text):
        assert isinstance(array, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_files_that_are_missing_or_damaged_raise(tmp_path):
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    empty = tmp_path / "empty"
    empty.touch()
    for path in (bad, empty, tmp_path):
        with pytest.raises(CheckpointError):
            gg.checkpoint.load(path, mmap=True)
    with pytest.raises(CheckpointError, match="There is no checkpoint"):
        gg.checkpoint.load(tmp_path / "none", mmap=True)
    with pytest.raises(ArgumentError, match="there is no file"):
        data.open_npy(tmp_path / "none")
    with pytest.raises(ArgumentError, match="is empty"):
        data.open_text(empty)
    np.savez(tmp_path / "x.npz", x=np.ones(2))
    (tmp_path / "cut.npy").write_bytes(b"\x93NUMPY\1\0v")
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    for name in (bad, tmp_path / "x.npz", tmp_path / "cut.npy", tmp_path / "objects.npy"):
        with pytest.raises(ArgumentError, match=r"not an \.npy file"):
            data.open_npy(name)


def test_windows_never_change_a_token():
    assert [a.tolist() for a in data.Windows(list(range(5)), 2)[1]] == [[2, 3], [3, 4]]
    series = data.Windows(np.linspace(0, 1, 5), 2, dtype="float32")
    assert series[0][1].tolist() == [0.25, 0.5]
    with pytest.raises(DTypeError, match="tokens are float64, and dtype=int32 would drop"):
        data.Windows(np.linspace(0, 1, 5), 2)
    large = np.full(5, 3_000_000_000)
    assert data.Windows(large, 2, dtype="int64")[0][0].tolist() == [3_000_000_000] * 2
    with pytest.raises(DataError, match="dtype=int32 cannot hold tokens from 3000000000"):
        data.Windows(large, 2)[0]
    with pytest.raises(DataError, match="dtype=uint8 cannot hold tokens from -1 to 3"):
        data.Windows(np.arange(-1, 4), 4, dtype="uint8")[0]
