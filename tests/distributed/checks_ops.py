"""Checks of collectives as ops, on each rank."""

import os

import numpy as np
import pytest
from common import ON_GPUS, D, W, several

import gpugrad as gg


def check_ops_by_their_records():
    names = ["all_reduce", "all_gather", "all_reduce_extremum", "reduce_scatter", "broadcast"]
    names = [*names, "all_to_all"][1 if W.size == 2 else 0 :: 3 if W.size == 2 else 1]
    checks = [c for c in gg.testing.ops.CHECKS if c != "documentation"]  # for one process
    for name in names:  # all of them on other numbers of ranks, in slow tests
        gg.testing.check_op(name, checks=checks)


def check_gradients_against_differences_over_ranks():
    r, n = W.rank, W.size
    x0 = np.random.default_rng(100 + r).normal(size=(2 * n, 3))
    weights = gg.constant(np.random.default_rng(7 + r).normal(size=(2 * n * n, 3)))

    def loss(x):
        a, b = D.all_reduce(x, "mean"), D.all_gather(gg.tanh(x))
        c, d = D.reduce_scatter(x * x), D.all_to_all(gg.sin(x))
        e = D.broadcast(x**2, root=n - 1)
        terms = gg.sin(a) * weights[: 2 * n], b * weights, c * c * (r + 1), d * weights[: 2 * n], e
        return sum(gg.sum(t) for t in terms)

    gradient = gg.grad(loss)(gg.constant(x0)).numpy()
    for who in range(n):
        for i in range(2 * n):
            values = []
            for step in (1e-5, -1e-5):
                x = x0.copy()
                x[i, 1] += step * (r == who)
                values.append(sum(W.gather(float(loss(gg.constant(x))))))
            if r == who:
                assert abs((values[0] - values[1]) / 2e-5 - gradient[i, 1]) < 1e-7


def check_traced_collectives_run_once_a_call_and_keep_their_order():
    @gg.function
    def f(x):
        first = gg.sum(D.all_reduce(x)) * 0  # no pass drops it
        return gg.sum(D.all_gather(x)) + D.all_reduce(x)[0] - D.all_reduce(x)[0] + first

    x = gg.constant(np.arange(4.0) + W.rank)
    for _ in range(3):
        before = W.collectives
        assert float(f(x)) == sum(6 + 4 * r for r in range(W.size))
        assert (
            ON_GPUS or W.size == 1 or W.collectives - before == 4
        )  # a launch of a CUDA graph counts none


def check_collectives_of_constants_communicate_in_traces():
    """Of arrays that differ between ranks, some of which a trace takes for constants."""
    rank = gg.constant(np.full((W.size, 2), float(W.rank)))
    total = sum(range(W.size))

    @gg.function
    def f(x):
        v = x * W.rank if W.rank else rank[0] * 0 + x[0] * 0  # of no argument on rank 0
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = gg.sum(D.all_gather(x) * float(W.rank))  # a gradient that is a constant
        return D.all_reduce(rank), D.all_reduce(v), D.reduce_scatter(rank), tape.gradient(y, x)

    for _ in range(3):
        a, b, c, g = f(gg.ones((2,), dtype="float64"))
        assert (a == total).all()
        assert (b == total).all()
        assert (c == total).all()
        assert (g == total).all()


def check_bad_arguments_name_the_op_before_anything_is_sent():
    before = W.collectives
    for error, words, call in (
        (
            RuntimeError,
            "is on cpu|before",
            lambda: D.all_reduce(np.ones(2)) if ON_GPUS else D.init(),
        ),
        *several((ValueError, "multiple", lambda: D.reduce_scatter(np.ones(2 * W.size + 1)))),
        (IndexError, "axis 1", lambda: D.all_gather(np.ones(3), axis=1)),
        (ValueError, "root=9", lambda: D.broadcast(np.ones(3), root=9)),
        (TypeError, "mean", lambda: D.all_reduce(np.ones(3, int), "mean")),
        (ValueError, "reduction", lambda: D.all_reduce(np.ones(3), "product")),
        (RuntimeError, "called before", D.init),
    ):
        with pytest.raises(error, match=words):
            call()
    assert W.collectives == before


def check_all_dtypes_empty_arrays_and_views():
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "int32", "uint8"):
        x = gg.astype(gg.constant(np.arange(2 * W.size) % 3), dtype)
        total = D.all_reduce(x)
        assert total.dtype == x.dtype
        assert (gg.astype(total, "complex64") == gg.astype(x, "complex64") * W.size).all()
        assert D.all_gather(x).shape == (2 * W.size**2,)
    assert D.all_reduce(gg.ones((0, 3))).shape == (0, 3)
    assert D.all_gather(gg.ones((0, 3))).shape == (0, 3)
    turned = gg.constant(np.arange(6.0).reshape(2, 3)).T
    assert (D.all_reduce(turned, "mean") == turned).all()


def check_a_forked_process_is_refused():
    if W.size == 1 or ON_GPUS:  # CUDA does not work in a forked process
        return
    child = os.fork()
    if child == 0:
        try:
            D.all_reduce(np.ones(2))
        except gg.errors.DistributedError as error:
            os._exit(0 if "forked after init" in str(error) else 1)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def check_nested_structures_are_taken_leaf_by_leaf():
    nest = {"a": gg.constant([1.0, 2.0]), "b": [gg.constant(3.0 + W.rank), 4.0]}
    total = D.all_reduce(nest, "mean")
    assert total["a"].tolist() == [1, 2]
    assert [float(x) for x in total["b"]] == [3 + (W.size - 1) / 2, 4]
    assert D.all_gather((gg.ones(2),))[0].shape == (2 * W.size,)
    assert D.all_reduce([1.0, 2.0]).shape == (2,)  # an array
