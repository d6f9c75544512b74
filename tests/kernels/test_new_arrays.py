"""New arrays in the memory order of others, and the memory that several arrays share."""

import numpy as np
import pytest

from gpugrad.kernels.runtime.new_arrays import all_like, common_memory, like

SPLITS = {
    "thirds of a row, heads after tokens": lambda x: np.moveaxis(
        x.reshape(2, 5, 3, 4, 8), (2, 3), (0, 2)
    ),
    "thirds of a row": lambda x: np.moveaxis(x.reshape(10, 3, 32), 1, 0),
    "whole rows": lambda x: x.reshape(3, 4, 80),
}


@pytest.mark.parametrize("split", SPLITS)
def test_parts_of_one_array_get_parts_of_one_array(split):
    parts = [*SPLITS[split](np.zeros(960, np.float32))]
    arrays = all_like(np, parts)
    assert [(a.shape, a.strides, a.dtype) for a in arrays] == [
        (p.shape, p.strides, p.dtype) for p in parts
    ]
    for k, a in enumerate(arrays, 1):
        a[...] = k
    assert [int((a == k).all()) for k, a in enumerate(arrays, 1)] == [1] * 3  # none overlaps
    memory = common_memory(np, arrays[::-1])
    assert memory.shape == (960,)
    assert np.shares_memory(memory, arrays[0])
    np.testing.assert_array_equal(np.bincount(memory.astype(int)), [0, 320, 320, 320])


def overlapping(x):
    return [x[:320]] * 3


OTHERS = {
    "different arrays": lambda x: [x[:320].copy() for _ in range(3)],
    "one part, three times": overlapping,
    "only two of three parts": lambda x: [*x.reshape(3, 320)[:2]],
    "different layouts": lambda x: [x[:320].reshape(16, 20), x[320:640].reshape(20, 16).T],
    "backwards": lambda x: [*x[::-1].reshape(3, 320)],
    "every third element": lambda x: [x[k::3] for k in range(3)],
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_arrays_get_their_own_memory(case):
    arrays = OTHERS[case](np.zeros(960, np.float32))
    new = all_like(np, arrays)
    assert [a.shape for a in new] == [a.shape for a in arrays]
    for k, a in enumerate(new):
        a[...] = k
    assert all((a == k).all() for k, a in enumerate(new))


def test_like_keeps_the_order_of_axes_and_the_last_axis_innermost():
    x = np.zeros((2, 5, 4, 8)).transpose(0, 2, 1, 3)
    assert like(np, x, (2, 4, 5, 3), "f4").swapaxes(1, 2).flags.c_contiguous
    broadcast = np.broadcast_to(np.zeros((4, 1, 8)), (2, 4, 5, 8))
    assert like(np, broadcast, broadcast.shape, "f4").flags.c_contiguous
    turned = np.zeros((8, 5)).T
    assert like(np, turned, turned.shape, "f4").flags.c_contiguous
