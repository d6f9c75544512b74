"""Checks every op against its record, on the CPU and on a device.

The checks are those of `gpugrad.testing`, which users can run on their own ops;
tests/testing/test_testing.py shows what each check finds. Messages name the op and the check.
Without a GPU, the device checks run on the made-up driver.
"""

import dataclasses

import pytest

import gpugrad as gg
from gpugrad.core.devices import gpu_count
from gpugrad.testing import CHECKS, check_op

NAMES = sorted(gg.OPS)
TABLES = {  # modules whose ops are rows of a table: their checks take long
    f"gpugrad.ops.special.{name}"
    for name in ("carlson", "cylinders", "equations", "inverses", "noncentral")
}
EACH_OP = pytest.mark.parametrize("name", [
    pytest.param(n, marks=[pytest.mark.thin(5)] * (gg.OPS[n].home in TABLES)) for n in NAMES
])  # fmt: skip
ON_DEVICE = ("kernel", "device")
LONG = ("second_order", "layout", "vmap", "function")


@EACH_OP
def test_op(name):
    check_op(name, checks=[check for check in CHECKS if check not in (*ON_DEVICE, *LONG)])


@EACH_OP
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.thin(3)
def test_op_in_other_ways(name, every):
    """The checks that take longest, of two samples in the default run."""
    op = gg.OPS[name]

    def some(rng, samples=op.samples):
        calls = list(samples(rng))
        return [calls[k] for k in sorted({0, len(calls) - 1}) if calls]

    if callable(op.samples) and not every:
        op = dataclasses.replace(op, samples=some)
    check_op(op, checks=LONG)


@EACH_OP
def test_op_on_a_device(name):
    check_op(name, checks=ON_DEVICE)


@pytest.mark.skipif(gpu_count() < 2, reason="needs two CUDA devices")
@EACH_OP
def test_op_on_a_device_that_is_not_the_current_one(name):
    check_op(name, checks=["device"], device=f"cuda:{gpu_count() - 1}")


def test_op_names_equal_the_names_of_the_eager_functions():
    for name in NAMES:
        assert gg.OPS[name].eager.op is gg.OPS[name]
        assert gg.OPS[name].eager.__name__ == name
