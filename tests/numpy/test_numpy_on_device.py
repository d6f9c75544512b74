"""gpugrad.numpy on arrays of a GPU."""

import numpy as np
import pytest

import gpugrad as gg
import gpugrad.numpy as gnp

A = np.arange(6.0).reshape(2, 3)


def _written(call, *out):
    call(*out)
    return list(out)


@pytest.mark.device
def test_out_order_and_ufunc_methods_stay_on_the_device(cuda):
    calls = {
        "ufunc out": lambda xp, a: _written(lambda o: xp.add(a, a, out=o), xp.zeros((2, 3))),
        "where": lambda xp, a: _written(
            lambda o: xp.add(a, a, out=o, where=a > 2), xp.ones((2, 3))
        ),
        "dtype": lambda xp, a: xp.add(a, 1.0, dtype="f4"),
        "sum": lambda xp, a: [xp.sum(a, 0, "f4", None, True), a.sum(1, initial=2.0)],
        "out": lambda xp, a: _written(lambda o: xp.sum(a, 0, None, o), xp.zeros(3)),
        "order": lambda xp, a: [xp.asarray(a, order="F"), a.reshape((3, 2), order="F")],
        "memory": lambda xp, a: [a.ravel("F"), xp.zeros((2, 3), order="F"), xp.zeros_like(a.T)],
        "reduce": lambda xp, a: [xp.add.reduce(a), xp.maximum.reduce(a, 1)],
        "accumulate": lambda xp, a: xp.add.accumulate(a, 1),
        "outer": lambda xp, a: xp.multiply.outer(a[0], a[1]),
        "at": lambda xp, a: _written(lambda o: xp.add.at(o, ([0, 0], 1), 2.0), a.copy()),
        "r_": lambda xp, a: [xp.r_[a[0], 9.0], xp.c_[a, a]],
        "put": lambda xp, a: _written(lambda o: o.put([0, 5], [7.0, 8.0]), a.copy()),
        "masks": lambda xp, a: _written(
            lambda o: (xp.putmask(o, o > 3, [7.0]), xp.place(o, o < 1, [8.0, 9.0])), a.copy()
        ),
        "diagonal": lambda xp, a: _written(lambda o: xp.fill_diagonal(o, [5.0, 6.0]), a.copy()),
        "quantile": lambda xp, a: xp.quantile(a, [0.5], 0),
        "list": lambda xp, a: xp.array([a[0], a[1]]),
        "lists": lambda xp, a: [
            xp.add(a, [1.0, 2.0, 3.0]),
            xp.convolve(a[0], [1.0, 2.0]),
            xp.add.reduce([[1.0], a[0, :1]]),
            xp.concatenate([a[0], [1.0]]),
            xp.average(a, 1, weights=[1.0, 2.0, 3.0]),
        ],
        "numbers": lambda xp, a: [xp.add(1.0, a), xp.log(2.0), xp.exp([1.0]), xp.add(1, 2.0)],
    }
    wrong = []
    with gg.device(cuda):
        for name, call in calls.items():
            expected = call(np, A)
            try:
                actual = call(gnp, gnp.asarray(A))
            except Exception as error:
                wrong.append((name, error))
                continue
            pairs = (
                zip(actual, expected, strict=True) if type(actual) is list else [(actual, expected)]
            )
            for a, e in pairs:
                if (a.device, a.dtype, a.flags.f_contiguous) != (
                    cuda,
                    e.dtype,
                    e.flags.f_contiguous,
                ):
                    wrong.append((name, a.device, a.dtype, a.strides))
                np.testing.assert_allclose(a.numpy(), e, err_msg=name)
        t = gg.asarray(A, dtype="f4")
        assert gg.add(t, t, out=gg.zeros((2, 3))).device == cuda
        assert gg.add.reduce(t).tolist() == gg.sum(t, 0, "f8").tolist() == [3.0, 5.0, 7.0]
    assert not wrong
