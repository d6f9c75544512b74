"""Collectives of CuPy arrays by NCCL, on the current stream, so that a CUDA graph can hold them.

The communicator is `cupy.cuda.nccl`'s. Not `cupyx.distributed`, which has no bfloat16, no mean and
starts a server of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import cupy
from gpugrad.distributed.engine import Engine
from gpugrad.errors import DistributedError
from gpugrad.kernels.libraries.nccl import load

_CODES = {"i": "INT", "u": "UINT", "f": "FLOAT", "b": "UINT", "c": "FLOAT", "V": "BFLOAT"}
_OPS = {"sum": "SUM", "mean": "AVG", "max": "MAX", "min": "MIN"}  # not ops: reductions of NCCL


class NCCLEngine(Engine):
    """The GPUs of several processes, one each.

    Args:
        rank, size: of this process, and of all.
        gpu: the number of this process's GPU.
        share: sends rank 0's value to all ranks; None if there is no other network, so that NCCL
            meets at the address in the environment variable NCCL_COMM_ID.
    """

    name, kind = "NCCL", "cuda"

    def __init__(self, rank: int, size: int, gpu: int, share: Callable[[Any], Any] | None) -> None:
        self.rank, self.size, self.local_rank, self._nccl = rank, size, gpu, load()
        self.device = cupy().cuda.Device(gpu)
        self._stream: Any = None  # of the last collective
        self._beside: Any = None  # the stream of `start_sum`
        try:
            identity = self._nccl.get_unique_id() if share is None or not rank else None
            identity = identity if share is None else share(identity)
            self.device.use()  # in this thread from now on, also for the user's own CuPy calls
            self._comm = self._nccl.NcclCommunicator(size, identity, rank)
        except self._nccl.NcclError as error:
            at = os.environ.get("NCCL_COMM_ID", "an address that MPI has sent")
            raise DistributedError(
                f"distributed: rank {rank} of {size} cannot join NCCL at {at}: {error}. Each rank "
                "needs a GPU of its own and must reach rank 0; NCCL_DEBUG=INFO says more."
            ) from error

    def all_reduce(self, x: Any, how: str) -> Any:
        return self._reduced("allReduce", x, cupy().empty_like(x), how)

    def sum_in_place(self, x: Any) -> None:
        self._reduced("allReduce", x, x, "sum")

    def start_sum(self, x: Any) -> Any:
        """Begin to replace an array by the sum over ranks, on a stream that forks from this one."""
        if self._beside is None:
            self._beside = cupy().cuda.Stream(non_blocking=True)
        self._beside.wait_event(cupy().cuda.get_current_stream().record())
        with self._beside:
            self.sum_in_place(x)
        return self._beside.record()

    def wait(self, started: Any) -> None:
        """Let this stream wait for what `start_sum` has begun and returned."""
        cupy().cuda.get_current_stream().wait_event(started)

    def reduce_scatter(self, x: Any, how: str) -> Any:
        return self._reduced("reduceScatter", x, cupy().empty(x.shape[1:], x.dtype), how)

    def all_gather(self, x: Any) -> Any:
        return self._moved("allGather", x, cupy().empty((self.size, *x.shape), x.dtype))

    def all_to_all(self, x: Any) -> Any:
        out = cupy().empty_like(x)
        self._nccl.groupStart()
        try:
            for k in range(self.size):
                self._moved("send", x[k], None, k)
                self._moved("recv", out[k], None, k)
        finally:
            self._nccl.groupEnd()
        return out

    def broadcast(self, x: Any, root: int) -> Any:
        return self._moved("broadcast", x, cupy().empty_like(x), root)

    def put(self, x: np.ndarray[Any, Any]) -> Any:
        return cupy().asarray(x)

    def _reduced(self, name: str, x: Any, out: Any, how: str) -> Any:
        n = 2 if x.dtype.kind == "c" else 1  # a complex number is two
        kind = f"{_CODES[x.dtype.kind]}{8 * x.dtype.itemsize // n}"
        self._call(name, [x, out], n * out.size, kind, getattr(self._nccl, f"NCCL_{_OPS[how]}"))
        return out

    def _moved(self, name: str, x: Any, out: Any, *more: int) -> Any:
        self._call(name, [x] if out is None else [x, out], x.nbytes, "UINT8", *more)
        return out

    def _call(self, name: str, arrays: Sequence[Any], count: int, kind: str, *more: int) -> None:
        self._stream = cupy().cuda.get_current_stream()
        about = count, getattr(self._nccl, f"NCCL_{kind}"), *more, self._stream.ptr
        getattr(self._comm, name)(*(a.data.ptr for a in arrays), *about)

    def is_capturing(self) -> bool:
        return bool(cupy().cuda.get_current_stream().is_capturing())

    def launch(self, launch: Callable[[], None]) -> None:
        """Launch a CUDA graph that holds collectives."""
        launch()
        self._stream = cupy().cuda.get_current_stream()

    def ended(self) -> Callable[[], bool] | None:
        if self._stream is None:
            return None
        event = self._stream.record()
        return lambda: bool(event.done)

    def check(self) -> None:
        try:
            self._comm.check_async_error()
        except self._nccl.NcclError as error:
            raise DistributedError(f"NCCL: {error}") from error

    def abort(self, code: int) -> None:
        """End this process; the launcher ends the others."""
        self._comm.abort()
        os._exit(code)
