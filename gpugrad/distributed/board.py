"""A board in shared memory on which each process of a host writes what it does.

When a collective does not end, it tells which ranks are missing, and what they do instead.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_HEAD = struct.Struct("<qqd?H")  # number, process, time, whether it has ended, length of the text
_ROOM = 256  # bytes a rank


class Note(NamedTuple):
    """The last note of a rank."""

    number: int  # of its last collective, from 1
    process: int  # the id of its process
    since: float  # seconds since the epoch
    ended: bool  # whether the collective has ended
    text: str  # the collective with dtype and shape

    @property
    def state(self) -> str:
        """The state of the process: ``"dead"``, ``"stopped"``, or "" if it runs."""
        try:
            with open(f"/proc/{self.process}/stat") as file:
                letter = file.read().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return "dead" if Path("/proc/self").exists() else ""
        return {"Z": "dead", "X": "dead", "T": "stopped", "t": "stopped"}.get(letter, "")


class Board:
    """The part of a board that this process writes, and what the other ranks of its host wrote.

    Args:
        path: the file, which all ranks of the host map.
        places: the places in it of the host's ranks, by rank.
        rank: that of this process.
    """

    def __init__(self, path: str, places: Mapping[int, int], rank: int) -> None:
        self.rank, self._places = rank, places
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _ROOM * len(places))

    def write(self, number: int, text: str, ended: bool) -> None:
        """Say which collective this rank is in, or has ended."""
        letters = text.encode()[: _ROOM - _HEAD.size]
        head = _HEAD.pack(number, os.getpid(), time.time(), ended, len(letters))
        at = _ROOM * self._places[self.rank]
        self._map[at : at + len(head) + len(letters)] = head + letters

    def others(self) -> dict[int, Note]:
        """The last notes of the other ranks of this host."""
        notes = {}
        for rank, place in self._places.items():
            at = _ROOM * place
            number, process, since, ended, length = _HEAD.unpack_from(self._map, at)
            text = self._map[at + _HEAD.size :][:length].decode(errors="replace")
            notes[rank] = Note(number, process, since, ended, text)
        del notes[self.rank]
        return notes

    def lost(self) -> list[str]:
        """A sentence for each rank of this host whose process is dead."""
        return [
            f"rank {rank} (process {note.process}) is dead since {_where(note)}"
            for rank, note in self.others().items()
            if note.process and note.state == "dead"
        ]

    def report(self, number: int, text: str) -> str:
        """Sentences on the other ranks of this host, while this one waits in a collective."""
        lines = self.lost()
        for rank, note in self.others().items():
            state = note.state
            if state == "stopped":
                lines.append(f"rank {rank} (process {note.process}) is stopped, {_where(note)}")
            elif not state and note.number < number:
                ago = f"{time.time() - note.since:.1f} s ago"
                lines.append(f"rank {rank} has not begun it: it is {_where(note)}, {ago}")
            elif not state and note.number == number and note.text != text:
                lines.append(f"rank {rank} is in another one: {note.text}")
        return "; ".join(lines) or "all ranks of this host are in it"


def shared_board(engine: Any) -> Board:
    """The board of this host, in memory where the system has such a folder.

    Its file goes once all ranks have mapped it.
    """
    path, places = "", engine.places()
    if places[engine.rank] == 0:
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        file, path = tempfile.mkstemp(prefix="gpugrad-board-", dir=folder)
        os.truncate(file, _ROOM * len(places))
        os.close(file)
    paths = engine.gather(path)
    board = Board(paths[min(places)], places, engine.rank)
    board.write(0, "", True)
    engine.gather(None)
    if path:
        os.unlink(path)
    return board


def _where(note: Note) -> str:
    if not note.number:
        return "before the first collective"
    return f"{'after' if note.ended else 'in'} collective {note.number}, {note.text}"
