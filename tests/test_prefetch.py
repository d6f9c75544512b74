"""`gg.prefetch_to_device`: order, memory, streams and errors."""

import numpy as np
import pytest
from conftest import HOST

import gpugrad as gg
from gpugrad.core.backend import cupy
from gpugrad.core.devices import gpu_count


def batches(n, rng):
    return [{"x": rng.normal(size=(4, 3)), "labels": (np.arange(4) + k,), "k": k} for k in range(n)]


@pytest.mark.parametrize("device", ["cpu", *["cuda:0"] * bool(gpu_count())])
@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_batches_arrive_in_order_and_keep_their_values(device, size, rng):
    expected = batches(9, rng)
    kept = []
    for batch in gg.prefetch_to_device(iter(expected), device, size):
        assert batch["x"].device == gg.device(device)
        kept.append(batch)
    assert len(kept) == 9
    for batch, desired in zip(kept, expected, strict=True):
        np.testing.assert_array_equal(batch["x"].numpy(), desired["x"])
        np.testing.assert_array_equal(batch["labels"][0].numpy(), desired["labels"][0])
        assert batch["k"] == desired["k"]


@pytest.mark.skipif(gpu_count() == 0, reason="needs a CUDA device")
def test_memory_is_reused_when_nobody_holds_it(rng):
    addresses, held = [], []
    for k, x in enumerate(gg.prefetch_to_device([np.full(8, k) for k in range(20)], "cuda:0")):
        addresses.append(x._data.data.ptr)
        if k in (3, 4):
            held.append(x[2:])  # a view holds it too
        np.testing.assert_array_equal(x.numpy(), k)
        del x
    assert len(set(addresses)) <= 3 + len(held)
    for k, x in zip((3, 4), held, strict=True):
        np.testing.assert_array_equal(x.numpy(), k)


def test_streams_wait_for_each_other(rng, waits):
    here = cupy().cuda.get_current_stream().ptr
    with waits() as pairs:
        for x in gg.prefetch_to_device([rng.normal(size=4) for _ in range(6)], "cuda:0"):
            gg.sum(x)
    (side,) = {a for a, _ in pairs} - {here, HOST}
    assert pairs.count((here, side)) == pairs.count((side, here)) == 6
    awaited = [b for a, b in pairs if a == HOST]
    assert len(awaited) > 1, "nothing waited before pinned memory was written to again"
    assert set(awaited) == {side}


def test_a_loop_that_stops_early_waits_for_all_copies(rng, waits):
    with waits() as pairs:
        iterator = gg.prefetch_to_device([rng.normal(size=4) for _ in range(6)], "cuda:0", 3)
        next(iterator)
        iterator.close()
    assert len([a for a, _ in pairs if a != HOST]) == 6


@pytest.mark.parametrize("device", ["cpu", *["cuda:0"] * bool(gpu_count())])
def test_byte_order_is_converted_and_text_is_refused(device):
    (x,) = gg.prefetch_to_device([np.array([1.0, 2.0], ">f4")], device)
    assert x.dtype == np.dtype(np.float32)
    assert x.tolist() == [1.0, 2.0]
    with pytest.raises(gg.errors.DTypeError, match=r"prefetch_to_device: .*array of numbers"):
        list(gg.prefetch_to_device([np.array(["text"])], device))


@pytest.mark.parametrize("device", ["cpu", *["cuda:0"] * bool(gpu_count())])
def test_batches_before_an_error_are_yielded_first(device):
    def failing():
        for k in range(3):
            yield np.full(2, k)
        raise ZeroDivisionError

    iterator = gg.prefetch_to_device(failing(), device, 2)
    assert [next(iterator).tolist() for _ in range(3)] == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(ZeroDivisionError):
        next(iterator)


def test_tensors_move_and_invalid_arguments_are_refused():
    (moved,) = gg.prefetch_to_device([gg.constant([1.0], device="cpu")], "cpu")
    assert moved.numpy().tolist() == [1.0]
    for wrong in (0, 1.5, True):
        with pytest.raises(gg.errors.ArgumentError, match="size must be a positive int"):
            gg.prefetch_to_device([], size=wrong)
    with pytest.raises(gg.errors.DeviceError):
        gg.prefetch_to_device([], "cuda:77")


@pytest.mark.peers
@pytest.mark.parametrize("device", ["cpu", *["cuda:0"] * bool(gpu_count())])
def test_batches_of_torch_s_loader_become_tensors(device):
    torch = pytest.importorskip("torch")
    x, labels = torch.arange(12.0).reshape(6, 2), torch.arange(6)
    dataset = torch.utils.data.TensorDataset(x, labels)
    batches = list(gg.prefetch_to_device(torch.utils.data.DataLoader(dataset, 4), device))
    assert all(type(part) is gg.Tensor for batch in batches for part in batch)
    assert {part.device for batch in batches for part in batch} == {gg.device(device)}
    assert np.concatenate([x.numpy() for x, _ in batches]).tolist() == x.tolist()
    x[:] = 0  # the values were copied
    assert batches[0][0].numpy()[1].tolist() == [2, 3]
    with pytest.raises(gg.errors.DTypeError, match=r"prefetch_to_device: from_dlpack.*grad"):
        list(gg.prefetch_to_device([torch.ones(2, requires_grad=True)], device))


class WithDLPack:
    """An array of a library that has nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class WithArray:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3)


@pytest.mark.parametrize("device", ["cpu", *["cuda:0"] * bool(gpu_count())])
def test_arrays_of_other_libraries_move_and_what_is_no_array_raises(device):
    slices = gg.IndexedSlices(gg.ones((1, 2)), gg.constant([1]), (3, 2))
    plain = {"text": "a", "raw": b"b", "none": None, "number": 2.5, "scalar": np.bool_(True)}
    batch = {"a": WithDLPack(np.arange(3.0)), "b": WithArray(), "c": slices, **plain}
    (moved,) = gg.prefetch_to_device([batch], device)
    for part in (moved["a"], moved["b"], moved["c"].values, moved["c"].indices):
        assert part.device == gg.device(device)
    assert moved["a"].tolist() == [0, 1, 2] == moved["b"].tolist()
    assert {k: moved[k] for k in plain} == plain
    for wrong in (object(), {1, 2}, len, slice(2)):
        with pytest.raises(gg.errors.DTypeError, match="prefetch_to_device: a batch holds a"):
            list(gg.prefetch_to_device([(1.0, wrong)], device))
