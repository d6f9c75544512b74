"""A roofline model: the time that bytes and operations take on a GPU, at least.

The rates of the H100 are a measured copy and NVIDIA's dense products. The others are assumptions:
the share of its rate that a library's product reaches, and a convolution of few channels; the rates
of causal attention at 1,024 tokens by cuDNN and by our kernels, which lack Hopper's instructions;
the rates of float atomics, and of kernels that divide to find the place of each element; the time
of a small product, and of a barrier between all blocks of a kernel.

A product's tiles run in waves, one tile for each processor, and a last wave that is half full takes
as long as a full one. So a library takes smaller tiles, which reuse less, or splits the sum of each
tile, which adds partial sums to write and to read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class Gpu(NamedTuple):
    """Rates of a GPU, per second.

    Attributes:
        bandwidth: bytes that a copy reads and writes.
        bf16, tf32, fp32, fp64: operations of dense products.
        reached: the share of these that products reach, if they fill all processors.
        narrow: the share for convolutions of up to 128 channels.
        processors: how many tiles of a product run at a time.
        product: seconds that a product takes at least.
        sdpa, attention: operations of attention by cuDNN, and by our own kernels.
        atomics: floats that are added to memory by several blocks.
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
    narrow: float = 0.4
    processors: float = 132
    product: float = 1.2e-6
    sdpa: float = 300e12
    attention: float = 150e12
    atomics: float = 0.16e12
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
        shape: of a product: rows, columns, terms of a sum, and how many such products.
        channels: of a convolution: those of its input or its output, whichever are fewer.
        atomics: floats that are added to memory by several blocks.
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
    shape: tuple[int, ...] = ()
    channels: int = 0
    atomics: int = 0


_TILES = ((128, 1.0), (64, 0.6), (32, 0.35))  # rows and columns, and the share of the rate
_TERMS = 4096  # of the parts of a sum that is split, at least


def time_of(work: Work, gpu: Gpu) -> float:
    """Seconds that a node takes at least: its slowest resource, its barriers, the node itself."""
    limits = [work.moved / gpu.bandwidth, work.elements / gpu.elements]
    limits.append(work.atomics / gpu.atomics)
    if work.shape:
        limits += [gpu.product, _product(work, gpu)]
    elif work.flops:
        limits.append(work.flops / getattr(gpu, work.unit))
    return max(limits) + work.barriers * gpu.barrier + gpu.node


def _product(work: Work, gpu: Gpu) -> float:
    """Seconds of the operations of a product, with the best tiles."""
    share = gpu.reached
    if work.channels:
        share = min(share, gpu.narrow * max(1, work.channels / 128) ** 0.25)
    full = work.flops / (share * getattr(gpu, work.unit))
    rows, columns, terms, times = work.shape

    def seconds(tile: int, rate: float, parts: int) -> float:
        waves = times * -(-rows // tile) * -(-columns // tile) * parts / gpu.processors
        added = 8 * parts * times * rows * columns * (parts > 1)  # written and read, as floats
        return full * math.ceil(waves) / waves / rate + added / gpu.bandwidth

    splits = range(1, min(64, max(1, terms // _TERMS)) + 1)
    return min(seconds(*tile, parts) for tile in _TILES for parts in splits)


def total(works: Iterable[Work], gpu: Gpu) -> float:
    """Seconds of nodes that run one after the other."""
    return sum(time_of(work, gpu) for work in works)
