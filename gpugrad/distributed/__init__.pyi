# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.nn.module import Module
from gpugrad.typing import ArrayLike, Axis
from gpugrad.distributed.layers import SyncBatchNorm as SyncBatchNorm
from gpugrad.distributed.optimizer import Optimizer as Optimizer
from gpugrad.distributed.world import World as World

__all__: list[str]

def all_gather(x: ArrayLike, /, axis: Axis = 0) -> Tensor:
    """The arrays of all ranks, concatenated along an axis, on each of them."""

def all_reduce(x: ArrayLike, /, reduction: str = "sum") -> Tensor:
    """The sum or the mean over ranks, elementwise, on each of them."""

def all_reduce_extremum(x: ArrayLike, /, reduction: str = "max") -> Tensor:
    """The largest or the smallest value over ranks, elementwise, on each of them."""

def all_to_all(x: ArrayLike, /, axis: Axis = 0) -> Tensor:
    """Part k along an axis of each rank's array, concatenated in the order of ranks, on rank k."""

def barrier() -> None:
    """Wait until all ranks have come here."""

def broadcast(x: ArrayLike, /, root: ArrayLike = 0) -> Tensor:
    """The array of one rank, on each of them."""

def convert(model: Module) -> Module:
    """Turn each `gg.nn.BatchNorm` of a model into a `SyncBatchNorm`, in place; return the model."""

def init(
    timeout: float = 600.0,
    *,
    rank: int | None = None,
    size: int | None = None,
    local_rank: int | None = None,
    address: str | None = None,
) -> World:
    """Join the other processes; call it first in a program that several processes run."""

def local_rank() -> int:
    """The number of this process among those of its host, which is that of its GPU."""

def rank() -> int:
    """The number of this process, from 0."""

def reduce_scatter(x: ArrayLike, /, axis: Axis = 0, reduction: str = "sum") -> Tensor:
    """The part of this rank, along an axis, of the sum or the mean over ranks."""

def size() -> int:
    """The number of processes that train together."""
