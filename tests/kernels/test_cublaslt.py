"""Products by cuBLASLt, on a stand-in that computes what the descriptors describe."""

import importlib
import importlib.metadata
import inspect
import itertools
import re
import threading
from collections import OrderedDict

import numpy as np
import pytest
from comparing import near_largest
from fresh import output_of
from taping import taped

import gpugrad as gg
from gpugrad.core import backend
from gpugrad.core.backend import BFLOAT16
from gpugrad.errors import ArgumentError
from gpugrad.kernels.libraries import cublaslt

DTYPES = [np.float32, np.float64, np.float16, BFLOAT16]
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


@pytest.fixture(autouse=True)
def _there():
    if cublaslt.binding() is None:
        pytest.skip(reason="there is a GPU, but no nvmath-python")


@pytest.fixture
def calls():
    """The calls that the stand-in for cuBLASLt received."""
    recorded = getattr(cublaslt.binding(), "calls", None)
    if recorded is None:
        pytest.skip(reason="the real cuBLASLt does not record its calls")
    recorded.clear()
    return recorded


@pytest.fixture
def lib(cuda):
    return backend.cupy()


def near(actual, desired, dtype):
    near_largest(actual.get(), desired, TOLERANCE[np.dtype(dtype).name])


LAYOUTS = {
    "rows": lambda a: a,
    "columns": lambda a: np.swapaxes(np.swapaxes(a, -1, -2).copy(), -1, -2),
    "part of rows": lambda a: np.concatenate([a, a], -1)[..., : a.shape[-1]],
    "part of columns": lambda a: np.swapaxes(
        np.concatenate([np.swapaxes(a, -1, -2)] * 2, -1)[..., : a.shape[-2]], -1, -2
    ),
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "backwards": lambda a: a[..., ::-1, :],
}


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("shapes", [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4,)),
                                    ((4,), (2, 4, 5))], ids=str)  # fmt: skip
def test_vector_products_match_numpy_in_one_call(shapes, step, calls, lib, rng):
    a, b = (np.repeat(rng.normal(size=s).astype(np.float32), abs(step), -1)[..., ::step]
            for s in shapes)  # fmt: skip
    there = [_on_device_with_strides(lib, x) for x in (a, b)]
    near(cublaslt.matmul(backend.reading(*there), *there), a @ b, np.float32)
    assert len(calls) == 1


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("left", "right"), list(itertools.product(LAYOUTS, LAYOUTS)))
def test_product_reads_matrices_of_any_layout(left, right, dtype, lib, rng):
    for m, k, n in ((3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1), (1, 6, 1)):
        a = LAYOUTS[left](rng.normal(size=(m, k)).astype(dtype))
        b = LAYOUTS[right](rng.normal(size=(k, n)).astype(dtype))
        actual = cublaslt.product(
            lib, _on_device_with_strides(lib, a), _on_device_with_strides(lib, b)
        )
        near(actual, a.astype(np.float64) @ b.astype(np.float64), dtype)
        assert actual.dtype == dtype
        assert actual.flags.c_contiguous


def _on_device_with_strides(lib, a):
    """A device array with the strides of a NumPy array."""
    low, high = np.lib.array_utils.byte_bounds(a)
    memory = np.zeros((high - low) // a.itemsize, a.dtype)
    start = (a.ctypes.data - low) // a.itemsize
    view = np.lib.stride_tricks.as_strided(memory[start:], a.shape, a.strides)
    view[...] = a
    whole = lib.array(memory)
    return lib.lib.stride_tricks.as_strided(whole[start:], a.shape, a.strides)


@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (6, 4, 5)),
     ((2, 6, 3, 4), (2, 6, 4, 5)), ((2, 1, 3, 4), (1, 6, 4, 5)), ((1, 3, 4), (7, 4, 1)),
     ((7, 1, 4), (1, 4, 5)), ((5, 2, 3, 4), (2, 4, 2))],
)  # fmt: skip
@pytest.mark.parametrize("turned", [(), (0,), (1,), (0, 1)])
def test_batched_product_broadcasts_in_one_call(a, b, turned, lib, rng, calls):
    xs = [rng.normal(size=s) for s in (a, b)]
    there = [
        lib.array(np.swapaxes(x, -1, -2).copy()).swapaxes(-1, -2) if i in turned else lib.array(x)
        for i, x in enumerate(xs)
    ]
    near(cublaslt.product(lib, *there), xs[0] @ xs[1], np.float64)
    assert len(calls) == 1


def test_batched_product_with_permuted_axes_matches_numpy(lib, rng):
    x, y = rng.normal(size=(3, 2, 5, 4)), rng.normal(size=(2, 3, 4, 6))
    actual = cublaslt.product(lib, lib.array(x).transpose(1, 0, 2, 3), lib.array(y))
    near(actual, x.transpose(1, 0, 2, 3) @ y, np.float64)


def test_transposed_matrices_are_flags_not_copies(lib, rng, calls, monkeypatch):
    copied = []
    real = lib.ascontiguousarray
    monkeypatch.setattr(lib, "ascontiguousarray", lambda a: copied.append(a) or real(a))
    x, y = lib.array(rng.normal(size=(4, 3))), lib.array(rng.normal(size=(5, 4)))
    near(cublaslt.product(lib, x.T, y.T), x.get().T @ y.get().T, np.float64)
    assert (calls[0]["desc"][3], calls[0]["desc"][4]) == (1, 1)
    assert copied == []


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_product_adds_another_array(dtype, lib, rng):
    a, b, c = (rng.normal(size=s).astype(dtype) for s in ((2, 3, 4), (2, 4, 5), (2, 3, 5)))
    added = lib.array(c)
    actual = cublaslt.product(lib, lib.array(a), lib.array(b), added=added)
    near(actual, c.astype(float) + a.astype(float) @ b.astype(float), dtype)
    near(added, c, dtype)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(("m", "n"), [(6, 10), (3, 200), (1, 1)])
def test_layer_and_its_gradient_are_two_products(activation, dtype, m, n, lib, rng):
    k = 5
    x, w, bias = (rng.normal(size=s).astype(dtype) for s in ((m, k), (k, n), (n,)))
    g, w2 = rng.normal(size=(m, 4)).astype(dtype), rng.normal(size=(n, 4)).astype(dtype)
    aux = cublaslt.relu_aux(lib, m, n)
    if activation == "gelu":
        aux = cublaslt.gelu_aux(lib, m, n, np.dtype(dtype))
    there = [lib.array(a) for a in (x, w, bias, g, w2)]
    out = cublaslt.product(
        lib, there[0], there[1], epilogue=f"{activation}_aux_bias", bias=there[2], aux=aux
    )
    u = x.astype(float) @ w.astype(float) + bias.astype(float)
    near(out, np.maximum(u, 0) if activation == "relu" else gelu(u), dtype)
    db = lib.empty((n,), dtype=dtype)
    du = cublaslt.product(
        lib, there[3], there[4].T, epilogue=f"d{activation}_bgrad", bias=db, aux=aux
    )
    dh = g.astype(float) @ w2.astype(float).T
    eps = 1e-6
    slope = (u > 0) if activation == "relu" else (gelu(u + eps) - gelu(u - eps)) / (2 * eps)
    t = max(TOLERANCE[np.dtype(dtype).name], 1e-8)
    expected = dh * slope
    np.testing.assert_allclose(du.get().astype(float), expected, t, 6 * t * np.abs(dh).max())
    sums = expected.sum(0)
    np.testing.assert_allclose(
        db.get().astype(float), sums, t, 6 * t * np.abs(expected).sum(0).max()
    )


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16], ids=str)
def test_a_product_of_16_bit_floats_may_stay_in_float32(dtype, turned, lib, rng):
    a, b = (rng.normal(size=s).astype(dtype) for s in ((17, 40), (40, 9)))
    desired = a.astype(np.float32) @ b.astype(np.float32)
    there = lib.asarray(np.ascontiguousarray(a.T)).T if turned else lib.asarray(a)
    for _ in range(2):  # beside the plan of the rounded product
        wide = cublaslt.product(lib, there, lib.asarray(b), dtype=np.dtype(np.float32))
        narrow = cublaslt.product(lib, there, lib.asarray(b))
        assert (wide.dtype, narrow.dtype) == (np.float32, dtype)
        near(wide, desired, np.float32)
        np.testing.assert_array_equal(narrow.get(), wide.get().astype(dtype))


def test_a_bias_is_added_to_each_row(lib, rng):
    x, w, bias = rng.normal(size=(4, 3)), rng.normal(size=(3, 6)), rng.normal(size=6)
    for epilogue, of in (("bias", lambda u: u), ("relu_bias", lambda u: np.maximum(u, 0)),
                         ("gelu_bias", gelu)):  # fmt: skip
        there = [lib.array(a) for a in (x, w, bias)]
        actual = cublaslt.product(lib, *there[:2], epilogue=epilogue, bias=there[2])
        near(actual, of(x @ w + bias), np.float64)


def test_matmul_precision_applies_to_float32_only(lib, calls):
    for precision, compute in (("highest", 68), ("high", 77), ("medium", 75)):
        gg.set_matmul_precision(precision)
        try:
            assert gg.get_matmul_precision() == precision
            for dtype, expected in ((np.float32, compute), (np.float16, 68), (np.float64, 70)):
                a = lib.array(np.ones((2, 2), dtype))
                cublaslt.product(lib, a, a)
                assert calls[-1]["desc"]["compute"] == expected
        finally:
            gg.set_matmul_precision("highest")
    with pytest.raises(ArgumentError, match="'best' is not one of 'highest', 'high', 'medium'"):
        gg.set_matmul_precision("best")


def test_plans_are_cached_and_old_ones_are_freed(lib, monkeypatch, calls):
    live = cublaslt.binding().live
    monkeypatch.setattr(cublaslt, "PLANS", 3)
    monkeypatch.setattr(cublaslt, "_plans", OrderedDict())
    a = lib.array(np.ones((3, 3), np.float32))
    cublaslt.product(lib, a, a)
    before = len(live)
    for _ in range(3):
        cublaslt.product(lib, a, a)
    assert len(live) == before
    for n in range(4, 30):
        cublaslt.product(lib, a, lib.array(np.ones((3, n), np.float32)))
    assert len(cublaslt._plans) <= cublaslt.PLANS
    assert len(live) <= before + 8


def test_plan_evicted_by_another_thread_still_multiplies(lib, monkeypatch, calls):
    monkeypatch.setattr(cublaslt, "PLANS", 1)
    a, b, c = (lib.array(np.ones(s, np.float32)) for s in ((2, 3), (3, 4), (5, 3)))
    find = cublaslt._plan

    def slow(*args):
        plan = find(*args)
        if args[0][3] == a.shape:  # a second product evicts this plan before it is used
            cublaslt.product(lib, c, b)
        return plan

    monkeypatch.setattr(cublaslt, "_plan", slow)
    np.testing.assert_array_equal(cublaslt.product(lib, a, b).get(), np.full((2, 4), 3))


def test_threads_sharing_a_plan_add_their_own_bias(lib, monkeypatch, calls):
    x, w = (lib.array(np.ones(s, np.float32)) for s in ((2, 3), (3, 4)))
    biases = [lib.array(np.full(4, n, np.float32)) for n in (10, 20)]
    multiply, results, others = cublaslt.binding().matmul, {}, []

    def run(k):
        results[k] = cublaslt.product(lib, x, w, epilogue="bias", bias=biases[k])

    def meanwhile(*args):
        if not others:  # the second starts while the first is about to multiply
            others.append(threading.Thread(target=run, args=(1,)))
            others[0].start()
            others[0].join(0.2)
        multiply(*args)

    monkeypatch.setattr(cublaslt.binding(), "matmul", meanwhile)
    run(0)
    others[0].join()
    np.testing.assert_array_equal([results[k].get()[0, 0] for k in (0, 1)], [13, 23])


def test_precision_changed_during_a_product_applies_to_the_next(lib, monkeypatch, calls):
    a, find = lib.array(np.ones((2, 19), np.float32)), cublaslt._plan

    def meanwhile(*args):
        gg.set_matmul_precision("high")
        return find(*args)

    try:
        monkeypatch.setattr(cublaslt, "_plan", meanwhile)
        cublaslt.product(lib, a, a.T)
        monkeypatch.setattr(cublaslt, "_plan", find)
        cublaslt.product(lib, a, a.T)
    finally:
        gg.set_matmul_precision("highest")
    cublaslt.product(lib, a, a.T)
    assert [c["desc"]["compute"] for c in calls] == [68, 77, 68]


def test_broadcast_batch_of_strided_rows_matches_numpy(lib, calls, rng):
    x, b = rng.normal(size=(2, 8)), rng.normal(size=(2, 3, 4, 5))
    wide = np.broadcast_to(x[:, ::2], (3, 2, 4))
    actual = cublaslt.product(lib, lib.broadcast_to(lib.array(x)[:, ::2], (3, 2, 4)), lib.array(b))
    np.testing.assert_allclose(actual.get(), wide @ b, 1e-12)


def test_product_runs_on_the_current_stream_and_frees_its_workspace(lib, calls, cuda):
    a = lib.array(np.ones((2, 2), np.float32))
    pool = backend.cupy().cuda.MemoryPool()  # as a graph's pool, which is freed with the graph
    with gg.cuda.stream(device=cuda) as s, backend.cupy().cuda.using_allocator(pool.malloc):
        cublaslt.product(lib, a, a)
    cublaslt.product(lib, a, a)
    assert [c["stream"] for c in calls] == [s.ptr, 0]
    assert pool.used_bytes() == 0


def test_unsupported_problem_is_declined_and_remembered(lib, monkeypatch):
    lt, asked = cublaslt.binding(), []

    def refuses(*args):
        asked.append(args)
        raise lt.cuBLASLtError(15)

    monkeypatch.setattr(lt, "matmul_algo_get_heuristic", refuses)
    a = lib.array(np.ones((2, 17), np.float32))
    for _ in range(2):
        assert cublaslt.product(lib, a, a.T) is NotImplemented
    assert len(asked) == 1
    cublaslt._plans.popitem()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_matmul_and_its_gradient_are_three_products_without_a_copy(dtype, cuda, rng, calls):
    x, w = (rng.normal(size=s).astype(dtype) for s in ((2, 3, 4), (4, 5)))

    def run(device):
        a, b = gg.constant(x, device=device), gg.constant(w, device=device)
        tape, y = taped(lambda a, b: gg.sum(gg.matmul(a, b)), a, b)
        return [t.numpy().astype(float) for t in (y, *tape.gradient(y, [a, b]))]

    actual, desired = run(cuda), run("cpu")
    assert len(calls) == 3
    t = TOLERANCE[np.dtype(dtype).name]
    for f, d in zip(actual, desired, strict=True):
        np.testing.assert_allclose(f, d, t, t * 20)


@pytest.mark.parametrize("dtype", [np.int64, np.complex128])
def test_unsupported_dtypes_use_cupy(dtype, cuda, calls):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    assert (
        gg.matmul(gg.constant(a, device=cuda), gg.constant(a.T, device=cuda)).tolist()
        == (a @ a.T).tolist()
    )
    assert calls == []


def test_without_nvmath_products_use_cupy_and_warn_once(cuda, monkeypatch):
    monkeypatch.setattr(cublaslt, "binding", lambda: None)
    cublaslt._warn_once.cache_clear()
    a = gg.constant(np.ones((2, 2), np.float32), device=cuda)
    assert gg.matmul(a, a).tolist() == [[2, 2], [2, 2]]  # CuPy is as good here: no warning
    half = gg.astype(a, np.float16)
    with pytest.warns(RuntimeWarning, match=r"nvmath-python .*pip install 'gpugrad\[cublaslt\]'"):
        assert gg.matmul(half, half).tolist() == [[2, 2], [2, 2]]
    assert gg.matmul(half, half).tolist() == [[2, 2], [2, 2]]


def test_stand_in_has_the_names_numbers_and_signatures_of_the_binding():
    try:
        importlib.metadata.version("nvmath-python")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(reason="nvmath-python is not installed")
    script = """
import json, numpy, nvmath.bindings.cublasLt as lt, nvmath.bindings.cublas as blas
print(json.dumps({
    "docs": {n: (getattr(lt, n).__doc__ or "").splitlines()[:1] for n in dir(lt)},
    "desc": {int(a): numpy.dtype(lt.get_matmul_desc_attribute_dtype(a)).name
             for a in map(lt.MatmulDescAttribute, (3, 4, 7, 8, 11, 12))},
    "names": {int(a): a.name for a in lt.MatmulDescAttribute},
    "layout": {int(a): [a.name, numpy.dtype(lt.get_matrix_layout_attribute_dtype(a)).name]
               for a in lt.MatrixLayoutAttribute},
    "preference": {a: numpy.dtype(lt.get_matmul_preference_attribute_dtype(a)).name
                   for a in (1, 5, 6, 7, 8)},
    "epilogue": {a.name.lower(): int(a) for a in lt.Epilogue},
    "compute": {a.name: int(a) for a in blas.ComputeType},
    "result": str(lt.matmul_heuristic_result_dtype)}))
"""
    import json

    real, fake = json.loads(output_of("-c", script)), importlib.import_module("fakes.cublaslt")
    for name, function in inspect.getmembers(fake, inspect.isfunction):
        if name.startswith("_") or name == "install":
            continue
        signature = re.sub(r"(intptr_t|size_t|u?int64_t|int) ", "", real["docs"][name][0])
        assert (
            signature.split(" ->")[0]
            == f"{name}({', '.join(inspect.signature(function).parameters)})"
        )
    assert {k: np.dtype(v).name for k, v in fake.DESC.items()} == {
        int(k): v for k, v in real["desc"].items()
    }
    names = [real["names"][k] for k in ("3", "4", "7", "8", "11", "12")]
    assert names == [
        "TRANSA", "TRANSB", "EPILOGUE", "BIAS_POINTER", "EPILOGUE_AUX_POINTER", "EPILOGUE_AUX_LD",
    ]  # fmt: skip
    assert real["layout"]["5"] == ["BATCH_COUNT", "int32"]
    assert real["layout"]["6"] == ["STRIDED_BATCH_OFFSET", "int64"]
    assert {int(k): v for k, v in real["preference"].items()} == {
        k: np.dtype(v).name for k, v in fake.PREFERENCE.items()
    }
    assert cublaslt.EPILOGUES.items() <= real["epilogue"].items()
    compute = real["compute"]
    assert [compute[f"COMPUTE_{n}"] for n in ("32F", "64F", "32F_FAST_TF32", "32F_FAST_16BF")] == [
        cublaslt._COMPUTE_32F, cublaslt._COMPUTE_64F, *list(cublaslt._PRECISIONS.values())[1:],
    ]  # fmt: skip
    assert real["result"] == str(fake.matmul_heuristic_result_dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_product_also_sums_the_second_factor(dtype, lib, rng):
    a, b = rng.normal(size=(4, 6)).astype(dtype), rng.normal(size=(6, 5)).astype(dtype)
    sums = lib.empty((5,), dtype=dtype)
    out = cublaslt.product(lib, lib.array(a), lib.array(b), epilogue="bgrad_b", bias=sums)
    near(out, a.astype(float) @ b.astype(float), dtype)
    near(sums, b.astype(float).sum(0), dtype)
