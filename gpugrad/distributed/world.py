"""The processes that train together: how they meet, and what happens when one of them is lost."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.core import devices
from gpugrad.core.arguments import ABOVE_0, COUNT, TEXT, WHOLE, optional, takes
from gpugrad.core.forking import new_lock
from gpugrad.core.ranks import ranks
from gpugrad.core.tensor import wrap
from gpugrad.core.variable import Variable
from gpugrad.distributed.board import shared_board
from gpugrad.distributed.engine import Engine
from gpugrad.distributed.mpi import MPIEngine
from gpugrad.distributed.nccl import NCCLEngine
from gpugrad.errors import DeviceError, DistributedError, GpugradError, saying_where

TIMED_OUT = 75  # the exit status after a timeout: what sysexits.h calls a temporary failure

_LAUNCHERS = {  # what starts processes: its variables for rank, size and local rank
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "MPI": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    "srun": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
}


class World:
    """The processes that train together, as one of them sees them; `init` returns it.

    Attributes:
        rank: the number of this process, from 0.
        size: the number of processes.
        local_rank: the number of this process among those of its host.
        how: who started the processes, and what moves arrays.
        collectives: how many this process has begun.

    >>> gg.distributed.init()  # doctest: +SKIP
    World(rank 0 of 8, torchrun, NCCL)
    """

    def __init__(self, engine: Engine, how: str, timeout: float) -> None:
        self.rank, self.size, self.local_rank = engine.rank, engine.size, engine.local_rank
        self.how = f"{how}, {engine.name}" if engine.size > 1 else engine.name
        self.engine, self._timeout, self._process = engine, timeout, os.getpid()
        self.collectives = 0
        self._now: tuple[int, float, str] | None = None  # the collective that the host waits for
        self._queued: deque[tuple[int, float, str, Any]] = deque()  # those on a stream, in order
        self._lock = new_lock()
        if self.size > 1:
            with engine.device:
                self._board = shared_board(engine)
            threading.Thread(target=self._watch, name="gpugrad-watchdog", daemon=True).start()
            sys.excepthook = functools.partial(self._uncaught, sys.excepthook)
            atexit.register(self._leave)

    def __repr__(self) -> str:
        return f"World(rank {self.rank} of {self.size}, {self.how})"

    # -- collectives

    def run(self, text: str, method: str, *args: Any, count: int = 1) -> Any:
        """Run a collective, a method of the engine. All ranks run the same ones in one order.

        Args:
            text: the collective with dtype and shape, for messages; equal on all ranks.
            count: how many it is.
        """
        if self.size > 1 and os.getpid() != self._process:
            raise DistributedError(
                f"{text}: this process was forked after init and has no part in the communication. "
                "Start worker processes by spawn, as gg.data.DataLoader does."
            )
        with self.engine.device:
            if self.size > 1 and not self.engine.is_capturing():
                return self._watched(count, text, method, args)
            ranks.captured += self.size > 1
            return getattr(self.engine, method)(*args)

    def launch(self, count: int, launch: Callable[[], None]) -> None:
        """Launch a CUDA graph that holds so many collectives."""
        self.run(f"a CUDA graph of {count}", "launch", launch, count=count)

    def _watched(self, count: int, text: str, method: str, args: Sequence[Any]) -> Any:
        """Run collectives while the watchdog looks at them."""
        with self._lock:
            self.collectives += count
            number, since = self.collectives, time.monotonic()
            self._board.write(number, text, ended=False)
            self._now = number, since, text
            try:
                result = getattr(self.engine, method)(*args)
                is_done = self.engine.ended()
            except RuntimeError as error:
                if isinstance(error, GpugradError):
                    raise
                raise DistributedError(
                    f"rank {self.rank} of {self.size}: collective {number}, {text}, has failed: "
                    f"{self._board.report(number, text)}. {self.engine.name}: {error}"
                ) from error
            finally:
                self._now = None
            if is_done is None:
                self._board.write(number, text, ended=True)
            else:
                self._queued.append((number, since, text, is_done))
            return result

    def gather(self, value: Any) -> list[Any]:
        """The picklable values of all ranks, in their order."""
        return self.run("gather of objects", "gather", value)

    def average(self, variables: Sequence[Variable]) -> None:
        """Give Variables the means of their values over ranks, where they differ."""
        own = [zlib.crc32(devices.host(v._data).tobytes()) for v in variables]
        for v, *digests in zip(variables, *self.gather(own), strict=True):
            if len({*digests}) > 1:
                data = devices.copy_array(v._data)
                v.assign(wrap(self.run(f"mean of '{v.name}'", "all_reduce", data, "mean")))

    # -- faults

    def _leave(self) -> None:
        self._board.write(self.collectives, "the end of its program", ended=True)

    def _uncaught(self, before: Any, *error: Any) -> None:
        """End the other ranks after an exception of this one, for which they would wait."""
        before(*error)
        print(f"gpugrad: rank {self.rank} of {self.size} ends all.", file=sys.stderr, flush=True)
        self.engine.abort(1)

    def _watch(self) -> None:
        """End all ranks if a collective does not end."""
        while True:
            time.sleep(min(1.0, self._timeout / 4))
            while self._queued and self._queued[0][3]():
                number, _, text, _ = self._queued.popleft()
                if number == self.collectives:
                    self._board.write(number, text, ended=True)
            try:
                self.engine.check()
            except DistributedError as error:
                self._end(self.collectives, "the last of this rank", f"has failed: {error}")
            oldest = self._queued[0][:3] if self._queued else self._now
            if oldest is None:
                continue
            number, since, text = oldest
            waited = time.monotonic() - since
            if waited > self._timeout:
                self._end(number, text, f"is not done after {self._timeout:g} s")
            elif self._board.lost():
                self._end(number, text, f"cannot end after {waited:.1f} s")

    def _end(self, number: int, text: str, reason: str) -> None:
        others = self._board.report(number, text)
        print(
            f"gpugrad: rank {self.rank} of {self.size}: collective {number}, {text}, {reason}: "
            f"{others}. All ranks end; continue from the last checkpoint.",
            file=sys.stderr,
            flush=True,
        )
        time.sleep(0.3)  # so that the other ranks can say it as well
        self.engine.abort(TIMED_OUT)


# ---- the world of this process ------------------------------------------------------------

_worlds: list[World] = []
_ALONE = World(Engine(), "", 0.0)


def _launched() -> tuple[str, int, int, int | None] | None:
    """Who has started this process, its rank, the number of processes, and the local rank."""
    for name, variables in _LAUNCHERS.items():
        rank, size, local = map(os.environ.get, variables)
        if rank is not None and size is not None:
            return name, int(rank), int(size), None if local is None else int(local)
    return None


def world() -> World:
    """The world that `init` has made, or that of this process alone.

    Raises:
        DistributedError: several processes were started, and `init` was not called.
    """
    if _worlds:
        return _worlds[0]
    if (launched := _launched()) is not None and launched[2] > 1:
        raise DistributedError(
            f"distributed: {launched[0]} has started {launched[2]} processes: call "
            "gg.distributed.init() first, in each of them."
        )
    return _ALONE


def rank() -> int:
    """The number of this process, from 0.

    >>> gg.distributed.rank()
    0
    """
    return world().rank


def size() -> int:
    """The number of processes that train together.

    >>> gg.distributed.size()
    1
    """
    return world().size


def local_rank() -> int:
    """The number of this process among those of its host, which is that of its GPU.

    >>> gg.distributed.local_rank()
    0
    """
    return world().local_rank


def barrier() -> None:
    """Wait until all ranks have come here.

    >>> gg.distributed.barrier()  # of one process: returns at once
    """
    world().gather(None)


@saying_where
@takes(timeout=ABOVE_0, rank=optional(WHOLE), size=optional(COUNT), local_rank=optional(WHOLE))
@takes(address=optional(TEXT))
def init(
    timeout: float = 600.0,
    *,
    rank: int | None = None,
    size: int | None = None,
    local_rank: int | None = None,
    address: str | None = None,
) -> World:
    """Join the other processes; call it first in a program that several processes run.

    ``mpiexec -n 8 python train.py``, ``torchrun --nproc-per-node 8 train.py`` or ``srun`` start the
    processes, one for each GPU. Rank and size come from the arguments, from torchrun's variables,
    or from MPI. GPUs communicate by NCCL, which needs CuPy, and MPI or an address to meet at; CPUs
    communicate by MPI, which needs mpi4py. A single process needs neither, and the same program
    runs in it.

    Args:
        timeout: seconds after which a collective that some ranks have not joined ends all ranks,
            with a message of what each of them does.
        rank, size, local_rank: of this process; None reads them from the environment.
        address: ``"host:port"`` of rank 0, at which NCCL meets without MPI; None reads MASTER_ADDR
            and MASTER_PORT + 1.

    Returns:
        The world: ``rank``, ``size``, ``local_rank``, and ``how`` it was found.

    Raises:
        DistributedError: it was called before; a library is missing; ranks cannot meet.
        DeviceError: the host has fewer GPUs than ranks.

    >>> gg.distributed.init()  # doctest: +SKIP
    World(rank 0 of 8, torchrun, NCCL)
    """
    if _worlds:
        raise DistributedError(f"init: it was called before: {_worlds[0]}.")
    if (rank is None) != (size is None):
        raise DistributedError("init: pass rank and size together, or neither.")
    how = "arguments"
    if rank is None or size is None:
        how, rank, size, local = _launched() or (how, 0, 1, None)
        local_rank = local if local_rank is None else local_rank
    if address is not None and not address.rpartition(":")[2].isdecimal():
        raise DistributedError(
            f"init: address={address!r} must be 'host:port' of rank 0, as '10.0.0.1:29501'."
        )
    if rank >= size:
        raise DistributedError(f"init: rank {rank} of {size}: ranks count from 0.")
    if size == 1:
        engine = Engine()
    elif devices.default_device().kind == "cpu":
        engine = _by_mpi(rank, size, how)
    else:
        engine = _by_nccl(rank, size, local_rank, how, address)
    made = World(engine, how, timeout)
    _worlds.append(made)
    ranks.rank, ranks.size, ranks.gather = made.rank, made.size, made.gather
    ranks.average, ranks.launch = made.average, made.launch
    return made


def _by_mpi(rank: int, size: int, how: str) -> Engine:
    engine = MPIEngine()
    if (engine.rank, engine.size) != (rank, size):
        raise DistributedError(
            f"init: this is rank {rank} of {size} by {how}, but rank {engine.rank} of "
            f"{engine.size} of MPI. Start the processes by mpiexec; without GPUs nothing else "
            "connects them."
        )
    return engine


def _by_nccl(rank: int, size: int, gpu: int | None, how: str, address: str | None) -> Engine:
    share: Callable[[Any], Any] | None = None
    if address is None and how not in ("torchrun", "arguments"):
        mpi = MPIEngine()
        gpu, share = mpi.local_rank if gpu is None else gpu, mpi._comm.bcast
    else:
        host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "29500")
        address = address or (f"{host}:{int(port) + 1}" if host else None)
        if address is None:
            raise DistributedError(
                "init: NCCL needs an address to meet at: pass address='host:port' of rank 0, or "
                "start by torchrun, which sets MASTER_ADDR and MASTER_PORT, or by mpiexec."
            )
        os.environ["NCCL_COMM_ID"] = address
    gpu, n = gpu or 0, devices.gpu_count()
    if gpu >= n:
        raise DeviceError(
            f"init: rank {rank} is number {gpu} of its host, which has {n} "
            f"GPU{'s' * (n > 1)}. Start as many processes on each host as it has GPUs."
        )
    devices.set_device(f"cuda:{gpu}")
    return NCCLEngine(rank, size, gpu, share)
