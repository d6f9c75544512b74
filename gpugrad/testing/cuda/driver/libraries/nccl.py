"""NCCL between processes of one host: each message is a file in shared memory.

Ranks that call different collectives get an asynchronous error, where NVIDIA's library hangs or
mixes their data; so do those whose peer is dead. As there, an abort ends every wait, and two ranks
on one GPU are refused.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import itertools
import os
import pickle
import platform
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from gpugrad.testing.cuda.driver import control
from gpugrad.testing.cuda.driver.libraries import Library, StatusError, view, work, write

LIBRARY = Library("libnccl.so.2", failed=3, missing=5)

_TEXTS = {
    0: "no error",
    3: "internal error",
    5: "invalid usage: the ranks call different collectives, or use each other's GPU",
    6: "remote process exited or there was a network error",
}
_USAGE, _REMOTE = 5, 6
_DTYPES = [*map(np.dtype, ("i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8"))]
_DTYPES.append(np.dtype(ml_dtypes.bfloat16))
_REDUCTIONS: Sequence[str] = ("sum", "prod", "max", "min", "mean")
_FOLDER = Path("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir())

_KEPT = 3600.0
"""Seconds after its last message in which a folder is not another program's leftover."""

_communicators: dict[int, _Communicator] = {}
_numbers = itertools.count(0x7C00)
_grouped: list[list[Callable[[], None]]] = []  # the calls of the open group
_strings = {code: ctypes.create_string_buffer(text.encode()) for code, text in _TEXTS.items()}


@functools.cache
def _remove_leftovers() -> None:
    """Remove the folders of programs that have ended; none can know that it is the last to read."""
    for folder in _FOLDER.glob("gpugrad-nccl-*"):
        with contextlib.suppress(OSError):  # another process removes it, or owns it
            if time.time() - folder.stat().st_mtime > _KEPT:
                shutil.rmtree(folder)


def _device() -> int:
    control.library().cudaGetDevice(ctypes.byref(device := ctypes.c_int()))
    return device.value


class _Communicator:
    def __init__(self, identity: bytes, rank: int, size: int) -> None:
        name = hashlib.sha256(identity).hexdigest()[:16]
        self.folder, self.rank, self.size = _FOLDER / f"gpugrad-nccl-{name}", rank, size
        _remove_leftovers()
        self.folder.mkdir(exist_ok=True)
        self.error, self.aborted, self._processes = 0, False, [0] * size
        self._sent: Counter[str] = Counter()  # messages by route
        self._got: Counter[str] = Counter()
        self.device = _device()
        places = self.exchange("init", (os.getpid(), self.device))
        self._processes = [process for process, _ in places]
        if len({device for _, device in places}) < size:
            raise StatusError(_USAGE)

    def post(self, route: str, message: Any) -> None:
        """Leave a message; messages of one route are read in order."""
        self._sent[route] += 1
        path = self.folder / f"{route}-{self._sent[route]}"
        part = path.with_suffix(".part")
        part.write_bytes(pickle.dumps(message))
        part.rename(path)

    def fetch(self, route: str, rank: int) -> Any:
        """Wait for the next message of a route, which `rank` leaves there."""
        self._got[route] += 1
        path, pause = self.folder / f"{route}-{self._got[route]}", 1e-5
        while not path.exists():
            if self.aborted:
                raise StatusError(_USAGE)
            if self._processes[rank] and not os.path.exists(f"/proc/{self._processes[rank]}/exe"):
                self.error = _REMOTE  # NVIDIA's library waits on until it is aborted, too
            time.sleep(pause)
            pause = min(2 * pause, 1e-3)
        message = pickle.loads(path.read_bytes())
        path.unlink()
        return message

    def exchange(self, signature: Any, value: Any) -> list[Any]:
        """The values of all ranks, which must call the same collective."""
        for to in range(self.size):
            self.post(f"{self.rank}to{to}", (signature, value))
        pairs = [self.fetch(f"{rank}to{self.rank}", rank) for rank in range(self.size)]
        for rank, (other, _) in enumerate(pairs):
            if other != signature:
                message = f"nccl: rank {self.rank} calls {signature}, rank {rank} {other}"
                print(message, file=sys.stderr, flush=True)
                self.error = _USAGE
                raise StatusError(_USAGE)
        return [value for _, value in pairs]


def _put(comm: int, stream: int, name: str, run: Callable[[_Communicator], None]) -> None:
    """Put work on a stream, at the end of the group if there is one."""
    communicator = _communicators[comm]
    if communicator.device != _device():
        raise StatusError(_USAGE)

    def guarded() -> None:
        with contextlib.suppress(StatusError):  # as on a GPU, ncclCommGetAsyncError tells it
            run(communicator)

    put = functools.partial(work, stream, "nccl", name, guarded)
    if _grouped:
        _grouped[-1].append(put)
    else:
        put()


def _collective(
    name: str, about: Sequence[int], combine: Callable[[list[Any], int], Any], *more: int
) -> None:
    """Put a collective on a stream.

    Args:
        about: address and number of elements of what is sent, and of the result; the dtype,
            communicator and stream.
        combine: the result, from the arrays of all ranks and the own rank.
        more: what must agree between ranks, besides dtype and number of elements of the result.
    """
    sent, n_sent, to, n, dtype, comm, stream = about
    kind = _DTYPES[dtype]

    def run(c: _Communicator) -> None:
        arrays = c.exchange((name, str(kind), n, *more), view(sent, kind, (n_sent,)).copy())
        view(to, kind, (n,))[:] = combine(arrays, c.rank)

    _put(comm, stream, name, run)


def _reduced(parts: list[Any], op: int) -> Any:
    wide = np.stack([p.astype(np.float32) if p.dtype.itemsize == 2 else p for p in parts])
    return getattr(wide, _REDUCTIONS[op])(axis=0).astype(parts[0].dtype)


# ---- communicators


@LIBRARY.function("ncclGetVersion", "p")
def _get_version(to: int) -> None:
    write(to, "i4", 22707)


@LIBRARY.function("ncclGetErrorString", "i")
def _get_error_string(code: int) -> int:
    return ctypes.addressof(_strings.get(code, _strings[3]))


@LIBRARY.function("ncclGetUniqueId", "p")
def _get_unique_id(to: int) -> None:
    identity = os.environ.get("NCCL_COMM_ID") or secrets.token_hex(16)
    view(to, "u1", (128,))[:] = np.frombuffer(identity.encode().ljust(128, b"\0"), "u1")


_ON_STACK = platform.machine() == "x86_64"  # the id, after the arguments in registers


@LIBRARY.function("ncclCommInitRankConfig", "piippp" + "l" * 16 if _ON_STACK else "pipip")
def _init_rank(to: int, size: int, first: int, second: int, *rest: int) -> None:
    """Takes rank, configuration and id; elsewhere the address of the id, rank, configuration."""
    identity = np.array(rest[2:], "i8") if _ON_STACK else view(first, "u1", (128,))
    rank, number = first if _ON_STACK else second, next(_numbers)
    _communicators[number] = _Communicator(identity.tobytes().rstrip(b"\0"), rank, size)
    write(to, "u8", number)


@LIBRARY.function("ncclCommDestroy", "p")
def _destroy(comm: int) -> None:
    _communicators.pop(comm)


@LIBRARY.function("ncclCommAbort", "p")
def _abort(comm: int) -> None:
    _communicators[comm].aborted = True


@LIBRARY.function("ncclCommGetAsyncError", "pp")
def _get_async_error(comm: int, to: int) -> None:
    write(to, "i4", _communicators[comm].error)


# ---- collectives


@LIBRARY.function("ncclGroupStart", "")
def _group_start() -> None:
    _grouped.append([])


@LIBRARY.function("ncclGroupEnd", "")
def _group_end() -> None:
    for put in _grouped.pop():
        put()


@LIBRARY.function("ncclAllReduce", "ppliipp")
def _all_reduce(sent: int, to: int, n: int, t: int, op: int, comm: int, stream: int) -> None:
    about = sent, n, to, n, t, comm, stream
    _collective("ncclAllReduce", about, lambda parts, _: _reduced(parts, op), op)


@LIBRARY.function("ncclReduceScatter", "ppliipp")
def _reduce_scatter(sent: int, to: int, n: int, t: int, op: int, comm: int, stream: int) -> None:
    def combine(parts: list[Any], rank: int) -> Any:
        return _reduced([p[rank * n : rank * n + n] for p in parts], op)

    about = sent, n * _communicators[comm].size, to, n, t, comm, stream
    _collective("ncclReduceScatter", about, combine, op)


@LIBRARY.function("ncclAllGather", "pplipp")
def _all_gather(sent: int, to: int, n: int, t: int, comm: int, stream: int) -> None:
    about = sent, n, to, n * _communicators[comm].size, t, comm, stream
    _collective("ncclAllGather", about, lambda parts, _: np.concatenate(parts))


@LIBRARY.function("ncclBroadcast", "ppliipp")
def _broadcast(sent: int, to: int, n: int, t: int, root: int, comm: int, stream: int) -> None:
    about = sent, n if _communicators[comm].rank == root else 0, to, n, t, comm, stream
    _collective("ncclBroadcast", about, lambda parts, _: parts[root], root)


@LIBRARY.function("ncclSend", "plipip")
def _send(sent: int, n: int, t: int, peer: int, comm: int, stream: int) -> None:
    def run(c: _Communicator) -> None:
        c.post(f"send{c.rank}to{peer}", view(sent, _DTYPES[t], (n,)).copy())

    _put(comm, stream, "ncclSend", run)


@LIBRARY.function("ncclRecv", "plipip")
def _receive(to: int, n: int, t: int, peer: int, comm: int, stream: int) -> None:
    def run(c: _Communicator) -> None:
        view(to, _DTYPES[t], (n,))[:] = c.fetch(f"send{peer}to{c.rank}", peer)

    _put(comm, stream, "ncclRecv", run)
