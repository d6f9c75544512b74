"""Devices: names, defaults, moving, and the errors for arrays on two devices.

Without a GPU, these are the two devices of the made-up driver.
"""

import copy
import functools
import math
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import types
from pathlib import Path

import numpy as np
import pytest
from conftest import REAL_GPU
from needs import needs_driver
from taping import tape_gradient, taped

import gpugrad as gg
from gpugrad.core import backend, devices, settings
from gpugrad.core.backend import BFLOAT16
from gpugrad.errors import ArgumentError, DeviceError, DTypeError
from gpugrad.testing.checks.subject import Subject
from gpugrad.testing.close import to_double

C = gg.constant
ROOT = str(Path(gg.__file__).parents[1])


@pytest.fixture
def chosen():
    """Restore the default device after a test that calls set_device."""
    before = settings.explicit_device()
    yield
    settings.set_default_device(before)


def run(code, **environment):
    """Run Python code in a new process and return what it prints."""
    env = {k: v for k, v in os.environ.items() if k != "GPUGRAD_DEVICE"}
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**env, "PYTHONPATH": ROOT, **environment}, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


# ---- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cpu", "cpu"), ("CPU", "cpu"), ("cpu:0", "cpu"), ("/cpu:0", "cpu"), ("/CPU:0", "cpu"),
        ("/device:CPU:0", "cpu"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1"), ("gpu", "cuda:0"),
        ("/gpu:2", "cuda:2"), ("GPU:0", "cuda:0"), ("/device:GPU:1", "cuda:1"),
        ("/job:localhost/replica:0/task:0/device:GPU:3", "cuda:3"),
    ],
)  # fmt: skip
def test_device_names_are_parsed(name, text):
    d = gg.device(name)
    assert str(d) == text
    assert repr(d) == f"device('{text}')"
    assert gg.device(d) is d


@pytest.mark.parametrize("name", ["tpu", "", "cpu:1", "cuda:", "cuda:x", "cuda:-1", "cuda 0", 3])
def test_unknown_device_name_is_refused(name):
    with pytest.raises(ArgumentError, match="is not a device name"):
        gg.device(name)


def test_devices_compare_and_hash_by_value():
    a, b, c = gg.device("cuda:1"), gg.device("/gpu:1"), gg.device("cuda:0")
    assert a == b
    assert hash(a) == hash(b)
    assert a != c
    assert a == "cuda:1" == a
    assert a == "/gpu:1"
    assert a != "cuda:2"
    assert a != "no device"
    assert (a == 1) is False
    assert {a: 1}[b] == 1
    assert {gg.device("cpu"): 1}["cpu"] == 1
    assert pickle.loads(pickle.dumps(a)) == a


def test_devices_lists_the_cpu_first(cuda):
    assert [str(d) for d in gg.devices()[:2]] == ["cpu", "cuda:0"]


# ---- the default ----------------------------------------------------------------------------


def test_default_device_is_the_current_one():
    assert gg.device() == "cpu"  # tests run with GPUGRAD_DEVICE=cpu
    assert gg.zeros(2).device == "cpu"


def test_device_context_sets_the_device_of_new_arrays(cuda):
    with gg.device(cuda) as d:
        assert d == cuda
        assert gg.device() == cuda
        tensors = [
            gg.zeros(2), C([1.0]), gg.asarray([1.0]), gg.Variable(1.0), gg.arange(3), gg.eye(2),
            gg.add(1.0, 2.0), gg.random.normal(2), gg.full((2,), 1.0), gg.linspace(0, 1, 3),
        ]  # fmt: skip
        with gg.device("cpu"):
            inner = gg.ones(1)
        after = gg.ones(1)
    assert all(t.device == cuda for t in tensors)
    assert (inner.device, after.device, gg.ones(1).device) == ("cpu", cuda, "cpu")


def test_device_context_ends_after_an_exception(cuda):
    with pytest.raises(ZeroDivisionError), gg.device(cuda):
        _ = 1 / 0
    assert gg.device() == "cpu"


def test_device_context_applies_to_one_thread(cuda):
    seen = []
    with gg.device(cuda):
        worker = threading.Thread(target=lambda: seen.append(str(gg.zeros(1).device)))
        worker.start()
        worker.join()
    assert seen == ["cpu"]


def test_set_device_applies_to_all_threads_and_a_context_overrides_it(cuda, chosen):
    gg.set_device(cuda)
    seen = [str(gg.zeros(1).device)]
    worker = threading.Thread(target=lambda: seen.append(str(gg.zeros(1).device)))
    worker.start()
    worker.join()
    with gg.device("cpu"):
        seen.append(str(gg.zeros(1).device))
    assert seen == ["cuda:0", "cuda:0", "cpu"]


def test_device_keyword_overrides_the_default(cuda):
    tensors = [
        gg.zeros(2, device=cuda), C(1.0, device=cuda), gg.asarray([1.0], device=cuda),
        gg.Variable(1.0, device=cuda), gg.arange(3, device=cuda), gg.eye(2, device=gg.device(cuda)),
    ]  # fmt: skip
    assert all(t.device == cuda for t in tensors)


def test_missing_device_raises_only_when_it_is_used(chosen):
    d = gg.device("cuda:99")  # naming a device does not check that it exists
    for use in (
        lambda: gg.zeros(1, device=d), lambda: gg.set_device(d), d.__enter__,
        lambda: C(1.0).to_device(d),
    ):  # fmt: skip
        with pytest.raises(DeviceError, match=r"cuda:99.*gg\.device\('cpu'\)"):
            use()
    assert gg.device() == "cpu"


# ---- in a new process -----------------------------------------------------------------------


def test_environment_variable_sets_the_default_device():
    code = "import gpugrad as gg; print(gg.device(), gg.zeros(1).device)"
    assert run(code, GPUGRAD_DEVICE="/cpu:0") == "cpu cpu"


def test_wrong_device_name_in_the_environment_raises_at_first_use():
    code = """
        import gpugrad as gg
        try:
            gg.zeros(1)
        except gg.errors.ArgumentError as error:
            print(error)
    """
    assert "'tpu' is not a device name" in run(code, GPUGRAD_DEVICE="tpu")


def test_without_cupy_the_cpu_is_the_default_and_errors_say_what_to_install():
    code = """
        import sys
        sys.modules["cupy"] = None
        import gpugrad as gg
        print(gg.zeros(1).device, [str(d) for d in gg.devices()])
        try:
            gg.zeros(1, device="cuda:0")
        except gg.errors.DeviceError as error:
            print(error)
    """
    first, message = run(code).splitlines()
    assert first == "cpu ['cpu']"
    for words in ("cuda:0", "CuPy is not installed", "pip install 'gpugrad[cuda12]'", "cuda13"):
        assert words in message


def test_without_cupy_asking_for_cuda_in_the_environment_raises():
    code = """
        import sys
        sys.modules["cupy"] = None
        import gpugrad as gg
        try:
            gg.zeros(1)
        except gg.errors.DeviceError as error:
            print(error)
    """
    assert "CuPy is not installed" in run(code, GPUGRAD_DEVICE="cuda")


@needs_driver
@pytest.mark.parametrize(
    ("code", "failure", "warned"),
    [(35, "cudaErrorInsufficientDriver: CUDA driver version is insufficient", True),
     (100, "cudaErrorNoDevice: no CUDA-capable device is detected", False)],
)  # fmt: skip
def test_old_driver_is_reported_once_and_by_name(code, failure, warned):
    script = f"""
        import warnings
        from gpugrad.testing.cuda import driver
        driver.activate()
        import cupy
        def none():
            raise cupy.cuda.runtime.CUDARuntimeError({code})
        cupy.cuda.runtime.getDeviceCount = none
        import gpugrad as gg
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(gg.zeros(1).device, gg.zeros(1).device, [str(w.message) for w in caught])
        try:
            gg.zeros(1, device="cuda")
        except gg.errors.DeviceError as error:
            print(error)
    """
    first, message = run(script).splitlines()
    assert first.startswith("cpu cpu [")
    assert first.count(failure) == warned
    assert "no GPU answers" in message
    assert (f"({failure}" in message) == warned
    assert run(script, GPUGRAD_DEVICE="cpu").splitlines()[0] == "cpu cpu []"


def test_import_and_cpu_work_do_not_import_cupy():
    code = """
        import sys
        class Refuse:
            def find_spec(self, name, *rest):
                if name.partition(".")[0] in ("cupy", "cupyx"):
                    print("looked for", name)
        sys.meta_path.insert(0, Refuse())
        import gpugrad as gg
        print("imported")
        with gg.device("cpu"), gg.GradientTape() as tape:
            v = gg.Variable([1.0, 2.0])
            y = gg.sum(v * v)
        print(tape.gradient(y, v).tolist())
    """
    assert run(code, GPUGRAD_DEVICE="cpu").splitlines() == ["imported", "[2.0, 4.0]"]


# ---- work on a device -----------------------------------------------------------------------


def test_work_stays_on_the_device(cuda):
    with gg.device(cuda):
        w, x = gg.Variable([[1.0], [2.0]]), C([[0.3, 0.4]])
        tape, y = taped(lambda x: gg.sum(gg.tanh(x @ w) * 2.0), x)
        gw, gx = tape.gradient(y, [w, x])
    for t in (y, gw, gx):
        assert t.device == cuda
        assert type(t._data) is not np.ndarray
    s = 2 * (1 - np.tanh(1.1) ** 2)
    np.testing.assert_allclose(gw.numpy(), [[0.3 * s], [0.4 * s]], rtol=1e-5)


def beside_lists(device):
    """Calls of ops of several arrays: the first array on a device, the others as lists."""
    for name, op in sorted(gg.OPS.items()):
        several = not op.variadic and len(op.arrays) > 1 and callable(op.samples)
        for args, params in list(op.samples(np.random.default_rng(0)))[:1] if several else ():
            first, *others = args
            if not params.keys().isdisjoint(op.arrays):
                continue
            if others and np.ndim(first) and np.asarray(first).dtype.kind in "fiub":
                lists = [y if y is None else np.asarray(y).tolist() for y in others]
                yield name, op, [gg.asarray(first, device=device), *lists], params


def test_lists_go_to_the_device_of_the_tensor_beside_them(cuda):
    there, wrong = [], []
    for name, op, args, params in beside_lists(cuda):
        try:
            results = op.eager(*args, **params)
        except DTypeError:  # it takes arrays of one dtype
            continue
        except DeviceError as error:
            wrong += [] if "on the CPU only" in str(error) else [name]
            continue
        results = results if isinstance(results, tuple) else (results,)
        (there if {y.device for y in results} == {gg.device(cuda)} else wrong).append(name)
    assert wrong == []
    assert len(there) > 100


@pytest.mark.parametrize("scalar", [np.float32(2), np.float64(2), np.int64(2)])
def test_numpy_scalars_go_to_the_device_of_the_tensor(scalar, cuda):
    x = gg.asarray(np.ones(3, np.float32), device=cuda)
    results = [x * scalar, scalar * x, gg.where(x > scalar, x, scalar), gg.clip(x, 0, scalar)]
    results += [gg.hypot(x, scalar), gg.stack([x, [scalar] * 3]), gg.lerp(x, scalar, 0.5)]
    assert {y.device for y in results} == {gg.device(cuda)}
    assert (gg.constant([1.0]) * scalar).device == gg.device("cpu")


@pytest.mark.parametrize("name", [n for n in sorted(gg.OPS) if "c" in gg.OPS[n].kinds])
def test_complex_arguments_run_on_the_device_or_the_error_names_the_device(name, cuda):
    subject = Subject(gg.OPS[name], 0, 1, gg.device(cuda))
    refusals = []
    for sample in subject.samples:
        if "(complex)" in sample.title and "device" not in sample.op.params:
            there = sample.replace(sample.leaves, device=subject.device)
            try:
                results = there.results()
            except DeviceError as error:
                refusals.append(str(error))
            else:
                assert [y.dtype for y in results] == [y.dtype for y in sample.results()]
    reasons = "takes no complex numbers", "on the CPU only"
    assert all(name in r and any(reason in r for reason in reasons) for r in refusals)


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16, np.float32, np.float64])
@pytest.mark.parametrize("extreme", [gg.segment_max, gg.segment_min])
def test_extremes_of_segments_on_the_device_are_exact(extreme, dtype, cuda):
    numbers = [0.0, 0.1, -0.1, 1 / 3, -1 / 3, math.inf, -math.inf, math.nan, -math.nan]
    pairs = [[a, b] for a in numbers for b in numbers]
    x = C(np.ravel(pairs), dtype=dtype)
    ids = C(np.repeat(np.arange(len(pairs)), 2))
    with np.errstate(invalid="ignore"):
        desired = extreme(x, ids, len(pairs) + 1)  # the last one is empty
    actual = extreme(x.to_device(cuda), ids.to_device(cuda), len(pairs) + 1)
    assert actual.dtype == dtype
    np.testing.assert_array_equal(to_double(actual.numpy()), to_double(desired.numpy()))


def test_higher_order_and_forward_mode_on_the_device(cuda):
    x = C([1.0, 2.0], device=cuda)
    outer, g = taped(lambda x: tape_gradient(lambda x: gg.sum(x**3), x), x)
    h = outer.jacobian(g, x)
    assert (h.device, h.tolist()) == (cuda, [[6.0, 0.0], [0.0, 12.0]])
    with gg.ForwardAccumulator(x, C([1.0, 0.0], device=cuda)) as acc:
        y = gg.softmax(x)
    assert acc.jvp(y).device == cuda


def test_unconnected_zeros_and_seeds_are_on_the_device(cuda):
    x = C([1.0, 2.0], device=cuda)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * 2
        z = C(1.0) * 1
    assert tape.gradient(z, x, unconnected_gradients="zero").device == cuda
    assert tape.gradient(y, x, output_gradients=[1.0, 10.0]).tolist() == [2.0, 20.0]
    with pytest.raises(DeviceError, match=r"output_gradients.*cpu|cpu.*output_gradients"):
        tape.gradient(y, x, output_gradients=C([1.0, 10.0]))


def test_numbers_and_text_of_a_device_tensor(cuda):
    x = C([1.5, 2.5], device=cuda)
    assert x.tolist() == [1.5, 2.5]
    assert isinstance(x.numpy(), np.ndarray)
    assert float(x[0]) == x[0].item() == 1.5
    assert bool(x[1] > 2)
    assert [10, 20][C(1, device=cuda)] == 20
    assert repr(x) == "Tensor([1.5, 2.5], shape=(2,), dtype=float32, device=cuda:0)"
    assert f"{x[0]:.2f}" == "1.50"


def test_numpy_does_not_copy_from_the_device_implicitly(cuda):
    with pytest.raises(DTypeError, match=r"cuda:0.*x\.numpy\(\)"):
        np.asarray(C([1.0], device=cuda))


def test_cupy_is_told_how_to_copy_a_variable_or_a_view(cuda):
    cp, v = backend.cupy(), gg.Variable(gg.ones(3, device=cuda))
    for unshared in (v, gg.ones(3, device=cuda)[1:]):
        with pytest.raises(DTypeError, match=r"CuPy.* x\.copy\(\) of a Variable or a view"):
            cp.asarray(unshared)
        assert cp.asarray(unshared.copy()).tolist() == [1] * unshared.size


def test_device_arrays_stay_on_the_device(cuda):
    cupy = backend.cupy()
    a = cupy.array(np.ones(2, np.float32))
    for make in (gg.asarray, gg.convert_to_tensor, lambda a: a * C([1.0, 2.0], device=cuda)):
        assert make(a).device == cuda
    x = C([1.0, 2.0], device=cuda)
    tape, y = taped(lambda x: x * a, x)
    a[...] = 100.0  # the tape holds a copy
    assert tape.gradient(y, x).tolist() == [1.0, 1.0]


def test_device_memory_is_shared_through_dlpack_and_the_cuda_array_interface(cuda):
    cupy = backend.cupy()
    x = C([1.0, 2.0], device=cuda)
    shared = cupy.from_dlpack(x)
    assert shared.get().tolist() == [1.0, 2.0]
    for make in (gg.from_dlpack, gg.asarray):
        assert (make(shared).device, make(shared).tolist()) == (cuda, [1.0, 2.0])
    memory = x.__cuda_array_interface__
    assert (memory["shape"], memory["typestr"]) == ((2,), "<f4")
    assert memory["data"][0] == shared.__cuda_array_interface__["data"][0]
    assert not hasattr(C([1.0]), "__cuda_array_interface__")
    copied = cupy.from_dlpack(x, copy=True)
    assert copied.get().tolist() == [1.0, 2.0]
    assert copied.data.ptr != shared.data.ptr
    with gg.GradientTape() as tape:
        tape.watch(x)
        for read in (cupy.from_dlpack, lambda x: x.__cuda_array_interface__):
            with pytest.raises(DTypeError, match="cut its gradient"):
                read(x)


@pytest.mark.parametrize("protocol", ["dlpack", "cuda array interface", "asarray"])
def test_another_library_sees_writes_to_its_memory_but_not_a_variables(protocol, cuda):
    theirs = backend.cupy().asarray(np.array([1.0, 2.0], np.float32))
    source = theirs
    if protocol == "cuda array interface":
        source = types.SimpleNamespace(__cuda_array_interface__=theirs.__cuda_array_interface__)
    ways = {"dlpack": gg.from_dlpack, "asarray": functools.partial(gg.asarray, copy=False)}
    read = ways.get(protocol, gg.asarray)
    x, v = read(source), gg.Variable(read(source))
    x[0] = 9.0
    gg.optim.SGD(1.0).apply_gradients([(gg.ones(2, device=cuda), v)])
    assert x.tolist() == [9.0, 2.0]
    assert v.tolist() == [0.0, 1.0]
    assert theirs.get().tolist() == [9.0, 2.0]


def test_numpy_functions_of_device_arrays_and_tensors_return_tensors(cuda):
    array, x = backend.cupy().asarray(np.ones(2, np.float32)), C([1.0, 2.0], device=cuda)
    for y in (np.concatenate([array, x]), np.stack([x, array]), np.where(x > 1, array, x)):
        assert isinstance(y, gg.Tensor)
        assert y.device == cuda


@pytest.mark.parametrize("kind", ["tensor", "variable"])
def test_pickles_are_restored_on_their_device(kind, cuda):
    x = (C if kind == "tensor" else gg.Variable)([1.0, 2.0], device=cuda)
    twin = pickle.loads(pickle.dumps(x))
    assert (twin.device, twin.tolist()) == (cuda, [1.0, 2.0])


# ---- two devices ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "mix"),
    [
        ("add", lambda x, y: x + y), ("multiply", lambda x, y: x * y),
        ("matmul", lambda x, y: gg.matmul(x, y)), ("concat", lambda x, y: gg.concat([x, y])),
        ("where", lambda x, y: gg.where(x > 1, x, y)), ("maximum", lambda x, y: gg.maximum(x, y)),
        ("stack", lambda x, y: gg.stack([x, y])), ("greater", lambda x, y: x > y),
        ("take", lambda x, y: gg.take(x, gg.astype(y, "int64"))),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
@pytest.mark.parametrize(
    "transform", [lambda f: f, gg.function, gg.vmap], ids=["", "traced", "vmap"]
)
def test_error_for_arrays_on_two_devices_names_the_op_and_the_devices(name, mix, transform, cuda):
    x, y = C([[1.0, 2.0]]), C([[3.0, 4.0]], device=cuda)
    mix = transform(mix)
    for pair in ((x, y), (y, x)):
        with pytest.raises(DeviceError) as caught:
            mix(*pair)
        message = str(caught.value)
        for words in (f"{name}:", "cpu", "cuda:0", "x.to_device(device)"):
            assert words in message


def test_error_for_a_numpy_array_beside_a_cuda_tensor_suggests_asarray(cuda):
    x, y = np.array([1.0, 2.0]), C([3.0, 4.0], "float64", device=cuda)
    with pytest.raises(DeviceError, match=r"add: .*gg.asarray\(x, device=device\)"):
        x + y
    assert (gg.asarray(x, device=cuda) + y).tolist() == [4.0, 6.0]


@pytest.mark.parametrize(
    "transform", [lambda f: f, gg.function, gg.vmap], ids=["", "traced", "vmap"]
)
def test_index_on_another_device_is_refused(transform, cuda):
    x, index = C([[1.0, 2.0]]), C([[0, 1]], device=cuda)
    take = transform(lambda x, index: x[index])
    for pair in ((x, index), (x.to_device(cuda), index.to_device("cpu"))):
        with pytest.raises(DeviceError, match=r"getitem: .*x.to_device\(device\)"):
            take(*pair)


def test_numpy_arrays_are_not_moved_to_the_device(cuda):
    with pytest.raises(DeviceError, match=r"add:.*cpu"):
        C([1.0], device=cuda) + np.ones(1, np.float32)
    assert (C([1.0], device=cuda) + 1).device == cuda


def test_arrays_on_two_gpus_are_refused(second):
    x, y = C([1.0], device="cuda:0"), C([2.0], device=second)
    with pytest.raises(DeviceError, match=r"add:.*cuda:0.*cuda:1"):
        x + y
    assert (y * y).device == second
    assert tape_gradient(lambda y: gg.sum(y * y), y).device == second


def test_variables_refuse_values_from_another_device(cuda):
    v = gg.Variable([1.0], device=cuda, name="w")
    for method in (v.assign, v.assign_add, v.assign_sub):
        with pytest.raises(DeviceError, match=r"'w' on cuda:0"):
            method(C([2.0]))
    v.assign([3.0])
    v.assign_add(np.ones(1, np.float32))
    assert (v.device, v.tolist()) == (cuda, [4.0])


# ---- moving ---------------------------------------------------------------------------------


def test_to_device_copies_or_returns_the_tensor_itself(cuda):
    x = C([1.0, 2.0])
    y = x.to_device(cuda)
    assert (y.device, y.tolist(), y.dtype) == (cuda, [1.0, 2.0], x.dtype)
    assert x.to_device("cpu") is x
    assert y.to_device(gg.device(cuda)) is y
    assert y.to_device("/cpu:0").device == "cpu"


def test_to_device_is_differentiable_in_both_directions(cuda):
    x, w = C([1.0, 2.0]), C([3.0, 4.0], device=cuda)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        y = x.to_device(cuda) * w
        z = gg.sum((y * y).to_device("cpu") * x)
    gx, gw = tape.gradient(y, [x, w])
    assert (gx.device, gx.tolist()) == ("cpu", [3.0, 4.0])
    assert (gw.device, gw.tolist()) == (cuda, [1.0, 2.0])
    gx, gw = tape.gradient(z, [x, w])
    assert (gx.device, gx.tolist()) == ("cpu", [27.0, 192.0])  # 3 x^2 w^2
    assert (gw.device, gw.tolist()) == (cuda, [6.0, 64.0])  # 2 x^3 w


def test_to_device_has_second_order_and_forward_mode(cuda):
    x = C(2.0)
    with gg.GradientTape() as outer:
        outer.watch(x)
        g = tape_gradient(lambda x: (x.to_device(cuda) ** 3).to_device("cpu"), x)
    assert (g.item(), outer.gradient(g, x).item()) == (12.0, 12.0)
    with gg.ForwardAccumulator(x, C(1.0)) as acc:
        y = x.to_device(cuda) ** 3
    assert (acc.jvp(y).device, acc.jvp(y).item()) == (cuda, 12.0)


def test_gradients_of_targets_on_two_devices_are_summed_at_the_source(cuda):
    x = C([1.0, 2.0])
    tape, (here, there) = taped(lambda x: (x * 2, x.to_device(cuda) * 3), x)
    assert tape.gradient([here, there], x).tolist() == [5.0, 5.0]


def test_to_device_of_a_variable_moves_its_value(cuda):
    v = gg.Variable([1.0, 2.0])
    with gg.GradientTape() as tape:
        y = v.to_device(cuda) * 2
    g = tape.gradient(y, v)
    assert (y.device, g.device, g.tolist()) == (cuda, "cpu", [2.0, 2.0])


@pytest.mark.parametrize("first", ["cpu", "cuda:0"])
def test_sparse_gradients_on_one_device_beside_ops_on_another(first, cuda):
    second = {"cpu": "cuda:0", "cuda:0": "cpu"}[first]
    h, c = (gg.ones((3, 4), device=d) for d in (first, second))
    rows = gg.constant([0, 2], device=first)
    with gg.GradientTape() as tape:
        tape.watch([h, c])
        doubled, tripled = h * 2.0, c * 3.0
        total = gg.sum(gg.gather(doubled, rows).to_device(second) * tripled[:2])
    of_h, of_c = tape.gradient(total, [h, c])
    assert of_h.device == h.device
    np.testing.assert_array_equal(of_h.numpy()[:, 0], [6, 0, 6])
    np.testing.assert_array_equal(of_c.numpy()[:, 0], [6, 6, 0])


def test_gradient_in_another_memory_order_is_read_on_its_device(second):
    v = gg.Variable(np.zeros((2, 3), np.float32), device=second)
    with gg.device(second):
        g = gg.constant(np.arange(6, dtype=np.float32).reshape(3, 2)).T
    with gg.device("cuda:0"):
        gg.optim.SGD(1.0).apply_gradients([(g, v)])
    np.testing.assert_array_equal(v.numpy(), [[0, -2, -4], [-1, -3, -5]])


@pytest.mark.parametrize("how", ["copy", "pickle", "lower", "state"])
def test_optimizer_state_stays_on_the_device_of_its_variable(how, second):
    v, optimizer = gg.Variable([1.0, 2.0], device=second), gg.optim.Adam(0.1)
    g = gg.ones(2, device=second)
    optimizer.apply_gradients([(g, v)])
    if how == "copy":
        v, optimizer = copy.deepcopy((v, optimizer))
    elif how == "pickle":
        v, optimizer = pickle.loads(pickle.dumps((v, optimizer)))
    elif how == "lower":
        gg.function(lambda g: optimizer.apply_gradients([(g, v)])).lower(g)
    else:
        assert optimizer.state_dict()["0.m"].device == second
    (state,) = optimizer._states.values()
    assert {devices.device_of(a) for a in state.averages.values()} == {v.device}


@needs_driver
@pytest.mark.slow
def test_tests_of_devices_run_with_one_gpu():
    if REAL_GPU:
        pytest.skip(reason="only the made-up driver can have one GPU fewer")
    files = ["tests/test_cuda.py", "tests/test_prefetch.py", "tests/core/test_devices.py"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "not with_one_gpu"]
    result = subprocess.run(
        [*command, *files], cwd=ROOT, env=os.environ | {"GPUGRAD_CUDA_DEVICES": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-2000:]


def test_sparse_update_of_a_variable_that_is_not_on_the_current_device(second):
    v = gg.Variable(np.zeros((3, 2), np.float32), device=second)
    with gg.device(second):
        rows = gg.IndexedSlices(gg.ones((1, 2)), gg.constant([1]), (3, 2))
    gg.optim.SGD(1.0).apply_gradients([(rows, v)])
    np.testing.assert_array_equal(v.numpy()[:, 0], [0, -1, 0])
