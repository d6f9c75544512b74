"""One process at a time writes to a folder."""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import time
from pathlib import Path
from typing import Any

from gpugrad.errors import CheckpointError

_NAME = ".lock"
_held: dict[tuple[int, int, int], tuple[set[int], set[int]]] = {}
"""By process and file, open descriptors, and the objects that have the lock.

Closing one of the descriptors would end the lock of all objects.
"""


class FolderLock:
    """Lets one process write to a folder, until `release` or until the process ends.

    The system holds the lock, not the file: that of a process that was killed is free. Several
    objects of a process may have it. Where there are no such locks, as on Windows and on some file
    systems, nothing is locked.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key: tuple[int, int, int] | None = None

    def acquire(self) -> None:
        """Take the lock, unless this object has it; CheckpointError if another process has it."""
        if self._key is not None and self._key[0] == os.getpid():
            return
        try:
            fcntl: Any = importlib.import_module("fcntl")
            path = self._folder / _NAME
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except (ImportError, OSError):  # Windows; a folder that refuses the checkpoint, too
            return
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            owner = os.read(file, 300).decode(errors="replace") or "another process"
            os.close(file)
            raise CheckpointError(
                f"{self._folder}: {owner} saves its checkpoints there. Choose another folder, or "
                "end that process first."
            ) from None
        except OSError:  # the file system has no locks
            os.close(file)
            return
        if not _is_at(file, path):  # its last holder has removed it
            os.close(file)
            self.acquire()
            return
        with contextlib.suppress(OSError):  # a full disk
            os.ftruncate(file, 0)
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            text = f"process {os.getpid()} on {socket.gethostname()}, since {now},"
            os.pwrite(file, text.encode(), 0)
        status = os.fstat(file)
        self._key = os.getpid(), status.st_dev, status.st_ino
        files, holders = _held.setdefault(self._key, (set(), set()))
        files.add(file)
        holders.add(id(self))

    def release(self) -> None:
        """Give the lock back, unless another object of this process has it."""
        key, self._key = self._key, None
        if key is None or key[0] != os.getpid():
            return
        files, holders = _held[key]
        holders.discard(id(self))
        if not holders:
            del _held[key]
            with contextlib.suppress(OSError):
                (self._folder / _NAME).unlink()
            for file in files:
                os.close(file)

    def __del__(self) -> None:
        self.release()


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file is the one that has this path."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False
