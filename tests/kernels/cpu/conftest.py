"""What tests of C kernels share."""

import pytest

from gpugrad.kernels.cpu import pool


@pytest.fixture(params=[1, 3])
def threads(request):
    before = pool.threads()
    pool.set_threads(request.param)
    yield request.param
    pool.set_threads(before)
