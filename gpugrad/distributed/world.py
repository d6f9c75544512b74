"""The processes that train together: how they meet, and what happens when one of them is lost."""

from __future__ import annotations

import atexit
import os
import pickle
import socket
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core import devices
from gpugrad.core.arguments import ABOVE_0, COUNT, TEXT, WHOLE, optional, takes
from gpugrad.core.forking import new_lock
from gpugrad.core.ranks import ranks
from gpugrad.core.tensor import wrap
from gpugrad.core.variable import Variable
from gpugrad.distributed.alike import Alike
from gpugrad.distributed.board import Board, new_file
from gpugrad.distributed.mpi import MPIEngine
from gpugrad.distributed.nccl import NCCLEngine
from gpugrad.errors import DeviceError, DistributedError, GpugradError, saying_where

TIMED_OUT = 75
"""The exit status after a timeout: what sysexits.h calls a temporary failure."""

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

    >>> world = gg.distributed.init()  # doctest: +SKIP
    >>> world.rank < world.size  # doctest: +SKIP
    True
    """

    def __init__(self, engine: Any, local_rank: int, how: str, timeout: float) -> None:
        self.rank, self.size, self.local_rank = engine.rank, engine.size, local_rank
        self.how = f"{how}, {engine.name}" if engine.size > 1 else engine.name
        self.engine, self._timeout, self._process = engine, timeout, os.getpid()
        self._number = 0
        self._now: tuple[int, float, str] | None = None  # the collective that the host waits for
        self._queued: deque[tuple[int, float, str, Any]] = deque()  # those on a stream, in order
        self._lock = new_lock()
        self._board: Board | None = None
        if self.size > 1:
            self._board = self._new_board()
            threading.Thread(target=self._watch, name="gpugrad-watchdog", daemon=True).start()
            _end_all_on_an_exception(self)
            atexit.register(self._leave)

    def __repr__(self) -> str:
        return f"World(rank {self.rank} of {self.size}, {self.how})"

    # -- collectives

    def run(self, text: str, call: Callable[[Any], Any]) -> Any:
        """Run a collective: `call` gets the engine. All ranks run the same ones in one order.

        Args:
            text: the collective with dtype and shape, for messages; equal on all ranks.
        """
        if self.size == 1:
            return call(self.engine)
        if os.getpid() != self._process:
            raise DistributedError(
                f"{text}: this process was forked after init and has no part in the communication. "
                "Start worker processes by spawn, as gg.data.DataLoader does."
            )
        if self.engine.is_capturing():
            ranks.captured += 1
            return call(self.engine)
        return self._watched(1, text, call)

    def launch(self, count: int, launch: Callable[[], None]) -> None:
        """Launch a CUDA graph that holds so many collectives."""
        self._watched(count, f"a CUDA graph of {count}", lambda engine: engine.launch(launch))

    def _watched(self, count: int, text: str, call: Callable[[Any], Any]) -> Any:
        """Run collectives while the watchdog looks at them."""
        with self._lock:
            self._number += count
            number, since = self._number, time.monotonic()
            self._note(number, text, ended=False)
            self._now = number, since, text
            try:
                result, is_done = call(self.engine), self.engine.ended()
            except RuntimeError as error:
                if isinstance(error, GpugradError):
                    raise
                raise DistributedError(
                    f"collective {number}, {text}, has failed: {self._report(number, text)}. "
                    f"{self.engine.name}: {error}"
                ) from error
            finally:
                self._now = None
            if is_done is None:
                self._note(number, text, ended=True)
            else:
                self._queued.append((number, since, text, is_done))
            return result

    @property
    def collectives(self) -> int:
        """How many collectives this process has begun."""
        return self._number

    def gather(self, value: Any) -> list[Any]:
        """The picklable values of all ranks, in their order."""
        if self.size == 1:
            return [value]
        own = np.frombuffer(pickle.dumps(value), np.uint8)

        def parts(engine: Any) -> list[Any]:
            lengths = devices.host(engine.all_gather(engine.put(np.array([own.size]))))[:, 0]
            padded = np.zeros(lengths.max(), np.uint8)
            padded[: own.size] = own
            rows = devices.host(engine.all_gather(engine.put(padded)))
            return [pickle.loads(row[:n].tobytes()) for row, n in zip(rows, lengths, strict=True)]

        found: list[Any] = self.run("gather of objects", parts)
        return found

    def average(self, variables: Sequence[Variable]) -> None:
        """Give Variables the means of their values over ranks, where they differ."""
        differ = [
            len(set(kinds)) > 1 for kinds in zip(*self.gather(_digests(variables)), strict=True)
        ]
        for v, differs in zip(variables, differ, strict=True):
            if differs:
                v.assign(wrap(self._mean(f"mean of '{v.name}'", v._data.copy(order="C"))))

    def _mean(self, text: str, data: Any) -> Any:
        return self.run(text, lambda engine: engine.all_reduce(data, "mean"))

    # -- faults

    def _new_board(self) -> Board | None:
        """The board of this host, whose file goes once all have mapped it."""
        host = socket.gethostname()
        hosts = self.gather(host)
        places = {r: k for k, r in enumerate(r for r in range(self.size) if hosts[r] == host)}
        first = min(places) == self.rank
        path = new_file(len(places)) if first else ""
        paths = self.gather(path)
        board = Board(paths[min(places)], places, self.rank)
        board.write(0, "", True)
        self.gather(None)
        if first:
            os.unlink(path)
        return board

    def _note(self, number: int, text: str, ended: bool) -> None:
        if self._board is not None:
            self._board.write(number, text, ended)

    def _leave(self) -> None:
        self._note(self._number, "the end of its program", ended=True)

    def _watch(self) -> None:
        """End all ranks if a collective does not end."""
        while True:
            time.sleep(min(1.0, self._timeout / 4))
            while self._queued and self._queued[0][3]():
                number, _, text, _ = self._queued.popleft()
                if number == self._number:
                    self._note(number, text, ended=True)
            try:
                self.engine.check()
            except DistributedError as error:
                self._end(self._number, "the last of this rank", f"has failed: {error}")
            oldest = self._queued[0][:3] if self._queued else self._now
            if oldest is None:
                continue
            number, since, text = oldest
            waited = time.monotonic() - since
            if waited > self._timeout:
                self._end(number, text, f"is not done after {self._timeout:g} s")
            elif self._board and self._board.lost():
                self._end(number, text, f"cannot end after {waited:.1f} s")

    def _report(self, number: int, text: str) -> str:
        return self._board.report(number, text) if self._board else ""

    def _end(self, number: int, text: str, reason: str) -> None:
        print(
            f"gpugrad: rank {self.rank} of {self.size}: collective {number}, {text}, {reason}: "
            f"{self._report(number, text)}. All ranks end; continue from the last checkpoint.",
            file=sys.stderr,
            flush=True,
        )
        time.sleep(0.3)  # so that the other ranks can say it as well
        self.engine.abort(TIMED_OUT)


def _digests(variables: Sequence[Variable]) -> list[int]:
    return [zlib.crc32(devices.host(v._data).tobytes()) for v in variables]


def _end_all_on_an_exception(world: World) -> None:
    """Let an uncaught exception of one rank end the others, which would wait for it."""
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        print(f"gpugrad: rank {world.rank} of {world.size} ends all ranks.", file=sys.stderr)
        sys.stderr.flush()
        world.engine.abort(1)

    sys.excepthook = hook


# ---- the world of this process ------------------------------------------------------------

_worlds: list[World] = []
_ALONE = World(Alike(), 0, "", 0.0)


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
    launched = _launched()
    if launched is not None and launched[2] > 1:
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

    >>> world = gg.distributed.init()  # doctest: +SKIP
    >>> world  # doctest: +SKIP
    World(rank 0 of 8, torchrun, NCCL)
    """
    if _worlds:
        raise DistributedError(f"init: it was called before: {_worlds[0]}.")
    found = _launched()
    how = found[0] if found else "arguments"
    if (rank is None) != (size is None):
        raise DistributedError("init: pass rank and size together, or neither.")
    if rank is None:
        rank, size = found[1:3] if found else (0, 1)
        local_rank = found[3] if found and local_rank is None else local_rank
    else:
        how = "arguments"
    assert size is not None
    if address is not None and not address.rpartition(":")[2].isdecimal():
        raise DistributedError(
            f"init: address={address!r} must be 'host:port' of rank 0, as '10.0.0.1:29501'."
        )
    if rank >= size:
        raise DistributedError(f"init: rank {rank} of {size}: ranks count from 0.")
    if size == 1:
        made = World(Alike(), 0, how, timeout)
    elif devices.default_device().kind == "cpu":
        made = _on_cpus(rank, size, how, timeout)
    else:
        made = _on_gpus(rank, size, local_rank, how, timeout, address)
    _worlds.append(made)
    ranks.rank, ranks.size, ranks.gather = made.rank, made.size, made.gather
    ranks.average, ranks.launch = made.average, made.launch
    return made


def _on_cpus(rank: int, size: int, how: str, timeout: float) -> World:
    engine = MPIEngine()
    if (engine.rank, engine.size) != (rank, size):
        raise DistributedError(
            f"init: this is rank {rank} of {size} by {how}, but rank {engine.rank} of "
            f"{engine.size} of MPI. Start the processes by mpiexec; without GPUs nothing else "
            "connects them."
        )
    return World(engine, engine.local_rank(), how, timeout)


def _on_gpus(
    rank: int, size: int, local_rank: int | None, how: str, timeout: float, address: str | None
) -> World:
    share: Callable[[Any], Any] | None = None
    if address is None and how not in ("torchrun", "arguments"):
        mpi = MPIEngine()
        local_rank = mpi.local_rank() if local_rank is None else local_rank
        share = mpi._comm.bcast
    else:
        host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "29500")
        address = address or (f"{host}:{int(port) + 1}" if host else None)
        if address is None:
            raise DistributedError(
                "init: NCCL needs an address to meet at: pass address='host:port' of rank 0, or "
                "start by torchrun, which sets MASTER_ADDR and MASTER_PORT, or by mpiexec."
            )
        os.environ["NCCL_COMM_ID"] = address
        local_rank = 0 if local_rank is None else local_rank
    n = devices.gpu_count()
    if local_rank >= n:
        raise DeviceError(
            f"init: rank {rank} is number {local_rank} of its host, which has {n} "
            f"GPU{'s' * (n > 1)}. Start as many processes on each host as it has GPUs."
        )
    devices.set_device(f"cuda:{local_rank}")
    with devices.device(f"cuda:{local_rank}"):
        return World(NCCLEngine(rank, size, share), local_rank, how, timeout)
