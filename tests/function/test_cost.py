"""The roofline model of a GPU: a node takes the time of its slowest resource, and its own."""

import pytest

from gpugrad.function.inspect.cost import Gpu, Work, time_of, total

GPU = Gpu(bandwidth=1e9, bf16=1e12, reached=0.5, attention=1e12, elements=1e6, node=1e-3)


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (Work("", "copy", 10**9), 1),
        (Work("", "product", 10**6, 1e12, "bf16"), 2),
        (Work("", "product of long rows", 3 * 10**9, 1e12, "bf16"), 3),
        (Work("", "attention", 10**6, 1e12, "attention"), 1),
        (Work("", "strided copy", 10**6, elements=10**6), 1),
        (Work("", "nothing", 0), 0),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_a_node_takes_the_time_of_its_slowest_resource(work, seconds):
    assert time_of(work, GPU) == pytest.approx(seconds + GPU.node)


def test_the_total_counts_every_node():
    assert total([Work("", "nothing", 0)] * 5, GPU) == pytest.approx(5 * GPU.node)
