"""How the buffers of a program lie in memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gpugrad.function.cpu.arena import arrays_in_one_block

KINDS = [
    ((256, 64), np.dtype(np.float32)),
    ((), np.dtype(np.float64)),
    ((0, 3), np.dtype(np.float32)),
    ((3,), np.dtype(np.int8)),
    ((256, 64), np.dtype(np.float32)),
    ((1024,), np.dtype(np.complex128)),
    ((256, 64), np.dtype(np.float32)),
]


def test_arrays_have_their_shapes_and_share_no_byte():
    arrays = arrays_in_one_block(KINDS)
    assert [(a.shape, a.dtype) for a in arrays] == KINDS
    for a, b in itertools.combinations(arrays, 2):
        assert not np.shares_memory(a, b)
    for number, a in enumerate(arrays):
        a[...] = number
    assert all((a == number).all() for number, a in enumerate(arrays))


def test_every_array_begins_at_a_cache_line():
    assert all(a.ctypes.data % 64 == 0 for a in arrays_in_one_block(KINDS) if a.size)


def test_arrays_of_whole_pages_begin_at_different_places_of_a_page():
    arrays = arrays_in_one_block([((1 << 16,), np.dtype(np.float32))] * 64)
    assert len({a.ctypes.data % 4096 for a in arrays}) == 64


@pytest.mark.parametrize("kinds", [[], [((2,), np.dtype(object))]])
def test_nothing_and_objects_are_arrays_too(kinds):
    assert [(a.shape, a.dtype) for a in arrays_in_one_block(kinds)] == kinds
