"""Collectives of NumPy arrays by MPI."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.distributed.engine import Engine
from gpugrad.errors import DistributedError

_OPS = {"sum": "SUM", "mean": "SUM", "max": "MAX", "min": "MIN"}  # not ops: reductions of MPI


class MPIEngine(Engine):
    """All processes that ``mpiexec`` or ``srun`` has started."""

    name, kind = "MPI", "cpu"

    def __init__(self) -> None:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:  # the latter without a library of MPI
            raise DistributedError(
                "distributed: several processes without GPUs communicate by MPI, but mpi4py does "
                f"not import ({error}). Install gpugrad[mpi], and start with `mpiexec -n 4 python "
                "train.py`."
            ) from None
        self._mpi, self._comm = MPI, MPI.COMM_WORLD.Dup()
        self.rank, self.size = self._comm.rank, self._comm.size
        self.local_rank = self.places()[self.rank]

    def all_reduce(self, x: Any, how: str) -> Any:
        return self._reduced(x, how, self._comm.Allreduce, x.shape)

    def reduce_scatter(self, x: Any, how: str) -> Any:
        return self._reduced(x, how, self._comm.Reduce_scatter_block, x.shape[1:])

    def _reduced(self, x: Any, how: str, call: Any, shape: tuple[int, ...]) -> Any:
        # MPI has no 16-bit floats, and a sum of many would round at each addition
        wide = x.astype(np.float32) if x.dtype in HALF else x
        out = np.empty(shape, wide.dtype)
        call(wide, out, getattr(self._mpi, _OPS[how]))
        if how == "mean":
            out *= 1 / self.size
        return out.astype(x.dtype, copy=False)

    def all_gather(self, x: Any) -> Any:
        out = np.empty((self.size, *x.shape), x.dtype)
        self._comm.Allgather(_bytes(x), _bytes(out))
        return out

    def all_to_all(self, x: Any) -> Any:
        out = np.empty_like(x)
        self._comm.Alltoall(_bytes(x), _bytes(out))
        return out

    def broadcast(self, x: Any, root: int) -> Any:
        out = x.copy()
        self._comm.Bcast(_bytes(out), root)
        return out

    def sum_in_place(self, x: Any) -> None:
        if x.dtype in HALF:
            x[...] = self.all_reduce(x, "sum")
        else:
            self._comm.Allreduce(self._mpi.IN_PLACE, x)

    def abort(self, code: int) -> None:
        time.sleep(0.2)  # mpiexec drops what it has not yet read of the last lines of a process
        self._mpi.COMM_WORLD.Abort(code)


def _bytes(x: Any) -> Any:
    """The memory of an array, whatever its dtype: MPI does not know all of NumPy's."""
    return x.reshape(-1).view(np.uint8)
