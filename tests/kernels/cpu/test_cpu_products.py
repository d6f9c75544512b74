"""Products over the pool: against NumPy, in every layout, with any number of threads."""

import ctypes
import threading

import numpy as np
import pytest
from fresh import output_of

import gpugrad as gg
from gpugrad.kernels.cpu import compiler, products

pytestmark = [
    pytest.mark.skipif(products.library() is None, reason="needs a C++ compiler and BLAS"),
    pytest.mark.usefixtures("threads"),
]


def draw(shape, dtype, layout, rng):
    """An array of that shape, whose matrices lie in memory as `layout` says."""
    if len(shape) == 1:
        return rng.normal(size=(3 * shape[0])).astype(dtype)[:: 1 if layout == "plain" else 3][
            : shape[0]
        ]
    if layout == "transposed":
        return rng.normal(size=(*shape[:-2], shape[-1], shape[-2])).astype(dtype).swapaxes(-1, -2)
    if layout == "rows apart":
        return rng.normal(size=(*shape[:-1], shape[-1] + 3)).astype(dtype)[..., : shape[-1]]
    if layout == "every second column":
        return rng.normal(size=(*shape[:-1], 2 * shape[-1])).astype(dtype)[..., ::2]
    if layout == "reversed":
        return rng.normal(size=shape).astype(dtype)[..., ::-1, :]
    if layout == "heads":  # as attention permutes them
        first, *rest = shape
        whole = rng.normal(size=(*rest[:-1], first, rest[-1])).astype(dtype)
        return np.moveaxis(whole, -2, 0)
    return rng.normal(size=shape).astype(dtype)


SHAPES = [
    ((64, 65), (65, 70)), ((1, 600), (600, 500)), ((700, 500), (500, 1)), ((300, 1), (1, 1000)),
    ((33, 2000), (2000, 5)), ((40, 30, 20), (20, 17)), ((16, 1, 40), (40, 512)),
    ((7, 45, 33), (7, 33, 31)), ((300, 200), (200,)), ((200,), (200, 300)), ((4, 30, 200), (200,)),
    ((200,), (4, 200, 30)), ((4, 1, 200), (4, 200, 60)), ((4, 60, 200), (4, 200, 1)),
    ((2, 90, 80), (2, 80, 70)), ((5, 1, 40, 30), (4, 30, 50)), ((60, 50), (4, 50, 60)),
    ((4, 60, 50), (1, 50, 60)), ((12, 24, 40), (40, 70)), ((3, 20, 60), (60, 90)),
]  # fmt: skip
LAYOUTS = ["plain", "transposed", "rows apart", "every second column", "reversed", "heads"]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.thin(5)
def test_products_equal_numpy_in_every_layout(left, right, dtype):
    rng = np.random.default_rng(0)
    for la in LAYOUTS:
        for lb in LAYOUTS:
            a, b = draw(left, dtype, la, rng), draw(right, dtype, lb, rng)
            desired = np.matmul(a.astype(np.float64), b.astype(np.float64))
            actual = products.product(a, b)
            assert actual.dtype == dtype
            assert actual.shape == desired.shape
            scale = np.matmul(np.abs(a), np.abs(b))
            eps = np.finfo(dtype).eps
            np.testing.assert_array_less(
                np.abs(actual - desired), 8 * eps * scale + 1e-30, str((la, lb))
            )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.ones((9, 9)), np.ones((9, 9))),  # small
        (np.ones((99, 99), np.int64), np.ones((99, 99), np.int64)),
        (np.ones((99, 99), np.float16), np.ones((99, 99), np.float16)),
        (np.ones((99, 99), ">f4"), np.ones((99, 99), ">f4")),
        (np.ones((99, 99), np.float32), np.ones((99, 99))),
        (np.ones(99999), np.ones(99999)),
        (np.ones((99, 99)), np.ones((98, 99))),
        (np.ones((3, 99, 99)), np.ones((2, 99, 99))),
        (np.ones((0, 99, 99)), np.ones((0, 99, 99))),
        (np.ones((9999, 0)), np.ones((0, 9999))),
    ],
)
def test_other_products_are_left_to_numpy(a, b):
    assert products.product(a, b) is NotImplemented


def test_the_product_with_the_own_transpose_stays_symmetric():
    a = np.random.default_rng(0).normal(size=(123, 77))
    assert products.product(a, a.T) is NotImplemented
    x = gg.constant(a)
    b = gg.matmul(x, x.T).numpy()
    assert np.array_equal(b, b.T)


def test_unaligned_memory_is_read():
    memory = np.zeros(4 * 100 * 100 + 2, np.uint8)[2:].view(np.float32).reshape(100, 100)
    memory[...] = np.random.default_rng(0).normal(size=(100, 100))
    np.testing.assert_allclose(products.product(memory, memory), memory @ memory, rtol=1e-4)


def test_the_op_and_its_gradients_use_the_pool(monkeypatch):
    calls = []
    plain = products.product
    monkeypatch.setattr(products, "product", lambda *args: calls.append(1) or plain(*args))
    x, w = gg.Variable(np.ones((100, 120))), gg.Variable(np.ones((120, 90)))
    with gg.GradientTape() as tape:
        y = gg.sum(gg.matmul(x, w))
    dx, dw = tape.gradient(y, [x, w])
    assert len(calls) == 3
    assert np.all(dx.numpy() == 90)
    assert np.all(dw.numpy() == 100)


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_a_traced_product_equals_the_eager_one(left, right):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype(np.float32) for s in (left, right))

    @gg.function
    def twice(a, b):
        return gg.tanh(gg.matmul(gg.sin(a), b)) + gg.matmul(a, gg.cos(b))

    for k in range(3):
        x = gg.constant(a * (1 + k))
        desired = gg.tanh(gg.matmul(gg.sin(x), b)) + gg.matmul(x, gg.cos(b))
        np.testing.assert_allclose(twice(x, gg.constant(b)).numpy(), desired.numpy(), 2e-5, 2e-5)


@pytest.mark.parametrize("threads", [2], indirect=True)  # of the other process
def test_products_leave_numpys_blas_alone():
    """The bits of other threads' NumPy products, the user's limits, and forks during a product."""
    code = """
import ctypes, os, sys, threading, numpy as np
import numpy._core._multiarray_umath as core
from gpugrad.kernels.cpu import blas, pool, products
pool.set_threads(2)
names, library = blas.names(), ctypes.CDLL(core.__file__)
get, put = (getattr(library, names.of_threads.format(f"{w}_num_threads")) for w in ("get", "set"))
a = np.random.default_rng(0).normal(size=(300, 300))
b = a + 1
quiet, desired = {n: (put(n), a @ b)[1] for n in (2, 3)}, products.product(a, b)
end = threading.Event()
def run():
    while not end.is_set():
        products.product(a, b)
threads = [threading.Thread(target=run) for _ in range(2)]
[t.start() for t in threads]
found = set()
for k in range(40):
    put(n := 2 + k % 2)
    found.add((get() == n, np.array_equal(a @ b, quiet[n])))
put(2)
for _ in range(5):
    child = os.fork()
    if not child:
        same = get() == 2 and np.array_equal(products.product(a, b), desired)
        os._exit(not same)
    found.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
end.set()
[t.join() for t in threads]
print(found)
"""
    # Python warns of forks beside threads
    found = output_of("-W", "ignore", "-c", code, OPENBLAS_NUM_THREADS="3")
    assert eval(found) == {(True, True), 0}


def test_several_python_threads_multiply_at_once():
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(90, 80)), rng.normal(size=(80, 70))) for _ in range(8)]
    wrong = []

    def run(a, b):
        for _ in range(30):
            if not np.allclose(products.product(a, b), a @ b):
                wrong.append(1)

    callers = [threading.Thread(target=run, args=pair) for pair in pairs]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_the_layout_of_arrays_is_checked():
    text = '#include "array.h"\nextern "C" long ndim(void* a) { return array_of(a).ndim; }'
    library = compiler.load(text, what="a test")
    library.ndim.argtypes = [ctypes.py_object]
    assert library.ndim(np.ones((2, 3, 4, 5))) == 4
