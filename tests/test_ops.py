"""Every op against all that its record promises: one test an op and a check.

The checks are those of `gpugrad.testing`, which are public for users' own ops; what they find
is tested in test_testing.py. The one for the device runs on a fake CuPy where there is no GPU.
"""

from __future__ import annotations

import pytest

import gpugrad as gg
from gpugrad.backend import BFLOAT16
from gpugrad.testing import CHECKS, check_op


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", sorted(gg.OPS))
def test_op(name, check):
    check_op(name, checks=[check])
