"""Checkpoints: a file restores all that was saved, or nothing and an error says why."""

import json
import os
import stat
import subprocess
import sys
import tracemalloc
import zlib

import numpy as np
import pytest
import safetensors.numpy

import gpugrad as gg
from gpugrad import checkpoint, nn, optim
from gpugrad.errors import ArgumentError, CheckpointError, DTypeError


def model(units=3, **keywords):
    return nn.Sequential(nn.Dense(2, units, gg.relu, **keywords), nn.Dense(units, 1, **keywords))


def trained(optimizer=None):
    m, optimizer = model(), optimizer or optim.Adam(0.01)
    for _ in range(3):
        optimizer.minimize(lambda: gg.mean(m(np.ones((4, 2), np.float32)) ** 2))
    return m, optimizer


def values_of(module):
    return {name: v.numpy() for name, v in module.state_dict().items()}


def assert_same(a, b):
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], strict=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.safetensors"


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64", "complex64"],
)
def test_every_dtype_and_shape_comes_back(path, dtype):
    saved = {
        str(shape): gg.astype(gg.full(shape, 3.0), dtype) for shape in ((), (0,), (2, 3), (1, 0, 2))
    }
    checkpoint.save(path, saved)
    arrays, metadata = checkpoint.load(path)
    assert metadata == {}
    assert_same({k: arrays[k] for k in saved}, {k: v.numpy() for k, v in saved.items()})


def test_arrays_that_are_not_contiguous_come_back_whole(path):
    # safetensors 0.8.0 writes the memory of a transposed array without reordering it
    a = np.arange(12.0).reshape(3, 4)
    saved = {
        "transposed": a.T,
        "fortran": np.asfortranarray(a),
        "strided": a[:, ::2],
        "reversed": a[::-1],
        "broadcast": np.broadcast_to(a[0], (3, 4)),
        "big endian": a.astype(">f8"),
    }
    checkpoint.save(path, {**saved, "tensor": gg.constant(a).T})
    arrays, _ = checkpoint.load(path)
    for name, value in {**saved, "tensor": a.T}.items():
        np.testing.assert_array_equal(arrays[name], value)


def test_other_readers_can_open_the_file(path):
    checkpoint.save(path, {"w": gg.ones((2, 3))}, {"epoch": "3"})
    np.testing.assert_array_equal(safetensors.numpy.load_file(path)["w"], np.ones((2, 3)))
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["epoch"] == "3"


def test_files_of_other_writers_can_be_read(path):
    safetensors.numpy.save_file({"w": np.ones(2, np.float32)}, path)
    arrays, metadata = checkpoint.load(path)
    assert_same(arrays, {"w": np.ones(2, np.float32)})
    assert metadata == {}


def test_reading_takes_the_memory_of_the_arrays(path):
    checkpoint.save(path, {str(k): np.ones(1 << 20, np.float32) for k in range(8)})
    tracemalloc.start()
    checkpoint.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * path.stat().st_size


def test_loaded_arrays_can_be_written_to(path):
    checkpoint.save(path, {"w": gg.ones(2)})
    checkpoint.load(path)[0]["w"] += 1


def test_values_on_a_gpu_are_saved_and_restored_there(path, cuda):
    with gg.device(cuda):
        m = model()
        checkpoint.save(path, m)
        before = values_of(m)
        for v in m.variables:
            v.assign(gg.zeros_like(v))
        checkpoint.restore(path, m)
        assert {str(v.device) for v in m.variables} == {cuda}
    assert_same(values_of(m), before)
    on_cpu = model()
    checkpoint.restore(path, on_cpu)
    assert_same(values_of(on_cpu), before)


@pytest.mark.parametrize(
    "make", [optim.SGD, lambda: optim.SGD(0.1, 0.9), optim.Adam], ids=["sgd", "momentum", "adam"]
)
def test_restored_model_and_optimizer_continue_bitwise(path, make):
    m, optimizer = trained(make())
    checkpoint.save(path, m, {"note": "here"}, optimizer=optimizer)
    other, again = model(), make()
    assert checkpoint.restore(path, other, again) == {"note": "here"}
    assert_same(values_of(other), values_of(m))
    assert again.iterations == 3
    for each, its_optimizer in ((m, optimizer), (other, again)):
        its_optimizer.minimize(lambda m=each: gg.mean(m(np.ones((4, 2), np.float32)) ** 2))
    assert_same(values_of(other), values_of(m))


def test_model_can_be_restored_without_the_optimizer(path):
    m, optimizer = trained()
    checkpoint.save(path, m, optimizer=optimizer)
    other = model()
    checkpoint.restore(path, other)
    assert_same(values_of(other), values_of(m))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: model(4), [r"layers.0.kernel: float32 \(2, 3\) in the file, float32 \(2, 4\)"]),
        (lambda: model(dtype="float64"), ["layers.0.bias: float32 .* float64"]),
        (
            lambda: nn.Sequential(nn.Dense(2, 3, gg.relu)),
            [r"layers.1.kernel: float32 \(3, 1\) in the file; the model has no such name"],
        ),
        (
            lambda: nn.Sequential(*model(), nn.Dense(1, 1)),
            [r"layers.2.kernel: missing in the file; the model has float32 \(1, 1\)", "layers.2.b"],
        ),
    ],
    ids=["shape", "dtype", "too few", "too many"],
)
def test_other_model_is_refused_with_the_differences(path, other, words):
    m, optimizer = trained()
    checkpoint.save(path, m, optimizer=optimizer)
    content = path.read_bytes()
    wrong, fresh = other(), optim.Adam()
    before = values_of(wrong)
    for each in words:
        with pytest.raises(CheckpointError, match=each):
            checkpoint.restore(path, wrong, fresh)
    assert_same(values_of(wrong), before)
    assert fresh.iterations == 0
    assert path.read_bytes() == content


def test_state_of_another_optimizer_changes_nothing(path):
    m, optimizer = trained()
    checkpoint.save(path, m, optimizer=optimizer)
    for v in m.variables:
        v.assign(gg.zeros_like(v))
    with pytest.raises(CheckpointError, match="belongs to Adam, not to SGD"):
        checkpoint.restore(path, m, optim.SGD())
    assert all((v.numpy() == 0).all() for v in m.variables)
    checkpoint.save(path, m)
    with pytest.raises(CheckpointError, match="no optimizer state"):
        checkpoint.restore(path, m, optim.SGD())


@pytest.mark.parametrize(
    ("function", "error", "raised", "words"),
    [
        ("fsync", OSError(28, "No space left on device"), CheckpointError, "No space left"),
        ("replace", KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
    ids=["full", "interrupted"],
)
def test_write_that_fails_leaves_the_old_file(path, function, error, raised, words, monkeypatch):
    checkpoint.save(path, {"w": gg.ones(2)})
    content = path.read_bytes()

    def fails(*args):
        raise error

    monkeypatch.setattr(os, function, fails)
    with pytest.raises(raised, match=words):
        checkpoint.save(path, {"w": gg.zeros(2)})
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_file_has_the_permissions_of_any_new_file(path):
    checkpoint.save(path, {"w": gg.ones(2)})
    plain = path.with_name("plain")
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_replaced_file_keeps_its_mode_and_the_links_to_it(path):
    checkpoint.save(path, {"w": gg.ones(2)})
    path.chmod(0o640)
    link, dangling = path.with_name("latest"), path.with_name("next")
    link.symlink_to(path.name)
    dangling.symlink_to("new")
    for each in (link, dangling):
        checkpoint.save(each, {"w": gg.zeros(2)})
        assert each.is_symlink()
        np.testing.assert_array_equal(checkpoint.load(each)[0]["w"], [0, 0])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    np.testing.assert_array_equal(checkpoint.load(path)[0]["w"], [0, 0])


def test_only_regular_files_are_replaced(path):
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match="not a regular file"):
        checkpoint.save(path, {"w": gg.ones(2)})
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_reserved_and_invalid_names_are_refused_before_writing(path):
    checkpoint.save(path, {"w": gg.ones(2)})
    content = path.read_bytes()
    for name, words in (("__metadata__", "reserves the name"), ("\ud800", "valid Unicode")):
        with pytest.raises(ArgumentError, match=words):
            checkpoint.save(path, {"w": gg.zeros(2), name: gg.ones(2)})
    assert path.read_bytes() == content


def test_equal_values_give_equal_bytes(path):
    tensors = {f"layer{i}": gg.ones(i, dtype=d) for i, d in enumerate(["int8", "float32"] * 4)}
    metadata = {f"key{i}": "é" for i in range(8)}
    contents = set()
    for turn in (list, reversed):
        for _ in range(3):  # a hash of Rust's or Python's would order them at random
            checkpoint.save(path, dict(turn(list(tensors.items()))), dict(turn(metadata.items())))
            contents.add(path.read_bytes())
    assert len(contents) == 1
    assert checkpoint.load(path)[1] == metadata


KILLED = """
import os, sys
import gpugrad as gg
os.replace = lambda a, b: os._exit(1)
gg.checkpoint.save(sys.argv[1], {"w": gg.ones(2)})
"""


def test_temporary_files_of_killed_processes_are_removed_by_the_next_save(path):
    other = path.with_name(f".b{path.name}.0123abcd.tmp")
    other.write_bytes(b"of another checkpoint")
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert len(list(path.parent.iterdir())) == 2
    checkpoint.save(path, {"w": gg.ones(2)})
    assert sorted(path.parent.iterdir()) == sorted([path, other])


def test_temporary_file_of_a_save_that_is_running_is_kept(path, monkeypatch):
    replace, inner = os.replace, []

    def save_in_between(a, b):
        if not inner:
            inner.append(True)
            checkpoint.save(path, {"w": gg.zeros(2)})
        replace(a, b)

    monkeypatch.setattr(os, "replace", save_in_between)
    checkpoint.save(path, {"w": gg.ones(2)})
    np.testing.assert_array_equal(checkpoint.load(path)[0]["w"], [1, 1])
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(checkpoint.fcntl is None, reason="locks files with fcntl")
def test_temporary_file_that_another_save_removes_before_it_is_locked_is_written_again(
    path, monkeypatch
):
    flock, calls = checkpoint.fcntl.flock, []

    def removed_before(file, operation):
        calls.append(operation)
        if len(calls) == 1:
            checkpoint.save(path, {"w": gg.zeros(2)})  # it takes the file for a killed process's
        flock(file, operation)

    monkeypatch.setattr(checkpoint.fcntl, "flock", removed_before)
    checkpoint.save(path, {"w": gg.ones(2)})
    np.testing.assert_array_equal(checkpoint.load(path)[0]["w"], [1, 1])
    assert list(path.parent.iterdir()) == [path]


def test_missing_file_and_folder_are_clear_errors(path):
    with pytest.raises(CheckpointError, match=r"no checkpoint .*a\.safetensors"):
        checkpoint.load(path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        checkpoint.load(path.parent)
    with pytest.raises(CheckpointError, match="cannot be written"):
        checkpoint.save(path.parent / "none" / "a", {"w": gg.ones(2)})


def test_file_cut_anywhere_is_damaged(path):
    checkpoint.save(path, {"w": gg.ones(20)}, {"epoch": "3"})
    content = path.read_bytes()
    for length in (0, 4, 8, 30, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match="damaged"):
            checkpoint.load(path)


@pytest.mark.parametrize("bit", [1, 2, 16, 32])
def test_any_byte_that_changed_is_noticed(path, bit):
    saved = {"weights": gg.arange(4, dtype="float32"), "b": gg.ones((2, 1))}
    checkpoint.save(path, saved, {"epoch": "3"})
    content = path.read_bytes()
    for i in range(len(content)):
        changed = bytearray(content)
        changed[i] ^= bit
        path.write_bytes(bytes(changed))
        with pytest.raises(CheckpointError, match=r"damaged|not supported"):
            checkpoint.load(path)


def test_files_whose_checksum_covers_only_the_values_still_load(path):
    arrays = {"w": np.arange(3.0), "b": np.ones(2, np.float32)}
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(arrays[name].view(np.uint8), zlib.crc32(name.encode(), total))
    metadata = {"gpugrad.crc32": f"{total:08x}", "epoch": "3"}
    safetensors.numpy.save_file(arrays, path, metadata)
    loaded, rest = checkpoint.load(path)
    assert_same(dict(sorted(loaded.items())), dict(sorted(arrays.items())))
    assert rest == {"epoch": "3"}
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    with pytest.raises(CheckpointError, match="checksum"):
        checkpoint.load(path)


@pytest.mark.parametrize("content", [b"hello", b"\x00" * 100, b"PK\x03\x04" * 50, b"\xff" * 16])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged or not a safetensors file"):
        checkpoint.load(path)


def header_of(text):
    return len(text).to_bytes(8, "little") + text


def part(**arrays):
    return {
        name: {"dtype": "F32", "shape": shape, "data_offsets": [start, stop]}
        for name, (shape, start, stop) in arrays.items()
    }


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    "content",
    [
        header_of(b"[" * 100_000),
        header_of(b'{"w":{"dtype":"F32","shape":[0],"data_offsets":[]}}'),
        header_of(b'{"w":{"dtype":"F32","shape":[0],"data_offsets":[0]}}'),
        header_of(b'{"w":{"dtype":"F32","shape":null,"data_offsets":[0,0]}}'),
        header_of(b'{"w":{"dtype":"F32","shape":[1e9],"data_offsets":[0,0]}}'),
        header_of(b'{"w":[]}'),
        header_of(b"[]"),
        header_of(b"1"),
        header_of(b'{"__metadata__":1}'),
        header_of(b'{"__metadata__":{"a":1}}'),
        header_of(b'{"w":{"dtype":"F32","shape":[0,1e999],"data_offsets":[0,0]}}'),
        *(header_of(json.dumps(header).encode()) + bytes(16) for header in [
            part(w=([2], 0, 8), v=([2], 4, 12)),  # overlaps
            part(w=([2], 0, 8), v=([1], 12, 16)),  # a hole
            part(w=([2], 8, 16)),  # a hole at the start
            part(w=([2], 0, 8)),  # bytes of nobody
            part(w=([2], -16, -8), v=([4], 0, 16)),
            part(w=([4], 0, 16), v=([-1], 16, 12)),
            part(w=([3], 0, 16)), part(w=([5], 0, 20)), part(w=([2, True, 2.0], 0, 16)),
        ]),
    ],
)  # fmt: skip
def test_headers_of_another_form_are_refused(path, content, mmap):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged or not a safetensors file"):
        checkpoint.load(path, mmap=mmap)


def test_dtype_that_numpy_lacks_is_named(path):
    header = json.dumps({"w": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    with pytest.raises(CheckpointError, match="F8_E4M3"):
        checkpoint.load(path)


def test_unsupported_values_are_refused_before_writing(path):
    with pytest.raises(DTypeError, match="'w' is complex128"):
        checkpoint.save(path, {"w": np.ones(2, complex)})
    with pytest.raises(ArgumentError, match="strings, got 3"):
        checkpoint.save(path, {"w": gg.ones(2)}, {"epoch": 3})
    with pytest.raises(ArgumentError, match="strings, got 0"):
        checkpoint.save(path, {0: gg.ones(2)})
    with pytest.raises(DTypeError, match="number"):
        checkpoint.save(path, {"w": "text"})
    assert not path.exists()


def test_a_dict_of_variables_is_saved_and_restored(path):
    one, two = gg.Variable([1.0, 2.0]), gg.Variable([0.0, 0.0])
    checkpoint.save(path, {"a": one})
    checkpoint.restore(path, {"a": two})
    np.testing.assert_array_equal(two.numpy(), [1, 2])
    with pytest.raises(DTypeError, match="'a' is a Tensor"):
        checkpoint.restore(path, {"a": gg.ones(2)})
