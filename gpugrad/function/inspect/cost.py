"""A roofline model: the time that bytes and operations take on a GPU, at least.

The rates of the H100 are a measured copy and NVIDIA's dense products. The others are assumptions:
the share of its rate that a library's product reaches, the rates of causal attention at 1,024
tokens by cuDNN and by our kernels, which lack Hopper's instructions, the rate of kernels that
divide to find the place of each element, and the time of a barrier between all blocks of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Gpu(NamedTuple):
    """Rates of a GPU, per second.

    Attributes:
        bandwidth: bytes that a copy reads and writes.
        bf16, tf32, fp32, fp64: operations of dense products.
        reached: the share of these that products reach.
        sdpa, attention: operations of attention by cuDNN, and by our own kernels.
        elements: elements of kernels that compute a strided place for each.
        node: seconds for each node of a graph.
        barrier: seconds for each barrier of a cooperative kernel.
    """

    bandwidth: float = 3.0e12
    bf16: float = 989e12
    tf32: float = 494e12
    fp32: float = 67e12
    fp64: float = 67e12
    reached: float = 0.65
    sdpa: float = 300e12
    attention: float = 150e12
    elements: float = 0.3e12
    node: float = 2e-6
    barrier: float = 1.5e-6


GPUS = {"H100": Gpu()}
"""GPUs by name."""


class Work(NamedTuple):
    """The work of one node of a graph.

    Attributes:
        step: the step of the program that launches it.
        name: the kernel, or the library's function, with shapes.
        moved: bytes read and written.
        flops: operations of products.
        unit: the rate of `Gpu` at which these run.
        elements: elements whose places are computed one by one; 0 if accesses are wide.
        barriers: how often all blocks of the kernel wait for each other.
    """

    step: str
    name: str
    moved: int
    flops: float = 0
    unit: str = ""
    elements: int = 0
    barriers: int = 0


def time_of(work: Work, gpu: Gpu) -> float:
    """Seconds that a node takes at least: its slowest resource, its barriers, the node itself."""
    limits = [work.moved / gpu.bandwidth, work.elements / gpu.elements]
    if work.flops:
        share = 1 if work.unit in ("sdpa", "attention") else gpu.reached
        limits.append(work.flops / (share * getattr(gpu, work.unit)))
    return max(limits) + work.barriers * gpu.barrier + gpu.node


def total(works: Iterable[Work], gpu: Gpu) -> float:
    """Seconds of nodes that run one after the other."""
    return sum(time_of(work, gpu) for work in works)
