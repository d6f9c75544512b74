"""Every op against all that its record promises: one test an op and a check.

The checks are those of `gpugrad.testing`, which are public for users' own ops; what they find
is tested in test_testing.py. Those for devices run on a fake CuPy where there is no GPU.
"""

from __future__ import annotations

import pytest

import gpugrad as gg
from gpugrad.core.devices import gpu_count
from gpugrad.testing import CHECKS, check_op

NAMES = sorted(gg.OPS)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", NAMES)
def test_op(name, check):
    check_op(name, checks=[check])


@pytest.mark.skipif(gpu_count() < 2, reason="needs two CUDA devices, real or fake")
@pytest.mark.parametrize("name", NAMES)
def test_op_on_a_device_that_is_not_the_current_one(name):
    check_op(name, checks=["device"], device=f"cuda:{gpu_count() - 1}")


def test_names_are_those_of_the_eager_functions():
    for name in NAMES:
        assert gg.OPS[name].eager.op is gg.OPS[name]
        assert gg.OPS[name].eager.__name__ == name
