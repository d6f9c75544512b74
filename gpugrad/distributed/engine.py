"""The engine of a single process, and what engines have in common."""

from __future__ import annotations

import contextlib
import pickle
import socket
from typing import Any

import numpy as np

from gpugrad.core.devices import host


class Engine:
    """The collectives of ranks that all have the same array: of one process, and of a trace.

    Those of MPI and NCCL override them. Each collective takes and returns C-contiguous arrays.
    Where an array is made of one part for each rank, or becomes one, its first axis has the length
    `size`.

    Attributes:
        name: of what moves the arrays.
        kind: of the devices whose arrays it moves; None for all.
        device: makes its GPU the current one, which CuPy and NCCL use; methods run within it.
        rank, size, local_rank: of this process, of all, and of this one among those of its host.
    """

    name: str = "one process"
    kind: str | None = None
    device: Any = contextlib.nullcontext()
    rank = local_rank = 0

    def __init__(self, size: int = 1) -> None:
        self.size = size

    def all_reduce(self, x: Any, how: str) -> Any:
        """The sum, mean, max or min over ranks, elementwise."""
        return x * self.size if how == "sum" and self.size > 1 else x.copy()

    def reduce_scatter(self, x: Any, how: str) -> Any:
        """The part of this rank of the sum or mean over ranks."""
        return self.all_reduce(x[0], how)

    def all_gather(self, x: Any) -> Any:
        """The arrays of all ranks, stacked."""
        return x[None].repeat(self.size, 0)

    def all_to_all(self, x: Any) -> Any:
        """Part k of each rank's array, stacked, on rank k."""
        return self.all_gather(x[0])

    def broadcast(self, x: Any, root: int) -> Any:
        """The array of one rank."""
        return x.copy()

    def sum_in_place(self, x: Any) -> None:
        """Replace an array by the sum over ranks."""

    def start_sum(self, x: Any) -> Any:
        """Begin to replace an array by the sum over ranks; MPI gains nothing by more than that."""
        self.sum_in_place(x)

    def wait(self, started: Any) -> None:
        """Wait for what `start_sum` has begun and returned."""

    def put(self, x: Any) -> Any:
        """A NumPy array as one that this engine moves."""
        return x

    def gather(self, value: Any) -> list[Any]:
        """The picklable values of all ranks, in their order."""
        if self.size == 1:
            return [value]
        own = np.frombuffer(pickle.dumps(value), np.uint8)
        lengths = host(self.all_gather(self.put(np.array([own.size]))))[:, 0]
        padded = np.zeros(lengths.max(), np.uint8)
        padded[: own.size] = own
        rows = host(self.all_gather(self.put(padded)))
        return [pickle.loads(row[:n].tobytes()) for row, n in zip(rows, lengths, strict=True)]

    def places(self) -> dict[int, int]:
        """The ranks of this host, and their numbers among these."""
        hosts = self.gather(socket.gethostname())
        own = [rank for rank in range(self.size) if hosts[rank] == hosts[self.rank]]
        return {rank: place for place, rank in enumerate(own)}

    def is_capturing(self) -> bool:
        """Whether what is called now becomes a part of a CUDA graph."""
        return False

    def ended(self) -> Any:
        """A function that tells whether the last collective has ended; None if it has."""

    def check(self) -> None:
        """Raise if the network or another rank has failed: MPI ends all processes by itself."""

    def abort(self, code: int) -> None:
        """End the processes of all ranks."""
