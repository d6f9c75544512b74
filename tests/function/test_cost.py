"""The roofline model of a GPU: a node takes the time of its slowest resource, and its own."""

import pytest

from gpugrad.function.inspect.cost import Gpu, Work, time_of, total

GPU = Gpu(
    bandwidth=1e9, bf16=1e12, reached=0.5, narrow=0.25, attention=1e12, elements=1e6, node=1e-3,
    processors=4, product=0.01, atomics=1e3,
)  # fmt: skip
FULL = {"flops": 1e12, "unit": "bf16", "shape": (256, 256, 1, 1)}  # a tile for each processor


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (Work("", "copy", 10**9), 1),
        (Work("", "product", 10**6, **FULL), 2),
        (Work("", "product of long rows", 3 * 10**9, **FULL), 3),
        (Work("", "small product", 1, **FULL | {"flops": 1}), 0.01),
        (Work("", "five tiles", 0, **FULL | {"shape": (640, 128, 1, 1)}), 2 * 2 / 1.25),
        (Work("", "one tile", 0, **FULL | {"shape": (128, 128, 1, 1)}), 2 / 0.6),  # 4 of 64 x 64
        (Work("", "one split tile", 0, **FULL | {"shape": (128, 128, 4 * 4096, 1)}), 2),
        (Work("", "narrow convolution", 0, **FULL, channels=64), 4),
        (Work("", "wide convolution", 0, **FULL, channels=16 * 128), 2),
        (Work("", "atomics", 0, atomics=2000), 2),
        (Work("", "attention", 10**6, 1e12, "attention"), 1),
        (Work("", "strided copy", 10**6, elements=10**6), 1),
        (Work("", "nothing", 0), 0),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_a_node_takes_the_time_of_its_slowest_resource(work, seconds):
    assert time_of(work, GPU) == pytest.approx(seconds + GPU.node, rel=1e-3)


def test_the_total_counts_every_node():
    assert total([Work("", "nothing", 0)] * 5, GPU) == pytest.approx(5 * GPU.node)
