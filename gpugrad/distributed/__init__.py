"""Training on several GPUs or hosts: one process for each GPU, and gradients are means over them.

NCCL moves arrays between GPUs, MPI between CPUs; ``mpiexec``, ``torchrun`` or ``srun`` start the
processes. In a single process everything works without either.
"""

from gpugrad.core.known_as import answer_missing
from gpugrad.distributed.layers import SyncBatchNorm, convert
from gpugrad.distributed.ops import (
    all_gather,
    all_reduce,
    all_reduce_extremum,
    all_to_all,
    broadcast,
    reduce_scatter,
)
from gpugrad.distributed.optimizer import Optimizer
from gpugrad.distributed.world import World, barrier, init, local_rank, rank, size

__all__ = [
    "Optimizer",
    "SyncBatchNorm",
    "World",
    "all_gather",
    "all_reduce",
    "all_reduce_extremum",
    "all_to_all",
    "barrier",
    "broadcast",
    "convert",
    "init",
    "local_rank",
    "rank",
    "reduce_scatter",
    "size",
]

answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__
