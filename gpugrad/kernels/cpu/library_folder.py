"""A folder of shared libraries that only this user could have written.

Code in a library runs when it is loaded, so whoever can write one, or swap a folder above it, runs
code as this user. The folder is opened component by component without following links, each with
an owner and a mode that keep others out, and is used by its descriptor. A library's file is opened
once: the bytes whose digest is right are those that the loader maps.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import hashlib
import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
    import grp
    import pwd
except ImportError:  # on Windows, where kernels are not compiled
    pass

_BYTES = 1 << 28  # of all libraries in a folder, which then loses those not used for longest
_BUILD = "build-"  # begins the names of folders in which a compiler works
_DIGEST = hashlib.sha256().digest_size  # bytes behind those that the loader reads
_names = itertools.count()


class UnsafeError(Exception):
    """Others than this user could have written what is in a folder."""


class LibraryFolder:
    """The folder; it is created if it does not exist.

    Args:
        path: an absolute path.
        parents: whether the folders above are checked, too.

    Raises:
        UnsafeError: others can write to it, or to a folder above it.
        OSError: it cannot be created or opened.
    """

    def __init__(self, path: Path, *, parents: bool = True) -> None:
        for folder in (*reversed(path.parents), path):
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        self.path = Path(os.path.realpath(path))
        folders = [*reversed(self.path.parents), self.path] if parents else [self.path]
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = -1
        for folder in folders:
            above, descriptor = (
                descriptor,
                os.open(
                    folder.name or "/" if descriptor >= 0 else folder,
                    flags,
                    dir_fd=descriptor if descriptor >= 0 else None,
                ),
            )
            if above >= 0:
                os.close(above)
            if reason := others(os.fstat(descriptor), own=folder == self.path):
                os.close(descriptor)
                way_out = (
                    ""
                    if folder == self.path
                    else (", and set XDG_CACHE_HOME to a folder that only you can write to")
                )
                raise UnsafeError(
                    f"{reason} {folder}, so others may have written the libraries in it: delete "
                    f"{self.path}{way_out}"
                )
        self._descriptor = descriptor

    def load(self, name: str, mode: int, size: int | None = None) -> ctypes.CDLL | None:
        """The library of that name; None if it is missing, damaged or not this machine's.

        Args:
            size: bytes of a file that `copy` has stored; None: `store` has, with a digest.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            file = open(os.open(name, flags, dir_fd=self._descriptor), "rb")  # noqa: SIM115
        except OSError:
            return None
        with file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode) or others(state, own=True):
                return None
            if size is None:
                content = file.read()
                if hashlib.sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
                    return None
            elif state.st_size != size:
                return None
            # the loader knows libraries by their paths, so no two may have the same
            unique = f"{next(_names):b}".replace("0", "/").replace("1", "/./")
            try:
                library = ctypes.CDLL(f"/proc/self/fd/{unique}/{file.fileno()}", mode=mode)
            except OSError:
                return None
            with contextlib.suppress(OSError):  # a cache that is read-only now
                os.utime(file.fileno())  # its last use
            return library

    @contextlib.contextmanager
    def build(self) -> Iterator[Path]:
        """A folder for a compiler; those of processes that were killed are removed."""
        self._remove_leftovers()
        while True:
            with (
                tempfile.TemporaryDirectory(dir=self.path, prefix=_BUILD) as folder,
                _lock(folder, without_locks=True) as is_ours,
            ):
                if is_ours:  # else another process took it for a leftover
                    yield Path(folder)
                    return

    def store(self, library: Path, name: str) -> None:
        """Move a library here, at once: other processes may load or compile it, too."""
        content = library.read_bytes()
        library.write_bytes(content + hashlib.sha256(content).digest())
        library.chmod(0o600)
        os.replace(library, name, dst_dir_fd=self._descriptor)
        self._prune()

    def copy(self, library: str, mode: int) -> ctypes.CDLL | None:
        """A library that is loaded already, once more: the loader takes its copy for another one.

        The copy is kept for other processes until `library` changes. It has no digest: to read
        that of a large file would take as long as to copy it.
        """
        state = os.stat(library)
        version = f"{library}\0{state.st_ino}\0{state.st_size}\0{state.st_mtime_ns}"
        name = f"copy-{hashlib.sha256(version.encode()).hexdigest()[:32]}.so"
        if (loaded := self.load(name, mode, state.st_size)) is not None:
            return loaded
        with self.build() as folder:
            path = folder / name
            shutil.copyfile(library, path)
            path.chmod(0o600)
            os.replace(path, name, dst_dir_fd=self._descriptor)
        self._prune()
        return self.load(name, mode, state.st_size)

    def _prune(self) -> None:
        with contextlib.suppress(OSError):  # another process removes files, too
            entries = [e for e in os.scandir(self._descriptor) if e.name.endswith(".so")]
            states = [(e.name, e.stat(follow_symlinks=False)) for e in entries]
            excess = sum(state.st_size for _, state in states) - _BYTES
            for name, state in sorted(states, key=lambda item: item[1].st_mtime):
                if excess <= 0:
                    return
                excess -= state.st_size
                os.unlink(name, dir_fd=self._descriptor)

    def _remove_leftovers(self) -> None:
        for entry in os.scandir(self.path):
            if entry.name.startswith(_BUILD):
                with _lock(entry.path, without_locks=False) as is_left:
                    if is_left:
                        shutil.rmtree(entry.path, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder: str, *, without_locks: bool) -> Iterator[bool]:
    """Lock a folder; whether that succeeded, or `without_locks` if the file system has none."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except BlockingIOError:
            free = False
        except OSError:
            free = without_locks
        yield free and os.path.exists(folder)
    finally:
        os.close(descriptor)


def others(state: os.stat_result, *, own: bool) -> str:
    """Who else than this user can write to a file or a folder, as the start of a sentence.

    Args:
        state: of the file or the folder.
        own: whether it must belong to this user. Else root may have it, and a folder may be one of
            those in which nobody can rename what belongs to others, as /tmp.
    """
    user, mode = os.geteuid(), state.st_mode
    if state.st_uid not in ((user,) if own else (user, 0)):
        return f"user {state.st_uid} owns"
    if not own and mode & stat.S_ISVTX:
        return ""
    if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and (own or not _is_private(state.st_gid))):
        return "others can write to"
    return ""


def _is_private(group: int) -> bool:
    """Whether nobody else is in a group, as in the group of each user of many systems."""
    try:
        me, entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return me.pw_gid == group and entry.gr_name == me.pw_name and {*entry.gr_mem} <= {me.pw_name}


def temporary_folder() -> LibraryFolder:
    """A new folder that this process removes at its end."""
    path, process = Path(tempfile.mkdtemp(prefix="gpugrad-")), os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # not in its forks
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(remove)
    return LibraryFolder(path, parents=False)
